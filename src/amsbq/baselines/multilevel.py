"""Multilevel Monte Carlo: a telescoping sum over sources from coarse to fine, each term with its own draws.

Notation: sources f_0, ..., f_{L-1} in order, f_0 the finest, which is the primary one. The terms are the differences
of neighbours, Δ_l = f_l - f_{l+1}, and the coarsest source, Δ_{L-1} = f_{L-1}. They have variances V_l, a draw costs
C_l (both sources of a difference are evaluated), and n_l draws are made, so that

    μ̂ = Σ_l Δ̄_l,    Var μ̂ = Σ_l V_l / n_l,    n_l ∝ √(V_l / C_l) for the least variance at the cost Σ_l n_l C_l.

Each draw goes to the term whose variance it reduces most for its cost, V_l (1/n_l - 1/(n_l + 1)) / C_l, which leads to
these numbers. Other methods that sum over levels share the order of the levels and their draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from ..common.validation import Array, RNGLike, brief, source_number
from ..design.costs import affordable
from ..design.sources import SourcesLike
from ..execution.executors import ExecutorLike
from ..measures.adapters import MeasureLike
from ..posterior.estimate import Estimate
from ..results.result import Result
from .averages import sum_of_averages
from .pilot import SETTINGS as PILOTS
from .pilot import pilot_size
from .sampling_run import Draw, Group, Samples, SamplingRun, independent_draws

#: draws of each level in the pilot: the default, with which the error bar has four degrees of freedom; and the minimum
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
    one. Each of these is averaged over its own independent draws. After a pilot, draws go where they reduce the
    variance most for their cost, by sample variances that are updated as values arrive.

    The error bar is the root of the summed variances of the averages, with Student's t distribution and the degrees of
    freedom of Welch and Satterthwaite.

    Parameters
    ----------
    sources, measure, budget, seed, rng, executor, workers
        As in `monte_carlo`, with at least one secondary source.
    order : list of int, optional
        Indices of the sources from the finest, 0, to the coarsest; others are not used. By default all sources by
        decreasing cost, or as listed if costs are measured.
    pilot : int, optional
        Number of draws of each level to begin with, at least 2. By default as many as 30 % of the budget covers,
        between 5 and 50.

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
    run = SamplingRun(sources, measure, budget, seed, rng, executor, workers)
    groups = level_groups(level_order(run, order, "multilevel Monte Carlo"))
    draws = [independent_draws(run.measure, run.seed)] * len(groups)
    evaluate_levels(run, groups, draws, pilot, PILOT, power=2, rate=1.0)
    return run.progressive_result(lambda table: telescoping_sum(level_differences(run.samples(table), groups)))


def telescoping_sum(differences: Sequence[Array]) -> Estimate | None:
    """Return the sum over terms l of the average value, from values (n_l,) each; None if a term has no values."""
    n = np.array([len(values) for values in differences])
    if not n.all():
        return None
    mean = float(sum(values.mean() for values in differences))
    if n.min() < FEWEST:
        return Estimate([mean])
    variances = np.array([values.var(ddof=1) for values in differences])
    return sum_of_averages(mean, variances / n, n - 1)


def level_order(run: SamplingRun, order: Sequence[int] | None, method: str) -> list[int]:
    """Return the sources from the finest to the coarsest, by decreasing cost unless the user gave an order."""
    if order is None:
        costs = run.average_costs()
        order = [0, *sorted(range(1, len(costs)), key=lambda source: -costs[source])]
    return checked_order(order, len(run.sources), method)


def checked_order(order: Sequence[int] | None, n_sources: int, method: str) -> list[int]:
    """Return the sources from the finest to the coarsest, as they are numbered unless an order is given."""
    levels = list(range(n_sources)) if order is None else [source_number(s, n_sources, "order") for s in order]
    if levels[:1] != [0] or len(set(levels)) < len(levels):
        raise ValueError(f"order must name different sources, the primary one, 0, first, got {brief(order)}")
    if len(levels) < 2:
        raise ValueError(f"{method} needs a coarser source: there must be two or more")
    return levels


def level_groups(levels: Sequence[int]) -> list[Group]:
    """Return the sources of each term of a telescoping sum: pairs of neighbouring levels, and the coarsest level.

    >>> level_groups([0, 2, 1])
    [(0, 2), (2, 1), (1,)]
    """
    return [*pairwise(levels), (levels[-1],)]


def level_differences(samples: Samples, groups: Sequence[Group]) -> list[Array]:
    """Return the values of each term of a telescoping sum, shape (n_l,): differences, and the coarsest level."""
    drawn = [samples.get(group, np.zeros((0, len(group)))) for group in groups]
    return [values[:, 0] - values[:, 1:].sum(axis=1) for values in drawn]


def evaluate_levels(
    run: SamplingRun,
    groups: list[Group],
    locations: list[Iterator[Array]],
    pilot: int | None,
    default: int,
    *,
    power: int,
    rate: float,
    most: float = np.inf,
) -> None:
    """Evaluate a pilot, and then the level whose next draw is worth most for its cost, up to ``most`` draws each.

    The error of level l is assumed to be a_l n_l^-r, where n_l is its number of draws, r the ``rate``, and a_l the
    standard deviation of its term so far to a ``power``: 1 if the error is a standard deviation, 2 if it is a variance.
    The sum of these errors is smallest at a given cost if n_l ∝ (a_l / C_l)^(1 / (1 + r)), where C_l is the cost of a
    draw. Taking a_l (n_l^-r - (n_l + 1)^-r) / C_l as the worth of the next draw leads there, in integers and within the
    budget.
    """
    size = pilot_size(run, groups, pilot, default, FEWEST)
    run.evaluate(_adaptive_draws(run, groups, locations, size, power, rate, most), adaptive=True)


def _adaptive_draws(
    run: SamplingRun,
    groups: list[Group],
    locations: list[Iterator[Array]],
    pilot: int,
    power: int,
    rate: float,
    most: float,
) -> Iterator[Draw]:
    for group, points in zip(groups * pilot, locations * pilot, strict=True):
        yield group, next(points)
    n, reviewed = np.full(len(groups), float(pilot)), np.zeros(len(groups))
    while True:
        if (n >= PILOTS.growth * reviewed).any():
            terms = level_differences(run.samples(run.table()), groups)
            # Levels with fewer than two values come first: with several workers, values may not have arrived yet.
            sizes = np.array([values.std(ddof=1) if len(values) > 1 else np.inf for values in terms]) ** power
            costs, reviewed = run.draw_costs(groups), n.copy()
        possible = affordable(run.ledger.committed + costs, run.budget) & (n < most)
        if not possible.any():
            return
        level = int(np.argmax(np.where(possible, sizes * (n**-rate - (n + 1) ** -rate) / costs, -np.inf)))
        n[level] += 1
        yield groups[level], next(locations[level])
