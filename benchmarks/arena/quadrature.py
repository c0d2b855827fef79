"""Quadrature rules for true integrals: Gauss rules, their products and sparse grids. None of them uses the library.

Notation: an input has a rule of nodes (m,) and weights (m,) for its distribution; X is (n, D) and w is (n,).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from scipy import stats
from scipy.special import ndtr

from benchmarks.arena.arrays import Array

from .problem import Function, Moments

Rule: TypeAlias = tuple[Array, Array]
CHUNK = 20_000  # points evaluated at once, to limit memory
FAR = 9.0  # standard deviations at which the normal distribution is truncated: 1e-19 is beyond


@lru_cache
def legendre(n: int) -> Rule:
    """Return the Gauss rule for the uniform distribution on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return (1 + nodes) / 2, weights / 2


@lru_cache
def hermite(n: int) -> Rule:
    """Return the Gauss rule for the standard normal distribution."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return nodes, weights / weights.sum()


def panels(ends: Sequence[float], n: int) -> Rule:
    """Return Gauss rules with n nodes on each of the intervals between ends, for the Lebesgue measure."""
    t, w = legendre(n)
    low, width = np.asarray(ends[:-1])[:, None], np.diff(ends)[:, None]
    return (low + width * t).ravel(), (width * w).ravel()


def line(marginal: Any, n: int, breaks: Sequence[float] = ()) -> Rule:
    """Return a rule for a scipy.stats distribution with n nodes, or with n nodes between ``breaks`` of a uniform one.

    Distributions that are neither uniform nor normal are integrated over z, where x is the quantile of Φ(z), by 18
    panels.
    """
    if marginal.dist.name == "uniform":
        low, high = marginal.support()
        nodes, weights = panels([low, *breaks, high], n)
        return nodes, weights / (high - low)
    if marginal.dist.name == "norm":
        nodes, weights = hermite(n)
        return marginal.mean() + marginal.std() * nodes, weights
    z, weights = panels(np.linspace(-FAR, FAR, 19).tolist(), n)
    weights = weights * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return np.where(z < 0, marginal.ppf(ndtr(z)), marginal.isf(ndtr(-z))), weights / weights.sum()


def sums(f: Function, rules: Sequence[Rule]) -> Array:
    """Return Σ w f and Σ w f² over the product of the rules."""
    sizes = [len(nodes) for nodes, _ in rules]
    total = np.zeros(2)
    for start in range(0, int(np.prod(sizes)), CHUNK):
        index = np.unravel_index(np.arange(start, min(start + CHUNK, int(np.prod(sizes)))), sizes)
        X = np.stack([nodes[i] for (nodes, _), i in zip(rules, index, strict=True)], axis=1)
        w = np.prod([weights[i] for (_, weights), i in zip(rules, index, strict=True)], axis=0)
        y = f(X)
        total += [w @ y, w @ y**2]
    return total


def moments_of(sums_of: Array, coarser: Array | None = None) -> Moments:
    """Return moments from Σ w f and Σ w f², with the difference to another rule as the error."""
    mean, std = float(sums_of[0]), float(np.sqrt(sums_of[1] - sums_of[0] ** 2))
    return Moments(mean, std, 0.0 if coarser is None else float(abs(mean - coarser[0]) / std))


def by_product(marginals: Sequence[Any], f: Function, orders: int | Sequence[int]) -> Callable[[], Moments]:
    """Return a function that integrates by a product of Gauss rules, and again with 3/4 of their nodes."""
    sizes = [orders] * len(marginals) if isinstance(orders, int) else orders

    def moments() -> Moments:
        fine = [line(marginal, n) for marginal, n in zip(marginals, sizes, strict=True)]
        coarse = [line(marginal, -(-3 * n // 4)) for marginal, n in zip(marginals, sizes, strict=True)]
        return moments_of(sums(f, fine), sums(f, coarse))

    return moments


def of_each_output(
    f: Function, n_outputs: int, by: Callable[[Function], Callable[[], Moments]]
) -> Callable[[], list[Moments]]:
    """Return a function that integrates each output of f, whose values are (n, M), by a rule for single outputs."""
    return lambda: [by(lambda X, m=m: f(X)[:, m])() for m in range(n_outputs)]


def by_panels(
    marginals: Sequence[Any], f: Function, breaks: Sequence[Sequence[float]], n: int
) -> Callable[[], Moments]:
    """Return a function that integrates over uniform inputs by Gauss rules between breaks, (D) lists of them."""

    def moments() -> Moments:
        fine, coarse = (
            sums(f, [line(m, k, at) for m, at in zip(marginals, breaks, strict=True)]) for k in (n, -(-3 * n // 4))
        )
        return moments_of(fine, coarse)

    return moments


def by_breaks(
    marginals: Sequence[Any], f: Function, breaks: Callable[[Array], Sequence[Array]], orders: Sequence[int]
) -> Callable[[], Moments]:
    """Return a function that integrates f over inputs, of which the first is uniform and f has breaks along it.

    ``breaks`` returns the places, each (n,), at which f has a kink, a jump, a root or a steep rise, for other inputs
    (n, D - 1). Nodes between two places are graded towards both ends: s = t² (3 - 2t) makes roots smooth. ``orders``
    has the number of nodes between two places, and for each other input.
    """
    low, high = marginals[0].support()

    def totals(sizes: Sequence[int]) -> Array:
        t, w = legendre(sizes[0])
        s, ds = t**2 * (3 - 2 * t), 6 * t * (1 - t) * w
        total = np.zeros(2)
        rest = [line(marginal, n) for marginal, n in zip(marginals[1:], sizes[1:], strict=True)]
        for chosen in product(*(range(len(nodes)) for nodes, _ in rest)):
            others = np.array([[nodes[i] for (nodes, _), i in zip(rest, chosen, strict=True)]])
            weight = np.prod([weights[i] for (_, weights), i in zip(rest, chosen, strict=True)])
            places = np.clip([low, *sorted(float(np.ravel(b)[0]) for b in breaks(others)), high], low, high)
            x = (places[:-1, None] + np.diff(places)[:, None] * s).ravel()
            y = f(np.column_stack([x, np.repeat(others, len(x), axis=0)]))
            along = (np.diff(places)[:, None] * ds).ravel() / (high - low) * weight
            total += [along @ y, along @ y**2]
        return total

    return lambda: moments_of(totals(orders), totals([-(-3 * n // 4) for n in orders]))


def by_sobol(
    marginals: Sequence[Any], f: Function, log2_points: int = 17, replicates: int = 16
) -> Callable[[], Moments]:
    """Return a function that averages over scrambled Sobol' points; the error is the standard error of replicates."""

    def moments() -> Moments:
        found = np.array([_average(marginals, f, log2_points, seed) for seed in range(replicates)])
        whole = moments_of(found.mean(axis=0))
        error = found[:, 0].std(ddof=1) / np.sqrt(replicates) / whole.std
        return Moments(whole.mean, whole.std, float(error))

    return moments


