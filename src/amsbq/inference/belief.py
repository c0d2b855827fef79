"""What is believed of the sources, given observations: posteriors to decide by, and what they say of the integral."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtri

from ..gp.data import Data
from ..gp.posterior import MultiSourceGP, Posterior
from ..gp.threads import threads_for
from ..measures.base import Measure
from ..validation import Array
from .degenerate import _flat, _usable
from .estimate import Estimate
from .log_posterior import Parametrisation
from .sampling import Fit, marginalised, most_probable, tempered
from .structures import Model, Noise

DRAWS = 32  #: of the hyperparameters, where they are marginalised


DECIDING = 4  #: every so many of them decide what to ask for next


LEARNED_FROM = 256  #: observations at most: from more, hyperparameters are hardly learned any better, but slowly


FEWEST = 4  #: draws that are given all observations, if there are many more than that


# How far error bars doubt the model, chosen by benchmarks/calibration.py over all its problems:
TAILS = 3.0  #: degrees of freedom: functions that no such model fits are not rare


POWER = 0.5  #: of the likelihood: what no such model fits is no reason to be sure of its hyperparameters


#: what sources may have of their own on the scale on which they agree: quantiles of a log-normal distribution
SHARES = np.exp(-4.0 + 2.0 * ndtri((np.arange(6) + 0.5) / 6))


class Belief(Protocol):
    """A model of the sources, given observations."""

    @property
    def posteriors(self) -> list[Posterior]:
        """To decide by: for some draws of the hyperparameters, with outputs in units of its own choice."""

    @property
    def estimate(self) -> Estimate:
        """The integral of the primary source."""

    def predict(self, source: int, X: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of a source at each X_i, averaged over the hyperparameters."""

    def main_effect(self, source: int, input: int, t: Array) -> tuple[Array, Array]:
        """The same, of the source as a function of one input, with the others integrated out."""

    def given(self, data: Data) -> Belief:
        """The same hyperparameters, given one more observation, or a few: ``data`` begin with the old ones."""


@dataclass(frozen=True)
class FixedBelief:
    """A belief with hyperparameters that the user gave."""

    posterior: Posterior

    @property
    def posteriors(self) -> list[Posterior]:
        return [self.posterior]

    @property
    def estimate(self) -> Estimate:
        mean, variance = self.posterior.integral()
        return Estimate([mean], [np.sqrt(variance)])

    def predict(self, source: int, X: Array) -> tuple[Array, Array]:
        mean, variance = self.posterior.predict(source, X)
        return mean, np.sqrt(variance)

    def main_effect(self, source: int, input: int, t: Array) -> tuple[Array, Array]:
        mean, variance = self.posterior.main_effect(source, input, t)
        return mean, np.sqrt(variance)

    def given(self, data: Data) -> FixedBelief:
        posterior = self.posterior
        for new in data.one_by_one(len(posterior.y)):
            posterior = _one_more(posterior, new)
        return FixedBelief(posterior)


@dataclass(frozen=True)
class LearnedBelief:
    """A belief with hyperparameters learned from the observations."""

    model: Model
    noise: Sequence[Noise]
    data: Data  # in the order in which they came
    fit: Fit
    doubtful: Fit  # the same by one who doubts the model; itself where only the most probable are used

    @property
    def parametrisation(self) -> Parametrisation:
        return self.fit.parametrisation

    def units(self, source: int) -> tuple[float, float]:
        """The level and the spread of a source: zero and one in standard units."""
        return float(self.parametrisation.levels[source]), float(self.parametrisation.spreads[source])

    @cached_property
    def posteriors(self) -> list[Posterior]:
        return self._all_data(self.fit).posteriors(standard=True, step=DECIDING)

    @cached_property
    def estimate(self) -> Estimate:
        """The integral of the primary source, averaged over the hyperparameters.

        The centre is that of the model. The error bar is that of one who doubts it: hyperparameters are drawn from a
        tempered posterior, each draw is widened by what the sources might have of their own where they seem to agree,
        weighted by how well that fits, and tails are long.
        """
        level, spread = self.units(0)
        means, stds, _ = self._all_data(self.fit).doubted_integrals(np.zeros(1))
        mean = level + spread * means.mean()
        if self.doubtful is self.fit:
            return Estimate([mean], [spread * stds[0, 0]])
        shares = SHARES if len(np.unique(self.data.s)) > 1 else np.zeros(1)
        means, stds, logs = self._all_data(self.doubtful).doubted_integrals(np.append(0.0, shares))
        centres, scales, logs = means[:, 0], stds[:, 1:], logs[:, 1:]
        weights = np.exp(POWER * (logs - logs.max(axis=1, keepdims=True)))
        weights /= weights.sum(axis=1, keepdims=True)
        around = np.repeat(mean + spread * (centres - centres.mean()), len(shares))
        effective = min(self.fit.effective, self.doubtful.effective)
        return Estimate(around, spread * scales.ravel(), weights.ravel(), TAILS, effective)

    def predict(self, source: int, X: Array) -> tuple[Array, Array]:
        return self._extended().predict(source, X)

    def main_effect(self, source: int, input: int, t: Array) -> tuple[Array, Array]:
        return self._extended().main_effect(source, input, t)

    def given(self, data: Data) -> Belief:
        return self._extended().given(data)

    def hyperparameters(self) -> dict[str, Any]:
        """All that was learned, as plain numbers and lists."""
        return {"draws": self.fit.plain(), "doubtful": None if self.doubtful is self.fit else self.doubtful.plain()}

    def _extended(self) -> ExtendedBelief:
        return ExtendedBelief(self, self.data, self.posteriors)

    @cached_property
    def _whole(self) -> Parametrisation:
        """Of all observations, where only some were learned from."""
        n = len(self.data.y)
        return self.parametrisation.given(self.data.ordered()) if n > LEARNED_FROM else self.parametrisation

    def _all_data(self, fit: Fit) -> Fit:
        """The draws, given all observations: fewer of them if that is much work."""
        few = max(FEWEST, int(DRAWS * (LEARNED_FROM / max(len(self.data.y), LEARNED_FROM)) ** 1.5))
        return fit.given(self._whole, few)


