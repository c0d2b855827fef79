"""Learning the hyperparameters: the most probable θ, and draws of θ from its posterior.

Notation: θ (P,) and Θ (K, P) as in `hyper`; H the negative Hessian of the log posterior at a maximum θ*.

Draws come from a Gaussian around θ* with covariance H⁻¹ (Laplace's approximation), are resampled by their importance
weights, and then moved by Hamiltonian Monte Carlo in coordinates where H is the identity. So what the Gaussian gets
wrong is corrected, and none of it depends on the units, or on the order of the observations or of the sources.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from .ascent import History, climbed, within
from .checks import Array, IntArray
from .hyper import Parametrisation
from .model import Posterior

SCREENED = 64  #: draws from the prior among which to look for places to start from
STARTS = 4  #: how many of them
CLOSE = 3e-3  #: near enough to a maximum, in log density, for Newton's method
ROUGHLY = 0.5  #: near enough to see whether it is worth a closer look
WORTH = 20.0  #: so much below the best, in log density, it is
HOPELESS = 8.0  #: so much below it, another relation is not
FAR = 1.0  #: standard deviations between maxima that are not the same
NEWTON_STEPS = 8  #: at most, after the search has ended
DAMPING = np.array([1.0, 0.5, 0.2, 0.05])  #: the best of such shares of each step is taken
NEGLIGIBLE = 1e-6  #: a gain in log density for which no further step is taken
TRAJECTORIES, LEAPS, STEP = 1, 6, 0.35  #: of Hamiltonian Monte Carlo: each goes about two standard deviations
UNRELATED, OPPOSITE = float(np.log(0.05)), float(np.log(0.02))  #: log prior odds that a source is so
PATIENCE = 6  #: how often to try again with half the step if draws do not move


@dataclass(frozen=True)
class Peak:
    """A maximum of the posterior density of θ, and what lies around it."""

    relation: Array  # of the sources, (L,)
    mode: Array  # θ*, (P,)
    axes: Array  # A with A Aᵀ = H⁻¹, (P, P)
    log_mass: float  # of the Gaussian that fits it: Laplace's approximation of its evidence

    def excludes(self, theta: Array) -> bool:
        """Whether θ is too far from this peak to be on it."""
        return bool(np.linalg.norm(np.linalg.solve(self.axes, theta - self.mode)) > FAR)


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


def maximise(parametrisation: Parametrisation, seed: int = 0) -> Array:
    """The most probable θ, if all sources are related."""
    theta, _, _ = next(_places(parametrisation, seed, []))
    return theta


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


def _places(
    parametrisation: Parametrisation, seed: int, others: list[tuple[Array, float]]
) -> Iterator[tuple[Array, Array, float]]:
    """Where there may be peaks, the most probable place first: θ, the relation of the sources and its log prior odds.

    All climb together, from guesses and from the best of many draws from the prior; for other relations from guesses,
    roughly at first. Then they go on from the best of each other relation, from the most probable place, if sources
    were so related there, and from there as if it were the primary source that differed from the others.
    """
    together = np.ones(parametrisation.n_sources)
    draws, guesses = parametrisation.prior_draws(SCREENED, seed), parametrisation.guesses()
    likely = draws[np.argsort(-parametrisation.log_posterior(draws), kind="stable")[:STARTS]]
    groups = [_Starts(np.concatenate([guesses, likely]), together)]
    groups += [_Starts(guesses[1::2], relation, log_odds, near=ROUGHLY) for relation, log_odds in others]
    ends = _climbed(parametrisation, groups)
    if not any(np.isfinite(values).any() for _, values, _ in ends):
        raise ValueError("no hyperparameters fit these observations: their values are too extreme")
    if others:
        best = [(Theta[[values.argmax()]], history.of([values.argmax()])) for Theta, values, history in ends]
        (mode, history), *found = best
        mirrored = parametrisation.mirrored(mode[0])
        groups, histories = [_Starts(mode, together)], [history]
        for (theta, its_own), (relation, log_odds) in zip(found, others, strict=True):
            groups.append(_Starts(np.concatenate([theta, mode]), relation, log_odds, hopeless=HOPELESS))
            histories += [its_own, history]
        groups += [_Starts(theta[None], together) for theta in mirrored]
        ends = _climbed(parametrisation, groups, History.joined([*histories, History(*mirrored.shape)]))
    heights = np.array([values.max() + group.log_odds for (_, values, _), group in zip(ends, groups, strict=True)])
    for i in np.argsort(-heights, kind="stable"):
        if heights[i] > heights.max() - HOPELESS:
            Theta, values, _ = ends[i]
            yield Theta[values.argmax()], groups[i].relation, groups[i].log_odds


def _other_relations(parametrisation: Parametrisation) -> Iterator[tuple[Array, float]]:
    """How else sources may be related to the primary one, and the log prior odds: one differs, or all are unrelated."""
    L = parametrisation.n_sources
    if not parametrisation.relations_are_open:
        return
    for source in range(1, L):
        for sign, log_odds in ((0.0, UNRELATED), (-1.0, OPPOSITE)):
            yield np.where(np.arange(L) == source, sign, 1.0), log_odds
    if L > 2:
        yield np.eye(L)[0], (L - 1) * UNRELATED


class _Starts(NamedTuple):
    """Where to climb from, if the sources are related in some way."""

    Theta: Array
    relation: Array
    log_odds: float = 0.0  # of the relation, a priori
    near: float = CLOSE  # how near to go to a maximum
    hopeless: float = np.inf  # so much below the best, it is not worth to go on: not if the best may be along a ridge


def _climbed(
    parametrisation: Parametrisation, groups: Sequence[_Starts], history: History | None = None
) -> list[tuple[Array, Array, History]]:
    """Where climbs from groups of starts lead, all at once, the log densities there, and histories.

    Steps are measured in units of the spread that the prior expects.
    """
    unit, (low, high) = parametrisation.prior_spread, parametrisation.bounds.T
    of = np.repeat(np.arange(len(groups)), [len(group.Theta) for group in groups])
    relations = np.array([group.relation for group in groups])[of]

    def theta(t: Array) -> Array:
        return within(t * unit, low, high)  # as rounding may lead out of the bounds

    def function(t: Array, which: IntArray) -> tuple[Array, Array]:
        values, gradients = parametrisation.log_posterior_and_grad(theta(t), relations[which])
        return values, gradients * unit

    t, values, history = climbed(
        function,
        np.concatenate([group.Theta for group in groups]) / unit,
        parametrisation.bounds / unit[:, None],
        np.array([group.near for group in groups])[of],
        hopeless=np.array([group.hopeless for group in groups])[of],
        behind=(WORTH, ROUGHLY),
        history=history,
    )
    Theta = theta(t)
    return [(Theta[of == i], values[of == i], history.of(of == i)) for i in range(len(groups))]


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


def _peak(parametrisation: Parametrisation, mode: Array, relation: Array | None = None, log_odds: float = 0.0) -> Peak:
    """What lies around a mode, which damped Newton steps bring to its place first."""
    relation = np.ones(parametrisation.n_sources) if relation is None else relation
    steps = 1e-3 * np.eye(len(mode))
    for i in range(NEWTON_STEPS):
        around = _curvature(parametrisation, mode, relation, steps)
        steps = around.steps()  # as far as the density reaches in each direction
        step = around.axes @ (around.axes @ around.gradient)
        if i and 0.5 * step @ around.gradient <= NEGLIGIBLE:
            break
        tried = mode + np.outer(DAMPING, step)
        values = parametrisation.log_posterior(tried, relation)
        best = int(values.argmax())
        if values[best] > around.value + NEGLIGIBLE:
            mode = tried[best]
        elif i:
            break
    else:
        around = _curvature(parametrisation, mode, relation, steps)
    return Peak(relation, mode, around.axes, around.value + log_odds + around.log_volume)


@dataclass(frozen=True)
class _Curvature:
    """The log density at a point, its gradient, and H = V diag(λ) Vᵀ."""

    value: float
    gradient: Array
    eigenvalues: Array  # λ
    V: Array

    @property
    def axes(self) -> Array:
        """A with A Aᵀ = H⁻¹: the symmetric root, which goes with θ when sources change places."""
        return (self.V * self.eigenvalues**-0.5) @ self.V.T

    @property
    def log_volume(self) -> float:
        """The log integral of exp(-θᵀ H θ / 2)."""
        return float(0.5 * np.sum(np.log(2 * np.pi / self.eigenvalues)))

    def steps(self) -> Array:
        """A tenth of a standard deviation in each direction, as columns; not more than is small for any prior."""
        return self.V * np.minimum(0.1 * self.eigenvalues**-0.5, 0.05)


def _curvature(parametrisation: Parametrisation, mode: Array, relation: Array, steps: Array) -> _Curvature:
    """H by central differences of the gradient along the columns of ``steps``, which are orthogonal, in one call."""
    around = np.concatenate([mode + steps.T, mode - steps.T, mode[None]])
    values, gradients = parametrisation.log_posterior_and_grad(around, relation)
    forward, backward = np.split(gradients[:-1], 2)
    H = ((backward - forward).T / (2 * np.sum(steps**2, axis=0))) @ steps.T
    eigenvalues, V = np.linalg.eigh(0.5 * (H + H.T))
    return _Curvature(float(values[-1]), gradients[-1], np.maximum(eigenvalues, 0.02), V)  # no prior is wider than that


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
