"""Numbers that findings and figures are made of: leave-one-out residuals, and what each source was worth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..design.integrator import Integrator
from ..gp.posterior_batch import PosteriorBatch
from ..inference.belief import Belief, averaged
from ..validation import Array, IntArray


@dataclass(frozen=True)
class Residuals:
    """Leave-one-out residuals: each observation minus its prediction from all others, in standard deviations.

    Attributes
    ----------
    sources : (N,) array
        The source of each observation.
    X : (N, D) array
        Its location.
    z : (N,) array
        Its standardised residual.
    """

    sources: IntArray
    X: Array
    z: Array

    def of(self, source: int) -> Array:
        """Return the standardised residuals of one source."""
        return np.asarray(self.z[self.sources == source])

    @property
    def span(self) -> float:
        """Half the length of an axis, centred at zero, on which all of them are visible."""
        return max(4.0, 1.1 * float(np.abs(self.z).max(initial=0.0)))


@dataclass(frozen=True)
class SourceWorth:
    """What a source was worth.

    Attributes
    ----------
    times_wider : float
        How many times wider the error bar would be without it.
    cost : float
        What its evaluations cost.
    share : float
        Their share of the total cost.
    """

    times_wider: float
    cost: float
    share: float

    @property
    def per_cost(self) -> float:
        """Reduction of the log variance of the integral for each unit of cost."""
        return 2 * math.log(max(self.times_wider, 1.0)) / self.cost if self.cost > 0 else math.inf


def residuals(posteriors: PosteriorBatch) -> Residuals:
    """Return leave-one-out residuals, averaged over posteriors with different hyperparameters."""
    data = posteriors.data
    mean, variance = averaged(posteriors.leave_one_out())
    return Residuals(data.s, data.X, (data.y - mean) / np.sqrt(variance))


def source_worths(it: Integrator, belief: Belief) -> dict[int, SourceWorth]:
    """Return what each source was worth that was evaluated and that the model uses, by its number."""
    total = it.spent or 1.0
    out = {}
    for source in sorted(set(belief.posteriors.data.s.tolist())):
        ratios = _variances_without(belief.posteriors, source) / belief.posteriors.integral()[1]
        cost = math.fsum(e.cost for e in it.evaluations if e.source == source)
        out[source] = SourceWorth(float(np.sqrt(np.mean(ratios))), cost, cost / total)
    return out


def _variances_without(posteriors: PosteriorBatch, source: int) -> Array:
    """Return the variance of the integral without the observations of a source, for each posterior: shape (K,)."""
    data = posteriors.data
    rest = data.rows(data.s != source)
    return PosteriorBatch.condition(posteriors.models, rest, posteriors.jitter).integral()[1]
