"""base."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import qmc

from ..validation import Array, count, points, read_only
from .marginals import Marginal

TAIL = 1e-3  #: the probability of each tail that is not worth evaluating


NORMAL_WIDTH = 4 * float(ndtri(0.75))  #: twice the interquartile range of a standard normal distribution


Seed: TypeAlias = int | np.random.Generator | None


class Measure(ABC):
    """A probability measure on R^D."""

    dim: int
    #: (D, 2): the smallest and largest value of each input, ±inf where there is none
    bounds: Array
    #: (D,): twice the interquartile range of each input, which for a uniform one is its whole range
    width: Array
    #: one per input if these are independent, else None
    marginals: tuple[Marginal, ...] | None

    def sample(self, n: int, rng: Seed = None) -> Array:
        """n independent draws, shape (n, D); ``rng`` is a NumPy generator or a seed."""
        return self._sample(count(n, "n"), np.random.default_rng(rng))

    @abstractmethod
    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        """The same, of checked arguments."""

    def sobol(self, n: int, rng: Seed = None) -> Array:
        """n points that cover the measure evenly, shape (n, D): a scrambled Sobol sequence through its quantiles."""
        n = count(n, "n")
        rounded = 1 << max(n - 1, 0).bit_length()  # the sequence is balanced at powers of two
        U = qmc.Sobol(self.dim, rng=np.random.default_rng(rng)).random(rounded)[:n]
        return self.from_cube(np.clip(U, 2.0**-40, 1 - 2.0**-40))

    @abstractmethod
    def from_cube(self, U: Array) -> Array:
        """Points U (n, D) of the unit cube as points of the measure: if those are uniform, these are draws."""

    @cached_property
    def median(self) -> Array:
        """A point in the middle, shape (D,)."""
        return read_only(self.from_cube(np.full((1, self.dim), 0.5))[0])

    @property
    def axes(self) -> Array:
        """(D, D): x = median + axes @ u are coordinates u in which inputs are of the same size, and unrelated."""
        return np.diag(self.width)

    @cached_property
    def reach(self) -> Array:
        """(D, 2), in u: the box of inputs that are worth evaluating, without tails that hardly ever happen."""
        return read_only((self.bounds - self.median[:, None]) / self.width[:, None])

    @abstractmethod
    def over(self, inputs: Sequence[int]) -> Measure:
        """The distribution of some of the inputs, whatever the others are."""

    def same_as(self, other: Measure) -> bool:
        """Whether they are the same, as far as can be told."""
        return self is other or repr(self) == repr(other)

    def for_learning(self) -> Measure:
        """The same measure, prepared for kernels with many different lengthscales."""
        return self

    @cached_property
    def _allowed(self) -> tuple[Array, Array]:
        """The bounds, with a slack: what rounding does to a point on the edge, in single precision, is not outside."""
        low, high = self.bounds.T
        with np.errstate(invalid="ignore"):
            slack = 1e-7 * np.where(
                np.isfinite(high - low), high - low, np.where(np.isfinite(low), abs(low), abs(high))
            )
        return low - slack, high + slack

    def check_points(self, X: ArrayLike, name: str = "X") -> Array:
        """X as an (n, D) array, all of it inside the support."""
        X = points(X, self.dim, name)
        lowest, highest = self._allowed
        outside = (lowest > X) | (highest < X)
        if outside.any():
            i, d = np.argwhere(outside)[0]
            low, high = self.bounds.T
            raise ValueError(
                f"{name}[{i}] is outside the support of the measure: input {d} is {float(X[i, d])}, "
                f"and must be between {float(low[d])} and {float(high[d])}"
            )
        return X


def _is_list(obj: Any) -> bool:
    return isinstance(obj, Sequence) and not isinstance(obj, (str, bytes))


def _same_length(a: Array, b: Array, name_a: str, name_b: str) -> tuple[Array, Array]:
    if max(a.ndim, b.ndim) > 1 or (a.ndim and b.ndim and a.shape != b.shape) or not a.size or not b.size:
        raise ValueError(
            f"{name_a} and {name_b} must be numbers or sequences of one length, got shapes {a.shape} and {b.shape}"
        )
    dim = max(a.size, b.size)
    return np.broadcast_to(a, (dim,)), np.broadcast_to(b, (dim,))
