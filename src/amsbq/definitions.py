"""What a function is, as JSON types: by this a journal notices that it is another one. And functions of functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
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
