"""`SharedContext`: a process-wide context that several threads may be in at the same time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Lock
from typing import Any


class SharedContext:
    """A context that is entered with the first of its users and left with the last.

    Parameters
    ----------
    make : function
        Returns a new context manager, which need not be thread-safe.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[Any]]) -> None:
        self._make, self._lock, self._users = make, Lock(), 0
        self._context: AbstractContextManager[Any] | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._context is None:
                self._context = self._make()
                self._context.__enter__()
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._context is not None:
                self._context.__exit__(None, None, None)
                self._context = None
