"""Journals: what is on the disk when the plug is pulled, what is refused, and runs that go on as if nothing was."""

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from functools import wraps
from pathlib import Path

import numpy as np
import pytest

import amsbq
from amsbq.cli.main import main
from amsbq.execution.evaluate import evaluate
from amsbq.execution.journal import FORMAT, Journal, JournalError, read_journal
from amsbq.execution.resume import begin_or_resume
from amsbq.execution.runner import run as run_it
from tests.journals import lines_of
from tests.waiting import eventually

UNIT = amsbq.Uniform(0, 1)
STORED = Path(__file__).parent / "journals"


def fine(x):
    return float(np.sin(5 * x[0]) + x[0])


def coarse(x):
    return float(np.sin(5 * x[0]) + 0.2)


SOURCES = [amsbq.Source(fine, name="fine"), amsbq.Source(coarse, cost=0.1, name="coarse")]
GP = amsbq.MultiSourceGP(
    [amsbq.Term([[1.0, 0.8], [0.8, 1.0]], amsbq.RBF(0.2)), amsbq.Term(np.eye(2), amsbq.Constant())], UNIT
)


def run(path, model=GP, budget=4.0, sources=SOURCES, **options):
    return amsbq.integrate(sources, UNIT, budget=budget, model=model, journal=path, progress=False, **options)


def everything(result):
    return (
        result.mean,
        result.std,
        result.spent,
        result.stopped,
        [(e.id, e.source, e.x.tolist(), e.value, e.cost, e.status, e.mean, e.std) for e in result.evaluations],
    )


def test_a_new_journal_tells_of_everything(tmp_path):
    result = run(tmp_path / "run.jsonl")
    header, events = read_journal(tmp_path / "run.jsonl")
    assert header["format"] == FORMAT
    assert [s["name"] for s in header["problem"]["sources"]] == ["fine", "coarse"]
    kinds = [event["event"] for event in events]
    assert kinds.count("asked") == kinds.count("told") == kinds.count("known") == len(result.evaluations)
    assert kinds[-1] == "stopped"
    told = [event["value"] for event in events if event["event"] == "told"]
    assert told == [e.value for e in result.evaluations]  # to the last bit
    assert [event["cost"] for event in events if event["event"] == "told"] == [e.cost for e in result.evaluations]


def test_few_refits_are_written(tmp_path):
    """When observations have doubled, and the last. Any other is made again."""
    path = tmp_path / "run.jsonl"
    whole = run(path, model="icm", budget=100.0, max_evaluations=13)
    _, events = read_journal(path)
    at = [event["n"] for event in events if event["event"] == "fitted"]
    assert at == [1, 2, 4, 8, 13]
    last = path.read_text().splitlines(keepends=True)
    cut = next(i for i, line in enumerate(last) if '"event":"known","id":11,' in line)
    path.write_text("".join(last[: cut + 1]))
    again = run(path, model="icm", budget=100.0, max_evaluations=13)
    assert everything(again) == everything(whole)


def test_learning_goes_on_after_a_crash_as_without_one(tmp_path):
    """Draws of hyperparameters are carried along from value to value: a resumed run carries along the same."""
    sources = [amsbq.Source(fine), amsbq.Source(coarse, cost=0.2)]

    def run_default(path):
        return amsbq.integrate(sources, UNIT, budget=5.0, journal=path)

    whole, lines = run_default(tmp_path / "run.jsonl"), (tmp_path / "run.jsonl").read_text().splitlines(keepends=True)
    told = [i for i, line in enumerate(lines) if '"event":"told"' in line]
    for cut in told[5::3]:
        path = tmp_path / f"{cut}.jsonl"
        path.write_text("".join(lines[: cut + 1]))
        assert everything(run_default(path)) == everything(whole)


def test_the_header_describes_the_problem_in_plain_values(tmp_path):
    """No text in it has to be parsed again."""
    sources = [amsbq.Source(fine, name="fine", valid=(-math.inf, 9.0)), amsbq.Source(coarse, cost="measured", name="b")]
    run(tmp_path / "run.jsonl", budget=2.0, sources=sources, initial=[(0, 0.5)], max_evaluations=1)
    problem = read_journal(tmp_path / "run.jsonl")[0]["problem"]
    assert problem["sources"] == [
        {"name": "fine", "cost": 1.0, "noise": 0.0, "valid": [-math.inf, 9.0]},
        {"name": "b", "cost": "measured", "noise": 0.0, "valid": None},
    ]
    assert problem["measure"] == UNIT.to_dict()
    assert problem["model"]["terms"] == [
        {"B": [[1.0, 0.8], [0.8, 1.0]], "kernel": {"class": "RBF", "lengthscales": 0.2}},
        {"B": [[1.0, 0.0], [0.0, 1.0]], "kernel": {"class": "Constant"}},
    ]
    assert (problem["seed"], problem["acquisition"], problem["initial"]) == (0, "mi", [[0, [0.5]]])


