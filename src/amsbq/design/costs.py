"""costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from ..measures.base import Measure
from ..validation import Array, brief, positive_number, read_only

CHECKED = 64  #: points at which a cost function is tried before anything is spent


def affordable(cost: Any, budget: float) -> Any:
    """Whether costs that were added up are within a budget, but for the rounding of the sum."""
    return cost <= budget * (1 + 1e-12)


class Cost(ABC):
    """The cost of evaluating a source at any input."""

    def __init__(self, measure: Measure) -> None:
        self.measure = measure

    @abstractmethod
    def effective(self, X: Array) -> Array:
        """1 / E[1/c] at each X_i, shape (n,)."""

    def expected(self, X: Array) -> Array:
        """E[c] at each X_i, shape (n,); the same where the cost is known."""
        return self.effective(X)

    def effective_and_grad(self, X: Array) -> tuple[Array, Array]:
        """The effective cost, and its gradient (n, D) by central differences inside the support."""
        n, D = X.shape
        steps = 1e-5 * np.diag(self.measure.width)
        low, high = self.measure.bounds.T
        ahead, behind = (np.clip(X[:, None, :] + shift, low, high) for shift in (steps, -steps))
        together = np.concatenate([X, ahead.reshape(-1, D), behind.reshape(-1, D)])
        values, forward, backward = np.split(self.effective(together), [n, n + n * D])
        distances = np.einsum("idd->id", ahead - behind)
        return values, (forward - backward).reshape(n, D) / np.where(distances > 0, distances, 1.0)


class ConstantCost(Cost):
    """The same everywhere."""

    def __init__(self, measure: Measure, cost: float) -> None:
        super().__init__(measure)
        self.cost = cost

    def effective(self, X: Array) -> Array:
        return np.full(len(X), self.cost)

    def effective_and_grad(self, X: Array) -> tuple[Array, Array]:
        return self.effective(X), np.zeros_like(X)


class CostFunction(Cost):
    """A function of the input, x of shape (D,) at a time; its gradient is used if it has one as ``gradient(x)``."""

    def __init__(self, measure: Measure, function: Callable[[Array], Any], name: str = "cost") -> None:
        super().__init__(measure)
        self.function, self.name = function, name
        for x in measure.sobol(CHECKED, 0):
            self._at(x)

    def effective(self, X: Array) -> Array:
        costs = np.full(len(X), np.inf)  # nothing is asked where it makes no sense
        for i, x in enumerate(X):
            with suppress(Exception):
                costs[i] = self._at(x)
        return costs

    def effective_and_grad(self, X: Array) -> tuple[Array, Array]:
        gradient = getattr(self.function, "gradient", None)
        if gradient is None:
            return super().effective_and_grad(X)
        return self.effective(X), np.array([gradient(x) for x in X], dtype=float).reshape(X.shape)

    def _at(self, x: Array) -> float:
        try:
            cost = self.function(read_only(x.copy()))
        except Exception as error:
            raise ValueError(f"{self.name} at x = {brief(x)} raised {type(error).__name__}: {error}") from error
        if isinstance(cost, float) and 0 < cost < np.inf:
            return cost
        return positive_number(cost, f"{self.name} at x = {brief(x)}")
