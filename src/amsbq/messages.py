"""Warnings of this library and of those that it calls: issued, collected or silenced, in any number of threads.

The filters of Python's ``warnings`` belong to the whole process: two threads that change them at the same time leave
them changed, and catch each other's warnings. What this library has to say is therefore collected per thread.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextvars import ContextVar

from .shared_context import SharedContext

OURS = (os.path.join(os.path.dirname(__file__), ""), contextlib.__file__)  #: code that is not to blame for a warning

_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning, or add it to those that this thread collects.

    The line to blame is the last one outside of this package, which is one of the user.
    """
    collected = _collected.get()
    if collected is not None:
        collected.append(message)
        return
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(OURS):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextlib.contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect, in this thread, what `warn` is called with, and yield the list; warnings of others are not touched.

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


#: A context in which warnings of other libraries are ignored, in all threads.
SILENCE = SharedContext(lambda: warnings.catch_warnings(action="ignore"))


def suggestion(name: object, known: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)" for the known name that is closest to ``name``, or "" if none is close."""
    close = difflib.get_close_matches(str(name), list(known), 1)
    return f" (did you mean {close[0]!r}?)" if close else ""
