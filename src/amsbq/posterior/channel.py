"""`Channel`: what is learned of a function of the inputs, by one transform or by alternatives that are weighted.

Where a range is known, transforms are compared by how well each value is predicted from all others, in the units of the
user: by the continuous ranked probability score (Gneiting and Raftery 2007), which values at a bound do not upset as
they would a density.

Where none is known, values that are bunched at one end may be modelled as f = low + exp(g), or high - exp(g), with an
end that is a little beyond all values: how far is chosen with the direction, so that shifting and scaling all values
changes nothing. Each choice is screened with the hyperparameters that were learned for f itself; the best is learned,
and if it predicts each value from all others better, both alternatives count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from ..common.messages import collected_warnings, warn
from ..common.validation import Array
from ..gp.data import Data
from ..gp.posterior_batch import PosteriorBatch
from ..inference.log_posterior import LEARNING_JITTER
from ..inference.particles import SETTINGS as LEARNING
from ..inference.particles import Integrals, Memory, Particles, from_dict, learn, of_primary_alone
from ..inference.preparation import StandardUnits, is_constant
from ..inference.structures import Model, Noise
from ..measures.base import Measure
from .censored import censored
from .component import Component
from .latent import SETTINGS as LATENT
from .latent import Latent, LeftOut, Process, left_out
from .moments import outcomes
from .peak import Fit, Quadratic
from .sums import summed_over
from .transforms import IDENTITY, PEAK, OutputRange, Shape, Transform


@dataclass(frozen=True)
class ChoiceSettings:
    """By what transforms are chosen: for exponentials on development problems of the arena, at fixed designs."""

    #: standard deviation of the integral, as a share of its distance from the bound, up to which transforms for a known
    #: range are compared by their scores alone
    unknown: float = 0.5
    linearisations: int = 2  #: of a known integral of values that are not linear in the process
    beyond: tuple[float, ...] = (0.05, 0.3, 1.5)  #: distances of an end from all values, in units of their range
    fewest: int = 8  #: values of all sources from which on they may be exponentials, ...
    fewest_primary: int = 3  #: ... and of the primary one: with two, intervals held the truth less often than without
    promising: float = 0.9  #: score beside that of the values as they are, with the same hyperparameters
    logarithms: float = 5.0  #: below the largest one, from which on they are compared more and more loosely
    power: float = 3.0  #: of the scores, after hyperparameters were learned: each model counts by its inverse
    least_share: float = 0.02  #: weight up to which a transform, or values as they are, do not count
    #: standard deviation of the integral beside that without: exponentials may allow for anything far from all values
    widest: float = 2.0


SETTINGS = ChoiceSettings()
EXPONENTIAL = Shape("log", 20.0)


@dataclass(frozen=True)
class Alternative:
    """A transform T, the process g by it, and the weight of f = T(g).

    Attributes
    ----------
    weight : float
    transform : Transform
    process : Process
    noise : tuple of float
        The noise variance of each source that goes with values of f, not of g.
    measure : Measure
    """

    weight: float
    transform: Transform
    process: Process
    noise: tuple[float, ...]
    measure: Measure

    @property
    def n_sources(self) -> int:
        """The number of sources that it is a model of."""
        return self.process.particles.n_sources

    @cached_property
    def component(self) -> Component:
        """The output that it is of, if that has a channel of its own."""
        return Component(self.weight, self.transform, Latent.of(self.process), self.measure)

    @property
    def censored(self) -> Alternative:
        """The same, of which values where T cuts off say that g is there or beyond."""
        return replace(self, process=censored(self.process, self.transform.cuts))

    def observed(self, data: Data) -> Data:
        """Return the observations of g, from those of f: of the sources that there is a model of."""
        used = data.rows(data.s < len(self.noise)) if len(data.y) else data
        return self.transform.transformed(used, self.noise, self.measure)


@dataclass(frozen=True)
class Channel:
    """What is known of one function of the inputs: alternatives, the one that counts most first."""

    alternatives: tuple[Alternative, ...]

    @classmethod
    def of(cls, alternatives: Sequence[Alternative]) -> Channel:
        """Return a channel of some alternatives in any order."""
        total = sum(each.weight for each in alternatives)
        found = [replace(each, weight=each.weight / total) for each in alternatives]
        return cls(tuple(sorted(found, key=attrgetter("weight"), reverse=True)))

    @property
    def process(self) -> Process:
        """The process of the alternative that counts most."""
        return self.alternatives[0].process

    @property
    def n_sources(self) -> int:
        """The number of sources that it is a model of: 1 if others are left out."""
        return max(each.n_sources for each in self.alternatives)

    @cached_property
    def whole(self) -> Channel:
        """The alternatives that count all of these sources."""
        some = [each for each in self.alternatives if each.n_sources == self.n_sources]
        return self if len(some) == len(self.alternatives) else Channel.of(some)

    @cached_property
    def leading(self) -> list[tuple[int, float]]:
        """The numbers of the alternatives that count most with the same sources, and how much all of these count.

        Decisions are made by them: transforms of the same sources mostly ask for the same evaluations.
        """
        found: dict[int, tuple[int, float]] = {}
        for i, each in enumerate(self.alternatives):
            first, weight = found.get(each.n_sources, (i, 0.0))
            found[each.n_sources] = first, weight + each.weight
        return list(found.values())

    @property
    def shapes(self) -> list[Shape]:
        """The transforms of its alternatives."""
        return list(dict.fromkeys(each.transform.shape for each in self.alternatives))

    def holds(self, data: Data) -> bool:
        """Return whether observations are as those that it was learned from: as noisy, constant, and in one range."""
        return all(
            each.transform.holds(data.rows(data.s < len(each.noise)))
            and each.process.particles.holds(each.observed(data))
            for each in self.alternatives
        )

    def extend(self, data: Data) -> Channel:
        """Return the same hyperparameters on more observations; ``data`` begin with the old ones."""
        return Channel(
            tuple(replace(each, process=each.process.extend(each.observed(data))) for each in self.alternatives)
        )

    def to_dict(self) -> list[dict[str, Any]]:
        """Return all that was learned, as JSON types."""
        return [
            {
                "weight": each.weight,
                "transform": each.transform.to_dict(),
                **each.process.particles.to_dict(),
            }
            for each in self.alternatives
        ]


@dataclass(frozen=True)
class Lessons:
    """How a channel is learned.

    Attributes
    ----------
    model : Model
        Its hyperparameters are learned, or given.
    measure : Measure
        The distribution of the inputs.
    noise : list of float or "learn"
        Noise variance of each source.
    seed : int
        Seed of the hyperparameter draws.
    names : list of str or None
        What warnings call the sources.
    order : list of int or None
        The sources in order of fidelity; by default those with the fewest observations come first.
    known : OutputRange or None
        What is known of the values.
    memory : dict
        The draws of hyperparameters that were made last, by transform: they are carried along.
    """

    model: Model
    measure: Measure
    noise: Sequence[Noise]
    seed: int = 0
    names: Sequence[str] | None = None
    order: Sequence[int] | None = None
    known: OutputRange | None = None
    memory: dict[Any, Memory] = field(default_factory=dict)

    def learned(self, data: Data, integrals: Integrals = (), chosen: Collection[Shape] | None = None) -> Channel:
        """Return what observations tell: by all transforms for a known range, or by those that are chosen."""
        if self.known is None:
            plain = self._beside_alone((self.alternative(IDENTITY, data, integrals),), data, integrals)
            return Channel.of([found for each in plain for found in _with_exponentials(self, each, data, integrals)])
        if self.model.given:
            return Channel((self.alternative(self._given_transform(self.known), data, integrals),))
        return Channel.of(self._beside_alone(self._weighted(self.known, data, integrals, chosen), data, integrals))

    def _beside_alone(self, found: Sequence[Alternative], data: Data, integrals: Integrals) -> list[Alternative]:
        """Return alternatives for all sources and one for the primary source alone, by the transform that counts most.

        Those that hardly count are left out.
        """
        best = found[0]
        every, (noise, others) = best.process.particles, best.transform.divided(self.noise)
        observed = best.transform.transformed(data, noise, self.measure)
        about = (self.model, self.measure, observed, others, self.seed, self.names)
        share, particles = of_primary_alone(every, *about, integrals, self._memory_of(best.transform))
        if share < SETTINGS.least_share:
            return list(found)
        alone = self._conditioned(share, best.transform, particles, data, noise, integrals).censored
        if 1 - share < SETTINGS.least_share:
            return [alone]
        return [replace(each, weight=(1 - share) * each.weight) for each in found] + [alone]

    def afresh(self) -> Lessons:
        """Return the same, with draws that are made anew."""
        return replace(self, memory={})

    def leaving_out(self, leaves_out: bool | None) -> Lessons:
        """Return the same, but secondary sources that tell nothing are left out, or not; None leaves that as it is."""
        if leaves_out is None:
            return self
        return replace(self, model=replace(self.model, leaves_out=leaves_out))

    def of_a_part(self) -> Lessons:
        """Return how a part of outputs is learned, which has all sources and no transform."""
        return replace(self, model=replace(self.model, leaves_out=False, warped=False))

    def alternative(self, transform: Transform, data: Data, integrals: Integrals = ()) -> Alternative:
        """Return what is learned of values by a transform."""
        noise, others = transform.divided(self.noise)
        if self.model.given:  # it has its own, that of g
            noise = (0.0,) * len(self.noise)
        observed = transform.transformed(data, noise, self.measure)
        about = (self.measure, observed, others, self.seed, self.names, self.order)
        particles = learn(self.model, *about, self._memory_of(transform))
        return self._conditioned(1.0, transform, particles, data, noise, integrals)

    def _memory_of(self, transform: Transform) -> Memory:
        """Return the draws of hyperparameters that go with a transform, or one much like it."""
        return self.memory.setdefault((transform.shape, np.isfinite(transform.range.low)), Memory())

    def remembered(self, content: Sequence[dict[str, Any]], data: Data, integrals: Integrals = ()) -> Channel:
        """Return the channel that was learned from the same observations before, from its ``to_dict()``."""
        found = []
        for each in content:
            transform = Transform.from_dict(self.known, each["transform"])
            noise, others = transform.divided(self.noise)
            observed = transform.transformed(data, noise, self.measure)
            particles = from_dict(self.model, self.measure, observed, others, self.seed, each)
            found.append(self._conditioned(each["weight"], transform, particles, data, noise, integrals).censored)
        return Channel(tuple(found))

    def _conditioned(
        self,
        weight: float,
        transform: Transform,
        particles: Particles,
        data: Data,
        noise: tuple[float, ...],
        integrals: Integrals,
    ) -> Alternative:
        used = noise[: particles.n_sources]
        data = data.rows(data.s < len(used)) if len(data.y) else data
        linear = integrals if transform.affine else ()
        process = Process.of(particles, transform.transformed(data, used, self.measure), linear)
        found = Alternative(weight, transform, process, used, self.measure)
        for _ in range(0 if transform.affine else SETTINGS.linearisations):
            found = _knowing(found, [known for known in integrals if known[0] < particles.n_sources])
        return found

    def _given_transform(self, known: OutputRange) -> Transform:
        """Return the transform of a process with given hyperparameters, which is one of g in the units of f.

        It is f = low + g²/2 with one bound, f = low + (high - low) (1 - cos g)/2 with two.
        """
        if known.log:
            raise ValueError("log=True needs a model whose hyperparameters are learned, such as 'auto'")
        return Transform(known.shapes[0], known, known.high - known.low if known.two_bounds else 1.0, 0.0)

    def _weighted(
        self, known: OutputRange, data: Data, integrals: Integrals, chosen: Collection[Shape] | None
    ) -> tuple[Alternative, ...]:
        """Return the transforms that count, each by its merit, the most first, with all sources."""
        found, fit = [], Quadratic.fitted(self.measure, data.sorted(), len(self.noise)) if known.log else None
        for shape in known.shapes if chosen is None or set(chosen) == {PEAK} else chosen:
            transform = Transform.of(shape, known, data.values.y)
            if shape == PEAK:
                if fit is None:
                    continue
                transform = replace(transform, unit=fit.height, trend=fit.trend)
            with collected_warnings() as messages:
                found.append((self.alternative(transform, data, integrals), messages))
        merits = np.array([_merit(each, fit) for each, _ in found]) if len(found) > 1 else np.ones(1)
        weights = (merits.min() / np.maximum(merits, np.finfo(float).tiny)) ** SETTINGS.power
        weights[weights < SETTINGS.least_share * weights.sum()] = 0.0
        order = [i for i in np.argsort(-weights, kind="stable") if weights[i] > 0]
        for message in found[order[0]][1]:
            warn(message)
        return tuple(replace(found[i][0].censored, weight=float(weights[i] / weights.sum())) for i in order)


def _knowing(alternative: Alternative, integrals: Sequence[tuple[int, float, float]]) -> Alternative:
    """Return an alternative that knows integrals of f = T(g) of some sources, to first order around the mean of g.

    What the first order leaves out is noise. Sums of several sources have one set of weights, the average of theirs.
    """
    if not integrals:
        return alternative
    component, process = alternative.component, alternative.process
    latent, nodes = component.latent.thinned(LATENT.deciding), component.nodes
    found = [
        component.scaled(source).linearised(latent, component.with_factors(nodes, source), source)
        for source, *_ in integrals
    ]
    X, slopes = found[0][0], np.array([b for _, b, _, _ in found])
    common = slopes.mean(axis=0)
    if not (size := float(np.abs(common).sum())) > 0:
        return alternative
    values, variances = np.empty(len(found)), np.empty(len(found))
    for i, ((source, value, error), (_, b, constant, left)) in enumerate(zip(integrals, found, strict=True)):
        r, variance = alternative.transform.known_integral(value, error)
        means, covariances = latent.predict_joint(np.full(len(X), source), X)
        rest = b - common
        values[i] = (r - constant - rest @ (latent.weights @ means)) / size
        variances[i] = (variance + left + latent.weights @ (covariances @ rest @ rest)) / size**2
    models = summed_over(process.posteriors.models, X, common / size, alternative.measure)
    known = Data.of_integrals([source for source, *_ in integrals], values, variances, X.shape[1])
    return replace(alternative, process=process.knowing(models, known))


def _merit(alternative: Alternative, fit: Fit | None) -> float:
    """Return by what transforms are compared, the less the better: the score, times the variance of the integral.

    A log may predict all observations well, and yet allow for so much between them that the integral is anything. Of
    logarithms it is their score: few values of a likelihood say nothing of its peak, and what is sure of the integral
    is then wrong.
    """
    component = alternative.component
    if component.transform.range.log:
        return log_score(component, None if fit is None or component.transform.trend is None else fit.leverages)
    latent = component.latent.thinned(LATENT.deciding)
    nodes = component.with_factors(component.nodes, latent.target)
    means, variances = component.scaled(latent.target).integral(latent, nodes, latent.target)
    mean = latent.weights @ means
    variance = latent.weights @ (variances + (means - mean) ** 2)
    unknown = float(np.sqrt(variance) / np.maximum(mean, np.finfo(float).tiny))
    return max(unknown, SETTINGS.unknown) ** 2 * score(component)


def score(component: Component, sources: Sequence[int] | None = None) -> float:
    """Return the continuous ranked probability score of observations, of all sources or some: the less the better."""

    def outcome(source: int, g: Array, mean: Array) -> Array:
        return component.scaled(source).outcome(g, mean)

    return left_out_score(component.latent.thinned(LATENT.deciding).leave_one_out(), outcome, sources)


def log_score(component: Component, leverages: Array | None = None) -> float:
    """Return the continuous ranked probability score of logarithms, those far below the largest ones compressed.

    Predictions by a quadratic that was fitted to all values are corrected by the ``leverages`` of these.
    """
    left = component.latent.thinned(LATENT.deciding).leave_one_out()
    offsets = component.transform.offsets(component.measure, left.s, left.X)
    inflated = np.ones(len(left.s))
    if leverages is not None and len(leverages) == len(left.s):
        inflated = 1 / (1 - leverages)
    total = 0.0
    for source in np.unique(left.s).tolist():
        of, scaled = left.s == source, component.scaled(source)
        g, _, weights = outcomes(left.means[:, of], left.variances[:, of])
        truth = component.transform.log_back(scaled.level + scaled.spread * left.y[of])
        error = (component.transform.log_back(scaled.level + scaled.spread * g) - truth[:, None]) * inflated[of, None]
        truth = truth + offsets[of]
        top = truth.max()
        below = np.arcsinh((truth - top) / SETTINGS.logarithms)
        total += float(crps(np.arcsinh((truth[:, None] + error - top) / SETTINGS.logarithms), weights, below).sum())
    return total


def left_out_score(
    left: LeftOut, values: Callable[[int, Array, Array], Array], sources: Sequence[int] | None = None
) -> float:
    """Return the score of values of g in standard units: ``values`` makes them of a source, g and its mean.

    The score of each source is in units of the spread of its values.
    """
    total = 0.0
    for source in (int(source) for source in (np.unique(left.s) if sources is None else sources)):
        of = left.s == source
        g, mean, weights = outcomes(left.means[:, of], left.variances[:, of])
        truth = values(source, left.y[of], left.y[of])
        unit = 2.0 ** np.frexp(np.abs(truth).max())[1]  # squares of huge numbers are not finite
        spread = float(unit * np.std(truth / unit)) or 1.0
        total += float(crps(values(source, g, mean), weights, truth).sum()) / spread
    return total


def crps(r: Array, weights: Array, truth: Array) -> Array:
    """Return E|r - t| - E|r - r'|/2 of outcomes r (n, m) with weights (m,) for each truth t (n,), shape (n,)."""
    order = np.argsort(r, axis=1)
    values, w = np.take_along_axis(r, order, 1), weights[order]
    below = np.cumsum(w, axis=1)
    spread = np.sum(below[:, :-1] * (1 - below[:, :-1]) * np.diff(values, axis=1), axis=1)  # E|r - r'|/2
    return np.asarray(np.sum(w * np.abs(values - truth[:, None]), axis=1) - spread)


