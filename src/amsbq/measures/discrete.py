"""`DiscreteDistribution`: finitely many values of one input, ordered numbers or unordered categories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy

from ..common.validation import Array, brief, read_only

#: Probability of either tail that is cut off if there are infinitely many values; the rest is normalised again.
LEFT_OUT = 1e-13
#: Values of one input, at most: kernel variances are sums over all pairs of them.
MOST_VALUES = 5_000
#: Rounding error that the sum of probabilities may have.
TOTAL_TOLERANCE = 1e-9
#: Added to errors about dictionaries, which may have been meant for something else.
OTHERS = "a dictionary has {value: probability}, an interval is (low, high), a normal input stats.norm(mean, std)"


@dataclass(frozen=True, eq=False)
class DiscreteDistribution:
    """A distribution on finitely many values, with the methods of a frozen scipy.stats distribution.

    Parameters
    ----------
    values : (M,) array
        Ascending; the numbers 0 to M - 1 for categories.
    masses : (M,) array
        The probability of each value; they sum to one.
    labels : tuple of str
        The names of categories, which have no order; empty for numbers.
    text : str
        Code that a user would type for it.
    """

    values: Array
    masses: Array
    labels: tuple[str, ...]
    text: str

    def __repr__(self) -> str:
        return self.text

    def pdf(self, x: Any) -> Array:
        """Return the probability of each x, which is its density with respect to the number of values."""
        return np.asarray(self.masses @ (self.values[:, None] == np.ravel(x))).reshape(np.shape(x))

    def cdf(self, x: Any) -> Array:
        """Return the probability of values up to each x."""
        return np.asarray(np.append(0.0, self._below)[np.searchsorted(self.values, x, side="right")])

    def sf(self, x: Any) -> Array:
        """Return the probability of values above each x."""
        return np.asarray(1 - self.cdf(x))

    def ppf(self, q: Any) -> Array:
        """Return, for each q, the smallest value that is not exceeded with a probability of q or more."""
        return np.asarray(self.values[np.searchsorted(self._below[:-1], q)])

    def isf(self, q: Any) -> Array:
        """Return, for each q, the smallest value that is exceeded with a probability of q or less."""
        return self.ppf(1 - np.asarray(q))

    def rvs(self, size: Any = 1, random_state: Any = None) -> Array:
        """Return independent draws, shape (size,)."""
        return np.asarray(np.random.default_rng(random_state).choice(self.values, size=size, p=self.masses))

    def support(self) -> tuple[float, float]:
        """Return the smallest and the largest value."""
        return float(self.values[0]), float(self.values[-1])

    def nearest(self, x: Array) -> Array:
        """Return the nearest of the values to each x, in the shape of x."""
        middles = 0.5 * (self.values[1:] + self.values[:-1])
        return np.asarray(self.values[np.searchsorted(middles, x)])

    def reordered(self, labels: tuple[str, ...]) -> DiscreteDistribution:
        """Return the same categories in another order."""
        masses = read_only(self.masses[[self.labels.index(label) for label in labels]])
        return DiscreteDistribution(self.values, masses, labels, repr(dict(zip(labels, masses.tolist(), strict=True))))

    def to_dict(self) -> dict[str, Any]:
        """Return the distribution in JSON-serialisable form."""
        content: dict[str, Any] = {
            "discrete": self.text,
            "values": self.values.tolist(),
            "masses": self.masses.tolist(),
        }
        return {**content, "labels": list(self.labels)} if self.labels else content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> DiscreteDistribution:
        """Rebuild the distribution from the output of `to_dict`, exact to the last digit."""
        values, masses = (read_only(np.array(content[key], dtype=float)) for key in ("values", "masses"))
        return cls(values, masses, tuple(content.get("labels", ())), content["discrete"])

    @property
    def accepted(self) -> str:
        """The values in words, for messages."""
        if self.labels:
            return ", ".join(f"{i} ({label})" for i, label in enumerate(self.labels))
        shown = [f"{value:.6g}" for value in self.values]
        return ", ".join(shown if len(shown) <= 8 else [*shown[:4], "...", shown[-1]])

    @property
    def _below(self) -> Array:
        return np.cumsum(self.masses)


def is_discrete(obj: Any) -> bool:
    """Return whether an object is a discrete distribution, valid or not: a dictionary, or one of scipy.stats."""
    return (
        isinstance(obj, Mapping | DiscreteDistribution | scipy.stats.rv_discrete)
        or isinstance(getattr(obj, "dist", None), scipy.stats.rv_discrete)
        or any(parent.__name__ == "DiscreteDistribution" for parent in type(obj).__mro__)  # in scipy 1.15 and later
    )


def from_probabilities(probabilities: Mapping[Any, Any], name: str) -> DiscreteDistribution:
    """Return the discrete distribution defined by a dictionary {value or category name: probability}."""
    keys, given = list(probabilities), list(probabilities.values())
    if not keys:
        raise ValueError(f"{name} must have at least one value: {{value: probability, ...}}, got {{}}")
    if not all(isinstance(p, Real) and not isinstance(p, bool) and 0 <= float(p) <= 1 for p in given):
        raise ValueError(f"the probabilities of {name} must be numbers from 0 to 1, got {brief(given)}; {OTHERS}")
    masses = np.array(given, dtype=float)
    if abs(masses.sum() - 1) > TOTAL_TOLERANCE:
        raise ValueError(f"the probabilities of {name} sum to {masses.sum():.9g}, not to 1; {OTHERS}")
    text = f"{{{', '.join(f'{key!r}: {p:g}' for key, p in probabilities.items())}}}"
    if all(isinstance(key, str) for key in keys):
        values = np.arange(len(keys), dtype=float)
        return _made(values, masses, tuple(keys), text, name)
    if not all(isinstance(key, Real) and np.isfinite(float(key)) for key in keys):
        raise TypeError(f"the values of {name} must be all numbers, or all names of categories, got {brief(keys)}")
    values = np.array(keys, dtype=float)
    order = np.argsort(values)
    return _made(values[order], masses[order], (), text, name)


def from_scipy(distribution: Any, text: str, name: str) -> DiscreteDistribution:
    """Return a frozen discrete scipy.stats distribution as a `DiscreteDistribution`.

    Infinite tails with a probability of 1e-13 are left out, and both tails if the support still has a width of
    `MOST_VALUES` or more.
    """
    low, high = (float(end) for end in distribution.support())
    if np.isnan([low, high]).any():
        raise ValueError(f"{name} is {text}, whose parameters scipy does not accept")
    low = low if np.isfinite(low) else float(distribution.ppf(LEFT_OUT))
    high = high if np.isfinite(high) else float(distribution.isf(LEFT_OUT))
    if not high - low < MOST_VALUES:
        low, high = float(distribution.ppf(LEFT_OUT)), float(distribution.isf(LEFT_OUT))
    if not high - low < MOST_VALUES:
        raise ValueError(f"{name} is {text}, which has more than {MOST_VALUES} values: use a continuous distribution")
    values = _values(distribution, low, high)
    masses = np.asarray(distribution.pmf(values), dtype=float)
    return _made(values, masses / masses.sum(), (), text, name)


def _values(distribution: Any, low: float, high: float) -> Array:
    """Return the values between two ends: those of a table, or all whole numbers from ``loc`` on."""
    table = getattr(distribution.dist, "xk", None)
    if table is not None:
        shift = low - float(np.min(table))
        return np.sort(np.asarray(table, dtype=float) + shift)
    return np.asarray(low + np.arange(round(high - low) + 1), dtype=float)


def _made(values: Array, masses: Array, labels: tuple[str, ...], text: str, name: str) -> DiscreteDistribution:
    if (np.diff(values) == 0).any():
        raise ValueError(f"{name} has the same value twice: {text}")
    possible = masses > 0
    if possible.sum() < 2:
        hint = f"; {OTHERS}" if labels else ""
        raise ValueError(f"{name} has a single value, {text}: omit an input that is constant{hint}")
    if not labels:  # categories keep their numbers
        values, masses = values[possible], masses[possible]
    return DiscreteDistribution(read_only(values), read_only(masses / masses.sum()), labels, text)
