"""The command line of the yardsticks: run methods on other people's problems, and write the page."""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one process for each core; before NumPy is imported
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmarks.arena import runs, store, truths
from benchmarks.arena.families import family
from benchmarks.arena.results import Results
from benchmarks.yardsticks import __doc__ as description
from benchmarks.yardsticks import registry, report, theirs

QUICK = 2  #: problems of each source, and one seed at the smaller budget


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    found = argparse.ArgumentParser(
        "python -m benchmarks.yardsticks", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--family", action="append", choices=registry.MAKERS, default=[], help="only this source")
    found.add_argument("--method", action="append", choices=registry.PLAYERS, default=[], help="only this method")
    found.add_argument("--seeds", type=int, default=len(registry.SEEDS), help="how many (default: 5)")
    found.add_argument("--workers", type=int, default=os.cpu_count())
    found.add_argument("--quick", action="store_true", help="two problems of each source, one seed, the smaller budget")
    found.add_argument("--theirs", action="store_true", help="run the methods of the outside packages")
    found.add_argument("--freeze", action="store_true", help="make what was run a part of the stored results")
    found.add_argument("--report", action="store_true", help="write docs/yardsticks.md from the stored results")
    found.add_argument("--truths", action="store_true", help="compute the true integrals that are missing")
    return found


def main() -> None:
    """Parse the arguments and do what they say."""
    options = parser().parse_args()
    if options.truths:
        truths.compute_all(registry.problems(), options.family, truths.YARDSTICKS)
    elif options.theirs:
        theirs.run_all()
    elif options.freeze:
        store.freeze(report.FILE, report.STORED)
    elif options.report:
        report.write()
    else:
        run(options)


def run(options: argparse.Namespace) -> None:
    """Run what is missing, and print the ratios."""
    names = options.family or list(registry.MAKERS)
    chosen = [problem for name in names for problem in family(name)[: QUICK if options.quick else None]]
    wanted = registry.jobs(chosen, range(1 if options.quick else options.seeds), options.method or registry.PLAYERS)
    if options.quick:
        wanted = [job for job in wanted if job[2] in (registry.BUDGETS[0], registry.LIKELIHOOD_BUDGETS[0])]
    runs.run_all(wanted, options.workers, report.FILE, baseline=report.STORED)
    jobs = set(wanted)
    records = [record for record in store.load(report.STORED, report.FILE).values() if record.job in jobs]
    print(report.errors(Results.of(records)))
    for record in records:
        if record.failed:
            print(f"{record.problem} by {record.method}: {record.failed}")


if __name__ == "__main__":
    main()
