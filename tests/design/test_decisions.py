"""How the rest of a budget is spent."""

import numpy as np
import pytest

import amsbq
from amsbq.design.forecast import extrapolated
from benchmarks.arena.families import problem_named

TRUTH = (1 - np.cos(3)) / 3


def fine(x):
    return np.sin(3 * x[0])


def nearby(x):
    return 0.9 * np.sin(3 * x[0] + 0.05) + 0.1


@pytest.mark.parametrize(("cost", "budget"), [(0.0005, 2.005), (0.0005, 3.002)])
def test_cheap_evaluations_do_not_use_up_what_the_last_primary_one_costs(cost, budget):
    result = amsbq.integrate([fine, amsbq.Source(nearby, cost=cost)], amsbq.Uniform(0, 1), budget=budget, seed=2)
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


def test_a_run_goes_on_where_posteriors_disagree():
    """Each of them may be sure of an answer of its own: this run stopped at 8.5 of 10 for that reason."""
    problem = problem_named("non-stationary/1")
    result = amsbq.integrate(problem.sources(1), problem.measure, budget=10, seed=1, max_evaluations=150)
    assert result.stopped == "budget"


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


def test_many_inputs_are_covered_before_the_rate_chooses():
    """While there are fewer observations than inputs, locations are those of the sequence that the design begins."""
    D = 12

    def ridge(x):
        return float(np.exp(np.sum(x) / D))

    def asked(budget, fails=()):
        it = amsbq.Integrator(ridge, [(0, 1)] * D, budget=budget)
        while (query := it.ask()) is not None:
            if query.id in fails:
                it.fail(query, "for the test")
            else:
                it.tell(query, ridge(query.x))
        return np.array([e.x for e in it.evaluations])

    sequence = amsbq.Uniform(np.zeros(D), 1.0).sobol(256, np.random.default_rng([0, 0]))
    X = asked(14)
    np.testing.assert_array_equal(X[:D], sequence[:D])
    assert not (X[D:, None] == sequence).all(axis=2).any()  # from then on the rate decides
    failing = asked(8, fails=[4])
    assert len(failing) == 8
    assert len(np.unique(failing, axis=0)) == 8


def test_workers_share_the_sequence_of_many_inputs():
    it = amsbq.Integrator(lambda x: float(np.sum(x)), [(0, 1)] * 10, budget=8)
    for _ in range(3):
        it.tell(query := it.ask(), float(np.sum(query.x)))
    first, second = it.ask(), it.ask()
    assert not np.array_equal(first.x, second.x)


@pytest.mark.parametrize("output_range", [None, (-2.0, np.inf)])
def test_evaluations_to_come_are_as_noisy_as_those_that_were_told(output_range):
    """A variance that is reported with each value is expected of the next ones, as if it had been declared."""
    gp, x = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF(0.3))], amsbq.Uniform(0, 1)), np.linspace(0, 1, 5)
    if output_range is None:
        declared = amsbq.MultiSourceGP(gp.terms, gp.measure, noise=0.04)
        runs = [amsbq.Integrator(amsbq.Source(), gp.measure, model=model, initial=[]) for model in (gp, declared)]
    else:
        sources = (amsbq.Source(), amsbq.Source(noise=0.04))
        runs = [amsbq.Integrator(s, gp.measure, output_range=output_range, initial=[]) for s in sources]
    for it, variance in zip(runs, (0.04, 0.0), strict=True):
        for at in x:
            it.observe(0, [at], fine([at]), variance)
    told, known = runs
    X = np.linspace(0.05, 0.95, 7)[:, None]
    np.testing.assert_allclose(told.rates(X), known.rates(X), rtol=1e-9)
    for one, other in zip(told.forecast(4.0), known.forecast(4.0), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    if output_range is None:  # independent of any code of ours: with exact values, much more would be expected
        exact = amsbq.Integrator(amsbq.Source(), gp.measure, model=gp, initial=[])
        for at in x:
            exact.observe(0, [at], fine([at]))
        assert told.forecast(4.0)[-1][1] > 10 * exact.forecast(4.0)[-1][1]


def test_only_some_values_have_a_variance():
    """The median of the variances counts: the Gram matrix of the observations stays what it is."""
    gp = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF(0.3))], amsbq.Uniform(0, 1))
    x, variances = np.linspace(0, 1, 5), np.array([0.0, 0.01, 0.02, 0.5, 3.0])
    posterior = gp.condition(np.zeros(5, int), x, fine([x]), variances).batch
    expecting = posterior.expecting_noise()
    np.testing.assert_allclose(expecting.integral(), posterior.integral(), rtol=1e-14)
    assert expecting.models.noise.tolist() == [[0.02]]
    np.testing.assert_allclose(expecting.data.noise_var + 0.02, variances, atol=1e-16)
    again = type(expecting).condition(expecting.models, expecting.data)
    np.testing.assert_allclose(again.integral(), posterior.integral(), rtol=1e-12)
    X = np.array([[0.4]])
    c = posterior.squared_correlation(0, X) * posterior.predict(0, X)[1]  # without noise, v is the variance of f
    np.testing.assert_allclose(expecting.squared_correlation(0, X), c / (posterior.predict(0, X)[1] + 0.02), rtol=1e-9)
