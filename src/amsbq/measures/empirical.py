"""`Empirical`: weighted samples of the inputs, for example draws of a posterior distribution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..common.messages import warn
from ..common.validation import Array, IntArray, count, non_negative, numbers, points, read_only
from .base import NORMAL_WIDTH, SETTINGS, Measure, Spread, cautions_on, shortest_length

#: Largest relative change of stored weights by normalising them again: more means that they were not normalised.
WEIGHT_TOLERANCE = 1e-9

#: Samples of more numbers than this are serialised as a digest, to keep lines of megabytes out of journals.
MOST_SERIALISED_NUMBERS = 100_000

#: Maximum number of samples over which the variance of an integral is a double sum when locations are chosen and error
#: bars are computed: each sum then takes half a millisecond, and error bars differ by ten percent from those with all
#: samples.
MOST_LEARNING_SAMPLES = 128

#: Samples at either end, or gaps between clusters of samples, that are ignored for the scale of an input: two, and a
#: half for rounding.
OUTLIERS = 2.5


#: Samples that `Empirical.sampled` makes by default: a step then takes less than three times as long as with none.
SAMPLED = 10_000
#: Maximum numbers of draws per accepted sample, and of draws at a time.
MOST_REJECTED, MOST_AT_A_TIME = 10_000, 100_000


class Empirical(Measure):
    """Weighted samples, for example of a posterior distribution: integrals are weighted averages over them.

    ``bounds`` is the box around the samples. Sources may be evaluated anywhere, inside the box or outside.

    The mean of an integral is over all samples. If there are more than 128 of them, an evenly spread subset of 128 is
    used to choose locations and to compute the error bar: a double sum over thousands of samples would take minutes.

    Parameters
    ----------
    samples : (M, D) array, or (M,) for a single input
    weights : (M,) array, optional
        Non-negative, in any unit: they are normalised. Equal weights by default.

    Examples
    --------
    >>> Empirical([[0.0], [1.0]], weights=[1, 3]).weights
    array([0.25, 0.75])
    """

    marginals = None
    _whole: Empirical | None = None

    def __init__(self, samples: ArrayLike, weights: ArrayLike | None = None) -> None:
        samples = points(samples, None, "samples")
        n, dim = samples.shape
        if n == 0 or dim == 0:
            raise ValueError(f"samples must hold at least one sample of at least one input, got shape {(n, dim)}")
        if 1 < n < dim:
            warn(f"there are {n} samples of {dim} inputs: samples have a row for each sample; is the array transposed?")
        if weights is None:
            normalised = np.full(n, 1 / n)
        else:
            relative = non_negative(numbers(weights, "weights"), "weights")
            if relative.shape != (n,):
                raise ValueError(f"weights must have shape ({n},), one per sample, got shape {relative.shape}")
            if not relative.any():
                raise ValueError("weights must not all be zero")
            relative = relative / relative.max()  # the sum of huge weights would overflow
            normalised = relative / relative.sum()
        self._set(samples, normalised)

    @classmethod
    def sampled(
        cls,
        sampler: Measure | Callable[[int, np.random.Generator], ArrayLike],
        condition: Callable[[Array], bool] | None = None,
        *,
        n: int = SAMPLED,
        seed: int = 0,
    ) -> Empirical:
        """Return samples of a distribution that can only be sampled, or of a measure restricted by a condition.

        Draws that do not meet the condition are rejected, until there are n that do.

        Parameters
        ----------
        sampler : measure, or function of a number m and a numpy Generator
            The distribution to draw from; a function returns m draws, shape (m, D).
        condition : callable, optional
            Called with x of shape (D,): whether x is in the region.
        n : int
            Number of samples: with 10,000, integrals differ from those of the distribution by about one percent of the
            standard deviation of the output, and by less for a measure, which the samples cover evenly.
        seed : int
            Seed of the draws.

        Examples
        --------
        Uniform on a triangle:

        >>> from amsbq import Uniform
        >>> triangle = Empirical.sampled(Uniform([0, 0], 1), lambda x: x.sum() < 1)
        >>> triangle.samples.mean(axis=0).round(2)
        array([0.33, 0.33])
        """
        n, rng = max(count(n, "n"), 1), np.random.default_rng(seed)
        found: list[Array] = []
        made = 0
        while (kept := sum(len(X) for X in found)) < n:
            if made > MOST_REJECTED * max(kept, 1):
                raise ValueError(f"only {kept} of {made} draws are in the region: give a sampler that is closer to it")
            m = int(min(max((n - kept) * (made + 1) / (kept + 1), n), MOST_AT_A_TIME))
            drawn = sampler.sobol(m, rng) if isinstance(sampler, Measure) else sampler(m, rng)
            X, made = points(drawn, None, "draws of the sampler"), made + m
            found.append(X if condition is None else X[[bool(condition(x)) for x in X]])
        return cls(np.concatenate(found)[:n])

    def _set(self, samples: Array, weights: Array) -> None:
        """Set all attributes from samples (M, D) and weights (M,) that sum to one."""
        self.samples, self.weights, self.dim = samples, read_only(weights), samples.shape[1]
        self.bounds = read_only(np.column_stack([samples.min(axis=0), samples.max(axis=0)]))
        self._spreads = [_spread(column, weights) for column in samples.T]
        self.width = read_only(np.array([_width(spread) for spread in self._spreads]))

    def __repr__(self) -> str:
        return f"Empirical(<{len(self.samples)} samples of {self.dim} inputs>)"

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return self.samples[rng.choice(len(self.samples), size=n, p=self.weights)]

    def from_cube(self, U: Array) -> Array:
        """Map points U (n, D) of the unit cube to samples, shape (n, D), by the quantiles of the first input."""
        order = np.argsort(self.samples[:, 0], kind="stable")
        return self.samples[order[np.searchsorted(np.cumsum(self.weights[order])[:-1], U[:, 0])]]

    def over(self, inputs: Sequence[int]) -> Empirical:
        """Return the samples of the given inputs, with the same weights."""
        return Empirical(self.samples[:, list(inputs)], self.weights)

    def to_dict(self) -> dict[str, Any]:
        """Return the class, samples and weights as plain lists; a digest of more than 100,000 numbers."""
        if self.samples.size > MOST_SERIALISED_NUMBERS:
            content = self.samples.astype("<f8").tobytes() + self.weights.astype("<f8").tobytes()
            digest = sha256(content).hexdigest()[:16]
            return {"class": "Empirical", "shape": list(self.samples.shape), "digest": digest}
        return {"class": "Empirical", "samples": self.samples.tolist(), "weights": self.weights.tolist()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Empirical:
        """Rebuild the measure from the output of `to_dict`; raise ValueError if it only has a digest of the samples."""
        if "digest" in content:
            n, dim = content["shape"]
            raise ValueError(
                f"the {n} samples of {dim} inputs cannot be rebuilt: above {MOST_SERIALISED_NUMBERS} numbers only a "
                "digest of them is stored; give the same samples again"
            )
        measure = cls(content["samples"], content["weights"])
        stored = numbers(content["weights"], "weights")
        if not np.allclose(measure.weights, stored, rtol=WEIGHT_TOLERANCE, atol=0):
            raise ValueError(f"weights must sum to one, got a sum of {stored.sum()}")
        measure._set(measure.samples, stored)  # normalising them again would change their last digits
        return measure

    @property
    def _widened_bounds(self) -> tuple[Array, Array]:
        """Lowest and highest accepted values, each (D,): sources may be evaluated outside the box."""
        return np.full(self.dim, -np.inf), np.full(self.dim, np.inf)

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """The mean and the standard deviation of each input, shape (D,) each."""
        mean = self.weights @ self.samples
        return mean, np.sqrt(self.weights @ (self.samples - mean) ** 2)

    @cached_property
    def axes(self) -> Array:
        """Scaled Cholesky factor of the covariance of the samples, shape (D, D): x = median + axes @ u."""
        deviations = self.samples - self.weights @ self.samples
        covariance = (self.weights * deviations.T) @ deviations
        try:
            return read_only(np.asarray(NORMAL_WIDTH * np.linalg.cholesky(covariance), dtype=float))
        except np.linalg.LinAlgError:  # fewer samples than inputs, or an input that never changes
            return np.diag(self.width)

    @cached_property
    def reach(self) -> Array:
        """Box around the samples, in whitened coordinates u, shape (D, 2)."""
        u = self.whitened(self.samples)
        return read_only(np.column_stack([u.min(axis=0), u.max(axis=0)]))

    @property
    def whole(self) -> Empirical:
        """The measure with all samples, if this one is the subset for learning; otherwise the measure itself."""
        return self._whole or self

    def for_learning(self) -> Empirical:
        """Return a measure with at most 128 evenly spread samples, and the width of all samples."""
        return self if len(self.samples) <= MOST_LEARNING_SAMPLES else self._subset

    @cached_property
    def _subset(self) -> Empirical:
        n = MOST_LEARNING_SAMPLES
        order = self._neighbours_in_order()
        chosen = order[np.searchsorted(np.cumsum(self.weights[order])[:-1], (np.arange(n) + 0.5) / n)]
        other = copy(self)
        for name in ("_subset", "moments"):
            other.__dict__.pop(name, None)
        other.samples, other.weights = read_only(self.samples[chosen]), read_only(np.full(n, 1 / n))
        other._whole = self
        return other

    def _neighbours_in_order(self) -> IntArray:
        """Return indices (M,) of all samples in an order that keeps neighbours together, as in a k-d tree.

        The samples are split recursively, at the median of each input in turn.
        """
        order, cell = np.argsort(self.samples[:, 0], kind="stable"), np.zeros(len(self.samples), dtype=np.intp)
        for level in range(int(np.log2(MOST_LEARNING_SAMPLES)) + 2):
            order = order[np.lexsort([self.samples[order, level % self.dim], cell])]
            below = np.cumsum(self.weights[order]) - 0.5 * self.weights[order]
            cell = (below * 2 ** (level + 1)).astype(np.intp)
        return order

    def cautions(self, X: Array) -> list[str]:
        """Return a warning for each input that may make the error bar too small, given observations at X (n, D)."""
        sentences: list[str] = []
        samples, weights = self.whole.samples, self.whole.weights
        for i, (column, seen, spread) in enumerate(zip(samples.T, X.T, self._spreads, strict=True)):
            if spread.middle and len(X):
                sentences += cautions_on(f"input {i} of the samples", spread, seen, partial(_below, column, weights))
        return sentences


def _spread(column: Array, weights: Array) -> Spread:
    """Return the ranges of weighted values; the outermost values are the extremes."""
    order = np.argsort(column)
    tail = min(max(SETTINGS.tail_probability, OUTLIERS / len(column)), 0.25)
    values, masses = column[order], weights[order]
    below = np.cumsum(masses) - 0.5 * masses
    low, lower, upper, high = np.interp([tail, 0.25, 0.75, 1 - tail], below, values)
    length = shortest_length(np.diff(values), np.diff(below), tail)
    return Spread(float(upper - lower), float(high - low), float(np.ptp(column)), length)


def _below(column: Array, weights: Array, t: Array) -> Array:
    """Return the share of weighted values up to each t, shape (n,)."""
    return np.array([weights[column <= end].sum() for end in t])


def _width(spread: Spread) -> float:
    """Return the width of weighted values; their range if most are the same, and 1 if all are."""
    return spread.width if spread.middle else spread.extreme or 1.0
