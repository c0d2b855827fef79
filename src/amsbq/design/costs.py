"""Costs of evaluations: constant, a function of the input, or learned from the costs of earlier evaluations.

A rate divides by cost, so an uncertain cost c enters by E[1/c]: its *effective* cost is 1 / E[1/c]. The budget reserves
the *expected* cost E[c]. If the cost is known, both are the cost itself. If it is learned, by a Gaussian process over
log c with mean μ and variance σ², they are exp(μ - σ²/2) and exp(μ + σ²/2). Costs of levels of one simulator, with
knobs h_lk, are learned jointly: log c_l(x) = a - Σ_k b_k log h_lk + u_l + g_l(x).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..common.messages import warn
from ..common.validation import Array, IntArray, brief, positive_number, read_only
from ..gp.data import Data
from ..inference.log_posterior import LogPosterior
from ..inference.particles import SETTINGS as LEARNING
from ..inference.priors import LogGamma, Normal, StudentT
from ..inference.sampling import most_probable
from ..inference.structures import Factor, Fidelities, ModelPrior, TermPrior
from ..measures.base import Measure
from ..posterior.schedule import scheduled_refit
from .evaluations import Option
from .sources import CostLike


@dataclass(frozen=True)
class CostSettings:
    """Settings for checking, differentiating, summing and learning costs."""

    #: locations at which a cost function is tried before anything is spent: enough to meet most of its branches
    tried: int = 64
    #: step of central differences, as a share of an input's width: near the cube root of the machine precision
    difference_step: float = 1e-5
    #: relative rounding error that the sum of costs may have before it counts as above the budget
    rounding: float = 1e-12
    #: standard deviation of the exponent b of a knob around one: it is 2 for cells in two dimensions
    exponent: float = 0.7
    departure: float = 0.2  #: standard deviation of u, by which a level departs from that power
    own: float = 0.1  #: share of the variance of g that is specific to a level


SETTINGS = CostSettings()
ONE_SOURCE = read_only(np.zeros((0, 1)))  #: the logarithms of the knobs of a source without knobs


def affordable(cost: Any, budget: float) -> Any:
    """Return whether a total cost, or each total in an array, is within a budget, up to rounding."""
    return cost <= budget * (1 + SETTINGS.rounding)


def of_budget(spent: float, budget: float | None, digits: int = 6) -> str:
    """Return the spent part of a budget in words; None or infinity means that there is no budget.

    >>> of_budget(2, 5), of_budget(2, None), of_budget(8, 3)
    ('2 of 5', '2', '8, more than the budget of 3')
    """
    if budget is None or math.isinf(budget):
        return f"{spent:.{digits}g}"
    between = " of" if affordable(spent, budget) else ", more than the budget of"
    return f"{spent:.{digits}g}{between} {budget:.{digits}g}"


class Cost(ABC):
    """The cost of evaluating a source at any input of a measure."""

    def __init__(self, measure: Measure) -> None:
        self.measure = measure

    @abstractmethod
    def effective(self, X: Array) -> Array:
        """Return 1 / E[1/c] at each X_i, shape (n,)."""

    def expected(self, X: Array) -> Array:
        """Return E[c] at each X_i, shape (n,): the effective cost, unless the cost is uncertain."""
        return self.effective(X)

    def effective_and_grad(self, X: Array) -> tuple[Array, Array]:
        """Return the effective cost (n,) and its gradient (n, D), by central differences inside the support."""
        n, D = X.shape
        steps = SETTINGS.difference_step * np.diag(self.measure.width)
        low, high = self.measure.bounds.T
        ahead, behind = (np.clip(X[:, None, :] + shift, low, high) for shift in (steps, -steps))
        together = np.concatenate([X, ahead.reshape(-1, D), behind.reshape(-1, D)])
        values, forward, backward = np.split(self.effective(together), [n, n + n * D])
        distances = np.einsum("idd->id", ahead - behind)
        return values, (forward - backward).reshape(n, D) / np.where(distances > 0, distances, 1.0)


class ConstantCost(Cost):
    """A cost that is the same at all inputs."""

    def __init__(self, measure: Measure, cost: float) -> None:
        super().__init__(measure)
        self.cost = cost

    def effective(self, X: Array) -> Array:
        """Return the cost at each X_i, shape (n,)."""
        return np.full(len(X), self.cost)

    def effective_and_grad(self, X: Array) -> tuple[Array, Array]:
        """Return the cost (n,) and a gradient (n, D) of zeros."""
        return self.effective(X), np.zeros_like(X)


class CostFunction(Cost):
    """A cost given by a user's function of the input.

    The function must return a positive finite number wherever it is called. Anything else, or an exception in the
    function, raises an error that names the source and the location, because a wrong cost would silently change what is
    evaluated.

    Parameters
    ----------
    measure : Measure
        The distribution of the inputs.
    function : callable
        Called with x of shape (D,). If it has a method ``gradient(x)`` that returns shape (D,), this is used instead of
        central differences.
    name : str
        Its name in error messages.
    """

    def __init__(self, measure: Measure, function: Callable[[Array], Any], name: str = "cost") -> None:
        super().__init__(measure)
        self.function, self.name = function, name
        self.effective(measure.sobol(SETTINGS.tried, 0))

    def effective(self, X: Array) -> Array:
        """Return the function's value at each X_i, shape (n,)."""
        return np.array([self._at(x) for x in X], dtype=float)

    def effective_and_grad(self, X: Array) -> tuple[Array, Array]:
        """Return the function's values (n,) and its gradient (n, D)."""
        gradient = getattr(self.function, "gradient", None)
        if gradient is None:
            return super().effective_and_grad(X)
        slopes = [self._called(gradient, x, f"gradient of the {self.name}") for x in X]
        return self.effective(X), np.array(slopes, dtype=float).reshape(X.shape)

    def _at(self, x: Array) -> float:
        cost = self._called(self.function, x, self.name)
        if isinstance(cost, float) and 0 < cost < np.inf:
            return cost
        return positive_number(cost, f"{self.name} at x = {brief(x)}")

    @staticmethod
    def _called(function: Callable[[Array], Any], x: Array, name: str) -> Any:
        try:
            return function(read_only(x.copy()))
        except Exception as error:
            raise ValueError(f"{name} at x = {brief(x)} raised {type(error).__name__}: {error}") from error


