"""Where sources are evaluated: a pool of processes that survives their crashes, and calls for all other executors.

Each worker of the pool is a thread that owns one process. A call that crashes, or that has to be ended, therefore takes
no other call with it. The processes are those of `loky`, which sends functions by reference where they can be imported
and by value (with `cloudpickle`) where they cannot: lambdas, closures, functions of a script or a notebook.

The workers of other executors cannot be ended from outside. Their calls have the timeout with them, see `TimedCall`.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, InvalidStateError, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, ParamSpec, TypeAlias, TypeVar

from ..processes import GUARDIAN, lead_process_group, prepare_process
from ..validation import Array, count
from .evaluate import Outcome, evaluate, evaluate_into, one_line

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class ExecutorSettings:
    """Times in seconds, and a number of tries."""

    #: how often a call is tried whose process dies; twice, because the reason may have passed: another program needed
    #: the memory, or somebody ended the wrong process
    tries: int = 2
    #: that a thread gets to end after the programs that it waits for were killed
    ending: float = 0.5
    #: between two looks whether an evaluation with a timeout has started in a pool, which does not tell
    look_again: float = 0.05
    #: beyond the longest timeout, without any call that begins or ends: then all workers of an executor hang, or are
    #: busy with the calls of others; long enough for most of these to end
    stalled: float = 600.0


SETTINGS = ExecutorSettings()


class ExecutorError(RuntimeError):
    """An executor that does not work; what it was to evaluate stays pending, and is not charged."""


class CrashedCall(BrokenProcessPool):
    """A call that has ended its process in every try: the fault of the call, not of the pool."""


class ResilientProcessPool(Executor):
    """An executor that evaluates calls in processes and replaces those that die.

    A process can die of a segmentation fault, a lack of memory, or a signal. Its call is then tried once more in a new
    process; if that dies as well, the call's future raises `CrashedCall`, a kind of `BrokenProcessPool`. Other calls
    are not affected.

    Functions need not be importable: lambdas, closures and functions of the main script are sent by value. The main
    script is not imported again, so it needs no ``if __name__ == "__main__":``. Processes are started when they are
    first needed. They do not get the Ctrl-C of a terminal, which is meant for the program that uses the pool. They end
    when that program ends, however it ends, and so does everything that they have started.

    Use the pool in a ``with`` statement, or call `shutdown`.

    Parameters
    ----------
    workers : int
        The number of processes, and of calls that are evaluated at the same time. Further calls wait for their turn.

    Examples
    --------
    >>> with ResilientProcessPool(1) as pool:
    ...     print(pool.submit(pow, 2, 10).result())
    1024
    """

    def __init__(self, workers: int) -> None:
        if count(workers, "workers") < 1:
            raise ValueError("workers must be at least 1")
        self._calls: _Queue = SimpleQueue()
        self._shutdown: Future[None] = Future()
        self._lock = Lock()
        self._workers = [_Worker(self._calls, self._shutdown) for _ in range(workers)]

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Evaluate ``fn(*args, **kwargs)`` in one of the processes and return its future.

        ``future.cancel()`` ends a call even when it is running: its process is killed, with everything that it has
        started, and the future raises `CancelledError`.
        """
        call = _Call(partial(fn, *args, **kwargs))
        with self._lock:
            if self._shutdown.done():
                raise RuntimeError("the pool has been shut down and takes no more calls")
            self._calls.put(call)
        return call

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all processes, also those that are busy: one that hangs would be waited for without end.

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
    """The future of a call; unlike others it can be cancelled while the call is running."""

    def __init__(self, function: Callable[[], T]) -> None:
        super().__init__()
        self.function = function
        self.abandoned: Future[None] = Future()  # done when the call is to be ended; a future, to be waited for

    def cancel(self) -> bool:
        if super().cancel():
            return True
        with suppress(InvalidStateError):
            self.abandoned.set_result(None)
        return not self.done()


_Queue: TypeAlias = "SimpleQueue[_Call[Any] | None]"


