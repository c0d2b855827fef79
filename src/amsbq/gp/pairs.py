"""The pairs of N observations, each once, those of the same two sources together.

Matrices over observations that are symmetric are vectors over their M = N (N + 1) / 2 pairs: what depends on the two
sources is the same for a whole block of them, and half of the work is saved.
"""

from __future__ import annotations

import numpy as np

from ..validation import Array, IntArray
from . import linalg


class Pairs:
    """The order of pairs, and the way from there to LAPACK's order and back.

    Attributes
    ----------
    first, second : (M,) ints
        The observations of each pair.
    diagonal : (N,) ints
        Where each observation is paired with itself.
    lower, higher : (J,) ints
        The sources of the pairs in each of J blocks.
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
        alone = np.flatnonzero(self.first == self.second)
        self.diagonal[self.first[alone]] = alone
        self._starts = np.flatnonzero(np.diff(code[self._unpacked], prepend=-1))
        self._sizes = np.diff(self._starts, append=len(code))
        self.lower, self.higher = lower[self._unpacked][self._starts], higher[self._unpacked][self._starts]

    def of_sources(self, B: Array) -> Array:
        """B[l, l'] of each pair, for each of the symmetric matrices B (..., L, L): shape (..., M)."""
        return np.repeat(B[..., self.lower, self.higher], self._sizes, axis=-1)

    def sums(self, A: Array, n_sources: int) -> Array:
        """The sums over the pairs of each two sources, for each row of A (..., M): upper triangles, (..., L, L)."""
        out = np.zeros((*A.shape[:-1], n_sources, n_sources))
        if A.size:
            out[..., self.lower, self.higher] = np.add.reduceat(A, self._starts, axis=-1)
        return out

    def steps(self, X: Array) -> Array:
        """The differences of the inputs (N, D) of each pair, shape (D, M)."""
        return np.ascontiguousarray((X[self.first] - X[self.second]).T)

    def outer(self, a: Array) -> Array:
        """a_i a_j of each pair, for each row of a (K, N): shape (K, M)."""
        out = np.take(a, self.first, axis=1)
        out *= np.take(a, self.second, axis=1)
        return out

    def packed(self, A: Array) -> Array:
        """In LAPACK's order: (K, M) to (K, M)."""
        return np.take(A, self._packed, axis=1)

    def unpacked(self, F: Array) -> Array:
        """In this order again."""
        return np.take(F, self._unpacked, axis=1)
