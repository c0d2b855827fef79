"""Weighted draws of θ from its posterior density: made around its modes, then carried along with the observations.

New draws come from a Gaussian around each mode θ* with covariance H⁻¹ (Laplace's approximation), are resampled by their
importance weights, and then moved by Hamiltonian Monte Carlo in coordinates where H is the identity. This corrects the
errors of the Gaussian, and does not depend on units or on the order of the observations or of the sources.

When observations arrive, draws are carried along: their weights change by the ratio of the densities, and when few of
them have most of the weight, they are resampled and moved (Chopin 2002). Each mode keeps some draws, however small its
weight: more observations may favour it.

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

    trajectories: int = 1  #: per move: one corrects the Gaussian; more changed no coverage of the calibration problems
    leaps: int = 6  #: leapfrog steps of a trajectory
    step: float = 0.35  #: length of a step: a trajectory covers about two standard deviations
    halvings: int = 6  #: maximum number of halvings of the step if draws do not move
    least_moved: float = 1 / 3  #: effective share of different draws around a mode, below which the step is halved
    least_weight: float = 3e-4  #: weight below which a mode is dropped
    least_draws: int = 4  #: minimum number of draws of a mode that is kept
    resample_below: float = 0.5  #: effective share below which draws are resampled and moved
    search_below: float = 0.06  #: effective share below which modes are searched for again


SETTINGS = SamplerSettings()


@dataclass(frozen=True)
class HyperparameterDraws:
    """Weighted draws of θ from its posterior density, around one or more modes."""

    log_posterior: LogPosterior
    Theta: Array  # (K, P)
    relations: Array  # of the sources for each draw, (K, L)
    groups: IntArray  # number of the mode of each draw, (K,)
    weights: Array  # (K,)
    values: Array  # log densities, up to a constant, (K,)

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def effective(self) -> float:
        """The effective number of different draws."""
        _, which = np.unique(self.Theta, axis=0, return_inverse=True)
        return float(1 / np.sum(np.bincount(which.ravel(), self.weights) ** 2))

    @cached_property
    def primary_log_densities(self) -> Array:
        """The log density of each primary value given all others, in standard units, by the mixture of draws: (n,).

        The draws are conditioned on that value, too, which would flatter its prediction. They are therefore
        weighted by importance, 1/p(y_n | others, θ), with weights truncated after Ionides (2008).
        """
        logs = self.log_posterior.primary_log_densities(self.Theta, self.relations)
        known = self.weights[:, None]
        largest = logsumexp(-logs, axis=0, b=known) + 0.5 * np.log(len(logs))
        importance = np.minimum(-logs, largest)
        return np.asarray(logsumexp(importance + logs, axis=0, b=known) - logsumexp(importance, axis=0, b=known))

    def models(self) -> ModelBatch:
        """Return the models of all draws, of outputs in standard units."""
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
        """Return draws from plain numbers and lists; they cannot be carried along."""
        Theta, relations = plain["theta"], plain["relations"]
        if "weights" not in plain:  # from a release in which all had the same weight, listed by mode
            relations = [relation for relation, some in zip(relations, Theta, strict=True) for _ in some]
            Theta = [theta for some in Theta for theta in some]
        K = len(Theta)
        weights, values = np.array(plain.get("weights", [1 / K] * K)), np.full(K, np.nan)
        return cls(log_posterior, np.array(Theta), np.array(relations), np.zeros(K, dtype=np.intp), weights, values)

    def carried(self, log_posterior: LogPosterior, n_draws: int, seed: int) -> HyperparameterDraws | None:
        """Return draws reweighted to the density given other observations; None if they no longer represent it."""
        values = log_posterior.log_posterior(self.Theta, self.relations)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_weights = np.log(self.weights) + values - self.values
        if not np.isfinite(np.max(log_weights)):
            return None
        weights = np.exp(log_weights - log_weights.max())
        found = replace(self, log_posterior=log_posterior, weights=weights / weights.sum(), values=values)
        effective = found.effective / len(self)
        if effective < SETTINGS.search_below:
            return None
        return found if effective >= SETTINGS.resample_below else found._resampled_and_moved(n_draws, seed)

    def _resampled_and_moved(self, n_draws: int, seed: int) -> HyperparameterDraws | None:
        """Return draws resampled by weight within each group, and then moved; None if they hardly move."""
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
        """Return A with A Aᵀ the covariance of θ within groups, shrunk to its diagonal because draws are few."""
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
    """Return the number of draws from each mode, about n in total, in proportion to the masses of the modes.

    Modes of negligible mass get none, all others at least ``SETTINGS.least_draws``.
    """
    counts = np.maximum(allotted(n, masses), SETTINGS.least_draws)
    return np.where(masses > SETTINGS.least_weight, counts, 0)


def allotted(n: int, weights: Array) -> IntArray:
    """Return how many of n draws each weight gets, in proportion; the sum is n."""
    return np.diff(np.rint(n * np.cumsum(weights / np.sum(weights))).astype(int), prepend=0)


def _drawn_around(log_posterior: LogPosterior, modes: list[Mode], of: IntArray, seed: int) -> _State:
    """Return draws of θ from its posterior density around modes; ``of`` (K,) gives the mode's number for each draw.

    Draws that cannot be moved are replaced by the mode.
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
        """Return the moved draws, and the rows of those that could not be moved.

        Groups, numbered by ``of`` (K,), with too few different draws are moved again with smaller steps.
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
        """Return the state after one trajectory of the draws in ``rows``; rejected ones stay."""
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
    """Return the rows of draws to keep, in proportion to their weights, each counted as at most √K draws."""
    n = len(log_weights)
    if not np.isfinite(log_weights).any():
        return np.arange(n)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    return resampled(np.minimum(weights, n**-0.5), n)


def resampled(weights: Array, n: int, offset: float = 2**0.5 - 1) -> IntArray:
    """Return n rows that represent weighted ones, in order.

    With the default offset, rounding does not decide between rows of the same weight.
    """
    shares = np.cumsum(weights) / np.sum(weights)
    return np.searchsorted(shares, (np.arange(n) + offset) / n).clip(0, len(shares) - 1)
