"""Beliefs: posteriors of the sources to decide by, and the distribution of the integral."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from ..gp.coregionalisation import ModelBatch
from ..gp.data import Data
from ..gp.posterior import MultiSourceGP
from ..gp.posterior_batch import PosteriorBatch
from ..measures.base import Measure
from ..messages import collected_warnings, warn
from ..threads import threads_for
from ..validation import Array
from .averaging import SETTINGS as AVERAGING
from .averaging import (
    Member,
    advantage,
    averaged_integral,
    effective_share,
    integral_means,
    most_probable_integral,
    weighted,
)
from .estimate import Estimate
from .log_posterior import LEARNING_JITTER, LogPosterior
from .noise import undeclared_noise
from .preparation import default_names, fewest_first, learning, primary_is_constant, regularised, warn_of_few
from .sampling import HyperparameterDraws, allotted, draw, most_probable
from .structures import Model, Noise


@dataclass(frozen=True)
class LearningSettings:
    """How much work goes into learning."""

    draws: int = 16  #: of the hyperparameters of each structure, where they are averaged over
    deciding_draws: int = 8  #: of all structures together, in proportion to their weights, for decisions
    #: observations to learn hyperparameters from, at most: more hardly improve them, and take long
    most_observations: int = 160
    #: observations to condition on, at most, unless there are more of the primary source: beyond, more of a cheap
    #: source tell next to nothing, and the time grows with their cube
    most_conditioned: int = 2000
    fewest_effective: float = 1 / 3  #: share of the draws that must be different
    fewest_draws: int = 4  #: fewest draws for an answer, when there are more than `most_observations`


SETTINGS = LearningSettings()
#: known integrals: number of the source, value, variance of its error
Integrals: TypeAlias = tuple[tuple[int, float, float], ...]


class Belief(Protocol):
    """A model of the sources, conditioned on observations."""

    @property
    def posteriors(self) -> PosteriorBatch:
        """The posteriors used for decisions, for some draws of the hyperparameters, in units of its own choice."""

    @property
    def estimate(self) -> Estimate:
        """The integral of the primary source."""

    def predict(self, source: int, X: Array) -> tuple[Array, Array]:
        """Return the mean and standard deviation of a source at each X_i, averaged over hyperparameters: (n,) each."""

    def main_effect(self, source: int, input: int, t: Array) -> tuple[Array, Array]:
        """Return the mean and standard deviation of a main effect, a source as a function of one input, at t (m, 1)."""

    def extend(self, data: Data) -> Belief:
        """Return the belief with the same hyperparameters on more observations; ``data`` begin with the old ones."""


@dataclass(frozen=True)
class FixedBelief:
    """A belief with hyperparameters that the user gave."""

    posteriors: PosteriorBatch

    @property
    def estimate(self) -> Estimate:
        """The integral of the primary source: a Gaussian."""
        mean, variance = self.posteriors.integral()
        return Estimate(mean, np.sqrt(variance))

    def predict(self, source: int, X: Array) -> tuple[Array, Array]:
        """Return the mean and standard deviation of a source at each X_i, shape (n,) each."""
        return _mean_and_std(self.posteriors.predict(source, X))

    def main_effect(self, source: int, input: int, t: Array) -> tuple[Array, Array]:
        """Return the mean and standard deviation of a main effect, a source as a function of one input, at t (m, 1)."""
        return _mean_and_std(self.posteriors.main_effect(source, input, t))

    def extend(self, data: Data) -> FixedBelief:
        """Return the belief on more observations; ``data`` begin with the old ones."""
        posteriors = self.posteriors
        for new in data.one_by_one(int(np.count_nonzero(~posteriors.data.values.of_integral))):
            posteriors = posteriors.extend(new)
        return FixedBelief(posteriors)


@dataclass(frozen=True)
class LearnedBelief:
    """A belief with hyperparameters learned from the observations, averaged over structures."""

    model: Model
    noise: Sequence[Noise]
    order: Sequence[int]  # the sources in order of fidelity
    data: Data  # in the order of arrival
    members: tuple[Member, ...]
    integrals: Integrals = ()  # as in `learn`

    @property
    def log_posterior(self) -> LogPosterior:
        """The posterior density of the hyperparameters of the first structure; all have the same standard units."""
        return self.members[0].draws.log_posterior

    @property
    def may_do_without(self) -> bool:
        """Whether secondary sources may be left out, if they tell nothing of the primary one."""
        primary_only = [member.draws.log_posterior.prior.primary_only for member in self.members]
        enough = np.count_nonzero(self.data.values.s == 0) >= AVERAGING.fewest_told
        return bool(len(self.noise) > 1 and self.model.leaves_out and any(primary_only) and enough)

    @cached_property
    def posteriors(self) -> PosteriorBatch:
        """The posteriors used for decisions, in standard units."""
        models, _ = self._models(max(int(SETTINGS.deciding_draws * self._share), 1))
        return PosteriorBatch.condition(models, self._standard_data, LEARNING_JITTER)

    @cached_property
    def estimate(self) -> Estimate:
        """The integral of the primary source."""
        units = self.log_posterior.units
        models, weights = self.answering()
        if not self.model.marginalised:
            return most_probable_integral(models, self._standard_data, units)
        effective = effective_share(self.members) * self._n_draws
        return averaged_integral(models, weights, self._standard_data, units, effective)

    def answering(self, most: int | None = None) -> tuple[ModelBatch, Array]:
        """Return models of hyperparameter draws to answer by, at most so many, and a weight for each, shape (K,)."""
        if not self.model.marginalised:
            return self.members[0].draws.models(), np.ones(1)
        n = self._n_draws if most is None else most
        return self._models(max(int(n * self._share), SETTINGS.fewest_draws))

    @property
    def _n_draws(self) -> int:
        """The number of draws of all structures that are not ruled out."""
        return sum(len(member.draws.Theta) for member in self._counting)

    def predict(self, source: int, X: Array) -> tuple[Array, Array]:
        """Return the mean and standard deviation of a source at each X_i, averaged over hyperparameters: (n,) each."""
        return self._extended().predict(source, X)

    def main_effect(self, source: int, input: int, t: Array) -> tuple[Array, Array]:
        """Return the mean and standard deviation of a main effect, a source as a function of one input, at t (m, 1)."""
        return self._extended().main_effect(source, input, t)

    def extend(self, data: Data) -> Belief:
        """Return the belief with the same hyperparameters on more observations; ``data`` begin with the old ones."""
        return self._extended().extend(data)

    def hyperparameters(self) -> dict[str, Any]:
        """Return all that was learned, as plain numbers and lists."""
        return {
            "order": list(self.order),
            "learned_noise": self.log_posterior.learned.tolist(),
            "weights": [member.weight for member in self.members],
            "draws": [member.draws.to_dict() for member in self.members],
        }

    def _extended(self) -> ExtendedBelief:
        return ExtendedBelief(self, self.data, self.posteriors)

    @cached_property
    def _standard_data(self) -> Data:
        """All observations in standard units and in a canonical order, and known integrals."""
        integrals = _integral_observations(self.integrals, len(self.noise), self.data.X.shape[1])
        return self.used(self.data).followed_by(self.log_posterior.units.standardise(integrals))

    def used(self, data: Data) -> Data:
        """Return the observations to condition on, in standard units and in a canonical order."""
        some = data.sorted().without_most_secondary(SETTINGS.most_conditioned)
        return self.log_posterior.units.standardise(some)

    @property
    def _counting(self) -> list[Member]:
        """The structures that are not ruled out."""
        return [member for member in self.members if member.weight > 0]

    @property
    def _share(self) -> float:
        """The share of the draws to use: fewer where it is much work to condition them on all observations."""
        most = SETTINGS.most_observations
        return float((most / max(len(self._standard_data.y), most)) ** 1.5)

    def _models(self, n: int) -> tuple[ModelBatch, Array]:
        """Return the models of at most n draws, divided among structures by their weights, and a weight for each."""
        draws = [member.draws for member in self._counting]
        weights = np.array([member.weight for member in self._counting])
        counts = np.array([len(some.Theta) for some in draws])
        if n < counts.sum():
            counts = np.minimum(counts, allotted(n, weights))
        used = [draws.thinned(n).models() for draws, n in zip(draws, counts, strict=True) if n]
        return ModelBatch.joined(used), np.repeat(weights / np.maximum(counts, 1), counts)


@dataclass(frozen=True)
class ExtendedBelief:
    """A belief on more observations than its hyperparameters were learned from."""

    learned: LearnedBelief
    data: Data
    posteriors: PosteriorBatch

    @cached_property
    def estimate(self) -> Estimate:
        """The integral as learned, then moved and scaled as the posteriors used for decisions have been since."""
        before, spread = self.learned.estimate, float(self.learned.log_posterior.units.spreads[0])
        batches = self.learned.posteriors, self.posteriors
        old_mean, mean = (integral_means(batch).mean() for batch in batches)
        old_variance, variance = (batch.integral()[1].mean() for batch in batches)
        shrunk = np.sqrt(variance / old_variance) if old_variance > 0 else 1.0
        moved = spread * (mean - old_mean)
        deviations = shrunk * (before.centres - before.mean)
        return Estimate(
            before.mean + moved + deviations,
            shrunk * before.scales,
            before.weights,
            before.dof,
            before.effective_draws,
        )

    def predict(self, source: int, X: Array) -> tuple[Array, Array]:
        """Return the mean and standard deviation of a source at each X_i, averaged over hyperparameters: (n,) each."""
        return self._in_user_units(source, self.posteriors.predict(source, X))

    def main_effect(self, source: int, input: int, t: Array) -> tuple[Array, Array]:
        """Return the mean and standard deviation of a main effect, a source as a function of one input, at t (m, 1)."""
        return self._in_user_units(source, self.posteriors.main_effect(source, input, t))

    def _in_user_units(self, source: int, moments: tuple[Array, Array]) -> tuple[Array, Array]:
        units, (mean, std) = self.learned.log_posterior.units, _mean_and_std(moments)
        return units.levels[source] + units.spreads[source] * mean, units.spreads[source] * std

    def extend(self, data: Data) -> Belief:
        """Return the belief with the same hyperparameters on more observations; ``data`` begin with the old ones."""
        learned = self.learned
        names = default_names(len(learned.noise))  # what is warned of here, the next refit warns of
        data, noise = regularised(data, learned.noise, learned.model.secondaries, names)
        if noise != learned.noise or primary_is_constant(data) != primary_is_constant(self.data):
            # What regularisation made of the old observations has changed.
            seed = learned.members[0].draws.seed
            measure, order = learned.log_posterior.measure, learned.order
            return _learn(learned.model, measure, data, noise, seed, names, order, learned.integrals)
        posteriors = self.posteriors
        for new in learned.log_posterior.units.standardise(data).one_by_one(len(self.data.values.y)):
            posteriors = posteriors.extend(new)
        return replace(self, data=data, posteriors=posteriors)


def _integral_observations(integrals: Integrals, n_sources: int, dim: int) -> Data:
    """Return known integrals as observations, of the first ``n_sources`` sources."""
    known = [known for known in sorted(integrals) if known[0] < n_sources]
    sources, values, variances = ([row[i] for row in known] for i in range(3))
    return Data.of_integrals([int(source) for source in sources], values, variances, dim)


def averaged(moments: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the mean and variance of a mixture of K components with means and variances (K, n): shape (n,) each."""
    means, variances = moments
    return np.mean(means, axis=0), np.mean(variances, axis=0) + np.var(means, axis=0)


