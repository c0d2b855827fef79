"""Can the answer be believed, was every source worth its money, what would more of it buy? In words.

Everything here looks at what an integrator knows; nothing is evaluated, and hyperparameters are not learned again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..design.accounting import Evaluation
from ..design.integrator import Integrator
from ..gp.posterior import Posterior
from ..inference.belief import DRAWS, Belief, FixedBelief, averaged
from ..inference.estimate import Estimate
from ..validation import Array, IntArray

FEW = 3  #: evaluations of the primary source, below which an error bar rests on what was assumed


ENOUGH = 8  #: observations, for how well they are predicted to tell anything


SURPRISED = 1.6  #: root mean square of standardised residuals, which should be one


OUTSIDE = 0.15  #: of them that may be off by more than two standard deviations


PARTS = 4  #: of the range of an input, in which residuals are compared


UNEVEN = 3.5  #: times larger in one part than in another


HARDLY = 1.05  #: times wider without a source: it did not matter


PRICEY = 0.05  #: of what was spent


SLOWEST, FASTEST = 0.1, 2.0  #: exponents of the cost between which an outlook counts with them


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing of a run.

    Attributes
    ----------
    level : str
        "good", "note" or "warning".
    about : str
        In a word or two: "failures", "few evaluations", "fit", "stationarity", "hyperparameters", "worth" or "outlook".
    text : str
        What was found.
    advice : str
        What to do about it, if there is anything to do.
    """

    level: str
    about: str
    text: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.about}: {self.text}" + (f" {self.advice}" if self.advice else "")


@dataclass(frozen=True)
class Residuals:
    """How far each observation is from what all the others say of it, in standard deviations."""

    sources: IntArray  # (N,)
    X: Array  # (N, D)
    z: Array  # (N,)

    def of(self, source: int) -> Array:
        return np.asarray(self.z[self.sources == source])

    @property
    def span(self) -> float:
        """Of an axis on which all of them are seen."""
        return max(4.0, 1.1 * float(np.abs(self.z).max(initial=0.0)))


@dataclass(frozen=True)
class Bought:
    """What a source was worth: how many times wider the error bar would be without it, and what that has cost."""

    times_wider: float
    cost: float
    share: float  #: of all that was spent

    @property
    def per_cost(self) -> float:
        """By how much it has shrunk the variance, in logarithms, for each unit of cost."""
        return 2 * math.log(max(self.times_wider, 1.0)) / self.cost if self.cost > 0 else math.inf


def residuals(posteriors: Sequence[Posterior]) -> Residuals:
    """By leaving one out, averaged over posteriors with different hyperparameters."""
    first = posteriors[0]
    mean, variance = averaged([posterior.leave_one_out() for posterior in posteriors])
    return Residuals(first.sources, first.X, (first.y - mean) / np.sqrt(variance))


def bought(it: Integrator, belief: Belief) -> dict[int, Bought]:
    """For each source that was evaluated and that the model knows."""
    total = it.spent or 1.0
    out = {}
    for source in sorted(set(belief.posteriors[0].sources.tolist())):
        ratios = [_variance_without(posterior, source) / posterior.integral()[1] for posterior in belief.posteriors]
        cost = math.fsum(e.cost for e in it.evaluations if e.source == source)
        out[source] = Bought(float(np.sqrt(np.mean(ratios))), cost, cost / total)
    return out


def _variance_without(posterior: Posterior, source: int) -> float:
    data = posterior._data
    return posterior.gp._condition(data.at(data.s != source), posterior.jitter).integral()[1]


def decay(evaluations: Sequence[Evaluation]) -> float | None:
    """The exponent p with which the error bar shrinks, like cost^-p, in the later part of a run; None if too short."""
    costs = np.cumsum([e.cost for e in evaluations])
    stds = np.array([e.std for e in evaluations])
    late = np.isfinite(stds) & (stds > 0) & (costs >= 0.25 * (costs[-1] if len(costs) else 0.0)) & (costs > 0)
    if late.sum() < ENOUGH or costs[late][-1] < 1.5 * costs[late][0]:
        return None
    return float(-np.polyfit(np.log(costs[late]), np.log(stds[late]), 1)[0])


def diagnose(it: Integrator, estimate: Estimate, inputs: Sequence[str]) -> list[Finding]:
    """All findings, what matters most first."""
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
            said.append(f"{len(failed)} of {len(of)} of {name}" + (", which was given up" if retired else ""))
            serious, last = serious or retired or len(failed) > 0.1 * len(of), failed[-1].reason
    if said:
        yield Finding(
            "warning" if serious else "note",
            "failures",
            f"evaluations failed: {', '.join(said)}. The last one with: {last}.",
            "There the estimate rests on neighbours: if they have a pattern, mend the source, or take those inputs "
            "out of the distribution.",
        )


