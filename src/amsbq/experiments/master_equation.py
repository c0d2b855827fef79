"""Exact expectations of the stochastic epidemic by its master equation: the truth of Section 4.2's experiment.

A state of the SEIR model for N people is the number of infections a, onsets o and recoveries r so far: S = N - 1 - a,
E = a - o, I = 1 + o - r. Every event adds one to one of them, so that probability flows from the states with k events
to those with k + 1. It is followed together with the largest number m of infected people so far:

    p (a, o, m)    probability of the state
    t (a, o, m)    E[time at which the state is entered; state], an expectation restricted to the state
    u (a, o, m)    E[time at which the maximum was reached; state]
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev
from scipy.integrate import quad

from ..common.validation import Array
from .epidemic_models import INFECTION_RATE, PARAMETERS

NODES = 64  #: nodes of the Chebyshev interpolation in the logarithm of the infection rate: ten digits
LARGEST_RATE = 161.0  #: infection rates above have a probability below 1e-12


def expectations(
    rate: float, people: int = PARAMETERS.people, incubation_rate: float = PARAMETERS.incubation_rate
) -> tuple[float, float, float]:
    """Compute the expected peak of the SEIR model and its expected time; takes a few seconds for 100 people.

    Parameters
    ----------
    rate, incubation_rate : float
        Rates of infection and of onset, in units of the recovery rate.
    people : int
        Size of the population.

    Returns
    -------
    peak, time : float
        E[max I] and E[time of the maximum], conditional on an outbreak.
    outbreak : float
        Probability of an outbreak: that the first person infects anybody.
    """
    N = people
    # Arrays are restricted to the a and o that are possible after k events, from these on, and to possible m.
    first_a, first_o = 0, 0
    p, t, u = (np.zeros((1, 1, 2)) for _ in range(3))
    p[0, 0, 1] = 1.0
    peak = time = outbreak = 0.0
    for k in range(3 * N - 1):
        a, o = first_a + np.arange(p.shape[0])[:, None], first_o + np.arange(p.shape[1])[None, :]
        m, r = np.arange(p.shape[2]), k - a - o
        S, E, I = N - 1 - a, a - o, 1 + o - r
        possible = (r >= 0) & (E >= 0) & (I >= 0)
        over = possible & (E + I == 0) & (a >= 1)
        outbreak, peak, time = outbreak + p[over].sum(), peak + (p[over] * m).sum(), time + u[over].sum()
        going = possible & (E + I > 0)
        rates = np.where(going, np.stack([rate * S * I / N, incubation_rate * E, 1.0 * I]), 0.0)
        total = np.maximum(rates.sum(axis=0), np.finfo(float).tiny)
        infection, onset, recovery = (rates / total)[..., None]
        t = t + p / total[..., None] * going[..., None]

        moved_p, moved_t, moved_u = (onset * now for now in (p, t, u))
        A, O = np.nonzero(rates[1])  # where an onset makes I larger than ever before: now is the maximum
        before, after = (A, O, I[A, O]), (A, O, I[A, O] + 1)
        moved_p[after] += moved_p[before]
        moved_u[after] += moved_t[before]
        moved_t[after] += moved_t[before]
        for moved in (moved_p, moved_t, moved_u):
            moved[before] = 0.0

        last = min(k + 1, N - 1)  # onsets ≤ infections, and recoveries ≤ onsets + 1
        next_a, next_o = -(-k // 3), -(-(k - last) // 2)
        news = []
        for now, moved in ((p, moved_p), (t, moved_t), (u, moved_u)):
            new = np.zeros((last + 1 - next_a, last + 1 - next_o, last + 2))
            _add(new, recovery * now, first_a - next_a, first_o - next_o, 0)
            _add(new, infection * now, first_a + 1 - next_a, first_o - next_o, 0)
            _add(new, moved, first_a - next_a, first_o + 1 - next_o, 0)
            news.append(new)
        p, t, u = news
        first_a, first_o = next_a, next_o
    return float(peak / outbreak), float(time / outbreak), float(outbreak)


def _add(to: Array, values: Array, *shifts: int) -> None:
    """Add values to an array, shifted along each axis; values outside it are dropped."""
    ends = [min(n + shift, limit) for n, limit, shift in zip(values.shape, to.shape, shifts, strict=True)]
    there = tuple(slice(max(shift, 0), end) for shift, end in zip(shifts, ends, strict=True))
    here = tuple(slice(max(-shift, 0), end - shift) for shift, end in zip(shifts, ends, strict=True))
    to[there] += values[here]


def interpolants(nodes: int = NODES) -> list[Array]:
    """Return Chebyshev coefficients in log(rate), up to LARGEST_RATE, of E[max I] and E[time of the maximum]."""
    z = np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes)  # in [-1, 1], which is log(rate) rescaled
    values = np.array([expectations(float(rate)) for rate in LARGEST_RATE ** ((z + 1) / 2)])
    return [chebyshev.chebfit(z, values[:, column], nodes - 1) for column in (0, 1)]


def true_values(upper: float = LARGEST_RATE, nodes: int = NODES) -> list[float]:
    """Return E[max I] and E[time of the maximum], integrated over the distribution of the rate from 1 to ``upper``."""

    def integrand(rate: float, coefficients: Array) -> float:
        z = 2 * np.log(rate) / np.log(LARGEST_RATE) - 1
        return float(INFECTION_RATE.pdf(rate) * chebyshev.chebval(z, coefficients))

    options = {"epsabs": 1e-12, "epsrel": 1e-12, "limit": 500}
    return [quad(integrand, 1.0, upper, args=(c,), **options)[0] for c in interpolants(nodes)]
