"""Findings on a run, in words: how the model fits, what every source was worth, what more evaluations would buy.

Everything here reads the state of an integrator; nothing is evaluated, and hyperparameters are not refitted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ..design.accounting import Evaluation
from ..design.integrator import Integrator
from ..inference.belief import SETTINGS as LEARNING
from ..inference.belief import Belief, FixedBelief
from ..inference.estimate import Estimate
from .analysis import Residuals, residuals, source_worths

Level: TypeAlias = Literal["good", "note", "warning"]


@dataclass(frozen=True)
class DiagnosticSettings:
    """Limits between what is good, worth a note, and worth a warning."""

    #: evaluations of the primary source below which an error bar rests on prior assumptions
    few_primary: int = 3
    #: observations of a source from which on their residuals tell anything
    enough: int = 8
    #: root mean square of standardised residuals, which should be one, from which on the model does not fit
    misfit: float = 1.6
    #: share of residuals beyond two standard deviations, which should be 5 %, from which on there are surprises
    surprises: float = 0.15
    #: parts of the range of an input in which residuals are compared
    parts: int = 4
    #: ratio of the residuals in one part to those in a typical one from which on a source is not stationary
    uneven: float = 3.5
    #: share of failed evaluations of a source from which on they are worth a warning
    failures: float = 0.1
    #: ratio of the error bars without and with a source below which the source did not matter
    hardly_wider: float = 1.05
    #: share of the total cost from which on a source that did not matter is worth a note
    pricey: float = 0.05
    #: exponents p of an error bar like cost^-p: below the first it does not shrink, beyond the second the trend of few
    #: evaluations is not extrapolated
    slowest_decay: float = 0.1
    fastest_decay: float = 2.0


SETTINGS = DiagnosticSettings()


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing of a run.

    Attributes
    ----------
    level : str
        "good", "note" or "warning".
    about : str
        The subject in a word or two: "failures", "few evaluations", "fit", "stationarity", "hyperparameters", "worth"
        or "outlook".
    text : str
        What was found.
    advice : str
        What to do about it, if there is anything to do.
    """

    level: Level
    about: str
    text: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.about}: {self.text}" + (f" {self.advice}" if self.advice else "")


def decay(evaluations: Sequence[Evaluation]) -> float | None:
    """Return the exponent p of an error bar that shrinks like cost^-p in the later part of a run; None if too short."""
    costs = np.cumsum([e.cost for e in evaluations])
    stds = np.array([e.std for e in evaluations])
    late = np.isfinite(stds) & (stds > 0) & (costs >= 0.25 * (costs[-1] if len(costs) else 0.0)) & (costs > 0)
    if late.sum() < SETTINGS.enough or costs[late][-1] < 1.5 * costs[late][0]:
        return None
    return float(-np.polyfit(np.log(costs[late]), np.log(stds[late]), 1)[0])


def diagnose(it: Integrator, estimate: Estimate, inputs: Sequence[str]) -> list[Finding]:
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
    belief = it.learner.belief
    findings = [*_failures(it)]
    if belief is None or not len(it.learner):
        findings.append(Finding("note", "start", "nothing is known yet."))
    else:
        left = residuals(belief.posteriors)
        findings += [
            *_few(it),
            *_fit(it, left),
            *_evenness(it, left, inputs),
            *_draws(belief, estimate),
            *_worth(it, belief),
            *_outlook(it, estimate),
        ]
    order = ("warning", "note", "good")
    return sorted(findings, key=lambda finding: order.index(finding.level))


def _failures(it: Integrator) -> Iterator[Finding]:
    said, serious, last = [], False, ""
    for source, name in enumerate(it.names):
        of = [e for e in it.evaluations if e.source == source]
        failed = [e for e in of if e.status == "failed"]
        if failed:
            retired = source in it.failures.retired
            said.append(f"{len(failed)} of {len(of)} of {name}" + (", which was retired" if retired else ""))
            serious, last = serious or retired or len(failed) > SETTINGS.failures * len(of), failed[-1].reason
    if said:
        yield Finding(
            "warning" if serious else "note",
            "failures",
            f"evaluations failed: {', '.join(said)}. The last one with: {last}.",
            "Where evaluations fail, the estimate is interpolated. If failures cluster, fix the source or take those "
            "inputs out of the distribution.",
        )


def _few(it: Integrator) -> Iterator[Finding]:
    n = int(np.sum(it.learner.data.s == 0))
    if n < SETTINGS.few_primary:
        yield Finding(
            "warning",
            "few evaluations",
            f"{it.names[0]} has {_count(n)} only: the error bar rests on what is assumed of such functions.",
            f"Spend enough for {SETTINGS.few_primary} or more.",
        )


def _fit(it: Integrator, left: Residuals) -> Iterator[Finding]:
    for source, name in enumerate(it.names):
        z = left.of(source)
        if len(z) < SETTINGS.enough:
            continue
        size, outside = float(np.sqrt(np.mean(z**2))), float(np.mean(np.abs(z) > 2))
        said = (
            f"predicted from all other observations, those of {name} are off by {size:.2g} times what was expected "
            f"(root mean square of {len(z)}), and {100 * outside:.0f} % of them by more than two standard deviations "
            "(5 % should be)."
        )
        if size > SETTINGS.misfit:
            yield Finding(
                "warning",
                "fit",
                said,
                "The model does not fit: look for jumps, kinks or noise that it was not told of (noise='learn'), and "
                "trust the error bar less.",
            )
        elif outside > SETTINGS.surprises and len(z) >= 2 * SETTINGS.enough:
            yield Finding("note", "fit", said, "A few are surprises: see where, in the picture of the residuals.")
        else:
            yield Finding("good", "fit", said)


