"""The distribution of an integral: a mixture of Gaussian or Student's t distributions.

Notation: component k has weight p_k, centre m_k and scale s_k; Z = m_k + s_k t, and t has Student's t distribution with
ν degrees of freedom, the distribution of a Gaussian whose variance is itself uncertain (ν = ∞ is a Gaussian).
"""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike
from scipy.special import gammaln, ndtr, ndtri, stdtr, stdtrit

from ..common.validation import as_known, non_negative, number, numbers, plus_minus, read_only


class Estimate:
    """The distribution of an integral: a weighted mixture of Gaussian or Student's t distributions.

    Parameters
    ----------
    centres : (K,) array
        Centre of each component; if empty, nothing is known, and mean, standard deviation and quantiles are NaN.
    scales : (K,) array, optional
        Scale of each component; without scales the estimate is a number without an error bar.
    weights : (K,) array, optional
        Weight of each component, in any unit; by default all are equal.
    dof : float
        Degrees of freedom of the components; infinite for Gaussians.
    effective_draws : float
        The effective number of hyperparameter draws behind it; 1 if only the mode was used.
    within : (low, high)
        The range of the integral; either end may be infinite. Quantiles and intervals never leave it.

    Attributes
    ----------
    mean, std : float
        Mean and standard deviation of the integral; ``std`` is NaN without an error bar.
    unit : str
        The unit in which it is printed; empty if none was given.

    Examples
    --------
    >>> estimate = Estimate([1.0], [0.1])
    >>> estimate
    Estimate(1.00 ± 0.10 (std), 95 % between 0.80 and 1.20)
    >>> low, high = estimate.interval(0.5)
    >>> print(f"{low:.3f} to {high:.3f}, median {estimate.quantile(0.5):.3f}")
    0.933 to 1.067, median 1.000
    """

    unit = ""

    def __init__(
        self,
        centres: ArrayLike,
        scales: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        dof: float = np.inf,
        effective_draws: float = 1.0,
        within: tuple[float, float] = (-np.inf, np.inf),
    ) -> None:
        self.centres = numbers(centres, "centres")
        no_bar = np.full_like(self.centres, np.nan)
        self.scales = no_bar if scales is None else non_negative(numbers(scales, "scales"), "scales")
        shares = np.ones_like(self.centres) if weights is None else numbers(weights, "weights")
        total = shares.sum()  # one, up to rounding, in a stored estimate, which stays the same to the last bit
        self.weights = read_only(shares if abs(total - 1) < 1e-12 else shares / total)
        self.dof, self.effective_draws, self.within = dof, effective_draws, (float(within[0]), float(within[1]))
        if not len(self.centres):
            self.mean = self.std = np.nan
            return
        self.mean = float(self.weights @ self.centres)
        inflation = 1.0 if np.isinf(dof) else dof / (dof - 2) if dof > 2 else np.inf
        deviations = self.centres - self.mean
        unit = max(self.scales.max(), np.abs(deviations).max()) or 1.0  # squares of huge numbers would not be finite
        squares = inflation * (self.scales / unit) ** 2 + (deviations / unit) ** 2
        self.std = float(unit * np.sqrt(self.weights @ squares))

    @classmethod
    def unknown(cls) -> Estimate:
        """Return the estimate before any observation: mean, standard deviation and quantiles are NaN."""
        return cls([])

    def to_dict(self) -> dict[str, Any]:
        """Return all arguments of the constructor as numbers and lists; ``scales`` is None without an error bar."""
        bounded = {} if np.isinf(self.within).all() else {"within": list(self.within)}
        return {
            **bounded,
            "centres": self.centres.tolist(),
            "scales": None if np.isnan(self.std) else self.scales.tolist(),
            "weights": self.weights.tolist(),
            "dof": self.dof,
            "effective_draws": self.effective_draws,
        }

    @classmethod
    def from_dict(cls, arguments: dict[str, Any]) -> Estimate:
        """Return the estimate from the arguments that `to_dict` returned."""
        return cls(**arguments)

    def __repr__(self) -> str:
        return f"Estimate({self.summary()})"

    def in_unit(self, unit: str) -> Estimate:
        """Return the estimate with a unit, in which it is printed.

        >>> Estimate([1.0], [0.1]).in_unit("m")
        Estimate(1.00 ± 0.10 m (std), 95 % between 0.80 and 1.20)
        """
        known = copy.copy(self)
        known.unit = unit
        return known

    def summary(self, unit: str | None = None) -> str:
        """Return mean, standard deviation and 95 % interval as text, with as many digits as are known.

        ``unit`` replaces the estimate's own unit.
        """
        unit = self.unit if unit is None else unit
        if np.isnan(self.mean):
            return "nothing is known yet"
        if np.isnan(self.std):
            return f"{plus_minus(self.mean, self.std, unit)}, without an error bar"
        low, high = (as_known(end, self.std) for end in self.interval())
        return f"{plus_minus(self.mean, self.std, unit)} (std), 95 % between {low} and {high}"

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return (low, high), the central interval that contains the integral with probability ``level``."""
        if not 0 < number(level, "level") < 1:
            raise ValueError(f"level must be between 0 and 1, such as 0.95, got {level!r}")
        return self.quantile(0.5 - level / 2), self.quantile(0.5 + level / 2)

    def quantile(self, p: float) -> float:
        """Return the number below which the integral lies with probability p; NaN without an error bar."""
        if not 0 < number(p, "p") < 1:
            raise ValueError(f"p must be between 0 and 1, got {p!r}")
        if np.isnan(self.std):
            return np.nan
        if self._bounded is not None:
            return self._bounded.quantile(p)
        standard = ndtri(p) if np.isinf(self.dof) else stdtrit(self.dof, p)
        ends = self.centres + self.scales * standard
        low, high = float(ends.min()), float(ends.max())
        if self.cdf(low) >= p or self.cdf(high) <= p or not low < high:
            return low if self.cdf(low) >= p else high
        return float(scipy.optimize.brentq(lambda z: self.cdf(z) - p, low, high, xtol=1e-12 * (high - low), rtol=1e-14))

    def cdf(self, z: float) -> float:
        """Return the probability that the integral is at most z; NaN without an error bar."""
        if np.isnan(self.std):
            return np.nan
        if self._bounded is not None:
            return self._bounded.cdf(z)
        scales = np.maximum(self.scales, np.finfo(float).tiny)
        with np.errstate(over="ignore"):
            t = (z - self.centres) / scales
        return float(self.weights @ (ndtr(t) if np.isinf(self.dof) else stdtr(self.dof, t)))

    @cached_property
    def _bounded(self) -> _Bounded | None:
        """The distribution on a scale that ends at the bounds; None without bounds."""
        low, high = self.within
        if np.isinf(self.within).all():
            return None
        if np.isfinite(self.within).all():
            width = high - low
            share = np.clip((self.centres - low) / width, 1e-12, 1 - 1e-12)
            centres = np.arcsin(np.sqrt(share))
            scales = self.scales / width / np.sin(2 * centres)
        else:
            distances = np.maximum(self.centres - low if np.isfinite(low) else high - self.centres, 0.0)
            width = 1.0
            # q ~ N(c, s²) whose square has the same mean and variance; √(d² - s²/2) without an overflow
            less = self.scales / np.sqrt(2)
            squares = np.sqrt(np.maximum(distances - less, 0.0)) * np.sqrt(distances + less)
            # d - √(d² - s²/2), without cancellation
            both = np.sqrt(np.maximum(distances + squares, np.finfo(float).tiny))
            centres, scales = np.sqrt(squares), np.where(squares > 0, less / both, np.sqrt(distances))
        return _Bounded(Estimate(centres, scales, self.weights, self.dof), low, high)

    def log_density(self, z: float) -> float:
        """Return the log probability density of the integral at z; NaN without an error bar."""
        if np.isnan(self.std):
            return np.nan
        if self._bounded is not None:
            return self._bounded.log_density(z)
        t, nu = (z - self.centres) / self.scales, self.dof
        if np.isinf(nu):
            logs = -0.5 * t**2 - 0.5 * np.log(2 * np.pi)
        else:
            constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi)
            logs = constant - 0.5 * (nu + 1) * np.log1p(t**2 / nu)
        return float(np.logaddexp.reduce(logs - np.log(self.scales) + np.log(self.weights)))


class _Bounded(NamedTuple):
    """The distribution of a bounded integral, as that of an unbounded number q.

    With one bound the distance from it is q², with two the share of the range is sin² q.
    """

    distribution: Estimate  # of q
    low: float
    high: float

    def quantile(self, p: float) -> float:
        if np.isinf(self.low):
            return self.high - max(self.distribution.quantile(1 - p), 0.0) ** 2
        q = max(self.distribution.quantile(p), 0.0)
        if np.isinf(self.high):
            return self.low + q**2
        return float(self.low + (self.high - self.low) * np.sin(min(q, np.pi / 2)) ** 2)

    def cdf(self, z: float) -> float:
        if not self.low <= z <= self.high:
            return float(z > self.high)
        if np.isinf(self.low):
            return 1 - self.distribution.cdf(np.sqrt(self.high - z))
        return self.distribution.cdf(self._q(z)) if z < self.high else 1.0

    def log_density(self, z: float) -> float:
        if not self.low < z < self.high:
            return -np.inf
        if np.isinf(self.low):
            q = np.sqrt(self.high - z)
            return self.distribution.log_density(q) - float(np.log(2 * q))
        q = self._q(z)
        slope = 2 * q if np.isinf(self.high) else (self.high - self.low) * np.sin(2 * q)
        return self.distribution.log_density(q) - float(np.log(slope))

    def _q(self, z: float) -> float:
        if np.isinf(self.high):
            return float(np.sqrt(z - self.low))
        return float(np.arcsin(np.sqrt((z - self.low) / (self.high - self.low))))
