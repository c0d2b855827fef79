"""The distribution of the inputs in a problem file: the tables ``[inputs]`` and ``[correlations]``, or samples."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy

from ..common.messages import suggestion
from ..measures.adapters import as_measure
from ..measures.base import Measure
from ..measures.discrete import TOTAL_TOLERANCE
from ..measures.empirical import Empirical
from ..measures.gaussian import GaussianCopula
from ..measures.product import Independent, Product
from ..simulators.numerals import decimal_comma
from ..simulators.tables import separator
from .checks import Checker, shown
from .schema import BOUNDS, NUMBER, PROBABILITIES, WORDS, distribution_keys, is_number

#: names of the inputs, and their joint distribution, or None if it is wrong
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
            self.checker.add("inputs", f"must be either {accepted}{both}")
            return [], None
        if samples is not None and "correlations" in content:
            self.checker.add("correlations", "samples have their own: use correlations only with a table [inputs]")
        return self._table(inputs, content.get("correlations")) if samples is None else self._samples(samples)

    def words(self, content: dict[str, Any]) -> dict[str, dict[str, str]]:
        """Return the units and the labels in the tables of inputs, by input name."""
        inputs = content.get("inputs")
        entries = inputs.items() if isinstance(inputs, dict) else []
        tables = {name: entry for name, entry in entries if isinstance(entry, dict)}
        return {
            f"{word}s": {
                name: self.checker.value(f"inputs.{name}.{word}", key, entry[word]) or ""
                for name, entry in tables.items()
                if word in entry
            }
            for word, key in WORDS.items()
        }

    def _table(self, inputs: Any, correlations: Any) -> Inputs:
        if not isinstance(inputs, dict) or not inputs:
            self.checker.add("inputs", f"must be a table with at least one name = {{ ... }}, got {shown(inputs)}")
            return [], None
        names = list(inputs)
        for name in names:
            if not re.fullmatch(r"[A-Za-z_]\w*", name):
                self.checker.add(
                    f"inputs.{name}", "a name consists of letters, digits and _, and does not begin with a digit"
                )
        marginals = [self._marginal(f"inputs.{name}", _without_words(entry)) for name, entry in inputs.items()]
        if any(marginal is None for marginal in marginals):
            return names, None
        for name, marginal in zip(names, marginals, strict=True):  # one at a time first, so that a mistake has a name
            if self.checker.attempt(f"inputs.{name}", partial(as_measure, [marginal])) is None:
                marginals = []
        if not marginals:
            return names, None
        if correlations is None:
            return names, self.checker.attempt("inputs", lambda: as_measure(marginals))
        return names, self._dependent(names, marginals, correlations)

    def _dependent(self, names: list[str], marginals: list[Any], correlations: Any) -> Measure | None:
        """Return a copula of the inputs that ``correlations`` names, independent of the others; None if it is wrong."""
        accepted = "pairs of inputs with the correlation of their normal scores, such as a = { b = 0.5 }"
        if not isinstance(correlations, dict) or not all(isinstance(row, dict) for row in correlations.values()):
            self.checker.add("correlations", f"must be a table of {accepted}, got {shown(correlations)}")
            return None
        matrix = np.eye(len(names))
        for one, row in correlations.items():
            for other in row:
                key, unknown = f"correlations.{one}.{other}", [name for name in (one, other) if name not in names]
                value = self.checker.value(key, NUMBER, row[other])
                if unknown or one == other:
                    itself = "the correlation of an input with itself is 1: leave it out"
                    reason = f"there is no input {unknown[0]!r}{suggestion(unknown[0], names)}" if unknown else itself
                    self.checker.add(key, reason)
                elif value is not None:
                    i, j = names.index(one), names.index(other)
                    matrix[i, j] = matrix[j, i] = value
        together = np.flatnonzero((matrix != np.eye(len(names))).any(axis=1)).tolist()
        if self.checker.errors or not together:
            return None if self.checker.errors else self.checker.attempt("inputs", lambda: as_measure(marginals))
        listed = [as_measure([marginals[d]]) for d in together]
        distributions = [m.distributions[0] if isinstance(m, Product) else _uniform(m) for m in listed]
        copula = self.checker.attempt(
            "correlations", lambda: GaussianCopula(distributions, matrix[np.ix_(together, together)])
        )
        apart = [d for d in range(len(names)) if d not in together]
        if copula is None or not apart:
            return copula
        return Independent([copula, as_measure([marginals[d] for d in apart])], [together, apart])

    def _marginal(self, key: str, entry: Any) -> Any:
        """Return bounds or a frozen scipy.stats distribution, as `as_measure` takes them; None if it is wrong."""
        if not isinstance(entry, dict):
            accepted = "{ distribution = 'norm', loc = 0, scale = 1 }, { low = 0, high = 1 } or { probabilities = ... }"
            self.checker.add(key, f"must be {accepted}, got {shown(entry)}")
            return None
        if "probabilities" in entry or "values" in entry:
            return self._probabilities(key, entry)
        return self._distribution(key, entry) if "distribution" in entry else self._bounds(key, entry)

    def _probabilities(self, key: str, entry: dict[str, Any]) -> dict[Any, Any] | None:
        """Return values, or names of categories, with their probabilities; None if it is wrong."""
        values, given = self.checker.table(PROBABILITIES, entry, key).values()
        listed = list(given.values()) if isinstance(given, dict) else given
        numbers = isinstance(listed, list) and all(is_number(each) and 0 <= each <= 1 for each in listed)
        if isinstance(listed, list) and not (numbers and abs(sum(listed) - 1) <= TOTAL_TOLERANCE):
            total = f", which sum to {sum(listed):.6g}" if numbers else ""
            what = f"must be numbers from 0 to 1 that sum to 1, got {shown(given)}{total}"
            self.checker.add(f"{key}.probabilities", what)
            return None
        if isinstance(given, dict) and values is None:
            return given
        plain = isinstance(values, list) and all(isinstance(value, str | int | float) for value in values)
        if plain and isinstance(given, list) and len(given) == len(values) == len(set(values)):
            return dict(zip(values, given, strict=True))
        self.checker.add(
            key,
            "must be { probabilities = { idle = 0.2, full = 0.8 } } for categories, or { values = [0, 1, 4], "
            f"probabilities = [0.2, 0.5, 0.3] }} for different numbers, got {shown(entry)}",
        )
        return None

    def _bounds(self, key: str, entry: dict[str, Any]) -> tuple[float, float] | None:
        low, high, _ = self.checker.table(BOUNDS, entry, key).values()
        if low is None or high is None:
            return None
        if not low < high:
            self.checker.add(key, f"low must be below high, got {low:g} and {high:g}")
            return None
        return low, high

    def _distribution(self, key: str, entry: dict[str, Any]) -> Any:
        name = entry["distribution"]
        family = getattr(scipy.stats, name, None) if isinstance(name, str) else None
        families = scipy.stats.rv_continuous, scipy.stats.rv_discrete
        if not isinstance(family, families):
            known = [d for d in dir(scipy.stats) if isinstance(getattr(scipy.stats, d), families)]
            message = f"{name!r} is not a distribution of scipy.stats{suggestion(name, known)}"
            self.checker.add(f"{key}.distribution", message)
            return None
        shapes = [shape.strip() for shape in family.shapes.split(",")] if family.shapes else []
        common = ("loc", "scale") if isinstance(family, scipy.stats.rv_continuous) else ("loc",)
        if both := {"low", "high"} & set(entry) - set(shapes):
            self.checker.add(
                key, f"has a distribution and {' and '.join(sorted(both, reverse=True))}: keep one of them"
            )
            return None
        found = self.checker.table(distribution_keys(name, shapes, common), entry, key)
        parameters = {each: found[each] for each in (*shapes, *common) if each in entry or each in shapes}
        if None in parameters.values():
            return None
        frozen = self.checker.attempt(key, lambda: family(**parameters))
        if frozen is not None and np.isnan(frozen.support()).any():  # SciPy's answer to invalid parameters
            values = ", ".join(f"{parameter} = {value:g}" for parameter, value in parameters.items())
            self.checker.add(key, f"{name} does not exist for {values}")
            return None
        return frozen

    def _samples(self, name: Any) -> Inputs:
        if not isinstance(name, str):
            self.checker.add("samples", f"must be the name of a CSV file, got {shown(name)}")
            return [], None
        try:
            lines = (self.folder / name).read_text(encoding="utf-8-sig").splitlines()
            mark = separator(lines[0]) if lines else None
            numbered = [(n, row) for n, row in enumerate(csv.reader(lines, delimiter=mark or ","), 1) if row]
            (_, header), *rows = numbered
        except OSError as error:
            self.checker.add("samples", f"{name} cannot be read: {error.strerror or error}")
            return [], None
        except UnicodeDecodeError:
            self.checker.add("samples", f"{name} is not a text file in UTF-8")
            return [], None
        except (ValueError, csv.Error):
            self.checker.add("samples", f"{name} must have a header line of names, and a line for each sample")
            return [], None
        header = [column.strip() for column in header]
        if any(_is_number(column) for column in header):
            self.checker.add("samples", f"{name} must begin with a header line of names, got {','.join(header)}")
            return [], None
        table = np.empty((len(rows), len(header)))
        for i, (line, row) in enumerate(rows):
            try:
                table[i] = np.array(row, dtype=float).reshape(len(header))
            except ValueError:
                comma = next((hint for cell in row if (hint := decimal_comma(cell))), "")
                got = f"got {(mark or ',').join(row)}{comma}"
                self.checker.add("samples", f"line {line} of {name} must be {len(header)} numbers, {got}")
                return [], None
        if len(set(header)) < len(header):
            self.checker.add("samples", f"{name} has two columns with the same name: {', '.join(header)}")
        weights = table[:, header.index("weight")] if "weight" in header else None
        names = [column for column in header if column != "weight"]
        values = table[:, [header.index(column) for column in names]]
        return names, self.checker.attempt("samples", lambda: Empirical(values, weights))


def _without_words(entry: Any) -> Any:
    """Return an input without its unit and its label, which `InputsReader.words` reads."""
    return {key: value for key, value in entry.items() if key not in WORDS} if isinstance(entry, dict) else entry


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _uniform(measure: Measure) -> Any:
    """Return the scipy.stats distribution of a `Uniform` measure of one input."""
    ((low, high),) = measure.bounds
    return scipy.stats.uniform(low, high - low)
