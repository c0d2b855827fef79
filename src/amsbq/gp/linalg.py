"""Triangular factors, through LAPACK, of covariance matrices that may have lost rank to rounding.

Notation: A (n, n) symmetric, its diagonal a (n,); C or L (n, n) lower triangular with A ≈ C Cᵀ; b (n, m).

If many Gram matrices are only needed for their log densities, F (K, n(n+1)/2) has the lower triangle of each of them in
LAPACK's rectangular full packed format: half the numbers to compute, and as fast to factorise.
"""

from __future__ import annotations

from functools import lru_cache
from math import log, pi

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpftrf, dpftri, dpftrs, dpocon, dpotrf, dtrtri, dtrtrs, dtrttf

from ..common.validation import Array, IntArray

EPS = float(np.finfo(float).eps)
LOG_2_PI = log(2 * pi)


def variance_floor(n: int) -> float:
    """Return the share of a prior variance below which a posterior variance given n observations is rounding error."""
    return (n + 10) * EPS


def next_jitter(jitter: float, n: int) -> float:
    """Return the next larger jitter to try for n observations; raise ValueError if no jitter helps."""
    jitter = max(10 * jitter, 4 * variance_floor(n))
    if jitter > 1:
        raise ValueError("the covariance of the observations is not positive semi-definite")
    return jitter


def factorise(A: Array, diagonal: Array, jitter: float = 0.0, noise: float = 0.0) -> tuple[Array, float]:
    """Return the Cholesky factor of A plus jitter · diag(a), and the jitter that was needed.

    A small eigenvalue of the correlation matrix magnifies rounding errors, and the pivots do not show it. So the
    condition number is estimated, unless jitter plus noise already exceeds rounding.

    Parameters
    ----------
    A : (n, n) array
        Only its lower triangle is used; it is left unchanged.
    diagonal : (n,) array
        The prior variances a, which set the scale of the jitter.
    jitter : float
        The smallest jitter to use; more is added only as needed.
    noise : float
        The smallest share of noise in a diagonal entry.
    """
    n = len(A)
    if n == 0:
        return np.empty((0, 0), order="F"), jitter
    scale = _positive_scale(diagonal)
    while True:
        C = np.array(A, order="F")
        np.einsum("ii->i", C)[...] += jitter * scale
        C, info = dpotrf(C, lower=1, clean=1, overwrite_a=1)
        if not (info == 0 and np.isfinite(np.trace(C))) and not np.isfinite(np.tril(A)).all():
            raise ValueError("the covariance of the observations is not finite: the scales in B are too extreme")
        if info == 0:
            if noise + jitter >= variance_floor(n):
                return C, jitter
            reciprocal, _ = dpocon(C / np.sqrt(scale)[:, None], 1.0, uplo="L")
            if np.sqrt(n) * reciprocal >= variance_floor(n):
                return C, jitter
        jitter = next_jitter(jitter, n)


def border(C: Array, A: Array, V: Array, diagonal: Array, new_diagonal: Array, jitter: float) -> Array | None:
    """Return the factor of the Schur complement V + jitter · diag(a_new) - Aᵀ A of new rows; None if it is rounding.

    C (n, n) is the factor of the old rows, A (n, m) is C⁻¹ times their covariance with the new ones. The test for
    rounding is that of `factorise`, applied to the new rows of the inverse of the whole factor.
    """
    new = _positive_scale(new_diagonal)
    C_new, info = dpotrf(V + np.diag(jitter * new) - A.T @ A, lower=1, clean=1) if V.size else (V, 0)
    if info != 0:
        return None
    old_rows = solve_lower(C_new, (solve_lower_transposed(C, A) * np.sqrt(_positive_scale(diagonal))[:, None]).T)
    new_rows = solve_lower(C_new, np.diag(np.sqrt(new)))
    squares = np.einsum("ij,ij->i", old_rows, old_rows) + np.einsum("ij,ij->i", new_rows, new_rows)
    return C_new if (squares * variance_floor(len(C) + len(V)) <= 1).all() else None


def grow(L: Array, W: Array, L_new: Array) -> Array:
    """Return the factor [[L, 0], [Wᵀ, L_new]] of a matrix bordered by new rows."""
    n, m = W.shape
    out = np.zeros((n + m, n + m), order="F")
    out[:n, :n] = L
    out[n:, :n] = W.T
    out[n:, n:] = L_new
    return out


def solve_lower(L: Array, b: Array) -> Array:
    """Return L⁻¹ b."""
    return _triangular_solve(L, b, trans=0)


def solve_lower_transposed(L: Array, b: Array) -> Array:
    """Return L⁻ᵀ b."""
    return _triangular_solve(L, b, trans=1)


def inverse_lower(L: Array) -> Array:
    """Return L⁻¹."""
    return np.array(dtrtri(L, lower=1)[0]) if L.size else L.copy()


def ratio(a: Array, b: Array, where: NDArray[np.bool_]) -> Array:
    """Return a / b, and zero where ``where`` is false."""
    return np.asarray(a / b) if where.all() else np.divide(a, b, where=where, out=np.zeros_like(a))


def log_density(squares: Array, half_log_determinants: Array, n: int) -> Array:
    """Return log N(r; 0, A), given rᵀ A⁻¹ r and ½ log det A."""
    return -0.5 * (squares + n * LOG_2_PI) - half_log_determinants


def invert_packed(F: Array, r: Array) -> tuple[Array, Array]:
    """Return log N(r; 0, A) of each packed matrix, shape (K,), and α = A⁻¹ r, shape (K, n); F becomes the inverses.

    Where a matrix is not positive definite its log density is -inf, and α and the inverse are zero.
    """
    values, alpha = _factorise_and_solve_packed(F, r)
    for A, value in zip(F, values.tolist(), strict=True):
        if value > -np.inf and len(r):
            dpftri(len(r), A, uplo="L", overwrite_a=1)
    return values, alpha


