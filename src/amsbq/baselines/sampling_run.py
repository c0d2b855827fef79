"""Runs whose locations come from a sequence instead of a model, and the result of such a run.

Methods that average over points of the measure differ in two things: the sequence of draws that they evaluate, and
their estimate from the values. A *draw* is a location together with the sources that are evaluated there, and is paid
for as a whole. `SamplingRun` handles everything else: budget, failed evaluations, workers, and the `Result`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from ..common.validation import Array, RNGLike, seed_number
from ..design.costs import affordable
from ..design.description import Problem, input_names
from ..design.evaluations import Choice, Query, StopReason
from ..design.run import Run
from ..design.sources import SourcesLike
from ..execution.executors import ExecutorLike
from ..execution.runner import Runner, no_result_error
from ..measures.adapters import MeasureLike
from ..measures.base import Measure
from ..posterior.estimate import Estimate
from ..posterior.schedule import scheduled_refit
from ..results.result import Result

#: indices of the sources that are evaluated at the same location
Group: TypeAlias = tuple[int, ...]
#: the sources to evaluate, and the location x of shape (D,)
Draw: TypeAlias = tuple[Group, Array]
#: values by the group that was drawn: a row for each draw without failures, a column for each source of the group
Samples: TypeAlias = dict[Group, Array]


@dataclass(frozen=True)
class SamplingSettings:
    """Constants of runs over a sequence of draws."""

    chunk: int = 1024  # points of the measure per batch: of draws, and for the average cost before any evaluation


SETTINGS = SamplingSettings()


class SamplingRun(Run):
    """A run over a sequence of draws, for as long as the budget lasts.

    The parameters are those of `monte_carlo`; ``seed`` is the resulting seed.
    """

    def __init__(
        self,
        sources: SourcesLike,
        measure: MeasureLike,
        budget: float,
        seed: RNGLike,
        rng: RNGLike,
        executor: ExecutorLike | None,
        workers: int,
    ) -> None:
        self.seed = seed_number(seed, rng)
        super().__init__(Problem.of(sources, measure, budget=budget, seed=self.seed))
        self._executor, self._workers = executor, workers
        self._draws: Iterator[Draw] = iter(())
        self._next: Draw | None = None  # taken from the iterator, but not yet paid for
        self._adaptive = False
        self._left: list[int] = []  # sources of the current draw that were not requested yet
        self._groups: list[Group] = []  # the group of each draw
        self._draw_of: list[int] = []  # number of the draw of each query, by id
        self.ended: StopReason = ""  #: why the last sequence has ended

    def require_secondary(self, method: str) -> None:
        """Raise ValueError if there is no secondary source."""
        if len(self.sources) < 2:
            raise ValueError(f"{method} needs a secondary source: sources must have two entries or more")

    def evaluate(self, draws: Iterator[Draw], adaptive: bool = False) -> None:
        """Evaluate draws in order.

        The iterator may be infinite. If it is ``adaptive``, it uses ``evaluations`` to decide on the next draw. If it
        ends, it has no draw that the budget covers.
        """
        self._draws, self.stopped, self._adaptive = draws, None, adaptive
        self.ended = Runner(self, (), self._executor, self._workers).run()

    def _foreseen(self) -> bool:
        return not self._adaptive and not any(source.measured for source in self.sources)

    def ask(self) -> Query | None:
        """Return the next query, or None if the sequence has ended or the budget does not cover the next draw."""
        if not self._left:
            self._next = self._next or next(self._draws, None)
            if self._next is None or not self._can_pay_draw(*self._next):
                self.stopped = None if self.ledger.pending else "budget"
                return None
            group, self._at = self._next
            self._groups.append(group)
            self._left, self._next = list(group), None
        self._draw_of.append(len(self._groups) - 1)
        return self.ledger.issue(Choice(self._left.pop(0), self._at))

    def _can_pay_draw(self, group: Group, x: Array) -> bool:
        price = sum(self.ledger.costs.expected(source, x) for source in group)
        return bool(affordable(self.ledger.committed + price, self.budget))

    def average_costs(self) -> Array:
        """Return the average cost of one evaluation of each source, shape (L,): as charged, or else as expected."""
        charged: list[list[float]] = [[] for _ in self.sources]
        for e in self.evaluations:
            charged[e.source].append(e.cost)
        if all(charged):
            return np.array([np.mean(costs) for costs in charged])
        X = self.measure.sobol(SETTINGS.chunk, 0)
        pairs = zip(charged, self.ledger.costs.costs, strict=True)
        return np.array([np.mean(paid or cost.expected(X)) for paid, cost in pairs])

    def draw_costs(self, groups: Sequence[Group]) -> Array:
        """Return the average cost of one draw of each group, shape (G,)."""
        costs = self.average_costs()
        return np.array([costs[list(group)].sum() for group in groups])

    def table(self) -> Array:
        """Return the values by draw, shape (N, L), with NaN where a source was not evaluated, or failed."""
        values = np.full((len(self._groups), len(self.sources)), np.nan)
        for e in self.evaluations:
            values[self._draw_of[e.id or 0], e.source] = e.value
        return values

    def samples(self, table: Array) -> Samples:
        """Return the values of draws without failures, by group, from the first n rows of `table`, (n, L)."""
        rows: dict[Group, list[int]] = {}
        for row, group in enumerate(self._groups[: len(table)]):
            rows.setdefault(group, []).append(row)
        by_group = {group: table[np.ix_(some, list(group))] for group, some in rows.items()}
        return {group: values[np.isfinite(values).all(axis=1)] for group, values in by_group.items()}

    def progressive_result(self, estimate: Callable[[Array], Estimate | None]) -> Result:
        """Return the result of the run, with intermediate estimates at growing numbers of values.

        ``estimate`` takes the first n rows of `table`, shape (n, L), and returns None if there are too few values.
        """
        table = self.table()
        estimates: list[Estimate | None] = [None] * len(table)
        for n, draw in enumerate(np.flatnonzero(np.isfinite(table[:, 0])), start=1):
            if scheduled_refit(n) == n:
                estimates[draw] = estimate(table[: draw + 1])
        estimates[-1:] = [estimate(table)] if len(table) else []
        return self.result(estimates)

    def result(self, estimates: Sequence[Estimate | None]) -> Result:
        """Return the result of the run from the estimates after each draw, None where there is no new one.

        The answer is the last estimate; if there is none, the run's failure is raised as an error.
        """
        answer = next((estimate for estimate in reversed(estimates) if estimate is not None), None)
        if answer is None:
            raise no_result_error(self, self.ended)
        # During the run, evaluations are recorded without an estimate, because no decision needs it; the estimates
        # after all draws are computed at once at the end, and filled in here.
        evaluations, mean, std = [], math.nan, math.nan
        last_of_draw = {draw: id for id, draw in enumerate(self._draw_of)}
        for e in self.evaluations:
            draw = self._draw_of[e.id or 0]
            latest = estimates[draw] if last_of_draw[draw] == e.id else None
            if latest is not None:
                mean, std = latest.mean, latest.std
            evaluations.append(replace(e, mean=mean, std=std))
        inputs = input_names(self.measure.dim)
        return Result(answer, evaluations, self.spent, self.ended, self.names, self.budget, inputs)


def independent_draws(measure: Measure, seed: int | Sequence[int]) -> Iterator[Array]:
    """Yield an infinite sequence of independent draws from a measure, each of shape (D,)."""
    rng = np.random.default_rng(seed)
    while True:
        yield from measure.sample(SETTINGS.chunk, rng)


def sobol_points(measure: Measure, seed: list[int]) -> Iterator[Array]:
    """Yield an infinite scrambled Sobol sequence, mapped through the quantiles of a measure; points have shape (D,)."""
    done, n = 0, SETTINGS.chunk
    while True:
        yield from measure.sobol(n, np.random.default_rng(seed))[done:]
        done, n = n, 2 * n
