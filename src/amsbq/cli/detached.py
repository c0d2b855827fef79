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

from ..design.accounting import Query, StopReason
from ..design.integrator import Integrator
from ..design.stopping import repeated_failure
from ..execution.journal import Journal
from ..execution.resume import begin_or_resume
from ..execution.revisions import Answer, tell
from ..execution.state import read_state
from ..problems.problem_file import Problem, load_problem
from ..results.result import REASONS, Result, input_names
from ..simulators.template import filled_template
from ..validation import numbers_text
from .arguments import CommandParser, Subparsers, add_command, positive, whole_number
from .commands import ExitCode, UserError, header_of, problem_of

#: columns of a table of answers; the first two are needed
COLUMNS = ("id", "value", "variance", "cost", "reason")

#: what a job file may name beside the inputs
JOB_NAMES = ("id", "source", "journal")


def ask_command(options: argparse.Namespace) -> int:
    """Choose the next queries of a run, write them into its journal, and print them."""
    is_problem = options.run.suffix == ".toml"
    journal = options.journal or (options.run.with_suffix(".jsonl") if is_problem else options.run)
    if options.pending:
        state = read_state(journal)
        names = state.header.get("inputs") or input_names(len(state.queries[0].x) if state.queries else 0)
        _print_queries(state.pending, state.names, names, journal, options)
        return ExitCode.DONE
    problem = load_problem(options.run) if is_problem else problem_of(journal)
    it = problem.integrator(options.budget)
    middle = Query(0, 0, problem.measure.median, 1.0)
    _filled_job(middle, it.names, problem.names, journal, options.template)  # before anything is asked
    with Journal(journal, options.wait, shared=True) as opened:
        about, changed = header_of(problem, journal), options.accept_changes
        log = begin_or_resume(opened, it, about, changed, reinstate=options.retry)
        stopped = _reason_to_stop(it, problem, options.retry)
        queries = it.ask(options.n) if stopped is None else []
        for query in queries:
            log.asked(query)
        if not queries and not it.pending:
            known = any(e.source == 0 and e.status == "ok" for e in it.evaluations)
            log.stopped(stopped or it.stopped or "", Result.of(it, "").estimate if known else None)
    _print_queries(queries, it.names, problem.names, journal, options)
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


def _print_queries(
    queries: Sequence[Query], sources: Sequence[str], inputs: Sequence[str], journal: Path, options: argparse.Namespace
) -> None:
    """Print queries as lines of JSON; or write a job file for each, and print their names."""
    for query in queries:
        job = _filled_job(query, sources, inputs, journal, options.template)
        if job is None:
            x = dict(zip(inputs, query.x.tolist(), strict=True))
            print(json.dumps({"id": query.id, "source": sources[query.source], "x": x, "cost": query.cost}))
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
        if options.id is None or (options.value is None) == (options.failed is None):
            raise UserError("give an ID and its value, or an ID and --failed with the reason, or --from and a table")
        value = math.nan if options.value is None else options.value
        answers = [Answer(options.id, value, options.variance, options.cost, options.failed or "")]
    for answer in answers:
        if not 0 <= answer.variance < math.inf:
            raise UserError(f"the variance of query {answer.id} must not be negative, got {answer.variance:g}")
        if answer.cost is not None and not 0 < answer.cost < math.inf:
            raise UserError(f"the cost of query {answer.id} must be positive, got {answer.cost:g}")
    new = tell(options.journal, answers, options.wait)
    state = read_state(options.journal)
    told = {e.id: e for e in state.evaluations}
    for answer in new:
        e = told[answer.id]
        print(
            f"{e.id}: {state.names[e.source]} "
            + (f"= {numbers_text(e.value, 10)}" if e.status == "ok" else f"failed: {e.reason}")
        )
    print(f"{len(new)} told, {len(answers) - len(new)} known before, {len(state.pending)} pending", file=sys.stderr)
    return ExitCode.DONE


def _answers(table: Path) -> Iterator[Answer]:
    """Yield the answers in a CSV file: its columns are id and value, and, where they are needed, the others."""
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file, skipinitialspace=True)
            wrong = [name for name in rows.fieldnames or () if name not in COLUMNS]
            if wrong or not {"id", "value"} <= set(rows.fieldnames or ()):
                raise UserError(f"the columns of {table} must be id and value, and may be {', '.join(COLUMNS[2:])}")
            for row in rows:
                value = row["value"] or "nan"
                cost = float(row["cost"]) if row.get("cost") else None
                reason = row.get("reason") or ""
                yield Answer(int(row["id"]), float(value), float(row.get("variance") or 0.0), cost, reason)
    except OSError as error:
        raise UserError(f"{table} cannot be read: {error.strerror or error}") from None
    except (ValueError, TypeError) as error:
        raise UserError(f"{table}, line {rows.line_num}: {error}") from None


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
columns id and value, and may have variance, cost and reason; answers that the
journal has already are left out, so a growing table can be told again.""",
        """\
examples:
  amsbq tell problem.jsonl 7 1.62
  amsbq tell problem.jsonl 8 --failed 'did not converge'
  amsbq tell problem.jsonl --from results.csv
""",
    )
    parser.add_argument("journal", type=Path, metavar="run.jsonl", help="journal of the run")
    parser.add_argument("id", type=int, nargs="?", metavar="ID", help="number of the query, as ask has printed it")
    parser.add_argument("value", type=float, nargs="?", metavar="VALUE", help="what the source has returned")
    parser.add_argument("--variance", type=float, default=0.0, metavar="V", help="of the noise on it (default: 0)")
    parser.add_argument("--cost", type=float, metavar="C", help="what it has cost (default: as expected)")
    parser.add_argument("--failed", metavar="REASON", help="instead of a value")
    parser.add_argument("--from", dest="table", type=Path, metavar="TABLE.csv", help="answers in a table")
    _add_wait(parser)
    return parser


def _add_wait(parser: CommandParser) -> None:
    parser.add_argument(
        "--wait", type=positive, default=300.0, metavar="S", help="seconds, for other writers (default: %(default)g)"
    )
