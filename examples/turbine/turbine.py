"""Thrust on the rotor of a wind turbine, in kN: from a simulated wind record, and from the mean wind alone.

Both are functions of x = (wind speed in m/s, turbulence intensity, number of the operating mode).
"""

import numpy as np

MODES = ("idle", "reduced", "full")
SHARE = np.array([0.1, 0.7, 1.0])  # of the full thrust, in each mode
RATED = 11.0  # m/s, above which the blades are pitched
GUSTS = np.random.default_rng(0).normal(size=600)  # one record for all wind speeds


def thrust(speed, mode):
    """Return the thrust in a steady wind."""
    return SHARE[mode] * 0.6 * speed**2 / np.sqrt(1 + (speed / RATED) ** 6)


def simulated(x):
    """Return the average thrust over a gusty wind record."""
    wind, turbulence, mode = x[0], x[1], int(x[2])
    gust, total = 0.0, 0.0
    for shock in GUSTS:
        gust = 0.9 * gust + np.sqrt(1 - 0.9**2) * shock
        total += thrust(max(wind * (1 + turbulence * gust), 0.0), mode)
    return total / len(GUSTS)


def steady(x):
    """Return the thrust in the mean wind."""
    return thrust(x[0], int(x[2]))
