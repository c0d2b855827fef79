"""Problems with exactly known integrals, with two or three sources and 1 to 8 inputs each.

They are what `benchmarks.calibration` and the other benchmarks run on; `tests/test_benchmark_problems.py` checks the
integrals. The integrands are the six families of Genz (1984), the paper's functions, and some that are hard for a
stationary Gaussian process: chirps, steps, cusps, other input distributions. The secondary sources are perturbed
versions of the primary one, from good to misleading, and some that are unrelated to it.

Every source takes points as rows, (n, D), and returns (n,).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import factorial
from typing import Any

import numpy as np
from scipy import special, stats

import amsbq
from amsbq.experiments import forrester, wiggly

Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Problem:
    """A primary source, whose integral is known exactly and which costs 1, and secondary ones."""

    name: str
    family: str
    measure: Any
    sources: tuple[Function, ...]
    costs: tuple[float, ...]
    integral: float

    def spread(self) -> float:
        """Return the standard deviation of the primary source under the measure, to about a percent."""
        return float(np.std(self.sources[0](self.measure.sample(20_000, 0))))


# Genz's families on the unit cube: a function with parameters a (difficulty) and u (location), shape (D,) each, and its
# integral.


def oscillatory(a: Any, u: Any) -> tuple[Function, float]:
    wave = np.exp(2j * np.pi * u[0]) * np.prod(np.expm1(1j * a) / (1j * a))
    return lambda X: np.cos(2 * np.pi * u[0] + X @ a), float(wave.real)


def product_peak(a: Any, u: Any) -> tuple[Function, float]:
    exact = np.prod((np.arctan(a * (1 - u)) + np.arctan(a * u)) / a)
    return lambda X: np.prod(1 / (1 + (a * (X - u)) ** 2), axis=1), float(exact)


def corner_peak(a: Any, u: Any) -> tuple[Function, float]:
    D = len(a)
    corners = np.array(list(product((0, 1), repeat=D)))
    terms = (-1.0) ** corners.sum(axis=1) / (1 + corners @ a)
    return lambda X: (1 + X @ a) ** -(D + 1.0), float(terms.sum() / factorial(D) / np.prod(a))


def gaussian_peak(a: Any, u: Any) -> tuple[Function, float]:
    exact = np.prod(np.sqrt(np.pi) / (2 * a) * (special.erf(a * (1 - u)) + special.erf(a * u)))
    return lambda X: np.exp(-np.sum((a * (X - u)) ** 2, axis=1)), float(exact)


def cusp(a: Any, u: Any) -> tuple[Function, float]:
    exact = np.prod((2 - np.exp(-a * u) - np.exp(-a * (1 - u))) / a)
    return lambda X: np.exp(-np.abs(X - u) @ a), float(exact)


def discontinuous(a: Any, u: Any) -> tuple[Function, float]:
    ends = np.where(np.arange(len(a)) < 2, u, 1.0)
    return (
        lambda X: np.where((X[:, :2] <= u[:2]).all(axis=1), np.exp(X @ a), 0.0),
        float(np.prod(np.expm1(a * ends) / a)),
    )


#: family -> function, and the norm of a
GENZ = {
    "oscillatory": (oscillatory, 6.0),
    "product peak": (product_peak, 5.0),
    "corner peak": (corner_peak, 1.5),
    "gaussian peak": (gaussian_peak, 4.0),
    "cusp": (cusp, 4.0),
    "discontinuous": (discontinuous, 2.0),
}

#: how a secondary source differs from the primary one: relative change of its parameters, scale, and trend in standard
#: deviations
CLOSENESS = {"good": (0.03, 0.95, 0.05), "biased": (0.08, 0.7, 0.5), "poor": (0.25, 0.8, 0.5)}


def genz_problems(seed: int = 0) -> Iterator[Problem]:
    """Yield each family with 1, 2, 4 and 8 inputs, with one or two secondary sources of different quality."""
    rng = np.random.default_rng(seed)
    qualities = list(CLOSENESS)
    for i, (family, (make, difficulty)) in enumerate(GENZ.items()):
        for j, D in enumerate((1, 2, 4, 8)):
            a = rng.uniform(0.5, 1, size=D)
            a *= difficulty / np.sqrt(a @ a) if family != "oscillatory" else difficulty / a.sum()
            u = rng.uniform(0.25, 0.75, size=D)
            primary, integral = make(a, u)
            spread = float(np.std(primary(rng.uniform(size=(4000, D)))))
            chosen = [qualities[(i + j) % 3]] if (i + j) % 2 else [qualities[(i + j) % 3], "poor"]
            secondaries = tuple(_perturbed(make, a, u, spread, *CLOSENESS[quality], rng) for quality in chosen)
            yield Problem(
                f"{family} in {D}D, {' and '.join(chosen)}",
                family,
                amsbq.Uniform(np.zeros(D), 1.0),
                (primary, *secondaries),
                (1.0, *([0.05] * len(chosen))),
                integral,
            )


def _perturbed(
    make: Any, a: Any, u: Any, spread: float, parameters: float, scale: float, trend: float, rng: Any
) -> Function:
    near, _ = make(
        a * (1 + parameters * rng.normal(size=len(a))),
        np.clip(u + 0.3 * parameters * rng.normal(size=len(u)), 0.1, 0.9),
    )
    slope, level = rng.normal(size=len(a)) / np.sqrt(len(a)), rng.normal()
    return lambda X: scale * near(X) + trend * spread * ((X - 0.5) @ slope * 2 + level)


def other_problems() -> Iterator[Problem]:
    """Yield the paper's functions, non-stationary ones, other measures, and secondary sources of no use."""
    unit = amsbq.Uniform(0, 1)

    plain = (lambda X: forrester.primary(X[:, 0]), lambda X: forrester.secondary(X[:, 0]))
    yield Problem("Forrester", "paper", unit, plain, (1.0, 0.05), forrester.true_integral())
    pair = (lambda X: wiggly.primary(X[:, 0]), lambda X: wiggly.secondary(X[:, 0]))
    yield Problem("wigglified Forrester", "paper", unit, pair, (1.0, 0.05), wiggly.true_integral())

    chirp_integral = float(special.fresnel(np.sqrt(2 * 20 / np.pi))[0] * np.sqrt(np.pi / 40))
    yield Problem(
        "chirp",
        "non-stationary",
        unit,
        (lambda X: np.sin(20 * X[:, 0] ** 2), lambda X: np.sin(20 * X[:, 0] ** 2 + 0.2) + 0.3 * X[:, 0]),
        (1.0, 0.05),
        chirp_integral,
    )

    def step(k: float, at: float) -> Function:
        return lambda X: special.expit(k * (X[:, 0] - at))

    exact = (np.logaddexp(0, 60 * 0.63) - np.logaddexp(0, -60 * 0.37)) / 60
    yield Problem("steep step", "non-stationary", unit, (step(60, 0.37), step(30, 0.4)), (1.0, 0.05), float(exact))
    yield Problem(
        "power", "non-stationary", unit, (lambda X: X[:, 0] ** 0.3, lambda X: np.sqrt(X[:, 0])), (1.0, 0.05), 1 / 1.3
    )
    peak, peak_integral = gaussian_peak(np.array([12.0, 12.0]), np.array([0.7, 0.3]))
    yield Problem(
        "narrow peak in 2D",
        "non-stationary",
        amsbq.Uniform([0, 0], 1),
        (lambda X: peak(X) + 0.1 * X[:, 0], lambda X: 0.8 * peak(X - 0.03) + 0.1 * X[:, 1]),
        (1.0, 0.05),
        peak_integral + 0.05,
    )

    gamma = amsbq.as_measure(stats.gamma(5, loc=1, scale=4))
    yield Problem(
        "decay under a gamma distribution",
        "other measures",
        gamma,
        (lambda X: np.exp(-0.1 * X[:, 0]), lambda X: np.exp(-0.12 * X[:, 0]) + 0.05),
        (1.0, 0.05),
        float(np.exp(-0.1) * (1 + 0.4) ** -5),
    )
    normal = amsbq.Gaussian([0.5, -1, 0], [[1, 0.5, 0], [0.5, 2, 0.3], [0, 0.3, 0.5]])
    direction = np.array([0.6, -0.4, 0.8])
    middle, variance = float(direction @ normal.mean), float(direction @ normal.cov @ direction)
    yield Problem(
        "wave under a correlated Gaussian",
        "other measures",
        normal,
        (lambda X: np.sin(X @ direction), lambda X: np.sin(X @ direction + 0.2) + 0.2 * X[:, 0]),
        (1.0, 0.05),
        float(np.sin(middle) * np.exp(-variance / 2)),
    )
    heavy = amsbq.as_measure(stats.t(3))
    yield Problem(
        "wave under a Student-t",
        "other measures",
        heavy,
        (lambda X: np.cos(X[:, 0]), lambda X: 0.9 * np.cos(1.1 * X[:, 0]) + 0.2),
        (1.0, 0.05),
        float((1 + np.sqrt(3)) * np.exp(-np.sqrt(3))),
    )

    rng = np.random.default_rng(9)
    for D in (1, 3):
        a, u = rng.uniform(2, 4, size=D), rng.uniform(0.3, 0.7, size=D)
        primary, integral = gaussian_peak(a, u)
        cube = amsbq.Uniform(np.zeros(D), 1.0)
        useless = {
            "constant": lambda X: np.full(len(X), 0.3),
            "unrelated": lambda X: np.sin(11 * X[:, 0] + 1) + np.cos(7 * X[:, -1]),
            "misleading": lambda X, f=primary: np.where(X[:, 0] < 0.5, f(X), 1 - f(X)),
        }
        for kind, secondary in useless.items():
            yield Problem(
                f"{kind} secondary in {D}D", "useless secondary", cube, (primary, secondary), (1.0, 0.05), integral
            )


def problem_named(name: str) -> Problem:
    """Return the problem of that name."""
    return next(problem for problem in problems() if problem.name == name)


def problems() -> list[Problem]:
    """Return all problems."""
    return [*genz_problems(), *other_problems()]
