"""Journals of runs: begin one, write its events, or restore an integrator to where it ends."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..design.accounting import Query, StopReason
from ..design.integrator import Integrator
from ..design.sources import Source
from ..gp.dictionaries import gp_from_dict, gp_to_dict
from ..gp.posterior import MultiSourceGP
from ..inference.estimate import Estimate
from ..measures.adapters import measure_from_dict
from ..serialisation import from_json, to_json
from ..simulators.answers import EvaluationLog
from .format1 import described
from .journal import Event, Journal, JournalError, JournalPath, read_journal
from .state import NONSENSE, RunState, interpreted, nonsense_error

#: lists in the description of a problem that have an entry for each source, with what an entry is called
PER_SOURCE = {"sources": "", "functions": " function"}


class EventLog:
    """Hears of all events of a run; this one keeps nothing."""

    def asked(self, query: Query) -> None:
        """Log a query, before it is evaluated."""

    def printed(self, query: Query, log: EvaluationLog) -> None:
        """Log what an evaluation has printed, before its answer."""

    def told(self, query: Query, value: float, variance: float, cost: float) -> None:
        """Log an acceptable value and its final cost, before the integrator hears of it."""

    def failed(self, query: Query, reason: str, cost: float) -> None:
        """Log a failure and its final cost, before the integrator hears of it."""

    def known(self) -> None:
        """Log the integral after the latest answer, and the refit that it needed: both could be computed again."""

    def stopped(self, reason: StopReason, estimate: Estimate | None) -> None:
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

    def asked(self, query: Query) -> None:
        """Write a query to the disk."""
        content = {"source": query.source, "x": query.x, "cost": query.cost, "rate": query.rate}
        self._write({"event": "asked", "id": query.id, **content})

    def printed(self, query: Query, log: EvaluationLog) -> None:
        """Write what an evaluation has printed; the answer, which follows, takes it to the disk."""
        said = {name: text for name, text in vars(log).items() if text}
        if said:
            self._write({"event": "printed", "id": query.id, **said}, durable=False)

    def told(self, query: Query, value: float, variance: float, cost: float) -> None:
        """Write a value to the disk."""
        self._write({"event": "told", "id": query.id, "value": value, "variance": variance, "cost": cost})

    def failed(self, query: Query, reason: str, cost: float) -> None:
        """Write a failure to the disk."""
        self._write({"event": "failed", "id": query.id, "reason": reason, "cost": cost})

    def known(self) -> None:
        """Write the integral after the latest answer, and the refit that it needed, without waiting for the disk."""
        latest, learner = self.it.evaluations[-1], self.it.learner
        if learner.refitted_at != self._refitted_at:
            self._refitted_at, fitted = learner.refitted_at, learner.fitted()
            if fitted is not None:
                self._write({"event": "fitted", **fitted}, durable=False)
        self._write({"event": "known", "id": latest.id, "mean": latest.mean, "std": latest.std}, durable=False)

    def budget_changed(self) -> None:
        """Write the new budget of a run that is resumed to the disk."""
        self._write({"event": "resumed", "budget": self.it.budget})

    def changes_accepted(self, changes: Sequence[str], described: Event) -> None:
        """Write to the disk that the user has accepted changes of the problem, and its new description."""
        self._write({"event": "accepted", "changes": changes, **described})

    def stopped(self, reason: StopReason, estimate: Estimate | None) -> None:
        """Write the end of the run to the disk, unless the journal had it already."""
        if reason != self._stopped:
            found = {} if estimate is None else {"estimate": estimate.to_dict()}
            by_rule = self.it.stopped is None and reason != "interrupted"
            ended = {"reason": reason, "rule": by_rule, "spent": self.it.spent, "budget": self.it.budget}
            self._write({"event": "stopped", **ended, **found})

    def _write(self, event: Event, durable: bool = True) -> None:
        self.journal.write(event, durable)
        self._stopped = ""


def begin_or_resume(
    journal: Journal, it: Integrator, about: Event | None = None, accept_changes: bool = False
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
        Whether to resume although the problem is not the one of the journal; the journal then says so.
    """
    inputs = (about or {}).get("inputs")
    if journal.header is None:
        begun = {"version": version("amsbq"), "problem": described_problem(it, journal.path), "budget": it.budget}
        journal.begin({**begun, **(about or {})})
        return JournalLog(journal, it)
    now = described_problem(it, journal.path)
    changes = _changes(it, now, inputs, journal.header, journal.events)
    if changes and not accept_changes:
        raise _another_run_error(journal.path, changes)
    state = _restored(it, journal.header, journal.events, journal.path, bool(changes))
    it._reinstate()
    if changes:
        log = JournalLog(journal, it)
        log.changes_accepted(changes, {"problem": now, "inputs": inputs})
    else:
        log = JournalLog(journal, it, 0 if state.fitted is None else state.fitted["n"], state.stopped)
    if it.budget != state.budget:
        log.budget_changed()
    if not state.complete:
        log.known()
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
    changes = _changes(it, described_problem(it, path), inputs, header, events)
    if changes:
        raise _another_run_error(path, changes)
    _restored(it, header, events, path, False)


def _another_run_error(path: JournalPath, changes: Sequence[str]) -> JournalError:
    return JournalError(
        f"{path} is the journal of another run, where {'; '.join(changes)}. Begin a new journal (--fresh), or, if the "
        "evaluations in this one still count, accept the changes: accept_changes=True, or --accept-changes with run "
        "and resume"
    )


