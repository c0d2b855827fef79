"""Particles: weighted hyperparameters, learned from the observations of one output or given by the user.

Everything is learned from observations in standard units; a particle is a model of observations in these units.
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

    draws: int = 48  #: of the hyperparameters of each structure, where they are averaged over
    #: observations to learn hyperparameters from, at most: more hardly improve them, and take long
    most_observations: int = 160
    #: observations to condition on, at most, unless there are more of the primary source: beyond, more of a cheap
    #: source tell next to nothing, and the time grows with their cube
    most_conditioned: int = 2000
    fewest_effective: float = 1 / 8  #: share of the draws that must be different
    clustered: float = 0.01  #: share of the variance of the primary source that its values can show, to warn below
    noise_growth: float = 1.5  #: of the number of values, from one look for undeclared noise to the next
    fewest_draws: int = 4  #: fewest draws for an answer, when there are more than `most_observations`


SETTINGS = LearningSettings()
#: known integrals: number of the source, value, variance of its error
Integrals: TypeAlias = tuple[tuple[int, float, float], ...]


@dataclass(frozen=True)
class Memory:
    """What was learned from fewer observations, to go on from.

    Attributes
    ----------
    draws : dict
        The draws that were made last, by what they are draws of.
    noise : dict
        Of each source, how many values were last looked at for noise that nobody declared, and whether there was some.
    """

    draws: dict[Any, HyperparameterDraws] = field(default_factory=dict)
    noise: dict[int, tuple[int, bool]] = field(default_factory=dict)


@dataclass(frozen=True)
class Particles:
    """Weighted models of the first sources, for observations in standard units.

    Attributes
    ----------
    models : ModelBatch
        K of them.
    weights : (K,) array
        Of each, which sum to one.
    structures : (K,) array
        The number of the structure of each.
    units : StandardUnits
    noise : list of float or "learn"
        Noise of each source, as observations show it.
    order : list of int
        The sources in order of fidelity.
    members : tuple of Member
        What was learned of each structure; none if hyperparameters are given.
    constant : bool
        Whether all observations of the primary source had one value.
    marginalised : bool
        Whether they are draws of uncertain hyperparameters: error bars then have heavy tails.
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
        """Return the only particle of a process with given hyperparameters, in the units of the user."""
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
        """The number of sources that they are models of: 1 if others are left out."""
        return self.models.n_sources

    @property
    def tails(self) -> float:
        """Degrees of freedom of what is said of quantities."""
        return AVERAGING.tails if self.marginalised else np.inf

    @property
    def widened(self) -> float:
        """Factor on the width of what is said of quantities."""
        return AVERAGING.widened if self.marginalised else 1.0

    @cached_property
    def effective(self) -> float:
        """The effective number of draws."""
        return effective_share(self.members) * len(self) if self.marginalised else 1.0

    def usable(self, data: Data) -> Data:
        """Return the observations that count: of the sources that there are models of."""
        data = data.rows(data.s < self.n_sources) if len(data.y) else data
        if not self.constant:
            return data
        return data.rows((data.s != 0) | ~data.sites.differentiated)  # they are all zero, and say no more

    def holds(self, data: Data) -> bool:
        """Return whether observations are as those that they were learned from: as noisy, and as constant."""
        if not self.members:
            return True
        with collected_warnings():
            noise = regularised(data, self.noise, self.n_sources > 1, default_names(len(self.noise)))[1]
        return noise == self.noise and primary_is_constant(data.rows(data.s < self.n_sources)) == self.constant

    def condition(self, data: Data, integrals: Integrals) -> tuple[IntArray, Array, PosteriorBatch]:
        """Return the particles to answer by, their weights, and their posteriors on observations and known integrals.

        They are fewer where it is much work to condition on all observations.
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
        """Return all that was learned, as plain numbers and lists."""
        return {
            "order": list(self.order),
            "learned_noise": self.members[0].draws.log_posterior.learned.tolist(),
            "weights": [member.weight for member in self.members],
            "draws": [member.draws.to_dict() for member in self.members],
        }


def thinned(weights: Array, groups: IntArray, n: int) -> tuple[IntArray, Array]:
    """Return the rows of at most n members that stand for K weighted ones of groups, and their weights."""
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
    """Return known integrals as observations, of the first ``n_sources`` sources."""
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
    """Return the hyperparameters that observations tell; degenerate ones are regularised, with a warning.

    Warnings call sources by their ``names``, or "source 0" and so on. The ``order`` of fidelity is by default that of
    the number of observations, the fewest first after the primary source. Draws from a ``memory`` are carried along;
    those that are used are put into it.
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
    """Return what is learned of the primary source from its own observations, and how much that counts.

    It counts by how well primary values are predicted without the other sources, beside what was learned of all of
    them. Sources of which the integral is known have to help more. Other parameters are those of `learn`.
    """
    wanted = model.leaves_out and len(every.noise) > 1 and every.models.target == 0
    if not wanted or every.constant:  # which has no scale alone
        return 0.0, every
    if len(every.members[0].draws.primary_log_densities) < AVERAGING.fewest_told:
        return 0.0, every
    names = names or default_names(len(noise))
    with collected_warnings():  # they are those of all sources
        alone = replace(model, secondaries=False)
        memory = Memory() if memory is None else memory
        without = _learn(alone, measure, *regularised(data, noise, False, names), seed, names, [0], memory)
    free = {source for source, _, _ in integrals} >= set(range(1, len(noise)))
    if free and not any(np.ptp(data.of_source(source).values.y) for source in range(1, len(noise))):
        return 1.0, without
    margin = AVERAGING.free_tell if free else AVERAGING.costly_tell
    return float(expit(margin - advantage(every.members, without.members))), without


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
        noisy = _noisy(measure, data, noise, memory) if model.marginalised else ()
        for source in noisy:
            warn(
                f"the values of {names[source]} scatter as if they had noise, but less of it was declared: its noise "
                "is learned; give noise='learn' or its variance",
            )
        log_posteriors = _log_posteriors(model, measure, data, learning(noise, noisy), order)
        if model.marginalised:
            members = weighted([_drawn(density, i, seed, memory) for i, density in enumerate(log_posteriors)])
            if effective_share(members) < SETTINGS.fewest_effective:
                warn(
                    "hyperparameters could not be sampled: hardly more than the most probable are used, and the error "
                    "bar is too small",
                )
        else:
            members = weighted([most_probable(density, seed) for density in log_posteriors])
    return Particles.of(model, noise, order, members, primary_is_constant(data))


