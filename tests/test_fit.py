"""Maximum a posteriori: it climbs, finds what is there, and survives data that make no sense."""

import numpy as np
import pytest

import amsbq
from amsbq.data import Data
from amsbq.fit import maximise
from amsbq.hyper import Parametrisation, icm, lmc

UNIT = amsbq.Uniform(0, 1)


def data(s, x, y):
    x = np.asarray(x, float).reshape(len(y), 1)
    return Data(np.asarray(s, np.intp), x, np.asarray(y, float), np.zeros(len(y)))


def test_it_is_a_stationary_point_and_no_worse_than_random_ones():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=14)
    s = np.repeat([0, 1], 7)
    parametrisation = Parametrisation(lmc(), UNIT, data(s, x, np.sin(9 * x) + s * x), [1e-4, 1e-4])
    theta, value = maximise(parametrisation)
    again, gradient = parametrisation.log_posterior_and_grad(theta)
    assert again == value
    assert np.abs(gradient).max() < 0.05
    for _ in range(20):
        other = theta + rng.normal(size=len(theta))
        assert parametrisation.log_posterior_and_grad(other)[0] < value


def test_it_finds_the_lengthscale_of_a_draw_from_the_prior():
    rng = np.random.default_rng(1)
    x = rng.uniform(size=80)
    for truth in (0.05, 0.2):
        K = amsbq.RBF(truth)(x, x) + 1e-8 * np.eye(80)
        y = np.linalg.cholesky(K) @ rng.normal(size=80)
        parametrisation = Parametrisation(icm(), UNIT, data(np.zeros(80), x, y), [1e-8])
        theta, _ = maximise(parametrisation)
        (term,) = parametrisation.gp(theta).terms
        np.testing.assert_allclose(term.kernel.lengthscales, truth, rtol=0.15)


def test_it_finds_the_correlation_of_sources():
    rng = np.random.default_rng(2)
    x = np.linspace(0, 1, 25)
    s, X = np.repeat([0, 1], 25), np.tile(x, 2)
    for related in (True, False):
        f = np.sin(9 * x + 6 * rng.uniform())
        g = 3 * f + 7 if related else np.cos(13 * x**2)
        parametrisation = Parametrisation(icm(), UNIT, data(s, X, np.append(f, g)), [0.0, 0.0])
        B = parametrisation.gp(maximise(parametrisation)[0]).terms[0].B
        correlation = B[0, 1] / np.sqrt(B[0, 0] * B[1, 1])
        assert (correlation > 0.95) if related else (abs(correlation) < 0.6)


ADVERSARIAL = {
    "constant": ([0, 0, 0, 1, 1, 1], np.linspace(0, 1, 6), np.ones(6)),
    "all zero": ([0, 0, 1], [0.1, 0.5, 0.9], np.zeros(3)),
    "two observations": ([0, 1], [0.3, 0.3], [1.0, 2.0]),
    "one observation": ([1], [0.3], [1.0]),
    "none": ([], [], []),
    "one source only": ([1] * 5, np.linspace(0, 1, 5), [1, 2, 1, 3, 1]),
    "outlier": ([0] * 6, np.linspace(0, 1, 6), [1, 2, 1, 2, 1, 1e6]),
    "contradiction": ([0, 0, 0, 1, 1], [0.5, 0.5, 0.2, 0.5, 0.5], [1, 2, 3, 1, 5]),
    "tiny": ([0, 0, 0, 1], [0.1, 0.5, 0.9, 0.2], [1e-200, 2e-200, 1e-200, 0]),
}


@pytest.mark.parametrize("model", [icm(), lmc(), lmc(nu=2.5)], ids=["icm", "lmc", "matern"])
@pytest.mark.parametrize("noise", [[0.0, 0.0], ["learn", "learn"]], ids=["exact", "noisy"])
@pytest.mark.parametrize("name", ADVERSARIAL)
def test_adversarial_data_have_a_finite_answer(name, model, noise):
    parametrisation = Parametrisation(model, UNIT, data(*ADVERSARIAL[name]), noise)
    theta, value = maximise(parametrisation)
    assert np.isfinite(value)
    assert np.isfinite(parametrisation.posterior(theta).integral()).all()


def test_a_model_that_the_measure_cannot_have_is_an_error():
    correlated = amsbq.Gaussian([0, 0], [[1, 0.5], [0.5, 1]])
    observations = Data(np.zeros(2, np.intp), np.zeros((2, 2)), np.array([1.0, 2.0]), np.zeros(2))
    with pytest.raises(ValueError, match="does not separate"):
        maximise(Parametrisation(lmc(nu=2.5), correlated, observations, [0.0]))
