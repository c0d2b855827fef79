"""`Process`: particles conditioned on observations; and `Latent`: the latent process of an output, a sum of processes.

Notation:  R processes h_r in standard units, J members, each with one particle of every process
           g_l = level_l + spread_l (Σ_r a_rl h_rl + e)     of source l; e is white noise of a known variance, or zero
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.special import gammaincinv, ndtri, stdtrit

from ..common.validation import Array, IntArray
from ..gp.coregionalisation import ModelBatch
from ..gp.data import Data, Sites
from ..gp.posterior_batch import PosteriorBatch, solve_lower_batch
from ..inference.averaging import SETTINGS as AVERAGING
from ..inference.particles import Integrals, Particles, thinned
from ..inference.preparation import too_few
from ..measures.base import Measure
from ..measures.composed import Transformed
from ..measures.empirical import Empirical
from .estimate import Estimate

T = TypeVar("T")


@dataclass(frozen=True)
class LatentSettings:
    """How many members answers are averaged over, and how far error bars go beyond them."""

    deciding: int = 8  #: hyperparameter draws for decisions
    #: hyperparameter draws for quantities that are not linear in the process: the spread between draws is known to
    #: within a fifth
    few: int = 16
    #: factor on the width of the distribution of a quantity that is not linear, in addition to that of the mean: such
    #: quantities depend on local errors, which average out in the mean. Chosen by benchmarks/quantities.py on
    #: development problems
    widened: float = 1.5
    #: points that represent a distribution without closed-form kernel integrals: their average is accurate to 1e-3 of a
    #: standard deviation of the output, or better
    stand_in_points: int = 8192
    mixed: int = 64  #: members of a sum of processes: combinations of their hyperparameter draws


SETTINGS = LatentSettings()


@dataclass(frozen=True)
class Process:
    """Particles conditioned on observations of a latent process.

    Attributes
    ----------
    particles : Particles
    data : Data
        The observations in the units of the process, in the order of arrival.
    rows, weights : (K,) array
        The particles that are conditioned, and their weights; ``posteriors`` are the conditioned models.
    """

    particles: Particles
    data: Data
    rows: IntArray
    weights: Array
    posteriors: PosteriorBatch

    @classmethod
    def of(cls, particles: Particles, data: Data, integrals: Integrals = ()) -> Process:
        """Return particles conditioned on observations and known integrals."""
        return cls(particles, data, *particles.condition(data, integrals))

    def with_known_sums(self, sums: ModelBatch, known: Data) -> Process:
        """Return the process conditioned also on ``known`` sums over points, the integrals of models ``sums``."""
        data = self.posteriors.data.rows(~self.posteriors.data.of_integral).followed_by(known)
        return replace(self, posteriors=PosteriorBatch.condition(sums, data, self.posteriors.jitter))

    def extend(self, data: Data) -> Process:
        """Return the process with the same particles, given more observations; ``data`` begin with the old ones.

        Within each structure, particles are reweighted by the density of the new observations.
        """
        posteriors, particles = self.posteriors, self.particles
        for new in data.one_by_one(len(self.data.values.y)):
            if len((used := particles.usable(new)).y):
                posteriors = posteriors.extend(particles.units.standardise(used))
        gained = posteriors.log_evidence() - self.posteriors.log_evidence()
        weights = reweighted(self.weights, gained, particles.structures[self.rows])
        return replace(self, data=data, posteriors=posteriors, weights=weights)

    @property
    def least_std(self) -> float:
        """Lower bound on the standard deviation of an integral, in standard units.

        It is the resolution of the measure, or the spread of the values if these are too few for the most probable θ.
        """
        least = self.posteriors.models.measure.resolution
        if not self.particles.members or self.particles.marginalised or not too_few(self.posteriors.data):
            return least
        return max(1.0, _spread_of_few(self.posteriors.data.of_source(0).values.y))


def reweighted(weights: Array, gained: Array, groups: IntArray) -> Array:
    """Return weights (K,) times exp(gained) (K,), rescaled so that the total of each group is unchanged.

    >>> reweighted(np.array([0.3, 0.3, 0.4]), np.log([1.0, 2.0, 9.0]), np.array([0, 0, 1])).round(6).tolist()
    [0.2, 0.4, 0.4]
    """
    out = weights.copy()
    with np.errstate(divide="ignore"):
        logs = np.log(weights) + gained  # the largest density may be that of a negligible weight
    for group in np.unique(groups):
        of = groups == group
        if np.isfinite(gained[of]).all() and weights[of].any():
            found = np.exp(logs[of] - logs[of].max())
            out[of] = found * (weights[of].sum() / found.sum())
    return out


def _spread_of_few(values: Array) -> float:
    """Return the standard deviation of a Gaussian whose 95 % interval is that of Student's t for the values."""
    if len(values) < 2:
        return 0.0
    return float(np.std(values, ddof=1) * stdtrit(len(values) - 1, 0.975) / ndtri(0.975))


