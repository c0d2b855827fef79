"""True integrals: computed once by quadrature, kept in a ``truths.json``, and recomputed by ``--truths``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any

from .problem import Moments, Problem

FILE = Path(__file__).with_name("truths.json")
YARDSTICKS = Path(__file__).parents[1] / "yardsticks" / "truths.json"  #: truths of published problems


@cache
def _stored() -> dict[str, dict[str, Any]]:
    return json.loads(FILE.read_text()) | json.loads(YARDSTICKS.read_text())


def truths_of(problem: Problem) -> list[Moments]:
    """Return mean and standard deviation of each output of the primary source, as stored."""
    known = _stored()[problem.key]
    if known["title"] != problem.title:
        raise ValueError(f"{problem.key} is not the stored problem: run python -m benchmarks.arena --truths")
    return [Moments(*numbers) for numbers in known["moments"]]


def truth_of(problem: Problem) -> Moments:
    """Return mean and standard deviation of a primary source with one output."""
    [truth] = truths_of(problem)
    return truth


def compute_all(problems: Sequence[Problem], families: Sequence[str] = (), file: Path = FILE) -> None:
    """Compute the truths of some families, or missing ones, and write those of all problems to the file."""
    known = json.loads(file.read_text()) if file.exists() else {}
    chosen = [p for p in problems if p.family in families or not (families or p.key in known)]
    for problem in chosen:
        found = problem.moments()
        listed = [found] if isinstance(found, Moments) else found
        known[problem.key] = {"title": problem.title, "moments": [astuple(moments) for moments in listed]}
        for moments in listed:
            print(f"{problem.key:20} {moments.mean:+.12g} ± {moments.std:.6g}, error {moments.error:.1g}", flush=True)
    order = [problem.key for problem in problems]
    lines = [f" {json.dumps(key)}: {json.dumps(known[key], ensure_ascii=False)}" for key in order if key in known]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")
