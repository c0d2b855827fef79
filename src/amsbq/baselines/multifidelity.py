"""Multi-fidelity Monte Carlo: secondary sources as successive control variates, on nested draws.

Notation: after selection there are k sources, the primary one first and the others by decreasing correlation ρ_i with
it (ρ_1 = 1, ρ_{k+1} = 0). Source i has variance σ_i², costs w_i, and is evaluated at the first n_i of a sequence of
draws, n_1 ≤ ... ≤ n_k. With averages ȳ_i(n) over the first n draws (Peherstorfer, Willcox and Gunzburger, 2016),

    μ̂ = ȳ_1(n_1) + Σ_{i>1} α_i (ȳ_i(n_i) - ȳ_i(n_{i-1})),    α_i = ρ_i σ_1 / σ_i,
    Var μ̂ = σ_1²/n_1 + Σ_{i>1} (1/n_{i-1} - 1/n_i) (α_i² σ_i² - 2 α_i ρ_i σ_1 σ_i),
    n_i ∝ √((ρ_i² - ρ_{i+1}²) / w_i),    and then    Var μ̂ = σ_1² (Σ_i √(w_i (ρ_i² - ρ_{i+1}²)))² / budget,

if w_{i-1} (ρ_i² - ρ_{i+1}²) > w_i (ρ_{i-1}² - ρ_i²) for all i > 1. Among all sets of sources for which this holds, the
one with the smallest variance is selected.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from ..common.validation import Array, RNGLike
from ..design.costs import SETTINGS as COSTS
from ..design.sources import SourcesLike
from ..execution.executors import ExecutorLike
from ..measures.adapters import MeasureLike
from ..posterior.estimate import Estimate
from ..results.result import Result
from .averages import average
from .pilot import PilotedRun, fewest_values, joint_values, linear_estimate, sample_covariance
from .sampling_run import Group, Samples


def multifidelity_monte_carlo(
    sources: SourcesLike,
    measure: MeasureLike,
    *,
    budget: float,
    covariance: ArrayLike | None = None,
    pilot: int | None = None,
    seed: RNGLike = None,
    rng: RNGLike = None,
    executor: ExecutorLike | None = None,
    workers: int = 1,
) -> Result:
    """Estimate the integral by multi-fidelity Monte Carlo.

    The primary source is averaged over few draws, and each secondary source over more of them; differences between
    averages over many and over few draws correct the average of the primary one. Numbers of draws, weights, and the
    selection of secondary sources are optimal for the correlations and costs of the sources.

    The error bar is that of the estimator's variance formula. With a known covariance matrix it is Gaussian; otherwise
    it uses sample variances and Student's t distribution, and is widened because the weights were fitted to a sample.

    Parameters
    ----------
    sources, measure, budget, seed, rng, executor, workers
        As in `monte_carlo`, with at least one secondary source.
    covariance : (L, L) array, optional
        Covariance matrix of the sources under the measure, if it is known; then there is no pilot.
    pilot : int, optional
        Number of draws at which all sources are evaluated first, at least L + 2; they also contribute to the estimate.
        By default as many as 30 % of the budget covers, between L + 3 and 50.

    References
    ----------
    Peherstorfer, B., Willcox, K. and Gunzburger, M. (2016). Optimal model management for multifidelity Monte Carlo
    estimation. SIAM Journal on Scientific Computing 38(5).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> import amsbq
    >>> coarse = amsbq.Source(lambda x: 1 + x[0] + x[0] ** 2 / 2, cost=0.01)
    >>> result = multifidelity_monte_carlo([lambda x: np.exp(x[0]), coarse], stats.norm(0, 0.5), budget=50)
    >>> low, high = result.interval(0.95)
    >>> bool(low < np.exp(0.125) < high)
    True
    """
    run = PilotedRun(sources, measure, budget, seed, rng, executor, workers)
    C = run.evaluate_pilot(covariance, pilot)
    order: Group = (0,)
    counts = None
    if C is not None:
        costs = run.average_costs()
        order = best_order(C, costs)
        left = run.budget - run.spent + run.size * costs[list(order)].sum()  # the pilot's values of these are used
        n = nested_counts(C, costs, order, left, max(run.size, 1))
        counts = {order[i:]: int(more) for i, more in enumerate(np.diff(n, prepend=run.size))}
    run.evaluate_planned(counts)
    return run.progressive_result(lambda table: nested_estimate(run.samples(table), order, run.known))


def best_order(covariance: Array, costs: Array) -> Group:
    """Return the sources to use for a covariance matrix (L, L) and costs (L,): the primary one, then by correlation."""
    squared = _squared_correlations(covariance)
    by_correlation = sorted(np.flatnonzero(squared[1:] > 0) + 1, key=lambda source: -squared[source])
    orders = [(0, *map(int, some)) for m in range(len(costs)) for some in combinations(by_correlation, m)]
    steps = {order: _steps(covariance, order) for order in orders}
    possible = [order for order in orders if _in_order(steps[order], costs[list(order)])]
    return min(possible, key=lambda order: np.sqrt(costs[list(order)] * steps[order]).sum())


def nested_counts(covariance: Array, costs: Array, order: Group, budget: float, least: int) -> tuple[int, ...]:
    """Return the numbers of evaluations n_i of the sources in order, with the smallest variance within a budget.

    The primary source has at least ``least``; all sources have ``least`` if the budget leaves no choice.
    """
    C, w = covariance[np.ix_(order, order)], costs[list(order)]
    options = _roundings(np.sqrt(_steps(covariance, order) / w), w, budget, least)
    return min(options, key=lambda n: nested_variance(C, np.array(n)))


def nested_variance(C: Array, n: Array) -> float:
    """Return Var μ̂ for the covariance matrix C (k, k) of sources in order, and numbers of evaluations n (k,)."""
    explained = C[0, 1:] ** 2 / _positive(np.diagonal(C)[1:])
    return float(C[0, 0] / n[0] - ((1 / n[:-1] - 1 / n[1:]) * explained).sum())


def nested_estimate(samples: Samples, order: Group, known: Array | None = None) -> Estimate | None:
    """Return μ̂ with its distribution; None without values of the primary source.

    If the covariance matrix (L, L) is not known, it is estimated from the draws of all sources in order; while these
    are too few, the estimate is the average of the primary values.
    """
    joint, k = joint_values(samples, order), len(order)
    if len(joint) < (1 if known is not None else fewest_values(k)):
        return average(joint_values(samples, order[:1])[:, 0])
    C = sample_covariance(joint) if known is None else known[np.ix_(order, order)]
    drawn = [joint, *(samples.get(order[i:], np.zeros((0, k - i))) for i in range(1, k))]
    m = np.array([len(values) for values in drawn])
    n = m.cumsum()
    alpha = np.append(1.0, C[0, 1:] / _positive(np.diagonal(C)[1:]))
    terms, variances = [], []
    for i in np.flatnonzero(m):  # contribution of the draws of all sources from i on to each average
        weights = alpha[i:] * m[i] * np.diff(1 / n[i:], prepend=0.0)
        terms.append(drawn[i] @ weights)
        variances.append(weights @ C[i:, i:] @ weights)
    return linear_estimate(terms, variances, k if known is None else None)


def _steps(covariance: Array, order: Group) -> Array:
    """Return ρ_i² - ρ_{i+1}² for each source in order."""
    return -np.diff(_squared_correlations(covariance)[list(order)], append=0.0)


def _squared_correlations(covariance: Array) -> Array:
    """Return ρ² of each source with the primary one, shape (L,); zero for sources that do not vary."""
    variances = np.diagonal(covariance)
    shares: Array = covariance[0] ** 2 / _positive(variances) / variances[0]
    return shares.clip(max=1.0)


def _positive(variances: Array) -> Array:
    """Return variances to divide by, with infinity for zero, so that a constant source gets no weight."""
    return np.where(variances > 0, variances, np.inf)


def _in_order(steps: Array, w: Array) -> bool:
    """Return whether w_{i-1} (ρ_i² - ρ_{i+1}²) > w_i (ρ_{i-1}² - ρ_i²) for all i > 1, and no step is negative."""
    return bool((steps >= 0).all() and (w[:-1] * steps[1:] > w[1:] * steps[:-1]).all())


def _roundings(ratios: Array, w: Array, budget: float, least: int) -> Iterator[tuple[int, ...]]:
    """Yield nested numbers n_i ∝ ratios, each rounded down and up; later ones use what earlier ones leave."""
    if not len(w):
        yield ()
        return
    ideal, most = budget * ratios[0] / (w @ ratios), int(budget / w.sum() * (1 + COSTS.rounding))
    for n in {max(min(int(rounded), most), least) for rounded in (np.floor(ideal), np.ceil(ideal))}:
        for rest in _roundings(ratios[1:], w[1:], budget - n * w[0], n):
            yield (n, *rest)
