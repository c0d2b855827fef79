"""Priors of hyperparameters: kinds of distributions, on the real line unless stated otherwise, and those in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import log, pi
from typing import Any, Protocol

import numpy as np
from scipy.special import gammaincinv, gammaln, ndtri, polygamma, stdtrit

from ..common.validation import Array, IntArray


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
        """An interval far beyond where the density is, inside which numbers do not overflow."""

    def log_density_and_grad(self, t: Array) -> tuple[Array, Array]:
        """Return the log density of K vectors t (K, n), shape (K,), and its gradient, shape (K, n)."""

    def quantile(self, u: Array) -> Array:
        """Return the quantiles at probabilities u."""


def stacked(priors: Sequence[Prior]) -> list[tuple[IntArray | slice, Prior]]:
    """Join priors of independent numbers into one per kind, with arrays as parameters; return each with its columns."""
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
class Gamma:
    """A gamma distribution of a positive number, by its mode and shape."""

    mode: float
    shape: float

    @property
    def centre(self) -> float:
        """The mode."""
        return self.mode

    @property
    def spread(self) -> float:
        """The standard deviation."""
        return float(self._scale * np.sqrt(self.shape))

    @property
    def box(self) -> tuple[float, float]:
        """An interval from near zero to far beyond where the density is."""
        return 1e-3 * self.mode, 10 * self.mode

    def log_density_and_grad(self, t: Array) -> tuple[Array, Array]:
        """Return the log density of K vectors t (K, n), shape (K,), and its gradient, shape (K, n)."""
        value = (self.shape - 1) * np.log(t) - t / self._scale - self._constant
        return value.sum(axis=-1), (self.shape - 1) / t - 1 / self._scale

    @cached_property
    def _constant(self) -> Any:
        return self.shape * np.log(self._scale) + gammaln(self.shape)

    def quantile(self, u: Array) -> Array:
        """Return the quantiles at probabilities u."""
        return np.asarray(self._scale * gammaincinv(self.shape, u))

    @cached_property
    def _scale(self) -> Any:
        return self.mode / (self.shape - 1)


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


def lengthscale(fraction: float, dim: int) -> LogGamma:
    """Return the prior of log λ: it grows with the root of the number of inputs, as distances between points do."""
    return LogGamma(fraction * dim**0.5, 3.0)


def wide_lengthscale(fraction: float, dim: int) -> Normal:
    """Return a much wider prior of log λ, which allows for inputs that hardly matter or have a linear effect."""
    return Normal(float(np.log(1.3 * fraction * dim**0.5)), 0.9)


@dataclass(frozen=True)
class RelationPriors:
    """Priors of the relations between sources in a chain and in a star."""

    #: log amplitude, in units of the spread of the observations
    amplitude: StudentT = field(default_factory=lambda: StudentT(0.0, 0.7, 4.0))
    #: log variance of the slow process relative to the fast one
    gain: Normal = field(default_factory=lambda: Normal(0.0, 2.0))
    #: log ρ_l: most sources have the same scale
    rho: StudentT = field(default_factory=lambda: StudentT(0.0, 0.25, 4.0))
    #: log variance of a difference, in a chain of the coarsest one, relative to the shared processes. It is not wider:
    #: the few observations that show a difference by itself would then allow for one of almost zero
    difference: Normal = field(default_factory=lambda: Normal(-2.0, 1.5))
    #: log ratio of the variances of a difference and of the next coarser one in a chain: the average over levels
    refinement: Normal = field(default_factory=lambda: Normal(-2.0, 1.5))
    step: Normal = field(default_factory=lambda: Normal(0.0, 0.7))  #: and the deviation of each ratio from that average
    start: float = -2.0  #: offset of search starts from the centre of `difference`: sources nearly agree there


PRIORS = RelationPriors()
SHARED = (0.2, 0.7)  #: typical lengthscales of the fast and the slow process, as fractions of the width of an input
DIFFERENCE = 0.5  #: the typical lengthscale of differences between sources
TREND = 1.0  #: variance of a linear trend in a chain, relative to that of its process or difference


@dataclass(frozen=True)
class RefinementPriors:
    """Priors of errors that shrink like h^p as a knob h tends to zero."""

    exponent: Gamma = field(default_factory=lambda: Gamma(1.5, 5.0))  #: p of the leading part: 95 % from 0.6 to 3.8
    #: log variance of an error at the coarsest level, relative to the shared processes
    difference: Normal = field(default_factory=lambda: Normal(-2.0, 1.5))
    #: log variance of the rest relative to the leading part
    rest: Normal = field(default_factory=lambda: Normal(-3.0, 2.0))
    faster: Normal = field(default_factory=lambda: Normal(1.0, 0.5))  #: excess of the exponent of the rest
    decay: float = 1.0  #: rate at which the correlation between the rests of two levels decays with |log h - log h'|
    constant: float = 1.0  #: variance of a constant in an error, relative to its varying part
    #: exponent of a knob in noise variances: 0 for the width of a cell, 1 for 1/particles
    noise: Normal = field(default_factory=lambda: Normal(0.5, 0.5))
    scatter: float = 0.3  #: standard deviation of log reported noise variances around that power law
    #: maximum number of sources for which a chain, with hyperparameters for each of them, is also used
    few: int = 6


REFINEMENT = RefinementPriors()
