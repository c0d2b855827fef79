"""control_variates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import chdtri

from ..execution.runner import Runner
from ..inference.estimate import Estimate
from ..results.result import Result
from ..validation import Array
from .monte_carlo import _averages, _draws
from .survey import Place, Survey

PILOT = 6  #: places, more than there are sources, before it is judged how good control variates are


SURE = 0.95  #: that they are not worse than it is judged


def control_variate(
    sources: Any, measure: Any, *, budget: float, seed: int = 0, executor: Executor | None = None, workers: int = 1
) -> Result:
    """Monte Carlo with the secondary sources as control variates: the primary one regressed on them.

    All sources are evaluated at independent draws, and the secondary ones at more of them, so many that the variance is
    smallest for the cost, as far as can be told from what was seen. The error bar is that of linear regression, plus
    what is not known of the secondary sources' averages.
    """
    survey = Survey(sources, measure, budget)
    if len(survey.sources) < 2:
        raise ValueError("a control variate needs a secondary source: sources must have two entries or more")
    survey.places = _control_places(survey, seed)
    stopped = Runner(survey, (), executor, workers).run()
    table = _table(survey)
    rows = np.flatnonzero(np.isfinite(table[:, 0]))
    found = iter([_regressed(table[: row + 1]) for row in rows])
    primary = sorted((e for e in survey.evaluations if e.source == 0), key=lambda e: e.id or 0)
    result = survey.result(stopped, 0, [next(found) if e.status == "ok" else None for e in primary])
    return replace(result, estimate=_regressed(table) or result.estimate)  # with what came after the last of them


def _control_places(survey: Survey, seed: int) -> Iterator[Place]:
    """The secondary sources at each draw, and the primary one too where there should be more of it."""
    L = len(survey.sources)
    shared, ratio, when = 0, 1.0, L + PILOT
    for total, x in enumerate(_draws(survey.measure, seed)):
        yield from ((source, x) for source in range(1, L))
        if total >= shared * ratio:
            yield 0, x
            shared += 1
        if shared >= when:
            ratio, when = _best_ratio(survey), 1 + int(1.2 * shared)


def _best_ratio(survey: Survey) -> float:
    """N / n for which the variance σ² ((1 - R²) / n + R² / N) is least for the cost, with no optimism about R²."""
    table = _table(survey)
    shared = table[np.isfinite(table).all(axis=1)]
    y, Y = shared[:, 0], shared[:, 1:]
    dof = len(y) - Y.shape[1] - 1
    if dof < 2:
        return 1.0
    _, residuals = _regression(y, Y)
    at_most = residuals @ residuals / chdtri(dof, SURE)  # of the residual variance
    unexplained = float(np.clip(at_most / max(np.var(y, ddof=1), np.finfo(float).tiny), 1e-6, 1.0))
    costs = [np.mean([e.cost for e in survey.evaluations if e.source == s]) for s in range(len(survey.sources))]
    return max(math.sqrt((1 / unexplained - 1) * costs[0] / sum(costs[1:])), 1.0)


def _table(survey: Survey) -> Array:
    """What the sources returned at each place, (N, 1 + M) in the order of queries, NaN where there is nothing."""
    rows: dict[tuple[float, ...], Array] = {}
    for e in sorted(survey.evaluations, key=lambda e: e.id or 0):
        rows.setdefault(tuple(e.x), np.full(len(survey.sources), np.nan))[e.source] = e.value
    return np.array(list(rows.values())).reshape(-1, len(survey.sources))


def _regression(y: Array, Y: Array) -> tuple[Array, Array]:
    """The slopes of y over the columns of Y, and the residuals."""
    centred = Y - Y.mean(axis=0)
    slopes = np.linalg.lstsq(centred, y - y.mean(), rcond=None)[0]
    return slopes, y - y.mean() - centred @ slopes


def _regressed(table: Array) -> Estimate | None:
    """The average of the primary source, if secondary ones are what they are at all places on average.

    Its variance is s² (1/n + dᵀ (YᵀY)⁻¹ d) + βᵀ Cov(Y) β / N, where d is how far the secondary averages over the n
    places at which the primary source is known are from those over all N.
    """
    everywhere = table[np.isfinite(table[:, 1:]).all(axis=1)]
    shared = everywhere[np.isfinite(everywhere[:, 0])]
    y, Y, all_Y = shared[:, 0], shared[:, 1:], everywhere[:, 1:]
    dof = len(y) - Y.shape[1] - 1
    if dof < 2:
        return next(reversed(_averages(y)), None)
    slopes, residuals = _regression(y, Y)
    distance = all_Y.mean(axis=0) - Y.mean(axis=0)
    leverage = np.linalg.lstsq((Y - Y.mean(axis=0)).T, distance, rcond=None)[0]
    within = residuals @ residuals / dof * (1 / len(y) + leverage @ leverage)
    between = np.var(all_Y @ slopes, ddof=1) / len(all_Y)
    return Estimate([y.mean() + distance @ slopes], [math.sqrt(within + between)], dof=dof)
