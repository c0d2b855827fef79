"""From a journal back to the state in which a run was left, and from a run into its journal."""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ..design.accounting import Query
from ..design.integrator import Integrator
from ..design.sources import Source
from ..inference.estimate import Estimate
from ..measures.base import Measure
from ..measures.empirical import Empirical
from ..validation import read_only
from .journal import Journal, JournalError

MOST_SAMPLES = 100_000  #: numbers that a journal may begin with


def description(it: Integrator, initial: Any = None) -> dict[str, Any]:
    """What a run is about, as far as its choices depend on it and it can be told."""
    return {
        "sources": [_source(name, source) for name, source in zip(it.names, it.sources, strict=True)],
        "measure": _measure(it.measure),
        "model": it.model_name,
        "acquisition": it.acquisition,
        "seed": it.seed,
        "initial": None if initial is None else [[int(s), np.ravel(x).tolist()] for s, x in initial],
    }


def _source(name: str, source: Source) -> dict[str, Any]:
    cost = f"function {getattr(source.cost, '__name__', 'of x')}" if callable(source.cost) else source.cost
    valid = None if source.valid is None else list(source.valid)
    return {"name": name, "cost": cost, "noise": source.noise, "valid": valid}


def _measure(measure: Measure) -> str:
    if isinstance(measure, Empirical):
        digest = zlib.crc32(measure.samples.tobytes() + measure.weights.tobytes())
        return f"{measure!r}, checksum {digest:08x}"
    return repr(measure)


def _samples(measure: Measure) -> dict[str, Any]:
    """Those of a measure that consists of them, unless they are very many: its name does not tell them."""
    if isinstance(measure, Empirical) and measure.samples.size <= MOST_SAMPLES:
        return {"samples": measure.samples, "weights": measure.weights}
    return {}


def begin_or_resume(
    journal: Journal, it: Integrator, initial: Any = None, about: dict[str, Any] | None = None
) -> Recorder:
    """Begin a new journal, or bring the integrator to where an old one ends; and what goes on writing it."""
    now = description(it, initial)
    if journal.header is None:
        also = {**_samples(it.measure), **(about or {})}
        journal.begin({"version": version("amsbq"), "problem": now, "budget": it.budget, **also})
        return Recorder(journal, it)
    bring_to_its_end(it, journal.header, journal.events, journal.path, initial)
    recorder = Recorder(journal, it)
    budgets = [entry["budget"] for entry in (journal.header, *journal.events) if "budget" in entry]
    if it.budget != (math.inf if budgets[-1] is None else budgets[-1]):
        journal.write({"event": "resumed", "budget": it.budget})
    known = {event["id"] for event in journal.events if event["event"] == "known"}
    if it.evaluations and it.evaluations[-1].id not in known:  # it ended just before that could be said
        it.note_what_is_known()
        recorder.known()
    return recorder


def bring_to_its_end(
    it: Integrator, header: dict[str, Any], events: Sequence[dict[str, Any]], path: Path, initial: Any = None
) -> None:
    """Tell an integrator everything that a journal tells, if that is of a run like it."""
    different = list(_differences(header.get("problem", {}), description(it, initial), ""))
    if different:
        raise JournalError(
            f"{path} is the journal of another run, where {'; '.join(different)}. Choose another journal, or "
            "move this one away"
        )
    try:
        replay(it, events)
    except (KeyError, ValueError, TypeError) as error:
        raise JournalError(f"{path} tells of something that cannot have happened: {error}") from None


def _differences(before: Any, now: Any, where: str) -> Any:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in {**before, **now}:
            yield from _differences(before.get(key), now.get(key), f"{where} {key}".strip())
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now) and where == "sources":
        for number, (old, new) in enumerate(zip(before, now, strict=True)):
            yield from _differences(old, new, f"source {number}'s")
    elif before != now:
        yield f"{where} was {_short(before)}, and now is {_short(now)}"


def _short(value: Any) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return repr(value)


def replay(it: Integrator, events: Sequence[dict[str, Any]]) -> None:
    """Through the same methods as when it happened, but without deciding or learning anything again."""
    place: dict[int, int] = {}  # of an evaluation, by the id of its query
    stopped: dict[str, Any] = {}
    learned = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were there the first time
        it.replaying = True
        for event in events:
            kind = event["event"]
            stopped = event if kind == "stopped" else {}
            if kind == "asked":
                rate = math.nan if event["rate"] is None else event["rate"]
                x = read_only(np.array(event["x"], dtype=float))
                it.reissue(Query(event["id"], event["source"], x, event["cost"], rate))
            elif kind in ("told", "failed"):
                query = it.query(event["id"])
                if kind == "told":
                    it.tell(query, event["value"], event["variance"], event["cost"])
                else:
                    it.fail(query, event["reason"], event["cost"])
                place[query.id] = len(it.evaluations) - 1
            elif kind == "known":
                at = place[event["id"]]
                known = [math.nan if event[key] is None else event[key] for key in ("mean", "std")]
                it.evaluations[at] = replace(it.evaluations[at], mean=known[0], std=known[1])
            elif kind == "fitted":
                learned = event
        it.replaying = False
    if learned is not None:
        it.learner.recall(learned)
    budget = math.inf if stopped.get("budget") is None else stopped["budget"]
    if stopped.get("reason") in ("budget", "exhausted") and budget == it.budget:
        it.stopped = stopped["reason"]  # it would decide so again


class Recorder:
    """Writes what happens to an integrator into a journal, before it happens where that matters."""

    def __init__(self, journal: Journal | None, it: Any) -> None:
        self.journal, self.it = journal, it
        self._learned_from = 0 if journal is None else it.learner.learned_from
        self._was_over = journal is not None and it.stopped is not None

    def asked(self, query: Query) -> None:
        """Before the query is evaluated."""
        self._write("asked", query.id, source=query.source, x=query.x, cost=query.cost, rate=query.rate)

    def told(self, query: Query, value: float, variance: float, cost: float | None) -> None:
        """Before the integrator hears of it."""
        self._write("told", query.id, value=value, variance=variance, cost=cost)

    def failed(self, query: Query, reason: str, cost: float | None) -> None:
        """Before the integrator hears of it."""
        self._write("failed", query.id, reason=reason, cost=cost)

    def known(self) -> None:
        """After it has heard: what it made of it, which could be made again."""
        if self.journal is None:
            return
        latest, learner = self.it.evaluations[-1], self.it.learner
        if learner.learned_from != self._learned_from:
            self._learned_from, learned = learner.learned_from, learner.learned()
            if learned:
                self.journal.write({"event": "fitted", **learned}, durable=False)
        self.journal.write({"event": "known", "id": latest.id, "mean": latest.mean, "std": latest.std}, durable=False)

    def stopped(self, reason: str, estimate: Estimate | None) -> None:
        """At the end, with what is known then."""
        if self.journal is not None and not self._was_over:
            found = {} if estimate is None else {"estimate": estimate.plain()}
            ended = {"reason": reason, "spent": self.it.spent, "budget": self.it.budget}
            self.journal.write({"event": "stopped", **ended, **found})

    def _write(self, kind: str, query: int, **content: Any) -> None:
        if self.journal is not None:
            self.journal.write({"event": kind, "id": query, **content})
