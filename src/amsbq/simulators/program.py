"""One run of a program: its input, its output and its exit; no process outlives the evaluation."""

from __future__ import annotations

import os
import select
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from ..design.failures import TIMED_OUT
from ..processes.guardian import GUARDIAN


@dataclass(frozen=True)
class ProgramSettings:
    """How much of the output of a program is kept."""

    #: bytes at the end of each of its outputs: far more than an answer or an error message
    kept: int = 2**20
    #: bytes that are read at once, as many as a pipe holds
    read: int = 2**16
    #: seconds between checks of whether it has ended, while a process that it has started keeps an output open
    looks: float = 0.1


SETTINGS = ProgramSettings()


@dataclass(frozen=True)
class Ended:
    """The end of a run of a program.

    Attributes
    ----------
    problem : str
        What went wrong, in words; empty if its exit code is zero.
    stdout, stderr : str
        The ends of its outputs.
    cut : bool
        Whether the beginning of its standard output was not kept.
    """

    problem: str
    stdout: str
    stderr: str
    cut: bool = False


def run_program(
    arguments: Sequence[str], folder: Path, sent: bytes, timeout: float | None, environment: Mapping[str, str]
) -> Ended:
    """Run a program to its end, or to the timeout, and return how it ended.

    The run ends when the program itself ends. Processes that it has started and that are still in its process group
    are then killed; those in their own sessions are left alone.

    Parameters
    ----------
    arguments : list of str
        The program and its arguments.
    folder : Path
        Its working directory.
    sent : bytes
        Its standard input.
    timeout : float or None
        Seconds after which it is killed, with the processes that it has started.
    environment : dict of str
        Environment variables, in addition to those of this process.

    Raises
    ------
    OSError
        If the program cannot be started.
    """
    with (
        subprocess.Popen(
            arguments,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # a Ctrl-C on the terminal is for the run, which waits for paid evaluations
        ) as process,
        GUARDIAN.watching(-process.pid),
    ):
        tails, late = (_Tail(), _Tail()), False
        try:
            _communicate(process, sent, timeout, tails)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            _kill_group(process)
    problem = f"{TIMED_OUT} {timeout:g} s, and was killed" if late else _how_it_ended(process.returncode)
    return Ended(problem, tails[0].text(), tails[1].text(), tails[0].is_cut)


class _Tail:
    """The end of an output; the rest is discarded while it is read."""

    def __init__(self) -> None:
        self._kept, self.is_cut = bytearray(), False

    def add(self, more: bytes) -> None:
        self._kept += more
        if len(self._kept) > 2 * SETTINGS.kept:  # not each time: cutting copies everything that is kept
            self._cut()

    def text(self) -> str:
        """Return the end of the output; if it was cut, the first line is incomplete and begins with an ellipsis."""
        if len(self._kept) > SETTINGS.kept:
            self._cut()
        return ("... " if self.is_cut else "") + self._kept.decode(errors="replace")

    def _cut(self) -> None:
        del self._kept[: -SETTINGS.kept]
        self.is_cut = True


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a program has ended; if possible, its process number stays reserved."""
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return process.poll() is not None


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and all processes in its group."""
    with suppress(ProcessLookupError, PermissionError):  # the latter on some systems if all have ended
        os.killpg(process.pid, signal.SIGKILL)


def _communicate(
    process: subprocess.Popen[bytes], sent: bytes, timeout: float | None, tails: tuple[_Tail, _Tail]
) -> None:
    """Send bytes to a program, collect the ends of its standard output and error, and wait until it has ended.

    Unlike `subprocess.Popen.communicate`, it takes any timeout, does not keep everything that the program prints, and
    does not wait for other processes that keep an output open.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    stdin, stdout, stderr = (cast(IO[bytes], pipe) for pipe in (process.stdin, process.stdout, process.stderr))
    tail_of = dict(zip((stdout, stderr), tails, strict=True))
    with selectors.DefaultSelector() as selector:
        selector.register(stdin, selectors.EVENT_WRITE)
        for pipe in tail_of:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            if _has_ended(process):
                _kill_group(process)
                for pipe, tail in tail_of.items():
                    _drain(pipe, tail)
                return
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left < 0:
                raise subprocess.TimeoutExpired(process.args, left)
            for key, _ in selector.select(SETTINGS.looks if left is None else min(left, SETTINGS.looks)):
                pipe = cast(IO[bytes], key.fileobj)
                if pipe is stdin:
                    try:
                        sent = sent[stdin.write(sent[: select.PIPE_BUF]) :]
                    except BrokenPipeError:  # a program need not read it
                        sent = b""
                    ended = not sent
                else:
                    read = pipe.read(SETTINGS.read)
                    tail_of[pipe].add(read)
                    ended = not read
                if ended:
                    selector.unregister(pipe)
                    pipe.close()
    while not _has_ended(process):  # it closed its outputs earlier
        if deadline is not None and time.monotonic() > deadline:
            raise subprocess.TimeoutExpired(process.args, deadline)
        time.sleep(SETTINGS.looks)


def _drain(pipe: IO[bytes], tail: _Tail) -> None:
    """Read the content of a pipe, but no more than is kept: another process may write forever."""
    if pipe.closed:
        return
    os.set_blocking(pipe.fileno(), False)
    left = SETTINGS.kept + SETTINGS.read
    while left > 0 and (more := pipe.read(SETTINGS.read)):  # None if nothing is there now
        tail.add(more)
        left -= len(more)


def _how_it_ended(code: int) -> str:
    """Return the meaning of an exit code in words; an empty string for zero."""
    if code < 0:
        return f"it was ended by signal {next((s.name for s in signal.Signals if s == -code), -code)}"
    return f"it ended with exit code {code}" if code else ""
