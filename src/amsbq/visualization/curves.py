"""What pictures of a run show, as numbers: the same for those on paper (`plots`) and those on a page (`report`).

Notation: L sources, D inputs; curves are over a grid t (n,) of one input.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..design.integrator import Integrator
from ..design.search import Choice
from ..execution.reader import read_result
from ..gp.kernels import ProductKernel
from ..inference.belief import Belief
from ..measures.empirical import Empirical
from ..measures.gaussian import Gaussian
from ..measures.product import Product
from ..results.diagnostics import Residuals
from ..results.diagnostics import residuals as residuals_of
from ..results.result import Result
from ..validation import Array, IntArray, brief, source_number

POINTS = 201  #: of a grid


ACROSS = 41  #: points of each side of a slice


FORECAST_STEPS = 40  #: evaluations that a picture looks ahead


FEWEST_SAMPLES = 5  #: that have a density to be drawn


MANY = 400  #: observations above which looking ahead takes too long for a picture


@dataclass(frozen=True)
class Curve:
    """A function of one input, with its uncertainty."""

    t: Array
    mean: Array
    std: Array


@dataclass(frozen=True)
class Convergence:
    """What was known of the integral after each evaluation."""

    cost: Array  # (n,), in total
    mean: Array  # NaN before anything was known
    std: Array
    sources: IntArray
    failed: NDArray[np.bool_]

    @property
    def known(self) -> NDArray[np.bool_]:
        """After which evaluations anything was."""
        return np.isfinite(self.mean)

    def band(self) -> tuple[Array, Array, Array]:
        """Cost, and two standard deviations below and above the mean, where these are known: else the mean."""
        std = np.where(np.isfinite(self.std), self.std, 0.0)[self.known]
        return self.cost[self.known], self.mean[self.known] - 2 * std, self.mean[self.known] + 2 * std

    def shrinking(self) -> tuple[Array, Array]:
        """Cost and standard deviation, where a logarithm can show them."""
        drawn = np.isfinite(self.std) & (self.std > 0) & (self.cost > 0)
        return self.cost[drawn], self.std[drawn]

    def zoom(self) -> tuple[float, float]:
        """The range of the band without its beginning, and some room."""
        _, low, high = self.band()
        later = slice(len(low) // 3, None)
        bottom, top = float(low[later].min(initial=np.inf)), float(high[later].max(initial=-np.inf))
        if not bottom <= top:
            return 0.0, 1.0
        room = 0.15 * (top - bottom) or 1.0
        return bottom - room, top + room


@dataclass(frozen=True)
class Rates:
    """What the next evaluation is worth for its cost, along one input through where it would be made."""

    t: Array
    rates: Array  # (L, n)
    next: Choice | None


Run: TypeAlias = "Result | Integrator | str | os.PathLike[str]"


def as_result(run: Run) -> Result:
    """A result, of a result, an integrator, or the path of a journal."""
    if isinstance(run, Result):
        return run
    if isinstance(run, Integrator):
        return Result.of(run, run.stopped or "")
    if isinstance(run, str | os.PathLike):
        return read_result(run)
    raise TypeError(f"give a Result, an Integrator, or the path of a journal, got {brief(run)}")


def integrator_of(result: Result) -> Integrator:
    """Whatever decided the run, if it knows anything."""
    if result.integrator is None:
        raise ValueError(
            "this picture needs a model, and there is none: the result is of another method, or its journal does not "
            "tell enough to make it again"
        )
    if result.integrator.learner.belief is None:
        raise ValueError("nothing is known yet: look again after the first evaluations")
    return result.integrator


def belief_of(result: Result) -> Belief:
    belief = integrator_of(result).learner.belief
    assert belief is not None
    return belief


def known_source(result: Result, source: int) -> int:
    """The number of a source, if the model knows it."""
    return source_number(source, len(integrator_of(result)._used()))


def convergence(result: Result) -> Convergence:
    of = result.evaluations
    return Convergence(
        np.cumsum([e.cost for e in of]),
        np.array([e.mean for e in of], dtype=float),
        np.array([e.std for e in of], dtype=float),
        np.array([e.source for e in of], dtype=np.intp),
        np.array([e.status == "failed" for e in of], dtype=bool),
    )


def grid(result: Result, input: int, n: int = POINTS) -> Array:
    """Values of one input, over all that are worth evaluating."""
    measure = integrator_of(result).measure.over([source_number(input, len(result.inputs), "input")])
    ends = measure.median[0] + measure.axes[0, 0] * measure.reach[0]
    low, high = np.clip(ends, *measure.bounds[0])
    return np.linspace(low, high, n)


def density(result: Result, input: int, t: Array) -> Array | None:
    """Of the distribution of one input, at each t_i; None if it has none."""
    measure = integrator_of(result).measure.over([input])
    if isinstance(measure, Empirical):
        likely = measure.weights > 1e-3 * measure.weights.max()
        samples = measure.samples[likely, 0]
        if len(np.unique(samples)) < FEWEST_SAMPLES:
            return None
        values = stats.gaussian_kde(samples, weights=measure.weights[likely])(t)
    elif isinstance(measure, Product):
        values = measure.distributions[0].pdf(t)
    elif isinstance(measure, Gaussian):
        values = stats.norm(measure.mean[0], math.sqrt(measure.cov[0, 0])).pdf(t)
    else:
        values = np.full(len(t), 1 / measure.width[0])
    values = np.asarray(values, dtype=float)
    return values if np.isfinite(values).all() else None


def effects(result: Result, input: int, t: Array) -> list[Curve]:
    """Each source as a function of one input, with the others integrated out."""
    return [effect(result, source, input, t) for source in integrator_of(result)._used()]


def effect(result: Result, source: int, input: int, t: Array) -> Curve:
    """The same of one source."""
    return Curve(t, *belief_of(result).main_effect(source, input, t))


def slice_through(result: Result, source: int, i: int, j: int) -> tuple[Array, Array, Array]:
    """The mean of a source over two inputs, the others at their medians: the grids (n,) and (n,), and values (n, n)."""
    ti, tj = grid(result, i, ACROSS), grid(result, j, ACROSS)
    X = np.tile(integrator_of(result).measure.median, (ACROSS * ACROSS, 1))
    X[:, i], X[:, j] = np.tile(ti, ACROSS), np.repeat(tj, ACROSS)
    mean, _ = belief_of(result).predict(source, X)
    return ti, tj, mean.reshape(ACROSS, ACROSS)


def rates(result: Result, input: int) -> Rates:
    """Along one input, through what would be asked next."""
    return rates_along(result, [input])[0]


def rates_along(result: Result, inputs: Sequence[int]) -> list[Rates]:
    """The same along each of several inputs; what would be asked next is looked for once."""
    it, out = integrator_of(result), []
    choice = it.preview()
    for input in inputs:
        t = grid(result, input)
        X = np.tile(it.measure.median if choice is None else choice.x, (len(t), 1))
        X[:, input] = t
        out.append(Rates(t, it.rates(X), choice))
    return out


def correlation(result: Result) -> Array:
    """Between the sources at the same input, as learned, shape (L, L): without their constant levels."""
    matrices = []
    for posterior in belief_of(result).posteriors:
        varying = [term.B for term in posterior.gp.terms if isinstance(term.kernel, ProductKernel)]
        B = np.sum(varying, axis=0) if varying else np.eye(posterior.gp.n_sources)
        scale = np.sqrt(np.where(np.diagonal(B) > 0, np.diagonal(B), 1.0))
        matrices.append(B / scale / scale[:, None])
    return np.asarray(np.mean(matrices, axis=0))


def costs(result: Result, input: int, t: Array) -> Array:
    """What an evaluation of each source is expected to cost along one input, the others at their medians: (L, n)."""
    it = integrator_of(result)
    X = np.tile(it.measure.median, (len(t), 1))
    X[:, input] = t
    return np.array([cost.expected(X) for cost in it.source_costs.costs])


def forecast(result: Result, budget: float | None = None) -> Array:
    """Rows of cost and standard deviation to expect, by default for twice what is spent; none if they take too long."""
    it = integrator_of(result)
    if len(it.learner) > MANY or it.starting or any(it.source_costs.unknown(source) for source in it._used()):
        return np.zeros((0, 2))
    ahead = it.forecast(budget or 2 * max(it.committed, 1e-12), steps=FORECAST_STEPS)
    rows = np.array([row for row in ahead if row[1] > 0]).reshape(-1, 2)
    return rows if len(rows) > 1 else np.zeros((0, 2))


def orders_apart(values: Array) -> bool:
    """Whether they are better seen on a logarithmic scale."""
    return bool(values.max() > 5 * values.min() > 0)


def residuals(result: Result) -> Residuals:
    """By leaving one out."""
    return residuals_of(belief_of(result).posteriors)


def shares(result: Result) -> tuple[Array, Array]:
    """How many evaluations of each source were made, and what they cost."""
    groups = [[e.cost for e in result.evaluations if e.source == source] for source in range(len(result.names))]
    return np.array([float(len(group)) for group in groups]), np.array([math.fsum(group) for group in groups])
