"""Queries and evaluations: requests to evaluate a source, and their answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from ..common.validation import Array, Values

Status: TypeAlias = Literal["ok", "failed"]

#: why a run stopped; the user's stop rule may return any other text
StopReason: TypeAlias = (
    Literal["budget", "tolerance", "error cost", "rate", "evaluations", "exhausted", "failures", "interrupted"] | str
)

#: value and variance of a source that is evaluated in bulk, at the location of another evaluation
Beside: TypeAlias = tuple[Values, Values]

#: beginning of the note on an evaluation that the user has excluded
EXCLUDED = "excluded by the user: "

#: beginning of the note on an evaluation whose gradient cannot be used
NO_GRADIENT = "its gradient is ignored: "

#: the reason of an evaluation in the view of an output that it lacks
MISSING = "this output has no value"


class Option(NamedTuple):
    """A kind of evaluation, at any location: of a source, with or without its gradient."""

    source: int
    gradient: bool = False


@dataclass(frozen=True, eq=False)
class Choice:
    """A chosen evaluation: source, location, acquisition rate, and whether the gradient is included."""

    source: int
    x: Array  # (D,)
    rate: float = math.nan
    gradient: bool = False

    @property
    def option(self) -> Option:
        """The kind of evaluation: its source, and whether the gradient is included."""
        return Option(self.source, self.gradient)


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
    gradient : bool
        Whether the gradient of the source is requested too.
    decision : float
        The cost of deciding on it, which is charged with the evaluation; 0 unless decisions have a cost.
    """

    id: int
    source: int
    x: Array
    cost: float
    rate: float = math.nan
    gradient: bool = False
    decision: float = 0.0

    @property
    def option(self) -> Option:
        """The kind of evaluation: its source, and whether the gradient is included."""
        return Option(self.source, self.gradient)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A successful or failed evaluation, and the integral after it.

    Attributes
    ----------
    id : int or None
        Number of its query; None for data passed to `Integrator.observe`.
    source : int
        Number of the source.
    x : (D,) array
        The location.
    value : float; with several outputs an array (M,)
        The value of the source; NaN if the evaluation failed, and for outputs that are missing.
    variance : float, or (M,)
        Variance of the noise on this value.
    cost : float
        The cost charged for it, including that of deciding on it.
    status : str
        "ok" or "failed".
    reason : str
        Why it failed; empty if it did not.
    mean, std : float, or (M,)
        Mean and standard deviation of the integral after this evaluation. NaN before the first value, and for data
        passed to `Integrator.observe`, which are used when the integral is next estimated.
    note : str
        A later exclusion or correction by the user, or why its gradient is ignored; empty otherwise.
    free : tuple of (value, variance)
        Values, at the same location, of the sources that are evaluated in bulk; NaN where they failed.
    gradient : (D,) array, or (M, D) with several outputs, or None
        The derivatives of the value with respect to each input, NaN where unknown; None if all are unknown.
    decision : float
        The part of the cost that is for deciding on it.
    """

    id: int | None
    source: int
    x: Array
    value: Values
    variance: Values
    cost: float
    status: Status
    reason: str
    mean: Values = math.nan
    std: Values = math.nan
    note: str = ""
    free: tuple[Beside, ...] = ()
    gradient: Array | None = None
    decision: float = 0.0

    @property
    def excluded(self) -> bool:
        """Whether the user has excluded it: it is not used, but did not fail."""
        return self.note.startswith(EXCLUDED)

    def of_output(self, output: int) -> Evaluation:
        """Return the evaluation with one output alone; it counts as failed if that output is missing."""
        after, free = (self.mean, self.std), tuple((value[output], noise[output]) for value, noise in self.free)
        mean, std = (float(each[output]) if np.ndim(each) else math.nan for each in after)
        if self.status == "failed":
            return replace(self, value=math.nan, variance=0.0, mean=mean, std=std, free=free)
        value, variance = float(self.value[output]), float(self.variance[output])
        gradient = None if self.gradient is None else self.gradient[output]
        one = replace(self, value=value, variance=variance, mean=mean, std=std, gradient=gradient, free=free)
        return replace(one, status="failed", reason=MISSING) if math.isnan(value) else one
