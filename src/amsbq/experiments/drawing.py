"""What the figures of the experiments have in common: one look for each method and source, readable in grey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..validation import Array
from ..visualization.plots import panels as panels
from ..visualization.style import LOOKS as OF_SOURCES
from .study import PERCENTILES, SECONDARY, VANILLA, errors_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

#: colours that differ in brightness too (after Okabe and Ito), each with a line of its own
LOOKS: dict[str, dict[str, Any]] = {
    "default, MI": {"color": "#D55E00", "linestyle": "-", "linewidth": 2.2},
    "default, IVR": {"color": "#E69F00", "linestyle": "--", "linewidth": 2.2},
    "AMS-BQ, MI": {"color": "#0072B2", "linestyle": "-"},
    "AMS-BQ, IVR": {"color": "#56B4E9", "linestyle": "--"},
    VANILLA: {"color": "#000000", "linestyle": "-."},
    PERCENTILES: {"color": "#777777", "linestyle": ":", "linewidth": 2.0},
    SECONDARY: {"color": "#AAAAAA", "linestyle": (0, (6, 2))},
}


SOURCES = OF_SOURCES


def legend_below(figure: Figure, *axes: Axes, columns: int = 4) -> None:
    """One legend for all panels, where no data are."""
    entries = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns, frameon=False)


def medians(ax: Axes, runs: DataFrame, costs: Array, methods: list[str]) -> None:
    """The median over seeds of the relative error against cost, with quartiles where there are enough seeds."""
    for method in methods:
        of_method = runs[runs["method"] == method]
        if not len(of_method):
            continue
        errors = errors_at(of_method, costs)
        known = np.isfinite(errors).all(axis=0) & (costs <= of_method["spent"].max() + 1e-9)
        low, middle, high = np.quantile(errors[:, known], [0.25, 0.5, 0.75], axis=0)
        if len(errors) > 2:
            ax.fill_between(costs[known], low, high, color=LOOKS[method]["color"], alpha=0.12, linewidth=0)
        ax.plot(costs[known], middle, label=method, **LOOKS[method])
    ax.set_yscale("log")
    ax.grid(True, which="major", color="0.9", linewidth=0.6)


def signed(ax: Axes, one_run: DataFrame, method: str) -> None:
    """The relative error of one run with two standard deviations, against cost."""
    known = one_run[np.isfinite(one_run["mean"])]
    error = known["mean"] / known["truth"] - 1
    band = 2 * (known["std"] / known["truth"].abs()).fillna(0.0)
    ax.fill_between(
        known["spent"], error - band, error + band, step="post", color=LOOKS[method]["color"], alpha=0.15, linewidth=0
    )
    ax.step(known["spent"], error, where="post", label=method, **LOOKS[method])


def sources_with_bands(ax: Axes, state: DataFrame, evaluations: DataFrame | None = None) -> None:
    """Posterior mean and two standard deviations of each source of one input, and where it was evaluated."""
    for source, group in state.groupby("source"):
        look = SOURCES[int(source) - 1]
        line: dict[str, Any] = {key: look[key] for key in ("color", "linestyle")}
        low, high = group["mean"] - 2 * group["std"], group["mean"] + 2 * group["std"]
        ax.fill_between(group["x"], low, high, color=look["color"], alpha=0.15, linewidth=0)
        ax.plot(group["x"], group["mean"], label=f"$f_{source}$: mean ± 2 std", **line)
        if evaluations is not None:
            of = evaluations[evaluations["source"] == source]
            ax.plot(of["x0"], of["value"], look["marker"], color=look["color"], markersize=4.5, markeredgecolor="white")