def _evenness(it: Integrator, left: Residuals, inputs: Sequence[str]) -> Iterator[Finding]:
    """Compare the residuals in the parts of each input's range."""
    for source, name in enumerate(it.names):
        rows = np.flatnonzero(left.sources == source)
        if len(rows) < SETTINGS.parts * SETTINGS.enough:
            continue
        for d, label in enumerate(inputs):
            order = rows[np.argsort(left.X[rows, d], kind="stable")]
            parts = np.array_split(order, SETTINGS.parts)
            sizes = np.array([np.sqrt(np.median(left.z[part] ** 2)) for part in parts])
            rough = int(sizes.argmax())
            if sizes[rough] > SETTINGS.uneven * max(np.median(sizes), 1e-12) and sizes[rough] > 1.0:
                low, high = left.X[parts[rough], d].min(), left.X[parts[rough], d].max()
                yield Finding(
                    "warning",
                    "stationarity",
                    f"{name} is much harder to predict for {label} between {low:.4g} and {high:.4g} than elsewhere "
                    f"({sizes[rough] / np.median(sizes):.0f} times): it seems to vary faster there.",
                    f"The model takes functions to vary alike everywhere. Integrate that part by itself, or use an "
                    f"input in which it is smoother, such as the logarithm of {label}.",
                )


def _draws(belief: Belief, estimate: Estimate) -> Iterator[Finding]:
    n = estimate.effective_draws
    if isinstance(belief, FixedBelief):
        yield Finding(
            "note", "hyperparameters", "given, not learned: the error bar is right if they are.", "See whether it fits."
        )
    elif np.isinf(estimate.dof):
        yield Finding(
            "note",
            "hyperparameters",
            "only the most probable hyperparameters were used: the error bar does not know that they are uncertain.",
            "model='auto' averages over them.",
        )
    elif n < LEARNING.fewest_effective * len(estimate.centres):
        yield Finding(
            "warning",
            "hyperparameters",
            f"of {len(estimate.centres)} draws of the hyperparameters only about {n:.0f} are different: their "
            "uncertainty is not fully in the error bar.",
            "A few more evaluations usually help.",
        )
    else:
        yield Finding(
            "good",
            "hyperparameters",
            f"averaged over draws that are worth {n:.0f} independent ones (effective sample size).",
        )


def _worth(it: Integrator, belief: Belief) -> Iterator[Finding]:
    if len(it.names) == 1 or not (belief.posteriors.data.s == 0).any():
        return
    sources = source_worths(it, belief)
    primary = sources.pop(0)
    for source, found in sources.items():
        name = it.names[source]
        cost = f"it took {100 * found.share:.2g} % of what was spent"
        times = found.per_cost / primary.per_cost if 0 < primary.per_cost < math.inf else math.inf
        money = f": per unit of cost, {_brief(times)} times as much as {it.names[0]}" if math.isfinite(times) else ""
        if found.times_wider < SETTINGS.hardly_wider and found.share > SETTINGS.pricey:
            yield Finding(
                "note",
                "worth",
                f"{name} did not pay: without it the error bar would be hardly wider, and {cost}.",
                "Leave it out, or find a cheaper or better approximation.",
            )
        elif found.times_wider >= SETTINGS.hardly_wider:
            wider = f"without it the error bar would be {_brief(found.times_wider)} times as wide"
            yield Finding("good", "worth", f"{name} paid: {wider}, and {cost}{money}.")
        else:
            yield Finding("note", "worth", f"{name} told little, but {cost} only.")


def _outlook(it: Integrator, estimate: Estimate) -> Iterator[Finding]:
    p = decay(it.evaluations)
    if p is None or not 0 < estimate.std < math.inf:
        return
    if p < SETTINGS.slowest_decay:
        said = "the error bar has hardly shrunk in the later part of the run: more of the same buys little."
        yield Finding("note", "outlook", said)
        return
    fast = p > SETTINGS.fastest_decay  # it may not go on like that
    p = min(p, SETTINGS.fastest_decay)
    about, speed = ("no more than about", f"faster than cost^-{p:.0f}") if fast else ("about", f"like cost^-{p:.1f}")
    said = f"the error bar shrinks {speed}: halving it takes a budget of {about} {it.spent * 2 ** (1 / p):.3g} in total"
    share = estimate.std / abs(estimate.mean) if estimate.mean else math.inf
    if 0.01 < share < 1:
        said += f", and one percent of the integral {about} {it.spent * (100 * share) ** (1 / p):.3g}"
    now = f" It is {100 * share:.2g} % of the integral now." if share < 1 else ""
    yield Finding("note", "outlook", f"{said}.{now}")


def _brief(number: float) -> str:
    """Return a number with two digits, and without an exponent if it is large."""
    return f"{number:.0f}" if 10 <= number < 1e6 else f"{number:.2g}"


def _count(n: int) -> str:
    return "one evaluation" if n == 1 else f"{n} evaluations"
