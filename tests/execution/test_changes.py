"""Journals of a problem that has changed: refused with both versions, or accepted by the user and said so."""

import functools
import importlib
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.execution.journal import Journal, JournalError, read_journal
from amsbq.execution.resume import begin_or_resume
from amsbq.external import Command, PythonFunction, UMBridge
from tests.journals import lines_of

UNIT = amsbq.Uniform(0, 1)
STORED = Path(__file__).parent / "journals"


def fine(x):
    return float(np.sin(5 * x[0]) + x[0])


def finer(x):
    return float(np.sin(5 * x[0]) + x[0] + 1e-3)


def coarse(x, level=1):
    return float(np.sin(5 * x[0]) + 0.2 * level)


class Solver:
    def __call__(self, x):
        return fine(x)


def opened(path, function=fine, measure=UNIT, inputs=None, accept_changes=False, **options):
    """Begin or resume a journal without evaluating anything."""
    it = amsbq.Integrator([amsbq.Source(function, name="fine")], measure, budget=3, model="icm", **options)
    with Journal(path) as journal:
        begin_or_resume(journal, it, inputs and {"inputs": inputs}, accept_changes)
    return it


def run(path, sources=None, measure=UNIT, model="icm", budget=3.0, **options):
    sources = sources or [amsbq.Source(fine, name="fine"), amsbq.Source(coarse, cost=0.1, name="coarse")]
    return amsbq.integrate(sources, measure, budget=budget, model=model, journal=path, progress=False, **options)


def written(path, *events):
    """Write a journal of these events, the header first."""
    path.write_bytes(b"".join(lines_of(events)))


def umbridge(config, url="http://127.0.0.1:4242"):
    return UMBridge(url, "forward", config)


OTHER_FUNCTIONS = {
    "function": (fine, finer, "function callable was '.*test_changes.fine', and now is '.*test_changes.finer'"),
    "object": (fine, Solver(), "was '.*test_changes.fine', and now is '.*test_changes.Solver'"),
    "partial": (
        functools.partial(coarse, level=1),
        functools.partial(coarse, level=np.int64(2)),
        "function keywords level was 1, and now is 2",
    ),
    "command": (
        Command(["sh", "-c", "echo {a}"], ["a"]),
        Command(["sh", "-c", "echo 1"], ["a"]),
        r"source 0's function command was \['sh', '-c', 'echo {a}'\], and now is \['sh', '-c', 'echo 1'\]",
    ),
    "names": (Command(["x"], ["a", "b"]), Command(["x"], ["b", "a"]), r"was \['a', 'b'\], and now is \['b', 'a'\]"),
    "python": (
        PythonFunction("math:fsum"),
        PythonFunction("math:prod"),
        "function python was 'math:fsum', and now is 'math:prod'",
    ),
    "folder": (PythonFunction("a:f", "one"), PythonFunction("a:f", "two"), "folder was '.*one', and now is '.*two'"),
    "config": (umbridge({"level": 1}), umbridge({"level": 2}), "function config level was 1, and now is 2"),
    "server": (umbridge({}), umbridge({}, "http://host:1"), "umbridge was '.*4242', and now is 'http://host:1'"),
    "kind": (fine, umbridge({}), "callable was '.*fine', and now is None; .* umbridge was None, and now is 'http"),
}


@pytest.mark.parametrize("kind", OTHER_FUNCTIONS)
def test_another_function_under_the_same_name_is_refused(tmp_path, kind):
    one, other, said = OTHER_FUNCTIONS[kind]
    path = tmp_path / "run.jsonl"
    opened(path, one)
    content = path.read_bytes()
    with pytest.raises(JournalError, match=f"(?s){said}.*Choose another journal .*accept_changes=True$"):
        opened(path, other)
    assert path.read_bytes() == content
    opened(path, one)
    assert path.read_bytes() == content


def test_swapped_inputs_are_refused(tmp_path):
    path = tmp_path / "run.jsonl"
    square = amsbq.Uniform([0, 0], [1, 1])
    opened(path, measure=square, inputs=["a", "b"])
    with pytest.raises(JournalError, match=r"inputs was \['a', 'b'\], and now is \['b', 'a'\]"):
        opened(path, measure=square, inputs=["b", "a"])
    opened(path, measure=square, inputs=["a", "b"])


def histogram(counts, edges):
    return amsbq.Product([stats.rv_histogram((np.array(counts), np.array(edges)), density=False)()])


@pytest.mark.parametrize("edges", [[0, 0.4, 0.6, 0.8, 1], [0, 0.3, 0.30001, 0.30002, 1]])
def test_another_histogram_is_refused(tmp_path, edges):
    """Also one that differs where quantiles and densities between them do not see it."""
    path = tmp_path / "run.jsonl"
    opened(path, measure=histogram([30_000, 1, 3, 70_000], edges))
    opened(path, measure=histogram([30_000, 1, 3, 70_000], edges))
    with pytest.raises(JournalError, match="measure was Product with checksum"):
        opened(path, measure=histogram([30_000, 3, 1, 70_000], edges))


