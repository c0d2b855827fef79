"""Arguments and help of the command line."""

from __future__ import annotations

import argparse
import os
from functools import cache
from pathlib import Path

from .. import __version__
from .arguments import CommandParser, Subparsers, add_command, add_journal, add_problem, positive, whole_number
from .certify_parser import add_certify
from .detached_parsers import add_ask, add_tell
from .simulator_parsers import add_advise, add_check, add_correct, add_exclude, add_init, add_show
from .viewing_parsers import add_compare, add_report, add_status, add_watch

DESCRIPTION = """\
Estimate the expected output of an expensive simulator, with an honest error
bar, from a few of its evaluations and many of cheaper approximations."""

EXAMPLES = """\
a first session:
  amsbq demo                               a run on the paper's example
  amsbq init --python .                    a problem file to start from
  amsbq advise problem.toml                is this the right method for it?
  amsbq check problem.toml                 each source once, nothing charged
  amsbq run problem.toml --budget 3        a small budget first
  amsbq forecast problem.toml --budget 20  the error to expect for more
  amsbq resume problem.jsonl --budget 20   continue the same run
  amsbq report problem.jsonl               a page with figures and diagnostics

more:
  amsbq status problem.jsonl               the state of a run, while it runs
  amsbq watch problem.jsonl                follow it on a live page
  amsbq certify problem.jsonl --budget 5   an estimate without the model
  amsbq ask problem.toml --n 4             what to evaluate elsewhere
  !  amsbq tell problem.jsonl 0 1.62          and its value
  amsbq run problem.toml --workers 4       four evaluations at a time
  amsbq run problem.toml --json > a.json   the answer for other programs

exit codes: 0 done, 1 the run failed, 2 the input is invalid, 130 interrupted,
143 terminated
"""

PROBLEM_FILE = """\
budget = 10.0                   # in units of cost
[inputs]                        # distributions of scipy.stats, or bounds
rate = { distribution = "gamma", a = 5, scale = 4 }
dose = { low = 0.0, high = 1.0 }
[[sources]]                     # the primary source comes first
name = "fine"
python = "simulators:fine"      # simulators.py, next to the problem file
[[sources]]
name = "coarse"
command = ["./coarse", "{rate}", "{dose}"]  # prints a number
cost = 0.01
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    return build_parsers()["amsbq"]


@cache
def build_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the command line and of each command, by what a user types: "amsbq", "amsbq run"..."""
    top = CommandParser(
        prog="amsbq",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=DESCRIPTION,
        epilog=EXAMPLES,
    )
    top.add_argument("--version", action="version", version=f"amsbq {__version__}")
    top.set_defaults(top_parser=top)
    subparsers = top.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=CommandParser)
    added = [
        add_init(subparsers),
        add_advise(subparsers),
        add_check(subparsers),
        _add_run(subparsers),
        _add_resume(subparsers),
        add_ask(subparsers),
        add_tell(subparsers),
        add_status(subparsers),
        add_report(subparsers),
        add_watch(subparsers),
        add_compare(subparsers),
        _add_forecast(subparsers),
        add_certify(subparsers),
        add_show(subparsers),
        add_exclude(subparsers),
        add_correct(subparsers),
        _add_doctor(subparsers),
        _add_demo(subparsers),
        _add_reproduce(subparsers),
        _add_completion(subparsers),
    ]
    return {parser.prog: parser for parser in (top, *added)}


def _add_run(subparsers: Subparsers) -> CommandParser:
    indented = "".join(f"  {line}\n" for line in PROBLEM_FILE.splitlines())
    parser = add_command(
        subparsers,
        "run",
        "commands",
        "run a problem file, or continue its run",
        """\
Evaluate the sources of a problem file until its budget is used up, its
tolerance is reached, or nothing left is worth its cost. Every event is written
to a journal, by default next to the problem file (problem.jsonl); if it already
exists, the run continues from it. Interrupt once to stop after the running
evaluations, twice to stop immediately: finished evaluations are never lost.""",
        f"""\
a problem file:
{indented}
examples:
  amsbq run problem.toml                   progress on standard error
  amsbq run problem.toml --workers 4 -v    four at a time, each one shown
""",
    )
    add_problem(parser)
    parser.add_argument("--journal", type=Path, metavar="PATH", help="journal file (default: next to the problem file)")
    parser.add_argument("--fresh", action="store_true", help="rename an old journal and start again")
    parser.add_argument(
        "--from", dest="origin", type=Path, metavar="OLD.jsonl", help="start from the values of another run's journal"
    )
    _add_run_options(parser)
    return parser


