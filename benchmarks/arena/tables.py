"""Tables of the report, in Markdown, from stored results. Errors are in standard deviations of the output.

The best peer of a family at a budget is the one with the smallest typical error on development problems, and is the
same for validation. A family without development problems has the best peer over all development problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .families import MAKERS, family
from .methods import BUDGETS, METHODS, Stage
from .resampling import Interval
from .results import HALVES, Results, budgets_of, compared
from .scores import ACCURACIES, LEVELS, certified_cost, false_certificate, ratio_quantiles, typical_error
from .split import Half, half_of
from .store import Record

OURS = "auto"  #: the method whose losses are counted
#: other models of this library, which are no peers
MEMBERS = ("icm", "lmc", "ar")
#: what one run can contribute to an average of -log densities: a Gaussian that is ten standard deviations off
WORST_SURPRISE = 50.0


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def short(value: float) -> str:
    """Return a number with two significant digits."""
    return "–" if not np.isfinite(value) else f"{value:.2g}" if value < 100 else f"{value:.0f}"


def with_interval(found: Interval | None, scale: float = 1.0, digits: int = 0) -> str:
    """Return a number and the ends of its interval."""
    if found is None:
        return "–"
    value, low, high = (f"{scale * number:.{digits}f}" for number in found)
    return f"{value} [{low}, {high}]"


@dataclass(frozen=True)
class Contest:
    """The default against the best peer on the problems of one family and half, at one budget."""

    family: str
    half: Half
    budget: Stage
    error: float  # typical ones
    peer: str
    peer_error: float
    ratio: Interval


def typical(results: Results) -> float:
    """Return the typical error of some results."""
    return typical_error(results.errors_by_problem().values())


def best_peer(results: Results, name: str, budget: Stage) -> str | None:
    """Return the best peer of a family at a budget: chosen on development, among those that solved all problems."""
    at = results.at(budget)
    here = at.of_family(name)
    all_solved = here.of_method(OURS).problems
    able = [m for m in here.methods if _competes(m) and here.of_method(m).problems >= all_solved]
    of_family = here.of_half("development")
    judge = of_family if of_family.of_method(OURS).records else at.of_half("development")
    errors = {m: typical(judge.of_method(m)) for m in able if judge.of_method(m).records}
    return min(errors, key=lambda m: errors[m]) if errors else None


def best_peers(results: Results, name: str) -> Results:
    """Return the results of a family at BUDGETS, at each by the best peer."""
    of_family, found = results.of_family(name), Results(())
    for budget in BUDGETS:
        peer = best_peer(results, name, budget)
        found = Results(found.records + (of_family.at(budget).of_method(peer).records if peer else ()))
    return found


def _competes(method: str) -> bool:
    """Return whether a method chooses its own evaluations, and is not the default or a part of it."""
    return not METHODS[method].given_data and method not in (OURS, *MEMBERS)


def contests(results: Results) -> list[Contest]:
    """Return every contest that has a peer."""
    found = []
    for name in MAKERS:
        of_family = results.of_family(name)
        for budget in budgets_of(of_family):
            peer = best_peer(results, name, budget)
            for half in HALVES if peer else ():
                here = of_family.of_half(half).at(budget)
                ours, theirs = here.of_method(OURS), here.of_method(peer)
                ratio = compared(ours, theirs, [budget])
                if ratio:
                    found.append(Contest(name, half, budget, typical(ours), peer, typical(theirs), ratio))
    return found


def winners(found: Sequence[Contest]) -> str:
    """Return a row for each family and half: our error, and its ratio to that of the best peer, at each budget."""
    keys = list(dict.fromkeys((c.family, c.half) for c in found))
    budgets = sorted({c.budget for c in found}, key=float)
    rows = []
    for name, half in keys:
        here = {c.budget: c for c in found if (c.family, c.half) == (name, half)}
        rows.append([name, half, *(_verdict(here[budget]) if budget in here else "–" for budget in budgets)])
    return markdown(["family", "set", *(f"budget {budget}" for budget in budgets)], rows)


def _verdict(contest: Contest) -> str:
    ratio = f"×{contest.ratio.value:.2f} [{contest.ratio.low:.2f}, {contest.ratio.high:.2f}]"
    marked = (f"**{ratio}**", ratio, f"*{ratio}*")[contest.ratio.verdict + 1]
    return f"{short(contest.error)}, {marked} {contest.peer}"


def verdicts(found: Sequence[Contest]) -> str:
    """Return in words how many contests we win and lose, and every one that we lose, the worst first."""
    if not found:
        return "There are no results to compare yet."
    lines = []
    for half in HALVES:
        of_half = [c for c in found if c.half == half]
        won = sum(c.ratio.verdict < 0 for c in of_half)
        lost = sorted((c for c in of_half if c.ratio.verdict > 0), key=lambda c: -c.ratio.value)
        lines.append(
            f"- {half}: of {len(of_half)} contests `{OURS}` wins {won} and loses {len(lost)}; in the others the "
            "difference may be due to chance."
        )
        lines += [
            f"    - lost: {c.family} at budget {c.budget} to {c.peer}, factor {with_interval(c.ratio, digits=2)}"
            for c in lost
        ]
    return "\n".join(lines)


def advice(results: Results) -> str:
    """Return in words how the default compares with the best peers on validation, and where it is better."""
    validation = results.of_half("validation")
    rivals = {name: best_peers(results, name).of_half("validation") for name in MAKERS}
    everyone = Results(tuple(record for rival in rivals.values() for record in rival.records))
    ours = validation.of_method(OURS)
    whole = compared(ours, everyone, BUDGETS)
    if whole is None:
        return "There are no results to compare yet."
    ratios = {name: compared(ours, rival, BUDGETS) for name, rival in rivals.items()}
    known = {name: found for name, found in ratios.items() if found}
    kinds: dict[int, list[str]] = {-1: [], 0: [], 1: []}
    for name in sorted(known, key=lambda name: known[name].value):
        kinds[known[name].verdict].append(f"{link(name)} ×{short(known[name].value)}")
    held = validation.where(lambda r: r.method in (OURS, f"{OURS}, given data")).coverage(0.95)
    return "\n\n".join(
        [
            f"On {len(everyone.problems & ours.problems)} problems that were not used to develop it, in {len(known)} "
            f"families, the error of `{OURS}` is **{with_interval(whole, digits=2)} times that of the best other "
            f"method of each family**, over budgets of {', '.join(BUDGETS[:-1])} and {BUDGETS[-1]}. Its 95 % intervals "
            f"contain the truth in {with_interval(held, 100)} % of the runs.",
            f"- **Use it** for {_listed(kinds[-1])}.\n"
            f"- **No difference has been shown** for {_listed(kinds[0])}.\n"
            f"- **Use the best other method** for {_listed(kinds[1])}.",
        ]
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "no family"


def link(name: str, folder: str = "arena/") -> str:
    """Return a link to the page of a family."""
    return f"[{name}]({folder}{name}.md)"


def overall(results: Results) -> str:
    """Return a row for each half and method: the default's error divided by the method's, over all problems."""
    head = ["set", "compared with", *(f"budget {budget}" for budget in budgets_of(results)), "all"]
    rows = []
    for half in HALVES:
        of_half = results.of_half(half)
        ours = of_half.of_method(OURS)
        for name in of_half.methods:
            if METHODS[name].given_data or name == OURS:
                continue
            theirs, budgets = of_half.of_method(name), budgets_of(results)
            cells = [compared(ours, theirs, [budget]) for budget in budgets] + [compared(ours, theirs, budgets)]
            rows.append([half, name, *(with_interval(cell, digits=2) for cell in cells)])
    return markdown(head, rows)


def error_bars(results: Results) -> str:
    """Return a row for each half and method: coverage, ratios of error and std, interval score, surprise."""
    head = ["set", "method", "n", *(f"covers {100 * level:g} %" for level in LEVELS)]
    head += [*(f"\\|error\\|/std at {100 * level:g} %" for level in LEVELS), "interval score", "-log density"]
    rows = []
    for half in HALVES:
        for name in results.methods:
            of_method = results.of_half(half).of_method(name)
            found = of_method.judged()
            if not found:
                continue
            cells = [half, name, str(len(found))]
            cells += [with_interval(of_method.coverage(level), 100) for level in LEVELS]
            cells += [short(q) for q in ratio_quantiles(*np.transpose([(r.error, r.std) for r in found]))]
            cells.append(short(float(np.mean([row.interval_score for row in found]))))
            cells.append(f"{np.mean([np.fmin(row.surprise, WORST_SURPRISE) for row in found]):.2f}")
            rows.append(cells)
    return markdown(head, rows)


def coverage_by_family(results: Results, half: Half, folder: str) -> str:
    """Return a row for each family: how often the default's intervals hold, with intervals clustered by problem."""
    ours = results.of_half(half).where(lambda r: r.method in (OURS, f"{OURS}, given data"))
    rows = [
        [link(name, folder), *(with_interval(ours.of_family(name).coverage(level), 100) for level in LEVELS)]
        for name in MAKERS
        if ours.of_family(name).records
    ]
    total = ["**all**", *(with_interval(ours.coverage(level), 100) for level in LEVELS)]
    return markdown(["family", *(f"{100 * level:g} %" for level in LEVELS)], [*rows, total])


