"""The two-source demonstration of Section 4.1 (Figures 3, 7, 8 and 9): the Forrester function and a cheap variant.

The primary source f₁(x) = (6x - 2)² sin(12x - 4) and the secondary source f₂(x) = f₁(x)/2 + 10x are integrated over the
uniform measure on [0, 1]. Both costs depend on x: they are equal near x = 0, and f₂ is two orders of magnitude cheaper
near x = 1. This computes three consecutive decisions from the paper's starting data (Figure 3), the rates of all
utilities at the first one (Figure 7), the costs (Figure 8), and a later state (Figure 9), for the paper's model and for
the default one; and the decisions from random starting data, one set for each further seed.

Claim: the secondary source is not evaluated where the two costs are almost the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from ..common.validation import Array
from ..design.acquisition import AcquisitionName
from ..design.sources import Source
from ..execution.integrator import Integrator
from ..gp.coregionalisation import Term
from ..gp.kernels import RBF
from ..gp.posterior import MultiSourceGP, Posterior
from ..inference.structures import ModelName
from ..measures.uniform import Uniform
from . import drawing
from .drawing import UTILITY_NAMES
from .study import METHODS, Claim, Experiment, Job, Row, Settings, Tables, posterior_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


@dataclass(frozen=True)
class ForresterSetup:
    """Constants of the experiment."""

    noise: float = 1e-2  # the paper's noise variance
    similar_costs_below: float = 0.2  # the paper's "x ≲ 0.2", where the two costs are almost identical
    shown_decisions: int = 3  # number of decisions in the figure, as in Figure 3
    decisions: int = 20  # the state after all but the last of them is Figure 9
    quick_decisions: int = 5
    quick_seeds: int = 1


SETUP = ForresterSetup()
SHOWN_METHODS = {"AMS-BQ, MI": "paper", "default, MI": "default"}  #: methods with figures, and names of these
GRID = np.linspace(0, 1, 401)  #: inputs of the curves in tables and figures
#: the paper's starting data: three observations of the primary source, five of the secondary one
INITIAL_SOURCES = np.array([0, 0, 0, 1, 1, 1, 1, 1])
INITIAL_X = np.array([[0.78], [0.55], [0.2], [0.98], [0.62], [0.59], [0.45], [0.35]])


def primary(x: Array) -> Array:
    """Return the expensive source f₁, the Forrester function, at inputs x in [0, 1]."""
    return (6 * x - 2) ** 2 * np.sin(12 * x - 4)


def secondary(x: Array) -> Array:
    """Return the cheap source f₂ at inputs x in [0, 1]."""
    return 0.5 * primary(x) + 10 * x


def true_integral() -> float:
    """Return ∫₀¹ f₁(x) dx; with u = 12x - 4 it is (1/48) ∫ u² sin u du from -4 to 8."""

    def antiderivative(u: float) -> float:
        return float((2 - u * u) * np.cos(u) + 2 * u * np.sin(u))

    return (antiderivative(8.0) - antiderivative(-4.0)) / 48


class LogisticCost:
    """A sum of logistic functions of one input: base + Σ height σ(slope (x - middle)).

    Parameters
    ----------
    base : float
        The constant part.
    *steps : (height, slope, middle)
        One logistic function each.
    """

    def __init__(self, base: float, *steps: tuple[float, float, float]) -> None:
        self.base = base
        self.heights, self.slopes, self.middles = np.transpose(steps)

    def __call__(self, x: Array) -> float:
        """Return the cost at x of shape (1,)."""
        return float(self.base + self.heights @ expit(self.slopes * (x[0] - self.middles)))

    def gradient(self, x: Array) -> Array:
        """Return the derivative at x of shape (1,), shape (1,)."""
        s = expit(self.slopes * (x[0] - self.middles))
        return np.array([self.heights @ (self.slopes * s * (1 - s))])


#: costs in (0, 1], equal near x = 0, and two orders of magnitude apart at x = 1
COSTS = (LogisticCost(0.5, (0.5, 12.0, 0.6)), LogisticCost(0.01, (0.49, -25.0, 0.3)))


def starting_posterior(sources: tuple[int, ...] = (0, 1)) -> Posterior:
    """Return the posterior from the paper's starting data, under hyperparameters fixed by hand.

    Standard deviations of 6, a correlation of 2/3 between the sources, a lengthscale of 0.15, and the paper's noise
    variance of 1e-2. With ``sources=(0,)`` it is conditioned on the primary source only: vanilla Bayesian quadrature.
    """
    gp = MultiSourceGP([Term([[36.0, 24.0], [24.0, 36.0]], RBF(0.15))], Uniform(0, 1), noise=SETUP.noise)
    chosen = np.isin(INITIAL_SOURCES, sources)
    s, x = INITIAL_SOURCES[chosen], INITIAL_X[chosen]
    return gp.condition(s, x, np.where(s == 0, primary(x[:, 0]), secondary(x[:, 0])))


def starting_integrator(model: ModelName, acquisition: AcquisitionName, seed: int = 0) -> Integrator:
    """Return an integrator with the paper's starting data; with another seed than 0, at random locations."""
    functions = (primary, secondary)
    sources = [Source(f, cost=cost, noise=SETUP.noise) for f, cost in zip(functions, COSTS, strict=True)]
    it = Integrator(sources, Uniform(0, 1), model=model, acquisition=acquisition, seed=seed)
    locations = np.random.default_rng(seed).uniform(size=INITIAL_X.shape) if seed else INITIAL_X
    for source, x in zip(INITIAL_SOURCES, locations, strict=True):
        it.observe(int(source), x, float(functions[source](x[0])))
    return it


