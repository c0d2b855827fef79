"""Triangular factors, through LAPACK, of covariance matrices that may have lost rank to rounding.

Notation: A (n, n) symmetric, its diagonal "prior" (n,); C or L (n, n) lower triangular with A ≈ C Cᵀ; b (n, m).

Where many matrices of the same size are factorised, F (K, n(n+1)/2) holds the lower triangle of each, in the order of
LAPACK's rectangular full packed format: half the numbers to compute, and as fast to factorise.
"""

from __future__ import annotations

from functools import lru_cache
from math import log, pi

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpftrf, dpftri, dpftrs, dpocon, dpotrf, dpotri, dtfsm, dtfttr, dtrtri, dtrtrs, dtrttf

from ..validation import Array, IntArray

EPS = float(np.finfo(float).eps)


PACKED = 200  #: rows up to which LAPACK inverts matrices faster in packed form


LOG_2_PI = log(2 * pi)


def variance_floor(n: int) -> float:
    """The share of a prior variance below which what n observations leave of it is rounding."""
    return (n + 10) * EPS


def factorise(A: Array, prior: Array, jitter: float = 0.0, noise: float = 0.0) -> tuple[Array, float]:
    """Cholesky factor of A + jitter · diag(prior), and the jitter: at least the one given, and as much as it takes.

    What rounding does to A shows in its solves magnified by the inverse of its smallest eigenvalue (on the scale of
    correlations), which pivots do not reveal: hence a condition estimate, unless the noise, which is the least share of
    it in a diagonal entry, and the jitter are larger than that anyway. Of A only the lower triangle is used.
    """
    n = len(A)
    if n == 0:
        return np.empty((0, 0), order="F"), jitter
    scale = _scale(prior)
    while True:
        C = np.array(A, order="F")
        C.ravel(order="K")[:: n + 1] += jitter * scale
        C, info = dpotrf(C, lower=1, clean=1, overwrite_a=1)
        if not (info == 0 and np.isfinite(C.ravel(order="K")[:: n + 1].sum())) and not np.isfinite(A).all():
            raise ValueError("the covariance of the observations is not finite: the scales in B are too extreme")
        if info == 0:
            if noise + jitter >= variance_floor(n):
                return C, jitter
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
    return prior if prior.all() else np.where(prior > 0, prior, np.max(prior, initial=0.0) or 1.0)


def ratio(a: Array, b: Array, where: NDArray[np.bool_]) -> Array:
    """a / b, and zero where it is not wanted."""
    return np.asarray(a / b) if where.all() else np.divide(a, b, where=where, out=np.zeros_like(a))


def solve_lower(L: Array, b: Array) -> Array:
    """L⁻¹ b."""
    return _triangular_solve(L, b, trans=0)


def solve_lower_transposed(L: Array, b: Array) -> Array:
    """L⁻ᵀ b."""
    return _triangular_solve(L, b, trans=1)


def inverse(L: Array) -> Array:
    """The lower triangle of (L Lᵀ)⁻¹; above it there are zeros."""
    n = len(L)
    if n == 0:
        return L.copy()
    lower: Array
    if n <= PACKED:
        lower, _ = dtfttr(n, dpftri(n, dtrttf(L, uplo="L")[0], uplo="L", overwrite_a=1)[0], uplo="L")
    else:
        lower, _ = dpotri(L, lower=1)
    return lower


def inverse_lower(L: Array) -> Array:
    """L⁻¹."""
    return np.array(dtrtri(L, lower=1)[0]) if L.size else L.copy()


def packed_order(n: int) -> tuple[IntArray, IntArray]:
    """The row and the column of each number of a packed triangle."""
    if n == 0:
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    places = np.arange(n * n, dtype=float).reshape(n, n, order="F")
    columns, rows = np.divmod(dtrttf(places, uplo="L")[0].astype(np.intp), n)
    return rows, columns


def invert_packed(F: Array, r: Array) -> tuple[Array, Array]:
    """The log density log N(r; 0, A) of each matrix, and α = A⁻¹ r (K, n); F is overwritten by the inverses.

    Where a matrix is not positive definite its log density is -inf, and α and the inverse are zero.
    """
    values, alpha = _solved_packed(F, r)
    for A, value in zip(F, values.tolist(), strict=True):
        if value > -np.inf and len(r):
            dpftri(len(r), A, uplo="L", overwrite_a=1)
    return values, alpha


def log_densities_packed(F: Array, r: Array) -> Array:
    """The log density alone; F is overwritten."""
    return _solved_packed(F, r)[0]


def _solved_packed(F: Array, r: Array) -> tuple[Array, Array]:
    """As `invert_packed`, but F is overwritten by the factors."""
    n, alpha = len(r), np.zeros((len(F), len(r)))
    if n == 0:
        return np.zeros(len(F)), alpha
    for k, A in enumerate(F):
        if dpftrf(n, A, uplo="L", overwrite_a=1)[1] != 0:
            A[:] = np.nan
        else:
            alpha[k] = dpftrs(n, A, r, uplo="L")[0].ravel()
    values = -0.5 * (alpha @ r + n * LOG_2_PI) - np.log(F[:, packed_diagonal(n)]).sum(axis=1)
    failed = ~np.isfinite(values)
    if failed.any():
        values[failed], alpha[failed], F[failed] = -np.inf, 0.0, 0.0
    return values, alpha


def whiten_packed(A: Array, b: Array) -> tuple[float, Array]:
    """½ log det A and C⁻¹ b, for one packed matrix, which is overwritten; with more jitter if that is what it takes."""
    n = len(b)
    if n == 0:
        return 0.0, b
    rows, jitter = packed_diagonal(n), 0.0
    diagonal = A[rows]
    while True:
        C, info = dpftrf(n, A, uplo="L")
        if info == 0:
            return float(np.log(C[rows]).sum()), np.asarray(dtfsm(1.0, C, b, uplo="L"))
        jitter = more_jitter(jitter, n)
        A[rows] = (1 + jitter) * diagonal


@lru_cache(maxsize=64)
def packed_diagonal(n: int) -> IntArray:
    """Where the diagonal is in a packed triangle."""
    rows, columns = packed_order(n)
    return np.flatnonzero(rows == columns)


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
