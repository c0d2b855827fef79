"""The journal of a run: a write-ahead log with one line of JSON for every event, on the disk before it is used.

The first line is a header: the version of the format and a description of the run. The other events are

    asked    id, source, x, cost, rate         a query, before it is evaluated
    told     id, value, variance, cost         its value, before the integrator hears of it
    failed   id, reason, cost                  or why it has none
    fitted   n, hyperparameters, warnings      a refit to the first n observations
    known    id, mean, std                     the integral after an answer
    resumed  budget                            the run goes on with another budget
    stopped  reason, spent, budget, estimate   the run has stopped

Every line ends with a checksum, so that damage is noticed. A last line that was not finished when the process died is
removed when the file is opened again; any other damage is an error, and the file is left as it is.
"""

from __future__ import annotations

import os
import warnings
import zlib
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeAlias

from ..serialisation import from_json, to_json

#: version of the format that is written; `format1` translates the older one
FORMAT = 2

Event: TypeAlias = dict[str, Any]
JournalPath: TypeAlias = str | os.PathLike[str]


class JournalError(Exception):
    """A journal that cannot be used or written: what is wrong with it, and what to do."""


class Journal:
    """An append-only journal, locked for this process while it is open.

    Parameters
    ----------
    path : path
        A journal, which is read and continued, or a file that does not exist yet.

    Attributes
    ----------
    path : Path
        The file.
    header : dict or None
        The description of the run; None if the file is new.
    events : list of dict
        The events that it held when it was opened.
    """

    def __init__(self, path: JournalPath) -> None:
        self.path = Path(path)
        self.header: Event | None = None
        self.events: list[Event] = []
        try:
            self._file = self.path.open("a+b", buffering=0)
        except OSError as error:
            raise JournalError(f"the journal {self.path} cannot be opened: {error.strerror or error}") from None
        try:
            _lock(self._file, self.path)
            self._read()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def begin(self, header: Event) -> None:
        """Write the header of a new journal."""
        self.header = {"event": "begun", "format": FORMAT, **header}
        self.write(self.header)

    def write(self, event: Event, durable: bool = True) -> None:
        """Append an event; when this returns it is on the disk, unless it need not be durable."""
        line = _line(event)
        end = self._file.seek(0, os.SEEK_END)
        try:
            left = memoryview(line)
            while left:
                left = left[self._file.write(left) :]
            if durable:
                os.fsync(self._file.fileno())
        except OSError as error:
            self._remove_after(end)
            raise JournalError(
                f"the journal {self.path} cannot be written: {error.strerror or error}. Everything before is kept; "
                f"what was to be written is {line.decode().strip()}"
            ) from None

    def _remove_after(self, end: int) -> None:
        """Remove what was written of a line that could not be finished."""
        with suppress(OSError):  # or else it is removed when the journal is opened again
            os.ftruncate(self._file.fileno(), end)

    def _read(self) -> None:
        self._file.seek(0)
        *lines, torn = self._file.read().split(b"\n")
        for number, line in enumerate(lines, 1):
            if number == len(lines) and not line.strip(b"\0"):  # never written, but the disk had made room for it
                torn = line + b"\n" + torn
                break
            self.events.append(_parsed(line, self.path, number))
        if torn:
            warnings.warn(
                f"the last line of {self.path} was not finished and is removed: the event that it tells of is lost",
                stacklevel=4,
            )
            self._file.truncate(self._file.seek(0, os.SEEK_END) - len(torn))
        if self.events:
            self.header = _checked_header(self.events, self.path)
            del self.events[0]


def read_journal(path: JournalPath) -> tuple[Event, list[Event]]:
    """Return the header and the events of a journal, which may be of a run in progress: nothing is locked or repaired.

    They are returned as they were written, in whatever format; `RunState` interprets them.
    """
    path = Path(path)
    try:
        *lines, _ = path.read_bytes().split(b"\n")
    except OSError as error:
        raise JournalError(f"the journal {path} cannot be read: {error.strerror or error}") from None
    events = [_parsed(line, path, number) for number, line in enumerate(lines, 1) if line.strip(b"\0")]
    return _checked_header(events, path), events[1:]


def _checked_header(events: list[Event], path: Path) -> Event:
    header = events[0] if events else {}
    version = header.get("format")
    if header.get("event") != "begun" or not isinstance(version, int):
        raise JournalError(f"{path} is not a journal: its first line has no format")
    if version > FORMAT:
        raise JournalError(
            f"{path} was written by a newer amsbq ({header.get('version')}, format {version}; this one knows up to "
            f"{FORMAT}): use that one"
        )
    return header


def _line(event: Event) -> bytes:
    body = to_json(event).encode()
    return body[:-1] + b',"crc":"%08x"}\n' % zlib.crc32(body)


def _parsed(line: bytes, path: Path, number: int) -> Event:
    body, separator, rest = line.rpartition(b',"crc":"')
    body += b"}"
    if not separator or rest != b'%08x"}' % zlib.crc32(body):
        raise JournalError(
            f"line {number} of {path} is damaged. The file is left as it is: restore it from a copy, or move it away "
            "and begin again"
        )
    event: Event = from_json(body)
    return event


def _lock(file: IO[bytes], path: Path) -> None:
    """Lock a file for this process alone, until it is closed."""
    try:
        try:
            import fcntl
        except ImportError:  # on Windows
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise JournalError(f"{path} is in use by another run: wait for it, or choose another journal") from None
