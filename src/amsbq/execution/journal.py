"""The journal of a run: a write-ahead log with one line of JSON for every event, on the disk before it is used.

The first line is a header: the version of the format and a description of the run. The other events are

    asked    id, source, x, cost, rate         a query, before it is evaluated; gradient, if requested, and
                                               decision, if that has a cost
    printed  id, stdout, stderr, folder        the output of an evaluation, and its work directory, if there is one
    told     id, value, variance, cost         its value, and gradient, before the integrator uses it; note, if the
                                               gradient is ignored
    failed   id, reason, cost                  or why it has no value
    fitted   n, hyperparameters, warnings      a refit to the first n observations
    known    id, mean, std                     the integral after an answer
    observed source, x, value, variance        a value that was taken from another journal, before anything was asked
    excluded id, reason                        the user has excluded a value
    corrected id, value, variance              the user has replaced a value, or supplied that of a failed evaluation
    resumed  budget                            the run continues with another budget
    accepted changes, problem, inputs          the user has accepted changes of the problem
    stopped  reason, rule, spent, budget,      the run has stopped, by a stop rule or by itself
             estimate
    certificate terms, X, predicted, ...       the start of a certificate: its draws, before they are evaluated
    certified id, value, variance, cost,       one of its evaluations, which the run does not use
             or reason

Every line ends with its number, the checksum of the previous line and its own. Damage, missing lines and reordered
lines are therefore detected, but lines missing at the end are not. A last line that was not finished when the
process died is removed when the file is opened again, and reported as missing when the file is read; any other damage
is an error, and the file is left unchanged. A file that does not begin like a journal is also left unchanged. A
byte-order mark, Windows line endings and empty lines at the end, as editors add them, are accepted. Journals of formats
1 and 2, whose lines have only their own checksums, are continued in their format.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeAlias

import numpy as np

from ..common.messages import warn
from ..common.serialisation import from_json, to_json
from ..common.validation import Array, Values, read_only
from ..design.evaluations import Beside
from .locks import LOCKED_BY_ANOTHER, close, lock, one_host_only

#: version of the format that is written; `format1` translates the oldest one
FORMAT = 3
#: the first format whose lines are chained
CHAINED = 3

#: the first bytes of every journal
BEGINNING = b'{"event":"begun","format":'

#: the last bytes of every line
END = re.compile(rb',"crc":"[0-9a-f]{8}"}')

Event: TypeAlias = dict[str, Any]
JournalPath: TypeAlias = str | os.PathLike[str]


class JournalError(Exception):
    """A journal that cannot be used or written; the message says why, and what to do."""


class AnotherRunError(JournalError):
    """A journal of another problem; the message has the changes, and the remedy in Python (``in_shell``: shell)."""

    def __init__(self, path: JournalPath, changes: Sequence[str]) -> None:
        changed = f"{path} is the journal of another run, where {'; '.join(changes)}."
        self.in_shell = (
            f"{changed} Start a new journal with --fresh or, if the evaluations in this one are still valid, accept "
            "the changes: --accept-changes with run, resume and ask"
        )
        super().__init__(
            f"{changed} Choose another journal or, if the evaluations in this one are still valid, accept the changes: "
            "accept_changes=True"
        )


@dataclass(frozen=True)
class _Position:
    """The end of a journal: the number of its lines, and the checksum of the last one."""

    lines: int = 0
    checksum: str = ""


class Journal:
    """An append-only journal, locked for this process while it is open.

    Parameters
    ----------
    path : path
        A journal to continue, or a file that does not exist yet.
    patience : float
        Seconds to wait for another process that has locked it.
    shared : bool
        Whether processes on other hosts may write to it, too: it is then refused if locks hold on one host only.

    Attributes
    ----------
    path : Path
        The file.
    header : dict or None
        The description of the run; None if the file is new.
    events : list of dict
        The events in it when it was opened.
    """

    def __init__(self, path: JournalPath, patience: float = 0.0, shared: bool = False) -> None:
        self.path = Path(path)
        self.header: Event | None = None
        self.events: list[Event] = []
        self._end = _Position()
        self._file = _opened_and_locked(self.path, patience)
        self._where = self.path.absolute()  # a source may change the working directory
        try:
            if shared and (local := one_host_only(self._file)):
                raise JournalError(
                    f"{self.path} is on a file system ({local}) whose locks hold on one host only, and two hosts could "
                    "write to it at the same time: keep the journal on another file system"
                )
            self._read()
        except BaseException:
            close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        close(self._file)

    def begin(self, header: Event) -> None:
        """Write the header of a new journal."""
        self.header = {"event": "begun", "format": FORMAT, **header}
        self.write(self.header)
        with suppress(
            OSError
        ):  # the file is new: its folder must be on the disk as well, where the system supports that
            folder = os.open(self._where.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def write(self, event: Event, durable: bool = True) -> None:
        """Append an event; if it is durable, it is on the disk when this returns."""
        chained = self.header is not None and self.header["format"] >= CHAINED
        line, position = _line(event, self._end, chained)
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
                f"the journal {self.path} cannot be written: {error.strerror or error}. Earlier lines are kept; "
                f"the line that could not be written is {line.decode().strip()}"
            ) from None
        self._end = position
        if not _is_at(self._file, self._where):
            raise JournalError(
                f"the journal {self.path} was deleted, moved or replaced while the run was writing to it, so the run "
                f"has ended. If it was moved, it is complete; the last line is {line.decode().strip()}"
            )

    def _remove_after(self, end: int) -> None:
        """Remove the part of a line that could not be finished."""
        with suppress(OSError):  # otherwise it is removed when the journal is opened again
            os.ftruncate(self._file.fileno(), end)

    def _read(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        lines, torn = _lines(content, self.path)
        self.events, self._end = _parsed(lines, self.path)
        if torn.strip():
            warn(f"the last line of {self.path} was not finished and is removed: its event is lost")
        if torn:
            self._file.truncate(self._file.seek(0, os.SEEK_END) - len(torn))
        elif content and not content.endswith(b"\n"):  # only the end of the last line is missing
            self._file.seek(0, os.SEEK_END)
            self._file.write(b"\n")
        if self.events:
            self.header = _checked_header(self.events, self.path)
            del self.events[0]


def read_journal(path: JournalPath) -> tuple[Event, list[Event]]:
    """Return the header and the events of a journal, also of a run in progress: nothing is locked or repaired.

    They are returned as written, in any format; `RunState` interprets them. An unfinished last line is left out, with
    a warning.
    """
    path = Path(path)
    try:
        _check_regular(path)
        content = path.read_bytes()
    except OSError as error:
        raise JournalError(f"the journal {path} cannot be read: {error.strerror or error}") from None
    if not content:
        raise JournalError(f"{path} is empty")
    lines, torn = _lines(content, path)
    events, _ = _parsed(lines, path)
    if torn.strip():
        warn(f"the last line of {path} is incomplete and is ignored: a run is writing it, or it was truncated")
    return _checked_header(events, path), events[1:]


@contextmanager
def locked(path: JournalPath) -> Iterator[None]:
    """Lock an existing journal for this process, whatever its content; raise `JournalError` if a run is using it."""
    file = _opened_and_locked(Path(path))
    try:
        yield
    finally:
        close(file)


def _check_beginning(content: bytes, path: Path) -> None:
    """Raise a JournalError unless a file begins like a journal; a shorter one must be the beginning of a journal."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise JournalError(f"{path} is UTF-16 text, but journals are UTF-8: an editor may have changed it")
    if content[: len(BEGINNING)] != BEGINNING[: len(content)]:
        raise JournalError(
            f"{path} is not a journal, and is left unchanged: choose another file. If it was one, its beginning was "
            "damaged"
        )


