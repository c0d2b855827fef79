"""The command line."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from pathlib import Path
from typing import Any

from . import __version__
from .config import Problem, ProblemError, load_problem
from .executors import SteadyPool
from .experiments.demonstration import demonstrate
from .experiments.reproduce import EXPERIMENTS, SEEDS, reproduce
from .experiments.study import Settings
from .journal import JournalError, read_journal
from .progress import Lines
from .recall import read_result
from .replay import bring_to_its_end
from .report import report
from .runner import run
from .stopping import tolerance
from .summary import as_json, state, state_text, table

DONE, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130
MARKS = {True: "✓", False: "✗", None: "–"}  #: of claims that hold, that do not, and that only the paper makes

EXAMPLES = """examples:
  amsbq run problem.toml                  evaluate, with progress, until the budget is spent
  amsbq run problem.toml --workers 4      four evaluations at a time
  amsbq run problem.toml --json > a.json  for other programs
  amsbq resume problem.jsonl              go on after a crash, or with --budget 20
  amsbq status problem.jsonl              where a run is, while it runs
  amsbq report problem.jsonl              a page with pictures and diagnostics, to look at or to mail
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    warnings.showwarning = lambda message, *rest, **more: print(f"amsbq: {message}", file=sys.stderr)
    try:
        code: int = options.run(options)
    except (ProblemError, JournalError, UserError) as error:
        print(f"amsbq: {error}" if not isinstance(error, ProblemError) else error, file=sys.stderr)
        return WRONG
    except (ImportError, OSError, RuntimeError) as error:
        print(f"amsbq: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("amsbq: interrupted before anything was evaluated", file=sys.stderr)
        return INTERRUPTED
    return code


class UserError(Exception):
    """Something that the user asked for and that cannot be done."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amsbq",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Expected outputs of expensive simulators, with honest error bars, from cheaper approximations.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--version", action="version", version=f"amsbq {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in (
        _add_run,
        _add_resume,
        _add_status,
        _add_report,
        _add_forecast,
        _add_demo,
        _add_reproduce,
        _add_completion,
    ):
        add(commands)
    return parser


def _add(commands: Any, name: str, run: Any, help: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run, parser=parser)
    return parser


def _add_running(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--budget", type=_positive, metavar="B", help="instead of the one in the problem file")
    parser.add_argument("--workers", type=_count, default=1, metavar="N", help="evaluations at the same time")
    parser.add_argument("--dask", metavar="ADDRESS", help="of a Dask scheduler, such as tcp://127.0.0.1:8786")
    parser.add_argument("--json", action="store_true", help="print the answer as one JSON object")
    parser.add_argument("-v", "--verbose", action="store_true", help="show every evaluation")


def _add_run(commands: Any) -> None:
    parser = _add(
        commands,
        "run",
        _run,
        "run a problem file, or go on with it",
        "Evaluate the sources of a problem file until its budget is spent, its tolerance reached, or nothing is left\n"
        "to learn. Everything that happens is written to a journal, by default beside the problem file\n"
        "(problem.jsonl); where there is one already, the run goes on from it. Interrupt once to stop after what is\n"
        "running, twice to stop now: nothing that was evaluated is lost.",
        "example:\n  amsbq run problem.toml --workers 4",
    )
    parser.add_argument("problem", type=Path, metavar="problem.toml")
    parser.add_argument("--journal", type=Path, metavar="PATH", help="where to write it")
    parser.add_argument("--fresh", action="store_true", help="set an old journal aside and begin again")
    _add_running(parser)


def _add_resume(commands: Any) -> None:
    parser = _add(
        commands,
        "resume",
        _resume,
        "go on with a run",
        "Go on with the run that a journal is of, as if it had never stopped. A larger --budget lets it go further.",
        "example:\n  amsbq resume problem.jsonl --budget 20",
    )
    parser.add_argument("journal", type=Path, metavar="run.jsonl")
    _add_running(parser)


def _add_status(commands: Any) -> None:
    parser = _add(
        commands,
        "status",
        _status,
        "where a run is",
        "What a journal tells of its run so far. The run may be in progress: nothing is locked or changed.",
    )
    parser.add_argument("journal", type=Path, metavar="run.jsonl")
    parser.add_argument("--json", action="store_true", help="print it as one JSON object")


def _add_report(commands: Any) -> None:
    parser = _add(
        commands,
        "report",
        _report,
        "a page that shows a run",
        "Write one HTML file that shows a run: the answer, whether to believe it, pictures to look into, and every\n"
        "evaluation. It needs no network, and can be mailed. The run may be in progress: nothing is locked or changed.",
        "examples:\n"
        "  amsbq report run.jsonl             writes run.html\n"
        "  amsbq report run.jsonl --watch     writes it again while the run goes on: keep it open in a browser\n"
        "  amsbq report run.jsonl --text      a table on the terminal instead",
    )
    parser.add_argument("journal", type=Path, metavar="run.jsonl")
    parser.add_argument("--output", type=Path, metavar="PATH", help="where to write it (default: beside the journal)")
    parser.add_argument("--watch", action="store_true", help="go on until the run has stopped; interrupt to leave")
    parser.add_argument("--every", type=_positive, default=5.0, metavar="S", help="seconds (default: %(default)g)")
    parser.add_argument("--text", action="store_true", help="print the evaluations as a table")


def _add_forecast(commands: Any) -> None:
    parser = _add(
        commands,
        "forecast",
        _forecast,
        "what error to expect for more money",
        "The standard deviation to expect if a budget were spent, by what a run has learned so far. The run may be in\n"
        "progress.",
        "example:\n  amsbq run problem.toml --budget 3 && amsbq forecast problem.toml --budget 20",
    )
    parser.add_argument("problem", type=Path, metavar="problem.toml")
    parser.add_argument("--journal", type=Path, metavar="PATH", help="of its run, if it is not beside the problem file")
    parser.add_argument("--budget", type=_positive, metavar="B", help="in total (default: that of the problem file)")


def _add_demo(commands: Any) -> None:
    _add(
        commands,
        "demo",
        lambda options: demonstrate(),
        "integrate the paper's two-source example",
        "Integrate the Forrester function over [0, 1] from three observations of it and five of a cheap relative: the\n"
        "starting point of the paper's Figure 3. Takes a second, writes nothing.",
    )


def _add_reproduce(commands: Any) -> None:
    listed = "\n".join(f"  {name:10} {experiment.title}" for name, experiment in EXPERIMENTS.items())
    parser = _add(
        commands,
        "reproduce",
        _reproduce,
        "the paper's experiments, with the default model beside the paper's",
        "Run experiments of the paper; without a name, all of them. Each writes its tables (CSV), its figures (PNG,\n"
        "PDF) and what became of the paper's claims into a folder of its own.\n\nexperiments:\n" + listed,
        "examples:\n"
        "  amsbq reproduce --quick            everything in two minutes, with one seed and small budgets\n"
        "  amsbq reproduce wiggly --seeds 20  one experiment, with more seeds",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="one or more of the experiments above")
    parser.add_argument("--quick", action="store_true", help="one seed and small budgets: to see that it works")
    parser.add_argument("--seeds", type=_count, default=SEEDS, help="for medians and quartiles (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=Path("reproduction"), help="a folder (default: %(default)s)")
    parser.add_argument("--workers", type=_count, default=os.cpu_count() or 1, help="processes (default: the cores)")


def _add_completion(commands: Any) -> None:
    parser = _add(
        commands,
        "completion",
        _completion,
        "completion for a shell",
        "Print a script that completes this command line.",
        'example, in ~/.bashrc:\n  eval "$(amsbq completion bash)"',
    )
    parser.add_argument("shell", choices=["bash", "zsh", "tcsh"])


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, at least 1, got {text!r}")
    return number


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")
    return number


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
    progress = None if sys.stderr.isatty() and not options.verbose else Lines(options.verbose)
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


def _reproduce(options: argparse.Namespace) -> int:
    unknown = [name for name in options.names if name not in EXPERIMENTS]
    if unknown:
        options.parser.error(f"there is no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}")
    names = list(dict.fromkeys(options.names)) or list(EXPERIMENTS)
    start = time.monotonic()
    found = reproduce(names, options.output, Settings(options.seeds, options.quick), options.workers)
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


def _completion(options: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise ImportError("completion needs shtab: pip install 'amsbq[completion]'") from None
    print(shtab.complete(_parser(), options.shell))
    return DONE
