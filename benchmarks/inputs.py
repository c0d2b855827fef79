"""Measure the CPU seconds of a step for every kind of input, relative to uniform inputs.

    python -m benchmarks.inputs            # four minutes; `--kind "three log-normal"` measures one kind

Three inputs, or six where noted, two sources with costs of 1 and 0.1, and 26 evaluations. Each kind has its own
process, so that the time includes the first use of a distribution.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from scipy import stats

import amsbq

N_EVALUATIONS = 26
TRIANGULAR = np.array([[1, 0.5, 0.0], [0.5, 1, 0.2], [0.0, 0.2, 1]])

KINDS: dict[str, Callable[[], amsbq.Measure]] = {
    "uniform": lambda: amsbq.Uniform([0, 0, 0], 1),
    "normal": lambda: amsbq.Gaussian([0, 0, 0], 1.0),
    "correlated normal": lambda: amsbq.Gaussian([0, 0, 0], TRIANGULAR),
    "one log-normal of three": lambda: amsbq.Product([stats.lognorm(0.5), stats.uniform(), stats.uniform()]),
    "three beta": lambda: amsbq.Product([stats.beta(2, 3)] * 3),
    "three truncated normal": lambda: amsbq.Product([stats.truncnorm(-1, 2)] * 3),
    "three log-normal": lambda: amsbq.Product([stats.lognorm(0.5)] * 3),
    "three gamma": lambda: amsbq.Product([stats.gamma(3)] * 3),
    "six uniform": lambda: amsbq.Uniform(np.zeros(6), 1),
    "six log-normal": lambda: amsbq.Product([stats.lognorm(0.5)] * 6),
    "1,000 samples": lambda: amsbq.Empirical(np.random.default_rng(0).normal(size=(1000, 3))),
    "10,000 samples": lambda: amsbq.Empirical(np.random.default_rng(0).normal(size=(10_000, 3))),
    "copula": lambda: amsbq.GaussianCopula([stats.lognorm(0.5), stats.gamma(3), stats.uniform()], TRIANGULAR),
    "three counts": lambda: amsbq.Product([stats.poisson(5), stats.randint(0, 20), stats.binom(30, 0.3)]),
    "normal, count and category": lambda: amsbq.Product([stats.norm(), stats.poisson(5), {"a": 0.5, "b": 0.5}]),
    "mixture of two normal": lambda: amsbq.Mixture(
        [amsbq.Gaussian([0] * 3, 1.0), amsbq.Gaussian([3] * 3, 0.5)], [0.5] * 2
    ),
}


def seconds_per_step(measure: amsbq.Measure) -> float:
    """Return the CPU seconds of an ask and a tell, averaged over the first evaluations."""
    it = amsbq.Integrator([amsbq.Source(), amsbq.Source(cost=0.1)], measure)
    start = time.process_time()
    for _ in range(N_EVALUATIONS):
        query = it.ask()
        assert query is not None
        u = (query.x - measure.median) / measure.width
        it.tell(query, float(np.sin(2 * u.sum()) + u[0] ** 2 + 0.1 * query.source * u[-1]))
    return (time.process_time() - start) / N_EVALUATIONS


def measured(kind: str) -> float:
    """Return the seconds for one kind of input, the smaller of two processes' times."""
    command = [sys.executable, "-m", "benchmarks.inputs", "--one", kind]
    return min(json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(2))


def main() -> None:
    """Print a row for each kind of input."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this kind; repeatable")
    parser.add_argument("--one", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        warnings.simplefilter("ignore")
        print(json.dumps(seconds_per_step(KINDS[options.one]())))
        return
    beside = {dim: measured(f"{name}uniform") for dim, name in ((3, ""), (6, "six "))}
    for kind in options.kind or KINDS:
        taken = measured(kind)
        print(f"| {kind} | {1e3 * taken:.0f} | {taken / beside[KINDS[kind]().dim]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
