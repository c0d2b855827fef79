"""Numbers behind answers, findings and figures: residuals, correlations, Sobol' indices, forecasts.

Each is a function of an integrator. Expensive ones are cached until the integrator is asked or told more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import NamedTuple, TypeVar
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
    """Sample sizes, and thresholds at which a finding is reported."""

    forecast_steps: int = 40  #: evaluations that a forecast looks ahead: about a second
    quick: int = 400  #: maximum number of observations for a forecast or distribution that is quick enough for a page
    points: int = 512  #: sample size for the distribution of the inputs
    tail_points: int = 2**13  #: sample size for its tails
    #: factor by which "far" exceeds the 95 % quantile of distances to the same number of evenly spread evaluations
    far: float = 1.5
    #: smallest share worth mentioning: of the inputs, of structure weights, of the evaluations of a source
    material: float = 0.1
    #: multiple of ``material`` at which a share becomes serious
    serious: float = 3.0
    #: standard deviations between two answers, or a value and its prediction, at which they count as different
    disagreement: float = 2.0
    #: ratio of standard deviations without and with evaluations at which these count as informative: of the output at a
    #: point; of the integral at equal cost, where runs made without a source had half to twice the forecast
    min_informative: float = 2.0
    #: ratio of standard deviations without and with evaluations below which these made little difference
    helpful: float = 1.25
    #: probability below which something is not attributed to chance
    improbable: float = 0.05
    #: minimum number of evaluations of a source before and after a jump, and the gap between them, in units of their
    #: range
    min_run: int = 3
    jump: float = 5.0
    #: minimum number of observations of a source that are needed to judge the fit by its residuals, or to find an
    #: outlier; and minimum number of samples of an input that are needed to draw its density
    min_observations: int = 8
    #: evaluations of the primary source, besides those to which its relation to the other sources is fitted, after
    #: which this relation has settled
    settling: int = 2
    #: one value out of this many may hold nearly all the variance of the primary source's values; and the share of the
    #: variance that is then left to the others
    values_per_extreme: int = 6
    max_rest_variance: float = 0.01
    #: ratio of the error bar now to its smallest before, at which it counts as risen
    min_rise: float = 1.05
    #: ratio of the error bar now to that of the forecast, below which more evaluations gain little
    min_narrowing: float = 1.15
    #: a source pays off only if its absolute correlation with the primary one may be as large as this
    min_correlation: float = 0.5
    #: weight of models with other sources below which the primary one is predicted no better with them
    min_model_weight: float = 0.5
    #: share of the total cost at which a source that did not pay off is worth mentioning
    min_cost_share: float = 0.02
    #: root mean square of standardised residuals (ideally one) above which the model does not fit
    misfit: float = 1.6
    #: parts of the range of an input in which residuals are compared, and the ratio of those in one part to those in a
    #: typical part above which a source is not stationary
    parts: int = 4
    min_unevenness: float = 3.5
    #: lower end of the interval of the convergence exponent below which errors may not shrink; and fewest values of a
    #: knob that determine the exponent
    min_exponent: float = 0.4
    min_knob_values: int = 3
    #: kernel of functions that may have steps; with it, each value of a source is predicted from the others
    stepped: ProductKernel = field(default_factory=lambda: Matern(0.5, 1.0))
    #: standard deviations between an outlier and its prediction by such functions. Next to a step, or at the end of a
    #: steep function, correct values may reach 9; a value that is wrong by ten times the spread of all reaches 12
    outlier_by_steps: float = 10.0
    #: standard deviations between an outlier and its prediction by the model, refitted without it
    outlier_by_model: float = 5.0


SETTINGS = AnalysisSettings()


def once_per_state(function: Callable[[Decisions], T]) -> Callable[[Decisions], T]:
    """Cache a function of an integrator until the integrator is asked or told more."""
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
    """Return the posterior of an integrator with one output; raise ValueError if there is none yet.

    With ``primary=True``, the primary source must have a value.
    """
    if primary and not it.learner.has_primary:
        raise ValueError(f"nothing is known about {it.names[0]} yet: look again after its first evaluation")
    if it.outputs is not None:
        raise ValueError(f"there are several outputs: look at one of them, as in result[{it.outputs[0]!r}]")
    if (posterior := it.learner.posterior) is None:
        raise ValueError("nothing is known yet: look again after the first evaluations")
    return posterior


def quickly_known(it: Decisions | None) -> bool:
    """Return whether the output's distribution can be computed in seconds: one output and few enough observations."""
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
        """Half the length of an axis, centred at zero, that shows all residuals."""
        return max(4.0, 1.1 * float(np.abs(self.z).max(initial=0.0)))


@once_per_state
def residuals(it: Decisions) -> Residuals:
    """Return the leave-one-out residuals of all evaluations, averaged over the hyperparameter draws.

    Sources that are evaluated in bulk are left out: their residuals only show how smooth they are.
    """
    posterior = posterior_of(it)
    left, used = posterior.left_out(), set(it.policy.used).difference(it.in_bulk.sources)
    rows = np.flatnonzero(np.isin(left.s, list(used)))
    mean, variance = averaged((left.means[:, rows], left.variances[:, rows]))
    # Observations and evaluations are ordered differently; sorted by value at each location, they correspond.
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
    """Return pairs (total cost, expected standard deviation) from now until a budget is spent.

    The default budget is twice the cost so far. The forecast is empty if the cost of a source is not known yet, or if
    there are too many observations for a quick answer.
    """
    among = [source for source in it.policy.worth_asking if sources is None or source in sources]
    unknown = it.starting or any(it.ledger.costs.unknown(source) for source in among)
    if unknown or len(it.learner) > SETTINGS.quick:
        return Forecast([], exact=False)
    return it.forecast(budget or 2 * max(it.ledger.committed, 1e-12), among, steps=SETTINGS.forecast_steps)


