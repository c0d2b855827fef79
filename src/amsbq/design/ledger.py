"""The ledger of a run: what was spent, what is reserved for pending queries, and what evaluations will cost."""

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
    """How the cost of the next decision is foreseen."""

    recent: int = 5  #: latest decisions whose average it is


SETTINGS = DecisionCostSettings()


class DecisionCosts:
    """What decisions cost: the time that they take, and what is learned from answers for them.

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
        """Count the time that is spent inside towards the next decision."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._seconds += time.perf_counter() - began

    @property
    def expected(self) -> float:
        """What the next decision is expected to cost."""
        recent = self._charged[-SETTINGS.recent :]
        return sum(recent) / len(recent) if recent else 0.0

    def charge(self, most: float) -> float:
        """Return what the time since the last decision costs, but no more than is left."""
        cost = min(self.per_second * self._seconds, max(most, 0.0))
        self._seconds = 0.0
        self.charged(cost)
        return cost

    def charged(self, cost: float) -> None:
        """Record what a decision has cost, unless it was nothing: it was then a part of another one."""
        if cost:
            self._charged.append(cost)


class Ledger:
    """What was spent, what is reserved for pending queries, and what evaluations will cost.

    Attributes
    ----------
    budget : float
        In units of cost; infinite if there is no limit.
    costs : SourceCosts
        What evaluations of each source cost.
    decisions : DecisionCosts
        What decisions cost.
    pending : dict of Query by id
        Queries that were asked and have no answer yet.
    asked : int
        How many queries were asked.
    beside : float
        What the sources that are evaluated in bulk cost at the location of each evaluation of another one.
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
        """The expected cost of all pending queries, set aside, so that together they cannot exceed the budget."""
        return math.fsum(query.cost + query.decision for query in self.pending.values())

    @property
    def committed(self) -> float:
        """The cost that is spent or reserved."""
        return self.spent + self.reserved + len(self.pending) * self.beside

    def price(self, choice: Choice) -> float:
        """Return the expected cost of an evaluation, with the decision on it."""
        return self.costs.expected(choice.source, choice.x, choice.gradient) + self.decisions.expected

    def affords(self, choice: Choice) -> bool:
        """Return whether the rest of the budget pays for an evaluation."""
        return bool(affordable(self.committed + self.price(choice) + self.beside, self.budget))

    def strands(self, choice: Choice, price: float) -> bool:
        """Return whether fewer evaluations of that price can be paid after a choice than before it."""
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
        """Return a pending query that is charged with the time since the last decision."""
        charged = replace(query, decision=self.decisions.charge(self.budget - self.committed))
        self.pending[query.id] = charged
        return charged

    def waiting(self, query: Query) -> Query:
        """Return the query if it is pending, or raise an error that says why it is not."""
        if not isinstance(query, Query):
            raise TypeError(f"query must be one that ask() returned, got {brief(query)}")
        known = self.pending.get(query.id)
        if known is None or known.source != query.source or not np.array_equal(known.x, query.x):
            raise ValueError(f"query {query.id} is not waiting for an answer: it has one, or it is of another run")
        return query