class _Worker(Thread):
    """A thread that takes calls from a queue, until it takes None, and evaluates them in a process of its own."""

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
                with suppress(Exception):  # the call will try it again, and raise it
                    self._start_process()  # before the call counts as running: the time that it takes is not its own
            if call.set_running_or_notify_cancel():
                try:
                    call.set_result(self._evaluate(call))
                except BaseException as error:
                    call.set_exception(error)
            del call  # or its result would be kept until the next call
        self._end_process()

    def _evaluate(self, call: _Call[T]) -> T:
        """Return the result of a call; raise its error, or `CrashedCall` if its process dies in every try."""
        for _ in range(SETTINGS.tries):
            self._start_process()
            try:
                return self._try(call)
            except BrokenProcessPool as error:
                self._end_process()
                death = error
        raise CrashedCall(
            f"the process that evaluated it has died {SETTINGS.tries} times: {one_line(death)}"
        ) from death

    def _try(self, call: _Call[T]) -> T:
        """Return the result of a call; raise its error, or `CancelledError` if it is to be ended before it has one."""
        answer: Future[T] = self._process.submit(call.function)
        events: tuple[Future[Any], ...] = (answer, call.abandoned, self._shutdown)
        wait(events, return_when=FIRST_COMPLETED)
        if not answer.done():
            self._end_process()
            raise CancelledError("the call was cancelled and its process was ended")
        return answer.result()

    def _start_process(self) -> None:
        """Start a process, unless there is one, and wait until it is ready for a call.

        A process that dies before that is the fault of no call: after all tries `BrokenProcessPool` is raised.
        """
        if self._process is not None:
            return
        from loky import ProcessPoolExecutor

        for tries_left in reversed(range(SETTINGS.tries)):
            process = ProcessPoolExecutor(1, initializer=prepare_process, initargs=(os.getpid(),))
            try:
                self._pid = process.submit(os.getpid).result()
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
                with suppress(OSError):  # there is nothing left of the group, unless the process has died by itself
                    os.killpg(self._pid, signal.SIGKILL)
            GUARDIAN.release(-self._pid, self._pid)
            self._process = None


class TimedCall:
    """An evaluation that is sent to an executor, and ends at its timeout wherever it is evaluated.

    A function with a timeout is called in a thread of its own. At the timeout the call returns, and its worker is free.
    The programs of the function are killed: those that are `Command`, and in a process of a pool all others as well. A
    thread cannot be ended; one that does not return goes on, and the reason of the failure says so. It keeps neither
    its worker nor the interpreter from ending.

    Parameters
    ----------
    function : callable
        The function of a source.
    x : (D,) array
        Where to evaluate it.
    timeout : float or None
        Seconds from the beginning of the call.
    """

    def __init__(self, function: Callable[[Array], Any], x: Array, timeout: float | None) -> None:
        self.function, self.x, self.timeout = function, x, timeout
        self._thread: int | None = None  # the one that calls the function, if that is a thread of this process

    def __call__(self) -> Outcome:
        """Evaluate the source and return the outcome."""
        alone = lead_process_group()
        self._thread = threading.get_ident()
        if self.timeout is None:
            return evaluate(self.function, self.x)
        answer: Future[Outcome] = Future()
        thread = Thread(target=evaluate_into, args=(answer, self.function, self.x), daemon=True)
        thread.start()
        self._thread = thread.ident
        try:
            return answer.result(min(self.timeout, threading.TIMEOUT_MAX))
        except TimeoutError:
            self.end()
        if alone:
            GUARDIAN.kill_descendants()
        return Outcome(None, timeout_reason(self.timeout, thread), self.timeout)

    def end(self) -> None:
        """Kill the programs that the function has started, if it is called in this process."""
        GUARDIAN.kill_started_by(self._thread)


def timeout_reason(timeout: float, thread: Thread | None = None) -> str:
    """Return why an evaluation has failed that took too long, and whether the thread that called it goes on."""
    if thread is not None:
        thread.join(SETTINGS.ending)
    left = "; its thread cannot be ended, and goes on" if thread is not None and thread.is_alive() else ""
    return f"it took more than the timeout of {timeout:.6g} s{left}"


