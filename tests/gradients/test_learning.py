"""Hyperparameters learned from values and gradients."""

from functools import partial

import numpy as np
import pytest

import amsbq
from amsbq.gp.data import Data
from amsbq.gp.posterior_batch import PosteriorBatch
from amsbq.inference.log_posterior import LEARNING_JITTER, LogPosterior
from amsbq.inference.structures import chain, common_and_own, icm, lmc, star
from tests.inference.test_log_posterior import in_user_units, some_theta
from tests.reference import central_difference

PRIORS = {
    "auto": common_and_own,
    "icm": icm,
    "lmc matern-5/2": partial(lmc, nu=2.5),
    "lmc matern-3/2": partial(lmc, nu=1.5),
    "chain": chain,
    "star": star,
}
MEASURE = amsbq.Uniform([0, -3], [1, 2])


def data_of(n=7, seed=0):
    """Two sources, one value without a gradient, and one with half of it."""
    rng = np.random.default_rng(seed)
    X, s = MEASURE.sample(n, rng), np.arange(n) % 2
    a = 3 * X[:, 0] + X[:, 1]
    gradients = np.cos(a)[:, None] * [3.0, 1.0] + 0.1 * rng.normal(size=(n, 2))
    gradients[0], gradients[1, 1] = np.nan, np.nan
    return Data.checked(MEASURE, 2, s, X, np.sin(a) + 0.2 * s, 1e-3 * rng.uniform(size=n), gradients)


@pytest.mark.parametrize("noise", [[1e-3, 1e-2], ["learn", 1e-3]], ids=["given", "learned"])
@pytest.mark.parametrize("model", PRIORS)
def test_log_posterior_and_its_gradient(model, noise):
    """The value is that of the posterior which the Gram matrices of conditioning make, the gradient its differences."""
    data = data_of()
    density = LogPosterior(PRIORS[model](range(2), 2), MEASURE, data, noise)
    Theta = some_theta(density, 2)
    values, gradient = density.log_posterior_and_grad(Theta)
    prior = np.zeros(2)
    density.layout.add_log_prior(Theta, prior, np.zeros_like(Theta))
    for theta, value, row, of_prior in zip(Theta, values, gradient, prior, strict=True):
        batch = PosteriorBatch.condition(in_user_units(density, theta).batch, data, LEARNING_JITTER)
        in_units = np.log(density.units.spreads[data.s] * data.sites.per_width(MEASURE)).sum()
        np.testing.assert_allclose(value, batch.log_evidence()[0] + in_units + of_prior, rtol=1e-9)
        numeric = central_difference(lambda t: density.log_posterior(t[None])[0], theta, 1e-2)
        finer = central_difference(lambda t: density.log_posterior(t[None])[0], theta, 5e-3)
        np.testing.assert_allclose(row, finer + (finer - numeric) / 15, rtol=1e-8, atol=1e-8)
