"""How many threads linear algebra gets.

Small matrices are not worth two of them. Where other work keeps the cores busy, threads that wait for each other make
a small factorisation a hundred times slower. And the last digits of a result depend on the number of threads: with one,
a run is the same on every number of cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

#: observations from which on more threads are worth last digits that depend on their number. Hyperparameters come
#: from 256 observations at most, so that a second thread gained nothing measurable at 1,000; at 10,000, where a refit
#: takes minutes, factorisations are most of it. Where exactly between the two was not measured.
MANY_OBSERVATIONS = 4000


@contextmanager
def threads_for(n: int) -> Iterator[None]:
    """Limit linear algebra with n observations to one thread, unless there are many.

    The limit holds for the whole process, as long as any thread of it needs it.
    """
    limit = _limit() if n < MANY_OBSERVATIONS else None
    if limit is None:
        yield
        return
    limit.begin()
    try:
        yield
    finally:
        limit.end()


class _Limit:
    """The limit of one thread, set by the first of its users and lifted by the last."""

    def __init__(self, controller: Any) -> None:
        self._controller, self._lock, self._users = controller, Lock(), 0
        self._limiter: Any = None

    def begin(self) -> None:
        with self._lock:
            if self._users == 0:
                self._limiter = self._controller.limit(limits=1, user_api="blas")
            self._users += 1

    def end(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limiter.restore_original_limits()


@cache
def _limit() -> _Limit:
    from threadpoolctl import ThreadpoolController  # here, as it looks for libraries that NumPy and SciPy have loaded

    return _Limit(ThreadpoolController())
