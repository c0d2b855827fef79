"""Measure estimates of the limit of levels: coverage, and the error compared with that of the finest level alone.

    python -m benchmarks.limit                        # 13 problems, two budgets, two seeds: five minutes of one core
    python -m benchmarks.limit --only oscillator --budgets 5 --seeds 1

The problems are those of the arena with knobs that can be refined at will. Their limit is the true integral of the
finest level plus the extrapolated change of an average over 512 points with twice, four and eight times as many cells
or steps. Errors are in standard deviations of the output; "finest" is a run of the finest level as its only source.
"""

from __future__ import annotations

import argparse
import os
import warnings
from functools import cache, partial
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import amsbq
from benchmarks.arena.arrays import Array
from benchmarks.arena.families import problem_named
from benchmarks.arena.problem import Problem
from benchmarks.arena.truths import truth_of

KEYS = (
    *(f"boundary-value/{i}" for i in range(6)),
    *(f"oscillator/{i}" for i in range(4)),
    *(f"two-knobs/{i}" for i in (0, 2, 6)),
)


class Limit(NamedTuple):
    """The integral in the limit, its error, and the distance of the finest level from it."""

    mean: float
    error: float
    bias: float


@cache
def limit_of(key: str) -> Limit:
    """Return the limit of a problem, by refining the settings of its finest source."""
    problem = problem_named(key)
    finest, X = problem.functions[0], problem.measure.sobol(512, 1)
    assert isinstance(finest, partial)

    def average(times: int) -> float:
        settings = [times * setting for setting in finest.args]
        return float(np.mean(finest.func(*settings, X, **finest.keywords) - finest(X)))

    gained = extrapolated(*map(average, (2, 4, 8)))
    return Limit(truth_of(problem).mean + gained, 0.1 * abs(gained - average(8)), -gained)


def extrapolated(first: float, second: float, third: float) -> float:
    """Return the limit of a sequence whose steps shrink geometrically."""
    before, last = second - first, third - second
    return third + last**2 / (before - last) if before != last else third


class Run(NamedTuple):
    """The error of a run in standard deviations of the output, and whether its 95 % interval holds the limit."""

    error: float
    holds: bool


def run(problem: Problem, budget: float, seed: int, limit: bool) -> Run:
    """Return the outcome of a run for the limit, or of one with the finest level alone."""
    truth, std = limit_of(problem.key), truth_of(problem).std
    sources = problem.sources(seed, declared=True) if limit else problem.sources(seed)[:1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = amsbq.integrate(sources, problem.measure, budget=budget, seed=seed, limit=limit)
    low, high = result.interval(0.95)
    return Run(abs(result.mean - truth.mean) / std, bool(low - truth.error <= truth.mean <= high + truth.error))


def typical(errors: Array) -> float:
    """Return the geometric mean of errors, with a floor of a millionth."""
    return float(np.exp(np.mean(np.log(np.maximum(errors, 1e-6)))))


def main() -> None:
    """Run all and print a line for each problem, and one for each family."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=["boundary-value", "oscillator", "two-knobs"])
    parser.add_argument("--budgets", nargs="*", type=float, default=[5.0, 10.0])
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    found: dict[str, list[tuple[Run, Run]]] = {}
    for key in (key for key in KEYS if key.split("/")[0] in options.only):
        problem = problem_named(key)
        for budget in options.budgets:
            for seed in range(options.seeds):
                pair = run(problem, budget, seed, True), run(problem, budget, seed, False)
                for name in (key, problem.family, "all"):
                    found.setdefault(name, []).append(pair)
        show(key, found[key])
    for name in [*options.only, "all"]:
        show(name, found[name])


def show(name: str, pairs: list[tuple[Run, Run]]) -> None:
    """Print typical errors, and how many intervals hold the limit."""
    ours, finest = (typical(np.array([pair[i].error for pair in pairs])) for i in (0, 1))
    held = sum(pair[0].holds for pair in pairs)
    print(
        f"{name:18} limit {ours:.2g}, finest {finest:.2g}: ratio {ours / finest:.2f}; {held} of {len(pairs)} hold",
        flush=True,
    )


if __name__ == "__main__":
    main()
