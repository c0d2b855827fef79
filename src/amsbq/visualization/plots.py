"""Pictures of a run: what is the answer, can it be believed, where did the money go, what is next?

Each function takes a result, an integrator or the path of a journal, draws on an Axes of matplotlib's, a new one unless
it is given, and returns it. Sources differ in colour, brightness, line and marker.

    result = amsbq.integrate(...)
    plots.convergence(result)
    plots.overview("run.jsonl").savefig("run.png")
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..results.result import Result
from ..validation import Array, brief
from . import curves
from .curves import Run
from .style import DENSE, FAINT, LOOKS, RATES, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def text(name: str) -> str:
    """A name as matplotlib shows it as it is: no mathematics, and no label that is taken for a hidden one."""
    shown_name = name.replace("$", r"\$")
    return f"\u200b{shown_name}" if shown_name.startswith("_") else shown_name


def panels(
    rows: int = 1, columns: int = 1, width: float = 4.2, height: float = 3.2, framed: bool = False, **options: Any
) -> tuple[Figure, Any]:
    """A figure, and its axes as a (rows, columns) array; width and height are those of one of them."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'amsbq[plot]'") from None
    figure: Figure
    figure, axes = plt.subplots(
        rows, columns, figsize=(width * columns, height * rows), layout="constrained", squeeze=False, **options
    )
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(framed)
    return figure, axes


def convergence(run: Run, ax: Axes | None = None) -> Axes:
    """The estimate with two standard deviations against cost, and which source was asked when."""
    result, ax = curves.as_result(run), _axes(ax)
    seen = curves.convergence(result)
    cost, low, high = seen.band()
    ax.fill_between(cost, low, high, step="post", color=FAINT, alpha=0.5, linewidth=0)
    ax.step(cost, seen.mean[seen.known], where="post", color="0.2", linewidth=1.2, label="mean ± 2 std")
    for source, name in enumerate(result.names):
        of = seen.known & (seen.sources == source) & ~seen.failed
        _dots(ax, seen.cost[of], seen.mean[of], source, _size(cost), label=text(name))
    if seen.failed.any():
        at = np.full(seen.failed.sum(), 0.02)
        ax.plot(seen.cost[seen.failed], at, "kx", markersize=5, transform=ax.get_xaxis_transform(), label="failed")
    ax.set(xlabel="cost", ylabel="integral", ylim=seen.zoom())
    _legend(ax)
    return ax


def sources(run: Run, ax: Axes | None = None, input: int | str | None = None) -> Any:
    """What is known of each source: mean, two standard deviations, and its evaluations.

    With one input these are the sources themselves; with more, main effects: each source as a function of one input,
    with the others integrated out. Without ``input`` and ``ax`` there is a panel for each input, and an array of Axes
    is returned.
    """
    result = curves.as_result(run)
    if input is None and ax is None and len(result.inputs) > 1:
        return _for_each_input(result, sources)
    d, ax = _input(result, 0 if input is None else input), _axes(ax)
    t, alone = curves.grid(result, d), len(result.inputs) == 1
    for source, curve in enumerate(curves.effects(result, d, t)):
        _line(ax, t, curve.mean, source, text(result.names[source]), curve.std)
        of = [e for e in result.evaluations if e.source == source and e.status == "ok" and alone]
        _dots(ax, [e.x[0] for e in of], [e.value for e in of], source, 4.5)
    _measure(ax, curves.density(result, d, t), t)
    ax.set(xlabel=text(result.inputs[d]), ylabel="output" if alone else "average output")
    _legend(ax)
    return ax


