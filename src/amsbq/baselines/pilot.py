"""Pilots: a few draws of all sources, which tell how to spend the rest of a budget, and runs in these two stages.

The values of a pilot are part of the estimate too.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..design.accounting import StopReason
from ..design.costs import affordable
from ..design.sources import SourcesLike
from ..execution.executors import ExecutorLike
from ..inference.estimate import Estimate
from ..measures.adapters import MeasureLike
from ..validation import Array, RNGLike, brief, correlations, count, numbers, seed_number
from .averages import sum_of_averages
from .sampling_run import Draw, Group, Samples, SamplingRun, independent_draws


@dataclass(frozen=True)
class PilotSettings:
    """Constants of pilots and of their use."""

    share: float = 0.3  # of the budget: what is left can still go where the pilot says
    largest: int = 50  # draws: then correlations are known well enough to allocate by
    rounding: float = 1e-8  # share of its scale by which an eigenvalue of a covariance matrix may be negative


SETTINGS = PilotSettings()


class PilotedRun(SamplingRun):
    """A run over draws of groups of sources whose numbers depend on the covariance matrix of the sources.

    The matrix is known, or estimated from a pilot of draws of all sources.

    Parameters
    ----------
    sources, measure
        As in `amsbq.integrate`, at least two sources.
    budget : float
        In units of cost.
    covariance : (L, L) array or None
        The covariance matrix, if it is known.
    pilot : int or None
        Number of draws of the pilot, if the user gave one.
    seed, rng
        As in `amsbq.integrate`.

    Attributes
    ----------
    known : (L, L) array or None
        The covariance matrix, if it is known.
    size : int
        Number of draws of the pilot, zero if the covariance matrix is known.
    """

    def __init__(
        self,
        sources: SourcesLike,
        measure: MeasureLike,
        budget: float,
        covariance: ArrayLike | None,
        pilot: int | None,
        seed: RNGLike,
        rng: RNGLike,
    ) -> None:
        super().__init__(sources, measure, budget)
        self._seed, L = seed_number(seed, rng), len(self.sources)
        self._all: Group = tuple(range(L))
        if L < 2:
            raise ValueError("the method needs a secondary source: sources must have two entries or more")
        if covariance is None:
            self.known = None
            self.size = pilot_size(self, [self._all], pilot, default=L + 3, fewest=L + 2)
            return
        if pilot is not None:
            raise ValueError("give either covariance or pilot, not both: a pilot tells a covariance that is not known")
        self.known, self.size = checked_covariance(covariance, L), 0
        if any(source.measured for source in self.sources):
            raise ValueError("a cost that is measured is not known before a pilot: leave out covariance")
        price = self.draw_costs([self._all])[0]
        if not affordable(price, self.budget):
            raise ValueError(
                f"a budget of {self.budget:.6g} does not pay for one evaluation of each source, which costs {price:.6g}"
            )

    def evaluate_pilot(self, executor: ExecutorLike | None, workers: int) -> Array | None:
        """Evaluate the pilot if there is one, and return the covariance matrix of the sources, shape (L, L).

        None if it cannot be told, because too many evaluations failed or the primary source did not vary.
        """
        self._pilot_stopped = self.evaluate(
            planned_draws(self, {self._all: self.size}, [self._seed, 0]), executor, workers
        )
        if self.known is not None:
            return self.known
        values = self.samples(self.table()).get(self._all, np.zeros((0, len(self._all))))
        if len(values) < len(self._all) + 2 or np.ptp(values[:, 0]) == 0:
            return None
        return sample_covariance(values)

    def evaluate_planned(
        self, counts: Mapping[Group, int] | None, executor: ExecutorLike | None, workers: int
    ) -> StopReason:
        """Evaluate so many more draws of each group, and return why the run has stopped.

        Without counts, because nothing is known of the covariance, the rest of the budget is for the primary source.
        """
        if self._pilot_stopped == "interrupted":
            return self._pilot_stopped
        if counts is None:
            counts = {(0,): int((self.budget - self.spent) / self.average_costs()[0]) + 1}
        return self.evaluate(planned_draws(self, counts, [self._seed, 1]), executor, workers)


def pilot_size(run: SamplingRun, groups: Sequence[Group], pilot: int | None, default: int, fewest: int) -> int:
    """Return the number of draws of each group in a pilot, or raise if the budget does not pay for it.

    Parameters
    ----------
    run : SamplingRun
        The run, before its first evaluation.
    groups : list of Group
        The groups of which the pilot has the same number of draws.
    pilot : int or None
        The number that the user gave; None for as many as a share of the budget pays for.
    default, fewest : int
        The least number if the user gave none, and the least number that the user may give.
    """
    price = run.draw_costs(groups).sum()
    if pilot is None:
        paid = int(SETTINGS.share * run.budget / price) if price else 0  # zero while costs are to be measured
        size = max(default, min(paid, SETTINGS.largest))
    else:
        size = count(pilot, "pilot")
        if size < fewest:
            raise ValueError(f"pilot must be at least {fewest}, or there is no error bar, got {size}")
    if not affordable(size * price, run.budget):
        smaller = f", or a smaller pilot ({fewest} at least)" if size > fewest else ""
        raise ValueError(
            f"a pilot of {size} costs {size * price:.6g}, and the budget is {run.budget:.6g}: give a larger "
            f"budget{smaller}"
        )
    return size


def planned_draws(run: SamplingRun, counts: Mapping[Group, int], seed: int | Sequence[int]) -> Iterator[Draw]:
    """Yield independent draws, so many of each group, in proportion at all times: a run may end early."""
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
    """Return the values of some sources at all locations where each of them was drawn, shape (n, len(sources))."""
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
    """Return a covariance matrix of the sources, shape (L, L), or raise if it is none."""
    matrix = numbers(covariance, "covariance")
    if matrix.shape != (n_sources, n_sources):
        raise ValueError(f"covariance must have shape ({n_sources}, {n_sources}), got shape {matrix.shape}")
    if not (np.diagonal(matrix) > 0).all():
        raise ValueError(f"covariance must have positive variances, got {brief(np.diagonal(matrix))}")
    lowest = np.linalg.eigvalsh(correlations(matrix, "covariance"))[0]
    if lowest < -SETTINGS.rounding:
        raise ValueError(f"covariance must be positive semi-definite, got an eigenvalue of {lowest:.1e} of its scale")
    return matrix


def linear_estimate(terms: Sequence[Array], variances: Sequence[float], n_fitted: int | None) -> Estimate:
    """Return the sum of averages over independent draws of groups of sources, by weights for a covariance matrix.

    With a known matrix it is Gaussian. Otherwise the variance of each term is that of its values, or, for terms with
    fewer values than the first one, by the formula. If the weights of k sources are fitted to n Gaussian values of
    each, the variance of these values is too small by (n - k) / (n - 1), and the actual one is too large by
    (n - 2) / (n - k - 1), as in linear regression (Lavenberg and Welch, 1981).

    Parameters
    ----------
    terms : list of (n_g,) arrays
        The weighted sums of the values of each draw; first those draws from which the matrix was estimated.
    variances : list of float
        The variance of one draw of each term by the formula.
    n_fitted : int or None
        The number of sources, k, if the matrix was estimated, from at least k + 2 values; None if it is known.
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
