"""What findings say of sources, noise and wrong values is true of problems where the truth is known."""

from functools import cache

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.experiments.epidemic_models import sir
from amsbq.results.findings import diagnose
from amsbq.results.outliers import hidden_noise, outlier
from amsbq.results.refits import _expected_gradient, source_worths
from amsbq.results.result import result_of
from amsbq.results.summary import state


def fine(x):
    return float(np.sin(12 * x[0]) + x[0])


def superb(x):
    return fine(x) + 0.1 * float(x[0]) + 0.3


def mediocre(x):
    return float(np.sin(12 * x[0]) + np.cos(4 * x[0]))


def about(result, subject):
    return [finding for finding in result.diagnose() if finding.about == subject]


def said(it, subject, inputs=("rate",)):
    return diagnose(it, it.learner.posterior.estimate, inputs, [subject])


@cache
def finished(secondary, n_fine, n_cheap, cost=0.05):
    """A run whose money goes to so many evenly spread evaluations of either source."""
    sources = [amsbq.Source(fine, name="fine"), amsbq.Source(secondary, cost=cost, name="cheap")]
    X, X1 = (np.arange(n_fine) + 0.5) / n_fine, (np.arange(n_cheap) + 0.5) / n_cheap
    initial = [(0, [x]) for x in X] + [(1, [x]) for x in X1]
    return amsbq.integrate(sources, [(0, 1)], budget=n_fine + cost * n_cheap, initial=initial, progress=False)


def given(f, n, noise=0.0, secondary=None, secondary_noise=0.0, seed=0):
    """Observations at evenly spread points, with white noise in units of the spread of the values."""
    rng, measure = np.random.default_rng(seed), amsbq.Uniform(0, 1)
    sources = [amsbq.Source(name="fine")] + ([amsbq.Source(name="cheap", cost=0.1)] if secondary else [])
    it = amsbq.Integrator(sources, measure, initial=[])
    for source, (g, m, level) in enumerate([(f, n, noise), (secondary, 15, secondary_noise)][: len(sources)]):
        X = measure.sobol(m, rng=seed + source)
        y = np.array([g(x) for x in X])
        for x, value in zip(X, y + level * y.std() * rng.normal(size=m), strict=True):
            it.observe(source, x, float(value))
    return it


@pytest.mark.parametrize(
    ("secondary", "n", "pays"),
    [(superb, (5, 12, 0.1), True), (mediocre, (5, 12, 0.1), True), (superb, (6, 6, 1.0), False)],
)
def test_worth_is_what_the_same_money_buys_without_the_source(secondary, n, pays):
    result = finished(secondary, *n)
    [finding] = about(result, "worth")
    assert finding.text.startswith("cheap paid") == pays
    assert finding.level == ("good" if pays and n[0] > 5 else "note")
    assert ("may change with the next" in finding.advice) == (pays and n[0] <= 5)
    worth = source_worths(result.integrator)[1]
    assert worth.share == pytest.approx(n[1] * n[2] / result.spent)
    # as if somebody had spent the same money on the primary source alone
    alone = amsbq.integrate(fine, [(0, 1)], budget=result.spent, progress=False)
    assert (alone.std > result.std) == pays


@pytest.mark.parametrize(("secondary", "n"), [(superb, (6, 6, 1.0)), (mediocre, (8, 8, 0.15))])
def test_a_source_is_to_be_left_out_only_if_the_error_bar_would_be_half_as_wide_without_it(secondary, n):
    """Real error bars without a source are half to twice what was foreseen."""
    result = finished(secondary, *n)
    [finding] = about(result, "worth")
    assert finding.text.startswith("cheap did not pay")
    assert ("Omit it" in finding.advice) == (source_worths(result.integrator)[1].gain <= 0.5)


