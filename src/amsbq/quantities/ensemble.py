"""`Ensemble`: the posteriors that an answer is averaged over, and how the error bar of any quantity is calibrated.

The integral has a mixture of Student's t distributions, a little wider than the posteriors say (`inference.averaging`).
Other quantities are functions of sample paths. Their draws get a factor on the width as well, and the same tails: each
deviation from the average of its posterior is multiplied by √(ν/χ²_ν), which makes a Gaussian one a Student's t. That
is done on a scale on which deviations are about symmetric, and ends at the bounds of the quantity.

Notation: K posteriors with weights p_k, J draws by each; q_kj draws of a quantity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv

from ..gp.coregionalisation import ModelBatch
from ..gp.data import Data
from ..gp.posterior_batch import PosteriorBatch
from ..inference.averaging import SETTINGS as AVERAGING
from ..inference.belief import Belief, ExtendedBelief, FixedBelief, LearnedBelief
from ..inference.estimate import Estimate
from ..inference.log_posterior import LEARNING_JITTER
from ..validation import Array


@dataclass(frozen=True)
class EnsembleSettings:
    """How many posteriors answers are averaged over, and how far error bars go beyond them."""

    #: hyperparameter draws of all structures together: the spread between them is known to a fifth
    models: int = 16
    #: factor on the width of the distribution of a quantity that is not linear, on top of that of the mean: local
    #: errors count in it, which average out in the mean. Chosen by benchmarks/quantities.py on development problems.
    widened: float = 1.5


SETTINGS = EnsembleSettings()


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


@dataclass(frozen=True)
class Ensemble:
    """K models on the same observations, in standard units, and what turns their answers into calibrated ones."""

    models: ModelBatch
    weights: Array  # (K,), which sum to one
    data: Data
    level: float  # of the primary source: its values are level + spread · (value in standard units)
    spread: float
    jitter: float
    dof: float  # degrees of freedom of the deviations from the average of each posterior
    widened: float  # factor on all deviations
    effective_draws: float

    @classmethod
    def of(cls, belief: Belief, every: bool = False) -> Ensemble:
        """Return the ensemble of a belief: some or ``every`` of its hyperparameter draws, on all observations."""
        if isinstance(belief, FixedBelief):
            batch = belief.posteriors
            return cls(batch.models, np.ones(1), batch.data, 0.0, 1.0, 0.0, np.inf, 1.0, 1.0)
        assert isinstance(belief, LearnedBelief | ExtendedBelief)
        learned = belief.learned if isinstance(belief, ExtendedBelief) else belief
        models, weights = learned.answering(None if every else SETTINGS.models)
        dof, widened = (AVERAGING.tails, AVERAGING.widened) if learned.model.marginalised else (np.inf, 1.0)
        data = learned.used(belief.data)
        effective = learned.estimate.effective_draws
        return cls(models, weights / weights.sum(), data, *units_of(belief), LEARNING_JITTER, dof, widened, effective)

    @cached_property
    def posteriors(self) -> PosteriorBatch:
        """The models, conditioned on the observations."""
        return PosteriorBatch.condition(self.models, self.data, self.jitter)

    @property
    def _widened_draws(self) -> float:
        """The factor on deviations of draws: one where hyperparameters are known."""
        return self.widened * (1.0 if np.isinf(self.dof) else SETTINGS.widened)

    def in_user_units(self, values: Array) -> Array:
        """Return values of the primary source in the units of the user."""
        return self.level + self.spread * values

    def of_moments(self, means: Array, stds: Array) -> Estimate:
        """Return the estimate of a linear quantity with means and standard deviations (K,), in standard units."""
        return self.of_values(self.in_user_units(means), self.spread * stds)

    def of_values(self, means: Array, stds: Array, within: tuple[float, float] = (-np.inf, np.inf)) -> Estimate:
        """Return the estimate of a quantity with means and standard deviations (K,) in the units of the user.

        It never leaves the range ``within``.
        """
        mean = self.weights @ means
        centres = np.clip(mean + self.widened * (means - mean), *within)
        return Estimate(centres, self.widened * stds, self.weights, self.dof, self.effective_draws, within)

    def of_draws(self, draws: Array, scale: Scale = LINEAR) -> Estimate:
        """Return the estimate of a quantity with draws (K, J), of which those of each posterior are equally likely."""
        t = scale.to(draws)
        own = t.mean(axis=1, keepdims=True)
        mean = self.weights @ own
        spread = mean + self._widened_draws * ((own - mean) + tails(self.dof, t.shape) * (t - own))
        weights = np.repeat(self.weights / t.shape[1], t.shape[1])
        ends = scale.back(np.clip(spread, *scale.ends)).ravel()
        return Estimate(ends, np.zeros_like(ends), weights, effective_draws=self.effective_draws)


def units_of(belief: Belief, source: int = 0) -> tuple[float, float]:
    """Return the level and the spread of a source: its values are level + spread · (standard value)."""
    if isinstance(belief, FixedBelief):
        return 0.0, 1.0
    assert isinstance(belief, LearnedBelief | ExtendedBelief)
    units = (belief.learned if isinstance(belief, ExtendedBelief) else belief).log_posterior.units
    return float(units.levels[source]), float(units.spreads[source])


def tails(dof: float, shape: tuple[int, int]) -> Array:
    """Return factors √(ν/χ²_ν) on deviations, one for each of (K, J) draws: equal numbers of each size for each model.

    Draws come in pairs of opposite deviations, the second half those of the first: both of a pair have the same factor.
    """
    if np.isinf(dof):
        return np.ones((1, 1))
    K, J = shape
    pairs = (J + 1) // 2
    sizes = 2 * gammaincinv(dof / 2, (np.arange(K * pairs) + 0.5) / (K * pairs))  # quantiles of χ²
    factors = np.random.default_rng(0).permuted(np.sqrt(dof / sizes).reshape(pairs, K).T, axis=1)
    return np.concatenate([factors, factors], axis=1)[:, :J]


def set_average(by_set: Array) -> Array:
    """Return averages over R independent sets of points of what (..., J, R) is by each, with their error: (..., J).

    The error of the average is added as a draw for each j, in pairs of opposite sign, of which the second half of the
    draws are those of the first.
    """
    J, R = by_set.shape[-2:]
    half = np.random.default_rng(1).normal(size=(J + 1) // 2)
    noise = np.concatenate([half, -half])[:J]
    return np.asarray(by_set.mean(axis=-1) + noise * by_set.std(axis=-1, ddof=1) / np.sqrt(R))
