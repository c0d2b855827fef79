"""Runs with gradients: what is bought, what is charged, journals, and sources of every kind."""

import numpy as np
import pytest

import amsbq
from amsbq.design.evaluations import Option
from amsbq.results import analysis, outliers, refits

BOX = amsbq.Uniform([0, 0], [1, 2])
TRUTH = (np.exp(1) - 1) * np.sin(2) / 2  # of the mean of exp(a) cos(b)


def f(x):
    return np.exp(x[0]) * np.cos(x[1])


def slope(x):
    return np.array([np.exp(x[0]) * np.cos(x[1]), -np.exp(x[0]) * np.sin(x[1])])


def both(x):
    return amsbq.Observation(f(x), gradient=slope(x))


def test_a_run_buys_gradients_where_they_are_worth_their_cost():
    result = amsbq.integrate(amsbq.Source(f, gradient=slope, gradient_cost=0.1), BOX, budget=6)
    bought = [e for e in result.evaluations if e.gradient is not None]
    assert len(bought) >= 2
    for e in result.evaluations:
        assert e.cost == pytest.approx(1.1 if e.gradient is not None else 1.0)
        if e.gradient is not None:
            np.testing.assert_array_equal(e.gradient, slope(e.x))
    assert result.spent <= 6
    plain = amsbq.integrate(amsbq.Source(f, gradient=slope, gradient_cost=50.0), BOX, budget=6)
    assert all(e.gradient is None for e in plain.evaluations)
    assert abs(result.mean - TRUTH) < 2 * result.std
    assert result.std < plain.std / 2


@pytest.mark.front_door
def test_gradients_that_come_with_each_value():
    declared = amsbq.integrate(amsbq.Source(both, gradient=True), BOX, budget=4)
    undeclared = amsbq.integrate(both, BOX, budget=4)
    for result in (declared, undeclared):
        assert all(e.gradient is not None and e.cost == 1.0 for e in result.evaluations)
        assert len(result.evaluations) == 4
        assert result.interval(0.999)[0] < TRUTH < result.interval(0.999)[1]


def test_a_cheap_source_with_gradients_beside_a_dear_one_without():
    sources = [f, amsbq.Source(lambda x: 0.9 * f(x) + 0.1, cost=0.1, gradient=lambda x: 0.9 * slope(x))]
    result = amsbq.integrate(sources, BOX, budget=4, model="lmc")
    assert abs(result.mean - TRUTH) < 0.05
    assert any(e.source == 1 and e.gradient is not None for e in result.evaluations)
    assert not any(e.source == 0 and e.gradient is not None for e in result.evaluations)
    assert result.spent <= 4


def test_batches_and_forecasts():
    it = amsbq.Integrator(amsbq.Source(f, gradient=slope, gradient_cost=0.2), BOX, budget=20)
    for x in BOX.sobol(3, 0):
        it.observe(0, x, f(x), gradient=slope(x))
    queries = it.ask(3)
    assert len({tuple(q.x) for q in queries}) == 3
    assert any(q.gradient for q in queries)
    assert all(q.cost == pytest.approx(1.2 if q.gradient else 1.0) for q in queries)
    ahead = it.forecast(9.0)
    assert [std for _, std in ahead] == sorted((std for _, std in ahead), reverse=True)
    for q in queries:
        it.tell(q, f(q.x), gradient=slope(q.x) if q.gradient else None)
    assert it.preview().source == 0


def test_the_rate_is_the_information_of_the_value_with_its_gradient():
    """For fixed hyperparameters: minus the log share of the variance that is left, per cost."""
    gp = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF([0.7, 1.1]))], BOX, noise=1e-6)
    it = amsbq.Integrator(amsbq.Source(f, gradient=slope, gradient_cost=0.3), BOX, model=gp, initial=[])
    X = BOX.sobol(3, 1)
    for x in X[:2]:
        it.observe(0, x, f(x), gradient=slope(x))
    data = [np.zeros(2, int), X[:2], [f(x) for x in X[:2]]]
    before = gp.condition(*data, gradients=[slope(x) for x in X[:2]])
    rate = it.policy.next_rate(it.learner.posterior)
    for option, gradient, cost in ((Option(0), None, 1.0), (Option(0, True), [slope(X[2])], 1.3)):
        after = before.extend([0], X[2:], [0.0], gradients=gradient)
        expected = -np.log(after.integral()[1] / before.integral()[1]) / cost
        np.testing.assert_allclose(rate.values([option], X[2:])[0, 0], expected, rtol=1e-6)
    choice = it.policy.best(rate, sources=[0])
    every = [rate.values([option], BOX.sobol(256, 3)).max() for option in (Option(0), Option(0, True))]
    assert choice.rate >= 0.98 * max(every)


def test_resumed_runs_go_on_as_if_they_had_not_ended(tmp_path):
    source = amsbq.Source(f, gradient=slope, gradient_cost=0.3)
    whole = amsbq.integrate(source, BOX, budget=6, journal=tmp_path / "whole.jsonl")
    amsbq.integrate(source, BOX, budget=6, max_evaluations=3, journal=tmp_path / "half.jsonl")
    resumed = amsbq.integrate(source, BOX, budget=6, journal=tmp_path / "half.jsonl")
    assert (resumed.mean, resumed.std) == (whole.mean, whole.std)
    for one, other in zip(whole.evaluations, resumed.evaluations, strict=True):
        np.testing.assert_array_equal(one.x, other.x)
        assert (one.gradient is None) == (other.gradient is None)
    assert any(e.gradient is not None for e in whole.evaluations)
    read = amsbq.read_result(tmp_path / "whole.jsonl")
    assert [None if e.gradient is None else e.gradient.tolist() for e in read.evaluations] == [
        None if e.gradient is None else e.gradient.tolist() for e in whole.evaluations
    ]


