"""Averages over points of the measure: independent draws (Monte Carlo) and Sobol points (quasi Monte Carlo).

Notation: y_i = f(x_i) are the values at n points x_i, and ȳ is their average, the estimate of ∫ f dπ.

Monte Carlo draws x_i from π independently. Then ȳ has the standard error s / √n, where s is the sample standard
deviation, and Student's distribution with n - 1 degrees of freedom describes its error.

Quasi Monte Carlo takes x_i from a Sobol sequence, mapped through the quantiles of π, which covers it more evenly. Such
points are not independent, so R independently scrambled sequences are averaged, ȳ_1, ..., ȳ_R; their differences are
the error bar, and Student's distribution has R - 1 degrees of freedom.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ..design.sources import SourcesLike
from ..execution.executors import ExecutorLike
from ..inference.estimate import Estimate
from ..measures.adapters import MeasureLike
from ..results.result import Result
from ..validation import Array, RNGLike, count, seed_number, source_number
from .sampling_run import SamplingRun, independent_draws, sobol_points


@dataclass(frozen=True)
class MonteCarloSettings:
    """Constants of the methods in this module."""

    replicates: int = 8  # scrambled sequences: t with 7 degrees of freedom is 1.2 times as wide as a Gaussian at 95 %


SETTINGS = MonteCarloSettings()


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

    The error bar is the standard error of the average, with Student's distribution.

    Parameters
    ----------
    sources : function, `Source`, or list of them
        As in `amsbq.integrate`; only the first one is evaluated.
    measure : measure, or anything that `amsbq.as_measure` takes
        The distribution of the inputs.
    budget : float
        In units of cost; it decides how many draws there are.
    seed : int, optional
        Seed of the random numbers, by default 0.
    rng : int or numpy.random.Generator, optional
        Instead of ``seed``: a seed, or a generator that draws one.
    executor : concurrent.futures.Executor or distributed.Client, optional
        Where to evaluate, as in `amsbq.integrate`.
    workers : int
        Number of evaluations at the same time.

    Returns
    -------
    Result
        The integral; each of its evaluations has the mean and the standard deviation after it.

    Examples
    --------
    >>> from scipy import stats
    >>> print(monte_carlo(lambda x: x[0] ** 2, stats.norm(), budget=1000))
    integral: 0.956 ± 0.046 (std), 95 % between 0.866 and 1.046
    stopped: the budget pays for nothing more of use; spent 1000 of 1000
    <BLANKLINE>
      source      made  failed        cost
      source 0    1000       0        1000
    """
    seed, run = seed_number(seed, rng), SamplingRun(sources, measure, budget)
    stopped = run.evaluate((((0,), x) for x in independent_draws(run.measure, seed)), executor, workers)
    return run.result(stopped, running_averages(run.table()[:, 0]))


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
    independently scrambled sequences, which share the budget.

    Parameters
    ----------
    sources : function, `Source`, or list of them
        As in `amsbq.integrate`; only the first one is evaluated.
    measure : measure, or anything that `amsbq.as_measure` takes
        The distribution of the inputs.
    budget : float
        In units of cost; it decides how many points there are.
    seed : int, optional
        Seed of the scrambling, by default 0.
    rng : int or numpy.random.Generator, optional
        Instead of ``seed``: a seed, or a generator that draws one.
    replicates : int
        Number of scrambled sequences, at least 2. Fewer and longer ones have smaller errors, and a less certain error
        bar.
    executor : concurrent.futures.Executor or distributed.Client, optional
        Where to evaluate, as in `amsbq.integrate`.
    workers : int
        Number of evaluations at the same time.

    Returns
    -------
    Result
        The integral. The estimate changes after each round of one point from every sequence; before the first round is
        complete it has no error bar.

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
    seed, run = seed_number(seed, rng), SamplingRun(sources, measure, budget)
    return _average_over_sobol_points(run, 0, seed, replicates, executor, workers)


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
    """Estimate the integral by that of a secondary source: cheap, and wrong by an unknown amount.

    The secondary source is averaged over scrambled Sobol points. The estimate has no error bar, because the precision
    of the secondary source's integral says nothing about its bias.

    Parameters
    ----------
    sources : list of functions or `Source`
        As in `amsbq.integrate`.
    measure : measure, or anything that `amsbq.as_measure` takes
        The distribution of the inputs.
    budget : float
        In units of cost; it decides how many points there are.
    source : int
        Number of the source that is evaluated, from 0, the primary one.
    seed : int, optional
        Seed of the scrambling, by default 0.
    rng : int or numpy.random.Generator, optional
        Instead of ``seed``: a seed, or a generator that draws one.
    executor : concurrent.futures.Executor or distributed.Client, optional
        Where to evaluate, as in `amsbq.integrate`.
    workers : int
        Number of evaluations at the same time.

    Returns
    -------
    Result
        The integral of that source; its standard deviation is NaN.
    """
    seed, run = seed_number(seed, rng), SamplingRun(sources, measure, budget)
    source = source_number(source, len(run.sources))
    found = _average_over_sobol_points(run, source, seed, SETTINGS.replicates, executor, workers)
    evaluations = [replace(e, std=math.nan) for e in found.evaluations]
    return replace(found, estimate=Estimate([found.mean]), evaluations=evaluations)


