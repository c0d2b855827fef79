"""Averages over the percentiles of the measure: the estimator that the paper compares with in Section 4.

The measure is divided into k cells of the same probability, and the primary source is evaluated once in each of them.
In D dimensions there are k cells for each input, and n = k^D evaluations.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from ..design.costs import ConstantCost, affordable
from ..design.sources import SourcesLike
from ..execution.executors import ExecutorLike
from ..inference.estimate import Estimate
from ..measures.adapters import MeasureLike
from ..results.result import Result
from ..validation import Array
from .sampling_run import SamplingRun

Nodes = Literal["middle", "right"]  #: where in its cell a node is


def percentile(
    sources: SourcesLike,
    measure: MeasureLike,
    *,
    budget: float,
    nodes: Nodes = "middle",
    executor: ExecutorLike | None = None,
    workers: int = 1,
) -> Result:
    """Estimate the integral by the average of the primary source over percentiles of the measure.

    There are as many cells of the same probability as the budget pays for: in several dimensions, a grid with the same
    number for each input. The estimate has no error bar, and nothing in it is random.

    Parameters
    ----------
    sources : function, `Source`, or list of them
        As in `amsbq.integrate`; only the first one is evaluated, and its cost must not be "measured".
    measure : measure, or anything that `amsbq.as_measure` takes
        The distribution of the inputs.
    budget : float
        In units of cost; it decides how many cells there are.
    nodes : "middle" or "right"
        Where in its cell the source is evaluated. "right" is the paper's choice, a right Riemann sum if the measure is
        uniform; it needs a measure with an upper end. "middle" is more accurate.
    executor : concurrent.futures.Executor or distributed.Client, optional
        Where to evaluate, as in `amsbq.integrate`.
    workers : int
        Number of evaluations at the same time.

    Returns
    -------
    Result
        The integral; its standard deviation is NaN.

    Examples
    --------
    >>> percentile(lambda x: x[0] ** 2, (0, 1), budget=4).mean
    0.328125
    """
    if nodes not in get_args(Nodes):
        raise ValueError(f"nodes must be 'middle' or 'right', got {nodes!r}")
    run = SamplingRun(sources, measure, budget)
    if nodes == "right" and not np.isfinite(run.measure.bounds[:, 1]).all():
        raise ValueError(f"{run.measure!r} has no right end: say nodes='middle'")
    if run.sources[0].measured:
        raise ValueError("the percentiles depend on how many the budget pays for: the cost must be known, not measured")
    grid = _finest_grid(run, 1.0 if nodes == "right" else 0.5)
    stopped = run.evaluate((((0,), x) for x in grid), executor, workers)
    values = run.table()[:, 0]
    estimates: list[Estimate | None] = [None] * len(values)  # the nodes are an estimate only all together
    if np.isfinite(values).any():
        estimates[-1] = Estimate([np.nanmean(values)])
    return run.result(stopped, estimates)


def _finest_grid(run: SamplingRun, shift: float) -> Array:
    """Return the nodes of the finest grid that the budget pays for, shape (k^D, D); ``shift`` is where in a cell."""
    cost, D = run.source_costs.costs[0], run.measure.dim

    def grid(k: int) -> Array:
        axis = (np.arange(k) + shift) / k
        return run.measure.from_cube(np.stack(np.meshgrid(*[axis] * D, indexing="ij"), axis=-1).reshape(-1, D))

    k = 1
    if isinstance(cost, ConstantCost):
        k = max(int((run.budget / cost.cost * (1 + 1e-12)) ** (1 / D) * (1 + 1e-12)), 1)
    while affordable(cost.expected(grid(k + 1)).sum(), run.budget):
        k += 1
    return grid(k)
