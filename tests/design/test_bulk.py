"""Sources that cost next to nothing: evaluated in bulk, and wherever another source is."""

import json
import math
import re

import numpy as np
import pytest

import amsbq
from amsbq.design.bulk import SETTINGS
from amsbq.execution import bulk as execution
from amsbq.gp.data import Data
from amsbq.gp.posterior_batch import PosteriorBatch

SQUARE = amsbq.Uniform([0, 0], 1)
TRUTH = (math.e - 1) * math.sin(1.0) ** 2 + 0.25


def fine(x):
    return float(np.exp(x[0]) * np.sin(2 * x[1]) + x[0] * x[1])


def formula(X):
    return 0.8 * np.exp(X[:, 0]) * np.sin(2 * X[:, 1]) + 0.1 * X[:, 0]


def calls_of(function):
    """The function, and a list of the numbers of locations that it was called with."""
    sizes = []

    def counted(X):
        sizes.append(len(X))
        return function(X)

    return counted, sizes


def free(function=formula, **options):
    return amsbq.Source(function, cost=0, name="formula", vectorized=True, **options)


def in_bulk(source, measure=SQUARE, seed=0):
    """What is kept of the evaluations of a source in bulk."""
    it = amsbq.Integrator([fine, source], measure, budget=1000, seed=seed)
    it.ask()
    return it.in_bulk.made[0]


def test_average_and_its_error_are_those_of_the_replicates():
    source = amsbq.Source(formula, cost=0.25, vectorized=True, bulk=1024)
    found = in_bulk(source, seed=3)
    truth = 0.8 * (math.e - 1) * math.sin(1.0) ** 2 + 0.05
    assert found.n == 1024
    assert found.cost == 256
    assert abs(found.mean - truth) < 4 * found.std < 1e-2
    np.testing.assert_array_equal(found.values, formula(found.X))
    assert len(found.values) == 2 * SETTINGS.modelled_per_input
    other = in_bulk(source, seed=4)
    assert other.mean != found.mean
    assert abs(other.mean - found.mean) < 6 * math.hypot(other.std, found.std)


