"""Observations (s_n, x_n, y_n), checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .checks import Array, IntArray, frozen, non_negative, numbers, source_numbers, vector
from .measures import Measure


@dataclass(frozen=True)
class Data:
    """N observations of L sources."""

    s: IntArray  # (N,)
    X: Array  # (N, D)
    y: Array  # (N,)
    noise_var: Array  # (N,), the whole noise variance of each

    @classmethod
    def checked(
        cls,
        measure: Measure,
        noise: Array,
        sources: ArrayLike,
        X: ArrayLike,
        y: ArrayLike,
        noise_var: ArrayLike | None,
    ) -> Data:
        """What a user gave, for sources with noise variances ``noise`` (L,)."""
        X = measure.check_points(X)
        s = source_numbers(sources, len(noise), len(X))
        y = numbers(y, "y")
        if y.shape != (len(X),):
            raise ValueError(f"y must have shape ({len(X)},), one value for each row of X, got shape {y.shape}")
        extra = non_negative(vector(0.0 if noise_var is None else noise_var, "noise_var", len(X)), "noise_var")
        return cls(s, X, y, frozen(noise[s] + extra))

    def only(self, source: int) -> Data:
        """The observations of one source."""
        return Data(*(frozen(values[self.s == source]) for values in vars(self).values()))

    def first(self, n: int) -> Data:
        """The first n observations."""
        return Data(*(frozen(values[:n]) for values in vars(self).values()))

    def followed_by(self, new: Data) -> Data:
        """These observations and then the new ones."""
        mine, theirs = vars(self).values(), vars(new).values()
        return Data(*(frozen(np.concatenate(pair)) for pair in zip(mine, theirs, strict=True)))

    def ordered(self) -> Data:
        """The same observations in an order of their own, whatever that in which they came."""
        order = np.lexsort((self.s, self.noise_var, self.y, *self.X.T[::-1]))
        return Data(*(frozen(values[order]) for values in vars(self).values()))
