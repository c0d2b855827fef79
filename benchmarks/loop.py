"""Measure whole runs on the paper's wigglified Forrester pair: several workers, measured costs, initial designs.

    python -m benchmarks.loop              # a quarter of an hour on two cores
    python -m benchmarks.loop --seeds 2    # a few minutes

- *workers*: the error of the mean when a budget of 9 is spent by one worker, and by eight whose evaluations take random
  times and end in random order.
- *costs*: the cost until the relative error stays below 1e-2, with known costs and with measured ones; they depend on
  the input, and the sources differ by a factor of 100.
- *designs*: that cost with initial designs of one, two and three shared locations, at costs 1 and 0.05.
"""

from __future__ import annotations

import argparse
import heapq
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import amsbq
from amsbq.common.validation import Array
from amsbq.design import initial as initial_design
from amsbq.experiments import wiggly
from benchmarks.wigglified import costs_of_accuracy, initial, sources

MEASURE = amsbq.Uniform(0, 1)
BUDGET = 9.0
ACCURACY = 1e-2


def by_workers(seed: int, workers: int) -> float:
    """Return the relative error after the budget is spent; time is simulated."""
    pair, truth = sources(), wiggly.true_integral()
    it = amsbq.Integrator(pair, MEASURE, budget=BUDGET, seed=seed, initial=initial(seed))
    rng, now, running = np.random.default_rng([seed, 2]), 0.0, []
    while True:
        while len(running) < workers and (query := it.ask()) is not None:
            heapq.heappush(running, (now + rng.exponential(query.cost), query.id, query))
        if not running:
            return abs(it.estimate().mean - truth) / abs(truth)
        now, _, query = heapq.heappop(running)
        it.tell(query, pair[query.source].function(query.x))
        assert it.spent + it.reserved <= BUDGET


def seconds(source: int, x: Array) -> float:
    """Return the time of an evaluation: ten times as long at one end as at the other, 1 % of it if cheap."""
    return float(10 ** x[0] / 4) * (1.0 if source == 0 else 0.01)


def by_costs(seed: int, measured: bool) -> float:
    """Return the cost after which the relative error stays small; costs are measured with an error of five percent."""
    known = [lambda x, s=s: seconds(s, x) for s in range(2)]
    pair = [
        amsbq.Source(source.function, cost="measured" if measured else cost)
        for source, cost in zip(sources(), known, strict=True)
    ]
    it = amsbq.Integrator(pair, MEASURE, budget=BUDGET, seed=seed, initial=initial(seed))
    rng = np.random.default_rng([seed, 3])
    while (query := it.ask()) is not None:
        cost = seconds(query.source, query.x) * np.exp(0.05 * rng.normal())
        it.tell(query, pair[query.source].function(query.x), cost=cost)
    return costs_of_accuracy(it.evaluations, (ACCURACY,))[0]


def by_design(seed: int, shared: int) -> float:
    """Return the cost after which the relative error stays small, for an initial design of shared locations."""
    pair = sources()
    initial_design.SETTINGS = replace(initial_design.SETTINGS, shared_locations=shared)
    it = amsbq.Integrator(pair, MEASURE, budget=BUDGET, seed=seed)
    while (query := it.ask()) is not None:
        it.tell(query, pair[query.source].function(query.x))
    return costs_of_accuracy(it.evaluations, (ACCURACY,))[0]


EXPERIMENTS = {
    "error, one worker": (by_workers, 1),
    "error, eight workers": (by_workers, 8),
    "cost to 1e-2, known costs": (by_costs, False),
    "cost to 1e-2, measured costs": (by_costs, True),
    "cost to 1e-2, one shared location": (by_design, 1),
    "cost to 1e-2, two shared locations": (by_design, 2),
    "cost to 1e-2, three shared locations": (by_design, 3),
}


def run(job: tuple[str, int]) -> float:
    """Return the result of one experiment with one seed."""
    name, seed = job
    experiment, option = EXPERIMENTS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return experiment(seed, option)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", default="", help="only experiments whose name contains this")
    options = parser.parse_args()
    with ProcessPoolExecutor() as pool:
        for name in (name for name in EXPERIMENTS if options.only in name):
            found = np.array(list(pool.map(run, [(name, seed) for seed in range(options.seeds)])))
            print(f"{name}: median {np.median(found):.3g} of {np.sort(found).round(5)}", flush=True)


if __name__ == "__main__":
    main()
