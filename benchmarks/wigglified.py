"""Measure what a relative error of 1e-2 or 1e-3 costs on the paper's wigglified Forrester pair, at costs 1 and 0.05.

    python -m benchmarks.wigglified            # a few minutes
    python -m benchmarks.wigglified auto icm   # only these models

Both sources are evaluated at three random locations, then the mutual-information rate decides; hyperparameters are
refitted after every evaluation. The cost of an accuracy is that after which the relative error of the mean stays below.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.calibration import active
from benchmarks.problems import problem_named

#: after which a run ends, for each model
BUDGETS = {"auto": 12.0, "icm": 20.0, "vbq": 27.0}
SEEDS = 10


def run(job: tuple[str, int]) -> tuple[float, ...]:
    """Return the cost of each accuracy."""
    name, seed = job
    problem = problem_named("wigglified Forrester")
    accuracies = [abs(problem.integral) / problem.spread() * relative for relative in (1e-2, 1e-3)]
    return active(problem, name, seed, [BUDGETS[name]], accuracies, refit_growth=1.0)[-1].costs


def main() -> None:
    models = sys.argv[1:] or list(BUDGETS)
    with ProcessPoolExecutor() as pool:
        for name in models:
            costs = np.array(list(pool.map(run, [(name, seed) for seed in range(SEEDS)])))
            for accuracy, column in zip(("1e-2", "1e-3"), costs.T, strict=True):
                print(f"{name}: {accuracy} costs {np.median(column):.2f} in the median of {np.sort(column).round(2)}")


if __name__ == "__main__":
    main()
