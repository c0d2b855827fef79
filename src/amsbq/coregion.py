"""Covariances between sources: k_ll'(x, x') = Σ_q B_q[l, l'] κ_q(x, x').

One term is the paper's intrinsic coregionalisation model (Eq. 4), several are the linear model of coregionalisation.

Notation: L sources, s (n,) source numbers, X (n, D) points; Z_l = ∫ f_l dπ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from .checks import Array, IntArray, correlations, frozen, numbers, shown
from .embeddings import embed
from .kernels import Kernel, check_kernel
from .measures import Measure


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
            raise TypeError(f"terms must be a non-empty list of amsbq.Term(B, kernel), got {shown(terms)}")
        sizes = {len(term.B) for term in terms}
        if len(sizes) > 1:
            raise ValueError(f"all terms must have the same number of sources, got B of sizes {sorted(sizes)}")
        self.terms = tuple(terms)
        self.n_sources = sizes.pop()
        self.embeddings = tuple(embed(term.kernel, measure) for term in terms)
        with np.errstate(over="ignore"):
            self.variances: Array = np.sum([np.diagonal(term.B) for term in terms], axis=0)  # var f_l(x), (L,)
        if not np.isfinite(self.variances).all():
            raise ValueError("the variances in B overflow: express the outputs in larger units")

    def cov(self, s: IntArray, X: Array, s2: IntArray, X2: Array) -> Array:
        """cov[f_s(X), f_s2(X2)], shape (n, m)."""
        return np.asarray(sum(term.B[np.ix_(s, s2)] * term.kernel(X, X2) for term in self.terms))

    def contract_grad_x(self, s: IntArray, X: Array, s2: IntArray, X2: Array, C: Array) -> Array:
        """Σ_j C_ij ∂cov[f_s(X_i), f_s2(X2_j)]/∂X_i, shape (n, D)."""
        return np.asarray(sum(term.kernel.contract_grad_x(X, X2, C * term.B[np.ix_(s, s2)]) for term in self.terms))

    def integral_cov(self, target: int, s: IntArray, X: Array) -> Array:
        """cov[Z_target, f_s(X)], shape (n,): the paper's ⟨k_{1l}(·, X)⟩."""
        pairs = zip(self.terms, self.embeddings, strict=True)
        return np.asarray(sum(term.B[target, s] * embedding.mean(X) for term, embedding in pairs))

    def integral_cov_grad_x(self, target: int, s: IntArray, X: Array) -> Array:
        """∂cov[Z_target, f_s(X_i)]/∂X_i, shape (n, D)."""
        pairs = zip(self.terms, self.embeddings, strict=True)
        return np.asarray(sum(term.B[target, s, None] * e.mean_grad_x(X) for term, e in pairs))

    def integral_variance(self, target: int) -> float:
        """var Z_target: the paper's ⟨⟨k_11⟩⟩."""
        pairs = zip(self.terms, self.embeddings, strict=True)
        return float(sum(term.B[target, target] * embedding.variance for term, embedding in pairs))


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
    return frozen(0.5 * B + 0.5 * B.T)
