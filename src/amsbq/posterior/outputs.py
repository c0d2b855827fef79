"""Names of outputs, and the values of one evaluation by output, in whichever form a simulator returns them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..common.validation import Array, brief, count, read_only
from ..inference.structures import Noise, noise_level

#: names of the outputs, or their number
OutputsLike: TypeAlias = Sequence[str] | int


def output_names(outputs: OutputsLike) -> tuple[str, ...]:
    """Return the names of outputs; given a number of outputs, they are "0", "1" and so on.

    >>> output_names(["peak", "time"]), output_names(3)
    (('peak', 'time'), ('0', '1', '2'))
    """
    if isinstance(outputs, int | np.integer) and not isinstance(outputs, bool):
        listed = [str(number) for number in range(count(outputs, "outputs"))]
    else:
        listed = [outputs] if isinstance(outputs, str) else list(outputs) if isinstance(outputs, Iterable) else []
    return checked_names(listed, "outputs", outputs)


def checked_names(
    listed: Sequence[str], what: str, given: Any = None, such_as: str = "['peak', 'time']"
) -> tuple[str, ...]:
    """Return the names if they are distinct; otherwise, raise a ValueError that calls them ``what``."""
    names = [listed] if isinstance(listed, str) else list(listed)
    if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise ValueError(
            f"{what} must be different names, such as {such_as}, got {brief(listed if given is None else given)}"
        )
    return tuple(names)


def output_number(names: Sequence[str], output: str | int) -> int:
    """Return the index of an output, from its name or index; raise KeyError or IndexError if there is none."""
    if isinstance(output, str) and output in names:
        return list(names).index(output)
    if isinstance(output, int | np.integer) and 0 <= output < len(names):
        return int(output)
    error = KeyError if isinstance(output, str) else IndexError  # which ends a loop over the outputs
    raise error(f"there is no output {output!r}; valid names: {', '.join(names)}")


def by_output(given: Any, names: Sequence[str]) -> list[Any]:
    """Return one setting per output: by name from a dictionary, None where it has none; anything else applies to all.

    >>> by_output({"time": (0, 9)}, ["peak", "time"]), by_output(0.1, ["peak", "time"])
    ([None, (0, 9)], [0.1, 0.1])
    """
    if not isinstance(given, Mapping):
        return [given] * len(names)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(f"there is no output {unknown[0]!r}; valid names: {', '.join(names)}")
    return [given.get(name) for name in names]


def output_values(given: Any, names: Sequence[str], own: Sequence[str], what: str) -> Array:
    """Return M numbers in the order of the outputs, NaN where one is missing or not finite.

    Parameters
    ----------
    given : array, sequence, or dictionary by name
        Numbers of all outputs, or of those that the source has. A dictionary may have other entries.
    names : list of str
        Names of all M outputs.
    own : list of str
        Names of the outputs that the source has.
    what : str
        Name of the numbers in errors.

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
            n, hint = math.prod(shape) if len(shape) <= 1 else len(own), ""
            if n < len(own):
                hint = f"; if the source has no others, name these as its own, as in outputs={list(own[:n])}"
            elif n > len(names):
                hint = "; name all outputs of the run, as in outputs=['peak', 'time']"
            raise ValueError(f"{what} must be {numbers}, or a dictionary of them, got {brief(given)}{hint}")
        ordered = list(own) if shape == (len(own),) else list(names)
    values = _array([_scalar(value, name, what) for value, name in zip(given, ordered, strict=True)], what)
    for name, value in zip(ordered, values, strict=True):
        if name in own and np.isfinite(value):
            found[list(names).index(name)] = value
    return read_only(found)


def output_gradients(given: Any, names: Sequence[str], own: Sequence[str], dim: int) -> Array:
    """Return the derivatives of each output with respect to each input, shape (M, D), NaN where unknown.

    Parameters
    ----------
    given : array (M, D), or (outputs of the source, D), or dictionary of D numbers by output
    names, own : list of str
        Names of all outputs, and of those that the source has.
    dim : int
        The number of inputs, D.
    """
    if isinstance(given, Mapping):
        by_name = {name: row for name, row in zip(names, by_output(given, names), strict=True) if row is not None}
    else:
        rows = list(given)
        if len(rows) not in (len(own), len(names)):
            raise ValueError(f"gradient must have a row for each of {', '.join(own)}, got {len(rows)}")
        by_name = dict(zip(own if len(rows) == len(own) else names, rows, strict=True))
    found = np.full((len(names), dim), np.nan)
    for m, name in enumerate(names):
        if name in by_name:
            row = np.asarray(by_name[name], dtype=float)
            if row.shape != (dim,) or np.isinf(row).any():
                of = f"gradient of {name}" if name else "gradient"
                raise ValueError(f"{of} must be {dim} numbers, NaN if not known, got {brief(by_name[name])}")
            found[m] = row
    return found


def _array(given: Any, what: str) -> Any:
    try:
        return np.asarray(given)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must be numbers, got {brief(given)}") from None


def _scalar(value: Any, name: str, what: str) -> float:
    """Return one number, which may be NaN or infinite; None becomes NaN."""
    raw = np.asarray(np.nan if value is None else value)
    if raw.size != 1 or raw.dtype.kind not in "fiu":
        raise TypeError(f"{name} of {what} must be a number, got {brief(value)}")
    return float(raw.item())


def noise_levels(noise: Any, n_sources: int, outputs: Sequence[str] | None = None) -> list[list[Noise]]:
    """Return a noise variance or "learn" for each output of each source; raise an error for anything else.

    A dictionary gives them by output; outputs that it lacks have no noise.
    """
    if outputs is not None:
        return [_of_sources(0.0 if each is None else each, n_sources) for each in by_output(noise, outputs)]
    return [_of_sources(noise, n_sources)]


def _of_sources(noise: Any, n_sources: int) -> list[Noise]:
    given = list(noise) if isinstance(noise, Sequence) and not isinstance(noise, str) else None
    levels = given if given is not None else [noise] * n_sources
    if len(levels) < n_sources:
        raise ValueError(f"noise must be one number, 'learn', or one of them for each of {n_sources} sources")
    return [noise_level(level) for level in levels]
