"""One HTML file that shows a run: the answer, whether to believe it, pictures to look into, every evaluation.

Nothing is fetched when it is opened. Everything that comes from a run is text on the page, never markup.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from . import views
from .integrator import Integrator
from .journal import read_journal
from .plots import DENSE, LOOKS, RATES
from .result import REASONS, Result

DIGITS = 6  #: of numbers that are only drawn
SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
DASHES = ("solid", "dash", "dashdot", "dot", "longdash", "longdashdot")
GREY = "#808891"
WORDS = ("source", "status", "reason")  #: columns of the table that are no numbers

Figure = dict[str, Any]


def report(
    run: Result | Integrator | str | os.PathLike[str], path: str | os.PathLike[str], refresh: float | None = None
) -> Path:
    """Write the page of a run, and return where it is.

    Parameters
    ----------
    run : Result, Integrator, or the path of a journal
    path : path
        Of the HTML file; one that is there is replaced at once, so that nobody sees half of it.
    refresh : float, optional
        Seconds after which an open page loads itself again, as long as the run goes on.
    """
    result = views.as_result(run)
    header = read_journal(run)[0] if isinstance(run, str | os.PathLike) else None
    path = Path(path)
    text = page(result, path.stem, header, None if result.stopped else refresh)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
    return path


def page(result: Result, name: str, header: dict[str, Any] | None = None, refresh: float | None = None) -> str:
    """The text of the page."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise ImportError("a report needs plotly: pip install 'amsbq[report]'") from None
    figures = list(_figures(result))
    rows = result.rows()
    columns = ["evaluation", *(key for key in (rows[0] if rows else {}) if key != "id")]
    data = {
        "name": name,
        "refresh": refresh,
        "figures": [{"id": figure["id"], "panels": figure["panels"]} for figure in figures],
        "columns": columns,
        "words": [columns.index(word) for word in WORDS if word in columns],
        "rows": [[number, *(_plain(row[key]) for key in columns[1:])] for number, row in enumerate(rows, 1)],
    }
    parts = files("amsbq") / "page"
    mean, std, interval = _answer(result)
    spent = f"Spent {result.spent:.6g}" + (f" of {result.budget:.6g}" if math.isfinite(result.budget) else "")
    share = min(result.spent / result.budget, 1.0) if math.isfinite(result.budget) else 1.0
    return Template((parts / "page.html").read_text("utf-8")).substitute(
        title=escape(f"{result.names[0]}: {result.estimate.summary()}"),
        style=(parts / "page.css").read_text("utf-8"),
        script=(parts / "page.js").read_text("utf-8"),
        library=get_plotlyjs(),
        # inside of a script element nothing but "<" could end it
        data=json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"),
        primary=escape(result.names[0]),
        state="" if result.stopped else "— the run goes on",
        mean=mean,
        std=std,
        interval=interval,
        budget=escape(spent),
        percent=f"{100 * share:.1f}",
        why=escape(f"Stopped: {REASONS.get(result.stopped, result.stopped)}." if result.stopped else ""),
        findings="".join(_findings(result)),
        pictures="".join(_picture(figure) for figure in figures),
        settings="".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in _settings(result, header)),
    )


def _answer(result: Result) -> tuple[str, str, str]:
    """The mean, the standard deviation, and the interval in words."""
    estimate = result.estimate
    if math.isnan(estimate.mean):
        return "unknown", "unknown", "Nothing is known yet."
    if math.isnan(estimate.std):
        return f"{estimate.mean:.6g}", "?", "This method has no error bar."
    centre, _, rest = estimate.summary().partition(" ± ")
    std, _, between = rest.partition(", ")
    return centre, std, f"{escape(between)}."


def _findings(result: Result) -> Iterator[str]:
    if result.integrator is None:
        yield (
            '<li class="note"><b>No model</b>: the journal does not tell enough to make the model of this run again (a '
            "model or a distribution of its own), so there are only pictures of what was evaluated.</li>"
        )
        return
    for finding in result.diagnose():
        said = f"{finding.text} {finding.advice}".strip()
        yield f'<li class="{finding.level}"><b>{escape(finding.about)}</b>: {escape(said)}</li>'


