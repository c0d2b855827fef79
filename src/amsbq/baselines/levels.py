"""Levels: sources in order, from the finest (the primary one) to the coarsest, and telescoping sums over them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ..design.costs import affordable
from ..validation import Array, brief, source_number
from .sampling_run import Group, Samples, SamplingRun


def level_order(run: SamplingRun, order: Sequence[int] | None, method: str) -> list[int]:
    """Return the sources from the finest to the coarsest, by falling cost unless the user gave an order."""
    L = len(run.sources)
    if order is None:
        costs = run.average_costs()
        levels = [0, *sorted(range(1, L), key=lambda source: -costs[source])]
    else:
        levels = [source_number(source, L, "order") for source in order]
        if not levels or levels[0] != 0 or len(set(levels)) < len(levels):
            raise ValueError(f"order must name different sources, the primary one, 0, first, got {brief(order)}")
    if len(levels) < 2:
        raise ValueError(f"{method} needs a coarser source: sources must have two entries or more")
    return levels


def level_groups(levels: Sequence[int]) -> list[Group]:
    """Return the sources of each term of a telescoping sum: pairs of neighbouring levels, and the coarsest level.

    >>> level_groups([0, 2, 1])
    [(0, 2), (2, 1), (1,)]
    """
    return [*pairwise(levels), (levels[-1],)]


def level_differences(samples: Samples, groups: Sequence[Group]) -> list[Array]:
    """Return the values of each term of a telescoping sum, shape (n_l,): differences, and the coarsest level."""
    drawn = [samples.get(group, np.zeros((0, len(group)))) for group in groups]
    return [values[:, 0] - values[:, 1:].sum(axis=1) for values in drawn]


def most_useful(gains: Array, costs: Array, run: SamplingRun) -> int | None:
    """Return the one with the largest gain for its cost of those that the budget pays for, or None if there is none."""
    possible = affordable(run.committed + costs, run.budget)
    return int(np.argmax(np.where(possible, gains / costs, -np.inf))) if possible.any() else None