def certified(results: Results, halves: Sequence[Half] = HALVES) -> str:
    """Return a row for each half and method: how many runs certify an accuracy, at which cost, and how many wrongly."""
    head = ["set", "method", "runs", *(f"±{a:g}: certified, median cost, wrong" for a in ACCURACIES)]
    rows = []
    for half in halves:
        for name in results.methods:
            found = results.of_half(half).of_method(name).trajectories()
            if found:
                rows.append([half, name, str(len(found)), *(_certified(found, accuracy) for accuracy in ACCURACIES)])
    return markdown(head, rows)


def families(results: Results) -> str:
    """Return a row for each family: what it has, how many problems of each half, and a link to its page."""
    rows = []
    for name, maker in MAKERS.items():
        halves = [half_of(problem) for problem in family(name)]
        what = (maker.__doc__ or "").strip().removeprefix("Return ").rstrip(".")
        shown = link(name, "") if results.of_family(name).records else name
        rows.append([shown, what, *(str(halves.count(half)) for half in HALVES)])
    return markdown(["family", "what", *HALVES], rows)


def _certified(found: Sequence[Record], accuracy: float) -> str:
    costs = np.array([certified_cost(run.rows, accuracy) for run in found])
    wrong = np.mean([false_certificate(run.rows, accuracy) for run in found])
    median = float(np.median(costs))
    cost = f"{median:.1f}" if np.isfinite(median) else "> 10"
    return f"{100 * np.mean(np.isfinite(costs)):.0f} %, {cost}, {100 * wrong:.0f} %"


