"""Discrete inputs, categories, copulas, functions of inputs, mixtures and regions, against plain calculations."""

import itertools
import pickle

import numpy as np
import pytest
from scipy import integrate, stats

import amsbq
from amsbq.gp.embeddings import EmbeddingBatch, embed
from amsbq.visualization import curves
from amsbq.visualization.report import report
from tests.reference import central_difference, profile

KERNELS = [amsbq.RBF, *(lambda scale, nu=nu: amsbq.Matern(nu, scale) for nu in (0.5, 1.5, 2.5))]
NAMES = ["RBF", "Matern-1/2", "Matern-3/2", "Matern-5/2"]
MARGINALS = [stats.lognorm(0.5), stats.beta(2, 3)]
CORRELATION = np.array([[1.0, 0.6], [0.6, 1.0]])
COPULA = amsbq.GaussianCopula(MARGINALS, CORRELATION)


@pytest.mark.parametrize("make", KERNELS, ids=NAMES)
@pytest.mark.parametrize("relative", [0.05, 0.6, 20.0])
@pytest.mark.parametrize(
    ("given", "values", "masses"),
    [
        (stats.poisson(4.5), np.arange(80), stats.poisson(4.5).pmf(np.arange(80))),
        (stats.randint(-2, 5), np.arange(-2, 5), np.full(7, 1 / 7)),
        (stats.rv_discrete(values=([1, 2.5, 7], [0.2, 0.5, 0.3])), np.array([1, 2.5, 7]), np.array([0.2, 0.5, 0.3])),
        ({3: 0.25, -1: 0.75}, np.array([3.0, -1]), np.array([0.25, 0.75])),
    ],
    ids=["poisson", "randint", "table", "dictionary"],
)
def test_discrete_marginals_are_sums(given, values, masses, relative, make):
    measure = amsbq.Product([given])
    kernel = make(relative * np.ptp(values) / 4)
    scale, x = float(kernel.lengthscales), measure.distributions[0].values
    phi = profile(kernel, np.abs(x[:, None] - values) / scale)
    np.testing.assert_allclose(amsbq.kernel_mean(kernel, measure, x), phi @ masses, rtol=1e-11, atol=2e-13)
    between = profile(kernel, np.abs(values[:, None] - values) / scale)
    assert amsbq.kernel_variance(kernel, measure) == pytest.approx(masses @ between @ masses, rel=1e-11)


@pytest.mark.parametrize("make", KERNELS, ids=NAMES)
def test_mixed_inputs_are_sums_of_integrals(make):
    """A normal input, a count and a category: a sum over the last two of an integral over the first."""
    p, count = {"a": 0.2, "b": 0.5, "c": 0.3}, stats.binom(4, 0.3)
    measure, kernel = amsbq.Product([stats.norm(1, 2), count, p]), make([1.5, 2.0, 0.9])
    x = np.array([0.4, 3.0, 1.0])

    def phi(u, d):
        return profile(kernel, np.abs(np.asarray(u)) / kernel.lengthscales[d])

    first, _ = integrate.quad(
        lambda t: phi(x[0] - t, 0) * stats.norm(1, 2).pdf(t), -20, 22, points=[x[0]], epsabs=1e-13, limit=400
    )
    second = sum(phi(x[1] - k, 1) * count.pmf(k) for k in range(5))
    third = p["b"] + (p["a"] + p["c"]) * phi(1.0, 2)
    assert amsbq.kernel_mean(kernel, measure, [x])[0] == pytest.approx(first * second * third, rel=1e-9)
    pairs = sum(count.pmf(i) * count.pmf(j) * phi(i - j, 1) for i in range(5) for j in range(5))
    same = sum(q * q for q in p.values())
    normal = amsbq.kernel_variance(make(1.5), stats.norm(1, 2))
    expected = normal * pairs * (same + (1 - same) * phi(1.0, 2))
    assert amsbq.kernel_variance(kernel, measure) == pytest.approx(expected, rel=1e-9)


