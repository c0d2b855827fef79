"""Kernel means and their integrals, for every pair of kernel and measure.

Notation: X (n, D) points,

    μ(x) = ∫ κ(t, x) dπ(t)        and        v = ∬ κ(t, t') dπ(t) dπ(t').

These are the paper's ⟨κ(·, x)⟩ and ⟨⟨κ⟩⟩ (Section 2.3), from which every integral of a posterior is made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..common.validation import Array
from ..measures.adapters import as_measure
from ..measures.base import Measure
from ..measures.composed import Mixture
from ..measures.empirical import Empirical
from ..measures.gaussian import Gaussian
from ..measures.marginals import Marginal
from ..measures.product import Independent
from .embeddings_1d import between, elementwise, embed_each
from .embeddings_numeric import EmpiricalEmbeddings
from .kernels import RBF, Kernel, ProductKernel
from .trends import Constant, check_kernel


def kernel_mean(kernel: Kernel, measure: Any, X: ArrayLike) -> Array:
    """Return the kernel mean ∫ κ(x, X_i) dπ(x) at each of the points X, shape (n,).

    Parameters
    ----------
    kernel : RBF, Matern or Constant
    measure : measure, or anything that `as_measure` accepts
    X : (n, D) array

    >>> from amsbq import RBF, Uniform
    >>> kernel_mean(RBF(0.2), Uniform(0, 1), [[0.0], [0.5]]).round(6)
    array([0.250663, 0.4951  ])
    """
    measure = as_measure(measure)
    return embed(kernel, measure).mean(measure.check_points(X))


def kernel_variance(kernel: Kernel, measure: Any) -> float:
    """Return ∬ κ(x, x') dπ(x) dπ(x'), the prior variance of the integral of a draw from the process.

    >>> from scipy import stats
    >>> from amsbq import Matern
    >>> round(kernel_variance(Matern(2.5, 1.0), stats.gamma(5, loc=1, scale=4)), 6)
    0.081093
    """
    return embed(kernel, as_measure(measure)).variance


class Embedding(ABC):
    """A kernel integrated against a measure: its mean embedding."""

    @abstractmethod
    def mean(self, X: Array) -> Array:
        """Return μ(X_i), shape (n,)."""

    @abstractmethod
    def mean_grad_x(self, X: Array) -> Array:
        """Return dμ/dx at X_i, shape (n, D)."""

    def mean_and_grad_x(self, X: Array) -> tuple[Array, Array]:
        """Return μ(X_i), shape (n,), and dμ/dx at X_i, shape (n, D)."""
        return self.mean(X), self.mean_grad_x(X)

    @property
    @abstractmethod
    def variance(self) -> float:
        """The double integral v."""


def embed(kernel: Kernel, measure: Measure) -> Embedding:
    """Return the embedding of a kernel in a measure; raise ValueError if it cannot be computed."""
    check_kernel(kernel).check_dim(measure.dim)
    if isinstance(kernel, Constant):
        return _ConstantEmbedding()
    if isinstance(kernel, ProductKernel):
        if measure.latent is not measure:
            return _LatentEmbedding(embed(kernel, measure.latent), measure)
        together = _jointly(kernel, kernel.lengthscales_in(measure.dim)[None], measure)
        if together is not None:
            return _OneOfBatch(together)
        if measure.marginals is not None:
            return _SeparableEmbedding(kernel, kernel.lengthscales_in(measure.dim)[:, None], measure.marginals)
    also = ""
    if isinstance(measure, Gaussian):
        also = "RBF with the full covariance; a diagonal one (rotate the inputs to their principal axes); or "
    raise ValueError(
        f"{type(kernel).__name__} has no closed form against {type(measure).__name__} with correlated inputs, because "
        f"the integral does not separate into dimensions. What works: {also}Empirical(measure.sample(10_000, rng))"
    )


class EmbeddingBatch:
    """A kernel with K sets of lengthscales (K, D), each integrated against one measure."""

    def __init__(self, kernel: ProductKernel, scales: Array, measure: Measure) -> None:
        self._measure, measure = measure, measure.latent
        marginals = measure.marginals
        self._together: Joint | _SeparableEmbedding | None = _jointly(kernel, scales, measure)
        self._each: list[Embedding] = []
        if self._together is not None:
            return
        if marginals is not None and elementwise(kernel, marginals):
            self._together = _SeparableEmbedding(kernel, scales.T[:, :, None], marginals)
        else:
            self._each = [embed(kernel.with_lengthscales(lengthscales), measure) for lengthscales in scales]

    def mean(self, X: Array) -> Array:
        """Return μ_k(X_i), shape (K, n)."""
        X = self._measure.to_latent(X)
        return self._together.mean(X) if self._together else np.array([one.mean(X) for one in self._each])

    def mean_and_grad_x(self, X: Array) -> tuple[Array, Array]:
        """Return μ_k(X_i), shape (K, n), and dμ_k/dx at X_i, shape (K, n, D)."""
        slopes, X = self._measure.latent_slopes(X), self._measure.to_latent(X)
        if self._together:
            means, gradients = self._together.mean_and_grad_x(X)
        else:
            each = zip(*(one.mean_and_grad_x(X) for one in self._each), strict=True)
            means, gradients = (np.array(part) for part in each)
        return means, gradients if slopes is None else gradients * slopes

    @cached_property
    def variance(self) -> Array:
        """The double integrals v_k, shape (K,)."""
        return self._together.variances if self._together else np.array([one.variance for one in self._each])


class _ConstantEmbedding(Embedding):
    variance = 1.0

    def mean(self, X: Array) -> Array:
        return np.ones(len(X))

    def mean_grad_x(self, X: Array) -> Array:
        return np.zeros_like(X)


class _LatentEmbedding(Embedding):
    """The embedding of a kernel over latent coordinates, at points in the user's units."""

    def __init__(self, latent: Embedding, measure: Measure) -> None:
        self.latent, self.measure = latent, measure

    def mean(self, X: Array) -> Array:
        return self.latent.mean(self.measure.to_latent(X))

    def mean_grad_x(self, X: Array) -> Array:
        slopes = self.measure.latent_slopes(X)
        gradient = self.latent.mean_grad_x(self.measure.to_latent(X))
        return gradient if slopes is None else gradient * slopes

    @property
    def variance(self) -> float:
        return self.latent.variance


