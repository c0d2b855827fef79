"""The posterior against the dense joint Gaussian of data, integrals and new observations."""

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.gp import linalg
from amsbq.gp.coregionalisation import ModelBatch
from amsbq.gp.data import Data, Sites
from amsbq.gp.posterior_batch import PosteriorBatch
from tests.problems import PROBLEMS, models_of, random_B
from tests.reference import central_difference, kernel_matrix

EACH = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())


@EACH
def test_predict(problem):
    post = problem.condition()
    for source in range(problem.gp.n_sources):
        s_new = np.full(6, source)
        mean, cov = problem.joint.posterior(problem.s, problem.X, problem.y, problem.extra, 0, s_new, problem.X_new)
        got_mean, got_var = post.predict(source, problem.X_new)
        np.testing.assert_allclose(got_mean, mean[1:], rtol=1e-8)
        np.testing.assert_allclose(got_var, np.diagonal(cov)[1:] - problem.gp.noise[source], rtol=1e-8)


@EACH
def test_integral(problem):
    post = problem.condition()
    for target in range(problem.gp.n_sources):
        mean, cov = problem.joint.posterior(problem.s, problem.X, problem.y, problem.extra, target, [], problem.X[:0])
        np.testing.assert_allclose(post.integral(target), (mean[0], cov[0, 0]), rtol=1e-8)


@EACH
def test_squared_correlation(problem):
    post = problem.condition()
    for source in range(problem.gp.n_sources):
        for target in range(problem.gp.n_sources):
            s_new = np.full(6, source)
            _, cov = problem.joint.posterior(
                problem.s, problem.X, problem.y, problem.extra, target, s_new, problem.X_new
            )
            expected = cov[0, 1:] ** 2 / (cov[0, 0] * np.diagonal(cov)[1:])
            got = post.squared_correlation(source, problem.X_new, target)
            np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-14)
            value, gradient = post.squared_correlation_and_grad(source, problem.X_new, target)
            np.testing.assert_array_equal(value, got)
            numeric = [
                central_difference(lambda x: post.squared_correlation(source, x[None], target)[0], x, 1e-4)  # noqa: B023
                for x in problem.X_new
            ]
            np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-8)


@EACH
def test_squared_correlation_of_a_set(problem):
    post = problem.condition()
    s_new = np.arange(6) % problem.gp.n_sources
    for target in range(problem.gp.n_sources):
        _, cov = problem.joint.posterior(problem.s, problem.X, problem.y, problem.extra, target, s_new, problem.X_new)
        expected = cov[0, 1:] @ np.linalg.solve(cov[1:, 1:], cov[1:, 0]) / cov[0, 0]
        value, gradient = post.squared_correlation_joint_and_grad(s_new, problem.X_new, target)
        np.testing.assert_allclose(value, expected, rtol=1e-8)
        assert value == post.squared_correlation_joint(s_new, problem.X_new, target)
        numeric = central_difference(
            lambda X: post.squared_correlation_joint(s_new, X.reshape(problem.X_new.shape), target),  # noqa: B023
            problem.X_new.ravel(),
            1e-4,
        )
        np.testing.assert_allclose(gradient.ravel(), numeric, rtol=1e-6, atol=1e-8)


@EACH
def test_a_set_of_one_is_the_myopic_form(problem):
    post = problem.condition()
    for x in problem.X_new:
        joint = post.squared_correlation_joint([0], x[None])
        np.testing.assert_allclose(joint, post.squared_correlation(0, x[None])[0], rtol=1e-10)


