"""Queries, evaluations and what they cost: the bookkeeping of a run, shared by all methods that choose evaluations."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import wraps
from threading import RLock
from typing import Any, Literal, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from ..gp.data import checked_gradients
from ..measures.adapters import NamedMeasureLike, named_measure
from ..outputs.evaluations import Evaluation, Query, Status
from ..outputs.names import OutputsLike, by_output, output_names
from ..outputs.observations import Observation, checked_values
from ..validation import Array, Values, brief, non_negative_number, number, positive_number, read_only
from .costs import SourceCosts
from .failures import recorded_reason, rejection, usable_outputs
from .sources import SourcesLike, as_sources, source_names

#: why a run stopped; a stop rule of the user may return any other text
StopReason: TypeAlias = (
    Literal["budget", "tolerance", "rate", "evaluations", "exhausted", "failures", "interrupted"] | str
)

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
    outputs : tuple of str or None
        Names of the outputs, if there are several.
    budget : float
        In units of cost; infinite if there is no limit.
    evaluations : list of Evaluation
        In the order in which they were told.
    stopped : str or None
        Why nothing more is asked; None while more can be asked.
    """

    def __init__(
        self,
        sources: SourcesLike,
        measure: NamedMeasureLike,
        budget: float | None,
        outputs: OutputsLike | None = None,
    ) -> None:
        self.measure, self.inputs = named_measure(measure)
        self.outputs = None if outputs is None else output_names(outputs)
        listed = [source.after(self.measure.function) for source in as_sources(sources)]
        self.names = source_names(listed)
        self.sources = tuple(
            source.of_outputs(self.outputs, name) for source, name in zip(listed, self.names, strict=True)
        )
        if self.outputs is not None and self.sources[0].outputs != self.outputs:
            raise ValueError(f"{self.names[0]} is the primary source: it must have all outputs, {brief(self.outputs)}")
        self.budget = math.inf if budget is None else positive_number(budget, "budget")
        #: sources that have gradients
        self.with_gradients = tuple(s for s, source in enumerate(self.sources) if source.gradient is not None)
        gradients = [(s, self.sources[s].gradient_cost) for s in self.with_gradients]
        self.source_costs = SourceCosts([source.cost for source in self.sources], self.names, self.measure, gradients)
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
        """The expected cost of all pending queries, set aside, so that together they cannot exceed the budget."""
        return math.fsum(query.cost + query.decision for query in self._pending.values())

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
        value: ArrayLike | Mapping[str, ArrayLike] | Observation,
        variance: ArrayLike | Mapping[str, ArrayLike] = 0.0,
        cost: float | None = None,
        free: Sequence[float] | None = None,
        gradient: ArrayLike | None = None,
    ) -> None:
        """Answer a query with a value, or with an `Observation`, as a source returns it.

        A value outside of the source's ``valid`` range is recorded as a failed evaluation.

        Parameters
        ----------
        query : Query
            A pending query, as `ask` returned it.
        value : float; with several outputs M numbers, or a dictionary by name; or an Observation
            The value of the source at ``query.x``; NaN for an output that has none. An `Observation` has its variance,
            cost and gradient with it.
        variance : float, or M numbers
            Variance of the noise on this value.
        cost : float, optional
            The actual cost; by default the expected one. Required if the cost of the source is "measured".
        free : list of float, optional
            The values of the sources that are evaluated in bulk at ``query.x``; by default they are evaluated now.
        gradient : D numbers, optional
            The derivatives of the value by each input, whether they were asked for or not; NaN where not known.
        """
        query, source = self._pending_query(query), self.sources[query.source]
        if isinstance(value, Observation):
            if not (np.isscalar(variance) and variance == 0) or cost is not None or gradient is not None:
                raise TypeError("an Observation has its variance, cost and gradient with it: give them there")
            told = value
            value, variance, cost, gradient = told.value, told.variance, told.cost, told.gradient
        try:
            y, noise = self._checked(query.source, value, variance)
            slopes = self.checked_gradient(query.x, gradient)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error}; if the evaluation failed, call fail(query, reason)") from None
        if cost is None and source.measured:
            raise ValueError(f"the cost of {self.names[query.source]} is measured: tell it, as in tell(..., cost=1.5)")
        charged = query.cost if cost is None else positive_number(cost, "cost")
        y, reason = self.usable(query.source, y, noise)
        if reason:
            self._append(query, math.nan, 0.0, charged, reason)
        else:
            beside = tuple(self.values_beside(query.x) if free is None else free)
            self._append(query, y, noise, charged, free=beside, gradient=slopes)

    def checked_gradient(self, x: Array, gradient: ArrayLike | None) -> Array | None:
        """Return the gradient (D,) of a value at x, or raise an error; None if nothing is known of it."""
        if gradient is None:
            return None
        if self.outputs is not None:
            raise ValueError("a gradient is that of a single output, and there are several")
        found = checked_gradients(self.measure, x[None], np.asarray(gradient)[None], "gradient")[0]
        return None if np.isnan(found).all() else read_only(found)

    def _checked(self, source: int, value: Any, variance: Any) -> tuple[Values, Values]:
        """Return a value of a source and its variance: two floats, or with several outputs two arrays (M,)."""
        if self.outputs is not None:
            return checked_values(value, variance, self.outputs, self.sources[source].outputs or self.outputs)
        return number(value, "value"), non_negative_number(variance, "variance")

    def usable(self, source: int, value: Values, variance: Values) -> tuple[Values, str]:
        """Return what can be used of a value of a source, and why it cannot be used; an empty text if it can.

        Of several outputs, those that cannot be used are NaN; the value can be used if one of them can.
        """
        valid = self.sources[source].valid
        if self.outputs is None:
            return value, rejection(value, valid, variance)
        return usable_outputs(value, variance, by_output(valid, self.outputs), self.outputs)

    @property
    def foreseen(self) -> bool:
        """Whether what is asked next does not depend on any answer."""
        return False

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
        value: Values,
        variance: Values,
        cost: float,
        reason: str = "",
        free: tuple[float, ...] = (),
        gradient: Array | None = None,
    ) -> None:
        """Use an answer, then append its evaluation, complete with the integral after it.

        What was paid for is kept even if its use is interrupted or raises an error: the evaluation is then appended
        with NaN for the mean and the standard deviation of the integral.
        """
        del self._pending[query.id]
        status: Status = "failed" if reason else "ok"
        about = (query.id, query.source, query.x, value, variance, cost + query.decision, status, reason)
        made = Evaluation(*about, free=free, gradient=gradient, decision=query.decision)
        try:
            self._use(made)
            mean, std = self._integral()
            made = replace(made, mean=mean, std=std)
        finally:
            self._charge_for(made)
            self.evaluations.append(made)

    def _use(self, made: Evaluation) -> None:
        """Learn from an answer; a subclass with a model adds the value to its data."""
        if not made.reason:
            self.source_costs.paid(made.source, made.x, made.cost - made.decision, made.gradient is not None)

    def _integral(self) -> tuple[Values, Values]:
        """Return mean and standard deviation of the integral, NaN if there is no model to tell them."""
        return math.nan, math.nan

    def source_of(self, option: int) -> int:
        """Return the source of an option: a source, or, by a number beyond those, one with its gradient."""
        L = len(self.sources)
        return option if option < L else self.with_gradients[option - L]

    def option(self, source: int, gradient: bool) -> int:
        """Return the number of a source, or of the source with its gradient if it has one and that is wanted."""
        with_gradient = gradient and source in self.with_gradients
        return len(self.sources) + self.with_gradients.index(source) if with_gradient else source

    def _pending_options(self) -> list[tuple[int, Array]]:
        """Return the option and the location of each pending query."""
        return [(self.option(query.source, query.gradient), query.x) for query in self.pending]

    def _issued(self, option: int, x: Array, rate: float = math.nan) -> Query:
        """Return a new query, for which its expected cost is reserved."""
        source = self.source_of(option)
        gradient = option != source or self.sources[source].gradient is True
        query = Query(self._n_asked, source, read_only(x), self.source_costs.expected(option, x), rate, gradient)
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
