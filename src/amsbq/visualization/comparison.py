"""Several runs in one matplotlib figure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from . import curves
from .axes import draw_line, draw_markers, legend_above, literal, panels
from .curves import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def compare(runs: Mapping[str, Run]) -> Figure:
    """Draw several runs: their estimates and bands against cost, and beside it what they have ended with.

    Parameters
    ----------
    runs : dictionary of results, integrators or paths of journals
        The runs by the names that they have in the figure; they may be in progress.

    Returns
    -------
    Figure
        Two panels. Bands and bars are 95 % intervals; the first steps may be beyond the edges.
    """
    results = {name: curves.as_result(run) for name, run in runs.items()}
    figure, [[left, right]] = panels(1, 2, width=5.0, height=max(3.4, 1.4 + 0.35 * len(results)), sharey=False)
    limits = []
    for number, (name, result) in enumerate(results.items()):
        seen = curves.convergence(result)
        cost, low, high = seen.band()
        draw_line(left, cost, seen.mean[seen.known], number, literal(name), (low, high))
        if not math.isnan(result.mean):
            ends = np.array([result.interval(0.95)]).T
            right.plot(ends, [number, number], color=left.lines[-1].get_color(), linewidth=2)
            draw_markers(right, [result.mean], [number], number, 7)
            limits.append(seen.limits())
    left.set(xlabel="cost", ylabel="integral")
    if limits:
        left.set_ylim(min(bottom for bottom, _ in limits), max(top for _, top in limits))
    legend_above(left)
    right.set_yticks(range(len(results)), [literal(name) for name in results])
    right.set(ylim=(len(results) - 0.5, -0.5), xlabel="integral, and its 95 % interval")
    return figure
