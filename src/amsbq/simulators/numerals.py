"""Numbers as programs write them: with Fortran's exponents, and followed by a unit."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from .answers import one_line

#: 1, -1.5, .5, 1., 1e-3, 1.234D+00, 1.5d3, and Fortran's three-digit exponents without a letter: 1.234-101
NUMERAL = r"[-+]?(?:\d*\.\d+[-+]\d{3}(?!\d)|(?:\d+\.?\d*|\.\d+)(?:[eEdDqQ][-+]?\d+)?)"

#: a unit after a number, with or without a space; not what may be part of the number: 1e, 0x10, 1.6 x10^3
UNIT = r"(?:\s*(?![eEdDqQxX][-+\d]))(?:(?<=\s)|(?![eEdDqQ]\b))(?P<unit>(?:[^\W\d_]|[%°])(?:[^\W_]|[%°/*·^().-])*)"

#: a number within text, not part of another word or number, and its unit
APART = re.compile(rf"(?<![\w.+-])(?P<number>{NUMERAL})(?![\d_]|\.\d)(?:{UNIT})?")

#: one number, alone or with its unit
ALONE = re.compile(rf"\s*(?P<number>{NUMERAL})(?:{UNIT})?\s*")

#: words that programs print instead of a number where a calculation went wrong
NOT_FINITE = re.compile(r"\s*[-+]?(nan|inf|infinity|\*+)\s*", re.I)


@dataclass(frozen=True)
class Quantity:
    """A number in the output of a program, with the unit after it; empty if there is none."""

    value: float
    unit: str = ""


def decimal_comma(text: str) -> str:
    """Return a hint for a number with a decimal comma; an empty string for any other."""
    return "; write a decimal point, not a comma" if re.fullmatch(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*", text) else ""


def quantity(text: str, what: str) -> Quantity:
    """Return the quantity that ``text`` consists of, or raise a ValueError that begins with ``what``.

    >>> quantity("1.234D+00", "the value"), quantity(" 1.6 m", "the value")
    (Quantity(value=1.234, unit=''), Quantity(value=1.6, unit='m'))
    """
    found = ALONE.fullmatch(text)
    value = math.inf if found is None else _float(found["number"])
    if found is None or math.isinf(value):
        kind = "not a number" if found is None and not NOT_FINITE.fullmatch(text) else "not finite"
        raise ValueError(f"{what} is {kind}: {one_line(text) or 'it is empty'}{decimal_comma(text)}")
    return Quantity(value, found["unit"] or "")


def last_quantity(text: str) -> Quantity | None:
    """Return the last number in ``text``, or None if there is none.

    >>> last_quantity("step 3: peak = 1.6 m")
    Quantity(value=1.6, unit='m')
    """
    for found in reversed(list(APART.finditer(text))):
        return Quantity(_float(found["number"]), found["unit"] or "")
    return None


def _float(numeral: str) -> float:
    """Return the value of a numeral, whatever the letter of its exponent."""
    with_letter = re.sub(r"(?<=[\d.])([-+]\d{3})$", r"e\1", numeral) if not re.search("[a-zA-Z]", numeral) else numeral
    return float(re.sub("[dDqQ]", "e", with_letter))
