import time
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

import amsbq
from amsbq.gp.embeddings import embed
from amsbq.gp.trends import linear_kernel
from amsbq.measures.distributions import describe

LOGNORMAL_SD = float(np.sqrt(np.expm1(0.25) * np.exp(0.25)))
MEASURES = [
    amsbq.Uniform([0, -2], [1, 3]),
    amsbq.Gaussian([1, 2], [0.5, 4]),
    amsbq.Gaussian([1, 2], [[1, 0.9], [0.9, 2]]),
    amsbq.Product([stats.gamma(5, loc=1, scale=4), stats.beta(0.5, 0.5)]),
    amsbq.Empirical(np.random.default_rng(0).normal(size=(500, 2)), np.random.default_rng(1).uniform(size=500)),
]


@pytest.mark.parametrize("measure", MEASURES, ids=lambda m: type(m).__name__)
def test_samples(measure):
    X = measure.sample(4000, np.random.default_rng(0))
    assert X.shape == (4000, 2)
    assert measure.bounds.shape == (2, 2)
    assert measure.dim == 2
    assert (measure.bounds[:, 0] <= X).all()
    assert (measure.bounds[:, 1] >= X).all()
    np.testing.assert_array_equal(X, measure.sample(4000, np.random.default_rng(0)))
    # the kernel mean is the expectation of the kernel: Monte Carlo agrees within five standard errors
    kernel, x = amsbq.RBF([1.5, 0.7]), X[:1]
    draws = kernel(X, x)[:, 0]
    expected = amsbq.kernel_mean(kernel, measure, x)[0]
    assert abs(draws.mean() - expected) < 5 * draws.std() / np.sqrt(len(X))


def test_scalars_stand_for_all_dimensions():
    assert amsbq.Uniform(0, 1).dim == 1
    assert amsbq.Uniform(0, [1, 2]).bounds.tolist() == [[0, 1], [0, 2]]
    assert amsbq.Gaussian(1, [1, 2]).mean.tolist() == [1, 1]
    assert amsbq.Gaussian([1, 2], 3).cov.tolist() == [[3, 0], [0, 3]]
    assert amsbq.Gaussian([1, 2], [3, 4]).cov.tolist() == [[3, 0], [0, 4]]


def test_a_diagonal_matrix_is_independent_inputs():
    assert amsbq.Gaussian([0, 0], [[1, 0], [0, 2]]).marginals is not None
    assert amsbq.Gaussian([0, 0], [[1, 0.1], [0.1, 2]]).marginals is None


def test_as_measure():
    uniform = amsbq.Uniform(0, 1)
    assert amsbq.as_measure(uniform) is uniform
    assert amsbq.as_measure((0, 2)).bounds.tolist() == [[0, 2]]
    assert amsbq.as_measure([0, 2]).bounds.tolist() == [[0, 2]]
    assert amsbq.as_measure(np.array([[0, 2], [1, 3]])).bounds.tolist() == [[0, 2], [1, 3]]
    assert amsbq.as_measure(stats.gamma(2)).bounds.tolist() == [[0, np.inf]]
    assert amsbq.as_measure([stats.gamma(2), (1, 4), stats.norm()]).bounds.tolist() == [
        [0, np.inf],
        [1, 4],
        [-np.inf, np.inf],
    ]
    correlated = amsbq.as_measure(stats.multivariate_normal([1, 2], [[1, 0.5], [0.5, 2]]))
    assert isinstance(correlated, amsbq.Gaussian)
    assert correlated.cov.tolist() == [[1, 0.5], [0.5, 2]]


def test_as_measure_of_a_histogram():
    histogram = stats.rv_histogram(([1, 3], [0, 1, 2]))
    kernel = amsbq.RBF(0.5)

    def value(t):
        return kernel.profile(np.array((t - 0.4) / 0.5))

    expected = 0.25 * integrate.quad(value, 0, 1)[0] + 0.75 * integrate.quad(value, 1, 2)[0]
    np.testing.assert_allclose(amsbq.kernel_mean(kernel, histogram, [0.4]), expected, rtol=1e-10)


