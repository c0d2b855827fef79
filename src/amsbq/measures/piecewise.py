"""`PiecewiseDensity`: a one-dimensional density as piecewise polynomials, and kernel integrals against it.

For a kernel profile g with lengthscale ℓ, ∫ g((x - t) / ℓ) p(t) dt is a composite Gauss-Legendre rule: on each interval
on which p is one polynomial, the G nodes of that interval are used. Only the few intervals near x that are too wide
to resolve g, or that hold its kink at t = x, are split at x and at growing multiples of the lengthscale from it.

Notation: P intervals [lower, upper] with G nodes each; K atoms, points that carry the mass of what is too narrow for a
polynomial; u = (x - t) / ℓ; g any function that is smooth on either side of u = 0 and decays with the profile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial.legendre import leggauss, legval

from ..validation import Array, IntArray


@dataclass(frozen=True)
class QuadratureSettings:
    """Resolution of the composite rule: with these values kernel means have ten correct digits or more."""

    #: Nodes per interval, G: a smooth density takes a few dozen intervals then, and each is one small matrix product.
    n_nodes: int = 20
    #: Distances from x at which an interval is split, in decay lengths: short where g varies most.
    split_distances: tuple[float, ...] = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0)
    #: Intervals up to this many decay lengths wide resolve a smooth g with their own nodes.
    widest_resolved: float = 5.0
    #: Points where p is not smooth share the layer around them if they are closer than this many decay lengths.
    same_layer: float = 0.01
    #: Intervals up to this many decay lengths wide resolve the layer at such a point with their own nodes.
    widest_layer: float = 2.0
    #: Kernel evaluations at once: 16 MB for each array of them.
    chunk: int = 2_000_000


QUADRATURE = QuadratureSettings()

NODES, WEIGHTS = leggauss(QUADRATURE.n_nodes)  #: of the Gauss-Legendre rule on [-1, 1], each (G,)

#: Split points on either side of x, in decay lengths, ascending.
SPLITS = np.concatenate([-np.array(QUADRATURE.split_distances)[:0:-1], QUADRATURE.split_distances])


@dataclass(frozen=True)
class Decay:
    """How a function g of u decays: over which length, where it is negligible, and whether it has a kink at 0."""

    length: float  # |u| over which g falls by a factor of about e
    cutoff: float  # |u| beyond which g is negligible
    kink: bool


@dataclass(frozen=True)
class PiecewiseDensity:
    """A density p as piecewise polynomials, with atoms for the mass of intervals too narrow to resolve."""

    lower: Array  # (P,), ascending ends of the intervals
    upper: Array  # (P,)
    coefficients: Array  # (G, P), Legendre coefficients on each interval
    atoms: Array  # (K,), locations of point masses
    atom_masses: Array  # (K,)
    nonsmooth_points: Array  # ascending: finite ends of the support, jumps, singularities

    def integrate(self, g: Callable[[Array], Array], x: Array, scale: float, decay: Decay) -> Array:
        """Return ∫ g((x - t) / scale) p(t) dt for each x, shape (n,)."""
        size = max(1, QUADRATURE.chunk // (QUADRATURE.n_nodes * (len(self.lower) + 3 * len(SPLITS))))
        parts = [self._integrate(g, x[i : i + size], scale, decay) for i in range(0, len(x), size)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def integrate_twice(self, g: Callable[[Array], Array], scale: float, decay: Decay) -> float:
        """Return ∬ g((t' - t) / scale) p(t) p(t') dt dt'."""
        # As a function of t', the inner integral has a layer as wide as the kernel wherever p is not smooth.
        length = scale * decay.length
        separate = np.diff(self.nonsmooth_points, prepend=-np.inf) > QUADRATURE.same_layer * length
        splits = (self.nonsmooth_points[separate, None] + length * SPLITS).ravel()
        splits = splits[(splits > self.lower[0]) & (splits < self.upper[-1])]
        interval = np.searchsorted(self.lower, splits, side="right") - 1
        splits = splits[(self.upper - self.lower)[interval] > QUADRATURE.widest_layer * length]
        edges = np.unique(np.concatenate([self.lower, self.upper, splits]))
        interval = np.searchsorted(self.lower, 0.5 * (edges[1:] + edges[:-1]), side="right") - 1
        inside = edges[1:] <= self.upper[interval]
        t, weights = gauss_legendre(edges[:-1][inside], edges[1:][inside])
        weights = weights * self.values(t, interval[inside])
        t, weights = np.append(t, self.atoms), np.append(weights, self.atom_masses)
        return float(weights @ self.integrate(g, t, scale, decay))

    def total_mass(self) -> float:
        """Return ∫ p(t) dt, which is 1 for a density that was approximated well."""
        return float((self.upper - self.lower) @ self.coefficients[0] + self.atom_masses.sum())

    def values(self, t: Array, interval: IntArray) -> Array:
        """Return p at points t (m, k), each row of which is inside the interval of that index (m,)."""
        lower, upper = self.lower[interval, None], self.upper[interval, None]
        s = (2 * t - lower - upper) / (upper - lower)
        return np.asarray(legval(s, self.coefficients[:, interval, None], tensor=False))

    @cached_property
    def _rule(self) -> tuple[Array, Array]:
        """Nodes of all intervals and their weights times p, each (P, G)."""
        nodes, weights = gauss_legendre(self.lower, self.upper)
        return nodes, weights * self.values(nodes, np.arange(len(self.lower)))

    def _integrate(self, g: Callable[[Array], Array], x: Array, scale: float, decay: Decay) -> Array:
        nodes, weights = self._rule
        width = (self.upper - self.lower) / (scale * decay.length)
        distance = np.maximum(self.lower - x[:, None], x[:, None] - self.upper) / scale
        unresolved = (width > QUADRATURE.widest_resolved) & (distance < decay.cutoff)
        if decay.kink:
            unresolved |= distance < 0
        values = g(np.subtract.outer(x, nodes) / scale)
        values *= weights
        values[unresolved] = 0
        out: Array = values.sum(axis=(1, 2)) + g(np.subtract.outer(x, self.atoms) / scale) @ self.atom_masses

        # Unresolved intervals, relative to x and in units of the lengthscale: -u, in which they are split.
        i, interval = np.nonzero(unresolved)
        lower, upper = ((end[interval] - x[i])[:, None] / scale for end in (self.lower, self.upper))
        splits = np.clip(decay.length * SPLITS, lower, upper)
        starts, ends = np.hstack([lower, splits]), np.hstack([splits, upper])
        row, piece = np.nonzero(starts < ends)
        minus_u, weights = gauss_legendre(starts[row, piece], ends[row, piece])
        i, interval = i[row], interval[row]
        weights *= self.values(x[i, None] + scale * minus_u, interval)
        sums = np.einsum("ij,ij->i", g(-minus_u), weights)
        return out + scale * np.bincount(i, sums, minlength=len(x))


def gauss_legendre(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights on intervals, along a new last axis of length G."""
    half = 0.5 * (upper - lower)[..., None]
    return lower[..., None] + half * (1 + NODES), half * WEIGHTS
