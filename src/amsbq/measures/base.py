"""`Measure`: what the rest of the package may ask of a distribution of the inputs, a probability measure π on R^D.

A measure with independent inputs has one-dimensional ``marginals``, against which kernels are integrated one input at a
time. `Gaussian` with correlated inputs and `Empirical` have none; kernels are integrated against them as a whole.

Whitened coordinates u, with x = median + axes @ u, are those in which locations are searched: inputs are of the same
size there, and uncorrelated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import qmc

from ..validation import Array, RNGLike, count, points, read_only
from .marginals import Marginal

#: The ``width`` of a standard normal distribution: twice its interquartile range.
NORMAL_WIDTH = 4 * float(ndtri(0.75))


@dataclass(frozen=True)
class MeasureSettings:
    """Tolerances that all measures share."""

    #: Probability of each tail that is left out of the box in which locations are searched: a thousandth hardly
    #: changes an integral, and simulators often fail at extreme inputs.
    tail_probability: float = 1e-3
    #: Sobol points keep this distance from the faces of the unit cube, where quantiles may be infinite.
    smallest_probability: float = 2.0**-40
    #: Points outside the support by this share of its width are accepted: rounding to single precision does that.
    support_slack: float = 1e-7
    #: An input spans many scales if this box is wider than so many widths: models have lengthscales of up to 150.
    widest_reach: float = 200.0
    #: Share of that box which is the width then: with it, error bars for gamma(0.01) and the like hold the truth.
    reach_to_width: float = 1 / 30
    #: Unless tails are heavy, so that the box says little of the scale on which sources vary: with this probability,
    #: they are so many times as long ...
    far_tail_probability: float = 1e-6
    heavy_tail: float = 10.0
    #: ... and unless the box is so many widths wide: heavy tails reach that far from the middle half as well.
    hopeless_reach: float = 1e8


SETTINGS = MeasureSettings()


class Measure(ABC):
    """A probability measure on R^D.

    Attributes
    ----------
    dim : int
        Number of inputs, D.
    bounds : (D, 2) array
        Smallest and largest value of each input, ±inf where there is none.
    width : (D,) array
        Twice the interquartile range of each input; for a uniform input that is its whole range. It is larger where
        next to nothing of the input varies on that scale, as for gamma(0.01).
    marginals : tuple of D marginals, or None
        One-dimensional distributions of the inputs if these are independent, else None.
    """

    dim: int
    bounds: Array
    width: Array
    marginals: tuple[Marginal, ...] | None

    def sample(self, n: int, rng: RNGLike = None) -> Array:
        """Return n independent draws, shape (n, D).

        Parameters
        ----------
        n : int
        rng : int or numpy.random.Generator, optional
            A seed or a generator; the same seed gives the same draws.
        """
        return self._sample(count(n, "n"), np.random.default_rng(rng))

    @abstractmethod
    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return n independent draws for arguments that were checked."""

    def sobol(self, n: int, rng: RNGLike = None) -> Array:
        """Return n points that cover the measure evenly, shape (n, D): quantiles of a scrambled Sobol sequence."""
        n = count(n, "n")
        rounded = 1 << max(n - 1, 0).bit_length()  # the sequence is balanced at powers of two
        U = qmc.Sobol(self.dim, rng=np.random.default_rng(rng)).random(rounded)[:n]
        return self.from_cube(np.clip(U, SETTINGS.smallest_probability, 1 - SETTINGS.smallest_probability))

    @abstractmethod
    def from_cube(self, U: Array) -> Array:
        """Map points U (n, D) of the unit cube to points of the measure: uniform points become draws."""

    @cached_property
    def median(self) -> Array:
        """Point in the middle of the measure, the image of the centre of the unit cube, shape (D,)."""
        return read_only(self.from_cube(np.full((1, self.dim), 0.5))[0])

    @property
    def axes(self) -> Array:
        """Matrix of whitened coordinates u, shape (D, D): x = median + axes @ u."""
        return np.diag(self.width)

    @cached_property
    def reach(self) -> Array:
        """Box in which locations are searched, in whitened coordinates u, shape (D, 2): the support without tails."""
        return read_only((self.bounds - self.median[:, None]) / self.width[:, None])

    @abstractmethod
    def over(self, inputs: Sequence[int]) -> Measure:
        """Return the marginal distribution of some of the inputs."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the measure as a dictionary of plain numbers, strings and lists.

        `amsbq.measures.adapters.measure_from_dict` rebuilds the measure from it, except where only a digest is
        stored: for distributions that are not scipy's own by name, and for a great number of samples. Numbers may be
        infinite.
        """

    @classmethod
    @abstractmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Measure:
        """Return the measure of which `to_dict` made ``content``; ValueError if it cannot be rebuilt."""

    def same_as(self, other: Measure) -> bool:
        """Return whether two measures are of the same class with the same parameters or samples."""
        return self is other or self.to_dict() == other.to_dict()

    def for_learning(self) -> Measure:
        """Return the measure for use with many lengthscales: with tabulated kernel variances, or fewer samples."""
        return self

    @property
    def whole(self) -> Measure:
        """The measure that this one stands for where the same answer takes less work with fewer samples."""
        return self

    def cautions(self) -> list[str]:
        """Return a sentence for each input that a model with one lengthscale for it cannot describe well."""
        return []

    @cached_property
    def _widened_bounds(self) -> tuple[Array, Array]:
        """Lowest and highest accepted values, each (D,): the bounds with a slack for rounding."""
        low, high = self.bounds.T
        with np.errstate(invalid="ignore"):
            slack = SETTINGS.support_slack * np.where(
                np.isfinite(high - low), high - low, np.where(np.isfinite(low), abs(low), abs(high))
            )
        return low - slack, high + slack

    def check_points(self, X: ArrayLike, name: str = "X") -> Array:
        """Return X as an (n, D) array; ValueError if a row is outside the support."""
        X = points(X, self.dim, name)
        lowest, highest = self._widened_bounds
        outside = (lowest > X) | (highest < X)
        if outside.any():
            i, d = np.argwhere(outside)[0]
            low, high = self.bounds.T
            raise ValueError(
                f"{name}[{i}] is outside the support of the measure: input {d} is {float(X[i, d])}, "
                f"and must be between {float(low[d])} and {float(high[d])}"
            )
        return X


