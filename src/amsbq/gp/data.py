"""Observations (s_n, x_n, y_n), checked.

An observation with a NaN location is one of the integral of its source, ∫ f_s dπ. An evaluation with a gradient is an
observation of the value, followed by one of each derivative ∂f_s/∂x_d.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..common.validation import Array, IntArray, brief, non_negative, numbers, read_only, source_numbers, vector
from ..measures.base import Measure

#: entry of `Sites.by` for observations that are not derivatives
VALUE = -1


@dataclass(frozen=True)
class Sites:
    """The sites of n observations: source, location, and whether a value, a derivative or an integral is observed."""

    s: IntArray  # (n,), or (1,) if all belong to one source
    X: Array  # (n, D), NaN for an integral
    by: IntArray  # (n,): the input d of a derivative ∂f_s/∂x_d, else `VALUE`

    @classmethod
    def values(cls, source: int | IntArray, X: Array) -> Sites:
        """Return sites of values at X (n, D), from one source or from one source per point."""
        return cls(np.atleast_1d(source), X, np.full(len(X), VALUE))

    @classmethod
    def blocks(cls, sources: IntArray, by: IntArray, X: Array) -> Sites:
        """Return sites of m values or derivatives of sources (m,) at each of n locations: n m in all, by location."""
        n, m = len(X), len(by)
        return cls(np.tile(sources, n), np.repeat(X, m, axis=0), np.tile(by, n))

    def __len__(self) -> int:
        return len(self.X)

    @property
    def of_integral(self) -> NDArray[np.bool_]:
        """Whether each observation is one of an integral, shape (n,)."""
        return np.isnan(self.X[:, 0])

    @property
    def differentiated(self) -> NDArray[np.bool_]:
        """Whether each observation is one of a derivative, shape (n,)."""
        return np.asarray(self.by != VALUE)

    def rows(self, rows: Any) -> Sites:
        """Return some of the observations."""
        return Sites(np.broadcast_to(self.s, len(self))[rows], self.X[rows], self.by[rows])

    def latent_slopes(self, measure: Measure) -> Array:
        """Return dz_d/dx_d of the latent coordinate z_d for each observed derivative ∂f/∂x_d, 1 for others: (n,)."""
        slopes = np.ones(len(self))
        which = np.flatnonzero(self.differentiated)
        if len(which) and (all_slopes := measure.latent_slopes(self.X[which])) is not None:
            slopes[which] = all_slopes[np.arange(len(which)), self.by[which]]
        return slopes

    def per_width(self, measure: Measure) -> Array:
        """Return the unit of each observation, (n,): 1 for values, 1 / width of the coordinate for derivatives."""
        units = self.latent_slopes(measure)
        which = self.differentiated
        units[which] /= measure.latent.width[self.by[which]]
        return units


@dataclass(frozen=True)
class Data:
    """N observations of L sources."""

    s: IntArray  # (N,)
    X: Array  # (N, D)
    y: Array  # (N,)
    noise_var: Array  # (N,): the known noise variance of each, on top of the noise of its source
    by: IntArray = None  # type: ignore[assignment]  # (N,): as in `Sites`; by default all are values

    def __post_init__(self) -> None:
        if self.by is None:
            object.__setattr__(self, "by", np.full(len(self.y), VALUE))

    @classmethod
    def checked(
        cls,
        measure: Measure,
        n_sources: int,
        sources: ArrayLike,
        X: ArrayLike,
        y: ArrayLike,
        noise_var: ArrayLike | None = None,
        gradients: ArrayLike | None = None,
    ) -> Data:
        """Check a user's observations and return them; ``gradients`` (N, D) are NaN where unknown."""
        X = measure.check_points(X)
        s = source_numbers(sources, n_sources, len(X))
        y = numbers(y, "y")
        if y.shape != (len(X),):
            raise ValueError(f"y must have shape ({len(X)},), one value for each row of X, got shape {y.shape}")
        known = vector(0.0 if noise_var is None else noise_var, "noise_var", len(X))
        data = cls(s, X, y, non_negative(known, "noise_var"))
        return data if gradients is None else data.with_gradients(measure, checked_gradients(measure, X, gradients))

    def with_gradients(self, measure: Measure, gradients: Array) -> Data:
        """Return these values, each followed by its derivatives (N, D), where these are not NaN.

        Derivatives with respect to latent coordinates, in units of their widths, have the noise variance of the value.
        """
        known = np.isfinite(meaningful(measure, gradients))
        n, (row, by) = len(self.y), np.nonzero(known)
        if not len(row):
            return self
        order = np.argsort(np.concatenate([np.arange(n), row]), kind="stable")
        index, of = np.concatenate([np.arange(n), row])[order], np.concatenate([np.full(n, VALUE), by])[order]
        y = np.concatenate([self.y, gradients[known]])[order]
        sites = Sites(self.s[index], self.X[index], of)
        units = sites.per_width(measure)
        # where a latent coordinate does not vary with its input, no model lets the source vary either
        return Data(sites.s, sites.X, y, self.noise_var[index] * units**2, of).rows(units > 0)

    @property
    def sites(self) -> Sites:
        """What is observed."""
        return Sites(self.s, self.X, self.by)

    @property
    def values(self) -> Data:
        """The observations of values and of integrals."""
        return self.rows(self.by == VALUE) if self.has_gradients else self

    @property
    def has_gradients(self) -> bool:
        """Whether there are derivatives among the observations."""
        return bool((self.by != VALUE).any())

    def gradients(self) -> Array:
        """Return the derivatives of each value, NaN where there is none: (n, D) for n values."""
        of_value = self.by == VALUE
        out = np.full((int(of_value.sum()), self.X.shape[1]), np.nan)
        row = np.cumsum(of_value)[~of_value] - 1
        out[row, self.by[~of_value]] = self.y[~of_value]
        return out

    def rescaled(self, units: Array) -> Data:
        """Return the observations in other units (N,), in which values keep the unit one."""
        return replace(self, y=self.y / units, noise_var=self.noise_var / units / units)

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
        """Return the first n values, with their derivatives."""
        return self.rows(slice(self._starts()[: n + 1][-1]))

    def one_by_one(self, start: int) -> Iterator[Data]:
        """Yield the values from number ``start`` on, each with its derivatives."""
        starts = self._starts()
        for i in range(start, len(starts) - 1):
            yield self.rows(slice(starts[i], starts[i + 1]))

    def _starts(self) -> IntArray:
        """Return the row of each value, and the number of rows."""
        return np.append(np.flatnonzero(self.by == VALUE), len(self.y))

    def thinned(self, most: int, beside: Data | None = None) -> Data:
        """Return at most ``most`` observations, shared as equally as possible between sources.

        At most half of them are derivatives, evenly spaced, unless there are fewer values. Observations that show how
        sources differ come first: those at locations where a source with fewer observations was observed too, or at
        those of the observations ``beside``. The rest is evenly spaced.
        """
        if len(self.y) <= most:
            return self
        if self.has_gradients:
            derivatives = self.rows(self.by != VALUE)
            values = self.values.thinned(max(most - len(derivatives.y), most // 2), beside)
            some = _evenly(np.arange(len(derivatives.y)), most - len(values.y))
            return values.followed_by(derivatives.rows(some))
        groups = sorted((np.flatnonzero(self.s == source) for source in np.unique(self.s)), key=len)
        kept: list[IntArray] = []
        locations = set() if beside is None else {x.tobytes() for x in beside.X}
        for i, group in enumerate(groups):  # the smallest first: what they do not use is left to the others
            left = most - sum(len(rows) for rows in kept)
            share = min(len(group), left // (len(groups) - i))
            shared = np.array([x.tobytes() in locations for x in self.X[group]], dtype=bool)
            first = _evenly(group[shared], share)
            rows = np.append(first, _evenly(group[~shared], share - len(first)))
            kept.append(rows)
            locations.update(x.tobytes() for x in self.X[rows])
        return self.rows(np.sort(np.concatenate(kept)))

    def without_most_secondary(self, most: int) -> Data:
        """Return all observations of the primary source, and as many of others as fit into ``most`` in total."""
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
        return self.sites.of_integral

    def sorted(self) -> Data:
        """Return the observations in a canonical order, independent of the order of arrival."""
        return self.rows(self.canonical())

    def canonical(self) -> IntArray:
        """Return the row numbers of the observations in canonical order."""
        return np.lexsort((self.s, self.noise_var, self.y, self.by, *self.X.T[::-1]))


def _evenly(rows: IntArray, n: int) -> IntArray:
    """Return n evenly spaced rows, or all if there are fewer."""
    return np.asarray(rows[np.linspace(0, len(rows) - 1, min(n, len(rows))).round().astype(int)])


def checked_gradients(measure: Measure, X: Array, gradients: ArrayLike, name: str = "gradients") -> Array:
    """Check the gradients (n, D) of values at X (n, D) and return them.

    Derivatives that are unknown or not meaningful are NaN.
    """
    found = np.asarray(gradients)
    if found.dtype.kind not in "fiu" or found.shape != X.shape or np.isinf(found).any():
        raise ValueError(
            f"{name} must have shape {X.shape}, a number for each input, or NaN where unknown; got {brief(gradients)}"
        )
    return meaningful(measure, found)


def meaningful(measure: Measure, gradients: Array) -> Array:
    """Return gradients (n, D) with NaN for the meaningless derivatives with respect to inputs with isolated values."""
    found = np.full(gradients.shape, np.nan)
    found[:, measure.continuous] = gradients[:, measure.continuous]
    return found
