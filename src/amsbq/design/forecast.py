"""Forecasts: the error bar to expect if a budget were spent on the evaluations that the current model would choose.

The posterior variance of an integral does not depend on future values, so with fixed hyperparameters it can be computed
in advance: choose, condition on the choice with any value, and repeat. With learned hyperparameters it shrinks a little
faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..common.markup import curve, table
from ..common.validation import Array, Values, positive_number
from ..posterior.posterior import Posterior
from ..posterior.targets import Target
from .acquisition import Rates
from .costs import affordable
from .evaluations import Choice
from .initial import next_planned
from .labels import COST, Labels, with_unit
from .search import Search


@dataclass(frozen=True)
class ForecastSettings:
    """Length and precision of forecasts."""

    #: maximum number of evaluations ahead: each takes as long as a decision
    steps: int = 300
    #: only one in so many of the posteriors behind a decision is used: a forecast is many decisions, but may be less
    #: precise
    every: int = 2
    #: power of the expected shrinkage of variances if hyperparameters are learned: as these become better known, error
    #: bars shrink a little faster than with fixed ones (chosen on the development problems of docs/arena.md)
    learning: float = 1.1
    #: maximum number of rows of a printed forecast
    printed: int = 12
    #: outputs whose standard deviations are printed side by side: as many fit on a line
    columns: int = 8


SETTINGS = ForecastSettings()


#: remark on a forecast that is not exact
ESTIMATED = "an estimate, as hyperparameters are learned: half of such forecasts are within a factor of two"


class Forecast(list[tuple[float, Values]]):
    """The expected standard deviation of the integral against total cost: a list of (cost, std).

    With several outputs the standard deviations are an array (M,).

    Attributes
    ----------
    outputs : tuple of str or None
        Names of the outputs, if there are several.
    exact : bool
        Whether hyperparameters are fixed, so that only rounding and failures can change the forecast. If they are
        learned it is an estimate, because later refits change both the error bar and the choices.
    labels : Labels
        Units of costs and outputs, for printing.
    targets : tuple of Target
        The target of each output, whose standard deviations these are.
    choices : tuple of Choice
        The forecast evaluations; the first row is before all of them, and each following row after one of them.
    """

    def __init__(
        self,
        rows: Sequence[tuple[float, Values]],
        exact: bool,
        outputs: tuple[str, ...] | None = None,
        choices: Sequence[Choice] = (),
        labels: Labels | None = None,
        targets: Sequence[Target] = (),
    ) -> None:
        super().__init__(rows)
        self.exact, self.outputs, self.choices = exact, outputs, tuple(choices)
        self.labels = labels or Labels()
        mean: Target = "mean"
        self.targets = tuple(targets or [mean] * len(outputs or [""]))

    def of_output(self, output: int) -> Forecast:
        """Return the forecast of one of several outputs."""
        rows = [(cost, float(stds[output])) for cost, stds in self]
        name = (self.outputs or [""])[output]
        return Forecast(
            rows, self.exact, None, self.choices, self.labels.of_output(name), self.targets[output : output + 1]
        )

    def __str__(self) -> str:
        head = self.labels.axis(COST)
        left = max(10, len(head))
        if self.outputs is None:
            lines = [
                f"{head:>{left}}  {self._named('expected std')}",
                *(f"{cost:>{left}.4g}  {std:.3g}" for cost, std in self._shown()),
            ]
        else:
            columns = self._columns()
            width = max(8, *(len(name) for name, _ in columns))
            lines = [
                f"{head:>{left}}  expected std of" + self._some(columns),
                "  ".join([" " * left, *(f"{name:>{width}}" for name, _ in columns)]),
                *(
                    "  ".join([f"{cost:>{left}.4g}", *(f"{stds[m]:>{width}.3g}" for _, m in columns)])
                    for cost, stds in self._shown()
                ),
            ]
        return "\n".join(lines if self.exact else [*lines, f"({ESTIMATED})"])

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the standard deviation against cost, on a logarithmic scale and as a table."""
        if self.outputs is not None:
            columns = self._columns()
            shown = [(f"{cost:.4g}", *(f"{stds[m]:.3g}" for _, m in columns)) for cost, stds in self._shown()]
            said = self._some(columns) + ("" if self.exact else f" ({ESTIMATED})")
            return (
                table((self.labels.axis(COST), *(f"std of {name}" for name, _ in columns)), shown)
                + f"<p><em>{said}</em></p>"
            )
        drawn = np.array([row for row in self if row[1] > 0]).reshape(-1, 2)
        picture = curve(drawn[:, 0], np.log(drawn[:, 1]), label="expected std against cost") if len(drawn) > 1 else ""
        rows = [(f"{cost:.4g}", f"{std:.3g}") for cost, std in self._shown()]
        head = (self.labels.axis(COST), self._named("expected std"))
        return picture + table(head, rows) + ("" if self.exact else f"<p><em>{ESTIMATED}</em></p>")

    def _columns(self) -> list[tuple[str, int]]:
        """Return labels and numbers of the outputs to print: of many outputs a few, from the first to the last."""
        names = self.outputs or ()
        every = np.linspace(0, len(names) - 1, min(len(names), SETTINGS.columns))
        return [(self._named(self.labels.label(names[round(m)]), round(m)), round(m)) for m in every.tolist()]

    def _named(self, text: str, m: int = 0) -> str:
        """Return ``text`` with the unit of the standard deviation of an output."""
        return with_unit(text, self.labels.target_unit(self.targets[m], (self.outputs or [""])[m]))

    def _some(self, columns: Sequence[tuple[str, int]]) -> str:
        """Return a remark on how many outputs are printed; empty if all are."""
        n = len(self.outputs or ())
        return "" if len(columns) == n else f" ({len(columns)} of {n} outputs)"

    def _shown(self) -> list[tuple[float, Values]]:
        """Return a few of the rows, from the first to the last."""
        every = np.linspace(0, len(self) - 1, SETTINGS.printed)
        return self if len(self) <= SETTINGS.printed else [self[round(i)] for i in every]


