"""Exact expectations of the stochastic epidemic, without a single random number: the master equation.

A state of the SEIR model is how many infections a, onsets o and recoveries r there have been: S = N - 1 - a, E = a - o,
I = 1 + o - r. Every event adds one to one of them, so probabilities flow from the states with k events to those with
k + 1, and are followed together with the largest number m of infected so far:

    p (a, o, m)    probability of the state
    t (a, o, m)    the time at which it is entered, times p
    u (a, o, m)    the time at which the maximum was reached, times p
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev
from scipy.integrate import quad

from ..validation import Array
from .epidemic import INCUBATION, PEOPLE, PRIOR

NODES = 64  #: of the Chebyshev interpolation in log a
LARGEST = 161.0  #: infection rates above have a probability below 1e-12


def expectations(rate: float, people: int = PEOPLE, incubation: float = INCUBATION) -> tuple[float, float, float]:
    """E[max I] and E[its time], given an outbreak, and P(outbreak), by the rates of infection and onset over recovery.

    Takes a few seconds for 100 people.
    """
    N = people
    first, a = 0, np.zeros((1, 1), dtype=int)  # only some a are possible after k events, from the first one
    o, m = np.arange(N)[None, :], np.arange(N + 2)
    p, t, u = (np.zeros((1, N, N + 2)) for _ in range(3))
    p[0, 0, 1] = 1.0
    peak = time = outbreak = 0.0
    for k in range(3 * N):
        r = k - a - o
        S, E, I = N - 1 - a, a - o, 1 + o - r
        possible = (r >= 0) & (E >= 0) & (I >= 0)
        over = possible & (E + I == 0) & (a >= 1)
        outbreak, peak, time = outbreak + p[over].sum(), peak + (p[over] * m).sum(), time + u[over].sum()
        going = possible & (E + I > 0)
        rates = np.where(going, np.stack([rate * S * I / N, incubation * E, 1.0 * I]), 0.0)
        total = np.maximum(rates.sum(axis=0), np.finfo(float).tiny)
        infection, onset, recovery = (rates / total)[..., None]
        t = t + p / total[..., None] * going[..., None]

        moved_p, moved_t, moved_u = (onset * now for now in (p, t, u))
        A, O = np.nonzero(rates[1])  # where the newly infected are more than ever before: now is the maximum
        before, after = (A, O, I[A, O]), (A, O, I[A, O] + 1)
        moved_p[after] += moved_p[before]
        moved_u[after] += moved_t[before]
        moved_t[after] += moved_t[before]
        for moved in (moved_p, moved_t, moved_u):
            moved[before] = 0.0

        next_first, last = -(-k // 3), min(k + 1, N - 1)  # no more onsets than infections, nor recoveries than onsets
        news = []
        for now, moved in ((p, moved_p), (t, moved_t), (u, moved_u)):
            new = np.zeros((last + 1 - next_first, N, N + 2))
            stay, shift = recovery * now, infection * now
            stay[:, 1:] += moved[:, :-1]
            for values, start in ((stay, first), (shift, first + 1)):
                skipped = next_first - start
                kept = values[max(skipped, 0) : last + 1 - start]
                new[max(-skipped, 0) : max(-skipped, 0) + len(kept)] += kept
            news.append(new)
        p, t, u = news
        first, a = next_first, np.arange(next_first, last + 1)[:, None]
    return float(peak / outbreak), float(time / outbreak), float(outbreak)


def interpolants(nodes: int = NODES) -> list[Array]:
    """Chebyshev coefficients of E[max I] and E[its time] in log a, from 1 to the largest a."""
    place = np.cos(np.pi * (np.arange(nodes) + 0.5) / nodes)
    values = np.array([expectations(float(a)) for a in LARGEST ** ((place + 1) / 2)])
    return [chebyshev.chebfit(place, values[:, column], nodes - 1) for column in (0, 1)]


def true_values(upper: float = LARGEST, nodes: int = NODES) -> list[float]:
    """E[max I] and E[its time] over the distribution of a, up to an upper end."""

    def integrand(a: float, coefficients: Array) -> float:
        return float(PRIOR.pdf(a) * chebyshev.chebval(2 * np.log(a) / np.log(LARGEST) - 1, coefficients))

    options = {"epsabs": 1e-12, "epsrel": 1e-12, "limit": 500}
    return [quad(integrand, 1.0, upper, args=(c,), **options)[0] for c in interpolants(nodes)]
