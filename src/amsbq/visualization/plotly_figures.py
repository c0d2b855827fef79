"""The Plotly figures of the report, for one output and for several: traces and layouts as plain dictionaries.

Plotly renders some markup in names and labels, so text that comes from a run is escaped here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from ..certificates.certificate import Certificate
from ..common.serialisation import plain
from ..common.validation import Array, plus_minus
from ..design.labels import COST, OUTPUT, with_unit
from ..posterior.sensitivity import Sensitivity
from ..results import analysis
from ..results.result import Result, is_known, known_targets
from . import curves
from .style import BAND_NAME, DENSE, GREY, PAYS, RATE_NAMES, effect_name, needs_log_scale, source_style

DIGITS = 6  #: significant digits of numbers that are only drawn: finer than a screen, and half the file size
LABEL_LENGTH = 18  #: letters of a source's name that fit next to an axis
SHADE = "rgba(128,136,145,0.2)"  #: GREY, transparent

Trace: TypeAlias = dict[str, Any]
Layout: TypeAlias = dict[str, Any]


class Panel(TypedDict):
    """One plot; ``label`` names the input on its axis, if the chart has several panels."""

    label: str
    traces: list[Trace]
    layout: Layout


class Chart(TypedDict):
    """A figure of the report: one panel, or one per input, of which the page shows one at a time."""

    id: str
    title: str
    caption: str
    panels: list[Panel]


def charts(result: Result) -> Iterator[Chart]:
    """Yield all figures of a run; some need evaluations or a model."""
    if result.evaluations:
        yield _convergence(result)
        if result.certificate is not None and result.certificate.complete:
            yield _certificate(result, result.certificate)
        yield _sequence(result)
    if result.integrator is None or result.integrator.learner.posterior is None:
        return
    inputs = range(len(result.inputs))
    grids = [curves.grid(result, d) for d in inputs]
    over = " of each source, with its evaluations." if len(inputs) == 1 else ", averaged over all other inputs."
    gain = RATE_NAMES.get(result.integrator.problem.acquisition, "utility").capitalize()
    yield {
        "id": "sources",
        "title": "What is known about the sources",
        "caption": f"Mean and 95 % interval{over} Grey: the distribution of the input.",
        "panels": [_sources_panel(result, d, grids[d]) for d in inputs],
    }
    yield {
        "id": "rates",
        "title": "What the next evaluation is worth",
        "caption": f"{gain} per cost, along an input through the best location (star).",
        "panels": [_rates_panel(result, d, seen) for d, seen in enumerate(curves.rates_along(result, inputs))],
    }
    if refinements := curves.refinements(result):
        shrinking = "; ".join(seen.caption for seen in refinements)
        yield {
            "id": "refinement",
            "title": "What refining changes",
            "caption": "Integrals of the levels with 95 % intervals, and the limit, at zero, if the run is about it: "
            f"{shrinking}.",
            "panels": [_refinement_panel(result, seen) for seen in refinements],
        }
    if (levels := curves.level_grid(result)) is not None:
        yield _levels(levels)
    yield _forecast(result)
    yield _residuals(result)
    if len(result.names) > 2:  # for two sources it is a single number
        yield _correlation(result)
    if curves.costs_vary(result):
        yield {
            "id": "costs",
            "title": "What evaluations cost",
            "caption": "As expected, the other inputs at their medians (lines), and as paid (markers).",
            "panels": [_costs_panel(result, d, grids[d]) for d in inputs],
        }


def _convergence(result: Result) -> Chart:
    seen = curves.convergence(result)
    (cost, low, high), (bottom, top) = seen.band(), seen.limits()
    labels, unit = result.labels, result.labels.unit(result.output)
    traces = _band(cost, low, high, GREY, "hv")
    traces.append(_line(cost, seen.mean[seen.known], GREY, "mean", shape="hv"))
    for source, name in enumerate(result.names):
        of = seen.known & (seen.sources == source) & ~seen.failed
        pairs = zip(seen.mean[of], seen.std[of], strict=True)
        texts = [plus_minus(mean, std, unit) + (" (std)" if np.isfinite(std) else "") for mean, std in pairs]
        traces.append(_markers(seen.cost[of], seen.mean[of], source, name, texts))
    if seen.failed.any():
        traces.append(_crosses(seen.cost[seen.failed], np.full(int(seen.failed.sum()), 0.98 * bottom + 0.02 * top)))
    layout = _titles(labels.axis(COST), labels.integral_axis(result.output))
    layout["yaxis"]["range"] = [bottom, top]
    targets = "".join(f"{known}. " for known in known_targets(result))
    caption = f"{targets}From {len(result.evaluations)} evaluations: {result.estimate.summary(unit)}."
    return _single("convergence", "The estimate against cost", caption, traces, layout)


def _certificate(result: Result, certificate: Certificate) -> Chart:
    """Return the chart of the model's estimate above that of the certificate, with 95 % intervals."""
    model = certificate.plan.model
    mean, std = float(model.mean[0]), float(model.std[0])
    low, high = certificate.interval()
    rows = [("model", mean, mean - 1.96 * std, mean + 1.96 * std), ("certificate", float(certificate.mean), low, high)]
    traces: list[Trace] = []
    for number, (name, centre, *ends) in enumerate(rows):
        if not np.isfinite(centre):
            continue
        style = source_style(number)
        below, above = ([abs(end - centre) if np.isfinite(end) else None] for end in ends)
        bar = {"type": "data", "symmetric": False, "array": above, "arrayminus": below}
        traces.append(
            {
                "x": [centre],
                "y": [name],
                "name": name,
                "text": [f"{centre:.6g} (95 %: {ends[0]:.6g} to {ends[1]:.6g})"],
                "hovertemplate": "%{text}<extra>%{fullData.name}</extra>",
                "mode": "markers",
                "type": "scatter",
                "error_x": {**bar, "color": style["color"]},
                "marker": {"color": style["color"], "size": 10},
            }
        )
    compared = certificate.comparison()
    said = [f"{compared.text} {compared.advice}".strip()] if compared is not None else [f"{certificate.summary()}."]
    caption = " ".join([*(each[0].upper() + each[1:] for each in (*said, *certificate.cautions))])
    layout = _titles(result.labels.integral_axis(result.output), "")
    layout |= {"showlegend": False, "yaxis": {"autorange": "reversed", "type": "category"}}
    return _single("certificate", "The model, and an estimate that rests on none", caption, traces, layout)


