"""`Labels`: title of a run, names and units of its inputs, outputs and costs, and the strings made of these.

No number depends on them. The terminal, figures and pages all take their words from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from ..common.messages import suggestion
from ..common.validation import brief
from ..posterior.estimates import AnyEstimate
from ..posterior.targets import Exceedance, Target
from .costs import of_budget

#: keys of the only output and of costs in ``units`` and ``labels``
OUTPUT, COST = "output", "cost"


@dataclass(frozen=True)
class Labels:
    """Title of a run, and names and units of its inputs, outputs and costs.

    Attributes
    ----------
    title : str
        Title of the run; may be empty.
    units, names : dictionary of str
        Units, and labels to show in place of names; keys are the names of inputs and outputs, "output" for the only
        output, and "cost".

    Examples
    --------
    >>> labels = Labels("Ball", {"speed": "m/s", "output": "m", "cost": "core hours"}, {"output": "range"})
    >>> labels.expected(), labels.axis("speed"), labels.integral_axis(), labels.of_budget(2, 5)
    ('expected range', 'speed (m/s)', 'expected range (m)', '2 of 5 core hours')
    """

    title: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        title: str | None,
        units: Mapping[str, str] | None,
        labels: Mapping[str, str] | None,
        inputs: Sequence[str],
        outputs: Sequence[str] | None,
    ) -> Self:
        """Check the user's title, units and labels and return them."""
        if not isinstance(title, str | None):
            raise TypeError(f"title must be a string, got {brief(title)}")
        known = list(dict.fromkeys([*inputs, *(outputs or [OUTPUT]), COST]))
        return cls(title or "", _checked(units, "units", known), _checked(labels, "labels", known))

    def to_dict(self) -> dict[str, Any]:
        """Return the non-empty entries in JSON-serialisable form, keyed by the argument names of `amsbq.integrate`."""
        all_of_them = {"title": self.title, "units": dict(self.units), "labels": dict(self.names)}
        return {name: value for name, value in all_of_them.items() if value}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Rebuild labels from the output of `to_dict`; other entries are ignored."""
        title, units, names = content.get("title", ""), content.get("units", {}), content.get("labels", {})
        if not all(isinstance(text, str) for text in [title, *units.values(), *names.values()]):
            raise TypeError(f"titles, units and labels must be strings, got {brief([title, units, names])}")
        return cls(title, units, names)

    def of_output(self, output: str) -> Self:
        """Return the labels of a run for one of several outputs alone."""
        own = [
            {**known, OUTPUT: known[output]} if output in known and OUTPUT not in known else known
            for known in (self.units, self.names)
        ]
        return replace(self, units=own[0], names=own[1])

    def unit(self, name: str = "") -> str:
        """Return the unit of an input, an output or costs by name, by default of the only output; empty if none."""
        return self.units.get(name or OUTPUT, "")

    def label(self, name: str) -> str:
        """Return the label of an input or an output, or its name if it has no label."""
        return self.names.get(name, name)

    def measured(self, text: str, name: str = "") -> str:
        """Return a number as text with its unit."""
        return f"{text} {self.unit(name)}".rstrip()

    def axis(self, name: str, otherwise: str = "") -> str:
        """Return the axis title of an input, an output or costs, with ``otherwise`` as the name if it has no label.

        >>> Labels(units={"a": "m"}, names={"a": "width"}).axis("a"), Labels().axis("output", "average output")
        ('width (m)', 'average output')
        """
        return with_unit(self.names.get(name, otherwise or name), self.unit(name))

    def expected(self, output: str = "", log: bool = False, limit: bool = False) -> str:
        """Return the name of the answer: "expected ..." with a label, or else the name of the output or "integral"."""
        label = self.names.get(output or OUTPUT, "")
        wanted = f"expected {label}" if label else output or "integral"
        if log and (label or not output):
            wanted = f"log of the {wanted}"
        return wanted + (" in the limit" if limit else "")

    def integral_axis(self, output: str = "", std: bool = False) -> str:
        """Return the title of an axis for the integral, or for its standard deviation."""
        label = self.names.get(output or OUTPUT, "")
        integral = f"expected {label}" if label else f"integral of {output}" if output else "integral"
        return with_unit(f"standard deviation of the {integral}" if std else integral, self.unit(output))

    def of_estimate(self, estimate: AnyEstimate, outputs: Sequence[str] | None) -> AnyEstimate:
        """Return an estimate of the only output, or those of several, with their units and labels."""
        if outputs is None:
            return estimate.in_unit(self.unit())
        return estimate.in_units(*zip(*((self.unit(name), self.label(name)) for name in outputs), strict=True))

    def target_unit(self, target: Target, output: str = "") -> str:
        """Return the unit of the target of an output.

        >>> labels = Labels(units={"output": "m", "peak": "s"})
        >>> labels.target_unit("variance"), labels.target_unit("mean", "peak")
        ('m²', 's')
        """
        unit = self.unit(output)
        return squared(unit) if target == "variance" else "" if isinstance(target, Exceedance) else unit

    def of_budget(self, spent: float, budget: float | None, digits: int = 6) -> str:
        """Return the spent part of a budget in words."""
        return self.measured(of_budget(spent, budget, digits), COST)

    def at(self, names: Sequence[str], x: Sequence[float] | Any, digits: int = 4) -> str:
        """Return the values of inputs in words, as in "speed = 40 m/s, angle = 0.5"."""
        pairs = zip(names, np.asarray(x).tolist(), strict=True)
        return ", ".join(self.measured(f"{name} = {value:.{digits}g}", name) for name, value in pairs)


def with_unit(name: str, unit: str) -> str:
    """Return a name with a unit in parentheses, if there is one.

    >>> with_unit("speed", "m/s"), with_unit("speed", "")
    ('speed (m/s)', 'speed')
    """
    return f"{name} ({unit})" if unit else name


def squared(unit: str) -> str:
    """Return the unit of a square.

    >>> squared("m"), squared("m/s"), squared("")
    ('m²', '(m/s)²', '')
    """
    return f"{unit}²" if unit.isalpha() else f"({unit})²" if unit else ""


def _checked(given: Mapping[str, str] | None, what: str, known: Sequence[str]) -> dict[str, str]:
    """Check a dictionary of strings by name and return it; ``what`` is its name in errors."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(text, str) for text in given.values()):
        raise TypeError(f"{what} must be a dictionary of strings, such as {{'output': 'm'}}, got {brief(given)}")
    for name in given:
        if name not in known:
            valid = f"valid names: {', '.join(known)}"
            raise ValueError(f"{what} contains {name!r}, which is not known{suggestion(str(name), known)}; {valid}")
    return {name: text.strip() for name, text in given.items() if text.strip()}
