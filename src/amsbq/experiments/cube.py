"""The acquisition cube of Figure 1: which policies are the same where there is one source, or a constant cost."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from ..design.acquisition import Rate
from ..design.costs import CostFunction
from ..gp.coregionalisation import Term
from ..gp.kernels import RBF
from ..gp.posterior import MultiSourceGP, Posterior
from ..measures.uniform import Uniform
from ..validation import Array
from . import drawing
from .study import Claim, Experiment, Job, Row, Settings, Tables, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {"mi": "MI", "ivr": "IVR", "ip": "IP"}
MODELS = 40  #: random ones for each seed
GRID = np.linspace(0, 1, 501)[:, None]
#: how far apart maximisers may be and still be the same
SAME = 1e-9


def _random_posterior(rng: np.random.Generator) -> Posterior:
    """Of two sources, with random correlation, lengthscale and observations."""
    correlation, scale = rng.uniform(0.3, 0.95), rng.uniform(0.1, 0.4)
    gp = MultiSourceGP([Term([[1.0, correlation], [correlation, 1.0]], RBF(scale))], Uniform(0, 1), noise=1e-6)
    n = int(rng.integers(3, 8))
    return gp.condition(rng.integers(0, 2, size=n), rng.uniform(size=(n, 1)), rng.normal(size=n))


def _random_cost(rng: np.random.Generator, most: float, varies: bool) -> Callable[[Array], float]:
    if not varies:
        return lambda x: most
    height, slope, middle = (
        rng.uniform(0.3, 0.9) * most,
        rng.choice([-1, 1]) * rng.uniform(5, 30),
        rng.uniform(0.2, 0.8),
    )
    return lambda x: float(most - height * expit(slope * (x[0] - middle)))


def vertex_rows(seed: int, models: int) -> list[Row]:
    """What each of the twelve acquisitions asks for, for random models."""
    rows: list[Row] = []
    for model in range(models):
        for several in (True, False):
            for varies in (True, False):
                rng = np.random.default_rng([seed, model])
                posterior = _random_posterior(rng)
                functions = [_random_cost(rng, most, varies) for most in (1.0, 0.3)]
                costs = [CostFunction(Uniform(0, 1), function) for function in functions]
                for kind in KINDS:
                    rate = Rate([posterior], costs, kind)
                    values = [rate.value(source, GRID) for source in range(2 if several else 1)]
                    source = int(np.argmax([v.max() for v in values]))
                    x = float(GRID[values[source].argmax(), 0])
                    vertex = {"sources": "several" if several else "one", "cost": "c(x)" if varies else "constant"}
                    by_rho2 = posterior.squared_correlation(source, GRID)
                    rows.append(
                        {"seed": seed, "model": model, **vertex, "kind": kind, "source": source + 1, "x": x}
                        | {"best_rho2_x": float(GRID[by_rho2.argmax(), 0])}
                    )
    return rows


def jobs(settings: Settings) -> list[Job]:
    models = 10 if settings.quick else MODELS
    return [Job("vertices", vertex_rows, (seed, models)) for seed in range(2 if settings.quick else settings.seeds)]


def agreement(vertices: Any) -> dict[tuple[str, str, str, str], float]:
    """How often two utilities ask for the same, at each corner of the cube: (sources, cost, kind, kind) -> share."""
    shares = {}
    for (sources, cost), corner in vertices.groupby(["sources", "cost"]):
        asked = {kind: corner[corner["kind"] == kind].set_index(["seed", "model"])[["source", "x"]] for kind in KINDS}
        for a, b in combinations(KINDS, 2):
            same = ((asked[a] - asked[b]).abs() < SAME).all(axis=1)
            shares[sources, cost, a, b] = float(same.mean())
    return shares


def claims(tables: Tables) -> list[Claim]:
    vertices = tables["vertices"]
    shares = agreement(vertices)
    front = [share for (sources, cost, *_), share in shares.items() if (sources, cost) == ("one", "constant")]
    others = [share for (sources, cost, *_), share in shares.items() if (sources, cost) != ("one", "constant")]
    constant = vertices[vertices["cost"] == "constant"]
    collapsed = float(((constant["x"] - constant["best_rho2_x"]).abs() < SAME).mean())
    return [
        Claim("one source, constant cost: all three are one policy (vanilla BQ)", percent(min(front)), min(front) == 1),
        Claim(
            "a constant cost for each source: the location is the one with the largest ρ² of the chosen source",
            percent(collapsed),
            collapsed == 1,
        ),
        Claim(
            "everywhere else, the utility decides: no two are the same policy",
            f"they agree in {percent(min(others))} to {percent(max(others))}",
            max(others) < 1,
        ),
    ]


def figures(tables: Tables) -> dict[str, Figure]:
    shares = agreement(tables["vertices"])
    figure, [[ax]] = drawing.panels(width=8.5, height=5.2)
    corners = {
        (sources, cost, kind): (
            3.0 * column + (1.2 if sources == "several" else 0),
            2.2 * (cost == "c(x)") + 0.9 * depth,
        )
        for column, kind in enumerate(KINDS)
        for sources, depth in (("one", 0), ("several", 1))
        for cost in ("constant", "c(x)")
    }
    for (sources, cost, kind), (x, y) in corners.items():
        if sources == "several":
            ax.annotate(
                "",
                corners["one", cost, kind],
                (x, y),
                arrowprops={"arrowstyle": "->", "color": "#D55E00", "shrinkA": 14, "shrinkB": 14},
            )
        if cost == "c(x)":
            ax.annotate(
                "",
                corners[sources, "constant", kind],
                (x, y),
                arrowprops={"arrowstyle": "->", "color": "#0072B2", "shrinkA": 12, "shrinkB": 12},
            )
        grey = kind == "ip" and not (sources == "one" and cost == "constant")
        argument = "x" if sources == "one" else r"\ell, x"
        below = "c(x)" if cost == "c(x)" and sources == "one" else "c" if sources == "one" else r"c_\ell"
        below += "(x)" if cost == "c(x)" and sources == "several" else ""
        label = rf"$\alpha^{{\mathrm{{{KINDS[kind]}}}}}({argument})\,/\,{below}$"
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "0.6" if grey else "k"}
        ax.text(x, y, label, ha="center", va="center", bbox=box, color="0.5" if grey else "k", zorder=3)
    for (sources, cost, a, b), share in shares.items():
        if (a, b) == ("mi", "ip"):
            continue
        (x0, y0), (x1, y1) = corners[sources, cost, a], corners[sources, cost, b]
        ax.plot([x0, x1], [y0, y1], color="#009E73", linewidth=4 if share == 1 else 1, zorder=1)
        ax.text((x0 + x1) / 2, (y0 + y1) / 2 + 0.07, percent(share), ha="center", va="bottom", fontsize=8, zorder=2)
    ax.set(xlim=(-1, 8.3), ylim=(-0.5, 3.6))
    ax.set_axis_off()
    ax.text(
        -0.9,
        -0.45,
        "percentages: how often neighbours ask for the same · orange: one source only · blue: constant cost\n"
        "thick: always the same policy · grey: pathological, if not for the other two",
        fontsize=8,
    )
    return {"cube": figure}


EXPERIMENT = Experiment("cube", "which acquisitions are the same policy, and where (Fig. 1)", jobs, claims, figures)
