"""Scores of single estimates: errors, certified costs, intervals. Pure functions of numbers.

Everything is in standard deviations of the primary source under the measure, and relative to the true integral: an
*error* is mean minus truth, an interval (low, high) covers the truth if low ≤ 0 ≤ high. Rows of a trajectory are in the
order of their costs. Arrays over runs have shape (n,); NaN stands for runs without the number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from benchmarks.arena.arrays import Array

LEVELS = (0.5, 0.8, 0.95)  #: levels of central intervals
ACCURACIES = (0.1, 0.01, 0.001)  #: half widths of intervals whose certified cost is computed


@dataclass(frozen=True)
class Row:
    """One estimate of a trajectory, after a cost."""

    cost: float
    error: float
    std: float  # NaN without an error bar
    intervals: tuple[tuple[float, float], ...] = ()  # (low, high) at each of LEVELS; empty without an error bar
    surprise: float = math.nan  # -log density of the truth
    probability: float = math.nan  # of values below the truth

    @property
    def has_bar(self) -> bool:
        """Whether there is an error bar."""
        return bool(self.intervals) and bool(np.isfinite(self.intervals[-1]).all())

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval; infinite without one."""
        low, high = self.intervals[-1] if self.intervals else (-math.inf, math.inf)
        return (high - low) / 2

    def holds(self, level: float) -> bool:
        """Return whether the interval of one of LEVELS holds the truth."""
        low, high = self.intervals[LEVELS.index(level)]
        return low <= 0 <= high

    @property
    def interval_score(self) -> float:
        """The interval score of the 95 % interval."""
        return interval_score(*self.intervals[-1])


def certified_cost(rows: list[Row], accuracy: float) -> float:
    """Return the cost at which a user who waits for a half width within an accuracy correctly stops.

    It is that of the first row whose 95 % interval is that narrow; infinity if there is none, or if that interval does
    not cover the truth.
    """
    first = next((row for row in rows if row.half_width <= accuracy), None)
    return first.cost if first is not None and first.holds(0.95) else math.inf


def false_certificate(rows: list[Row], accuracy: float) -> bool:
    """Return whether the first 95 % interval with a half width within an accuracy misses the truth."""
    first = next((row for row in rows if row.half_width <= accuracy), None)
    return first is not None and not first.holds(0.95)


def rmse(errors: Array) -> float:
    """Return the root mean square of errors."""
    return float(np.sqrt(np.mean(np.asarray(errors, dtype=float) ** 2)))


#: floor of errors, which bounds their logarithm: anything below is rounding
LEAST_ERROR = 1e-9


def typical_error(errors_by_problem: Iterable[Array]) -> float:
    """Return the geometric mean over problems of the root mean square error over seeds.

    Every problem counts equally, however large its errors are, and within a problem no seed wins by luck.
    """
    roots = [max(rmse(errors), LEAST_ERROR) for errors in errors_by_problem]
    return float(np.exp(np.mean(np.log(roots))))


def ratio_quantiles(errors: Array, stds: Array) -> tuple[float, ...]:
    """Return the quantiles of |error| / std at each of LEVELS; 0.67, 1.28 and 1.96 for calibrated Gaussians."""
    with np.errstate(divide="ignore"):  # an error bar of zero
        ratios = np.abs(errors) / np.asarray(stds)
    return tuple(float(q) for q in np.quantile(ratios, LEVELS))


def interval_score(low: float, high: float, level: float = 0.95) -> float:
    """Return the interval score of an interval for the truth 0 (Gneiting and Raftery 2007): width plus penalty."""
    return (high - low) + 2 / (1 - level) * (max(low, 0.0) + max(-high, 0.0))
