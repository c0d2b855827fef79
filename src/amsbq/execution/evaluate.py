"""evaluate."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..design.sources import Observation
from ..validation import Array

PAUSES = (0.2, 1.0, 5.0)  #: seconds before a source that cannot be reached is tried again


@dataclass(frozen=True)
class Outcome:
    """What came of an evaluation: an observation, or the reason why there is none; and the seconds that it took."""

    observation: Observation | None
    reason: str
    seconds: float


def evaluate(function: Callable[[Array], Any], x: Array) -> Outcome:
    """Call a source; whatever goes wrong is a reason, not an exception."""
    start = time.perf_counter()
    observation, reason = None, ""
    for pause in (*PAUSES, None):
        try:
            observation = _observation(function(x))
        except ConnectionError as error:
            reason = f"{type(error).__name__}: {error}"
            if pause is not None:  # a server that is busy or restarts may be back soon
                time.sleep(pause)
                continue
        except (Exception, SystemExit) as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            reason = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
        break
    return Outcome(observation, reason, time.perf_counter() - start)


def _fulfil(future: Future[Outcome], function: Callable[[Array], Any], x: Array) -> None:
    try:
        future.set_result(evaluate(function, x))
    except BaseException as error:
        future.set_exception(error)


def _observation(returned: Any) -> Observation:
    given = returned if isinstance(returned, Observation) else Observation(returned)
    value = np.asarray(given.value)
    if value.dtype.kind not in "fiu":
        raise TypeError(f"the value must be a number, got {given.value!r}")
    if value.size != 1:
        raise ValueError(f"the value must be one number, got shape {value.shape}")
    numbers = [float(value.item()), float(given.variance), 1.0 if given.cost is None else float(given.cost)]
    if not np.isfinite(numbers).all() or numbers[1] < 0 or numbers[2] <= 0:
        raise ValueError(f"value, variance and cost must be finite, and the last two not negative, got {given}")
    return Observation(numbers[0], numbers[1], given.cost if given.cost is None else numbers[2])
