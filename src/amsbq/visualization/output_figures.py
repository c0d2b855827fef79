"""Figures of the report for Plotly: a profile of outputs, the distribution of one, and the indices of the inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..quantities.sensitivity import Sensitivity
from ..results.quantities import quickly_known
from ..results.result import Result
from ..validation import Array
from .output_curves import ends, indices, output_curve, several_outputs
from .plotly_figures import Chart, Trace, _band, _line, _rounded, _single, _text, _titles
from .style import GREY, source_style


def output_charts(result: Result) -> Iterator[Chart]:
    """Yield the distribution of the output, and the indices of independent inputs, if they are found quickly."""
    if not quickly_known(result.integrator):
        return
    yield _distribution(result)
    if (found := indices(result)) is not None and len(found.names) > 1:
        yield _indices(found)


def profile_charts(result: Result) -> Iterator[Chart]:
    """Yield the means of all outputs as a curve with its band, if there are several and they are a profile."""
    seen = several_outputs(result) if result.outputs is not None else None
    if seen is None or seen.at is None or not result.known:
        return
    order, colour = np.argsort(seen.at), source_style(0)["color"]
    t, mean, low, high = (each[order] for each in (seen.at, seen.mean, seen.low, seen.high))
    traces = [*_band(t, low, high, colour), _line(t, mean, colour, "mean")]
    caption = f"The means of {len(t)} outputs, by their names, with 95 % intervals."
    yield _single("outputs", "The outputs", caption, traces, _titles("output", "integral"))


def _distribution(result: Result) -> Chart:
    curve, colour = output_curve(result), source_style(0)["color"]
    means, below, above = ends(curve.quantiles)
    traces = _band(curve.t, curve.low, curve.high, GREY)
    traces.append(_line(curve.t, curve.density, colour, "density"))
    quantiles = _line(means, np.zeros(len(means)), colour, "quantiles", error_x=_bars(below, above))
    traces.append({**quantiles, "mode": "markers", "text": [f"{100 * p:.0f} % quantile" for p in curve.quantiles]})
    caption = "The distribution of the output under that of the inputs, with its 5, 50 and 95 % quantiles."
    return _single("output", "How the output is distributed", caption, traces, _titles("output", "density"))


def _indices(found: Sensitivity) -> Chart:
    traces: list[Trace] = []
    for name, some, source in (("by itself", found.first, 0), ("with interactions", found.total, 1)):
        low, high = some.interval()
        bars = {"x": _rounded(some.mean), "error_x": _bars(some.mean - low, high - some.mean)}
        look = {"marker": {"color": source_style(source)["color"]}, "orientation": "h"}
        traces.append({"type": "bar", "name": name, "y": [_text(one) for one in found.names], **bars, **look})
    layout = {**_titles("share of the variance", ""), "barmode": "group"}
    layout["xaxis"]["range"] = [0, 1]
    layout["yaxis"] = {"autorange": "reversed", "type": "category"}
    caption = "The share of the variance of the output that each input explains: Sobol' indices with 95 % intervals."
    return _single("sensitivity", "Which inputs matter", caption, traces, layout)


def _bars(below: Array, above: Array) -> dict[str, Any]:
    """Return error bars of given lengths, shape (n,) each."""
    lengths = {"array": _rounded(np.maximum(above, 0.0)), "arrayminus": _rounded(np.maximum(below, 0.0))}
    return {"type": "data", "symmetric": False, "color": GREY, **lengths}
