"""Refinements with two knobs: cells and time steps, nodes in two directions, cells and iterations, steps and paths.

Every combination of the two is a source; the primary one has the finest of both. The truth is its integral.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.arena.arrays import Array

from ..problem import Noise, Problem, unit_cube
from ..quadrature import by_product, legendre
from .levels import oscillation, transport, van_der_pol

U, N = stats.uniform, stats.norm

MODES = np.arange(1, 6)


def grid(
    title: str,
    marginals: Sequence[Any],
    solve: Callable[[int, int, Array], Array],
    first: Sequence[int],
    second: Sequence[int],
    orders: Any,
    powers: tuple[float, float] = (1.0, 1.0),
    refined: bool = True,
    noise: float = 0.0,
) -> Problem:
    """Return a problem whose sources solve with every combination of two settings, at costs of their powers.

    Errors tend to zero with the inverse of both settings if these are ``refined``. With ``noise``, values are averages
    over as many paths as the second setting says, with that standard deviation for one path, which is not declared.
    """
    costs = {(a, b): (a / first[0]) ** powers[0] * (b / second[0]) ** powers[1] for a in first for b in second}
    pairs = sorted(costs, key=lambda pair: -costs[pair])
    functions = tuple(partial(solve, *pair) for pair in pairs)
    shown = f"{', '.join(map(str, first))} by {', '.join(map(str, second))}"
    return Problem(
        f"{title}: {shown}",
        marginals,
        functions,
        tuple(round(costs[pair], 6) for pair in pairs),
        by_product(marginals, functions[0], orders),
        knobs=tuple({"a": 1 / a, "b": 1 / b} for a, b in pairs) if refined else (),
        noise=tuple(Noise(noise / np.sqrt(b), known=False) for _, b in pairs) if noise else (),
    )


def heat(cells: int, steps: int, X: Array, crank: bool = False) -> Array:
    """Return the temperature of a rod at 0.3 after a time of 0.1, for diffusivity, and two parts of the initial state.

    In modes of the second difference, of which each step of Euler's implicit or of Crank and Nicolson's method keeps a
    share.
    """
    start = np.column_stack([np.ones(len(X)), X[:, 1], X[:, 2], 0.3 * X[:, 1] * X[:, 2], np.full(len(X), 0.2)])
    rates = X[:, [0]] * 4 * cells**2 * np.sin(MODES * np.pi / (2 * cells)) ** 2 * 0.1 / steps
    kept = (1 - rates / 2) / (1 + rates / 2) if crank else 1 / (1 + rates)
    return (start * kept**steps) @ np.sin(0.3 * np.pi * MODES)


def nodes(nx: int, ny: int, X: Array) -> Array:
    """Return ∬ exp(-a (x - y)²) cos(b x y) dx dy by midpoints, for a and b."""
    x, y = (np.arange(nx) + 0.5) / nx, (np.arange(ny) + 0.5) / ny
    a, b = X[:, [0]], X[:, [1]]
    s, t = (grid.ravel() for grid in np.meshgrid(x, y, indexing="ij"))
    return np.mean(np.exp(-a * (s - t) ** 2) * np.cos(b * s * t), axis=1)


def jacobi(cells: int, iterations: int, X: Array) -> Array:
    """Return u(0.4) of -u'' = Σ_k c_k sin(kπx) after iterations of Jacobi's method from zero, in its modes."""
    k = MODES[:3]
    eigenvalues = 4 * cells**2 * np.sin(k * np.pi / (2 * cells)) ** 2
    reached = 1 - np.cos(k * np.pi / cells) ** iterations
    sources = np.column_stack([10 * np.exp(X[:, 0]), 10 * X[:, 1], 5 * X[:, 0] * X[:, 2]])
    return (sources / eigenvalues * reached) @ np.sin(0.4 * np.pi * k)


def series(terms: int, n: int, X: Array) -> Array:
    """Return ∫ |Σ_k a^k cos(k b x) / k|² dx over [0, 1], with that many terms and midpoints, for a and b."""
    x, k = (np.arange(n) + 0.5) / n, np.arange(1, terms + 1)
    powers = X[:, [0]] ** k / k
    waves = np.cos(X[:, [1], None] * k[None, :, None] * x)
    return np.mean(np.einsum("nk,nkx->nx", powers, waves) ** 2, axis=1)


