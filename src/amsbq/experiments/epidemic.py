"""The simulation of infections of Section 4.2: a stochastic epidemic, and the differential equations of a simpler one.

A disease that people recover from at rate b is passed on at rate a. Rates are in units of b and times in units of 1/b,
so there is one uncertain input, a; what is wanted is the expected number of people who are ill at the same time, at
most ("peak"), and when that happens ("time").

The primary source simulates the SEIR model for 100 people exactly, event by event, many times; people are exposed
for a while before they infect others. The secondary one solves the equations of the SIR model.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from scipy.integrate import quad, solve_ivp

from ..baselines.monte_carlo import percentile
from ..design.sources import Observation, Source
from ..measures.adapters import as_measure
from ..measures.base import Measure
from ..measures.uniform import Uniform
from ..validation import Array
from . import drawing
from .study import (
    METHODS,
    PERCENTILES,
    SECONDARY,
    VANILLA,
    Claim,
    Experiment,
    Job,
    Row,
    Settings,
    Tables,
    history,
    percent,
    run,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PEOPLE = 100
INCUBATION = 10.0  #: rate at which the exposed become infectious
PRIOR = stats.gamma(5, loc=1, scale=4)  #: of the infection rate
UPPER = 61.0  #: end of the interval on which the paper's formulation integrates; 0.09 % of the prior are beyond
TRAJECTORIES = 2000
COSTS = (1.0, 1 / 2000)  #: 16 s and 8 ms
QUANTITIES = {"peak": "most people infected at once", "time": "when that is, in recovery times"}
WAYS = {"density": "density in the integrand", "gamma": "gamma distribution as the measure"}
SHOWN = ("AMS-BQ, MI", "default, MI", VANILLA)

#: by `master_equation.true_values`: over the whole distribution, and up to UPPER
TRUTH = {
    ("peak", "gamma"): 70.490570,
    ("time", "gamma"): 0.86135129,
    ("peak", "density"): 70.423528,
    ("time", "density"): 0.86096075,
}


def seir(rate: float, n: int, rng: np.random.Generator, people: int = PEOPLE) -> tuple[Array, Array, Array]:
    """Gillespie's algorithm for n epidemics at once, each an exact sample: one event in each of them at a time.

    Returns
    -------
    For each, the largest number of infected, when it was reached, and whether there was an outbreak: whether the
    first one infected anybody.
    """
    S, E, I = np.full(n, people - 1), np.zeros(n, dtype=int), np.ones(n, dtype=int)
    now, peak, when, outbreak = np.zeros(n), np.ones(n), np.zeros(n), np.zeros(n, dtype=bool)
    on = np.arange(n)  # those that are not over
    while len(on):
        infection, onset = rate * S[on] * I[on] / people, INCUBATION * E[on]
        total = infection + onset + I[on]
        now[on] += rng.exponential(size=len(on)) / total
        event = rng.uniform(size=len(on)) * total
        infected = event < infection
        fell_ill = ~infected & (event < infection + onset)
        S[on] -= infected
        E[on] += infected.astype(int) - fell_ill
        I[on] += np.where(fell_ill, 1, np.where(infected, 0, -1))
        outbreak[on] |= infected
        higher = on[I[on] > peak[on]]
        peak[higher], when[higher] = I[higher], now[higher]
        on = on[E[on] + I[on] > 0]
    return peak, when, outbreak


class Stochastic:
    """The primary source: the average over the outbreaks among many simulated epidemics, and its variance.

    The same input gets the same random numbers, so that it is a function.
    """

    def __init__(self, quantity: str, trajectories: int = TRAJECTORIES, seed: int = 0) -> None:
        self.quantity, self.trajectories, self.seed = quantity, trajectories, seed

    def __call__(self, x: Array) -> Observation:
        rng = np.random.default_rng([self.seed, *np.asarray(x, dtype=float).view(np.uint32)])
        peak, when, outbreak = seir(float(x[0]), self.trajectories, rng)
        values = (peak if self.quantity == "peak" else when)[outbreak]
        return Observation(float(values.mean()), float(values.var(ddof=1) / len(values)))


class Deterministic:
    """The secondary source: the same of the SIR model's differential equations."""

    def __init__(self, quantity: str) -> None:
        self.quantity = quantity

    def __call__(self, x: Array) -> float:
        time, _, infected = sir(float(x[0]))
        return float(infected[-1] if self.quantity == "peak" else time[-1])


