"""The six families of Genz (1984) on the unit cube, each with perturbed versions of itself as secondary sources.

Constants of the library were chosen on the first six, which are therefore development problems. The others, with other
numbers of inputs and secondary sources that are other approximations of the function, are validation problems.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import factorial
from typing import TypeAlias

import numpy as np
from scipy import special, stats

from benchmarks.arena.arrays import Array

from ..problem import Function, Moments, Problem, added, unit_cube

Integrand: TypeAlias = tuple[Function, Callable[[], Moments]]


def moments(first: float, second: float) -> Callable[[], Moments]:
    """Return the moments for given integrals of f and of f²."""
    return lambda: Moments(float(first), float(np.sqrt(second - first**2)))


def oscillatory(a: Array, u: Array) -> Integrand:
    """Return cos(2π u_0 + a·x)."""

    def wave(k: int) -> complex:
        return np.exp(2j * np.pi * k * u[0]) * np.prod(np.expm1(1j * k * a) / (1j * k * a))

    return lambda X: np.cos(2 * np.pi * u[0] + X @ a), moments(wave(1).real, 0.5 + 0.5 * wave(2).real)


def product_peak(a: Array, u: Array) -> Integrand:
    """Return Π 1 / (1 + (a (x - u))²)."""

    def square(t: Array) -> Array:  # the primitive of 1 / (1 + t²)²
        return 0.5 * (t / (1 + t**2) + np.arctan(t))

    first = (np.arctan(a * (1 - u)) + np.arctan(a * u)) / a
    second = (square(a * (1 - u)) + square(a * u)) / a
    return lambda X: np.prod(1 / (1 + (a * (X - u)) ** 2), axis=1), moments(np.prod(first), np.prod(second))


def corner_peak(a: Array, u: Array) -> Integrand:
    """Return (1 + a·x)^-(D + 1)."""
    D = len(a)
    corners = np.array(list(product((0, 1), repeat=D)))

    def integral(power: int) -> float:  # of (1 + a·x)^-(D + power)
        terms = (-1.0) ** corners.sum(axis=1) * (1 + corners @ a) ** -float(power)
        return float(terms.sum() / np.prod(a) * factorial(power - 1) / factorial(power + D - 1))

    return lambda X: (1 + X @ a) ** -(D + 1.0), moments(integral(1), integral(D + 2))


def gaussian_peak(a: Array, u: Array) -> Integrand:
    """Return exp(-Σ (a (x - u))²)."""

    def integral(a: Array) -> float:
        return float(np.prod(np.sqrt(np.pi) / (2 * a) * (special.erf(a * (1 - u)) + special.erf(a * u))))

    return lambda X: np.exp(-np.sum((a * (X - u)) ** 2, axis=1)), moments(integral(a), integral(np.sqrt(2) * a))


def cusp(a: Array, u: Array) -> Integrand:
    """Return exp(-Σ a |x - u|)."""

    def integral(a: Array) -> float:
        return float(np.prod((2 - np.exp(-a * u) - np.exp(-a * (1 - u))) / a))

    return lambda X: np.exp(-np.abs(X - u) @ a), moments(integral(a), integral(2 * a))


def discontinuous(a: Array, u: Array) -> Integrand:
    """Return exp(a·x) where the first two inputs are below u, and 0 elsewhere."""
    ends = np.where(np.arange(len(a)) < 2, u, 1.0)

    def integral(a: Array) -> float:
        return float(np.prod(np.expm1(a * ends) / a))

    def f(X: Array) -> Array:
        return np.where((X[:, :2] <= u[:2]).all(axis=1), np.exp(X @ a), 0.0)

    return f, moments(integral(a), integral(2 * a))


#: function, norm of a (its sum for the oscillatory one), number of inputs, and the secondary sources
MEMBERS = (
    (oscillatory, 6.0, 4, ("good",)),
    (product_peak, 5.0, 2, ("biased", "poor")),
    (corner_peak, 1.5, 8, ("poor",)),
    (gaussian_peak, 4.0, 4, ("good", "poor")),
    (cusp, 4.0, 2, ("biased",)),
    (discontinuous, 2.0, 2, ("good",)),
)
#: perturbation of a secondary source: relative change of its parameters, scale, and trend in standard deviations
CLOSENESS = {"good": (0.03, 0.95, 0.05), "biased": (0.08, 0.7, 0.5), "poor": (0.25, 0.8, 0.5)}


def genz() -> list[Problem]:
    """Return Genz's test functions, with perturbed ones as secondary sources."""
    rng, problems = np.random.default_rng(0), []
    for make, difficulty, D, qualities in MEMBERS:
        a = rng.uniform(0.5, 1, size=D)
        a *= difficulty / (a.sum() if make is oscillatory else np.sqrt(a @ a))
        u = rng.uniform(0.25, 0.75, size=D)
        primary, truth = make(a, u)
        secondaries = []
        for quality in qualities:
            change, scale, trend = CLOSENESS[quality]
            near, _ = make(
                a * (1 + change * rng.normal(size=D)), np.clip(u + 0.3 * change * rng.normal(size=D), 0.1, 0.9)
            )
            slope, level = trend * truth().std * rng.normal(size=D) / np.sqrt(D), trend * truth().std * rng.normal()
            secondaries.append(_shifted(near, scale, slope, level))
        problems.append(
            Problem(
                f"{make.__name__.replace('_', ' ')} in {D}D, {' and '.join(qualities)} (seen)",
                [stats.uniform(0, 1)] * D,
                (primary, *secondaries),
                (1.0, *[0.05] * len(qualities)),
                truth,
                seen=True,
            )
        )
    return problems + _unseen()


