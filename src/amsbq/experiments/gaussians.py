"""The bivariate experiment of Section D (Figures 13, 14 and 15): three linear combinations of Gaussians on [-3, 3]².

The primary source is a random linear combination of 20 Gaussians; two secondary sources are perturbations of it, f₃
farther away than f₂. All costs are constant: 1, 0.05 and 0.05. This computes the sources (Figure 13), the error of both
models and of vanilla BQ against cost (Figure 14), and the sequence of sources that are evaluated (Figure 15). Every
seed is another random problem.

Claims: f₂ is chosen more often than f₃; the multi-source methods beat vanilla BQ at every budget above the initial one
(claimed for the default model; for the paper's it is only reported).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..common.validation import Array
from ..design.description import Initial
from ..design.sources import Source
from ..measures.uniform import Uniform
from . import drawing
from .study import (
    VANILLA,
    Claim,
    Experiment,
    Job,
    Row,
    Settings,
    Tables,
    errors_at_costs,
    evaluation_rows,
    percent,
    run_method,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


@dataclass(frozen=True)
class GaussiansSetup:
    """Constants of the experiment.

    The paper does not say how far secondary sources are perturbed; docs/reproduction.md has what other sizes give.
    """

    components: int = 20  # the paper's
    half_width: float = 3.0  # the domain is [-half_width, half_width]²
    costs: tuple[float, ...] = (1.0, 0.05, 0.05)  # the paper's
    budget: float = 50.0  # the paper's
    quick_budget: float = 4.2  # the claims compare errors from a cost of 4 on
    largest_shift: float = 0.1  # largest shift of the means, from one source to the next
    largest_growth: float = 0.1  # largest growth of the variances
    weight_noise: float = 0.05  # standard deviation of the perturbation of the weights
    problems_per_seed: int = 8  # several, because problems differ more than runs of one problem
    shown_steps: int = 250  # number of steps in the figure, as in Figure 15


SETUP = GaussiansSetup()
MULTI_SOURCE_METHODS = ("AMS-BQ, MI", "default, MI")


class Combination:
    """A linear combination Σ_k z_k Φ_k(x) of Gaussians with means m_k and covariances A_k, normalised as in the paper.

    Parameters
    ----------
    means : (K, 2) array
    covariances : (K, 2, 2) array
    weights : (K,) array
        The factors z_k.
    """

    def __init__(self, means: Array, covariances: Array, weights: Array) -> None:
        self.means, self.covariances, self.weights = means, covariances, weights
        self._precisions = np.linalg.inv(covariances)
        self._factors = weights / np.sqrt(2 * np.pi * np.linalg.det(covariances))

    def values(self, X: Array) -> Array:
        """Return the values at the rows of X (n, 2), shape (n,)."""
        d = X[:, None, :] - self.means
        return np.asarray(np.exp(-0.5 * np.einsum("nki,kij,nkj->nk", d, self._precisions, d)) @ self._factors)

    def __call__(self, x: Array) -> float:
        """Return the value at x of shape (2,)."""
        return float(self.values(x[None])[0])

    def perturbed(self, rng: np.random.Generator) -> Combination:
        """Return a combination with means shifted up and to the right, larger variances, and other weights."""
        shape = self.means.shape
        grown = self.covariances + rng.uniform(0, SETUP.largest_growth, size=shape)[:, :, None] * np.eye(2)
        weights = self.weights + SETUP.weight_noise * rng.normal(size=len(self.weights))
        return Combination(self.means + rng.uniform(0, SETUP.largest_shift, size=shape), grown, weights)

    def integral(self, nodes: int = 400) -> float:
        """Return the average over the domain, by a Gauss-Legendre rule in each direction."""
        x, w = np.polynomial.legendre.leggauss(nodes)
        lines = [w @ self.values(SETUP.half_width * np.column_stack([np.full(nodes, xi), x])) for xi in x]
        return float(w @ np.array(lines)) / 4


def combinations(seed: int) -> list[Combination]:
    """Return a random primary source and two secondary ones, each a perturbation of the one before."""
    rng = np.random.default_rng([seed, 43])
    K = SETUP.components
    means = rng.uniform(-SETUP.half_width, SETUP.half_width, size=(K, 2))
    u, kappa = rng.normal(size=(K, 2)), rng.uniform(size=(K, 2))
    covariances = u[:, :, None] * u[:, None, :] + kappa[:, :, None] * np.eye(2)
    sources = [Combination(means, covariances, rng.normal(size=K))]
    for _ in SETUP.costs[1:]:
        sources.append(sources[-1].perturbed(rng))
    return sources


def _domain() -> Uniform:
    """Return the uniform measure on the domain."""
    return Uniform([-SETUP.half_width, -SETUP.half_width], SETUP.half_width)


def _initial_designs(seed: int) -> tuple[Initial, Initial]:
    """Return the initial evaluations of the multi-source methods, and those of vanilla BQ.

    As in the paper: one of the primary source and two of each secondary one; three of the primary one.
    """
    x = _domain().sample(3, np.random.default_rng([seed, 44]))
    return [(0, x[0]), (1, x[0]), (2, x[0]), (1, x[1]), (2, x[1])], [(0, xi) for xi in x]


def run_rows(method: str, seed: int, budget: float) -> list[Row]:
    """Return the evaluations of one run on the problem of a seed."""
    functions = combinations(seed)
    sources = [Source(f, cost=c, name=f"f{i}") for i, (f, c) in enumerate(zip(functions, SETUP.costs, strict=True), 1)]
    initial, vanilla_initial = _initial_designs(seed)
    found = run_method(method, sources, _domain(), budget, seed, initial, vanilla_initial)
    return evaluation_rows(found, functions[0].integral(), method=method, seed=seed)


def source_rows(points: int = 61) -> list[Row]:
    """Return the values of the first problem's sources on a square grid."""
    axis = np.linspace(-SETUP.half_width, SETUP.half_width, points)
    X = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    return [
        {"source": source, "x0": x0, "x1": x1, "value": value}
        for source, f in enumerate(combinations(0), 1)
        for (x0, x1), value in zip(X.tolist(), f.values(X).tolist(), strict=True)
    ]


