"""The data behind every figure of a run, shared by matplotlib (`plots`) and Plotly (`plotly_figures`).

Notation: L sources, D inputs, M outputs; curves are over a grid t of shape (n,) of one input, or of the output.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ..common.validation import Array, IntArray, brief, source_number, vector
from ..design.decisions import Decisions
from ..design.evaluations import Choice
from ..design.fidelities import level_texts
from ..design.goals import spreads
from ..execution.reader import read_result
from ..measures.base import Measure
from ..measures.composed import Mixture
from ..measures.empirical import Empirical
from ..measures.gaussian import Gaussian, GaussianCopula
from ..measures.product import Product
from ..posterior.correlations import Correlations
from ..posterior.estimates import Estimates
from ..posterior.sensitivity import Sensitivity
from ..results import analysis
from ..results.result import NO_MODEL, Result, furthest, primary_values, result_of, totals

#: what a figure can be made of: a result, an integrator, or the path of a journal
Run: TypeAlias = Result | Decisions | str | os.PathLike[str]


@dataclass(frozen=True)
class CurveSettings:
    """Grid sizes, and limits beyond which a figure is left out."""

    grid_points: int = 201  # points of a curve: looks smooth on a page
    slice_points: int = 41  # along each side of a slice: 1,681 predictions, for each pair of inputs
    flat_effect: float = 0.25  # width of the band / spread of the values, above which a flat main effect is unknown
    last_share: float = 0.2  # smallest share of the height of the convergence plot that the final interval takes
    #: number of outputs, those farthest from their goals, for which the page shows what takes long to compute (the
    #: distribution), and for which alone it shows details if there are too many outputs
    furthest: int = 3


SETTINGS = CurveSettings()
#: probabilities of the quantiles to draw and list
SHOWN_QUANTILES = (0.05, 0.5, 0.95)
#: points of a density curve: few, because it is smooth and each point takes hundredths of a second
DENSITY_POINTS = 61
#: minimum number of outputs with numbers for names for which a profile is drawn
SHORTEST_PROFILE = 3
NORMAL_95 = float(scipy.special.ndtri(0.975))  #: half width of a Gaussian's 95 % interval, in standard deviations


@dataclass(frozen=True)
class Curve:
    """A function of one input, with its uncertainty: arrays of shape (n,)."""

    t: Array
    mean: Array
    std: Array
    spread: float  #: standard deviation of the observations of the source

    def band(self) -> tuple[Array, Array]:
        """Return the lower and the upper end of the 95 % interval, shape (n,) each."""
        return self.mean - NORMAL_95 * self.std, self.mean + NORMAL_95 * self.std

    @property
    def known(self) -> bool:
        """Whether the 95 % band is narrower than the range of the curve, or shows that there is hardly an effect."""
        low, high = self.band()
        return bool(np.median(high - low) <= max(np.ptp(self.mean), SETTINGS.flat_effect * self.spread))


@dataclass(frozen=True)
class Convergence:
    """The estimate of the integral after each of n evaluations: arrays of shape (n,)."""

    cost: Array  #: cumulative
    mean: Array  #: NaN before the first estimate
    std: Array
    sources: IntArray
    failed: NDArray[np.bool_]
    below: float  #: distance of the mean from the lower end of the 95 % interval, in standard deviations
    above: float  #: distance of the mean from the upper end, in standard deviations

    @property
    def known(self) -> NDArray[np.bool_]:
        """Mask of the evaluations after which there was an estimate."""
        return np.isfinite(self.mean)

    def band(self) -> tuple[Array, Array, Array]:
        """Return cost, and the ends of the 95 % interval, where there was an estimate.

        The last interval is the printed one. For earlier evaluations only mean and standard deviation are stored, and
        their distributions are assumed to have the shape of the last one. Where the standard deviation is unknown, the
        band has zero width.
        """
        std = np.where(np.isfinite(self.std), self.std, 0.0)[self.known]
        mean = self.mean[self.known]
        return self.cost[self.known], mean - self.below * std, mean + self.above * std

    def positive_std(self) -> tuple[Array, Array]:
        """Return cost and standard deviation where both are positive, for logarithmic axes."""
        drawn = np.isfinite(self.std) & (self.std > 0) & (self.cost > 0)
        return self.cost[drawn], self.std[drawn]

    def limits(self) -> tuple[float, float]:
        """Return limits of the vertical axis at which the last interval is legible; the first ones may extend beyond.

        The last interval takes at least a `SETTINGS.last_share` of the height, unless all others are as narrow.
        """
        _, low, high = self.band()
        if not len(low):
            return 0.0, 1.0
        bottom, top, width = low.min(), high.max(), (high[-1] - low[-1]) / SETTINGS.last_share
        if width > 0:
            middle = (high[-1] + low[-1]) / 2
            bottom, top = max(bottom, middle - width / 2), min(top, middle + width / 2)
        margin = 0.05 * (top - bottom) or 1.0
        return float(bottom - margin), float(top + margin)


@dataclass(frozen=True)
class Rates:
    """Utility per cost of the next evaluation, along one input through the best location."""

    t: Array  #: (n,)
    rates: Array  #: (L, n)
    next: Choice | None  #: the best location, or None if there is nothing left to evaluate


def as_result(run: Run) -> Result:
    """Return the result of a run so far; with several outputs, that of the output farthest from its goal."""
    return furthest(whole_result(run))


def whole_result(run: Run) -> Result:
    """Return the result of a run so far, with all its outputs."""
    if isinstance(run, Result):
        return run
    if isinstance(run, Decisions):
        return result_of(run, run.stopped or "")
    if isinstance(run, str | os.PathLike):
        return read_result(run)
    raise TypeError(f"give a Result, an Integrator, or the path of a journal, got {brief(run)}")


def integrator_of(result: Result) -> Decisions:
    """Return the integrator of a result; raise ValueError if it has no model or no observations yet."""
    if result.integrator is None:
        raise ValueError(f"this figure needs a model, but there is none: {NO_MODEL}")
    analysis.posterior_of(result.integrator)
    return result.integrator


def known_source(result: Result, source: int) -> int:
    """Return the index of a source; raise ValueError if the model has no such source."""
    return source_number(source, len(integrator_of(result).policy.used), names=result.names)


def known_input(result: Result, input: int | str) -> int:
    """Return the index of an input, given by index or name; raise ValueError if there is no such input."""
    if isinstance(input, str) and input in result.inputs:
        return list(result.inputs).index(input)
    if isinstance(input, int | np.integer) and 0 <= input < len(result.inputs):
        return int(input)
    raise ValueError(f"there is no input {brief(input)}; valid names: {', '.join(result.inputs)}")


def convergence(result: Result) -> Convergence:
    """Return the estimate after each evaluation."""
    evaluations, estimate = result.evaluations, result.estimate
    below = above = NORMAL_95
    if 0 < estimate.std < math.inf:
        low, high = estimate.interval(0.95)
        below, above = (estimate.mean - low) / estimate.std, (high - estimate.mean) / estimate.std
    return Convergence(
        np.cumsum([e.cost for e in evaluations]),
        np.array([e.mean for e in evaluations], dtype=float),
        np.array([e.std for e in evaluations], dtype=float),
        np.array([e.source for e in evaluations], dtype=np.intp),
        np.array([e.status == "failed" for e in evaluations], dtype=bool),
        below,
        above,
    )


def grid(result: Result, input: int, n: int = SETTINGS.grid_points) -> Array:
    """Return n equidistant values of one input, over the range in which evaluations are searched, shape (n,)."""
    measure = integrator_of(result).measure.over([input])
    if measure.discrete:
        return _evenly(measure, n)
    ends = measure.median[0] + measure.axes[0, 0] * measure.reach[0]
    low, high = np.clip(ends, *measure.bounds[0])
    return np.linspace(low, high, n)


def _evenly(measure: Measure, n: int) -> Array:
    """Return at most n of the values of a discrete input, evenly spaced and in order."""
    values = np.unique(measure.from_cube((np.arange(100 * n)[:, None] + 0.5) / (100 * n)))
    return np.asarray(values[np.unique(np.linspace(0, len(values) - 1, min(n, len(values))).round().astype(int))])


def density(result: Result, input: int, t: Array) -> Array | None:
    """Return the density of one input at each t_i, shape (n,); None if it cannot be drawn."""
    values = _density(integrator_of(result).measure.over([input]), t)
    return values if values is not None and np.isfinite(values).all() else None


def _density(measure: Measure, t: Array) -> Array | None:
    """Return the density of a one-dimensional measure at each t_i, or the probabilities of discrete values."""
    if isinstance(measure, Mixture):
        each = [_density(component, t) for component in measure.components]
        known = [values for values in each if values is not None]
        return np.asarray(measure.weights @ known) if len(known) == len(each) else None
    if isinstance(measure, Empirical):
        samples = measure.samples[:, 0]
        if len(np.unique(samples[measure.weights > 0])) < analysis.SETTINGS.min_observations:
            return None
        values = scipy.stats.gaussian_kde(samples, weights=measure.weights)(t)
    elif isinstance(measure, Product | GaussianCopula):
        values = measure.distributions[0].pdf(t)
    elif isinstance(measure, Gaussian):
        values = scipy.stats.norm(measure.mean[0], math.sqrt(measure.cov[0, 0])).pdf(t)
    else:
        low, high = measure.bounds[0]
        values = np.where((t >= low) & (t <= high), 1 / measure.width[0], 0.0)
    return np.asarray(values, dtype=float)


def effects(result: Result, input: int, t: Array) -> list[Curve]:
    """Return the main effect of one input on each source that the model uses."""
    return [effect(result, source, input, t) for source in integrator_of(result).policy.used]


def effect(result: Result, source: int, input: int, t: Array) -> Curve:
    """Return a main effect: a source as a function of one input, with the other inputs integrated out."""
    y = integrator_of(result).learner.data.values.of_source(source).y
    spread = float(np.std(y / (unit := np.abs(y).max(initial=0.0) or 1.0)) * unit) if len(y) else 0.0
    return Curve(t, *analysis.posterior_of(integrator_of(result)).main_effect(source, input, t[:, None]), spread)


def slice_through(result: Result, source: int, i: int, j: int) -> tuple[Array, Array, Array]:
    """Return the posterior mean of a source over inputs i and j, the other inputs at their medians.

    The grids of the inputs have shapes (n,) and (m,); the values have shape (m, n), input j along the rows.
    """
    ti, tj = (grid(result, d, SETTINGS.slice_points) for d in (i, j))
    n, m = len(ti), len(tj)
    X = np.tile(integrator_of(result).measure.median, (n * m, 1))
    X[:, i], X[:, j] = np.tile(ti, m), np.repeat(tj, n)
    mean, _ = analysis.posterior_of(integrator_of(result)).predict(source, X)
    return ti, tj, mean.reshape(m, n)


def rates_along(result: Result, inputs: Sequence[int]) -> list[Rates]:
    """Return the utility per cost along each of several inputs; all share one search for the best location."""
    it, out = integrator_of(result), []
    choice = it.preview()
    for input in inputs:
        t = grid(result, input)
        X = np.tile(it.measure.median if choice is None else choice.x, (len(t), 1))
        X[:, input] = t
        out.append(Rates(t, it.rates(X), choice))
    return out


def correlation(result: Result) -> Correlations:
    """Return the correlations between source outputs over the distribution of the inputs, with 95 % intervals."""
    return analysis.correlations(integrator_of(result))


def costs(result: Result, input: int, t: Array) -> Array:
    """Return the expected cost of each source along one input, the other inputs at their medians: (L, n)."""
    it = integrator_of(result)
    X = np.tile(it.measure.median, (len(t), 1))
    X[:, input] = t
    return np.array([cost.expected(X) for cost in it.ledger.costs.costs])


def costs_vary(result: Result) -> bool:
    """Return whether the cost of any source may differ, or has differed, between evaluations."""
    paid = [[e.cost for e in result.evaluations if e.source == s] for s in range(len(result.names))]
    sources = integrator_of(result).sources
    return any(
        callable(source.cost) or len({*costs, *([] if source.cost == "measured" else [source.cost])}) > 1
        for source, costs in zip(sources, paid, strict=True)
    )


def forecast(result: Result, budget: float | None = None) -> Array:
    """Return rows of total cost and expected standard deviation, shape (m, 2).

    The default budget is twice the cost so far. There are no rows (m = 0) if the cost of a source is not known yet, or
    if there are too many observations for a quick answer.
    """
    it = integrator_of(result)
    ahead = analysis.outlook(it) if budget is None else analysis.forecast(it, budget)
    rows = np.array([row for row in ahead if row[1] > 0]).reshape(-1, 2)
    return rows if len(rows) > 1 else np.zeros((0, 2))


def pays_until(result: Result, ahead: Array) -> Array | None:
    """Return the row (cost, std) of a forecast after which evaluations cost more than they save; None if unknown."""
    end = integrator_of(result).problem.goals.pays_until([(cost, std) for cost, std in ahead])
    return None if end is None else ahead[ahead[:, 0] == end][0]


def shares(result: Result) -> tuple[Array, Array]:
    """Return the number of evaluations of each source and their total cost, shape (L,) each."""
    made, failed, costs = np.array([totals(result, source) for source in range(len(result.names))]).T
    return made + failed, costs


@dataclass(frozen=True)
class SeveralOutputs:
    """The integrals of M outputs, with their 95 % intervals: arrays of shape (M,), NaN where nothing is known."""

    names: tuple[str, ...]
    at: Array | None  #: coordinate of each output, if they form a profile; None if each has its own unit
    called: list[str]  #: labels, or else names
    texts: list[str]  #: mean and standard deviation of each, such as "1.00 ± 0.10 m"
    mean: Array
    low: Array
    high: Array
    scale: Array  #: unit of the accuracy of an output: its absolute mean, or the spread of its values if larger
    by_spread: NDArray[np.bool_]  #: whether the spread is larger

    @property
    def accuracy(self) -> Array:
        """Half the 95 % interval divided by the scale, shape (M,)."""
        return (self.high - self.low) / (2 * self.scale)

    @property
    def units(self) -> str:
        """Words for what accuracies are relative to."""
        named = [name for name, by_spread in zip(self.names, self.by_spread, strict=True) if by_spread]
        return "the mean" + (f" (of {', '.join(named)}: of the spread of its values)" if named else "")


def several_outputs(result: Result, at: ArrayLike | None = None) -> SeveralOutputs:
    """Return the integrals of all outputs, at coordinates ``at``, (M,), or at their names if these are numbers."""
    parts = [result.estimate] if result.outputs is None else list(result.estimate)
    names, mean = result.outputs or (result.output or result.names[0],), np.array([part.mean for part in parts])
    units = [result.labels.unit(name) for name in result.outputs or [result.output]]
    texts = [part.summary(unit).partition(" (std)")[0] for part, unit in zip(parts, units, strict=True)]
    spread = spreads(primary_values(result).reshape(-1, len(parts)))
    scale = np.fmax(np.abs(mean), spread)
    where = _numbers(names) if at is None else vector(at, "at", len(names))
    (low, high), unit = np.array([part.interval() for part in parts]).T, np.where(scale > 0, scale, 1.0)
    called = [result.labels.label(name) for name in names]
    return SeveralOutputs(names, where, called, texts, mean, low, high, unit, spread > np.abs(mean))


def _numbers(names: Sequence[str]) -> Array | None:
    """Return the names of a profile as numbers; None if they are not numbers."""
    try:
        numbers = np.array([float(name) for name in names])
    except ValueError:
        return None
    return numbers if len(names) >= SHORTEST_PROFILE and np.isfinite(numbers).all() else None


@dataclass(frozen=True)
class OutputCurve:
    """The density of the output over a grid t, with 95 % intervals, shape (n,) each, and some quantiles."""

    t: Array
    density: Array
    low: Array
    high: Array
    quantiles: Estimates  #: at `SHOWN_QUANTILES`


def output_curve(result: Result) -> OutputCurve:
    """Return the density and the quantiles of the output."""
    output = result.distribution()
    t = output.grid(DENSITY_POINTS)
    density = output.density(t)
    return OutputCurve(t, density.mean, *density.interval(), Estimates([output.quantile(p) for p in SHOWN_QUANTILES]))


def indices(result: Result) -> Sensitivity | None:
    """Return the Sobol' indices of the inputs; None if these are dependent."""
    it = result.integrator
    return None if it is None or it.measure.marginals is None else result.sensitivity()


