"""The wigglified Forrester pair of Section 4.1 (Figures 4 and 10): the cost of accuracy.

The primary source f₁(x) = (6x - 2)² sin(12x - 4) - (2 - x)² sin(36x) varies on a smaller scale than the Forrester
function, and f₂(x) = 3/4 f₁(x) + 16 (x - 1/2) + 10. Both costs have a minimum inside [0, 1]. This computes runs of
the multi-source methods, of vanilla BQ and of the percentile estimator (Figure 4), the state at the end of a run
(Figure 10), and a run by integral precision.

Claims: the multi-source methods reach a relative error of 1e-2 at a clearly lower cost than vanilla BQ and percentiles
(claimed for the default model; for the paper's it is only reported); and integral precision is stuck at the location
where the secondary source costs least.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar

from ..api import integrate
from ..baselines.averages import percentile
from ..common.validation import Array
from ..design.description import Initial
from ..design.sources import Source
from ..execution.integrator import Integrator
from ..measures.uniform import Uniform
from . import drawing, forrester
from .forrester import GRID, LogisticCost, values_and_costs
from .study import (
    METHODS,
    PERCENTILES,
    VANILLA,
    Claim,
    Experiment,
    Job,
    Row,
    Settings,
    Tables,
    costs_of_accuracy,
    evaluation_rows,
    percent,
    posterior_rows,
    run_method,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


@dataclass(frozen=True)
class WigglySetup:
    """Constants of the experiment."""

    initial_locations: int = 3  # random ones, at which both sources are evaluated first; vanilla BQ has the primary's
    accuracy: float = 1e-2  # relative error whose cost is compared
    clearly_lower: float = 0.8  # a cost below this share of the other is clearly lower
    budget: float = 10.0  # budget of the default model, which needs about 8
    paper_budget: float = 14.0  # budget of the paper's model, which needs more
    vanilla_budget: float = 20.0  # budget of single-source methods, which need even more
    quick_share: float = 0.25  # share of the budgets for a quick reproduction
    precision_evaluations: int = 30  # evaluations by integral precision, enough to see that it is stuck


SETUP = WigglySetup()
#: costs in (0, 1]: sums of logistic functions with a minimum, almost equal near x = 0
COSTS = (
    LogisticCost(0.75, (0.25, -15.0, 0.15), (0.1, 15.0, 0.9)),
    LogisticCost(0.01, (0.95, -30.0, 0.12), (0.1, 20.0, 0.85)),
)


def primary(x: Array) -> Array:
    """Return the expensive source f₁ at inputs x in [0, 1]."""
    return forrester.primary(x) - (2 - x) ** 2 * np.sin(36 * x)


def secondary(x: Array) -> Array:
    """Return the cheap source f₂ at inputs x in [0, 1]."""
    return 0.75 * primary(x) + 16 * (x - 0.5) + 10


def true_integral() -> float:
    """Return ∫₀¹ f₁(x) dx; the term (2 - x)² sin(36x) is integrated by parts."""
    c, s = np.cos(36), np.sin(36)
    return forrester.true_integral() - float((4 - c) / 36 - (2 * s) / 36**2 + 2 * (c - 1) / 36**3)


def sources() -> list[Source]:
    """Return the primary and the secondary source with their costs."""
    return [
        Source(_of_location(f), cost=cost, name=name)
        for f, cost, name in zip((primary, secondary), COSTS, ("f1", "f2"), strict=True)
    ]


def _of_location(function: Callable[[Array], Array]) -> Callable[[Array], float]:
    """Return a function of x of shape (1,), the calling convention of sources."""
    return lambda x: float(function(x[0]))


def cheapest_location() -> float:
    """Return the input at which the secondary source costs least."""
    return float(minimize_scalar(lambda x: COSTS[1](np.array([x])), bounds=(0, 1), method="bounded").x)


def _initial_design(seed: int) -> Initial:
    locations = np.random.default_rng([seed, 41]).uniform(size=(SETUP.initial_locations, 1))
    return [(source, x) for x in locations for source in (0, 1)]


def source_rows() -> list[Row]:
    """Return the value and the cost of both sources on a grid."""
    return values_and_costs((primary, secondary), COSTS)


def run_rows(method: str, seed: int, budget: float) -> list[Row]:
    """Return the evaluations of one run."""
    found = run_method(method, sources(), Uniform(0, 1), budget, seed, _initial_design(seed))
    return evaluation_rows(found, true_integral(), method=method, seed=seed)


def percentile_rows(budget: float) -> list[Row]:
    """Return the percentile estimates for all budgets up to one: each has its own nodes, and is a separate run."""
    rows: list[Row] = []
    for total in np.arange(1.0, budget + 0.01, 0.25):
        found = percentile(sources(), Uniform(0, 1), budget=total, nodes="right")
        last = evaluation_rows(found, true_integral(), method=PERCENTILES, seed=0)[-1]
        if not rows or last["spent"] > rows[-1]["spent"]:
            rows.append(last)
    return rows


def precision_rows() -> list[Row]:
    """Return the evaluations that integral precision chooses, after the initial design."""
    initial = _initial_design(0)
    found = integrate(
        sources(),
        Uniform(0, 1),
        budget=100,
        model="icm",
        acquisition="ip",
        initial=initial,
        max_evaluations=len(initial) + SETUP.precision_evaluations,
        progress=False,
    )
    return evaluation_rows(found, true_integral(), method="AMS-BQ, IP", seed=0)[len(initial) :]


def final_state_rows(method: str, budget: float) -> list[Row]:
    """Return the "data" and the "state" (the posterior on a grid) at the end of a run, by the column ``kind``."""
    model, acquisition = METHODS[method]
    initial = _initial_design(0)
    it = Integrator(sources(), Uniform(0, 1), budget=budget, model=model, acquisition=acquisition, initial=initial)
    while (query := it.ask()) is not None:
        it.tell(query, float((primary, secondary)[query.source](query.x[0])))
    data = [
        {"method": method, "kind": "data", "source": e.source + 1, "x": e.x[0], "mean": e.value} for e in it.evaluations
    ]
    return data + [{**row, "kind": "state"} for row in posterior_rows(it, GRID, method=method)]


def jobs(settings: Settings) -> list[Job]:
    """Return the jobs of the experiment: a run for each method and seed, final states, and integral precision."""
    seeds, share = (1, SETUP.quick_share) if settings.quick else (settings.seeds, 1.0)
    of_model = {"icm": SETUP.paper_budget, "auto": SETUP.budget}
    budgets = {method: share * of_model[model] for method, (model, _) in METHODS.items()}
    budgets[VANILLA] = vanilla_budget = share * SETUP.vanilla_budget
    shown = ("AMS-BQ, MI",) if settings.quick else ("AMS-BQ, MI", "default, MI")
    return [
        *(Job("runs", run_rows, (m, seed, b)) for seed in range(seeds) for m, b in budgets.items()),
        *(Job("state", final_state_rows, (method, budgets[method])) for method in shown),
        Job("sources", source_rows),
        Job("runs", percentile_rows, (vanilla_budget,)),
        Job("stuck", precision_rows),
    ]


def claims(tables: Tables) -> list[Claim]:
    """Compare the costs of accuracy, and check that integral precision is stuck."""
    runs = tables["runs"]
    costs = {m: float(np.median(costs_of_accuracy(of, SETUP.accuracy))) for m, of in runs.groupby("method")}
    spent = runs.groupby("method")["spent"].max()

    def brief(method: str) -> str:
        return f"{costs[method]:.2f}" if np.isfinite(costs[method]) else f"more than {spent[method]:.2f}"

    least = min(costs[VANILLA], costs[PERCENTILES])
    found = []
    for method, (model, _) in METHODS.items():
        better = bool(costs[method] < SETUP.clearly_lower * least)
        found.append(
            Claim(
                f"{method} reaches {SETUP.accuracy:g} at a clearly lower median cost than vanilla BQ and percentiles",
                f"{brief(method)} against {brief(VANILLA)} and {brief(PERCENTILES)}",
                better if model == "auto" or better else None,
            )
        )
    return [*found, _claim_of_precision(tables["stuck"])]


def _claim_of_precision(evaluations: DataFrame) -> Claim:
    x = cheapest_location()
    above = float(evaluations["cost"].max() / COSTS[1](np.array([x])) - 1)
    return Claim(
        "integral precision is stuck: it asks for nothing but the secondary source where that is cheapest",
        f"{len(evaluations)} evaluations, all at costs within {percent(above)} of the smallest, at x = {x:.2f}",
        bool((evaluations["source"] == 2).all()) and above < 0.1,
    )


def figures(tables: Tables) -> dict[str, Figure]:
    """Draw sources and costs, errors over seeds and of one run, and final states."""
    pictures = {"sources": _draw_sources(tables["sources"])}
    pictures["error"] = _draw_errors(tables["runs"])
    pictures["one-run"] = _draw_one_run(tables["runs"])
    for method, group in tables["state"].groupby("method"):
        name = "default" if "default" in str(method) else "paper"
        pictures[f"final-{name}"] = _draw_final(group, tables["stuck"], str(method))
    return pictures


def _draw_sources(table: DataFrame) -> Figure:
    """Draw the values of both sources on the left, and their costs on the right."""
    figure, [[left, right]] = drawing.panels(1, 2)
    for source, group in table.groupby("source"):
        line = drawing.line_style(source)
        left.plot(group["x"], group["value"], label=f"$f_{source}$", **line)
        right.plot(group["x"], group["cost"], label=f"$c_{source}$", **line)
    left.set(xlabel="input $x$", ylabel="output", xlim=(0, 1))
    right.set(xlabel="input $x$", ylabel="cost of an evaluation", yscale="log", xlim=(0, 1))
    drawing.legend_below(figure, left, right)
    return figure


def _draw_errors(runs: DataFrame) -> Figure:
    """Draw the median error of all methods against cost."""
    figure, [[ax]] = drawing.panels(width=6.4, height=4.2)
    costs = np.arange(0.5, runs["spent"].max() + 0.05, 0.05)
    drawing.draw_median_errors(ax, runs, costs, [*METHODS, VANILLA, PERCENTILES])
    ax.axhline(SETUP.accuracy, color="0.4", linewidth=0.8)
    seeds = runs["seed"].nunique()
    ax.set(xlabel="cost", ylabel=f"relative error, median of {seeds} seeds", ylim=(1e-4, None))
    drawing.legend_below(figure, ax, columns=3)
    return figure


def _draw_one_run(runs: DataFrame) -> Figure:
    """Draw the signed error of one run of each method, with two standard deviations."""
    figure, axes = drawing.panels(2, 2, width=3.8, height=2.6, sharey=True)
    groups = [("AMS-BQ, MI", "AMS-BQ, IVR"), ("default, MI", "default, IVR"), (VANILLA,), (PERCENTILES,)]
    for ax, methods in zip(axes.flat, groups, strict=True):
        for method in methods:
            drawing.draw_signed_error(ax, runs[(runs["method"] == method) & (runs["seed"] == 0)], method)
        ax.axhline(0, color="k", linewidth=0.6)
        ax.set(ylim=(-1, 1))
    for ax in axes[:, 0]:
        ax.set(ylabel="relative error ± 2 std")
    for ax in axes[-1]:
        ax.set(xlabel="cost")
    drawing.legend_below(figure, *axes.flat, columns=3)
    return figure


def _draw_final(table: DataFrame, by_precision: DataFrame, method: str) -> Figure:
    """Draw the posterior at the end of a run; for the paper's model, with the evaluations by integral precision."""
    figure, [[ax]] = drawing.panels(width=6.4, height=3.8)
    data = table[table["kind"] == "data"].rename(columns={"mean": "value"})
    drawing.draw_posterior(ax, table[table["kind"] == "state"], data)
    if "AMS" in method:
        label = f"{len(by_precision)} evaluations by IP"
        ax.plot(by_precision["x0"], by_precision["value"], "x", color="k", markersize=8, label=label)
    ax.set(xlabel="input $x$", ylabel="output", xlim=(0, 1), title=f"{method}, at the end of a run")
    drawing.legend_below(figure, ax)
    return figure


EXPERIMENT = Experiment(
    "wiggly",
    "the wigglified Forrester pair: error against cost, also of vanilla BQ, with percentiles; IP stuck (Figs. 4, 10)",
    jobs,
    claims,
    figures,
)
