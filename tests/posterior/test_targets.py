"""Runs for the variance or for an exceedance probability choose evaluations for it."""

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.design.evaluations import Option
from amsbq.execution.reader import restored_integrator
from amsbq.execution.state import read_state
from amsbq.posterior.targets import targeted
from amsbq.problems.problem_file import ProblemError, load_problem

MEASURE = amsbq.Uniform([0, 0], [1, 1])


def f(x):
    return np.sin(5 * x[0]) + 2 * x[1] ** 2


def fixed(measure=MEASURE):
    trend = amsbq.Term(0.5, amsbq.Linear(0.4, 1.0))
    return amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF(0.4)), trend, amsbq.Term(50.0, amsbq.Constant())], measure)


def integrator(target, measure=MEASURE):
    it = amsbq.Integrator(f, measure, model=fixed(measure), target=target)
    for x in measure.sobol(8, 1):
        it.observe(0, x, f(x))
    return it


def weights_of(it):
    """The weights of the sum that stands for the target, at 512 points of the measure."""
    (deciding,) = it.learner.posterior.deciding(np.ones(1))
    return targeted(deciding, it.problem.targets[0]).models.points.weights


def posteriors_of(it):
    """The posterior of the only model."""
    return it.learner.posterior.components[0].latent.parts[0]


def reductions(it, X, weights):
    """By how much the variance of a weighted sum over 512 points shrinks with an observation at each of X."""
    points = it.measure.sobol(512, 0)
    both = np.concatenate([points, X])
    (covariance,) = posteriors_of(it).predict_joint(np.zeros(len(both), dtype=int), both)[1]
    with_new = weights @ covariance[:512, 512:]
    return with_new**2 / np.diag(covariance)[512:] / (weights @ covariance[:512, :512] @ weights)


def test_rates_are_by_the_reduction_of_the_variance_of_the_target():
    X = MEASURE.sobol(20, 3)
    it = integrator(amsbq.Exceedance(1.5))
    mean, variance = (moment[0] for moment in posteriors_of(it).predict(0, MEASURE.sobol(512, 0)))
    width = np.sqrt(variance + np.sort(np.abs(mean - 1.5))[16] ** 2)
    share = reductions(it, X, stats.norm(mean, width).pdf(1.5))
    np.testing.assert_allclose(it.rates(X)[0], -np.log1p(-share), rtol=1e-5)
    it = integrator("variance")
    np.testing.assert_allclose(it.rates(X)[0], -np.log1p(-reductions(it, X, weights_of(it))), rtol=1e-5)


def test_the_weights_of_a_variance_are_deviations_of_the_source_from_its_mean():
    it = amsbq.Integrator(f, MEASURE, model=fixed(), target="variance")
    for x in MEASURE.sobol(64, 1):
        it.observe(0, x, f(x))
    weights, values = weights_of(it), np.array([f(x) for x in MEASURE.sobol(512, 0)])
    deviations = values - values.mean()
    np.testing.assert_allclose(weights, deviations / np.abs(deviations).sum(), atol=1e-4)  # of 2e-3


@pytest.mark.parametrize("target", ["variance", amsbq.Exceedance(1.5), amsbq.Quantile(0.9)], ids=str)
def test_gradients_of_rates_are_exact(target):
    it = integrator(target)
    rate = it.policy.rate(it.learner.posterior)
    X, step = MEASURE.sobol(6, 4) * 0.8 + 0.1, 1e-5
    _, gradient = rate.value_and_grad(0, X)
    for d in range(2):
        shift = step * np.eye(2)[d]
        central = (rate.values([Option(0)], X + shift)[0] - rate.values([Option(0)], X - shift)[0]) / (2 * step)
        np.testing.assert_allclose(gradient[:, d], central, rtol=2e-5, atol=1e-7)


def test_targets_work_where_models_have_latent_coordinates_and_categories():
    copula = amsbq.GaussianCopula([stats.norm(), stats.uniform(0, 1)], [[1, 0.6], [0.6, 1]])
    categories = amsbq.Product([{"idle": 0.3, "full": 0.7}, stats.uniform(0, 1)])
    for measure in (copula, categories):
        X = measure.sobol(10, 3)
        it = integrator("variance", measure)
        share, rates = reductions(it, X, weights_of(it)), it.rates(X)[0]
        new = rates > 0  # at a location that was observed, nothing is left to learn
        assert new.sum() >= 5
        np.testing.assert_allclose(rates[new], -np.log1p(-share[new]), rtol=1e-4)
        assert it.ask() is not None


def test_rates_for_an_exceedance_are_highest_near_the_limit():
    X = MEASURE.sobol(400, 7)
    distance = np.abs([f(x) - 1.5 for x in X])
    preferred = {}
    for target in ("mean", amsbq.Exceedance(1.5)):
        it = amsbq.Integrator(f, MEASURE, model=fixed(), target=target)
        for x in MEASURE.sobol(32, 1):
            it.observe(0, x, f(x))
        rates = it.rates(X)[0]
        preferred[target] = rates[distance < 0.2].mean() / rates[distance > 1].mean()
    assert preferred[amsbq.Exceedance(1.5)] > 2 * preferred["mean"]


