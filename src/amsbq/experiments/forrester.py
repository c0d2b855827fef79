"""The two-source demonstration of Section 4.1: the Forrester function and a cheap relative of it, on [0, 1]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from ..design.integrator import Integrator
from ..design.sources import Source
from ..gp.coregionalisation import Term
from ..gp.kernels import RBF
from ..gp.posterior import MultiSourceGP, Posterior
from ..measures.uniform import Uniform
from ..validation import Array
from . import drawing
from .study import METHODS, Claim, Experiment, Job, Row, Settings, Tables, state

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: where the paper's demonstration starts: three observations of the primary source, five of the secondary one
SOURCES = np.array([0, 0, 0, 1, 1, 1, 1, 1])
X = np.array([[0.78], [0.55], [0.2], [0.98], [0.62], [0.59], [0.45], [0.35]])
NOISE = 1e-2  #: the paper's noise variance
SIMILAR = 0.2  #: below, the two costs are almost identical
SNAPSHOTS, LATER = 3, 20  #: decisions that are shown one by one, and after how many of them is "later"
GRID = np.linspace(0, 1, 401)


def primary(x: Array) -> Array:
    """f_1, the expensive source."""
    return (6 * x - 2) ** 2 * np.sin(12 * x - 4)


def secondary(x: Array) -> Array:
    """f_2, the cheap one."""
    return 0.5 * primary(x) + 10 * x


def true_integral() -> float:
    """∫₀¹ f_1, with u = 12x - 4: (1/48) ∫ u² sin u du from -4 to 8."""

    def antiderivative(u: float) -> float:
        return float((2 - u * u) * np.cos(u) + 2 * u * np.sin(u))

    return (antiderivative(8.0) - antiderivative(-4.0)) / 48


class LogisticCost:
    """A sum of logistic functions of one input: base + Σ height σ(slope (x - middle))."""

    def __init__(self, base: float, *steps: tuple[float, float, float]) -> None:
        self.base = base
        self.heights, self.slopes, self.middles = np.transpose(steps)

    def __call__(self, x: Array) -> float:
        return float(self.base + self.heights @ expit(self.slopes * (x[0] - self.middles)))

    def gradient(self, x: Array) -> Array:
        """Its derivative, shape (1,)."""
        s = expit(self.slopes * (x[0] - self.middles))
        return np.array([self.heights @ (self.slopes * s * (1 - s))])


#: in (0, 1], the same near x = 0, and two orders of magnitude apart at x = 1
COSTS = (LogisticCost(0.5, (0.5, 12.0, 0.6)), LogisticCost(0.01, (0.49, -25.0, 0.3)))


def starting_posterior(sources: tuple[int, ...] = (0, 1)) -> Posterior:
    """The paper's starting data, under hyperparameters fixed by hand.

    Standard deviations of 6, a correlation of 2/3 between the sources, a lengthscale of 0.15, and the paper's noise
    variance of 1e-2. With ``sources=(0,)`` only the primary source is looked at: vanilla Bayesian quadrature.
    """
    gp = MultiSourceGP([Term([[36.0, 24.0], [24.0, 36.0]], RBF(0.15))], Uniform(0, 1), noise=NOISE)
    chosen = np.isin(SOURCES, sources)
    s, x = SOURCES[chosen], X[chosen]
    return gp.condition(s, x, np.where(s == 0, primary(x[:, 0]), secondary(x[:, 0])))


def integrator(model: str, acquisition: str, seed: int = 0) -> Integrator:
    """At the start of the demonstration; with another seed than 0, at random locations."""
    functions = (primary, secondary)
    sources = [Source(f, cost=cost, noise=NOISE) for f, cost in zip(functions, COSTS, strict=True)]
    it = Integrator(sources, Uniform(0, 1), model=model, acquisition=acquisition, seed=seed)
    locations = np.random.default_rng(seed).uniform(size=X.shape) if seed else X
    for source, x in zip(SOURCES, locations, strict=True):
        it.observe(int(source), x, float(functions[source](x[0])))
    return it


def functions_and_costs(functions: tuple[Any, ...], costs: tuple[LogisticCost, ...]) -> list[Row]:
    """Sources of one input, and what they cost."""
    return [
        {"source": source, "x": x, "value": f(x), "cost": cost(np.array([x]))}
        for source, (f, cost) in enumerate(zip(functions, costs, strict=True), 1)
        for x in GRID
    ]


def sources_rows() -> list[Row]:
    return functions_and_costs((primary, secondary), COSTS)


def acquisition_rows(method: str) -> list[Row]:
    """The first decision by three utilities."""
    model, _ = METHODS[method]
    return [
        {**row, "kind": kind}
        for kind in ("mi", "ivr", "ip")
        for row in state(integrator(model, kind), GRID, method=method)
    ]


def decision_rows(method: str, seed: int, steps: int) -> list[Row]:
    """A run: for each decision what was known on a grid before it, for the paper's start only, and what was asked."""
    it = integrator(*METHODS[method], seed)
    labels = {"method": method, "seed": seed}
    rows: list[Row] = [
        {**labels, "decision": 0, "kind": "data", "source": e.source + 1, "x": e.x[0], "mean": e.value}
        for e in it.evaluations
    ]
    for decision in range(1, steps + 1):
        if seed == 0 and (decision <= SNAPSHOTS or decision == steps):
            rows += [{**row, "kind": "state"} for row in state(it, GRID, **labels, decision=decision)]
        query = it.ask()
        if query is None:
            break
        value = float((primary, secondary)[query.source](query.x[0]))
        it.tell(query, value)
        mean, std = it.evaluations[-1].mean, it.evaluations[-1].std
        asked = {"source": query.source + 1, "x": query.x[0], "rate": query.rate}
        rows.append({**labels, "decision": decision, "kind": "asked", **asked, "mean": value, "integral": mean})
        rows[-1]["std"] = std
    return rows


