"""Covariances between sources: k_ll'(x, x') = Σ_q B_q[l, l'] κ_q(x, x').

One term is the paper's intrinsic coregionalisation model (Eq. 4), several are the linear model of coregionalisation.

Notation: L sources, s (n,) source numbers, X (n, D) points; Z_l = ∫ f_l dπ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..measures.base import Measure
from ..validation import Array, IntArray, brief, correlations, numbers, read_only
from .embeddings import embed
from .kernels import Constant, Kernel, ProductKernel, check_kernel
from .threads import MANY

BLOCK = 2**16  #: numbers that a cache holds


#: of a term and observations: B of each pair of them, and the upper triangle of κ
Part = tuple[Array, Array]


KEPT = 200  #: observations up to which kernels are kept; beyond, evaluating half of them twice is faster


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


class Coregionalisation:
    """The sum of terms, integrated against a measure: all prior covariances of the f_l and Z_l."""

    def __init__(self, terms: Sequence[Term], measure: Measure) -> None:
        if isinstance(terms, Term):
            terms = [terms]
        if not isinstance(terms, Sequence) or not terms or not all(isinstance(term, Term) for term in terms):
            raise TypeError(f"terms must be a non-empty list of amsbq.Term(B, kernel), got {brief(terms)}")
        sizes = {len(term.B) for term in terms}
        if len(sizes) > 1:
            raise ValueError(f"all terms must have the same number of sources, got B of sizes {sorted(sizes)}")
        self.terms, self.measure = tuple(terms), measure
        self.n_sources = sizes.pop()
        self.embeddings = tuple(embed(term.kernel, measure) for term in terms)
        with np.errstate(over="ignore"):
            self.variances: Array = np.sum([np.diagonal(term.B) for term in terms], axis=0)  # var f_l(x), (L,)
        if not np.isfinite(self.variances).all():
            raise ValueError("the variances in B overflow: express the outputs in larger units")

    def cov(self, s: IntArray, X: Array, s2: IntArray, X2: Array) -> Array:
        """cov[f_s(X), f_s2(X2)], shape (n, m)."""
        first, *others = self.cov_parts(s, X, s2, X2)
        for part in others:
            first += part
        return first

    def cov_parts(self, s: IntArray, X: Array, s2: IntArray, X2: Array) -> list[Array]:
        """The same, of each term."""
        parts = [term.kernel.values(X, X2) for term in self.terms]
        for term, part in zip(self.terms, parts, strict=True):
            part *= term.B[:, s2][s]
        return parts

    def contract_grad_x(self, s: IntArray, X: Array, s2: IntArray, X2: Array, C: Array) -> Array:
        """Σ_j C_ij ∂cov[f_s(X_i), f_s2(X2_j)]/∂X_i, shape (n, D)."""
        return self.contract_parts_grad_x(self.cov_parts(s, X, s2, X2), X, X2, C)

    def contract_parts_grad_x(self, parts: list[Array], X: Array, X2: Array, C: Array) -> Array:
        """The same, given the covariances of each term."""
        pairs = zip(self.terms, parts, strict=True)
        return np.asarray(sum(term.kernel.contract_log_grad_x(X, X2, C * part) for term, part in pairs))

    def parts(self, s: IntArray, X: Array) -> list[Part] | None:
        """What the next two have in common, for each term, if that is not much to keep."""
        if len(X) > KEPT:
            return None
        return [(term.B.take(s, axis=1).take(s, axis=0), term.kernel.upper(X)) for term in self.terms]

    def gram(self, s: IntArray, X: Array, parts: list[Part] | None = None) -> Array:
        """The lower triangle of cov[f_s(X), f_s(X)], in Fortran's order; what is above it has no meaning."""
        if parts is not None:
            return np.asarray(sum(B * kernel for B, kernel in parts)).T
        G = np.zeros((len(s), len(s)), order="F")

        def fill(some: slice) -> None:
            below = slice(some.start, None)
            G[below, some] = self.cov(s[some], X[some], s[below], X[below]).T

        _over_columns(fill, len(s))
        return G

    def contract_gram(
        self, s: IntArray, X: Array, alpha: Array, inverse: Array, parts: list[Part] | None = None
    ) -> tuple[list[Array], list[Array], Array]:
        """½ Σ_ij (α_i α_j - G⁻¹_ij) ∂gram_ij in each B (L, L), in the log lengthscales of each term, and in noise (L,).

        The inverse is a lower triangle: off the diagonal it counts twice.
        """
        of_source = np.eye(self.n_sources)[s]  # (n, L)
        diagonal = 0.5 * np.diagonal(inverse)

        def contract(some: slice) -> list[tuple[Array, Array]]:
            below = slice(some.start, None)
            W = alpha[some, None] * alpha[below]
            if parts is None:
                square = W[:, : len(W)]  # where both of a pair are among these columns, each is there twice
                square *= 0.5
                W -= inverse[below, some].T
                np.einsum("ii->i", square)[...] += diagonal[some]
            else:
                W -= inverse.T
                W.ravel()[:: len(W) + 1] *= 0.5
            out = []
            for q, term in enumerate(self.terms):
                B, kernel = parts[q] if parts else (term.B[:, s[below]][s[some]], term.kernel.values(X[some], X[below]))
                A = W * kernel
                sums = A @ of_source[below] if len(s) < MANY else np.einsum("ij,jl->il", A, of_source[below])
                by_B = of_source[some].T @ sums
                A *= B
                out.append((by_B, term.kernel.contract_log_grad_log_lengthscales(X[some], X[below], A)))
            return out

        blocks = _over_columns(contract, len(s))
        by_B, by_scales = ([sum(block[q][i] for block in blocks) for q in range(len(self.terms))] for i in (0, 1))
        return [0.5 * (by + by.T) for by in by_B], by_scales, (0.5 * alpha * alpha - diagonal) @ of_source

    def integral_cov(self, target: int, s: IntArray, X: Array) -> Array:
        """cov[Z_target, f_s(X)], shape (n,): the paper's ⟨k_{1l}(·, X)⟩."""
        pairs = zip(self.terms, self.embeddings, strict=True)
        return np.asarray(sum(term.B[target, s] * embedding.mean(X) for term, embedding in pairs))

    def integral_cov_grad_x(self, target: int, s: IntArray, X: Array) -> Array:
        """∂cov[Z_target, f_s(X_i)]/∂X_i, shape (n, D)."""
        pairs = zip(self.terms, self.embeddings, strict=True)
        return np.asarray(sum(term.B[target, s, None] * e.mean_grad_x(X) for term, e in pairs))

    def integral_cov_and_grad_x(self, target: int, s: IntArray, X: Array) -> tuple[Array, Array]:
        """Both."""
        values: Array | float = 0.0
        gradients: Array | float = 0.0
        for term, embedding in zip(self.terms, self.embeddings, strict=True):
            mean, gradient = embedding.mean_and_grad_x(X)
            weights = term.B[target, s]
            values, gradients = values + weights * mean, gradients + weights[:, None] * gradient
        return np.asarray(values), np.asarray(gradients)

    def main_effect_cov(self, source: int, input: int, t: Array, s: IntArray, X: Array) -> tuple[Array, float]:
        """cov[∫ f_source(x) π(dx_others) at t (m, 1), f_s(X)], shape (m, n), and the variance of the former."""
        others = [d for d in range(X.shape[1]) if d != input]
        cov, variance = np.zeros((len(t), len(X))), 0.0
        for term in self.terms:
            kernel = term.kernel
            if not isinstance(kernel, ProductKernel):
                cov += term.B[source, s]
                variance += term.B[source, source]
                continue
            rest = embed(kernel.over(others), self.measure.over(others)) if others else embed(Constant(), self.measure)
            cov += term.B[source, s] * rest.mean(X[:, others]) * kernel.over([input]).values(t, X[:, [input]])
            variance += term.B[source, source] * rest.variance
        return cov, float(variance)

    def integral_variance(self, target: int) -> float:
        """var Z_target: the paper's ⟨⟨k_11⟩⟩."""
        pairs = zip(self.terms, self.embeddings, strict=True)
        return float(sum(term.B[target, target] * embedding.variance for term, embedding in pairs))


def _over_columns(f: Callable[[slice], Any], n: int) -> list[Any]:
    """f of the columns of an n × n matrix, a few at a time, so that what is made of them stays in the cache.

    If there are many, on all cores, so no large BLAS in f: it has threads too.
    """
    if n <= KEPT:
        return [f(slice(0, n))]
    step = max(BLOCK // n, 16)
    columns = [slice(start, min(start + step, n)) for start in range(0, n, step)]
    if n < MANY:
        return [f(some) for some in columns]
    with ThreadPoolExecutor() as pool:
        return list(pool.map(f, columns))


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
