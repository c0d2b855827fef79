"""The report: docs/arena.md between marks, the pages and figures in docs/arena, all from the stored results."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from . import figures, tables
from .families import MAKERS, problems
from .results import HALVES, Results
from .runs import is_current
from .split import HELD_OUT
from .store import BASELINE, FILE, RELEASE, Record, compact, load
from .tables import OURS

DOCS = Path(__file__).parents[2] / "docs"
MADE = "made by python -m benchmarks.arena --report"
BEGIN, END = f"<!-- {MADE} -->\n", "<!-- end -->"  #: between which docs/arena.md is made here


def summary(records: Collection[Record]) -> str:
    """Return the contests and the error bars of some runs as text for a terminal."""
    results = Results.of(records)
    failed = "\n".join(f"{r.problem} by {r.method}: {r.failed}" for r in records if r.failed)
    found = tables.contests(results)
    parts = [tables.winners(found), tables.verdicts(found), tables.error_bars(results), failed]
    return "\n\n".join(part for part in parts if part)


def basis(records: Collection[Record]) -> str:
    """Return what the numbers rest on."""
    results = Results.of(records)
    seeds, stale = len({record.seed for record in records}), sum(not is_current(record) for record in records)
    made = f"{stale:,} of {len(records):,} results are from release {RELEASE}, the others from the current code."
    if stale == len(records):
        made = f"All results are from release {RELEASE}."
    return (
        f"{len({record.job for record in records}):,} runs on {len(results.problems)} of {len(problems())} problems, "
        f"{seeds} seed{'s' * (seeds != 1)}, {results.seconds / 3600:.0f} hours of CPU time. {made} "
        f"Whole families held out for validation: {', '.join(HELD_OUT)}."
    )


def front(records: Collection[Record]) -> str:
    """Return what docs/arena.md says: the answer, one figure, error bars by family, certified costs."""
    results = Results.of(records)
    parts = [
        tables.advice(results),
        "![Error relative to the best other method, by family and budget](arena/contests.svg)",
        "Validation problems. Each bar is a 95 % bootstrap interval over problems and seeds: blue if it lies below "
        "one, red if above, grey where the difference may be due to chance. The other method was chosen on development "
        "problems, for each family and budget. Errors are in standard deviations of the output, those of log evidences "
        "in units of 1. [All contests, with names and numbers](arena/contests.md); "
        "[all methods](arena/methods.md); [all families](arena/families.md).",
        "## Can the error bars be trusted?",
        f"Percentage of the intervals of `{OURS}` that contain the truth on validation problems, over all budgets and "
        "given data. In brackets: 95 % intervals, clustered by problem.",
        tables.coverage_by_family(results, "validation", "arena/"),
        "## What does certainty cost?",
        "A run *certifies* an accuracy when its 95 % interval is that narrow for the first time and contains the "
        "truth; it is *wrong* if that interval misses the truth. Costs are in primary evaluations, half widths in "
        "standard deviations of the output; runs end at a cost of 10.",
        tables.certified(results, ("validation",)),
        "## What the numbers rest on",
        basis(records),
    ]
    return "\n\n".join(parts)


def pages(records: Collection[Record]) -> dict[str, str]:
    """Return the pages in docs/arena, by the names of their files."""
    results = Results.of(records)
    found = tables.contests(results)
    failed = [f"- {r.problem} by {r.method}, {r.stage}, seed {r.seed}: {r.failed}" for r in records if r.failed]
    contests = [
        "# The arena: all contests",
        tables.verdicts(found),
        "The typical error is the geometric mean over problems of the RMSE over seeds, in standard deviations of the "
        "output (log evidences: in units of 1). It is followed by its ratio to that of the best other method, with a "
        "95 % bootstrap interval over problems and seeds. The best other method is chosen on development problems, and "
        "is the same for validation. A contest is won (bold) or lost (italics) only if its interval excludes 1.",
        tables.winners(found),
    ]
    methods = [
        "# The arena: all methods",
        "## Errors",
        f"The error of `{OURS}` divided by that of each method, over all problems that both solved:",
        tables.overall(results),
        "## Error bars",
        "In percent, with intervals clustered by problem.",
        tables.error_bars(results),
        "A calibrated Gaussian has |error|/std of 0.67, 1.28 and 1.96 at 50, 80 and 95 %.",
        "![Coverage against nominal level](coverage.svg)",
        f"Percentage of the intervals of `{OURS}` that contain the truth on development problems:",
        tables.coverage_by_family(results, "development", ""),
        "## Certified cost",
        tables.certified(results),
        *(f"![Certified accuracy against cost, {half}](certified-{half}.svg)" for half in HALVES),
        *(["## Failed runs", "\n".join(failed)] if failed else []),
    ]
    made = {
        "contests": contests,
        "methods": methods,
        "families": ["# The arena: all families", tables.families(results)],
    }
    for name in _drawn(results):
        figure = [f"![Error against cost: {name}]({name}.svg)"] if _has_figure(results, name) else []
        made[name] = [f"# The arena: {name}", tables.of_family(results, name), *figure]
    return {f"{name}.md": f"<!-- {MADE} -->\n\n" + "\n\n".join(parts) + "\n" for name, parts in made.items()}


def _drawn(results: Results) -> list[str]:
    return [name for name in MAKERS if results.of_family(name).records]


def _has_figure(results: Results, name: str) -> bool:
    return bool(results.of_family(name).of_method(OURS).records)


def write(folder: Path = DOCS) -> None:
    """Write the results into docs/arena.md, and the pages and figures in docs/arena."""
    records = list(load(BASELINE, FILE).values())
    results, beside = Results.of(records), folder / "arena"
    beside.mkdir(exist_ok=True)
    for old in beside.iterdir():  # of families that have no results any more
        if old.suffix == ".svg" or MADE in old.read_text(encoding="utf-8"):
            old.unlink()
    figures.coverage(results, beside / "coverage.svg")
    figures.contests([c for c in tables.contests(results) if c.half == "validation"], beside / "contests.svg")
    for half in HALVES:
        figures.certified(results, half, beside / f"certified-{half}.svg")
    for name in _drawn(results):
        if _has_figure(results, name):
            figures.error_against_cost(results, name, beside / f"{name}.svg")
    for name, text in pages(records).items():
        (beside / name).write_text(text, encoding="utf-8")
    file = folder / "arena.md"
    before, _, rest = file.read_text(encoding="utf-8").partition(BEGIN)
    file.write_text(f"{before}{BEGIN}\n{front(records)}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    if FILE.exists():
        compact(load(FILE).values())
