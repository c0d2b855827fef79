"""`Finding`: one thing worth knowing about a run, in words; and the checks that produce findings.

Findings are about what the error bar rests on, how well the model fits, what each source was worth, and what more
evaluations would give. Checks read the state of an integrator and evaluate no source. If a finding compares the run
with one that lacks a source, the model is refitted without this source.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np
import scipy

from ..certificates.certificate import Certificate
from ..common.markup import table
from ..common.validation import Array, plus_minus
from ..design.decisions import Decisions
from ..design.evaluations import NO_GRADIENT
from ..design.failures import wrong_range
from ..design.labels import COST, Labels
from ..gp.data import Data
from ..inference.particles import SETTINGS as LEARNING
from ..inference.preparation import is_constant, primary_is_constant
from ..posterior.correlations import SETTINGS as CORRELATIONS
from ..posterior.estimate import Estimate
from ..posterior.posterior import View
from ..posterior.targets import Exceedance
from .analysis import (
    SETTINGS,
    correlations,
    failing,
    next_choice,
    outlook,
    posterior_of,
    refinement,
    residuals,
    uncovered,
    unsearched,
    views,
)
from .outliers import hidden_noise, outlier, repeated_noise
from .refits import SourceWorth, cost_of, many_levels, source_worths

Level: TypeAlias = Literal["good", "note", "warning"]


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing about a run.

    Attributes
    ----------
    level : str
        "good", "note" or "warning".
    about : str
        The subject in a word or two: "failures", "constant", "few evaluations", "few that vary", "rise",
        "disagreement", "extrapolation", "fit", "outlier", "order", "limit", "gradients", "noise", "stationarity",
        "transform", "refinement", "hyperparameters", "relation", "worth", "outlook" or "certificate".
    text : str
        What was found.
    advice : str
        What to do about it; empty if there is nothing to do.
    """

    level: Level
    about: str
    text: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.about}: {self.text}" + (f" {self.advice}" if self.advice else "")


