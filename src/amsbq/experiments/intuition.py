"""Figure 2: utilities that agree where cost is constant, and disagree where it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from ..design.acquisition import utility
from ..validation import Array
from . import drawing
from .study import Claim, Experiment, Job, Row, Settings, Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {"mi": "MI", "ivr": "IVR", "ip": "IP"}
LOOKS = {"mi": drawing.SOURCES[0], "ivr": drawing.SOURCES[1], "ip": drawing.SOURCES[2]}


def rho2(x: Array) -> Array:
    """The paper's synthetic squared correlation, on [0, 0.2]."""
    return 0.95 * np.sin(10 * x) ** 2


def cost(x: Array) -> Array:
    """One that grows with x."""
    return np.asarray(0.1 + 0.9 * expit(40 * (x - 0.14)))


def curve_rows() -> list[Row]:
    x = np.linspace(0, 0.2, 2001)
    return [
        {"kind": kind, "x": xi, "rho2": r, "cost": c, "utility": u, "rate": u / c}
        for kind in KINDS
        for xi, r, c, u in zip(x, rho2(x), cost(x), utility(rho2(x), kind), strict=True)
    ]


def utility_rows() -> list[Row]:
    r = np.linspace(0, 0.99, 400)
    return [{"kind": kind, "rho2": a, "utility": b} for kind in KINDS for a, b in zip(r, utility(r, kind), strict=True)]


def jobs(settings: Settings) -> list[Job]:
    return [Job("curves", curve_rows), Job("utilities", utility_rows)]


def _maximisers(curves: Any, column: str) -> dict[str, float]:
    return {kind: float(group.loc[group[column].idxmax(), "x"]) for kind, group in curves.groupby("kind")}


def claims(tables: Tables) -> list[Claim]:
    without, with_cost = (_maximisers(tables["curves"], column) for column in ("utility", "rate"))
    shown = ", ".join(f"{KINDS[kind]} {x:.3f}" for kind, x in with_cost.items())
    return [
        Claim(
            "without cost, all maximisers coincide",
            f"at x = {without['mi']:.4f}, where ρ² is largest: {np.pi / 20:.4f}",
            len(set(without.values())) == 1,
        ),
        Claim(
            "with a cost that varies they disperse, and IVR moves further towards low cost than MI",
            f"x = {shown}",
            len(set(with_cost.values())) == 3 and with_cost["ivr"] < with_cost["mi"] < without["mi"],
        ),
    ]


def figures(tables: Tables) -> dict[str, Figure]:
    figure, axes = drawing.panels(3, 2, width=4.2, height=2.2)
    curves, utilities = tables["curves"], tables["utilities"]
    for kind, group in curves.groupby("kind"):
        line = {"color": LOOKS[kind]["color"], "linestyle": LOOKS[kind]["linestyle"]}
        for ax, column in ((axes[0, 0], "utility"), (axes[1, 0], "rate")):
            scaled = group[column] / group[column].max()
            ax.plot(group["x"], scaled, label=KINDS[kind], **line)
            ax.axvline(group.loc[group[column].idxmax(), "x"], linewidth=1, **line)
    one = curves[curves["kind"] == "mi"]
    axes[2, 0].plot(one["x"], one["cost"], color="k")
    axes[0, 0].set(ylabel="utility / its maximum", title="without cost")
    axes[1, 0].set(ylabel="rate / its maximum", title="divided by cost")
    axes[2, 0].set(ylabel="cost $c(x)$", ylim=(0, 1.05))
    for ax in axes[:, 0]:
        ax.set(xlabel="input $x$", xlim=(0, 0.2), xticks=[0, 0.05, 0.1, 0.15, 0.2])
    for ax in axes[1:, 1]:
        ax.remove()
    right = axes[0, 1]
    right.remove()
    ax = figure.add_subplot(axes[0, 0].get_gridspec()[:, 1])
    ax.spines[["top", "right"]].set_visible(False)
    for kind, group in utilities.groupby("kind"):
        ax.plot(group["rho2"], group["utility"], color=LOOKS[kind]["color"], linestyle=LOOKS[kind]["linestyle"])
    ax.set(xlabel=r"squared correlation $\rho^2$", ylabel="utility", ylim=(0, 5), xlim=(0, 1), title="utilities")
    drawing.legend_below(figure, axes[0, 0])
    return {"intuition": figure}


EXPERIMENT = Experiment(
    "intuition", "utilities with and without a cost that depends on the input (Fig. 2)", jobs, claims, figures
)
