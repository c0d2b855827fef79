"""Averaging over model structures: the weight of each structure, and how far error bars go beyond their posteriors.

Structures are stacked: the weights maximise the leave-one-out density of the primary values under their mixture.
The evidence would be dominated by the many values of cheap sources, while the error of the integral depends on how
these are related to the primary one.

The integral has a mixture of Student's t distributions, one for each draw of each structure: heavy-tailed and a little
wider than the posteriors, because all structures may be wrong.

Notation: M structures, n observations of the primary source, p_im the density of the i-th of these given all other
observations, according to structure m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from ..common.validation import Array
from .sampling import HyperparameterDraws


@dataclass(frozen=True)
class AveragingSettings:
    """How structures are weighted, and how far error bars go beyond their posteriors.

    Chosen on the development problems of docs/arena.md.
    """

    #: weight of the prior of equal weights, as a number of observations: a few primary values alone do not decide
    prior_observations: float = 2.0
    #: a structure is ruled out if the log density of all primary values together is lower by this much than for the
    #: best one
    ruled_out: float = 10.0
    #: steps of the EM iteration for the weights: more of them would change no weight by a percent
    iterations: int = 100
    tails: float = 4.0  #: degrees of freedom of the components of the integral's distribution
    widened: float = 1.15  #: factor on the width of that distribution
    #: draws whose integral is more than this many half widths of the 95 % interval from its middle are left out: one of
    #: a few dozen draws is overweighted there, and would make up most of the standard deviation
    farthest: float = 2.0
    #: minimum number of primary values with which the primary source is also learned alone
    fewest_primary: int = 3
    #: minimum gain, in the log density of all primary values together, for which the model with secondary sources
    #: counts as much as the one without. It is larger if these cost next to nothing, because every primary value is
    #: then accompanied by theirs
    least_gain: float = 1.0
    least_gain_free: float = 3.0


SETTINGS = AveragingSettings()


@dataclass(frozen=True)
class Member:
    """A structure: draws of its hyperparameters, and its weight in the average."""

    draws: HyperparameterDraws
    weight: float


def weighted(draws: Sequence[HyperparameterDraws]) -> tuple[Member, ...]:
    """Return the structures with their weights, from draws for each, all conditioned on the same observations."""
    if len(draws) == 1:
        return (Member(draws[0], 1.0),)
    log_densities = _log_densities(draws)
    total = log_densities.sum(axis=0)
    left = total > total.max() - SETTINGS.ruled_out
    weights, n = np.zeros(len(draws)), np.count_nonzero(left)
    weights[left] = stacking_weights(log_densities[:, left], np.full(n, SETTINGS.prior_observations / n))
    return tuple(Member(*pair) for pair in zip(draws, weights.tolist(), strict=True))


def advantage(members: Sequence[Member], alone: Sequence[Member]) -> float:
    """Return the increase of the log density of all primary values due to the other sources.

    Each value is predicted from all other observations. Densities are in the user's units, because the standard units
    of structures differ.
    """
    with_others, without = (_log_densities([member.draws for member in some]) for some in (members, alone))
    return len(with_others) * (_mean_log_density(with_others) - _mean_log_density(without))


def _log_densities(draws: Sequence[HyperparameterDraws]) -> Array:
    """Return the log density of each primary value by each structure, in the user's units: shape (n, M)."""
    units = [some.log_posterior.units.spreads[0] for some in draws]
    return np.array([some.primary_log_densities - np.log(unit) for some, unit in zip(draws, units, strict=True)]).T


def _mean_log_density(log_densities: Array) -> float:
    """Return the log density under the mixture of structures, averaged over observations, from those of each (n, M)."""
    M = log_densities.shape[1]
    weights = stacking_weights(log_densities, np.full(M, SETTINGS.prior_observations / M))
    return float(np.mean(logsumexp(log_densities, axis=1, b=weights)))


def effective_share(members: Sequence[Member]) -> float:
    """Return the effective number of draws as a share of their number, averaged over structures."""
    return sum(member.weight * member.draws.effective / len(member.draws) for member in members)


def stacking_weights(log_densities: Array, prior: Array) -> Array:
    """Return the weights (M,) that maximise Σ_i log Σ_m w_m p_im + Σ_m prior_m log w_m, from log p (n, M)."""
    n, M = log_densities.shape
    density = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    weights = np.full(M, 1 / M)
    for _ in range(SETTINGS.iterations):
        shares = density * weights
        shares /= shares.sum(axis=1, keepdims=True)
        weights = (shares.sum(axis=0) + prior) / (n + prior.sum())
    return weights
