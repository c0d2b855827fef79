"""What the page on inputs promises, beyond what the tests of measures and embeddings show."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

import amsbq
from amsbq.execution.integrator import Integrator

DISTRIBUTIONS = [
    stats.gamma(5, loc=1, scale=4),
    stats.beta(2, 5),
    stats.lognorm(0.5),
    stats.weibull_min(1.8),
    stats.t(3),
    stats.triang(0.3),
    stats.genextreme(-0.1),
    stats.skewnorm(4),
]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda d: d.dist.name)
def test_kernel_means_have_twelve_digits(distribution):
    """The witness integrates the kernel's slope times SciPy's distribution function, or SciPy's density, in pieces."""
    low, x, high = distribution.ppf([0.25, 0.5, 0.75])
    scale = high - low
    ends = np.clip(distribution.support(), x - 9 * scale, x + 9 * scale)
    inside = distribution.ppf([1e-12, 1e-8, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-4, 1 - 1e-8])
    cuts = np.unique(np.clip([*ends, *inside, *np.linspace(*ends, 15)], *ends))

    def kernel(t):
        return np.exp(-0.5 * ((t - x) / scale) ** 2)

    def total(function):
        return sum(integrate.quad(function, *piece, epsabs=1e-15)[0] for piece in itertools.pairwise(cuts))

    by_density = total(lambda t: kernel(t) * distribution.pdf(t))
    at_ends = np.diff(kernel(ends) * distribution.cdf(ends))[0]
    by_parts = at_ends + total(lambda t: (t - x) / scale**2 * kernel(t) * distribution.cdf(t))
    found = amsbq.kernel_mean(amsbq.RBF(scale), distribution, [x])[0]
    assert min(abs(found / by_density - 1), abs(found / by_parts - 1)) < 1e-12


def test_distributions_that_are_refused():
    """Their densities are too slow, are not densities on the line, or SciPy has no quantiles of them."""
    slow = [stats.levy_stable(1.8, -0.5), stats.studentized_range(3, 10), stats.kstwo(10)]
    for distribution in slow:
        with pytest.raises(ValueError, match="too slow"):
            amsbq.as_measure(distribution)
    with pytest.raises(ValueError, match=r"integrates to .*"):
        amsbq.as_measure(stats.vonmises(4))
    amsbq.as_measure(stats.vonmises_line(4))


def functions(x):
    return float(np.sum(x))


@pytest.mark.parametrize(
    "inputs",
    [
        stats.gamma(2),
        [(0, 1), stats.norm(5, 2)],
        amsbq.Empirical(np.random.default_rng(0).normal(size=(50, 2))),
    ],
    ids=["gamma", "product", "samples"],
)
def test_sources_are_evaluated_within_the_bounds(inputs):
    it = Integrator([amsbq.Source(name="fine"), amsbq.Source(name="coarse", cost=0.2)], inputs, budget=5, model="icm")
    while (query := it.ask()) is not None:
        assert (query.x >= it.measure.bounds[:, 0]).all()
        assert (query.x <= it.measure.bounds[:, 1]).all()
        it.tell(query, functions(query.x) + query.source)
    assert len(it.evaluations) > 6


def test_the_search_leaves_out_a_thousandth_at_each_end():
    for distribution in (stats.norm(40, 3), stats.gamma(2), stats.t(3)):
        measure = amsbq.as_measure(distribution)
        reach = measure.median[0] + measure.axes[0, 0] * measure.reach[0]
        np.testing.assert_allclose(distribution.cdf(reach), [0.001, 0.999], rtol=1e-6)
    box = amsbq.Uniform(2, 6)
    np.testing.assert_allclose(box.median[0] + box.axes[0, 0] * box.reach[0], [2, 6])
