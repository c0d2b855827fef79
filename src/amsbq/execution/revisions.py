"""Single evaluations of a journal: tell, show, exclude or correct one, or reuse all of them in another run.

Neither a running process, nor the problem file, nor the simulators are needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ..common.messages import collected_warnings, warn
from ..common.validation import Values, brief, non_negative_number
from ..design.evaluations import Evaluation, Query
from ..design.failures import recorded_reason, rejection, usable_outputs
from ..design.observations import checked_values
from ..posterior.outputs import by_output, output_gradients
from ..simulators.answers import EvaluationLog
from .changes import described_problem, function_changes
from .integrator import Integrator
from .journal import Event, Journal, JournalError, JournalPath, read_journal
from .state import RunState, interpreted, read_state

#: a number; with several outputs one for each, in order or by name
Given: TypeAlias = float | Sequence[float] | Mapping[str, float]


@dataclass(frozen=True)
class Answer:
    """The answer to a query from elsewhere: a value, or the reason why there is none."""

    id: int
    value: Given = math.nan  #: NaN for a missing output
    variance: Given = 0.0
    cost: float | None = None  #: the actual cost; None if it is the expected cost
    gradient: Any = None  #: D numbers, or with several outputs (M, D), or a dictionary by output
    reason: str = ""  #: why it has failed; empty if it has not


def tell(path: JournalPath, answers: Sequence[Answer], patience: float = 0.0) -> list[Answer]:
    """Append answers to pending queries to a journal, and return the new ones.

    Answers that are already in the journal are skipped, so that a growing table can be passed again and again. Values
    outside a source's range are failed evaluations, as in a run; values that are not numbers are refused, as an
    Integrator refuses them.

    Parameters
    ----------
    path : path
        The journal.
    answers : list of Answer
        At most one for each query.
    patience : float
        Seconds to wait for other writers of the journal.

    Raises
    ------
    JournalError
        If an answer is invalid, because its query does not exist or has another answer, or because its cost is measured
        but missing. None of the answers is then written.
    """
    with collected_warnings():  # they are issued again
        read_state(path)  # raises if there is no journal; opening one would make it
    with Journal(path, patience, shared=True) as journal:
        assert journal.header is not None
        state = interpreted(journal.header, journal.events, path)
        queries = {query.id: query for query in state.queries}
        asked = {event["id"]: event for event in journal.events if event["event"] == "asked"}
        told = {event["id"]: event for event in journal.events if event["event"] in ("told", "failed")}
        new: dict[int, tuple[Answer, Event]] = {}
        for answer in answers:
            query = queries.get(answer.id)
            if query is None:
                raise JournalError(f"{path} has no query {answer.id}: {_valid_numbers(list(queries))}")
            event = event_of_answer(answer, query, asked[query.id], state, path)
            before = new[answer.id][1] if answer.id in new else told.get(answer.id)
            if before is None:
                new[answer.id] = answer, event
            elif differs := [key for key in ("reason", "value", "variance", "cost") if not _same(before, event, key)]:
                recorded = ", ".join(f"{key} {before[key]}" for key in ("value", "variance", "cost") if key in before)
                has = {"told": "has a value", "failed": "has failed"}[before["event"]]
                if before["event"] == event["event"]:
                    has = f"has an answer with another {' and '.join(differs)}"
                raise JournalError(
                    f"query {answer.id} of {path} already {has}: {recorded}. To replace it, use amsbq correct {path} "
                    f"{answer.id} VALUE; to exclude it, use amsbq exclude"
                )
        interpreted(
            journal.header, [*journal.events, *(event for _, event in new.values())], path
        )  # before it is written
        for number, (_, event) in enumerate(new.values(), 1):
            journal.write(event, durable=number == len(new))
    return [answer for answer, _ in new.values()]


def event_of_answer(answer: Answer, query: Query, asked: Event, state: RunState, path: JournalPath) -> Event:
    """Return the event of an answer to a query, from the event with which it was asked."""
    cost, source = answer.cost, state.sources[query.source]
    if cost is None and source["cost"] == "measured":
        raise JournalError(f"the cost of {source['name']} is measured: pass the cost of query {answer.id} of {path}")
    if cost is not None and not 0 < cost < math.inf:
        raise JournalError(f"the cost of query {answer.id} must be positive, got {cost:g}")
    cost = query.cost if cost is None else cost
    failed = {"event": "failed", "id": query.id, "cost": cost}
    if answer.reason:
        return {**failed, "reason": recorded_reason(answer.reason)}
    if state.outputs is None and isinstance(answer.value, float) and not math.isfinite(answer.value):
        raise JournalError(
            f"query {answer.id}: value must be finite, got {answer.value}; if the evaluation failed, pass the reason: "
            "--failed REASON, or the column reason of a table"
        )
    value, variance, reason = _checked_value(answer.value, answer.variance, source, state, f"query {answer.id}")
    if reason:
        return {**failed, "reason": recorded_reason(reason)}
    beside: Event = {key: asked[key] for key in ("free", "free_variance") if key in asked}
    told = {"event": "told", "id": query.id, "value": value, "variance": variance, "cost": cost, **beside}
    return told if answer.gradient is None else {**told, "gradient": _gradient(answer, query, state)}


def _gradient(answer: Answer, query: Query, state: RunState) -> Any:
    """Return the gradient of an answer in the form of a journal, or raise if it is invalid."""
    names, dim = state.outputs or [""], len(query.x)
    own = state.sources[query.source].get("outputs") or names
    given = [answer.gradient] if state.outputs is None else answer.gradient
    try:
        found = output_gradients(given, names, own, dim)
    except (TypeError, ValueError) as error:
        raise JournalError(f"query {answer.id}: {error}") from None
    return found[0] if state.outputs is None else found


def _same(one: Event, other: Event, key: str) -> bool:
    """Return whether two answers to a query have the same reason or numbers, NaN in the same places."""
    if key == "reason":
        return one.get(key) == other.get(key)
    first, second = (np.asarray(answer.get(key, math.nan), dtype=float) for answer in (one, other))
    return np.array_equal(first, second, equal_nan=True)


def _checked_value(
    value: Given, variance: Given, source: Mapping[str, Any], state: RunState, what: str
) -> tuple[Values, Values, str]:
    """Return a value of a source and its variance in the form of a journal, and why the value cannot be used.

    With several outputs both are lists of M numbers, NaN where there is no value. Raise an error that begins with
    ``what`` if these are not the numbers of the source's outputs.
    """
    names = state.outputs
    try:
        if names is None:
            for each in (value, variance):
                if isinstance(each, Mapping | Sequence):
                    hint = (
                        " (with a decimal point, not a comma; a variance is given with --variance V)"
                        if each is value and len(each) == 2
                        else ""
                    )
                    raise ValueError(f"there is one output, so pass one number{hint}, got {brief(each)}")
            noise = non_negative_number(variance, "the variance")  # type: ignore[arg-type]
            return value, noise, rejection(value, source.get("valid"), noise)  # type: ignore[arg-type]
        for each in (value, variance):
            by_output(each, names)
        values, variances = checked_values(value, variance, names, source.get("outputs") or names)
    except (TypeError, ValueError) as error:
        raise JournalError(f"{what}: {error}") from None
    usable, reason = usable_outputs(values, variances, by_output(source.get("valid"), names), names)
    return usable.tolist(), variances.tolist(), reason


def shown_evaluation(path: JournalPath, number: int) -> tuple[RunState, Query, Evaluation | None, EvaluationLog]:
    """Return the state of a run, one of its queries, its answer (None if pending), and its output."""
    header, events = read_journal(path)
    state = interpreted(header, events, path)
    query = next((query for query in state.queries if query.id == number), None)
    if query is None:
        raise _unknown(path, number, state)
    answer = next((e for e in state.evaluations if e.id == number), None)
    said = [event for event in events if event["event"] == "printed" and event.get("id") == number]
    log = EvaluationLog()
    for event in said[-1:]:
        log.add(*(str(event.get(name, "")) for name in ("stdout", "stderr", "folder")))
    return state, query, answer, log


def exclude(path: JournalPath, number: int, reason: str) -> Evaluation:
    """Record in a journal that the value of one evaluation is excluded, and return the revised evaluation."""
    return _revise(path, number, {"event": "excluded", "reason": recorded_reason(reason)})


def correct(path: JournalPath, number: int, value: Given, variance: Given = 0.0) -> Evaluation:
    """Record a new value of an evaluation, which may have failed, in a journal, and return the revised evaluation."""
    return _revise(path, number, {"event": "corrected"}, value, variance)


def _revise(
    path: JournalPath, number: int, revision: Event, value: Given | None = None, variance: Given = 0.0
) -> Evaluation:
    with collected_warnings():  # they are issued again
        read_state(path)  # raises if there is no journal; opening one would make it
    with Journal(path) as journal:
        assert journal.header is not None
        state = interpreted(journal.header, journal.events, path)
        before = next((e for e in state.evaluations if e.id == number), None)
        if before is None and any(query.id == number for query in state.pending):
            raise JournalError(f"evaluation {number} of {path} has no value yet: amsbq tell {path} {number} VALUE")
        if before is None:
            raise _unknown(path, number, state)
        event = {**revision, "id": number}
        if before.excluded and value is None:
            raise JournalError(
                f"evaluation {number} is {before.note}; to include it again, run: amsbq correct {path} {number} VALUE"
            )
        if value is not None:
            source = state.sources[before.source]
            right, noise, wrong = _checked_value(value, variance, source, state, f"evaluation {number}")
            if wrong:
                raise JournalError(f"{wrong}; to exclude evaluation {number}, use amsbq exclude {path} {number}")
            event |= {"value": right, "variance": noise}
        revised = interpreted(journal.header, [*journal.events, event], path)
        journal.write(event)
    return next(e for e in revised.evaluations if e.id == number)


def _unknown(path: JournalPath, number: int, state: RunState) -> JournalError:
    return JournalError(f"{path} has no evaluation {number}: {_valid_numbers([e.id for e in state.evaluations])}")


def _valid_numbers(numbers: Sequence[int | None]) -> str:
    return f"valid numbers are {numbers[0]} to {numbers[-1]}" if numbers else "there are none yet"


def _of_outputs(
    evaluation: Evaluation, before: Sequence[str] | None, now: Sequence[str] | None, path: JournalPath
) -> Evaluation:
    """Return an evaluation with the outputs of another run, matched by name, NaN for those that it lacks."""
    if before is None and now is None:
        return evaluation
    if before is None or now is None or not set(before) & set(now):
        had, wanted = (", ".join(names) if names else "one without a name" for names in (before, now))
        raise JournalError(f"the outputs of {path} are {had}, but now they are {wanted}")
    places = [list(before).index(name) if name in before else None for name in now]
    value = np.array([np.nan if place is None else evaluation.value[place] for place in places])
    variance = np.array([0.0 if place is None else evaluation.variance[place] for place in places])
    return replace(evaluation, value=value, variance=variance)


def taken_evaluations(
    path: JournalPath, it: Integrator, inputs: Sequence[str] | None, accept_changes: bool = False
) -> list[Evaluation]:
    """Return the values of a journal that another run can reuse, with the source indices of that run.

    Parameters
    ----------
    path : path
        The journal.
    it : Integrator
        The integrator of the other run. Its inputs and its sources must be those of the journal; its distribution,
        budget, model and costs may differ. Values where its distribution is zero are left out, with a warning.
    inputs : list of str or None
        Names of its inputs.
    accept_changes : bool
        Whether to use values of a source although its function has changed.

    Raises
    ------
    JournalError
        If the inputs or the sources differ.
    """
    state = read_state(path)
    named = state.header.get("inputs")
    if named is not None and inputs is not None and list(named) != list(inputs):
        raise JournalError(f"the inputs of {path} are {', '.join(named)}, but now they are {', '.join(inputs)}")
    made = [
        _of_outputs(e, state.outputs, it.outputs, path)
        for e in (*state.observed, *state.evaluations, *(e for c in state.certificates for e in c.evaluations))
        if e.status == "ok"
    ]
    made = [e for e in made if not np.isnan(e.value).all()]
    wanted = {state.names[e.source] for e in made}
    missing = sorted(wanted - set(it.names))
    if missing:
        raise JournalError(f"{path} has values of {missing[0]}, but the sources are now {', '.join(it.names)}")
    now = described_problem(it, path).get("functions") or []
    before = state.header["problem"].get("functions") or [None] * len(state.names)
    for old, name in zip(before, state.names, strict=True):
        changes = function_changes(old, now[it.names.index(name)], name) if name in wanted else []
        if changes and not accept_changes:
            raise JournalError(
                f"the values of {path} come from another simulator: {'; '.join(changes)}. If they are still valid, use "
                "--accept-changes"
            )
    taken = []
    for e in made:
        try:
            it.measure.check_points(e.x[None], "x")
        except ValueError:
            continue
        taken.append(replace(e, source=it.names.index(state.names[e.source])))
    if len(taken) < len(made):
        warn(f"{len(made) - len(taken)} of {len(made)} values of {path} are outside the distribution of the inputs")
    return taken
