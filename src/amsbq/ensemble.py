"""Posteriors with different hyperparameters, given the same observations, evaluated together.

Notation as in `model`, with K posteriors, N observations, and n points at which ρ² is wanted:

    s (N,), X (N, D)               the observations
    C (N, N), w (K, N)             Cholesky factors, and whitened covariances with the integral
    B (K, L, L), ℓ (K, D)          of each term
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import linalg
from .checks import Array, IntArray
from .embeddings import EmbeddingOverScales
from .kernels import ProductKernel
from .model import Posterior

#: An observation of which no more than this share of its variance is unknown would tell rounding errors.
KNOWN = 1e-10
#: observations up to which factors are inverted: more work once, and less for every look at a few points
INVERTED = 400


@dataclass(frozen=True)
class _Terms:
    """A term of all posteriors."""

    B: Array  # (K, L, L)
    profile: ProductKernel
    scales: Array  # (K, D)
    embedding: EmbeddingOverScales


@dataclass(frozen=True)
class _Points:
    """What is known of points X (n, D), whatever source is observed there."""

    X: Array
    kernels: list[Array]  # κ of the observations and X for each term, (K, N, n)
    means: list[Array]  # μ for each term, (K, n)
    mean_grads: list[Array]  # dμ/dx for each term, (K, n, D), if they are wanted


@dataclass(frozen=True)
class _At:
    """What ρ² and its gradient share."""

    parts: list[Array]  # B κ for each term, (K, N, n)
    A: Array  # (K, N, n)
    share: Array  # c / var Z, (K, n)
    v: Array  # (K, n)
    unknown: NDArray[np.bool_]  # (K, n), whether more than rounding is left to learn
    rho2: Array  # (K, n)


class Ensemble:
    """ρ² of the primary source's integral for each of K posteriors, which have terms of the same kinds."""

    def __init__(self, posteriors: Sequence[Posterior]) -> None:
        first = posteriors[0]
        self.s, self.X, self.factors = first.sources, first.X, [p._C for p in posteriors]
        self.constants = np.zeros_like([p.gp.terms[0].B for p in posteriors])  # B of terms that do not depend on x
        self.terms = []
        for q, term in enumerate(first.gp.terms):
            B, kernel = np.array([p.gp.terms[q].B for p in posteriors]), term.kernel
            if not isinstance(kernel, ProductKernel):
                self.constants += B
                continue
            scales = np.array([_lengthscales(p, q) for p in posteriors])
            self.terms.append(_Terms(B, kernel, scales, EmbeddingOverScales(kernel, scales, first.gp.measure)))
        self.C_inverse = None
        if len(self.s) <= INVERTED:
            self.C_inverse = np.array([linalg.inverse_lower(C) for C in self.factors])
        self.w = np.array([p._w(0) for p in posteriors])
        self.variance = np.array([p._unknown(0) for p in posteriors])
        self.total = np.array([p.gp.prior.variances + p.gp.noise for p in posteriors])  # (K, L)
        floor = max(linalg.variance_floor(len(self.s)), KNOWN)
        self.floor = np.array([floor + 2 * p.jitter for p in posteriors])

    def squared_correlation(self, source: int | IntArray, X: Array) -> Array:
        """ρ² of the integral with an observation of a source, or one for each point, at each X_i: shape (K, n)."""
        return self._at(source, self._points(X)).rho2

    def squared_correlations(self, sources: Sequence[int], X: Array) -> list[Array]:
        """The same for each of several sources, all of them at each X_i."""
        points = self._points(X)
        return [self._at(source, points).rho2 for source in sources]

    def squared_correlation_and_grad(self, source: int | IntArray, X: Array) -> tuple[Array, Array]:
        """ρ² (K, n), and its gradient in X (K, n, D)."""
        points = self._points(X, with_grad=True)
        at = self._at(source, points)
        per_c, per_v = linalg.ratio(2 * at.share, at.v, at.unknown), linalg.ratio(-at.rho2, at.v, at.unknown)
        by_cov = self._solved(-self.w[:, :, None] * per_c[:, None, :] - 2 * per_v[:, None, :] * at.A, transposed=True)
        gradient = np.zeros((*per_c.shape, X.shape[1]))
        for term, part, mean_grad in zip(self.terms, at.parts, points.mean_grads, strict=True):
            gradient += (_of(term.B[:, 0], source) * per_c)[:, :, None] * mean_grad
            gradient += term.profile.contract_grad_x_over_scales(X, self.X, term.scales, by_cov * part)
        return at.rho2, gradient

    def _points(self, X: Array, with_grad: bool = False) -> _Points:
        shape = (len(self.factors), len(self.s), len(X))
        steps = (X.T[:, None, :] - self.X.T[:, :, None]).reshape(X.shape[1], -1)
        kernels, means, mean_grads = [], [], []
        features: dict[type, Array] = {}
        for term in self.terms:
            kind = type(term.profile)
            features[kind] = term.profile.features(steps) if kind not in features else features[kind]
            kernels.append(term.profile.over_scales(features[kind], term.scales).reshape(shape))
            if with_grad:
                mean, mean_grad = term.embedding.mean_and_grad_x(X)
                mean_grads.append(mean_grad)
            else:
                mean = term.embedding.mean(X)
            means.append(mean)
        return _Points(X, kernels, means, mean_grads)

    def _at(self, source: int | IntArray, points: _Points) -> _At:
        shape = (len(self.factors), len(self.s), len(points.X))
        c = np.zeros((len(self.factors), len(points.X))) + _of(self.constants[:, 0], source)
        covariance = np.zeros(shape) + _of(self.constants[:, self.s], source)
        parts = []
        for term, kernel, mean in zip(self.terms, points.kernels, points.means, strict=True):
            part = kernel * _of(term.B[:, self.s], source)
            covariance += part
            c += _of(term.B[:, 0], source) * mean
            parts.append(part)
        A = self._solved(covariance)
        c -= (self.w[:, None, :] @ A)[:, 0]
        total = _of(self.total, source)
        v = total - np.einsum("kji,kji->ki", A, A)
        unknown = v > self.floor[:, None] * total
        share = linalg.ratio(c, self.variance[:, None], self.variance[:, None] > 0)
        rho2 = linalg.ratio(share * c, v, unknown)
        return _At(parts, A, share, v, unknown, np.minimum(rho2, 1))

    def _solved(self, b: Array, transposed: bool = False) -> Array:
        """C⁻¹ b or C⁻ᵀ b, shape (K, N, n)."""
        if self.C_inverse is not None:
            return np.asarray((self.C_inverse.swapaxes(1, 2) if transposed else self.C_inverse) @ b)
        solve = linalg.solve_lower_transposed if transposed else linalg.solve_lower
        return np.array([solve(C, rows) for C, rows in zip(self.factors, b, strict=True)])


def _of(values: Array, source: int | IntArray) -> Array:
    """Those of a source (..., 1) or of the source of each point (..., n), of values for all sources (..., L)."""
    return np.take(values, np.atleast_1d(source), axis=-1)


def _lengthscales(posterior: Posterior, q: int) -> Array:
    kernel = posterior.gp.terms[q].kernel
    assert isinstance(kernel, ProductKernel)
    return kernel.lengthscales_in(posterior.gp.dim)