class _SeparableEmbedding(Embedding):
    """The embedding of a product kernel over independent inputs: products of one-dimensional embeddings.

    Lengthscales have shape (D, 1) for one kernel, or (D, K, 1) for K of them: then means, their gradients and
    ``variances`` have K as their first axis.
    """

    def __init__(self, kernel: ProductKernel, scales: Array, marginals: tuple[Marginal, ...]) -> None:
        self.kernel, self.factors, self.shape = kernel, embed_each(kernel, scales, marginals), scales.shape

    def mean(self, X: Array) -> Array:
        return np.asarray(self.factors.mean(self._inputs(X)).prod(axis=0))

    def mean_grad_x(self, X: Array) -> Array:
        return self.mean_and_grad_x(X)[1]

    def mean_and_grad_x(self, X: Array) -> tuple[Array, Array]:
        means, slopes = self.factors.mean_and_grad_x(self._inputs(X))
        mean, others = _product_and_others(means)
        return mean, (slopes * others).transpose(*range(1, slopes.ndim), 0)

    @cached_property
    def variance(self) -> float:
        return float(self._variances.prod())

    @property
    def variances(self) -> Array:
        """The double integral for each of K sets of lengthscales, shape (K,)."""
        return np.asarray(self._variances.prod(axis=0)[:, 0])

    @cached_property
    def _variances(self) -> Array:
        return np.asarray(self.factors.variance())

    def _inputs(self, X: Array) -> Array:
        return X.T if len(self.shape) == 2 else X.T[:, None, :]


