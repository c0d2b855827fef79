"""HTML of objects for notebooks: tables, and small pictures as SVG. All text is escaped; colours follow the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import ArrayLike

from .validation import Array


@dataclass(frozen=True)
class MarkupSettings:
    """Sizes in pixels."""

    curve: tuple[int, int] = (260, 70)  # width and height of a curve: three lines of text
    histogram: tuple[int, int] = (120, 24)  # width and height of a histogram: one line of a table
    margin: int = 3  # so that lines are not cut off


SETTINGS = MarkupSettings()


class Picture(str):
    """SVG made by this module: the only text that is not escaped."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of strings and pictures."""
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    lines = "".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table>"


def _cell(text: str) -> str:
    return text if isinstance(text, Picture) else escape(text)


def curve(x: ArrayLike, y: ArrayLike, band: tuple[Array, Array] | None = None, label: str = "") -> Picture:
    """Return a picture of y against x, shape (n,) each, with a band (lower, upper) if there is one.

    The vertical axis spans y and the nearby part of the band.
    """
    width, height = SETTINGS.curve
    t, v = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    shapes = []
    bottom, top = float(v.min()), float(v.max())
    if band is not None:
        bottom, top = min(bottom, float(band[0][-1])), max(top, float(band[1][-1]))
        edges = np.concatenate([t, t[::-1]]), np.concatenate([band[0], band[1][::-1]]).clip(bottom, top)
        shapes.append(f'<polygon points="{_points(*edges, t, (bottom, top))}" fill="currentColor" opacity="0.15"/>')
    line = _points(t, v, t, (bottom, top))
    shapes.append(f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="1.5"/>')
    return _svg(width, height, label, shapes)


def _points(x: Array, y: Array, across: Array, up: tuple[float, float]) -> str:
    """Return points of a line in pixels; ``across`` and ``up`` span the axes."""
    width, height = (size - 2 * SETTINGS.margin for size in SETTINGS.curve)
    left, right = float(across.min()), float(across.max())
    px = SETTINGS.margin + width * (x - left) / ((right - left) or 1.0)
    py = SETTINGS.margin + height * (up[1] - y) / ((up[1] - up[0]) or 1.0)
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(px, py, strict=True))


def histogram(values: ArrayLike, bins: int = 24, label: str = "") -> Picture:
    """Return a picture of the histogram of values, shape (n,)."""
    counts, _ = np.histogram(np.asarray(values, dtype=float), bins)
    width, height = SETTINGS.histogram
    step, most = width / bins, max(int(counts.max()), 1)
    bars = [
        f'<rect x="{i * step:.1f}" y="{height - height * n / most:.1f}" width="{step:.1f}" '
        f'height="{height * n / most:.1f}" fill="currentColor" opacity="0.6"/>'
        for i, n in enumerate(counts)
        if n
    ]
    return _svg(width, height, label, bars)


def share(part: float, label: str) -> Picture:
    """Return a bar of which a share between 0 and 1 is filled."""
    width, height = SETTINGS.curve[0], 8
    filled = f'<rect width="{width * min(max(part, 0.0), 1.0):.1f}" height="{height}" rx="4" fill="currentColor"/>'
    whole = f'<rect width="{width}" height="{height}" rx="4" fill="currentColor" opacity="0.15"/>'
    return _svg(width, height, label, [whole, filled])


def _svg(width: int, height: int, label: str, shapes: Sequence[str]) -> Picture:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return Picture(f'<svg {size} role="img" aria-label="{escape(label)}">{"".join(shapes)}</svg>')
