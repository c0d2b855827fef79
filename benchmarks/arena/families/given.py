"""Given data with little information: clustered, on a line, in a corner, at the bottom of a valley, or near replicates.

No evaluations are chosen here: a problem has a design, the locations of each source for a random generator.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from benchmarks.arena.arrays import Array

from ..problem import Problem, unit_cube
from ..quadrature import by_product

N = stats.norm


def poor_designs() -> list[Problem]:
    """Return given data with little information: clustered, on a line, in a corner, or nearly repeated."""
    normal = [N(0, 1)] * 2

    def bend(X: Array) -> Array:
        return np.sin(5 * X[:, 0]) + X[:, 0] ** 2

    def saddle(X: Array) -> Array:
        return np.exp(X[:, 0] - X[:, 1]) + np.sin(3 * X[:, 0] * X[:, 1])

    def decay(X: Array) -> Array:
        return np.exp(-X @ np.array([1.0, 2.0, 0.5])) + 0.3 * np.sin(6 * X[:, 1])

    def valley(X: Array) -> Array:
        return X[:, 0] ** 2 + 0.5 * X[:, 1] ** 2 + 0.2 * X[:, 0] * X[:, 1]

    def mixture(X: Array) -> Array:
        return np.exp(-np.sum((X - 0.4) ** 2, axis=1)) + 0.5 * np.sin(4 * X[:, 0]) * X[:, 3]

    def clustered(rng: np.random.Generator) -> tuple[Array, ...]:
        return rng.uniform(0.1, 0.9) + 1e-3 * rng.uniform(-0.5, 0.5, (5, 1)), np.linspace(0.05, 0.95, 10)[:, None]

    def along_a_line(rng: np.random.Generator) -> tuple[Array, ...]:
        s = np.sort(rng.uniform(size=(8, 1)), axis=0)
        return s * np.array([[0.9, 0.3]]) + 0.05, rng.uniform(size=(24, 2))

    def in_a_corner(rng: np.random.Generator) -> tuple[Array, ...]:
        return rng.uniform(0, 0.3, (8, 3)), rng.uniform(size=(30, 3))

    def at_the_bottom(rng: np.random.Generator) -> tuple[Array, ...]:
        return 0.1 * rng.normal(size=(6, 2)), 0.1 * rng.normal(size=(12, 2))

    def near_replicates(rng: np.random.Generator) -> tuple[Array, ...]:
        places = rng.uniform(size=(3, 2))
        return np.repeat(places, 3, axis=0) + 1e-6 * rng.normal(size=(9, 2)), rng.uniform(size=(20, 2))

    def in_different_halves(rng: np.random.Generator) -> tuple[Array, ...]:
        return rng.uniform(0, 0.5, (6, 1)), rng.uniform(0.5, 1, (12, 1))

    def one_input_fixed(rng: np.random.Generator) -> tuple[Array, ...]:
        X = rng.uniform(size=(10, 4))
        X[:, 3] = 0.5 + 1e-4 * rng.normal(size=10)
        return X, rng.uniform(size=(40, 4))

    def cheap_ones_clustered(rng: np.random.Generator) -> tuple[Array, ...]:
        return rng.uniform(size=(6, 2)), 0.5 + 0.02 * rng.normal(size=(40, 2))

    def problem(title: str, marginals: list, functions: tuple, orders: int, design: object, D: int) -> Problem:
        return Problem(
            f"{title}, {D} input{'s' * (D > 1)}",
            marginals,
            functions,
            (1.0, 0.1),
            by_product(marginals, functions[0], orders),
            design=design,
        )

    return [
        problem(
            "five primary values within a thousandth",
            unit_cube(1),
            (bend, lambda X: 0.9 * bend(X) + 0.3 * X[:, 0]),
            24,
            clustered,
            1,
        ),
        problem(
            "primary values on a line",
            unit_cube(2),
            (saddle, lambda X: 0.8 * saddle(X) + 0.4 * X[:, 1]),
            24,
            along_a_line,
            2,
        ),
        problem(
            "primary values in a corner",
            unit_cube(3),
            (decay, lambda X: decay(X) + 0.3 * X[:, 0] * X[:, 2]),
            20,
            in_a_corner,
            3,
        ),
        problem(
            "all values at the bottom of a valley",
            normal,
            (valley, lambda X: 1.2 * valley(X) + 0.1 * X[:, 0]),
            6,
            at_the_bottom,
            2,
        ),
        problem(
            "three places, each three times",
            unit_cube(2),
            (saddle, lambda X: saddle(X) + 0.3 * np.cos(2 * X[:, 0])),
            24,
            near_replicates,
            2,
        ),
        problem(
            "one source in one half, the other in the other",
            unit_cube(1),
            (bend, lambda X: 1.1 * bend(X) + 0.2),
            24,
            in_different_halves,
            1,
        ),
        problem(
            "one input hardly varied",
            unit_cube(4),
            (mixture, lambda X: 0.8 * mixture(X) + 0.1 * X[:, 1]),
            14,
            one_input_fixed,
            4,
        ),
        problem(
            "secondary values in a cluster",
            unit_cube(2),
            (saddle, lambda X: 0.9 * saddle(X) + 0.2 * X[:, 0]),
            24,
            cheap_ones_clustered,
            2,
        ),
    ]