def sir(rate: float, until: float | None = None, people: int = PEOPLE) -> tuple[Array, Array, Array]:
    """Times, susceptible and infected people of the SIR model, until a time or until the maximum."""

    def change(t: float, y: Array) -> list[float]:
        infections = rate * y[0] * y[1] / people
        return [-infections, infections - y[1]]

    def growth(t: float, y: Array) -> float:
        return float(rate * y[0] / people - 1)

    growth.terminal = until is None  # type: ignore[attr-defined]
    growth.direction = -1  # type: ignore[attr-defined]
    start = [people - 1.0, 1.0]
    if until is None and growth(0, np.array(start)) <= 0:  # it can only decline
        return np.zeros(1), np.array(start[:1]), np.array(start[1:])
    steps = None if until is None else np.linspace(0, until, 201)
    found = solve_ivp(change, (0, until or 1e6), start, events=growth, t_eval=steps, rtol=1e-9, atol=1e-9)
    return (found.t, *found.y) if until is not None else (found.t_events[0], *found.y_events[0].T)


class Absorbed:
    """The paper's integrand: the density of the input times the source, for the uniform measure on [1, UPPER]."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, x: Array) -> Observation:
        factor = float(PRIOR.pdf(x[0])) * (UPPER - 1)
        found = self.function(x)
        if not isinstance(found, Observation):
            found = Observation(found)
        return Observation(factor * found.value, factor**2 * found.variance)


def problem(quantity: str, way: str, seed: int = 0) -> tuple[list[Source], Measure]:
    """Sources and measure, in the paper's formulation ("density") or the natural one ("gamma")."""
    functions: list[Any] = [Stochastic(quantity, seed=seed), Deterministic(quantity)]
    functions = [Absorbed(f) for f in functions] if way == "density" else functions
    sources = [Source(f, cost=c, name=n) for f, c, n in zip(functions, COSTS, ("SEIR", "SIR"), strict=True)]
    return sources, Uniform(1.0, UPPER) if way == "density" else as_measure(PRIOR)


def bias(quantity: str) -> float:
    """How far the integral of the secondary source is off, relative to the truth."""
    cheap = Deterministic(quantity)
    pieces = [1.0, 1 + 1e-2, 1.1, 2.0, 5.0, 20.0, 60.0, 161.0]  # it starts to spread at 1.01
    parts = [
        quad(lambda a: PRIOR.pdf(a) * cheap(np.array([a])), low, high, epsrel=1e-7, limit=200)[0]
        for low, high in pairwise(pieces)
    ]
    return float(sum(parts)) / TRUTH[quantity, "gamma"] - 1


def run_rows(method: str, quantity: str, way: str, seed: int, budget: float) -> list[Row]:
    """A random location for both sources, and one more for the secondary one; vanilla BQ has the primary value only."""
    sources, measure = problem(quantity, way, seed)
    both, one = measure.sample(2, np.random.default_rng([seed, 42]))
    found = run(method, sources, measure, budget, seed, [(0, both), (1, both), (1, one)])
    return history(found, TRUTH[quantity, way], method=method, quantity=quantity, way=way, seed=seed)


def percentile_rows(quantity: str, way: str, budget: float) -> list[Row]:
    sources, measure = problem(quantity, way)
    rows = []
    for n in range(1, int(budget) + 1):
        found = percentile(sources, measure, budget=n, nodes="right" if way == "density" else "middle")
        labels = {"method": PERCENTILES, "quantity": quantity, "way": way, "seed": 0}
        rows.append(history(found, TRUTH[quantity, way], **labels)[-1])
    return rows


def bias_rows(quantity: str) -> list[Row]:
    return [{"quantity": quantity, "bias": bias(quantity)}]


