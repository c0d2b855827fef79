"""Probability measures over the inputs of the sources: π on R^D.

A measure with independent inputs offers its one-dimensional ``marginals``, on which the closed forms and the
numerical rule of the embeddings work; those that are not independent are ``Gaussian`` with a full covariance, and
``Empirical``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import ndtri
from scipy.stats import qmc

from .checks import Array, correlations, count, frozen, non_negative, numbers, points, positive, shown, vector
from .panels import Panels, cut, describe

TAIL = 1e-3  #: the probability of each tail that is not worth evaluating
NORMAL_WIDTH = 4 * float(ndtri(0.75))  #: twice the interquartile range of a standard normal distribution

Seed: TypeAlias = int | np.random.Generator | None


@dataclass(frozen=True)
class UniformMarginal:
    """The uniform distribution between two numbers."""

    low: float
    high: float


@dataclass(frozen=True)
class NormalMarginal:
    """The normal distribution."""

    mean: float
    sd: float


class NumericMarginal:
    """Any other continuous distribution, cut into panels when it is made."""

    def __init__(self, panels: Panels) -> None:
        self.panels = panels

    @cached_property
    def tabulated(self) -> TabulatedMarginal:
        """The same, for many lengthscales."""
        return TabulatedMarginal(self.panels)


class TabulatedMarginal(NumericMarginal):
    """A marginal for many lengthscales: variances of kernels are interpolated."""

    def __init__(self, panels: Panels) -> None:
        super().__init__(panels)
        self.tables: dict[Any, Array] = {}  #: filled by whoever interpolates


Marginal: TypeAlias = UniformMarginal | NormalMarginal | NumericMarginal


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
        return frozen(self.from_cube(np.full((1, self.dim), 0.5))[0])

    @property
    def axes(self) -> Array:
        """(D, D): x = median + axes @ u are coordinates u in which inputs are of the same size, and unrelated."""
        return np.diag(self.width)

    @cached_property
    def reach(self) -> Array:
        """(D, 2), in u: the box of inputs that are worth evaluating, without tails that hardly ever happen."""
        return frozen((self.bounds - self.median[:, None]) / self.width[:, None])

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


class Uniform(Measure):
    """The uniform distribution on a box.

    Parameters
    ----------
    lower, upper : float or sequence of D floats
        The corners of the box; a number stands for all dimensions of the other.

    >>> Uniform([0, 0], 1).bounds
    array([[0., 1.],
           [0., 1.]])
    """

    def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None:
        lower, upper = _same_length(numbers(lower, "lower"), numbers(upper, "upper"), "lower", "upper")
        if (lower >= upper).any():
            raise ValueError(f"lower must be below upper, got {shown(lower)} and {shown(upper)}")
        self.dim = len(lower)
        self.bounds = frozen(np.column_stack([lower, upper]))
        self.width = frozen(upper - lower)
        self.marginals = tuple(UniformMarginal(float(a), float(b)) for a, b in self.bounds)

    def __repr__(self) -> str:
        return f"Uniform({self.bounds[:, 0].tolist()}, {self.bounds[:, 1].tolist()})"

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        low, high = self.bounds.T
        return rng.uniform(low, high, size=(n, self.dim))

    def from_cube(self, U: Array) -> Array:
        return np.asarray(self.bounds[:, 0] + U * self.width)

    def over(self, inputs: Sequence[int]) -> Uniform:
        return Uniform(*self.bounds[list(inputs)].T)


class Gaussian(Measure):
    """The multivariate normal distribution.

    Parameters
    ----------
    mean : float or sequence of D floats
    cov : float, sequence of D floats, or D × D array
        The variance shared by all inputs, one variance for each, or the covariance matrix.

    >>> Gaussian([0, 1], 4.0).cov
    array([[4., 0.],
           [0., 4.]])
    """

    def __init__(self, mean: ArrayLike, cov: ArrayLike) -> None:
        mean, cov = numbers(mean, "mean"), numbers(cov, "cov")
        if cov.ndim == 2 and cov.shape[0] == cov.shape[1] > 0:
            self.mean = vector(mean, "mean", len(cov))
            self.cov = _covariance(cov)
        else:
            self.mean, variances = _same_length(mean, cov, "mean", "cov")
            self.cov = frozen(np.diag(positive(variances, "variances in cov")))
        self.dim = len(self.mean)
        self.bounds = frozen(np.tile([-np.inf, np.inf], (self.dim, 1)))
        self.marginals = None
        variances = np.diagonal(self.cov)
        self.width = frozen(NORMAL_WIDTH * np.sqrt(variances))
        if not (self.cov - np.diag(variances)).any():
            pairs = zip(self.mean, np.sqrt(variances), strict=True)
            self.marginals = tuple(NormalMarginal(float(m), float(sd)) for m, sd in pairs)

    def __repr__(self) -> str:
        return f"Gaussian({self.mean.tolist()}, {self.cov.tolist()})"

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return rng.multivariate_normal(self.mean, self.cov, size=n, method="cholesky")

    def from_cube(self, U: Array) -> Array:
        return np.asarray(self.mean + ndtri(U) @ np.linalg.cholesky(self.cov).T)

    def over(self, inputs: Sequence[int]) -> Gaussian:
        return Gaussian(self.mean[list(inputs)], self.cov[np.ix_(inputs, inputs)])

    @cached_property
    def axes(self) -> Array:
        return frozen(np.asarray(NORMAL_WIDTH * np.linalg.cholesky(self.cov), dtype=float))

    @cached_property
    def reach(self) -> Array:
        end = ndtri(1 - TAIL) / NORMAL_WIDTH
        return frozen(np.tile([-end, end], (self.dim, 1)))


class Product(Measure):
    """Independent inputs, each with a continuous scipy.stats distribution of its own.

    Normal and uniform marginals are integrated in closed form, all others by a rule that is prepared here, once.

    >>> from scipy import stats
    >>> Product([stats.gamma(5, loc=1, scale=4), stats.uniform(0, 1)]).bounds
    array([[ 1., inf],
           [ 0.,  1.]])
    """

    def __init__(self, distributions: Sequence[Any]) -> None:
        if not _is_list(distributions) or not distributions:
            raise TypeError(
                f"Product takes a non-empty list of scipy.stats distributions, got {shown(distributions)}; "
                "for a single one write Product([distribution])"
            )
        self.distributions = tuple(_continuous(d, f"distributions[{i}]") for i, d in enumerate(distributions))
        self.dim = len(self.distributions)
        self.bounds = frozen(np.array([d.support() for d in self.distributions], dtype=float))
        self.marginals = tuple(_marginal(d) for d in self.distributions)
        self.width = frozen(2 * np.array([float(d.ppf(0.75) - d.ppf(0.25)) for d in self.distributions]))

    def __repr__(self) -> str:
        return f"Product([{', '.join(describe(d) for d in self.distributions)}])"

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return np.column_stack([d.rvs(size=n, random_state=rng) for d in self.distributions])

    @cached_property
    def reach(self) -> Array:
        ends = np.array([(d.ppf(TAIL), d.isf(TAIL)) for d in self.distributions])
        flat = np.array([isinstance(marginal, UniformMarginal) for marginal in self.marginals or ()])
        ends = np.where(flat[:, None], self.bounds, ends)
        return frozen((ends - self.median[:, None]) / self.width[:, None])

    def for_learning(self) -> Measure:
        return self._prepared

    @cached_property
    def _prepared(self) -> Product:
        other = copy(self)
        other.marginals = tuple(m.tabulated if isinstance(m, NumericMarginal) else m for m in self.marginals or ())
        other.__dict__["_prepared"] = other
        return other

    def from_cube(self, U: Array) -> Array:
        return np.column_stack([d.ppf(u) for d, u in zip(self.distributions, U.T, strict=True)])

    def over(self, inputs: Sequence[int]) -> Product:
        other = object.__new__(Product)
        other.distributions = tuple(self.distributions[d] for d in inputs)
        other.marginals = tuple((self.marginals or ())[d] for d in inputs)  # they are much work
        other.dim, other.bounds, other.width = len(inputs), self.bounds[list(inputs)], self.width[list(inputs)]
        return other


class Empirical(Measure):
    """Weighted samples, for example of a posterior distribution: integrals are weighted averages over them.

    ``bounds`` is the box around the samples. Sources may be evaluated anywhere, in the box or out of it.

    Parameters
    ----------
    samples : (M, D) array, or (M,) for a single input
    weights : (M,) array, optional
        Non-negative, in any unit: they are normalised. Equal weights by default.

    >>> Empirical([[0.0], [1.0]], weights=[1, 3]).weights
    array([0.25, 0.75])
    """

    marginals = None

    def __init__(self, samples: ArrayLike, weights: ArrayLike | None = None) -> None:
        self.samples = points(samples, None, "samples")
        n, self.dim = self.samples.shape
        if n == 0 or self.dim == 0:
            raise ValueError(f"samples must hold at least one sample of at least one input, got shape {(n, self.dim)}")
        if weights is None:
            self.weights = frozen(np.full(n, 1 / n))
        else:
            given = non_negative(numbers(weights, "weights"), "weights")
            if given.shape != (n,):
                raise ValueError(f"weights must have shape ({n},), one per sample, got shape {given.shape}")
            if not given.any():
                raise ValueError("weights must not all be zero")
            given = given / given.max()  # the sum of huge weights would overflow
            self.weights = frozen(given / given.sum())
        self.bounds = frozen(np.column_stack([self.samples.min(axis=0), self.samples.max(axis=0)]))
        self.width = frozen(np.array([self._interquartile_width(column) for column in self.samples.T]))

    def __repr__(self) -> str:
        return f"Empirical(<{len(self.samples)} samples of {self.dim} inputs>)"

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return self.samples[rng.choice(len(self.samples), size=n, p=self.weights)]

    def from_cube(self, U: Array) -> Array:
        order = np.argsort(self.samples[:, 0], kind="stable")
        return self.samples[order[np.searchsorted(np.cumsum(self.weights[order])[:-1], U[:, 0])]]

    def over(self, inputs: Sequence[int]) -> Empirical:
        return Empirical(self.samples[:, list(inputs)], self.weights)

    def same_as(self, other: Measure) -> bool:
        return isinstance(other, Empirical) and all(
            np.array_equal(mine, theirs)
            for mine, theirs in ((self.samples, other.samples), (self.weights, other.weights))
        )

    def check_points(self, X: ArrayLike, name: str = "X") -> Array:
        return points(X, self.dim, name)

    @cached_property
    def axes(self) -> Array:
        deviations = self.samples - self.weights @ self.samples
        covariance = (self.weights * deviations.T) @ deviations
        try:
            return frozen(np.asarray(NORMAL_WIDTH * np.linalg.cholesky(covariance), dtype=float))
        except np.linalg.LinAlgError:  # fewer samples than inputs, or an input that never changes
            return np.diag(self.width)

    @cached_property
    def reach(self) -> Array:
        u = np.linalg.solve(self.axes, (self.samples - self.median).T)
        return frozen(np.column_stack([u.min(axis=1), u.max(axis=1)]))

    def _interquartile_width(self, column: Array) -> float:
        order = np.argsort(column)
        below = np.cumsum(self.weights[order]) - 0.5 * self.weights[order]
        low, high = np.interp([0.25, 0.75], below, column[order])
        return float(2 * (high - low) or np.ptp(column) or 1.0)  # of values that repeat, their range


def as_measure(obj: Any) -> Measure:
    """Make a measure of what people have at hand.

    Parameters
    ----------
    obj : Measure, scipy.stats distribution, (low, high) pair, or list of distributions and pairs
        A measure is returned as it is. A list has one entry per input.

    >>> from scipy import stats
    >>> as_measure([stats.norm(0, 2), (0, 1)])
    Product([norm(loc=0, scale=2), uniform(loc=0, scale=1)])
    >>> as_measure([(0, 1), (-1, 1)])
    Uniform([0.0, -1.0], [1.0, 1.0])
    """
    if isinstance(obj, Measure):
        return obj
    if isinstance(obj, type(stats.multivariate_normal())):
        return Gaussian(obj.mean, obj.cov)
    if _is_distribution(obj):
        return Product([obj])
    if isinstance(obj, np.ndarray) and obj.shape[1:] in ((), (2,)):
        obj = obj.tolist()
    if _is_list(obj) and obj:
        if _is_pair(obj):
            obj = [obj]
        if all(_is_pair(entry) for entry in obj):
            return Uniform(*zip(*obj, strict=True))
        return Product([_uniform(entry) if _is_pair(entry) else entry for entry in obj])
    raise TypeError(
        f"cannot make a measure of {shown(obj)}; give a measure (Uniform, Gaussian, Product, Empirical), a frozen "
        "scipy.stats distribution, or a list with a distribution or a (low, high) pair for each input; "
        "samples go into Empirical(samples)"
    )


class _NewStyle:
    """The methods of a frozen distribution, for the random variables of scipy 1.15 and later."""

    def __init__(self, variable: Any) -> None:
        self.pdf, self.cdf, self.sf = variable.pdf, variable.cdf, variable.ccdf
        self.ppf, self.isf, self.support = variable.icdf, variable.iccdf, variable.support
        self._variable = variable

    def __repr__(self) -> str:
        return str(self._variable)

    def rvs(self, size: int, random_state: np.random.Generator) -> Array:
        return np.asarray(self._variable.sample(size, rng=random_state))


def _is_distribution(obj: Any) -> bool:
    return hasattr(obj, "support") or isinstance(obj, (stats.rv_continuous, stats.rv_discrete))


def _continuous(obj: Any, name: str) -> Any:
    """A frozen one-dimensional continuous distribution, or an error that says what it is instead."""
    if isinstance(obj, type):
        raise TypeError(f"{name} is the class {obj.__name__}: give an object of it, with its parameters")
    if isinstance(obj, stats.rv_histogram):
        obj = obj()
    if (
        isinstance(obj, stats.rv_discrete)
        or isinstance(getattr(obj, "dist", None), stats.rv_discrete)
        or any(parent.__name__ == "DiscreteDistribution" for parent in type(obj).__mro__)  # of scipy 1.15 and later
    ):
        raise TypeError(
            f"{name} is the discrete distribution {describe(obj)}: only continuous ones can be integrated here; "
            "for discrete inputs list the values with their probabilities in Empirical(samples, weights)"
        )
    if isinstance(obj, stats.rv_continuous):
        raise TypeError(f"{name} is {obj.name} without its parameters: freeze it, as in stats.{obj.name}(...)")
    if hasattr(obj, "icdf") and hasattr(obj, "iccdf"):
        obj = _NewStyle(obj)
    if not all(hasattr(obj, method) for method in ("pdf", "cdf", "sf", "ppf", "isf", "rvs", "support")):
        raise TypeError(f"{name} must be a frozen continuous scipy.stats distribution, got {shown(obj)}")
    with np.errstate(all="ignore"):
        support = np.asarray(obj.support(), dtype=float)
        median = np.asarray(obj.ppf(0.5), dtype=float)
    if support.shape != (2,):
        raise ValueError(f"{name} has array-valued parameters: give one distribution per input instead")
    if np.isnan(support).any() or np.isnan(median):
        raise ValueError(f"{name} is {describe(obj)}, whose parameters scipy does not accept")
    return obj


#: marginals that were made of distributions with that description
_MADE: dict[str, NumericMarginal] = {}
MOST_MADE = 64


def _marginal(distribution: Any) -> Marginal:
    kind = getattr(distribution, "dist", None)
    if type(kind) is type(stats.uniform):
        return UniformMarginal(*(float(end) for end in distribution.support()))
    if type(kind) is type(stats.norm):
        return NormalMarginal(float(distribution.mean()), float(distribution.std()))
    if not _known_by_name(kind):
        return NumericMarginal(cut(distribution))
    name = describe(distribution)
    if name not in _MADE:  # the tables that learning makes of it are worth seconds
        if len(_MADE) >= MOST_MADE:
            del _MADE[next(iter(_MADE))]
        _MADE[name] = NumericMarginal(cut(distribution))
    return _MADE[name]


def _known_by_name(kind: Any) -> bool:
    """Whether a distribution is one of scipy's own, so that its name and parameters tell all of it."""
    return isinstance(kind, stats.rv_continuous) and type(getattr(stats, kind.name, None)) is type(kind)