class Findings(list[Finding]):
    """A list of findings, warnings first, printed with one finding on each line.

    >>> print(Findings([Finding("good", "fit", "it fits."), Finding("warning", "noise", "there is.", "Declare it.")]))
    warning  noise: there is. Declare it.
    good     fit: it fits.
    """

    def __init__(self, findings: Iterable[Finding]) -> None:
        order = ("warning", "note", "good")
        super().__init__(sorted(findings, key=lambda finding: order.index(finding.level)))

    def __str__(self) -> str:
        return "\n".join(f"{finding.level:8} {finding}" for finding in self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return a table with a row for each finding, for notebooks."""
        rows = [(finding.level, finding.about, f"{finding.text} {finding.advice}".strip()) for finding in self]
        return table(("", "about", "finding"), rows)


@dataclass(frozen=True)
class Case:
    """The subject of the checks: an integrator, its estimate of the integral, and the names of the inputs."""

    it: Decisions
    estimate: Estimate
    inputs: Sequence[str]

    @property
    def error_bar(self) -> str:
        """The name of the integral's standard deviation; it mentions the mean if the target is another quantity."""
        return "standard deviation" if self.it.problem.targets[0] == "mean" else "standard deviation of the mean"

    @property
    def labels(self) -> Labels:
        """Names and units of the inputs, the output and the cost."""
        return self.it.problem.labels

    @property
    def unit(self) -> str:
        """The unit of the output."""
        return self.labels.unit()

    def value(self, number: float, digits: int = 6) -> str:
        """Return a number with the unit of the output, as text."""
        return self.labels.measured(f"{number:.{digits}g}")

    def paid(self, cost: float, digits: int = 3) -> str:
        """Return a cost with its unit, as text."""
        return self.labels.measured(f"{cost:.{digits}g}", COST)

    def at(self, x: Sequence[float] | Array) -> str:
        """Return a location as text: the values of all inputs with their names."""
        return self.labels.at(self.inputs, x)


#: level, text, and advice ("" for none)
Sentence: TypeAlias = tuple[Level, str, str]

#: what transforms do, in words
TRANSFORM_WORDS = {
    "root": "their distance from the bound is modelled as a square",
    "log": "their distance from the bound is modelled as an exponential, which levels off where it is almost zero",
    "exp": "their logarithm is modelled, and its exponential is linearised where the logarithm is uncertain",
    "peak": "a quadratic is fitted to them, and the process models the residuals",
    "arcsine": "their position within the range is modelled as a squared sine",
    "logit": "their position within the range is modelled as a logistic function",
    "cut": "they are modelled as if there were no bound, and truncated there",
}


def _failures(case: Case) -> Iterator[Sentence]:
    it, retired = case.it, case.it.policy.failures.retired
    failed = [e for e in it.evaluations if e.status == "failed" and not e.note]  # not excluded by the user
    made, lost = (Counter(e.source for e in some) for some in (it.evaluations, failed))
    for bulk in it.in_bulk.made:
        if bulk.failed:
            yield (
                "warning",
                f"{it.names[bulk.source]} failed at {bulk.failed} of the {bulk.n} locations at which it was evaluated "
                f"in bulk, the first time with: {bulk.reason or 'a value that is not acceptable'}.",
                "Its integral is not used, and it adds no information at those inputs: fix the source.",
            )
    said = [
        f"{n} of {made[source]} of {it.names[source]}" + (", which was retired" if source in retired else "")
        for source, n in sorted(lost.items())
    ]
    serious = any(source in retired or n > SETTINGS.material * made[source] for source, n in lost.items())
    interpolated = it.learner.has_primary and lost != {source: made[source] for source in lost}
    for source in (source for source, n in sorted(lost.items()) if n == made[source]):
        if hint := wrong_range([e.reason for e in failed if e.source == source]):
            yield "warning", f"{it.names[source]}: {hint}.", ""
    for last in sorted(failed, key=lambda e: e.source)[-1:]:
        yield (
            "warning" if serious else "note",
            f"evaluations failed: {', '.join(said)}. The last failure: {last.reason}.",
            "Where evaluations fail, the estimate is interpolated. If failures cluster, fix the source or remove those "
            "inputs from the distribution."
            if interpolated
            else "Fix the source.",
        )


def _constant(case: Case) -> Iterator[Sentence]:
    y, name = _values(case.it).y, case.it.names[0]
    if primary_is_constant(case.it.learner.data):
        yield (
            "warning",
            f"all {len(y)} values of {name} are {case.value(y[0])}: they do not show how much it varies, and the error "
            "bar is a guess, based on the spread of other sources or on the size of the values.",
            "Evaluate it where it is expected to vary.",
        )


def _few(case: Case) -> Iterator[Sentence]:
    it, s = case.it, case.it.learner.data.values.s
    n, related = len(_values(it).y), bool(np.any((s > 0) & (s < len(it.policy.used))))
    fitted = CORRELATIONS.relation if related else CORRELATIONS.relation - 1  # without other sources, no factor
    missing = fitted + SETTINGS.settling - n
    if missing <= 0:
        return
    price = 0.0 if it.ledger.costs.unknown(0) else missing * it.ledger.costs.expected(0, it.measure.median)
    more = f"{_more(missing).capitalize()} would show whether it is right"
    how_many = f"only {_evaluations(n)}" if n else "no value"
    why = " (a factor, an offset and a difference are fitted to them)" if related and n else ""
    yield (
        "warning" if n <= fitted else "note",
        f"{it.names[0]} has {how_many}{why}: the error bar {'rests' if n <= fitted else 'still rests in part'} on "
        "prior assumptions about such functions.",
        (f"{more}, for a cost of about {case.paid(price)}." if price > 0 else f"{more}.")
        if not n or next_choice(it) is not None
        else "",
    )


def _few_that_vary(case: Case) -> Iterator[Sentence]:
    data, name = _values(case.it), case.it.names[0]
    y, n = data.y, len(data.y)
    if n < SETTINGS.values_per_extreme or is_constant(y):
        return
    distances = np.abs(y - np.median(y)) / np.ptp(y)  # squares of huge or tiny numbers would not be finite
    order, allowed = np.argsort(-distances, kind="stable"), SETTINGS.max_rest_variance * np.mean(distances**2)
    counts = range(1, n // SETTINGS.values_per_extreme + 1)
    if k := next((k for k in counts if np.mean(distances[order[k:]] ** 2) <= allowed), 0):
        extreme = f"{case.value(y[order[0]])} at {case.at(data.X[order[0]])}"
        several = f"{k} of the {n} values of {name}, such as {extreme}, differ"
        yield (
            "warning",
            f"{several if k > 1 else f'one of the {n} values of {name}, {extreme}, differs'} greatly from the others, "
            f"which are almost equal: how {name} varies, how other sources are related to it, and the error bar all "
            f"rest on {'these few values' if k > 1 else 'this value'}.",
            f"Evaluate {name} around there, and wherever else its values may stand out.",
        )


def _rise(case: Case) -> Iterator[Sentence]:
    it, left = case.it, residuals(case.it)
    primary = [i for i, e in enumerate(it.evaluations) if e.source == 0 and e.status == "ok"]
    if len(primary) < CORRELATIONS.relation:  # with fewer values, error bars rest on prior assumptions
        return
    rows = [(i, e.std) for i, e in enumerate(it.evaluations) if e.std > 0 and i >= primary[CORRELATIONS.relation - 1]]
    if rows and rows[-1][0] < len(it.evaluations) - 1:  # values were added by the user since
        rows.append((len(it.evaluations) - 1, posterior_of(it).estimate.std))
    lowest, narrowest = min(((std, k) for k, (_, std) in enumerate(rows)), default=(math.inf, 0))
    if not rows or rows[-1][1] <= SETTINGS.min_rise * lowest:
        return
    _, k = max((rows[k][1] / rows[k - 1][1], k) for k in range(narrowest + 1, len(rows)))
    (_, before), (i, after) = rows[k - 1], rows[k]
    size = float(np.abs(left.z[left.evaluations == i]).max(initial=0.0))
    why = (
        f"its value was a surprise, {size:.1f} standard deviations from what all others predict"
        if size > SETTINGS.disagreement
        else "it changed what the model has learned about the sources: how smooth they are, their noise, how they are "
        "related, or which of them are informative"
    )
    yield (
        "note",
        f"the {case.error_bar} was {lowest:.2g} after evaluation {rows[narrowest][0] + 1} and is "
        f"{case.value(rows[-1][1], 2)} now. It rose from {before:.2g} to {after:.2g} with evaluation {i + 1}, of "
        f"{it.names[it.evaluations[i].source]}: {why}.",
        "Rely on the current one.",
    )


def _disagreement(case: Case) -> Iterator[Sentence]:
    it, mean, name = case.it, case.estimate.mean, case.it.names[0]
    settled = f"More evaluations of {name} would show which is right."
    for source, worth in source_worths(it).items():
        alone = worth.without
        if abs(mean - alone.mean) > SETTINGS.disagreement * alone.std:
            yield (
                "warning",
                f"with {it.names[source]} the integral is {plus_minus(mean, case.estimate.std, case.unit)}, without it "
                f"{plus_minus(alone.mean, alone.std, case.unit)} (standard deviations): the answer depends on how it "
                f"is related to {name}.",
                _settled_by(case, settled),
            )
    pairs = combinations([view for view in views(it) if view.weight >= SETTINGS.material], 2)
    for a, b in sorted((pair for pair in pairs if _distance(pair) > SETTINGS.disagreement), key=_distance)[-1:]:
        of = "how the sources are related" if len(it.policy.used) > 1 else f"how {name} varies"
        alternatives = posterior_of(it).components
        over = f"several assumptions about {of}"
        if len({each.latent.n_sources for each in alternatives}) > 1:
            over = "models with the other sources and without them"
        elif len(alternatives) > 1:
            assumed = all(each.transform.range.assumed for each in alternatives)
            over = "models with and without an exponential transform" if assumed else "several transforms"
        yield (
            "note",
            f"the model averages over {over}, which give {plus_minus(a.mean, a.std, case.unit)} and "
            f"{plus_minus(b.mean, b.std, case.unit)} (standard deviations), with weights of {100 * a.weight:.0f} and "
            f"{100 * b.weight:.0f} %. The error bar covers both.",
            _settled_by(case, settled),
        )


def _extrapolation(case: Case) -> Iterator[Sentence]:
    share, farthest = uncovered(case.it)
    if share >= SETTINGS.material and case.it.learner.has_primary:
        yield (
            "warning" if share >= SETTINGS.serious * SETTINGS.material else "note",
            f"{100 * share:.0f} % of the distribution of the inputs is far from all evaluations of {case.it.names[0]}, "
            f"farthest at {case.at(farthest)}: there the answer is extrapolated.",
            _settled_by(case, "Evaluate it there."),
        )


def _unexplored(case: Case) -> Iterator[Sentence]:
    it, y = case.it, _values(case.it).y
    if len(y) < 2 or not math.isfinite(spread := float(np.ptp(y))) or it.problem.logarithms[0]:
        return
    name, beyond = it.names[0], case.estimate.std if it.problem.targets[0] == "mean" else math.inf
    for part, where in (
        (unsearched(it), "in tails that are not searched"),
        (failing(it), "closest to failed evaluations"),
    ):
        if part.share * spread > beyond:
            yield (
                "note",
                f"{100 * part.share:.2g} % of the distribution of the inputs is {where}, such as {case.at(part.x)}: "
                f"the error bar assumes that {name} continues smoothly there. If its values differ from that by the "
                f"range of those so far, {case.value(spread, 2)}, the integral differs by "
                f"{case.value(part.share * spread, 2)}.",
                "Evaluate it there if it may behave differently.",
            )


def _fit(case: Case) -> Iterator[Sentence]:
    for source, name in enumerate(case.it.names):
        z = residuals(case.it).of(source)
        if len(z) < SETTINGS.min_observations or _is_constant(case.it, source):
            continue
        size, outside = float(np.sqrt(np.mean(z**2))), int(np.count_nonzero(np.abs(z) > SETTINGS.disagreement))
        by_chance = scipy.stats.binom(len(z), 2 * scipy.stats.norm.sf(SETTINGS.disagreement))
        said = (
            f"leave-one-out predictions of {name} are off by {size:.2g} predicted standard deviations (root mean "
            f"square of {len(z)}), {outside} of them by more than two ({by_chance.mean():.2g} expected)."
        )
        surprises = bool(by_chance.sf(outside - 1) < SETTINGS.improbable)
        yield _first_of(
            (
                size > SETTINGS.misfit,
                "warning",
                said,
                "The model does not fit: look for jumps and kinks, and trust the error bar less.",
            ),
            (surprises, "note", said, "That is more than expected by chance: the plot of the residuals shows where."),
            (True, "good", said, ""),
        )


def _outlier(case: Case) -> Iterator[Sentence]:
    if (found := outlier(case.it)) is not None:
        e = case.it.evaluations[found.evaluation]
        called = "given" if e.id is None else f"id {e.id}"
        yield (
            "warning",
            f"evaluation {found.evaluation + 1} ({called}), {case.it.names[e.source]} at {case.at(e.x)}, has the value "
            f"{case.value(float(e.value))}, where all others predict {plus_minus(found.mean, found.std, case.unit)} "
            "(standard deviation).",
            "Check that evaluation: either its value is wrong, or the source changes abruptly there. The answer "
            "includes it; in a run with a journal, `amsbq exclude` removes it and `amsbq correct` replaces it.",
        )


def _limit(case: Case) -> Iterator[Sentence]:
    target, y = case.it.problem.targets[0], _values(case.it).y
    if isinstance(target, Exceedance) and len(y) > 1:
        low, high = float(y.min()), float(y.max())
        if not low - (high - low) <= target.limit <= high + (high - low):
            yield (
                "warning",
                f"the limit of the target, {case.value(target.limit, 4)}, is far from all values of "
                f"{case.it.names[0]}, which are between {low:.4g} and {case.value(high, 4)}: the probability of "
                "exceeding it is extrapolated.",
                "Check its unit.",
            )


def _gradients(case: Case) -> Iterator[Sentence]:
    it = case.it
    known = it.learner.differentiated()
    for source, (name, each) in enumerate(zip(it.names, it.sources, strict=True)):
        made = sum(e.source == source and e.status == "ok" and e.id is not None for e in it.evaluations)
        ignored = [e.note for e in it.evaluations if e.source == source and e.note.startswith(NO_GRADIENT)]
        if ignored:
            yield (
                "warning",
                f"{name} has {_evaluations(len(ignored))} without a usable gradient. The most recent: {ignored[-1]}. "
                "Their values are still used.",
                "Return one derivative per input, with NaN where it is unknown.",
            )
        elif each.gradient is True and made and source not in known:
            yield (
                "warning",
                f"{name} was declared to return gradients, but none of its {_evaluations(made)} has one.",
                "Return Observation(value, gradient=...), or omit gradient=True.",
            )


def _order(case: Case) -> Iterator[Sentence]:
    for source, name in enumerate(case.it.names):
        made = [e for e in case.it.evaluations if e.source == source and e.status == "ok" and e.id is not None]
        y = np.array([e.value for e in made])
        for k in range(SETTINGS.min_run, len(y) - SETTINGS.min_run + 1):
            before, after = y[:k], y[k:]
            gap = max(after.min() - before.max(), before.min() - after.max())
            if gap > SETTINGS.jump * max(np.ptp(before), np.ptp(after)):
                side = "above" if after.min() > before.max() else "below"
                yield (
                    "warning",
                    f"all values of {name} from its evaluation {k + 1} onwards are {side} the earlier ones, by at "
                    f"least {case.value(float(gap), 3)}: they may depend on when it was called.",
                    f"Evaluate it again at {case.at(made[0].x)}, where it returned {case.value(y[0])}: a different "
                    "value means that it depends on more than its inputs.",
                )
                break


def _noise(case: Case) -> Iterator[Sentence]:
    it = case.it
    for source, std in repeated_noise(it).items():
        yield (
            "warning",
            f"{it.names[source]} was declared noise-free, but returned different values at the same location, with a "
            f"standard deviation of {case.value(std, 2)}.",
            f"Use noise='learn' for {it.names[source]}.",
        )
    for source, std in hidden_noise(it).items():
        name, data, unknown = it.names[source], _values(it, source), it.ledger.costs.unknown(source)
        cost = "" if unknown else f", for a cost of {case.paid(it.ledger.costs.expected(source, data.X[-1]))}"
        yield (
            "warning",
            f"the values of {name} scatter around a smooth function as if they had noise of standard deviation "
            f"{case.value(std, 2)} ({_brief(100 * std / float(np.std(data.y)))} % of their spread), more than was "
            "declared. This is inferred by the model only.",
            f"To settle it, evaluate {name} again where it was evaluated before, at {case.at(data.X[-1])}{cost}: "
            "a different value means noise, which noise='learn' accounts for; the same value means that it varies "
            "faster than its evaluations can resolve.",
        )


def _stationarity(case: Case) -> Iterator[Sentence]:
    left = residuals(case.it)
    for source, name in enumerate(case.it.names):
        rows = np.flatnonzero(left.sources == source)
        for d, label in enumerate(case.inputs if len(rows) >= SETTINGS.parts * SETTINGS.min_observations else ()):
            parts = np.array_split(rows[np.argsort(left.X[rows, d], kind="stable")], SETTINGS.parts)
            sizes = np.array([np.sqrt(np.median(left.z[part] ** 2)) for part in parts])
            rough, usual = int(sizes.argmax()), np.median(sizes)
            if sizes[rough] > SETTINGS.min_unevenness * max(usual, 1e-12) and sizes[rough] > 1.0:
                low, high = left.X[parts[rough], d].min(), left.X[parts[rough], d].max()
                such_as = f", such as the logarithm of {label}" if case.it.measure.bounds[d, 0] >= 0 else ""
                yield (
                    "warning",
                    f"{name} is much harder to predict for {label} between {low:.4g} and "
                    f"{case.labels.measured(f'{high:.4g}', label)} than elsewhere "
                    f"({sizes[rough] / usual:.0f} times): it seems to vary faster there, or next to it.",
                    f"The model is stationary: it assumes the same smoothness everywhere. Integrate that part "
                    f"separately, or use an input in which it is smoother{such_as}.",
                )


def _transform(case: Case) -> Iterator[Sentence]:
    for component in posterior_of(case.it).components:
        known = component.transform.range
        if component.transform.affine or component.weight < SETTINGS.material:
            continue
        above = math.isfinite(known.low)
        end = f"above {case.value(known.low, 4)}" if above else f"below {case.value(known.high, 4)}"
        share = f", with a weight of {100 * component.weight:.0f} %" if component.weight < 0.995 else ""
        said = (
            f"the distance of the values {end} is modelled as an exponential{share}: leave-one-out predictions are "
            "better with this transform than without it."
        )
        yield _first_of(
            (known.assumed, "note", said, "If a bound of the values is known, declare it by output_range."),
            (
                True,
                "note",
                f"the values are {known.description}: {TRANSFORM_WORDS[component.transform.kind]}{share}.",
                "",
            ),
        )


def _refinement(case: Case) -> Iterator[Sentence]:
    found, it = refinement(case.it), case.it
    for column, each in enumerate(found.exponents if found is not None else ()):
        values = sorted({float(size) for size in found.sizes[:, column]} if found is not None else ())
        if len(values) < SETTINGS.min_knob_values:
            few = "one value" if len(values) == 1 else "two values"
            yield (
                "note",
                f"{few} of {each.knob} cannot determine the power with which errors shrink: the error bar includes the "
                f"uncertainty of the {each}.",
                f"At least three values of {each.knob} are needed to determine it.",
            )
        elif each.low < SETTINGS.min_exponent:
            yield (
                "warning",
                f"errors may not shrink noticeably with {each.knob}: {each}.",
                f"Either the values of {each.knob} are too coarse to show it, or the sources are not levels of one "
                "simulator, or other errors dominate.",
            )
        else:
            yield "good", f"errors shrink with {each.knob}: {each}.", ""
    if found is not None and found.bias is not None:
        low, high = found.bias.interval(0.95)
        yield (
            "note",
            f"the integral of {it.names[0]} differs from the limit by "
            f"{plus_minus(found.bias.mean, found.bias.std, case.unit)} (95 %: {low:.3g} to "
            f"{high:.3g}); the answer is that of the limit.",
            "",
        )


def _hyperparameters(case: Case) -> Iterator[Sentence]:
    estimate, given = case.estimate, case.it.problem.model.given
    n, drawn = estimate.effective_draws, len(estimate.centres)
    few = f"the {drawn} hyperparameter draws are worth only about {n:.0f} independent ones: their uncertainty is not"
    modes = "only the most probable hyperparameters were used: the error bar does not include their uncertainty."
    if given or not np.isnan(estimate.mean):
        yield _first_of(
            (given, "note", "given, not learned: the error bar is right if they are.", "Check the fit."),
            (bool(np.isinf(estimate.dof)), "note", modes, "model='auto' averages over them."),
            (
                n < LEARNING.fewest_effective * drawn,
                "warning",
                f"{few} fully included in the error bar.",
                "A few more evaluations usually help.",
            ),
            (True, "good", f"averaged over draws that are worth {n:.0f} independent ones (effective sample size).", ""),
        )


def _relation(case: Case) -> Iterator[Sentence]:
    it, first, rests = case.it, case.it.names[0], _rests_on_few(case.it)
    others = posterior_of(it).secondary_weight
    observed = sorted(set(it.learner.data.s.tolist()) & set(it.problem.usable) - {0})
    for source in (
        source for source in observed if others < SETTINGS.min_model_weight and not _is_constant(it, source)
    ):
        said = f"leave-one-out predictions of {first} are no better with {it.names[source]}"
        spent = cost_of(it, source)
        advice = f"It took {case.paid(spent)} of the cost: omit it, or find a better approximation." if spent else ""
        again = f"With {len(_values(it).y)} values of {first} this is not settled: each further one may change it."
        counts = f"models with it have a weight of {100 * others:.0f} %" if others else "it is left out of the model"
        yield "note", f"{said}: {counts}.", again if rests else advice
    for source in (source for source in observed if _is_constant(it, source)):
        same = f"all values of {it.names[source]} are {case.value(_values(it, source).y[0])}"
        yield "note", f"{same}: they do not show how {first} varies.", "Omit this source, unless it varies elsewhere."
    each = set(observed) - many_levels(it) if others >= SETTINGS.min_model_weight else set()
    for source in (source for source in sorted(each) if not _is_constant(it, source)):
        found = correlations(it)
        over = f"the correlation of {it.names[source]} with {first} over the distribution of the inputs is"
        more = rests if found.known[0, source] else f"A few more evaluations of {first} would determine it."
        yield "note" if more else "good", f"{over} {found.text(0, source)}.", more


def _worth(case: Case) -> Iterator[Sentence]:
    it, first, rests = case.it, case.it.names[0], _rests_on_few(case.it)
    for source, found in source_worths(it).items():
        name, others = it.names[source], "the other sources" if len(it.policy.used) > 2 else first
        if _is_constant(it, source) or not 0 < found.std < math.inf or not math.isfinite(found.instead):
            continue
        instead, relation = _instead(case, found, others), correlations(it)
        related = max(-relation.low[0, source], relation.high[0, source]) >= SETTINGS.min_correlation
        unknown, paid = not relation.enough[0, source], found.gain >= SETTINGS.min_informative
        not_known = f"whether {name} paid off is not known yet, because its relation to {first} is not: {instead}"
        but = f"leave-one-out predictions of {first} are no better with it"
        but = f"its correlation with {first} is {relation.text(0, source)}" if found.predicts else but
        leave = "Omit it, or find" if found.gain <= 1 / SETTINGS.min_informative else "Find"
        better = "" if rests else f"{leave} a cheaper or better approximation."
        yield _first_of(
            (unknown, "note", f"{not_known}, if these error bars are right.", ""),
            (paid and found.predicts and related, "note" if rests else "good", f"{name} paid off: {instead}.", rests),
            (paid, "note", f"whether {name} paid off is not clear: {instead}, but {but}.", ""),
            (found.share < SETTINGS.min_cost_share, "note", f"{name} added little information: {instead}.", ""),
            # with gains up to one, runs without the source had smaller error bars
            (found.gain <= 1, "note", f"{name} did not pay off: {instead}.", better),
            (found.gain < SETTINGS.helpful, "note", f"{name} made little difference: {instead}.", ""),
            (True, "note", f"{name} seems to have helped: {instead}, which may be off by a factor of two.", ""),
        )


def _outlook(case: Case) -> Iterator[Sentence]:
    ahead, mean, std = outlook(case.it), case.estimate.mean, case.estimate.std
    if len(ahead) < 2 or not 0 < std < math.inf or not ahead[0][1] > 0:
        return
    of_mean = case.it.problem.targets[0] == "mean"
    now, what = (std, "") if of_mean else (ahead[0][1], " of the target")
    # rescaled: with many outputs, the forecast is by a model of this one alone
    rows = [(cost, now * expected / ahead[0][1]) for cost, expected in ahead]
    goals = {"half of the current value": 0.5 * now}
    if of_mean and 0.01 * abs(mean) < now:
        goals["one percent of the integral"] = 0.01 * abs(mean)
    reached = {name: [cost for cost, expected in rows if expected <= goal] for name, goal in goals.items()}
    clauses = [f"; {name} is expected at {case.paid(costs[0], 4)}" for name, costs in reached.items() if costs]
    (total, last), committed = rows[-1], case.it.ledger.committed
    if (end := case.it.problem.goals.pays_until(rows)) is not None:
        clauses.append(f"; with the given error_cost, evaluations pay up to {case.paid(end, 4)}")
    yield (
        "note",
        f"the forecast is a standard deviation{what} of {case.value(last, 2) if of_mean else f'{last:.2g}'} at a "
        f"total cost of {case.paid(total, 4)} (now {now:.2g} at {committed:.4g}){''.join(clauses)}.",
        "More such evaluations would gain little." if now < SETTINGS.min_narrowing * last else "",
    )


#: all checks, by the subject of their findings
CHECKS: dict[str, Callable[[Case], Iterator[Sentence]]] = {
    "failures": _failures,
    "constant": _constant,
    "few evaluations": _few,
    "few that vary": _few_that_vary,
    "rise": _rise,
    "disagreement": _disagreement,
    "extrapolation": _extrapolation,
    "unexplored": _unexplored,
    "fit": _fit,
    "outlier": _outlier,
    "order": _order,
    "limit": _limit,
    "gradients": _gradients,
    "noise": _noise,
    "stationarity": _stationarity,
    "transform": _transform,
    "refinement": _refinement,
    "hyperparameters": _hyperparameters,
    "relation": _relation,
    "worth": _worth,
    "outlook": _outlook,
}


def diagnose(
    it: Decisions, estimate: Estimate, inputs: Sequence[str], subjects: Iterable[str] = tuple(CHECKS)
) -> Findings:
    """Return all findings, warnings first.

    Parameters
    ----------
    it : Integrator
        The integrator of the run.
    estimate : Estimate
        Its estimate of the integral.
    inputs : list of str
        Names of the inputs.
    subjects : list of str
        Subjects to check; all by default.
    """
    case, start = Case(it, estimate, inputs), []
    if it.learner.posterior is None or not len(it.learner):
        subjects, start = ["failures"], [Finding("note", "start", "nothing is known yet.")]
    found = [Finding(level, about, *rest) for about in subjects for level, *rest in CHECKS[about](case)]
    return Findings(found + start)


def certificate_findings(certificate: Certificate | None) -> list[Finding]:
    """Return findings on a certificate: whether it agrees with the model, and its cautions."""
    if certificate is None or not certificate.complete:
        return []
    compared = [certificate.comparison(m) for m in range(certificate.plan.n_outputs)]
    found = [
        Finding("good" if each.agrees else "warning", "certificate", each.text, each.advice)
        for each in compared
        if each is not None
    ]
    return found + [Finding("warning", "certificate", caution) for caution in certificate.cautions]


def _first_of(*cases: tuple[bool, Level, str, str]) -> Sentence:
    return next((level, text, advice) for holds, level, text, advice in cases if holds)


def _values(it: Decisions, source: int = 0) -> Data:
    return it.learner.data.values.of_source(source)


def _is_constant(it: Decisions, source: int) -> bool:
    return len(y := _values(it, source).y) > 1 and is_constant(y)


def _settled_by(case: Case, otherwise: str) -> str:
    choice, costs = next_choice(case.it), case.it.ledger.costs
    if choice is None or costs.unknown(choice.source):
        return otherwise
    what, price = f"{case.it.names[choice.source]} at {case.at(choice.x)}", costs.expected(choice.source, choice.x)
    return f"{otherwise} The most informative evaluation for its cost is {what}, for {case.paid(price)}."


def _distance(pair: tuple[View, View]) -> float:
    a, b = pair
    return abs(a.mean - b.mean) / max(math.hypot(a.std, b.std), 1e-300)


def _rests_on_few(it: Decisions) -> str:
    """Return a caution if the primary source has so few values that the next may change its relation to others."""
    few = (n := len(_values(it).y)) <= CORRELATIONS.relation + SETTINGS.settling
    return f"This rests on {n} values of {it.names[0]}, and may change with the next." if few else ""


def _instead(case: Case, found: SourceWorth, others: str) -> str:
    """Return a clause that compares the error bar with the one without a source, for the same cost.

    The numbers are scaled to the error bar of the case, because with many outputs ``found`` comes from a model of this
    output alone.
    """
    std = case.estimate.std
    money = f"it took {100 * found.share:.2g} % of what was spent" if found.cost > 0 else "it cost nothing"
    too_little = f", too little for an evaluation of {others}" if found.cost > 0 else ""
    money += f"; with that spent on {others} instead, " if found.bought else f"{too_little}; without it "
    times = f", {_brief(found.gain)} times as large" if found.gain >= SETTINGS.helpful else ""
    without = found.instead / found.std * std
    return f"{money}the {case.error_bar} would be about {without:.2g}{times} (it is {case.value(std, 2)})"


def _brief(number: float) -> str:
    """Return a number with two digits, and without an exponent if it is large."""
    return f"{number:.0f}" if 10 <= number < 1e6 else f"{number:.2g}"


def _more(n: int) -> str:
    return "one more evaluation" if n == 1 else f"{n} more evaluations"


def _evaluations(n: int) -> str:
    return "one evaluation" if n == 1 else f"{n} evaluations"
