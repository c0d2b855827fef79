"""The report: the results on docs/yardsticks.md between marks, and its figure, from what is stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.arena import figures
from benchmarks.arena.families import family, problem_named
from benchmarks.arena.methods import Stage
from benchmarks.arena.resampling import Interval
from benchmarks.arena.results import Results, compared
from benchmarks.arena.runs import is_current
from benchmarks.arena.scores import LEVELS, rmse
from benchmarks.arena.store import Record, compact, load
from benchmarks.arena.tables import OURS, markdown, short, with_interval

from . import theirs
from .functions import SOURCES
from .registry import BUDGETS, LIKELIHOOD_BUDGETS, MAKERS, PLAYERS, budgets_of, players_of, problems

FILE = Path(__file__).with_name("results.jsonl")
STORED = Path(__file__).with_name("results.jsonl.xz")  #: committed results
DOCS = Path(__file__).parents[2] / "docs"
BEGIN = "<!-- results: made by python -m benchmarks.yardsticks --report -->\n"
END = "<!-- end of results -->"
PEERS = PLAYERS[1:]
#: title of each family, and what is to be known of its results
TITLES = {
    "asian-options": (
        "Asian options of QMCPy and fastgps",
        "The published figures cost 474 times our budget of 10, and come from one run each.",
    ),
    "pyapprox-ensembles": (
        "Ensembles of pyapprox-benchmarks",
        "*Predicted* are standard errors by PyApprox with exact covariances and without a pilot; those of MLBLUE with "
        "numbers of samples that need not be whole. For means, MLBLUE is group approximate control variates with "
        "independent groups; groups that share samples lack derivatives that its optimiser needs. Where a row is "
        "missing, it finds no allocation, as for sources that correlate perfectly.",
    ),
    "uqtestfuns": ("Functions of UQTestFuns", ""),
    "vbmc-evidence": (
        "Log evidences of VBMC's paper",
        "Errors are in units of 1. The paper shows its errors as curves only, so no figure is quoted. Estimates of "
        "methods without logarithms are cut off at 50 below the truth.",
    ),
    "multi-index": (
        "Problems of multi-index collocation",
        "The expected outputs of the tutorial's two pairs are zero by symmetry, and its rules are symmetric.",
    ),
}


class Contest(NamedTuple):
    """The default against one method on the problems of a source, at a budget."""

    family: str
    peer: str
    budget: Stage
    problems: int
    ratio: Interval


def contests(results: Results) -> list[Contest]:
    """Return every contest of a source, a method and a budget."""
    found = []
    for name in MAKERS:
        of_family = results.of_family(name)
        for peer in PEERS:
            for budget in budgets_of(family(name)[0]):
                ours, others = (of_family.of_method(method).at(budget) for method in (OURS, peer))
                ratio = compared(ours, others, [budget])
                if ratio:
                    found.append(Contest(name, peer, budget, len(ours.problems & others.problems), ratio))
    return found


def summary(records: Collection[Record], found: Sequence[Contest]) -> str:
    """Return in a few sentences how the default does."""
    results = Results.of(records)
    ours = results.of_method(OURS)
    stages = [*BUDGETS, *LIKELIHOOD_BUDGETS]
    whole = {peer: compared(ours, results.of_method(peer), stages) for peer in PEERS}
    ratios = ", ".join(f"{with_interval(r, digits=2)} times that of {peer}" for peer, r in whole.items() if r)
    verdicts = [contest.ratio.verdict for contest in found]
    failures = sum(bool(record.failed) for record in records if record.method == OURS)
    return (
        f"**On {len(ours.problems)} problems published by others, the error of `{OURS}` is {ratios}; its 95 % "
        f"intervals contain the truth in {with_interval(ours.coverage(0.95), 100)} % of the runs.** Of {len(found)} "
        f"contests, one for each source, method and budget, it wins {verdicts.count(-1)} and loses "
        f"{verdicts.count(1)}. In the other {verdicts.count(0)} the difference may be due to chance. "
        f"{smallest(results)} {failures} of its runs raised an error."
    )


def smallest(results: Results) -> str:
    """Return in how many cases of a problem and a budget each method has the smallest error."""
    best: dict[str, int] = defaultdict(int)
    for problem in problems():
        for budget in budgets_of(problem):
            errors = errors_of(results, problem.key, budget)
            if errors:
                best[min(errors, key=lambda method: errors[method])] += 1
    counted = ", ".join(f"{name} in {n}" for name, n in sorted(best.items(), key=lambda item: -item[1]))
    return f"Of {sum(best.values())} cases of a problem and a budget, the smallest error is that of {counted}."


def errors_of(results: Results, problem: str, budget: Stage) -> dict[str, float]:
    """Return the error of each method on a problem at a budget."""
    here = results.at(budget).where(lambda r: r.problem == problem)
    return {m: rmse(here.of_method(m).errors_by_problem()[problem]) for m in PLAYERS if here.of_method(m).records}


def ratios(found: Sequence[Contest]) -> str:
    """Return a row for each source and method, with the ratio at either budget; won ones are bold, lost ones italic."""
    rows = []
    for name in MAKERS:
        for peer in PEERS:
            here = [c for c in found if (c.family, c.peer) == (name, peer)]
            if here:
                rows.append([TITLES[name][0], peer, str(here[0].problems), *(_marked(c.ratio) for c in here)])
    return markdown(["source", "compared with", "problems", "budget 5 (20)", "budget 10 (40)"], rows)


def _marked(ratio: Interval) -> str:
    shown = f"×{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"
    return (f"**{shown}**", shown, f"*{shown}*")[ratio.verdict + 1]


def coverage(results: Results) -> str:
    """Return a row for each source: how often the default's intervals hold."""
    ours = results.of_method(OURS)
    rows = [
        [TITLES[name][0], *(with_interval(ours.of_family(name).coverage(level), 100) for level in LEVELS)]
        for name in MAKERS
        if ours.of_family(name).records
    ]
    total = ["**all**", *(with_interval(ours.coverage(level), 100) for level in LEVELS)]
    return markdown(["source", *(f"{100 * level:g} %" for level in LEVELS)], [*rows, total])


