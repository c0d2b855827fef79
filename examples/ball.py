"""How far does a ball fly on average? A picture of the error of several methods against their cost.

    python examples/ball.py [--seeds 8] [--budget 16] [picture.png]

The right panel shows where simulator and formula were evaluated. Needs matplotlib: pip install 'amsbq[plot]'.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import amsbq
from amsbq import baselines, plots

INPUTS = [stats.norm(40, 3), stats.uniform(0.5, 0.5)]  # speed in m/s, angle


def simulator(x):
    """Return how far the ball flies through the air, in metres."""
    r, v = np.zeros(2), x[0] * np.array([np.cos(x[1]), np.sin(x[1])])
    while r[1] >= 0:
        r, v = r + 2e-3 * v, v - 2e-3 * (0.004 * np.hypot(*v) * v + [0, 9.81])
    return r[0]


def formula(x):
    """Return how far it would fly without air: cheap, and too far by half."""
    return x[0] ** 2 * np.sin(2 * x[1]) / 9.81


SOURCES = [amsbq.Source(simulator), amsbq.Source(formula, cost=0.01)]
METHODS = {
    "Monte Carlo": (baselines.monte_carlo, {}, ":"),
    "quasi Monte Carlo": (baselines.quasi_monte_carlo, {"replicates": 2}, "--"),
    "Bayesian quadrature, simulator alone": (baselines.vanilla_bq, {"progress": False}, "-."),
    "amsbq, simulator and formula": (amsbq.integrate, {"progress": False}, "-"),
}


def truth(nodes=8):
    """Return the average flight by Gauss rules, with nodes² runs of the simulator."""
    z, wz = np.polynomial.hermite_e.hermegauss(nodes)
    u, wu = np.polynomial.legendre.leggauss(nodes)
    values = [[simulator([40 + 3 * zi, 0.75 + 0.25 * ui]) for ui in u] for zi in z]
    return wz @ np.array(values) @ wu / (wz.sum() * wu.sum())


def errors(method, options, exact, budget, seeds, costs):
    """Return the median over seeds of the relative error at each of the costs."""
    found = []
    for seed in range(seeds):
        result = method(SOURCES, INPUTS, budget=budget, seed=seed, **options)
        spent = np.cumsum([e.cost for e in result.evaluations])
        known = [abs(e.mean / exact - 1) for e in result.evaluations]
        latest = np.searchsorted(spent, costs + 1e-9, side="right")
        found.append(np.append(np.nan, known)[latest])
    return np.median(found, axis=0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("picture", nargs="?", default="ball.png")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--budget", type=float, default=16.0)
    options = parser.parse_args()

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    costs, exact = np.linspace(2, options.budget, 200), truth()
    for i, (name, (method, more, line)) in enumerate(METHODS.items()):
        colour = "#D55E00" if i == len(METHODS) - 1 else ("0.65", "0.45", "0.2")[i]
        error = errors(method, more, exact, options.budget, options.seeds, costs)
        left.plot(costs, 100 * error, linestyle=line, color=colour, label=name, linewidth=1.5 + (i == 3))
    left.set(
        xlabel="cost, in runs of the simulator", yscale="log", ylabel=f"error in %, median of {options.seeds} runs"
    )
    left.yaxis.set_major_formatter("{x:g}")
    left.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, fontsize="small", ncols=2)

    result = amsbq.integrate(SOURCES, INPUTS, budget=min(options.budget, 6.0), progress=False)
    plots.sources(result, right, 1)
    right.set(xlabel="angle", ylabel="flight in m, averaged over speeds")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(options.picture, dpi=150)


if __name__ == "__main__":
    main()
