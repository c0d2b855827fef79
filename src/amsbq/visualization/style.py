"""Colours, lines, markers and words that the matplotlib and the Plotly figures share."""

from __future__ import annotations

from typing import TypedDict

from ..common.validation import Array

GREY = "#808891"  #: colour of what belongs to no source; legible on white and on black

DENSE = 150  #: number of evaluations above which markers of the usual size would hide each other

#: names of the gain per cost, by acquisition
RATE_NAMES = {"mi": "mutual information", "ivr": "variance reduction"}


#: name of shaded bands
BAND_NAME = "95 % interval"
PAYS = "evaluations pay up to here"


def effect_name(name: str, known: bool) -> str:
    """Return the name of a source's curve, with a remark if the curve is not known yet."""
    return name if known else f"{name} (not known yet)"


class SourceStyle(TypedDict):
    """Style of a source: its colour, line and marker in matplotlib's terms, line and marker in Plotly's."""

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
