"""Answers of a certificate for one output: the mean, the variance, a probability or a quantile, with its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..common.validation import Array
from ..posterior.targets import Exceedance, Quantile, Target
from .intervals import SETTINGS as INTERVALS
from .intervals import MeanOfDraws, disagreement_interval, quantile_interval


@dataclass(frozen=True)
class Answer:
    """An estimate with its interval, and the assumptions of the interval.

    Attributes
    ----------
    mean : float
        The estimate.
    std : float
        Its standard error; NaN if it has none.
    interval : function
        Function that returns (low, high) for a level.
    heavy : bool
        Whether the draws look heavy-tailed although the interval assumes that they are not.
    assumes : str
        The assumptions of the interval, in one sentence.
    """

    mean: float
    std: float
    interval: Callable[[float], tuple[float, float]]
    heavy: bool
    assumes: str


#: the answer before all evaluations are made, or if all of them failed
UNKNOWN = Answer(math.nan, math.nan, lambda level: (math.nan, math.nan), False, "")


def answer(
    target: Target, residuals: Sequence[Array], predicted: Array, known: float, error: float, expected: float
) -> Answer:
    """Return the estimate of a target.

    Parameters
    ----------
    target : "mean", "variance", Exceedance or Quantile
    residuals : list of (n_k,) arrays
        The residuals of each term, whose averages are added to the mean; for other targets f_i - m_i, in one term.
    predicted : (n,) array
        The values m_i of the control variate at the draws of the first term.
    known, error : float
        The target of the control variate, and its standard error.
    expected : float
        The standard error of the mean predicted by the model.
    """
    if target == "mean":
        return mean_answer(MeanOfDraws(residuals, known, error, expected))
    values = predicted + residuals[0]
    if target == "variance":
        return variance_answer(values, predicted, known, error)
    if isinstance(target, Exceedance):
        return share_answer(predicted > target.limit, values > target.limit, known, error)
    assert isinstance(target, Quantile)
    return quantile_answer(values, target.p)


def mean_answer(draws: MeanOfDraws) -> Answer:
    """Return the mean of the output: the mean of the control variate plus averages of residuals."""
    assumes = (
        "The interval (Student's t, widened if residuals are skewed, or if the model predicts larger ones) assumes "
        "that the sampled residuals are representative, and nothing about the model."
    )
    return Answer(draws.mean, draws.std, draws.interval, draws.heavy, assumes)


def logarithm_of(found: Answer, log_unit: float) -> Answer:
    """Return the logarithm of a positive number, given an estimate and its interval in a unit.

    If the estimate is not positive, the logarithm is minus infinity, with an infinite error; if no part of the interval
    is positive, the interval is known to be wrong, and the logarithm is unknown. If draws are heavy-tailed and the
    relative error is large, most of the integral may be where nothing was drawn: the interval has no upper end.
    """

    def log(value: float) -> float:
        return log_unit + math.log(value) if value > 0 else -math.inf

    unbounded = found.heavy and found.std > INTERVALS.unbounded * found.mean

    def interval(level: float) -> tuple[float, float]:
        low, high = found.interval(level)
        if not high > 0:
            return -math.inf, math.inf
        return log(low), math.inf if unbounded else log(high)

    std = found.std / found.mean if found.mean > 0 else math.inf
    assumes = f"It is the logarithm of an unbiased estimate of the integral. {found.assumes}"
    return Answer(log(found.mean), std, interval, found.heavy, assumes)


def variance_answer(values: Array, predicted: Array, known: float, error: float) -> Answer:
    """Return the variance of the output: that of the control variate plus the difference of two U-statistics.

    The sample variance of n values f_i is unbiased for that of f, and so is that of n values m_i for that of m, which
    is known. The error comes from the pseudo-values of the jackknife.
    """
    n = len(values)

    def difference(of: Array) -> float:
        return float(np.var(values[of], ddof=1) - np.var(predicted[of], ddof=1))

    whole = difference(np.ones(n, dtype=bool))
    left_out = np.array([difference(np.arange(n) != i) for i in range(n)])
    draws = MeanOfDraws([n * whole - (n - 1) * left_out], known, error)

    def interval(level: float) -> tuple[float, float]:
        low, high = draws.interval(level)
        return max(low, 0.0), max(high, 0.0)

    assumes = (
        "The interval (jackknife) assumes that the sampled squared residuals are representative, and nothing about "
        "the model."
    )
    return Answer(known + whole, draws.std, interval, draws.heavy, assumes)


def share_answer(predicted: NDArray[np.bool_], found: NDArray[np.bool_], share: float, error: float) -> Answer:
    """Return the probability that the output is above a limit: that of the control variate, with its errors corrected.

    The estimate is unbiased, and may therefore be slightly below 0 or above 1. Its standard error is 0 if no predicted
    class was wrong, which says little: use the interval.

    Parameters
    ----------
    predicted, found : (n,) arrays of bool
        Whether m_i is above, and whether f_i is.
    share, error : float
        The share of the inputs for which m is above, and its standard error.
    """
    wrong = found.astype(float) - predicted

    def interval(level: float) -> tuple[float, float]:
        return disagreement_interval(predicted, found, share, error, level)

    std = math.hypot(float(np.std(wrong, ddof=1)) / math.sqrt(len(found)), error)
    assumes = "The interval (binomial, from the draws whose side of the limit was predicted wrongly) is exact."
    return Answer(share + float(np.mean(wrong)), std, interval, False, assumes)


def quantile_answer(values: Array, p: float) -> Answer:
    """Return a quantile of the output: the sample quantile, without the control variate."""

    def interval(level: float) -> tuple[float, float]:
        return quantile_interval(values, p, level)

    assumes = (
        "There is no unbiased estimator of a quantile: the number is the sample quantile. The interval (order "
        "statistics) is exact, and infinite if there are too few draws."
    )
    mean = float(np.quantile(values, p, method="median_unbiased"))
    return Answer(mean, math.nan, interval, False, assumes)
