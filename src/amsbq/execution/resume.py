"""Journals of runs: begin one, write its events, or restore an integrator to where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from ..design.accounting import StopReason
from ..design.bulk import Bulk
from ..design.integrator import Integrator
from ..outputs.estimates import AnyEstimate
from ..outputs.evaluations import Evaluation, Query
from ..serialisation import to_json
from ..simulators.answers import EvaluationLog
from ..validation import Array, Values
from .changes import described_problem, problem_changes
from .journal import AnotherRunError, Event, Journal, JournalError, JournalPath, read_journal
from .state import NONSENSE, RunState, interpreted, nonsense_error


@dataclass(frozen=True)
class LogSettings:
    """How much is written."""

    #: growth of the number of observations from one refit that is written to the next; the last one of a run is always
    #: written. Refits make up nearly all of a journal, and those between can be made again from the values.
    growth: float = 2.0


SETTINGS = LogSettings()


class EventLog:
    """Hears of all events of a run; this one keeps nothing."""

    def asked(self, query: Query, free: Sequence[float] = ()) -> None:
        """Log a query, before it is evaluated.

        ``free`` are the values at its location of the sources that are evaluated in bulk, if they are known already.
        """

    def printed(self, query: Query, log: EvaluationLog) -> None:
        """Log what an evaluation has printed, before its answer."""

    def bulk(self, made: Bulk) -> None:
        """Log evaluations in bulk, which could be made again at next to no cost."""

    def told(
        self,
        query: Query,
        value: Values,
        variance: Values,
        cost: float,
        free: Sequence[float] = (),
        gradient: Array | None = None,
    ) -> None:
        """Log an acceptable value and its final cost, before the integrator hears of it.

        ``free`` are the values at the same location of the sources that are evaluated in bulk.
        """

    def failed(self, query: Query, reason: str, cost: float) -> None:
        """Log a failure and its final cost, before the integrator hears of it."""

    def known(self, latest: int = 1) -> None:
        """Log the integral after each of so many latest answers, and the refit: they could be computed again."""

    def stopped(self, reason: StopReason, estimate: AnyEstimate | None) -> None:
        """Log the end of the run, with the integral if anything is known of it."""


class JournalLog(EventLog):
    """Writes the events of a run into its journal.

    Parameters
    ----------
    journal : Journal
        An open journal with a header.
    it : Integrator
        The integrator of the run.
    refitted_at : int
        The number of observations at the latest refit that the journal holds; 0 if it holds none.
    stopped : str
        Why the run has stopped, if that is the last event of the journal; else empty.
    """

    def __init__(self, journal: Journal, it: Integrator, refitted_at: int = 0, stopped: StopReason = "") -> None:
        self.journal, self.it = journal, it
        self._refitted_at = refitted_at
        self._stopped = stopped

    def asked(self, query: Query, free: Sequence[float] = ()) -> None:
        """Write a query to the disk."""
        content = {"source": query.source, "x": query.x, "cost": query.cost, "rate": query.rate}
        wanted = {"gradient": True} if query.gradient else {}
        decision = {"decision": query.decision} if query.decision else {}
        self._write({"event": "asked", "id": query.id, **content, **wanted, **decision, **_beside(free)})

    def printed(self, query: Query, log: EvaluationLog) -> None:
        """Write what an evaluation has printed; the answer, which follows, takes it to the disk."""
        said = {name: text for name, text in vars(log).items() if text}
        if said:
            self._write({"event": "printed", "id": query.id, **said}, durable=False)

    def bulk(self, made: Bulk) -> None:
        """Write evaluations in bulk as one event."""
        self._write({"event": "bulk", **made.to_dict()}, durable=False)

    def told(
        self,
        query: Query,
        value: Values,
        variance: Values,
        cost: float,
        free: Sequence[float] = (),
        gradient: Array | None = None,
    ) -> None:
        """Write a value to the disk."""
        content = {"value": value, "variance": variance, "cost": cost}
        slopes = {} if gradient is None else {"gradient": gradient}
        self._write({"event": "told", "id": query.id, **content, **_beside(free), **slopes})

    def failed(self, query: Query, reason: str, cost: float) -> None:
        """Write a failure to the disk."""
        self._write({"event": "failed", "id": query.id, "reason": reason, "cost": cost})

    def known(self, latest: int = 1) -> None:
        """Write the integral after each of so many latest answers, and the refit, without waiting for the disk."""
        if self.it.learner.refitted_at >= SETTINGS.growth * self._refitted_at:
            self._write_refit()
        for e in self.it.evaluations[len(self.it.evaluations) - latest :]:
            self._write({"event": "known", "id": e.id, "mean": e.mean, "std": e.std}, durable=False)

    def _write_refit(self) -> None:
        """Write the latest refit, unless the journal has it already."""
        learner = self.it.learner
        fitted = learner.fitted() if learner.refitted_at != self._refitted_at else None
        if fitted is not None:
            self._refitted_at = learner.refitted_at
            self._write({"event": "fitted", **fitted}, durable=False)

    def budget_changed(self) -> None:
        """Write the new budget of a run that is resumed to the disk."""
        self._write({"event": "resumed", "budget": self.it.budget})

    def changes_accepted(self, changes: Sequence[str], described: Event) -> None:
        """Write to the disk that the user has accepted changes of the problem, and its new description."""
        self._write({"event": "accepted", "changes": changes, **described})

    def stopped(self, reason: StopReason, estimate: AnyEstimate | None) -> None:
        """Write the end of the run to the disk, unless the journal had it already."""
        if reason != self._stopped:
            self._write_refit()
            found = {} if estimate is None else {"estimate": estimate.to_dict()}
            by_rule = self.it.stopped is None and reason != "interrupted"
            ended = {"reason": reason, "rule": by_rule, "spent": self.it.spent, "budget": self.it.budget}
            self._write({"event": "stopped", **ended, **found})

    def _write(self, event: Event, durable: bool = True) -> None:
        self.journal.write(event, durable)
        self._stopped = ""


def _beside(free: Sequence[float]) -> Event:
    """Return what an event holds of the sources that are evaluated in bulk; nothing if there are none."""
    return {"free": list(free)} if free else {}


def begin_or_resume(
    journal: Journal,
    it: Integrator,
    about: Event | None = None,
    accept_changes: bool = False,
    taken: Sequence[Evaluation] = (),
    reinstate: bool = True,
) -> JournalLog:
    """Begin a new journal, or restore an integrator to where an old one ends; return what writes further events.

    Parameters
    ----------
    journal : Journal
        An open journal.
    it : Integrator
        An integrator that was not asked for anything yet.
    about : dict, optional
        What else the header of a new journal is to hold; ``inputs`` are the names of the inputs.
    accept_changes : bool
        Whether to resume although the problem is not the one of the journal; the journal then says so. That the
        function of a source has changed which has always failed is accepted anyhow: it was mended.
    taken : list of Evaluation
        Values of another journal with which a new one begins.
    reinstate : bool
        Whether sources that were retired get another chance.
    """
    inputs = (about or {}).get("inputs")
    if journal.header is None:
        begun = {"version": version("amsbq"), "problem": described_problem(it, journal.path), "budget": it.budget}
        journal.begin({**begun, **(about or {})})
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
    state = _restored(it, journal.header, journal.events, journal.path, now if changes else None)
    if reinstate:
        it._reinstate()
    if changes:
        log = JournalLog(journal, it)
        log.changes_accepted(changes, {"problem": now, "inputs": inputs})
    else:
        refitted_at = 0 if state.fitted is None else state.fitted["n"]
        log = JournalLog(journal, it, refitted_at, "" if state.revised else state.stopped)
    if it.budget != state.budget:
        log.budget_changed()
    log.known(state.unknown)
    return log


def restore(it: Integrator, path: JournalPath, inputs: Sequence[str] | None = None) -> None:
    """Restore an integrator that was not asked for anything yet to where a journal of the same problem ends.

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
    it: Integrator, header: Event, events: Sequence[Event], path: JournalPath, changed: Event | None = None
) -> RunState:
    """Set an integrator to where a journal ends, and return that state; the problem may be another one now."""
    state = interpreted(header, events, path)
    try:
        if changed is not None:
            state = _transferred(state, it, changed)
        state.restore(it)
    except NONSENSE as error:
        raise nonsense_error(path, error) from error
    return state


