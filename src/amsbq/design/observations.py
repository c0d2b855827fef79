"""`Observation`: a source's return value with a variance, a cost or a gradient, for one output or several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..common.definitions import NoGradient, definition_of, gradient_or_reason
from ..common.validation import Array, Values, brief, non_negative, positive_number, read_only
from ..posterior.outputs import by_output, output_values


@dataclass(frozen=True)
class Observation:
    """A return value of a source with more than a number: variance, cost or gradient.

    Parameters
    ----------
    value : float; with several outputs M numbers, as an array, a sequence or a dictionary by name
        The value of the source; NaN for an output that has none.
    variance : float; with several outputs also M numbers
        Variance of the noise on this value, for example the squared standard error of a Monte Carlo average. Outputs
        that a dictionary leaves out have no noise.
    cost : float, optional
        The cost of this evaluation, if it differs from the ``cost`` of the source.
    gradient : D numbers; with several outputs an array (M, D), or a dictionary of D numbers by output; optional
        The derivative of the value with respect to each input, in the user's units; NaN where unknown.

    >>> Observation(2.0, gradient=[0.5, -1.0])
    Observation(value=2.0, variance=0.0, cost=None, gradient=[0.5, -1.0])
    """

    value: Values
    variance: Values = 0.0
    cost: float | None = None
    gradient: ArrayLike | NoGradient | None = None


@dataclass(frozen=True)
class WithGradient:
    """A callable that evaluates a source's function, then its gradient function, and returns an `Observation`."""

    function: Callable[[Array], Any]
    gradient: Callable[[Array], ArrayLike]

    def __call__(self, x: Array) -> Observation:
        """Return the value at x with its gradient, or with the reason why there is none."""
        found = self.function(x)
        observation = found if isinstance(found, Observation) else Observation(found)
        return replace(observation, gradient=gradient_or_reason(self.gradient, x))


class CheckedObservation(Observation):
    """An observation of all M outputs of a run: arrays (M,) of values, NaN where missing, and of variances."""


def checked_observation(returned: Any, names: Sequence[str], own: Sequence[str]) -> CheckedObservation:
    """Check what a source with several outputs returned, and bring it into one form.

    Parameters
    ----------
    returned : array, sequence, dictionary by name, or Observation
        Values of all M outputs, or of those that the source has.
    names : list of str
        Names of all outputs.
    own : list of str
        Names of the outputs that the source has.

    >>> checked_observation({"peak": 2, "time": 0.5}, ["time", "peak"], ["time", "peak"]).value
    array([0.5, 2. ])
    """
    given = returned if isinstance(returned, Observation) else Observation(returned)
    try:
        values, variances = checked_values(given.value, given.variance, names, own)
        cost = None if given.cost is None else positive_number(given.cost, "the cost")
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error}; the simulator returned {brief(returned)}") from None
    return CheckedObservation(values, variances, cost, given.gradient)


def checked_values(value: Any, variance: Any, names: Sequence[str], own: Sequence[str]) -> tuple[Array, Array]:
    """Check values and variances and return them for M outputs, NaN and zero for missing ones.

    Outputs that a dictionary of variances leaves out have no noise.
    """
    value_names = value if isinstance(value, Mapping) else ()
    if np.ndim(value) == 0 and len(own) == 1 and not isinstance(value, Mapping):
        value = [value]
    values = output_values(value, names, own, "the value")
    if isinstance(variance, Mapping):
        by_output({name: each for name, each in variance.items() if name not in value_names}, names)
        variance = {**dict.fromkeys(own, 0.0), **variance}
    alike = np.ndim(variance) == 0 and not isinstance(variance, Mapping)
    spread = output_values([variance] * len(own) if alike else variance, names, own, "the variance")
    if np.isnan(spread[~np.isnan(values)]).any():
        raise ValueError(f"the variance must be finite, got {brief(variance)}")
    return values, read_only(np.where(np.isnan(values), 0.0, non_negative(np.nan_to_num(spread), "the variance")))


class Wrapper:
    """A function around another one, ``function``, that is evaluated in the same way."""

    function: Callable[..., Any]

    def __getattr__(self, name: str) -> Any:
        if name == "numbered":  # simulators that work in a directory named after the evaluation
            numbered = self.function.numbered  # type: ignore[attr-defined]
            return lambda *evaluation: replace(self, function=numbered(*evaluation))  # type: ignore[type-var]
        if name not in ("__name__", "one_by_one"):
            raise AttributeError(name)
        return getattr(self.function, name)


@dataclass(frozen=True)
class OutputsFunction(Wrapper):
    """A source's function with several outputs, which returns them all in one form.

    Attributes
    ----------
    function : function of x (D,)
        Returns what `checked_observation` takes.
    names, own : tuple of str
        Names of all outputs, and of those that the source has.
    rows : function of X (n, D), optional
        The function of a vectorized source, in place of ``function``: returns an array (n, M).
    """

    function: Callable[[Array], Any]
    names: tuple[str, ...]
    own: tuple[str, ...]
    rows: Callable[[Array], Array] | None = None

    def __call__(self, x: Array) -> CheckedObservation:
        """Return all outputs at x."""
        returned = self.function(x) if self.rows is None else self.rows(x[None])[0]
        return checked_observation(returned, self.names, self.own)

    def many(self, X: Array) -> list[CheckedObservation]:
        """Return all outputs at each X_i, for a vectorized source."""
        assert self.rows is not None
        rows, M = self.rows(X), len(self.names)
        if rows.dtype.kind not in "fiu" or rows.shape[1] not in (len(self.own), M):
            return [checked_observation(row, self.names, self.own) for row in rows]  # which says what is wrong
        found, own = np.full((len(rows), M), np.nan), [self.names.index(name) for name in self.own]
        found[:, own] = rows if rows.shape[1] == len(own) else rows[:, own]
        found = read_only(np.where(np.isfinite(found), found, np.nan))
        return [CheckedObservation(row, read_only(np.zeros(M))) for row in found]

    def source_definition(self) -> dict[str, Any]:
        """Return the definition of the function in JSON-serialisable form."""
        return definition_of(getattr(self.function, "__self__", self.function))
