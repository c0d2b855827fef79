"""Hierarchies of discretisations in one dimension: a boundary-value problem, oscillators, and transport in a column.

All sources of a problem solve the same equations, with different numbers of cells or time steps. The truth is the
integral of the finest one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.arena.arrays import Array

from ..problem import Function, Moments, Problem, added
from ..quadrature import by_product, line

U, N = stats.uniform, stats.norm


def levels(
    title: str, marginals: Sequence[Any], solve: Callable[[int, Array], Array], sizes: dict[int, float], orders: Any
) -> Problem:
    """Return a problem whose sources solve with the given sizes, from the finest to the coarsest, at their costs."""
    functions: tuple[Function, ...] = tuple(partial(solve, n) for n in sizes)
    truth = by_product(marginals, functions[0], orders)
    return Problem(
        title,
        marginals,
        functions,
        tuple(sizes.values()),
        truth,
        ordered=True,
        knobs=tuple({"h": 1 / n} for n in sizes),
    )


# The two-point boundary-value problem (c u')' + v u' = s with u(0) = u(1) = 0 and the output ∫ u; c, v and s may depend
# on the inputs. Central differences, and elimination for all points at once.


def two_point(coefficient: Callable[[Array, float], Array], source: Function, velocity: Function | None = None) -> Any:
    """Return solve(cells, X) for a coefficient c(X, x), a source s(X) and a velocity v(X), each of shape (n,)."""

    def solve(cells: int, X: Array) -> Array:
        h = 1 / cells
        between = np.array([coefficient(X, (i + 0.5) * h) for i in range(cells)]) / h**2
        drift = 0.0 if velocity is None else velocity(X) / (2 * h)
        right = source(X)
        # u_i = p_i u_{i+1} + q_i, from the left; then back from u = 0 at the right end
        p, q = np.zeros((cells, len(X))), np.zeros((cells, len(X)))
        for i in range(1, cells):
            below, above = between[i - 1] - drift, between[i] + drift
            pivot = between[i - 1] + between[i] - below * p[i - 1]
            p[i], q[i] = above / pivot, (below * q[i - 1] - right) / pivot
        u, total = np.zeros(len(X)), np.zeros(len(X))
        for i in range(cells - 1, 0, -1):
            u = p[i] * u + q[i]
            total += u
        return total * h

    return solve


def boundary_value() -> list[Problem]:
    """Return the boundary value problem of the multilevel BQ paper (Li et al. 2023), and extensions of it."""
    paper = two_point(lambda X, x: 1 + X[:, 0] * x, lambda X: 50 * X[:, 1] ** 2)
    marginals = [U(0, 1), N(0, 1)]

    def squares() -> Moments:  # the output is z² times a function of a, and E z² = 1, E z⁴ = 3
        a, w = line(marginals[0], 30)
        g = paper(32, np.column_stack([a, np.ones(30)]))
        return Moments(float(w @ g), float(np.sqrt(3 * w @ g**2 - (w @ g) ** 2)))

    def rough(X: Array, x: float) -> Array:
        return np.exp(sum(0.6 * X[:, k] * np.sin((k + 1) * np.pi * x) / (k + 1) for k in range(4)))

    def layer(X: Array, x: float) -> Array:
        return X[:, 0]

    three = {32: 1.0, 4: 0.15, 2: 0.05}
    original = Problem(
        "d/dx((1 + a x) du/dx) = 50 z², grids of 32, 4 and 2 cells",
        marginals,
        tuple(partial(paper, n) for n in three),
        tuple(three.values()),
        squares,
        ordered=True,
        knobs=tuple({"h": 1 / n} for n in three),
    )
    return [
        original,
        levels(
            "a rough coefficient with four inputs, five grids",
            [U(-1, 2)] * 4,
            two_point(rough, lambda X: -20 * np.ones(len(X))),
            {64: 1.0, 32: 0.5, 16: 0.25, 8: 0.12, 4: 0.06},
            (16, 12, 10, 8),
        ),
        levels(
            "two inputs and a linear source, six grids",
            [U(0, 3), U(0.5, 1)],
            two_point(lambda X, x: 1 + X[:, 0] * x**2, lambda X: -30 * np.exp(X[:, 1])),
            {64: 1.0, 32: 0.4, 16: 0.2, 8: 0.1, 4: 0.05, 2: 0.02},
            20,
        ),
        levels(
            "a boundary layer, four grids",
            [U(0.05, 0.3), U(0.5, 1), U(1, 1)],
            two_point(layer, lambda X: -X[:, 2], lambda X: X[:, 1]),
            {64: 1.0, 16: 0.2, 8: 0.1, 4: 0.05},
            (40, 20, 4),
        ),
        *added(
            levels(
                "a jump of the coefficient, three grids",
                [U(0.5, 2), U(1, 4), N(1, 0.3)],
                two_point(
                    lambda X, x: X[:, 0] + X[:, 1] / (1 + np.exp(-30 * (x - 0.55))), lambda X: -20 * X[:, 2] ** 2
                ),
                {64: 1.0, 16: 0.2, 8: 0.08},
                (20, 24, 4),
            ),
            levels(
                "an oscillating coefficient, two grids",
                [U(0, 0.8), U(2, 6)],
                two_point(lambda X, x: 1 + X[:, 0] * np.sin(X[:, 1] * x), lambda X: -10 - 5 * X[:, 0]),
                {64: 1.0, 8: 0.05},
                100,
            ),
        ),
    ]


# Oscillators: x' = v, v' = force(t, x, v), from x = 1, v = 0. Output: the average of x² over the time, which is smooth.


def oscillation(force: Callable[[Array, float, Array, Array], Array], end: float, order: int = 4) -> Any:
    """Return solve(steps, X): Runge–Kutta steps of order 4, or Euler's (order 1)."""

    def solve(steps: int, X: Array) -> Array:
        h, z, total = end / steps, np.array([np.ones(len(X)), np.zeros(len(X))]), np.zeros(len(X))

        def slope(t: float, z: Array) -> Array:
            return np.array([z[1], force(X, t, z[0], z[1])])

        for i in range(steps):
            k1 = slope(i * h, z)
            total += z[0] ** 2 / steps
            if order == 1:
                z = z + h * k1
                continue
            k2 = slope((i + 0.5) * h, z + 0.5 * h * k1)
            k3 = slope((i + 0.5) * h, z + 0.5 * h * k2)
            z = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope((i + 1) * h, z + h * k3))
        return total

    return solve


