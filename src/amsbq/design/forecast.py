"""Forecasts: the error bar to expect if a budget were spent on the evaluations that the present model would choose.

The posterior variance of an integral does not depend on the values to come, so with fixed hyperparameters the future
can be computed: choose, condition on the choice with any value, and repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..markup import curve, table
from ..outputs.rates import AnyRate
from ..validation import Values
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


class Forecast(list[tuple[float, Values]]):
    """The expected standard deviation of the integral against total cost: a list of (cost, std).

    With several outputs the standard deviations are an array (M,).

    Attributes
    ----------
    outputs : tuple of str or None
        Names of the outputs, if there are several.
    exact : bool
        Whether hyperparameters are fixed, so that only rounding and failures can change the forecast. Where they are
        learned it is an estimate: what is learned later changes both the error bar and what is asked.
    """

    def __init__(
        self, rows: Sequence[tuple[float, Values]], exact: bool, outputs: tuple[str, ...] | None = None
    ) -> None:
        super().__init__(rows)
        self.exact, self.outputs = exact, outputs

    def of_output(self, output: int) -> Forecast:
        """Return the forecast of one of several outputs."""
        return Forecast([(cost, float(stds[output])) for cost, stds in self], self.exact)

    def __str__(self) -> str:
        if self.outputs is None:
            lines = [f"{'cost':>10}  expected std", *(f"{cost:>10.4g}  {std:.3g}" for cost, std in self._shown())]
        else:
            width = max(8, *(len(name) for name in self.outputs))
            lines = [
                f"{'cost':>10}  expected std of",
                "  ".join([" " * 10, *(f"{name:>{width}}" for name in self.outputs)]),
                *(
                    "  ".join([f"{cost:>10.4g}", *(f"{std:>{width}.3g}" for std in stds)])
                    for cost, stds in self._shown()
                ),
            ]
        return "\n".join(lines if self.exact else [*lines, f"({ESTIMATED})"])

    def _repr_html_(self) -> str:
        """Return the standard deviation against cost, on a logarithmic scale and as a table, for notebooks."""
        if self.outputs is not None:
            shown = [(f"{cost:.4g}", *(f"{std:.3g}" for std in stds)) for cost, stds in self._shown()]
            said = "" if self.exact else f"<p><em>{ESTIMATED}</em></p>"
            return table(("cost", *(f"std of {name}" for name in self.outputs)), shown) + said
        drawn = np.array([row for row in self if row[1] > 0]).reshape(-1, 2)
        picture = curve(drawn[:, 0], np.log(drawn[:, 1]), label="expected std against cost") if len(drawn) > 1 else ""
        rows = [(f"{cost:.4g}", f"{std:.3g}") for cost, std in self._shown()]
        return picture + table(("cost", "expected std"), rows) + ("" if self.exact else f"<p><em>{ESTIMATED}</em></p>")

    def _shown(self) -> list[tuple[float, Values]]:
        """Return a few of the rows, from the first to the last."""
        every = np.linspace(0, len(self) - 1, SETTINGS.printed)
        return self if len(self) <= SETTINGS.printed else [self[round(i)] for i in every]


def forecast_rows(
    std: Values,
    before: Values,
    rate: AnyRate,
    cost: float,
    next_choice: Callable[[AnyRate, int, float], Choice | None],
    price: Callable[[Choice], float],
    steps: int,
) -> list[tuple[float, Values]]:
    """Return (cost, std) now and after each of the evaluations to come.

    Parameters
    ----------
    std : float; with several outputs an array (M,)
        Standard deviation of the integral now.
    before : float, or (M,)
        Variance of the integral by the posteriors that the rate is made of, conditioned on all observations.
    rate : Rate or SummedRate
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
    rows: list[tuple[float, Values]] = []
    while True:
        expected = std * np.sqrt(rate.variance() / before)
        rows.append((cost, expected if np.ndim(expected) else float(expected)))
        choice = next_choice(rate, len(rows) - 1, cost) if len(rows) <= steps else None
        if choice is None:
            return rows
        rate = rate.having(np.array([choice.source]), choice.x[None])
        cost += price(choice)