def _transferred(state: RunState, it: Integrator, problem: Event) -> RunState:
    """Return a state for another problem: without hyperparameters and without a reason to stop.

    `JournalError` if the evaluations cannot be those of the problem.
    """
    n_sources, observed = len(state.sources), state.header["problem"].get("observed", len(it.learner))
    if n_sources != len(it.sources) or observed != len(it.learner):
        raise JournalError(
            f"the journal is of {n_sources} sources and {observed} observations from before, and now there are "
            f"{len(it.sources)} and {len(it.learner)}: such a change cannot be accepted; begin a new journal"
        )
    try:
        points = [query.x for query in state.queries] + [e.x for e in state.observed]
        it.measure.check_points(points or it.measure.median[None], "evaluation")
    except ValueError as error:
        raise JournalError(f"the change of the inputs cannot be accepted: {error}; begin a new journal") from None
    before = state.header["problem"]
    if _reordered(state.names, it.names) or _reordered(before.get("functions"), problem["functions"]):
        raise JournalError(
            f"the sources are those of the journal in another order: give them as {', '.join(state.names)}, so that "
            "values count for the sources that they are of"
        )
    for e in (*state.observed, *state.evaluations):
        _, reason = it.usable(e.source, e.value, e.variance) if e.status == "ok" else (None, "")
        if reason:
            which = "a value that was taken over" if e.id is None else f"evaluation {e.id} of {it.names[e.source]}"
            raise JournalError(
                f"the change cannot be accepted, because of {which}: {reason}. Exclude it first (amsbq exclude), or "
                "begin a new journal"
            )
    return replace(state, fitted=None, stopped="")


def _reordered(before: Any, now: Any) -> bool:
    """Return whether two lists have the same entries in another order."""
    old, new = ([to_json(entry) for entry in entries or ()] for entries in (before, now))
    return old != new and sorted(old) == sorted(new)
