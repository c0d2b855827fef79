"""Model ensembles of pyapprox-benchmarks 2.0 (Jakeman et al.), with closed-form moments or Gauss rules as the truth."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import stats

from benchmarks.arena.arrays import Array
from benchmarks.arena.problem import Moments, Problem, unit_cube
from benchmarks.arena.quadrature import by_product, of_each_output

U = stats.uniform

ANGLES = (np.pi / 2, 1.0, np.pi / 6)  # of the tunable ensemble; the second one is its default


def power(degree: int, X: Array) -> Array:
    """Return x to a power."""
    return X[:, 0] ** degree


def tunable(level: int, X: Array) -> Array:
    """Return a model of the tunable ensemble (Gorodetsky et al. 2020), of variance one."""
    degree = (5, 3, 1)[level]
    x, y = X.T**degree
    return np.sqrt(2 * degree + 1) * (np.cos(ANGLES[level]) * x + np.sin(ANGLES[level]) * y)


def several(level: int, X: Array) -> Array:
    """Return the three outputs of a model of the multi-output ensemble (Dixon et al. 2024)."""
    x = X[:, 0]
    turn = 2 * np.pi * x
    if level == 0:
        return np.column_stack([np.sqrt(11) * x**5, x**4, np.sin(turn)])
    if level == 1:
        return np.column_stack([np.sqrt(7) * x**3, np.sqrt(7) * x**2, np.cos(turn + np.pi / 2)])
    return np.column_stack([np.sqrt(0.75) * x**2, np.sqrt(0.75) * x, np.cos(turn + np.pi / 4)])


def perturbed(level: int, X: Array) -> Array:
    """Return the variant of the multi-output ensemble with fast perturbations, whose covariances are not degenerate."""
    x = X[:, 0]
    turn = np.pi * x
    if level == 0:
        return np.column_stack([np.sqrt(11) * x**5, x**4 + np.cos(2.2 * turn), np.sin(2 * turn)])
    if level == 1:
        slow = [np.sqrt(7) * x**3, np.sqrt(7) * x**2, np.cos(2.1 * turn + np.pi / 2)]
    else:
        slow = [np.sqrt(0.75) * x**2 + x, np.sqrt(0.75) * x, np.cos(2 * turn + np.pi / 4)]
    first = 11 if level == 1 else 17
    return np.column_stack(slow) + 0.1 * np.sin(turn[:, None] * np.array([first, first + 2, first + 4]))


def branin(X: Array, b: float = 1.0, c: float = 1.0, t: float = 1.0, shift: float = 0.0) -> Array:
    """Return Branin's function, with factors of three of its constants and a shift (Perdikaris et al. 2017)."""
    x, y = X.T
    square = (y - b * 5.1 / (4 * np.pi**2) * x**2 + c * 5 / np.pi * x - 6) ** 2
    return square + 10 * (1 - t / (8 * np.pi)) * np.cos(x) + 10 + shift


def forrester(X: Array) -> Array:
    """Return Forrester's function (Forrester et al. 2008)."""
    return (6 * X[:, 0] - 2) ** 2 * np.sin(12 * X[:, 0] - 4)


def ensembles() -> list[Problem]:
    """Return six ensembles with two to five models."""
    outputs = ("first", "second", "third")
    unit, square, box = unit_cube(1), [U(-1, 2)] * 2, [U(-5, 15), U(0, 15)]
    exact = [Moments(np.sqrt(11) / 6, 5 / 6), Moments(0.2, 4 / 15), Moments(0.0, np.sqrt(0.5))]

    return [
        Problem(
            "polynomial, five models",
            unit,
            tuple(partial(power, degree) for degree in (5, 4, 3, 2, 1)),
            (1.0, 0.1, 0.01, 0.001, 0.0001),
            lambda: Moments(1 / 6, float(np.sqrt(1 / 11 - 1 / 36))),
        ),
        Problem(
            "tunable, three models",
            square,
            tuple(partial(tunable, level) for level in range(3)),
            (1.0, 0.1, 0.01),
            lambda: Moments(0.0, 1.0),
        ),
        Problem(
            "multi-output, three models",
            unit,
            tuple(partial(several, level) for level in range(3)),
            (1.0, 0.01, 0.001),
            lambda: exact,
            outputs=outputs,
        ),
        Problem(
            "multi-output with fast perturbations, three models",
            unit,
            tuple(partial(perturbed, level) for level in range(3)),
            (1.0, 0.01, 0.001),
            of_each_output(partial(perturbed, 0), 3, lambda f: by_product(unit, f, 30)),
            outputs=outputs,
        ),
        Problem(
            "Branin, three models",
            box,
            (branin, partial(branin, b=1.2, c=0.9, t=1.1, shift=2.0), partial(branin, b=0.8, c=1.2, t=0.8, shift=5.0)),
            (1.0, 0.1, 0.01),
            by_product(box, branin, 40),
        ),
        Problem(
            "Forrester, two models",
            unit,
            (forrester, lambda X: 0.5 * forrester(X) + 10 * (X[:, 0] - 0.5) - 5),
            (1.0, 0.1),
            by_product(unit, forrester, 60),
            seen=True,
        ),
    ]
