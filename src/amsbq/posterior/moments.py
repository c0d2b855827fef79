"""Moments of f = T(g) and of its integral, for Gaussian g.

With ξ = (g - m)/s and Hermite polynomials He_p, r = T(g) is Σ_p a_p He_p(ξ)/√p! with a_p = E[r He_p(ξ)]/√p!. Its mean
is a_0, and the covariance of r at two points whose g have correlation ρ is Σ_{p≥1} a_p a_p' ρ^p (Mehler). For the root,
two orders are exact: m m' C + C²/2 with the covariance C of g; WSABI-L has the first term, WSABI-M both (Gunter et al.
2014).

Notation: K members, n points, all for g in standard units; R sets of points with weights w.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..common.validation import Array
from .latent import Latent
from .nodes import Nodes
from .transforms import Transform


@dataclass(frozen=True)
class MomentSettings:
    """Sizes of sums."""

    nodes: int = 16  #: nodes of the Gauss–Hermite rule: log and logit need them, the root is exact with three
    orders: int = 4  #: orders of Hermite polynomials; the remaining variance of r counts as one more order
    points: int = 192  #: points of one set in the double sum of an integral's variance


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
    """Return nodes of mixtures of K Gaussians with means and variances (K, n): g, its mean, and weights (K Q,).

    The first two have shape (n, K Q).
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
        """Return r for g in standard units with a known mean, around which a linearised transform is linear."""
        if not self.transform.linearised:
            return self.back(g)
        at = self.level + self.spread * mean
        return np.asarray(self.transform.back(at) + self.transform.slope(at) * self.spread * (g - mean))

    def log_moments(self, means: Array, variances: Array) -> tuple[Array, Array]:
        """Return mean and variance of log r for g with means and variances (K, n), shape (K, n) each."""
        logs = self.transform.log_back(self.level + self.spread * _at_nodes(means, variances))
        mean = logs @ _WEIGHTS
        return mean, ((logs - mean[..., None]) ** 2) @ _WEIGHTS

    def variation(self, latent: Latent, X: Array, factors: Array) -> Array:
        """Return the height of r · ``factors`` above its minimum plus its uncertainty, averaged over members: (n,)."""
        moments = latent.predict(latent.target, X)
        mean, variance = self.mean_and_variance(*moments)
        mean, std = mean * factors, np.sqrt(variance) * factors
        return np.asarray(latent.weights @ (np.abs(mean - mean.min(axis=1, keepdims=True)) + std))

    def slopes(self, latent: Latent, source: int, X: Array) -> Array:
        """Return E[dr/dg] of a source at X, averaged over members: shape (n,)."""
        means, variances = latent.predict(source, X)
        floor = np.finfo(float).tiny
        slopes = self.coefficients(means, variances)[1] / np.sqrt(np.maximum(variances, floor))
        return np.asarray(latent.weights @ slopes)

    def integral(self, latent: Latent, nodes: Nodes, source: int, most: int = SETTINGS.points) -> tuple[Array, Array]:
        """Return mean and variance of the integral of r by each member, including errors of the sums: (K,) each.

        The variance is a double sum over at most ``most`` of the nodes.
        """
        mean, error = self._averages(latent, nodes, source)
        return mean, self._variance(latent, nodes, source, most)[0] + error

    def linearised(self, latent: Latent, nodes: Nodes, source: int) -> tuple[Array, Array, float, float]:
        """Return the integral of r to first order in g, around its mean: Σ_i b_i g(X_i) + constant.

        Returns points X (n, D), b (n,), the constant, and the variance of the remainder, averaged over members. The
        constant is such that the mean is that of all nodes: the few points are for deviations from it.
        """
        X, w = nodes.some(SETTINGS.points)
        means, _ = latent.predict(source, X)
        b = w * self.slopes(latent, source, X)
        mean, error = self._averages(latent, nodes, source)
        constant = float(latent.weights @ mean - b @ (latent.weights @ means))
        total, linear = self._variance(latent, nodes, source, SETTINGS.points)
        return X, b, constant, float(latent.weights @ (total - linear + error))

    def _averages(self, latent: Latent, nodes: Nodes, source: int) -> tuple[Array, Array]:
        """Return the mean of the integral of r by each member, and the error variance of its sum: (K,) each."""
        r, weights = self._outcomes(*latent.predict(source, nodes.X))
        return nodes.averages(r @ weights)

    def _variance(self, latent: Latent, nodes: Nodes, source: int, most: int) -> tuple[Array, Array]:
        """Return the variance of the integral of r by each member, and its part that is linear in g: (K,) each."""
        X, w = nodes.some(most)
        means, covariances = latent.predict_joint(np.full(len(X), source), X)
        variances = np.maximum(np.einsum("kii->ki", covariances), np.finfo(float).tiny)
        a = self.coefficients(means, variances)[1:]
        left = self.mean_and_variance(means, variances)[1] - (a**2).sum(axis=0)
        std = np.sqrt(variances)
        rho = np.clip(covariances / std[:, :, None] / std[:, None, :], -1.0, 1.0)
        power, parts = rho.copy(), []
        for order in (*a, np.sqrt(np.maximum(left, 0.0))):
            weighted = w * order
            parts.append((weighted[:, None] @ power @ weighted[:, :, None])[:, 0, 0])
            power *= rho
        return np.maximum(np.sum(parts, axis=0), 0.0), np.maximum(parts[0], 0.0)
