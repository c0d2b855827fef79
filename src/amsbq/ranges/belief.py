"""`RangedBelief`: a belief on sources f = T(g), from one on g."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from ..gp.data import Data
from ..gp.posterior_batch import PosteriorBatch
from ..inference.belief import ExtendedBelief, FixedBelief, LearnedBelief, averaged
from ..inference.estimate import Estimate
from ..measures.base import Measure
from ..quantities.ensemble import Ensemble, units_of
from ..validation import Array
from .moments import Scaled
from .nodes import SETTINGS, Nodes
from .transforms import Transform


@dataclass(frozen=True)
class RangedBelief:
    """A model of sources whose range is known, conditioned on observations."""

    latent: FixedBelief | LearnedBelief | ExtendedBelief  # on g
    transform: Transform
    measure: Measure
    noise: tuple[float, ...]  # known noise variance of each source

    @property
    def posteriors(self) -> PosteriorBatch:
        """The posteriors of g used for decisions."""
        return self.latent.posteriors

    @cached_property
    def of_range(self) -> Estimate:
        """The integral of the primary source by the transform, or its logarithm if sources return logarithms."""
        return self.integral(Ensemble.of(self.latent), self.nodes)

    @property
    def estimate(self) -> Estimate:
        """The integral of the primary source, or its logarithm if sources return logarithms."""
        return self.of_range

    @property
    def ends(self) -> tuple[float, float]:
        """The range of the values; infinite if it is only assumed."""
        known = self.transform.range
        return (-np.inf, np.inf) if known.assumed else (known.low, known.high)

    @cached_property
    def nodes(self) -> Nodes:
        """Nodes of the measure, more of them where the primary source varies or is unknown."""
        return self._nodes_of(self.measure)

    def _nodes_of(self, measure: Measure) -> Nodes:
        scaled, some = self.scaled(0), self.posteriors.select(slice(None, None, 2))
        return Nodes.of(measure, lambda X: scaled.variation(some, X))

    @cached_property
    def nodes_of_all(self) -> Nodes:
        """Nodes that are spread evenly."""
        return Nodes.of(self.measure)

    def scaled(self, source: int) -> Scaled:
        """Return the transform of a source for g in standard units."""
        return Scaled(self.transform, *units_of(self.latent, source))

    def integral(self, ensemble: Ensemble, nodes: Nodes) -> Estimate:
        """Return the integral of the primary source over the measure that the nodes are of."""
        moments = self.scaled(0).integral(ensemble.posteriors, nodes)
        return ensemble.of_values(*self._in_user_units(*moments), self.ends)

    def integral_over(self, measure: Measure) -> Estimate:
        """Return the integral of the primary source over another measure of the same inputs."""
        return self.integral(Ensemble.of(self.latent), self._nodes_of(measure))

    def given(self, input: int, t: float) -> Nodes:
        """Return nodes of all other inputs, with one input given: what its main effect at t is an average over."""
        X, weights = self.nodes_of_all.some(SETTINGS.tried)
        X = X.copy()
        X[:, input] = t
        return Nodes(X, weights[None])

    def main_effect(self, source: int, input: int, t: Array) -> tuple[Array, Array]:
        """Return the mean and standard deviation of a main effect, a source as a function of one input, at t (m, 1)."""
        scaled = self.scaled(source)
        moments = [scaled.integral(self.posteriors, self.given(input, float(at)), source) for at in t[:, 0]]
        means, variances = (np.array(each).T for each in zip(*moments, strict=True))
        return self._in_user_units(*averaged((means, variances)))

    def values_of(self, source: int, g: Array) -> Array:
        """Return values of a source in the units of the user, of any shape, for g in standard units."""
        return self.transform.values(self.scaled(source).back(g))

    def integrand(self, source: int, g: Array) -> Array:
        """Return what is integrated of a source, for g (m, n) in standard units; of logarithms, in any unit."""
        if not self.transform.range.log:
            return self.values_of(source, g)
        scaled = self.scaled(source)
        logs = self.transform.log_back(scaled.level + scaled.spread * g)
        return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))

    def predict(self, source: int, X: Array) -> tuple[Array, Array]:
        """Return the mean and standard deviation of a source at each X_i, averaged over hyperparameters: (n,) each.

        If sources return logarithms, they are those of the logarithm.
        """
        if self.transform.range.log:
            mean, variance = averaged(self.scaled(source).log_moments(*self.posteriors.predict(source, X)))
            return self.transform.unit + mean, np.sqrt(variance)
        return self._in_user_units(*self.predict_distance(source, X))

    def predict_distance(self, source: int, X: Array) -> tuple[Array, Array]:
        """Return mean and variance of the relative distance of a source from its bound at each X_i, shape (n,) each."""
        return averaged(self.scaled(source).mean_and_variance(*self.posteriors.predict(source, X)))

    def _in_user_units(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of values, or of their logarithm, from those of relative distances."""
        if self.transform.range.log:
            return self._log_moments(mean, variance)
        return self.transform.values(mean), self.transform.unit * np.sqrt(variance)

    def _log_moments(self, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of the logarithm of a log-normal number with these moments."""
        smallest = np.finfo(float).tiny
        spread = np.log1p(variance / np.maximum(mean, smallest) / np.maximum(mean, smallest))
        return self.transform.unit + np.log(np.maximum(mean, smallest)) - 0.5 * spread, np.sqrt(spread)

    def extend(self, data: Data) -> Self:
        """Return the belief with the same hyperparameters on more observations; ``data`` begin with the old ones."""
        modelled = data.rows(data.s < len(self.noise))
        latent: Any = self.latent.extend(self.transform.transformed(modelled, self.noise, self.measure))
        return replace(self, latent=latent)


@dataclass(frozen=True)
class AveragedBelief(RangedBelief):
    """A belief on sources whose range is only assumed, averaged with one on their values as they are.

    What is said of the sources is an average. Decisions are by the former.
    """

    plain: LearnedBelief | ExtendedBelief
    share: float  # of the belief with a range

    @cached_property
    def estimate(self) -> Estimate:
        """The integral of the primary source."""
        return self.average(self.of_range, self.plain.estimate)

    @property
    def views(self) -> tuple[tuple[float, Estimate], tuple[float, Estimate]]:
        """The share of each belief, and what it says of the integral."""
        return (self.share, self.of_range), (1 - self.share, self.plain.estimate)

    def average(self, ranged: Estimate, plain: Estimate) -> Estimate:
        """Return the average of what both beliefs say of a quantity: a mixture."""
        return Estimate(
            np.append(ranged.centres, plain.centres),
            np.append(ranged.scales, plain.scales),
            np.append(self.share * ranged.weights, (1 - self.share) * plain.weights),
            plain.dof,
            self.share * ranged.effective_draws + (1 - self.share) * plain.effective_draws,
        )

    def main_effect(self, source: int, input: int, t: Array) -> tuple[Array, Array]:
        """Return the mean and standard deviation of a main effect, a source as a function of one input, at t (m, 1)."""
        return self._average(super().main_effect(source, input, t), self.plain.main_effect(source, input, t))

    def predict(self, source: int, X: Array) -> tuple[Array, Array]:
        """Return the mean and standard deviation of a source at each X_i, averaged over hyperparameters: (n,) each."""
        return self._average(super().predict(source, X), self.plain.predict(source, X))

    def _average(self, ranged: tuple[Array, Array], plain: tuple[Array, Array]) -> tuple[Array, Array]:
        """Return mean and standard deviation of the mixture of two distributions that have these."""
        (mean, std), (other, its_std), share = ranged, plain, self.share
        within = np.hypot(np.sqrt(share) * std, np.sqrt(1 - share) * its_std)
        return other + share * (mean - other), np.hypot(within, np.sqrt(share * (1 - share)) * (mean - other))

    def extend(self, data: Data) -> Self:
        """Return the belief with the same hyperparameters on more observations; ``data`` begin with the old ones."""
        plain: Any = self.plain.extend(data.rows(data.s < len(self.noise)))
        return replace(super().extend(data), plain=plain)