def errors(results: Results, name: str = "") -> str:
    """Return a row for each problem, or those of a source: errors at either budget, the smallest in bold."""
    chosen = [problem for problem in (family(name) if name else problems()) if problem.key in results.problems]
    players = [method for method in PLAYERS if any(method in players_of(problem) for problem in chosen)]
    rows = []
    for problem in chosen:
        by_budget = [errors_of(results, problem.key, budget) for budget in budgets_of(problem)]
        held = results.of_method(OURS).where(lambda r, key=problem.key: r.problem == key).coverage(0.95)
        cells = [" → ".join(_bold(found, method) for found in by_budget) for method in players]
        rows.append([title(problem.title), *cells, "–" if held is None else f"{100 * held.value:.0f}"])
    return markdown(["problem", *players, f"{OURS} covers 95 %"], rows)


def _bold(found: dict[str, float], method: str) -> str:
    if method not in found:
        return "–"
    shown = short(found[method])
    return f"**{shown}**" if found[method] == min(found.values()) else shown


def title(text: str) -> str:
    """Return the title of a problem, with who published it if it is a function."""
    name = text.partition(",")[0]
    return f"{text} ({SOURCES[name]})" if name in SOURCES else text


def of_others(name: str) -> str:
    """Return the figures of others for a source, printed or run here."""
    grouped: dict[tuple[str, str, str, str], list[theirs.Figure]] = defaultdict(list)
    for figure in (*theirs.published(), *theirs.stored()):
        if figure.problem.partition("/")[0] == name:
            grouped[figure.problem, figure.method, figure.source, figure.kind].append(figure)
    rows = [
        [
            problem_named(problem).title,
            method,
            source,
            " → ".join(f"{figure.cost:,.0f}" for figure in found),
            " → ".join(short(figure.error) for figure in found),
            kind,
        ]
        for (problem, method, source, kind), found in grouped.items()
    ]
    return markdown(["problem", "their method", "from", "cost", "error", "kind"], rows) if rows else ""


