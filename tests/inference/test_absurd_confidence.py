"""Error bars where observations say next to nothing: wide, and with a warning."""

import warnings

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.measures import empirical


def integrator(measure, model="auto", n_sources=1):
    sources = [amsbq.Source(None, cost=0.1**k) for k in range(n_sources)]
    return amsbq.Integrator(sources, measure, model=model)


@pytest.mark.parametrize(
    "distribution",
    [stats.gamma(0.01), stats.loguniform(1e-10, 1e10), stats.burr(0.3, 0.3)],
    ids=lambda d: d.dist.name,
)
def test_inputs_of_many_scales(distribution):
    """Next to all mass may be where the source is constant, and the rest makes the difference."""

    def source(x):
        return 0.3 + x[0] / (1 + x[0])

    t = distribution.ppf((np.arange(100_000) + 0.5) / 100_000)
    truth = np.mean(0.3 + t / (1 + t))
    with pytest.warns(UserWarning, match="input 0, .* spreads over many orders of magnitude"):
        result = amsbq.integrate(source, distribution, budget=6)
    assert abs(result.mean - truth) < 3 * result.std
    assert result.std < 1


def test_clusters_far_apart():
    """What varies inside of a cluster is a part of the error bar, although the next one is a thousand times as far."""
    edges = np.array([0, 1, 1000, 1001, 1_000_000, 1_000_010])
    distribution = stats.rv_histogram(([5, 0, 3, 0, 2], edges), density=False)
    truth = 0.3 + 0.5 * (1 - np.log(2)) + 0.3 * (1 - np.log(1002 / 1001)) + 0.2 * (1 - np.log1p(1e-5) / 10)
    result = amsbq.integrate(lambda x: 0.3 + x[0] / (1 + x[0]), distribution, budget=6)
    assert abs(result.mean - truth) < 3 * result.std
    assert result.std < 0.2


@pytest.mark.parametrize("model", ["icm", "vbq"])
@pytest.mark.parametrize(("n", "dim"), [(1, 1), (1, 3), (2, 5), (4, 5)])
def test_fewer_observations_than_inputs(model, n, dim):
    X = amsbq.Uniform(np.zeros(dim), 1).sobol(n, 1)
    y = 5 + np.sin(3 * X).sum(axis=1)
    estimates = []
    for unit in (1.0, 1e-3):
        it = integrator(amsbq.Uniform(np.zeros(dim), 1), model)
        for x, value in zip(X, y, strict=True):
            it.observe(0, x, unit * value)
        with pytest.warns(UserWarning, match=f"too few observations.*{n} of it, 0 of others, {dim} inputs"):
            estimates.append(it.estimate())
    size = np.std(y, ddof=1) if n > 1 else abs(y[0])
    assert estimates[0].std >= size
    np.testing.assert_allclose(estimates[1].std, 1e-3 * estimates[0].std, rtol=1e-9)
    np.testing.assert_allclose(estimates[0].mean, y.mean(), atol=size)


def test_one_observation_of_the_primary_source():
    """Those of another source tell how much both vary, but one value does not tell how they differ."""
    it, rng = integrator(amsbq.Uniform(0, 1), "icm", 2), np.random.default_rng(1)
    it.observe(0, [0.17], 5 + np.sin(0.5))
    values = [4 + np.sin(3 * x) for x in rng.uniform(size=8)]
    for x, value in zip(np.random.default_rng(1).uniform(size=8), values, strict=True):
        it.observe(1, [x], value)
    with pytest.warns(UserWarning, match="too few observations.*1 of it, 8 of others"):
        assert it.estimate().std > 0.9 * np.std(values)


@pytest.mark.parametrize(
    ("observations", "message"),
    [
        ([(0, 0.3, 1.0)], "how fine varies"),
        ([(1, 0.3, 1.0)], "unknown, because fine has no value"),
        ([(0, 0.3, 1.0), (0, 0.6, 1.0)], "observations of fine are equal"),
        ([(0, 0.3, 1.0), (0, 0.6, 2.0), (1, 0.5, 1.0), (1, 0.5, 2.0)], "coarse returned different values"),
    ],
)
def test_warnings_call_sources_by_their_names(observations, message):
    sources = [amsbq.Source(name="fine"), amsbq.Source(name="coarse", cost=0.1)]
    it = amsbq.Integrator(sources, amsbq.Uniform(0, 1), model="icm")
    for source, x, value in observations:
        it.observe(source, [x], value)
    with pytest.warns(UserWarning, match=message):
        it.estimate()


@pytest.mark.parametrize("model", ["icm", "vbq"])
def test_as_many_observations_as_inputs(model):
    it = integrator(amsbq.Uniform([0, 0], 1), model)
    for x in amsbq.Uniform([0, 0], 1).sobol(2, 0):
        it.observe(0, x, 5 + np.sin(3 * x).sum())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        it.estimate()


@pytest.mark.parametrize("model", ["auto", "icm", "lmc"])
def test_values_that_differ_by_rounding_are_one_value(model):
    it = integrator(amsbq.Uniform(0, 1), model)
    for i in range(6):
        it.observe(0, [0.1 + 0.15 * i], 0.3 if i % 2 else 0.1 + 0.2)
    with pytest.warns(UserWarning, match="all 6 observations of source 0 are equal"):
        estimate = it.estimate()
    assert estimate.std > 0.2 * 0.3 / 6  # the more of them are equal, the less others may differ
    np.testing.assert_allclose(estimate.mean, 0.3, rtol=1e-12)


def many_samples():
    rng = np.random.default_rng(0)
    return rng.normal(size=(2000, 2)) @ [[1.0, 0.5], [0.0, 0.7]]


def observed(measure, model):
    it = integrator(measure, model)
    for x in measure.samples[:12]:
        it.observe(0, x, np.sin(x).sum() + x[0] * x[1] / 5)
    return it


def test_the_mean_over_many_samples_is_that_over_all():
    """The witness is the average of the posterior mean of the source over all samples."""
    measure = amsbq.Empirical(many_samples())
    it = observed(measure, "icm")
    np.testing.assert_allclose(it.estimate().mean, it.predict(0, measure.samples)[0].mean(), rtol=1e-10)


def test_many_samples_take_little_work_and_hardly_change_the_error_bar(monkeypatch):
    counts = []
    original = amsbq.RBF.values_batch

    def counting(self, features, scales):
        counts.append(len(scales) * features.shape[1])
        return original(self, features, scales)

    monkeypatch.setattr(amsbq.RBF, "values_batch", counting)
    few = observed(amsbq.Empirical(many_samples()), "auto").estimate()
    assert sum(counts) < 3e7  # a double sum over all samples, for 64 lengthscales, has 1.3e8 terms
    monkeypatch.setattr(empirical, "MOST_LEARNING_SAMPLES", 2000)
    every = observed(amsbq.Empirical(many_samples()), "auto").estimate()
    np.testing.assert_allclose(few.mean, every.mean, rtol=1e-9)
    np.testing.assert_allclose(few.std, every.std, rtol=0.15)
