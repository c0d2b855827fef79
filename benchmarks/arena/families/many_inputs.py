"""Functions of 10 to 100 inputs: some depend on a few inputs or directions, some on all inputs equally."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats
from scipy.special import expit

from benchmarks.arena.arrays import Array

from ..problem import Function, Moments, Problem
from ..quadrature import legendre, line

U, N = stats.uniform, stats.norm


def of_products(f: Callable[[Array, int], Array], D: int) -> Callable[[], Moments]:
    """Return the moments of Π_d f(x_d, d) on the unit cube."""
    t, w = legendre(60)

    def moments() -> Moments:
        mean = np.prod([w @ f(t, d) for d in range(D)])
        square = np.prod([w @ f(t, d) ** 2 for d in range(D)])
        return Moments(float(mean), float(np.sqrt(square - mean**2)))

    return moments


def of_direction(g: Function, a: Array) -> Callable[[], Moments]:
    """Return the moments of g(a·x) for standard normal inputs: a·x is normal."""
    x, w = line(stats.norm(0, float(np.sqrt(a @ a))), 120)
    mean = float(w @ g(x))
    return lambda: Moments(mean, float(np.sqrt(w @ g(x) ** 2 - mean**2)))


def of_sums(f: Callable[[Array, int], Array], D: int) -> Callable[[], Moments]:
    """Return the moments of Σ_d f(x_d, d) on the unit cube."""
    t, w = legendre(60)

    def moments() -> Moments:
        means = np.array([w @ f(t, d) for d in range(D)])
        variances = [w @ (f(t, d) - mean) ** 2 for d, mean in enumerate(means)]
        return Moments(float(means.sum()), float(np.sqrt(np.sum(variances))))

    return moments


def of_plane(g: Callable[[Array, Array], Array], a: Array, b: Array) -> Callable[[], Moments]:
    """Return the moments of g(a·x, b·x) for standard normal inputs and directions that are orthogonal."""
    if abs(a @ b) > 1e-12:
        raise ValueError("the directions are not orthogonal")
    (x, v), (y, w) = (line(stats.norm(0, float(np.sqrt(c @ c))), 120) for c in (a, b))
    values, weights = g(x[:, None], y[None]), v[:, None] * w
    mean = float(np.sum(weights * values))
    return lambda: Moments(mean, float(np.sqrt(np.sum(weights * (values - mean) ** 2))))


def wide() -> list[Problem]:
    """Return functions of 15 to 100 inputs, of which only a few matter, or all a little."""
    alike = 0.25 * np.ones(40)
    first = np.where(np.arange(100) < 10, 0.4, 0.0)
    second = np.where(np.arange(100) % 2, 0.1, -0.1)  # orthogonal to the first
    gentle = 0.15 * np.cos(np.arange(100))
    shares = 1 / (1 + np.arange(25.0)) ** 0.5
    steep = np.where(np.arange(50) < 5, 2.0, 0.0)
    rates = 0.5 + np.arange(30) / 30

    def three(x: Array, d: int) -> Array:
        return 1 + np.sin(4 * x + d) if d < 3 else 1 + 0.02 * x

    def little(x: Array, d: int) -> Array:
        return (np.abs(4 * x - 2) + 9) / 10

    def five(x: Array, d: int) -> Array:
        return np.exp(-steep[d] * x)

    def summand(x: Array, d: int) -> Array:
        return np.sin(rates[d] * np.pi * x) + x**2 * (d % 3)

    def factor(x: Array, d: int) -> Array:
        return 1 + 0.6 * shares[d] * (x**2 - 1 / 3)

    def multiplied(f: Callable[[Array, int], Array], D: int) -> Function:
        return lambda X: np.prod([f(X[:, d], d) for d in range(D)], axis=0)

    def summed(f: Callable[[Array, int], Array], D: int) -> Function:
        return lambda X: np.sum([f(X[:, d], d) for d in range(D)], axis=0)

    def bent(X: Array) -> Array:
        return np.tanh(X @ first + 0.4) * (1 + 0.5 * X @ second)

    def bowl(X: Array) -> Array:
        return X @ gentle + 0.02 * np.sum(X**2, axis=1)

    return [
        Problem(
            "three of 15 inputs matter",
            [U(0, 1)] * 15,
            (multiplied(three, 15), lambda X: multiplied(three, 2)(X) + 0.2 * X[:, 14]),
            (1.0, 0.1),
            of_products(three, 15),
        ),
        Problem(
            "20 inputs alike, each with a kink",
            [U(0, 1)] * 20,
            (multiplied(little, 20), lambda X: 1 + np.sum((X - 0.5) ** 2 - 1 / 12, axis=1)),
            (1.0, 0.1),
            lambda: Moments(1.0, float(np.sqrt((1 + 1 / 300) ** 20 - 1))),
        ),
        Problem(
            "exp of 40 normal inputs, all a little",
            [N(0, 1)] * 40,
            (lambda X: np.exp(0.3 * X @ alike), lambda X: 1 + 0.3 * X @ alike),
            (1.0, 0.02),
            lambda: Moments(
                float(np.exp(0.045 * alike @ alike)),
                float(np.exp(0.045 * alike @ alike) * np.sqrt(np.expm1(0.09 * alike @ alike))),
            ),
        ),
        Problem(
            "five of 50 inputs matter",
            [U(0, 1)] * 50,
            (multiplied(five, 50), lambda X: np.exp(-1.7 * X[:, :5].sum(axis=1)) + 0.01 * X[:, 5:].sum(axis=1)),
            (1.0, 0.1),
            of_products(five, 50),
        ),
        Problem(
            "two directions in 100 normal inputs",
            [N(0, 1)] * 100,
            (bent, lambda X: np.tanh(X @ first + 0.4)),
            (1.0, 0.2),
            of_plane(lambda s, t: np.tanh(s + 0.4) * (1 + 0.5 * t), first, second),
        ),
        Problem(
            "a shallow bowl in 100 normal inputs",
            [N(0, 1)] * 100,
            (bowl, lambda X: 0.9 * X @ gentle + 1.5),
            (1.0, 0.2),
            lambda: Moments(2.0, float(np.sqrt(gentle @ gentle + 2 * 0.02**2 * 100))),
        ),
        Problem(
            "a sum of 30 waves",
            [U(0, 1)] * 30,
            (summed(summand, 30), lambda X: summed(summand, 15)(X) + X[:, 15:].sum(axis=1)),
            (1.0, 0.1),
            of_sums(summand, 30),
        ),
        Problem(
            "25 factors of which some matter more, no good secondary",
            [U(0, 1)] * 25,
            (multiplied(factor, 25), lambda X: np.sin(5 * X[:, 20]) + X[:, 24]),
            (1.0, 0.1),
            of_products(factor, 25),
        ),
    ]


def many_inputs() -> list[Problem]:
    """Return functions of 10 to 30 inputs."""
    weights = 1 / (1 + np.arange(12.0))
    few = 1.5 * 0.6 ** np.arange(20)
    alike = np.ones(30) / np.sqrt(30)
    curvature = np.linspace(0.5, 1.5, 15)

    def growth(X: Array) -> Array:
        return np.exp(X.sum(axis=1) / 5)

    def factors(X: Array) -> Array:
        return np.prod(1 + weights * np.sin(3 * X), axis=1)

    def saturated(X: Array) -> Array:
        return expit(2 * X @ few + 0.5)

    def quadratic(X: Array) -> Array:
        return (X**2) @ curvature / 15 + 0.5 * X @ np.ones(15)

    def soft(X: Array) -> Array:
        return np.logaddexp(0, X @ alike - 0.5)

    def pair(X: Array) -> Array:
        return np.prod(1 + 0.5 * (X - 0.5), axis=1)

    return [
        Problem(
            "exp of a sum, 10 inputs",
            [U(0, 1)] * 10,
            (growth, lambda X: np.exp(1.0) * (1 + X.sum(axis=1) / 5 - 1.0)),
            (1.0, 0.1),
            of_products(lambda x, d: np.exp(x / 5), 10),
        ),
        Problem(
            "a product with decaying factors, 12 inputs",
            [U(0, 1)] * 12,
            (factors, lambda X: np.prod(1 + weights[:4] * np.sin(3 * X[:, :4]), axis=1)),
            (1.0, 0.1),
            of_products(lambda x, d: 1 + weights[d] * np.sin(3 * x), 12),
        ),
        Problem(
            "saturation along one direction, 20 normal inputs",
            [N(0, 1)] * 20,
            (saturated, lambda X: expit(2 * X[:, :4] @ few[:4] + 0.3)),
            (1.0, 0.1),
            of_direction(lambda s: expit(2 * s + 0.5), few),
        ),
        Problem(
            "a soft ramp of all inputs alike, 30 normal inputs",
            [N(0, 1)] * 30,
            (soft, lambda X: 0.5 * X @ alike + 0.3 * np.sin(X[:, 0])),
            (1.0, 0.1),
            of_direction(lambda s: np.logaddexp(0, s - 0.5), alike),
        ),
        Problem(
            "a quadratic form, 15 normal inputs",
            [N(0, 1)] * 15,
            (quadratic, lambda X: 0.5 * X @ np.ones(15) + 0.5, lambda X: 0.4 * X.sum(axis=1) + X[:, -1] ** 2 / 10),
            (1.0, 0.05, 0.1),
            lambda: Moments(1.0, float(np.sqrt(2 * np.sum((curvature / 15) ** 2) + 0.25 * 15))),
        ),
        Problem(
            "a product of equal factors, 10 inputs, no good secondary",
            [U(0, 1)] * 10,
            (pair, lambda X: np.cos(3 * X[:, 0]) + X[:, 1]),
            (1.0, 0.1),
            of_products(lambda x, d: 1 + 0.5 * (x - 0.5), 10),
        ),
        Problem(
            "an additive bowl, 12 inputs, half of which a secondary one knows",
            [U(0, 1)] * 12,
            (lambda X: np.sum(np.cosh(X - 0.3), axis=1), lambda X: np.sum(1 + X[:, :6] ** 2, axis=1) / 2),
            (1.0, 0.1),
            of_sums(lambda x, d: np.cosh(x - 0.3), 12),
            added=True,
        ),
    ]
