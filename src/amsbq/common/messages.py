"""Warnings of this library and of those that it calls: issued, collected or silenced, in any number of threads.

The filters of Python's ``warnings`` are global to the process: two threads that change them at the same time leave
them changed, and catch each other's warnings. Warnings of this library are therefore collected per thread.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import wraps
from types import FrameType
from typing import ParamSpec, TypeVar

from .shared_context import SharedContext

#: code to which warnings are not attributed: this package, and contexts
OURS = (os.path.join(os.path.dirname(os.path.dirname(__file__)), ""), contextlib.__file__)

_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning, or add it to those that this thread collects.

    It is attributed to the last line outside this package, which is the user's.
    """
    collected = _collected.get()
    if collected is not None:
        collected.append(message)
        return
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and is_ours(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def is_ours(frame: FrameType) -> bool:
    """Return whether a stack frame is of this package, or of a context that it enters."""
    return frame.f_code.co_filename.startswith(OURS)


@contextlib.contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect the messages of `warn` in this thread, and yield their list; other warnings are unaffected.

    >>> with collected_warnings() as messages:
    ...     warn("the error bar is a guess")
    >>> messages
    ['the error bar is a guess']
    """
    messages: list[str] = []
    token = _collected.set(messages)
    try:
        yield messages
    finally:
        _collected.reset(token)


P = ParamSpec("P")
T = TypeVar("T")


def renamed(**names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that still accepts old names of parameters, with a warning.

    >>> @renamed(measure="inputs")
    ... def dimension(inputs):
    ...     return len(inputs)
    >>> with collected_warnings() as messages:
    ...     dimension(measure=[(0, 1)])
    1
    >>> messages
    ['measure= is called inputs= now']
    """

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> T:
            for old in names.keys() & kwargs.keys():
                warn(f"{old}= is called {names[old]}= now", DeprecationWarning)
                kwargs[names[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        return called

    return decorated


#: A context in which warnings of other libraries are ignored, in all threads.
SILENCE = SharedContext(lambda: warnings.catch_warnings(action="ignore"))


def suggestion(name: object, known: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)" for the known name that is closest to ``name``, or "" if none is close."""
    close = difflib.get_close_matches(str(name), list(known), 1)
    return f" (did you mean {close[0]!r}?)" if close else ""