def values_and_costs(functions: Sequence[Callable[[Array], Array]], costs: Sequence[LogisticCost]) -> list[Row]:
    """Return the value and the cost of sources of one input on a grid."""
    return [
        {"source": source, "x": x, "value": f(x), "cost": cost(np.array([x]))}
        for source, (f, cost) in enumerate(zip(functions, costs, strict=True), 1)
        for x in GRID
    ]


def source_rows() -> list[Row]:
    """Return the value and the cost of both sources on a grid."""
    return values_and_costs((primary, secondary), COSTS)


def acquisition_rows(method: str) -> list[Row]:
    """Return the posterior and the rates at the first decision, by each of three utilities."""
    model, _ = METHODS[method]
    return [
        {**row, "kind": kind}
        for kind in UTILITY_NAMES
        for row in posterior_rows(starting_integrator(model, kind), GRID, method=method)
    ]


def decision_rows(method: str, seed: int, steps: int) -> list[Row]:
    """Return the decisions of one run, in rows of three kinds.

    "data" are the initial observations, "asked" is a decision with the value that was observed and the integral after
    it, and "state" is the posterior on a grid, before the first decisions and the last one, for the paper's start only.
    """
    it = starting_integrator(*METHODS[method], seed)
    labels = {"method": method, "seed": seed}
    rows: list[Row] = [
        {**labels, "decision": 0, "kind": "data", "source": e.source + 1, "x": e.x[0], "mean": e.value}
        for e in it.evaluations
    ]
    for decision in range(1, steps + 1):
        if seed == 0 and (decision <= SETUP.shown_decisions or decision == steps):
            rows += [{**row, "kind": "state"} for row in posterior_rows(it, GRID, **labels, decision=decision)]
        query = it.ask()
        if query is None:
            break
        value = float((primary, secondary)[query.source](query.x[0]))
        it.tell(query, value)
        asked = {"source": query.source + 1, "x": query.x[0], "rate": query.rate}
        integral = {"integral": it.evaluations[-1].mean, "std": it.evaluations[-1].std}
        rows.append({**labels, "decision": decision, "kind": "asked", **asked, "mean": value, **integral})
    return rows


def jobs(settings: Settings) -> list[Job]:
    """Return the jobs of the experiment: sources, the first decision by all utilities, and a run for each seed."""
    seeds = SETUP.quick_seeds if settings.quick else settings.seeds
    steps = SETUP.quick_decisions if settings.quick else SETUP.decisions
    return [
        Job("sources", source_rows),
        *(Job("acquisitions", acquisition_rows, (method,)) for method in SHOWN_METHODS),
        *(Job("decisions", decision_rows, (method, seed, steps)) for seed in range(seeds) for method in SHOWN_METHODS),
    ]


def claims(tables: Tables) -> list[Claim]:
    """Count the evaluations of the secondary source where the two costs are almost the same."""
    asked = tables["decisions"].query("kind == 'asked'")
    limit = SETUP.similar_costs_below
    found = []
    for method, of_method in asked[asked["source"] == 2].groupby("method"):
        similar = of_method[of_method["x"] < limit]
        here, elsewhere = (similar["seed"] == 0).sum(), (similar["seed"] != 0).sum()
        seeds = asked[asked["method"] == method]["seed"].nunique()
        found.append(
            Claim(
                f"{method}: the secondary source is not evaluated where costs are almost identical, x < {limit:g}",
                f"{here} times from the paper's start, {elsewhere} of {len(of_method)} from all {seeds} starts",
                bool(here == 0 and elsewhere <= 0.05 * len(of_method)),
            )
        )
    return found


def figures(tables: Tables) -> dict[str, Figure]:
    """Draw the costs and, for both models, three decisions, a later state, and the rates of all utilities."""
    sources = tables["sources"]
    pictures = {"costs": _draw_costs(sources)}
    for method, name in SHOWN_METHODS.items():
        decisions = tables["decisions"].query("method == @method and seed == 0")
        pictures[f"decisions-{name}"] = _draw_decisions(decisions, method)
        pictures[f"later-{name}"] = _draw_later(decisions, sources, method)
        acquisitions = tables["acquisitions"].query("method == @method")
        pictures[f"acquisitions-{name}"] = _draw_acquisitions(acquisitions, method)
    return pictures


