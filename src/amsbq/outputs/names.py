"""Names of outputs, and the numbers of one evaluation in their order, whatever form a simulator returns them in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..validation import Array, brief, count, read_only

#: names of the outputs, or how many there are
OutputsLike: TypeAlias = Sequence[str] | int


def output_names(outputs: OutputsLike) -> tuple[str, ...]:
    """Return the names of outputs; those of a number of outputs are "0", "1" and so on.

    >>> output_names(["peak", "time"]), output_names(3)
    (('peak', 'time'), ('0', '1', '2'))
    """
    if isinstance(outputs, int | np.integer) and not isinstance(outputs, bool):
        listed = [str(number) for number in range(count(outputs, "outputs"))]
    else:
        listed = [outputs] if isinstance(outputs, str) else list(outputs) if isinstance(outputs, Iterable) else []
    if not listed or not all(isinstance(name, str) and name for name in listed) or len(set(listed)) < len(listed):
        raise ValueError(f"outputs must be different names, such as ['peak', 'time'], got {brief(outputs)}")
    return tuple(listed)


def output_number(names: Sequence[str], output: str | int) -> int:
    """Return the number of an output, from its name or its number; if there is none, raise KeyError or IndexError."""
    if isinstance(output, str) and output in names:
        return list(names).index(output)
    if isinstance(output, int | np.integer) and 0 <= output < len(names):
        return int(output)
    error = KeyError if isinstance(output, str) else IndexError  # by which a loop over the outputs ends
    raise error(f"there is no output {output!r}; there are {', '.join(names)}")


def by_output(given: Any, names: Sequence[str]) -> list[Any]:
    """Return one setting for each output: those of a dictionary by name, None where it has none; else the same for all.

    >>> by_output({"time": (0, 9)}, ["peak", "time"]), by_output(0.1, ["peak", "time"])
    ([None, (0, 9)], [0.1, 0.1])
    """
    if not isinstance(given, Mapping):
        return [given] * len(names)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(f"there is no output {unknown[0]!r}; there are {', '.join(names)}")
    return [given.get(name) for name in names]


def output_values(given: Any, names: Sequence[str], own: Sequence[str], what: str) -> Array:
    """Return M numbers in the order of the outputs, NaN where one is missing or not finite.

    Parameters
    ----------
    given : array, sequence, or dictionary by name
        Numbers of all outputs, or of those that the source has. A dictionary may have other entries beside them.
    names : list of str
        Names of all M outputs.
    own : list of str
        Names of the outputs that the source has.
    what : str
        What they are called in errors.

    >>> output_values({"time": 3, "steps": 100, "peak": 0.5}, ["peak", "time"], ["peak", "time"], "the value")
    array([0.5, 3. ])
    >>> output_values([3.0], ["peak", "time"], ["time"], "the value")
    array([nan,  3.])
    """
    found = np.full(len(names), np.nan)
    if isinstance(given, Mapping):
        missing = [name for name in own if name not in given]
        if missing:
            raise ValueError(f"{what} has no {missing[0]}: it must have {', '.join(own)}, got {brief(given)}")
        given, ordered = [given[name] for name in own], list(own)
    else:
        if np.ma.isMaskedArray(given):
            given = np.ma.filled(given.astype(float), np.nan)
        shape = _array(given, what).shape
        if shape not in ((len(own),), (len(names),)):
            numbers = f"{len(own)} numbers, {', '.join(own)}" if len(own) > 1 else f"one number, {own[0]}"
            raise ValueError(f"{what} must be {numbers}, or a dictionary of them, got {brief(given)}")
        ordered = list(own) if shape == (len(own),) else list(names)
    values = _array([_scalar(value, name, what) for value, name in zip(given, ordered, strict=True)], what)
    for name, value in zip(ordered, values, strict=True):
        if name in own and np.isfinite(value):
            found[list(names).index(name)] = value
    return read_only(found)


def _array(given: Any, what: str) -> Any:
    try:
        return np.asarray(given)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must be numbers, got {brief(given)}") from None


def _scalar(value: Any, name: str, what: str) -> float:
    """Return one number, which may be NaN or infinite; None stands for one that is missing."""
    raw = np.asarray(np.nan if value is None else value)
    if raw.size != 1 or raw.dtype.kind not in "fiu":
        raise TypeError(f"{name} of {what} must be a number, got {brief(value)}")
    return float(raw.item())