@pytest.mark.parametrize(("away", "informative"), [(1e-7, False), (3e-5, True)])
def test_what_is_known_to_rounding_tells_nothing_alone_or_in_a_set(away, informative):
    """Next to an observation, less than 1e-10 of the variance is unknown."""
    gp = amsbq.MultiSourceGP([amsbq.Term([[1.0]], amsbq.RBF(0.3))], amsbq.Uniform(0, 1))
    post, x = gp.condition([0, 0], [[0.3], [0.8]], [1.0, 2.0]), np.array([[0.3 + away]])
    alone = [value[0] for value in post.squared_correlation_and_grad(0, x)]
    assert (alone[0] > 0) == informative
    for value, expected in zip(post.squared_correlation_joint_and_grad([0], x), alone, strict=True):
        np.testing.assert_allclose(np.squeeze(value), np.squeeze(expected), rtol=1e-5)
    with_another = post.squared_correlation_joint([0, 0], np.append([[0.6]], x, axis=0))
    without = post.squared_correlation_joint([0], [[0.6]])
    assert (with_another > without) == informative


@EACH
def test_squared_correlation_is_the_variance_that_an_observation_takes_away(problem):
    """Eq. 8: (V[Z | D] - V[Z | D and the new ones]) / V[Z | D] = ρ², whatever the outcome."""
    post = problem.condition()
    s_new = np.arange(6) % problem.gp.n_sources
    before, after = post.integral()[1], post.extend(s_new, problem.X_new, np.ones(6)).integral()[1]
    np.testing.assert_allclose(post.squared_correlation_joint(s_new, problem.X_new), 1 - after / before, rtol=1e-8)


@EACH
def test_log_evidence(problem):
    post = problem.condition()
    G = problem.joint.cov(problem.s, problem.X, problem.s, problem.X)
    G += np.diag(problem.gp.noise[problem.s] + problem.extra)
    expected = stats.multivariate_normal(problem.gp.mean[problem.s], G).logpdf(problem.y)
    np.testing.assert_allclose(post.log_evidence(), expected, rtol=1e-9)


@EACH
def test_extend_is_conditioning_on_all(problem):
    whole = problem.condition()
    start = problem.gp.condition(problem.s[:3], problem.X[:3], problem.y[:3], problem.extra[:3])
    start.integral()  # what was computed before is carried along
    one_by_one = start
    for n in range(3, len(problem.s)):
        here = slice(n, n + 1)
        one_by_one = one_by_one.extend(problem.s[here], problem.X[here], problem.y[here], problem.extra[here])
    at_once = start.extend(problem.s[3:], problem.X[3:], problem.y[3:], problem.extra[3:])
    for post in (one_by_one, at_once):
        np.testing.assert_allclose(post.integral(), whole.integral(), rtol=1e-9)
        np.testing.assert_allclose(post.log_evidence(), whole.log_evidence(), rtol=1e-9)
        np.testing.assert_allclose(post.predict(0, problem.X_new), whole.predict(0, problem.X_new), rtol=1e-8)
        np.testing.assert_array_equal(post.sources, problem.s)
    assert len(start.y) == 3, "the old object is untouched"


def test_the_supplements_stacked_view_gives_the_same_posterior():
    """Section A of the supplement: y_l = h_lᵀ y picks from vector-valued observations of all sources everywhere."""
    rng = np.random.default_rng(8)
    L, N, noise = 3, 5, np.array([0.01, 0.02, 0.03])
    B, kernel = random_B(rng, L), amsbq.RBF(0.4)
    X, s, y = rng.uniform(size=(N, 1)), rng.integers(L, size=N), rng.normal(size=N)
    H = np.zeros((N * L, N))
    H[np.arange(N) * L + s, np.arange(N)] = 1
    K = np.kron(kernel_matrix(kernel, X, X), B)
    G = H.T @ (K + np.kron(np.eye(N), np.diag(noise))) @ H
    x_new = np.array([[0.3]])
    cross = np.kron(kernel_matrix(kernel, x_new, X), B) @ H  # cov[f(x_new), y], (L, N)
    mean, cov = cross @ np.linalg.solve(G, y), B - cross @ np.linalg.solve(G, cross.T)
    post = amsbq.MultiSourceGP([amsbq.Term(B, kernel)], amsbq.Uniform(0, 1), noise=noise).condition(s, X, y)
    for source in range(L):
        got_mean, got_var = post.predict(source, x_new)
        np.testing.assert_allclose((got_mean[0], got_var[0]), (mean[source], cov[source, source]), rtol=1e-9)


