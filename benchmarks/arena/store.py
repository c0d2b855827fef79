"""Results on disk: a line of JSON for each run and output, appended as runs end, reused while the code is the same."""

from __future__ import annotations

import ast
import hashlib
import json
import lzma
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import amsbq

from .designs import RATIO, SIZES
from .families import problem_named
from .methods import METHODS, SETTINGS, Stage
from .scores import Row
from .truths import truths_of

FILE = Path(__file__).with_name("results.jsonl")
BASELINE = Path(__file__).with_name("baseline.jsonl.xz")  #: results of a release, for comparison
RELEASE = "0.2.0"  #: release of the baseline
LIBRARY = Path(amsbq.__file__).parent

Job: TypeAlias = tuple[str, str, Stage, int]  # problem, method, stage and seed
Key: TypeAlias = tuple[str, str, Stage, int, int]  # problem, method, stage, seed and output


@dataclass(frozen=True)
class Record:
    """The record of one run for one output."""

    problem: str
    method: str
    stage: Stage
    seed: int
    output: int
    fingerprint: str  # of the problem
    digest: str  # of the method's code and settings
    seconds: float  # of the processor, with one thread; those of a run are divided among its outputs
    evaluations: int
    rows: list[Row]
    stopped: str = ""
    failed: str = ""  # the error that the method raised

    @property
    def job(self) -> Job:
        """Problem, method, stage and seed."""
        return self.problem, self.method, self.stage, self.seed

    @property
    def key(self) -> Key:
        """Problem, method, stage, seed and output."""
        return *self.job, self.output

    @property
    def family(self) -> str:
        """The family of the problem."""
        return self.problem.partition("/")[0]


@cache
def fingerprint(problem: str) -> str:
    """Return a short hash of a problem's values, costs and truth."""
    known = problem_named(problem)
    return known.fingerprint(truths_of(known))


@cache
def digest(method: str) -> str:
    """Return a short hash of the method's code and settings, on which a run depends besides its problem."""
    chosen = METHODS[method]
    designs = (SIZES, RATIO) if chosen.given_data else ()
    text = repr((method, SETTINGS, designs, *map(_digest_of_code, chosen.code)))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cache
def _digest_of_code(name: str) -> str:
    """Return a hash of a file or package of the library, in which comments, docstrings and layout do not count."""
    path = LIBRARY / name
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.exists() else []
    trees = "".join(f"{file.relative_to(LIBRARY)}: {meaning(file.read_text())}\n" for file in files)
    return hashlib.sha256(trees.encode()).hexdigest()


def meaning(code: str) -> str:
    """Return the syntax tree of Python code as text, without docstrings."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


def to_json(record: Record) -> str:
    """Return a record as one line, with rows as lists of numbers; null for those that are not finite."""
    numbers = [(r.cost, r.error, r.std, r.surprise, r.probability, *chain(*r.intervals)) for r in record.rows]
    fields = vars(record) | {"rows": [[_short(value) for value in row] for row in numbers]}
    fields["seconds"] = round(record.seconds, 2)
    written = {name: value for name, value in fields.items() if value != ""}
    return json.dumps(written, separators=(",", ":"), ensure_ascii=False)


def from_json(line: str) -> Record:
    """Return the record of a line."""
    fields: dict[str, Any] = json.loads(line)
    return Record(**fields | {"rows": [_row(values) for values in fields["rows"]]})


def _short(value: float) -> float | None:
    return float(f"{value:.4g}") if math.isfinite(value) else None


def _row(values: list[float | None]) -> Row:
    cost, error, std, surprise, probability, *ends = (math.nan if v is None else v for v in values)
    pairs = tuple(zip(ends[::2], ends[1::2], strict=True))
    return Row(cost, error, std, pairs, surprise, probability)


def load(*files: Path) -> dict[Key, Record]:
    """Return the latest record of each run and output; lines truncated when a process died are skipped."""
    records: dict[Key, Record] = {}
    for file in files:
        for line in _text(file).splitlines():
            try:
                record = from_json(line)
            except (json.JSONDecodeError, TypeError, KeyError):
                continue
            records[record.key] = record
    return records


def _text(file: Path) -> str:
    if not file.exists():
        return ""
    content = file.read_bytes()
    return (lzma.decompress(content) if file.suffix == ".xz" else content).decode()


def append(records: Iterable[Record], file: Path = FILE) -> None:
    """Append the records of a run to the file, on new lines even if the last line was truncated."""
    with file.open("ab+") as stream:
        if stream.seek(0, os.SEEK_END):
            stream.seek(-1, os.SEEK_END)
            if stream.read(1) != b"\n":
                stream.write(b"\n")
        stream.write("".join(to_json(record) + "\n" for record in records).encode())


def compact(records: Iterable[Record], file: Path = FILE) -> None:
    """Write only these records to the file, in a fixed order, which drops obsolete ones."""
    lines = [to_json(record) for record in sorted(records, key=lambda record: record.key)]
    content = "".join(line + "\n" for line in lines).encode()
    beside = file.with_suffix(".tmp")
    beside.write_bytes(lzma.compress(content) if file.suffix == ".xz" else content)
    beside.replace(file)


def freeze(file: Path = FILE, baseline: Path = BASELINE) -> None:
    """Make results a part of the baseline."""
    compact(load(baseline, file).values(), baseline)
    file.unlink(missing_ok=True)
