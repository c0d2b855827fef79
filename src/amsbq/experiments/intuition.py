"""Figure 2 (Section 3.2): utilities that agree without a cost, and disagree once they are divided by one.

For the paper's synthetic squared correlation ρ²(x) = 0.95 sin²(10x) on [0, 0.2], this computes mutual information (MI),
integral variance reduction (IVR) and integral precision (IP), and their rates, the utilities divided by a cost that
grows with x. The paper does not print its cost; this one is logistic.

Claims: without a cost all maximisers coincide; with it they differ, and that of IVR is nearer to low cost than MI's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from ..common.validation import Array
from ..design.acquisition import AcquisitionName, utility
from . import drawing
from .drawing import UTILITY_NAMES
from .study import Claim, Experiment, Job, Row, Settings, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

#: line style of each utility: that of the source with this number
STYLES = {"mi": 1, "ivr": 2, "ip": 3}


def squared_correlation(x: Array) -> Array:
    """Return the paper's synthetic squared correlation ρ² at inputs x in [0, 0.2]."""
    return 0.95 * np.sin(10 * x) ** 2


def cost(x: Array) -> Array:
    """Return the cost at inputs x in [0, 0.2], which grows with x from 0.1 to almost 1."""
    return np.asarray(0.1 + 0.9 * expit(40 * (x - 0.14)))


def curve_rows() -> list[Row]:
    """Return ρ², cost, utility and rate as functions of the input, for each utility."""
    x = np.linspace(0, 0.2, 2001)
    return [
        {"kind": kind, "x": xi, "rho2": r, "cost": c, "utility": u, "rate": u / c}
        for kind in UTILITY_NAMES
        for xi, r, c, u in zip(x, squared_correlation(x), cost(x), utility(squared_correlation(x), kind), strict=True)
    ]


def utility_rows() -> list[Row]:
    """Return each utility as a function of ρ²."""
    rho2 = np.linspace(0, 0.99, 400)
    return [
        {"kind": kind, "rho2": r, "utility": u}
        for kind in UTILITY_NAMES
        for r, u in zip(rho2, utility(rho2, kind), strict=True)
    ]


def jobs(settings: Settings) -> list[Job]:
    """Return the jobs of the experiment; nothing in it is random."""
    return [Job("curves", curve_rows), Job("utilities", utility_rows)]


def claims(tables: Tables) -> list[Claim]:
    """Compare the maximisers of the utilities with those of the rates."""
    without, with_cost = (_maximisers(tables["curves"], column) for column in ("utility", "rate"))
    shown = ", ".join(f"{UTILITY_NAMES[kind]} {x:.3f}" for kind, x in with_cost.items())
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


def _maximisers(curves: DataFrame, column: str) -> dict[AcquisitionName, float]:
    """Return the input at which a column is largest, by utility."""
    return {kind: float(group.loc[group[column].idxmax(), "x"]) for kind, group in curves.groupby("kind")}


def figures(tables: Tables) -> dict[str, Figure]:
    """Draw utilities, rates and cost against the input, and utilities against ρ²."""
    figure, axes = drawing.panels(3, 2, width=4.2, height=2.2)
    for ax in axes[:, 1]:  # one tall panel instead of the right column
        ax.remove()
    _draw_against_input(axes[:, 0], tables["curves"])
    tall = figure.add_subplot(axes[0, 0].get_gridspec()[:, 1])
    tall.spines[["top", "right"]].set_visible(False)
    for kind, group in tables["utilities"].groupby("kind"):
        tall.plot(group["rho2"], group["utility"], **drawing.line_style(STYLES[kind]))
    tall.set(xlabel=r"squared correlation $\rho^2$", ylabel="utility", ylim=(0, 5), xlim=(0, 1), title="utilities")
    drawing.legend_below(figure, axes[0, 0])
    return {"intuition": figure}


def _draw_against_input(axes: list[Axes], curves: DataFrame) -> None:
    """Draw utilities, rates and the cost below each other, with the maximisers as vertical lines."""
    top, middle, bottom = axes
    for kind, group in curves.groupby("kind"):
        line = drawing.line_style(STYLES[kind])
        for ax, column in ((top, "utility"), (middle, "rate")):
            scaled = group[column] / group[column].max()
            ax.plot(group["x"], scaled, label=UTILITY_NAMES[kind], **line)
            ax.axvline(group.loc[group[column].idxmax(), "x"], linewidth=1, **line)
    one = curves[curves["kind"] == "mi"]
    bottom.plot(one["x"], one["cost"], color="k")
    top.set(ylabel="utility / its maximum", title="without cost")
    middle.set(ylabel="rate / its maximum", title="divided by cost")
    bottom.set(ylabel="cost $c(x)$", ylim=(0, 1.05))
    for ax in axes:
        ax.set(xlabel="input $x$", xlim=(0, 0.2), xticks=[0, 0.05, 0.1, 0.15, 0.2])


EXPERIMENT = Experiment(
    "intuition", "utilities with and without a cost that depends on the input (Fig. 2)", jobs, claims, figures
)
