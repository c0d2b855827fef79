"""Acquisition rates: how informative observations would be about the integral, per unit of cost (Section 3.2).

Notation:  ρ² (K,) or (K, n)     squared correlation of the integral with future observations, for each of K posteriors
           p (K,)                share of the variance of the integral that is the weighted variance of each posterior
           ρ̄² = Σ_k p_k ρ²_k     expected relative reduction of the variance of the integral
           u(ρ̄²)                 utility, increasing in ρ̄²
           c̃ (n,)                effective cost of an observation at each of n points
           α = u(ρ̄²)/c̃           the rate

The variance of the integral is the weighted average of the variances of the posteriors, which have different
hyperparameters, plus the variance of their means: what is maximised is the reduction of the reported error bar. For one
posterior, ρ̄² = ρ².

A set of observations has α = u(ρ̄²)/Σ c̃ with its joint ρ². The already chosen observations S leave a share 1 - ρ²_S of
the variance; one more, with ρ² conditional on S, leaves (1 - ρ²_S)(1 - ρ²).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..common.validation import Array, IntArray, numbers
from ..gp.data import VALUE, Data, Sites
from ..gp.posterior_batch import PosteriorBatch
from .costs import ConstantCost, Cost
from .evaluations import Option

AcquisitionName: TypeAlias = Literal["mi", "ivr", "ip", "nv"]

#: name -> (utility, its derivative), of ρ²
UTILITIES: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "mi": (lambda r: -np.log1p(-r), lambda r: 1 / (1 - r)),
    "ivr": (lambda r: r, np.ones_like),
    "ip": (lambda r: 1 / (1 - r), lambda r: (1 - r) ** -2.0),
    "nv": (lambda r: r - 1, np.ones_like),
}
#: why some of the utilities should not be used
PATHOLOGIES = {
    "ip": "the integral precision is not zero where nothing can be learned: it gets stuck where evaluations are cheap",
    "nv": "the negative variance grows with cost: it prefers expensive evaluations",
}


def utility(rho2: ArrayLike, kind: AcquisitionName) -> Array:
    """Return the utility of observations with squared correlation ρ² with the integral, in the shape of ``rho2``.

    Parameters
    ----------
    rho2 : array of numbers from 0 to 1
    kind : str
        "mi", the mutual information -log(1 - ρ²); "ivr", the share ρ² by which the variance of the integral shrinks;
        "ip", its precision 1/(1 - ρ²); "nv", minus the variance, ρ² - 1. The last two are pathological once
        evaluations have costs: they do not vanish with ρ².

    >>> utility([0.0, 0.5, 1.0], "mi").round(3)
    array([0.   , 0.693,   inf])
    """
    rho2 = numbers(rho2, "rho2")
    if (rho2 < 0).any() or (rho2 > 1).any():
        raise ValueError(f"rho2 must be between 0 and 1, got {rho2.min()} to {rho2.max()}")
    return _utility(rho2, checked_kind(kind))


def checked_kind(kind: str) -> str:
    """Return the name of a utility; raise ValueError if there is no such utility."""
    if kind not in UTILITIES:
        raise ValueError(f"acquisition must be one of {', '.join(map(repr, UTILITIES))}, got {kind!r}")
    return kind


def _utility(rho2: Array, kind: str) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(UTILITIES[kind][0](rho2)) + 0.0  # a new array, and never -0.0


def _slope(rho2: Array, kind: str) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(UTILITIES[kind][1](rho2))


def _conditional_rho2(together: Array, known: Array) -> Array:
    """Return ρ² of observations conditional on known ones, from ρ² of both together and of the known ones."""
    return np.clip((together - known) / np.maximum(1 - known, np.finfo(float).eps), 0.0, 1.0)


#: step of numerical derivatives, in widths of the inputs
DIFFERENCE = 1e-4


@dataclass(frozen=True)
class Rate:
    """Utility per cost of future observations, averaged over posteriors with different hyperparameters.

    Parameters
    ----------
    posteriors : PosteriorBatch
        K posteriors.
    costs : dict of Cost by Option
    kind : str
        The name of the utility.
    weights : (K,) array, optional
        The weights of the posteriors, which sum to one; by default all are equal.
    between : float
        The variance of the K posterior means of the integral, which adds to the variance of each posterior.
    left : (K,) array, optional
        The share of the variance left by the already chosen observations of a set, on which the posteriors are
        conditioned. By default there are none.
    paid : float
        The effective cost of those observations.
    shares : (K, 1) array, optional
        p before those observations; by default that of the posteriors.
    given : tuple of int
        Sources observed wherever another one is, at no cost.
    uninformative : frozenset of int
        Sources that are not informative about this integral, because they lack the output.
    """

    posteriors: PosteriorBatch
    costs: Mapping[Option, Cost]
    kind: str = "mi"
    weights: Array | None = None
    between: float = 0.0
    left: Array | None = None
    paid: float = 0.0
    shares: Array | None = None
    given: tuple[int, ...] = ()
    uninformative: frozenset[int] = frozenset()

    def values(self, options: Sequence[Option], X: Array) -> Array:
        """Return the rate of one more observation with each of several options at each X_i, shape (options, n)."""
        kept = [option for option in options if option.source not in self.uninformative]
        plain = [option for option in kept if not option.gradient]
        rho2 = self.posteriors.squared_correlations([option.source for option in plain], X, self.given)
        found = dict(zip(plain, rho2, strict=True))
        found |= {option: self._with_gradient(option.source, X) for option in kept if option.gradient}
        nothing = np.zeros((len(self.posteriors.models), len(X)))
        gain = np.array([self._utility(self._joint(found.get(option, nothing))) for option in options])
        paid = np.array([self.paid + self.costs[option].effective(X) for option in options])
        # zero utility has rate zero, even if it costs nothing
        return np.asarray(np.divide(gain, paid, out=np.zeros_like(gain), where=gain != 0))

    def value_and_grad(self, source: int | IntArray, X: Array) -> tuple[Array, Array]:
        """Return the rate of one source, or of one source per point, shape (n,), and its gradient dα_i/dX_i (n, D)."""
        rho2, gradients = self._rho2_and_grad(source, X)
        cost, cost_gradient = self._effective_and_grad(source, X)
        cost, joint = self.paid + cost, self._joint(rho2)
        rate = self._utility(joint) / cost
        gradient = np.einsum("kn,knd->nd", self._slopes(joint), gradients) - rate[:, None] * cost_gradient
        return rate, gradient / cost[:, None]

    def _rho2_and_grad(self, source: int | IntArray, X: Array) -> tuple[Array, Array]:
        """Return ρ², shape (K, n), and its gradient, shape (K, n, D): by differences if ``given`` is not empty."""
        sources, D = np.broadcast_to(source, len(X)), X.shape[1]
        if not (kept := self._informative(sources)).all():
            K = len(self.posteriors.models)
            rho2, gradients = np.zeros((K, len(X))), np.zeros((K, *X.shape))
            if kept.any():
                rho2[:, kept], gradients[:, kept] = self._rho2_and_grad(sources[kept], X[kept])
            return rho2, gradients
        if not self.given:
            return self.posteriors.squared_correlation_and_grad(source, X)
        steps = DIFFERENCE * np.diag(self.posteriors.models.measure.width)
        moved = np.concatenate([X, *(X + step for step in steps), *(X - step for step in steps)])
        found = self.posteriors.squared_correlations([np.tile(sources, 2 * D + 1)], moved, self.given)[0]
        found = found.reshape(len(found), 2 * D + 1, len(X))
        gradients = (found[:, 1 : D + 1] - found[:, D + 1 :]).swapaxes(1, 2) / (2 * np.diagonal(steps))
        return found[:, 0], gradients

    def joint(self, options: Sequence[Option], X: Array) -> float:
        """Return the rate of a whole set of observations."""
        rho2 = self.posteriors.squared_correlation_joint(self._sites(options, X))[:, None]
        return float(self._utility(self._joint(rho2))[0] / (self.paid + self._paid(options, X)))

    def joint_and_grad(self, sources: IntArray, X: Array) -> tuple[float, Array]:
        """Return the rate of a whole set of observations, and its gradient in all the locations, shape (n, D)."""
        kept = self._informative(sources)
        rho2, found = self.posteriors.squared_correlation_joint_and_grad(sources[kept], X[kept])
        gradients = np.zeros((len(rho2), *X.shape))
        gradients[:, kept] = found
        costs, cost_gradient = self._effective_and_grad(sources, X)
        cost, joint = self.paid + costs.sum(), self._joint(rho2[:, None])
        rate = float(self._utility(joint)[0] / cost)
        return rate, (np.einsum("k,knd->nd", self._slopes(joint)[:, 0], gradients) - rate * cost_gradient) / cost

    def after(self, options: Sequence[Option], X: Array) -> Rate:
        """Return the rate of sets that already contain the given observations, of ``options`` at X (n, D)."""
        left = 1 - self._set_rho2(options, X)
        return replace(
            self.having(options, X),
            left=left if self.left is None else self.left * left,
            paid=self.paid + self._paid(options, X),
            shares=self._shares,
        )

    def _set_rho2(self, options: Sequence[Option], X: Array) -> Array:
        """Return ρ² of a set of observations, conditional on the ``given`` sources at its locations: shape (K,)."""
        if not self.given:
            return self.posteriors.squared_correlation_joint(self._sites(options, X))
        given, at = [Option(source) for source in self.given for _ in X], np.concatenate([X] * len(self.given))
        known = self.posteriors.squared_correlation_joint(self._sites(given, at))
        together = self._sites([*options, *given], np.concatenate([X, at]))
        return _conditional_rho2(self.posteriors.squared_correlation_joint(together), known)

    def _paid(self, options: Sequence[Option], X: Array) -> float:
        """Return the effective cost of a set of observations."""
        return sum(float(self.costs[option].effective(x[None])[0]) for option, x in zip(options, X, strict=True))

    def having(self, options: Sequence[Option], X: Array) -> Rate:
        """Return the rate as if these observations had already been made, whatever their values."""
        if all(option.source in self.uninformative for option in options):
            return self
        kept = [i for i, option in enumerate(options) if option.source not in self.uninformative]
        together = [options[i] for i in kept] + [Option(other) for other in self.given for _ in kept]
        sites = self._sites(together, np.concatenate([X[kept]] * (1 + len(self.given))))
        values = self.posteriors.models.prior_mean(sites)[0]  # any values will do: variances do not depend on them
        new = Data(sites.s, sites.X, values, np.zeros(len(sites)), sites.by)
        return replace(self, posteriors=self.posteriors.extend(new))

    def _sites(self, options: Sequence[Option], X: Array) -> Sites:
        """Return the observation sites of options at X (n, D): values first, then derivatives for those with gradients.

        Uninformative sources are left out.
        """
        kept = np.array([option.source not in self.uninformative for option in options], dtype=bool)
        sources, X = np.array([option.source for option in options], dtype=np.intp)[kept], X[kept]
        values, which = Sites.values(sources, X), np.array([option.gradient for option in options], dtype=bool)[kept]
        if not which.any():
            return values
        inputs = self.posteriors.models.measure.continuous
        s, X = np.repeat(sources[which], len(inputs)), np.repeat(X[which], len(inputs), axis=0)
        by = np.tile(inputs, int(which.sum()))
        return Sites(*(np.concatenate(pair) for pair in ((values.s, s), (values.X, X), (values.by, by))))

    def _with_gradient(self, source: int, X: Array) -> Array:
        """Return joint ρ² of a source's value and gradient at each X_i, conditional on ``given`` sources: (K, n)."""
        inputs, given = self.posteriors.models.measure.continuous, np.array(self.given, dtype=np.intp)
        s = np.concatenate([given, np.full(1 + len(inputs), source)])
        by = np.concatenate([np.full(1 + len(given), VALUE), inputs])
        together = self.posteriors.squared_correlation_blocks(s, by, X)
        if not len(given):
            return together
        known = self.posteriors.squared_correlation_blocks(given, by[: len(given)], X)
        return _conditional_rho2(together, known)

    @property
    def n_observations(self) -> int:
        """The number of observations on which the posteriors are conditioned."""
        return len(self.posteriors.data.y)

    def variance(self) -> Array:
        """Return the variance of the integral, averaged over the posteriors, in their units: shape ()."""
        return np.asarray(np.average(self.posteriors.integral()[1], weights=self.weights))

    def _informative(self, sources: IntArray) -> NDArray[np.bool_]:
        """Return which of these sources (n,) are informative about the integral."""
        return ~np.isin(sources, list(self.uninformative))

    def _effective_and_grad(self, sources: int | IntArray, X: Array) -> tuple[Array, Array]:
        sources = np.broadcast_to(sources, len(X))
        if self._constant_costs is not None:
            return self._constant_costs.take(sources), np.zeros_like(X)
        costs, gradients = np.empty(len(X)), np.empty_like(X)
        for source in set(sources.tolist()):
            of = sources == source
            costs[of], gradients[of] = self.costs[Option(source)].effective_and_grad(X[of])
        return costs, gradients

    @cached_property
    def _constant_costs(self) -> Array | None:
        """The cost of each source, if none of them depends on the input."""
        plain = [cost for option, cost in self.costs.items() if not option.gradient]
        costs = [cost.cost for cost in plain if isinstance(cost, ConstantCost)]
        return np.array(costs) if len(costs) == len(plain) else None

    @cached_property
    def _shares(self) -> Array:
        """The shares p as a column, shape (K, 1)."""
        if self.shares is not None:
            return self.shares
        weights = np.full(K := len(self.posteriors.models), 1 / K) if self.weights is None else self.weights
        variances = weights * self.posteriors.integral()[1]
        total = float(variances.sum() + self.between)
        return np.asarray(variances / total if total > 0 else weights)[:, None]

    @property
    def within(self) -> float:
        """The share of the variance that is within the posteriors: the part that observations can remove."""
        return float(self._shares.sum())

    def _joint(self, rho2: Array) -> Array:
        """Return ρ² of the set with one more observation, from ρ² of that one: shape (K, n)."""
        return rho2 if self.left is None else (1 - self.left[:, None]) + self.left[:, None] * rho2

    def _expected(self, joint: Array) -> Array:
        """Return ρ̄², the expected relative reduction of the variance of the integral, shape (n,)."""
        return np.asarray(np.minimum((self._shares * joint).sum(axis=0), 1.0))

    def _utility(self, joint: Array) -> Array:
        """Return the utility u(ρ̄²), shape (n,)."""
        return _utility(self._expected(joint), self.kind)

    def _slopes(self, joint: Array) -> Array:
        """Return the derivative of the utility with respect to ρ² of each posterior, shape (K, n)."""
        slopes = _slope(self._expected(joint), self.kind) * self._shares
        return slopes if self.left is None else self.left[:, None] * slopes