def _add_resume(subparsers: Subparsers) -> CommandParser:
    parser = add_command(
        subparsers,
        "resume",
        "commands",
        "continue a run",
        """\
Resume the run recorded in a journal, using the problem file named in it, as if
it had never stopped: after a crash, an interrupt or a reboot. A larger --budget
extends a finished run.""",
        "example:\n  amsbq resume problem.jsonl --budget 20",
    )
    add_journal(parser)
    _add_run_options(parser)
    return parser


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--budget", type=positive, metavar="B", help="replaces the budget of the problem file")
    parser.add_argument(
        "--workers", type=whole_number, default=1, metavar="N", help="evaluations at a time (default: 1)"
    )
    parser.add_argument("--dask", metavar="ADDRESS", help="evaluate on a Dask cluster, such as tcp://127.0.0.1:8786")
    parser.add_argument("--json", action="store_true", help="print the answer as one JSON object")
    parser.add_argument("--accept-changes", action="store_true", help="continue although the problem has changed")
    parser.add_argument("-v", "--verbose", action="store_true", help="show every evaluation")


def _add_forecast(subparsers: Subparsers) -> CommandParser:
    parser = add_command(
        subparsers,
        "forecast",
        "commands",
        "the error to expect for a larger budget",
        """\
Print the standard deviation to expect once a budget is spent, forecast by the
current model of the run. The run may be in progress.""",
        "example:\n  amsbq run problem.toml --budget 3 && amsbq forecast problem.toml --budget 20",
    )
    parser.add_argument("run", type=Path, metavar="problem.toml|run.jsonl", help="problem file or journal of the run")
    parser.add_argument("--journal", type=Path, metavar="PATH", help="journal file (default: next to the problem file)")
    parser.add_argument(
        "--budget",
        type=positive,
        metavar="B",
        help="total cost (default: the budget of the run, or twice its cost so far)",
    )
    return parser


def _add_doctor(subparsers: Subparsers) -> CommandParser:
    return add_command(
        subparsers,
        "doctor",
        "doctor",
        "what is installed, and what is missing",
        """\
Print the versions of everything that amsbq uses, the extras that are missing,
and the number of threads of linear algebra: for a check before a long run, and
for bug reports.""",
        "example:\n  amsbq doctor",
    )


def _add_demo(subparsers: Subparsers) -> CommandParser:
    return add_command(
        subparsers,
        "demo",
        "commands",
        "the paper's two-source example",
        """\
Integrate the Forrester function over [0, 1] with a cheap approximation:
from the starting data of the paper's Figure 3, and by a run that chooses
its evaluations. Takes a few seconds and writes no files.""",
        "example:\n  amsbq demo",
    )


def _add_reproduce(subparsers: Subparsers) -> CommandParser:
    parser = add_command(
        subparsers,
        "reproduce",
        "commands",
        "the paper's experiments, and whether its claims hold",
        """\
Run experiments of the paper with its model and the default model; all of them
if no name is given. Each writes its tables (CSV), its figures (PNG, PDF)
and which of the paper's claims hold into a separate folder.""",
        """\
examples:
  amsbq reproduce --quick            everything, one seed, small budgets
  amsbq reproduce wiggly --seeds 20  one experiment, with more seeds
""",
    )
    parser.appendix = _experiment_list
    parser.add_argument("names", nargs="*", metavar="NAME", help="one or more of the experiments below")
    parser.add_argument("--quick", action="store_true", help="one seed and small budgets, as a test")
    parser.add_argument("--seeds", type=whole_number, help="number of seeds, for medians and quartiles (default: 5)")
    parser.add_argument("--output", type=Path, default=Path("reproduction"), help="folder (default: %(default)s)")
    parser.add_argument(
        "--workers", type=whole_number, default=os.cpu_count() or 1, help="processes (default: the number of cores)"
    )
    return parser


def _experiment_list() -> str:
    from ..experiments.reproduce import EXPERIMENTS  # slower to import than most commands are to run

    return "experiments:\n" + "".join(f"  {name:10} {each.title}\n" for name, each in EXPERIMENTS.items())


def _add_completion(subparsers: Subparsers) -> CommandParser:
    parser = add_command(
        subparsers,
        "completion",
        "commands",
        "completion for a shell",
        "Print a script that lets a shell complete this command line.",
        'example, in ~/.bashrc:\n  eval "$(amsbq completion bash)"',
    )
    parser.add_argument("shell", choices=["bash", "zsh", "tcsh"])
    return parser
