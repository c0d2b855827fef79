"""One HTML page that shows a run."""

from .visualization.report import report

__all__ = ["report"]
