"""Climbing from many starts at once: L-BFGS, with all of them in every call of the function.

One call for K points costs much less than K calls, as long as they are small.

Notation:  X (K, P) points, G (K, P) gradients, D (K, P) steps to be tried
           S, Y (M, K, P)    the latest M changes of X and, with its sign turned, of G
           R (M, K)          1 / (S · Y), zero where there is none
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .checks import Array, IntArray

MEMORY = 8  #: M
LONGEST = 1.5  #: step in any coordinate
FIRST = 0.3  #: of it, for the first one
SHRINK, TRIES = 0.25, 7  #: a step that does not gain is made so much shorter, so often
CALLS = 150  #: at most

Function = Callable[[Array], tuple[Array, Array]]  # of (n, P): values (n,), -inf where there is none, and gradients


def climbed(
    function: Function, starts: Array, bounds: Array, tolerance: float, longest: float = LONGEST
) -> tuple[Array, Array]:
    """Where L-BFGS leads from each start, and the values there.

    Parameters
    ----------
    function : of points (n, P)
        Values (n,), -inf where there is none, and gradients (n, P).
    starts : (K, P) array
    bounds : (P, 2) array
        Steps end there.
    tolerance : float
        A climb ends when no more than that is to be gained by its next step.
    longest : float
        No step is longer in any coordinate.
    """
    low, high = bounds.T
    X = np.clip(starts, low, high)
    values, G = function(X)
    history = _History(len(X), X.shape[1], longest)
    active = np.isfinite(values)
    D, share, tries = np.zeros_like(X), np.ones(len(X)), np.zeros(len(X), dtype=int)
    D[active] = history.steps(np.flatnonzero(active), _inwards(G, X, low, high)[active])
    for _ in range(CALLS):
        rows = np.flatnonzero(active)
        if not len(rows):
            break
        new = np.clip(X[rows] + share[rows, None] * D[rows], low, high)
        new_values, new_G = function(new)
        change = new - X[rows]
        gained = new_values >= values[rows] + 1e-4 * _dot(change, G[rows])
        lost, rows = rows[~gained], rows[gained]
        share[lost] *= SHRINK
        tries[lost] += 1
        active[lost[tries[lost] >= TRIES]] = False

        history.add(rows, change[gained], G[rows] - new_G[gained])
        X[rows], values[rows], G[rows] = new[gained], new_values[gained], new_G[gained]
        share[rows], tries[rows] = 1.0, 0
        D[rows] = _inwards(history.steps(rows, _inwards(G[rows], X[rows], low, high)), X[rows], low, high)
        active[rows] = _dot(D[rows], G[rows]) > tolerance
    return X, values


class _History:
    """The latest changes of each climb, and the steps that follow from them."""

    def __init__(self, K: int, P: int, longest: float) -> None:
        self.longest = longest
        self.S, self.Y, self.R = np.zeros((MEMORY, K, P)), np.zeros((MEMORY, K, P)), np.zeros((MEMORY, K))
        self.scale = np.full(K, np.nan)

    def add(self, rows: IntArray, S: Array, Y: Array) -> None:
        """Remember changes, unless the function is not concave along them."""
        curvature = _dot(S, Y)
        concave = curvature > 1e-8 * np.sqrt(_dot(S, S) * _dot(Y, Y))
        rows, S, Y, curvature = rows[concave], S[concave], Y[concave], curvature[concave]
        for kept, latest in ((self.S, S), (self.Y, Y), (self.R, 1 / curvature)):
            kept[1:, rows] = kept[:-1, rows]
            kept[0, rows] = latest
        self.scale[rows] = curvature / _dot(Y, Y)

    def steps(self, rows: IntArray, G: Array) -> Array:
        """The inverse Hessian times the gradient, by the two-loop recursion; not too long."""
        S, Y, R = self.S[:, rows], self.Y[:, rows], self.R[:, rows]
        D, weights = G.copy(), []
        for s, y, r in zip(S, Y, R, strict=True):
            weights.append(r * _dot(s, D))
            D -= weights[-1][:, None] * y
        first = np.isnan(self.scale[rows])
        D *= np.where(first, FIRST * self.longest / _longest(D), self.scale[rows])[:, None]
        for s, y, r, weight in zip(S[::-1], Y[::-1], R[::-1], weights[::-1], strict=True):
            D += (weight - r * _dot(y, D))[:, None] * s
        return D * np.minimum(1.0, self.longest / _longest(D))[:, None]


def _inwards(D: Array, X: Array, low: Array, high: Array) -> Array:
    """Directions without what leads out of the bounds."""
    room = np.where(D < 0, X - low, high - X)
    return np.where(room > 0, D, 0.0)


def _dot(A: Array, B: Array) -> Array:
    return np.asarray(np.einsum("kp,kp->k", A, B))


def _longest(D: Array) -> Array:
    return np.asarray(np.maximum(np.abs(D).max(axis=1, initial=0.0), np.finfo(float).tiny))
