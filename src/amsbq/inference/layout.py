"""The vector θ of hyperparameters: its entries, their priors, and the covariances that it represents.

Notation:  Q terms, L sources, D inputs, θ (P,), Θ (K, P) for K vectors at once

    λ = ℓ / width                             lengthscales of a term: one for each input, or a common one
    B_q = (A w)(A w)ᵀ ∘ C_q + A² diag(η)      what the sources share, and what is specific to each; C_q is fixed
    A = diag(e^{a_l + γ_q / 2 + Σ_f E_f t_f}) amplitudes of the sources, gain of the term, and factors with effects E

θ consists of a; then w, log η, γ and log λ of each term; then t; then the learned log noise variances. Sources with
knobs h_lk have one log noise variance, log σ², and a power q_k of each knob: log σ_l² = log σ² + Σ_k q_k log h_lk.
Exponents and w are linear in θ: Θ times one matrix, and so is the chain rule back to θ.

If weights w are not learned, sources have a relation (L,) to the primary one: 1 if a source shares the term, -1 if
it shares it with the opposite sign, 0 if it has an independent copy of the term.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..common.validation import Array, IntArray
from .priors import REFINEMENT, Prior, stacked
from .structures import ModelPrior, TermPrior

#: factors on the prior mode of the first lengthscale from which the search for modes starts
STARTING_SCALES = (0.15, 0.25, 0.4, 0.6, 1.0, 1.6)
#: reduction of log η in the starts: sources nearly agree there
STARTING_AGREEMENT = 6.0


class _Block(NamedTuple):
    """Entries of θ with the same prior."""

    prior: Prior
    at: slice
    sources: tuple[int, ...] | None  # the source of each entry; None if entries do not belong to sources
    by_input: bool = False  # whether there is an entry for each input

    @property
    def size(self) -> int:
        return int(self.at.stop - self.at.start)


class _TermBlocks(NamedTuple):
    """Slices of θ with the hyperparameters of a term."""

    term: TermPrior
    members: IntArray  # the sources that have the term
    weights: slice
    own: slice
    gain: slice
    scales: slice


@dataclass(frozen=True)
class _Maps:
    """Linear maps from θ: one where an entry of θ contributes, zero elsewhere."""

    amplitudes: Array  # (P, Q, L), of a
    own: Array  # (P, Q, L), of log η
    weights: Array  # (P, Q, L), of w
    scales: Array  # (P, Q, D), of log λ
    noise: Array  # (P, n), of the learned log noise variances
    with_own: Array  # bool: whether η is learned; otherwise it is zero
    related: Array  # bool: whether w is the source's relation, not learned


class Layout:
    """The entries of θ for a model structure, a number of sources and a number of inputs.

    Attributes
    ----------
    size : int
        The number of entries, P.
    bounds : (P, 2) array
        A box far beyond the prior, inside which numbers do not overflow; ``low`` and ``high`` are its columns.
    prior_spread : (P,) array
        The scale of the prior of each entry.
    """

    def __init__(self, prior: ModelPrior, n_sources: int, dim: int, learned_noise: IntArray) -> None:
        self.prior, self.n_sources, self.dim, self.learned_noise = prior, n_sources, dim, learned_noise
        self._blocks: list[_Block] = []
        everyone = tuple(range(n_sources))
        self._amplitudes = self._add(prior.amplitude, everyone)
        self._terms: list[_TermBlocks] = []
        for term in prior.terms:
            members = everyone if term.among is None else term.among
            weights = self._add(term.weights if term.shared else None, members)
            own = self._add(term.own, members)
            gain = self._add(term.gain, None, 1)
            if term.scales_of is None:
                scales = self._add(term.scale, None, dim if term.per_dimension else 1, term.per_dimension)
            else:
                scales = self._terms[term.scales_of].scales
            self._terms.append(_TermBlocks(term, np.array(members), weights, own, gain, scales))
        self._factors = [self._add(factor.prior, None, 1) for factor in prior.factors]
        pairs = list(zip(prior.factors, self._factors, strict=True))
        #: the entry of θ with the exponent of each knob
        self.exponents = {factor.knob: at.start for factor, at in pairs if factor.knob is not None}
        knobs = prior.noise_knobs
        levels = [source for source in learned_noise.tolist() if knobs is not None and source in prior.alike]
        self._levels = levels if len(levels) > 1 else []
        self._log_noise = self._add(prior.log_noise, tuple(s for s in learned_noise.tolist() if s not in self._levels))
        self._level_noise = self._add(prior.log_noise, None, int(bool(self._levels)))
        logs = np.zeros((0, 1)) if knobs is None or not self._levels else knobs[:, self._levels]
        self._noise_powers = [(k, self._add(REFINEMENT.noise, None, 1)) for k in np.flatnonzero(np.ptp(logs, axis=1))]
        self.size = self._blocks[-1].at.stop
        self._priors = stacked([block.prior for block in self._blocks for _ in range(block.size)])
        self.bounds = np.concatenate([np.tile(block.prior.box, (block.size, 1)) for block in self._blocks])
        self.low, self.high = self.bounds.T.copy()
        self.prior_spread = np.concatenate([np.full(block.size, block.prior.spread) for block in self._blocks])
        self._maps = self._make_maps()
        ones = np.ones((n_sources, n_sources))
        #: C of each term; None if all of them are ones
        self._correlations = (
            None
            if all(term.correlation is None for term in prior.terms)
            else np.array([ones if term.correlation is None else term.correlation for term in prior.terms])
        )
        # All maps side by side; those of exponents come first.
        maps = self._maps
        parts = (maps.amplitudes, maps.own, maps.scales, maps.noise, maps.weights)
        self._map = np.concatenate([part.reshape(self.size, -1) for part in parts], axis=1)

    def _add(
        self, prior: Prior | None, sources: tuple[int, ...] | None, size: int = 0, by_input: bool = False
    ) -> slice:
        """Add a number for each of the sources, or ``size`` numbers, and return their slice; empty without a prior."""
        start = self._blocks[-1].at.stop if self._blocks else 0
        size = 0 if prior is None else len(sources) if sources is not None else size
        at = slice(start, start + size)
        if prior is not None:
            self._blocks.append(_Block(prior, at, sources, by_input))
        return at

    def _make_maps(self) -> _Maps:
        P, shape = self.size, (len(self._terms), self.n_sources)
        amplitudes, own, weights = (np.zeros((P, *shape)) for _ in range(3))
        scales, noise = np.zeros((P, shape[0], self.dim)), np.zeros((P, len(self.learned_noise)))
        with_own, related = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        everyone = np.arange(self.n_sources if self.prior.amplitude is not None else 0)
        for q, at in enumerate(self._terms):
            amplitudes[self._amplitudes.start + everyone, q, everyone] = 1.0
            amplitudes[at.gain, q] = 0.5
            if at.term.shared and at.term.weights is not None:
                weights[range(at.weights.start, at.weights.stop), q, at.members] = 1.0
            related[q, at.members] = at.term.shared and at.term.weights is None
            if at.term.own is not None:
                own[range(at.own.start, at.own.stop), q, at.members] = 1.0
                with_own[q, at.members] = True
            scales[at.scales, q] = np.eye(self.dim) if at.term.per_dimension else 1.0
        for factor, at_factor in zip(self.prior.factors, self._factors, strict=True):
            amplitudes[at_factor] = factor.effect
        together = np.isin(self.learned_noise, self._levels)
        noise[self._log_noise] = np.eye(len(self.learned_noise))[~together]
        noise[self._level_noise] = together
        for k, at_power in self._noise_powers:
            assert self.prior.noise_knobs is not None
            noise[at_power] = together * self.prior.noise_knobs[k, self.learned_noise]
        return _Maps(amplitudes, own, weights, scales, noise, with_own, related)

    def decode(self, Theta: Array, relations: Array) -> Decoded:
        """Return the parameters of covariances for vectors Θ (K, P) and relations (K, L) or (1, L)."""
        K, (Q, L), maps = len(Theta), self._maps.with_own.shape, self._maps
        n = Q * L
        Z = Theta @ self._map
        E = np.exp(Z[:, :-n])
        A, w = E[:, :n].reshape(K, Q, L), Z[:, -n:].reshape(K, Q, L)
        own = A * A * E[:, n : 2 * n].reshape(K, Q, L) * maps.with_own
        first_noise = E.shape[1] - maps.noise.shape[1]
        rest = own
        if maps.related.any():
            w = w + relations[:, None] * maps.related
            rest = own + A * A * (maps.related & (relations == 0)[:, None])
        scales = E[:, 2 * n : first_noise].reshape(K, Q, self.dim)
        return Decoded(self._map, A, A * w, own, rest, scales, E[:, first_noise:], self._correlations)

    def add_log_prior(self, Theta: Array, values: Array, gradients: Array) -> None:
        """Add the log prior density of vectors Θ to values (K,), and its gradient to gradients (K, P), in place."""
        for columns, prior in self._priors:
            value, gradient = prior.log_density_and_grad(Theta[:, columns])
            values += value
            gradients[:, columns] += gradient

    def from_uniform(self, U: Array) -> Array:
        """Return the prior quantiles of θ at probabilities U (K, P): draws from the prior if U is uniform."""
        return np.concatenate([block.prior.quantile(U[:, block.at]) for block in self._blocks], axis=1)

    def centre(self) -> Array:
        """Return θ at the centre of the prior, shape (P,)."""
        return np.concatenate([np.full(block.size, block.prior.centre) for block in self._blocks])

    def starts(self) -> Array:
        """Return starts of the search for modes, shape (n, P): on several scales, with sources that nearly agree."""
        out = []
        for scale in STARTING_SCALES:
            theta = self.centre()
            for at in self._terms:
                theta[at.own] -= STARTING_AGREEMENT
            theta[self._terms[0].scales] += np.log(scale)
            for factor, at_factor in zip(self.prior.factors, self._factors, strict=True):
                theta[at_factor] += factor.start
            out.append(theta)
        return np.array(out)

    def swapped_with_primary(self, theta: Array) -> Array:
        """Return θ with η of the primary source and of each secondary one exchanged, shape (L - 1, P).

        Only differences between sources show what is specific to each, so these vectors are often as probable as θ.
        """
        out = np.tile(theta, (self.n_sources - 1, 1))
        for at in self._terms:
            entry = dict(zip(at.members.tolist(), range(at.own.start, at.own.stop), strict=False))
            for source in range(1, self.n_sources):
                if 0 in entry and source in entry:
                    out[source - 1, [entry[0], entry[source]]] = theta[[entry[source], entry[0]]]
        return out

    def permutation(self, sources: IntArray, inputs: IntArray) -> IntArray:
        """Return the columns (P,) that permute random numbers for θ when sources and inputs are relabelled.

        The ranks of the sources (L,) and of the inputs (D,) must not depend on how they are numbered.
        """
        columns = np.arange(self.size)
        for block in self._blocks:
            rank = inputs if block.by_input else None if block.sources is None else sources[list(block.sources)]
            if rank is not None:
                columns[block.at] = columns[block.at][np.argsort(np.argsort(rank))]
        return columns


class Decoded(NamedTuple):
    """The parameters of covariances, for K vectors θ."""

    map: Array
    A: Array  # (K, Q, L)
    w: Array  # A w, (K, Q, L)
    own: Array  # A² η, (K, Q, L)
    rest: Array  # variance that a source does not share: A² η, plus A² for an independent copy of a term, (K, Q, L)
    scales: Array  # λ, (K, Q, D)
    noise: Array  # learned noise variances, (K, n)
    correlations: Array | None  # C, (Q, L, L); None if all are ones

    def B(self) -> Array:
        """Return B of each term, shape (K, Q, L, L)."""
        B = self.w[..., :, None] * self.w[..., None, :]
        if self.correlations is not None:
            B *= self.correlations
        _diagonal(B)[...] += self.rest
        return B

    def variances(self) -> Array:
        """Return the variance of each source, summed over terms: shape (K, L)."""
        return np.asarray((self.w**2 + self.rest).sum(axis=1))

    def gradient(self, by_B: Array, by_log_scales: Array, by_log_noise: Array) -> Array:
        """Return the gradient in θ (K, P) from those in upper triangles of B, log λ and log noise variances."""
        K = len(by_B)
        both = by_B + by_B.swapaxes(-1, -2)
        shared = both if self.correlations is None else both * self.correlations
        by_w, by_rest = (shared @ self.w[..., None])[..., 0], 0.5 * _diagonal(both)
        parts = (
            by_w * self.w + 2 * by_rest * self.rest,
            by_rest * self.own,
            by_log_scales,
            by_log_noise,
            by_w * self.A,
        )
        return np.concatenate([part.reshape(K, -1) for part in parts], axis=1) @ self.map.T


def _diagonal(B: Array) -> Array:
    """Return the diagonal of each matrix, as a view."""
    return B.reshape(*B.shape[:2], -1)[:, :, :: B.shape[-1] + 1]
