"""What was asked and is on its way, what was told, and what it cost: the books of a run."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..measures.adapters import as_measure
from ..validation import Array, brief, non_negative_number, number, positive_number, read_only
from .costs import affordable
from .learned_costs import SourceCosts
from .sources import as_sources, labels


@dataclass(frozen=True, eq=False)
class Query:
    """An evaluation to be made: of which source, where, and what it is expected to cost."""

    id: int
    source: int
    x: Array  # (D,)
    cost: float
    rate: float = math.nan  #: at which it was chosen; none in the initial design


@dataclass(frozen=True, eq=False)
class Evaluation:
    """An evaluation that was made, or failed, and what was known of the integral after it."""

    id: int | None  #: of its query; None for data that were there before
    source: int
    x: Array
    value: float
    variance: float
    cost: float
    status: str  #: "ok" or "failed"
    reason: str  #: why it failed
    mean: float = math.nan  #: of the integral, after it
    std: float = math.nan


def outside(value: float, valid: tuple[float, float]) -> str:
    """Why such a value is no value."""
    return f"the value {value:.6g} is outside of what is valid, {valid[0]:.6g} to {valid[1]:.6g}"


class Accounting(ABC):
    """The books of a run, and what may be written into them; what to ask for next is for others to decide.

    Attributes
    ----------
    spent, reserved : float
        The cost of all evaluations, and what is set aside for those that are asked and not yet told.
    evaluations : list of Evaluation
    pending : list of Query
    stopped : str or None
        Why nothing more is asked.
    """

    def __init__(self, sources: Any, measure: Any, budget: float | None) -> None:
        self.sources, self.measure = as_sources(sources), as_measure(measure)
        self.names = labels(self.sources)
        self.budget = math.inf if budget is None else positive_number(budget, "budget")
        self.source_costs = SourceCosts([source.cost for source in self.sources], self.names, self.measure)
        self.evaluations: list[Evaluation] = []
        self.stopped: str | None = None
        self._pending: dict[int, Query] = {}
        self._asked = 0
        self._spent, self._carry = 0.0, 0.0  # a sum, and what it lost by rounding

    def __repr__(self) -> str:
        made = f"{len(self.evaluations)} evaluations, spent {self.spent:.6g}"
        return f"<{type(self).__name__} of {', '.join(self.names)}: {made}>"

    @property
    def spent(self) -> float:
        return self._spent + self._carry

    @property
    def reserved(self) -> float:
        return math.fsum(query.cost for query in self._pending.values())

    @property
    def committed(self) -> float:
        """What is spent or set aside."""
        return self.spent + self.reserved

    @property
    def pending(self) -> list[Query]:
        return list(self._pending.values())

    def query(self, id: int) -> Query:
        """The one of that number, if it is waiting for its answer."""
        if id not in self._pending:
            raise ValueError(f"query {id} is not waiting for an answer")
        return self._pending[id]

    @abstractmethod
    def ask(self) -> Query | None:
        """What to evaluate next, or None if nothing more is to be asked."""

    def tell(self, query: Query, value: ArrayLike, variance: float = 0.0, cost: float | None = None) -> None:
        """The answer to a query.

        Parameters
        ----------
        query : Query
        value : float
        variance : float
            Of the noise on this value.
        cost : float, optional
            What it cost; by default what was expected.
        """
        query = self._waiting(query)
        valid = self.sources[query.source].valid
        try:
            y = number(value, "value")
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error}; if the evaluation failed, say fail(query, reason)") from None
        noise = non_negative_number(variance, "variance")
        if cost is None and self.sources[query.source].measured:
            raise ValueError(f"the cost of {self.names[query.source]} is measured: tell it, as in tell(..., cost=1.5)")
        charged = query.cost if cost is None else positive_number(cost, "cost")
        if valid is not None and not valid[0] <= y <= valid[1]:
            self.fail(query, outside(y, valid), charged)
            return
        self._record(query, y, noise, charged)
        self.source_costs.paid(query.source, query.x, charged)
        self._heard(self.evaluations[-1])

    def fail(self, query: Query, reason: str, cost: float | None = None) -> None:
        """A query has no answer. It is charged all the same."""
        query = self._waiting(query)
        charged = query.cost if cost is None else non_negative_number(cost, "cost")
        self._record(query, math.nan, 0.0, charged, str(reason) or "failed")
        self._heard(self.evaluations[-1])

    def reissue(self, query: Query) -> None:
        """A query that was asked in the past of this run."""
        self._pending[query.id] = query
        self._asked = query.id + 1

    def _heard(self, evaluation: Evaluation) -> None:  # noqa: B027
        """For those who want to make something of the latest evaluation."""

    def _can_pay(self, source: int, x: Array) -> bool:
        return bool(affordable(self.committed + self.source_costs.expected(source, x), self.budget))

    def _issued(self, source: int, x: Array, rate: float = math.nan) -> Query:
        """A new query, for which its cost is set aside."""
        query = Query(self._asked, source, read_only(x), self.source_costs.expected(source, x), rate)
        self._pending[query.id] = query
        self._asked += 1
        return query

    def _stop(self, reason: str) -> None:
        if not self._pending:
            self.stopped = reason

    def _waiting(self, query: Query) -> Query:
        """The query, if it is one that waits for its answer."""
        if not isinstance(query, Query):
            raise TypeError(f"query must be one that ask() returned, got {brief(query)}")
        waiting = self._pending.get(query.id)
        if waiting is None or waiting.source != query.source or not np.array_equal(waiting.x, query.x):
            raise ValueError(f"query {query.id} is not waiting for an answer: it has one, or it is of another run")
        return query

    def _record(self, query: Query, value: float, noise: float, cost: float, reason: str = "") -> None:
        """What was paid for is kept before anything is made of it: that may take time, and be interrupted."""
        status = "failed" if reason else "ok"
        del self._pending[query.id]
        total = self._spent + cost
        self._carry += self._spent - total + cost if self._spent >= cost else cost - total + self._spent
        self._spent = total
        self.evaluations.append(Evaluation(query.id, query.source, query.x, value, noise, cost, status, reason))
