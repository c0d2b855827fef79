"""Progress of a run: a bar on a terminal, or lines of text elsewhere.

Both show the cost so far, the budget, the number of evaluations of each source, and the estimate of the integral.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..common.validation import numbers_text
from ..design.evaluations import Evaluation
from ..design.run import Run

#: Function called with the integrator of a run after each query and each evaluation.
Progress: TypeAlias = Callable[[Run], None]


@dataclass(frozen=True)
class Digits:
    """Significant digits of the numbers that are shown."""

    value: int = 6  # of values: the accuracy of most simulators, and still short
    cost: int = 4  # of the cost so far and of the budget
    x: int = 4  # of inputs: enough to recognise a location
    outputs: int = 3  # how many of them: more do not fit on a line


DIGITS = Digits()


@contextmanager
def progress_display(it: Run, wanted: bool | Progress | None) -> Iterator[Progress]:
    """Show the progress of a run while the context is open, and yield a function to call at each event.

    Parameters
    ----------
    it : Run
        The integrator of the run.
    wanted : bool, callable or None
        True for a bar, which needs rich; False for nothing; None for a bar if standard error is a terminal and rich is
        installed; or a callable that shows it.
    """
    if callable(wanted):
        yield wanted
        return
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        yield _show_nothing
        return
    try:
        from rich import progress as rich
        from rich.console import Console
    except ImportError:
        if wanted:
            raise ImportError("progress needs rich: pip install 'amsbq[progress]'") from None
        yield _show_nothing
        return
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TextColumn("{task.fields[spent]}", markup=False),  # names of sources are text, also with [brackets]
        rich.TimeElapsedColumn(),
        rich.TextColumn("left"),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=Console(stderr=True)) as bar:
        total = None if math.isinf(it.budget) else it.budget
        task = bar.add_task("starting", total=total, spent="")
        yield lambda it: bar.update(task, completed=it.spent, description=estimate_text(it), spent=spent_text(it))


def in_notebook() -> bool:
    """Return whether this is the kernel of a notebook, which can show and update figures."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show on a terminal, while the context is open, that something takes a while."""
    if not sys.stderr.isatty():
        yield
        return
    try:
        from rich.console import Console
    except ImportError:
        print(f"{text} ...", file=sys.stderr, flush=True)
        yield
        return
    with Console(stderr=True).status(f"{text} ..."):
        yield


def _show_nothing(it: Run) -> None:
    pass


class LineProgress:
    """Progress as text on standard error: one line, with totals and the estimate, for each evaluation.

    The first call prints only the line of the latest evaluation: earlier ones were made before the run was
    resumed.

    Parameters
    ----------
    verbose : bool
        Whether to print another line for each evaluation first: its source, location and value, or why it
        failed.
    """

    def __init__(self, verbose: bool = False) -> None:
        self.verbose = verbose
        self._printed: int | None = None  # the number of evaluations at the last call

    def __call__(self, it: Run) -> None:
        """Print the evaluations of an integrator since the last call."""
        first = max(len(it.evaluations) - 1, 0) if self._printed is None else self._printed
        self._printed = len(it.evaluations)
        for evaluation in it.evaluations[first:]:
            if self.verbose:
                print(evaluation_text(it, evaluation), file=sys.stderr)
            print(f"{spent_text(it)} · {estimate_text(it)}", file=sys.stderr, flush=True)


def estimate_text(it: Run) -> str:
    """Return the latest estimate of the integral, as in "0.83 ± 0.12", or why there is none yet."""
    if it.evaluations and not any(e.source == 0 and e.status == "ok" for e in it.evaluations):
        return f"{it.names[0]} has no value yet"
    latest = next((e for e in reversed(it.evaluations) if np.isfinite(e.std).any()), None)
    if latest is None:
        return "initial design"
    units = [it.problem.labels.unit(name) for name in it.outputs or [""]]
    return numbers_text(latest.mean, most=DIGITS.outputs, names=it.outputs, std=latest.std, units=units)


def spent_text(it: Run) -> str:
    """Return the cost so far and the number of evaluations of each source, as in "2.1 of 5 · 2 fine, 1 coarse"."""
    counts = [sum(e.source == source and e.status == "ok" for e in it.evaluations) for source in range(len(it.names))]
    made = ", ".join(f"{count} {name}" for count, name in zip(counts, it.names, strict=True))
    failed = sum(e.status == "failed" for e in it.evaluations)
    return f"{it.problem.labels.of_budget(it.spent, it.budget, DIGITS.cost)} · {made}" + (
        f" · {failed} failed" if failed else ""
    )


def evaluation_text(it: Run, evaluation: Evaluation) -> str:
    """Return one evaluation in words, as in "7: fine(0.25, 3) = 1.5" or "7: fine(0.25, 3) = failed, no licence"."""
    found = (
        numbers_text(evaluation.value, DIGITS.value) if evaluation.status == "ok" else f"failed, {evaluation.reason}"
    )
    x = ", ".join(f"{x:.{DIGITS.x}g}" for x in evaluation.x)
    return f"{evaluation.id}: {it.names[evaluation.source]}({x}) = {found}"
