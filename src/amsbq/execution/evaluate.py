"""One evaluation of a source: call its function, check the returned value, and measure the time of the calls.

`evaluate` runs wherever the executor of a run sends it: in a thread, another process or another machine. It never
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

import numpy as np

from ..common.messages import is_ours
from ..common.validation import Array, read_only
from ..design.observations import Observation
from ..design.sources import WrongShape
from ..simulators.answers import EvaluationLog, SimulatorError, as_observation, error_text, evaluation_log

#: Seconds to wait before each new call of a source that raised `ConnectionError`. A busy server is often free again
#: immediately, one that restarts needs a few seconds; a server that is gone should not delay a run for longer.
RETRY_PAUSES = (0.2, 1.0, 5.0)

#: errors of code that expects something other than an array
MISTAKEN = (AttributeError, LookupError, TypeError, ValueError)

#: placeholder for the value of a function that has not returned yet
UNCALLED: Any = object()


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
        The output of the simulator.
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
            observation, returned, reason, unreachable = None, UNCALLED, "", False
            start = time.perf_counter()
            try:
                returned = function(read_only(x.copy()))  # x must not change between two calls
                observation = as_observation(returned)
            except ConnectionError as error:
                reason, unreachable = error_text(error), True
            except SimulatorError as error:
                reason = str(error)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # also SystemExit, GeneratorExit and others that sources raise by mistake
                reason = f"{error_text(error)}{_remedy(error, x, returned)}"
                _log_traceback(log, error)
            seconds += time.perf_counter() - start
            if pause is None or not unreachable:
                break
            time.sleep(pause)
    return Outcome(observation, reason, seconds, log)


def evaluate_together(function: Any, X: Array) -> list[Outcome]:
    """Call the function of a vectorized source once at all X_i, shape (n, D), and return the outcomes.

    If that call fails, the locations are evaluated one by one, so that each failure has its own reason. If the returned
    array has the wrong shape, all evaluations fail for this reason.
    """
    try:
        return evaluate_all(function, X)
    except KeyboardInterrupt:
        raise
    except WrongShape as error:
        return [Outcome(None, str(error), 0.0)] * len(X)
    except BaseException:
        return [evaluate(function, x) for x in X]


def evaluate_each(function: Any, X: Array, vectorized: bool) -> list[Outcome]:
    """Return the outcomes of a function at all X_i, shape (n, D), in one call if it is vectorized."""
    return evaluate_together(function, X) if vectorized else [evaluate(function, x) for x in X]


def evaluate_all(function: Any, X: Array) -> list[Outcome]:
    """Call the function of a vectorized source once at all X_i, shape (n, D); raise what the call raises."""
    start = time.perf_counter()
    values = function.many(X)
    seconds = (time.perf_counter() - start) / len(X)
    made = (evaluate(partial(_returned, value), x) for value, x in zip(values, X, strict=True))
    return [replace(outcome, seconds=seconds) for outcome in made]


def _returned(value: Any, x: Array) -> Any:
    return value


def evaluate_into(future: Future[Outcome], function: Callable[[Array], Any], x: Array) -> None:
    """Evaluate a source at x and set the outcome, or an exception raised by `evaluate`, as the result of a future."""
    try:
        future.set_result(evaluate(function, x))
    except BaseException as error:
        future.set_exception(error)


def _remedy(error: BaseException, x: Array, returned: Any) -> str:
    """Return where a source failed at x (D,), and a hint if it misuses x, as text for an error message.

    If the source cannot be called at all, return how sources are called. Errors about the returned value are handled,
    too.
    """
    text, called = error_text(error), list(traceback.walk_tb(error.__traceback__))
    theirs = [(frame, line) for frame, line in called if not is_ours(frame)]
    if not theirs:
        by_us, how = called[-1][0].f_code, "one array x, with a number for each input, or with all inputs by name"
        if returned is UNCALLED and (by_us.co_filename == __file__ or isinstance(error, TypeError)):
            return f"; sources are called with {how}"
        whole = isinstance(returned, np.ndarray) and returned.shape == x.shape != (1,)
        return f". If it should be one number: {_held_by('x', x)}" if whole else ""
    last, line = theirs[-1]
    place = f" ({last.f_code.co_name}, line {line})"
    for name, given in theirs[0][0].f_locals.items():
        if isinstance(given, np.ndarray) and given.ndim == 1:  # the first one is its argument
            about = "array" in text or "to unpack" in text or f"with size {len(given)}" in text
            about &= isinstance(error, MISTAKEN) and "read-only" not in text
            return f"{place}; {_held_by(name, given)}" if about else place
    return place


def _held_by(name: str, x: Array) -> str:
    """Return a hint on the number of inputs in an array x (D,) of that name, and on how to use them one by one."""
    if len(x) == 1:
        return f"there is one input, {name}[0]"
    return (
        f"{name} is an array with a number for each of the {len(x)} inputs: use {name}[0] to {name}[{len(x) - 1}], "
        "or name the parameters of the function after the inputs"
    )


def _log_traceback(log: EvaluationLog, error: BaseException) -> None:
    """Add the traceback of an error to a log, or the text of the error if the traceback cannot be formatted."""
    try:
        log.add(stderr="".join(traceback.format_exception(error)))
    except KeyboardInterrupt:
        raise
    except BaseException:
        log.add(stderr=error_text(error))
