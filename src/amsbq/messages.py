"""Warnings of this library and of those that it calls: issued, collected or silenced, in any number of threads.

The filters of Python's ``warnings`` belong to the whole process: two threads that change them at the same time leave
them changed, and catch each other's warnings. What this library has to say is therefore collected per thread.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .shared_context import SharedContext

_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


def warn(message: str, category: type[Warning] = UserWarning, stacklevel: int = 1) -> None:
    """Issue a warning, or add it to those that this thread collects.

    Parameters
    ----------
    message : str
        The warning.
    category : class
        Its class.
    stacklevel : int
        The line to blame, as in `warnings.warn`: 1 for the one that calls this function.
    """
    collected = _collected.get()
    if collected is None:
        warnings.warn(message, category, stacklevel=stacklevel + 1)
    else:
        collected.append(message)


@contextmanager
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
