"""Every embedding against Gauss rules that share nothing with the library, and every gradient against differences."""

import itertools
from functools import partial

import mpmath
import numpy as np
import pytest
from scipy import integrate, special, stats

import amsbq
from amsbq.gp.embeddings import EmbeddingBatch, embed
from tests.reference import LINES, central_difference, kernel_matrix, profile

PROFILES = [amsbq.RBF, *(lambda scale, nu=nu: amsbq.Matern(nu, scale) for nu in (0.5, 1.5, 2.5))]
PROFILE_NAMES = ["RBF", "Matern-1/2", "Matern-3/2", "Matern-5/2"]
QUANTILES = np.array([1e-4, 0.02, 0.3, 0.5, 0.8, 0.999])


def measures_of(name):
    """The line as each measure of the library that can express it."""
    line = LINES[name]
    yield amsbq.Product([line.scipy])
    if name == "uniform":
        yield amsbq.Uniform(line.low, line.high)
    if name == "normal":
        yield amsbq.Gaussian(3, 4)


@pytest.mark.parametrize("make", PROFILES, ids=PROFILE_NAMES)
@pytest.mark.parametrize("name", LINES)
def test_integrals_on_the_line(name, make):
    """Means, variances and gradients, with lengthscales from a fiftieth to fifty times the spread."""
    line = LINES[name]
    spread = float(line.scipy.ppf(0.75) - line.scipy.ppf(0.25))
    # a thousand widths from the origin, the rounding of x itself is seen next to a singularity
    rtol = 1e-9 if name == "shifted arcsine" else 5e-12
    x, measures = line.scipy.ppf(QUANTILES), list(measures_of(name))
    for scale in spread * np.array([0.02, 0.3, 0.4, 3.0, 10.0, 50.0]):
        kernel = make(scale)
        of_one = partial(profile, kernel)
        means = [line.mean(of_one, float(xi), scale) for xi in x]
        variance = line.double(of_one, scale) if scale > 0.1 * spread else None  # the rules need many more nodes there
        for measure in measures:
            np.testing.assert_allclose(amsbq.kernel_mean(kernel, measure, x), means, rtol=rtol, err_msg=f"ℓ = {scale}")
            if variance is not None:
                np.testing.assert_allclose(amsbq.kernel_variance(kernel, measure), variance, rtol=1e-11)
            check_gradients_on_a_line(embed(kernel, measure), line, x[1:-1], scale)


def check_gradients_on_a_line(of, line, x, scale):
    """Compare the gradients of an embedding with differences.

    Steps must be short compared with the kernel, and with the distance between x and the ends of the support.
    """
    step = 2e-3 * np.minimum(scale, np.minimum(x - line.scipy.ppf(0.001), line.scipy.ppf(0.9995) - x))
    in_x = [
        central_difference(lambda t: of.mean(t[:, None]), xi[None], float(h))[0, 0]
        for xi, h in zip(x, step, strict=True)
    ]
    spread = float(line.scipy.ppf(0.75) - line.scipy.ppf(0.25))
    atol = 1e-8 * of.mean(x[:, None]).max() / spread
    np.testing.assert_allclose(of.mean_grad_x(x[:, None])[:, 0], in_x, rtol=1e-6, atol=atol)