def test_a_histogram_of_many_bins():
    counts, edges = np.histogram(np.random.default_rng(0).normal(size=10_000), bins=300)
    kernel, x = amsbq.Matern(1.5, 0.5), [0.3]
    shares, parts = counts / counts.sum(), pairwise(edges)
    inside = [integrate.quad(lambda t: kernel([t], x)[0, 0], a, b)[0] / (b - a) for a, b in parts]
    np.testing.assert_allclose(
        amsbq.kernel_mean(kernel, stats.rv_histogram((counts, edges)), x), shares @ inside, rtol=1e-10
    )


@pytest.mark.skipif(not hasattr(stats, "Mixture"), reason="needs the random variables of scipy 1.15")
@pytest.mark.parametrize("share", [0.05, 1e-6])
def test_a_narrow_component_is_not_missed(share):
    wide, narrow = stats.Normal(mu=0.0, sigma=1.0), stats.Normal(mu=0.7, sigma=1e-3)
    measure = amsbq.as_measure(stats.Mixture([wide, narrow], weights=[1 - share, share]))
    kernel, x = amsbq.Matern(1.5, 0.5), [0.3, 0.7]
    parts = [amsbq.kernel_mean(kernel, amsbq.Gaussian(m, v), x) for m, v in ((0, 1), (0.7, 1e-6))]
    np.testing.assert_allclose(
        amsbq.kernel_mean(kernel, measure, x), (1 - share) * parts[0] + share * parts[1], rtol=1e-12
    )


@pytest.mark.parametrize("a", [0.05, 0.01])
def test_densities_so_singular_that_scipy_overflows(a):
    """beta(a, a) has half its mass at either end as a shrinks; its mean absolute difference to ½ is known."""
    long = 1e9
    slope = embed(amsbq.Matern(0.5, long), amsbq.Product([stats.beta(a, a)])).mean_grad_x(np.array([[0.5]]))[0, 0]
    assert abs(slope * long) < 1e-8  # as much on either side
    value = amsbq.kernel_mean(amsbq.RBF(1.0), stats.beta(a, a), [0.5])[0]
    u = np.exp(-np.linspace(0, 60, 200_001))  # E exp(-(t - ½)²/2), with t near an end as t = e^{-60..0}/2
    t = u / 2
    weights = t**a * (1 - t) ** (a - 1)
    expected = np.trapezoid(np.exp(-((t - 0.5) ** 2) / 2) * weights) / np.trapezoid(weights)
    np.testing.assert_allclose(value, expected, rtol=0.05)


@pytest.mark.skipif(not hasattr(stats, "make_distribution"), reason="needs the random variables of scipy 1.15")
def test_the_random_variables_of_newer_scipy():
    variable = stats.make_distribution(stats.gamma)(a=5.0)
    kernel, x = amsbq.Matern(1.5, 2.0), [3.0, 8.0]
    np.testing.assert_allclose(
        amsbq.kernel_mean(kernel, variable, x), amsbq.kernel_mean(kernel, stats.gamma(5), x), rtol=1e-10
    )
    assert amsbq.as_measure([variable, (0, 1)]).sample(3, 0).shape == (3, 2)


def test_densities_without_a_cdf_of_their_own():
    """A user's own density, from which scipy integrates everything else numerically."""

    class Bell(stats.rv_continuous):
        def _pdf(self, x):
            return 2 / np.pi / (1 + x**2) ** 2  # a Student-t with 3 degrees, rescaled

    bell = Bell(name="bell")()
    kernel, x = amsbq.Matern(2.5, 0.7), [0.0, 1.5]
    np.testing.assert_allclose(
        amsbq.kernel_mean(kernel, bell, x), amsbq.kernel_mean(kernel, stats.t(3, scale=1 / np.sqrt(3)), x), rtol=1e-10
    )


def test_weights_in_any_unit():
    samples = [[0.0], [1.0], [2.0]]
    for unit in (1e-300, 1.0, 1e300):
        np.testing.assert_allclose(amsbq.Empirical(samples, np.array([1, 2, 1]) * unit).weights, [0.25, 0.5, 0.25])


