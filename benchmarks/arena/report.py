"""The report: the parts of docs/arena.md between marks, and its figures, from the stored results."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from . import figures, tables
from .families import MAKERS, problems
from .results import HALVES, Results
from .runs import is_current
from .split import HELD_OUT
from .store import BASELINE, FILE, Record, compact, load
from .tables import OURS

DOCS = Path(__file__).parents[2] / "docs"
PARTS = ("winners", "results")  # of the page that are made here


def summary(records: Collection[Record]) -> str:
    """Return the contests and the error bars of some runs as text for a terminal."""
    results = Results.of(records)
    failed = "\n".join(f"{r.problem} by {r.method}: {r.failed}" for r in records if r.failed)
    found = tables.contests(results)
    parts = [tables.winners(found), tables.verdicts(found), tables.error_bars(results), failed]
    return "\n\n".join(part for part in parts if part)


def marks(part: str) -> tuple[str, str]:
    """Return the lines between which a part of the page stands."""
    return f"<!-- {part}: made by python -m benchmarks.arena --report -->\n", f"<!-- end of {part} -->"


def winners(records: Collection[Record]) -> str:
    """Return who wins, as Markdown."""
    stale = sum(not is_current(record) for record in records)
    results = Results.of(records)
    seeds = {record.seed for record in records}
    size = (
        f"{len({record.job for record in records})} runs on {len(results.problems)} of {len(problems())} problems, "
        f"{len(seeds)} seed{'s' * (len(seeds) != 1)}; {stale} of {len(records)} records are by older code than this. "
        f"Held out as a whole: {', '.join(HELD_OUT)}."
    )
    found = tables.contests(results)
    parts = [
        "## Who wins",
        size,
        tables.verdicts(found),
        "The typical error is the geometric mean over problems of the RMSE over seeds, in standard deviations of the "
        "output (log evidences: in units of 1). Beside it: its ratio to that of the best peer, with a 95 % interval "
        "from resampled problems and seeds. The best peer is chosen on development, and is the same for validation. A "
        "contest is won (bold) or lost (italics) only if its interval excludes 1.",
        tables.winners(found),
        "## Beside each method",
        f"The error of `{OURS}` divided by that of each method, over all problems that both have solved:",
        tables.overall(results),
    ]
    return "\n\n".join(parts) + "\n\n"


def details(records: Collection[Record]) -> str:
    """Return error bars, certified costs and a section for each family, as Markdown."""
    results = Results.of(records)
    failed = [record for record in records if record.failed]
    parts = [
        "## Error bars",
        "Intervals of shares are clustered by problem.",
        tables.error_bars(results),
        "A calibrated Gaussian has |error|/std of 0.67, 1.28 and 1.96 at 50, 80 and 95 %.",
        "![Coverage against nominal level](arena/coverage.svg)",
        f"How often the intervals of `{OURS}` hold, by family, all budgets and given data together:",
        tables.coverage_by_family(results),
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
        lines = [f"- {r.problem} by {r.method}, {r.stage}, seed {r.seed}: {r.failed}" for r in failed]
        parts += ["### Failed runs", "\n".join(lines)]
    return "\n\n".join(parts) + "\n\n"


def write(folder: Path = DOCS) -> None:
    """Write the results into docs/arena.md, and the figures beside it."""
    records = list(load(BASELINE, FILE).values())
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
    for part, content in zip(PARTS, (winners(records), details(records)), strict=True):
        begin, end = marks(part)
        text = text.split(begin)[0] + begin + "\n" + content + end + text.split(end)[1]
    file.write_text(text, encoding="utf-8")
    if FILE.exists():
        compact(load(FILE).values())