def _draw_costs(sources: DataFrame) -> Figure:
    """Draw the cost of each source against the input, on a logarithmic scale."""
    figure, [[ax]] = drawing.panels()
    for source, group in sources.groupby("source"):
        ax.plot(group["x"], group["cost"], label=f"$c_{source}(x)$", **drawing.line_style(source))
    ax.set(xlabel="input $x$", ylabel="cost of an evaluation", yscale="log", xlim=(0, 1))
    drawing.legend_below(figure, ax)
    return figure


def _evaluated_before(decisions: DataFrame, decision: int) -> DataFrame:
    """Return the evaluations on which a decision was based."""
    done = decisions[(decisions["kind"] != "state") & (decisions["decision"] < decision)]
    return done.rename(columns={"mean": "value"})


def _draw_decisions(decisions: DataFrame, method: str) -> Figure:
    """Draw consecutive decisions below each other: the posterior on the left, the rates on the right."""
    figure, axes = drawing.panels(SETUP.shown_decisions, 2, height=2.6, sharex=True)
    for decision, (left, right) in enumerate(axes, 1):
        now = decisions[decisions["decision"] == decision]
        posterior, asked = now[now["kind"] == "state"], now[now["kind"] == "asked"].iloc[0]
        drawing.draw_posterior(left, posterior, _evaluated_before(decisions, decision))
        for source, group in posterior.groupby("source"):
            right.plot(group["x"], group["rate"], label=f"rate of $f_{source}$", **drawing.line_style(source))
        for ax in (left, right):
            ax.axvline(asked["x"], color="#CC79A7", linewidth=1.5, zorder=0)
        right.set_title(f"decision {decision}: ask $f_{asked['source']:.0f}$ at x = {asked['x']:.2f}", fontsize=10)
        left.set(ylabel="output")
        right.set(ylabel="MI rate (1 / cost)", ylim=(0, None))
    for ax in axes[-1]:
        ax.set(xlabel="input $x$", xlim=(0, 1))
    axes[0, 0].set_title(f"model of {method}", fontsize=10)
    drawing.legend_below(figure, axes[0, 0], axes[0, 1])
    return figure


def _draw_later(decisions: DataFrame, sources: DataFrame, method: str) -> Figure:
    """Draw the posterior before the last decision, with the true functions dotted."""
    last = int(decisions[decisions["kind"] == "state"]["decision"].max())
    posterior = decisions[(decisions["kind"] == "state") & (decisions["decision"] == last)]
    figure, [[ax]] = drawing.panels(width=6.4, height=3.8)
    drawing.draw_posterior(ax, posterior, _evaluated_before(decisions, last))
    for _, truth in sources.groupby("source"):
        ax.plot(truth["x"], truth["value"], color="k", linestyle=":", linewidth=0.8)
    limit = SETUP.similar_costs_below
    ax.axvspan(0, limit, color="0.93", zorder=-1)
    ax.annotate("costs alike", (limit / 2, 0.97), xycoords=("data", "axes fraction"), ha="center", va="top")
    ax.set(xlabel="input $x$", ylabel="output", xlim=(0, 1), title=f"{method}, after {last - 1} decisions")
    drawing.legend_below(figure, ax)
    return figure


def _draw_acquisitions(acquisitions: DataFrame, method: str) -> Figure:
    """Draw the rates of both sources at the first decision, one panel for each utility, with their maxima."""
    figure, axes = drawing.panels(3, 1, width=6.0, height=2.0, sharex=True)
    for ax, (kind, name) in zip(axes.flat, UTILITY_NAMES.items(), strict=True):
        for source, group in acquisitions[acquisitions["kind"] == kind].groupby("source"):
            ax.plot(group["x"], group["rate"], label=f"$f_{source}$", **drawing.line_style(source))
            best = group.loc[group["rate"].idxmax()]
            ax.plot(best["x"], best["rate"], markersize=5, **drawing.marker_style(source))
        ax.set(ylabel=f"{name} rate\n(1 / cost)", ylim=(0, None), xlim=(0, 1))
    axes[0, 0].set_title(f"the first decision by three utilities, {method.split(',')[0]}", fontsize=10)
    axes[-1, 0].set(xlabel="input $x$")
    drawing.legend_below(figure, axes[0, 0])
    return figure


EXPERIMENT = Experiment(
    "forrester",
    "two sources of one input with costs that depend on it: three decisions, and a later state (Figs. 3, 7, 8, 9)",
    jobs,
    claims,
    figures,
)
