"""The sources in a problem file: each ``[[sources]]`` is a Python function, a command, a server, or detached."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..design.sources import Source
from ..simulators.commands import Command
from ..simulators.functions import PythonFunction
from ..simulators.output import PARTS
from ..simulators.umbridge import UMBridge
from ..validation import brief
from .checks import Checker, is_number

KINDS = ("python", "command", "umbridge", "detached")
#: what a command source may have besides, with the types of TOML
COMMAND_TYPES: dict[str, type | tuple[type, ...]] = {
    "template": (str, list),
    "files": list,
    "copies": list,
    "inputs_file": str,
    "workdir": str,
    "keep": str,
    "environment": dict,
    "delimiters": list,
    "output": dict,
}
SOURCE_KEYS = ("name", *KINDS, "cost", "noise", "timeout", "valid", "vectorized", "bulk", "outputs", *COMMAND_TYPES)
GRADIENT_KEYS = ("gradient", "gradient_cost")
UMBRIDGE_TYPES: dict[str, type | tuple[type, ...]] = {"url": str, "model": str, "config": dict, "output": (int, list)}


@dataclass(frozen=True)
class SourcesReader:
    """Reader of the sources of a problem file; mistakes go to the checker."""

    folder: Path  #: of the problem file
    inputs: list[str]  #: names that a command may use
    checker: Checker
    outputs: tuple[str, ...] = ()  #: names of several outputs

    def read(self, content: dict[str, Any]) -> list[Source]:
        """Return the sources of a whole problem file, without those that are wrong."""
        entries = content.get("sources")
        if not isinstance(entries, list) or not entries:
            self.checker.add("sources", "give at least one [[sources]], the primary one first")
            return []
        sources = [self._source(f"sources[{i}]", entry) for i, entry in enumerate(entries)]
        names = [entry["name"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.checker.add("sources", f"two of them are named {name!r}: give each a name of its own")
        return [source for source in sources if source is not None]

    def _source(self, key: str, entry: Any) -> Source | None:
        if not isinstance(entry, dict):
            self.checker.add(key, f"must be a table, [[sources]], got {brief(entry)}")
            return None
        before = len(self.checker.errors)
        self.checker.known_keys(entry, (*SOURCE_KEYS, *GRADIENT_KEYS), key)
        kinds = [kind for kind in KINDS if kind in entry]
        if len(kinds) != 1:
            found = " and ".join(kinds) or "none of them"
            self.checker.add(key, f"must have one of python, command, umbridge and detached, got {found}")
        name = entry.get("name")
        if name is not None and not (isinstance(name, str) and name):
            self.checker.add(f"{key}.name", f"must be a string, got {brief(name)}")
        timeout = self.checker.number(entry, "timeout", within=key, positive=True)
        cost, noise = self._cost(key, entry), self._by_output(key, entry, "noise", self._noise)
        valid = self._by_output(key, entry, "valid", self._valid)
        vectorized, bulk, own = self._vectorized(key, entry), self._bulk(key, entry), self._own(key, entry)
        function = self._function(key, kinds[0], entry, timeout) if len(kinds) == 1 else None
        gradient = self._gradient(key, entry, function)
        gradient_cost = self.checker.number(entry, "gradient_cost", within=key)
        if len(self.checker.errors) > before:
            return None
        make = partial(Source, function, cost=cost, name=name, noise=noise, timeout=timeout, valid=valid)
        make = partial(make, gradient=gradient, gradient_cost=gradient_cost)
        return self.checker.attempt(key, lambda: make(vectorized=vectorized, bulk=bulk, outputs=own))

    def _gradient(self, key: str, entry: dict[str, Any], function: Any) -> Callable[..., Any] | None:
        """Return what evaluates the gradient: a python function by its name, or the server."""
        value = entry.get("gradient", False)
        if "umbridge" in entry and isinstance(value, bool):
            return function.gradient if value and isinstance(function, UMBridge) else None
        if "python" in entry and isinstance(value, str):
            return self._python(f"{key}.gradient", value)
        if "gradient" in entry:
            accepted = "true for a server (umbridge), or 'module:function' for a python function"
            self.checker.add(f"{key}.gradient", f"must be {accepted}, got {brief(value)}")
        return None

    def _own(self, key: str, entry: dict[str, Any]) -> list[str] | None:
        """Return the outputs that a source has, if it lacks some."""
        own = entry.get("outputs")
        if own is None or (isinstance(own, list) and own and all(name in self.outputs for name in own)):
            return own
        some = ", ".join(self.outputs) or "outputs = [...] at the top of the file"
        self.checker.add(f"{key}.outputs", f"must be some of {some}, got {brief(own)}")
        return None

    def _vectorized(self, key: str, entry: dict[str, Any]) -> bool:
        value = entry.get("vectorized", False)
        if not isinstance(value, bool):
            self.checker.add(f"{key}.vectorized", f"must be true or false, got {brief(value)}")
        elif value and "python" not in entry:
            self.checker.add(f"{key}.vectorized", "is for a python function: others are evaluated one by one")
        return bool(value)

    def _bulk(self, key: str, entry: dict[str, Any]) -> bool | int | None:
        value = entry.get("bulk")
        if value is not None and (not isinstance(value, int) or value < 0):
            self.checker.add(f"{key}.bulk", f"must be true, false or a number of evaluations, got {brief(value)}")
        elif "python" not in entry:
            if value or entry.get("cost") == 0:
                self.checker.add(f"{key}.{'bulk' if value else 'cost'}", "only a python function is evaluated in bulk")
            return False if entry.get("cost") != 0 else None
        return value

    def _cost(self, key: str, entry: dict[str, Any]) -> Any:
        if entry.get("cost") == "measured" or "cost" not in entry:
            return entry.get("cost", 1.0)
        if entry["cost"] == 0 and not isinstance(entry["cost"], bool):
            return 0.0
        return self.checker.number(entry, "cost", within=key, positive=True, otherwise="'measured'")

    def _by_output(self, key: str, entry: dict[str, Any], name: str, read: Callable[..., Any]) -> Any:
        """Return a setting that ``read`` reads; with several outputs it may be a table of them by name."""
        given = entry.get(name)
        if not self.outputs or not isinstance(given, dict):
            return read(key, entry, name)
        self.checker.known_keys(given, self.outputs, f"{key}.{name}")
        return {output: read(f"{key}.{name}", given, output) for output in given}

    def _noise(self, key: str, entry: dict[str, Any], name: str) -> Any:
        if entry.get(name) == "learn" or name not in entry:
            return entry.get(name, 0.0)
        noise = self.checker.number(entry, name, within=key, otherwise="'learn'")
        if noise is not None and noise < 0:
            self.checker.add(f"{key}.{name}", f"must not be negative, got {noise:g}")
        return noise

    def _valid(self, key: str, entry: dict[str, Any], name: str) -> tuple[float, float] | None:
        match entry.get(name):
            case None:
                return None
            case [low, high] if is_number(low) and is_number(high) and low < high:
                return float(low), float(high)
            case wrong:
                self.checker.add(f"{key}.{name}", f"must be [low, high] with low below high, got {brief(wrong)}")
                return None

    def _function(self, key: str, kind: str, entry: dict[str, Any], timeout: float | None) -> Callable[..., Any] | None:
        """Return what evaluates the source; None if it is wrong, or evaluated elsewhere."""
        where, value = f"{key}.{kind}", entry[kind]
        if kind == "detached" and value is not True:
            self.checker.add(where, f"must be true, for a source that is evaluated elsewhere, got {brief(value)}")
        if kind == "command":
            return self._command(key, entry, timeout)
        for name in COMMAND_TYPES:
            if name in entry:
                self.checker.add(f"{key}.{name}", f"belongs to a command, and this source is {kind}")
        if kind == "detached":
            return None
        return self._python(where, value) if kind == "python" else self._umbridge(where, value, timeout, entry)

    def _python(self, where: str, value: Any) -> PythonFunction | None:
        if not isinstance(value, str):
            self.checker.add(where, f"must be 'module:function', got {brief(value)}")
            return None
        function = self.checker.attempt(where, lambda: PythonFunction(value, self.folder))
        if function is not None:
            self.checker.attempt(where, function.resolved)
        return function

    def _command(self, key: str, entry: dict[str, Any], timeout: float | None) -> Command | None:
        where, options = f"{key}.command", {name: entry[name] for name in COMMAND_TYPES if name in entry}
        for name, value in options.items():
            if not isinstance(value, COMMAND_TYPES[name]) or not (name == "output" or _is_of_texts(value)):
                self.checker.add(f"{key}.{name}", f"cannot be {brief(value)}; see the examples of problem files")
                return None
        make = partial(Command, entry["command"], self.inputs, self.folder, timeout)
        if self.checker.attempt(where, make) is None:
            return None
        own = tuple(entry["outputs"]) if _is_of_texts(entry.get("outputs") or 0) else self.outputs
        command = self.checker.attempt(key, lambda: make(**options, outputs=own))
        if command is None:
            return None
        used = own or PARTS
        if isinstance(command.rules, dict) and (others := sorted(set(command.rules) - set(used))):
            self.checker.add(f"{key}.output", f"has {', '.join(others)}; a run uses {', '.join(used)}")
        program = command.arguments[0]  # with a placeholder it is known only when it is run
        if "{" not in program and shutil.which(self.folder / program if "/" in program else program) is None:
            self.checker.add(where, f"there is no program {program!r} that can be run")
        return command

    def _umbridge(self, where: str, value: Any, timeout: float | None, entry: dict[str, Any]) -> UMBridge | None:
        if not isinstance(value, dict):
            self.checker.add(where, f"must be {{ url = 'http://...', model = 'forward' }}, got {brief(value)}")
            return None
        self.checker.known_keys(value, UMBRIDGE_TYPES, where)
        for name, wanted in UMBRIDGE_TYPES.items():
            if name in value and (not isinstance(value[name], wanted) or isinstance(value[name], bool)):
                kinds = wanted if isinstance(wanted, tuple) else (wanted,)
                types = " or ".join(kind.__name__ for kind in kinds)
                self.checker.add(f"{where}.{name}", f"must be of type {types}, got {brief(value[name])}")
                return None
        own = entry.get("outputs") or self.outputs
        chosen = value.get("output", 0)
        several = isinstance(chosen, list)
        if several != bool(own) or (several and (len(chosen) != len(own) or not all(type(n) is int for n in chosen))):
            wanted_numbers = f"a number for each of {', '.join(own)}, such as [0, 3]" if own else "one number"
            self.checker.add(f"{where}.output", f"must be {wanted_numbers}, got {brief(chosen)}")
            return None
        if "url" not in value:
            address = "where the server listens, such as 'http://127.0.0.1:4242'"
            self.checker.add(f"{where}.url", f"is missing: {address}")
            return None
        known = {name: entry for name, entry in value.items() if name in UMBRIDGE_TYPES}
        return self.checker.attempt(where, lambda: UMBridge(**known, timeout=timeout))


def _is_of_texts(value: Any) -> bool:
    """Return whether a value of a TOML file is a text, or all of its entries are."""
    entries = value.values() if isinstance(value, dict) else value
    return isinstance(entries, Iterable) and all(isinstance(entry, str) for entry in entries)