def _with_exponentials(
    lessons: Lessons, plain: Alternative, data: Data, integrals: Integrals
) -> tuple[Alternative, ...]:
    """Return what is learned of values as they are, and before it of exponentials, if these predict values better."""
    if not _may_be_skewed(lessons.model, plain, integrals):
        return (plain,)
    used = plain.process.data
    candidates, varying = _candidates(used.values.y), _varying(used)
    deciding = Latent.of(plain.process).thinned(LATENT.deciding).parts[0]
    as_they_are, *scores = _screened(plain, deciding, [IDENTITY, *candidates], varying)
    best = int(np.argmin(scores))
    if not scores[best] < SETTINGS.promising * as_they_are:
        return (plain,)
    few = replace(lessons, noise=lessons.noise[: len(plain.noise)], names=None, order=plain.process.particles.order)
    with collected_warnings():  # those that matter were issued for the values as they are
        tried = [few.alternative(candidates[best], used)]
        again_by = Latent.of(tried[0].process).thinned(LATENT.deciding).parts[0]
        again = int(np.argmin(_screened(plain, again_by, candidates, varying)))
        if again != best:
            tried.append(few.alternative(candidates[again], used))
    found, its_score = min(((one, score(one.component, varying)) for one in tried), key=itemgetter(1))
    other = left_out_score(left_out(deciding), partial(_values, IDENTITY, plain.process.particles.units), varying)
    if not its_score < other:
        return (plain,)
    share = 1 / (1 + (its_score / other) ** SETTINGS.power)
    if not found.component.integral.std < SETTINGS.widest * plain.component.integral.std:
        return (plain,)
    if 1 - share <= SETTINGS.least_share:
        return (replace(found, weight=plain.weight),)
    return replace(found, weight=share * plain.weight), replace(plain, weight=(1 - share) * plain.weight)


