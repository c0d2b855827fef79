"""The modes of the posterior density of θ: a multi-start search, and the curvature at each mode.

Notation: θ (P,), Θ (K, P) and relations (L,) as in `layout`; H is the negative Hessian of the log posterior at a mode
θ*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..common.optimizer import CurvatureHistory, clip, maximise_batch
from ..common.validation import Array, IntArray
from .log_posterior import LogPosterior


@dataclass(frozen=True)
class ModeSearchSettings:
    """How modes are searched for; differences are of log densities unless stated otherwise."""

    screened: int = 64  #: prior draws that are screened as starts, besides the starts of the layout
    kept: int = 8  #: best starts that are used: with four, one search in twenty missed the highest mode by far
    #: maximum number of observations to search with: with more, the search starts from the modes for a part of them
    most_observations: int = 96
    close: float = 0.02  #: expected gain below which a run is close enough for Newton's method
    rough: float = 0.5  #: expected gain below which a run for another relation is judged, and ends if it is far behind
    far_behind: float = 20.0  #: distance below the best run
    hopeless: float = 8.0  #: distance below the best mode beyond which a mode is dropped: it would get no draw
    distinct: float = 1.0  #: distance between different modes, in standard deviations
    newton_steps: int = 8  #: maximum number of Newton steps after the search
    damping: tuple[float, ...] = (1.0, 0.5, 0.2, 0.05)  #: shares of a Newton step that are tried
    negligible: float = 1e-6  #: gain below which Newton's method stops
    flattest: float = 0.02  #: smallest curvature: no prior is wider
    log_odds_unrelated: float = float(np.log(0.05))  #: prior log odds that a source is unrelated to the primary one
    log_odds_opposite: float = float(np.log(0.02))  #: and that it shares the terms with the opposite sign


SETTINGS = ModeSearchSettings()


@dataclass(frozen=True)
class Mode:
    """A mode of the posterior density of θ, and the Gaussian that fits the density around it."""

    relation: Array  # of the sources, (L,)
    theta: Array  # θ*, (P,)
    axes: Array  # A with A Aᵀ = H⁻¹, (P, P)
    log_mass: float  # Laplace's approximation of the evidence of this mode

    def excludes(self, theta: Array) -> bool:
        """Return whether θ is too far from this mode to belong to it."""
        return bool(np.linalg.norm(np.linalg.solve(self.axes, theta - self.theta)) > SETTINGS.distinct)


def find_mode(log_posterior: LogPosterior, seed: int = 0) -> Mode:
    """Return the highest mode for related sources."""
    theta, _, _ = next(_refined(log_posterior, seed, []))
    return mode_at(log_posterior, theta)


def find_modes(log_posterior: LogPosterior, seed: int = 0) -> list[Mode]:
    """Return all modes that matter, the highest first.

    Observations may not show which of the sources differs from the others, and a source may be unrelated to the primary
    one, or share its terms with the opposite sign: each case has its own modes.
    """
    modes: list[Mode] = []
    for theta, relation, log_odds in _refined(log_posterior, seed, list(_other_relations(log_posterior))):
        same = [mode for mode in modes if (mode.relation == relation).all()]
        if all(mode.excludes(theta) for mode in same):
            mode = mode_at(log_posterior, theta, relation, log_odds)
            modes += [mode] if all(known.excludes(mode.theta) for known in same) else []
    return modes


def mode_at(log_posterior: LogPosterior, theta: Array, relation: Array | None = None, log_odds: float = 0.0) -> Mode:
    """Return the mode to which damped Newton steps from θ lead, with its curvature."""
    relation = np.ones(log_posterior.n_sources) if relation is None else relation
    steps = 1e-3 * np.eye(len(theta))
    for i in range(SETTINGS.newton_steps):
        around = _curvature(log_posterior, theta, relation, steps)
        steps = around.steps()  # of finite differences: a tenth of a standard deviation in each direction
        step = around.axes @ (around.axes @ around.gradient)
        if i and 0.5 * step @ around.gradient <= SETTINGS.negligible:
            break
        tried = theta + np.outer(SETTINGS.damping, step)
        values = log_posterior.log_posterior(tried, relation)
        best = int(values.argmax())
        if values[best] > around.value + SETTINGS.negligible:
            theta = tried[best]
        elif i:
            break
    else:
        around = _curvature(log_posterior, theta, relation, steps)
    return Mode(relation, theta, around.axes, around.value + log_odds + around.log_volume)


class _Starts(NamedTuple):
    """Starts of the search for one relation of the sources."""

    Theta: Array
    relation: Array
    log_odds: float = 0.0  # prior log odds of the relation
    tolerance: float = SETTINGS.close
    hopeless: float = np.inf  # never for related sources: the best point may be along a ridge


def _refined(
    log_posterior: LogPosterior, seed: int, others: list[tuple[Array, float]]
) -> Iterator[tuple[Array, Array, float]]:
    """Yield θ near a mode, the relation of the sources and its prior log odds, the most probable first.

    With many observations, modes are first searched for with some of them, and then refined with all.
    """
    data = log_posterior.data.thinned(SETTINGS.most_observations)
    if len(data.y) == len(log_posterior.data.y):
        yield from _candidates(log_posterior, seed, others)
        return
    near = list(_candidates(log_posterior.on(data), seed, others))
    groups = [
        _Starts(theta[None], relation, log_odds, hopeless=np.inf if i == 0 else SETTINGS.hopeless)
        for i, (theta, relation, log_odds) in enumerate(near)
    ]
    yield from _best_first(groups, _maximised(log_posterior, groups))


def _candidates(
    log_posterior: LogPosterior, seed: int, others: list[tuple[Array, float]]
) -> Iterator[tuple[Array, Array, float]]:
    """Yield θ near a mode, the relation of the sources and its prior log odds, the most probable first.

    The first round starts, for related sources, from the best of the layout's starts and of many prior draws; for each
    other relation, roughly, from one of the layout's starts. The second round starts (a) from the best point of each
    other relation, (b) from the overall best point under each other relation, (c) from the overall best point with η of
    the primary and of one secondary source exchanged.
    """
    together = np.ones(log_posterior.n_sources)
    starts = log_posterior.layout.starts()
    pool = np.concatenate([starts, log_posterior.prior_draws(SETTINGS.screened, seed)])
    best_of_pool = np.argsort(-log_posterior.log_posterior(pool), kind="stable")[: SETTINGS.kept]
    groups = [_Starts(pool[best_of_pool], together)]
    middle = starts[[len(starts) // 2 - 1]]
    groups += [_Starts(middle, relation, log_odds, tolerance=SETTINGS.rough) for relation, log_odds in others]
    ends = _maximised(log_posterior, groups)
    if not any(np.isfinite(values).any() for _, values, _ in ends):
        raise ValueError("no hyperparameters fit these observations: their values are too extreme")
    if others:
        best = [(Theta[[values.argmax()]], history.select([values.argmax()])) for Theta, values, history in ends]
        (theta, history), *found = best
        swapped = log_posterior.layout.swapped_with_primary(theta[0])
        groups, histories = [_Starts(theta, together)], [history]
        for (its_best, its_history), (relation, log_odds) in zip(found, others, strict=True):
            both = np.concatenate([its_best, theta])
            groups.append(_Starts(both, relation, log_odds, hopeless=SETTINGS.hopeless))
            histories += [its_history, history]
        groups += [_Starts(one[None], together) for one in swapped]
        histories.append(CurvatureHistory(*swapped.shape))
        ends = _maximised(log_posterior, groups, CurvatureHistory.joined(histories))
    yield from _best_first(groups, ends)


def _best_first(
    groups: Sequence[_Starts], ends: Sequence[tuple[Array, Array, CurvatureHistory]]
) -> Iterator[tuple[Array, Array, float]]:
    """Yield the best θ of each group with its relation and prior log odds, the most probable first."""
    heights = np.array([values.max() + group.log_odds for (_, values, _), group in zip(ends, groups, strict=True)])
    for i in np.argsort(-heights, kind="stable"):
        if heights[i] > heights.max() - SETTINGS.hopeless:
            Theta, values, _ = ends[i]
            yield Theta[values.argmax()], groups[i].relation, groups[i].log_odds


def _other_relations(log_posterior: LogPosterior) -> Iterator[tuple[Array, float]]:
    """Yield other relations to the primary source, with prior log odds: one source differs, or all are unrelated."""
    L = log_posterior.n_sources
    if not log_posterior.prior.open_relations:
        return
    for source in range(1, L):
        for sign, log_odds in ((0.0, SETTINGS.log_odds_unrelated), (-1.0, SETTINGS.log_odds_opposite)):
            yield np.where(np.arange(L) == source, sign, 1.0), log_odds
    if L > 2:
        yield np.eye(L)[0], (L - 1) * SETTINGS.log_odds_unrelated


def _maximised(
    log_posterior: LogPosterior, groups: Sequence[_Starts], history: CurvatureHistory | None = None
) -> list[tuple[Array, Array, CurvatureHistory]]:
    """Return the end points, log densities and curvature histories of the runs from each group of starts.

    Steps are measured in units of the prior's spread.
    """
    layout = log_posterior.layout
    unit = layout.prior_spread
    of = np.repeat(np.arange(len(groups)), [len(group.Theta) for group in groups])
    relations = np.array([group.relation for group in groups])[of]

    def theta(t: Array) -> Array:
        return clip(t * unit, layout.low, layout.high)  # rounding may lead out of the bounds

    def function(t: Array, which: IntArray) -> tuple[Array, Array]:
        values, gradients = log_posterior.log_posterior_and_grad(theta(t), relations[which])
        return values, gradients * unit

    t, values, history = maximise_batch(
        function,
        np.concatenate([group.Theta for group in groups]) / unit,
        layout.bounds / unit[:, None],
        np.array([group.tolerance for group in groups])[of],
        hopeless=np.array([group.hopeless for group in groups])[of],
        behind=(SETTINGS.far_behind, SETTINGS.rough),
        history=history,
    )
    Theta = theta(t)
    return [(Theta[of == i], values[of == i], history.select(of == i)) for i in range(len(groups))]


@dataclass(frozen=True)
class _Curvature:
    """The log density at a point, its gradient, and H = V diag(λ) Vᵀ."""

    value: float
    gradient: Array
    eigenvalues: Array  # λ
    V: Array

    @property
    def axes(self) -> Array:
        """A with A Aᵀ = H⁻¹: the symmetric root, which is permuted with θ when sources are relabelled."""
        return (self.V * self.eigenvalues**-0.5) @ self.V.T

    @property
    def log_volume(self) -> float:
        """The log integral of exp(-θᵀ H θ / 2)."""
        return float(0.5 * np.sum(np.log(2 * np.pi / self.eigenvalues)))

    def steps(self) -> Array:
        """Return steps along the eigenvectors of H, 0.1 standard deviations but at most 0.05 each: columns (P, P)."""
        return self.V * np.minimum(0.1 * self.eigenvalues**-0.5, 0.05)


def _curvature(log_posterior: LogPosterior, theta: Array, relation: Array, steps: Array) -> _Curvature:
    """Return the curvature, by central differences of the gradient along orthogonal columns of ``steps``."""
    around = np.concatenate([theta + steps.T, theta - steps.T, theta[None]])
    values, gradients = log_posterior.log_posterior_and_grad(around, relation)
    forward, backward = np.split(gradients[:-1], 2)
    H = ((backward - forward).T / (2 * np.sum(steps**2, axis=0))) @ steps.T
    eigenvalues, V = np.linalg.eigh(0.5 * (H + H.T))
    return _Curvature(float(values[-1]), gradients[-1], np.maximum(eigenvalues, SETTINGS.flattest), V)
