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

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from . import linalg
from .checks import Array, IntArray, non_negative_number
from .coregion import Term
from .data import Data
from .kernels import Constant, ProductKernel
from .measures import Measure, Uniform
from .model import MultiSourceGP, Posterior
from .priors import LogGamma, Normal, Prior, StudentT

Noise = float | Literal["learn"]


#: The same for every θ, and more than noise-free data need: a jitter that came and went would tear the density of θ.
FIT_JITTER = 1e-10
#: Numbers in the largest arrays: above it, vectors θ are evaluated a few at a time.
CHUNK = 4_000_000


def noise_level(value: Any) -> Noise:
    """The noise of a source: a variance, or "learn"."""
    if isinstance(value, str):
        if value != "learn":
            raise ValueError(f"noise must be a variance or 'learn', got {value!r}")
        return "learn"
    return non_negative_number(value, "noise")


@dataclass(frozen=True)
class TermPrior:
    """What is believed of one term before the data."""

    kernel: Callable[[Array], ProductKernel]  #: of its lengthscales
    scale: LogGamma  #: of log λ
    per_dimension: bool = True  #: a lengthscale for each input, or one for all
    weights: Normal | None = None  #: of each w_l; None makes them 1
    shared: bool = True  #: whether there is a w at all
    own: Normal | None = None  #: of each log η_l; None makes η zero
    gain: Normal | None = None  #: of γ, the log of its variance beside that of other terms; None makes it 0
    among: tuple[int, ...] | None = None  #: the sources that have a part in it; None is all of them


@dataclass(frozen=True)
class ModelPrior:
    """The terms of a model, and how the scale, the level and the noise of each source are treated."""

    terms: tuple[TermPrior, ...]
    #: of each a_l, around a spread common to all sources; None takes the scale of each from its own observations
    amplitude: StudentT | None = None
    #: standard deviation of an unknown constant for each source, in units of its spread; None fixes it to the average
    level: float | None = None
    #: of the log noise variance of a source in units of its spread, where it is learned
    log_noise: Normal = field(default_factory=lambda: Normal(float(np.log(1e-4)), 3.0))
    #: the unit of the outputs of all sources, if it need not be taken from the data
    spread: float | None = None


@dataclass(frozen=True)
class _Block:
    """Some entries of θ, with the same prior."""

    prior: Prior
    at: slice
    sources: tuple[int, ...] | None  # one for each entry, or none of them


