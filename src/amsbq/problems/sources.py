"""The sources in a problem file: each ``[[sources]]`` is a Python function, a command, a server, or detached."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from ..design.fidelities import combinations
from ..design.sources import Source
from ..simulators.commands import Command
from ..simulators.functions import PythonFunction
from ..simulators.output import PARTS
from ..simulators.template import filled_argument
from ..simulators.umbridge import UMBridge
from .checks import Checker, shown
from .schema import COMMAND, KINDS, LEVELS_COST, SOURCE, source_keys, umbridge_keys

#: numbers by the names of knobs
Settings: TypeAlias = Mapping[str, float]
NONE: Settings = MappingProxyType({})


@dataclass(frozen=True)
class SourcesReader:
    """Reader of the sources of a problem file; mistakes go to the checker."""

    folder: Path  #: of the problem file
    inputs: list[str]  #: names that a command may use
    checker: Checker
    outputs: tuple[str, ...] = ()  #: names of several outputs

    def read(self, content: dict[str, Any]) -> list[Source]:
        """Return the valid sources of a whole problem file."""
        entries = content.get("sources")
        if not isinstance(entries, list) or not entries:
            brackets = ", in double brackets" if isinstance(entries, dict) else ""
            self.checker.add("sources", f"must have at least one [[sources]]{brackets}, the primary one first")
            return []
        sources = [source for i, entry in enumerate(entries) for source in self._levels(f"sources[{i}]", entry)]
        names = [entry["name"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.checker.add("sources", f"two of them are named {name!r}: use distinct names")
        return [source for source in sources if source is not None]

    def _levels(self, key: str, entry: Any) -> list[Source | None]:
        """Return the source of an entry, or its levels at all settings of its knobs, the finest first."""
        if not isinstance(entry, dict):
            self.checker.add(key, f"must be a table, [[sources]], got {shown(entry)}")
            return []
        if "fidelity" not in entry:
            return [self._source(key, entry)]
        knobs = self.checker.value(f"{key}.fidelity", SOURCE["fidelity"], entry["fidelity"])
        for name in set(knobs or ()) & set(self.inputs):
            self.checker.add(f"{key}.fidelity", f"{name} is an input: rename the knob")
        listed = {name: values for name, values in (knobs or {}).items() if isinstance(values, list)}
        costs = self.checker.value(f"{key}.cost", LEVELS_COST, entry.get("cost", 1.0)) if listed else entry.get("cost")
        if knobs is None or (listed and costs is None):
            return []
        plain = {name: value for name, value in entry.items() if name not in ("fidelity", "cost")}
        levels = combinations(listed)
        if isinstance(costs, dict):
            if set(costs) != {"finest", *listed}:
                self.checker.add(
                    f"{key}.cost", f"must have a number for finest, {', '.join(listed)}, got {shown(costs)}"
                )
                return []
            costs = [_by_powers(level.sizes, levels[0].sizes, costs) for level in levels]
        each = costs if isinstance(costs, list) else [costs] * len(levels)
        if len(each) != len(levels):
            self.checker.add(f"{key}.cost", f"has {len(each)} numbers for {len(levels)} levels")
            return []
        found: list[Source | None] = []
        for level, cost in zip(levels, each, strict=True):
            named = [*filter(None, [entry.get("name"), level.text])]
            own = plain | ({} if cost is None else {"cost": cost}) | ({"name": ", ".join(named)} if named else {})
            fixed = {name: value for name, value in knobs.items() if name not in listed}
            found.append(self._source(key, own, fixed | level.settings, fixed | level.sizes))
            if self.checker.errors:
                break  # those of the other levels would be the same
        return found

    def _source(
        self, key: str, entry: dict[str, Any], settings: Settings = NONE, fidelity: Settings | None = None
    ) -> Source | None:
        """Return a source at the given settings of its knobs, with its fidelity; None if it is wrong."""
        before, kinds = len(self.checker.errors), [kind for kind in KINDS if kind in entry]
        if len(kinds) != 1:
            present = " and ".join(kinds) or "none of them"
            self.checker.add(key, f"must have one of python, command, umbridge and detached, got {present}")
        kind = kinds[0] if len(kinds) == 1 else None
        found = self.checker.table(source_keys(kind, self.outputs, self.inputs), entry, key, self.outputs)
        function = self._function(key, kind, entry, found, settings) if kind is not None else None
        gradient = self._gradient(key, found["gradient"], function, settings)
        if len(self.checker.errors) > before:
            return None
        arguments = {name: found[name] for name in SOURCE if SOURCE[name].to == "Source"}
        keys = {name: f"{key}.{name}" for name in found}
        return self.checker.attempt(
            key, lambda: Source(function, gradient=gradient, fidelity=fidelity, **arguments), keys
        )

    def _gradient(
        self, key: str, value: Any, function: Any, settings: Settings
    ) -> Callable[..., Any] | Literal[True] | None:
        """Return the function of the gradient: a Python function by name, or the server; True if values include it."""
        if isinstance(value, str):
            return self._python(f"{key}.gradient", value, settings)
        if value and isinstance(function, UMBridge):
            return function.gradient
        return True if value else None

    def _function(
        self, key: str, kind: str, entry: dict[str, Any], found: dict[str, Any], settings: Settings
    ) -> Callable[..., Any] | None:
        """Return the function of the source; None if it is wrong, or if the source is evaluated elsewhere."""
        where, own = f"{key}.{kind}", found["outputs"] or self.outputs
        options = {name: found[name] for name in (kind, "outputs", *COMMAND) if name in entry}
        if None in options.values() or kind == "detached":
            return None
        if kind == "command":
            known = {name: options[name] for name in COMMAND if name in options}
            return self._command(key, found, known | {"settings": settings}, own)
        if kind == "python":
            return self._python(where, found[kind], settings)
        return self._umbridge(where, found, own, settings)

    def _python(self, where: str, reference: str, settings: Settings) -> Callable[..., Any] | None:
        function = self.checker.attempt(where, lambda: PythonFunction(reference, self.folder))
        if function is not None:
            self.checker.attempt(where, function.resolved)
        return partial(function, **settings) if function is not None and settings else function

    def _command(self, key: str, found: dict[str, Any], options: dict[str, Any], own: Sequence[str]) -> Command | None:
        where, make = f"{key}.command", partial(Command, found["command"], self.inputs, self.folder, found["timeout"])
        make = partial(make, settings=options.pop("settings"))
        if not self.inputs:
            return None  # the inputs could not be read, which is reported already
        if self.checker.attempt(where, make) is None:
            return None
        rules = {"an output rule": f"{key}.output", "regex": f"{key}.output", "output": f"{key}.output"}
        rules |= {f"{name} of an output rule": f"{key}.output" for name in ("file", "column", "row", "json", "last")}
        keys = {name: f"{key}.{name}" for name in COMMAND} | rules
        command = self.checker.attempt(key, lambda: make(**options, outputs=tuple(own)), keys)
        if command is None:
            return None
        used = own or PARTS
        if isinstance(command.rules, dict) and (others := sorted(set(command.rules) - set(used))):
            self.checker.add(f"{key}.output", f"contains {', '.join(others)}, but a run uses {', '.join(used)}")
        program = command.arguments[0]  # with a placeholder, known only when it runs
        path = self.folder / program
        if "{" not in program and shutil.which(path if "/" in program else program) is None:
            hint = f": run chmod +x {program}" if "/" in program and path.is_file() else ""
            self.checker.add(where, f"there is no executable program {program!r}{hint}")
        return command

    def _umbridge(self, where: str, found: dict[str, Any], own: Sequence[str], settings: Settings) -> UMBridge | None:
        before = len(self.checker.errors)
        server = self.checker.table(umbridge_keys(own), {"output": 0, **found["umbridge"]}, where)
        if len(self.checker.errors) > before:
            return None
        known = {name: value for name, value in server.items() if value is not None}
        known |= {"config": _filled(known["config"], settings)} if "config" in known and settings else {}
        return self.checker.attempt(where, lambda: UMBridge(**known, timeout=found["timeout"]))


def _filled(config: Any, settings: Settings) -> Any:
    """Return a configuration with settings in place of their names in braces: "{name}" alone becomes a number."""
    if isinstance(config, dict):
        return {name: _filled(value, settings) for name, value in config.items()}
    if isinstance(config, list):
        return [_filled(value, settings) for value in config]
    if not isinstance(config, str):
        return config
    whole = {f"{{{name}}}": value for name, value in settings.items()}
    return whole[config] if config in whole else filled_argument(config, settings)


def _by_powers(sizes: Settings, finest: Settings, cost: Mapping[str, float]) -> float:
    """Return the cost of a level from that of the finest one, and the power of each knob with which costs fall."""
    logs = [cost[knob] * math.log(finest[knob] / size) for knob, size in sizes.items()]
    return cost["finest"] * math.exp(sum(logs))
