"""The ledger of a run: the spent cost, the cost reserved for pending queries, and expected costs of evaluations."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..common.validation import brief, read_only
from .costs import SETTINGS as COSTS
from .costs import SourceCosts, affordable
from .description import Problem
from .evaluations import Choice, Query


@dataclass(frozen=True)
class DecisionCostSettings:
    """Settings for predicting the cost of the next decision."""

    recent: int = 5  #: number of most recent decisions to average over


SETTINGS = DecisionCostSettings()


class DecisionCosts:
    """The cost of decisions: the time they take, including learning from the answers.

    Parameters
    ----------
    per_second : float
        The cost of a second, in the unit of all costs; zero if decisions cost nothing.
    """

    def __init__(self, per_second: float = 0.0) -> None:
        self.per_second = per_second
        self._charged: list[float] = []
        self._seconds = 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the time spent inside this context towards the next decision."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._seconds += time.perf_counter() - began

    @property
    def expected(self) -> float:
        """The expected cost of the next decision."""
        recent = self._charged[-SETTINGS.recent :]
        return sum(recent) / len(recent) if recent else 0.0

    def charge(self, most: float) -> float:
        """Return the cost of the time since the last decision, at most what is left of the budget."""
        cost = min(self.per_second * self._seconds, max(most, 0.0))
        self._seconds = 0.0
        self.charged(cost)
        return cost

    def charged(self, cost: float) -> None:
        """Record the cost of a decision, unless it is zero, which means that it was part of another decision."""
        if cost:
            self._charged.append(cost)


class Ledger:
    """Spent cost, cost reserved for pending queries, and expected costs of evaluations.

    Attributes
    ----------
    budget : float
        In units of cost; infinite if there is no limit.
    costs : SourceCosts
        Costs of evaluations of each source.
    decisions : DecisionCosts
        Costs of decisions.
    pending : dict of Query by id
        Queries without an answer.
    asked : int
        Number of queries so far.
    beside : float
        Cost of the sources that are evaluated in bulk, at the location of each evaluation of another source.
    """

    def __init__(self, problem: Problem) -> None:
        gradients = {s: source.gradient_cost for s, source in enumerate(problem.sources) if problem.with_gradient(s)}
        prices = [source.cost for source in problem.sources]
        self.costs = SourceCosts(prices, problem.names, problem.measure, gradients, problem.model.fidelities)
        self.decisions = DecisionCosts(problem.decision_cost)
        self.budget, self.pending, self.asked, self.beside = problem.budget, dict[int, Query](), 0, 0.0
        self._always = {s for s, source in enumerate(problem.sources) if source.gradient is True}
        self._spent = Fraction()  # exact: rounding in a long sum must not cross the budget

    @property
    def spent(self) -> float:
        """The cost of all evaluations so far."""
        return float(self._spent)

    @property
    def reserved(self) -> float:
        """The expected cost of all pending queries, set aside so that together they cannot exceed the budget."""
        return math.fsum(query.cost + query.decision for query in self.pending.values())

    @property
    def committed(self) -> float:
        """The cost that is spent or reserved."""
        return self.spent + self.reserved + len(self.pending) * self.beside

    def price(self, choice: Choice) -> float:
        """Return the expected cost of an evaluation, including the decision on it."""
        return self.costs.expected(choice.source, choice.x, choice.gradient) + self.decisions.expected

    def affords(self, choice: Choice) -> bool:
        """Return whether the remaining budget covers an evaluation."""
        return bool(affordable(self.committed + self.price(choice) + self.beside, self.budget))

    def strands(self, choice: Choice, price: float) -> bool:
        """Return whether a choice reduces the number of evaluations of that price that the budget still covers."""
        rest = self.budget * (1 + COSTS.rounding) - self.committed
        return math.isfinite(rest) and bool((rest - self.price(choice)) // price != rest // price)

    def charge(self, cost: float) -> None:
        """Charge a cost."""
        self._spent += Fraction(cost)

    def issue(self, choice: Choice) -> Query:
        """Return a new query, for which its expected cost is reserved."""
        gradient = choice.gradient or choice.source in self._always
        cost = self.costs.expected(choice.source, choice.x, choice.gradient)
        query = Query(self.asked, choice.source, read_only(choice.x), cost, choice.rate, gradient)
        self.pending[query.id] = query
        self.asked += 1
        return query

    def charge_decision(self, query: Query) -> Query:
        """Return the pending query, charged with the time since the last decision."""
        charged = replace(query, decision=self.decisions.charge(self.budget - self.committed))
        self.pending[query.id] = charged
        return charged

    def waiting(self, query: Query) -> Query:
        """Return the query if it is pending; otherwise, raise an error."""
        if not isinstance(query, Query):
            raise TypeError(f"query must be one that ask() returned, got {brief(query)}")
        known = self.pending.get(query.id)
        if known is None or known.source != query.source or not np.array_equal(known.x, query.x):
            raise ValueError(f"query {query.id} is not pending: it has an answer, or belongs to another run")
        return query
