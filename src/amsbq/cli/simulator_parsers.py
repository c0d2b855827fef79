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
        "a problem file to begin with",
        """\
Write a commented problem file, and a simulator that it runs, to be replaced
by yours. Without --python, --command or --umbridge you are asked a few
questions. Nothing that exists is overwritten.""",
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
    parser.add_argument("--inputs", metavar="NAMES", help="names of the inputs, with commas between them")
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
Print the command, the input files that are made for it, how long it took,
the values that were found, what a budget buys, and what is wrong. Nothing is
journaled or charged.""",
        """\
examples:
  amsbq check problem.toml
  amsbq check problem.toml --at rate=1.5,dose=0.2
  amsbq check problem.toml --workers 4    do four at a time gain anything?
""",
    )
    add_problem(parser)
    parser.add_argument(
        "--at", action="append", metavar="NAME=VALUE", help="where, instead of the median; several with commas"
    )
    parser.add_argument(
        "--workers",
        type=whole_number,
        default=1,
        metavar="N",
        help="also evaluate the primary source N times at once, and tell how many really run at a time",
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
Print which method fits a problem file, this one or another, by its inputs,
its costs and its budget, and when another one would be better. Nothing is
evaluated.""",
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
        "one evaluation, and what it printed",
        """\
Print where a source was evaluated, what was found or why it failed, and the
ends of what it printed. The run may be in progress.""",
        "example:\n  amsbq show problem.jsonl 3",
    )
    return _with_evaluation(parser)


def add_exclude(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq exclude``."""
    parser = add_command(
        subparsers,
        "exclude",
        "revisions",
        "take a bad value out of a run",
        """\
Write into the journal that the value of an evaluation does not count. It
stays paid for. The journal must not be in use by a run.""",
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
Write another value of an evaluation into the journal. An evaluation that has
failed gets a value in this way. The journal must not be in use by a run.""",
        """\
examples:
  amsbq correct problem.jsonl 3 1.62
  amsbq correct problem.jsonl 3 peak=1.62 time=12
""",
    )
    _with_evaluation(parser)
    add_values(parser, "the right value", "+")
    return parser


def _with_evaluation(parser: CommandParser) -> CommandParser:
    add_journal(parser)
    parser.add_argument(
        "id", type=evaluation_number, metavar="ID", help="number of the evaluation, as report --text shows it"
    )
    return parser
