"""Asking and telling: budgets, designs, batches, failures, forecasts, and that a run is a function of its seed."""

import itertools
import math
import pickle
import sys
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import amsbq
from amsbq import Integrator, Source, stopping
from amsbq.design import stopping as rule_module
from amsbq.design.failures import RETIRED_AFTER
from amsbq.posterior import channel, learner, schedule
from amsbq.results.result import result_of

UNIT = amsbq.Uniform(0, 1)
FINE, COARSE = (lambda x: np.sin(6 * x[0]) + x[0]), (lambda x: 0.8 * np.sin(6 * x[0]) + 0.3)
TRUTH = (1 - math.cos(6)) / 6 + 0.5


def fixed(measure=UNIT, L=2, noise=0.0):
    """A model whose hyperparameters are given: decisions take no time."""
    B = 0.9 * np.ones((L, L)) + 0.1 * np.eye(L)
    return amsbq.MultiSourceGP([amsbq.Term(B, amsbq.RBF(0.25 * measure.width))], measure, noise=noise)


def run(it, functions=(FINE, COARSE), most=10_000):
    """Tell whatever is asked; sources without a function fail."""
    while len(it.evaluations) < most and (query := it.ask()) is not None:
        function = functions[query.source]
        if function is None:
            it.fail(query, "no licence")
        else:
            it.tell(query, function(query.x))
    return it


def history(it):
    return [(e.source, e.x.tolist(), e.value, e.cost, e.mean, e.std) for e in it.evaluations]


def sources(primary=1.0, secondary=0.1):
    return [Source(FINE, cost=primary, name="fine"), Source(COARSE, cost=secondary, name="coarse")]


@pytest.mark.parametrize("model", ["auto", "icm", "lmc", "ar", "vbq", "fixed"])
def test_every_model_integrates(model):
    it = run(Integrator(sources(), UNIT, budget=5, model=fixed() if model == "fixed" else model))
    assert it.stopped == "budget"
    assert it.spent <= 5
    low, high = it.estimate().interval(0.99)
    assert low < TRUTH < high
    assert {e.source for e in it.evaluations} == ({0} if model == "vbq" else {0, 1})
    last = it.evaluations[-1]
    assert (last.mean, last.std) == (it.estimate().mean, it.estimate().std)


def test_the_same_seed_gives_the_same_run():
    first, second, other = (run(Integrator(sources(), UNIT, budget=3.5, seed=seed)) for seed in (1, 1, 2))
    assert history(first) == history(second)
    assert history(first) != history(other)


@pytest.mark.parametrize("values", [{}, {"output_range": (-50.0, 50.0)}], ids=["any values", "in a range"])
def test_an_answer_does_not_depend_on_when_somebody_looked(values):
    found = set()
    for looks in (range(3, 12), (5, 8), ()):
        it, rng = Integrator(sources(), UNIT, budget=10, **values), np.random.default_rng(0)
        for n in range(12):
            source, x = int(rng.integers(2)), rng.uniform(size=1)
            it.observe(source, x, (FINE, COARSE)[source](x))
            if n in looks:
                it.estimate()
        found.add((it.estimate().mean, it.estimate().std))
    assert len(found) == 1


def test_the_order_of_telling_matters_within_the_noise_of_sampling_only():
    """Draws of hyperparameters are carried along in the order of telling; those of "icm" are the most probable ones."""
    for model, (of_mean, of_width) in {"auto": (0.1, 0.25), "icm": (1e-4, 1e-4)}.items():
        estimates = []
        for order in ((0, 1, 2, 3, 4, 5), (5, 2, 0, 4, 3, 1)):
            it = Integrator(sources(), UNIT, budget=10, model=model)
            queries = it.ask(6)
            for i in order:
                query = queries[i]
                it.tell(query, (FINE, COARSE)[query.source](query.x))
            it.observe(0, [0.3], FINE([0.3]))
            estimates.append(it.estimate())
        first, second = estimates
        assert abs(first.mean - second.mean) < of_mean * first.std
        widths = [np.ptp(each.interval(0.9)) for each in estimates]
        assert abs(np.log(widths[0] / widths[1])) < of_width


@pytest.mark.parametrize("model", ["auto", "icm", "fixed"])
def test_units_of_cost_and_output_do_not_matter(model):
    """Ten times the cost, other units of the outputs: the same choices."""
    runs = []
    for cost, a, b in ((1.0, 1.0, 0.0), (10.0, 1.0, 0.0), (1.0, 1000.0, -300.0)):
        if model == "fixed" and a != 1:
            continue
        chosen = fixed(noise=1e-5) if model == "fixed" else model
        it = Integrator(sources(cost, 0.1 * cost), UNIT, budget=3.5 * cost, model=chosen, seed=3)
        runs.append(run(it, [lambda x, f=f, a=a, b=b: a * f(x) + b for f in (FINE, COARSE)], most=12).evaluations)
        np.testing.assert_allclose((runs[-1][-1].mean - b) / a, runs[0][-1].mean, rtol=1e-3)
    for other in runs[1:]:
        assert [e.source for e in other] == [e.source for e in runs[0]]
        np.testing.assert_allclose([e.x for e in other], [e.x for e in runs[0]], atol=2e-3)