def slices(run: Run, source: int = 0, axes: Any = None) -> Any:
    """The mean of a source: main effects on the diagonal, below it slices through the medians of the other inputs."""
    result = curves.as_result(run)
    n, source = len(result.inputs), curves.known_source(result, source)
    if axes is None:
        _, axes = panels(n, n, width=2.0 + 1 / n, height=1.8 + 0.6 / n, framed=True)
    axes = np.asarray(axes).reshape(n, n)
    values = {(j, i): curves.slice_through(result, source, i, j) for j in range(n) for i in range(j)}
    ends = np.array([(z.min(), z.max()) for _, _, z in values.values()] or [(0.0, 1.0)])
    levels = np.linspace(ends.min(), ends.max() if np.ptp(ends) > 0 else ends.max() + 1.0, 13)
    of = np.array([e.x for e in result.evaluations if e.source == source and e.status == "ok"]).reshape(-1, n)
    filled = None
    for j, i in np.ndindex(n, n):
        ax = axes[j, i]
        if i > j:
            ax.set_axis_off()
        elif i == j:
            t = curves.grid(result, i)
            curve = curves.effect(result, source, i, t)
            _line(ax, t, curve.mean, source, text(result.names[source]), curve.std)
        else:
            ti, tj, z = values[j, i]
            filled = ax.contourf(ti, tj, z, levels=levels, cmap="cividis")
            ax.plot(of[:, i], of[:, j], "w.", markersize=4, markeredgecolor="k", markeredgewidth=0.4)
            ax.set(xlim=(ti[0], ti[-1]), ylim=(tj[0], tj[-1]))
        ax.set(xlabel=text(result.inputs[i]) if j == n - 1 else "", ylabel=text(result.inputs[j]) if i == 0 < j else "")
        ax.tick_params(labelsize="x-small", labelbottom=j == n - 1, labelleft=i in (0, j))
    if filled is not None:
        axes[0, 0].figure.colorbar(filled, ax=axes[:, -1], label=text(result.names[source]), shrink=0.8)
    return axes


def rates(run: Run, ax: Axes | None = None, input: int | str | None = None) -> Any:
    """What the next evaluation of each source is worth for its cost, along one input, and where it would be made."""
    result = curves.as_result(run)
    if input is None and ax is None and len(result.inputs) > 1:
        seen = curves.rates_along(result, range(len(result.inputs)))
        return _for_each_input(result, lambda result, ax, d: _rates(result, seen[d], ax, d))
    d, ax = _input(result, 0 if input is None else input), _axes(ax)
    return _rates(result, curves.rates(result, d), ax, d)


def _rates(result: Result, seen: curves.Rates, ax: Axes, d: int) -> Axes:
    for source, values in enumerate(seen.rates):
        _line(ax, seen.t, values, source, text(result.names[source]))
    if seen.next is not None:
        more = {"marker": "*", "markeredgecolor": "black", "clip_on": False, "zorder": 5}
        label = f"next: {text(result.names[seen.next.source])}"
        _dots(ax, [seen.next.x[d]], [seen.next.rate], seen.next.source, 14, label=label, **more)
    kind = RATES.get(curves.integrator_of(result).acquisition, "utility")
    ax.set(xlabel=text(result.inputs[d]), ylabel=f"{kind} per cost", ylim=(0, None))
    _legend(ax)
    return ax


def sequence(run: Run, ax: Axes | None = None) -> Axes:
    """Which source was asked when, and its share of the evaluations and of the cost."""
    result, ax = curves.as_result(run), _axes(ax)
    counts, paid = curves.shares(result)
    seen = curves.convergence(result)
    steps = np.arange(1, len(seen.cost) + 1)
    for source, name in enumerate(result.names):
        of = seen.sources == source
        fine, failed = steps[of & ~seen.failed], steps[of & seen.failed]
        _dots(ax, fine, np.full(len(fine), source), source, _size(steps))
        ax.plot(failed, np.full(len(failed), source), "kx", markersize=5)
        made = f"{_percent(counts[source], sum(counts))} of evaluations\n{_percent(paid[source], sum(paid))} of cost"
        ax.text(
            1.02, source, f"{text(name)}\n{made}", transform=ax.get_yaxis_transform(), va="center", fontsize="small"
        )
    ax.set(xlabel="evaluation", ylim=(len(result.names) - 0.5, -0.5), yticks=[])
    ax.spines["left"].set_visible(False)
    return ax


