"""Checks on the tables of a problem file, which collect every mistake instead of stopping at the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ..design.failures import recorded_reason
from ..messages import suggestion
from ..simulators.answers import error_text
from ..validation import brief, number

T = TypeVar("T")


class Checker:
    """Collector of the mistakes in a problem file.

    A check returns the value that it was asked for, or None after adding a line to ``errors``. The line names the key,
    says what is accepted and what was found.
    """

    def __init__(self) -> None:
        self.errors: list[str] = []

    def add(self, key: str, message: str) -> None:
        """Add the mistake ``message`` at ``key``."""
        self.errors.append(f"{key}: {message}")

    def attempt(self, key: str, make: Callable[[], T]) -> T | None:
        """Return what ``make()`` returns; if it raises anything, add the reason at ``key`` and return None."""
        try:
            return make()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # modules of users may raise anything when they are imported
            reason, kind = recorded_reason(error_text(error)), type(error).__name__
            expected = isinstance(error, ValueError | TypeError)
            self.add(key, reason.removeprefix(f"{kind}: ") if expected else reason)
            return None

    def known_keys(self, table: dict[str, Any], known: Iterable[str], within: str = "") -> None:
        """Add a mistake for each key of ``table`` that is not in ``known``, with the closest known key."""
        for name in table:
            if name not in known:
                self.add(dotted(within, name), f"is not known{suggestion(name, known)}; there are {', '.join(known)}")

    def number(
        self,
        table: dict[str, Any],
        name: str,
        *,
        within: str = "",
        positive: bool = False,
        required: str | None = None,
        otherwise: str = "",
    ) -> float | None:
        """Return the finite number ``table[name]``, or None if it is absent or wrong.

        Absence is a mistake only if ``required`` says what the number is for; ``otherwise`` names the strings that are
        accepted instead of a number, for the message.
        """
        key = dotted(within, name)
        if name not in table:
            if required is not None:
                self.add(key, f"is missing: {required}")
            return None
        value = table[name]
        if is_number(value) and (value > 0 or not positive):
            return float(value)
        kind = "a positive number" if positive else "a number"
        self.add(key, f"must be {kind}{f' or {otherwise}' if otherwise else ''}, got {brief(value)}")
        return None

    def setting(self, table: dict[str, Any], name: str, accepts: Callable[[Any], bool], accepted: str) -> Any:
        """Return ``table[name]``, or None if it is absent; add a mistake if ``accepts`` says no."""
        value = table.get(name)
        if name in table and not accepts(value):
            self.add(name, f"must be {accepted}, got {brief(value)}")
        return value


def dotted(within: str, name: str) -> str:
    """Return the key of ``name`` inside of the table ``within``, such as ``inputs.rate``."""
    return f"{within}.{name}" if within else name


def is_number(value: Any) -> bool:
    """Return whether a value of a TOML file is a finite number (booleans are not)."""
    try:
        return isinstance(value, int | float) and number(value, "value") is not None
    except (TypeError, ValueError):
        return False
