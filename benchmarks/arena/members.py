"""The default beside simpler models of this library, with which it would share its fate if it averaged badly.

A cell is a problem at a budget, with the root mean square error over seeds. Ratios are geometric means over the cells
that both have: multilevel BQ, for one, has none where the budget does not pay for its pilot.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from .families import MAKERS
from .scores import BUDGETS, LEAST_ERROR, geometric_mean, rmse
from .tables import OURS, Results, markdown

MEMBERS = ("vbq", "icm", "lmc", "ar", "multilevel BQ")
#: by how much the default's error may exceed that of the best of them
TOLERATED = 1.1

Cells: TypeAlias = dict[tuple[str, float], float]


def cells(results: Results) -> Cells:
    """Return the root mean square error over seeds for each problem and budget."""
    return {
        (problem, budget): max(rmse(errors)[0], LEAST_ERROR)
        for budget in BUDGETS
        for problem, errors in results.errors_by_problem(budget).items()
    }


def ratio(ours: Cells, theirs: Cells) -> tuple[float, float]:
    """Return our errors divided by theirs, over all shared cells, and the standard error; NaN if there are none."""
    shared = sorted(ours.keys() & theirs.keys())
    if not shared:
        return np.nan, np.nan
    found, spread = geometric_mean(np.array([ours[cell] / theirs[cell] for cell in shared]))
    return found, found * spread


def beside_members(results: Results) -> str:
    """Return a row for each family, and one for all: the default's error divided by that of each member."""
    rows = []
    for name in (*MAKERS, ""):
        chosen = results.of_family(name) if name else results
        ours = cells(chosen.of_method(OURS))
        found = [ratio(ours, cells(chosen.of_method(member))) for member in MEMBERS]
        if np.isfinite([each for each, _ in found]).any():
            rows.append([name or "all", *(_cell(*each) for each in found)])
    return markdown(["family", *(f"beside {member}" for member in MEMBERS)], rows) if rows else ""


def _cell(found: float, error: float) -> str:
    if not np.isfinite(found):
        return "–"
    text = f"{found:.2f} ± {error:.2f}"
    return f"**{text}**" if found > TOLERATED else text