def _sequence(result: Result) -> Chart:
    seen, (counts, paid) = curves.convergence(result), curves.shares(result)
    steps, traces = np.arange(1, len(seen.cost) + 1), []
    for source, name in enumerate(result.names):
        of = (seen.sources == source) & ~seen.failed
        traces.append(_markers(steps[of], np.full(int(of.sum()), source), source, name))
    if seen.failed.any():
        traces.append(_crosses(steps[seen.failed], seen.sources[seen.failed]))
    made, cost = 100 * counts / max(counts.sum(), 1), 100 * paid / (paid.sum() or 1)
    parts = [
        f"{name}: {n:.0f} % of the evaluations, {c:.0f} % of the cost"
        for name, n, c in zip(result.names, made, cost, strict=True)
        if n
    ]
    yaxis = {**_source_ticks(result.names), "range": [len(result.names) - 0.5, -0.5], "zeroline": False}
    layout = {"xaxis": {"title": {"text": "evaluation"}}, "yaxis": yaxis, "showlegend": False}
    return _single("sequence", "Which source was evaluated when", "; ".join(parts) + ".", traces, layout)


def _sources_panel(result: Result, d: int, t: Array) -> Panel:
    traces, alone = [], len(result.inputs) == 1
    density = curves.density(result, d, t)
    if density is not None:
        shade = _line(t, density, GREY, "distribution", fill="tozeroy", yaxis="y2", hoverinfo="skip", showlegend=False)
        traces.append({**shade, "line": {"width": 0}, "fillcolor": SHADE})
    for source, curve in enumerate(curves.effects(result, d, t)):
        traces += _band(t, *curve.band(), source_style(source)["color"], shown=source == 0)
        line = _source_line(t, curve.mean, source, result)
        traces.append({**line, "name": effect_name(line["name"], curve.known)})
        of = [e for e in result.evaluations if alone and e.source == source and e.status == "ok"]
        if of:
            markers = _markers([e.x[0] for e in of], [e.value for e in of], source, result.names[source])
            traces.append({**markers, "showlegend": False})
    output = result.labels.axis(result.output or OUTPUT)
    layout = _titles(result.labels.axis(result.inputs[d]), output if alone else f"average {output}")
    highest = 5 * float(density.max()) if density is not None else 1.0  # the shade takes the lowest fifth
    layout["yaxis2"] = {"overlaying": "y", "visible": False, "range": [0, highest], "fixedrange": True}
    return {"label": result.inputs[d], "traces": traces, "layout": layout}


