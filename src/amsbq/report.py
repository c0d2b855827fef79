"""The report: one HTML file with the answer, diagnostics, interactive figures and every evaluation of a run."""

from .visualization.report import report

__all__ = ["report"]
