"""From hyperparameters to the coregionalisation matrices of all terms, for many vectors θ at once, and back.

Notation:  Q terms, L sources, θ (P,), Θ (K, P) as in `hyper`

    B_q = (A w)(A w)ᵀ + A² η        with diagonal A = diag(e^{a}) and η,

where a, w and log η of each term and source are linear in θ: their derivatives are three matrices, (P, Q L) each.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .checks import Array


class Loadings:
    """The linear maps, to be filled with ones where an entry of θ counts.

    Attributes
    ----------
    amplitudes, weights, own : (P, Q, L) arrays
        Of a, w and log η.
    with_own : (Q, L) array of bool
        Whether there is an η; it is zero otherwise.
    related : (Q, L) array of bool
        Whether w is not learned, but the relation of the source: 1, -1, or 0 for a source that has as much of the term
        to itself as others share.
    """

    def __init__(self, size: int, n_terms: int, n_sources: int) -> None:
        shape = (n_terms, n_sources)
        self.amplitudes, self.weights, self.own = (np.zeros((size, *shape)) for _ in range(3))
        self.with_own, self.related = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)

    @cached_property
    def _maps(self) -> Array:
        """All three as one, (P, 3 Q L)."""
        return np.stack([self.amplitudes, self.weights, self.own], axis=1).reshape(len(self.own), -1)

    def at(self, Theta: Array, relations: Array | None = None) -> LoadingsAt:
        """For vectors Θ and relations (K, L) or (L,), which by default are all one."""
        relation = np.ones((1, 1, self.related.shape[1])) if relations is None else np.atleast_2d(relations)[:, None, :]
        Z = (Theta @ self._maps).reshape(len(Theta), 3, *self.related.shape)
        A, own = np.exp(Z[:, 0]), np.exp(Z[:, 2])
        w = A * (Z[:, 1] + relation * self.related)
        own *= A * A * self.with_own
        alone = A * A * (self.related & (relation == 0))
        return LoadingsAt(self, A, w, own, alone)


@dataclass(frozen=True)
class LoadingsAt:
    """All of them (K, Q, L)."""

    maps: Loadings
    A: Array
    w: Array  # A w
    own: Array  # A² η
    alone: Array  # A² for sources that have all of a term to themselves

    def B(self) -> Array:
        """B of each term, shape (K, Q, L, L)."""
        B = self.w[..., :, None] * self.w[..., None, :]
        _diagonal(B)[...] += self.own + self.alone
        return B

    def variances(self) -> Array:
        """The variance of each source by all terms, shape (K, L)."""
        return np.asarray((self.w**2 + self.own + self.alone).sum(axis=1))

    def gradient(self, by_B: Array) -> Array:
        """The gradient in θ, shape (K, P), given that in the upper triangles of B (K, Q, L, L)."""
        diagonal = _diagonal(by_B)
        by_w = (by_B @ self.w[..., None])[..., 0] + (self.w[..., None, :] @ by_B)[..., 0, :]
        by_all = np.empty((len(by_w), 3, *by_w.shape[1:]))
        by_all[:, 0] = by_w * self.w + 2 * diagonal * (self.own + self.alone)
        by_all[:, 1] = by_w * self.A
        by_all[:, 2] = diagonal * self.own
        return np.asarray(by_all.reshape(len(by_all), -1) @ self.maps._maps.T)


def _diagonal(B: Array) -> Array:
    """Of each matrix, as a view."""
    return B.reshape(*B.shape[:2], -1)[:, :, :: B.shape[-1] + 1]
