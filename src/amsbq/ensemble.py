"""Posteriors with different hyperparameters, given the same observations, evaluated together.

Notation as in `model`, with K posteriors, N observations, and n points at which ρ² is wanted:

    s (N,), X (N, D)               the observations
    C⁻¹ (K, N, N), w (K, N)        inverse Cholesky factors, and whitened covariances with the integral
    B (K, L, L), ℓ (K, D)          of each term
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import linalg
from .checks import Array
from .kernels import Constant, ProductKernel
from .model import Posterior

#: An observation of which no more than this share of its variance is unknown would tell rounding errors.
KNOWN = 1e-10


@dataclass(frozen=True)
class _Terms:
    """A term of all posteriors."""

    B: Array  # (K, L, L)
    profile: ProductKernel | None  # None for a constant
    scales: Array  # (K, D)


@dataclass(frozen=True)
class _At:
    """What ρ² and its gradient share."""

    steps: Array  # (D, N, n), x - x_n
    parts: list[Array]  # B κ for each term, (K, N, n)
    A: Array  # (K, N, n)
    share: Array  # c / var Z, (K, n)
    v: Array  # (K, n)
    unknown: NDArray[np.bool_]  # (K, n), whether more than rounding is left to learn
    rho2: Array  # (K, n)


class Ensemble:
    """ρ² of the primary source's integral for each of K posteriors, which have terms of the same kinds."""

    def __init__(self, posteriors: Sequence[Posterior]) -> None:
        self.posteriors = posteriors
        first = posteriors[0]
        self.s, self.X = first.sources, first.X
        self.terms = []
        for same in zip(*(posterior.gp.terms for posterior in posteriors), strict=True):
            kernel = same[0].kernel
            profile = None if isinstance(kernel, Constant) else kernel
            assert profile is None or isinstance(profile, ProductKernel)
            scales = [t.kernel.lengthscales_in(first.gp.dim) for t in same if isinstance(t.kernel, ProductKernel)]
            self.terms.append(_Terms(np.array([term.B for term in same]), profile, np.array(scales)))
        self.C_inverse = np.array([linalg.solve_lower(p._C, np.eye(len(self.s))) for p in posteriors])
        self.w = np.array([p._w(0) for p in posteriors])
        self.variance = np.array([p._unknown(0) for p in posteriors])
        self.total = np.array([p.gp.prior.variances + p.gp.noise for p in posteriors])  # (K, L)
        floor = max(linalg.variance_floor(len(self.s)), KNOWN)
        self.floor = np.array([floor + 2 * p.jitter for p in posteriors])

    def squared_correlation(self, source: int, X: Array) -> Array:
        """ρ² of the integral with an observation of a source at each X_i, shape (K, n)."""
        return self._at(source, X).rho2

    def squared_correlation_and_grad(self, source: int, X: Array) -> tuple[Array, Array]:
        """ρ² (K, n), and its gradient in X (K, n, D)."""
        at = self._at(source, X)
        per_c = np.divide(2 * at.share, at.v, where=at.unknown, out=np.zeros_like(at.v))
        per_v = np.divide(-at.rho2, at.v, where=at.unknown, out=np.zeros_like(at.v))
        by_A = -self.w[:, :, None] * per_c[:, None, :] - 2 * per_v[:, None, :] * at.A
        by_cov = self.C_inverse.transpose(0, 2, 1) @ by_A  # (K, N, n)
        s = np.full(len(X), source)
        gradient = np.array([p.gp.prior.integral_cov_grad_x(0, s, X) for p in self.posteriors]) * per_c[:, :, None]
        for term, part in zip(self.terms, at.parts, strict=True):
            if term.profile is not None:
                weights = by_cov * part
                for d, step in enumerate(at.steps):
                    scale = term.scales[:, d, None, None]
                    slopes = term.profile.log_slope(step / scale)
                    gradient[:, :, d] += np.einsum("kji,kji->ki", weights, slopes) / scale[:, 0]
        return at.rho2, gradient

    def _at(self, source: int, X: Array) -> _At:
        steps = (X.T[:, None, :] - self.X.T[:, :, None]).copy()
        parts = []
        for term in self.terms:
            weights = term.B[:, self.s, source][:, :, None]
            kernel = np.ones((1, 1, 1)) if term.profile is None else term.profile.over_scales(steps, term.scales)
            parts.append(np.broadcast_to(weights * kernel, (len(weights), len(self.s), len(X))))
        A = self.C_inverse @ sum(parts)
        s = np.full(len(X), source)
        c = np.array([p.gp.prior.integral_cov(0, s, X) for p in self.posteriors])
        c = c - np.einsum("kj,kji->ki", self.w, A)
        total = self.total[:, source, None]
        v = total - np.einsum("kji,kji->ki", A, A)
        unknown = v > self.floor[:, None] * total
        share = np.divide(c, self.variance[:, None], where=self.variance[:, None] > 0, out=np.zeros_like(c))
        rho2 = np.divide(share * c, v, where=unknown, out=np.zeros_like(c))
        return _At(steps, parts, A, share, v, unknown, np.minimum(rho2, 1))
