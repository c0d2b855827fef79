"""Parts of matplotlib figures: panels, legends, and the lines and markers of a source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from ..common.validation import Array
from .style import DENSE, source_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FAINT = "0.75"  #: light grey, for bands that belong to no source


def panels(
    rows: int = 1, columns: int = 1, width: float = 4.2, height: float = 3.2, framed: bool = False, **options: Any
) -> tuple[Figure, Any]:
    """Return a new figure, and its axes as an array of shape (rows, columns).

    ``width`` and ``height`` are those of one panel, in inches; without ``framed`` only the left and the lower edge of a
    panel are drawn. ``options`` go to `matplotlib.pyplot.subplots`.
    """
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


def ready_axes(ax: Axes | None) -> Axes:
    """Return ``ax``, or the axes of a new figure if it is None, without the upper and the right edge."""
    if ax is None:
        _, [[ax]] = panels(width=6.4, height=4.0)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def literal(name: str) -> str:
    """Escape a name so that matplotlib shows it unchanged: without mathematics, not hidden by an underscore."""
    escaped = name.replace("$", r"\$")
    return f"\u200b{escaped}" if escaped.startswith("_") else escaped


def draw_line(
    ax: Axes, t: Array, values: Array, source: int, label: str, band: tuple[Array, Array] | None = None
) -> None:
    """Draw a curve of a source, and its band, shaded between (lower, upper), if there is one."""
    style = source_style(source)
    if band is not None:
        ax.fill_between(t, *band, color=style["color"], alpha=0.15, linewidth=0)
    ax.plot(t, values, color=style["color"], linestyle=style["linestyle"], label=label)


def draw_markers(ax: Axes, x: ArrayLike, y: ArrayLike, source: int, size: float, **more: Any) -> None:
    """Draw markers of a source; ``size`` is in points, ``more`` goes to `Axes.plot`."""
    style = source_style(source)
    edge = {"markeredgecolor": "white", "markeredgewidth": 0.4 if size > 3 else 0.0}
    look = {"color": style["color"], "marker": style["marker"], "linestyle": "none", "markersize": size}
    ax.plot(x, y, **{**look, **edge, **more})


def marker_size(n: int) -> float:
    """Return the marker size, in points, at which n markers do not hide each other."""
    return 5.0 if n <= DENSE else 2.5


def draw_density(ax: Axes, t: Array, density: Array | None) -> None:
    """Shade the density of an input in the lowest fifth of the axes; without a density do nothing."""
    if density is None:
        return
    behind = ax.twinx()
    style: dict[str, Any] = {"color": "0.5", "alpha": 0.18, "linewidth": 0}
    behind.fill_between(t, density, zorder=0, **style)
    ax.fill_between([], [], label="distribution of the input", **style)
    behind.set(ylim=(0, 5 * density.max()), yticks=[])
    behind.spines[:].set_visible(False)
    ax.set_zorder(behind.get_zorder() + 1)
    ax.patch.set_visible(False)


def legend_above(ax: Axes) -> None:
    """Draw the legend above the axes, where it hides no data, in as many columns as fit."""
    handles, labels = ax.get_legend_handles_labels()
    width = ax.get_window_extent().width / ax.get_figure(root=True).dpi if labels else 0.0  # type: ignore[union-attr]
    columns = int(width / (0.55 + 0.07 * max(map(len, labels), default=1)))  # inches of a handle and of a letter
    at: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "borderaxespad": 0.2}
    ax.legend(handles, labels, ncols=min(max(columns, 1), 4), frameon=False, fontsize="small", **at)


def titled(ax: Axes, title: str) -> None:
    """Write a title above the axes, and above their legend if there is one; the figure must have been laid out."""
    legend, dpi = ax.get_legend(), ax.get_figure(root=True).dpi  # type: ignore[union-attr]
    height = 0.0 if legend is None else 72 * legend.get_window_extent().height / dpi  # in points
    ax.set_title(title, loc="left", fontsize="medium", fontweight="bold", pad=6 + height)


def percent(part: float, whole: float) -> str:
    """Return a share in whole percent, such as "25 %"; 0 % of nothing."""
    return f"{100 * part / (whole or 1):.0f} %"