class Scale(NamedTuple):
    """A scale on which draws of a quantity are spread symmetrically: the map to it, its inverse, and its ends."""

    to: Callable[[Array], Array]
    back: Callable[[Array], Array]
    ends: tuple[float, float]


LINEAR = Scale(lambda q: q, lambda t: t, (-np.inf, np.inf))
#: of variances and other sums of squares
ROOT = Scale(lambda q: np.sqrt(np.maximum(q, 0.0)), np.square, (0.0, np.inf))
#: of probabilities and other shares: the transformation that gives counts an equal variance
ARCSINE = Scale(lambda q: np.arcsin(np.sqrt(np.clip(q, 0.0, 1.0))), lambda t: np.sin(t) ** 2, (0.0, np.pi / 2))


class LeftOut(NamedTuple):
    """Values y of sources s at X, and their predictions from all other observations by K members, in standard units."""

    s: IntArray
    X: Array
    y: Array  # (n,)
    means: Array  # (K, n)
    variances: Array  # (K, n), with noise


def left_out(posteriors: PosteriorBatch) -> LeftOut:
    """Return all values on which posteriors are conditioned, each with its prediction from all other observations."""
    data = posteriors.data
    of = ~(data.sites.differentiated | data.of_integral)
    means, variances = posteriors.leave_one_out()
    return LeftOut(data.s[of], data.X[of], data.y[of], means[:, of], variances[:, of])


@dataclass(frozen=True)
class Members:
    """J weighted members, each with one particle of each of R processes; results are cached for several outputs.

    Attributes
    ----------
    parts : tuple of PosteriorBatch
        The posteriors of each process.
    picks : (J, R) array
        The particle of each process that a member has.
    weights, groups : (J,) array
        The weight of each member, and the number of its structure.
    """

    parts: tuple[PosteriorBatch, ...]
    picks: IntArray
    weights: Array
    groups: IntArray
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, processes: Sequence[Process]) -> Members:
        """Return the particles of one process, or combinations of the particles of several independent ones."""
        parts = tuple(process.posteriors for process in processes)
        if len(processes) == 1:
            (process,) = processes
            K = len(process.rows)
            return cls(parts, np.arange(K)[:, None], process.weights, process.particles.structures[process.rows])
        J, rng = SETTINGS.mixed, np.random.default_rng(0)
        picks = np.empty((J, len(processes)), dtype=np.intp)
        for r, process in enumerate(processes):
            order = np.argsort(process.posteriors.integral()[1], kind="stable")  # stratified by width
            at = (rng.permutation(J) + 0.5) / J
            picks[:, r] = order[np.minimum(np.searchsorted(np.cumsum(process.weights[order]), at), len(order) - 1)]
        return cls(parts, picks, np.full(J, 1 / J), np.zeros(J, dtype=np.intp))

    def thinned(self, n: int) -> Members:
        """Return at most n of the members, divided among structures by weight."""
        if n >= len(self.weights):
            return self
        if n not in self._cache:
            self._cache[n] = self.selected(*thinned(self.weights, self.groups, n))
        found: Members = self._cache[n]
        return found

    def selected(self, rows: IntArray, weights: Array) -> Members:
        """Return some of the members, with other weights."""
        used = [np.unique(column, return_inverse=True) for column in self.picks[rows].T]
        return Members(
            tuple(part.select(models) for part, (models, _) in zip(self.parts, used, strict=True)),
            np.stack([which for _, which in used], axis=1),
            weights,
            self.groups[rows],
        )

    def without_integrals(self) -> Members:
        """Return the members without known integrals, which lack the locations that products of kernels need."""
        if not any(part.data.of_integral.any() for part in self.parts):
            return self
        rows = [part.data.rows(~part.data.of_integral) for part in self.parts]
        pairs = zip(self.parts, rows, strict=True)
        parts = tuple(PosteriorBatch.condition(part.models, data, part.jitter) for part, data in pairs)
        return Members(parts, self.picks, self.weights, self.groups)

    def cached(self, name: str, make: Callable[..., T], *arguments: Any) -> T:
        """Return ``make(*arguments)``; the latest result of each name is cached for other outputs."""
        key = [each.tobytes() if isinstance(each, np.ndarray) else each for each in arguments]
        if name not in self._cache or self._cache[name][0] != key:
            self._cache[name] = key, make(*arguments)
        found: T = self._cache[name][1]
        return found

    def predict(self, source: int, X: Array) -> list[tuple[Array, Array]]:
        """Return the means and variances of a source at each X_i, for each process by its posteriors: (K_r, n) each."""
        return self.cached("predict", lambda source, X: [part.predict(source, X) for part in self.parts], source, X)

    def predict_joint(self, sources: IntArray, X: Array) -> list[tuple[Array, Array]]:
        """Return the means and covariances of sources (n,) at X, for each process by its posteriors."""
        return self.cached("joint", lambda s, X: [part.predict_joint(s, X) for part in self.parts], sources, X)


