"""The search for the largest rate over sources and inputs, for one observation or for a set.

The search works in coordinates u with x = median + A u, so that units do not matter. Points of the measure are screened
together, and the best local maxima are polished with exact gradients; discrete inputs keep their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from ..common.optimizer import clip, maximise_batch
from ..common.validation import Array, IntArray
from ..measures.base import Measure
from .acquisition import Rates
from .costs import affordable
from .evaluations import Choice, Option


@dataclass(frozen=True)
class SearchSettings:
    """Effort of the search for the largest rate; u are coordinates in units of the widths of the inputs."""

    starts_per_input: int = 256  #: points of the measure at which the rate is screened
    most_starts: int = 512
    fewest_starts: int = 64  #: lower limit for many observations
    many_observations: int = 1000  #: number of observations above which fewer points are screened
    polished: int = 6  #: local maxima of the screening that are polished: twice as many find rates 0.7 % larger
    worth_polishing: float = 0.3  #: smallest share of the best screened rate for which a source is polished
    tolerance: float = 3e-4  #: share of the best rate that may be lost by ending the polishing
    hopeless: float = 0.02  #: an ascent ends early if it is behind the best one by this share of the best rate
    longest_step: float = 0.2  #: longest step of polishing, in u
    digits: int = 6  #: decimals of u: locations need not be finer than a millionth of the width
    avoided_distance: float = 0.05  #: radius, in u, around a location that is avoided
    sweeps: int = 2  #: passes through a set, in which each member may be exchanged for a better one
    #: points at which values with gradients are screened: half of them where the value alone is best, half others
    with_gradient: int = 64
    batch_starts: int = 256  #: ``most_starts`` for the members of a set
    batch_polished: int = 4  #: ``polished`` for the members of a set


SETTINGS = SearchSettings()


@dataclass(frozen=True)
class _Set:
    """Observations to be made together, and their joint rate."""

    options: tuple[Option, ...]
    X: Array
    rate: float

    @property
    def choices(self) -> list[Choice]:
        return [Choice(o.source, x, self.rate, o.gradient) for o, x in zip(self.options, self.X, strict=True)]


class Search:
    """The search for the largest rate over the inputs of a measure.

    Parameters
    ----------
    measure : Measure
    options : list of Option
        Options to choose from.
    rng : Generator
    budget, committed : float
        No choice has an expected cost that, added to the committed cost, exceeds the budget.
    avoided : list of (source, x)
        No choice of that source is near x.
    """

    def __init__(
        self,
        measure: Measure,
        options: Sequence[Option],
        rng: np.random.Generator,
        budget: float = np.inf,
        committed: float = 0.0,
        avoided: Sequence[tuple[int, Array]] = (),
    ) -> None:
        self.measure, self.options, self.rng = measure, options, rng
        self.budget, self.committed, self.avoided = budget, committed, avoided
        self.axes, self.inverse_axes = measure.axes, np.linalg.inv(measure.axes)

    def among(self, options: Sequence[Option], budget: float | None = None, committed: float | None = None) -> Search:
        """Return the search among other options, or with another budget."""
        budget = self.budget if budget is None else min(budget, self.budget)
        committed = self.committed if committed is None else committed
        return Search(self.measure, options, self.rng, budget, committed, self.avoided)

    def best(
        self,
        rate: Rates,
        points: Array | None = None,
        most: int = SETTINGS.most_starts,
        polished: int = SETTINGS.polished,
    ) -> Choice | None:
        """Return the best choice over all sources and inputs, or at given points; None if nothing is allowed."""
        X = self.points(rate, most) if points is None else points
        polished = max(polished * len(X) // min(SETTINGS.starts_per_input * self.measure.dim, most), 2)
        plain = [option for option in self.options if not option.gradient]
        values = self._screened(rate, plain, X)
        highest = values.max(axis=1, initial=-np.inf)
        found, polishing, neighbours = [], [], self._neighbours(X)
        for option, screened, top in zip(plain, values, highest, strict=True):
            if not np.isfinite(top) and top < 0:
                continue
            i = int(screened.argmax())
            found.append(Choice(option.source, X[i], float(screened[i])))
            if points is None and np.isfinite(top) and (top >= SETTINGS.worth_polishing * highest.max() or top <= 0):
                polishing.append((option.source, X[_peaks(screened, neighbours, polished)]))
        if polishing:
            found += self._polished(rate, polishing, float(np.abs(highest[np.isfinite(highest)]).max()) or 1.0)
        found += [
            choice
            for option in self.options
            if option.gradient and (choice := self._with_gradient(rate, option, X, found)) is not None
        ]
        if not found:
            return None
        # among several perfect steps, take the cheapest
        return max(found, key=lambda c: (c.rate, -float(rate.costs[c.option].effective(c.x[None])[0])))

    def points(self, rate: Rates, most: int = SETTINGS.most_starts) -> Array:
        """Return points of the measure at which a rate is screened, fewer if there are many observations."""
        starts = min(SETTINGS.starts_per_input * self.measure.dim, most)
        while starts > SETTINGS.fewest_starts and starts * rate.n_observations > most * SETTINGS.many_observations:
            starts //= 2
        return self._x(np.clip(self._u(self.measure.sobol(starts, self.rng)), *self.measure.reach.T))

    def _with_gradient(self, rate: Rates, option: Option, X: Array, found: Sequence[Choice]) -> Choice | None:
        """Return the best choice of a source with its gradient, among some points X and the best choices without."""
        source, n = option.source, SETTINGS.with_gradient // 2
        order = np.argsort(-rate.values([Option(source)], X)[0], kind="stable")
        some = np.concatenate([order[:n], order[n :: max((len(X) - n) // n, 1)]])
        points = np.array([*X[some], *(choice.x for choice in found if choice.option == Option(source))])
        values = self._screened(rate, [option], points)[0]
        best = int(values.argmax())
        return Choice(source, points[best], float(values[best]), True) if values[best] > -np.inf else None

    def best_set(self, rate: Rates, n: int) -> list[Choice]:
        """Return n choices to be evaluated together: a greedy set, refined jointly, with exchanges of single members.

        The set may be smaller than n if the budget does not cover more or nothing more can be learned.
        """
        found = self._greedy(rate, n)
        if len(found.X) > 1:
            for _ in range(SETTINGS.sweeps):
                before = found.rate
                found = self._better(rate, found, self._refined(rate, found))
                for i in range(len(found.X)):
                    found = self._better(rate, found, self._exchanged(rate, found, i))
                if not found.rate > before * (1 + 1e-3):
                    break
        return found.choices

    def rising_set(self, rate: Rates, most: int) -> list[Choice]:
        """Return a greedy set that grows as long as its joint rate rises; its members share the cost of a decision."""
        return self._greedy(rate, most, rising=True).choices

    def _greedy(self, rate: Rates, n: int, rising: bool = False) -> _Set:
        found, so_far = _Set((), np.zeros((0, self.measure.dim)), 0.0), rate
        while len(found.X) < n:
            choice = self._after(rate, found).best(so_far, None, SETTINGS.batch_starts, SETTINGS.batch_polished)
            if choice is None or (len(found.X) and not choice.rate > 0):
                break
            options, X = (*found.options, choice.option), np.concatenate([found.X, choice.x[None]])
            larger = _Set(options, X, rate.joint(options, X))
            if rising and not larger.rate > found.rate:
                break
            found = larger
            so_far = so_far.after([choice.option], choice.x[None])
        return found

    def _exchanged(self, rate: Rates, found: _Set, i: int) -> _Set:
        """Return the set with its i-th observation replaced by the best one."""
        others = _Set((*found.options[:i], *found.options[i + 1 :]), np.delete(found.X, i, axis=0), 0.0)
        so_far = rate.after(others.options, others.X)
        choice = self._after(rate, others).best(so_far, None, SETTINGS.batch_starts, SETTINGS.batch_polished)
        if choice is None:
            return found
        options, X = (*found.options[:i], choice.option, *found.options[i + 1 :]), found.X.copy()
        X[i] = choice.x
        return _Set(options, X, rate.joint(options, X))

    def _after(self, rate: Rates, found: _Set) -> Search:
        """Return the search for one more choice, with the cost of these committed."""
        return self.among(self.options, committed=self._total(rate, found))

    def _total(self, rate: Rates, found: _Set) -> float:
        pairs = zip(found.options, found.X, strict=True)
        return self.committed + sum(float(rate.costs[option].expected(x[None])[0]) for option, x in pairs)

    def _better(self, rate: Rates, old: _Set, new: _Set) -> _Set:
        allowed = affordable(self._total(rate, new), self.budget) and not any(
            self._near(x[None], option.source)[0] for option, x in zip(new.options, new.X, strict=True)
        )
        return new if new.rate > old.rate and allowed else old

    def _refined(self, rate: Rates, found: _Set) -> _Set:
        """Return the set with the same sources after all locations have been optimised together."""
        X, scale = found.X, found.rate or 1.0
        if any(option.gradient for option in found.options):
            return found  # a set with gradients is improved by exchanges alone
        sources = np.array([option.source for option in found.options], dtype=np.intp)

        def objective(u: Array) -> tuple[float, Array]:
            value, gradient = rate.joint_and_grad(sources, self._x(u.reshape(X.shape)))
            return float(np.nan_to_num(-value / scale)), _finite(-self._by_u(gradient)).ravel() / scale

        bounds = np.tile(self.measure.reach, (len(X), 1))
        with np.errstate(invalid="ignore", over="ignore"):
            end = scipy.optimize.minimize(
                objective, self._u(X).ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 50}
            )
        X = self._rounded(end.x.reshape(X.shape))
        return _Set(found.options, X, rate.joint(found.options, X))

    def _screened(self, rate: Rates, options: Sequence[Option], X: Array) -> Array:
        """Return the rate of each option at each point, -inf where it is not allowed: shape (options, n)."""
        values = np.full((len(options), len(X)), -np.inf)
        if not options:
            return values
        total = self.committed + np.array([rate.costs[option].expected(X) for option in options])
        allowed = affordable(total, self.budget) & ~np.array([self._near(X, option.source) for option in options])
        rows = np.flatnonzero(allowed.any(axis=1))
        if len(rows):
            found = rate.values([options[row] for row in rows.tolist()], X)
            values[rows] = np.where(allowed[rows], found, -np.inf)
        return values

    def _near(self, X: Array, source: int) -> NDArray[np.bool_]:
        """Return which points are too near to an avoided location."""
        near = np.zeros(len(X), dtype=bool)
        for _, x in (pair for pair in self.avoided if pair[0] == source):
            near |= (np.abs(self._u(X) - self._u(x)) <= SETTINGS.avoided_distance).all(axis=1)
        return near

    def _neighbours(self, X: Array) -> IntArray:
        """Return the indices of the nearest few points to each point, including itself."""
        u = self._u(X)
        _, neighbours = scipy.spatial.cKDTree(u).query(u, k=min(2 * self.measure.dim + 1, len(u)))
        return np.asarray(neighbours)

    def _polished(self, rate: Rates, starts: Sequence[tuple[int, Array]], unit: float) -> list[Choice]:
        """Return the best polished choice for each source, from all starts; ``unit`` is the size of rates."""
        sources = np.repeat([source for source, _ in starts], [len(X) for _, X in starts])

        def scaled(u: Array, which: IntArray) -> tuple[Array, Array]:
            values, gradient = rate.value_and_grad(sources[which], self._x(u))
            if not np.isfinite(values.sum() + gradient.sum()):
                values, gradient = np.nan_to_num(values, nan=-np.inf), _finite(gradient)
            return values / unit, self._by_u(gradient) / unit

        with np.errstate(invalid="ignore", over="ignore"):  # next to a perfect step, or where costs are degenerate
            u = self._u(np.concatenate([X for _, X in starts]))
            u, _, _ = maximise_batch(
                scaled, u, self.measure.reach, SETTINGS.tolerance, SETTINGS.longest_step, SETTINGS.hopeless
            )
        ends, polishing = self._rounded(u), [source for source, _ in starts]
        found = zip(polishing, self._screened(rate, [Option(source) for source in polishing], ends), strict=True)
        return [Choice(source, ends[values.argmax()], float(values.max())) for source, values in found]

    def _u(self, X: Array) -> Array:
        return np.asarray((X - self.measure.median) @ self.inverse_axes.T)

    def _x(self, u: Array) -> Array:
        low, high = self.measure.bounds.T
        return self.measure.nearest(clip(self.measure.median + u @ self.axes.T, low, high))

    def _by_u(self, gradient: Array) -> Array:
        """Return ∇_u from ∇_x, shape (n, D); zero for discrete inputs, which stay."""
        gradient[:, list(self.measure.discrete)] = 0.0
        return np.asarray(gradient @ self.axes)

    def _rounded(self, u: Array) -> Array:
        low, high = self.measure.reach.T
        return self._x(np.clip(np.round(u, SETTINGS.digits), low, high))


def _peaks(values: Array, neighbours: IntArray, n: int) -> IntArray:
    """Return the indices of the best n local maxima among the points."""
    higher = values >= values[neighbours].max(axis=1)
    order = np.lexsort((-values, ~higher))[:n]
    return order[np.isfinite(values[order])]


def _finite(gradient: Array) -> Array:
    return np.nan_to_num(gradient, posinf=0.0, neginf=0.0)
