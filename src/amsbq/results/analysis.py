"""Numbers that findings and figures are made of: residuals, correlations, what is far from evaluations, what is ahead.

Each is a function of an integrator, computed once for all that it was told so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from ..design.forecast import Forecast
from ..design.integrator import Integrator
from ..design.search import Choice
from ..inference.averaging import SETTINGS as AVERAGING
from ..inference.averaging import integrals, primary_log_densities
from ..inference.belief import Belief, ExtendedBelief, FixedBelief, LearnedBelief, averaged
from ..outputs.beliefs import OutputsBelief
from ..ranges.belief import AveragedBelief, RangedBelief
from ..ranges.learner import score
from ..threads import threads_for
from ..validation import Array, IntArray

T = TypeVar("T")


@dataclass(frozen=True)
class AnalysisSettings:
    """Sizes of samples, and limits of what is computed."""

    forecast_steps: int = 40  #: evaluations that a forecast looks ahead: about a second
    forecast_observations: int = 400  #: above which a forecast takes too long for a finding or a figure
    correlation_points: int = 256  #: of all sources together, at which they are compared
    correlation_draws: int = 400  #: from their posteriors: the ends of an interval are known to a percent
    #: numbers that are fitted to the primary source if it is related to another one: a factor, an offset, and the size
    #: of the difference; so many observations say nothing of their relation, whatever the model makes of them
    relation: int = 3
    unclear_correlation: float = 0.5  #: width of a 95 % interval from which on a correlation is not known
    measure_points: int = 512  #: that stand for the distribution of the inputs
    #: times the distance that 95 % of the inputs would have at most to as many evaluations, if those were spread evenly
    far: float = 1.5


SETTINGS = AnalysisSettings()


def once_per_state(function: Callable[[Integrator], T]) -> Callable[[Integrator], T]:
    """Return a function of an integrator that is evaluated again only after the integrator was asked or told more."""
    known: WeakKeyDictionary[Integrator, tuple[tuple[float, ...], T]] = WeakKeyDictionary()

    @wraps(function)
    def once(it: Integrator) -> T:
        state = (len(it.learner), len(it.evaluations), len(it.pending), it.committed)
        latest = known.get(it)
        if latest is None or latest[0] != state:
            with threads_for(len(it.learner)):
                latest = known[it] = state, function(it)
        return latest[1]

    return once


def belief_of(it: Integrator) -> Belief:
    """Return the belief of an integrator; raise ValueError if there is none, or several outputs."""
    if (belief := it.learner.belief) is None:
        raise ValueError("nothing is known yet: look again after the first evaluations")
    if isinstance(belief, OutputsBelief):
        raise ValueError(f"there are several outputs: look at one of them, as in result[{belief.names[0]!r}]")
    return belief


def learned_belief(it: Integrator) -> LearnedBelief | None:
    """Return the belief as of the latest refit; None if hyperparameters are not learned."""
    belief = belief_of(it)
    belief = belief.latent if isinstance(belief, RangedBelief) else belief
    latest = belief.learned if isinstance(belief, ExtendedBelief) else belief
    return latest if isinstance(latest, LearnedBelief) else None


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
def residuals(it: Integrator) -> Residuals:
    """Return the leave-one-out residuals of all evaluations, averaged over the draws of the hyperparameters.

    Those of sources that are evaluated in bulk are left out: what they show is how smooth these sources are.
    """
    belief, posteriors = belief_of(it), belief_of(it).posteriors
    sign = -1 if isinstance(belief, RangedBelief) and not belief.transform.grows else 1
    asked = ~np.isin(posteriors.data.s, it.free) & ~posteriors.data.sites.differentiated
    data = posteriors.data.rows(asked)
    mean, variance = (moments[asked] for moments in averaged(posteriors.leave_one_out()))
    # Observations are in an order of their own: at each location, sorted by value, both lists are in the same one.
    used = [source for source in it._used() if source not in it.free]
    made = [i for i, e in enumerate(it.evaluations) if e.status == "ok" and e.source in used]
    made.sort(key=lambda i: sign * it.evaluations[i].value)
    at: dict[tuple[float, ...], list[int]] = {}
    for i in made:
        at.setdefault((it.evaluations[i].source, *it.evaluations[i].x), []).append(i)
    evaluations = np.empty(len(data.y), dtype=np.intp)
    for row in np.argsort(data.y, kind="stable"):
        evaluations[row] = at[data.s[row], *data.X[row]].pop(0)
    return Residuals(data.s, data.X, (data.y - mean) / np.sqrt(variance), evaluations)


@once_per_state
def primary_log_density(it: Integrator) -> float:
    """Return the log density of the observations of the primary source, each predicted from all others.

    For outputs of known range, whose transform may differ, it is a score instead, the larger the better.
    """
    belief, learned, slopes = belief_of(it), learned_belief(it), 0.0
    if isinstance(belief, RangedBelief):
        if not belief.transform.range.assumed:
            return -score(belief, [0])
        slopes = float(np.log(np.abs(belief.transform.slopes_at(it.learner.data.of_source(0).values.y))).sum())
    unit = 1.0 if learned is None else float(learned.log_posterior.units.spreads[0])
    return float(np.sum(primary_log_densities(belief.posteriors) - math.log(unit))) + slopes


@dataclass(frozen=True)
class Correlations:
    """Correlations between sources over the distribution of the inputs: mean and 95 % interval, shape (L, L) each."""

    mean: Array
    low: Array
    high: Array
    enough: NDArray[np.bool_]  #: (L, L), whether there are more observations of both than a relation has numbers

    @property
    def known(self) -> NDArray[np.bool_]:
        """Mask of those that rest on data, and whose interval is narrow enough to mean anything, shape (L, L)."""
        return self.enough & (self.high - self.low <= SETTINGS.unclear_correlation)

    def parts(self, i: int, j: int) -> list[str]:
        """Return the correlation of two sources and the ends of its interval as text, or "not known" and "yet"."""
        low, high = self.low[i, j], self.high[i, j]
        if not self.known[i, j]:
            return ["not known", "yet"]
        digits = 2 if high < 0.99 and high - low > 0.01 else 4
        return [f"{self.mean[i, j]:.{digits}f}", f"{low:.{digits}f}", f"to {high:.{digits}f}"]

    def text(self, i: int, j: int) -> str:
        """Return the correlation of two sources with its interval, or "not known yet"."""
        first, *rest = self.parts(i, j)
        return f"{first} (95 %: {' '.join(rest)})" if self.known[i, j] else f"{first} {' '.join(rest)}"


@once_per_state
def correlations(it: Integrator) -> Correlations:
    """Return how the outputs of the sources correlate over the distribution of the inputs.

    Sources are drawn from their posteriors, for all draws of the hyperparameters that decisions are made by, and the
    correlation of each draw is computed over the same inputs.
    """
    belief = belief_of(it)
    posteriors = belief.posteriors
    L, K = posteriors.models.n_sources, len(posteriors)
    X = it.measure.sobol(max(SETTINGS.correlation_points // L, 16), rng=0)
    n, each = len(X), math.ceil(SETTINGS.correlation_draws / K)
    means, covariances = posteriors.predict_joint(np.repeat(np.arange(L), n), np.tile(X, (L, 1)))
    rng, found = np.random.default_rng(0), []
    for mean, covariance in zip(means, covariances, strict=True):
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        drawn = (mean + _heavy_tailed(rng, each, L * n, belief) @ root.T).reshape(each, L, n)
        if isinstance(belief, RangedBelief):
            drawn = np.stack([belief.integrand(source, drawn[:, source]) for source in range(L)], axis=1)
        for f in drawn:
            f = f - f.mean(axis=1, keepdims=True)
            norms = np.sqrt(np.einsum("ln,ln->l", f, f))
            f /= np.where(norms > 0, norms, 1.0)[:, None]
            found.append(f @ f.T)
    low, high = np.quantile(found, [0.025, 0.975], axis=0)
    counts = np.bincount(posteriors.data.values.s, minlength=L)
    enough = (np.minimum.outer(counts, counts) > SETTINGS.relation) | np.eye(L, dtype=bool)
    return Correlations(np.mean(found, axis=0), low, high, enough | isinstance(belief, FixedBelief))


def _heavy_tailed(rng: np.random.Generator, n: int, dim: int, belief: Belief) -> Array:
    """Return n deviations from a posterior, in standard deviations, that go as far as those of the integral do."""
    deviations = rng.normal(size=(n, dim))
    if isinstance(belief, FixedBelief):
        return deviations
    dof = AVERAGING.tails
    return np.asarray(AVERAGING.widened * deviations * np.sqrt(dof / rng.chisquare(dof, size=(n, 1))))


def forecast(it: Integrator, budget: float | None = None, sources: Sequence[int] | None = None) -> Forecast:
    """Return (total cost, expected standard deviation) from now until a budget is spent, by default twice the present.

    It is empty if the costs of a source are not known yet, or if there are too many observations for a quick answer.
    """
    among = [source for source in it._telling() if sources is None or source in sources]
    slow = len(it.learner) > SETTINGS.forecast_observations
    if slow or it.starting or any(it.source_costs.unknown(source) for source in among):
        return Forecast([], exact=False)
    total = budget or 2 * max(it.committed, 1e-12)
    return it.forecast(total, among, steps=SETTINGS.forecast_steps)


@once_per_state
def outlook(it: Integrator) -> Forecast:
    """Return the forecast until twice as much is spent as now."""
    return forecast(it)


@once_per_state
def next_choice(it: Integrator) -> Choice | None:
    """Return what would be asked next if the budget were larger; None if nothing is worth evaluating."""
    return it.preview()


@dataclass(frozen=True)
class Uncovered:
    """The part of the distribution of the inputs that is far from all evaluations of the primary source."""

    share: float  #: its probability
    farthest: Array  #: (D,), the input in it that is farthest from all evaluations


@once_per_state
def uncovered(it: Integrator) -> Uncovered:
    """Return which part of the distribution of the inputs is far from all evaluations of the primary source.

    Distances are in units of the widths of the inputs, and compared with those to as many evenly spread points.
    """
    X = it.measure.sobol(SETTINGS.measure_points, rng=1)
    evaluated, width = it.learner.data.values.of_source(0).X, it.measure.width
    if not len(evaluated):
        return Uncovered(1.0, it.measure.median)
    usual, _ = cKDTree(it.measure.sobol(len(evaluated), rng=2) / width).query(X / width)
    distances, _ = cKDTree(evaluated / width).query(X / width)
    return Uncovered(float(np.mean(distances > SETTINGS.far * np.quantile(usual, 0.95))), X[distances.argmax()])


@dataclass(frozen=True)
class View:
    """What one structure of the model says of the integral: its weight in the average, mean and standard deviation."""

    weight: float
    mean: float
    std: float


@once_per_state
def views(it: Integrator) -> list[View]:
    """Return what each structure says of the integral, or what values and exponentials say, if these are averaged."""
    belief, learned = belief_of(it), learned_belief(it)
    if isinstance(belief, AveragedBelief):
        return [View(weight, found.mean, found.std) for weight, found in belief.views]
    if learned is None or not learned.model.marginalised or isinstance(belief, RangedBelief):
        return []
    units, found = learned.log_posterior.units, []
    for member in (member for member in learned.members if member.weight > 0):  # the others are ruled out
        means, stds = integrals(member.draws.models(), belief.posteriors.data)
        [mean], [variance] = averaged((means[:, None], stds[:, None] ** 2))
        level, std = units.levels[0] + units.spreads[0] * mean, units.spreads[0] * math.sqrt(variance)
        found.append(View(member.weight, float(level), float(std)))
    return found
