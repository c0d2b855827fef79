"""Models on UM-Bridge servers as sources."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ..common.validation import Array, number
from .answers import SimulatorError, one_line
from .requests import posted


class UMBridge:
    """A model on a UM-Bridge server; each evaluation is a request over HTTP.

    UM-Bridge (https://um-bridge-benchmarks.readthedocs.io) is a protocol between simulators and programs for
    uncertainty quantification. The server may be on this machine or on another one; nothing is sent to it before the
    first evaluation. Use it as the function of a `Source`.

    Parameters
    ----------
    url : str
        The address of the server, such as "http://127.0.0.1:4242".
    model : str
        The name of the model on that server.
    config : dict, optional
        The configuration that is sent with each request, such as ``{"level": 1}``. Levels of one model differ in it.
    output : int or list of int
        The index of the output to use as the value, counted from 0 through all output vectors of the model; or a list
        of numbers for several outputs.
    timeout : float, optional
        Seconds to wait for a complete answer. By default there is no limit.

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

    one_by_one = True  #: it is not evaluated in bulk, however little it costs

    def __init__(
        self,
        url: str,
        model: str = "forward",
        config: dict[str, Any] | None = None,
        output: int | Sequence[int] = 0,
        timeout: float | None = None,
    ) -> None:
        if not str(url).startswith(("http://", "https://")):
            raise ValueError(f"url must start with http:// or https://, got {url!r}")
        self.url, self.model, self.config = str(url).rstrip("/"), model, dict(config or {})
        self.output, self.timeout = output if isinstance(output, int) else list(output), timeout
        self.__name__ = model
        #: sizes of the model's input and output vectors; requested at the first evaluation
        self._sizes: tuple[list[int], list[int]] | None = None

    def source_definition(self) -> dict[str, Any]:
        """Return address, model, configuration and output, by which a journal identifies the source."""
        address = re.sub(r"//[^/]*@", "//", self.url)  # without a password
        return {"umbridge": address, "model": self.model, "config": self.config, "output": self.output}

    def __call__(self, x: Array) -> float | list[float]:
        """Evaluate the model at x, of shape (D,), and return the chosen output, or a list of several.

        The inputs fill the input vectors of the model, one vector after another.

        Raises
        ------
        ConnectionError
            If the server cannot be reached, or closes the connection before its answer is complete.
        SimulatorError
            If the server does not answer in time, or if its answer is an error or a redirect, exceeds 10 MB, or has no
            finite number for the chosen output.
        ValueError
            If the model takes a different number of inputs.
        """
        vectors = self._vectors(x)
        try:
            answer = self._request("Evaluate", {"input": vectors})
            if isinstance(self.output, int):
                return self._chosen_outputs(answer, [self.output])[0]
            return self._chosen_outputs(answer, self.output)
        except BaseException:
            self._sizes = None  # requested again: another server may have replaced the first
            raise

    def gradient(self, x: Array) -> list[float] | list[list[float]]:
        """Return the gradient of the chosen output at x, shape (D,), if the model supports it.

        With several outputs its shape is (M, D). There is one request for each output and each input vector of the
        model. Errors are those of an evaluation. Use it as the ``gradient`` of a `Source`.
        """
        if isinstance(self.output, int):
            return self._gradient_of(self.output, x)
        return [self._gradient_of(output, x) for output in self.output]

    def _gradient_of(self, output: int, x: Array) -> list[float]:
        vectors = self._vectors(x)
        vector, before, (_, sizes) = 0, output, self._known_sizes()
        while vector < len(sizes) and before >= sizes[vector]:
            vector, before = vector + 1, before - sizes[vector]
        if vector == len(sizes):
            raise SimulatorError(f"the model has no output {output}: it has {sum(sizes)}, numbered from 0")
        sensitivities = [float(i == before) for i in range(sizes[vector])]
        slopes = []
        for number_of_input, values in enumerate(vectors):
            which = {"outWrt": vector, "inWrt": number_of_input, "sens": sensitivities}
            answer = self._request("Gradient", {"input": vectors, **which})
            found = answer.get("output")
            if not isinstance(found, list) or len(found) != len(values):
                raise SimulatorError(
                    f"the server answered {one_line(answer)}, which has no list of {len(values)} derivatives"
                )
            slopes += [self._number(slope, "a derivative", answer) for slope in found]
        return slopes

    def _vectors(self, x: Array) -> list[list[float]]:
        """Return inputs as the model's input vectors; raise if the number of inputs does not match."""
        values, (sizes, _) = [float(value) for value in x], self._known_sizes()
        if sum(sizes) != len(values):
            self._sizes = None
            raise ValueError(f"{self.model} takes {sum(sizes)} inputs, got {len(values)}")
        ends = np.cumsum(sizes).tolist()
        return [values[end - size : end] for size, end in zip(sizes, ends, strict=True)]

    def _known_sizes(self) -> tuple[list[int], list[int]]:
        """Return the sizes of the model's input and output vectors."""
        if self._sizes is None:
            self._sizes = self._sizes_of("input"), self._sizes_of("output")
        return self._sizes

    def _sizes_of(self, what: Literal["input", "output"]) -> list[int]:
        """Return the sizes of the model's input or output vectors."""
        answer = self._request(f"{what.capitalize()}Sizes", {})
        sizes = answer.get(f"{what}Sizes")
        if not isinstance(sizes, list) or not all(type(size) is int and size >= 0 for size in sizes):
            raise SimulatorError(f"the server answered {one_line(answer)}, which has no sizes of {what} vectors")
        return sizes

    def _chosen_outputs(self, answer: dict[str, Any], chosen: Sequence[int]) -> list[float]:
        """Return the outputs with these numbers; the answer must have the vector sizes that the server announced."""
        vectors, (_, sizes) = answer.get("output"), self._known_sizes()
        listed = isinstance(vectors, list) and all(isinstance(vector, list) for vector in vectors)
        if not listed or [len(vector) for vector in vectors or ()] != sizes:
            raise SimulatorError(
                f"the server answered {one_line(answer)}, which has no output vectors of sizes {sizes}"
            )
        outputs = [value for vector in vectors or () for value in vector]
        missing = [number for number in chosen if not 0 <= number < len(outputs)]
        if missing:
            raise SimulatorError(f"the server answered {one_line(answer)}, which has no output {missing[0]}")
        return [self._number(outputs[number], f"output {number}", answer) for number in chosen]

    @staticmethod
    def _number(value: Any, name: str, answer: dict[str, Any]) -> float:
        """Return a number of an answer, or raise an error that quotes it."""
        try:
            if isinstance(value, list):
                raise TypeError(f"{name} must be a number, got a list")
            return number(value, name)
        except (TypeError, ValueError) as error:
            raise SimulatorError(f"the server answered {one_line(answer)}: {error}") from None

    def _request(self, what: str, content: dict[str, Any]) -> dict[str, Any]:
        """Send a request, such as "Evaluate", for this model and return the answer."""
        body = json.dumps({"name": self.model, "config": self.config, **content}).encode()
        try:
            text = posted(f"{self.url}/{what}", body, self.timeout)
        except TimeoutError:
            within = "" if self.timeout is None else f" within {self.timeout:g} s"
            raise SimulatorError(f"no answer from {self.url}{within}") from None
        except http.client.IncompleteRead:
            raise ConnectionError(f"{self.url} has closed the connection before its answer was complete") from None
        except OSError as error:
            raise ConnectionError(f"{self.url} cannot be reached: {getattr(error, 'reason', error)}") from None
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            raise SimulatorError(f"the server's answer is not JSON: {one_line(text)}") from None
        if not isinstance(answer, dict) or "error" in answer:
            raise SimulatorError(f"the server answered {one_line(text)}")
        return answer
