"""The progress of a run in a notebook: one figure, updated in place."""

from __future__ import annotations

import io
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..common.messages import collected_warnings, warn
from ..design.labels import COST
from ..execution.integrator import Integrator
from ..execution.progress import estimate_text, in_notebook
from ..results.result import Result, result_of
from .axes import literal, percent
from .curves import shares
from .plots import convergence
from .style import source_style


@dataclass(frozen=True)
class NotebookSettings:
    """Frequency and size of the figure."""

    #: largest share of the time that drawing may take
    share: float = 0.2
    #: width and height in inches, and dots per inch: the width of a notebook, sharp on most screens
    size: tuple[float, float] = (9.0, 3.4)
    dpi: int = 110


SETTINGS = NotebookSettings()


@contextmanager
def notebook_progress(
    it: Integrator, wanted: bool | Callable[[Integrator], None] | None
) -> Iterator[bool | Callable[[Integrator], None] | None]:
    """Yield what shows progress: ``wanted`` or, if it is True in a notebook with matplotlib, a live figure."""
    if wanted is not True or not in_notebook():
        yield wanted
        return
    try:
        figure = LiveFigure()
    except ImportError:
        yield wanted
        return
    try:
        yield figure
    finally:
        figure.draw(it)


class LiveFigure:
    """A figure of a run in the output of a notebook's cell: estimate and interval against cost, and the sources.

    It is called after every event, and redrawn as often as its `SETTINGS` allow.
    """

    def __init__(self) -> None:
        from IPython.display import Image, display
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self._image: Any = Image
        self._display: Any = display
        self._figure, self._canvas = Figure, FigureCanvasAgg
        self._handle: Any = None
        self._again = 0.0  # when it may be drawn again

    def __call__(self, it: Integrator) -> None:
        """Draw the state of a run, unless drawing has taken too large a share of the time."""
        if time.monotonic() >= self._again:
            self.draw(it)

    def draw(self, it: Integrator) -> None:
        """Draw the state of a run in place of what was drawn before; an error is reported as a warning, once."""
        if math.isinf(self._again):
            return
        try:
            self._update(it)
        except Exception as error:  # a figure must not end a run
            self._again = math.inf
            warn(f"the figure of the progress cannot be drawn: {error}")

    def _update(self, it: Integrator) -> None:
        start = time.monotonic()
        picture = self._image(data=self._png(it), format="png", width=round(72 * 1.25 * SETTINGS.size[0]))
        if self._handle is None:
            self._handle = self._display(picture, display_id=True)
        else:
            self._handle.update(picture)
        now = time.monotonic()
        self._again = now + (now - start) * (1 / SETTINGS.share - 1)

    def _png(self, it: Integrator) -> bytes:
        figure = self._figure(figsize=SETTINGS.size, layout="constrained")
        canvas = self._canvas(figure)
        left, right = figure.subplots(1, 2, width_ratios=[2.2, 1.0])
        with collected_warnings():  # the result issues them once
            result = result_of(it, it.stopped or "")
        convergence(result, left)
        self._draw_sources(right, result)
        labels = it.problem.labels
        left_over = "" if math.isinf(it.budget) else f", left {it.budget - it.spent:.4g}"
        spent = labels.measured(f"spent {it.spent:.4g}{left_over}", COST)
        pending = f", {result.pending} pending" if result.pending else ""
        titled = f"{labels.title}: " if labels.title else ""
        figure.suptitle(
            literal(f"{titled}{estimate_text(it)}") + f"  ·  {spent}{pending}", x=0.01, ha="left", fontsize="medium"
        )
        written = io.BytesIO()
        canvas.figure.savefig(written, format="png", dpi=SETTINGS.dpi)
        return written.getvalue()

    @staticmethod
    def _draw_sources(ax: Any, result: Result) -> None:
        """Draw a bar for the cost of each source, with the number of its evaluations."""
        counts, paid = shares(result)
        for source, name in enumerate(result.names):
            ax.barh(source, paid[source], height=0.3, color=source_style(source)["color"])
            made = f"{literal(name)}: {counts[source]:.0f} evaluations, {percent(paid[source], paid.sum())} of the cost"
            ax.text(0.0, source - 0.2, made, fontsize="small", va="bottom")
        ax.set(xlabel=literal(result.labels.axis(COST)), ylim=(len(result.names) - 0.5, -0.8), yticks=[])
        ax.spines[["top", "right", "left"]].set_visible(False)
