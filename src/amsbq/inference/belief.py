"""Beliefs: posteriors of the sources to decide by, and the distribution of the integral."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..gp.data import Data
from ..gp.posterior import MultiSourceGP
from ..gp.posterior_batch import PosteriorBatch
from ..gp.threads import threads_for
from ..measures.base import Measure
from ..messages import collected_warnings, warn
from ..validation import Array
from . import calibration
from .estimate import Estimate
from .log_posterior import LogPosterior
from .preparation import default_names, primary_is_constant, regularised, warn_of_few
from .sampling import HyperparameterDraws, draw, draw_tempered, most_probable
from .structures import Model, Noise


@dataclass(frozen=True)
class LearningSettings:
    """How much work goes into learning."""

    draws: int = 32  #: of the hyperparameters, where they are averaged over; more changed no coverage
    deciding_step: int = 4  #: every 4th draw is used for decisions
    #: observations to learn hyperparameters from, at most: more hardly improve them, and take long
    most_observations: int = 256
    fewest_draws: int = 4  #: fewest draws conditioned on all observations, when there are more than `most_observations`


SETTINGS = LearningSettings()


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
        for new in data.one_by_one(len(posteriors.data.y)):
            posteriors = posteriors.extend(new)
        return FixedBelief(posteriors)


@dataclass(frozen=True)
class LearnedBelief:
    """A belief with hyperparameters learned from the observations."""

    model: Model
    noise: Sequence[Noise]
    data: Data  # in the order of arrival
    draws: HyperparameterDraws
    tempered: HyperparameterDraws | None  # None where only the most probable hyperparameters are used

    @property
    def log_posterior(self) -> LogPosterior:
        """The posterior density that the hyperparameters are drawn from."""
        return self.draws.log_posterior

    @cached_property
    def posteriors(self) -> PosteriorBatch:
        """The posteriors used for decisions, in standard units."""
        return self._on_all_data(self.draws).condition(SETTINGS.deciding_step)

    @cached_property
    def estimate(self) -> Estimate:
        """The integral of the primary source."""
        draws = self._on_all_data(self.draws)
        if self.tempered is None:
            return calibration.uncalibrated(draws)
        return calibration.calibrated(draws, self._on_all_data(self.tempered))

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
        tempered = None if self.tempered is None else self.tempered.to_dict()
        return {"draws": self.draws.to_dict(), "tempered": tempered}

    def _extended(self) -> ExtendedBelief:
        return ExtendedBelief(self, self.data, self.posteriors)

    @cached_property
    def _log_posterior_on_all_data(self) -> LogPosterior:
        if len(self.data.y) <= SETTINGS.most_observations:
            return self.log_posterior
        return self.log_posterior.on(self.data.sorted())

    def _on_all_data(self, draws: HyperparameterDraws) -> HyperparameterDraws:
        """Return the draws, to be conditioned on all observations: fewer of them if that is much work."""
        most = SETTINGS.most_observations
        share = (most / max(len(self.data.y), most)) ** 1.5
        return draws.thinned(self._log_posterior_on_all_data, max(SETTINGS.fewest_draws, int(SETTINGS.draws * share)))


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
        old_mean, mean = (calibration.integral_means(batch).mean() for batch in batches)
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
            return _learn(learned.model, learned.log_posterior.measure, data, noise, learned.draws.seed, names)
        posteriors = self.posteriors
        for new in learned.log_posterior.units.standardise(data).one_by_one(len(self.data.y)):
            posteriors = posteriors.extend(new)
        return replace(self, data=data, posteriors=posteriors)


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
) -> FixedBelief | LearnedBelief:
    """Return what a model believes of observations; degenerate ones are regularised, with a warning.

    Warnings call sources by their ``names``, or "source 0" and so on.
    """
    if isinstance(model, MultiSourceGP):  # in a canonical order, as the order of arrival does not matter
        return FixedBelief(PosteriorBatch.condition(model.batch, data.sorted()))
    names = names or default_names(len(noise))
    return _learn(model, measure, *regularised(data, noise, model.secondaries, names), seed, names)


def _learn(
    model: Model, measure: Measure, data: Data, noise: list[Noise], seed: int, names: Sequence[str]
) -> LearnedBelief:
    for sentence in measure.cautions(data.X[data.s == 0]):
        warn(sentence, stacklevel=4)
    if not model.marginalised:
        warn_of_few(data, names[0])
    log_posterior = _log_posterior(model, measure, data, noise)
    with threads_for(len(log_posterior.data.y)):
        if not model.marginalised:
            return LearnedBelief(model, noise, data, most_probable(log_posterior, seed), None)
        draws = draw(log_posterior, SETTINGS.draws, seed)
        return LearnedBelief(model, noise, data, draws, draw_tempered(draws, calibration.SETTINGS.power))


def from_hyperparameters(
    model: Model, measure: Measure, data: Data, noise: Sequence[Noise], seed: int, hyperparameters: dict[str, Any]
) -> LearnedBelief:
    """Return a belief that was learned from the same observations before, from its ``hyperparameters()``."""
    with collected_warnings():  # they were issued when it was learned
        data, levels = regularised(data, noise, model.secondaries, default_names(len(noise)))
    log_posterior = _log_posterior(model, measure, data, levels)
    draws = HyperparameterDraws.from_dict(log_posterior, hyperparameters["draws"], seed)
    plain = hyperparameters["tempered"]
    if plain is None:
        return LearnedBelief(model, levels, data, draws, None)
    density = log_posterior.tempered(calibration.SETTINGS.power)
    return LearnedBelief(model, levels, data, draws, HyperparameterDraws.from_dict(density, plain, seed))


def _log_posterior(model: Model, measure: Measure, data: Data, noise: Sequence[Noise]) -> LogPosterior:
    """Return the posterior density on observations in a canonical order, as the order of arrival does not matter."""
    return LogPosterior(model.prior(len(noise)), measure, data.sorted().thinned(SETTINGS.most_observations), noise)
