"""Nodes of a measure: points with weights, denser where a function varies.

A single input has Gauss's rule. Several inputs have R sets of low-discrepancy points in the unit cube, each coordinate
of which is stretched where the function varies most (Lepage 1978): a likelihood may be negligible except in a
thousandth of the measure. The sets are independent: the differences between their averages, and between these and the
averages over their first halves, show the error of the average.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from ..common.validation import Array
from ..measures.base import Measure, inside_cube
from ..measures.empirical import Empirical
from .peak import edges_around, nodes_around
from .rules import rules_for


@dataclass(frozen=True)
class NodeSettings:
    """How many nodes there are, and how they are adapted."""

    sets: int = 4  #: sets of low-discrepancy points
    points: int = 1024  #: points of each set
    tried: int = 512  #: points by which the bins are adapted
    bins: int = 32  #: bins in which each coordinate is stretched
    rounds: int = 3  #: rounds of adaptation: each can make bins narrower by a factor of bins · adapted
    adapted: float = 0.8  #: share of points that go where the function varies; the others are spread evenly


SETTINGS = NodeSettings()


@dataclass(frozen=True)
class Nodes:
    """R sets of n points of a measure, with weights that sum to one in each set."""

    X: Array  # (R n, D)
    weights: Array  # (R, n)
    rule: bool = False  # whether only all points of a set together represent the measure
    factors: Array | None = None  # (R n,), by which averaged values are multiplied

    def averages(self, values: Array) -> tuple[Array, Array]:
        """Return averages of values (K, R n) at all points, and the variances of their errors, shape (K,) each."""
        R, n = self.weights.shape
        by_point = (values if self.factors is None else values * self.factors).reshape(len(values), R, n) * self.weights
        by_set = by_point.sum(axis=2)
        if R == 1:
            return by_set[:, 0], np.zeros(len(values))
        # sets may agree by chance; with half the points, errors are about twice as large
        halves = by_point[:, :, : n // 2].sum(axis=2) / self.weights[:, : n // 2].sum(axis=1)
        mean = by_set.mean(axis=1)
        return mean, np.maximum(by_set.var(axis=1, ddof=1) / R, 0.25 * (halves.mean(axis=1) - mean) ** 2)

    def some(self, most: int) -> tuple[Array, Array]:
        """Return the first points of the first set, at most ``most`` unless it is a rule, and weights times factors."""
        n = self.weights.shape[1] if self.rule else min(self.weights.shape[1], most)
        weights = self.weights[0, :n] / self.weights[0, :n].sum()
        return self.X[:n], weights if self.factors is None else weights * self.factors[:n]

    @classmethod
    def of(
        cls,
        measure: Measure,
        variation: Callable[[Array], Array] | None = None,
        peak: tuple[Array, Array] | None = None,
    ) -> Nodes:
        """Return nodes for functions that vary like ``variation`` of X (n, D): non-negative numbers (n,).

        Alternatively, most nodes are placed around a peak, given by its normal scores and their precision. By default,
        nodes are spread evenly.
        """
        if measure.dim == 1 and measure.marginals is not None:
            (rule,) = rules_for(measure, () if peak is None else edges_around(peak))
            return cls(rule.nodes[:, None], rule.weights[None], rule=True)
        if isinstance(measure, Empirical) and len(measure.samples) <= SETTINGS.sets * SETTINGS.points:
            mixed = np.random.default_rng(0).permutation(len(measure.samples))  # so that a part represents all
            return cls(measure.samples[mixed], measure.weights[None, mixed])
        if peak is not None:
            return cls.around(measure, peak, SETTINGS.sets, SETTINGS.points)
        edges = edges_for(measure, variation, SETTINGS.bins)
        parts = [stretched(edges, even_points(measure.dim, seed)) for seed in range(SETTINGS.sets)]
        weights = np.array([densities.prod(axis=1) for _, densities in parts])
        X = measure.from_cube(np.concatenate([u for u, _ in parts]))
        return cls(X, weights / weights.sum(axis=1, keepdims=True))

    @classmethod
    def around(cls, measure: Measure, peak: tuple[Array, Array], sets: int, points: int) -> Nodes:
        """Return sets of nodes, most of them around a peak, given by its normal scores and their precision."""
        found = [nodes_around(measure, peak, even_points(measure.dim + 1, seed, points)) for seed in range(sets)]
        weights = np.array([density for _, density in found]) / points  # their sum is one on average
        return cls(np.concatenate([X for X, _ in found]), weights)


def edges_for(measure: Measure, variation: Callable[[Array], Array] | None, bins: int, noise: float = np.inf) -> Array:
    """Return the edges (D, bins + 1) of bins of each coordinate of the unit cube, narrower where a function varies.

    They are stretched less if that would give the logarithms of the weights of points a variance of more than
    ``noise`` by the chance of which points are tried.
    """
    edges = np.tile(np.linspace(0.0, 1.0, bins + 1), (measure.dim, 1))
    if variation is None:
        return edges
    U = even_points(measure.dim, SETTINGS.sets)[: SETTINGS.tried]
    for _ in range(SETTINGS.rounds):
        u, densities = stretched(edges, U)
        sizes = np.maximum(variation(measure.from_cube(u)), 0.0) * densities.prod(axis=1)
        edges = _adapted(edges, u, sizes, noise)
    return edges


def stretched(edges: Array, U: Array) -> tuple[Array, Array]:
    """Return points (n, D), uniform within each bin, and the weight of each coordinate relative to even points, (n, D).

    The weight of a point is the product over its coordinates.
    """
    bins = edges.shape[1] - 1
    position = U.T * bins
    which = np.minimum(position.astype(int), bins - 1)
    widths = np.take_along_axis(np.diff(edges, axis=1), which, 1)
    u = np.take_along_axis(edges[:, :-1], which, 1) + widths * (position - which)
    return inside_cube(u.T), (widths * bins).T


def even_points(dim: int, seed: int, points: int = SETTINGS.points) -> Array:
    """Return low-discrepancy points of the unit cube, shape (points, dim)."""
    return inside_cube(scipy.stats.qmc.Sobol(dim, rng=np.random.default_rng(seed)).random(points))


def _adapted(edges: Array, u: Array, sizes: Array, noise: float) -> Array:
    """Return edges (D, B + 1) of equal parts of a density: a share of it by sizes (n,) at u, the rest uniform."""
    if not np.isfinite(total := sizes.sum()) or total <= 0:
        return edges
    parts, (D, bins) = sizes / total, np.diff(edges, axis=1).shape
    share = min(SETTINGS.adapted, math.sqrt(noise / (D * bins * float(parts @ parts))))
    new = np.empty_like(edges)
    for d, old in enumerate(edges):
        counts = np.histogram(u[:, d], bins=old, weights=parts)[0]
        smooth = np.convolve(np.pad(counts, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
        masses = share * smooth / smooth.sum() + (1 - share) * np.diff(old)
        below = np.append(0.0, np.cumsum(masses / masses.sum()))
        new[d] = np.interp(np.linspace(0.0, 1.0, len(old)), below, old)
        new[d, 0], new[d, -1] = 0.0, 1.0
    return new
