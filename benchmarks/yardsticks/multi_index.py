"""Problems of multi-index collocation: PyApprox's tutorials, and the equation of Jakeman et al. 2019.

The equation is u_t + u_x + u_y - ∇·(k ∇u) = g on the unit square until time 1, with u = 0 at the beginning and on the
boundary. k depends on x only, as the tutorial prints it. Here it is solved by bilinear finite elements and implicit
Euler steps; the output is an average of u around a point.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy import linalg, stats

from benchmarks.arena.arrays import Array
from benchmarks.arena.families.two_knobs import grid
from benchmarks.arena.problem import Moments, Problem
from benchmarks.arena.quadrature import legendre

#: standard deviations of the terms of log(k - 1/2), with L = L_c = 1/2 and L_p = 1
LENGTH = 0.5
FIRST = np.sqrt(np.sqrt(np.pi * LENGTH) / 2)
OTHERS = np.sqrt(np.sqrt(np.pi * LENGTH)) * np.exp(-((np.pi * LENGTH) ** 2) / 4)
PLACE, WIDTH = (0.3, 0.5), 0.16  # of the average


@cache
def line_elements(cells: int) -> tuple[Array, Array, Array, Array]:
    """Return mass and derivative matrices of each cell (cells, n, n), ∫ u v' of all, and nodes; n inner nodes."""
    h, inner = 1 / cells, cells - 1
    masses, stiffnesses = np.zeros((2, cells, cells + 1, cells + 1))
    turned = np.zeros((cells + 1, cells + 1))
    for c in range(cells):
        at = np.ix_([c, c + 1], [c, c + 1])
        masses[c][at] = h / 6 * np.array([[2, 1], [1, 2]])
        stiffnesses[c][at] = 1 / h * np.array([[1, -1], [-1, 1]])
        turned[at] += 0.5 * np.array([[-1, 1], [-1, 1]])
    inside = slice(1, inner + 1)
    return masses[:, inside, inside], stiffnesses[:, inside, inside], turned[inside, inside], np.arange(1, cells) * h


def hats(cells: int, f: Callable[[Array], Array], nodes: int = 8) -> Array:
    """Return ∫ f φ_i for the hat functions of inner nodes; f is a function of places (m,)."""
    t, w = legendre(nodes)
    x = (np.arange(cells)[:, None] + t) / cells
    values = f(x.ravel()).reshape(x.shape) * w / cells
    return (values * t).sum(axis=1)[:-1] + (values * (1 - t)).sum(axis=1)[1:]


def advection(cells: int, steps: int, X: Array) -> Array:
    """Return the output for three inputs, with that many cells in each direction and steps in time."""
    masses, stiffnesses, turned, _ = line_elements(cells)
    mass, stiffness = masses.sum(axis=0), stiffnesses.sum(axis=0)
    centres = (np.arange(cells) + 0.5) / cells
    load = np.kron(hats(cells, np.cos), hats(cells, np.ones_like))
    bumps = [hats(cells, lambda x, at=at: np.exp(-(((x - at) / WIDTH) ** 2))) for at in PLACE]
    average = np.kron(*bumps) / (2 * np.pi * WIDTH**2)
    transport = np.kron(turned, mass) + np.kron(mass, turned)
    whole, times = np.kron(mass, mass), np.arange(1, steps + 1) / steps
    found = np.empty(len(X))
    for i, (a, b, c) in enumerate(X):
        waves = OTHERS * (b * np.sin(np.pi * centres) + c * np.cos(np.pi * centres))
        k = 0.5 + np.exp(1 + FIRST * a + waves)
        diffusion = np.kron(np.tensordot(k, stiffnesses, 1), mass) + np.kron(np.tensordot(k, masses, 1), stiffness)
        solver = linalg.lu_factor(whole + (transport + diffusion) / steps)
        u = np.zeros(len(load))
        for t in times:
            u = linalg.lu_solve(solver, whole @ u + (1.5 + np.cos(2 * np.pi * t)) / steps * load)
        found[i] = average @ u
    return found


def multi_index() -> list[Problem]:
    """Return two pairs of levels and four combinations of two knobs."""
    line, square = [stats.uniform(-1, 2)], [stats.uniform(-1, 2)] * 2
    root = np.sqrt(3)

    def wave(X: Array, phase: float = 0.0) -> Array:
        return np.cos(np.pi * (X[:, 0] + 1) / 2 + phase)

    def waves(X: Array, phase: float = 0.0) -> Array:
        return np.cos(np.pi * X[:, 0] + phase) * np.sin(np.pi * X[:, 1] / 2)

    return [
        Problem(
            "two levels, one input",
            line,
            (wave, lambda X: wave(X, 0.5)),
            (1.0, 0.25),
            lambda: Moments(0.0, float(np.sqrt(0.5))),
        ),
        Problem(
            "two levels, two inputs",
            square,
            (waves, lambda X: waves(X, 0.3)),
            (1.0, 0.25),
            lambda: Moments(0.0, 0.5),
        ),
        grid(
            "advection and diffusion, cells and steps",
            [stats.uniform(-root, 2 * root)] * 3,
            advection,
            (16, 4),
            (16, 4),
            (14, 10, 10),
            powers=(2.0, 1.0),
        ),
    ]
