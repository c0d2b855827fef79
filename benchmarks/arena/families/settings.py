"""Other circumstances: noise of several kinds, costs that depend on the input, and no secondary source at all."""

from __future__ import annotations

import numpy as np
from scipy import stats

from benchmarks.arena.arrays import Array

from ..problem import Draw, Function, Noise, Problem, unit_cube
from ..quadrature import by_product
from .levels import driven, oscillation

U, N = stats.uniform, stats.norm


def bend(X: Array) -> Array:
    """Return a smooth function of one input."""
    return np.sin(5 * X[:, 0]) + X[:, 0] ** 2


def saddle(X: Array) -> Array:
    """Return a smooth function of two inputs."""
    return np.exp(X[:, 0] - X[:, 1]) + np.sin(3 * X[:, 0] * X[:, 1])


def mixture(X: Array) -> Array:
    """Return a smooth function of four inputs."""
    return np.exp(-np.sum((X - 0.4) ** 2, axis=1)) + 0.5 * np.sin(4 * X[:, 0]) * X[:, 3]


def noisy() -> list[Problem]:
    """Return sources with noise whose variance is known, unknown, or known for one source only."""
    normal = [N(0, 1)] * 3

    def wave(X: Array) -> Array:
        return np.sin(X @ np.array([0.7, 0.5, -0.3])) + 0.1 * X[:, 0] ** 2

    return [
        Problem(
            "known noise of a tenth on the primary source, one input",
            unit_cube(1),
            (bend, lambda X: 0.9 * bend(X) + 0.2 * X[:, 0]),
            (1.0, 0.1),
            by_product(unit_cube(1), bend, 24),
            noise=(Noise(0.07), None),
        ),
        Problem(
            "unknown noise of a fifth on both sources, two inputs",
            unit_cube(2),
            (saddle, lambda X: saddle(X) + 0.3 * np.cos(2 * X[:, 0])),
            (1.0, 0.1),
            by_product(unit_cube(2), saddle, 24),
            noise=(Noise(0.12, known=False), Noise(0.12, known=False)),
        ),
        Problem(
            "known noise of a half on the secondary source, four inputs",
            unit_cube(4),
            (mixture, lambda X: 0.8 * mixture(X) + 0.1),
            (1.0, 0.05),
            by_product(unit_cube(4), mixture, 14),
            noise=(None, Noise(0.12)),
        ),
        Problem(
            "unknown noise of a third on the primary source, three normal inputs",
            normal,
            (wave, lambda X: 0.8 * np.sin(X @ np.array([0.6, 0.6, -0.3])) + 0.2),
            (1.0, 0.1),
            by_product(normal, wave, 24),
            noise=(Noise(0.2, known=False), None),
        ),
        Problem(
            "known noise of a fifth on both sources, two inputs",
            unit_cube(2),
            (saddle, lambda X: 0.7 * saddle(X) + 0.5 * X[:, 1]),
            (1.0, 0.05),
            by_product(unit_cube(2), saddle, 24),
            noise=(Noise(0.12), Noise(0.1)),
            added=True,
        ),
        Problem(
            "unknown noise of a tenth on the primary source, one input",
            unit_cube(1),
            (bend, lambda X: np.sin(5 * X[:, 0] + 0.2) + 0.5 * X[:, 0]),
            (1.0, 0.2),
            by_product(unit_cube(1), bend, 24),
            noise=(Noise(0.07, known=False), None),
            added=True,
        ),
    ]


def odd_noise() -> list[Problem]:
    """Return sources with noise that is not Gaussian: heavy tails, outliers, factors, counts, rounding."""

    def exposed(X: Array) -> Array:
        return 1.5 + np.sin(3 * X[:, 0]) * X[:, 1]

    def chance(X: Array) -> Array:
        return 1 / (1 + np.exp(1.5 - 3 * X[:, 0] + X[:, 1] * X[:, 2]))

    def heavy(rng: np.random.Generator, y: float) -> float:  # Student's t(3) has variance 3
        return y + 0.15 * rng.standard_t(3) / np.sqrt(3)

    def outlying(rng: np.random.Generator, y: float) -> float:
        return y + 0.05 * rng.normal() * (10 if rng.uniform() < 0.05 else 1)

    def scaled(rng: np.random.Generator, y: float) -> float:
        return y * np.exp(0.15 * rng.normal() - 0.5 * 0.15**2)

    def growing(rng: np.random.Generator, y: float) -> float:
        return y + 0.2 * max(y - 1, 0.0) * rng.normal()

    def stepped(rng: np.random.Generator, y: float) -> float:  # rounded up or down at random, right on average
        return 0.25 * np.floor(y / 0.25 + rng.uniform())

    def counted(rng: np.random.Generator, y: float) -> float:
        return rng.poisson(25 * y) / 25

    def shared(rng: np.random.Generator, y: float) -> float:
        return rng.binomial(60, y) / 60

    def peaked(rng: np.random.Generator, y: float) -> float:
        return y + rng.laplace(0, 0.1)

    def member(title: str, D: int, functions: tuple[Function, ...], noise: tuple[Noise | None, ...]) -> Problem:
        truth = by_product(unit_cube(D), functions[0], 24 if D < 4 else 14)
        return Problem(f"{title}, {D} input{'s' * (D > 1)}", unit_cube(D), functions, (1.0, 0.1), truth, noise=noise)

    def unknown(std: float, draw: Draw) -> Noise:
        return Noise(std, known=False, draw=draw)

    return [
        member("heavy tails", 1, (bend, lambda X: 0.9 * bend(X) + 0.2 * X[:, 0]), (unknown(0.15, heavy), None)),
        member("outliers on both", 2, (saddle, lambda X: saddle(X) + 0.3 * X[:, 0]), (unknown(0.12, outlying),) * 2),
        member("factors", 2, (exposed, lambda X: 1.4 + 2 * X[:, 0] * X[:, 1]), (unknown(0.25, scaled), None)),
        member(
            "more noise at high values", 2, (saddle, lambda X: 0.8 * saddle(X) + 0.2), (unknown(0.16, growing), None)
        ),
        member(
            "a coarse scale", 1, (bend, lambda X: bend(X) + 0.2 * np.cos(3 * X[:, 0])), (unknown(0.12, stepped), None)
        ),
        member("counts", 2, (exposed, lambda X: 0.9 * exposed(X) + 0.2), (unknown(0.26, counted), None)),
        member("shares of 60", 3, (chance, lambda X: 0.8 * chance(X) + 0.1), (unknown(0.06, shared), None)),
        member("a noisy secondary", 4, (mixture, lambda X: 0.9 * mixture(X) + 0.1), (None, unknown(0.14, peaked))),
    ]