@dataclass(frozen=True)
class Rates:
    """The weighted sum of the rates of several channels.

    Parameters
    ----------
    parts : tuple of Rate
        The rate of each channel; all have the same costs.
    weights : (M,) array
        The weight of each channel.
    """

    parts: tuple[Rate, ...]
    weights: Array

    @property
    def costs(self) -> Mapping[Option, Cost]:
        """The cost of each option."""
        return self.parts[0].costs

    @property
    def paid(self) -> float:
        """The effective cost of the observations of a set that are chosen already."""
        return self.parts[0].paid

    @property
    def n_observations(self) -> int:
        """The number of observations of all outputs on which the posteriors are conditioned."""
        return sum(part.n_observations for part in self.parts)

    @property
    def within(self) -> float:
        """The smallest share of the variance of an integral that is not between its posteriors."""
        return min(part.within for part in self.parts)

    def variance(self) -> Array:
        """Return the variance of each integral, averaged over its posteriors, in their units: shape (M,)."""
        return np.array([part.variance() for part in self.parts])

    def values(self, options: Sequence[Option], X: Array) -> Array:
        """Return the rate of one more observation with each of several options at each X_i, shape (options, n)."""
        return self._sum([part.values(options, X) for part in self.parts])

    def value_and_grad(self, source: int | IntArray, X: Array) -> tuple[Array, Array]:
        """Return the rate of one source, or of one source per point, shape (n,), and its gradient dα_i/dX_i (n, D)."""
        values, gradients = zip(*(part.value_and_grad(source, X) for part in self.parts), strict=True)
        return self._sum(values), self._sum(gradients)

    def joint(self, options: Sequence[Option], X: Array) -> float:
        """Return the rate of a whole set of observations."""
        return float(self._sum([np.array(part.joint(options, X)) for part in self.parts]))

    def joint_and_grad(self, sources: IntArray, X: Array) -> tuple[float, Array]:
        """Return the rate of a whole set of observations, and its gradient in all the locations, shape (n, D)."""
        values, gradients = zip(*(part.joint_and_grad(sources, X) for part in self.parts), strict=True)
        return float(self._sum([np.array(value) for value in values])), self._sum(gradients)

    def after(self, options: Sequence[Option], X: Array) -> Rates:
        """Return the rate of sets that already contain the given observations, of ``options`` at X (n, D)."""
        return replace(self, parts=tuple(part.after(options, X) for part in self.parts))

    def having(self, options: Sequence[Option], X: Array) -> Rates:
        """Return the rate as if these observations had already been made, whatever their values."""
        return replace(self, parts=tuple(part.having(options, X) for part in self.parts))

    def _sum(self, terms: Sequence[Array]) -> Array:
        return np.asarray(sum(weight * term for weight, term in zip(self.weights.tolist(), terms, strict=True)))