def log_cost_prior(log_knobs: Array) -> ModelPrior:
    """Return the prior of log c + Σ_k log h_k for the levels of one simulator, given their log h_k, shape (knobs, L).

    Changing the unit of cost only shifts it. Costs vary slowly with the inputs, by a factor of about e, similarly for
    all levels; timings are noisy by some percent.
    """
    one, each = np.ones((log_knobs.shape[1],) * 2), np.eye(log_knobs.shape[1])
    several = len(each) > 1
    levels = 10.0**2 * one + several * SETTINGS.departure**2 * each + SETTINGS.exponent**2 * log_knobs.T @ log_knobs
    alike = (1 - SETTINGS.own) * one + SETTINGS.own * each
    return ModelPrior(
        (TermPrior(LogGamma(0.5, 3.0), correlation=alike if several else None),),
        factors=(Factor(StudentT(-0.5, 0.7, 4.0), np.ones((1, len(each)))),),
        level=levels,
        alike=tuple(range(len(each))),
        log_noise=Normal(float(np.log(1e-2)), 2.0),
        noise_knobs=np.zeros((0, len(each))),
        spread=1.0,
    )


class LearnedCosts:
    """Posterior of the log costs of one simulator's levels, or of a single source, at the mode of its hyperparameters.

    Parameters
    ----------
    measure : Measure
        The distribution of the inputs.
    levels : (n,) array of int
        The level of each evaluation.
    X : (n, D) array
        Its location.
    costs : (n,) array
        Its cost.
    log_knobs : (knobs, L) array
        Logarithms of the knobs of each level; without knobs there is a single level.
    """

    def __init__(
        self, measure: Measure, levels: IntArray, X: Array, costs: Array, log_knobs: Array = ONE_SOURCE
    ) -> None:
        self.expected_rise = -log_knobs.sum(axis=0)  # (L,), prior mean of log c, up to a constant
        y = np.log(costs) - self.expected_rise[levels]
        data = Data(levels, X, y, np.zeros(len(y))).thinned(LEARNING.most_observations)
        log_posterior = LogPosterior(log_cost_prior(log_knobs), measure, data, ["learn"] * len(self.expected_rise))
        self.posterior = log_posterior.condition(most_probable(log_posterior).Theta)
        self.average = float(log_posterior.units.levels[0])

    def log_cost(self, level: int, X: Array) -> tuple[Array, Array]:
        """Return mean and variance, shape (n,), of the log cost of evaluating a level at each X_i."""
        mean, variance = self.posterior.predict(level, X)  # in standard units: level zero, spread one
        noise = self.posterior.models.noise[0, level]
        return self.average + self.expected_rise[level] + mean[0], variance[0] + noise


