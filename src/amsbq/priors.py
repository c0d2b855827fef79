"""Prior distributions of single hyperparameters, all on the whole real line.

Each knows its log density and gradient for many values at once, t (K, n) -> (K,) and (K, n); its quantiles, for draws;
its centre; and a box far beyond anything it believes in, inside of which numbers do not overflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, log, pi
from typing import Protocol

import numpy as np
from scipy.special import gammaincinv, ndtri, stdtrit

from .checks import Array


class Prior(Protocol):
    """What is believed of a number before the data."""

    @property
    def centre(self) -> float: ...
    @property
    def box(self) -> tuple[float, float]: ...
    def log_density_and_grad(self, t: Array) -> tuple[Array, Array]: ...
    def quantile(self, u: Array) -> Array: ...


@dataclass(frozen=True)
class Normal:
    centre: float
    spread: float

    @property
    def box(self) -> tuple[float, float]:
        return self.centre - 10 * self.spread, self.centre + 10 * self.spread

    def log_density_and_grad(self, t: Array) -> tuple[Array, Array]:
        z = (t - self.centre) / self.spread
        constant = log(self.spread) + 0.5 * log(2 * pi)
        return (-0.5 * z * z - constant).sum(axis=-1), -z / self.spread

    def quantile(self, u: Array) -> Array:
        return np.asarray(self.centre + self.spread * ndtri(u))


@dataclass(frozen=True)
class StudentT:
    """Like `Normal`, but what is far from the centre is only unlikely."""

    centre: float
    spread: float
    dof: float

    @property
    def box(self) -> tuple[float, float]:
        return self.centre - 40 * self.spread, self.centre + 40 * self.spread

    def log_density_and_grad(self, t: Array) -> tuple[Array, Array]:
        z, dof = (t - self.centre) / self.spread, self.dof
        constant = lgamma(dof / 2) - lgamma((dof + 1) / 2) + log(self.spread) + 0.5 * log(dof * pi)
        value = -0.5 * (dof + 1) * np.log1p(z * z / dof) - constant
        return value.sum(axis=-1), -(dof + 1) * z / (dof + z * z) / self.spread

    def quantile(self, u: Array) -> Array:
        return np.asarray(self.centre + self.spread * stdtrit(self.dof, u))


@dataclass(frozen=True)
class LogGamma:
    """Of t = log λ, where λ has a gamma distribution with the given mode and shape (larger is surer)."""

    mode: float
    shape: float

    @property
    def centre(self) -> float:
        return log(self.mode)

    @property
    def box(self) -> tuple[float, float]:
        return -7.0, 5.0

    def log_density_and_grad(self, t: Array) -> tuple[Array, Array]:
        ratio = np.exp(np.minimum(t, 50)) / self._scale  # far outside of the box, and finite
        value = self.shape * (t - log(self._scale)) - ratio - lgamma(self.shape)
        return value.sum(axis=-1), self.shape - ratio

    def quantile(self, u: Array) -> Array:
        return np.asarray(np.log(self._scale * gammaincinv(self.shape, u)))

    @property
    def _scale(self) -> float:
        return self.mode / (self.shape - 1)