@dataclass(frozen=True)
class Latent:
    """The latent process of an output: J weighted members, each a sum of R conditioned processes.

    Attributes
    ----------
    members : Members
    levels, spreads : (L,) array
        Units of the sources.
    ratios : (R, L) array
        The factor a_rl of each process in each source, in these units.
    rest, rest_error : float
        Variance of the residual e at a point and in the integral, in these units.
    least_std : float
        Lower bound on the standard deviation of an integral, in these units.
    tails, widened, effective : float
        Degrees of freedom of the distributions of quantities, a factor on their widths, and the effective number of
        members.
    """

    members: Members
    levels: Array
    spreads: Array
    ratios: Array
    rest: float = 0.0
    rest_error: float = 0.0
    least_std: float = 0.0
    tails: float = np.inf
    widened: float = 1.0
    effective: float = 1.0

    @classmethod
    def of(cls, process: Process) -> Latent:
        """Return the latent process that is a single process."""
        particles = process.particles
        return cls(
            Members.of([process]),
            particles.units.levels,
            particles.units.spreads,
            np.ones((1, particles.n_sources)),
            least_std=process.least_std,
            tails=particles.tails,
            widened=particles.widened,
            effective=particles.effective,
        )

    @classmethod
    def sum_of(
        cls,
        members: Members,
        processes: Sequence[Process],
        loadings: Array,
        centre: float,
        rest: float,
        error: float,
    ) -> Latent:
        """Return centre + Σ_r loading_r (process r) + e; e has variance ``rest``, its integral ``error``."""
        units = [process.particles.units for process in processes]
        levels = centre + sum(load * unit.levels for load, unit in zip(loadings, units, strict=True))
        sizes = np.array([load * unit.spreads for load, unit in zip(loadings, units, strict=True)])
        spreads = np.sqrt(np.maximum((sizes**2).sum(axis=0), np.finfo(float).tiny))
        particles, unit = [process.particles for process in processes], spreads[0] ** 2
        return cls(
            members,
            np.asarray(levels),
            spreads,
            sizes / spreads,
            rest / unit,
            error / unit,
            tails=min(each.tails for each in particles),
            widened=max(each.widened for each in particles),
            effective=min(each.effective for each in particles),
        )

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def parts(self) -> tuple[PosteriorBatch, ...]:
        """The posteriors of each process."""
        return self.members.parts

    @property
    def picks(self) -> IntArray:
        """The particle of each process that a member has, shape (J, R)."""
        return self.members.picks

    @property
    def weights(self) -> Array:
        """The weight of each member, shape (J,)."""
        return self.members.weights

    @property
    def groups(self) -> IntArray:
        """The number of the structure of each member, shape (J,)."""
        return self.members.groups

    @property
    def target(self) -> int:
        """The source whose integral is the target."""
        return self.parts[0].models.target

    @property
    def n_sources(self) -> int:
        """The number of modelled sources."""
        return len(self.levels)

    @property
    def n_evaluated(self) -> int:
        """The number of modelled sources that can be evaluated: all but a limit, which is the last one."""
        return self.n_sources - (self.target > 0)

    def thinned(self, n: int) -> Latent:
        """Return the process with at most n members, divided among structures by weight."""
        return replace(self, members=self.members.thinned(n))

    def only(self, member: int) -> Latent:
        """Return the process with a single member."""
        return replace(self, members=self.members.selected(np.array([member]), np.ones(1)))

    def predict(self, source: int, X: Array) -> tuple[Array, Array]:
        """Return the means and variances of a source at each X_i by each member, in standard units: (J, n) each."""
        return self.summed(self.members.predict(source, X), source, self.rest)

    def predict_joint(self, sources: IntArray, X: Array) -> tuple[Array, Array]:
        """Return the means (J, n) and covariances (J, n, n) of sources (n,) at X (n, D), in standard units."""
        found = self.members.predict_joint(sources, X)
        pairs = list(zip(self.ratios[:, sources], found, self.picks.T, strict=True))
        means = sum(a * mean[rows] for a, (mean, _), rows in pairs)
        covariances = sum(a[:, None] * a * covariance[rows] for a, (_, covariance), rows in pairs)
        return np.asarray(means), np.asarray(covariances + self.rest * np.eye(len(X)))

    def integral(self, source: int | None = None) -> tuple[Array, Array]:
        """Return means and standard deviations (J,) of a source's integral, by default the target's; standard units."""
        source = self.target if source is None else source
        found = [(integral_means(part, source), part.integral(source)[1]) for part in self.parts]
        means, variances = self.summed(found, source, self.rest_error)
        return means, np.maximum(np.sqrt(variances), self.least_std)

    def main_effect(self, source: int, inputs: Sequence[int], t: Array) -> tuple[Array, Array]:
        """Return the means and variances of ∫ g π(dx_others) at values t (m, k) of k inputs: shape (J, m) each."""
        return self.summed([_effect(part, source, inputs, t) for part in self.parts], source, self.rest_error)

    def noise(self, source: int) -> Array:
        """Return the noise variance of a source by each member, in standard units: shape (J, 1)."""
        found = [(part.models.mean[:, [source]], part.models.noise[:, [source]]) for part in self.parts]
        return self.summed(found, source, 0.0)[1]

    def leave_one_out(self) -> LeftOut:
        """Return all values of all sources, each with its prediction from all other observations by each member."""
        found = [left_out(part) for part in self.parts]
        orders = [np.lexsort((one.s, *one.X.T)) for one in found]
        s, X = found[0].s[orders[0]], found[0].X[orders[0]]
        each = list(zip(self.ratios[:, s], found, orders, self.picks.T, strict=True))
        y = sum(a * one.y[order] for a, one, order, _ in each)
        means = sum(a * one.means[rows][:, order] for a, one, order, rows in each)
        variances = sum(a**2 * one.variances[rows][:, order] for a, one, order, rows in each)
        return LeftOut(s, X, np.asarray(y), np.asarray(means), np.asarray(variances + self.rest))

    def under(self, measure: Measure, other: Measure) -> tuple[Array, Array]:
        """Return means and standard deviations of the target's integral under another measure, like `integral`."""
        found = [_under(part, measure, other) for part in self.parts]
        means, variances = self.summed(found, self.target, self.rest_error)
        return means, np.sqrt(variances)

    def summed(self, moments: Sequence[tuple[Array, Array]], source: int, rest: float) -> tuple[Array, Array]:
        """Return means and variances (J, ...) of sums of processes, from those of each (K_r, ...) and the rest."""
        pairs = list(zip(self.ratios[:, source].tolist(), moments, self.picks.T, strict=True))
        means = sum(a * mean[rows] for a, (mean, _), rows in pairs)
        return np.asarray(means), np.asarray(sum(a * a * variance[rows] for a, (_, variance), rows in pairs) + rest)

    def of_values(self, means: Array, stds: Array, within: tuple[float, float] = (-np.inf, np.inf)) -> Estimate:
        """Return the estimate of a quantity with means and standard deviations (J,) by each member.

        It is a mixture of Student's t distributions, a little wider than the members' because all of them may be wrong,
        and stays within the range ``within``.
        """
        mean = self.weights @ means
        centres = np.clip(mean + self.widened * (means - mean), *within)
        found = Estimate(centres, self.widened * stds, self.weights, self.tails, self.effective, within)
        return without_far_draws(found) if np.isfinite(self.tails) else found

    def of_draws(self, draws: Array, scale: Scale = LINEAR) -> Estimate:
        """Return the estimate of a quantity from draws (J, m), those of each member equally likely.

        Draws are widened and get heavy tails: each deviation from the average of its member is multiplied by √(ν/χ²_ν),
        which turns a Gaussian one into a Student's t. This is done on a scale on which deviations are nearly symmetric,
        and which ends at the bounds of the quantity.
        """
        t = scale.to(draws)
        own = t.mean(axis=1, keepdims=True)
        mean = self.weights @ own
        widened = self.widened * (1.0 if np.isinf(self.tails) else SETTINGS.widened)
        spread = mean + widened * ((own - mean) + heavy_tails(self.tails, t.shape) * (t - own))
        weights = np.repeat(self.weights / t.shape[1], t.shape[1])
        ends = scale.back(np.clip(spread, *scale.ends)).ravel()
        return Estimate(ends, np.zeros_like(ends), weights, effective_draws=self.effective)


