"""Signals that interrupt a run: after one Ctrl-C, running evaluations finish; a second one or SIGTERM ends them."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType


class Interrupts:
    """Interrupts of a run: the first Ctrl-C is only noted, so that evaluations can end; others stop the run at once.

    Attributes
    ----------
    noted : bool
        Whether there was an interrupt.
    """

    def __init__(self) -> None:
        self.noted = False
        self._postponing = self._postponed = False

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Handle Ctrl-C while the context is open; do nothing outside the main thread, which alone gets signals."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self._handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and not self.noted:
            self.noted = True
            with suppress(RuntimeError):  # a signal may arrive while something is being printed
                print("stopping after running evaluations; interrupt again to stop now", file=sys.stderr, flush=True)
            return
        self.noted = True
        if self._postponed or not self._postponing:
            raise KeyboardInterrupt
        self._postponed = True

    @contextmanager
    def postponed(self) -> Iterator[None]:
        """Raise `KeyboardInterrupt` only after the context, which must complete."""
        self._postponing = True
        try:
            yield
        finally:
            self._postponing = False
        if self._postponed:
            self._postponed = False
            raise KeyboardInterrupt


@contextmanager
def terminable() -> Iterator[list[int]]:
    """Make SIGTERM interrupt a run without waiting for evaluations; yield a list of received signals."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
        received.append(number)
        interrupt = signal.getsignal(signal.SIGINT)
        if not callable(interrupt):
            raise KeyboardInterrupt
        interrupt(number, frame)  # the handler of the run, which knows when it can be interrupted

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)
