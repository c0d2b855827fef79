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

import math
import tomllib
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..design.acquisition import UTILITIES
from ..design.integrator import Integrator
from ..design.sources import Source, source_names
from ..design.stopping import StopRule, Tolerance, tolerance, tolerances
from ..inference.structures import MODELS
from ..measures.base import Measure
from ..outputs.names import output_names
from ..quantities.targets import target_from_dict
from ..simulators.functions import PythonFunction
from ..validation import brief
from .checks import Checker
from .inputs import InputsReader
from .sources import SourcesReader

TOP_KEYS = (
    "budget",
    "seed",
    "model",
    "acquisition",
    "target",
    "decision_cost",
    "output_range",
    "log",
    "order",
    "outputs",
    "weights",
    "rel_tol",
    "abs_tol",
    "inputs",
    "correlations",
    "samples",
    "sources",
)


class ProblemError(Exception):
    """Everything that is wrong with a problem file: one line per mistake, with the file, the key and the remedy."""

    def __init__(self, path: Path, errors: list[str]) -> None:
        super().__init__("\n".join(f"{path}: {error}" for error in errors))
        self.errors = errors


@dataclass(frozen=True)
class Problem:
    """A run as a problem file describes it."""

    path: Path
    names: list[str]  #: of the inputs
    measure: Measure
    sources: list[Source]
    budget: float  #: infinite if only a tolerance ends the run
    settings: dict[str, Any]  #: arguments of `Integrator`, where the file has them
    rel_tol: Tolerance | None
    abs_tol: Tolerance | None

    def integrator(self, budget: float | None = None) -> Integrator:
        """Return a new integrator of the problem; ``budget`` replaces the one in the file."""
        limit = budget or self.budget
        it = Integrator(self.sources, self.measure, budget=None if math.isinf(limit) else limit, **self.settings)
        if it.outputs is not None and (self.rel_tol or self.abs_tol):
            it.goals = replace(it.goals, **tolerances(self.rel_tol, self.abs_tol, it.outputs))
        return it

    def stop_rules(self) -> list[StopRule]:
        """Return the rules that end a run before its budget does: its tolerance, if it has one."""
        if not (self.rel_tol or self.abs_tol):
            return []
        return [tolerance(self.rel_tol, self.abs_tol, self.settings.get("outputs"))]

    def require_functions(self) -> None:
        """Raise `ProblemError` if a source is evaluated elsewhere, and cannot be evaluated here."""
        names = source_names(self.sources)
        missing = [name for name, source in zip(names, self.sources, strict=True) if source.function is None]
        if missing:
            raise ProblemError(
                self.path,
                [
                    f"{missing[0]} is detached, so nothing can be evaluated here: ask for its queries with amsbq ask, "
                    "and tell what came of them with amsbq tell"
                ],
            )

    @property
    def needs_processes(self) -> bool:
        """Whether a source is a Python function, which could take down the process that calls it."""
        return any(isinstance(source.function, PythonFunction) for source in self.sources)


def load_problem(path: str | Path) -> Problem:
    """Read and check a problem file; raise `ProblemError` with all mistakes if there are any."""
    return _checked_problem(Path(path), _content(Path(path)))


def load_inputs(path: Path) -> tuple[list[str], Measure]:
    """Read the names and the distribution of the inputs of a problem file, or of a file that has nothing else."""
    checker = Checker()
    names, measure = InputsReader(path.resolve().parent, checker).read(_content(path))
    if checker.errors or measure is None:
        raise ProblemError(path, checker.errors)
    return names, measure


