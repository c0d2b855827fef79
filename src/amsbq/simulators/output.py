r"""Rules that extract values from the output of a program.

    {last = true}                              the last number
    {regex = 'peak = (\S+)'}                   the group of the last match of a regular expression
    {column = "peak", row = -1}                a cell of a table, with commas, semicolons or spaces between the columns
    {json = "peak.height[0]"}                  an entry of a JSON object
    {file = "field.npy", index = [0, -1]}      an entry of a NumPy array

Each rule reads the standard output, or the file that it names. Columns, rows and entries are counted from 0, and from
the end if they are negative.
"""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np

from ..common.validation import brief, number
from ..design.observations import Observation
from .answers import SimulatorError, as_observation, one_line
from .numerals import Quantity, last_quantity, quantity
from .tables import is_json_path, json_entry, json_value, table_cell

#: the quantities that make up an observation
PARTS = ("value", "variance", "cost")

#: bytes of the largest file that is read: larger than any table that a person looks at
LARGEST = 10**8


@dataclass(frozen=True)
class OutputRule:
    r"""The place of a number in the output of a program.

    Parameters
    ----------
    file : str, optional
        A file in the work directory; by default the standard output.
    last : bool
        The last number.
    regex : str, optional
        A regular expression with one group; its last match is used.
    column : int or str, optional
        A column of a table, by number or by the name in its header.
    row : int
        The row, among those with a number in that column; the last one by default.
    json : str, optional
        The path of an entry, such as "a.b[0]"; empty for the whole.
    index : int or list of int, optional
        The index of an entry of a ``.npy`` file; not needed for an array of one element.

    >>> OutputRule(regex=r"peak = (\S+)").read("peak = 1.6 m\ndone in 0.3 s\n", Path("."))
    Quantity(value=1.6, unit='')
    """

    file: str | None = None
    last: bool = False
    regex: str | None = None
    column: int | str | None = None
    row: int = -1
    json: str | None = None
    index: int | tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        npy = self.file is not None and self.file.endswith(".npy")
        ways = [self.last, self.regex is not None, self.column is not None, self.json is not None, npy]
        if sum(ways) != 1:
            raise ValueError(
                "an output rule must have one of last = true, regex, column and json, or a file that ends with .npy"
            )
        if self.index is not None and not npy:
            raise ValueError("index belongs to a file that ends with .npy")
        if self.file is not None and (Path(self.file).is_absolute() or ".." in Path(self.file).parts):
            raise ValueError(f"file must be a name in the work directory, got {self.file!r}")
        if self.json is not None and not is_json_path(self.json):
            raise ValueError(f"json of an output rule must be a path such as a.b[0], got {self.json!r}")
        if self.regex is not None:
            try:
                groups = re.compile(self.regex).groups
            except re.error as error:
                raise ValueError(f"regex {self.regex!r} is not a valid regular expression: {error}") from None
            if groups != 1:
                raise ValueError(f"regex {self.regex!r} must have one group, ( ), around the number; it has {groups}")

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """Return the rule that a table of a problem file describes; raise ValueError or TypeError if it is wrong."""
        types: dict[str, Any] = {"file": str, "last": bool, "regex": str, "column": (int, str), "row": int, "json": str}
        meant = {bool: "true", int: "a whole number, from 0, or from the end if negative", str: "a string in quotes"}
        known = [field.name for field in fields(cls)]
        for name, value in table.items():
            if name not in known:
                raise ValueError(f"an output rule has no key {name!r}; valid keys: {', '.join(known)}")
            if name in types and (not isinstance(value, types[name]) or (isinstance(value, bool) and name != "last")):
                other = meant.get(types[name], "a name in quotes or a whole number")
                raise TypeError(f"{name} of an output rule must be {other}, got {brief(value)}")
        index = table.get("index")
        listed = [index] if isinstance(index, int) else index
        if listed is not None and not (isinstance(listed, list) and all(type(i) is int for i in listed)):
            raise TypeError(f"index must be a whole number or a list of them, got {brief(index)}")
        return cls(**{**table, "index": None if listed is None else tuple(listed)})

    def as_dict(self) -> dict[str, Any]:
        """Return the arguments that differ from the defaults, in JSON-serialisable form."""
        plain = type(self).__dataclass_fields__
        kept = {name: value for name, value in asdict(self).items() if value != plain[name].default}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in kept.items()}

    def read(self, printed: str, folder: Path) -> Quantity:
        """Return the number that the rule finds; raise ValueError if there is none.

        Parameters
        ----------
        printed : str
            The standard output of the program.
        folder : Path
            The work directory of the program.
        """
        if self.file is not None and self.file.endswith(".npy"):
            return Quantity(self._from_array(folder / self.file))
        text = printed if self.file is None else _text(folder / self.file)
        if self.regex is not None:
            matches = re.findall(self.regex, text, re.M)
            if not matches:
                raise ValueError(f"nothing matches {self.regex!r}")
            return quantity(matches[-1], f"what {self.regex!r} matches")
        if self.column is not None:
            return table_cell(text, self.column, self.row)
        if self.json is not None:
            return json_entry(text, self.json)
        found = last_quantity(text)
        if found is None:
            raise ValueError("there is no number")
        return found

    def _from_array(self, path: Path) -> float:
        try:
            array = np.load(io.BytesIO(_content(path)), allow_pickle=False)
        except EOFError as error:
            raise ValueError(f"{path.name} cannot be read: {error}") from None
        index = self.index if isinstance(self.index, tuple) or self.index is None else (self.index,)
        try:
            return number(array if index is None else array[index], f"{path.name}{_shown_index(index)}")
        except IndexError:
            raise ValueError(f"{path.name} of shape {array.shape} has no entry {_shown_index(index)}") from None


