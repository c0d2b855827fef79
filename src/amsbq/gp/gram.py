"""Gram matrices of given observations and their log evidence, for K models at once.

Notation: N observations with sources s (N,), inputs X (N, D) and residuals r (N,); K models with Q terms of one kind;
M = N (N + 1) / 2 pairs of observations.

Conditioning needs few matrices, which may be large: `gram_matrices`, by columns. Learning needs thousands of small ones
and their gradients: `Evidence`, with each matrix as a vector over pairs, G (K, M), which is half of the work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from ..common.validation import Array, IntArray
from . import linalg
from .coregionalisation import ModelBatch, TermGroup
from .data import VALUE, Sites
from .kernels import Derivatives, ProductKernel, unordered

#: numbers in the largest arrays: enough to amortise a call, and few enough to stay near the cache
LARGEST_ARRAY = 1_000_000
#: numbers in the columns of Gram matrices that are filled at a time: few enough to stay in the cache
FILLED_AT_A_TIME = 100_000
#: digits of inputs and outputs in standard units while learning: rounded, so that the search is the same in any units
DIGITS = 12


def gram_matrices(models: ModelBatch, sites: Sites) -> Array:
    """Return the lower triangle of the covariance of N observations by each model, without noise: shape (K, N, N).

    It is in Fortran's order, for LAPACK, and filled a few columns at a time, which saves half of the work; entries
    above the diagonal are undefined.
    """
    n = len(sites)
    G = np.zeros((len(models), n, n))
    sizes = [len(group.flat_scales) for group in models.groups]
    for some in _parts(n, max(FILLED_AT_A_TIME // max(max(sizes, default=1) * n, 1), 1)):
        rest = slice(some.start, None)
        G[:, some, rest] = models.cov(sites.rows(some), sites.rows(rest))
    return G.swapaxes(1, 2)


class EvidenceGradient(NamedTuple):
    """Derivatives of the log evidence of K models."""

    by_B: Array  # (K, Q, L, L), upper triangles; an off-diagonal entry counts both of its appearances in G
    by_log_scales: Array  # (K, Q, D)
    by_noise: Array  # (K, L), in the noise variances


class Evidence:
    """The log evidence log N(r; 0, G) of given observations, and its gradient.

    Parameters
    ----------
    sites : Sites
        The sites of the observations, in latent coordinates.
    r : (N,) array
        Residuals; those of derivatives are with respect to coordinates in the given units.
    kernel : ProductKernel
        The kind of all terms.
    fixed : (L, L) array
        Covariances between sources that do not depend on the inputs, the same for all models.
    noise_var : (N,) array
        Known noise variances of the observations, the same for all models.
    jitter : float
        Share of its diagonal that is added to the diagonal of G. It is the same for all models, because a jitter that
        changes with the hyperparameters would make the evidence discontinuous.
    unit : (D,) array
        Lengthscales are in these units.
    categorical : tuple of int
        The inputs whose values are categories.
    trend : (N, P) array, optional
        The functions h of a linear trend at the observations, or their derivatives.
    trend_shares : (Q,) floats
        For each term, the share t of its variance that a trend adds: κ(x, x') + t h(x)ᵀ h(x') in place of κ.
    constant_shares : (Q,) floats
        For each term, the share of its variance that a constant adds.
    """

    def __init__(
        self,
        sites: Sites,
        r: Array,
        kernel: ProductKernel,
        fixed: Array,
        noise_var: Array,
        jitter: float,
        unit: Array,
        categorical: Sequence[int] = (),
        trend: Array | None = None,
        trend_shares: Sequence[float] = (),
        constant_shares: Sequence[float] = (),
    ) -> None:
        self.s, self.r, self.kernel, self.n_sources = sites.s, r, kernel, len(fixed)
        self.pairs = pairs = linalg.Pairs(self.s)
        steps = pairs.differences(sites.X)
        steps /= unit[:, None]
        unordered(steps, categorical)
        np.round(steps, DIGITS, out=steps)
        by, by2 = sites.by[pairs.first], sites.by[pairs.second]
        self._derivatives = Derivatives(steps, by, by2) if sites.differentiated.any() else None
        self._features = kernel.features(steps)
        self._of_source = np.eye(self.n_sources)[self.s]  # (N, L)
        of_values = (by == VALUE) & (by2 == VALUE)
        self._fixed = np.where(of_values, pairs.of_sources(fixed), 0.0)
        self._fixed[pairs.diagonal] += noise_var
        products = np.zeros(len(self._fixed)) if trend is None else pairs.outer(trend.T).sum(axis=0)
        shares = list(zip_longest(trend_shares, constant_shares, fillvalue=0.0))
        self._trends = [
            (q, share * np.round(products, DIGITS) + constant * of_values)
            for q, (share, constant) in enumerate(shares)
            if share or constant
        ]
        self._jittered = np.ones_like(self._fixed)
        self._jittered[pairs.diagonal] += jitter
        self._counted = self._jittered.copy()
        self._counted[pairs.diagonal] *= 0.5  # the diagonal appears once in G, all other entries twice

    def batches(self, n: int, n_terms: int) -> Iterator[slice]:
        """Yield slices of n models, few enough at a time to keep arrays small."""
        return _parts(n, max(LARGEST_ARRAY // max(n_terms * len(self._fixed), 1), 1))

    def log_evidence(self, group: TermGroup, noise: Array | None = None) -> Array:
        """Return the log evidence of models with terms ``group`` and, on top, noise variances (K, L): shape (K,)."""
        G, _, _, _ = self._covariances(group, noise)
        return linalg.log_densities_packed(self.pairs.packed(G), self.r)

    def log_evidence_and_grad(self, group: TermGroup, noise: Array | None = None) -> tuple[Array, EvidenceGradient]:
        """Return the log evidence, shape (K,), and its gradient.

        With α = G⁻¹ r, its differential is ½ tr((α αᵀ - G⁻¹) dG).
        """
        pairs = self.pairs
        G, kernels, undifferentiated, weights = self._covariances(group, noise)
        F = pairs.packed(G)
        values, alpha = linalg.invert_packed(F, self.r)
        by_G = pairs.outer(alpha)
        by_G -= pairs.unpacked(F)
        by_G *= self._counted
        kernels *= by_G[:, None]
        by_B = pairs.sums(kernels, self.n_sources)
        for q, trend in self._trends:  # which does not depend on the lengthscales
            kernels[:, q] -= trend * by_G
        kernels *= weights
        scales = group.flat_scales
        by_scales = self.kernel.contract_log_scales_batch(self._features, scales, kernels.reshape(len(scales), -1))
        if self._derivatives is not None:  # κ F depends on them through F, too
            entries = self._derivatives.entries
            undifferentiated *= (weights[:, :, entries] * by_G[:, None, entries]).reshape(len(scales), -1)
            by_scales += self._derivatives.contract_log_scales(self.kernel, scales, undifferentiated)
        by_noise = np.zeros((len(G), self.n_sources)) if noise is None else by_G[:, pairs.diagonal] @ self._of_source
        return values, EvidenceGradient(by_B, by_scales.reshape(group.scales.shape), by_noise)

    def leave_out(self, groups: Sequence[IntArray], group: TermGroup, noise: Array | None = None) -> Array:
        """Return the log density of each group's mean observation, given all observations outside it: (K, groups).

        With α = G⁻¹ r and P = G⁻¹, restricted to a group of n, and w = P⁻¹ 1 / n, the residual of its mean is wᵀ α, and
        the variance wᵀ 1 / n. For a single observation these are α_i / P_ii and 1 / P_ii.
        """
        F = self.pairs.packed(self._covariances(group, noise)[0])
        _, alpha = linalg.invert_packed(F, self.r)
        at, tiny = linalg.packed_positions(len(self.r)), np.finfo(float).tiny  # F is zero where inversion failed
        first = np.array([rows[0] for rows in groups], dtype=np.intp)
        precisions, residuals = np.maximum(F[:, at[first, first]], tiny), alpha[:, first]
        for j, rows in enumerate(groups):
            if (n := len(rows)) > 1:
                P = F[:, at[rows[:, None], rows]] + tiny * np.eye(n)
                w = np.linalg.solve(P, np.full((len(F), n, 1), 1 / n))[:, :, 0]
                precisions[:, j] = 1 / np.maximum(w.mean(axis=1), tiny)
                residuals[:, j] = np.einsum("ki,ki->k", w, alpha[:, rows]) * precisions[:, j]
        return np.asarray(0.5 * (np.log(precisions) - linalg.LOG_2_PI - residuals**2 / precisions))

    def _covariances(self, group: TermGroup, noise: Array | None) -> tuple[Array, Array, Array, Array]:
        """Return G (K, M) with jitter, κ or κ F (K, Q, M), κ of the derivatives (K Q, E), and B of pairs (K, Q, M)."""
        values, undifferentiated = self.kernel.values_batch(self._features, group.flat_scales), np.empty((0, 0))
        if self._derivatives is not None:
            undifferentiated = values[:, self._derivatives.entries]
            values[:, self._derivatives.entries] *= self._derivatives.factors(self.kernel, group.flat_scales)
        kernels = group.per_model(values)
        for q, trend in self._trends:
            kernels[:, q] += trend
        weights = self.pairs.of_sources(group.B)
        G = weighted_sum(kernels, weights)
        G += self._fixed
        if noise is not None:
            G[:, self.pairs.diagonal] += noise[:, self.s]
        G *= self._jittered
        return G, kernels, undifferentiated, weights


def weighted_sum(kernels: Array, weights: Array) -> Array:
    """Return Σ_q κ_q B_q for arrays of shape (K, Q, M): shape (K, M)."""
    out: Array = kernels[:, 0] * weights[:, 0]
    for q in range(1, kernels.shape[1]):
        out += kernels[:, q] * weights[:, q]
    return out


def _parts(n: int, most: int) -> Iterator[slice]:
    """Yield slices of a range of length n, each no longer than ``most``."""
    return (slice(start, min(start + most, n)) for start in range(0, n, most))


def batches_of_models(n: int, n_observations: int) -> Iterator[slice]:
    """Yield slices of n models, few enough at a time to keep their Gram matrices small."""
    return _parts(n, max(LARGEST_ARRAY // max(n_observations**2, 1), 1))
