"""Measure the errors of the default on given observations of a hierarchy of levels, and those of multilevel BQ.

    python -m benchmarks.levels                       # all hierarchies, five designs each: ten minutes on two cores
    python -m benchmarks.levels --only column sde --seeds 1

Designs are nested: each coarser level has twice as many points, including those of the finer level, starting from two
points of the finest level or from five times as many. Printed are root mean square errors in standard deviations of the
output.
"""

from __future__ import annotations

import argparse
import os
import warnings
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.arena.designs import by_model, multilevel_bq, observe
from benchmarks.arena.families import family, problem_named, problems
from benchmarks.arena.truths import truth_of

#: numbers of evaluations of the finest level
SIZES = (2, 10)
ESTIMATORS = {"default": by_model("auto"), "multilevel BQ": multilevel_bq}


def errors(key: str, size: int, seed: int) -> tuple[float, ...]:
    """Return the errors of all estimators on the same observations."""
    warnings.simplefilter("ignore")
    problem = problem_named(key)
    truth, data = truth_of(problem), observe(problem, size, seed)
    return tuple((estimator(problem, data, seed).mean - truth.mean) / truth.std for estimator in ESTIMATORS.values())


def main() -> None:
    """Run all designs and print root mean square errors by family."""
    hierarchies = list(dict.fromkeys(problem.family for problem in problems() if problem.ordered))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=hierarchies, choices=hierarchies, metavar="FAMILY")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()
    with ProcessPoolExecutor(options.workers) as pool:
        for name in options.only:
            for size in SIZES:
                jobs = [(problem.key, size, seed) for problem in family(name) for seed in range(options.seeds)]
                found = np.array(list(pool.map(errors, *zip(*jobs, strict=True))))
                rms = np.sqrt(np.mean(found**2, axis=0))
                of_each = ", ".join(f"{method} {value:.1e}" for method, value in zip(ESTIMATORS, rms, strict=True))
                print(f"{name:14} {size:2} of the finest level: {of_each}, ratio {rms[0] / rms[1]:.2f}", flush=True)


if __name__ == "__main__":
    main()