def test_measured_costs_learn_what_the_value_costs():
    it = amsbq.Integrator(amsbq.Source(f, cost="measured", gradient=slope), BOX, budget=100, initial=[(0, [0.5, 1.0])])
    q = it.ask()
    it.tell(q, f(q.x), cost=2.0, gradient=slope(q.x))  # a gradient costs as much as the value
    x = np.array([0.5, 1.0])
    assert it.ledger.costs.expected(0, x) == pytest.approx(1.0, rel=0.1)
    assert it.ledger.costs.expected(0, x, gradient=True) == pytest.approx(2.0, rel=0.1)


def broken(x):
    raise RuntimeError("the adjoint diverged")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (amsbq.Source(lambda x: amsbq.Observation(f(x), gradient=[np.inf, 1.0]), gradient=True), "must be 2 numbers"),
        (amsbq.Source(lambda x: amsbq.Observation(f(x), gradient=[1.0]), gradient=True), "must be 2 numbers"),
        (amsbq.Source(lambda x: amsbq.Observation(f(x), gradient="steep"), gradient=True), "must be 2 numbers"),
        (amsbq.Source(lambda x: amsbq.Observation(f(x), gradient=[np.nan] * 2), gradient=True), "none of its deriv"),
        (amsbq.Source(f, gradient=lambda x: [1.0, 2.0, 3.0], gradient_cost=0.01), "must be 2 numbers"),
        (amsbq.Source(f, gradient=broken, gradient_cost=0.01), "RuntimeError: the adjoint diverged"),
        (
            amsbq.Source(lambda x: amsbq.Observation(x[0], gradient=[1, 2]), gradient=True, inputs=["a"]),
            "must have 1 derivatives",
        ),
    ],
)
def test_wrong_gradients_do_not_lose_their_values(tmp_path, source, why):
    journal, inputs = tmp_path / "run.jsonl", {"a": (0, 1), "b": (0, 2)}
    with pytest.warns(UserWarning, match=f"its gradient is ignored: .*{why}.*. Its value counts"):
        result = amsbq.integrate(source, inputs, budget=3, journal=journal, progress=False)
    assert all(e.status == "ok" and e.gradient is None for e in result.evaluations)
    for each in (result, amsbq.read_result(journal)):
        assert why in each.evaluations[0].note
        [finding] = [finding for finding in each.diagnose() if finding.about == "gradients"]
        assert "without a usable gradient" in finding.text


def test_wrong_gradients_cannot_be_told():
    it = amsbq.Integrator(f, BOX, initial=[(0, [0.5, 1.0])])
    query = it.ask()
    with pytest.raises(ValueError, match=r"gradient must be 2 numbers.*got \[1.0\]$"):
        it.tell(query, 1.0, gradient=[1.0])
    assert it.pending == [query]


def test_wrong_sources_are_refused():
    with pytest.raises(TypeError, match="gradient must be callable"):
        amsbq.Source(f, gradient=3.0)
    with pytest.raises(ValueError, match="gradient_cost is the cost of calling gradient"):
        amsbq.Source(f, gradient_cost=1.0)


def test_gradients_of_several_outputs(tmp_path):
    """Those of all outputs are bought together, and each of them learns from its own."""

    def values(x):
        return [f(x), x[0] * x[1]]

    def slopes(x):
        return np.array([slope(x), x[::-1]])

    options = {"outputs": ["a", "b"], "budget": 5, "model": "icm"}
    source = amsbq.Source(values, gradient=slopes, gradient_cost=0.1)
    result = amsbq.integrate(source, BOX, journal=tmp_path / "run.jsonl", **options)
    bought = [e for e in result.evaluations if e.gradient is not None]
    assert bought
    for e in bought:
        assert e.cost == pytest.approx(1.1)
        np.testing.assert_array_equal(e.gradient, slopes(e.x))
    alone = amsbq.Integrator(amsbq.Source(f, gradient=slope), BOX, model="icm", initial=[])
    for e in result.evaluations:
        alone.observe(0, e.x, e.value[0], gradient=None if e.gradient is None else e.gradient[0])
    assert (alone.estimate().mean, alone.estimate().std) == (result.mean[0], result.std[0])
    assert (np.abs(result.mean - [TRUTH, 0.5]) < 4 * result.std).all()
    read = amsbq.read_result(tmp_path / "run.jsonl")
    np.testing.assert_array_equal(read.std, result.std)


def test_what_is_found_of_a_run_looks_at_values():
    """Residuals are those of values, and a wrong value is left out with its gradient."""
    it = amsbq.Integrator([amsbq.Source(both, gradient=True), amsbq.Source(f, cost=0.2)], BOX, model="lmc", initial=[])
    for i, x in enumerate(BOX.sobol(16, 0)):
        it.observe(0, x, f(x) + (20.0 if i == 4 else 0.0), gradient=slope(x))
    for x in BOX.sobol(4, 1):
        it.observe(1, x, f(x))
    left = analysis.residuals(it)
    assert sorted(left.evaluations.tolist()) == list(range(20))
    assert np.abs(left.z).argmax() == left.evaluations.tolist().index(4)
    assert outliers.outlier(it).evaluation == 4
    others = refits.without(it, 1)
    np.testing.assert_array_equal(others.learner.data.gradients(), it.learner.data.of_source(0).gradients())