def test_units_of_the_inputs_do_not_matter():
    runs = []
    for low, high in ((0.0, 1.0), (-30.0, 20.0)):
        measure = amsbq.Uniform(low, high)
        it = Integrator(sources(), measure, budget=3.5, seed=3)
        run(it, [lambda x, f=f, low=low, high=high: f((x - low) / (high - low)) for f in (FINE, COARSE)], most=12)
        runs.append([(e.source, (e.x[0] - low) / (high - low)) for e in it.evaluations])
    assert [c[0] for c in runs[0]] == [c[0] for c in runs[1]]
    np.testing.assert_allclose([c[1] for c in runs[0]], [c[1] for c in runs[1]], atol=2e-3)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    budget=st.floats(1.0, 12.0),
    costs=st.tuples(st.floats(0.05, 1.0), st.floats(0.02, 1.0)),
    workers=st.integers(1, 8),
    seed=st.integers(0, 1000),
    batches=st.booleans(),
)
def test_spent_and_reserved_never_exceed_the_budget(budget, costs, workers, seed, batches):
    """Workers that end in random order, fail at random, and sometimes cost less than was said."""
    rng = np.random.default_rng(seed)
    slanted = lambda x: costs[1] * (0.5 + x[0])  # noqa: E731
    it = Integrator([Source(cost=costs[0]), Source(cost=slanted)], UNIT, budget=budget, model=fixed(), seed=seed)
    for _ in range(60):
        if len(it.pending) < workers:
            if batches:
                it.ask(min(workers - len(it.pending), 2))
            else:
                it.ask()
        assert it.spent + it.reserved <= budget * (1 + 1e-12)
        if it.pending:
            query = it.pending[rng.integers(len(it.pending))]
            if rng.uniform() < 0.1:
                it.fail(query, "by chance")
            else:
                it.tell(query, 0.0, cost=query.cost * rng.uniform(0.5, 1.0))
        assert it.spent + it.reserved <= budget * (1 + 1e-12)
        assert all(e.cost >= 0 for e in it.evaluations)


def test_several_threads_keep_to_the_budget():
    """Each of them asks and tells; what is reserved by one is not spent by another."""
    it = Integrator(sources(), UNIT, budget=6, model=fixed())
    errors = []

    def work():
        try:
            while (query := it.ask()) is not None:
                assert it.spent + it.reserved <= 6 + 1e-9
                it.tell(query, (FINE, COARSE)[query.source](query.x))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert errors == []
    assert it.spent <= 6 + 1e-9
    assert sorted(e.id for e in it.evaluations) == list(range(len(it.evaluations)))
    assert len(it.learner) == len(it.evaluations)


def test_integrators_can_be_copied():
    it = Integrator([Source(name="fine"), Source(cost=0.1)], UNIT, budget=6, model=fixed())
    it.tell(it.ask(), 1.0)
    copied = pickle.loads(pickle.dumps(it))
    copied.tell(copied.ask(), 2.0)
    assert (len(copied.evaluations), len(it.evaluations)) == (2, 1)


def test_the_last_step_is_the_best_that_can_be_paid():
    it = Integrator(sources(), UNIT, budget=2.65, model=fixed())
    run(it)
    assert it.stopped == "budget"
    assert 2.55 < it.spent <= 2.65
    assert it.evaluations[-1].source == 1


@pytest.mark.parametrize(("cost", "n"), [(0.1, 3), (0.1, 7), (1.1, 3), (0.1, 10), (0.05, 60)])
def test_a_budget_that_is_a_multiple_of_the_cost_is_spent(cost, n):
    initial = [(0, (i + 0.5) / n) for i in range(n)]
    it = Integrator([Source(cost=cost)], UNIT, budget=cost * n, model=fixed(L=1), initial=initial)
    assert len(run(it, [FINE]).evaluations) == n
    it = Integrator([Source(cost=0.1)], UNIT, budget=0.3, model=fixed(L=1))
    assert len(run(it, [FINE]).evaluations) == 3


def test_no_budget_is_no_limit():
    it = Integrator(sources(), UNIT, model=fixed())
    assert run(it, most=15).stopped is None
    assert it.budget == math.inf


def test_initial_design_shares_locations():
    it = Integrator([Source(), Source(cost=0.1), Source(cost=0.2)], UNIT, budget=10)
    first = it.ask(6)
    assert [q.source for q in first] == [0, 1, 2, 0, 1, 2]
    assert len({q.x[0] for q in first}) == 2
    np.testing.assert_allclose(it.reserved, 2.6)
    assert Integrator([Source(), Source(cost=0.1), Source(cost=0.2)], UNIT, budget=10).ask().x == first[0].x


