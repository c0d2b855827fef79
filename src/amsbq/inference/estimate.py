"""What is known of an integral: a distribution.

Notation: component k has weight p_k, centre m_k and scale s_k; Z = m_k + s_k t with t from Student's distribution with
ν degrees of freedom, which is a Gaussian whose scale is known to a factor only (ν = ∞ is a Gaussian).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import gammaln, ndtr, ndtri, stdtr, stdtrit

from ..validation import non_negative, numbers, read_only


class Estimate:
    """The distribution of an integral, given what was observed; without scales, a number without an error bar.

    Attributes
    ----------
    mean, std : float
    effective_draws : float
        The effective number of hyperparameter draws behind it; 1 if only the most probable ones were used.

    Examples
    --------
    >>> estimate = Estimate([1.0], [0.1])
    >>> estimate
    Estimate(1.00 ± 0.10, 95 % between 0.80 and 1.20)
    >>> low, high = estimate.interval(0.5)
    >>> print(f"{low:.3f} to {high:.3f}, median {estimate.quantile(0.5):.3f}")
    0.933 to 1.067, median 1.000
    """

    def __init__(
        self,
        centres: ArrayLike,
        scales: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        dof: float = np.inf,
        effective_draws: float = 1.0,
    ) -> None:
        self.centres = numbers(centres, "centres")
        no_bar = np.full_like(self.centres, np.nan)
        self.scales = no_bar if scales is None else non_negative(numbers(scales, "scales"), "scales")
        shares = np.ones_like(self.centres) if weights is None else numbers(weights, "weights")
        self.weights = read_only(shares / shares.sum())
        self.dof, self.effective_draws = dof, effective_draws
        self.mean = float(self.weights @ self.centres)
        inflation = 1.0 if np.isinf(dof) else dof / (dof - 2) if dof > 2 else np.inf
        deviations = self.centres - self.mean
        unit = max(self.scales.max(), np.abs(deviations).max()) or 1.0  # squares of huge numbers would not be finite
        squares = inflation * (self.scales / unit) ** 2 + (deviations / unit) ** 2
        self.std = float(unit * np.sqrt(self.weights @ squares))

    @classmethod
    def unknown(cls) -> Estimate:
        """Before anything is known."""
        nothing = cls([0.0])
        nothing.mean = np.nan
        return nothing

    def plain(self) -> dict[str, Any]:
        """All of it, as plain numbers and lists."""
        arrays = {name: getattr(self, name).tolist() for name in ("centres", "scales", "weights")}
        return {**arrays, "dof": self.dof, "effective_draws": self.effective_draws}

    @classmethod
    def recalled(cls, plain: dict[str, Any]) -> Estimate:
        """From plain numbers, where null is infinity."""
        return cls(**{**plain, "dof": np.inf if plain["dof"] is None else plain["dof"]})

    def __repr__(self) -> str:
        return f"Estimate({self.summary()})"

    def summary(self) -> str:
        """The mean, the standard deviation and the 95 % interval, to as many digits as are known."""
        if np.isnan(self.mean):
            return "nothing is known yet"
        if np.isnan(self.std):
            return f"{self.mean:.6g}, without an error bar"
        low, high = self.interval()
        if self.std and not 1e-6 < self.std < 1e6:  # with so many zeros nobody can read them
            return f"{self.mean:.6g} ± {self.std:.2g}, 95 % between {low:.6g} and {high:.6g}"
        digits = max(0, 1 - int(np.floor(np.log10(self.std)))) if self.std else 6
        return f"{self.mean:.{digits}f} ± {self.std:.{digits}f}, 95 % between {low:.{digits}f} and {high:.{digits}f}"

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The central interval that holds the integral with the given probability."""
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, such as 0.95, got {level!r}")
        return self.quantile(0.5 - level / 2), self.quantile(0.5 + level / 2)

    def quantile(self, p: float) -> float:
        """The number below which the integral is with probability p."""
        if not 0 < p < 1:
            raise ValueError(f"p must be between 0 and 1, got {p!r}")
        if np.isnan(self.scales).any():
            return float("nan")
        standard = ndtri(p) if np.isinf(self.dof) else stdtrit(self.dof, p)
        ends = self.centres + self.scales * standard
        low, high = float(ends.min()), float(ends.max())
        if self.cdf(low) >= p or self.cdf(high) <= p or not low < high:
            return low if self.cdf(low) >= p else high
        return float(brentq(lambda z: self.cdf(z) - p, low, high, xtol=1e-12 * (high - low), rtol=1e-14))

    def cdf(self, z: float) -> float:
        """The probability that the integral is at most z."""
        scales = np.maximum(self.scales, np.finfo(float).tiny)
        with np.errstate(over="ignore"):
            t = (z - self.centres) / scales
        return float(self.weights @ (ndtr(t) if np.isinf(self.dof) else stdtr(self.dof, t)))

    def log_density(self, z: float) -> float:
        """The log probability density of the integral at z."""
        t, nu = (z - self.centres) / self.scales, self.dof
        if np.isinf(nu):
            logs = -0.5 * t**2 - 0.5 * np.log(2 * np.pi)
        else:
            constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi)
            logs = constant - 0.5 * (nu + 1) * np.log1p(t**2 / nu)
        return float(np.logaddexp.reduce(logs - np.log(self.scales) + np.log(self.weights)))
