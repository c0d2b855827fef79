"""A pool of processes that survives crashes of the calls that it evaluates.

Each worker of the pool is a thread that owns one process. A call that crashes, or is killed, therefore affects
no other call. The processes are those of `loky`, which sends importable functions by reference
and others by value (with `cloudpickle`): lambdas, closures, functions of a script or a notebook.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, InvalidStateError, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, ParamSpec, TypeAlias, TypeVar

from ..common.validation import count
from .guardian import GUARDIAN, prepare_process

P = ParamSpec("P")
T = TypeVar("T")

#: How often a call is tried if its process dies. Twice, because the cause may be gone: another program needed the
#: memory, or somebody killed the wrong process.
TRIES = 2


class CrashedCall(BrokenProcessPool):
    """A call that killed its process in every try: the fault of the call, not of the pool."""


class ResilientProcessPool(Executor):
    """An executor that evaluates calls in processes and replaces those that die.

    A process can die of a segmentation fault, a lack of memory, or a signal. Its call is then tried once more in a new
    process; if that dies as well, the call's future raises `CrashedCall`, a subclass of `BrokenProcessPool`. Other
    calls are not affected.

    Functions need not be importable: lambdas, closures and functions of the main script are sent by value. The main
    script is not imported again, so it needs no ``if __name__ == "__main__":``. Processes start when they are
    first needed. They do not receive the Ctrl-C of a terminal, which is for the program that uses the pool. They end
    when that program ends, however it ends, and so does everything that they have started.

    Use the pool in a ``with`` statement, or call `shutdown`.

    Parameters
    ----------
    workers : int
        The number of processes, and of concurrent calls. Further calls wait for their turn.

    Examples
    --------
    >>> import amsbq
    >>> with amsbq.ResilientProcessPool(1) as pool:
    ...     print(pool.submit(pow, 2, 10).result())
    1024
    """

    def __init__(self, workers: int) -> None:
        if count(workers, "workers") < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        self._calls: _Queue = SimpleQueue()
        self._shutdown: Future[None] = Future()
        self._lock = Lock()
        self._workers = [_Worker(self._calls, self._shutdown) for _ in range(workers)]

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Evaluate ``fn(*args, **kwargs)`` in one of the processes and return its future.

        ``future.cancel()`` ends even a running call: its process is killed, with everything that it has
        started, and the future raises `CancelledError`.
        """
        call = _Call(partial(fn, *args, **kwargs))
        with self._lock:
            if self._shutdown.done():
                raise RuntimeError("the pool has been shut down and accepts no more calls")
            self._calls.put(call)
        return call

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all processes, including busy ones: waiting for one that hangs would never end.

        Parameters
        ----------
        wait : bool
            Whether to return only after the processes have ended.
        cancel_futures : bool
            Has no effect: futures of calls that have not ended are always cancelled.
        """
        with self._lock:
            if not self._shutdown.done():
                self._shutdown.set_result(None)
                for _ in self._workers:
                    self._calls.put(None)
        if wait:
            for worker in self._workers:
                worker.join()


class _Call(Future[T]):
    """The future of a call; unlike other futures it can be cancelled while the call is running."""

    def __init__(self, function: partial[T]) -> None:
        super().__init__()
        self.function = function
        self.abandoned: Future[None] = (
            Future()
        )  # done when the call shall be ended; a future, so that one can wait for it

    def cancel(self) -> bool:
        if super().cancel():
            return True
        with suppress(InvalidStateError):
            self.abandoned.set_result(None)
        return not self.done()


_Queue: TypeAlias = "SimpleQueue[_Call[Any] | None]"


class _Worker(Thread):
    """A thread that takes calls from a queue, until it takes None, and evaluates them in its own process."""

    def __init__(self, calls: _Queue, shutdown: Future[None]) -> None:
        super().__init__(daemon=True)
        self._calls, self._shutdown = calls, shutdown
        self._process: Any = None  # a loky pool of one process
        self._pid = 0  # of that process, which leads a process group
        self.start()

    def run(self) -> None:
        while (call := self._calls.get()) is not None:
            if self._shutdown.done():
                call.cancel()
            else:
                with suppress(Exception):  # the call will try again, and raise the error
                    self._start_process(call)  # before the call counts as running: the start is not charged
            if call.set_running_or_notify_cancel():
                try:
                    call.set_result(self._evaluate(call))
                except BaseException as error:
                    call.set_exception(error)
            del call  # otherwise its result would be kept until the next call
        self._end_process()

    def _evaluate(self, call: _Call[T]) -> T:
        """Return the result of a call; raise its error, or `CrashedCall` if its process dies in every try."""
        for _ in range(TRIES):
            self._start_process(call)
            try:
                return self._try(call)
            except BrokenProcessPool as error:
                self._end_process()
                death = error
        raise CrashedCall(
            f"the process that evaluated it has died {TRIES} times: {' '.join(str(death).split())}"
        ) from death

    def _try(self, call: _Call[T]) -> T:
        """Return the result of a call; raise its error, or `CancelledError` if it is ended first."""
        answer: Future[T] = self._process.submit(call.function)
        events: tuple[Future[Any], ...] = (answer, call.abandoned, self._shutdown)
        wait(events, return_when=FIRST_COMPLETED)
        if not answer.done():
            self._end_process()
            raise CancelledError("the call was cancelled and its process was ended")
        return answer.result()

    def _start_process(self, call: _Call[T]) -> None:
        """Start a process, unless there is one, and wait until it is ready for a call, with its module imported.

        If a process dies before that, no call is to blame: after all tries `BrokenProcessPool` is raised.
        """
        if self._process is not None:
            return
        from loky import ProcessPoolExecutor

        for tries_left in reversed(range(TRIES)):
            process = ProcessPoolExecutor(1, initializer=prepare_process, initargs=(os.getpid(),))
            try:
                self._pid = process.submit(_pid_beside, call.function.func).result()
                break
            except BrokenProcessPool:
                process.shutdown(kill_workers=True)
                if not tries_left:
                    raise
        self._process = process
        GUARDIAN.watch(-self._pid, self._pid)

    def _end_process(self) -> None:
        """End the process, whatever it is doing, with everything that it has started."""
        if self._process is not None:
            self._process.shutdown(kill_workers=True)
            if hasattr(os, "killpg"):
                with suppress(OSError):  # the group is empty, unless the process died by itself
                    os.killpg(self._pid, signal.SIGKILL)
            GUARDIAN.release(-self._pid, self._pid)
            self._process = None


def _pid_beside(function: Callable[..., Any]) -> int:
    """Return the number of the process that has received, and so imported, a function."""
    return os.getpid()