def log_densities_packed(F: Array, r: Array) -> Array:
    """Return log N(r; 0, A) of each packed matrix, shape (K,), -inf if not positive definite; F is overwritten."""
    return _factorise_and_solve_packed(F, r)[0]


def packed_order(n: int) -> tuple[IntArray, IntArray]:
    """Return the row and the column of each entry of a packed triangle."""
    if n == 0:
        return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
    entries = np.arange(n * n, dtype=float).reshape(n, n, order="F")
    columns, rows = np.divmod(dtrttf(entries, uplo="L")[0].astype(np.intp), n)
    return rows, columns


@lru_cache(maxsize=64)
def packed_positions(n: int) -> IntArray:
    """Return the position of each entry of a symmetric matrix in its packed triangle, shape (n, n)."""
    rows, columns = packed_order(n)
    at = np.empty((n, n), dtype=np.intp)
    at[rows, columns] = at[columns, rows] = np.arange(len(rows))
    return at


def packed_diagonal(n: int) -> IntArray:
    """Return the positions of the diagonal entries, in row order, within a packed triangle, shape (n,)."""
    return np.diagonal(packed_positions(n))


def _factorise_and_solve_packed(F: Array, r: Array) -> tuple[Array, Array]:
    """Return log densities and α as `invert_packed` does; F is overwritten by the factors."""
    n, alpha = len(r), np.zeros((len(F), len(r)))
    if n == 0:
        return np.zeros(len(F)), alpha
    for k, A in enumerate(F):
        if dpftrf(n, A, uplo="L", overwrite_a=1)[1] != 0:
            A[:] = np.nan
        else:
            alpha[k] = dpftrs(n, A, r, uplo="L")[0].ravel()
    values = log_density(alpha @ r, np.log(F[:, packed_diagonal(n)]).sum(axis=1), n)
    failed = ~np.isfinite(values)
    if failed.any():
        values[failed], alpha[failed], F[failed] = -np.inf, 0.0, 0.0
    return values, alpha


def _positive_scale(diagonal: Array) -> Array:
    """Return the prior variances, with zeros replaced by the largest of them."""
    return diagonal if diagonal.all() else np.where(diagonal > 0, diagonal, np.max(diagonal, initial=0.0) or 1.0)


def _triangular_solve(L: Array, b: Array, trans: int) -> Array:
    if b.size == 0:
        return np.array(b)
    x: Array
    x, _ = dtrtrs(L, b, lower=1, trans=trans)
    return x


class Pairs:
    """The pairs of N observations, each once, grouped by their two sources.

    A symmetric matrix over observations is a vector over their M = N (N + 1) / 2 pairs. Quantities that depend only on
    the two sources are constant over a block of pairs, which saves half of the work. `packed` and `unpacked` permute
    between this order and LAPACK's.

    Attributes
    ----------
    first, second : (M,) ints
        The observations of each pair.
    diagonal : (N,) ints
        Index of the pair of each observation with itself.
    lower, higher : (J,) ints
        The two sources of the pairs in each of J blocks.
    """

    def __init__(self, s: IntArray) -> None:
        rows, columns = packed_order(len(s))
        lower, higher = np.minimum(s[rows], s[columns]), np.maximum(s[rows], s[columns])
        code = lower * (s.max(initial=0) + 1) + higher
        self._unpacked = np.argsort(code, kind="stable")
        self._packed = np.empty_like(self._unpacked)
        self._packed[self._unpacked] = np.arange(len(code))
        self.first, self.second = rows[self._unpacked], columns[self._unpacked]
        self.diagonal = np.empty(len(s), dtype=np.intp)
        with_itself = np.flatnonzero(self.first == self.second)
        self.diagonal[self.first[with_itself]] = with_itself
        self._starts = np.flatnonzero(np.diff(code[self._unpacked], prepend=-1))
        self._sizes = np.diff(self._starts, append=len(code))
        self.lower, self.higher = lower[self._unpacked][self._starts], higher[self._unpacked][self._starts]

    def of_sources(self, B: Array) -> Array:
        """Return B[l, l'] of each pair, for symmetric matrices B (..., L, L): shape (..., M)."""
        return np.repeat(B[..., self.lower, self.higher], self._sizes, axis=-1)

    def sums(self, A: Array, n_sources: int) -> Array:
        """Return the sums of A (..., M) over the pairs of any two sources: upper triangles, shape (..., L, L)."""
        out = np.zeros((*A.shape[:-1], n_sources, n_sources))
        if A.size:
            out[..., self.lower, self.higher] = np.add.reduceat(A, self._starts, axis=-1)
        return out

    def differences(self, X: Array) -> Array:
        """Return the differences of the inputs X (N, D) of each pair, shape (D, M)."""
        return np.ascontiguousarray((X[self.first] - X[self.second]).T)

    def outer(self, a: Array) -> Array:
        """Return a_i a_j of each pair, for each row of a (K, N): shape (K, M)."""
        out = np.take(a, self.first, axis=1)
        out *= np.take(a, self.second, axis=1)
        return out

    def packed(self, A: Array) -> Array:
        """Return vectors over pairs (K, M) in LAPACK's packed order."""
        return np.take(A, self._packed, axis=1)

    def unpacked(self, F: Array) -> Array:
        """Return packed matrices (K, M) as vectors over pairs."""
        return np.take(F, self._unpacked, axis=1)
