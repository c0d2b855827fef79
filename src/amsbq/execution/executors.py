"""Execution of evaluations: in this thread, in separate threads, or by an executor; and their time-outs.

A `ResilientProcessPool` ends calls from outside. The workers of other executors cannot be killed: their calls carry the
timeout with them, see `TimedCall`.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import Any, Protocol, TypeAlias

import numpy as np

from ..common.validation import Array, brief
from ..design.failures import TIMED_OUT
from ..processes.guardian import GUARDIAN, lead_process_group
from ..processes.pool import ResilientProcessPool
from ..simulators.answers import error_text
from .evaluate import Outcome, evaluate, evaluate_each, evaluate_into, evaluate_together


@dataclass(frozen=True)
class ExecutorSettings:
    """Times in seconds."""

    #: grace period of a thread after the programs that it waits for were killed
    ending: float = 0.5
    #: between checks of whether an evaluation with a timeout has started in a pool, which does not notify
    look_again: float = 0.05
    #: beyond the longest timeout, without any call beginning or ending: all workers of an executor then hang, or are
    #: busy with other calls; long enough for most of these to end
    stalled: float = 600.0


SETTINGS = ExecutorSettings()


class SupportsExecutor(Protocol):
    """A client of a cluster that offers an executor, such as ``distributed.Client``."""

    def get_executor(self, **options: Any) -> Executor:
        """Return an executor that evaluates on the cluster."""


ExecutorLike: TypeAlias = Executor | SupportsExecutor


class ExecutorError(RuntimeError):
    """A broken executor; its queries stay pending and are not charged."""


class TimedCall:
    """An evaluation that is sent to an executor, and ends at its timeout wherever it is evaluated.

    A function with a timeout is called in a separate thread. At the timeout the call returns, and its worker is free.
    The programs that the function runs are killed: those of a `Command`, and in a process of a pool all others too. A
    thread cannot be killed; one that does not return continues, and the reason for the failure mentions this. It blocks
    neither its worker nor the exit of the interpreter.

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
        self._thread: int | None = None  # the thread that calls the function, if it is one of this process

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
    """Return the reason of a time-out, and whether the thread of the evaluation continues."""
    if thread is not None:
        thread.join(SETTINGS.ending)
    left = "; its thread cannot be ended, and continues" if thread is not None and thread.is_alive() else ""
    return f"{TIMED_OUT} the timeout of {timeout:.6g} s{left}"


@dataclass(eq=False)
class Started:
    """A started evaluation, wherever it runs.

    Attributes
    ----------
    future : Future
        It has the outcome at the end.
    timeout : float
        Seconds after which the evaluation must be ended from outside; infinite if it has no timeout, or ends by itself.
    end : function
        Ends the evaluation as far as possible.
    thread : Thread or None
        The thread of the dispatcher that calls the function, if there is one.
    """

    future: Future[Outcome]
    timeout: float
    end: Callable[[], object]
    thread: Thread | None = None
    _seen: float | None = None  # when it was first seen running, not only queued

    def seconds_left(self) -> float:
        """Return the seconds until its timeout, or until it should be checked again."""
        if math.isinf(self.timeout):
            return math.inf
        if self._seen is None and not self.future.running():
            return SETTINGS.look_again
        self._seen = self._seen or time.monotonic()
        return self._seen + self.timeout - time.monotonic()

    def time_out(self) -> Outcome:
        """End the evaluation and return its outcome, a failure."""
        self.end()
        return Outcome(None, timeout_reason(self.timeout, self.thread), self.timeout)


def _ended(outcome: Outcome) -> Started:
    """Return an evaluation that has already ended."""
    future: Future[Outcome] = Future()
    future.set_result(outcome)
    return Started(future, math.inf, future.cancel)


