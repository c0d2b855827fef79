"""The report: the part of docs/arena.md between two marks, and its figures, from the stored results."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from . import figures, tables
from .families import MAKERS, problems
from .split import HELD_OUT
from .store import Record, compact, digest, load
from .tables import HALVES, OURS, Results

DOCS = Path(__file__).parents[2] / "docs"
BEGIN, END = "<!-- results: made by python -m benchmarks.arena --report -->\n", "<!-- end of results -->"


def summary(jobs: Collection[tuple[str, str, int]]) -> str:
    """Return the contests and the error bars of some runs as text for a terminal."""
    records = [record for key, record in load().items() if key in jobs]
    results = Results.of(records)
    failed = "\n".join(f"{r.problem} by {r.method}: {r.failed}" for r in records if r.failed)
    found = tables.contests(results)
    parts = [tables.winners(found), tables.losses(found), tables.error_bars(results), failed]
    return "\n\n".join(part for part in parts if part)


def page(records: Collection[Record], stale: int) -> str:
    """Return the results as Markdown; ``stale`` of them are by older code."""
    results = Results.of(records)
    found = tables.contests(results)
    failed = [record for record in records if record.failed]
    seeds = max((record.seed for record in records), default=-1) + 1
    size = (
        f"{len(records)} runs on {len({r.problem for r in records})} of {len(problems())} problems, with up to {seeds} "
        f"seeds; {stale} of them by older code than this."
    )
    held_out = ", ".join(HELD_OUT)
    parts = [
        "## Who wins",
        f"{size} Held out as a whole: {held_out}.",
        tables.losses(found),
        "The typical error is the geometric mean over problems of the RMSE over seeds, in standard deviations of the "
        "output. The smaller one of each pair is bold. The best peer is chosen afterwards, which favours the peers.",
        tables.winners(found),
        "## Error bars",
        tables.error_bars(results),
        "A calibrated Gaussian has |error|/std of 0.67, 1.28 and 1.96 at 50, 80 and 95 %.",
        "![Coverage against nominal level](arena/coverage.svg)",
        "## Certified cost",
        "Whoever waits until the 95 % interval is narrow enough stops at this cost. A certificate is wrong if that "
        "interval does not hold the truth.",
        tables.certified(results),
        *(f"![Certified accuracy against cost, {half}](arena/certified-{half}.svg)" for half in HALVES),
        "## By family",
    ]
    for name in MAKERS:
        parts += [f"### {name}", tables.of_family(results, name)]
        if results.of_family(name).of_method(OURS).records:
            parts.append(f"![Error against cost: {name}](arena/{name}.svg)")
    if failed:
        lines = [f"- {r.problem} by {r.method}, seed {r.seed}: {r.failed}" for r in failed]
        parts += ["### Failed runs", "\n".join(lines)]
    return "\n\n".join(parts) + "\n\n"


def write(folder: Path = DOCS) -> None:
    """Write the results into docs/arena.md, and the figures beside it."""
    known = load()
    records = list(known.values())
    stale = sum(record.digest != digest(record.method, record.problem) for record in records)
    results, drawn = Results.of(records), folder / "arena"
    figures.coverage(results, drawn / "coverage.svg")
    for half in HALVES:
        figures.certified(results, half, drawn / f"certified-{half}.svg")
    for name in MAKERS:
        if results.of_family(name).of_method(OURS).records:
            figures.error_against_cost(results, name, drawn / f"{name}.svg")
    file = folder / "arena.md"
    text = file.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    file.write_text(before + BEGIN + "\n" + page(records, stale) + END + after, encoding="utf-8")
    compact(records)
