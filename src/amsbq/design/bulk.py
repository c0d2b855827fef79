"""Sources that cost next to nothing: formulas, surrogates, coarse codes.

Such a source is evaluated in bulk, at low-discrepancy points of the measure, before anything else is asked. What is
kept is its integral, with the error of that, and a few of the values, from which the model learns how it varies. From
then on it is evaluated wherever another source is: that shows how the two differ, which is all that is left to learn.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from ..inference.schedule import Learner
from ..measures.adapters import NamedMeasureLike
from ..measures.base import Measure
from ..messages import collected_warnings, warn
from ..outputs.evaluations import Evaluation
from ..outputs.learner import OutputsLearner
from ..outputs.names import OutputsLike
from ..validation import Array, read_only
from .accounting import Accounting
from .costs import ConstantCost, Cost
from .sources import Source, SourcesLike


@dataclass(frozen=True)
class BulkSettings:
    """Which sources are evaluated in bulk, and how often."""

    #: a source is evaluated in bulk if so many evaluations cost no more than that share of the budget and of the
    #: evaluations of the primary source that it pays for, and no more than one of these
    fewest: int = 512
    budget_share: float = 0.1
    #: evaluations, at most: the average of so many low-discrepancy points is far more precise than what the primary
    #: source can be known to
    most: int = 1 << 14
    #: independent randomisations of the points, whose averages tell the error
    replicates: int = 8
    #: a function that is called with one location at a time is not evaluated in bulk by default if the first few of
    #: these calls take longer, in seconds each: that would be hours for all of them
    tried: int = 8
    longest: float = 0.01
    #: values that the model learns from, for each input and at most
    modelled_per_input: int = 16
    most_modelled: int = 64


SETTINGS = BulkSettings()


@dataclass(frozen=True)
class Bulk:
    """The evaluations of a source in bulk.

    Attributes
    ----------
    source : int
        Number of the source.
    n : int
        How many there were.
    seed : int
        Seed of the points.
    mean, std : float
        Its integral, and the standard error of that; NaN if there were failures.
    cost : float
        What all of them cost.
    digest : str
        Of all values: two runs with the same digest had the same values.
    X, values : (m, D) and (m,) arrays
        Those that the model learns from.
    """

    source: int
    n: int
    seed: int
    mean: float
    std: float
    cost: float
    digest: str
    X: Array
    values: Array

    def with_those_beside(self, evaluations: Sequence[Evaluation]) -> tuple[int, float]:
        """Return how often the source was evaluated, in bulk and beside evaluations of others, and what that cost."""
        beside = sum(bool(e.free) for e in evaluations)
        return self.n + beside, self.cost * (1 + beside / self.n)

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes as numbers, text and lists."""
        return {**vars(self), "X": self.X.tolist(), "values": self.values.tolist()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Bulk:
        """Return the evaluations of which `to_dict` made ``content``; other entries are ignored."""
        plain = {name: content[name] for name in ("source", "n", "seed", "mean", "std", "cost", "digest")}
        X, values = (read_only(np.array(content[name], dtype=float)) for name in ("X", "values"))
        if values.ndim != 1 or X.shape[:1] != values.shape or not np.isfinite(values).all():
            raise ValueError(f"the bulk of source {plain['source']} has {X.shape} locations and {values.shape} values")
        return cls(**plain, X=X, values=values)


def bulk_counts(
    sources: Sequence[Source], costs: Sequence[Cost], names: Sequence[str], budget: float
) -> dict[int, int]:
    """Return the sources to be evaluated in bulk and how often; raise an error if that cannot be."""
    counts = {}
    dear = float(costs[0].expected(costs[0].measure.median[None])[0]) if not sources[0].measured else math.inf
    for number, (source, cost, name) in enumerate(zip(sources, costs, names, strict=True)):
        free = isinstance(cost, ConstantCost) and cost.cost == 0
        if number == 0 and (free or source.bulk):
            raise ValueError(f"{name} is the primary source: it must cost something, and is not evaluated in bulk")
        if free and source.bulk is False:
            raise ValueError(f"{name} costs nothing: leave bulk=False out")
        if number == 0 or source.bulk is False or not isinstance(cost, ConstantCost):
            continue
        affordable = SETTINGS.budget_share * budget / cost.cost if cost.cost else math.inf
        own = source.function is not None and not getattr(source.function, "one_by_one", False)
        cheap = math.isfinite(budget) and affordable >= SETTINGS.fewest and dear >= SETTINGS.fewest * cost.cost
        if cheap and cost.cost and math.isfinite(dear):
            left = budget - _rounded(min(SETTINGS.most, affordable)) * cost.cost
            cheap = left // dear >= (1 - SETTINGS.budget_share) * (budget // dear)
        if source.bulk or free or (own and cheap):
            if isinstance(source.bulk, bool | None):
                counts[number] = _rounded(min(SETTINGS.most, affordable))
            else:  # as many as the user wants, the same for each replicate
                counts[number] = max(source.bulk // SETTINGS.replicates, 1) * SETTINGS.replicates
            if counts[number] * cost.cost > budget:
                raise ValueError(f"{counts[number]} evaluations of {name} in bulk cost more than the budget")
    return counts


def _rounded(n: float) -> int:
    """Return the largest number, up to n, of which each replicate gets the same power of two."""
    return int(SETTINGS.replicates << int(max(math.log2(max(n, 1) / SETTINGS.replicates), 0)))


def evaluate_bulk(source: Source, number: int, cost: float, measure: Measure, n: int, seed: int) -> Bulk:
    """Return n evaluations of a source at randomised Sobol points of the measure."""
    rng, each = np.random.default_rng([seed, number]), n // SETTINGS.replicates
    X = [measure.sobol(each, rng) for _ in range(SETTINGS.replicates)]
    values = np.array([source.many(points) for points in X])
    low, high = source.valid or (-np.inf, np.inf)
    good = np.isfinite(values) & (values >= low) & (values <= high)
    mean = std = math.nan
    if good.all():
        averages = values.mean(axis=1)
        mean, std = float(averages.mean()), float(averages.std(ddof=1) / SETTINGS.replicates**0.5)
    some = np.flatnonzero(good[0])[: min(SETTINGS.modelled_per_input * measure.dim, SETTINGS.most_modelled)]
    digest = sha256(np.ascontiguousarray(values, dtype="<f8").tobytes()).hexdigest()[:16]
    return Bulk(
        number, n, seed, mean, std, cost * n, digest, read_only(X[0][some].copy()), read_only(values[0][some].copy())
    )


class BulkAccounting(Accounting):
    """Accounting with sources that are evaluated in bulk, and then wherever another source is.

    Attributes
    ----------
    learner : Learner
        What learns from their values.
    seed : int
        Seed of all randomness.
    bulk : list of Bulk
        What was evaluated in bulk.
    """

    learner: Learner | OutputsLearner
    seed: int

    def __init__(
        self,
        sources: SourcesLike,
        measure: NamedMeasureLike,
        budget: float | None,
        outputs: OutputsLike | None = None,
    ) -> None:
        super().__init__(sources, measure, budget, outputs)
        #: sources to be evaluated in bulk, and how often
        self._counts = bulk_counts(self.sources, self.source_costs.costs, self.names, self.budget)
        if self.outputs is not None:
            for source in self._counts:
                if self.sources[source].bulk or self._price_of(source) == 0:
                    raise ValueError(
                        f"{self.names[source]} is not evaluated in bulk with several outputs: give it a cost"
                    )
            self._counts = {}
        self.bulk: list[Bulk] = []

    @abstractmethod
    def _usable(self) -> range:
        """Return the numbers of the sources that the model can use."""

    @property
    def free(self) -> tuple[int, ...]:
        """The sources that are evaluated in bulk, and wherever another one is."""
        used = (source for source in {*self._counts, *(bulk.source for bulk in self.bulk)} if source in self._usable())
        return tuple(sorted(used))

    @property
    def _cost_beside(self) -> float:
        return math.fsum(self._price_of(source) for source in self.free)

    def _price_of(self, source: int) -> float:
        return self.source_costs.expected(source, self.measure.median)

    def _slow(self, source: int) -> bool:
        """Return whether a few calls of a source take so long that it should not be evaluated in bulk."""
        if self.sources[source].vectorized:
            return False
        start = time.perf_counter()
        self.sources[source].many(self.measure.sobol(SETTINGS.tried, np.random.default_rng([self.seed, source])))
        return time.perf_counter() - start > SETTINGS.tried * SETTINGS.longest

    def values_beside(self, x: Array) -> list[float]:
        """Return the values at x of the sources that are evaluated in bulk, NaN where they fail."""
        return [float(self.sources[source].many(x[None])[0]) for source in self.free]

    def evaluate_bulk(self) -> list[Bulk]:
        """Evaluate sources in bulk, unless that was done before, and return what they gave."""
        if self.bulk:
            return []
        made = []
        for source in self.free:
            if self.sources[source].function is None:
                raise ValueError(f"{self.names[source]} is evaluated in bulk: give it a function, or another cost")
            if self.sources[source].bulk is None and self._price_of(source) > 0 and self._slow(source):
                del self._counts[source]
        for source in self.free:
            cost, n = self._price_of(source), self._counts[source]
            made.append(evaluate_bulk(self.sources[source], source, cost, self.measure, n, self.seed))
        for bulk in made:
            self._use_bulk(bulk)
        return made

    def _use_bulk(self, bulk: Bulk) -> None:
        """Learn from evaluations in bulk."""
        if not len(bulk.values):
            raise ValueError(f"{self.names[bulk.source]} has failed at all {bulk.n} locations")
        if math.isnan(bulk.mean):
            warn(
                f"{self.names[bulk.source]} has failed at some of {bulk.n} locations: its integral is not used",
            )
        self.bulk.append(bulk)
        self._charge(bulk.cost)
        for x, value in zip(bulk.X, bulk.values, strict=True):
            self.learner.add(bulk.source, x, float(value), 0.0)
        if not math.isnan(bulk.mean):
            self.learner.integrals += ((bulk.source, bulk.mean, bulk.std**2),)

    def _restore_bulk(self, bulk: Sequence[Bulk], begun: bool) -> None:
        """Learn from the evaluations in bulk of a run that may have begun: others are not made any more.

        Sources that cost nothing are an exception: they cannot be asked for.
        """
        with collected_warnings():  # they were issued when it happened
            for made in bulk:
                self._use_bulk(made)
        if begun:
            nothing = {source: n for source, n in self._counts.items() if not self._price_of(source)}
            self._counts = {**nothing, **{made.source: made.n for made in bulk}}
