"""Secondary sources that cost next to nothing, or nothing: formulas, and polynomials fitted to a few simulations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy import stats
from scipy.special import lambertw
from scipy.stats import qmc

from benchmarks.arena.arrays import Array

from ..problem import Function, Problem, unit_cube
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


def outbreak(steps: int, X: Array) -> Iterator[Array]:
    """Yield the shares (2, n) of people who are healthy and ill after each Runge–Kutta step, up to 20 days."""
    z, h = np.array([np.full(len(X), 0.99), np.full(len(X), 0.01)]), 20 / steps

    def slope(z: Array) -> Array:
        new = X[:, 0] * z[0] * z[1]
        return np.array([-new, new - X[:, 1] * z[1]])

    for _ in range(steps):
        k1 = slope(z)
        k2 = slope(z + 0.5 * h * k1)
        k3 = slope(z + 0.5 * h * k2)
        z = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(z + h * k3))
        yield z


def epidemic(steps: int, X: Array) -> Array:
    """Return the share of people that an epidemic has reached after 20 days, by Runge–Kutta steps."""
    *_, (healthy, _) = outbreak(steps, X)
    return 1 - healthy


def decayed(steps: int, X: Array) -> Array:
    """Return the amount at the end of a chain of two decays after a time of 3, by steps of the midpoint rule."""
    z, h = np.array([np.ones(len(X)), np.zeros(len(X))]), 3 / steps

    def slope(z: Array) -> Array:
        return np.array([-X[:, 0] * z[0], X[:, 0] * z[0] - X[:, 1] * z[1]])

    for _ in range(steps):
        z = z + h * slope(z + 0.5 * h * slope(z))
    return 1 - z[0] - z[1]


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
    """Return secondary sources that cost next to nothing: formulas and fitted polynomials."""
    circle = [U(-np.pi, 2 * np.pi)] * 3
    triple = (ishigami(5, 0.1, 4), ishigami(4.75, 0.1, 4), ishigami(3, 0.9, 2))
    other = (ishigami(7, 0.05, 4), ishigami(6, 0.06, 4), ishigami(7, 0.5, 2))
    people = [U(0.6, 0.8), U(0.2, 0.2)]
    duff = [U(0.1, 0.4), U(0.5, 1), U(0.2, 0.8), N(0.5, 0.1)]
    solve = oscillation(duffing, 8.0)
    fine = partial(solve, 120)
    swing, swinging = [U(0.1, 0.5), U(0.5, 2)], partial(oscillation(pendulum, 6.0), 100)
    chain = [U(0.2, 0.8), U(0.3, 1.2)]
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
        Problem(
            "a decay chain and its formula without the second step",
            chain,
            (partial(decayed, 60), lambda X: 1 - np.exp(-X[:, 0] * 3)),
            (1.0, 0.002),
            by_product(chain, partial(decayed, 60), 30),
            added=True,
        ),
        Problem(
            "Ishigami, a series and a constant part",
            circle,
            (
                ishigami(4, 0.08, 4),
                lambda X: X[:, 0] - X[:, 0] ** 3 / 6 + 4 * np.sin(X[:, 1]) ** 2,
                ishigami(0, 0.5, 2),
            ),
            (1.0, 0.001, 0.01),
            by_product(circle, ishigami(4, 0.08, 4), 24),
            added=True,
        ),
    ]


def free() -> list[Problem]:
    """Return free sources of mixed quality, with and without expensive ones."""
    people, swing = [U(0.6, 0.8), U(0.2, 0.2)], [U(0.1, 0.5), U(0.5, 2)]
    duff, normal = [U(0.1, 0.4), U(0.5, 1), U(0.2, 0.8), N(0.5, 0.1)], [N(0, 1)] * 3
    fine, solve, swinging = partial(epidemic, 100), oscillation(duffing, 8.0), oscillation(pendulum, 6.0)

    def bend(X: Array) -> Array:
        return np.sin(5 * X[:, 0]) + X[:, 0] ** 2

    def saddle(X: Array) -> Array:
        return np.exp(X[:, 0] - X[:, 1]) + np.sin(3 * X[:, 0] * X[:, 1])

    def wave(X: Array) -> Array:
        return np.sin(X @ np.array([0.7, 0.5, -0.3])) + 0.1 * X[:, 0] ** 2

    def unrelated(X: Array) -> Array:
        return np.cos(9 * X[:, 0] + 1) + X[:, -1]

    return [
        Problem(
            "a good one and a useless one",
            unit_cube(1),
            (bend, lambda X: 0.9 * bend(X) + 0.3 * X[:, 0], unrelated),
            (1.0, 0.0, 0.0),
            by_product(unit_cube(1), bend, 24),
        ),
        Problem(
            "a formula, beside fewer steps",
            people,
            (fine, partial(epidemic, 12), final_size),
            (1.0, 0.1, 0.0),
            by_product(people, fine, 30),
        ),
        Problem(
            "three mediocre ones",
            unit_cube(2),
            (
                saddle,
                lambda X: X[:, 0] - X[:, 1],
                lambda X: np.cos(4 * X[:, 0]) + 2 * X[:, 0],
                lambda X: X[:, 0] * X[:, 1],
            ),
            (1.0, 0.0, 0.0, 0.0),
            by_product(unit_cube(2), saddle, 24),
        ),
        Problem(
            "a fitted polynomial, beside fewer steps",
            duff,
            (partial(solve, 120), partial(solve, 20), fitted_polynomial(partial(solve, 120), duff, 40)),
            (1.0, 0.1, 0.0),
            by_product(duff, partial(solve, 120), (12, 16, 14, 12)),
        ),
        Problem(
            "a useless one, beside a good costly one",
            normal,
            (wave, lambda X: 0.9 * wave(X) + 0.2 * np.cos(X[:, 1]), unrelated),
            (1.0, 0.2, 0.0),
            by_product(normal, wave, 24),
        ),
        Problem(
            "a formula for small swings and a linear fit",
            swing,
            (partial(swinging, 100), small_angle, lambda X: 0.4 - 0.3 * X[:, 0]),
            (1.0, 0.0, 0.0),
            by_product(swing, partial(swinging, 100), (30, 40)),
        ),
        Problem(
            "a surrogate that is wrong in one half",
            unit_cube(2),
            (saddle, lambda X: saddle(X) + np.maximum(X[:, 1] - 0.5, 0) * np.sin(20 * X[:, 0])),
            (1.0, 0.0),
            by_product(unit_cube(2), saddle, 24),
        ),
        Problem(
            "only useless ones",
            unit_cube(3),
            (lambda X: saddle(X) * (1 + 0.5 * X[:, 2]), unrelated, lambda X: np.sin(14 * X[:, 1])),
            (1.0, 0.0, 0.0),
            by_product(unit_cube(3), lambda X: saddle(X) * (1 + 0.5 * X[:, 2]), 24),
        ),
    ]
