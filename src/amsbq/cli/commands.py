"""The main commands: each takes the parsed options and returns an exit code."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections import Counter
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..certification import certify
from ..common.messages import collected_warnings
from ..design.evaluations import Evaluation, StopReason
from ..design.stopping import goal_rules
from ..execution.bulk import BulkError
from ..execution.executors import ExecutorLike
from ..execution.integrator import Integrator
from ..execution.journal import locked, read_journal
from ..execution.progress import LineProgress, working
from ..execution.reader import read_result
from ..execution.resume import restore
from ..execution.revisions import taken_evaluations
from ..execution.runner import NoResultError, run
from ..problems.problem_file import ProblemFile, load_problem
from ..processes.guardian import GUARDIAN
from ..processes.interrupts import terminable
from ..processes.pool import ResilientProcessPool
from ..results.result import Result, is_known
from ..results.summary import as_json
from ..simulators.answers import error_text
from .exits import ExitCode, UserError

#: what to change in a problem file for a run to continue, by why it stopped
CHANGED_FOR_MORE = {"tolerance": "smaller tolerance", "error cost": "larger error_cost"}

CLAIM_MARKS = {True: "✓", False: "✗", None: "–"}  #: for claims that hold, that do not, and that cannot be checked


def run_command(options: argparse.Namespace) -> int:
    """Run a problem file, or continue its run if the journal exists."""
    problem = load_problem(options.problem)
    journal = options.journal or problem.path.with_suffix(".jsonl")
    fresh = options.fresh and journal.exists()
    if options.origin is not None and fresh and options.origin.resolve() == journal.resolve():
        raise UserError(f"{journal} cannot be both renamed and read: pass another --journal for the new run")
    if options.origin is not None and journal.exists() and not fresh:
        begun_from = _header(journal).get("from")
        if begun_from is None or _beside(journal, begun_from).resolve() != options.origin.resolve():
            raise UserError(f"{journal} already exists, but did not begin from {options.origin}: use --fresh")
        options.origin = None
    return _run_to_end(problem, journal, options, options.origin, fresh)


def _set_aside(journal: Path) -> None:
    """Rename a journal, unless a run is writing to it."""
    aside = _unused_name(journal)
    with locked(journal):
        journal.rename(aside)
    print(f"the old journal is now {aside}", file=sys.stderr)


def resume_command(options: argparse.Namespace) -> int:
    """Resume the run recorded in a journal, using the problem file named in it."""
    return _run_to_end(problem_of(options.journal), options.journal, options)


def problem_of(journal: Path) -> ProblemFile:
    """Return the problem that the problem file of a journal describes."""
    header = _header(journal)
    if "file" not in header:
        raise UserError(
            f"{journal} belongs to a run from Python: call integrate(..., journal=...) again to continue it"
        )
    return load_problem(_beside(journal, header["file"]))


def integrator_of(problem: ProblemFile, budget: float | None) -> Integrator:
    """Return the integrator of a problem; a ``budget`` from the option ``--budget`` replaces that of the problem."""
    try:
        return problem.integrator(budget)
    except ValueError as error:
        if budget is None:
            raise
        raise UserError(f"--budget: {error}") from error


def _header(journal: Path) -> dict[str, Any]:
    """Return the header of a journal, suppressing warnings: they are issued when the journal is opened later."""
    with collected_warnings():
        return read_journal(journal)[0]


def header_of(problem: ProblemFile, journal: Path) -> dict[str, Any]:
    """Return the entries of a new journal's header besides the problem: its file and the names of the inputs."""
    return {"file": os.path.relpath(problem.path, journal.resolve().parent), "inputs": problem.names}


def _beside(journal: Path, name: str) -> Path:
    """Return the path of a file that a journal names."""
    return Path(journal).resolve().parent / name