def test_categories_have_no_order():
    """A Gaussian process with another numbering of the categories is the same one."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=9), rng.integers(3, size=9)])
    other = np.column_stack([X[:, 0], 2 - X[:, 1]])
    one = amsbq.Product([stats.uniform(), {"a": 0.2, "b": 0.5, "c": 0.3}])
    two = amsbq.Product([stats.uniform(), {"c": 0.3, "b": 0.5, "a": 0.2}])
    y = rng.normal(size=9)
    answers = []
    for measure, inputs in ((one, X), (two, other)):
        gp = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF([0.3, 0.8]))], measure)
        answers.append(gp.condition(0, inputs, y).integral())
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-9)


def by_quadrature(f, n=160):
    """Integrate f(X) over the copula by a Gauss-Hermite rule for the normal scores; f is smooth in them."""
    z, w = np.polynomial.hermite_e.hermegauss(n)
    w = w / w.sum()
    Z = np.stack(np.meshgrid(z, z, indexing="ij"), axis=-1).reshape(-1, 2) @ np.linalg.cholesky(CORRELATION).T
    return np.multiply.outer(w, w).ravel() @ f(Z)


def test_kernel_means_of_a_copula():
    """The kernel acts on normal scores, the points are in the units of the inputs."""
    kernel, X = amsbq.RBF([0.7, 1.3]), COPULA.sample(4, 0)
    scores = np.column_stack([stats.norm.ppf(d.cdf(x)) for d, x in zip(MARGINALS, X.T, strict=True)])
    np.testing.assert_allclose(COPULA.to_latent(X), scores, atol=1e-12)
    for x, z in zip(X, scores, strict=True):
        expected = by_quadrature(lambda Z, z=z: np.exp(-0.5 * (((Z - z) / kernel.lengthscales) ** 2).sum(axis=1)))
        assert amsbq.kernel_mean(kernel, COPULA, [x])[0] == pytest.approx(expected, rel=1e-9)

    def mean(Z):
        return amsbq.kernel_mean(kernel, amsbq.Gaussian([0, 0], CORRELATION), Z)

    assert amsbq.kernel_variance(kernel, COPULA) == pytest.approx(by_quadrature(mean), rel=1e-9)
    of = embed(kernel, COPULA)
    numeric = [central_difference(lambda t: of.mean(t[None]), x, 1e-5)[:, 0] for x in X]
    np.testing.assert_allclose(of.mean_grad_x(X), numeric, rtol=1e-6, atol=1e-8)


def test_posteriors_under_a_copula_are_those_of_the_scores():
    rng = np.random.default_rng(1)
    X, y, term = COPULA.sample(8, 2), rng.normal(size=8), amsbq.Term(1.0, amsbq.RBF([0.7, 1.3]))
    ours = amsbq.MultiSourceGP([term], COPULA).condition(0, X, y)
    scores = amsbq.MultiSourceGP([term], COPULA.latent).condition(0, COPULA.to_latent(X), y)
    np.testing.assert_allclose(ours.integral(), scores.integral(), rtol=1e-9)
    new = COPULA.sample(3, 5)
    rho2, gradient = ours.squared_correlation_and_grad(0, new)
    np.testing.assert_allclose(rho2, scores.squared_correlation(0, COPULA.to_latent(new)), rtol=1e-9)
    for i, x in enumerate(new):
        numeric = central_difference(lambda t: ours.squared_correlation(0, t[None]), x, 1e-5)[:, 0]
        np.testing.assert_allclose(gradient[i], numeric, rtol=1e-5, atol=1e-8)
    t = COPULA.over([0]).sample(4, 1)
    latent_t = COPULA.over([0]).to_latent(t)
    np.testing.assert_allclose(ours.main_effect(0, 0, t), scores.main_effect(0, 0, latent_t), rtol=1e-9)


def test_inputs_of_a_copula_get_names():
    copula = amsbq.GaussianCopula([(1.0, 2.0), (3.0, 4.0)], [[1, 0.5], [0.5, 1]])
    seen = []

    def f(second, first):
        seen.append((first, second))
        return first + second

    amsbq.integrate(f, copula, names=["first", "second"], budget=3)
    assert len(seen) == 3
    assert all(1 <= first <= 2 and 3 <= second <= 4 for first, second in seen)


def test_draws_of_a_copula():
    X = COPULA.sample(20_000, 0)
    for d, x in zip(MARGINALS, X.T, strict=True):
        assert stats.kstest(x, d.cdf).pvalue > 1e-3
    assert np.corrcoef(COPULA.to_latent(X).T)[0, 1] == pytest.approx(0.6, abs=0.02)
    assert (COPULA.bounds == [[0, np.inf], [0, 1]]).all()


def test_copulas_of_singular_correlations():
    copula = amsbq.GaussianCopula([stats.norm(), stats.lognorm(1.0)], np.ones((2, 2)))
    X = copula.sample(100, 0)
    np.testing.assert_allclose(X[:, 1], np.exp(X[:, 0]), rtol=1e-3)
    found = amsbq.integrate(lambda x: x[0] ** 2 + np.log(x[1]), copula, budget=8)
    assert found.mean == pytest.approx(1.0, abs=0.2)


MIXED = amsbq.GaussianCopula([stats.lognorm(0.5), stats.poisson(3)], [[1, 0.7], [0.7, 1]])


def discrete_truth(f):
    """Integrate f(X) over MIXED: a sum over counts, of integrals over the scores that go with each."""
    z, w = np.polynomial.legendre.leggauss(400)
    z, w = 8 * z, 8 * w * stats.norm.pdf(8 * z)
    total = 0.0
    for k in range(25):
        low, high = (stats.norm.ppf(stats.poisson(3).cdf(k - step)) for step in (1, 0))
        ends = [stats.norm.cdf((end - 0.7 * z) / np.sqrt(1 - 0.49)) for end in (low, high)]
        total += w * (ends[1] - ends[0]) @ f(np.column_stack([np.exp(0.5 * z), np.full(len(z), k)]))
    return total


def test_copulas_may_have_discrete_marginals():
    def f(X):
        return np.log1p(X[:, 0]) * X[:, 1]

    assert MIXED.discrete == (1,)
    X = MIXED.sobol(2**14, 0)
    assert (X[:, 1] == X[:, 1].round()).all()
    assert f(X).mean() == pytest.approx(discrete_truth(f), abs=2e-3)
    source = amsbq.Source(lambda x: float(f(x[None])[0]))
    result = amsbq.integrate(source, MIXED, budget=12, seed=0, progress=False)
    assert {e.x[1] for e in result.evaluations} <= set(range(25))
    assert abs(result.mean - discrete_truth(f)) <= 4 * result.std + 2e-3
    assert result.std < 0.05 * np.std(f(X))


@pytest.mark.parametrize(("function", "given", "truth"), [(1, {"x0": 1.0}, 3.0), (0, {"x1": 3}, np.exp(0.125))])
def test_others_keep_their_distribution_beside_a_discrete_input(function, given, truth):
    result = amsbq.integrate(lambda x: x[function], MIXED, budget=10, seed=0, progress=False)
    found = result.given(**given)
    assert abs(found.mean - truth) <= 4 * found.std
    assert abs(result.mean - truth) <= 4 * result.std  # of which the points that stand for the copula are a part


def test_effects_are_averages_over_all_of_many_samples():
    samples = np.random.default_rng(0).normal(size=(1000, 2)) @ [[1, 1], [0, 1]]
    options = {"budget": 15, "seed": 0, "model": "ar"}  # without transforms, which need sums over points
    result = amsbq.integrate(lambda x: x[0] + x[1] ** 2, amsbq.Empirical(samples), **options)
    points = np.column_stack([np.full(1000, 0.5), samples[:, 1]])
    assert result.given(x0=0.5).mean == pytest.approx(np.mean(result.predict(0, points)[0]), abs=1e-6)


def test_kernel_means_of_a_copula_with_discrete_marginals():
    x = np.array([[1.5, 4.0]])
    latent = MIXED.to_latent(x)
    kernel = amsbq.RBF([1.0, 3.0])
    mean = amsbq.kernel_mean(kernel, MIXED, x)[0]
    assert latent[0] == pytest.approx([np.log(1.5) / 0.5, 4.0], abs=1e-12)
    truth = discrete_truth(
        lambda X: np.exp(-0.5 * ((np.log(X[:, 0]) / 0.5 - latent[0, 0]) ** 2 + ((X[:, 1] - 4) / 3) ** 2))
    )
    assert mean == pytest.approx(truth, abs=1e-3)


def test_fit_of_a_copula_finds_marginals_and_correlation():
    X = COPULA.sample(5000, 3)
    fitted = amsbq.GaussianCopula.fit(X)
    assert fitted.correlation[0, 1] == pytest.approx(0.6, abs=0.03)
    for ours, d in zip(fitted.distributions, MARGINALS, strict=True):
        q = np.linspace(0.05, 0.95, 7)
        np.testing.assert_allclose(ours.ppf(q), d.ppf(q), rtol=0.05)
    assert amsbq.GaussianCopula.fit(X, MARGINALS).distributions == tuple(MARGINALS)


def mixtures():
    normal, other = amsbq.Gaussian([0, 0.5], [1.0, 0.3]), amsbq.Gaussian([2, 1], [[1.0, 0.4], [0.4, 0.5]])
    box, product = amsbq.Uniform([1, -1], [3, 2]), amsbq.Product([stats.gamma(3), stats.beta(2, 2)])
    samples = amsbq.Empirical(np.random.default_rng(0).normal(size=(30, 2)))
    return {
        "normals": [normal, other],
        "box and normal": [box, normal],
        "gamma and box": [product, box, normal],
        "samples": [normal, samples],
    }


@pytest.mark.parametrize(
    ("name", "make"),
    # correlated inputs have closed forms with RBF kernels only
    [(name, make) for name in mixtures() for make in KERNELS if name != "normals" or make is amsbq.RBF],
)
def test_mixtures_are_sums_over_components(name, make):
    """The variance is the kernel mean, integrated over each component by a rule of its own."""
    components, kernel = mixtures()[name], make([0.8, 1.5])
    weights = np.arange(1.0, len(components) + 1) / np.arange(1, len(components) + 1).sum()
    mixture = amsbq.Mixture(components, weights)
    X = mixture.sample(5, 0)
    expected = sum(w * embed(kernel, c).mean(X) for w, c in zip(weights, components, strict=True))
    np.testing.assert_allclose(amsbq.kernel_mean(kernel, mixture, X), expected, rtol=1e-12)
    pairs = itertools.product(zip(weights, components, strict=True), repeat=2)
    total = sum(w * v * between(one, other, kernel) for (w, one), (v, other) in pairs)
    assert amsbq.kernel_variance(kernel, mixture) == pytest.approx(total, rel=1e-9)
    batch = EmbeddingBatch(kernel, np.array([[0.8, 1.5]] * 2), mixture.for_learning())
    np.testing.assert_allclose(batch.variance, amsbq.kernel_variance(kernel, mixture), rtol=1e-9)


def between(one, other, kernel):
    """Return the integral of the kernel mean of one component over another, by Gauss rules on short pieces."""
    if isinstance(one, amsbq.Empirical):
        one, other = other, one
    if isinstance(other, amsbq.Empirical):
        return other.weights @ embed(kernel, one).mean(other.samples)
    if one.marginals is None or other.marginals is None:
        z, w = np.polynomial.hermite_e.hermegauss(60)
        Z = np.stack(np.meshgrid(z, z, indexing="ij"), axis=-1).reshape(-1, 2)
        X = other.mean + Z @ np.linalg.cholesky(other.cov).T
        return np.multiply.outer(w, w).ravel() @ embed(kernel, one).mean(X) / w.sum() ** 2
    product = 1.0
    for d in range(2):
        edges = np.unique([-14, 16, 0, 1, -1, 2, 3, *np.linspace(-8, 8, 41), *np.linspace(8, 60, 60)])
        nodes, weights = np.polynomial.legendre.leggauss(20)
        half = 0.5 * np.diff(edges)[:, None]
        t, w = (edges[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()
        product *= (w * density_of(other, d)(t)) @ embed(kernel.over([d]), one.over([d])).mean(t[:, None])
    return product


def density_of(component, d):
    if isinstance(component, amsbq.Gaussian):
        return stats.norm(component.mean[d], np.sqrt(component.cov[d, d])).pdf
    if isinstance(component, amsbq.Uniform):
        low, high = component.bounds[d]
        return stats.uniform(low, high - low).pdf
    return component.distributions[d].pdf


def test_draws_of_a_mixture():
    mixture = amsbq.Mixture([amsbq.Gaussian([0, 0], 1.0), amsbq.Uniform([5, 5], 6)], [0.7, 0.3])
    X = mixture.sample(20_000, 0)
    assert np.mean(X[:, 0] > 5) == pytest.approx(0.3, abs=0.012)
    inside = X[(X > 5).all(axis=1)]
    assert stats.kstest(inside[:, 1], stats.uniform(5, 1).cdf).pvalue > 1e-3


def groups():
    """Correlated normal inputs 2 and 0, a category 1, and two dependent inputs 3 and 4."""
    normal = amsbq.Gaussian([0.5, 1], [[1, 0.5], [0.5, 2]])
    return [normal, amsbq.Product([{"a": 0.3, "b": 0.7}]), COPULA], [[2, 0], [1], [3, 4]]


def test_independent_groups_are_products():
    measures, columns = groups()
    measure, scales = amsbq.Independent(measures, columns), np.array([0.9, 0.8, 1.3, 0.7, 1.1])
    kernel, X = amsbq.RBF(scales), measure.sample(6, 0)
    assert measure.discrete == measure.categorical == (1,)
    parts = [(amsbq.RBF(scales[group]), m, X[:, group]) for m, group in zip(measures, columns, strict=True)]
    expected = np.prod([amsbq.kernel_mean(*part) for part in parts], axis=0)
    np.testing.assert_allclose(amsbq.kernel_mean(kernel, measure, X), expected, rtol=1e-12)
    variance = np.prod([amsbq.kernel_variance(k, m) for k, m, _ in parts])
    assert amsbq.kernel_variance(kernel, measure) == pytest.approx(variance, rel=1e-12)
    numeric = [central_difference(lambda t: embed(kernel, measure).mean(t[None]), x, 1e-5)[:, 0] for x in X]
    np.testing.assert_allclose(embed(kernel, measure).mean_grad_x(X), numeric, rtol=1e-5, atol=1e-8)
    assert measure.over([1]).categorical == (0,)
    pair = measure.over([4, 2])
    np.testing.assert_array_equal(pair.bounds, measure.bounds[[4, 2]])
    with pytest.raises(ValueError, match=r"input 1 is \d\.4, and must be one of 0 \(a\), 1 \(b\)"):
        measure.check_points(X + np.array([0, 0.4, 0, 0, 0]))


def test_a_run_over_independent_groups():
    measures, columns = groups()
    measure = amsbq.Independent(measures, columns)

    def f(x):
        return x[0] + 0.5 * x[2] + (1.0 if x[1] else -2.0) + x[3] * 0.2

    truth = 1 + 0.25 + 0.7 - 0.6 + 0.2 * stats.lognorm(0.5).mean()
    found = amsbq.integrate(f, measure, budget=14)
    assert abs(found.mean - truth) < 3 * found.std
    assert abs(found.mean - truth) < 0.3
    listed = amsbq.as_measure([(0, 1), COPULA, {"a": 0.5, "b": 0.5}])
    assert (listed.dim, listed.discrete) == (4, (3,))


def triple(x):
    return np.array([x[0] / x[1], x[0] + x[1], 3.0])


def test_sources_are_called_with_the_function_of_the_location():
    """Locations, costs and plots are those of the base; two runs that differ in who composes are the same."""
    base = amsbq.Uniform([0, 1], [1, 2])
    seen = []

    def f(z):
        seen.append(z)
        return z[0] + 0.1 * z[1]

    ours = amsbq.integrate(amsbq.Source(f, cost=lambda z: z[1]), amsbq.Transformed(base, triple), budget=9)
    theirs = amsbq.integrate(amsbq.Source(lambda x: f(triple(x)), cost=lambda x: triple(x)[1]), base, budget=9)
    assert (ours.mean, ours.std) == (theirs.mean, theirs.std)
    assert {z.shape for z in seen} == {(3,)}
    assert all(e.cost == pytest.approx(e.x.sum()) for e in ours.evaluations)
    again = pickle.loads(pickle.dumps(amsbq.Transformed(base, triple)))
    assert again.same_as(amsbq.Transformed(base, triple))


def test_only_values_that_exist_are_asked():
    measure = amsbq.Product([stats.norm(), stats.randint(0, 3), {"a": 0.5, "b": 0.5}])
    it = amsbq.Integrator([amsbq.Source(), amsbq.Source(cost=0.2)], measure, budget=6, model="icm")
    for _ in range(5):
        for query in it.ask(2):
            assert query.x[1] in (0, 1, 2)
            assert query.x[2] in (0, 1)
            it.tell(query, query.x[0] ** 2 + query.x[1] - query.x[2])
    with pytest.raises(ValueError, match=r"input 1 is 0\.5, and must be one of 0, 1, 2"):
        it.observe(0, [0.0, 0.5, 1], 1.0)
    with pytest.raises(ValueError, match=r"input 2 is 0\.3, and must be one of 0 \(a\), 1 \(b\)"):
        it.observe(0, [0.0, 1, 0.3], 1.0)


def test_units_of_discrete_and_dependent_inputs_do_not_matter():
    def answers(measure, x_of):
        it = amsbq.Integrator([amsbq.Source()], measure, budget=6)
        while (query := it.ask()) is not None:
            x = x_of(query.x)
            it.tell(query, float(np.sin(x[0]) + 0.3 * x[1] ** 2))
        return it.estimate()

    few = stats.binom(6, 0.3).pmf(np.arange(7))
    for one, other, back in (
        (
            amsbq.Product([dict(enumerate(few)), stats.norm()]),
            amsbq.Product([{1000.0 * k: p for k, p in enumerate(few)}, stats.norm(scale=4)]),
            lambda x: x / [1000, 4],
        ),
        (
            amsbq.GaussianCopula([stats.gamma(3), stats.norm()], [[1, 0.5], [0.5, 1]]),
            amsbq.GaussianCopula([stats.gamma(3, scale=1024), stats.norm(scale=4)], [[1, 0.5], [0.5, 1]]),
            lambda x: x / [1024, 4],
        ),
    ):
        a, b = answers(one, lambda x: x), answers(other, back)
        assert a.mean == pytest.approx(b.mean, rel=1e-4)
        assert a.std == pytest.approx(b.std, rel=1e-2)


def test_regions_by_rejection():
    triangle = amsbq.Empirical.sampled(amsbq.Uniform([0, 0], 1), lambda x: x.sum() < 1, n=2000)
    assert triangle.samples.shape == (2000, 2)
    assert (triangle.samples.sum(axis=1) < 1).all()
    np.testing.assert_allclose(triangle.samples.mean(axis=0), 1 / 3, atol=0.01)
    drawn = amsbq.Empirical.sampled(lambda m, rng: rng.normal(size=(m, 1)), n=500, seed=4)
    assert len(drawn.samples) == 500
    with pytest.raises(ValueError, match=r"only 0 of \d+ draws are in the region"):
        amsbq.Empirical.sampled(amsbq.Uniform(0, 1), lambda x: False, n=10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: amsbq.GaussianCopula(MARGINALS, [[1, 2], [2, 1]]),
            "positive semi-definite, but .* eigenvalue -1",
        ),
        (lambda: amsbq.GaussianCopula(MARGINALS, [[1, 0.5], [0.2, 1]]), "must be symmetric"),
        (lambda: amsbq.GaussianCopula(MARGINALS, [[4, 0.5], [0.5, 1]]), "diagonal of ones"),
        (lambda: amsbq.GaussianCopula(MARGINALS, np.eye(3)), r"2 × 2 matrix"),
        (lambda: amsbq.GaussianCopula([stats.norm(), {"a": 0.4, "b": 0.6}], np.eye(2)), "categories have no order"),
        (lambda: amsbq.Product([{0: 0.3, 1: 0.6}]), r"sum to 0.9, not to 1"),
        (lambda: amsbq.Product([{0: 1.5, 1: -0.5}]), "numbers from 0 to 1"),
        (lambda: amsbq.Product([{0: 0.5, "a": 0.5}]), "all numbers, or all names"),
        (lambda: amsbq.Product([{0: 1.0}]), "single value"),
        (lambda: amsbq.Product([stats.poisson]), "without its parameters"),
        (lambda: amsbq.Product([stats.poisson(-1)]), "does not accept"),
        (lambda: amsbq.Mixture([amsbq.Uniform(0, 1), amsbq.Uniform(0, [1, 1])], [0.5, 0.5]), "same number of inputs"),
        (lambda: amsbq.Mixture([amsbq.Uniform(0, 1)] * 2, [0.5, 0.6]), "sum to 1"),
        (lambda: amsbq.Mixture([COPULA, COPULA], [0.5, 0.5]), "cannot be part of a mixture"),
        (lambda: amsbq.Transformed([(0, 1)], abs), "base must be a measure"),
        (lambda: amsbq.Transformed(amsbq.Uniform(0, 1), 3), "function must be callable"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


@pytest.mark.parametrize(
    "measure",
    [
        amsbq.GaussianCopula.fit(COPULA.sample(300, 0)),
        MIXED,
        amsbq.as_measure([COPULA, {"a": 0.3, "b": 0.7}, stats.poisson(2)]),
        amsbq.Transformed(amsbq.Uniform([0, 1], [1, 2]), triple),
        amsbq.Mixture([amsbq.Gaussian([0, 0], 1.0), amsbq.Uniform([3, 3], 5)], [0.7, 0.3]),
    ],
    ids=["fitted copula", "discrete copula", "groups", "function", "mixture"],
)
def test_journals_reports_and_figures_of_all_of_them(measure, tmp_path):
    """A journal is read back, goes on where it ended, and has a report with main effects in the user's units."""
    journal = tmp_path / "run.jsonl"

    def f(x):
        return float(x[0] + np.sin(x[1]))

    first = amsbq.integrate(f, measure, budget=5, model="icm", journal=journal)
    again = amsbq.read_result(journal)
    assert again.integrator is not None
    assert (again.mean, again.std) == (first.mean, first.std)
    for d in range(measure.dim):
        t = curves.grid(again, d)
        low, high = measure.bounds[d]
        assert ((t >= low) & (t <= high)).all()
        assert np.isfinite(curves.effect(again, 0, d, t).mean).all()
        density = curves.density(again, d, t)
        mass = density.sum() if d in measure.discrete else np.trapezoid(density, t)
        assert mass == pytest.approx(1, abs=0.05)
    assert "<html" in report(journal, tmp_path / "report.html").read_text()
    whole = amsbq.integrate(f, measure, budget=7, model="icm")
    resumed = amsbq.integrate(f, measure, budget=7, model="icm", journal=journal)
    assert [e.x.tolist() for e in resumed.evaluations] == [e.x.tolist() for e in whole.evaluations]
