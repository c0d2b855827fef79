"""Priors of hyperparameters: kinds of distributions, on the whole real line if not said otherwise; and those in use."""

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
class Gamma:
    """A gamma distribution with the given mode and shape, of a positive number."""

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
        """An interval that ends near zero, and far beyond where the density is."""
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
    """Return the prior of a lengthscale: distances between points grow with the root of the number of inputs."""
    return LogGamma(fraction * dim**0.5, 3.0)


def wide_lengthscale(fraction: float, dim: int) -> Normal:
    """Return a prior of log λ that reaches much further: to inputs that hardly matter, or matter in a linear way."""
    return Normal(float(np.log(1.3 * fraction * dim**0.5)), 0.9)


@dataclass(frozen=True)
class RelationPriors:
    """Priors of how sources are related in a chain and in a star."""

    #: log amplitude, in units of the spread of the observations
    amplitude: StudentT = field(default_factory=lambda: StudentT(0.0, 0.7, 4.0))
    gain: Normal = field(default_factory=lambda: Normal(0.0, 2.0))  #: log variance of the slow process by the fast one
    rho: StudentT = field(default_factory=lambda: StudentT(0.0, 0.25, 4.0))  #: log ρ_l: sources mostly have one scale
    #: log variance of a difference beside that of the processes that are shared; of the coarsest one in a chain. It is
    #: not wider, because the few observations that have it to themselves would then show a difference of almost zero
    difference: Normal = field(default_factory=lambda: Normal(-2.0, 1.5))
    #: in a chain, the log of how much smaller the variance of a difference is than that of the next coarser one: on the
    #: average over levels, ...
    refinement: Normal = field(default_factory=lambda: Normal(-2.0, 1.5))
    step: Normal = field(default_factory=lambda: Normal(0.0, 0.7))  #: ... and how much each of them departs from it
    start: float = -2.0  #: where searches start from the centre of `difference`: as if sources almost agreed


PRIORS = RelationPriors()
SHARED = (0.2, 0.7)  #: typical lengthscales of the fast and the slow process, as fractions of the width of an input
DIFFERENCE = 0.5  #: and of differences between sources
TREND = 1.0  #: variance of a linear trend in a chain, relative to that of the process or difference that has it


@dataclass(frozen=True)
class RefinementPriors:
    """Priors of errors that shrink like h^p as a knob h tends to zero."""

    exponent: Gamma = field(default_factory=lambda: Gamma(1.5, 5.0))  #: p, of the leading part: 95 % from 0.6 to 3.8
    #: log variance of an error at the coarsest level, beside that of the processes that are shared
    difference: Normal = field(default_factory=lambda: Normal(-2.0, 1.5))
    rest: Normal = field(default_factory=lambda: Normal(-3.0, 2.0))  #: log variance of the rest beside the leading part
    faster: Normal = field(default_factory=lambda: Normal(1.0, 0.5))  #: by how much the exponent of the rest is larger
    decay: float = 1.0  #: of the correlation of the rest of two levels with |log h - log h'|
    constant: float = 1.0  #: variance of a constant in an error, relative to that of what varies
    #: power of a knob that noise variances are proportional to: 0 for the width of a cell, 1 for 1/particles
    noise: Normal = field(default_factory=lambda: Normal(0.5, 0.5))
    scatter: float = 0.3  #: of the log of reported noise variances around such a power law
    #: sources up to which a chain, with hyperparameters for each of them, is tried as well
    few: int = 6


REFINEMENT = RefinementPriors()
