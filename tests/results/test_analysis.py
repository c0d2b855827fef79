"""The numbers behind findings: each is compared with a calculation of its own, or with the truth."""

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.gp.data import Sites
from amsbq.posterior.correlations import correlations_of
from amsbq.results import analysis
from amsbq.results.result import result_of
from amsbq.visualization import curves


def beam(x):
    return float(np.exp(0.8 * x[0]) * (1 + 0.5 * x[1]))


def coarse_beam(x):
    return beam(x) * 0.9 + 0.05 * float(x[0])


def unrelated(x):
    return float(np.sin(9 * x[0]) * np.cos(7 * x[1]))


def given(secondary, n, n_secondary, seed=0, measure=None):
    measure = measure or amsbq.Uniform([0, 0], 1)
    it = amsbq.Integrator([amsbq.Source(name="fine"), amsbq.Source(name="coarse", cost=0.1)], measure, initial=[])
    for source, (f, m) in enumerate([(beam, n), (secondary, n_secondary)]):
        for x in it.measure.sobol(m, rng=seed + source):
            it.observe(source, x, f(x))
    return it


@pytest.mark.parametrize(("secondary", "n"), [(coarse_beam, 5), (coarse_beam, 8), (unrelated, 8)])
def test_the_interval_of_a_correlation_holds_the_truth(secondary, n):
    it = given(secondary, n, 20)
    X = it.measure.sobol(4096, rng=7)
    truth = np.corrcoef([beam(x) for x in X], [secondary(x) for x in X])[0, 1]
    found = correlations_of(it.learner.whole())  # with the unrelated one, which is left out otherwise
    assert found.low[0, 1] - 0.01 < truth < found.high[0, 1] + 0.01
    assert found.known[0, 1] or secondary is unrelated
    np.testing.assert_allclose(found.mean, found.mean.T)


def test_a_correlation_is_not_known_from_three_values_or_none():
    for n in (1, 3):
        found = analysis.correlations(given(coarse_beam, n, 12))
        assert not found.known[0, 1]
        assert found.text(0, 1) == "not known yet"


def test_the_correlation_of_given_hyperparameters_is_that_of_their_draws():
    """With no data, correlations of draws from the prior; a single shared process has correlation one."""
    gp = amsbq.MultiSourceGP([amsbq.Term([[1.0, 2.0], [2.0, 4.0]], amsbq.RBF(0.1))], amsbq.Uniform(0, 1))
    it = amsbq.Integrator([amsbq.Source(), amsbq.Source()], amsbq.Uniform(0, 1), model=gp, initial=[])
    it.observe(0, [0.5], 1.0)
    found = analysis.correlations(it)
    assert found.low[0, 1] == pytest.approx(1, abs=1e-6)
    assert found.known.all()


def test_joint_predictions_are_those_of_dense_algebra():
    it = given(coarse_beam, 4, 6)
    latent = it.learner.posterior.components[0].latent
    (posteriors,) = latent.parts
    data, s, X = posteriors.data, np.array([0, 1, 1]), it.measure.sobol(3, rng=9)
    means, covariances = latent.predict_joint(s, X)
    new = Sites.values(s, X)
    for k in range(len(posteriors)):
        model = posteriors.models.select(slice(k, k + 1))
        G = model.cov(data.sites, data.sites)[0]
        G = G + np.diag(posteriors.jitter[k] * np.diagonal(G) + model.noise[0, data.s])
        K = model.cov(data.sites, new)[0]
        np.testing.assert_allclose(means[k], K.T @ np.linalg.solve(G, data.y), atol=1e-6)
        dense = model.cov(new, new)[0] - K.T @ np.linalg.solve(G, K)
        np.testing.assert_allclose(covariances[k], dense, atol=1e-6)


def test_residuals_know_the_evaluation_that_they_belong_to():
    it = given(coarse_beam, 5, 9)
    left = analysis.residuals(it)
    assert sorted(left.evaluations) == list(range(14))
    for source, x, i in zip(left.sources, left.X, left.evaluations, strict=True):
        assert it.evaluations[i].source == source
        np.testing.assert_array_equal(it.evaluations[i].x, x)


