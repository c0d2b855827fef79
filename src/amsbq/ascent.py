"""Climbing from many starts at once: L-BFGS, with all of them in every call of the function.

One call for K points costs much less than K calls, as long as they are small.

Notation:  X (K, P) points, G (K, P) gradients, D (K, P) steps to be tried
           S, Y (K, M, P)    the latest M changes of X and, with its sign turned, of G
           R (K, M, M)       S Yᵀ of changes and the same or later ones
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

from .checks import Array, IntArray

MEMORY = 8  #: M
LOWER = np.tri(MEMORY)
LONGEST = 1.5  #: step in any coordinate
FIRST = 0.3  #: of it, for the first one
SHRINK, TRIES = 0.25, 7  #: a step that does not gain is made so much shorter, so often
CALLS = 150  #: at most
MANY = 30  #: times the gain of the next step: more than that is not hoped for

#: of points (n, P), and from which of the starts each one came: values (n,), -inf where there is none, and gradients
Function = Callable[[Array, IntArray], tuple[Array, Array]]


def climbed(
    function: Function,
    starts: Array,
    bounds: Array,
    tolerance: float,
    longest: float = LONGEST,
    hopeless: float | Array = np.inf,
    history: History | None = None,
) -> tuple[Array, Array, History]:
    """Where climbs lead from each start, the values there, and what to go on with.

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
    hopeless : float, or one for each start
        A climb also ends if it is so much below the best, and even gains many times that of its next step would leave
        it there.
    history : History, optional
        Of climbs that led to the starts.
    """
    low, high = bounds.T
    X = np.clip(starts, low, high)
    values, G = function(X, np.arange(len(X)))
    history = History(*X.shape) if history is None else history
    hopeless = np.broadcast_to(hopeless, len(X))
    active = np.isfinite(values)
    D, share, tries = np.zeros_like(X), np.ones(len(X)), np.zeros(len(X), dtype=int)
    D[active] = history.steps(np.flatnonzero(active), _inwards(G, X, low, high)[active], longest)
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

        history.add(rows, change[gained], G[rows] - new_G[gained])
        X[rows], values[rows], G[rows] = new[gained], new_values[gained], new_G[gained]
        share[rows], tries[rows] = 1.0, 0
        D[rows] = _inwards(history.steps(rows, _inwards(G[rows], X[rows], low, high), longest), X[rows], low, high)
        gain = _dot(D[rows], G[rows])
        active[rows] = (gain > tolerance) & (values[rows] + MANY * gain > values.max() - hopeless[rows])
    return X, values, history


class History:
    """The latest changes of each climb, and the steps that follow from them."""

    def __init__(self, K: int, P: int) -> None:
        self.S, self.Y = np.zeros((K, MEMORY, P)), np.zeros((K, MEMORY, P))
        self.scale = np.full(K, np.nan)

    def add(self, rows: IntArray, S: Array, Y: Array) -> None:
        """Remember changes, unless the function is not concave along them."""
        curvature, squares = _dot(S, Y), _dot(Y, Y)
        concave = curvature > 1e-8 * np.sqrt(_dot(S, S) * squares)
        rows = rows[concave]
        for kept, latest in ((self.S, S), (self.Y, Y)):
            kept[rows, 1:] = kept[rows, :-1]
            kept[rows, 0] = latest[concave]
        self.scale[rows] = curvature[concave] / squares[concave]

    def of(self, rows: Any) -> History:
        """Of some of the climbs, to go on with."""
        other = copy(self)
        other.S, other.Y, other.scale = self.S[rows], self.Y[rows], self.scale[rows]
        return other

    def and_of(self, others: Sequence[History]) -> History:
        """Of these climbs and others."""
        out = copy(self)
        out.S, out.Y, out.scale = (
            np.concatenate([getattr(history, name) for history in (self, *others)]) for name in ("S", "Y", "scale")
        )
        return out

    def steps(self, rows: IntArray, G: Array, longest: float) -> Array:
        """The inverse Hessian times the gradient (Byrd, Nocedal and Schnabel's compact form); not too long."""
        S, Y, g = self.S[rows], self.Y[rows], G[:, :, None]
        first = np.isnan(self.scale[rows])
        scale = np.where(first, FIRST * longest / _longest(G), self.scale[rows])[:, None, None]
        R = S @ Y.swapaxes(1, 2)
        curvature = np.einsum("kmm->km", R).copy()
        R *= LOWER
        np.einsum("kmm->km", R)[curvature == 0] = 1.0  # nothing there yet
        inverse = np.linalg.inv(R)
        p = inverse @ (S @ g)
        q = inverse.swapaxes(1, 2) @ (curvature[:, :, None] * p + scale * (Y @ (Y.swapaxes(1, 2) @ p - g)))
        D = (scale * (g - Y.swapaxes(1, 2) @ p) + S.swapaxes(1, 2) @ q)[:, :, 0]
        return np.asarray(D * np.minimum(1.0, longest / _longest(D))[:, None])


def _inwards(D: Array, X: Array, low: Array, high: Array) -> Array:
    """Directions without what leads out of the bounds."""
    room = np.where(D < 0, X - low, high - X)
    return np.where(room > 0, D, 0.0)


def _dot(A: Array, B: Array) -> Array:
    return np.asarray(np.einsum("kp,kp->k", A, B))


def _longest(D: Array) -> Array:
    return np.asarray(np.maximum(np.abs(D).max(axis=1, initial=0.0), np.finfo(float).tiny))
