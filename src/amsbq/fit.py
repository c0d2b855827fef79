"""Learning the hyperparameters: the most probable θ, and draws of θ from its posterior.

Notation: θ (P,) and Θ (K, P) as in `hyper`; H the negative Hessian of the log posterior at a maximum θ*.

Draws come from a Gaussian around θ* with covariance H⁻¹ (Laplace's approximation), are resampled by their importance
weights, and then moved by Hamiltonian Monte Carlo in coordinates where H is the identity. So what the Gaussian gets
wrong is corrected, and none of it depends on the units, or on the order of the observations or of the sources.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from .ascent import climbed
from .checks import Array, IntArray
from .data import Data
from .hyper import Parametrisation
from .measures import Measure
from .model import Posterior

SCREENED = 64  #: draws from the prior among which to look for places to start from
STARTS = 4  #: how many of them
CLOSE = 3e-3  #: near enough to a maximum, in log density, for Newton's method
ROUGHLY = 0.5  #: near enough to see whether it is worth a closer look
HOPELESS = 12.0  #: so much below the best, in log density, it is not
FAR = 1.0  #: standard deviations between maxima that are not the same
NEWTON_STEPS = 8  #: at most, after the search has ended
DAMPING = np.array([1.0, 0.5, 0.2, 0.05])  #: the best of such shares of each step is taken
NEGLIGIBLE = 1e-6  #: a gain in log density for which no further step is taken
TRAJECTORIES, LEAPS, STEP = 2, 6, 0.35  #: of Hamiltonian Monte Carlo: each goes about two standard deviations
UNRELATED, OPPOSITE = float(np.log(0.05)), float(np.log(0.02))  #: log prior odds that a source is so
PATIENCE = 3  #: how often to try again with half the step if draws do not move


@dataclass(frozen=True)
class Peak:
    """A maximum of the posterior density of θ, and what lies around it."""

    parametrisation: Parametrisation
    mode: Array  # θ*, (P,)
    axes: Array  # A with A Aᵀ = H⁻¹, (P, P)
    log_mass: float  # of the Gaussian that fits it: Laplace's approximation of its evidence

    def excludes(self, theta: Array) -> bool:
        """Whether θ is too far from this peak to be on it."""
        return bool(np.linalg.norm(np.linalg.solve(self.axes, theta - self.mode)) > FAR)


@dataclass(frozen=True)
class Fit:
    """Hyperparameters of a model of given data: draws from their posterior around one or more peaks."""

    peaks: list[Peak]
    draws: list[Array]  # (K_i, P) for each peak
    effective: float  # how many of the draws are different, as an effective sample size
    seed: int

    @property
    def data(self) -> Data:
        return self.peaks[0].parametrisation.data

    @property
    def measure(self) -> Measure:
        return self.peaks[0].parametrisation.measure

    def units(self, source: int) -> tuple[float, float]:
        """The level and the spread of a source: zero and one in standard units."""
        parametrisation = self.peaks[0].parametrisation
        return float(parametrisation.levels[source]), float(parametrisation.spreads[source])

    def pairs(self) -> Iterator[tuple[Parametrisation, Array]]:
        """Each draw, and what it is a draw for."""
        for peak, draws in zip(self.peaks, self.draws, strict=True):
            yield from ((peak.parametrisation, theta) for theta in draws)

    def posteriors(self) -> list[Posterior]:
        """The posterior of the sources for each of the draws."""
        return [parametrisation.posterior(theta) for parametrisation, theta in self.pairs()]

    def standardised(self) -> Fit:
        """The same, in standard units of the outputs."""
        return self._with([peak.parametrisation.standardised() for peak in self.peaks])

    def given(self, data: Data) -> Fit:
        """The same draws, given other data."""
        return self._with([peak.parametrisation.given(data) for peak in self.peaks])

    def plain(self) -> dict[str, Any]:
        """The draws, as plain numbers and lists."""
        relations = [list(peak.parametrisation.relation) for peak in self.peaks]
        return {"effective": self.effective, "relations": relations, "theta": [draws.tolist() for draws in self.draws]}

    @classmethod
    def recalled(cls, parametrisation: Parametrisation, plain: dict[str, Any], seed: int) -> Fit:
        """From plain numbers."""
        draws = [np.array(theta, dtype=float) for theta in plain["theta"]]
        peaks = [
            Peak(parametrisation.related(relation), theta[0], np.eye(parametrisation.size), 0.0)
            for relation, theta in zip(plain["relations"], draws, strict=True)
        ]
        return cls(peaks, draws, plain["effective"], seed)

    def _with(self, parametrisations: list[Parametrisation]) -> Fit:
        pairs = zip(self.peaks, parametrisations, strict=True)
        return replace(self, peaks=[replace(peak, parametrisation=other) for peak, other in pairs])


def most_probable(parametrisation: Parametrisation, seed: int = 0) -> Fit:
    """The most probable hyperparameters alone."""
    peak = _peak(parametrisation, maximise(parametrisation, seed)[0])
    return Fit([peak], [peak.mode[None]], 1.0, seed)


def marginalised(parametrisation: Parametrisation, n_draws: int, seed: int = 0) -> Fit:
    """Draws of the hyperparameters from their posterior.

    It may not be clear which of the sources differs from the others, and a source may also be unrelated to the primary
    one, or run against it: each of these has a peak of its own, and the draws are divided among them by their
    probability.
    """
    mode, best = maximise(parametrisation, seed)
    peaks = [_peak(parametrisation, mode)]
    mirrored, values = climbed(
        parametrisation.log_posterior_and_grad, parametrisation.mirrored(mode), parametrisation.bounds, CLOSE
    )
    for other_mode, value in zip(mirrored, values, strict=True):
        if value > best - HOPELESS and all(peak.excludes(other_mode) for peak in peaks):
            peak = _peak(parametrisation, other_mode)
            peaks += [peak] if all(known.excludes(peak.mode) for known in peaks) else []
    for relation, log_odds in _other_relations(parametrisation):
        other = parametrisation.related(relation)
        starts = np.concatenate([mode[None], parametrisation.guesses()[1::2]])
        found, values = climbed(other.log_posterior_and_grad, starts, other.bounds, ROUGHLY)
        if values.max() + log_odds > best - HOPELESS:
            found, values = climbed(other.log_posterior_and_grad, found, other.bounds, CLOSE)
            peaks.append(_peak(other, found[values.argmax()], log_odds))
    masses = np.array([peak.log_mass for peak in peaks])
    shares = np.exp(masses - masses.max())
    shares /= shares.sum()
    counts = np.diff(np.rint(n_draws * np.cumsum(shares)).astype(int), prepend=0)
    peaks, counts = [p for p, n in zip(peaks, counts, strict=True) if n], counts[counts > 0]
    return _sampled(peaks, counts.tolist(), seed)


def tempered(fit: Fit, power: float) -> Fit:
    """The same, by a posterior for which the likelihood counts to the given power."""
    peaks = []
    for peak in fit.peaks:
        doubtful = peak.parametrisation.tempered(power)
        mode, _ = climbed(doubtful.log_posterior_and_grad, peak.mode[None], doubtful.bounds, CLOSE)
        peaks.append(_peak(doubtful, mode[0]))
    return _sampled(peaks, [len(draws) for draws in fit.draws], fit.seed)


def _other_relations(parametrisation: Parametrisation) -> Iterator[tuple[list[int], float]]:
    """How else sources may be related to the primary one, and the log prior odds: one differs, or all are unrelated."""
    L = parametrisation.n_sources
    if not parametrisation.relations_are_open:
        return
    for source in range(1, L):
        for sign, log_odds in ((0, UNRELATED), (-1, OPPOSITE)):
            yield [sign if i == source else 1 for i in range(L)], log_odds
    if L > 2:
        yield [1] + [0] * (L - 1), (L - 1) * UNRELATED


def _sampled(peaks: list[Peak], counts: list[int], seed: int) -> Fit:
    found = [sample(peak, n, seed) for peak, n in zip(peaks, counts, strict=True)]
    effective = sum(number for _, number in found)
    if effective < sum(counts) / 3:
        warnings.warn(
            "hyperparameters could not be sampled: only the most probable are used, and the error bar is too small",
            stacklevel=5,
        )
    return Fit(peaks, [draws for draws, _ in found], effective, seed)


def maximise(parametrisation: Parametrisation, seed: int = 0) -> tuple[Array, float]:
    """The most probable θ and its log density, found from guesses and from the best of many draws from the prior."""
    draws = parametrisation.prior_draws(SCREENED, seed)
    values, _ = parametrisation.log_posterior_and_grad(draws)
    starts = np.concatenate([parametrisation.guesses(), draws[np.argsort(-values, kind="stable")[:STARTS]]])
    found, values = climbed(parametrisation.log_posterior_and_grad, starts, parametrisation.bounds, CLOSE)
    if not np.isfinite(values).any():
        raise ValueError("no hyperparameters fit these observations: their values are too extreme")
    return np.asarray(found[values.argmax()]), float(values.max())


def sample(peak: Peak, n_draws: int, seed: int = 0) -> tuple[Array, float]:
    """Draws of θ from its posterior around a peak, and their effective number.

    If fewer than a third are different, the moves are repeated with smaller steps; if that does not help, all of them
    are the most probable θ.
    """
    parametrisation, axes = peak.parametrisation, peak.axes
    z = ndtri(parametrisation.even_draws(n_draws, seed))
    Theta = peak.mode + z @ axes.T
    values, gradients = parametrisation.log_posterior_and_grad(Theta)
    kept = _resampled(values + 0.5 * np.sum(z**2, axis=1))
    Theta, values, gradients = Theta[kept], values[kept], gradients[kept]

    rng = np.random.default_rng(seed)
    step = STEP
    for _ in range(PATIENCE):
        for _ in range(TRAJECTORIES):
            momenta = parametrisation.in_place_of_sources(rng.normal(size=Theta.shape))
            jitter, threshold = rng.uniform(0.7, 1.3, size=(n_draws, 1)), np.log(rng.uniform(size=n_draws))
            new, new_values, new_gradients, gain = _trajectory(
                parametrisation, axes, Theta, values, gradients, momenta, step * jitter
            )
            moved = threshold < gain
            Theta, values = np.where(moved[:, None], new, Theta), np.where(moved, new_values, values)
            gradients = np.where(moved[:, None], new_gradients, gradients)
        _, counts = np.unique(Theta, axis=0, return_counts=True)
        effective = float(n_draws**2 / np.sum(counts**2))
        if effective >= n_draws / 3:
            return Theta, effective
        step /= 2
    return np.tile(peak.mode, (n_draws, 1)), 1.0


def _trajectory(
    parametrisation: Parametrisation, axes: Array, Theta: Array, values: Array, gradients: Array, p: Array, step: Array
) -> tuple[Array, Array, Array, Array]:
    """Where leapfrog steps lead, with the density and its gradient there, and the change in log probability."""
    before = values - 0.5 * np.sum(p**2, axis=1)
    p = p + 0.5 * step * (gradients @ axes)
    for leap in range(LEAPS):
        Theta = Theta + step * (p @ axes.T)
        values, gradients = parametrisation.log_posterior_and_grad(Theta)
        p = p + (step if leap < LEAPS - 1 else 0.5 * step) * (gradients @ axes)
    return Theta, values, gradients, values - 0.5 * np.sum(p**2, axis=1) - before


def _peak(parametrisation: Parametrisation, mode: Array, log_odds: float = 0.0) -> Peak:
    """What lies around a mode, which damped Newton steps bring to its place first."""
    around = _curvature(parametrisation, mode, 1e-3 * np.eye(len(mode)))
    for _ in range(NEWTON_STEPS):
        around = _curvature(parametrisation, mode, around.steps())  # as far as the density reaches in each direction
        tried = mode + np.outer(DAMPING, around.axes @ (around.axes @ around.gradient))
        values, _ = parametrisation.log_posterior_and_grad(tried)
        best = int(values.argmax())
        if not values[best] > around.value + NEGLIGIBLE:
            break
        mode = tried[best]
    return Peak(parametrisation, mode, around.axes, around.value + log_odds + around.log_volume)


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


def _curvature(parametrisation: Parametrisation, mode: Array, steps: Array) -> _Curvature:
    """H by central differences of the gradient along the columns of ``steps``, which are orthogonal, in one call."""
    around = np.concatenate([mode + steps.T, mode - steps.T, mode[None]])
    values, gradients = parametrisation.log_posterior_and_grad(around)
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
