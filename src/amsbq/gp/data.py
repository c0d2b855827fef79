"""Observations (s_n, x_n, y_n), checked.

An observation whose location is not a number is one of the integral of its source, ∫ f_s dπ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..measures.base import Measure
from ..validation import Array, IntArray, non_negative, numbers, read_only, source_numbers, vector


@dataclass(frozen=True)
class Data:
    """N observations of L sources."""

    s: IntArray  # (N,)
    X: Array  # (N, D)
    y: Array  # (N,)
    noise_var: Array  # (N,): the known noise variance of each, on top of the noise of its source

    @classmethod
    def checked(
        cls,
        measure: Measure,
        n_sources: int,
        sources: ArrayLike,
        X: ArrayLike,
        y: ArrayLike,
        noise_var: ArrayLike | None = None,
    ) -> Data:
        """Return the observations that a user has passed, or raise with what is wrong with them."""
        X = measure.check_points(X)
        s = source_numbers(sources, n_sources, len(X))
        y = numbers(y, "y")
        if y.shape != (len(X),):
            raise ValueError(f"y must have shape ({len(X)},), one value for each row of X, got shape {y.shape}")
        known = vector(0.0 if noise_var is None else noise_var, "noise_var", len(X))
        return cls(s, X, y, non_negative(known, "noise_var"))

    @classmethod
    def of_integrals(cls, sources: Sequence[int], values: ArrayLike, variances: ArrayLike, dim: int) -> Data:
        """Return observations of the integrals of sources, with the variances of their errors."""
        s, y, noise_var = np.array(sources, dtype=np.intp), np.array(values, float), np.array(variances, float)
        return cls(s, np.full((len(s), dim), np.nan), y, noise_var)

    @classmethod
    def empty(cls, dim: int) -> Data:
        """Return no observations."""
        return cls(np.zeros(0, dtype=np.intp), np.zeros((0, dim)), np.zeros(0), np.zeros(0))

    def of_source(self, source: int) -> Data:
        """Return the observations of one source."""
        return self.rows(self.s == source)

    def rows(self, rows: Any) -> Data:
        """Return some of the observations."""
        return Data(*(read_only(values[rows]) for values in vars(self).values()))

    def first(self, n: int) -> Data:
        """Return the first n observations."""
        return self.rows(slice(n))

    def one_by_one(self, start: int) -> Iterator[Data]:
        """Yield each observation from that number on."""
        for i in range(start, len(self.y)):
            yield self.rows(slice(i, i + 1))

    def thinned(self, most: int, beside: Data | None = None) -> Data:
        """Return at most ``most`` observations, shared as equally as possible between sources.

        Of each source there are first those at locations where a source with fewer observations was observed too, or
        at those of the observations ``beside``, which show how sources differ; then others at even intervals.
        """
        if len(self.y) <= most:
            return self
        groups = sorted((np.flatnonzero(self.s == source) for source in np.unique(self.s)), key=len)
        kept: list[IntArray] = []
        locations = set() if beside is None else {x.tobytes() for x in beside.X}
        for i, group in enumerate(groups):  # the smallest first: what they leave is for the others
            left = most - sum(len(rows) for rows in kept)
            share = min(len(group), left // (len(groups) - i))
            shared = np.array([x.tobytes() in locations for x in self.X[group]], dtype=bool)
            first = _evenly(group[shared], share)
            rows = np.append(first, _evenly(group[~shared], share - len(first)))
            kept.append(rows)
            locations.update(x.tobytes() for x in self.X[rows])
        return self.rows(np.sort(np.concatenate(kept)))

    def without_most_secondary(self, most: int) -> Data:
        """Return all observations of the primary source, and as many of others as make it ``most`` in all."""
        primary = self.s == 0
        secondary = self.rows(~primary)
        fewer = secondary.thinned(max(most - int(primary.sum()), most // 2), self.rows(primary))
        return self if len(fewer.y) == len(secondary.y) else self.rows(primary).followed_by(fewer)

    def followed_by(self, new: Data) -> Data:
        """Return these observations and then the new ones."""
        mine, theirs = vars(self).values(), vars(new).values()
        return Data(*(read_only(np.concatenate(pair)) for pair in zip(mine, theirs, strict=True)))

    @property
    def of_integral(self) -> NDArray[np.bool_]:
        """Whether each observation is one of an integral, shape (N,)."""
        return of_integral(self.X)

    def sorted(self) -> Data:
        """Return the observations in a canonical order, which does not depend on the order of arrival."""
        return self.rows(np.lexsort((self.s, self.noise_var, self.y, *self.X.T[::-1])))


def _evenly(rows: IntArray, n: int) -> IntArray:
    """Return n of the rows, or all if there are fewer, at even intervals."""
    return np.asarray(rows[np.linspace(0, len(rows) - 1, min(n, len(rows))).round().astype(int)])


def of_integral(X: Array) -> NDArray[np.bool_]:
    """Return whether observations at locations X (n, D) are those of an integral, shape (n,)."""
    return np.isnan(X[:, 0])
