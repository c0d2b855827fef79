"""Stored records, ways to select among them, and the losses by which methods and versions are compared."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from benchmarks.arena.arrays import Array

from .families import problem_named
from .methods import BUDGETS, METHODS, TRACED, Stage
from .resampling import BySeed, Interval, Pairs, ratio, share
from .scores import Row, certified_cost
from .split import Half, half_of
from .store import Record

HALVES: tuple[Half, ...] = ("development", "validation")
#: certified cost of a run that has certified nothing by the end of its budget of 10
UNCERTIFIED = 2 * float(TRACED[0])

Loss: TypeAlias = Callable[[list[Row]], float]  # of a trajectory


def squared_error(rows: list[Row]) -> float:
    """Return the square of the last error."""
    return rows[-1].error ** 2


def last_interval_score(rows: list[Row]) -> float:
    """Return the interval score of the last row; NaN without an error bar."""
    return rows[-1].interval_score if rows[-1].has_bar else math.nan


def cost_to_certify(accuracy: float) -> Loss:
    """Return the certified cost as a loss: runs that certify nothing count as twice the budget."""
    return lambda rows: min(certified_cost(rows, accuracy), UNCERTIFIED)


@dataclass(frozen=True)
class Results:
    """Records of runs with at least one estimate."""

    records: tuple[Record, ...]

    @classmethod
    def of(cls, records: Iterable[Record]) -> Results:
        """Return the records that have rows."""
        return cls(tuple(record for record in records if record.rows))

    def where(self, keep: Callable[[Record], bool]) -> Results:
        """Return some of the records."""
        return Results(tuple(filter(keep, self.records)))

    def of_method(self, name: str) -> Results:
        """Return the records of a method."""
        return self.where(lambda r: r.method == name)

    def of_half(self, half: Half) -> Results:
        """Return the records of one half of the problems."""
        return self.where(lambda r: half_of(problem_named(r.problem)) == half)

    def of_family(self, name: str) -> Results:
        """Return the records of a family."""
        return self.where(lambda r: r.family == name)

    def at(self, stage: Stage) -> Results:
        """Return the records of a stage."""
        return self.where(lambda r: r.stage == stage)

    @property
    def methods(self) -> list[str]:
        """The methods of the records, in the order of the registry."""
        present = {r.method for r in self.records}
        return [name for name in METHODS if name in present]

    @property
    def problems(self) -> set[str]:
        """The problems of the records."""
        return {r.problem for r in self.records}

    @property
    def seconds(self) -> float:
        """The total CPU time."""
        return sum(r.seconds for r in self.records)

    def losses(self, loss: Loss) -> dict[str, dict[int, float]]:
        """Return the loss of each seed, averaged over outputs, for each problem; unknown losses are left out."""
        found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        for record in self.records:
            value = loss(record.rows)
            if not math.isnan(value):
                found[record.problem][record.seed].append(value)
        return {p: {seed: float(np.mean(v)) for seed, v in seeds.items()} for p, seeds in found.items()}

    def errors_by_problem(self) -> dict[str, Array]:
        """Return the last errors of all seeds and outputs, for each problem."""
        found: dict[str, list[float]] = defaultdict(list)
        for record in self.records:
            found[record.problem].append(record.rows[-1].error)
        return {problem: np.array(errors) for problem, errors in found.items()}

    def judged(self) -> list[Row]:
        """Return the rows by which error bars are judged: the last one of each run, if it has an error bar."""
        return [r.rows[-1] for r in self.records if r.rows[-1].has_bar]

    def coverage(self, level: float) -> Interval | None:
        """Return the coverage of intervals of a level, with an interval that accounts for clustering by problem."""
        hits: dict[str, list[float]] = defaultdict(list)
        for record in self.records:
            if record.rows[-1].has_bar:
                hits[record.problem].append(record.rows[-1].holds(level))
        return share(hits)

    def trajectories(self) -> list[Record]:
        """Return one record for each problem, method, seed and output, with its estimates up to a budget of 10.

        Active methods are recorded along the run; the estimates of other methods are from runs with smaller budgets.
        """
        runs: dict[tuple[str, str, int, int], list[Record]] = defaultdict(list)
        for record in self.records:
            method = METHODS[record.method]
            if record.stage == TRACED[0] or not (method.active or method.given_data or record.stage in TRACED):
                runs[record.problem, record.method, record.seed, record.output].append(record)
        return [_joined(records) for records in runs.values()]


def _joined(records: list[Record]) -> Record:
    last = max(records, key=lambda r: float(r.stage))
    rows = sorted((row for r in records for row in r.rows), key=lambda row: row.cost)
    return Record(**vars(last) | {"rows": rows})


def compared(
    ours: Results, theirs: Results, stages: Iterable[Stage], loss: Loss = squared_error, power: float = 0.5
) -> Interval | None:
    """Return the ratio of our losses to theirs over the problems common to both at some stages."""
    problems: dict[str, list[tuple[BySeed, BySeed]]] = defaultdict(list)
    for stage in stages:
        a, b = ours.at(stage).losses(loss), theirs.at(stage).losses(loss)
        for problem in sorted(a.keys() & b.keys()):
            problems[problem].append((a[problem], b[problem]))
    pairs: Mapping[str, Pairs] = problems
    return ratio(pairs, power)


def stages_of(results: Results) -> list[Stage]:
    """Return the stages of results: budgets first, in order, then given data."""
    present = {r.stage for r in results.records}
    budgets = sorted((s for s in present if s.isdigit()), key=float)
    return [*budgets, *sorted((s for s in present if not s.isdigit()), reverse=True)]


def budgets_of(results: Results) -> list[Stage]:
    """Return the budgets of results at which methods are compared."""
    return [stage for stage in stages_of(results) if stage in (*BUDGETS, *TRACED)]