def without_far_draws(estimate: Estimate) -> Estimate:
    """Return an estimate without components far from its 95 % interval, which have next to no weight."""
    low, high = estimate.interval()
    near = np.abs(estimate.centres - 0.5 * (low + high)) <= AVERAGING.farthest * 0.5 * (high - low)
    if near.all() or not near.any():
        return estimate
    kept = estimate.centres[near], estimate.scales[near], estimate.weights[near]
    return Estimate(*kept, estimate.dof, estimate.effective_draws, estimate.within)


def heavy_tails(dof: float, shape: tuple[int, int]) -> Array:
    """Return factors √(ν/χ²_ν) on deviations, one for each of (K, J) draws: equal numbers of each size for each model.

    Draws come in pairs of opposite deviations, the second half being opposite to the first. Both draws of a pair have
    the same factor.
    """
    if np.isinf(dof):
        return np.ones((1, 1))
    K, J = shape
    pairs = (J + 1) // 2
    sizes = 2 * gammaincinv(dof / 2, (np.arange(K * pairs) + 0.5) / (K * pairs))  # quantiles of χ²
    factors = np.random.default_rng(0).permuted(np.sqrt(dof / sizes).reshape(pairs, K).T, axis=1)
    return np.concatenate([factors, factors], axis=1)[:, :J]