def _settings(result: Result, header: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    it = result.integrator
    problem = (header or {}).get("problem", {})
    yield "distribution of the inputs", problem.get("measure") or (repr(it.measure) if it is not None else "unknown")
    yield "names of the inputs", ", ".join(result.inputs)
    for source, name in enumerate(result.names):
        if problem:
            given = problem["sources"][source]
            yield f"source {source}", f"{name}; cost {given['cost']}, noise variance {given['noise']}"
        elif it is not None:
            yield (
                f"source {source}",
                f"{name}; cost {it.sources[source].cost}, noise variance {it.sources[source].noise}",
            )
    if it is not None:
        yield "model", it.model_name
        yield "acquisition", it.acquisition
        yield "seed", str(it.seed)
    if header is not None and "file" in header:
        yield "problem file", str(header["file"])
    if header is not None:
        yield "run with", f"amsbq {header.get('version', 'of an unknown version')}"
    versions = ", ".join(f"{package} {version(package)}" for package in ("amsbq", "numpy", "scipy"))
    yield "page made with", f"{versions}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    yield "page made at", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _picture(figure: Figure) -> str:
    """The room for a figure, with a choice of inputs where there are several."""
    key, panels = figure["id"], figure["panels"]
    choice = ""
    if len(panels) > 1:
        options = "".join(f'<option value="{i}">{escape(panel["label"])}</option>' for i, panel in enumerate(panels))
        choice = f'<select id="input-{key}" aria-label="Input of: {escape(figure["title"])}">{options}</select>'
    return (
        f"<figure><h3><span>{escape(figure['title'])}</span>{choice}</h3>"
        f'<div class="plot" id="plot-{key}" role="img" aria-label="{escape(figure["alt"])}"></div>'
        f"<figcaption>{escape(figure['caption'])}</figcaption></figure>"
    )


def _figures(result: Result) -> Iterator[Figure]:
    if result.evaluations:
        yield _convergence(result)
        yield _sequence(result)
    if result.integrator is None or result.integrator.knowledge.belief is None:
        return
    inputs = range(len(result.inputs))
    grids = [views.grid(result, d) for d in inputs]
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
        [_rates_panel(result, d) for d in inputs],
    )
    ahead = views.forecast(result)
    yield _forecast(result, ahead)
    yield _residuals(result)
    if len(result.names) > 1:
        yield _correlation(result)
    yield _figure(
        "costs",
        "What evaluations cost",
        "As expected, the other inputs at their medians (lines), and as paid (markers).",
        [_costs_panel(result, d, grids[d]) for d in inputs],
    )


def _figure(key: str, title: str, caption: str, panels: list[dict[str, Any]]) -> Figure:
    return {"id": key, "title": title, "caption": caption, "alt": f"{title}. {caption}", "panels": panels}


def _panel(label: str, traces: list[dict[str, Any]], **layout: Any) -> dict[str, Any]:
    return {"label": label, "traces": traces, "layout": layout}


def _convergence(result: Result) -> Figure:
    seen = views.convergence(result)
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


def _sequence(result: Result) -> Figure:
    seen, (counts, paid) = views.convergence(result), views.shares(result)
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
    ticks = {"tickvals": list(range(len(result.names))), "ticktext": [_cut(name) for name in result.names]}
    yaxis = {**ticks, "range": [len(result.names) - 0.5, -0.5], "zeroline": False}
    panel = _panel("", traces, xaxis={"title": {"text": "evaluation"}}, yaxis=yaxis, showlegend=False)
    return _figure("sequence", "Which source was asked when", "; ".join(parts) + ".", [panel])


def _source_panel(result: Result, d: int, t: Any) -> dict[str, Any]:
    traces, alone = [], len(result.inputs) == 1
    density = views.density(result, d, t)
    if density is not None and np.isfinite(density).all():
        shade = _line(t, density, GREY, "distribution", fill="tozeroy", yaxis="y2", hoverinfo="skip", showlegend=False)
        traces.append({**shade, "line": {"width": 0}, "fillcolor": "rgba(128,136,145,0.18)"})
    for source, curve in enumerate(views.effects(result, d, t)):
        colour = LOOKS[source % len(LOOKS)]["color"]
        traces += _band(t, curve.mean - 2 * curve.std, curve.mean + 2 * curve.std, colour)
        traces.append(_line(t, curve.mean, colour, result.names[source], dash=DASHES[source % len(DASHES)]))
        of = [e for e in result.evaluations if alone and e.source == source and e.status == "ok"]
        if of:
            dots = _dots([e.x[0] for e in of], [e.value for e in of], source, result.names[source])
            traces.append({**dots, "showlegend": False})
    most = 5 * float(density.max()) if density is not None else 1.0
    below = {"overlaying": "y", "visible": False, "range": [0, most], "fixedrange": True}
    titles = _titles(result.inputs[d], "output" if alone else "average output")
    return _panel(result.inputs[d], traces, **titles, yaxis2=below)


def _rates_panel(result: Result, d: int) -> dict[str, Any]:
    seen = views.rates(result, d)
    traces = []
    for source, values in enumerate(seen.rates):
        colour, dash = LOOKS[source % len(LOOKS)]["color"], DASHES[source % len(DASHES)]
        traces.append(_line(seen.t, values, colour, result.names[source], dash=dash))
    if seen.next is not None:
        star = _dots([seen.next.x[d]], [seen.next.rate], seen.next.source, f"next: {result.names[seen.next.source]}")
        marker = {**star["marker"], "symbol": "star", "size": 15}
        traces.append({**star, "marker": marker, "cliponaxis": False})
    titles = _titles(result.inputs[d], "per cost")
    titles["yaxis"]["rangemode"] = "tozero"
    return _panel(result.inputs[d], traces, **titles)


