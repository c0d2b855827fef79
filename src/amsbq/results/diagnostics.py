"""Diagnosis of a run, in words: what its error bar rests on, how the model fits, what sources are worth, what is ahead.

Everything here reads the state of an integrator, and nothing is evaluated. Where a sentence says what would have been
without a source, the model is refitted without it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..design.integrator import Integrator
from ..inference.estimate import Estimate
from ..inference.preparation import is_constant
from . import assumption_findings, model_findings
from .analysis import belief_of, correlations, outlook, residuals
from .findings import Finding, Findings, brief
from .refits import SourceWorth, cost_of, source_worths


@dataclass(frozen=True)
class DiagnosticSettings:
    """Limits between what is good, worth a note, and worth a warning."""

    #: share of failed evaluations of a source from which on they are worth a warning
    failures: float = 0.1
    #: ratio of the error bars without and with a source, for the same cost, from which on the source paid: runs that
    #: were made without it had half to twice the error bar that was foreseen
    paid: float = 2.0
    #: largest absolute correlation with the primary one that is possible, below which no source is said to have paid
    related: float = 0.5
    #: ratio up to which it did not: up to there, runs without it had smaller error bars; and from which down it is safe
    #: to do without it
    did_not_pay: float = 1.0
    better_without: float = 0.5
    #: values of the primary source up to which relations to it change with the next one, whatever their intervals say
    unsettled: int = 5
    #: share of the total cost from which on a source that did not pay is worth mentioning
    pricey: float = 0.02
    #: ratio of the error bars now and in a forecast below which more of the same buys little
    hardly_narrower: float = 1.15


SETTINGS = DiagnosticSettings()


def diagnose(it: Integrator, estimate: Estimate, inputs: Sequence[str]) -> Findings:
    """Return all findings, warnings first.

    Parameters
    ----------
    it : Integrator
        The integrator of the run.
    estimate : Estimate
        The integral by that integrator.
    inputs : list of str
        Names of the inputs.
    """
    if it.learner.belief is None or not len(it.learner):
        return Findings([*_failures(it), Finding("note", "start", "nothing is known yet.")])
    left = residuals(it)
    return Findings(
        [
            *_failures(it),
            *assumption_findings.constant(it),
            *assumption_findings.few(it),
            *assumption_findings.few_that_vary(it, inputs),
            *assumption_findings.rise(it, left),
            *assumption_findings.disagreement(it, estimate, inputs),
            *assumption_findings.extrapolation(it, inputs),
            *model_findings.fit(it, left),
            *model_findings.wrong_value(it, inputs),
            *model_findings.undeclared_noise(it, inputs),
            *model_findings.evenness(it, left, inputs),
            *model_findings.transform(belief_of(it)),
            *model_findings.hyperparameters(belief_of(it), estimate),
            *_relations(it),
            *_worth(it, estimate.std),
            *_outlook(it, estimate),
        ]
    )


def _failures(it: Integrator) -> Iterator[Finding]:
    said, serious, last, interpolated = [], False, "", False
    for source, name in enumerate(it.names):
        of = [e for e in it.evaluations if e.source == source]
        failed = [e for e in of if e.status == "failed" and not e.note]  # not excluded by the user
        if failed:
            retired = source in it.failures.retired
            said.append(f"{len(failed)} of {len(of)} of {name}" + (", which was retired" if retired else ""))
            serious, last = serious or retired or len(failed) > SETTINGS.failures * len(of), failed[-1].reason
            interpolated = interpolated or len(failed) < len(of)
    if said:
        yield Finding(
            "warning" if serious else "note",
            "failures",
            f"evaluations failed: {', '.join(said)}. The last one with: {last}.",
            "Where evaluations fail, the estimate is interpolated. If failures cluster, fix the source or take those "
            "inputs out of the distribution."
            if interpolated and it.learner.has_primary
            else "Fix the source.",
        )


def _relations(it: Integrator) -> Iterator[Finding]:
    """Yield how each secondary source correlates with the primary one, or that this is not known."""
    found = correlations(it) if len(it._used()) > 1 else None
    observed, n, rests = set(it.learner.data.s.tolist()), _n_primary(it), _rests_on_few(it)
    for source in (source for source in it._usable()[len(it._used()) :] if source in observed):
        said = f"the values of {it.names[0]}, each left out in turn, are predicted no better with {it.names[source]}"
        spent = cost_of(it, source)
        advice = f"It took {spent:.3g} of the cost: leave it out, or find a better approximation." if spent else ""
        if n <= SETTINGS.unsettled:
            advice = f"With {n} values of {it.names[0]} that is not settled: each further one decides anew."
        yield Finding("note", "relation", f"{said}: it is left out of the model.", advice)
    for source, name in enumerate(it.names):
        if found is None or not 0 < source < len(found.mean) or source not in observed:
            continue
        if _is_constant(it, source):
            value = it.learner.data.values.of_source(source).y[0]
            said = f"all values of {name} are {value:.6g}: they tell nothing of how {it.names[0]} varies."
            yield Finding("note", "relation", said, "Leave it out, unless it varies elsewhere.")
            continue
        known = bool(found.known[0, source])
        said = f"the correlation of {name} with {it.names[0]} over the inputs' distribution is {found.text(0, source)}."
        more = rests if known else f"A few more evaluations of {it.names[0]} would tell."
        yield Finding("note" if more else "good", "relation", said, more)


def _worth(it: Integrator, std: float) -> Iterator[Finding]:
    """Yield whether each secondary source paid; the error bar is ``std``."""
    rests = _rests_on_few(it)
    for source, found in source_worths(it).items():
        name, others = it.names[source], "the other sources" if len(it._used()) > 2 else it.names[0]
        if _is_constant(it, source) or not 0 < found.std < math.inf or not math.isfinite(found.instead):
            continue
        instead, relation = _instead(found, others, std), correlations(it)
        related = max(-relation.low[0, source], relation.high[0, source]) >= SETTINGS.related
        if not relation.enough[0, source]:
            said = f"whether {name} paid is not known yet, as its relation to {it.names[0]} is not"
            yield Finding("note", "worth", f"{said}: {instead}, if these error bars are right.")
        elif found.gain >= SETTINGS.paid and found.predicts and related:
            yield Finding("note" if rests else "good", "worth", f"{name} paid: {instead}.", rests)
        elif found.gain >= SETTINGS.paid:
            but = f"but the values of {it.names[0]}, each left out in turn, are predicted no better with it"
            if found.predicts:
                but = f"but its correlation with {it.names[0]} is {relation.text(0, source)}"
            yield Finding("note", "worth", f"whether {name} paid is not clear: {instead}, {but}.")
        elif found.share < SETTINGS.pricey:
            yield Finding("note", "worth", f"{name} told little: {instead}.")
        elif found.gain <= SETTINGS.did_not_pay:
            leave = "Leave it out, or find" if found.gain <= SETTINGS.better_without else "Find"
            advice = "" if rests else f"{leave} a cheaper or better approximation."
            yield Finding("note", "worth", f"{name} did not pay: {instead}.", advice)
        else:
            yield Finding("note", "worth", f"{name} made little difference, if any: {instead}.")


def _n_primary(it: Integrator) -> int:
    """Return the number of values of the primary source."""
    return int(np.count_nonzero(it.learner.data.values.s == 0))


def _rests_on_few(it: Integrator) -> str:
    """Return that what is known of a secondary source may change with the next value of the primary one, if it may."""
    n = _n_primary(it)
    return "" if n > SETTINGS.unsettled else f"That rests on {n} values of {it.names[0]}, and may change with the next."


def _is_constant(it: Integrator, source: int) -> bool:
    """Return whether all of several values of a source are the same."""
    y = it.learner.data.values.of_source(source).y
    return len(y) > 1 and is_constant(y)


def _instead(found: SourceWorth, others: str, std: float) -> str:
    """Return a clause that compares the error bar with that of the same cost without a source.

    Both are relative to the error bar ``std``: of many outputs, ``found`` is by a model of this one.
    """
    taken = f"it took {100 * found.share:.2g} % of what was spent" if found.cost > 0 else "it cost nothing"
    if found.bought:
        money = f"{taken}; with that spent on {others} instead, "
    else:
        too_little = f", which pays for no evaluation of {others}" if found.cost > 0 else ""
        money = f"{taken}{too_little}; without it "
    times = f", {brief(found.gain)} times as much" if found.gain >= SETTINGS.paid else ""
    without = found.instead / found.std * std
    return f"{money}the standard deviation would be about {without:.2g}{times} (it is {std:.2g})"


def _outlook(it: Integrator, estimate: Estimate) -> Iterator[Finding]:
    """Yield what the forecast says, in the numbers of its picture."""
    ahead = outlook(it)
    if len(ahead) < 2 or not 0 < estimate.std < math.inf or not ahead[0][1] > 0:
        return
    of_mean = it.target == "mean"
    now, what = (estimate.std, "") if of_mean else (ahead[0][1], " of the target")
    rows = [(cost, now * std / ahead[0][1]) for cost, std in ahead]  # of many outputs, they are by a model of this one
    total, std = rows[-1]
    said = f"the forecast is a standard deviation{what} of {std:.2g} for {total:.4g} in total (now {now:.2g} for "
    said += f"{it.committed:.4g})"
    said += _first(rows, 0.5 * now, "half of what it is now")
    if of_mean and 0.01 * abs(estimate.mean) < now:
        said += _first(rows, 0.01 * abs(estimate.mean), "one percent of the integral")
    little = now < SETTINGS.hardly_narrower * std
    yield Finding("note", "outlook", f"{said}.", "More of the same buys little." if little else "")


def _first(ahead: Sequence[tuple[float, float]], std: float, what: str) -> str:
    """Return a clause that says for which cost a forecast first reaches a standard deviation, if it does."""
    cost = next((cost for cost, expected in ahead if expected <= std), None)
    return "" if cost is None else f"; {what} is expected for {cost:.4g}"
