"""Running sources: one at a time, in threads, or in any executor. The runner knows no mathematics.

A query is requested as soon as a worker is free. Exceptions, time-outs and unacceptable values are reported to the
integrator as failed evaluations; they do not end a run. A broken executor ends it: its queries stay pending and are
not charged.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..common.validation import Array, count
from ..design.evaluations import Evaluation, Query, StopReason
from ..design.failures import wrong_range
from ..design.run import Run, answer, foreseen, record
from ..design.stopping import StopRule, repeated_failure
from ..processes.interrupts import Interrupts
from ..processes.pool import CrashedCall
from ..results.result import Result, result_of
from ..simulators.answers import error_text
from .bulk import evaluate_in_bulk, values_beside
from .evaluate import Outcome
from .executors import Dispatcher, ExecutorError, ExecutorLike, Started
from .integrator import Integrator
from .journal import Event, Journal, JournalError, JournalPath
from .progress import Progress, progress_display
from .resume import EventLog, begin_or_resume


@dataclass(frozen=True)
class RunnerSettings:
    """Limits; time is in seconds."""

    #: between checks of whether an executor still works, because not all of them report failures
    check_executor: float = 1.0
    #: the shortest duration that counts as a cost: clocks may show zero, and costs must be positive
    shortest: float = 1e-9
    #: evaluations of a vectorized source in one call, at most
    together: int = 256


SETTINGS = RunnerSettings()


class RunInterrupted(KeyboardInterrupt):
    """A run that the user interrupted.

    Attributes
    ----------
    result : Result or None
        The partial result; None if no evaluation was successful.
    """

    def __init__(self, result: Result | None = None) -> None:
        super().__init__("the run was interrupted")
        self.result = result


class NoResultError(RuntimeError):
    """A run that stopped without any value."""


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
    taken: Sequence[Evaluation] = (),
) -> Result:
    """Run an integrator until it stops, a rule stops it, or the user interrupts it, and return the result.

    Parameters
    ----------
    it : Integrator
        The integrator that chooses queries; its sources have functions.
    rules : list of functions of the integrator
        Stop rules: the run stops when one of them returns a reason.
    executor : Executor or Dask client, optional
        Where to evaluate; by default in this thread, or in separate threads if there are several workers.
    workers : int
        Number of concurrent evaluations.
    journal : path, optional
        The file to begin, or to resume from.
    progress : bool or function of the integrator, optional
        Whether to show progress, or a function to call after each query and evaluation.
    about : dict, optional
        Further entries of the header of a new journal; ``inputs`` are the names of the inputs.
    accept_changes : bool
        Whether to resume a journal although the problem has changed.
    taken : list of Evaluation
        Values of another journal with which a new one begins.

    Raises
    ------
    RunInterrupted
        If the run was interrupted before any evaluation was successful.
    ExecutorError
        If the executor does not work. Its queries stay pending and are not charged.
    NoResultError
        If the run stopped and no evaluation was successful.
    """
    runner = Runner(it, rules, executor, workers)
    about = {**({} if it.inputs is None else {"inputs": it.inputs}), **(about or {})}
    with nullcontext() if journal is None else Journal(journal) as opened:
        if opened is not None:
            runner.log = begin_or_resume(opened, it, about, accept_changes, taken)
        runner.rules = [*rules, repeated_failure(len(it.evaluations))]
        with progress_display(it, (lambda _: progress(it)) if callable(progress) else progress) as display:
            stopped = runner.run(display)
        result = result_of(it, stopped, about.get("inputs")) if len(it.learner) else None
        runner.log.stopped(stopped, result)
    if result is None:
        raise no_result_error(it, stopped, recorded=journal is not None)
    return result


def no_result_error(it: Run, stopped: StopReason, recorded: bool = False) -> BaseException:
    """Return the error to raise if no evaluation was successful; with ``recorded``, a journal can be resumed."""
    if stopped == "interrupted":
        return RunInterrupted()
    last = f"; the last one: {it.evaluations[-1].reason}" if it.evaluations else ""
    hint = wrong_range([e.reason for e in it.evaluations])
    last += f". {hint[:1].upper()}{hint[1:]}" if hint else ""
    again = " Once this is fixed, the same call with the same journal continues; retired sources are tried again."
    return NoResultError(
        f"no evaluation was successful, and the run has stopped ({stopped}){last}.{again if recorded else ''}"
    )


class Runner:
    """Runner of the queries of an integrator, until it stops or a rule stops it.

    Interrupted once, it requests no more evaluations and waits for the running ones; those that fail then stay pending.
    Interrupted twice, it ends running evaluations as far as possible, and stops immediately.

    Parameters
    ----------
    it : Run
        The integrator that chooses queries; its sources have functions.
    rules : list of functions of ``it``
        Stop rules: the run stops when one of them returns a reason.
    executor : Executor or Dask client, optional
        Where to evaluate; by default in this thread, or in separate threads.
    workers : int
        Number of concurrent evaluations.

    Attributes
    ----------
    log : EventLog
        Listener to all events; by default it keeps nothing.
    """

    def __init__(
        self,
        it: Run,
        rules: Sequence[Callable[[Any], StopReason | None]] = (),
        executor: ExecutorLike | None = None,
        workers: int = 1,
    ) -> None:
        self.it, self.rules = it, rules
        self.workers = count(workers, "workers")
        if self.workers < 1:
            raise ValueError(f"workers must be at least 1, got {self.workers}")
        self.log = EventLog()
        self._dispatcher = Dispatcher(executor, threads=self.workers > 1)
        self._running: dict[Future[Outcome], tuple[Query, Started]] = {}
        self._beside: dict[int, list[tuple[int, Started]]] = {}  # calls of sources evaluated in bulk, by query
        self._interrupts = Interrupts()
        self._last_event = time.monotonic()  # when a call was last submitted, or has ended

    def run(self, progress: Progress = lambda it: None) -> StopReason:
        """Run to the end, and return why it ended; ``progress`` is called after each query and evaluation."""
        self._progress = progress
        self._unanswered = self.it.pending  # of a resumed run
        reason: StopReason | None = None
        with self._interrupts.handled():
            try:
                for made in evaluate_in_bulk(self.it, self._many):
                    self.log.bulk(made)
                while reason is None:
                    reason = self._fill() or (self.it.stopped if not self._running else None)
                    if self._running:
                        self._collect()
                self._collect_all()
            except KeyboardInterrupt:
                reason = "interrupted"
                self._abandon()
            except ExecutorError as error:
                self._salvage()
                raise ExecutorError(
                    f"the executor does not work: {error}. {len(self.it.pending)} of its queries are pending, and not "
                    "charged; with a journal, the same call continues with them"
                ) from error
            except JournalError:
                raise  # further answers could not be written either
            except Exception:
                self._collect_all()  # they are paid for
                raise
            finally:
                self._dispatcher.close()
        return reason

    def _fill(self) -> StopReason | None:
        """Start evaluations on all free workers, or return a reason to stop."""
        together: list[Query] = []  # of vectorized sources, which are called once for all of them
        reason = self._ask_for(together)
        for source in sorted({query.source for query in together}):
            self._submit_together([query for query in together if query.source == source])
        return reason or ("interrupted" if self._interrupts.noted else None)

    def _ask_for(self, together: list[Query]) -> StopReason | None:
        """Ask for queries for all workers, or for one call of a vectorized source; return a reason to stop, or None."""
        while self._has_room(together) and not self._interrupts.noted:
            query = self._unanswered.pop(0) if self._unanswered else None
            if query is None:
                reason = next((str(reason) for rule in self.rules if (reason := rule(self.it))), None)
                query = self.it.ask() if reason is None else None
                if query is None or self._interrupts.noted:
                    return reason
                self.log.asked(query)
            if self._vectorized(query):
                together.append(query)
            else:
                self._submit(query)
            self._progress(self.it)
        return None

    def _has_room(self, together: Sequence[Query]) -> bool:
        """Return whether more queries can be requested; a vectorized source takes all pending ones in one call."""
        if len(self._running) + len(together) < self.workers:
            return True
        room = len(self._running) < self.workers and 0 < len(together) < SETTINGS.together
        return room and (bool(self._unanswered) or foreseen(self.it))

    def _vectorized(self, query: Query) -> bool:
        """Return whether a query can be evaluated in one call with others."""
        source = self.it.sources[query.source]
        here = self._dispatcher.executor is None and source.timeout is None
        return here and source.vectorized and not query.gradient

    def _submit_together(self, queries: Sequence[Query]) -> None:
        if len(queries) == 1:
            self._submit(queries[0])
            return
        function = self.it.sources[queries[0].source].function
        for query in queries:
            self._beside[query.id] = [
                (s, self._start(s, query.x, f"beside-{query.id}")) for s in self.it.in_bulk.sources
            ]
        started = self._dispatcher.start_together(function, np.array([query.x for query in queries]))
        self._running |= {each.future: (query, each) for query, each in zip(queries, started, strict=True)}

    def _submit(self, query: Query) -> None:
        source = self.it.sources[query.source]
        function: Any = source.with_gradient() if query.gradient else source.function
        if hasattr(function, "numbered"):  # its work directory is named after the evaluation
            valid = source.valid if self.it.outputs is None else None
            function = function.numbered(self.it.names[query.source], query.id, valid)
        self._last_event = time.monotonic()
        self._beside[query.id] = [
            (other, self._start(other, query.x, f"beside-{query.id}")) for other in self.it.in_bulk.sources
        ]
        started = self._dispatcher.start(function, query.x, source.timeout)
        self._running[started.future] = query, started

    def _start(self, source: int, x: Array, name: str) -> Started:
        """Start an evaluation of a source that belongs to no query; its work directory gets that name."""
        of = self.it.sources[source]
        function: Any = of.function
        if hasattr(function, "numbered"):
            function = function.numbered(self.it.names[source], name, of.valid if self.it.outputs is None else None)
        return self._dispatcher.start(function, x, of.timeout)

    def _waited_for(self, source: int, started: Started) -> Outcome:
        """Wait for an evaluation that belongs to no query, and return its outcome once it has ended or timed out."""
        while not started.future.done():
            left = started.seconds_left()
            if left <= 0:
                return started.time_out()
            wait([started.future], min(left, SETTINGS.check_executor))
            self._dispatcher.check_connection()
        return self._outcome(started.future)

    def _many(self, source: int, X: Array) -> list[Outcome]:
        """Return the outcomes of a source at each X_i, using all workers in parallel."""
        of, outcomes = self.it.sources[source], list[Outcome]()
        if of.timeout is None and not hasattr(of.function, "numbered"):
            return self._dispatcher.many(of.function, X, of.vectorized, self.workers)
        running: deque[Started] = deque()
        for i, x in enumerate(X):
            if self._interrupts.noted:
                raise KeyboardInterrupt
            running.append(self._start(source, x, f"bulk-{i}"))
            if len(running) == self.workers:
                outcomes.append(self._waited_for(source, running.popleft()))
        return outcomes + [self._waited_for(source, each) for each in running]

    def _collect_all(self) -> None:
        """Wait for all running evaluations, and tell their outcomes."""
        while self._running:
            self._collect()

    def _collect(self) -> None:
        """Wait until an evaluation has ended or exceeded its timeout, and tell its outcome."""
        patience = min(started.seconds_left() for _, started in self._running.values())
        if self._dispatcher.executor is not None:
            patience = min(patience, SETTINGS.check_executor)
        timeout = None if math.isinf(patience) else min(max(patience, 0), threading.TIMEOUT_MAX)
        done, _ = wait(self._running, timeout, return_when=FIRST_COMPLETED)
        for future in sorted(done, key=lambda f: self._running[f][0].id):
            self._last_event = time.monotonic()
            self._tell(future)
        for started in [started for _, started in self._running.values() if started.seconds_left() <= 0]:
            self._tell(started.future, started.time_out())
        if not done and self._running:
            self._dispatcher.check_connection()
            timeouts = [self.it.sources[query.source].timeout for query, _ in self._running.values()]
            self._dispatcher.check_progress(timeouts, time.monotonic() - self._last_event)

    def _salvage(self) -> None:
        """Report to the integrator the outcomes that a broken executor still delivered."""
        for future in [future for future in self._running if not (future.done() or future.running())]:
            future.cancel()
            del self._running[future]
        if not all(future.done() for future in self._running):
            print("the executor does not work; stopping after running evaluations", file=sys.stderr, flush=True)
        while self._running:
            left = len(self._running)
            try:
                self._collect()
            except ExecutorError:  # one call, which stays pending, or all remaining ones
                if len(self._running) == left:
                    break
        self._abandon()

    def _abandon(self) -> None:
        """Report the outcomes of finished evaluations, and end all others as far as possible."""
        for future in [future for future in self._running if future.done()]:
            with suppress(ExecutorError, KeyboardInterrupt):  # that one stays pending
                self._tell(future)
        for _, started in self._running.values():
            started.end()
            started.future.cancel()
        self._running.clear()

    def _tell(self, future: Future[Outcome], ended: Outcome | None = None) -> None:
        """Check the outcome of a call, or the failure with which it was ended, log it, and tell the integrator."""
        with self._interrupts.postponed():  # until an answer is logged and told: it is paid for
            query, _ = self._running.pop(future)
            outcome = ended or self._outcome(future)
            if ended is None and outcome.observation is None and self._interrupts.noted:
                return  # the interrupt may have ended a program of the source: the query stays pending
            self.log.printed(query, outcome.log)
            found, measured = outcome.observation, self.it.sources[query.source].measured
            cost = max(outcome.seconds, SETTINGS.shortest) if measured else query.cost
            cost = cost if found is None or found.cost is None else found.cost
            beside = [] if found is None else [self._waited_for(*each) for each in self._beside.pop(query.id, ())]
            free = values_beside(self.it, beside) if beside else ()
            made = answer(self.it, query, found, outcome.reason, cost, free)
            self.log.answered(made, cost)
            record(self.it, made)
            self.log.known()
            self._progress(self.it)

    def _outcome(self, future: Future[Outcome]) -> Outcome:
        """Return the outcome of a call, or a failure if it killed its process; other errors are the executor's."""
        try:
            return future.result()
        except (Exception, CancelledError) as error:
            text = error_text(error).rstrip(".")
            if isinstance(error, CrashedCall) or type(error).__name__ == "KilledWorker":  # Dask's error
                return Outcome(None, text, 0.0)
            remedy = "; a ResilientProcessPool replaces processes that die" if isinstance(error, BrokenExecutor) else ""
            raise ExecutorError(f"{text}{remedy}") from error
