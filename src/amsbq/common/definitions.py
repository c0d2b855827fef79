"""JSON definitions of functions, by which a journal detects a changed function; compositions of functions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np


def definition_of(function: Any) -> dict[str, Any]:
    """Return the definition of a function: its own ``source_definition()`` if it has one, else its qualified name.

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
    if not isinstance(name, str):  # a callable object
        function, name = type(function), type(function).__qualname__
    module = getattr(function, "__module__", None)
    if module == "__main__":  # a file may be both run as a script and imported
        main = sys.modules["__main__"]
        spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        module = spec.name if spec is not None else Path(file).stem if file else module
    return {"callable": f"{module}.{name}" if module else name}


def _shown(value: Any) -> Any:
    """Return a number or a string unchanged, and the name of the type of any other argument."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | int | float | None) else type(value).__qualname__


@dataclass(frozen=True)
class Composition:
    """A function applied to what another function returns."""

    outer: Callable[[Any], Any]
    inner: Callable[[Any], Any]

    def __call__(self, x: Any) -> Any:
        """Return the outer function of the inner function of x."""
        return self.outer(self.inner(x))

    @property
    def __name__(self) -> str:
        return str(getattr(self.outer, "__name__", None) or type(self.outer).__name__)

    def source_definition(self) -> dict[str, Any]:
        """Return the definitions of both functions in JSON-serialisable form."""
        return {**definition_of(self.outer), "of": definition_of(self.inner)}


@dataclass(frozen=True)
class NoGradient:
    """A reason in place of a missing gradient: the value that came with it is paid for, and is kept."""

    reason: str


def gradient_or_reason(make: Callable[[Any], Any], given: Any) -> Any:
    """Return the gradient that ``make`` returns for what is ``given``, or the reason why there is none.

    If a reason is given instead of a gradient, it is returned unchanged.
    """
    if given is None or isinstance(given, NoGradient):
        return given
    try:
        return make(given)
    except Exception as error:
        return NoGradient(f"{type(error).__name__}: {error}")


#: step of central differences, relative to the absolute value of a coordinate, or to one if that is larger
DIFFERENCE = 1e-6


@dataclass(frozen=True)
class Chained(Composition):
    """A function applied to the output of another, with derivatives with respect to the inner inputs (chain rule)."""

    def __call__(self, x: Any) -> Any:
        """Return an observation whose gradient, if any, is with respect to x; or that gradient."""
        found = self.outer(self.inner(x))
        if not hasattr(found, "gradient"):
            return found
        return replace(found, gradient=gradient_or_reason(partial(self.by_x, x=x), found.gradient))

    def by_x(self, gradient: Any, x: Any) -> Any:
        """Return derivatives of each output with respect to x, from those with respect to the inner function."""
        steps = DIFFERENCE * np.maximum(np.abs(x), 1.0)
        moved = [[np.asarray(self.inner(x + sign * row), dtype=float) for sign in (1, -1)] for row in np.diag(steps)]
        jacobian = np.array([(ahead - behind) / (2 * step) for (ahead, behind), step in zip(moved, steps, strict=True)])
        if isinstance(gradient, Mapping):
            return {name: np.asarray(slopes) @ jacobian.T for name, slopes in gradient.items()}
        return np.asarray(gradient) @ jacobian.T


@dataclass(frozen=True)
class ChainedGradient(Chained):
    """The gradient of a `Chained` function."""

    def __call__(self, x: Any) -> Any:
        """Return the gradient with respect to x."""
        return self.by_x(self.outer(self.inner(x)), x)