@dataclass(frozen=True)
class _Place:
    """Where a term has its hyperparameters."""

    term: TermPrior
    profile: ProductKernel  # its kernel, whatever its lengthscales
    members: IntArray  # the sources that have a part in it
    weights: slice
    own: slice
    gain: slice
    scales: slice


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
    relation : one for each source
        Where weights are not learned: 1 if a source shares what the term describes, -1 if it does so with the opposite
        sign, 0 if it has a term like it to itself.
    power : float
        The likelihood counts to this power.
    """

    power = 1.0

    def __init__(self, prior: ModelPrior, measure: Measure, data: Data, noise: Sequence[Noise]) -> None:
        self.prior, self.measure, self.data = prior, measure.for_learning(), data
        L = self.n_sources = len(noise)
        self.relation: tuple[int, ...] = (1,) * L
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
            self._terms.append(_Place(term, term.kernel(np.ones(1)), np.array(members), weights, own, gain, scales))
        self._log_noise = self._add(prior.log_noise, tuple(self.learned.tolist()))
        self.size = self._blocks[-1].at.stop
        #: where θ may be, shape (P, 2)
        self.bounds = np.concatenate([np.tile(block.prior.box, (_length(block.at), 1)) for block in self._blocks])
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

    def _prepare(self) -> None:
        """What does not depend on θ: residuals, differences of inputs, the part of the covariance that is fixed."""
        s, X, spreads = self.data.s, self.data.X, self.spreads[self.data.s]
        # rounded, so that the last digits, which depend on units, do not send the search for θ elsewhere
        self._residuals = np.round((self.data.y - self.levels[s]) / spreads, 12)
        steps = np.round((X[:, None, :] - X[None, :, :]) / self.measure.width, 12)
        self._steps = np.ascontiguousarray(steps.transpose(2, 0, 1))  # (D, N, N)
        self._of_source = np.eye(self.n_sources)[s]  # (N, L)
        level = self.prior.level or 0.0
        self._fixed = level**2 * self._of_source @ self._of_source.T
        self._fixed[np.diag_indices(len(s))] += (self.noise[s] + self.data.noise_var) / spreads / spreads

    def related(self, relation: Sequence[int]) -> Parametrisation:
        """The same, but with another relation between the sources."""
        other = copy(self)
        other.relation = tuple(relation)
        return other

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

    def standardised(self) -> Parametrisation:
        """The same, but in standard units of the outputs: posteriors do not depend on those of the user."""
        other, unit = copy(self), self.spreads[self.data.s]
        other.levels, other.spreads = np.zeros(self.n_sources), np.ones(self.n_sources)
        other.data = replace(self.data, y=self._residuals, noise_var=self.data.noise_var / unit / unit)
        other.noise = self.noise / self.spreads / self.spreads
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
        u = Uniform(np.zeros(self.size), 1.0).sobol(n, seed)
        return self.in_place_of_sources(np.clip(u, 1e-4, 1 - 1e-4))

    def in_place_of_sources(self, values: Array) -> Array:
        """Random numbers (n, P) for θ, those of a source moved to its place: when sources change theirs, so do they."""
        return np.asarray(values[:, self._columns])

    def gp(self, theta: Array) -> MultiSourceGP:
        """The model with hyperparameters θ, in the user's units."""
        units = np.outer(self.spreads, self.spreads)
        terms = [
            Term(self._B(at, theta[None])[0] * units, at.term.kernel(np.exp(theta[at.scales]) * self.measure.width))
            for at in self._terms
        ]
        if self.prior.level is not None:
            terms.append(Term(np.diag((self.prior.level * self.spreads) ** 2), Constant()))
        noise = self.noise.copy()
        noise[self.learned] = self.spreads[self.learned] ** 2 * np.exp(theta[self._log_noise])
        return MultiSourceGP(terms, self.measure, noise=noise, mean=self.levels)

    def posterior(self, theta: Array) -> Posterior:
        """The posterior of the sources, given the data and θ."""
        gp = self.gp(theta)
        return gp._condition(replace(self.data, noise_var=self.data.noise_var + gp.noise[self.data.s]), FIT_JITTER)

    def doubted_integral(self, theta: Array, shares: Array) -> tuple[float, Array, Array]:
        """The integral of the primary source, given θ, if sources also differed on the scale of the first term.

        Parameters
        ----------
        shares : (J,) array
            Variances of what each source would have of its own there, as shares of its whole variance.

        Returns
        -------
        The mean without any of it, and for each share the standard deviation and the log likelihood.
        """
        posterior, data = self.posterior(theta), self.data
        gp = posterior.gp
        term, embedding = gp.terms[0], gp.prior.embeddings[0]
        whole = np.sum([np.diagonal(term.B) for term in gp.terms[: len(self._terms)]], axis=0)
        own = whole[data.s]
        G = gp.prior.cov(data.s, data.X, data.s, data.X) + np.diag(posterior._data.noise_var)
        extra = own[:, None] * (data.s[:, None] == data.s) * term.kernel(data.X, data.X)
        r, z = data.y - gp.mean[data.s], gp.prior.integral_cov(0, data.s, data.X)
        z_extra = whole[0] * (data.s == 0) * embedding.mean(data.X)
        prior, prior_extra = gp.prior.integral_variance(0), whole[0] * embedding.variance
        stds, logs = np.empty(len(shares)), np.empty(len(shares))
        for j, share in enumerate(shares):
            covariance = G + share * extra
            C, _ = linalg.factorise(covariance, np.diagonal(covariance), FIT_JITTER)
            beta, w = linalg.solve_lower(C, np.stack([r, z + share * z_extra], axis=1)).T
            variance = prior + share * prior_extra
            stds[j] = np.sqrt(max(variance - w @ w, linalg.variance_floor(0) * variance))
            logs[j] = -0.5 * beta @ beta - np.log(np.diagonal(C)).sum()
        return posterior.integral()[0], stds, logs

    def log_posterior_and_grad(self, Theta: Array) -> tuple[Array, Array]:
        """power · log p(y | θ) + log p(θ), shape (K,), and its gradient (K, P); -inf where it cannot be evaluated.

        The density is that of the observations in standard units.
        """
        values, gradients = np.full(len(Theta), -np.inf), np.zeros_like(Theta)
        low, high = self.bounds.T
        inside = np.flatnonzero(((Theta >= low) & (Theta <= high)).all(axis=1))
        at_a_time = max(CHUNK // max(len(self.data.y), 1) ** 2, 1)
        for first in range(0, len(inside), at_a_time):
            rows = inside[first : first + at_a_time]
            value, gradient = self._log_likelihood_and_grad(Theta[rows])
            values[rows], gradients[rows] = self.power * value, self.power * gradient
        for block in self._blocks:
            value, gradient = block.prior.log_density_and_grad(Theta[:, block.at])
            values += value
            gradients[:, block.at] += gradient
        gradients[~np.isfinite(values)] = 0.0
        return values, gradients

    def _log_likelihood_and_grad(self, Theta: Array) -> tuple[Array, Array]:
        s, n = self.data.s, np.arange(len(self.data.s))
        G = np.tile(self._fixed, (len(Theta), 1, 1))
        noise = np.zeros((len(Theta), self.n_sources))
        noise[:, self.learned] = np.exp(Theta[:, self._log_noise])
        G[:, n, n] += noise[:, s]
        kernels, covariances = [], []
        for at in self._terms:
            kernels.append(at.profile.over_scales(self._steps, self._lengthscales(at, Theta)))
            covariances.append(self._B(at, Theta)[:, s[:, None], s] * kernels[-1])
            G += covariances[-1]
        G[:, n, n] *= 1 + FIT_JITTER

        values, by_G = np.full(len(Theta), -np.inf), np.zeros_like(G)
        for k in range(len(Theta)):
            found = linalg.gaussian_log_density_and_grad(G[k], self._residuals)
            if found is not None:
                values[k], by_G[k] = found
        by_G[:, n, n] *= 1 + FIT_JITTER

        gradient = np.zeros_like(Theta)
        gradient[:, self._log_noise] = (noise * (by_G[:, n, n] @ self._of_source))[:, self.learned]
        for at, kernel, covariance in zip(self._terms, kernels, covariances, strict=True):
            self._add_gradient_of_B(at, Theta, self._of_source.T @ (by_G * kernel) @ self._of_source, gradient)
            lengthscales = self._lengthscales(at, Theta)
            by_scale = at.profile.contract_over_scales(self._steps, lengthscales, by_G * covariance)
            gradient[:, at.scales] = by_scale if at.term.per_dimension else by_scale.sum(axis=1, keepdims=True)
        return values, gradient

    def _lengthscales(self, at: _Place, Theta: Array) -> Array:
        return np.broadcast_to(np.exp(Theta[:, at.scales]), (len(Theta), self.measure.dim))

    def _weights(self, at: _Place, Theta: Array) -> tuple[Array, Array, Array, Array]:
        """A w, A, A² η of a term, and A² for sources that have all of it to themselves; all (K, L)."""
        amplitude = np.ones((len(Theta), self.n_sources))
        if self.prior.amplitude is not None:
            amplitude = np.exp(Theta[:, self._amplitudes])
        amplitude = amplitude * np.exp(0.5 * Theta[:, at.gain].sum(axis=1, keepdims=True))
        w, own, alone = (np.zeros_like(amplitude) for _ in range(3))
        if at.term.shared and at.term.weights is None:
            w[:, at.members] = np.array(self.relation)[at.members]
            alone[:, at.members] = w[:, at.members] == 0
        elif at.term.shared:
            w[:, at.members] = Theta[:, at.weights]
        if at.term.own is not None:
            own[:, at.members] = np.exp(Theta[:, at.own])
        return amplitude * w, amplitude, amplitude**2 * own, amplitude**2 * alone

    def _B(self, at: _Place, Theta: Array) -> Array:
        """B of a term in standard units, shape (K, L, L)."""
        w, _, own, alone = self._weights(at, Theta)
        B = w[:, :, None] * w[:, None, :]
        sources = np.arange(self.n_sources)
        B[:, sources, sources] += own + alone
        return B

    def _add_gradient_of_B(self, at: _Place, Theta: Array, by_B: Array, gradient: Array) -> None:
        """Add the gradient in w, log η and a, given that in B (K, L, L)."""
        w, amplitude, own, alone = self._weights(at, Theta)
        by_B = 0.5 * (by_B + by_B.transpose(0, 2, 1))
        by_w, diagonal = 2 * np.einsum("kij,kj->ki", by_B, w), np.diagonal(by_B, axis1=1, axis2=2)
        gradient[:, at.weights] = (by_w * amplitude)[:, at.members[: _length(at.weights)]]
        gradient[:, at.own] = (diagonal * own)[:, at.members[: _length(at.own)]]
        by_amplitude = by_w * w + 2 * diagonal * (own + alone)
        gradient[:, at.gain] = 0.5 * by_amplitude.sum(axis=1, keepdims=True)[:, : _length(at.gain)]
        if self.prior.amplitude is not None:
            gradient[:, self._amplitudes] += by_amplitude

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
