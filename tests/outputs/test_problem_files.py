"""Problem files and the command line with several outputs."""

import json

import numpy as np
import pytest

import amsbq
from amsbq.cli.main import main
from amsbq.problems.problem_file import ProblemError, load_problem
from amsbq.results.result import distances, furthest
from amsbq.simulators.commands import Command
from amsbq.simulators.umbridge import UMBridge
from tests.execution.test_external import fake, sizes_of  # noqa: F401 (a fixture)

PROBLEM = r"""
budget = 3.0
outputs = ["peak", "time"]
rel_tol = { peak = 0.001 }
model = "icm"
[inputs]
a = { low = 0.0, high = 1.0 }
b = { low = 0.0, high = 1.0 }
[[sources]]
name = "fine"
command = ["awk", "BEGIN { print exp(-{a}), 10 + {a} * {b} }"]
[[sources]]
name = "coarse"
command = ["awk", "BEGIN { print \"t =\", 10.2 + {a} * {b} }"]
output = { time = { regex = 't = (\S+)' } }
outputs = ["time"]
cost = 0.05
"""


@pytest.fixture
def problem(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(PROBLEM)
    return path


def test_the_command_line_shows_all_outputs(problem, capsys):
    assert main(["check", str(problem)]) == 0
    assert main(["run", str(problem), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert answer["outputs"] == ["peak", "time"]
    assert answer["mean"] == pytest.approx([1 - np.exp(-1), 10.25], rel=0.1)
    assert any(e["value"][0] is None for e in answer["evaluations"] if e["source"] == "coarse")
    journal = problem.with_suffix(".jsonl")
    assert main(["status", str(journal)]) == 0
    assert "time: 10" in capsys.readouterr().out
    assert main(["report", str(journal), "--text"]) == 0
    assert main(["show", str(journal), "0"]) == 0
    assert main(["forecast", str(journal), "--budget", "5"]) == 0
    assert "expected std of" in capsys.readouterr().out
    assert main(["report", str(journal), "--of", "time"]) == 0
    assert "time: 10" in journal.with_suffix(".html").read_text()
    assert main(["report", str(journal), "--of", "size"]) == 2
    read = amsbq.read_result(journal, model=False)
    whole = amsbq.read_result(journal)
    for name in ("peak", "time"):  # without a model as with one: sources that lack an output are not evaluated for it
        assert [e.id for e in read[name].evaluations] == [e.id for e in whole[name].evaluations]
        assert all(e.status == "ok" for e in read[name].evaluations)
    assert distances(read) == pytest.approx(read.std / read.mean)
    assert furthest(read).output == read.outputs[int(np.argmax(read.std / read.mean))]
    picture = journal.with_suffix(".png")
    assert main(["compare", str(journal), "--output", str(picture)]) == 0
    assert "failed" not in capsys.readouterr().out
    assert main(["correct", str(journal), "0", "3.0"]) == 2
    assert "must be 2 numbers, peak, time" in capsys.readouterr().err
    assert main(["correct", str(journal), "0", "time=10.5", "peak=0.7", "--variance", "peak=0.01,time=0"]) == 0
    corrected = amsbq.read_result(journal, model=False).evaluations[0]
    assert corrected.value.tolist() == [0.7, 10.5]
    assert corrected.variance.tolist() == [0.01, 0.0]
    assert main(["exclude", str(journal), "0"]) == 0


def test_a_check_sees_which_output_is_wrong(problem, capsys):
    problem.write_text(PROBLEM.replace('outputs = ["time"]', 'outputs = ["time"]\nvalid = { time = [0, 5] }'))
    assert main(["check", str(problem)]) == 1
    printed = capsys.readouterr().out
    assert "time: the value 10.45 is outside the valid range, 0 to 5" in printed
    assert "wrong: coarse" in printed


def test_a_run_from_a_file_is_that_of_the_same_calls(problem):
    described = load_problem(problem)
    found = amsbq.integrate(
        described.sources, described.measure, budget=3, outputs=["peak", "time"], model="icm", rel_tol={"peak": 0.001}
    )
    assert main(["run", str(problem)]) == 0
    assert np.array_equal(amsbq.read_result(problem.with_suffix(".jsonl")).mean, found.mean)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('outputs = ["peak", "time"]', 'outputs = "peak"', "outputs: must be a list of names"),
        ('outputs = ["peak", "time"]', 'outputs = ["peak", "peak"]', "outputs: must be different names"),
        ('outputs = ["time"]', 'outputs = ["size"]', r"sources\[1\].outputs: must be some of peak, time"),
        ("{ peak = 0.001 }", "{ size = 0.001 }", "rel_tol.size: is not known"),
        ("{ time = {", "{ size = {", "no rule for 'time'"),
        ('model = "icm"', "weights = [1, 2, 3]", "weights"),
        ("cost = 0.05", "valid = { size = [0, 1] }", r"sources\[1\].valid.size: is not known"),
        ("cost = 0.05", "valid = { time = [1, 0] }", r"sources\[1\].valid.time: must be \[low, high\]"),
        ("cost = 0.05", "noise = { time = -1 }", r"sources\[1\].noise.time: must not be negative"),
        ("cost = 0.05", 'noise = { time = "high" }', r"sources\[1\].noise.time: must be a number or 'learn'"),
    ],
)
def test_mistakes_in_a_file_are_named(problem, old, new, says):
    problem.write_text(PROBLEM.replace(old, new))
    with pytest.raises(ProblemError, match=says):
        load_problem(problem)


def test_settings_of_single_outputs(problem):
    settings = 'valid = { peak = [0, 1], time = [5, 20] }\nnoise = { time = "learn" }\n[[sources]]\nname = "coarse"'
    problem.write_text(PROBLEM.replace('[[sources]]\nname = "coarse"', settings))
    [fine, _] = load_problem(problem).sources
    assert fine.valid == {"peak": (0.0, 1.0), "time": (5.0, 20.0)}
    assert fine.noise == {"time": "learn"}


@pytest.mark.parametrize("printed", ["0.5 12", "0.5, 12", "[0.5, 12]", '{"time": 12, "steps": 7, "peak": 0.5}'])
def test_a_command_prints_several_numbers(printed):
    assert Command(["echo", printed], ["x"], outputs=["peak", "time"])(np.zeros(1)) == {"peak": 0.5, "time": 12.0}


@pytest.mark.parametrize("printed", ["0.5", "0.5 12 13", "0.5 many", '{"peak": 0.5}'])
def test_a_command_that_prints_something_else_has_failed(printed):
    with pytest.raises(RuntimeError, match="must be 2 numbers, or a JSON object with peak, time"):
        Command(["echo", printed], ["x"], outputs=["peak", "time"])(np.zeros(1))


def test_a_server_has_several_outputs(fake):  # noqa: F811
    server = fake({"output": [[1.5, 2.5], [3.5, 4.5]]})
    server.sizes = sizes_of(1, outputs=(2, 2))
    model = UMBridge(server.url, output=[0, 3])
    assert model(np.zeros(1)) == [1.5, 4.5]
    assert model.source_definition()["output"] == [0, 3]


def test_values_are_taken_from_a_run_with_other_outputs_by_their_names(problem, capsys):
    assert main(["run", str(problem)]) == 0
    old = amsbq.read_result(problem.with_suffix(".jsonl"))
    other = problem.with_name("other.toml")
    of_time = PROBLEM.replace('outputs = ["peak", "time"]', 'outputs = ["time"]').replace(
        "rel_tol = { peak = 0.001 }", ""
    )
    other.write_text(of_time.replace("exp(-{a}), ", ""))
    assert main(["run", str(other), "--from", str(problem.with_suffix(".jsonl")), "--accept-changes"]) == 0
    taken = [e for e in amsbq.read_result(other.with_suffix(".jsonl")).evaluations if e.id is None]
    assert [e.value.tolist() for e in taken] == [[e.value[1]] for e in old.evaluations]
    without = problem.with_name("without.toml")
    without.write_text(of_time.replace('outputs = ["time"]', "").replace("{ time = { regex", "{ value = { regex"))
    capsys.readouterr()
    assert main(["run", str(without), "--from", str(problem.with_suffix(".jsonl"))]) == 2
    assert "are peak, time, but now they are one without a name" in capsys.readouterr().err