@pytest.mark.parametrize("relative", [1e-4, 1.0, 1e5])
@pytest.mark.parametrize("make", PROFILES, ids=PROFILE_NAMES)
@pytest.mark.parametrize("name", ["uniform", "normal"])
def test_closed_forms_to_rounding_at_extreme_lengthscales(name, make, relative):
    """μ and v keep all their digits; 25-digit arithmetic is the witness."""
    kernel = make(5 * relative)
    measure = amsbq.Uniform(2, 7) if name == "uniform" else amsbq.Gaussian(4.5, 25)
    with mpmath.workdps(25):
        scale, low = mpmath.mpf(5 * relative), 2 if name == "uniform" else mpmath.mpf(4.5) - 60
        high = 7 if name == "uniform" else mpmath.mpf(4.5) + 60
        density = (lambda t: mpmath.mpf(1) / 5) if name == "uniform" else (lambda t: mpmath.npdf(t, 4.5, 5))
        # the density of t' - t on the positive half-line, twice
        width = 5 if name == "uniform" else 85
        apart = (
            (lambda d: 2 * (5 - d) / mpmath.mpf(25))
            if name == "uniform"
            else (lambda d: 2 * mpmath.npdf(d, 0, 5 * mpmath.sqrt(2)))
        )

        def phi(r):
            if isinstance(kernel, amsbq.RBF):
                return mpmath.exp(-(r**2) / 2)
            s = mpmath.sqrt(2 * mpmath.mpf(kernel.nu)) * r
            return {0.5: 1, 1.5: 1 + s, 2.5: 1 + s + s**2 / 3}[kernel.nu] * mpmath.exp(-s)

        def integral(f, at, low, high):
            steps = [at + sign * scale * 2**k for k in range(-3, 8) for sign in (-1, 1)]
            nodes = [low, *sorted(t for t in {at, (low + high) / 2, *steps} if low < t < high), high]
            return float(mpmath.quad(f, nodes))

        x = 3.25
        of, at = embed(kernel, measure), np.array([[x]])
        expected = integral(lambda t: phi(abs(t - x) / scale) * density(t), mpmath.mpf(x), low, high)
        np.testing.assert_allclose(of.mean(at), expected, rtol=2e-14)
        expected = integral(lambda d: phi(d / scale) * apart(d), mpmath.mpf(0), 0, width)
        np.testing.assert_allclose(of.variance, expected, rtol=2e-14)


def gauss_rule(measure, n=40):
    """A tensor Gauss rule for a two-dimensional Uniform or Gaussian, correlated or not."""
    if isinstance(measure, amsbq.Uniform):
        t, w = np.polynomial.legendre.leggauss(n)
        low, high = measure.bounds.T
        axes, w = [low[d] + (high[d] - low[d]) * (1 + t) / 2 for d in range(2)], w / 2
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2), np.outer(w, w).ravel()
    t, w = np.polynomial.hermite_e.hermegauss(n)
    w = w / w.sum()
    standard = np.stack(np.meshgrid(t, t, indexing="ij"), axis=-1).reshape(-1, 2)
    return measure.mean + standard @ np.linalg.cholesky(measure.cov).T, np.outer(w, w).ravel()


@pytest.mark.parametrize("scales", [[0.9, 1.7], 1.2], ids=["per dimension", "shared"])
@pytest.mark.parametrize(
    "measure",
    [
        amsbq.Uniform([-1, 0], [1, 2]),
        amsbq.Gaussian([0.3, -1], [0.4, 0.7]),
        amsbq.Gaussian([0, 1], [[1, 0.6], [0.6, 0.8]]),
    ],
    ids=["uniform", "diagonal Gaussian", "correlated Gaussian"],
)
def test_rbf_in_two_dimensions(measure, scales):
    nodes, weights = gauss_rule(measure)
    kernel = amsbq.RBF(scales)
    X = measure.sample(5, 3)
    of = embed(kernel, measure)
    np.testing.assert_allclose(of.mean(X), weights @ kernel_matrix(kernel, nodes, X), rtol=1e-12)
    np.testing.assert_allclose(of.variance, weights @ kernel_matrix(kernel, nodes, nodes) @ weights, rtol=1e-12)
    check_gradients(kernel, measure, X)


