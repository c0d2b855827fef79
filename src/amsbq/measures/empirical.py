"""empirical."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ..validation import Array, non_negative, numbers, points, read_only
from .base import NORMAL_WIDTH, Measure


class Empirical(Measure):
    """Weighted samples, for example of a posterior distribution: integrals are weighted averages over them.

    ``bounds`` is the box around the samples. Sources may be evaluated anywhere, in the box or out of it.

    Parameters
    ----------
    samples : (M, D) array, or (M,) for a single input
    weights : (M,) array, optional
        Non-negative, in any unit: they are normalised. Equal weights by default.

    >>> Empirical([[0.0], [1.0]], weights=[1, 3]).weights
    array([0.25, 0.75])
    """

    marginals = None

    def __init__(self, samples: ArrayLike, weights: ArrayLike | None = None) -> None:
        self.samples = points(samples, None, "samples")
        n, self.dim = self.samples.shape
        if n == 0 or self.dim == 0:
            raise ValueError(f"samples must hold at least one sample of at least one input, got shape {(n, self.dim)}")
        if weights is None:
            self.weights = read_only(np.full(n, 1 / n))
        else:
            given = non_negative(numbers(weights, "weights"), "weights")
            if given.shape != (n,):
                raise ValueError(f"weights must have shape ({n},), one per sample, got shape {given.shape}")
            if not given.any():
                raise ValueError("weights must not all be zero")
            given = given / given.max()  # the sum of huge weights would overflow
            self.weights = read_only(given / given.sum())
        self.bounds = read_only(np.column_stack([self.samples.min(axis=0), self.samples.max(axis=0)]))
        self.width = read_only(np.array([self._interquartile_width(column) for column in self.samples.T]))

    def __repr__(self) -> str:
        return f"Empirical(<{len(self.samples)} samples of {self.dim} inputs>)"

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return self.samples[rng.choice(len(self.samples), size=n, p=self.weights)]

    def from_cube(self, U: Array) -> Array:
        order = np.argsort(self.samples[:, 0], kind="stable")
        return self.samples[order[np.searchsorted(np.cumsum(self.weights[order])[:-1], U[:, 0])]]

    def over(self, inputs: Sequence[int]) -> Empirical:
        return Empirical(self.samples[:, list(inputs)], self.weights)

    def same_as(self, other: Measure) -> bool:
        return isinstance(other, Empirical) and all(
            np.array_equal(mine, theirs)
            for mine, theirs in ((self.samples, other.samples), (self.weights, other.weights))
        )

    def check_points(self, X: ArrayLike, name: str = "X") -> Array:
        return points(X, self.dim, name)

    @cached_property
    def axes(self) -> Array:
        deviations = self.samples - self.weights @ self.samples
        covariance = (self.weights * deviations.T) @ deviations
        try:
            return read_only(np.asarray(NORMAL_WIDTH * np.linalg.cholesky(covariance), dtype=float))
        except np.linalg.LinAlgError:  # fewer samples than inputs, or an input that never changes
            return np.diag(self.width)

    @cached_property
    def reach(self) -> Array:
        u = np.linalg.solve(self.axes, (self.samples - self.median).T)
        return read_only(np.column_stack([u.min(axis=1), u.max(axis=1)]))

    def _interquartile_width(self, column: Array) -> float:
        order = np.argsort(column)
        below = np.cumsum(self.weights[order]) - 0.5 * self.weights[order]
        low, high = np.interp([0.25, 0.75], below, column[order])
        return float(2 * (high - low) or np.ptp(column) or 1.0)  # of values that repeat, their range
