"""Averaging over model structures: how much each of them counts, and the distribution of the integral.

Weights are by stacking: those for which the mixture of the structures has the largest leave-one-out density of the
observations of the primary source. The evidence would be dominated by the many observations of cheap sources, while
the error of the integral comes from how these are related to the primary one.

The integral has a mixture of Student's t distributions, one for each draw of the hyperparameters of each structure:
heavy tails, and a little wider than the structures say, because all of them may be wrong.

Notation: M structures, n observations of the primary source, p_im the density of the i-th of them by structure m, if
all other observations are known.
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

    #: observations that the equal weights of the prior count for: few observations of the primary source do not decide
    prior_observations: float = 2.0
    #: a structure counts no more if all observations of the primary source together are so much less probable (in log
    #: density) than by the best one
    ruled_out: float = 10.0
    #: of the iteration for the weights: more change no weight by a percent
    iterations: int = 100
    tails: float = 4.0  #: degrees of freedom of the components of the distribution of the integral
    widened: float = 1.15  #: factor on the width of that distribution
    #: draws whose integral is so many half widths of the 95 % interval from its middle are left out: one of a few dozen
    #: stands for more than its share there, and would be most of the standard deviation
    farthest: float = 2.0
    #: observations of the primary source from which on it is also learned without the others, and by how much more
    #: probable (in log density) all of them together must be with others to count as much; more is asked of sources
    #: that cost next to nothing, of which there are observations wherever there is one of the primary source
    fewest_told: int = 3
    costly_tell: float = 1.0
    free_tell: float = 3.0


SETTINGS = AveragingSettings()


@dataclass(frozen=True)
class Member:
    """A structure with draws of its hyperparameters, and its weight in the average."""

    draws: HyperparameterDraws
    weight: float


def weighted(draws: Sequence[HyperparameterDraws]) -> tuple[Member, ...]:
    """Return structures with their weights, from draws of the hyperparameters of each on the same observations."""
    if len(draws) == 1:
        return (Member(draws[0], 1.0),)
    log_densities = _log_densities(draws)
    total = log_densities.sum(axis=0)
    left = total > total.max() - SETTINGS.ruled_out
    weights, n = np.zeros(len(draws)), np.count_nonzero(left)
    weights[left] = stacking_weights(log_densities[:, left], np.full(n, SETTINGS.prior_observations / n))
    return tuple(Member(*pair) for pair in zip(draws, weights.tolist(), strict=True))


def advantage(members: Sequence[Member], alone: Sequence[Member]) -> float:
    """Return by how much all primary values together are more probable with other sources than without, in log density.

    Each is left out in turn. Structures have different units, but densities are in those of the user.
    """
    with_others, without = (_log_densities([member.draws for member in some]) for some in (members, alone))
    return len(with_others) * (_mean_log_density(with_others) - _mean_log_density(without))


def _log_densities(draws: Sequence[HyperparameterDraws]) -> Array:
    """Return the log density of each primary value, in the units of the user, by each structure: shape (n, M)."""
    units = [some.log_posterior.units.spreads[0] for some in draws]
    return np.array([some.primary_log_densities - np.log(unit) for some, unit in zip(draws, units, strict=True)]).T


def _mean_log_density(log_densities: Array) -> float:
    """Return the log density of an observation by structures (n, M) together, averaged over observations."""
    M = log_densities.shape[1]
    weights = stacking_weights(log_densities, np.full(M, SETTINGS.prior_observations / M))
    return float(np.mean(logsumexp(log_densities, axis=1, b=weights)))


def effective_share(members: Sequence[Member]) -> float:
    """Return the effective number of draws as a share of all of them, averaged over the structures."""
    return sum(member.weight * member.draws.effective / len(member.draws) for member in members)


def stacking_weights(log_densities: Array, prior: Array) -> Array:
    """Return weights (M,) from log p (n, M): the maximum of Σ_i log Σ_m w_m p_im + Σ_m prior_m log w_m."""
    n, M = log_densities.shape
    density = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    weights = np.full(M, 1 / M)
    for _ in range(SETTINGS.iterations):
        shares = density * weights
        shares /= shares.sum(axis=1, keepdims=True)
        weights = (shares.sum(axis=0) + prior) / (n + prior.sum())
    return weights
