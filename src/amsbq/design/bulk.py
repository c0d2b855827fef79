"""Sources that cost next to nothing: formulas, surrogates, coarse codes.

Such a source is evaluated in bulk, at low-discrepancy points of the measure, before any other evaluation. Its
integral is kept, with a standard error; so are a few of the values, from which the model learns how the source varies.
From then on, it is evaluated wherever another source is: this shows how the two differ, which is all that is left to
learn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from ..common.messages import warn
from ..common.validation import Array, Values, read_only
from ..posterior.outputs import by_output
from .costs import ConstantCost
from .description import Problem
from .evaluations import Evaluation
from .ledger import Ledger


@dataclass(frozen=True)
class BulkSettings:
    """Rules for which sources are evaluated in bulk, and how often."""

    #: a source is evaluated in bulk if ``fewest`` evaluations cost no more than one of the primary source and than
    #: ``budget_share`` of the budget, and if the bulk takes no more than that share of the primary source's evaluations
    fewest: int = 512
    budget_share: float = 0.1
    #: maximum number of evaluations: the average over so many low-discrepancy points is far more precise than the
    #: integral of the primary source can be
    most: int = 1 << 14
    #: independent randomisations of the points, whose averages give the standard error
    replicates: int = 8
    #: number of values from which the model learns, per input and in total
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
        Number of evaluations.
    seed : int
        Seed of the points.
    mean, std : float, or (M,) with several outputs
        Estimate of its integral, and the standard error; NaN if there were failures.
    cost : float
        Total cost.
    digest : str
        Digest of all values: two runs with the same digest had the same values.
    X : (m, D) array
        Locations of the values from which the model learns.
    values, variances : (m,) or (m, M) array
        Values at X, NaN for missing outputs, and the variances of their noise.
    failed : int
        Number of failed evaluations.
    reason : str
        Why the first of these failed.
    """

    source: int
    n: int
    seed: int
    mean: Values
    std: Values
    cost: float
    digest: str
    X: Array
    values: Array
    variances: Array
    failed: int = 0
    reason: str = ""

    def with_those_beside(self, evaluations: Sequence[Evaluation]) -> tuple[int, float]:
        """Return the number and cost of all evaluations of the source, in bulk and alongside those of other sources."""
        beside = sum(bool(e.free) for e in evaluations)
        return self.n + beside, self.cost * (1 + beside / self.n)

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes in JSON-serialisable form."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Bulk:
        """Rebuild the evaluations from the output of `to_dict`; other entries are ignored."""
        plain = {name: content[name] for name in ("source", "n", "seed", "cost", "digest")}
        plain |= {"failed": int(content.get("failed", 0)), "reason": str(content.get("reason", ""))}
        numbers = {name: np.array(content[name], dtype=float) for name in ("mean", "std", "X", "values")}
        numbers["variances"] = np.array(content.get("variances", np.zeros_like(numbers["values"])), dtype=float)
        X, values = numbers["X"], numbers["values"]
        shapes = numbers["variances"].shape == values.shape and numbers["mean"].shape == values.shape[1:]
        if X.shape[:1] != values.shape[:1] or not shapes or np.isinf(values).any():
            raise ValueError(f"the bulk of source {plain['source']} has {X.shape} locations and {values.shape} values")
        arrays: Any = {name: read_only(each) if each.ndim else each.item() for name, each in numbers.items()}
        return cls(**plain, **arrays)


def _rounded(n: float) -> int:
    """Return the largest number up to n that gives each replicate the same power of two."""
    return int(SETTINGS.replicates << int(max(math.log2(max(n, 1) / SETTINGS.replicates), 0)))


def _average(values: Array, logarithms: bool) -> tuple[float, float]:
    """Return mean and standard error of replicated values (R, n); for logarithms, the log of the mean and its error."""
    top = values.max() if logarithms else 0.0
    averages = (np.exp(values - top) if logarithms else values).mean(axis=1)
    mean, error = averages.mean(), averages.std(ddof=1) / math.sqrt(len(averages))
    return (float(top + np.log(mean)), float(error / mean)) if logarithms else (float(mean), float(error))


