"""Queries, evaluations and what they cost: the bookkeeping of a run, shared by all methods that choose evaluations."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from numbers import Real
from threading import RLock
from typing import Any, Literal, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from ..measures.adapters import InputLike, MeasureLike, as_measure
from ..measures.base import Measure
from ..validation import Array, brief, non_negative_number, number, positive_number, read_only
from .costs import SourceCosts, affordable
from .failures import recorded_reason, rejection
from .sources import SourcesLike, as_sources, source_names

Status: TypeAlias = Literal["ok", "failed"]

#: why a run stopped; a stop rule of the user may return any other text
StopReason: TypeAlias = (
    Literal["budget", "tolerance", "rate", "evaluations", "exhausted", "failures", "interrupted"] | str
)


@dataclass(frozen=True, eq=False)
class Query:
    """A request for one evaluation of a source at a location.

    Attributes
    ----------
    id : int
        Number of the query in its run, from 0.
    source : int
        Number of the source to evaluate.
    x : (D,) array
        The location.
    cost : float
        The expected cost, which is reserved in the budget until the query is answered.
    rate : float
        The acquisition rate (utility per cost) at which it was chosen; NaN in the initial design.
    """

    id: int
    source: int
    x: Array
    cost: float
    rate: float = math.nan


@dataclass(frozen=True, eq=False)
class Evaluation:
    """An evaluation that was made or that failed, and the integral after it.

    Attributes
    ----------
    id : int or None
        Number of its query; None for data passed to `Integrator.observe`.
    source : int
        Number of the source.
    x : (D,) array
        The location.
    value : float
        The value of the source; NaN if the evaluation failed.
    variance : float
        Variance of the noise on this value.
    cost : float
        What was charged for it.
    status : str
        "ok" or "failed".
    reason : str
        Why it failed; empty if it did not.
    mean, std : float
        Mean and standard deviation of the integral after this evaluation. NaN before the first value, and for data
        passed to `Integrator.observe`, which are used when the integral is next estimated.
    note : str
        What the user did to it afterwards: excluded it, or corrected its value; empty otherwise.
    free : tuple of float
        Values of the sources that are evaluated in bulk at the same location, NaN where they failed.
    """

    id: int | None
    source: int
    x: Array
    value: float
    variance: float
    cost: float
    status: Status
    reason: str
    mean: float = math.nan
    std: float = math.nan
    note: str = ""
    free: tuple[float, ...] = ()


def _has_names(measure: Mapping[Any, Any]) -> bool:
    """Return whether a dictionary has an input by name in each entry, and not the probability of a category."""
    return bool(measure) and all(isinstance(key, str) and not isinstance(part, Real) for key, part in measure.items())


#: the distribution of the inputs, or a dictionary of the distribution of each one by its name
NamedMeasureLike: TypeAlias = MeasureLike | Mapping[str, InputLike]


def named_measure(measure: NamedMeasureLike, names: Sequence[str] | None = None) -> tuple[Measure, list[str] | None]:
    """Return the measure of the inputs, and their names, or None if they have none.

    Parameters
    ----------
    measure : anything that `as_measure` takes, or a dictionary of distributions and (low, high) pairs by name
        The distribution of the inputs.
    names : list of str, optional
        Names of the inputs, instead of those of a dictionary.

    >>> named_measure({"load": (0, 1), "size": (2, 3)})
    (Uniform([0.0, 2.0], [1.0, 3.0]), ['load', 'size'])
    """
    if isinstance(measure, Mapping) and _has_names(measure):
        if names is not None:
            raise ValueError("give names either in the dictionary of distributions or as names=, not both")
        return as_measure(cast(MeasureLike, list(measure.values()))), list(measure)
    inputs = as_measure(cast(MeasureLike, measure))
    if names is None:
        return inputs, None
    listed = [names] if isinstance(names, str) else list(names)
    if not all(isinstance(name, str) for name in listed) or len(set(listed)) < len(listed):
        raise ValueError(f"names must be different texts, one for each input, got {brief(names)}")
    if len(listed) != inputs.dim:
        raise ValueError(f"there are {inputs.dim} inputs, but names has {len(listed)}: {brief(names)}")
    return inputs, listed


Method = TypeVar("Method", bound=Callable[..., Any])


def locked(method: Method) -> Method:
    """Return a method that only one thread at a time executes, of all methods of its object that are locked."""

    @wraps(method)
    def one_at_a_time(self: Accounting, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return method(self, *args, **kwargs)

    return cast(Method, one_at_a_time)


class Accounting(ABC):
    """Queries, evaluations and costs of a run; subclasses decide what to ask for next.

    It may be used by several threads.

    Attributes
    ----------
    sources : tuple of Source
        The primary source first.
    measure : Measure
        The distribution of the inputs.
    inputs : list of str or None
        Names of the inputs, if they have any.
    names : list of str
        A different name for each source.
    budget : float
        In units of cost; infinite if there is no limit.
    evaluations : list of Evaluation
        In the order in which they were told.
    stopped : str or None
        Why nothing more is asked; None while more can be asked.
    """

    def __init__(self, sources: SourcesLike, measure: NamedMeasureLike, budget: float | None) -> None:
        self.measure, self.inputs = named_measure(measure)
        self.sources = tuple(source.after(self.measure.function) for source in as_sources(sources))
        self.names = source_names(self.sources)
        self.budget = math.inf if budget is None else positive_number(budget, "budget")
        self.source_costs = SourceCosts([source.cost for source in self.sources], self.names, self.measure)
        self.evaluations: list[Evaluation] = []
        self.stopped: StopReason | None = None
        self._pending: dict[int, Query] = {}
        self._n_asked = 0
        self._lock = RLock()
        self._spent = Fraction()  # exact: rounding in a long sum must not cross the budget

    def __repr__(self) -> str:
        made = f"{len(self.evaluations)} evaluations, spent {self.spent:.6g}"
        return f"<{type(self).__name__} of {', '.join(self.names)}: {made}>"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=RLock())

    @property
    def spent(self) -> float:
        """The cost of all evaluations so far."""
        return float(self._spent)

    @property
    @locked
    def reserved(self) -> float:
        """The expected cost of all pending queries: set aside, so that together they cannot exceed the budget."""
        return math.fsum(query.cost for query in self._pending.values())

    @property
    @locked
    def committed(self) -> float:
        """The cost that is spent or reserved."""
        return self.spent + self.reserved + len(self._pending) * self._cost_beside

    @property
    @locked
    def pending(self) -> list[Query]:
        """The queries that were asked and have no answer yet."""
        return list(self._pending.values())

    @abstractmethod
    def ask(self) -> Query | None:
        """Return what to evaluate next, or None if nothing more is to be asked."""

    @locked
    def tell(
        self,
        query: Query,
        value: ArrayLike,
        variance: float = 0.0,
        cost: float | None = None,
        free: Sequence[float] | None = None,
    ) -> None:
        """Answer a query with a value.

        A value outside of the source's ``valid`` range is recorded as a failed evaluation.

        Parameters
        ----------
        query : Query
            A pending query, as `ask` returned it.
        value : float
            The value of the source at ``query.x``.
        variance : float
            Variance of the noise on this value.
        cost : float, optional
            The actual cost; by default the expected one. Required if the cost of the source is "measured".
        free : list of float, optional
            The values of the sources that are evaluated in bulk at ``query.x``; by default they are evaluated now.
        """
        query, source = self._pending_query(query), self.sources[query.source]
        try:
            y = number(value, "value")
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error}; if the evaluation failed, call fail(query, reason)") from None
        noise = non_negative_number(variance, "variance")
        if cost is None and source.measured:
            raise ValueError(f"the cost of {self.names[query.source]} is measured: tell it, as in tell(..., cost=1.5)")
        charged = query.cost if cost is None else positive_number(cost, "cost")
        reason = rejection(y, source.valid, noise)
        if reason:
            self._append(query, math.nan, 0.0, charged, reason)
        else:
            self._append(query, y, noise, charged, free=tuple(self.values_beside(query.x) if free is None else free))

    def evaluate_bulk(self) -> list[Any]:
        """Evaluate sources in bulk, unless that was done before, and return what they gave."""
        return []

    def values_beside(self, x: Array) -> list[float]:
        """Return the values at x of the sources that are evaluated in bulk, NaN where they fail."""
        return []

    @locked
    def fail(self, query: Query, reason: str, cost: float | None = None) -> None:
        """Answer a query with a failure, which is charged like a value.

        Parameters
        ----------
        query : Query
            A pending query, as `ask` returned it.
        reason : str
            Why there is no value; it is recorded as one line, without control characters, and cut if it is long.
        cost : float, optional
            The actual cost, which may be zero; by default the expected one.
        """
        query = self._pending_query(query)
        charged = query.cost if cost is None else non_negative_number(cost, "cost")
        self._append(query, math.nan, 0.0, charged, recorded_reason(reason))

    def _append(
        self,
        query: Query,
        value: float,
        variance: float,
        cost: float,
        reason: str = "",
        free: tuple[float, ...] = (),
    ) -> None:
        """Use an answer, then append its evaluation, complete with the integral after it.

        What was paid for is kept even if its use is interrupted or raises an error: the evaluation is then appended
        with NaN for the mean and the standard deviation of the integral.
        """
        del self._pending[query.id]
        mean = std = math.nan
        try:
            self._use(query.source, query.x, value, variance, cost, reason, free)
            mean, std = self._integral()
        finally:
            status: Status = "failed" if reason else "ok"
            made = Evaluation(
                query.id, query.source, query.x, value, variance, cost, status, reason, mean, std, free=free
            )
            self._charge_for(made)
            self.evaluations.append(made)

    def _use(
        self, source: int, x: Array, value: float, variance: float, cost: float, reason: str, free: tuple[float, ...]
    ) -> None:
        """Learn from an answer; a subclass with a model adds the value to its data."""
        if not reason:
            self.source_costs.paid(source, x, cost)

    def _integral(self) -> tuple[float, float]:
        """Return mean and standard deviation of the integral, NaN if there is no model to tell them."""
        return math.nan, math.nan

    def _can_pay(self, source: int, x: Array) -> bool:
        price = self.source_costs.expected(source, x) + self._cost_beside
        return bool(affordable(self.committed + price, self.budget))

    def _issued(self, source: int, x: Array, rate: float = math.nan) -> Query:
        """Return a new query, for which its expected cost is reserved."""
        query = Query(self._n_asked, source, read_only(x), self.source_costs.expected(source, x), rate)
        self._pending[query.id] = query
        self._n_asked += 1
        return query

    def _charge(self, cost: float) -> None:
        self._spent += Fraction(cost)

    def _charge_for(self, made: Evaluation) -> None:
        self._charge(made.cost)
        if made.free:
            self._charge(self._cost_beside)

    @property
    def _cost_beside(self) -> float:
        """The cost of the sources that are evaluated in bulk, at one location."""
        return 0.0

    def _stop(self, reason: StopReason) -> None:
        """Stop for a reason, unless answers are pending that may change it."""
        if not self._pending:
            self.stopped = reason

    def _pending_query(self, query: Query) -> Query:
        """Return the query if it is pending, or raise an error that says why it is not."""
        if not isinstance(query, Query):
            raise TypeError(f"query must be one that ask() returned, got {brief(query)}")
        waiting = self._pending.get(query.id)
        if waiting is None or waiting.source != query.source or not np.array_equal(waiting.x, query.x):
            raise ValueError(f"query {query.id} is not waiting for an answer: it has one, or it is of another run")
        return query
