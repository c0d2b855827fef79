"""Journals of runs: begin one, write its events, or restore an integrator to where it ends."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

from ..design.accounting import Query, StopReason
from ..design.integrator import Integrator
from ..design.sources import Source
from ..gp.dictionaries import gp_from_dict, gp_to_dict
from ..gp.posterior import MultiSourceGP
from ..inference.estimate import Estimate
from ..measures.adapters import measure_from_dict
from ..serialisation import from_json, to_json
from .format1 import described
from .journal import Event, Journal, JournalError, JournalPath, read_journal
from .state import RunState, interpreted


class EventLog:
    """Hears of all events of a run; this one keeps nothing."""

    def asked(self, query: Query) -> None:
        """Log a query, before it is evaluated."""

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
    """

    def __init__(self, journal: Journal, it: Integrator, refitted_at: int = 0) -> None:
        self.journal, self.it = journal, it
        self._refitted_at = refitted_at
        self._had_stopped = it.stopped is not None

    def asked(self, query: Query) -> None:
        """Write a query to the disk."""
        content = {"source": query.source, "x": query.x, "cost": query.cost, "rate": query.rate}
        self.journal.write({"event": "asked", "id": query.id, **content})

    def told(self, query: Query, value: float, variance: float, cost: float) -> None:
        """Write a value to the disk."""
        self.journal.write({"event": "told", "id": query.id, "value": value, "variance": variance, "cost": cost})

    def failed(self, query: Query, reason: str, cost: float) -> None:
        """Write a failure to the disk."""
        self.journal.write({"event": "failed", "id": query.id, "reason": reason, "cost": cost})

    def known(self) -> None:
        """Write the integral after the latest answer, and the refit that it needed, without waiting for the disk."""
        latest, learner = self.it.evaluations[-1], self.it.learner
        if learner.refitted_at != self._refitted_at:
            self._refitted_at, fitted = learner.refitted_at, learner.fitted()
            if fitted is not None:
                self.journal.write({"event": "fitted", **fitted}, durable=False)
        self.journal.write({"event": "known", "id": latest.id, "mean": latest.mean, "std": latest.std}, durable=False)

    def stopped(self, reason: StopReason, estimate: Estimate | None) -> None:
        """Write the end of the run to the disk, unless the journal had it already."""
        if not self._had_stopped:
            found = {} if estimate is None else {"estimate": estimate.to_dict()}
            ended = {"reason": reason, "spent": self.it.spent, "budget": self.it.budget}
            self.journal.write({"event": "stopped", **ended, **found})


def begin_or_resume(journal: Journal, it: Integrator, about: Event | None = None) -> JournalLog:
    """Begin a new journal, or restore an integrator to where an old one ends; return what writes further events.

    Parameters
    ----------
    journal : Journal
        An open journal.
    it : Integrator
        An integrator that was not asked for anything yet.
    about : dict, optional
        What else the header of a new journal is to hold.
    """
    if journal.header is None:
        begun = {"version": version("amsbq"), "problem": described_problem(it), "budget": it.budget}
        journal.begin({**begun, **(about or {})})
        return JournalLog(journal, it)
    state = _restored(it, journal.header, journal.events, journal.path)
    log = JournalLog(journal, it, 0 if state.fitted is None else state.fitted["n"])
    if it.budget != state.budget:
        journal.write({"event": "resumed", "budget": it.budget})
    if not state.complete:
        log.known()
    return log


def restore(it: Integrator, path: JournalPath) -> None:
    """Restore an integrator that was not asked for anything yet to where a journal of the same problem ends."""
    _restored(it, *read_journal(path), path)


def _restored(it: Integrator, header: Event, events: Sequence[Event], path: JournalPath) -> RunState:
    now = described_problem(it)
    if header["format"] == 1:
        now = described(now, it)
    different = list(_differences(header.get("problem", {}), from_json(to_json(now)), ""))
    if different:
        raise JournalError(
            f"{path} is the journal of another run, where {'; '.join(different)}. Choose another journal, or "
            "move this one away"
        )
    state = interpreted(header, events, path)
    try:
        state.restore(it)
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise JournalError(f"{path} holds content that cannot be used: {type(error).__name__}: {error}") from error
    return state


def described_problem(it: Integrator) -> Event:
    """Return everything that the choices of a run depend on, as dictionaries, lists, text and numbers."""
    return {
        "sources": [_described_source(name, source) for name, source in zip(it.names, it.sources, strict=True)],
        "measure": it.measure.to_dict(),
        "model": gp_to_dict(it.model) if isinstance(it.model, MultiSourceGP) else it.model_name,
        "acquisition": it.acquisition,
        "seed": it.seed,
        "initial": None if it.initial is None else [[choice.source, choice.x.tolist()] for choice in it.initial],
        "observed": len(it.learner),  # observations from before the journal, which it does not hold
    }


def _described_source(name: str, source: Source) -> dict[str, Any]:
    cost = f"function {getattr(source.cost, '__name__', 'of x')}" if callable(source.cost) else source.cost
    return {"name": name, "cost": cost, "noise": source.noise, "valid": source.valid}


def _differences(before: Any, now: Any, where: str) -> Iterator[str]:
    """Yield what differs between two descriptions of a problem, in words."""
    if isinstance(before, dict) and isinstance(now, dict) and "class" not in {**before, **now}:
        for key in {**before, **now}:
            yield from _differences(before.get(key), now.get(key), f"{where} {key}".strip())
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now) and where == "sources":
        for number, (old, new) in enumerate(zip(before, now, strict=True)):
            yield from _differences(old, new, f"source {number}'s")
    elif before != now:
        old, new = _text(before), _text(now)
        if old == new:  # such as two sets of samples
            old, new = (f"{old} with checksum {zlib.crc32(to_json(one).encode()):08x}" for one in (before, now))
        yield f"{where} was {old}, and now is {new}"


def _text(value: Any) -> str:
    """Return a part of a description as a user would write it, or a short text for it."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        try:
            return repr(gp_from_dict(value) if value["class"] == "MultiSourceGP" else measure_from_dict(value))
        except ValueError:
            return str(value["class"])
    return repr(value)
