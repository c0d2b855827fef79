"""Stopping where further evaluations cost more than the smaller error bar is worth."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import amsbq
from amsbq import stopping
from amsbq.cli.main import main
from amsbq.design.goals import Goals
from tests.design.test_integrator import UNIT, fixed


def fine(x):
    return np.exp(-x[0]) * np.sin(8 * x[0]) + x[0]


def coarse(x):
    return (1 - x[0] / 2) * np.sin(8 * x[0]) + 0.3


def sources():
    return [amsbq.Source(fine, name="fine"), amsbq.Source(coarse, cost=0.2, name="coarse")]


MODEL = fixed()  # with fixed hyperparameters, forecasts are exact


def trajectory(result):
    """Return (cost, std) after each evaluation."""
    made = [e for e in result.evaluations if np.isfinite(e.std)]
    return np.cumsum([e.cost for e in made]), np.array([e.std for e in made])


@pytest.mark.parametrize("price", [5.0, 300.0])
def test_the_run_ends_where_cost_and_error_together_are_least(price):
    """A run that stops by itself, and one that goes on, of which the best moment after the initial design is known."""
    stopped = amsbq.integrate(sources(), UNIT, model=MODEL, error_cost=price, seed=0)
    longer = amsbq.integrate(sources(), UNIT, model=MODEL, max_evaluations=len(stopped.evaluations) + 12, seed=0)
    assert stopped.stopped == "error cost"
    cost, std = trajectory(longer)
    assert_allclose(stopped.spent, cost[3:][np.argmin((cost + price * std)[3:])])
    assert "cost more than the smaller error bar is worth" in str(stopped)


def test_larger_prices_buy_smaller_errors():
    runs = [amsbq.integrate(sources(), UNIT, error_cost=price, seed=0) for price in (5, 100)]
    assert runs[0].spent < runs[1].spent
    assert runs[0].std > runs[1].std
    assert all(run.spent < 100 * run.std + run.spent for run in runs)


def test_what_comes_first_ends_the_run():
    ends = {"budget": 4.0, "error_cost": 1e6}
    assert amsbq.integrate(sources(), UNIT, model=MODEL, **ends).stopped == "budget"
    ends = {"abs_tol": 0.3, "error_cost": 1e6}
    assert amsbq.integrate(sources(), UNIT, model=MODEL, **ends).stopped == "tolerance"
    by_rule = amsbq.integrate(sources(), UNIT, model=MODEL, stop=stopping.error_cost(5.0), seed=0)
    assert by_rule.spent == amsbq.integrate(sources(), UNIT, model=MODEL, error_cost=5.0, seed=0).spent


def test_costs_that_are_measured_are_learned_first():
    it = amsbq.Integrator([amsbq.Source(fine, cost="measured")], UNIT, budget=10, model="vbq")
    assert stopping.error_cost(1.0)(it) is None


def test_outputs_have_their_own_prices():
    two = [
        amsbq.Source(lambda x: [fine(x), 100 * fine(x)]),
        amsbq.Source(lambda x: [coarse(x), 100 * coarse(x)], cost=0.2),
    ]
    options = {"outputs": ["a", "b"], "model": MODEL, "seed": 0}
    prices = ({"a": 5}, {"b": 50}, [20, 30])
    spent = [amsbq.integrate(two, UNIT, error_cost=price, **options).spent for price in prices]
    assert spent[0] == amsbq.integrate(sources(), UNIT, model=MODEL, error_cost=5, seed=0).spent
    assert spent[0] < spent[1] == spent[2]  # by the given model, both outputs have the same error
    goals = Goals.of(None, None, None, {"a": 50}, ["a", "b"])
    estimates = amsbq.Estimates([amsbq.Estimate([1.0], [0.5]), amsbq.Estimate([2.0], [1.0])], ["a", "b"])
    assert_allclose(goals.distances(estimates, np.zeros((3, 2))), [25.0, 0.0])


def test_the_forecast_marks_where_evaluations_cease_to_pay():
    result = amsbq.integrate(sources(), UNIT, error_cost=20, seed=0)
    ahead = np.array(result.integrator.forecast(2 * result.spent))
    end = result.integrator.problem.goals.pays_until([tuple(row) for row in ahead])
    assert end == ahead[np.argmin(ahead @ [1, 20]), 0]
    labels = amsbq.plots.forecast(result).get_legend_handles_labels()[1]
    assert "evaluations pay up to here" in labels
    assert "with the given error_cost, evaluations pay up to" in str(result.diagnose())
    assert Goals().pays_until([(1.0, 1.0), (2.0, 0.9)]) is None
    assert Goals(error_cost=np.array(1.0)).pays_until([(1.0, 9.0), (2.0, 1.0)]) is None  # up to the last row


def test_a_journal_keeps_it_and_may_be_resumed_with_another_one(tmp_path):
    path = tmp_path / "run.jsonl"
    first = amsbq.integrate(sources(), UNIT, error_cost=5, journal=path, seed=0)
    assert amsbq.read_result(path).integrator.problem.goals.error_cost == 5
    again = amsbq.integrate(sources(), UNIT, error_cost=5, journal=path, seed=0)
    assert len(again.evaluations) == len(first.evaluations)
    more = amsbq.integrate(sources(), UNIT, error_cost=200, journal=path, seed=0)
    assert more.spent > first.spent
    assert more.evaluations[: len(first.evaluations)][-1].value == first.evaluations[-1].value


PROBLEM = """
error_cost = {price}
[inputs]
x = {{ low = 0.0, high = 1.0 }}
[[sources]]
name = "fine"
command = ["echo", "{{x}}"]
"""


def test_problem_files_have_it(tmp_path, capsys):
    path = tmp_path / "problem.toml"
    path.write_text(PROBLEM.format(price=3))
    assert main(["check", str(path)]) == 0
    assert "there is no budget: the run ends when more evaluations do not pay" in capsys.readouterr().out
    assert main(["run", str(path)]) == 0
    assert "larger error_cost" in "".join(capsys.readouterr())
    assert main(["forecast", str(path)]) == 0
    assert " of fine" in capsys.readouterr().out
    assert main(["status", str(tmp_path / "problem.jsonl"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stopped"] == "error cost"
    path.write_text(PROBLEM.format(price=-3))
    assert main(["check", str(path)]) == 2
    assert "error_cost" in capsys.readouterr().err


@pytest.mark.parametrize("price", [0, -1.0, np.nan, "much", [1.0, 2.0]])
def test_prices_are_positive_numbers(price):
    with pytest.raises((ValueError, TypeError), match="error_cost"):
        amsbq.integrate(sources(), UNIT, error_cost=price)
