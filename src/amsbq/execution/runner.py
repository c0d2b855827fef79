"""Running sources: one after the other, by threads, or by any executor. It knows no mathematics.

A query is asked as soon as a worker is free. Exceptions, time-outs and values that are no numbers are failed
evaluations, which the integrator hears of; they do not end a run.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..design.accounting import Accounting, Query
from ..design.integrator import Integrator
from ..design.stopping import StopRule
from ..results.result import Result
from ..validation import brief, count
from .evaluate import Outcome, _fulfil, evaluate
from .journal import Journal
from .progress import Progress, progress_display
from .resume import Recorder, begin_or_resume

GLANCE = 0.05  #: seconds after which to look again whether an evaluation with a timeout has started


def run(
    it: Integrator,
    rules: Sequence[StopRule] = (),
    executor: Any = None,
    workers: int = 1,
    journal: str | os.PathLike[str] | None = None,
    initial: Any = None,
    progress: bool | Progress | None = None,
    about: dict[str, Any] | None = None,
) -> Result:
    """Run an integrator to its end; ``about`` is what else a new journal is to know of it."""
    runner = Runner(it, rules, executor, workers)
    with nullcontext() if journal is None else Journal(journal) as book:
        if book is not None:
            runner.recorder = begin_or_resume(book, it, initial, about)
        with progress_display(it, progress) as display:
            stopped = runner.run(display)
        result = Result.of(it, stopped, (about or {}).get("inputs")) if len(it.learner) else None
        runner.recorder.stopped(stopped, result.estimate if result else None)
    if result is not None:
        return result
    raise no_result_error(it, stopped)


def no_result_error(ledger: Accounting, stopped: str) -> BaseException:
    """What to raise if there is nothing to return."""
    if stopped == "interrupted":
        return KeyboardInterrupt()
    last = f"; the last one: {ledger.evaluations[-1].reason}" if ledger.evaluations else ""
    return RuntimeError(f"no evaluation was successful, and the run has stopped ({stopped}){last}")


@dataclass
class _Running:
    query: Query
    timeout: float
    started: float | None = None  # when it was first seen to run, not only to wait for its turn

    def seconds_left(self, future: Future[Outcome]) -> float:
        """Until its time is over, or until it should be looked at again."""
        if np.isinf(self.timeout):
            return np.inf
        if self.started is None and not future.running():
            return GLANCE
        self.started = self.started or time.monotonic()
        return self.started + self.timeout - time.monotonic()


class Runner:
    """Evaluates what an integrator asks for, until it stops or a rule says so.

    Interrupted once, it asks for no more and waits for what is running; interrupted twice, it stops at once.
    """

    recorder = Recorder(None, None)

    def __init__(
        self,
        it: Accounting,
        rules: Sequence[Callable[[Any], str | None]] = (),
        executor: Any = None,
        workers: int = 1,
    ) -> None:
        as_executor = getattr(executor, "get_executor", None)  # of a Dask client
        self.it, self.rules = it, rules
        self.executor: Executor | None = executor if as_executor is None else as_executor(pure=False)
        if executor is not None and not callable(getattr(self.executor, "submit", None)):
            raise TypeError(f"executor must be one of concurrent.futures, or like it, got {brief(executor)}")
        self.workers = count(workers, "workers")
        if self.workers < 1:
            raise ValueError("workers must be at least 1")
        self._running: dict[Future[Outcome], _Running] = {}
        self._interrupted = False

    def run(self, progress: Progress = lambda it: None) -> str:
        """Run to the end, and say why it ended; ``progress`` is called whenever something has happened."""
        self._progress = progress
        self._left_over = self.it.pending  # of a run that goes on: asked, and never told
        reason = None
        with self._patiently():
            try:
                while reason is None:
                    reason = self._fill() or (self.it.stopped if not self._running else None)
                    if self._running:
                        self._collect()
                while self._running:  # it is paid for
                    self._collect()
            except KeyboardInterrupt:
                reason = "interrupted"
        return reason

    @contextmanager
    def _patiently(self) -> Iterator[None]:
        """Let the first interrupt only be noted."""
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

    def _fill(self) -> str | None:
        """Give every free worker something to do, unless a rule says that it is enough."""
        while len(self._running) < self.workers and not self._interrupted:
            if self._left_over:
                self._submit(self._left_over.pop(0))
                continue
            reason = next((str(reason) for rule in self.rules if (reason := rule(self.it))), None)
            query = self.it.ask() if reason is None else None
            if query is None or self._interrupted:
                return reason or ("interrupted" if self._interrupted else None)
            self.recorder.asked(query)
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
                self._fail(query, f"not evaluated, {type(error).__name__}: {error}", 0.0)
                return
        elif self.workers == 1 and source.timeout is None:
            future.set_result(evaluate(function, query.x))
        else:  # a thread that never ends must not keep the interpreter from doing so
            future.set_running_or_notify_cancel()
            threading.Thread(target=_fulfil, args=(future, function, query.x), daemon=True).start()
        self._running[future] = _Running(query, source.timeout or np.inf)

    def _collect(self) -> None:
        """Wait until something has ended, or has had its time, and tell."""
        patience = min(running.seconds_left(future) for future, running in self._running.items())
        done, _ = wait(
            self._running, timeout=None if np.isinf(patience) else max(patience, 0), return_when=FIRST_COMPLETED
        )
        for future in sorted(done, key=lambda f: self._running[f].query.id):
            self._tell(self._running.pop(future).query, future)
        for future in [f for f, running in self._running.items() if running.seconds_left(f) <= 0]:
            running = self._running.pop(future)
            took = running.timeout if self.it.sources[running.query.source].measured else None
            self._fail(running.query, f"it took more than the timeout of {running.timeout:.6g} s", took)

    def _tell(self, query: Query, future: Future[Outcome]) -> None:
        try:
            outcome = future.result()
        except (Exception, CancelledError) as error:  # the worker, not the source, is at fault
            outcome = Outcome(None, f"{type(error).__name__}: {error}", 0.0)
        seconds = max(outcome.seconds, 1e-9) if self.it.sources[query.source].measured else None
        if outcome.observation is None:
            self._fail(query, outcome.reason, seconds)
            return
        found = outcome.observation
        cost = seconds if found.cost is None else found.cost
        self.recorder.told(query, found.value, found.variance, cost)
        self.it.tell(query, found.value, found.variance, cost)
        self.recorder.known()
        self._progress(self.it)

    def _fail(self, query: Query, reason: str, cost: float | None) -> None:
        self.recorder.failed(query, reason, cost)
        self.it.fail(query, reason, cost)
        self.recorder.known()
        self._progress(self.it)