def budget_ahead(budget: float, committed: float) -> float:
    """Return the budget of a forecast; raise ValueError if more than that is spent or reserved."""
    if not affordable(committed, positive_number(budget, "budget")):
        raise ValueError(f"budget is {budget:.6g}, but {committed:.6g} is spent or reserved: give a larger one")
    return budget


#: a function of a rate, the number of evaluations before, and the cost so far: the next evaluation, or None
Following: TypeAlias = Callable[[Rates, int, float], Choice | None]


def planned_first(
    planned: Sequence[Choice], price: Callable[[Choice], float], budget: float, best: Following
) -> Following:
    """Return a rule for the next choice: first the plan, as far as the budget covers it, then the best choices."""
    left = list(planned)

    def following(rate: Rates, n: int, cost: float) -> Choice | None:
        paid = next_planned(left, (), lambda choice: bool(affordable(cost + price(choice), budget)))
        return paid or best(rate, n, cost)

    return following


def forecast_rows(
    posterior: Posterior,
    std: Values,
    before: Array,
    rate: Rates,
    cost: float,
    next_choice: Following,
    price: Callable[[Choice], float],
    steps: int,
    learning: float,
) -> tuple[list[tuple[float, Values]], list[Choice]]:
    """Return (cost, std) now and after each forecast evaluation, and these evaluations.

    Parameters
    ----------
    posterior : Posterior
        The current posterior.
    std : float; with several outputs an array (M,)
        Standard deviation of the integral now.
    before : (channels,) array
        Variance of the integral of each channel, according to the posteriors behind the rate, conditioned on all
        observations.
    rate : Rates
        The acquisition rate according to the same posteriors, also conditioned on the pending queries.
    cost : float
        The cost that is spent or reserved for pending queries.
    next_choice : function of a Rate, the number of choices before, and the cost so far
        Returns the next choice, or None to end the forecast.
    price : function of a Choice
        Its expected cost.
    steps : int
        The largest number of evaluations to look ahead.
    learning : float
        Power of the expected shrinkage: one, if hyperparameters are fixed.
    """
    rows: list[tuple[float, Values]] = []
    choices: list[Choice] = []
    while True:
        expected = std * posterior.shrinkage((rate.variance() / before) ** learning)
        rows.append((cost, expected if np.ndim(std) else float(expected[0])))
        choice = next_choice(rate, len(choices), cost) if len(choices) < steps else None
        if choice is None:
            return rows, choices
        choices.append(choice)
        rate = rate.having([choice.option], choice.x[None])
        cost += price(choice)


def worth_of_cheap(rate: Rates, search: Search, points: Array, committed: float, price: float, planned: int) -> float:
    """Return the joint utility of the best cheap evaluations that a price covers, extrapolated from a few of them.

    Parameters
    ----------
    rate : Rates
    search : Search
        The search among the cheap evaluations.
    points : (n, D) array
        Candidate locations.
    committed, price : float
        The cost that is spent or reserved, and the most that the cheap evaluations may cost.
    planned : int
        How many of them are chosen; the rest is extrapolated.
    """
    worth, so_far = [0.0], rate
    for _ in range(planned):
        rest = search.among(search.options, committed + price, committed + so_far.paid - rate.paid)
        choice = rest.best(so_far, points)
        if choice is None:
            break
        so_far = so_far.after([choice.option], choice.x[None])
        worth.append(choice.rate * so_far.paid)
    return extrapolated(np.array(worth), price / max(so_far.paid - rate.paid, 1e-300))


def extrapolated(worth: Array, times: float) -> float:
    """Extrapolate the utility of a sequence of evaluations to one that is ``times`` as long.

    ``worth`` has the utility of the first 0, 1, 2, ... evaluations. Each evaluation is assumed to add less than the one
    before by a constant factor.
    """
    if not np.isfinite(worth[-1]):
        return float(worth[-1])
    gains = np.diff(worth)
    n = len(gains)
    more = n * (times - 1)
    if n < 2 or more < 1 or gains[-1] <= 0:
        return float(worth[-1])
    factor = min((gains[-1] / gains[0]) ** (1 / (n - 1)), 1.0) if gains[0] > 0 else 1.0
    rest = more if factor > 1 - 1e-9 else factor * (1 - factor**more) / (1 - factor)
    return float(worth[-1] + gains[-1] * rest)
