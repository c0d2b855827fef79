"""The state of a run according to its journal: the only interpretation of events, for all readers."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from ..certificates.certificate import Certificate
from ..certificates.plan import Plan
from ..common.validation import numbers_text
from ..design.bulk import Bulk
from ..design.decisions import restore
from ..design.evaluations import EXCLUDED, Evaluation, Query, StopReason
from ..design.labels import Labels
from ..posterior.estimates import AnyEstimate, estimate_from_dict
from ..simulators.answers import one_line
from .format1 import translated
from .integrator import Integrator
from .journal import Event, JournalError, JournalPath, beside_of, gradient_of, numbers_of, read_journal

#: reasons to stop that an integrator would find again with the same budget
DECIDED_AGAIN = ("budget", "exhausted")

#: errors raised while reading inconsistent events
MALFORMED = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError)

#: the required fields of each kind of event, with their types
FIELDS: dict[str, dict[str, type]] = {
    "asked": {"id": int, "source": int, "x": list, "cost": float, "rate": float},
    "bulk": {"source": int, "n": int, "mean": float, "std": float, "cost": float, "X": list, "values": list},
    "told": {"id": int, "value": float, "variance": float, "cost": float},
    "failed": {"id": int, "reason": str, "cost": float},
    "fitted": {"n": int, "hyperparameters": dict, "warnings": list},
    "known": {"id": int, "mean": float, "std": float},
    "observed": {"source": int, "x": list, "value": float, "variance": float},
    "excluded": {"id": int, "reason": str},
    "corrected": {"id": int, "value": float, "variance": float},
    "resumed": {"budget": float},
    "accepted": {"problem": dict},
    "stopped": {"reason": str, "budget": float},
    "certificate": {"terms": list, "X": list, "seed": int, "budget": float},
    "certified": {"id": int, "cost": float},
}

#: the fields that are lists with several outputs
BY_OUTPUT = ("value", "variance", "mean", "std")

#: events of certificates, which are no part of the run
CERTIFICATES = ("certificate", "certified")

#: the event that changes the title, units or labels of a resumed run
LABELLED = "labelled"

#: events that revise an evaluation
REVISIONS = ("excluded", "corrected")


@dataclass(frozen=True)
class RunState:
    """The state of a run at the end of its journal.

    Attributes
    ----------
    header : dict
        The header of the journal, in the current format.
    queries : list of Query
        All queries, in order.
    bulk : list of Bulk
        Evaluations in bulk.
    observed : list of Evaluation
        Values taken from another journal.
    evaluations : list of Evaluation
        All answers, in the order in which they were reported, with the user's revisions.
    unknown : int
        The number of evaluations at the end that have no estimate of the integral: those reported while no process was
        running, and the one after which the process died before computing the estimate.
    budget : float
        The latest budget, infinite if there is none.
    fitted : dict or None
        The latest refit, as `Learner.fitted` returned it.
    stopped : str
        Why the run has stopped; empty if it is running or was killed.
    by_rule : bool
        Whether a stop rule has stopped it.
    revised : bool
        Whether the last events are revisions by the user: the integral must then be updated.
    estimate, target : Estimate or None
        The integral at the end of a run that has stopped, and the target of the run if it is another quantity.
    certificates : list of Certificate
        The certificates, from fresh evaluations that the run does not use.
    """

    header: Event
    queries: list[Query]
    bulk: list[Bulk]
    observed: list[Evaluation]
    evaluations: list[Evaluation]
    unknown: int
    budget: float
    fitted: dict[str, Any] | None
    stopped: StopReason
    by_rule: bool
    revised: bool
    estimate: AnyEstimate | None
    target: AnyEstimate | None = None
    certificates: Sequence[Certificate] = ()

    @property
    def outputs(self) -> list[str] | None:
        """Names of the outputs, if there are several."""
        return cast(list[str] | None, self.header["problem"].get("outputs"))

    @property
    def labels(self) -> Labels:
        """The title of the run, and the labels and units of inputs, outputs and costs."""
        return Labels.from_dict(self.header.get("labels", {}))

    @property
    def sources(self) -> list[dict[str, Any]]:
        """Name, cost, noise and valid range of each source."""
        return cast(list[dict[str, Any]], self.header["problem"]["sources"])

    @property
    def names(self) -> list[str]:
        """Names of the sources."""
        return [source["name"] for source in self.sources]

    @property
    def pending(self) -> list[Query]:
        """The queries without an answer."""
        answered = {evaluation.id for evaluation in self.evaluations}
        return [query for query in self.queries if query.id not in answered]

    @classmethod
    def from_events(cls, header: Event, events: Sequence[Event]) -> RunState:
        """Return the state after all events in a journal of any version; raise one of `MALFORMED` if they conflict.

        Events of an unknown kind are ignored.
        """
        if header["format"] == 1:
            header, events = translated(header, events)
        accepted = [number for number, event in enumerate(events) if event["event"] == "accepted"]
        if accepted:
            latest = events[accepted[-1]]
            header = {**header, **{key: latest[key] for key in ("problem", "inputs") if latest.get(key) is not None}}
        labels = [event["labels"] for event in events if event["event"] == LABELLED]
        header = {**header, "labels": labels[-1]} if labels else header
        _check_header(header)
        for event in events:
            _check_fields(event, header["problem"].get("outputs"))
        certificates = _certificates([event for event in events if event["event"] in CERTIFICATES], header)
        events = [event for event in events if event["event"] not in (*CERTIFICATES, LABELLED)]
        accepted = [number for number, event in enumerate(events) if event["event"] == "accepted"]
        queries = _queries([event for event in events if event["event"] == "asked"], header)
        known = {event["id"]: event for event in events if event["event"] == "known"}
        answers = [event for event in events if event["event"] in ("told", "failed")]
        ids = [event["id"] for event in answers]
        if len(set(ids)) < len(ids) or not set(ids) <= queries.keys():
            raise ValueError("a query was answered that was not pending")
        revisions = [number for number, event in enumerate(events) if event["event"] in REVISIONS]
        if not {events[number]["id"] for number in revisions} <= set(ids):
            raise ValueError("an evaluation was revised that was not made")
        ended = [event for event in events if event["event"] not in REVISIONS][-1:]
        last = ended[0] if ended and ended[0]["event"] == "stopped" else {}
        revised = bool(events) and events[-1]["event"] in REVISIONS
        # hyperparameters before an accepted change may belong to another model, or to other values
        fits = [event for event in events[max([0, *accepted, *revisions]) :] if event["event"] == "fitted"]
        estimate, target = (None if revised else last.get(key) for key in ("estimate", "target"))
        revision = {events[number]["id"]: events[number] for number in revisions}
        return cls(
            header,
            list(queries.values()),
            [_bulk(event, header) for event in events if event["event"] == "bulk"],
            [_observed(event, header) for event in events if event["event"] == "observed"],
            [_revised(_evaluation(event, queries[event["id"]], known), revision.get(event["id"])) for event in answers],
            unknown=next((n for n, number in enumerate(reversed(ids)) if number in known), len(ids)),
            budget=[event["budget"] for event in (header, *events) if "budget" in event][-1],
            fitted=fits[-1] if fits else None,
            stopped=last.get("reason", ""),
            by_rule=bool(last.get("rule")),
            revised=revised,
            estimate=None if estimate is None else estimate_from_dict(estimate),
            target=None if target is None else estimate_from_dict(target),
            certificates=certificates,
        )

    def restore(self, it: Integrator) -> None:
        """Set a fresh integrator of the same problem to this state.

        A reason to stop that the integrator itself would find again is restored if the budget is the same.
        """
        again = self.stopped in DECIDED_AGAIN and not self.by_rule and self.budget == it.budget
        stopped = self.stopped if again else None
        for e in self.observed:
            it.observe(e.source, e.x, e.value, e.variance, e.gradient)
        restore(it, self.queries, self.evaluations, self.fitted, stopped, self.unknown, self.bulk)


def read_state(path: JournalPath) -> RunState:
    """Return the state of a run from its journal; nothing is locked, repaired or evaluated."""
    return interpreted(*read_journal(path), path)


def interpreted(header: Event, events: Sequence[Event], path: JournalPath) -> RunState:
    """Return the state after all events of a journal, or raise a JournalError that names the file."""
    try:
        return RunState.from_events(header, events)
    except MALFORMED as error:
        raise malformed_error(path, error) from error


def malformed_error(path: JournalPath, error: Exception) -> JournalError:
    """Return the error to raise for a journal whose lines are intact but whose content is inconsistent."""
    what = f"there is no {error}" if isinstance(error, KeyError) else one_line(error)
    return JournalError(f"{path} records something that cannot have happened: {what}")


def _check_header(header: Event) -> None:
    """Raise one of `MALFORMED` unless a header has all required entries."""
    sources, inputs = header["problem"]["sources"], header.get("inputs")
    if not isinstance(sources, list) or not sources:
        raise ValueError("a run without sources")
    for source in sources:
        if not isinstance(source["name"], str):
            raise TypeError(f"a source is named {source['name']!r}")
    if not _is(header["budget"], float) or not header["budget"] > 0:
        raise ValueError(f"a budget of {header['budget']!r}")
    if inputs is not None and not (isinstance(inputs, list) and all(isinstance(name, str) for name in inputs)):
        raise TypeError(f"the inputs are named {inputs!r}")
    Labels.from_dict(header.get("labels", {}))


def _check_fields(event: Event, outputs: Sequence[str] | None) -> None:
    """Raise one of `MALFORMED` unless an event has the fields of its kind, with valid values.

    With several outputs, numbers for each output are lists.
    """
    kind = event["event"]
    for key, wanted in FIELDS.get(kind, {}).items():
        several = outputs is not None and key in BY_OUTPUT and isinstance(event[key], list)
        if not all(_is(value, wanted) for value in (event[key] if several else [event[key]])):
            raise TypeError(f"{key} of an event {kind!r} is {event[key]!r}")
    if not all(0 <= event[key] < math.inf for key in ("cost", "decision") if key in event):
        raise ValueError(f"a cost of an event {kind!r} is negative or infinite")
    if kind in ("told", "observed", "corrected"):
        value, variance = np.array(event["value"]), np.array(event["variance"])
        each_has_both = value.shape == variance.shape == (() if outputs is None else (len(outputs),))
        known = not np.isinf(value).any() and not np.isnan(value).all()
        if not (each_has_both and known and ((variance >= 0) & (variance < math.inf)).all()):
            raise ValueError(f"a value of {event['value']} with variance {event['variance']}")


def _is(value: Any, wanted: type) -> bool:
    """Return whether a value has a type; whole numbers count as floats if they fit, but booleans do not."""
    if wanted is float and type(value) is int:
        return abs(value) <= sys.float_info.max
    return isinstance(value, wanted) and not isinstance(value, bool)


def _queries(asked: Sequence[Event], header: Event) -> dict[int, Query]:
    """Return the queries of events "asked" by id; a duplicated line counts once."""
    n_sources, inputs = len(header["problem"]["sources"]), header.get("inputs")
    dim = len(inputs) if inputs else len(asked[0]["x"]) if asked else 0
    queries: dict[int, Query] = {}
    latest = -1
    for event in asked:
        x, more = numbers_of(event["x"]), (bool(event.get("gradient")), event.get("decision", 0.0))
        query = Query(event["id"], event["source"], x, event["cost"], event["rate"], *more)
        if query.x.shape != (dim,) or not np.isfinite(query.x).all() or not 0 <= query.source < n_sources:
            raise ValueError(f"query {query.id} is for x = {event['x']} of source {query.source}")
        before = queries.setdefault(query.id, query)
        if before is not query and before.source == query.source and np.array_equal(before.x, query.x):
            continue
        if query.id <= latest:
            raise ValueError(f"query {query.id} was asked twice, or in the wrong order")
        latest = query.id
    return queries


def _evaluation(event: Event, query: Query, known: dict[int, Event]) -> Evaluation:
    told, after = "reason" not in event, known.get(query.id, {})
    return Evaluation(
        query.id,
        query.source,
        query.x,
        value=numbers_of(event["value"]) if told else math.nan,
        variance=numbers_of(event["variance"]) if told else 0.0,
        cost=event["cost"] + query.decision,
        status="ok" if told else "failed",
        reason="" if told else event["reason"],
        **{key: numbers_of(after.get(key, math.nan)) for key in ("mean", "std")},
        note=str(event.get("note", "")),
        free=beside_of(event),
        gradient=gradient_of(event, query.x),
        decision=query.decision,
    )


def _bulk(event: Event, header: Event) -> Bulk:
    if not 0 < event["source"] < len(header["problem"]["sources"]):
        raise ValueError(f"source {event['source']} was evaluated in bulk")
    return Bulk.from_dict(event)


def _observed(event: Event, header: Event) -> Evaluation:
    x, source = numbers_of(event["x"]), event["source"]
    if x.ndim != 1 or not np.isfinite(x).all() or not 0 <= source < len(header["problem"]["sources"]):
        raise ValueError(f"a value was taken for x = {event['x']} of source {source}")
    value, variance = numbers_of(event["value"]), numbers_of(event["variance"])
    return Evaluation(None, source, x, value, variance, 0.0, "ok", "", gradient=gradient_of(event, x))


def _certificates(events: Sequence[Event], header: Event) -> list[Certificate]:
    """Return the certificates of a journal, each with the evaluations that follow it."""
    names = [source["name"] for source in header["problem"]["sources"]]
    found: list[tuple[Plan, list[Evaluation]]] = []
    for event in events:
        if event["event"] == "certificate":
            found.append((Plan.from_dict(event, names, header["problem"].get("outputs")), []))
            continue
        plan, made = found[-1]
        if event["id"] in {e.id for e in made}:
            raise ValueError(f"evaluation {event['id']} of a certificate was made twice")
        source, x = plan.evaluated[event["id"]]
        made.append(_evaluation(event, Query(event["id"], source, x, event["cost"]), {}))
    labels = Labels.from_dict(header.get("labels", {}))
    return [Certificate(plan, made, labels=labels) for plan, made in found]


def _revised(evaluation: Evaluation, revision: Event | None) -> Evaluation:
    """Return an evaluation with a revision by the user applied."""
    if revision is None:
        return evaluation
    failed = evaluation.status == "failed"
    was = f"it had failed: {evaluation.reason}" if failed else f"it was {numbers_text(evaluation.value)}"
    if revision["event"] == "corrected":
        value, variance = numbers_of(revision["value"]), numbers_of(revision["variance"])
        evaluation = replace(evaluation, value=value, variance=variance, gradient=None)  # it belonged to the old value
        return replace(evaluation, status="ok", reason="", note=f"corrected; {was}")
    note = f"{EXCLUDED}{revision['reason']}; {was}"
    return replace(evaluation, value=math.nan, variance=0.0, gradient=None, status="failed", reason=note, note=note)
