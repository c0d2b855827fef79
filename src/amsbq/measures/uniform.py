"""uniform."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..validation import Array, brief, numbers, read_only
from .base import Measure, _same_length
from .marginals import UniformMarginal


class Uniform(Measure):
    """The uniform distribution on a box.

    Parameters
    ----------
    lower, upper : float or sequence of D floats
        The corners of the box; a number stands for all dimensions of the other.

    >>> Uniform([0, 0], 1).bounds
    array([[0., 1.],
           [0., 1.]])
    """

    def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None:
        lower, upper = _same_length(numbers(lower, "lower"), numbers(upper, "upper"), "lower", "upper")
        if (lower >= upper).any():
            raise ValueError(f"lower must be below upper, got {brief(lower)} and {brief(upper)}")
        self.dim = len(lower)
        self.bounds = read_only(np.column_stack([lower, upper]))
        self.width = read_only(upper - lower)
        self.marginals = tuple(UniformMarginal(float(a), float(b)) for a, b in self.bounds)

    def __repr__(self) -> str:
        return f"Uniform({self.bounds[:, 0].tolist()}, {self.bounds[:, 1].tolist()})"

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        low, high = self.bounds.T
        return rng.uniform(low, high, size=(n, self.dim))

    def from_cube(self, U: Array) -> Array:
        return np.asarray(self.bounds[:, 0] + U * self.width)

    def over(self, inputs: Sequence[int]) -> Uniform:
        return Uniform(*self.bounds[list(inputs)].T)
