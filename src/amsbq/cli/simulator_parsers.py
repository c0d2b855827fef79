"""Arguments and help of the commands before a run (init, advise, check) and on single simulations (show and others)."""

from __future__ import annotations

from pathlib import Path

from .arguments import (
    CommandParser,
    Subparsers,
    add_command,
    add_journal,
    add_problem,
    add_values,
    evaluation_number,
    whole_number,
)
from .init import KINDS


def add_init(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq init``."""
    parser = add_command(
        subparsers,
        "init",
        "init",
        "write a problem file to start from",
        """\
Write a commented problem file and an example simulator, to be replaced by
yours. Without --python, --command or --umbridge you are asked a few
questions. Existing files are not overwritten.""",
        """\
examples:
  amsbq init                          asks, and writes problem.toml here
  amsbq init --command mine           a program with an input file, in mine/
  amsbq init --python --inputs rate,dose mine
""",
    )
    parser.add_argument("path", type=Path, nargs="?", default=Path(), help="folder, or name of the problem file")
    kinds = parser.add_mutually_exclusive_group()
    said = ("a Python function", "a program with input and output files", "a model on a UM-Bridge server")
    for kind, text in zip(KINDS, said, strict=True):
        kinds.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind, help=text)
    parser.add_argument("--inputs", metavar="NAMES", help="names of the inputs, separated by commas")
    return parser


def add_check(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq check``."""
    parser = add_command(
        subparsers,
        "check",
        "check",
        "evaluate each source once, before any money is spent",
        """\
Evaluate each source of a problem file once, at the medians of the inputs.
Print the command, its input files, the time, the values, the number of
evaluations that the budget buys, and any errors. Nothing is written to a
journal or charged.""",
        """\
examples:
  amsbq check problem.toml
  amsbq check problem.toml --at rate=1.5,dose=0.2
  amsbq check problem.toml --workers 4    are four at a time faster?
""",
    )
    add_problem(parser)
    parser.add_argument(
        "--at",
        action="append",
        metavar="NAME=VALUE",
        help="location, instead of the median; several separated by commas",
    )
    parser.add_argument(
        "--workers",
        type=whole_number,
        default=1,
        metavar="N",
        help="also evaluate the primary source N times at once, and print how many really run in parallel",
    )
    return parser


def add_advise(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq advise``."""
    parser = add_command(
        subparsers,
        "advise",
        "advise",
        "which method for a problem, and why",
        """\
Print which methods suit the problem in a file, with its inputs, costs and
budget, and when another one would be better. Nothing is evaluated.""",
        "example:\n  amsbq advise problem.toml",
    )
    add_problem(parser)
    return parser


def add_show(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq show``."""
    parser = add_command(
        subparsers,
        "show",
        "revisions",
        "show one evaluation and its output",
        """\
Print the location of an evaluation, its value or why it failed, and the end
of its output. The run may be in progress.""",
        "example:\n  amsbq show problem.jsonl 3",
    )
    return _with_evaluation(parser)


def add_exclude(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq exclude``."""
    parser = add_command(
        subparsers,
        "exclude",
        "revisions",
        "remove a bad value from a run",
        """\
Record in the journal that the value of an evaluation is not used. Its cost
stays charged. The journal must not be in use by a run.""",
        "example:\n  amsbq exclude problem.jsonl 3 --reason 'did not converge'",
    )
    _with_evaluation(parser)
    parser.add_argument("--reason", default="", help="why, for the record")
    return parser


def add_correct(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq correct``."""
    parser = add_command(
        subparsers,
        "correct",
        "revisions",
        "replace a value of a run",
        """\
Record another value of an evaluation in the journal. This can also supply the
value of a failed evaluation. The journal must not be in use by a run.""",
        """\
examples:
  amsbq correct problem.jsonl 3 1.62
  amsbq correct problem.jsonl 3 peak=1.62 time=12
""",
    )
    _with_evaluation(parser)
    add_values(parser, "the correct value", "+")
    return parser


def _with_evaluation(parser: CommandParser) -> CommandParser:
    add_journal(parser)
    parser.add_argument(
        "id", type=evaluation_number, metavar="ID", help="number of the evaluation, as shown by report --text"
    )
    return parser
