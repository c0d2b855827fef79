"""Simulators that are not functions of this process: named ones, commands, and UM-Bridge servers.

Each is called with x of shape (D,) like any function of a source, can be sent to another process, and turns whatever
goes wrong into an exception that says so.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..design.sources import Observation
from ..validation import Array, brief

PLACEHOLDER = re.compile(r"\{(\{\w+\})\}|\{(\w+)\}")


TAIL = 5  #: lines of what a command said that are kept when it fails


class Command:
    """A program: the inputs in its arguments and on its standard input, the value on the last line that it prints.

    Parameters
    ----------
    arguments : list of str
        The program and its arguments; ``{name}`` stands for the input of that name, ``{{name}}`` for itself. No shell
        is involved. The inputs are also there as a JSON object on standard input.
    names : list of str
        Of the inputs.
    folder : path
        Where it is run, and where a program given as ``./program`` is found.
    timeout : float, optional
        Seconds after which it is killed, with everything that it started.

    The last line of its output is a number, or a JSON object with "value" and, if it likes, "variance" and "cost".

    >>> import numpy as np
    >>> Command(["awk", "BEGIN { print 2 * {rate} }"], ["rate"])(np.array([1.5]))
    Observation(value=3.0, variance=0.0, cost=None)
    """

    def __init__(
        self,
        arguments: Sequence[str],
        names: Sequence[str],
        folder: str | os.PathLike[str] = ".",
        timeout: float | None = None,
    ) -> None:
        if isinstance(arguments, str) or not arguments or not all(isinstance(a, str) for a in arguments):
            raise TypeError(f"a command is a list of strings, the program first, got {brief(arguments)}")
        self.arguments, self.names, self.timeout = list(arguments), list(names), timeout
        self.folder = str(Path(folder).resolve())
        self.__name__ = Path(self.arguments[0]).name
        for argument in self.arguments:
            for _, name in PLACEHOLDER.findall(argument):
                if name and name not in self.names:
                    known = ", ".join(f"{{{known}}}" for known in self.names)
                    raise ValueError(
                        f"{argument!r} has {{{name}}}, which is no input: there are {known}; for the text itself write "
                        f"{{{{{name}}}}}"
                    )

    def __call__(self, x: Array) -> Observation:
        inputs = dict(zip(self.names, (float(value) for value in x), strict=True))
        filled = [
            PLACEHOLDER.sub(lambda found: repr(inputs[found[2]]) if found[2] else found[1], argument)
            for argument in self.arguments
        ]
        with subprocess.Popen(
            filled,
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # an interrupt on the terminal is for the run, not for what it waits for
        ) as process:
            try:
                out, err = process.communicate(json.dumps(inputs), timeout=self.timeout)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise RuntimeError(f"it took more than {self.timeout:g} s, and was killed") from None
                raise
        if process.returncode != 0:
            raise RuntimeError(f"{_ending(process.returncode)}{_tail(err or out)}")
        lines = out.strip().splitlines()
        if not lines:
            raise RuntimeError(f"it printed nothing{_tail(err)}")
        return _answer(lines[-1], _tail(err))


def _answer(line: str, said: str) -> Observation:
    """What the last line of a command's output means."""
    try:
        answer = json.loads(line)
    except json.JSONDecodeError:
        answer = line.strip()
    try:
        if isinstance(answer, dict):
            unknown = set(answer) - {"value", "variance", "cost"}
            if "value" not in answer or unknown:
                raise ValueError
            cost = answer.get("cost")
            return Observation(
                float(answer["value"]), float(answer.get("variance", 0.0)), None if cost is None else float(cost)
            )
        if isinstance(answer, bool):
            raise ValueError
        return Observation(float(answer))
    except (TypeError, ValueError):
        raise RuntimeError(f"the last line of its output is no number: {_short(line)}{said}") from None


def _ending(code: int) -> str:
    if code < 0:
        return f"it was ended by signal {signal.Signals(-code).name}"
    return f"it ended with exit code {code}"


def _tail(text: str) -> str:
    lines = text.strip().splitlines()[-TAIL:]
    return f"; it said: {' | '.join(lines)}" if lines else ""


def _short(text: Any) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= 300 else f"{line[:300]} ..."
