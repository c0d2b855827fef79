"""Moments of f = T(g) and of its integral, if g is Gaussian.

With ξ = (g - m)/s and Hermite polynomials He_p, r = T(g) is Σ_p a_p He_p(ξ)/√p! with a_p = E[r He_p(ξ)]/√p!. Its mean
is a_0, and the covariance of r at two points whose g have correlation ρ is Σ_{p≥1} a_p a_p' ρ^p (Mehler). For the root
that is exact with p = 1, 2: m m' C + C²/2, with the covariance C of g, of which WSABI-L has the first part and WSABI-M
both (Gunter et al. 2014).

Notation: K posteriors, n points, all for g in standard units; R sets of points with weights w.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..gp.posterior_batch import PosteriorBatch
from ..validation import Array
from .nodes import Nodes
from .transforms import Transform


@dataclass(frozen=True)
class MomentSettings:
    """Sizes of sums."""

    nodes: int = 16  #: of the Gauss–Hermite rule: the log and the logit need them, the root is exact with three
    orders: int = 4  #: of Hermite polynomials; what they leave of the variance of r counts as one more
    points: int = 192  #: of one set, for the double sum of the variance of an integral


SETTINGS = MomentSettings()
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(SETTINGS.nodes)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_POLYNOMIALS = np.array(
    [
        np.polynomial.hermite_e.hermeval(_NODES, np.eye(SETTINGS.orders + 1)[p]) / math.sqrt(math.factorial(p))
        for p in range(SETTINGS.orders + 1)
    ]
)


def _at_nodes(means: Array, variances: Array) -> Array:
    """Return g at the nodes, for means and variances (K, n): shape (K, n, Q)."""
    return means[..., None] + np.sqrt(variances)[..., None] * _NODES


def outcomes(means: Array, variances: Array) -> tuple[Array, Array, Array]:
    """Return nodes of the average over posteriors with means and variances (K, n): g, its mean, and the weights.

    The first two have the shape (n, K Q).
    """
    g = _at_nodes(means, variances)
    K = len(g)
    return np.concatenate(list(g), axis=1), np.repeat(means.T, len(_NODES), axis=1), np.tile(_WEIGHTS / K, K)


@dataclass(frozen=True)
class Scaled:
    """A transform of processes in standard units: r = T(level + spread · g)."""

    transform: Transform
    level: float
    spread: float

    def coefficients(self, means: Array, variances: Array) -> Array:
        """Return a_p for g with means and variances (K, n): shape (P + 1, K, n)."""
        r, _ = self._outcomes(means, variances)
        return np.moveaxis(r @ (_POLYNOMIALS * _WEIGHTS).T, -1, 0)

    def mean_and_variance(self, means: Array, variances: Array) -> tuple[Array, Array]:
        """Return mean and variance of r for g with means and variances (K, n), shape (K, n) each."""
        r, weights = self._outcomes(means, variances)
        mean = r @ weights
        return mean, ((r - mean[..., None]) ** 2) @ weights

    def back(self, g: Array) -> Array:
        """Return the relative distance r from the bound for any g in standard units."""
        return self.transform.back(self.level + self.spread * g)

    def _outcomes(self, means: Array, variances: Array) -> tuple[Array, Array]:
        """Return r for each node of g with means and variances (K, n), shape (K, n, Q), and the weights (Q,)."""
        return self.outcome(_at_nodes(means, variances), means[..., None]), _WEIGHTS

    def outcome(self, g: Array, mean: Array) -> Array:
        """Return r for g in standard units, of which the mean is known: a linearised transform is linear around it."""
        if not self.transform.linearised:
            return self.back(g)
        at = self.level + self.spread * mean
        return np.asarray(self.transform.back(at) + self.transform.slope(at) * self.spread * (g - mean))

    def log_moments(self, means: Array, variances: Array) -> tuple[Array, Array]:
        """Return mean and variance of log r for g with means and variances (K, n), shape (K, n) each."""
        logs = self.transform.log_back(self.level + self.spread * _at_nodes(means, variances))
        mean = logs @ _WEIGHTS
        return mean, ((logs - mean[..., None]) ** 2) @ _WEIGHTS

    def variation(self, posteriors: PosteriorBatch, X: Array) -> Array:
        """Return how much larger r is than anywhere, and how unknown, averaged over posteriors: shape (n,)."""
        mean, variance = self.mean_and_variance(*posteriors.predict(0, X))
        return np.asarray((np.abs(mean - mean.min(axis=1, keepdims=True)) + np.sqrt(variance)).mean(axis=0))

    def slopes(self, posteriors: PosteriorBatch, X: Array) -> Array:
        """Return E[dr/dg], averaged over posteriors: the derivative of the mean of r by that of g, shape (n,)."""
        means, variances = posteriors.predict(0, X)
        floor = np.finfo(float).tiny
        return np.asarray((self.coefficients(means, variances)[1] / np.sqrt(np.maximum(variances, floor))).mean(axis=0))

    def integral(self, posteriors: PosteriorBatch, nodes: Nodes, source: int = 0) -> tuple[Array, Array]:
        """Return mean and variance of the integral of r by each posterior, with the error of the sums: (K,) each."""
        r, weights = self._outcomes(*posteriors.predict(source, nodes.X))
        mean, error = nodes.averages(r @ weights)
        return mean, self._variance(posteriors, nodes, source) + error

    def _variance(self, posteriors: PosteriorBatch, nodes: Nodes, source: int) -> Array:
        """Return the variance of the integral of r by each posterior, shape (K,)."""
        X, w = nodes.some(SETTINGS.points)
        found = np.empty(len(posteriors))
        for k in range(len(posteriors)):
            means, covariances = posteriors.select(slice(k, k + 1)).predict_joint(np.full(len(X), source), X)
            variances = np.maximum(np.diagonal(covariances[0]), np.finfo(float).tiny)[None]
            a = self.coefficients(means, variances)[1:, 0]
            left = self.mean_and_variance(means, variances)[1][0] - (a**2).sum(axis=0)
            std = np.sqrt(variances[0])
            rho = np.clip(covariances[0] / std[:, None] / std, -1.0, 1.0)
            power, total = rho, 0.0
            for order in (*a, np.sqrt(np.maximum(left, 0.0))):
                total += (w * order) @ power @ (w * order)
                power = power * rho
            found[k] = max(total, 0.0)
        return found
