"""Measure the worth of sources that cost next to nothing, and check that useless ones do no harm.

    python -m benchmarks.free              # 20 seeds: about half an hour on two cores
    python -m benchmarks.free --seeds 4
    python -m benchmarks.free --only useless

- *Ishigami triple*: the three models of MXMCPy, costs 1, 0.05, 0.001, budgets 10 and 30. Multi-fidelity Monte Carlo
  with known covariances has a root mean square error of 0.130 at budget 10.
- *the ball* of the README: with the formula at cost 0.01 and a budget of 6, and at cost 0 with half of it.
- *useless*: development problems of the arena with their primary source, and a free one that is the primary plus noise
  of the same variance, a constant, or unrelated to it; the root mean square error over a fifth of the seeds is
  compared with that of the primary source alone. (A single error may be small by chance.)
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats

import amsbq
from amsbq.common.validation import Array
from benchmarks.arena.families import problem_named, problems
from benchmarks.arena.families.nearly_free import ishigami as model
from benchmarks.arena.split import half_of
from benchmarks.arena.truths import truth_of

FAMILIES = ("smooth", "one-source", "mediocre", "skewed")
BUDGET = 10.0  # of runs with a useless source
FLOOR = 1e-6  # in standard deviations of the output: smaller errors count as this


class Outcome(NamedTuple):
    """One run."""

    error: float
    covered: bool
    seconds: float


def outcome(sources: Sequence[Any], inputs: Any, truth: float, budget: float, seed: int) -> Outcome:
    """Return the outcome of a run, with CPU seconds."""
    warnings.simplefilter("ignore")
    started = time.process_time()
    result = amsbq.integrate(sources, inputs, budget=budget, seed=seed)
    low, high = result.interval(0.95)
    return Outcome(abs(result.mean - truth), low <= truth <= high, time.process_time() - started)


def ishigami(budget: float, seed: int) -> Outcome:
    """Return the outcome of a run with three models."""
    models = ((model(5, 0.1, 4), 1.0), (model(4.75, 0.1, 4), 0.05), (model(3, 0.9, 2), 0.001))
    sources = [amsbq.Source(f, cost=c, vectorized=True) for f, c in models]
    return outcome(sources, [(-np.pi, np.pi)] * 3, 2.5, budget, seed)


def ball(cost: float, budget: float, seed: int) -> Outcome:
    """Return the outcome of a run with the README's ball, in metres."""

    def simulator(x: Array) -> float:
        r, v = np.zeros(2), x[0] * np.array([np.cos(x[1]), np.sin(x[1])])
        while r[1] >= 0:
            r, v = r + 2e-3 * v, v - 2e-3 * (0.004 * np.hypot(*v) * v + [0, 9.81])
        return float(r[0])

    formula = amsbq.Source(lambda x: x[0] ** 2 * np.sin(2 * x[1]) / 9.81, cost=cost)
    return outcome([simulator, formula], [stats.norm(40, 3), stats.uniform(0.5, 0.5)], 107.5546, budget, seed)


def useless(case: tuple[str, str, int]) -> float:
    """Return the error, in standard deviations of the output, of a problem with a free source of a kind, or alone."""
    kind, key, seed = case
    problem = problem_named(key)
    primary, truth = problem.functions[0], truth_of(problem)
    rng, some = np.random.default_rng(seed), problem.measure.sobol(256, 0)
    free: dict[str, Callable[[Array], Array]] = {
        "noise": lambda X: primary(X) + truth.std * rng.standard_normal(len(X)),
        "constant": lambda X: np.full(len(X), truth.mean),
        "unrelated": lambda X: truth.std * np.sin((X - some[0]) / some.std(axis=0) @ np.arange(1, X.shape[1] + 1)),
    }
    sources = [amsbq.Source(primary, vectorized=True)]
    if kind != "alone":
        sources.append(amsbq.Source(free[kind], cost=0, vectorized=True))
    return max(outcome(sources, problem.measure, truth.mean, BUDGET, seed).error / truth.std, FLOOR)


def lines_of_useless(seeds: int, over: Callable[..., Iterator[Any]]) -> Iterator[str]:
    """Yield a line on each kind of useless source."""
    keys = [p.key for p in problems() if p.family in FAMILIES and half_of(p) == "development" and not p.noise]
    few = max(seeds // 5, 1)

    def errors(kind: str) -> Array:
        cases = [(kind, key, seed) for key in keys for seed in range(few)]
        return np.sqrt(np.mean(np.square(list(over(useless, cases))).reshape(-1, few), axis=1))

    alone = errors("alone")
    for kind in ("noise", "constant", "unrelated"):
        ratios = errors(kind) / alone
        yield (
            f"useless, {kind}: RMSE {np.exp(np.mean(np.log(ratios))):.2f} of the primary source alone's in the "
            f"geometric mean of {len(keys)} problems, {few} runs each; {', '.join(f'{r:.2g}' for r in sorted(ratios))}"
        )


def lines_of_useful(seeds: int, over: Callable[..., Iterator[Any]]) -> Iterator[str]:
    """Yield a line on each problem with useful free sources."""
    for cost, budget in ((0.01, 6.0), (0.0, 3.0)):
        found = list(over(partial(ball, cost, budget), range(seeds)))
        yield f"the ball, formula at cost {cost:g}, budget {budget:g}: {_summary(found)}"
    for budget in (10.0, 30.0):
        yield f"Ishigami triple, budget {budget:g}: {_summary(list(over(partial(ishigami, budget), range(seeds))))}"


def _summary(found: Sequence[Outcome]) -> str:
    errors, covered, seconds = np.array(found).T
    rms = float(np.sqrt(np.mean(errors**2)))
    taken = f"CPU seconds {np.median(seconds):.1f}, at most {seconds.max():.0f}"
    return f"RMSE {rms:.3g}, covered {covered.mean():.0%}, {taken}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--only", choices=("useful", "useless"))
    args = parser.parse_args()
    wanted = {"useful": lines_of_useful, "useless": lines_of_useless}
    with ProcessPoolExecutor(args.workers) as pool:
        for lines in [wanted[args.only]] if args.only else wanted.values():
            for line in lines(args.seeds, pool.map):
                print(line, flush=True)


if __name__ == "__main__":
    main()
