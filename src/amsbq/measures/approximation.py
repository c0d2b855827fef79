"""`approximate_density`: the density of any continuous distribution as piecewise polynomials, to near rounding.

Intervals between quantiles are bisected until a Legendre series of G coefficients fits the density p on each of them.
Intervals next to a singularity that become too narrow for that are replaced by a few atoms with their mass. Only the
methods pdf, cdf, sf, ppf, isf and support of the distribution are used.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.legendre import leggauss, legval, legvander

from ..common.messages import SILENCE, warn
from ..common.validation import Array
from .distributions import Distribution, describe, histogram_edges
from .piecewise import NODES, WEIGHTS, PiecewiseDensity, gauss_legendre


@dataclass(frozen=True)
class ApproximationSettings:
    """Criteria for the fit of polynomials and for bisection; errors are relative to the largest coefficient."""

    #: Probabilities, from either tail, of the quantiles between which the first intervals lie.
    probabilities: tuple[float, ...] = (1e-16, 1e-12, 1e-8, 1e-5, 1e-3, 0.03, 0.2, 0.5)
    #: Infinite tails end where the density times the distance from the last quantile is this small: scipy's densities
    #: may overflow much further out.
    tail_mass: float = 1e-18
    #: Largest error of a polynomial that fits: a few hundred roundings, the accuracy of scipy's densities.
    tolerance: float = 1e-13
    #: Mass of an interval that needs no resolution, and roundings of t, relative to the width, that p(t) may show.
    negligible_mass: float = 1e-17
    roundings: float = 64.0
    #: An error that bisection does not halve is noise of scipy's own density: accepted below this size ...
    noise: float = 1e-7
    #: ... or if it is this small after multiplication by the mass of the interval.
    noise_mass: float = 1e-12
    #: If the masses by the cdf and by the polynomial differ by more, the density is searched for narrow structure ...
    mass_mismatch: float = 1e-8
    #: ... at this many points, where it may differ from the polynomial by this much.
    n_search_points: int = 4001
    search_tolerance: float = 1e-6
    #: Narrowest intervals, relative to the interquartile range and to the spacing of floats at t: no kernel varies on
    #: the first, and the rounding of t spoils p(t) on the second.
    narrowest: float = 1e-10
    narrowest_spacings: float = 1e8
    #: Distance from the ends of an interval, in its half-widths, at which the polynomial is checked.
    end_distance: float = 2e-8
    #: Atoms per interval that is too narrow.
    n_atoms: int = 4
    #: Polynomials of neighbouring intervals are compared this share of the narrower one beyond their common end; if
    #: they differ by more than the tolerance, p is not smooth there.
    overlap: float = 0.02
    overlap_tolerance: float = 1e-9
    #: Intervals in addition to the first ones: a density with 300 modes takes 450 of them, and a few seconds.
    max_intervals: int = 2000
    #: Seconds for 1,000 densities, at most: an approximation takes tens of thousands of them. Far from what SciPy's
    #: densities take, below 0.1 or above 1.4, so that all machines refuse the same ones.
    slowest_thousand: float = 0.3
    #: Number of densities timed for this, at most twice, because a first call may load something.
    n_timed: int = 25
    #: Largest error of the total mass: with a larger one, the function is not a density on the line.
    total_tolerance: float = 1e-6


SETTINGS = ApproximationSettings()

N_COEFFICIENTS = len(NODES)
#: (G, G): values at the nodes @ TO_COEFFICIENTS = Legendre coefficients
TO_COEFFICIENTS = (legvander(NODES, N_COEFFICIENTS - 1) * WEIGHTS[:, None]) * (np.arange(N_COEFFICIENTS) + 0.5)
#: points near the ends of [-1, 1] at which polynomials are checked
NEAR_ENDS = np.array([-1.0, 1.0]) * (1 - SETTINGS.end_distance)
ATOM_NODES, ATOM_WEIGHTS = leggauss(SETTINGS.n_atoms)


def approximate_density(distribution: Distribution) -> PiecewiseDensity:
    """Return the density of a distribution as piecewise polynomials.

    Raises
    ------
    ValueError
        If the density does not integrate to one, or takes too long to evaluate.

    Warns
    -----
    RuntimeWarning
        If the density has more structure than the largest number of intervals resolves.
    """
    with SILENCE, np.errstate(all="ignore"):
        seconds = _seconds_for_a_thousand(distribution)
        if seconds > SETTINGS.slowest_thousand:
            raise ValueError(
                f"the density of {describe(distribution)} is too slow to work with: scipy takes {seconds:.2g} s for "
                "1,000 values; give samples instead, as in amsbq.Empirical(distribution.rvs(size=(10_000, 1))), or a "
                "histogram of them, stats.rv_histogram"
            )
        # if scipy itself is inaccurate, the total mass below shows it
        density, exhausted = _bisect(distribution)
    total = density.total_mass()
    if not abs(total - 1) < SETTINGS.total_tolerance:
        raise ValueError(
            f"the density of {describe(distribution)} integrates to {total:.9g} over its support, not to 1; "
            "for a periodic one, use its version on a line, such as stats.vonmises_line"
        )
    if exhausted:
        warn(
            f"the density of {describe(distribution)} has more structure than {len(density.lower)} intervals resolve: "
            "its kernel means are approximate",
            RuntimeWarning,
        )
    return density


def _seconds_for_a_thousand(distribution: Distribution) -> float:
    """Return the time that 1,000 densities take, in seconds of this thread."""
    low, high = distribution.ppf(np.array([0.1, 0.9]))
    t = np.linspace(low, high, SETTINGS.n_timed)
    fastest = np.inf
    for _ in range(2):
        start = time.thread_time()
        _pdf(distribution, t)
        fastest = min(fastest, 1000 * (time.thread_time() - start) / SETTINGS.n_timed)
        if fastest <= SETTINGS.slowest_thousand:
            break
    return fastest


def _bisect(distribution: Distribution) -> tuple[PiecewiseDensity, bool]:
    """Return the approximation, and whether the intervals were exhausted before it was accurate."""
    edges, spread, nonsmooth = _initial_edges(distribution)
    lower, upper, previous_error = edges[:-1], edges[1:], np.full(len(edges) - 1, np.inf)
    fitted: list[tuple[Array, Array, Array]] = []
    narrow_lower, narrow_upper = np.zeros(0), np.zeros(0)
    n_fitted, most, exhausted = 0, SETTINGS.max_intervals + 2 * len(lower), False
    while len(lower):
        coefficients, error, allowed = _fit(distribution, lower, upper)
        mass = distribution.cdf(upper) - distribution.cdf(lower)
        fitted_mass = coefficients[:, 0] * (upper - lower)
        small = (error < SETTINGS.noise) | (error * np.maximum(fitted_mass, mass) < SETTINGS.noise_mass)
        fits = (error <= allowed) | (small & (error > 0.5 * previous_error))
        for i in np.flatnonzero(fits & (np.abs(fitted_mass - mass) > SETTINGS.mass_mismatch)):
            fits[i] = not _misses_structure(distribution, lower[i], upper[i], coefficients[i])
        spacing = np.spacing(np.maximum(np.abs(lower), np.abs(upper)))
        narrowest = np.maximum(SETTINGS.narrowest * spread, SETTINGS.narrowest_spacings * spacing)
        narrow = ~fits & (upper - lower <= narrowest)
        if n_fitted + 2 * len(lower) > most and not (fits | narrow).all():
            exhausted, narrow = True, ~fits
        fitted.append((lower[fits], upper[fits], coefficients[fits]))
        n_fitted += len(fitted[-1][0])
        narrow_lower, narrow_upper = np.append(narrow_lower, lower[narrow]), np.append(narrow_upper, upper[narrow])
        lower, upper, previous_error = (part[~fits & ~narrow] for part in (lower, upper, error))
        middle, previous_error = 0.5 * (lower + upper), np.tile(previous_error, 2)
        lower, upper = np.concatenate([lower, middle]), np.concatenate([middle, upper])
    lower, upper, coefficients = (np.concatenate(part) for part in zip(*fitted, strict=True))
    order = np.argsort(lower)
    lower, upper, coefficients = lower[order], upper[order], coefficients[order].T
    atoms, atom_masses = _atoms(distribution, narrow_lower, narrow_upper)
    jumps = _discontinuities(lower, upper, coefficients)
    nonsmooth = np.unique(np.concatenate([nonsmooth, narrow_lower, narrow_upper, jumps]))
    return PiecewiseDensity(lower, upper, coefficients, atoms, atom_masses, nonsmooth), exhausted


def _initial_edges(distribution: Distribution) -> tuple[Array, float, Array]:
    """Return edges of the first intervals, the interquartile range, and points where the density is not smooth."""
    low, high = (float(end) for end in distribution.support())
    probabilities = np.array(SETTINGS.probabilities)
    quantiles = np.concatenate([distribution.ppf(probabilities), distribution.isf(probabilities)])
    spread = float(distribution.isf(0.25) - distribution.ppf(0.25))
    quantiles = np.unique(quantiles[np.isfinite(quantiles)])
    quantiles = quantiles[(quantiles > low) & (quantiles < high)]
    median = quantiles[len(quantiles) // 2]
    tails = [
        np.array([end]) if np.isfinite(end) else _tail_edges(distribution, last, last - median)
        for end, last in ((low, quantiles[0]), (high, quantiles[-1]))
    ]
    nonsmooth = np.array([end for end in (low, high) if np.isfinite(end)])
    bins = histogram_edges(distribution)
    if bins is not None:
        nonsmooth = np.clip(bins, low, high)
    return np.unique(np.concatenate([quantiles, nonsmooth, *tails])), spread, nonsmooth


def _tail_edges(distribution: Distribution, start: float, step: float) -> Array:
    """Return edges whose distance from ``start`` doubles until no mass is left beyond."""
    edges = start + step * np.exp2(np.arange(1000))
    edges = edges[np.isfinite(edges)]
    mass = _pdf(distribution, edges) * np.abs(edges - start)
    return edges[: 1 + np.argmin(np.append(mass > SETTINGS.tail_mass, False))]


def _fit(distribution: Distribution, lower: Array, upper: Array) -> tuple[Array, Array, Array]:
    """Return Legendre coefficients (n, G) of the density on n intervals, their errors (n,), and those allowed (n,)."""
    nodes, _ = gauss_legendre(lower, upper)
    ends = (0.5 * (lower + upper))[:, None] + (0.5 * (upper - lower))[:, None] * NEAR_ENDS
    values = _pdf(distribution, np.column_stack([nodes, ends]))
    at_nodes, at_ends = values[:, :N_COEFFICIENTS], values[:, N_COEFFICIENTS:]
    coefficients = at_nodes @ TO_COEFFICIENTS
    error = np.abs(at_ends.T - legval(NEAR_ENDS, coefficients.T, tensor=True).T).max(axis=0)
    error = np.maximum(error, np.abs(coefficients[:, -3:]).max(axis=1))
    size = np.abs(coefficients).max(axis=1)
    width = upper - lower
    # Next to a singularity p(t) shows the rounding of t itself.
    rounding = SETTINGS.roundings * np.spacing(np.maximum(np.abs(lower), np.abs(upper))) / width
    allowed = np.maximum(SETTINGS.tolerance + rounding, SETTINGS.negligible_mass / (size * width))
    error = np.where(size > 0, error / size, error)
    return coefficients, np.where(np.isfinite(error), error, np.inf), allowed


def _misses_structure(distribution: Distribution, lower: float, upper: float, coefficients: Array) -> bool:
    """Return whether the density has structure between the nodes that the polynomial does not show."""
    s = np.linspace(-1, 1, SETTINGS.n_search_points + 2)[1:-1]
    values = _pdf(distribution, lower + 0.5 * (upper - lower) * (1 + s))
    allowed = SETTINGS.search_tolerance * np.abs(coefficients).max()
    return bool((np.abs(values - legval(s, coefficients)) > allowed).any())


def _atoms(distribution: Distribution, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return locations and masses of atoms for narrow intervals, at quantiles inside them."""
    below, above = distribution.cdf(lower), distribution.sf(upper)
    from_above = above < below  # the smaller tail has more digits
    start = np.where(from_above, above, below)
    mass = np.where(from_above, distribution.sf(lower), distribution.cdf(upper)) - start
    probabilities = start[:, None] + mass[:, None] * 0.5 * (1 + ATOM_NODES)
    atoms = np.where(from_above[:, None], distribution.isf(probabilities), distribution.ppf(probabilities))
    masses = mass[:, None] * 0.5 * ATOM_WEIGHTS
    return np.clip(atoms, lower[:, None], upper[:, None]).ravel(), masses.ravel()


def _discontinuities(lower: Array, upper: Array, coefficients: Array) -> Array:
    """Return the points between intervals whose polynomials do not join smoothly."""
    width = upper - lower
    beyond = SETTINGS.overlap * np.minimum(width[:-1], width[1:])
    left = legval(1 + 2 * beyond / width[:-1], coefficients[:, :-1], tensor=False)
    right = legval(-1 + 2 * beyond / width[1:], coefficients[:, 1:], tensor=False)
    size = np.abs(coefficients).max(axis=0)
    allowed = SETTINGS.overlap_tolerance * np.maximum(size[:-1], size[1:])
    return np.asarray(lower[1:][np.abs(left - right) > allowed])


def _pdf(distribution: Distribution, t: Array) -> Array:
    """Return the density at each t, infinite where scipy's formula overflows."""
    try:
        return np.asarray(distribution.pdf(t), dtype=float)
    except OverflowError:  # raised for all points if one of them is too close to a singularity
        return np.full_like(t, np.inf) if t.size == 1 else np.stack([_pdf(distribution, part) for part in t])
