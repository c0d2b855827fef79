"""Covariances between sources, k_ll'(x, x') = Σ_q B_q[l, l'] κ_q(x, x'), for K models at once.

One term is the paper's intrinsic coregionalisation model (Eq. 4), several are the linear model of coregionalisation.

Notation: K models, L sources, Q terms whose kernels are of one kind, s (n,) source numbers, X (n, D) points;
Z_l = ∫ f_l dπ. Observations a (n,) and b (m,) are values, derivatives with respect to an input, or integrals: `Sites`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..common.validation import Array, IntArray, brief, correlations, numbers, read_only
from ..measures.base import Measure
from .data import VALUE, Sites
from .embeddings import EmbeddingBatch
from .kernels import Derivatives, Kernel, ProductKernel, differences
from .trends import NO_TRENDS, Linear, Trends, between, check_kernel


class Term:
    """One term B ⊗ κ of the covariance between sources.

    Parameters
    ----------
    B : L × L array, or a number for one source
        Symmetric and positive semi-definite; it may be singular. B[l, l] is the variance of source l.
    kernel : RBF, Matern or Constant

    >>> from amsbq import RBF
    >>> Term([[1.0, 0.9], [0.9, 1.0]], RBF(0.2))
    Term([[1.0, 0.9], [0.9, 1.0]], RBF(0.2))
    """

    def __init__(self, B: ArrayLike, kernel: Kernel) -> None:
        self.kernel = check_kernel(kernel)
        self.B = _coregionalisation_matrix(numbers(B, "B"))

    def __repr__(self) -> str:
        return f"Term({self.B.tolist()}, {self.kernel!r})"


@dataclass(frozen=True)
class TermGroup:
    """Q terms of each of K models, with kernels that differ only in their lengthscales."""

    kernel: ProductKernel
    B: Array  # (K, Q, L, L)
    scales: Array  # (K, Q, D): lengthscales

    @property
    def flat_scales(self) -> Array:
        """The lengthscales of all models and terms, shape (K Q, D)."""
        return self.scales.reshape(-1, self.scales.shape[-1])

    def per_model(self, values: Array) -> Array:
        """Reshape values for all models and terms, (K Q, ...), to (K, Q, ...)."""
        return values.reshape(*self.scales.shape[:2], *values.shape[1:])

    def over(self, inputs: Sequence[int]) -> TermGroup:
        """Return the factors of the kernels that depend on the given inputs."""
        return replace(self, kernel=self.kernel.over(inputs), scales=self.scales[:, :, inputs])

    def select(self, models: slice | IntArray) -> TermGroup:
        """Return the terms of the given models."""
        return replace(self, B=self.B[models], scales=self.scales[models])


@dataclass(frozen=True)
class ModelBatch:
    """Covariances and integrals of K multi-source Gaussian-process priors with terms of the same kinds."""

    measure: Measure
    groups: tuple[TermGroup, ...]
    constant: Array  # (K, L, L): the sum of B over Constant terms
    noise: Array  # (K, L): variance of the noise on observations
    mean: Array  # (K, L): constant prior means
    trends: Trends = NO_TRENDS
    target: int = 0  # the source whose integral is the target

    @classmethod
    def of_terms(cls, terms: Sequence[Term], measure: Measure, noise: Array, mean: Array) -> ModelBatch:
        """Return a batch of one model."""
        linear = [(term.kernel, term.B[None]) for term in terms if isinstance(term.kernel, Linear)]
        trends = Trends(tuple(kernel for kernel, _ in linear), tuple(B for _, B in linear))
        kinds: dict[Any, list[Term]] = {}
        for term in (term for term in terms if not isinstance(term.kernel, Linear)):
            kinds.setdefault(term.kernel.kind if isinstance(term.kernel, ProductKernel) else None, []).append(term)
        constant = np.sum([term.B for term in kinds.pop(None, [])] or [np.zeros_like(terms[0].B)], axis=0)
        groups = []
        for alike in kinds.values():
            kernels = [term.kernel for term in alike if isinstance(term.kernel, ProductKernel)]
            scales = np.array([[kernel.lengthscales_in(measure.dim) for kernel in kernels]])
            groups.append(TermGroup(kernels[0], np.array([[term.B for term in alike]]), scales))
        return cls(measure, tuple(groups), constant[None], noise[None], mean[None], trends)

    @classmethod
    def joined(cls, batches: Sequence[ModelBatch]) -> ModelBatch:
        """Join batches for one measure; a term that a model lacks has B = 0."""
        kinds = {group.kernel.kind: group.kernel for batch in batches for group in batch.groups}
        groups = []
        for kind, kernel in kinds.items():
            found = [[group for group in batch.groups if group.kernel.kind == kind] for batch in batches]
            Q = max(sum(group.B.shape[1] for group in alike) for alike in found)
            B, scales = [], []
            for batch, alike in zip(batches, found, strict=True):
                K, L, missing = len(batch), batch.n_sources, Q - sum(group.B.shape[1] for group in alike)
                B.append(np.concatenate([*(g.B for g in alike), np.zeros((K, missing, L, L))], axis=1))
                none = np.broadcast_to(batch.measure.latent.width, (K, missing, batch.measure.dim))
                scales.append(np.concatenate([*(g.scales for g in alike), none], axis=1))
            groups.append(TermGroup(kernel, np.concatenate(B), np.concatenate(scales)))
        constant, noise, mean = (
            np.concatenate([getattr(batch, name) for batch in batches]) for name in ("constant", "noise", "mean")
        )
        trends = Trends.joined([(batch.trends, len(batch)) for batch in batches], mean.shape[1])
        return cls(batches[0].measure, tuple(groups), constant, noise, mean, trends, batches[0].target)

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def n_sources(self) -> int:
        """The number of sources, L."""
        return int(self.mean.shape[1])

    def select(self, models: slice | IntArray) -> ModelBatch:
        """Return some of the models."""
        groups, trends = tuple(group.select(models) for group in self.groups), self.trends.select(models)
        constant, noise, mean = (each[models] for each in (self.constant, self.noise, self.mean))
        return replace(self, groups=groups, constant=constant, noise=noise, mean=mean, trends=trends)

    @property
    def mass(self) -> float:
        """The integral of 1, which is one, because measures are probabilities."""
        return 1.0

    def prior_mean(self, a: Sites) -> Array:
        """Return the prior means of observations, shape (K, n)."""
        return np.where(a.differentiated, 0.0, self.mean[:, a.s])

    def variances(self, a: Sites) -> Array:
        """Return the variances of observations without their noise, shape (K, n)."""
        total = np.array(np.broadcast_to(self.cov_at_same(a, a), (len(self), len(a))))
        for i in np.flatnonzero(a.of_integral):
            total[:, i] = self.integral_covariance(a.s[i], a.s[i])
        return total

    @cached_property
    def embeddings(self) -> tuple[EmbeddingBatch, ...]:
        """The kernels of each group, integrated against the measure."""
        return tuple(EmbeddingBatch(group.kernel, group.flat_scales, self.measure) for group in self.groups)

    def kernels(self, a: Sites, b: Sites) -> list[Array]:
        """Return κ, or its derivatives, between observations, for each group of terms: (K, Q, n, m) each."""
        measure = self.measure
        steps = differences(measure.to_latent(a.X), measure.to_latent(b.X), measure.categorical)
        differentiated = a.differentiated.any() or b.differentiated.any()
        if differentiated:
            derivatives = Derivatives(steps, np.repeat(a.by, len(b)), np.tile(b.by, len(a)))
            slopes = np.outer(a.latent_slopes(measure), b.latent_slopes(measure))
        out = []
        for group in self.groups:
            values = group.kernel.values_batch(group.kernel.features(steps), group.flat_scales)
            if differentiated:
                values[:, derivatives.entries] *= derivatives.factors(group.kernel, group.flat_scales)
                values *= slopes.ravel()
            out.append(group.per_model(values.reshape(len(values), len(a), len(b))))
        return out

    @cached_property
    def _at_same(self) -> Array:
        """Cov[f_l(x), f_l'(x)] under each model, without trends, shape (K, L, L)."""
        return np.asarray(sum((group.B.sum(axis=1) for group in self.groups), start=self.constant))

    @cached_property
    def _derivatives_at_same(self) -> Array:
        """Cov[∂f_l(x)/∂z_d, ∂f_l'(x)/∂z_d] under each model, without trends, in latent coordinates z: (K, L, L, D)."""
        total = np.zeros((*self.constant.shape, self.measure.dim))
        for group in self.groups:
            curvature = float(group.kernel.log_curvature(np.zeros(1))[0])
            total -= curvature * np.einsum("kqij,kqd->kijd", group.B, group.scales**-2.0)
        return total

    def cov_at_same(self, a: Sites, b: Sites) -> Array:
        """Return the covariances of observations a_i and b_i at the same locations: (K, n) or (K, 1)."""
        total = np.asarray(self._at_same[:, a.s, b.s])
        differentiated = a.differentiated | b.differentiated
        if differentiated.any():
            total = np.where(differentiated, 0.0, total)
            both = np.flatnonzero((a.by == b.by) & differentiated)
            some, others = a.rows(both), b.rows(both)
            total[:, both] = self._derivatives_at_same[:, some.s, others.s, some.by]
            total[:, both] *= some.latent_slopes(self.measure) ** 2
        return np.asarray(total + self.trends.cov_at_same(self.measure, a, b))

    def observation_noise(self, a: Sites, known: Array) -> Array:
        """Return the noise variances of observations, the known ones (n,) plus those of their sources: (K, n).

        The noise of a source is that of its values. Derivatives with respect to latent coordinates, in units of their
        widths, have the same noise.
        """
        own = np.where(a.of_integral, 0.0, self.noise[:, a.s])
        return np.asarray(known + (own * a.per_width(self.measure) ** 2 if a.differentiated.any() else own))

    def cov(self, a: Sites, b: Sites) -> Array:
        """Return the prior covariances of n observations with m others under each model, shape (K, n, m)."""
        rows, columns = a.of_integral, b.of_integral
        if not (rows.any() or columns.any()):
            return self._cov(a, b)
        total = np.empty((len(self), len(a), len(b)))
        located, others = np.flatnonzero(~rows), np.flatnonzero(~columns)
        total[:, located[:, None], others] = self._cov(a.rows(located), b.rows(others))
        for i in np.flatnonzero(rows):
            total[:, i] = self.integral_cov(int(a.s[i]), b)
        for j in np.flatnonzero(columns):
            total[:, :, j] = self.integral_cov(int(b.s[j]), a)
        return total

    def _cov(self, a: Sites, b: Sites) -> Array:
        """Return the prior covariances of n values or derivatives with m others under each model, shape (K, n, m)."""
        total = self.constant_cov(a, b)
        for group, kernels in zip(self.groups, self.kernels(a, b), strict=True):
            kernels *= between(group.B, a.s, b.s)
            total = total + kernels.sum(axis=1)
        return total + self.trends.cov(self.measure, a, b)

    def constant_cov(self, a: Sites, b: Sites) -> Array:
        """Return the covariances by `Constant` terms, for one source (1,) or one per point (n,): shape (K, n, m)."""
        constant = between(self.constant, a.s, b.s)
        if a.differentiated.any() or b.differentiated.any():
            constant = np.where(np.logical_or.outer(a.differentiated, b.differentiated), 0.0, constant)
        return constant

    def contract_grad_x(self, s: IntArray, X: Array, b: Sites, coefficients: Array) -> Array:
        """Return Σ_j c_ji ∂cov[f_s(X_i), y_j]/∂X_i under each model for observations b and c (K, m, n): (K, n, D)."""
        total = np.zeros((len(self), *X.shape))
        if (integrals := b.of_integral).any():
            for j in np.flatnonzero(integrals):
                total += coefficients[:, j, :, None] * self.integral_cov_grad_x(int(b.s[j]), s, X)
            b, coefficients = b.rows(~integrals), coefficients[:, ~integrals]
        for group, kernels in zip(self.groups, self.kernels(b, Sites.values(s, X)), strict=True):
            kernels *= between(group.B, b.s, s)
            kernels *= coefficients[:, None]
            total += self.contract_kernels_grad_x(group, kernels, X, b.X)
        total += self.contract_derivatives_grad_x(s, X, b, coefficients)
        return total + self.trends.contract_grad_x(self.measure, s, X, b, coefficients)

    def contract_kernels_grad_x(self, group: TermGroup, coefficients: Array, X: Array, X2: Array) -> Array:
        """Return Σ_qj c_qji ∂log κ_q(X_i, X2_j)/∂X_i of each model for c (K, Q, m, n), shape (K, n, D)."""
        K, Q = coefficients.shape[:2]
        flat = coefficients.reshape(K * Q, *coefficients.shape[2:])
        Z, Z2, slopes = self.measure.to_latent(X), self.measure.to_latent(X2), self.measure.latent_slopes(X)
        each = group.kernel.contract_grad_x_batch(Z, Z2, group.flat_scales, flat)
        total = np.asarray(each.reshape(K, Q, *X.shape).sum(axis=1))
        return total if slopes is None else total * slopes

    def contract_derivatives_grad_x(self, s: IntArray, X: Array, b: Sites, coefficients: Array) -> Array | float:
        """Return the part of `contract_grad_x` that `contract_kernels_grad_x` lacks if b has derivatives.

        The derivative of -κ ψ/ℓ with respect to the same input is (-κ ψ/ℓ) ψ/ℓ, which is already included, plus -κ
        ψ'/ℓ², which is returned.
        """
        which = np.flatnonzero(b.differentiated)
        if not len(which):
            return 0.0
        b, c, inputs, measure = b.rows(which), coefficients[:, which], np.eye(X.shape[1])[b.by[which]], self.measure
        steps = measure.to_latent(X).T[b.by] - measure.to_latent(b.X)[np.arange(len(b)), b.by][:, None]
        c = c * b.latent_slopes(measure)[:, None]
        total, values = np.zeros((len(self), *X.shape)), self.kernels(Sites.values(b.s, b.X), Sites.values(s, X))
        for group, kernels in zip(self.groups, values, strict=True):
            ells = group.scales[:, :, b.by, None]
            kernels *= group.kernel.log_slope_grad(steps / ells) / ells**2
            kernels *= between(group.B, b.s, s)
            total -= np.einsum("kji,jd->kid", kernels.sum(axis=1) * c, inputs)
        slopes = measure.latent_slopes(X)
        return total if slopes is None else total * slopes

    def integral_cov(self, target: int, a: Sites) -> Array:
        """Return cov[Z_target, y] under each model, shape (K, n): the paper's ⟨k_{1l}(·, X)⟩ for values at X."""
        if (integrals := a.of_integral).any():
            total = np.empty((len(self), len(a)))
            total[:, ~integrals] = self.integral_cov(target, a.rows(~integrals))
            for i in np.flatnonzero(integrals):
                total[:, i] = self.integral_covariance(target, int(a.s[i]))
            return total
        total = self.mass * np.where(a.differentiated, 0.0, self.constant[:, target, a.s])
        for group, embedding in zip(self.groups, self.embeddings, strict=True):
            means = group.per_model(_means(embedding, a))
            total = total + (group.B[:, :, target, a.s] * means).sum(axis=1)
        return np.asarray(total + self.trends.integral_cov(self.measure, target, a))

    def integral_cov_grad_x(self, target: int, s: IntArray, X: Array) -> Array:
        """Return ∂cov[Z_target, f_s(X_i)]/∂X_i under each model, shape (K, n, D)."""
        total = np.zeros((len(self), *X.shape))
        for group, embedding in zip(self.groups, self.embeddings, strict=True):
            gradients = group.per_model(embedding.mean_and_grad_x(X)[1])
            total += (group.B[:, :, target, s, None] * gradients).sum(axis=1)
        return total + self.trends.integral_cov_grad_x(self.measure, target, s, X)

    def integral_covariance(self, target: int, other: int) -> Array:
        """Return cov[Z_target, Z_other] under each model, shape (K,): the paper's ⟨⟨k_11⟩⟩ for the primary source."""
        total = self.mass**2 * self.constant[:, target, other]
        for group, embedding in zip(self.groups, self.embeddings, strict=True):
            total = total + (group.B[:, :, target, other] * group.per_model(embedding.variance)).sum(axis=1)
        return total + self.trends.integral_covariance(self.measure, target, other)

    def main_effect_cov(self, source: int, inputs: Sequence[int], t: Array, a: Sites) -> Array:
        """Return the covariances of an effect with observations, (K, m, n).

        The effect is ∫ f_source(x) π(dx_others), a function of the given inputs, at their values t (m, k). The
        observations must not be of integrals.
        """
        others = [d for d in range(a.X.shape[1]) if d not in inputs]
        cov = np.tile(np.where(a.differentiated, 0.0, self.constant[:, source, a.s])[:, None], (1, len(t), 1))
        some = tuple(group.over(inputs) for group in self.groups)
        along, across = _sites_over(a, inputs), _sites_over(a, others)
        kernels = replace(self, measure=self.measure.over(inputs), groups=some).kernels(Sites.values(0, t), along)
        for group, values in zip(self.groups, kernels, strict=True):
            part = values * group.B[:, :, source, a.s][:, :, None]
            if others:
                part = part * group.per_model(_means(self._embedded(group, others), across))[:, :, None]
            cov = cov + part.sum(axis=1)
        return cov + self.trends.main_effect_cov(self.measure, source, inputs, t, a)

    def main_effect_variance(self, source: int, inputs: Sequence[int], t: Array) -> Array:
        """Return the prior variances of the effect that `main_effect_cov` defines, (K, m)."""
        others = [d for d in range(self.measure.dim) if d not in inputs]
        variance = self.constant[:, source, source]
        for group in self.groups:
            share = group.B[:, :, source, source]
            if others:
                share = share * group.per_model(self._embedded(group, others).variance)
            variance = variance + share.sum(axis=1)
        of_trends = self.trends.main_effect_variance(self.measure, source, inputs, t)
        return np.tile(variance[:, None], (1, len(t))) + of_trends

    def _embedded(self, group: TermGroup, inputs: Sequence[int]) -> EmbeddingBatch:
        """Return the embedding of a group's kernels, restricted to the factor that depends on the given inputs."""
        factor = group.over(inputs)
        return EmbeddingBatch(factor.kernel, factor.flat_scales, self.measure.over(inputs))

    def main_effect_integral_cov(self, source: int, inputs: Sequence[int], t: Array, other: int) -> Array:
        """Return the covariances of the effect that `main_effect_cov` defines with Z_other, (K, m)."""
        others = [d for d in range(self.measure.dim) if d not in inputs]
        cov = np.tile(self.constant[:, source, other][:, None], (1, len(t)))
        for group in self.groups:
            part = group.per_model(self._embedded(group, inputs).mean(t)) * group.B[:, :, [source], other]
            if others:
                part = part * group.per_model(self._embedded(group, others).variance)[..., None]
            cov = cov + part.sum(axis=1)
        return cov + self.trends.main_effect_integral_cov(self.measure, source, inputs, t, other)


def _sites_over(a: Sites, inputs: Sequence[int]) -> Sites:
    """Return observations in some of the inputs; derivatives with respect to the other inputs become values."""
    place = np.full(a.X.shape[1], VALUE)
    place[list(inputs)] = np.arange(len(inputs))
    return Sites(a.s, a.X[:, list(inputs)], np.where(a.by == VALUE, VALUE, place[a.by]))


def _means(embedding: Any, a: Sites) -> Array:
    """Return the kernel means, or their derivatives, at observations of values and derivatives: (K Q, n)."""
    which = np.flatnonzero(a.differentiated)
    means = np.asarray(embedding.mean(a.X))
    if len(which):  # the derivatives of one value are at the same location
        locations, inverse = np.unique(a.X[which], axis=0, return_inverse=True)
        means[:, which] = embedding.mean_and_grad_x(locations)[1][:, inverse.ravel(), a.by[which]]
    return means


def check_terms(terms: Sequence[Term], dim: int) -> tuple[Term, ...]:
    """Check that terms make up one model of sources with ``dim`` inputs, and return them."""
    if isinstance(terms, Term):
        terms = [terms]
    if not isinstance(terms, Sequence) or not terms or not all(isinstance(term, Term) for term in terms):
        raise TypeError(f"terms must be a non-empty list of amsbq.Term(B, kernel), got {brief(terms)}")
    sizes = {len(term.B) for term in terms}
    if len(sizes) > 1:
        raise ValueError(f"all terms must have the same number of sources, got B of sizes {sorted(sizes)}")
    with np.errstate(over="ignore"):
        variances = np.sum([np.diagonal(term.B) for term in terms], axis=0)
    if not np.isfinite(variances).all():
        raise ValueError("the variances in B overflow: express the outputs in larger units")
    for term in terms:
        term.kernel.check_dim(dim)
    return tuple(terms)


def _coregionalisation_matrix(B: Array) -> Array:
    if B.ndim == 0:
        B = B.reshape(1, 1)
    if B.ndim != 2 or B.shape[0] != B.shape[1] or not B.size:
        raise ValueError(f"B must be a square matrix, one row per source, got shape {B.shape}")
    variances = np.diagonal(B)
    if (variances < 0).any():
        raise ValueError(f"B must be positive semi-definite, got the negative variances {variances.tolist()}")
    smallest = np.linalg.eigvalsh(correlations(B, "B"))[0]
    if smallest < -1e-10:
        raise ValueError(
            f"B must be positive semi-definite, but its correlation matrix has the eigenvalue {smallest:.3g}; "
            "W Wᵀ + diag(η) with η ≥ 0 always is"
        )
    return read_only(0.5 * B + 0.5 * B.T)
