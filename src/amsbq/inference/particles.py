"""Particles: weighted hyperparameters, learned from the observations of one output or given by the user.

Hyperparameters are learned from observations in standard units; a particle is a model of observations in these units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy.special import expit

from ..common.messages import collected_warnings, warn
from ..common.threads import threads_for
from ..common.validation import Array, IntArray
from ..gp.coregionalisation import ModelBatch
from ..gp.data import Data
from ..gp.posterior import MultiSourceGP
from ..gp.posterior_batch import PosteriorBatch
from ..measures.base import Measure
from .averaging import SETTINGS as AVERAGING
from .averaging import Member, advantage, effective_share, weighted
from .locations import shares_of_spread
from .log_posterior import LEARNING_JITTER, LogPosterior
from .noise import SETTINGS as NOISE
from .noise import noise_of
from .preparation import (
    StandardUnits,
    default_names,
    fewest_first,
    learning,
    primary_is_constant,
    regularised,
    warn_of_few,
)
from .sampling import HyperparameterDraws, allotted, draw, most_probable, resampled
from .structures import Model, Noise


@dataclass(frozen=True)
class LearningSettings:
    """How much work goes into learning."""

    draws: int = 48  #: hyperparameter draws per structure, for models that average over them
    #: maximum number of observations to learn hyperparameters from: more hardly change them, and take long
    most_observations: int = 160
    #: maximum number of observations to condition on, unless there are more primary ones: more values of a cheap source
    #: carry next to no information, and the time grows with the cube of their number
    most_conditioned: int = 2000
    fewest_effective: float = 1 / 8  #: effective number of draws, as a share of all, below which sampling has failed
    #: share of the primary source's variance that its values can show, below which they are clustered
    clustered: float = 0.01
    noise_growth: float = 1.5  #: growth of the number of values from one test for undeclared noise to the next
    fewest_draws: int = 4  #: minimum number of draws for an answer from more than `most_observations` observations


SETTINGS = LearningSettings()
#: known integrals: index of the source, value, variance of its error
Integrals: TypeAlias = tuple[tuple[int, float, float], ...]


@dataclass(frozen=True)
class Memory:
    """Results of learning from fewer observations, to continue from.

    Attributes
    ----------
    draws : dict
        The latest draws, by structure and what is learned.
    noise : dict
        For each source, the number of values last tested for undeclared noise, and whether there was any.
    """

    draws: dict[Any, HyperparameterDraws] = field(default_factory=dict)
    noise: dict[int, tuple[int, bool]] = field(default_factory=dict)


@dataclass(frozen=True)
class Particles:
    """Weighted models of the first sources, for observations in standard units.

    Attributes
    ----------
    models : ModelBatch
        K models.
    weights : (K,) array
        Their weights, which sum to one.
    structures : (K,) array
        The number of the structure of each model.
    units : StandardUnits
    noise : list of float or "learn"
        Noise of each source, as declared or, if values at one location differ, learned.
    order : list of int
        The sources in order of fidelity.
    members : tuple of Member
        All structures with their draws; empty if hyperparameters are given.
    constant : bool
        Whether all primary values are equal.
    marginalised : bool
        Whether the models are draws of uncertain hyperparameters: error bars then have heavy tails.
    """

    models: ModelBatch
    weights: Array
    structures: IntArray
    units: StandardUnits
    noise: list[Noise]
    order: Sequence[int]
    members: tuple[Member, ...] = ()
    constant: bool = False
    marginalised: bool = False

    @classmethod
    def given(cls, gp: MultiSourceGP) -> Particles:
        """Return the only particle of a process with given hyperparameters, in the user's units."""
        L = gp.n_sources
        return cls(gp.batch, np.ones(1), np.zeros(1, dtype=np.intp), StandardUnits.of_user(L), [0.0] * L, range(L))

    @classmethod
    def of(
        cls, model: Model, noise: list[Noise], order: Sequence[int], members: Sequence[Member], constant: bool
    ) -> Particles:
        """Return the draws of all structures that are not ruled out."""
        counting = [member for member in members if member.weight > 0]
        counts = [len(member.draws) for member in counting]
        weights = np.concatenate([member.weight * member.draws.weights for member in counting])
        models = ModelBatch.joined([member.draws.models() for member in counting])
        units, structures = members[0].draws.log_posterior.units, np.repeat(np.arange(len(counting)), counts)
        return cls(
            models,
            weights / weights.sum(),
            structures,
            units,
            noise,
            order,
            tuple(members),
            constant,
            model.marginalised,
        )

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def n_sources(self) -> int:
        """The number of modelled sources: 1 if secondary sources are left out."""
        return self.models.n_sources

    @property
    def tails(self) -> float:
        """Degrees of freedom of the distributions of quantities."""
        return AVERAGING.tails if self.marginalised else np.inf

    @property
    def widened(self) -> float:
        """Factor on the widths of the distributions of quantities."""
        return AVERAGING.widened if self.marginalised else 1.0

    @cached_property
    def effective(self) -> float:
        """The effective number of draws."""
        return effective_share(self.members) * len(self) if self.marginalised else 1.0

    def usable(self, data: Data) -> Data:
        """Return the observations to condition on: those of modelled sources."""
        data = data.rows(data.s < self.n_sources) if len(data.y) else data
        if not self.constant:
            return data
        return data.rows((data.s != 0) | ~data.sites.differentiated)  # the derivatives are all zero, and redundant

    def holds(self, data: Data) -> bool:
        """Return whether observations still have the noise and the constancy with which the particles were learned."""
        if not self.members:
            return True
        with collected_warnings():
            noise = regularised(data, self.noise, self.n_sources > 1, default_names(len(self.noise)))[1]
        return noise == self.noise and primary_is_constant(data.rows(data.s < self.n_sources)) == self.constant

    def condition(self, data: Data, integrals: Integrals) -> tuple[IntArray, Array, PosteriorBatch]:
        """Return rows (k,) of particles, their weights (k,) and their posteriors.

        They are conditioned on observations and known integrals. With many observations there are fewer rows than
        particles, to limit the work.
        """
        used = self.usable(data).sorted()
        if self.members:
            used = used.without_most_secondary(SETTINGS.most_conditioned)
        known = used.followed_by(integral_observations(integrals, self.n_sources, data.X.shape[1]))
        most = SETTINGS.most_observations
        share = float((most / max(len(known.y), most)) ** 1.5) if self.marginalised else 1.0
        rows, weights = thinned(self.weights, self.structures, max(int(share * len(self)), SETTINGS.fewest_draws))
        jitter = LEARNING_JITTER if self.members else 0.0
        return rows, weights, PosteriorBatch.condition(self.models.select(rows), self.units.standardise(known), jitter)

    def to_dict(self) -> dict[str, Any]:
        """Return the hyperparameters and how they were learned, as plain numbers and lists."""
        return {
            "order": list(self.order),
            "learned_noise": self.members[0].draws.log_posterior.learned.tolist(),
            "weights": [member.weight for member in self.members],
            "draws": [member.draws.to_dict() for member in self.members],
        }