def running_averages(values: Array) -> list[Estimate | None]:
    """Return the average after each of n independent values, with Student's distribution; None before the first.

    Values that are NaN are failed evaluations, and are left out.
    """
    ok = np.isfinite(values)
    k = np.cumsum(ok)
    centre = np.median(values[ok]) if ok.any() else 0.0  # without it, squares of large values would cancel
    y = np.where(ok, values - centre, 0.0)
    means = np.cumsum(y) / np.maximum(k, 1)
    squares = np.maximum(np.cumsum(y * y) - k * means**2, 0.0)
    scales = np.sqrt(squares / np.maximum(k - 1, 1) / np.maximum(k, 1))
    return [
        None if j == 0 else Estimate([mean]) if j == 1 else sum_of_averages(mean, np.array([scale**2]), j - 1)
        for mean, scale, j in zip(means + centre, scales, k.tolist(), strict=True)
    ]


def sum_of_averages(mean: float, variances: Array, dof: ArrayLike) -> Estimate:
    """Return a sum of independent averages, with Student's distribution.

    The degrees of freedom are those of Welch and Satterthwaite, between the least one and the sum of all of them.

    Parameters
    ----------
    mean : float
        The sum.
    variances : (k,) array
        The estimated variance of each average.
    dof : (k,) array
        The degrees of freedom of each of these variances.
    """
    total = variances.sum()
    if total == 0:
        return Estimate([mean], [0.0])
    return Estimate([mean], [np.sqrt(total)], dof=float(1 / ((variances / total) ** 2 / dof).sum()))


def _average_over_sobol_points(
    run: SamplingRun, source: int, seed: int, replicates: int, executor: ExecutorLike | None, workers: int
) -> Result:
    """Average a source over R scrambled Sobol sequences, in rounds of one point from each of them."""
    R = count(replicates, "replicates")
    if R < 2:
        raise ValueError(f"replicates must be at least 2, or there is no error bar, got {R}")
    sequences = [sobol_points(run.measure, [seed, r]) for r in range(R)]
    stopped = run.evaluate(
        (((source,), x) for one_round in zip(*sequences, strict=True) for x in one_round), executor, workers
    )
    values = run.table()[:, source]
    rounds = values[: len(values) // R * R].reshape(-1, R)
    made = np.cumsum(np.isfinite(rounds), axis=0)
    averages = np.where(made > 0, np.nancumsum(rounds, axis=0) / np.maximum(made, 1), np.nan)
    estimates: list[Estimate | None] = [None] * len(values)
    estimates[R - 1 : len(rounds) * R : R] = [running_averages(row)[-1] for row in averages]
    if not len(rounds):  # less than one round has no error bar
        estimates[-1:] = [Estimate([np.nanmean(values)])] if np.isfinite(values).any() else []
    return run.result(stopped, estimates)
