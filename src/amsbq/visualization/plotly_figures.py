"""The pictures of a page, for Plotly: traces and layouts as plain dictionaries.

What comes from a run is text in them: names are escaped, since the library takes some markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import numpy as np

from ..results.result import Result
from ..serialisation import plain
from . import curves
from .style import DENSE, RATES, look

DIGITS = 6  #: of numbers that are only drawn


SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")


DASHES = ("solid", "dash", "dashdot", "dot", "longdash", "longdashdot")


GREY = "#808891"


#: what it is called, what it shows, and one panel, or one for each input
Chart = dict[str, Any]


def charts(result: Result) -> Iterator[Chart]:
    """All that can be drawn of a run."""
    if result.evaluations:
        yield _convergence(result)
        yield _sequence(result)
    if result.integrator is None or result.integrator.learner.belief is None:
        return
    inputs = range(len(result.inputs))
    grids = [curves.grid(result, d) for d in inputs]
    yield _figure(
        "sources",
        "What is known of the sources",
        "Mean and two standard deviations"
        + (" of each source, with its evaluations." if len(inputs) == 1 else ", averaged over all other inputs.")
        + " Grey: the distribution of the input.",
        [_source_panel(result, d, grids[d]) for d in inputs],
    )
    yield _figure(
        "rates",
        "What the next evaluation is worth",
        f"{RATES.get(result.integrator.acquisition, 'Utility').capitalize()} per cost, along an input through the best "
        "place (star).",
        [_rates_panel(result, d, seen) for d, seen in enumerate(curves.rates_along(result, inputs))],
    )
    yield _forecast(result)
    yield _residuals(result)
    if len(result.names) > 1:
        yield _correlation(result)
    yield _figure(
        "costs",
        "What evaluations cost",
        "As expected, the other inputs at their medians (lines), and as paid (markers).",
        [_costs_panel(result, d, grids[d]) for d in inputs],
    )


def _figure(key: str, title: str, caption: str, panels: list[dict[str, Any]]) -> Chart:
    return {"id": key, "title": title, "caption": caption, "alt": f"{title}. {caption}", "panels": panels}


def _panel(label: str, traces: list[dict[str, Any]], **layout: Any) -> dict[str, Any]:
    return {"label": label, "traces": traces, "layout": layout}


def _convergence(result: Result) -> Chart:
    seen = curves.convergence(result)
    (cost, low, high), (bottom, top) = seen.band(), seen.zoom()
    traces = _band(cost, low, high, GREY, "hv")
    traces.append(_line(cost, seen.mean[seen.known], GREY, "mean ± 2 std", shape="hv"))
    for source, name in enumerate(result.names):
        of = seen.known & (seen.sources == source) & ~seen.failed
        texts = [f"{m:.6g} ± {s:.2g}" for m, s in zip(seen.mean[of], seen.std[of], strict=True)]
        traces.append(_dots(seen.cost[of], seen.mean[of], source, name, texts))
    if seen.failed.any():
        traces.append(_crosses(seen.cost[seen.failed], np.full(int(seen.failed.sum()), 0.98 * bottom + 0.02 * top)))
    said = f"From {len(result.evaluations)} evaluations: {result.estimate.summary()}."
    axes = {"xaxis": {"title": {"text": "cost"}}, "yaxis": {"title": {"text": "integral"}, "range": [bottom, top]}}
    return _figure("convergence", "The estimate against cost", said, [_panel("", traces, **axes)])


def _sequence(result: Result) -> Chart:
    seen, (counts, paid) = curves.convergence(result), curves.shares(result)
    steps, traces = np.arange(1, len(seen.cost) + 1), []
    for source, name in enumerate(result.names):
        of = (seen.sources == source) & ~seen.failed
        traces.append(_dots(steps[of], np.full(int(of.sum()), source), source, name))
    if seen.failed.any():
        traces.append(_crosses(steps[seen.failed], seen.sources[seen.failed]))
    made, cost = 100 * counts / max(counts.sum(), 1), 100 * paid / (paid.sum() or 1)
    parts = [
        f"{name}: {n:.0f} % of the evaluations, {c:.0f} % of the cost"
        for name, n, c in zip(result.names, made, cost, strict=True)
    ]
    yaxis = {**_ticks(result.names), "range": [len(result.names) - 0.5, -0.5], "zeroline": False}
    panel = _panel("", traces, xaxis={"title": {"text": "evaluation"}}, yaxis=yaxis, showlegend=False)
    return _figure("sequence", "Which source was asked when", "; ".join(parts) + ".", [panel])


def _source_panel(result: Result, d: int, t: Any) -> dict[str, Any]:
    traces, alone = [], len(result.inputs) == 1
    density = curves.density(result, d, t)
    if density is not None:
        shade = _line(t, density, GREY, "distribution", fill="tozeroy", yaxis="y2", hoverinfo="skip", showlegend=False)
        traces.append({**shade, "line": {"width": 0}, "fillcolor": "rgba(128,136,145,0.18)"})
    for source, curve in enumerate(curves.effects(result, d, t)):
        traces += _band(t, curve.mean - 2 * curve.std, curve.mean + 2 * curve.std, look(source)["color"])
        traces.append(_of_source(t, curve.mean, source, result))
        of = [e for e in result.evaluations if alone and e.source == source and e.status == "ok"]
        if of:
            dots = _dots([e.x[0] for e in of], [e.value for e in of], source, result.names[source])
            traces.append({**dots, "showlegend": False})
    most = 5 * float(density.max()) if density is not None else 1.0
    below = {"overlaying": "y", "visible": False, "range": [0, most], "fixedrange": True}
    titles = _titles(result.inputs[d], "output" if alone else "average output")
    return _panel(result.inputs[d], traces, **titles, yaxis2=below)


def _rates_panel(result: Result, d: int, seen: curves.Rates) -> dict[str, Any]:
    traces = [_of_source(seen.t, values, source, result) for source, values in enumerate(seen.rates)]
    if seen.next is not None:
        star = _dots([seen.next.x[d]], [seen.next.rate], seen.next.source, f"next: {result.names[seen.next.source]}")
        marker = {**star["marker"], "symbol": "star", "size": 15}
        traces.append({**star, "marker": marker, "cliponaxis": False})
    titles = _titles(result.inputs[d], "per cost")
    titles["yaxis"]["rangemode"] = "tozero"
    return _panel(result.inputs[d], traces, **titles)


def _forecast(result: Result) -> Chart:
    traces = [_line(*curves.convergence(result).shrinking(), GREY, "so far")]
    said = "How the standard deviation of the integral has shrunk."
    ahead = curves.forecast(result)
    if len(ahead):
        traces.append(_line(ahead[:, 0], ahead[:, 1], look(1)["color"], "to be expected", dash="dash"))
        said += f" For {ahead[-1, 0]:.4g} in total, {ahead[-1, 1]:.2g} is to be expected."
    titles = _titles("cost", "standard deviation")
    titles["yaxis"] |= {"type": "log", "dtick": 1}
    return _figure("forecast", "The error bar, and what more money buys", said, [_panel("", traces, **titles)])


def _residuals(result: Result) -> Chart:
    left, rng, traces = curves.residuals(result), np.random.default_rng(0), []
    for source, name in enumerate(result.names):
        z = left.of(source)
        traces.append(_dots(source + rng.uniform(-0.25, 0.25, size=len(z)), z, source, name, [f"{v:.2f}" for v in z]))
    band = {
        "type": "rect",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": -2,
        "y1": 2,
        "layer": "below",
        "line": {"width": 0},
    }
    panel = _panel(
        "",
        traces,
        xaxis={**_ticks(result.names), "range": [-0.6, len(result.names) - 0.4], "zeroline": False},
        yaxis={"title": {"text": "residual / std"}, "range": [-left.span, left.span]},
        shapes=[{**band, "fillcolor": "rgba(128,136,145,0.2)"}],
        showlegend=False,
    )
    outside = float(np.mean(np.abs(left.z) > 2)) if len(left.z) else 0.0
    said = (
        "Each observation against what all the others say of it, in standard deviations: "
        f"{100 * outside:.0f} % are outside of ± 2 (about 5 % should be)."
    )
    return _figure("residuals", "Does the model fit? Leaving one out", said, [panel])


def _correlation(result: Result) -> Chart:
    R = curves.correlation(result)
    heat = {
        "type": "heatmap",
        "z": R.round(4).tolist(),
        "x": list(range(len(R))),
        "y": list(range(len(R))),
        "zmin": -1,
        "zmax": 1,
        "colorscale": [[0, "#7f3b08"], [0.5, "#f7f7f7"], [1, "#2d004b"]],
        "texttemplate": "%{z:.2f}",
        "hovertemplate": "%{z:.4f}<extra></extra>",
        "showscale": False,
    }
    ticks = {**_ticks(result.names[: len(R)]), "showgrid": False, "zeroline": False}
    panel = _panel("", [heat], xaxis=ticks, yaxis={**ticks, "autorange": "reversed"})
    pairs = [f"{name} {R[0, i]:.2f}" for i, name in enumerate(result.names[: len(R)]) if i]
    said = f"Between sources at the same input, as learned; with {result.names[0]}: {', '.join(pairs) or 'none'}."
    return _figure("correlation", "How the sources are related", said, [panel])


def _costs_panel(result: Result, d: int, t: Any) -> dict[str, Any]:
    expected, traces = curves.costs(result, d, t), []
    for source, values in enumerate(expected):
        traces.append(_of_source(t, values, source, result))
        of = [e for e in result.evaluations if e.source == source and e.cost > 0]
        dots = _dots([e.x[d] for e in of], [e.cost for e in of], source, result.names[source])
        traces.append({**dots, "showlegend": False})
    titles = _titles(result.inputs[d], "cost of an evaluation")
    if curves.orders_apart(expected):
        titles["yaxis"] |= {"type": "log", "dtick": 1}
    else:
        titles["yaxis"]["rangemode"] = "tozero"
    return _panel(result.inputs[d], traces, **titles)


def _ticks(names: Sequence[str]) -> dict[str, Any]:
    """Of an axis with a place for each source."""
    return {"tickvals": list(range(len(names))), "ticktext": [_cut(name) for name in names]}


def _of_source(x: Any, y: Any, source: int, result: Result) -> dict[str, Any]:
    return _line(x, y, look(source)["color"], result.names[source], dash=DASHES[source % len(DASHES)])


def _titles(x: str, y: str) -> dict[str, Any]:
    return {"xaxis": {"title": {"text": _text(x)}}, "yaxis": {"title": {"text": y}}}


def _line(
    x: Any, y: Any, colour: str, name: str, dash: str = "solid", shape: str = "linear", **more: Any
) -> dict[str, Any]:
    line = {"color": colour, "dash": dash, "shape": shape, "width": 2}
    return {
        "type": "scatter",
        "mode": "lines",
        "x": _short(x),
        "y": _short(y),
        "name": _text(name),
        "line": line,
        **more,
    }


def _band(x: Any, low: Any, high: Any, colour: str, shape: str = "linear") -> list[dict[str, Any]]:
    """Two lines that are not seen, and what is between them."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    hidden: dict[str, Any] = {"hoverinfo": "skip", "showlegend": False}
    edges = [_line(x, edge, colour, "", shape=shape, **hidden) for edge in (low, high)]
    for edge in edges:
        edge["line"] = {"width": 0, "shape": shape}
    edges[1] |= {"fill": "tonexty", "fillcolor": f"rgba({red},{green},{blue},0.18)"}
    return edges


