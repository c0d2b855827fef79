"""Pictures of a run, drawn by matplotlib: the answer, the evaluations, the money, and what to do next."""

from .visualization.plots import (
    convergence,
    correlation,
    costs,
    forecast,
    overview,
    rates,
    residuals,
    sequence,
    shares,
    slices,
    sources,
)

__all__ = [
    "convergence",
    "correlation",
    "costs",
    "forecast",
    "overview",
    "rates",
    "residuals",
    "sequence",
    "shares",
    "slices",
    "sources",
]
