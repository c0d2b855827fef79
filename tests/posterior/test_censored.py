"""Values that say that a process is at a bound or beyond: moments by expectation propagation."""

import numpy as np
import pytest
from scipy import integrate, stats

from amsbq.posterior.censored import half_lines


def moments_with(means, covs):
    """Return the means and covariances of Gaussians with their sites for u ≥ 0."""
    precisions, shifts = half_lines(means, covs)
    found = np.linalg.inv(np.linalg.inv(covs) + precisions[:, :, None] * np.eye(means.shape[1]))
    return np.einsum("kij,kj->ki", found, np.linalg.solve(covs, means[:, :, None])[:, :, 0] + shifts), found


@pytest.mark.parametrize("mean", [-6.0, -1.0, 0.0, 0.3, 4.0])
def test_the_site_of_one_value_gives_the_moments_of_a_truncated_gaussian(mean):
    found, variance = moments_with(np.array([[mean]]), np.array([[[0.49]]]))
    exact = stats.truncnorm(-mean / 0.7, np.inf, loc=mean, scale=0.7)
    assert found[0, 0] == pytest.approx(exact.mean(), rel=1e-5)  # a jitter of 1e-8 is part of it
    assert variance[0, 0, 0] == pytest.approx(exact.var(), rel=1e-5)


@pytest.mark.parametrize("correlation", [-0.6, 0.2, 0.9])
def test_the_sites_of_two_values_give_nearly_the_moments_of_a_truncated_gaussian(correlation):
    means, cov = np.array([0.4, -0.8]), np.array([[1.0, correlation], [correlation, 1.0]])
    density = stats.multivariate_normal(means, cov).pdf

    def moment(power):
        return integrate.dblquad(lambda v, u: density([u, v]) * u ** power[0] * v ** power[1], 0, 7, 0, 7)[0]

    mass = moment((0, 0))
    exact = np.array([moment((1, 0)), moment((0, 1))]) / mass
    spread = np.sqrt(np.array([moment((2, 0)), moment((0, 2))]) / mass - exact**2)
    found, covs = moments_with(means[None], cov[None])
    assert found[0] == pytest.approx(exact, abs=0.03 * spread.min())
    assert np.sqrt(np.diagonal(covs[0])) == pytest.approx(spread, rel=0.05)


def test_several_gaussians_have_their_sites_each():
    means, covs = np.array([[0.4, -0.8], [1.0, 0.0]]), np.array([[[1.0, 0.5], [0.5, 1.0]], [[2.0, -0.3], [-0.3, 1.0]]])
    together = half_lines(means, covs)
    for k in range(2):
        alone = half_lines(means[k : k + 1], covs[k : k + 1])
        for both, one in zip(together, alone, strict=True):
            assert both[k] == pytest.approx(one[0], rel=1e-6)
