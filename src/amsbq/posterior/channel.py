"""`Channel`: the posterior of a function of the inputs, with one transform or with weighted alternatives.

With a known range, transforms are compared by how well each value is predicted from all others, in the user's units: by
the continuous ranked probability score (Gneiting and Raftery 2007), which stays finite for values at a bound, unlike a
density.

Without one, values that are bunched at one end may be modelled as f = low + exp(g), or high - exp(g), with an end a
little beyond all values: its distance is chosen with the direction, so that shifting and scaling all values changes
nothing. Each choice is screened with the hyperparameters learned for f itself; the best one is learned, and if it
predicts each value from all others better, both alternatives are kept.
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
    """How transforms are chosen; for exponentials, set on development problems of the arena with fixed designs."""

    #: maximum standard deviation of the integral, relative to its distance from the bound, for which transforms for a
    #: known range are compared by their scores alone
    unknown: float = 0.5
    linearisations: int = 2  #: linearisations of a known integral that is not linear in the process
    beyond: tuple[float, ...] = (0.05, 0.3, 1.5)  #: distances of an end from the values, in units of their range
    fewest: int = 8  #: minimum number of values of all sources for exponentials
    #: minimum number of primary values for exponentials: with two, intervals contained the true value less often than
    #: without exponentials
    fewest_primary: int = 3
    #: score of an exponential relative to the identity, with the same hyperparameters, below which it is learned
    promising: float = 0.9
    #: distance from the largest logarithm beyond which others are compared more and more loosely
    logarithms: float = 5.0
    #: exponent of scores in weights, once hyperparameters are learned: weights are inverse to that power
    power: float = 3.0
    least_share: float = 0.02  #: weight below which an alternative is dropped
    #: largest standard deviation of the integral with exponentials, relative to that with the identity: exponentials
    #: may allow for anything far from the values
    widest: float = 2.0


SETTINGS = ChoiceSettings()
EXPONENTIAL = Shape("log", 20.0)


@dataclass(frozen=True)
class Alternative:
    """A transform T, its process g, and the weight of f = T(g).

    Attributes
    ----------
    weight : float
    transform : Transform
    process : Process
    noise : tuple of float
        The variance, for each source, of the noise that is added to f rather than to g.
    measure : Measure
    """

    weight: float
    transform: Transform
    process: Process
    noise: tuple[float, ...]
    measure: Measure

    @property
    def n_sources(self) -> int:
        """The number of modelled sources."""
        return self.process.particles.n_sources

    @cached_property
    def component(self) -> Component:
        """The component of an output that has its own channel."""
        return Component(self.weight, self.transform, Latent.of(self.process), self.measure)

    @property
    def censored(self) -> Alternative:
        """The alternative with values at the ends of a cut-off transform taken as censored."""
        return replace(self, process=censored(self.process, self.transform.cuts))

    def observed(self, data: Data) -> Data:
        """Return the observations of g that correspond to those of f, for the modelled sources."""
        used = data.rows(data.s < len(self.noise)) if len(data.y) else data
        return self.transform.transformed(used, self.noise, self.measure)


@dataclass(frozen=True)
class Channel:
    """The posterior of one function of the inputs: weighted alternatives, the largest weight first."""

    alternatives: tuple[Alternative, ...]

    @classmethod
    def of(cls, alternatives: Sequence[Alternative]) -> Channel:
        """Return a channel of the given alternatives, sorted by weight; the weights are normalised to sum to 1."""
        total = sum(each.weight for each in alternatives)
        found = [replace(each, weight=each.weight / total) for each in alternatives]
        return cls(tuple(sorted(found, key=attrgetter("weight"), reverse=True)))

    @property
    def process(self) -> Process:
        """The process of the alternative with the largest weight."""
        return self.alternatives[0].process

    @property
    def n_sources(self) -> int:
        """The number of modelled sources: 1 if all alternatives leave the others out."""
        return max(each.n_sources for each in self.alternatives)

    @cached_property
    def whole(self) -> Channel:
        """The channel of the alternatives that model all these sources."""
        some = [each for each in self.alternatives if each.n_sources == self.n_sources]
        return self if len(some) == len(self.alternatives) else Channel.of(some)

    @cached_property
    def leading(self) -> list[tuple[int, float]]:
        """For each set of sources, the first alternative that has it, and the weight of all that have it.

        Decisions use these: transforms of the same sources usually call for the same evaluations.
        """
        found: dict[int, tuple[int, float]] = {}
        for i, each in enumerate(self.alternatives):
            first, weight = found.get(each.n_sources, (i, 0.0))
            found[each.n_sources] = first, weight + each.weight
        return list(found.values())

    @property
    def shapes(self) -> list[Shape]:
        """The shapes of its transforms."""
        return list(dict.fromkeys(each.transform.shape for each in self.alternatives))

    def holds(self, data: Data) -> bool:
        """Return whether observations still have the noise, the constancy and the range with which it was learned."""
        return all(
            each.transform.holds(data.rows(data.s < len(each.noise)))
            and each.process.particles.holds(each.observed(data))
            for each in self.alternatives
        )

    def extend(self, data: Data) -> Channel:
        """Return the channel given more observations, with the same hyperparameters; ``data`` begin with the old."""
        return Channel(
            tuple(replace(each, process=each.process.extend(each.observed(data))) for each in self.alternatives)
        )

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the alternatives in JSON-serialisable form."""
        return [
            {
                "weight": each.weight,
                "transform": each.transform.to_dict(),
                **each.process.particles.to_dict(),
            }
            for each in self.alternatives
        ]


