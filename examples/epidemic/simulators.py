"""Two simulators of an epidemic; put your own in their place.

Both take x of shape (1,), the infection rate in units of the recovery rate, and return the largest number of people who
are ill at the same time, out of 100, and when that is, in units of the mean recovery time.
"""

import numpy as np

import amsbq
from amsbq.experiments.epidemic_models import seir, sir


def stochastic(x):
    """Return averages over 2000 simulated epidemics, and the variances of these averages, their noise."""
    seed = np.asarray(x, dtype=float).view(np.uint32)  # the same input gets the same random numbers
    peak, time, outbreak = seir(x[0], 2000, np.random.default_rng(seed))
    found = {"peak": peak[outbreak], "time": time[outbreak]}
    return amsbq.Observation(
        {name: values.mean() for name, values in found.items()},
        variance={name: values.var(ddof=1) / len(values) for name, values in found.items()},
    )


def equations(x):
    """Return the maximum from differential equations and its time: 2000 times cheaper, too high and too early."""
    time, _, infected = sir(x[0])
    return {"peak": infected[-1], "time": time[-1]}
