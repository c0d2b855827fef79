"""Sample paths have the distribution of the posterior, and effects are those of a dense product of Gauss rules."""

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.gp.data import Data
from amsbq.inference.particles import Particles
from amsbq.posterior.effects import effects
from amsbq.posterior.latent import ARCSINE, LINEAR, ROOT, Latent, Process, heavy_tails
from amsbq.posterior.paths import Paths
from amsbq.posterior.rules import rules_for

MEASURE = amsbq.Product([stats.uniform(-1, 3), stats.norm(0.5, 2)])


@pytest.fixture(scope="module")
def latent():
    """Two sources, eleven noisy observations, and much that is not known."""
    terms = [
        amsbq.Term([[1.0, 0.8], [0.8, 1.2]], amsbq.RBF([1.5, 3.0])),
        amsbq.Term([[0.3, 0.0], [0.0, 0.1]], amsbq.Matern(2.5, [2.0, 4.0])),
        amsbq.Term([[2.0, 0.0], [0.0, 2.0]], amsbq.Constant()),
        amsbq.Term([[0.4, 0.3], [0.3, 0.5]], amsbq.Linear([0.2, 0.4], [1.0, 2.0])),
    ]
    gp = amsbq.MultiSourceGP(terms, MEASURE, noise=[0.01, 0.0], mean=[0.3, -0.2])
    rng = np.random.default_rng(1)
    s = np.array([0] * 5 + [1] * 6)
    data = Data.checked(MEASURE, 2, s, MEASURE.sample(11, rng), rng.normal(size=11), None, None)
    return Latent.of(Process.of(Particles.given(gp), data))


def test_paths_have_the_moments_of_the_posterior(latent):
    paths = Paths.draw(latent, MEASURE)
    X = MEASURE.sample(40, 3)
    values, rest = paths.values(X)[0], paths.residual_variances(X)[0]
    mean, covariance = (moment[0] for moment in latent.parts[0].predict_joint(np.zeros(40, dtype=int), X))
    np.testing.assert_allclose(values.mean(axis=0), mean, rtol=0, atol=1e-8)  # pairs of opposite deviations
    np.testing.assert_allclose(Paths.means(latent).values(X)[0, 0], mean, rtol=0, atol=1e-10)
    found = np.cov(values.T, bias=True) + np.diag(rest)
    error = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / (len(values) / 2))
    assert np.mean(np.abs(found - covariance) < 2 * error) > 0.9
    assert np.all(np.abs(found - covariance) < 6 * error)
    assert rest.max() < 0.05 * np.diag(covariance).max()


def test_effects_are_those_of_a_dense_rule(latent):
    paths = Paths.draw(latent, MEASURE)
    t, w = np.polynomial.legendre.leggauss(60)
    h, v = np.polynomial.hermite_e.hermegauss(60)
    grid = np.stack(np.meshgrid(-1 + 3 * (t + 1) / 2, 0.5 + 2 * h, indexing="ij"), axis=-1).reshape(-1, 2)
    f = paths.values(grid)[0].reshape(-1, 60, 60)
    w, v = w / 2, v / v.sum()
    mean = np.einsum("jab,a,b->j", f, w, v)
    rows, columns = f @ v, np.einsum("jab,a->jb", f, w)
    variance = np.einsum("jab,a,b->j", f**2, w, v) - mean**2
    first = np.array([rows**2 @ w - mean**2, columns**2 @ v - mean**2])
    found = effects(paths, MEASURE, [[0], [1]])
    whole = effects(paths, MEASURE, [[0, 1]])
    left_out = paths.residual_variances(MEASURE.sobol(256, 1))[0].mean()  # added to all of them, in proportion
    slack = 4e-3 * variance.max() + left_out
    assert np.abs(found.variances[0] - variance).max() < slack
    assert np.abs(found.first[:, 0] - first).max() < slack
    assert np.abs(found.total[:, 0] - (variance - first[::-1])).max() < slack
    for both in (whole.first, whole.total):
        np.testing.assert_allclose(both[0], whole.variances, rtol=1e-12)


@pytest.mark.parametrize(
    "distribution", [stats.norm(1, 2), stats.expon(), stats.gamma(0.5), stats.beta(0.5, 0.5), stats.randint(0, 4)]
)
def test_rules_integrate_polynomials(distribution):
    (rule,) = rules_for(amsbq.Product([distribution]))
    for power in range(4):
        truth = distribution.moment(power) if power else 1.0
        assert rule.weights @ rule.nodes**power == pytest.approx(truth, rel=2e-6)


def test_factors_on_deviations_make_students_distribution():
    factors = heavy_tails(4.0, (16, 40))
    np.testing.assert_array_equal(factors[:, :20], factors[:, 20:])  # both of a pair
    normal = stats.norm.ppf((np.arange(2000) + 0.5) / 2000)
    products = np.multiply.outer(factors[:, :20].ravel(), normal).ravel()
    for p in (0.75, 0.9, 0.975):
        assert np.quantile(products, p) == pytest.approx(stats.t(4).ppf(p), rel=0.02)


@pytest.mark.parametrize(
    ("scale", "draws"), [(LINEAR, [-3.0, 5.0]), (ROOT, [0.0, 1.0, 9.0]), (ARCSINE, [0.0, 0.3, 1.0])]
)
def test_scales_are_inverted_and_bounded(scale, draws):
    np.testing.assert_allclose(scale.back(scale.to(np.array(draws))), draws, atol=1e-15)
    np.testing.assert_allclose(
        scale.back(np.array(scale.ends)), {LINEAR: (-np.inf, np.inf), ROOT: (0, np.inf), ARCSINE: (0, 1)}[scale]
    )
