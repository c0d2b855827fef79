"""Multilevel best linear unbiased estimator: draws of any groups of sources, combined by generalised least squares.

Notation: a draw of group g evaluates some of the L sources at one location and costs c_g; R_g (|g|, L) picks these
sources, C_g is the covariance matrix of their values and y_g their average over n_g draws. Together the averages are a
linear regression on the integrals μ (L,) of all sources, y_g = R_g μ + noise with covariance C_g / n_g, so that the
linear unbiased estimator of least variance is (Schaden and Ullmann, 2020)

    Ψ = Σ_g n_g R_gᵀ C_g⁻¹ R_g,    μ̂ = Ψ⁻¹ Σ_g n_g R_gᵀ C_g⁻¹ y_g,    Var μ̂_0 = (Ψ⁻¹)_00 = e_0ᵀ Ψ⁻¹ e_0.

If they need not be integers, the best numbers minimise (Ψ⁻¹)_00 at the cost Σ_g n_g c_g. With the weights
β_g = n_g C_g⁻¹ R_g Ψ⁻¹ e_0 it is Σ_g β_gᵀ C_g β_g / n_g, which is jointly convex in all n_g and β_g: for given weights
the best n_g are proportional to √(β_gᵀ C_g β_g / c_g). Alternating between best weights and best numbers,

    n_g ← n_g √(q_g / c_g), scaled to the budget,    q_g = λᵀ R_gᵀ C_g⁻¹ R_g λ,    λ = Ψ⁻¹ e_0,

never increases the variance. At the optimum q_g / c_g is equal for all groups that are drawn, and not larger for the
others; the deviation from that bounds how much the variance could still decrease.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from ..common.validation import Array, RNGLike
from ..design.costs import affordable
from ..design.sources import SourcesLike
from ..execution.executors import ExecutorLike
from ..measures.adapters import MeasureLike
from ..measures.gaussian import SMALLEST_CORRELATION_EIGENVALUE
from ..posterior.estimate import Estimate
from ..results.result import Result
from .averages import average
from .pilot import PilotedRun, fewest_values, joint_values, linear_estimate, sample_covariance
from .sampling_run import Group, Samples


@dataclass(frozen=True)
class BestLinearSettings:
    """Constants of the estimator."""

    most_sources: int = 10  # they have 1,023 groups: each step takes about a millisecond
    tolerance: float = 1e-3  # negligible share of the variance or of the budget: rounding to integers costs more
    steps: int = 5000  # maximum number of steps: allocations are good long before the bound proves the tolerance


SETTINGS = BestLinearSettings()


def mlblue(
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
    """Estimate the integral by the multilevel best linear unbiased estimator (MLBLUE).

    Any group of sources may be evaluated together at independent draws. The numbers of draws are optimal for the
    covariance matrix and the costs of the sources, and the values are combined by generalised least squares. With a
    known covariance matrix, and apart from rounding to integers, no linear unbiased estimator from independent draws of
    groups has a smaller variance: these include multilevel and multi-fidelity Monte Carlo and all approximate control
    variates.

    The error bar is that of the best linear unbiased estimator. With a known covariance matrix it is Gaussian;
    otherwise it uses sample variances and Student's t distribution, and is widened because the weights were fitted to a
    sample.

    Parameters
    ----------
    sources, measure, budget, seed, rng, executor, workers
        As in `monte_carlo`, with one to nine secondary sources.
    covariance, pilot
        A known covariance matrix, or the size of the sample that estimates it, as in `multifidelity_monte_carlo`.

    References
    ----------
    Schaden, D. and Ullmann, E. (2020). On multilevel best linear unbiased estimators. SIAM/ASA Journal on Uncertainty
    Quantification 8(2).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> import amsbq
    >>> coarse = amsbq.Source(lambda x: 1 + x[0] + x[0] ** 2 / 2, cost=0.01)
    >>> result = mlblue([lambda x: np.exp(x[0]), coarse], stats.norm(0, 0.5), budget=50)
    >>> low, high = result.interval(0.95)
    >>> bool(low < np.exp(0.125) < high)
    True
    """
    run = PilotedRun(sources, measure, budget, seed, rng, executor, workers)
    if len(run.sources) > SETTINGS.most_sources:
        raise ValueError(
            f"there are too many groups of {len(run.sources)} sources: choose at most {SETTINGS.most_sources}"
        )
    C = run.evaluate_pilot(covariance, pilot)
    counts = None
    if C is not None:
        groups = all_groups(len(C))
        fixed = {groups[-1]: run.size} if run.size else {}
        numbers = best_allocation(C, groups, run.draw_costs(groups), run.budget - run.spent, fixed)
        counts = dict(zip(groups, numbers, strict=True))
    run.evaluate_planned(counts)
    return run.progressive_result(lambda table: least_squares_estimate(run.samples(table), run.known))


def all_groups(n_sources: int) -> list[Group]:
    """Return all groups of sources, from single ones to all together.

    >>> all_groups(2)
    [(0,), (1,), (0, 1)]
    """
    return [group for size in range(1, n_sources + 1) for group in combinations(range(n_sources), size)]


def least_squares_estimate(samples: Samples, known: Array | None = None) -> Estimate | None:
    """Return μ̂_0 with its distribution; None without values of the primary source.

    If the covariance matrix (L, L) is not known, it is estimated from the draws of all sources; while these are too
    few, the estimate is the average of the primary values.
    """
    drawn = {group: values for group, values in samples.items() if len(values)}
    L = 1 + max((source for group in drawn for source in group), default=0) if known is None else len(known)
    joint, primary = joint_values(drawn, range(L)), joint_values(drawn, [0])[:, 0]
    enough = len(primary) > 0 if known is not None else len(joint) >= fewest_values(L) and np.ptp(joint[:, 0]) > 0
    if not enough:
        return average(primary)
    C = sample_covariance(joint) if known is None else known
    groups = sorted(drawn, key=len, reverse=True)  # all sources first
    P, n = precisions(C, groups), np.array([len(drawn[group]) for group in groups])
    weights = np.einsum("g,gij,j->gi", n, P, _solution(np.tensordot(n, P, 1)))  # β_g, in the columns of the group
    terms = [drawn[group] @ w[list(group)] for group, w in zip(groups, weights, strict=True)]
    variances = np.einsum("gi,ij,gj->g", weights, C, weights)
    return linear_estimate(terms, variances, L if known is None else None)


def precisions(covariance: Array, groups: Sequence[Group]) -> Array:
    """Return R_gᵀ C_g⁻¹ R_g for each group, the contribution of one draw to Ψ, shape (G, L, L)."""
    variances = np.diagonal(covariance)
    scales = np.sqrt(np.where(variances > 0, variances, 1.0))  # a constant source is uncorrelated with all others
    correlation = covariance / np.outer(scales, scales)
    np.fill_diagonal(correlation, 1 + SMALLEST_CORRELATION_EIGENVALUE)  # sources may be identical
    found = np.zeros((len(groups), *covariance.shape))
    for P, group in zip(found, groups, strict=True):
        rows = np.ix_(group, group)
        P[rows] = np.linalg.inv(correlation[rows]) / np.outer(scales[list(group)], scales[list(group)])
    return found


def best_allocation(
    covariance: Array, groups: Sequence[Group], costs: Array, budget: float, fixed: dict[Group, int]
) -> list[int]:
    """Return sample sizes n_g that a budget covers, besides ``fixed`` ones, with a small variance.

    The best numbers are rounded up or down one group at a time, the expensive ones first, whichever gives the
    smaller variance if the others are optimal. ``costs`` (G,) has the cost of one draw of each group. Without fixed
    draws there is at least one draw of all sources.
    """
    P = precisions(covariance, groups)
    Psi = sum((n * P[groups.index(group)] for group, n in fixed.items()), np.zeros(covariance.shape))
    counts, open_groups = np.zeros(len(groups), dtype=int), np.ones(len(groups), dtype=bool)
    with_primary = np.array([0 in group for group in groups])
    while (rows := np.flatnonzero(open_groups & affordable(costs, budget))).size:
        n = relaxed_allocation(P[rows], costs[rows], budget, Psi)
        spent = n * costs[rows]
        first = not fixed and not counts[with_primary].any()  # an estimate needs a primary value
        wanted = with_primary[rows] if first else spent > SETTINGS.tolerance * budget
        if not wanted.any():
            break
        at = int(np.argmax(np.where(wanted, spent if first else costs[rows], 0.0)))
        g = rows[at]
        options = []
        for number in {max(int(n[at]), int(first)), int(np.ceil(n[at]))}:
            if affordable(number * costs[g], budget):
                rest, after, left = rows[rows != g], Psi + number * P[g], max(budget - number * costs[g], 0.0)
                ideal = relaxed_allocation(P[rest], costs[rest], left, after)
                options.append((variance_of(after + np.tensordot(ideal, P[rest], 1)), number))
        number = min(options)[1]
        counts[g], open_groups[g] = number, False
        Psi, budget = Psi + number * P[g], max(budget - number * costs[g], 0.0)
    return [int(number) for number in counts]


def relaxed_allocation(P: Array, costs: Array, budget: float, Psi: Array) -> Array:
    """Return the real-valued numbers n_g with the smallest variance within a budget, shape (G,).

    One draw of each group costs ``costs`` (G,) and adds P (G, L, L) to Ψ (L, L), which has the existing draws.
    """
    n = np.full(len(costs), budget) / costs / max(len(costs), 1)
    for _ in range(SETTINGS.steps if budget > 0 and len(costs) else 0):
        weights = _solution(Psi + np.tensordot(n, P, 1))
        q = np.einsum("i,gij,j->g", weights, P, weights) / costs
        # Spending all of the budget where q is largest would reduce the variance by at most the difference.
        if (q.max() - (q * n * costs).sum() / budget) * budget <= SETTINGS.tolerance * weights[0]:
            break
        # A share below rounding keeps every matrix regular.
        shares = np.maximum(n * costs * np.sqrt(np.maximum(q, 0.0)), np.finfo(float).eps * budget)
        n = shares / shares.sum() * budget / costs
    return n


def variance_of(Psi: Array) -> float:
    """Return (Ψ⁻¹)_00, the variance of the estimator."""
    return float(_solution(Psi)[0])


def _solution(Psi: Array) -> Array:
    """Return Ψ⁻¹ e_0, shape (L,); zero for sources that were never drawn, which does not include the primary one."""
    drawn = np.flatnonzero(np.diagonal(Psi) > 0)
    scales = np.sqrt(np.diagonal(Psi)[drawn])
    unit = np.zeros(len(drawn))
    unit[0] = 1 / scales[0]
    weights = np.zeros(len(Psi))
    weights[drawn] = np.linalg.solve(Psi[np.ix_(drawn, drawn)] / np.outer(scales, scales), unit) / scales
    return weights
