"""One-dimensional integrals of a kernel profile against any density, to near rounding.

A density p is cut, once, into panels on each of which it is a polynomial of degree G - 1 to rounding. Then, for
every point x at once, ∫ g((x - t) / ℓ) p(t) dt is the panels' own Gauss-Legendre rule, except on those few panels
near x that hold the kink of g at t = x or are too wide for it: these are cut again at x and at growing multiples of
the lengthscale from it.

Notation: P panels [lo, hi], G nodes in each; u = (x - t) / ℓ; g any function smooth on either side of u = 0 that
falls off with the profile; "stretch" the |u| over which g falls by a factor of about e, "reach" that beyond which it
is negligible.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss, legval, legvander

from ..validation import Array, IntArray
from .distributions import describe

G = 20


NODES, WEIGHTS = leggauss(G)


TO_COEFFICIENTS = (legvander(NODES, G - 1) * WEIGHTS[:, None]) * (np.arange(G) + 0.5)


#: where a panel is cut around x, in multiples of the stretch
CUTS = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0])


CUTS = np.concatenate([-CUTS[:0:-1], CUTS])


#: a panel wider than this many stretches does not resolve the kernel
RESOLVED = 5.0


#: quantiles from which the first panels are made
LEVELS = np.array([1e-16, 1e-12, 1e-8, 1e-5, 1e-3, 0.03, 0.2, 0.5])


#: how close to the ends of a panel its polynomial is checked, and how many nodes a mass too narrow to resolve gets
CLOSE = np.array([-1.0, 1.0]) * (1 - 2e-8)


FEW_NODES, FEW_WEIGHTS = leggauss(4)


MAX_PANELS = 2000


CHUNK = 2_000_000


@dataclass(frozen=True)
class Reach:
    """How a function g of u falls off, and whether it has a kink at 0."""

    stretch: float
    reach: float
    kink: bool


@dataclass(frozen=True)
class Panels:
    """A density as piecewise polynomials, with point masses for what is too narrow to resolve."""

    lo: Array  # (P,)
    hi: Array  # (P,)
    coefficients: Array  # (G, P), Legendre
    masses: Array  # (K,), in intervals too narrow to resolve
    places: Array  # (K,), where they are
    hard: Array  # where the density is not smooth: finite ends of the support, jumps, singularities

    def integrate(self, g: Callable[[Array], Array], x: Array, scale: float, reach: Reach) -> Array:
        """∫ g((x - t) / scale) p(t) dt for each x."""
        size = max(1, CHUNK // (G * (len(self.lo) + 3 * len(CUTS))))
        parts = [self._integrate(g, x[i : i + size], scale, reach) for i in range(0, len(x), size)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def integrate_twice(self, g: Callable[[Array], Array], scale: float, reach: Reach) -> float:
        """∬ g((t' - t) / scale) p(t) p(t') dt dt'."""
        # The inner integral has layers as wide as the kernel at the hard edges of the density.
        step = scale * reach.stretch
        apart = np.diff(self.hard, prepend=-np.inf) > 0.01 * step
        layers = (self.hard[apart, None] + step * CUTS).ravel()
        layers = layers[(layers > self.lo[0]) & (layers < self.hi[-1])]
        around = np.searchsorted(self.lo, layers, side="right") - 1
        layers = layers[(self.hi - self.lo)[around] > 2 * step]  # narrower panels resolve them as they are
        edges = np.unique(np.concatenate([self.lo, self.hi, layers]))
        panel = np.searchsorted(self.lo, 0.5 * (edges[1:] + edges[:-1]), side="right") - 1
        inside = edges[1:] <= self.hi[panel]
        t, weights = _gauss(edges[:-1][inside], edges[1:][inside])
        weights = weights * self.density(t, panel[inside])
        t, weights = np.append(t, self.places), np.append(weights, self.masses)
        return float(weights @ self.integrate(g, t, scale, reach))

    def density(self, t: Array, panel: IntArray) -> Array:
        """p at points t (m, k), each row inside the panel of that number (m,)."""
        lo, hi = self.lo[panel, None], self.hi[panel, None]
        return np.asarray(legval((2 * t - lo - hi) / (hi - lo), self.coefficients[:, panel, None], tensor=False))

    @cached_property
    def _rule(self) -> tuple[Array, Array]:
        """The panels' own nodes and weights, the density included, both (P, G)."""
        nodes, weights = _gauss(self.lo, self.hi)
        return nodes, weights * self.density(nodes, np.arange(len(self.lo)))

    def _integrate(self, g: Callable[[Array], Array], x: Array, scale: float, reach: Reach) -> Array:
        nodes, weights = self._rule
        width = (self.hi - self.lo) / (scale * reach.stretch)
        distance = np.maximum(self.lo - x[:, None], x[:, None] - self.hi) / scale
        near = (width > RESOLVED) & (distance < reach.reach)
        if reach.kink:
            near |= distance < 0
        values = g(np.subtract.outer(x, nodes) / scale)
        values *= weights
        values[near] = 0
        out: Array = values.sum(axis=(1, 2)) + g(np.subtract.outer(x, self.places) / scale) @ self.masses

        i, panel = np.nonzero(near)
        lo, hi = ((edge[panel] - x[i])[:, None] / scale for edge in (self.lo, self.hi))
        cuts = np.clip(reach.stretch * CUTS, lo, hi)
        starts, ends = np.hstack([lo, cuts]), np.hstack([cuts, hi])
        pair, piece = np.nonzero(starts < ends)
        minus_u, weights = _gauss(starts[pair, piece], ends[pair, piece])
        i, panel = i[pair], panel[pair]
        weights *= self.density(x[i, None] + scale * minus_u, panel)
        sums = np.einsum("ij,ij->i", g(-minus_u), weights)
        return out + scale * np.bincount(i, sums, minlength=len(x))


def cut(distribution: Any) -> Panels:
    """Panels for anything with the pdf, cdf, sf, ppf, isf and support of a frozen scipy.stats distribution."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # where scipy warns of its accuracy, the total below tells
        panels, crowded = _cut(distribution)
    total = float((panels.hi - panels.lo) @ panels.coefficients[0] + panels.masses.sum())
    if not abs(total - 1) < 1e-6:
        raise ValueError(
            f"the density of {describe(distribution)} integrates to {total:.9g} over its support, not to 1; "
            "for a periodic one take its version on a line, such as stats.vonmises_line"
        )
    if crowded:
        warnings.warn(
            f"the density of {describe(distribution)} has more structure than {len(panels.lo)} panels resolve: "
            "its kernel means are approximate",
            RuntimeWarning,
            stacklevel=5,  # of the one who made the measure
        )
    return panels


def _cut(distribution: Any) -> tuple[Panels, bool]:
    """Panels, and whether there were not enough of them."""
    edges, spread, hard = _first_edges(distribution)
    lo, hi, before = edges[:-1], edges[1:], np.full(len(edges) - 1, np.inf)
    done: list[tuple[Array, Array, Array]] = []
    narrow_lo, narrow_hi = np.zeros(0), np.zeros(0)
    n_done, limit, crowded = 0, MAX_PANELS + 2 * len(lo), False
    while len(lo):
        coefficients, error, allowed = _fit(distribution, lo, hi)
        # A small error, or one on a small mass, that does not shrink with the panel is noise of scipy's own density.
        mass = distribution.cdf(hi) - distribution.cdf(lo)
        small = (error < 1e-7) | (error * np.maximum(coefficients[:, 0] * (hi - lo), mass) < 1e-12)
        smooth = (error <= allowed) | (small & (error > 0.5 * before))
        # Where the cdf, if it is to be trusted, has more mass, something narrow may stand between the nodes.
        for i in np.flatnonzero(smooth & (np.abs(coefficients[:, 0] * (hi - lo) - mass) > 1e-8)):
            smooth[i] = not _hides(distribution, lo[i], hi[i], coefficients[i])
        # Narrower than this, the rounding of t itself spoils p(t), and no kernel varies.
        spacing = np.spacing(np.maximum(np.abs(lo), np.abs(hi)))
        narrow = ~smooth & (hi - lo <= np.maximum(1e-10 * spread, 1e8 * spacing))
        if n_done + 2 * len(lo) > limit and not (smooth | narrow).all():
            crowded, narrow = True, ~smooth
        done.append((lo[smooth], hi[smooth], coefficients[smooth]))
        n_done += len(done[-1][0])
        narrow_lo, narrow_hi = np.append(narrow_lo, lo[narrow]), np.append(narrow_hi, hi[narrow])
        lo, hi, before = (part[~smooth & ~narrow] for part in (lo, hi, error))
        middle, before = 0.5 * (lo + hi), np.tile(before, 2)
        lo, hi = np.concatenate([lo, middle]), np.concatenate([middle, hi])
    lo, hi, coefficients = (np.concatenate(part) for part in zip(*done, strict=True))
    order = np.argsort(lo)
    masses, places = _point_masses(distribution, narrow_lo, narrow_hi)
    lo, hi, coefficients = lo[order], hi[order], coefficients[order].T
    hard = np.unique(np.concatenate([hard, narrow_lo, narrow_hi, _kinks(lo, hi, coefficients)]))
    return Panels(lo, hi, coefficients, masses, places, hard), crowded


def _kinks(lo: Array, hi: Array, coefficients: Array) -> Array:
    """Edges between panels whose polynomials do not continue each other."""
    width = hi - lo
    ahead = 0.02 * np.minimum(width[:-1], width[1:])
    left = legval(1 + 2 * ahead / width[:-1], coefficients[:, :-1], tensor=False)
    right = legval(-1 + 2 * ahead / width[1:], coefficients[:, 1:], tensor=False)
    size = np.abs(coefficients).max(axis=0)
    return np.asarray(lo[1:][np.abs(left - right) > 1e-9 * np.maximum(size[:-1], size[1:])])


def _fit(distribution: Any, lo: Array, hi: Array) -> tuple[Array, Array, Array]:
    """Legendre coefficients (n, G) of the density on each interval, their relative error, and what is allowed of it."""
    nodes, _ = _gauss(lo, hi)
    ends = (0.5 * (lo + hi))[:, None] + (0.5 * (hi - lo))[:, None] * CLOSE
    values = _pdf(distribution, np.column_stack([nodes, ends]))
    coefficients = values[:, :G] @ TO_COEFFICIENTS
    error = np.abs(values[:, G:].T - legval(CLOSE, coefficients.T, tensor=True).T).max(axis=0)
    error = np.maximum(error, np.abs(coefficients[:, -3:]).max(axis=1))
    size = np.abs(coefficients).max(axis=1)
    # Near a singularity the rounding of t itself is seen in p(t); and a mass of 1e-17 is nothing.
    rounding = 64 * np.spacing(np.maximum(np.abs(lo), np.abs(hi))) / (hi - lo)
    allowed = np.maximum(1e-13 + rounding, 1e-17 / (size * (hi - lo)))
    error = np.where(size > 0, error / size, error)
    return coefficients, np.where(np.isfinite(error), error, np.inf), allowed


def _hides(distribution: Any, lo: float, hi: float, coefficients: Array) -> bool:
    """Whether a close look at the density finds what the polynomial does not know."""
    t = np.linspace(-1, 1, 4003)[1:-1]
    values = _pdf(distribution, lo + 0.5 * (hi - lo) * (1 + t))
    return bool((np.abs(values - legval(t, coefficients)) > 1e-6 * np.abs(coefficients).max()).any())


def _first_edges(distribution: Any) -> tuple[Array, float, Array]:
    """Edges that bracket where the mass is, its spread, and where the density is known not to be smooth."""
    low, high = (float(end) for end in distribution.support())
    quantiles = np.concatenate([distribution.ppf(LEVELS), distribution.isf(LEVELS)])
    spread = float(distribution.isf(0.25) - distribution.ppf(0.25))
    quantiles = np.unique(quantiles[np.isfinite(quantiles)])
    quantiles = quantiles[(quantiles > low) & (quantiles < high)]
    median = quantiles[len(quantiles) // 2]
    tails = [
        np.array([end]) if np.isfinite(end) else _tail(distribution, last, last - median)
        for end, last in ((low, quantiles[0]), (high, quantiles[-1]))
    ]
    hard = np.array([end for end in (low, high) if np.isfinite(end)])
    if hasattr(getattr(distribution, "dist", None), "_hbins"):  # an rv_histogram
        _, loc, scale = distribution.dist._parse_args(*distribution.args, **distribution.kwds)
        hard = np.clip(loc + scale * distribution.dist._hbins, low, high)
    return np.unique(np.concatenate([quantiles, hard, *tails])), spread, hard


def _pdf(distribution: Any, t: Array) -> Array:
    try:
        return np.asarray(distribution.pdf(t), dtype=float)
    except OverflowError:  # scipy raises it for all the points where one is too close to a singularity
        return np.full_like(t, np.inf) if t.size == 1 else np.stack([_pdf(distribution, part) for part in t])


def _tail(distribution: Any, start: float, step: float) -> Array:
    """Edges that double their distance from ``start`` until nothing is left beyond."""
    edges = start + step * np.exp2(np.arange(1000))
    edges = edges[np.isfinite(edges)]
    mass = _pdf(distribution, edges) * np.abs(edges - start)
    return edges[: 1 + np.argmin(np.append(mass > 1e-18, False))]  # much further out, scipy's densities may overflow


def _point_masses(distribution: Any, lo: Array, hi: Array) -> tuple[Array, Array]:
    """The mass of intervals too narrow to resolve, spread over a few points by their quantiles."""
    below, above = distribution.cdf(lo), distribution.sf(hi)
    upper = above < below  # count from the smaller tail
    start = np.where(upper, above, below)
    mass = np.where(upper, distribution.sf(lo), distribution.cdf(hi)) - start
    levels = start[:, None] + mass[:, None] * 0.5 * (1 + FEW_NODES)
    places = np.where(upper[:, None], distribution.isf(levels), distribution.ppf(levels))
    masses = mass[:, None] * 0.5 * FEW_WEIGHTS
    return masses.ravel(), np.clip(places, lo[:, None], hi[:, None]).ravel()


def _gauss(lo: Array, hi: Array) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on intervals, along a new last axis."""
    half = 0.5 * (hi - lo)[..., None]
    return lo[..., None] + half * (1 + NODES), half * WEIGHTS
