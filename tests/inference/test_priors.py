"""Priors of single hyperparameters, against scipy.stats and differences."""

import numpy as np
import pytest
from scipy import integrate, stats

from amsbq.inference.priors import Gamma, LogGamma, Normal, StudentT
from tests.reference import central_difference

PRIORS = {
    "normal": (Normal(-4.0, 3.0), stats.norm(-4, 3)),
    "student": (StudentT(0.5, 0.7, 4.0), stats.t(4, loc=0.5, scale=0.7)),
    "positive": (Gamma(1.5, 5.0), stats.gamma(5, scale=0.375)),
    "gamma": (LogGamma(0.2, 3.0), stats.loggamma(3, loc=np.log(0.1))),  # mode = (shape - 1) · scale
}


@pytest.mark.parametrize("name", PRIORS)
def test_density_and_quantiles(name):
    prior, reference = PRIORS[name]
    t = reference.ppf(np.linspace(0.001, 0.999, 12)).reshape(4, 3)
    value, gradient = prior.log_density_and_grad(t)
    np.testing.assert_allclose(value, reference.logpdf(t).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(
        gradient[1],
        central_difference(lambda row: prior.log_density_and_grad(row)[0], t[1], 1e-4),
        rtol=1e-7,
        atol=1e-8,
    )
    u = np.array([1e-4, 0.1, 0.5, 0.99])
    np.testing.assert_allclose(prior.quantile(u), reference.ppf(u), rtol=1e-9)


@pytest.mark.parametrize("name", PRIORS)
def test_box_holds_all_of_it(name):
    prior, reference = PRIORS[name]
    low, high = prior.box
    assert reference.cdf(low) + reference.sf(high) < 1e-5
    assert low < prior.centre < high
    total = integrate.quad(
        lambda t: np.exp(prior.log_density_and_grad(np.array([t]))[0]), low, high, points=[prior.centre]
    )
    np.testing.assert_allclose(total[0], 1, rtol=1e-5)


def test_spread_of_a_lengthscale_is_its_standard_deviation():
    prior, reference = PRIORS["gamma"]
    np.testing.assert_allclose(prior.spread, reference.std(), rtol=1e-9)


def test_mode_of_a_lengthscale_is_where_it_should_be():
    prior = LogGamma(0.3, 3.0)
    scales = np.linspace(0.01, 2, 4001)[:, None]
    density = prior.log_density_and_grad(np.log(scales))[0] - np.log(scales[:, 0])
    np.testing.assert_allclose(scales[np.argmax(density), 0], 0.3, atol=1e-3)
