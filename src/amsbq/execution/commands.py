"""Programs as sources: the inputs go to a command line, the value is read from what the program prints."""

from __future__ import annotations

import json
import os
import re
import select
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any, cast

from ..design.sources import Observation
from ..processes.guardian import GUARDIAN
from ..validation import Array, brief
from .evaluate import as_observation, one_line

#: {{text}} in group 1, without the outer braces; {text} in group 2
BRACES = re.compile(r"\{(\{[^{}]*\})\}|\{([^{}]*)\}")

#: text in braces that is meant as the name of an input, with or without a format: words with spaces and signs between
#: them. Statements and objects of other languages, such as { print $1 } and {"a": 1}, do not look like this.
NAME_LIKE = re.compile(r"[\w+%-]([\w .!+*/%^-]*[\w%])?(:[^\w\s]?[<>=^]?[-+ ]?#?0?\d*[,_]?(\.\d+)?[eEfFgGn%]?)?")

#: similarity to the name of an input from which any other text in braces counts as that name misspelt
MISSPELT = 0.8


@dataclass(frozen=True)
class OutputSettings:
    """How much of what a program prints is kept."""

    #: bytes at the end of each of its outputs: far more than an answer or an error message
    kept: int = 2**20
    #: bytes that are read at once, as many as a pipe holds
    read: int = 2**16
    #: last lines that an error quotes: the message of a traceback and where it comes from
    quoted_lines: int = 5
    #: seconds of one wait for more: the system's call takes no more than 2**31 milliseconds
    longest_wait: float = 1e6


SETTINGS = OutputSettings()


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
        ``{name:.3f}`` by the input in a format of Python; ``{{name}}`` stands for the text ``{name}``. Other braces,
        such as those of ``{ print $1 }``, stay as they are. No shell is involved: quotes, wildcards and semicolons have
        no special meaning.
    names : list of str
        The names of the inputs, in the order of x.
    folder : path
        The working directory of the program, and where a program written as "./program" is found.
    timeout : float, optional
        Seconds after which the program is killed, with the processes that it has started, but for those in a session
        of their own. By default it may take as long as it likes.

    Raises
    ------
    TypeError
        If the arguments are not a list of strings.
    ValueError
        If an argument has a ``{name}`` that is not the name of an input, or a format that Python does not have.

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
            self._filled(argument, dict.fromkeys(self.names, 0.5))  # raises if it is wrong, before anything is run

    def _filled(self, argument: str, inputs: dict[str, float]) -> str:
        """Return an argument with the values of the inputs in place of their names."""
        for name in inputs:
            if set("{}") & set(name) and f"{{{name}}}" in argument:
                raise ValueError(f"the input {name!r} cannot be part of a command: give it a name without braces")
        return BRACES.sub(lambda found: self._replacement(argument, found, inputs), argument)

    def _replacement(self, argument: str, found: re.Match[str], inputs: dict[str, float]) -> str:
        """Return what a pair of braces in an argument stands for."""
        literal, text = found[1], found[2]
        if literal is not None:
            return literal if self._names_something(literal[1:-1]) else found[0]
        if text in inputs:
            return repr(inputs[text])
        name = next((name for name in inputs if text.startswith(f"{name}:")), None)
        if name is not None:
            form = text.removeprefix(f"{name}:")
            try:
                return format(inputs[name], form)
            except ValueError as error:
                raise ValueError(f"{argument!r} has {{{text}}}, where {form!r} is no format: {error}") from None
        if self._names_something(text):
            known = ", ".join(f"{{{known}}}" for known in self.names)
            raise ValueError(
                f"{argument!r} has {{{text}}}, which is no input: there are {known}; for the text itself write "
                f"{{{{{text}}}}}"
            )
        return found[0]

    def _names_something(self, text: str) -> bool:
        """Return whether text in braces is, or seems to be meant as, the name of an input."""
        known = text.strip() in self.names or any(text.startswith(f"{name}:") for name in self.names)
        return known or bool(NAME_LIKE.fullmatch(text) or get_close_matches(text, self.names, 1, MISSPELT))

    def source_definition(self) -> dict[str, Any]:
        """Return arguments, names of the inputs and folder, by which a journal recognises the source."""
        return {"command": self.arguments, "inputs": self.names, "folder": self.folder}

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
        with (
            subprocess.Popen(
                [self._filled(argument, inputs) for argument in self.arguments],
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,  # a Ctrl-C on the terminal is for the run, which waits for what it has paid for
            ) as process,
            GUARDIAN.watching(-process.pid),
        ):
            try:
                out, err = _communicate(process, json.dumps(inputs).encode(), self.timeout)
            except BaseException as error:
                with suppress(ProcessLookupError):
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
        except (TypeError, ValueError, RecursionError) as error:
            why = f" ({error})" if str(error) else ""
            message = f"the last line of its output is no number: {one_line(lines[-1])}{why}{_quoted_end(err)}"
            raise RuntimeError(message) from None


