"""Shared parts of the experiments: jobs compute rows, rows make tables, and tables alone make claims and figures.

An experiment is a list of jobs that other processes can run. Their rows are collected in tables, which are written as
CSV files and read again, so that claims and figures follow from the files and from nothing else.

Tables of runs have one row for each evaluation (see `evaluation_rows`): the method, the seed, the number of the step
and of the source (both from 1), the inputs x0, x1, ..., the value, its cost, the total cost so far (``spent``), the
mean and standard deviation of the integral after it, and the true value of the integral (``truth``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..api import integrate
from ..baselines.bayesian import vanilla_bq
from ..common.validation import Array
from ..design.acquisition import AcquisitionName
from ..design.description import Initial
from ..design.sources import Source
from ..execution.integrator import Integrator
from ..inference.structures import ModelName
from ..measures.base import Measure
from ..results.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

Row: TypeAlias = dict[str, Any]  #: a row of a table, by column
Tables: TypeAlias = "dict[str, DataFrame]"  #: the tables of an experiment, by name

#: multi-source methods by the names under which they are shown: a model, and an acquisition
METHODS: dict[str, tuple[ModelName, AcquisitionName]] = {
    "AMS-BQ, MI": ("icm", "mi"),
    "AMS-BQ, IVR": ("icm", "ivr"),
    "default, MI": ("auto", "mi"),
    "default, IVR": ("auto", "ivr"),
}
#: names under which the methods with one source are shown
VANILLA, PERCENTILES, SECONDARY = "vanilla BQ", "percentiles", "secondary only"


@dataclass(frozen=True)
class Settings:
    """Extent of a reproduction.

    Parameters
    ----------
    seeds : int
        Number of repetitions with different random numbers.
    quick : bool
        Whether to run only one or two seeds on small budgets, to check that everything works.
    """

    seeds: int
    quick: bool = False


@dataclass(frozen=True)
class Job:
    """A unit of work that computes rows of a table in any process: a module-level function and its arguments."""

    table: str
    compute_rows: Callable[..., list[Row]]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A statement of the paper or of this library, and the finding.

    ``holds`` is None if the paper's model does not behave as the paper says: that is reported, but is not a failure of
    this library, which makes the claim for its default model only.
    """

    text: str
    found: str
    holds: bool | None


@dataclass(frozen=True)
class Experiment:
    """An experiment of the paper: the jobs that compute its tables, and the claims and figures made from these."""

    name: str
    title: str
    jobs: Callable[[Settings], list[Job]]
    claims: Callable[[Tables], list[Claim]]
    figures: Callable[[Tables], dict[str, Figure]]


def run_method(
    method: str,
    sources: Sequence[Source],
    measure: Measure,
    budget: float,
    seed: int,
    initial: Initial,
    vanilla_initial: Initial | None = None,
) -> Result:
    """Run a method by its name, and return its result.

    Vanilla BQ starts with ``vanilla_initial``, or by default with the evaluations of the primary source in ``initial``.
    """
    if method == VANILLA:
        primary_part = [entry for entry in initial if entry[0] == 0]
        first = primary_part if vanilla_initial is None else vanilla_initial
        return vanilla_bq(sources, measure, budget=budget, seed=seed, initial=first, progress=False)
    model, acquisition = METHODS[method]
    return integrate(
        list(sources),
        measure,
        budget=budget,
        model=model,
        acquisition=acquisition,
        seed=seed,
        initial=initial,
        progress=False,
    )


def evaluation_rows(result: Result, truth: float, **labels: Any) -> list[Row]:
    """Return a row for each evaluation of a run, with the integral after it; ``labels`` are further columns."""
    rows, spent = [], 0.0
    for step, e in enumerate(result.evaluations, 1):
        spent += e.cost
        x = {f"x{d}": value for d, value in enumerate(e.x.tolist())}
        outcome = {"value": e.value, "cost": e.cost, "spent": spent, "mean": e.mean, "std": e.std, "truth": truth}
        rows.append({**labels, "step": step, "source": e.source + 1, **x, **outcome})
    return rows


def posterior_rows(it: Integrator, grid: Array, **labels: Any) -> list[Row]:
    """Return the posterior mean and standard deviation of each source, and its rate, at each point of a grid.

    The sources have one input, and ``grid`` has shape (n,); ``labels`` are further columns.
    """
    rates = it.rates(grid[:, None])
    rows = []
    for source in range(len(it.sources)):
        mean, variance = it.predict(source, grid[:, None])
        columns = zip(grid, mean, np.sqrt(variance), rates[source], strict=True)
        rows += [{**labels, "source": source + 1, "x": x, "mean": m, "std": s, "rate": r} for x, m, s, r in columns]
    return rows


def errors_at_costs(runs: DataFrame, costs: Array) -> Array:
    """Return the absolute relative error of each run (one per seed) when it had spent each of the costs.

    The shape is (runs, costs); entries before the first estimate are NaN.
    """
    return np.array([_errors_of_run(one_run, costs) for _, one_run in runs.groupby("seed")])


def _errors_of_run(one_run: DataFrame, costs: Array) -> Array:
    known = one_run[np.isfinite(one_run["mean"])]
    errors = np.append(np.nan, np.abs(known["mean"] / known["truth"] - 1))
    latest = np.searchsorted(known["spent"].to_numpy(), costs * (1 + 1e-12), side="right")
    return np.asarray(errors[latest])


def costs_of_accuracy(runs: DataFrame, accuracy: float) -> list[float]:
    """Return for each run (one per seed) the cost after which its relative error stays at or below ``accuracy``.

    It is infinite for a run that never does.
    """
    costs = []
    for _, one_run in runs.groupby("seed"):
        known = one_run[np.isfinite(one_run["mean"])]
        errors = np.abs(known["mean"] / known["truth"] - 1)
        costs.append(cost_to_stay_below(known["spent"].to_numpy(), errors.to_numpy(), accuracy))
    return costs


def cost_to_stay_below(costs: Array, errors: Array, accuracy: float) -> float:
    """Return the least of increasing costs such that no later error exceeds ``accuracy``; infinity if there is none."""
    too_large = np.flatnonzero(~(errors <= accuracy))
    after = too_large[-1] + 1 if len(too_large) else 0
    return float(costs[after]) if after < len(costs) else math.inf


def percent(share: float) -> str:
    """Return a share as text, in per cent with two significant digits, or no decimals from 9.5 % on."""
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.2g} %"
