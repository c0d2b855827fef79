"""Climbing from many starts at once: L-BFGS, with all of them in every call of the function.

One call for K points costs much less than K calls, as long as they are small.

Notation:  X (K, P) points, G (K, P) gradients, D (K, P) steps to be tried
           S, Y (K, M, P)    the latest M changes of X and, with its sign turned, of G
           R (K, M, M)       S Yᵀ of changes and the same or later ones, lower triangular: the latest come first
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..validation import Array, IntArray

Mask: TypeAlias = NDArray[np.bool_]


MEMORY = 12  #: M


LONGEST = 1.5  #: step in any coordinate


FIRST = 0.3  #: of it, for the first one


SHRINK, TRIES = 0.25, 7  #: a step that does not gain is made so much shorter, so often


GROW = 2.0  #: and after that, steps may become so much longer again each time


CALLS = 250  #: at most


MANY = 15  #: times the gain of the next step: more than that is not hoped for


#: of points (n, P), and from which of the starts each one came: values (n,), -inf where there is none, and gradients
Function = Callable[[Array, IntArray], tuple[Array, Array]]


def climbed(
    function: Function,
    starts: Array,
    bounds: Array,
    tolerance: float | Array,
    longest: float = LONGEST,
    hopeless: float | Array = np.inf,
    behind: tuple[float, float] | None = None,
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
    tolerance : float, or one for each start
        A climb ends when no more than that is to be gained by its next step.
    longest : float
        No step is longer in any coordinate.
    hopeless : float, or one for each start
        A climb also ends if it is so much below the best, and even gains many times that of its next step would leave
        it there.
    behind : (float, float), optional
        A climb that is more than the first number below the best ends when no more than the second is to be gained.
    history : History, optional
        Of climbs that led to the starts.
    """
    low, high = bounds.T.copy()
    X = within(starts, low, high)
    values, G = function(X, np.arange(len(X)))
    history = History(*X.shape) if history is None else history
    highest, rows = values.max(initial=-np.inf), np.flatnonzero(np.isfinite(values))
    # of those that go on: the climbs, where they are, and what is next
    tolerance, hopeless = np.broadcast_to(tolerance, len(X))[rows], np.broadcast_to(hopeless, len(X))[rows]
    past = history.of(rows)
    x, value, g, tries = X[rows], values[rows], G[rows], np.zeros(len(rows), dtype=int)
    room = np.full(len(rows), longest)
    d = _steps(past, g, x, low, high, room)
    for _ in range(CALLS):
        if not len(rows):
            break
        new = within(x + d, low, high)
        new_value, new_g = function(new, rows)
        changes = np.empty((len(rows), 2, len(low)))
        np.subtract(new, x, out=changes[:, 0])
        np.subtract(g, new_g, out=changes[:, 1])
        gained = new_value >= value + 1e-4 * _dot(changes[:, 0], g)
        past.add(gained, changes)
        if gained.all():
            x, value, g = new, new_value, new_g
            tries.fill(0)
            room = np.minimum(GROW * room, longest)
            d = _steps(past, g, x, low, high, room)
        else:
            x, g = np.where(gained[:, None], new, x), np.where(gained[:, None], new_g, g)
            value, tries = np.where(gained, new_value, value), np.where(gained, 0, tries + 1)
            room = np.where(gained, np.minimum(GROW * room, longest), SHRINK * _longest(d))
            d = np.where(gained[:, None], _steps(past, g, x, low, high, room), SHRINK * d)
        gain, highest = _dot(d, g), max(highest, value.max())
        worth = (gain > tolerance) & (value + MANY * gain > highest - hopeless)
        if behind is not None:
            worth &= (value >= highest - behind[0]) | (gain > behind[1])
        goes_on = np.where(gained, worth, tries < TRIES)
        if not goes_on.all():
            X[rows], values[rows] = x, value
            history.put(rows, past)
            rows, tolerance, hopeless = rows[goes_on], tolerance[goes_on], hopeless[goes_on]
            past = past.of(goes_on)
            x, value, g, d, room, tries = (part[goes_on] for part in (x, value, g, d, room, tries))
    X[rows], values[rows] = x, value
    history.put(rows, past)
    return X, values, history


