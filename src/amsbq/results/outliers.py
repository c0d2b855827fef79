"""Values that the model cannot explain: outliers, far from what all others predict, and undeclared noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..common.messages import collected_warnings
from ..design.decisions import Decisions
from ..gp.data import Data
from ..gp.posterior_batch import PosteriorBatch
from ..inference.log_posterior import LogPosterior
from ..inference.modes import find_mode
from ..inference.noise import undeclared_noise
from ..inference.particles import SETTINGS as LEARNING
from ..inference.preparation import StandardUnits, learning, spread_of_repeats
from ..inference.structures import Noise, chain
from ..posterior.latent import averaged
from .analysis import SETTINGS, once_per_state


def repeated_noise(it: Decisions) -> dict[int, float]:
    """Return the standard deviation of repeated values at one location, for each source declared noise-free.

    Only sources whose values differ are listed: they have noise for certain.
    """
    spreads = {source: spread_of_repeats(it.learner.data.values.of_source(source)) for source in it.policy.used}
    return {source: std for source, std in spreads.items() if std > 0 and it.sources[source].noise == 0.0}


@once_per_state
def hidden_noise(it: Decisions) -> dict[int, float]:
    """Return, for each source whose values seem noisier than declared, the standard deviation of the noise.

    Sources listed by `repeated_noise`, whose noise is certain, are omitted.
    """
    if it.problem.model.given or it.problem.ranges[0] is not None:
        return {}
    noise = [it.sources[source].noise for source in it.policy.used]
    with np.errstate(all="ignore"):
        return undeclared_noise(it.measure, it.learner.data, learning(noise, repeated_noise(it)))


@dataclass(frozen=True)
class Outlier:
    """A value that is far from what all other observations predict.

    Attributes
    ----------
    evaluation : int
        Its place in the list of evaluations, from 0.
    mean, std : float
        The prediction from all other observations, by a model learned without this value.
    """

    evaluation: int
    mean: float
    std: float


@once_per_state
def outlier(it: Decisions) -> Outlier | None:
    """Return the value farthest from its prediction by the other values of its source; None if it is not an outlier.

    It is an outlier if neither functions with steps, learned from the other values of its source, nor the model of the
    run, learned from all other observations, can explain it.
    """
    found: list[tuple[float, Data]] = []
    with np.errstate(all="ignore"):
        for source in (source for source in it.problem.usable if source not in it.in_bulk.sources):
            of = it.learner.data.values.of_source(source).sorted()
            if len(of.y) >= SETTINGS.min_observations and np.ptp(of.y) > 0:
                found.append(_worst(it, of, it.sources[source].noise))
    size, value = max(found, key=lambda pair: pair[0], default=(0.0, None))
    return _checked(it, value) if value is not None and size > SETTINGS.outlier_by_steps else None


def _worst(it: Decisions, of_source: Data, noise: Noise) -> tuple[float, Data]:
    """Return the value of a source that functions with steps predict worst, as (distance, observation).

    The distance is in standard deviations, and zero if it is not remarkable.
    """
    data = replace(of_source, s=np.zeros(len(of_source.y), dtype=np.intp))
    posterior, _ = _stepped(it, data, noise)
    mean, variance = posterior.leave_one_out()
    sizes = np.abs(posterior.data.y - mean[0]) / np.sqrt(variance[0])
    row = int(sizes.argmax())
    if sizes[row] < SETTINGS.disagreement:
        return 0.0, of_source.rows([row])
    posterior, units = _stepped(it, data.rows(np.arange(len(data.y)) != row), noise)
    value, level, spread = data.rows([row]), float(units.levels[0]), float(units.spreads[0])
    means, variances = posterior.predict(0, value.X)
    of_value = posterior.models.noise[:, [0]] + value.noise_var / spread / spread
    mean, variance = averaged((means, variances + of_value))
    far = abs(data.y[row] - (level + spread * float(mean[0]))) / (spread * math.sqrt(variance[0]))
    return far, of_source.rows([row])


def _stepped(it: Decisions, data: Data, noise: Noise) -> tuple[PosteriorBatch, StandardUnits]:
    """Return the posterior over functions with steps, at the most probable hyperparameters, and its standard units."""
    prior = replace(chain([0], it.measure.dim), kernel=SETTINGS.stepped)
    few, every = (
        LogPosterior(prior, it.measure, rows, [noise], integrated=False)
        for rows in (data.thinned(LEARNING.most_observations), data)
    )
    return every.condition(find_mode(few).theta[None]), every.units


def _checked(it: Decisions, value: Data) -> Outlier | None:
    """Return an observation as an outlier if it is far from the prediction of the model, learned from all others."""
    (source,), [x], [y] = value.s.tolist(), value.X, value.y
    noise = it.sources[source].noise
    with collected_warnings(), np.errstate(all="ignore"):
        # a source may have been left out because of this very value
        refitted = it.learner.without(source, x, y).learned(leaves_out=False)
        assert refitted is not None
        hidden = hidden_noise(it).get(source, 0.0) ** 2
        mean, std, far = refitted.components[0].surprise(value, 0.0 if isinstance(noise, str) else noise, hidden)
    if far <= SETTINGS.outlier_by_model:
        return None
    made = (e.status == "ok" and (e.source, e.value) == (source, y) and (e.x == x).all() for e in it.evaluations)
    return Outlier(next(i for i, same in enumerate(made) if same), mean, std)
