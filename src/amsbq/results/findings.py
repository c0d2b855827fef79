"""`Finding`: one thing worth knowing of a run, in words; and `Findings`, a list of them that prints as text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..markup import table

Level: TypeAlias = Literal["good", "note", "warning"]


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing of a run.

    Attributes
    ----------
    level : str
        "good", "note" or "warning".
    about : str
        The subject in a word or two: "failures", "constant", "few evaluations", "rise", "disagreement",
        "extrapolation", "fit", "outlier", "noise", "stationarity", "transform", "hyperparameters", "relation", "worth"
        or "outlook".
    text : str
        What was found.
    advice : str
        What to do about it, if there is anything to do.
    """

    level: Level
    about: str
    text: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.about}: {self.text}" + (f" {self.advice}" if self.advice else "")


class Findings(list[Finding]):
    """A list of findings, warnings first, whose text has one of them on each line.

    >>> print(Findings([Finding("good", "fit", "it fits."), Finding("warning", "noise", "there is.", "Declare it.")]))
    warning  noise: there is. Declare it.
    good     fit: it fits.
    """

    def __init__(self, findings: Iterable[Finding]) -> None:
        order = ("warning", "note", "good")
        super().__init__(sorted(findings, key=lambda finding: order.index(finding.level)))

    def __str__(self) -> str:
        return "\n".join(f"{finding.level:8} {finding}" for finding in self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return a table with a row for each finding, for notebooks."""
        rows = [(finding.level, finding.about, f"{finding.text} {finding.advice}".strip()) for finding in self]
        return table(("", "about", "finding"), rows)


def brief(number: float) -> str:
    """Return a number with two digits, and without an exponent if it is large."""
    return f"{number:.0f}" if 10 <= number < 1e6 else f"{number:.2g}"


def plural(n: int) -> str:
    """Return a number of evaluations in words."""
    return "one evaluation" if n == 1 else f"{n} evaluations"


def location(inputs: Iterable[str], x: Iterable[float]) -> str:
    """Return the values of all inputs with their names."""
    return ", ".join(f"{name} = {value:.4g}" for name, value in zip(inputs, x, strict=True))