def test_repr_says_what_was_typed():
    measure = amsbq.as_measure([stats.gamma(5, loc=1, scale=4), (0, 1)])
    assert repr(measure) == "Product([gamma(5, loc=1, scale=4), uniform(loc=0, scale=1)])"
    assert eval(repr(amsbq.Uniform([0, 1], 2)), vars(amsbq)).bounds.tolist() == [[0, 2], [1, 2]]


@pytest.mark.parametrize("measure", MEASURES, ids=repr)
def test_draws_that_are_spread_out_are_draws(measure):
    """Whichever of them one takes, it is distributed as the measure; together they differ less than draws do."""
    rng = np.random.default_rng(4)
    sets = np.array([measure.spread_out(6, rng) for _ in range(800)])
    measure.check_points(sets[0])
    many = measure.sample(100_000, 0)
    for d in range(measure.dim):
        assert stats.ks_2samp(sets[:, 2, d], many[:, d], method="asymp").pvalue > 1e-3
        assert sets[:, :, d].mean(axis=1).std() < 0.3 * many[:, d].std() or isinstance(measure, amsbq.Empirical)


def test_draws_that_are_spread_out_have_one_in_each_part():
    X = amsbq.Uniform([0, 10], [1, 20]).spread_out(7, 3)
    np.testing.assert_array_equal(
        np.sort(np.floor(7 * (X - [0, 10]) / [1, 10]), axis=0), np.tile(np.arange(7), (2, 1)).T
    )
    np.testing.assert_array_equal(X, amsbq.Uniform([0, 10], [1, 20]).spread_out(7, 3))


@pytest.mark.parametrize("measure", MEASURES, ids=repr)
def test_sobol_points_cover_the_measure(measure):
    """Averages over them are closer to those over the measure than averages over as many draws."""
    many = measure.sample(200_000, 0)
    even = measure.sobol(1000, 1)
    assert even.shape == (1000, measure.dim)
    measure.check_points(even)
    np.testing.assert_array_equal(even, measure.sobol(1000, 1))
    for d in range(measure.dim):
        cdf = np.sort(many[:, d])
        ranks = np.searchsorted(cdf, np.sort(even[:, d]), side="right") / len(cdf)
        assert np.abs(ranks - (np.arange(1000) + 0.5) / 1000).max() < (
            0.01 if isinstance(measure, amsbq.Uniform) else 0.05
        )


def test_the_same_distribution_is_prepared_once():
    class Odd(stats.rv_continuous):
        def _pdf(self, x):
            return 2 * x

    one, two = (amsbq.Product([stats.gamma(5, loc=1, scale=4)]) for _ in range(2))
    assert one.marginals[0] is two.marginals[0]
    assert one.for_learning().marginals[0] is two.for_learning().marginals[0]
    other = amsbq.Product([stats.gamma(5, loc=1, scale=4.5)])
    assert other.marginals[0] is not one.marginals[0]
    mine, theirs = amsbq.Product([Odd(a=0, b=1, name="gamma")()]), amsbq.Product([stats.gamma(5)])
    assert mine.marginals[0] is not theirs.marginals[0]
    assert amsbq.Product([Odd(a=0, b=1, name="odd")()]).marginals[0] is not mine.marginals[0]


@pytest.mark.parametrize("distribution", [stats.gamma(0.01), stats.gamma(0.02), stats.beta(0.01, 1)], ids=describe)
def test_the_width_where_the_middle_half_is_next_to_a_point(distribution):
    """Sources vary on the scale of the rest, then: a few percent of the mass, but all of what changes."""
    measure = amsbq.Product([distribution])
    assert measure.width[0] > 0.02 * distribution.ppf(0.999)
    assert "orders of magnitude" in measure.cautions(measure.median[None])[0]
    shape, args = distribution.dist, distribution.args
    scaled = amsbq.Product([shape(*args, scale=1e6)])
    np.testing.assert_allclose(scaled.width, 1e6 * measure.width, rtol=1e-12)
    samples = distribution.ppf((np.arange(20_000) + 0.5) / 20_000)
    np.testing.assert_allclose(amsbq.Empirical(samples).width, measure.width, rtol=0.05)
    np.testing.assert_allclose(amsbq.Empirical(-3 * samples).width, 3 * measure.width, rtol=0.05)
    assert "orders of magnitude" in amsbq.Empirical(samples).cautions(samples[:1, None])[0]


