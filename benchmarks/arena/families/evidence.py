"""Evidence: logarithms of likelihoods that are narrow, correlated, curved or have two modes, and of their integrals.

Secondary sources are the likelihoods of fewer data, of coarser models, or of a Gaussian approximation. The truth is the
logarithm of the integral over the prior; errors are in units of 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import logsumexp, ndtr

from benchmarks.arena.arrays import Array

from ..problem import Function, Moments, Problem, unit_cube
from ..quadrature import line, panels

U, N = stats.uniform, stats.norm


def quadratic(mean: Array, precision: Array) -> Function:
    """Return -(x - m)ᵀ P (x - m) / 2."""
    return lambda X: -0.5 * np.einsum("ni,ij,nj->n", X - mean, precision, X - mean)


def gaussian_evidence(mean: Array, precision: Array) -> float:
    """Return log E exp(-(x - m)ᵀ P (x - m) / 2) for standard normal x."""
    covariance = np.linalg.inv(precision) + np.eye(len(mean))
    _, log_determinant = np.linalg.slogdet(precision @ covariance)
    return float(-0.5 * mean @ np.linalg.solve(covariance, mean) - 0.5 * log_determinant)


def by_log_product(
    marginals: Sequence[Any], f: Function, ends: Sequence[Sequence[float]], n: int
) -> Callable[[], Moments]:
    """Return a function that integrates exp(f) over uniform inputs by Gauss rules between ends, within the support."""

    def log_integral(n: int) -> float:
        rules = [panels(at, n) for at in ends]
        grids = np.meshgrid(*(nodes for nodes, _ in rules), indexing="ij")
        X = np.column_stack([grid.ravel() for grid in grids])
        widths = [high - low for low, high in (marginal.support() for marginal in marginals)]
        logs = sum(
            np.meshgrid(*(np.log(w / width) for (_, w), width in zip(rules, widths, strict=True)), indexing="ij")
        )
        return float(logsumexp(f(X) + np.ravel(logs)))

    def moments() -> Moments:
        fine, coarse = log_integral(n), log_integral(-(-3 * n // 4))
        return Moments(fine, 1.0, abs(fine - coarse))

    return moments


def evidence() -> list[Problem]:
    """Return log-likelihoods of 1 to 3 inputs, for which the logarithm of the evidence is estimated."""
    box, cube = [U(-2, 4)] * 2, unit_cube(2)
    centre, widths = np.array([0.37, 0.62]), np.array([0.02, 0.05])
    m3, P3 = np.array([0.8, -0.5, 1.0]), np.array([[30.0, -24.0, 0.0], [-24.0, 30.0, 6.0], [0.0, 6.0, 12.0]])
    modes = (np.array([1.2, 0.9]), np.array([-0.9, -0.6]))
    shapes = (np.array([[30.0, 20.0], [20.0, 30.0]]), np.array([[50.0, 0.0], [0.0, 12.0]]))
    rng = np.random.default_rng(11)
    times = np.linspace(0.2, 4, 12)
    decays = 0.7 * np.exp(-0.6 * times) + 0.03 * rng.normal(size=12)
    beats = np.cos(5.3 * times) * np.exp(-0.4 * times) + 0.15 * rng.normal(size=12)

    def narrow(X: Array) -> Array:
        return -0.5 * np.sum(((X - centre) / widths) ** 2, axis=1)

    def narrow_moments() -> Moments:
        mass = ndtr((1 - centre) / widths) - ndtr(-centre / widths)
        return Moments(float(np.sum(np.log(np.sqrt(2 * np.pi) * widths * mass))), 1.0)

    def banana(X: Array, width: float = 0.15, bend: float = 1.0) -> Array:
        return -0.5 * X[:, 0] ** 2 - 0.5 * ((X[:, 1] - bend * X[:, 0] ** 2 + 1) / width) ** 2

    def banana_moments() -> Moments:  # over the second input in closed form
        def value(n: int) -> float:
            x, w = panels(np.linspace(-2, 2, 9).tolist(), n)
            middle = x**2 - 1
            inner = 0.15 * np.sqrt(2 * np.pi) * (ndtr((2 - middle) / 0.15) - ndtr((-2 - middle) / 0.15))
            return float(np.log(w @ (np.exp(-0.5 * x**2) * inner) / 16))

        return Moments(value(60), 1.0, abs(value(60) - value(45)))

    def twin(X: Array, left: float = 0.6, shift: float = 0.0) -> Array:
        parts = [np.log(left) - 0.5 * ((X[:, 0] - 0.25 - shift) / 0.05) ** 2 - np.log(0.05)]
        parts += [np.log(1 - left) - 0.5 * ((X[:, 0] - 0.75) / 0.03) ** 2 - np.log(0.03)]
        return np.logaddexp(*parts)

    def twin_moments() -> Moments:
        masses = [ndtr((1 - c) / s) - ndtr(-c / s) for c, s in ((0.25, 0.05), (0.75, 0.03))]
        return Moments(float(np.log(np.sqrt(2 * np.pi) * (0.6 * masses[0] + 0.4 * masses[1]))), 1.0)

    def decay(X: Array, every: int = 1) -> Array:
        predicted = X[:, [0]] * np.exp(-X[:, [1]] * times[::every])
        return -0.5 * every * np.sum(((decays[::every] - predicted) / 0.03) ** 2, axis=1)

    def two_modes(X: Array) -> Array:
        return np.logaddexp(*(quadratic(m, P)(X) for m, P in zip(modes, shapes, strict=True)))

    def two_modes_moments() -> Moments:
        return Moments(float(np.logaddexp(*(gaussian_evidence(m, P) for m, P in zip(modes, shapes, strict=True)))), 1.0)

    def funnel(X: Array, depth: float = 1.0) -> Array:
        scale = np.exp(-depth * X[:, 0])
        return -0.5 * (X[:, 1] ** 2 + (X[:, 2] - 0.5) ** 2) * 4 * scale - 0.5 * (X[:, 0] - 0.5) ** 2

    def funnel_moments() -> Moments:  # over the last two inputs in closed form
        def value(n: int) -> float:
            x, w = line(N(0, 1), n)
            p = 4 * np.exp(-x)  # E exp(-p (z - c)² / 2) = exp(-c² p / (2 (1 + p))) / √(1 + p)
            inner = np.exp(-0.125 * p / (1 + p)) / (1 + p)
            return float(np.log(w @ (np.exp(-0.5 * (x - 0.5) ** 2) * inner)))

        return Moments(value(160), 1.0, abs(value(160) - value(120)))

    def beat(X: Array, every: int = 1) -> Array:
        predicted = np.cos(X[:, [0]] * times[::every]) * np.exp(-X[:, [1]] * times[::every])
        return -0.5 * every * np.sum(((beats[::every] - predicted) / 0.15) ** 2, axis=1)

    waves = [U(3, 4), U(0, 1)]
    problem = partial(Problem, log=True)
    return [
        problem(
            "narrow, two inputs", cube, (narrow, lambda X: narrow(0.97 * X + 0.02) - 0.5), (1.0, 0.1), narrow_moments
        ),
        problem(
            "correlated, three normal inputs",
            [N(0, 1)] * 3,
            (quadratic(m3, P3), quadratic(1.1 * m3, 0.8 * P3)),
            (1.0, 0.1),
            lambda: Moments(gaussian_evidence(m3, P3), 1.0),
        ),
        problem("curved, two inputs", box, (banana, partial(banana, width=0.2, bend=0.9)), (1.0, 0.1), banana_moments),
        problem(
            "two modes, one input", unit_cube(1), (twin, partial(twin, left=0.5, shift=0.02)), (1.0, 0.1), twin_moments
        ),
        problem(
            "a decay from twelve values, and from four",
            [U(0, 2)] * 2,
            (decay, partial(decay, every=3)),
            (1.0, 0.3),
            by_log_product([U(0, 2)] * 2, decay, [[0, 0.4, 0.6, 0.8, 1, 2]] * 2, 40),
        ),
        problem(
            "two modes of different shapes, two normal inputs",
            [N(0, 1)] * 2,
            (two_modes, quadratic(modes[0], 0.7 * shapes[0]), quadratic(modes[1], 0.7 * shapes[1])),
            (1.0, 0.1, 0.1),
            two_modes_moments,
        ),
        problem(
            "a funnel, three normal inputs",
            [N(0, 1)] * 3,
            (funnel, partial(funnel, depth=0.6)),
            (1.0, 0.1),
            funnel_moments,
        ),
        problem(
            "a frequency and its damping, several modes",
            waves,
            (beat, partial(beat, every=2)),
            (1.0, 0.5),
            by_log_product(waves, beat, [np.linspace(3, 7, 9).tolist(), [0, 0.5, 1]], 30),
        ),
    ]
