"""Learning the hyperparameters: the most probable θ, and draws of θ from its posterior.

Notation: θ (P,) and Θ (K, P) as in `hyper`; H the negative Hessian of the log posterior at a maximum θ*.

Draws come from a Gaussian around θ* with covariance H⁻¹ (Laplace's approximation), are resampled by their importance
weights, and then moved by Hamiltonian Monte Carlo in coordinates where H is the identity. So what the Gaussian gets
wrong is corrected, and none of it depends on the units, or on the order of the observations or of the sources.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..gp.posterior import Posterior
from ..validation import Array, IntArray
from .log_posterior import Parametrisation
from .modes import Peak, _climbed, _other_relations, _peak, _places, _Starts, maximise

TRAJECTORIES, LEAPS, STEP = 1, 6, 0.35  #: of Hamiltonian Monte Carlo: each goes about two standard deviations


PATIENCE = 6  #: how often to try again with half the step if draws do not move


@dataclass(frozen=True)
class Fit:
    """Hyperparameters of a model of given data: draws from their posterior around one or more peaks."""

    parametrisation: Parametrisation
    peaks: list[Peak]
    draws: list[Array]  # (K_i, P) for each peak
    effective: float  # how many of the draws are different, as an effective sample size
    seed: int

    @property
    def Theta(self) -> Array:
        """All draws, shape (K, P)."""
        return np.concatenate(self.draws)

    @property
    def relations(self) -> Array:
        """The relation that each draw is a draw for, shape (K, L)."""
        return np.repeat([peak.relation for peak in self.peaks], [len(draws) for draws in self.draws], axis=0)

    def posteriors(self, standard: bool = False, step: int = 1) -> list[Posterior]:
        """The posterior of the sources for each of the draws, or for some, in the user's units or in standard ones."""
        pairs = zip(self.Theta[::step], self.relations[::step], strict=True)
        return [self.parametrisation.posterior(theta, relation, standard) for theta, relation in pairs]

    def doubted_integrals(self, shares: Array) -> tuple[Array, Array, Array]:
        """As of the parametrisation, for each of the draws."""
        return self.parametrisation.doubted_integrals(self.Theta, self.relations, shares)

    def given(self, parametrisation: Parametrisation, most: int) -> Fit:
        """Some of the draws, for other data."""
        of = np.repeat(np.arange(len(self.peaks)), [len(draws) for draws in self.draws])
        kept = np.linspace(0, len(of) - 1, min(most, len(of))).round().astype(int)
        draws = [self.Theta[kept[of[kept] == i]] for i in range(len(self.peaks))]
        peaks = [peak for peak, rows in zip(self.peaks, draws, strict=True) if len(rows)]
        return replace(self, parametrisation=parametrisation, peaks=peaks, draws=[rows for rows in draws if len(rows)])

    def plain(self) -> dict[str, Any]:
        """The draws, as plain numbers and lists."""
        relations = [peak.relation.tolist() for peak in self.peaks]
        return {"effective": self.effective, "relations": relations, "theta": [draws.tolist() for draws in self.draws]}

    @classmethod
    def recalled(cls, parametrisation: Parametrisation, plain: dict[str, Any], seed: int) -> Fit:
        """From plain numbers."""
        draws = [np.array(theta, dtype=float) for theta in plain["theta"]]
        peaks = [
            Peak(np.array(relation), theta[0], np.eye(parametrisation.size), 0.0)
            for relation, theta in zip(plain["relations"], draws, strict=True)
        ]
        return cls(parametrisation, peaks, draws, plain["effective"], seed)


def most_probable(parametrisation: Parametrisation, seed: int = 0) -> Fit:
    """The most probable hyperparameters alone."""
    peak = _peak(parametrisation, maximise(parametrisation, seed))
    return Fit(parametrisation, [peak], [peak.mode[None]], 1.0, seed)


def marginalised(parametrisation: Parametrisation, n_draws: int, seed: int = 0) -> Fit:
    """Draws of the hyperparameters from their posterior.

    It may not be clear which of the sources differs from the others, and a source may also be unrelated to the primary
    one, or run against it: each of these has a peak of its own, and the draws are divided among them by their
    probability.
    """
    peaks: list[Peak] = []
    for theta, relation, log_odds in _places(parametrisation, seed, list(_other_relations(parametrisation))):
        same = [peak for peak in peaks if (peak.relation == relation).all()]
        if all(peak.excludes(theta) for peak in same):
            peak = _peak(parametrisation, theta, relation, log_odds)
            peaks += [peak] if all(known.excludes(peak.mode) for known in same) else []
    masses = np.array([peak.log_mass for peak in peaks])
    shares = np.exp(masses - masses.max())
    shares /= shares.sum()
    counts = np.diff(np.rint(n_draws * np.cumsum(shares)).astype(int), prepend=0)
    return _sampled(parametrisation, [p for p, n in zip(peaks, counts, strict=True) if n], counts[counts > 0], seed)