def _forecast(result: Result, ahead: Any) -> Figure:
    seen = views.convergence(result)
    known = np.isfinite(seen.std) & (seen.std > 0) & (seen.cost > 0)
    traces = [_line(seen.cost[known], seen.std[known], GREY, "so far")]
    said = "How the standard deviation of the integral has shrunk."
    rows = [row for row in ahead or () if row[1] > 0]
    if len(rows) > 1:
        costs, stds = np.array(rows).T
        traces.append(_line(costs, stds, LOOKS[1]["color"], "to be expected", dash="dash"))
        said += f" For {rows[-1][0]:.4g} in total, {rows[-1][1]:.2g} is to be expected."
    titles = _titles("cost", "standard deviation")
    titles["yaxis"] |= {"type": "log", "dtick": 1}
    return _figure("forecast", "The error bar, and what more money buys", said, [_panel("", traces, **titles)])


def _residuals(result: Result) -> Figure:
    left, rng, traces = views.residuals(result), np.random.default_rng(0), []
    for source, name in enumerate(result.names):
        z = left.of(source)
        traces.append(_dots(source + rng.uniform(-0.25, 0.25, size=len(z)), z, source, name, [f"{v:.2f}" for v in z]))
    names = {"tickvals": list(range(len(result.names))), "ticktext": [_cut(name) for name in result.names]}
    largest = max(4.0, 1.1 * float(np.abs(left.z).max(initial=0.0)))
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
        xaxis={**names, "range": [-0.6, len(result.names) - 0.4], "zeroline": False},
        yaxis={"title": {"text": "residual / std"}, "range": [-largest, largest]},
        shapes=[{**band, "fillcolor": "rgba(128,136,145,0.2)"}],
        showlegend=False,
    )
    outside = float(np.mean(np.abs(left.z) > 2)) if len(left.z) else 0.0
    said = (
        "Each observation against what all the others say of it, in standard deviations: "
        f"{100 * outside:.0f} % are outside of ± 2 (about 5 % should be)."
    )
    return _figure("residuals", "Does the model fit? Leaving one out", said, [panel])


def _correlation(result: Result) -> Figure:
    R = views.correlation(result)
    names = [_cut(name) for name in result.names[: len(R)]]
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
    ticks = {"tickvals": list(range(len(R))), "ticktext": names, "showgrid": False, "zeroline": False}
    panel = _panel("", [heat], xaxis=ticks, yaxis={**ticks, "autorange": "reversed"})
    pairs = [f"{name} {R[0, i]:.2f}" for i, name in enumerate(result.names[: len(R)]) if i]
    said = f"Between sources at the same input, as learned; with {result.names[0]}: {', '.join(pairs) or 'none'}."
    return _figure("correlation", "How the sources are related", said, [panel])


def _costs_panel(result: Result, d: int, t: Any) -> dict[str, Any]:
    expected, traces = views.costs(result, d, t), []
    for source, values in enumerate(expected):
        colour, dash = LOOKS[source % len(LOOKS)]["color"], DASHES[source % len(DASHES)]
        traces.append(_line(t, values, colour, result.names[source], dash=dash))
        of = [e for e in result.evaluations if e.source == source and e.cost > 0]
        dots = _dots([e.x[d] for e in of], [e.cost for e in of], source, result.names[source])
        traces.append({**dots, "showlegend": False})
    titles = _titles(result.inputs[d], "cost of an evaluation")
    if expected.max() > 5 * expected.min() > 0:
        titles["yaxis"] |= {"type": "log", "dtick": 1}
    else:
        titles["yaxis"]["rangemode"] = "tozero"
    return _panel(result.inputs[d], traces, **titles)


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
    colour, symbol = LOOKS[source % len(LOOKS)]["color"], SYMBOLS[source % len(SYMBOLS)]
    few = len(x) <= DENSE
    edge = {"color": "white", "width": 0.5 if few else 0}
    marker = {"color": colour, "symbol": symbol, "size": 8 if few else 4, "line": edge}
    out = {"type": "scatter", "mode": "markers", "x": _short(x), "y": _short(y), "name": _text(name), "marker": marker}
    return out if texts is None else {**out, "text": texts, "hovertemplate": "%{text}<extra>%{fullData.name}</extra>"}


def _crosses(x: Any, y: Any) -> dict[str, Any]:
    marker = {"symbol": "x", "size": 7, "color": GREY}
    return {"type": "scatter", "mode": "markers", "x": _short(x), "y": _short(y), "name": "failed", "marker": marker}


def _short(values: Any) -> list[Any]:
    return [_plain(float(f"{value:.{DIGITS}g}")) for value in np.asarray(values, dtype=float)]


def _plain(value: Any) -> Any:
    """Numbers that are none become null, as in a journal."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _text(name: str) -> str:
    """Names as text: the library for plots takes some markup."""
    return escape(name, quote=False)


def _cut(name: str) -> str:
    return _text(name if len(name) <= 18 else name[:16] + "…")
