"""Arguments and help of the commands that show runs: status, report, watch and compare."""

from __future__ import annotations

from pathlib import Path

from .arguments import CommandParser, Subparsers, add_command, add_journal, journal_path, positive


def add_status(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq status``."""
    parser = add_command(
        subparsers,
        "status",
        "status",
        "the state of a run",
        """\
Print the estimate so far, the cost so far, and the number of evaluations of
each source. The run may be in progress: nothing is locked or changed.""",
        "example:\n  amsbq status problem.jsonl",
    )
    add_journal(parser)
    parser.add_argument("--json", action="store_true", help="print it as one JSON object")
    return parser


def add_report(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq report``."""
    parser = add_command(
        subparsers,
        "report",
        "viewing",
        "a page that shows a run",
        """\
Write one HTML file that shows a run: the answer, whether to trust it,
figures, and every evaluation. It needs no network and can be mailed. The
run may be in progress: nothing is locked or changed.""",
        """\
examples:
  amsbq report run.jsonl           write run.html
  amsbq report run.jsonl --watch   write it again while the run continues:
                                   keep it open in a browser
  amsbq report run.jsonl --text    print a table instead
  amsbq report run.jsonl --full    figures that can be zoomed and saved, in 5 MB
  amsbq report run.jsonl --under heavier.toml    what if the inputs were these?
""",
    )
    add_journal(parser)
    parser.add_argument("--output", type=Path, metavar="PATH", help="HTML file (default: next to the journal)")
    parser.add_argument("--of", metavar="NAME", help="the only output to show, if there are several (default: all)")
    parser.add_argument("--watch", action="store_true", help="write it again while the run continues")
    parser.add_argument(
        "--every",
        type=positive,
        default=5.0,
        metavar="S",
        help="seconds between updates, with --watch (default: %(default)g)",
    )
    parser.add_argument("--full", action="store_true", help="figures by Plotly, which can be zoomed and saved (5 MB)")
    parser.add_argument("--text", action="store_true", help="print the evaluations as a table")
    parser.add_argument(
        "--under",
        type=Path,
        action="append",
        default=[],
        metavar="other.toml",
        help="also show the mean under the [inputs] of another file: what if they were these?",
    )
    return parser


def add_watch(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq watch``."""
    parser = add_command(
        subparsers,
        "watch",
        "viewing",
        "follow a run on a live page",
        """\
Serve the page of a run to browsers on this machine, and update it within a
second or two as the run continues; zoom and choices are kept. The page is
read-only and served only at the printed address, which changes each time.
From another machine: ssh -L PORT:127.0.0.1:PORT, with --port PORT.""",
        "example:\n  amsbq watch problem.jsonl",
    )
    add_journal(parser)
    parser.add_argument("--port", type=int, default=0, metavar="PORT", help="port (default: any free one)")
    return parser


def add_compare(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq compare``."""
    parser = add_command(
        subparsers,
        "compare",
        "viewing",
        "several runs side by side",
        """\
Print estimates, error bars, costs and numbers of evaluations of several runs
in one table, and draw estimates and error bars against cost in one figure.""",
        "example:\n  amsbq compare with.jsonl without.jsonl --output both.png",
    )
    parser.add_argument("journals", type=journal_path, nargs="+", metavar="run.jsonl", help="journals of the runs")
    parser.add_argument(
        "--output", type=Path, default=Path("comparison.png"), metavar="PATH", help="picture (default: %(default)s)"
    )
    return parser
