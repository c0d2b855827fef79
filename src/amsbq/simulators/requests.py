"""HTTP requests with one deadline for the complete answer, headers included."""

from __future__ import annotations

import http.client
import io
import math
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from functools import partial
from typing import Any

from .answers import SimulatorError, one_line


@dataclass(frozen=True)
class ReplySettings:
    """Limits on the answers of servers."""

    #: bytes: hundreds of thousands of outputs, and far less than the memory of any machine
    largest: int = 10 * 2**20
    #: bytes that are read at once
    read: int = 2**16
    #: seconds of one wait for more: the system's call takes no more than 2**31 milliseconds
    longest_wait: float = 1e6


SETTINGS = ReplySettings()


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Handler that makes every redirect an error: following it would send the inputs elsewhere, or lose them."""

    def redirect_request(self, *request: Any) -> None:
        return None


def posted(url: str, body: bytes, timeout: float | None) -> str:
    """Post JSON to a server, and return the text of its answer.

    Raises
    ------
    TimeoutError
        If the answer is not complete after that many seconds.
    OSError, http.client.HTTPException
        If the server cannot be reached, or ends the connection early.
    SimulatorError
        If the status is an error or a redirect, or if the answer is too long.
    """
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    opener = urllib.request.build_opener(_NoRedirects, _HTTP(deadline), _HTTPS(deadline))
    try:
        with opener.open(request, timeout=_left(deadline)) as response:
            return _read(response)
    except urllib.error.HTTPError as error:
        moved = error.headers.get("Location")
        where = f"; it redirects to {moved}, which is not followed: use that address as url" if moved else ""
        text = one_line(_read(error))
        raise SimulatorError(f"the server answered with status {error.code}: {text}{where}") from None
    except urllib.error.URLError as error:
        raise error.reason if isinstance(error.reason, TimeoutError) else error from None


def _left(deadline: float) -> float | None:
    """Return the seconds that a call may wait; None if there is no limit."""
    return None if math.isinf(deadline) else min(max(deadline - time.monotonic(), 1e-3), SETTINGS.longest_wait)


class _TimedReader(io.RawIOBase):
    """Reader of a socket with a deadline for all data: the time-out of a socket is only for each wait."""

    def __init__(self, sock: Any, raw: Any, deadline: float) -> None:
        self._sock, self._raw, self._deadline = sock, raw, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if time.monotonic() > self._deadline:
            raise TimeoutError
        self._sock.settimeout(_left(self._deadline))
        read: int | None = self._raw.readinto(buffer)
        return read

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedResponse(http.client.HTTPResponse):
    """A response whose headers and content must arrive by a deadline."""

    def __init__(self, deadline: float, sock: Any, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_TimedReader(sock, self.fp.detach(), deadline))


class _Timed:
    """A handler of requests that must be answered by a deadline."""

    def __init__(self, deadline: float) -> None:
        super().__init__()
        self._deadline = deadline

    def do_open(self, http_class: Any, *args: Any, **options: Any) -> Any:
        """Open a connection, and return the answer."""

        def timed(*where: Any, **how: Any) -> Any:
            connection = http_class(*where, **how)
            connection.response_class = partial(_TimedResponse, self._deadline)
            return connection

        return super().do_open(timed, *args, **options)  # type: ignore[misc]


class _HTTP(_Timed, urllib.request.HTTPHandler):
    """Handler of HTTP requests."""


class _HTTPS(_Timed, urllib.request.HTTPSHandler):
    """Handler of HTTPS requests."""


def _read(response: Any) -> str:
    """Return the whole text of a response; raise if it is too long or ends early."""
    read = bytearray()
    while more := response.read1(SETTINGS.read):
        read += more
        if len(read) > SETTINGS.largest:
            raise SimulatorError(f"the server's answer is longer than {SETTINGS.largest / 2**20:g} MB")
    if getattr(response, "length", None):  # announced bytes did not arrive
        raise http.client.IncompleteRead(bytes(read), response.length)
    return read.decode(errors="replace")