def check_gradients(kernel, measure, X):
    of = embed(kernel, measure)
    in_x = [central_difference(lambda t: of.mean(t[None])[0], x, 1e-5) for x in X]
    np.testing.assert_allclose(of.mean_grad_x(X), in_x, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern_in_two_dimensions_with_mixed_marginals(nu):
    """Against scipy's adaptive cubature over the plane, with the kinks as breakpoints."""
    measure = amsbq.as_measure([stats.gamma(3), (0, 2)])
    kernel, x = amsbq.Matern(nu, [0.8, 0.5]), np.array([[1.7, 0.6]])

    def integrand(t, s):
        return stats.gamma.pdf(t, 3) / 2 * kernel_matrix(kernel, [[t, s]], x)[0, 0]

    expected = integrate.nquad(
        integrand, [(0, 40), (0, 2)], opts=[{"points": [1.7, 5], "epsabs": 0, "epsrel": 1e-9}, {"points": [0.6]}]
    )[0]
    np.testing.assert_allclose(amsbq.kernel_mean(kernel, measure, x), expected, rtol=1e-8)
    check_gradients(kernel, measure, np.array([[1.7, 0.6], [0.4, 1.5]]))


@pytest.mark.parametrize("kernel", [amsbq.RBF([0.5, 2]), amsbq.Matern(1.5, [0.5, 2]), amsbq.Matern(0.5, 1.0)], ids=repr)
def test_empirical_is_a_weighted_sum(kernel, monkeypatch):
    rng = np.random.default_rng(0)
    samples, weights, X = rng.normal(size=(57, 2)), rng.uniform(size=57), rng.normal(size=(9, 2))
    normalised = weights / weights.sum()
    measure = amsbq.Empirical(samples, weights)
    for block in (1_000_000, 64):  # in one block, and in many that do not divide the samples evenly
        monkeypatch.setattr("amsbq.gp.embeddings_numeric.BLOCK", block)
        np.testing.assert_allclose(
            amsbq.kernel_mean(kernel, measure, X), kernel_matrix(kernel, X, samples) @ normalised, rtol=1e-13
        )
        np.testing.assert_allclose(
            amsbq.kernel_variance(kernel, measure),
            normalised @ kernel_matrix(kernel, samples, samples) @ normalised,
            rtol=1e-13,
        )
        check_gradients(kernel, measure, X)


def test_a_hundred_thousand_samples_fit_in_memory():
    import tracemalloc

    samples = np.random.default_rng(0).normal(size=(100_000, 2))
    measure = amsbq.Empirical(samples)
    tracemalloc.start()
    got = amsbq.kernel_mean(amsbq.RBF(1.0), measure, samples[:300])
    batch = EmbeddingBatch(amsbq.RBF(1.0), np.ones((64, 2)), measure)._together
    batch._block_sums(*next(batch._half_of_pairs()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    np.testing.assert_allclose(
        got, amsbq.kernel_mean(amsbq.RBF(1.0), amsbq.Gaussian([0, 0], 1), samples[:300]), rtol=0.1
    )


def test_constant_kernel_has_mean_and_variance_one():
    measure = amsbq.Gaussian([0, 1], [[1, 0.5], [0.5, 1]])
    X = measure.sample(3, 0)
    np.testing.assert_array_equal(amsbq.kernel_mean(amsbq.Constant(), measure, X), 1)
    assert amsbq.kernel_variance(amsbq.Constant(), measure) == 1
    assert embed(amsbq.Constant(), measure).mean_grad_x(X).tolist() == np.zeros((3, 2)).tolist()


def test_an_underflowing_factor_leaves_the_other_gradients_alone():
    """In a product, no derivative is divided by a factor that may be zero."""
    measure = amsbq.Gaussian([0, 0], [1, 1])
    of = embed(amsbq.RBF([1e-3, 1.0]), measure)
    gradient = of.mean_grad_x(np.array([[60.0, 0.5]]))
    assert np.isfinite(gradient).all()
    assert of.mean(np.array([[60.0, 0.5]]))[0] == 0
    # the first factor is zero to rounding, but not its slope
    three, x = amsbq.Uniform([0, 0, 0], 1), np.array([[12.0, 0.4, 0.7]])
    _, gradient = embed(amsbq.RBF([1.0, 0.5, 0.5]), three).mean_and_grad_x(x)
    slope = embed(amsbq.RBF(1.0), amsbq.Uniform(0, 1)).mean_grad_x(x[:, :1])[0, 0]
    others = amsbq.kernel_mean(amsbq.RBF(0.5), amsbq.Uniform([0, 0], 1), x[:, 1:])[0]
    assert embed(amsbq.RBF(1.0), amsbq.Uniform(0, 1)).mean(x[:, :1])[0] == 0 > slope
    np.testing.assert_allclose(gradient[0], [slope * others, 0, 0], rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1e-2, 1.0])
def test_a_kink_between_panels(scale):
    """The Laplace distribution has its kink at the median; ∬ φ p p = ∫ φ(d) (1 + d) e^{-d} / 2 over d > 0."""
    cuts = np.append(0, np.minimum(scale, 1) * np.geomspace(0.1, 60, 25))
    for make in PROFILES:
        kernel = make(scale)

        def integrand(d, kernel=kernel):
            return float(profile(kernel, d / scale)) * (1 + d) * np.exp(-d) / 2

        pieces = [integrate.quad(integrand, a, b, epsabs=0, epsrel=1e-12)[0] for a, b in itertools.pairwise(cuts)]
        np.testing.assert_allclose(amsbq.kernel_variance(kernel, stats.laplace()), sum(pieces), rtol=1e-10)


def test_a_shifted_histogram():
    plain = stats.rv_histogram(([0.2, 0.3, 0.5], [0, 1, 2, 10]), density=False)
    kernel = amsbq.Matern(0.5, 1e-2)
    shifted = amsbq.kernel_variance(kernel, plain(loc=1))
    parts = [
        0.2**2 * _same(1),
        0.3**2 * _same(1),
        0.5**2 * _same(8),
        2 * 0.2 * 0.3 * _next(1, 1),
        2 * 0.3 * 0.5 * _next(1, 8),
    ]
    np.testing.assert_allclose(shifted, sum(parts), rtol=1e-10)


def _same(width, scale=1e-2):
    """The mean of e^{-|t - t'|/ℓ} over two uniform points of an interval."""
    z = width / scale
    return 2 * (z + np.expm1(-z)) / z**2


def _next(width, width2, scale=1e-2):
    """The same for points of two intervals that touch."""
    return scale**2 * np.expm1(-width / scale) * np.expm1(-width2 / scale) / (width * width2)


def test_matern_with_correlated_inputs_says_what_works_instead():
    measure = amsbq.Gaussian([0, 0], [[1, 0.5], [0.5, 1]])
    with pytest.raises(ValueError, match=r"does not separate.*RBF.*diagonal.*Empirical"):
        amsbq.kernel_mean(amsbq.Matern(2.5, 1.0), measure, [[0, 0]])
    with pytest.raises(ValueError, match="does not separate"):
        amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.Matern(0.5, 1.0))], measure)


