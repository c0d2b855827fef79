"""Posteriors with different hyperparameters, given the same observations, evaluated together.

Notation as in `model`, with K posteriors, N observations, and n points at which ρ² is wanted:

    s (N,), X (N, D)               the observations
    C (N, N), w (K, N)             Cholesky factors, and whitened covariances with the integral
    Q                              terms of the same kind: their kernels are evaluated together
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..validation import Array, IntArray
from . import linalg
from .embeddings import EmbeddingOverScales
from .kernels import Constant, ProductKernel
from .posterior import Posterior

#: An observation of which no more than this share of its variance is unknown would tell rounding errors.
KNOWN = 1e-10


#: observations up to which factors are inverted: more work once, and less for every look at a few points
INVERTED = 400


class _Terms(NamedTuple):
    """Q terms of all posteriors, with kernels that differ in their lengthscales alone."""

    profile: ProductKernel
    B: Array  # of the observations and each source, (Q, K, N, L)
    B_primary: Array  # of the primary source and each one, (Q, K, L)
    scales: Array  # (Q K, D)
    embedding: EmbeddingOverScales


class _Points(NamedTuple):
    """What is known of points X (n, D), whatever source is observed there."""

    X: Array
    kernels: list[Array]  # κ of the observations and X for each kind of term, (Q, K, N, n)
    means: list[Array]  # μ, (Q, K, n)
    mean_grads: list[Array]  # dμ/dx, (Q, K, n, D), if they are wanted


class _At(NamedTuple):
    """What ρ² and its gradient share."""

    parts: list[Array]  # B κ for each kind of term, (Q, K, N, n)
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
        B = np.array([[term.B for term in p.gp.terms] for p in posteriors]).swapaxes(0, 1)  # (terms, K, L, L)
        kinds: dict[Any, list[int]] = {}
        for q, term in enumerate(first.gp.terms):
            kinds.setdefault((type(term.kernel), getattr(term.kernel, "nu", None)), []).append(q)
        constant = kinds.pop((Constant, None), [])  # B of terms that do not depend on x
        self.constant = B[constant].sum(axis=0)[:, self.s]  # (K, N, L)
        self.constant_primary = B[constant, :, 0].sum(axis=0)  # (K, L)
        self.terms = []
        for terms in kinds.values():
            kernel = first.gp.terms[terms[0]].kernel
            assert isinstance(kernel, ProductKernel)
            scales = np.array([_lengthscales(p, q) for q in terms for p in posteriors])
            embedding = EmbeddingOverScales(kernel, scales, first.gp.measure)
            self.terms.append(_Terms(kernel, B[terms][:, :, self.s], B[terms, :, 0], scales, embedding))
        self.C_inverse = None
        if len(self.s) <= INVERTED:
            self.C_inverse = np.array([linalg.inverse_lower(C) for C in self.factors])
        self.w = np.array([p._w(0) for p in posteriors])
        variance = np.array([p._unknown(0) for p in posteriors])
        self.variance = np.where(variance > 0, variance, np.inf)  # of Z; where it is zero, nothing is to be learned
        self.total = np.array([p.gp.prior.variances + p.gp.noise for p in posteriors])  # (K, L)
        floor = max(linalg.variance_floor(len(self.s)), KNOWN)
        self.floor = np.array([floor + 2 * p.jitter for p in posteriors])

    def squared_correlation(self, source: int | IntArray, X: Array) -> Array:
        """ρ² of the integral with an observation of a source, or one for each point, at each X_i: shape (K, n)."""
        return self._at(np.atleast_1d(source), self._points(X)).rho2

    def squared_correlations(self, sources: Sequence[int], X: Array) -> list[Array]:
        """The same for each of several sources, all of them at each X_i."""
        points = self._points(X)
        return [self._at(np.array([source]), points).rho2 for source in sources]

    def squared_correlation_and_grad(self, source: int | IntArray, X: Array) -> tuple[Array, Array]:
        """ρ² (K, n), and its gradient in X (K, n, D)."""
        points, source = self._points(X, with_grad=True), np.atleast_1d(source)
        at = self._at(source, points)
        per_c, per_v = linalg.ratio(2 * at.share, at.v, at.unknown), linalg.ratio(at.rho2, at.v, at.unknown)
        by_A = (2 * per_v)[:, None, :] * at.A
        by_A -= self.w[:, :, None] * per_c[:, None, :]
        by_cov = self._solved(by_A, transposed=True)
        gradient = np.zeros((*per_c.shape, X.shape[1]))
        for terms, part, mean_grad in zip(self.terms, at.parts, points.mean_grads, strict=True):
            by_mean = terms.B_primary.take(source, axis=-1) * per_c
            part *= by_cov
            flat = part.reshape(len(terms.scales), *part.shape[2:])
            by_kernel = terms.profile.contract_grad_x_over_scales(X, self.X, terms.scales, flat)
            gradient += (by_mean[..., None] * mean_grad + by_kernel.reshape(mean_grad.shape)).sum(axis=0)
        return at.rho2, gradient

    def _points(self, X: Array, with_grad: bool = False) -> _Points:
        K, N, (n, D) = len(self.factors), len(self.s), X.shape
        steps = (X.T[:, None, :] - self.X.T[:, :, None]).reshape(D, -1)
        kernels, means, mean_grads = [], [], []
        for terms in self.terms:
            Q, features = len(terms.B), terms.profile.features(steps)
            kernels.append(terms.profile.over_scales(features, terms.scales).reshape(Q, K, N, n))
            if with_grad:
                mean, mean_grad = terms.embedding.mean_and_grad_x(X)
                mean_grads.append(mean_grad.reshape(Q, K, n, D))
            else:
                mean = terms.embedding.mean(X)
            means.append(mean.reshape(Q, K, n))
        return _Points(X, kernels, means, mean_grads)

    def _at(self, source: IntArray, points: _Points) -> _At:
        """For a source, as an array of one number, or for the source of each point."""
        source = source if self.terms else np.broadcast_to(source, len(points.X))
        parts, c, covariance = [], self.constant_primary.take(source, axis=-1), self.constant.take(source, axis=-1)
        for terms, kernel, mean in zip(self.terms, points.kernels, points.means, strict=True):
            part = kernel * terms.B.take(source, axis=-1)
            covariance = covariance + part.sum(axis=0)
            c = c + (terms.B_primary.take(source, axis=-1) * mean).sum(axis=0)
            parts.append(part)
        A = self._solved(covariance)
        c = c - (self.w[:, None, :] @ A)[:, 0]
        total = self.total.take(source, axis=-1)
        v = total - np.einsum("kji,kji->ki", A, A)
        unknown = v > self.floor[:, None] * total
        share = c / self.variance[:, None]
        rho2 = linalg.ratio(share * c, v, unknown)
        return _At(parts, A, share, v, unknown, np.minimum(rho2, 1))

    def _solved(self, b: Array, transposed: bool = False) -> Array:
        """C⁻¹ b or C⁻ᵀ b, shape (K, N, n)."""
        if self.C_inverse is not None:
            return np.asarray((self.C_inverse.swapaxes(1, 2) if transposed else self.C_inverse) @ b)
        solve = linalg.solve_lower_transposed if transposed else linalg.solve_lower
        return np.array([solve(C, rows) for C, rows in zip(self.factors, b, strict=True)])


def _lengthscales(posterior: Posterior, q: int) -> Array:
    kernel = posterior.gp.terms[q].kernel
    assert isinstance(kernel, ProductKernel)
    return kernel.lengthscales_in(posterior.gp.dim)
