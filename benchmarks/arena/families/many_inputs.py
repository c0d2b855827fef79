"""Functions of 10 to 30 inputs: some depend on a few directions, some on all inputs alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats
from scipy.special import expit

from amsbq.validation import Array

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


def many_inputs() -> list[Problem]:
    """Return functions of 10, 12, 20, 30, 15 and 10 inputs."""
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
    ]
