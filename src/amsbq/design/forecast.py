"""What is asked, what came of it, and what is to be expected."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Forecast(list[tuple[float, float]]):
    """The expected standard deviation of the integral against total cost: a list of (cost, std).

    Attributes
    ----------
    exact : bool
        Whether hyperparameters are fixed, so that only rounding and failures can change it. Where they are learned it
        is an estimate: what is learned on the way changes both the error bar and what is asked.
    """

    def __init__(self, rows: Sequence[tuple[float, float]], exact: bool) -> None:
        super().__init__(rows)
        self.exact = exact

    def __str__(self) -> str:
        shown_rows = self if len(self) <= 12 else [self[round(i)] for i in np.linspace(0, len(self) - 1, 12)]
        lines = [f"{'cost':>10}  expected std", *(f"{cost:>10.4g}  {std:.3g}" for cost, std in shown_rows)]
        if not self.exact:
            lines.append("(an estimate: hyperparameters are learned on the way, and will change it)")
        return "\n".join(lines)
