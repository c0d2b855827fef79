"""How much heat is left in a rod? An equation in space and time, with two knobs: cells and steps.

    python examples/heat.py [--budget 4] [--figure heat.png]

u' = k u'' on [0, 1] with u = 0 at both ends, from sin(πx) + a sin(3πx), for a diffusivity k and an amplitude a that are
uniform; the output is ∫ u at the time 0.1. Steps are implicit, so that errors shrink with the square of the width of
a cell, and with the length of a step. There are four numbers of cells and three of steps: twelve sources, of which the
run evaluates those that are worth their cost. The limit is known.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from scipy.linalg import solveh_banded

import amsbq

TIME = 0.1
INPUTS = {"k": stats.uniform(0.5, 1.0), "a": stats.uniform(0, 1)}


def solve(k, a, cells, steps):
    """Return ∫ u at the end, by central differences and Euler's implicit steps."""
    x, rate = np.arange(1, cells) / cells, k * cells**2 * TIME / steps
    u = np.sin(np.pi * x) + a * np.sin(3 * np.pi * x)
    matrix = np.array([np.full(cells - 1, -rate), np.full(cells - 1, 1 + 2 * rate)])
    for _ in range(steps):
        u = solveh_banded(matrix, u)
    return u.sum() / cells


def limit():
    """Return the expected output for infinitely many cells and steps."""

    def mode(n):  # the expectation of exp(-k (nπ)² TIME), times the integral of sin(nπx)
        c = (n * np.pi) ** 2 * TIME
        return (np.exp(-0.5 * c) - np.exp(-1.5 * c)) / c * 2 / (n * np.pi)

    return mode(1) + 0.5 * mode(3)


def run(budget=4.0, seed=0):
    """Return the result of a run; 1 is the cost of 64 cells with 64 steps."""
    knobs = {"cells": [64, 32, 16, 8], "steps": [64, 16, 4]}
    sources = amsbq.levels(solve, **knobs, cost=lambda cells, steps: cells * steps / 64**2)
    return amsbq.integrate(
        sources,
        INPUTS,
        budget=budget,
        seed=seed,
        limit=True,
        title="The heat that is left in a rod",
        labels={"output": "heat", "k": "diffusivity", "a": "amplitude"},
        units={"cost": "solves with 64 cells and steps"},
    )


def answers(result):
    """Return what is known and the truth, by name."""
    return {"heat": (result.estimate, limit())}


def draw(result):
    """Draw how the rod cools, and how often each level was evaluated."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    x = np.linspace(0, 1, 200)
    for time, shade in zip(np.linspace(0, TIME, 6), plt.get_cmap("autumn")(np.linspace(0, 0.8, 6)), strict=True):
        u = sum(a * np.exp(-((n * np.pi) ** 2) * time) * np.sin(n * np.pi * x) for n, a in ((1, 1.0), (3, 0.5)))
        left.plot(x, u, color=shade)
        left.text(x[np.argmax(u)], u.max() + 0.01, f"{time:.2f}", ha="center", va="bottom", fontsize="small")
    left.set(xlabel="along the rod", ylabel="temperature, for k = 1 and a = 0.5", title="from the time 0 to 0.1")
    amsbq.plots.levels(result, ax=right)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=4.0, help="1 is the cost of 64 cells with 64 steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", help="a file for the picture")
    options = parser.parse_args()
    result = run(options.budget, options.seed)
    print(result)
    print(f"the truth is {limit():.6f}")
    for finding in result.diagnose():
        if finding.about == "refinement":
            print(finding)
    if options.figure:
        draw(result).savefig(options.figure, dpi=120)


if __name__ == "__main__":
    main()