def varying_cost() -> list[Problem]:
    """Return sources whose costs vary over the inputs by factors of 4 to 30; the primary one costs 1 on average."""
    inputs = [U(0.1, 0.6), U(1, 4), N(1, 0.3)]
    fine, coarse = (oscillation(driven, 12.0) for _ in range(2))

    def exponential(rate: float, scale: float = 1.0) -> object:
        factor = scale * rate / np.expm1(rate)  # one on average
        return lambda X: factor * np.exp(rate * X[:, 0])

    def rise(X: Array) -> Array:
        return np.log1p(X[:, 0] + 2 * X[:, 1] * X[:, 2]) + np.cos(3 * X[:, 3]) * X[:, 0]

    def peaked(X: Array) -> Array:
        return 0.4 + 4.6 * np.exp(-8 * np.sum((X - 0.5) ** 2, axis=1))

    return [
        Problem(
            "ten times as expensive at one end, one input",
            unit_cube(1),
            (bend, lambda X: bend(X) + 0.3 * np.cos(3 * X[:, 0])),
            (exponential(2.3), exponential(2.3, 0.1)),
            by_product(unit_cube(1), bend, 24),
        ),
        Problem(
            "expensive where it is steep, two inputs",
            unit_cube(2),
            (saddle, lambda X: 0.9 * saddle(X) + 0.2 * X[:, 1]),
            (lambda X: 0.25 + 0.436 * np.exp(X[:, 0] - X[:, 1]) * (1 + X[:, 0]), 0.1),
            by_product(unit_cube(2), saddle, 24),
        ),
        Problem(
            "stiffness sets the time step, three inputs",
            inputs,
            (lambda X: fine(160, X), lambda X: coarse(24, X)),
            (lambda X: np.sqrt(X[:, 1] / 2.879), lambda X: 0.1 * np.sqrt(X[:, 1] / 2.879)),
            by_product(inputs, lambda X: fine(160, X), (20, 40, 12)),
        ),
        Problem(
            "expensive in the middle, four inputs",
            unit_cube(4),
            (rise, lambda X: 0.8 * rise(X) + 0.1 * np.sin(3 * X[:, 2])),
            (peaked, 0.1),
            by_product(unit_cube(4), rise, 16),
        ),
        Problem(
            "expensive at both ends, a secondary one too, one input",
            unit_cube(1),
            (bend, lambda X: 0.8 * bend(X) + 0.3 * X[:, 0] ** 3),
            (lambda X: 0.4 + 7.2 * (X[:, 0] - 0.5) ** 2, lambda X: 0.02 + 0.6 * (X[:, 0] - 0.5) ** 2),
            by_product(unit_cube(1), bend, 24),
            added=True,
        ),
        Problem(
            "ten times as expensive along a diagonal, three inputs",
            unit_cube(3),
            (lambda X: saddle(X) * np.cos(X[:, 2]), lambda X: saddle(X) * (1 - 0.4 * X[:, 2])),
            (lambda X: 0.2 + 0.533333 * X.sum(axis=1), 0.05),
            by_product(unit_cube(3), lambda X: saddle(X) * np.cos(X[:, 2]), 20),
            added=True,
        ),
    ]


def one_source() -> list[Problem]:
    """Return problems without a secondary source, with 1 to 6 inputs."""
    normal = [N(0, 1)] * 2

    def waves(X: Array) -> Array:
        return np.sin(8 * X[:, 0]) * np.exp(X[:, 0]) + np.cos(3 * X[:, 0])

    def hill(X: Array) -> Array:
        return np.exp(-0.5 * (X[:, 0] - 0.5) ** 2) * (1 + X[:, 1] + 0.3 * X[:, 1] ** 2)

    def bowl(X: Array) -> Array:
        return np.sqrt(1 + 3 * X[:, 0] ** 2 + X[:, 1]) * np.exp(-X[:, 2]) + np.sin(4 * X[:, 3]) * X[:, 1]

    def ratio(X: Array) -> Array:
        return (1 + X[:, 0] * X[:, 1] + X[:, 2]) / (1 + X[:, 3] + 0.5 * X[:, 4] + 0.2 * X[:, 5] ** 2)

    return [
        Problem("waves, one input", unit_cube(1), (waves,), (1.0,), by_product(unit_cube(1), waves, 30)),
        Problem("a hill, two normal inputs", normal, (hill,), (1.0,), by_product(normal, hill, 60)),
        Problem("a bowl, four inputs", unit_cube(4), (bowl,), (1.0,), by_product(unit_cube(4), bowl, 16)),
        Problem(
            "a ratio, six inputs",
            unit_cube(6),
            (ratio,),
            (1.0,),
            by_product(unit_cube(6), ratio, (3, 3, 3, 14, 12, 10)),
        ),
    ]
