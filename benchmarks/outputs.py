"""Compare runs with several outputs with runs for each output alone, at the same budget.

    python -m benchmarks.outputs                                # M = 2, 5, 31 on validation problems: half an hour
    python -m benchmarks.outputs --half development --families smooth --outputs 5

The outputs are functions of that of a problem of the arena: its first moments, its product with an input, and for many
outputs a smooth distribution function at 31 limits. The truth is from many Sobol points. Among 31 outputs, every tenth
has its own run.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence

import numpy as np

import amsbq
from amsbq.common.validation import Array
from benchmarks.arena.families import problems
from benchmarks.arena.problem import Problem
from benchmarks.arena.split import half_of
from benchmarks.arena.truths import truth_of

BUDGET = 8.0
MAX_EVALUATIONS = 60
REFERENCE_POINTS = 2**16
FAMILIES = ("smooth", "boundary-value", "oscillator", "skewed", "mediocre", "one-source", "unordered")


def outputs_of(f: Array, X: Array, M: int) -> Array:
    """Return M outputs, shape (n, M), from the standardised values f (n,) of a source at X (n, D)."""
    if M > 5:
        return np.tanh(f[:, None] - np.linspace(-2, 2, M))
    middle = X[:, 0] / np.maximum(np.abs(X[:, 0]).max(initial=0.0), 1.0)
    return np.stack([f, f**2, np.tanh(f), f * middle, np.cos(2 * f)], axis=1)[:, :M]


def sources_of(problem: Problem, M: int, chosen: int | None = None) -> list[amsbq.Source]:
    """Return the sources of a problem with M outputs, or with one of them alone."""
    truth = truth_of(problem)

    def returning(function):  # type: ignore[no-untyped-def]
        def evaluate(x: Array) -> Array | float:
            X = np.atleast_2d(x)
            values = outputs_of((np.asarray(function(X)) - truth.mean) / truth.std, X, M)[0]
            return values if chosen is None else float(values[chosen])

        return evaluate

    return [amsbq.Source(returning(f), cost=c) for f, c in zip(problem.functions, problem.costs, strict=True)]


def compared(problem: Problem, M: int, seed: int) -> tuple[Array, Array, Array, float, float]:
    """Return errors of the joint and of separate runs, coverage of the first (M,), and CPU seconds per step of both."""
    X = problem.measure.sobol(REFERENCE_POINTS, 11)
    truth = truth_of(problem)
    values = outputs_of((problem.functions[0](X) - truth.mean) / truth.std, X, M)
    exact, spread = values.mean(axis=0), values.std(axis=0)
    options = {"budget": BUDGET, "seed": seed, "max_evaluations": MAX_EVALUATIONS}
    started = time.process_time()
    together = amsbq.integrate(sources_of(problem, M), problem.measure, outputs=M, **options)
    step = (time.process_time() - started) / len(together.evaluations)
    low, high = together.interval(0.95)
    chosen = range(M) if M <= 5 else range(0, M, 10)
    alone, steps = [], []
    for m in chosen:
        started = time.process_time()
        one = amsbq.integrate(sources_of(problem, M, m), problem.measure, **options)
        steps.append((time.process_time() - started) / len(one.evaluations))
        alone.append(abs(one.mean - exact[m]))
    rows = np.array(list(chosen))
    errors = np.abs(together.mean - exact)[rows] / spread[rows]
    covered = ((low <= exact) & (exact <= high))[rows]
    return errors, np.array(alone) / spread[rows], covered, step, float(np.mean(steps))


def report(wanted: Sequence[Problem], M: int, seeds: int) -> str:
    """Return a line on M outputs, over all problems: ratio of errors, coverage, and time of a step."""
    ratios, covers, times = [], [], []
    for problem in wanted:
        for seed in range(seeds):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                together, alone, covered, step, step_alone = compared(problem, M, seed)
            floor = 1e-5  # of the truth by Sobol points, in standard deviations
            ratios.append(np.log(np.maximum(together, floor) / np.maximum(alone, floor)).mean())
            covers.append(covered.mean())
            times.append(step / step_alone)
            print(f"{M:>3} {problem.key:<20} ratio {np.exp(ratios[-1]):.2f} covered {covers[-1]:.2f}", flush=True)
    error = np.exp(np.mean(ratios))
    return (
        f"M = {M}: error {error:.2f} of runs of their own, covered {np.mean(covers):.0%}, step {np.median(times):.1f}"
    )


def main() -> None:
    """Run the comparison and print a line for each number of outputs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("development", "validation"), default="validation")
    parser.add_argument("--families", nargs="*", default=FAMILIES)
    parser.add_argument("--outputs", nargs="*", type=int, default=(2, 5, 31))
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    wanted = [p for p in problems() if p.family in args.families and half_of(p) == args.half and not p.noise]
    lines = [report(wanted, M, args.seeds) for M in args.outputs]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
