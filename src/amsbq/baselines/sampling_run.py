"""Accounting of a run whose locations come from a sequence instead of a model, and the result of such a run.

Monte Carlo, quasi Monte Carlo, percentiles and control variates differ in two things: the sequence of sources and
locations that they evaluate, and the estimate that they make of the values. `SamplingRun` is everything else: the
budget, failed evaluations, workers, and the `Result`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from ..design.accounting import Accounting, Query, StopReason
from ..design.sources import SourcesLike
from ..execution.runner import ExecutorLike, Runner, no_result_error
from ..inference.estimate import Estimate
from ..measures.adapters import MeasureLike
from ..results.result import Result, input_names
from ..validation import Array

#: a source, by its number, and the location x of shape (D,) at which to evaluate it
SourceLocation: TypeAlias = tuple[int, Array]


class SamplingRun(Accounting):
    """Accounting of a run over a sequence of sources and locations, for as long as the budget lasts.

    Parameters
    ----------
    sources, measure
        As in `amsbq.integrate`.
    budget : float
        In units of cost.
    """

    def __init__(self, sources: SourcesLike, measure: MeasureLike, budget: float) -> None:
        super().__init__(sources, measure, budget)
        self._locations: Iterator[SourceLocation] = iter(())
        self._next: SourceLocation | None = None  # taken from the iterator, and not yet asked

    def evaluate(self, locations: Iterator[SourceLocation], executor: ExecutorLike | None, workers: int) -> StopReason:
        """Evaluate sources at locations, in their order, and return why the run has stopped.

        The iterator may have no end, and may look at ``evaluations`` to decide on the next location.
        """
        self._locations = locations
        return Runner(self, (), executor, workers).run()

    def ask(self) -> Query | None:
        """Return the next query, or None if the sequence has ended or the budget does not pay for it."""
        self._next = self._next or next(self._locations, None)
        if self._next is None or not self._can_pay(*self._next):
            self._stop("exhausted" if self._next is None else "budget")
            return None
        source, x = self._next
        self._next = None
        return self._issued(source, x)

    def values(self, source: int) -> Array:
        """Return the values of a source in the order of its queries, NaN where an evaluation failed."""
        made = sorted((e for e in self.evaluations if e.source == source), key=lambda e: e.id or 0)
        return np.array([e.value for e in made])

    def result(self, stopped: StopReason, source: int, estimates: Sequence[Estimate | None]) -> Result:
        """Return the result of the run, whose answer is the last estimate.

        Parameters
        ----------
        stopped : str
            Why the run has stopped, as `evaluate` returns it.
        source : int
            The source whose values the estimates are made of.
        estimates : sequence of Estimate or None
            The estimate after each evaluation of that source, failed ones included; None where there is no new one.
        """
        answer = next((estimate for estimate in reversed(estimates) if estimate is not None), None)
        if answer is None:
            raise no_result_error(self, stopped)
        # While the run goes on, evaluations are recorded without an estimate: nothing is decided by it, and the
        # estimates after all evaluations are computed at once at the end. That is why they are filled in here.
        following, evaluations, mean, std = iter(estimates), [], math.nan, math.nan
        for e in self.evaluations:
            latest = next(following) if e.source == source else None
            if latest is not None:
                mean, std = latest.mean, latest.std
            evaluations.append(replace(e, mean=mean, std=std))
        inputs = input_names(self.measure.dim)
        return Result(answer, evaluations, self.spent, stopped, self.names, self.budget, inputs)
