"""What sources were worth: the integral with and without each of them, for the same cost, by refits without it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from ..design.acquisition import AcquisitionName
from ..design.integrator import Integrator
from ..design.search import Choice
from ..design.sources import CostLike, Source
from ..gp.coregionalisation import Term
from ..gp.posterior import MultiSourceGP
from ..inference.estimate import Estimate
from ..inference.structures import ModelName
from ..messages import collected_warnings
from ..validation import Array
from .analysis import belief_of, forecast, once_per_state, primary_log_density

#: of central differences, relative to the interquartile range of an input
STEP = 1e-3


@dataclass(frozen=True)
class SourceWorth:
    """What a source was worth: the integral with and without it, for the same cost.

    Attributes
    ----------
    cost, share : float
        What its evaluations cost, and their share of what was spent.
    std : float
        Standard deviation of the integral as it is.
    without : Estimate
        The integral from the observations of all other sources.
    instead : float
        Standard deviation from the other sources, if the cost of this one had been spent on them and they had returned
        what is expected of them.
    bought : int
        How many evaluations of the other sources that cost would have paid for, or as many as are foreseen.
    predicts : bool
        Whether the observations of the primary source, each left out in turn, are predicted better with this source
        than without it.
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
        """How many times wider the error bar would be without the source, for the same cost."""
        return self.instead / self.std if self.std > 0 else math.inf if self.instead > 0 else 1.0


@once_per_state
def source_worths(it: Integrator) -> dict[int, SourceWorth]:
    """Return what each secondary source was worth that was observed and that the model uses, by its number."""
    out, std = {}, belief_of(it).estimate.std
    observed = set(it.learner.data.s.tolist()) & set(it._used())
    if 0 not in observed:
        return {}
    for source in sorted(observed - {0}):
        cost = cost_of(it, source)
        with collected_warnings():  # they are about a run that was not made
            others = without(it, source)
            estimate = others.estimate()
            predicts = primary_log_density(it) > primary_log_density(others)
            bought = forecast(others, cost, _not_retired(it, source)).choices if cost > 0 else ()
            instead = _rehearsed(it, source, others, bought) if bought else estimate
        out[source] = SourceWorth(cost, cost / (it.spent or 1.0), std, estimate, instead.std, len(bought), predicts)
    return out


def cost_of(it: Integrator, source: int) -> float:
    """Return what all evaluations of a source have cost, those in bulk included."""
    one_by_one = math.fsum(e.cost for e in it.evaluations if e.source == source)
    return one_by_one + math.fsum(b.with_those_beside(it.evaluations)[1] for b in it.bulk if b.source == source)


def _rehearsed(it: Integrator, left_out: int, others: Integrator, choices: Sequence[Choice]) -> Estimate:
    """Return the integral without a source, if others had been evaluated instead, with the values to be expected.

    These are what all observations predict, those of the source that is left out included, and as noisy as the others
    are. A forecast would not know that more evaluations tell more of the hyperparameters.
    """
    kept, belief = [source for source in it._used() if source != left_out], belief_of(it)
    for choice in choices:
        [mean], _ = belief.predict(kept[choice.source], choice.x[None])
        gradient = _expected_gradient(it, kept[choice.source], choice.x) if choice.gradient else None
        variances = it.learner.data.values.of_source(kept[choice.source]).noise_var
        others.observe(
            choice.source, choice.x, float(mean), float(np.median(variances)) if len(variances) else 0.0, gradient
        )
    return belief_of(others).estimate


def _expected_gradient(it: Integrator, source: int, x: Array) -> Array:
    """Return the derivatives of a source by each input that are expected at x, NaN where there are none."""
    low, high = it.measure.from_cube(np.repeat([[0.25], [0.75]], len(x), axis=1))
    by = it.measure.continuous
    steps, gradient = STEP * (high - low), np.full(len(x), np.nan)
    above, below = (belief_of(it).predict(source, x + sign * np.diag(steps)[by])[0] for sign in (1, -1))
    gradient[by] = (above - below) / (2 * steps[by])
    return np.where(np.isfinite(gradient), gradient, np.nan)


def without(it: Integrator, source: int) -> Integrator:
    """Return an integrator that has observed what all sources but one have returned, and has spent nothing."""
    kept = [other for other in it._used() if other != source]
    sources = [_like(it, s) for s in kept]
    order = None if it.learner.order is None else [kept.index(s) for s in it.learner.order if s in kept]
    other = Integrator(
        sources,
        it.measure,
        model=_model(it, kept),
        acquisition=cast(AcquisitionName, it.acquisition),
        seed=it.seed,
        initial=[],
        order=order,
        **({} if it.range is None else it.range.arguments),
    )
    values, gradients = it.learner.data.values, it.learner.data.gradients()
    columns = (values.s.tolist(), values.X, values.y, values.noise_var, gradients)
    for s, x, value, variance, gradient in zip(*columns, strict=True):
        if s in kept:
            other.observe(kept.index(s), x, value, variance, gradient)
    other.bulk = [replace(bulk, source=kept.index(bulk.source)) for bulk in it.bulk if bulk.source in kept]
    other.learner.integrals = tuple((kept.index(s), z, v) for s, z, v in it.learner.integrals if s in kept)
    return other


def _not_retired(it: Integrator, left_out: int) -> list[int]:
    kept = [source for source in it._used() if source != left_out]
    return [i for i, source in enumerate(kept) if source not in it.failures.retired]


def _like(it: Integrator, source: int) -> Source:
    """Return a source with the name, cost, noise and gradients of another one, and no function."""
    of = it.sources[source]
    gradient_cost = of.gradient_cost if callable(of.gradient) else None
    return Source(
        cost=_cost(it, source),
        name=it.names[source],
        noise=of.noise,
        gradient=of.gradient,
        gradient_cost=gradient_cost,
    )


def _cost(it: Integrator, source: int) -> CostLike:
    cost = it.sources[source].cost
    return partial(it.source_costs.expected, source) if isinstance(cost, str) else cost


def _model(it: Integrator, kept: Sequence[int]) -> ModelName | MultiSourceGP:
    """Return the model of some of the sources."""
    if not isinstance(it.model, MultiSourceGP):
        return cast(ModelName, it.model_name)
    terms = [Term(term.B[np.ix_(kept, kept)], term.kernel) for term in it.model.terms]
    return MultiSourceGP(terms, it.measure, it.model.noise[kept], it.model.mean[kept])
