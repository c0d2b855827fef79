"""The sources of the experiments: integrals, costs and gradients against independent calculations."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from amsbq.experiments import forrester, gaussians, intuition, wiggly

GRID = np.linspace(0, 1, 1001)


def costs_on_grid(costs):
    return [np.array([cost(np.array([x])) for x in GRID]) for cost in costs]


def test_the_integrals_of_both_forrester_pairs():
    for module in (forrester, wiggly):
        exact, _ = integrate.quad(module.primary, 0, 1, epsabs=1e-13, epsrel=1e-13, limit=400)
        assert module.true_integral() == pytest.approx(exact, rel=1e-12)


def test_costs_of_the_demonstration_are_what_the_paper_says():
    c1, c2 = costs_on_grid(forrester.COSTS)
    for c in (c1, c2):
        assert c.min() > 0
        assert c.max() <= 1
    assert c2[0] == pytest.approx(c1[0], rel=0.01)
    assert c1[-1] / c2[-1] == pytest.approx(100, rel=0.01)
    assert np.all(np.diff(c2) < 0)


def test_costs_of_the_wigglified_pair_have_a_minimum():
    c1, c2 = costs_on_grid(wiggly.COSTS)
    for c in (c1, c2):
        assert c.min() > 0
        assert c.max() <= 1
        assert 0.2 < GRID[c.argmin()] < 0.8
    assert c2[0] == pytest.approx(c1[0], rel=0.05)
    assert wiggly.cheapest_location() == pytest.approx(GRID[c2.argmin()], abs=1e-3)


@pytest.mark.parametrize("cost", [*forrester.COSTS, *wiggly.COSTS])
def test_the_gradient_of_costs(cost):
    for x in (0.05, 0.3, 0.77):
        ahead, behind = cost(np.array([x + 1e-6])), cost(np.array([x - 1e-6]))
        assert cost.gradient(np.array([x]))[0] == pytest.approx((ahead - behind) / 2e-6, rel=1e-6, abs=1e-8)


def test_the_squared_correlation_of_figure_2_is_at_most_95_per_cent():
    assert intuition.squared_correlation(np.array([np.pi / 20])) == pytest.approx(0.95)


def test_gaussian_combinations_integrate_exactly():
    source = gaussians.combinations(1)[0]
    total = 0.0
    for mean, covariance, weight in zip(source.means, source.covariances, source.weights, strict=True):
        normal = stats.multivariate_normal(mean, covariance)
        box = [
            sign * normal.cdf([x, y])
            for (x, sx), (y, sy) in itertools.product([(3, 1), (-3, -1)], repeat=2)
            for sign in [sx * sy]
        ]
        total += weight * np.sqrt(2 * np.pi) * sum(box)  # the paper's normalisation is that of one dimension
    assert source.integral() == pytest.approx(total / 36, abs=1e-6)


def test_secondary_sources_move_away():
    first, second, third = gaussians.combinations(0)
    assert (second.means >= first.means).all()
    assert (third.means >= second.means).all()
    X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 2))
    near, far = (np.corrcoef(first.values(X), other.values(X))[0, 1] for other in (second, third))
    assert near > far > 0.5