def _noisy(measure: Measure, data: Data, noise: Sequence[Noise], memory: Memory) -> list[int]:
    """Return the sources that have noise which nobody declared; if not, they are looked at when values have grown."""
    for source, n in enumerate(np.bincount(data.values.s, minlength=len(noise)).tolist()):
        looked_at, has_noise = memory.noise.get(source, (0, False))
        if has_noise or n >= max(SETTINGS.noise_growth * looked_at, NOISE.enough):
            memory.noise[source] = n, noise_of(measure, data, source, noise[source]) > 0
    return [source for source, (_, has_noise) in memory.noise.items() if has_noise and source < len(noise)]


def _drawn(density: LogPosterior, number: int, seed: int, memory: Memory) -> HyperparameterDraws:
    """Return draws of the hyperparameters of a structure, carried along from those in a memory or made anew."""
    key = number, density.n_sources, density.doubted, *density.learned.tolist()
    before = memory.draws.get(key)
    carried = None if before is None else before.carried(density, SETTINGS.draws, seed)
    memory.draws[key] = draw(density, SETTINGS.draws, seed) if carried is None else carried
    return memory.draws[key]


def from_dict(
    model: Model, measure: Measure, data: Data, noise: Sequence[Noise], seed: int, content: dict[str, Any]
) -> Particles:
    """Return the particles that were learned from the same observations before, from their ``to_dict()``."""
    alone = len(content.get("order", noise)) < len(noise)  # secondary sources were left out
    with collected_warnings():  # they were issued when they were learned
        data, levels = regularised(data, noise, model.secondaries and not alone, default_names(len(noise)))
    if "weights" not in content:  # of a release in which models had one structure
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

    Observations are in a canonical order, as the order of arrival does not matter.
    """
    used = data.sorted().thinned(SETTINGS.most_observations)
    structures = model.priors([source for source in order if source < len(noise)], measure.dim)
    doubted = primary_is_constant(data)
    return [LogPosterior(prior, measure, used, noise, doubted=doubted) for prior in structures]
