"""Queries and evaluations: what is asked of sources, and what came of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from ..validation import Array, Values

Status: TypeAlias = Literal["ok", "failed"]

#: the reason of an evaluation, if one looks at an output that it lacks
MISSING = "this output has no value"


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
        Whether the gradient of the source is wanted too.
    decision : float
        What deciding on it cost, which is charged with the evaluation; 0 unless decisions have a cost.
    """

    id: int
    source: int
    x: Array
    cost: float
    rate: float = math.nan
    gradient: bool = False
    decision: float = 0.0


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
    value : float; with several outputs an array (M,)
        The value of the source; NaN if the evaluation failed, and for outputs that are missing.
    variance : float, or (M,)
        Variance of the noise on this value.
    cost : float
        What was charged for it, and for deciding on it.
    status : str
        "ok" or "failed".
    reason : str
        Why it failed; empty if it did not.
    mean, std : float, or (M,)
        Mean and standard deviation of the integral after this evaluation. NaN before the first value, and for data
        passed to `Integrator.observe`, which are used when the integral is next estimated.
    note : str
        What the user did to it afterwards: excluded it, or corrected its value; empty otherwise.
    free : tuple of float
        Values of the sources that are evaluated in bulk at the same location, NaN where they failed.
    gradient : (D,) array or None
        The derivatives of the value by each input, NaN where they are not known; None if none of them is.
    decision : float
        The part of the cost that was that of deciding on it.
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
    free: tuple[float, ...] = ()
    gradient: Array | None = None
    decision: float = 0.0

    def of_output(self, output: int) -> Evaluation:
        """Return the same evaluation of one output alone: failed, if that output is missing."""
        after = (self.mean, self.std)
        mean, std = (float(each[output]) if np.ndim(each) else math.nan for each in after)
        if self.status == "failed":
            return replace(self, value=math.nan, variance=0.0, mean=mean, std=std)
        value, variance = float(self.value[output]), float(self.variance[output])
        one = replace(self, value=value, variance=variance, mean=mean, std=std)
        return replace(one, status="failed", reason=MISSING) if math.isnan(value) else one
