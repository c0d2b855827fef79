"""How an experiment is reproduced: jobs make rows, rows make tables, and tables alone make claims and figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..api import integrate
from ..baselines.bayesian import vanilla_bq
from ..design.integrator import Integrator
from ..results.result import Result
from ..validation import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

Row: TypeAlias = dict[str, Any]
Tables: TypeAlias = "dict[str, DataFrame]"
Initial: TypeAlias = Sequence[tuple[int, ArrayLike]]

#: multi-source methods by the names under which they are shown: a model, and an acquisition
METHODS = {
    "AMS-BQ, MI": ("icm", "mi"),
    "AMS-BQ, IVR": ("icm", "ivr"),
    "default, MI": ("auto", "mi"),
    "default, IVR": ("auto", "ivr"),
}
VANILLA, PERCENTILES, SECONDARY = "vanilla BQ", "percentiles", "secondary only"


@dataclass(frozen=True)
class Settings:
    """How thorough to be."""

    seeds: int
    quick: bool = False


@dataclass(frozen=True)
class Job:
    """Some rows of a table; the function is one of a module, so that another process can find it."""

    table: str
    rows: Callable[..., list[Row]]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Claim:
    """Something that the paper or this library says, and what was found."""

    text: str
    found: str
    holds: bool | None  #: None where it does not, and this library does not say so: it is the paper's model's to hold


@dataclass(frozen=True)
class Experiment:
    """One of the paper's."""

    name: str
    title: str
    jobs: Callable[[Settings], list[Job]]
    claims: Callable[[Tables], list[Claim]]
    figures: Callable[[Tables], dict[str, Figure]]


def run(
    method: str,
    sources: Sequence[Any],
    measure: Any,
    budget: float,
    seed: int,
    initial: Initial,
    first: Initial | None = None,
) -> Result:
    """One run, by the name of its method; vanilla BQ starts with ``first``, or with the primary part of ``initial``."""
    if method == VANILLA:
        first = [entry for entry in initial if entry[0] == 0] if first is None else first
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


def history(result: Result, truth: float, **labels: Any) -> list[Row]:
    """A row for each evaluation, with what was known after it."""
    rows, spent = [], 0.0
    for step, e in enumerate(result.evaluations, 1):
        spent += e.cost
        x = {f"x{d}": value for d, value in enumerate(e.x.tolist())}
        known = {"value": e.value, "cost": e.cost, "spent": spent, "mean": e.mean, "std": e.std, "truth": truth}
        rows.append({**labels, "step": step, "source": e.source + 1, **x, **known})
    return rows


def state(it: Integrator, grid: Array, **labels: Any) -> list[Row]:
    """What is known of each source of one input on a grid, and the rate of the next evaluation there."""
    belief = it.learner.belief
    assert belief is not None
    rates = it.rates(grid[:, None])
    rows = []
    for source in range(len(it.sources)):
        mean, std = belief.predict(source, grid[:, None])
        columns = zip(grid, mean, std, rates[source], strict=True)
        rows += [{**labels, "source": source + 1, "x": x, "mean": m, "std": s, "rate": r} for x, m, s, r in columns]
    return rows


def errors_at(runs: DataFrame, costs: Array) -> Array:
    """The relative error of each run, without its sign, when so much was spent: (runs, costs), NaN before any."""
    return np.array([_last_error(group, costs) for _, group in runs.groupby("seed")])


def _last_error(run_of_seed: DataFrame, costs: Array) -> Array:
    known = run_of_seed[np.isfinite(run_of_seed["mean"])]
    errors = np.append(np.nan, np.abs(known["mean"] / known["truth"] - 1))
    latest = np.searchsorted(known["spent"].to_numpy(), costs * (1 + 1e-12), side="right")
    return np.asarray(errors[latest])


def cost_of_accuracy(runs: DataFrame, accuracy: float) -> list[float]:
    """For each run, the cost from which on the relative error stays below; infinite if it does not."""
    costs = []
    for _, group in runs.groupby("seed"):
        known = group[np.isfinite(group["mean"])]
        errors = np.abs(known["mean"] / known["truth"] - 1)
        costs.append(cost_to_stay_below(known["spent"].to_numpy(), errors.to_numpy(), accuracy))
    return costs


def cost_to_stay_below(costs: Array, errors: Array, accuracy: float) -> float:
    """The first of the costs from which on all errors are at most that large; infinite if there is none."""
    too_large = np.flatnonzero(~(errors <= accuracy))
    after = too_large[-1] + 1 if len(too_large) else 0
    return float(costs[after]) if after < len(costs) else math.inf


def percent(share: float) -> str:
    """Two digits of it, and not more than are there."""
    return f"{100 * share:.0f} %" if share >= 0.095 else f"{100 * share:.2g} %"
