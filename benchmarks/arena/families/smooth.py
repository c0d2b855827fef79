"""Analytic functions with their known versions of lower fidelity: Forrester, Currin, Park, Borehole and others."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import stats

from amsbq.experiments import forrester, wiggly
from benchmarks.arena.arrays import Array

from ..problem import Moments, Problem, added
from ..quadrature import by_product, legendre, moments_of, sums

U, N = stats.uniform, stats.norm


def currin(X: Array) -> Array:
    """Return Currin's function on the unit square."""
    x, y = X.T
    with np.errstate(divide="ignore"):
        edge = 1 - np.exp(-1 / (2 * y))
    return edge * (2300 * x**3 + 1900 * x**2 + 2092 * x + 60) / (100 * x**3 + 500 * x**2 + 4 * x + 20)


def currin_low(X: Array) -> Array:
    """Return the usual low-fidelity Currin function, an average over four shifted points (Xiong et al. 2013)."""
    total = np.zeros(len(X))
    for dx in (0.05, -0.05):
        for dy in (0.05, -0.05):
            total += currin(np.column_stack([X[:, 0] + dx, np.maximum(X[:, 1] + dy, 0.0)]))
    return total / 4


def park(X: Array) -> Array:
    """Return Park's first function on the unit cube (Park 1991), without its cancellation at small x_0."""
    a, b, c, d = X.T
    root = np.sqrt(a**2 + (b + c**2) * d)
    return 0.5 * (root - a) + (a + 3 * d) * np.exp(1 + np.sin(c))


def park_low(X: Array) -> Array:
    """Return the low-fidelity version of Park's function (Xiong et al. 2013)."""
    a, b, c, _ = X.T
    return (1 + np.sin(a) / 10) * park(X) - 2 * a + b**2 + c**2 + 0.5


def park_moments() -> Moments:
    """Return the moments of Park's function; powers of other variables remove the singularity of the root at zero."""

    def totals(n: int) -> Array:
        t, w = legendre(n)
        cubic, plain = (t**4, 4 * t**3 * w), (t, w)
        return sums(park, [cubic, cubic, plain, cubic])

    return moments_of(totals(36), totals(28))


#: ranges of rw, r, Tu, Hu, Tl, Hl, L, Kw
BOREHOLE = (
    (0.05, 0.15),
    (100, 50000),
    (63070, 115600),
    (990, 1110),
    (63.1, 116),
    (700, 820),
    (1120, 1680),
    (9855, 12045),
)


def borehole(X: Array, scale: float = 2 * np.pi, one: float = 1.0) -> Array:
    """Return the flow of water through a borehole; (5, 1.5) instead of (2π, 1) is its version of lower fidelity."""
    rw, r, Tu, Hu, Tl, Hl, L, Kw = X.T
    ratio = np.log(r / rw)
    return scale * Tu * (Hu - Hl) / (ratio * (one + 2 * L * Tu / (ratio * rw**2 * Kw) + Tu / Tl))


def circuit(X: Array, gain: float = 1.0, shift: float = 0.0) -> Array:
    """Return the mid-point voltage of a push-pull circuit without output transformer (Ben-Ari and Steinberg 2007)."""
    b1, b2, f, c1, c2, beta = X.T
    beta = gain * beta
    base = 12 * b2 / (b1 + b2) + shift
    total = beta * (c2 + 9) + f
    return ((base + 0.74) * beta * (c2 + 9) + 11.35 * f) / total + 0.74 * f * beta * (c2 + 9) / (total * c1)


def smooth() -> list[Problem]:
    """Return smooth pairs with 1 to 8 inputs."""
    unit = [U(0, 1)]
    pair = (lambda X: forrester.primary(X[:, 0]), lambda X: forrester.secondary(X[:, 0]))
    wiggles = (lambda X: wiggly.primary(X[:, 0]), lambda X: wiggly.secondary(X[:, 0]))
    box = [U(low, high - low) for low, high in BOREHOLE]
    resistances = [
        U(low, high - low) for low, high in ((50, 150), (25, 70), (0.5, 3), (1.2, 2.5), (0.25, 1.2), (50, 300))
    ]
    normal = [N(0, 1)] * 3
    direction = np.array([0.6, -0.4, 0.8])

    def wave(X: Array) -> Array:
        return np.sin(X @ direction + 0.3) + 0.2 * X[:, 0] * X[:, 1]

    def bean(X: Array) -> Array:
        x, y = 3 * X[:, 0] - 1.5, 3 * X[:, 1] - 1
        return np.log1p((x + x**2 - y) ** 2 + 0.3 * (1 - y) ** 2)

    return [
        Problem("Forrester (seen)", unit, pair, (1.0, 0.05), by_product(unit, pair[0], 60), seen=True),
        Problem("Currin", unit * 2, (currin, currin_low), (1.0, 0.1), by_product(unit * 2, currin, (80, 160))),
        Problem("wigglified Forrester (seen)", unit, wiggles, (1.0, 0.05), by_product(unit, wiggles[0], 80), seen=True),
        Problem("Park", unit * 4, (park, park_low), (1.0, 0.1), park_moments),
        Problem(
            "Borehole",
            box,
            (borehole, partial(borehole, scale=5.0, one=1.5)),
            (1.0, 0.1),
            by_product(box, borehole, (12, 60, 4, 2, 8, 2, 6, 6)),
        ),
        Problem(
            "push-pull circuit, six inputs",
            resistances,
            (circuit, partial(circuit, gain=0.5), partial(circuit, gain=0.8, shift=0.3)),
            (1.0, 0.05, 0.15),
            by_product(resistances, circuit, (12, 12, 10, 12, 5, 12)),
        ),
        Problem(
            "a wave in three normal inputs",
            normal,
            (wave, lambda X: 0.9 * np.sin(X @ direction + 0.5) + 0.1),
            (1.0, 0.2),
            by_product(normal, wave, 24),
        ),
        *added(
            Problem(
                "a bean, two inputs",
                unit * 2,
                (bean, lambda X: 0.8 * bean(0.9 * X + 0.05) + 0.3 * X[:, 1]),
                (1.0, 0.1),
                by_product(unit * 2, bean, 80),
            )
        ),
    ]