def of_family(results: Results, name: str) -> str:
    """Return the members of a family, and a row for each half and method."""
    lines = [f"- {p.index}: {p.title} ({half_of(p)}, {p.dim} input{'s' * (p.dim > 1)})" for p in family(name)]
    chosen = results.of_family(name)
    budgets = budgets_of(chosen)
    head = ["set", "method", *(f"typical error at {b}" for b in budgets), "covers 95 %", "s per run"]
    parts = ["\n".join(lines)]
    active = [
        [half, method, *_performance(chosen.of_half(half).of_method(method), budgets)]
        for half in HALVES
        for method in chosen.of_half(half).methods
        if not METHODS[method].given_data
    ]
    if active:
        parts.append(markdown(head, active))
    given = [
        [half, method, *_given(chosen.of_half(half).of_method(method))]
        for half in HALVES
        for method in chosen.of_half(half).methods
        if METHODS[method].given_data
    ]
    if given:
        parts.append(markdown(["set", "on given data", "typical error, small", "large", "covers 95 %"], given))
    return "\n\n".join(parts)


def _performance(results: Results, budgets: Sequence[Stage]) -> list[str]:
    by_budget = [results.at(budget) for budget in budgets]
    errors = [short(typical(each)) if each.records else "–" for each in by_budget]
    runs = len({record.job for record in results.records})
    return [*errors, with_interval(results.coverage(0.95), 100), short(results.seconds / runs)]


def _given(results: Results) -> list[str]:
    stages = [results.where(lambda r, large=large: (r.stage == "large data") == large) for large in (False, True)]
    errors = [short(typical(each)) if each.records else "–" for each in stages]
    return [*errors, with_interval(results.coverage(0.95), 100)]