@pytest.mark.parametrize(("secondary", "n"), [(superb, (5, 12, 0.1)), (mediocre, (5, 12, 0.1))])
def test_the_error_bar_without_a_source_is_that_of_a_run_without_it(secondary, n):
    """A run goes on without the source, from the same evaluations of the primary one, with the true values."""
    result = finished(secondary, *n)
    other = amsbq.Integrator([amsbq.Source(name="fine")], [(0, 1)], initial=[])
    for e in result.evaluations[: n[0]]:
        other.observe(0, e.x, e.value)
    worth = source_worths(result.integrator)[1]
    assert worth.without.mean == pytest.approx(other.estimate().mean)
    assert worth.bought == int(n[1] * n[2])
    for _ in range(worth.bought):
        query = other.ask()
        other.tell(query, fine(query.x))
    assert 1 / 3 < worth.instead / other.estimate().std < 3
    [finding] = about(result, "worth")
    assert f"the standard deviation would be about {worth.instead:.2g}" in finding.text


def test_a_source_whose_values_are_all_the_same_is_called_so():
    it = given(fine, 6, secondary=lambda x: 1.5)
    result = result_of(it, "")
    [relation] = about(result, "relation")
    assert "all values of cheap are 1.5: they do not show how fine varies" in relation.text
    assert about(result, "worth") == []


def test_what_a_bulk_has_cost_is_counted():
    cheap = amsbq.Source(lambda X: np.sin(12 * X[:, 0]), cost=1e-5, vectorized=True, name="cheap")
    result = amsbq.integrate([fine, cheap], [(0, 1)], budget=6.5, progress=False)
    [bulk] = result.bulk
    worth, spent_on_fine = source_worths(result.integrator)[1], sum(e.cost for e in result.evaluations)
    assert worth.cost == pytest.approx(result.spent - spent_on_fine)
    assert about(result, "worth")[0].text.find("cost nothing") == -1
    assert state(result)["sources"]["cheap"]["told"] == bulk.n + len(result.evaluations)


def test_whether_a_source_paid_is_not_known_from_three_comparisons():
    result = result_of(given(fine, 3, secondary=superb), "")
    [finding] = about(result, "worth")
    assert "whether cheap paid off is not known yet" in finding.text
    [relation] = about(result, "relation")
    assert relation.text.endswith("not known yet.")


def test_the_worth_of_data_that_cost_nothing_is_what_they_add():
    it = given(fine, 7, secondary=superb)
    result = result_of(it, "")
    [finding] = about(result, "worth")
    alone = amsbq.estimate(0, it.learner.data.X[:7], it.learner.data.y[:7], [(0, 1)])
    assert source_worths(it)[1].instead == pytest.approx(alone.std, rel=0.25)  # draws were carried along in the run
    assert "it cost nothing" in finding.text


def smooth(x):
    return float(np.sin(4 * x[0]) + x[0])


def tilted(x):
    return smooth(x) + 0.2 * float(x[0])


def kink(x):
    return float(abs(x[0] - 0.37))


def rough(x):
    return kink(x) + 0.2 * float(np.sin(25 * x[0]))


@pytest.mark.parametrize("seed", [0, 1])
def test_noise_that_was_not_declared_is_found_in_either_source(seed):
    for it, source in [
        (given(smooth, 15, 0.1, seed=seed), 0),
        (given(smooth, 15, 0.1, tilted, seed=seed), 0),
        (given(smooth, 6, 0.0, tilted, 0.1, seed=seed), 1),
    ]:
        y = it.learner.data.of_source(source).y
        found = hidden_noise(it)
        assert list(found) == [source]
        assert 0.02 < found[source] / y.std() < 0.2  # it is 0.1
        [finding] = said(it, "noise")
        assert finding.level == "warning"
        assert "by the model only" in finding.text
        again = it.learner.data.of_source(source).X[-1]
        cost = it.ledger.costs.expected(source, again)
        where = f"evaluate {it.names[source]} again where it was evaluated before, at rate = {again[0]:.4g}"
        assert f"{where}, for a cost of {cost:.3g}: a different value means noise" in finding.advice


