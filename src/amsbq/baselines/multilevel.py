"""Multilevel Monte Carlo: a telescoping sum over sources from coarse to fine, each term with draws of its own.

Notation: sources f_0, ..., f_{L-1} in order, f_0 the finest, which is the primary one. The terms are the differences
of neighbours, Δ_l = f_l - f_{l+1}, and the coarsest source, Δ_{L-1} = f_{L-1}. They have variances V_l, a draw of them
costs C_l (both sources of a difference are evaluated), and n_l draws are made, so that

    μ̂ = Σ_l Δ̄_l,    Var μ̂ = Σ_l V_l / n_l,    n_l ∝ √(V_l / C_l) for the least variance at the cost Σ_l n_l C_l.

Each draw goes to the term whose variance it reduces most for its cost, V_l (1/n_l - 1/(n_l + 1)) / C_l, which leads to
these numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..design.sources import SourcesLike
from ..execution.executors import ExecutorLike
from ..inference.estimate import Estimate
from ..measures.adapters import MeasureLike
from ..results.result import Result
from ..validation import Array, RNGLike, seed_number
from .averages import sum_of_averages
from .levels import adaptive_draws, level_differences, level_groups, level_order
from .pilot import pilot_size
from .sampling_run import SamplingRun, independent_draws

#: draws of each level in the pilot: by default, so that the error bar has four degrees of freedom; and at least
PILOT, FEWEST = 5, 2


def multilevel_monte_carlo(
    sources: SourcesLike,
    measure: MeasureLike,
    *,
    budget: float,
    order: Sequence[int] | None = None,
    pilot: int | None = None,
    seed: RNGLike = None,
    rng: RNGLike = None,
    executor: ExecutorLike | None = None,
    workers: int = 1,
) -> Result:
    """Estimate the integral by multilevel Monte Carlo.

    The integral is that of the coarsest source plus those of the differences between each source and the next finer
    one. Each of these is the average over independent draws of its own. After a pilot, draws go where they reduce the
    variance most for their cost, by sample variances that are estimated again as values arrive.

    The error bar is the root of the summed variances of the averages, with Student's distribution and the degrees of
    freedom of Welch and Satterthwaite.

    Parameters
    ----------
    sources, measure, budget
        As in `amsbq.integrate`, with at least one secondary source.
    order : list of int, optional
        Numbers of the sources from the finest, 0, to the coarsest; sources that are left out are not used. By default
        all of them by falling cost, or as they are listed where costs are measured.
    pilot : int, optional
        Number of draws of each level to begin with, at least 2. By default as many as 30 % of the budget pays for,
        between 5 and 50.
    seed, rng, executor, workers
        As in `amsbq.integrate`.

    Returns
    -------
    Result
        The integral of the primary source. Draws with a failed evaluation are left out of the averages.

    References
    ----------
    Giles, M. B. (2015). Multilevel Monte Carlo methods. Acta Numerica 24.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> import amsbq
    >>> coarse = amsbq.Source(lambda x: 1 + x[0] + x[0] ** 2 / 2, cost=0.01)
    >>> result = multilevel_monte_carlo([lambda x: np.exp(x[0]), coarse], stats.norm(0, 0.5), budget=50)
    >>> low, high = result.interval(0.95)
    >>> bool(low < np.exp(0.125) < high)
    True
    """
    seed, run = seed_number(seed, rng), SamplingRun(sources, measure, budget)
    groups = level_groups(level_order(run, order, "multilevel Monte Carlo"))
    size = pilot_size(run, groups, pilot, PILOT, FEWEST)
    locations = [independent_draws(run.measure, seed)] * len(groups)
    stopped = run.evaluate(
        adaptive_draws(run, groups, size, locations, power=2, rate=1.0), executor, workers, adaptive=True
    )
    return run.progressive_result(stopped, lambda table: telescoping_sum(level_differences(run.samples(table), groups)))


def telescoping_sum(differences: Sequence[Array]) -> Estimate | None:
    """Return the sum of the averages of independent values, or None if one of them has no values.

    Parameters
    ----------
    differences : list of (n_l,) arrays
        The values of each term.
    """
    n = np.array([len(values) for values in differences])
    if not n.all():
        return None
    mean = float(sum(values.mean() for values in differences))
    if n.min() < FEWEST:
        return Estimate([mean])
    variances = np.array([values.var(ddof=1) for values in differences])
    return sum_of_averages(mean, variances / n, n - 1)
