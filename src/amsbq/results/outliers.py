"""Outliers: values that are far from what all other observations predict."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..design.integrator import Integrator
from ..gp.data import Data
from ..gp.kernels import Matern, ProductKernel
from ..gp.posterior_batch import PosteriorBatch
from ..inference.belief import SETTINGS as LEARNING
from ..inference.belief import FixedBelief, averaged
from ..inference.log_posterior import LogPosterior
from ..inference.modes import find_mode
from ..inference.preparation import StandardUnits
from ..inference.structures import Noise, chain
from ..messages import collected_warnings
from ..ranges.belief import RangedBelief
from ..ranges.learner import learn_ranged
from .analysis import once_per_state
from .noise import hidden_noise


@dataclass(frozen=True)
class OutlierSettings:
    """When a value is an outlier."""

    enough: int = 8  #: observations of a source from which on one of them may be
    #: kernel of functions that may have steps, by which the values of a source are predicted from each other
    stepped: ProductKernel = field(default_factory=lambda: Matern(0.5, 1.0))
    #: largest residual, in standard deviations, from which on these functions are refitted without its observation
    suspicious: float = 2.0
    #: standard deviations from what these functions then predict. Beside a step, or where a steep function was
    #: evaluated farthest out, it may be 9; a value that is wrong by ten times the spread of all has 12 and more
    unexplained: float = 10.0
    #: standard deviations from what the model predicts, after a refit to all observations but the value
    outlying: float = 5.0


SETTINGS = OutlierSettings()


@dataclass(frozen=True)
class Outlier:
    """A value that is far from what all other observations predict.

    Attributes
    ----------
    evaluation : int
        Its place in the list of evaluations, from 0.
    mean, std : float
        The prediction from all other observations, by a model that was learned without this one.
    """

    evaluation: int
    mean: float
    std: float


@once_per_state
def outlier(it: Integrator) -> Outlier | None:
    """Return the value that is farthest from what the others of its source predict, if it is an outlier; else None.

    It is one if neither functions with steps, learned from the others of its source, nor the model of the run, learned
    from all other observations, can explain it.
    """
    found = {}
    with np.errstate(all="ignore"):
        for source in (source for source in it._usable() if source not in it.free):
            of = it.learner.data.values.of_source(source).sorted()
            if len(of.y) >= SETTINGS.enough and np.ptp(of.y) > 0:
                row, size = _worst(it, of, it.sources[source].noise)
                found[source] = size, of.rows([row])
    size, value = max(found.values(), key=lambda pair: pair[0], default=(0.0, None))
    return _checked(it, value) if value is not None and size > SETTINGS.unexplained else None


def _worst(it: Integrator, data: Data, noise: Noise) -> tuple[int, float]:
    """Return which value of a source functions with steps predict worst, and how many standard deviations it is off.

    The second number is zero if that is nothing special.
    """
    data = replace(data, s=np.zeros(len(data.y), dtype=np.intp))
    posterior, _ = _stepped(it, data, noise)
    mean, variance = posterior.leave_one_out()
    sizes = np.abs(posterior.data.y - mean[0]) / np.sqrt(variance[0])
    row = int(sizes.argmax())
    if sizes[row] < SETTINGS.suspicious:
        return row, 0.0
    predicted, std = _prediction(*_stepped(it, data.rows(np.arange(len(data.y)) != row), noise), data.rows([row]))
    return row, abs(data.y[row] - predicted) / std


def _stepped(it: Integrator, data: Data, noise: Noise) -> tuple[PosteriorBatch, StandardUnits]:
    """Return the posterior of functions with steps, by the most probable hyperparameters, and its units."""
    prior = replace(chain([0], it.measure.dim), kernel=SETTINGS.stepped)
    few, every = (
        LogPosterior(prior, it.measure, rows, [noise], integrated=False)
        for rows in (data.thinned(LEARNING.most_observations), data)
    )
    return every.condition(find_mode(few).theta[None]), every.units


def _checked(it: Integrator, value: Data) -> Outlier | None:
    """Return an observation as an outlier if the model of the run, learned from all others, finds it far off."""
    (source,), [x], [y] = value.s.tolist(), value.X, value.y
    data = it.learner.data
    of_value = (data.s == source) & ~data.sites.differentiated & (data.y == y)
    rest = data.rows(~data.together_with(int(np.flatnonzero(of_value & (x == data.X).all(axis=1))[0])))
    with collected_warnings(), np.errstate(all="ignore"):
        belief = it.learner.belief
        transformed = isinstance(belief, RangedBelief) and source < len(belief.noise)  # others are left out
        mean, std, far = (_of_range if transformed else _of_others)(it, it.learner, rest, value)
    if far <= SETTINGS.outlying:
        return None
    made = (e.status == "ok" and (e.source, e.value) == (source, y) and (e.x == x).all() for e in it.evaluations)
    return Outlier(next(i for i, same in enumerate(made) if same), mean, std)


def _of_others(it: Integrator, learner: Any, rest: Data, value: Data) -> tuple[float, float, float]:
    """Return what a model learned from the rest predicts for one observation, and how far off that is, in its stds."""
    refitted = learner.learned_of_all(rest)  # a wrong value may be why a source is left out
    units = None if isinstance(refitted, FixedBelief) else refitted.log_posterior.units
    mean, std = _prediction(refitted.posteriors, units, value)
    return mean, std, abs(float(value.y[0]) - mean) / math.hypot(std, hidden_noise(it).get(int(value.s[0]), 0.0))


def _of_range(it: Integrator, learner: Any, rest: Data, value: Data) -> tuple[float, float, float]:
    """Return the same by a model with the transform of the run, on whose scale distances from bounds are compared."""
    s, used, n = int(value.s[0]), learner.belief.transform, len(learner.belief.noise)
    noise, order = [source.noise for source in it.sources[:n]], [source for source in learner.order if source < n]
    rest = rest.rows(rest.s < n)
    refitted = learn_ranged(used.range, it.model, it.measure, rest, noise, it.seed, it.names, order, used.shape)
    transform, level = refitted.transform, noise[s]
    error = math.sqrt(float(value.noise_var[0]) + (0.0 if isinstance(level, str) else level))
    mean, std = (float(moment[0]) for moment in refitted.predict(s, value.X))
    distance, variance = (float(moment[0]) for moment in refitted.predict_distance(s, value.X))
    spread = math.sqrt(variance) if transform.range.log else math.hypot(math.sqrt(variance), error / transform.unit)
    (seen,) = transform.back(transform.to(value.y))
    return mean, math.hypot(std, error), abs(seen - distance) / spread


def _prediction(posteriors: PosteriorBatch, units: StandardUnits | None, value: Data) -> tuple[float, float]:
    """Return mean and standard deviation of one observation, its noise included, from posteriors in some units."""
    s = int(value.s[0])
    level, spread = (0.0, 1.0) if units is None else (float(units.levels[s]), float(units.spreads[s]))
    means, variances = posteriors.predict(s, value.X)
    noise = posteriors.models.noise[:, [s]] + value.noise_var / spread / spread
    mean, variance = averaged((means, variances + noise))
    return level + spread * float(mean[0]), spread * math.sqrt(variance[0])
