"""Problem files: a run described in TOML, checked as a whole before anything is evaluated.

budget = 10.0                       # in units of cost
[inputs]                            # named, in order
a = { distribution = "gamma", a = 5, loc = 1, scale = 4 }
b = { low = 0.0, high = 1.0 }
[[sources]]                         # the first one is the primary
python = "epidemic:peak"
[[sources]]
command = ["./ode", "--rate", "{a}"]
cost = 0.01
"""

from __future__ import annotations

import csv
import difflib
import math
import re
import shutil
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from ..design.acquisition import checked_kind
from ..design.integrator import Integrator
from ..design.sources import Source
from ..execution.commands import Command
from ..execution.functions import PythonFunction
from ..execution.umbridge import UMBridge
from ..inference.structures import MODELS
from ..measures.adapters import as_measure
from ..measures.base import Measure
from ..measures.empirical import Empirical

TOP = ("budget", "seed", "model", "acquisition", "rel_tol", "abs_tol", "inputs", "samples", "sources")


KINDS = ("python", "command", "umbridge")


OF_SOURCE = ("name", *KINDS, "cost", "noise", "timeout", "valid")


OF_UMBRIDGE = ("url", "model", "config", "output")


class ProblemError(Exception):
    """All that is wrong with a problem file: a line for each, with the file, the key and what to do."""

    def __init__(self, path: Path, errors: list[str]) -> None:
        super().__init__("\n".join(f"{path}: {error}" for error in errors))
        self.errors = errors


@dataclass(frozen=True)
class Problem:
    """A run as a file describes it."""

    path: Path
    names: list[str]  #: of the inputs
    measure: Measure
    sources: list[Source]
    budget: float
    settings: dict[str, Any]  #: model, acquisition and seed, where they are given
    rel_tol: float | None
    abs_tol: float | None

    def integrator(self, budget: float | None = None) -> Integrator:
        """At the beginning of the run."""
        return Integrator(self.sources, self.measure, budget=budget or self.budget, **self.settings)

    @property
    def needs_processes(self) -> bool:
        """Whether there are Python functions, which may take this process down with them."""
        return any(isinstance(source.function, PythonFunction) for source in self.sources)


def load_problem(path: str | Path) -> Problem:
    """Read and check a problem file."""
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProblemError(path, [f"cannot be read: {error.strerror or error}"]) from None
    except UnicodeDecodeError:
        raise ProblemError(path, ["is not a text file in UTF-8"]) from None
    except tomllib.TOMLDecodeError as error:
        raise ProblemError(path, [f"is not TOML: {error}"]) from None
    return _Reader(path, content).problem()


