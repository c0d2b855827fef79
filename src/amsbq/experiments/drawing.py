"""Shared parts of the experiments' figures: one style for each method and source, readable in grey.

The experiments number sources from 1 in their tables and figures, as the paper does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.validation import Array
from ..design.acquisition import AcquisitionName
from ..visualization.axes import panels as panels
from ..visualization.style import source_style
from .study import PERCENTILES, SECONDARY, VANILLA, errors_at_costs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

#: line styles by method: colours that differ in brightness too (after Okabe and Ito), each with its own line
METHOD_STYLES: dict[str, dict[str, Any]] = {
    "default, MI": {"color": "#D55E00", "linestyle": "-", "linewidth": 2.2},
    "default, IVR": {"color": "#E69F00", "linestyle": "--", "linewidth": 2.2},
    "AMS-BQ, MI": {"color": "#0072B2", "linestyle": "-"},
    "AMS-BQ, IVR": {"color": "#56B4E9", "linestyle": "--"},
    VANILLA: {"color": "#000000", "linestyle": "-."},
    PERCENTILES: {"color": "#777777", "linestyle": ":", "linewidth": 2.0},
    SECONDARY: {"color": "#AAAAAA", "linestyle": (0, (6, 2))},
}
#: names of the utilities in figures and claims
UTILITY_NAMES: dict[AcquisitionName, str] = {"mi": "MI", "ivr": "IVR", "ip": "IP"}


def line_style(source: int) -> dict[str, Any]:
    """Return the colour and line style of a source, numbered from 1, as arguments of ``Axes.plot``."""
    style = source_style(source - 1)
    return {"color": style["color"], "linestyle": style["linestyle"]}


def marker_style(source: int) -> dict[str, Any]:
    """Return the colour and marker of a source, numbered from 1, as arguments of ``Axes.plot``: points, no line."""
    style = source_style(source - 1)
    return {"color": style["color"], "marker": style["marker"], "linestyle": ""}


def legend_below(figure: Figure, *axes: Axes, columns: int = 4) -> None:
    """Add one legend for all panels below them, where it hides no data."""
    entries = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns, frameon=False)


def draw_median_errors(ax: Axes, runs: DataFrame, costs: Array, methods: list[str]) -> None:
    """Draw the median over seeds of the relative error against cost, with quartiles if there are enough seeds."""
    for method in methods:
        of_method = runs[runs["method"] == method]
        if not len(of_method):
            continue
        style, errors = METHOD_STYLES[method], errors_at_costs(of_method, costs)
        known = np.isfinite(errors).all(axis=0) & (costs <= of_method["spent"].max() + 1e-9)
        low, middle, high = np.quantile(errors[:, known], [0.25, 0.5, 0.75], axis=0)
        if len(errors) > 2:
            ax.fill_between(costs[known], low, high, color=style["color"], alpha=0.12, linewidth=0)
        ax.plot(costs[known], middle, label=method, **style)
    ax.set_yscale("log")
    ax.grid(True, which="major", color="0.9", linewidth=0.6)


def draw_signed_error(ax: Axes, one_run: DataFrame, method: str) -> None:
    """Draw the signed relative error of one run, with two standard deviations, against cost."""
    known, style = one_run[np.isfinite(one_run["mean"])], METHOD_STYLES[method]
    error = known["mean"] / known["truth"] - 1
    band = 2 * (known["std"] / known["truth"].abs()).fillna(0.0)
    ax.fill_between(
        known["spent"], error - band, error + band, step="post", color=style["color"], alpha=0.15, linewidth=0
    )
    ax.step(known["spent"], error, where="post", label=method, **style)


def draw_posterior(ax: Axes, posterior: DataFrame, evaluations: DataFrame) -> None:
    """Draw the posterior mean of each source of one input with two standard deviations, and the evaluations.

    ``posterior`` has the columns of `study.posterior_rows`; of ``evaluations``, source, x and value are drawn.
    """
    for source, group in posterior.groupby("source"):
        line = line_style(source)
        low, high = group["mean"] - 2 * group["std"], group["mean"] + 2 * group["std"]
        ax.fill_between(group["x"], low, high, color=line["color"], alpha=0.15, linewidth=0)
        ax.plot(group["x"], group["mean"], label=f"$f_{source}$: mean ± 2 std", **line)
        made = evaluations[evaluations["source"] == source]
        ax.plot(made["x"], made["value"], markersize=4.5, markeredgecolor="white", **marker_style(source))
