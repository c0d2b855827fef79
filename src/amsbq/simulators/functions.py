"""Python functions that are imported by name, as in problem files."""

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
    """A Python function by name, "module:function", that is imported when it is first called.

    It is imported by the process that calls it, and can therefore be sent to other processes and machines by name. Use
    it as the function of a `Source`.

    Parameters
    ----------
    reference : str
        The module and the function, such as "simulators:fine". Dots are allowed on both sides:
        "package.module:Class.method".
    folder : path
        The folder that is searched for the module first, before Python's search path.

    Raises
    ------
    ValueError
        If the reference does not have the form "module:function".

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
            raise ValueError(f"a function must be named as 'module:function', got {reference!r}")
        if module.endswith(".py"):
            raise ValueError(f"a module must be named without .py: {module[:-3]}:{function}, got {reference!r}")
        self.module, self.function, self.folder = module, function, str(Path(folder).resolve())
        self.__name__ = function

    def source_definition(self) -> dict[str, Any]:
        """Return module, function, folder and a digest of the module, by which a journal identifies the source.

        Modules outside the folder, and imported modules, have no digest.
        """
        path = self.module.replace(".", "/")
        found = digests(Path(self.folder), [f"{path}.py", f"{path}/__init__.py"])
        return {"python": f"{self.module}:{self.function}", "folder": self.folder, "digests": found}

    def resolved(self) -> Callable[..., Any]:
        """Import and return the function itself.

        Raises
        ------
        ImportError, AttributeError
            If there is no such module, if it ends the program, or if the name is not defined in it.
        TypeError
            If the object of that name cannot be called.
        """
        if self.folder not in sys.path:
            sys.path.insert(0, self.folder)
        try:
            found: Any = importlib.import_module(self.module)
        except SystemExit as error:
            raise ImportError(
                f"the module {self.module} calls sys.exit({error.code!r}) when it is imported: put its program code "
                'under if __name__ == "__main__"'
            ) from None
        except ModuleNotFoundError as error:
            if error.name != self.module.partition(".")[0] and error.name != self.module:
                raise  # a module that it imports
            raise ImportError(f"there is no module {error.name!r} in {self.folder} or on Python's path") from None
        for name in self.function.split("."):
            if not hasattr(found, name):
                raise AttributeError(f"there is no {name!r} in {self.module}{suggestion(name, dir(found))}")
            found = getattr(found, name)
        if not callable(found):
            raise TypeError(f"{self.module}:{self.function} is {brief(found)}, which cannot be called")
        return found  # type: ignore[no-any-return]

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature of the function: parameters that are names of inputs are passed by name."""
        try:
            return inspect.signature(self.resolved())
        except Exception:  # the module is missing: the function cannot be called either
            return inspect.signature(type(self).__call__)

    def __call__(self, *x: Array, **named: Any) -> Any:
        """Call the function at x, of shape (D,), or with each input by its name, and return its result."""
        return self.resolved()(*x, **named)
