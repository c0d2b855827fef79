"""Colours, lines, markers and words that the matplotlib and the Plotly figures share."""

from __future__ import annotations

from typing import TypedDict

from ..common.validation import Array

GREY = "#808891"  #: whatever belongs to no source; readable on a white and on a black ground

DENSE = 150  #: evaluations above which markers of the usual size would hide each other

#: what is gained per cost, by the name of the acquisition
RATE_NAMES = {"mi": "mutual information", "ivr": "variance reduction"}


#: what shaded bands are called
BAND_NAME = "95 % interval"


def effect_name(name: str, known: bool) -> str:
    """Return what the curve of a source is called, with a remark if it is not known yet."""
    return name if known else f"{name} (not known yet)"


class SourceStyle(TypedDict):
    """How a source is drawn: its colour, line and marker as matplotlib calls them, line and marker as Plotly does."""

    color: str
    linestyle: str | tuple[int, tuple[int, ...]]
    marker: str
    dash: str
    symbol: str


#: colours of Okabe and Ito, which differ for colour-blind readers and in brightness
SOURCE_STYLES: list[SourceStyle] = [
    {"color": "#0072B2", "linestyle": "-", "marker": "o", "dash": "solid", "symbol": "circle"},
    {"color": "#D55E00", "linestyle": "--", "marker": "s", "dash": "dash", "symbol": "square"},
    {"color": "#009E73", "linestyle": "-.", "marker": "^", "dash": "dashdot", "symbol": "triangle-up"},
    {"color": "#CC79A7", "linestyle": ":", "marker": "D", "dash": "dot", "symbol": "diamond"},
    {"color": "#E69F00", "linestyle": (0, (6, 2)), "marker": "v", "dash": "longdash", "symbol": "triangle-down"},
    {"color": "#56B4E9", "linestyle": (0, (3, 1, 1, 1)), "marker": "P", "dash": "longdashdot", "symbol": "cross"},
]


def source_style(source: int) -> SourceStyle:
    """Return the style of a source by its number; they repeat after the sixth."""
    return SOURCE_STYLES[source % len(SOURCE_STYLES)]


def needs_log_scale(values: Array) -> bool:
    """Return whether positive values differ so much that a linear axis would hide the smaller ones."""
    return bool(values.max() > 5 * values.min() > 0)