def test_one_source_is_ordinary_bayesian_quadrature():
    kernel, measure = amsbq.Matern(2.5, 0.4), amsbq.Uniform(-1, 1)
    X, y = np.linspace(-0.9, 0.9, 5)[:, None], np.arange(5.0)
    z, K = amsbq.kernel_mean(kernel, measure, X), kernel(X, X)
    weights = np.linalg.solve(K, z)
    got = amsbq.MultiSourceGP([amsbq.Term(1.0, kernel)], measure).condition(0, X, y).integral()
    np.testing.assert_allclose(got, (weights @ y, amsbq.kernel_variance(kernel, measure) - weights @ z), rtol=1e-10)


def test_independent_sources_do_not_inform_each_other():
    measure, X = amsbq.Uniform(0, 1), np.linspace(0, 1, 6)[:, None]
    gp = amsbq.MultiSourceGP([amsbq.Term(np.diag([2.0, 3.0]), amsbq.RBF(0.3))], measure)
    alone = amsbq.MultiSourceGP([amsbq.Term(2.0, amsbq.RBF(0.3))], measure).condition(0, X[:3], [1, 2, 3])
    post = gp.condition([0, 0, 0, 1, 1, 1], X, [1, 2, 3, 4, 5, 6])
    np.testing.assert_allclose(post.integral(), alone.integral(), rtol=1e-12)
    assert post.squared_correlation(1, [[0.9]])[0] == 0


def test_the_measure_may_be_a_scipy_distribution():
    gp = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.Matern(1.5, 2.0))], stats.gamma(5, loc=1, scale=4))
    assert gp.measure.bounds.tolist() == [[1, np.inf]]


def test_whitened_vectors_are_kept(monkeypatch):
    """ρ² at one more point is one triangular solve, whatever was asked before; with its gradient, two."""
    problem = PROBLEMS["icm"]
    post = problem.condition()
    post.integral()
    solves = []
    for name in ("solve_lower", "solve_lower_transposed"):
        original = getattr(linalg, name)
        monkeypatch.setattr(
            f"amsbq.gp.linalg.{name}", lambda L, b, original=original, name=name: solves.append(name) or original(L, b)
        )
    post.squared_correlation(0, problem.X_new[:1])
    assert solves == ["solve_lower"]
    post.squared_correlation_and_grad(0, problem.X_new[:1])
    assert solves[1:] == ["solve_lower", "solve_lower_transposed"]
    monkeypatch.setattr(linalg, "factorise", None)
    post.integral()
    assert len(solves) == 3


