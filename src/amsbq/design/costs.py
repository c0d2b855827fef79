"""Costs that are known: a constant, or a function of the input.

A rate divides by cost, so an uncertain cost c counts by E[1/c]: its *effective* cost is 1 / E[1/c]. What is reserved in
a budget is the *expected* cost E[c]. Where the cost is known, both are the cost itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..measures.base import Measure
from ..validation import Array, brief, positive_number, read_only


@dataclass(frozen=True)
class CostSettings:
    """How costs are checked, differentiated and added up."""

    #: locations at which a cost function is tried before anything is spent: enough to meet most of its branches
    tried: int = 64
    #: step of central differences, as a share of an input's width: near the cube root of the machine precision
    difference_step: float = 1e-5
    #: relative rounding error that the sum of costs may have before it counts as above the budget
    rounding: float = 1e-12


SETTINGS = CostSettings()


def affordable(cost: Any, budget: float) -> Any:
    """Return whether a sum of costs, or each of an array of them, is within a budget but for rounding."""
    return cost <= budget * (1 + SETTINGS.rounding)


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
    function, is an error that names the source and the location; it is not hidden, because a wrong cost would silently
    change what is evaluated.

    Parameters
    ----------
    measure : Measure
        The distribution of the inputs.
    function : callable
        Called with x of shape (D,). If it has a method ``gradient(x)`` that returns shape (D,), this is used instead of
        central differences.
    name : str
        What error messages call it.
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
