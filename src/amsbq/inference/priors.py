"""Prior distributions of single hyperparameters, all on the whole real line.

Each knows its log density and gradient for many values at once, t (K, n) -> (K,) and (K, n); its quantiles, for draws;
its centre and spread; and a box far beyond anything it believes in, inside of which numbers do not overflow.
"""

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
    """What is believed of a number before the data."""

    @property
    def centre(self) -> float: ...
    @property
    def spread(self) -> float: ...
    @property
    def box(self) -> tuple[float, float]: ...
    def log_density_and_grad(self, t: Array) -> tuple[Array, Array]: ...
    def quantile(self, u: Array) -> Array: ...


def stacked(priors: Sequence[Prior]) -> list[tuple[IntArray | slice, Prior]]:
    """Of independent numbers: those of the same kind as one, with arrays as parameters, and which numbers it is of."""
    out: list[tuple[IntArray | slice, Prior]] = []
    for kind in dict.fromkeys(type(prior) for prior in priors):
        at = [i for i, prior in enumerate(priors) if type(prior) is kind]
        parameters: Any = {f.name: np.array([getattr(priors[i], f.name) for i in at]) for f in fields(kind)}  # type: ignore[arg-type]
        together = at == list(range(at[0], at[-1] + 1))
        out.append((slice(at[0], at[-1] + 1) if together else np.array(at), kind(**parameters)))
    return out


@dataclass(frozen=True)
class Normal:
    centre: float
    spread: float

    @property
    def box(self) -> tuple[float, float]:
        return self.centre - 10 * self.spread, self.centre + 10 * self.spread

    def log_density_and_grad(self, t: Array) -> tuple[Array, Array]:
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
        value = -0.5 * (dof + 1) * np.log1p(z * z / dof) - self._constant
        return value.sum(axis=-1), -(dof + 1) * z / (dof + z * z) / self.spread

    @cached_property
    def _constant(self) -> Any:
        dof = self.dof
        return gammaln(dof / 2) - gammaln((dof + 1) / 2) + np.log(self.spread) + 0.5 * np.log(dof * pi)

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
    def spread(self) -> float:
        return float(np.sqrt(polygamma(1, self.shape)))

    @property
    def box(self) -> tuple[float, float]:
        return -7.0, 5.0

    def log_density_and_grad(self, t: Array) -> tuple[Array, Array]:
        ratio = np.exp(t) / self._scale
        return (self.shape * t - ratio - self._constant).sum(axis=-1), self.shape - ratio

    @cached_property
    def _constant(self) -> Any:
        return self.shape * np.log(self._scale) + gammaln(self.shape)

    def quantile(self, u: Array) -> Array:
        return np.asarray(np.log(self._scale * gammaincinv(self.shape, u)))

    @cached_property
    def _scale(self) -> Any:
        return self.mode / (self.shape - 1)
