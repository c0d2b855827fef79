"""Secondary sources of doubtful value: mediocre, misleading, and several that are each good in a different respect."""

from __future__ import annotations

import numpy as np
from scipy import stats

from benchmarks.arena.arrays import Array

from ..problem import Function, Problem, added, unit_cube
from ..quadrature import by_product, by_sparse_grid, legendre
from .genz import gaussian_peak

U, N = stats.uniform, stats.norm


def correlated(primary: Function, other: Function, correlation: float, D: int) -> Function:
    """Return a mixture of two functions on the unit cube with a given correlation with the first one."""
    X = np.random.default_rng(1).uniform(size=(20_000, D))
    y, z = primary(X), other(X)
    slope = np.cov(y, z)[0, 1] / np.var(y, ddof=1)
    rest = np.std(z - slope * y)  # spread of the part of the other function that is uncorrelated with the primary one
    a, b = correlation / np.std(y), np.sqrt(1 - correlation**2) / rest
    return lambda X: a * primary(X) + b * (other(X) - slope * primary(X))


def mediocre() -> list[Problem]:
    """Return secondary sources with correlations of 0.3 to 0.8 with the primary one."""

    def bumps(X: Array) -> Array:
        return np.exp(-8 * (X[:, 0] - 0.3) ** 2) + 0.5 * np.sin(5 * X[:, 0])

    def waves(X: Array) -> Array:
        return np.sin(4 * X[:, 0] + 1) * np.cos(3 * X[:, 1])

    def decay(X: Array) -> Array:
        return np.exp(-X @ np.array([1.0, 2.0, 0.5])) + 0.3 * np.sin(6 * X[:, 1])

    def ratio(X: Array) -> Array:
        return (1 + X[:, 0] + 2 * X[:, 1] * X[:, 2]) / (1 + X[:, 3] + 0.5 * X[:, 4] ** 2)

    def line(X: Array) -> Array:
        return np.cos(7 * X[:, 0]) + X[:, 0]

    def plane(X: Array) -> Array:
        return np.cos(5 * X[:, 0]) + np.sin(7 * X[:, -1])

    def hills(X: Array) -> Array:
        return np.sin(5 * X[:, 0]) * np.sin(5 * X[:, 1]) + np.cos(4 * X[:, 2])

    def member(primary: Function, other: Function, D: int, wanted: tuple[float, ...], cost: float) -> Problem:
        secondaries = tuple(correlated(primary, other, r, D) for r in wanted)
        return Problem(
            f"correlation {' and '.join(map(str, wanted))}, {D} input{'s' * (D > 1)}, cost {cost}",
            unit_cube(D),
            (primary, *secondaries),
            (1.0, *[cost] * len(wanted)),
            by_product(unit_cube(D), primary, 24 if D < 4 else 12),
        )

    return [
        member(bumps, line, 1, (0.6,), 0.2),
        member(waves, plane, 2, (0.5,), 0.1),
        member(decay, hills, 3, (0.8,), 0.1),
        member(ratio, plane, 5, (0.7, 0.3), 0.1),
        member(decay, plane, 3, (0.3,), 0.05),
        member(waves, line, 2, (0.8,), 0.2),
        *added(member(hills, decay, 3, (0.65, 0.4), 0.05)),
    ]


def misleading() -> list[Problem]:
    """Return secondary sources that are unrelated to the primary one, run against it, or are right in one region."""
    rng = np.random.default_rng(9)
    a, u = rng.uniform(2, 4, size=3), rng.uniform(0.3, 0.7, size=3)
    peak, moments = gaussian_peak(a, u)

    def waves(X: Array) -> Array:
        return np.sin(3 * X[:, 0]) * (1 + X[:, 1] ** 2)

    def quartic(X: Array) -> Array:
        return (X**2) @ np.array([1.0, 0.5, 0.25, 0.1]) + X[:, 0] * X[:, 3]

    def against(X: Array) -> Array:
        return -0.8 * waves(X) + 0.3 * np.cos(4 * X[:, 0] - X[:, 1])

    def right_half(X: Array) -> Array:
        return np.where(X[:, 0] < 0.5, waves(X), waves(X) + 4 * (X[:, 0] - 0.5) * np.cos(6 * X[:, 1]))

    def near_centre(X: Array) -> Array:
        return quartic(X) * np.exp(-0.3 * np.sum(X**2, axis=1))

    def kinked(X: Array) -> Array:
        return np.sin(11 * X[:, 0] + 1) + np.cos(7 * X[:, -1])

    normal = [N(0, 1)] * 4
    return [
        Problem(
            "constant (seen)", unit_cube(3), (peak, lambda X: np.full(len(X), 0.3)), (1.0, 0.05), moments, seen=True
        ),
        Problem(
            "runs against it, two inputs",
            unit_cube(2),
            (waves, against),
            (1.0, 0.1),
            by_product(unit_cube(2), waves, 24),
        ),
        Problem("unrelated (seen)", unit_cube(3), (peak, kinked), (1.0, 0.05), moments, seen=True),
        Problem(
            "right in one half only", unit_cube(2), (waves, right_half), (1.0, 0.1), by_product(unit_cube(2), waves, 24)
        ),
        Problem(
            "right in one half, reversed in the other (seen)",
            unit_cube(3),
            (peak, lambda X: np.where(X[:, 0] < 0.5, peak(X), 1 - peak(X))),
            (1.0, 0.05),
            moments,
            seen=True,
        ),
        Problem(
            "right near the centre only, four inputs",
            normal,
            (quartic, near_centre),
            (1.0, 0.1),
            by_product(normal, quartic, 6),
        ),
        *added(
            Problem(
                "shifted by a third of a period, and a constant, one input",
                unit_cube(1),
                (
                    lambda X: np.sin(9 * X[:, 0]) + X[:, 0],
                    lambda X: np.sin(9 * X[:, 0] + 2) + X[:, 0],
                    lambda X: np.ones(len(X)),
                ),
                (1.0, 0.1, 0.01),
                by_product(unit_cube(1), lambda X: np.sin(9 * X[:, 0]) + X[:, 0], 30),
            )
        ),
    ]


