"""Forecasts: the error bar to expect if a budget were spent on the evaluations that the present model would choose.

The posterior variance of an integral does not depend on the values to come, so with fixed hyperparameters the future
can be computed: choose, condition on the choice with any value, and repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..gp.posterior_batch import PosteriorBatch
from ..markup import curve, table
from .acquisition import Rate
from .search import Choice


@dataclass(frozen=True)
class ForecastSettings:
    """How far and how finely forecasts look ahead."""

    #: evaluations, at most: each takes as long as a decision
    steps: int = 300
    #: every how many of the posteriors to decide by take part: a forecast is many decisions, and needs less precision
    every: int = 2
    #: rows that are printed of a forecast
    printed: int = 12


SETTINGS = ForecastSettings()


#: what is said of a forecast that is not exact
ESTIMATED = "an estimate: hyperparameters are learned during the run, and will change it"


class Forecast(list[tuple[float, float]]):
    """The expected standard deviation of the integral against total cost: a list of (cost, std).

    Attributes
    ----------
    exact : bool
        Whether hyperparameters are fixed, so that only rounding and failures can change the forecast. Where they are
        learned it is an estimate: what is learned later changes both the error bar and what is asked.
    """

    def __init__(self, rows: Sequence[tuple[float, float]], exact: bool) -> None:
        super().__init__(rows)
        self.exact = exact

    def __str__(self) -> str:
        lines = [f"{'cost':>10}  expected std", *(f"{cost:>10.4g}  {std:.3g}" for cost, std in self._shown())]
        return "\n".join(lines if self.exact else [*lines, f"({ESTIMATED})"])

    def _repr_html_(self) -> str:
        """Return the standard deviation against cost, on a logarithmic scale and as a table, for notebooks."""
        drawn = np.array([row for row in self if row[1] > 0]).reshape(-1, 2)
        picture = curve(drawn[:, 0], np.log(drawn[:, 1]), label="expected std against cost") if len(drawn) > 1 else ""
        rows = [(f"{cost:.4g}", f"{std:.3g}") for cost, std in self._shown()]
        return picture + table(("cost", "expected std"), rows) + ("" if self.exact else f"<p><em>{ESTIMATED}</em></p>")

    def _shown(self) -> list[tuple[float, float]]:
        """Return a few of the rows, from the first to the last."""
        every = np.linspace(0, len(self) - 1, SETTINGS.printed)
        return self if len(self) <= SETTINGS.printed else [self[round(i)] for i in every]


def forecast_rows(
    std: float,
    posteriors: PosteriorBatch,
    rate: Rate,
    cost: float,
    next_choice: Callable[[Rate, int, float], Choice | None],
    price: Callable[[Choice], float],
    steps: int,
) -> list[tuple[float, float]]:
    """Return (cost, std) now and after each of the evaluations to come.

    Parameters
    ----------
    std : float
        Standard deviation of the integral now.
    posteriors : PosteriorBatch
        Posteriors conditioned on all observations.
    rate : Rate
        The acquisition rate by the same posteriors, extended by the pending queries.
    cost : float
        What is spent, and what the pending queries will cost.
    next_choice : function of a Rate, the number of choices before, and the cost so far
        Returns the next choice, or None to end the forecast.
    price : function of a Choice
        Its expected cost.
    steps : int
        The largest number of evaluations to look ahead.
    """
    before = np.mean(posteriors.integral()[1])
    rows: list[tuple[float, float]] = []
    while True:
        left = np.mean(rate.posteriors.integral()[1])
        rows.append((cost, float(std * np.sqrt(left / before))))
        choice = next_choice(rate, len(rows) - 1, cost) if len(rows) <= steps else None
        if choice is None:
            return rows
        rate = rate.having(np.array([choice.source]), choice.x[None])
        cost += price(choice)
