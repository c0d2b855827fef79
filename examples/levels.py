"""What would infinitely many cells give? A boundary value problem on four grids, and its limit.

    python examples/levels.py [--budget 10] [--figure refinement.png]

(1 + a x) u' is to have the derivative 50 z², with u = 0 at both ends and the output ∫ u, for a uniform on [0, 1] and z
standard normal (Li et al. 2023). With 32 cells the expected output is -3.413622; in the limit it is -3.417118.
"""

import argparse

import numpy as np
from scipy import stats
from scipy.linalg import solveh_banded

import amsbq

LIMIT = -3.417118


def solve(a, z, cells):
    """Return ∫ u by central differences on a grid of cells."""
    h = 1 / cells
    between = (1 + a * (np.arange(cells) + 0.5) * h) / h**2
    matrix = np.array([np.append(0.0, -between[1:-1]), between[:-1] + between[1:]])
    return -h * np.sum(solveh_banded(matrix, np.full(cells - 1, 50.0 * z**2)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", help="a file for the picture of the levels and the limit")
    options = parser.parse_args()
    costs = {32: 1.0, 16: 0.5, 8: 0.27, 4: 0.15}
    sources = amsbq.levels(solve, cells=list(costs), cost=lambda cells: costs[cells])
    inputs = {"a": stats.uniform(), "z": stats.norm()}
    result = amsbq.integrate(sources, inputs, budget=options.budget, seed=options.seed, limit=True)
    print(result)
    print(f"the truth is {LIMIT}")
    for finding in result.diagnose():
        if finding.about == "refinement":
            print(finding)
    if options.figure:
        amsbq.plots.refinement(result).figure.savefig(options.figure)


if __name__ == "__main__":
    main()
