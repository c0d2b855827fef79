"""Many outputs, of which a few principal components are learned."""

import numpy as np
import pytest

import amsbq
from amsbq.gp.coregionalisation import ModelBatch
from amsbq.gp.data import Data
from amsbq.inference.particles import Particles
from amsbq.inference.preparation import StandardUnits
from amsbq.posterior.basis import SETTINGS, PrincipalBasis
from amsbq.posterior.channel import Alternative, Channel
from amsbq.posterior.latent import Process
from amsbq.posterior.posterior import Posterior
from amsbq.posterior.transforms import IDENTITY

SQUARE = amsbq.Uniform([0, 0], [1, 1])
T = np.linspace(0, 1, 24)
UNITS = 10.0 ** np.linspace(-12, 12, 24)  # of the outputs


def hidden(x):
    return np.array([np.exp(-x[0] - x[1]), np.sin(2 * x[0]) * x[1]])


TRUTH = np.array([(1 - np.exp(-1)) ** 2, (1 - np.cos(2)) / 4])  # integrals of the hidden functions
PATTERNS = np.stack([1 + T, np.cos(3 * T)])


def profile(x):
    """Two functions of the inputs, mixed in every output."""
    return hidden(x) @ PATTERNS + T**2


def coarse(x):
    return profile(x) + 0.1 * x[0] * (1 - T)


def in_units(function):
    return lambda x: UNITS * function(x)


def sources(change=lambda function: function):
    return [amsbq.Source(change(profile)), amsbq.Source(change(coarse), cost=0.1)]


@pytest.fixture(scope="module")
def result():
    return amsbq.integrate(sources(), SQUARE, budget=5, outputs=24, model="icm")


def data_of(n, M=24, n_secondary=5, function=profile):
    X = SQUARE.sobol(n + n_secondary, 1)
    s = np.r_[np.zeros(n, dtype=np.intp), np.ones(n_secondary, dtype=np.intp)]
    Y = np.array([function(x) if source == 0 else coarse(x) for source, x in zip(s, X, strict=True)])[:, :M]
    return Data(s, X, Y, np.zeros_like(Y))


def channel(means, stds, weights=(1.0,)):
    """A component whose integral is one of Gaussians with these means, standard deviations and weights."""
    pairs = zip(means, stds, strict=True)
    gps = [amsbq.MultiSourceGP([amsbq.Term(std**2, amsbq.Constant())], SQUARE, mean=mean) for mean, std in pairs]
    models, structures = ModelBatch.joined([gp.batch for gp in gps]), np.arange(len(gps))
    particles = Particles(models, np.array(weights), structures, StandardUnits.of_user(1), [0.0], [0])
    return Channel((Alternative(1.0, IDENTITY, Process.of(particles, Data.empty(2)), (0.0,), SQUARE),))


def posterior_of(basis, channels):
    """What is known of 24 outputs by components of which that is known."""
    return Posterior(SQUARE, tuple(channels), basis, (IDENTITY,) * 24, (True,) * 24, tuple(map(str, range(24))))


def test_every_output_has_its_integral():
    result = amsbq.integrate(sources(), SQUARE, budget=6, outputs=24)
    truth = TRUTH @ PATTERNS + T**2
    low, high = result.interval(0.99)
    assert ((low <= truth) & (truth <= high)).all()
    assert np.abs(result.mean - truth).max() < 0.01
    one = result["7"]
    assert one.mean == result.mean[7]
    assert one.predict(0, [[0.5, 0.5]])[0] == pytest.approx(profile([0.5, 0.5])[7], abs=0.02)
    mean, variance = result.predict(0, [[0.5, 0.5], [0.2, 0.9]])
    assert mean.shape == variance.shape == (2, 24)
    errors = mean - [profile([0.5, 0.5]), profile([0.2, 0.9])]
    assert (np.abs(errors) < 4 * np.sqrt(variance)).all()
    assert np.sqrt(np.mean(errors**2)) < 0.3 * np.std([profile(x) for x in SQUARE.sobol(64, 2)], axis=0).mean()


def test_units_of_the_outputs_do_not_matter(result):
    again = amsbq.integrate(sources(in_units), SQUARE, budget=5, outputs=24, model="icm")
    np.testing.assert_allclose(again.mean / UNITS, result.mean, rtol=1e-5)
    np.testing.assert_allclose(again.std / UNITS, result.std, rtol=1e-2)


def test_components_of_two_functions_are_two_and_fit_all_outputs():
    data = data_of(8, n_secondary=0)
    basis = PrincipalBasis.of(data.s, data.y)
    assert basis.directions.shape == (24, 2)
    np.testing.assert_allclose(basis.directions.T @ basis.directions, np.eye(2), atol=1e-12)
    scores, noise = basis.scores(data.y, data.noise_var)
    np.testing.assert_allclose(basis.centre + scores @ basis.loadings.T, data.y, atol=1e-12)
    np.testing.assert_allclose(scores.T @ scores / 8, np.eye(2), atol=1e-10)  # uncorrelated, of unit variance
    assert (noise == 0).all()
    assert basis.residual.max() < 1e-20