def _check_regular(path: Path) -> None:
    """Raise a JournalError for a path that exists but is not a file: opening a FIFO or a device may block forever."""
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "folder" if stat.S_ISDIR(mode) else "FIFO, device or socket"
            raise JournalError(f"{path} is a {kind}, but a journal must be a file: choose another name")


def _checked_header(events: list[Event], path: Path) -> Event:
    header = events[0] if events else {}
    version = _format_of(header)
    if header.get("event") != "begun" or version < 1:
        raise JournalError(f"{path} is not a journal: its first line has no format")
    if version > FORMAT:
        raise JournalError(
            f"{path} was written by a newer amsbq ({header.get('version')}, format {version}; this one knows up to "
            f"{FORMAT}): use that one"
        )
    return header


def _line(event: Event, end: _Position, chained: bool) -> tuple[bytes, _Position]:
    """Return the line of an event that follows the end of a journal, and the new end."""
    place = {"line": end.lines + 1, "after": end.checksum} if chained else {}
    body = to_json({**event, **place}).encode(errors="backslashreplace")  # half a surrogate pair is escaped
    checksum = _checksum(body)
    return body[:-1] + f',"crc":"{checksum}"}}\n'.encode(), _Position(end.lines + 1, checksum)


def _lines(content: bytes, path: Path) -> tuple[list[bytes], bytes]:
    """Return the lines of a journal, and the rest at its end: an unfinished or empty line.

    A last line that lacks only its line feed is complete, by its checksum.
    """
    if content.startswith(codecs.BOM_UTF8 + BEGINNING):
        content = content.removeprefix(codecs.BOM_UTF8)
    _check_beginning(content, path)
    *lines, last = content.split(b"\n")
    while lines and not lines[-1].strip(b"\0 \t\r"):  # zeros: never written, but the disk had allocated the space
        last = lines.pop() + b"\n" + last
    if last:
        with suppress(JournalError):
            _parsed([*lines, last], path)
            return [*lines, last], b""
    if END.search(last):  # the end of a finished line: it is damaged
        return [*lines, last], b""
    return lines, last


