"""JSON: an exact form for files that are read back, and a plain form for other programs.

JSON has no numbers for infinity and NaN. In the exact form they are objects, ``{"float": "inf"}``, so that
`from_json` returns what `to_json` was given: every float to the last bit, arrays and tuples as lists. In the plain form
they are null, as other programs expect.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, TypeAlias

#: strings that stand for the numbers that JSON lacks
NOT_FINITE = ("inf", "-inf", "nan")

#: a value that consists of dictionaries with string keys, lists, strings, numbers, booleans and None
Plain: TypeAlias = Any


def to_json(value: Any) -> str:
    """Return the exact JSON text of nested dictionaries, lists, arrays and numbers.

    >>> to_json({"budget": float("inf"), "x": (0.1, 2)})
    '{"budget":{"float":"inf"},"x":[0.1,2]}'
    """
    exact = _converted(value, lambda number: {"float": str(number)})
    return json.dumps(exact, allow_nan=False, separators=(",", ":"), ensure_ascii=False)


def from_json(text: str | bytes) -> Plain:
    """Return the value of a JSON text written by `to_json`.

    >>> from_json('{"budget":{"float":"inf"},"x":[0.1,2]}')
    {'budget': inf, 'x': [0.1, 2]}
    """
    return json.loads(text, object_hook=_number_or_dictionary)


def plain(value: Any) -> Plain:
    """Return a value as other programs expect it in JSON: lists for arrays, None for NaN and infinity.

    >>> plain({"std": float("nan"), "x": (0.1, 2)})
    {'std': None, 'x': [0.1, 2]}
    """
    return _converted(value, lambda number: None)


def _converted(value: Any, not_finite: Callable[[float], Plain]) -> Plain:
    if isinstance(value, dict):
        return {key: _converted(entry, not_finite) for key, entry in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_converted(entry, not_finite) for entry in value]
    return not_finite(value) if isinstance(value, float) and not math.isfinite(value) else value


def _number_or_dictionary(found: dict[str, Any]) -> Any:
    return float(found["float"]) if found.keys() == {"float"} and found["float"] in NOT_FINITE else found