@dataclass(frozen=True)
class ExtendedBelief:
    """What was learned, given more observations than it was learned from."""

    learned: LearnedBelief
    data: Data
    posteriors: list[Posterior]

    @cached_property
    def estimate(self) -> Estimate:
        """What it was, moved and scaled as the posteriors to decide by have moved and shrunk since."""
        before, (_, spread) = self.learned.estimate, self.learned.units(0)
        (old_mean, old_variance), (mean, variance) = (
            np.mean([posterior.integral() for posterior in posteriors], axis=0)
            for posteriors in (self.learned.posteriors, self.posteriors)
        )
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
        return self._averaged(source, [posterior.predict(source, X) for posterior in self.posteriors])

    def main_effect(self, source: int, input: int, t: Array) -> tuple[Array, Array]:
        return self._averaged(source, [posterior.main_effect(source, input, t) for posterior in self.posteriors])

    def _averaged(self, source: int, found: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        """Means and variances in standard units by each of the posteriors, as mean and deviation of a source."""
        level, spread = self.learned.units(source)
        mean, variance = averaged(found)
        return level + spread * mean, spread * np.sqrt(variance)

    def given(self, data: Data) -> Belief:
        learned = self.learned
        data, noise = _usable(learned.model, data, learned.noise)
        if noise != learned.noise or _flat(data) != _flat(self.data):  # what is made of the old ones has changed
            return _learned(learned.model, learned.parametrisation.measure, data, noise, learned.fit.seed)
        posteriors = self.posteriors
        for new in learned.parametrisation.standardised(data).one_by_one(len(self.data.y)):
            posteriors = [_one_more(posterior, new) for posterior in posteriors]
        return replace(self, data=data, posteriors=posteriors)


def averaged(found: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """The mean and variance of a mixture, whose parts have these means and variances."""
    means, variances = zip(*found, strict=True)
    return np.mean(means, axis=0), np.mean(variances, axis=0) + np.var(means, axis=0)


def _one_more(posterior: Posterior, new: Data) -> Posterior:
    """Given one more observation: to the last digit the same, whether anybody has looked at the integral before."""
    posterior.integral()
    return posterior.extend(new.s, new.X, new.y, new.noise_var)


def learn(
    model: Model | MultiSourceGP, measure: Measure, data: Data, noise: Sequence[Noise], seed: int = 0
) -> FixedBelief | LearnedBelief:
    """What a model believes of given data; data that make no sense get a warning, and are made sense of."""
    if isinstance(model, MultiSourceGP):
        data = data.ordered()  # the order in which observations came does not matter
        return FixedBelief(model.condition(data.s, data.X, data.y, data.noise_var))
    return _learned(model, measure, *_usable(model, data, noise), seed)


def _learned(model: Model, measure: Measure, data: Data, noise: Sequence[Noise], seed: int) -> LearnedBelief:
    parametrisation = _parametrisation(model, measure, data, noise)
    with threads_for(len(parametrisation.data.y)):
        fit = marginalised(parametrisation, DRAWS, seed) if model.marginalised else most_probable(parametrisation, seed)
        doubtful = tempered(fit, POWER) if model.marginalised else fit
    return LearnedBelief(model, noise, data, fit, doubtful)


def recalled(
    model: Model, measure: Measure, data: Data, noise: Sequence[Noise], seed: int, hyperparameters: dict[str, Any]
) -> LearnedBelief:
    """A belief learned from the same data before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were there the first time
        data, noise = _usable(model, data, noise)
    parametrisation = _parametrisation(model, measure, data, noise)
    fit = Fit.recalled(parametrisation, hyperparameters["draws"], seed)
    if hyperparameters["doubtful"] is None:
        return LearnedBelief(model, noise, data, fit, fit)
    doubtful = Fit.recalled(parametrisation.tempered(POWER), hyperparameters["doubtful"], seed)
    return LearnedBelief(model, noise, data, fit, doubtful)


def _parametrisation(model: Model, measure: Measure, data: Data, noise: Sequence[Noise]) -> Parametrisation:
    """Of data in an order of their own: that in which they came does not matter."""
    return Parametrisation(model.prior(len(noise)), measure, data.ordered().thinned(LEARNED_FROM), noise)