@once_per_state
def uncovered(it: Decisions) -> tuple[float, Array]:
    """Return the probability of inputs far from all evaluations of the primary source, and the farthest location (D,).

    Distances are in units of the widths of the inputs. They are judged against the distances to the same number of
    evenly spread points.
    """
    X = it.measure.sobol(SETTINGS.points, rng=1)
    evaluated, width = it.learner.data.values.of_source(0).X, it.measure.width
    if not len(evaluated):
        return 1.0, it.measure.median
    usual, _ = scipy.spatial.cKDTree(it.measure.sobol(len(evaluated), rng=2) / width).query(X / width)
    distances, _ = scipy.spatial.cKDTree(evaluated / width).query(X / width)
    return float(np.mean(distances > SETTINGS.far * np.quantile(usual, 0.95))), X[distances.argmax()]


class Unexplored(NamedTuple):
    """A region of the inputs without a value of the primary source: its probability, and one location in it."""

    share: float
    x: Array


def _part(X: Array, inside: Array) -> Unexplored:
    return Unexplored(float(np.mean(inside)), X[np.argmax(inside)])


@once_per_state
def unsearched(it: Decisions) -> Unexplored:
    """Return the part of the inputs outside the search box: its probability, and one location in it."""
    X = it.measure.sobol(SETTINGS.tail_points, rng=1)
    u, (low, high) = it.measure.whitened(X), it.measure.reach.T
    slack = 1e-9 * (high - low)
    return _part(X, ((u < low - slack) | (u > high + slack)).any(axis=1))


@once_per_state
def failing(it: Decisions) -> Unexplored:
    """Return the inputs that are closer to a failed evaluation of the primary source than to any value of it."""
    X, width = it.measure.sobol(SETTINGS.tail_points, rng=1), it.measure.width
    evaluated = it.learner.data.values.of_source(0).X
    failed = np.array([e.x for e in it.evaluations if e.source == 0 and e.status == "failed" and not e.excluded])
    if not len(failed) or not len(evaluated):
        return _part(X, np.zeros(len(X), dtype=bool))
    (to_value, _), (to_failure, _) = (scipy.spatial.cKDTree(at / width).query(X / width) for at in (evaluated, failed))
    return _part(X, to_failure < to_value)


@once_per_state
def known_target(it: Decisions) -> AnyEstimate:
    """Return the estimate of the target of a run, for each output if there are several."""
    posterior = it.learner.posterior
    if posterior is None or not it.learner.has_primary:
        return unknown_estimate(it.outputs)
    return target_estimate(posterior, it.problem.targets)


@dataclass(frozen=True)
class Refinement:
    """Sources with fidelities: their integrals, and how their errors shrink.

    Attributes
    ----------
    sources : list of int
        Sources that were observed and modelled, from the finest to the coarsest.
    sizes : (n, knobs) array
        Their fidelities.
    integrals : list of Estimate
        Their integrals.
    exponents : list of Exponent
        For each knob, the power with which errors shrink.
    bias : Estimate or None
        The integral of the primary source minus the limit; None unless the run is about the limit.
    """

    sources: list[int]
    sizes: Array
    integrals: list[Estimate]
    exponents: list[Exponent]
    bias: Estimate | None


@once_per_state
def refinement(it: Decisions) -> Refinement | None:
    """Return the refinement of sources with fidelities; None if there are none, or if the model ignores fidelities."""
    posterior = posterior_of(it)
    found = exponents(posterior)
    if not found:
        return None
    of = {s: source.fidelity for s, source in enumerate(it.sources) if source.fidelity is not None}
    sizes = {s: [fidelity[each.knob] for each in found] for s, fidelity in of.items() if posterior.includes(s)}
    observed = set(it.learner.data.s.tolist())
    listed = sorted((s for s in sizes if s in observed), key=lambda s: (float(np.prod(sizes[s])), s))
    return Refinement(
        listed,
        np.array([sizes[s] for s in listed]).reshape(len(listed), len(found)),
        [integrals(posterior, s) for s in listed],
        found,
        bias(posterior) if it.problem.limit else None,
    )


#: how well each value of the primary source is predicted from all others; larger is better
primary_score = once_per_state(lambda it: posterior_of(it).primary_score())
#: the integral by each part of the mixture, with its weight
views = once_per_state(lambda it: posterior_of(it).views())
#: correlations between the outputs of the sources over the distribution of the inputs
correlations = once_per_state(lambda it: correlations_of(posterior_of(it)))
#: the distribution of the output of the primary source
output_distribution = once_per_state(
    lambda it: OutputDistribution(
        posterior_of(it, primary=True), it.problem.labels.unit(), squared(it.problem.labels.unit())
    )
)
#: the Sobol' indices of each input, keyed by its number as text
indices = once_per_state(
    lambda it: Sensitivity.of(posterior_of(it, primary=True), {str(d): [d] for d in range(it.measure.dim)})
)
#: the forecast until the cost so far has doubled
outlook = once_per_state(forecast)
#: the next evaluation if the budget were larger; None if nothing is worth evaluating
next_choice = once_per_state(Decisions.preview)