class _Reader:
    """Reads what it can, and notes what it cannot."""

    def __init__(self, path: Path, content: dict[str, Any]) -> None:
        self.path, self.folder, self.content = path, path.resolve().parent, content
        self.errors: list[str] = []

    def problem(self) -> Problem:
        top = self.content
        self._unknown(top, TOP, "")
        budget = self._number(top, "budget", positive=True, required="in units of cost, such as budget = 10.0")
        settings = {
            "seed": self._checked(top, "seed", _whole, "a whole number, not negative"),
            "model": self._checked(top, "model", _one_of(MODELS), f"one of {_listed(MODELS)}"),
            "acquisition": self._checked(
                top, "acquisition", checked_kind, "'mi' or 'ivr' ('ip', 'nv' to see them fail)"
            ),
        }
        tolerances = [self._number(top, key, positive=True) for key in ("rel_tol", "abs_tol")]
        names, measure = self._measure()
        sources = self._sources(names)
        if not self.errors and measure is not None and budget is not None:
            given = {key: value for key, value in settings.items() if value is not None}
            problem = Problem(self.path, names, measure, sources, budget, given, *tolerances)
            self._noted("budget", problem.integrator)
            if not self.errors:
                return problem
        raise ProblemError(self.path, self.errors)

    def _measure(self) -> tuple[list[str], Measure | None]:
        inputs, samples = self.content.get("inputs"), self.content.get("samples")
        if (inputs is None) == (samples is None):
            self.errors.append(
                "inputs: give either a table [inputs] of names and distributions, or samples = 'file.csv'"
                + (", not both" if inputs is not None else "")
            )
            return [], None
        if samples is not None:
            return self._samples(samples)
        if not isinstance(inputs, dict) or not inputs:
            self.errors.append(f"inputs: must be a table with at least one name = {{ ... }}, got {inputs!r}")
            return [], None
        for name in inputs:
            if not re.fullmatch(r"[A-Za-z_]\w*", name):
                self.errors.append(f"inputs.{name}: a name is made of letters, digits and _, and begins with a letter")
        marginals = {name: self._marginal(f"inputs.{name}", entry) for name, entry in inputs.items()}
        if any(marginal is None for marginal in marginals.values()):
            return list(inputs), None
        for name, marginal in marginals.items():
            self._noted(f"inputs.{name}", partial(as_measure, [marginal]))
        return list(inputs), self._noted("inputs", lambda: as_measure(list(marginals.values())))

    def _marginal(self, key: str, entry: Any) -> Any:
        if not isinstance(entry, dict):
            self.errors.append(
                f"{key}: must be {{ distribution = 'norm', loc = 0, scale = 1 }} or {{ low = 0, high = 1 }}, "
                f"got {entry!r}"
            )
            return None
        if "distribution" not in entry:
            self._unknown(entry, ("low", "high", "distribution"), key)
            ends = [
                self._number(entry, end, within=key, required="low and high, or a distribution")
                for end in ("low", "high")
            ]
            if None not in ends and not ends[0] < ends[1]:  # type: ignore[operator]
                self.errors.append(f"{key}: low must be below high, got {ends[0]:g} and {ends[1]:g}")
                return None
            return None if None in ends else tuple(ends)
        name = entry["distribution"]
        family = getattr(stats, name, None) if isinstance(name, str) else None
        if not isinstance(family, stats.rv_continuous):
            known = [d for d in dir(stats) if isinstance(getattr(stats, d), stats.rv_continuous)]
            self.errors.append(
                f"{key}.distribution: {name!r} is no continuous distribution of scipy.stats{_suggestion(name, known)}"
            )
            return None
        shapes = [shape.strip() for shape in family.shapes.split(",")] if family.shapes else []
        self._unknown(entry, ("distribution", *shapes, "loc", "scale"), key)
        values: dict[str, Any] = {
            parameter: self._number(
                entry, parameter, within=key, required=f"a parameter of {name}" if parameter in shapes else None
            )
            for parameter in (*shapes, "loc", "scale")
            if parameter in entry or parameter in shapes
        }
        if None in values.values():
            return None
        if values.get("scale", 1.0) <= 0 or not np.all(family._argcheck(*(values[shape] for shape in shapes))):
            given = ", ".join(f"{parameter} = {value:g}" for parameter, value in values.items())
            self.errors.append(f"{key}: {name} does not exist for {given}")
            return None
        return family(**values)

    def _samples(self, name: Any) -> tuple[list[str], Measure | None]:
        if not isinstance(name, str):
            self.errors.append(f"samples: must be the name of a CSV file, got {name!r}")
            return [], None
        try:
            with (self.folder / name).open(newline="", encoding="utf-8") as file:
                header, *rows = csv.reader(file)
        except OSError as error:
            self.errors.append(f"samples: {name} cannot be read: {error.strerror or error}")
            return [], None
        except (ValueError, csv.Error):
            self.errors.append(f"samples: {name} must have a line of names, and a line for each sample")
            return [], None
        header = [column.strip() for column in header]
        table = np.full((len(rows), len(header)), np.nan)
        for i, row in enumerate(rows):
            try:
                table[i] = np.array(row, dtype=float).reshape(len(header))
            except ValueError:
                self.errors.append(
                    f"samples: line {i + 2} of {name} must be {len(header)} numbers, got {','.join(row)}"
                )
                return [], None
        if len(set(header)) < len(header):
            self.errors.append(f"samples: {name} has two columns of the same name: {', '.join(header)}")
        weights = table[:, header.index("weight")] if "weight" in header else None
        names = [column for column in header if column != "weight"]
        values = table[:, [header.index(column) for column in names]]
        return names, self._noted("samples", lambda: Empirical(values, weights))

    def _sources(self, inputs: list[str]) -> list[Source]:
        entries = self.content.get("sources")
        if not isinstance(entries, list) or not entries:
            self.errors.append("sources: give at least one [[sources]], the primary one first")
            return []
        sources = [self._source(f"sources[{i}]", entry, inputs) for i, entry in enumerate(entries)]
        names = [entry["name"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
        for name in {name for name in names if names.count(name) > 1}:
            self.errors.append(f"sources: two of them are named {name!r}: give each a name of its own")
        return [source for source in sources if source is not None]

    def _source(self, key: str, entry: Any, inputs: list[str]) -> Source | None:
        if not isinstance(entry, dict):
            self.errors.append(f"{key}: must be a table, [[sources]], got {entry!r}")
            return None
        before = len(self.errors)
        self._unknown(entry, OF_SOURCE, key)
        kinds = [kind for kind in KINDS if kind in entry]
        if len(kinds) != 1:
            got = " and ".join(kinds) or "none of them"
            self.errors.append(f"{key}: must have one of python, command and umbridge, got {got}")
        name = entry.get("name")
        if name is not None and not (isinstance(name, str) and name):
            self.errors.append(f"{key}.name: must be a string, got {name!r}")
        timeout = self._number(entry, "timeout", within=key, positive=True)
        cost, noise = entry.get("cost", 1.0), entry.get("noise", 0.0)
        if cost != "measured":
            cost = (
                self._number(entry, "cost", within=key, positive=True, otherwise="'measured'")
                if "cost" in entry
                else 1.0
            )
        if noise != "learn":
            noise = self._number(entry, "noise", within=key, otherwise="'learn'") if "noise" in entry else 0.0
            if noise is not None and noise < 0:
                self.errors.append(f"{key}.noise: must not be negative, got {noise:g}")
        valid = self._valid(key, entry)
        function = self._function(key, kinds[0], entry[kinds[0]], inputs, timeout) if len(kinds) == 1 else None
        if len(self.errors) > before or function is None:
            return None
        made: Source | None = self._noted(
            key, lambda: Source(function, cost=cost, name=name, noise=noise, timeout=timeout, valid=valid)
        )
        return made

    def _valid(self, key: str, entry: dict[str, Any]) -> tuple[float, float] | None:
        valid = entry.get("valid")
        if valid is None:
            return None
        if (
            isinstance(valid, list)
            and len(valid) == 2
            and all(_is_number(end) for end in valid)
            and valid[0] < valid[1]
        ):
            return float(valid[0]), float(valid[1])
        self.errors.append(f"{key}.valid: must be [low, high] with low below high, got {valid!r}")
        return None

    def _function(self, key: str, kind: str, given: Any, inputs: list[str], timeout: float | None) -> Any:
        where = f"{key}.{kind}"
        if kind == "python":
            if not isinstance(given, str):
                self.errors.append(f"{where}: must be 'module:function', got {given!r}")
                return None
            function = self._noted(where, lambda: PythonFunction(given, self.folder))
            if function is not None:
                self._noted(where, function.resolved)
            return function
        if kind == "command":
            command = self._noted(where, lambda: Command(given, inputs, self.folder, timeout))
            if command is not None and shutil.which(command.arguments[0], path=None) is None:
                program = self.folder / command.arguments[0]
                if "{" not in command.arguments[0] and not (program.is_file() and shutil.which(str(program))):
                    self.errors.append(f"{where}: there is no program {command.arguments[0]!r} that can be run")
            return command
        if not isinstance(given, dict):
            self.errors.append(f"{where}: must be {{ url = 'http://...', model = 'forward' }}, got {given!r}")
            return None
        self._unknown(given, OF_UMBRIDGE, where)
        wanted = {"url": str, "model": str, "config": dict, "output": int}
        for name, kind_of in wanted.items():
            if name in given and (not isinstance(given[name], kind_of) or isinstance(given[name], bool)):
                self.errors.append(f"{where}.{name}: must be of type {kind_of.__name__}, got {given[name]!r}")
                return None
        if "url" not in given:
            self.errors.append(f"{where}.url: is missing: where the server listens, such as 'http://127.0.0.1:4242'")
            return None
        known = {name: value for name, value in given.items() if name in wanted}
        return self._noted(where, lambda: UMBridge(**known, timeout=timeout))

    def _noted(self, key: str, make: Callable[[], Any]) -> Any:
        """What is made, or None and a note of why it cannot be."""
        try:
            return make()
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            self.errors.append(
                f"{key}: {reason if isinstance(error, ValueError | TypeError) else f'{type(error).__name__}: {reason}'}"
            )
            return None

    def _unknown(self, table: dict[str, Any], known: Iterable[str], key: str) -> None:
        for name in table:
            if name not in known:
                where = f"{key}.{name}" if key else name
                self.errors.append(f"{where}: is not known{_suggestion(name, known)}; there are {_listed(known)}")

    def _number(
        self,
        table: dict[str, Any],
        name: str,
        *,
        within: str = "",
        positive: bool = False,
        required: str | None = None,
        otherwise: str = "",
    ) -> float | None:
        key = f"{within}.{name}" if within else name
        if name not in table:
            if required is not None:
                self.errors.append(f"{key}: is missing: {required}")
            return None
        value = table[name]
        if _is_number(value) and (value > 0 or not positive):
            return float(value)
        kind = "a positive number" if positive else "a number"
        self.errors.append(f"{key}: must be {kind}{f' or {otherwise}' if otherwise else ''}, got {value!r}")
        return None

    def _checked(self, table: dict[str, Any], key: str, check: Callable[[Any], Any], accepted: str) -> Any:
        if key not in table:
            return None
        try:
            check(table[key])
        except (ValueError, TypeError, AttributeError):
            self.errors.append(f"{key}: must be {accepted}, got {table[key]!r}")
        return table[key]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError


def _one_of(known: Iterable[str]) -> Callable[[Any], None]:
    def check(value: Any) -> None:
        if not isinstance(value, str) or value not in known:
            raise ValueError

    return check


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _suggestion(name: Any, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(name), list(known), 1)
    return f" (did you mean {close[0]!r}?)" if close else ""
