"""Problem files: a run described in TOML, checked as a whole before anything is evaluated.

budget = 10.0                       # in units of cost
[inputs]                            # named, in order
a = { distribution = "gamma", a = 5, loc = 1, scale = 4, unit = "1/day" }
b = { low = 0.0, high = 1.0 }
[[sources]]                         # the first one is the primary
python = "epidemic:peak"
[[sources]]
command = ["./ode", "--rate", "{a}"]
cost = 0.01
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..certificates.plan import check_shares, kept_budget
from ..common.validation import cut_short
from ..design.description import Problem
from ..design.sources import Source, source_names
from ..execution.integrator import Integrator, integrator_for
from ..measures.base import Measure
from ..simulators.functions import PythonFunction
from ..simulators.numerals import decimal_comma
from .checks import Checker
from .errors import ProblemError
from .inputs import InputsReader
from .schema import PROBLEM, order_of
from .sources import SourcesReader


@dataclass(frozen=True)
class ProblemFile:
    """The content of a problem file: the description of the run, as `amsbq.integrate` makes it from its arguments."""

    path: Path
    sources: list[Source]  #: as in the file
    described: Problem
    certify: float = 0.0  #: the share of the budget that is reserved for a certificate

    @property
    def names(self) -> list[str]:
        """The names of the inputs."""
        return self.described.inputs or []

    @property
    def measure(self) -> Measure:
        """The distribution of the inputs."""
        return self.described.measure

    @property
    def budget(self) -> float:
        """The budget of the run, without the share reserved for a certificate; infinite if goals alone end it."""
        return self.described.budget

    def kept(self, budget: float) -> float:
        """Return the budget reserved for the certificate of a run with this budget."""
        return budget * self.certify / (1 - self.certify) if self.certify else 0.0

    def integrator(self, budget: float | None = None) -> Integrator:
        """Return a new integrator of the problem; ``budget`` replaces the one in the file."""
        described = self.described
        if budget is not None:
            described = replace(described, budget=budget - kept_budget(self.certify, budget))
        if self.certify:
            check_shares(described, self.kept(described.budget))
        return integrator_for(described)

    def require_functions(self) -> None:
        """Raise `ProblemError` if a source is detached, and so cannot be evaluated here."""
        names = source_names(self.sources)
        missing = [name for name, source in zip(names, self.sources, strict=True) if source.function is None]
        if missing:
            raise ProblemError(
                self.path,
                [
                    f"{missing[0]} is detached, so it cannot be evaluated here: get its queries with amsbq ask, "
                    "and record their values with amsbq tell"
                ],
            )

    @property
    def needs_processes(self) -> bool:
        """Whether a source is a Python function, which could crash the process that calls it."""
        return any(isinstance(source.function, PythonFunction) for source in self.sources)


def load_problem(path: str | Path) -> ProblemFile:
    """Read and check a problem file; raise `ProblemError` with all mistakes if there are any."""
    return _checked_problem(Path(path), _content(Path(path)))


def load_inputs(path: Path) -> tuple[list[str], Measure]:
    """Read the names and the distribution of the inputs from a problem file, or from one with nothing else."""
    checker = Checker()
    names, measure = InputsReader(path.resolve().parent, checker).read(_content(path))
    if checker.errors or measure is None:
        raise ProblemError(path, checker.errors)
    return names, measure


def _content(path: Path) -> dict[str, Any]:
    """Return the tables of a file."""
    text = ""
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors may begin with a byte-order mark
        return tomllib.loads(text)
    except OSError as error:
        raise ProblemError(path, [f"cannot be read: {error.strerror or error}"]) from None
    except UnicodeDecodeError:
        raise ProblemError(path, ["is not a text file in UTF-8"]) from None
    except (ValueError, RecursionError) as error:  # integers may have too many digits, and tables too many levels
        journal = path.suffix == ".jsonl"
        hint = "is a journal, not a problem file: use amsbq resume or amsbq status" if journal else ""
        raise ProblemError(path, [hint or f"is not TOML: {error}{_line_of(error, text)}"]) from None


def _line_of(error: Exception, text: str) -> str:
    """Return the line to which an error of the TOML parser refers, with a remark if it has a decimal comma."""
    place, lines = re.search(r"at line (\d+)", str(error)), text.splitlines()
    if place is None or not 0 < int(place[1]) <= len(lines):
        return ""
    line = lines[int(place[1]) - 1].strip()
    return f": {cut_short(line)}{decimal_comma(line.partition('=')[2])}"


def _checked_problem(path: Path, content: dict[str, Any]) -> ProblemFile:
    """Return the problem that the tables of a file describe; raise `ProblemError` if anything is wrong."""
    checker, folder = Checker(PROBLEM), path.resolve().parent
    outputs = Checker().table(PROBLEM, content)["outputs"]  # other keys depend on it
    unlimited = not content.keys().isdisjoint(("rel_tol", "abs_tol", "error_cost"))
    keys = PROBLEM | {"budget": replace(PROBLEM["budget"], missing="")} if unlimited else PROBLEM
    found = checker.table(keys, content, outputs=outputs or ())
    inputs = InputsReader(folder, checker)
    names, measure = inputs.read(content)
    sources = SourcesReader(folder, names, checker, outputs or ()).read(content)
    settings = {name: found[name] for name, key in PROBLEM.items() if key.to == "Integrator"}
    for words, own in inputs.words(content).items():
        settings[words] = {**(settings[words] or {}), **own}
    if not checker.errors and "order" in content:
        settings["order"] = checker.value("order", order_of(source_names(sources)), content["order"])
    if checker.errors or measure is None:
        raise ProblemError(path, checker.errors)
    known = {key: value for key, value in settings.items() if value is not None}
    by_name = {name: f"sources[{number}]" for number, name in enumerate(source_names(sources))}
    about = {"a budget": "budget", **dict(zip(PROBLEM, PROBLEM, strict=True)), **by_name}
    ends, share = {key: found[key] for key in ("budget", "rel_tol", "abs_tol", "error_cost")}, found["certify"]
    kept = checker.attempt("certify", lambda: kept_budget(share, ends["budget"]))
    if kept:
        ends["budget"] -= kept
    described = checker.attempt("", lambda: Problem.of(sources, measure, names=names, **known, **ends), about)
    if described is not None and kept:
        checker.attempt("certify", lambda: check_shares(described, kept))
    if described is not None and not checker.errors:
        checker.attempt("", lambda: integrator_for(described), about)  # the budget must cover a first evaluation
    if checker.errors or described is None:
        raise ProblemError(path, checker.errors)
    return ProblemFile(path, sources, described, share)
