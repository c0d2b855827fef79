"""What locations let values tell: the share of a spread that they can show, near-replicates, and clustered designs."""

import numpy as np
import pytest
from scipy.integrate import dblquad

import amsbq
from amsbq.gp.data import Data
from amsbq.inference.locations import near_replicates, shares_of_spread
from amsbq.inference.log_posterior import LogPosterior
from amsbq.inference.preparation import StandardUnits
from amsbq.inference.priors import SHARED
from amsbq.inference.structures import chain


def data_at(*locations):
    """Return values of sources at their locations, (n, D) each."""
    X = np.concatenate([np.reshape(at, (len(at), -1)) for at in locations])
    s = np.repeat(np.arange(len(locations)), [len(at) for at in locations])
    return Data(s, X, np.sin(np.arange(len(X))), np.zeros(len(X)))


def correlation(u, v, dim):
    """Return the typical correlation of values at two locations, in units of the widths of the inputs."""
    squared = np.sum(np.square(np.subtract(u, v)))
    return np.mean([np.exp(-0.5 * squared / (fraction**2 * dim)) for fraction in SHARED])


def test_the_share_is_the_average_lack_of_correlation_beside_that_over_the_inputs():
    low, width = np.array([2.0, -1.0]), np.array([4.0, 0.5])
    measure, rng = amsbq.Uniform(low, low + width), np.random.default_rng(0)
    U = 0.3 + 0.2 * rng.uniform(size=(5, 2))
    pairs = [1 - correlation(U[i], U[j], 2) for i in range(5) for j in range(i)]

    def one(fraction):  # a mean over pairs of points of the unit interval, by quadrature
        return dblquad(lambda v, u: np.exp(-0.25 * (u - v) ** 2 / fraction**2), 0, 1, 0, 1, epsabs=1e-12)[0]

    expected = np.mean(pairs) / (1 - np.mean([one(fraction) ** 2 for fraction in SHARED]))
    found = shares_of_spread(data_at(low + width * U, measure.sobol(16, 0)), measure, 3)
    assert found == pytest.approx([expected, 1.0, 1.0], rel=1e-9)  # of the third source there is nothing


@pytest.mark.parametrize("width", [1e-2, 1e-4, 1e-7])
def test_the_unit_of_a_cluster_is_that_of_its_slope(width):
    """The spread over the inputs of a function with the slope that the values have, not that of the values."""
    t = np.array([0.0, 0.3, 0.4, 0.8, 1.0])
    data = Data(np.zeros(5, dtype=int), 0.4 + width * t[:, None], 3.0 * width * t, np.zeros(5))
    spread = StandardUnits.of(data, 1, True, measure=amsbq.Uniform(0, 1)).spreads[0]
    over_all = StandardUnits.of(data_at(np.linspace(0, 1, 9)), 1, True, measure=amsbq.Uniform(0, 1)).spreads[0]
    assert over_all == pytest.approx(np.std(np.sin(np.arange(9))), rel=1e-12)  # spread out: as it is
    assert 0.5 < spread / (3.0 / 12**0.5) < 2.0
    noisy = StandardUnits.of(data, 1, True, measure=amsbq.Uniform(0, 1), noise=[np.inf]).spreads[0]
    assert noisy == pytest.approx(np.std(data.y), rel=1e-12)  # all of it may be noise, which is the same everywhere


def test_near_replicates_are_told_from_designs():
    measure = amsbq.Uniform([0, 0], [1, 100])
    spread_out = measure.sobol(32, 1)
    assert len(set(near_replicates(spread_out, measure))) == 32
    cluster = spread_out[5] + [1e-4, 1e-2] * np.random.default_rng(1).normal(size=(4, 2))
    found = near_replicates(np.concatenate([spread_out, cluster]), measure)
    assert len(set(found)) == 32
    assert set(found[32:]) == {found[5]}
    line = np.linspace(0, 1, 200)[:, None]
    assert len(set(near_replicates(line, amsbq.Uniform(0, 1)))) == 200  # many values are near each other


def test_a_cluster_is_left_out_as_one_value():
    """Its mean, given all other observations, by the dense joint distribution of all."""
    X = np.array([0.1, 0.5, 0.5001, 0.50015, 0.9, 0.3, 0.7])[:, None]
    s = np.array([0, 0, 0, 0, 0, 1, 1])
    data = Data(s, X, np.cos(4 * X[:, 0]) + 0.1 * s, np.full(7, 1e-3))
    density = LogPosterior(chain(range(2), 1), amsbq.Uniform(0, 1), data, [0.0, 0.0])
    theta = density.layout.starts()[:2]
    found = density.primary_log_densities(theta)
    models, standard = density.models(theta), density.units.standardise(data)
    G = models.cov(standard.sites, standard.sites) + np.diag(standard.noise_var)
    groups = [[0], [1, 2, 3], [4]]
    for k in range(2):
        for j, group in enumerate(groups):
            rest = np.setdiff1d(np.arange(7), group)
            mean_of = np.full(len(group), 1 / len(group))
            gain = G[k][np.ix_(group, rest)] @ np.linalg.inv(G[k][np.ix_(rest, rest)])
            mean = mean_of @ gain @ standard.y[rest]
            covariance = G[k][np.ix_(group, group)] - gain @ G[k][np.ix_(rest, group)]
            variance = mean_of @ covariance @ mean_of
            away = mean_of @ standard.y[group] - mean
            expected = -0.5 * (np.log(2 * np.pi * variance) + away**2 / variance)
            assert found[k, j] == pytest.approx(expected, rel=1e-6, abs=1e-6)


FUNCTIONS = {
    "wave": (lambda x: np.sin(5 * x) + x**2, (1 - np.cos(5)) / 5 + 1 / 3, lambda x: 0.3 * np.cos(3 * x), 0.48),
    "decay": (lambda x: np.exp(-2 * x), (1 - np.exp(-2)) / 2, lambda x: 0.1 * x, 0.25),
    "large": (lambda x: 1e4 * (x + 0.2) ** 3 + 5e6, 1e4 * (1.2**4 - 0.2**4) / 4 + 5e6, lambda x: 500 * x, 5100.0),
}


@pytest.mark.filterwarnings("ignore:all values of source 0")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("width", [1e-2, 1e-3, 1e-6])
def test_clustered_values_do_not_make_the_answer_too_sure(name, width):
    """Five values within a small part of the inputs, alone or with ten of a good secondary source, spread evenly."""
    f, truth, difference, spread = FUNCTIONS[name]
    cluster, even = 0.4 + width * np.linspace(0, 1, 5), (np.arange(10) + 0.5) / 10
    alone = amsbq.estimate(np.zeros(5, dtype=int), cluster[:, None], f(cluster), (0, 1))
    y = np.r_[f(cluster), f(even) + difference(even)]
    both = amsbq.estimate(np.repeat([0, 1], [5, 10]), np.r_[cluster, even][:, None], y, (0, 1))
    for found in (alone, both):
        assert abs(found.mean - truth) < 5 * found.std
        assert found.std < 10 * spread


def test_clustered_values_are_warned_of():
    X = 0.4 + 1e-3 * np.linspace(0, 1, 5)
    with pytest.warns(UserWarning, match="from a small part of the inputs"):
        amsbq.estimate(np.zeros(5, dtype=int), X[:, None], np.exp(X), (0, 1))
