"""A pool of processes that survives the death of its workers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from threading import RLock
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")


T = TypeVar("T")


TRIES = 2  #: for a call whose process has died, as it may have been the fault of another


class SteadyPool(Executor):
    """Processes; if one of them dies (a segmentation fault, too much memory, a signal) all are replaced by new ones.

    What they were at is tried once more, and then is an error of the call: the future raises `BrokenProcessPool`.
    """

    def __init__(self, workers: int) -> None:
        self._workers, self._lock = workers, RLock()
        self._pool = self._new()

    def _new(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self._workers, mp_context=get_context("spawn"))

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        outer: Future[T] = Future()
        outer.set_running_or_notify_cancel()
        self._try(outer, TRIES, lambda pool: pool.submit(fn, *args, **kwargs))
        return outer

    def _try(self, outer: Future[T], tries: int, start: Callable[[ProcessPoolExecutor], Future[T]]) -> None:
        with self._lock:
            pool = self._pool
            try:
                inner = start(pool)
            except BrokenProcessPool:
                pool = self._replaced(pool)
                inner = start(pool)

        def done(inner: Future[T]) -> None:
            error = inner.exception()
            if isinstance(error, BrokenProcessPool):
                with self._lock:
                    self._replaced(pool)
                if tries > 1:
                    self._try(outer, tries - 1, start)
                else:
                    outer.set_exception(BrokenProcessPool("the process that evaluated it has died"))
            elif error is not None:
                outer.set_exception(error)
            else:
                outer.set_result(inner.result())

        inner.add_done_callback(done)

    def _replaced(self, pool: ProcessPoolExecutor) -> ProcessPoolExecutor:
        if self._pool is pool:
            pool.shutdown(wait=False)
            self._pool = self._new()
        return self._pool

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes."""
        with self._lock:
            processes: list[Any] = list((self._pool._processes or {}).values())
            self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:  # one that hangs, or was left behind by a timeout, would be waited for without end
            process.terminate()
