"""What was observed in the course of a run, and what is believed of it.

Hyperparameters are learned again on a schedule that depends only on how many observations there are, and in between
kept: what is decided after n observations does not depend on who looked at what before.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..gp.data import Data
from ..gp.posterior import MultiSourceGP
from ..measures.base import Measure
from ..validation import Array
from .belief import Belief, LearnedBelief, learn, recalled
from .estimate import Estimate
from .structures import Model, Noise

ALWAYS = 25  #: observations up to which hyperparameters are learned after each


GROWTH = 1.08  #: beyond, they are learned when there are so many times more


def learning_time(n: int) -> int:
    """The latest time to learn, as a number of observations, when there are n of them."""
    if n <= ALWAYS:
        return n
    stage = int(math.log(n / ALWAYS) / math.log(GROWTH))
    time = math.ceil(ALWAYS * GROWTH**stage)
    return time if time <= n else math.ceil(ALWAYS * GROWTH ** (stage - 1))


@dataclass(frozen=True)
class _Learned:
    """A belief learned from n observations, and what there was to warn of."""

    n: int
    belief: Belief
    warnings: list[str]


class Learner:
    """Observations, and the belief that decisions are made by."""

    def __init__(self, model: Model | MultiSourceGP, measure: Measure, noise: Sequence[Noise], seed: int) -> None:
        self.model, self.measure, self.noise, self.seed = model, measure, noise, seed
        self.data = Data(np.zeros(0, dtype=np.intp), np.zeros((0, measure.dim)), np.zeros(0), np.zeros(0))
        self._belief: Belief | None = None
        if isinstance(model, MultiSourceGP):
            self._belief = learn(model, measure, self.data, noise)
        self._given = 0  # how many observations the belief is given
        self._learned: _Learned | None = None  # the latest by the schedule
        self._final: _Learned | None = None  # the latest for an estimate

    def __len__(self) -> int:
        return len(self.data.y)

    def add(self, source: int, x: Array, value: float, variance: float) -> None:
        """One more observation."""
        new = Data(np.array([source]), x[None], np.array([value]), np.array([variance]))
        self.data = self.data.followed_by(new)

    @property
    def belief(self) -> Belief | None:
        """By hyperparameters that were learned when it was time, given all observations; None without any."""
        n = len(self)
        time = learning_time(n)
        if n and (self._learned is None or self._learned.n != time):
            self._learned = self._learn(time)
            self._belief, self._given = self._learned.belief, time
        if n != self._given and self._belief is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for k in range(self._given, n):  # one after the other, as if somebody had looked at each of them
                    self._belief = self._belief.given(self.data.first(k + 1))
        self._given = n
        return self._belief

    def estimate(self) -> Estimate:
        """The integral, by hyperparameters that are learned from all observations."""
        n = len(self)
        if not n:
            raise ValueError("there is nothing to estimate from: tell or observe something first")
        if self.belief is not None and self._learned is not None and self._learned.n == n:
            latest = self._learned
        else:
            latest = self._final = self._final if self._final is not None and self._final.n == n else self._learn(n)
        for warning in latest.warnings:
            warnings.warn(warning, stacklevel=3)
        return latest.belief.estimate

    @property
    def learned_from(self) -> int:
        """How many observations hyperparameters were last learned from, by the schedule."""
        return 0 if self._learned is None else self._learned.n

    def learned(self) -> dict[str, Any]:
        """What was last learned, as plain numbers and lists; nothing if hyperparameters are fixed."""
        latest = self._learned
        if latest is None or not isinstance(latest.belief, LearnedBelief):
            return {}
        return {"n": latest.n, "hyperparameters": latest.belief.hyperparameters(), "warnings": latest.warnings}

    def recall(self, learned: dict[str, Any]) -> None:
        """What was learned from the first observations, so that it need not be learned again."""
        if isinstance(self.model, MultiSourceGP):
            return
        n = learned["n"]
        first = self.data.first(n)
        belief = recalled(self.model, self.measure, first, self.noise, self.seed, learned["hyperparameters"])
        self._learned, self._belief, self._given = _Learned(n, belief, learned["warnings"]), belief, n

    def _learn(self, n: int) -> _Learned:
        with warnings.catch_warnings(record=True) as caught:  # they come with the estimate
            warnings.simplefilter("always")
            belief = learn(self.model, self.measure, self.data.first(n), self.noise, self.seed)
        return _Learned(n, belief, [str(warning.message) for warning in caught])
