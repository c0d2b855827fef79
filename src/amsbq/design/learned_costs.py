"""What evaluations cost: a constant, a function of the input, or a model learned from what evaluations took.

A rate divides by cost, so an uncertain cost c counts by E[1/c]: its *effective* cost is 1 / E[1/c]. What is set aside
in a budget is the *expected* cost E[c]. If log c is normal with mean μ and variance σ², these are exp(μ - σ²/2) and
exp(μ + σ²/2).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from ..gp.data import Data
from ..inference.belief import LEARNED_FROM
from ..inference.log_posterior import Parametrisation
from ..inference.priors import LogGamma, Normal, StudentT
from ..inference.sampling import most_probable
from ..inference.schedule import learning_time
from ..inference.structures import ModelPrior, TermPrior
from ..measures.base import Measure
from ..validation import Array
from .costs import ConstantCost, Cost, CostFunction

#: of log c, which has no unit but a level: it varies by a factor or so, slowly, and timing is good to some percent
LOG_COST = ModelPrior(
    (TermPrior(LogGamma(0.5, 3.0)),),
    amplitude=StudentT(-0.5, 0.7, 4.0),
    level=10.0,
    log_noise=Normal(float(np.log(1e-2)), 2.0),
    spread=1.0,
)


class MeasuredCost(Cost):
    """Learned from what evaluations took: a Gaussian process over log c, given its most probable hyperparameters.

    Parameters
    ----------
    X, costs : (n, D) and (n,) arrays
        Where the source was evaluated, and for how much.
    otherwise : float, optional
        The cost to count with until one is known.
    """

    def __init__(self, measure: Measure, X: Array, costs: Array, otherwise: float | None = None) -> None:
        super().__init__(measure)
        self.otherwise = otherwise
        self.posterior = None
        if len(costs):
            n = len(costs)
            data = Data(np.zeros(n, dtype=np.intp), X, np.log(costs), np.zeros(n)).thinned(LEARNED_FROM)
            self.posterior = most_probable(Parametrisation(LOG_COST, measure, data, ["learn"])).posteriors()[0]

    def guessed(self, cost: float) -> MeasuredCost:
        """The same, but counting with another cost until one is known."""
        other = copy(self)
        other.otherwise = cost
        return other

    def effective(self, X: Array) -> Array:
        mean, variance = self._log(X)
        return np.exp(mean - 0.5 * variance)

    def expected(self, X: Array) -> Array:
        if self.posterior is None and self.otherwise is None:
            return np.zeros(len(X))
        mean, variance = self._log(X)
        return np.exp(mean + 0.5 * variance)

    def _log(self, X: Array) -> tuple[Array, Array]:
        if self.posterior is None:
            return np.full(len(X), np.log(self.otherwise or 1.0)), np.zeros(len(X))
        mean, variance = self.posterior.predict(0, X)
        return mean, variance + self.posterior.gp.noise[0]


class SourceCosts:
    """The costs of all sources; those that are "measured" are learned from what is paid."""

    def __init__(self, costs: Sequence[Any], names: Sequence[str], measure: Measure) -> None:
        self.measure = measure
        self._costs = [self._cost(cost, name) for cost, name in zip(costs, names, strict=True)]
        self._paid: list[list[tuple[float, ...]]] = [[] for _ in costs]  # (*x, cost) for each source
        self._due: dict[int, int] = {}  # sources whose costs are to be learned, from so many that were paid
        self._most = 0.0

    def _cost(self, cost: Any, name: str) -> Cost:
        if isinstance(cost, str):
            return MeasuredCost(self.measure, np.zeros((0, self.measure.dim)), np.zeros(0))
        if callable(cost):
            return CostFunction(self.measure, cost, f"cost of {name}")
        return ConstantCost(self.measure, cost)

    @property
    def costs(self) -> list[Cost]:
        """One for each source."""
        for source, n in self._due.items():
            rows = np.array(sorted(self._paid[source][:n]))  # the order in which they came does not matter
            self._costs[source] = MeasuredCost(self.measure, rows[:, :-1], rows[:, -1])
        self._due.clear()
        return self._costs

    def unknown(self, source: int) -> bool:
        """Whether nothing is known of the costs of a source."""
        return isinstance(self._costs[source], MeasuredCost) and not self._paid[source]

    def expected(self, source: int, x: Array) -> float:
        """What to set aside for an evaluation at x, shape (D,)."""
        return float(self.costs[source].expected(x[None])[0])

    def paid(self, source: int, x: Array, cost: float) -> None:
        """What an evaluation at x has cost."""
        self._paid[source].append((*x, cost))
        self._most = max(self._most, cost)
        for other, model in enumerate(self._costs):
            if isinstance(model, MeasuredCost) and model.posterior is None:
                self._costs[other] = model.guessed(self._most)
        n = len(self._paid[source])
        if isinstance(self._costs[source], MeasuredCost) and learning_time(n) == n:
            self._due[source] = n
