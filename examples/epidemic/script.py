"""How many people will be ill at the same time, and when, if the infection rate is uncertain?

    python examples/epidemic/script.py

The simulator draws 2,000 epidemics, event by event; differential equations are 2,000 times cheaper, and predict too
many ill people, too early. Each evaluation returns both outputs. The truth comes from the probabilities of all states.
"""

import sys

import matplotlib.pyplot as plt
from scipy import stats
from simulators import equations, stochastic

import amsbq

INFECTION_RATE = stats.gamma(5, loc=1, scale=4)


def run(budget=3.02, seed=0):
    """Return the result of a run; 1 is the cost of 2,000 simulated epidemics."""
    sources = [
        amsbq.Source(stochastic, cost=1.0, name="stochastic", valid={"peak": (1, 100)}),
        amsbq.Source(equations, cost=1 / 2000, name="equations", valid={"peak": (1, 100)}),
    ]
    return amsbq.integrate(
        sources,
        INFECTION_RATE,
        names=["rate"],
        budget=budget,
        seed=seed,
        outputs=["peak", "time"],
        title="An epidemic among a hundred people",
        units={"peak": "people", "time": "recovery times"},
        labels={"peak": "largest number of ill people", "time": "time when most are ill", "rate": "infection rate"},
    )


def answers(result):
    """Return what is known and the truth, by name."""
    return {
        "ill people": (result["peak"].estimate, 70.4906),
        "their time (recovery times)": (result["time"].estimate, 0.861351),
    }


def draw(result):
    """Draw both outputs against the infection rate."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for ax, name in zip(axes, result.outputs, strict=True):
        amsbq.plots.sources(result[name], ax=ax)
    return figure


if __name__ == "__main__":
    result = run(float(sys.argv[1]) if len(sys.argv) > 1 else 3.02)
    print(result)
    for name, (known, truth) in answers(result).items():
        print(f"{name}: {known.mean:.4g} ± {known.std:.2g}; the truth is {truth:.4g}")
    draw(result).savefig("epidemic.png", dpi=120)
