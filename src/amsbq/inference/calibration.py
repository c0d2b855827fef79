"""The calibration of the error bar: from draws of the hyperparameters to the distribution of the integral.

The centre is the average over the posterior of the hyperparameters. The error bar is wider than the posterior's:
hyperparameters come from a tempered posterior, each source may have an extra discrepancy, and the components are
Student's t distributions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtri, stdtrit

from ..gp.gram import batches_of_models
from ..gp.posterior_batch import PosteriorBatch
from ..validation import Array
from .estimate import Estimate
from .log_posterior import LEARNING_JITTER
from .preparation import too_few
from .sampling import HyperparameterDraws


@dataclass(frozen=True)
class CalibrationSettings:
    """How far error bars go beyond the posterior; chosen on 39 problems, see docs/arena.md."""

    #: degrees of freedom: heavy tails, because the model is often misspecified
    tails: float = 3.0
    #: power of the likelihood: tempering, because a misspecified likelihood is overconfident
    power: float = 0.5
    #: variances of the discrepancy of a source on the scale of the first term, as shares of its whole variance:
    #: quantiles of a log-normal distribution
    shares: Array = field(default_factory=lambda: np.exp(-4.0 + 2.0 * ndtri((np.arange(6) + 0.5) / 6)))


SETTINGS = CalibrationSettings()


def uncalibrated(draws: HyperparameterDraws) -> Estimate:
    """Return the integral of the primary source for a single θ: a Gaussian.

    Its error bar is at least as wide as the values are spread where these are too few to tell θ.
    """
    level, spread = _units(draws)
    _, stds, _ = integrals(draws, np.zeros(1))
    std, data = spread * stds[0, 0], draws.log_posterior.data
    if too_few(data):
        std = max(std, spread, _spread_of_few(data.y[data.s == 0]))
    return Estimate([level + spread * _means(draws).mean()], [std])


def calibrated(draws: HyperparameterDraws, tempered: HyperparameterDraws) -> Estimate:
    """Return the integral of the primary source, averaged over the hyperparameters, with its calibrated error bar."""
    level, spread = _units(draws)
    mean = level + spread * _means(draws).mean()
    shares = SETTINGS.shares if len(np.unique(draws.log_posterior.data.s)) > 1 else np.zeros(1)
    means, stds, logs = integrals(tempered, np.append(0.0, shares))
    centres, scales, logs = means[:, 0], stds[:, 1:], logs[:, 1:]
    weights = np.exp(SETTINGS.power * (logs - logs.max(axis=1, keepdims=True)))
    weights /= weights.sum(axis=1, keepdims=True)
    around = np.repeat(mean + spread * (centres - centres.mean()), len(shares))
    effective = min(draws.effective, tempered.effective)
    return Estimate(around, spread * scales.ravel(), weights.ravel(), SETTINGS.tails, effective)


def integrals(draws: HyperparameterDraws, shares: Array) -> tuple[Array, Array, Array]:
    """Return the integral of the primary source for each draw, if each source had a discrepancy of its own.

    Parameters
    ----------
    draws : HyperparameterDraws
        K draws.
    shares : (J,) array
        Variances of the discrepancy on the scale of the first term, as shares of the whole variance of a source.

    Returns
    -------
    means, stds, log_evidences : (K, J) arrays
        In standard units.
    """
    log_posterior, K, J = draws.log_posterior, len(draws.Theta), len(shares)
    at = log_posterior.layout.decode(draws.Theta, draws.relations)
    B = np.repeat(at.B(), J, axis=0)
    extra = (at.variances()[:, None] * shares[:, None]).reshape(K * J, -1)
    np.einsum("kll->kl", B[:, 0])[...] += extra
    models = log_posterior.models_of(B, at, np.repeat(np.arange(K), J))
    data = log_posterior.units.standardise(log_posterior.data)
    found = []
    for part in batches_of_models(len(models), len(data.y)):
        batch = PosteriorBatch.condition(models.select(part), data, LEARNING_JITTER)
        mean, variance = batch.integral()
        found.append((mean, np.sqrt(variance), batch.log_evidence()))
    means, stds, logs = (np.concatenate(parts).reshape(K, J) for parts in zip(*found, strict=True))
    return means, stds, logs


def _spread_of_few(values: Array) -> float:
    """Return the standard deviation of a Gaussian whose 95 % interval is that of Student's distribution for values."""
    if len(values) < 2:
        return 0.0
    return float(np.std(values, ddof=1) * stdtrit(len(values) - 1, 0.975) / ndtri(0.975))


def integral_means(batch: PosteriorBatch) -> Array:
    """Return the means of the integral of the primary source over the whole measure, shape (K,)."""
    whole = batch.models.measure.whole
    if whole is not batch.models.measure:
        models = replace(batch.models, measure=whole)
        batch = PosteriorBatch(models, batch.data, batch.factors, batch.beta, batch.jitter)
    return np.asarray(batch.models.mean[:, 0] + np.einsum("kn,kn->k", batch.whitened_integral(0), batch.beta))


def _means(draws: HyperparameterDraws) -> Array:
    """Return the mean of the integral for each draw, in standard units, shape (K,)."""
    log_posterior = draws.log_posterior
    models = log_posterior.models(draws.Theta, draws.relations)
    data = log_posterior.units.standardise(log_posterior.data)
    parts = batches_of_models(len(models), len(data.y))
    return np.concatenate(
        [integral_means(PosteriorBatch.condition(models.select(part), data, LEARNING_JITTER)) for part in parts]
    )


def _units(draws: HyperparameterDraws) -> tuple[float, float]:
    """Return the level and the spread of the primary source."""
    units = draws.log_posterior.units
    return float(units.levels[0]), float(units.spreads[0])
