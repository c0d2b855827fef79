"""Processes that end with the process that has started them, however that ends.

A killed process cannot end others. A guardian does so for it: a small shell in a separate process group that reads
from a pipe to which only the guarded process writes. When the pipe closes, because that process has ended, the guardian
kills its targets, and ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: Seconds between checks of whether the parent still exists: rare enough to take no time from a simulator.
PARENT_CHECK_SECONDS = 1.0

#: Reads lines "+ TARGET" and "- TARGET" until the pipe is closed, then kills the remaining targets.
SCRIPT = """
targets=
while read -r sign target; do
    rest=
    for one in $targets; do [ "$one" = "$target" ] || rest="$rest $one"; done
    targets=$rest
    [ "$sign" = + ] && targets="$targets $target"
done
for one in $targets; do kill -s KILL -- "$one"; done
"""


class Guardian:
    """Watcher of targets for this process: processes by number, and process groups by negative number.

    Where there is no shell, as on Windows, nothing is watched.
    """

    def __init__(self) -> None:
        self._forget_everything()

    def _forget_everything(self) -> None:
        self._lock = threading.Lock()
        self._pipe: int | None = None
        self._pid = 0
        self._parent_of_forks = 0  # this process, while its forks shall end with it
        self._started_by: dict[int, int] = {}  # the thread that started each target

    def watch(self, *targets: int) -> None:
        """Watch targets that this thread has started: they are killed when this process ends."""
        self._started_by.update(dict.fromkeys(targets, threading.get_ident()))
        self._tell("+", targets)

    def release(self, *targets: int) -> None:
        """Stop watching targets that have ended or may survive."""
        for target in targets:
            self._started_by.pop(target, None)
        self._tell("-", targets)

    @contextmanager
    def watching(self, *targets: int) -> Iterator[None]:
        """Watch targets while the context is open."""
        self.watch(*targets)
        try:
            yield
        finally:
            self.release(*targets)

    def kill_started_by(self, thread: int | None) -> None:
        """Kill the targets that a thread of this process, by its identifier, has started."""
        for target, starter in list(self._started_by.items()):
            if starter == thread:
                with suppress(OSError):
                    os.kill(target, signal.SIGKILL)

    def kill_descendants(self) -> None:
        """Kill all descendants of this process, as listed by Linux in /proc."""
        parents = dict(filter(None, map(_pid_and_parent, Path("/proc").glob("[0-9]*/stat"))))
        found = {os.getpid()}
        while more := {pid for pid, parent in parents.items() if parent in found} - found - {self._pid}:
            found |= more
        for pid in found - {os.getpid()}:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def _tell(self, sign: str, targets: tuple[int, ...]) -> None:
        if not targets or not hasattr(os, "posix_spawn"):
            return
        with self._lock, suppress(OSError):  # evaluations work without a guardian, too
            if self._pipe is None:
                self._start()
            os.write(self._pipe or -1, "".join(f"{sign} {target}\n" for target in targets).encode())

    def _start(self) -> None:
        read_end, self._pipe = os.pipe()
        nowhere = [(os.POSIX_SPAWN_OPEN, output, os.devnull, os.O_WRONLY, 0) for output in (1, 2)]
        actions = [(os.POSIX_SPAWN_DUP2, read_end, 0), *nowhere]
        # In a separate group, it does not receive the signals of a terminal.
        self._pid = os.posix_spawn("/bin/sh", ["sh", "-c", SCRIPT], {}, file_actions=actions, setpgroup=0)
        os.close(read_end)

    @contextmanager
    def watching_forks(self) -> Iterator[None]:
        """End processes that are forked in this context, as by process pools, together with this one."""
        self._parent_of_forks = os.getpid()
        try:
            yield
        finally:
            self._parent_of_forks = 0

    def _after_fork(self) -> None:
        """Forget the guardian in a fork of its process, which would keep the pipe open."""
        if self._pipe is not None:
            os.close(self._pipe)
        if self._parent_of_forks:
            threading.Thread(target=_end_with_parent, args=(self._parent_of_forks,), daemon=True).start()
        self._forget_everything()


def _pid_and_parent(stat: Path) -> tuple[int, int] | None:
    """Return the numbers of a process and of its parent from its file in /proc; None if it has ended."""
    try:
        pid, _, rest = stat.read_text(errors="replace").partition(" ")
    except OSError:
        return None
    return int(pid), int(rest.rpartition(")")[2].split()[1])


GUARDIAN = Guardian()  #: of this process
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=GUARDIAN._after_fork)


def lead_process_group() -> bool:
    """Make a process of a pool lead a process group; return whether this is one, with one call at a time.

    It then does not receive a Ctrl-C on the terminal, and everything that it starts can be ended with it.
    """
    if multiprocessing.parent_process() is None or threading.current_thread() is not threading.main_thread():
        return False
    _lead_group()
    return True


def prepare_process(parent: int) -> None:
    """Make this process lead a process group, ignore Ctrl-C, and end when the process that started it is gone."""
    # Ctrl-C on a terminal is for the run, which decides about its running evaluations.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _lead_group()
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()


def _lead_group() -> None:
    if hasattr(os, "setpgid"):
        with suppress(OSError):  # it may already lead a session, and so a group
            os.setpgid(0, 0)


def _end_with_parent(parent: int) -> None:
    """Wait until the parent of this process is gone, and end the process with its group."""
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_SECONDS)
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)  # a killed parent cannot end its processes, which would wait for calls forever
