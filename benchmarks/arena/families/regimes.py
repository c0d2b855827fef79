"""Regimes: sources that behave differently in a part of the domain, and secondary ones that are good in a part of it.

A switch, a shock or a layer takes up a part of the domain; elsewhere the function is smooth. In `regional` the primary
source is smooth, and a secondary source is very informative about it in one region and uninformative in another.
"""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit

from benchmarks.arena.arrays import Array

from ..problem import Function, Moments, Problem, unit_cube
from ..quadrature import by_breaks, by_product

U, N = stats.uniform, stats.norm


def switches() -> list[Problem]:
    """Return layers, shocks and switches in 1 to 4 inputs."""
    load = [U(0, 2), U(0.8, 0.4)]
    rain = [U(0, 1)] * 4

    def shocked(X: Array, at: float = 0.83, width: float = 0.01) -> Array:
        return np.sin(4 * X[:, 0]) + 1.5 * np.tanh((X[:, 0] - at) / width)

    def flutter(X: Array, speed: float = 0.7, gain: float = 1.0) -> Array:
        beyond = np.maximum(X[:, 0] + 0.3 * X[:, 1] - speed, 0.0)
        return 0.5 * X[:, 0] * X[:, 1] + gain * np.sin(40 * beyond) * beyond

    def thermostat(X: Array, gain: float = 3.0) -> Array:
        return np.clip(gain * np.sin(5 * X[:, 0]) * (1 + X[:, 0]), -1.0, 2.0) + 0.3 * X[:, 0] ** 2

    def edge(X: Array, thickness: float = 0.02) -> Array:
        thin = thickness * (1 + X[:, 1])
        return (1 - np.exp(-X[:, 0] / thin)) * np.cos(2 * X[:, 2]) + X[:, 1] * X[:, 2]

    def ignition(X: Array, steep: float = 60.0, at: float = 1.45) -> Array:
        return 0.3 * X[:, 0] + 0.2 * X[:, 1] ** 2 + 2 * expit(steep * (X[:, 0] + X[:, 1] - at))

    def resonance(X: Array, width: float = 0.02, shift: float = 0.0) -> Array:
        return np.cos(2 * X[:, 1]) + 1 / (1 + ((X[:, 0] - 0.6 - 0.1 * X[:, 1] - shift) / width) ** 2)

    def runoff(X: Array, capacity: float = 0.55) -> Array:
        return np.maximum(X[:, 0] - capacity * X[:, 1] - 0.2 * X[:, 2], 0.0) ** 1.5 * (1 + X[:, 3]) + 0.1 * X[:, 3]

    def buckling(X: Array, imperfection: float = 0.0) -> Array:
        beyond = X[:, 0] / X[:, 1] - 1
        return np.sqrt(0.5 * (beyond + np.sqrt(beyond**2 + imperfection))) + 0.1 * X[:, 0]

    return [
        Problem(
            "a shock near one end, one input",
            unit_cube(1),
            (shocked, lambda X: shocked(X, 0.8, 0.05) + 0.2),
            (1.0, 0.1),
            by_breaks(unit_cube(1), shocked, lambda rest: [[c] for c in (0.73, 0.8, 0.83, 0.86, 0.93)], [60]),
        ),
        Problem(
            "flutter beyond a speed, two inputs",
            unit_cube(2),
            (flutter, lambda X: flutter(X, 0.75, 0.8)),
            (1.0, 0.1),
            by_breaks(unit_cube(2), flutter, lambda rest: [0.7 - 0.3 * rest[:, 0]], [60, 60]),
        ),
        Problem(
            "a thermostat with two limits, one input",
            unit_cube(1),
            (thermostat, lambda X: 1.6 * np.tanh(1.5 * np.sin(5 * X[:, 0]) * (1 + X[:, 0])) + 0.2),
            (1.0, 0.05),
            by_breaks(unit_cube(1), thermostat, lambda rest: [[c] for c in _thermostat_kinks()], [40]),
        ),
        Problem(
            "a layer whose thickness varies, three inputs",
            unit_cube(3),
            (edge, lambda X: edge(X, 0.05), lambda X: np.cos(2 * X[:, 2])),
            (1.0, 0.2, 0.02),
            by_breaks(unit_cube(3), edge, lambda rest: [[c] for c in (0.05, 0.15, 0.4)], [30, 30, 16]),
        ),
        Problem(
            "ignition in a corner, two inputs",
            unit_cube(2),
            (ignition, lambda X: ignition(X, 15.0, 1.35)),
            (1.0, 0.1),
            by_breaks(
                unit_cube(2),
                ignition,
                lambda rest: [1.45 - rest[:, 0] + d for d in (-0.2, -0.07, 0, 0.07, 0.2)],
                [30, 240],
            ),
        ),
        Problem(
            "a narrow resonance, two inputs",
            unit_cube(2),
            (resonance, lambda X: resonance(X, 0.06, 0.03)),
            (1.0, 0.1),
            by_breaks(
                unit_cube(2),
                resonance,
                lambda rest: [0.6 + 0.1 * rest[:, 0] + d for d in (-0.2, -0.06, 0, 0.06, 0.2)],
                [30, 30],
            ),
        ),
        Problem(
            "runoff above a capacity, four inputs",
            rain,
            (runoff, lambda X: runoff(X, 0.45) * 0.9 + 0.05, lambda X: X[:, 0] - 0.5 * X[:, 1]),
            (1.0, 0.1, 0.01),
            _runoff_moments,
        ),
        Problem(
            "buckling beyond a critical load, two inputs",
            load,
            (buckling, lambda X: 0.9 * buckling(X, 0.02)),
            (1.0, 0.1),
            by_breaks(load, buckling, lambda rest: [rest[:, 0]], [30, 20]),
        ),
    ]