class _Tail:
    """The end of an output: the rest is forgotten while it is read."""

    def __init__(self) -> None:
        self._kept, self._is_cut = bytearray(), False

    def add(self, more: bytes) -> None:
        self._kept += more
        if len(self._kept) > 2 * SETTINGS.kept:  # not each time: cutting moves all that is kept
            self._cut()

    def text(self) -> str:
        """Return the end of the output; if there was more, its first line is incomplete and begins with an ellipsis."""
        if len(self._kept) > SETTINGS.kept:
            self._cut()
        return ("... " if self._is_cut else "") + self._kept.decode(errors="replace")

    def _cut(self) -> None:
        del self._kept[: -SETTINGS.kept]
        self._is_cut = True


def _communicate(process: subprocess.Popen[bytes], sent: bytes, timeout: float | None) -> tuple[str, str]:
    """Send bytes to a program, wait until it has ended, and return the ends of its output and of its errors.

    Unlike `subprocess.Popen.communicate` it does not keep everything that the program prints, and takes any timeout.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    stdin, stdout, stderr = (cast(IO[bytes], pipe) for pipe in (process.stdin, process.stdout, process.stderr))
    tails = {stdout: _Tail(), stderr: _Tail()}
    with selectors.DefaultSelector() as selector:
        selector.register(stdin, selectors.EVENT_WRITE)
        for pipe in tails:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left < 0:
                raise subprocess.TimeoutExpired(process.args, left)
            for key, _ in selector.select(None if left is None else min(left, SETTINGS.longest_wait)):
                pipe = cast(IO[bytes], key.fileobj)
                if pipe is stdin:
                    try:
                        sent = sent[stdin.write(sent[: select.PIPE_BUF]) :]
                    except BrokenPipeError:  # a program need not read it
                        sent = b""
                    ended = not sent
                else:
                    read = pipe.read(SETTINGS.read)
                    tails[pipe].add(read)
                    ended = not read
                if ended:
                    selector.unregister(pipe)
                    pipe.close()
    process.wait(None if deadline is None else max(deadline - time.monotonic(), 0.0))
    return tails[stdout].text(), tails[stderr].text()


def _parse_answer(line: str) -> Observation:
    """Return the observation that a line of output stands for; raise ValueError or TypeError if there is none."""
    try:
        answer = json.loads(line)
    except json.JSONDecodeError:
        try:
            answer = float(line)  # which reads more than JSON allows, such as "1." or "+1"
        except ValueError:
            raise ValueError from None
    if not isinstance(answer, dict):
        return as_observation(answer)
    unknown = sorted(set(answer) - {"value", "variance", "cost"})
    if "value" not in answer or unknown:
        raise ValueError(f"it has {', '.join(unknown)}" if unknown else "it has no value")
    return as_observation(Observation(**answer))


def _how_it_ended(code: int) -> str:
    """Return in words what the exit code of a program means."""
    if code < 0:
        return f"it was ended by signal {next((s.name for s in signal.Signals if s == -code), -code)}"
    return f"it ended with exit code {code}"


def _quoted_end(output: str) -> str:
    """Return the last lines of an output as the end of an error message; nothing if there are none."""
    lines = output.strip().splitlines()[-SETTINGS.quoted_lines :]
    return f"; it said: {' | '.join(lines)}" if lines else ""
