"""Averaging over model structures: how much each of them counts, and the distribution of the integral.

Weights are by stacking: those for which the mixture of the structures has the largest leave-one-out density of the
observations of the primary source. The evidence would be dominated by the many observations of cheap sources, while
the error of the integral comes from how these are related to the primary one.

The integral has a mixture of Student's t distributions, one for each draw of the hyperparameters of each structure:
heavy tails, and a little wider than the structures say, because all of them may be wrong.

Notation: M structures, n observations of the primary source, p_im the density of the i-th of them by structure m, if
all other observations are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp, ndtri, stdtrit

from ..gp.conditioning import solve_lower_batch
from ..gp.coregionalisation import ModelBatch
from ..gp.data import Data
from ..gp.gram import batches_of_models
from ..gp.posterior_batch import PosteriorBatch
from ..validation import Array
from .estimate import Estimate
from .log_posterior import LEARNING_JITTER
from .preparation import StandardUnits, too_few
from .sampling import HyperparameterDraws


@dataclass(frozen=True)
class AveragingSettings:
    """How structures are weighted, and how far error bars go beyond their posteriors.

    Chosen on the development problems of docs/arena.md.
    """

    #: observations that the equal weights of the prior count for: few observations of the primary source do not decide.
    #: The primary source alone has no part in them: it has to predict better.
    prior_observations: float = 2.0
    #: a structure counts no more if all observations of the primary source together are so much less probable (in log
    #: density) than by the best one
    ruled_out: float = 10.0
    #: of the iteration for the weights: more change no weight by a percent
    iterations: int = 100
    tails: float = 4.0  #: degrees of freedom of the components of the distribution of the integral
    widened: float = 1.15  #: factor on the width of that distribution
    #: draws whose integral is so many half widths of the 95 % interval from its middle are left out: one of a few dozen
    #: stands for more than its share there, and would be most of the standard deviation
    farthest: float = 2.0
    #: secondary sources are left out unless all observations of the primary source together, so many at least, are so
    #: much more probable (in log density) with them; more is asked of sources that cost next to nothing, of which there
    #: are observations wherever there is one of the primary source
    fewest_told: int = 3
    costly_tell: float = 0.0
    free_tell: float = 3.0


SETTINGS = AveragingSettings()


@dataclass(frozen=True)
class Member:
    """A structure with draws of its hyperparameters, and its weight in the average."""

    draws: HyperparameterDraws
    weight: float


def weighted(draws: Sequence[HyperparameterDraws]) -> tuple[Member, ...]:
    """Return structures with their weights, from draws of the hyperparameters of each on the same observations."""
    if len(draws) == 1:
        return (Member(draws[0], 1.0),)
    log_densities = _log_densities(draws)
    total = log_densities.sum(axis=0)
    left = total > total.max() - SETTINGS.ruled_out
    prior = left & ~np.array([some.log_posterior.prior.primary_only for some in draws])
    weights = np.zeros(len(draws))
    weights[left] = stacking_weights(
        log_densities[:, left], SETTINGS.prior_observations * prior[left] / max(prior.sum(), 1)
    )
    return tuple(Member(*pair) for pair in zip(draws, weights.tolist(), strict=True))


def advantage(members: Sequence[Member], alone: Sequence[Member]) -> float:
    """Return by how much all primary values together are more probable with other sources than without, in log density.

    Each is left out in turn. Structures have different units, but densities are in those of the user.
    """
    shared = [member.draws for member in members if not member.draws.log_posterior.prior.primary_only]
    with_others, without = (_log_densities(draws) for draws in (shared, [member.draws for member in alone]))
    return len(with_others) * (_mean_log_density(with_others) - _mean_log_density(without))


def _log_densities(draws: Sequence[HyperparameterDraws]) -> Array:
    """Return the log density of each primary value, in the units of the user, by each structure: shape (n, M)."""
    posteriors = (some.log_posterior.condition(some.Theta, some.relations) for some in draws)
    logs = np.array([primary_log_densities(batch) for batch in posteriors])
    return (logs - np.log([[some.log_posterior.units.spreads[0]] for some in draws])).T


def _mean_log_density(log_densities: Array) -> float:
    """Return the log density of an observation by structures (n, M) together, averaged over observations."""
    M = log_densities.shape[1]
    weights = stacking_weights(log_densities, np.full(M, SETTINGS.prior_observations / M))
    return float(np.mean(logsumexp(log_densities, axis=1, b=weights)))


def effective_share(members: Sequence[Member]) -> float:
    """Return the effective number of draws as a share of all of them, averaged over the structures."""
    return sum(member.weight * member.draws.effective / len(member.draws.Theta) for member in members)


def stacking_weights(log_densities: Array, prior: Array) -> Array:
    """Return weights (M,) from log p (n, M): the maximum of Σ_i log Σ_m w_m p_im + Σ_m prior_m log w_m."""
    n, M = log_densities.shape
    density = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    weights = np.full(M, 1 / M)
    for _ in range(SETTINGS.iterations):
        shares = density * weights
        shares /= shares.sum(axis=1, keepdims=True)
        weights = (shares.sum(axis=0) + prior) / (n + prior.sum())
    return weights


def primary_log_densities(posteriors: PosteriorBatch) -> Array:
    """Return the log density of each primary value, if all else is known, averaged over posteriors: shape (n,)."""
    of_primary = (posteriors.data.s == 0) & ~posteriors.data.sites.differentiated
    mean, variance = (moments[:, of_primary] for moments in posteriors.leave_one_out())
    logs = -0.5 * (posteriors.data.y[of_primary] - mean) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)
    return np.asarray(np.logaddexp.reduce(logs, axis=0) - np.log(len(logs)))


def most_probable_integral(model: ModelBatch, data: Data, units: StandardUnits) -> Estimate:
    """Return the integral of the primary source for a single model on observations in standard units: a Gaussian.

    Its error bar is at least as wide as the values are spread where these are too few to tell hyperparameters.
    """
    means, stds = integrals(model, data)
    std = float(stds[0])
    if too_few(data):
        std = max(std, 1.0, _spread_of_few(data.of_source(0).values.y))
    return Estimate(units.levels[0] + units.spreads[0] * means, [units.spreads[0] * std])


def averaged_integral(
    models: ModelBatch, weights: Array, data: Data, units: StandardUnits, effective_draws: float
) -> Estimate:
    """Return the integral of the primary source, averaged over models (K,) with weights, with its error bar."""
    means, stds = integrals(models, data)
    mean = np.average(means, weights=weights)
    around = units.levels[0] + units.spreads[0] * (mean + SETTINGS.widened * (means - mean))
    scales = units.spreads[0] * SETTINGS.widened * stds
    return without_far_draws(Estimate(around, scales, weights, SETTINGS.tails, effective_draws))


def without_far_draws(estimate: Estimate) -> Estimate:
    """Return an estimate without the components that are far from its 95 % interval, which have next to no weight."""
    low, high = estimate.interval()
    near = np.abs(estimate.centres - 0.5 * (low + high)) <= SETTINGS.farthest * 0.5 * (high - low)
    if near.all():
        return estimate
    kept = estimate.centres[near], estimate.scales[near], estimate.weights[near]
    return Estimate(*kept, estimate.dof, estimate.effective_draws)


def integrals(models: ModelBatch, data: Data) -> tuple[Array, Array]:
    """Return means and standard deviations of the integral of the primary source for each model, shape (K,) each."""
    found = []
    for part in batches_of_models(len(models), len(data.y)):
        batch = PosteriorBatch.condition(models.select(part), data, LEARNING_JITTER)
        found.append((integral_means(batch), np.sqrt(batch.integral()[1])))
    means, stds = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return means, stds


def _spread_of_few(values: Array) -> float:
    """Return the standard deviation of a Gaussian whose 95 % interval is that of Student's distribution for values."""
    if len(values) < 2:
        return 0.0
    return float(np.std(values, ddof=1) * stdtrit(len(values) - 1, 0.975) / ndtri(0.975))


def integral_means(batch: PosteriorBatch) -> Array:
    """Return the means of the integral of the primary source over the whole measure, shape (K,)."""
    whole, w = batch.models.measure.whole, batch.whitened_integral(0)
    if whole is not batch.models.measure:
        at = ~batch.data.of_integral
        z = batch.models.integral_cov(0, batch.data.sites)
        z[:, at] = replace(batch.models, measure=whole).integral_cov(0, batch.data.sites.rows(at))
        w = solve_lower_batch(batch.factors, z)
    return np.asarray(batch.models.mean[:, 0] + np.einsum("kn,kn->k", w, batch.beta))