class _CorrelatedGaussianEmbeddings:
    """RBF with K sets of lengthscales (K, D) against N(m, Σ).

    With Λ = diag(ℓ²), μ(x) = |Λ|^½ |Λ + Σ|^-½ exp(-½ (x - m)ᵀ (Λ + Σ)⁻¹ (x - m)).
    """

    def __init__(self, scales: Array, measure: Gaussian) -> None:
        self.centre, self.cov, self.squares = measure.mean, measure.cov, scales**2
        self.sums, self.sizes = self._parts(1.0)

    def _parts(self, times: float) -> tuple[Array, Array]:
        """Return A_k = Λ_k + times · Σ, shape (K, D, D), and |Λ_k|^½ |A_k|^-½, shape (K,)."""
        sums = self.squares[:, :, None] * np.eye(len(self.cov)) + times * self.cov
        diagonals = np.diagonal(np.linalg.cholesky(sums), axis1=1, axis2=2)
        return sums, np.asarray(np.exp((0.5 * np.log(self.squares) - np.log(diagonals)).sum(axis=1)))

    def _whitened(self, X: Array) -> tuple[Array, Array]:
        """Return μ_k(X_i), shape (K, n), and (Λ_k + Σ)⁻¹ (X_i - m), shape (K, D, n)."""
        deviations = (X - self.centre).T
        many = np.broadcast_to(deviations, (len(self.sums), *deviations.shape))
        solved = np.asarray(np.linalg.solve(self.sums, many), dtype=float)
        return self.sizes[:, None] * np.exp(-0.5 * np.einsum("di,kdi->ki", deviations, solved)), solved

    def mean(self, X: Array) -> Array:
        """Return μ_k(X_i), shape (K, n)."""
        return self._whitened(X)[0]

    def mean_and_grad_x(self, X: Array) -> tuple[Array, Array]:
        """Return μ_k(X_i), shape (K, n), and dμ_k/dx at X_i, shape (K, n, D)."""
        means, solved = self._whitened(X)
        return means, -means[:, :, None] * solved.transpose(0, 2, 1)

    @cached_property
    def variances(self) -> Array:
        """The double integrals v_k, shape (K,)."""
        return self._parts(2.0)[1]


class _IndependentEmbeddings:
    """Products over independent groups of inputs, for K sets of lengthscales (K, D)."""

    def __init__(self, kernel: ProductKernel, scales: Array, measure: Independent) -> None:
        self.groups = [list(group) for group in measure.columns]
        pairs = zip(self.groups, measure.measures, strict=True)
        self.each = [
            EmbeddingBatch(kernel.with_lengthscales(scales[0, group]), scales[:, group], one) for group, one in pairs
        ]

    def mean(self, X: Array) -> Array:
        """Return μ_k(X_i), shape (K, n)."""
        means = [one.mean(X[:, group]) for one, group in zip(self.each, self.groups, strict=True)]
        return np.asarray(np.prod(means, axis=0))

    def mean_and_grad_x(self, X: Array) -> tuple[Array, Array]:
        """Return μ_k(X_i), shape (K, n), and dμ_k/dx at X_i, shape (K, n, D)."""
        found = [one.mean_and_grad_x(X[:, group]) for one, group in zip(self.each, self.groups, strict=True)]
        mean, others = _product_and_others(np.array([means for means, _ in found]))
        gradients = np.empty((*mean.shape, X.shape[1]))
        for group, (_, gradient), rest in zip(self.groups, found, others, strict=True):
            gradients[:, :, group] = gradient * rest[:, :, None]
        return mean, gradients

    @cached_property
    def variances(self) -> Array:
        """The double integrals v_k, shape (K,)."""
        return np.asarray(np.prod([one.variance for one in self.each], axis=0))