def jobs(settings: Settings) -> list[Job]:
    seeds = 2 if settings.quick else settings.seeds
    methods = ("AMS-BQ, MI", "default, MI")
    steps = 8 if settings.quick else LATER
    return [
        Job("sources", sources_rows),
        *(Job("acquisitions", acquisition_rows, (method,)) for method in methods),
        *(Job("decisions", decision_rows, (method, seed, steps)) for seed in range(seeds) for method in methods),
    ]


def claims(tables: Tables) -> list[Claim]:
    asked = tables["decisions"].query("kind == 'asked'")
    found = []
    for method, of_method in asked[asked["source"] == 2].groupby("method"):
        similar = of_method[of_method["x"] < SIMILAR]
        here, elsewhere = (similar["seed"] == 0).sum(), (similar["seed"] != 0).sum()
        seeds = asked[asked["method"] == method]["seed"].nunique()
        found.append(
            Claim(
                f"{method}: the secondary source is not asked where costs are almost identical, x < {SIMILAR:g}",
                f"{here} times from the paper's start, {elsewhere} of {len(of_method)} from all {seeds} starts",
                bool(here == 0 and elsewhere <= 0.05 * len(of_method)),
            )
        )
    return found


def figures(tables: Tables) -> dict[str, Figure]:
    sources = tables["sources"]
    pictures = {"costs": draw_costs(sources)}
    for method, name in (("AMS-BQ, MI", "paper"), ("default, MI", "default")):
        decisions = tables["decisions"].query("method == @method and seed == 0")
        pictures[f"decisions-{name}"] = _draw_decisions(decisions, method)
        pictures[f"later-{name}"] = _draw_later(decisions, sources, method)
        acquisitions = tables["acquisitions"].query("method == @method")
        pictures[f"acquisitions-{name}"] = _draw_acquisitions(acquisitions, method)
    return pictures


def draw_costs(sources: Any) -> Figure:
    """What the sources cost, on a logarithmic scale."""
    figure, [[ax]] = drawing.panels()
    for source, group in sources.groupby("source"):
        look = drawing.SOURCES[source - 1]
        ax.plot(group["x"], group["cost"], color=look["color"], linestyle=look["linestyle"], label=f"$c_{source}(x)$")
    ax.set(xlabel="input $x$", ylabel="cost of an evaluation", yscale="log", xlim=(0, 1))
    drawing.legend_below(figure, ax)
    return figure


def _evaluated_before(decisions: Any, decision: int) -> Any:
    done = decisions[(decisions["kind"] != "state") & (decisions["decision"] < decision)]
    return done.rename(columns={"x": "x0", "mean": "value"})


def _draw_decisions(decisions: Any, method: str) -> Figure:
    figure, axes = drawing.panels(SNAPSHOTS, 2, height=2.6, sharex=True)
    for row, decision in enumerate(range(1, SNAPSHOTS + 1)):
        now = decisions[decisions["decision"] == decision]
        grid, asked = now[now["kind"] == "state"], now[now["kind"] == "asked"].iloc[0]
        left, right = axes[row]
        drawing.sources_with_bands(left, grid, _evaluated_before(decisions, decision))
        for source, group in grid.groupby("source"):
            look = drawing.SOURCES[source - 1]
            right.plot(
                group["x"],
                group["rate"],
                color=look["color"],
                linestyle=look["linestyle"],
                label=f"rate of $f_{source}$",
            )
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


def _draw_later(decisions: Any, sources: Any, method: str) -> Figure:
    last = int(decisions[decisions["kind"] == "state"]["decision"].max())
    grid = decisions[(decisions["kind"] == "state") & (decisions["decision"] == last)]
    figure, [[ax]] = drawing.panels(width=6.4, height=3.8)
    drawing.sources_with_bands(ax, grid, _evaluated_before(decisions, last))
    for _, truth in sources.groupby("source"):
        ax.plot(truth["x"], truth["value"], color="k", linestyle=":", linewidth=0.8)
    ax.axvspan(0, SIMILAR, color="0.93", zorder=-1)
    ax.annotate("costs alike", (SIMILAR / 2, 0.97), xycoords=("data", "axes fraction"), ha="center", va="top")
    ax.set(xlabel="input $x$", ylabel="output", xlim=(0, 1), title=f"{method}, after {last - 1} decisions")
    drawing.legend_below(figure, ax)
    return figure


def _draw_acquisitions(acquisitions: Any, method: str) -> Figure:
    figure, axes = drawing.panels(3, 1, width=6.0, height=2.0, sharex=True)
    for ax, (kind, name) in zip(axes.flat, (("mi", "MI"), ("ivr", "IVR"), ("ip", "IP")), strict=True):
        for source, group in acquisitions[acquisitions["kind"] == kind].groupby("source"):
            look = drawing.SOURCES[source - 1]
            ax.plot(group["x"], group["rate"], color=look["color"], linestyle=look["linestyle"], label=f"$f_{source}$")
            best = group.loc[group["rate"].idxmax()]
            ax.plot(best["x"], best["rate"], look["marker"], color=look["color"], markersize=5)
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
