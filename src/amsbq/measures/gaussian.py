"""`Gaussian`: the multivariate normal distribution, and `GaussianCopula`: its dependence with arbitrary marginals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from ..common.messages import SILENCE
from ..common.validation import Array, brief, correlations, numbers, points, positive, read_only, vector
from .base import NORMAL_WIDTH, SETTINGS, MarginalMeasure, Measure, broadcast_vectors, is_list
from .discrete import DiscreteDistribution
from .distributions import (
    Distribution,
    RandomVariable,
    checked_distribution,
    describe,
    distribution_from_dict,
    distribution_to_dict,
    histogram_edges,
)
from .empirical import Empirical
from .marginals import NormalMarginal
from .product import Product

#: Smallest eigenvalue that a correlation matrix is given: it moves correlations by less than the rounding of data.
SMALLEST_CORRELATION_EIGENVALUE = 1e-10
#: Rounding error of a correlation matrix that is accepted: its eigenvalues may be negative by this much.
EIGENVALUE_TOLERANCE = 1e-8
#: Normal scores of locations are no larger than this: beyond it, the normal distribution function rounds to 0 or 1.
LARGEST_SCORE = 8.0
#: Points that represent a copula with discrete marginals, and the error of averages over them, relative to the
#: standard deviation.
POINTS, RESOLUTION = 4096, 1e-3
#: Bins of an empirical marginal, with equal probabilities: fewer than ten samples in each would be noise.
MOST_BINS, SAMPLES_PER_BIN = 100, 10


class Gaussian(Measure):
    """The multivariate normal distribution, given by its variances: ``Gaussian(40, 9)`` is ``stats.norm(40, 3)``.

    Standard deviations are given by name: ``Gaussian(40, std=3)``.

    Parameters
    ----------
    mean : float or sequence of D floats
        A single number stands for all inputs.
    cov : float, sequence of D floats, or D × D array
        The variance of all inputs, one variance for each, or the covariance matrix.
    std : float or sequence of D floats
        The standard deviation of all inputs, or one for each, instead of ``cov``.

    Examples
    --------
    >>> Gaussian(40, std=3)
    Gaussian([40.0], [[9.0]])
    >>> Gaussian([0, 1], 4.0).cov
    array([[4., 0.],
           [0., 4.]])
    """

    def __init__(self, mean: ArrayLike, cov: ArrayLike | None = None, *, std: ArrayLike | None = None) -> None:
        if (cov is None) == (std is None):
            raise TypeError("give either cov, which has variances, or std, as in Gaussian(40, std=3)")
        mean = numbers(mean, "mean")
        if std is not None and np.ndim(std) > 1:
            raise ValueError(f"std must be one number, or one number per input, got {brief(std)}")
        cov = numbers(cov, "cov") if cov is not None else positive(numbers(std, "std"), "std") ** 2  # type: ignore[arg-type]
        if cov.ndim == 2 and cov.shape[0] == cov.shape[1] > 0:
            self.mean = vector(mean, "mean", len(cov))
            self.cov = _covariance(cov)
        else:
            self.mean, variances = broadcast_vectors(mean, cov, "mean", "cov")
            self.cov = read_only(np.diag(positive(variances, "variances in cov")))
        self.dim = len(self.mean)
        self.bounds = read_only(np.tile([-np.inf, np.inf], (self.dim, 1)))
        self.marginals = None
        variances = np.diagonal(self.cov)
        self.width = read_only(NORMAL_WIDTH * np.sqrt(variances))
        if not (self.cov - np.diag(variances)).any():
            pairs = zip(self.mean, np.sqrt(variances), strict=True)
            self.marginals = tuple(NormalMarginal(float(m), float(sd)) for m, sd in pairs)

    def __repr__(self) -> str:
        return f"Gaussian({self.mean.tolist()}, {self.cov.tolist()})"

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return rng.multivariate_normal(self.mean, self.cov, size=n, method="cholesky")

    def from_cube(self, U: Array) -> Array:
        """Map points U (n, D) of the unit cube to points of the measure, shape (n, D): uniform points become draws."""
        return np.asarray(self.mean + ndtri(U) @ np.linalg.cholesky(self.cov).T)

    def over(self, inputs: Sequence[int]) -> Gaussian:
        """Return the normal distribution of the given inputs."""
        return Gaussian(self.mean[list(inputs)], self.cov[np.ix_(inputs, inputs)])

    def to_dict(self) -> dict[str, Any]:
        """Return the class, the mean and the covariance matrix, as plain lists."""
        return {"class": "Gaussian", "mean": self.mean.tolist(), "cov": self.cov.tolist()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Gaussian:
        """Rebuild the normal distribution from the output of `to_dict`."""
        return cls(content["mean"], content["cov"])

    @property
    def moments(self) -> tuple[Array, Array]:
        """The mean and the standard deviation of each input, shape (D,) each."""
        return self.mean, np.sqrt(np.diagonal(self.cov))

    @cached_property
    def axes(self) -> Array:
        """Scaled Cholesky factor of the covariance matrix, shape (D, D): x = median + axes @ u."""
        return read_only(np.asarray(NORMAL_WIDTH * np.linalg.cholesky(self.cov), dtype=float))

    @cached_property
    def reach(self) -> Array:
        """Box in which locations are searched, in whitened coordinates u, shape (D, 2)."""
        end = ndtri(1 - SETTINGS.tail_probability) / NORMAL_WIDTH
        return read_only(np.tile([-end, end], (self.dim, 1)))


class GaussianCopula(MarginalMeasure):
    """Dependent inputs: any marginals, with the dependence of correlated normal variables.

    Every input is a function of its normal score, and the scores have the given correlations. Models work with these
    scores, and are integrated against their multivariate normal distribution in closed form; users and sources only see
    the inputs in their own units. If some marginals are discrete, integrals are averages over 4,096 low-discrepancy
    points, accurate to about 0.001 standard deviations of the output.

    Parameters
    ----------
    marginals : sequence of D distributions
        Frozen scipy.stats distributions, continuous or discrete; random variables of scipy 1.15 and later; histograms;
        or dictionaries of numbers and their probabilities. Categories, which have no order, cannot be correlated.
    correlation : D × D array
        Correlation matrix of the normal scores: symmetric and positive semi-definite, with a diagonal of ones. It may
        be singular.

    Examples
    --------
    >>> from scipy import stats
    >>> wind = GaussianCopula([stats.weibull_min(2, scale=9), stats.lognorm(0.3, scale=0.1)], [[1, -0.5], [-0.5, 1]])
    >>> wind.bounds
    array([[ 0., inf],
           [ 0., inf]])
    """

    marginals = None
    _whole: GaussianCopula | None = None

    def __init__(self, marginals: Sequence[Distribution | RandomVariable], correlation: ArrayLike) -> None:
        if not is_list(marginals) or not marginals:
            remedy = (
                ": give a list of its values, and names=[...] to what evaluates" if isinstance(marginals, dict) else ""
            )
            raise TypeError(
                f"marginals must be a non-empty list of scipy.stats distributions, got {brief(marginals)}{remedy}"
            )
        checked = [checked_distribution(d, f"marginals[{i}]") for i, d in enumerate(marginals)]
        for i, distribution in enumerate(checked):
            if isinstance(distribution, DiscreteDistribution) and distribution.labels:
                raise TypeError(
                    f"marginals[{i}] is {distribution!r}: categories have no order, and cannot be correlated with "
                    "others; if they have one, give them numbers, as in {0: 0.2, 1: 0.8}"
                )
        self.distributions, self.dim = tuple(checked), len(checked)
        self.correlation = _correlation(numbers(correlation, "correlation"), self.dim)
        self._set()

    def _set(self) -> None:
        self.bounds = read_only(np.array([d.support() for d in self.distributions], dtype=float))
        with SILENCE, np.errstate(all="ignore"):
            quartiles = np.array([d.ppf([0.25, 0.75]) for d in self.distributions], dtype=float)
        width = 2 * (quartiles[:, 1] - quartiles[:, 0])
        for d in self.discrete:  # half of a discrete input may have the same value
            width[d] = width[d] or np.ptp(self.bounds[d])
        self.width = read_only(width)
        if not (self.width > 0).all():
            at = int(np.argmin(self.width > 0))
            raise ValueError(f"half of {describe(self.distributions[at])} is at a single point: omit such an input")

    @classmethod
    def fit(
        cls, samples: ArrayLike, marginals: Sequence[Distribution | RandomVariable] | None = None
    ) -> GaussianCopula:
        """Return a copula with the dependence of samples (M, D): the correlations of the normal scores of their ranks.

        Parameters
        ----------
        samples : (M, D) array
            At least three draws of all inputs.
        marginals : sequence of D distributions, optional
            By default the empirical ones: histograms with bins of equal probability.
        """
        X = points(samples, None, "samples")
        if len(X) < 3:
            raise ValueError(f"samples must hold at least three draws, got shape {X.shape}")
        constant = np.flatnonzero(np.ptp(X, axis=0) == 0)
        if len(constant):
            raise ValueError(f"input {constant[0]} is the same in all samples: omit an input that is constant")
        scores = ndtri(scipy.stats.rankdata(X, axis=0) / (len(X) + 1))
        correlation = np.atleast_2d(np.corrcoef(scores.T))
        return cls([_empirical_marginal(column) for column in X.T] if marginals is None else marginals, correlation)

    def __repr__(self) -> str:
        return f"GaussianCopula([{', '.join(map(describe, self.distributions))}], {self.correlation.tolist()})"

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return self._from_scores(self._scores.sample(n, rng))

    def from_cube(self, U: Array) -> Array:
        """Map points U (n, D) of the unit cube to points of the measure, shape (n, D): uniform points become draws."""
        return self._from_scores(self._scores.from_cube(U))

    def _from_scores(self, Z: Array) -> Array:
        columns = zip(self.distributions, Z.T, strict=True)
        with SILENCE, np.errstate(all="ignore"):  # the smaller tail has more digits
            return np.column_stack([np.where(z < 0, d.ppf(ndtr(z)), d.isf(ndtr(-z))) for d, z in columns])

    @cached_property
    def _scores(self) -> Gaussian:
        """The joint distribution of the normal scores."""
        return Gaussian(np.zeros(self.dim), self.correlation)

    @cached_property
    def latent(self) -> Measure:
        """The joint distribution of the normal scores of continuous inputs and the values of discrete ones."""
        return Empirical(self.to_latent(self.sobol(POINTS, 0))) if self.discrete else self._scores

    @property
    def resolution(self) -> float:
        """Standard deviation of the error of integrals, relative to the output's, if points represent π."""
        return RESOLUTION if self.discrete else 0.0

    @property
    def whole(self) -> GaussianCopula:
        """The copula with all of its points, if this one is the version for learning; otherwise the copula itself."""
        return self._whole or self

    def for_learning(self) -> GaussianCopula:
        """Return the copula with fewer points, if points represent it."""
        return self._to_learn_by if self.discrete and self._whole is None else self

    @cached_property
    def _to_learn_by(self) -> GaussianCopula:
        other = copy(self)
        other.__dict__["latent"], other._whole = self.latent.for_learning(), self
        return other

    def to_latent(self, X: Array) -> Array:
        """Return the normal scores of locations X, shape (n, D); for discrete inputs, their values."""
        return self._scores_and_slopes(X)[0]

    def latent_slopes(self, X: Array) -> Array:
        """Return the derivative of each latent coordinate with respect to its input, shape (n, D)."""
        return self._scores_and_slopes(X)[1]

    def _scores_and_slopes(self, X: Array) -> tuple[Array, Array]:
        """Return latent coordinates and their slopes, cached for the latest locations: a search asks repeatedly."""
        known = self.__dict__.get("_known", ())
        for locations, scores, slopes in known:
            if locations is X or (locations.shape == X.shape and np.array_equal(locations, X)):
                return scores, slopes
        scores, slopes = np.empty(X.shape), np.empty(X.shape)
        with SILENCE, np.errstate(all="ignore"):
            for d, distribution in enumerate(self.distributions):
                below, x = distribution.cdf(X[:, d]), X[:, d]
                score, high = ndtri(below), ~(below < 0.5)
                if high.any():  # the smaller tail has more digits
                    score[high] = -ndtri(distribution.sf(x[high]))
                scores[:, d], slopes[:, d] = np.clip(score, -LARGEST_SCORE, LARGEST_SCORE), distribution.pdf(x)
            slopes *= np.sqrt(2 * np.pi) * np.exp(0.5 * scores**2)
        own = list(self.discrete)
        scores[:, own], slopes[:, own] = X[:, own], 1.0
        slopes = np.where(np.isfinite(slopes), slopes, 0.0)
        self.__dict__["_known"] = ((X.copy(), scores, slopes), *known[:3])
        return scores, slopes

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_known", "_to_learn_by")}

    @cached_property
    def axes(self) -> Array:
        """Cholesky factor of the correlations, in widths of the inputs, shape (D, D): x = median + axes @ u."""
        return read_only(self.width[:, None] * np.linalg.cholesky(self.correlation))

    @cached_property
    def reach(self) -> Array:
        """Box around points of the measure, in whitened coordinates u, shape (D, 2)."""
        X = np.clip(self.sobol(1024, 0), *self._ends.T)
        u = self.whitened(X)
        return read_only(np.column_stack([u.min(axis=0), u.max(axis=0)]))

    @cached_property
    def _ends(self) -> Array:
        tail = SETTINGS.tail_probability
        ends = np.array([(d.ppf(tail), d.isf(tail)) for d in self.distributions], dtype=float)
        ends[list(self.discrete)] = self.bounds[list(self.discrete)]
        return ends

    def nearest(self, X: Array) -> Array:
        """Return locations (n, D) moved into the box without tails, and discrete inputs to their nearest values."""
        return super().nearest(np.clip(X, *self._ends.T))

    def over(self, inputs: Sequence[int]) -> Measure:
        """Return the copula of the given inputs; a single discrete input gets exact sums."""
        chosen = list(inputs)
        distributions = [self.distributions[d] for d in chosen]
        if len(chosen) == 1 and chosen[0] in self.discrete:
            return Product(distributions)
        found = GaussianCopula(distributions, self.correlation[np.ix_(chosen, chosen)])
        return found if self._whole is None else found.for_learning()

    def to_dict(self) -> dict[str, Any]:
        """Return the class, the marginals and the correlations."""
        marginals = [_marginal_to_dict(d) for d in self.distributions]
        return {"class": "GaussianCopula", "marginals": marginals, "correlation": self.correlation.tolist()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> GaussianCopula:
        """Rebuild the copula from the output of `to_dict`; raise ValueError if it only has a digest of a marginal."""
        return cls([_marginal_from_dict(d) for d in content["marginals"]], content["correlation"])


#: A covariance matrix counts as singular if its correlation matrix has an eigenvalue this small: below it the Cholesky
#: factor is rounding error.
SMALLEST_EIGENVALUE = 1e-14


def _covariance(cov: Array) -> Array:
    """Return a positive definite covariance matrix, made exactly symmetric."""
    positive(np.diagonal(cov), "variances on the diagonal of cov")
    if np.linalg.eigvalsh(correlations(cov, "cov"))[0] <= SMALLEST_EIGENVALUE:
        raise ValueError(
            f"cov must be positive definite, but it has a direction without variance, or a negative one: {brief(cov)}"
        )
    return read_only(0.5 * cov + 0.5 * cov.T)


def _correlation(matrix: Array, dim: int) -> Array:
    """Check a correlation matrix and return it exactly symmetric and safely positive definite."""
    if matrix.shape != (dim, dim):
        raise ValueError(f"correlation must be a {dim} × {dim} matrix, one row per marginal, got shape {matrix.shape}")
    if np.abs(np.diagonal(matrix) - 1).max() > EIGENVALUE_TOLERANCE:
        raise ValueError(f"correlation must have a diagonal of ones, got {brief(np.diagonal(matrix))}")
    matrix = correlations(matrix, "correlation")
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    if values[0] < -EIGENVALUE_TOLERANCE:
        raise ValueError(
            f"correlation must be positive semi-definite, but it has the eigenvalue {values[0]:.3g}: no joint "
            "distribution has these correlations"
        )
    if values[0] >= SMALLEST_CORRELATION_EIGENVALUE:
        return read_only(0.5 * (matrix + matrix.T))
    raised = (vectors * np.maximum(values, SMALLEST_CORRELATION_EIGENVALUE)) @ vectors.T
    scale = np.sqrt(np.diagonal(raised))
    return read_only(raised / scale / scale[:, None])


def _empirical_marginal(column: Array) -> Any:
    """Return a histogram of samples over their whole range, with bins of equal probability."""
    n_bins = int(np.clip(len(column) // SAMPLES_PER_BIN, 2, MOST_BINS))
    edges = np.unique(np.quantile(column, np.linspace(0, 1, n_bins + 1)))
    return scipy.stats.rv_histogram(np.histogram(column, bins=edges), density=False)


def _marginal_to_dict(distribution: Any) -> dict[str, Any]:
    """Return a marginal in JSON-serialisable form; an empirical one with all its bins."""
    if histogram_edges(distribution) is None or distribution.args or distribution.kwds:
        return distribution_to_dict(distribution)
    counts, edges = distribution.dist._histogram
    density = bool(distribution.dist._density)
    return {"counts": np.asarray(counts).tolist(), "edges": np.asarray(edges).tolist(), "density": int(density)}


def _marginal_from_dict(content: Mapping[str, Any]) -> Any:
    """Rebuild a marginal from the output of `_marginal_to_dict`."""
    if "counts" not in content:
        return distribution_from_dict(content)
    counts, edges = (np.array(content[key]) for key in ("counts", "edges"))
    return scipy.stats.rv_histogram((counts, edges), density=bool(content["density"]))