@pytest.mark.parametrize(
    ("distribution", "cautious"),
    [
        *((d, False) for d in (stats.norm(), stats.gamma(5), stats.gamma(0.1), stats.t(2), stats.cauchy())),
        *((d, False) for d in (stats.lognorm(2), stats.beta(0.1, 0.1), stats.loguniform(1e-3, 1e3))),
        *((d, True) for d in (stats.lognorm(3), stats.levy())),
    ],
    ids=lambda value: describe(value) if hasattr(value, "dist") else str(value),
)
def test_the_width_is_twice_the_interquartile_range_of_all_others(distribution, cautious):
    """Also if tails are heavy: where they end says little of the scale on which sources vary."""
    measure = amsbq.Product([distribution])
    np.testing.assert_allclose(measure.width, 2 * (distribution.ppf(0.75) - distribution.ppf(0.25)), rtol=1e-14)
    assert len(measure.cautions(distribution.ppf(np.linspace(0.01, 0.99, 50))[:, None])) == cautious


@pytest.mark.parametrize(
    ("counts", "edges", "width"),
    [
        ([97, 0, 3], [0, 1, 1e4, 1e4 + 1], 2 * 0.5 / 0.97),
        ([5, 0, 5], [0, 1, 1e3, 1e3 + 1], 2.0 - 0.001 / 0.5),
        ([5, 0, 3, 0, 2], [0, 1, 1e3, 1e3 + 1, 1e6, 1e6 + 10], 12.0 - 10 * 0.001 / 0.2),
    ],
)
def test_the_width_of_clusters_far_apart_is_theirs(counts, edges, width):
    """The interquartile range may be the distance between two of them, on which sources do not vary inside of them.

    Their lengths are without the least dense thousandth.
    """
    for unit, shift in ((1.0, 0.0), (1e-3, 5.0)):
        histogram = stats.rv_histogram((counts, unit * np.array(edges)), density=False)
        measure = amsbq.Product([histogram(loc=shift)])
        np.testing.assert_allclose(measure.width, unit * width, rtol=1e-6)
    samples = histogram.ppf((np.arange(5000) + 0.5) / 5000)
    np.testing.assert_allclose(amsbq.Empirical(samples).width, unit * width, rtol=1e-2)


def test_outliers_do_not_change_the_width():
    samples = np.random.default_rng(0).normal(size=1000)
    with_outliers = np.append(samples[2:], [1e6, 2e6])
    np.testing.assert_allclose(amsbq.Empirical(with_outliers).width, amsbq.Empirical(samples).width, rtol=0.02)


@pytest.mark.parametrize(
    ("kind", "loc", "scale"), [("Product", 0.0, 1.0), ("Product", 3.0, 1e-6), ("Empirical", -1.0, 1e5)]
)
def test_mass_that_was_never_seen(kind, loc, scale):
    """Three percent are far from all of the usual values; one observation there is enough."""
    histogram = stats.rv_histogram(([97, 0, 3], [0, 1, 1e4, 1e4 + 1]), density=False)
    distribution = histogram(loc=loc, scale=scale)
    measure = amsbq.Product([distribution])
    if kind == "Empirical":
        measure = amsbq.Empirical(distribution.ppf((np.arange(1000) + 0.5) / 1000))
    usual = loc + scale * np.array([[0.1], [0.5], [0.9]])
    (sentence,) = measure.cautions(usual)
    assert sentence.startswith("3 % of input 0")
    assert measure.cautions(np.append(usual, [[loc + scale * 1e4]], axis=0)) == []


def test_a_distribution_that_is_a_point_to_rounding():
    with pytest.raises(ValueError, match=r"half of gamma\(0.0001\) is at a single point.*logarithm"):
        amsbq.Product([stats.gamma(1e-4)])