@dataclass(frozen=True)
class RefinementCurve:
    """The integrals of sources against a knob, with all other knobs at their finest: arrays of shape (n,).

    The first one is the limit, at zero, if the run is about the limit.
    """

    knob: str
    sizes: Array
    sources: IntArray  #: -1 for the limit
    mean: Array
    low: Array
    high: Array
    caption: str  #: the exponent with which errors shrink, in words


def refinements(result: Result) -> list[RefinementCurve]:
    """Return a curve for each knob of the sources; none if fidelities are unknown or not used."""
    it = result.integrator
    found = None if it is None or it.outputs is not None or not it.learner.has_primary else analysis.refinement(it)
    curves = []
    for column, exponent in enumerate(found.exponents if found is not None else ()):
        assert found is not None
        others = np.delete(found.sizes, column, axis=1)
        rows = np.flatnonzero((others == others.min(axis=0)).all(axis=1))
        rows = rows[np.argsort(found.sizes[rows, column], kind="stable")]
        sizes, sources = found.sizes[rows, column], np.array([found.sources[row] for row in rows], dtype=np.intp)
        estimates = [found.integrals[row] for row in rows]
        if found.bias is not None:
            sizes, sources, estimates = np.append(0.0, sizes), np.append(-1, sources), [result.estimate, *estimates]
        known = Estimates(estimates)
        low, high = known.interval()
        told = f"errors shrink with {exponent.knob}: {exponent}"
        curves.append(RefinementCurve(exponent.knob, sizes, sources, known.mean, low, high, told))
    return curves


