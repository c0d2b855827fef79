"""`Sensitivity`: the share of the output's variance that each input explains, as Sobol' indices with error bars.

The first-order index of x_g is Var E[f | x_g] / Var f, what it explains by itself. Its total index is
1 - Var E[f | all others] / Var f, what it explains together with all others. Both are computed for each sample path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any

import numpy as np

from ..common.markup import table
from ..common.validation import brief
from .component import Component
from .effects import effects, transformed_effects
from .estimate import Estimate
from .estimates import Estimates
from .latent import ARCSINE
from .posterior import Posterior, mixed


@dataclass(frozen=True)
class SensitivitySettings:
    """Limits of what is worth reporting."""

    negligible: float = 0.02  #: share of the variance; an input that surely explains less can stay at its median
    unclear: float = 0.1  #: share of the variance; an input matters only if it surely explains more


SETTINGS = SensitivitySettings()
INDICES = ("first", "total")  #: the names of the indices of an input


class Sensitivity:
    """Sobol' indices of the inputs, or of groups of them; made by `Result.sensitivity`.

    Attributes
    ----------
    names : list of str
        Names of the inputs or groups, in the order of the indices.
    first, total : Estimates
        First-order and total indices, one for each input or group, with ``mean``, ``std`` and ``interval``.
    """

    def __init__(self, names: Sequence[str], first: Estimates, total: Estimates) -> None:
        self.names, self.first, self.total = list(names), first, total

    @classmethod
    def of(cls, posterior: Posterior, groups: Mapping[str, Sequence[int]]) -> Sensitivity:
        """Return the indices of named groups of inputs, which together contain each input once."""
        components = posterior.components
        by_component = [_indices(component, list(groups.values())) for component in components]
        first, total = (
            Estimates([mixed(components, found) for found in zip(*of_index, strict=True)])
            for of_index in zip(*by_component, strict=True)
        )
        return cls(list(groups), first, total)

    def rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each input or group: its name, and both indices with their 95 % intervals."""
        columns = (self.first, self.total)
        return [
            {
                "input": name,
                **{
                    key: {"mean": one.mean, "std": one.std, "interval": one.interval()}
                    for key, one in zip(INDICES, pair, strict=True)
                },
            }
            for name, *pair in zip(self.names, *columns, strict=True)
        ]

    def table(self) -> str:
        """Return the indices as a table in text, with their 95 % intervals."""
        width = max(5, *(len(name) for name in self.names))
        lines = [f"{'input':{width}}  {'first-order':^24}  {'total':^24}"]
        for name, *cells in self._cells():
            lines.append(f"{name:{width}}  " + "  ".join(f"{cell:^24}" for cell in cells).rstrip())
        return "\n".join(lines)

    def _cells(self) -> list[list[str]]:
        """Return the name and both indices of each input or group as text."""
        return [
            [row["input"], *(f"{row[key]['mean']:.3f} ({_interval(row[key]['interval'])})" for key in INDICES)]
            for row in self.rows()
        ]

    def _repr_html_(self) -> str:
        sentences = "<br>".join(escape(sentence) for sentence in self.sentences())
        return table(["input", "first-order", "total"], self._cells()) + f"<p>{sentences}</p>"

    def sentences(self) -> list[str]:
        """Return conclusions from the indices: which input matters most, and which can be left out."""
        order, (low, high) = np.argsort(-self.total.mean), self.total.interval()
        top = int(order[0])
        found = ["The evaluations do not show yet which input matters."]
        if low[top] >= SETTINGS.unclear:
            explained = (
                f"{100 * self.total.mean[top]:.0f} % of the variance, {100 * self.first.mean[top]:.0f} % by itself"
            )
            found = [f"{self.names[top]} matters most: it explains {explained}."]
            if rivals := [self.names[i] for i in order[1:].tolist() if high[i] > low[top]]:
                found = [f"{self.names[top]} explains {explained}; {' or '.join(rivals)} may matter as much."]
        for i in (int(i) for i in order if high[i] < SETTINGS.negligible):
            share = f"{100 * self.total.mean[i]:.1f} %" if self.total.mean[i] >= 5e-4 else "less than 0.1 %"
            found.append(f"Leave {self.names[i]} at its median: it explains {share} of the variance.")
        return found

    def __str__(self) -> str:
        return "\n".join([self.table(), *self.sentences()])

    __repr__ = __str__


def _indices(component: Component, groups: Sequence[Sequence[int]]) -> tuple[list[Estimate], list[Estimate]]:
    """Return the first-order and the total indices of groups of inputs, by one component."""
    paths, measure = component.paths, component.measure
    if component.separable:
        found = effects(paths, measure, groups)
    else:
        found = transformed_effects(paths, measure, groups, partial(component.values_of, component.latent.target))
    variances = np.maximum(found.variances, np.finfo(float).tiny)
    first, total = (
        [component.few.of_draws(share, ARCSINE) for share in explained / variances]
        for explained in (found.first, found.total)
    )
    return first, total


def grouped(inputs: Sequence[str], groups: Mapping[str, Sequence[str]] | None) -> dict[str, list[int]]:
    """Return the indices of the inputs of each named group; inputs in no group stand alone, under their own names."""
    if not isinstance(groups, Mapping | None):
        raise TypeError(f"groups must be a dictionary of lists of inputs by the name of the group, got {brief(groups)}")
    given = {name: list(members) for name, members in (groups or {}).items()}
    named = [member for members in given.values() for member in members]
    for member in named:
        if member not in inputs:
            valid = ", ".join(inputs)
            raise ValueError(f"groups contains {brief(member)}, which is not an input; valid names: {valid}")
    if len(set(named)) < len(named) or not all(given.values()):
        raise ValueError(f"groups must hold at least one input each, and every input at most once, got {brief(groups)}")
    out = {name: [list(inputs).index(member) for member in members] for name, members in given.items()}
    for d, name in enumerate(inputs):
        if name not in named:
            if name in out:
                raise ValueError(f"{name!r} is the name of a group and of an input that is not in a group")
            out[name] = [d]
    return out


def _interval(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.3f} to {ends[1]:.3f}"