def tempered(fit: Fit, power: float) -> Fit:
    """The same, by a posterior for which the likelihood counts to the given power."""
    doubtful = fit.parametrisation.tempered(power)
    found = _climbed(doubtful, [_Starts(peak.mode[None], peak.relation) for peak in fit.peaks])
    peaks = [_peak(doubtful, mode[0], peak.relation) for (mode, _, _), peak in zip(found, fit.peaks, strict=True)]
    return _sampled(doubtful, peaks, np.array([len(draws) for draws in fit.draws]), fit.seed)


def _sampled(parametrisation: Parametrisation, peaks: list[Peak], counts: IntArray, seed: int) -> Fit:
    """Draws of θ from its posterior around peaks, so many for each.

    If fewer than a third of those around a peak are different, their moves are repeated with smaller steps; if that
    does not help, all of them are the most probable θ.
    """
    of = np.repeat(np.arange(len(peaks)), counts)  # the peak of each draw
    start = _State.around(parametrisation, peaks, of, seed)
    state, step, rng = start, np.full(len(of), STEP), np.random.default_rng(seed)
    rows, effective = np.arange(len(of)), np.zeros(len(peaks))
    for _ in range(PATIENCE):
        for _ in range(TRAJECTORIES):
            momenta = parametrisation.in_place_of_sources(rng.normal(size=state.Theta.shape))
            jitter, threshold = rng.uniform(0.7, 1.3, size=len(of)), np.log(rng.uniform(size=len(of)))
            state = state.moved(parametrisation, rows, momenta, (step * jitter)[:, None], threshold)
        for i, n in enumerate(counts):
            _, copies = np.unique(state.Theta[of == i], axis=0, return_counts=True)
            effective[i] = n**2 / np.sum(copies**2)
        rows = np.flatnonzero((effective < counts / 3)[of])
        if not len(rows):
            break
        step[rows] /= 2
    Theta = state.Theta.copy()
    if len(rows):
        Theta[rows] = np.array([peak.mode for peak in peaks])[of[rows]]
        effective[np.unique(of[rows])] = 1.0
    if effective.sum() < len(of) / 3:
        warnings.warn(
            "hyperparameters could not be sampled: only the most probable are used, and the error bar is too small",
            stacklevel=5,
        )
    return Fit(parametrisation, peaks, np.split(Theta, np.cumsum(counts)[:-1]), float(effective.sum()), seed)


@dataclass(frozen=True)
class _State:
    """Draws of θ, each with the peak that it is from, the log density and its gradient."""

    axes: Array  # (K, P, P)
    relations: Array  # (K, L)
    Theta: Array  # (K, P)
    values: Array
    gradients: Array

    @classmethod
    def around(cls, parametrisation: Parametrisation, peaks: list[Peak], of: IntArray, seed: int) -> _State:
        """Draws from the Gaussian of each peak, resampled by their importance weights."""
        axes, relations = np.array([peak.axes for peak in peaks])[of], np.array([peak.relation for peak in peaks])[of]
        z = ndtri(parametrisation.even_draws(len(of), seed))
        Theta = np.array([peak.mode for peak in peaks])[of] + np.einsum("kij,kj->ki", axes, z)
        values, gradients = parametrisation.log_posterior_and_grad(Theta, relations)
        log_weights = values + 0.5 * np.sum(z**2, axis=1)
        groups = [np.flatnonzero(of == i) for i in range(len(peaks))]
        kept = np.concatenate([group[_resampled(log_weights[group])] for group in groups])
        return cls(axes, relations, Theta[kept], values[kept], gradients[kept])

    def moved(
        self, parametrisation: Parametrisation, rows: IntArray, p: Array, step: Array, threshold: Array
    ) -> _State:
        """Some of them, by leapfrog steps with momenta p, if that is probable enough."""
        axes, relations, Theta, values, gradients = (part[rows] for part in vars(self).values())
        p, step = p[rows], step[rows]
        before = values - 0.5 * np.sum(p**2, axis=1)
        p = p + 0.5 * step * np.einsum("ki,kij->kj", gradients, axes)
        for leap in range(LEAPS):
            Theta = Theta + step * np.einsum("kij,kj->ki", axes, p)
            values, gradients = parametrisation.log_posterior_and_grad(Theta, relations)
            p = p + (step if leap < LEAPS - 1 else 0.5 * step) * np.einsum("ki,kij->kj", gradients, axes)
        accepted = threshold[rows] < values - 0.5 * np.sum(p**2, axis=1) - before
        new = replace(self, Theta=self.Theta.copy(), values=self.values.copy(), gradients=self.gradients.copy())
        where = rows[accepted]
        new.Theta[where], new.values[where] = Theta[accepted], values[accepted]
        new.gradients[where] = gradients[accepted]
        return new


def _resampled(log_weights: Array) -> IntArray:
    """Which draws to go on with, in proportion to their weights, none of which counts for more than √K draws."""
    n = len(log_weights)
    if not np.isfinite(log_weights).any():
        return np.arange(n)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    weights = np.minimum(weights, n**-0.5)
    shares = np.cumsum(weights) / weights.sum()
    return np.searchsorted(shares, (np.arange(n) + 0.5) / n).clip(0, n - 1)
