"""Execution of certificates: the fresh evaluations of a plan, by the runner of runs, with or without a journal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial

from ..certificates.certificate import Certificate
from ..certificates.plan import Plan
from ..certificates.run import CertificateRun
from ..design.evaluations import Evaluation, Query
from ..results.result import Result
from .executors import ExecutorLike
from .journal import Journal, JournalError, JournalPath
from .resume import EventLog
from .revisions import Answer, event_of_answer
from .runner import Runner
from .state import interpreted


class CertificateLog(EventLog):
    """Writer of a certificate's evaluations to a journal, each before it is used."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    def answered(self, made: Evaluation, cost: float) -> None:
        """Write a value or a failure to the disk."""
        self.journal.write(certified(made, cost))


def certified(made: Evaluation, cost: float) -> dict[str, object]:
    """Return the event of an evaluation of a certificate."""
    if made.reason:
        return {"event": "certified", "id": made.id, "reason": made.reason, "cost": cost}
    return {"event": "certified", "id": made.id, "value": made.value, "variance": made.variance, "cost": cost}


def certificate_of(
    plan: Plan,
    result: Result,
    *,
    executor: ExecutorLike | None = None,
    workers: int = 1,
    journal: JournalPath | None = None,
) -> Certificate:
    """Evaluate the queries of a plan, and return the certificate.

    If a source has no function, the certificate is returned without evaluations, for ask and tell. With a journal, an
    unfinished certificate for the same request is continued, and a finished one is returned.
    """
    it = result.integrator
    assert it is not None
    with nullcontext() if journal is None else Journal(journal) as opened:
        made: Sequence[Evaluation] = ()
        if opened is not None:
            if opened.header is None:
                raise ValueError(f"{opened.path} is a new file: a certificate continues the journal of its run")
            known = interpreted(opened.header, opened.events, opened.path).certificates
            same = [each for each in known if _same_request(each.plan, plan)]
            if same and same[-1] is known[-1]:  # evaluations belong to the latest one
                plan, made = same[-1].plan, same[-1].evaluations
            elif same and same[-1].complete:
                return same[-1]
            else:
                opened.write({"event": "certificate", **plan.to_dict()})
        run = CertificateRun(it.problem, plan, it.ledger.costs, made)
        certificate = Certificate(plan, made, run, it.problem.labels)
        wanted = {source for source, _ in plan.evaluated}
        if certificate.complete:
            return certificate
        if any(it.sources[source].function is None for source in wanted):
            run.log = None if opened is None else partial(_append, opened.path)
            return certificate
        runner = Runner(run, (), executor, workers)
        if opened is not None:
            runner.log = CertificateLog(opened)
        stopped = runner.run()
    if stopped == "interrupted":
        n = len(run.evaluations)
        again = "; the same call with the same journal continues it" if journal is not None else ""
        raise KeyboardInterrupt(f"interrupted after {n} of {len(plan.evaluated)} evaluations of a certificate{again}")
    return certificate


def tell_certificate(path: JournalPath, answer: Answer, patience: float = 0.0) -> Certificate:
    """Append the answer to an evaluation of the latest certificate of a journal, and return the certificate."""
    with Journal(path, patience, shared=True) as journal:
        if journal.header is None:
            raise JournalError(f"{path} is a new file: a certificate continues the journal of its run")
        state = interpreted(journal.header, journal.events, path)
        if not state.certificates:
            raise JournalError(f"{path} has no certificate: start one with amsbq certify {path} --budget ...")
        latest = state.certificates[-1]
        evaluated = latest.plan.evaluated
        if not 0 <= answer.id < len(evaluated) or answer.id in {e.id for e in latest.evaluations}:
            raise JournalError(f"evaluation {answer.id} of the certificate in {path} is not pending")
        source, x = evaluated[answer.id]
        cost = state.sources[source]["cost"]
        query = Query(answer.id, source, x, cost if isinstance(cost, float) else math.nan)
        if answer.cost is None and math.isnan(query.cost):
            raise JournalError(
                f"pass the cost of evaluation {answer.id}: the cost of {state.names[source]} is not fixed"
            )
        event = event_of_answer(answer, query, {}, state, path)
        event["event"] = "certified"
        told = interpreted(journal.header, [*journal.events, event], path).certificates[-1]
        journal.write(event)
    return told


def _append(path: JournalPath, made: Evaluation) -> None:
    """Append an evaluation made elsewhere to a journal."""
    with Journal(path) as journal:
        journal.write(certified(made, made.cost))


def _same_request(one: Plan, other: Plan) -> bool:
    """Return whether two plans agree in the state of the run, budget, targets and seed."""

    def request(plan: Plan) -> tuple[object, ...]:
        return plan.observations, plan.budget, plan.seed, tuple(plan.targets), plan.under, plan.primary_only

    return request(one) == request(other)