def test_the_same_value_again_means_that_there_is_no_noise_and_another_one_that_there_is():
    """Doing what the finding says settles it."""
    it = given(smooth, 15, 0.1)
    [again] = it.learner.data.X[-1:]
    assert len(said(it, "noise")) == 1
    same, other = (given(smooth, 15, 0.1) for _ in range(2))
    same.observe(0, again, it.learner.data.y[-1])
    assert said(same, "noise") == []
    other.observe(0, again, it.learner.data.y[-1] + 0.1)
    [finding] = said(other, "noise")
    assert f"different values at the same location, with a standard deviation of {0.1 / 2**0.5:.2g}" in finding.text
    assert "by the model" not in finding.text


@pytest.mark.parametrize("f", [smooth, kink, rough], ids=lambda f: f.__name__)
def test_no_noise_and_no_outlier_is_found_where_there_is_none(f):
    for it in (given(f, 15), given(f, 6, secondary=lambda x: f(x) + 0.1 * float(x[0]), seed=1)):
        assert hidden_noise(it) == {}
        assert outlier(it) is None


def test_the_equations_of_the_epidemic_have_neither_noise_nor_wrong_values():
    """They are deterministic, steep for small rates and flat for large ones; the locations are those of a run."""
    rates = [
        17.8,
        27.97,
        11.17,
        22.8,
        38.74,
        43.34,
        33.9,
        3.957,
        55.43,
        7.967,
        14.21,
        31.95,
        47.21,
        4.994,
        18.64,
        27.71,
    ]
    it = amsbq.Integrator([amsbq.Source(name="equations")], [stats.gamma(5, loc=1, scale=4)], initial=[])
    for rate in rates:
        it.observe(0, [rate], sir(rate)[2][-1])
    assert hidden_noise(it) == {}
    assert outlier(it) is None


def test_declared_noise_is_not_reported():
    it = amsbq.Integrator([amsbq.Source(noise="learn")], [(0, 1)], initial=[])
    for s, x, y, *_ in zip(*vars(given(smooth, 15, 0.1).learner.data).values(), strict=True):
        it.observe(s, x, y)
    assert hidden_noise(it) == {}


SPREAD = 0.4  #: of the values of `smooth`


@pytest.mark.parametrize("where", [(0, 3), (1, 9)])
def test_a_wrong_value_is_named_with_its_run(where):
    source, number = where
    sources = [amsbq.Source(smooth, name="fine"), amsbq.Source(tilted, cost=0.1, name="cheap")]
    it = amsbq.Integrator(sources, [(0, 1)], initial=[])
    it.fail(it.ask(), "a failure, so that evaluations and observations have different numbers")
    wrong = None
    for s, n in ((0, 9), (1, 15)):
        for i, x in enumerate(it.measure.sobol(n, rng=s)):
            value = sources[s].function(x)
            if (s, i) == (source, number):
                wrong, value = len(it.evaluations), value + 10 * SPREAD
            it.observe(s, x, value)
    assert outlier(it).evaluation == wrong
    [finding] = said(it, "outlier")
    e = it.evaluations[wrong]
    assert f"evaluation {wrong + 1} (given), {it.names[source]} at rate = {e.x[0]:.4g}" in finding.text
    assert abs(outlier(it).mean - (e.value - 10 * SPREAD)) < 3 * outlier(it).std + 1e-6