def driven(X: Array, t: float, x: Array, v: Array) -> Array:
    """Damped and driven: inputs damping, stiffness, amplitude."""
    return X[:, 2] * np.cos(2.0 * t) - X[:, 0] * v - X[:, 1] * x


def duffing(X: Array, t: float, x: Array, v: Array) -> Array:
    """Damped and driven with a cubic spring: inputs damping, stiffness, cubic stiffness, amplitude."""
    return X[:, 3] * np.cos(1.2 * t) - X[:, 0] * v - X[:, 1] * x - X[:, 2] * x**3


def pendulum(X: Array, t: float, x: Array, v: Array) -> Array:
    """A damped pendulum: inputs damping and gravity over length."""
    return -X[:, 0] * v - X[:, 1] * np.sin(x)


def van_der_pol(X: Array, t: float, x: Array, v: Array) -> Array:
    """Van der Pol's oscillator: inputs nonlinearity, stiffness, amplitude."""
    return X[:, 0] * (1 - x**2) * v - X[:, 1] * x + X[:, 2] * np.cos(t)


def windy(X: Array, t: float, x: Array, v: Array) -> Array:
    """A damped pendulum that is pushed to one side: inputs damping, gravity over length, and the push."""
    return X[:, 2] - X[:, 0] * v - X[:, 1] * np.sin(x)


def oscillator() -> list[Problem]:
    """Return oscillators whose time steps are the levels, by Runge–Kutta or Euler's method."""
    return [
        levels(
            "damped and driven, 160, 40 and 16 Runge–Kutta steps",
            [U(0.1, 0.6), U(1, 4), N(1, 0.3)],
            oscillation(driven, 12.0),
            {160: 1.0, 40: 0.2, 16: 0.08},
            (20, 40, 12),
        ),
        levels(
            "Duffing, 120, 40 and 20 Runge–Kutta steps",
            [U(0.1, 0.4), U(0.5, 1), U(0.2, 0.8), N(0.5, 0.1)],
            oscillation(duffing, 8.0),
            {120: 1.0, 40: 0.2, 20: 0.1},
            (12, 16, 14, 12),
        ),
        levels(
            "pendulum, 400, 100, 50 and 25 Euler steps",
            [U(0.1, 0.5), U(0.5, 2)],
            oscillation(pendulum, 6.0, order=1),
            {400: 1.0, 100: 0.2, 50: 0.1, 25: 0.05},
            (30, 40),
        ),
        levels(
            "van der Pol, 160 and 40 Runge–Kutta steps",
            [U(0.2, 1.3), U(0.6, 0.8), N(0.4, 0.15)],
            oscillation(van_der_pol, 10.0),
            {160: 1.0, 40: 0.15},
            (40, 40, 24),
        ),
        *added(
            levels(
                "a pendulum in the wind, 120, 30 and 15 Runge–Kutta steps",
                [U(0.1, 0.5), U(0.5, 2), U(0, 0.6)],
                oscillation(windy, 8.0),
                {120: 1.0, 30: 0.25, 15: 0.1},
                (24, 64, 40),
            ),
            levels(
                "damped and driven, 600 and 150 Euler steps",
                [U(0.2, 0.6), U(1, 2)],
                oscillation(lambda X, t, x, v: 0.8 * np.cos(2.0 * t) - X[:, 0] * v - X[:, 1] * x, 6.0, order=1),
                {600: 1.0, 150: 0.25},
                (24, 40),
            ),
        ),
    ]


