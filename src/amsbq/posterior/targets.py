"""Targets: what evaluations are chosen to learn, if not the mean of the output.

To first order, the error of the variance or of an exceedance probability is a linear functional of the error of the
primary source f, a weighted sum over points x_i of the measure:

    variance:    V = Var f         dV = 2 ∫ (f - E f) df dπ                    ≈ Σ_i w_i df(x_i)
    exceedance:  P = Pr(f > c)     dP = ∫ p(f = c) df dπ, p(f = c) = φ((c - m)/s)/s

with the posterior mean m and standard deviation s. The error of a quantile is that of the probability of exceeding it,
times a factor; the quantile is that of the posterior. For the variance, f is a draw from the posterior, a new one after
each observation: the mean is flat in unexplored regions, and would not lead there. The sum replaces the integral in the
acquisition rates, which then maximise the expected reduction of the target's variance per unit of cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.special import ndtri

from ..common.validation import Array, brief, number
from ..gp.posterior_batch import PosteriorBatch
from .component import Component
from .distribution import OutputDistribution
from .estimate import Estimate
from .estimates import AnyEstimate, Estimates
from .latent import Latent, averaged
from .outputs import by_output
from .posterior import Deciding, Posterior
from .sums import summed_over


@dataclass(frozen=True)
class TargetSettings:
    """The sum that represents a target."""

    points: int = 512  #: points of the measure: as many as a search screens
    ranged_points: int = 192  #: points where a source of known range varies
    #: minimum number of points near a limit that count, however certain the source is there
    near_limit: int = 16


SETTINGS = TargetSettings()
_NORMAL = ndtri((np.arange(8) + 0.5) / 8)  # equally likely values that represent a standard normal one


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
        The probability of being below it, between 0 and 1.

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


def checked_target(target: Any) -> Target:
    """Return the target, or raise ValueError if it is not a valid one."""
    if isinstance(target, Exceedance | Quantile) or target == "mean" or target == "variance":
        return target  # type: ignore[no-any-return]
    raise ValueError(f"target must be {TARGETS}, got {brief(target)}")


def checked_targets(target: Any, outputs: Sequence[str] | None) -> list[Target]:
    """Return the target of each output, or of the only output; outputs missing from a dictionary have the mean."""
    if outputs is None:
        return [checked_target(target)]
    return ["mean" if each is None else checked_target(each) for each in by_output(target, outputs)]


def targets_to_json(targets: Sequence[Target], outputs: Sequence[str] | None) -> Any:
    """Return targets in JSON-serialisable form: a single one if all are equal, otherwise a list."""
    plain = [_to_dict(target) for target in targets]
    return plain[0] if outputs is None or all(each == plain[0] for each in plain) else plain


def targets_from_json(content: Any, outputs: Sequence[str] | None) -> Any:
    """Return the result of `targets_to_json` in the form that `checked_targets` takes, or raise ValueError."""
    if isinstance(content, list):
        return dict(zip(outputs or (), map(target_from_dict, content), strict=True))
    return target_from_dict(content)


def _to_dict(target: Target) -> str | dict[str, float]:
    if isinstance(target, Quantile):
        return {"quantile": target.p}
    return {"exceedance": target.limit} if isinstance(target, Exceedance) else target


def target_from_dict(content: Any) -> Target:
    """Return the target from its JSON form, or raise ValueError."""
    if isinstance(content, dict) and len(content) == 1:
        [(kind, value)] = content.items()
        if kind in ("exceedance", "quantile"):
            return Exceedance(value) if kind == "exceedance" else Quantile(value)
    return checked_target(content)


def target_name(target: Target, output: str = "output", unit: str = "") -> str:
    """Return the name of a target, for an output with a unit; a mean has the name of the output.

    >>> target_name(Exceedance(2.0), unit="m"), target_name(Quantile(0.95), "peak"), target_name("variance")
    ('P(output > 2 m)', '95 % quantile of peak', 'variance of output')
    """
    if isinstance(target, Exceedance):
        return f"P({output} > {target.limit:g}{f' {unit}' if unit else ''})"
    if isinstance(target, Quantile):
        return f"{100 * target.p:g} % quantile of {output}"
    return f"variance of {output}" if target == "variance" else output


def target_estimate(posterior: Posterior, targets: Sequence[Target]) -> AnyEstimate:
    """Return the estimate of the target of each output; for all but the mean this takes a second or two."""
    if all(target == "mean" for target in targets):
        return posterior.estimate
    if posterior.names is None:
        return _target_estimate(posterior, targets[0])
    found = [
        _target_estimate(posterior[m], target) if known else Estimate.unknown()
        for m, (target, known) in enumerate(zip(targets, posterior.known, strict=True))
    ]
    return Estimates(found, posterior.names)


def _target_estimate(posterior: Posterior, target: Target) -> Estimate:
    if target == "mean":
        found: Estimate = posterior.estimate
        return found
    output = OutputDistribution(posterior)
    if isinstance(target, Quantile):
        return output.quantile(target.p)
    return output.probability(above=target.limit) if isinstance(target, Exceedance) else output.variance()


def targeted(deciding: Deciding, target: Target) -> PosteriorBatch:
    """Return the posteriors that decisions use, with the target, to first order, as their integral."""
    posteriors, component = deciding.posteriors, deciding.component
    if target == "mean" and component.transform.affine:
        return posteriors
    X, weights = _weighted_points(component, deciding.members, target)
    size = np.abs(weights).sum()
    if not size > 0:  # nothing varies yet, or is near the limit: learning the mean is best
        return posteriors
    if posteriors.data.of_integral.any():  # known integrals are over the measure
        data = posteriors.data.rows(~posteriors.data.of_integral)
        posteriors = PosteriorBatch.condition(posteriors.models, data, posteriors.jitter)
    models = summed_over(posteriors.models, X, weights / size, component.measure)
    return PosteriorBatch(models, posteriors.data, posteriors.factors, posteriors.beta, posteriors.jitter)


def _weighted_points(component: Component, members: Latent, target: Target) -> tuple[Array, Array]:
    """Return points x_i (n, D) and weights w_i (n,) of the sum over g that represents a target of f = T(g).

    Points are spread evenly if T is affine, otherwise denser where the source varies.
    """
    scaled, transform = component.scaled(members.target), component.transform
    if transform.affine:
        X = component.measure.sobol(SETTINGS.points, 0)
        weights = slopes = np.full(len(X), 1 / len(X))
    else:
        X, weights = component.with_factors(component.nodes, members.target).some(SETTINGS.ranged_points)
        slopes = weights * scaled.slopes(members, members.target, X)
    if target == "mean":
        return X, slopes
    if target == "variance":
        drawn = scaled.back(_drawn(members, X))
        return X, slopes * (drawn - weights @ drawn)
    moments = averaged(members.predict(members.target, X), members.weights)
    if isinstance(target, Quantile):  # g grows with the distance from the bound
        limit = _quantile(*moments, weights, target.p if transform.grows else 1 - target.p)
    else:
        limit = (float(transform.to(np.array(target.limit))) - scaled.level) / scaled.spread
    return X, weights * _near_limit(*moments, limit)


def _drawn(members: Latent, X: Array) -> Array:
    """Return the latent primary source at X (n, D), drawn from the posterior of one member.

    The number of observations determines the member and the random numbers.
    """
    n = len(members.parts[0].data.values.y)
    one = members.only(n % len(members))
    means, covariances = one.predict_joint(np.full(len(X), members.target), X)
    values, vectors = np.linalg.eigh(covariances[0])
    standard = np.random.default_rng(n).normal(size=len(X))
    return np.asarray(means[0] + (vectors * np.sqrt(np.maximum(values, 0.0))) @ standard)


def _quantile(mean: Array, variance: Array, weights: Array, p: float) -> float:
    """Return the p-quantile of a mixture of normals, one per weighted point, with means and variances (n,)."""
    values = (mean + np.sqrt(variance) * _NORMAL[:, None]).ravel()
    order = np.argsort(values)
    below = np.cumsum(np.tile(weights, len(_NORMAL))[order])
    return float(values[order[np.searchsorted(below, p * below[-1])]])


def _near_limit(mean: Array, variance: Array, limit: float) -> Array:
    """Return the probability density of f(x_i) at a limit, smoothed so that some points count."""
    distances = np.abs(mean - limit)
    width2 = variance + np.partition(distances, SETTINGS.near_limit)[SETTINGS.near_limit] ** 2
    return np.asarray(np.exp(-0.5 * distances**2 / np.maximum(width2, np.finfo(float).tiny)) / np.sqrt(width2))