def test_many_models_at_once_are_each_as_alone():
    """Every quantity of K models with different hyperparameters, against the same models one at a time."""
    problem = PROBLEMS["lmc"]
    rng, L = np.random.default_rng(3), problem.gp.n_sources
    gps = []
    for _ in range(4):
        terms = [
            amsbq.Term(random_B(rng, L), amsbq.RBF([0.8, 1.5] * np.exp(0.3 * rng.normal(size=2)))),
            amsbq.Term(random_B(rng, L), amsbq.RBF(2.5)),
            amsbq.Term(np.diag([9.0, 4.0, 1.0]), amsbq.Constant()),
        ]
        noise, mean = rng.uniform(0.01, 0.02, size=L), rng.normal(size=L)
        gps.append(amsbq.MultiSourceGP(terms, problem.gp.measure, noise=noise, mean=mean))
    data = Data(problem.s, problem.X, problem.y, problem.extra)
    batch = PosteriorBatch.condition(models_of(gps), data)
    new = Data(np.array([1, 0]), problem.X_new[:2], np.array([0.3, -0.2]), np.array([0.0, 0.1]))
    s = np.arange(6) % L
    for posteriors, more in ((batch, data), (batch.extend(new), data.followed_by(new))):
        for k, gp in enumerate(gps):
            alone = gp.condition(more.s, more.X, more.y, more.noise_var)
            X = problem.X_new
            for got, wanted in (
                ([part[k] for part in posteriors.integral(1)], alone.integral(1)),
                ([part[k] for part in posteriors.predict(2, X)], alone.predict(2, X)),
                ([part[k] for part in posteriors.main_effect(0, [1], X[:, 1:])], alone.main_effect(0, 1, X[:, 1:])),
                ([part[k] for part in posteriors.leave_one_out()], alone.leave_one_out()),
                (posteriors.log_evidence()[k], alone.log_evidence()),
                (posteriors.squared_correlation(1, X)[k], alone.squared_correlation(1, X)),
                (posteriors.squared_correlations([0, 2], X)[1][k], alone.squared_correlation(2, X)),
                (posteriors.squared_correlation_and_grad(1, X)[1][k], alone.squared_correlation_and_grad(1, X)[1]),
                (posteriors.squared_correlation_joint(Sites.values(s, X))[k], alone.squared_correlation_joint(s, X)),
                (
                    posteriors.squared_correlation_joint_and_grad(s, X)[1][k],
                    alone.squared_correlation_joint_and_grad(s, X)[1],
                ),
            ):
                np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-10)


def test_joined_models_are_those_that_were_joined():
    """Whatever the numbers of their terms and the kinds of their kernels."""
    problem, rng = PROBLEMS["icm"], np.random.default_rng(0)
    data = Data(problem.s, problem.X, problem.y, problem.extra)
    measure = problem.gp.measure
    gps = [
        amsbq.MultiSourceGP([amsbq.Term(random_B(rng, 2), kernel) for kernel in kernels], measure, noise=noise)
        for kernels, noise in (
            ([amsbq.RBF(0.3)], 0.01),
            ([amsbq.RBF(0.2), amsbq.RBF(0.6), amsbq.Constant()], 0.02),
            ([amsbq.Matern(2.5, 0.4), amsbq.RBF(0.5)], 0.0),
        )
    ]

    def known(batch):
        posteriors = PosteriorBatch.condition(batch, data)
        return *posteriors.integral(), *posteriors.squared_correlation_and_grad(1, problem.X_new)

    joined = known(ModelBatch.joined([gp.batch for gp in gps]))
    for together, *each in zip(joined, *(known(gp.batch) for gp in gps), strict=True):
        np.testing.assert_allclose(together, np.concatenate(each), rtol=1e-12, atol=1e-13)


def test_large_sets_of_observations_are_evaluated_in_parts(monkeypatch):
    problem = PROBLEMS["lmc"]
    whole = problem.condition()
    monkeypatch.setattr("amsbq.gp.gram.LARGEST_ARRAY", 20)
    parts = problem.condition()
    np.testing.assert_allclose(parts.integral(), whole.integral(), rtol=1e-12)
    np.testing.assert_allclose(parts.predict(1, problem.X_new), whole.predict(1, problem.X_new), rtol=1e-10)


def test_gradient_of_a_set_that_needs_jitter():
    """Coinciding points without noise: ρ² and its gradient go with the same jittered posterior."""
    gp = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF(0.5))], amsbq.Uniform(0, 1))
    post = gp.condition(0, np.linspace(0, 1, 9), np.zeros(9))
    X = np.array([[0.33], [0.33], [0.71]])
    _, gradient = post.squared_correlation_joint_and_grad([0, 0, 0], X)
    jittered = post.batch._border(Sites.values(0, X), np.zeros(3)).base
    assert jittered.jitter[0] > post.jitter
    alone = amsbq.Posterior(gp, jittered).squared_correlation_joint_and_grad([0, 0, 0], X)[1]
    np.testing.assert_allclose(gradient, alone, rtol=1e-9)
