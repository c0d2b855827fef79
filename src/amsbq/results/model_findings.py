"""Findings on the model: how it fits, values that look wrong, noise that was not declared, hyperparameters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..design.integrator import Integrator
from ..inference.belief import SETTINGS as LEARNING
from ..inference.belief import Belief, FixedBelief
from ..inference.estimate import Estimate
from ..ranges.belief import AveragedBelief, RangedBelief
from ..validation import plus_minus
from .analysis import Residuals
from .findings import Finding, brief, location
from .noise import hidden_noise, repeated_noise
from .outliers import outlier


@dataclass(frozen=True)
class ModelFindingSettings:
    """Limits between what is good, worth a note, and worth a warning."""

    #: observations of a source from which on its residuals tell how the model fits
    enough: int = 8
    #: root mean square of standardised residuals, which should be one, from which on the model does not fit
    misfit: float = 1.6
    #: share of residuals beyond two standard deviations, which should be 5 %, from which on there are surprises
    surprises: float = 0.15
    #: parts of the range of an input in which residuals are compared
    parts: int = 4
    #: ratio of the residuals in one part to those in a typical one from which on a source is not stationary
    uneven: float = 3.5


SETTINGS = ModelFindingSettings()
#: what transforms do, in words
WORDS = {
    "root": "their distance from the bound is modelled as a square",
    "log": "their distance from the bound is modelled as an exponential, which levels off where it is next to nothing",
    "exp": "their logarithm is modelled, and its exponential is taken to be linear where the logarithm is uncertain",
    "arcsine": "their share of the range is modelled as a squared sine",
    "logit": "their share of the range is modelled as a logistic function",
    "cut": "they are modelled as if there were no bound, and cut off there",
}


def fit(it: Integrator, left: Residuals) -> Iterator[Finding]:
    """Yield how large the leave-one-out residuals of each source are, compared with what the model expects."""
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
            advice = "The model does not fit: look for jumps and kinks, and trust the error bar less."
            yield Finding("warning", "fit", said, advice)
        elif outside > SETTINGS.surprises and len(z) >= 2 * SETTINGS.enough:
            yield Finding("note", "fit", said, "A few are surprises: see where, in the picture of the residuals.")
        else:
            yield Finding("good", "fit", said)


def wrong_value(it: Integrator, inputs: Sequence[str]) -> Iterator[Finding]:
    """Yield the evaluation whose value is far from what all others predict, if there is one."""
    if (found := outlier(it)) is None:
        return
    e = it.evaluations[found.evaluation]
    called = "given" if e.id is None else f"id {e.id}"
    yield Finding(
        "warning",
        "outlier",
        f"evaluation {found.evaluation + 1} ({called}), {it.names[e.source]} at {location(inputs, e.x)}, has the value "
        f"{e.value:.6g}, where all others predict {plus_minus(found.mean, found.std)} (standard deviation).",
        "Look at that run: either its value is wrong, or the source changes suddenly there. The answer includes it; "
        "`amsbq exclude` takes it out of a run with a journal, and `amsbq correct` replaces it.",
    )


def undeclared_noise(it: Integrator, inputs: Sequence[str]) -> Iterator[Finding]:
    """Yield each source whose values show noise that was not declared, and how that can be settled if it is a guess."""
    for source, std in repeated_noise(it).items():
        yield Finding(
            "warning",
            "noise",
            f"{it.names[source]} returned different values at the same location, with a standard deviation of "
            f"{std:.2g}, but was declared to be without noise.",
            f"Use noise='learn' for {it.names[source]}.",
        )
    for source, std in hidden_noise(it).items():
        name, data = it.names[source], it.learner.data.values.of_source(source)
        again, cost, share = data.X[-1], "", std / float(np.std(data.y))
        if not it.source_costs.unknown(source):
            cost = f", for a cost of {it.source_costs.expected(source, again):.3g}"
        yield Finding(
            "warning",
            "noise",
            f"the values of {name} scatter around a smooth function as if they had noise of standard deviation "
            f"{std:.2g} ({brief(100 * share)} % of their spread), more than was declared. That is by the model only.",
            f"To settle it, evaluate {name} again where it was evaluated before, at {location(inputs, again)}{cost}: "
            "another value is noise, for which there is noise='learn'; the same value means that it varies faster than "
            "its evaluations can show.",
        )


def evenness(it: Integrator, left: Residuals, inputs: Sequence[str]) -> Iterator[Finding]:
    """Yield each source and input for which the residuals are much larger in one part of the range than elsewhere."""
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
                such_as = f", such as the logarithm of {label}" if it.measure.bounds[d, 0] >= 0 else ""
                yield Finding(
                    "warning",
                    "stationarity",
                    f"{name} is much harder to predict for {label} between {low:.4g} and {high:.4g} than elsewhere "
                    f"({sizes[rough] / np.median(sizes):.0f} times): it seems to vary faster there, or next to it.",
                    f"The model takes functions to vary alike everywhere. Integrate that part by itself, or use an "
                    f"input in which it is smoother{such_as}.",
                )


def transform(belief: Belief) -> Iterator[Finding]:
    """Yield by which function of a Gaussian process outputs of known range are modelled."""
    if isinstance(belief, RangedBelief):
        known = belief.transform.range
        if known.assumed:
            end = f"above {known.low:.4g}" if math.isfinite(known.low) else f"below {known.high:.4g}"
            share = f", with a weight of {100 * belief.share:.0f} %" if isinstance(belief, AveragedBelief) else ""
            yield Finding(
                "note",
                "transform",
                f"the distance of the values {end} is modelled as an exponential{share}: left out in turn, values are "
                "predicted better by it than as they are.",
                "If a bound of the values is known, say so by output_range.",
            )
            return
        yield Finding("note", "transform", f"the values are {known.description}: {WORDS[belief.transform.kind]}.")


def hyperparameters(belief: Belief, estimate: Estimate) -> Iterator[Finding]:
    """Yield whether the uncertainty of the hyperparameters is in the error bar."""
    n = estimate.effective_draws
    if isinstance(belief.latent if isinstance(belief, RangedBelief) else belief, FixedBelief):
        yield Finding(
            "note", "hyperparameters", "given, not learned: the error bar is right if they are.", "See whether it fits."
        )
    elif np.isnan(estimate.mean):
        return
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
