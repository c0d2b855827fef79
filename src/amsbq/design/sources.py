"""Sources: a simulator or one of its approximations, with its cost, its noise and the values that it may return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..common.definitions import Chained, ChainedGradient, Composition, definition_of
from ..common.validation import Array, brief, count, non_negative_number, positive_number, value_range
from ..inference.structures import Noise, noise_level
from ..posterior.outputs import by_output, checked_names, output_names
from ..posterior.transforms import OutputRange
from .calls import GradientCall, as_call, own_inputs
from .fidelities import checked_fidelity
from .observations import Observation, OutputsFunction, WithGradient

Function: TypeAlias = Callable[[Array], ArrayLike | Mapping[str, Any] | Observation]
Range: TypeAlias = tuple[float, float]
CostLike: TypeAlias = float | Callable[[Array], float] | Literal["measured"]


class WrongShape(ValueError):
    """A vectorized function that returns an array of the wrong shape."""


class Source:
    """A function to be integrated, or an approximation of it.

    Parameters
    ----------
    function : callable, optional
        Called with x of shape (D,) or, if it has two or more parameters that are names of inputs, with these by name.
        It returns a number, or an `Observation`; with several outputs M numbers, as an array, a sequence or a
        dictionary by name. Not needed if evaluations are made elsewhere and reported to an `Integrator`.
    cost : float, callable or "measured"
        Cost of an evaluation, in any unit that all sources share: a positive number, or zero for a secondary source; a
        function of x (D,), with an optional method ``gradient(x)``; or "measured", which learns it from the seconds
        that evaluations take or from reported costs.
    name : str, optional
        Name of the source; by default that of the function.
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
        Whether to evaluate a secondary source in bulk, or how often. By default, it is evaluated in bulk if it costs
        nothing, or if 512 evaluations of it cost no more than a tenth of the budget and no more than one evaluation of
        the primary source.
    gradient : callable or True, optional
        A function of x (D,) that returns the derivatives of the value with respect to each input, NaN where they are
        not known. It is called after ``function`` whenever the gradient is worth its cost. True if ``function`` returns
        gradients with each value, as an `Observation`, or if they are reported with each value.
    gradient_cost : float, optional
        Cost of a gradient, on top of that of the value; by default as much as the value. Gradients that come with each
        value cost nothing more.
    outputs : list of str, optional
        The outputs that it has, if it lacks some of those of the run; it then returns only these, in that order, or NaN
        for the others.
    inputs : list of str, optional
        The names of the inputs that it uses, if it does not use all inputs of the run: x, and the array of its
        derivatives, then have only these, in that order.
    fidelity : dictionary of float, optional
        Its fidelity: for each knob of the simulator a number that tends to zero with the error, such as
        ``{"h": 1/32}`` for the width of its cells. `amsbq.levels` makes several sources at once.

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
        inputs: Sequence[str] | None = None,
        fidelity: Mapping[str, float] | None = None,
    ) -> None:
        if function is not None and not callable(function):
            raise TypeError(f"function must be callable with x of shape (D,), got {brief(function)}")
        if isinstance(cost, str) and cost != "measured":
            raise ValueError(f"cost must be a positive number, a function of x, or 'measured', got {cost!r}")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name must be a string, got {brief(name)}")
        if not isinstance(vectorized, bool):
            raise TypeError(f"vectorized must be True or False, got {brief(vectorized)}")
        self.vectorized, self.name = vectorized, name
        self.bulk = bulk if bulk is None or isinstance(bulk, bool) else count(bulk, "bulk")
        self.function = _OneByOne(function) if vectorized and function is not None else function
        self.cost = cost if callable(cost) or isinstance(cost, str) else non_negative_number(cost, "cost")
        self.noise = _each(noise, noise_level)
        self.timeout = None if timeout is None else positive_number(timeout, "timeout")
        self.valid = None if valid is None else _each(valid, value_range)
        self.outputs = None if outputs is None else output_names(outputs)
        self.inputs = None if inputs is None else checked_names(inputs, "inputs", such_as="['speed', 'angle']")
        self.fidelity = None if fidelity is None else checked_fidelity(fidelity)
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

    def label(self, otherwise: str) -> str:
        """Return the name of the source, or that of its function, or else ``otherwise``."""
        return self.name or getattr(self.function, "__name__", None) or otherwise

    def definition(self) -> dict[str, Any] | None:
        """Return the definition of the source's function in JSON-serialisable form; None if there is no function.

        Functions with different definitions are different. A Python function is defined by its qualified name, so a
        change of its code is not noticed. Callables may define themselves by a method ``source_definition``.

        >>> Source(abs).definition()
        {'callable': 'builtins.abs'}
        """
        return None if self.function is None else definition_of(self.function)

    def after(self, transformation: Function | None) -> Source:
        """Return the source with its functions, including the cost, applied to the output of a transformation."""
        if transformation is None:
            return self
        other = copy(self)
        if callable(self.gradient):
            other.gradient = ChainedGradient(self.gradient, transformation)
        if isinstance(self.function, _OneByOne):
            other.function = _OneByOne(self.function.function, transformation)
        elif self.function is not None:
            other.function = (Composition if self.gradient is None else Chained)(self.function, transformation)
        if callable(self.cost):
            other.cost = Composition(self.cost, transformation)
        return other

    def of_inputs(self, names: Sequence[str], categories: Mapping[int, tuple[str, ...]], source: str) -> Source:
        """Return the source with functions of x of all inputs, whatever inputs and calling convention they had.

        Parameters
        ----------
        names : list of str
            Names of all inputs.
        categories : dict of tuple of str by input
            Names of the values of categorical inputs.
        source : str
            Its name in error messages.
        """
        called = partial(as_call, names=names, own=own_inputs(self.inputs, names, source), categories=categories)
        other = copy(self)
        if isinstance(self.function, _OneByOne):
            other.function = replace(self.function, function=called(self.function.function, called=source))
        elif self.function is not None:
            other.function = called(self.function, called=source)
        if callable(self.gradient):
            other.gradient = called(self.gradient, called=f"gradient of {source}", kind=GradientCall)
        if callable(self.cost):
            other.cost = called(self.cost, called=f"cost of {source}")
        return other

    def of_outputs(self, names: Sequence[str] | None, name: str) -> Source:
        """Return the source for a run with these outputs; ``names`` is None for a single output.

        With several outputs its function returns them in one form, `CheckedObservation`. Errors begin with ``name``.
        """
        settings = [each for each in (self.noise, self.valid) if isinstance(each, Mapping)]
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
            rows = self.function.rows if isinstance(self.function, _OneByOne) else None
            other.function = OutputsFunction(self.function, tuple(names), other.outputs, rows)
        return other

    def of_output(self, names: Sequence[str], output: int) -> Source:
        """Return the source for one of several outputs, without its function."""
        other = copy(self)
        other.function, other.outputs, other.name = None, None, self.label("") or None
        other.noise = by_output(self.noise, names)[output] or 0.0
        other.valid = by_output(self.valid, names)[output]
        return other

    def within(self, ranges: Sequence[OutputRange | None], outputs: Sequence[str] | None) -> Source:
        """Return the source with its acceptable values restricted to the known range of each output."""
        if all(known is None or known.log for known in ranges):
            return self
        own = by_output(self.valid, outputs or ("",))
        narrowed = [_narrowed(valid, known, self) for valid, known in zip(own, ranges, strict=True)]
        other = copy(self)
        other.valid = narrowed[0]
        if outputs is not None:
            other.valid = {name: each for name, each in zip(outputs, narrowed, strict=True) if each is not None}
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
    """A vectorized function as a function of one location."""

    function: Callable[[Array], Any]
    transformation: Callable[[Array], Any] | None = None

    def __call__(self, x: Array) -> float:
        return float(self.many(x[None])[0])

    def _apart(self, X: Array) -> tuple[Array, ...]:
        """Split locations so that no part has as many rows as columns: swapped axes would go unnoticed there."""
        return (X[:-1], X[-1:]) if 1 < len(X) == X.shape[1] else (X,)

    def rows(self, X: Array) -> Array:
        """Return all outputs at each X_i, shape (n, M)."""
        return np.concatenate([self._rows(part) for part in self._apart(X)])

    def _rows(self, X: Array) -> Array:
        values: Array = np.asarray(self.function(self._inputs(X)))
        if values.ndim != 2 or len(values) != len(X):
            raise WrongShape(
                f"{self.__name__} is vectorized: for X of shape {X.shape} it must return an array ({len(X)}, M), a "
                f"column for each output, got shape {values.shape}"
            )
        return values

    def many(self, X: Array) -> Array:
        """Return the values at each X_i, shape (n,)."""
        return np.concatenate([self._many(part) for part in self._apart(X)])

    def _many(self, X: Array) -> Array:
        inputs = self._inputs(X)
        values = np.asarray(self.function(inputs), dtype=float)
        if values.shape not in ((len(X),), (len(X), 1)):
            raise WrongShape(
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
        """Return the definition of the function in JSON-serialisable form."""
        of = {} if self.transformation is None else {"of": definition_of(self.transformation)}
        return {**definition_of(self.function), **of}


SourceLike: TypeAlias = Source | Function
SourcesLike: TypeAlias = SourceLike | Sequence[SourceLike]


def as_sources(sources: SourcesLike) -> tuple[Source, ...]:
    """Return sources, the primary one first; plain callables become sources of cost 1.

    >>> as_sources([abs, Source(round, cost=0.1)])
    (Source(abs, cost=1.0), Source(round, cost=0.1))
    """
    listed: Any = [sources] if isinstance(sources, Source) or callable(sources) else sources
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        called = isinstance(sources, Real) or (isinstance(sources, np.ndarray) and sources.ndim < 2)
        hint = "; give the function itself, without calling it" if called else ""
        hint = "; in a list, a name is given with Source(function, name=...)" if isinstance(sources, Mapping) else hint
        raise TypeError(
            f"sources must be a list of functions or Sources, the primary one first, got {brief(sources)}{hint}"
        )
    made = []
    for i, source in enumerate(listed):
        if not isinstance(source, Source) and not callable(source):
            pair = isinstance(source, Sequence) and len(source) == 2 and callable(source[0])
            hint = "; a cost is given with Source(function, cost=...)" if pair else ""
            raise TypeError(f"sources[{i}] must be a function or a Source, got {brief(source)}{hint}")
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


def _narrowed(valid: Range | None, known: OutputRange | None, source: Source) -> Range | None:
    """Return the acceptable values of an output, restricted to its range."""
    if known is None or known.log:
        return valid
    lowest, highest = valid or (known.low, known.high)
    low, high = max(known.low, lowest), min(known.high, highest)
    if not low < high:
        raise ValueError(
            f"{source.label('a source')} has no acceptable value in output_range, {known.low:g} to {known.high:g}"
        )
    return low, high


def _each(given: Any, checked: Callable[[Any], Any]) -> Any:
    """Check a setting, or each entry of a dictionary by output, and return it."""
    return {name: checked(value) for name, value in given.items()} if isinstance(given, Mapping) else checked(given)
