"""The wigglified Forrester pair of Section 4.1: what does accuracy cost, if costs depend on source and location?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize_scalar

from ..api import integrate
from ..baselines.monte_carlo import percentile
from ..design.integrator import Integrator
from ..design.sources import Source
from ..measures.uniform import Uniform
from ..validation import Array
from . import drawing, forrester
from .forrester import GRID, LogisticCost, functions_and_costs
from .study import (
    METHODS,
    PERCENTILES,
    VANILLA,
    Claim,
    Experiment,
    Initial,
    Job,
    Row,
    Settings,
    Tables,
    cost_of_accuracy,
    history,
    percent,
    run,
    state,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARED = 3  #: random locations at which both sources are evaluated first; vanilla BQ has the primary values only
BUDGETS = {"icm": 14.0, "auto": 10.0, VANILLA: 20.0}
STUCK = 30  #: evaluations by integral precision
ACCURACY = 1e-2


def primary(x: Array) -> Array:
    """f_1, which varies on a smaller scale than Forrester's."""
    return forrester.primary(x) - (2 - x) ** 2 * np.sin(36 * x)


def secondary(x: Array) -> Array:
    """f_2."""
    return 0.75 * primary(x) + 16 * (x - 0.5) + 10


def true_integral() -> float:
    """∫₀¹ f_1; the additional term (2 - x)² sin(36x) by parts."""
    c, s = np.cos(36), np.sin(36)
    return forrester.true_integral() - float((4 - c) / 36 - (2 * s) / 36**2 + 2 * (c - 1) / 36**3)


#: in (0, 1], sums of logistic functions with a minimum, almost the same near x = 0
COSTS = (
    LogisticCost(0.75, (0.25, -15.0, 0.15), (0.1, 15.0, 0.9)),
    LogisticCost(0.01, (0.95, -30.0, 0.12), (0.1, 20.0, 0.85)),
)


def at(function: Any) -> Any:
    """As a source calls it, with x of shape (1,)."""
    return lambda x: float(function(x[0]))


def sources() -> list[Source]:
    """Both, with their costs."""
    return [
        Source(at(f), cost=cost, name=name)
        for f, cost, name in zip((primary, secondary), COSTS, ("f1", "f2"), strict=True)
    ]


def cheapest() -> float:
    """Where the secondary source costs least."""
    return float(minimize_scalar(lambda x: COSTS[1](np.array([x])), bounds=(0, 1), method="bounded").x)


def _start(seed: int) -> Initial:
    locations = np.random.default_rng([seed, 41]).uniform(size=(SHARED, 1))
    return [(source, x) for x in locations for source in (0, 1)]


def sources_rows() -> list[Row]:
    return functions_and_costs((primary, secondary), COSTS)


def run_rows(method: str, seed: int, budget: float) -> list[Row]:
    found = run(method, sources(), Uniform(0, 1), budget, seed, _start(seed))
    return history(found, true_integral(), method=method, seed=seed)


def percentile_rows(budget: float) -> list[Row]:
    """The estimates for all budgets, each of which has other nodes."""
    rows: list[Row] = []
    for total in np.arange(1.0, budget + 0.01, 0.25):
        found = percentile(sources(), Uniform(0, 1), budget=total, nodes="right")
        last = history(found, true_integral(), method=PERCENTILES, seed=0)[-1]
        if not rows or last["spent"] > rows[-1]["spent"]:
            rows.append(last)
    return rows


def stuck_rows() -> list[Row]:
    """Integral precision at work."""
    found = integrate(
        sources(),
        Uniform(0, 1),
        budget=100,
        model="icm",
        acquisition="ip",
        initial=_start(0),
        max_evaluations=2 * SHARED + STUCK,
        progress=False,
    )
    return history(found, true_integral(), method="AMS-BQ, IP", seed=0)[2 * SHARED :]


def state_rows(method: str, budget: float) -> list[Row]:
    """What is known at the end of a run, and where it was evaluated."""
    model, acquisition = METHODS[method]
    it = Integrator(sources(), Uniform(0, 1), budget=budget, model=model, acquisition=acquisition, initial=_start(0))
    while (query := it.ask()) is not None:
        it.tell(query, float((primary, secondary)[query.source](query.x[0])))
    data = [
        {"method": method, "kind": "data", "source": e.source + 1, "x": e.x[0], "mean": e.value} for e in it.evaluations
    ]
    return data + [{**row, "kind": "state"} for row in state(it, GRID, method=method)]


def jobs(settings: Settings) -> list[Job]:
    seeds, small = (1, 0.4) if settings.quick else (settings.seeds, 1.0)
    budgets = {method: small * BUDGETS[model] for method, (model, _) in METHODS.items()}
    budgets[VANILLA] = long = small * BUDGETS[VANILLA]
    shown = ("AMS-BQ, MI",) if settings.quick else ("AMS-BQ, MI", "default, MI")
    return [
        *(Job("runs", run_rows, (m, seed, b)) for seed in range(seeds) for m, b in budgets.items()),
        *(Job("state", state_rows, (method, budgets[method])) for method in shown),
        Job("sources", sources_rows),
        Job("runs", percentile_rows, (long,)),
        Job("stuck", stuck_rows),
    ]


