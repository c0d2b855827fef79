"""One evaluation of a source: call its function, check what it returns, measure how long the calls take.

`evaluate` runs wherever the executor of a run sends it, be it a thread, another process or another machine. It never
raises an error of the source: an evaluation that fails is an `Outcome` with a reason.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from ..design.sources import Observation
from ..validation import Array, non_negative_number, number, positive_number, read_only

#: Seconds to wait before each new call of a source that raised `ConnectionError`. A busy server is often free again at
#: once, one that restarts needs a few seconds; a server that is gone should not hold up a run for longer.
RETRY_PAUSES = (0.2, 1.0, 5.0)

#: Characters of other programs' output that a message quotes: enough for an error and its cause, short enough to read.
QUOTED_CHARACTERS = 300


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
    """

    observation: Observation | None
    reason: str
    seconds: float


def evaluate(function: Callable[[Array], Any], x: Array) -> Outcome:
    """Call a source's function at x, of shape (D,), and return the outcome.

    A call that raises `ConnectionError` is repeated after each of the `RETRY_PAUSES`. Every other exception, and a
    return value that is not a valid observation, makes the evaluation fail. Only `KeyboardInterrupt` is not caught.

    >>> import numpy as np
    >>> evaluate(lambda x: x[0] ** 2, np.array([3.0])).observation
    Observation(value=9.0, variance=0.0, cost=None)
    >>> evaluate(lambda x: float("nan"), np.array([3.0])).observation is None
    True
    """
    seconds = 0.0
    for pause in (*RETRY_PAUSES, None):
        observation, reason, unreachable = None, "", False
        start = time.perf_counter()
        try:
            observation = as_observation(function(read_only(x.copy())))  # not to be changed between two calls
        except ConnectionError as error:
            reason, unreachable = error_text(error), True
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also SystemExit, GeneratorExit and others that sources raise by mistake
            where = traceback.extract_tb(error.__traceback__)[-1]
            reason = f"{error_text(error)} ({where.name}, line {where.lineno})"
        seconds += time.perf_counter() - start
        if pause is None or not unreachable:
            break
        time.sleep(pause)
    return Outcome(observation, reason, seconds)


def evaluate_into(future: Future[Outcome], function: Callable[[Array], Any], x: Array) -> None:
    """Evaluate a source at x and put the outcome, or the exception that `evaluate` lets pass, into a future."""
    try:
        future.set_result(evaluate(function, x))
    except BaseException as error:
        future.set_exception(error)


def as_observation(returned: Any) -> Observation:
    """Return what a source's function returned as an `Observation` of Python floats, or raise if it is not valid.

    Parameters
    ----------
    returned : float or Observation
        One real number, as `amsbq.validation.number` judges it, or an `Observation` of such numbers.

    Raises
    ------
    TypeError
        If anything is not a real number.
    ValueError
        If the value is not one number, if anything is infinite, NaN or masked, if the variance is negative, or if the
        cost is not positive.

    >>> import numpy as np
    >>> as_observation(np.array([2]))
    Observation(value=2.0, variance=0.0, cost=None)
    """
    observation = returned if isinstance(returned, Observation) else Observation(returned)
    return Observation(
        number(observation.value, "the value"),
        non_negative_number(observation.variance, "the variance"),
        None if observation.cost is None else positive_number(observation.cost, "the cost"),
    )


def error_text(error: BaseException) -> str:
    """Return an exception in words, also if it cannot be converted to text.

    >>> error_text(ValueError("no mesh"))
    'ValueError: no mesh'
    """
    try:
        text = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as another:
        text = f"its message cannot be shown, because that raises {type(another).__name__}"
    return f"{type(error).__name__}: {text}"


def one_line(text: object) -> str:
    r"""Return a text on one line, cut to `QUOTED_CHARACTERS` characters, to be quoted in a message.

    >>> one_line("no\n  licence\n")
    'no licence'
    """
    line = " ".join(str(text).split())
    return line if len(line) <= QUOTED_CHARACTERS else f"{line[:QUOTED_CHARACTERS]} ..."