def _run_to_end(
    problem: ProblemFile, journal: Path, options: argparse.Namespace, origin: Path | None = None, fresh: bool = False
) -> int:
    """Run a problem, with the values of the journal ``origin`` if there is one, and print the answer.

    For a ``fresh`` run, an existing journal is renamed after everything else has been checked.
    """
    problem.require_functions()
    it = integrator_of(problem, options.budget)
    rules = goal_rules(it.problem.goals)
    progress = None if sys.stderr.isatty() and not options.verbose else LineProgress(options.verbose)
    about = header_of(problem, journal)
    taken: list[Evaluation] = []
    if origin is not None:
        about["from"] = os.path.relpath(origin, journal.resolve().parent)
        taken = taken_evaluations(origin, it, problem.names, options.accept_changes)
        print(f"{len(taken)} values taken from {origin}", file=sys.stderr)
    if fresh:
        _set_aside(journal)
    with terminable() as signals:
        try:
            with executor_for(problem, options) as executor:
                result = run(
                    it,
                    rules,
                    executor=executor,
                    workers=options.workers,
                    journal=journal,
                    progress=progress,
                    about=about,
                    accept_changes=options.accept_changes,
                    taken=taken,
                )
                if problem.certify and is_known(result) and result.stopped != "interrupted":
                    result = _certified(result, problem, journal, executor, options.workers)
        except KeyboardInterrupt:
            if not signals:
                raise
            print(f"amsbq: terminated; continue with: {_resume(problem, journal, it)}", file=sys.stderr)
            return ExitCode.TERMINATED
        except NoResultError as error:
            print(f"amsbq: {error}{_look_at(it, journal)}", file=sys.stderr)
            return ExitCode.FAILED
        except BulkError as error:
            raise UserError(str(error)) from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            if it.in_bulk.made or not it.in_bulk.sources:
                raise
            raise UserError(f"a source cannot be evaluated in bulk: {error_text(error)}") from error
        finally:
            if signals:  # a signal may arrive after a program has started and before it is watched
                GUARDIAN.kill_descendants()
    answered = is_known(result)
    if options.json:
        print(json.dumps(as_json(result)))
    else:
        print(f"\n{result}")
    if answered and not options.json:
        print()
        for finding in result.diagnose():
            if finding.level == "warning":
                print(f"warning: {finding}")
        print(f"look at it with: amsbq report {journal}")
        print(_next_step(problem, journal, it, result.stopped))
    if result.stopped == "interrupted":
        return ExitCode.TERMINATED if signals else ExitCode.INTERRUPTED
    if answered:
        return ExitCode.DONE
    spent = "" if math.isinf(it.budget) else f", with {it.budget - it.spent:.6g} of the budget unspent"
    print(
        f"amsbq: no evaluation of {it.names[0]} was successful, so there is no answer{spent}."
        f"{_look_at(it, journal)} Once this is fixed, continue with: {_resume(problem, journal, it)}",
        file=sys.stderr,
    )
    return ExitCode.FAILED


def _certified(
    result: Result, problem: ProblemFile, journal: Path, executor: ExecutorLike | None, workers: int
) -> Result:
    """Return a result with the certificate for which a share of the budget was reserved."""
    kept, seed = problem.kept(result.budget), problem.described.seed
    return replace(result, certificate=certify(result, kept, seed, executor=executor, workers=workers, journal=journal))


def _resume(problem: ProblemFile, journal: Path, it: Integrator) -> str:
    """Return the command that continues a run with its budget."""
    return f"amsbq resume {journal}" + (
        "" if it.budget == problem.budget else f" --budget {_whole(problem, it.budget)}"
    )


def _whole(problem: ProblemFile, budget: float) -> str:
    """Return the value of ``--budget`` for a run that may spend ``budget``, including the share of its certificate."""
    return f"{budget + problem.kept(budget):.12g}"


def _next_step(problem: ProblemFile, journal: Path, it: Integrator, stopped: StopReason) -> str:
    """Return a message that says how to continue a run that has stopped."""
    if stopped in ("failures", "interrupted"):
        return f"continue with: {_resume(problem, journal, it)}"
    if stopped in CHANGED_FOR_MORE:
        change = f"set a {CHANGED_FOR_MORE[stopped]} in {problem.path}"
        return f"for more, {change} and continue with: {_resume(problem, journal, it)}"
    return f"continue with: amsbq resume {journal} --budget {_whole(problem, 2 * max(it.budget, it.spent))}"


def _look_at(it: Integrator, journal: Path) -> str:
    """Return text that says why the primary source last failed, and how to see its output."""
    failed = [e for e in it.evaluations if e.source == 0 and e.status == "failed"] or it.evaluations
    if not failed:
        return ""
    last = failed[-1]
    return f" Evaluation {last.id} failed: {last.reason}. See its output with: amsbq show {journal} {last.id}."


