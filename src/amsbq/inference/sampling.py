"""Weighted draws of θ from its posterior density: made around its modes, then carried along with the observations.

New draws come from a Gaussian around each mode θ* with covariance H⁻¹ (Laplace's approximation), are resampled by their
importance weights, and then moved by Hamiltonian Monte Carlo in coordinates where H is the identity. So what the
Gaussian gets wrong is corrected, and nothing depends on units, or on the order of the observations or of the sources.

When observations come in, draws are carried along: their weights change by the ratio of the densities, and when few of
them have most of the weight, they are resampled and moved (Chopin 2002). Each mode keeps some of the draws,
however little it weighs: more observations may speak for it.

Notation: θ (P,), Θ (K, P) and relations (K, L) as in `layout`; K weights that sum to one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtri

from ..common.validation import Array, IntArray
from ..gp.coregionalisation import ModelBatch
from .log_posterior import LogPosterior
from .modes import Mode, find_mode, find_modes


@dataclass(frozen=True)
class SamplerSettings:
    """How draws are carried along, and moved by Hamiltonian Monte Carlo."""

    trajectories: int = 1  #: one corrects the Gaussian; more changed no coverage of the calibration problems
    leaps: int = 6  #: leapfrog steps of a trajectory
    step: float = 0.35  #: length of a step: a trajectory covers about two standard deviations
    halvings: int = 6  #: how often to try again with half the step where draws do not move
    least_moved: float = 1 / 3  #: share of draws around a mode that must differ, or the step is halved
    least_weight: float = 3e-4  #: of a mode, beside all others, below which it is forgotten
    least_draws: int = 4  #: of a mode that is not
    enough: float = 0.5  #: effective share of draws below which they are resampled
    lost: float = 0.06  #: effective share below which modes are searched for anew


SETTINGS = SamplerSettings()


@dataclass(frozen=True)
class HyperparameterDraws:
    """Weighted draws of θ from its posterior density, around one or more modes."""

    log_posterior: LogPosterior
    Theta: Array  # (K, P)
    relations: Array  # of the sources, that each draw goes with, (K, L)
    groups: IntArray  # the number of the mode that each is around, (K,)
    weights: Array  # (K,)
    values: Array  # log densities, up to a constant, (K,)

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def effective(self) -> float:
        """The effective number of draws, of those that differ."""
        _, which = np.unique(self.Theta, axis=0, return_inverse=True)
        return float(1 / np.sum(np.bincount(which.ravel(), self.weights) ** 2))

    @cached_property
    def primary_log_densities(self) -> Array:
        """The log density of each primary value in standard units, if all else is known, by all draws: shape (n,)."""
        logs = self.log_posterior.primary_log_densities(self.Theta, self.relations)
        return np.asarray(logsumexp(logs, axis=0, b=self.weights[:, None]))

    def models(self) -> ModelBatch:
        """Return the models of all draws, for outputs in standard units."""
        return self.log_posterior.models(self.Theta, self.relations)

    def to_dict(self) -> dict[str, Any]:
        """Return the draws as plain numbers and lists."""
        return {
            "theta": self.Theta.tolist(),
            "relations": self.relations.tolist(),
            "weights": self.weights.tolist(),
        }

    @classmethod
    def from_dict(cls, log_posterior: LogPosterior, plain: dict[str, Any]) -> HyperparameterDraws:
        """Return draws from plain numbers and lists, which are not carried along any more."""
        Theta, relations = plain["theta"], plain["relations"]
        if "weights" not in plain:  # of a release in which all counted alike, listed by mode
            relations = [relation for relation, some in zip(relations, Theta, strict=True) for _ in some]
            Theta = [theta for some in Theta for theta in some]
        K = len(Theta)
        weights, values = np.array(plain.get("weights", [1 / K] * K)), np.full(K, np.nan)
        return cls(log_posterior, np.array(Theta), np.array(relations), np.zeros(K, dtype=np.intp), weights, values)

    def carried(self, log_posterior: LogPosterior, n_draws: int, seed: int) -> HyperparameterDraws | None:
        """Return draws from the density for other observations; None if hardly any of these is probable by it."""
        values = log_posterior.log_posterior(self.Theta, self.relations)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_weights = np.log(self.weights) + values - self.values
        if not np.isfinite(np.max(log_weights)):
            return None
        weights = np.exp(log_weights - log_weights.max())
        found = replace(self, log_posterior=log_posterior, weights=weights / weights.sum(), values=values)
        effective = found.effective / len(self)
        if effective < SETTINGS.lost:
            return None
        return found if effective >= SETTINGS.enough else found._renewed(n_draws, seed)

    def _renewed(self, n_draws: int, seed: int) -> HyperparameterDraws | None:
        """Return draws that are resampled in each group by their weights, and then moved; None if they hardly move."""
        masses = np.bincount(self.groups, self.weights).astype(float)
        counts = _counts(n_draws, masses)
        rng = np.random.default_rng([seed, len(self.log_posterior.data.y)])
        groups = [np.flatnonzero(self.groups == group) for group in range(len(counts))]
        pairs = zip(groups, counts, strict=True)
        kept = np.concatenate([rows[resampled(self.weights[rows], n, rng.uniform())] for rows, n in pairs if n])
        state, of = _State(self.relations[kept], self.Theta[kept], self.values[kept]), self.groups[kept]
        axes = np.broadcast_to(self._axes(), (len(kept), *[self.Theta.shape[1]] * 2))
        state, still = state.spread(self.log_posterior, axes, of, rng)
        if len(still):
            return None
        weights, numbers = masses[of] / counts[of], np.unique(of, return_inverse=True)[1]
        return HyperparameterDraws(
            self.log_posterior, state.Theta, state.relations, numbers, weights / weights.sum(), state.values
        )

    def _axes(self) -> Array:
        """Return A with A Aᵀ the covariance of θ within groups, drawn to its diagonal as there are few draws."""
        masses = np.bincount(self.groups, self.weights)
        share = self.weights / masses[self.groups]
        centres = np.array([np.bincount(self.groups, share * column) for column in self.Theta.T]).T
        apart = (self.Theta - centres[self.groups]) * np.sqrt(self.weights)[:, None]
        covariance, P = apart.T @ apart, self.Theta.shape[1]
        diagonal = np.diag(np.diag(covariance) + 1e-6)
        shrunk = P / (P + self.effective)
        eigenvalues, V = np.linalg.eigh((1 - shrunk) * covariance + shrunk * diagonal)
        return np.asarray((V * np.sqrt(np.maximum(eigenvalues, 0.0))) @ V.T)


def most_probable(log_posterior: LogPosterior, seed: int = 0) -> HyperparameterDraws:
    """Return the most probable θ as the only draw."""
    mode = find_mode(log_posterior, seed)
    group, one = np.zeros(1, dtype=np.intp), np.ones(1)
    return HyperparameterDraws(log_posterior, mode.theta[None], mode.relation[None], group, one, one)


def draw(log_posterior: LogPosterior, n_draws: int, seed: int = 0) -> HyperparameterDraws:
    """Return draws of θ from its posterior density, divided among its modes by their probability."""
    modes = find_modes(log_posterior, seed)
    log_masses = np.array([mode.log_mass for mode in modes])
    masses = np.exp(log_masses - log_masses.max())
    masses /= masses.sum()
    counts = _counts(n_draws, masses)
    of = np.repeat(np.arange(len(modes)), counts)
    state = _drawn_around(log_posterior, modes, of, seed)
    weights = masses[of] / counts[of]
    return HyperparameterDraws(log_posterior, state.Theta, state.relations, of, weights / weights.sum(), state.values)


def _counts(n: int, masses: Array) -> IntArray:
    """Return how many of about n draws each mode gets, by their probabilities: some, if it is possible at all."""
    counts = np.maximum(allotted(n, masses), SETTINGS.least_draws)
    return np.where(masses > SETTINGS.least_weight, counts, 0)


def allotted(n: int, weights: Array) -> IntArray:
    """Return how many of n draws each weight gets: their sum is n."""
    return np.diff(np.rint(n * np.cumsum(weights / np.sum(weights))).astype(int), prepend=0)


def _drawn_around(log_posterior: LogPosterior, modes: list[Mode], of: IntArray, seed: int) -> _State:
    """Return draws of θ from its posterior density around modes, of which each has its number ``of`` (K,).

    Where they cannot be moved, they are the mode itself.
    """
    axes = np.array([mode.axes for mode in modes])[of]
    around = _State.around(log_posterior, modes, axes, of, seed)
    state, still = around.spread(log_posterior, axes, of, np.random.default_rng(seed))
    if not len(still):
        return state
    Theta = state.Theta.copy()
    Theta[still] = np.array([mode.theta for mode in modes])[of[still]]
    return replace(state, Theta=Theta, values=log_posterior.log_posterior(Theta, state.relations))


@dataclass(frozen=True)
class _State:
    """Draws of θ with their relations and log densities."""

    relations: Array  # (K, L)
    Theta: Array  # (K, P)
    values: Array  # (K,)

    @classmethod
    def around(cls, log_posterior: LogPosterior, modes: list[Mode], axes: Array, of: IntArray, seed: int) -> _State:
        """Return draws from the Gaussian of each mode, resampled by their importance weights."""
        relations = np.array([mode.relation for mode in modes])[of]
        z = ndtri(log_posterior.even_draws(len(of), seed))
        Theta = np.array([mode.theta for mode in modes])[of] + np.einsum("kij,kj->ki", axes, z)
        values = log_posterior.log_posterior(Theta, relations)
        log_weights = values + 0.5 * np.sum(z**2, axis=1)
        groups = [np.flatnonzero(of == i) for i in np.unique(of)]
        kept = np.concatenate([group[_few_copies(log_weights[group])] for group in groups])
        return cls(relations, Theta[kept], values[kept])

    def spread(
        self, log_posterior: LogPosterior, axes: Array, of: IntArray, rng: np.random.Generator
    ) -> tuple[_State, IntArray]:
        """Return draws after they were moved, and the rows of those that could not be.

        If too few of a group, by its number ``of`` (K,), are different, they are moved again with smaller steps.
        """
        state, rows, step = self, np.arange(len(of)), np.full(len(of), SETTINGS.step)
        for _ in range(SETTINGS.halvings):
            for _ in range(SETTINGS.trajectories):
                state = state.moved(log_posterior, axes, rows, step, rng)
            still = []
            for group in np.unique(of[rows]):
                _, copies = np.unique(state.Theta[of == group], axis=0, return_counts=True)
                still += [group] if copies.sum() / np.sum(copies**2) < SETTINGS.least_moved else []
            rows = rows[np.isin(of[rows], still)]
            if not len(rows):
                break
            step[rows] /= 2
        return state, rows

    def moved(
        self, log_posterior: LogPosterior, axes: Array, rows: IntArray, step: Array, rng: np.random.Generator
    ) -> _State:
        """Return the state after leapfrog steps of some draws, where they are accepted."""
        p = log_posterior.permuted(rng.normal(size=self.Theta.shape))[rows]
        step = (step * rng.uniform(0.7, 1.3, size=len(step)))[rows, None]
        threshold = np.log(rng.uniform(size=len(self.values)))[rows]
        axes, relations, Theta = axes[rows], self.relations[rows], self.Theta[rows]
        values, gradients = log_posterior.log_posterior_and_grad(Theta, relations)
        before = values - 0.5 * np.sum(p**2, axis=1)
        p = p + 0.5 * step * np.einsum("ki,kij->kj", gradients, axes)
        for leap in range(SETTINGS.leaps):
            Theta = Theta + step * np.einsum("kij,kj->ki", axes, p)
            values, gradients = log_posterior.log_posterior_and_grad(Theta, relations)
            p = p + (step if leap < SETTINGS.leaps - 1 else 0.5 * step) * np.einsum("ki,kij->kj", gradients, axes)
        accepted = threshold < values - 0.5 * np.sum(p**2, axis=1) - before
        new = replace(self, Theta=self.Theta.copy(), values=self.values.copy())
        new.Theta[rows[accepted]], new.values[rows[accepted]] = Theta[accepted], values[accepted]
        return new


def _few_copies(log_weights: Array) -> IntArray:
    """Return which draws to keep, in proportion to their weights, none of which counts for more than √K draws."""
    n = len(log_weights)
    if not np.isfinite(log_weights).any():
        return np.arange(n)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    return resampled(np.minimum(weights, n**-0.5), n)


def resampled(weights: Array, n: int, offset: float = 2**0.5 - 1) -> IntArray:
    """Return the rows of n draws that stand for weighted ones, in their order.

    With the default offset, rounding does not decide between draws of the same weight.
    """
    shares = np.cumsum(weights) / np.sum(weights)
    return np.searchsorted(shares, (np.arange(n) + offset) / n).clip(0, len(shares) - 1)
