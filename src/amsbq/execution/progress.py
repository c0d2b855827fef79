"""How a run goes, on a terminal: a bar for the budget, the estimate, and how often each source was evaluated."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from ..design.accounting import Accounting

Progress: TypeAlias = Callable[[Accounting], None]


@contextmanager
def progress_display(it: Accounting, wanted: bool | Progress | None) -> Iterator[Progress]:
    """What to call whenever something has happened; by default it shows something on a terminal only."""
    if callable(wanted):
        yield wanted
        return
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        yield lambda it: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    except ImportError:
        if wanted:
            raise ImportError("progress needs rich: pip install 'amsbq[progress]'") from None
        yield lambda it: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[spent]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as display:
        total = None if math.isinf(it.budget) else it.budget
        task = display.add_task("starting", total=total, spent="")
        yield lambda it: display.update(task, completed=it.spent, description=estimate_line(it), spent=spent_line(it))


def estimate_line(it: Accounting) -> str:
    """The estimate after the latest evaluation."""
    known = next((e for e in reversed(it.evaluations) if not math.isnan(e.std)), None)
    return f"{known.mean:.6g} ± {known.std:.2g}" if known is not None else "initial design"


def spent_line(it: Accounting) -> str:
    """What was spent, and how many evaluations of each source were made."""
    counts = [sum(e.source == source and e.status == "ok" for e in it.evaluations) for source in range(len(it.names))]
    made = ", ".join(f"{count} {name}" for count, name in zip(counts, it.names, strict=True))
    failed = sum(e.status == "failed" for e in it.evaluations)
    of = "" if math.isinf(it.budget) else f" of {it.budget:.4g}"
    return f"{it.spent:.4g}{of} · {made}" + (f" · {failed} failed" if failed else "")


class LineProgress:
    """A line on standard error after each evaluation, for where there is no terminal; in full, with what it found."""

    def __init__(self, in_full: bool = False) -> None:
        self.in_full, self._seen = in_full, -1

    def __call__(self, it: Accounting) -> None:
        first, self._seen = self._seen, len(it.evaluations)
        if first < 0:  # what was there before is not news
            first = max(len(it.evaluations) - 1, 0)
        for e in it.evaluations[first:]:
            if self.in_full:
                found = f"{e.value:.6g}" if e.status == "ok" else f"failed, {e.reason}"
                at = ", ".join(f"{x:.4g}" for x in e.x)
                print(f"{it.names[e.source]}({at}) = {found}", file=sys.stderr)
            print(f"{spent_line(it)} · {estimate_line(it)}", file=sys.stderr, flush=True)
