"""Maximisation from many starts at once: L-BFGS that evaluates all of them in each call of the function.

One call for K points costs much less than K calls, as long as the work per point is small.

Notation:  X (K, P) points, G (K, P) gradients, D (K, P) steps to be tried
           S, Y (K, M, P)    the latest M changes of X, and of -G
           R (K, M, M)       R_ij = s_iᵀ y_j for j ≤ i, the newest change first: lower triangular
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .validation import Array, IntArray

Mask: TypeAlias = NDArray[np.bool_]
#: function of points (n, P) and of the numbers (n,) of the starts from which they came: returns values (n,), -inf where
#: undefined, and gradients (n, P)
Function: TypeAlias = Callable[[Array, IntArray], tuple[Array, Array]]


@dataclass(frozen=True)
class OptimizerSettings:
    """Step sizes and criteria of the maximisation."""

    memory: int = 12  #: M; with 8 some modes of the calibration problems were missed
    longest_step: float = 1.5  #: longest step in any coordinate, in units of the prior's spread
    first_step: float = 0.3  #: first step as a share of the longest, while no curvature is known
    shrink: float = 0.25  #: factor by which a step without gain is shortened
    tries: int = 7  #: how often a step is shortened before a run ends
    grow: float = 2.0  #: factor by which the longest step recovers after one that was too long
    most_calls: int = 250
    #: A run that is behind ends unless this many times the gain of its next step would reach the best: 15 lost nothing
    #: above 1e-5 in 1,404 searches, 5 lost up to 5 %.
    hoped_gain: float = 15.0


SETTINGS = OptimizerSettings()


def maximise_batch(
    function: Function,
    starts: Array,
    bounds: Array,
    tolerance: float | Array,
    longest: float = SETTINGS.longest_step,
    hopeless: float | Array = np.inf,
    behind: tuple[float, float] | None = None,
    history: CurvatureHistory | None = None,
) -> tuple[Array, Array, CurvatureHistory]:
    """Return the maximiser reached from each start, the values there, and the histories to continue with.

    Parameters
    ----------
    function : Function
    starts : (K, P) array
    bounds : (P, 2) array
        Steps are confined to these.
    tolerance : float, or one for each start
        A run ends when the expected gain of its next step is no larger.
    longest : float
        Longest step in any coordinate.
    hopeless : float, or one for each start
        A run also ends if it is this far below the best and not expected to catch up.
    behind : (float, float), optional
        A run that is more than the first number below the best ends when it expects to gain no more than the second.
    history : CurvatureHistory, optional
        The history of the runs that led to the starts.
    """
    low, high = bounds.T.copy()
    X = clip(starts, low, high)
    values, G = function(X, np.arange(len(X)))
    history = CurvatureHistory(*X.shape) if history is None else history
    highest, rows = values.max(initial=-np.inf), np.flatnonzero(np.isfinite(values))
    # These arrays only contain runs that have not ended.
    tolerance, hopeless = np.broadcast_to(tolerance, len(X))[rows], np.broadcast_to(hopeless, len(X))[rows]
    past = history.select(rows)
    x, value, g, tries = X[rows], values[rows], G[rows], np.zeros(len(rows), dtype=int)
    room = np.full(len(rows), longest)
    d = _bounded_steps(past, g, x, low, high, room)
    for _ in range(SETTINGS.most_calls):
        if not len(rows):
            break
        new = clip(x + d, low, high)
        new_value, new_g = function(new, rows)
        changes = np.empty((len(rows), 2, len(low)))
        np.subtract(new, x, out=changes[:, 0])
        np.subtract(g, new_g, out=changes[:, 1])
        gained = new_value >= value + 1e-4 * _dot(changes[:, 0], g)
        past.add(gained, changes)
        if gained.all():
            x, value, g = new, new_value, new_g
            tries.fill(0)
            room = np.minimum(SETTINGS.grow * room, longest)
            d = _bounded_steps(past, g, x, low, high, room)
        else:
            x, g = np.where(gained[:, None], new, x), np.where(gained[:, None], new_g, g)
            value, tries = np.where(gained, new_value, value), np.where(gained, 0, tries + 1)
            room = np.where(gained, np.minimum(SETTINGS.grow * room, longest), SETTINGS.shrink * _longest(d))
            d = np.where(gained[:, None], _bounded_steps(past, g, x, low, high, room), SETTINGS.shrink * d)
        gain, highest = _dot(d, g), max(highest, value.max())
        worth = (gain > tolerance) & (value + SETTINGS.hoped_gain * gain > highest - hopeless)
        if behind is not None:
            worth &= (value >= highest - behind[0]) | (gain > behind[1])
        goes_on = np.where(gained, worth, tries < SETTINGS.tries)
        if not goes_on.all():
            X[rows], values[rows] = x, value
            history.put(rows, past)
            rows, tolerance, hopeless = rows[goes_on], tolerance[goes_on], hopeless[goes_on]
            past = past.select(goes_on)
            x, value, g, d, room, tries = (part[goes_on] for part in (x, value, g, d, room, tries))
    X[rows], values[rows] = x, value
    history.put(rows, past)
    return X, values, history


def clip(X: Array, low: Array, high: Array) -> Array:
    """Return X clipped to the bounds; faster than np.clip for few numbers."""
    return np.asarray(np.minimum(np.maximum(X, low), high))


class CurvatureHistory:
    """The latest changes of each run, and the quasi-Newton steps computed from them."""

    def __init__(self, K: int, P: int) -> None:
        self.changes = np.zeros((K, SETTINGS.memory, 2, P))  # S and Y
        self.inverse = np.tile(np.eye(SETTINGS.memory), (K, 1, 1))  # R⁻¹; R grows by a row and a column at a time
        self.scale = np.full(K, np.nan)

    def add(self, moved: Mask, changes: Array) -> None:
        """Add changes (K, 2, P) of runs that moved, unless the function is not concave along them."""
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

    def select(self, rows: Any) -> CurvatureHistory:
        """Return the history of the given runs."""
        other = copy(self)
        for name, part in vars(self).items():
            setattr(other, name, part[rows])
        return other

    def put(self, rows: IntArray, latest: CurvatureHistory) -> None:
        """Replace the history of the given runs."""
        for name, part in vars(self).items():
            part[rows] = getattr(latest, name)

    @classmethod
    def joined(cls, histories: Sequence[CurvatureHistory]) -> CurvatureHistory:
        """Return the history of all runs of several histories."""
        out = copy(histories[0])
        for name in vars(out):
            setattr(out, name, np.concatenate([getattr(history, name) for history in histories]))
        return out

    def steps(self, G: Array, longest: Array) -> Array:
        """Return inverse Hessian times gradient (compact form of Byrd, Nocedal and Schnabel), limited in length."""
        S, Y, g, scale = self.changes[:, :, 0], self.changes[:, :, 1], G[:, :, None], self.scale
        if np.isnan(scale).any():
            scale = np.where(np.isnan(scale), SETTINGS.first_step * longest / _longest(G), scale)
        p = self.inverse @ (S @ g)
        scaled = scale[:, None, None] * (g - Y.swapaxes(1, 2) @ p)
        diagonal = np.einsum("kii->ki", self.inverse)  # the diagonal of R⁻¹
        q = self.inverse.swapaxes(1, 2) @ (p / diagonal[:, :, None] - Y @ scaled)
        D = (scaled + S.swapaxes(1, 2) @ q)[:, :, 0]
        lengths = _longest(D)
        return np.asarray(D if (lengths <= longest).all() else D * np.minimum(1.0, longest / lengths)[:, None])


def _bounded_steps(history: CurvatureHistory, G: Array, X: Array, low: Array, high: Array, longest: Array) -> Array:
    """Return the steps from the history, without components that lead out of the bounds."""
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
