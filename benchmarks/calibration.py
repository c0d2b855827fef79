"""Measure cost and calibration of every model on problems with known integrals, beside Monte Carlo methods.

    python -m benchmarks.calibration            # about half an hour on two cores
    python -m benchmarks.calibration --quick    # a minute

Each problem is run with several seeds in two ways: *active*, where the mutual-information rate chooses what to evaluate
and estimates are recorded when the cost reaches that of 4, 8 and 12 primary evaluations; and *fixed*, with random
locations of all sources. All errors are in units of the standard deviation of the primary source. The table has the
cost of each accuracy, the errors, how often central intervals contain the integral, and the average -log density of the
integral.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one process for each core

import numpy as np

import amsbq
from amsbq import baselines
from amsbq.design.acquisition import Rate
from amsbq.design.costs import ConstantCost
from amsbq.experiments.study import cost_to_stay_below
from amsbq.gp.data import Data
from amsbq.inference.belief import learn
from amsbq.inference.estimate import Estimate
from amsbq.inference.structures import MODELS
from benchmarks.problems import Problem, problem_named, problems

CHECKPOINTS = (4.0, 8.0, 12.0)  # costs at which estimates are recorded
MOST_EVALUATIONS = 70  # of an active run
FIXED_DESIGNS = ((5, 20), (12, 50))  # numbers of primary and of secondary locations
ACCURACIES = (1e-1, 1e-2, 1e-3)
LEVELS = (0.5, 0.8, 0.95)
CANDIDATES = 256  # locations among which the best rate is chosen
REFIT_GROWTH = 1.025  # of the number of observations, from one refit of the hyperparameters to the next
BASELINES = {
    "Monte Carlo": baselines.monte_carlo,
    "quasi Monte Carlo": partial(baselines.quasi_monte_carlo, replicates=4),
    "control variate": baselines.control_variate,
}


@dataclass(frozen=True)
class Outcome:
    """One estimate; the last one of an active run has the costs after which the error stays below each accuracy."""

    method: str
    problem: str
    family: str
    seed: int
    design: str
    error: float  # of the mean, in standard deviations of the primary source
    probability: float  # of values below the true integral, by the estimate
    surprise: float  # -log density of the true integral, in the same units
    costs: tuple[float, ...] = ()


def outcome(method: str, problem: Problem, seed: int, design: str, estimate: Estimate, spread: float) -> Outcome:
    """Compare an estimate with the true integral."""
    tiny = 1e-14 * spread  # below it are rounding errors
    scales = np.maximum(estimate.scales, tiny)
    blurred = Estimate(estimate.centres, scales, estimate.weights, estimate.dof)
    return Outcome(
        method,
        problem.name,
        problem.family,
        seed,
        design,
        (estimate.mean - problem.integral) / spread,
        blurred.cdf(problem.integral),
        -blurred.log_density(problem.integral) - np.log(spread),
    )


def active(
    problem: Problem,
    name: str,
    seed: int,
    checkpoints: Sequence[float] = CHECKPOINTS,
    accuracies: Sequence[float] = ACCURACIES,
    refit_growth: float = REFIT_GROWTH,
) -> list[Outcome]:
    """Evaluate all sources at three random locations, then what has the best rate, until the last checkpoint."""
    spread, model, rng = problem.spread(), MODELS[name], np.random.default_rng([seed, 1])
    n_used = len(problem.sources) if model.secondaries else 1
    sources, costs = problem.sources[:n_used], problem.costs[:n_used]
    L, noise = len(sources), [0.0] * len(sources)
    known_costs = [ConstantCost(problem.measure, cost) for cost in costs]
    shared = problem.measure.sample(3, rng)
    data = Data(
        np.repeat(np.arange(L), 3),
        np.tile(shared, (L, 1)),
        np.concatenate([f(shared) for f in sources]),
        np.zeros(3 * L),
    )
    spent, refit_at, path, outcomes, left = 3 * sum(costs), 0.0, [], [], list(checkpoints)
    while True:
        if len(data.y) >= refit_at or spent >= left[0]:
            belief = learn(model, problem.measure, data, noise, seed)
            posteriors, units = belief.draws.condition(), belief.log_posterior.units
            refit_at = refit_growth * len(data.y)
        path.append((spent, units.levels[0] + units.spreads[0] * posteriors.integral()[0].mean()))
        finished = len(data.y) >= MOST_EVALUATIONS
        while left and (spent >= left[0] or finished):
            design = f"active, budget {left.pop(0):g}"
            outcomes.append(outcome(name, problem, seed, design, belief.estimate, spread))
        if not left:
            break
        points = problem.measure.sobol(CANDIDATES, rng)
        rates = Rate(posteriors.select(slice(None, None, 2)), known_costs).values(range(L), points)
        source, i = np.unravel_index(np.argmax(rates), rates.shape)
        new = Data(np.array([source]), points[[i]], sources[source](points[[i]]), np.zeros(1))
        data = data.followed_by(new)
        posteriors = posteriors.extend(units.standardise(new))
        spent += costs[source]
    return [*outcomes[:-1], replace(outcomes[-1], costs=costs_of_accuracy(path, problem.integral, spread, accuracies))]


def fixed(problem: Problem, name: str, seed: int) -> list[Outcome]:
    """Estimate from random locations of all sources; half of the primary ones are also secondary ones."""
    out, spread = [], problem.spread()
    for primary, secondary in FIXED_DESIGNS:
        rng, L = np.random.default_rng([seed, primary]), len(problem.sources)
        X = [problem.measure.sample(n, rng) for n in [primary] + [secondary // (L - 1)] * (L - 1)]
        X[1][: primary // 2] = X[0][: primary // 2]
        y = [source(points) for source, points in zip(problem.sources, X, strict=True)]
        data = Data(
            np.repeat(np.arange(L), [len(points) for points in X]),
            np.concatenate(X),
            np.concatenate(y),
            np.zeros(sum(map(len, y))),
        )
        belief = learn(MODELS[name], problem.measure, data, [0.0] * L, seed)
        out.append(outcome(name, problem, seed, f"fixed, {primary} and {secondary}", belief.estimate, spread))
    return out


def baseline(problem: Problem, name: str, seed: int) -> list[Outcome]:
    """Spend the same budgets by a Monte Carlo method."""
    spread, out, path = problem.spread(), [], []
    sources = [
        amsbq.Source(lambda x, f=f: float(f(x[None])[0]), cost=cost)
        for f, cost in zip(problem.sources, problem.costs, strict=True)
    ]
    for budget in np.arange(3, CHECKPOINTS[-1] + 1):
        answer = BASELINES[name](sources, problem.measure, budget=budget, seed=seed)
        path.append((budget, answer.mean))
        if budget in CHECKPOINTS:
            out.append(outcome(name, problem, seed, f"active, budget {budget:g}", answer.estimate, spread))
    return [*out[:-1], replace(out[-1], costs=costs_of_accuracy(path, problem.integral, spread, ACCURACIES))]


def costs_of_accuracy(
    path: list[tuple[float, float]], integral: float, spread: float, accuracies: Sequence[float]
) -> tuple[float, ...]:
    """Return the cost after which the error of the mean stays below each accuracy; inf if it does not."""
    costs, means = np.transpose(path)
    errors = np.abs(means - integral) / spread
    return tuple(cost_to_stay_below(costs, errors, accuracy) for accuracy in accuracies)


def run(job: tuple[str, str, int, str]) -> list[Outcome]:
    """Return the outcomes of one method on one problem."""
    problem_name, method, seed, design = job
    problem = problem_named(problem_name)
    work = baseline if method in BASELINES else active if design == "active" else fixed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work(problem, method, seed)


def table(outcomes: list[Outcome]) -> str:
    """Return Markdown: a row for each method and kind of design, then the coverage by family and model."""
    groups = defaultdict(list)
    for o in outcomes:
        groups[o.method, o.design.split(",")[0]].append(o)
    head = ["method", "design", "n", *(f"cost to {a:g}" for a in ACCURACIES), "RMSE", "median error"]
    head += [*(f"covers {100 * level:g} %" for level in LEVELS), "-log density"]
    lines = [" | ".join(head), " | ".join(["---"] * len(head))]
    for (method, design), group in groups.items():
        errors, inside = np.array([o.error for o in group]), np.array([abs(2 * o.probability - 1) for o in group])
        reached = np.array([o.costs for o in group if o.costs]).reshape(-1, len(ACCURACIES))
        costs = [f"{c:.3g}" if np.isfinite(c) else f"> {CHECKPOINTS[-1]:g}" for c in _medians(reached)]
        cells = [method, design, str(len(group)), *costs, f"{np.sqrt(np.mean(errors**2)):.3f}"]
        cells += [f"{np.median(abs(errors)):.4f}", *(f"{100 * np.mean(inside < level):.0f}" for level in LEVELS)]
        cells.append(f"{np.mean([min(o.surprise, 50) for o in group]):.2f}")
        lines.append(" | ".join(cells))
    families = sorted({o.family for o in outcomes})
    methods = [m for m in MODELS if any(o.method == m for o in outcomes)]
    lines += ["", " | ".join(["covers 95 %, by family", *methods]), " | ".join(["---"] * (len(methods) + 1))]
    for family in [*families, "all"]:
        cells = [family]
        for method in methods:
            of = [o for o in outcomes if o.method == method and family in (o.family, "all")]
            cells.append(f"{100 * np.mean([abs(2 * o.probability - 1) < 0.95 for o in of]):.0f}" if of else "")
        lines.append(" | ".join(cells))
    return "\n".join(f"| {line} |" if line else "" for line in lines)


def _medians(reached: Any) -> Any:
    return np.median(reached, axis=0) if len(reached) else [np.inf] * len(ACCURACIES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three problems and one seed: about a minute")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--models", default="auto,icm,vbq", help="some of " + ", ".join(MODELS))
    parser.add_argument("--problems", default="", help="only problems whose name contains this")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path, help="write every outcome to this file")
    options = parser.parse_args()

    names = [p.name for p in problems() if options.problems in p.name]
    names, seeds = (names[12::13], 1) if options.quick else (names, options.seeds)
    models = options.models.split(",")
    jobs = [
        (name, method, seed, design)
        for seed in range(seeds)
        for name in names
        for design in ("active", "fixed")
        for method in (*models, *(BASELINES if design == "active" else ()))
    ]
    outcomes, start = [], time.monotonic()
    with ProcessPoolExecutor(options.workers) as pool:
        for done, found in enumerate(pool.map(run, jobs), 1):
            outcomes += found
            minutes = (time.monotonic() - start) / 60
            print(f"\r{done}/{len(jobs)} runs, {minutes:.1f} min", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps([asdict(o) for o in outcomes], indent=1) + "\n")
    print(table(outcomes))


if __name__ == "__main__":
    main()