def within(X: Array, low: Array, high: Array) -> Array:
    """As np.clip, which takes longer for so few numbers."""
    return np.asarray(np.minimum(np.maximum(X, low), high))


class History:
    """The latest changes of each climb, and the steps that follow from them."""

    def __init__(self, K: int, P: int) -> None:
        self.changes = np.zeros((K, MEMORY, 2, P))  # S and Y
        self.inverse = np.tile(np.eye(MEMORY), (K, 1, 1))  # of R, which grows by a row and a column at a time
        self.scale = np.full(K, np.nan)

    def add(self, moved: Mask, changes: Array) -> None:
        """Remember changes (K, 2, P) of climbs that moved, unless the function is not concave along them."""
        (lengths, curvature), (_, squares) = (changes @ changes.swapaxes(1, 2)).transpose(1, 2, 0)
        concave = moved & (curvature > 1e-8 * np.sqrt(lengths * squares))
        rows = slice(None) if concave.all() else concave
        changes, curvature = changes[rows], curvature[rows]
        older = self.inverse[rows, :-1, :-1]
        column = older @ (self.changes[rows, :-1, 0] @ changes[:, 1, :, None])
        self.inverse[rows, 1:, 1:] = older
        self.inverse[rows, 1:, 0] = column[:, :, 0] / -curvature[:, None]
        self.inverse[rows, 0, 0] = 1 / curvature
        self.changes[rows, 1:] = self.changes[rows, :-1]
        self.changes[rows, 0] = changes
        self.scale[rows] = curvature / squares[rows]

    def of(self, rows: Any) -> History:
        """Of some of the climbs, to go on with."""
        other = copy(self)
        for name, part in vars(self).items():
            setattr(other, name, part[rows])
        return other

    def put(self, rows: IntArray, latest: History) -> None:
        """In place of what is known of some of the climbs."""
        for name, part in vars(self).items():
            part[rows] = getattr(latest, name)

    @classmethod
    def joined(cls, histories: Sequence[History]) -> History:
        """Of all climbs of several histories."""
        out = copy(histories[0])
        for name in vars(out):
            setattr(out, name, np.concatenate([getattr(history, name) for history in histories]))
        return out

    def steps(self, G: Array, longest: Array) -> Array:
        """The inverse Hessian times the gradient (Byrd, Nocedal and Schnabel's compact form); not too long."""
        S, Y, g, scale = self.changes[:, :, 0], self.changes[:, :, 1], G[:, :, None], self.scale
        if np.isnan(scale).any():
            scale = np.where(np.isnan(scale), FIRST * longest / _longest(G), scale)
        p = self.inverse @ (S @ g)
        scaled = scale[:, None, None] * (g - Y.swapaxes(1, 2) @ p)
        diagonal = np.einsum("kii->ki", self.inverse)  # of R⁻¹
        q = self.inverse.swapaxes(1, 2) @ (p / diagonal[:, :, None] - Y @ scaled)
        D = (scaled + S.swapaxes(1, 2) @ q)[:, :, 0]
        lengths = _longest(D)
        return np.asarray(D if (lengths <= longest).all() else D * np.minimum(1.0, longest / lengths)[:, None])


def _steps(history: History, G: Array, X: Array, low: Array, high: Array, longest: Array) -> Array:
    """Those that follow from the history, without what leads out of the bounds."""
    if ((low < X) & (high > X)).all():
        return history.steps(G, longest)
    D = history.steps(_inwards(G, X, low, high), longest)
    return _inwards(D, X, low, high)


def _inwards(D: Array, X: Array, low: Array, high: Array) -> Array:
    room = np.where(D < 0, X - low, high - X)
    return np.where(room > 0, D, 0.0)


def _dot(A: Array, B: Array) -> Array:
    return np.asarray(np.einsum("kp,kp->k", A, B))


def _longest(D: Array) -> Array:
    return np.asarray(np.maximum(np.abs(D).max(axis=1, initial=0.0), np.finfo(float).tiny))