class MeasuredCost(Cost):
    """A cost learned from evaluations.

    Parameters
    ----------
    measure : Measure
        The distribution of the inputs.
    learned : LearnedCosts, optional
        The posterior of the costs; None while there are no evaluations.
    level : int
        The level of this source.
    otherwise : float, optional
        The cost to assume while there are no evaluations; None if it is unknown.
    """

    def __init__(
        self, measure: Measure, learned: LearnedCosts | None, level: int = 0, otherwise: float | None = None
    ) -> None:
        super().__init__(measure)
        self.learned, self.level, self.otherwise = learned, level, otherwise

    def assuming(self, cost: float) -> MeasuredCost:
        """Return a copy that assumes this cost while there are no evaluations."""
        other = copy(self)
        other.otherwise = cost
        return other

    def effective(self, X: Array) -> Array:
        """Return exp(μ - σ²/2) at each X_i, shape (n,)."""
        mean, variance = self._log_cost(X)
        return np.exp(mean - 0.5 * variance)

    def expected(self, X: Array) -> Array:
        """Return exp(μ + σ²/2) at each X_i, shape (n,); zeros if the cost is unknown, so that nothing is reserved."""
        if self.learned is None and self.otherwise is None:
            return np.zeros(len(X))
        mean, variance = self._log_cost(X)
        return np.exp(mean + 0.5 * variance)

    def _log_cost(self, X: Array) -> tuple[Array, Array]:
        """Return mean and variance of the log cost of one evaluation at each X_i."""
        if self.learned is None:
            return np.full(len(X), np.log(self.otherwise or 1.0)), np.zeros(len(X))
        return self.learned.log_cost(self.level, X)


class CostWithGradient(Cost):
    """The cost of a value with its gradient; by default the gradient costs as much as the value."""

    def __init__(self, cost: Cost, gradient_cost: float | None) -> None:
        super().__init__(cost.measure)
        self.of_value, self.times, self.more = cost, 2.0 if gradient_cost is None else 1.0, gradient_cost or 0.0

    def effective(self, X: Array) -> Array:
        """Return 1 / E[1/c] at each X_i, shape (n,)."""
        return self.times * self.of_value.effective(X) + self.more

    def expected(self, X: Array) -> Array:
        """Return E[c] at each X_i, shape (n,)."""
        return self.times * self.of_value.expected(X) + self.more


