"""Hyperparameters: from a vector θ of real numbers to a `MultiSourceGP`, and their prior density.

A model is a list of terms B_q ⊗ κ_q. Everything is learned in standard units, so that those of the user never matter:
lengthscales as fractions of the width of the measure, outputs of source l in units of their spread S_l around m_l.

Notation:  λ = ℓ / width                 lengthscale of a term, D of them or one that is shared
           B = S (w wᵀ + diag(η)) S      what the sources share, and what each has of its own; S = diag(S_l)
           θ                             for each term w, log η and log λ; then the log noise variances

Priors, all independent: w_l and log η_l normal, λ gamma. None depends on the order of the sources.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from scipy.special import gammaln

from .checks import Array
from .coregion import Term
from .data import Data
from .kernels import RBF, Constant, Matern, ProductKernel
from .measures import Measure
from .model import EvidenceGradient, MultiSourceGP, Posterior

Noise = float | Literal["learn"]

#: The same for every θ, and more than noise-free data need: a jitter that came and went would tear the density of θ.
FIT_JITTER = 1e-10


@dataclass(frozen=True)
class TermPrior:
    """What is believed of one term before the data."""

    kernel: Callable[[Array], ProductKernel]  #: of its lengthscales
    fraction: float  #: the mode of λ
    shape: float = 3.0  #: of the gamma distribution of λ; larger is surer
    per_dimension: bool = True  #: a lengthscale for each input, or one for all
    shared: float = 1.0  #: mean of w_l: sources stand in for each other, and are expected to rise and fall together
    shared_spread: float = 0.5  #: its standard deviation
    log_own: float = -5.0  #: mean of log η_l
    log_own_spread: float = 3.0  #: its standard deviation: sources may be all but perfectly correlated, or not at all

    def log_density_of_lengthscales(self, log_fractions: Array) -> tuple[float, Array]:
        """log p(log λ), and its gradient: a gamma density of λ with its mode where it should be, times λ."""
        scale = self.fraction / (self.shape - 1)
        ratio = np.exp(log_fractions) / scale
        log_density = self.shape * np.log(ratio) - ratio - gammaln(self.shape)
        return float(log_density.sum()), self.shape - ratio

    def log_density_of_B(self, w: Array, log_own: Array) -> tuple[float, Array, Array]:
        """log p(w, log η) up to a constant, and its gradients."""
        of_w, of_own = (w - self.shared) / self.shared_spread, (log_own - self.log_own) / self.log_own_spread
        value = -0.5 * float(of_w @ of_w + of_own @ of_own)
        return value, -of_w / self.shared_spread, -of_own / self.log_own_spread


@dataclass(frozen=True)
class ModelPrior:
    """The terms of a model, and how the level of each source is treated."""

    terms: tuple[TermPrior, ...]
    #: standard deviation of an unknown constant for each source, in units of its spread; None fixes it to the average
    level: float | None = None

    log_noise: float = float(np.log(1e-4))  #: mean of the log noise variance of a source, where it is learned
    log_noise_spread: float = 3.0


def icm(fraction: float = 0.2) -> ModelPrior:
    """The paper's: one term with one lengthscale, levels from the data."""
    return ModelPrior((TermPrior(RBF, fraction, per_dimension=False),))


def lmc(fractions: Sequence[float] = (0.15, 0.7), nu: float | None = None, level: float = 10.0) -> ModelPrior:
    """Terms on separate scales, a lengthscale per input, and an unknown level of each source.

    On the shortest scale the sources are expected to agree best: what tells them apart mostly varies slowly.
    """
    kernel: Callable[[Array], ProductKernel] = RBF if nu is None else partial(Matern, nu)
    own = [(-8.0, 4.0) if fraction == min(fractions) else (-2.0, 2.0) for fraction in fractions]
    terms = (
        TermPrior(kernel, fraction, log_own=mean, log_own_spread=spread)
        for fraction, (mean, spread) in zip(fractions, own, strict=True)
    )
    return ModelPrior(tuple(terms), level)