Rules: TypeAlias = OutputRule | Mapping[str, OutputRule] | None


def rules_of(described: Any) -> Rules:
    """Return the rules in a problem file: one rule, or a table of rules by name of the output."""
    if not isinstance(described, Mapping) or not described:
        raise TypeError(f"output must be a rule such as {{ last = true }}, got {brief(described)}")
    if not all(isinstance(value, Mapping) for value in described.values()):
        return OutputRule.of(described)
    if "value" not in described and set(described) <= set(PARTS):
        raise ValueError("output has no rule for the value")
    return {name: OutputRule.of(rule) for name, rule in described.items()}


def files_of(rules: Rules) -> list[str]:
    """Return the names of all files that rules read."""
    return [rule.file for rule in _listed(rules) if rule.file is not None]


def count_from_the_start(rules: Rules) -> bool:
    """Return whether a rule counts rows of the standard output from its beginning, which may be discarded."""
    return any(rule.file is None and rule.column is not None and rule.row >= 0 for rule in _listed(rules))


def _listed(rules: Rules) -> list[OutputRule]:
    return [rules] if isinstance(rules, OutputRule) else list((rules or {}).values())


def read_quantities(rules: Rules, printed: str, folder: Path, outputs: Sequence[str] = ()) -> dict[str, Quantity]:
    """Return the quantities that rules find, by name; "value", "variance" and "cost" make up an observation.

    Without rules, the last line of the standard output is the value, or a JSON object of these three. With names of
    several outputs, the line has a number for each output, or is a JSON object of these numbers by name.

    Raises
    ------
    SimulatorError
        If a quantity is not found. The message says which, and quotes the end of the output that was searched.
    """
    if rules is None:
        return _last_outputs(printed, outputs) if outputs else _last_line(printed)
    named = {"value": rules} if isinstance(rules, OutputRule) else rules
    found = {}
    for name, rule in named.items():
        try:
            found[name] = rule.read(printed, folder)
        except ValueError as error:
            what = "the value" if isinstance(rules, OutputRule) else name
            where = "its output" if rule.file is None else rule.file
            raise SimulatorError(f"{what} is not found in {where}: {error}{_end(rule, printed, folder)}") from None
    return found


def as_answer(found: Mapping[str, Quantity]) -> Observation | dict[str, float]:
    """Return quantities as an observation, or as a dictionary of numbers if they have other names."""
    numbers = {name: each.value for name, each in found.items()}
    return numbers if set(numbers) - set(PARTS) else as_observation(Observation(**numbers))


