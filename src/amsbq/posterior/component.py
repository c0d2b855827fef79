"""`Component`: an output f = T(g) with one transform, and its functionals that are linear in f."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy

from ..common.validation import Array
from ..gp.data import Data
from ..measures.base import Measure
from .estimate import Estimate
from .latent import SETTINGS as LATENT
from .latent import Latent, averaged
from .moments import SETTINGS as MOMENTS
from .moments import Scaled
from .nodes import SETTINGS as NODES
from .nodes import Nodes
from .paths import Paths
from .peak import SETTINGS as PEAK
from .transforms import Transform


@dataclass(frozen=True)
class EffectSettings:
    """Resolution of main effects if the transform is not affine: about a hundredth of their range."""

    knots: int = 41  #: values of the input at which effects are averages over nodes
    nodes: int = 256  #: nodes for the mean
    pairs: int = 96  #: nodes for the double sum of the variance


SETTINGS = EffectSettings()


@dataclass(frozen=True)
class Component:
    """An output f = T(g) with a weight: closed forms where T is affine, averages over nodes otherwise."""

    weight: float
    transform: Transform
    latent: Latent
    measure: Measure
    common: Nodes | None = None  # nodes shared with other outputs

    @cached_property
    def few(self) -> Latent:
        """Some of the members, for quantities that are not linear in g."""
        return self.latent.thinned(LATENT.few)

    @property
    def separable(self) -> bool:
        """Whether sample paths are sums of products of functions of one input each, and inputs are independent."""
        return self.transform.affine and len(self.latent.parts) == 1 and self.measure.marginals is not None

    @cached_property
    def paths(self) -> Paths:
        """Sample paths of the primary source."""
        few = replace(self.few, members=self.few.members.without_integrals()) if self.separable else self.few
        return Paths.draw(few, self.measure)

    def scaled(self, source: int) -> Scaled:
        """Return the transform of a source, for g in standard units."""
        return Scaled(self.transform, float(self.latent.levels[source]), float(self.latent.spreads[source]))

    @cached_property
    def nodes(self) -> Nodes:
        """Nodes of the measure, denser where the primary source varies or is uncertain."""
        return self.common or self._nodes_of(self.measure)

    def _nodes_of(self, measure: Measure) -> Nodes:
        trend = self.transform.trend
        if trend is None:
            return Nodes.of(measure, self.variation)
        return Nodes.of(measure, peak=trend.peak(self.measure, self.latent.target, measure))

    def factors(self, source: int, X: Array) -> Array:
        """Return the factors on values of a source at X (n, D) after the transform: (n,), ones without a trend."""
        return np.exp(self.transform.offsets(self.measure, np.full(len(X), source), X))

    def with_factors(self, nodes: Nodes, source: int) -> Nodes:
        """Return nodes with the factors of a source, for averages of it."""
        return nodes if self.transform.trend is None else replace(nodes, factors=self.factors(source, nodes.X))

    def average(self, source: int, nodes: Nodes, most: int = MOMENTS.points) -> tuple[Array, Array]:
        """Return mean and variance of a source's average over nodes, under each of a few members: (K,) each."""
        return self.scaled(source).integral(self.few, self.with_factors(nodes, source), source, most)

    def variation(self, X: Array) -> Array:
        """Return the height of the primary source above its minimum plus its uncertainty, in any unit: shape (n,)."""
        few, target = self.latent.thinned(LATENT.deciding // 2), self.latent.target
        return self.scaled(target).variation(few, X, self.factors(target, X))

    @cached_property
    def _even_nodes(self) -> Nodes:
        return Nodes.of(self.measure)

    @cached_property
    def integral(self) -> Estimate:
        """The integral of the primary source, or its logarithm if sources return logarithms."""
        if not self.transform.affine:
            return self._over(self.nodes)
        return self._linear(*self.latent.integral())

    def under(self, other: Measure) -> Estimate:
        """Return the integral under another measure of the same inputs."""
        if not self.transform.affine:
            return self._over(self._nodes_of(other))
        return self._linear(*self.latent.under(self.measure, other))

    def given(self, inputs: Sequence[int], t: Array) -> list[Estimate]:
        """Return the average of the primary source over all other inputs, for values t (m, k) of k inputs."""
        if not self.transform.affine:
            return [self._over(self._nodes_given(inputs, at)) for at in t]
        means, variances = self.latent.main_effect(self.latent.target, inputs, t)
        return [self._linear(*moments) for moments in zip(means.T, np.sqrt(variances).T, strict=True)]

    def main_effect(self, source: int, input: int, t: Array) -> tuple[Array, Array]:
        """Return the mean and standard deviation of a source as a function of one input, at t (m, 1): (m,) each.

        If the transform is not affine, both are averages over nodes, which take long to compute: results at many values
        t are then interpolated between those at fewer values, and stay within the range of their neighbours.
        """
        if self.transform.affine:
            moments = self.latent.main_effect(source, [input], t)
            return self.in_user_units(source, *averaged(moments, self.latent.weights))
        if len(t) <= SETTINGS.knots or self.measure.over([input]).discrete:
            return self._main_effect_over_nodes(source, input, t)
        knots = np.linspace(t.min(), t.max(), SETTINGS.knots)
        found = np.stack(self._main_effect_over_nodes(source, input, knots[:, None]))
        mean, std = scipy.interpolate.PchipInterpolator(knots, found, axis=1)(t[:, 0])
        return mean, std

    def _main_effect_over_nodes(self, source: int, input: int, t: Array) -> tuple[Array, Array]:
        """Return the result of `main_effect`, by averages over nodes at each t."""
        by_node = [self.average(source, self._nodes_given([input], at, SETTINGS.nodes), SETTINGS.pairs) for at in t]
        means, variances = (np.array(each).T for each in zip(*by_node, strict=True))
        return self.in_user_units(source, *averaged((means, variances), self.few.weights))

    def predict(self, source: int, X: Array) -> tuple[Array, Array]:
        """Return the mean and standard deviation of a source at each X_i: (n,) each.

        If sources return logarithms, both refer to the logarithm.
        """
        members = self.latent if self.transform.affine else self.few
        return self._predicted(source, X, *members.predict(source, X), members.weights)

    def _predicted(self, source: int, X: Array, means: Array, variances: Array, weights: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of a source at X, from moments of g by each member: shape (n,) each."""
        moments = means, variances
        if self.transform.range.log:
            mean, variance = averaged(self.scaled(source).log_moments(*moments), weights)
            offsets = self.transform.offsets(self.measure, np.full(len(X), source), X)
            return self.transform.unit + offsets + mean, np.sqrt(variance)
        if not self.transform.affine:
            moments = self.scaled(source).mean_and_variance(*moments)
        return self.in_user_units(source, *averaged(moments, weights))

    def surprise(self, value: Data, noise: float, more: float = 0.0) -> tuple[float, float, float]:
        """Return the predicted mean and standard deviation of an observation, and its distance from the mean.

        Mean and standard deviation are in the user's units; the distance is in standard deviations on the scale of
        the transform.

        Parameters
        ----------
        value : Data
            The observation, of a value.
        noise, more : float
            The variance of the declared noise of its source, and that of undeclared noise.
        """
        (source,), transform = value.s.tolist(), self.transform
        declared, _ = transform.divided([noise] * (source + 1))
        (g,) = transform.transformed(value, declared, self.measure).noise_var / self.latent.spreads[source] ** 2
        means, variances = self.few.predict(source, value.X)
        moments = means, variances + self.few.noise(source) + g
        mean, std = self._predicted(source, value.X, *moments, self.few.weights)
        on_scale = self.scaled(source).mean_and_variance(*moments)
        distance, variance = averaged(on_scale, self.few.weights)
        y = value.y - transform.offsets(self.measure, value.s, value.X)
        far = np.abs(transform.back(transform.to(y)) - distance) / np.sqrt(variance + more)
        return float(mean[0]), float(std[0]), float(far[0])

    def values_of(self, source: int, g: Array, X: Array) -> Array:
        """Return values of a source at X (n, D) in the user's units, for g (..., n) in standard units."""
        values = self.transform.values(self.scaled(source).back(g))
        return np.asarray(values + self.transform.offsets(self.measure, np.full(len(X), source), X))

    def integrand(self, source: int, g: Array, X: Array) -> Array:
        """Return the integrand of a source at X, for g (m, n) in standard units; for logarithms, in any unit."""
        if not self.transform.range.log:
            return self.values_of(source, g, X)
        scaled = self.scaled(source)
        logs = self.transform.log_back(scaled.level + scaled.spread * g)
        logs = logs + self.transform.offsets(self.measure, np.full(len(X), source), X)
        return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))

    @property
    def unit(self) -> float:
        """A unit of the values, in which their squares are finite."""
        if self.transform.affine:
            return float(self.latent.spreads[self.latent.target])
        return 1.0 if self.transform.range.log else self.transform.unit

    def _linear(self, means: Array, stds: Array) -> Estimate:
        """Return the estimate of a quantity linear in g, from its moments by each member in standard units."""
        level, spread = self.latent.levels[self.latent.target], self.latent.spreads[self.latent.target]
        return self.latent.of_values(level + spread * means, spread * stds)

    def _over(self, nodes: Nodes) -> Estimate:
        """Return the integral of the primary source over the measure of the nodes."""
        target = self.latent.target
        mean, variance = self.average(target, nodes)
        if self.transform.trend is not None:
            variance = variance + (PEAK.rounding * mean) ** 2
        return self.few.of_values(*self.in_user_units(target, mean, variance), self.transform.ends)

    def _nodes_given(self, inputs: Sequence[int], t: Array, most: int = NODES.tried) -> Nodes:
        """Return nodes of all other inputs, with k inputs fixed at t (k,)."""
        X, weights = self._even_nodes.some(most)
        X = X.copy()
        X[:, list(inputs)] = t
        return Nodes(X, weights[None])

    def in_user_units(self, source: int, mean: Array, variance: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of values, or of their logarithm, in the user's units.

        The given moments are those of standard values if T is affine, otherwise of relative distances from the bound.
        """
        if self.transform.affine:
            level, spread = self.latent.levels[source], self.latent.spreads[source]
            return level + spread * mean, spread * np.sqrt(variance)
        if self.transform.range.log:  # a log-normal number with these moments
            smallest = np.finfo(float).tiny
            spread = np.log1p(variance / np.maximum(mean, smallest) / np.maximum(mean, smallest))
            return self.transform.unit + np.log(np.maximum(mean, smallest)) - 0.5 * spread, np.sqrt(spread)
        return self.transform.values(mean), self.transform.unit * np.sqrt(variance)