def executor_for(problem: ProblemFile, options: argparse.Namespace) -> AbstractContextManager[Any]:
    """Return a context with the executor: a Dask client, a process pool, or None for threads of this process."""
    if options.dask is not None:
        try:
            from distributed import Client
            from distributed.comm.addressing import resolve_address
        except ImportError:
            raise ImportError("--dask needs distributed: pip install 'amsbq[dask]'") from None
        try:
            address = resolve_address(options.dask)
        except ValueError as error:  # checked before a Client is made, which may hang when it fails and is collected
            raise UserError(f"--dask takes an address such as tcp://127.0.0.1:8786: {error}") from None
        return closing(Client(address))  # type: ignore[no-untyped-call]
    if problem.needs_processes:
        return ResilientProcessPool(options.workers)
    return nullcontext()


def _unused_name(journal: Path) -> Path:
    """Return the first of run.1.jsonl, run.2.jsonl, ... that does not exist."""
    number = 1
    while (aside := journal.with_name(f"{journal.stem}.{number}{journal.suffix}")).exists():
        number += 1
    return aside


def forecast_command(options: argparse.Namespace) -> int:
    """Print the standard deviation to expect at larger budgets, forecast by the current model."""
    is_problem = options.run.suffix == ".toml"
    path = options.journal or (options.run.with_suffix(".jsonl") if is_problem else options.run)
    with working(f"forecasting the run of {path}"):
        it = _restored_problem(options.run, path) if is_problem else read_result(path).integrator
        if it is None:
            raise UserError(f"{path} does not contain enough for a forecast: pass the problem file instead")
        budget = options.budget or (it.budget if it.spent < it.budget < math.inf else 2 * it.spent)
        try:
            ahead = it.forecast(budget)
        except ValueError as error:
            raise UserError(str(error)) from None
    print(ahead)
    if made := Counter(it.names[choice.source] for choice in ahead.choices):
        print("evaluations ahead:", ", ".join(f"{made[name]} of {name}" for name in it.names if name in made))
    if (end := it.problem.goals.pays_until(ahead)) is not None:
        print(f"with the given error_cost, evaluations pay up to a total cost of {end:.4g}")
    return ExitCode.DONE


def _restored_problem(file: Path, journal: Path) -> Integrator:
    """Return an integrator of a problem file in the state of the run in a journal."""
    problem = load_problem(file)
    if not journal.exists():
        small = "" if math.isinf(problem.budget) else f" --budget {_whole(problem, problem.budget / 2)}"
        raise UserError(
            f"there is no journal {journal} for a forecast: start with a small budget, as in amsbq run {file}{small}"
        )
    it = problem.integrator()
    restore(it, journal, problem.names)
    return it


def demo_command(options: argparse.Namespace) -> int:
    """Print the paper's two-source example."""
    from ..experiments.demonstration import demonstrate

    demonstrate()
    return ExitCode.DONE


def reproduce_command(options: argparse.Namespace) -> int:
    """Run experiments of the paper and print which of its claims hold."""
    from ..experiments.reproduce import EXPERIMENTS, SEEDS, reproduce
    from ..experiments.study import Settings

    unknown = [name for name in options.names if name not in EXPERIMENTS]
    if unknown:
        options.parser.error(f"there is no experiment {unknown[0]!r}; valid names: {', '.join(EXPERIMENTS)}")
    names = list(dict.fromkeys(options.names)) or list(EXPERIMENTS)
    start = time.monotonic()
    found = reproduce(names, options.output, Settings(options.seeds or SEEDS, options.quick), options.workers)
    for name, claims in found.items():
        print(f"\n{name}: {EXPERIMENTS[name].title}")
        for claim in claims:
            print(f"  {CLAIM_MARKS[claim.holds]} {claim.text}\n      {claim.found}")
    failed = sum(claim.holds is False for claims in found.values() for claim in claims)
    print(f"\ntables and figures are in {options.output}/; {time.monotonic() - start:.0f} s")
    if failed:
        few = "; but one seed and a small budget prove nothing" if options.quick else ""
        print(f"{failed} of the claims did not hold{few}")
    return ExitCode.FAILED if failed and not options.quick else ExitCode.DONE


def completion_command(options: argparse.Namespace) -> int:
    """Print a script that lets a shell complete the command line."""
    try:
        import shtab
    except ImportError:
        raise ImportError("completion needs shtab: pip install 'amsbq[completion]'") from None
    print(shtab.complete(options.top_parser, options.shell))
    return ExitCode.DONE
