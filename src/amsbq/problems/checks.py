"""Checks of the tables of a problem file against their keys: they collect all mistakes, not only the first."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from traceback import walk_tb
from typing import Any, TypeVar

from ..common.messages import is_ours, suggestion
from ..common.validation import brief, cut_short
from ..design.failures import recorded_reason
from ..simulators.answers import error_text

T = TypeVar("T")


class Refused(ValueError):
    """A value that is refused for a special reason, which is the message."""


@dataclass(frozen=True)
class Key:
    """What a key of a table accepts."""

    wanted: str = ""  #: what it must be, in words
    read: Callable[[Any], Any] = lambda value: value  #: return the value to use, or raise TypeError or ValueError
    to: str = ""  #: the class that takes it as an argument of the same name; if empty, the reader of the table uses it
    default: Any = None
    missing: str = ""  #: what it is for, if it is required
    by_output: bool = False  #: whether it may be a table by output, if there are several
    refusal: str = "must be {wanted}, got {given}"  #: the message for a value that is not accepted


class Checker:
    """Collector of the mistakes in a problem file.

    A check returns the value of a key, or None after adding a line to ``errors``. The line names the key, what is
    accepted and what was found.
    """

    def __init__(self, top: Collection[str] = ()) -> None:
        self.errors: list[str] = []
        self.top = top  # keys of the file itself, outside its tables

    def add(self, key: str, message: str) -> None:
        """Add the mistake ``message`` at ``key``; an empty key means the file as a whole."""
        name = key.rpartition(".")[2]
        self.errors.append(f"{key}: {message.removeprefix(f'{name} ')}" if key else message)

    def attempt(self, key: str, make: Callable[[], T], within: Mapping[str, str] | None = None) -> T | None:
        """Return what ``make()`` returns; if it raises anything, add the reason at ``key`` and return None.

        ``within`` has more specific keys, by the words with which a reason may begin.
        """
        try:
            return make()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # modules of users may raise anything when they are imported
            raised = [frame for frame, _ in walk_tb(error.__traceback__)][-1]
            expected = isinstance(error, ValueError | TypeError) or is_ours(raised)
            reason = recorded_reason(error_text(error))
            reason = reason.removeprefix(f"{type(error).__name__}: ") if expected else reason
            about = next((word for word in within or () if re.match(rf"{re.escape(word)}\b", reason)), None)
            self.add(key if about is None else (within or {})[about], reason)
            return None

    def table(
        self, keys: Mapping[str, Key], content: dict[str, Any], within: str = "", outputs: Collection[str] = ()
    ) -> dict[str, Any]:
        """Return the value of each key, its default if it is absent, or None if it is wrong."""
        self.known_keys(content, keys, within)
        found = {name: key.default for name, key in keys.items()}
        for name, key in keys.items():
            if name in content:
                found[name] = self.value(dotted(within, name), key, content[name], outputs)
            elif key.missing:
                self.add(dotted(within, name), f"is missing: {key.missing}")
        return found

    def value(self, where: str, key: Key, given: Any, outputs: Collection[str] = ()) -> Any:
        """Return the value as read by a key, or a dictionary of values by output; None if it is wrong."""
        try:
            return key.read(given)
        except (TypeError, ValueError) as error:
            told = str(error) if isinstance(error, Refused) else ""
        if key.by_output and outputs and isinstance(given, dict):
            self.known_keys(given, outputs, where)
            return {name: self.value(f"{where}.{name}", key, given[name]) for name in given if name in outputs}
        self.add(where, told or key.refusal.format(wanted=key.wanted, given=shown(given)))
        return None

    def known_keys(self, table: dict[str, Any], known: Collection[str], within: str = "") -> None:
        """Add a mistake for each key of ``table`` that is not in ``known``, with the closest known key."""
        for name in table:
            if name not in known:
                why = f"is not known{suggestion(name, known)}; valid keys: {', '.join(known)}"
                if within and name in self.top:
                    why = f"belongs above the first table of the file: in TOML, what follows [{within}] is part of it"
                self.add(dotted(within, name), why)


def shown(value: Any) -> str:
    """Return a value in TOML notation, shortened to one line of an error message.

    >>> print(shown({"low": [0.5, True], "name": "fine"}))
    { low = [0.5, true], name = 'fine' }
    """
    return cut_short(_toml(value))


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(each)}" for name, each in value.items()) + " }" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return brief(value) if isinstance(value, str | float | int) else str(value)  # dates and times


def dotted(within: str, name: str) -> str:
    """Return the key of ``name`` in the table ``within``, such as ``inputs.rate``."""
    return f"{within}.{name}" if within else name
