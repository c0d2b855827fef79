"""Numbers picked out of what programs write: every rule, on outputs as real programs have them, and what goes wrong."""

import json
import os

import numpy as np
import pytest

import amsbq
from amsbq.execution.evaluate import evaluate
from amsbq.simulators.commands import Command
from amsbq.simulators.numerals import Quantity, last_quantity, quantity
from amsbq.simulators.output import OutputRule
from amsbq.simulators.program import ProgramSettings
from amsbq.simulators.tables import json_entry, table_cell

X = np.array([0.25])


def printing(text, folder, **options):
    (folder / "text").write_text(text)
    return Command(["cat", str(folder / "text")], ["a"], folder, **options)


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("1.234D+00", 1.234, ""),
        ("-1.5d3", -1500.0, ""),
        ("0.1234-101", 0.1234e-101, ""),
        ("1.234+101", 1.234e101, ""),
        ("1.", 1.0, ""),
        ("+.5", 0.5, ""),
        ("1.6 m", 1.6, "m"),
        ("1.6m/s", 1.6, "m/s"),
        ("12 %", 12.0, "%"),
        ("1.5E-03", 1.5e-3, ""),
        ("2 µm", 2.0, "µm"),
    ],
)
def test_numbers_as_programs_write_them(text, value, unit):
    assert quantity(text, "it") == Quantity(value, unit)


@pytest.mark.parametrize("text", ["", "1 2", "m", "1.2.3", "0x10", "1_000", "1e", "1.5 x10^3", "1 ×10", "--1"])
def test_what_is_no_number(text):
    with pytest.raises(ValueError, match="it is not a number"):
        quantity(text, "it")


@pytest.mark.parametrize("text", ["nan", "-inf", "Infinity", "******", "1e999"])
def test_what_is_not_finite(text):
    with pytest.raises(ValueError, match="finite"):
        quantity(text, "it")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("done in 0.3 s", 0.3),
        ("peak = 1.6 m", 1.6),
        ("peak: 1.234D+00.", 1.234),
        ("version 1.2.3 of model3b: 7, then text", 7.0),
        ("12:30:15 peak -4", -4.0),
        ("1.5 2.5", 2.5),
    ],
)
def test_the_last_number(text, value):
    assert last_quantity(text).value == value


TABLE = "# t  height\n  0.0  1.1D+00\n  0.5  1.6D+00\n  1.0  1.3D+00\n"
CSV = 'time, "wave height", note\n0, 1.1, calm\n1, 1.6, "a, b"\n'


@pytest.mark.parametrize(
    ("text", "column", "row", "value"),
    [
        ("t\theight\n0\t1.5\n", "height", 0, 1.5),
        ("t;height\n0;1.5\n", "height", 0, 1.5),
        ('t,note,height\n0,"calm; sunny",1.5\n', "height", 0, 1.5),
        ("0,\t1.5\n", 1, 0, 1.5),
        (TABLE, "height", 1, 1.6),
        (TABLE, 1, -1, 1.3),
        (TABLE, -1, 0, 1.1),
        (CSV, "wave height", -1, 1.6),
        (CSV, 0, 0, 0.0),
        (f"starting\n{TABLE}done in 0.3 s\n", 1, 2, 1.3),
        ("a;b\n1;2,5\n3;4\n", "a", 1, 3.0),
        ("1\t2\n", 1, 0, 2.0),
    ],
)
def test_cells_of_tables(text, column, row, value):
    assert table_cell(text, column, row).value == value


@pytest.mark.parametrize(
    ("text", "column", "row", "said"),
    [
        (TABLE, "depth", 0, "no column 'depth': its first line has t, height"),
        (TABLE, 1, 3, "column 1 has no row 3: it has 3"),
        (TABLE, 5, 0, "column 5 has no row 0: it has 0"),
        (CSV, "note", 0, "row 0 of column 'note' is not a number: calm"),
        (
            "t;height\n0,5;1,5\n",
            "height",
            0,
            "column 'height' is not a number: 1,5; write a decimal point, not a comma",
        ),
        ("0,5;1,5\n", 0, 0, "column 0 has no row 0: it has 0; write a decimal point, not a comma"),
        ("0,5\t1,5\n", 1, 0, "column 1 has no row 0: it has 0; write a decimal point, not a comma"),
        ("", "a", 0, "it is empty"),
    ],
)
def test_cells_that_are_not_there(text, column, row, said):
    with pytest.raises(ValueError, match=said):
        table_cell(text, column, row)


