"""commands."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from pathlib import Path
from typing import Any

from ..design.stopping import tolerance
from ..execution.executors import SteadyPool
from ..execution.journal import read_journal
from ..execution.progress import LineProgress
from ..execution.reader import read_result
from ..execution.resume import bring_to_its_end
from ..execution.runner import run
from ..results.summary import as_json, state, state_text, table
from ..visualization.report import report
from .problem_file import Problem, load_problem

DONE, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130


MARKS = {True: "✓", False: "✗", None: "–"}  #: of claims that hold, that do not, and that only the paper makes


class UserError(Exception):
    """Something that the user asked for and that cannot be done."""


def _run(options: argparse.Namespace) -> int:
    problem = load_problem(options.problem)
    journal = options.journal or problem.path.with_suffix(".jsonl")
    if options.fresh and journal.exists():
        aside = _free_name(journal)
        journal.rename(aside)
        print(f"the old journal is {aside}", file=sys.stderr)
    return _go_on(problem, journal, options)


def _resume(options: argparse.Namespace) -> int:
    header, _ = read_journal(options.journal)
    if "file" not in header:
        raise UserError(f"{options.journal} is of a run from Python: call integrate(..., journal=...) again to go on")
    file = Path(options.journal).resolve().parent / header["file"]
    return _go_on(load_problem(file), options.journal, options)


def _go_on(problem: Problem, journal: Path, options: argparse.Namespace) -> int:
    it = problem.integrator(options.budget)
    rules = [tolerance(problem.rel_tol, problem.abs_tol)] if problem.rel_tol or problem.abs_tol else []
    progress = None if sys.stderr.isatty() and not options.verbose else LineProgress(options.verbose)
    about = {"file": os.path.relpath(problem.path, journal.resolve().parent), "inputs": problem.names}
    with _executor(problem, options) as executor:
        result = run(it, rules, executor, options.workers, journal, None, progress, about)
    if options.json:
        print(json.dumps(as_json(result)))
    else:
        print(f"\n{result}\n")
        for finding in result.diagnose():
            if finding.level == "warning":
                print(f"warning: {finding}")
        print(f"look at it with: amsbq report {journal}")
        print(f"go on with: amsbq resume {journal} --budget {2 * it.budget:g}")
    return INTERRUPTED if result.stopped == "interrupted" else DONE


def _executor(problem: Problem, options: argparse.Namespace) -> AbstractContextManager[Any]:
    if options.dask is not None:
        try:
            from distributed import Client
        except ImportError:
            raise ImportError("--dask needs distributed: pip install 'amsbq[dask]'") from None
        client: Any = Client(options.dask)  # type: ignore[no-untyped-call]
        return closing(client)
    if problem.needs_processes:
        return SteadyPool(options.workers)
    return nullcontext()


def _free_name(journal: Path) -> Path:
    number = 1
    while (aside := journal.with_name(f"{journal.stem}.{number}{journal.suffix}")).exists():
        number += 1
    return aside


def _status(options: argparse.Namespace) -> int:
    now = state(read_result(options.journal, model=False))
    print(json.dumps(now) if options.json else state_text(now))
    return DONE


def _report(options: argparse.Namespace) -> int:
    journal = options.journal
    if options.text:
        print("\n".join(table(read_result(journal, model=False))))
        return DONE
    output = options.output or journal.with_suffix(".html")
    if not output.name or output.is_dir():
        raise UserError(f"--output must be the name of a file, got {output}")
    if not options.watch:
        print(f"wrote {report(journal, output)}")
        return DONE
    print(f"watching {journal}: open {output} in a browser; interrupt to leave", file=sys.stderr)
    with suppress(KeyboardInterrupt):
        _watch(journal, output, options.every)
    print(f"wrote {output}" if output.exists() else "nothing was written: there was no journal")
    return DONE


def _watch(journal: Path, output: Path, every: float) -> None:
    """Write the page again whenever the journal has grown, until its run has stopped."""
    size = -1
    while True:
        now = journal.stat().st_size if journal.exists() else 0
        if now != size and now and b"\n" in journal.read_bytes():
            size = now
            result = read_result(journal)
            report(result, output, refresh=every)
            if result.stopped:
                return
        time.sleep(every)


def _forecast(options: argparse.Namespace) -> int:
    problem = load_problem(options.problem)
    path = options.journal or problem.path.with_suffix(".jsonl")
    if not path.exists():
        raise UserError(
            f"nothing is known yet, and there is no journal {path}: begin with a small budget, as in amsbq run "
            f"{options.problem} --budget {problem.budget / 4:g}"
        )
    it = problem.integrator(options.budget)
    bring_to_its_end(it, *read_journal(path), path)
    try:
        print(it.forecast(it.budget))
    except ValueError as error:
        raise UserError(str(error)) from None
    return DONE


def _demo(options: argparse.Namespace) -> int:
    from ..experiments.demonstration import demonstrate

    return demonstrate()


def _reproduce(options: argparse.Namespace) -> int:
    from ..experiments.reproduce import EXPERIMENTS, SEEDS, reproduce
    from ..experiments.study import Settings

    unknown = [name for name in options.names if name not in EXPERIMENTS]
    if unknown:
        options.parser.error(f"there is no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}")
    names = list(dict.fromkeys(options.names)) or list(EXPERIMENTS)
    start = time.monotonic()
    found = reproduce(names, options.output, Settings(options.seeds or SEEDS, options.quick), options.workers)
    for name, claims in found.items():
        print(f"\n{name}: {EXPERIMENTS[name].title}")
        for claim in claims:
            print(f"  {MARKS[claim.holds]} {claim.text}\n      {claim.found}")
    failed = sum(claim.holds is False for claims in found.values() for claim in claims)
    print(f"\ntables and figures are in {options.output}/; {time.monotonic() - start:.0f} s")
    if failed:
        few = "; but one seed and a small budget do not tell" if options.quick else ""
        print(f"{failed} of the claims did not hold{few}")
    return FAILED if failed and not options.quick else DONE
