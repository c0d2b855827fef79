"""The schedule of refits: when hyperparameters are learned again. It depends only on the order of observed sources."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..common.validation import IntArray


@dataclass(frozen=True)
class ScheduleSettings:
    """When hyperparameters are refitted."""

    #: maximum numbers of observations, and of primary ones, with which hyperparameters are refitted after each: with
    #: few, every one changes the fit, and primary ones decide between structures
    every_one_until: int = 25
    #: beyond these, growth of the number of observations from one refit to the next: all refits up to n observations
    #: then take a time proportional to that of the last one, not n times as much
    growth: float = 1.08
    #: maximum number of observations between refits, as long as there are fewer than `few_primary` primary ones: only a
    #: few of the other observations are then used, so that a refit does not take longer if there are more of them
    longest: int = 100
    few_primary: int = 2000
    #: outputs whose hyperparameters are refitted after an evaluation; with more, they take turns, so that a step with
    #: ten outputs takes at most about three times as long as with one
    refits: int = 2
    #: number of observations until which the transform for a known range is chosen at each refit; then, growth of their
    #: number from one choice to the next: a choice takes as long as four refits
    first_choice: int = 4
    choice_growth: float = 1.25
    #: growth of the number of observations from new hyperparameter draws to the next; they are carried along in between
    search_growth: float = 2.0


SETTINGS = ScheduleSettings()


def scheduled_refit(n: int) -> int:
    """Return the number of observations at the latest scheduled refit, given n of them.

    >>> [scheduled_refit(n) for n in (1, 25, 26, 27, 30)]
    [1, 25, 25, 27, 30]
    """
    return latest_stage(n, SETTINGS.every_one_until, SETTINGS.growth)


def latest_stage(n: int, first: int, growth: float) -> int:
    """Return the largest number up to n on a schedule: each number up to ``first``, then growing by a factor.

    >>> [latest_stage(n, 4, 1.25) for n in (0, 3, 4, 5, 6, 7, 100)]
    [0, 3, 4, 5, 5, 7, 91]
    """
    if n <= first:
        return n
    stage = int(math.log(n / first) / math.log(growth))
    at = math.ceil(first * growth**stage)
    return at if at <= n else math.ceil(first * growth ** (stage - 1))


def choice_stage(n: int) -> int:
    """Return the number of observations at which the transform was last chosen, if there are n in total.

    >>> [choice_stage(n) for n in (0, 3, 4, 5, 6, 7, 100)]
    [0, 3, 4, 5, 5, 7, 91]
    """
    return latest_stage(n, SETTINGS.first_choice, SETTINGS.choice_growth)


def latest_search(s: IntArray, refits: Sequence[int], since: int) -> int:
    """Return the number of observations at the latest new draws: at one of the ``refits``, or ``since``.

    New draws are made when the number of all observations, whose sources in order are s (n,), or of the primary ones
    has doubled: many values of a free source may come first, and are hardly informative about the primary source.

    >>> latest_search(np.zeros(9, dtype=int), range(1, 10), 0), latest_search(np.array([1] * 8 + [0]), range(8, 10), 8)
    (8, 9)
    """
    numbers = np.array([np.arange(len(s) + 1), np.cumsum([0, *(s == 0)])]).T
    for n in refits:
        if (numbers[n] >= np.maximum(SETTINGS.search_growth * numbers[since], 1)).any():
            since = n
    return since


def latest_refit(s: IntArray) -> int:
    """Return the number of observations at the latest refit, given the sources s (n,) of all in order.

    >>> latest_refit(np.array([1] * 27 + [0, 1]))
    28
    """
    primary, at = np.flatnonzero(s == 0), scheduled_refit(len(s))
    if len(primary) < SETTINGS.few_primary:
        at = max(at, len(s) // SETTINGS.longest * SETTINGS.longest)
    few = primary[: SETTINGS.every_one_until]
    return max(at, int(few[-1]) + 1 if len(few) else 0)


@dataclass(frozen=True)
class Turns:
    """The scheduled refits that a learner makes, if several take turns to limit the time of a step.

    Attributes
    ----------
    every : int
        The number of learners that take turns; 1 if each makes all refits.
    phase : int
        The number of the learner among them.
    since : int
        Number of observations at which all of them were refitted.
    """

    every: int = 1
    phase: int = 0
    since: int = 0

    def latest(self, s: IntArray) -> int:
        """Return the number of observations at the latest refit, given the sources s (n,) of all in order.

        All refits are made up to ``every`` observations.

        >>> [Turns(3, 1).latest(np.zeros(n, dtype=int)) for n in range(1, 10)]
        [1, 2, 3, 3, 5, 5, 5, 8, 8]
        """
        n = latest_refit(s)
        while n > max(self.every, self.since) and (n + self.phase) % self.every:
            n = latest_refit(s[: n - 1])
        return max(n, min(self.since, len(s)))

    def refits(self, s: IntArray, since: int) -> list[int]:
        """Return the numbers of observations at all refits from ``since`` to the latest.

        >>> Turns().refits(np.zeros(29, dtype=int), 24)
        [24, 25, 27]
        """
        found = [self.latest(s)]
        while (before := self.latest(s[: found[-1] - 1])) >= since:
            found.append(before)
        return found[::-1]