@pytest.mark.parametrize(
    "distribution",
    [
        stats.cauchy(),
        stats.triang(0.3),
        stats.laplace(),
        stats.dgamma(0.5),
        stats.weibull_min(0.7),
        stats.lognorm(3),
        stats.gamma(0.05),
        stats.truncnorm(0, 1000),
        stats.skewnorm(5, loc=-300, scale=1e-3),
        stats.pareto(1.5),
        stats.loguniform(1e-3, 1e3),
        stats.levy(),
        stats.vonmises_line(3),
        stats.maxwell(),
        stats.fatiguelife(29),
        stats.weibull_max(2.9),
        stats.exponpow(2.7),
        stats.genextreme(-0.1),
        stats.burr(10.5, 4.3),
        stats.nct(5, 1),
        stats.gompertz(0.9),
        stats.johnsonsu(2.5, 2.2),
        stats.powerlaw(0.3),
        stats.invgamma(4.1),
        stats.crystalball(2, 3),
        stats.rv_histogram(np.histogram(np.random.default_rng(0).normal(size=1000), bins=20)),
    ],
    ids=lambda d: d.dist.name if hasattr(d, "dist") else "histogram",
)
def test_the_rule_reproduces_the_distribution_function(distribution):
    """The slope at x of a very long Matérn-1/2 kernel is the mass above x less the mass below, over ℓ."""
    x = distribution.ppf([0.3, 0.5, 0.9])
    spread = float(np.ptp(distribution.ppf([1e-9, 1 - 1e-9])))
    of = embed(amsbq.Matern(0.5, 1e12 * spread), amsbq.Product([distribution]))
    slope = of.mean_grad_x(x[:, None])[:, 0] * 1e12 * spread
    np.testing.assert_allclose(slope, distribution.sf(x) - distribution.cdf(x), atol=1e-10)


