"""`Gaussian`: the multivariate normal distribution, with independent or correlated inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from ..validation import Array, brief, correlations, numbers, positive, read_only, vector
from .base import NORMAL_WIDTH, SETTINGS, Measure, broadcast_vectors
from .marginals import NormalMarginal


class Gaussian(Measure):
    """The multivariate normal distribution.

    Parameters
    ----------
    mean : float or sequence of D floats
        A single number stands for all inputs.
    cov : float, sequence of D floats, or D × D array
        The variance of all inputs, one variance for each, or the covariance matrix.

    Examples
    --------
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
        """Return the normal distribution of some of the inputs."""
        return Gaussian(self.mean[list(inputs)], self.cov[np.ix_(inputs, inputs)])

    def to_dict(self) -> dict[str, Any]:
        """Return the class, the mean and the covariance matrix, as plain lists."""
        return {"class": "Gaussian", "mean": self.mean.tolist(), "cov": self.cov.tolist()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Gaussian:
        """Return the normal distribution that `to_dict` wrote."""
        return cls(content["mean"], content["cov"])

    @cached_property
    def axes(self) -> Array:
        """Scaled Cholesky factor of the covariance matrix, shape (D, D): x = median + axes @ u."""
        return read_only(np.asarray(NORMAL_WIDTH * np.linalg.cholesky(self.cov), dtype=float))

    @cached_property
    def reach(self) -> Array:
        """Box in which locations are searched, in whitened coordinates u, shape (D, 2)."""
        end = ndtri(1 - SETTINGS.tail_probability) / NORMAL_WIDTH
        return read_only(np.tile([-end, end], (self.dim, 1)))


#: A covariance matrix counts as singular if its correlation matrix has an eigenvalue this small: below it the Cholesky
#: factor is rounding error.
SMALLEST_EIGENVALUE = 1e-14


def _covariance(cov: Array) -> Array:
    """Return a positive definite covariance matrix, made exactly symmetric."""
    positive(np.diagonal(cov), "variances on the diagonal of cov")
    if np.linalg.eigvalsh(correlations(cov, "cov"))[0] <= SMALLEST_EIGENVALUE:
        raise ValueError(f"cov must be positive definite, but it has a direction without variance: {brief(cov)}")
    return read_only(0.5 * cov + 0.5 * cov.T)
