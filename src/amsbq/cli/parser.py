"""parser."""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path
from typing import Any

from .. import __version__
from .commands import DONE, _demo, _forecast, _report, _reproduce, _resume, _run, _status

EXAMPLES = """examples:
  amsbq run problem.toml                  evaluate, with progress, until the budget is spent
  amsbq run problem.toml --workers 4      four evaluations at a time
  amsbq run problem.toml --json > a.json  for other programs
  amsbq resume problem.jsonl              go on after a crash, or with --budget 20
  amsbq status problem.jsonl              where a run is, while it runs
  amsbq report problem.jsonl              a page with pictures and diagnostics, to look at or to mail
"""


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
        _demo,
        "integrate the paper's two-source example",
        "Integrate the Forrester function over [0, 1] from three observations of it and five of a cheap relative: the\n"
        "starting point of the paper's Figure 3. Takes a second, writes nothing.",
    )


def _add_reproduce(commands: Any) -> None:
    parser = _add(
        commands,
        "reproduce",
        _reproduce,
        "the paper's experiments, with the default model beside the paper's",
        "Run experiments of the paper; without a name, all of them. Each writes its tables (CSV), its figures (PNG,\n"
        "PDF) and what became of the paper's claims into a folder of its own.",
        "examples:\n"
        "  amsbq reproduce --quick            everything in two minutes, with one seed and small budgets\n"
        "  amsbq reproduce wiggly --seeds 20  one experiment, with more seeds",
    )
    # The list of experiments is made when help is wanted: importing them takes longer than most commands.
    plain_help = parser.format_help
    setattr(parser, "format_help", lambda: plain_help() + _experiments())  # noqa: B010
    parser.add_argument("names", nargs="*", metavar="NAME", help="one or more of the experiments below")
    parser.add_argument("--quick", action="store_true", help="one seed and small budgets: to see that it works")
    parser.add_argument("--seeds", type=_count, help="for medians and quartiles (default: 5)")
    parser.add_argument("--output", type=Path, default=Path("reproduction"), help="a folder (default: %(default)s)")
    parser.add_argument("--workers", type=_count, default=os.cpu_count() or 1, help="processes (default: the cores)")


def _experiments() -> str:
    from ..experiments.reproduce import EXPERIMENTS

    listed = (f"  {name:10} {experiment.title}\n" for name, experiment in EXPERIMENTS.items())
    return "\nexperiments:\n" + "".join(listed)


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


def _completion(options: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise ImportError("completion needs shtab: pip install 'amsbq[completion]'") from None
    print(shtab.complete(_parser(), options.shell))
    return DONE
