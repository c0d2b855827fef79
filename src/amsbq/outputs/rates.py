"""The acquisition rate of several outputs: the sum of what evaluations tell of each of their integrals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np

from ..validation import Array, IntArray


class AnyRate(Protocol):
    """A rate of observations to come, of one output or of several."""

    @property
    def costs(self) -> Sequence[Any]:
        """The cost of each source."""

    @property
    def paid(self) -> float:
        """The effective cost of the observations of a set that are chosen already."""

    @property
    def n_observations(self) -> int:
        """The number of observations that the posteriors are conditioned on."""

    @property
    def within(self) -> float:
        """The share of the variance that is not between the posteriors: what observations can take off."""

    def source_of(self, option: int) -> int:
        """Return the source of an option: a source, or, by a number beyond those, one with its gradient."""

    def variance(self) -> Array:
        """Return the variance of the integral, averaged over the posteriors, in their units: shape () or (M,)."""

    def values(self, sources: Sequence[int], X: Array) -> Array:
        """Return the rate of one more observation of each of several sources at each X_i, shape (sources, n)."""

    def value_and_grad(self, source: int | IntArray, X: Array) -> tuple[Array, Array]:
        """Return the rate of a source, or of one per point, shape (n,), and its gradient dα_i/dX_i, shape (n, D)."""

    def joint(self, sources: IntArray, X: Array) -> float:
        """Return the rate of a whole set of observations."""

    def joint_and_grad(self, sources: IntArray, X: Array) -> tuple[float, Array]:
        """Return the rate of a whole set of observations, and its gradient in all the locations, shape (n, D)."""

    def after(self, source: int, x: Array) -> Self:
        """Return the rate of sets that contain one more observation, at x of shape (1, D)."""

    def having(self, sources: IntArray, X: Array) -> Self:
        """Return the rate if observations were there already, whatever their values."""


@dataclass(frozen=True)
class SummedRate:
    """The rate of observations of several outputs: what they tell of each integral, weighted and added up.

    Parameters
    ----------
    parts : tuple of AnyRate
        One for each output; all have the same costs.
    weights : (M,) array
        How much each of them counts.
    """

    parts: tuple[AnyRate, ...]
    weights: Array

    @property
    def costs(self) -> Sequence[Any]:
        """The cost of each source."""
        return self.parts[0].costs

    @property
    def paid(self) -> float:
        """The effective cost of the observations of a set that are chosen already."""
        return self.parts[0].paid

    @property
    def n_observations(self) -> int:
        """The number of observations of all outputs that the posteriors are conditioned on."""
        return sum(part.n_observations for part in self.parts)

    def source_of(self, option: int) -> int:
        """Return the option itself: gradients are those of a single output."""
        return option

    @property
    def within(self) -> float:
        """The smallest share of the variance of an integral that is not between its posteriors."""
        return min(part.within for part in self.parts)

    def variance(self) -> Array:
        """Return the variance of each integral, averaged over its posteriors, in their units: shape (M,)."""
        return np.array([part.variance() for part in self.parts])

    def values(self, sources: Sequence[int], X: Array) -> Array:
        """Return the rate of one more observation of each of several sources at each X_i, shape (sources, n)."""
        return self._sum([part.values(sources, X) for part in self.parts])

    def value_and_grad(self, source: int | IntArray, X: Array) -> tuple[Array, Array]:
        """Return the rate of a source, or of one per point, shape (n,), and its gradient dα_i/dX_i, shape (n, D)."""
        values, gradients = zip(*(part.value_and_grad(source, X) for part in self.parts), strict=True)
        return self._sum(values), self._sum(gradients)

    def joint(self, sources: IntArray, X: Array) -> float:
        """Return the rate of a whole set of observations."""
        return float(self._sum([np.array(part.joint(sources, X)) for part in self.parts]))

    def joint_and_grad(self, sources: IntArray, X: Array) -> tuple[float, Array]:
        """Return the rate of a whole set of observations, and its gradient in all the locations, shape (n, D)."""
        values, gradients = zip(*(part.joint_and_grad(sources, X) for part in self.parts), strict=True)
        return float(self._sum([np.array(value) for value in values])), self._sum(gradients)

    def after(self, source: int, x: Array) -> SummedRate:
        """Return the rate of sets that contain one more observation, at x of shape (1, D)."""
        return replace(self, parts=tuple(part.after(source, x) for part in self.parts))

    def having(self, sources: IntArray, X: Array) -> SummedRate:
        """Return the rate if observations were there already, whatever their values."""
        return replace(self, parts=tuple(part.having(sources, X) for part in self.parts))

    def _sum(self, terms: Sequence[Array]) -> Array:
        return np.asarray(sum(weight * term for weight, term in zip(self.weights.tolist(), terms, strict=True)))
