"""Matplotlib figures of a run: the estimate, the output, the sources, the costs, the residuals, the next evaluation.

    result = amsbq.integrate(...)
    amsbq.plots.convergence(result)
    amsbq.plots.overview("run.jsonl").savefig("run.png")

Common arguments:

- ``run``: a result, an integrator, or the path of a journal; the run may be in progress.
- ``ax``: the matplotlib Axes to draw on; a new figure by default.
- ``input``: the number or the name of an input. Without ``ax`` and ``input``, functions with this argument draw a panel
  for each input and, if there are several, return an array of Axes.

With several outputs, `outputs` draws all of them, and every other function the one that is farthest from its goal: pass
``result["peak"]`` for another one. Each source has its own colour, line style and marker. Bands are 95 % intervals.
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
