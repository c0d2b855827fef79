"""The worth of each source: the integral with and without it at equal cost, by a refit without the source."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..common.messages import collected_warnings
from ..common.validation import Array
from ..design.decisions import Decisions
from ..design.description import Problem
from ..design.evaluations import Choice
from ..design.fidelities import determines_limit
from ..design.sources import Source
from ..posterior.estimate import Estimate
from ..posterior.transforms import range_arguments
from .analysis import forecast, once_per_state, posterior_of, primary_score

#: step of central differences, relative to the interquartile range of an input
STEP = 1e-3
#: maximum number of levels of one simulator whose worth is found one by one: among more, each could be replaced by its
#: neighbours
FEW_LEVELS = 5


@dataclass(frozen=True)
class SourceWorth:
    """The worth of a source: the integral with and without it, for the same cost.

    Attributes
    ----------
    cost, share : float
        The cost of its evaluations, and the share of the total cost.
    std : float
        Standard deviation of the integral with the source.
    without : Estimate
        The integral from the observations of all other sources.
    instead : float
        Standard deviation of the integral from the other sources alone, had the cost of this source been spent on them
        and had they returned the expected values.
    bought : int
        Number of evaluations of the other sources that this cost would have paid for, at most as many as are forecast.
    predicts : bool
        Whether the source improves the leave-one-out predictions of the primary source's observations.
    """

    cost: float
    share: float
    std: float
    without: Estimate
    instead: float
    bought: int
    predicts: bool

    @property
    def gain(self) -> float:
        """The factor by which the error bar would be wider without the source, for the same cost."""
        return self.instead / self.std if self.std > 0 else math.inf if self.instead > 0 else 1.0


@once_per_state
def source_worths(it: Decisions) -> dict[int, SourceWorth]:
    """Return the worth of each secondary source that was observed and that the model uses, by its number.

    If there are more than ``FEW_LEVELS`` levels of one simulator, they are all skipped.
    """
    out, std = {}, posterior_of(it).estimate.std
    observed = (set(it.learner.data.s.tolist()) & set(it.policy.used)) - many_levels(it)
    for source in sorted(observed - {0}) if 0 in observed else []:
        if it.problem.limit and not determines_limit([it.sources[kept].fidelity for kept in _kept(it, source)]):
            continue
        cost, kept = cost_of(it, source), _kept(it, source)
        not_retired = [i for i, other in enumerate(kept) if other not in it.policy.failures.retired]
        with collected_warnings():  # warnings would be about a run that was not made
            others = without(it, source)
            estimate = others.estimate()
            predicts = primary_score(it) > primary_score(others)
            bought = forecast(others, cost, not_retired).choices if cost > 0 else ()
            instead = _rehearsed(it, kept, others, bought) if bought else estimate.std
        out[source] = SourceWorth(cost, cost / (it.spent or 1.0), std, estimate, instead, len(bought), predicts)
    return out


def many_levels(it: Decisions) -> set[int]:
    """Return the secondary sources that are levels of one simulator, if there are too many to judge one by one."""
    levels = {source for source, each in enumerate(it.sources) if each.fidelity is not None and source}
    return levels if len(levels) > FEW_LEVELS else set()


def cost_of(it: Decisions, source: int) -> float:
    """Return the cost of all evaluations of a source, including those in bulk."""
    one_by_one = math.fsum(e.cost for e in it.evaluations if e.source == source)
    return one_by_one + math.fsum(b.with_those_beside(it.evaluations)[1] for b in it.in_bulk.made if b.source == source)


def _kept(it: Decisions, left_out: int) -> list[int]:
    return [source for source in it.policy.used if source != left_out]


def _rehearsed(it: Decisions, kept: Sequence[int], others: Decisions, choices: Sequence[Choice]) -> float:
    """Return the standard deviation from the remaining sources, after more evaluations with the expected values.

    The expected values are predictions from all observations, including those of the source left out; their
    noise is that of the other values. A forecast alone would not account for what more evaluations add to the knowledge
    of the hyperparameters.
    """
    for choice in choices:
        source, x = kept[choice.source], choice.x
        [mean], _ = posterior_of(it).predict(source, x[None])
        gradient = _expected_gradient(it, source, x) if choice.gradient else None
        variances = it.learner.data.values.of_source(source).noise_var
        others.observe(choice.source, x, float(mean), float(np.median(variances)) if len(variances) else 0.0, gradient)
    return float(posterior_of(others).estimate.std)


def _expected_gradient(it: Decisions, source: int, x: Array) -> Array:
    """Return the expected gradient of a source at x, shape (D,), with NaN for inputs that are not continuous."""
    low, high = it.measure.from_cube(np.repeat([[0.25], [0.75]], len(x), axis=1))
    by = it.measure.continuous
    steps, gradient = STEP * (high - low), np.full(len(x), np.nan)
    above, below = (posterior_of(it).predict(source, x + sign * np.diag(steps)[by])[0] for sign in (1, -1))
    gradient[by] = (above - below) / (2 * steps[by])
    return np.where(np.isfinite(gradient), gradient, np.nan)


def without(it: Decisions, source: int) -> Decisions:
    """Return an integrator with the observations of all sources but one, and nothing spent."""
    kept, order = _kept(it, source), it.learner.order
    options = {
        "model": it.problem.model.of_sources(kept),
        "acquisition": it.problem.acquisition,
        "limit": it.problem.limit,
        **range_arguments(it.problem.ranges, None),
    }
    if order is not None:
        options["order"] = [kept.index(s) for s in order if s in kept]
    sources = [_like(it, s) for s in kept]
    other = Decisions(Problem.of(sources, it.measure, seed=it.problem.seed, initial=[], **options))
    data, values = it.learner.data, it.learner.data.values
    for s, *told in zip(values.s.tolist(), values.X, values.y, values.noise_var, data.gradients(), strict=True):
        if s in kept:
            other.observe(kept.index(s), *told)
    other.in_bulk.made = [
        replace(bulk, source=kept.index(bulk.source)) for bulk in it.in_bulk.made if bulk.source in kept
    ]
    other.learner.integrals = [tuple((kept.index(s), z, v) for s, z, v in it.learner.integrals[0] if s in kept)]
    return other


def _like(it: Decisions, source: int) -> Source:
    """Return a copy of a source (name, cost, noise, gradients) without its function."""
    of = it.sources[source]
    cost = partial(it.ledger.costs.expected, source) if isinstance(of.cost, str) else of.cost
    slopes = of.gradient_cost if callable(of.gradient) else None
    return Source(
        cost=cost,
        name=it.names[source],
        noise=of.noise,
        gradient=of.gradient,
        gradient_cost=slopes,
        fidelity=of.fidelity,
    )
