"""``amsbq ask`` and ``amsbq tell``: runs whose evaluations are made elsewhere, with nothing running in between.

The journal is the whole state of such a run. ``ask`` restores it, writes new queries into the journal and then prints
them; ``tell`` appends answers. Any number of processes may do so, also on several hosts: each waits for the others.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..design.accounting import StopReason
from ..design.integrator import Integrator
from ..design.stopping import repeated_failure
from ..execution.journal import Journal
from ..execution.resume import begin_or_resume
from ..execution.revisions import Answer, Given, tell
from ..execution.state import read_state
from ..outputs.evaluations import Query
from ..problems.problem_file import Problem, load_problem
from ..results.result import REASONS, Result, input_names
from ..simulators.template import filled_template
from ..validation import numbers_text
from .arguments import CommandParser, Subparsers, add_command, add_journal, add_values, positive, whole_number
from .commands import ExitCode, UserError, header_of, problem_of
from .revisions import given_values

#: columns of a table of answers; the first two are needed
COLUMNS = ("id", "value", "variance", "cost", "reason")

#: beginnings of the columns that several outputs have instead
BY_OUTPUT = ("value.", "variance.")

#: what a job file may name beside the inputs
JOB_NAMES = ("id", "source", "journal")


def ask_command(options: argparse.Namespace) -> int:
    """Choose the next queries of a run, write them into its journal, and print them."""
    is_problem = options.run.suffix == ".toml"
    journal = options.journal or (options.run.with_suffix(".jsonl") if is_problem else options.run)
    if options.pending:
        _print_queries(None, journal, options)
        return ExitCode.DONE
    problem = load_problem(options.run) if is_problem else problem_of(journal)
    it = problem.integrator(options.budget)
    middle = Query(0, 0, problem.measure.median, 1.0)
    _filled_job(middle, it.names, problem.names, journal, options.template)  # before anything is asked
    with Journal(journal, options.wait, shared=True) as opened:
        about, changed = header_of(problem, journal), options.accept_changes
        log = begin_or_resume(opened, it, about, changed, reinstate=options.retry)
        for made in it.evaluate_bulk():
            log.bulk(made)
        stopped = _reason_to_stop(it, problem, options.retry)
        queries = it.ask(options.n) if stopped is None else []
        for query in queries:
            log.asked(query, it.values_beside(query.x))  # which cannot be had where answers are told
        if not queries and not it.pending:
            known = any(e.source == 0 and e.status == "ok" for e in it.evaluations)
            log.stopped(stopped or it.stopped or "", Result.of(it, "").estimate if known else None)
    _print_queries(queries, journal, options)
    if len(queries) < options.n:
        print(_why_fewer(it, stopped, len(queries)), file=sys.stderr)
    return ExitCode.DONE


def _reason_to_stop(it: Integrator, problem: Problem, retry: bool) -> StopReason | None:
    """Return why nothing more is to be asked, by the rules that also end a run which is not detached."""
    rules = [*problem.stop_rules(), repeated_failure(len(it.evaluations) if retry else 0)]
    return next((reason for rule in rules if (reason := rule(it))), None)


def _why_fewer(it: Integrator, stopped: StopReason | None, asked: int) -> str:
    """Return why fewer queries are asked than the user wants."""
    reason = stopped or it.stopped
    why = REASONS.get(reason, reason) if reason else "the budget does not pay for more until they are answered"
    again = "; if that is mended, try again with --retry" if reason == "failures" else ""
    return f"{asked or 'no'} new queries, {len(it.pending)} pending: {why}{again}"


def _print_queries(queries: Sequence[Query] | None, journal: Path, options: argparse.Namespace) -> None:
    """Print queries of a journal, by default all that are pending, as lines of JSON; or write a job file for each."""
    state = read_state(journal)
    inputs = state.header.get("inputs") or input_names(len(state.queries[0].x) if state.queries else 0)
    for query in state.pending if queries is None else queries:
        job = _filled_job(query, state.names, inputs, journal, options.template)
        if job is None:
            x, source = dict(zip(inputs, query.x.tolist(), strict=True)), state.sources[query.source]
            line = {"id": query.id, "source": source["name"], "x": x, "cost": query.cost}
            print(json.dumps(line if state.outputs is None else {**line, "outputs": source["outputs"]}))
            continue
        path = (options.into or journal.resolve().parent / "jobs") / f"{options.template.stem}-{query.id}"
        path = path.with_name(path.name + options.template.suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(job, encoding="utf-8")
        shutil.copymode(options.template, path)
        print(path)


def _filled_job(
    query: Query, sources: Sequence[str], inputs: Sequence[str], journal: Path, template: Path | None
) -> str | None:
    """Return the text of the job file of a query, or None without a template."""
    if template is None:
        return None
    twice = sorted(set(inputs) & set(JOB_NAMES))
    if twice:
        raise UserError(f"in a job file {{{twice[0]}}} is that of the query: give the input {twice[0]} another name")
    values = {**dict(zip(inputs, query.x.tolist(), strict=True)), "id": query.id, "source": sources[query.source]}
    try:
        return filled_template(
            template.read_text("utf-8"), {**values, "journal": str(journal.resolve())}, str(template)
        )
    except UnicodeDecodeError:
        raise UserError(f"{template} is not a text file in UTF-8") from None
    except ValueError as error:
        raise UserError(str(error)) from None


def tell_command(options: argparse.Namespace) -> int:
    """Write answers to queries into the journal of a run."""
    if options.table is not None:
        if options.id is not None:
            raise UserError("give either an ID with its value, or --from and a table")
        answers = list(_answers(options.table))
    else:
        if options.id is None or bool(options.value) == (options.failed is not None):
            raise UserError("give an ID and its value, or an ID and --failed with the reason, or --from and a table")
        value, variance = given_values(options) if options.value else (math.nan, 0.0)
        answers = [Answer(options.id, value, variance, options.cost, options.failed or "")]
    for answer in answers:
        if answer.cost is not None and not 0 < answer.cost < math.inf:
            raise UserError(f"the cost of query {answer.id} must be positive, got {answer.cost:g}")
    new = tell(options.journal, answers, options.wait)
    state = read_state(options.journal)
    told = {e.id: e for e in state.evaluations}
    for answer in new:
        e = told[answer.id]
        print(
            f"{e.id}: {state.names[e.source]} "
            + (f"= {numbers_text(e.value, 10, names=state.outputs)}" if e.status == "ok" else f"failed: {e.reason}")
        )
    print(
        f"{len(new)} recorded, {len(answers) - len(new)} already known, {len(state.pending)} pending", file=sys.stderr
    )
    return ExitCode.DONE


def _answers(table: Path) -> Iterator[Answer]:
    """Yield the answers in a CSV file: its columns are id and value, and, where they are needed, the others.

    With several outputs it has a column for each, such as value.peak.
    """
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file, skipinitialspace=True)
            columns = list(rows.fieldnames or ())
            wrong = [name for name in columns if name not in COLUMNS and not name.startswith(BY_OUTPUT)]
            if wrong or "id" not in columns or not any(name.split(".")[0] == "value" for name in columns):
                raise UserError(
                    f"the columns of {table} must be id and value, and may be {', '.join(COLUMNS[2:])}; with several "
                    f"outputs value.NAME for each, and may be variance.NAME"
                )
            for row in rows:
                cost = float(row["cost"]) if row.get("cost") else None
                value, variance = _cells(row, "value", math.nan), _cells(row, "variance", 0.0)
                yield Answer(int(row["id"]), value, variance, cost, row.get("reason") or "")
    except OSError as error:
        raise UserError(f"{table} cannot be read: {error.strerror or error}") from None
    except (ValueError, TypeError) as error:
        raise UserError(f"{table}, line {rows.line_num}: {error}") from None


def _cells(row: dict[str, str], name: str, empty: float) -> Given:
    """Return the number in a column of a row, or those of several outputs by name; what it is if a cell is empty."""
    cells = {column.partition(".")[2]: cell for column, cell in row.items() if column.startswith(f"{name}.")}
    if not cells:
        return float(row.get(name) or empty)
    return {output: float(cell or empty) for output, cell in cells.items()}


def add_ask(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq ask``."""
    parser = add_command(
        subparsers,
        "ask",
        ask_command,
        "what to evaluate next, elsewhere",
        """\
Choose the next evaluations of a run, and print one line of JSON for each: its
id, source, inputs and expected cost. They are in the journal first; nothing
is evaluated, and nothing goes on running. Answer with amsbq tell, whenever and
wherever the results are there.""",
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
    parser.add_argument("--pending", action="store_true", help="those that were asked before and have no answer")
    parser.add_argument("--template", type=Path, metavar="JOB", help="write a job file for each, instead of JSON")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="of the job files (default: jobs/, by the journal)")
    parser.add_argument("--journal", type=Path, metavar="PATH", help="journal file (default: beside the problem file)")
    parser.add_argument("--budget", type=positive, metavar="B", help="replaces the budget of the problem file")
    parser.add_argument("--retry", action="store_true", help="ask also for sources that have failed again and again")
    parser.add_argument("--accept-changes", action="store_true", help="continue although the problem has changed")
    _add_wait(parser)
    return parser