class SourceCosts:
    """The costs of all sources; "measured" ones are relearned whenever the schedule refits hyperparameters.

    Costs of levels of one simulator are learned jointly, as functions of its knobs.

    Parameters
    ----------
    costs : list of float, callable or "measured"
        One for each source.
    names : list of str
        Names of the sources, for error messages.
    measure : Measure
        The distribution of the inputs.
    gradients : dict of float or None by source
        The cost of the gradient, for each source that has one; None if it equals that of the value.
    fidelities : Fidelities, optional
        The knobs of sources.
    """

    def __init__(
        self,
        costs: Sequence[CostLike],
        names: Sequence[str],
        measure: Measure,
        gradients: Mapping[int, float | None],
        fidelities: Fidelities | None = None,
    ) -> None:
        self.measure, self._gradients = measure, gradients
        self._costs = [self._cost(cost, name) for cost, name in zip(costs, names, strict=True)]
        self._paid: list[list[tuple[float, ...]]] = [[] for _ in costs]  # (*x, cost) for each source
        measured = [source for source, cost in enumerate(self._costs) if isinstance(cost, MeasuredCost)]
        alike = [source for source in measured if fidelities is not None and source in fidelities.declared]
        logs = np.zeros((0, len(costs))) if fidelities is None else fidelities.logarithms(len(costs))
        #: groups of sources whose costs are learned together, keyed by the first source, with the logarithms of knobs
        self._learned = {source: ([source], ONE_SOURCE) for source in measured if source not in alike}
        self._learned |= {alike[0]: (alike, logs[:, alike])} if alike else {}
        self._due: dict[int, list[int]] = {}  # per group to relearn: how many evaluations of each source to learn from
        self._largest = 0.0
        self._question_order(names)

    def _question_order(self, names: Sequence[str]) -> None:
        """Warn if a secondary source costs more than the primary one: the two may have been swapped by mistake."""
        known = {s: cost.cost for s, cost in enumerate(self._costs) if isinstance(cost, ConstantCost)}
        dearest = max(known, key=lambda source: known[source], default=0)
        if 0 in known and known[dearest] > known[0]:
            warn(
                f"{names[dearest]} costs more than {names[0]} ({known[dearest]:.6g} and {known[0]:.6g}), whose "
                "integral is estimated: the source whose integral is wanted must come first"
            )

    def _cost(self, cost: CostLike, name: str) -> Cost:
        if isinstance(cost, str):
            return MeasuredCost(self.measure, None)
        if callable(cost):
            return CostFunction(self.measure, cost, f"cost of {name}")
        return ConstantCost(self.measure, cost)

    @property
    def costs(self) -> list[Cost]:
        """The cost of each source; a pending refit of measured costs takes some milliseconds."""
        for first, counts in self._due.items():
            sources, log_knobs = self._learned[first]
            # sorted: the order of evaluations must not matter
            known = [sorted(self._paid[source][:n]) for source, n in zip(sources, counts, strict=True)]
            rows, levels = np.array([row for some in known for row in some]), np.repeat(range(len(sources)), counts)
            learned = LearnedCosts(self.measure, levels, rows[:, :-1], rows[:, -1], log_knobs)
            for level, source in enumerate(sources):
                self._costs[source] = MeasuredCost(self.measure, learned, level)
        self._due.clear()
        return self._costs

    def of_options(self) -> dict[Option, Cost]:
        """Return the cost of each option: each source, and each source with its gradient if it has one."""
        plain = {Option(source): cost for source, cost in enumerate(self.costs)}
        return plain | {Option(source, True): self._with_gradient(source) for source in self._gradients}

    def _with_gradient(self, source: int) -> Cost:
        cost, at = CostWithGradient(self._costs[source], self._gradients[source]), self.measure.median[None]
        return ConstantCost(self.measure, cost.effective(at)[0]) if isinstance(cost.of_value, ConstantCost) else cost

    def dearest_first(self) -> list[int] | None:
        """Return the primary source, then the others by falling cost at the median; None if a cost is "measured"."""
        if any(isinstance(cost, MeasuredCost) for cost in self._costs):
            return None
        prices = [self.expected(source, self.measure.median) for source in range(len(self._costs))]
        return [0, *sorted(range(1, len(prices)), key=lambda source: -prices[source])]

    def unknown(self, source: int) -> bool:
        """Return whether the cost of a source is unknown."""
        together = [sources for sources, _ in self._learned.values() if source in sources]
        return bool(together) and not any(self._paid[each] for each in together[0])

    def expected(self, source: int, x: Array, gradient: bool = False) -> float:
        """Return the cost to reserve for an evaluation at x, shape (D,), with or without its gradient."""
        plain = self.costs[source]
        return float((self._with_gradient(source) if gradient else plain).expected(x[None])[0])

    def paid(self, source: int, x: Array, cost: float, gradient: bool = False) -> None:
        """Record the cost of an evaluation at x, shape (D,), with or without its gradient."""
        if gradient and source in self._gradients:  # only the cost of values is learned
            cost = 0.5 * cost if (extra := self._gradients[source]) is None else max(cost - extra, 0.1 * cost)
        self._paid[source].append((*x, cost))
        self._largest = max(self._largest, cost)
        for other, model in enumerate(self._costs):
            if isinstance(model, MeasuredCost) and model.learned is None:
                self._costs[other] = model.assuming(self._largest)
        for first, (sources, _) in self._learned.items():
            counts = [len(self._paid[each]) for each in sources]
            if source in sources and scheduled_refit(sum(counts)) == sum(counts):
                self._due[first] = counts
