"""`Measure`: the interface of distributions of the inputs, probability measures π on R^D.

A measure with independent inputs has one-dimensional ``marginals``, against which kernels are integrated one input at a
time. `Gaussian` with correlated inputs and `Empirical` have none; kernels are integrated against them as a whole.

Locations are searched in whitened coordinates u, with x = median + axes @ u, in which inputs have equal scales and are
uncorrelated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike
from scipy.special import ndtri

from ..common.markup import histogram, table
from ..common.validation import Array, IntArray, RNGLike, count, points, read_only
from .discrete import DiscreteDistribution
from .marginals import Marginal

#: The ``width`` of a standard normal distribution: twice its interquartile range.
NORMAL_WIDTH = 4 * float(ndtri(0.75))


@dataclass(frozen=True)
class MeasureSettings:
    """Tolerances and thresholds that all measures share."""

    #: Probability of each tail outside the box in which locations are searched: a thousandth hardly
    #: changes an integral, and simulators often fail at extreme inputs.
    tail_probability: float = 1e-3
    #: Sobol points keep this distance from the faces of the unit cube, where quantiles may be infinite.
    smallest_probability: float = 2.0**-40
    #: Points outside the support by up to this share of its width are accepted, because rounding to single precision
    #: may cause that.
    support_slack: float = 1e-7
    #: An input spans many scales if its search box is wider than this many widths, because models have lengthscales of
    #: up to 150; it is clustered if the box is this many times as wide as the clusters together.
    widest_reach: float = 200.0
    #: Width of such an input as a share of its search box: with it, error bars for gamma(0.01) and the like are valid.
    reach_to_width: float = 1 / 30
    #: Inputs with heavy tails are an exception, because their box is not the scale on which sources vary. Tails are
    #: heavy if the range without tails of this probability is this many times as wide as the box ...
    far_tail_probability: float = 1e-6
    heavy_tail: float = 10.0
    #: ... or this many times, if the box is this many widths wide: relative to a middle half that is almost a point, as
    #: that of gamma(0.001), all tails are long.
    heaviest_tail: float = 1e3
    singular_reach: float = 1e8
    #: Points per input for the histogram of a measure in notebooks: a few for each bar.
    pictured: int = 400
    #: Mass farther than this many widths from all observations counts as unobserved, because usual lengthscales are
    #: below one width. Estimates warn if it is more than this share: tails up to those of t(2) have less.
    far_widths: float = 10.0
    unseen_share: float = 0.01


SETTINGS = MeasureSettings()


def inside_cube(U: Array) -> Array:
    """Move points of the unit cube slightly away from its faces, where quantiles may be infinite."""
    return np.clip(U, SETTINGS.smallest_probability, 1 - SETTINGS.smallest_probability)


class Measure(ABC):
    """A probability measure on R^D.

    Attributes
    ----------
    dim : int
        Number of inputs, D.
    bounds : (D, 2) array
        Smallest and largest value of each input, ±inf if there is none.
    width : (D,) array
        Twice the interquartile range of each input; for a uniform input that is its whole range. It is larger if hardly
        any mass is on that scale, as for gamma(0.01), and smaller if there are narrow clusters far apart.
    marginals : tuple of D marginals, or None
        One-dimensional distributions of the inputs if these are independent, otherwise None.
    """

    dim: int
    bounds: Array
    width: Array
    marginals: tuple[Marginal, ...] | None
    #: function of the location whose value sources are called with; None if that is the location itself
    function: Callable[[Array], Any] | None = None

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
        """Return n independent draws; the arguments have been checked."""

    def sobol(self, n: int, rng: RNGLike = None) -> Array:
        """Return n points that cover the measure evenly, shape (n, D): quantiles of a scrambled Sobol sequence."""
        n = count(n, "n")
        rounded = 1 << max(n - 1, 0).bit_length()  # the sequence is balanced at powers of two
        U = scipy.stats.qmc.Sobol(self.dim, rng=np.random.default_rng(rng)).random(rounded)[:n]
        return self.from_cube(inside_cube(U))

    def spread_out(self, n: int, rng: RNGLike = None) -> Array:
        """Return a Latin hypercube: n draws, one in each of n equal slices of the cube along every axis, shape (n, D).

        Each draw alone follows the measure, and averages of any function over the draws are unbiased.
        """
        n, rng = count(n, "n"), np.random.default_rng(rng)
        cells = rng.permuted(np.tile(np.arange(n)[:, None], self.dim), axis=0)
        U = (cells + rng.random(cells.shape)) / n
        return self.from_cube(inside_cube(U))

    @abstractmethod
    def from_cube(self, U: Array) -> Array:
        """Map points U (n, D) of the unit cube to points of the measure: uniform points become draws."""

    @cached_property
    def median(self) -> Array:
        """Point in the middle of the measure, the image of the centre of the unit cube, shape (D,)."""
        return read_only(self.from_cube(np.full((1, self.dim), 0.5))[0])

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """The mean and the standard deviation of each input, shape (D,) each; categories have none."""
        assert self.marginals is not None  # measures without marginals have their own moments
        mean, sd = zip(*(marginal.moments for marginal in self.marginals), strict=True)
        return read_only(np.array(mean)), read_only(np.array(sd))

    @property
    def axes(self) -> Array:
        """Matrix of whitened coordinates u, shape (D, D): x = median + axes @ u."""
        return np.diag(self.width)

    def whitened(self, X: Array) -> Array:
        """Return the whitened coordinates u (n, D) of locations X (n, D)."""
        return np.asarray(np.linalg.solve(self.axes, (X - self.median).T).T)

    @cached_property
    def reach(self) -> Array:
        """Box in which locations are searched, in whitened coordinates u, shape (D, 2): the support without tails."""
        return read_only((self.bounds - self.median[:, None]) / self.width[:, None])

    @abstractmethod
    def over(self, inputs: Sequence[int]) -> Measure:
        """Return the marginal distribution of the given inputs."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the measure as a dictionary of plain numbers, strings and lists.

        `amsbq.measures.adapters.measure_from_dict` rebuilds the measure from it, unless only a digest is stored, as
        for distributions that are not scipy's own by name, and for a great number of samples. Numbers may be infinite.
        """

    @classmethod
    @abstractmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Measure:
        """Rebuild a measure from the output of `to_dict`; raise ValueError if that is impossible."""

    def _repr_html_(self) -> str:
        """Return an HTML table of the inputs with their quantiles and shapes, for notebooks."""
        rows = []
        for d in range(self.dim):
            one = self.over([d])
            values = one.from_cube((np.arange(SETTINGS.pictured)[:, None] + 0.5) / SETTINGS.pictured)[:, 0]
            low, middle, high = np.quantile(values, [0.025, 0.5, 0.975], method="inverted_cdf")
            picture = histogram(values, label=f"histogram of input {d}")
            rows.append((str(d), repr(one), f"{middle:.4g}", f"{low:.4g} to {high:.4g}", picture))
        return table(("input", "distribution", "median", "95 % between", ""), rows)

    def same_as(self, other: Measure) -> bool:
        """Return whether another measure has the same class and the same parameters or samples."""
        return self is other or self.to_dict() == other.to_dict()

    @property
    def discrete(self) -> tuple[int, ...]:
        """The inputs that have isolated values."""
        return ()

    @property
    def categories(self) -> dict[int, tuple[str, ...]]:
        """The names of the values of each input that has categories, without an order, by the index of the input."""
        return {}

    def with_categories(self, categories: Mapping[int, tuple[str, ...]]) -> Measure:
        """Return the measure with the categories of each input in the order of ``categories``."""
        return self

    @property
    def categorical(self) -> tuple[int, ...]:
        """The inputs whose values are categories."""
        return tuple(self.categories)

    @property
    def continuous(self) -> IntArray:
        """The inputs without isolated values, with respect to which derivatives exist."""
        return np.setdiff1d(np.arange(self.dim), [*self.discrete, *self.categorical])

    def nearest(self, X: Array) -> Array:
        """Return the nearest valid locations (n, D): discrete inputs move to the nearest of their values."""
        return X

    @property
    def latent(self) -> Measure:
        """The measure in whose coordinates models live: this one, unless its inputs are dependent."""
        return self

    def to_latent(self, X: Array) -> Array:
        """Return the coordinates (n, D) of locations X in the measure `latent`, one input at a time."""
        return X

    def latent_slopes(self, X: Array) -> Array | None:
        """Return the derivatives (n, D) of `to_latent`, each with respect to its own input; None if all are one."""
        return None

    def for_learning(self) -> Measure:
        """Return the measure for learning hyperparameters: with tabulated kernel variances, or fewer samples."""
        return self

    @property
    def resolution(self) -> float:
        """Standard error of integrals relative to the standard deviation of the output, if points represent π."""
        return 0.0

    @property
    def whole(self) -> Measure:
        """The full measure, if this one is a smaller representation that saves work; otherwise the measure itself."""
        return self

    def cautions(self, X: Array) -> list[str]:
        """Return a warning for each input that may make the error bar too small, given observations at X (n, D).

        A model with one lengthscale cannot describe an input that spans many scales, and the source is unknown where
        much of the mass is far from all observations.
        """
        return []

    @cached_property
    def _widened_bounds(self) -> tuple[Array, Array]:
        """Return the lowest and highest accepted values, each (D,): the bounds with a tolerance for rounding."""
        low, high = self.bounds.T
        with np.errstate(invalid="ignore"):
            slack = SETTINGS.support_slack * np.where(
                np.isfinite(high - low), high - low, np.where(np.isfinite(low), abs(low), abs(high))
            )
        return low - slack, high + slack

    def check_points(self, X: ArrayLike, name: str = "X", inputs: Sequence[str] | None = None) -> Array:
        """Return X as an (n, D) array, discrete inputs unrounded; raise ValueError if a row is outside the support.

        ``inputs`` are the names of the inputs, if any, for the message.
        """
        X = points(X, self.dim, name)
        lowest, highest = self._widened_bounds
        outside = (lowest > X) | (highest < X)
        if discrete := list(self.discrete):
            given, X = X, X.copy()
            X[:, discrete] = self.nearest(X)[:, discrete]
            outside |= np.abs(given - X) > SETTINGS.support_slack * self.width
            X[outside] = given[outside]
        if outside.any():
            i, d = np.argwhere(outside)[0]
            which = f"input {d}" if inputs is None else inputs[d]
            raise ValueError(
                f"{name}[{i}] is outside the support of the measure: {which} is {float(X[i, d])}, "
                f"and must be {self.accepted(int(d))}"
            )
        return X

    def accepted(self, d: int) -> str:
        """Return the values of an input in words."""
        low, high = self.bounds[d]
        return f"between {float(low)} and {float(high)}"


class MarginalMeasure(Measure):
    """A measure with known marginal ``distributions``, one for each input, some of which may be discrete."""

    distributions: tuple[Any, ...]

    @property
    def discrete(self) -> tuple[int, ...]:
        """The inputs that have isolated values."""
        return tuple(d for d, one in enumerate(self.distributions) if isinstance(one, DiscreteDistribution))

    @property
    def categories(self) -> dict[int, tuple[str, ...]]:
        """The names of the values of each input that has categories."""
        return {d: labels for d in self.discrete if (labels := self._discrete(d).labels)}

    def nearest(self, X: Array) -> Array:
        """Return the nearest valid locations (n, D): discrete inputs move to the nearest of their values."""
        X = X.copy()
        for d in self.discrete:
            X[:, d] = self._discrete(d).nearest(X[:, d])
        return X

    def accepted(self, d: int) -> str:
        """Return the values of an input in words."""
        return f"one of {self._discrete(d).accepted}" if d in self.discrete else super().accepted(d)

    def _discrete(self, d: int) -> DiscreteDistribution:
        found = self.distributions[d]
        assert isinstance(found, DiscreteDistribution)
        return found


class Spread(NamedTuple):
    """Ranges of one input, which indicate the scale on which sources vary with it."""

    middle: float  # interquartile range
    central: float  # range without a tail of a thousandth on either side
    extreme: float  # range without a tail of a millionth on either side
    length: float  # total length of the shortest intervals that hold all but a thousandth of the mass

    @property
    def clustered(self) -> bool:
        """Whether the input is in narrow clusters that are far apart."""
        return self.central > SETTINGS.widest_reach * self.length > 0

    @property
    def many_scales(self) -> bool:
        """Whether the input varies on more scales than a model with one lengthscale for it can describe."""
        reach = self.length if self.clustered else self.central
        return reach > SETTINGS.widest_reach * 2 * self.middle

    @property
    def width(self) -> float:
        """Width of the input: twice the interquartile range, unless that is not its scale."""
        if self.clustered:
            return SETTINGS.reach_to_width * self.length if self.many_scales else min(2 * self.middle, self.length)
        singular = self.central > SETTINGS.singular_reach * 2 * self.middle
        heavy = self.extreme > (SETTINGS.heaviest_tail if singular else SETTINGS.heavy_tail) * self.central
        if heavy or not self.many_scales:
            return 2 * self.middle
        return SETTINGS.reach_to_width * max(self.central, self.extreme / SETTINGS.heavy_tail)


def shortest_length(lengths: Array, masses: Array, left_out: float) -> float:
    """Return the total length of intervals with given masses, without the least dense ones, of mass ``left_out``.

    >>> shortest_length(np.array([1.0, 8.0]), np.array([0.75, 0.25]), left_out=0.125)
    5.0
    """
    order = np.argsort(masses / np.maximum(lengths, np.finfo(float).tiny))
    beyond = np.cumsum(masses[order]) - left_out
    kept = np.clip(beyond / np.maximum(masses[order], np.finfo(float).tiny), 0, 1)
    return float(lengths[order] @ kept)


def cautions_on(name: str, spread: Spread, seen: Array, below: Callable[[Array], Array]) -> list[str]:
    """Return warnings about an input: that it spans many scales, or that part of its mass was never observed.

    Parameters
    ----------
    name : str
    spread : Spread
    seen : (n,) array
        Values of the input at which there are observations.
    below : function
        The distribution function of the input.
    """
    if spread.many_scales:
        return [
            f"{name} spreads over many orders of magnitude, and a model with one lengthscale for it cannot resolve all "
            "of them: the error bar may be too small; let the source take its logarithm, or another transformation, "
            "as input"
        ]
    far = SETTINGS.far_widths * spread.width
    values = np.sort(seen)
    apart = np.diff(values) > 2 * far
    starts, ends = values[np.append(True, apart)] - far, values[np.append(apart, True)] + far
    unseen = 1 - float((below(ends) - below(starts)).sum())
    if unseen <= SETTINGS.unseen_share:
        return []
    return [
        f"{100 * unseen:.0f} % of {name} is far from all observations: the error bar assumes that the source behaves "
        "there as it does elsewhere"
    ]


def is_list(obj: Any) -> bool:
    """Return whether an object is a list, a tuple or another sequence that is not text."""
    return isinstance(obj, Sequence) and not isinstance(obj, (str, bytes))


def broadcast_vectors(a: Array, b: Array, name_a: str, name_b: str) -> tuple[Array, Array]:
    """Broadcast two vectors to one length; a single number stands for all entries."""
    if max(a.ndim, b.ndim) > 1 or (a.ndim and b.ndim and a.shape != b.shape) or not a.size or not b.size:
        raise ValueError(
            f"{name_a} and {name_b} must be numbers or sequences of one length, got shapes {a.shape} and {b.shape}"
        )
    dim = max(a.size, b.size)
    return np.broadcast_to(a, (dim,)), np.broadcast_to(b, (dim,))
