"""Inputs that are dependent, counts or categories, or functions of other inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import ndtr

import amsbq
from benchmarks.arena.arrays import Array

from ..problem import After, Function, Moments, Problem, added
from ..quadrature import by_product, line


def dependent() -> list[Problem]:
    """Return problems with 2 or 3 inputs under a Gaussian copula."""
    loads, wind = [stats.lognorm(0.5), stats.lognorm(0.4, scale=2)], [stats.weibull_min(2), stats.lognorm(0.3)]
    flat, near = [stats.uniform()] * 3, [stats.norm(1, 0.5), stats.gamma(4, scale=0.5)]
    one, two = np.array([[1, 0.7], [0.7, 1]]), np.array([[1, -0.6], [-0.6, 1]])
    three = np.array([[1, 0.5, 0.3], [0.5, 1, -0.4], [0.3, -0.4, 1]])
    close = np.array([[1, 0.995], [0.995, 1]])

    def load(X: Array) -> Array:
        return X[:, 0] * np.sqrt(X[:, 1])

    def load_moments() -> Moments:  # its logarithm is normal
        log_mean, log_variance = 0.5 * np.log(2), 0.5**2 + 0.2**2 + 2 * 0.7 * 0.5 * 0.2
        mean = np.exp(log_mean + log_variance / 2)
        return Moments(float(mean), float(mean * np.sqrt(np.expm1(log_variance))))

    def power(X: Array) -> Array:
        return np.tanh(1.2 * X[:, 0]) ** 2 + 0.3 * X[:, 0] * X[:, 1]

    def mixing(X: Array) -> Array:
        return np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1] + np.cos(3 * X[:, 2])

    def ratio(X: Array) -> Array:
        return np.sin(X[:, 0]) * X[:, 1] + 0.2 * X[:, 1] ** 2

    rain = [stats.gamma(2, scale=0.5), stats.beta(2, 3)]

    def runoff(X: Array) -> Array:
        return X[:, 0] ** 2 / (X[:, 0] + 1 + X[:, 1]) + 0.3 * X[:, 1]

    def bowl(X: Array) -> Array:
        return X[:, 0] ** 2 + np.sin(X[:, 1]) + 0.5 * X[:, 1] * X[:, 2]

    return [
        Problem(
            "a load with correlated log-normal inputs",
            amsbq.GaussianCopula(loads, one),
            (load, lambda X: X[:, 0] * (0.7 + 0.35 * X[:, 1])),
            (1.0, 0.1),
            load_moments,
        ),
        Problem(
            "wind and turbulence",
            amsbq.GaussianCopula(wind, two),
            (power, lambda X: np.tanh(X[:, 0]) + 0.2 * X[:, 1]),
            (1.0, 0.1),
            _by_scores(wind, two, power, 120),
        ),
        Problem(
            "three correlated uniform inputs",
            amsbq.GaussianCopula(flat, three),
            (mixing, lambda X: 1.5 * X[:, 0] + X[:, 0] * X[:, 1] - X[:, 2]),
            (1.0, 0.1),
            _by_scores(flat, three, mixing, 80),
        ),
        Problem(
            "two inputs that are nearly the same",
            amsbq.GaussianCopula(near, close),
            (ratio, lambda X: X[:, 0] * X[:, 1]),
            (1.0, 0.1),
            _by_scores(near, close, ratio, 120),
        ),
        *added(
            Problem(
                "rain and soil",
                amsbq.GaussianCopula(rain, two),
                (runoff, lambda X: X[:, 0] * (1 - X[:, 1])),
                (1.0, 0.1),
                _by_scores(rain, two, runoff, 120),
            ),
            Problem(
                "three normal inputs, one of which depends on the others",
                amsbq.GaussianCopula([stats.norm()] * 3, three),
                (bowl, lambda X: X[:, 0] ** 2 + 0.5 * X[:, 1]),
                (1.0, 0.1),
                _by_scores([stats.norm()] * 3, three, bowl, 24),
            ),
        ),
    ]


def discrete() -> list[Problem]:
    """Return problems with 2 to 4 inputs, some of which are counts or categories."""
    failures = [stats.norm(), stats.poisson(2.5)]
    modes: list[Any] = [stats.uniform(), {"idle": 0.2, "part": 0.5, "full": 0.3}]
    plant: list[Any] = [stats.gamma(3, scale=0.4), stats.randint(1, 6), {"old": 0.4, "new": 0.6}]
    fleet: list[Any] = [stats.norm(), stats.uniform(), stats.binom(8, 0.3), {1: 0.5, 2: 0.3, 5: 0.2}]
    height, slope = np.array([0.3, 1.0, 1.8]), np.array([1.0, -0.5, 2.0])

    def downtime(X: Array) -> Array:
        return np.sqrt(1 + X[:, 1]) * np.exp(0.3 * X[:, 0]) + np.sin(X[:, 0])

    def yielded(X: Array) -> Array:
        mode = X[:, 1].astype(int)
        return height[mode] + slope[mode] * np.sin(3 * X[:, 0])

    def output(X: Array) -> Array:
        return X[:, 0] * np.log1p(X[:, 1]) * np.where(X[:, 2] > 0, 1.3, 0.8) + 0.3 * np.cos(2 * X[:, 0])

    def cost(X: Array) -> Array:
        return np.cos(X[:, 0]) * X[:, 1] + 0.2 * X[:, 2] ** 1.5 + np.sqrt(X[:, 3]) * (1 + 0.2 * X[:, 0])

    shifts: list[Any] = [stats.uniform(), {"a": 0.3, "b": 0.3, "c": 0.4}, {"day": 0.6, "night": 0.4}]
    calls: list[Any] = [stats.expon(), stats.geom(0.3)]
    rates = np.array([1.0, 0.4, 1.7])

    def staffed(X: Array) -> Array:
        return rates[X[:, 1].astype(int)] * np.tanh(2 * X[:, 0]) * np.where(X[:, 2] > 0, 0.7, 1.0) + 0.2 * X[:, 0] ** 2

    def waiting(X: Array) -> Array:
        return np.log1p(X[:, 1]) * (1 + 0.5 * np.exp(-X[:, 0])) + 0.3 * np.sqrt(1 + X[:, 0])

    return [
        Problem(
            "a normal input and a count",
            amsbq.Product(failures),
            (downtime, lambda X: (1 + 0.3 * X[:, 1]) * (1 + 0.3 * X[:, 0])),
            (1.0, 0.1),
            _by_values(failures, downtime, 40),
        ),
        Problem(
            "three modes, each with a curve of its own",
            amsbq.Product(modes),
            (yielded, lambda X: height[X[:, 1].astype(int)] + 2 * X[:, 0] * slope[X[:, 1].astype(int)]),
            (1.0, 0.1),
            _by_values(modes, yielded, 40),
        ),
        Problem(
            "a gamma input, a number of units and their kind",
            amsbq.Product(plant),
            (output, lambda X: X[:, 0] * X[:, 1] * np.where(X[:, 2] > 0, 0.5, 0.3)),
            (1.0, 0.1),
            _by_values(plant, output, 20),
        ),
        Problem(
            "two continuous inputs and two discrete ones",
            amsbq.Product(fleet),
            (cost, lambda X: X[:, 1] + 0.5 * X[:, 2] + 0.5 * X[:, 3]),
            (1.0, 0.1),
            _by_values(fleet, cost, 40),
        ),
        *added(
            Problem(
                "two categories and a uniform input",
                amsbq.Product(shifts),
                (staffed, lambda X: rates[X[:, 1].astype(int)] * 2 * X[:, 0]),
                (1.0, 0.1),
                _by_values(shifts, staffed, 40),
            ),
            Problem(
                "a count with a long tail",
                amsbq.Product(calls),
                (waiting, lambda X: 0.3 * X[:, 1] + 0.2 * X[:, 0]),
                (1.0, 0.05),
                _by_values(calls, waiting, 40),
            ),
        ),
    ]


def transformed() -> list[Problem]:
    """Return sources that are called with a function of 2 to 4 independent inputs."""
    angle = 0.6
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    points = np.linspace(0, 1, 21)
    waves = np.array([np.sin((k + 0.5) * np.pi * points) * np.sqrt(2) / ((k + 0.5) * np.pi) for k in range(4)])

    def rotated(X: Array) -> Array:
        return X @ turn.T

    def ridge(Z: Array) -> Array:
        return np.sin(2 * Z[:, 0]) + np.exp(0.4 * Z[:, 1])

    def mixture(X: Array) -> Array:
        return np.column_stack([X[:, 0] / (X[:, 0] + X[:, 1]), X[:, 0] + X[:, 1]])

    def reaction(Z: Array) -> Array:
        return Z[:, 1] * np.sqrt(Z[:, 0]) + np.cos(4 * Z[:, 0])

    def field(X: Array) -> Array:  # Brownian motion, by its four largest modes
        return X @ waves

    def largest(Z: Array) -> Array:
        return np.log(np.mean(np.exp(Z), axis=1))

    def polar(X: Array) -> Array:
        return np.column_stack([1 + 0.3 * np.sum(X**2, axis=1), X[:, 0] + 0.5 * X[:, 1]])

    def ratios(X: Array) -> Array:
        return np.column_stack([X[:, 0] / X[:, 1], X[:, 0] * X[:, 1]])

    def sums(X: Array) -> Array:
        return np.column_stack([X.sum(axis=1) / 2, X[:, 0] - X[:, 1]])

    normal, positive, four = [stats.norm()] * 2, [stats.uniform(1, 2)] * 2, [stats.norm()] * 4
    return [
        _after(normal, rotated, ridge, lambda Z: 2 * Z[:, 0] + 0.4 * Z[:, 1], "a rotation", 60),
        _after(positive, mixture, reaction, lambda Z: Z[:, 1] * Z[:, 0], "a fraction and a sum", 40),
        _after(four, field, largest, lambda Z: Z[:, ::4].mean(axis=1), "a random field of four modes", 20),
        *added(
            _after(
                normal,
                polar,
                lambda Z: Z[:, 0] * np.cos(Z[:, 1]) ** 2,
                lambda Z: 0.5 * Z[:, 0],
                "a size and an angle",
                40,
            ),
            _after(
                positive,
                ratios,
                lambda Z: np.log1p(Z[:, 0]) * Z[:, 1],
                lambda Z: Z[:, 0] * Z[:, 1] / 2,
                "a ratio and a product",
                40,
            ),
            _after(
                four,
                sums,
                lambda Z: np.tanh(Z[:, 0]) + 0.2 * Z[:, 1] ** 2,
                lambda Z: 0.7 * Z[:, 0],
                "two sums of four inputs",
                40,
            ),
        ),
    ]


def _after(marginals: list[Any], inner: Function, outer: Function, coarse: Function, title: str, order: int) -> Problem:
    """Return a problem whose sources are functions of ``inner`` of independent inputs."""
    return Problem(
        title,
        amsbq.Transformed(amsbq.Product(marginals), _Row(inner)),
        (After(outer, inner), After(coarse, inner)),
        (1.0, 0.1),
        by_product(marginals, After(outer, inner), order),
    )


class _Row:
    """A function of points (n, D) as a function of one of them, shape (D,)."""

    def __init__(self, function: Function) -> None:
        self.function, self.__qualname__ = function, function.__name__

    def __call__(self, x: Array) -> Array:
        return np.asarray(self.function(x[None])[0])


def _by_scores(marginals: Sequence[Any], R: Array, f: Function, order: int) -> Callable[[], Moments]:
    """Return a function that integrates over a Gaussian copula by Gauss rules for independent normal scores."""
    factor = np.linalg.cholesky(R)

    def of_scores(Z: Array) -> Array:
        columns = zip(marginals, (Z @ factor.T).T, strict=True)
        return f(np.column_stack([np.where(z < 0, m.ppf(ndtr(z)), m.isf(ndtr(-z))) for m, z in columns]))

    return by_product([stats.norm()] * len(marginals), of_scores, order)


def _by_values(marginals: Sequence[Any], f: Function, order: int) -> Callable[[], Moments]:
    """Return a function that sums over discrete inputs and integrates over the others by Gauss rules."""

    def moments() -> Moments:
        rules = [_rule(marginal, order) for marginal in marginals]
        X = np.array(list(product(*(nodes for nodes, _ in rules))))
        w = np.array([np.prod(weights) for weights in product(*(weights for _, weights in rules))])
        y = f(X)
        mean = float(w @ y)
        return Moments(mean, float(np.sqrt(w @ (y - mean) ** 2)))

    return moments


def _rule(marginal: Any, order: int) -> tuple[Array, Array]:
    if isinstance(marginal, dict):
        keys = list(marginal)
        values = np.arange(len(keys)) if isinstance(keys[0], str) else np.array(keys)
        return values.astype(float), np.array(list(marginal.values()))
    if isinstance(marginal.dist, stats.rv_discrete):
        k = np.arange(marginal.ppf(1e-15), marginal.isf(1e-15) + 1)
        return k, marginal.pmf(k)
    return line(marginal, order)
