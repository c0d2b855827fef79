"""Models refitted to find out what answers rest on: without a source, with unknown noise, without one observation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from ..design.acquisition import AcquisitionName
from ..design.integrator import Integrator
from ..design.sources import CostLike, Source
from ..gp.coregionalisation import Term
from ..gp.data import Data
from ..gp.kernels import RBF, Matern, ProductKernel
from ..gp.posterior import MultiSourceGP
from ..gp.threads import threads_for
from ..inference.belief import ExtendedBelief, LearnedBelief, averaged, learn
from ..inference.estimate import Estimate
from ..inference.log_posterior import LogPosterior
from ..inference.modes import find_mode
from ..inference.structures import ModelName, ModelPrior, Noise
from ..messages import collected_warnings
from .analysis import belief_of, forecast, once_per_state, residuals


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
    outlying: float = 6.0


SETTINGS = RefitSettings()


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
    """

    cost: float
    share: float
    std: float
    without: Estimate
    instead: float

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
            ahead = forecast(others, cost, _not_retired(it, source)) if cost > 0 else []
        instead = ahead[-1][1] if ahead else estimate.std
        out[source] = SourceWorth(cost, cost / (it.spent or 1.0), std, estimate, instead)
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
    left = residuals(it)
    counts = np.bincount(left.sources, minlength=len(it.sources))
    sizes = np.where(counts[left.sources] >= SETTINGS.enough, np.abs(left.z), 0.0)
    if sizes.max(initial=0.0) < SETTINGS.suspicious:
        return None
    suspect = int(left.evaluations[sizes.argmax()])
    data, row = it.learner.data, _row(it, suspect)
    rest = data.rows(np.arange(len(data.y)) != row)
    with collected_warnings(), np.errstate(all="ignore"), threads_for(len(rest.y)):
        noise = [source.noise for source in it.sources]
        refitted = learn(it.model, it.measure, rest, noise, it.seed, it.names, it.learner.order)
        source, level, spread = int(data.s[row]), 0.0, 1.0
        if isinstance(refitted, LearnedBelief):
            units = refitted.log_posterior.units
            level, spread = float(units.levels[source]), float(units.spreads[source])
        means, variances = refitted.posteriors.predict(source, data.X[[row]])
        noise_var = refitted.posteriors.models.noise[:, [source]] + data.noise_var[row] / spread / spread
        mean, variance = averaged((means, variances + noise_var))
    found = Outlier(suspect, level + spread * float(mean[0]), spread * math.sqrt(variance[0]))
    return found if abs(data.y[row] - found.mean) > SETTINGS.outlying * found.std else None


def _row(it: Integrator, evaluation: int) -> int:
    """Return the number of the observation that an evaluation has made."""
    return sum(e.status == "ok" for e in it.evaluations[:evaluation])


@once_per_state
def hidden_noise(it: Integrator) -> dict[int, float]:
    """Return the standard deviation of the noise on each source whose values show more than was declared.

    Three explanations of the values are compared by their evidence: a smooth function without noise, a smooth function
    with noise, and a rough function without noise, such as one with kinks. There is noise if it is much more probable
    than the first, and no less than the last.
    """
    belief = belief_of(it)
    learned = belief.learned if isinstance(belief, ExtendedBelief) else belief
    if not isinstance(learned, LearnedBelief):
        return {}
    data, noise = it.learner.data, learned.noise
    rows = data.s < len(noise)
    if (wrong := outlier(it)) is not None:
        rows[_row(it, wrong.evaluation)] = False
    data = data.rows(rows).sorted().thinned(SETTINGS.most_observations)
    priors = learned.log_posterior.prior, *(member.draws.log_posterior.prior for member in learned.members[1:])
    explanations = _Explanations(it, priors[: SETTINGS.structures], data)
    out = {}
    with np.errstate(all="ignore"), threads_for(len(data.y)):
        for source, declared in enumerate(noise):
            if declared == "learn" or np.count_nonzero(data.s == source) < SETTINGS.enough:
                continue
            std, noisy = explanations.noisy(noise, source)
            if noisy - explanations.free_of_noise(noise, RBF(1.0)) < SETTINGS.log_odds:
                continue
            if noisy >= explanations.free_of_noise(noise, Matern(1.5, 1.0)):
                out[source] = std
    return out


class _Explanations:
    """Explanations of observations, and the log evidence of each, averaged over structures of the model."""

    def __init__(self, it: Integrator, priors: Sequence[ModelPrior], data: Data) -> None:
        self._it, self._priors, self._data = it, priors, data
        self._known: dict[str, float] = {}

    def free_of_noise(self, noise: Sequence[Noise], kernel: ProductKernel) -> float:
        """Return the log evidence of functions that are as smooth as a kernel, with no more noise than declared."""
        key = repr(kernel)
        if key not in self._known:
            densities = [self._density(replace(prior, kernel=kernel), noise) for prior in self._priors]
            self._known[key] = float(np.logaddexp.reduce([find_mode(density).log_mass for density in densities]))
        return self._known[key]

    def noisy(self, noise: Sequence[Noise], source: int) -> tuple[float, float]:
        """Return the standard deviation of the noise on a source, if that has to be learned, and the log evidence."""
        levels: list[Noise] = ["learn" if s == source else level for s, level in enumerate(noise)]
        densities = [self._density(prior, levels) for prior in self._priors]
        modes = [find_mode(density) for density in densities]
        masses = [mode.log_mass for mode in modes]
        density, mode = densities[int(np.argmax(masses))], modes[int(np.argmax(masses))]
        variance = density.models(mode.theta[None]).noise[0, source]
        return float(density.units.spreads[source] * math.sqrt(variance)), float(np.logaddexp.reduce(masses))

    def _density(self, prior: ModelPrior, noise: Sequence[Noise]) -> LogPosterior:
        return LogPosterior(prior, self._it.measure, self._data, noise)
