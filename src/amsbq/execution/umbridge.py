"""Models on UM-Bridge servers as sources."""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.request
from typing import Any

from ..validation import Array
from .evaluate import one_line


class UMBridge:
    """A model on a UM-Bridge server, to which each evaluation is a request over HTTP.

    UM-Bridge (https://um-bridge-benchmarks.readthedocs.io) is a protocol between simulators and programs that quantify
    their uncertainty. The server may be on this machine or on another one; nothing is sent to it before the first
    evaluation. Use it as the function of a `Source`.

    Parameters
    ----------
    url : str
        The address of the server, such as "http://127.0.0.1:4242".
    model : str
        The name of the model on that server.
    config : dict, optional
        The configuration that is sent with each request. Sources that are levels of one model differ in it, such as
        ``{"level": 1}``.
    output : int
        The number of the output that is the value, counted from 0 through all output vectors of the model.
    timeout : float, optional
        Seconds to wait for an answer. By default there is no limit.

    Raises
    ------
    ValueError
        If the url does not start with http:// or https://.

    Examples
    --------
    >>> from amsbq import Source
    >>> fine = UMBridge("http://127.0.0.1:4242", "forward", {"level": 0}, timeout=60)
    >>> coarse = UMBridge("http://127.0.0.1:4242", "forward", {"level": 1}, timeout=60)
    >>> [Source(fine, name="fine"), Source(coarse, name="coarse", cost=0.1)]
    [Source(fine, cost=1.0), Source(coarse, cost=0.1)]
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
        self._sizes: list[int] | None = None  # of the model's input vectors; asked for at the first evaluation

    def __call__(self, x: Array) -> float:
        """Evaluate the model at x, of shape (D,), and return the chosen output.

        Inputs are given to the model's input vectors in their order.

        Raises
        ------
        ConnectionError
            If the server cannot be reached.
        RuntimeError
            If it does not answer in time, or its answer is an error or has no finite number as the chosen output.
        ValueError
            If the model takes another number of inputs.
        """
        values = [float(value) for value in x]
        if self._sizes is None:
            self._sizes = self._request("InputSizes", {})["inputSizes"]
        if sum(self._sizes) != len(values):
            raise ValueError(f"{self.model} takes {sum(self._sizes)} inputs, and was given {len(values)}")
        rest, vectors = list(values), []
        for size in self._sizes:
            vectors.append(rest[:size])
            rest = rest[size:]
        answer = self._request("Evaluate", {"input": vectors})
        try:
            outputs = [value for vector in answer["output"] for value in vector]
            value = float(outputs[self.output])
        except (KeyError, TypeError, IndexError, ValueError):
            raise RuntimeError(f"the server answered {one_line(answer)}, which has no output {self.output}") from None
        if not math.isfinite(value):
            raise RuntimeError(f"the server answered {value}")
        return value

    def _request(self, what: str, content: dict[str, Any]) -> dict[str, Any]:
        """Send a request, such as "Evaluate", for this model and return the answer."""
        body = json.dumps({"name": self.model, "config": self.config, **content}).encode()
        request = urllib.request.Request(f"{self.url}/{what}", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as response:
                text = response.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            raise RuntimeError(f"the server answered with status {error.code}: {one_line(text)}") from None
        except urllib.error.URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise RuntimeError(f"no answer from {self.url} within {self.timeout:g} s") from None
            raise ConnectionError(f"{self.url} cannot be reached: {error.reason}") from None
        except TimeoutError:
            raise RuntimeError(f"no answer from {self.url} within {self.timeout:g} s") from None
        try:
            answer = json.loads(text)
        except json.JSONDecodeError:
            raise RuntimeError(f"the server's answer is not JSON: {one_line(text)}") from None
        if not isinstance(answer, dict) or "error" in answer:
            raise RuntimeError(f"the server answered {one_line(text)}")
        return answer
