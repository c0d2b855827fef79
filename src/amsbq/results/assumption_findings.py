"""Findings on what the error bar rests on: assumptions rather than data, and what would settle it, at what cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..design.integrator import Integrator
from ..inference.estimate import Estimate
from ..inference.preparation import is_constant, primary_is_constant
from ..ranges.belief import AveragedBelief
from ..validation import plus_minus
from .analysis import SETTINGS as ANALYSIS
from .analysis import Residuals, View, belief_of, next_choice, uncovered, views
from .findings import Finding, location, plural
from .refits import source_worths


@dataclass(frozen=True)
class AssumptionSettings:
    """Limits from which on an error bar rests on assumptions."""

    #: evaluations of the primary source that a smooth function of its own is fitted to, however it varies
    alone: int = 2
    #: standard deviations between two answers from which on they disagree
    apart: float = 2.0
    #: weight of a structure below which it has no say
    negligible: float = 0.1
    #: share of the inputs' distribution far from all evaluations from which on there is a note, and a warning
    uncovered_note: float = 0.1
    uncovered_warning: float = 0.3
    #: ratio of the error bar now to what it was from which on it has risen, and standard deviations between a value and
    #: its prediction from which on that was a surprise
    risen: float = 1.05
    surprise: float = 2.0
    #: values of the primary source for each one that may have all of their variance, and the share of the variance that
    #: the others may have
    fewest_values: int = 6
    hardly_vary: float = 0.01


SETTINGS = AssumptionSettings()


def few(it: Integrator) -> Iterator[Finding]:
    """Yield how many evaluations of the primary source are left over, once its relation to others is fitted."""
    s = it.learner.data.values.s
    n, related = int(np.sum(s == 0)), bool(np.any((s > 0) & (s < len(it._used()))))
    fitted = ANALYSIS.relation if related else SETTINGS.alone
    if n > fitted + 1:
        return
    missing = fitted + 2 - n
    price = 0.0 if it.source_costs.unknown(0) else missing * it.source_costs.expected(0, it.measure.median)
    more = f"{plural(missing).capitalize()} more would show whether it is right"
    more += f", for a cost of about {price:.3g}." if price > 0 else "."
    how_many = f"{plural(n)} only" if n else "no value"
    why = " (a factor, an offset and a difference are fitted to them)" if related and n else ""
    rests = "rests" if n <= fitted else "still rests in part"
    yield Finding(
        "warning" if n <= fitted else "note",
        "few evaluations",
        f"{it.names[0]} has {how_many}{why}: the error bar {rests} on what is assumed of such functions.",
        more if not n or next_choice(it) is not None else "",
    )


def few_that_vary(it: Integrator, inputs: Sequence[str]) -> Iterator[Finding]:
    """Yield that almost all of the variance of the primary source's values is that of one or two of them."""
    data = it.learner.data.values.of_source(0)
    y, n = data.y, len(data.y)
    if n < SETTINGS.fewest_values or is_constant(y):
        return
    distances = np.abs(y - np.median(y)) / np.ptp(y)  # squares of huge or tiny numbers would not be finite
    order = np.argsort(-distances, kind="stable")
    for k in range(1, n // SETTINGS.fewest_values + 1):
        if np.mean(distances[order[k:]] ** 2) > SETTINGS.hardly_vary * np.mean(distances**2):
            continue
        extreme = f"{y[order[0]]:.6g} at {location(inputs, data.X[order[0]])}"
        differ = f"one of the {n} values of {it.names[0]}, {extreme}, differs"
        if k > 1:
            differ = f"{k} of the {n} values of {it.names[0]}, such as {extreme}, differ"
        yield Finding(
            "warning",
            "few that vary",
            f"{differ} much from the others, which are almost the same: how {it.names[0]} varies, how other sources "
            "are related to it, and the error bar rest on that.",
            f"Evaluate {it.names[0]} around there, and wherever else it may be far from the others.",
        )
        return


def constant(it: Integrator) -> Iterator[Finding]:
    """Yield that all values of the primary source are the same, so that nothing is known of how it varies."""
    y = it.learner.data.values.of_source(0).y
    if primary_is_constant(it.learner.data):
        yield Finding(
            "warning",
            "constant",
            f"all {len(y)} values of {it.names[0]} are {y[0]:.6g}: they do not tell how much it varies, and the error "
            "bar is a guess.",
            "Evaluate it where it should vary.",
        )


def rise(it: Integrator, left: Residuals) -> Iterator[Finding]:
    """Yield with which evaluation the error bar rose, if it is wider now than it was with fewer evaluations."""
    primary = [i for i, e in enumerate(it.evaluations) if e.source == 0 and e.status == "ok"]
    if len(primary) < ANALYSIS.relation:  # up to there, error bars rest on assumptions
        return
    told = [(i, e.std) for i, e in enumerate(it.evaluations) if e.std > 0]
    rows = [(i, std) for i, std in told if i >= primary[ANALYSIS.relation - 1]]
    if rows and rows[-1][0] < len(it.evaluations) - 1:  # values were given since
        rows.append((len(it.evaluations) - 1, belief_of(it).estimate.std))
    if not rows or rows[-1][1] <= SETTINGS.risen * min(std for _, std in rows):
        return
    narrowest = min(range(len(rows)), key=lambda k: rows[k][1])
    rises = [(rows[k][1] / rows[k - 1][1], k) for k in range(narrowest + 1, len(rows))]
    _, k = max(rises)
    (_, before), (i, after) = rows[k - 1], rows[k]
    e, size = it.evaluations[i], float(np.abs(left.z[left.evaluations == i]).max(initial=0.0))
    name = f"evaluation {i + 1}, of {it.names[e.source]}"
    why = (
        f"its value was a surprise, {size:.1f} standard deviations from what all others predict"
        if size > SETTINGS.surprise
        else "it changed what the model takes for granted: how smooth the sources are, their noise, how they are "
        "related, or which of them tell something"
    )
    yield Finding(
        "note",
        "rise",
        f"the standard deviation was {rows[narrowest][1]:.2g} after evaluation {rows[narrowest][0] + 1} and is "
        f"{rows[-1][1]:.2g} now. It rose from {before:.2g} to {after:.2g} with {name}: {why}.",
        "Rely on the present one.",
    )


def disagreement(it: Integrator, estimate: Estimate, inputs: Sequence[str]) -> Iterator[Finding]:
    """Yield structures of the model, with or without a secondary source, whose answers are far apart."""
    for source, worth in source_worths(it).items():
        alone = worth.without
        if abs(estimate.mean - alone.mean) > SETTINGS.apart * alone.std:
            yield Finding(
                "warning",
                "disagreement",
                f"with {it.names[source]} the integral is {plus_minus(estimate.mean, estimate.std)}, without it "
                f"{plus_minus(alone.mean, alone.std)} (standard deviations): the answer rests on how it is related to "
                f"{it.names[0]}.",
                _settled_by(it, inputs, f"More evaluations of {it.names[0]} tell which is right."),
            )
    heard = [view for view in views(it) if view.weight >= SETTINGS.negligible]
    for a, b in sorted(combinations(heard, 2), key=_distance)[-1:]:
        if _distance((a, b)) <= SETTINGS.apart:
            continue
        of = "how the sources are related" if len(it._used()) > 1 else f"how {it.names[0]} varies"
        both = isinstance(belief_of(it), AveragedBelief)
        over = "two models, with values as they are and with exponentials" if both else f"several assumptions on {of}"
        yield Finding(
            "note",
            "disagreement",
            f"the model averages over {over}, which say {plus_minus(a.mean, a.std)} and "
            f"{plus_minus(b.mean, b.std)} (standard deviations), with weights of {100 * a.weight:.0f} and "
            f"{100 * b.weight:.0f} %. The error bar covers both.",
            _settled_by(it, inputs, f"More evaluations of {it.names[0]} tell which is right."),
        )


def extrapolation(it: Integrator, inputs: Sequence[str]) -> Iterator[Finding]:
    """Yield how much of the distribution of the inputs is far from all evaluations of the primary source."""
    found = uncovered(it)
    if found.share < SETTINGS.uncovered_note or not it.learner.has_primary:
        return
    yield Finding(
        "warning" if found.share >= SETTINGS.uncovered_warning else "note",
        "extrapolation",
        f"{100 * found.share:.0f} % of the inputs' distribution are far from all evaluations of {it.names[0]}, most of "
        f"all {location(inputs, found.farthest)}: there the answer is extrapolated.",
        _settled_by(it, inputs, "Evaluate it there."),
    )


def _settled_by(it: Integrator, inputs: Sequence[str], otherwise: str) -> str:
    """Return what to evaluate next and what it costs."""
    choice = next_choice(it)
    if choice is None or it.source_costs.unknown(choice.source):
        return otherwise
    price = it.source_costs.expected(choice.source, choice.x)
    return (
        f"{otherwise} What would tell most per cost is {it.names[choice.source]} at {location(inputs, choice.x)}, for "
        f"{price:.3g}."
    )


def _distance(pair: tuple[View, View]) -> float:
    """Return how far two answers are apart, in standard deviations of their difference."""
    a, b = pair
    return abs(a.mean - b.mean) / max(math.hypot(a.std, b.std), 1e-300)
