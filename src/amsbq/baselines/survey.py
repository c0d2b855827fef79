"""survey."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from ..design.accounting import Accounting, Query
from ..execution.runner import no_result_error
from ..inference.estimate import Estimate
from ..results.result import Result, input_names
from ..validation import Array

Place: TypeAlias = tuple[int, Array]  #: a source, and x of shape (D,)


class Survey(Accounting):
    """The books of a run that evaluates given places, one after the other, as long as the budget lasts."""

    places: Iterator[Place] = iter(())
    _next: Place | None = None

    def ask(self) -> Query | None:
        """The next query, or None if there is none."""
        place = self._next = self._next or next(self.places, None)
        if place is None or not self._can_pay(*place):
            self._stop("exhausted" if place is None else "budget")
            return None
        self._next = None
        return self._issued(*place)

    def values(self, source: int) -> Array:
        """What a source returned in the order of queries, NaN where it failed."""
        of = sorted((e for e in self.evaluations if e.source == source), key=lambda e: e.id or 0)
        return np.array([e.value for e in of])

    def result(self, stopped: str, source: int, estimates: list[Estimate | None]) -> Result:
        """With an estimate after each evaluation of a source, where there is one; the last is the answer."""
        answer = next((estimate for estimate in reversed(estimates) if estimate is not None), None)
        if answer is None:
            raise no_result_error(self, stopped)
        following, evaluations, known = iter(estimates), [], (math.nan, math.nan)
        for e in self.evaluations:
            latest = next(following) if e.source == source else None
            known = known if latest is None else (latest.mean, latest.std)
            evaluations.append(replace(e, mean=known[0], std=known[1]))
        inputs = input_names(self.measure.dim)
        return Result(answer, evaluations, self.spent, stopped, self.names, self.budget, inputs)
