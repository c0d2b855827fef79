"""Simulators that are not functions of this process: named ones, commands, and UM-Bridge servers.

Each is called with x of shape (D,) like any function of a source, can be sent to another process, and turns whatever
goes wrong into an exception that says so.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .checks import Array, shown
from .sources import Observation

PLACEHOLDER = re.compile(r"\{(\{\w+\})\}|\{(\w+)\}")
TAIL = 5  #: lines of what a command said that are kept when it fails


class PythonFunction:
    """A function by its name, "module:function", found in a folder or wherever Python finds modules.

    It is imported when it is first called, in the process that calls it.
    """

    def __init__(self, reference: str, folder: str | os.PathLike[str] = ".") -> None:
        module, colon, function = reference.partition(":")
        if not colon or not module or not function:
            raise ValueError(f"a function is named as 'module:function', got {reference!r}")
        self.module, self.function, self.folder = module, function, str(Path(folder).resolve())
        self.__name__ = function

    def resolved(self) -> Callable[[Array], Any]:
        """The function itself."""
        if self.folder not in sys.path:
            sys.path.insert(0, self.folder)
        found: Any = importlib.import_module(self.module)
        for name in self.function.split("."):
            found = getattr(found, name)
        if not callable(found):
            raise TypeError(f"{self.module}:{self.function} is {shown(found)}, which cannot be called")
        return found  # type: ignore[no-any-return]

    def __call__(self, x: Array) -> Any:
        return self.resolved()(x)


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
            raise TypeError(f"a command is a list of strings, the program first, got {shown(arguments)}")
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


class UMBridge:
    """A model on a UM-Bridge server (https://um-bridge-benchmarks.readthedocs.io), one request for each evaluation.

    Parameters
    ----------
    url, model : str
    config : dict
        Such as {"level": 1}: how sources of one model differ.
    output : int
        Which of the model's output numbers, counted through all of its output vectors.
    timeout : float, optional
        Seconds to wait for an answer.
    """

    def __init__(
        self,
        url: str,
        model: str = "forward",
        config: dict[str, Any] | None = None,
        output: int = 0,
        timeout: float | None = None,
    ) -> None:
        if not str(url).startswith(("http://", "https://")):
            raise ValueError(f"url must start with http:// or https://, got {url!r}")
        self.url, self.model, self.config = str(url).rstrip("/"), model, dict(config or {})
        self.output, self.timeout = output, timeout
        self.__name__ = model
        self._sizes: list[int] | None = None

    def __call__(self, x: Array) -> float:
        values = [float(value) for value in x]
        if self._sizes is None:
            self._sizes = self._ask("InputSizes", {})["inputSizes"]
        if sum(self._sizes) != len(values):
            raise ValueError(f"{self.model} takes {sum(self._sizes)} inputs, and was given {len(values)}")
        rest, vectors = list(values), []
        for size in self._sizes:
            vectors.append(rest[:size])
            rest = rest[size:]
        answer = self._ask("Evaluate", {"input": vectors})
        try:
            outputs = [value for vector in answer["output"] for value in vector]
            value = float(outputs[self.output])
        except (KeyError, TypeError, IndexError, ValueError):
            raise RuntimeError(f"the server answered {_short(answer)}, which has no output {self.output}") from None
        if not math.isfinite(value):
            raise RuntimeError(f"the server answered {value}")
        return value

    def _ask(self, what: str, content: dict[str, Any]) -> dict[str, Any]:
        body = json.dumps({"name": self.model, "config": self.config, **content}).encode()
        request = urllib.request.Request(f"{self.url}/{what}", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as response:
                text = response.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            raise RuntimeError(f"the server answered with status {error.code}: {_short(text)}") from None
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise RuntimeError(f"no answer from {self.url} within {self.timeout:g} s") from None
            raise ConnectionError(f"{self.url} cannot be reached: {error.reason}") from None
        except TimeoutError:
            raise RuntimeError(f"no answer from {self.url} within {self.timeout:g} s") from None
        try:
            answer = json.loads(text)
        except json.JSONDecodeError:
            raise RuntimeError(f"the server's answer is not JSON: {_short(text)}") from None
        if not isinstance(answer, dict) or "error" in answer:
            raise RuntimeError(f"the server answered {_short(text)}")
        return answer


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