@pytest.mark.parametrize("kernel", [amsbq.RBF, partial(amsbq.Matern, 1.5)], ids=["rbf", "matern-3/2"])
def test_variances_by_interpolation_are_exact(kernel):
    """What learning uses, for many lengthscales, is what `kernel_variance` says; in any order of asking."""
    distributions = [stats.beta(2, 5), stats.norm(0, 1)]
    measure, again = (amsbq.Product(distributions) for _ in range(2))
    scales = [[0.11, 1.0], [0.37, 0.5], [0.2, 2.0]]
    found = [embed(kernel(scale), measure.for_learning()).variance for scale in scales]
    np.testing.assert_allclose(found, [amsbq.kernel_variance(kernel(scale), measure) for scale in scales], rtol=1e-12)
    assert [embed(kernel(scale), again.for_learning()).variance for scale in scales[::-1]] == found[::-1]
    assert measure.for_learning() is measure.for_learning()


def test_variance_where_squares_are_not_numbers_any_more():
    unit = amsbq.Uniform(0, 1)
    np.testing.assert_allclose(amsbq.kernel_variance(amsbq.RBF(1e-160), unit), np.sqrt(2 * np.pi) * 1e-160, rtol=1e-14)
    assert amsbq.kernel_variance(amsbq.RBF(1e200), unit) == 1


