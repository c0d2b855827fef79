"""Decisions that cost something: their time is charged, counts in rates, and is shared by sets of cheap evaluations."""

import itertools

import numpy as np
import pytest

import amsbq
from amsbq.design.evaluations import Option
from amsbq.design.ledger import DecisionCosts
from amsbq.design.search import Search

PLANE = [(0, 1)] * 2
TRUTH = (1 - np.cos(5)) / 5 + 1 / 3


def fine(x):
    return np.sin(5 * x[0]) + x[1] ** 2


def sources(calls, cost=0.003):
    def formula(X):
        calls.append(len(X))
        return np.sin(5 * X[:, 0]) + 0.9 * X[:, 1]

    return [fine, amsbq.Source(formula, cost=cost, vectorized=True, bulk=False)]


@pytest.fixture
def ticking(monkeypatch):
    """A clock that goes on by half a second whenever one looks at it: a decision takes the same time everywhere."""
    ticks = itertools.count(step=0.5)
    monkeypatch.setattr("amsbq.design.ledger.time.perf_counter", lambda: next(ticks))


def test_by_default_decisions_cost_nothing():
    result = amsbq.integrate(sources([]), PLANE, budget=3)
    assert all(e.decision == 0 for e in result.evaluations)
    assert result.spent == pytest.approx(sum(1.0 if e.source == 0 else 0.003 for e in result.evaluations))


def test_the_time_of_decisions_is_charged_and_stays_within_the_budget(ticking):
    result = amsbq.integrate(sources([]), PLANE, budget=8, decision_cost=0.05)
    of_source = [1.0 if e.source == 0 else 0.003 for e in result.evaluations]
    np.testing.assert_allclose([e.cost - e.decision for e in result.evaluations], of_source, atol=1e-12)
    # half a second for the decision, and half a second for what is learned from each answer
    decisions = [e.decision for e in result.evaluations if e.decision]
    assert decisions[0] == pytest.approx(0.025)
    assert all(d == pytest.approx(0.025 * round(d / 0.025)) for d in decisions)
    assert result.spent == pytest.approx(sum(e.cost for e in result.evaluations))
    assert result.spent <= 8
    assert abs(result.mean - TRUTH) < 4 * result.std


def test_sources_far_cheaper_than_a_decision_are_asked_in_sets(ticking):
    calls = []
    amsbq.integrate(sources(calls), PLANE, budget=8, decision_cost=0.2)
    assert max(calls) > 2
    calls.clear()
    amsbq.integrate(sources(calls, cost=0.5), PLANE, budget=8, decision_cost=0.05)
    assert max(calls) == 1


def test_no_time_is_charged_that_is_not_left(ticking):
    result = amsbq.integrate(fine, PLANE, budget=3, decision_cost=0.6)
    assert result.spent <= 3
    assert sum(e.source == 0 for e in result.evaluations) < 3


def test_a_set_grows_as_long_as_its_rate_rises():
    """By the rate of each beginning of the set, from the dense joint Gaussian."""
    gp = amsbq.MultiSourceGP([amsbq.Term([[1.0]], amsbq.RBF(0.4))], amsbq.Uniform(0, 1), noise=0.1)
    it = amsbq.Integrator(amsbq.Source(fine, cost=0.1), amsbq.Uniform(0, 1), model=gp, decision_cost=1.0)
    it.ledger.decisions.charged(1.0)
    rate = it.policy.next_rate(it.learner.posterior)
    found = Search(it.measure, [Option(0)], np.random.default_rng(0)).rising_set(rate, 32)

    def of_first(n):
        rho2 = gp.condition([], np.zeros((0, 1)), []).squared_correlation_joint([0] * n, [c.x for c in found[:n]])
        return -np.log1p(-rho2) / (1.0 + 0.1 * n)

    rates = [of_first(n) for n in range(1, len(found) + 1)]
    assert 3 < len(found) < 32
    assert np.all(np.diff(rates) > 0)
    assert found[-1].rate == pytest.approx(rates[-1], rel=1e-9)


def test_the_expected_price_is_the_average_of_the_latest():
    costs = DecisionCosts(1.0)
    assert costs.expected == 0
    for price in [9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0]:
        costs.charged(price)
    assert costs.expected == 3


def test_measured_costs_do_not_learn_the_time_of_decisions(ticking):
    it = amsbq.Integrator(amsbq.Source(fine, cost="measured"), PLANE, budget=50, decision_cost=2.0)
    for _ in range(4):
        it.tell(it.ask(), 1.0, cost=3.0)
    query = it.ask()
    assert query.cost == pytest.approx(3.0, rel=0.05)
    assert query.decision == pytest.approx(2.0, rel=1e-9)
    assert it.spent == pytest.approx(4 * 3.0 + sum(e.decision for e in it.evaluations))
    assert it.reserved == pytest.approx(query.cost + query.decision)


def test_what_was_charged_is_the_same_after_a_resumption(tmp_path, ticking):
    journal = tmp_path / "run.jsonl"
    first = amsbq.integrate(sources([]), PLANE, budget=4, decision_cost=0.2, journal=journal)
    again = amsbq.integrate(sources([]), PLANE, budget=4, decision_cost=0.2, journal=journal)
    assert [(e.cost, e.decision) for e in again.evaluations] == [(e.cost, e.decision) for e in first.evaluations]
    assert again.spent == first.spent
    assert again.integrator.ledger.decisions.expected == pytest.approx(
        first.integrator.ledger.decisions.expected, rel=1e-12
    )
    more = amsbq.integrate(sources([]), PLANE, budget=6, decision_cost=0.2, journal=journal)
    assert 4 < more.spent <= 6


def test_a_forecast_pays_for_decisions():
    it = amsbq.Integrator(sources([]), PLANE, budget=10)
    for _ in range(8):
        query = it.ask()
        it.tell(query, fine(query.x))
    without = it.forecast(10)
    it.ledger.decisions.charged(0.5)
    with_decisions = it.forecast(10)
    assert with_decisions[1][0] >= without[0][0] + 0.5
    assert with_decisions[-1][1] > without[-1][1]


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf, "fast"])
def test_bad_prices(wrong):
    with pytest.raises((ValueError, TypeError), match="decision_cost"):
        amsbq.Integrator(fine, PLANE, budget=3, decision_cost=wrong)
