"""Secondary sources with fewer inputs than the primary one: reduced models, and others with inputs left out."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import stats
from scipy.special import ndtr

from benchmarks.arena.arrays import Array

from ..problem import Function, Problem, unit_cube
from ..quadrature import by_product, legendre
from .levels import duffing, oscillation

U, N = stats.uniform, stats.norm


def at(f: Function, values: dict[int, float]) -> Function:
    """Return a function in which some inputs are fixed."""

    def fixed(X: Array) -> Array:
        Y = X.copy()
        for d, value in values.items():
            Y[:, d] = value
        return f(Y)

    return fixed


def fewer_inputs() -> list[Problem]:
    """Return problems with 2 to 8 inputs, of which the secondary sources depend on one to six."""
    t, w = legendre(30)
    normal, mixed = [N(0, 1)] * 5, [stats.gamma(4, scale=0.25), N(0, 1), U(0, 1)]
    duff = [U(0.1, 0.4), U(0.5, 1), U(0.2, 0.8), N(0.5, 0.1)]
    eight = [U(0, 1)] * 8
    swing = partial(oscillation(duffing, 8.0), 120)

    def two(X: Array) -> Array:
        return np.sin(5 * X[:, 0]) + np.exp(X[:, 0] * X[:, 1])

    def averaged(X: Array) -> Array:  # over the input that it does not know
        return np.sin(5 * X[:, 0]) + np.exp(X[:, [0]] * t) @ w

    def three(X: Array) -> Array:
        return X[:, 0] * (1 + 0.5 * np.sin(X[:, 1])) + 0.3 * np.cos(4 * X[:, 2]) * X[:, 1]

    def five(X: Array) -> Array:
        return np.exp(0.5 * X[:, 0] - 0.3 * X[:, 1]) + 0.4 * X[:, 2] * X[:, 3] + 0.2 * np.sin(X[:, 4])

    def coupled(X: Array) -> Array:
        return np.cos(3 * X[:, 0] - X[:, 1]) * np.exp(X[:, 2]) / (1 + X[:, 3])

    def stress(X: Array) -> Array:
        return (1 + 2 * X[:, 0]) * np.exp(-X[:, 1]) + X[:, 2:6].sum(axis=1) ** 2 / 8 + 0.5 * X[:, 6] * X[:, 7]

    def steady(X: Array) -> Array:
        return ndtr(3 * X[:, 0] - 1) * (1 + X[:, 1]) + 0.3 * X[:, 2] ** 3

    def transient(X: Array) -> Array:
        return steady(X) * (1 - np.exp(-4 - 2 * X[:, 3]))

    return [
        Problem(
            "one of two, averaged over the other",
            unit_cube(2),
            (two, averaged),
            (1.0, 0.05),
            by_product(unit_cube(2), two, 24),
        ),
        Problem(
            "one and two of three",
            mixed,
            (three, lambda X: 1.1 * X[:, 0] + 0.1, at(three, {2: 0.5})),
            (1.0, 0.02, 0.2),
            by_product(mixed, three, (20, 40, 16)),
        ),
        Problem(
            "three of five, normal",
            normal,
            (five, at(five, {3: 0.0, 4: 0.0})),
            (1.0, 0.1),
            by_product(normal, five, (24, 20, 6, 6, 20)),
        ),
        Problem(
            "a Duffing spring without its cubic part and its drive",
            duff,
            (swing, at(swing, {2: 0.0, 3: 0.5})),
            (1.0, 0.1),
            by_product(duff, swing, (12, 16, 14, 12)),
        ),
        Problem(
            "one input each, four inputs",
            unit_cube(4),
            (coupled, *(at(coupled, {e: 0.5 for e in range(4) if e != d}) for d in range(4))),
            (1.0, 0.05, 0.05, 0.05, 0.05),
            by_product(unit_cube(4), coupled, 16),
        ),
        Problem(
            "six of eight",
            eight,
            (stress, at(stress, {6: 0.5, 7: 0.5}), at(stress, dict.fromkeys(range(2, 8), 0.5))),
            (1.0, 0.1, 0.01),
            by_product(eight, stress, (3, 12, 4, 4, 4, 4, 3, 3)),
        ),
        Problem(
            "a steady state that does not know the time",
            unit_cube(4),
            (transient, steady),
            (1.0, 0.02),
            by_product(unit_cube(4), transient, 16),
        ),
        Problem(
            "one of three, and another one of three",
            unit_cube(3),
            (
                lambda X: coupled(np.column_stack([X, X[:, 0]])),
                lambda X: np.cos(3 * X[:, 0]),
                lambda X: np.exp(X[:, 2]),
            ),
            (1.0, 0.01, 0.01),
            by_product(unit_cube(3), lambda X: coupled(np.column_stack([X, X[:, 0]])), 20),
        ),
    ]