def _unseen() -> list[Problem]:
    wave, wave_truth = oscillatory(np.array([3.0, 2.0, 1.5]), np.array([0.2]))
    peak, peak_truth = product_peak(np.array([3.0, 2.0, 4.0]), np.array([0.4, 0.6, 0.3]))
    corner, corner_truth = corner_peak(np.array([0.6, 0.4, 0.8, 0.3]), np.zeros(4))
    hat, hat_truth = cusp(np.array([2.0, 3.0, 1.0]), np.array([0.35, 0.6, 0.5]))

    without, _ = product_peak(np.array([3.0, 2.0]), np.array([0.4, 0.6]))

    def rational(X: Array) -> Array:  # exp(-t) by 1 / (1 + t + t² / 2), without the cusp
        t = np.sqrt((X - [0.35, 0.6, 0.5]) ** 2 + 0.01) @ np.array([2.0, 3.0, 1.0])
        return 1 / (1 + t + t**2 / 2)

    return added(
        Problem("oscillatory in 3D, its expansion", unit_cube(3), (wave, _expanded_cosine), (1.0, 0.1), wave_truth),
        Problem(
            "product peak in 3D, without its narrowest factor",
            unit_cube(3),
            (peak, lambda X: without(X[:, :2])),
            (1.0, 0.05),
            peak_truth,
        ),
        Problem(
            "corner peak in 4D, of half the power and of one input",
            unit_cube(4),
            (corner, lambda X: np.sqrt(corner(X)), lambda X: (1 + 0.9 + 0.8 * X[:, 2]) ** -5.0),
            (1.0, 0.1, 0.01),
            corner_truth,
        ),
        Problem("cusp in 3D, a rational function", unit_cube(3), (hat, rational), (1.0, 0.1), hat_truth),
    )


def _expanded_cosine(X: Array) -> Array:
    s = 2 * np.pi * 0.2 + X @ np.array([3.0, 2.0, 1.5]) - np.pi
    return -1 + s**2 / 2 - s**4 / 30


def _shifted(f: Function, scale: float, slope: Array, level: float) -> Function:
    return lambda X: scale * f(X) + (X - 0.5) @ slope * 2 + level
