"""Hyperparameters: from vectors θ of real numbers to models of given data, and their posterior density.

A model is a list of terms B_q ⊗ κ_q. Everything is learned in standard units, so that those of the user never matter:
lengthscales as fractions of the width of the measure, outputs of source l in units of a spread S_l around a level m_l.

Notation:  λ = ℓ / width                    lengthscales of a term, one for each input or one that is shared
           B = e^γ S A (w wᵀ + diag(η)) A S what the sources share, and what each has of its own; S = diag(S_l)
           A = diag(e^{a_l})                amplitudes, the same for every term
           θ (P,)                           a, then w, log η and log λ of each term, then the log noise variances
           Θ (K, P)                         K of them at once: their kernels are evaluated together

The density of θ is p(θ | y) ∝ p(y | θ)^power p(θ), with independent priors that do not depend on the order of the
sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ..gp import linalg
from ..gp.coregionalisation import Term
from ..gp.data import Data
from ..gp.embeddings import EmbeddingOverScales
from ..gp.kernels import Constant
from ..gp.pairs import Pairs
from ..gp.posterior import MultiSourceGP, Posterior
from ..measures.base import Measure
from ..measures.uniform import Uniform
from ..validation import Array, IntArray, read_only
from .layout import Loadings, LoadingsAt, _Block, _Place
from .priors import Prior, stacked
from .structures import ModelPrior, Noise

#: The same for every θ, and more than noise-free data need: a jitter that came and went would tear the density of θ.
FIT_JITTER = 1e-10


#: Numbers in the largest arrays: above it, vectors θ are evaluated a few at a time.
CHUNK = 1_000_000


class Parametrisation:
    """θ for a model of given data, and its posterior density.

    Parameters
    ----------
    prior : ModelPrior
    measure : Measure
    data : Data
        With no more than the known variance of each observation as its ``noise_var``.
    noise : one for each source
        The noise variance of its observations, or "learn".

    Attributes
    ----------
    power : float
        The likelihood counts to this power.

    Where weights are not learned, sources have a relation (L,): 1 if a source shares what the term describes, -1 if it
    does so with the opposite sign, 0 if it has a term like it to itself. By default all of them share it.
    """

    power = 1.0

    def __init__(self, prior: ModelPrior, measure: Measure, data: Data, noise: Sequence[Noise]) -> None:
        self.prior, self.measure, self.data = prior, measure.for_learning(), data
        L = self.n_sources = len(noise)
        self.learned = np.flatnonzero([level == "learn" for level in noise])
        self.noise = np.array([0.0 if level == "learn" else level for level in noise], dtype=float)
        self.levels, self.spreads = standard_units(data, L, common=prior.amplitude is not None)
        if prior.spread is not None:
            self.spreads = np.full(L, prior.spread)

        self._blocks: list[_Block] = []
        everyone = tuple(range(L))
        self._amplitudes = self._add(prior.amplitude, everyone)
        self._terms = []
        for term in prior.terms:
            members = everyone if term.among is None else term.among
            weights = self._add(term.weights if term.shared else None, members)
            own = self._add(term.own, members)
            gain = self._add(term.gain, None, 1)
            scales = self._add(term.scale, None, measure.dim if term.per_dimension else 1)
            self._terms.append(_Place(term, np.array(members), weights, own, gain, scales))
        self._log_noise = self._add(prior.log_noise, tuple(self.learned.tolist()))
        self.size = self._blocks[-1].at.stop
        self._priors = stacked([block.prior for block in self._blocks for _ in range(_length(block.at))])
        self._loadings = self._made_of()
        #: where θ may be, shape (P, 2)
        self.bounds = np.concatenate([np.tile(block.prior.box, (_length(block.at), 1)) for block in self._blocks])
        self._low, self._high = self.bounds.T.copy()
        #: of the prior of each entry of θ, shape (P,)
        self.prior_spread = np.concatenate([np.full(_length(block.at), block.prior.spread) for block in self._blocks])
        self._prepare()
        self._columns = self._canonical()

    def _add(self, prior: Prior | None, sources: tuple[int, ...] | None, size: int = 0) -> slice:
        """Room in θ for one number for each of the sources, or for ``size`` of them; none without a prior."""
        start = self._blocks[-1].at.stop if self._blocks else 0
        size = 0 if prior is None else len(sources) if sources is not None else size
        at = slice(start, start + size)
        if prior is not None:
            self._blocks.append(_Block(prior, at, sources))
        return at

    def _made_of(self) -> Loadings:
        """Which entries of θ covariances are made of."""
        out = Loadings(self.size, len(self._terms), self.n_sources, self.measure.dim, len(self.learned))
        everyone = np.arange(self.n_sources if self.prior.amplitude is not None else 0)
        for q, at in enumerate(self._terms):
            out.amplitudes[self._amplitudes.start + everyone, q, everyone] = 1.0
            out.amplitudes[at.gain, q] = 0.5
            if at.term.shared and at.term.weights is not None:
                out.weights[range(at.weights.start, at.weights.stop), q, at.members] = 1.0
            out.related[q, at.members] = at.term.shared and at.term.weights is None
            if at.term.own is not None:
                out.own[range(at.own.start, at.own.stop), q, at.members] = 1.0
                out.with_own[q, at.members] = True
            out.scales[at.scales, q] = np.eye(self.measure.dim) if at.term.per_dimension else 1.0
        out.noise[self._log_noise] = np.eye(len(self.learned))
        return out

    def _prepare(self) -> None:
        """What does not depend on θ: residuals, differences of inputs, the part of the covariance that is fixed."""
        s, X, spreads = self.data.s, self.data.X, self.spreads[self.data.s]
        self._residuals = self.standardised(self.data).y
        self._of_source = np.eye(self.n_sources)[s]  # (N, L)
        self._pairs = Pairs(s)
        steps = self._pairs.steps(X)
        steps /= self.measure.width[:, None]
        np.round(steps, 12, out=steps)
        self._features = self.prior.kernel.features(steps)
        level = self.prior.level or 0.0
        self._fixed = self._pairs.of_sources(level**2 * np.eye(self.n_sources)[None])[0]
        with np.errstate(over="ignore"):  # then no hyperparameters fit, and that is said
            self._fixed[self._pairs.diagonal] += (self.noise[s] + self.data.noise_var) / spreads / spreads
        self._jittered = np.ones_like(self._fixed)
        self._jittered[self._pairs.diagonal] += FIT_JITTER
        self._counted = self._jittered.copy()
        self._counted[self._pairs.diagonal] *= 0.5

    def tempered(self, power: float) -> Parametrisation:
        """The same, but with a likelihood that counts to the given power: the posterior of one who doubts the model."""
        other = copy(self)
        other.power = power
        return other

    def given(self, data: Data) -> Parametrisation:
        """The same, in the same standard units, but for other data."""
        other = copy(self)
        other.data = data
        other._prepare()
        return other

    @property
    def relations_are_open(self) -> bool:
        """Whether there are terms that sources share with weights which are not learned."""
        return self.n_sources > 1 and any(term.shared and term.weights is None for term in self.prior.terms)

    def start(self) -> Array:
        """θ at the centre of the prior."""
        return np.concatenate([np.full(_length(block.at), block.prior.centre) for block in self._blocks])

    def guesses(self) -> Array:
        """θ at the centre of the prior, but on many scales, and as if the sources agreed to the last digit."""
        out = []
        for factor in (0.15, 0.25, 0.4, 0.6, 1.0, 1.6):
            theta = self.start()
            for at in self._terms:
                theta[at.own] -= 6.0
            theta[self._terms[0].scales] += np.log(factor)
            out.append(theta)
        return np.array(out)

    def mirrored(self, theta: Array) -> Array:
        """θ as if it were the primary source, and not another one, that differs from the rest: one for each other.

        What sources have of their own is seen in their differences only, so these are often as probable.
        """
        out = np.tile(theta, (self.n_sources - 1, 1))
        for at in self._terms:
            places = dict(zip(at.members.tolist(), range(at.own.start, at.own.stop), strict=False))
            for source in range(1, self.n_sources):
                if 0 in places and source in places:
                    out[source - 1, [places[0], places[source]]] = theta[[places[source], places[0]]]
        return out

    def prior_draws(self, n: int, seed: int) -> Array:
        """n draws of θ from the prior, shape (n, P), spread evenly."""
        u = self.even_draws(n, seed)
        return np.concatenate([block.prior.quantile(u[:, block.at]) for block in self._blocks], axis=1)

    def even_draws(self, n: int, seed: int) -> Array:
        """n points spread evenly over the unit cube, shape (n, P)."""
        return self.in_place_of_sources(_even_draws(n, self.size, seed))

    def in_place_of_sources(self, values: Array) -> Array:
        """Random numbers (n, P) for θ, those of a source moved to its place: when sources change theirs, so do they."""
        return np.asarray(values[:, self._columns])

    def gp(self, theta: Array, relation: Array | None = None, standard: bool = False) -> MultiSourceGP:
        """The model with hyperparameters θ, in the user's units or in standard ones."""
        spreads = np.ones(self.n_sources) if standard else self.spreads
        at = self._loadings.at(theta[None], self._related(relation))
        kernels = [self.prior.kernel.with_lengthscales(scales * self.measure.width) for scales in at.scales]
        terms = [Term(B * np.outer(spreads, spreads), kernel) for B, kernel in zip(at.B()[0], kernels, strict=True)]
        if self.prior.level is not None:
            terms.append(Term(np.diag((self.prior.level * spreads) ** 2), Constant()))
        noise = self.noise / self.spreads / self.spreads
        noise[self.learned] = at.noise[0]
        mean = 0.0 if standard else self.levels
        return MultiSourceGP(terms, self.measure, noise=noise * spreads * spreads, mean=mean)

    def posterior(self, theta: Array, relation: Array | None = None, standard: bool = False) -> Posterior:
        """The posterior of the sources, given the data and θ, in the user's units or in standard ones."""
        gp, data = self.gp(theta, relation, standard), self.standardised(self.data) if standard else self.data
        return gp._condition(replace(data, noise_var=data.noise_var + gp.noise[data.s]), FIT_JITTER)

    def standardised(self, data: Data) -> Data:
        """Observations in standard units."""
        unit = self.spreads[data.s]
        # rounded, so that the last digits, which depend on units, do not send the search for θ elsewhere
        y = np.round((data.y - self.levels[data.s]) / unit, 12)
        with np.errstate(over="ignore"):  # then no hyperparameters fit, and that is said
            return replace(data, y=y, noise_var=data.noise_var / unit / unit)

    def doubted_integrals(self, Theta: Array, relations: Array, shares: Array) -> tuple[Array, Array, Array]:
        """The integral of the primary source, given θ, if sources also differed on the scale of the first term.

        Parameters
        ----------
        Theta, relations : (K, P) and (K, L) arrays
        shares : (J,) array
            Variances of what each source would have of its own there, as shares of its whole variance.

        Returns
        -------
        For each θ and each share, in standard units: the mean, the standard deviation and the log likelihood (K, J).
        """
        rows = [self._doubted_integrals(Theta[at], relations[at], shares) for at in self._few_at_a_time(len(Theta))]
        means, stds, logs = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        return means, stds, logs

    def _doubted_integrals(self, Theta: Array, relations: Array, shares: Array) -> tuple[Array, Array, Array]:
        s, level = self.data.s, self.prior.level or 0.0
        primary, pairs = s == 0, self._pairs
        at = self._loadings.at(Theta, relations)
        B, whole = at.B(), at.variances()  # (K, Q, L, L) and (K, L)
        kernels = self._kernels(at)
        G = self._covariances(kernels, pairs.of_sources(B), at)
        extra = pairs.of_sources(whole[:, :, None] * np.eye(self.n_sources)) * kernels[:, 0]
        embedding = EmbeddingOverScales(self.prior.kernel, at.scales * self.measure.width, self.measure)
        mean = embedding.mean(self.data.X).reshape(*B.shape[:2], len(s))
        variance = embedding.variance.reshape(B.shape[:2])
        z = level**2 * primary + (B[:, :, 0, s] * mean).sum(axis=1)
        prior = level**2 + (B[:, :, 0, 0] * variance).sum(axis=1)
        z_extra, prior_extra = whole[:, :1] * primary * mean[:, 0], whole[:, 0] * variance[:, 0]
        means, stds, logs = (np.empty((len(Theta), len(shares))) for _ in range(3))
        for k in range(len(Theta)):
            for j, share in enumerate(shares):
                A = (G[k] + share * extra[k]) * self._jittered
                half_log_det, whitened = linalg.whiten_packed(
                    pairs.packed(A[None])[0], np.stack([self._residuals, z[k] + share * z_extra[k]], axis=1)
                )
                beta, w = whitened.T
                variance = prior[k] + share * prior_extra[k]
                stds[k, j] = np.sqrt(max(variance - w @ w, linalg.variance_floor(0) * variance))
                means[k, j], logs[k, j] = w @ beta, -0.5 * beta @ beta - half_log_det
        return means, stds, logs

    def log_posterior_and_grad(self, Theta: Array, relations: Array | None = None) -> tuple[Array, Array]:
        """power · log p(y | θ) + log p(θ), shape (K,), and its gradient (K, P); -inf where it cannot be evaluated.

        The density is that of the observations in standard units. There may be a relation between the sources for each
        θ, shape (K, L), or one for all.
        """
        return self._log_posterior(Theta, self._related(relations))

    def log_posterior(self, Theta: Array, relations: Array | None = None) -> Array:
        """The same without the gradient."""
        return self._log_posterior(Theta, self._related(relations), with_grad=False)[0]

    def _log_posterior(self, Theta: Array, relations: Array, with_grad: bool = True) -> tuple[Array, Array]:
        inside = (Theta >= self._low) & (Theta <= self._high)
        if not inside.all():
            rows = inside.all(axis=1)
            values, gradients = np.full(len(Theta), -np.inf), np.zeros_like(Theta)
            if rows.any():
                of = relations if len(relations) == 1 else relations[rows]
                values[rows], gradients[rows] = self._log_posterior(Theta[rows], of, with_grad)
            return values, gradients
        parts = [
            self._log_likelihood(Theta[at], relations if len(relations) == 1 else relations[at], with_grad)
            for at in self._few_at_a_time(len(Theta))
        ]
        values, gradients = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
        values *= self.power
        gradients *= self.power
        for columns, prior in self._priors:
            value, gradient = prior.log_density_and_grad(Theta[:, columns])
            values += value
            gradients[:, columns] += gradient
        if not np.isfinite(values.sum()):
            gradients[~np.isfinite(values)] = 0.0
        return values, gradients

    def _related(self, relations: Array | None) -> Array:
        """Relations as (K, L) or (1, L)."""
        relations = np.ones(self.n_sources) if relations is None else relations
        return relations if relations.ndim == 2 else relations[None]

    def _few_at_a_time(self, n: int) -> Iterator[slice]:
        """Of n vectors θ: as many as CHUNK allows."""
        step = max(CHUNK // max(len(self._terms) * len(self._fixed), 1), 1)
        return (slice(first, first + step) for first in range(0, n, step))

    def _log_likelihood(self, Theta: Array, relations: Array, with_grad: bool) -> tuple[Array, Array]:
        """And its gradient, or zeros if that is not wanted."""
        pairs, at = self._pairs, self._loadings.at(Theta, relations)
        weights, kernels = pairs.of_sources(at.B()), self._kernels(at)
        G = self._covariances(kernels, weights, at)
        G *= self._jittered
        F = pairs.packed(G)
        if not with_grad:
            return linalg.log_densities_packed(F, self._residuals), np.zeros_like(Theta)
        values, alpha = linalg.invert_packed(F, self._residuals)
        # the derivative in each entry of G, which is there twice off the diagonal: α_i α_j - G⁻¹_ij, and half of it
        by_G = pairs.outer(alpha)
        by_G -= pairs.unpacked(F)
        by_G *= self._counted
        kernels *= by_G[:, None]
        by_B = pairs.sums(kernels, self.n_sources)
        kernels *= weights
        flat = kernels.reshape(len(at.scales), len(self._fixed))
        by_scales = self.prior.kernel.contract_over_scales(self._features, at.scales, flat)
        by_noise = at.noise
        if len(self.learned):
            by_noise = by_noise * (by_G[:, pairs.diagonal] @ self._of_source)[:, self.learned]
        return values, at.gradient(by_B, by_scales, by_noise)

    def _kernels(self, at: LoadingsAt) -> Array:
        """κ of the pairs, (K, Q, M)."""
        kernels = self.prior.kernel.over_scales(self._features, at.scales)
        return kernels.reshape(*at.A.shape[:2], len(self._fixed))

    def _covariances(self, kernels: Array, weights: Array, at: LoadingsAt) -> Array:
        """The covariance of the observations (K, M), without jitter, given κ and B of the pairs (K, Q, M)."""
        G = kernels[:, 0] * weights[:, 0]
        for q in range(1, len(self._terms)):
            G += kernels[:, q] * weights[:, q]
        G += self._fixed
        if len(self.learned):
            noise = np.zeros((len(G), self.n_sources))
            noise[:, self.learned] = at.noise
            G[:, self._pairs.diagonal] += noise[:, self.data.s]
        return G

    def _canonical(self) -> IntArray:
        """A column for each entry of θ that goes with its source, whatever the number of that source is."""
        groups = [np.abs(self._residuals[self.data.s == source]) for source in range(self.n_sources)]
        order = sorted(range(1, self.n_sources), key=lambda source: (len(groups[source]), *_moments(groups[source])))
        rank = np.argsort([0, *order])
        columns = np.arange(self.size)
        for block in self._blocks:
            if block.sources is not None:
                within = np.argsort(np.argsort(rank[list(block.sources)]))
                columns[block.at] = columns[block.at][within]
        return columns


@lru_cache(maxsize=64)
def _even_draws(n: int, dim: int, seed: int) -> Array:
    """n points spread evenly over the unit cube, but not too near to its faces."""
    return read_only(np.clip(Uniform(np.zeros(dim), 1.0).sobol(n, seed), 1e-4, 1 - 1e-4))


def standard_units(data: Data, n_sources: int, common: bool) -> tuple[Array, Array]:
    """A level and a spread for each source: the average of its observations, and their deviation from it.

    What a source lacks it takes from the others; the spread may be one that is common to all.
    """
    unit = np.abs(data.y).max(initial=0.0) or 1.0  # squares of huge or tiny numbers would not be finite
    scaled = data.y / unit
    groups = [scaled[data.s == source] for source in range(n_sources)]
    overall = scaled.mean() if len(scaled) else 0.0
    levels = np.array([y.mean() if len(y) else overall for y in groups])
    squares = [np.mean((y - y.mean()) ** 2) for y in groups if len(y) > 1]
    pooled = np.sqrt(np.mean(squares)) if squares else 0.0
    pooled = pooled or np.abs(scaled).max(initial=0.0) or 1.0
    spreads = np.array([np.std(y, ddof=1) if len(y) > 2 and not common else pooled for y in groups])
    return unit * levels, unit * np.where(spreads > 1e-12 * pooled, spreads, pooled)


def _moments(values: Array) -> tuple[float, float]:
    return float(np.sum(values)), float(np.sum(values**3))


def _length(part: slice) -> int:
    return int(part.stop - part.start)
