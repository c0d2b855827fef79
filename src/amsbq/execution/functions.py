"""functions."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..validation import Array, brief


class PythonFunction:
    """A function by its name, "module:function", found in a folder or wherever Python finds modules.

    It is imported when it is first called, in the process that calls it.
    """

    def __init__(self, reference: str, folder: str | os.PathLike[str] = ".") -> None:
        module, colon, function = reference.partition(":")
        if not colon or not module or not function:
            raise ValueError(f"a function is named as 'module:function', got {reference!r}")
        self.module, self.function, self.folder = module, function, str(Path(folder).resolve())
        self.__name__ = function

    def resolved(self) -> Callable[[Array], Any]:
        """The function itself."""
        if self.folder not in sys.path:
            sys.path.insert(0, self.folder)
        found: Any = importlib.import_module(self.module)
        for name in self.function.split("."):
            found = getattr(found, name)
        if not callable(found):
            raise TypeError(f"{self.module}:{self.function} is {brief(found)}, which cannot be called")
        return found  # type: ignore[no-any-return]

    def __call__(self, x: Array) -> Any:
        return self.resolved()(x)