def _thermostat_kinks() -> list[float]:
    """Return the points at which 3 sin(5x)(1 + x) crosses 2 and -1."""

    def excess(x: float, limit: float) -> float:
        return 3 * np.sin(5 * x) * (1 + x) - limit

    brackets = ((2.0, 0.0, 0.25), (2.0, 0.3, 0.62), (-1.0, 0.63, 0.8))
    return [float(brentq(excess, a, b, (limit,), xtol=1e-15)) for limit, a, b in brackets]


def _runoff_moments() -> Moments:
    """Return the moments of (x_0 - 0.55 x_1 - 0.2 x_2)₊^1.5 (1 + x_3) + 0.1 x_3: x_3 is independent of the others.

    With E (..)₊^p by integrating over x_0, x_1 and x_2 in closed form: each raises the power by one.
    """

    def positive(p: float) -> float:
        raised = (p + 1) * (p + 2) * (p + 3) * 0.55 * 0.2
        ends = ((a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1))
        return sum((-1) ** (a + b + c + 1) * max(a - 0.55 * b - 0.2 * c, 0.0) ** (p + 3) for a, b, c in ends) / raised

    first, second = positive(1.5), positive(3.0)
    mean = 1.5 * first + 0.05
    square = second * (1 + 1 + 1 / 3) + 2 * 0.1 * first * (0.5 + 1 / 3) + 0.01 / 3
    return Moments(mean, float(np.sqrt(square - mean**2)))


