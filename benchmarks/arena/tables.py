"""Tables of the report, in Markdown, from stored results. Errors are in standard deviations of the output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from amsbq.validation import Array

from .families import MAKERS, family, problem_named
from .methods import METHODS
from .scores import (
    ACCURACIES,
    BUDGETS,
    LEVELS,
    Row,
    at_cost,
    certified_cost,
    cost_of_accuracy,
    false_certificate,
    geometric_mean,
    interval_score,
    ratio_quantiles,
    rmse,
    share,
    typical_error,
)
from .split import Half, half_of
from .store import Record

HALVES: tuple[Half, ...] = ("development", "validation")
OURS = "auto"  #: the method whose losses are counted


@dataclass(frozen=True)
class Results:
    """Records without failed runs, and ways to choose among them."""

    records: tuple[Record, ...]

    @classmethod
    def of(cls, records: Iterable[Record]) -> Results:
        """Return the records that have rows."""
        return cls(tuple(record for record in records if record.rows))

    def of_method(self, name: str) -> Results:
        """Return those of a method."""
        return Results(tuple(r for r in self.records if r.method == name))

    def of_half(self, half: Half) -> Results:
        """Return those of one half of the problems."""
        return Results(tuple(r for r in self.records if half_of(problem_named(r.problem)) == half))

    def of_family(self, name: str) -> Results:
        """Return those of a family."""
        return Results(tuple(r for r in self.records if r.problem.startswith(f"{name}/")))

    @property
    def methods(self) -> list[str]:
        """The methods that they are by, in the order of the registry."""
        present = {r.method for r in self.records}
        return [name for name in METHODS if name in present]

    @property
    def problems(self) -> set[str]:
        """The problems that they are of."""
        return {r.problem for r in self.records}

    def rows_at(self, budget: float) -> list[tuple[str, Row]]:
        """Return problem and last row within the budget of each run that has one."""
        found = [(r.problem, at_cost(r.rows, budget)) for r in self.records]
        return [(problem, row) for problem, row in found if row is not None]

    def errors_by_problem(self, budget: float) -> dict[str, Array]:
        """Return the errors over seeds at a budget, for each problem."""
        errors: dict[str, list[float]] = {}
        for problem, row in self.rows_at(budget):
            errors.setdefault(problem, []).append(row.error)
        return {problem: np.array(values) for problem, values in errors.items()}


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def short(value: float) -> str:
    """Return a number with two significant digits."""
    return "–" if not np.isfinite(value) else f"{value:.2g}" if value < 100 else f"{value:.0f}"


def _cost(value: float) -> str:
    return f"{value:.1f}" if np.isfinite(value) else f"> {BUDGETS[-1]:g}"


@dataclass(frozen=True)
class Contest:
    """The typical errors of all methods on the problems of one family and half, at one budget."""

    family: str
    half: Half
    budget: float
    errors: dict[str, float]

    @property
    def best_peer(self) -> str:
        """The peer with the smallest error."""
        return min((name for name in self.errors if name != OURS), key=lambda name: self.errors[name])

    @property
    def factor(self) -> float:
        """Our error divided by that of the best peer: below 1 we win."""
        return self.errors[OURS] / self.errors[self.best_peer]


def contests(results: Results) -> list[Contest]:
    """Return every contest in which there is a peer that solved all the problems that we did."""
    found = []
    for name in MAKERS:
        for half in HALVES:
            chosen = results.of_family(name).of_half(half)
            for budget in BUDGETS:
                by_method = {m: chosen.of_method(m).errors_by_problem(budget) for m in chosen.methods if _competes(m)}
                ours = by_method.get(OURS, {})
                errors = {
                    m: typical_error(e[problem] for problem in ours)
                    for m, e in by_method.items()
                    if ours and e.keys() >= ours.keys()
                }
                if len(errors) > 1:
                    found.append(Contest(name, half, budget, errors))
    return found


def _competes(method: str) -> bool:
    """Return whether a method chooses its own evaluations, and is not another model of this library."""
    return not METHODS[method].given_data and method not in ("icm", "lmc", "ar")


def winners(found: Sequence[Contest]) -> str:
    """Return a row for each family and half: our error, and the best peer with its error, at each budget."""
    keys = list(dict.fromkeys((c.family, c.half) for c in found))
    rows = []
    for name, half in keys:
        cells = [name, half]
        for budget in BUDGETS:
            here = [c for c in found if (c.family, c.half, c.budget) == (name, half, budget)]
            cells.append(_verdict(here[0]) if here else "–")
        rows.append(cells)
    return markdown(["family", "half", *(f"budget {b:g}: {OURS} against the best peer" for b in BUDGETS)], rows)


def _verdict(contest: Contest) -> str:
    ours, theirs = short(contest.errors[OURS]), f"{contest.best_peer} {short(contest.errors[contest.best_peer])}"
    return f"**{ours}**, {theirs}" if contest.factor < 1 else f"{ours}, **{theirs}**"


def losses(found: Sequence[Contest]) -> str:
    """Return in words how often we win, and every contest that we lose, the worst first."""
    if not found:
        return "There are no results to compare yet."
    lines = []
    for half in HALVES:
        of_half = [c for c in found if c.half == half]
        lost = sorted((c for c in of_half if c.factor >= 1), key=lambda c: -c.factor)
        lines.append(
            f"- {half}: `{OURS}` has the smallest typical error in {len(of_half) - len(lost)} of {len(of_half)}."
        )
        lines += [
            f"    - lost: {c.family} at budget {c.budget:g} to {c.best_peer}, by a factor of {c.factor:.1f}"
            for c in lost
        ]
    return "\n".join(lines)


def error_bars(results: Results) -> str:
    """Return a row for each half and method: coverage, ratios of error and std, interval score, surprise."""
    head = ["half", "method", "n", *(f"covers {100 * level:g} %" for level in LEVELS)]
    head += [*(f"\\|error\\|/std at {100 * level:g} %" for level in LEVELS), "interval score", "-log density"]
    rows = []
    for half in HALVES:
        for name in results.methods:
            of_method = results.of_half(half).of_method(name)
            found = judged(of_method, METHODS[name].given_data)
            if not found:
                continue
            cells = [half, name, str(len(found))]
            for level in LEVELS:
                hit, error = share(np.array([row.holds(level) for row in found]))
                cells.append(f"{100 * hit:.0f} ± {100 * error:.0f}")
            finite = [row for row in found if np.isfinite(row.std)]
            quantiles = ratio_quantiles(*np.transpose([(r.error, r.std) for r in finite])) if finite else ()
            cells += [short(q) for q in quantiles] or ["–"] * len(LEVELS)
            cells.append(short(float(np.mean([interval_score(*row.intervals[-1]) for row in found]))))
            cells.append(f"{np.mean([min(row.surprise, WORST_SURPRISE) for row in found]):.2f}")
            rows.append(cells)
    return markdown(head, rows)


#: what one run can contribute to an average of -log densities: a Gaussian that is ten standard deviations off
WORST_SURPRISE = 50.0


def judged(results: Results, given_data: bool = False) -> list[Row]:
    """Return the rows by which error bars are judged: those at each budget, or all of a fixed design."""
    rows = [row for r in results.records for row in r.rows] if given_data else []
    if not given_data:
        rows = [row for budget in BUDGETS for _, row in results.rows_at(budget)]
    return [row for row in rows if row.intervals and np.isfinite(row.intervals[-1]).all()]


def certified(results: Results) -> str:
    """Return a row for each half and method: how many runs certify an accuracy, at which cost, and how many wrongly."""
    head = ["half", "method", "runs", *(f"half width {a:g}: certified, median cost, wrong" for a in ACCURACIES)]
    rows = []
    for half in HALVES:
        for name in results.methods:
            runs = results.of_half(half).of_method(name).records
            if not runs or METHODS[name].given_data:
                continue
            cells = [half, name, str(len(runs))]
            for accuracy in ACCURACIES:
                costs = np.array([certified_cost(run.rows, accuracy) for run in runs])
                wrong = np.mean([false_certificate(run.rows, accuracy) for run in runs])
                reached = f"{100 * np.mean(np.isfinite(costs)):.0f} %, {_cost(float(np.median(costs)))}"
                cells.append(f"{reached}, {100 * wrong:.0f} %")
            rows.append(cells)
    return markdown(head, rows)


def of_family(results: Results, name: str) -> str:
    """Return what the family has, and a row for each half and method."""
    lines = [f"- {p.index}: {p.title} ({half_of(p)}, {p.dim}D)" for p in family(name)]
    chosen = results.of_family(name)
    head = [
        "half",
        "method",
        "runs",
        *(f"RMSE at {b:g}" for b in BUDGETS),
        *(f"geometric mean at {b:g}" for b in BUDGETS),
    ]
    head += [*(f"cost to {a:g}" for a in ACCURACIES), "covers 95 %", "s per run"]
    rows = []
    for half in HALVES:
        for method in chosen.methods:
            of_method = chosen.of_half(half).of_method(method)
            if of_method.records and not METHODS[method].given_data:
                rows.append([half, method, *_performance(of_method)])
    data = [
        _given(chosen.of_half(h).of_method(m), h, m) for h in HALVES for m in chosen.methods if METHODS[m].given_data
    ]
    table = markdown(head, rows) if rows else "There are no results of this family yet."
    given = [cells for cells in data if cells]
    if given:
        table += "\n\n" + markdown(
            ["half", "on given data", "runs", "RMSE, small", "RMSE, large", "covers 95 %"], given
        )
    return "\n".join(lines) + "\n\n" + table


def _performance(results: Results) -> list[str]:
    errors = [np.array([row.error for _, row in results.rows_at(budget)]) for budget in BUDGETS]
    cells = [str(len(results.records))]
    cells += [_with_error(*rmse(e)) if len(e) else "–" for e in errors]
    cells += [short(geometric_mean(e)[0]) if len(e) else "–" for e in errors]
    for accuracy in ACCURACIES:
        cells.append(_cost(float(np.median([cost_of_accuracy(r.rows, accuracy) for r in results.records]))))
    found = judged(results)
    cells.append(f"{100 * np.mean([row.holds(0.95) for row in found]):.0f}" if found else "–")
    cells.append(short(float(np.mean([r.seconds for r in results.records]))))
    return cells


def _with_error(value: float, error: float) -> str:
    return f"{short(value)} ± {short(error)}" if np.isfinite(error) else short(value)


def _given(results: Results, half: Half, method: str) -> list[str]:
    if not results.records:
        return []
    sizes = [np.array([r.rows[k].error for r in results.records]) for k in (0, -1)]
    held = [row.holds(0.95) for row in judged(results, given_data=True)]
    covers = f"{100 * np.mean(held):.0f}" if held else "–"
    return [half, method, str(len(results.records)), *(_with_error(*rmse(e)) for e in sizes), covers]
