"""How probable are the data under a model? The evidence of an epidemic, by a fine and a coarse solver.

    python examples/evidence.py [--budget 12] [--alone]

Three parameters are unknown: the rates of infection and of recovery, and the share that was infected at first. Their
log-likelihood is below -50 over much of their prior distribution. With ``--alone`` only the fine solver is used. The
truth comes from a million points.
"""

import argparse

import matplotlib.pyplot as plt
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


def truth(n=2**20):
    """Return the logarithm of the evidence, by the fine solver at a million Sobol' points."""
    total, points = -np.inf, stats.qmc.Sobol(3, rng=0)
    for _ in range(n // 2**16):
        u = points.random(2**16)
        x = np.column_stack([inputs.ppf(column) for inputs, column in zip(PRIOR.values(), u.T, strict=True)])
        total = np.logaddexp(total, np.logaddexp.reduce(fine(x)))
    return float(total - np.log(n))


def run(budget=12.0, seed=0, alone=False):
    """Return the result of a run; 1 is the cost of the fine solver."""
    sources = [amsbq.Source(fine), amsbq.Source(coarse, cost=1 / 8)][: 1 if alone else 2]
    return amsbq.integrate(sources, PRIOR, budget=budget, seed=seed, log=True, title="How probable are the data?")


def answers(result):
    """Return what is known and the truth, by name."""
    return {"logarithm of the evidence": (result.estimate, truth())}


def draw(result):
    """Draw the data beside epidemics of the prior distribution, and where the likelihood was evaluated."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    rng = np.random.default_rng(0)
    x = np.column_stack([inputs.rvs(300, random_state=rng) for inputs in PRIOR.values()])
    left.plot(TIMES, infected(x, 0.5).T, color="0.85", linewidth=0.4)
    left.plot([], [], color="0.8", label="prior distribution")
    left.errorbar(TIMES, DATA, 2 * NOISE, fmt="o", color="tab:red", capsize=3, label="data, ± 2 standard deviations")
    left.set(xlabel="days", ylabel="share of infected people")
    left.legend(frameon=False)
    right.scatter(*x[:, :2].T, s=6, color="0.8", label="prior distribution")
    for source, style in ((1, "s"), (0, "o")):
        of = np.array([e.x for e in result.evaluations if e.source == source]).reshape(-1, 3)
        right.plot(
            *of[:, :2].T,
            style,
            color=("tab:blue", "tab:orange")[source],
            markersize=5,
            label=("fine", "coarse")[source],
        )
    right.set(xlabel="rate of infection", ylabel="rate of recovery", xlim=(0.2, 1.2), ylim=(0.05, 0.45))
    right.legend(frameon=False)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=12.0)
    parser.add_argument("--alone", action="store_true")
    given = parser.parse_args()
    print(run(given.budget, alone=given.alone))


if __name__ == "__main__":
    main()
