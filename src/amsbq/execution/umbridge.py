"""umbridge."""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.request
from typing import Any

from ..validation import Array
from .commands import _short


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
