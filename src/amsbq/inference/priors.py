"""Prior distributions of single hyperparameters, all on the whole real line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import log, pi
from typing import Any, Protocol

import numpy as np
from scipy.special import gammaincinv, gammaln, ndtri, polygamma, stdtrit

from ..validation import Array, IntArray


class Prior(Protocol):
    """The prior distribution of a number, or of n independent numbers if its parameters are arrays."""

    @property
    def centre(self) -> float:
        """A typical value, from which searches start."""

    @property
    def spread(self) -> float:
        """The scale: the standard deviation, or the scale parameter of a heavy-tailed prior."""

    @property
    def box(self) -> tuple[float, float]:
        """An interval far beyond where the density is, inside of which numbers do not overflow."""

    def log_density_and_grad(self, t: Array) -> tuple[Array, Array]:
        """Return the log density of K vectors t (K, n), shape (K,), and its gradient, shape (K, n)."""

    def quantile(self, u: Array) -> Array:
        """Return the quantiles at probabilities u."""


def stacked(priors: Sequence[Prior]) -> list[tuple[IntArray | slice, Prior]]:
    """Return priors of independent numbers as one per kind, with arrays as parameters, each with its columns."""
    out: list[tuple[IntArray | slice, Prior]] = []
    for kind in dict.fromkeys(type(prior) for prior in priors):
        at = [i for i, prior in enumerate(priors) if type(prior) is kind]
        parameters: Any = {f.name: np.array([getattr(priors[i], f.name) for i in at]) for f in fields(kind)}  # type: ignore[arg-type]
        together = at == list(range(at[0], at[-1] + 1))
        out.append((slice(at[0], at[-1] + 1) if together else np.array(at), kind(**parameters)))
    return out


@dataclass(frozen=True)
class Normal:
    """A normal distribution."""

    centre: float
    spread: float

    @property
    def box(self) -> tuple[float, float]:
        """An interval far beyond where the density is."""
        return self.centre - 10 * self.spread, self.centre + 10 * self.spread

    def log_density_and_grad(self, t: Array) -> tuple[Array, Array]:
        """Return the log density of K vectors t (K, n), shape (K,), and its gradient, shape (K, n)."""
        away = t - self.centre
        slope = away * self._curvature
        return (0.5 * away * slope - self._constant).sum(axis=-1), slope

    @cached_property
    def _curvature(self) -> Any:
        return -(self.spread**-2.0)

    @cached_property
    def _constant(self) -> Any:
        return np.log(self.spread) + 0.5 * log(2 * pi)

    def quantile(self, u: Array) -> Array:
        """Return the quantiles at probabilities u."""
        return np.asarray(self.centre + self.spread * ndtri(u))


@dataclass(frozen=True)
class StudentT:
    """Student's t distribution: like `Normal`, with heavy tails."""

    centre: float
    spread: float
    dof: float

    @property
    def box(self) -> tuple[float, float]:
        """An interval far beyond where the density is."""
        return self.centre - 40 * self.spread, self.centre + 40 * self.spread

    def log_density_and_grad(self, t: Array) -> tuple[Array, Array]:
        """Return the log density of K vectors t (K, n), shape (K,), and its gradient, shape (K, n)."""
        z, dof = (t - self.centre) / self.spread, self.dof
        value = -0.5 * (dof + 1) * np.log1p(z * z / dof) - self._constant
        return value.sum(axis=-1), -(dof + 1) * z / (dof + z * z) / self.spread

    @cached_property
    def _constant(self) -> Any:
        dof = self.dof
        return gammaln(dof / 2) - gammaln((dof + 1) / 2) + np.log(self.spread) + 0.5 * np.log(dof * pi)

    def quantile(self, u: Array) -> Array:
        """Return the quantiles at probabilities u."""
        return np.asarray(self.centre + self.spread * stdtrit(self.dof, u))


@dataclass(frozen=True)
class LogGamma:
    """The distribution of t = log λ, where λ has a gamma distribution with the given mode and shape."""

    mode: float
    shape: float

    @property
    def centre(self) -> float:
        """The logarithm of the mode of λ."""
        return log(self.mode)

    @property
    def spread(self) -> float:
        """The standard deviation of log λ."""
        return float(np.sqrt(polygamma(1, self.shape)))

    @property
    def box(self) -> tuple[float, float]:
        """An interval far beyond where the density is."""
        return -7.0, 5.0

    def log_density_and_grad(self, t: Array) -> tuple[Array, Array]:
        """Return the log density of K vectors t (K, n), shape (K,), and its gradient, shape (K, n)."""
        ratio = np.exp(t) / self._scale
        return (self.shape * t - ratio - self._constant).sum(axis=-1), self.shape - ratio

    @cached_property
    def _constant(self) -> Any:
        return self.shape * np.log(self._scale) + gammaln(self.shape)

    def quantile(self, u: Array) -> Array:
        """Return the quantiles at probabilities u."""
        return np.asarray(np.log(self._scale * gammaincinv(self.shape, u)))

    @cached_property
    def _scale(self) -> Any:
        return self.mode / (self.shape - 1)
