"""Learning the hyperparameters: the most probable θ, and draws of θ from its posterior.

Notation: θ (P,) and Θ (K, P) as in `hyper`; H the negative Hessian of the log posterior at its maximum θ*.

Draws come from a Gaussian around θ* with covariance H⁻¹ (Laplace's approximation), are resampled by their importance
weights, and then moved by Hamiltonian Monte Carlo in coordinates where H is the identity. So what the Gaussian gets
wrong is corrected, and none of it depends on the units, or on the order of the observations or of the sources.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtri

from .checks import Array, IntArray
from .hyper import Parametrisation

SCREENED = 64  #: draws from the prior among which to look for places to start from
STARTS = 2  #: how many of them
TRAJECTORIES, LEAPS, STEP = 2, 6, 0.35  #: of Hamiltonian Monte Carlo: each goes about two standard deviations
PATIENCE = 3  #: how often to try again with half the step if draws do not move


@dataclass(frozen=True)
class Fit:
    """Hyperparameters of a model of given data."""

    parametrisation: Parametrisation
    mode: Array  # (P,), the most probable θ
    draws: Array  # (K, P); the mode alone if K is 1
    effective: float  # how many of the draws are different, as an effective sample size
    seed: int


def maximise(parametrisation: Parametrisation, seed: int = 0) -> Array:
    """The most probable θ, found from the best of many draws from the prior."""
    draws = np.concatenate([parametrisation.start()[None], parametrisation.prior_draws(SCREENED, seed)])
    values, _ = parametrisation.log_posterior_and_grad(draws)
    order = np.argsort(-values, kind="stable")
    if not np.isfinite(values[order[0]]):
        raise ValueError("no hyperparameters fit these observations: their values are too extreme")
    found = [climb(parametrisation, start) for start in draws[order[:STARTS]]]
    return max(found, key=lambda end: end[1])[0]


def climb(parametrisation: Parametrisation, start: Array) -> tuple[Array, float]:
    """The θ of highest density reached from a start by L-BFGS-B with exact gradients, and its log density."""

    def objective(theta: Array) -> tuple[float, Array]:
        value, gradient = parametrisation.log_posterior_and_grad(theta[None])
        return -float(value[0]), -gradient[0]

    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=parametrisation.bounds())
    best, value = (found.x, -float(found.fun)) if np.isfinite(found.fun) else (start, -objective(start)[0])
    return np.asarray(best), value


def sample(parametrisation: Parametrisation, mode: Array, n_draws: int, seed: int = 0) -> tuple[Array, float]:
    """Draws of θ from its posterior, and their effective number.

    If fewer than a third are different, the moves are repeated with smaller steps; if that does not help, the most
    probable θ is returned alone, with a warning.
    """
    axes = _axes(parametrisation, mode)
    z = ndtri(parametrisation.even_draws(n_draws, seed))
    Theta = mode + z @ axes.T
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
    warnings.warn(
        "hyperparameters could not be sampled: the most probable ones are used alone, and the error bar is too small",
        stacklevel=2,
    )
    return mode[None], 1.0


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


def _axes(parametrisation: Parametrisation, mode: Array, step: float = 1e-3) -> Array:
    """A with A Aᵀ = H⁻¹, by central differences of the gradient, all in one call."""
    shifts = step * np.eye(len(mode))
    _, gradients = parametrisation.log_posterior_and_grad(np.concatenate([mode + shifts, mode - shifts]))
    forward, backward = np.split(gradients, 2)
    H = (backward - forward) / (2 * step)
    eigenvalues, V = np.linalg.eigh(0.5 * (H + H.T))
    scales = np.maximum(eigenvalues, 0.02) ** -0.5  # no prior is wider than that
    return np.asarray((V * scales) @ V.T)  # the symmetric root: it goes with θ when sources change places


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
