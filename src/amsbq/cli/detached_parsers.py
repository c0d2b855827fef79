"""Arguments and help of ``amsbq ask`` and ``amsbq tell``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from .arguments import (
    CommandParser,
    Subparsers,
    add_command,
    add_journal,
    add_values,
    evaluation_number,
    positive,
    whole_number,
)


def add_ask(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq ask``."""
    parser = add_command(
        subparsers,
        "ask",
        "detached",
        "what to evaluate next, elsewhere",
        """\
Choose the next evaluations of a run, and print one line of JSON for each: its
id, source, inputs and expected cost. They are written to the journal first;
nothing is evaluated, and no process keeps running. Pass the results to amsbq
tell, at any time and from any host.""",
        """\
examples:
  amsbq ask problem.toml --n 4                     begins problem.jsonl
  amsbq ask problem.jsonl --n 4                    the next four
  amsbq ask problem.jsonl --pending                those without an answer
  amsbq ask problem.jsonl --template job.sh        writes jobs/job-7.sh, with
                 {id}, {source}, {journal} and the inputs by name filled in
""",
    )
    parser.add_argument("run", type=Path, metavar="problem.toml|run.jsonl", help="problem file or journal of the run")
    parser.add_argument("--n", type=whole_number, default=1, metavar="N", help="how many, chosen jointly (default: 1)")
    parser.add_argument("--pending", action="store_true", help="print the queries that have no answer yet")
    parser.add_argument("--template", type=Path, metavar="JOB", help="write a job file for each, instead of JSON")
    parser.add_argument(
        "--into", type=Path, metavar="FOLDER", help="folder of the job files (default: jobs/, next to the journal)"
    )
    parser.add_argument("--journal", type=Path, metavar="PATH", help="journal file (default: next to the problem file)")
    parser.add_argument("--budget", type=positive, metavar="B", help="replaces the budget of the problem file")
    parser.add_argument("--retry", action="store_true", help="also ask for sources that have failed repeatedly")
    parser.add_argument("--accept-changes", action="store_true", help="continue although the problem has changed")
    _add_wait(parser)
    return parser


def add_tell(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq tell``."""
    parser = add_command(
        subparsers,
        "tell",
        "detached",
        "the value of a query that was evaluated elsewhere",
        """\
Write the value of a query, or why it has none, to the journal. Only the
journal is needed, and several hosts may do so at the same time. A table has
the columns id and value, and optionally variance, cost and reason; with several
outputs it has value.NAME, and optionally variance.NAME, for each. Answers that
are already in the journal are skipped, so a growing table can be passed again.""",
        """\
examples:
  amsbq tell problem.jsonl 7 1.62
  amsbq tell problem.jsonl 7 1.62 12               several outputs, in order
  amsbq tell problem.jsonl 7 peak=1.62 time=nan    by name; time is missing
  amsbq tell problem.jsonl 8 --failed 'did not converge'
  amsbq tell problem.jsonl --from results.csv
""",
    )
    add_journal(parser)
    parser.add_argument(
        "id", type=evaluation_number, nargs="?", metavar="ID", help="number of the query, as printed by ask"
    )
    add_values(parser, "value of the source", "*")
    parser.add_argument("--cost", type=float, metavar="C", help="its cost (default: the expected one)")
    parser.add_argument(
        "--gradient",
        type=_gradient,
        metavar="JSON",
        help="derivatives of the value with respect to each input, as in '[0.5, -1.2]'",
    )
    parser.add_argument("--failed", metavar="REASON", help="why there is no value")
    parser.add_argument("--from", dest="table", type=Path, metavar="TABLE.csv", help="answers in a table")
    _add_wait(parser)
    return parser


def _gradient(text: str) -> Any:
    """Return the derivatives in a JSON text: a list of numbers, a list of lists, or a dictionary of lists."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list | dict):
        raise argparse.ArgumentTypeError(f"must be a list such as '[0.5, -1.2]', got {text!r}")
    return found


def _add_wait(parser: CommandParser) -> None:
    parser.add_argument(
        "--wait",
        type=positive,
        default=300.0,
        metavar="S",
        help="seconds to wait for other writers (default: %(default)g)",
    )