class Dispatcher:
    """Dispatcher of evaluations to this thread, to separate threads, or to an executor.

    Parameters
    ----------
    executor : Executor, Dask client or None
        None evaluates in threads.
    threads : bool
        Without an executor: whether evaluations without a timeout also run in separate threads.
    """

    def __init__(self, executor: ExecutorLike | None, threads: bool) -> None:
        as_executor = getattr(executor, "get_executor", None)  # a Dask client has it
        offered: Any = executor if as_executor is None else as_executor(pure=False)
        if isinstance(executor, type) or (executor is not None and not callable(getattr(offered, "submit", None))):
            hint = f"; it is a class: pass {executor.__name__}(...)" if isinstance(executor, type) else ""
            raise TypeError(f"executor must be one of concurrent.futures, or like it, got {brief(executor)}{hint}")
        self.executor: Executor | None = offered
        self._threads = threads
        self._resilient = isinstance(executor, ResilientProcessPool)
        self._watched: set[int] = set()

    def start(self, function: Callable[[Array], Any], x: Array, timeout: float | None) -> Started:
        """Start to evaluate a function at x, of shape (D,); raise `ExecutorError` if the executor refuses it."""
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
                raise ExecutorError(error_text(error)) from error
            self._watch(list(getattr(self.executor, "_processes", None) or ()))
            return Started(answer, math.inf, call.end)
        if timeout is None and not self._threads:
            return _ended(evaluate(function, x))
        future: Future[Outcome] = Future()
        future.set_running_or_notify_cancel()
        # A daemon: a thread that never ends must not block the exit of the interpreter.
        thread = Thread(target=evaluate_into, args=(future, function, x), daemon=True)
        thread.start()
        return Started(future, seconds, partial(GUARDIAN.kill_started_by, thread.ident), thread)

    def start_together(self, function: Any, X: Array) -> list[Started]:
        """Evaluate the function of a vectorized source at all X_i, shape (n, D), in one call in this thread."""
        return [_ended(outcome) for outcome in evaluate_together(function, X)]

    def many(self, function: Any, X: Array, vectorized: bool, workers: int) -> list[Outcome]:
        """Return the outcomes of a function at all X_i, shape (n, D), in this thread or in one call for each worker."""
        if self.executor is None:
            return evaluate_each(function, X, vectorized)
        self.check_connection()
        try:
            with GUARDIAN.watching_forks():
                parts = [part for part in np.array_split(X, workers) if len(part)]
                answers = [self.executor.submit(evaluate_each, function, part, vectorized) for part in parts]
            self._watch(list(getattr(self.executor, "_processes", None) or ()))
            return [outcome for answer in answers for outcome in answer.result()]
        except Exception as error:
            raise ExecutorError(error_text(error)) from error

    def check_connection(self) -> None:
        """Raise `ExecutorError` if the executor is that of a Dask client which has lost its scheduler."""
        status = getattr(getattr(self.executor, "_client", None), "status", "running")
        if status != "running":
            raise ExecutorError(f"the connection to the Dask scheduler is lost (the client is {status})")

    def check_progress(self, timeouts: Sequence[float | None], quiet: float) -> None:
        """Raise `ExecutorError` if none of the calls with these timeouts has begun or ended for too long."""
        clustered = hasattr(self.executor, "_client")  # its workers may not have started yet
        longest = max((math.inf if timeout is None else timeout for timeout in timeouts), default=math.inf)
        if self.executor is None or self._resilient or clustered or quiet <= longest + SETTINGS.stalled:
            return
        raise ExecutorError(
            f"no evaluation has begun or ended for {quiet:.0f} s, although none may take more than {longest:.6g} s: "
            "all of its workers hang, or are busy with other calls (a ResilientProcessPool can end calls that hang)"
        )

    def close(self) -> None:
        """Stop watching the processes of the executor."""
        GUARDIAN.release(*self._watched)
        self._watched.clear()

    def _watch(self, pids: Sequence[int]) -> None:
        """Watch the processes of a pool, to kill them if this process dies, since they would wait for calls forever."""
        new = [target for pid in pids for target in (pid, -pid) if target not in self._watched]
        self._watched.update(new)
        GUARDIAN.watch(*new)