def _is_pair(obj: Any) -> bool:
    return _is_list(obj) and len(obj) == 2 and all(isinstance(end, Real) for end in obj)


def _is_list(obj: Any) -> bool:
    return isinstance(obj, Sequence) and not isinstance(obj, (str, bytes))


def _uniform(pair: Any) -> Any:
    (marginal,) = Uniform(*pair).bounds
    return stats.uniform(loc=float(marginal[0]), scale=float(marginal[1] - marginal[0]))


def _covariance(cov: Array) -> Array:
    positive(np.diagonal(cov), "variances on the diagonal of cov")
    if np.linalg.eigvalsh(correlations(cov, "cov"))[0] <= 1e-14:
        raise ValueError(f"cov must be positive definite, but it has a direction without variance: {shown(cov)}")
    return frozen(0.5 * cov + 0.5 * cov.T)


def _same_length(a: Array, b: Array, name_a: str, name_b: str) -> tuple[Array, Array]:
    if max(a.ndim, b.ndim) > 1 or (a.ndim and b.ndim and a.shape != b.shape) or not a.size or not b.size:
        raise ValueError(
            f"{name_a} and {name_b} must be numbers or sequences of one length, got shapes {a.shape} and {b.shape}"
        )
    dim = max(a.size, b.size)
    return np.broadcast_to(a, (dim,)), np.broadcast_to(b, (dim,))
