"""Measure error bars along a run: coverage of runs that stop at a tolerance, how often error bars rise, and whether
forecasts of them come true.

    python -m benchmarks.bars                          # development problems of the arena: a quarter of an hour
    python -m benchmarks.bars --half validation --json bars.jsonl

Errors and tolerances are in standard deviations of the primary source's output. Each run uses its whole budget;
on the way, the points are noted at which the rule of `abs_tol` would have stopped it, for several tolerances. The first
narrow interval is compared with this rule. The forecast is made when half of the budget is spent, for the whole budget.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import amsbq
from benchmarks.arena.families import problem_named, problems
from benchmarks.arena.split import half_of
from benchmarks.arena.truths import truth_of

BUDGET = 10.0
MAX_EVALUATIONS = 100
TOLERANCES = (0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.003)
LEFT_OUT = ("nearly-free", "many-inputs", "wide", "free", "two-knobs")  # families whose runs take minutes
RISE = 1.05


def along(case: tuple[str, int]) -> dict[str, Any]:
    """Return stops by tolerance, standard deviations, and forecast and outcome along a run."""
    warnings.simplefilter("ignore")
    key, seed = case
    problem = problem_named(key)
    truth = truth_of(problem)
    rules = {tolerance: amsbq.stopping.tolerance(absolute=tolerance * truth.std) for tolerance in TOLERANCES}
    first: dict[float, tuple[float, bool]] = {}
    confirmed: dict[float, tuple[float, bool]] = {}
    stds: list[float] = []
    forecasts: list[float] = []

    def look(it: amsbq.Integrator) -> None:
        if it.pending or it.starting:  # a query is pending, or there is no answer yet
            return
        estimate = it.estimate()
        low, high = estimate.interval(0.95)
        stop = it.spent, bool(low <= truth.mean <= high)
        stds.append(estimate.std / truth.std)
        for tolerance, rule in rules.items():
            if (high - low) / 2 <= tolerance * truth.std:
                first.setdefault(tolerance, stop)
            if rule(it) is not None:
                confirmed.setdefault(tolerance, stop)
        if not forecasts and it.spent >= BUDGET / 2:
            forecasts.append(it.forecast(BUDGET)[-1][1] / truth.std)

    amsbq.integrate(
        problem.sources(seed),
        problem.measure,
        budget=BUDGET,
        seed=seed,
        max_evaluations=MAX_EVALUATIONS,
        progress=look,
    )
    stops = [[t, *first[t], *confirmed.get(t, (None, None))] for t in TOLERANCES if t in first]
    return {"problem": key, "seed": seed, "stops": stops, "stds": stds, "forecast": forecasts[0] if forecasts else None}


def summary(runs: Sequence[dict[str, Any]]) -> str:
    """Return a summary of all runs as text."""
    stops = [stop for run in runs for stop in run["stops"]]
    later = [stop for stop in stops if stop[3] is not None]
    dearer = np.exp(np.mean([np.log(stop[3] / stop[1]) for stop in later]))
    ratios = [np.array(run["stds"][1:]) / run["stds"][:-1] for run in runs if len(run["stds"]) > 1]
    rises = np.mean(np.concatenate(ratios) > RISE)
    wider = np.mean([run["stds"][-1] > RISE * min(run["stds"]) for run in runs if run["stds"]])
    came = [run["stds"][-1] / run["forecast"] for run in runs if run["forecast"]]
    quartiles = np.quantile(came, [0.25, 0.5, 0.75])
    return "\n".join(
        [
            f"{len(runs)} runs",
            f"the first narrow interval holds the truth in {np.mean([stop[2] for stop in stops]):.1%} of {len(stops)}",
            f"runs that abs_tol stops: {np.mean([stop[4] for stop in later]):.1%} of {len(later)}, "
            f"at {dearer:.2f} times the cost",
            f"the standard deviation rises by more than 5 % in {rises:.1%} of evaluations; at the end it is more than "
            f"5 % above its smallest value in {wider:.0%} of runs",
            "what came, relative to the forecast: quartiles " + ", ".join(f"{ratio:.2f}" for ratio in quartiles),
        ]
    )


def main() -> None:
    """Run all problems that are not in the file yet, and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("development", "validation"), default="development")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path, help="file to which runs are appended, and that is read first")
    arguments = parser.parse_args()
    file: Path | None = arguments.json
    runs = [json.loads(line) for line in file.read_text().splitlines()] if file and file.exists() else []
    done = {(run["problem"], run["seed"]) for run in runs}
    chosen = [p.key for p in problems() if half_of(p) == arguments.half and p.plain and p.family not in LEFT_OUT]
    cases = [(key, seed) for seed in range(arguments.seeds) for key in chosen if (key, seed) not in done]
    with ProcessPoolExecutor(arguments.workers) as pool:
        for run in pool.map(along, cases):
            runs.append(run)
            if file:
                with file.open("a") as opened:
                    opened.write(json.dumps(run) + "\n")
    print(summary(runs))


if __name__ == "__main__":
    main()
