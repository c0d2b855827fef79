"""The keys of a problem file: those of each table, what each accepts, its default, and which class takes it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from ..common.validation import number
from ..design.acquisition import UTILITIES
from ..design.fidelities import settings_of_knobs
from ..inference.structures import MODELS
from ..posterior.outputs import output_names
from ..posterior.targets import target_from_dict
from .checks import Key, Refused, shown


def accepted(accepts: Callable[[Any], Any], made: Callable[[Any], Any] = lambda value: value) -> Callable[[Any], Any]:
    """Return a reader of the values that ``accepts`` approves, converted by ``made``; others raise ValueError."""

    def read(value: Any) -> Any:
        if not accepts(value):
            raise ValueError
        return made(value)

    return read


def is_number(value: Any) -> bool:
    """Return whether a value of a TOML file is a finite number (booleans are not)."""
    try:
        return isinstance(value, int | float) and number(value, "value") is not None
    except (TypeError, ValueError):
        return False


def of_type(*types: type) -> Callable[[Any], Any]:
    """Return a reader that accepts values of the given types; a boolean does not count as an integer."""
    return accepted(lambda value: isinstance(value, types) and (bool in types or not isinstance(value, bool)))


def one_of(names: Collection[str]) -> Callable[[Any], Any]:
    """Return a reader that accepts the given names."""
    return accepted(lambda value: isinstance(value, str) and value in names)


def _noise(value: Any) -> Any:
    if is_number(value) and value < 0:
        raise Refused(f"must not be negative, got {value:g}")
    return accepted(lambda value: value == "learn" or is_number(value), _number_or_text)(value)


def _number_or_text(value: Any) -> float | str:
    return value if isinstance(value, str) else float(value)


def _outputs(value: Any) -> tuple[str, ...]:
    listed = of_type(list)(value)
    try:
        return output_names(listed)
    except ValueError as error:
        raise Refused(str(error)) from None


def _is_range(value: Any, is_end: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_end, value)) and value[0] < value[1]


def _option(wanted: str, *types: type) -> Key:
    """Return a key of a command: a string, or a list or table of strings."""

    def accepts(value: Any) -> bool:
        entries = value.values() if isinstance(value, dict) else value
        return isinstance(value, types) and all(isinstance(entry, str) for entry in entries)

    return Key(wanted, accepted(accepts), "Command")


def _texts(value: Any) -> dict[str, str]:
    table = of_type(dict)(value)
    read: dict[str, str] = accepted(lambda table: all(isinstance(text, str) for text in table.values()))(table)
    return read


def _are_weights(value: Any) -> bool:
    entries = list(value.values()) if isinstance(value, dict) else value
    return isinstance(entries, list) and all(is_number(each) and each > 0 for each in entries)


def _fidelity(value: Any) -> dict[str, list[float] | float]:
    """Return the settings of each knob, the finest first, or a single number, by name."""
    table = accepted(lambda given: isinstance(given, dict) and given)(value)
    single = {name: each for name, each in table.items() if is_number(each)}
    several = {name: _range(each) if isinstance(each, dict) else each for name, each in table.items()}
    try:
        settings = settings_of_knobs({name: each for name, each in several.items() if name not in single})
    except (TypeError, ValueError) as error:
        raise Refused(str(error)) from None
    return {name: single.get(name) or settings[name] for name in table}


def _range(table: dict[str, Any]) -> tuple[float, float]:
    """Return the finest and the coarsest value of a knob."""
    if set(table) != {"finest", "coarsest"} or not all(is_number(end) for end in table.values()):
        raise Refused(f"a range is two numbers, {{ finest = 0.01, coarsest = 0.25 }}, got {shown(table)}")
    return table["finest"], table["coarsest"]


def _cost_of_levels(value: Any) -> Any:
    """Return one cost for all levels, a list of one for each, or a table of the finest cost and powers of knobs."""
    if isinstance(value, dict):
        return accepted(lambda given: given.get("finest", 0) > 0, dict)(accepted(_are_numbers)(value))
    plain = accepted(lambda given: given == "measured" or (is_number(given) and given >= 0), _number_or_text)
    return [plain(each) for each in value] if isinstance(value, list) and value else plain(value)


def _are_numbers(value: dict[str, Any]) -> bool:
    return all(is_number(each) for each in value.values())


NUMBER = Key("a number", accepted(is_number, float))
POSITIVE = Key("a positive number", accepted(lambda value: is_number(value) and value > 0, float))
FLAG, TEXT = Key("true or false", of_type(bool)), Key("a string", of_type(str))

#: the keys of a problem file
PROBLEM: dict[str, Key] = {
    "budget": replace(POSITIVE, missing="in units of cost, such as budget = 10.0, or a tolerance"),
    "certify": Key(
        "a share of the budget, such as 0.2",
        accepted(lambda value: is_number(value) and 0 <= value < 1, float),
        default=0.0,
    ),
    "seed": Key("a non-negative whole number", accepted(lambda value: type(value) is int and value >= 0), "Integrator"),
    "model": Key(f"one of {', '.join(MODELS)}", one_of(MODELS), "Integrator"),
    "acquisition": Key("'mi' or 'ivr' ('ip', 'nv' to see them fail)", one_of(UTILITIES), "Integrator"),
    "target": Key(
        "'mean', 'variance', { exceedance = 70.0 } with a limit, or { quantile = 0.95 }",
        target_from_dict,
        "Integrator",
        by_output=True,
    ),
    "decision_cost": replace(POSITIVE, to="Integrator"),
    "output_range": Key(
        "two numbers, low and high, such as [0, inf]",
        accepted(lambda value: _is_range(value, lambda end: type(end) in (int, float))),
        "Integrator",
        by_output=True,
    ),
    "log": replace(FLAG, to="Integrator", by_output=True),
    "limit": replace(FLAG, to="Integrator"),
    "order": Key(),  # see `order_of`
    "outputs": Key("a list of names, such as ['peak', 'time']", _outputs, "Integrator"),
    "weights": Key(
        "positive numbers, one for each output: a list, or a table by output", accepted(_are_weights), "Integrator"
    ),
    "title": replace(TEXT, to="Integrator"),
    "units": Key("a table of strings, such as { output = 'm', cost = 'core hours' }", _texts, "Integrator"),
    "labels": Key("a table of strings, such as { output = 'largest number of ill people' }", _texts, "Integrator"),
    "rel_tol": replace(POSITIVE, by_output=True),
    "abs_tol": replace(POSITIVE, by_output=True),
    "error_cost": replace(POSITIVE, by_output=True),
    "inputs": Key(),
    "correlations": Key(),
    "samples": Key(),
    "sources": Key(),
}

#: optional keys of any input
WORDS = {"unit": TEXT, "label": TEXT}
#: the keys of an input with bounds, and of one with probabilities
BOUNDS = dict.fromkeys(("low", "high"), replace(NUMBER, missing="pass low and high, or a distribution"))
BOUNDS["distribution"] = Key()
PROBABILITIES = {"values": Key(), "probabilities": Key()}

#: the kinds of sources: each source has one of these keys
KINDS: dict[str, Key] = {
    "python": replace(TEXT, wanted="'module:function'"),
    "command": Key(),
    "umbridge": Key("{ url = 'http://...', model = 'forward' }", of_type(dict)),
    "detached": Key("true, for a source that is evaluated elsewhere", accepted(lambda value: value is True)),
}
#: optional keys of a command
COMMAND: dict[str, Key] = {
    "template": _option("the name of a file, or a list of them", str, list),
    "files": _option("a list of names of files, such as ['mesh.dat']", list),
    "copies": _option("a list of names of files, such as ['mesh.dat']", list),
    "inputs_file": _option("the name of a file", str),
    "workdir": _option("the name of a folder, such as 'runs/{source}-{id}'", str),
    "keep": _option("'failed', 'all' or 'none'", str),
    "environment": _option("a table of strings, such as { OMP_NUM_THREADS = '1' }", dict),
    "delimiters": _option("two strings, such as ['<', '>']", list),
    "output": Key("a table, such as { last = true }", of_type(dict), "Command"),
}
#: the keys of a source; some of them depend on its kind, see `source_keys`
SOURCE: dict[str, Key] = {
    "name": Key("a string", accepted(lambda value: isinstance(value, str) and value), "Source"),
    **KINDS,
    "cost": Key(
        "a positive number or 'measured'",
        accepted(lambda value: value == "measured" or (is_number(value) and value >= 0), _number_or_text),
        "Source",
        default=1.0,
    ),
    "noise": Key("a number or 'learn'", _noise, "Source", default=0.0, by_output=True),
    "timeout": replace(POSITIVE, to="Source"),
    "valid": Key(
        "[low, high] with low below high",
        accepted(lambda value: _is_range(value, is_number), lambda value: (float(value[0]), float(value[1]))),
        "Source",
        by_output=True,
    ),
    "vectorized": replace(FLAG, to="Source", default=False),
    "bulk": Key(
        "true, false or a number of evaluations",
        accepted(lambda value: isinstance(value, int) and value >= 0),
        "Source",
    ),
    "outputs": Key(to="Source"),
    "inputs": Key(to="Source"),
    "fidelity": Key(
        "a table of lists, the finest value first, such as { cells = [128, 64, 32] }, or of ranges, "
        "{ h = { finest = 0.01, coarsest = 0.25 } }",
        _fidelity,
    ),
    **COMMAND,
    "gradient": Key("true for a server (umbridge) or for an Observation, or 'module:function' for a python function"),
    "gradient_cost": replace(NUMBER, to="Source"),
}
#: the cost of a source with a list of values for a knob
LEVELS_COST = Key(
    "a positive number, 'measured', a list with one for each level, or the finest cost and the power with which it "
    "falls, such as { finest = 1.0, h = 2 }",
    _cost_of_levels,
    default=1.0,
)
#: the keys of a model on a server
UMBRIDGE: dict[str, Key] = {
    "url": replace(TEXT, to="UMBridge", missing="where the server listens, such as 'http://127.0.0.1:4242'"),
    "model": replace(TEXT, to="UMBridge"),
    "config": Key("a table, such as { level = 1 }", of_type(dict), "UMBridge"),
    "output": Key(to="UMBridge"),
}


def order_of(names: Sequence[str]) -> Key:
    """Return the key of the order of fidelity: the names of all sources, which become their numbers."""
    return Key(
        f"the names of all sources, the primary one first, such as {names}",
        accepted(
            lambda given: isinstance(given, list) and sorted(map(str, given)) == sorted(names) and given[0] == names[0],
            lambda given: [names.index(name) for name in given],
        ),
    )


def distribution_keys(name: str, shapes: Sequence[str], common: Sequence[str]) -> dict[str, Key]:
    """Return the keys of an input with a SciPy distribution, whose shape parameters are required."""
    parameters = dict.fromkeys(shapes, replace(NUMBER, missing=f"a parameter of {name}"))
    return {"distribution": Key(), **parameters, **dict.fromkeys(common, NUMBER)}


def _some_of(names: Sequence[str]) -> Callable[[Any], Any]:
    """Return a reader that accepts a list of the given names, at least one of them."""
    return accepted(lambda given: isinstance(given, list) and given and all(name in names for name in given))


def source_keys(kind: str | None, outputs: Sequence[str], inputs: Sequence[str]) -> dict[str, Key]:
    """Return the keys of a source in a problem; if its kind is None, keys that depend on it accept anything."""
    some = ", ".join(outputs) or "outputs = [...] at the top of the file"
    keys = SOURCE | {
        "outputs": replace(SOURCE["outputs"], wanted=f"some of {some}", read=_some_of(outputs)),
        "inputs": replace(SOURCE["inputs"], wanted=f"some of {', '.join(inputs)}", read=_some_of(inputs)),
    }
    if kind == "command":
        uses = "belongs to functions and servers: a command uses the inputs that it names in braces"
        keys["inputs"] = Key("", accepted(lambda value: False), "Source", refusal=uses)
    if kind is None:
        return keys | dict.fromkeys((*KINDS, *COMMAND, "vectorized", "gradient"), Key())
    gradients = {"python": (bool, str), "umbridge": (bool,)}.get(kind, ())
    keys["gradient"] = replace(SOURCE["gradient"], read=of_type(*gradients))
    if not gradients:
        none = f"belongs to functions and servers, but this source is {kind}"
        keys["gradient"] = replace(keys["gradient"], refusal=none)
    if kind != "command":
        never = accepted(lambda value: False)
        keys |= dict.fromkeys(COMMAND, Key("", never, refusal=f"belongs to a command, but this source is {kind}"))
    if kind != "python":
        only = "is for a python function: others are evaluated one by one"
        keys["vectorized"] = replace(FLAG, read=accepted(lambda value: value is False), default=False, refusal=only)
    return keys


def umbridge_keys(outputs: Sequence[str]) -> dict[str, Key]:
    """Return the keys of a model on a server that provides these outputs, or a single one without a name."""

    def accepts(chosen: Any) -> bool:
        listed = chosen if isinstance(chosen, list) else [chosen]
        several = isinstance(chosen, list) == bool(outputs) and len(listed) == max(len(outputs), 1)
        return several and all(type(number) is int for number in listed)

    numbers = f"a number for each of {', '.join(outputs)}, such as [0, 3]" if outputs else "one number"
    return UMBRIDGE | {"output": Key(numbers, accepted(accepts), "UMBridge")}