def _restored(it: Integrator, header: Event, events: Sequence[Event], path: JournalPath, changed: bool) -> RunState:
    """Set an integrator to where a journal ends, and return that state; ``changed`` if the problem is another one."""
    state = interpreted(header, events, path)
    try:
        if changed:
            state = _transferred(state, it)
        state.restore(it)
    except NONSENSE as error:
        raise nonsense_error(path, error) from error
    return state


def _transferred(state: RunState, it: Integrator) -> RunState:
    """Return a state for another problem: without hyperparameters and without a reason to stop."""
    n_sources, observed = len(state.sources), state.header["problem"].get("observed", len(it.learner))
    if n_sources != len(it.sources) or observed != len(it.learner):
        raise JournalError(
            f"the journal is of {n_sources} sources and {observed} observations from before, and now there are "
            f"{len(it.sources)} and {len(it.learner)}: such a change cannot be accepted; begin a new journal"
        )
    try:
        it.measure.check_points([query.x for query in state.queries] or it.measure.median[None], "evaluation")
    except ValueError as error:
        raise JournalError(f"the change of the inputs cannot be accepted: {error}; begin a new journal") from None
    return replace(state, fitted=None, stopped="")


def _changes(
    it: Integrator, now: Event, inputs: Sequence[str] | None, header: Event, events: Sequence[Event]
) -> list[str]:
    """Return what has changed in a problem since it was last described in a journal, in words.

    What the journal does not record is not compared.
    """
    accepted = [event for event in events if event["event"] == "accepted"]
    before = accepted[-1] if accepted else header
    if before is header and header["format"] == 1:
        now = described(now, it)
    problem, named = before.get("problem"), before.get("inputs") or header.get("inputs")
    if not isinstance(problem, dict):
        return []  # nonsense, of which the reader of the state will tell
    compared = from_json(to_json({key: value for key, value in now.items() if key in problem}))
    for key in ("measure", "model"):
        compared[key] = _recorded(compared.get(key), problem.get(key))
    names = [] if named is None or inputs is None else list(_differences(named, list(inputs), "inputs"))
    return [*names, *_differences(problem, compared, "")]


def _recorded(now: Any, before: Any) -> Any:
    """Return a description without the keys that an older one does not have."""
    if isinstance(now, dict) and isinstance(before, dict):
        return {key: _recorded(value, before[key]) for key, value in now.items() if key in before}
    if isinstance(now, list) and isinstance(before, list) and len(now) == len(before):
        return [_recorded(*pair) for pair in zip(now, before, strict=True)]
    return now


def described_problem(it: Integrator, path: JournalPath) -> Event:
    """Return everything that the values and the choices of a run depend on, as dictionaries, lists, text and numbers.

    Folders are relative to that of the journal, ``path``: both may be moved together.
    """
    return {
        "sources": [_described_source(name, source) for name, source in zip(it.names, it.sources, strict=True)],
        "functions": [_described_function(source, Path(path)) for source in it.sources],
        "measure": it.measure.to_dict(),
        "model": gp_to_dict(it.model) if isinstance(it.model, MultiSourceGP) else it.model_name,
        "acquisition": it.acquisition,
        "seed": it.seed,
        "initial": None if it.initial is None else [[choice.source, choice.x.tolist()] for choice in it.initial],
        "order": it.order,
        "observed": len(it.learner),  # observations from before the journal, which it does not hold
    }


def _described_source(name: str, source: Source) -> dict[str, Any]:
    cost = f"function {getattr(source.cost, '__name__', 'of x')}" if callable(source.cost) else source.cost
    return {"name": name, "cost": cost, "noise": source.noise, "valid": source.valid}


def _described_function(source: Source, path: Path) -> dict[str, Any] | None:
    described = source.definition()
    if described is not None and "folder" in described:
        described = {**described, "folder": os.path.relpath(described["folder"], path.resolve().parent)}
    return described


def _differences(before: Any, now: Any, where: str) -> Iterator[str]:
    """Yield what differs between two descriptions of a problem, in words."""
    if isinstance(before, dict) and isinstance(now, dict) and "class" not in {**before, **now}:
        for key in {**before, **now}:
            yield from _differences(before.get(key), now.get(key), f"{where} {key}".strip())
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now) and where in PER_SOURCE:
        for number, (old, new) in enumerate(zip(before, now, strict=True)):
            yield from _differences(old, new, f"source {number}'s{PER_SOURCE[where]}")
    elif before != now and to_json(before) != to_json(now):  # NaN is not equal to itself
        old, new = _text(before), _text(now)
        if old == new:  # such as two sets of samples
            old, new = (f"{old} with checksum {zlib.crc32(to_json(one).encode()):08x}" for one in (before, now))
        yield f"{where} was {old}, and now is {new}"


def _text(value: Any) -> str:
    """Return a part of a description as a user would write it, or a short text for it."""
    if isinstance(value, list) and any(isinstance(entry, list | dict) for entry in value):
        return f"a list of {len(value)}"
    if isinstance(value, dict) and "class" in value:
        try:
            return repr(gp_from_dict(value) if value["class"] == "MultiSourceGP" else measure_from_dict(value))
        except ValueError:
            return str(value["class"])
    return repr(value)
