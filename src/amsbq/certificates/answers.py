"""What a certificate says of one output: the mean, the variance, a probability or a quantile, with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..common.validation import Array
from ..posterior.targets import Exceedance, Quantile, Target
from .intervals import MeanOfDraws, disagreement_interval, quantile_interval


class Answer(Protocol):
    """An estimate, its standard error, its interval, and what that assumes."""

    @property
    def mean(self) -> float:
        """The estimate."""

    @property
    def std(self) -> float:
        """Its standard error; NaN if it has none."""

    @property
    def heavy(self) -> bool:
        """Whether what it is made of looks heavy-tailed, and the interval assumes that it is not."""

    @property
    def assumes(self) -> str:
        """What the interval assumes, in one sentence."""

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval of a level."""


@dataclass(frozen=True)
class MeanAnswer:
    """The mean of the output: that of the control variate, and averages of residuals."""

    draws: MeanOfDraws

    @property
    def mean(self) -> float:
        """The estimate."""
        return self.draws.mean

    @property
    def std(self) -> float:
        """Its standard error."""
        return self.draws.std

    @property
    def heavy(self) -> bool:
        """Whether residuals look heavy-tailed."""
        return self.draws.heavy

    @property
    def assumes(self) -> str:
        """What the interval assumes."""
        return (
            "The interval (Student's t, widened where residuals are skewed, or the model expects larger ones) assumes "
            "that the residuals found show how the others vary, and nothing of the model."
        )

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval of a level."""
        return self.draws.interval(level)


@dataclass(frozen=True)
class VarianceAnswer:
    """The variance of the output: that of the control variate, and the difference of two U-statistics.

    The variance of n values f_i is unbiased for that of f, and so is that of n values m_i for that of m, which is
    known. Its error comes from the pseudo-values of the jackknife.
    """

    values: Array  # f_i, shape (n,)
    predicted: Array  # m_i
    known: float
    error: float

    @cached_property
    def _draws(self) -> MeanOfDraws:
        n = len(self.values)
        pseudo = n * self._difference(np.ones(n, dtype=bool))
        left_out = np.array([self._difference(np.arange(n) != i) for i in range(n)])
        return MeanOfDraws([pseudo - (n - 1) * left_out], self.known, self.error)

    def _difference(self, of: Array) -> float:
        return float(np.var(self.values[of], ddof=1) - np.var(self.predicted[of], ddof=1))

    @property
    def mean(self) -> float:
        """The estimate."""
        return self.known + self._difference(np.ones(len(self.values), dtype=bool))

    @property
    def std(self) -> float:
        """Its standard error."""
        return self._draws.std

    @property
    def heavy(self) -> bool:
        """Whether what it is made of looks heavy-tailed."""
        return self._draws.heavy

    @property
    def assumes(self) -> str:
        """What the interval assumes."""
        return (
            "The interval (of the jackknife) assumes that the squared residuals found show how the others vary, and "
            "nothing of the model."
        )

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval of a level, cut off at zero."""
        low, high = self._draws.interval(level)
        return max(low, 0.0), max(high, 0.0)


@dataclass(frozen=True)
class ShareAnswer:
    """The probability that the output is above a limit: that by the control variate, and where it is wrong."""

    predicted: NDArray[np.bool_]  # whether m_i is above, shape (n,)
    found: NDArray[np.bool_]  # whether f_i is
    share: float  # of the inputs for which m is above
    error: float

    @property
    def _wrong(self) -> Array:
        return self.found.astype(float) - self.predicted

    @property
    def mean(self) -> float:
        """The estimate, which is unbiased, and may therefore be a little below 0 or above 1."""
        return self.share + float(np.mean(self._wrong))

    @property
    def std(self) -> float:
        """Its standard error; 0 where no predicted class was wrong, which says little: the interval says more."""
        return math.hypot(float(np.std(self._wrong, ddof=1)) / math.sqrt(len(self.found)), self.error)

    @property
    def heavy(self) -> bool:
        """Whether the interval assumes what does not look so; it assumes nothing."""
        return False

    @property
    def assumes(self) -> str:
        """What the interval assumes."""
        return "The interval (binomial, of the draws whose side of the limit was predicted wrongly) is exact."

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval of a level."""
        return disagreement_interval(self.predicted, self.found, self.share, self.error, level)


@dataclass(frozen=True)
class QuantileAnswer:
    """A quantile of the output: that of the values drawn, without the control variate."""

    values: Array
    p: float

    @property
    def mean(self) -> float:
        """The quantile of the values."""
        return float(np.quantile(self.values, self.p, method="median_unbiased"))

    @property
    def std(self) -> float:
        """NaN: it has no standard error."""
        return math.nan

    @property
    def heavy(self) -> bool:
        """Whether the interval assumes what does not look so; it assumes nothing."""
        return False

    @property
    def assumes(self) -> str:
        """What the interval assumes."""
        return (
            "There is no unbiased estimator of a quantile: the number is that of the values drawn. The interval (of "
            "their order statistics) is exact, and ends at infinity where there are too few of them."
        )

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval of a level."""
        return quantile_interval(self.values, self.p, level)


def answer(
    target: Target, residuals: Sequence[Array], predicted: Array, known: float, error: float, expected: float
) -> Answer:
    """Return what is known of a target.

    Parameters
    ----------
    target : "mean", "variance", Exceedance or Quantile
    residuals : list of (n_k,) arrays
        Those of each term, whose averages are added to the mean; of other targets f_i - m_i, in one term.
    predicted : (n,) array
        The values m_i of the control variate at the draws of the first term.
    known, error : float
        The target of the control variate, and its standard error.
    expected : float
        The standard error of the mean that the model expects.
    """
    if target == "mean":
        return MeanAnswer(MeanOfDraws(residuals, known, error, expected))
    values = predicted + residuals[0]
    if target == "variance":
        return VarianceAnswer(values, predicted, known, error)
    if isinstance(target, Exceedance):
        return ShareAnswer(predicted > target.limit, values > target.limit, known, error)
    assert isinstance(target, Quantile)
    return QuantileAnswer(values, target.p)
