"""``amsbq certify``: an estimate that does not depend on the model, from fresh random evaluations in the journal."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from ..certificates.certificate import Certificate
from ..certification import certify
from ..common.serialisation import plain
from ..design.description import input_names
from ..execution.certify import tell_certificate
from ..execution.executors import ExecutorLike
from ..execution.journal import read_journal
from ..execution.reader import read_result
from ..execution.resume import restore
from ..execution.revisions import Answer
from ..execution.state import read_state
from ..results.result import Result, result_of
from .commands import executor_for, problem_of
from .exits import ExitCode, UserError
from .revisions import given_values


def certify_command(options: argparse.Namespace) -> int:
    """Certify the answer of a run; or print queries to evaluate elsewhere; or record their values."""
    if options.tell is not None:
        return _shown(tell_certificate(options.journal, _answer(options), options.wait), options)
    if options.failed is not None:
        raise UserError("--failed belongs to an evaluation: --tell ID --failed REASON")
    state, header = read_state(options.journal), read_journal(options.journal)[0]
    problem = problem_of(options.journal) if "file" in header else None
    latest = state.certificates[-1] if state.certificates else None
    budget, seed, only = None if problem is None else problem.kept(state.budget) or None, 0, False
    if latest is not None and not latest.complete:
        budget, seed, only = latest.plan.budget, latest.plan.seed, latest.plan.primary_only
    elif problem is not None and budget is not None:
        seed = problem.described.seed
    budget = budget if options.budget is None else options.budget
    if budget is None:
        raise UserError("--budget is missing: the cost of the fresh evaluations, in the unit of all costs")
    seed, only = seed if options.seed is None else options.seed, only or options.primary_only
    if problem is None:
        return _shown(_certified(read_result(options.journal), budget, seed, only, options), options)
    it = problem.integrator()
    restore(it, options.journal, problem.names)
    result: Result = result_of(it, state.stopped, problem.names)
    with executor_for(problem, options) as executor:
        made = _certified(result, budget, seed, only, options, executor)
    return _shown(made, options)


def _certified(
    result: Result,
    budget: float,
    seed: int,
    only: bool,
    options: argparse.Namespace,
    executor: ExecutorLike | None = None,
) -> Certificate:
    """Return the certificate for the options; raise a `UserError` if there is none."""
    try:
        return certify(
            result,
            budget,
            seed,
            primary_only=only,
            executor=executor,
            workers=options.workers,
            journal=options.journal,
        )
    except ValueError as error:
        raise UserError(str(error)) from error


def _answer(options: argparse.Namespace) -> Answer:
    """Return the answer in --tell: the number of an evaluation and its value, or why it has none."""
    number, *options.value = options.tell
    if not number.isdecimal() or bool(options.value) == (options.failed is not None):
        raise UserError("pass --tell ID VALUE, or --tell ID --failed REASON")
    value, variance = given_values(options) if options.value else (math.nan, 0.0)
    return Answer(int(number), value, variance, options.cost, reason=options.failed or "")


def _shown(certificate: Certificate, options: argparse.Namespace) -> int:
    """Print a certificate or, if its evaluations are made elsewhere, the missing ones as lines of JSON."""
    if certificate.complete:
        print(json.dumps(plain(certificate.to_dict())) if options.json else certificate)
        return ExitCode.DONE
    plan, made = certificate.plan, {e.id for e in certificate.evaluations}
    names = _inputs(options.journal, plan.X[0].shape[1])
    for number, (source, x) in enumerate(plan.evaluated):
        if number not in made:
            print(
                json.dumps({"id": number, "source": plan.names[source], "x": dict(zip(names, x.tolist(), strict=True))})
            )
    return ExitCode.DONE


def _inputs(journal: Path, dim: int) -> list[str]:
    return list(read_journal(journal)[0].get("inputs") or input_names(dim))
