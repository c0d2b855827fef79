"""``amsbq advise``: each rule where it begins to hold, and one file from end to end."""

import math
from pathlib import Path

import pytest

import amsbq
from amsbq.design.description import Problem
from amsbq.problems.advice import CALLS, SETTINGS, Facts, advice


def facts(inputs=3, affordable=(10.0,), independent=True, noisy=False):
    return Facts(inputs, list(affordable), independent, noisy)


@pytest.mark.parametrize(
    ("known", "methods"),
    [
        (facts(), ["amsbq", "Sobol' points"]),
        (facts(affordable=[1999.0, 1e5]), ["amsbq", "MLBLUE", "Sobol' points"]),
        (facts(affordable=[2000.0]), ["Sobol' points", "amsbq"]),
        (facts(affordable=[2000.0, 1e5]), ["MLBLUE", "Sobol' points", "amsbq"]),
        (facts(inputs=10), ["amsbq", "Sobol' points"]),
        (facts(inputs=11), ["Sobol' points", "amsbq"]),
        (facts(inputs=11, affordable=[19.0, 200.0]), ["Sobol' points", "amsbq"]),
        (facts(inputs=11, affordable=[20.0, 200.0]), ["MLBLUE", "Sobol' points", "amsbq"]),
        (facts(inputs=2, affordable=[25.0]), ["amsbq", "a Gauss rule", "Sobol' points"]),
        (facts(inputs=2, affordable=[24.0]), ["amsbq", "Sobol' points"]),
        (facts(inputs=1, affordable=[5.0], noisy=True), ["amsbq", "Sobol' points"]),
        (facts(inputs=2, affordable=[25.0], independent=False), ["amsbq", "Sobol' points"]),
        (facts(affordable=[math.nan, math.nan]), ["amsbq", "Sobol' points"]),
    ],
)
def test_the_rules(known, methods):
    assert [each.method for each in advice(known)] == methods


def test_what_is_known_of_a_problem():
    sources = [amsbq.Source(cost=lambda x: 1 + x[0], name="fine", noise="learn"), amsbq.Source(cost=0, name="free")]
    found = Facts.of(Problem.of(sources, [(0, 2), (0, 1)], budget=10))
    assert (found.inputs, found.affordable) == (2, [5.0, math.inf])  # at the median the cost is two
    assert found.independent
    assert found.noisy
    dependent = amsbq.Gaussian([0, 0], [[1, 0.5], [0.5, 1]])
    found = Facts.of(Problem.of([amsbq.Source(cost="measured")], dependent, budget=10))
    assert math.isnan(found.affordable[0])
    assert not found.independent
    assert not found.noisy
    unlimited = Facts.of(Problem.of([amsbq.Source()], (0, 1), rel_tol=0.1))
    assert math.isnan(unlimited.affordable[0])  # a tolerance alone says nothing of how much is affordable


def test_what_is_advised_can_be_called():
    for call in CALLS.values():
        name = call.partition(",")[0].removeprefix("amsbq.")
        found = amsbq if call.startswith("amsbq.") else __import__("numpy").polynomial.legendre
        for part in name.split("."):
            found = getattr(found, part, found)
        assert callable(found), call


def test_a_problem_file(tmp_path, typed):
    (tmp_path / "problem.toml").write_text(
        """
budget = 30.0
[inputs]
load = { low = 0.0, high = 1.0 }
size = { low = 0.0, high = 1.0 }
[[sources]]
name = "fine"
detached = true
[[sources]]
name = "coarse"
detached = true
cost = 0.1
"""
    )
    said = typed("advise", tmp_path / "problem.toml").out
    assert "2 inputs; the budget covers 30 of fine, or 300 of coarse" in said
    lines = said.splitlines()
    assert lines[2].startswith("begin with  amsbq (amsbq.integrate, or amsbq run): the budget covers 30 evaluations of")
    assert lines[3].startswith("or          a Gauss rule")
    assert "5 nodes for each input" in lines[3]
    assert [path.name for path in tmp_path.iterdir()] == ["problem.toml"]


def test_the_settings_are_those_of_the_page():
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "which-method.md").read_text("utf-8")
    for said in (
        "| 2,000 or more evaluations",
        "| more than ten inputs",
        "and 20 evaluations",
        "five or more nodes",
        "| one or two",
    ):
        assert said in page
    assert (SETTINGS.many, SETTINGS.inputs, SETTINGS.pilot, SETTINGS.nodes, SETTINGS.gauss) == (2000, 10, 20, 5, 2)
