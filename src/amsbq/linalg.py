"""Triangular factors, through LAPACK, of covariance matrices that may have lost rank to rounding.

Notation: A (n, n) symmetric, its diagonal "prior" (n,); C or L (n, n) lower triangular with A ≈ C Cᵀ; b (n, m).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpocon, dpotrf, dpotri, dpotrs, dtrtrs

from .checks import Array

EPS = float(np.finfo(float).eps)


def variance_floor(n: int) -> float:
    """The share of a prior variance below which what n observations leave of it is rounding."""
    return (n + 10) * EPS


def factorise(A: Array, prior: Array, jitter: float = 0.0) -> tuple[Array, float]:
    """Cholesky factor of A + jitter · diag(prior), and the jitter: at least the one given, and as much as it takes.

    What rounding does to A shows in its solves magnified by the inverse of its smallest eigenvalue (on the scale of
    correlations), which pivots do not reveal: hence a condition estimate.
    """
    n = len(A)
    if n == 0:
        return np.empty((0, 0), order="F"), jitter
    if not np.isfinite(A).all():
        raise ValueError("the covariance of the observations is not finite: the scales in B are too extreme")
    scale = _scale(prior)
    while True:
        C, info = dpotrf(A + np.diag(jitter * scale) if jitter else A, lower=1, clean=1)
        if info == 0:
            reciprocal, _ = dpocon(C / np.sqrt(scale)[:, None], 1.0, uplo="L")
            if np.sqrt(n) * reciprocal >= variance_floor(n):
                return C, jitter
        jitter = more_jitter(jitter, n)


def border(C: Array, A: Array, V: Array, prior: Array, prior_new: Array, jitter: float) -> Array | None:
    """The factor of the Schur complement V + jitter · diag(prior_new) - Aᵀ A of new rows; None if rounding spoils it.

    C (n, n) is the factor of the old rows, A (n, m) is C⁻¹ times their covariance with the new ones. The test is that
    of `factorise`, on the rows that the inverse of the whole factor gains.
    """
    new = _scale(prior_new)
    C_new, info = dpotrf(V + np.diag(jitter * new) - A.T @ A, lower=1, clean=1) if V.size else (V, 0)
    if info != 0:
        return None
    old_rows = solve_lower(C_new, (solve_lower_transposed(C, A) * np.sqrt(_scale(prior))[:, None]).T)
    new_rows = solve_lower(C_new, np.diag(np.sqrt(new)))
    squares = np.einsum("ij,ij->i", old_rows, old_rows) + np.einsum("ij,ij->i", new_rows, new_rows)
    return C_new if (squares * variance_floor(len(C) + len(V)) <= 1).all() else None


def more_jitter(jitter: float, n: int) -> float:
    """The next larger jitter for n observations."""
    jitter = max(10 * jitter, 4 * variance_floor(n))
    if jitter > 1:
        raise ValueError("the covariance of the observations is not positive semi-definite")
    return jitter


def _scale(prior: Array) -> Array:
    """The scale of each row: its prior variance, or for a row without any the largest of the others."""
    return np.where(prior > 0, prior, np.max(prior, initial=0.0) or 1.0)


def solve_lower(L: Array, b: Array) -> Array:
    """L⁻¹ b."""
    return _triangular_solve(L, b, trans=0)


def solve_lower_transposed(L: Array, b: Array) -> Array:
    """L⁻ᵀ b."""
    return _triangular_solve(L, b, trans=1)


def inverse(L: Array) -> Array:
    """(L Lᵀ)⁻¹, both triangles."""
    if len(L) == 0:
        return L.copy()
    lower: Array
    lower, _ = dpotri(L, lower=1)
    return np.tril(lower) + np.tril(lower, -1).T


def gaussian_log_density_and_grad(A: Array, r: Array) -> tuple[float, Array] | None:
    """log N(r; 0, A) and its gradient ½ (α αᵀ - A⁻¹) in A, with α = A⁻¹ r; None where A is not positive definite.

    The gradient is to be contracted with symmetric matrices only: off the diagonal, A⁻¹ is twice in the lower triangle.
    """
    if len(A) == 0:
        return 0.0, A
    if not np.isfinite(A).all():
        return None
    C, info = dpotrf(A, lower=1, clean=1)
    if info != 0:
        return None
    alpha, _ = dpotrs(C, r, lower=1)
    value = -0.5 * (r @ alpha + len(r) * np.log(2 * np.pi)) - np.log(np.diagonal(C)).sum()
    lower, _ = dpotri(C, lower=1, overwrite_c=1)
    diagonal = np.diagonal(lower).copy()
    gradient = np.multiply.outer(0.5 * alpha, alpha)
    gradient -= lower
    gradient.ravel()[:: len(A) + 1] += 0.5 * diagonal
    return float(value), gradient


def grow(L: Array, W: Array, L_new: Array) -> Array:
    """The factor [[L, 0], [Wᵀ, L_new]] of a matrix bordered by new rows."""
    n, m = W.shape
    out = np.zeros((n + m, n + m), order="F")
    out[:n, :n] = L
    out[n:, :n] = W.T
    out[n:, n:] = L_new
    return out


def _triangular_solve(L: Array, b: Array, trans: int) -> Array:
    if b.size == 0:
        return np.array(b)
    x: Array
    x, _ = dtrtrs(L, b, lower=1, trans=trans)
    return x