def test_a_script_and_the_module_that_it_is_are_the_same(tmp_path, monkeypatch):
    script = "import amsbq\ndef fine(x): return 0.0\nprint(amsbq.Source(fine).definition())\n"
    (tmp_path / "of_a_script.py").write_text(script)
    for arguments in (["of_a_script.py"], ["-m", "of_a_script"]):
        said = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert said.stdout == "{'callable': 'of_a_script.fine'}\n"
    monkeypatch.syspath_prepend(tmp_path)
    assert amsbq.Source(importlib.import_module("of_a_script").fine).definition() == {"callable": "of_a_script.fine"}
    del sys.modules["of_a_script"]


def test_project_and_journal_can_be_moved_together(tmp_path):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    opened(tmp_path / "here" / "run.jsonl", PythonFunction("math:fsum", tmp_path / "here"))
    shutil.copy(tmp_path / "here" / "run.jsonl", tmp_path / "there")
    opened(tmp_path / "there" / "run.jsonl", PythonFunction("math:fsum", tmp_path / "there"))


def test_passwords_stay_out_of_the_journal(tmp_path):
    opened(tmp_path / "run.jsonl", umbridge({}, "https://me:secret@host:4242/a@b"))
    assert "https://host:4242/a@b" in (tmp_path / "run.jsonl").read_text()
    assert "secret" not in (tmp_path / "run.jsonl").read_text()


def test_configurations_that_look_like_numbers_or_are_none(tmp_path):
    for i, config in enumerate([{"float": "abc"}, {"float": 1.5}, {"level": math.nan}, {"class": "Uniform"}]):
        path = tmp_path / f"{i}.jsonl"
        opened(path, umbridge(config))
        opened(path, umbridge(config))
        with pytest.raises(JournalError, match="function config"):
            opened(path, umbridge({"class": "Gaussian"}))


def test_what_an_older_journal_does_not_record_is_not_compared(tmp_path):
    path = tmp_path / "run.jsonl"
    measure = histogram([1, 2], [0, 0.5, 1])
    opened(path, measure=measure)
    header, _ = read_journal(path)
    del header["problem"]["functions"], header["problem"]["measure"]["distributions"][0]["bins"]
    written(path, header)
    opened(path, finer, measure=measure, inputs=["a"])
    with pytest.raises(JournalError, match="measure was Product"):
        opened(path, measure=histogram([2, 1], [0, 0.5, 1]))


def test_accepted_changes_are_written_and_hold(tmp_path):
    path = tmp_path / "run.jsonl"
    first = run(path)
    sources = [amsbq.Source(finer, name="fine"), amsbq.Source(coarse, cost=0.2, name="cheap")]
    with pytest.raises(JournalError, match="finer"):
        run(path, sources, budget=5.0)
    more = run(path, sources, budget=5.0, accept_changes=True)
    assert [e.value for e in more.evaluations[: len(first.evaluations)]] == [e.value for e in first.evaluations]
    assert len(more.evaluations) > len(first.evaluations)
    _, events = read_journal(path)
    [accepted] = [event for event in events if event["event"] == "accepted"]
    assert "source 1's cost was 0.1, and now is 0.2" in accepted["changes"]
    assert any("fine', and now is" in change and "finer'" in change for change in accepted["changes"])
    content = path.read_bytes()
    again = run(path, sources, budget=5.0)
    assert (again.mean, again.std, len(again.evaluations)) == (more.mean, more.std, len(more.evaluations))
    assert path.read_bytes() == content
    read = amsbq.read_result(path)
    assert (read.mean, read.names) == (more.mean, ["fine", "cheap"])
    assert read.integrator.sources[1].cost == 0.2
    with pytest.raises(JournalError, match=r"cost was 0.2, and now is 0.1"):
        run(path, budget=5.0)


def test_nothing_is_written_where_nothing_has_changed(tmp_path):
    run(tmp_path / "run.jsonl")
    content = (tmp_path / "run.jsonl").read_bytes()
    run(tmp_path / "run.jsonl", accept_changes=True)
    assert (tmp_path / "run.jsonl").read_bytes() == content


@pytest.mark.parametrize("model", ["auto", "vbq"])
def test_another_model_learns_anew(tmp_path, model):
    """Hyperparameters of the old one are not used, at once or after another resume."""
    path = tmp_path / "run.jsonl"
    first = run(path, budget=3.0)
    changed = run(path, budget=3.0, model=model, accept_changes=True)
    data = [(e.source, e.x, e.value) for e in changed.evaluations]
    s, X, y = (np.array(column) for column in zip(*data, strict=True))
    told = amsbq.estimate(s, X, y, UNIT, model=model)
    assert changed.mean == pytest.approx(told.mean, rel=1e-9)
    assert changed.std == pytest.approx(told.std, rel=1e-6)
    assert run(path, budget=3.0, model=model).mean == changed.mean
    assert len(changed.evaluations) >= len(first.evaluations)