def _average(marginals: Sequence[Any], f: Function, log2_points: int, seed: int) -> Array:
    engine = stats.qmc.Sobol(len(marginals), seed=seed)
    total, n = np.zeros(2), 2**log2_points
    for _ in range(n // 2**14):
        points = engine.random(2**14)
        y = f(np.column_stack([marginal.ppf(u) for marginal, u in zip(marginals, points.T, strict=True)]))
        total += [y.sum(), (y**2).sum()]
    return total / n


def by_sparse_grid(
    marginals: Sequence[Any], f: Function, level: int, importance: Sequence[float] | None = None
) -> Callable[[], Moments]:
    """Return a function that integrates by a sparse grid of Gauss rules, and again by one of a lower level.

    The combination technique over index vectors k with Σ_d k_d / importance_d ≤ level, where index k has 2k + 1 nodes.
    """
    weights = np.ones(len(marginals)) if importance is None else 1 / np.asarray(importance)

    def smolyak(q: float) -> Array:
        inside = set(_indices(weights, q))
        total = np.zeros(2)
        for k in inside:
            coefficient = _coefficient(k, inside)
            if coefficient:
                total += coefficient * sums(f, [line(m, 2 * i + 1) for m, i in zip(marginals, k, strict=True)])
        return total

    return lambda: moments_of(smolyak(level), smolyak(level - 1))


def _indices(weights: Array, q: float, k: tuple[int, ...] = ()) -> Any:
    """Yield all index vectors whose weighted sum is at most q."""
    if len(k) == len(weights):
        yield k
        return
    i = 0
    while (left := q - i * weights[len(k)]) > -1e-9:
        yield from _indices(weights, left, (*k, i))
        i += 1


def _coefficient(k: tuple[int, ...], inside: set[tuple[int, ...]], first: int = 0) -> int:
    """Return Σ (-1)^|S| over the sets S of inputs, from the first on, whose indices can all be raised by one."""
    total = 1
    for d in range(first, len(k)):
        up = (*k[:d], k[d] + 1, *k[d + 1 :])
        if up in inside:
            total -= _coefficient(up, inside, d + 1)
    return total


def corner_sum(a: Array, b: float, power: int) -> float:
    """Return E[(a·U - b)₊^power] for U uniform on the unit cube and a > 0.

    Integrating (a·u - b)₊^power over all D inputs raises the power by D; a sum over the corners of the cube remains.
    """
    D = len(a)
    corners = np.array(list(product((0, 1), repeat=D)))
    signs = (-1.0) ** (D - corners.sum(axis=1))
    ends = np.maximum(corners @ a - b, 0.0) ** (power + D) if power + D else (corners @ a > b).astype(float)
    rising = np.prod([power + d for d in range(1, D + 1)])
    return float(signs @ ends / rising / np.prod(a))
