"""Queries and answers of a run, shared by all methods that choose evaluations."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from threading import RLock
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from ..common.definitions import NoGradient
from ..common.messages import warn
from ..common.validation import Array, Values, brief, non_negative_number, number, positive_number, read_only
from ..gp.data import checked_gradients
from ..posterior.outputs import output_gradients
from .bulk import InBulk
from .description import Problem
from .evaluations import NO_GRADIENT, Beside, Evaluation, Query, StopReason
from .failures import recorded_reason, usable
from .ledger import Ledger
from .observations import Observation, checked_values

Method = TypeVar("Method", bound=Callable[..., Any])


def locked(method: Method) -> Method:
    """Make a method, or a function of a run, hold the run's lock, so that only one thread at a time is in such code."""

    @wraps(method)
    def one_at_a_time(self: Run, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return method(self, *args, **kwargs)

    return cast(Method, one_at_a_time)


class Run(ABC):
    """Queries and answers of a run; subclasses choose the queries.

    A run may be used by several threads.

    Attributes
    ----------
    problem : Problem
        The description of the run, of which ``sources``, ``names``, ``measure``, ``inputs``, ``outputs`` and ``budget``
        are attributes of the run too.
    ledger : Ledger
        Spent cost, and cost reserved for pending queries.
    in_bulk : InBulk
        The sources that are evaluated in bulk.
    evaluations : list of Evaluation
        All evaluations, in the order in which they were reported.
    stopped : str or None
        Why no further evaluation is requested; None while there can be more.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.ledger = problem, Ledger(problem)
        self.in_bulk = InBulk(problem, self.ledger, {})
        self.evaluations: list[Evaluation] = []
        self.stopped: StopReason | None = None
        self._lock = RLock()
        self._describe()

    def _describe(self) -> None:
        """Copy frequently used attributes from the description."""
        problem = self.problem
        self.sources, self.names, self.measure = problem.sources, problem.names, problem.measure
        self.inputs, self.outputs, self.budget = problem.inputs, problem.outputs, problem.budget

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
        return self.ledger.spent

    @property
    @locked
    def reserved(self) -> float:
        """The expected cost of all pending queries, set aside so that together they cannot exceed the budget."""
        return self.ledger.reserved

    @property
    @locked
    def pending(self) -> list[Query]:
        """The queries without an answer."""
        return list(self.ledger.pending.values())

    @abstractmethod
    def ask(self) -> Query | None:
        """Return the next query, or None if there is nothing more to ask."""

    @locked
    def tell(
        self,
        query: Query,
        value: ArrayLike | Mapping[str, ArrayLike] | Observation,
        variance: ArrayLike | Mapping[str, ArrayLike] = 0.0,
        cost: float | None = None,
        free: Sequence[Beside] | None = None,
        gradient: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> None:
        """Answer a query with a value, or with an `Observation`, as a source returns it.

        A value outside the source's ``valid`` range is recorded as a failed evaluation.

        Parameters
        ----------
        query : Query
            A pending query, as `ask` returned it.
        value : float; with several outputs M numbers, or a dictionary by name; or an Observation
            The value of the source at ``query.x``; NaN for an output that has none. An `Observation` includes variance,
            cost and gradient.
        variance : float, or M numbers
            Variance of the noise on this value.
        cost : float, optional
            The actual cost; by default the expected one. Required if the cost of the source is "measured".
        free : list of (value, variance), optional
            Values, at ``query.x``, of the sources that are evaluated in bulk; by default they are evaluated now.
        gradient : D numbers; with several outputs (M, D), or a dictionary by output; optional
            The derivatives of the value with respect to each input, whether requested or not; NaN where unknown.
        """
        query = self.ledger.waiting(query)
        if isinstance(value, Observation):
            if not (np.isscalar(variance) and variance == 0) or cost is not None or gradient is not None:
                raise TypeError("an Observation includes variance, cost and gradient: give them there")
            told: Any = value
            value, variance, cost, gradient = told.value, told.variance, told.cost, told.gradient
        slopes = self._checked_gradient(query.source, query.x, gradient)
        try:
            y, noise = self._checked(query.source, value, variance)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error}; if the evaluation failed, call fail(query, reason)") from None
        if cost is None and self.sources[query.source].measured:
            raise ValueError(f"the cost of {self.names[query.source]} is measured: give it, as in tell(..., cost=1.5)")
        charged = query.cost if cost is None else positive_number(cost, "cost")
        y, reason = usable(self.sources[query.source].valid, self.outputs, y, noise)
        beside = self._beside(query.x) if free is None else free
        record(self, _evaluation(query, y, noise, charged, reason, tuple(beside), slopes))

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
        query = self.ledger.waiting(query)
        charged = query.cost if cost is None else non_negative_number(cost, "cost")
        record(self, _evaluation(query, math.nan, 0.0, charged, recorded_reason(reason)))

    def _checked(self, source: int, value: Any, variance: Any) -> tuple[Values, Values]:
        """Check a value and its variance and return them: two floats, or with several outputs two arrays (M,)."""
        if self.outputs is not None:
            return checked_values(value, variance, self.outputs, self.sources[source].outputs or self.outputs)
        return number(value, "value"), non_negative_number(variance, "variance")

    def _checked_gradient(self, source: int, x: Array, gradient: Any) -> Array | None:
        """Check the gradient of a value at x and return it: (D,), or (M, D) with several outputs; None if unknown."""
        if gradient is None:
            return None
        if isinstance(gradient, NoGradient):
            raise ValueError(gradient.reason)
        if self.outputs is None:
            try:
                found = checked_gradients(self.measure, x[None], np.asarray(gradient)[None])[0]
            except ValueError:
                wanted = f"{len(x)} numbers, one for each input, NaN where unknown"
                raise ValueError(f"gradient must be {wanted}, got {brief(gradient)}") from None
        else:
            own = self.sources[source].outputs or self.outputs
            rows = output_gradients(gradient, self.outputs, own, self.measure.dim)
            found = checked_gradients(self.measure, np.tile(x, (len(rows), 1)), rows, "gradient")
        return None if np.isnan(found).all() else read_only(found)

    def _beside(self, x: Array) -> Sequence[Beside]:
        """Return values and variances at x of the sources that are evaluated in bulk; empty if that is impossible."""
        return ()

    def _use(self, made: Evaluation) -> None:
        """Learn from an answer; a subclass with a model adds the value to its data."""
        if not made.reason:
            self.ledger.costs.paid(made.source, made.x, made.cost - made.decision, made.gradient is not None)

    def _integral(self) -> tuple[Values, Values]:
        """Return mean and standard deviation of the integral, NaN if there is no model."""
        return math.nan, math.nan

    def _foreseen(self) -> bool:
        """Return whether the next query does not depend on any answer."""
        return False

    def _charge_for(self, made: Evaluation) -> None:
        self.ledger.charge(made.cost)
        if made.free:
            self.ledger.charge(self.ledger.beside)


def answer(
    it: Run, query: Query, found: Observation | None, reason: str, cost: float, free: Sequence[Beside] = ()
) -> Evaluation:
    """Combine a query and its answer into an evaluation, for `record`; it counts as failed if the answer is unusable.

    ``found`` is None if the source returned nothing; ``free`` has the values of the sources that are evaluated in bulk.
    """
    if found is None:
        return _evaluation(query, math.nan, 0.0, cost, recorded_reason(reason))
    value, reason = usable(it.sources[query.source].valid, it.outputs, found.value, found.variance)
    slopes, note = None, ""
    try:
        slopes = it._checked_gradient(query.source, query.x, found.gradient)
        unknown = found.gradient is not None and slopes is None
        note = "none of its derivatives is a number" if unknown else ""
    except (TypeError, ValueError) as error:
        note = str(error)
    reason, note = (text and recorded_reason(text) for text in (reason, note))
    made = _evaluation(query, value, found.variance, cost, reason, tuple(free), slopes)
    if reason or not note:
        return made
    if not any(e.source == query.source and e.note.startswith(NO_GRADIENT) for e in it.evaluations):
        warn(f"{it.names[query.source]}: {NO_GRADIENT}{note}. Its value counts")
    return replace(made, note=f"{NO_GRADIENT}{note}")


@locked
def record(it: Run, made: Evaluation) -> None:
    """Learn from the evaluation of a pending query, then append it together with the integral after it.

    A paid evaluation is kept even if learning from it is interrupted or raises an error: it is then appended with NaN
    for the mean and the standard deviation of the integral.
    """
    assert made.id is not None
    del it.ledger.pending[made.id]
    try:
        it._use(made)
        mean, std = it._integral()
        made = replace(made, mean=mean, std=std)
    finally:
        it._charge_for(made)
        it.evaluations.append(made)


def foreseen(it: Run) -> bool:
    """Return whether the next query does not depend on any answer."""
    return it._foreseen()


def _evaluation(
    query: Query,
    value: Values,
    variance: Values,
    cost: float,
    reason: str = "",
    free: tuple[Beside, ...] = (),
    gradient: Array | None = None,
) -> Evaluation:
    """Return the evaluation that answers a query; it is failed if there is a reason why it has no value."""
    about, charged = (query.id, query.source, query.x), cost + query.decision
    if reason:
        return Evaluation(*about, math.nan, 0.0, charged, "failed", reason, decision=query.decision)
    return Evaluation(*about, value, variance, charged, "ok", "", free=free, gradient=gradient, decision=query.decision)
