"""Pilots: a few draws of all sources, by which the rest of a budget is allocated, and runs in these two stages.

The values of a pilot also contribute to the estimate.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..common.validation import Array, brief, correlations, count, numbers
from ..design.costs import affordable
from ..measures.gaussian import EIGENVALUE_TOLERANCE
from ..posterior.estimate import Estimate
from .averages import sum_of_averages
from .sampling_run import Draw, Group, Samples, SamplingRun, independent_draws


@dataclass(frozen=True)
class PilotSettings:
    """Constants of pilots and of their use."""

    share: float = 0.3  # share of the budget for the pilot: most of it is still left to allocate
    largest: int = 50  # maximum number of draws: they determine correlations well enough for the allocation
    growth: float = 1.2  # growth of the number of draws before variances are updated: soon, and without much work


SETTINGS = PilotSettings()


def fewest_values(n_sources: int) -> int:
    """Return how many joint values of k sources a regression needs, so that n - k - 1 in its variance is positive."""
    return n_sources + 2


class PilotedRun(SamplingRun):
    """A run that draws groups of sources, in numbers that depend on the covariance matrix of the sources.

    The matrix (L, L) is ``known``, or estimated from a pilot of ``size`` draws of all sources.
    """

    known: Array | None = None
    size = 0

    def evaluate_pilot(self, covariance: ArrayLike | None, pilot: int | None) -> Array | None:
        """Return the covariance matrix of the sources, shape (L, L), after a pilot if it is not given.

        None if it cannot be estimated, because too many evaluations failed or the primary source did not vary.
        """
        self.require_secondary("the method")
        L = len(self.sources)
        together: Group = tuple(range(L))
        if covariance is None:
            self.size = pilot_size(self, [together], pilot, fewest_values(L) + 1, fewest_values(L))
            self.evaluate(planned_draws(self, {together: self.size}, [self.seed, 0]))
            values = self.samples(self.table()).get(together, np.zeros((0, L)))
            varies = len(values) >= fewest_values(L) and np.ptp(values[:, 0]) > 0
            return sample_covariance(values) if varies else None
        if pilot is not None:
            raise ValueError("give either covariance or pilot, not both: a pilot estimates an unknown covariance")
        self.known = checked_covariance(covariance, L)
        if any(source.measured for source in self.sources):
            raise ValueError("a measured cost is not known before a pilot: omit covariance")
        price = self.draw_costs([together])[0]
        if not affordable(price, self.budget):
            raise ValueError(
                f"one evaluation of each source costs {price:.6g} in total, more than the budget of {self.budget:.6g}"
            )
        return self.known

    def evaluate_planned(self, counts: Mapping[Group, int] | None) -> None:
        """Evaluate that many more draws of each group, unless the run was interrupted.

        Without counts, because the covariance is unknown, the rest of the budget goes to the primary source.
        """
        if counts is None:
            counts = {(0,): int((self.budget - self.spent) / self.average_costs()[0]) + 1}
        if self.ended != "interrupted":
            self.evaluate(planned_draws(self, counts, [self.seed, 1]))


def pilot_size(run: SamplingRun, groups: Sequence[Group], pilot: int | None, default: int, fewest: int) -> int:
    """Return the number of draws of each group in a pilot; raise ValueError if the budget does not cover it.

    ``pilot`` is the user's number, at least ``fewest``. If it is None, a share of the budget pays for the pilot, which
    has at least ``default`` draws of each group.
    """
    price = run.draw_costs(groups).sum()
    if pilot is None:
        paid = int(SETTINGS.share * run.budget / price) if price else 0  # zero before costs are measured
        size = max(default, min(paid, SETTINGS.largest))
    else:
        size = count(pilot, "pilot")
        if size < fewest:
            raise ValueError(f"pilot must be at least {fewest}, or there is no error bar, got {size}")
    if not affordable(size * price, run.budget):
        smaller = f", or a smaller pilot ({fewest} at least)" if size > fewest else ""
        raise ValueError(
            f"a pilot of {size} costs {size * price:.6g}, but the budget is {run.budget:.6g}: give a larger "
            f"budget{smaller}"
        )
    return size


def planned_draws(run: SamplingRun, counts: Mapping[Group, int], seed: int | Sequence[int]) -> Iterator[Draw]:
    """Yield independent draws, in given numbers for each group, and always in proportion: a run may end early."""
    locations = independent_draws(run.measure, seed)
    wanted = [(group, n) for group, n in counts.items() if n > 0]
    queue = [(1 / n, i, 1) for i, (_, n) in enumerate(wanted)]
    heapq.heapify(queue)
    while queue:
        _, i, made = queue[0]
        group, n = wanted[i]
        if made == n:
            heapq.heappop(queue)
        else:
            heapq.heapreplace(queue, ((made + 1) / n, i, made + 1))
        yield group, next(locations)


def joint_values(samples: Samples, sources: Sequence[int]) -> Array:
    """Return the values of the given sources at all locations where all of them were drawn, shape (n, len(sources))."""
    parts = [
        values[:, [group.index(source) for source in sources]]
        for group, values in samples.items()
        if set(sources) <= set(group)
    ]
    return np.concatenate([np.zeros((0, len(sources))), *parts])


def sample_covariance(values: Array) -> Array:
    """Return the sample covariance matrix of values (n, k), shape (k, k); exactly zero for columns that do not vary."""
    varies = np.ptp(values, axis=0) > 0
    return np.cov(values.T).reshape(len(varies), -1) * np.outer(varies, varies)


def checked_covariance(covariance: ArrayLike, n_sources: int) -> Array:
    """Check a covariance matrix of the sources, shape (L, L), and return it."""
    matrix = numbers(covariance, "covariance")
    if matrix.shape != (n_sources, n_sources):
        raise ValueError(f"covariance must have shape ({n_sources}, {n_sources}), got shape {matrix.shape}")
    if not (np.diagonal(matrix) > 0).all():
        raise ValueError(f"covariance must have positive variances, got {brief(np.diagonal(matrix))}")
    lowest = np.linalg.eigvalsh(correlations(matrix, "covariance"))[0]
    if lowest < -EIGENVALUE_TOLERANCE:
        raise ValueError(f"covariance must be positive semi-definite, got an eigenvalue of {lowest:.1e} of its scale")
    return matrix


def linear_estimate(terms: Sequence[Array], variances: Sequence[float], n_fitted: int | None) -> Estimate:
    """Return the sum of averages over independent draws of groups; the covariance matrix determines their weights.

    Each of the ``terms`` has the weighted sums of the values of each draw, (n_g,); the first one has the draws from
    which the matrix was estimated. ``variances`` are those of one draw by the formula, and ``n_fitted`` is the number k
    of sources, or None if the matrix is known: then the estimate is Gaussian. Otherwise the variance of each term is
    the sample variance, or, for terms with fewer values than the first one, that of the formula. If the weights of k
    sources are fitted to n Gaussian values of each, the sample variance is too small by (n - k) / (n - 1), and the
    actual one is larger by (n - 2) / (n - k - 1), as in linear regression (Lavenberg and Welch, 1981).
    """
    mean, n = float(sum(values.mean() for values in terms)), np.array([len(values) for values in terms])
    if n_fitted is None:
        return Estimate([mean], [np.sqrt((variances / n).sum())])
    first, k = n[0], n_fitted
    of_draws = [z.var(ddof=1) if len(z) >= first else v for z, v in zip(terms, variances, strict=True)]
    parts, dof = np.array(of_draws) / n, np.maximum(n, first) - 1
    parts[0] *= (first - 1) / (first - k) * (first - 2) / (first - k - 1)
    dof[0] = first - k
    return sum_of_averages(mean, parts, dof)