def thinned(weights: Array, groups: IntArray, n: int) -> tuple[IntArray, Array]:
    """Return the rows of at most n members that represent K weighted ones in groups, and their weights."""
    if n >= len(weights):
        return np.arange(len(weights)), weights
    totals = np.bincount(groups, weights).astype(float)
    members = [np.flatnonzero(groups == group) for group in range(len(totals))]
    rows, shares = [], []
    for of, total, k in zip(members, totals, allotted(n, totals), strict=True):
        if k:
            kept, copies = np.unique(resampled(weights[of], k), return_counts=True)
            rows.append(of[kept])
            shares.append(total * copies / k)
    found = np.concatenate(shares)
    return np.concatenate(rows), found / found.sum()


def integral_observations(integrals: Integrals, n_sources: int, dim: int) -> Data:
    """Return known integrals of the first ``n_sources`` sources as observations."""
    known = [known for known in sorted(integrals) if known[0] < n_sources]
    sources, values, variances = ([row[i] for row in known] for i in range(3))
    return Data.of_integrals([int(source) for source in sources], values, variances, dim)


def learn(
    model: Model,
    measure: Measure,
    data: Data,
    noise: Sequence[Noise],
    seed: int = 0,
    names: Sequence[str] | None = None,
    order: Sequence[int] | None = None,
    memory: Memory | None = None,
) -> Particles:
    """Return particles learned from observations; degenerate observations are regularised, with a warning.

    Warnings refer to sources by their ``names``, by default "source 0" and so on. By default, the ``order`` of fidelity
    begins with the primary source, followed by the others in order of their numbers of observations, the fewest first.
    Draws in a ``memory`` are updated and stored there again.
    """
    if model.process is not None:
        return Particles.given(model.process)
    names = names or default_names(len(noise))
    order = fewest_first(data, len(noise)) if order is None else order
    memory = Memory() if memory is None else memory
    return _learn(model, measure, *regularised(data, noise, model.secondaries, names), seed, names, order, memory)


def of_primary_alone(
    every: Particles,
    model: Model,
    measure: Measure,
    data: Data,
    noise: Sequence[Noise],
    seed: int = 0,
    names: Sequence[str] | None = None,
    integrals: Integrals = (),
    memory: Memory | None = None,
) -> tuple[float, Particles]:
    """Return the weight, from 0 to 1, of a model of the primary source alone, and its particles.

    The weight depends on how much better primary values are predicted with the other sources, by the particles
    ``every``. Sources whose integrals are known must improve the predictions more. The other parameters are those of
    `learn`.
    """
    wanted = model.leaves_out and len(every.noise) > 1 and every.models.target == 0
    if not wanted or every.constant:  # alone it has no scale
        return 0.0, every
    if len(every.members[0].draws.primary_log_densities) < AVERAGING.fewest_primary:
        return 0.0, every
    names = names or default_names(len(noise))
    with collected_warnings():  # the same as for all sources
        alone = replace(model, secondaries=False)
        memory = Memory() if memory is None else memory
        without = _learn(alone, measure, *regularised(data, noise, False, names), seed, names, [0], memory)
    free = {source for source, _, _ in integrals} >= set(range(1, len(noise)))
    if free and not any(np.ptp(data.of_source(source).values.y) for source in range(1, len(noise))):
        return 1.0, without
    least = AVERAGING.least_gain_free if free else AVERAGING.least_gain
    return float(expit(least - advantage(every.members, without.members))), without