def test_entries_of_json():
    text = json.dumps({"wave": {"heights": [1.5, "1.6 m"]}, "ok": True})
    assert json_entry(text, "wave.heights[0]").value == 1.5
    assert json_entry(f"starting\n{text}\n", "wave.heights[-1]") == Quantity(1.6, "m")
    assert json_entry("3", "").value == 3.0
    for path, said in (
        ("wave.depth", "no 'wave.depth' in it"),
        ("ok", "must be a number"),
        ("a..[", "must be like a.b"),
    ):
        with pytest.raises(ValueError, match=said):
            json_entry(text, path)
    with pytest.raises(ValueError, match="not JSON"):
        json_entry("peak = 1", "a")


def test_entries_of_arrays(tmp_path):
    np.save(tmp_path / "field.npy", np.arange(6.0).reshape(2, 3))
    np.save(tmp_path / "one.npy", np.array([2.5]))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)

    def read(**rule):
        return OutputRule.of(rule).read("", tmp_path).value

    assert read(file="field.npy", index=[1, -1]) == 5.0
    assert read(file="one.npy") == read(file="one.npy", index=0) == 2.5
    for rule, said in (
        ({"file": "field.npy"}, "must be one number"),
        ({"file": "field.npy", "index": [2, 0]}, "has no entry"),
        ({"file": "objects.npy"}, "allow_pickle=False"),
        ({"file": "none.npy"}, "cannot be read: No such file"),
    ):
        with pytest.raises(ValueError, match=said):
            read(**rule)


#: outputs of real programs that have no number on their last line, and a rule that finds the value 1.6 in each
OUTPUTS = {
    "timing": ("peak = 1.6 m\ndone in 0.3 s\n", {"regex": r"peak = (\S+)"}),
    "unit": ("the peak was found\npeak = 1.6 m\n", {"last": True}),
    "columns": ("0 1.1\n1 1.6\n", {"column": 1}),
    "json": ('{"peak": 1.6, "steps": 10}\n', {"json": "peak"}),
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_outputs_without_a_rule_fail_with_a_remedy_and_are_read_with_one(kind, tmp_path):
    text, rule = OUTPUTS[kind]
    outcome = evaluate(printing(text, tmp_path), X)
    assert outcome.reason.startswith("the last line of its output is not a number: ")
    assert "output rule to say where the value is, such as output = { regex = " in outcome.reason
    assert outcome.log.stdout == text
    assert evaluate(printing(text, tmp_path, output=rule), X).observation == amsbq.Observation(1.6)


def test_fortrans_exponents_and_units_need_no_rule(tmp_path):
    assert printing(" 1.234D+00\n", tmp_path)(X).value == 1.234
    assert printing("1.6 m\n", tmp_path).quantities(X) == {"value": Quantity(1.6, "m")}


def test_a_variance_and_a_cost_beside_the_value(tmp_path):
    rules = {"value": {"column": 0}, "variance": {"column": 1}, "cost": {"regex": r"in (\S+) s"}}
    command = printing("1.6 0.01\ndone in 0.3 s\n", tmp_path, output=rules)
    assert command(X) == amsbq.Observation(1.6, 0.01, 0.3)
    assert "variance must not be negative" in evaluate(printing("1 -1\ndone in 1 s", tmp_path, output=rules), X).reason


def test_several_outputs_by_name(tmp_path):
    rules = {"peak": {"column": 0}, "time": {"column": 1}}
    assert printing("1.6 2.5\n", tmp_path, output=rules)(X) == {"peak": 1.6, "time": 2.5}


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"regex": r"height = (\S+)"}, r"nothing matches .*; it ends with: .* \| peak = 1.6 m \| done in 0.3 s"),
        ({"regex": r"(peak) ="}, "is not a number: peak"),
        ({"json": "peak"}, "it is not JSON"),
        (
            {"file": "result.csv", "column": 1},
            "result.csv cannot be read: No such file.*; it printed: .*peak = 1.6",
        ),
        ({"column": "height"}, "no column 'height'"),
    ],
)
def test_what_does_not_match_is_one_error_with_the_end_of_the_output(rule, said, tmp_path):
    command = printing("starting\n" * 10 + "peak = 1.6 m\ndone in 0.3 s\n", tmp_path, output=rule)
    with pytest.raises(RuntimeError, match=f"^the value is not found in .*{said}"):
        command(X)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({}, "output must be a rule"),
        ({"row": 1}, "must have one of"),
        ({"variance": {"last": True}}, "no rule for the value"),
        ({"last": True, "column": 1}, "must have one of"),
        ({"regex": "peak"}, "must have one group"),
        ({"regex": "("}, "not a valid regular expression"),
        ({"colum": 1}, "no key 'colum'; valid keys"),
        ({"column": True}, "got True"),
        ({"file": "../x", "last": True}, "name in the work directory"),
        ({"json": "a", "index": 1}, "index belongs to"),
        ({"file": "a.npy", "index": "b"}, "whole number or a list"),
    ],
)
def test_rules_that_are_wrong_are_refused_at_once(rule, said):
    with pytest.raises((ValueError, TypeError), match=said):
        Command(["run"], ["a"], output=rule)


