"""monte_carlo."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from ..design.costs import ConstantCost, affordable
from ..execution.runner import Runner
from ..inference.estimate import Estimate
from ..measures.base import Measure
from ..results.result import Result
from ..validation import Array, count, source_number
from .survey import Survey

REPLICATES = 8  #: scramblings of a Sobol sequence, whose differences are its error bar


FIRST = 1024  #: points that are drawn at once, to begin with


def monte_carlo(
    sources: Any, measure: Any, *, budget: float, seed: int = 0, executor: Executor | None = None, workers: int = 1
) -> Result:
    """The average of the primary source over independent draws, with Student's interval for it.

    >>> from scipy import stats
    >>> print(monte_carlo(lambda x: x[0] ** 2, stats.norm(), budget=1000))
    integral: 0.956 ± 0.046, 95 % between 0.866 and 1.046
    stopped: the budget does not pay for more; spent 1000 of 1000
    <BLANKLINE>
      source      made  failed        cost
      source 0    1000       0        1000
    """
    survey = Survey(sources, measure, budget)
    survey.places = ((0, x) for x in _draws(survey.measure, seed))
    stopped = Runner(survey, (), executor, workers).run()
    return survey.result(stopped, 0, _averages(survey.values(0)))


def quasi_monte_carlo(
    sources: Any,
    measure: Any,
    *,
    budget: float,
    seed: int = 0,
    replicates: int = REPLICATES,
    executor: Executor | None = None,
    workers: int = 1,
) -> Result:
    """The average of the primary source over scrambled Sobol points, mapped through the quantiles of the measure.

    The error bar comes from the differences between independent scramblings, so many of which share the budget.
    """
    survey = Survey(sources, measure, budget)
    return _sobol(survey, 0, seed, replicates, executor, workers)


def secondary_only(
    sources: Any,
    measure: Any,
    *,
    budget: float,
    source: int = 1,
    seed: int = 0,
    executor: Executor | None = None,
    workers: int = 1,
) -> Result:
    """The integral of a secondary source, as if it were that of the primary one: cheap, and wrong by an unknown amount.

    By scrambled Sobol points. It has no error bar: what it says of its own precision says nothing of its bias.
    """
    survey = Survey(sources, measure, budget)
    source = source_number(source, len(survey.sources))
    found = _sobol(survey, source, seed, REPLICATES, executor, workers)
    evaluations = [replace(e, std=math.nan) for e in found.evaluations]
    return replace(found, estimate=Estimate([found.mean]), evaluations=evaluations)


def percentile(
    sources: Any,
    measure: Any,
    *,
    budget: float,
    nodes: Literal["middle", "right"] = "middle",
    executor: Executor | None = None,
    workers: int = 1,
) -> Result:
    """The average of the primary source over the percentiles of the measure; it has no error bar.

    In one dimension, cells of the same probability, as many as the budget pays for; in more, a grid of them. The paper
    evaluates at the right end of each, which is a right Riemann sum if the measure is uniform; where there is no right
    end, or for a better estimate, take the middle.
    """
    if nodes not in ("middle", "right"):
        raise ValueError(f"nodes must be 'middle' or 'right', got {nodes!r}")
    survey = Survey(sources, measure, budget)
    if nodes == "right" and not np.isfinite(survey.measure.bounds[:, 1]).all():
        raise ValueError(f"{survey.measure!r} has no right end: say nodes='middle'")
    if survey.sources[0].measured:
        raise ValueError("the percentiles depend on how many the budget pays for: the cost must be known, not measured")
    X = _finest_grid(survey, 1.0 if nodes == "right" else 0.5)
    survey.places = ((0, x) for x in X)
    stopped = Runner(survey, (), executor, workers).run()
    values = survey.values(0)
    estimates: list[Estimate | None] = [None] * len(values)  # only all of them together are one
    if np.isfinite(values).any():
        estimates[-1] = Estimate([np.nanmean(values)])
    return survey.result("budget" if stopped == "exhausted" else stopped, 0, estimates)


def _draws(measure: Measure, seed: int) -> Iterator[Array]:
    """Independent draws without end, one at a time."""
    rng = np.random.default_rng(count(seed, "seed"))
    while True:
        yield from measure.sample(FIRST, rng)


def _sobol_points(measure: Measure, seed: list[int]) -> Iterator[Array]:
    """A Sobol sequence without end, one point at a time."""
    done, n = 0, FIRST
    while True:
        yield from measure.sobol(n, np.random.default_rng(seed))[done:]
        done, n = n, 2 * n


def _sobol(survey: Survey, source: int, seed: int, replicates: int, executor: Executor | None, workers: int) -> Result:
    seed, R = count(seed, "seed"), count(replicates, "replicates")
    if R < 2:
        raise ValueError(f"replicates must be at least 2, or there is no error bar, got {R}")
    sequences = [_sobol_points(survey.measure, [seed, r]) for r in range(R)]
    survey.places = ((source, x) for together in zip(*sequences, strict=True) for x in together)
    stopped = Runner(survey, (), executor, workers).run()
    values = survey.values(source)
    rounds = values[: len(values) // R * R].reshape(-1, R)
    averages = np.nancumsum(rounds, axis=0) / np.maximum(np.cumsum(np.isfinite(rounds), axis=0), 1)
    estimates: list[Estimate | None] = [None] * len(values)
    estimates[R - 1 : len(rounds) * R : R] = [_averages(row)[-1] for row in averages]
    if not len(rounds):  # less than one round has no error bar
        estimates[-1:] = [Estimate([np.nanmean(values)])] if np.isfinite(values).any() else []
    return survey.result(stopped, source, estimates)


def _averages(values: Array) -> list[Estimate | None]:
    """The average after each of n independent values, with Student's distribution around it; NaN is a failure."""
    ok = np.isfinite(values)
    k = np.cumsum(ok)
    centre = np.median(values[ok]) if ok.any() else 0.0  # or squares of large numbers would cancel
    y = np.where(ok, values - centre, 0.0)
    means = np.cumsum(y) / np.maximum(k, 1)
    squares = np.maximum(np.cumsum(y * y) - k * means**2, 0.0)
    scales = np.sqrt(squares / np.maximum(k - 1, 1) / np.maximum(k, 1))
    return [
        Estimate([mean + centre], [scale] if j > 1 else None, dof=max(j - 1, 1)) if j else None
        for mean, scale, j in zip(means, scales, k.tolist(), strict=True)
    ]


def _finest_grid(survey: Survey, shift: float) -> Array:
    """As many percentiles as the budget pays for, the same number in each input."""
    cost, D = survey.source_costs.costs[0], survey.measure.dim

    def grid(k: int) -> Array:
        axis = (np.arange(k) + shift) / k
        return survey.measure.from_cube(np.stack(np.meshgrid(*[axis] * D, indexing="ij"), axis=-1).reshape(-1, D))

    k = 1
    if isinstance(cost, ConstantCost):
        k = max(int((survey.budget / cost.cost * (1 + 1e-12)) ** (1 / D) * (1 + 1e-12)), 1)
    while affordable(cost.expected(grid(k + 1)).sum(), survey.budget):
        k += 1
    return grid(k)
