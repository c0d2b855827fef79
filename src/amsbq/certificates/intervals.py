"""Intervals from few independent draws, and their assumptions.

    mean of sums of draws     the hull of Student's t interval, of Hall's, which is corrected for skewness, up to
                              twice Student's, and of half the interval predicted by the model
    share of the inputs       exact, by binomial distributions (Clopper and Pearson)
    mean of bounded draws     by betting (Waudby-Smith and Ramdas), valid at any time and for any distribution
    quantile                  by order statistics: any distribution without atoms

The hull is chosen by measurement, `python -m benchmarks.certify --intervals`: for ten log-normal residuals (σ = 1.5)
Student's t interval alone has a coverage of 71 % and the hull of 83 %; for Gaussian ones it is 13 % wider on average.
A bootstrap-t has no better coverage, and is infinite if few values differ; Johnson's correction hardly changes t.

Notation: G groups of draws d_g, n_g of them, s_g their standard deviation; the estimate is a known number, with the
standard error e, plus Σ_g mean(d_g). SE² = e² + Σ_g s_g²/n_g, and a = Σ_g k_g/n_g² / SE³ is its skewness, with the
unbiased third cumulants k_g.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, betaincinv, ndtri, stdtrit

from ..common.validation import Array, number


@dataclass(frozen=True)
class IntervalSettings:
    """Constants of intervals."""

    #: number of standard errors under normality beyond which skewness and kurtosis of draws indicate heavy tails
    heavy: float = 2.0
    #: the share of the error probability assigned to one of two bounds on a difference, the one that matters if
    #: predicted classes are rarely wrong
    larger_share: float = 0.9
    #: fraction of the standard error predicted by the model that is the minimum for intervals: ten draws may all miss a
    #: corner where the model itself is uncertain; chosen on six problems of the arena
    expected: float = 0.5
    #: candidates of a mean between its bounds, for betting: the interval is rounded outwards to a thousandth
    candidates: int = 1001
    #: skewness below which Hall's transformation is the identity, up to rounding
    symmetric: float = 1e-6
    #: how many times longer than Student's t the interval may be on one side by Hall's transformation, which has no
    #: limit: for ten log-normal draws (σ = 1) it is then 1.4 times as wide instead of 1.9, with a coverage of 91 %
    #: instead of 92 %; for σ = 1.5, of 83 % instead of 87 %
    longest: float = 2.0
    #: relative standard error of the integral of exponentials above which heavy-tailed draws give no upper end for its
    #: logarithm: ten draws that miss the peak of a likelihood show nothing of its height
    unbounded: float = 0.5


SETTINGS = IntervalSettings()


def students_t(p: float, dof: float) -> float:
    """Return a quantile of Student's t distribution, or of the normal one for infinitely many degrees of freedom."""
    return float(ndtri(p) if math.isinf(dof) else stdtrit(dof, p))


def checked_level(level: float) -> float:
    """Return the level of an interval if it is valid, else raise ValueError."""
    if not 0 < number(level, "level") < 1:
        raise ValueError(f"level must be between 0 and 1, such as 0.95, got {level!r}")
    return float(level)


@dataclass(frozen=True)
class MeanOfDraws:
    """A known number plus means of independent groups of draws, and its interval.

    Attributes
    ----------
    groups : list of (n_g,) arrays
        Draws, two or more in each group.
    known, error : float
        The number to which they are added, and its standard error.
    expected : float
        The standard error of the estimate predicted by the model.
    """

    groups: Sequence[Array]
    known: float = 0.0
    error: float = 0.0
    expected: float = 0.0

    @cached_property
    def mean(self) -> float:
        """The estimate."""
        return self.known + math.fsum(float(np.mean(d)) for d in self.groups)

    @cached_property
    def _errors(self) -> list[float]:
        """The standard error of the mean of each group."""
        return [_deviation(d) / math.sqrt(len(d)) for d in self.groups]

    @cached_property
    def std(self) -> float:
        """The standard error of the estimate."""
        return math.hypot(self.error, *self._errors)

    @property
    def dof(self) -> float:
        """Degrees of freedom by Welch and Satterthwaite; the known number has infinitely many."""
        pairs = zip(self._errors, self.groups, strict=True)
        squares = math.fsum((error / self.std) ** 4 / (len(d) - 1) for error, d in pairs)
        return 1 / squares if squares > 0 else math.inf

    @property
    def skewness(self) -> float:
        """The skewness of the estimate; 0 if there are too few draws to estimate it."""
        unit = self.std
        return math.fsum(_third_cumulant(d / unit) / len(d) ** 2 for d in self.groups if len(d) > 2)

    def interval(self, level: float) -> tuple[float, float]:
        """Return the smallest interval that covers Student's t, Hall's up to a limit, and half the predicted one."""
        least = SETTINGS.expected * self.expected * float(ndtri(0.5 + level / 2))
        if not self.std > 0:
            return self.mean - least, self.mean + least
        t, a = students_t(0.5 + level / 2, self.dof), self.skewness
        below, above = (min(max(t, end), SETTINGS.longest * t) for end in (_hall(t, a), -_hall(-t, a)))
        return self.mean - max(self.std * below, least), self.mean + max(self.std * above, least)

    @property
    def heavy(self) -> bool:
        """Whether the draws of a group look skewed or heavy-tailed, compared with normal ones."""
        return any(_looks_heavy(d) for d in self.groups)


def _deviation(d: Array) -> float:
    """Return the standard deviation of draws of any magnitude: squares of tiny ones would underflow."""
    deviations = d - np.mean(d)
    unit = float(np.abs(deviations).max())
    return unit * math.sqrt(float(np.sum((deviations / unit) ** 2)) / (len(d) - 1)) if unit > 0 else 0.0