def test_what_is_not_valid_is_written_as_failed(tmp_path):
    sources = [amsbq.Source(fine, name="fine", valid=(-1, 0.9)), SOURCES[1]]
    result = run(tmp_path / "run.jsonl", sources=sources)
    _, events = read_journal(tmp_path / "run.jsonl")
    failed = [event["reason"] for event in events if event["event"] == "failed"]
    assert failed == [e.reason for e in result.evaluations if e.status == "failed"] != []
    asked = {event["id"]: event["source"] for event in events if event["event"] == "asked"}
    told = [event for event in events if event["event"] == "told"]
    assert all(-1 <= event["value"] <= 0.9 for event in told if asked[event["id"]] == 0)
    assert all(event["cost"] > 0 for event in events if event["event"] in ("told", "failed"))


def test_without_a_journal_it_is_the_same(tmp_path):
    plain = amsbq.integrate(SOURCES, UNIT, budget=4.0, model=GP, progress=False)
    assert everything(plain) == everything(run(tmp_path / "run.jsonl"))


@pytest.mark.parametrize("model", [GP, "icm", "auto"])
def test_a_run_goes_on_from_any_line(tmp_path, model):
    path = tmp_path / "run.jsonl"
    whole = everything(run(path, model, 2.4))
    lines = path.read_bytes().splitlines(keepends=True)
    some = range(1, len(lines)) if model is GP else (2, 5, 9, len(lines) // 2, len(lines) - 4, len(lines) - 1)
    for kept in some:
        path.write_bytes(b"".join(lines[:kept]))
        calls = []

        @wraps(fine)
        def counted(x, calls=calls):
            calls.append(x)
            return fine(x)

        again = run(path, model, 2.4, [amsbq.Source(counted, name="fine"), SOURCES[1]])
        assert everything(again) == whole
        events = [json.loads(line) for line in lines[1:kept]]
        asked = {e["id"]: e["source"] for e in events if e["event"] == "asked"}
        known = [e["id"] for e in events if e["event"] == "told" and asked[e["id"]] == 0]
        assert len(calls) + len(known) == sum(e[1] == 0 for e in whole[4])  # no reported value is evaluated again
        assert path.read_bytes().splitlines()[-1] == lines[-1].strip()


def test_it_can_be_cut_anywhere(tmp_path):
    path = tmp_path / "run.jsonl"
    whole = everything(run(path))
    content = path.read_bytes()
    end_of_last_three = len(b"".join(content.splitlines(keepends=True)[:-3]))
    for size in range(end_of_last_three, len(content), 2):
        path.write_bytes(content[:size])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            again = run(path)
        assert everything(again) == whole
        torn = content[:size][-1:] != b"\n" and content[size : size + 1] != b"\n"  # which would be all that lacks
        assert any("not finished" in str(w.message) for w in caught) == torn


def test_a_finished_run_is_only_looked_at(tmp_path):
    path = tmp_path / "run.jsonl"
    whole, content = everything(run(path)), path.read_bytes()

    @wraps(fine)
    def never(x):
        raise AssertionError

    assert everything(run(path, sources=[amsbq.Source(never, name="fine"), SOURCES[1]])) == whole
    assert path.read_bytes() == content


def test_a_larger_budget_goes_further(tmp_path):
    path = tmp_path / "run.jsonl"
    first = run(path)
    more = run(path, budget=6.0)
    assert more.spent > first.spent
    assert everything(more)[4][: len(first.evaluations)] == everything(first)[4]


def test_damage_is_noticed_and_left_alone(tmp_path):
    path = tmp_path / "run.jsonl"
    run(path)
    content = bytearray(path.read_bytes())
    lines = bytes(content).splitlines(keepends=True)
    digit = len(b"".join(lines[:6])) + lines[6].index(b"0")
    content[digit] ^= 1  # another digit: still JSON, and wrong
    path.write_bytes(content)
    with pytest.raises(JournalError, match=r"line 7 of .* is damaged"):
        run(path)
    assert path.read_bytes() == bytes(content)


def test_lines_that_are_missing_moved_or_of_another_journal_are_noticed(tmp_path):
    path, other = tmp_path / "run.jsonl", tmp_path / "other.jsonl"
    run(path)
    run(other, seed=1)
    lines, theirs = (file.read_bytes().splitlines(keepends=True) for file in (path, other))
    n, rng = len(lines), np.random.default_rng(2)
    damaged = [lines[:k] + lines[k + 1 :] for k in range(n - 1)]  # without the last one it is just shorter
    for i, j in (sorted(rng.choice(n, 2, replace=False)) for _ in range(100)):
        damaged.append([*lines[:i], lines[j], *lines[i + 1 : j], lines[i], *lines[j + 1 :]])
    damaged += [lines[:k] + lines[k - 1 :] for k in range(1, n)]  # one is there twice
    damaged += [[theirs[0], *lines[1:]], [*lines[:5], *theirs[5:]]]
    for content in damaged:
        path.write_bytes(b"".join(content))
        for read in (run, read_journal):
            with pytest.raises(JournalError, match=r"does not follow the previous line|not a journal"):
                read(path)
        assert path.read_bytes() == b"".join(content)
    path.write_bytes(b"".join(lines[:-1]))
    assert len(read_journal(path)[1]) == n - 2  # lines that are cut off at the end cannot be noticed


def journals_of_three_front_doors(folder):
    """Return journals of `integrate`, of a problem file, and of queries that were asked and told in a shell."""
    run(folder / "integrate.jsonl")
    text = "budget = 2\n[inputs]\nx = { low = 0.0, high = 1.0 }\n[[sources]]\n"
    (folder / "file.toml").write_text(f"{text}command = ['echo', '{{x}}']\n")
    (folder / "detached.toml").write_text(f"{text}detached = true\n")
    assert main(["run", str(folder / "file.toml")]) == 0
    for number in range(2):
        assert main(["ask", str(folder / "detached.toml")]) == 0
        assert main(["tell", str(folder / "detached.jsonl"), str(number), "0.5"]) == 0
    return [folder / f"{name}.jsonl" for name in ("integrate", "file", "detached")]


def damaged_at_random(rng, lines, foreign):
    """Yield damaged contents of a journal; after each, whether it is cut, so that its beginning may be taken for it."""
    n, content = len(lines), b"".join(lines)
    for _ in range(10):
        i, j, k = rng.integers(n - 1), rng.integers(n), rng.integers(1, len(foreign))
        yield b"".join([*lines[:i], *lines[i + 1 :]]), False
        yield b"".join([*lines[: i + 1], lines[j], *lines[i + 1 :]]), False  # doubled
        yield b"".join([*lines[:j], foreign[k], *lines[j + 1 :]]), False
        at = rng.integers(len(content))
        flipped = bytes([content[at] ^ 1 << rng.integers(8)])
        yield content[:at] + flipped + content[at + 1 :], False
        yield content[:at], True
        yield content[:at] + rng.bytes(5) + content[at:], False
        noise = rng.bytes(rng.integers(1, 40))
        before = rng.integers(len(content) - 100)  # without the end, which may be taken for a cut
        yield content[:before] + noise + content[before + len(noise) :], False
        if i != j:
            swapped = list(lines)
            swapped[i], swapped[j] = lines[j], lines[i]
            yield b"".join(swapped), False
    value = content.index(b'"value":') + len(b'"value":')  # what somebody does who would have another value
    yield content[:value] + b"7." + content[value + 2 :], False
    yield foreign[0] + b"".join(lines[1:]), False
    yield foreign[0] + content, False
    yield content + b"".join(foreign), False
    yield b"".join(sorted(lines)), False
    for old, new in ((b"\n", b"  \n"), (b":", b": "), (b"\n", b"\r"), (b"\n", b"")):
        yield content.replace(old, new), False
    for note in (b"# of Monday\n", b"\n"):
        yield note + content, False
        yield lines[0] + note + b"".join(lines[1:]), False


def test_damage_of_three_hundred_journals_is_noticed_or_repaired(tmp_path, capsys):
    """Of all front doors; what is left of a journal that was cut is its beginning, and the rest an error."""
    rng, paths, path, seen = np.random.default_rng(3), journals_of_three_front_doors(tmp_path), tmp_path / "j.jsonl", 0
    contents = [file.read_bytes().splitlines(keepends=True) for file in paths]
    for file, lines, foreign in zip(paths, contents, [*contents[1:], contents[0]], strict=True):
        header, events = read_journal(file)
        for content, cut in damaged_at_random(rng, lines, foreign):
            if content == b"".join(lines):
                continue
            seen += 1
            path.write_bytes(content)
            if not cut:
                for open_it in (read_journal, Journal):
                    with pytest.raises(JournalError):
                        open_it(path)
                assert main(["status", str(path)]) == 2
                assert path.read_bytes() == content
                continue
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                with Journal(path) as journal:
                    left = [] if journal.header is None else [journal.header, *journal.events]
            assert repr(left) == repr([header, *events][: len(left)])
            assert path.read_bytes() == b"".join(lines[: len(left)])
            assert bool(caught) == (content not in (b"".join(lines[: len(left)]), b"".join(lines[: len(left)])[:-1]))
    assert seen > 250


@pytest.mark.parametrize("name", ["format-1", "format-2", "format-2-functions"])
def test_earlier_formats_notice_what_the_page_says(tmp_path, name):
    """Altered lines, and lines that are missing if what is left makes no sense; a missing answer makes sense."""
    path, lines = tmp_path / "run.jsonl", (STORED / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    asked, told = (
        next(i for i, line in enumerate(lines) if b'"event":"%s"' % kind in line) for kind in (b"asked", b"told")
    )
    rng = np.random.default_rng(0)
    for _ in range(100):
        number = rng.integers(len(lines))
        at = rng.integers(len(lines[number]))
        altered = lines[number][:at] + bytes([lines[number][at] ^ 1 << rng.integers(8)]) + lines[number][at + 1 :]
        path.write_bytes(b"".join([*lines[:number], altered, *lines[number + 1 :]]))
        with pytest.raises(JournalError, match=r"damaged|not a journal"):
            read_journal(path)
    path.write_bytes(b"".join([*lines[:asked], *lines[asked + 1 :]]))
    with pytest.raises(JournalError, match="records something that cannot have happened"):
        amsbq.read_result(path)
    path.write_bytes(b"".join([*lines[:told], *lines[told + 1 :]]))
    assert len(amsbq.read_result(path).evaluations) == len(amsbq.read_result(STORED / f"{name}.jsonl").evaluations) - 1


def test_the_lines_of_a_journal_are_those_that_the_page_describes(tmp_path):
    path = tmp_path / "run.jsonl"
    run(path)
    header, events = read_journal(path)
    assert path.read_bytes().splitlines(keepends=True) == lines_of([header, *events])


@pytest.mark.parametrize("name", ["format-1", "format-2"])
def test_an_older_journal_goes_on_in_its_format(tmp_path, name):
    path = tmp_path / "run.jsonl"
    path.write_bytes((STORED / f"{name}.jsonl").read_bytes())
    before = len(path.read_bytes().splitlines())
    with Journal(path) as journal:
        journal.write({"event": "resumed", "budget": 3.0})
    new = json.loads(path.read_text().splitlines()[-1])
    assert "line" not in new
    assert len(read_journal(path)[1]) == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"sources": [amsbq.Source(fine, name="fine"), amsbq.Source(coarse, cost=0.2, name="coarse")]},
            "cost was 0.1, and now is 0.2",
        ),
        ({"sources": [amsbq.Source(fine, name="other"), SOURCES[1]]}, "name was 'fine', and now is 'other'"),
        ({"seed": 1}, "seed was 0, and now is 1"),
        ({"acquisition": "ivr"}, "acquisition was 'mi', and now is 'ivr'"),
        ({"initial": [(0, 0.5)]}, "initial was None, and now is a list of 1"),
        ({"model": "icm"}, r"model was MultiSourceGP\(.*\), and now is 'icm'"),
        (
            {"model": amsbq.MultiSourceGP([amsbq.Term(np.eye(2), amsbq.Matern(1.5, 0.3))], UNIT)},
            r"and now is MultiSourceGP\(\[Term\(\[\[1.0, 0.0\], \[0.0, 1.0\]\], Matern\(1.5, 0.3\)",
        ),
    ],
)
def test_the_journal_of_another_run_is_refused(tmp_path, change, said):
    path = tmp_path / "run.jsonl"
    run(path)
    content = path.read_bytes()
    with pytest.raises(JournalError, match=said):
        run(path, **change)
    assert path.read_bytes() == content


