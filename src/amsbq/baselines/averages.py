"""Averages of one source over points of the measure: independent draws, Sobol points, or percentiles.

Notation: y_i = f(x_i) are the values at n points x_i, and ȳ is their average, the estimate of ∫ f dπ.

- Monte Carlo draws x_i from π independently. Then ȳ has standard error s / √n, where s is the sample standard
  deviation, and Student's t distribution with n - 1 degrees of freedom describes its error.
- Quasi Monte Carlo takes x_i from a Sobol sequence, mapped through the quantiles of π, which covers it more evenly.
  Such points are not independent, so R independently scrambled sequences have averages ȳ_1, ..., ȳ_R, whose spread
  gives the error bar, and Student's t distribution has R - 1 degrees of freedom.
- Percentiles divide π into k cells of equal probability along each input, with one evaluation in each of the n = k^D
  cells; the paper compares with them in Section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from ..common.validation import Array, RNGLike, count, source_number
from ..design.costs import ConstantCost, affordable
from ..design.sources import SourcesLike
from ..execution.executors import ExecutorLike
from ..measures.adapters import MeasureLike
from ..posterior.estimate import Estimate
from ..results.result import Result
from .sampling_run import SamplingRun, independent_draws, sobol_points


@dataclass(frozen=True)
class MonteCarloSettings:
    """Constants of the methods in this module."""

    replicates: int = 8  # scrambled sequences: t with 7 degrees of freedom is 1.2 times as wide as a Gaussian at 95 %


SETTINGS = MonteCarloSettings()

Nodes = Literal["middle", "right"]  #: position of a node in its cell


def monte_carlo(
    sources: SourcesLike,
    measure: MeasureLike,
    *,
    budget: float,
    seed: RNGLike = None,
    rng: RNGLike = None,
    executor: ExecutorLike | None = None,
    workers: int = 1,
) -> Result:
    """Estimate the integral by the average of the primary source over independent draws of its inputs.

    The error bar is the standard error of the average; intervals use Student's t distribution.

    Parameters
    ----------
    sources : function, `Source`, or list of them
        As in `amsbq.integrate`, the primary one first; single-source methods evaluate only that one.
    measure : measure, or anything that `amsbq.as_measure` accepts
        The distribution of the inputs.
    budget : float
        In units of cost; it determines the number of evaluations.
    seed : int, optional
        Seed of the random numbers, by default 0.
    rng : int or numpy.random.Generator, optional
        Alternative to ``seed``: a seed, or a generator from which one is drawn.
    executor : concurrent.futures.Executor or distributed.Client, optional
        Where to evaluate, as in `amsbq.integrate`.
    workers : int
        Number of concurrent evaluations.

    Returns
    -------
    Result
        The integral of the primary source; each evaluation records the running mean and standard deviation. Failed
        evaluations are charged, but do not enter the estimate.

    Examples
    --------
    >>> from scipy import stats
    >>> print(monte_carlo(lambda x: x[0] ** 2, stats.norm(), budget=1000))
    integral: 0.956 ± 0.046 (std), 95 % between 0.866 and 1.046
    stopped: the remaining budget does not cover another useful evaluation; spent 1000 of 1000
    <BLANKLINE>
      source      made  failed        cost
      source 0    1000       0        1000
    """
    run = SamplingRun(sources, measure, budget, seed, rng, executor, workers)
    run.evaluate(((0,), x) for x in independent_draws(run.measure, run.seed))
    return run.result(running_averages(run.table()[:, 0]))


def quasi_monte_carlo(
    sources: SourcesLike,
    measure: MeasureLike,
    *,
    budget: float,
    seed: RNGLike = None,
    rng: RNGLike = None,
    replicates: int = SETTINGS.replicates,
    executor: ExecutorLike | None = None,
    workers: int = 1,
) -> Result:
    """Estimate the integral by the average of the primary source over scrambled Sobol points.

    The points are mapped through the quantiles of the measure. The error bar comes from the differences between
    independently scrambled sequences, which share the budget. The estimate changes after each round of one point from
    every sequence; before the first round is complete it has no error bar.

    Parameters
    ----------
    sources, measure, budget, seed, rng, executor, workers
        As in `monte_carlo`.
    replicates : int
        Number of scrambled sequences, at least 2. Fewer and longer ones have smaller errors, and a less certain error
        bar.

    References
    ----------
    Owen, A. B. (1995). Randomly permuted (t, m, s)-nets and (t, s)-sequences. In: Monte Carlo and Quasi-Monte Carlo
    Methods in Scientific Computing.

    Examples
    --------
    >>> from scipy import stats
    >>> result = quasi_monte_carlo(lambda x: x[0] ** 2, stats.norm(), budget=1000)
    >>> low, high = result.interval(0.95)
    >>> low < 1 < high
    True
    """
    run = SamplingRun(sources, measure, budget, seed, rng, executor, workers)
    return _average_over_sobol_points(run, 0, replicates)


def secondary_only(
    sources: SourcesLike,
    measure: MeasureLike,
    *,
    budget: float,
    source: int = 1,
    seed: RNGLike = None,
    rng: RNGLike = None,
    executor: ExecutorLike | None = None,
    workers: int = 1,
) -> Result:
    """Estimate the integral by that of a secondary source, with an unknown bias.

    The secondary source is averaged over scrambled Sobol points. The estimate has no error bar (NaN), because the
    precision of the secondary source's integral says nothing about its bias.

    Parameters
    ----------
    sources, measure, budget, seed, rng, executor, workers
        As in `monte_carlo`.
    source : int
        Number of the source to evaluate; 0 is the primary one.
    """
    run = SamplingRun(sources, measure, budget, seed, rng, executor, workers)
    found = _average_over_sobol_points(run, source_number(source, len(run.sources)), SETTINGS.replicates)
    evaluations = [replace(e, std=math.nan) for e in found.evaluations]
    return replace(found, estimate=Estimate([found.mean]), evaluations=evaluations)


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

    There are as many cells of equal probability as the budget covers: in several dimensions, a grid with the same
    number for each input. The method is deterministic, and its estimate has no error bar (NaN).

    Parameters
    ----------
    sources, measure, budget, executor, workers
        As in `monte_carlo`; the cost of the primary source must not be "measured".
    nodes : "middle" or "right"
        Position of the node in its cell. "right" is the paper's choice, a right Riemann sum if the measure is uniform;
        it needs a measure with an upper end. "middle" is more accurate.

    Examples
    --------
    >>> percentile(lambda x: x[0] ** 2, (0, 1), budget=4).mean
    0.328125
    """
    if nodes not in get_args(Nodes):
        raise ValueError(f"nodes must be 'middle' or 'right', got {nodes!r}")
    run = SamplingRun(sources, measure, budget, None, None, executor, workers)
    if nodes == "right" and not np.isfinite(run.measure.bounds[:, 1]).all():
        raise ValueError(f"{run.measure!r} has no right end: give nodes='middle'")
    if run.sources[0].measured:
        raise ValueError("the percentiles depend on how many the budget covers: the cost must be known, not measured")
    run.evaluate(((0,), x) for x in _finest_grid(run, 1.0 if nodes == "right" else 0.5))
    values = run.table()[:, 0]
    return run.result([*[None] * (len(values) - 1), _plain_average(values)])  # only all nodes together are an estimate


