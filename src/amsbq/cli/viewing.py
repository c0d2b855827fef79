"""``amsbq status``, ``report``, ``watch`` and ``compare``: runs to look at, in progress or not."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..execution.progress import working
from ..execution.reader import read_result
from ..measures.base import Measure
from ..problems.problem_file import load_inputs
from ..results.result import Result
from ..results.summary import comparison, of_each_output, state, state_text, table
from ..visualization.comparison import compare
from ..visualization.live import LiveContent, PageServer
from ..visualization.output_curves import what_if_rows
from ..visualization.report import report
from .arguments import CommandParser, Subparsers, add_command, add_journal, journal_path, positive
from .commands import ExitCode, UserError

#: outputs of a run that are drawn in a comparison: as many rows of panels fit on two pages
MOST_DRAWN = 6


def status_command(options: argparse.Namespace) -> int:
    """Print the state of a run in a few lines, or as JSON."""
    now = state(read_result(options.journal, model=False))
    print(json.dumps(now) if options.json else state_text(now))
    return ExitCode.DONE


def report_command(options: argparse.Namespace) -> int:
    """Write the HTML page of a run, once or whenever its journal grows; or print a table of its evaluations."""
    journal = options.journal
    if options.text:
        result = read_result(journal, model=bool(options.under))
        rows = what_if_rows(_shown(result, options.of), _others(result, options.under))
        print("\n".join([*table(result), *(f"{name}: {value}" for name, value in rows)]))
        return ExitCode.DONE
    output = options.output or journal.with_suffix(".html")
    if not output.name or output.is_dir():
        raise UserError(f"--output must be the name of a file, got {output}")
    if not options.watch:
        with working(f"making the page of {journal}"):
            result = read_result(journal)
            written = report(_shown(result, options.of), output, under=_others(result, options.under))
        print(f"wrote {written}")
        return ExitCode.DONE
    print(f"watching {journal}: open {output} in a browser; interrupt to leave", file=sys.stderr)
    with suppress(KeyboardInterrupt):
        _watch(journal, output, options.every, options.of)
    print(f"wrote {output}" if output.exists() else "nothing was written: there was no journal")
    return ExitCode.DONE


def _shown(result: Result, of: str | None) -> Result:
    """Return the result of the output that the user wants to see, if there are several."""
    if of is None:
        return result
    try:
        return result[of]
    except KeyError as error:
        raise UserError(f"--of: {error.args[0]}") from None


def _others(result: Result, paths: Sequence[Path]) -> dict[str, Measure]:
    """Return other distributions of the inputs of a run, by the names of the files that have them."""
    found = {}
    for path in paths:
        names, measure = load_inputs(path)
        if names != list(result.inputs):
            raise UserError(f"--under {path}: its inputs are {', '.join(names)}, those of the run {result.inputs}")
        found[path.stem] = measure
    return found


def _watch(journal: Path, output: Path, every: float, of: str | None) -> None:
    """Write the page again whenever the journal has grown, until its run has stopped; ``every`` is in seconds."""
    size = -1
    while True:
        now = journal.stat().st_size if journal.exists() else 0
        if now != size and now and b"\n" in journal.read_bytes():
            size = now
            result = read_result(journal)
            report(_shown(result, of), output, refresh=every)
            if result.stopped:
                return
        time.sleep(every)


def watch_command(options: argparse.Namespace) -> int:
    """Serve the page of a run on this machine, and renew it as the journal grows, until the user interrupts."""
    with LiveContent(options.journal) as live:
        try:
            server = PageServer(live, options.port)
        except OSError as error:
            raise UserError(f"port {options.port} cannot be used: {error.strerror or error}") from None
        with server, suppress(KeyboardInterrupt):
            print(f"the page of {options.journal}: {server.address}", flush=True)
            print("whoever has this address can look at the run; interrupt to leave", file=sys.stderr, flush=True)
            server.serve_forever()
    if live.busy:  # at the end of the interpreter, a thread would be ended in compiled code, which aborts the process
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ExitCode.DONE)
    return ExitCode.DONE


def compare_command(options: argparse.Namespace) -> int:
    """Print a table of several runs, and draw them in one picture."""
    runs = _named_results(options.journals)
    print("\n".join(comparison(dict(of_each_output(runs)))))
    figure = compare(_drawn(runs))
    try:
        figure.savefig(options.output, dpi=150)
    except ValueError as error:  # of an unknown kind of picture
        raise UserError(f"--output: {error}") from None
    print(f"wrote {options.output}", file=sys.stderr)
    return ExitCode.DONE


def _drawn(runs: dict[str, Result]) -> dict[str, Result]:
    """Return the runs for a picture: of many outputs, of which it would have no end, that furthest from its goal."""
    return {
        name: result.furthest() if len(result.outputs or ()) > MOST_DRAWN else result for name, result in runs.items()
    }


def _named_results(journals: list[Path]) -> dict[str, Result]:
    """Return the results of journals by the names of their files, with as much of their paths as tells them apart."""
    journals = list(dict.fromkeys(journal.resolve() for journal in journals))  # one that is given twice is one
    paths = [journal.with_suffix("").parts for journal in journals]
    longest = max(len(parts) for parts in paths)
    kept = next((n for n in range(1, longest) if len({parts[-n:] for parts in paths}) == len(paths)), longest)
    names = ["/".join(parts[-kept:]) for parts in paths]
    return {name: read_result(journal, model=False) for name, journal in zip(names, journals, strict=True)}


def add_status(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq status``."""
    parser = add_command(
        subparsers,
        "status",
        status_command,
        "the state of a run",
        """\
Print the estimate so far, what was spent, and how many evaluations of each
source were made. The run may be in progress: nothing is locked or changed.""",
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
        report_command,
        "a page that shows a run",
        """\
Write one HTML file that shows a run: the answer, whether to trust it,
interactive figures, and every evaluation. It needs no network and can be
mailed. The run may be in progress: nothing is locked or changed.""",
        """\
examples:
  amsbq report run.jsonl           write run.html
  amsbq report run.jsonl --watch   write it again while the run continues:
                                   keep it open in a browser
  amsbq report run.jsonl --text    print a table instead
  amsbq report run.jsonl --under heavier.toml    what if the inputs were these?
""",
    )
    add_journal(parser)
    parser.add_argument("--output", type=Path, metavar="PATH", help="HTML file (default: beside the journal)")
    parser.add_argument("--of", metavar="NAME", help="of several outputs: the only one to show (default: all)")
    parser.add_argument("--watch", action="store_true", help="write it again while the run continues")
    parser.add_argument(
        "--every", type=positive, default=5.0, metavar="S", help="seconds, for --watch (default: %(default)g)"
    )
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
        watch_command,
        "the page of a run, as it goes on",
        """\
Serve the page of a run to browsers on this machine, and renew it within a
second or two as the run goes on; zoom and choices are kept. Nothing can be
changed through it, and the address, which is another one each time, is
needed. From elsewhere: ssh -L PORT:127.0.0.1:PORT, with --port PORT.""",
        "example:\n  amsbq watch problem.jsonl",
    )
    add_journal(parser)
    parser.add_argument("--port", type=int, default=0, metavar="PORT", help="(default: any that is free)")
    return parser


def add_compare(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq compare``."""
    parser = add_command(
        subparsers,
        "compare",
        compare_command,
        "several runs side by side",
        """\
Print estimates, error bars, costs and numbers of evaluations of several runs
in one table, and draw estimates and error bars against cost in one picture.""",
        "example:\n  amsbq compare with.jsonl without.jsonl --output both.png",
    )
    parser.add_argument("journals", type=journal_path, nargs="+", metavar="run.jsonl", help="journals of the runs")
    parser.add_argument(
        "--output", type=Path, default=Path("comparison.png"), metavar="PATH", help="picture (default: %(default)s)"
    )
    return parser
