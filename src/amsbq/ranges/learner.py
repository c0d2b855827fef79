"""Learning of sources whose range is known: the transform is chosen with the hyperparameters, at each refit.

Transforms are compared by how well each value is predicted from all others, in the units of the user: by the continuous
ranked probability score (Gneiting and Raftery 2007), which values at a bound do not upset as they would a density.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..gp.data import Data
from ..gp.posterior import MultiSourceGP
from ..gp.posterior_batch import PosteriorBatch
from ..inference.belief import from_hyperparameters, learn
from ..inference.schedule import Learner, latest_stage
from ..inference.structures import Model, Noise
from ..measures.base import Measure
from ..messages import collected_warnings, warn
from ..validation import Array
from .belief import RangedBelief
from .moments import outcomes
from .transforms import OutputRange, Shape, Transform


@dataclass(frozen=True)
class ChoiceSettings:
    """When the transform is chosen, and by what."""

    first: int = 4  #: observations, up to which it is at each refit
    growth: float = 1.25  #: of their number from one choice to the next, beyond: it takes as long as four refits
    #: standard deviation of the integral, as a share of its distance from the bound, up to which transforms are
    #: compared by their scores alone
    unknown: float = 0.5


SETTINGS = ChoiceSettings()


def choice_stage(n: int) -> int:
    """Return the number of observations that the transform is chosen from, when there are n of them.

    >>> [choice_stage(n) for n in (0, 3, 4, 5, 6, 7, 100)]
    [0, 3, 4, 5, 5, 7, 91]
    """
    return latest_stage(n, SETTINGS.first, SETTINGS.growth)


class RangedLearner(Learner):
    """Observations of sources whose range is known, and the belief that decisions and answers are based on.

    Parameters
    ----------
    known : OutputRange
    model, measure, noise, seed, names, order
        See `Learner`.
    """

    def __init__(
        self,
        known: OutputRange,
        model: Model | MultiSourceGP,
        measure: Measure,
        noise: Sequence[Noise],
        seed: int,
        names: Sequence[str] | None = None,
        order: Sequence[int] | None = None,
    ) -> None:
        self.known = known
        self._chosen: tuple[int, Shape] | None = None  # how many observations the transform was chosen from, and which
        super().__init__(model, measure, noise, seed, names, order)

    def learned(self, data: Data) -> RangedBelief:
        """Return the belief that is learned from observations; the transform is chosen from the first of them."""
        n = choice_stage(len(data.values.y))
        if self._chosen is None or self._chosen[0] != n:
            first = self._learned(data.first(n))
            self._chosen = n, first.transform.shape
            if n == len(data.values.y):
                return first
        return self._learned(data, self._chosen[1])

    def _learned(self, data: Data, shape: Shape | None = None) -> RangedBelief:
        return learn_ranged(
            self.known, self.model, self.measure, data, self.noise, self.seed, self.names, self.order, shape
        )

    def _hyperparameters(self, belief: Any) -> dict[str, Any]:
        assert isinstance(belief, RangedBelief)
        return {**super()._hyperparameters(belief.latent), "transform": belief.transform.to_dict()}

    def _remembered(self, data: Data, parameters: dict[str, Any]) -> RangedBelief:
        return remembered(self, self.known, data, parameters)


def remembered(learner: Learner, known: OutputRange | None, data: Data, parameters: dict[str, Any]) -> RangedBelief:
    """Return the belief that was learned from the same observations before; None is a range that was only assumed."""
    assert not isinstance(learner.model, MultiSourceGP)
    transform = Transform.from_dict(known, parameters["transform"])
    n = len(parameters["order"])  # of the sources that are modelled
    declared, others = _divided(learner.noise[:n])
    observed = transform.transformed(data.rows(data.s < n), declared, learner.measure)
    model = replace(learner.model, secondaries=learner.model.secondaries and n == len(learner.noise))
    latent = from_hyperparameters(model, learner.measure, observed, others, learner.seed, parameters)
    return RangedBelief(latent, transform, learner.measure, declared)


def learn_ranged(
    known: OutputRange,
    model: Model | MultiSourceGP,
    measure: Measure,
    data: Data,
    noise: Sequence[Noise],
    seed: int = 0,
    names: Sequence[str] | None = None,
    order: Sequence[int] | None = None,
    shape: Shape | None = None,
) -> RangedBelief:
    """Return what a model of g believes of observations of f = T(g), with the best transform, or one of that shape.

    A Gaussian process with hyperparameters of the user is one of g in the units of f: f = low + g²/2 with one bound,
    f = low + (high - low) (1 - cos g)/2 with two.
    """
    if isinstance(model, MultiSourceGP):
        if known.log:
            raise ValueError("log=True needs a model whose hyperparameters are learned, such as 'auto'")
        unit = known.high - known.low if known.two_bounds else 1.0
        transform = Transform(known.shapes[0], known, unit, 0.0)
        none = (0.0,) * len(noise)  # beside that of the model
        latent = learn(model, measure, transform.transformed(data, none, measure), noise, seed)
        return RangedBelief(latent, transform, measure, none)
    model = replace(model, leaves_out=False)  # scores of transforms are those of the same observations
    declared, others = _divided(noise)
    found = []
    for candidate in known.shapes if shape is None else (shape,):
        transform = Transform.of(candidate, known, data.values.y)
        observed = transform.transformed(data, declared, measure)
        with collected_warnings() as messages:
            latent = learn(model, measure, observed, others, seed, names, order)
        found.append((RangedBelief(latent, transform, measure, declared), messages))
    best, messages = found[0] if len(found) == 1 else min(found, key=lambda pair: _merit(pair[0]))
    for message in messages:
        warn(message)
    return best


def _divided(noise: Sequence[Noise]) -> tuple[tuple[float, ...], list[Noise]]:
    """Return the known noise variances of sources, those of f, and which are to be learned, those of g."""
    known = tuple(0.0 if isinstance(level, str) else float(level) for level in noise)
    return known, ["learn" if isinstance(level, str) else 0.0 for level in noise]


def _merit(belief: RangedBelief) -> float:
    """Return by what transforms are compared, the less the better: the score, times the variance of the integral.

    A log may predict all observations well, and yet allow for so much between them that the integral is anything.
    """
    means, variances = belief.scaled(0).integral(belief.posteriors, belief.nodes)
    mean, variance = np.mean(means), np.mean(variances) + np.var(means)
    unknown = float(np.sqrt(variance) / np.maximum(mean, np.finfo(float).tiny))
    return max(unknown, SETTINGS.unknown) ** 2 * score(belief)


def score(belief: RangedBelief, sources: Sequence[int] | None = None) -> float:
    """Return the continuous ranked probability score of observations, of all sources or some: the less the better."""
    return left_out_score(belief.posteriors, lambda source, g, mean: belief.scaled(source).outcome(g, mean), sources)


def left_out_score(
    posteriors: PosteriorBatch, values: Callable[[int, Array, Array], Array], sources: Sequence[int] | None = None
) -> float:
    """Return the score of observations of g in standard units: ``values`` makes them of a source, g and its mean.

    Each is predicted from all others. The score of each source is in units of the spread of its values.
    """
    data = posteriors.data
    means, variances = posteriors.leave_one_out()
    total = 0.0
    for source in (int(source) for source in (np.unique(data.s) if sources is None else sources)):
        of = (data.s == source) & ~data.sites.differentiated
        g, mean, weights = outcomes(means[:, of], variances[:, of])
        truth = values(source, data.y[of], data.y[of])
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