def _last_line(printed: str) -> dict[str, Quantity]:
    """Return the quantities on the last line: a number, perhaps with its unit, or a JSON object."""
    lines = printed.strip().splitlines()
    if not lines:
        raise SimulatorError("it printed nothing")
    where = "the last line of its output"
    try:
        answer = json_value(lines[-1])
    except ValueError:
        answer = None
    try:
        if not isinstance(answer, dict):
            return {"value": quantity(lines[-1], where)}
        unknown = sorted(set(answer) - set(PARTS))
        if "value" not in answer or unknown:
            wrong = f"it has {', '.join(unknown)}" if unknown else "it has no value"
            raise ValueError(f"{where} is not a number: {one_line(lines[-1])} ({wrong})")
        kept = {name: value for name, value in answer.items() if value is not None or name == "value"}
        found = as_observation(Observation(**kept))
        return {name: Quantity(getattr(found, name)) for name in kept}
    except (TypeError, ValueError) as error:
        said = str(error) if where in str(error) else f"{where} is not a number: {one_line(lines[-1])} ({error})"
        raise SimulatorError(
            f"{said}. Use an output rule to say where the value is, such as {_suggestion(lines)}"
        ) from None


def _last_outputs(printed: str, outputs: Sequence[str]) -> dict[str, Quantity]:
    """Return several outputs, by name, from the last line: numbers in the order of ``outputs``, or a JSON object."""
    lines = printed.strip().splitlines()
    if not lines:
        raise SimulatorError("it printed nothing")
    try:
        answer = json_value(lines[-1])
    except ValueError:
        answer = None
    if isinstance(answer, dict) and set(outputs) <= set(answer):
        listed = [answer[name] for name in outputs]
    else:
        listed = answer if isinstance(answer, list) else re.split(r"[\s,;]+", lines[-1].strip())
    try:
        numbers = [float("nan" if each is None else each) for each in listed]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) != len(outputs):
        wanted = f"{len(outputs)} numbers, or a JSON object with {', '.join(outputs)}"
        raise SimulatorError(f"the last line of its output must be {wanted}; it is {one_line(lines[-1])}")
    return {name: Quantity(value) for name, value in zip(outputs, numbers, strict=True)}


def _suggestion(lines: Sequence[str]) -> str:
    """Return an example of an output rule for lines like these."""
    named = next((m[1] for line in reversed(lines) if (m := re.search(r"([A-Za-z_]\w*) *= *[-+.\d]", line))), "peak")
    return f"output = {{ regex = '{named} *= *(\\S+)' }} or {{ column = 1 }}"


def _end(rule: OutputRule, printed: str, folder: Path) -> str:
    """Return the end of an error message: the last lines of the text that a rule reads; empty for a ``.npy`` file."""
    if rule.file is not None and rule.file.endswith(".npy"):
        return ""
    try:
        text = printed if rule.file is None else _text(folder / rule.file)
    except ValueError:
        return quoted_end(printed)
    return f"; it ends with: {_last_lines(text)}" if text.strip() else "; it is empty"


def quoted_end(output: str) -> str:
    """Return the last lines of an output, to end an error message; an empty string if there are none."""
    return f"; it printed: {_last_lines(output)}" if output.strip() else ""


def _last_lines(text: str, lines: int = 5) -> str:
    """Return the last lines of ``text`` on one line: the message of a traceback, and its origin."""
    return " | ".join(text.strip().splitlines()[-lines:])


def _text(path: Path) -> str:
    return _content(path).decode(errors="replace")


def _content(path: Path) -> bytes:
    """Return the content of a regular file; raise ValueError for a pipe or a device, which may never end."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError(f"{path.name} is a pipe or a device, but must be a file")
            content: bytes | None = file.read(LARGEST + 1)
    except OSError as error:
        raise ValueError(f"{path.name} cannot be read: {error.strerror or error}") from None
    if content is None:  # some system files are read like pipes
        raise ValueError(f"{path.name} would block: it must be a finished file")
    if len(content) > LARGEST:
        raise ValueError(f"{path.name} is larger than {LARGEST / 1e6:g} MB")
    return content


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _shown_index(index: tuple[int, ...] | None) -> str:
    return "" if index is None else str(list(index))
