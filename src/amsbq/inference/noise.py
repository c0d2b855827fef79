"""Undeclared noise: values of a source that scatter around a smooth function of its inputs.

A function that varies faster than its evaluations can resolve looks the same; to a smooth model, so does a function
with a kink or a step, which is common. Noise is therefore accepted only if it explains the values better than functions
with kinks do, and if it shows in all values, not just in those around a kink, beyond a step or in wrong values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ..common.validation import IntArray
from ..gp.data import Data
from ..gp.kernels import Matern, ProductKernel
from ..measures.base import Measure
from .log_posterior import LogPosterior
from .modes import find_mode
from .priors import Normal
from .structures import ModelPrior, Noise, chain


@dataclass(frozen=True)
class NoiseSettings:
    """When values are taken to have undeclared noise.

    Measured on functions of 1 to 6 inputs: without noise, smooth or with kinks or steps; and smooth with noise, of 3 to
    30 % of their spread, that is at least twice the error with which the function could be predicted.
    """

    #: minimum number of values of a source that may show noise: 15 values show it in nine of ten problems with one
    #: input
    enough: int = 12
    most_observations: int = 64  #: maximum number that are tested: more take longer
    #: prior of the log variance of the noise in units of the squared spread, for noise that can be seen
    log_noise: Normal = field(default_factory=lambda: Normal(float(np.log(1e-2)), 1.5))
    #: minimum log Bayes factor of noise against a smooth function without it. Two evaluations per period of a wave
    #: reach 3.5; above 1, 18 of 100 functions with kinks are taken to have noise
    log_odds: float = 4.0
    #: kernel of functions with kinks, which must not explain the values better: 7 of 100 are left
    rough: ProductKernel = field(default_factory=lambda: Matern(1.5, 1.0))
    #: share of the values, those with the largest residuals, without which noise must still show, and its minimum log
    #: Bayes factor without them: 2 of 100 are left
    left_out: float = 0.2
    log_odds_of_others: float = 0.5


SETTINGS = NoiseSettings()


def undeclared_noise(measure: Measure, data: Data, noise: Sequence[Noise]) -> dict[int, float]:
    """Return the standard deviation of the noise, by source, of the sources whose values show more than declared.

    Each source is tested by itself. A source whose noise is learned has no undeclared noise.

    Parameters
    ----------
    measure : Measure
        The distribution of the inputs.
    data : Data
        Observations of all sources.
    noise : one for each source
        The declared variance, or "learn".
    """
    every = ((source, noise_of(measure, data, source, level)) for source, level in enumerate(noise))
    return {source: std for source, std in every if std > 0}


def noise_of(measure: Measure, data: Data, source: int, declared: Noise) -> float:
    """Return the standard deviation of a source's undeclared noise, or zero."""
    of = data.values.of_source(source)
    if declared == "learn" or len(of.y) < SETTINGS.enough or not np.ptp(of.y) > 0:
        return 0.0
    known = replace(of, s=np.zeros(len(of.y), dtype=np.intp), noise_var=of.noise_var + declared).sorted()
    return _noise(measure, known.thinned(SETTINGS.most_observations))


def _noise(measure: Measure, data: Data) -> float:
    """Return the standard deviation of undeclared noise in data of a single source, or zero."""
    prior = replace(chain([0], measure.dim), log_noise=SETTINGS.log_noise)
    noisy = _explained(prior, measure, data, "learn")
    if noisy.log_evidence - _explained(prior, measure, data).log_evidence < SETTINGS.log_odds:
        return 0.0
    rough = replace(prior, kernel=SETTINGS.rough)
    if noisy.log_evidence < _explained(rough, measure, data).log_evidence:
        return 0.0
    others = data.rows(noisy.by_residual[: len(data.y) - max(int(SETTINGS.left_out * len(data.y)), 1)]).sorted()
    still = _explained(prior, measure, others, "learn").log_evidence - _explained(prior, measure, others).log_evidence
    return noisy.std if still > SETTINGS.log_odds_of_others else 0.0


class _Explained(NamedTuple):
    """How well a structure explains observations: log evidence, noise standard deviation, observations by residual."""

    log_evidence: float
    std: float
    by_residual: IntArray  # row numbers of the observations, the smallest residuals first


def _explained(prior: ModelPrior, measure: Measure, data: Data, noise: Noise = 0.0) -> _Explained:
    """Return the fit of a structure, with or without noise, to observations of a single source."""
    density = LogPosterior(prior, measure, data, [noise], integrated=False)
    mode = find_mode(density)
    posterior = density.condition(mode.theta[None])
    mean, variance = posterior.leave_one_out()
    sizes = (posterior.data.y - mean[0]) ** 2 / variance[0]
    std = density.units.spreads[0] * np.sqrt(posterior.models.noise[0, 0])
    return _Explained(mode.log_mass, float(std), np.argsort(sizes, kind="stable"))
