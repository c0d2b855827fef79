"""Observations (s_n, x_n, y_n), checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..measures.base import Measure
from ..validation import Array, IntArray, non_negative, numbers, read_only, source_numbers, vector


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
        of_source = noise[s]
        if noise_var is None:
            return cls(s, X, y, read_only(of_source))
        return cls(s, X, y, read_only(of_source + non_negative(vector(noise_var, "noise_var", len(X)), "noise_var")))

    def only(self, source: int) -> Data:
        """The observations of one source."""
        return self.at(self.s == source)

    def at(self, rows: Any) -> Data:
        """Some of the observations."""
        return Data(*(read_only(values[rows]) for values in vars(self).values()))

    def first(self, n: int) -> Data:
        """The first n observations."""
        return self.at(slice(n))

    def one_by_one(self, start: int) -> Iterator[Data]:
        """Each observation from that number on."""
        for i in range(start, len(self.y)):
            yield self.at(slice(i, i + 1))

    def thinned(self, most: int) -> Data:
        """No more than so many, of each source as many as of another if it has them, evenly from first to last."""
        if len(self.y) <= most:
            return self
        groups = sorted((np.flatnonzero(self.s == source) for source in np.unique(self.s)), key=len)
        kept: list[IntArray] = []
        for i, group in enumerate(groups):  # the smallest first: what they leave is for the others
            left = most - sum(len(rows) for rows in kept)
            share = min(len(group), left // (len(groups) - i))
            kept.append(group[np.linspace(0, len(group) - 1, share).round().astype(int)])
        return self.at(np.sort(np.concatenate(kept)))

    def followed_by(self, new: Data) -> Data:
        """These observations and then the new ones."""
        mine, theirs = vars(self).values(), vars(new).values()
        return Data(*(read_only(np.concatenate(pair)) for pair in zip(mine, theirs, strict=True)))

    def ordered(self) -> Data:
        """The same observations in an order of their own, whatever that in which they came."""
        order = np.lexsort((self.s, self.noise_var, self.y, *self.X.T[::-1]))
        return self.at(order)