class _MixtureEmbeddings:
    """Sums over the components of a mixture, and over pairs of them, for K sets of lengthscales (K, D)."""

    def __init__(self, kernel: ProductKernel, scales: Array, measure: Mixture) -> None:
        self.kernel, self.scales, self.measure = kernel, scales, measure
        self.each = [EmbeddingBatch(kernel, scales, component) for component in measure.components]

    def mean(self, X: Array) -> Array:
        """Return μ_k(X_i), shape (K, n)."""
        return np.asarray(np.einsum("c,ckn->kn", self.measure.weights, [one.mean(X) for one in self.each]))

    def mean_and_grad_x(self, X: Array) -> tuple[Array, Array]:
        """Return μ_k(X_i), shape (K, n), and dμ_k/dx at X_i, shape (K, n, D)."""
        means, gradients = zip(*(one.mean_and_grad_x(X) for one in self.each), strict=True)
        w = self.measure.weights
        return np.einsum("c,ckn->kn", w, means), np.einsum("c,cknd->knd", w, gradients)

    @cached_property
    def variances(self) -> Array:
        """The double integrals v_k, shape (K,)."""
        w = self.measure.weights
        total = sum(weight**2 * one.variance for weight, one in zip(w, self.each, strict=True))
        for i, j in combinations(range(len(w)), 2):
            total = total + 2 * w[i] * w[j] * self._between(i, j)
        return np.asarray(total)

    def _between(self, i: int, j: int) -> Array:
        """Return ∬ κ_k dπ_i dπ_j of two components, shape (K,)."""
        a, b = self.measure.components[i], self.measure.components[j]
        if isinstance(a, Empirical):
            a, b, i = b, a, j
        if isinstance(b, Empirical):
            return np.asarray(self.each[i].mean(b.samples) @ b.weights)
        if isinstance(a, Gaussian) and isinstance(b, Gaussian) and isinstance(self.kernel, RBF):
            # the difference of two draws is normal: the kernel mean of N(m_i - m_j, Σ_i + Σ_j) at the origin
            apart = Gaussian(a.mean - b.mean, a.cov + b.cov)
            return np.asarray(EmbeddingBatch(self.kernel, self.scales, apart).mean(np.zeros((1, a.dim)))[:, 0])
        if a.marginals is None or b.marginals is None:
            raise ValueError(
                "a mixture of a Gaussian with correlated inputs and another distribution has no closed form; "
                "what works: Empirical(mixture.sample(10_000, rng))"
            )
        columns = zip(a.marginals, b.marginals, self.scales.T, strict=True)
        return np.asarray(np.prod([between(self.kernel, ells, one, other) for one, other, ells in columns], axis=0))


#: embeddings of measures as a whole, for K sets of lengthscales
Joint: TypeAlias = EmpiricalEmbeddings | _CorrelatedGaussianEmbeddings | _MixtureEmbeddings | _IndependentEmbeddings


def _jointly(kernel: ProductKernel, scales: Array, measure: Measure) -> Joint | None:
    """Return the embeddings of a measure of samples, components, groups or correlated inputs; None for all others."""
    if isinstance(measure, Empirical):
        return EmpiricalEmbeddings(kernel, scales, measure)
    if isinstance(measure, Gaussian) and measure.marginals is None and isinstance(kernel, RBF):
        return _CorrelatedGaussianEmbeddings(scales, measure)
    if isinstance(measure, Mixture):
        return _MixtureEmbeddings(kernel, scales, measure)
    if isinstance(measure, Independent) and measure.marginals is None:
        return _IndependentEmbeddings(kernel, scales, measure)
    return None


class _OneOfBatch(Embedding):
    """The embedding for one set of lengthscales, as a batch of one."""

    def __init__(self, batch: Joint) -> None:
        self.batch = batch

    def mean(self, X: Array) -> Array:
        return np.asarray(self.batch.mean(X)[0])

    def mean_grad_x(self, X: Array) -> Array:
        return self.mean_and_grad_x(X)[1]

    def mean_and_grad_x(self, X: Array) -> tuple[Array, Array]:
        means, gradients = self.batch.mean_and_grad_x(X)
        return means[0], gradients[0]

    @property
    def variance(self) -> float:
        return float(self.batch.variances[0])


def _product_and_others(factors: Array) -> tuple[Array, Array]:
    """Return Π_d factors[d], and Π_{e ≠ d} factors[e] for each d."""
    product = np.asarray(factors.prod(axis=0))
    if (product > np.finfo(float).tiny).all():
        return product, product / factors
    before, after = np.ones_like(factors), np.ones_like(factors)  # avoids division by factors that underflowed
    np.cumprod(factors[:-1], axis=0, out=before[1:])
    np.cumprod(factors[:0:-1], axis=0, out=after[-2::-1])
    return product, before * after
