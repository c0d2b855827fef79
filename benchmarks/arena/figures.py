"""Figures of the report: contests, error against the budget in each family, coverage, and certified accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .families import MAKERS
from .methods import BUDGETS, METHODS, TRACED
from .results import HALVES, Results, budgets_of
from .scores import ACCURACIES, certified_cost
from .tables import OURS, Contest, typical

#: colours that also differ in brightness (after Okabe and Ito), in the order of the methods
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#999999")
DASHES = ("-", "--", "-.", ":")
#: colours of contests that are won, undecided, and lost
VERDICTS = {-1: COLOURS[1], 0: "0.55", 1: COLOURS[0]}
SHOWN = (0.004, 25.0)  #: the ratios of contests that fit into the figure


def styles() -> dict[str, dict[str, Any]]:
    """Return colour and line style of each method that chooses its own evaluations."""
    ours, *others = COLOURS
    peers = [name for name, method in METHODS.items() if not method.given_data and name != OURS]
    found: dict[str, dict[str, Any]] = {
        name: {"color": others[k % len(others)], "linestyle": DASHES[k % len(DASHES)], "linewidth": 1.2}
        for k, name in enumerate(peers)
    }
    return {OURS: {"color": ours, "linestyle": "-", "linewidth": 2.2}, **found}


def save(figure: Any, path: Path) -> None:
    """Write a figure as SVG, the same bytes for the same results."""
    import matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None})
    text = path.read_text(encoding="utf-8")
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")


def panels(columns: int, width: float = 3.6) -> tuple[Any, list[Any]]:
    """Return a figure and its panels, side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, 3.2), layout="constrained")
    return figure, list(np.ravel(figure.subplots(1, columns, sharey=True)))


def legend(figure: Any, axes: list[Any]) -> None:
    """Add one legend for all panels, above them."""
    entries = {label: line for ax in axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    if entries:
        figure.legend(list(entries.values()), list(entries), loc="outside upper center", ncols=4, frameon=False)


def error_against_cost(results: Results, family: str, path: Path) -> None:
    """Draw the typical error of each method against the budget, development and validation side by side."""
    figure, axes = panels(2)
    for ax, half in zip(axes, HALVES, strict=True):
        chosen = results.of_family(family).of_half(half)
        for name, style in styles().items():
            runs = {budget: chosen.of_method(name).at(budget) for budget in budgets_of(chosen)}
            solved = chosen.of_method(name).problems
            drawn = [(float(b), typical(found)) for b, found in runs.items() if solved and found.problems == solved]
            if drawn:
                ax.plot(*np.transpose(drawn), marker="o", markersize=3, label=name, **style)
        ax.set(title=half, xlabel="budget", xscale="log", yscale="log")
        ax.set_xticks([float(b) for b in budgets_of(chosen)], budgets_of(chosen))
        ax.minorticks_off()
        ax.grid(True, color="0.9", linewidth=0.6)
    axes[0].set_ylabel("typical error / standard deviation")
    legend(figure, axes)
    save(figure, path)


def contests(found: Sequence[Contest], path: Path) -> None:
    """Draw the error relative to the best peer, with its interval: a row for each family, a panel for each budget."""
    from matplotlib.figure import Figure

    logs = {name: [np.log(c.ratio.value) for c in found if c.family == name] for name in MAKERS}
    rows = sorted((name for name in logs if logs[name]), key=lambda name: -np.mean(logs[name]))
    figure = Figure(figsize=(8.4, 1.2 + 0.2 * len(rows)), layout="constrained")
    axes = figure.subplots(1, len(BUDGETS), sharey=True, sharex=True)
    for ax, budget in zip(axes, BUDGETS, strict=True):
        ax.axvline(1, color="0.5", linewidth=0.8)
        for c in found:
            if c.budget == budget:
                y, colour = rows.index(c.family), VERDICTS[c.ratio.verdict]
                ends = np.clip([c.ratio.low, c.ratio.high], *SHOWN)
                ax.plot(ends, [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
                ax.plot(np.clip(c.ratio.value, *SHOWN), y, "o", color=colour, markersize=4.5)
        ax.set(title=f"budget {budget}", xscale="log", xlim=SHOWN, ylim=(-0.7, len(rows) - 0.3))
        ax.set_xticks([0.01, 0.1, 1, 10], ["1/100", "1/10", "1", "10"])
        ax.minorticks_off()
        ax.grid(True, color="0.9", linewidth=0.6)
        ax.set_axisbelow(True)
    axes[0].set_yticks(range(len(rows)), rows)
    figure.supxlabel(f"better  ←  error of {OURS} / error of the best other method  →  worse", fontsize="medium")
    save(figure, path)


def coverage(results: Results, path: Path) -> None:
    """Draw the coverage of central intervals against their nominal level."""
    figure, axes = panels(2)
    levels = np.linspace(0, 1, 101)
    for ax, half in zip(axes, HALVES, strict=True):
        ax.plot([0, 1], [0, 1], color="0.7", linewidth=0.8)
        for name, style in styles().items():
            found = results.of_half(half).of_method(name).judged()
            if found:
                centrality = np.sort([abs(2 * row.probability - 1) for row in found])
                ax.plot(levels, np.searchsorted(centrality, levels, side="right") / len(found), label=name, **style)
        ax.set(title=half, xlabel="nominal level of the interval")
        ax.grid(True, color="0.9", linewidth=0.6)
    axes[0].set_ylabel("share that contains the truth")
    legend(figure, axes)
    save(figure, path)


def certified(results: Results, half: str, path: Path) -> None:
    """Draw the share of runs that have correctly certified an accuracy, against cost."""
    figure, axes = panels(len(ACCURACIES), 3.0)
    for ax, accuracy in zip(axes, ACCURACIES, strict=True):
        for name, style in styles().items():
            runs = results.of_half(half).of_method(name).trajectories()
            if runs:
                costs = np.sort([certified_cost(run.rows, accuracy) for run in runs])
                reached = costs[np.isfinite(costs)]
                steps = np.arange(len(reached) + 1) / len(runs)
                ends = np.append(reached, float(TRACED[0]))
                ax.step(np.append(2.0, ends), np.append(steps, steps[-1]), where="post", label=name, **style)
        ax.set(title=f"half width {accuracy:g}", xlabel="cost")
        ax.grid(True, color="0.9", linewidth=0.6)
    axes[0].set_ylabel("share of runs")
    legend(figure, axes)
    save(figure, path)