@dataclass(eq=False)
class Started:
    """An evaluation that was started somewhere.

    Attributes
    ----------
    future : Future
        Has the outcome at the end.
    timeout : float
        Seconds after which it is to be ended from outside; infinite if it has no timeout, or ends by itself.
    end : function
        Ends it as far as that is possible.
    thread : Thread or None
        Calls the function, if that is a thread of the dispatcher.
    """

    future: Future[Outcome]
    timeout: float
    end: Callable[[], object]
    thread: Thread | None = None
    _seen: float | None = None  # when it was first seen to run, not only to wait for its turn

    def seconds_left(self) -> float:
        """Return the time until its timeout, or until it should be looked at again."""
        if math.isinf(self.timeout):
            return math.inf
        if self._seen is None and not self.future.running():
            return SETTINGS.look_again
        self._seen = self._seen or time.monotonic()
        return self._seen + self.timeout - time.monotonic()

    def time_out(self) -> Outcome:
        """End it and return the outcome: a failure."""
        self.end()
        return Outcome(None, timeout_reason(self.timeout, self.thread), self.timeout)


class Dispatcher:
    """Starts evaluations: in this thread, in threads of their own, or by an executor.

    Parameters
    ----------
    executor : Executor or None
        None evaluates in threads.
    threads : bool
        Without an executor: whether evaluations without a timeout have a thread of their own as well.
    """

    def __init__(self, executor: Executor | None, threads: bool) -> None:
        self.executor, self._threads = executor, threads
        self._resilient = isinstance(executor, ResilientProcessPool)
        self._watched: set[int] = set()

    def start(self, function: Callable[[Array], Any], x: Array, timeout: float | None) -> Started:
        """Start to evaluate a function at x, of shape (D,); raise `ExecutorError` if the executor does not take it."""
        seconds = math.inf if timeout is None else timeout
        if self.executor is not None:
            self.check_connection()
            try:
                if self._resilient:
                    answer = self.executor.submit(evaluate, function, x)
                    return Started(answer, seconds, answer.cancel)
                call = TimedCall(function, x, timeout)
                with GUARDIAN.watching_forks():
                    answer = self.executor.submit(call)
            except Exception as error:
                raise ExecutorError(f"{type(error).__name__}: {error}") from error
            self._watch(list(getattr(self.executor, "_processes", None) or ()))
            return Started(answer, math.inf, call.end)
        future: Future[Outcome] = Future()
        if timeout is None and not self._threads:
            future.set_result(evaluate(function, x))
            return Started(future, math.inf, future.cancel)
        future.set_running_or_notify_cancel()
        # A daemon: a thread that never ends must not keep the interpreter from doing so.
        thread = Thread(target=evaluate_into, args=(future, function, x), daemon=True)
        thread.start()
        return Started(future, seconds, partial(GUARDIAN.kill_started_by, thread.ident), thread)

    def check_connection(self) -> None:
        """Raise `ExecutorError` if the executor is that of a Dask client which has lost its scheduler."""
        status = getattr(getattr(self.executor, "_client", None), "status", "running")
        if status != "running":
            raise ExecutorError(f"the connection to the Dask scheduler is lost (the client is {status})")

    def check_progress(self, timeouts: Sequence[float | None], quiet: float) -> None:
        """Raise `ExecutorError` if none of the calls with these timeouts has begun or ended for too many seconds."""
        clustered = hasattr(self.executor, "_client")  # its workers may still have to come
        longest = max((math.inf if timeout is None else timeout for timeout in timeouts), default=math.inf)
        if self.executor is None or self._resilient or clustered or quiet <= longest + SETTINGS.stalled:
            return
        raise ExecutorError(
            f"no evaluation has begun or ended for {quiet:.0f} s, although none may take more than {longest:.6g} s: "
            "all of its workers hang, or are busy with other calls (a ResilientProcessPool can end calls that hang)"
        )

    def close(self) -> None:
        """Watch the processes of the executor no more."""
        GUARDIAN.release(*self._watched)
        self._watched.clear()

    def _watch(self, pids: Sequence[int]) -> None:
        """Have the processes of a pool killed if this process dies; they would wait for calls for ever."""
        new = [target for pid in pids for target in (pid, -pid) if target not in self._watched]
        self._watched.update(new)
        GUARDIAN.watch(*new)
