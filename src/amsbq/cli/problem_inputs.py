"""The distribution of the inputs in a problem file: the table ``[inputs]``, or a CSV file of samples."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy

from ..measures.adapters import as_measure
from ..measures.base import Measure
from ..measures.empirical import Empirical
from ..validation import brief
from .problem_checks import Checker, suggestion

#: names of the inputs, and their joint distribution unless something was wrong with it
Inputs: TypeAlias = tuple[list[str], Measure | None]


@dataclass(frozen=True)
class InputsReader:
    """Reader of the inputs of a problem file; mistakes go to the checker."""

    folder: Path  #: of the problem file
    checker: Checker

    def read(self, content: dict[str, Any]) -> Inputs:
        """Return the names and the distribution of the inputs of a whole problem file."""
        inputs, samples = content.get("inputs"), content.get("samples")
        if (inputs is None) == (samples is None):
            both = ", not both" if inputs is not None else ""
            accepted = "a table [inputs] of names and distributions, or samples = 'file.csv'"
            self.checker.add("inputs", f"give either {accepted}{both}")
            return [], None
        return self._table(inputs) if samples is None else self._samples(samples)

    def _table(self, inputs: Any) -> Inputs:
        if not isinstance(inputs, dict) or not inputs:
            self.checker.add("inputs", f"must be a table with at least one name = {{ ... }}, got {brief(inputs)}")
            return [], None
        names = list(inputs)
        for name in names:
            if not re.fullmatch(r"[A-Za-z_]\w*", name):
                self.checker.add(
                    f"inputs.{name}", "a name is made of letters, digits and _, and begins with a letter or _"
                )
        marginals = [self._marginal(f"inputs.{name}", entry) for name, entry in inputs.items()]
        if any(marginal is None for marginal in marginals):
            return names, None
        for name, marginal in zip(names, marginals, strict=True):  # one at a time first: the mistake has a name then
            if self.checker.attempt(f"inputs.{name}", partial(as_measure, [marginal])) is None:
                marginals = []
        return names, self.checker.attempt("inputs", lambda: as_measure(marginals)) if marginals else None

    def _marginal(self, key: str, entry: Any) -> Any:
        """Return bounds or a frozen scipy.stats distribution, as `as_measure` takes them; None if it is wrong."""
        if not isinstance(entry, dict):
            accepted = "{ distribution = 'norm', loc = 0, scale = 1 } or { low = 0, high = 1 }"
            self.checker.add(key, f"must be {accepted}, got {brief(entry)}")
            return None
        return self._distribution(key, entry) if "distribution" in entry else self._bounds(key, entry)

    def _bounds(self, key: str, entry: dict[str, Any]) -> tuple[float, float] | None:
        self.checker.known_keys(entry, ("low", "high", "distribution"), key)
        low, high = (
            self.checker.number(entry, end, within=key, required="low and high, or a distribution")
            for end in ("low", "high")
        )
        if low is None or high is None:
            return None
        if not low < high:
            self.checker.add(key, f"low must be below high, got {low:g} and {high:g}")
            return None
        return low, high

    def _distribution(self, key: str, entry: dict[str, Any]) -> Any:
        name = entry["distribution"]
        family = getattr(scipy.stats, name, None) if isinstance(name, str) else None
        if not isinstance(family, scipy.stats.rv_continuous):
            known = [d for d in dir(scipy.stats) if isinstance(getattr(scipy.stats, d), scipy.stats.rv_continuous)]
            message = f"{name!r} is no continuous distribution of scipy.stats{suggestion(name, known)}"
            self.checker.add(f"{key}.distribution", message)
            return None
        shapes = [shape.strip() for shape in family.shapes.split(",")] if family.shapes else []
        self.checker.known_keys(entry, ("distribution", *shapes, "loc", "scale"), key)
        parameters = {
            parameter: self.checker.number(
                entry, parameter, within=key, required=f"a parameter of {name}" if parameter in shapes else None
            )
            for parameter in (*shapes, "loc", "scale")
            if parameter in entry or parameter in shapes
        }
        if None in parameters.values():
            return None
        frozen = self.checker.attempt(key, lambda: family(**parameters))
        if frozen is not None and np.isnan(frozen.support()).any():  # as SciPy answers for impossible parameters
            values = ", ".join(f"{parameter} = {value:g}" for parameter, value in parameters.items())
            self.checker.add(key, f"{name} does not exist for {values}")
            return None
        return frozen

    def _samples(self, name: Any) -> Inputs:
        if not isinstance(name, str):
            self.checker.add("samples", f"must be the name of a CSV file, got {brief(name)}")
            return [], None
        try:
            with (self.folder / name).open(newline="", encoding="utf-8-sig") as file:
                header, *rows = csv.reader(file)
        except OSError as error:
            self.checker.add("samples", f"{name} cannot be read: {error.strerror or error}")
            return [], None
        except (ValueError, csv.Error):
            self.checker.add("samples", f"{name} must have a line of names, and a line for each sample")
            return [], None
        header = [column.strip() for column in header]
        table = np.empty((len(rows), len(header)))
        for i, row in enumerate(rows):
            try:
                table[i] = np.array(row, dtype=float).reshape(len(header))
            except ValueError:
                self.checker.add(
                    "samples", f"line {i + 2} of {name} must be {len(header)} numbers, got {','.join(row)}"
                )
                return [], None
        if len(set(header)) < len(header):
            self.checker.add("samples", f"{name} has two columns of the same name: {', '.join(header)}")
        weights = table[:, header.index("weight")] if "weight" in header else None
        names = [column for column in header if column != "weight"]
        values = table[:, [header.index(column) for column in names]]
        return names, self.checker.attempt("samples", lambda: Empirical(values, weights))
