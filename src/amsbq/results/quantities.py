"""What is asked of the output beside its mean: its distribution, sensitivities, and answers for other inputs.

Each is a function of an integrator; what takes seconds is computed once for all that the integrator was told so far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..design.integrator import Integrator
from ..inference.belief import Belief
from ..inference.estimate import Estimate
from ..measures.base import Measure
from ..messages import warn
from ..outputs.estimates import Estimates
from ..quantities.distribution import OutputDistribution
from ..quantities.sensitivity import Sensitivity, grouped
from ..quantities.what_if import check_other, conditional, integral_under
from ..threads import threads_for
from ..validation import brief, numbers
from .analysis import SETTINGS as ANALYSIS
from .analysis import belief_of, once_per_state


@dataclass(frozen=True)
class ReachSettings:
    """When evaluations do not reach another distribution of the inputs."""

    points: int = 512  #: that stand for the distribution
    unknown: float = (
        0.5  #: standard deviation of the output at a point, beside the spread of all values: no more is known
    )
    share: float = 0.1  #: of the distribution, from which on there is a warning


SETTINGS = ReachSettings()


def known_belief(it: Integrator) -> Belief:
    """Return the belief of an integrator; raise ValueError unless the primary source has a value."""
    if not it.learner.has_primary:
        raise ValueError(f"nothing is known of {it.names[0]} yet: look again after its first evaluation")
    return belief_of(it)


def quickly_known(it: Integrator | None) -> bool:
    """Return whether there is something to know of one output, and few enough observations to find it in seconds."""
    if it is None or it.outputs is not None or not it.learner.has_primary or (it.range is not None and it.range.log):
        return False
    return len(it.learner) <= ANALYSIS.forecast_observations


def _check_no_logarithms(it: Integrator) -> None:
    if it.range is not None and it.range.log:
        raise ValueError("the sources return logarithms: only the logarithm of the integral is known, not their spread")


@once_per_state
def output_distribution(it: Integrator) -> OutputDistribution:
    """Return the distribution of the output of the primary source."""
    _check_no_logarithms(it)
    return OutputDistribution(known_belief(it), it.measure)


@once_per_state
def _each_input(it: Integrator) -> Sensitivity:
    """Return the Sobol' indices of each input, called by its number."""
    return Sensitivity.of(known_belief(it), it.measure, {str(d): [d] for d in range(it.measure.dim)})


def sensitivity(it: Integrator, inputs: Sequence[str], groups: Mapping[str, Sequence[str]] | None) -> Sensitivity:
    """Return the Sobol' indices of each input, or of groups of inputs, by name."""
    if it.measure.marginals is None:
        raise ValueError(
            "Sobol' indices are shares of a variance that independent inputs divide among them, but these depend on "
            f"each other: {it.measure!r}. Instead, result.given({inputs[0]}=...) shows the output against one input"
        )
    _check_no_logarithms(it)
    members = grouped(inputs, groups)
    if groups is None:
        each = _each_input(it)
        return Sensitivity(inputs, each.first, each.total)
    with threads_for(len(it.learner)):
        return Sensitivity.of(known_belief(it), it.measure, members)


def under(it: Integrator, measure: Measure) -> Estimate:
    """Return the integral under another distribution of the inputs, with a warning where evaluations do not reach."""
    belief = known_belief(it)
    check_other(it.measure, measure)
    with threads_for(len(it.learner)):
        estimate = integral_under(belief, it.measure, measure)
        std = belief.predict(0, measure.sobol(SETTINGS.points, 1))[1]
    unknown = float(np.mean(std > SETTINGS.unknown * np.std(it.learner.data.values.of_source(0).y)))
    if unknown >= SETTINGS.share:
        warn(
            f"the evaluations do not reach {unknown:.0%} of the other distribution: there, the answer rests on what is "
            "assumed of such functions",
        )
    return estimate


def given(it: Integrator, inputs: Sequence[str], values: Mapping[str, ArrayLike]) -> Estimate | Estimates:
    """Return the average output for given values of one input, over all others: one estimate, or one for each value."""
    if len(values) != 1:
        raise ValueError(f"give values of one input, as in given({inputs[0]}=[...]), got {len(values)}")
    ((name, at),) = values.items()
    if name not in inputs:
        raise ValueError(f"there is no input {name!r}: there are {', '.join(inputs)}")
    if np.asarray(at).dtype.kind == "U":
        raise TypeError(f"{name} must be numbers, got {brief(at)}; categories are numbered from 0 in their order")
    d, t = list(inputs).index(name), numbers(at, name)
    checked = it.measure.over([d]).check_points(np.atleast_1d(t)[:, None], name)
    with threads_for(len(it.learner)):
        found = conditional(known_belief(it), d, checked[:, 0])
    return found[0] if t.ndim == 0 else found