def test_rows_are_not_counted_in_an_output_that_was_cut(monkeypatch, tmp_path):
    """The first row that was kept is not the first row."""
    monkeypatch.setattr("amsbq.simulators.program.SETTINGS", ProgramSettings(kept=100))
    text = "".join(f"{i} {i}\n" for i in range(1000))
    assert printing(text, tmp_path, output={"column": 1})(X).value == 999.0
    reason = evaluate(printing(text, tmp_path, output={"column": 1, "row": 0}), X).reason
    assert reason.startswith("it printed too much to count rows from the beginning")
    monkeypatch.setattr("amsbq.simulators.output.LARGEST", 100)
    (tmp_path / "large").write_text(text)
    with pytest.raises(ValueError, match="large is larger than"):
        OutputRule(file="large", column=1).read("", tmp_path)


@pytest.mark.parametrize("name", ["pipe", "zeros", "link", "folder"])
@pytest.mark.parametrize("rule", [{"last": True}, {"column": 0}, {"json": "a"}])
def test_only_files_are_read(name, rule, tmp_path):
    """A pipe that nobody writes to would be waited for, and a device is endless."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    (tmp_path / "link").symlink_to("pipe")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match=f"{name} (is a pipe or a device|cannot be read: Is a directory)"):
        OutputRule(file=name, **rule).read("", tmp_path)


def test_a_file_that_would_have_to_be_waited_for_is_no_output(tmp_path, monkeypatch):
    """As some files of the system are, which call themselves regular."""
    os.mkfifo(tmp_path / "log")
    both_ends = os.open(tmp_path / "log", os.O_RDWR)  # so that there is a writer, who has written nothing
    monkeypatch.setattr("amsbq.simulators.output.stat.S_ISREG", lambda mode: True)
    try:
        with pytest.raises(ValueError, match="log would block"):
            OutputRule(file="log", last=True).read("", tmp_path)
    finally:
        os.close(both_ends)


def test_arrays_are_read_from_files_only(tmp_path):
    (tmp_path / "zeros.npy").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match="pipe or a device"):
        OutputRule(file="zeros.npy").read("", tmp_path)
    np.save(tmp_path / "field.npy", np.arange(6.0).reshape(2, 3))
    assert OutputRule(file="field.npy", index=(1, -1)).read("", tmp_path).value == 5.0
    (tmp_path / "empty.npy").write_bytes(b"")
    with pytest.raises(ValueError, match=r"empty\.npy"):
        OutputRule(file="empty.npy").read("", tmp_path)
