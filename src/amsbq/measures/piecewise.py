"""`PiecewiseDensity`: a one-dimensional density as piecewise polynomials, and kernel integrals against it.

For a kernel profile g with lengthscale ℓ, ∫ g((x - t) / ℓ) p(t) dt is a composite Gauss-Legendre rule: on each interval
on which p is one polynomial, the G nodes of that interval are used. Only the few intervals near x that are too wide
to resolve g, or that hold its kink at t = x, are split at x and at growing multiples of the lengthscale from it.

Notation: P intervals [lower, upper] with G nodes each; K atoms, points with the mass of intervals too narrow for a
polynomial; u = (x - t) / ℓ; g any function that is smooth on either side of u = 0 and decays with the profile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander
from numpy.polynomial.legendre import leggauss, legvander
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from ..common.validation import Array, IntArray


@dataclass(frozen=True)
class QuadratureSettings:
    """Resolution of the composite rule: with these values kernel means have ten correct digits or more."""

    #: Nodes per interval, G: a smooth density takes a few dozen intervals then, and each is one small matrix product.
    n_nodes: int = 20
    #: Distances from x at which an interval is split, in decay lengths, as far as g is not negligible: G nodes
    #: integrate a Gaussian or an exponential to machine precision on the first of these pieces; on the wider ones g is
    #: small.
    split_distances: tuple[float, ...] = (0.0, 5.0, 12.0, 24.0, 48.0)
    #: Intervals up to this many decay lengths wide resolve a smooth g with their own nodes.
    widest_resolved: float = 5.0
    #: Points where p is not smooth share the layer around them if they are closer than this many decay lengths.
    same_layer: float = 0.01
    #: Intervals up to this many decay lengths wide resolve the layer at such a point with their own nodes.
    widest_layer: float = 2.0
    #: Share of a double integral that may be lost by leaving out intervals with hardly any mass.
    negligible: float = 1e-14
    #: Neighbouring intervals that together are up to this many decay lengths wide are summarised for a smooth g ...
    widest_summary: float = 4.0
    #: ... by a Gauss rule with this number of nodes for their own density: it integrates such a g to machine precision.
    n_summary_nodes: int = 14
    #: Wider intervals are split into pieces of that width, at most this many: more are only needed far out in a tail.
    most_pieces: int = 24
    #: Summaries for every octave of decay lengths, each for the shortest ones of its cell.
    cells_per_octave: int = 2
    #: Mass of either tail that summaries leave out: less than the rounding of a sum over the rest.
    left_out: float = 1e-15
    #: Kernel evaluations at once: 16 MB for each array of them.
    chunk: int = 2_000_000
    #: Densities at once: arrays that stay in the cache of a processor.
    density_chunk: int = 8192
    #: Atoms in each block of a double sum: those out of reach of a whole block are left out.
    block: int = 36


QUADRATURE = QuadratureSettings()

NODES, WEIGHTS = leggauss(QUADRATURE.n_nodes)  #: nodes and weights of the Gauss-Legendre rule on [-1, 1], (G,) each

#: (G, G): TO_CHEBYSHEV @ Legendre coefficients = Chebyshev coefficients, which take fewer operations to evaluate
TO_CHEBYSHEV = np.linalg.solve(
    chebvander(chebpts1(len(NODES)), len(NODES) - 1), legvander(chebpts1(len(NODES)), len(NODES) - 1)
)


#: A polynomial whose square is, on average, no larger than this share of its size is zero up to rounding.
SMALLEST_NORM = 1e-28


@dataclass(frozen=True)
class Decay:
    """Decay of a function g of u: its length, where g is negligible, and whether g has a kink at 0."""

    length: float  # |u| over which g falls by a factor of about e
    cutoff: float  # |u| beyond which g is negligible
    kink: bool

    @cached_property
    def splits(self) -> Array:
        """Values of u at which intervals are split, on either side of 0, ascending."""
        distances = np.minimum(self.length * np.array(QUADRATURE.split_distances), self.cutoff)
        return np.unique(np.concatenate([-distances, distances]))


@dataclass(frozen=True)
class PiecewiseDensity:
    """A density p as piecewise polynomials, with atoms for the mass of intervals too narrow to resolve."""

    lower: Array  # (P,), ascending ends of the intervals
    upper: Array  # (P,)
    coefficients: Array  # (G, P), Legendre coefficients on each interval
    atoms: Array  # (K,), locations of point masses
    atom_masses: Array  # (K,)
    nonsmooth_points: Array  # ascending: finite ends of the support, jumps, singularities

    def integrate(
        self, g: Callable[[Array], Array], x: Array, scale: float, decay: Decay, farthest: float = np.inf
    ) -> Array:
        """Return ∫ g((x - t) / scale) p(t) dt for each x, shape (n,); without intervals at |u| beyond ``farthest``."""
        size = max(1, QUADRATURE.chunk // (QUADRATURE.n_nodes * (len(self.lower) + 3 * len(decay.splits))))
        parts = [self._integrate(g, x[i : i + size], scale, decay, farthest) for i in range(0, len(x), size)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def integrate_twice(self, g: Callable[[Array], Array], scale: float, decay: Decay) -> float:
        """Return ∬ g((t' - t) / scale) p(t) p(t') dt dt', for g with values between 0 and 1 that falls with |u|."""
        density, reach = self if decay.kink else self.summarised(scale * decay.length), scale * decay.cutoff
        if not len(density.lower):
            return density._atoms_twice(g, scale, reach)
        needed = density._select(density._contributes(g, scale, decay))
        if decay.kink:
            return needed._integrate_twice(g, scale, decay)
        rest = needed.without_atoms
        total = density._atoms_twice(g, scale, reach) + rest._integrate_twice(g, scale, decay)
        atoms = density.atoms
        near = ((rest.lower < atoms[:, None] + reach) & (rest.upper > atoms[:, None] - reach)).any(axis=1)
        return total + 2 * float(density.atom_masses[near] @ rest.integrate(g, atoms[near], scale, decay))

    def _atoms_twice(self, g: Callable[[Array], Array], scale: float, reach: float) -> float:
        """Return the double sum over atoms that are within reach of each other."""
        order = np.argsort(self.atoms)
        t, w = self.atoms[order], self.atom_masses[order]
        total = 0.0
        for start in range(0, len(t), QUADRATURE.block):
            end = min(start + QUADRATURE.block, len(t))
            last = int(np.searchsorted(t, t[end - 1] + reach))
            twice = np.append(w[start:end], 2 * w[end:last])  # pairs with later blocks count in their mirror image
            total += float(w[start:end] @ g((t[start:last] - t[start:end, None]) / scale) @ twice)
        return total

    def _contributes(self, g: Callable[[Array], Array], scale: float, decay: Decay) -> NDArray[np.bool_]:
        """Return which intervals a double integral needs, shape (P,): not the far tails of heavy-tailed densities."""
        width, mass, reach = self.upper - self.lower, self.masses, scale * decay.cutoff
        # An interval of mass m, with the mass M within reach of it, contributes at most 2 m M. An interval that is much
        # wider than g counts towards M only by its largest density times the integral of g.
        distances = decay.splits[decay.splits >= 0]
        integral = 2 * scale * float(g(distances[:-1]) @ np.diff(distances))
        total = np.append(0.0, np.cumsum(np.minimum(mass, integral * np.abs(self.coefficients).sum(axis=0))))
        first = np.searchsorted(self.upper, self.lower - reach)
        last = np.searchsorted(self.lower, self.upper + reach)
        atoms = np.append(0.0, np.cumsum(self.atom_masses[np.argsort(self.atoms)]))
        ordered = np.sort(self.atoms)
        near = total[last] - total[first]
        near += atoms[np.searchsorted(ordered, self.upper + reach, side="right")]
        near -= atoms[np.searchsorted(ordered, self.lower - reach)]
        most = 2 * mass * near
        # In an interval of n lengthscales, two points are in the same one with a probability of at least 1/n.
        least = g(np.ones(1))[0] * (mass**2 / np.ceil(width / scale)).sum() + (self.atom_masses**2).sum()
        order = np.argsort(most)
        needed = np.empty(len(mass), dtype=bool)
        needed[order] = np.cumsum(most[order]) > QUADRATURE.negligible * least
        return needed

    def _select(self, kept: NDArray[np.bool_]) -> PiecewiseDensity:
        """Return the density on the given intervals, and its atoms."""
        return replace(self, lower=self.lower[kept], upper=self.upper[kept], coefficients=self.coefficients[:, kept])

    def summarised(self, length: float) -> PiecewiseDensity:
        """Return a density with atoms for almost all intervals, for a smooth g of at least that decay length.

        Integrals are then sums over the atoms. Intervals that would need too many atoms are kept.
        """
        cell = int(scale_cell(length))
        if cell not in self._summaries:
            self._summaries[cell] = self._summarise(cell_start(cell))
        return self._summaries[cell]

    @cached_property
    def without_atoms(self) -> PiecewiseDensity:
        """The density on its intervals alone, with jumps at their outer ends."""
        edges = np.unique(np.concatenate([self.nonsmooth_points, self.lower, self.upper]))
        return replace(self, atoms=self.atoms[:0], atom_masses=self.atom_masses[:0], nonsmooth_points=edges)

    @cached_property
    def _summaries(self) -> dict[int, PiecewiseDensity]:
        return {}

    def _summarise(self, length: float) -> PiecewiseDensity:
        """Return the density with atoms for a smooth g of that decay length or a longer one."""
        below, width = np.cumsum(self.masses), self.upper - self.lower
        carries = (below > QUADRATURE.left_out) & (below[-1] - below + self.masses > QUADRATURE.left_out)
        widest = QUADRATURE.widest_summary * length
        narrow = np.flatnonzero(carries & (width <= widest))
        wide = np.flatnonzero(carries & (width > widest) & (width <= QUADRATURE.most_pieces * widest))
        nodes, weights = self._rule
        atoms, masses, start = [self.atoms], [self.atom_masses], 0
        while start < len(narrow):
            end = int(np.searchsorted(self.upper[narrow], self.lower[narrow[start]] + widest, side="right"))
            group = narrow[start : max(end, start + 1)]
            start += len(group)
            if weights[group].sum() > 0:  # the bins of a histogram may be empty
                x, w = _gauss_rule(nodes[group].ravel(), weights[group].ravel(), QUADRATURE.n_summary_nodes)
                atoms.append(x)
                masses.append(w)
        pieces = np.ceil(width[wide] / widest).astype(np.intp)
        interval, n = np.repeat(wide, pieces), np.repeat(pieces, pieces)
        piece = np.arange(len(interval)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        lower = self.lower[interval] + width[interval] * (piece / n)
        t, w = gauss_legendre(lower, lower + width[interval] / n)
        atoms.append(t.ravel())
        masses.append((w * self.values(t, interval)).ravel())
        return replace(
            self._select(carries & (width > QUADRATURE.most_pieces * widest)),
            atoms=np.concatenate(atoms),
            atom_masses=np.concatenate(masses),
        )

    def _integrate_twice(self, g: Callable[[Array], Array], scale: float, decay: Decay) -> float:
        if not len(self.lower):
            return float(self.atom_masses @ self.integrate(g, self.atoms, scale, decay))
        # As a function of t', the inner integral has a layer as wide as the kernel wherever p is not smooth.
        length = scale * decay.length
        separate = np.diff(self.nonsmooth_points, prepend=-np.inf) > QUADRATURE.same_layer * length
        splits = (self.nonsmooth_points[separate, None] + scale * decay.splits).ravel()
        splits = splits[(splits > self.lower[0]) & (splits < self.upper[-1])]
        interval = np.searchsorted(self.lower, splits, side="right") - 1
        splits = splits[(self.upper - self.lower)[interval] > QUADRATURE.widest_layer * length]
        edges = np.unique(np.concatenate([self.lower, self.upper, splits]))
        interval = np.searchsorted(self.lower, 0.5 * (edges[1:] + edges[:-1]), side="right") - 1
        inside = edges[1:] <= self.upper[interval]
        t, weights = gauss_legendre(edges[:-1][inside], edges[1:][inside])
        weights = weights * self.values(t, interval[inside])
        t, weights = np.append(t, self.atoms), np.append(weights, self.atom_masses)
        return float(weights @ self.integrate(g, t, scale, decay, farthest=decay.cutoff))

    def rule_beside(self, other: PiecewiseDensity, length: float) -> tuple[Array, Array]:
        """Return nodes and weights for integrals of p times a function as smooth as another density after smoothing.

        Intervals of both densities are split into pieces of as many decay lengths as their nodes resolve, up to a
        number of pieces.
        """
        ends = np.concatenate([self.lower, self.upper, other.lower, other.upper, other.nonsmooth_points])
        edges = np.unique(ends[(ends >= self.lower[0]) & (ends <= self.upper[-1])])
        widths = np.diff(edges)
        pieces = np.clip(np.ceil(widths / (QUADRATURE.widest_layer * length)), 1, QUADRATURE.most_pieces * 4)
        pieces = pieces.astype(np.intp)
        starts, width = np.repeat(edges[:-1], pieces), np.repeat(widths / pieces, pieces)
        starts = starts + width * (np.arange(len(starts)) - np.repeat(np.cumsum(pieces) - pieces, pieces))
        t, weights = gauss_legendre(starts, starts + width)
        interval = np.clip(np.searchsorted(self.lower, starts + 0.5 * width, side="right") - 1, 0, None)
        inside = starts + 0.5 * width < self.upper[interval]  # there may be gaps between intervals
        weights = weights * self.values(t, interval)
        weights, t = weights[inside], t[inside]
        return np.append(t, self.atoms), np.append(weights, self.atom_masses)

    def total_mass(self) -> float:
        """Return ∫ p(t) dt, which is 1 for an accurate approximation."""
        return float(self.masses.sum() + self.atom_masses.sum())

    def central(self, tail: float) -> tuple[float, float]:
        """Return ends of intervals beyond which there is at most the probability ``tail`` on either side."""
        below = np.cumsum(self.masses)
        inside = np.flatnonzero((below >= tail) & (below[-1] - below + self.masses >= tail))
        return float(self.lower[inside[0]]), float(self.upper[inside[-1]])

    @property
    def masses(self) -> Array:
        """∫ p(t) dt over each interval, shape (P,)."""
        masses: Array = (self.upper - self.lower) * self.coefficients[0]
        return masses

    def values(self, t: Array, interval: IntArray) -> Array:
        """Return p at points t (m, k); row i is inside interval ``interval[i]``, shape (m,)."""
        out, rows = np.empty(t.shape), max(1, QUADRATURE.density_chunk // t.shape[1])
        for i in range(0, len(t), rows):
            self._values(t[i : i + rows], interval[i : i + rows], out[i : i + rows])
        return out

    def _values(self, t: Array, interval: IntArray, out: Array) -> None:
        """Write p at points t (m, k) into ``out``, by Clenshaw's recurrence."""
        lower, upper = self.lower[interval, None], self.upper[interval, None]
        s = (2 * t - lower - upper) / (upper - lower)
        twice, coefficients = 2 * s, self._chebyshev[:, interval, None]
        after, now, other = np.zeros_like(s), np.broadcast_to(coefficients[-1], s.shape).copy(), np.empty_like(s)
        for coefficient in coefficients[-2:0:-1]:
            np.multiply(twice, now, out=other)
            other -= after
            other += coefficient
            after, now, other = now, other, after
        np.multiply(s, now, out=out)
        out -= after
        out += coefficients[0]

    @cached_property
    def _chebyshev(self) -> Array:
        """Chebyshev coefficients on each interval, shape (G, P)."""
        return np.asarray(TO_CHEBYSHEV @ self.coefficients)

    @property
    def rule(self) -> tuple[Array, Array]:
        """Nodes and weights of a quadrature rule for smooth integrands, atoms included, shape (n,) each."""
        nodes, weights = self._rule
        return np.append(nodes, self.atoms), np.append(weights, self.atom_masses)

    @cached_property
    def _rule(self) -> tuple[Array, Array]:
        """Nodes of all intervals and their weights times p, each (P, G)."""
        nodes, weights = gauss_legendre(self.lower, self.upper)
        return nodes, weights * self.values(nodes, np.arange(len(self.lower)))

    def _integrate(self, g: Callable[[Array], Array], x: Array, scale: float, decay: Decay, farthest: float) -> Array:
        nodes, weights = self._rule
        width = (self.upper - self.lower) / (scale * decay.length)
        distance = np.maximum(self.lower - x[:, None], x[:, None] - self.upper) / scale
        unresolved = (width > QUADRATURE.widest_resolved) & (distance < decay.cutoff)
        if decay.kink:
            unresolved |= distance < 0
        i, interval = np.nonzero(~unresolved & (distance < farthest))
        values = g((x[i, None] - nodes[interval]) / scale)
        sums = np.einsum("ij,ij->i", values, weights[interval])
        out: Array = (
            np.bincount(i, sums, minlength=len(x)) + g(np.subtract.outer(x, self.atoms) / scale) @ self.atom_masses
        )

        # Unresolved intervals, relative to x and in units of the lengthscale: -u, in which they are split.
        i, interval = np.nonzero(unresolved)
        lower, upper = ((end[interval] - x[i])[:, None] / scale for end in (self.lower, self.upper))
        splits = np.clip(decay.splits, lower, upper)
        starts, ends = splits[:, :-1], splits[:, 1:]  # beyond the cutoff, g is negligible
        row, piece = np.nonzero(starts < ends)
        minus_u, weights = gauss_legendre(starts[row, piece], ends[row, piece])
        i, interval = i[row], interval[row]
        weights *= self.values(x[i, None] + scale * minus_u, interval)
        sums = np.einsum("ij,ij->i", g(-minus_u), weights)
        return out + scale * np.bincount(i, sums, minlength=len(x))


def scale_cell(length: Array | float) -> Array:
    """Return the cell number of a decay length; all lengths of a cell share their summaries."""
    return np.asarray(np.floor(QUADRATURE.cells_per_octave * np.log2(length)))


def cell_start(cell: Any) -> Any:
    """Return the shortest decay length in a cell, or in each cell of an array."""
    return 2.0 ** (cell / QUADRATURE.cells_per_octave)


def gauss_legendre(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights on intervals, along a new last axis of length G."""
    half = 0.5 * (upper - lower)[..., None]
    return lower[..., None] + half * (1 + NODES), half * WEIGHTS


def _gauss_rule(x: Array, weights: Array, n: int) -> tuple[Array, Array]:
    """Return a rule of at most n nodes that integrates polynomials of degree 2 n - 1 like a given rule.

    The nodes x of the given rule are sorted. By the Stieltjes procedure: three-term recurrence, then eigenvalues of the
    Jacobi matrix.
    """
    centre, half, mass = 0.5 * (x[0] + x[-1]), 0.5 * (x[-1] - x[0]), weights.sum()
    s = (x - centre) / half
    before, now, norm = np.zeros_like(s), np.ones_like(s), mass
    alpha: list[float] = []
    beta: list[float] = []
    while True:
        alpha.append((weights * s) @ (now * now) / norm)
        if len(alpha) == n:
            break
        before, now = now, (s - alpha[-1]) * now - (beta[-1] if beta else 0.0) * before
        previous, norm = norm, weights @ (now * now)
        if norm <= SMALLEST_NORM * mass:  # up to rounding, the given rule has fewer distinct points
            break
        beta.append(norm / previous)
    nodes, vectors = eigh_tridiagonal(np.array(alpha), np.sqrt(beta))
    return centre + half * nodes, mass * vectors[0] ** 2
