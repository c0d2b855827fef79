"""Several runs in one matplotlib figure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..results.result import Result
from . import curves
from .axes import draw_line, draw_markers, legend_above, literal, panels
from .curves import Run
from .style import integral_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def compare(runs: Mapping[str, Run]) -> Figure:
    """Draw several runs: their estimates and bands against cost, and beside it what they have ended with.

    Parameters
    ----------
    runs : dictionary of results, integrators or paths of journals
        The runs by the names that they have in the figure; they may be in progress. Runs with several outputs are drawn
        for each output; give ``result["peak"]`` for one of them.

    Returns
    -------
    Figure
        Two panels for each output. Bands and bars are 95 % intervals; the first steps may be beyond the edges.
    """
    groups: dict[str, dict[str, Result]] = {}
    for name, run in runs.items():
        whole = curves.whole_result(run)
        for result in [whole] if whole.outputs is None else [whole[output] for output in whole.outputs]:
            groups.setdefault(result.output, {})[name] = result
    height = max(3.4, 1.4 + 0.35 * max(len(group) for group in groups.values()))
    figure, axes = panels(len(groups), 2, width=5.0, height=height, sharey=False)
    for (output, group), (left, right) in zip(groups.items(), axes, strict=True):
        _draw_group(left, right, group, literal(integral_name(output)), list(runs))
    return figure


def _draw_group(left: Axes, right: Axes, results: Mapping[str, Result], integral: str, runs: list[str]) -> None:
    """Draw several of all runs for one output, against cost and what they have ended with."""
    limits = []
    for number, (name, result) in enumerate(results.items()):
        style = runs.index(name)
        seen = curves.convergence(result)
        cost, low, high = seen.band()
        draw_line(left, cost, seen.mean[seen.known], style, literal(name), (low, high))
        if not math.isnan(result.mean):
            ends = np.array([result.interval(0.95)]).T
            right.plot(ends, [number, number], color=left.lines[-1].get_color(), linewidth=2)
            draw_markers(right, [result.mean], [number], style, 7)
            limits.append(seen.limits())
    left.set(xlabel="cost", ylabel=integral)
    if limits:
        left.set_ylim(min(bottom for bottom, _ in limits), max(top for _, top in limits))
    legend_above(left)
    right.set_yticks(range(len(results)), [literal(name) for name in results])
    right.set(ylim=(len(results) - 0.5, -0.5), xlabel=f"{integral}, and its 95 % interval")
