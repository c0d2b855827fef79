"""True integrals: computed once by quadrature, kept in ``truths.json``, and recomputed by ``--truths``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

from .families import problems
from .problem import Moments, Problem

FILE = Path(__file__).with_name("truths.json")


@cache
def _stored() -> dict[str, dict[str, float]]:
    return json.loads(FILE.read_text())


def truth_of(problem: Problem) -> Moments:
    """Return mean and standard deviation of the primary source, as stored."""
    known = dict(_stored()[problem.key])
    if known.pop("title") != problem.title:
        raise ValueError(f"{problem.key} is not the stored problem: run python -m benchmarks.arena --truths")
    return Moments(**known)


def compute_all(families: Sequence[str] = ()) -> None:
    """Compute the truths of all problems, or those of some families, and write them to the file."""
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    chosen = [problem for problem in problems() if not families or problem.family in families]
    for problem in chosen:
        moments = problem.moments()
        known[problem.key] = {"title": problem.title, **asdict(moments)}
        print(f"{problem.key:20} {moments.mean:+.12g} ± {moments.std:.6g}, error {moments.error:.1g}", flush=True)
    order = [problem.key for problem in problems()]
    table = {key: known[key] for key in order if key in known}
    FILE.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n")
