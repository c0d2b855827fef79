"""Programs as sources: the inputs go to a command line, the value is read from what the program prints."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ..design.sources import Observation
from ..validation import Array, brief
from .evaluate import one_line

PLACEHOLDER = re.compile(
    r"\{(\{\w+\})\}|\{(\w+)\}"
)  #: {{name}} in group 1, without the outer braces; {name} in group 2

#: Last lines of a program's output that an error quotes: the message of a traceback and where it comes from.
QUOTED_LINES = 5


class Command:
    """A program that is run for each evaluation, in any language.

    The inputs are put into its arguments, where these name them, and are also on its standard input, as a JSON object
    such as ``{"rate": 1.5, "dose": 0.25}``. The last line that the program prints is the value: a number, or a JSON
    object with "value" and, optionally, "variance" (of the noise on the value) and "cost". Everything that it prints
    before is ignored. Use it as the function of a `Source`.

    Parameters
    ----------
    arguments : list of str
        The program and its arguments. ``{name}`` is replaced by the input of that name, with all of its digits;
        ``{{name}}`` stands for the text ``{name}``. Other braces stay as they are. No shell is involved: quotes,
        wildcards and semicolons have no special meaning.
    names : list of str
        The names of the inputs, in the order of x.
    folder : path
        The working directory of the program, and where a program written as "./program" is found.
    timeout : float, optional
        Seconds after which the program is killed, with every process that it has started. By default it may take as
        long as it likes.

    Raises
    ------
    TypeError
        If the arguments are not a list of strings.
    ValueError
        If an argument has a ``{name}`` that is not the name of an input.

    Examples
    --------
    >>> import numpy as np
    >>> command = Command(["awk", "BEGIN { print 2 * {rate} + {dose} }"], ["rate", "dose"])
    >>> command(np.array([1.5, 0.25]))
    Observation(value=3.25, variance=0.0, cost=None)
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
        """Run the program with the inputs x, of shape (D,), and return what it found.

        Raises
        ------
        RuntimeError
            If the program takes longer than the timeout, ends with an error, or prints no value. The message quotes
            the end of what it printed.
        OSError
            If the program cannot be started.
        """
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
            start_new_session=True,  # a Ctrl-C on the terminal is for the run, which waits for what it has paid for
        ) as process:
            try:
                out, err = process.communicate(json.dumps(inputs), timeout=self.timeout)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise RuntimeError(f"it took more than {self.timeout:g} s, and was killed") from None
                raise
        if process.returncode != 0:
            raise RuntimeError(f"{_how_it_ended(process.returncode)}{_quoted_end(err or out)}")
        lines = out.strip().splitlines()
        if not lines:
            raise RuntimeError(f"it printed nothing{_quoted_end(err)}")
        try:
            return _parse_answer(lines[-1])
        except (TypeError, ValueError):
            message = f"the last line of its output is no number: {one_line(lines[-1])}{_quoted_end(err)}"
            raise RuntimeError(message) from None


def _parse_answer(line: str) -> Observation:
    """Return the observation that a line of output stands for; raise ValueError or TypeError if there is none."""
    try:
        answer = json.loads(line)
    except json.JSONDecodeError:
        answer = line.strip()  # float() reads more than JSON allows, such as "1." or "+1"
    if isinstance(answer, bool):
        raise ValueError
    if not isinstance(answer, dict):
        return Observation(float(answer))
    if "value" not in answer or set(answer) - {"value", "variance", "cost"}:
        raise ValueError
    cost = answer.get("cost")
    return Observation(
        float(answer["value"]), float(answer.get("variance", 0.0)), None if cost is None else float(cost)
    )


def _how_it_ended(code: int) -> str:
    """Return in words what the exit code of a program means."""
    if code < 0:
        return f"it was ended by signal {signal.Signals(-code).name}"
    return f"it ended with exit code {code}"


def _quoted_end(output: str) -> str:
    """Return the last lines of an output as the end of an error message; nothing if there are none."""
    lines = output.strip().splitlines()[-QUOTED_LINES:]
    return f"; it said: {' | '.join(lines)}" if lines else ""
