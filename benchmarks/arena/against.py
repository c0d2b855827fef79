"""Comparison of the current code with a stored baseline, or of a baseline's seeds with each other.

A cell is a family, a half and a stage. Its error ratio is won or lost only if its 95 % interval excludes 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .families import MAKERS
from .methods import TRACED, Stage
from .resampling import Interval
from .results import (
    HALVES,
    Results,
    compared,
    cost_to_certify,
    last_interval_score,
    stages_of,
)
from .scores import ACCURACIES, LEVELS
from .store import Record

#: methods of the library's default, whose changes are judged
OURS = ("auto", "auto, given data")


def shared(ours: Iterable[Record], theirs: Iterable[Record]) -> tuple[Results, Results]:
    """Return the records with common problems, stages and seeds; a changed problem counts as another one."""
    mine, other = ({(*r.key, r.fingerprint): r for r in records if r.rows} for records in (ours, theirs))
    both = mine.keys() & other.keys()
    return Results(tuple(mine[key] for key in sorted(both))), Results(tuple(other[key] for key in sorted(both)))


def halves_of_seeds(results: Results) -> tuple[Results, Results]:
    """Return the records of even seeds, and those of odd ones."""
    return results.where(lambda r: r.seed % 2 == 0), results.where(lambda r: r.seed % 2 == 1)


def quick_problems(baseline: Results) -> list[str]:
    """Return the development problem of each family on which the default took the least time."""
    ours = baseline.of_half("development").where(lambda r: r.method in OURS and r.seed == 0)
    seconds = {p: ours.where(lambda r, p=p: r.problem == p).seconds for p in sorted(ours.problems)}
    families = {p.partition("/")[0] for p in seconds}
    return [min((p for p in seconds if p.startswith(f"{name}/")), key=seconds.__getitem__) for name in sorted(families)]


class Comparison:
    """A table of error ratios by family and stage, with coverage, interval score, certified cost and CPU time."""

    def __init__(self, ours: Results, theirs: Results) -> None:
        kept = [each.where(lambda r: r.method in OURS) for each in (ours, theirs)]
        self.ours, self.theirs = kept
        self.stages: list[Stage] = stages_of(self.ours)
        self.verdicts: list[int] = []  # verdicts of all cells that are shown
        self.rows = [row for half in HALVES for row in self._of_half(half)]

    @property
    def head(self) -> list[str]:
        """The names of the columns."""
        stages = [f"budget {stage}" if stage.isdigit() else stage for stage in self.stages]
        covers = [f"{100 * level:g} %" for level in LEVELS]
        certified = [f"cost to ±{accuracy:g}" for accuracy in ACCURACIES[:2]]
        return ["set", "family", "problems", *stages, "all", *covers, "interval score", *certified, "CPU"]

    def _of_half(self, half: str) -> list[list[str]]:
        a, b = self.ours.of_half(half), self.theirs.of_half(half)
        names = [name for name in MAKERS if a.of_family(name).records]
        rows = [[half, name, *self._cells(a.of_family(name), b.of_family(name))] for name in names]
        return [*rows, [half, "all", *self._cells(a, b)]] if len(names) > 1 else rows

    def _cells(self, a: Results, b: Results) -> list[str]:
        ratios = [compared(a, b, [stage]) for stage in self.stages]
        self.verdicts += [found.verdict for found in ratios if found]
        whole = compared(a, b, self.stages)
        score = compared(a, b, self.stages, last_interval_score, 1.0)
        active = [Results(tuple(each.of_method("auto").trajectories())) for each in (a, b)]
        costs = [compared(*active, TRACED[:1], cost_to_certify(accuracy), 1.0) for accuracy in ACCURACIES[:2]]
        time = a.seconds / b.seconds if b.seconds else float("nan")
        coverages = [_coverage(a.coverage(level), b.coverage(level)) for level in LEVELS]
        return [
            str(len(a.problems)),
            *map(shown_ratio, [*ratios, whole]),
            *coverages,
            *map(shown_ratio, [score, *costs]),
            f"{time:.2f}",
        ]

    def summary(self) -> str:
        """Return how many cells are won and lost, and how many are expected by chance."""
        won, lost = self.verdicts.count(-1), self.verdicts.count(1)
        chance = 0.05 * len(self.verdicts)
        return (
            f"{won} of {len(self.verdicts)} cells won, {lost} lost; chance alone gives about {chance:.0f}: if "
            "nothing has changed, an interval misses 1 with a probability of about 5 %, up to 8 % with two problems."
        )


def shown_ratio(found: Interval | None) -> str:
    """Return a ratio with its interval, marked + if it is won and - if it is lost."""
    if found is None:
        return ""
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]{('+', '', '-')[found.verdict + 1]}"


def _coverage(ours: Interval | None, theirs: Interval | None) -> str:
    return "" if ours is None or theirs is None else f"{100 * ours.value:.0f} ({100 * theirs.value:.0f})"


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for a terminal; columns without entries are left out."""
    columns = [c for c in zip(head, *rows, strict=True) if any(c[1:])]
    widths = [max(map(len, column)) for column in columns]
    lines = zip(
        *(tuple(cell.ljust(width) for cell in c) for c, width in zip(columns, widths, strict=True)), strict=True
    )
    return "\n".join("  ".join(line).rstrip() for line in lines)
