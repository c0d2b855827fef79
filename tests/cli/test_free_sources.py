"""Problem files with sources that cost next to nothing."""

import sys

import pytest

from amsbq.cli.main import main
from amsbq.execution.reader import read_result
from amsbq.problems.problem_file import ProblemError, load_problem

MODULE = """
import numpy as np


def beam(x):
    return float(np.exp(x[0]) + np.sin(3 * x[0]))


def formula_of_the_beam(X):
    return np.exp(X[:, 0])
"""
PROBLEM = """
budget = 4.0

[inputs]
load = {{ low = 0.0, high = 1.0 }}

[[sources]]
name = "beam"
python = "beam_problem:beam"

[[sources]]
name = "formula"
{}
"""
FORMULA = 'python = "beam_problem:formula_of_the_beam"\nvectorized = true\ncost = 0'


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "beam_problem.py").write_text(MODULE)

    def written(source):
        (tmp_path / "problem.toml").write_text(PROBLEM.format(source))
        return tmp_path / "problem.toml"

    return written


def test_a_run_with_a_formula(write, tmp_path, capsys):
    assert main(["run", str(write(FORMULA))]) == 0
    assert "16388" in capsys.readouterr().out  # in bulk, and alongside four evaluations
    result = read_result(tmp_path / "problem.jsonl")
    assert [e.source for e in result.evaluations] == [0] * 4
    low, high = result.interval()
    assert low < 1.718281828 + 0.663330832 < high
    assert main(["resume", str(tmp_path / "problem.jsonl"), "--budget", "5"]) in (0, 2)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('command = ["cat"]\nvectorized = true', "sources[1].vectorized: is for a python function"),
        ('command = ["cat"]\nbulk = true', "8 evaluations of formula in bulk cost more than the budget"),
        (f"{FORMULA}\nbulk = -3", "sources[1].bulk: must be true, false or a number of evaluations"),
        (FORMULA.replace("true", '"yes"'), "sources[1].vectorized: must be true or false"),
        (FORMULA.replace("cost = 0", "cost = -1"), "sources[1].cost: must be a positive number"),
    ],
)
def test_mistakes(write, source, message):
    with pytest.raises(ProblemError) as raised:
        load_problem(write(source))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (
            "np.zeros(3)",
            "formula_of_the_beam is vectorized: for X of shape (2048, 1) it must return 2048 numbers",
        ),
        ('X["load"]', "IndexError: only integers"),
    ],
)
def test_a_formula_that_is_wrong_is_one_clear_error(write, tmp_path, capsys, monkeypatch, function, reason):
    problem = write(FORMULA.replace("beam_problem", "wrong_beam"))
    module = MODULE.replace("np.exp(X[:, 0])", function)
    (tmp_path / "wrong_beam.py").write_text(module)
    monkeypatch.delitem(sys.modules, "wrong_beam", raising=False)
    assert main(["run", str(problem)]) == 2
    said = capsys.readouterr().err
    assert f"amsbq: formula failed at all 2048 locations, with: {reason}" in said
    assert "Traceback" not in said
