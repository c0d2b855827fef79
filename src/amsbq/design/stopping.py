"""Stop rules: functions of the integrator that return a reason to stop, or None to go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..quantities.targets import target_estimate
from ..validation import count, number, positive_number
from .accounting import StopReason
from .failures import TIMED_OUT, failure_kind
from .integrator import Integrator

StopRule: TypeAlias = Callable[[Integrator], StopReason | None]

#: probability of the interval whose half width a tolerance is compared with
TOLERANCE_LEVEL = 0.95


def tolerance(relative: float | None = None, absolute: float | None = None) -> StopRule:
    """Return a rule that stops when half the width of the 95 % interval is within a tolerance.

    The rule waits until the initial design is evaluated and the primary source has a value.

    Parameters
    ----------
    relative : float, optional
        Tolerance as a share of the absolute mean.
    absolute : float, optional
        Tolerance in units of the integral, or of the target of the run. With both, the larger one counts.
    """
    share = 0.0 if relative is None else positive_number(relative, "rel_tol")
    size = 0.0 if absolute is None else positive_number(absolute, "abs_tol")

    def rule(it: Integrator) -> StopReason | None:
        belief = None if it.starting else it.learner.belief
        if belief is None:
            return None
        estimate = target_estimate(belief, it.measure, it.target)
        low, high = estimate.interval(TOLERANCE_LEVEL)
        return "tolerance" if 0.5 * (high - low) <= max(share * abs(estimate.mean), size) else None

    return rule


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