def _dots(x: Any, y: Any, source: int, name: str, texts: list[str] | None = None) -> dict[str, Any]:
    colour, symbol = look(source)["color"], SYMBOLS[source % len(SYMBOLS)]
    few = len(x) <= DENSE
    edge = {"color": "white", "width": 0.5 if few else 0}
    marker = {"color": colour, "symbol": symbol, "size": 8 if few else 4, "line": edge}
    out = {"type": "scatter", "mode": "markers", "x": _short(x), "y": _short(y), "name": _text(name), "marker": marker}
    return out if texts is None else {**out, "text": texts, "hovertemplate": "%{text}<extra>%{fullData.name}</extra>"}


def _crosses(x: Any, y: Any) -> dict[str, Any]:
    marker = {"symbol": "x", "size": 7, "color": GREY}
    return {"type": "scatter", "mode": "markers", "x": _short(x), "y": _short(y), "name": "failed", "marker": marker}


def _short(values: Any) -> list[Any]:
    return [plain(float(f"{value:.{DIGITS}g}")) for value in np.asarray(values, dtype=float)]


def _text(name: str) -> str:
    """Names as text: the library for plots takes some markup."""
    return escape(name, quote=False)


def _cut(name: str) -> str:
    return _text(name if len(name) <= 18 else name[:16] + "…")
