"""What is evaluated: a simulator or one of its approximations, with what is known of its cost and its noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..inference.structures import Noise, noise_level
from ..validation import Array, brief, positive_number


@dataclass(frozen=True)
class Observation:
    """What a source returns if it knows more than a value.

    Parameters
    ----------
    value : float
    variance : float
        Of the noise on this value, for example the squared standard error of a Monte Carlo average.
    cost : float, optional
        What this evaluation cost, if the source knows better than its ``cost``.
    """

    value: float
    variance: float = 0.0
    cost: float | None = None


class Source:
    """A function to be integrated, or an approximation of it.

    Parameters
    ----------
    function : callable, optional
        Called with x of shape (D,); returns a number, or an `Observation`. Not needed where evaluations are made by
        somebody else, and told to an `Integrator`.
    cost : float, callable or "measured"
        Of an evaluation, in any unit that all sources share: a number, a function of x (with a method
        ``gradient(x)``, if it has one to offer), or "measured", which learns it from the seconds that evaluations take
        or from the costs that are reported.
    name : str, optional
        By default that of the function.
    noise : float or "learn"
        Variance of the noise on its values.
    timeout : float, optional
        Seconds after which an evaluation counts as failed.
    valid : (low, high), optional
        A value outside counts as a failed evaluation.

    >>> Source(abs, cost=0.05)
    Source(abs, cost=0.05)
    """

    def __init__(
        self,
        function: Callable[[Array], Any] | None = None,
        *,
        cost: float | Callable[[Array], float] | Literal["measured"] = 1.0,
        name: str | None = None,
        noise: Noise = 0.0,
        timeout: float | None = None,
        valid: tuple[float, float] | None = None,
    ) -> None:
        if function is not None and not callable(function):
            raise TypeError(f"function must be callable with x of shape (D,), got {brief(function)}")
        if isinstance(cost, str) and cost != "measured":
            raise ValueError(f"cost must be a positive number, a function of x, or 'measured', got {cost!r}")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name must be a string, got {brief(name)}")
        self.function, self.name = function, name
        self.cost = cost if callable(cost) or isinstance(cost, str) else positive_number(cost, "cost")
        self.noise = noise_level(noise)
        self.timeout = None if timeout is None else positive_number(timeout, "timeout")
        self.valid = None if valid is None else _range(valid)

    def __repr__(self) -> str:
        cost = getattr(self.cost, "__name__", repr(self.cost))
        return f"Source({self.label('function')}, cost={cost})"

    def label(self, otherwise: str) -> str:
        """A name to show."""
        return self.name or getattr(self.function, "__name__", None) or otherwise

    @property
    def measured(self) -> bool:
        """Whether its cost is learned."""
        return isinstance(self.cost, str)


def as_sources(sources: Any) -> tuple[Source, ...]:
    """Sources, of which the first is the primary one; plain callables become sources of cost 1."""
    given = [sources] if isinstance(sources, Source) or callable(sources) else sources
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise TypeError(f"sources must be a list of functions or Sources, the primary one first, got {brief(sources)}")
    made = []
    for i, source in enumerate(given):
        if not isinstance(source, Source) and not callable(source):
            raise TypeError(f"sources[{i}] must be a function or a Source, got {brief(source)}")
        made.append(source if isinstance(source, Source) else Source(source))
    return tuple(made)


def labels(sources: Sequence[Source]) -> list[str]:
    """A different name for each of the sources."""
    names: list[str] = []
    for i, source in enumerate(sources):
        name = source.label(f"source {i}")
        names.append(f"source {i}" if name == "<lambda>" else name if name not in names else f"{name} ({i})")
    return names


def _range(valid: Any) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in valid)
    except (TypeError, ValueError):
        raise TypeError(f"valid must be a pair (low, high), got {brief(valid)}") from None
    if np.isnan([low, high]).any() or not low < high:
        raise ValueError(f"valid must be (low, high) with low below high, got {brief(valid)}")
    return low, high