def test_another_measure_is_another_run(tmp_path):
    path = tmp_path / "run.jsonl"
    run(path, "icm", 3.0)
    with pytest.raises(JournalError, match=r"measure was Uniform\(\[0.0\], \[1.0\]\), and now is Uniform"):
        amsbq.integrate(SOURCES, amsbq.Uniform(0, 2), budget=3.0, model="icm", journal=path)


def test_observations_that_are_not_in_the_journal_must_be_there_again(tmp_path):
    def observed(*xs):
        it = amsbq.Integrator(SOURCES, UNIT, budget=2.0, model=GP)
        for x in xs:
            it.observe(1, x, coarse([x]))
        return it

    path = tmp_path / "run.jsonl"
    first = run_it(observed(0.1, 0.9), journal=path, progress=False)
    again = run_it(observed(0.1, 0.9), journal=path, progress=False)
    assert repr(everything(again)) == repr(everything(first))
    with pytest.raises(JournalError, match="observed was 2, and now is 0"):
        run_it(observed(), journal=path, progress=False)


def test_samples_are_told_apart(tmp_path):
    path = tmp_path / "run.jsonl"
    rng = np.random.default_rng(0)
    samples = rng.uniform(size=(50, 1))
    amsbq.integrate(SOURCES, amsbq.Empirical(samples), budget=3.0, model="icm", journal=path)
    with pytest.raises(JournalError, match=r"measure was Empirical.* with checksum \w+, and now is Empirical"):
        amsbq.integrate(SOURCES, amsbq.Empirical(samples + 0.01), budget=3.0, model="icm", journal=path)


