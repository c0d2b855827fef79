"""Runs with several outputs whose evaluations are made elsewhere: ``amsbq ask``, ``tell`` and ``correct``."""

import json
import math

import numpy as np
import pytest

import amsbq
from amsbq.cli.main import main
from amsbq.problems.problem_file import load_problem

PROBLEM = """
budget = 3.0
outputs = ["peak", "time"]
model = "icm"
[inputs]
a = { low = 0.0, high = 1.0 }
[[sources]]
name = "fine"
detached = true
valid = { peak = [0, 1] }
[[sources]]
name = "coarse"
detached = true
outputs = ["time"]
cost = 0.1
"""


@pytest.fixture
def journal(tmp_path):
    (tmp_path / "run.toml").write_text(PROBLEM)
    return tmp_path / "run.jsonl"


@pytest.fixture
def typed(capsys):
    """Runs a command; returns what it printed, or what was wrong if it is to fail."""

    def run(*arguments, code=0):
        assert main([str(argument) for argument in arguments]) == code
        printed = capsys.readouterr()
        return printed.out if code == 0 else printed.err

    return run


def queries(text):
    return [json.loads(line) for line in text.splitlines()]


def values(source, a):
    return {"peak": math.exp(-a), "time": 10 + a * a} if source == "fine" else {"time": 10.2 + a * a}


@pytest.mark.front_door
def test_a_detached_run_is_that_of_an_integrator(journal, typed):
    it, named = load_problem(journal.with_suffix(".toml")).integrator(), False
    while asked := queries(typed("ask", journal.with_suffix(".toml"))):
        [query] = asked
        found = values(query["source"], query["x"]["a"])
        assert query["outputs"] == list(found)
        typed("tell", journal, query["id"], *(f"{name}={y!r}" if named else repr(y) for name, y in found.items()))
        it.tell(it.ask(), found)
        named = not named
    assert it.ask() is None
    found = amsbq.read_result(journal)
    assert np.array_equal(found.mean, it.estimate().mean)
    assert [e.x.tolist() for e in found.evaluations] == [e.x.tolist() for e in it.evaluations]


def test_a_table_has_a_column_for_each_output(journal, typed):
    asked = queries(typed("ask", journal.with_suffix(".toml"), "--n", 3))
    coarse = next(query["id"] for query in asked if query["source"] == "coarse")
    fine = next(query["id"] for query in asked if query["source"] == "fine")
    table = journal.with_name("table.csv")
    table.write_text(f"id,value.peak,value.time,variance.peak,reason\n{fine},0.5,,0.01,\n{coarse},,11.5,,\n")
    assert "= peak 0.5, time nan" in typed("tell", journal, "--from", table)
    assert typed("tell", journal, "--from", table) == ""  # the journal has all of them
    told = {e.id: e for e in amsbq.read_result(journal, model=False).evaluations}
    assert np.array_equal(told[fine].value, [0.5, math.nan], equal_nan=True)
    assert told[fine].variance.tolist() == [0.01, 0.0]
    assert np.array_equal(told[coarse].value, [math.nan, 11.5], equal_nan=True)
    table.write_text(f"id,value.peak,value.time\n{fine},0.6,10\n")
    assert "an answer with another value and variance" in typed("tell", journal, "--from", table, code=2)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["1.2"], "must be 2 numbers, peak, time"),
        (["1.2", "3.4", "5.6"], "must be 2 numbers, peak, time"),
        (["peak=1.2"], "the value has no time"),
        (["peak=1.2", "size=3.4"], "there is no output 'size'"),
        (["peak=1.2", "peak=3.4"], "must be numbers, such as 0.5 12"),
        (["peak=1.2", "3.4"], "must be numbers, such as 0.5 12"),
        (["much", "more"], "must be numbers, such as 0.5 12"),
        (["0.2", "3.4", "--variance", "-1"], "must not be negative"),
        (["0.2", "3.4", "--variance", "0.1,0.2,0.3"], "the variance must be 2 numbers"),
    ],
)
def test_wrong_values_are_refused(journal, typed, given, says):
    [query] = queries(typed("ask", journal.with_suffix(".toml")))
    before = journal.read_bytes()
    assert says in typed("tell", journal, query["id"], *given, code=2)
    assert journal.read_bytes() == before


def test_values_that_cannot_be_used_are_missing_or_failures(journal, typed):
    asked = queries(typed("ask", journal.with_suffix(".toml"), "--n", 12, "--budget", 20))
    one, other = [query for query in asked if query["source"] == "fine"][:2]
    assert "= peak nan, time 12" in typed("tell", journal, one["id"], 1.2, 12)
    assert "failed: peak: the value 1.2 is outside" in typed("tell", journal, other["id"], 1.2, "nan")
    typed("correct", journal, other["id"], "0.9 12.5")  # as a program has printed it
    assert "peak = 0.9\ntime = 12.5\n" in typed("show", journal, other["id"])
    assert "outside the valid range" in typed("correct", journal, other["id"], "peak=7", "time=nan", code=2)


def test_one_output_takes_one_number(journal, typed):
    text = PROBLEM.replace('outputs = ["peak", "time"]', "").replace('outputs = ["time"]', "")
    journal.with_suffix(".toml").write_text(text.replace("{ peak = [0, 1] }", "[0, 1]"))
    [query] = queries(typed("ask", journal.with_suffix(".toml")))
    assert "outputs" not in query
    assert "there is one output, so pass one number" in typed("tell", journal, query["id"], 0.5, 0.6, code=2)
    typed("tell", journal, query["id"], 0.5)