def spans_many_scales(middle: float, central: float) -> bool:
    """Return whether an input varies on more scales than a model with one lengthscale for it can describe.

    Parameters
    ----------
    middle, central : float
        Its interquartile range, and its range without a tail of a thousandth on either side.
    """
    return central > SETTINGS.widest_reach * 2 * middle


def usual_width(middle: float, central: float, extreme: float) -> float:
    """Return the width of an input that has these ranges: twice its interquartile range, if that tells its scale.

    ``extreme`` is the range without a tail of a millionth on either side.
    """
    heavy = extreme > SETTINGS.heavy_tail * central and central < SETTINGS.hopeless_reach * 2 * middle
    if heavy or not spans_many_scales(middle, central):
        return 2 * middle
    return SETTINGS.reach_to_width * max(central, extreme / SETTINGS.heavy_tail)


def caution(name: str) -> str:
    """Return what to tell users of an input of that name that spans many scales."""
    return (
        f"{name} spreads over many orders of magnitude, and a model with one lengthscale for it cannot resolve all of "
        "them: the error bar may be too small; let the source take its logarithm, or another transformation, as input"
    )


def is_list(obj: Any) -> bool:
    """Return whether an object is a list, a tuple or another sequence that is no text."""
    return isinstance(obj, Sequence) and not isinstance(obj, (str, bytes))


def broadcast_vectors(a: Array, b: Array, name_a: str, name_b: str) -> tuple[Array, Array]:
    """Return two vectors of one length; a single number stands for all entries."""
    if max(a.ndim, b.ndim) > 1 or (a.ndim and b.ndim and a.shape != b.shape) or not a.size or not b.size:
        raise ValueError(
            f"{name_a} and {name_b} must be numbers or sequences of one length, got shapes {a.shape} and {b.shape}"
        )
    dim = max(a.size, b.size)
    return np.broadcast_to(a, (dim,)), np.broadcast_to(b, (dim,))
