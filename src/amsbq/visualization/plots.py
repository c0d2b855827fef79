"""Matplotlib figures of a run, and of several; `amsbq.plots` is their public name and explains shared arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ..common.validation import Array, brief
from ..design.labels import COST, OUTPUT, with_unit
from ..results import analysis
from ..results.result import Result, known_targets
from . import curves
from .axes import (
    FAINT,
    draw_density,
    draw_line,
    draw_markers,
    legend_above,
    literal,
    marker_size,
    panels,
    percent,
    ready_axes,
    titled,
)
from .curves import Run
from .style import BAND_NAME, PAYS, RATE_NAMES, effect_name, needs_log_scale, source_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class AxesArray(np.ndarray[Any, np.dtype[np.object_]]):
    """An array of matplotlib Axes that knows their figure."""

    @property
    def figure(self) -> Figure:
        """The figure of the first Axes."""
        first: Any = self.flat[0]
        return cast("Figure", first.figure)


def convergence(run: Run, ax: Axes | None = None) -> Axes:
    """Draw the estimate of the integral and its band against cost, with a marker for the source of each evaluation.

    Failed evaluations are crosses on the lower edge. A target other than the mean is written below.
    Returns the Axes.
    """
    result, ax = curves.as_result(run), ready_axes(ax)
    seen = curves.convergence(result)
    cost, low, high = seen.band()
    ax.fill_between(cost, low, high, step="post", color=FAINT, alpha=0.5, linewidth=0, label=BAND_NAME)
    ax.step(cost, seen.mean[seen.known], where="post", color="0.2", linewidth=1.2, label="mean")
    for source, name in enumerate(result.names):
        of = seen.known & (seen.sources == source) & ~seen.failed
        draw_markers(ax, seen.cost[of], seen.mean[of], source, marker_size(len(cost)), label=literal(name))
    if seen.failed.any():
        at = np.full(seen.failed.sum(), 0.02)
        ax.plot(seen.cost[seen.failed], at, "kx", markersize=5, transform=ax.get_xaxis_transform(), label="failed")
    below = [result.labels.axis(COST), *map(str, known_targets(result))]
    integral = result.labels.integral_axis(result.output)
    ax.set(xlabel=literal("\n".join(below)), ylabel=literal(integral), ylim=seen.limits())
    legend_above(ax)
    return ax


def sources(run: Run, ax: Axes | None = None, input: int | str | None = None) -> Axes | AxesArray:
    """Draw the posterior mean and band of each source along an input, and the density of that input in grey.

    With one input these are the sources themselves, with their observations; with several inputs they are main effects:
    each source as a function of one input, with the others integrated out. Returns the Axes, or an array of one Axes
    per input if neither ``ax`` nor ``input`` is given and the run has several inputs.
    """
    result = curves.as_result(run)
    return _along(result, ax, _shown_inputs(result, ax, input), lambda ax, d: _sources(result, ax, d))


def _sources(result: Result, ax: Axes, d: int) -> None:
    t, alone = curves.grid(result, d), len(result.inputs) == 1
    for source, curve in enumerate(curves.effects(result, d, t)):
        draw_line(ax, t, curve.mean, source, literal(effect_name(result.names[source], curve.known)), curve.band())
        of = [e for e in result.evaluations if e.source == source and e.status == "ok" and alone]
        draw_markers(ax, [e.x[0] for e in of], [e.value for e in of], source, 4.5)
    ax.fill_between([], [], color=source_style(0)["color"], alpha=0.15, linewidth=0, label=BAND_NAME)
    draw_density(ax, t, curves.density(result, d, t))
    shown = result.labels.axis(result.output or OUTPUT, result.output or "output")
    ax.set_ylabel(literal(shown if alone else f"average {shown}"))


def slices(run: Run, source: int = 0, axes: ArrayLike | None = None) -> AxesArray:
    """Draw the posterior mean of one source over each pair of inputs, the other inputs at their medians.

    The panels form a D × D matrix: main effects on the diagonal, slices with the evaluated locations below it, nothing
    above. ``axes`` are D × D Axes to draw on. Returns the array of Axes, shape (D, D).
    """
    result = curves.as_result(run)
    n, source = len(result.inputs), curves.known_source(result, source)
    if axes is None:
        _, axes = panels(n, n, width=2.0 + 1 / n, height=1.8 + 0.6 / n, framed=True)
    matrix = _as_axes_array(np.asarray(axes, dtype=object).reshape(n, n))
    values = {(j, i): curves.slice_through(result, source, i, j) for j in range(n) for i in range(j)}
    ends = np.array([(z.min(), z.max()) for _, _, z in values.values()] or [(0.0, 1.0)])
    levels = np.linspace(ends.min(), ends.max() if np.ptp(ends) > 0 else ends.max() + 1.0, 13)
    of = np.array([e.x for e in result.evaluations if e.source == source and e.status == "ok"]).reshape(-1, n)
    filled = None
    for (j, i), ax in np.ndenumerate(matrix):
        if i > j:
            ax.set_axis_off()
        elif i == j:
            t = curves.grid(result, i)
            curve = curves.effect(result, source, i, t)
            draw_line(ax, t, curve.mean, source, literal(result.names[source]), curve.band())
            ax.set_title("" if curve.known else effect_name("", False).strip(), fontsize="x-small")
        else:
            ti, tj, z = values[j, i]
            filled = ax.contourf(ti, tj, z, levels=levels, cmap="cividis")
            ax.plot(of[:, i], of[:, j], "w.", markersize=4, markeredgecolor="k", markeredgewidth=0.4)
            ax.set(xlim=(ti[0], ti[-1]), ylim=(tj[0], tj[-1]))
        ax.set_xlabel(literal(result.labels.axis(result.inputs[i])) if j == n - 1 else "")
        ax.set_ylabel(literal(result.labels.axis(result.inputs[j])) if i == 0 < j else "")
        ax.tick_params(labelsize="x-small", labelbottom=j == n - 1, labelleft=i in (0, j))
    if filled is not None:
        matrix[0, 0].figure.colorbar(filled, ax=matrix[:, -1], label=literal(result.names[source]), shrink=0.8)
    return matrix


def rates(run: Run, ax: Axes | None = None, input: int | str | None = None) -> Axes | AxesArray:
    """Draw the utility per cost of the next evaluation of each source as a function of one input.

    The other inputs are at the best location (star), or at their medians if there is none.

    Returns the Axes, or an array of one Axes per input if neither ``ax`` nor ``input`` is given and the run has several
    inputs.
    """
    result = curves.as_result(run)
    inputs = _shown_inputs(result, ax, input)
    along = dict(zip(inputs, curves.rates_along(result, inputs), strict=True))
    return _along(result, ax, inputs, lambda ax, d: _rates(result, ax, d, along[d]))


def _rates(result: Result, ax: Axes, d: int, seen: curves.Rates) -> None:
    for source, values in enumerate(seen.rates):
        draw_line(ax, seen.t, values, source, literal(result.names[source]))
    if seen.next is not None:
        star = {"marker": "*", "markeredgecolor": "black", "clip_on": False, "zorder": 5}
        label = f"next: {literal(result.names[seen.next.source])}"
        draw_markers(ax, [seen.next.x[d]], [seen.next.rate], seen.next.source, 14, label=label, **star)
    gain = RATE_NAMES.get(curves.integrator_of(result).problem.acquisition, "utility")
    ax.set(ylabel=f"{gain} per cost", ylim=(0, None))


def sequence(run: Run, ax: Axes | None = None) -> Axes:
    """Draw which source was evaluated when, with its shares of the evaluations and of the cost next to it.

    Failed evaluations are crosses. Returns the Axes.
    """
    result, ax = curves.as_result(run), ready_axes(ax)
    counts, paid = curves.shares(result)
    seen = curves.convergence(result)
    steps = np.arange(1, len(seen.cost) + 1)
    for source, name in enumerate(result.names):
        of = seen.sources == source
        ok, failed = steps[of & ~seen.failed], steps[of & seen.failed]
        draw_markers(ax, ok, np.full(len(ok), source), source, marker_size(len(steps)))
        ax.plot(failed, np.full(len(failed), source), "kx", markersize=5)
        parts = f"{percent(counts[source], sum(counts))} of evaluations\n{percent(paid[source], sum(paid))} of cost"
        beside: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": "small"}
        ax.text(1.02, source, f"{literal(name)}\n{parts}", **beside)
    ax.set(xlabel="evaluation", ylim=(len(result.names) - 0.5, -0.5), yticks=[])
    ax.spines["left"].set_visible(False)
    return ax


def shares(run: Run, ax: Axes | None = None) -> Axes:
    """Draw two stacked bars: the share of each source in the evaluations, and in the cost. Returns the Axes."""
    result, ax = curves.as_result(run), ready_axes(ax)
    for row, parts in enumerate(curves.shares(result)):
        of_all = parts / (parts.sum() or 1.0)
        for source, (share, left) in enumerate(zip(of_all, np.cumsum(of_all) - of_all, strict=True)):
            label = None if row else literal(result.names[source])
            ax.barh(row, share, left=left, color=source_style(source)["color"], edgecolor="white", label=label)
            if share > 0.08:  # else the text does not fit
                middle: dict[str, Any] = {"ha": "center", "va": "center", "color": "white", "fontsize": "small"}
                ax.text(left + share / 2, row, percent(share, 1.0), **middle)
    ax.set(xlim=(0, 1), ylim=(1.6, -0.6), xlabel="share")
    ax.set_yticks([0, 1], ["evaluations", "cost"])
    ax.xaxis.set_major_formatter(lambda share, _: percent(share, 1.0))
    legend_above(ax)
    return ax


def correlation(run: Run, ax: Axes | None = None) -> Axes:
    """Draw the correlations between the sources over the distribution of the inputs, with 95 % intervals.

    Correlations whose interval is wider than 1 are "not known yet". Returns the Axes.
    """
    result, ax = curves.as_result(run), ready_axes(ax)
    R = curves.correlation(result)
    names = [literal(name) for name in result.names[: len(R.mean)]]
    ax.imshow(np.where(R.known, R.mean, 0.0), vmin=-1, vmax=1, cmap="PuOr")
    for i, j in np.ndindex(R.mean.shape):
        dark = R.known[i, j] and abs(R.mean[i, j]) > 0.6
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "small" if len(names) < 4 else "xx-small"}
        ax.text(j, i, "1" if i == j else "\n".join(R.parts(i, j)), color="white" if dark else "black", **look)
    ax.set_xticks(range(len(names)), names, rotation=30, ha="right")
    ax.set_yticks(range(len(names)), names)
    ax.set_xlabel("correlation, and its 95 % interval")
    ax.spines[:].set_visible(False)
    return ax


def costs(run: Run, ax: Axes | None = None, input: int | str | None = None) -> Axes | AxesArray:
    """Draw the expected cost of each source along an input (lines), and the cost of each evaluation (markers).

    Returns the Axes, or an array of one Axes per input if neither ``ax`` nor ``input`` is given and the run has several
    inputs.
    """
    result = curves.as_result(run)
    return _along(result, ax, _shown_inputs(result, ax, input), lambda ax, d: _costs(result, ax, d))


def _costs(result: Result, ax: Axes, d: int) -> None:
    t = curves.grid(result, d)
    expected = curves.costs(result, d, t)
    for source, values in enumerate(expected):
        draw_line(ax, t, values, source, literal(result.names[source]))
        of = [e for e in result.evaluations if e.source == source and e.cost > 0]
        draw_markers(ax, [e.x[d] for e in of], [e.cost for e in of], source, 4.0, alpha=0.7)
    if needs_log_scale(expected):
        ax.set_yscale("log")
    else:
        ax.set_ylim(0, None)
    ax.set_ylabel(literal(with_unit("cost of an evaluation", result.labels.unit(COST))))


def forecast(run: Run, ax: Axes | None = None, budget: float | None = None) -> Axes:
    """Draw the standard deviation of the integral against cost, so far and as expected until ``budget`` is spent.

    The default budget is twice the cost so far. With an ``error_cost``, a dot is where evaluations cease to pay.
    Returns the Axes.
    """
    result, ax = curves.as_result(run), ready_axes(ax)
    ax.plot(*curves.convergence(result).positive_std(), color="0.2", label="so far")
    ahead = curves.forecast(result, budget)
    if len(ahead):
        ax.plot(*ahead.T, color=source_style(1)["color"], linestyle="--", label="expected")
    if (end := curves.pays_until(result, ahead)) is not None:
        ax.plot(*end, color=source_style(1)["color"], marker="o", linestyle="none", label=PAYS)
    std = result.labels.integral_axis(result.output, std=True)
    ax.set(xlabel=literal(result.labels.axis(COST)), ylabel=literal(std), yscale="log")
    legend_above(ax)
    return ax


def residuals(run: Run, ax: Axes | None = None) -> Axes:
    """Draw the standardised leave-one-out residuals of each source, with their root mean square above them.

    A residual is an observation minus its prediction from all others, divided by the standard deviation of that
    prediction; the grey band is ± 2. Returns the Axes.
    """
    result, ax = curves.as_result(run), ready_axes(ax)
    left, rng = analysis.residuals(curves.integrator_of(result)), np.random.default_rng(0)
    ax.axhspan(-2, 2, color=FAINT, alpha=0.4, linewidth=0)
    ax.axhline(0, color="0.4", linewidth=0.8)
    for source, _ in enumerate(result.names):
        z = left.of(source)
        draw_markers(ax, source + rng.uniform(-0.25, 0.25, size=len(z)), z, source, marker_size(len(z)))
        rms = f"rms {math.sqrt(np.mean(z**2)):.2g}" if len(z) else "none"
        ax.text(source, 0.98, rms, transform=ax.get_xaxis_transform(), ha="center", va="top", fontsize="small")
    slanted: dict[str, Any] = {"rotation": 20, "ha": "right"} if len("".join(result.names)) > 24 else {}
    ax.set_xticks(range(len(result.names)), [literal(name) for name in result.names], **slanted)
    ax.set(ylabel="leave-one-out residual / std", ylim=(-left.span, 1.15 * left.span))
    ax.set_xlim(-0.6, len(result.names) - 0.4)
    return ax


def overview(run: Run) -> Figure:
    """Draw convergence, sources, rates, sequence, forecast and residuals in one figure of six panels.

    Sources and rates are drawn along the first input. Returns the Figure.
    """
    result = curves.as_result(run)
    figure, axes = panels(2, 3, width=14 / 3, height=4.0)
    drawn = {
        "The estimate against cost": convergence(result, axes[0, 0]),
        "What is known about the sources": sources(result, axes[0, 1], 0),
        "What the next evaluation is worth": rates(result, axes[0, 2], 0),
        "Which source was evaluated when": sequence(result, axes[1, 0]),
        "The error bar so far, and its forecast": forecast(result, axes[1, 1]),
        "Leave-one-out residuals": residuals(result, axes[1, 2]),
    }
    if result.labels.title:
        figure.suptitle(literal(result.labels.title), x=0.01, ha="left", fontweight="bold")
    figure.draw_without_rendering()
    for title, ax in drawn.items():
        titled(cast("Axes", ax), title)
    return figure


def outputs(run: Run, ax: Axes | None = None, at: ArrayLike | None = None) -> Axes:
    """Draw the means of several outputs with their 95 % intervals.

    A profile is a curve with its band, over ``at``, shape (M,), such as the heights or times of the outputs. By default
    three or more outputs whose names are all numbers are a profile over these numbers. Other outputs are points with
    bars, each relative to its mean, or to the spread of its values if that is larger. Returns the Axes.
    """
    seen = curves.several_outputs(curves.whole_result(run), at)
    if ax is None and seen.at is None:
        _, [[ax]] = panels(width=6.4, height=1.0 + 0.5 * len(seen.names))
    ax = ready_axes(ax)
    if seen.at is None:
        _draw_bars(ax, seen)
    else:
        _draw_profile(ax, seen, seen.at)
    return ax


def _draw_profile(ax: Axes, seen: curves.SeveralOutputs, at: Array) -> None:
    order = np.argsort(at)
    draw_line(ax, at[order], seen.mean[order], 0, "mean", (seen.low[order], seen.high[order]))
    ax.fill_between([], [], color=source_style(0)["color"], alpha=0.15, linewidth=0, label=BAND_NAME)
    ax.set(xlabel="output", ylabel="integral")
    legend_above(ax)


def _draw_bars(ax: Axes, seen: curves.SeveralOutputs) -> None:
    rows, unit = np.arange(len(seen.names)), seen.scale / 100
    lengths = np.array(curves.bars(seen.mean, (seen.low, seen.high))) / unit
    ax.axvline(0, color=FAINT, linewidth=0.8, zorder=0)
    look: dict[str, Any] = {"fmt": "o", "color": source_style(0)["color"], "markersize": 6, "capsize": 4}
    ax.errorbar(np.where(np.isfinite(seen.mean), 0.0, np.nan), rows, xerr=lengths, linewidth=2, **look)
    ax.set_yticks(rows, [literal(f"{name}\n{text}") for name, text in zip(seen.called, seen.texts, strict=True)])
    ax.set(ylim=(len(rows) - 0.5, -0.5), xlabel=f"95 % interval, in % of {seen.units}")


def refinement(run: Run, ax: Axes | None = None, knob: str | None = None) -> Axes | AxesArray:
    """Draw the integrals of sources with fidelities against a knob, with 95 % intervals, down to the limit at zero.

    With several knobs, all others are at their finest. The limit is drawn for runs with ``limit=True``.
    Returns the Axes, or an array of one Axes per knob if neither ``ax`` nor ``knob`` is given and there are several.
    """
    result = curves.as_result(run)
    seen = {curve.knob: curve for curve in curves.refinements(result)}
    if not seen:
        raise ValueError("there are no sources with a fidelity, or none was observed yet: see amsbq.levels")
    if knob is not None and knob not in seen:
        raise ValueError(f"knob must be one of {', '.join(seen)}, got {brief(knob)}")
    shown = list(seen) if knob is None and ax is None else [knob or next(iter(seen))]
    drawn = np.array([ready_axes(ax)] if len(shown) == 1 else panels(1, len(shown))[1].flat)
    for panel, name in zip(drawn, shown, strict=True):
        _refinement(result, panel, seen[name])
    return drawn[0] if len(shown) == 1 else _as_axes_array(drawn)


def _refinement(result: Result, ax: Axes, seen: curves.RefinementCurve) -> None:
    ax.fill_between(seen.sizes, seen.low, seen.high, color=FAINT, alpha=0.4, linewidth=0, label=BAND_NAME)
    ax.plot(seen.sizes, seen.mean, color="0.4", linewidth=1)
    for size, source, mean, *ends in zip(seen.sizes, seen.sources, seen.mean, seen.low, seen.high, strict=True):
        style = source_style(max(int(source), 0))
        look: dict[str, Any] = {"fmt": "*", "color": "black", "markersize": 11, "label": "limit"}
        if source >= 0:
            look = {"fmt": style["marker"], "color": style["color"], "label": literal(result.names[source])}
        ax.errorbar([size], [mean], yerr=[[mean - ends[0]], [ends[1] - mean]], capsize=4, **look)
    ax.set(xlabel=literal(f"fidelity of {seen.knob}"), ylabel=literal(result.labels.integral_axis(result.output)))
    ax.text(0.5, 0.02, literal(seen.caption), transform=ax.transAxes, ha="center", fontsize="small")
    ax.set_xlim(0 if seen.sources[0] >= 0 else -0.03 * seen.sizes[-1], None)
    legend_above(ax)


def levels(run: Run, ax: Axes | None = None) -> Axes:
    """Draw how often each level of two knobs was evaluated: the finest is at the lower left.

    Returns the Axes.
    """
    result, ax = curves.as_result(run), ready_axes(ax)
    seen = curves.level_grid(result)
    if seen is None:
        raise ValueError("the sources are not levels of two knobs: see amsbq.levels")
    ax.imshow(np.where(np.isnan(seen.counts), np.nan, seen.shades), vmin=0, vmax=1, cmap="Blues", origin="lower")
    for (row, column), count in np.ndenumerate(seen.counts):
        if not np.isnan(count):
            colour = "white" if seen.shades[row, column] > 0.6 else "black"
            ax.text(column, row, f"{count:.0f}", color=colour, ha="center", va="center", fontsize="small")
    for axis, knob, ticks in zip((ax.xaxis, ax.yaxis), seen.knobs, seen.ticks, strict=True):
        axis.set_ticks(range(len(ticks)), [literal(tick) for tick in ticks])
        axis.set_label_text(literal(knob))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def distribution(run: Run, ax: Axes | None = None) -> Axes:
    """Draw the density of the primary source's output with its band, and below it the 5, 50 and 95 % quantiles.

    Returns the Axes.
    """
    result, ax = curves.as_result(run), ready_axes(ax)
    curve, colour = curves.output_curve(result), source_style(0)["color"]
    ax.fill_between(curve.t, curve.low, curve.high, color=FAINT, alpha=0.5, linewidth=0, label=BAND_NAME)
    ax.plot(curve.t, curve.density, color=colour, label="density")
    means, names = curve.quantiles.mean, ", ".join(f"{100 * p:.0f}" for p in curves.SHOWN_QUANTILES)
    at = np.full(len(means), -0.06 * curve.density.max())
    look: dict[str, Any] = {"fmt": "o", "color": "0.2", "markersize": 4, "capsize": 3}
    ax.errorbar(means, at, xerr=curves.bars(means, curve.quantiles.interval()), label=f"{names} % quantiles", **look)
    output = result.output or OUTPUT
    ax.set(xlabel=literal(result.labels.axis(output, f"{output} of {result.names[0]}")), ylabel="density")
    legend_above(ax)
    return ax


def sensitivity(run: Run, ax: Axes | None = None) -> Axes:
    """Draw the share of the variance that each input explains, by itself and with all interactions (Sobol' indices).

    Returns the Axes.
    """
    result, ax = curves.as_result(run), ready_axes(ax)
    found = result.sensitivity()
    rows = np.arange(len(found.names))
    for offset, indices, name, source in (
        (-0.2, found.first, "by itself", 0),
        (0.2, found.total, "with interactions", 1),
    ):
        bars = curves.bars(indices.mean, indices.interval())
        ax.barh(rows + offset, indices.mean, height=0.36, color=source_style(source)["color"], alpha=0.8, label=name)
        ax.errorbar(indices.mean, rows + offset, xerr=bars, fmt="none", color="0.2", capsize=2)
    ax.set_yticks(rows, [literal(result.labels.label(name)) for name in found.names])
    ax.invert_yaxis()
    ax.set(xlabel="share of the variance of the output", xlim=(0, 1))
    legend_above(ax)
    return ax


def compare(runs: Mapping[str, Run]) -> Figure:
    """Draw several runs: their estimates and bands against cost, and next to them the final estimates.

    Parameters
    ----------
    runs : dictionary of results, integrators or paths of journals
        The runs, by their names in the figure; they may be in progress. Runs with several outputs are drawn for each
        output; give ``result["peak"]`` for one of them.

    Returns
    -------
    Figure
        Two panels for each output. Bands and bars are 95 % intervals; the first ones may extend beyond the edges.
    """
    groups: dict[str, dict[str, Result]] = {}
    for name, run in runs.items():
        whole = curves.whole_result(run)
        for result in [whole] if whole.outputs is None else [whole[output] for output in whole.outputs]:
            groups.setdefault(result.output, {})[name] = result
    height = max(3.4, 1.4 + 0.35 * max(len(group) for group in groups.values()))
    figure, axes = panels(len(groups), 2, width=5.0, height=height, sharey=False)
    for (output, group), (left, right) in zip(groups.items(), axes, strict=True):
        labels = next(iter(group.values())).labels
        _draw_group(left, right, group, literal(labels.integral_axis(output)), list(runs))
    return figure


def _draw_group(left: Axes, right: Axes, results: Mapping[str, Result], integral: str, runs: list[str]) -> None:
    """Draw the runs of one output: estimates against cost on the left, final estimates on the right."""
    limits = []
    for number, (name, result) in enumerate(results.items()):
        style = runs.index(name)
        seen = curves.convergence(result)
        cost, low, high = seen.band()
        draw_line(left, cost, seen.mean[seen.known], style, literal(name), (low, high))
        if not math.isnan(result.mean):
            ends = np.array([result.interval(0.95)]).T
            right.plot(ends, [number, number], color=left.lines[-1].get_color(), linewidth=2)
            draw_markers(right, [result.mean], [number], style, 7)
            limits.append(seen.limits())
    left.set(xlabel=literal(next(iter(results.values())).labels.axis(COST)), ylabel=integral)
    if limits:
        left.set_ylim(min(bottom for bottom, _ in limits), max(top for _, top in limits))
    legend_above(left)
    right.set_yticks(range(len(results)), [literal(name) for name in results])
    right.set(ylim=(len(results) - 0.5, -0.5), xlabel=f"{integral}, and its 95 % interval")


def _shown_inputs(result: Result, ax: Axes | None, input: int | str | None) -> list[int]:
    """Return the inputs to draw: the given one, else the first on the user's axes, or all on new axes."""
    if input is not None:
        return [curves.known_input(result, input)]
    return [0] if ax is not None else list(range(len(result.inputs)))


def _along(result: Result, ax: Axes | None, inputs: list[int], draw: Callable[[Axes, int], None]) -> Axes | AxesArray:
    """Call ``draw`` for one input on ``ax``, or for several on panels of a new figure; return the axes."""
    n, columns = len(inputs), min(len(inputs), 3)
    drawn = np.array([ready_axes(ax)] if n == 1 else panels(math.ceil(n / columns), columns)[1].flat)
    for spare in drawn[n:]:
        spare.remove()
    for panel, d in zip(drawn, inputs, strict=False):
        draw(panel, d)
        panel.set_xlabel(literal(result.labels.axis(result.inputs[d])))
        if panel is drawn[0]:  # one legend is enough
            legend_above(panel)
    return drawn[0] if n == 1 else _as_axes_array(drawn[:n])


def _as_axes_array(axes: Any) -> AxesArray:
    made: AxesArray = axes.view(AxesArray)
    return made
