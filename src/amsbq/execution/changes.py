"""Changes of a problem since its journal was written: all that affects a run, compared and described in words."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..common.serialisation import from_json, to_json
from ..design.sources import Source
from ..gp.posterior import gp_from_dict
from ..measures.adapters import measure_from_dict
from .format1 import described
from .integrator import Integrator
from .journal import Event, JournalPath

#: lists with an entry for each source in the description of a problem, and the name of an entry
PER_SOURCE = {"sources": "", "functions": " function"}


def problem_changes(
    it: Integrator, now: Event, inputs: Sequence[str] | None, header: Event, events: Sequence[Event]
) -> tuple[list[str], list[str]]:
    """Return the changes of a problem since its last description in a journal, in words, and the serious ones.

    Only what the journal records is compared. A change of what errors cost is not serious, nor is that of a function
    that has always failed: it has been fixed.
    """
    accepted = [event for event in events if event["event"] == "accepted"]
    before = accepted[-1] if accepted else header
    if before is header and header["format"] == 1:
        now = described(now, it)
    problem, named = before.get("problem"), before.get("inputs") or header.get("inputs")
    if not isinstance(problem, dict):
        return [], []  # invalid content, which the reader of the state reports
    compared = from_json(to_json({key: value for key, value in now.items() if key in problem}))
    for key in ("measure", "model"):
        compared[key] = _recorded(compared.get(key), problem.get(key))
    names = [] if named is None or inputs is None else list(_differences(named, list(inputs), "inputs"))
    # like a budget, what errors cost may change
    kept = compared | {key: problem[key] for key in ("error_cost",) if key in problem}
    fixed = _sources_that_only_failed(events)
    if _are_lists_of_one_length(problem.get("functions"), compared.get("functions")):
        pairs = list(zip(problem["functions"], compared["functions"], strict=True))
        compared["functions"] = [_with_recorded_digests(new, old) for old, new in pairs]
        kept["functions"] = [
            old if source in fixed else new
            for source, (old, new) in enumerate(zip(problem["functions"], compared["functions"], strict=True))
        ]
    return [*names, *_differences(problem, compared, "")], [*names, *_differences(problem, kept, "")]


def _are_lists_of_one_length(one: Any, other: Any) -> bool:
    return isinstance(one, list) and isinstance(other, list) and len(one) == len(other)


def _with_recorded_digests(now: Any, before: Any) -> Any:
    """Return the description of a function, omitting digests if an older journal does not have them."""
    if isinstance(now, dict) and isinstance(before, dict) and "digests" not in before:
        return {key: value for key, value in now.items() if key != "digests"}
    return now


def function_changes(before: Any, now: Any, name: str) -> list[str]:
    """Return the changes of a source's function, in words; none if a journal does not describe it."""
    if before is None:
        return []
    compared = from_json(to_json(_with_recorded_digests(now, before)))
    return list(_differences(before, compared, name))


def _sources_that_only_failed(events: Sequence[Event]) -> set[Any]:
    """Return the sources with failed evaluations but no value in a journal."""
    asked = {event["id"]: event.get("source") for event in events if _is_of(event, "asked")}
    told = {asked.get(event["id"]) for event in events if _is_of(event, "told", "corrected")}
    observed = [event.get("source") for event in events if event["event"] == "observed"]
    failed = {asked.get(event["id"]) for event in events if _is_of(event, "failed")}
    return {source for source in failed - told if source not in observed}


def _is_of(event: Event, *kinds: str) -> bool:
    """Return whether an event has one of these kinds and a number; the reader of the state reports others."""
    return event["event"] in kinds and isinstance(event.get("id"), int) and isinstance(event.get("source", 0), int)


def _recorded(now: Any, before: Any) -> Any:
    """Return a description without the keys that an older one lacks."""
    if isinstance(now, dict) and isinstance(before, dict):
        return {key: _recorded(value, before[key]) for key, value in now.items() if key in before}
    if isinstance(now, list) and isinstance(before, list) and len(now) == len(before):
        return [_recorded(*pair) for pair in zip(now, before, strict=True)]
    return now


def described_problem(it: Integrator, path: JournalPath) -> Event:
    """Return everything on which the values and the choices of a run depend, as the content of a JSON object.

    Folders are relative to that of the journal, ``path``: both may be moved together.
    """
    functions = [_described_function(source, Path(path)) for source in it.sources]
    # observations made before the journal, which it does not contain
    return {**it.problem.to_dict(), "functions": functions, "observed": len(it.learner)}


def _described_function(source: Source, path: Path) -> dict[str, Any] | None:
    described = source.definition()
    if described is not None and "folder" in described:
        described = {**described, "folder": os.path.relpath(described["folder"], path.resolve().parent)}
    return described


def _differences(before: Any, now: Any, where: str) -> Iterator[str]:
    """Yield the differences between two descriptions of a problem, in words."""
    if isinstance(before, dict) and isinstance(now, dict) and "class" not in {**before, **now}:
        for key in {**before, **now}:
            yield from _differences(before.get(key), now.get(key), f"{where} {key}".strip())
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now) and where in PER_SOURCE:
        for number, (old, new) in enumerate(zip(before, now, strict=True)):
            yield from _differences(old, new, f"source {number}'s{PER_SOURCE[where]}")
    elif before != now and to_json(before) != to_json(now):  # NaN is not equal to itself
        old, new = _text(before), _text(now)
        if old == new:  # such as two sets of samples
            old, new = (f"{old} with checksum {zlib.crc32(to_json(one).encode()):08x}" for one in (before, now))
        yield f"{where} was {old}, and now is {new}"


def _text(value: Any) -> str:
    """Return part of a description as a user would write it, or briefly described."""
    if isinstance(value, list) and any(isinstance(entry, list | dict) for entry in value):
        return f"a list of {len(value)}"
    if isinstance(value, dict) and "class" in value:
        try:
            return repr(gp_from_dict(value) if value["class"] == "MultiSourceGP" else measure_from_dict(value))
        except ValueError:
            return str(value["class"])
    return repr(value)
