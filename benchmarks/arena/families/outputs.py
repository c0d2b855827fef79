"""Sources with two to twenty outputs, which differ in scale, in smoothness, or in how well others predict them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.arena.arrays import Array

from ..problem import Function, Moments, Problem, unit_cube
from ..quadrature import by_product, of_each_output
from .nearly_free import outbreak

U, N = stats.uniform, stats.norm


def several(
    title: str, marginals: list[Any], functions: tuple[Function, ...], costs: tuple[float, ...], names: str, orders: Any
) -> Problem:
    """Return a problem with outputs of these names."""
    outputs = tuple(names.split())
    return Problem(
        title,
        marginals,
        functions,
        costs,
        of_each_output(functions[0], len(outputs), lambda f: by_product(marginals, f, orders)),
        outputs=outputs,
    )


def heated(cells: int, X: Array) -> Array:
    """Return the temperature at 20 places of a rod, for conductivity, source and the temperature of one end.

    k u'' + s (1 - u) = 0 with u(0) = 0 and u(1) = b, by differences; one elimination for all points.
    """
    h, k, s, b = 1 / cells, X[:, 0], X[:, 1], X[:, 2]
    p, q = np.zeros((cells, len(X))), np.zeros((cells, len(X)))
    for i in range(1, cells):
        pivot = 2 * k + s * h**2 - k * p[i - 1]
        p[i], q[i] = k / pivot, (k * q[i - 1] + s * h**2) / pivot
    u = np.zeros((cells + 1, len(X)))
    u[cells] = b
    for i in range(cells - 1, 0, -1):
        u[i] = p[i] * u[i + 1] + q[i]
    places, nodes = np.linspace(0.04, 0.96, 20), np.linspace(0, 1, cells + 1)
    return np.array([np.interp(places, nodes, column) for column in u.T])


def infected(steps: int, X: Array) -> Array:
    """Return the shares of people who are ill after 5, 10 and 20 days, and who have been by then, by Runge–Kutta."""
    states = list(outbreak(steps, X))
    return np.column_stack([*(states[steps * days // 20 - 1][1] for days in (5, 10, 20)), 1 - states[-1][0]])


def several_outputs() -> list[Problem]:
    """Return problems with 1 to 5 inputs and 2 to 20 outputs."""
    rod, people, normal = [U(0.5, 1), U(0.5, 4), N(0.5, 0.3)], [U(0.6, 0.8), U(0.2, 0.2)], [N(0, 1)] * 3

    def wavy(X: Array) -> Array:
        return np.column_stack([np.sin(5 * X[:, 0]), 1000 * np.cos(9 * X[:, 0]) + 5000])

    def wavy_low(X: Array) -> Array:
        return 0.9 * wavy(X) + np.column_stack([0.2 * X[:, 0], 300 * X[:, 0]])

    def force(X: Array) -> Array:
        lift = np.sin(2 * X[:, 0]) * (1 + X[:, 1])
        return np.column_stack([lift, 0.1 + 0.5 * lift**2, np.exp(-X[:, 1]) * X[:, 0]])

    def force_low(X: Array) -> Array:
        lift = 2 * X[:, 0] * (1 + X[:, 1])
        return np.column_stack([lift, 0.1 + 0.4 * lift**2, X[:, 0] * (1 - 0.6 * X[:, 1])])

    def odd(X: Array) -> Array:  # the last output has nothing in common with the others
        return np.column_stack([X[:, 0] + X[:, 1] ** 2, np.exp(0.5 * X[:, 0]), np.cos(2 * X[:, 2]) * X[:, 1] ** 2])

    def odd_low(X: Array) -> Array:
        return np.column_stack([X[:, 0], 1 + 0.5 * X[:, 0], np.sin(3 * X[:, 0])])

    def reactor(X: Array) -> Array:
        rate = np.exp(2 * X[:, 0] - X[:, 1])
        made = rate / (1 + rate + X[:, 2])
        return np.column_stack([made, X[:, 2] * made, 1 - made, X[:, 3] * rate, made * X[:, 4] + X[:, 3]])

    def reactor_low(X: Array) -> Array:
        return reactor(np.column_stack([X[:, :2], np.full(len(X), 0.5), X[:, 3:]])) * 0.9

    def rough_and_smooth(X: Array) -> Array:
        return np.column_stack([np.abs(X[:, 0] - 0.4) * 3, X[:, 0] * X[:, 1], np.sin(12 * X[:, 0] * X[:, 1])])

    def rough_and_smooth_low(X: Array) -> Array:
        return np.column_stack([3 * np.sqrt((X[:, 0] - 0.4) ** 2 + 0.01), X[:, 0], np.sin(10 * X[:, 0] * X[:, 1])])

    def rough_moments() -> Any:
        def exact(m: int) -> Any:
            return by_product(unit_cube(2), lambda X: rough_and_smooth(X)[:, m], 40)()

        mean, square = 3 * (0.4**2 + 0.6**2) / 2, 9 * (0.4**3 + 0.6**3) / 3
        return [Moments(mean, float(np.sqrt(square - mean**2))), exact(1), exact(2)]

    return [
        several("waves of different size", unit_cube(1), (wavy, wavy_low), (1.0, 0.1), "small large", 30),
        several(
            "a profile of twenty temperatures",
            rod,
            (partial(heated, 64), partial(heated, 8)),
            (1.0, 0.1),
            " ".join(f"t{k}" for k in range(20)),
            (20, 16, 4),
        ),
        several("lift, drag and moment", unit_cube(2), (force, force_low), (1.0, 0.05), "lift drag moment", 24),
        several(
            "an epidemic at four times",
            people,
            (partial(infected, 80), partial(infected, 12)),
            (1.0, 0.1),
            "day5 day10 day20 reached",
            30,
        ),
        several("one output of another kind", normal, (odd, odd_low), (1.0, 0.1), "first second third", (24, 10, 30)),
        several(
            "a reactor with five outputs",
            unit_cube(5),
            (reactor, reactor_low),
            (1.0, 0.1),
            "made part left rate sum",
            (14, 12, 10, 3, 3),
        ),
        Problem(
            "a kink, a product and a fast wave",
            unit_cube(2),
            (rough_and_smooth, rough_and_smooth_low),
            (1.0, 0.1),
            rough_moments,
            outputs=("kink", "product", "wave"),
        ),
        several(
            "no secondary source",
            unit_cube(3),
            (lambda X: np.column_stack([np.exp(X.sum(axis=1) / 2), np.sin(4 * X[:, 0]) * X[:, 1]]),),
            (1.0,),
            "sum wave",
            20,
        ),
    ]