def _content(path: Path) -> dict[str, Any]:
    """Return the tables of a file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))  # editors may begin with a byte-order mark
    except OSError as error:
        raise ProblemError(path, [f"cannot be read: {error.strerror or error}"]) from None
    except UnicodeDecodeError:
        raise ProblemError(path, ["is not a text file in UTF-8"]) from None
    except (ValueError, RecursionError) as error:  # integers may have too many digits, and tables too many levels
        raise ProblemError(path, [f"is not TOML: {error}"]) from None


def _checked_problem(path: Path, content: dict[str, Any]) -> Problem:
    """Return the problem that the tables of a file describe; raise `ProblemError` if anything is wrong."""
    checker, folder = Checker(), path.resolve().parent
    checker.known_keys(content, TOP_KEYS)
    ends = "rel_tol" in content or "abs_tol" in content
    needed = None if ends else "in units of cost, such as budget = 10.0, or a tolerance"
    budget = checker.number(content, "budget", positive=True, required=needed)
    settings = {
        "seed": checker.setting(content, "seed", _is_seed, "a whole number, not negative"),
        "model": checker.setting(content, "model", _is_one_of(MODELS), f"one of {', '.join(MODELS)}"),
        "acquisition": checker.setting(
            content, "acquisition", _is_one_of(UTILITIES), "'mi' or 'ivr' ('ip', 'nv' to see them fail)"
        ),
    }
    wanted = "'mean', 'variance', { exceedance = 70.0 } with a limit, or { quantile = 0.95 }"
    target = checker.setting(content, "target", _is_target, wanted)
    settings["target"] = target_from_dict(target) if _is_target(target) else None
    wanted = "two numbers, low and high, such as [0, inf]"
    settings["output_range"] = checker.setting(content, "output_range", _is_range, wanted)
    settings["log"] = checker.setting(content, "log", lambda value: isinstance(value, bool), "true or false")
    settings["decision_cost"] = checker.number(content, "decision_cost", positive=True)
    outputs = _outputs(content, checker)
    settings |= {"outputs": outputs, "weights": content.get("weights")}
    rel_tol, abs_tol = (_tolerance(content, key, outputs, checker) for key in ("rel_tol", "abs_tol"))
    names, measure = InputsReader(folder, checker).read(content)
    sources = SourcesReader(folder, names, checker, outputs or ()).read(content)
    if not checker.errors:
        settings["order"] = _numbers(content, source_names(sources), checker)
    if checker.errors or measure is None:
        raise ProblemError(path, checker.errors)
    known = {key: value for key, value in settings.items() if value is not None}
    limit = math.inf if budget is None else budget
    problem = Problem(path, names, measure, sources, limit, known, rel_tol, abs_tol)
    checker.attempt("budget", problem.integrator)  # which checks that the budget pays for a first evaluation
    if checker.errors:
        raise ProblemError(path, checker.errors)
    return problem


def _outputs(content: dict[str, Any], checker: Checker) -> tuple[str, ...] | None:
    """Return the names of several outputs, if the file has them."""
    given = content.get("outputs")
    if given is None:
        return None
    if not isinstance(given, list):
        checker.add("outputs", f"must be a list of names, such as ['peak', 'time'], got {brief(given)}")
        return None
    return checker.attempt("outputs", lambda: output_names(given))


def _tolerance(
    content: dict[str, Any], key: str, outputs: tuple[str, ...] | None, checker: Checker
) -> Tolerance | None:
    """Return a tolerance: a number, or with several outputs also a table of them by name."""
    given = content.get(key)
    if outputs is None or not isinstance(given, dict):
        return checker.number(content, key, positive=True)
    checker.known_keys(given, outputs, key)
    found = {name: checker.number(given, name, within=key, positive=True) for name in given}
    return {name: value for name, value in found.items() if value is not None}


def _numbers(content: dict[str, Any], names: list[str], checker: Checker) -> list[int] | None:
    """Return the numbers of the sources in their order of fidelity, from the names in the file, if it has them."""
    wanted = f"the names of all sources, the primary one first, such as {names}"
    order = checker.setting(content, "order", lambda given: _is_order(given, names), wanted)
    return [names.index(name) for name in order] if order is not None and not checker.errors else None


def _is_order(given: Any, names: list[str]) -> bool:
    return isinstance(given, list) and sorted(map(str, given)) == sorted(names) and given[0] == names[0]


def _is_target(value: Any) -> bool:
    try:
        target_from_dict(value)
    except (TypeError, ValueError):
        return False
    return True


def _is_range(value: Any) -> bool:
    numbers = isinstance(value, list) and len(value) == 2 and all(type(end) in (int, float) for end in value)
    return numbers and value[0] < value[1]


def _is_seed(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_one_of(names: Container[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in names