def regional() -> list[Problem]:
    """Return smooth sources whose secondary ones are good in one region and wrong in another."""
    four = [N(0, 1)] * 4

    def hilly(X: Array) -> Array:
        return np.sin(6 * X[:, 0]) + X[:, 0] ** 2

    def dome(X: Array) -> Array:
        return np.cos(2 * X[:, 0]) * np.exp(X[:, 1]) + 0.3 * np.sin(5 * X[:, 1])

    def mixed(X: Array) -> Array:
        return np.exp(-X[:, 0]) * (1 + X[:, 1] ** 2) + np.sin(3 * X[:, 2]) * X[:, 0]

    def halves(X: Array) -> Array:
        return np.sin(3 * X[:, 0] + 2 * X[:, 1]) + X[:, 0] * X[:, 1]

    def level(X: Array) -> Array:
        return 2 * np.exp(X[:, 0] * X[:, 1]) + np.sin(3 * X[:, 0])

    def response(X: Array) -> Array:
        return np.tanh(X @ np.array([0.8, -0.5, 0.3, 0.2])) + 0.2 * X[:, 1] ** 2

    def tone(X: Array) -> Array:
        return np.sin(14 * X[:, 0] ** 1.5 + 0.5)

    def yielded(X: Array) -> Array:
        return (1 + X[:, 0] + X[:, 1] * X[:, 2]) / (1 + 0.5 * X[:, 3] + X[:, 4] ** 2)

    def beside(f: Array, wrong: Array, share: Array) -> Array:
        return (1 - share) * f + share * wrong

    def good_left(X: Array) -> Array:
        return beside(hilly(X), 2 * np.cos(17 * X[:, 0]), expit(25 * (X[:, 0] - 0.55)))

    def good_in_a_disc(X: Array) -> Array:
        away = expit(30 * (np.hypot(X[:, 0] - 0.4, X[:, 1] - 0.4) - 0.35))
        return beside(1.1 * dome(X), 1.5 - 3 * X[:, 0], away)

    def good_below(X: Array) -> Array:
        return np.where(X[:, 0] < 0.6, mixed(X) + 0.1, 2 - mixed(X))

    def good_where(sign: float) -> Function:
        return lambda X: beside(halves(X), 1.2 - X[:, 1], expit(sign * 20 * (X[:, 0] - 0.5)))

    def saturated(X: Array) -> Array:
        return np.minimum(level(X), 3.2) + 0.1 * X[:, 0]

    def linear(X: Array) -> Array:
        return X @ np.array([0.8, -0.5, 0.3, 0.2])

    def aliased(X: Array) -> Array:  # a grid of 12 cells: fast waves are seen as slow ones
        cell = np.floor(12 * X[:, [0]]) / 12
        left, right = tone(cell), tone(cell + 1 / 12)
        return left + (right - left) * (12 * (X[:, 0] - cell[:, 0]))

    def good_but_in_a_corner(X: Array) -> Array:
        corner = expit(12 * (X[:, 0] + X[:, 3] + X[:, 4] - 1.7))
        return beside(0.9 * yielded(X), 2.5 * np.ones(len(X)), corner)

    return [
        Problem(
            "good on the left, one input",
            unit_cube(1),
            (hilly, good_left),
            (1.0, 0.1),
            by_product(unit_cube(1), hilly, 30),
        ),
        Problem(
            "good in a disc, two inputs",
            unit_cube(2),
            (dome, good_in_a_disc),
            (1.0, 0.1),
            by_product(unit_cube(2), dome, 30),
        ),
        Problem(
            "good below a limit, three inputs",
            unit_cube(3),
            (mixed, good_below),
            (1.0, 0.05),
            by_product(unit_cube(3), mixed, 20),
        ),
        Problem(
            "two sources, each good in one half, two inputs",
            unit_cube(2),
            (halves, good_where(1), good_where(-1)),
            (1.0, 0.1, 0.1),
            by_product(unit_cube(2), halves, 24),
        ),
        Problem(
            "a sensor that saturates, two inputs",
            unit_cube(2),
            (level, saturated),
            (1.0, 0.02),
            by_product(unit_cube(2), level, 24),
        ),
        Problem(
            "linear near the mean, four normal inputs",
            four,
            (response, linear),
            (1.0, 0.01),
            _response_moments,
        ),
        Problem(
            "a grid too coarse for fast waves, one input",
            unit_cube(1),
            (tone, aliased),
            (1.0, 0.1),
            by_breaks(unit_cube(1), tone, lambda rest: [], [90]),
        ),
        Problem(
            "wrong in a corner, five inputs",
            unit_cube(5),
            (yielded, good_but_in_a_corner),
            (1.0, 0.1),
            by_product(unit_cube(5), yielded, (3, 3, 3, 12, 16)),
        ),
    ]


def _response_moments() -> Moments:
    """Return the moments over a·x and the part of x_1 independent of it: two normal inputs instead of four."""
    a = np.array([0.8, -0.5, 0.3, 0.2])
    size = float(np.sqrt(a @ a))

    def of_two(Z: Array) -> Array:
        along, x1 = size * Z[:, 0], a[1] / size * Z[:, 0] + np.sqrt(1 - (a[1] / size) ** 2) * Z[:, 1]
        return np.tanh(along) + 0.2 * x1**2

    return by_product([N(0, 1)] * 2, of_two, (180, 12))()
