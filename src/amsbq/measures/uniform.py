"""`Uniform`: the uniform distribution on a box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..common.validation import Array, brief, numbers, read_only
from .base import Measure, broadcast_vectors
from .marginals import UniformMarginal


class Uniform(Measure):
    """The uniform distribution on a box.

    Parameters
    ----------
    lower, upper : float or sequence of D floats
        Corners of the box; a single number stands for all inputs.

    Examples
    --------
    >>> Uniform([0, 0], 1).bounds
    array([[0., 1.],
           [0., 1.]])
    """

    def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None:
        lower, upper = broadcast_vectors(numbers(lower, "lower"), numbers(upper, "upper"), "lower", "upper")
        if (lower >= upper).any():
            raise ValueError(f"lower must be below upper, got {brief(lower)} and {brief(upper)}")
        with np.errstate(over="ignore"):
            width = upper - lower
        if not np.isfinite(width).all():
            raise ValueError(f"upper - lower must be finite, got {brief(lower)} and {brief(upper)}")
        self.dim = len(lower)
        self.bounds = read_only(np.column_stack([lower, upper]))
        self.width = read_only(width)
        self.marginals = tuple(UniformMarginal(float(a), float(b)) for a, b in self.bounds)

    def __repr__(self) -> str:
        return f"Uniform({self.bounds[:, 0].tolist()}, {self.bounds[:, 1].tolist()})"

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        low, high = self.bounds.T
        return rng.uniform(low, high, size=(n, self.dim))

    def from_cube(self, U: Array) -> Array:
        """Map points U (n, D) of the unit cube to points of the box, shape (n, D)."""
        return np.asarray(self.bounds[:, 0] + U * self.width)

    def over(self, inputs: Sequence[int]) -> Uniform:
        """Return the uniform distribution of the given inputs."""
        return Uniform(*self.bounds[list(inputs)].T)

    def to_dict(self) -> dict[str, Any]:
        """Return the class and the corners of the box, as plain lists."""
        lower, upper = self.bounds.T.tolist()
        return {"class": "Uniform", "lower": lower, "upper": upper}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Uniform:
        """Rebuild the uniform distribution from the output of `to_dict`."""
        return cls(content["lower"], content["upper"])
