"""gaussian."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from ..validation import Array, brief, correlations, numbers, positive, read_only, vector
from .base import NORMAL_WIDTH, TAIL, Measure, _same_length
from .marginals import NormalMarginal


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
        return np.asarray(self.mean + ndtri(U) @ np.linalg.cholesky(self.cov).T)

    def over(self, inputs: Sequence[int]) -> Gaussian:
        return Gaussian(self.mean[list(inputs)], self.cov[np.ix_(inputs, inputs)])

    @cached_property
    def axes(self) -> Array:
        return read_only(np.asarray(NORMAL_WIDTH * np.linalg.cholesky(self.cov), dtype=float))

    @cached_property
    def reach(self) -> Array:
        end = ndtri(1 - TAIL) / NORMAL_WIDTH
        return read_only(np.tile([-end, end], (self.dim, 1)))


def _covariance(cov: Array) -> Array:
    positive(np.diagonal(cov), "variances on the diagonal of cov")
    if np.linalg.eigvalsh(correlations(cov, "cov"))[0] <= 1e-14:
        raise ValueError(f"cov must be positive definite, but it has a direction without variance: {brief(cov)}")
    return read_only(0.5 * cov + 0.5 * cov.T)
