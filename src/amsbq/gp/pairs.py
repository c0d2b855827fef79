"""The pairs of N observations, each once, with the pairs of the same two sources side by side.

A symmetric matrix over observations is a vector over their M = N (N + 1) / 2 pairs. What depends on the two sources
alone is constant over a block of pairs, and half of the work is saved.
"""

from __future__ import annotations

import numpy as np

from ..validation import Array, IntArray
from . import linalg


class Pairs:
    """The order of the pairs, and the permutations between it and LAPACK's packed order.

    Attributes
    ----------
    first, second : (M,) ints
        The observations of each pair.
    diagonal : (N,) ints
        Where each observation is paired with itself.
    lower, higher : (J,) ints
        The two sources of the pairs in each of J blocks.
    """

    def __init__(self, s: IntArray) -> None:
        rows, columns = linalg.packed_order(len(s))
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
        """Return the sums of A (..., M) over the pairs of each two sources: upper triangles, shape (..., L, L)."""
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
