"""Diffusion in the unit square with a log-normal coefficient, by finite differences on grids of several sizes.

-∇·(exp(g) ∇u) = 1 with u = 0 on the boundary; g = σ Σ_k ξ_k λ_k cos(m_k π x) cos(n_k π y), with standard normal ξ.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np
from scipy import stats
from scipy.linalg import solveh_banded

from benchmarks.arena.arrays import Array

from ..problem import Moments, Problem
from ..quadrature import by_sparse_grid

#: frequencies of the terms of g, in increasing order, and their sizes λ
FREQUENCIES = ((0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (2, 1), (1, 2))
SIZES = np.array([1 / (1 + m**2 + n**2) for m, n in FREQUENCIES])

Output = Literal["average", "centre"]


def solver(sigma: float, output: Output) -> Callable[[int, Array], Array]:
    """Return solve(cells, X) for the average of u, or its value in the centre."""

    def solve(cells: int, X: Array) -> Array:
        m, h = cells - 1, 1 / cells

        def coefficient(x: Array, y: Array) -> Array:
            waves = [np.cos(i * np.pi * x) * np.cos(j * np.pi * y) for i, j in FREQUENCIES[: X.shape[1]]]
            return np.exp(sigma * np.tensordot(X * SIZES[: X.shape[1]], np.array(waves), axes=1)) / h**2

        nodes, halves = np.arange(1, cells) * h, (np.arange(cells) + 0.5) * h
        across = coefficient(*np.meshgrid(halves, nodes, indexing="ij"))  # (n, cells, m): between neighbours in x
        along = coefficient(*np.meshgrid(nodes, halves, indexing="ij"))  # (n, m, cells): between neighbours in y
        diagonal = across[:, :-1] + across[:, 1:] + along[:, :, :-1] + along[:, :, 1:]
        bands = np.zeros((len(X), m + 1, m * m))  # lower bands: the diagonal, the next node in y, the next one in x
        bands[:, 0] = diagonal.reshape(len(X), -1)
        following = -along[:, :, 1:].copy()
        following[:, :, -1] = 0.0  # the last node of a column has no neighbour in the next column
        bands[:, 1] = following.reshape(len(X), -1)
        bands[:, m, : m * (m - 1)] += -across[:, 1:-1].reshape(len(X), -1)
        u = np.array([solveh_banded(band, np.ones(m * m), lower=True) for band in bands])
        return u.sum(axis=1) * h**2 if output == "average" else u[:, (m * m) // 2]

    return solve


def member(terms: int, sigma: float, output: Output, sizes: dict[int, float], level: int) -> Problem:
    """Return a problem with that many terms of g; ``level`` is that of the sparse grid for its truth."""
    marginals = [stats.norm(0, 1)] * terms
    functions = tuple(partial(solver(sigma, output), cells) for cells in sizes)

    def truth() -> Moments:
        """Integrate over all terms but the constant one by a sparse grid: the constant is the factor exp(-σ ξ)."""
        rest = by_sparse_grid(
            marginals[1:],
            lambda X: functions[0](np.insert(X, 0, 0.0, axis=1)),
            level,
            np.sqrt(SIZES[1:terms] / SIZES[1]),
        )()
        mean = rest.mean * np.exp(sigma**2 / 2)
        square = (rest.std**2 + rest.mean**2) * np.exp(2 * sigma**2)
        std = float(np.sqrt(square - mean**2))
        return Moments(float(mean), std, rest.error * rest.std * float(np.exp(sigma**2 / 2)) / std)

    title = f"{output} of u, {terms} inputs, grids of {', '.join(map(str, sizes))} cells, σ = {sigma:g}"
    knobs = tuple({"h": 1 / cells} for cells in sizes)
    return Problem(title, marginals, functions, tuple(sizes.values()), truth, ordered=True, knobs=knobs)


def diffusion() -> list[Problem]:
    """Return diffusion in a square with a random coefficient of 4 to 8 terms, on three or four grids."""
    three = {16: 1.0, 8: 0.2, 4: 0.05}
    return [
        member(4, 0.6, "average", three, 9),
        member(8, 0.5, "average", three, 7),
        member(6, 0.5, "average", {24: 1.0, 12: 0.25, 6: 0.1, 4: 0.05}, 7),
        member(4, 0.8, "centre", three, 9),
    ]
