"""Ratios of losses, and shares, with intervals by a cluster bootstrap: seeds of one problem are correlated.

A *loss* is a positive number for each run: a squared error, an interval score, a cost. For one problem it is averaged
over seeds; over problems the logarithms of ratios are averaged, so that every problem counts equally. Problems are
clusters: those of a family are resampled with replacement, and within each of them its seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import stats

from benchmarks.arena.arrays import Array

#: loss of each run by seed, for one problem and stage
BySeed: TypeAlias = Mapping[int, float]
#: (ours, theirs) of one problem, at each of one or more stages
Pairs: TypeAlias = Sequence[tuple[BySeed, BySeed]]

LEVEL = 0.95  #: level of all intervals
N_RESAMPLED = 2000
LEAST_LOSS = 1e-18  #: floor of losses: errors below 1e-9 are rounding errors


class Interval(NamedTuple):
    """A number, and the ends of its interval."""

    value: float
    low: float
    high: float

    @property
    def verdict(self) -> int:
        """For a ratio: -1 if its interval is below one, 1 if it is above, and 0 if it contains one."""
        return (self.low > 1) - (self.high < 1)


def ratio(problems: Mapping[str, Pairs], power: float = 1.0) -> Interval | None:
    """Return the ratio of our losses to theirs, to a power, with its interval; None without problems.

    With a single problem, or a single seed, the interval is unbounded: there is no information on others.

    ``power`` is 1/2 for squared errors, which gives the ratio of root mean squares. Common seeds are resampled
    together.
    """
    if not problems:
        return None
    rng, P = np.random.default_rng(0), len(problems)
    found = [_log_ratios(pairs, power, rng) for pairs in problems.values()]
    centres, drawn = np.array([centre for centre, _ in found]), np.array([logs for _, logs in found])
    value = float(np.exp(centres.mean()))
    if P < 2 or min(len(matched(*pair)[0]) for pairs in problems.values() for pair in pairs) < 2:
        return Interval(value, 0.0, np.inf)
    # P problems resampled from P have (P - 1) / P of the variance of P new ones
    drawn += (np.sqrt(P / (P - 1)) - 1) * (centres - centres.mean())[:, None]
    again = drawn[rng.integers(P, size=(P, N_RESAMPLED)), rng.integers(N_RESAMPLED, size=(P, N_RESAMPLED))]
    low, high = np.exp(np.quantile(again.mean(axis=0), [0.5 - LEVEL / 2, 0.5 + LEVEL / 2]))
    return Interval(value, float(low), float(high))


def _log_ratios(pairs: Pairs, power: float, rng: np.random.Generator) -> tuple[float, Array]:
    """Return the logarithm of the ratio of one problem, averaged over stages, and N_RESAMPLED versions of it."""
    found = [_of_stage(ours, theirs, rng) for ours, theirs in pairs]
    centres, drawn = zip(*found, strict=True)
    return power * float(np.mean(centres)), power * np.mean(drawn, axis=0)


def _of_stage(ours: BySeed, theirs: BySeed, rng: np.random.Generator) -> tuple[float, Array]:
    a, b = (np.maximum(losses, LEAST_LOSS) for losses in matched(ours, theirs))
    first = rng.integers(len(a), size=(N_RESAMPLED, len(a)))
    second = first if ours.keys() & theirs.keys() else rng.integers(len(b), size=(N_RESAMPLED, len(b)))
    return float(np.log(a.mean() / b.mean())), np.log(a[first].mean(axis=1) / b[second].mean(axis=1))


def matched(ours: BySeed, theirs: BySeed) -> tuple[list[float], list[float]]:
    """Return the losses of common seeds; if there are none, equally many of both.

    The logarithm of an average of few losses tends to be smaller than that of many, because large losses are rare.
    """
    common = sorted(ours.keys() & theirs.keys())
    if common:
        return [ours[seed] for seed in common], [theirs[seed] for seed in common]
    n = min(len(ours), len(theirs))
    return [ours[seed] for seed in sorted(ours)[:n]], [theirs[seed] for seed in sorted(theirs)[:n]]


def share(hits: Mapping[str, Sequence[float]]) -> Interval | None:
    """Return the share of hits with its interval, for the hits of each problem; None without any.

    The interval is that of Korn and Graubard (1998): Clopper and Pearson's for the effective number of hits, which is
    smaller than the number of runs as much as the variance between problems exceeds that of independent runs.
    """
    clusters = [np.asarray(values, dtype=float) for values in hits.values() if len(values)]
    if not clusters:
        return None
    n, total, P = sum(map(len, clusters)), sum(c.sum() for c in clusters), len(clusters)
    p = total / n
    between = sum((c.sum() - p * len(c)) ** 2 for c in clusters) * P / max(P - 1, 1) / n**2
    effective = n / max(between * n / (p * (1 - p)), 1.0) if 0 < p < 1 else n
    k, tail = p * effective, 0.5 - LEVEL / 2
    low = stats.beta.ppf(tail, k, effective - k + 1) if k > 0 else 0.0
    high = stats.beta.isf(tail, k + 1, effective - k) if k < effective else 1.0
    return Interval(float(p), float(low), float(high))
