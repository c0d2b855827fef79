"""Figure 1 (Section 3), the acquisition cube: which utilities choose the same evaluation, and where.

The corners of the cube are three utilities (MI, IVR, IP), for one or several sources, with a cost that is constant for
each source or depends on the input. For random models of two sources of one input, this computes the source and the
location that each corner would choose, and counts how often two utilities choose the same.

Claims: with one source and a constant cost all three are the same policy, that of vanilla BQ; with a constant cost for
each source, the location is the one with the largest ρ² for the chosen source; everywhere else the utility matters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from ..common.validation import Array
from ..design.acquisition import AcquisitionName, Rate
from ..design.costs import CostFunction
from ..design.evaluations import Option
from ..gp.coregionalisation import Term
from ..gp.kernels import RBF
from ..gp.posterior import MultiSourceGP, Posterior
from ..measures.uniform import Uniform
from . import drawing
from .drawing import UTILITY_NAMES
from .study import Claim, Experiment, Job, Row, Settings, Tables, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame


@dataclass(frozen=True)
class CubeSetup:
    """Constants of the experiment."""

    models: int = 40  # random models for each seed: with five seeds, shares are known to within a few per cent
    quick_models: int = 10
    quick_seeds: int = 2
    same_location: float = 1e-9  # far below the spacing of the grid: equal up to rounding in the CSV file
    largest_costs: tuple[float, float] = (1.0, 0.3)  # largest cost of each source


SETUP = CubeSetup()
GRID = np.linspace(0, 1, 501)[:, None]  #: locations from which the maximiser is taken


def _random_posterior(rng: np.random.Generator) -> Posterior:
    """Return a posterior of two sources with random correlation, lengthscale and observations."""
    correlation, scale = rng.uniform(0.3, 0.95), rng.uniform(0.1, 0.4)
    gp = MultiSourceGP([Term([[1.0, correlation], [correlation, 1.0]], RBF(scale))], Uniform(0, 1), noise=1e-6)
    n = int(rng.integers(3, 8))
    return gp.condition(rng.integers(0, 2, size=n), rng.uniform(size=(n, 1)), rng.normal(size=n))


def _random_cost(rng: np.random.Generator, largest: float, varies: bool) -> Callable[[Array], float]:
    """Return a random logistic cost function with values in (0, largest], or the constant ``largest``."""
    if not varies:
        return lambda x: largest
    height = rng.uniform(0.3, 0.9) * largest
    slope = rng.choice([-1, 1]) * rng.uniform(5, 30)
    middle = rng.uniform(0.2, 0.8)
    return lambda x: float(largest - height * expit(slope * (x[0] - middle)))


def vertex_rows(seed: int, models: int) -> list[Row]:
    """Return what each of the twelve corners of the cube chooses, for random models."""
    return [
        {"seed": seed, "model": model, **row}
        for model in range(models)
        for several in (True, False)
        for varies in (True, False)
        for row in _choices(np.random.default_rng([seed, model]), several, varies)
    ]


def _choices(rng: np.random.Generator, several: bool, varies: bool) -> list[Row]:
    """Return the source and location that each utility chooses for one random model, and where ρ² is largest."""
    posterior = _random_posterior(rng)
    of_sources = [CostFunction(Uniform(0, 1), _random_cost(rng, largest, varies)) for largest in SETUP.largest_costs]
    costs = {Option(source): cost for source, cost in enumerate(of_sources)}
    vertex = {"sources": "several" if several else "one", "cost": "c(x)" if varies else "constant"}
    rows: list[Row] = []
    for kind in UTILITY_NAMES:
        rate = Rate(posterior.batch, costs, kind)
        values = rate.values([Option(source) for source in range(2 if several else 1)], GRID)
        source = int(np.argmax([v.max() for v in values]))
        x = float(GRID[values[source].argmax(), 0])
        x_of_largest_rho2 = float(GRID[posterior.squared_correlation(source, GRID).argmax(), 0])
        rows.append({**vertex, "kind": kind, "source": source + 1, "x": x, "best_rho2_x": x_of_largest_rho2})
    return rows


def jobs(settings: Settings) -> list[Job]:
    """Return one job for each seed."""
    models, seeds = (SETUP.quick_models, SETUP.quick_seeds) if settings.quick else (SETUP.models, settings.seeds)
    return [Job("vertices", vertex_rows, (seed, models)) for seed in range(seeds)]


def agreement(vertices: DataFrame) -> dict[tuple[str, str, AcquisitionName, AcquisitionName], float]:
    """Return the share of models for which two utilities choose alike, by (sources, cost, utility, utility)."""
    shares = {}
    for (sources, cost), corner in vertices.groupby(["sources", "cost"]):
        chosen = {
            kind: corner[corner["kind"] == kind].set_index(["seed", "model"])[["source", "x"]] for kind in UTILITY_NAMES
        }
        for a, b in combinations(UTILITY_NAMES, 2):
            same = ((chosen[a] - chosen[b]).abs() < SETUP.same_location).all(axis=1)
            shares[sources, cost, a, b] = float(same.mean())
    return shares


def claims(tables: Tables) -> list[Claim]:
    """Check where utilities are the same policy, and where they are not."""
    vertices = tables["vertices"]
    shares = agreement(vertices)
    front = [share for (sources, cost, *_), share in shares.items() if (sources, cost) == ("one", "constant")]
    others = [share for (sources, cost, *_), share in shares.items() if (sources, cost) != ("one", "constant")]
    constant = vertices[vertices["cost"] == "constant"]
    collapsed = float(((constant["x"] - constant["best_rho2_x"]).abs() < SETUP.same_location).mean())
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
    """Draw the cube, with the share of equal choices on the edges between utilities."""
    figure, [[ax]] = drawing.panels(width=8.5, height=5.2)
    corners = {
        (sources, cost, kind): (3.0 * column + 1.2 * depth, 2.2 * (cost == "c(x)") + 0.9 * depth)
        for column, kind in enumerate(UTILITY_NAMES)
        for depth, sources in enumerate(("one", "several"))
        for cost in ("constant", "c(x)")
    }
    for (sources, cost, kind), corner in corners.items():
        if sources == "several":
            _draw_arrow(ax, corner, corners["one", cost, kind], "#D55E00", gap=14)
        if cost == "c(x)":
            _draw_arrow(ax, corner, corners[sources, "constant", kind], "#0072B2", gap=12)
        _draw_corner(ax, corner, sources, cost, kind)
    for (sources, cost, a, b), share in agreement(tables["vertices"]).items():
        if (a, b) == ("mi", "ip"):  # not neighbours
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


def _draw_arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], colour: str, gap: int) -> None:
    """Draw an arrow towards the special case, with a gap in points at both ends."""
    ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": colour, "shrinkA": gap, "shrinkB": gap})


def _draw_corner(ax: Axes, corner: tuple[float, float], sources: str, cost: str, kind: AcquisitionName) -> None:
    """Write the formula of a rate in a box, grey where the paper calls it pathological."""
    grey = kind == "ip" and not (sources == "one" and cost == "constant")
    argument, divisor = ("x", "c") if sources == "one" else (r"\ell, x", r"c_\ell")
    divisor += "(x)" if cost == "c(x)" else ""
    label = rf"$\alpha^{{\mathrm{{{UTILITY_NAMES[kind]}}}}}({argument})\,/\,{divisor}$"
    box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "0.6" if grey else "k"}
    ax.text(*corner, label, ha="center", va="center", bbox=box, color="0.5" if grey else "k", zorder=3)


EXPERIMENT = Experiment("cube", "which acquisitions are the same policy, and where (Fig. 1)", jobs, claims, figures)