def test_what_is_no_journal_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n")
    with pytest.raises(JournalError, match=r"notes.txt is not a journal, and is left unchanged"):
        run(path)
    assert path.read_text() == "my notes\n"


@pytest.mark.parametrize(
    "content", [b"my notes", b"{", b'{"a": 1}', b"\0" * 80, b'{"event":"begun"}', b"\xef\xbb\xbf{"]
)
def test_one_line_that_is_no_journal_is_left_alone(tmp_path, content):
    """It looks like a line that was not finished, which is removed only where a journal begins."""
    path = tmp_path / "notes"
    path.write_bytes(content)
    if content == b"{":  # as a header that was cut off would begin
        with pytest.warns(UserWarning, match="not finished"):
            run(path)
        return
    with pytest.raises(JournalError, match="is not a journal, and is left unchanged"):
        run(path)
    with pytest.raises(JournalError, match="is not a journal"):
        read_journal(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("kind", ["FIFO", "device", "folder"])
def test_what_is_no_file_is_refused(tmp_path, kind):
    path = {"FIFO": tmp_path / "fifo", "device": Path("/dev/zero"), "folder": tmp_path}[kind]
    if kind == "FIFO":
        os.mkfifo(path)
    with pytest.raises(JournalError, match=f"is a .*{kind}.*, but a journal must be a file"):
        run(path)
    with pytest.raises(JournalError, match=f"is a .*{kind}"):
        read_journal(path)


def test_a_newer_format_is_refused(tmp_path):
    path = tmp_path / "run.jsonl"
    with Journal(path) as journal:
        journal.write({"event": "begun", "format": FORMAT + 1, "version": "99.0"})
    with pytest.raises(JournalError, match=r"newer amsbq \(99.0"):
        run(path)


def test_a_journal_has_one_writer(tmp_path):
    path = tmp_path / "run.jsonl"
    with Journal(path), pytest.raises(JournalError, match="in use by another run"):
        run(path)
    code = f"from amsbq.execution.journal import Journal\ntry: Journal({str(path)!r})\nexcept Exception as e: print(e)"
    with Journal(path):
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "in use by another run" in said
    run(path)


def test_a_read_only_folder_is_an_error_before_anything_is_evaluated():
    calls = []
    it = amsbq.Integrator([amsbq.Source(calls.append, name="fine"), SOURCES[1]], UNIT, budget=4)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        root = os.geteuid() == 0
        try:
            if root:
                os.seteuid(65534)  # who may not write everywhere
            with pytest.raises(JournalError, match="cannot be opened: Permission denied"):
                run_it(it, journal=Path(folder) / "run.jsonl", progress=False)
        finally:
            if root:
                os.seteuid(0)
    assert not calls


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(JournalError, match="cannot be opened: No such file"):
        run(tmp_path / "nowhere" / "run.jsonl")


FULL = """
import resource, sys
sys.path.insert(0, {tests!r})
from tests.execution.test_journal import *
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
try:
    run({path!r})
except JournalError as error:
    print(error)
"""


def test_a_full_disk_loses_nothing_that_was_told(tmp_path):
    path = tmp_path / "run.jsonl"
    whole = everything(run(path))
    size = path.stat().st_size
    for limit in (0.4 * size, 0.9 * size):
        path.unlink()
        code = FULL.format(tests=str(Path(__file__).parents[2]), limit=int(limit), path=str(path))
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert (
            "cannot be written: File too large. Earlier lines are kept; the line that could not be written is {" in said
        )
        _, events = read_journal(path)  # whole lines only
        assert events
        assert everything(run(path)) == whole


def test_floats_survive_to_the_last_bit(tmp_path):
    values = [0.1 + 0.2, 1e-300, -5e-324, 2**53 + 1.0, np.nextafter(1, 2), math.inf, -math.inf]
    with Journal(tmp_path / "a.jsonl") as journal:
        journal.begin({})
        journal.write({"event": "told", "value": values, "nothing": float("nan"), "x": np.array(values)})
    _, [event] = read_journal(tmp_path / "a.jsonl")
    assert event["value"] == event["x"] == values
    assert math.isnan(event["nothing"])
    for line in (tmp_path / "a.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)  # JSON that every program can read


def test_text_that_is_not_unicode_survives(tmp_path):
    reason = "no licence \udcff at ü"  # as the output of a program with another encoding
    with Journal(tmp_path / "a.jsonl") as journal:
        journal.begin({})
        journal.write({"event": "failed", "reason": reason})
    assert read_journal(tmp_path / "a.jsonl")[1][0]["reason"] == reason
    (tmp_path / "a.jsonl").read_text("utf-8")


def test_infinities_survive_a_resume(tmp_path):
    """No budget and a range with one end: the same decisions after the resume, and JSON that every program can read."""
    path = tmp_path / "run.jsonl"
    sources = [
        amsbq.Source(fine, name="fine", valid=(-math.inf, 9)),
        amsbq.Source(coarse, cost=0.1, valid=(-9, math.inf)),
    ]

    def without_budget(path, n):
        it = amsbq.Integrator(sources, UNIT, model="icm")
        return run_it(it, [amsbq.stopping.evaluations(n)], journal=path, progress=False)

    without_budget(path, 4)
    for line in path.read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)
    more = without_budget(path, 7)
    assert everything(more) == everything(without_budget(tmp_path / "whole.jsonl", 7))
    read = amsbq.read_result(path)
    assert (read.budget, read.integrator.budget) == (math.inf, math.inf)
    assert [source.valid for source in read.integrator.sources] == [(-math.inf, 9), (-9, math.inf)]
    with pytest.raises(JournalError, match=r"source 0's valid was \[-inf, 9.0\], and now is None"):
        run_it(amsbq.Integrator(SOURCES, UNIT, model="icm"), journal=path, progress=False)


@pytest.fixture(params=sorted(STORED.glob("*.jsonl")), ids=lambda path: path.name)
def stored(request, tmp_path):
    """A copy of a journal that an older version has written."""
    copy = tmp_path / request.param.name
    copy.write_bytes(request.param.read_bytes())
    return copy


def test_journals_of_all_versions_still_load(stored):
    content = stored.read_bytes()
    result = run(stored, "icm", 3.0)
    assert stored.read_bytes() == content
    assert result.stopped == "budget"
    known = [json.loads(line) for line in content.splitlines() if b'"known"' in line]
    assert [(e.id, e.mean, e.std) for e in result.evaluations] == [
        (event["id"], event["mean"], event["std"]) for event in known
    ]
    assert result.mean == pytest.approx(known[-1]["mean"], rel=1e-7)  # without noise, rounding is magnified


def test_journals_of_all_versions_can_be_read(stored):
    result = amsbq.read_result(stored)
    whole = run(stored, "icm", 3.0)
    assert repr(everything(result)[2:]) == repr(everything(whole)[2:])
    assert result.mean == pytest.approx(whole.mean, rel=1e-7)
    assert result.integrator.preview().x.tolist() == whole.integrator.preview().x.tolist()
    assert result.diagnose()


def test_journals_of_all_versions_go_on(stored):
    content = stored.read_bytes()
    more = run(stored, "icm", 4.5)
    assert more.spent > 3.0
    assert stored.read_bytes().startswith(content)  # the header is not written again
    assert repr(everything(run(stored, "icm", 4.5))) == repr(everything(more))
    again = amsbq.read_result(stored)
    assert (again.mean, again.budget, again.stopped) == (more.mean, 4.5, "budget")
    with pytest.raises(JournalError, match=r"cost was 0.1, and now is 0.2"):
        run(stored, "icm", 4.5, [SOURCES[0], amsbq.Source(coarse, cost=0.2, name="coarse")])
    with pytest.raises(JournalError, match=r"measure was .*Uniform\(\[0.0\], \[1.0\]\).*, and now is .*2.0"):
        amsbq.integrate(SOURCES, amsbq.Uniform(0, 2), budget=4.5, model="icm", journal=stored)


@pytest.mark.parametrize("model", [GP, "icm"])
def test_an_integral_that_was_not_written_is_evaluated_on_resume(tmp_path, model):
    """The process died between the value and the integral after it."""
    path = tmp_path / "run.jsonl"
    whole = run(path, model, 2.4)
    lines = path.read_bytes().splitlines(keepends=True)
    told = [i for i, line in enumerate(lines) if b'"told"' in line][4]
    path.write_bytes(b"".join(lines[: told + 1]))
    it = amsbq.Integrator(SOURCES, UNIT, budget=2.4, model=model)
    with Journal(path) as journal:
        begin_or_resume(journal, it)
    assert [(e.id, e.mean, e.std) for e in it.evaluations] == [
        (e.id, e.mean, e.std) for e in whole.evaluations[: len(it.evaluations)]
    ]
    known = next(i for i in range(told, len(lines)) if b'"known"' in lines[i])
    assert path.read_bytes() == b"".join(lines[: known + 1])


def test_long_runs_go_on_where_they_were_between_times_to_learn(tmp_path):
    """There posteriors are extended, not made anew: to the last bit the same, whatever was looked at before."""
    sources = [amsbq.Source(fine, name="fine"), amsbq.Source(coarse, cost=0.05, noise=1e-3, name="coarse")]
    initial = [(0, [0.2]), (0, [0.8])] + [(1, [x]) for x in np.linspace(0, 1, 25)]
    whole = run(tmp_path / "whole.jsonl", "icm", 5.0, sources, initial=initial)
    assert len(whole.evaluations) > 32
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    told = [i for i, line in enumerate(lines) if b'"told"' in line]
    for n in (26, 29, 31):
        path = tmp_path / f"{n}.jsonl"
        path.write_bytes(b"".join(lines[: told[n] + 1]))
        assert everything(run(path, "icm", 5.0, sources, initial=initial)) == everything(whole)


KILLED = """
import sys, time
sys.path.insert(0, {tests!r})
from tests.execution.test_journal import *
@wraps(fine)
def slow(x):
    with open({calls!r}, "a") as file: file.write(f"{{x[0]!r}}\\n")
    time.sleep(0.01)
    return fine(x)
run({path!r}, "icm", 2.6, [amsbq.Source(slow, name="fine"), SOURCES[1]])
"""


def journal_lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_the_same(tmp_path):
    """A few times; benchmarks/kill.py does it as often as you like."""
    path, calls = tmp_path / "run.jsonl", tmp_path / "calls"
    whole = everything(run(tmp_path / "whole.jsonl", "icm", 2.6))
    code = KILLED.format(tests=str(Path(__file__).parents[2]), path=str(path), calls=str(calls))
    rng, kills = np.random.default_rng(0), 0
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    for _ in range(4):
        lines = journal_lines(path) + int(rng.integers(1, 10))
        with subprocess.Popen([sys.executable, "-c", code], env=environment) as process:
            assert eventually(lambda: journal_lines(path) >= lines or process.poll() is not None)  # noqa: B023
            process.kill()
        kills += process.returncode == -signal.SIGKILL
    assert kills
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert everything(run(path, "icm", 2.6)) == whole
    made = calls.read_text().splitlines() if calls.exists() else []
    told = [repr(e[2][0]) for e in whole[4] if e[1] == 0]
    for x in told:  # again only what was under way when it was killed
        assert made.count(x) <= 1 + kills


def test_an_interrupt_is_in_the_journal_and_the_run_goes_on(tmp_path):
    path = tmp_path / "run.jsonl"
    whole = everything(run(tmp_path / "whole.jsonl"))
    calls = []

    @wraps(fine)
    def interrupted(x):
        calls.append(x)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return fine(x)

    with pytest.raises(KeyboardInterrupt) as caught:
        run(path, sources=[amsbq.Source(interrupted, name="fine"), SOURCES[1]])
    assert caught.value.result.stopped == "interrupted"
    assert len(calls) == 3  # what was running came to its end
    assert [e.id for e in caught.value.result.evaluations] == [e.id for e in amsbq.read_result(path).evaluations]
    _, events = read_journal(path)
    assert events[-1]["reason"] == "interrupted"
    assert everything(run(path)) == whole


def test_the_second_interrupt_stops_at_once(tmp_path):
    path = tmp_path / "run.jsonl"
    calls = []

    @wraps(fine)
    def impatient(x):
        calls.append(x)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
        return fine(x)

    first = run(path, sources=[amsbq.Source(impatient, name="fine"), SOURCES[1]], on_interrupt="return")
    assert first.stopped == "interrupted"
    assert sum(e.source == 0 for e in first.evaluations) == 1
    assert everything(run(path)) == everything(run(tmp_path / "whole.jsonl"))


def test_workers_lose_nothing_either(tmp_path):
    path = tmp_path / "run.jsonl"
    first = run(path, budget=3.0, workers=3, max_evaluations=8)
    assert first.stopped == "evaluations"
    seen = [(e.source, *e.x) for e in first.evaluations]

    @wraps(fine)
    def once(x):
        assert (0, *x) not in seen
        return fine(x)

    more = run(path, sources=[amsbq.Source(once, name="fine"), SOURCES[1]], budget=4.0, workers=3)
    assert [(e.source, *e.x) for e in more.evaluations[: len(seen)]] == seen
    assert not any(e.status == "failed" for e in more.evaluations)
    assert more.spent <= 4.0


def test_failures_are_remembered(tmp_path):
    path = tmp_path / "run.jsonl"

    def fails_above(x):
        if x[0] > 0.7:
            raise RuntimeError("too hot")
        return fine(x)

    sources = [amsbq.Source(fails_above, name="fine"), SOURCES[1]]
    whole = run(path, sources=sources)
    assert any(e.status == "failed" for e in whole.evaluations)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) // 2]))
    assert repr(everything(run(path, sources=sources))) == repr(everything(whole))  # failures have NaN for a value