@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize(
    "marginals",
    [
        [stats.uniform(-1, 2), stats.uniform(0, 5), stats.uniform(3, 0.1)],
        [stats.norm(1, 2), stats.norm(0, 0.3)],
        [stats.uniform(0, 1), stats.norm(2, 3), stats.uniform(-2, 1)],
        [stats.gamma(5), stats.uniform(0, 1)],
        [stats.uniform(0, 1)],
    ],
    ids=["uniform", "normal", "both", "numeric", "one"],
)
def test_many_lengthscales_at_once(marginals, K):
    """Against one set of lengthscales after the other."""
    measure, rng = amsbq.as_measure(marginals), np.random.default_rng(0)
    scales = measure.width * np.exp(rng.normal(size=(K, measure.dim)))
    X = measure.sample(4, rng)
    together = EmbeddingBatch(amsbq.RBF(1.0), scales, measure)
    means, gradients = together.mean_and_grad_x(X)
    np.testing.assert_array_equal(together.mean(X), means)
    for k, lengthscales in enumerate(scales):
        alone = embed(amsbq.RBF(lengthscales), measure)
        np.testing.assert_allclose(means[k], alone.mean(X), rtol=1e-14)
        np.testing.assert_allclose(gradients[k], alone.mean_grad_x(X), rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(together.variance[k], alone.variance, rtol=1e-14)


@pytest.mark.parametrize("scale", [0.3, 30.0])
def test_empty_bins_of_a_histogram(scale):
    """They carry no mass that could be summarised; the witness is a mixture of two uniform distributions."""
    histogram, kernel, x = (
        stats.rv_histogram(([1, 0, 3], [0, 1, 3, 4]), density=False),
        amsbq.RBF(scale),
        np.array([[0.5], [2.0]]),
    )
    parts = [embed(kernel, amsbq.Uniform(low, low + 1)).mean(x) for low in (0, 3)]
    for measure in (amsbq.Product([histogram]), amsbq.Product([histogram]).for_learning()):
        np.testing.assert_allclose(amsbq.kernel_mean(kernel, measure, x), 0.25 * parts[0] + 0.75 * parts[1], rtol=1e-12)


@pytest.mark.parametrize("relative", [0.01, 0.3, 5.0])
def test_variance_of_heavy_tails(relative):
    """The difference of two Cauchy variables is one of scale 2, and E exp(-d²/2ℓ²) is then erfcx(√2/ℓ)."""
    scale = 2 * relative
    np.testing.assert_allclose(
        amsbq.kernel_variance(amsbq.RBF(scale), stats.cauchy()), special.erfcx(np.sqrt(2) / scale), rtol=1e-12
    )


@pytest.mark.parametrize("scale", [1e-3, 0.05, 1.0, 20.0])
def test_variance_of_a_singular_density(scale):
    """The difference d of two gamma(a) variables has the density ∝ |d|^(a-½) K_{a-½}(|d|)."""
    a = 0.1
    constant = np.sqrt(np.pi) * special.gamma(a) * 2 ** (a - 0.5)

    def integrand(log_d):
        d = np.exp(log_d)
        return 2 * d ** (a + 0.5) * special.kv(a - 0.5, d) / constant * np.exp(-0.5 * (d / scale) ** 2)

    edges = np.arange(-250.0, np.log(min(800, 40 * scale)) + 5, 5.0)
    pieces = [integrate.quad(integrand, low, high, epsabs=1e-16)[0] for low, high in itertools.pairwise(edges)]
    np.testing.assert_allclose(amsbq.kernel_variance(amsbq.RBF(scale), stats.gamma(a)), sum(pieces), rtol=1e-11)


@pytest.mark.parametrize(
    ("distribution", "most"),
    [(stats.cauchy(), 1e6), (stats.t(2), 1e6), (stats.gamma(0.1), 4e5), (stats.gamma(2), 2e5), (stats.beta(2, 5), 2e5)],
    ids=["cauchy", "t", "singular", "gamma", "beta"],
)
def test_a_variance_takes_few_kernel_values(distribution, most, monkeypatch):
    """Intervals without mass, or on which the kernel does not vary, take no work: learning needs hundreds of them."""
    measure, values = amsbq.Product([distribution]), []
    original = amsbq.RBF.profile
    monkeypatch.setattr(amsbq.RBF, "profile", lambda self, u: values.append(u.size) or original(self, u))
    amsbq.kernel_variance(amsbq.RBF(0.2 * measure.width), measure)
    assert sum(values) < most


@pytest.mark.parametrize("kernel", [amsbq.RBF, partial(amsbq.Matern, 2.5)], ids=["rbf", "matern-5/2"])
@pytest.mark.parametrize(
    "distribution",
    [stats.gamma(0.1), stats.cauchy(), stats.t(2), stats.beta(2, 5), stats.laplace(), stats.loguniform(1e-3, 1e3)],
    ids=lambda d: d.dist.name,
)
def test_means_while_learning_are_those_of_the_measure(kernel, distribution):
    """To rounding of the largest one, at quantiles and outside of where the mass is."""
    measure = amsbq.Product([distribution])
    x = distribution.ppf([1e-9, 1e-3, 0.2, 0.5, 0.9, 0.999, 1 - 1e-7])[:, None]
    for scale in measure.width * np.array([[0.004], [0.03], [0.2], [1.3], [20.0]]):
        plain, learning = (embed(kernel(scale), m) for m in (measure, measure.for_learning()))
        size = plain.mean(x).max()
        np.testing.assert_allclose(learning.mean(x), plain.mean(x), rtol=1e-12, atol=1e-13 * size)
        gradient = plain.mean_grad_x(x)
        np.testing.assert_allclose(learning.mean_grad_x(x), gradient, rtol=1e-11, atol=1e-12 * size / scale[0])


@pytest.mark.parametrize("kernel", [amsbq.RBF, partial(amsbq.Matern, 1.5)], ids=["rbf", "matern-3/2"])
def test_many_lengthscales_at_once_over_samples(kernel, monkeypatch):
    rng = np.random.default_rng(0)
    measure, X = amsbq.Empirical(rng.normal(size=(57, 2)), rng.uniform(size=57)), rng.normal(size=(9, 2))
    scales = np.exp(rng.normal(size=(3, 2)))
    for block in (1_000_000, 64):
        monkeypatch.setattr("amsbq.gp.embeddings_numeric.BLOCK", block)
        monkeypatch.setattr("amsbq.gp.embeddings_numeric.CACHED", block)
        together = EmbeddingBatch(kernel(1.0), scales, measure)
        means, gradients = together.mean_and_grad_x(X)
        np.testing.assert_allclose(together.mean(X), means, rtol=1e-13)
        for k, lengthscales in enumerate(scales):
            matrix = kernel_matrix(kernel(lengthscales), X, measure.samples)
            np.testing.assert_allclose(means[k], matrix @ measure.weights, rtol=1e-13)
            np.testing.assert_allclose(
                together.variance[k],
                measure.weights
                @ kernel_matrix(kernel(lengthscales), measure.samples, measure.samples)
                @ measure.weights,
                rtol=1e-13,
            )
            np.testing.assert_allclose(
                gradients[k], embed(kernel(lengthscales), measure).mean_grad_x(X), rtol=1e-11, atol=1e-14
            )
