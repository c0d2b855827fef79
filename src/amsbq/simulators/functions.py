"""Python functions by name, as problem files give them."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..common.messages import suggestion
from ..common.validation import Array, brief
from .digests import digests


class PythonFunction:
    """A Python function, given as "module:function", that is imported when it is first called.

    It is imported by the process that calls it, so that it can be sent to other processes and machines as a name. Use
    it as the function of a `Source`.

    Parameters
    ----------
    reference : str
        The module and the function, such as "simulators:fine". Dots are allowed on both sides:
        "package.module:Class.method".
    folder : path
        Where to look for the module first; then it is looked for wherever Python finds modules.

    Raises
    ------
    ValueError
        If the reference has not the form "module:function".

    Examples
    --------
    >>> import numpy as np
    >>> total = PythonFunction("math:fsum")
    >>> total(np.array([1.0, 2.5]))
    3.5
    """

    def __init__(self, reference: str, folder: str | os.PathLike[str] = ".") -> None:
        module, colon, function = reference.partition(":")
        if not colon or not module or not function:
            raise ValueError(f"a function is named as 'module:function', got {reference!r}")
        if module.endswith(".py"):
            raise ValueError(f"a module is named without .py: {module[:-3]}:{function}, got {reference!r}")
        self.module, self.function, self.folder = module, function, str(Path(folder).resolve())
        self.__name__ = function

    def source_definition(self) -> dict[str, Any]:
        """Return module, function and folder, by which a journal recognises the source, and a digest of the module.

        There is none of a module that is not in the folder, nor of the modules that it imports.
        """
        path = self.module.replace(".", "/")
        found = digests(Path(self.folder), [f"{path}.py", f"{path}/__init__.py"])
        return {"python": f"{self.module}:{self.function}", "folder": self.folder, "digests": found}

    def resolved(self) -> Callable[..., Any]:
        """Import and return the function itself.

        Raises
        ------
        ImportError, AttributeError
            If there is no such module, if it ends the program, or if there is nothing of that name in it.
        TypeError
            If what has that name cannot be called.
        """
        if self.folder not in sys.path:
            sys.path.insert(0, self.folder)
        try:
            found: Any = importlib.import_module(self.module)
        except SystemExit as error:
            raise ImportError(
                f"the module {self.module} calls sys.exit({error.code!r}) when it is imported: put what it runs as a "
                'program under if __name__ == "__main__"'
            ) from None
        except ModuleNotFoundError as error:
            if error.name != self.module.partition(".")[0] and error.name != self.module:
                raise  # one that it imports
            raise ImportError(f"there is no module {error.name!r} in {self.folder}, nor where Python looks") from None
        for name in self.function.split("."):
            if not hasattr(found, name):
                raise AttributeError(f"there is no {name!r} in {self.module}{suggestion(name, dir(found))}")
            found = getattr(found, name)
        if not callable(found):
            raise TypeError(f"{self.module}:{self.function} is {brief(found)}, which cannot be called")
        return found  # type: ignore[no-any-return]

    @property
    def __signature__(self) -> inspect.Signature:
        """The parameters of the function: if they are names of inputs, it is called with these."""
        try:
            return inspect.signature(self.resolved())
        except Exception:  # of a module that is not there: it is not called either
            return inspect.signature(type(self).__call__)

    def __call__(self, *x: Array, **named: Any) -> Any:
        """Call the function at x, of shape (D,), or with each input by its name, and return what it returns."""
        return self.resolved()(*x, **named)