def shares(run: Run, ax: Axes | None = None) -> Axes:
    """The share of each source in the evaluations and in the cost."""
    result, ax = curves.as_result(run), _axes(ax)
    for row, parts in enumerate(curves.shares(result)):
        of_all = parts / (parts.sum() or 1.0)
        for source, (share, left) in enumerate(zip(of_all, np.cumsum(of_all) - of_all, strict=True)):
            label = None if row else text(result.names[source])
            ax.barh(row, share, left=left, color=look(source)["color"], edgecolor="white", label=label)
            if share > 0.08:
                middle: dict[str, Any] = {"ha": "center", "va": "center", "color": "white", "fontsize": "small"}
                ax.text(left + share / 2, row, _percent(share, 1.0), **middle)
    ax.set(xlim=(0, 1), ylim=(1.6, -0.6), xlabel="share")
    ax.set_yticks([0, 1], ["evaluations", "cost"])
    ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    _legend(ax)
    return ax


def correlation(run: Run, ax: Axes | None = None) -> Axes:
    """The correlation between sources at the same input, as learned."""
    result, ax = curves.as_result(run), _axes(ax)
    R = curves.correlation(result)
    names = [text(name) for name in result.names[: len(R)]]
    ax.imshow(R, vmin=-1, vmax=1, cmap="PuOr")
    for i, j in np.ndindex(R.shape):
        ax.text(j, i, f"{R[i, j]:.2f}", ha="center", va="center", color="white" if abs(R[i, j]) > 0.6 else "black")
    ax.set_xticks(range(len(names)), names, rotation=30, ha="right")
    ax.set_yticks(range(len(names)), names)
    ax.spines[:].set_visible(False)
    return ax


def costs(run: Run, ax: Axes | None = None, input: int | str | None = None) -> Any:
    """What evaluations cost: as expected along one input, and as paid."""
    result = curves.as_result(run)
    if input is None and ax is None and len(result.inputs) > 1:
        return _for_each_input(result, costs)
    d, ax = _input(result, 0 if input is None else input), _axes(ax)
    t = curves.grid(result, d)
    expected = curves.costs(result, d, t)
    for source, values in enumerate(expected):
        _line(ax, t, values, source, text(result.names[source]))
        of = [e for e in result.evaluations if e.source == source and e.cost > 0]
        _dots(ax, [e.x[d] for e in of], [e.cost for e in of], source, 4.0, alpha=0.7)
    if curves.orders_apart(expected):
        ax.set_yscale("log")
    else:
        ax.set_ylim(0, None)
    ax.set(xlabel=text(result.inputs[d]), ylabel="cost of an evaluation")
    _legend(ax)
    return ax


def forecast(run: Run, ax: Axes | None = None, budget: float | None = None) -> Axes:
    """The standard deviation so far, and what to expect of more money, by default of twice as much."""
    result, ax = curves.as_result(run), _axes(ax)
    ax.plot(*curves.convergence(result).shrinking(), color="0.2", label="so far")
    ahead = curves.forecast(result, budget)
    if len(ahead):
        ax.plot(*ahead.T, color=LOOKS[1]["color"], linestyle="--", label="to be expected")
    ax.set(xlabel="cost", ylabel="standard deviation of the integral", yscale="log")
    _legend(ax)
    return ax


def residuals(run: Run, ax: Axes | None = None) -> Axes:
    """How far each observation is from what all the others say of it, in standard deviations."""
    result, ax = curves.as_result(run), _axes(ax)
    left, rng = curves.residuals(result), np.random.default_rng(0)
    ax.axhspan(-2, 2, color=FAINT, alpha=0.4, linewidth=0)
    ax.axhline(0, color="0.4", linewidth=0.8)
    for source, _ in enumerate(result.names):
        z = left.of(source)
        _dots(ax, source + rng.uniform(-0.25, 0.25, size=len(z)), z, source, _size(z))
        said = f"rms {math.sqrt(np.mean(z**2)):.2g}" if len(z) else "none"
        ax.text(source, 0.98, said, transform=ax.get_xaxis_transform(), ha="center", va="top", fontsize="small")
    slanted: dict[str, Any] = {"rotation": 20, "ha": "right"} if len("".join(result.names)) > 24 else {}
    ax.set_xticks(range(len(result.names)), [text(name) for name in result.names], **slanted)
    ax.set(
        ylabel="leave-one-out residual / std", ylim=(-left.span, 1.15 * left.span), xlim=(-0.6, len(result.names) - 0.4)
    )
    return ax