@pytest.mark.parametrize("p", [0.05, 0.5, 0.97])
def test_rates_for_a_quantile_are_those_for_the_probability_to_exceed_it(p):
    """With a process that is known well, the quantile is that of its values."""
    X, points = MEASURE.sobol(30, 7), MEASURE.sobol(512, 0)
    limit = float(np.quantile([f(x) for x in points], p))
    rates = []
    for target in (amsbq.Quantile(p), amsbq.Exceedance(limit)):
        it = amsbq.Integrator(f, MEASURE, model=fixed(), target=target)
        for x in MEASURE.sobol(64, 1):
            it.observe(0, x, f(x))
        rates.append(it.rates(X)[0])
    assert np.corrcoef(rates)[0, 1] > 0.95


@pytest.mark.slow
def test_a_quantile_below_a_bound():
    """Values that are known to be below a bound grow where the process falls."""
    sources, limits = [amsbq.Source(lambda x: -f(x))], {}
    for known in (None, (-np.inf, 10.0)):
        result = amsbq.integrate(sources, MEASURE, budget=14, target=amsbq.Quantile(0.1), output_range=known)
        limits[known] = result.distribution().quantile(0.1)
    truth = np.quantile([-f(x) for x in MEASURE.sobol(2**17, 0)], 0.1)
    for found in limits.values():
        assert abs(found.mean - truth) < 4 * found.std
        assert found.std < 0.3


def test_the_variance_is_learned_better_with_the_variance_as_target():
    truth = (0.5 - np.sin(10) / 20) - ((1 - np.cos(5)) / 5) ** 2 + 4 * (1 / 5 - 1 / 9)
    errors, stds = [], []
    for target in ("mean", "variance"):
        result = amsbq.integrate(f, MEASURE, budget=12, model=fixed(), target=target)
        variance = result.distribution().variance()
        errors.append(abs(variance.mean - truth))
        stds.append(variance.std)
    assert stds[1] < 0.7 * stds[0]
    assert errors[1] < 0.7 * errors[0] + 0.2 * stds[0]


def test_tolerances_are_those_of_the_target():
    result = amsbq.integrate(f, MEASURE, model=fixed(), target="variance", rel_tol=0.3, max_evaluations=40)
    assert result.stopped == "tolerance"
    low, high = result.distribution().variance().interval()
    assert 0.5 * (high - low) <= 0.3 * result.distribution().variance().mean


def test_batches_forecasts_and_journals_have_the_target(tmp_path):
    path = tmp_path / "run.jsonl"
    target = amsbq.Exceedance(1.5)
    result = amsbq.integrate(f, MEASURE, model=fixed(), budget=12, target=target, journal=path)
    restored = restored_integrator(read_state(path))
    assert restored.problem.targets == [target]
    X = MEASURE.sobol(5, 3)
    np.testing.assert_allclose(restored.rates(X), result.integrator.rates(X), rtol=1e-9)
    costs = result.integrator.forecast(14)
    assert costs[0][1] == pytest.approx(result.distribution().probability(above=1.5).std, rel=1e-6)
    assert costs[-1][1] < costs[0][1]
    assert len(integrator("variance").ask(3)) == 3
    with pytest.raises(amsbq.JournalError, match=r"target was .*'exceedance': 1.5.*now is 'mean'"):
        amsbq.integrate(f, MEASURE, model=fixed(), budget=12, journal=path)


def test_targets_in_problem_files(tmp_path):
    (tmp_path / "f.py").write_text("def f(x):\n    return x[0]\n")
    rest = '\nbudget = 3\ninputs.a = {{ low = 0, high = 1 }}\nsources = [{{ python = "f:f" }}]\n'.format()
    path = tmp_path / "problem.toml"
    for text, target in (
        ("'variance'", "variance"),
        ("{ exceedance = 0.5 }", amsbq.Exceedance(0.5)),
        ("{ quantile = 0.9 }", amsbq.Quantile(0.9)),
    ):
        path.write_text(f"target = {text}{rest}")
        assert load_problem(path).integrator().problem.targets == [target]
    for text in ("'median'", "{ exceedance = 'high' }", "{ limit = 1 }", "{ quantile = 95 }"):
        path.write_text(f"target = {text}{rest}")
        with pytest.raises(ProblemError, match="'mean', 'variance', "):
            load_problem(path)


def test_wrong_targets():
    with pytest.raises(
        ValueError,
        match=r"target must be 'mean', .*amsbq.Exceedance\(limit\) or amsbq.Quantile\(p\), got 'median'",
    ):
        amsbq.integrate(f, MEASURE, budget=3, target="median")
    with pytest.raises(ValueError, match="limit must be"):
        amsbq.Exceedance(np.nan)
    with pytest.raises(ValueError, match="p must be between 0 and 1, got 95"):
        amsbq.Quantile(95)


def test_a_constant_has_no_variance_to_learn():
    with pytest.warns(UserWarning, match="do not show how much it varies"):
        result = amsbq.integrate(lambda x: 2.0, MEASURE, budget=5, target="variance")
    assert len(result.evaluations) == 5