def jobs(settings: Settings) -> list[Job]:
    """Return the jobs of the experiment: a run for each method and problem, and the sources on a grid."""
    problems = 1 if settings.quick else SETUP.problems_per_seed * settings.seeds
    budget = SETUP.quick_budget if settings.quick else SETUP.budget
    methods = (*MULTI_SOURCE_METHODS, VANILLA)
    runs = [Job("runs", run_rows, (method, seed, budget)) for seed in range(problems) for method in methods]
    return [*runs, Job("sources", source_rows)]


def shares_of_sources(runs: DataFrame) -> dict[str, Array]:
    """Return the share of each source among all evaluations, shape (3,), by multi-source method."""
    several = runs[runs["method"] != VANILLA]
    return {
        str(method): np.array([(of["source"] == source).mean() for source in (1, 2, 3)])
        for method, of in several.groupby("method")
    }


def claims(tables: Tables) -> list[Claim]:
    """Compare how often the secondary sources are chosen, and the errors with those of vanilla BQ."""
    runs = tables["runs"]
    found = []
    for method, share in shares_of_sources(runs).items():
        found.append(
            Claim(
                f"{method}: f2 is chosen more often than f3 (the paper's shares: 15, 57, 28 %)",
                ", ".join(percent(part) for part in share),
                bool(share[1] > share[2]),
            )
        )
    budgets = np.arange(4.0, runs["spent"].max() + 0.5, 1.0)
    vanilla = np.median(errors_at_costs(runs[runs["method"] == VANILLA], budgets), axis=0)
    for method in MULTI_SOURCE_METHODS:
        errors = np.median(errors_at_costs(runs[runs["method"] == method], budgets), axis=0)
        better = errors < vanilla
        ratio = float(np.exp(np.median(np.log(vanilla / errors))))
        found.append(
            Claim(
                f"{method} beats vanilla BQ at every budget above the initial one, in the median",
                f"at {better.sum()} of {len(better)}, with errors {ratio:.1f} times smaller",
                bool(better.all()) if "default" in method or better.all() else None,
            )
        )
    return found