class Parametrisation:
    """θ for a model of given data.

    Parameters
    ----------
    prior : ModelPrior
    measure : Measure
    data : Data
        With no more than the known variance of each observation as its ``noise_var``.
    noise : one for each source
        The noise variance of its observations, or "learn".
    """

    def __init__(self, prior: ModelPrior, measure: Measure, data: Data, noise: Sequence[Noise]) -> None:
        self.prior, self.measure, self.data = prior, measure, data
        self.n_sources = len(noise)
        self.learned = np.array([level == "learn" for level in noise])
        self.noise = np.array([0.0 if level == "learn" else level for level in noise], dtype=float)
        self.levels, self.spreads = _standard_units(data, self.n_sources)
        self.n_scales = [measure.dim if term.per_dimension else 1 for term in prior.terms]
        self.size = 2 * self.n_sources * len(prior.terms) + sum(self.n_scales) + int(self.learned.sum())

    def bounds(self) -> list[tuple[float, float]]:
        """Where θ may be: far beyond anything that the priors believe in, but not where numbers overflow."""
        L, box = self.n_sources, []
        for n_scales in self.n_scales:
            box += [(-50.0, 50.0)] * L + [(-25.0, 8.0)] * L + [(-7.0, 5.0)] * n_scales
        return box + [(-30.0, 4.0)] * int(self.learned.sum())

    def start(self) -> Array:
        """θ at the centre of the prior."""
        parts = []
        for term, n_scales in zip(self.prior.terms, self.n_scales, strict=True):
            parts += [np.full(self.n_sources, term.shared), np.full(self.n_sources, term.log_own)]
            parts.append(np.full(n_scales, np.log(term.fraction)))
        return np.concatenate([*parts, np.full(int(self.learned.sum()), self.prior.log_noise)])

    def gp(self, theta: Array) -> MultiSourceGP:
        """The model with hyperparameters θ, in the user's units."""
        pieces, log_noise = self._split(theta)
        terms = []
        for (w, log_own, log_fraction), term in zip(pieces, self.prior.terms, strict=True):
            B = np.outer(self.spreads * w, self.spreads * w) + np.diag(self.spreads**2 * np.exp(log_own))
            terms.append(Term(B, term.kernel(np.exp(log_fraction) * self.measure.width)))
        if self.prior.level is not None:
            terms.append(Term(np.diag((self.prior.level * self.spreads) ** 2), Constant()))
        noise = self.noise.copy()
        noise[self.learned] = self._learned_noise(log_noise)
        return MultiSourceGP(terms, self.measure, noise=noise, mean=self.levels)

    def posterior(self, theta: Array, jitter: float = 0.0) -> Posterior:
        """The posterior of the sources, given the data and θ, with at least the given jitter."""
        gp = self.gp(theta)
        return gp._condition(replace(self.data, noise_var=self.data.noise_var + gp.noise[self.data.s]), jitter)

    def log_posterior_and_grad(self, theta: Array) -> tuple[float, Array]:
        """log p(y | θ) + log p(θ), up to a constant, and its gradient."""
        evidence, gradient = self.posterior(theta, FIT_JITTER).log_evidence_and_grad()
        log_prior, prior_gradient = self._log_prior_and_grad(theta)
        return evidence + log_prior, self._pull(theta, gradient) + prior_gradient

    def _log_prior_and_grad(self, theta: Array) -> tuple[float, Array]:
        pieces, log_noise = self._split(theta)
        value, parts = 0.0, []
        for (w, log_own, log_fraction), term in zip(pieces, self.prior.terms, strict=True):
            of_B, by_w, by_own = term.log_density_of_B(w, log_own)
            of_scales, by_scales = term.log_density_of_lengthscales(log_fraction)
            value += of_B + of_scales
            parts += [by_w, by_own, by_scales]
        away = (log_noise - self.prior.log_noise) / self.prior.log_noise_spread
        return value - 0.5 * float(away @ away), np.concatenate([*parts, -away / self.prior.log_noise_spread])

    def _pull(self, theta: Array, gradient: EvidenceGradient) -> Array:
        """The gradient of the evidence in the model's own quantities as one in θ."""
        pieces, log_noise = self._split(theta)
        parts = []
        for q, ((w, log_own, _), term) in enumerate(zip(pieces, self.prior.terms, strict=True)):
            by_B = np.outer(self.spreads, self.spreads) * gradient.B[q]
            by_scales = gradient.log_lengthscales[q]
            parts += [2 * by_B @ w, np.diagonal(by_B) * np.exp(log_own)]
            parts.append(by_scales if term.per_dimension else by_scales.sum(keepdims=True))
        return np.concatenate([*parts, self._learned_noise(log_noise) * gradient.noise[self.learned]])

    def _learned_noise(self, log_noise: Array) -> Array:
        """Noise variances in the user's units, of the sources where they are learned."""
        return np.asarray(self.spreads[self.learned] ** 2 * np.exp(log_noise))

    def _split(self, theta: Array) -> tuple[list[tuple[Array, Array, Array]], Array]:
        """(w, log η, log λ) of each term, and the log noise variances."""
        L, pieces, at = self.n_sources, [], 0
        for n_scales in self.n_scales:
            w, log_own, log_fraction, _ = np.split(theta[at:], np.cumsum([L, L, n_scales]))
            pieces.append((w, log_own, log_fraction))
            at += 2 * L + n_scales
        return pieces, theta[at:]


def _standard_units(data: Data, n_sources: int) -> tuple[Array, Array]:
    """The average and the spread of the observations of each source; what one lacks it takes from the others."""
    groups = [data.y[data.s == source] for source in range(n_sources)]
    spreads = np.array([np.std(y, ddof=1) if len(y) > 2 else np.nan for y in groups])
    everything = np.concatenate([y - y.mean() for y in groups if len(y)]) if len(data.y) else np.zeros(1)
    pooled = np.sqrt(np.mean(everything**2)) or np.abs(data.y).max(initial=0.0) or 1.0
    spreads = np.where(np.isfinite(spreads) & (spreads > 1e-12 * pooled), spreads, pooled)
    overall = data.y.mean() if len(data.y) else 0.0
    return np.array([y.mean() if len(y) else overall for y in groups]), spreads
