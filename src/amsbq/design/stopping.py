"""Stop rules: functions of the integrator that return a reason to stop, or None to go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..inference.belief import FixedBelief
from ..outputs.names import by_output
from ..quantities.targets import target_estimate
from ..validation import Array, count, number, positive, positive_number, vector
from .accounting import StopReason
from .failures import TIMED_OUT, failure_kind
from .integrator import Integrator

#: a number; with several outputs also one for each of them, in a list or by name
Tolerance: TypeAlias = float | Sequence[float] | Mapping[str, float]
StopRule: TypeAlias = Callable[[Integrator], StopReason | None]


@dataclass(frozen=True)
class ToleranceSettings:
    """When a tolerance is met."""

    level: float = 0.95  #: of the interval whose half width it is compared with
    #: latest evaluations after all of which it must have been met, and values of the primary source among them; or so
    #: many of these alone: along a run, the first interval that is narrow enough is one that happens to look narrow,
    #: and holds the truth less often. Chosen on runs of the arena's development problems.
    confirmed: int = 5
    primary: int = 2
    primary_alone: int = 3


SETTINGS = ToleranceSettings()


def tolerances(
    relative: Tolerance | None, absolute: Tolerance | None, outputs: Sequence[str] | None
) -> dict[str, Array]:
    """Return the ``relative`` and the ``absolute`` tolerance of each output, or of the only one: arrays of one shape.

    Zero where there is none. An output that has neither, because dictionaries leave it out, has an infinite one.
    """
    share, size = (_of_outputs(*each, outputs) for each in ((relative, "rel_tol"), (absolute, "abs_tol")))
    return {"relative": share, "absolute": np.where((share == 0) & (size == 0), np.inf, size)}


def _of_outputs(given: Tolerance | None, name: str, outputs: Sequence[str] | None) -> Array:
    """Return a tolerance of each output, zero where there is none, or raise an error."""
    if given is None:
        return np.zeros(()) if outputs is None else np.zeros(len(outputs))
    if outputs is None:
        return np.array(positive_number(given, name))  # type: ignore[arg-type]
    if isinstance(given, Mapping):
        listed = by_output(given, outputs)
        return np.array(
            [
                0.0 if each is None else positive_number(each, f"{name} of {m}")
                for m, each in zip(outputs, listed, strict=True)
            ]
        )
    return positive(np.broadcast_to(vector(given, name, len(outputs)), len(outputs)), name)


def tolerance(
    relative: Tolerance | None = None, absolute: Tolerance | None = None, outputs: Sequence[str] | None = None
) -> StopRule:
    """Return a rule that stops when half the width of the 95 % interval stays within a tolerance.

    It must have been within it after each of the latest five evaluations, with two of the primary source among them, or
    after three of the primary source: an interval that is narrow for the first time may happen to look so. The rule
    waits until the initial design is evaluated. With fixed hyperparameters, and for another target than the mean, the
    first narrow interval is taken.

    Parameters
    ----------
    relative : float, optional
        Tolerance as a share of the absolute mean.
    absolute : float, optional
        Tolerance in units of the integral, or of the target of the run. With both, the larger one counts.
    outputs : list of str, optional
        Names of several outputs: tolerances may then be M numbers or dictionaries by name, and all must be met.
    """
    share, size = tolerances(relative, absolute, outputs).values()

    def rule(it: Integrator) -> StopReason | None:
        belief = None if it.starting else it.learner.belief
        if belief is None:
            return None
        estimate = target_estimate(belief, it.measure, it.target)
        low, high = estimate.interval(SETTINGS.level)
        half, goal = 0.5 * (np.asarray(high) - low), np.fmax(share * np.abs(estimate.mean), size)
        if not ((half <= goal) | np.isinf(goal)).all():  # an output without a tolerance may have no values
            return None
        if isinstance(belief, FixedBelief) or it.target != "mean":
            return "tolerance"
        with np.errstate(divide="ignore", invalid="ignore"):
            widest = np.where((half > 0) & np.isfinite(goal), goal * estimate.std / half, goal)
        return "tolerance" if _stayed_below(it, widest) else None

    return rule


def _stayed_below(it: Integrator, widest: Array) -> bool:
    """Return whether the standard deviation has been small enough for some evaluations.

    Values that were there before the run were not looked at one by one.
    """
    made = primary = 0
    for e in reversed(it.evaluations):
        if e.id is None:
            return True
        if not ((np.asarray(e.std) <= widest) | np.isinf(widest)).all():
            return False
        made += e.status == "ok"
        primary += e.source == 0 and e.status == "ok"
        several = made >= SETTINGS.confirmed and primary >= SETTINGS.primary
        if several or primary >= SETTINGS.primary_alone:
            return True
    return False


def repeated_failure(since: int) -> StopRule:
    """Return a rule that stops when the primary source has no value and fails in the same way again.

    What is wrong with a simulator that has never worked, such as a file that is missing or an output that is not
    understood, is wrong everywhere: further evaluations would only spend the budget. Time-outs do not count: the next
    evaluation may be quicker.

    Parameters
    ----------
    since : int
        The number of evaluations after which failures count: those from before a run was resumed do not.
    """

    def rule(it: Integrator) -> StopReason | None:
        if any(e.source == 0 and e.status == "ok" for e in it.evaluations):
            return None
        kinds = [failure_kind(e.reason) for e in it.evaluations[since:] if e.source == 0]
        same = len(kinds) > 1 and len(set(kinds)) == 1 and not kinds[0].startswith(TIMED_OUT)
        return "failures" if same else None

    return rule


def evaluations(most: int) -> StopRule:
    """Return a rule that stops after that many evaluations, failed and pending ones included."""
    limit = count(most, "max_evaluations")
    if limit < 1:
        raise ValueError("max_evaluations must be at least 1")
    return lambda it: "evaluations" if len(it.evaluations) + len(it.pending) >= limit else None


def rate_below(floor: float) -> StopRule:
    """Return a rule that stops when the latest query was chosen at a rate (utility per cost) below the floor."""
    limit = number(floor, "floor")
    return lambda it: "rate" if it.rate < limit else None