def unordered() -> list[Problem]:
    """Return three or four secondary sources, each of which is good in one part, one region or one input."""
    t, w = legendre(40)

    def parts(X: Array) -> tuple[Array, ...]:
        return np.sin(4 * X[:, 0]), np.exp(X[:, 1] * X[:, 2]), np.cos(5 * X[:, 2]) * X[:, 0]

    def whole(X: Array) -> Array:
        return sum(parts(X))

    def one_part(k: int) -> Function:
        return lambda X: 1.1 * parts(X)[k] + 0.2 * X[:, 1]

    def chirp(X: Array) -> Array:
        return np.sin(2 + 9 * X[:, 0] ** 2) + X[:, 0]

    def region(centre: float) -> Function:
        return lambda X: chirp(X) + 2 * (X[:, 0] - centre) ** 2 * np.cos(9 * X[:, 0] + 7 * centre)

    def coupled(X: Array) -> Array:
        return np.exp(0.4 * X @ np.array([1.0, -0.7, 0.5, 0.3])) * (1 + 0.3 * np.sin(X[:, 0] + X[:, 3]))

    def frozen(d: int) -> Function:  # one input at its mean
        return lambda X: coupled(np.where(np.arange(4) == d, 0.0, X))

    def product(X: Array) -> Array:
        return (1 + X[:, 0] ** 2) * np.cos(2 * X[:, 1]) + X[:, 0] * X[:, 1]

    def sum_of_parts(X: Array) -> Array:
        return 1.5 * X[:, 0] + X[:, 1] ** 2 + 0.6 * np.sin(7 * X[:, 0] * X[:, 1])

    def smooth_wave(X: Array) -> Array:
        return np.sin(X @ np.array([0.9, 0.4, -0.6])) + 0.3 * X[:, 0] ** 2

    normal = [N(0, 1)] * 4
    by_mean = lambda X: float(w @ (1 + t**2)) * np.cos(2 * X[:, 1]) + 0.5 * X[:, 1]  # noqa: E731
    return [
        Problem(
            "one additive part each, three inputs",
            unit_cube(3),
            (whole, *(one_part(k) for k in range(3))),
            (1.0, 0.1, 0.1, 0.1),
            by_product(unit_cube(3), whole, 24),
        ),
        Problem(
            "one region each, one input",
            unit_cube(1),
            (chirp, region(0.0), region(0.5), region(1.0)),
            (1.0, 0.05, 0.1, 0.15),
            by_product(unit_cube(1), chirp, 60),
        ),
        Problem(
            "one input at its mean each, four normal inputs",
            normal,
            (coupled, *(frozen(d) for d in range(4))),
            (1.0, 0.1, 0.1, 0.1, 0.1),
            by_sparse_grid(normal, coupled, 9),
        ),
        Problem(
            "a linear part, an average and a shifted version",
            unit_cube(2),
            (product, lambda X: 2 * X[:, 0] - X[:, 1], by_mean, lambda X: product(X + 0.15)),
            (1.0, 0.02, 0.05, 0.2),
            by_product(unit_cube(2), product, 24),
        ),
        *added(
            Problem(
                "the linear, the quadratic and the oscillating part, two inputs",
                unit_cube(2),
                (
                    sum_of_parts,
                    lambda X: 1.5 * X[:, 0],
                    lambda X: X[:, 1] ** 2,
                    lambda X: np.sin(7 * X[:, 0] * X[:, 1]),
                ),
                (1.0, 0.02, 0.05, 0.1),
                by_product(unit_cube(2), sum_of_parts, 24),
            ),
            Problem(
                "one good, one shifted, one unrelated, three normal inputs",
                normal[:3],
                (
                    smooth_wave,
                    lambda X: smooth_wave(X) + 0.2 * X[:, 2] ** 2,
                    lambda X: smooth_wave(X + 0.7),
                    lambda X: X[:, 2] ** 3,
                ),
                (1.0, 0.3, 0.1, 0.05),
                by_product(normal[:3], smooth_wave, 24),
            ),
        ),
    ]