@pytest.mark.parametrize("measure", [amsbq.Uniform(0, 1), stats.norm(0, 1), stats.gamma(3)])
def test_what_is_far_from_evaluations(measure):
    measure = amsbq.as_measure(measure)
    distribution = measure.over([0])
    for low, high, expected in ((0.0, 1.0, (0.0, 0.05)), (0.0, 0.4, (0.3, 0.6))):
        it = amsbq.Integrator([amsbq.Source()], measure, initial=[])
        for p in low + (high - low) * (np.arange(6) + 0.5) / 6:
            x = distribution.from_cube(np.array([[p]]))[0]
            it.observe(0, x, float(x[0]))
        share, _ = analysis.uncovered(it)
        assert expected[0] <= share <= expected[1]
        assert (share > 0.1) == any(f.about == "extrapolation" for f in result_of(it, "").diagnose())


def test_main_effects_are_not_known_from_two_values_and_known_from_many():
    for n, known in ((2, False), (20, True)):
        it = given(coarse_beam, n, n)
        result = result_of(it, "")
        curve = curves.effect(result, 0, 0, curves.grid(result, 0))
        assert curve.known == known
    t = curve.t
    truth = np.exp(0.8 * t) * 1.25
    low, high = curve.band()
    assert np.mean((low - 0.01 < truth) & (truth < high + 0.01)) > 0.9
    flat = amsbq.Integrator([amsbq.Source()], amsbq.Uniform([0, 0], 1), initial=[])
    for x in flat.measure.sobol(20, rng=0):
        flat.observe(0, x, float(np.sin(4 * x[0])))
    result = result_of(flat, "")
    assert curves.effect(result, 0, 1, curves.grid(result, 1)).known  # it is known that there is none


def test_what_is_computed_once_is_computed_again_after_more_observations():
    it = given(coarse_beam, 5, 9)
    before = analysis.residuals(it)
    assert analysis.residuals(it) is before
    it.observe(0, [0.3, 0.3], beam([0.3, 0.3]))
    assert len(analysis.residuals(it).z) == len(before.z) + 1


def test_the_views_of_the_structures_average_to_the_answer():
    it = given(coarse_beam, 5, 12)
    seen, estimate = analysis.views(it), it.estimate()
    assert 1 <= len(seen) <= 4  # those that are not ruled out
    assert sum(view.weight for view in seen) == pytest.approx(1)
    assert sum(view.weight * view.mean for view in seen) == pytest.approx(estimate.mean)
    within = sum(view.weight * (view.std**2 + (view.mean - estimate.mean) ** 2) for view in seen)
    assert within < estimate.std**2  # the estimate has heavier tails


def test_the_outlook_looks_beyond_the_budget_and_leaves_the_run_alone():
    it = amsbq.Integrator(beam, amsbq.Uniform([0, 0], 1), budget=5)
    while (query := it.ask()) is not None:
        it.tell(query, beam(query.x))
    ahead = analysis.outlook(it)
    assert ahead[0] == (5.0, pytest.approx(it.estimate().std))
    assert ahead[-1][0] == pytest.approx(10.0)
    assert ahead[-1][1] < ahead[0][1]
    assert analysis.next_choice(it).source == 0
    assert (it.budget, it.stopped, it.ask()) == (5.0, "budget", None)


def test_residuals_of_repeats_below_a_bound_belong_to_their_evaluations():
    it = amsbq.Integrator([amsbq.Source(noise="learn")], amsbq.Uniform(0, 1), seed=0, output_range=(-np.inf, 10.0))
    for x in np.linspace(0.05, 0.95, 7):
        it.observe(0, [x], float(9 - 2 * np.exp(x)))
    it.observe(0, [0.5], 1.0)
    it.observe(0, [0.5], 5.7)
    found = analysis.residuals(it)
    assert it.evaluations[found.evaluations[np.abs(found.z).argmax()]].value == 1.0
