"""style."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass


#: colours that can be told apart by everybody, and in grey (after Okabe and Ito), each with a line and a marker
LOOKS: list[dict[str, Any]] = [
    {"color": "#0072B2", "linestyle": "-", "marker": "o"},
    {"color": "#D55E00", "linestyle": "--", "marker": "s"},
    {"color": "#009E73", "linestyle": "-.", "marker": "^"},
    {"color": "#CC79A7", "linestyle": ":", "marker": "D"},
    {"color": "#E69F00", "linestyle": (0, (6, 2)), "marker": "v"},
    {"color": "#56B4E9", "linestyle": (0, (3, 1, 1, 1)), "marker": "P"},
]


FAINT = "0.75"


DENSE = 150  #: evaluations above which markers would hide each other


RATES = {"mi": "mutual information", "ivr": "variance reduction"}


def look(source: int) -> dict[str, Any]:
    """Of a source: a colour, a line and a marker."""
    return LOOKS[source % len(LOOKS)]