def _learn(
    model: Model,
    measure: Measure,
    data: Data,
    noise: list[Noise],
    seed: int,
    names: Sequence[str],
    order: Sequence[int],
    memory: Memory,
) -> Particles:
    for sentence in measure.cautions(data.values.of_source(0).X):
        warn(sentence)
    if np.count_nonzero(data.values.s == 0) > 2 and shares_of_spread(data, measure, 1)[0] < SETTINGS.clustered:
        warn(
            f"all values of {names[0]} are from a small part of the inputs: how much it varies elsewhere is "
            "extrapolated, and the error bar is rough; evaluate it at locations that are farther apart",
        )
    if not model.marginalised:
        warn_of_few(data, names[0])
    with threads_for(min(len(data.y), SETTINGS.most_observations)):
        noisy = _undeclared(measure, data, noise, memory) if model.marginalised else ()
        for source in noisy:
            warn(
                f"the values of {names[source]} scatter more than the declared noise allows: it is learned; declare "
                "noise='learn' or its variance",
            )
        log_posteriors = _log_posteriors(model, measure, data, learning(noise, noisy), order)
        if model.marginalised:
            members = weighted([_drawn(density, i, seed, memory) for i, density in enumerate(log_posteriors)])
            if effective_share(members) < SETTINGS.fewest_effective:
                warn(
                    "hyperparameters could not be sampled: few but the most probable are used, and the error bar is "
                    "too small",
                )
        else:
            members = weighted([most_probable(density, seed) for density in log_posteriors])
    return Particles.of(model, noise, order, members, primary_is_constant(data))


def _undeclared(measure: Measure, data: Data, noise: Sequence[Noise], memory: Memory) -> list[int]:
    """Return the sources with undeclared noise; the others are tested again once they have more values."""
    for source, n in enumerate(np.bincount(data.values.s, minlength=len(noise)).tolist()):
        tested, has_noise = memory.noise.get(source, (0, False))
        if has_noise or n >= max(SETTINGS.noise_growth * tested, NOISE.enough):
            memory.noise[source] = n, noise_of(measure, data, source, noise[source]) > 0
    return [source for source, (_, has_noise) in memory.noise.items() if has_noise and source < len(noise)]


def _drawn(density: LogPosterior, number: int, seed: int, memory: Memory) -> HyperparameterDraws:
    """Return draws of the hyperparameters of a structure: updated from those in a memory, or new."""
    key = number, density.n_sources, density.constant_primary, *density.learned.tolist()
    before = memory.draws.get(key)
    carried = None if before is None else before.carried(density, SETTINGS.draws, seed)
    memory.draws[key] = draw(density, SETTINGS.draws, seed) if carried is None else carried
    return memory.draws[key]


def from_dict(
    model: Model, measure: Measure, data: Data, noise: Sequence[Noise], seed: int, content: dict[str, Any]
) -> Particles:
    """Return the particles that were learned from the same observations, from the content of their ``to_dict()``."""
    alone = len(content.get("order", noise)) < len(noise)  # secondary sources were left out
    with collected_warnings():  # they were issued when the particles were learned
        data, levels = regularised(data, noise, model.secondaries and not alone, default_names(len(noise)))
    if "weights" not in content:  # from a release in which models had one structure
        single = {"weights": [1.0], "draws": [content["draws"]], "learned_noise": []}
        content = {"order": fewest_first(data, len(levels)), **single}
    used = learning(levels, content["learned_noise"])
    stored = zip(
        _log_posteriors(model, measure, data, used, content["order"]), content["draws"], content["weights"], strict=True
    )
    members = [Member(HyperparameterDraws.from_dict(density, plain), weight) for density, plain, weight in stored]
    return Particles.of(model, levels, content["order"], members, primary_is_constant(data))


def _log_posteriors(
    model: Model, measure: Measure, data: Data, noise: Sequence[Noise], order: Sequence[int]
) -> list[LogPosterior]:
    """Return the posterior density of each structure.

    Observations are sorted: their order of arrival does not matter.
    """
    used = data.sorted().thinned(SETTINGS.most_observations)
    structures = model.priors([source for source in order if source < len(noise)], measure.dim)
    constant_primary = primary_is_constant(data)
    return [LogPosterior(prior, measure, used, noise, constant_primary=constant_primary) for prior in structures]