def bulk_counts(problem: Problem, ledger: Ledger) -> dict[int, int]:
    """Return the number of evaluations of each source to be evaluated in bulk; raise ValueError if impossible."""
    costs, names, budget = ledger.costs.costs, problem.names, problem.budget
    counts = {}
    dear = math.inf if problem.sources[0].measured else ledger.costs.expected(0, problem.measure.median)
    for number, (source, cost, name) in enumerate(zip(problem.sources, costs, names, strict=True)):
        free = isinstance(cost, ConstantCost) and cost.cost == 0
        if number == 0 and (free or source.bulk):
            raise ValueError(f"{name} is the primary source: it must cost something, and is not evaluated in bulk")
        if free and source.bulk is False:
            raise ValueError(f"{name} costs nothing: omit bulk=False")
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
                most = SETTINGS.most if own or source.vectorized else SETTINGS.fewest
                counts[number] = _rounded(min(most, affordable))
            else:  # as many as the user asks for, equally many in each replicate
                counts[number] = max(source.bulk // SETTINGS.replicates, 1) * SETTINGS.replicates
            if counts[number] * cost.cost > budget:
                raise ValueError(f"{counts[number]} evaluations of {name} in bulk cost more than the budget")
    return counts


class InBulk:
    """The sources that are evaluated in bulk, and then wherever another source is.

    Attributes
    ----------
    counts : dict of int by source
        Planned number of evaluations of each of them.
    made : list of Bulk
        Evaluations made so far.
    """

    def __init__(self, problem: Problem, ledger: Ledger, counts: Mapping[int, int]) -> None:
        self.problem, self.ledger, self.made = problem, ledger, list[Bulk]()
        self.keep(counts)

    def keep(self, counts: Mapping[int, int]) -> None:
        """Evaluate these sources in bulk, with these numbers of evaluations, and all others one by one."""
        self.counts = dict(counts)
        self.ledger.beside = math.fsum(self.price_of(source) for source in self.sources)

    @property
    def sources(self) -> tuple[int, ...]:
        """The sources that are evaluated in bulk, and wherever another one is."""
        found = {*self.counts, *(bulk.source for bulk in self.made)}
        return tuple(sorted(source for source in found if source in self.problem.usable))

    @property
    def wanted(self) -> list[int]:
        """The sources that are still to be evaluated in bulk, before any other evaluation."""
        return [] if self.made else list(self.sources)

    def price_of(self, source: int) -> float:
        """Return the expected cost of one evaluation of a source."""
        return self.ledger.costs.expected(source, self.problem.measure.median)

    def may_be_slow(self, source: int) -> bool:
        """Return whether bulk evaluation may be given up if it proves slow: unless the user has asked for it."""
        of = self.problem.sources[source]
        return of.bulk is None and self.price_of(source) > 0 and not of.vectorized

    def points(self, source: int) -> Array:
        """Return the points at which a source is evaluated in bulk, R randomisations of a point set: (R, n/R, D).

        They are drawn from the measure that the models use, so that the integral is that of the models: for samples of
        the inputs this may be a subset of them.
        """
        rng, each = np.random.default_rng([self.problem.seed, source]), self.counts[source] // SETTINGS.replicates
        measure = self.problem.measure.for_learning()
        return np.array([measure.sobol(each, rng) for _ in range(SETTINGS.replicates)])

    def summary(self, source: int, X: Array, values: Array, variances: Array, reason: str = "") -> Bulk:
        """Summarise all evaluations of a source in bulk.

        Parameters
        ----------
        source : int
        X : (R, n/R, D) array
            Its points.
        values, variances : (n,) or (n, M) array
            Values at the points in order, NaN where an evaluation failed, and the variances of their noise.
        reason : str
            Why the first failed evaluation failed, if known.
        """
        problem, n = self.problem, self.counts[source]
        columns, outputs = values.reshape(n, -1), problem.outputs or ("",)
        bounds = [limits or (-np.inf, np.inf) for limits in by_output(problem.sources[source].valid, outputs)]
        low, high = np.array(bounds).T
        good = np.isfinite(columns) & (columns >= low) & (columns <= high)
        own = [name in (problem.sources[source].outputs or ("",)) for name in outputs]
        usable = np.where(good, columns, np.nan).reshape(SETTINGS.replicates, -1, len(bounds))
        mean, std = np.array([_average(usable[..., m], is_log) for m, is_log in enumerate(problem.logarithms)]).T
        most = min(SETTINGS.modelled_per_input * problem.measure.dim, SETTINGS.most_modelled)
        some = np.flatnonzero(good[: n // SETTINGS.replicates].any(axis=1))[:most]
        kept = np.where(good[some], columns[some], np.nan)
        noise = np.where(good[some], variances.reshape(n, -1)[some], 0.0)
        if problem.outputs is None:
            mean, std, kept, noise = mean[0], std[0], kept[:, 0], noise[:, 0]
        if not len(some):
            raise ValueError(f"{problem.names[source]} failed at all {n} locations")
        failed = int(np.count_nonzero(~good[:, own].all(axis=1)))
        if failed:
            why = f", the first time with: {reason}" if reason else ""
            warn(f"{problem.names[source]} failed at {failed} of {n} locations{why}. Its integral is not used")
        digest = sha256(np.ascontiguousarray(values, dtype="<f8").tobytes()).hexdigest()[:16]
        about = {"source": source, "n": n, "seed": problem.seed, "cost": self.price_of(source) * n, "digest": digest}
        about |= {"failed": failed, "reason": reason} if failed else {}
        return Bulk.from_dict({**about, "mean": mean, "std": std, "X": X[0][some], "values": kept, "variances": noise})

    def begun(self) -> None:
        """Fix the set of sources evaluated in bulk: those with evaluations in bulk when the run began.

        Sources that cost nothing are an exception, because they cannot be queried.
        """
        nothing = {source: n for source, n in self.counts.items() if not self.price_of(source)}
        self.keep({**nothing, **{bulk.source: bulk.n for bulk in self.made}})
