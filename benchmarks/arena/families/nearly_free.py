"""Secondary sources that cost next to nothing: formulas, and polynomials that were fitted to a few simulations."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import stats
from scipy.special import lambertw
from scipy.stats import qmc

from amsbq.validation import Array

from ..problem import Function, Problem
from ..quadrature import by_product
from .levels import duffing, oscillation, pendulum

U, N = stats.uniform, stats.norm


def ishigami(b: float, c: float, power: int) -> Function:
    """Return sin x_0 + b sin² x_1 + c x_2^power sin x_0."""
    return lambda X: np.sin(X[:, 0]) + b * np.sin(X[:, 1]) ** 2 + c * X[:, 2] ** power * np.sin(X[:, 0])


def final_size(X: Array) -> Array:
    """Return the share of people that an epidemic reaches in the end, for inputs rate and recovery, by Lambert's W."""
    ratio = X[:, 0] / X[:, 1]
    return 1 + np.real(lambertw(-ratio * np.exp(-ratio * 1.001))) / ratio


def epidemic(steps: int, X: Array) -> Array:
    """Return the share of people that an epidemic has reached after 20 days, by Runge–Kutta steps."""
    z, h = np.array([np.full(len(X), 0.99), np.full(len(X), 0.01)]), 20 / steps

    def slope(z: Array) -> Array:
        new = X[:, 0] * z[0] * z[1]
        return np.array([-new, new - X[:, 1] * z[1]])

    for _ in range(steps):
        k1 = slope(z)
        k2 = slope(z + 0.5 * h * k1)
        k3 = slope(z + 0.5 * h * k2)
        z = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(z + h * k3))
    return 1 - z[0]


def small_angle(X: Array) -> Array:
    """Return the average of x² for a linear damped oscillator over a long time, a formula for the pendulum."""
    damping, end = X[:, 0], 6.0
    return (1 - np.exp(-damping * end)) / (2 * damping * end)


def fitted_polynomial(f: Function, marginals: list, n: int) -> Function:
    """Return a quadratic polynomial in all inputs, fitted to n Halton points."""
    points = qmc.Halton(len(marginals), scramble=False).random(n + 1)[1:]
    X = np.column_stack([marginal.ppf(column) for marginal, column in zip(marginals, points.T, strict=True)])
    middle, scale = X.mean(axis=0), X.std(axis=0)

    def features(X: Array) -> Array:
        T = (X - middle) / scale
        pairs = np.triu_indices(T.shape[1])
        return np.column_stack([np.ones(len(T)), T, (T[:, :, None] * T[:, None, :])[:, pairs[0], pairs[1]]])

    coefficients = np.linalg.lstsq(features(X), f(X), rcond=None)[0]
    return lambda X: features(X) @ coefficients


def nearly_free() -> list[Problem]:
    """Return Ishigami triples, formulas beside differential equations, and a fitted polynomial."""
    circle = [U(-np.pi, 2 * np.pi)] * 3
    triple = (ishigami(5, 0.1, 4), ishigami(4.75, 0.1, 4), ishigami(3, 0.9, 2))
    other = (ishigami(7, 0.05, 4), ishigami(6, 0.06, 4), ishigami(7, 0.5, 2))
    people = [U(0.6, 0.8), U(0.2, 0.2)]
    duff = [U(0.1, 0.4), U(0.5, 1), U(0.2, 0.8), N(0.5, 0.1)]
    solve = oscillation(duffing, 8.0)
    fine = partial(solve, 120)
    swing, swinging = [U(0.1, 0.5), U(0.5, 2)], partial(oscillation(pendulum, 6.0), 100)
    return [
        Problem("Ishigami triple (MXMCPy)", circle, triple, (1.0, 0.05, 0.001), by_product(circle, triple[0], 24)),
        Problem("Ishigami, other constants", circle, other, (1.0, 0.1, 0.0005), by_product(circle, other[0], 24)),
        Problem(
            "an epidemic and the formula of its final size",
            people,
            (partial(epidemic, 100), final_size),
            (1.0, 0.002),
            by_product(people, partial(epidemic, 100), 30),
        ),
        Problem(
            "Duffing, coarse steps and a polynomial fitted to 40 runs",
            duff,
            (fine, partial(solve, 20), fitted_polynomial(fine, duff, 40)),
            (1.0, 0.1, 0.001),
            by_product(duff, fine, (12, 16, 14, 12)),
        ),
        Problem(
            "a pendulum and the formula for small damping",
            swing,
            (swinging, small_angle),
            (1.0, 0.005),
            by_product(swing, swinging, (30, 40)),
        ),
    ]
