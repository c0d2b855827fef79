"""What is known of an integral: a distribution, and how it comes from observations.

Notation: component k has weight p_k, centre m_k and scale s_k; Z = m_k + s_k t with t from Student's distribution with
ν degrees of freedom, which is a Gaussian whose scale is known to a factor only (ν = ∞ is a Gaussian).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import gammaln, ndtr, ndtri, stdtr, stdtrit

from .checks import Array, count, frozen, non_negative, numbers, shown, vector
from .data import Data
from .fit import Fit, marginalised, most_probable, tempered
from .hyper import Noise, Parametrisation, standard_units
from .measures import Measure, as_measure
from .model import MultiSourceGP
from .models import Model, model_named

DRAWS = 32  #: of the hyperparameters, where they are marginalised

# How far error bars doubt the model, chosen by benchmarks/calibration.py over all its problems:
TAILS = 3.0  #: degrees of freedom: functions that no such model fits are not rare
POWER = 0.5  #: of the likelihood: what no such model fits is no reason to be sure of its hyperparameters
#: what sources may have of their own on the scale on which they agree: quantiles of a log-normal distribution
SHARES = np.exp(-4.0 + 2.0 * ndtri((np.arange(6) + 0.5) / 6))


class Estimate:
    """The distribution of an integral, given what was observed.

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
        scales: ArrayLike,
        weights: ArrayLike | None = None,
        dof: float = np.inf,
        effective_draws: float = 1.0,
    ) -> None:
        self.centres, self.scales = numbers(centres, "centres"), non_negative(numbers(scales, "scales"), "scales")
        shares = np.ones_like(self.centres) if weights is None else numbers(weights, "weights")
        self.weights = frozen(shares / shares.sum())
        self.dof, self.effective_draws = dof, effective_draws
        self.mean = float(self.weights @ self.centres)
        inflation = 1.0 if np.isinf(dof) else dof / (dof - 2)
        self.std = float(np.sqrt(self.weights @ (inflation * self.scales**2 + (self.centres - self.mean) ** 2)))

    def __repr__(self) -> str:
        digits = max(0, 1 - int(np.floor(np.log10(self.std)))) if self.std > 0 else 6
        low, high = self.interval()
        return (
            f"Estimate({self.mean:.{digits}f} ± {self.std:.{digits}f}, "
            f"95 % between {low:.{digits}f} and {high:.{digits}f})"
        )

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The central interval that holds the integral with the given probability."""
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, such as 0.95, got {level!r}")
        return self.quantile(0.5 - level / 2), self.quantile(0.5 + level / 2)

    def quantile(self, p: float) -> float:
        """The number below which the integral is with probability p."""
        if not 0 < p < 1:
            raise ValueError(f"p must be between 0 and 1, got {p!r}")
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


def estimate(
    sources: ArrayLike,
    X: ArrayLike,
    y: ArrayLike,
    measure: Any,
    *,
    model: str | MultiSourceGP = "auto",
    noise: Any = 0.0,
    noise_var: ArrayLike | None = None,
    seed: int = 0,
) -> Estimate:
    """The integral of source 0, from observations that are already there.

    Parameters
    ----------
    sources : (N,) ints, or one for all
        Which source each observation is of; 0 is the primary one.
    X : (N, D) array
    y : (N,) array
    measure : measure, or anything that `as_measure` takes
        The distribution of the inputs.
    model : str or MultiSourceGP
        "auto", the default; "icm", the paper's, with the most probable hyperparameters; "lmc", a linear model of
        coregionalisation; "ar", autoregressive, for sources in order of fidelity; "vbq", which uses source 0 only; or
        a `MultiSourceGP` with hyperparameters of your own.
    noise : float, "learn", or a list of one for each source
        Variance of the noise on observations of each source.
    noise_var : (N,) array, optional
        Known variance of each observation, on top of that.
    seed : int
        For the draws of the hyperparameters.

    Examples
    --------
    >>> import numpy as np
    >>> import amsbq
    >>> x = np.array([0.1, 0.5, 0.9])
    >>> x_cheap = np.append(x, np.linspace(0, 1, 12))
    >>> sources = [0] * 3 + [1] * 15
    >>> y = np.concatenate([np.sin(5 * x), 0.8 * np.sin(5 * x_cheap) + x_cheap - 0.3])
    >>> answer = amsbq.estimate(sources, np.append(x, x_cheap), y, amsbq.Uniform(0, 1))
    >>> low, high = answer.interval(0.95)
    >>> bool(low < (1 - np.cos(5)) / 5 < high)
    True
    """
    measure = as_measure(measure)
    if isinstance(model, MultiSourceGP):
        mean, variance = model.condition(sources, X, y, noise_var).integral()
        return Estimate([mean], [np.sqrt(variance)])
    chosen = model_named(model)
    levels = noise_levels(noise, 1 + int(np.max(sources, initial=0)) if np.size(sources) else 1)
    data = Data.checked(measure, np.zeros(len(levels)), sources, X, y, noise_var)
    return estimate_from(fit(chosen, measure, data, levels, seed))


def noise_levels(noise: Any, n_sources: int) -> list[Noise]:
    """One noise variance for each source: a number or "learn"."""
    given = list(noise) if isinstance(noise, Sequence) and not isinstance(noise, str) else None
    levels = given if given is not None else [noise] * n_sources
    if len(levels) < n_sources:
        raise ValueError(f"noise must be one number, 'learn', or one of them for each of {n_sources} sources")
    for level in levels:
        if isinstance(level, str):
            if level != "learn":
                raise ValueError(f"noise must be a variance or 'learn', got {shown(level)}")
        else:
            non_negative(vector(level, "noise", 1), "noise")
    return ["learn" if level == "learn" else float(level) for level in levels]


def fit(model: Model, measure: Measure, data: Data, noise: Sequence[Noise], seed: int = 0) -> Fit:
    """Learn the hyperparameters of a model; data that make no sense get a warning, and are made sense of."""
    count(seed, "seed")
    if not model.secondaries:
        data, noise = data.only(0), noise[:1]
    data, noise = _made_sense_of(data, noise)
    prior = model.prior(len(noise))
    parametrisation = Parametrisation(prior, measure, data, noise)
    return marginalised(parametrisation, DRAWS, seed) if model.marginalised else most_probable(parametrisation, seed)


def estimate_from(fit: Fit) -> Estimate:
    """The integral of the primary source, averaged over the hyperparameters.

    The centre is that of the model. The error bar is that of one who doubts it: hyperparameters are drawn from a
    tempered posterior, each draw is widened by what the sources might have of their own where they seem to agree,
    weighted by how well that fits, and tails are long.
    """
    results = np.array([posterior.integral() for posterior in fit.posteriors()])
    mean = float(results[:, 0].mean())
    if len(results) == 1:
        return Estimate([mean], [np.sqrt(results[0, 1])])
    doubtful = tempered(fit, POWER)
    shares = SHARES if len(np.unique(fit.data.s)) > 1 else np.zeros(1)
    parts = [
        peak.parametrisation.doubted_integral(theta, shares)
        for peak, draws in zip(doubtful.peaks, doubtful.draws, strict=True)
        for theta in draws
    ]
    centres, scales, logs = (np.array(column) for column in zip(*parts, strict=True))
    weights = np.exp(POWER * (logs - logs.max(axis=1, keepdims=True)))
    weights /= weights.sum(axis=1, keepdims=True)
    around = np.repeat(mean + centres - centres.mean(), len(shares))
    return Estimate(around, scales.ravel(), weights.ravel(), TAILS, min(fit.effective, doubtful.effective))


def _made_sense_of(data: Data, noise: Sequence[Noise]) -> tuple[Data, Sequence[Noise]]:
    noise = list(noise)
    for source in range(len(noise)):
        if noise[source] == 0.0 and _contradictory(data.only(source)):
            warnings.warn(
                f"source {source} gave different values at the same input, but was said to be without noise: its noise "
                f"is learned; give noise='learn' or its variance",
                stacklevel=4,
            )
            noise[source] = "learn"
    primary = data.y[data.s == 0]
    if len(primary) == 0:
        warnings.warn("there is no observation of source 0: what is said of its integral is a guess", stacklevel=4)
    elif len(primary) > 1 and np.ptp(primary) == 0:
        warnings.warn(
            f"all {len(primary)} observations of source 0 are {primary[0]:.6g}: they do not tell how much it varies, "
            "and the error bar is a guess",
            stacklevel=4,
        )
        # as noisy as the sources vary: or else the likelihood would grow without bound as the scale shrinks
        _, spreads = standard_units(data, len(noise), common=True)
        data = replace(data, noise_var=frozen(data.noise_var + np.where(data.s == 0, spreads[0] ** 2, 0.0)))
    return data, noise


def _contradictory(data: Data) -> bool:
    exact = data.noise_var == 0
    _, inverse, counts = np.unique(data.X[exact], axis=0, return_inverse=True, return_counts=True)
    if (counts <= 1).all():
        return False
    same: Array = data.y[exact]
    groups = [same[inverse.ravel() == group] for group in np.flatnonzero(counts > 1)]
    return any(np.ptp(values) > 0 for values in groups)
