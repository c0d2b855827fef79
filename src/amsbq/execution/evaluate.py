"""One evaluation of a source: call its function, check what it returns, measure how long the calls take.

`evaluate` runs wherever the executor of a run sends it, be it a thread, another process or another machine. It never
raises an error of the source: an evaluation that fails is an `Outcome` with a reason.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ..outputs.observations import Observation, checked_observation
from ..simulators.answers import EvaluationLog, SimulatorError, as_observation, error_text, evaluation_log
from ..validation import Array, read_only

#: Seconds to wait before each new call of a source that raised `ConnectionError`. A busy server is often free again at
#: once, one that restarts needs a few seconds; a server that is gone should not hold up a run for longer.
RETRY_PAUSES = (0.2, 1.0, 5.0)


@dataclass(frozen=True)
class Outcome:
    """The outcome of one evaluation: an observation, or the reason why there is none.

    Parameters
    ----------
    observation : Observation or None
        None if the evaluation failed.
    reason : str
        Why the evaluation failed; empty if it did not.
    seconds : float
        Wall-clock time of the calls of the source's function, without the pauses between them.
    log : EvaluationLog
        What the simulator printed.
    """

    observation: Observation | None
    reason: str
    seconds: float
    log: EvaluationLog = field(default_factory=EvaluationLog)


def evaluate(function: Callable[[Array], Any], x: Array) -> Outcome:
    """Call a source's function at x, of shape (D,), and return the outcome.

    A call that raises `ConnectionError` is repeated after each of the `RETRY_PAUSES`. Every other exception, and a
    return value that is not a valid observation, makes the evaluation fail. Only `KeyboardInterrupt` is not caught.

    >>> import numpy as np
    >>> evaluate(lambda x: x[0] ** 2, np.array([3.0])).observation
    Observation(value=9.0, variance=0.0, cost=None, gradient=None)
    >>> evaluate(lambda x: float("nan"), np.array([3.0])).reason
    'ValueError: the value must be finite, got nan; the simulator returned nan'
    """
    seconds = 0.0
    with evaluation_log() as log:
        for pause in (*RETRY_PAUSES, None):
            observation, reason, unreachable = None, "", False
            start = time.perf_counter()
            try:
                observation = as_observation(function(read_only(x.copy())))  # not to be changed between two calls
            except ConnectionError as error:
                reason, unreachable = error_text(error), True
            except SimulatorError as error:
                reason = str(error)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # also SystemExit, GeneratorExit and others that sources raise by mistake
                reason = f"{error_text(error)}{_place(error)}"
                _log_traceback(log, error)
            seconds += time.perf_counter() - start
            if pause is None or not unreachable:
                break
            time.sleep(pause)
    return Outcome(observation, reason, seconds, log)


def evaluate_together(function: Any, X: Array) -> list[Outcome]:
    """Call the function of a vectorized source once at all X_i, shape (n, D), and return the outcomes.

    If that call fails, they are evaluated one by one, so that each failure has its own reason.
    """
    start = time.perf_counter()
    try:
        values = function.many(X)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return [evaluate(function, x) for x in X]
    seconds = (time.perf_counter() - start) / len(X)
    made = (evaluate(partial(_returned, value), x) for value, x in zip(values.tolist(), X, strict=True))
    return [replace(outcome, seconds=seconds) for outcome in made]


def _returned(value: float, x: Array) -> float:
    return value


def evaluate_into(future: Future[Outcome], function: Callable[[Array], Any], x: Array) -> None:
    """Evaluate a source at x and put the outcome, or the exception that `evaluate` lets pass, into a future."""
    try:
        future.set_result(evaluate(function, x))
    except BaseException as error:
        future.set_exception(error)


def _place(error: BaseException) -> str:
    """Return the function and the line of a source that raised an error; nothing if it is about what was returned.

    If it cannot be called at all, return how sources are called.
    """
    where = traceback.extract_tb(error.__traceback__)[-1]
    if where.filename == __file__:
        return "; sources are called with one array x, which has a number for each input"
    ours = (as_observation.__name__, checked_observation.__name__)
    return "" if where.name in ours else f" ({where.name}, line {where.lineno})"


def _log_traceback(log: EvaluationLog, error: BaseException) -> None:
    """Add the traceback of an error to a log, unless its message cannot be shown."""
    try:
        log.add(stderr="".join(traceback.format_exception(error)))
    except KeyboardInterrupt:
        raise
    except BaseException:
        log.add(stderr=error_text(error))
