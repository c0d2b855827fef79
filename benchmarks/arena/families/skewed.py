"""Inputs with skewed and heavy-tailed distributions: gamma, log-normal, exponential and Student's t."""

from __future__ import annotations

import numpy as np
from scipy import stats

import amsbq
from benchmarks.arena.arrays import Array

from ..problem import Moments, Problem, added
from ..quadrature import by_product


def skewed() -> list[Problem]:
    """Return problems with 1 to 4 inputs whose distributions are skewed."""
    gamma = [stats.gamma(5, loc=1, scale=4)]
    lognormal = [stats.lognorm(0.6), stats.lognorm(0.3, scale=2)]
    waits = [stats.expon(scale=1.0), stats.expon(scale=0.5), stats.gamma(2, scale=0.5)]
    heavy = [stats.t(4), stats.t(4)]
    mixed = [stats.gamma(3, scale=0.3), stats.lognorm(0.4), stats.t(4, scale=0.5), stats.uniform(0, 1)]
    tails = [stats.t(3)]
    normal = amsbq.Gaussian([0.5, -1, 0], [[1, 0.5, 0], [0.5, 2, 0.3], [0, 0.3, 0.5]])
    direction = np.array([0.6, -0.4, 0.8])

    def decay(X: Array) -> Array:
        return np.exp(-0.1 * X[:, 0])

    def wave(X: Array) -> Array:
        return np.sin(X @ direction)

    def wave_moments() -> Moments:  # X @ direction is normal
        middle, variance = float(direction @ normal.mean), float(direction @ normal.cov @ direction)
        mean = np.sin(middle) * np.exp(-variance / 2)
        square = 0.5 - 0.5 * np.cos(2 * middle) * np.exp(-2 * variance)
        return Moments(float(mean), float(np.sqrt(square - mean**2)))

    def cosine(X: Array) -> Array:
        return np.cos(X[:, 0])

    def cosine_moments() -> Moments:  # the characteristic function of t(3) is (1 + √3 s) exp(-√3 s)
        mean, twice = ((1 + np.sqrt(3) * s) * np.exp(-np.sqrt(3) * s) for s in (1, 2))
        return Moments(float(mean), float(np.sqrt(0.5 + 0.5 * twice - mean**2)))

    def load(X: Array) -> Array:
        return X[:, 0] * np.sqrt(X[:, 1]) + 0.3 * np.log(X[:, 0] * X[:, 1])

    def delay(X: Array) -> Array:
        return X[:, 0] / (1 + X[:, 1]) + np.exp(-X[:, 2]) * X[:, 0] + 0.2 * X[:, 2] ** 2

    def return_(X: Array) -> Array:
        return np.tanh(X[:, 0] + 0.5 * X[:, 1]) + 0.3 * np.sqrt(1 + X[:, 0] ** 2) / (1 + 0.1 * X[:, 1] ** 2)

    def blend(X: Array) -> Array:
        return X[:, 0] * X[:, 1] + np.sin(X[:, 2]) * X[:, 3] + np.exp(-X[:, 1])

    strengths = [stats.weibull_min(3, scale=2), stats.gumbel_r(0.5, 0.2)]

    def margin(X: Array) -> Array:
        return np.log1p(X[:, 0] ** 2) - 0.5 * X[:, 1] * np.sqrt(1 + X[:, 0])

    return [
        Problem(
            "decay under a gamma distribution (seen)",
            gamma,
            (decay, lambda X: np.exp(-0.12 * X[:, 0]) + 0.05),
            (1.0, 0.05),
            lambda: Moments(
                float(np.exp(-0.1) * 1.4**-5), float(np.sqrt(np.exp(-0.2) * 1.8**-5 - np.exp(-0.2) * 1.4**-10))
            ),
            seen=True,
        ),
        Problem(
            "a load with two log-normal inputs",
            lognormal,
            (load, lambda X: X[:, 0] * (0.7 + 0.35 * X[:, 1])),
            (1.0, 0.1),
            by_product(lognormal, load, 20),
        ),
        Problem(
            "a wave under a correlated Gaussian (seen)",
            normal,
            (wave, lambda X: np.sin(X @ direction + 0.2) + 0.2 * X[:, 0]),
            (1.0, 0.05),
            wave_moments,
            seen=True,
        ),
        Problem(
            "a delay with exponential and gamma inputs",
            waits,
            (delay, lambda X: X[:, 0] * (1.7 - 0.6 * X[:, 1]) + 0.2 * X[:, 2]),
            (1.0, 0.1),
            by_product(waits, delay, 6),
        ),
        Problem(
            "a wave under Student's t (seen)",
            tails,
            (cosine, lambda X: 0.9 * np.cos(1.1 * X[:, 0]) + 0.2),
            (1.0, 0.05),
            cosine_moments,
            seen=True,
        ),
        Problem(
            "two inputs with Student's t(4)",
            heavy,
            (return_, lambda X: 0.9 * np.tanh(X[:, 0] + 0.5 * X[:, 1]) + 0.1),
            (1.0, 0.1),
            by_product(heavy, return_, 20),
        ),
        Problem(
            "four inputs of four kinds",
            mixed,
            (blend, lambda X: 0.9 * X[:, 0] * X[:, 1] + 0.5 * np.sin(X[:, 2])),
            (1.0, 0.05),
            _blend_moments,
        ),
        *added(
            Problem(
                "strength and load, Weibull and Gumbel",
                strengths,
                (margin, lambda X: 0.9 * X[:, 0] - 0.8 * X[:, 1]),
                (1.0, 0.1),
                by_product(strengths, margin, 20),
            )
        ),
    ]


def _blend_moments() -> Moments:
    """Return the moments of g h + sin(s) u + exp(-h) from one-dimensional integrals; E sin(s) = 0."""
    g, h, s = stats.gamma(3, scale=0.3), stats.lognorm(0.4), stats.t(4, scale=0.5)
    at_h = by_product([h], lambda X: np.exp(-X[:, 0]), 20)()
    cross = by_product([h], lambda X: X[:, 0] * np.exp(-X[:, 0]), 20)().mean
    sine = by_product([s], lambda X: np.sin(X[:, 0]), 20)()
    mean = g.mean() * h.mean() + at_h.mean
    square = (g.var() + g.mean() ** 2) * (h.var() + h.mean() ** 2) + (sine.std**2 + sine.mean**2) / 3
    square += at_h.std**2 + at_h.mean**2 + 2 * g.mean() * cross
    return Moments(float(mean), float(np.sqrt(square - mean**2)))
