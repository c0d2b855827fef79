"""Badges of the README, made of what pyproject.toml says: ``python docs/badges.py`` writes docs/badges.svg.

They need no network, and a test keeps them up to date.
"""

from __future__ import annotations

import re
import tomllib
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "badges.svg"
LETTER, HEIGHT = 6.6, 20  # pixels


def facts(project: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what badges say, each in two parts."""
    versions = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    typed = "mypy strict" if "Typing :: Typed" in project["classifiers"] else "no"
    return [("Python", f"{versions[0]} to {versions[-1]}"), ("licence", project["license"]), ("typed", typed)]


def badges(project: dict[str, Any]) -> str:
    """Return the badges as one SVG."""
    parts, x = [], 0.0
    for name, value in facts(project):
        for text, colour in ((name, "#4b535c"), (value, "#0060a0")):
            width = LETTER * len(text) + 12
            parts.append(f'<rect x="{x:g}" width="{width:g}" height="{HEIGHT}" fill="{colour}"/>')
            parts.append(f'<text x="{x + width / 2:g}" y="14" text-anchor="middle">{escape(text)}</text>')
            x = round(x + width, 1)
        x += 8
    said = escape(", ".join(" ".join(pair) for pair in facts(project)))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{x - 8:g}" height="{HEIGHT}" role="img" aria-label="{said}">'
    )
    style = '<g font-family="Verdana, DejaVu Sans, sans-serif" font-size="11" fill="#ffffff">'
    return "\n".join([head, style, *parts, "</g>", "</svg>", ""])


def project() -> dict[str, Any]:
    """Return what pyproject.toml says of the project."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return found


if __name__ == "__main__":
    PICTURE.write_text(badges(project()), encoding="utf-8")