def add_tell(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq tell``."""
    parser = add_command(
        subparsers,
        "tell",
        tell_command,
        "the value of a query that was evaluated elsewhere",
        """\
Write the value of a query, or why it has none, into the journal. Only the
journal is needed, and several hosts may tell at the same time. A table has the
columns id and value, and may have variance, cost and reason; with several
outputs it has value.NAME, and may have variance.NAME, for each. Answers that
the journal has already are left out, so a growing table can be told again.""",
        """\
examples:
  amsbq tell problem.jsonl 7 1.62
  amsbq tell problem.jsonl 7 1.62 12               several outputs, in order
  amsbq tell problem.jsonl 7 peak=1.62 time=nan    by name; time has no value
  amsbq tell problem.jsonl 8 --failed 'did not converge'
  amsbq tell problem.jsonl --from results.csv
""",
    )
    add_journal(parser)
    parser.add_argument("id", type=int, nargs="?", metavar="ID", help="number of the query, as ask has printed it")
    add_values(parser, "what the source has returned", "*")
    parser.add_argument("--cost", type=float, metavar="C", help="what it has cost (default: as expected)")
    parser.add_argument("--failed", metavar="REASON", help="instead of a value")
    parser.add_argument("--from", dest="table", type=Path, metavar="TABLE.csv", help="answers in a table")
    _add_wait(parser)
    return parser


def _add_wait(parser: CommandParser) -> None:
    parser.add_argument(
        "--wait", type=positive, default=300.0, metavar="S", help="seconds, for other writers (default: %(default)g)"
    )
