"""Numbers that answers, findings and figures are made of: residuals, correlations, indices of inputs, what is ahead.

Each is a function of an integrator; what takes long is computed once for all that the integrator was told so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import scipy

from ..common.threads import threads_for
from ..common.validation import Array, IntArray
from ..design.decisions import Decisions
from ..design.forecast import Forecast
from ..design.labels import squared
from ..gp.kernels import Matern, ProductKernel
from ..posterior.correlations import correlations_of
from ..posterior.distribution import OutputDistribution
from ..posterior.estimate import Estimate
from ..posterior.estimates import AnyEstimate, unknown_estimate
from ..posterior.latent import averaged
from ..posterior.posterior import Posterior
from ..posterior.refinement import Exponent, bias, exponents, integrals
from ..posterior.sensitivity import Sensitivity
from ..posterior.targets import target_estimate

T = TypeVar("T")


@dataclass(frozen=True)
class AnalysisSettings:
    """Sizes of samples, and limits from which on something is said of a run."""

    forecast_steps: int = 40  #: evaluations that a forecast looks ahead: about a second
    quick: int = 400  #: observations up to which a forecast, or a distribution, is quick enough for a page
    points: int = 512  #: that stand for a distribution of the inputs
    #: times the distance that 95 % of the inputs would have at most to as many evaluations, if those were spread evenly
    far: float = 1.5
    #: share (of a distribution of the inputs, of the weights of structures, of the evaluations of a source) that counts
    material: float = 0.1
    #: times what counts, or what is to be expected, from which on a share is serious
    serious: float = 3.0
    #: standard deviations between two answers, or a value and its prediction, from which on they disagree
    apart: float = 2.0
    #: ratio of standard deviations without and with evaluations from which on these told something: of the output at a
    #: point; of the integral, for the same cost, where runs without a source had half to twice what was foreseen
    telling: float = 2.0
    #: the same ratio below which evaluations made little difference
    helpful: float = 1.25
    #: probability below which something is not by chance
    improbable: float = 0.05
    #: evaluations of a source before and after a jump of its values, and the gap between them, in units of their range
    fewest_in_a_row: int = 3
    jump: float = 5.0
    #: observations of a source from which on its residuals tell how the model fits and one of them may be an outlier,
    #: and samples from which on their density means something
    enough: int = 8
    #: evaluations of the primary source beyond those that are fitted by its relation to others, by which that settles
    spare: int = 2
    #: values of the primary source for each one that may have all of their variance, and the share of the variance that
    #: the others may have
    fewest_values: int = 6
    hardly_vary: float = 0.01
    #: ratio of the error bar now to what it was from which on it has risen
    risen: float = 1.05
    #: ratio of the error bars now and in a forecast below which more of the same buys little
    hardly_narrower: float = 1.15
    #: largest absolute correlation with the primary one that is possible, below which no source is said to have paid
    related: float = 0.5
    #: weight of models with other sources below which the primary one is predicted no better with them
    predicting: float = 0.5
    #: share of the total cost from which on a source that did not pay is worth mentioning
    pricey: float = 0.02
    #: root mean square of standardised residuals, which should be one, from which on the model does not fit
    misfit: float = 1.6
    #: parts of the range of an input in which residuals are compared, and the ratio of those in one part to those in a
    #: typical one from which on a source is not stationary
    parts: int = 4
    uneven: float = 3.5
    #: lower end of the interval of the exponent with which errors shrink, below which they may not; and values of a
    #: knob from which on they can tell it
    hardly_shrink: float = 0.4
    tell_exponent: int = 3
    #: kernel of functions that may have steps, by which the values of a source are predicted from each other
    stepped: ProductKernel = field(default_factory=lambda: Matern(0.5, 1.0))
    #: standard deviations of an outlier from what these functions predict without it. Beside a step, or where a steep
    #: function was evaluated farthest out, it may be 9; a value that is wrong by ten times the spread of all has 12
    unexplained: float = 10.0
    #: and from what the model predicts, after a refit to all observations but the value
    outlying: float = 5.0


SETTINGS = AnalysisSettings()


def once_per_state(function: Callable[[Decisions], T]) -> Callable[[Decisions], T]:
    """Return a function of an integrator that is evaluated again only after the integrator was asked or told more."""
    known: WeakKeyDictionary[Decisions, tuple[tuple[float, ...], T]] = WeakKeyDictionary()

    @wraps(function)
    def once(it: Decisions) -> T:
        state = (len(it.learner), len(it.evaluations), len(it.pending), it.ledger.committed)
        latest = known.get(it)
        if latest is None or latest[0] != state:
            with threads_for(len(it.learner)):
                latest = known[it] = state, function(it)
        return latest[1]

    return once


def posterior_of(it: Decisions, primary: bool = False) -> Posterior:
    """Return the posterior of an integrator; raise ValueError if there is none, or several outputs.

    Where the ``primary`` source is asked for, it must have a value.
    """
    if primary and not it.learner.has_primary:
        raise ValueError(f"nothing is known of {it.names[0]} yet: look again after its first evaluation")
    if it.outputs is not None:
        raise ValueError(f"there are several outputs: look at one of them, as in result[{it.outputs[0]!r}]")
    if (posterior := it.learner.posterior) is None:
        raise ValueError("nothing is known yet: look again after the first evaluations")
    return posterior


def quickly_known(it: Decisions | None) -> bool:
    """Return whether there is something to know of one output, and few enough observations to find it in seconds."""
    return it is not None and it.outputs is None and it.learner.has_primary and len(it.learner) <= SETTINGS.quick


@dataclass(frozen=True)
class Residuals:
    """Leave-one-out residuals: each observation minus its prediction from all others, in standard deviations.

    Attributes
    ----------
    sources : (N,) array
        The source of each observation.
    X : (N, D) array
        Its location.
    z : (N,) array
        Its standardised residual.
    evaluations : (N,) array
        Its place in the list of evaluations, from 0.
    """

    sources: IntArray
    X: Array
    z: Array
    evaluations: IntArray

    def of(self, source: int) -> Array:
        """Return the standardised residuals of one source."""
        return np.asarray(self.z[self.sources == source])

    @property
    def span(self) -> float:
        """Half the length of an axis, centred at zero, on which all of them are visible."""
        return max(4.0, 1.1 * float(np.abs(self.z).max(initial=0.0)))


@once_per_state
def residuals(it: Decisions) -> Residuals:
    """Return the leave-one-out residuals of all evaluations, averaged over the draws of the hyperparameters.

    Those of sources that are evaluated in bulk are left out: what they show is how smooth these sources are.
    """
    posterior = posterior_of(it)
    left, used = posterior.left_out(), set(it.policy.used).difference(it.in_bulk.sources)
    rows = np.flatnonzero(np.isin(left.s, list(used)))
    mean, variance = averaged((left.means[:, rows], left.variances[:, rows]))
    # Observations are in an order of their own: at each location, sorted by value, both lists are in the same one.
    sign = 1 if posterior.whole.components[0].transform.grows else -1
    made = [i for i, e in enumerate(it.evaluations) if e.status == "ok" and e.source in used]
    at: dict[tuple[float, ...], list[int]] = {}
    for i in sorted(made, key=lambda i: sign * it.evaluations[i].value):
        at.setdefault((it.evaluations[i].source, *it.evaluations[i].x), []).append(i)
    s, X, y = left.s[rows], left.X[rows], left.y[rows]
    evaluations = np.empty(len(y), dtype=np.intp)
    for row in np.argsort(y, kind="stable"):
        evaluations[row] = at[s[row], *X[row]].pop(0)
    return Residuals(s, X, (y - mean) / np.sqrt(variance), evaluations)


def forecast(it: Decisions, budget: float | None = None, sources: Sequence[int] | None = None) -> Forecast:
    """Return (total cost, expected standard deviation) from now until a budget is spent, by default twice the present.

    It is empty if the costs of a source are not known yet, or if there are too many observations for a quick answer.
    """
    among = [source for source in it.policy.worth_asking if sources is None or source in sources]
    unknown = it.starting or any(it.ledger.costs.unknown(source) for source in among)
    if unknown or len(it.learner) > SETTINGS.quick:
        return Forecast([], exact=False)
    return it.forecast(budget or 2 * max(it.ledger.committed, 1e-12), among, steps=SETTINGS.forecast_steps)


@once_per_state
def uncovered(it: Decisions) -> tuple[float, Array]:
    """Return the probability of inputs that are far from all evaluations of the primary source, and the farthest, (D,).

    Distances are in units of the widths of the inputs, and compared with those to as many evenly spread points.
    """
    X = it.measure.sobol(SETTINGS.points, rng=1)
    evaluated, width = it.learner.data.values.of_source(0).X, it.measure.width
    if not len(evaluated):
        return 1.0, it.measure.median
    usual, _ = scipy.spatial.cKDTree(it.measure.sobol(len(evaluated), rng=2) / width).query(X / width)
    distances, _ = scipy.spatial.cKDTree(evaluated / width).query(X / width)
    return float(np.mean(distances > SETTINGS.far * np.quantile(usual, 0.95))), X[distances.argmax()]


@once_per_state
def known_target(it: Decisions) -> AnyEstimate:
    """Return what is known about the target of a run, of each output if there are several."""
    posterior = it.learner.posterior
    if posterior is None or not it.learner.has_primary:
        return unknown_estimate(it.outputs)
    return target_estimate(posterior, it.problem.targets)


@dataclass(frozen=True)
class Refinement:
    """What is known of sources with fidelities.

    Attributes
    ----------
    sources : list of int
        Those that were observed, and of which there is a model, from the finest to the coarsest.
    sizes : (n, knobs) array
        Their fidelities.
    integrals : list of Estimate
        Of each of them.
    exponents : list of Exponent
        With what powers of the knobs errors shrink.
    bias : Estimate or None
        By how much the integral of the primary source is above the limit; None where the limit is not wanted.
    """

    sources: list[int]
    sizes: Array
    integrals: list[Estimate]
    exponents: list[Exponent]
    bias: Estimate | None


@once_per_state
def refinement(it: Decisions) -> Refinement | None:
    """Return what is known of sources with fidelities; None if there are none, or if the model does not use them."""
    posterior = posterior_of(it)
    found = exponents(posterior)
    if not found:
        return None
    of = {s: source.fidelity for s, source in enumerate(it.sources) if source.fidelity is not None}
    sizes = {s: [fidelity[each.knob] for each in found] for s, fidelity in of.items() if posterior.tells_of(s)}
    observed = set(it.learner.data.s.tolist())
    listed = sorted((s for s in sizes if s in observed), key=lambda s: (float(np.prod(sizes[s])), s))
    return Refinement(
        listed,
        np.array([sizes[s] for s in listed]).reshape(len(listed), len(found)),
        [integrals(posterior, s) for s in listed],
        found,
        bias(posterior) if it.problem.limit else None,
    )


#: how well the values of the primary source are predicted from all others, the larger the better
primary_score = once_per_state(lambda it: posterior_of(it).primary_score())
#: what parts of the mixture say of the integral, each with its weight
views = once_per_state(lambda it: posterior_of(it).views())
#: how the outputs of the sources correlate over the distribution of the inputs
correlations = once_per_state(lambda it: correlations_of(posterior_of(it)))
#: the distribution of the output of the primary source
output_distribution = once_per_state(
    lambda it: OutputDistribution(
        posterior_of(it, primary=True), it.problem.labels.unit(), squared(it.problem.labels.unit())
    )
)
#: the Sobol' indices of each input, called by its number
indices = once_per_state(
    lambda it: Sensitivity.of(posterior_of(it, primary=True), {str(d): [d] for d in range(it.measure.dim)})
)
#: the forecast until twice as much is spent as now
outlook = once_per_state(forecast)
#: what would be asked next if the budget were larger; None if nothing is worth evaluating
next_choice = once_per_state(Decisions.preview)
