"""The log posterior of hyperparameters: its gradient, its units, and what its priors mean."""

from functools import partial

import numpy as np
import pytest
from scipy import integrate, stats

import amsbq
from amsbq.data import Data
from amsbq.hyper import ModelPrior, Parametrisation, TermPrior, icm, lmc
from tests.reference import central_difference


def data_of(measure, L, n, seed):
    rng = np.random.default_rng(seed)
    s = np.append(np.arange(L), rng.integers(L, size=n - L))
    X, y, extra = measure.sample(n, rng), rng.normal(size=n), 1e-3 * rng.uniform(size=n)
    return Data(s, X, y, extra)


MODELS = {
    "icm": icm(),
    "lmc": lmc(),
    "matern": lmc(nu=1.5),
    "three terms": ModelPrior((*lmc().terms, TermPrior(partial(amsbq.Matern, 0.5), 0.3, per_dimension=False)), 3.0),
}
MEASURES = {"uniform": amsbq.Uniform([0, -3], [1, 2]), "gamma": amsbq.as_measure([stats.gamma(5), stats.norm(1, 2)])}


@pytest.mark.parametrize("noise", [[1e-3, 1e-2, 0.02], ["learn", 1e-2, "learn"]], ids=["given", "learned"])
@pytest.mark.parametrize("L", [1, 2, 3])
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("model", MODELS)
def test_gradient_of_the_log_posterior(model, measure, L, noise):
    measure = MEASURES[measure]
    parametrisation = Parametrisation(MODELS[model], measure, data_of(measure, L, 9, 0), noise[:L])
    rng = np.random.default_rng(1)
    theta = parametrisation.start() + 0.3 * rng.normal(size=parametrisation.size)
    _, gradient = parametrisation.log_posterior_and_grad(theta)
    numeric = central_difference(lambda t: parametrisation.log_posterior_and_grad(t)[0], theta, 1e-3)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_units_do_not_matter(model):
    values = []
    for a, b, low, high in ((1, 0, [0, -3], [1, 2]), (-1e6, 3e5, [10, -3e4], [10.5, 2e4])):
        measure = amsbq.Uniform(low, high)
        rng = np.random.default_rng(2)
        s, U = np.append([0, 1], rng.integers(2, size=8)), rng.uniform(size=(10, 2))
        y = a * rng.normal(size=10) + b
        data = Data(s, measure.bounds[:, 0] + U * measure.width, y, np.full(10, 1e-4 * a**2))
        parametrisation = Parametrisation(MODELS[model], measure, data, ["learn", 1e-4 * a**2])
        theta = parametrisation.start() + 0.1 * np.random.default_rng(3).normal(size=parametrisation.size)
        value, gradient = parametrisation.log_posterior_and_grad(theta)
        values.append((value + 10 * np.log(abs(a)), gradient))
    np.testing.assert_allclose(values[1][0], values[0][0], rtol=1e-8)
    np.testing.assert_allclose(values[1][1], values[0][1], rtol=1e-6, atol=1e-7)


def test_prior_of_a_lengthscale():
    term = TermPrior(amsbq.RBF, 0.2, shape=4.0)
    density = stats.gamma(4.0, scale=0.2 / 3)  # its mode is (shape - 1) · scale
    for log_fraction in (-3.0, -1.0, 0.5):
        fraction = np.exp(log_fraction)
        expected = density.logpdf(fraction) + log_fraction
        np.testing.assert_allclose(term.log_density_of_lengthscales(np.array([log_fraction]))[0], expected)


def test_order_of_sources_does_not_matter():
    """Nor that of the data: θ is permuted with the sources."""
    measure, order = amsbq.Uniform(0, 1), [0, 2, 1]
    data = data_of(measure, 3, 12, 5)
    shuffled = np.random.default_rng(6).permutation(12)
    permuted = Data(np.argsort(order)[data.s][shuffled], data.X[shuffled], data.y[shuffled], data.noise_var[shuffled])
    plain, changed = (Parametrisation(lmc(), measure, d, [1e-3] * 3) for d in (data, permuted))
    theta = plain.start() + 0.3 * np.random.default_rng(7).normal(size=plain.size)
    moved = np.concatenate([part[order] if len(part) == 3 else part for part in np.split(theta, [3, 6, 7, 10, 13])])
    np.testing.assert_allclose(
        changed.log_posterior_and_grad(moved)[0], plain.log_posterior_and_grad(theta)[0], rtol=1e-9
    )


def test_width_is_equivariant_and_that_of_a_box():
    assert amsbq.Uniform([0, 1], [2, 5]).width.tolist() == [2, 4]
    for measure, distribution in (
        (amsbq.Gaussian(1, 4), stats.norm(1, 2)),
        (amsbq.Product([stats.gamma(3)]), stats.gamma(3)),
    ):
        np.testing.assert_allclose(measure.width, 2 * (distribution.ppf(0.75) - distribution.ppf(0.25)))
    samples = np.random.default_rng(0).normal(size=(20_001, 1))
    np.testing.assert_allclose(amsbq.Empirical(samples).width, amsbq.Gaussian(0, 1).width, rtol=0.05)
    weights = np.random.default_rng(1).integers(1, 4, size=50)
    repeated = np.repeat(samples[:50], weights, axis=0)
    np.testing.assert_allclose(amsbq.Empirical(samples[:50], weights).width, amsbq.Empirical(repeated).width, rtol=0.2)
    assert amsbq.Empirical([[1.0], [1.0]]).width.tolist() == [1]


def test_gamma_prior_is_normalised():
    term = TermPrior(amsbq.RBF, 0.5)
    total = integrate.quad(lambda t: np.exp(term.log_density_of_lengthscales(np.array([t]))[0]), -15, 5)[0]
    np.testing.assert_allclose(total, 1, rtol=1e-8)
