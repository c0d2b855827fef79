"""Levels: sources in order, from the finest (the primary one) to the coarsest, and telescoping sums over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from ..design.costs import affordable
from ..validation import Array, brief, source_number
from .sampling_run import Draw, Group, Samples, SamplingRun

#: standard deviations are estimated again when the number of draws of a level has grown by this factor: often enough to
#: correct a wrong one soon, and without work that grows faster than the number of draws
GROWTH = 1.2


def level_order(run: SamplingRun, order: Sequence[int] | None, method: str) -> list[int]:
    """Return the sources from the finest to the coarsest, by falling cost unless the user gave an order."""
    if order is None:
        costs = run.average_costs()
        order = [0, *sorted(range(1, len(costs)), key=lambda source: -costs[source])]
    return checked_order(order, len(run.sources), method)


def checked_order(order: Sequence[int] | None, n_sources: int, method: str) -> list[int]:
    """Return the sources from the finest to the coarsest, as they are numbered unless an order is given."""
    levels = list(range(n_sources)) if order is None else [source_number(s, n_sources, "order") for s in order]
    if levels[:1] != [0] or len(set(levels)) < len(levels):
        raise ValueError(f"order must name different sources, the primary one, 0, first, got {brief(order)}")
    if len(levels) < 2:
        raise ValueError(f"{method} needs a coarser source: there must be two or more")
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


def adaptive_draws(
    run: SamplingRun,
    groups: list[Group],
    pilot: int,
    locations: list[Iterator[Array]],
    *,
    power: int,
    rate: float,
    most: float = np.inf,
) -> Iterator[Draw]:
    """Yield the draws of a pilot, and then those of the level that each draw helps most for its cost.

    The error of level l is taken to be a_l n_l^-r, where n_l is its number of draws and a_l a power of the standard
    deviation of its term so far. The sum of these errors is least at a given cost if n_l is in proportion to
    (a_l / C_l)^(1 / (1 + r)), where C_l is the cost of a draw. Taking a_l (n_l^-r - (n_l + 1)^-r) / C_l as the worth of
    the next draw leads there, in integers and within the budget.

    Parameters
    ----------
    run : SamplingRun
        The run.
    groups : list of Group
        The sources of each level, as `level_groups` returns them.
    pilot : int
        Number of draws of each level to begin with.
    locations : list of iterators
        Where to draw, for each level.
    power : int
        1 if the error is a standard deviation, 2 if it is a variance.
    rate : float
        The rate r.
    most : float
        The largest number of draws of a level.
    """
    for group, points in zip(groups * pilot, locations * pilot, strict=True):
        yield group, next(points)
    n, reviewed = np.full(len(groups), float(pilot)), np.zeros(len(groups))
    while True:
        if (n >= GROWTH * reviewed).any():
            terms = level_differences(run.samples(run.table()), groups)
            # Levels without two values come first: with several workers, they may not have arrived yet.
            sizes = np.array([values.std(ddof=1) if len(values) > 1 else np.inf for values in terms]) ** power
            costs, reviewed = run.draw_costs(groups), n.copy()
        possible = affordable(run.committed + costs, run.budget) & (n < most)
        if not possible.any():
            return
        level = int(np.argmax(np.where(possible, sizes * (n**-rate - (n + 1) ** -rate) / costs, -np.inf)))
        n[level] += 1
        yield groups[level], next(locations[level])
