"""Bulk evaluation of sources that cost next to nothing: before anything else, and then at each other evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np

from ..common.validation import Array, Values
from ..design.bulk import Bulk
from ..design.decisions import tell_bulk
from ..design.evaluations import Beside
from ..design.failures import recorded_reason, usable
from ..design.run import Run
from ..design.sources import Source
from .evaluate import Outcome, evaluate_each

#: function of a source index and X (n, D) that evaluates the source there and yields the outcomes in order
Many: TypeAlias = Callable[[int, Array], Sequence[Outcome]]


@dataclass(frozen=True)
class SlownessSettings:
    """Limits beyond which a source is not evaluated in bulk by default: all evaluations would take hours."""

    tried: int = 8  #: number of trial calls with one location at a time
    longest: float = 0.01  #: seconds that each trial call may take


SETTINGS = SlownessSettings()


class BulkError(ValueError):
    """A source that fails at all points of its bulk evaluation."""


def evaluated_here(it: Any, source: int, X: Array) -> list[Outcome]:
    """Yield the outcomes of a source at each X_i, evaluated one at a time in this thread."""
    return evaluate_each(it.sources[source].function, X, it.sources[source].vectorized)


def evaluate_in_bulk(it: Any, many: Many) -> Iterator[Bulk]:
    """Evaluate sources in bulk, unless this was done before, and yield each bulk once the integrator has it."""
    for source in it.in_bulk.wanted:
        if it.sources[source].function is None:
            raise ValueError(f"{it.names[source]} is evaluated in bulk: pass a function, or another cost")
        X = it.in_bulk.points(source)
        if it.in_bulk.may_be_slow(source):
            began = time.perf_counter()
            many(source, X[0, : SETTINGS.tried])
            if time.perf_counter() - began > SETTINGS.tried * SETTINGS.longest:
                it.in_bulk.keep({other: n for other, n in it.in_bulk.counts.items() if other != source})
                continue
        outcomes = list(many(source, X[0]))
        if all(outcome.observation is None for outcome in outcomes):  # it would fail at the other points, too
            failed = f"{it.names[source]} failed at all {len(outcomes)} locations"
            if _takes_many(it.sources[source], X):
                failed += ": it takes many locations at once, so pass vectorized=True. One by one it fails"
            raise BulkError(f"{failed}, with: {outcomes[0].reason}")
        outcomes += [outcome for part in X[1:] for outcome in many(source, part)]
        values, variances, reasons = zip(*(_observed(it, source, outcome) for outcome in outcomes), strict=True)
        failed = next((recorded_reason(reason) for reason in reasons if reason), "")
        yield tell_bulk(it, source, X, np.array(values), np.array(variances), failed)


def _takes_many(source: Source, X: Array) -> bool:
    """Return whether a source that fails at one location returns a value for each of several."""
    if source.vectorized or not isinstance(source.function, FunctionType):
        return False
    try:
        return bool(np.shape(source.function(X[0]))[:1] == (len(X[0]),))
    except Exception:
        return False


def values_beside(it: Run, outcomes: Sequence[Outcome]) -> list[Beside]:
    """Return the value and variance of each source evaluated in bulk from its outcome; NaN and zero if it failed."""
    return [_observed(it, source, outcome)[:2] for source, outcome in zip(it.in_bulk.sources, outcomes, strict=True)]


def beside_here(it: Any, x: Array) -> list[Beside]:
    """Return the value and variance at x, (D,), of each source evaluated in bulk, computed in this thread."""
    return values_beside(it, [evaluated_here(it, source, x[None])[0] for source in it.in_bulk.sources])


def _observed(it: Run, source: int, outcome: Outcome) -> tuple[Values, Values, str]:
    """Return the value and variance of an outcome, and an empty reason; NaN, zero and the reason if it failed."""
    found, reason = outcome.observation, outcome.reason
    if found is not None:
        value, reason = usable(it.sources[source].valid, it.outputs, found.value, found.variance)
        if not reason:
            return value, found.variance, ""
    if it.outputs is None:
        return np.nan, 0.0, reason
    return np.full(len(it.outputs), np.nan), np.zeros(len(it.outputs)), reason