def test_measured_costs_are_remembered(tmp_path):
    path = tmp_path / "run.jsonl"

    def costly(x):
        return amsbq.Observation(fine(x), cost=1.0 + x[0])

    sources = [amsbq.Source(costly, name="fine", cost="measured"), SOURCES[1]]
    whole = everything(run(path, sources=sources, budget=6.0))
    lines = path.read_bytes().splitlines(keepends=True)
    for kept in (3, len(lines) // 2, len(lines) - 5):
        path.write_bytes(b"".join(lines[:kept]))
        assert everything(run(path, sources=sources, budget=6.0)) == whole


@pytest.mark.parametrize("reason", ["budget", "exhausted", "failures", "out of time"])
def test_a_stop_by_a_rule_holds_as_long_as_the_rule(tmp_path, reason):
    """Whatever the rule calls it."""
    path = tmp_path / "run.jsonl"

    def rule(it):
        return reason if len(it.evaluations) >= 4 else None

    assert run(path, stop=rule).stopped == reason
    content = path.read_bytes()
    assert len(run(path, stop=rule).evaluations) == 4
    assert path.read_bytes() == content  # looked at, and nothing more
    assert everything(run(path)) == everything(run(tmp_path / "whole.jsonl"))


def asked_lines(path):
    lines = path.read_bytes().splitlines(keepends=True)
    return lines, [i for i, line in enumerate(lines) if b'"asked"' in line]


def test_an_event_that_is_there_twice_is_evaluated_once(tmp_path):
    path = tmp_path / "run.jsonl"
    whole = everything(run(path))
    header, rest = read_journal(path)
    events = [header, *rest]
    asked = [i for i, event in enumerate(events) if event["event"] == "asked"]
    for kept in (asked[3] + 1, asked[-1] + 1, len(events)):  # pending, pending at the end of the budget, all told
        again = [events[asked[3]], *([events[asked[-1]]] if kept > asked[-1] else [])]
        path.write_bytes(b"".join(lines_of([*events[:kept], *again])))
        assert everything(run(path)) == whole


def test_pending_queries_that_the_budget_does_not_pay_are_not_evaluated(tmp_path):
    """The budget is smaller now, or the journal was tampered with."""
    path = tmp_path / "run.jsonl"
    whole = run(path)
    _, events = read_journal(path)
    query = next(event for event in events if event["event"] == "asked")
    with Journal(path) as journal:
        for more in range(3):
            journal.write({**query, "id": len(whole.evaluations) + more})
    assert everything(run(path))[:3] == everything(whole)[:3]
    lines, asked = asked_lines(tmp_path / "run.jsonl")
    path.write_bytes(b"".join(lines[: asked[3] + 1]))
    spent = amsbq.read_result(path, model=False).spent
    assert run(path, budget=spent + 1e-3).spent <= spent + 1e-3


def test_a_source_cannot_change_what_is_recorded(tmp_path):
    def spoils(x):
        value = fine(x)
        x.setflags(write=True)
        x[:] = 0.5
        return value

    spoiled = run(tmp_path / "spoiled.jsonl", sources=[amsbq.Source(spoils, name="fine"), SOURCES[1]])
    assert everything(spoiled) == everything(run(tmp_path / "whole.jsonl"))


def test_a_source_is_called_again_with_the_same_x(monkeypatch):
    monkeypatch.setattr("amsbq.execution.evaluate.RETRY_PAUSES", (0.0,))
    seen = []

    def busy_once(x):
        seen.append(float(x[0]))
        x.setflags(write=True)
        x[:] = 0.5
        if len(seen) == 1:
            raise ConnectionError
        return 1.0

    assert evaluate(busy_once, np.array([0.25])).observation.value == 1.0
    assert seen == [0.25, 0.25]


THREADS = """
import sys
sys.path.insert(0, {tests!r})
from tests.execution.test_journal import *
it = amsbq.Integrator(SOURCES, UNIT, budget=1000, model=GP)
for x in np.random.default_rng(0).uniform(size=700):
    it.observe(1, [x], coarse([x]), variance=1e-4)
print(repr(it.estimate().mean), repr(it.estimate().std), it.ask().x.tolist())
"""


def test_many_observations_give_the_same_on_any_number_of_cores():
    code = THREADS.format(tests=str(Path(__file__).parents[2]))
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "OPENBLAS_NUM_THREADS": n, "OMP_NUM_THREADS": n},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for n in ("1", "2")
    ]
    assert said[0] == said[1] != ""
