"""Journals of runs: begin one, write its events, or restore an integrator from one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from ..common.serialisation import to_json
from ..common.validation import brief
from ..design.bulk import Bulk
from ..design.decisions import reinstate as reinstate_retired
from ..design.evaluations import Beside, Evaluation, Query, StopReason
from ..design.failures import usable
from ..measures.adapters import measure_from_dict
from ..results.result import Result, is_known, targets
from ..simulators.answers import EvaluationLog
from .changes import described_problem, problem_changes
from .integrator import Integrator
from .journal import AnotherRunError, Event, Journal, JournalError, JournalPath, read_journal
from .state import LABELLED, MALFORMED, RunState, interpreted, malformed_error


@dataclass(frozen=True)
class LogSettings:
    """How much is written."""

    #: growth of the number of observations between written refits; the last refit of a run is always written. Refits
    #: make up nearly all of a journal, and those in between can be recomputed from the values.
    growth: float = 2.0


SETTINGS = LogSettings()


class EventLog:
    """Listener to all events of a run; this base class keeps nothing."""

    def asked(self, query: Query, free: Sequence[Beside] = ()) -> None:
        """Log a query, before it is evaluated.

        ``free`` are the values of the sources evaluated in bulk at its location, if they are already known.
        """

    def printed(self, query: Query, log: EvaluationLog) -> None:
        """Log the output of an evaluation, before its answer."""

    def bulk(self, made: Bulk) -> None:
        """Log evaluations in bulk, which could be repeated at next to no cost."""

    def answered(self, made: Evaluation, cost: float) -> None:
        """Log a value or a failure, and its cost without the decision, before the integrator uses it."""

    def known(self, latest: int = 1) -> None:
        """Log the integral after each of the latest answers, and the refit, all of which could be recomputed."""

    def stopped(self, reason: StopReason, result: Result | None) -> None:
        """Log the end of the run, with the integral and the target if they are known."""


class JournalLog(EventLog):
    """Writer of the events of a run to its journal.

    Parameters
    ----------
    journal : Journal
        An open journal with a header.
    it : Integrator
        The integrator of the run.
    refitted_at : int
        The number of observations at the latest refit in the journal; 0 if there is none.
    stopped : str
        Why the run has stopped, if that is the last event of the journal; otherwise empty.
    """

    def __init__(self, journal: Journal, it: Integrator, refitted_at: int = 0, stopped: StopReason = "") -> None:
        self.journal, self.it = journal, it
        self._refitted_at = refitted_at
        self._stopped = stopped

    def asked(self, query: Query, free: Sequence[Beside] = ()) -> None:
        """Write a query to the disk."""
        content = {"source": query.source, "x": query.x, "cost": query.cost, "rate": query.rate}
        wanted = {"gradient": True} if query.gradient else {}
        decision = {"decision": query.decision} if query.decision else {}
        self._write({"event": "asked", "id": query.id, **content, **wanted, **decision, **_beside(free)})

    def printed(self, query: Query, log: EvaluationLog) -> None:
        """Write the output of an evaluation; the answer that follows flushes it to the disk."""
        said = {name: text for name, text in vars(log).items() if text}
        if said:
            self._write({"event": "printed", "id": query.id, **said}, durable=False)

    def bulk(self, made: Bulk) -> None:
        """Write evaluations in bulk as one event."""
        self._write({"event": "bulk", **made.to_dict()}, durable=False)

    def answered(self, made: Evaluation, cost: float) -> None:
        """Write a value or a failure to the disk."""
        if made.reason:
            self._write({"event": "failed", "id": made.id, "reason": made.reason, "cost": cost})
            return
        content = {"value": made.value, "variance": made.variance, "cost": cost}
        slopes = {} if made.gradient is None else {"gradient": made.gradient}
        note = {"note": made.note} if made.note else {}
        self._write({"event": "told", "id": made.id, **content, **_beside(made.free), **slopes, **note})

    def known(self, latest: int = 1) -> None:
        """Write the integral after each of the latest answers, and the refit, without waiting for the disk."""
        if self.it.learner.refitted_at >= SETTINGS.growth * self._refitted_at:
            self._write_refit()
        for e in self.it.evaluations[len(self.it.evaluations) - latest :]:
            self._write({"event": "known", "id": e.id, "mean": e.mean, "std": e.std}, durable=False)

    def _write_refit(self) -> None:
        """Write the latest refit, unless it is already in the journal."""
        learner = self.it.learner
        fitted = learner.fitted() if learner.refitted_at != self._refitted_at else None
        if fitted is not None:
            self._refitted_at = learner.refitted_at
            self._write({"event": "fitted", **fitted}, durable=False)

    def budget_changed(self) -> None:
        """Write the new budget of a resumed run to the disk."""
        self._write({"event": "resumed", "budget": self.it.budget})

    def changes_accepted(self, changes: Sequence[str], described: Event) -> None:
        """Write the accepted changes of the problem, and its new description, to the disk."""
        self._write({"event": "accepted", "changes": changes, **described})

    def stopped(self, reason: StopReason, result: Result | None) -> None:
        """Write the end of the run to the disk, unless it is already in the journal."""
        if reason != self._stopped:
            self._write_refit()
            found = {}
            if result is not None and is_known(result):
                of_mean = all(target == "mean" for target in targets(result))
                target = {} if of_mean else {"target": result.target.to_dict()}
                found = {"estimate": result.estimate.to_dict(), **target}
            by_rule = self.it.stopped is None and reason != "interrupted"
            ended = {"reason": reason, "rule": by_rule, "spent": self.it.spent, "budget": self.it.budget}
            self._write({"event": "stopped", **ended, **found})

    def _write(self, event: Event, durable: bool = True) -> None:
        self.journal.write(event, durable)
        self._stopped = ""


def _beside(free: Sequence[Beside]) -> Event:
    """Return the entry of an event for the sources evaluated in bulk; empty if there are none."""
    values, variances = ([pair[i] for pair in free] for i in range(2))
    noisy = {"free_variance": variances} if np.any(np.concatenate([[0.0], *map(np.atleast_1d, variances)])) else {}
    return {"free": values, **noisy} if free else {}


def begin_or_resume(
    journal: Journal,
    it: Integrator,
    about: Event | None = None,
    accept_changes: bool = False,
    taken: Sequence[Evaluation] = (),
    reinstate: bool = True,
) -> JournalLog:
    """Begin a new journal, or restore an integrator to the end of an old one; return the writer of further events.

    Parameters
    ----------
    journal : Journal
        An open journal.
    it : Integrator
        A fresh integrator, without any query.
    about : dict, optional
        Further entries of the header of a new journal; ``inputs`` are the names of the inputs.
    accept_changes : bool
        Whether to resume although the problem differs from that of the journal, which then records the changes. If a
        source has always failed, a change of its function is accepted anyway: it has been fixed.
    taken : list of Evaluation
        Values of another journal with which a new one begins.
    reinstate : bool
        Whether to reinstate retired sources.
    """
    inputs = (about or {}).get("inputs")
    if journal.header is None:
        begun = {"version": version("amsbq"), "problem": described_problem(it, journal.path), "budget": it.budget}
        labels = it.problem.labels.to_dict()
        journal.begin({**begun, **({"labels": labels} if labels else {}), **(about or {})})
        for e in taken:
            content = {"source": e.source, "x": e.x, "value": e.value, "variance": e.variance}
            slopes = {} if e.gradient is None else {"gradient": e.gradient}
            journal.write({"event": "observed", **content, **slopes}, durable=e is taken[-1])
            it.observe(e.source, e.x, e.value, e.variance, e.gradient)
        return JournalLog(journal, it)
    now = described_problem(it, journal.path)
    changes, serious = problem_changes(it, now, inputs, journal.header, journal.events)
    if serious and not accept_changes:
        raise AnotherRunError(journal.path, serious)
    state = _restored(it, journal.header, journal.events, journal.path, now if changes else None, inputs)
    if reinstate:
        reinstate_retired(it)
    if changes:
        log = JournalLog(journal, it)
        log.changes_accepted(changes, {"problem": now, "inputs": inputs})
    else:
        refitted_at = 0 if state.fitted is None else state.fitted["n"]
        log = JournalLog(journal, it, refitted_at, "" if state.revised else state.stopped)
    if it.problem.labels != state.labels:
        journal.write({"event": LABELLED, "labels": it.problem.labels.to_dict()}, durable=False)
    if it.budget != state.budget:
        log.budget_changed()
    log.known(state.unknown)
    return log


def restore(it: Integrator, path: JournalPath, inputs: Sequence[str] | None = None) -> None:
    """Restore a fresh integrator to the end of a journal of the same problem.

    Parameters
    ----------
    it : Integrator
        The integrator.
    path : path
        The journal.
    inputs : list of str, optional
        Names of the inputs.
    """
    header, events = read_journal(path)
    _, serious = problem_changes(it, described_problem(it, path), inputs, header, events)
    if serious:
        raise AnotherRunError(path, serious)
    _restored(it, header, events, path)


def _restored(
    it: Integrator,
    header: Event,
    events: Sequence[Event],
    path: JournalPath,
    changed: Event | None = None,
    inputs: Sequence[str] | None = None,
) -> RunState:
    """Set an integrator to the end of a journal, and return that state; the problem may have changed."""
    state = interpreted(header, events, path)
    try:
        if changed is not None:
            state = _transferred(state, it, changed, inputs)
        state.restore(it)
    except MALFORMED as error:
        raise malformed_error(path, error) from error
    return state


def _transferred(state: RunState, it: Integrator, problem: Event, inputs: Sequence[str] | None) -> RunState:
    """Return a state for a changed problem: without hyperparameters and without a reason to stop.

    Raise `JournalError` if the evaluations cannot belong to the problem.
    """
    n_sources, observed = len(state.sources), state.header["problem"].get("observed", len(it.learner))
    if n_sources != len(it.sources) or observed != len(it.learner):
        raise JournalError(
            f"the journal was recorded with {n_sources} sources and {observed} prior observations, but the problem now "
            f"has {len(it.sources)} and {len(it.learner)}: such a change cannot be accepted; start a new journal"
        )
    before = state.header["problem"]
    _check_names(state, it, inputs)
    try:
        points = [query.x for query in state.queries] + [e.x for e in state.observed]
        it.measure.check_points(points or it.measure.median[None], "evaluation", inputs)
    except ValueError as error:
        raise JournalError(f"the change of the inputs cannot be accepted: {error}; start a new journal") from None
    _check_categories(before, it)
    if _moved(state.names, it.names) or _moved(before.get("functions"), problem["functions"]):
        raise JournalError(
            f"the sources are those of the journal in another order: pass them as {', '.join(state.names)}, so that "
            "values are assigned to the right sources"
        )
    for e in (*state.observed, *state.evaluations):
        valid, ok = it.sources[e.source].valid, e.status == "ok"
        _, reason = usable(valid, it.outputs, e.value, e.variance) if ok else (None, "")
        if reason:
            which = "a value that was taken over" if e.id is None else f"evaluation {e.id} of {it.names[e.source]}"
            raise JournalError(
                f"the change cannot be accepted, because of {which}: {reason}. Exclude it first (amsbq exclude), or "
                "start a new journal"
            )
    return replace(state, fitted=None, stopped="")


def _check_categories(before: Event, it: Integrator) -> None:
    """Raise JournalError if categories differ from those of a journal, which stores only their numbers."""
    try:
        known = measure_from_dict(before["measure"]).categories
    except (KeyError, ValueError):  # only a digest is stored: samples, which have no categories
        return
    for d, labels in known.items():
        now = it.measure.categories.get(d, ())
        if now[: len(labels)] != labels:
            raise JournalError(
                f"the categories of an input were {', '.join(labels)}, but now are {', '.join(now) or 'none'}: the "
                "journal stores only their numbers, so such a change cannot be accepted; give them in the earlier "
                "order, or start a new journal"
            )


def _check_names(state: RunState, it: Integrator, inputs: Sequence[str] | None) -> None:
    """Raise JournalError if the number of outputs differs from that of a journal, or if outputs or inputs are permuted.

    A journal stores values and inputs by position, without names.
    """
    outputs = None if it.outputs is None else list(it.outputs)
    if (state.outputs is None) != (outputs is None) or len(state.outputs or ()) != len(outputs or ()):
        was, now = (f"the outputs {brief(names)}" if names else "one output" for names in (state.outputs, outputs))
        raise JournalError(
            f"the journal was recorded with {was}, but the problem now has {now}: such a change cannot be accepted; "
            "start a new journal"
        )
    for what, known, named in (("inputs", state.header.get("inputs"), inputs), ("outputs", state.outputs, outputs)):
        if _moved(known, None if named is None else list(named)):
            raise JournalError(
                f"the {what} are those of the journal in another order: pass them as {brief(known)}, so that numbers "
                f"are assigned to the right {what}"
            )


def _moved(before: Any, now: Any) -> bool:
    """Return whether an entry of a list, other than None, is now at another position."""
    old, new = ([to_json(entry) for entry in entries or ()] for entries in (before, now))
    left = {entry for entry, other in zip(old, new, strict=False) if entry != other} - {to_json(None)}
    return any(entry in left and entry != other for entry, other in zip(new, old, strict=False))