def test_noise_of_components_is_that_of_the_outputs():
    data = data_of(8, n_secondary=0)
    basis, variances = PrincipalBasis.of(data.s, data.y), np.geomspace(1e-4, 1e-2, 24)
    drawn = np.random.default_rng(0).normal(size=(20000, 24)) * np.sqrt(variances)
    scores, noise = basis.scores(data.y[0] + drawn, np.broadcast_to(variances, drawn.shape))
    np.testing.assert_allclose(scores.var(axis=0), noise[0], rtol=0.05)
    np.testing.assert_allclose(np.ravel(basis.noise([[level] for level in variances])), noise[0], rtol=1e-12)


def test_components_are_inferred_from_the_outputs_that_are_there():
    data = data_of(8, n_secondary=0)
    basis = PrincipalBasis.of(data.s, data.y)
    gaps = data.y.copy()
    gaps[:, ::3] = np.nan
    gaps[0, 2:] = np.nan  # one number for two components
    scores, noise = basis.scores(gaps, data.noise_var)
    whole, _ = basis.scores(data.y, data.noise_var)
    np.testing.assert_allclose(scores[1:], whole[1:], atol=2e-3)
    assert (noise[1:] < 1e-4).all()
    assert noise[0].max() > 0.05
    assert (np.abs(scores[0] - whole[0]) < 3 * np.sqrt(noise[0])).all()


def rough(x):
    """As many components as outputs: each is a sine of its own, and fast."""
    return np.sin(np.arange(1, 25) * (3 * x[0] + 2 * x[1]))


def test_what_the_components_leave_out_is_in_the_bars():
    data = data_of(40, n_secondary=0, function=rough)
    basis = PrincipalBasis.of(data.s, data.y)
    assert basis.directions.shape == (24, SETTINGS.most)
    bars = posterior_of(basis, [channel([0.0], [0.0])] * SETTINGS.most).estimate.std
    kept = (data.y - basis.centre) - basis.scores(data.y, data.noise_var)[0] @ basis.loadings.T
    np.testing.assert_allclose(bars, basis.scale * np.sqrt(basis.residual / 40), rtol=1e-12)
    assert np.sum(bars**2) > np.sum(np.mean(kept**2, axis=0) / 40)  # more than the basis leaves that was made of all


def test_integrals_are_sums_of_those_of_independent_components():
    data = data_of(8, n_secondary=0)
    basis = PrincipalBasis.of(data.s, data.y)
    parts = [channel([1.0, 2.0], [0.1, 0.3], [0.75, 0.25]), channel([-1.0], [0.5])]
    found = posterior_of(basis, parts).estimate
    alone = [part.alternatives[0].component.integral for part in parts]
    means, stds = np.array([[one.mean, one.std] for one in alone]).T
    np.testing.assert_allclose(means, [1.25, -1.0], rtol=1e-12)
    np.testing.assert_allclose(stds**2, [0.75 * 0.1**2 + 0.25 * 0.3**2 + 0.75 * 0.25, 0.5**2], rtol=1e-12)
    np.testing.assert_allclose(found.mean, basis.centre + basis.loadings @ means, rtol=1e-12)
    np.testing.assert_allclose(found.std**2, basis.loadings**2 @ stds**2, rtol=1e-2)


def test_a_killed_run_ends_where_the_unkilled_one_does(tmp_path, result):
    journal = tmp_path / "run.jsonl"
    kept = amsbq.integrate(sources(), SQUARE, budget=5, outputs=24, model="icm", journal=journal)
    assert (kept.mean == result.mean).all()
    lines = journal.read_text().splitlines(keepends=True)
    for after in (len(lines) // 3, 2 * len(lines) // 3):
        journal.write_text("".join(lines[:after]))
        again = amsbq.integrate(sources(), SQUARE, budget=5, outputs=24, model="icm", journal=journal)
        assert [tuple(e.x) for e in again.evaluations] == [tuple(e.x) for e in result.evaluations]
        np.testing.assert_array_equal(again.mean, result.mean)
        np.testing.assert_array_equal(again.std, result.std)


def test_a_forecast_has_all_outputs(result):
    ahead = result.integrator.forecast(7)
    np.testing.assert_allclose(ahead[0][1], result.std, rtol=1e-12)
    assert ahead[-1][1].shape == (24,)
    assert (ahead[-1][1] <= result.std * (1 + 1e-12)).all()
    assert (ahead[-1][1] < result.std).any()
    assert "8 of 24 outputs" in str(ahead)
    assert max(len(line) for line in str(ahead).splitlines()) < 100


def test_bars_shrink_with_those_of_the_components():
    data = data_of(8, n_secondary=0)
    basis = PrincipalBasis.of(data.s, data.y)
    stds, ratios = np.array([0.3, 0.1]), np.array([0.25, 1.0])
    now, then = (posterior_of(basis, [channel([0.0], [std]) for std in of]) for of in (stds, stds * np.sqrt(ratios)))
    for shrinkage in (basis.shrinkage(stds, ratios), now.shrinkage(ratios)):
        np.testing.assert_allclose(now.estimate.std * shrinkage, then.estimate.std, rtol=1e-12)


def test_outputs_that_are_constant_or_missing_are_known_or_unknown():
    def odd(x):
        values = profile(x)
        values[3], values[5] = 7.0, np.nan
        return values

    found = amsbq.integrate([odd, amsbq.Source(coarse, cost=0.1)], SQUARE, budget=4, outputs=24, model="icm")
    assert abs(found.mean[3] - 7.0) < 2 * found.std[3] < 0.3
    assert np.isnan(found.mean[5])
    assert np.isfinite(np.delete(found.mean, 5)).all()
