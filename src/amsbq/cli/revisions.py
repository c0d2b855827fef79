"""``amsbq show``, ``exclude`` and ``correct``: single evaluations of a run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..common.validation import numbers_text
from ..design.description import input_names
from ..design.evaluations import Evaluation, Query
from ..design.labels import COST
from ..execution.revisions import Given, correct, exclude, shown_evaluation
from ..execution.state import RunState, read_state
from .arguments import numbers_by_output
from .exits import ExitCode, UserError

#: reason of an exclusion without one
NO_REASON = "no reason was given"


def show_command(options: argparse.Namespace) -> int:
    """Print everything recorded about one evaluation, and its output."""
    state, query, answer, log = shown_evaluation(options.journal, options.id)
    for line in _facts(state, query, answer):
        print(line)
    if log.folder:
        print(f"work directory: {log.folder}" + ("" if Path(log.folder).exists() else " (deleted)"))
    for name, text in (("standard output", log.stdout), ("standard error", log.stderr)):
        lines = text.rstrip().splitlines()
        print(f"{name}:" if lines else f"{name}: nothing")
        for line in lines:
            print(f"  | {line}")
    return ExitCode.DONE


def _facts(state: RunState, query: Query, answer: Evaluation | None) -> Iterator[str]:
    """Yield the location, the values and the cost of an evaluation, and the estimate of the integral after it."""
    names = state.header.get("inputs") or input_names(len(query.x))
    yield f"evaluation {query.id} of {state.names[query.source]}"
    labels = state.labels
    yield f"at {labels.at(names, query.x, 10)}"
    if answer is None:
        yield f"pending; expected cost {query.cost:.6g}"
        return
    if answer.status == "ok":
        values, variances = (np.atleast_1d(each).tolist() for each in (answer.value, answer.variance))
        for name, value, variance in zip(state.outputs or ["value"], values, variances, strict=True):
            unit = labels.unit("" if state.outputs is None else name)
            yield f"{name} = {value:.10g} {unit}".rstrip() + (f", with variance {variance:.6g}" if variance else "")
    else:
        yield f"failed: {answer.reason}"
    if answer.note and answer.note != answer.reason:
        yield answer.note
    yield labels.measured(f"cost = {answer.cost:.6g}", COST)
    if np.isfinite(answer.std).any():
        units = [labels.unit(name) for name in state.outputs or [""]]
        after = numbers_text(answer.mean, most=len(units), names=state.outputs, std=answer.std, units=units)
        yield f"the integral after it: {after}"


def exclude_command(options: argparse.Namespace) -> int:
    """Remove the value of one evaluation from a run."""
    return _revised(exclude(options.journal, options.id, options.reason.strip() or NO_REASON), options.journal)


def correct_command(options: argparse.Namespace) -> int:
    """Replace the value of one evaluation, or all of its values with several outputs."""
    now = correct(options.journal, options.id, *given_values(options))
    others = [e for e in read_state(options.journal).evaluations if e.status == "ok" and e.id != now.id]
    print("".join(f"note: {text}\n" for text in _far_from(now, others)), end="")
    return _revised(now, options.journal)


def _far_from(now: Evaluation, others: Sequence[Evaluation]) -> Iterator[str]:
    """Yield a remark for each value that is outside the range of all others by more than that range."""
    for m, value in enumerate(np.atleast_1d(now.value)):
        known = [y for e in others if np.isfinite(y := np.atleast_1d(e.value)[m])] or [value]
        low, high = min(known), max(known)
        if high > low and max(low - value, value - high) > high - low:
            yield f"{value:g} is far from all other values, {low:g} to {high:g}"


def given_values(options: argparse.Namespace) -> tuple[Given, Given]:
    """Return the value and the variance on the command line, one number for each output."""
    try:
        return numbers_by_output(options.value), numbers_by_output(options.variance or ["0"])
    except ValueError as error:
        raise UserError(f"a value and its variance {error}") from None


def _revised(now: Evaluation, journal: Path) -> int:
    print(
        f"evaluation {now.id}: {now.note}"
        + (f", and now is {numbers_text(now.value, 10)}" if now.status == "ok" else "")
    )
    print(f"to see the updated integral: amsbq resume {journal}, or amsbq report {journal}")
    return ExitCode.DONE
