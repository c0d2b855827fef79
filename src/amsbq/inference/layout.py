"""From hyperparameters to what covariances are made of, for many vectors θ at once, and back.

Notation:  Q terms, L sources, D inputs, θ (P,), Θ (K, P) as in `hyper`

    B_q = (A w)(A w)ᵀ + A² η        with diagonal A = diag(e^{a}) and η,

where a, w and log η of each term and source are linear in θ, and so are log λ of each term and input, and the log noise
variances: they are Θ times one matrix, and so is the way back from derivatives.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..validation import Array, IntArray
from .priors import Prior
from .structures import TermPrior


class Loadings:
    """The linear maps, to be filled with ones where an entry of θ counts.

    Attributes
    ----------
    amplitudes, own, weights : (P, Q, L) arrays
        Of a, log η and w.
    scales : (P, Q, D) array
        Of log λ.
    noise : (P, n) array
        Of the log noise variances that are learned.
    with_own : (Q, L) array of bool
        Whether there is an η; it is zero otherwise.
    related : (Q, L) array of bool
        Whether w is not learned, but the relation of the source: 1, -1, or 0 for a source that has as much of the term
        to itself as others share.
    """

    def __init__(self, size: int, n_terms: int, n_sources: int, dim: int, n_noise: int) -> None:
        self.shape = (n_terms, n_sources)
        self.amplitudes, self.own, self.weights = (np.zeros((size, *self.shape)) for _ in range(3))
        self.scales, self.noise = np.zeros((size, n_terms, dim)), np.zeros((size, n_noise))
        self.with_own, self.related = np.zeros(self.shape, dtype=bool), np.zeros(self.shape, dtype=bool)

    @cached_property
    def map(self) -> Array:
        """All of them side by side; what is an exponent comes first."""
        parts = (self.amplitudes, self.own, self.scales, self.noise, self.weights)
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)

    def at(self, Theta: Array, relations: Array) -> LoadingsAt:
        """For vectors Θ and relations (K, L) or (1, L)."""
        K, (Q, L), n = len(Theta), self.shape, self.with_own.size
        Z = Theta @ self.map
        E = np.exp(Z[:, :-n])
        A, w = E[:, :n].reshape(K, Q, L), Z[:, -n:].reshape(K, Q, L)
        own = A * A * E[:, n : 2 * n].reshape(K, Q, L) * self.with_own
        first_noise = E.shape[1] - self.noise.shape[1]
        rest = own
        if self.related.any():
            w = w + relations[:, None] * self.related
            rest = own + A * A * (self.related & (relations == 0)[:, None])
        scales = E[:, 2 * n : first_noise].reshape(K * Q, self.scales.shape[2])
        return LoadingsAt(self.map, A, A * w, own, rest, scales, E[:, first_noise:])


class LoadingsAt(NamedTuple):
    """What is made of K vectors θ."""

    map: Array
    A: Array  # (K, Q, L)
    w: Array  # A w, (K, Q, L)
    own: Array  # A² η, (K, Q, L)
    rest: Array  # all that a source does not share: A² η, or A² more if it has all of a term to itself, (K, Q, L)
    scales: Array  # λ of each θ and term, (K Q, D)
    noise: Array  # (K, n)

    def B(self) -> Array:
        """B of each term, shape (K, Q, L, L)."""
        B = self.w[..., :, None] * self.w[..., None, :]
        _diagonal(B)[...] += self.rest
        return B

    def variances(self) -> Array:
        """The variance of each source by all terms, shape (K, L)."""
        return np.asarray((self.w**2 + self.rest).sum(axis=1))

    def gradient(self, by_B: Array, by_log_scales: Array, by_log_noise: Array) -> Array:
        """The gradient in θ, shape (K, P), given that in the upper triangles of B, in log λ and in the log noise."""
        K = len(by_B)
        both = by_B + by_B.swapaxes(-1, -2)
        by_w, by_rest = (both @ self.w[..., None])[..., 0], 0.5 * _diagonal(both)
        parts = (
            by_w * self.w + 2 * by_rest * self.rest,
            by_rest * self.own,
            by_log_scales,
            by_log_noise,
            by_w * self.A,
        )
        return np.concatenate([part.reshape(K, -1) for part in parts], axis=1) @ self.map.T


def _diagonal(B: Array) -> Array:
    """Of each matrix, as a view."""
    return B.reshape(*B.shape[:2], -1)[:, :, :: B.shape[-1] + 1]


class _Block(NamedTuple):
    """Some entries of θ, with the same prior."""

    prior: Prior
    at: slice
    sources: tuple[int, ...] | None  # one for each entry, or none of them


class _Place(NamedTuple):
    """Where a term has its hyperparameters."""

    term: TermPrior
    members: IntArray  # the sources that have a part in it
    weights: slice
    own: slice
    gain: slice
    scales: slice
