"""Stop rules: functions of the integrator that return a reason to stop, or None to continue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..common.validation import Array, count, number
from ..posterior.targets import target_estimate
from .decisions import Decisions
from .evaluations import StopReason
from .failures import TIMED_OUT, failure_kind
from .goals import Goals, Tolerance, cheapest, constant, of_outputs, tolerances

StopRule: TypeAlias = Callable[[Any], StopReason | None]


@dataclass(frozen=True)
class ToleranceSettings:
    """Settings for when a tolerance counts as met."""

    level: float = 0.95  #: level of the interval whose half width is compared with the tolerance
    #: number of latest evaluations after each of which the tolerance must have been met, and how many of these must be
    #: values of the primary source; or the number of latest values of the primary source that suffices. The first
    #: narrow interval of a run may be narrow by chance, and contains the true value less often. Chosen on the arena's
    #: development problems.
    confirmed: int = 5
    primary: int = 2
    primary_alone: int = 3


SETTINGS = ToleranceSettings()

#: number of evaluations to look ahead: together they may be worth their cost, although the next one alone is not
LOOK_AHEAD = 20


def tolerance(
    relative: Tolerance | None = None, absolute: Tolerance | None = None, outputs: Sequence[str] | None = None
) -> StopRule:
    """Return a rule that stops when half the width of the 95 % interval stays within a tolerance.

    The tolerance must have been met after each of the latest five evaluations, with two of the primary source among
    them, or after each of the latest three of the primary source, because the first narrow interval may be narrow by
    chance. The rule waits until the initial design is evaluated. It does not wait for outputs whose values are all
    equal, unless all outputs are of this kind, because how much they vary is a guess. With fixed hyperparameters, and
    for targets other than the mean, the first narrow interval suffices.

    Parameters
    ----------
    relative : float, optional
        Tolerance as a fraction of the absolute mean.
    absolute : float, optional
        Tolerance in units of the integral, or of the target of the run. With both, the larger one counts.
    outputs : list of str, optional
        Names of several outputs: tolerances may then be M numbers or dictionaries by name, and all must be met.
    """
    return within(*tolerances(relative, absolute, outputs))


def goal_rules(goals: Goals) -> list[StopRule]:
    """Return the rules that stop when tolerances are met, and when a smaller error is not worth its cost."""
    rules = [] if goals.relative is None or goals.absolute is None else [within(goals.relative, goals.absolute)]
    return rules if goals.error_cost is None else [*rules, _no_longer_pays(goals.error_cost)]


def error_cost(price: Tolerance, outputs: Sequence[str] | None = None) -> StopRule:
    """Return a rule that stops when further evaluations cost more than the smaller error bar is worth.

    What is minimised is the cost of the evaluations plus ``price`` times the standard deviation of the integral, or of
    the target of the run, summed over the outputs. The run stops when, according to `Integrator.forecast`, neither the
    next evaluation nor the next twenty together would reduce this sum. The rule waits until the initial design is
    evaluated.

    Parameters
    ----------
    price : float
        What a standard deviation of one costs the user, in units of cost.
    outputs : list of str, optional
        Names of several outputs: the price may then be M numbers or a dictionary by name.
    """
    return _no_longer_pays(of_outputs(price, "error_cost", outputs))


def _no_longer_pays(price: Array) -> StopRule:
    def rule(it: Decisions) -> StopReason | None:
        posterior = None if it.starting else it.learner.posterior
        if posterior is None or any(it.ledger.costs.unknown(source) for source in it.policy.worth_asking):
            return None
        std = target_estimate(posterior, it.problem.targets).std
        worth, committed = float(np.sum(np.where(price > 0, price * std, 0.0))), it.ledger.committed
        if not np.isfinite(worth) or it.budget <= committed:
            return None
        most = min(it.budget, committed + worth)  # beyond this, no evaluation is worth its cost
        for steps in (1, LOOK_AHEAD) if worth else ():
            ahead = it.forecast(most, steps=steps)
            if cheapest(ahead, price) or (len(ahead) == 1 and most == it.budget):  # the budget ends the run
                return None
        return "error cost"

    return rule


def within(share: Array, size: Array) -> StopRule:
    """Return the rule of `tolerance` for one tolerance per output, shape (M,), or for a single output, shape ()."""

    def rule(it: Decisions) -> StopReason | None:
        posterior = None if it.starting else it.learner.posterior
        if posterior is None:
            return None
        estimate = target_estimate(posterior, it.problem.targets)
        low, high = estimate.interval(SETTINGS.level)
        half, goal = 0.5 * (np.asarray(high) - low), np.fmax(share * np.abs(estimate.mean), size)
        if it.outputs is not None and not (same := constant(it.learner.data.of_source(0).y)).all():
            goal = np.where(same, np.inf, goal)  # how much constant outputs vary is a guess
        if not ((half <= goal) | np.isinf(goal)).all():  # an output without a tolerance may have no values
            return None
        if it.problem.model.given or any(target != "mean" for target in it.problem.targets):
            return "tolerance"
        with np.errstate(divide="ignore", invalid="ignore"):
            widest = np.where((half > 0) & np.isfinite(goal), goal * estimate.std / half, goal)
        return "tolerance" if _stayed_below(it, widest) else None

    return rule


def _stayed_below(it: Decisions, widest: Array) -> bool:
    """Return whether the standard deviation has been small enough after each of the latest evaluations.

    Values from before the run have no estimates after them, so the check goes back no further.
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

    A simulator that has never worked, because a file is missing or its output cannot be parsed, will fail everywhere:
    further evaluations would only spend the budget. Time-outs do not count: the next evaluation may be quicker.

    Parameters
    ----------
    since : int
        Number of evaluations before the run was resumed, whose failures do not count.
    """

    def rule(it: Decisions) -> StopReason | None:
        if any(e.source == 0 and e.status == "ok" for e in it.evaluations):
            return None
        kinds = [failure_kind(e.reason) for e in it.evaluations[since:] if e.source == 0]
        same = len(kinds) > 1 and len(set(kinds)) == 1 and not kinds[0].startswith(TIMED_OUT)
        return "failures" if same else None

    return rule


def evaluations(most: int) -> StopRule:
    """Return a rule that stops after that many evaluations, including failed and pending ones."""
    limit = count(most, "max_evaluations")
    if limit < 1:
        raise ValueError(f"max_evaluations must be at least 1, got {limit}")
    return lambda it: "evaluations" if len(it.evaluations) + len(it.pending) >= limit else None


def rate_below(floor: float) -> StopRule:
    """Return a rule that stops when the latest query was chosen at a rate (utility per cost) below the floor."""
    limit = number(floor, "floor")
    return lambda it: "rate" if it.rate < limit else None