def test_a_small_budget_has_a_small_design():
    it = Integrator(sources(), UNIT, budget=1.3)
    assert [q.source for q in it.ask(2)] == [0, 1]
    with pytest.raises(ValueError, match="does not cover one evaluation of fine, which costs 1"):
        Integrator(sources(), UNIT, budget=0.9)


def test_initial_evaluations_of_the_user():
    initial = [(0, 0.25), (1, [0.25]), (1, np.array([0.75]))]
    it = Integrator(sources(), UNIT, budget=3, initial=initial)
    assert [(q.source, q.x[0]) for q in it.ask(3)] == [(0, 0.25), (1, 0.25), (1, 0.75)]
    it = Integrator(sources(), UNIT, budget=3, initial=[], model=fixed())
    assert not math.isnan(it.ask().rate)  # chosen by its rate
    with pytest.raises(ValueError, match=r"initial evaluations cost 4, more than the budget of 3"):
        Integrator(sources(), UNIT, budget=3, initial=[(0, 0.1)] * 4)
    with pytest.raises(ValueError, match="there is no source 2"):
        Integrator(sources(), UNIT, budget=3, initial=[(2, 0.1)])
    with pytest.raises(ValueError, match="outside the support"):
        Integrator(sources(), UNIT, budget=3, initial=[(0, 1.1)])
    with pytest.raises(TypeError, match=r"list of \(source, x\)"):
        Integrator(sources(), UNIT, budget=3, initial=[0.1, 0.2])


def test_data_that_are_there_replace_the_design():
    it = Integrator(sources(), UNIT, budget=10)
    for x in (0.2, 0.6, 0.9):
        it.observe(0, x, FINE([x]))
    assert (it.spent, len(it.evaluations)) == (0, 3)
    assert [(q.source, q.x[0]) for q in it.ask(2)] == [(1, 0.2), (1, 0.6)]


def test_more_workers_than_the_design_has_places():
    it = Integrator(sources(), UNIT, budget=10)
    queries = it.ask(7)
    assert [q.source for q in queries] == [0, 1, 0, 1, 1, 1, 1]  # the cheap one, until something is known
    assert len({(q.source, q.x[0]) for q in queries}) == 7


def test_pending_queries_are_taken_into_account():
    it = run(Integrator(sources(), UNIT, budget=30, model=fixed()), most=4)
    queries = [it.ask() for _ in range(5)]
    places = sorted((q.source, q.x[0]) for q in queries)
    assert all(a[0] != b[0] or b[1] - a[1] > 0.01 for a, b in itertools.pairwise(places))


def test_batches_are_chosen_together():
    """Their joint correlation with the integral is no less than that of as many asked one by one."""
    one, many = (run(Integrator(sources(), UNIT, budget=30, model=fixed()), most=4) for _ in range(2))
    s, X, y = ([getattr(e, name) for e in one.evaluations] for name in ("source", "x", "value"))
    posterior = fixed().condition(s, np.array(X), y)
    rates = []
    for queries in ([one.ask() for _ in range(4)], many.ask(4)):
        s, X = np.array([q.source for q in queries]), np.array([q.x for q in queries])
        rates.append(-np.log1p(-posterior.squared_correlation_joint(s, X)) / sum(q.cost for q in queries))
    assert rates[1] >= rates[0] * (1 - 1e-9)


def test_a_failure_is_charged_remembered_and_avoided():
    it = run(Integrator(sources(), UNIT, budget=30, model=fixed()), most=4)
    query = it.ask()
    it.fail(query, "out of memory")
    failed = it.evaluations[-1]
    assert (failed.status, failed.reason, failed.cost) == ("failed", "out of memory", query.cost)
    assert math.isnan(failed.value)
    for _ in range(4):
        following = it.ask()
        assert following.source != query.source or abs(following.x - query.x) > 0.05
        it.tell(following, 0.0)


def test_where_a_simulator_always_fails_little_is_lost():
    it = Integrator(sources(), UNIT, budget=20, model=fixed(noise=0.01))
    while (query := it.ask()) is not None:
        if query.source == 1 and query.x[0] > 0.6:
            it.fail(query, "diverged")
        else:
            it.tell(query, (FINE, COARSE)[query.source](query.x))
    failed = [e for e in it.evaluations if e.status == "failed"]
    assert 0 < len(failed) < 0.15 * len(it.evaluations)
    assert it.stopped == "budget"


def test_a_source_that_keeps_failing_is_retired():
    it = Integrator(sources(), UNIT, budget=20, model=fixed())
    with pytest.warns(UserWarning, match="coarse failed 5 times in a row and is retired; the run continues") as caught:
        run(it, (FINE, None))
    assert len(caught) == 1
    assert sum(e.source == 1 for e in it.evaluations) == RETIRED_AFTER
    assert it.stopped in ("budget", "exhausted")