def _mean_and_std(moments: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the mean and standard deviation of a mixture; squares in the user's units could overflow."""
    mean, variance = averaged(moments)
    return mean, np.sqrt(variance)


def learn(
    model: Model | MultiSourceGP,
    measure: Measure,
    data: Data,
    noise: Sequence[Noise],
    seed: int = 0,
    names: Sequence[str] | None = None,
    order: Sequence[int] | None = None,
    integrals: Integrals = (),
) -> FixedBelief | LearnedBelief:
    """Return what a model believes of observations; degenerate ones are regularised, with a warning.

    Warnings call sources by their ``names``, or "source 0" and so on. The ``order`` of fidelity is by default that of
    the number of observations, the fewest first after the primary source. Of some sources the integral may be known.
    Secondary sources are left out, all of them, if the primary one is predicted no better with them.
    """
    if isinstance(model, MultiSourceGP):  # in a canonical order, as the order of arrival does not matter
        known = _integral_observations(integrals, model.n_sources, measure.dim)
        return FixedBelief(PosteriorBatch.condition(model.batch, data.sorted().followed_by(known)))
    names = names or default_names(len(noise))
    order = fewest_first(data, len(noise)) if order is None else order
    belief = _learn(model, measure, *regularised(data, noise, model.secondaries, names), seed, names, order, integrals)
    if not belief.may_do_without:
        return belief
    alone = replace(model, secondaries=False)
    with collected_warnings():  # they are those of all sources
        without = _learn(alone, measure, *regularised(data, noise, False, names), seed, names, order[:1], ())
    free = {source for source, _, _ in integrals} >= set(range(1, len(noise)))
    if free and not any(np.ptp(data.of_source(source).values.y) for source in range(1, len(noise))):
        return without
    margin = AVERAGING.free_tell if free else AVERAGING.costly_tell
    return belief if advantage(belief.members, without.members) > margin else without


def _learn(
    model: Model,
    measure: Measure,
    data: Data,
    noise: list[Noise],
    seed: int,
    names: Sequence[str],
    order: Sequence[int],
    integrals: Integrals,
) -> LearnedBelief:
    for sentence in measure.cautions(data.values.of_source(0).X):
        warn(sentence)
    if not model.marginalised:
        warn_of_few(data, names[0])
    with threads_for(min(len(data.y), SETTINGS.most_observations)):
        noisy = undeclared_noise(measure, data, noise) if model.marginalised else ()
        for source in noisy:
            warn(
                f"the values of {names[source]} scatter as if they had noise, but less of it was declared: its noise "
                "is learned; give noise='learn' or its variance",
            )
        log_posteriors = _log_posteriors(model, measure, data, learning(noise, noisy), order)
        if model.marginalised:
            members = weighted([draw(density, SETTINGS.draws, seed) for density in log_posteriors])
            if effective_share(members) < SETTINGS.fewest_effective:
                warn(
                    "hyperparameters could not be sampled: hardly more than the most probable are used, and the error "
                    "bar is too small",
                )
        else:
            members = weighted([most_probable(density, seed) for density in log_posteriors])
    return LearnedBelief(model, noise, order, data, members, integrals)


def from_hyperparameters(
    model: Model,
    measure: Measure,
    data: Data,
    noise: Sequence[Noise],
    seed: int,
    hyperparameters: dict[str, Any],
    integrals: Integrals = (),
) -> LearnedBelief:
    """Return a belief that was learned from the same observations before, from its ``hyperparameters()``."""
    if len(hyperparameters.get("order", noise)) < len(noise):  # secondary sources were left out
        model, integrals = replace(model, secondaries=False), ()
    with collected_warnings():  # they were issued when it was learned
        data, levels = regularised(data, noise, model.secondaries, default_names(len(noise)))
    if "weights" not in hyperparameters:  # of a release in which models had one structure
        single = {"weights": [1.0], "draws": [hyperparameters["draws"]], "learned_noise": []}
        hyperparameters = {"order": fewest_first(data, len(levels)), **single}
    order, weights = hyperparameters["order"], hyperparameters["weights"]
    used = learning(levels, hyperparameters["learned_noise"])
    log_posteriors = _log_posteriors(model, measure, data, used, order)
    stored = zip(log_posteriors, hyperparameters["draws"], weights, strict=True)
    members = (Member(HyperparameterDraws.from_dict(density, plain, seed), weight) for density, plain, weight in stored)
    return LearnedBelief(model, levels, order, data, tuple(members), integrals)


def _log_posteriors(
    model: Model, measure: Measure, data: Data, noise: Sequence[Noise], order: Sequence[int]
) -> list[LogPosterior]:
    """Return the posterior density of each structure.

    Observations are in a canonical order, as the order of arrival does not matter.
    """
    used = data.sorted().thinned(SETTINGS.most_observations)
    structures = model.structures([source for source in order if source < len(noise)], measure.dim)
    doubted = primary_is_constant(data)
    densities = [LogPosterior(prior, measure, used, noise, doubted=doubted) for prior in structures]
    primary = used.of_source(0)
    if not len(primary.y):
        return [density for density in densities if not density.prior.primary_only]
    return [density.on(primary) if density.prior.primary_only else density for density in densities]