def _rates_panel(result: Result, d: int, seen: curves.Rates) -> Panel:
    traces = [_source_line(seen.t, values, source, result) for source, values in enumerate(seen.rates)]
    if seen.next is not None:
        name = f"next: {result.names[seen.next.source]}"
        star = _markers([seen.next.x[d]], [seen.next.rate], seen.next.source, name)
        star["marker"] |= {"symbol": "star", "size": 15}
        traces.append({**star, "cliponaxis": False})
    layout = _titles(result.labels.axis(result.inputs[d]), "per cost")
    layout["yaxis"]["rangemode"] = "tozero"
    return {"label": result.inputs[d], "traces": traces, "layout": layout}


def _refinement_panel(result: Result, seen: curves.RefinementCurve) -> Panel:
    traces = _band(seen.sizes, seen.low, seen.high, GREY)
    traces.append({**_line(seen.sizes, seen.mean, GREY, "mean"), "showlegend": False})
    texts = [
        f"{mean:.6g} (95 %: {low:.6g} to {high:.6g})"
        for mean, low, high in zip(seen.mean, seen.low, seen.high, strict=True)
    ]
    for i, source in enumerate(seen.sources.tolist()):
        name = "limit" if source < 0 else result.names[source]
        marker = _markers(seen.sizes[[i]], seen.mean[[i]], max(source, 0), name, [texts[i]])
        if source < 0:
            marker["marker"] |= {"symbol": "star", "size": 13, "color": GREY}
        traces.append({**marker, "error_y": _bars(seen.mean[[i]], (seen.low[[i]], seen.high[[i]]))})
    layout = _titles(f"fidelity of {seen.knob}", result.labels.integral_axis(result.output))
    return {"label": seen.knob, "traces": traces, "layout": layout}


def _levels(seen: curves.LevelGrid) -> Chart:
    shades = np.where(np.isnan(seen.counts), np.nan, seen.shades.round(4))
    heatmap = {
        "type": "heatmap",
        "z": [[shade if shade >= 0 else None for shade in row] for row in shades.tolist()],
        "x": list(range(seen.counts.shape[1])),
        "y": list(range(seen.counts.shape[0])),
        "text": [[f"{n:.0f}" if n >= 0 else "" for n in row] for row in seen.counts.tolist()],
        "customdata": [[f"{cost:.4g}" for cost in row] for row in seen.cost.tolist()],
        "zmin": 0,
        "zmax": 1,
        "colorscale": [[0, "#f7fbff"], [0.5, "#6baed6"], [1, "#08306b"]],
        "texttemplate": "%{text}",
        "hovertemplate": "%{text} evaluations, for %{customdata}<extra></extra>",
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
    }
    layout = _titles(*seen.knobs)
    for axis, ticks in zip(layout.values(), seen.ticks, strict=True):
        axis |= {"tickvals": list(range(len(ticks))), "ticktext": ticks, "showgrid": False, "zeroline": False}
    caption = "How often each level was evaluated; the finest is at the lower left."
    return _single("levels", "Which levels were evaluated", caption, [heatmap], layout)


def _forecast(result: Result) -> Chart:
    traces = [_line(*curves.convergence(result).positive_std(), GREY, "so far")]
    caption = "How the standard deviation of the integral has shrunk."
    ahead = curves.forecast(result)
    if len(ahead):
        traces.append(_line(ahead[:, 0], ahead[:, 1], source_style(1)["color"], "expected", dash="dash"))
        caption += f" For {ahead[-1, 0]:.4g} in total, {ahead[-1, 1]:.2g} is expected."
    if (end := curves.pays_until(result, ahead)) is not None:
        traces.append(_markers(end[:1], end[1:], 1, PAYS))
        caption += f" With the given error_cost, evaluations pay up to {end[0]:.4g}."
    unit = result.labels.unit(result.output)
    layout = _titles(result.labels.axis(COST), with_unit("standard deviation", unit))
    layout["yaxis"] |= {"type": "log", "dtick": 1}
    return _single("forecast", "The error bar so far, and its forecast", caption, traces, layout)


def _residuals(result: Result) -> Chart:
    left, rng, traces = analysis.residuals(curves.integrator_of(result)), np.random.default_rng(0), []
    for source, name in enumerate(result.names):
        z = left.of(source)
        jitter = source + rng.uniform(-0.25, 0.25, size=len(z))
        traces.append(_markers(jitter, z, source, name, [f"{value:.2f}" for value in z]))
    band = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": -2, "y1": 2, "layer": "below"}
    layout = {
        "xaxis": {**_source_ticks(result.names), "range": [-0.6, len(result.names) - 0.4], "zeroline": False},
        "yaxis": {"title": {"text": "residual / std"}, "range": [-left.span, left.span]},
        "shapes": [{**band, "line": {"width": 0}, "fillcolor": SHADE}],
        "showlegend": False,
    }
    outside = float(np.mean(np.abs(left.z) > 2)) if len(left.z) else 0.0
    caption = (
        "Each observation minus its prediction from all others, in standard deviations: "
        f"{100 * outside:.0f} % are outside ± 2 (about 5 % are expected)."
    )
    return _single("residuals", "Does the model fit? Leave-one-out residuals", caption, traces, layout)