def _third_cumulant(d: Array) -> float:
    """Return the unbiased estimate of the third cumulant from three or more draws."""
    n = len(d)
    return float(np.mean((d - np.mean(d)) ** 3)) * n * n / ((n - 1) * (n - 2))


def _hall(q: float, a: float) -> float:
    """Return T with T + a T²/3 + a² T³/27 + a/6 = q: the inverse of Hall's transformation (1992)."""
    return 3 / a * (float(np.cbrt(1 + a * (q - a / 6))) - 1) if abs(a) > SETTINGS.symmetric else q


def _looks_heavy(d: Array) -> bool:
    n = len(d)
    if n < 4 or not np.std(d) > 0:
        return False
    error = math.sqrt(6 * n * (n - 1) / ((n - 2) * (n + 1) * (n + 3)))
    errors = error, 2 * error * math.sqrt((n * n - 1) / ((n - 3) * (n + 5)))
    z = (d - np.mean(d)) / np.std(d)
    skewness = float(np.mean(z**3)) * math.sqrt(n * (n - 1)) / (n - 2)
    kurtosis = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * (float(np.mean(z**4)) - 3) + 6)
    return abs(skewness) > SETTINGS.heavy * errors[0] or kurtosis > SETTINGS.heavy * errors[1]


def largest_share(k: int, n: int, error: float) -> float:
    """Return the largest share of successes for which k or fewer of n have a probability above ``error``.

    >>> round(largest_share(0, 10, 0.05), 3)
    0.259
    """
    return 1.0 if k >= n else float(betaincinv(k + 1, n - k, 1 - error))


def share_interval(k: int, n: int, level: float) -> tuple[float, float]:
    """Return the exact interval of a share, given k successes in n independent draws (Clopper and Pearson).

    >>> [round(end, 3) for end in share_interval(1, 10, 0.95)]
    [0.003, 0.445]
    """
    error = (1 - level) / 2
    return 1 - largest_share(n - k, n, error), largest_share(k, n, error)


def disagreement_interval(
    predicted: NDArray[np.bool_], found: NDArray[np.bool_], share: float, error: float, level: float
) -> tuple[float, float]:
    """Return the interval of the share of the inputs in a class, from draws with their predicted classes.

    It is exact except for the error of ``share``: on each side, the number of wrong predictions is binomial.

    Parameters
    ----------
    predicted, found : (n,) arrays of bool
        Whether each draw was predicted to be in the class, and whether it is.
    share, error : float
        The share of the inputs that is predicted to be in the class, and its standard error.
    level : float
        The level of the interval.
    """
    more = _wrong(~predicted, found, 1 - share, level)  # in the class, and not predicted to be
    fewer = _wrong(predicted, ~found, share, level)
    slack = float(ndtri(0.5 + level / 2)) * error
    return max(share + more[0] - fewer[1] - slack, 0.0), min(share + more[1] - fewer[0] + slack, 1.0)


def _wrong(of: NDArray[np.bool_], wrong: NDArray[np.bool_], size: float, level: float) -> tuple[float, float]:
    """Return bounds on the share of the inputs with a wrongly predicted class, within a part of size ``share``."""
    n, k, error = int(of.sum()), int((of & wrong).sum()), (1 - level) / 2
    lower = 1 - largest_share(n - k, n, (1 - SETTINGS.larger_share) * error) if n else 0.0
    return size * lower, size * largest_share(k, n, SETTINGS.larger_share * error)


def betting_interval(values: Array, low: float, high: float, level: float) -> tuple[float, float]:
    """Return the anytime-valid interval of the mean of draws between two bounds, by hedged betting.

    It may be inspected after each draw, and sampling may stop when it is narrow enough (Waudby-Smith and Ramdas 2024).
    """
    y, alpha = (np.asarray(values, dtype=float) - low) / (high - low), 1 - level
    m = np.linspace(0.0, 1.0, SETTINGS.candidates)
    up, down = np.zeros_like(m), np.zeros_like(m)  # logarithms of the capital of bets on more, and on less
    alive = np.ones(len(m), dtype=bool)
    with np.errstate(divide="ignore"):
        for t, each in enumerate(y, 1):
            mean = (0.5 + y[: t - 1].sum()) / t
            spread = (0.25 + ((y[: t - 1] - mean) ** 2).sum()) / t
            bet = math.sqrt(2 * math.log(2 / alpha) / (spread * t * math.log(t + 1)))
            up += np.log1p(np.minimum(bet, 0.5 / np.maximum(m, 1e-300)) * (each - m))
            down += np.log1p(-np.minimum(bet, 0.5 / np.maximum(1 - m, 1e-300)) * (each - m))
            alive &= np.maximum(up, down) < math.log(2 / alpha)
    kept = np.flatnonzero(alive)
    if not len(kept):
        mean = float(np.mean(values))
        return mean, mean
    step = 1 / (len(m) - 1)
    ends = max(m[kept[0]] - step, 0.0), min(m[kept[-1]] + step, 1.0)
    return low + (high - low) * ends[0], low + (high - low) * ends[1]


def quantile_interval(values: Array, p: float, level: float) -> tuple[float, float]:
    """Return the interval of a quantile by the order statistics of draws; infinite if there are too few draws."""
    ordered, beta = np.concatenate([[-np.inf], np.sort(values), [np.inf]]), (1 - level) / 2
    n = len(values)
    below = bdtr(np.arange(n + 1.0), n, p)  # P(at most k of the draws are below the quantile)
    lower = int(np.searchsorted(below, beta, side="right"))  # the largest j with P(K < j) <= beta
    upper = int(np.searchsorted(below, 1 - beta, side="left")) + 1  # the smallest j with P(K >= j) <= beta
    return float(ordered[lower]), float(ordered[min(upper, n + 1)])
