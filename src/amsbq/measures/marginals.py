"""One-dimensional marginals of measures with independent inputs, one class per way of integrating kernels.

For `UniformMarginal` and `NormalMarginal` there are closed forms, for `DiscreteMarginal` and `CategoricalMarginal`
sums. A `NumericMarginal` holds its density as piecewise polynomials, and a `TabulatedMarginal` also holds tables of
kernel means and variances for many lengthscales.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy

from ..common.validation import Array
from .approximation import approximate_density
from .discrete import DiscreteDistribution
from .distributions import Distribution, describe, is_named
from .piecewise import PiecewiseDensity


@dataclass(frozen=True)
class UniformMarginal:
    """The uniform distribution between two numbers."""

    low: float
    high: float

    @property
    def moments(self) -> tuple[float, float]:
        """The mean and the standard deviation."""
        return 0.5 * (self.low + self.high), (self.high - self.low) / 12**0.5


@dataclass(frozen=True)
class NormalMarginal:
    """The normal distribution with a given mean and standard deviation."""

    mean: float
    sd: float

    @property
    def moments(self) -> tuple[float, float]:
        """The mean and the standard deviation."""
        return self.mean, self.sd


@dataclass(frozen=True, eq=False)
class DiscreteMarginal:
    """A distribution on finitely many values."""

    values: Array  # (M,), ascending
    masses: Array  # (M,), which sum to one

    @cached_property
    def moments(self) -> tuple[float, float]:
        """The mean and the standard deviation."""
        return mean_and_sd(self.values, self.masses)


@dataclass(frozen=True, eq=False)
class CategoricalMarginal:
    """A distribution on the numbers 0 to M - 1 of unordered categories."""

    masses: Array  # (M,), which sum to one
    moments = (float("nan"), float("nan"))  #: there are none


class NumericMarginal:
    """Any other continuous distribution, with its density approximated by piecewise polynomials."""

    def __init__(self, density: PiecewiseDensity) -> None:
        self.density = density

    @cached_property
    def moments(self) -> tuple[float, float]:
        """The mean and the standard deviation of the approximated density; meaningless for heavy tails."""
        return mean_and_sd(*self.density.rule)

    @cached_property
    def tabulated(self) -> TabulatedMarginal:
        """The marginal with tables, for learning hyperparameters."""
        return TabulatedMarginal(self.density)


class TabulatedMarginal(NumericMarginal):
    """A marginal for many lengthscales: kernel means and variances are interpolated in tables."""

    def __init__(self, density: PiecewiseDensity) -> None:
        super().__init__(density)
        #: tables of kernel means and variances, by kernel and range of lengthscales; filled by the embedding
        self.tables: dict[Any, Array] = {}


Marginal: TypeAlias = UniformMarginal | NormalMarginal | DiscreteMarginal | CategoricalMarginal | NumericMarginal

#: Numeric marginals by the description of their distribution. A density takes between milliseconds (gamma) and half
#: a minute (one whose every value is an integral) to approximate, and filling its tables for learning takes a second.
_CACHE: dict[str, NumericMarginal] = {}

#: Size of this cache, which drops the oldest first: more than any problem has, in a few megabytes.
CACHE_SIZE = 64


def mean_and_sd(values: Array, masses: Array) -> tuple[float, float]:
    """Return the mean and the standard deviation of values (M,) with masses (M,); infinite where they overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(masses @ values / masses.sum())
        return mean, float(np.sqrt(masses @ (values - mean) ** 2 / masses.sum()))


def marginal_of(distribution: Distribution) -> Marginal:
    """Return the marginal of a checked distribution; equal named distributions share one object."""
    if isinstance(distribution, DiscreteDistribution):
        if distribution.labels:
            return CategoricalMarginal(distribution.masses)
        return DiscreteMarginal(distribution.values, distribution.masses)
    family: Any = getattr(distribution, "dist", None)
    if type(family) is type(scipy.stats.uniform):
        return UniformMarginal(*(float(end) for end in distribution.support()))
    if type(family) is type(scipy.stats.norm):
        normal: Any = distribution
        return NormalMarginal(float(normal.mean()), float(normal.std()))
    if not is_named(distribution):
        return NumericMarginal(approximate_density(distribution))
    name = describe(distribution)
    if name not in _CACHE:
        if len(_CACHE) >= CACHE_SIZE:
            del _CACHE[next(iter(_CACHE))]
        _CACHE[name] = NumericMarginal(approximate_density(distribution))
    return _CACHE[name]


def density_of(marginal: Marginal) -> PiecewiseDensity:
    """Return the density of a continuous marginal as piecewise polynomials."""
    if isinstance(marginal, UniformMarginal):
        distribution = scipy.stats.uniform(marginal.low, marginal.high - marginal.low)
        return approximate_density(distribution)
    if isinstance(marginal, NormalMarginal):
        name = f"norm {marginal.mean!r} {marginal.sd!r}"
        if name not in _CACHE:
            _CACHE[name] = NumericMarginal(approximate_density(scipy.stats.norm(marginal.mean, marginal.sd)))
        return _CACHE[name].density
    assert isinstance(marginal, NumericMarginal)
    return marginal.density
