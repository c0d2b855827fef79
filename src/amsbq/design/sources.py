"""Sources: a simulator or one of its approximations, with its cost, its noise and the values that it may return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..definitions import Composition, definition_of
from ..inference.structures import Noise, noise_level
from ..outputs.names import by_output, output_names
from ..outputs.observations import Observation, OutputsFunction, WithGradient
from ..validation import Array, brief, count, non_negative_number, positive_number, read_only, value_range

Function: TypeAlias = Callable[[Array], ArrayLike | Mapping[str, Any] | Observation]
Range: TypeAlias = tuple[float, float]
CostLike: TypeAlias = float | Callable[[Array], float] | Literal["measured"]


class Source:
    """A function to be integrated, or an approximation of it.

    Parameters
    ----------
    function : callable, optional
        Called with x of shape (D,); returns a number, or an `Observation`; with several outputs M numbers, as an array,
        a sequence or a dictionary by name. Not needed where evaluations are made elsewhere and told to an `Integrator`.
    cost : float, callable or "measured"
        Cost of an evaluation, in any unit that all sources share: a positive number, or zero for a secondary source; a
        function of x (D,), with an optional method ``gradient(x)``; or "measured", which learns it from the seconds
        that evaluations take or from the costs that are reported.
    name : str, optional
        By default the name of the function.
    noise : float or "learn", or a dictionary of them by output
        Variance of the noise on its values.
    timeout : float, optional
        Seconds after which an evaluation counts as failed.
    valid : (low, high), or a dictionary of them by output, optional
        Range of acceptable values, both ends included; a value outside counts as a failed evaluation, and with several
        outputs as a missing value.
    vectorized : bool
        Whether ``function`` is called with X of shape (n, D) and returns n numbers, or an array (n, M).
    bulk : bool or int, optional
        Whether to evaluate a secondary source in bulk, or how often; by default if it costs nothing, or if 512
        evaluations of it cost no more than a tenth of the budget and than one evaluation of the primary source.
    gradient : callable or True, optional
        A function of x (D,) that returns the derivatives of the value by each input, NaN where they are not known. It
        is called after ``function`` where the gradient is worth its cost. True if ``function`` returns them with each
        value, as an `Observation`, or if they are told with each value.
    gradient_cost : float, optional
        Cost of a gradient, on top of that of the value; by default as much as the value. Gradients that come with each
        value cost nothing more.
    outputs : list of str, optional
        The outputs that it has, if it lacks some of those of the run; it then returns these only, in that order, or NaN
        for the others.

    >>> Source(abs, cost=0.05)
    Source(abs, cost=0.05)
    """

    def __init__(
        self,
        function: Function | None = None,
        *,
        cost: CostLike = 1.0,
        name: str | None = None,
        noise: Noise | Mapping[str, Noise] = 0.0,
        timeout: float | None = None,
        valid: Range | Mapping[str, Range] | None = None,
        vectorized: bool = False,
        bulk: bool | int | None = None,
        gradient: Callable[[Array], ArrayLike] | Literal[True] | None = None,
        gradient_cost: float | None = None,
        outputs: Sequence[str] | None = None,
    ) -> None:
        if function is not None and not callable(function):
            raise TypeError(f"function must be callable with x of shape (D,), got {brief(function)}")
        if isinstance(cost, str) and cost != "measured":
            raise ValueError(f"cost must be a positive number, a function of x, or 'measured', got {cost!r}")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name must be a string, got {brief(name)}")
        self.vectorized, self.name = bool(vectorized), name
        self.bulk = bulk if bulk is None or isinstance(bulk, bool) else count(bulk, "bulk")
        self.function = _OneByOne(function) if vectorized and function is not None else function
        self.cost = cost if callable(cost) or isinstance(cost, str) else non_negative_number(cost, "cost")
        self.noise = _each(noise, noise_level)
        self.timeout = None if timeout is None else positive_number(timeout, "timeout")
        self.valid = None if valid is None else _each(valid, value_range)
        self.outputs = None if outputs is None else output_names(outputs)
        if gradient is not None and gradient is not True and not callable(gradient):
            raise TypeError(f"gradient must be callable with x of shape (D,), or True, got {brief(gradient)}")
        if gradient_cost is not None and not callable(gradient):
            raise ValueError("gradient_cost is the cost of calling gradient: give that function too")
        self.gradient = gradient
        self.gradient_cost = 0.0 if gradient is True else gradient_cost
        if self.gradient_cost is not None:
            self.gradient_cost = non_negative_number(self.gradient_cost, "gradient_cost")

    def __repr__(self) -> str:
        cost = getattr(self.cost, "__name__", repr(self.cost))
        return f"Source({self.label('function')}, cost={cost})"

    def many(self, X: Array) -> Array:
        """Return the values of the source at each X_i, shape (n,), in one call if it is vectorized; NaN where it fails.

        Raise an error if it returns another number of values.
        """
        if isinstance(self.function, _OneByOne):
            return self.function.many(X)
        assert self.function is not None
        return np.array([_value_or_nan(self.function, x) for x in X])

    def label(self, otherwise: str) -> str:
        """Return its name, or that of its function, or else the text ``otherwise``."""
        return self.name or getattr(self.function, "__name__", None) or otherwise

    def definition(self) -> dict[str, Any] | None:
        """Return what its function is, as JSON types: two that differ in it are different functions.

        That of a Python function is its qualified name: a change of its code is not seen. Callables with a method
        ``source_definition`` say themselves what they are. None if there is no function.

        >>> Source(abs).definition()
        {'callable': 'builtins.abs'}
        """
        return None if self.function is None else definition_of(self.function)

    def after(self, transformation: Function | None) -> Source:
        """Return the source whose function, and function for its cost, are called with what another one returns."""
        if transformation is None:
            return self
        if self.gradient is not None:
            raise ValueError(f"{self.label('source')} is called with a function of the inputs: leave its gradient out")
        other = copy(self)
        if isinstance(self.function, _OneByOne):
            other.function = _OneByOne(self.function.function, transformation)
        elif self.function is not None:
            other.function = Composition(self.function, transformation)
        if callable(self.cost):
            other.cost = Composition(self.cost, transformation)
        return other

    def of_outputs(self, names: Sequence[str] | None, name: str) -> Source:
        """Return the source of a run with these outputs, None if it has one, or raise an error that begins with a name.

        With several outputs its function returns them in one form, `CheckedObservation`.
        """
        settings = [each for each in (self.noise, self.valid) if isinstance(each, Mapping)]
        if names is not None and self.gradient is not None:
            raise ValueError(f"{name} has gradients, which are for a single output: leave gradient or outputs out")
        if names is None:
            if self.outputs is not None or settings:
                raise ValueError(f"{name} has outputs by name: name all of them, as in outputs=['peak', 'time']")
            return self
        other = copy(self)
        other.outputs = self.outputs or tuple(names)
        try:
            for each in (dict.fromkeys(other.outputs), *settings):
                by_output(each, names)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        if self.function is not None:
            function = self.function.outputs if isinstance(self.function, _OneByOne) else self.function
            other.function = OutputsFunction(function, tuple(names), other.outputs)
        return other

    def of_output(self, names: Sequence[str], output: int) -> Source:
        """Return the source as one of a single output of several, without its function."""
        other = copy(self)
        other.function, other.outputs, other.name = None, None, self.label("") or None
        other.noise = by_output(self.noise, names)[output] or 0.0
        other.valid = by_output(self.valid, names)[output]
        return other

    def within(self, low: float, high: float) -> Source:
        """Return the source with a range of acceptable values that is no wider than from low to high."""
        if np.isinf([low, high]).all():
            return self
        other = copy(self)
        assert not isinstance(self.valid, Mapping)  # as those of several outputs are
        lowest, highest = self.valid or (low, high)
        other.valid = max(low, lowest), min(high, highest)
        if not other.valid[0] < other.valid[1]:
            raise ValueError(f"{self.label('a source')} has no acceptable value in output_range, {low:g} to {high:g}")
        return other

    def with_gradient(self) -> Function:
        """Return the function that returns an `Observation` with the gradient."""
        assert self.function is not None
        return WithGradient(self.function, self.gradient) if callable(self.gradient) else self.function

    @property
    def measured(self) -> bool:
        """Whether its cost is learned from evaluations."""
        return isinstance(self.cost, str)


@dataclass(frozen=True)
class _OneByOne:
    """A function of many locations, called with one."""

    function: Callable[[Array], Any]
    transformation: Callable[[Array], Any] | None = None

    def __call__(self, x: Array) -> float:
        return float(self.many(x[None])[0])

    def outputs(self, x: Array) -> Array:
        """Return all outputs at x, shape (M,)."""
        values: Array = np.asarray(self.function(self._inputs(x[None])))
        if values.ndim != 2 or len(values) != 1:
            raise ValueError(
                f"{self.__name__} is vectorized: for X of shape (n, D) it must return an array (n, M), a column "
                f"for each output, got shape {values.shape} for one location"
            )
        return np.asarray(values[0])

    def many(self, X: Array) -> Array:
        """Return the values at each X_i, shape (n,)."""
        inputs = self._inputs(X)
        values = np.asarray(self.function(inputs), dtype=float)
        if values.shape not in ((len(X),), (len(X), 1)):
            raise ValueError(
                f"{self.__name__} is vectorized: for X of shape {inputs.shape} it must return {len(X)} numbers, "
                f"got shape {values.shape}"
            )
        return values.reshape(len(X))

    def _inputs(self, X: Array) -> Array:
        return X if self.transformation is None else np.array([self.transformation(x) for x in X])

    @property
    def __name__(self) -> str:
        return str(getattr(self.function, "__name__", None) or type(self.function).__name__)

    def source_definition(self) -> dict[str, Any]:
        """Return what the function is, as JSON types."""
        of = {} if self.transformation is None else {"of": definition_of(self.transformation)}
        return {**definition_of(self.function), **of}


def _value_or_nan(function: Function, x: Array) -> float:
    """Return the value of a source at x, or NaN if it raises an error or returns no number."""
    try:
        found = function(read_only(x.copy()))
        return float(found.value if isinstance(found, Observation) else np.asarray(found, dtype=float).item())
    except Exception:
        return np.nan


SourceLike: TypeAlias = Source | Function
SourcesLike: TypeAlias = SourceLike | Sequence[SourceLike]


def as_sources(sources: SourcesLike) -> tuple[Source, ...]:
    """Return sources, the primary one first; plain callables become sources of cost 1.

    >>> as_sources([abs, Source(round, cost=0.1)])
    (Source(abs, cost=1.0), Source(round, cost=0.1))
    """
    listed: Any = [sources] if isinstance(sources, Source) or callable(sources) else sources
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        raise TypeError(f"sources must be a list of functions or Sources, the primary one first, got {brief(sources)}")
    made = []
    for i, source in enumerate(listed):
        if not isinstance(source, Source) and not callable(source):
            raise TypeError(f"sources[{i}] must be a function or a Source, got {brief(source)}")
        made.append(source if isinstance(source, Source) else Source(source))
    return tuple(made)


def source_names(sources: Sequence[Source]) -> list[str]:
    """Return a different name for each of the sources.

    >>> source_names([Source(abs), Source(abs), Source(name="coarse"), Source()])
    ['abs', 'abs (1)', 'coarse', 'source 3']
    """
    names: list[str] = []
    for i, source in enumerate(sources):
        name = source.label(f"source {i}")
        names.append(f"source {i}" if name == "<lambda>" else name if name not in names else f"{name} ({i})")
    return names


def _each(given: Any, checked: Callable[[Any], Any]) -> Any:
    """Return a setting, or those of a dictionary by output, checked."""
    return {name: checked(value) for name, value in given.items()} if isinstance(given, Mapping) else checked(given)
