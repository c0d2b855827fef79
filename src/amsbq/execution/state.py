"""The state of a run as its journal tells it: the one interpretation of the events, for whoever reads a journal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..design.accounting import Evaluation, Query, StopReason
from ..design.integrator import Integrator
from ..inference.estimate import Estimate
from ..validation import read_only
from .format1 import translated
from .journal import Event, JournalError, JournalPath, read_journal

#: reasons to stop that an integrator would find again with the same budget
DECIDED_AGAIN = ("budget", "exhausted")


@dataclass(frozen=True)
class RunState:
    """The state of a run at the end of its journal.

    Attributes
    ----------
    header : dict
        The header of the journal, in the form of the present format.
    queries : list of Query
        All that were asked, in order.
    evaluations : list of Evaluation
        All answers, in the order in which they were told.
    complete : bool
        Whether the last evaluation has the integral after it: not so if the process died before that was known.
    budget : float
        The latest budget, infinite if there is none.
    fitted : dict or None
        The latest refit, as `Learner.fitted` returned it.
    stopped : str
        Why the run has stopped; empty if it goes on or was killed.
    estimate : Estimate or None
        The integral at the end of a run that has stopped.
    """

    header: Event
    queries: list[Query]
    evaluations: list[Evaluation]
    complete: bool
    budget: float
    fitted: dict[str, Any] | None
    stopped: StopReason
    estimate: Estimate | None

    @property
    def sources(self) -> list[dict[str, Any]]:
        """Name, cost, noise and valid range of each source."""
        described: list[dict[str, Any]] = self.header["problem"]["sources"]
        return described

    @property
    def names(self) -> list[str]:
        """Names of the sources."""
        return [source["name"] for source in self.sources]

    @property
    def pending(self) -> list[Query]:
        """The queries that were asked and not answered."""
        answered = {evaluation.id for evaluation in self.evaluations}
        return [query for query in self.queries if query.id not in answered]

    @classmethod
    def from_events(cls, header: Event, events: Sequence[Event]) -> RunState:
        """Return the state after all events of a journal of any format.

        ValueError, KeyError or TypeError if the events cannot have happened.
        """
        if header["format"] == 1:
            header, events = translated(header, events)
        queries = {event["id"]: _query(event) for event in events if event["event"] == "asked"}
        known = {event["id"]: event for event in events if event["event"] == "known"}
        answers = [event for event in events if event["event"] in ("told", "failed")]
        ids = [event["id"] for event in answers]
        if len(set(ids)) < len(ids) or not set(ids) <= queries.keys():
            raise ValueError("a query was answered that was not pending")
        last = events[-1] if events and events[-1]["event"] == "stopped" else {}
        fits = [event for event in events if event["event"] == "fitted"]
        estimate = last.get("estimate")
        return cls(
            header,
            list(queries.values()),
            [_evaluation(event, queries[event["id"]], known.get(event["id"], {})) for event in answers],
            complete=not ids or ids[-1] in known,
            budget=[event["budget"] for event in (header, *events) if "budget" in event][-1],
            fitted=fits[-1] if fits else None,
            stopped=last.get("reason", ""),
            estimate=None if estimate is None else Estimate.from_dict(estimate),
        )

    def restore(self, it: Integrator) -> None:
        """Set an integrator of the same problem, which was not asked for anything yet, to this state.

        A reason to stop that the integrator would find again is restored if the budget is the same.
        """
        stopped = self.stopped if self.stopped in DECIDED_AGAIN and self.budget == it.budget else None
        it._restore(self.queries, self.evaluations, self.fitted, stopped, self.complete)


def read_state(path: JournalPath) -> RunState:
    """Return the state of a run by its journal; nothing is locked, repaired or evaluated."""
    return interpreted(*read_journal(path), path)


def interpreted(header: Event, events: Sequence[Event], path: JournalPath) -> RunState:
    """Return the state after all events of a journal, or raise a JournalError that names the file."""
    try:
        return RunState.from_events(header, events)
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise JournalError(f"{path} tells of something that cannot have happened: {error}") from error


def _query(event: Event) -> Query:
    x = read_only(np.array(event["x"], dtype=float))
    return Query(event["id"], event["source"], x, event["cost"], event["rate"])


def _evaluation(event: Event, query: Query, known: Event) -> Evaluation:
    told = event["event"] == "told"
    return Evaluation(
        query.id,
        query.source,
        query.x,
        value=event["value"] if told else math.nan,
        variance=event["variance"] if told else 0.0,
        cost=event["cost"],
        status="ok" if told else "failed",
        reason="" if told else event["reason"],
        mean=known.get("mean", math.nan),
        std=known.get("std", math.nan),
    )