def averaged(moments: tuple[Array, Array], weights: Array | None = None) -> tuple[Array, Array]:
    """Return the mean and variance of a mixture with means and variances (J, n) and weights: shape (n,) each."""
    means, variances = moments
    share = np.full(len(means), 1 / len(means)) if weights is None else weights
    mean = share @ means
    return np.asarray(mean), np.asarray(share @ (variances + (means - mean) ** 2))


def integral_means(batch: PosteriorBatch, source: int | None = None) -> Array:
    """Return the means (K,) of the integral of a source, by default the target, over the whole measure.

    If there are many samples, models are learned with a part of them, and known integrals are over this part: the
    difference between both integrals is computed from values alone.
    """
    source = batch.models.target if source is None else source
    means = batch.models.mean[:, source] + np.einsum("kn,kn->k", batch.whitened_integral(source), batch.beta)
    return np.asarray(means + _by_all_samples(batch, lambda models, a: models.integral_cov(source, a)[:, None])[:, 0])


def _effect(batch: PosteriorBatch, source: int, inputs: Sequence[int], t: Array) -> tuple[Array, Array]:
    """Return the means and variances of ∫ f π(dx_others) over the whole measure: shape (K, m) each."""
    means, variances = batch.main_effect(source, inputs, t)
    return means + _by_all_samples(batch, lambda models, a: models.main_effect_cov(source, inputs, t, a)), variances


def _by_all_samples(batch: PosteriorBatch, cov: Callable[[ModelBatch, Sites], Array]) -> Array:
    """Return the corrections to means of integrals (K, m), whose covariances with observations are (K, m, N).

    They are the differences between integrals over all of many samples and over those with which models are learned.
    """
    models, whole = batch.models, batch.models.measure.whole
    if whole is models.measure:
        return np.zeros((len(batch), 1))
    if batch.data.of_integral.any():
        batch = PosteriorBatch.condition(models, batch.data.rows(~batch.data.of_integral), batch.jitter)
    z = cov(replace(models, measure=whole), batch.data.sites) - cov(models, batch.data.sites)
    return np.asarray(np.einsum("knm,kn->km", solve_lower_batch(batch.factors, z.swapaxes(1, 2)), batch.beta))


def _under(part: PosteriorBatch, measure: Measure, other: Measure) -> tuple[Array, Array]:
    """Return means and variances of the target's integral under another measure than that of the observations.

    Kernels are integrated in closed form if possible. Otherwise, and if models have separate coordinates, as for
    dependent inputs, low-discrepancy points represent the other measure.
    """
    measure, other = (each.base if isinstance(each, Transformed) else each for each in (measure, other))
    data = part.data.rows(~part.data.of_integral)  # known integrals are over the measure of the observations
    if other.marginals is None and not isinstance(other, Empirical):
        other = Empirical(other.sobol(SETTINGS.stand_in_points, 0))
    if measure.latent is not measure:
        weights = other.weights if isinstance(other, Empirical) else None
        points = other.samples if isinstance(other, Empirical) else other.sobol(SETTINGS.stand_in_points, 0)
        scores = measure.to_latent(measure.check_points(points, "the other distribution"))
        data = replace(data.rescaled(data.sites.latent_slopes(measure)), X=measure.to_latent(data.X))
        other = Empirical(scores, weights)
    batch = PosteriorBatch.condition(replace(part.models, measure=other.for_learning()), data, part.jitter)
    return integral_means(batch), batch.integral()[1]
