"""Answers of simulators: an observation or an error message, and what was printed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TextIO, cast

import numpy as np

from ..common.validation import brief, non_negative_number, number, positive_number
from ..design.observations import CheckedObservation, Observation


@dataclass(frozen=True)
class AnswerSettings:
    """How much of the output of simulators is quoted and logged, in characters."""

    #: in a message: enough for an error and its cause, short enough to read
    quoted: int = 300
    #: of each output in the log of an evaluation, from its end: fifty lines, while journals stay small
    logged: int = 4000


SETTINGS = AnswerSettings()


class SimulatorError(RuntimeError):
    """A call of a simulator that returned no value; the message says why and quotes the end of its output."""


@dataclass
class EvaluationLog:
    """The output of one evaluation, and its work directory.

    Attributes
    ----------
    stdout, stderr : str
        The ends of its outputs; errors of Python functions are in ``stderr``.
    folder : str
        The work directory, if there was one and it was kept.
    """

    stdout: str = ""
    stderr: str = ""
    folder: str = ""

    def add(self, stdout: str = "", stderr: str = "", folder: str = "") -> None:
        """Append to the outputs, keeping only their ends, and set the folder unless it is empty."""
        self.stdout, self.stderr = (
            (self.stdout + stdout)[-SETTINGS.logged :],
            (self.stderr + stderr)[-SETTINGS.logged :],
        )
        self.folder = folder or self.folder


_log: ContextVar[EvaluationLog | None] = ContextVar("evaluation_log", default=None)


@contextmanager
def evaluation_log() -> Iterator[EvaluationLog]:
    """Collect what an evaluation in this context and thread logs; in the main thread also what it prints.

    The output of other threads cannot be separated: all threads of a process print to the same streams.
    """
    log = EvaluationLog()
    token = _log.set(log)
    try:
        with ExitStack() as redirected:
            if threading.current_thread() is threading.main_thread():
                for name, redirect in (("stdout", redirect_stdout), ("stderr", redirect_stderr)):
                    if (stream := getattr(sys, name)) is not None:  # None in a process without a console
                        redirected.enter_context(redirect(cast(TextIO, _LoggedStream(stream, name, log))))
            yield log
    finally:
        _log.reset(token)


class _LoggedStream:
    """A wrapper of a stream that also adds what is written to a log."""

    def __init__(self, stream: TextIO, name: str, log: EvaluationLog) -> None:
        self._stream, self._name, self._log = stream, name, log

    def write(self, text: str) -> int:
        written = self._stream.write(text)
        self._log.add(**{self._name: text})
        return written

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def log_output(stdout: str = "", stderr: str = "", folder: str = "") -> None:
    """Add outputs of a simulator, and its work directory, to the log of the current evaluation, if there is one."""
    log = _log.get()
    if log is not None:
        log.add(stdout, stderr, folder)


def as_observation(returned: Any) -> Observation:
    """Convert the return value of a source's function to an `Observation` of Python floats, or raise if it is invalid.

    Parameters
    ----------
    returned : float or Observation
        One real number, as defined by `amsbq.common.validation.number`, or an `Observation` of such numbers.

    Raises
    ------
    TypeError
        If anything is not a real number.
    ValueError
        If the value is not one number, if anything is infinite, NaN or masked, if the variance is negative, or if the
        cost is not positive.

    >>> import numpy as np
    >>> as_observation(np.array([2]))
    Observation(value=2.0, variance=0.0, cost=None, gradient=None)
    >>> as_observation([1.5, 2.5])
    Traceback (most recent call last):
    ValueError: the value must be one number, got shape (2,); the simulator returned [1.5, 2.5]. Name several
    outputs, as in outputs=['peak', 'time']
    """
    if isinstance(returned, CheckedObservation):  # several outputs
        return returned
    observation = returned if isinstance(returned, Observation) else Observation(returned)
    try:
        return Observation(
            number(observation.value, "the value"),
            non_negative_number(observation.variance, "the variance"),
            None if observation.cost is None else positive_number(observation.cost, "the cost"),
            observation.gradient,  # checked by `Run.answer`: a bad gradient does not invalidate the value
        )
    except (TypeError, ValueError) as error:
        hint = ". Name several outputs, as in outputs=['peak', 'time']" if _is_several(observation.value) else ""
        raise type(error)(f"{error}; the simulator returned {brief(returned)}{hint}") from None


def _is_several(value: Any) -> bool:
    """Return whether a value that is not one number looks like several outputs."""
    size = value.size if isinstance(value, np.ndarray) else len(value) if isinstance(value, list | tuple) else 1
    return isinstance(value, Mapping) or size > 1


def error_text(error: BaseException) -> str:
    """Return the type and message of an exception, even if it cannot be converted to text.

    >>> error_text(ValueError("no mesh"))
    'ValueError: no mesh'
    """
    try:
        text = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as another:
        text = f"its message cannot be shown, because that raises {type(another).__name__}"
    if "read-only" in text and isinstance(error, ValueError):
        text += "; x must not be changed: work on a copy, x = x.copy()"
    return f"{type(error).__name__}: {text}"


def one_line(text: object) -> str:
    r"""Return ``text`` on one line, cut to `AnswerSettings.quoted` characters, for a message.

    >>> one_line("no\n  licence\n")
    'no licence'
    """
    line = " ".join(str(text).split())
    return line if len(line) <= SETTINGS.quoted else f"{line[: SETTINGS.quoted]} ..."