def claims(tables: Tables) -> list[Claim]:
    runs = tables["runs"]
    costs = {m: float(np.median(cost_of_accuracy(of, ACCURACY))) for m, of in runs.groupby("method")}
    spent = runs.groupby("method")["spent"].max()

    def brief(method: str) -> str:
        return f"{costs[method]:.2f}" if np.isfinite(costs[method]) else f"more than {spent[method]:.2f}"

    least = min(costs[VANILLA], costs[PERCENTILES])
    found = []
    for method, (model, _) in METHODS.items():
        better = bool(costs[method] < 0.8 * least)
        found.append(
            Claim(
                f"{method} reaches {ACCURACY:g} at a clearly lower median cost than vanilla BQ and percentiles",
                f"{brief(method)} against {brief(VANILLA)} and {brief(PERCENTILES)}",
                better if model == "auto" or better else None,
            )
        )
    stuck = tables["stuck"]
    above = float(stuck["cost"].max() / COSTS[1](np.array([cheapest()])) - 1)
    found.append(
        Claim(
            "integral precision is stuck: it asks for nothing but the secondary source where that is cheapest",
            f"{len(stuck)} evaluations, all at costs within {percent(above)} of the smallest, at x = {cheapest():.2f}",
            bool((stuck["source"] == 2).all()) and above < 0.1,
        )
    )
    return found


def figures(tables: Tables) -> dict[str, Figure]:
    pictures = {"sources": _draw_sources(tables["sources"])}
    pictures["error"] = _draw_errors(tables["runs"])
    pictures["one-run"] = _draw_one_run(tables["runs"])
    for method, group in tables["state"].groupby("method"):
        name = "default" if "default" in str(method) else "paper"
        pictures[f"final-{name}"] = _draw_final(group, tables["stuck"], str(method))
    return pictures


def _draw_sources(table: Any) -> Figure:
    figure, [[left, right]] = drawing.panels(1, 2)
    for source, group in table.groupby("source"):
        look = drawing.SOURCES[source - 1]
        line = {"color": look["color"], "linestyle": look["linestyle"]}
        left.plot(group["x"], group["value"], label=f"$f_{source}$", **line)
        right.plot(group["x"], group["cost"], label=f"$c_{source}$", **line)
    left.set(xlabel="input $x$", ylabel="output", xlim=(0, 1))
    right.set(xlabel="input $x$", ylabel="cost of an evaluation", yscale="log", xlim=(0, 1))
    drawing.legend_below(figure, left, right)
    return figure


def _draw_errors(runs: Any) -> Figure:
    figure, [[ax]] = drawing.panels(width=6.4, height=4.2)
    costs = np.arange(0.5, runs["spent"].max() + 0.05, 0.05)
    drawing.medians(ax, runs, costs, [*METHODS, VANILLA, PERCENTILES])
    ax.axhline(ACCURACY, color="0.4", linewidth=0.8)
    seeds = runs["seed"].nunique()
    ax.set(xlabel="cost", ylabel=f"relative error, median of {seeds} seeds", ylim=(1e-4, None))
    drawing.legend_below(figure, ax, columns=3)
    return figure


def _draw_one_run(runs: Any) -> Figure:
    figure, axes = drawing.panels(2, 2, width=3.8, height=2.6, sharey=True)
    pairs = [("AMS-BQ, MI", "AMS-BQ, IVR"), ("default, MI", "default, IVR"), (VANILLA,), (PERCENTILES,)]
    for ax, methods in zip(axes.flat, pairs, strict=True):
        for method in methods:
            drawing.signed(ax, runs[(runs["method"] == method) & (runs["seed"] == 0)], method)
        ax.axhline(0, color="k", linewidth=0.6)
        ax.set(ylim=(-1, 1))
    for ax in axes[:, 0]:
        ax.set(ylabel="relative error ± 2 std")
    for ax in axes[-1]:
        ax.set(xlabel="cost")
    drawing.legend_below(figure, *axes.flat, columns=3)
    return figure


def _draw_final(group: Any, stuck: Any, method: str) -> Figure:
    figure, [[ax]] = drawing.panels(width=6.4, height=3.8)
    data = group[group["kind"] == "data"].rename(columns={"x": "x0", "mean": "value"})
    drawing.sources_with_bands(ax, group[group["kind"] == "state"], data)
    if "AMS" in method:
        ax.plot(stuck["x0"], stuck["value"], "x", color="k", markersize=8, label=f"{len(stuck)} evaluations by IP")
    ax.set(xlabel="input $x$", ylabel="output", xlim=(0, 1), title=f"{method}, at the end of a run")
    drawing.legend_below(figure, ax)
    return figure


EXPERIMENT = Experiment(
    "wiggly",
    "the wigglified Forrester pair: error against cost, beside vanilla BQ and percentiles; IP stuck (Figs. 4, 10)",
    jobs,
    claims,
    figures,
)
