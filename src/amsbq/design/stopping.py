"""When to stop: functions of the integrator that return a reason, or None to go on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeAlias

from ..inference.estimate import Estimate
from ..validation import count, number, positive_number
from .integrator import Integrator

StopRule: TypeAlias = Callable[[Integrator], str | None]


def tolerance(relative: float | None = None, absolute: float | None = None) -> StopRule:
    """Stop when half the width of the 95 % interval is below a share of the mean, or below a number."""
    limits = [None if t is None else positive_number(t, n) for t, n in ((relative, "rel_tol"), (absolute, "abs_tol"))]

    def small_enough(estimate: Estimate) -> bool:
        low, high = estimate.interval(0.95)
        return 0.5 * (high - low) <= max((limits[0] or 0.0) * abs(estimate.mean), limits[1] or 0.0)

    def rule(it: Integrator) -> str | None:
        belief = it.learner.belief
        if it.starting or belief is None or not small_enough(belief.estimate):
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return "tolerance" if small_enough(it.estimate()) else None

    return rule


def evaluations(most: int) -> StopRule:
    """Stop after so many evaluations, failed ones included."""
    limit = count(most, "max_evaluations")
    if limit < 1:
        raise ValueError("max_evaluations must be at least 1")
    return lambda it: "evaluations" if len(it.evaluations) + len(it.pending) >= limit else None


def rate_below(floor: float) -> StopRule:
    """Stop when the latest query was chosen at a rate below the floor: more would not be worth its cost."""
    limit = number(floor, "floor")
    return lambda it: "exhausted" if it.rate < limit else None