def figures(tables: Tables) -> dict[str, Figure]:
    """Draw the sources, errors against cost, and the sequence of sources."""
    return {
        "sources": _draw_sources(tables["sources"]),
        "error": _draw_errors(tables["runs"]),
        "sequence": _draw_sequence(tables["runs"]),
    }


def _draw_sources(table: DataFrame) -> Figure:
    """Draw contours of the three sources, with the initial evaluations of the multi-source methods."""
    figure, axes = drawing.panels(1, 3, width=3.6, height=3.2, sharey=True)
    largest = table["value"].abs().max()
    initial, _ = _initial_designs(0)
    for ax, (source, group) in zip(axes.flat, table.groupby("source"), strict=True):
        z = group.pivot(index="x1", columns="x0", values="value")
        levels = np.linspace(-largest, largest, 25)
        filled = ax.contourf(z.columns, z.index, z, levels=levels, cmap="RdBu_r")
        ax.contour(z.columns, z.index, z, levels=[0], colors="k", linewidths=0.5)
        X = np.array([x for s, x in initial if s == source - 1])
        ax.plot(*X.T, "o", color="k", markeredgecolor="white", markersize=6)
        ax.set(xlabel="$x_1$", title=f"$f_{source}$, cost {SETUP.costs[source - 1]:g}", aspect="equal")
    axes[0, 0].set(ylabel="$x_2$")
    figure.colorbar(filled, ax=list(axes.flat), label="output (black line: 0)", format="%.1f")
    return figure


def _draw_errors(runs: DataFrame) -> Figure:
    """Draw the median error of all methods against cost."""
    figure, [[ax]] = drawing.panels(width=6.4, height=4.0)
    costs = np.arange(1.0, runs["spent"].max() + 0.1, 0.1)
    drawing.draw_median_errors(ax, runs, costs, [*MULTI_SOURCE_METHODS, VANILLA])
    ax.set(xlabel="cost", ylabel=f"relative error, median of {runs['seed'].nunique()} problems")
    drawing.legend_below(figure, ax)
    return figure


def _draw_sequence(runs: DataFrame) -> Figure:
    """Draw which source was evaluated at each step of one run, and the shares over all runs on the right."""
    figure, axes = drawing.panels(2, 1, width=8.0, height=1.9)
    shares = shares_of_sources(runs)
    for ax, method in zip(axes.flat, MULTI_SOURCE_METHODS, strict=True):
        one_run = runs[(runs["method"] == method) & (runs["seed"] == 0) & (runs["step"] <= SETUP.shown_steps)]
        for source, group in one_run.groupby("source"):
            share = percent(shares[method][source - 1])
            ax.plot(group["step"], group["source"], markersize=3, **drawing.marker_style(source))
            ax.text(1.01, source, share, transform=ax.get_yaxis_transform(), va="center")
        ax.set(title=method, ylim=(3.5, 0.5), xlim=(0, SETUP.shown_steps))
        ax.set_yticks([1, 2, 3], ["$f_1$", "$f_2$", "$f_3$"])
    axes[-1, 0].set(xlabel="evaluation; on the right, the share of each source over all seeds")
    return figure


EXPERIMENT = Experiment(
    "gaussians",
    "three sources of two inputs: error against budget, the sequence and the shares of the sources (Figs. 13 to 15)",
    jobs,
    claims,
    figures,
)
