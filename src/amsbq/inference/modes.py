"""modes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..validation import Array, IntArray
from .log_posterior import Parametrisation
from .optimizer import History, climbed, within

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


UNRELATED, OPPOSITE = float(np.log(0.05)), float(np.log(0.02))  #: log prior odds that a source is so


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


def maximise(parametrisation: Parametrisation, seed: int = 0) -> Array:
    """The most probable θ, if all sources are related."""
    theta, _, _ = next(_places(parametrisation, seed, []))
    return theta


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
