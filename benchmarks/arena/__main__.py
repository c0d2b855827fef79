"""The command line of the arena: run methods, compute truths, write the report."""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one process for each core; before NumPy is imported
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks.arena import __doc__ as description
from benchmarks.arena import report, runs, truths
from benchmarks.arena.families import MAKERS
from benchmarks.arena.methods import METHODS


def main() -> None:
    """Parse the arguments and do what they say."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.arena", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--family", action="append", choices=MAKERS, default=[], help="only this family; repeatable")
    parser.add_argument("--method", action="append", choices=[*METHODS, "all"], help="only this method; repeatable")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="six small problems and one seed: two minutes")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--report", action="store_true", help="write docs/arena.md from the stored results")
    parser.add_argument("--truths", action="store_true", help="compute the true integrals again")
    options = parser.parse_args()
    if options.truths:
        truths.compute_all(options.family)
        return
    if options.report:
        report.write()
        return
    chosen = options.method or [name for name, method in METHODS.items() if method.default]
    methods = list(METHODS) if "all" in chosen else chosen
    jobs = runs.wanted(options.family, methods, 1 if options.quick else options.seeds, options.quick)
    runs.run_all(jobs, options.workers)
    print(report.summary(set(jobs)))


if __name__ == "__main__":
    main()
