"""Numbers in tables, whose columns are separated by commas, semicolons or spaces, and in JSON."""

from __future__ import annotations

import csv
import json
import re
from typing import Any

from ..common.validation import number
from .answers import one_line
from .numerals import Quantity, decimal_comma, quantity

#: "name" or "[2]" in a JSON path
STEP = re.compile(r"([^.\[\]]+)|\[(-?\d+)\]")

#: a cell in quotes, in which separators have no meaning
QUOTED = re.compile(r'"[^"]*"')

#: space after a separator, which aligns columns
AFTER_COMMA = re.compile(r"([,;])[ \t]+")

#: the beginning of a comment; a header may be one
COMMENT = re.compile(r"\s*([#!%]|//)")


def table_cell(text: str, column: int | str, row: int) -> Quantity:
    r"""Return the number in a cell of a table; raise ValueError if there is none.

    Parameters
    ----------
    text : str
        The table; lines without a number in the column, such as a header, do not count as rows.
    column : int or str
        The number of the column, from 0, or its name in the header. With a name, every line below it is a row.
    row : int
        The index of the row, from 0, or from the end if negative.

    >>> table_cell("# t, height\n0, 1.5\n1, 1.6\n", "height", -1)
    Quantity(value=1.6, unit='')
    """
    rows = [cells for line in text.splitlines() if (cells := _cells(line))]
    if isinstance(column, str):
        header = next((i for i, cells in enumerate(rows) if column in cells), None)
        if header is None:
            first = f"its first line has {one_line(', '.join(rows[0]))}" if rows else "it is empty"
            raise ValueError(f"the table has no column {column!r}: {first}")
        at = rows[header].index(column)
        reached = found = [cells[at] if at < len(cells) else "" for cells in rows[header + 1 :]]
    else:
        reached = [cells[column] for cells in rows if -len(cells) <= column < len(cells)]
        found = [cell for cell in reached if _is_quantity(cell)]
    if not -len(found) <= row < len(found):
        comma = "" if found else next((hint for cell in reached if (hint := decimal_comma(cell))), "")
        raise ValueError(f"column {column!r} has no row {row}: it has {len(found)}{comma}")
    return quantity(found[row], f"row {row} of column {column!r}")


def _cells(line: str) -> list[str]:
    """Return the cells of one line of a table; none for an empty line."""
    text = COMMENT.sub("", line, count=1) if COMMENT.match(line) else line
    text = AFTER_COMMA.sub(r"\1", text)
    mark = separator(text)
    if mark is None:
        return text.split()
    try:
        cells = next(csv.reader([text], delimiter=mark, skipinitialspace=True))
    except csv.Error:  # a cell is longer than that module allows
        cells = text.split(mark)
    return [cell.strip() for cell in cells]


def separator(line: str) -> str | None:
    """Return the separator between the cells of a line: tab, semicolon or comma; None if it has none of these.

    A comma in addition to one of the others is a decimal point, or part of a cell.

    >>> separator("peak,time"), separator("1,5;2,5"), separator('"a;b",2')
    (',', ';', ',')
    """
    bare = QUOTED.sub("", line)
    return next((mark for mark in ("\t", ";", ",") if mark in bare), None)


def _is_quantity(cell: str) -> bool:
    try:
        quantity(cell, "")
    except ValueError:
        return False
    return True


def json_value(text: str) -> object:
    """Return the JSON value of ``text``, or of its last line; raise ValueError if neither is JSON."""
    for candidate in (text, (text.strip().splitlines() or [""])[-1]):
        try:
            return json.loads(candidate)
        except (ValueError, RecursionError):
            continue
    raise ValueError("it is not JSON")


def is_json_path(path: str) -> bool:
    """Return whether a string is a path such as "a.b[0]"."""
    return not STEP.sub("", path).strip(".")


def json_entry(text: str, path: str) -> Quantity:
    """Return the number at a path such as "a.b[0]" in JSON, or in its last line; raise ValueError if there is none.

    >>> json_entry('{"wave": {"height": [1.5, 1.6]}}', "wave.height[-1]")
    Quantity(value=1.6, unit='')
    """
    if not is_json_path(path):
        raise ValueError(f"the path {path!r} must be like a.b[0]")
    value: Any = json_value(text)
    for step in STEP.finditer(path):
        try:
            value = value[step[1]] if step[1] else value[int(step[2])]
        except (LookupError, TypeError):
            raise ValueError(f"there is no {path!r} in it") from None
    if isinstance(value, str):
        return quantity(value, repr(path))
    try:
        return Quantity(number(value, repr(path)))
    except TypeError as error:
        raise ValueError(str(error)) from None
