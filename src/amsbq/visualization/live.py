"""The live page of a run, served while its journal grows: read-only, on this machine, for whoever has the address.

Estimate, convergence and table follow the journal immediately. Whatever needs the model (findings and the other
figures) follows when it is ready, from a separate thread that takes at most half of a processor.
"""

from __future__ import annotations

import json
import secrets
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ..execution.executors import SETTINGS as EXECUTORS  # has the polling interval
from ..execution.journal import JournalPath
from ..execution.reader import read_result, result_of
from ..execution.state import read_state
from ..simulators.answers import error_text
from .report import content, details, page, shown_outputs


@dataclass(frozen=True)
class LiveSettings:
    """Time limits of the page."""

    #: seconds after which a request is answered even if there is nothing new; the page then asks again
    patience: float = 10.0


SETTINGS = LiveSettings()

#: headers of all answers: nothing is cached, nothing else is loaded, and no other page learns the address
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


#: the finding that is shown until the model is ready
LEARNING = [{"level": "note", "about": "model", "text": "it is being learned; findings follow.", "advice": ""}]


class LiveContent:
    """The content of the page, updated whenever the journal grows.

    Parameters
    ----------
    journal : path
        An existing journal; the run may be in progress.

    Attributes
    ----------
    version : int
        Increases by one whenever there is something new.
    """

    def __init__(self, journal: JournalPath) -> None:
        self.journal = Path(journal)
        self.version = 0
        self._troubles = {"journal": "", "model": ""}
        self._quick = content(result_of(read_state(journal)))
        self._whole: dict[str, Any] = {}  # what needs the model, by output
        self._updated, self._ended = threading.Condition(), threading.Event()
        self._threads = [threading.Thread(target=follow, daemon=True) for follow in (self._follow, self._follow_model)]

    def __enter__(self) -> LiveContent:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    @property
    def busy(self) -> bool:
        """Whether the model is still being restored, or figures drawn, after the run has ended."""
        return any(thread.is_alive() for thread in self._threads)

    @property
    def trouble(self) -> str:
        """The reason why the journal currently cannot be read or the model restored; empty if all is well."""
        return self._troubles["journal"] or self._troubles["model"]

    def newer_than(self, version: str) -> bool:
        """Wait until there is something newer than a version, or until `SETTINGS.patience`; return whether there is."""
        with self._updated:
            return self._updated.wait_for(lambda: str(self.version) != version, SETTINGS.patience)

    def current(self) -> dict[str, Any]:
        """Return the content with its version: the current estimate and table, and the latest model-based parts."""
        with self._updated:
            parts = {name: _merged(part, self._whole.get(name)) for name, part in self._quick["parts"].items()}
            return {**self._quick, "parts": parts, "version": self.version}

    def _publish(self, quick: dict[str, Any] | None = None, whole: dict[str, Any] | None = None) -> None:
        with self._updated:
            self._quick, self._whole = quick or self._quick, {**self._whole, **(whole or {})}
            self.version += 1
            self._updated.notify_all()

    def _follow(self) -> None:
        """Read the journal whenever it has grown."""
        size = self._size()
        while not self._ended.wait(EXECUTORS.look_again):
            now = self._size()
            if now == size:
                continue
            with self._noted("journal"):
                self._publish(quick=content(result_of(read_state(self.journal))))
                size = now

    def _follow_model(self) -> None:
        """Restore the model and draw what depends on it whenever the journal has grown."""
        size = -1
        while not self._ended.is_set():
            start, now = time.monotonic(), self._size()
            if now != size:
                size = now
                with self._noted("model"):
                    for name, one in shown_outputs(read_result(self.journal)).items():
                        self._publish(whole={name: details(one)})
            self._ended.wait(max(time.monotonic() - start, EXECUTORS.look_again))

    @contextmanager
    def _noted(self, what: str) -> Iterator[None]:
        """Store an error for the page to show, and continue: the next attempt may succeed."""
        try:
            yield
            self._troubles[what] = ""
        except Exception as error:
            self._troubles[what] = error_text(error)

    def _size(self) -> int:
        try:
            return self.journal.stat().st_size
        except OSError:
            return -1


def _merged(quick: dict[str, Any], whole: dict[str, Any] | None) -> dict[str, Any]:
    """Return the details of one output: the parts known at once, and the latest model-based parts."""
    if whole is None:
        return {**quick, "findings": LEARNING}
    known = {figure["id"] for figure in quick["figures"]}
    return {**whole, "figures": [*quick["figures"], *(f for f in whole["figures"] if f["id"] not in known)]}


class PageServer(ThreadingHTTPServer):
    """A server of one page on 127.0.0.1, at a random port and under a secret random path.

    Parameters
    ----------
    live : LiveContent
        What the page shows.
    port : int
        The port; by default any free one.

    Attributes
    ----------
    address : str
        Where the page is.
    """

    daemon_threads = True

    def __init__(self, live: LiveContent, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.live, self.token = live, secrets.token_urlsafe(24)
        self.host = f"127.0.0.1:{self.server_address[1]}"
        self.address = f"http://{self.host}/{self.token}/"
        self._begun = result_of(read_state(live.journal))  # for the settings, which do not change
        self.page()  # fails early if a dependency is missing

    def page(self) -> bytes:
        """Return the current page as HTML, so that reloading shows the newest state at once."""
        text = page(self._begun, self.live.journal.stem, live=self.live.current())
        return text.encode("utf-8", errors="backslashreplace")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections closed before their answer; print all other errors."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Handler that answers GET for the page and its content, and refuses everything else."""

    server: PageServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        try:
            asked = urlsplit(self.path)
            since = "".join(parse_qs(asked.query).get("since", []))
        except ValueError:  # no address
            self._answer(HTTPStatus.BAD_REQUEST)
            return
        token, _, name = asked.path.removeprefix("/").partition("/")
        if self.headers.get("Host") != self.server.host:  # refuse foreign host names (DNS rebinding)
            self._answer(HTTPStatus.FORBIDDEN)
        elif not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._answer(HTTPStatus.NOT_FOUND)
        elif name == "":
            self._answer(HTTPStatus.OK, self.server.page(), "text/html; charset=utf-8")
        elif name == "content":
            if self.server.live.newer_than(since):
                self._answer(HTTPStatus.OK, json.dumps(self.server.live.current()).encode(), "application/json")
            else:
                self._answer(HTTPStatus.NO_CONTENT)
        else:
            self._answer(HTTPStatus.NOT_FOUND)

    def _answer(self, status: HTTPStatus, body: bytes = b"", kind: str = "text/plain") -> None:
        self.send_response(status)
        for key, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        trouble = self.server.live.trouble
        if trouble and status in (HTTPStatus.OK, HTTPStatus.NO_CONTENT):
            self.send_header("Trouble", ascii(trouble)[1:-1])
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing: the terminal belongs to the user."""
