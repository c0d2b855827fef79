"""``amsbq ask`` and ``amsbq tell``: runs whose evaluations are made elsewhere, with no process in between.

The journal is the whole state of such a run. ``ask`` restores it, writes new queries to the journal and then prints
them; ``tell`` appends answers. Any number of processes on any hosts may do so: each waits for the others.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from ..common.validation import numbers_text
from ..design.description import input_names
from ..design.evaluations import Query, StopReason
from ..design.stopping import goal_rules, repeated_failure
from ..execution.bulk import beside_here, evaluate_in_bulk, evaluated_here
from ..execution.integrator import Integrator
from ..execution.journal import Journal
from ..execution.resume import begin_or_resume
from ..execution.revisions import Answer, Given, tell
from ..execution.state import read_state
from ..problems.problem_file import load_problem
from ..results.result import REASONS, result_of
from ..simulators.numerals import decimal_comma
from ..simulators.tables import separator
from ..simulators.template import filled_template
from .commands import header_of, integrator_of, problem_of
from .exits import ExitCode, UserError
from .revisions import given_values

#: columns of a table of answers; the first two are required
COLUMNS = ("id", "value", "variance", "cost", "reason")

#: prefixes of the columns for several outputs
BY_OUTPUT = ("value.", "variance.")

#: names in a job file besides the inputs
JOB_NAMES = ("id", "source", "journal")


def ask_command(options: argparse.Namespace) -> int:
    """Choose the next queries of a run, write them to its journal, and print them."""
    is_problem = options.run.suffix == ".toml"
    journal = options.journal or (options.run.with_suffix(".jsonl") if is_problem else options.run)
    if options.pending:
        _print_queries(None, journal, options)
        return ExitCode.DONE
    problem = load_problem(options.run) if is_problem else problem_of(journal)
    it = integrator_of(problem, options.budget)
    middle = Query(0, 0, problem.measure.median, 1.0)
    _filled_job(middle, it.names, problem.names, journal, options.template)  # before any query is chosen
    with Journal(journal, options.wait, shared=True) as opened:
        about, changed = header_of(problem, journal), options.accept_changes
        log = begin_or_resume(opened, it, about, changed, reinstate=options.retry)
        for made in evaluate_in_bulk(it, partial(evaluated_here, it)):
            log.bulk(made)
        stopped = _reason_to_stop(it, options.retry)
        queries = it.ask(options.n) if stopped is None else []
        for query in queries:
            log.asked(query, beside_here(it, query.x))  # free sources cannot be evaluated where values are reported
        if not queries and not it.pending:
            log.stopped(stopped or it.stopped or "", result_of(it, "") if len(it.learner) else None)
    _print_queries(queries, journal, options)
    if len(queries) < options.n:
        print(_why_fewer(it, stopped, len(queries)), file=sys.stderr)
    return ExitCode.DONE


def _reason_to_stop(it: Integrator, retry: bool) -> StopReason | None:
    """Return the reason why no more queries are issued, by the rules that also end other runs, or None."""
    rules = [*goal_rules(it.problem.goals), repeated_failure(len(it.evaluations) if retry else 0)]
    return next((reason for rule in rules if (reason := rule(it))), None)


def _why_fewer(it: Integrator, stopped: StopReason | None, asked: int) -> str:
    """Return a message on why there are fewer queries than requested."""
    reason = stopped or it.stopped
    why = REASONS.get(reason, reason) if reason else "the budget does not cover more until they are answered"
    again = "; once this is fixed, try again with --retry" if reason == "failures" else ""
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
        raise UserError(f"{{{twice[0]}}} is reserved in job files: rename the input {twice[0]}")
    values = {**dict(zip(inputs, query.x.tolist(), strict=True)), "id": query.id, "source": sources[query.source]}
    try:
        return filled_template(
            template.read_text("utf-8"), {**values, "journal": str(journal.resolve())}, str(template)
        )
    except UnicodeDecodeError:
        raise UserError(f"{template} is not a text file in UTF-8") from None
    except OSError as error:
        raise UserError(f"--template: {template} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise UserError(str(error)) from None


def tell_command(options: argparse.Namespace) -> int:
    """Write answers to queries to the journal of a run."""
    if options.table is not None:
        if options.id is not None:
            raise UserError("pass either an ID with its value, or --from and a table")
        answers = list(_answers(options.table))
    else:
        if options.id is None or bool(options.value) == (options.failed is not None):
            raise UserError("pass an ID and its value, or an ID and --failed with the reason, or --from and a table")
        value, variance = given_values(options) if options.value else (math.nan, 0.0)
        answers = [Answer(options.id, value, variance, options.cost, options.gradient, options.failed or "")]
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
    """Yield the answers in a CSV file with the columns id and value, and optionally the others.

    With several outputs it has a column for each, such as value.peak.
    """
    try:
        with table.open(newline="", encoding="utf-8-sig") as file:
            mark = separator(file.readline())
            file.seek(0)
            rows = csv.DictReader(file, skipinitialspace=True, delimiter=mark or ",")
            columns = list(rows.fieldnames or ())
            wrong = [name for name in columns if name not in COLUMNS and not name.startswith(BY_OUTPUT)]
            if wrong or "id" not in columns or not any(name.split(".")[0] == "value" for name in columns):
                raise UserError(
                    f"the columns of {table} must be id and value, and optionally {', '.join(COLUMNS[2:])}; with "
                    f"several outputs value.NAME for each, and optionally variance.NAME"
                )
            for row in rows:
                cost = _number(row["cost"], math.nan) if row.get("cost") else None
                value, variance = _cells(row, "value", math.nan), _cells(row, "variance", 0.0)
                if not row["id"].strip().isdecimal():
                    raise ValueError(f"id must be the number of a query, got {row['id']!r}")
                yield Answer(int(row["id"]), value, variance, cost, reason=row.get("reason") or "")
    except OSError as error:
        raise UserError(f"{table} cannot be read: {error.strerror or error}") from None
    except (ValueError, TypeError) as error:
        raise UserError(f"{table}, line {rows.line_num}: {error}") from None


def _cells(row: dict[str, str], name: str, empty: float) -> Given:
    """Return the number in a column of a row, or those of several outputs by name; ``empty`` for an empty cell."""
    cells = {column.partition(".")[2]: cell for column, cell in row.items() if column.startswith(f"{name}.")}
    if not cells:
        return _number(row.get(name), empty)
    return {output: _number(cell, empty) for output, cell in cells.items()}


def _number(cell: str | None, empty: float) -> float:
    try:
        return float(cell or empty)
    except ValueError:
        raise ValueError(f"{cell!r} is not a number{decimal_comma(cell or '')}") from None