def tree(steps: int, width: int, X: Array) -> Array:
    """Return E tanh(S) of a random walk with drift and volatility, by a tree truncated at a number of nodes."""
    drift, volatility = X[:, [0]], X[:, [1]]
    up = np.arange(-steps, steps + 1, 2)
    logs = np.array(
        [
            np.sum(np.log(np.arange(1, steps + 1))) - sum(_log_factorial((steps + s * u) // 2) for s in (1, -1))
            for u in up
        ]
    )
    inside = np.abs(up) <= width * np.sqrt(steps)
    p = np.exp(logs - steps * np.log(2))[inside]
    return np.tanh(drift + volatility * up[inside] / np.sqrt(steps)) @ (p / p.sum())


def _log_factorial(n: int) -> float:
    return float(np.sum(np.log(np.arange(1, n + 1))))


def horizon(steps: int, fraction: int, X: Array) -> Array:
    """Return the average of x² of van der Pol's oscillator over ``fraction`` eighths of a time of 12, by its steps."""
    end = 12 * fraction / 8
    return oscillation(van_der_pol, end)(steps * fraction // 8, X)


def barrier(steps: int, order: int, X: Array) -> Array:
    """Return the probability of staying above a level, by time steps with Gauss rules for the position, two inputs."""
    t, w = legendre(order)
    level, volatility = X[:, 0], X[:, 1]
    x = level[:, None] + (4 - level[:, None]) * t
    scale = volatility[:, None, None] / np.sqrt(steps)
    move = np.exp(-0.5 * ((x[:, :, None] - x[:, None, :]) / scale) ** 2) / (np.sqrt(2 * np.pi) * scale)
    move = move * ((4 - level)[:, None] * w)[:, None, :]
    stay = np.ones_like(x)
    for _ in range(steps - 1):
        stay = np.einsum("nij,nj->ni", move, stay)
    start = np.exp(-0.5 * (x / scale[:, 0]) ** 2) / (np.sqrt(2 * np.pi) * scale[:, 0]) * ((4 - level)[:, None] * w)
    return np.einsum("ni,ni->n", start, stay)


def stock(steps: int, paths: int, X: Array) -> Array:
    """Return E S² at time 1 of Euler's steps of dS = μ S dt + σ S dW from 1, for μ and σ, whatever the paths."""
    h = 1 / steps
    return ((1 + X[:, 0] * h) ** 2 + X[:, 1] ** 2 * h) ** steps


def reverting(steps: int, paths: int, X: Array) -> Array:
    """Return E exp(-R) at time 2 of Euler's steps of dR = θ (μ - R) dt + σ dW from 1.5, for θ, μ and σ.

    R is normal; its mean and variance obey recursions.
    """
    h, theta = 2 / steps, X[:, 0]
    mean, variance = np.full(len(X), 1.5), np.zeros(len(X))
    for _ in range(steps):
        mean, variance = mean + theta * (X[:, 1] - mean) * h, (1 - theta * h) ** 2 * variance + X[:, 2] ** 2 * h
    return np.exp(0.5 * variance - mean)


def two_knobs() -> list[Problem]:
    """Return solvers refined by two knobs, with four to six sources."""
    rod, column = [U(0.2, 0.8), N(0.5, 0.2), U(-1, 2)], [U(0.4, 0.5), U(0.0005, 0.003), U(0, 1)]

    def travelled(cells: int, steps: int, X: Array) -> Array:
        return transport(0.8, 0.6, steps=steps)(cells, X)

    return [
        grid("heat by implicit steps", rod, heat, (64, 16, 8), (64, 8), (20, 6, 4)),
        grid("transport past a gauge", column, travelled, (48, 24, 12), (144, 72), (40, 14, 8)),
        grid("a double integral", [U(1, 9), U(0, 6)], nodes, (32, 8), (32, 8, 4), 24),
        grid("cells and iterations", unit_cube(3), jacobi, (16, 8), (400, 100, 30), (16, 4, 4), (1.0, 1.0)),
        grid("terms and nodes", [U(0.3, 0.5), U(1, 4)], series, (24, 6, 3), (64, 16), 80),
        grid(
            "steps and horizon",
            [U(0.2, 1.3), U(0.6, 0.8), N(0.4, 0.15)],
            horizon,
            (160, 80),
            (8, 4, 2),
            (60, 54, 30),
            refined=False,
        ),
        grid("heat by Crank and Nicolson", rod, partial(heat, crank=True), (64, 16, 8), (32, 8), (20, 6, 4)),
        grid("steps and nodes above a barrier", [U(-2, 1), U(0.6, 0.6)], barrier, (12, 6, 3), (48, 24), (24, 24)),
        grid("steps and paths of a stock", [U(0, 1), U(0.2, 0.4)], stock, (32, 8, 2), (2000, 200), (24, 24), noise=3.0),
        grid(
            "steps and paths of a rate",
            [U(0.3, 0.9), U(0.2, 1), U(0.2, 0.6)],
            reverting,
            (40, 10, 4),
            (1000, 50),
            (24, 16, 16),
            noise=0.2,
        ),
    ]
