"""What a function is, as JSON types: by this a journal notices that it is another one. And functions of functions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np


def definition_of(function: Any) -> dict[str, Any]:
    """Return what a function is: its own ``source_definition()`` if it has one, else its qualified name.

    >>> definition_of(abs)
    {'callable': 'builtins.abs'}
    """
    if hasattr(function, "source_definition"):
        own: dict[str, Any] = function.source_definition()
        return own
    if isinstance(function, partial):
        keywords = {name: _shown(value) for name, value in function.keywords.items()}
        return {**definition_of(function.func), "arguments": [_shown(a) for a in function.args], "keywords": keywords}
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


@dataclass(frozen=True)
class Composition:
    """A function of what another function returns."""

    outer: Callable[[Any], Any]
    inner: Callable[[Any], Any]

    def __call__(self, x: Any) -> Any:
        """Return what the one function makes of what the other returns."""
        return self.outer(self.inner(x))

    @property
    def __name__(self) -> str:
        return str(getattr(self.outer, "__name__", None) or type(self.outer).__name__)

    def source_definition(self) -> dict[str, Any]:
        """Return what both functions are, as JSON types."""
        return {**definition_of(self.outer), "of": definition_of(self.inner)}


@dataclass(frozen=True)
class NoGradient:
    """The reason why there is no gradient, in its place: the value beside it is paid for, and is kept."""

    reason: str


def gradient_or_reason(make: Callable[[Any], Any], given: Any) -> Any:
    """Return the gradient that a function makes of what it is given, or the reason why it makes none.

    Where there is no gradient to make another one of, the reason stays the same.
    """
    if given is None or isinstance(given, NoGradient):
        return given
    try:
        return make(given)
    except Exception as error:
        return NoGradient(f"{type(error).__name__}: {error}")


#: step of central differences, as a share of the size of a coordinate, or of one if that is larger
DIFFERENCE = 1e-6


@dataclass(frozen=True)
class Chained(Composition):
    """A function of what another returns, with its derivatives: those by the inputs of the other, by the chain rule."""

    def __call__(self, x: Any) -> Any:
        """Return an observation whose gradient, if it has one, is by x; or the gradient itself."""
        found = self.outer(self.inner(x))
        if not hasattr(found, "gradient"):
            return found
        return replace(found, gradient=gradient_or_reason(partial(self.by_x, x=x), found.gradient))

    def by_x(self, gradient: Any, x: Any) -> Any:
        """Return derivatives by x, from those by what the inner function returns; of several outputs, for each."""
        steps = DIFFERENCE * np.maximum(np.abs(x), 1.0)
        moved = [[np.asarray(self.inner(x + sign * row), dtype=float) for sign in (1, -1)] for row in np.diag(steps)]
        jacobian = np.array([(ahead - behind) / (2 * step) for (ahead, behind), step in zip(moved, steps, strict=True)])
        if isinstance(gradient, Mapping):
            return {name: np.asarray(slopes) @ jacobian.T for name, slopes in gradient.items()}
        return np.asarray(gradient) @ jacobian.T


@dataclass(frozen=True)
class ChainedGradient(Chained):
    """The gradient of a function of what another returns."""

    def __call__(self, x: Any) -> Any:
        """Return the gradient by x."""
        return self.by_x(self.outer(self.inner(x)), x)