def overview(run: Run) -> Figure:
    """The six that answer most questions, in one figure."""
    result = curves.as_result(run)
    figure, axes = panels(2, 3, width=14 / 3, height=3.75)
    convergence(result, axes[0, 0])
    sources(result, axes[0, 1], 0)
    rates(result, axes[0, 2], 0)
    sequence(result, axes[1, 0])
    forecast(result, axes[1, 1])
    residuals(result, axes[1, 2])
    return figure


def _axes(ax: Axes | None) -> Axes:
    if ax is None:
        _, [[ax]] = panels(width=6.4, height=4.0)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _for_each_input(result: Result, draw: Any) -> Any:
    n = len(result.inputs)
    columns = min(n, 3)
    figure, axes = panels(math.ceil(n / columns), columns)
    for d, ax in enumerate(axes.flat):
        if d < n:
            draw(result, ax, d)
            if d:
                ax.get_legend().remove()
        else:
            figure.delaxes(ax)
    return axes.ravel()[:n]


def _input(result: Result, input: int | str) -> int:
    """The number of an input, given its number or its name."""
    if isinstance(input, str) and input in result.inputs:
        return list(result.inputs).index(input)
    if isinstance(input, int | np.integer) and 0 <= input < len(result.inputs):
        return int(input)
    raise ValueError(f"there is no input {brief(input)}: there are {', '.join(result.inputs)}")


def _measure(ax: Axes, density: Array | None, t: Array) -> None:
    """The distribution of an input, as a shadow at the bottom."""
    if density is None:
        return
    beside = ax.twinx()
    beside.fill_between(t, density, color="0.5", alpha=0.18, linewidth=0, zorder=0)
    beside.set(ylim=(0, 5 * density.max()), yticks=[])
    beside.spines[:].set_visible(False)
    ax.set_zorder(beside.get_zorder() + 1)
    ax.patch.set_visible(False)


def _legend(ax: Axes) -> None:
    """Above the axes, where no data are."""
    handles, labels = ax.get_legend_handles_labels()
    width = ax.get_window_extent().width / ax.get_figure(root=True).dpi if labels else 0.0  # type: ignore[union-attr]
    columns = int(width / (0.55 + 0.07 * max(map(len, labels), default=1)))  # inches
    at: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "borderaxespad": 0.2}
    ax.legend(handles, labels, ncols=min(max(columns, 1), 4), frameon=False, fontsize="small", **at)


def _line(ax: Axes, t: Array, values: Array, source: int, label: str, std: Array | None = None) -> None:
    style = look(source)
    if std is not None:
        ax.fill_between(t, values - 2 * std, values + 2 * std, color=style["color"], alpha=0.15, linewidth=0)
    ax.plot(t, values, color=style["color"], linestyle=style["linestyle"], label=label)


def _dots(ax: Axes, x: Any, y: Any, source: int, size: float, **more: Any) -> None:
    style = {"color": look(source)["color"], "marker": look(source)["marker"], "linestyle": "none"}
    edge = {"markeredgecolor": "white", "markeredgewidth": 0.4 if size > 3 else 0.0}
    ax.plot(x, y, **{**style, "markersize": size, **edge, **more})


def _size(points: Any) -> float:
    """Of markers, so that they do not hide each other."""
    return 5.0 if len(points) <= DENSE else 2.5


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / (whole or 1):.0f} %"