def results_part(records: Collection[Record]) -> str:
    """Return what stands on the page between the marks."""
    results = Results.of(records)
    found = contests(results)
    stale = sum(not is_current(record) for record in records)
    seeds = len({record.seed for record in records})
    failed = [f"- {r.problem} by {r.method}, {r.stage}, seed {r.seed}: {r.failed}" for r in records if r.failed]
    parts = [
        summary(records, found),
        "![Error relative to other methods, by source](yardsticks/ratios.svg)",
        f"Each bar is a 95 % bootstrap interval over problems and seeds: blue if `{OURS}` wins, red if it loses, grey "
        "where the difference may be due to chance.",
        "## By source",
        ratios(found),
        "Percentage of the intervals that contain the truth, with 95 % intervals clustered by problem:",
        coverage(results),
    ]
    for name, (heading, note) in TITLES.items():
        if results.of_family(name).records:
            shown = " → ".join(budgets_of(family(name)[0]))
            parts += [f"## {heading}", f"Errors at budgets of {shown}. {note}".strip(), errors(results, name)]
            others = of_others(name)
            parts += [f"Published figures, and those of the authors' packages run here:\n\n{others}"] if others else []
    parts += [
        "## What the numbers rest on",
        f"{len({record.job for record in records}):,} runs on {len(results.problems)} of {len(problems())} problems, "
        f"{seeds} seed{'s' * (seeds != 1)}, {results.seconds / 60:.0f} minutes of CPU time; {stale:,} of "
        f"{len(records):,} results are from older code. {len(failed)} run{'s' * (len(failed) != 1)} failed"
        + (":\n\n" + "\n".join(failed) if failed else "."),
    ]
    return "\n\n".join(parts)


def draw(found: Sequence[Contest], path: Path) -> None:
    """Draw the ratios with their intervals: a row for each source and method, a panel for either budget."""
    from matplotlib.figure import Figure

    rows = [(name, peer) for name in MAKERS for peer in PEERS if any(c[:2] == (name, peer) for c in found)][::-1]
    figure = Figure(figsize=(8.4, 1.2 + 0.22 * len(rows)), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True, sharex=True)
    for k, (ax, label) in enumerate(zip(axes, ("budget 5 (20)", "budget 10 (40)"), strict=True)):
        ax.axvline(1, color="0.5", linewidth=0.8)
        for contest in found:
            if contest.budget == budgets_of(family(contest.family)[0])[k]:
                y, colour = rows.index(contest[:2]), figures.VERDICTS[contest.ratio.verdict]
                ends = np.clip([contest.ratio.low, contest.ratio.high], *figures.SHOWN)
                ax.plot(ends, [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
                ax.plot(np.clip(contest.ratio.value, *figures.SHOWN), y, "o", color=colour, markersize=4.5)
        ax.set(title=label, xscale="log", xlim=figures.SHOWN, ylim=(-0.7, len(rows) - 0.3))
        ax.set_xticks([0.01, 0.1, 1, 10], ["1/100", "1/10", "1", "10"])
        ax.minorticks_off()
        ax.grid(True, color="0.9", linewidth=0.6)
        ax.set_axisbelow(True)
    axes[0].set_yticks(range(len(rows)), [f"{name}: {peer}" for name, peer in rows])
    figure.supxlabel(f"better  ←  error of {OURS} / error of the other method  →  worse", fontsize="medium")
    figures.save(figure, path)


def write(folder: Path = DOCS) -> None:
    """Write the results into docs/yardsticks.md, and the figure next to it."""
    records = list(load(STORED, FILE).values())
    draw(contests(Results.of(records)), folder / "yardsticks" / "ratios.svg")
    file = folder / "yardsticks.md"
    before, _, rest = file.read_text(encoding="utf-8").partition(BEGIN)
    file.write_text(f"{before}{BEGIN}\n{results_part(records)}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    if FILE.exists():
        compact(load(FILE).values(), FILE)
