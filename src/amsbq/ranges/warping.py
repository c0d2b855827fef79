"""Values that are skewed: where the default models them as exponentials, which it finds out by itself.

Values f that are bunched at one end are modelled as f = low + exp(g), or high - exp(g), with an end that is a little
beyond all values: how far is chosen with the direction, so that shifting and scaling all values changes nothing. Each
choice is screened with the hyperparameters that were learned for f itself; the best is learned, and if it predicts each
value from all others better (the score of `learner`), the answer is an average over both models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from ..gp.data import Data
from ..gp.posterior_batch import PosteriorBatch
from ..inference.belief import SETTINGS as LEARNING
from ..inference.belief import Belief, FixedBelief, LearnedBelief
from ..inference.log_posterior import LEARNING_JITTER
from ..inference.preparation import StandardUnits, is_constant
from ..inference.schedule import Learner
from ..measures.base import Measure
from ..messages import collected_warnings
from ..validation import Array
from .belief import AveragedBelief, RangedBelief
from .learner import learn_ranged, left_out_score, remembered, score
from .transforms import OutputRange, Shape, Transform


@dataclass(frozen=True)
class WarpingSettings:
    """When values are modelled as exponentials: chosen on development problems of the arena, at fixed designs."""

    beyond: tuple[float, ...] = (0.05, 0.3, 1.5)  #: distances of the end from all values, in units of their range
    fewest: int = 8  #: values of all sources, ...
    fewest_primary: int = 3  #: ... and of the primary one: with two, intervals held the truth less often than without
    promising: float = 0.9  #: score beside that of the values as they are, with the same hyperparameters
    power: float = 3.0  #: of the scores, after hyperparameters were learned: each model counts by its inverse
    negligible: float = 0.02  #: weight up to which the values as they are do not count
    #: standard deviation of the integral beside that without: exponentials may allow for anything far from all values
    widest: float = 2.0


SETTINGS = WarpingSettings()
EXPONENTIAL = Shape("log", 20.0)


class WarpingLearner(Learner):
    """Observations, and a belief on the values as they are, and on exponentials where that predicts them better."""

    def learned(self, data: Data) -> FixedBelief | LearnedBelief | RangedBelief:
        """Return the belief that is learned from observations."""
        plain = super().learned(data)
        assert isinstance(plain, FixedBelief | LearnedBelief)
        return warped(plain, self.measure, self.seed)

    def _extended(self, belief: Belief, data: Data) -> Belief:
        """Return a belief on more observations; it is learned again if they are not in the range that it assumes."""
        if isinstance(belief, RangedBelief) and not belief.transform.holds(data.rows(data.s < len(belief.noise))):
            return self.learned(data)
        return super()._extended(belief, data)

    def _hyperparameters(self, belief: Any) -> dict[str, Any]:
        if not isinstance(belief, RangedBelief):
            return super()._hyperparameters(belief)
        found = {**super()._hyperparameters(belief.latent), "transform": belief.transform.to_dict()}
        if isinstance(belief, AveragedBelief):
            found |= {"plain": super()._hyperparameters(belief.plain), "share": belief.share}
        return found

    def _remembered(self, data: Data, parameters: dict[str, Any]) -> Any:
        if "transform" not in parameters:
            return super()._remembered(data, parameters)
        ranged = remembered(self, None, data, parameters)
        if "plain" not in parameters:
            return ranged
        plain: Any = super()._remembered(data, parameters["plain"])
        return _averaged(ranged, plain, parameters["share"])


def warped(
    plain: FixedBelief | LearnedBelief, measure: Measure, seed: int
) -> FixedBelief | LearnedBelief | RangedBelief:
    """Return a belief on exponentials too if that predicts the values better, and else the one on values as they are.

    Parameters
    ----------
    plain : FixedBelief or LearnedBelief
        The belief on the values as they are.
    measure, seed
        What it was learned with.
    """
    if isinstance(plain, FixedBelief) or not _may_be_skewed(plain):
        return plain
    candidates, varying = _candidates(plain.data.values.y), _varying(plain.data)
    as_they_are, *scores = _screened(plain, plain, measure, [None, *candidates], varying)
    best = int(np.argmin(scores))
    if not scores[best] < SETTINGS.promising * as_they_are:
        return plain
    tried = [_learned(plain, candidates[best].range, measure, seed)]
    latent = tried[0].latent
    assert isinstance(latent, LearnedBelief)
    again = int(np.argmin(_screened(plain, latent, measure, candidates, varying)))
    if again != best:
        tried.append(_learned(plain, candidates[again].range, measure, seed))
    found, its_score = min(((one, score(one, varying)) for one in tried), key=itemgetter(1))
    as_it_is = partial(_values, None, plain.log_posterior.units)
    other = left_out_score(plain.posteriors, as_it_is, varying)
    if not its_score < other:
        return plain
    share = 1 / (1 + (its_score / other) ** SETTINGS.power)
    belief = _averaged(found, plain, share) if 1 - share > SETTINGS.negligible else found
    return belief if belief.of_range.std < SETTINGS.widest * plain.estimate.std else plain


def _averaged(ranged: RangedBelief, plain: LearnedBelief, share: float) -> AveragedBelief:
    """Return the average of two beliefs, of which the first has that share."""
    return AveragedBelief(ranged.latent, ranged.transform, ranged.measure, ranged.noise, plain, share)


def _may_be_skewed(plain: LearnedBelief) -> bool:
    """Return whether exponentials are considered: for enough values without noise, of which nothing else is known."""
    data = plain.data.values
    noisy = any(plain.noise) or data.noise_var.any() or plain.log_posterior.learned.any()
    if not plain.model.warped or plain.integrals or noisy:
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


def _learned(plain: LearnedBelief, known: OutputRange, measure: Measure, seed: int) -> RangedBelief:
    """Return what is learned from the same observations if they are exponentials of that range."""
    with collected_warnings():  # those that matter were issued for the values as they are
        return learn_ranged(
            known, plain.model, measure, plain.data, plain.noise, seed, order=plain.order, shape=EXPONENTIAL
        )


def _screened(
    plain: LearnedBelief,
    learned: LearnedBelief,
    measure: Measure,
    transforms: Sequence[Transform | None],
    sources: Sequence[int],
) -> list[float]:
    """Return the scores of some sources after each transform, all with hyperparameters that were learned for one.

    None leaves them as they are.
    """
    data, n = plain.data, len(plain.noise)
    if not data.has_gradients:  # which follow their values until these are transformed: else few of many are enough
        data = data.sorted().thinned(LEARNING.most_observations)
    scores = []
    for transform in transforms:
        observed = data if transform is None else transform.transformed(data, (0.0,) * n, measure)
        observed = observed.sorted().thinned(LEARNING.most_observations)
        units = StandardUnits.of(observed, n, learned.log_posterior.prior.one_unit)
        posteriors = PosteriorBatch.condition(learned.posteriors.models, units.standardise(observed), LEARNING_JITTER)
        scores.append(left_out_score(posteriors, partial(_values, transform, units), sources))
    return scores


def _values(transform: Transform | None, units: StandardUnits, source: int, g: Array, mean: Array) -> Array:
    """Return what g of a source in standard units is before the transform, up to a factor and a constant."""
    values = units.in_user_units(source, g)
    return values if transform is None else transform.back(values)
