"""Failed evaluations: which values are rejected, which locations to avoid for a while, which sources to retire."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..common.validation import Array, Values, read_only
from ..posterior.outputs import by_output

#: failures in a row that retire a source: five in a row have a probability of 0.4 % if a third of them fails
RETIRED_AFTER = 5

#: number of evaluations for which the location of a source's first failure is avoided; each further failure doubles it,
#: so that a region where a simulator always fails costs only a logarithmic number of evaluations
AVOIDED_FOR = 4

#: maximum number of characters of a recorded reason: room for a long message with the end of a traceback, but journals
#: stay small
REASON_LENGTH = 2000

#: how many of these are taken from the end, where tracebacks and programs say what was wrong
REASON_END = 800

#: largest absolute value, and largest variance: floats end at 1.8e308, and nearly singular models have weights of
#: observations up to about 1e7 times as large as the values
LARGEST = 2e300


#: beginning of the reason of an evaluation that took too long: the next one may be quicker
TIMED_OUT = "it took more than"

#: the text after these words in a reason is quoted from a simulator, and may differ each time; journals of earlier
#: releases have "it said" and "is no number"
QUOTED = re.compile(
    r"; it (?:said|printed): |; it ends with: |; the simulator returned |is (?:no|not a) number: |, got "
)
#: the value and the range in the reason of an evaluation whose value was refused
OUTSIDE = re.compile(r"the value (\S+) is outside the valid range, ([^;]+)")
NUMBER = re.compile(r"0x[0-9a-f]+|[-+]?\d+(\.\d*)?(e[-+]?\d+)?")


class Failures:
    """The failures of each source.

    The location of a failure is avoided for a number of evaluations, which doubles with each further failure of the
    source: a chance failure is soon forgotten, and a region where a simulator always fails is rarely tried.

    Attributes
    ----------
    retired : set of int
        The sources that are no longer evaluated.
    """

    def __init__(self, n_sources: int) -> None:
        self.retired: set[int] = set()
        self._in_a_row, self._total = [0] * n_sources, [0] * n_sources
        # source, x, and the number of evaluations after which it is allowed again
        self._avoided: list[tuple[int, Array, int]] = []

    def failed(self, source: int, x: Array, evaluations: int) -> bool:
        """Record a failure at x (D,) after that many evaluations of all sources; return whether it retires the source.

        For a source that is already retired, this is False.
        """
        self._avoided.append((source, x, evaluations + AVOIDED_FOR * 2 ** self._total[source]))
        self._total[source] += 1
        self._in_a_row[source] += 1
        if self._in_a_row[source] < RETIRED_AFTER or source in self.retired:
            return False
        self.retired.add(source)
        return True

    def reinstate(self) -> None:
        """Give retired sources another chance: the reason for their failures may have passed."""
        for source in self.retired:
            self._in_a_row[source] = 0
        self.retired.clear()

    def succeeded(self, source: int) -> None:
        """Record an evaluation that did not fail."""
        self._in_a_row[source] = 0

    def avoided(self, evaluations: int) -> list[tuple[int, Array]]:
        """Return the pairs (source, x) to be avoided after that many evaluations of all sources."""
        return [(source, x) for source, x, until in self._avoided if until > evaluations]


def rejection(value: float, valid: tuple[float, float] | None, variance: float = 0.0) -> str:
    """Return the reason why a value cannot be used, or an empty string if it can be used.

    Parameters
    ----------
    value : float
        The value of a source.
    valid : (low, high) or None
        The range of acceptable values, both ends included; None accepts every value that the model can use.
    variance : float
        Variance of the noise on the value.

    >>> rejection(12.0, (0.0, 10.0))
    'the value 12 is outside the valid range, 0 to 10'
    """
    if not math.isfinite(value):
        return f"the value must be finite, got {value}"
    if max(abs(value), variance) > LARGEST:
        return f"the value {value:.6g} with variance {variance:.6g} is too large: neither may exceed {LARGEST:g}"
    if valid is not None and not valid[0] <= value <= valid[1]:
        return f"the value {value:.6g} is outside the valid range, {valid[0]:.6g} to {valid[1]:.6g}"
    return ""


def wrong_range(reasons: Sequence[str]) -> str:
    """Return a sentence saying that a range is probably wrong, if all evaluations failed because of it; otherwise "".

    >>> wrong_range([rejection(212.0, (0, 100)), rejection(188.0, (0, 100))])
    'all values are outside the range that was declared, 0 to 100: they are between 188 and 212. That range is probably
    wrong: change output_range, or valid of the source'
    """
    found = [outside for reason in reasons if (outside := OUTSIDE.search(reason))]
    if not found or len(found) < len(reasons):
        return ""
    values = [float(outside[1]) for outside in found]
    return (
        f"all values are outside the range that was declared, {found[-1][2]}: they are between {min(values):.6g} and "
        f"{max(values):.6g}. That range is probably wrong: change output_range, or valid of the source"
    )


def usable(valid: Any, outputs: Sequence[str] | None, value: Values, variance: Values) -> tuple[Values, str]:
    """Return the usable part of a source's value, and the reason why it is not usable ("" if it is).

    With several outputs, unusable ones become NaN, and the value is usable if any of them is.
    """
    if outputs is None:
        return value, rejection(value, valid, variance)
    return usable_outputs(value, variance, by_output(valid, outputs), outputs)


def usable_outputs(
    values: Array, variances: Array, valid: Sequence[tuple[float, float] | None], names: Sequence[str]
) -> tuple[Array, str]:
    """Return the values of M outputs, with NaN for unusable ones, and the reason if none is usable ("" otherwise).

    >>> usable_outputs(np.array([12.0, 1.0]), np.zeros(2), [(0.0, 10.0), None], ["peak", "time"])
    (array([nan,  1.]), '')
    """
    refused = [rejection(*each) for each in zip(values.tolist(), valid, variances.tolist(), strict=True)]
    usable = read_only(np.where([not reason for reason in refused], values, np.nan))
    if not all(refused):
        return usable, ""
    reasons = [f"{name}: {reason}" for name, reason, y in zip(names, refused, values, strict=True) if np.isfinite(y)]
    return usable, "; ".join(reasons) or f"none of the outputs is finite: {', '.join(names)}"


def failure_kind(reason: str) -> str:
    """Return the part of a reason that stays the same when a failure repeats: no quotations, no numbers.

    >>> failure_kind("it ended with exit code 3; it printed: no licence") == failure_kind("it ended with exit code 3")
    True
    >>> failure_kind("the variance is -0.5; the simulator returned (1, ...") == failure_kind("the variance is -1e-05")
    True
    """
    return NUMBER.sub("#", QUOTED.split(reason)[0])


def recorded_reason(reason: object) -> str:
    r"""Return a failure's reason in its recorded form: one line of limited length, no control characters.

    Messages of simulators may contain anything. What cannot be printed, such as undecodable bytes or terminal commands,
    is written as an escape sequence. A recorded reason stays unchanged.

    >>> recorded_reason("no\n  licence \x1b[31m")
    'no licence \\x1b[31m'
    """
    line = _on_one_line(_without_middle(str(reason)))
    printable = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    return _on_one_line(_without_middle(printable)) or "failed"


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _without_middle(text: str) -> str:
    """Return ``text``, shortened to its beginning and end if it is too long for a reason."""
    gap = " ... "
    begin = REASON_LENGTH - REASON_END - len(gap)
    return text if len(text) <= REASON_LENGTH else f"{text[:begin]}{gap}{text[-REASON_END:]}"


def missing_text(name: str, output: str) -> str:
    """Return the warning for a source that seems to lack an output."""
    return (
        f"{name} returned no {output} {RETIRED_AFTER} times in a row: evaluations of it are no longer chosen for that "
        "output. They are tried again when the run is resumed"
    )


def retired_text(name: str, primary: bool, reason: str) -> str:
    """Return the warning for a source that is retired."""
    consequence = "the run ends with its current estimate" if primary else "the run continues without it"
    return (
        f"{name} failed {RETIRED_AFTER} times in a row and is retired; {consequence}. "
        f"It is tried again when the run is resumed. The last failure: {reason}"
    )
