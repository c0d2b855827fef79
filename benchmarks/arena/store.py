"""Results on the disk: one line of JSON for each run, appended as runs end, and reused while their code is the same."""

from __future__ import annotations

import ast
import hashlib
import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import amsbq

from .designs import RATIO, SIZES
from .families import problem_named
from .methods import METHODS, SETTINGS
from .scores import Row
from .truths import truth_of

FILE = Path(__file__).with_name("results.jsonl")
LIBRARY = Path(amsbq.__file__).parent


@dataclass(frozen=True)
class Record:
    """One run: who, on what, and what came of it."""

    problem: str
    method: str
    seed: int
    digest: str
    seconds: float  # of the processor, with one thread
    evaluations: int
    rows: list[Row]
    failed: str = ""  # the error that the method raised

    @property
    def key(self) -> tuple[str, str, int]:
        """What the run is: problem, method and seed."""
        return self.problem, self.method, self.seed


def digest(method: str, problem: str) -> str:
    """Return a short hash of everything that a run depends on: the method's code and settings, and the problem."""
    chosen, known = METHODS[method], problem_named(problem)
    designs = (SIZES, RATIO) if chosen.given_data else ()
    text = repr((method, SETTINGS, designs, known.fingerprint(truth_of(known)), *map(_digest_of_code, chosen.code)))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cache
def _digest_of_code(name: str) -> str:
    """Return a hash of a file or package of the library, in which comments, docstrings and layout do not count."""
    path = LIBRARY / name
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
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
    rows = [[_short(value) for value in row] for row in numbers]
    seconds = round(record.seconds, 2)
    return json.dumps(vars(record) | {"rows": rows, "seconds": seconds}, separators=(",", ":"), ensure_ascii=False)


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


def load(file: Path = FILE) -> dict[tuple[str, str, int], Record]:
    """Return the latest record of each run; a line that was cut off when the process died is left out."""
    records: dict[tuple[str, str, int], Record] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            record = from_json(line)
        except (json.JSONDecodeError, TypeError, KeyError):
            continue
        records[record.key] = record
    return records


def append(record: Record, file: Path = FILE) -> None:
    """Add a record to the file, on a line of its own even if the last line was cut off."""
    with file.open("ab+") as stream:
        if stream.seek(0, os.SEEK_END):
            stream.seek(-1, os.SEEK_END)
            if stream.read(1) != b"\n":
                stream.write(b"\n")
        stream.write(to_json(record).encode() + b"\n")


def compact(records: Iterable[Record], file: Path = FILE) -> None:
    """Write only these records to the file, in a fixed order, so that old ones do not stay for ever."""
    lines = [to_json(record) for record in sorted(records, key=lambda record: record.key)]
    beside = file.with_suffix(".tmp")
    beside.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    beside.replace(file)
