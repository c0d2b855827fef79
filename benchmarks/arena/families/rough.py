"""Functions that are hard for a stationary Gaussian process: kinks and steps, and those that vary fast in one place."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import special, stats

from benchmarks.arena.arrays import Array

from ..problem import Function, Moments, Problem, added, unit_cube
from ..quadrature import by_breaks, by_panels, by_product, corner_sum
from .genz import gaussian_peak

U = stats.uniform


def above(a: Array, b: float, power: int) -> Callable[[], Moments]:
    """Return the moments of (a·x - b)₊^power on the unit cube; power 0 is a step."""
    mean, square = corner_sum(a, b, power), corner_sum(a, b, 2 * power)
    return lambda: Moments(mean, float(np.sqrt(square - mean**2)))


def rough() -> list[Problem]:
    """Return ramps, steps, cusps and a root."""
    two, three, five = np.array([1.0, 0.7]), np.array([1.0, 0.8, 0.5]), np.array([1.0, 0.8, 0.6, 0.4, 0.2])

    def ramp(a: Array, b: float) -> Function:
        return lambda X: np.maximum(X @ a - b, 0.0)

    def softened(a: Array, b: float, width: float) -> Function:
        return lambda X: width * np.logaddexp(0, (X @ a - b) / width)

    def valley(X: Array) -> Array:
        return np.abs(X[:, 0] - 0.37) ** 0.5 + np.abs(X[:, 1] - 0.61) + X[:, 0] * X[:, 1]

    def dents(X: Array) -> Array:
        return np.abs(4 * X - 2).sum(axis=1) + np.maximum(np.abs(X[:, 0] - 0.5), 0.2)

    def jumps(X: Array) -> Array:
        return np.sin(3 * X[:, 0]) + (X[:, 0] > 0.31) - 1.5 * (X[:, 0] > 0.67)

    def larger(X: Array) -> Array:
        return np.maximum(X[:, 0] ** 2, 0.7 - 0.5 * X[:, 1])

    return [
        Problem(
            "a ramp in two inputs",
            unit_cube(2),
            (ramp(two, 0.8), softened(two, 0.75, 0.1)),
            (1.0, 0.1),
            above(two, 0.8, 1),
        ),
        Problem(
            "a step in three inputs",
            unit_cube(3),
            (lambda X: (X @ three > 1.2).astype(float), lambda X: special.expit(12 * (X @ three - 1.1))),
            (1.0, 0.1),
            above(three, 1.2, 0),
        ),
        Problem(
            "cusps in two inputs",
            unit_cube(2),
            (valley, lambda X: np.abs(X[:, 0] - 0.4) + np.abs(X[:, 1] - 0.55) + 0.8 * X[:, 0] * X[:, 1]),
            (1.0, 0.1),
            _valley_moments,
        ),
        Problem(
            "a ramp in five inputs",
            unit_cube(5),
            (ramp(five, 1.6), softened(five, 1.4, 0.2)),
            (1.0, 0.05),
            above(five, 1.6, 1),
        ),
        Problem(
            "dents in three inputs",
            unit_cube(3),
            (dents, lambda X: 4 * np.sqrt((2 * X - 1) ** 2 + 0.02).sum(axis=1) - 1.0),
            (1.0, 0.1),
            by_panels(unit_cube(3), dents, [[0.3, 0.5, 0.7], [0.5], [0.5]], 8),
        ),
        *added(
            Problem(
                "two jumps, one input",
                unit_cube(1),
                (jumps, lambda X: np.sin(3 * X[:, 0]) + np.tanh(20 * (X[:, 0] - 0.3)) / 2),
                (1.0, 0.1),
                by_breaks(unit_cube(1), jumps, lambda rest: [[0.31], [0.67]], [30]),
            ),
            Problem(
                "the larger of two surfaces, two inputs",
                unit_cube(2),
                (
                    larger,
                    lambda X: 0.1 * np.logaddexp(10 * X[:, 0] ** 2, 10 * (0.7 - 0.5 * X[:, 1])),
                    lambda X: X[:, 0],
                ),
                (1.0, 0.2, 0.02),
                by_breaks(unit_cube(2), larger, lambda rest: [np.sqrt(0.7 - 0.5 * rest[:, 0])], [30, 40]),
            ),
        ),
    ]


def _valley_moments() -> Moments:
    """Return the moments of √|x - 0.37| + |y - 0.61| + x y in closed form."""

    def absolute(c: float, p: float, q: int) -> float:  # E[|x - c|^p x^q], by x = c ± t
        sides = [(1, 1 - c), (-1, c)]
        terms = [(special.comb(q, j) * c ** (q - j), p + j + 1, j) for j in range(q + 1)]
        return float(sum(a * sign**j * end**power / power for sign, end in sides for a, power, j in terms))

    root, bend = partial(absolute, 0.37), partial(absolute, 0.61)
    mean = root(0.5, 0) + bend(1, 0) + 0.25
    square = root(1, 0) + bend(2, 0) + 1 / 9
    square += 2 * (root(0.5, 0) * bend(1, 0) + root(0.5, 1) * 0.5 + 0.5 * bend(1, 1))
    return Moments(mean, float(np.sqrt(square - mean**2)))


def non_stationary() -> list[Problem]:
    """Return functions that vary much faster in one region: a chirp, steps, peaks and layers."""
    one = unit_cube(1)
    chirp_mean = special.fresnel(np.sqrt(2 * 20 / np.pi))[0] * np.sqrt(np.pi / 40)
    chirp_square = 0.5 - 0.5 * special.fresnel(np.sqrt(4 * 20 / np.pi))[1] * np.sqrt(np.pi / 80)
    peak, _ = gaussian_peak(np.array([12.0, 12.0]), np.array([0.7, 0.3]))

    def step(k: float, at: float) -> Function:
        return lambda X: special.expit(k * (X[:, 0] - at))

    def burst(X: Array) -> Array:
        return np.exp(-60 * (X[:, 0] - 0.7) ** 2) * np.sin(45 * X[:, 0]) + 0.5 * X[:, 0]

    def peaked(X: Array) -> Array:
        return peak(X) + 0.1 * X[:, 0]

    def layers(X: Array) -> Array:
        return np.exp(-15 * X[:, 0]) * (1 + X[:, 1]) + np.exp(-8 * (1 - X[:, 2])) * np.cos(3 * X[:, 1])

    def ridge(X: Array) -> Array:
        return np.tanh(15 * (X[:, 0] + 0.5 * X[:, 1] - 0.8)) + 0.3 * np.sin(4 * X[:, 1])

    def swept(X: Array, shift: float = 0.0) -> Array:
        return np.sin(3 + 12 * X[:, 0] ** 3 + shift) * (1 + X[:, 1]) + np.exp(-6 * X[:, 1])

    return [
        Problem(
            "chirp (seen)",
            one,
            (lambda X: np.sin(20 * X[:, 0] ** 2), lambda X: np.sin(20 * X[:, 0] ** 2 + 0.2) + 0.3 * X[:, 0]),
            (1.0, 0.05),
            lambda: Moments(float(chirp_mean), float(np.sqrt(chirp_square - chirp_mean**2))),
            seen=True,
        ),
        Problem(
            "a burst of waves",
            one,
            (burst, lambda X: 0.8 * burst(X - 0.01) + 0.1),
            (1.0, 0.1),
            by_product(one, burst, 120),
        ),
        Problem(
            "steep step (seen)",
            one,
            (step(60, 0.37), step(30, 0.4)),
            (1.0, 0.05),
            by_panels(one, step(60, 0.37), [[0.2, 0.3, 0.37, 0.44, 0.54]], 30),
            seen=True,
        ),
        Problem(
            "two layers in three inputs",
            unit_cube(3),
            (layers, lambda X: np.exp(-12 * X[:, 0]) + np.exp(-7 * (1 - X[:, 2]))),
            (1.0, 0.1),
            by_product(unit_cube(3), layers, 40),
        ),
        Problem(
            "narrow peak in two inputs (seen)",
            unit_cube(2),
            (peaked, lambda X: 0.8 * peak(X - 0.03) + 0.1 * X[:, 1]),
            (1.0, 0.05),
            by_product(unit_cube(2), peaked, 120),
            seen=True,
        ),
        Problem(
            "an oblique step in two inputs",
            unit_cube(2),
            (ridge, lambda X: np.tanh(8 * (X[:, 0] + 0.45 * X[:, 1] - 0.8))),
            (1.0, 0.05),
            by_product(unit_cube(2), ridge, 200),
        ),
        *added(
            Problem(
                "waves that grow faster along one input, two inputs",
                unit_cube(2),
                (swept, lambda X: swept(X, 0.15) + 0.2),
                (1.0, 0.1),
                by_product(unit_cube(2), swept, 60),
            )
        ),
    ]