def test_changes_that_cannot_be_accepted(tmp_path):
    path = tmp_path / "run.jsonl"
    run(path)
    content = path.read_bytes()
    with pytest.raises(JournalError, match=r"with 2 sources .* now has 1 .*start a new journal"):
        run(path, [amsbq.Source(fine, name="fine")], accept_changes=True)
    for measure in (amsbq.Uniform(0, 0.3), amsbq.Uniform([0, 0], [1, 1])):
        with pytest.raises(JournalError, match=r"change of the inputs cannot be accepted: evaluation"):
            run(path, measure=measure, accept_changes=True)
    with pytest.raises(JournalError, match=r"because of evaluation \d+ of \w+: .*Exclude it first"):
        run(path, output_range=(0.9, np.inf), accept_changes=True)
    with pytest.raises(JournalError, match=r"because of evaluation \d+ of fine: .*outside the valid range"):
        run(path, [amsbq.Source(fine, name="fine", valid=(5, 6)), amsbq.Source(coarse, cost=0.1, name="coarse")],
            accept_changes=True)  # fmt: skip
    assert path.read_bytes() == content
    assert amsbq.read_result(path).stopped == "budget"
    wider = run(path, measure=amsbq.Uniform(0, 1.1), accept_changes=True)
    assert wider.integrator.measure.same_as(amsbq.Uniform(0, 1.1))


def test_sources_in_another_order_are_not_taken_for_each_other(tmp_path):
    """By their names, or by what they are; also if one of them is new, or all have new names."""
    path, unnamed = tmp_path / "run.jsonl", tmp_path / "unnamed.jsonl"
    run(path)
    content = path.read_bytes()
    for first, second in (((coarse, "coarse"), (fine, "fine")), ((coarse, "coarse"), (finer, "finer")),
                          ((coarse, "low"), (fine, "high")), ((finer, "coarse"), (coarse, "low"))):  # fmt: skip
        others = [amsbq.Source(first[0], name=first[1]), amsbq.Source(second[0], cost=0.1, name=second[1])]
        with pytest.raises(JournalError, match="in another order: pass them as fine, coarse"):
            run(path, others, accept_changes=True)
    run(unnamed, [amsbq.Source(fine, name="a"), amsbq.Source(coarse, cost=0.1, name="b")])
    with pytest.raises(JournalError, match="in another order"):
        run(unnamed, [amsbq.Source(coarse, name="a"), amsbq.Source(fine, cost=0.1, name="b")], accept_changes=True)
    assert path.read_bytes() == content


def test_inputs_and_outputs_in_another_order_are_not_taken_for_each_other(tmp_path):
    def two(x):
        return [x[0], x[0] + x[1]]

    def attempt(inputs, outputs, **options):
        source = amsbq.Source(two, name="two")
        inputs = dict.fromkeys(inputs, (0, 1))
        return amsbq.integrate(source, inputs, budget=2, outputs=outputs, journal=path, progress=False, **options)

    path = tmp_path / "run.jsonl"
    attempt(["a", "b"], ["p", "q"])
    content = path.read_bytes()
    for inputs, outputs, said in (
        (["b", "a"], ["p", "q"], r"the inputs .* in another order: pass them as \['a', 'b'\]"),
        (["b", "c"], ["p", "q"], "the inputs .* in another order"),
        (["a", "b"], ["q", "p"], r"the outputs .* in another order: pass them as \['p', 'q'\]"),
        (["a", "b"], ["p", "q", "r"], r"with the outputs \['p', 'q'\], but the problem now has the outputs"),
        (["a", "b"], None, "but the problem now has one output: such a change cannot be accepted"),
    ):
        with pytest.raises(JournalError, match=said):
            attempt(inputs, outputs, accept_changes=True)
        assert path.read_bytes() == content
    assert attempt(["a", "c"], ["p", "height"], accept_changes=True)["height"].mean  # other names of the same


@pytest.mark.parametrize("name", ["format-1.jsonl", "format-2.jsonl"])
def test_changes_of_older_journals_can_be_accepted(tmp_path, name):
    path = tmp_path / name
    shutil.copy(STORED / name, path)
    sources = [amsbq.Source(fine, name="fine"), amsbq.Source(coarse, cost=0.2, name="coarse")]
    more = run(path, sources, budget=4.0, accept_changes=True)
    assert more.spent > 3
    again = run(path, sources, budget=4.0)
    assert (again.mean, again.spent) == (more.mean, more.spent)
    with pytest.raises(JournalError, match="finer"):  # which the journal has recorded by now
        run(path, [amsbq.Source(finer, name="fine"), sources[1]], budget=4.0)
    assert json.loads(path.read_text().splitlines()[0])["format"] == int(name[7])
