"""Running sources: one after the other, in threads, or by any executor. The runner knows no mathematics.

A query is asked as soon as a worker is free. Exceptions, time-outs and values that are not acceptable are failed
evaluations, which the integrator is told of; they do not end a run.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from ..design.accounting import Accounting, Query, StopReason, rejection
from ..design.failures import recorded_reason
from ..design.integrator import Integrator
from ..design.stopping import StopRule
from ..results.result import Result
from ..validation import brief, count
from .evaluate import Outcome, error_text, evaluate, evaluate_into
from .journal import Event, Journal, JournalError, JournalPath
from .progress import Progress, progress_display
from .resume import EventLog, begin_or_resume


class SupportsExecutor(Protocol):
    """A client of a cluster that offers an executor, such as ``distributed.Client``."""

    def get_executor(self, **options: Any) -> Executor:
        """Return an executor that evaluates on the cluster."""


ExecutorLike: TypeAlias = Executor | SupportsExecutor


@dataclass(frozen=True)
class RunnerSettings:
    """Time in seconds."""

    #: between two looks whether an evaluation with a timeout has started in an executor, which does not tell
    look_again: float = 0.05
    #: the shortest duration that counts as a cost: clocks may say zero, and costs must be positive
    shortest: float = 1e-9


SETTINGS = RunnerSettings()


class RunInterrupted(KeyboardInterrupt):
    """A run that the user interrupted.

    Attributes
    ----------
    result : Result or None
        What is known so far; None if no evaluation was successful.
    """

    def __init__(self, result: Result | None = None) -> None:
        super().__init__("the run was interrupted")
        self.result = result


def run(
    it: Integrator,
    rules: Sequence[StopRule] = (),
    *,
    executor: ExecutorLike | None = None,
    workers: int = 1,
    journal: JournalPath | None = None,
    progress: bool | Callable[[Integrator], None] | None = None,
    about: Event | None = None,
    accept_changes: bool = False,
) -> Result:
    """Run an integrator until it stops, a rule stops it, or the user interrupts it, and return the result.

    Parameters
    ----------
    it : Integrator
        Decides what to evaluate; its sources have functions.
    rules : list of functions of the integrator
        The run stops when one of them returns a reason.
    executor : Executor or Dask client, optional
        Where to evaluate; by default in this thread, or in threads of their own if there are several workers.
    workers : int
        Evaluations at the same time.
    journal : path, optional
        The file to begin, or to resume from.
    progress : bool or function of the integrator, optional
        Whether to show progress, or what to call whenever something has happened.
    about : dict, optional
        What else the header of a new journal is to hold; ``inputs`` are the names of the inputs.
    accept_changes : bool
        Whether to resume a journal although the problem has changed.

    Raises
    ------
    RunInterrupted
        If the run was interrupted before any evaluation was successful.
    RuntimeError
        If the run has stopped and no evaluation was successful.
    """
    runner = Runner(it, rules, executor, workers)
    with nullcontext() if journal is None else Journal(journal) as opened:
        if opened is not None:
            runner.log = begin_or_resume(opened, it, about, accept_changes)
        with progress_display(it, (lambda _: progress(it)) if callable(progress) else progress) as display:
            stopped = runner.run(display)
        result = Result.of(it, stopped, (about or {}).get("inputs")) if len(it.learner) else None
        runner.log.stopped(stopped, None if result is None else result.estimate)
    if result is None:
        raise no_result_error(it, stopped)
    return result


def no_result_error(it: Accounting, stopped: StopReason) -> BaseException:
    """Return what to raise if no evaluation was successful."""
    if stopped == "interrupted":
        return RunInterrupted()
    last = f"; the last one: {it.evaluations[-1].reason}" if it.evaluations else ""
    return RuntimeError(f"no evaluation was successful, and the run has stopped ({stopped}){last}")


@dataclass
class _Running:
    query: Query
    timeout: float
    started: float | None = None  # when it was first seen to run, not only to wait for its turn

    def seconds_left(self, future: Future[Outcome]) -> float:
        """Return the time until its timeout, or until it should be looked at again."""
        if np.isinf(self.timeout):
            return np.inf
        if self.started is None and not future.running():
            return SETTINGS.look_again
        self.started = self.started or time.monotonic()
        return self.started + self.timeout - time.monotonic()


class Runner:
    """Evaluates what an integrator asks for, until it stops or a rule stops it.

    Interrupted once, it asks for no more and waits for what is running; interrupted twice, it stops at once.

    Parameters
    ----------
    it : Accounting
        Decides what to evaluate; its sources have functions.
    rules : list of functions of ``it``
        The run stops when one of them returns a reason.
    executor : Executor or Dask client, optional
        Where to evaluate; by default in this thread, or in threads of their own.
    workers : int
        Evaluations at the same time.

    Attributes
    ----------
    log : EventLog
        Hears of all events; by default it keeps nothing.
    """

    def __init__(
        self,
        it: Accounting,
        rules: Sequence[Callable[[Any], StopReason | None]] = (),
        executor: ExecutorLike | None = None,
        workers: int = 1,
    ) -> None:
        as_executor = getattr(executor, "get_executor", None)  # of a Dask client
        offered: Any = executor if as_executor is None else as_executor(pure=False)
        self.it, self.rules = it, rules
        self.executor: Executor | None = offered
        if executor is not None and not callable(getattr(self.executor, "submit", None)):
            raise TypeError(f"executor must be one of concurrent.futures, or like it, got {brief(executor)}")
        self.workers = count(workers, "workers")
        if self.workers < 1:
            raise ValueError("workers must be at least 1")
        self.log = EventLog()
        self._running: dict[Future[Outcome], _Running] = {}
        self._interrupted = False

    def run(self, progress: Progress = lambda it: None) -> StopReason:
        """Run to the end, and return why it ended; ``progress`` is called whenever something has happened."""
        self._progress = progress
        self._unanswered = self.it.pending  # of a run that is resumed
        reason: StopReason | None = None
        with self._first_interrupt_noted():
            try:
                while reason is None:
                    reason = self._fill() or (self.it.stopped if not self._running else None)
                    if self._running:
                        self._collect()
                self._collect_all()
            except KeyboardInterrupt:
                reason = "interrupted"
            except JournalError:
                raise  # more answers could not be kept either
            except Exception:
                self._collect_all()  # they are paid for
                raise
        return reason

    @contextmanager
    def _first_interrupt_noted(self) -> Iterator[None]:
        """Only note the first interrupt, so that evaluations can end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def note(signal_number: int, frame: Any) -> None:
            if self._interrupted:
                raise KeyboardInterrupt
            self._interrupted = True
            print("stopping after what is running; interrupt again to stop now", file=sys.stderr, flush=True)

        before = signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _fill(self) -> StopReason | None:
        """Give every free worker something to do, or return a reason to stop."""
        while len(self._running) < self.workers and not self._interrupted:
            if self._unanswered:
                self._submit(self._unanswered.pop(0))
                continue
            reason = next((str(reason) for rule in self.rules if (reason := rule(self.it))), None)
            query = self.it.ask() if reason is None else None
            if query is None or self._interrupted:
                return reason or ("interrupted" if self._interrupted else None)
            self.log.asked(query)
            self._submit(query)
            self._progress(self.it)
        return "interrupted" if self._interrupted else None

    def _submit(self, query: Query) -> None:
        source = self.it.sources[query.source]
        function: Any = source.function
        future: Future[Outcome] = Future()
        if self.executor is not None:
            try:
                future = self.executor.submit(evaluate, function, query.x)
            except Exception as error:  # such as a pool whose processes have died
                self._fail(query, f"not evaluated, {error_text(error)}", 0.0)
                return
        elif self.workers == 1 and source.timeout is None:
            future.set_result(evaluate(function, query.x))
        else:  # a thread that never ends must not keep the interpreter from doing so
            future.set_running_or_notify_cancel()
            threading.Thread(target=evaluate_into, args=(future, function, query.x), daemon=True).start()
        self._running[future] = _Running(query, source.timeout or np.inf)

    def _collect_all(self) -> None:
        """Wait for everything that is running, and tell."""
        while self._running:
            self._collect()

    def _collect(self) -> None:
        """Wait until something has ended or has exceeded its timeout, and tell."""
        patience = min(running.seconds_left(future) for future, running in self._running.items())
        seconds = None if np.isinf(patience) else min(max(patience, 0), threading.TIMEOUT_MAX)
        done, _ = wait(self._running, timeout=seconds, return_when=FIRST_COMPLETED)
        for future in sorted(done, key=lambda f: self._running[f].query.id):
            self._tell(self._running.pop(future).query, future)
        for future in [f for f, running in self._running.items() if running.seconds_left(f) <= 0]:
            running = self._running.pop(future)
            future.cancel()  # some executors can end a call that is running, and use its worker for the next
            measured = self.it.sources[running.query.source].measured
            cost = running.timeout if measured else running.query.cost
            self._fail(running.query, f"it took more than the timeout of {running.timeout:.6g} s", cost)

    def _tell(self, query: Query, future: Future[Outcome]) -> None:
        """Judge an outcome, log it, and tell the integrator."""
        try:
            outcome = future.result()
        except (Exception, CancelledError) as error:  # the worker, not the source, is at fault
            outcome = Outcome(None, error_text(error), 0.0)
        source, found = self.it.sources[query.source], outcome.observation
        cost = max(outcome.seconds, SETTINGS.shortest) if source.measured else query.cost
        if found is None:
            self._fail(query, outcome.reason, cost)
            return
        cost = cost if found.cost is None else found.cost
        reason = rejection(found.value, source.valid, found.variance)
        if reason:
            self._fail(query, reason, cost)
            return
        self.log.told(query, found.value, found.variance, cost)
        self.it.tell(query, found.value, found.variance, cost)
        self.log.known()
        self._progress(self.it)

    def _fail(self, query: Query, reason: str, cost: float) -> None:
        """Log a failure, and tell the integrator."""
        reason = recorded_reason(reason)
        self.log.failed(query, reason, cost)
        self.it.fail(query, reason, cost)
        self.log.known()
        self._progress(self.it)