def _may_be_skewed(model: Model, plain: Alternative, integrals: Integrals) -> bool:
    """Return whether exponentials are considered: for enough values without noise, of which nothing else is known."""
    particles, data = plain.process.particles, plain.process.data.values
    if not model.warped or any(s < particles.n_sources for s, *_ in integrals):
        return False
    learned = particles.members[0].draws.log_posterior.learned
    if any(particles.noise) or data.noise_var.any() or learned.any():
        return False
    enough = len(data.y) >= SETTINGS.fewest and np.count_nonzero(data.s == 0) >= SETTINGS.fewest_primary
    return bool(enough and 0 < np.ptp(data.y) < np.inf)


def _varying(data: Data) -> list[int]:
    """Return the sources whose values are not all the same: the spread of these is what a score is in units of."""
    return [source for source in np.unique(data.s).tolist() if not is_constant(data.of_source(source).values.y)]


def _candidates(y: Array) -> list[Transform]:
    """Return transforms to exponentials for values y, in both directions."""
    low, high, span = float(y.min()), float(y.max()), float(np.ptp(y))
    ranges = [OutputRange(low - beyond * span, np.inf, assumed=True) for beyond in SETTINGS.beyond]
    ranges += [OutputRange(-np.inf, high + beyond * span, assumed=True) for beyond in SETTINGS.beyond]
    return [Transform.of(EXPONENTIAL, known, y) for known in ranges]


def _screened(
    plain: Alternative, by: PosteriorBatch, transforms: Sequence[Transform], sources: Sequence[int]
) -> list[float]:
    """Return the scores of some sources after each transform, all with the hyperparameters of given posteriors."""
    data, n = plain.process.data, len(plain.noise)
    prior = plain.process.particles.members[0].draws.log_posterior.prior
    if not data.has_gradients:  # which follow their values until these are transformed: else few of many are enough
        data = data.sorted().thinned(LEARNING.most_observations)
    scores = []
    for transform in transforms:
        observed = transform.transformed(data, (0.0,) * n, plain.measure)
        observed = observed.sorted().thinned(LEARNING.most_observations)
        units = StandardUnits.of(observed, n, prior.one_unit, prior.alike, plain.measure)
        posteriors = PosteriorBatch.condition(by.models, units.standardise(observed), LEARNING_JITTER)
        scores.append(left_out_score(left_out(posteriors), partial(_values, transform, units), sources))
    return scores


def _values(transform: Transform, units: StandardUnits, source: int, g: Array, mean: Array) -> Array:
    """Return what g of a source in standard units is before the transform, up to a factor and a constant."""
    return transform.back(units.in_user_units(source, g))