def test_without_its_primary_source_a_run_ends():
    it = Integrator(sources(), UNIT, budget=20, model=fixed())
    with pytest.warns(UserWarning, match="fine failed 5 times in a row and is retired; the run ends"):
        run(it, (None, COARSE))
    assert it.stopped == "failures"
    with pytest.warns(UserWarning, match="the integral is unknown, because fine has no value"):
        assert np.isnan(it.estimate().mean)


def test_if_everything_fails_there_is_an_end_and_no_answer():
    it = Integrator(sources(), UNIT, budget=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(it, (None, None))
    assert it.stopped == "failures"
    with pytest.raises(ValueError, match="nothing to estimate from"):
        it.estimate()


def test_values_outside_of_what_is_valid_fail():
    it = Integrator([Source(valid=(0, 10)), Source(cost=0.1)], UNIT, budget=5)
    it.tell(it.ask(), 1e32)
    assert it.evaluations[0].status == "failed"
    assert "1e+32 is outside the valid range, 0 to 10" in it.evaluations[0].reason


def test_actual_costs_replace_expected_ones():
    it = Integrator(sources(), UNIT, budget=10)
    query = it.ask()
    assert (it.spent, it.reserved) == (0, 1)
    it.tell(query, 0.5, cost=0.25)
    assert (it.spent, it.reserved) == (0.25, 0)


def test_an_observation_may_be_told_as_a_source_returns_it():
    it = amsbq.Integrator([amsbq.Source(name="fine", cost="measured")], amsbq.Uniform(0, 1), budget=9, model="icm")
    it.tell(it.ask(), amsbq.Observation(1.5, variance=0.04, cost=2.5, gradient=[0.3]))
    [made] = it.evaluations
    assert (made.value, made.variance, made.cost, made.gradient.tolist()) == (1.5, 0.04, 2.5, [0.3])
    query = it.ask()
    for more in ({"variance": 0.1}, {"cost": 1.0}, {"gradient": [1.0]}):
        with pytest.raises(TypeError, match="an Observation includes variance, cost and gradient"):
            it.tell(query, amsbq.Observation(1.0), **more)
    with pytest.raises(ValueError, match="measured: give it"):
        it.tell(query, amsbq.Observation(1.0))
    with pytest.raises(ValueError, match=r"must be finite.*call fail\(query, reason\)"):
        it.tell(query, amsbq.Observation(float("nan"), cost=1.0))
    assert len(it.evaluations) == 1


def test_measured_costs_are_learned():
    truth = [lambda x: 2.0 + x[0], lambda x: 0.02 * (1 + x[0])]
    it = Integrator([Source(cost="measured"), Source(cost="measured")], UNIT, budget=20, model=fixed())
    first = it.ask()
    assert first.cost == 0
    with pytest.raises(ValueError, match="source 0 is measured: give it"):
        it.tell(first, 0.0)
    it.tell(first, 0.0, cost=truth[0](first.x))
    while (query := it.ask()) is not None and len(it.evaluations) < 40:
        it.tell(query, 0.0, cost=truth[query.source](query.x))
    x = np.array([0.5])
    for source in range(2):
        np.testing.assert_allclose(it.ledger.costs.expected(source, x), truth[source](x), rtol=0.15)


def test_of_unknown_cost_there_is_one_at_a_time():
    it = Integrator([Source(cost="measured"), Source(cost="measured")], UNIT, budget=1.0)
    queries = it.ask(30)
    assert sorted(q.source for q in queries) == [0, 1]
    it.tell(queries[0], 1.0, cost=0.4)
    following = it.ask()
    assert following.source == 0  # of the other one nothing is known yet
    it.tell(queries[1], 1.0, cost=0.01)
    shared = it.ask()
    assert (shared.source, shared.x) == (1, following.x)  # the initial design goes on
    fixed_model = Integrator([Source(cost="measured"), Source()], UNIT, budget=4, model=fixed())
    with pytest.raises(ValueError, match="the cost of source 0 is not known yet"):
        fixed_model.forecast(5)


def test_queries_may_travel():
    it = Integrator(sources(), UNIT, budget=8)
    query = it.ask()
    it.tell(pickle.loads(pickle.dumps(query)), 1.0)
    assert it.evaluations[0].id == query.id


@pytest.mark.parametrize("at", ["costs", "hyperparameters"])
def test_what_was_paid_for_is_kept_if_learning_from_it_is_interrupted(monkeypatch, at):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    it = Integrator([Source(cost="measured")], UNIT, budget=4, model="icm")
    it.tell(it.ask(), 2.0, cost=0.25)
    query = it.ask()
    with monkeypatch.context() as patch:
        if at == "costs":
            patch.setattr(it.ledger.costs, "paid", interrupted)
        else:
            patch.setattr(channel, "learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            it.tell(query, 1.0, cost=0.5)
    assert (it.pending, it.spent, len(it.evaluations), len(it.learner)) == ([], 0.75, 2, 2)
    last = it.evaluations[-1]
    assert (last.id, last.value, last.cost, last.status) == (query.id, 1.0, 0.5, "ok")
    assert math.isnan(last.mean)
    assert math.isnan(last.std)
    it.tell(it.ask(), 1.5, cost=0.5)  # the run goes on
    assert (it.evaluations[-1].mean, it.evaluations[-1].std) == (it.estimate().mean, it.estimate().std)


def test_evaluations_are_complete_when_they_are_appended_and_never_replaced():
    class AppendOnly(list):
        def append(self, evaluation):
            assert not math.isnan(evaluation.mean + evaluation.std)
            super().append(evaluation)

        def __setitem__(self, *arguments):
            raise AssertionError("an evaluation was replaced")

    it = Integrator(sources(), UNIT, budget=4, model="icm")
    it.evaluations = AppendOnly()
    assert len(run(it).evaluations) > 5


@pytest.mark.parametrize("model", ["icm", "auto", "fixed"])
def test_there_is_one_answer_at_all_times(model):
    """Between two refits too, where hyperparameters are not learned again."""
    it = Integrator([Source(noise=1e-4)], UNIT, budget=100, model=fixed(L=1, noise=1e-4) if model == "fixed" else model)
    for x in np.linspace(0.01, 0.99, 23):
        it.observe(0, x, FINE([x]))
    assert math.isnan(it.evaluations[-1].std)
    for n in range(24, 30):
        query = it.ask()
        it.tell(query, FINE(query.x))
        last, estimate, result = it.evaluations[-1], it.estimate(), result_of(it, "budget")
        assert (last.mean, last.std) == (estimate.mean, estimate.std) == (result.mean, result.std)
        assert len(it.learner) == n
    assert schedule.scheduled_refit(29) == it.learner.refitted_at == 27  # so that 28 and 29 are between two refits


def test_estimates_do_not_learn_anything_again(monkeypatch):
    it = Integrator([Source(noise=1e-4)], UNIT, budget=100, model="icm")
    for x in np.linspace(0.01, 0.99, 28):
        it.observe(0, x, FINE([x]))
    query = it.ask()
    it.tell(query, FINE(query.x))
    refits, learn = [], channel.learn
    monkeypatch.setattr(channel, "learn", lambda *arguments: refits.append(arguments) or learn(*arguments))
    it.estimate()
    assert stopping.tolerance(absolute=1e9)(it) == "tolerance"
    assert not refits


def test_warnings_of_the_last_refit_come_with_the_estimate():
    it = Integrator([Source()], UNIT, model="icm", initial=[])
    it.observe(0, 0.3, 1.0)
    it.observe(0, 0.3, 2.0)
    for _ in range(2):
        with pytest.warns(UserWarning, match="different values at the same input"):
            it.estimate()


def test_without_a_value_of_the_primary_source_evaluations_and_the_model_agree_too():
    it = Integrator(sources(), UNIT, budget=5, model="icm", initial=[(1, 0.2), (1, 0.7)])
    run(it, most=2)
    guess = it.learner.posterior.estimate
    assert (it.evaluations[-1].mean, it.evaluations[-1].std) == (guess.mean, guess.std)
    assert stopping.tolerance(absolute=1e9)(it) is None  # nothing is known of what is wanted


def test_many_observations_are_copied_once(monkeypatch):
    copies = []
    it = Integrator(sources(), UNIT, budget=10)
    monkeypatch.setattr(learner, "read_only", lambda array: copies.append(1) or array)
    for x in np.linspace(0, 1, 1000):
        it.observe(1, x, COARSE([x]))
    assert len(it.learner.data.y) == len(it.evaluations) == 1000
    assert len(copies) == 5  # sources, locations, values, variances and gradients
    assert it.learner.data.X[:3, 0].tolist() == np.linspace(0, 1, 1000)[:3].tolist()


def test_predictions_are_means_and_variances():
    it = run(Integrator(sources(), UNIT, budget=4, model=fixed()))
    X = np.linspace(0, 1, 7)
    ok = [e for e in it.evaluations if e.status == "ok"]
    s, x, y = ([getattr(e, name) for e in ok] for name in ("source", "x", "value"))
    for source in (0, 1):
        expected = fixed().condition(s, np.array(x), y).predict(source, X[:, None])
        np.testing.assert_allclose(it.predict(source, X), expected, rtol=1e-6, atol=1e-9)
        np.testing.assert_array_equal(result_of(it, "budget").predict(source, X), it.predict(source, X))
    with pytest.raises(ValueError, match="nothing to predict from"):
        Integrator(sources(), UNIT, budget=4).predict(0, X)
    with pytest.raises(ValueError, match="there is no source 2"):
        it.predict(2, X)


def test_a_generator_draws_the_seed():
    drawn = [Integrator(sources(), UNIT, rng=generator).problem.seed for generator in [np.random.default_rng(3)] * 2]
    assert drawn == np.random.default_rng(3).integers(2**31, size=2).tolist()
    assert (Integrator(sources(), UNIT, rng=7).problem.seed, Integrator(sources(), UNIT).problem.seed) == (7, 0)
    with pytest.raises(ValueError, match="either seed or rng"):
        Integrator(sources(), UNIT, seed=0, rng=7)
    with pytest.raises(TypeError, match="rng must be a whole number"):
        Integrator(sources(), UNIT, rng="dice")


def test_an_error_in_a_cost_function_is_an_error_of_the_run():
    calls = []

    def price(x):
        calls.append(x)
        if len(calls) > 200:
            raise RuntimeError("no price")
        return 1.0

    it = Integrator([Source(cost=price, name="fine"), Source(cost=0.1)], UNIT, budget=50, model=fixed())
    with pytest.raises(ValueError, match=r"cost of fine at x = .* raised RuntimeError: no price") as caught:
        run(it)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_few_samples_are_evaluated_once():
    few = amsbq.Empirical([[0.2], [0.9]], [99, 1])
    it = Integrator([Source()], few, budget=10, model="icm")
    assert sorted(q.x[0] for q in it.ask(5)) == [0.2, 0.9]
    it = run(Integrator([Source()], amsbq.Empirical([[0.2]]), budget=5, model="icm"), [FINE])
    assert (len(it.evaluations), it.stopped) == (1, "exhausted")


@pytest.mark.parametrize("scale", [1e160, 1e300, 1e-300])
def test_any_scale_of_outputs(scale):
    plain, scaled = (
        run(Integrator([Source()], UNIT, budget=5, model="icm"), [lambda x, a=a: a * FINE(x)]) for a in (1.0, scale)
    )
    np.testing.assert_allclose(scaled.estimate().mean / scale, plain.estimate().mean, rtol=1e-3)
    np.testing.assert_allclose(scaled.estimate().std / scale, plain.estimate().std, rtol=1e-2)


def test_one_huge_value_does_not_end_a_run():
    it = Integrator([Source()], UNIT, budget=10, model="icm")
    for value in (1.0, 2.0, 1e160, 1.5):
        it.tell(it.ask(), value)
    assert np.isfinite(it.estimate().mean)


def test_vbq_has_no_use_for_other_sources():
    with pytest.raises(ValueError, match="uses source 0 only"):
        Integrator(sources(), UNIT, budget=5, model="vbq", initial=[(1, 0.3)])
    it = run(Integrator(sources(), UNIT, budget=5, model="vbq"), most=2)
    with pytest.raises(ValueError, match="uses source 0 only"):
        it.forecast(5, sources=[1])


def test_forecast_with_fixed_hyperparameters_comes_true():
    it = run(Integrator(sources(), UNIT, budget=8, model=fixed()), most=4)
    forecast = it.forecast(8)
    assert forecast.exact
    assert forecast[0] == pytest.approx((it.spent, it.estimate().std))
    run(it)
    assert forecast[-1][0] == pytest.approx(it.spent)
    np.testing.assert_allclose(forecast[-1][1], it.estimate().std, rtol=0.05)
    stds = [std for _, std in forecast]
    assert all(b <= 1.01 * a for a, b in itertools.pairwise(stds))  # jitter comes when it is needed


def test_forecast_before_anything_was_asked():
    it = Integrator(sources(), UNIT, budget=6, model=fixed())
    forecast = it.forecast(6)
    run(it)
    np.testing.assert_allclose(forecast[-1][1], it.estimate().std, rtol=0.05)
    with pytest.raises(ValueError, match="nothing is known yet"):
        Integrator(sources(), UNIT, budget=6).forecast(6)


def test_forecast_without_a_source_says_what_it_is_worth():
    it = run(Integrator(sources(1.0, 0.02), UNIT, budget=8, model=fixed()), most=4)
    with_both, alone = it.forecast(4), it.forecast(4, sources=[0])
    assert with_both[-1][1] < alone[-1][1]


def test_forecast_with_learned_hyperparameters_says_that_it_is_an_estimate():
    it = run(Integrator(sources(), UNIT, budget=3), most=6)
    forecast = it.forecast(3)
    assert not forecast.exact
    assert "estimate" in str(forecast)
    assert forecast[0] == pytest.approx((it.spent, it.estimate().std))
    assert all(0 < std < math.inf for _, std in forecast)


def test_a_perfect_step_is_taken_whatever_it_costs():
    gp = amsbq.MultiSourceGP([amsbq.Term([[1, 0.999], [0.999, 1]], amsbq.Constant())], UNIT)
    it = Integrator([Source(cost=999.0), Source(cost=1e-3)], UNIT, budget=1000, model=gp, initial=[])
    assert it.ask().source == 0


@pytest.mark.parametrize("kind", ["mi", "ivr"])
def test_known_points_are_never_asked_again(kind):
    it = run(Integrator(sources(), UNIT, budget=6, model=fixed(), acquisition=kind))
    asked = [(e.source, e.x[0]) for e in it.evaluations]
    assert len(set(asked)) == len(asked)


def test_integral_precision_gets_stuck_where_the_secondary_source_is_cheapest():
    """As in the paper's second experiment: a cost with a minimum."""

    def cost(x):
        return 0.02 + 0.3 / (1 + np.exp(40 * (x[0] - 0.3))) + 0.3 / (1 + np.exp(-40 * (x[0] - 0.7)))

    with pytest.warns(UserWarning, match="stuck where evaluations are cheap"):
        it = Integrator([Source(), Source(cost=cost)], UNIT, budget=20, model=fixed(), acquisition="ip")
    run(it, most=30)
    grid = np.linspace(0, 1, 1001)
    cheapest = grid[np.argmin([cost([x]) for x in grid])]
    later = it.evaluations[-10:]
    assert all(e.source == 1 for e in later)
    np.testing.assert_allclose([e.x[0] for e in later], cheapest, atol=0.01)


def test_negative_variance_warns_too():
    with pytest.warns(UserWarning, match="prefers expensive evaluations"):
        Integrator(sources(), UNIT, budget=20, model=fixed(), acquisition="nv")


def test_nothing_is_left_to_learn():
    gp = amsbq.MultiSourceGP([amsbq.Term(np.ones((2, 2)), amsbq.Constant())], UNIT)
    it = run(Integrator(sources(), UNIT, budget=100, model=gp, initial=[]))
    assert it.stopped == "exhausted"
    assert len(it.evaluations) == 1


def test_stop_rules():
    it = run(Integrator(sources(), UNIT, budget=100, model=fixed()), most=8)
    low, high = it.estimate().interval(0.95)
    half, mean = (high - low) / 2, abs(it.estimate().mean)
    assert stopping.tolerance(absolute=1.01 * half)(it) == "tolerance"
    assert stopping.tolerance(absolute=0.99 * half)(it) is None
    assert stopping.tolerance(relative=1.01 * half / mean)(it) == "tolerance"
    assert stopping.tolerance(relative=0.99 * half / mean)(it) is None
    assert stopping.evaluations(8)(it) == "evaluations"
    assert stopping.evaluations(9)(it) is None
    assert stopping.rate_below(2 * it.rate)(it) == "rate"
    assert stopping.rate_below(0.5 * it.rate)(it) is None
    assert stopping.tolerance(absolute=1e9)(Integrator(sources(), UNIT, budget=100)) is None


@pytest.mark.parametrize(
    ("told", "stops_after"),
    [
        ([(0, 3.0), (0, 0.9), (1, 0.9), (1, 0.9), (0, 0.8), (1, 0.8), (1, 0.8)], 6),  # five, two of the primary source
        ([(0, 3.0), (1, 0.9), (1, 0.9), (1, 0.9), (0, 0.8), (1, 0.8), (0, 0.7)], 7),  # one of it is not enough
        ([(0, 3.0), (0, 0.9), (0, 0.9), (0, 0.8), (1, 0.8)], 4),  # three of it are
        ([(0, 0.9), (0, 0.9), (0, 1.1), (0, 0.8), (0, 0.8), (0, 0.8)], 6),  # from the latest wide interval on
    ],
)
def test_a_tolerance_must_be_met_for_some_evaluations(told, stops_after):
    it = Integrator(sources(), UNIT, budget=100)
    for n, (source, std) in enumerate(told, start=1):
        it.evaluations.append(amsbq.Evaluation(n, source, np.array([0.1 * n]), 0.0, 0.0, 1.0, "ok", "", 0.0, std))
        assert rule_module._stayed_below(it, np.array(1.0)) == (n >= stops_after)


def test_noise_that_is_known_counts():
    quiet, noisy = (Integrator([FINE], UNIT, budget=8, model=fixed(L=1)) for _ in range(2))
    for it, variance in ((quiet, 0.0), (noisy, 0.1)):
        while (query := it.ask()) is not None:
            it.tell(query, FINE(query.x), variance=variance)
    assert noisy.estimate().std > 2 * quiet.estimate().std
    assert noisy.evaluations[0].variance == 0.1


def test_unbounded_inputs():
    it = run(Integrator(sources(), [stats.norm(0.5, 0.3)], budget=4))
    expected = stats.norm(0.5, 0.3).expect(lambda x: FINE([x]))
    low, high = it.estimate().interval(0.99)
    assert low < expected < high


def test_samples_as_a_measure():
    samples = np.random.default_rng(0).beta(2, 3, size=150)
    it = run(Integrator(sources(), amsbq.Empirical(samples), budget=4))
    low, high = it.estimate().interval(0.99)
    assert low < np.mean(FINE([samples])) < high


BAD = {
    "no sources": (lambda: Integrator([], UNIT), TypeError, "list of functions or Sources"),
    "a number as a source": (lambda: Integrator([FINE, 3], UNIT), TypeError, r"sources\[1\] must be a function"),
    "a string for sources": (lambda: Integrator("fine", UNIT), TypeError, "list of functions or Sources"),
    "negative budget": (lambda: Integrator(sources(), UNIT, budget=-1), ValueError, "budget must be positive"),
    "NaN budget": (lambda: Integrator(sources(), UNIT, budget=math.nan), ValueError, "budget must be finite"),
    "unknown model": (lambda: Integrator(sources(), UNIT, model="gp"), ValueError, "model must be one of"),
    "unknown acquisition": (lambda: Integrator(sources(), UNIT, acquisition="ei"), ValueError, "acquisition must be"),
    "seed": (lambda: Integrator(sources(), UNIT, seed=-1), ValueError, "seed must not be negative"),
    "measure": (lambda: Integrator(sources(), "uniform"), TypeError, "cannot make a measure"),
    "another number of sources": (
        lambda: Integrator(sources(), UNIT, model=fixed(L=3)),
        ValueError,
        "for 3 sources, but there are 2",
    ),
    "another measure": (
        lambda: Integrator(sources(), amsbq.Uniform(0, 2), model=fixed()),
        ValueError,
        "the model is for Uniform",
    ),
    "other samples": (
        lambda: Integrator(sources(), amsbq.Empirical([[0.1], [0.2]]), model=fixed(amsbq.Empirical([[0.1], [0.3]]))),
        ValueError,
        "the model is for Empirical",
    ),
    "function": (lambda: Source(3), TypeError, "function must be callable"),
    "noise": (lambda: Source(FINE, noise=-1), ValueError, "noise must not be negative"),
    "noise in words": (lambda: Source(FINE, noise="some"), ValueError, "'learn', got 'some'"),
    "timeout": (lambda: Source(FINE, timeout=0), ValueError, "timeout must be positive"),
    "valid": (lambda: Source(FINE, valid=(1, 0)), ValueError, "low below high"),
    "valid that is no pair": (lambda: Source(FINE, valid=3), TypeError, r"pair \(low, high\)"),
    "name": (lambda: Source(FINE, name=3), TypeError, "name must be a string"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call()


def test_bad_answers():
    it, other = (Integrator(sources(), UNIT, budget=8, seed=seed) for seed in range(2))
    query = it.ask()
    for value in (math.nan, math.inf, "much", [1.0, 2.0], None):
        with pytest.raises((TypeError, ValueError), match=r"value must .*fail\(query, reason\)"):
            it.tell(query, value)
    with pytest.raises(ValueError, match="variance must not be negative"):
        it.tell(query, 1.0, variance=-1)
    with pytest.raises(ValueError, match="cost must be positive"):
        it.tell(query, 1.0, cost=0)
    with pytest.raises(ValueError, match="is not pending"):
        it.tell(other.ask(), 1.0)
    with pytest.raises(TypeError, match="one that ask"):
        it.tell(0, 1.0)
    it.tell(query, 1.0)
    with pytest.raises(ValueError, match="is not pending"):
        it.tell(query, 1.0)
    with pytest.raises(ValueError, match="is not pending"):
        it.fail(query, "late")
    with pytest.raises(ValueError, match="outside the support"):
        it.observe(0, 3.0, 1.0)
    with pytest.raises(ValueError, match="there is no source 5"):
        it.observe(5, 0.3, 1.0)
    assert len(it.evaluations) == 1


@pytest.mark.filterwarnings("ignore:all .* observations of")
def test_a_source_that_is_flat_so_far_is_looked_at_everywhere():
    result = amsbq.integrate([lambda x: max(0.0, x[0] - 0.95)], UNIT, seed=0, budget=12)
    x = np.sort([e.x[0] for e in result.evaluations])
    assert x[0] < 0.15
    assert x[-1] > 0.85
    assert np.diff(x).max() < 0.25


@pytest.mark.filterwarnings("ignore:all .* observations of")
def test_the_forecast_for_a_constant_source_comes_true():
    it = Integrator([Source()], UNIT, seed=0)
    for _ in range(4):
        it.tell(it.ask(), 2.0)
    (_, foreseen) = it.forecast(8)[-1]
    for _ in range(4):
        it.tell(it.ask(), 2.0)
    assert 0.5 < it.estimate().std / foreseen < 2


def test_a_forecast_within_the_initial_design_starts_now_and_stays_within_its_budget():
    it = Integrator([Source(), Source(cost=0.5)], UNIT, seed=0, budget=10)
    it.tell(it.ask(), 0.3)
    ahead = it.forecast(2.5)
    assert ahead[0] == pytest.approx((it.spent, it.estimate().std))
    assert [cost for cost, _ in ahead] == pytest.approx([1.0, 1.5, 2.5])
    assert [choice.source for choice in ahead.choices] == [1, 0]
    assert [choice.source for choice in it.forecast(2.5, sources=[0]).choices] == [0]
    assert len(it.forecast(1.2)) == 1


def test_the_initial_design_has_different_locations():
    it = Integrator([Source(), Source(cost=0.1)], amsbq.Uniform([0, 0], 1), seed=0, budget=20)
    for value in (1.0, 1.1):
        it.observe(0, [0.3, 0.4], value, 0.01)
    asked = [(query.source, *query.x) for query in it.ask(3)]
    assert len(set(asked)) == 3
    assert (1, 0.3, 0.4) in asked