def _checksum(body: bytes) -> str:
    return f"{zlib.crc32(body):08x}"


def _parsed(lines: Sequence[bytes], path: Path) -> tuple[list[Event], _Position]:
    """Return the events of lines, and the end of the journal; raise `JournalError` if damaged or out of order."""
    left = "The file is left unchanged: restore it from a copy, or move it away and start again"
    events: list[Event] = []
    end = _Position()
    for number, line in enumerate(lines, 1):
        body, _, rest = line.removesuffix(b"\r").rpartition(b',"crc":"')
        body += b"}"
        checksum = _checksum(body)
        if rest != checksum.encode() + b'"}':
            raise JournalError(f"line {number} of {path} is damaged. {left}")
        event = _event(body)
        if event is None:
            raise JournalError(f"line {number} of {path} is not an event of a journal. {left}")
        chained = CHAINED <= _format_of(events[0] if events else event) <= FORMAT  # others are refused for their header
        if chained and (event.pop("line", None), event.pop("after", None)) != (end.lines + 1, end.checksum):
            raise JournalError(
                f"line {number} of {path} does not follow the previous line: lines were removed, moved or taken from "
                f"another journal. {left}"
            )
        events.append(event)
        end = _Position(number, checksum)
    return events, end


def _event(body: bytes) -> Event | None:
    """Return the event of a line; None if it is not an event."""
    try:
        event = from_json(body)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


def _format_of(header: Event) -> int:
    version = header.get("format")
    return version if type(version) is int else 0


def _opened_and_locked(path: Path, patience: float = 0.0) -> IO[bytes]:
    """Return a file opened for reading and appending, locked for this process until it is closed."""
    try:
        _check_regular(path)
        file: IO[bytes] = path.open("a+b", buffering=0)
    except OSError as error:
        raise JournalError(f"the journal {path} cannot be opened: {error.strerror or error}") from None
    try:
        lock(file, patience)
        if not _is_at(file, path):
            raise JournalError(f"the journal {path} was deleted, moved or replaced while it was opened: try again")
    except OSError as error:
        close(file)
        if error.errno in LOCKED_BY_ANOTHER:
            raise JournalError(f"{path} is in use by another run: wait for it, or choose another journal") from None
        raise JournalError(
            f"the journal {path} cannot be locked: {error.strerror or error}. Its file system may not support locks: "
            "keep the journal on another one"
        ) from None
    except BaseException:
        close(file)
        raise
    return file


def _is_at(file: IO[bytes], path: Path) -> bool:
    """Return whether a path still leads to the file that was opened there."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def numbers_of(recorded: Any) -> Values:
    """Return a recorded number as it is, and a list of numbers as an array."""
    return read_only(np.array(recorded, dtype=float)) if isinstance(recorded, list) else recorded


def beside_of(event: Event) -> tuple[Beside, ...]:
    """Return the values and variances that an event has of the sources evaluated in bulk."""
    values = [numbers_of(value) for value in event.get("free", ())]
    variances = [numbers_of(value) for value in event.get("free_variance", ())] or [
        0.0 * np.nan_to_num(v) for v in values
    ]
    return tuple(zip(values, variances, strict=True))


def gradient_of(event: Event, x: Array) -> Array | None:
    """Return the gradient in an event, (D,), or (M, D) with several outputs; None if there is none."""
    if "gradient" not in event:
        return None
    gradient = np.asarray(numbers_of(event["gradient"]))
    if np.shape(gradient) != (*np.shape(event["value"]), *x.shape) or np.isinf(gradient).any():
        raise ValueError(f"a gradient of {event['gradient']}")
    return gradient