def test_the_worth_of_a_source_beside_one_with_gradients():
    def f(x):
        return float(np.sin(6 * x[0] + 4 * x[1]))

    def slopes(x):
        return np.cos(6 * x[0] + 4 * x[1]) * np.array([6.0, 4.0])

    fine = amsbq.Source(f, gradient=slopes, gradient_cost=0.05)
    coarse = amsbq.Source(lambda x: 2 * f(x) + 1 + 0.05 * x[0], cost=0.15)
    it = amsbq.integrate([fine, coarse], amsbq.Uniform([0, 0], 1), budget=8, seed=0).integrator
    choices = it.forecast(16).choices
    assert {choice.source for choice in choices} <= {0, 1}
    assert any(choice.gradient for choice in choices if choice.source == 0)
    assert not any(choice.gradient for choice in choices if choice.source == 1)
    x = np.array([0.3, 0.6])
    np.testing.assert_allclose(_expected_gradient(it, 0, x), slopes(x), rtol=0.1, atol=0.05)
    assert source_worths(it)[1].bought > 0  # which are rehearsed with their gradients


def test_no_gradient_is_expected_by_a_discrete_input():
    """Half of its values are the same: there is no step to take, nor a value between two."""
    measure = amsbq.as_measure([stats.uniform(0, 1), stats.binom(1, 0.05)])
    it = amsbq.Integrator([amsbq.Source()], measure, seed=0)
    for x in np.linspace(0, 1, 9):
        it.observe(0, [x, 0], float(np.sin(3 * x)))
    with np.errstate(all="raise"):
        slopes = _expected_gradient(it, 0, np.array([0.4, 0.0]))
    np.testing.assert_allclose(slopes, [3 * np.cos(1.2), np.nan], rtol=1e-2)


def test_large_values_of_a_skewed_function_are_no_outliers():
    X = stats.qmc.Sobol(2, seed=1).random(16)
    it = amsbq.Integrator([amsbq.Source(name="steep")], amsbq.Uniform([0, 0], 1), seed=0)
    for x in np.concatenate([X, [[0.99, 0.99]]]):
        it.observe(0, x, float(np.exp(5 * x[0] + 4 * x[1])))
    assert not it.learner.posterior.components[0].transform.affine
    assert outlier(it) is None
    it.observe(0, [0.52, 0.47], 1e6)  # ten thousand times what it should be
    found = outlier(it)
    assert found is not None
    assert it.evaluations[found.evaluation].value == 1e6
    assert "The answer includes it" in said(it, "outlier", ["a", "b"])[0].advice


def test_a_wrong_value_of_a_source_that_counts_little_is_found_beside_a_skewed_one():
    """Its values are far outside of the range that those of the primary source are taken to have."""
    measure = amsbq.Uniform([0, 0], 1)
    it = amsbq.Integrator([amsbq.Source(), amsbq.Source(cost=0.1)], measure, seed=0)
    for x in measure.sobol(22, 3):
        it.observe(0, x, float(np.exp(1.5 * np.sin(3 * x[0]) + 2 * x[1])))
    for i, x in enumerate(measure.sobol(14, 5)):
        it.observe(1, x, -500.0 if i == 6 else float(-50 + 5 * np.sin(7 * x[1]) * np.cos(9 * x[0])))
    assert not it.learner.posterior.components[0].transform.affine
    assert it.learner.posterior.secondary_weight < 0.5
    assert outlier(it).evaluation == 22 + 6


def test_evaluations_that_might_have_been_made_are_as_noisy_as_the_others():
    """With fixed hyperparameters, it does not matter whether variances are reported or declared."""
    terms = [amsbq.Term(np.array([[1.0, 0.8], [0.8, 1.0]]), amsbq.RBF(0.3))]
    worths = []
    for told, declared in ((0.04, 0.0), (0.0, 0.04)):
        gp = amsbq.MultiSourceGP(terms, amsbq.Uniform(0, 1), noise=[declared, 0.0])
        cheap = amsbq.Source(superb, cost=0.5)
        noisy = lambda x, told=told: amsbq.Observation(fine(x), variance=told)  # noqa: E731
        result = amsbq.integrate([noisy, cheap], amsbq.Uniform(0, 1), budget=6, model=gp, progress=False)
        worths.append(source_worths(result.integrator)[1])
    assert worths[0].bought == worths[1].bought > 0
    assert worths[0].instead == pytest.approx(worths[1].instead, rel=1e-6)
