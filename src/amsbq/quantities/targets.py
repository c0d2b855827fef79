"""Targets: what evaluations are chosen to learn, if it is not the mean of the output.

To first order, the error of the variance or of an exceedance probability is a linear functional of the error of the
primary source f, a weighted sum over points x_i of the measure:

    variance:    V = Var f         dV = 2 ∫ (f - E f) df dπ                    ≈ Σ_i w_i df(x_i)
    exceedance:  P = Pr(f > c)     dP = ∫ p(f = c) df dπ, p(f = c) = φ((c - m)/s)/s

with the posterior mean m and standard deviation s. The error of a quantile is that of the probability to exceed it, by
a factor; which value that is, the posterior says. For the variance f is a draw from the posterior, another one after
each observation: the mean alone is flat where nothing is known, and would not look there. The sum takes the place of
the integral in the acquisition rates: what is maximised is the expected reduction of the variance of the target, for
what it costs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.special import ndtri

from ..gp.coregionalisation import ModelBatch
from ..gp.embeddings_numeric import EmpiricalEmbeddings
from ..gp.posterior_batch import PosteriorBatch
from ..inference.belief import Belief, averaged
from ..measures.base import Measure
from ..outputs.beliefs import OutputsBelief
from ..outputs.estimates import AnyEstimate
from ..ranges.belief import RangedBelief
from ..validation import Array, brief, number
from .distribution import OutputDistribution
from .ensemble import units_of


@dataclass(frozen=True)
class TargetSettings:
    """The sum that stands for a target."""

    points: int = 512  #: of the measure: as many as a search screens
    ranged_points: int = 192  #: of those that are put where a source of known range varies
    #: points next to a limit that count at least, however well the source is known there
    near_limit: int = 16


SETTINGS = TargetSettings()
_NORMAL = ndtri((np.arange(8) + 0.5) / 8)  # equally likely values that stand for a standard normal one


@dataclass(frozen=True)
class Exceedance:
    """The probability that the output is above a limit, as a target of a run.

    Parameters
    ----------
    limit : float
        In units of the output.

    Examples
    --------
    >>> import amsbq
    >>> result = amsbq.integrate(lambda x: x[0] ** 2, amsbq.Uniform(0, 1), budget=6, target=amsbq.Exceedance(0.81))
    >>> round(result.distribution().probability(above=0.81).mean, 2)
    0.1
    """

    limit: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", number(self.limit, "limit"))


@dataclass(frozen=True)
class Quantile:
    """A quantile of the output, as a target of a run.

    Parameters
    ----------
    p : float
        The probability to be below it, between 0 and 1.

    Examples
    --------
    >>> import amsbq
    >>> result = amsbq.integrate(lambda x: x[0] ** 2, amsbq.Uniform(0, 1), budget=6, target=amsbq.Quantile(0.9))
    >>> round(result.distribution().quantile(0.9).mean, 2)
    0.81
    """

    p: float

    def __post_init__(self) -> None:
        p = number(self.p, "p")
        if not 0 < p < 1:
            raise ValueError(f"p must be between 0 and 1, got {brief(self.p)}")
        object.__setattr__(self, "p", p)


#: what evaluations are chosen to learn
Target: TypeAlias = Literal["mean", "variance"] | Exceedance | Quantile
TARGETS = "'mean', 'variance', amsbq.Exceedance(limit) or amsbq.Quantile(p)"


def checked_target(target: Any, several: bool = False) -> Target:
    """Return a target if it is one, else raise ValueError; for several outputs it must be their means."""
    if several and target != "mean":
        raise ValueError(
            f"evaluations for several outputs are chosen to learn their means, got target {target!r}; leave it out, "
            "and result['name'].distribution() has variances and probabilities all the same"
        )
    if isinstance(target, Exceedance | Quantile) or target == "mean" or target == "variance":
        return target  # type: ignore[no-any-return]
    raise ValueError(f"target must be {TARGETS}, got {brief(target)}")


def target_to_dict(target: Target) -> str | dict[str, float]:
    """Return a target as JSON types."""
    if isinstance(target, Quantile):
        return {"quantile": target.p}
    return {"exceedance": target.limit} if isinstance(target, Exceedance) else target


def target_from_dict(content: Any) -> Target:
    """Return the target that `target_to_dict` wrote, or raise ValueError."""
    if isinstance(content, dict) and len(content) == 1:
        [(kind, value)] = content.items()
        if kind in ("exceedance", "quantile"):
            return Exceedance(value) if kind == "exceedance" else Quantile(value)
    return checked_target(content)


def target_estimate(belief: Belief | OutputsBelief, measure: Measure, target: Target) -> AnyEstimate:
    """Return what is known of the target; for all but the mean that takes a second or two."""
    if target == "mean" or isinstance(belief, OutputsBelief):  # several outputs have no other target
        return belief.estimate
    output = OutputDistribution(belief, measure)
    if isinstance(target, Quantile):
        return output.quantile(target.p)
    return output.probability(above=target.limit) if isinstance(target, Exceedance) else output.variance()


def targeted(posteriors: PosteriorBatch, belief: Belief, measure: Measure, target: Target) -> PosteriorBatch:
    """Return posteriors whose integral is that of the target, to first order; ``belief`` tells their units."""
    if (target == "mean" and not isinstance(belief, RangedBelief)) or isinstance(posteriors.models, _TargetedModels):
        return posteriors
    if isinstance(belief, RangedBelief):
        X, weights = _ranged_sum(posteriors, belief, target)
    else:
        X, weights = _weighted_points(posteriors, belief, measure, target)
    size = np.abs(weights).sum()
    if not size > 0:  # nothing is known to vary, or to be near the limit: the mean is the best that there is to learn
        return posteriors
    if posteriors.data.of_integral.any():  # known integrals are those over the measure
        data = posteriors.data.rows(~posteriors.data.of_integral)
        posteriors = PosteriorBatch.condition(posteriors.models, data, posteriors.jitter)
    old = posteriors.models
    points = _Points(measure.to_latent(X), weights / size, measure.categorical)
    trends = old.trends.averaged([points.weights @ kernel.functions(points.samples) for kernel in old.trends.kernels])
    models = _TargetedModels(old.measure, old.groups, old.constant, old.noise, old.mean, trends, points=points)
    return PosteriorBatch(models, posteriors.data, posteriors.factors, posteriors.beta, posteriors.jitter)


def _weighted_points(
    posteriors: PosteriorBatch, belief: Belief, measure: Measure, target: Target
) -> tuple[Array, Array]:
    """Return points x_i (n, D) and weights w_i (n,) of the sum that stands for a target other than the mean."""
    X = measure.sobol(SETTINGS.points, 0)
    if isinstance(target, Exceedance | Quantile):
        level, spread = units_of(belief)
        moments = averaged(posteriors.predict(0, X))
        if isinstance(target, Quantile):
            limit = _quantile(*moments, np.ones(len(X)), target.p)
        else:
            limit = (target.limit - level) / spread
        return X, _near_limit(*moments, limit)
    drawn = _drawn(posteriors, X)
    return X, drawn - drawn.mean()


def _ranged_sum(posteriors: PosteriorBatch, belief: RangedBelief, target: Target) -> tuple[Array, Array]:
    """Return points and weights of the sum over g that stands for a target of f = T(g), to first order in g."""
    scaled, (X, weights) = belief.scaled(0), belief.nodes.some(SETTINGS.ranged_points)
    if isinstance(target, Exceedance | Quantile):
        moments = averaged(posteriors.predict(0, X))
        if isinstance(target, Quantile):  # g grows with the distance from the bound
            limit = _quantile(*moments, weights, target.p if belief.transform.grows else 1 - target.p)
        else:
            limit = (float(belief.transform.to(np.array(target.limit))) - scaled.level) / scaled.spread
        return X, weights * _near_limit(*moments, limit)
    slopes = weights * scaled.slopes(posteriors, X)
    if target == "mean":
        return X, slopes
    drawn = scaled.back(_drawn(posteriors, X))
    return X, slopes * (drawn - weights @ drawn)


def _drawn(posteriors: PosteriorBatch, X: Array) -> Array:
    """Return the primary source at X as drawn from one of the posteriors, in turn, by the number of observations."""
    n = len(posteriors.data.values.y)
    one = posteriors.select(slice(n % len(posteriors), n % len(posteriors) + 1))
    means, covariances = one.predict_joint(np.zeros(len(X), dtype=np.intp), X)
    values, vectors = np.linalg.eigh(covariances[0])
    standard = np.random.default_rng(n).normal(size=len(X))
    return np.asarray(means[0] + (vectors * np.sqrt(np.maximum(values, 0.0))) @ standard)


def _quantile(mean: Array, variance: Array, weights: Array, p: float) -> float:
    """Return a quantile of values at points with weights, each normal with its mean and variance: (n,) each."""
    values = (mean + np.sqrt(variance) * _NORMAL[:, None]).ravel()
    order = np.argsort(values)
    below = np.cumsum(np.tile(weights, len(_NORMAL))[order])
    return float(values[order[np.searchsorted(below, p * below[-1])]])


def _near_limit(mean: Array, variance: Array, limit: float) -> Array:
    """Return the probability density of f(x_i) at a limit, smoothed so that some points count."""
    distances = np.abs(mean - limit)
    width2 = variance + np.partition(distances, SETTINGS.near_limit)[SETTINGS.near_limit] ** 2
    return np.asarray(np.exp(-0.5 * distances**2 / np.maximum(width2, np.finfo(float).tiny)) / np.sqrt(width2))


@dataclass(frozen=True)
class _Points:
    """Points in latent coordinates with weights of any sign, as `EmpiricalEmbeddings` take them."""

    samples: Array  # (M, D)
    weights: Array  # (M,)
    categorical: tuple[int, ...]


@dataclass(frozen=True)
class _TargetedModels(ModelBatch):
    """Models whose integral is a weighted sum over points instead of that over the measure."""

    points: _Points = field(kw_only=True)

    @property
    def mass(self) -> float:
        """The sum of the weights."""
        return float(self.points.weights.sum())

    @cached_property
    def embeddings(self) -> tuple[Any, ...]:
        """The sums of the kernels of each group over the points."""
        return tuple(
            _TargetEmbedding(group.kernel, group.flat_scales, self.points, self.measure) for group in self.groups
        )


class _TargetEmbedding:
    """Kernels with K sets of lengthscales, summed over points with weights: what `EmbeddingBatch` is for a measure."""

    def __init__(self, kernel: Any, scales: Array, points: _Points, measure: Measure) -> None:
        self._sums, self._measure = EmpiricalEmbeddings(kernel, scales, points), measure

    def mean(self, X: Array) -> Array:
        """Return Σ_i w_i κ_k(x_i, X_j), shape (K, n)."""
        return self._sums.mean(self._measure.to_latent(X))

    def mean_and_grad_x(self, X: Array) -> tuple[Array, Array]:
        """Return these sums and their derivatives by X_j, shape (K, n, D)."""
        slopes = self._measure.latent_slopes(X)
        means, gradients = self._sums.mean_and_grad_x(self._measure.to_latent(X))
        return means, gradients if slopes is None else gradients * slopes

    @property
    def variance(self) -> Array:
        """Σ_ij w_i w_j κ_k(x_i, x_j), shape (K,)."""
        return self._sums.variances
