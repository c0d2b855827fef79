"""`Estimates`: the distributions of several quantities, such as the integrals of several outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, overload

import numpy as np

from ..common.markup import table
from ..common.validation import Array, read_only
from .estimate import Estimate
from .outputs import output_number

#: an `Estimate`, or `Estimates` with several outputs: only a run determines which
AnyEstimate: TypeAlias = Any


class Estimates(Sequence[Estimate]):
    """The distributions of M quantities, each a separate `Estimate`: integrals of outputs, or values of a curve.

    Parameters
    ----------
    parts : list of Estimate
        One for each quantity.
    names : list of str, optional
        Their names; by default "0", "1" and so on.
    labels : list of str, optional
        What to call them in print; by default their names.

    Attributes
    ----------
    mean, std : (M,) array
        Means and standard deviations; NaN where nothing is known.

    Examples
    --------
    >>> both = Estimates([Estimate([1.0], [0.1]), Estimate([20.0], [1.0])], ["peak", "time"])
    >>> both.mean, both["time"].std
    (array([ 1., 20.]), 1.0)
    >>> print(both)
    peak: 1.00 ± 0.10 (std), 95 % between 0.80 and 1.20
    time: 20.0 ± 1.0 (std), 95 % between 18.0 and 22.0
    """

    def __init__(
        self, parts: Sequence[Estimate], names: Sequence[str] | None = None, labels: Sequence[str] | None = None
    ) -> None:
        self.parts = tuple(parts)
        self.names = tuple(str(number) for number in range(len(self.parts))) if names is None else tuple(names)
        if len(self.names) != len(self.parts):
            raise ValueError(f"there are {len(self.names)} names and {len(self.parts)} estimates")
        self.labels = self.names if labels is None else tuple(labels)
        self.mean: Array = read_only(np.array([part.mean for part in self.parts]))
        self.std: Array = read_only(np.array([part.std for part in self.parts]))

    @overload
    def __getitem__(self, index: str | int) -> Estimate: ...

    @overload
    def __getitem__(self, index: slice) -> Estimates: ...

    def __getitem__(self, index: str | int | slice) -> Estimate | Estimates:
        if isinstance(index, slice):
            return Estimates(self.parts[index], self.names[index], self.labels[index])
        return self.parts[output_number(self.names, index) if isinstance(index, str) else index]

    def __len__(self) -> int:
        return len(self.parts)

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return (low, high), shape (M,) each: intervals that each contain a quantity with probability ``level``."""
        low, high = np.array([part.interval(level) for part in self.parts]).T
        return read_only(low), read_only(high)

    def quantile(self, p: float) -> Array:
        """Return, for each quantity, the number below which it lies with probability p, shape (M,)."""
        return read_only(np.array([part.quantile(p) for part in self.parts]))

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates by name in JSON-serialisable form, each as from `Estimate.to_dict`."""
        return {"outputs": {name: part.to_dict() for name, part in zip(self.names, self.parts, strict=True)}}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Estimates:
        """Return the estimates from the content that `to_dict` returned."""
        parts = content["outputs"]
        return cls([Estimate.from_dict(part) for part in parts.values()], list(parts))

    def in_units(self, units: Sequence[str], labels: Sequence[str] | None = None) -> Estimates:
        """Return the estimates with the units and labels with which they are printed."""
        parts = [part.in_unit(unit) for part, unit in zip(self.parts, units, strict=True)]
        return Estimates(parts, self.names, self.labels if labels is None else labels)

    def summary(self, names: Sequence[str] | None = None, units: Sequence[str] | None = None) -> str:
        """Return mean, standard deviation and 95 % interval of each quantity as text, one on each line.

        ``names`` and ``units`` replace the labels and units of the estimates.
        """
        called, measured = names or self.labels, units or [part.unit for part in self.parts]
        width = max(len(name) for name in called) + 1
        lines = zip(called, self.parts, measured, strict=True)
        return "\n".join(f"{name + ':':{width}} {part.summary(unit)}" for name, part, unit in lines)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"Estimates of {', '.join(self.names)}\n{self.summary()}"

    def _repr_html_(self) -> str:
        """Return a table, for notebooks."""
        low, high = self.interval()
        columns = zip(self.labels, self.mean, self.std, low, high, strict=True)
        rows = [(name, *(f"{value:.6g}" for value in values)) for name, *values in columns]
        return table(("", "mean", "std", "95 % from", "to"), rows)


def unknown_estimate(outputs: Sequence[str] | None) -> AnyEstimate:
    """Return the estimate before any observation, of a single output or of the named ones."""
    return Estimate.unknown() if outputs is None else Estimates([Estimate.unknown()] * len(outputs), outputs)


def estimate_from_dict(content: Mapping[str, Any]) -> AnyEstimate:
    """Return the estimate, of one output or of several, from the content that ``to_dict`` returned."""
    return Estimates.from_dict(content) if "outputs" in content else Estimate.from_dict(dict(content))