@dataclass(frozen=True)
class ChannelFitter:
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
        Names of the sources in warnings.
    order : list of int or None
        The sources in order of fidelity; by default those with the fewest observations come first.
    known : OutputRange or None
        The known range of the values.
    memory : dict
        The latest hyperparameter draws by transform, which are carried along.
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
        """Return the channel given observations, with the ``chosen`` transforms; by default, all for a known range."""
        if self.known is None:
            plain = self._with_primary_alone((self.alternative(IDENTITY, data, integrals),), data, integrals)
            return Channel.of([found for each in plain for found in _with_exponentials(self, each, data, integrals)])
        if self.model.given:
            return Channel((self.alternative(self._given_transform(self.known), data, integrals),))
        found = self._weighted(self.known, data, integrals, chosen)
        return Channel.of(self._with_primary_alone(found, data, integrals))

    def _with_primary_alone(self, found: Sequence[Alternative], data: Data, integrals: Integrals) -> list[Alternative]:
        """Return alternatives with all sources, and one with the primary source alone, by the leading transform.

        Those of negligible weight are dropped.
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

    def fresh(self) -> ChannelFitter:
        """Return a fitter without memory: it makes new draws."""
        return replace(self, memory={})

    def leaving_out(self, leaves_out: bool | None) -> ChannelFitter:
        """Return a fitter that may leave uninformative secondary sources out, or not; None changes nothing."""
        if leaves_out is None:
            return self
        return replace(self, model=replace(self.model, leaves_out=leaves_out))

    def for_principal_component(self) -> ChannelFitter:
        """Return a fitter for a principal component: it uses all sources and no transform."""
        return replace(self, model=replace(self.model, leaves_out=False, warped=False))

    def alternative(self, transform: Transform, data: Data, integrals: Integrals = ()) -> Alternative:
        """Return the alternative for a transform, learned from values."""
        noise, others = transform.divided(self.noise)
        if self.model.given:  # the process has its own noise, that of g
            noise = (0.0,) * len(self.noise)
        observed = transform.transformed(data, noise, self.measure)
        about = (self.measure, observed, others, self.seed, self.names, self.order)
        particles = learn(self.model, *about, self._memory_of(transform))
        return self._conditioned(1.0, transform, particles, data, noise, integrals)

    def _memory_of(self, transform: Transform) -> Memory:
        """Return the memory for a transform; transforms of one shape and direction share it."""
        return self.memory.setdefault((transform.shape, np.isfinite(transform.range.low)), Memory())

    def restored(self, content: Sequence[dict[str, Any]], data: Data, integrals: Integrals = ()) -> Channel:
        """Return the channel that was learned from the same observations, from the content of its ``to_dict()``."""
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
            found = _with_known_integrals(found, [known for known in integrals if known[0] < particles.n_sources])
        return found

    def _given_transform(self, known: OutputRange) -> Transform:
        """Return the transform for a process with fixed hyperparameters, whose g is in the units of f.

        It is f = low + g²/2 with one bound, f = low + (high - low) (1 - cos g)/2 with two.
        """
        if known.log:
            raise ValueError("log=True needs a model whose hyperparameters are learned, such as 'auto'")
        return Transform(known.shapes[0], known, known.high - known.low if known.two_bounds else 1.0, 0.0)

    def _weighted(
        self, known: OutputRange, data: Data, integrals: Integrals, chosen: Collection[Shape] | None
    ) -> tuple[Alternative, ...]:
        """Return the alternatives with all sources whose transforms count, the largest weight first."""
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


def _with_known_integrals(alternative: Alternative, integrals: Sequence[tuple[int, float, float]]) -> Alternative:
    """Return an alternative conditioned on the known integrals of f = T(g), to first order around the mean of g.

    The remainder counts as noise. The sums for several sources have common weights, the average of those for each.
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
    return replace(alternative, process=process.with_known_sums(models, known))


