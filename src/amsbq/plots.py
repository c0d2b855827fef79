"""Matplotlib figures of a run: the estimate, the output, the sources, the costs, the residuals, the next evaluation.

    result = amsbq.integrate(...)
    amsbq.plots.convergence(result)
    amsbq.plots.overview("run.jsonl").savefig("run.png")

Arguments that the functions share:

- ``run``: a result, an integrator, or the path of a journal; the run may be in progress.
- ``ax``: the matplotlib Axes to draw on; a new figure by default.
- ``input``: the number or the name of an input. Without ``ax`` and ``input``, functions that have it draw a panel for
  each input; they return an array of Axes then, if there are several.

Of several outputs, `outputs` draws all, and each other function the one that is furthest from its goal: give
``result["peak"]`` for another one. Each source has a colour, line and marker of its own. Bands are 95 % intervals.
"""

from .visualization.plots import (
    compare,
    convergence,
    correlation,
    costs,
    distribution,
    forecast,
    levels,
    outputs,
    overview,
    rates,
    refinement,
    residuals,
    sensitivity,
    sequence,
    shares,
    slices,
    sources,
)

__all__ = [
    "compare",
    "convergence",
    "correlation",
    "costs",
    "distribution",
    "forecast",
    "levels",
    "outputs",
    "overview",
    "rates",
    "refinement",
    "residuals",
    "sensitivity",
    "sequence",
    "shares",
    "slices",
    "sources",
]
