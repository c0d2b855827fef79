"""What else there is: other estimates of the same integral, to compare with.

All take sources, a measure and a budget as `integrate` does, and return the same kind of result; where a method has no
error bar, the standard deviation is NaN.

Notation:  y (n,)          values of the primary source
           Y (N, M)        values of the M secondary sources; where control variates are used, the first n at the
                           same places as y
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.special import chdtri

from .checks import Array, count, source_number
from .costs import ConstantCost, affordable
from .estimates import Estimate
from .ledger import Ledger
from .measures import Measure
from .records import Query
from .result import Result, input_names
from .runner import Runner, integrate, no_success
from .sources import as_sources

Place: TypeAlias = tuple[int, Array]  #: a source, and x of shape (D,)

REPLICATES = 8  #: scramblings of a Sobol sequence, whose differences are its error bar
PILOT = 6  #: places, more than there are sources, before it is judged how good control variates are
SURE = 0.95  #: that they are not worse than it is judged
FIRST = 1024  #: points that are drawn at once, to begin with


class Survey(Ledger):
    """The books of a run that evaluates given places, one after the other, as long as the budget lasts."""

    places: Iterator[Place] = iter(())
    _next: Place | None = None

    def ask(self) -> Query | None:
        """The next query, or None if there is none."""
        place = self._next = self._next or next(self.places, None)
        if place is None or not self._can_pay(*place):
            self._stop("exhausted" if place is None else "budget")
            return None
        self._next = None
        return self._issued(*place)

    def values(self, source: int) -> Array:
        """What a source returned in the order of queries, NaN where it failed."""
        of = sorted((e for e in self.evaluations if e.source == source), key=lambda e: e.id or 0)
        return np.array([e.value for e in of])

    def result(self, stopped: str, source: int, estimates: list[Estimate | None]) -> Result:
        """With an estimate after each evaluation of a source, where there is one; the last is the answer."""
        answer = next((estimate for estimate in reversed(estimates) if estimate is not None), None)
        if answer is None:
            raise no_success(self, stopped)
        following, evaluations, known = iter(estimates), [], (math.nan, math.nan)
        for e in self.evaluations:
            latest = next(following) if e.source == source else None
            known = known if latest is None else (latest.mean, latest.std)
            evaluations.append(replace(e, mean=known[0], std=known[1]))
        inputs = input_names(self.measure.dim)
        return Result(answer, evaluations, self.spent, stopped, self.names, self.budget, inputs)


def vanilla_bq(sources: Any, measure: Any, **options: Any) -> Result:
    """Bayesian quadrature with the primary source alone, and the most probable hyperparameters.

    Takes what `integrate` takes.
    """
    return integrate(as_sources(sources)[:1], measure, model="vbq", **options)


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


BASELINES: dict[str, Callable[..., Result]] = {
    "vanilla BQ": vanilla_bq,
    "percentiles": percentile,
    "Monte Carlo": monte_carlo,
    "quasi Monte Carlo": quasi_monte_carlo,
    "secondary only": secondary_only,
    "control variate": control_variate,
}


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
    cost, D = survey.prices.costs[0], survey.measure.dim

    def grid(k: int) -> Array:
        axis = (np.arange(k) + shift) / k
        return survey.measure.from_cube(np.stack(np.meshgrid(*[axis] * D, indexing="ij"), axis=-1).reshape(-1, D))

    k = 1
    if isinstance(cost, ConstantCost):
        k = max(int((survey.budget / cost.cost * (1 + 1e-12)) ** (1 / D) * (1 + 1e-12)), 1)
    while affordable(cost.expected(grid(k + 1)).sum(), survey.budget):
        k += 1
    return grid(k)


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