@pytest.mark.front_door
def test_a_good_formula_is_worth_many_evaluations():
    counted, sizes = calls_of(formula)
    with_it = amsbq.integrate([fine, free(counted)], SQUARE, budget=6, seed=0)
    alone = amsbq.integrate(fine, SQUARE, budget=6, seed=0)
    assert abs(with_it.mean - TRUTH) < 0.02
    assert with_it.std < 0.3 * alone.std
    assert with_it.interval()[0] < TRUTH < with_it.interval()[1]
    assert with_it.spent == 6
    assert [e.source for e in with_it.evaluations] == [0] * 6
    assert with_it.bulk[0].n == SETTINGS.most
    assert sizes == [SETTINGS.most // SETTINGS.replicates] * SETTINGS.replicates + [1] * 6  # and with each evaluation
    for e in with_it.evaluations:
        assert e.free == ((formula(e.x[None])[0], 0.0),)
    assert str(SETTINGS.most + 6) in str(with_it)


@pytest.mark.parametrize(
    ("useless", "said"),
    [
        (lambda X: np.full(len(X), 3.0), "all values of formula are 3: they do not show how fine varies"),
        (lambda X: np.cos(3 * X[:, 0]) * X[:, 1], "are no better with formula: models with it have a weight of"),
    ],
    ids=["constant", "unrelated"],
)
def test_a_useless_one_does_little_harm(useless, said):
    with_it = amsbq.integrate([fine, free(useless)], SQUARE, budget=7, seed=0)
    alone = amsbq.integrate(fine, SQUARE, budget=7, seed=0)
    assert abs(with_it.mean - TRUTH) < 2 * abs(alone.mean - TRUTH) + 0.5 * alone.std
    assert with_it.std < 3 * alone.std
    assert said in str(with_it.diagnose())
    mean, variance = with_it.predict(1, [[0.5, 0.5]])  # by a model of all sources
    assert abs(mean - useless(np.array([[0.5, 0.5]]))) < 4 * np.sqrt(variance) + 1e-3
    [of_primary, of_free] = with_it.integrator.rates([[0.5, 0.5], [0.2, 0.1]])
    assert (of_primary > 0).all()
    assert (of_free == 0).all()


def test_what_is_left_out_cannot_be_forecast():
    it = amsbq.integrate([fine, free(lambda X: np.full(len(X), 3.0))], SQUARE, budget=5, seed=0).integrator
    assert it.learner.alone
    with pytest.raises(ValueError, match="the model uses only source 0, and others are not informative about it"):
        it.forecast(9, sources=[1])


def skewed(x):
    return float(np.exp(-6 * x[0] - 3 * x[1]))


def test_without_a_useless_one_the_posterior_is_that_of_the_primary_source_alone(tmp_path):
    """Values that are skewed are found to be so, as well, and a run is resumed in the same place."""
    useless, path = free(lambda X: np.full(len(X), -3.0)), tmp_path / "run.jsonl"
    amsbq.integrate([skewed, useless], SQUARE, budget=9, seed=0, journal=path)
    resumed = amsbq.integrate([skewed, useless], SQUARE, budget=11, seed=0, journal=path)
    attended = amsbq.integrate([skewed, useless], SQUARE, budget=11, seed=0)
    assert (resumed.mean, resumed.std) == (attended.mean, attended.std)
    assert (amsbq.read_result(path).mean, amsbq.read_result(path).std) == (attended.mean, attended.std)
    X, y = zip(*((e.x, e.value) for e in attended.evaluations), strict=True)
    alone = amsbq.estimate([0] * 11, X, y, SQUARE)  # from draws that were not carried along
    assert abs(attended.mean - alone.mean) < 0.25 * alone.std
    assert abs(np.log(attended.std / alone.std)) < 0.5
    assert "is modelled as an exponential" in str(attended.diagnose())


@pytest.mark.parametrize(
    ("cost", "options", "expected"),
    [
        (0.0, {}, SETTINGS.most),
        (0.001, {}, SETTINGS.fewest),  # a tenth of the budget of 10 pays for 1000
        (0.003, {}, 0),
        (0.00196, {}, 0),  # one evaluation of the primary source costs less than 512
        (0.003, {"bulk": True}, 256),
        (0.0, {"bulk": 100}, 96),
        (0.003, {"bulk": 200}, 200),
        (0.001, {"bulk": False}, 0),
    ],
)
def test_which_sources_are_evaluated_in_bulk(cost, options, expected):
    it = amsbq.Integrator([fine, amsbq.Source(formula, cost=cost, vectorized=True, **options)], SQUARE, budget=10)
    query = it.ask()
    assert sum(bulk.n for bulk in it.in_bulk.made) == expected
    assert it.spent == pytest.approx(cost * expected)
    before = it.ledger.committed
    it.tell(query, fine(query.x))
    assert it.spent == pytest.approx(before)
    assert it.spent == pytest.approx(cost * expected + 1 + cost * bool(expected))


def test_evaluations_of_the_primary_source_come_first():
    """In bulk, they would cost the third one of the three that the budget pays for."""
    it = amsbq.Integrator([fine, amsbq.Source(formula, cost=0.0005, vectorized=True)], SQUARE, budget=3.002)
    assert it.in_bulk.sources == ()


def test_a_large_budget_is_no_reason():
    it = amsbq.Integrator([fine, amsbq.Source(formula, cost=0.01, vectorized=True)], SQUARE, budget=1e6)
    assert it.in_bulk.sources == ()


def test_slow_functions_and_programs_are_evaluated_one_by_one(monkeypatch):
    monkeypatch.setattr(execution, "SETTINGS", execution.SlownessSettings(longest=0.0))
    it = amsbq.Integrator([fine, amsbq.Source(lambda x: x[0], cost=0.001)], SQUARE, budget=10)
    it.ask()
    assert not it.in_bulk.made
    assert it.in_bulk.sources == ()
    program = amsbq.external.Command(["bc"], ["x", "y"])
    assert amsbq.Integrator([fine, amsbq.Source(program, cost=1e-6)], SQUARE, budget=10).in_bulk.sources == ()


def test_models_with_given_hyperparameters_know_the_integral_too():
    """Against the posterior on the same observations, with that of the integral."""
    model = amsbq.MultiSourceGP([amsbq.Term([[1.0, 0.9], [0.9, 1.0]], amsbq.RBF(0.5))], SQUARE, mean=[1.4, 1.1])
    it = amsbq.Integrator([fine, free()], SQUARE, budget=3, model=model)
    while (query := it.ask()) is not None:
        it.tell(query, fine(query.x))
    bulk = it.in_bulk.made[0]
    data = it.learner.data.followed_by(Data.of_integrals([1], [bulk.mean], [bulk.std**2], 2))
    mean, variance = PosteriorBatch.condition(model.batch, data).integral()
    assert it.estimate().mean == pytest.approx(mean[0], rel=1e-6)
    assert it.estimate().std == pytest.approx(np.sqrt(variance[0]), rel=1e-4)


def test_budget_is_kept():
    sources = [fine, amsbq.Source(formula, cost=0.001, vectorized=True)]
    result = amsbq.integrate(sources, SQUARE, budget=6.52, seed=0)
    assert result.spent <= 6.52
    assert result.spent == pytest.approx(0.512 + sum(e.cost + 0.001 for e in result.evaluations))


def test_resume_asks_nothing_again_and_ends_in_the_same_place(tmp_path):
    path = tmp_path / "run.jsonl"
    counted, sizes = calls_of(formula)
    amsbq.integrate([fine, free(counted)], SQUARE, budget=5, seed=0, journal=path)
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert [event["event"] for event in events].count("bulk") == 1
    sizes.clear()
    resumed = amsbq.integrate([fine, free(counted)], SQUARE, budget=7, seed=0, journal=path)
    assert sizes == [1, 1]
    attended = amsbq.integrate([fine, free()], SQUARE, budget=7, seed=0)
    assert (resumed.mean, resumed.std, resumed.spent) == (attended.mean, attended.std, attended.spent)
    read = amsbq.read_result(path)
    assert (read.mean, read.std, read.spent, read.bulk[0].n) == (resumed.mean, resumed.std, 7.0, SETTINGS.most)
    assert read.diagnose()


def test_failures():
    broken = free(lambda X: np.where(X[:, 0] > 0.5, np.nan, formula(X)))
    with pytest.warns(UserWarning, match="formula failed at \\d+ of 16384 locations, the first time with: ValueErr"):
        result = amsbq.integrate([fine, broken], SQUARE, budget=4, seed=0)
    assert math.isfinite(result.mean)
    assert math.isnan(result.bulk[0].mean)
    failed = result.bulk[0].failed
    assert failed == pytest.approx(8192, abs=100)
    assert re.search(rf"formula +{16388 - failed} +{failed} ", str(result))
    [finding] = [finding for finding in result.diagnose() if finding.about == "failures"]
    assert f"formula failed at {failed} of the 16384 locations" in finding.text
    assert "the value must be finite, got nan" in finding.text
    with pytest.raises(ValueError, match="formula failed at all 2048 locations"):
        amsbq.integrate([fine, free(lambda X: np.full(len(X), np.inf))], SQUARE, budget=4)
    counted, sizes = calls_of(lambda X: X)
    with pytest.raises(ValueError, match=r"is vectorized: for X of shape \(2048, 2\) it must return 2048 numbers"):
        amsbq.integrate([fine, free(counted)], SQUARE, budget=4)
    assert sizes == [2048]  # once


def test_a_free_source_that_always_fails_says_why():
    with pytest.raises(ValueError, match="2048 locations, with: ZeroDivisionError: division by zero"):
        amsbq.integrate([fine, amsbq.Source(lambda x: 1 / 0, cost=0)], SQUARE, budget=4)
    with pytest.raises(ValueError, match=r"it takes many locations at once, so pass vectorized=True.*IndexError"):
        amsbq.integrate([fine, amsbq.Source(lambda X: X[:, 0] * X[:, 1], cost=0)], SQUARE, budget=4)


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ([amsbq.Source(fine, cost=0)], "is the primary source: it must cost something"),
        ([fine, amsbq.Source(cost=0, name="g")], "g is evaluated in bulk: pass a function, or another cost"),
        ([fine, amsbq.Source(fine, cost=0, bulk=False)], "costs nothing: omit bulk=False"),
        (
            [fine, amsbq.Source(fine, cost=0.1, bulk=1000)],
            "1000 evaluations of fine .* cost more than the budget",
        ),
    ],
)
def test_what_cannot_be_evaluated_in_bulk(sources, message):
    with pytest.raises(ValueError, match=message):
        amsbq.Integrator(sources, SQUARE, budget=10).ask()


def test_of_functions_of_the_inputs():
    """A vectorized source of transformed inputs is called with all of them at once."""
    measure = amsbq.Transformed(SQUARE, lambda u: 2 * u - 1)
    counted, sizes = calls_of(lambda X: X[:, 0] ** 2 + X[:, 1])
    found = in_bulk(amsbq.Source(counted, cost=0, vectorized=True, bulk=512), measure)
    assert sizes == [64] * 8
    assert abs(found.mean - 1 / 3) < 4 * found.std + 1e-12


@pytest.mark.parametrize("n", [100, 300])
def test_a_formula_beside_samples(n):
    """Of many samples models are learned by some: the integral of the formula is that over these."""
    samples = np.random.default_rng(0).normal(size=(n, 2))

    def primary(x):
        return np.exp(0.3 * x[0]) + 0.3 * x[1] ** 2

    related = amsbq.Source(lambda x: 2 * primary(x) + 1, cost=0)
    result = amsbq.integrate([primary, related], amsbq.Empirical(samples), budget=5)
    truth = np.mean([primary(x) for x in samples])
    assert abs(result.mean - truth) < 4 * result.std
    assert result.std < 0.01 * np.std([primary(x) for x in samples])
