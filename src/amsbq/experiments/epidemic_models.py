"""Simulators of an epidemic, for the experiment of Section 4.2 and Section C of the paper.

A disease is passed on at rate a, and people recover at rate b. Rates are in units of b and times in units of 1/b, so
that the infection rate, a, is the only uncertain input; it has a gamma distribution. One person is infected at the
start. The usual letters:

    S    number of susceptible people
    E    number of people who are exposed: infected, and not yet infectious (SEIR model only)
    I    number of infected people, who infect others
    R    number of recovered people

The stochastic SEIR model is simulated exactly, event by event (Gillespie's algorithm); the SIR model is also solved as
a system of ordinary differential equations, its limit for a large population.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.integrate import solve_ivp

from ..common.validation import Array


@dataclass(frozen=True)
class EpidemicParameters:
    """Constants of the models, as in Section C.2 of the paper."""

    people: int = 100  # well below the thermodynamic limit
    incubation_rate: float = 10.0  # rate at which the exposed become infectious: γ = 10 b


PARAMETERS = EpidemicParameters()
#: distribution of the infection rate, in units of the recovery rate (Section C.2)
INFECTION_RATE = stats.gamma(5, loc=1, scale=4)


def seir(rate: float, n: int, rng: np.random.Generator, people: int = PARAMETERS.people) -> tuple[Array, Array, Array]:
    """Simulate n epidemics of the SEIR model at once, one event in each of them at a time; each is an exact sample.

    Parameters
    ----------
    rate : float
        Infection rate, in units of the recovery rate.
    n : int
        Number of epidemics.
    rng : numpy.random.Generator
        Source of random numbers.
    people : int
        Size of the population.

    Returns
    -------
    peak : (n,) array
        Largest number of people infected at the same time.
    when : (n,) array
        Time at which it was reached, in recovery times.
    outbreak : (n,) array of bool
        Whether the first person infected anybody.
    """
    peak, when, outbreak = np.ones(n), np.zeros(n), np.zeros(n, dtype=bool)
    on = np.arange(n)  # epidemics that are not over; the following arrays are restricted to these
    S, E, I, now = np.full(n, people - 1.0), np.zeros(n), np.ones(n), np.zeros(n)
    most, since, spread = peak.copy(), when.copy(), outbreak.copy()
    while len(on):
        infection, onset = rate * S * I / people, PARAMETERS.incubation_rate * E
        total = infection + onset + I
        now += rng.exponential(size=len(on)) / total
        event = rng.uniform(size=len(on)) * total
        infected = event < infection
        fell_ill = ~infected & (event < infection + onset)
        S -= infected
        E += infected
        E -= fell_ill
        I += 2.0 * fell_ill + infected - 1.0  # events that are neither infections nor onsets are recoveries
        spread |= infected
        np.copyto(since, now, where=most < I)
        np.maximum(most, I, out=most)
        going = E + I > 0
        if not going.all():
            over, ended = on[~going], ~going
            peak[over], when[over], outbreak[over] = most[ended], since[ended], spread[ended]
            on, spread = on[going], spread[going]
            S, E, I, now, most, since = (x[going] for x in (S, E, I, now, most, since))
    return peak, when, outbreak


def trajectories(rate: float, n: int, times: Array, rng: np.random.Generator, incubation_rate: float | None) -> Array:
    """Simulate n epidemics, and return the numbers of people S, E, I and R at some times.

    Parameters
    ----------
    rate : float
        Infection rate, in units of the recovery rate.
    n : int
        Number of epidemics.
    times : (T,) array
        Times in recovery times, increasing from 0.
    rng : numpy.random.Generator
        Source of random numbers.
    incubation_rate : float or None
        Rate at which the exposed become infectious. None is the SIR model: people are infectious at once.

    Returns
    -------
    (n, T, 4) array of int
    """
    people = PARAMETERS.people
    found = np.empty((n, len(times), 4), dtype=int)
    for i in range(n):
        now, (S, E, I, R) = 0.0, (people - 1, 0, 1, 0)
        events, states = [0.0], [(S, E, I, R)]
        while E + I:
            infection, onset = rate * S * I / people, (incubation_rate or 0.0) * E
            total = infection + onset + I
            now += rng.exponential() / total
            event = rng.uniform() * total
            if event < infection:
                S, E, I = (S - 1, E + 1, I) if incubation_rate else (S - 1, E, I + 1)
            elif event < infection + onset:
                E, I = E - 1, I + 1
            else:
                I, R = I - 1, R + 1
            events.append(now)
            states.append((S, E, I, R))
        found[i] = np.array(states)[np.searchsorted(events, times, side="right") - 1]
    return found


def sir(rate: float, until: float | None = None, people: int = PARAMETERS.people) -> tuple[Array, Array, Array]:
    """Solve the differential equations of the SIR model, up to a time or up to the maximum of I.

    Parameters
    ----------
    rate : float
        Infection rate, in units of the recovery rate.
    until : float, optional
        Last time, in recovery times; by default only the state at the maximum of I is returned.
    people : int
        Size of the population.

    Returns
    -------
    times, susceptible, infected : arrays of one shape
        201 times from 0 to ``until``, or the one time of the maximum, and the numbers of people S and I then.
    """

    def change(t: float, y: Array) -> list[float]:
        infections = rate * y[0] * y[1] / people
        return [-infections, infections - y[1]]

    def growth(t: float, y: Array) -> float:
        return float(rate * y[0] / people - 1)

    growth.terminal = until is None  # type: ignore[attr-defined]
    growth.direction = -1  # type: ignore[attr-defined]
    start = [people - 1.0, 1.0]
    if until is None and growth(0, np.array(start)) <= 0:  # I can only decline: its maximum is at the start
        return np.zeros(1), np.array(start[:1]), np.array(start[1:])
    steps = None if until is None else np.linspace(0, until, 201)
    options = {"method": "DOP853", "rtol": 1e-9, "atol": 1e-9}
    found = solve_ivp(change, (0, until or 1e6), start, events=growth, t_eval=steps, **options)
    return (found.t, *found.y) if until is not None else (found.t_events[0], *found.y_events[0].T)