@dataclass(frozen=True)
class LevelGrid:
    """Numbers of evaluations of the levels of two knobs: counts (b, a), NaN where there is no such source."""

    knobs: tuple[str, str]
    ticks: tuple[list[str], list[str]]  #: the a numbers of the first knob and the b of the second, the finest first
    counts: Array
    cost: Array  #: total cost of the evaluations of each level, (b, a)

    @property
    def shades(self) -> Array:
        """Shade of each level between 0 and 1, by the logarithm of its count, (b, a); 0 for levels never evaluated."""
        logs = np.log1p(np.nan_to_num(self.counts))
        return np.asarray(logs / max(logs.max(), 1.0))


def level_grid(result: Result) -> LevelGrid | None:
    """Return how often each level of two knobs was evaluated; None unless the sources have exactly two knobs."""
    sources = [] if result.integrator is None else result.integrator.sources
    fidelities = {number: source.fidelity for number, source in enumerate(sources) if source.fidelity is not None}
    knobs = [*next(iter(fidelities.values()), ())]
    if len(knobs) != 2:
        return None
    a, b = (sorted({fidelity[knob] for fidelity in fidelities.values()}) for knob in knobs)
    counts, cost = np.full((len(b), len(a)), np.nan), np.zeros((len(b), len(a)))
    for number, fidelity in fidelities.items():
        made, failed, paid = totals(result, number)
        at = b.index(fidelity[knobs[1]]), a.index(fidelity[knobs[0]])
        counts[at], cost[at] = made + failed, paid
    return LevelGrid((knobs[0], knobs[1]), (level_texts(a), level_texts(b)), counts, cost)


def bars(mean: Array, interval: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the lengths of error bars below and above the means, shape (n,) each, from (lower, upper) ends."""
    return np.maximum(mean - interval[0], 0.0), np.maximum(interval[1] - mean, 0.0)