# A column: transport with decay, and water behind a breaking dam. The output is read at a gauge.


def transport(end: float, gauge: float, deposit: bool = False, steps: int | None = None) -> Any:
    """Return solve(cells, X) by upwind differences, for inputs velocity, diffusivity, decay and, if any, the centre."""

    def solve(cells: int, X: Array) -> Array:
        h, n = 1 / cells, steps or int(3 * end * cells)
        dt, x = end / n, (np.arange(cells) + 0.5) / cells
        v, nu, decay = (X[:, [k]] for k in range(3))
        centre = X[:, [3]] if X.shape[1] > 3 else np.full((len(X), 1), 0.2)
        u = np.exp(-0.5 * ((x - centre) / 0.08) ** 2)
        seen = np.zeros(len(X))
        at = np.exp(-0.5 * ((x - gauge) / 0.06) ** 2)
        at /= at.sum()
        for _ in range(n):
            padded = np.pad(u, ((0, 0), (1, 1)), mode="edge")
            padded[:, 0] = 0.0
            left, right = padded[:, :-2], padded[:, 2:]
            # implicit decay; diffusion is small enough for an explicit step on all grids
            u = (u - dt * v * (u - left) / h + dt * nu * (left - 2 * u + right) / h**2) / (1 + dt * decay)
            seen += u @ at / n
        return seen if deposit else u @ at

    return solve


def dam_break(end: float, gauge: float) -> Any:
    """Return solve(cells, X) of the shallow-water equations by Lax–Friedrichs, for two depths and the dam's place."""

    def solve(cells: int, X: Array) -> Array:
        steps = int(4 * end * cells)
        h, dt, x = 1 / cells, end / steps, (np.arange(cells) + 0.5) / cells
        rise = 0.5 * (1 + np.tanh((X[:, [2]] - x) / 0.05))
        water, flow = X[:, [1]] + (X[:, [0]] - X[:, [1]]) * rise, np.zeros((len(X), cells))
        at = np.exp(-0.5 * ((x - gauge) / 0.05) ** 2)
        at /= at.sum()
        for _ in range(steps):
            momentum = flow**2 / water + 0.5 * water**2
            pads = [np.pad(a, ((0, 0), (1, 1)), mode="edge") for a in (water, flow, momentum)]
            (w0, w1), (f0, f1), (m0, m1) = ((a[:, :-2], a[:, 2:]) for a in pads)
            water, flow = 0.5 * (w0 + w1) - dt / (2 * h) * (f1 - f0), 0.5 * (f0 + f1) - dt / (2 * h) * (m1 - m0)
        return water @ at

    return solve


def column() -> list[Problem]:
    """Return transport in a column and a dam break, on three or four grids each."""
    speed, spread, decay = U(0.4, 0.5), U(0.0005, 0.003), U(0, 1)
    depth, shallow, place = U(1, 0.6), U(0.3, 0.3), U(0.35, 0.2)
    return [
        levels(
            "transport past a gauge, three grids",
            [speed, spread, decay],
            transport(0.8, 0.6),
            {48: 1.0, 24: 0.25, 12: 0.06},
            (40, 14, 8),
        ),
        levels(
            "water after a dam break, three grids",
            [depth, shallow, place],
            dam_break(0.25, 0.7),
            {64: 1.0, 32: 0.25, 16: 0.06},
            (20, 16, 24),
        ),
        levels(
            "a deposit at a gauge, uncertain origin, four grids",
            [speed, spread, decay, N(0.2, 0.03)],
            transport(0.8, 0.6, deposit=True),
            {48: 1.0, 24: 0.25, 12: 0.08, 6: 0.03},
            (24, 10, 8, 12),
        ),
        levels(
            "water behind a dam break, two grids",
            [depth, shallow, place],
            dam_break(0.25, 0.3),
            {64: 1.0, 16: 0.1},
            (20, 16, 24),
        ),
    ]
