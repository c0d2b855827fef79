"""Matplotlib figures of several outputs, and of one beyond its mean; `amsbq.plots` is their public name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..validation import Array
from .axes import FAINT, draw_line, legend_above, literal, panels, ready_axes
from .curves import Run, as_result, whole_result
from .output_curves import SeveralOutputs, ends, output_curve, several_outputs
from .style import BAND_NAME, source_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def outputs(run: Run, ax: Axes | None = None, at: ArrayLike | None = None) -> Axes:
    """Draw the means of several outputs with their 95 % intervals.

    Numbers along something are a curve with its band: over ``at``, shape (M,), the heights or times of the outputs; by
    default over their names, if there are three or more and all of them are numbers. Other outputs are points with
    bars, each relative to its mean, or to the spread of its values if that is larger. Returns the Axes.
    """
    seen = several_outputs(whole_result(run), at)
    if ax is None and seen.at is None:
        _, [[ax]] = panels(width=6.4, height=1.0 + 0.5 * len(seen.names))
    ax = ready_axes(ax)
    if seen.at is None:
        _draw_bars(ax, seen)
    else:
        _draw_profile(ax, seen, seen.at)
    return ax


def _draw_profile(ax: Axes, seen: SeveralOutputs, at: Array) -> None:
    order = np.argsort(at)
    draw_line(ax, at[order], seen.mean[order], 0, "mean", (seen.low[order], seen.high[order]))
    ax.fill_between([], [], color=source_style(0)["color"], alpha=0.15, linewidth=0, label=BAND_NAME)
    ax.set(xlabel="output", ylabel="integral")
    legend_above(ax)


def _draw_bars(ax: Axes, seen: SeveralOutputs) -> None:
    rows, unit = np.arange(len(seen.names)), seen.scale / 100
    lengths = [np.maximum(seen.mean - seen.low, 0.0) / unit, np.maximum(seen.high - seen.mean, 0.0) / unit]
    ax.axvline(0, color=FAINT, linewidth=0.8, zorder=0)
    look: dict[str, Any] = {"fmt": "o", "color": source_style(0)["color"], "markersize": 6, "capsize": 4}
    ax.errorbar(np.where(np.isfinite(seen.mean), 0.0, np.nan), rows, xerr=lengths, linewidth=2, **look)
    ax.set_yticks(rows, [literal(f"{name}\n{text}") for name, text in zip(seen.names, seen.texts, strict=True)])
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlabel=f"95 % interval, in % of {seen.units}")


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