def _correlation(result: Result) -> Chart:
    R = curves.correlation(result)
    names = result.names[: len(R.mean)]
    texts = [["1" if i == j else "<br>".join(R.parts(i, j)) for j in range(len(names))] for i in range(len(names))]
    heatmap = {
        "type": "heatmap",
        "z": np.where(R.known, R.mean, 0.0).round(4).tolist(),
        "x": list(range(len(names))),
        "y": list(range(len(names))),
        "text": texts,
        "zmin": -1,
        "zmax": 1,
        "colorscale": [[0, "#7f3b08"], [0.5, "#f7f7f7"], [1, "#2d004b"]],
        "texttemplate": "%{text}",
        "hovertemplate": "%{text}<extra></extra>",
        "showscale": False,
    }
    ticks = {**_source_ticks(names), "showgrid": False, "zeroline": False}
    layout = {"xaxis": ticks, "yaxis": {**ticks, "autorange": "reversed"}}
    pairs = [f"{name} {R.text(0, i)}" for i, name in enumerate(names) if i]
    caption = f"Correlation over the distribution of the inputs; with {names[0]}: {', '.join(pairs) or 'none'}."
    return _single("correlation", "How the sources are related", caption, [heatmap], layout)


def _costs_panel(result: Result, d: int, t: Array) -> Panel:
    expected, traces = curves.costs(result, d, t), []
    for source, values in enumerate(expected):
        traces.append(_source_line(t, values, source, result))
        of = [e for e in result.evaluations if e.source == source and e.cost > 0]
        markers = _markers([e.x[d] for e in of], [e.cost for e in of], source, result.names[source])
        traces.append({**markers, "showlegend": False})
    cost = with_unit("cost of an evaluation", result.labels.unit(COST))
    layout = _titles(result.labels.axis(result.inputs[d]), cost)
    layout["yaxis"] |= {"type": "log", "dtick": 1} if needs_log_scale(expected) else {"rangemode": "tozero"}
    return {"label": result.inputs[d], "traces": traces, "layout": layout}


def output_charts(result: Result) -> Iterator[Chart]:
    """Yield the distribution of the output, and the Sobol' indices of independent inputs, if quick to compute."""
    if not analysis.quickly_known(result.integrator):
        return
    yield _distribution(result)
    if (found := curves.indices(result)) is not None and len(found.names) > 1:
        yield _indices(found, [result.labels.label(name) for name in found.names])


def profile_charts(result: Result) -> Iterator[Chart]:
    """Yield the means of all outputs as a curve with its band, if the outputs form a profile."""
    seen = curves.several_outputs(result) if result.outputs is not None else None
    if seen is None or seen.at is None or not is_known(result):
        return
    order, colour = np.argsort(seen.at), source_style(0)["color"]
    t, mean, low, high = (each[order] for each in (seen.at, seen.mean, seen.low, seen.high))
    traces = [*_band(t, low, high, colour), _line(t, mean, colour, "mean")]
    caption = f"The means of {len(t)} outputs, by their names, with 95 % intervals."
    yield _single("outputs", "The outputs", caption, traces, _titles("output", "integral"))


def _distribution(result: Result) -> Chart:
    curve, colour = curves.output_curve(result), source_style(0)["color"]
    means, bars = curve.quantiles.mean, _bars(curve.quantiles.mean, curve.quantiles.interval())
    quantiles = _line(means, np.zeros(len(means)), colour, "quantiles", error_x=bars)
    named = {"mode": "markers", "text": [f"{100 * p:.0f} % quantile" for p in curves.SHOWN_QUANTILES]}
    density = [*_band(curve.t, curve.low, curve.high, GREY), _line(curve.t, curve.density, colour, "density")]
    caption = "The distribution of the output under that of the inputs, with its 5, 50 and 95 % quantiles."
    traces = [*density, quantiles | named]
    layout = _titles(result.labels.axis(result.output or OUTPUT), "density")
    return _single("output", "How the output is distributed", caption, traces, layout)


