"""`ControlVariate`: the frozen posterior means m_l of all sources, statistics of m_0, and the predicted residuals.

If sources return logarithms of the function to integrate, m_l is the exponential of the posterior mean, in
a separate unit: the averages are of exponentials. These are large in a small part of the inputs, and draws are from

    q = g π / E[g],   g = min((1 + m_0) / 2, c),

by rejection from draws of the distribution π of the inputs; each has weight E[g] / g, which is at most 2 E[g]. If the
model knows the peak of m_0, perhaps in a millionth of the inputs, most draws are from a Gaussian density around it.

Notation: L sources, M outputs, n locations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ..common.validation import Array
from ..design.description import Problem
from ..measures.base import Measure, inside_cube
from ..measures.empirical import Empirical
from ..posterior.component import Component
from ..posterior.nodes import Nodes
from ..posterior.peak import nodes_around
from ..posterior.posterior import Posterior
from ..posterior.targets import Target
from ..posterior.transforms import OutputRange


@dataclass(frozen=True)
class ControlSettings:
    """Sizes of sums and of point sets."""

    sets: int = 8  #: sets of points for averages without a closed form: their spread is part of the interval
    #: points of each of these sets: more, if that takes fewer covariances than this, about a second
    points: int = 1024
    most_points: int = 16384
    most_covariances: int = 30_000_000
    probed: int = 64  #: points at which the digest is computed
    #: locations at which residuals are predicted: their variances are then known to within ten percent
    predicted: int = 256
    together: int = 16  #: number of these locations at once, for joint covariances of all sources
    densest: float = 512.0  #: c: about the largest number of proposed draws for each accepted one
    proposed: int = 2048  #: draws proposed at a time
    #: logarithms of exponentials in their unit are cut off here, and those drawn from the model at this much above the
    #: prediction: squares of the largest of them would dominate everything
    largest: float = 50.0
    surprise: float = 2.0


SETTINGS = ControlSettings()

#: the latest control variate: its averages take a second, and the next certificate is often of the same run
_LATEST: list[ControlVariate] = []


class Average(NamedTuple):
    """An average over the distribution of the inputs, and its standard error: shape (M,) each."""

    value: Array
    error: Array


class Residuals(NamedTuple):
    """Residuals of all sources for one output, drawn from the model: draws (S, L), and their weights (S,)."""

    draws: Array
    weights: Array
    lacking: tuple[int, ...] = ()  #: sources without this output, which do not count for it


@dataclass(frozen=True)
class ControlVariate:
    """The posterior means of all sources, frozen: functions whose average over the inputs is known.

    Attributes
    ----------
    posterior : Posterior
        The posterior whose means these are.
    measure : Measure
        The distribution of the inputs to average over.
    same : bool
        Whether ``measure`` is the distribution of the inputs of the run.
    n_sources : int
        The number of sources, L.
    ranges : tuple of OutputRange or None
        The known range of the values of each output: the means are clipped to it.
    targets : tuple of Target
        The certified quantity of each output.
    """

    posterior: Posterior
    measure: Measure
    same: bool
    n_sources: int
    ranges: tuple[OutputRange | None, ...]
    targets: tuple[Target, ...]

    @classmethod
    def of(cls, problem: Problem, posterior: Posterior, measure: Measure, targets: Sequence[Target]) -> Self:
        """Return the control variate of a run; the latest one is cached, with its averages, for other certificates."""
        latest, wanted = _LATEST[-1] if _LATEST else None, tuple(targets)
        known = isinstance(latest, cls) and latest.posterior is posterior and latest.measure is measure
        if isinstance(latest, cls) and known and latest.targets == wanted:
            return latest
        same, L = measure is problem.measure, len(problem.sources)
        made = cls(posterior, measure, same, L, tuple(problem.ranges), wanted)
        _LATEST[:] = [made]
        return made

    @property
    def n_outputs(self) -> int:
        """M."""
        return len(self.ranges)

    @cached_property
    def logarithms(self) -> NDArray[np.bool_]:
        """Whether the values of each output are logarithms of the function to integrate, shape (M,)."""
        pairs = zip(self.ranges, self.targets, strict=True)
        return np.array([known is not None and known.log and target == "mean" for known, target in pairs])

    @property
    def _concentrated(self) -> bool:
        """Whether draws are denser where m_0 is large; only for means."""
        return bool(self.logarithms.any()) and all(target == "mean" for target in self.targets)

    @cached_property
    def units(self) -> Array:
        """The logarithms of the units of exponentials, in which the average of m_0 is one; NaN for other outputs."""
        found = np.full(self.n_outputs, np.nan)
        if self.logarithms.any():
            ((X, weights),) = self._covering(1, SETTINGS.points)
            logs = self._predicted(0, X)[:, self.logarithms]
            found[self.logarithms] = logsumexp(logs, axis=0, b=weights[:, None])
        return found

    @cached_property
    def _peak(self) -> tuple[Array, Array] | None:
        """The peak of m_0 under the distribution of the inputs, if the model of the only output knows it."""
        first = self._components[0][0] if self.n_outputs == 1 and self._components[0] else None
        if first is None or first.transform.trend is None or isinstance(self.measure, Empirical):
            return None
        return first.transform.trend.peak(first.measure, first.latent.target, self.measure)

    def _covering(self, sets: int, n: int) -> list[tuple[Array, Array]]:
        """Return independent sets of n points that cover the inputs, most of them around a known peak, and weights."""
        if self._peak is None:
            return [(_covering(self.measure, n, seed), np.full(n, 1 / n)) for seed in range(sets)]
        nodes = Nodes.around(self.measure, self._peak, sets, n)
        return list(zip(np.split(nodes.X, sets), nodes.weights, strict=True))

    def _predicted(self, source: int, X: Array) -> Array:
        """Return the posterior mean of a source at each X_i, clipped to the known ranges of outputs, shape (n, M)."""
        mean, _ = self.posterior.predict(source, X)
        found = np.nan_to_num(np.reshape(mean, (len(X), self.n_outputs)))
        for m, known in enumerate(self.ranges):
            if known is not None:
                found[:, m] = np.clip(found[:, m], known.low, known.high)
        return found

    def values(self, source: int, X: Array) -> Array:
        """Return m_l at each X_i, shape (n, M); zero where the model has no prediction."""
        if source >= self.posterior.n_sources:
            return np.zeros((len(X), self.n_outputs))
        return in_units(self._predicted(source, X), self.units)

    def draws(self, n: int, rng: np.random.Generator, even: bool) -> tuple[Array, Array]:
        """Return n draws, as a Latin hypercube or independent, shape (n, D), and their weights, (n,)."""
        if not self._concentrated:
            return (self.measure.spread_out if even else self.measure.sample)(n, rng), np.ones(n)
        if self._peak is not None:
            return nodes_around(self.measure, self._peak, inside_cube(rng.random((n, self.measure.dim + 1))))
        X, density = np.empty((0, self.measure.dim)), np.empty(0)
        while len(X) < n:
            proposed = self.measure.sample(SETTINGS.proposed, rng)
            found = self._concentration(self.values(0, proposed))
            accepted = rng.random(len(found)) * SETTINGS.densest < found
            X, density = np.concatenate([X, proposed[accepted]]), np.concatenate([density, found[accepted]])
        return X[:n], self._average_concentration / density[:n]

    def _concentration(self, values: Array) -> Array:
        """Return g, for values of m_0 (n, M)."""
        return np.asarray(np.minimum(0.5 + 0.5 * values[:, self.logarithms].mean(axis=1), SETTINGS.densest))

    @cached_property
    def _average_concentration(self) -> float:
        return float(
            self.average(lambda values, weights: np.atleast_1d(weights @ self._concentration(values))).value[0]
        )

    @cached_property
    def mean(self) -> Average:
        """The average of m_0: in closed form if one exists, otherwise by sums."""
        if not self._closed:
            return self.average(lambda values, weights: weights @ values)
        found = [sum(c.weight * _integral(c) for c in some) / sum(c.weight for c in some) for some in self._components]
        return Average(np.array(found), np.zeros(self.n_outputs))

    @property
    def _closed(self) -> bool:
        affine = all(c.transform.affine for some in self._components for c in some)
        return self.same and affine and not any(self.ranges) and self.measure.resolution == 0 and all(self._components)

    @cached_property
    def _components(self) -> list[list[Component]]:
        several = self.posterior.names is not None
        return [(self.posterior[m] if several else self.posterior).components for m in range(self.n_outputs)]

    def average(self, statistic: Callable[[Array, Array], Array]) -> Average:
        """Return a statistic of m_0(x) for x from the distribution of the inputs, by sums over sets of points.

        It maps values (n, M) and their weights (n,) to M numbers. Sums over all samples of an empirical distribution
        are exact.
        """
        sets = self._sets
        by_set = np.array([statistic(values, weights) for values, weights in sets])
        mean = by_set.mean(axis=0)
        if len(sets) == 1:
            return Average(mean, np.zeros(self.n_outputs))
        # sets may agree by chance; with half the points, errors are about twice as large
        half = len(sets[0][1]) // 2
        by_half = np.array([statistic(values[:half], 2 * weights[:half]) for values, weights in sets])
        error = by_set.std(axis=0, ddof=1) / np.sqrt(len(sets))
        return Average(mean, np.maximum(error, 0.5 * np.abs(by_half.mean(axis=0) - mean)))

    @cached_property
    def _sets(self) -> list[tuple[Array, Array]]:
        """Values of m_0 at independent sets of points, each covering the distribution of the inputs, with weights."""
        measure = self.measure
        parts = (part for some in self._components for component in some for part in component.few.parts)
        of_point = SETTINGS.sets * sum(len(part) * len(part.data.y) for part in parts)
        affordable = 1 << (SETTINGS.most_covariances // max(of_point, 1)).bit_length() >> 1
        n = min(max(affordable, SETTINGS.points), SETTINGS.most_points)
        if isinstance(measure, Empirical) and len(measure.samples) <= SETTINGS.sets * n:
            return [(self.values(0, measure.samples), measure.weights)]
        return [(self.values(0, X), weights) for X, weights in self._covering(SETTINGS.sets, n)]

    @cached_property
    def digest(self) -> str:
        """The first digits of the SHA-256 of m_l at fixed points, which show that it was not changed."""
        X = self.measure.sobol(SETTINGS.probed, 0)
        values = [self.values(source, X) for source in range(self.n_sources)]
        return sha256(np.array([*values]).astype("<f8").tobytes()).hexdigest()[:16]

    def includes(self, source: int) -> bool:
        """Return whether the model relates a source to the primary one, for all outputs."""
        return source == 0 or (source < self.posterior.n_sources and self.posterior.includes(source))

    @cached_property
    def expected_residuals(self) -> list[Residuals]:
        """Residuals f_l - m_l drawn from the model, for each output, jointly for the sources that it relates.

        They are NaN where the model has no prediction.
        """
        X, counts = self.measure.sobol(SETTINGS.predicted, 1), np.ones(SETTINGS.predicted)
        if self._concentrated:
            X, counts = self.draws(SETTINGS.predicted, np.random.default_rng(1), even=False)
        L = self.n_sources if all(map(self.includes, range(self.n_sources))) else 1
        means = np.stack([self.values(source, X) for source in range(L)], axis=1)  # (n, L, M)
        found = []
        for m, some in enumerate(self._components):
            rows = [(c.weight, *_joint_draws(c, X, L)) for c in some if c.latent.n_sources >= L]
            values = [self._not_too_surprising(f, means[:, :, m], m) for _, f, _ in rows]
            draws = [np.reshape((f - means[:, :, m]) * counts[:, None], (-1, L)) for f in values]
            weights = [np.repeat(weight * w, len(X)) for weight, _, w in rows]
            whole = np.full((sum(map(len, draws)), self.n_sources), np.nan)
            whole[:, :L] = np.concatenate(draws) if draws else 0.0
            all_weights = np.concatenate(weights) if weights else np.zeros(0)
            found.append(Residuals(whole, all_weights / max(all_weights.sum(), np.finfo(float).tiny)))
        return found

    def _not_too_surprising(self, draws: Array, means: Array, output: int) -> Array:
        """Return values drawn from the model; if they are logarithms, their exponentials in their unit, cut off."""
        if not self.logarithms[output]:
            return draws
        highest = np.log(np.maximum(means, 1.0)) + SETTINGS.surprise
        return np.asarray(np.exp(np.minimum(draws - self.units[output], highest)))


def in_units(values: Array, units: Array) -> Array:
    """Return values (n, M) in the form in which they are averaged: logarithms become exponentials in their units."""
    logs = np.isfinite(units)
    found = values.copy()
    found[..., logs] = np.exp(np.minimum(values[..., logs] - units[logs], SETTINGS.largest))
    return found


def _covering(measure: Measure, n: int, seed: int) -> Array:
    """Return points that cover a measure; weighted samples are repeated at random in proportion to their weights."""
    if isinstance(measure, Empirical):  # its quantiles are those of the first input
        u = (np.arange(n) + np.random.default_rng(seed).random()) / n
        edges = np.cumsum(measure.weights)
        return np.asarray(measure.samples[np.minimum(np.searchsorted(edges[:-1], u), len(edges) - 1)])
    return measure.sobol(n, seed)


def _integral(component: Component) -> float:
    """Return the average of the primary source's mean by `Component.predict`, for an affine transform."""
    latent = component.latent
    means, _ = latent.integral(0)
    return float(latent.levels[0] + latent.spreads[0] * (latent.weights @ means))


def _joint_draws(component: Component, X: Array, L: int) -> tuple[Array, Array]:
    """Return noisy draws of L sources at X (n, D), by each of J members: (J, n, L), and the members' weights (J,)."""
    few, rng = component.few, np.random.default_rng(0)
    out = np.empty((len(few), len(X), L))
    for start in range(0, len(X), SETTINGS.together):
        x = X[start : start + SETTINGS.together]
        n = len(x)
        means, covariances = few.predict_joint(np.tile(np.arange(L), n), np.repeat(x, L, axis=0))
        blocks = np.einsum("jnanb->jnab", covariances.reshape(-1, n, L, n, L))
        values, vectors = np.linalg.eigh(blocks)
        standard = rng.normal(size=(*values.shape, 1))
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
        g = means.reshape(-1, n, L) + (roots @ standard)[..., 0]
        for source in range(L):
            noise = np.sqrt(few.noise(source)) * rng.normal(size=(len(few), n))
            out[:, start : start + n, source] = component.values_of(source, g[:, :, source] + noise, x)
    return out, few.weights
