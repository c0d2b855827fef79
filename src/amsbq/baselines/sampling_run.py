"""Accounting of a run whose locations come from a sequence instead of a model, and the result of such a run.

Methods that average over points of the measure differ in two things: the sequence of draws that they evaluate, and the
estimate that they make of the values. A *draw* is a location together with the sources that are evaluated there, and is
paid for as a whole. `SamplingRun` is everything else: the budget, failed evaluations, workers, and the `Result`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from ..design.accounting import Accounting, StopReason
from ..design.costs import affordable
from ..design.sources import SourcesLike
from ..execution.executors import ExecutorLike
from ..execution.runner import Runner, no_result_error
from ..inference.estimate import Estimate
from ..inference.schedule import scheduled_refit
from ..measures.adapters import MeasureLike
from ..measures.base import Measure
from ..outputs.evaluations import Query
from ..results.result import Result, input_names
from ..validation import Array

#: numbers of the sources that are evaluated at the same location
Group: TypeAlias = tuple[int, ...]
#: the sources to evaluate, and the location x of shape (D,)
Draw: TypeAlias = tuple[Group, Array]
#: values by the group that was drawn: a row for each draw without failures, a column for each source of the group
Samples: TypeAlias = dict[Group, Array]


@dataclass(frozen=True)
class SamplingSettings:
    """Constants of runs over a sequence of draws."""

    chunk: int = 1024  # locations that are drawn at once, of which the run takes as many as it pays for
    cost_locations: int = 256  # Sobol points over which the cost of a source is averaged before it was evaluated


SETTINGS = SamplingSettings()


class SamplingRun(Accounting):
    """Accounting of a run over a sequence of draws, for as long as the budget lasts.

    Parameters
    ----------
    sources, measure
        As in `amsbq.integrate`.
    budget : float
        In units of cost.
    """

    def __init__(self, sources: SourcesLike, measure: MeasureLike, budget: float) -> None:
        super().__init__(sources, measure, budget)
        self._draws: Iterator[Draw] = iter(())
        self._next: Draw | None = None  # taken from the iterator, and not yet paid for
        self._adaptive = False
        self._left: list[int] = []  # sources of the present draw that were not asked yet
        self._groups: list[Group] = []  # of all draws
        self._draw_of: list[int] = []  # the number of the draw that each query belongs to, by its id

    def evaluate(
        self, draws: Iterator[Draw], executor: ExecutorLike | None, workers: int, adaptive: bool = False
    ) -> StopReason:
        """Evaluate draws in their order, and return why the run has stopped.

        The iterator may have no end. If it is ``adaptive``, it looks at ``evaluations`` to decide on the next draw. If
        it ends, it has no draw that the budget pays for.
        """
        self._draws, self.stopped, self._adaptive = draws, None, adaptive
        return Runner(self, (), executor, workers).run()

    @property
    def foreseen(self) -> bool:
        """Whether what is asked next does not depend on any answer."""
        return not self._adaptive and not any(source.measured for source in self.sources)

    def ask(self) -> Query | None:
        """Return the next query, or None if the sequence has ended or the budget does not pay for the next draw."""
        if not self._left:
            self._next = self._next or next(self._draws, None)
            if self._next is None or not self._can_pay_draw(*self._next):
                self._stop("budget")
                return None
            group, self._at = self._next
            self._groups.append(group)
            self._left, self._next = list(group), None
        self._draw_of.append(len(self._groups) - 1)
        return self._issued(self._left.pop(0), self._at)

    def _can_pay_draw(self, group: Group, x: Array) -> bool:
        price = sum(self.source_costs.expected(source, x) for source in group)
        return bool(affordable(self.committed + price, self.budget))

    def average_costs(self) -> Array:
        """Return the average cost of one evaluation of each source, shape (L,): what was charged, or else expected."""
        charged: list[list[float]] = [[] for _ in self.sources]
        for e in self.evaluations:
            charged[e.source].append(e.cost)
        if all(charged):
            return np.array([np.mean(costs) for costs in charged])
        X = self.measure.sobol(SETTINGS.cost_locations, 0)
        pairs = zip(charged, self.source_costs.costs, strict=True)
        return np.array([np.mean(paid or cost.expected(X)) for paid, cost in pairs])

    def draw_costs(self, groups: Sequence[Group]) -> Array:
        """Return the average cost of one draw of each group, shape (G,)."""
        costs = self.average_costs()
        return np.array([costs[list(group)].sum() for group in groups])

    def table(self) -> Array:
        """Return the values by draw, shape (N, L): NaN where a source was not evaluated, or failed."""
        values = np.full((len(self._groups), len(self.sources)), np.nan)
        for e in self.evaluations:
            values[self._draw_of[e.id or 0], e.source] = e.value
        return values

    def samples(self, table: Array) -> Samples:
        """Return the values of the first draws, those without failures, by their groups.

        Parameters
        ----------
        table : (n, L) array
            The first n rows of `table`.
        """
        rows: dict[Group, list[int]] = {}
        for row, group in enumerate(self._groups[: len(table)]):
            rows.setdefault(group, []).append(row)
        by_group = {group: table[np.ix_(some, list(group))] for group, some in rows.items()}
        return {group: values[np.isfinite(values).all(axis=1)] for group, values in by_group.items()}

    def progressive_result(self, stopped: StopReason, estimate: Callable[[Array], Estimate | None]) -> Result:
        """Return the result of the run, with an estimate of the values so far whenever their number has grown somewhat.

        Parameters
        ----------
        stopped : str
            Why the run has stopped, as `evaluate` returns it.
        estimate : function of the first n rows of `table`, shape (n, L)
            Returns the estimate from the first n draws, or None if there are too few values for one.
        """
        table = self.table()
        estimates: list[Estimate | None] = [None] * len(table)
        for n, draw in enumerate(np.flatnonzero(np.isfinite(table[:, 0])), start=1):
            if scheduled_refit(n) == n:
                estimates[draw] = estimate(table[: draw + 1])
        estimates[-1:] = [estimate(table)] if len(table) else []
        return self.result(stopped, estimates)

    def result(self, stopped: StopReason, estimates: Sequence[Estimate | None]) -> Result:
        """Return the result of the run, whose answer is the last estimate.

        Parameters
        ----------
        stopped : str
            Why the run has stopped, as `evaluate` returns it.
        estimates : sequence of Estimate or None
            The estimate after each draw; None where there is no new one.
        """
        answer = next((estimate for estimate in reversed(estimates) if estimate is not None), None)
        if answer is None:
            raise no_result_error(self, stopped)
        # While the run goes on, evaluations are recorded without an estimate: nothing is decided by it, and the
        # estimates after all draws are computed at once at the end. That is why they are filled in here.
        evaluations, mean, std = [], math.nan, math.nan
        last_of_draw = {draw: id for id, draw in enumerate(self._draw_of)}
        for e in self.evaluations:
            draw = self._draw_of[e.id or 0]
            latest = estimates[draw] if last_of_draw[draw] == e.id else None
            if latest is not None:
                mean, std = latest.mean, latest.std
            evaluations.append(replace(e, mean=mean, std=std))
        inputs = input_names(self.measure.dim)
        return Result(answer, evaluations, self.spent, stopped, self.names, self.budget, inputs)


def independent_draws(measure: Measure, seed: int | Sequence[int]) -> Iterator[Array]:
    """Yield independent draws from a measure without end, each of shape (D,)."""
    rng = np.random.default_rng(seed)
    while True:
        yield from measure.sample(SETTINGS.chunk, rng)


def sobol_points(measure: Measure, seed: list[int]) -> Iterator[Array]:
    """Yield a scrambled Sobol sequence without end, through the quantiles of a measure; each point has shape (D,)."""
    done, n = 0, SETTINGS.chunk
    while True:
        yield from measure.sobol(n, np.random.default_rng(seed))[done:]
        done, n = n, 2 * n