def test_samples_to_learn_by():
    """Evenly spread over all samples, in every input, and according to their weights; the width is that of all."""
    rng = np.random.default_rng(0)
    samples, weights = rng.normal(size=(3000, 3)) @ rng.normal(size=(3, 3)), rng.uniform(size=3000) ** 3
    measure = amsbq.Empirical(samples, weights)
    few = measure.for_learning()
    assert len(few.samples) == 128
    assert few.for_learning() is few
    assert few.whole is measure
    assert measure.whole is measure
    np.testing.assert_array_equal(few.width, measure.width)
    distances = []
    for all_values, some in zip(samples.T, few.samples.T, strict=True):
        order = np.argsort(all_values)
        ranks = np.interp(np.sort(some), all_values[order], np.cumsum(measure.weights[order]))
        distances.append(np.abs(ranks - (np.arange(128) + 0.5) / 128).max())
    assert max(distances) < 0.05  # draws are typically 0.06 off, in the worst of three inputs 0.08
    scaled = amsbq.Empirical(samples * [1e3, 1, 1e-3], weights).for_learning()
    np.testing.assert_array_equal(scaled.samples, few.samples * [1e3, 1, 1e-3])
    assert amsbq.Empirical(samples[:128]).for_learning().samples.shape == (128, 3)


class Slow(stats.rv_continuous):
    """A density that takes milliseconds for each of its values, like scipy's levy_stable."""

    def _pdf(self, x):
        end = time.thread_time() + 2e-3 * np.size(x)
        while time.thread_time() < end:
            pass
        return np.where((x > 0) & (x < 1), 2 * x, 0.0)

    def _cdf(self, x):
        return np.clip(x, 0, 1) ** 2


def test_a_density_that_is_too_slow_is_refused_before_it_is_tabulated():
    slow, start = Slow(a=0, b=1, name="slow")(), time.thread_time()
    with pytest.raises(ValueError, match=r"density of slow\(.*too slow.*Empirical.*rv_histogram"):
        amsbq.Product([slow])
    assert time.thread_time() - start < 5


@pytest.mark.parametrize(
    ("measure", "mean", "sd"),
    [
        (amsbq.Uniform([0, 2], [1, 8]), [0.5, 5.0], [12**-0.5, 3**0.5]),
        (amsbq.Gaussian([1, 2], [[4.0, 1.0], [1.0, 9.0]]), [1.0, 2.0], [2.0, 3.0]),
        (amsbq.Product([stats.gamma(3, scale=2), stats.lognorm(0.5)]), [6.0, np.exp(0.125)], [12**0.5, LOGNORMAL_SD]),
        (amsbq.Product([{1: 0.25, 5: 0.75}]), [4.0], [3**0.5]),
        (amsbq.Empirical([[0.0], [4.0]], weights=[1, 3]), [3.0], [3**0.5]),
        (
            amsbq.Mixture([amsbq.Uniform(0, 1), amsbq.Gaussian(2.0, 1.0)], [0.5, 0.5]),
            [1.25],
            [(13 / 24 + 9 / 16) ** 0.5],
        ),
        (amsbq.Independent([amsbq.Uniform(0, 6), amsbq.Gaussian(2.0, 1.0)]), [3.0, 2.0], [3**0.5, 1.0]),
        (amsbq.GaussianCopula([stats.gamma(3), stats.norm(5, 2)], [[1, 0.5], [0.5, 1]]), [0.0, 0.0], [1.0, 1.0]),
    ],
    ids=repr,
)
def test_moments_of_the_coordinates_of_models(measure, mean, sd):
    found = measure.latent.moments
    np.testing.assert_allclose(found[0], mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found[1], sd, rtol=1e-12)


def test_trends_are_in_inputs_with_a_variance_and_around_the_mean_of_all_samples():
    measure = amsbq.Product([stats.cauchy(), stats.t(1.5), {"a": 0.5, "b": 0.5}, stats.norm(), stats.gamma(0.001)])
    assert np.isfinite(linear_kernel(measure).scales).tolist() == [False, False, False, True, True]
    samples = np.random.default_rng(0).normal(3.0, size=(2000, 2))
    whole = amsbq.Empirical(samples)
    np.testing.assert_allclose(linear_kernel(whole.for_learning()).centre, samples.mean(axis=0))
