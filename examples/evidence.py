"""How probable are the data under a model? The evidence of an epidemic, by a fine and a coarse solver.

    python examples/evidence.py [--budget 30] [--alone]

Three parameters are unknown: the rates of infection and of recovery, and the share that was infected at first. Their
log-likelihood is below -50 over much of their prior distribution. With ``--alone`` only the fine solver is used.
"""

import argparse

import numpy as np
from scipy import stats

import amsbq

TIMES = np.array([4.0, 8.0, 12.0, 16.0, 20.0, 24.0])
NOISE = 0.03  #: standard deviation of each observed share
PRIOR = {
    "infection": stats.lognorm(0.35, scale=0.6),
    "recovery": stats.lognorm(0.35, scale=0.2),
    "first": stats.uniform(0.002, 0.018),
}


def infected(x, step):
    """Return the share of infected people at the observed times, by Heun's method with a given step in days."""
    infection, recovery, i = np.moveaxis(np.asarray(x, dtype=float), -1, 0)
    s, out = 1 - i, []

    def slope(s, i):
        return -infection * s * i, infection * s * i - recovery * i

    for n in range(1, round(TIMES[-1] / step) + 1):
        ds, di = slope(s, i)
        ds2, di2 = slope(s + step * ds, i + step * di)
        s, i = s + step * (ds + ds2) / 2, i + step * (di + di2) / 2
        if n * step in TIMES:
            out.append(i)
    return np.stack(out, axis=-1)


DATA = infected([0.55, 0.18, 0.01], 0.125) + np.array([0.02, -0.03, 0.04, -0.01, -0.02, 0.02])


def log_likelihood(x, step):
    """Return the log-likelihood of parameters x (..., 3)."""
    return stats.norm(infected(x, step), NOISE).logpdf(DATA).sum(axis=-1)


def fine(x):
    """Return the log-likelihood by 192 steps."""
    return log_likelihood(x, 0.125)


def coarse(x):
    """Return the log-likelihood by 24 steps."""
    return log_likelihood(x, 1.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=30.0)
    parser.add_argument("--alone", action="store_true")
    given = parser.parse_args()
    sources = [amsbq.Source(fine), amsbq.Source(coarse, cost=1 / 8)][: 1 if given.alone else 2]
    print(amsbq.integrate(sources, PRIOR, budget=given.budget, log=True))


if __name__ == "__main__":
    main()
