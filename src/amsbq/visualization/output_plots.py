"""Matplotlib figures of the output beyond its mean; `amsbq.plots` is their public name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .axes import FAINT, legend_above, literal, ready_axes
from .curves import Run, as_result
from .output_curves import ends, output_curve
from .style import BAND_NAME, source_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def distribution(run: Run, ax: Axes | None = None) -> Axes:
    """Draw the density of the primary source's output with its band, and below it the 5, 50 and 95 % quantiles.

    Returns the Axes.
    """
    result, ax = as_result(run), ready_axes(ax)
    curve, colour = output_curve(result), source_style(0)["color"]
    ax.fill_between(curve.t, curve.low, curve.high, color=FAINT, alpha=0.5, linewidth=0, label=BAND_NAME)
    ax.plot(curve.t, curve.density, color=colour, label="density")
    means, below, above = ends(curve.quantiles)
    at = np.full(len(means), -0.06 * curve.density.max())
    names = ", ".join(f"{100 * p:.0f}" for p in curve.quantiles)
    ax.errorbar(
        means, at, xerr=[below, above], fmt="o", color="0.2", markersize=4, capsize=3, label=f"{names} % quantiles"
    )
    ax.set(xlabel=literal(f"output of {result.names[0]}"), ylabel="density")
    legend_above(ax)
    return ax


def sensitivity(run: Run, ax: Axes | None = None) -> Axes:
    """Draw the share of the variance that each input explains, by itself and with all interactions, with intervals.

    Returns the Axes.
    """
    result, ax = as_result(run), ready_axes(ax)
    found = result.sensitivity()
    rows = np.arange(len(found.names))
    for offset, indices, name, source in (
        (-0.2, found.first, "by itself", 0),
        (0.2, found.total, "with interactions", 1),
    ):
        low, high = indices.interval()
        bars = [np.maximum(indices.mean - low, 0.0), np.maximum(high - indices.mean, 0.0)]
        ax.barh(rows + offset, indices.mean, height=0.36, color=source_style(source)["color"], alpha=0.8, label=name)
        ax.errorbar(indices.mean, rows + offset, xerr=bars, fmt="none", color="0.2", capsize=2)
    ax.set_yticks(rows, [literal(name) for name in found.names])
    ax.invert_yaxis()
    ax.set(xlabel="share of the variance of the output", xlim=(0, 1))
    legend_above(ax)
    return ax
