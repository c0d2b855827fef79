"""Models refitted to find out what answers rest on: without a source, with unknown noise, without one observation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, cast

import numpy as np

from ..design.acquisition import AcquisitionName
from ..design.integrator import Integrator
from ..design.sources import CostLike, Source
from ..gp.coregionalisation import Term
from ..gp.data import Data
from ..gp.kernels import Matern, ProductKernel
from ..gp.posterior import MultiSourceGP
from ..gp.posterior_batch import PosteriorBatch
from ..inference.belief import FixedBelief, averaged, learn
from ..inference.estimate import Estimate
from ..inference.log_posterior import LogPosterior
from ..inference.modes import find_mode
from ..inference.preparation import StandardUnits, learning
from ..inference.structures import ModelName, ModelPrior, Noise
from ..messages import collected_warnings
from ..validation import Array
from .analysis import belief_of, forecast, learned_belief, once_per_state, primary_log_density, residuals


@dataclass(frozen=True)
class RefitSettings:
    """When to refit, and what its outcome has to be."""

    #: observations of a source from which on its noise shows
    enough: int = 8
    #: observations that are searched for noise, at most: more show no less, and take longer
    most_observations: int = 48
    #: structures that are searched for noise, at most
    structures: int = 2
    #: log odds of noise against a smooth function without noise from which on there is noise: twenty to one
    log_odds: float = math.log(20)
    #: largest residual, in standard deviations, from which on the model is refitted without its observation
    suspicious: float = 2.0
    #: standard deviations from what the others predict, after a refit without it, from which on a value is an outlier
    outlying: float = 5.0


SETTINGS = RefitSettings()
ROUGH = Matern(1.5, 1.0)  #: kernel of functions with kinks; its lengthscales do not matter


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
        Standard deviation to expect from the other sources, if the cost of this one had been spent on them.
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
        cost = math.fsum(e.cost for e in it.evaluations if e.source == source)
        with collected_warnings():  # they are about a run that was not made
            others = without(it, source)
            estimate = others.estimate()
            predicts = primary_log_density(it) > primary_log_density(others)
            ahead = forecast(others, cost, _not_retired(it, source)) if cost > 0 else []
        instead = ahead[-1][1] if ahead else estimate.std
        out[source] = SourceWorth(
            cost, cost / (it.spent or 1.0), std, estimate, instead, max(len(ahead) - 1, 0), predicts
        )
    return out


def without(it: Integrator, source: int) -> Integrator:
    """Return an integrator that has observed what all sources but one have returned, and has spent nothing."""
    kept = [other for other in it._used() if other != source]
    sources = [Source(cost=_cost(it, s), name=it.names[s], noise=it.sources[s].noise) for s in kept]
    order = None if it.learner.order is None else [kept.index(s) for s in it.learner.order if s in kept]
    other = Integrator(
        sources,
        it.measure,
        model=_model(it, kept),
        acquisition=cast(AcquisitionName, it.acquisition),
        seed=it.seed,
        initial=[],
        order=order,
    )
    data = it.learner.data
    for s, x, value, variance in zip(data.s.tolist(), data.X, data.y, data.noise_var, strict=True):
        if s in kept:
            other.observe(kept.index(s), x, value, variance)
    other.bulk = [replace(bulk, source=kept.index(bulk.source)) for bulk in it.bulk if bulk.source in kept]
    other.learner.integrals = tuple((kept.index(s), z, v) for s, z, v in it.learner.integrals if s in kept)
    return other


def _not_retired(it: Integrator, left_out: int) -> list[int]:
    kept = [source for source in it._used() if source != left_out]
    return [i for i, source in enumerate(kept) if source not in it.failures.retired]


def _cost(it: Integrator, source: int) -> CostLike:
    cost = it.sources[source].cost
    return partial(it.source_costs.expected, source) if isinstance(cost, str) else cost


def _model(it: Integrator, kept: Sequence[int]) -> ModelName | MultiSourceGP:
    """Return the model of some of the sources."""
    if not isinstance(it.model, MultiSourceGP):
        return cast(ModelName, it.model_name)
    terms = [Term(term.B[np.ix_(kept, kept)], term.kernel) for term in it.model.terms]
    return MultiSourceGP(terms, it.measure, it.model.noise[kept], it.model.mean[kept])


@dataclass(frozen=True)
class Outlier:
    """A value that is far from what all other observations predict.

    Attributes
    ----------
    evaluation : int
        Its place in the list of evaluations, from 0.
    mean, std : float
        The prediction from all other observations, by a model that was learned without this one.
    """

    evaluation: int
    mean: float
    std: float


@once_per_state
def outlier(it: Integrator) -> Outlier | None:
    """Return the value with the largest leave-one-out residual, if a refit without it finds it far off; else None."""
    if (found := _suspect(it)) is None:
        return None
    e = it.evaluations[found.evaluation]
    noise = hidden_noise(it).get(e.source, 0.0)
    return found if abs(e.value - found.mean) > SETTINGS.outlying * math.hypot(found.std, noise) else None


@once_per_state
def _suspect(it: Integrator) -> Outlier | None:
    """Return the value with the largest leave-one-out residual, if it is an outlier unless there is hidden noise."""
    left = residuals(it)
    counts = np.bincount(left.sources, minlength=len(it.sources))
    sizes = np.where(counts[left.sources] >= SETTINGS.enough, np.abs(left.z), 0.0)
    if sizes.max(initial=0.0) < SETTINGS.suspicious:
        return None
    suspect = int(left.evaluations[sizes.argmax()])
    data, row = it.learner.data, _row(it, suspect)
    rest, value = data.rows(np.arange(len(data.y)) != row), data.rows([row])
    with collected_warnings(), np.errstate(all="ignore"):
        noise = [source.noise for source in it.sources]
        refitted = learn(it.model, it.measure, rest, noise, it.seed, it.names, it.learner.order, it.learner.integrals)
        if isinstance(refitted, FixedBelief):
            mean, std = _prediction(refitted.posteriors, value)
        else:
            density = refitted.log_posterior
            mean, std = _prediction(refitted.posteriors, value, density.units)
            # What is a surprise of a smooth function may be none of a rough one, such as the value at a kink.
            rough = LogPosterior(replace(density.prior, kernel=ROUGH), it.measure, density.data, refitted.noise)
            prediction = _prediction(rough.condition(find_mode(rough).theta[None]), value, rough.units)
            mean, std = max((mean, std), prediction, key=lambda moments: moments[1])
    return Outlier(suspect, mean, std) if abs(value.y[0] - mean) > SETTINGS.outlying * std else None


def _prediction(posteriors: PosteriorBatch, value: Data, units: StandardUnits | None = None) -> tuple[float, float]:
    """Return mean and standard deviation of one observation, its noise included, from posteriors in some units."""
    s = int(value.s[0])
    level, spread = (0.0, 1.0) if units is None else (float(units.levels[s]), float(units.spreads[s]))
    means, variances = posteriors.predict(s, value.X)
    noise = posteriors.models.noise[:, [s]] + value.noise_var / spread / spread
    mean, variance = averaged((means, variances + noise))
    return level + spread * float(mean[0]), spread * math.sqrt(variance[0])


def _row(it: Integrator, evaluation: int) -> int:
    """Return the number of the observation that an evaluation has made."""
    e, data = it.evaluations[evaluation], it.learner.data
    return int(np.flatnonzero((data.s == e.source) & (e.x == data.X).all(axis=1) & (data.y == e.value))[0])


@once_per_state
def hidden_noise(it: Integrator) -> dict[int, float]:
    """Return the standard deviation of the noise on each source whose values show more than was declared.

    Three explanations of the values are compared by their evidence: smooth functions without noise, smooth functions
    with noise on one source, and rough functions without noise, such as those with kinks. There is noise if it is much
    more probable than the first, and no less than the last. Then noise on another source is looked for.
    """
    if (learned := learned_belief(it)) is None:
        return {}
    data, noise = it.learner.data, list(learned.noise)
    rows = data.s < len(noise)
    if (suspect := _suspect(it)) is not None:  # it would look like noise
        rows[_row(it, suspect.evaluation)] = False
    data = data.rows(rows).sorted().thinned(SETTINGS.most_observations)
    priors = [member.draws.log_posterior.prior for member in learned.members[: SETTINGS.structures]]
    shown = [s for s in range(len(noise)) if np.count_nonzero(data.s == s) >= SETTINGS.enough]
    found: dict[int, float] = {}
    with np.errstate(all="ignore"):
        while candidates := [source for source in shown if noise[source] != "learn"]:
            noisy = {source: _explained(it, priors, data, learning(noise, [source])) for source in candidates}
            source = max(candidates, key=lambda source: noisy[source].log_evidence)
            log_evidence = noisy[source].log_evidence
            if log_evidence - _explained(it, priors, data, noise).log_evidence < SETTINGS.log_odds:
                break
            if log_evidence < _explained(it, priors, data, noise, ROUGH).log_evidence:
                break
            noise = learning(noise, [source])
            found[source] = float(noisy[source].noise[source])
    return found


class _Explained(NamedTuple):
    """The log evidence of observations, and the standard deviation of the noise on each source."""

    log_evidence: float
    noise: Array


def _explained(
    it: Integrator,
    priors: Sequence[ModelPrior],
    data: Data,
    noise: Sequence[Noise],
    kernel: ProductKernel | None = None,
) -> _Explained:
    """Return the log evidence of observations, summed over structures of the model, whose kernel may be replaced."""
    used = [prior if kernel is None else replace(prior, kernel=kernel) for prior in priors]
    densities = [LogPosterior(prior, it.measure, data, noise) for prior in used]
    modes = [find_mode(density) for density in densities]
    masses = [mode.log_mass for mode in modes]
    best = int(np.argmax(masses))
    variances = densities[best].models(modes[best].theta[None]).noise[0]
    return _Explained(float(np.logaddexp.reduce(masses)), densities[best].units.spreads * np.sqrt(variances))
