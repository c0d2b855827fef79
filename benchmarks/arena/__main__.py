"""The command line of the arena: run methods, compare versions, compute truths, write the report."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one process for each core; before NumPy is imported
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks.arena import __doc__ as description
from benchmarks.arena import against, report, runs, store, truths
from benchmarks.arena.families import MAKERS, problems
from benchmarks.arena.methods import METHODS
from benchmarks.arena.results import Results

#: seeds of a run of the arena, and seeds and stages of a quick look: below five minutes with release 0.2.0
SEEDS, QUICK_SEEDS = range(5), range(2)
QUICK_STAGES = ("3", "5", "small data", "own data")


def seeds(text: str) -> Sequence[int]:
    """Return the seeds 0 to n - 1 for "n", or from a to b for "a-b"."""
    first, dash, last = text.partition("-")
    return range(int(first), int(last) + 1) if dash else range(int(first))


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    found = argparse.ArgumentParser(
        "python -m benchmarks.arena", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--family", action="append", choices=MAKERS, default=[], help="only this family; repeatable")
    found.add_argument("--method", action="append", choices=[*METHODS, "all"], help="only this method; repeatable")
    found.add_argument("--seeds", type=seeds, help="how many, or from-to, as in 5-9 (default: 5)")
    found.add_argument(
        "--quick", action="store_true", help="one development problem of each family, two seeds, small budgets"
    )
    found.add_argument("--workers", type=int, default=os.cpu_count())
    found.add_argument(
        "--against",
        choices=["baseline", "itself"],
        help="run the default and compare it with the stored baseline; or compare the baseline's even seeds with its "
        "odd ones, in which nothing may be won or lost beyond chance",
    )
    found.add_argument(
        "--complete",
        action="store_true",
        help="run what the baseline lacks, with the library of its release on PYTHONPATH; then --freeze",
    )
    found.add_argument("--freeze", action="store_true", help="make the stored results a part of the baseline")
    found.add_argument("--report", action="store_true", help="write docs/arena.md from the stored results")
    found.add_argument(
        "--truths", action="store_true", help="compute the true integrals that are missing, or of a family"
    )
    return found


def main() -> None:
    """Parse the arguments and run the requested part."""
    options = parser().parse_args()
    if options.truths:
        truths.compute_all(problems(), options.family)
    elif options.report:
        report.write()
    elif options.freeze:
        store.freeze()
    elif options.against == "itself":
        baseline = Results.of(store.load(store.BASELINE).values())
        even, odd = against.halves_of_seeds(baseline.where(lambda r: not options.family or r.family in options.family))
        show(against.Comparison(even, odd))
    else:
        run(options)


def run(options: argparse.Namespace) -> None:
    """Run whatever is missing, and print the comparison."""
    baseline = store.load(store.BASELINE).values()
    chosen = runs.chosen(options.family)
    if options.quick:
        quick = against.quick_problems(Results.of(baseline))
        chosen = [problem for problem in chosen if problem.key in quick]
    default = against.OURS if options.against else [name for name, method in METHODS.items() if method.default]
    methods = options.method or default
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    jobs = runs.wanted(chosen, list(METHODS) if "all" in methods else methods, seeds)
    jobs = [job for job in jobs if not options.quick or job[2] in QUICK_STAGES]
    runs.run_all(jobs, options.workers, by_any_code=options.complete)
    wanted = set(jobs)
    found = [record for record in store.load(store.BASELINE, store.FILE).values() if record.job in wanted]
    if options.against:
        show(against.Comparison(*against.shared(found, baseline)))
    else:
        print(report.summary(found))


def show(comparison: against.Comparison) -> None:
    """Print a comparison."""
    print(against.text_table(comparison.head, comparison.rows))
    print(comparison.summary())


if __name__ == "__main__":
    main()
