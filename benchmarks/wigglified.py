"""Measure the cost of a relative error of 1e-2 or 1e-3 on the paper's wigglified Forrester pair, at costs 1 and 0.05.

    python -m benchmarks.wigglified            # ten minutes on two cores
    python -m benchmarks.wigglified auto icm   # only these models

Both sources are evaluated at three random locations, then the mutual-information rate decides. The cost of an accuracy
is that after which the relative error of the mean stays below.
"""

from __future__ import annotations

import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import amsbq
from amsbq.common.validation import Array
from amsbq.experiments import wiggly
from amsbq.experiments.study import cost_to_stay_below

#: cost after which a run ends, by model
BUDGETS = {"auto": 12.0, "icm": 20.0, "vbq": 27.0}
ACCURACIES = (1e-2, 1e-3)
SEEDS = 20


def sources() -> list[amsbq.Source]:
    """Return the two sources, at costs 1 and 0.05."""
    return [
        amsbq.Source(lambda x: float(wiggly.primary(x[0]))),
        amsbq.Source(lambda x: float(wiggly.secondary(x[0])), cost=0.05),
    ]


def initial(seed: int) -> list[tuple[int, Array]]:
    """Return three random locations of both sources."""
    locations = np.random.default_rng([seed, 1]).uniform(size=(3, 1))
    return [(source, x) for x in locations for source in (0, 1)]


def costs_of_accuracy(evaluations: list[amsbq.Evaluation], accuracies: tuple[float, ...] = ACCURACIES) -> list[float]:
    """Return the costs of a run after which the relative error of the mean stays below each accuracy."""
    costs = np.cumsum([e.cost for e in evaluations])
    errors = np.abs(np.array([e.mean for e in evaluations]) / wiggly.true_integral() - 1)
    return [cost_to_stay_below(costs, errors, accuracy) for accuracy in accuracies]


def run(job: tuple[str, int]) -> list[float]:
    """Return the cost of each accuracy."""
    model, seed = job
    first = [(source, x) for source, x in initial(seed) if source == 0 or model != "vbq"]
    used = sources()[:1] if model == "vbq" else sources()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = amsbq.integrate(
            used, amsbq.Uniform(0, 1), budget=BUDGETS[model], model=model, seed=seed, initial=first, progress=False
        )
    return costs_of_accuracy(found.evaluations)


def main() -> None:
    models = sys.argv[1:] or list(BUDGETS)
    with ProcessPoolExecutor() as pool:
        for model in models:
            costs = np.array(list(pool.map(run, [(model, seed) for seed in range(SEEDS)])))
            for accuracy, column in zip(ACCURACIES, costs.T, strict=True):
                found = f"{np.median(column):.2f} in the median of {np.sort(column).round(2)}"
                print(f"{model}: {accuracy:g} costs {found}", flush=True)


if __name__ == "__main__":
    main()
