"""Costs that are learned: a Gaussian process over the logarithm of what evaluations of a source cost.

If log c is normal with mean μ and variance σ², the effective cost 1 / E[1/c] is exp(μ - σ²/2) and the expected cost
E[c] is exp(μ + σ²/2).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from ..gp.data import Data
from ..gp.posterior_batch import PosteriorBatch
from ..inference.belief import SETTINGS as LEARNING
from ..inference.log_posterior import LogPosterior
from ..inference.priors import LogGamma, Normal, StudentT
from ..inference.sampling import most_probable
from ..inference.schedule import scheduled_refit
from ..inference.structures import ModelPrior, TermPrior
from ..measures.base import Measure
from ..validation import Array
from .costs import ConstantCost, Cost, CostFunction
from .sources import CostLike

#: prior of log c: another unit of cost only shifts it; it varies slowly, by a factor of about e; timings are noisy by
#: some percent
LOG_COST_PRIOR = ModelPrior(
    (TermPrior(LogGamma(0.5, 3.0)),),
    amplitude=StudentT(-0.5, 0.7, 4.0),
    level=10.0,
    log_noise=Normal(float(np.log(1e-2)), 2.0),
    spread=1.0,
)


class MeasuredCost(Cost):
    """A cost learned from evaluations: a Gaussian process over log c at the mode of its hyperparameters.

    Parameters
    ----------
    measure : Measure
        The distribution of the inputs.
    X : (n, D) array
        Where the source was evaluated.
    costs : (n,) array
        What these evaluations cost.
    otherwise : float, optional
        The cost to assume while there are no data; None if nothing is known that could be assumed.
    """

    def __init__(self, measure: Measure, X: Array, costs: Array, otherwise: float | None = None) -> None:
        super().__init__(measure)
        self.otherwise = otherwise
        self.level: float = 0.0
        self.posterior: PosteriorBatch | None = None
        if len(costs):
            n = len(costs)
            data = Data(np.zeros(n, dtype=np.intp), X, np.log(costs), np.zeros(n)).thinned(LEARNING.most_observations)
            log_posterior = LogPosterior(LOG_COST_PRIOR, measure, data, ["learn"])
            self.level = float(log_posterior.units.levels[0])
            self.posterior = log_posterior.condition(most_probable(log_posterior).Theta)

    def assuming(self, cost: float) -> MeasuredCost:
        """Return a copy that assumes another cost while there are no data."""
        other = copy(self)
        other.otherwise = cost
        return other

    def effective(self, X: Array) -> Array:
        """Return exp(μ - σ²/2) at each X_i, shape (n,)."""
        mean, variance = self._log_cost(X)
        return np.exp(mean - 0.5 * variance)

    def expected(self, X: Array) -> Array:
        """Return exp(μ + σ²/2) at each X_i, shape (n,); zeros if nothing is known, so that nothing is reserved."""
        if self.posterior is None and self.otherwise is None:
            return np.zeros(len(X))
        mean, variance = self._log_cost(X)
        return np.exp(mean + 0.5 * variance)

    def _log_cost(self, X: Array) -> tuple[Array, Array]:
        """Return mean and variance of the log cost of one evaluation at each X_i."""
        if self.posterior is None:
            return np.full(len(X), np.log(self.otherwise or 1.0)), np.zeros(len(X))
        mean, variance = self.posterior.predict(0, X)  # in standard units, of spread one and level zero
        return self.level + mean[0], variance[0] + self.posterior.models.noise[0, 0]


class SourceCosts:
    """The costs of all sources; those that are "measured" are learned again on the schedule of hyperparameters.

    Parameters
    ----------
    costs : list of float, callable or "measured"
        One for each source.
    names : list of str
        Names of the sources, for error messages.
    measure : Measure
        The distribution of the inputs.
    """

    def __init__(self, costs: Sequence[CostLike], names: Sequence[str], measure: Measure) -> None:
        self.measure = measure
        self._costs = [self._cost(cost, name) for cost, name in zip(costs, names, strict=True)]
        self._paid: list[list[tuple[float, ...]]] = [[] for _ in costs]  # (*x, cost) for each source
        self._due: dict[int, int] = {}  # sources whose cost is to be learned, from that many evaluations
        self._largest = 0.0

    def _cost(self, cost: CostLike, name: str) -> Cost:
        if isinstance(cost, str):
            return MeasuredCost(self.measure, np.zeros((0, self.measure.dim)), np.zeros(0))
        if callable(cost):
            return CostFunction(self.measure, cost, f"cost of {name}")
        return ConstantCost(self.measure, cost)

    @property
    def costs(self) -> list[Cost]:
        """The cost of each source; learning what is due takes some milliseconds."""
        for source, n in self._due.items():
            rows = np.array(sorted(self._paid[source][:n]))  # sorted: the order of evaluations must not matter
            self._costs[source] = MeasuredCost(self.measure, rows[:, :-1], rows[:, -1])
        self._due.clear()
        return self._costs

    def dearest_first(self) -> list[int] | None:
        """Return the primary source and then the others by their costs at the median; None if one is "measured"."""
        if any(isinstance(cost, MeasuredCost) for cost in self._costs):
            return None
        prices = [self.expected(source, self.measure.median) for source in range(len(self._costs))]
        return [0, *sorted(range(1, len(prices)), key=lambda source: -prices[source])]

    def unknown(self, source: int) -> bool:
        """Return whether nothing is known of the cost of a source."""
        return isinstance(self._costs[source], MeasuredCost) and not self._paid[source]

    def expected(self, source: int, x: Array) -> float:
        """Return the cost to reserve for an evaluation at x, shape (D,)."""
        return float(self.costs[source].expected(x[None])[0])

    def paid(self, source: int, x: Array, cost: float) -> None:
        """Record what an evaluation at x, shape (D,), has cost."""
        self._paid[source].append((*x, cost))
        self._largest = max(self._largest, cost)
        for other, model in enumerate(self._costs):
            if isinstance(model, MeasuredCost) and model.posterior is None:
                self._costs[other] = model.assuming(self._largest)
        n = len(self._paid[source])
        if isinstance(self._costs[source], MeasuredCost) and scheduled_refit(n) == n:
            self._due[source] = n
