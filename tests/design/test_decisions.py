"""How the rest of a budget is spent."""

import numpy as np
import pytest

import amsbq
from amsbq.design.forecast import extrapolated

TRUTH = (1 - np.cos(3)) / 3


def fine(x):
    return np.sin(3 * x[0])


def nearby(x):
    return 0.9 * np.sin(3 * x[0] + 0.05) + 0.1


@pytest.mark.parametrize(("cost", "budget"), [(0.0005, 2.005), (0.0005, 3.002), (0.002, 4.01)])
def test_cheap_evaluations_do_not_use_up_what_the_last_primary_one_costs(cost, budget):
    result = amsbq.integrate([fine, amsbq.Source(nearby, cost=cost)], amsbq.Uniform(0, 1), budget=budget)
    primaries = sum(e.source == 0 for e in result.evaluations)
    assert primaries == int(budget)
    assert abs(result.mean - TRUTH) < 4 * result.std


def test_a_primary_evaluation_that_tells_nothing_is_not_bought():
    """With fixed hyperparameters by which the sources are the same, cheap evaluations are worth more."""
    gp = amsbq.MultiSourceGP([amsbq.Term(np.ones((2, 2)), amsbq.RBF(0.05))], amsbq.Uniform(0, 1))
    sources = [amsbq.Source(fine), amsbq.Source(fine, cost=0.1)]
    result = amsbq.integrate(sources, amsbq.Uniform(0, 1), budget=1.55, model=gp, initial=[(1, [0.5])])
    assert all(e.source == 1 for e in result.evaluations)
    assert result.spent == pytest.approx(1.5)


def test_a_budget_that_buys_nothing_more_is_kept():
    result = amsbq.integrate(lambda x: 2 * x[0], amsbq.Uniform(0, 1), budget=200)
    assert result.stopped == "exhausted"
    assert result.spent < 60
    assert result.mean == pytest.approx(1, abs=1e-5)


def test_sequences_are_extrapolated_by_a_geometric_series():
    gains = 0.7 ** np.arange(24)
    worth = np.append(0.0, np.cumsum(gains[:8]))
    assert extrapolated(worth, 3.0) == pytest.approx(gains.sum(), rel=1e-12)
    assert extrapolated(np.arange(9.0), 2.0) == pytest.approx(16.0)
    assert extrapolated(worth[:3], 1.0) == worth[2]
