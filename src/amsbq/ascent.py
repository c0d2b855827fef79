"""Climbing from many starts at once: the method of Broyden, Fletcher, Goldfarb and Shanno, all of them in every call.

One call for K points costs much less than K calls, as long as they are small.

Notation:  X (K, P) points, G (K, P) gradients, D (K, P) steps to be tried
           H (K, P, P)    of each climb, an approximation of its inverse Hessian, with its sign turned
           S, Y (n, P)    the latest changes of X and, with its sign turned, of G
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .checks import Array, IntArray

LONGEST = 1.5  #: step in any coordinate
FIRST = 0.3  #: of it, for the first one
SHRINK, TRIES = 0.25, 7  #: a step that does not gain is made so much shorter, so often
CALLS = 150  #: at most
MANY = 10  #: times the gain of the next step: more than that is not hoped for

#: of points (n, P), and from which of the starts each one came: values (n,), -inf where there is none, and gradients
Function = Callable[[Array, IntArray], tuple[Array, Array]]


def climbed(
    function: Function,
    starts: Array,
    bounds: Array,
    tolerance: float,
    longest: float = LONGEST,
    hopeless: float = np.inf,
    H: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Where climbs lead from each start, the values there, and H.

    Parameters
    ----------
    function : of points (n, P), and the numbers (n,) of the starts that they came from
        Values (n,), -inf where there is none, and gradients (n, P).
    starts : (K, P) array
    bounds : (P, 2) array
        Steps end there.
    tolerance : float
        A climb ends when no more than that is to be gained by its next step.
    longest : float
        No step is longer in any coordinate.
    hopeless : float
        A climb also ends if it is so much below the best, and even gains many times that of its next step would leave
        it there.
    H : (K, P, P) array, optional
        What is known of the curvature at each start.
    """
    low, high = bounds.T
    X = np.clip(starts, low, high)
    values, G = function(X, np.arange(len(X)))
    curvatures = _Curvatures(len(X), X.shape[1], longest, H)
    active = np.isfinite(values)
    D, share, tries = np.zeros_like(X), np.ones(len(X)), np.zeros(len(X), dtype=int)
    D[active] = curvatures.steps(np.flatnonzero(active), _inwards(G, X, low, high)[active])
    for _ in range(CALLS):
        rows = np.flatnonzero(active)
        if not len(rows):
            break
        new = np.clip(X[rows] + share[rows, None] * D[rows], low, high)
        new_values, new_G = function(new, rows)
        change = new - X[rows]
        gained = new_values >= values[rows] + 1e-4 * _dot(change, G[rows])
        lost, rows = rows[~gained], rows[gained]
        share[lost] *= SHRINK
        tries[lost] += 1
        active[lost[tries[lost] >= TRIES]] = False

        curvatures.learn(rows, change[gained], G[rows] - new_G[gained])
        X[rows], values[rows], G[rows] = new[gained], new_values[gained], new_G[gained]
        share[rows], tries[rows] = 1.0, 0
        D[rows] = _inwards(curvatures.steps(rows, _inwards(G[rows], X[rows], low, high)), X[rows], low, high)
        gain = _dot(D[rows], G[rows])
        active[rows] = (gain > tolerance) & (values[rows] + MANY * gain > values.max() - hopeless)
    return X, values, curvatures.H


class _Curvatures:
    """What is known of the curvature of each climb, and the steps that follow from it."""

    def __init__(self, K: int, P: int, longest: float, H: Array | None) -> None:
        self.longest = longest
        self.H = np.tile(np.eye(P), (K, 1, 1)) if H is None else H.copy()
        self.known = np.full(K, H is not None)

    def learn(self, rows: IntArray, S: Array, Y: Array) -> None:
        """From changes, unless the function is not concave along them."""
        curvature = _dot(S, Y)
        squares = _dot(Y, Y)
        concave = curvature > 1e-8 * np.sqrt(_dot(S, S) * squares)
        rows, S, Y, curvature, squares = rows[concave], S[concave], Y[concave], curvature[concave], squares[concave]
        H = np.where(self.known[rows, None, None], 1.0, (curvature / squares)[:, None, None]) * self.H[rows]
        HY = (H @ Y[:, :, None])[:, :, 0]
        S = S / curvature[:, None]
        cross = HY[:, :, None] * S[:, None, :]
        H += (curvature + _dot(Y, HY))[:, None, None] * (S[:, :, None] * S[:, None, :])
        self.H[rows], self.known[rows] = H - cross - cross.swapaxes(1, 2), True

    def steps(self, rows: IntArray, G: Array) -> Array:
        """The inverse Hessian times the gradient; not too long."""
        D = (self.H[rows] @ G[:, :, None])[:, :, 0]
        first = FIRST * self.longest / _longest(D)
        D *= np.where(self.known[rows], 1.0, first)[:, None]
        return np.asarray(D * np.minimum(1.0, self.longest / _longest(D))[:, None])


def _inwards(D: Array, X: Array, low: Array, high: Array) -> Array:
    """Directions without what leads out of the bounds."""
    room = np.where(D < 0, X - low, high - X)
    return np.where(room > 0, D, 0.0)


def _dot(A: Array, B: Array) -> Array:
    return np.asarray(np.einsum("kp,kp->k", A, B))


def _longest(D: Array) -> Array:
    return np.asarray(np.maximum(np.abs(D).max(axis=1, initial=0.0), np.finfo(float).tiny))
