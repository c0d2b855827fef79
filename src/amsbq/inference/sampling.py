"""Draws of θ from its posterior density, around one or more modes.

Draws come from a Gaussian around each mode θ* with covariance H⁻¹ (Laplace's approximation), are resampled by their
importance weights, and then moved by Hamiltonian Monte Carlo in coordinates where H is the identity. So what the
Gaussian gets wrong is corrected, and nothing depends on units, or on the order of the observations or of the sources.

Notation: θ (P,), Θ (K, P) and relations (K, L) as in `layout`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..gp.coregionalisation import ModelBatch
from ..validation import Array, IntArray
from .log_posterior import LogPosterior
from .modes import Mode, find_mode, find_modes


@dataclass(frozen=True)
class SamplerSettings:
    """How draws are moved by Hamiltonian Monte Carlo."""

    trajectories: int = 1  #: one corrects the Gaussian; more changed no coverage of the calibration problems
    leaps: int = 6  #: leapfrog steps of a trajectory
    step: float = 0.35  #: length of a step: a trajectory covers about two standard deviations
    halvings: int = 6  #: how often to try again with half the step where draws do not move
    least_moved: float = 1 / 3  #: share of draws around a mode that must differ, or the step is halved


SETTINGS = SamplerSettings()


@dataclass(frozen=True)
class HyperparameterDraws:
    """Draws of θ from its posterior density around one or more modes."""

    log_posterior: LogPosterior
    modes: list[Mode]
    per_mode: list[Array]  # (K_i, P) for each mode
    effective: float  # effective sample size of the draws
    seed: int

    @property
    def Theta(self) -> Array:
        """All draws, shape (K, P)."""
        return np.concatenate(self.per_mode)

    @property
    def relations(self) -> Array:
        """The relation of the sources that each draw goes with, shape (K, L)."""
        return np.repeat([mode.relation for mode in self.modes], [len(draws) for draws in self.per_mode], axis=0)

    def models(self) -> ModelBatch:
        """Return the models of all draws, for outputs in standard units."""
        return self.log_posterior.models(self.Theta, self.relations)

    def thinned(self, most: int) -> HyperparameterDraws:
        """Return at most so many of the draws."""
        of = np.repeat(np.arange(len(self.modes)), [len(draws) for draws in self.per_mode])
        kept = np.linspace(0, len(of) - 1, min(most, len(of))).round().astype(int)
        draws = [self.Theta[kept[of[kept] == i]] for i in range(len(self.modes))]
        modes = [mode for mode, rows in zip(self.modes, draws, strict=True) if len(rows)]
        return replace(self, modes=modes, per_mode=[rows for rows in draws if len(rows)])

    def to_dict(self) -> dict[str, Any]:
        """Return the draws as plain numbers and lists."""
        relations = [mode.relation.tolist() for mode in self.modes]
        theta = [draws.tolist() for draws in self.per_mode]
        return {"effective": self.effective, "relations": relations, "theta": theta}

    @classmethod
    def from_dict(cls, log_posterior: LogPosterior, plain: dict[str, Any], seed: int) -> HyperparameterDraws:
        """Return draws from plain numbers and lists; what was known of the modes besides is not kept."""
        draws = [np.array(theta, dtype=float) for theta in plain["theta"]]
        modes = [
            Mode(np.array(relation), theta[0], np.eye(log_posterior.layout.size), 0.0)
            for relation, theta in zip(plain["relations"], draws, strict=True)
        ]
        return cls(log_posterior, modes, draws, plain["effective"], seed)


def most_probable(log_posterior: LogPosterior, seed: int = 0) -> HyperparameterDraws:
    """Return the most probable θ as the only draw."""
    mode = find_mode(log_posterior, seed)
    return HyperparameterDraws(log_posterior, [mode], [mode.theta[None]], 1.0, seed)


def draw(log_posterior: LogPosterior, n_draws: int, seed: int = 0) -> HyperparameterDraws:
    """Return draws of θ from its posterior density, divided among its modes by their probability."""
    modes = find_modes(log_posterior, seed)
    masses = np.array([mode.log_mass for mode in modes])
    counts = allotted(n_draws, np.exp(masses - masses.max()))
    kept = [mode for mode, n in zip(modes, counts, strict=True) if n]
    return _draw_around(log_posterior, kept, counts[counts > 0], seed)


def allotted(n: int, weights: Array) -> IntArray:
    """Return how many of n draws each weight gets: their sum is n."""
    return np.diff(np.rint(n * np.cumsum(weights / np.sum(weights))).astype(int), prepend=0)


def _draw_around(log_posterior: LogPosterior, modes: list[Mode], counts: IntArray, seed: int) -> HyperparameterDraws:
    """Return draws of θ from its posterior density around modes, so many for each.

    If too few of those around a mode are different, their moves are repeated with smaller steps; if that does not help,
    all of them are the mode itself.
    """
    of = np.repeat(np.arange(len(modes)), counts)  # the mode of each draw
    state = _State.around(log_posterior, modes, of, seed)
    step, rng = np.full(len(of), SETTINGS.step), np.random.default_rng(seed)
    rows, effective = np.arange(len(of)), np.zeros(len(modes))
    for _ in range(SETTINGS.halvings):
        for _ in range(SETTINGS.trajectories):
            momenta = log_posterior.permuted(rng.normal(size=state.Theta.shape))
            jitter, threshold = rng.uniform(0.7, 1.3, size=len(of)), np.log(rng.uniform(size=len(of)))
            state = state.moved(log_posterior, rows, momenta, (step * jitter)[:, None], threshold)
        for i, n in enumerate(counts):
            _, copies = np.unique(state.Theta[of == i], axis=0, return_counts=True)
            effective[i] = n**2 / np.sum(copies**2)
        rows = np.flatnonzero((effective < counts * SETTINGS.least_moved)[of])
        if not len(rows):
            break
        step[rows] /= 2
    Theta = state.Theta.copy()
    if len(rows):
        Theta[rows] = np.array([mode.theta for mode in modes])[of[rows]]
        effective[np.unique(of[rows])] = 1.0
    per_mode = np.split(Theta, np.cumsum(counts)[:-1])
    return HyperparameterDraws(log_posterior, modes, per_mode, float(effective.sum()), seed)


@dataclass(frozen=True)
class _State:
    """Draws of θ, each with the axes and the relation of its mode, the log density and its gradient."""

    axes: Array  # (K, P, P)
    relations: Array  # (K, L)
    Theta: Array  # (K, P)
    values: Array
    gradients: Array

    @classmethod
    def around(cls, log_posterior: LogPosterior, modes: list[Mode], of: IntArray, seed: int) -> _State:
        """Return draws from the Gaussian of each mode, resampled by their importance weights."""
        axes, relations = np.array([mode.axes for mode in modes])[of], np.array([mode.relation for mode in modes])[of]
        z = ndtri(log_posterior.even_draws(len(of), seed))
        Theta = np.array([mode.theta for mode in modes])[of] + np.einsum("kij,kj->ki", axes, z)
        values, gradients = log_posterior.log_posterior_and_grad(Theta, relations)
        log_weights = values + 0.5 * np.sum(z**2, axis=1)
        groups = [np.flatnonzero(of == i) for i in range(len(modes))]
        kept = np.concatenate([group[_resampled(log_weights[group])] for group in groups])
        return cls(axes, relations, Theta[kept], values[kept], gradients[kept])

    def moved(self, log_posterior: LogPosterior, rows: IntArray, p: Array, step: Array, threshold: Array) -> _State:
        """Return the state after leapfrog steps of some draws with momenta p, where they are accepted."""
        axes, relations, Theta, values, gradients = (part[rows] for part in vars(self).values())
        p, step = p[rows], step[rows]
        before = values - 0.5 * np.sum(p**2, axis=1)
        p = p + 0.5 * step * np.einsum("ki,kij->kj", gradients, axes)
        for leap in range(SETTINGS.leaps):
            Theta = Theta + step * np.einsum("kij,kj->ki", axes, p)
            values, gradients = log_posterior.log_posterior_and_grad(Theta, relations)
            p = p + (step if leap < SETTINGS.leaps - 1 else 0.5 * step) * np.einsum("ki,kij->kj", gradients, axes)
        accepted = threshold[rows] < values - 0.5 * np.sum(p**2, axis=1) - before
        new = replace(self, Theta=self.Theta.copy(), values=self.values.copy(), gradients=self.gradients.copy())
        where = rows[accepted]
        new.Theta[where], new.values[where] = Theta[accepted], values[accepted]
        new.gradients[where] = gradients[accepted]
        return new


def _resampled(log_weights: Array) -> IntArray:
    """Return which draws to keep, in proportion to their weights, none of which counts for more than √K draws."""
    n = len(log_weights)
    if not np.isfinite(log_weights).any():
        return np.arange(n)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    weights = np.minimum(weights, n**-0.5)
    shares = np.cumsum(weights) / weights.sum()
    return np.searchsorted(shares, (np.arange(n) + 0.5) / n).clip(0, n - 1)