def integrand_rows(points: int) -> list[Row]:
    rates = np.concatenate([np.linspace(1.02, 8, points // 2), np.linspace(9, UPPER, points // 2)])
    return [
        {"a": a, "quantity": quantity, "model": model, "value": value, "density": float(PRIOR.pdf(a))}
        for quantity in QUANTITIES
        for a in rates
        for model, value in (
            ("SEIR", Stochastic(quantity)(np.array([a])).value),
            ("SIR", Deterministic(quantity)(np.array([a]))),
        )
    ]


def paths(rate: float, n: int, times: Array, rng: np.random.Generator, incubation: float | None) -> Array:
    """How many are susceptible, exposed, infected and recovered at given times, in n epidemics: (n, times, 4).

    Without an incubation rate, those who are infected are infectious at once: the SIR model.
    """
    out = np.empty((n, len(times), 4), dtype=int)
    for i in range(n):
        now, (S, E, I, R) = 0.0, (PEOPLE - 1, 0, 1, 0)
        events, states = [0.0], [(S, E, I, R)]
        while E + I:
            rates = np.array([rate * S * I / PEOPLE, (incubation or 0.0) * E, I])
            now += rng.exponential() / rates.sum()
            event = int(np.searchsorted(np.cumsum(rates), rng.uniform() * rates.sum(), side="right"))
            if event == 0:
                S, E, I = (S - 1, E + 1, I) if incubation else (S - 1, E, I + 1)
            elif event == 1:
                E, I = E - 1, I + 1
            else:
                I, R = I - 1, R + 1
            events.append(now)
            states.append((S, E, I, R))
        out[i] = np.array(states)[np.searchsorted(events, times, side="right") - 1]
    return out


def trajectory_rows(rate: float = 10.0, until: float = 6.0) -> list[Row]:
    """Ten stochastic trajectories of both models, the mean of a hundred, and the differential equations of SIR."""
    times, susceptible, infected = sir(rate, until)
    rows: list[Row] = []
    for model, incubation in (("SIR", None), ("SEIR", INCUBATION)):
        simulated = paths(rate, 100, times, np.random.default_rng(1), incubation)
        equations = np.stack([susceptible, 0 * infected, infected, PEOPLE - susceptible - infected], axis=1)
        curves = [(f"path {i}", simulated[i]) for i in range(10)]
        for curve, values in [*curves, ("mean", simulated.mean(axis=0)), ("equations", equations)]:
            compartments = (values / PEOPLE).tolist()
            rows += [
                {"model": model, "curve": curve, "time": t, **dict(zip("SEIR", shares, strict=True))}
                for t, shares in zip(times.tolist(), compartments, strict=True)
            ]
    return rows


def jobs(settings: Settings) -> list[Job]:
    seeds, budget, long = (1, 2.01, 6.0) if settings.quick else (settings.seeds, 5.5, 9.0)
    runs = [
        Job("runs", run_rows, (method, quantity, way, seed, long if method == VANILLA else budget))
        for seed in range(seeds)
        for method in SHOWN
        for way in WAYS
        for quantity in QUANTITIES
    ]
    return [
        *runs,
        *(Job("runs", percentile_rows, (quantity, way, long)) for quantity in QUANTITIES for way in WAYS),
        *(Job("bias", bias_rows, (quantity,)) for quantity in QUANTITIES),
        Job("integrands", integrand_rows, (40 if settings.quick else 120,)),
        Job("trajectories", trajectory_rows),
    ]


def errors_with(runs: Any, method: str, quantity: str, way: str, primaries: int) -> Array:
    """The relative error of each run with so many evaluations of the primary source, before the next one."""
    chosen = runs[(runs["method"] == method) & (runs["quantity"] == quantity) & (runs["way"] == way)]
    made = chosen["source"].eq(1).groupby(chosen["seed"]).cumsum()
    last = chosen[made == primaries].groupby("seed").last()
    return np.asarray(np.abs(last["mean"] / last["truth"] - 1))


def _median_error(runs: Any, method: str, quantity: str, way: str, primaries: int) -> float:
    errors = errors_with(runs, method, quantity, way, primaries)
    return float(np.median(errors)) if len(errors) else np.inf


def claims(tables: Tables) -> list[Claim]:
    runs, biases = tables["runs"], tables["bias"].set_index("quantity")["bias"]
    paper = _median_error(runs, "default, MI", "peak", "density", 2)
    natural = _median_error(runs, "default, MI", "peak", "gamma", 2)
    most = int(runs[runs["method"] == VANILLA].groupby(["quantity", "way", "seed"]).size().min())
    vanilla = {n: _median_error(runs, VANILLA, "peak", "density", n) for n in range(1, most + 1)}
    needed = next((n for n in vanilla if all(vanilla[k] <= paper for k in range(n, most + 1))), most + 1)
    found = [
        Claim(
            "peak, density in the integrand: one more primary evaluation brings the default within 8 %",
            f"median error {percent(paper)}",
            paper <= 0.08,
        ),
        Claim(
            "... and vanilla BQ needs at least four more to match",
            f"{needed if needed <= most else f'more than {most}'} evaluations instead of 2",
            needed >= 2 + 4,
        ),
        Claim(
            "peak, gamma distribution as the measure: the default is within 2 % at the same cost",
            f"median error {percent(natural)}",
            natural <= 0.02,
        ),
    ]
    for quantity, said in (("peak", 0.11), ("time", 0.47)):
        is_off = float(biases[quantity])
        last = runs[(runs["method"] == "default, MI") & (runs["quantity"] == quantity) & (runs["way"] == "gamma")]
        left = float(np.median(np.abs(last.groupby("seed").last().eval("mean / truth - 1"))))
        found.append(
            Claim(
                f"{quantity}: the secondary source alone is off by about {percent(said)}, and AMS-BQ is not",
                f"{percent(abs(is_off))}; the default ends at {percent(left)}",
                abs(abs(is_off) - said) < 0.02 and left < 0.25 * abs(is_off),
            )
        )
    return found


def figures(tables: Tables) -> dict[str, Figure]:
    return {
        "trajectories": _draw_trajectories(tables["trajectories"]),
        "integrands": _draw_integrands(tables["integrands"]),
        "error": _draw_errors(tables["runs"], tables["bias"]),
        "order": _draw_order(tables["runs"]),
    }


def _draw_trajectories(table: Any) -> Figure:
    figure, axes = drawing.panels(1, 2, width=4.4, sharey=True)
    looks = {"S": ("#0072B2", "susceptible"), "E": ("#009E73", "exposed"), "I": ("#D55E00", "infected")}
    looks["R"] = ("#777777", "recovered")
    for ax, (model, of_model) in zip(axes.flat, table.groupby("model", sort=False), strict=True):
        for letter, (colour, name) in looks.items():
            if letter == "E" and model == "SIR":
                continue
            for curve, path in of_model.groupby("curve"):
                if curve == "equations" and letter == "E":
                    continue
                single = curve.startswith("path")
                style: dict[str, Any] = {"linewidth": 0.5, "alpha": 0.5} if single else {"linewidth": 2.0}
                style["linestyle"] = "--" if curve == "equations" else "-"
                label = None if single else f"{name}, {'SIR equations' if curve == 'equations' else 'mean of 100'}"
                ax.plot(path["time"], path[letter], color=colour, label=label, **style)
        ax.set(xlabel="time / recovery time", title=f"stochastic {model}, $a/b = 10$")
    axes[0, 0].set(ylabel="share of the population")
    drawing.legend_below(figure, *axes.flat, columns=3)
    return figure


def _draw_integrands(table: Any) -> Figure:
    figure, axes = drawing.panels(2, 2, width=4.2, height=2.7, sharex=True)
    for column, (quantity, name) in enumerate(QUANTITIES.items()):
        for source, model in enumerate(("SEIR", "SIR")):
            of = table[(table["quantity"] == quantity) & (table["model"] == model)]
            look = drawing.SOURCES[source]
            line = {"color": look["color"], "linestyle": look["linestyle"]}
            axes[0, column].plot(of["a"], of["value"], label=f"{model}", **line)
            axes[1, column].plot(of["a"], of["value"] * of["density"], **line)
        axes[0, column].set_title(name, fontsize=10)
        axes[1, column].set(xlabel="infection rate $a/b$")
    axes[0, 0].set(ylabel="source")
    axes[1, 0].set(ylabel="source × density of $a/b$")
    drawing.legend_below(figure, axes[0, 0])
    return figure


def _draw_errors(runs: Any, biases: Any) -> Figure:
    figure, axes = drawing.panels(2, 2, width=4.4, height=3.0, sharex=True, sharey="col")
    costs = np.arange(1.0, runs["spent"].max() + 0.01, 0.01)
    for row, (way, name) in enumerate(WAYS.items()):
        for column, (quantity, what) in enumerate(QUANTITIES.items()):
            ax = axes[row, column]
            chosen = runs[(runs["quantity"] == quantity) & (runs["way"] == way)]
            drawing.medians(ax, chosen, costs, [*SHOWN, PERCENTILES])
            off = biases[biases["quantity"] == quantity]["bias"].abs().iloc[0]
            ax.axhline(off, label=SECONDARY, **drawing.LOOKS[SECONDARY])
            ax.set_title(f"{what}\n{name}", fontsize=9)
    for ax in axes[-1]:
        ax.set(xlabel="cost (the SEIR model costs 1)")
    for ax in axes[:, 0]:
        ax.set(ylabel="relative error, median")
    drawing.legend_below(figure, *axes.flat, columns=3)
    return figure


def _draw_order(runs: Any) -> Figure:
    methods = [method for method in SHOWN if method in METHODS]
    lines = [(way, quantity, method) for way in WAYS for quantity in QUANTITIES for method in methods]
    figure, [[ax]] = drawing.panels(width=7.0, height=3.4)
    for height, (way, quantity, method) in enumerate(reversed(lines)):
        of = runs[
            (runs["method"] == method) & (runs["quantity"] == quantity) & (runs["way"] == way) & (runs["seed"] == 0)
        ]
        for source, name in ((1, "SEIR"), (2, "SIR")):
            steps, look = of[of["source"] == source]["step"], drawing.SOURCES[source - 1]
            marks = {"marker": "o" if source == 1 else "|", "color": look["color"], "linestyle": ""}
            at = np.full(len(steps), height + (0.25 if source == 1 else 0.0))
            ax.plot(steps, at, markersize=5, label=name if height == 0 else None, **marks)
    ax.set_yticks(range(len(lines)), [f"{quantity}, {way}, {method}" for way, quantity, method in reversed(lines)])
    ax.set(xlabel="evaluation")
    drawing.legend_below(figure, ax)
    return figure


EXPERIMENT = Experiment(
    "epidemic",
    "a stochastic epidemic and its differential equations: error against budget (Figs. 5, 6, 11, 12)",
    jobs,
    claims,
    figures,
)