def _merit(alternative: Alternative, fit: Fit | None) -> float:
    """Return the number by which transforms are compared, smaller is better: score times variance of the integral.

    A log may predict all observations well, and yet allow for so much between them that the integral is arbitrary. For
    logarithms, the number is their score alone: a few values of a likelihood are not informative about its peak, and a
    narrow integral is then wrong.
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
    """Return the continuous ranked probability score of observations of all or some sources; smaller is better."""

    def outcome(source: int, g: Array, mean: Array) -> Array:
        return component.scaled(source).outcome(g, mean)

    return left_out_score(component.latent.thinned(LATENT.deciding).leave_one_out(), outcome, sources)


def log_score(component: Component, leverages: Array | None = None) -> float:
    """Return the continuous ranked probability score of logarithms, compressed far below the largest one.

    Predictions by a quadratic that was fitted to all values are corrected by its ``leverages``.
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
    """Return the score of predictions of g in standard units.

    ``values`` maps a source, g and its mean to the values compared. The score of each source is in units of the spread
    of its values.
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
    """Return E|r - t| - E|r - r'|/2 (CRPS) for outcomes r (n, m), weights (m,) and truths t (n,), shape (n,)."""
    order = np.argsort(r, axis=1)
    values, w = np.take_along_axis(r, order, 1), weights[order]
    below = np.cumsum(w, axis=1)
    spread = np.sum(below[:, :-1] * (1 - below[:, :-1]) * np.diff(values, axis=1), axis=1)  # E|r - r'|/2
    return np.asarray(np.sum(w * np.abs(values - truth[:, None]), axis=1) - spread)


def _with_exponentials(
    fitter: ChannelFitter, plain: Alternative, data: Data, integrals: Integrals
) -> tuple[Alternative, ...]:
    """Return the identity's alternative, preceded or replaced by an exponential if that predicts values better."""
    if not _may_be_skewed(fitter.model, plain, integrals):
        return (plain,)
    used = plain.process.data
    candidates, varying = _candidates(used.values.y), _varying(used)
    deciding = Latent.of(plain.process).thinned(LATENT.deciding).parts[0]
    as_they_are, *scores = _screened(plain, deciding, [IDENTITY, *candidates], varying)
    best = int(np.argmin(scores))
    if not scores[best] < SETTINGS.promising * as_they_are:
        return (plain,)
    few = replace(fitter, noise=fitter.noise[: len(plain.noise)], names=None, order=plain.process.particles.order)
    with collected_warnings():  # those that matter were issued for the identity
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
    """Return whether exponentials are tried: for enough noise-free values, without known integrals."""
    particles, data = plain.process.particles, plain.process.data.values
    if not model.warped or any(s < particles.n_sources for s, *_ in integrals):
        return False
    learned = particles.members[0].draws.log_posterior.learned
    if any(particles.noise) or data.noise_var.any() or learned.any():
        return False
    enough = len(data.y) >= SETTINGS.fewest and np.count_nonzero(data.s == 0) >= SETTINGS.fewest_primary
    return bool(enough and 0 < np.ptp(data.y) < np.inf)


def _varying(data: Data) -> list[int]:
    """Return the sources whose values are not all equal: scores are in units of their spread."""
    return [source for source in np.unique(data.s).tolist() if not is_constant(data.of_source(source).values.y)]


def _candidates(y: Array) -> list[Transform]:
    """Return exponential transforms for values y, in both directions."""
    low, high, span = float(y.min()), float(y.max()), float(np.ptp(y))
    ranges = [OutputRange(low - beyond * span, np.inf, assumed=True) for beyond in SETTINGS.beyond]
    ranges += [OutputRange(-np.inf, high + beyond * span, assumed=True) for beyond in SETTINGS.beyond]
    return [Transform.of(EXPONENTIAL, known, y) for known in ranges]


def _screened(
    plain: Alternative, by: PosteriorBatch, transforms: Sequence[Transform], sources: Sequence[int]
) -> list[float]:
    """Return the score of each transform over the given sources, with the hyperparameters of the given posteriors."""
    data, n = plain.process.data, len(plain.noise)
    prior = plain.process.particles.members[0].draws.log_posterior.prior
    if not data.has_gradients:  # derivatives must stay next to their values until transformed
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
    """Return the values before the transform from g in standard units, up to a factor and a constant."""
    return transform.back(units.in_user_units(source, g))