def running_averages(values: Array) -> list[Estimate | None]:
    """Return the average after each of n independent values, with Student's t distribution; None before the first.

    NaN stands for failed evaluations, which are left out.
    """
    ok = np.isfinite(values)
    k = np.cumsum(ok)
    centre = np.median(values[ok]) if ok.any() else 0.0  # avoids cancellation in squares of large values
    y = np.where(ok, values - centre, 0.0)
    means = np.cumsum(y) / np.maximum(k, 1)
    squares = np.maximum(np.cumsum(y * y) - k * means**2, 0.0)
    scales = np.sqrt(squares / np.maximum(k - 1, 1) / np.maximum(k, 1))
    return [
        None if j == 0 else Estimate([mean]) if j == 1 else sum_of_averages(mean, np.array([scale**2]), j - 1)
        for mean, scale, j in zip(means + centre, scales, k.tolist(), strict=True)
    ]


def average(values: Array) -> Estimate | None:
    """Return the average of n independent values, with Student's t distribution; None if there are none."""
    return next(reversed(running_averages(values)), None)


def sum_of_averages(mean: float, variances: Array, dof: ArrayLike) -> Estimate:
    """Return a sum of k independent averages, with Student's t distribution.

    The degrees of freedom are those of Welch and Satterthwaite, from the estimated variances (k,) of the averages and
    their degrees of freedom (k,): between the smallest of these and their sum.
    """
    total = variances.sum()
    if total == 0:
        return Estimate([mean], [0.0])
    return Estimate([mean], [np.sqrt(total)], dof=float(1 / ((variances / total) ** 2 / dof).sum()))


def _average_over_sobol_points(run: SamplingRun, source: int, replicates: int) -> Result:
    """Average a source over R scrambled Sobol sequences, in rounds of one point from each of them."""
    R = count(replicates, "replicates")
    if R < 2:
        raise ValueError(f"replicates must be at least 2, or there is no error bar, got {R}")
    sequences = [sobol_points(run.measure, [run.seed, r]) for r in range(R)]
    run.evaluate(((source,), x) for one_round in zip(*sequences, strict=True) for x in one_round)
    values = run.table()[:, source]
    rounds = values[: len(values) // R * R].reshape(-1, R)
    made = np.cumsum(np.isfinite(rounds), axis=0)
    averages = np.where(made > 0, np.nancumsum(rounds, axis=0) / np.maximum(made, 1), np.nan)
    estimates: list[Estimate | None] = [None] * len(values)
    estimates[R - 1 : len(rounds) * R : R] = [average(row) for row in averages]
    if not len(rounds):
        estimates[-1:] = [_plain_average(values)]
    return run.result(estimates)


def _plain_average(values: Array) -> Estimate | None:
    """Return the average of the values that are not NaN, without an error bar; None if there are none."""
    return Estimate([np.nanmean(values)]) if np.isfinite(values).any() else None


def _finest_grid(run: SamplingRun, shift: float) -> Array:
    """Return the nodes of the finest grid that the budget covers, shape (k^D, D), at a ``shift`` within cells."""
    cost, D = run.ledger.costs.costs[0], run.measure.dim

    def grid(k: int) -> Array:
        axis = (np.arange(k) + shift) / k
        return run.measure.from_cube(np.stack(np.meshgrid(*[axis] * D, indexing="ij"), axis=-1).reshape(-1, D))

    k = 1
    if isinstance(cost, ConstantCost):
        k = max(int((run.budget / cost.cost) ** (1 / D)), 1)
    while affordable(cost.expected(grid(k + 1)).sum(), run.budget):
        k += 1
    return grid(k)
