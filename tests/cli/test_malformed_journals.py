"""Journals with valid checksums and malformed content: one clear line, and no traceback."""

import json
from contextlib import suppress

import pytest

import amsbq
from amsbq.cli.main import main
from amsbq.common.serialisation import from_json, to_json
from tests.journals import lines_of

MALFORMED = [None, True, -1, 10**400, float("nan"), "x", [[]], {}]


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    """The events of a run with a failed evaluation, a new budget and an accepted change."""
    path = tmp_path_factory.mktemp("run") / "run.jsonl"

    def fine(x):
        return float("nan") if x[0] > 0.9 else x[0]

    initial = [(0, [0.2]), (0, [0.7]), (0, [0.95]), (1, [0.2]), (1, [0.6])]
    for budget, cost in ((4, 0.1), (5, 0.2)):
        sources = [amsbq.Source(fine, name="fine"), amsbq.Source(fine, cost=cost, name="coarse")]
        options = {"journal": path, "progress": False, "model": "icm", "accept_changes": True}
        amsbq.integrate(sources, amsbq.Uniform(0, 1), budget=budget, initial=initial, **options)
    found = [from_json(text) for text in path.read_text().splitlines()]
    for event in found:
        del event["crc"], event["line"], event["after"]
    kinds = [event["event"] for event in found]
    assert {"failed", "resumed", "accepted", "stopped"} <= set(kinds)
    return [found[kinds.index(kind)] for kind in dict.fromkeys(kinds) if kind != "stopped"] + [found[-1]], found


def written(whole, at, event, path):
    """Write a journal of these events, with another one in one place."""
    path.write_bytes(b"".join(lines_of([*whole[:at], event, *whole[at + 1 :]])))


def replaced(event, where, value):
    """Return a copy of an event with another value at a path of keys; without it if the value is ``...``."""
    copy = from_json(to_json(event))
    inner = copy
    for key in where[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[where[-1]]
    else:
        inner[where[-1]] = value
    return copy


def keys(value, above=()):
    """Yield the paths to all that is in nested dictionaries and in the first entries of lists."""
    entries = (
        value.items() if isinstance(value, dict) else list(enumerate(value))[:1] if isinstance(value, list) else ()
    )
    for key, entry in entries:
        yield (*above, key)
        yield from keys(entry, (*above, key))


COMMANDS = (("status",), ("status", "--json"), ("report", "--text"))


def check(path, capsys, commands=COMMANDS):
    """Run commands on a journal: they work, or say in one line what is wrong."""
    codes = set()
    for command, *options in commands:
        code = main([command, str(path), *options])
        printed = capsys.readouterr()
        codes.add(code)
        if code:
            assert (code, printed.out) == (2, "")
            assert printed.err.startswith("amsbq: ")
            assert printed.err.count("\n") == 1
            assert str(path) in printed.err
        elif options == ["--json"]:
            json.loads(printed.out, parse_constant=pytest.fail)
    return codes


def test_every_field_may_be_malformed(events, tmp_path, capsys):
    different, whole = events
    path, refused = tmp_path / "run.jsonl", 0
    for event in different:
        at = next(i for i, other in enumerate(whole) if other is event)
        for where in keys(event):
            for value in (..., *MALFORMED):
                written(whole, at, replaced(event, where, value), path)
                refused += check(path, capsys, COMMANDS if value is None else COMMANDS[1:2]) == {2}
    assert refused > 200


def test_restoring_a_malformed_model_raises_nothing_else(events, tmp_path):
    different, whole = events
    path = tmp_path / "run.jsonl"
    for event in different:
        if event["event"] not in ("begun", "accepted", "fitted"):
            continue
        at = max(i for i, other in enumerate(whole) if other["event"] == event["event"])
        for where in keys(whole[at]):
            for value in (..., "x", [], -1):
                written(whole, at, replaced(whole[at], where, value), path)
                with suppress(amsbq.JournalError):
                    amsbq.read_result(path)


@pytest.mark.parametrize(
    "body", [b"[1]", b'"event"', b"{}", b'{"event":1}', b"{nonsense}", b"[" * 9999 + b"]" * 9999, b'{"a":"\xff"}']
)
def test_lines_that_are_no_events(events, tmp_path, capsys, body):
    path = tmp_path / "run.jsonl"
    header, checked = lines_of([events[1][0], body if body.endswith(b"}") else {}])
    path.write_bytes(header + (checked if body.endswith(b"}") else body + b"\n"))
    assert check(path, capsys) == {2}
    main(["resume", str(path)])
    assert capsys.readouterr().err.count("\n") == 1
