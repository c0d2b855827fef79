"""``amsbq report``, ``watch`` and ``compare``: views of runs, finished or in progress."""

from __future__ import annotations

import argparse
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
from ..results.result import Result, furthest
from ..results.summary import comparison, of_each_output, table
from ..visualization.live import LiveContent, PageServer
from ..visualization.plots import compare
from ..visualization.report import report, what_if_rows
from .exits import ExitCode, UserError

#: maximum number of outputs of a run drawn in a comparison: as many rows of panels fit on two pages
MOST_DRAWN = 6


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
    if not output.parent.is_dir():
        raise UserError(f"--output: there is no folder {output.parent} to write {output.name} to")
    if not options.watch:
        with working(f"making the page of {journal}"):
            result = read_result(journal)
            under = _others(result, options.under)
            written = report(_shown(result, options.of), output, under=under, full=options.full)
        print(f"wrote {written}")
        return ExitCode.DONE
    print(f"watching {journal}: open {output} in a browser; interrupt to quit", file=sys.stderr)
    with suppress(KeyboardInterrupt):
        _watch(journal, output, options)
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
    """Return the other distributions for a run's inputs, by the name of their file."""
    found = {}
    for path in paths:
        names, measure = load_inputs(path)
        if names != list(result.inputs):
            raise UserError(
                f"--under {path}: its inputs are {', '.join(names)}, but the run has {', '.join(result.inputs)}"
            )
        found[path.stem] = measure
    return found


def _watch(journal: Path, output: Path, options: argparse.Namespace) -> None:
    """Write the page again whenever the journal has grown, until its run has stopped."""
    size = -1
    while True:
        now = journal.stat().st_size if journal.exists() else 0
        if now != size and now and b"\n" in journal.read_bytes():
            size = now
            result = read_result(journal)
            report(_shown(result, options.of), output, refresh=options.every, full=options.full)
            if result.stopped:
                return
        time.sleep(options.every)


def watch_command(options: argparse.Namespace) -> int:
    """Serve the page of a run on this machine, and update it as the journal grows, until the user interrupts."""
    with LiveContent(options.journal) as live:
        try:
            server = PageServer(live, options.port)
        except OSError as error:
            raise UserError(f"port {options.port} cannot be used: {error.strerror or error}") from None
        with server, suppress(KeyboardInterrupt):
            print(f"the page of {options.journal}: {server.address}", flush=True)
            print("anyone who has this address can see the run; interrupt to quit", file=sys.stderr, flush=True)
            server.serve_forever()
    if live.busy:  # exiting normally would end a thread in compiled code, which aborts the process
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ExitCode.DONE)
    return ExitCode.DONE


def compare_command(options: argparse.Namespace) -> int:
    """Print a table of several runs, and draw them in one figure."""
    runs = _named_results(options.journals)
    print("\n".join(comparison(dict(of_each_output(runs)))))
    figure = compare(_drawn(runs))
    try:
        figure.savefig(options.output, dpi=150)
    except ValueError as error:  # an unknown image format
        raise UserError(f"--output: {error}") from None
    print(f"wrote {options.output}", file=sys.stderr)
    return ExitCode.DONE


def _drawn(runs: dict[str, Result]) -> dict[str, Result]:
    """Return the results to draw: with many outputs, only the one that is farthest from its goal."""
    return {
        name: furthest(result) if len(result.outputs or ()) > MOST_DRAWN else result for name, result in runs.items()
    }


def _named_results(journals: list[Path]) -> dict[str, Result]:
    """Return the results of journals by file name, with as much of the path as makes the names distinct."""
    journals = list(dict.fromkeys(journal.resolve() for journal in journals))  # duplicates count once
    paths = [journal.with_suffix("").parts for journal in journals]
    longest = max(len(parts) for parts in paths)
    kept = next((n for n in range(1, longest) if len({parts[-n:] for parts in paths}) == len(paths)), longest)
    names = ["/".join(parts[-kept:]) for parts in paths]
    return {name: read_result(journal, model=False) for name, journal in zip(names, journals, strict=True)}
