"""The report: the parts of docs/arena.md between marks, and its figures, from the stored results."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from . import figures, members, tables
from .families import MAKERS, problems
from .split import HELD_OUT
from .store import Record, compact, digest, load
from .tables import HALVES, OURS, Results

DOCS = Path(__file__).parents[2] / "docs"
PARTS = ("winners", "results")  # of the page that are made here


def summary(jobs: Collection[tuple[str, str, int]]) -> str:
    """Return the contests and the error bars of some runs as text for a terminal."""
    records = [record for key, record in load().items() if key in jobs]
    results = Results.of(records)
    failed = "\n".join(f"{r.problem} by {r.method}: {r.failed}" for r in records if r.failed)
    found = tables.contests(results)
    parts = [tables.winners(found), tables.losses(found), tables.error_bars(results), failed]
    return "\n\n".join(part for part in parts if part)


def marks(part: str) -> tuple[str, str]:
    """Return the lines between which a part of the page stands."""
    return f"<!-- {part}: made by python -m benchmarks.arena --report -->\n", f"<!-- end of {part} -->"


def winners(records: Collection[Record], stale: int) -> str:
    """Return who wins, as Markdown; ``stale`` of the records are by older code."""
    found = tables.contests(Results.of(records))
    seeds = max((record.seed for record in records), default=-1) + 1
    size = (
        f"{len(records)} runs on {len({r.problem for r in records})} of {len(problems())} problems, at most {seeds} "
        f"seed{'s' * (seeds != 1)} each; {stale} of them by older code than this."
    )
    held_out = ", ".join(HELD_OUT)
    parts = [
        "## Who wins",
        f"{size} Held out as a whole: {held_out}.",
        tables.losses(found),
        "The typical error is the geometric mean over problems of the RMSE over seeds, in standard deviations of the "
        "output. The smaller one of each pair is bold. The best peer is chosen afterwards, which favours the peers.",
        tables.winners(found),
    ]
    return "\n\n".join(parts) + "\n\n"


def details(records: Collection[Record]) -> str:
    """Return error bars, certified costs and a section for each family, as Markdown."""
    results = Results.of(records)
    failed = [record for record in records if record.failed]
    parts = [
        *_members(results),
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


def _members(results: Results) -> list[str]:
    """Return the default beside simpler models, if any of them was run."""
    table = members.beside_members(results)
    heading = (
        f"The error of `{OURS}` divided by that of simpler models at the same cost: the geometric mean over problems "
        f"and budgets of ratios of RMSEs over seeds, with its standard error. Bold above {members.TOLERATED}."
    )
    return ["## Beside its members", heading, table] if table else []


def write(folder: Path = DOCS) -> None:
    """Write the results into docs/arena.md, and the figures beside it."""
    known = load()
    records = list(known.values())
    stale = sum(record.digest != digest(record.method, record.problem) for record in records)
    results, drawn = Results.of(records), folder / "arena"
    for old in drawn.glob("*.svg"):  # of families that have no results any more
        old.unlink()
    figures.coverage(results, drawn / "coverage.svg")
    for half in HALVES:
        figures.certified(results, half, drawn / f"certified-{half}.svg")
    for name in MAKERS:
        if results.of_family(name).of_method(OURS).records:
            figures.error_against_cost(results, name, drawn / f"{name}.svg")
    file = folder / "arena.md"
    text = file.read_text(encoding="utf-8")
    for part, content in zip(PARTS, (winners(records, stale), details(records)), strict=True):
        begin, end = marks(part)
        text = text.split(begin)[0] + begin + "\n" + content + end + text.split(end)[1]
    file.write_text(text, encoding="utf-8")
    compact(records)