def _few(it: Integrator) -> Iterator[Finding]:
    n = int(np.sum(it.learner.data.s == 0))
    if n < FEW:
        yield Finding(
            "warning",
            "few evaluations",
            f"{it.names[0]} has {_count(n)} only: the error bar rests on what is assumed of such functions.",
            f"Spend enough for {FEW} or more.",
        )


def _fit(it: Integrator, left: Residuals) -> Iterator[Finding]:
    for source, name in enumerate(it.names):
        z = left.of(source)
        if len(z) < ENOUGH:
            continue
        size, outside = float(np.sqrt(np.mean(z**2))), float(np.mean(np.abs(z) > 2))
        said = (
            f"predicted from all other observations, those of {name} are off by {size:.2g} times what was expected "
            f"(root mean square of {len(z)}), and {100 * outside:.0f} % of them by more than two standard deviations "
            "(5 % should be)."
        )
        if size > SURPRISED:
            yield Finding(
                "warning",
                "fit",
                said,
                "The model does not fit: look for jumps, kinks or noise that it was not told of (noise='learn'), and "
                "trust the error bar less.",
            )
        elif outside > OUTSIDE and len(z) >= 2 * ENOUGH:
            yield Finding("note", "fit", said, "A few are surprises: see where, in the picture of the residuals.")
        else:
            yield Finding("good", "fit", said)


def _evenness(it: Integrator, left: Residuals, inputs: Sequence[str]) -> Iterator[Finding]:
    """Whether residuals are much larger in one part of an input's range than in another."""
    for source, name in enumerate(it.names):
        rows = np.flatnonzero(left.sources == source)
        if len(rows) < PARTS * ENOUGH:
            continue
        for d, label in enumerate(inputs):
            order = rows[np.argsort(left.X[rows, d], kind="stable")]
            parts = np.array_split(order, PARTS)
            sizes = np.array([np.sqrt(np.median(left.z[part] ** 2)) for part in parts])
            rough = int(sizes.argmax())
            if sizes[rough] > UNEVEN * max(np.median(sizes), 1e-12) and sizes[rough] > 1.0:
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
    elif n < DRAWS / 3:
        yield Finding(
            "warning",
            "hyperparameters",
            f"of {DRAWS} draws of the hyperparameters only about {n:.0f} are different: their uncertainty is not fully "
            "in the error bar.",
            "A few more evaluations usually help.",
        )
    else:
        yield Finding(
            "good",
            "hyperparameters",
            f"averaged over {DRAWS} draws, worth {n:.0f} independent ones (effective sample).",
        )


def _worth(it: Integrator, belief: Belief) -> Iterator[Finding]:
    if len(it.names) == 1 or not (belief.posteriors[0].sources == 0).any():
        return
    sources = bought(it, belief)
    primary = sources.pop(0)
    for source, found in sources.items():
        name = it.names[source]
        cost = f"it took {100 * found.share:.2g} % of what was spent"
        times = found.per_cost / primary.per_cost if 0 < primary.per_cost < math.inf else math.inf
        money = f": for the same money, {_brief(times)} times as much as {it.names[0]}" if math.isfinite(times) else ""
        if found.times_wider < HARDLY and found.share > PRICEY:
            yield Finding(
                "note",
                "worth",
                f"{name} did not pay: without it the error bar would be no wider, and {cost}.",
                "Leave it out, or find a cheaper or better approximation.",
            )
        elif found.times_wider >= HARDLY:
            wider = f"without it the error bar would be {_brief(found.times_wider)} times wider"
            yield Finding("good", "worth", f"{name} paid: {wider}, and {cost}{money}.")
        else:
            yield Finding("note", "worth", f"{name} told little, but {cost} only.")


def _outlook(it: Integrator, estimate: Estimate) -> Iterator[Finding]:
    p = decay(it.evaluations)
    if p is None or not 0 < estimate.std < math.inf:
        return
    if p < SLOWEST:
        said = "the error bar has hardly shrunk in the later part of the run: more of the same buys little."
        yield Finding("note", "outlook", said)
        return
    fast = p > FASTEST  # it may not go on like that
    p = min(p, FASTEST)
    about, speed = ("no more than about", f"faster than cost^-{p:.0f}") if fast else ("about", f"like cost^-{p:.1f}")
    said = f"the error bar shrinks {speed}: half of it takes {about} {it.spent * 2 ** (1 / p):.3g} in total"
    share = estimate.std / abs(estimate.mean) if estimate.mean else math.inf
    if 0.01 < share < 1:
        said += f", and one percent of the integral {about} {it.spent * (100 * share) ** (1 / p):.3g}"
    now = f" It is {100 * share:.2g} % of the integral now." if share < 1 else ""
    yield Finding("note", "outlook", f"{said}.{now}")


def _brief(number: float) -> str:
    """Two digits, and no exponent for large ones."""
    return f"{number:.0f}" if 10 <= number < 1e6 else f"{number:.2g}"


def _count(n: int) -> str:
    return "one evaluation" if n == 1 else f"{n} evaluations"
