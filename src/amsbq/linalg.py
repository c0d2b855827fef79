"""Triangular factors, through LAPACK, of covariance matrices that may have lost rank to rounding.

Notation: A (n, n) symmetric, L (n, n) lower triangular with A ≈ L Lᵀ, b (n, m).
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs

from .checks import Array

EPS = float(np.finfo(float).eps)


def variance_floor(n: int) -> float:
    """The share of a prior variance below which what n observations leave of it is rounding."""
    return (n + 10) * EPS


def factorise(A: Array, prior: Array, n_before: int = 0) -> tuple[Array, float]:
    """Cholesky factor of A + jitter · diag(prior), and the relative jitter that was needed.

    ``prior`` holds the variances before any conditioning. A pivot below ``variance_floor`` of its own prior is
    noise, even where LAPACK accepts it: the jitter starts at that floor and grows until no pivot is noise.
    """
    n = len(A)
    if n == 0:
        return np.empty((0, 0), order="F"), 0.0
    if not np.isfinite(A).all():
        raise ValueError("the covariance of the observations is not finite: the scales in B are too extreme")
    scale = np.where(prior > 0, prior, np.max(prior, initial=0.0) or 1.0)
    floor = variance_floor(n_before + n)
    jitter = 0.0
    while True:
        L, info = dpotrf(A + np.diag(jitter * scale) if jitter else A, lower=1, clean=1)
        if info == 0 and (np.diagonal(L) ** 2 >= max(floor, jitter / 2) * scale).all():
            return L, jitter
        if jitter > 1:
            raise ValueError("the covariance of the observations is not positive semi-definite")
        jitter = 10 * jitter if jitter else 4 * floor
        if jitter > 1e-6:
            warnings.warn(
                f"a relative jitter of {jitter:.0e} is needed to factorise the covariance of the observations",
                RuntimeWarning,
                stacklevel=2,
            )


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
