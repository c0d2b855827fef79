"""Sources: a simulator or one of its approximations, with its cost, its noise and the values that it may return."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..inference.structures import Noise, noise_level
from ..validation import Array, brief, count, non_negative_number, positive_number, read_only


@dataclass(frozen=True)
class Observation:
    """The return value of a source that knows more than a number.

    Parameters
    ----------
    value : float
        The value of the source.
    variance : float
        Variance of the noise on this value, for example the squared standard error of a Monte Carlo average.
    cost : float, optional
        The cost of this evaluation, if it differs from the ``cost`` of the source.
    """

    value: float
    variance: float = 0.0
    cost: float | None = None


Function: TypeAlias = Callable[[Array], ArrayLike | Observation]
CostLike: TypeAlias = float | Callable[[Array], float] | Literal["measured"]


class Source:
    """A function to be integrated, or an approximation of it.

    Parameters
    ----------
    function : callable, optional
        Called with x of shape (D,); returns a number, or an `Observation`. Not needed where evaluations are made
        elsewhere and told to an `Integrator`.
    cost : float, callable or "measured"
        Cost of an evaluation, in any unit that all sources share: a positive number, or zero for a secondary source; a
        function of x (D,), with an optional method ``gradient(x)``; or "measured", which learns it from the seconds
        that evaluations take or from the costs that are reported.
    name : str, optional
        By default the name of the function.
    noise : float or "learn"
        Variance of the noise on its values.
    timeout : float, optional
        Seconds after which an evaluation counts as failed.
    valid : (low, high), optional
        Range of acceptable values, both ends included; a value outside counts as a failed evaluation.
    vectorized : bool
        Whether ``function`` is called with X of shape (n, D) and returns n numbers.
    bulk : bool or int, optional
        Whether to evaluate a secondary source in bulk, or how often; by default if it costs nothing, or if 512
        evaluations of it cost no more than a tenth of the budget and than one evaluation of the primary source.

    >>> Source(abs, cost=0.05)
    Source(abs, cost=0.05)
    """

    def __init__(
        self,
        function: Function | None = None,
        *,
        cost: CostLike = 1.0,
        name: str | None = None,
        noise: Noise = 0.0,
        timeout: float | None = None,
        valid: tuple[float, float] | None = None,
        vectorized: bool = False,
        bulk: bool | int | None = None,
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
        self.noise = noise_level(noise)
        self.timeout = None if timeout is None else positive_number(timeout, "timeout")
        self.valid = None if valid is None else _checked_range(valid)

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
        return None if self.function is None else _definition(self.function)

    def after(self, transformation: Function | None) -> Source:
        """Return the source whose function, and function for its cost, are called with what another one returns."""
        if transformation is None:
            return self
        other = copy(self)
        if isinstance(self.function, _OneByOne):
            other.function = _OneByOne(self.function.function, transformation)
        elif self.function is not None:
            other.function = _Composition(self.function, transformation)
        if callable(self.cost):
            other.cost = _Composition(self.cost, transformation)
        return other

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

    def many(self, X: Array) -> Array:
        """Return the values at each X_i, shape (n,)."""
        inputs = X if self.transformation is None else np.array([self.transformation(x) for x in X])
        values = np.asarray(self.function(inputs), dtype=float)
        if values.shape not in ((len(X),), (len(X), 1)):
            raise ValueError(
                f"{self.__name__} is vectorized: for X of shape {inputs.shape} it must return {len(X)} numbers, "
                f"got shape {values.shape}"
            )
        return values.reshape(len(X))

    @property
    def __name__(self) -> str:
        return str(getattr(self.function, "__name__", None) or type(self.function).__name__)

    def source_definition(self) -> dict[str, Any]:
        """Return what the function is, as JSON types."""
        of = {} if self.transformation is None else {"of": _definition(self.transformation)}
        return {**_definition(self.function), **of}


def _value_or_nan(function: Function, x: Array) -> float:
    """Return the value of a source at x, or NaN if it raises an error or returns no number."""
    try:
        found = function(read_only(x.copy()))
        return float(found.value if isinstance(found, Observation) else np.asarray(found, dtype=float).item())
    except Exception:
        return np.nan


@dataclass(frozen=True)
class _Composition:
    """A function of what another function returns."""

    outer: Callable[[Any], Any]
    inner: Callable[[Any], Any]

    def __call__(self, x: Array) -> Any:
        return self.outer(self.inner(x))

    @property
    def __name__(self) -> str:
        return str(getattr(self.outer, "__name__", None) or type(self.outer).__name__)

    def source_definition(self) -> dict[str, Any]:
        """Return what both functions are, as JSON types."""
        return {**_definition(self.outer), "of": _definition(self.inner)}


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


def _definition(function: Any) -> dict[str, Any]:
    if hasattr(function, "source_definition"):
        own: dict[str, Any] = function.source_definition()
        return own
    if isinstance(function, partial):
        keywords = {name: _shown(value) for name, value in function.keywords.items()}
        return {**_definition(function.func), "arguments": [_shown(a) for a in function.args], "keywords": keywords}
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    if not isinstance(name, str):  # an object that can be called
        function, name = type(function), type(function).__qualname__
    module = getattr(function, "__module__", None)
    if module == "__main__":  # the same file may be run as a script and imported
        main = sys.modules["__main__"]
        spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        module = spec.name if spec is not None else Path(file).stem if file else module
    return {"callable": f"{module}.{name}" if module else name}


def _shown(value: Any) -> Any:
    """Return an argument that is a number or a text as it is, and the name of its type for all others."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | int | float | None) else type(value).__qualname__


def _checked_range(valid: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in valid)
    except (TypeError, ValueError):
        raise TypeError(f"valid must be a pair (low, high), got {brief(valid)}") from None
    if np.isnan([low, high]).any() or not low < high:
        raise ValueError(f"valid must be (low, high) with low below high, got {brief(valid)}")
    return low, high