def _indices(found: Sensitivity, names: Sequence[str]) -> Chart:
    traces: list[Trace] = []
    for name, some, source in (("by itself", found.first, 0), ("with interactions", found.total, 1)):
        bars = {"x": _rounded(some.mean), "error_x": _bars(some.mean, some.interval())}
        look = {"marker": {"color": source_style(source)["color"]}, "orientation": "h"}
        traces.append({"type": "bar", "name": name, "y": [_text(one) for one in names], **bars, **look})
    layout = {**_titles("share of the variance", ""), "barmode": "group"}
    layout["xaxis"]["range"] = [0, 1]
    layout["yaxis"] = {"autorange": "reversed", "type": "category"}
    caption = "The share of the variance of the output that each input explains: Sobol' indices with 95 % intervals."
    return _single("sensitivity", "Which inputs matter", caption, traces, layout)


def _bars(mean: Array, interval: tuple[Array, Array]) -> dict[str, Any]:
    below, above = map(_rounded, curves.bars(mean, interval))
    return {"type": "data", "symmetric": False, "color": GREY, "array": above, "arrayminus": below}


def _single(key: str, title: str, caption: str, traces: list[Trace], layout: Layout) -> Chart:
    """Return a chart of one panel."""
    panel: Panel = {"label": "", "traces": traces, "layout": layout}
    return {"id": key, "title": title, "caption": caption, "panels": [panel]}


def _titles(x: str, y: str) -> Layout:
    return {"xaxis": {"title": {"text": _text(x)}}, "yaxis": {"title": {"text": _text(y)}}}


def _source_ticks(names: Sequence[str]) -> Layout:
    """Return the ticks of an axis with source i at i; long names keep both ends, because levels differ in the last."""
    end = LABEL_LENGTH // 2
    short = [name if len(name) <= LABEL_LENGTH else f"{name[: end - 1]}…{name[-end:]}" for name in names]
    return {"tickvals": list(range(len(names))), "ticktext": [_text(name) for name in short]}


def _source_line(x: ArrayLike, y: ArrayLike, source: int, result: Result) -> Trace:
    style = source_style(source)
    return _line(x, y, style["color"], result.names[source], dash=style["dash"])


def _line(
    x: ArrayLike, y: ArrayLike, colour: str, name: str, dash: str = "solid", shape: str = "linear", **more: Any
) -> Trace:
    line = {"color": colour, "dash": dash, "shape": shape, "width": 2}
    return {
        "type": "scatter",
        "mode": "lines",
        "x": _rounded(x),
        "y": _rounded(y),
        "name": _text(name),
        "line": line,
    } | more


def _band(
    x: ArrayLike, low: ArrayLike, high: ArrayLike, colour: str, shape: str = "linear", shown: bool = True
) -> list[Trace]:
    """Return two invisible lines and the shade between them, which is in the legend if ``shown``."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    hidden: dict[str, Any] = {"hoverinfo": "skip", "showlegend": False}
    edges = [_line(x, edge, colour, "", shape=shape, **hidden) for edge in (low, high)]
    for edge in edges:
        edge["line"] = {"width": 0, "shape": shape}
    edges[1] |= {
        "name": BAND_NAME,
        "showlegend": shown,
        "fill": "tonexty",
        "fillcolor": f"rgba({red},{green},{blue},0.18)",
    }
    return edges


def _markers(x: ArrayLike, y: ArrayLike, source: int, name: str, texts: list[str] | None = None) -> Trace:
    """Return markers of a source; ``texts``, one for each, are shown under the mouse instead of x and y."""
    style, shown = source_style(source), _rounded(x)
    few = len(shown) <= DENSE
    edge = {"color": "white", "width": 0.5 if few else 0}
    marker = {"color": style["color"], "symbol": style["symbol"], "size": 8 if few else 4, "line": edge}
    out = {"type": "scatter", "mode": "markers", "x": shown, "y": _rounded(y), "name": _text(name), "marker": marker}
    return out if texts is None else {**out, "text": texts, "hovertemplate": "%{text}<extra>%{fullData.name}</extra>"}


def _crosses(x: ArrayLike, y: ArrayLike) -> Trace:
    marker = {"symbol": "x", "size": 7, "color": GREY}
    return {
        "type": "scatter",
        "mode": "markers",
        "x": _rounded(x),
        "y": _rounded(y),
        "name": "failed",
        "hoverinfo": "name",
        "marker": marker,
    }


def _rounded(values: ArrayLike) -> list[Any]:
    return [plain(float(f"{value:.{DIGITS}g}")) for value in np.asarray(values, dtype=float)]


def _text(name: str) -> str:
    """Return a name without markup: Plotly takes some for formatting."""
    return escape(name, quote=False)
