"""Observations of integrals of sources, against the dense joint Gaussian of points and quadrature rules."""

import numpy as np
import pytest

import amsbq
from amsbq.gp.data import Data, Sites
from amsbq.gp.posterior_batch import PosteriorBatch
from tests.problems import PROBLEMS
from tests.reference import central_difference, kernel_matrix

NAMES = ["icm", "trend of samples", "gamma"]
EACH = pytest.mark.parametrize("problem", [PROBLEMS[name] for name in NAMES], ids=NAMES)


class Dense:
    """Sources as a joint Gaussian of functionals (source, nodes, weights): points and integrals alike."""

    def __init__(self, problem):
        self.terms, self.mean, self.noise = problem.gp.terms, problem.gp.mean, problem.gp.noise
        self.rule = problem.joint.nodes, problem.joint.weights

    def at(self, s, X):
        return [(source, x[None], np.ones(1)) for source, x in zip(s, X, strict=True)]

    def integral(self, source):
        return [(source, *self.rule)]

    def cov(self, rows, columns):
        out = np.zeros((len(rows), len(columns)))
        for i, (s, X, w) in enumerate(rows):
            for j, (s2, X2, w2) in enumerate(columns):
                out[i, j] = sum(t.B[s, s2] * (w @ kernel_matrix(t.kernel, X, X2) @ w2) for t in self.terms)
        return out

    def posterior(self, data, observed, wanted):
        G = self.cov(observed, observed) + np.diag(data.noise_var + self.noise[data.s] * ~data.of_integral)
        k, r = self.cov(observed, wanted), data.y - self.mean[data.s]
        means = np.array([self.mean[s] for s, *_ in wanted])
        return means + k.T @ np.linalg.solve(G, r), self.cov(wanted, wanted) - k.T @ np.linalg.solve(G, k)


def observed(problem):
    """Observations with the integral of the last source in the middle, their posterior, and the dense calculation."""
    last, dense = problem.gp.n_sources - 1, Dense(problem)
    points = Data(problem.s, problem.X, problem.y, problem.extra)
    known = Data.of_integrals([last], [0.3], [1e-3], problem.gp.dim)
    start, rest = points.first(5), points.rows(slice(5, None))
    data = start.followed_by(known).followed_by(rest)
    functionals = dense.at(start.s, start.X) + dense.integral(last) + dense.at(rest.s, rest.X)
    batch = PosteriorBatch.condition(problem.gp.batch, data)
    return data, batch, dense, lambda wanted: dense.posterior(data, functionals, wanted)


@EACH
def test_integrals_and_predictions(problem):
    _, batch, dense, posterior = observed(problem)
    for target in range(problem.gp.n_sources):
        mean, cov = posterior(dense.integral(target))
        np.testing.assert_allclose([v[0] for v in batch.integral(target)], [mean[0], cov[0, 0]], rtol=1e-7)
        mean, cov = posterior(dense.at(np.full(6, target), problem.X_new))
        got = batch.predict(target, problem.X_new)
        np.testing.assert_allclose(got[0][0], mean, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(got[1][0], np.diagonal(cov), rtol=1e-7, atol=1e-10)


@EACH
def test_correlations_and_their_gradients(problem):
    _, batch, dense, posterior = observed(problem)
    s_new = np.arange(6) % problem.gp.n_sources
    _, cov = posterior(dense.integral(0) + dense.at(s_new, problem.X_new))
    cov[1:, 1:] += np.diag(problem.gp.noise[s_new])
    got, gradient = batch.squared_correlation_and_grad(s_new, problem.X_new)
    np.testing.assert_allclose(got[0], cov[0, 1:] ** 2 / (cov[0, 0] * np.diagonal(cov)[1:]), rtol=1e-6, atol=1e-12)
    numeric = [
        central_difference(lambda x: batch.squared_correlation(s, x[None])[0, 0], x, 1e-4)  # noqa: B023
        for s, x in zip(s_new, problem.X_new, strict=True)
    ]
    np.testing.assert_allclose(gradient[0], numeric, rtol=1e-6, atol=1e-8)
    joint, gradient = batch.squared_correlation_joint_and_grad(s_new, problem.X_new)
    expected = cov[0, 1:] @ np.linalg.solve(cov[1:, 1:], cov[1:, 0]) / cov[0, 0]
    np.testing.assert_allclose(joint[0], expected, rtol=1e-6)
    numeric = central_difference(
        lambda X: batch.squared_correlation_joint(Sites.values(s_new, X.reshape(problem.X_new.shape)))[0],
        problem.X_new.ravel(),
        1e-4,
    )
    np.testing.assert_allclose(gradient[0].ravel(), numeric, rtol=1e-6, atol=1e-8)


@EACH
def test_extension_is_conditioning_at_once(problem):
    data, batch, *_ = observed(problem)
    start, rest = data.first(6), data.rows(slice(6, None))
    extended = PosteriorBatch.condition(problem.gp.batch, start).extend(rest)
    np.testing.assert_allclose(extended.integral(), batch.integral(), rtol=1e-8)
    np.testing.assert_allclose(extended.predict(0, problem.X_new), batch.predict(0, problem.X_new), rtol=1e-7)


def test_main_effects():
    """The main effect of the first of two inputs, against averages over the second."""
    measure = amsbq.Uniform([0, 0], [1, 2])
    B = np.array([[1.0, 0.6], [0.6, 0.8]])
    terms = [amsbq.Term(B, amsbq.RBF([0.4, 0.7])), amsbq.Term(0.3 * B, amsbq.Linear([0.4, 0.9], [1.0, 2.0]))]
    gp = amsbq.MultiSourceGP(terms, measure, noise=1e-3)
    X = measure.sobol(9, 0)
    data = Data(np.arange(9) % 2, X, np.sin(4 * X).sum(axis=1), np.zeros(9))
    batch = PosteriorBatch.condition(gp.batch, data.followed_by(Data.of_integrals([1], [0.2], [1e-4], 2)))
    t, w = np.polynomial.legendre.leggauss(40)
    x = np.column_stack([np.full(40, 0.3), 1 + t])
    mean, cov = batch.predict_joint(np.zeros(40, dtype=int), x)
    got = batch.main_effect(0, [0], np.array([[0.3]]))
    np.testing.assert_allclose(got[0][0], mean[0] @ w / 2, rtol=1e-10)
    np.testing.assert_allclose(got[1][0], w @ cov[0] @ w / 4, rtol=1e-7)


@pytest.mark.parametrize("given", [[1], [2], [1, 2]])
def test_correlations_once_other_sources_are_known_at_the_same_location(given):
    """Against the joint correlation of both, since (1 - ρ²) of a set is the product of those of its members in turn."""
    problem = PROBLEMS["lmc"]
    data = Data(problem.s, problem.X, problem.y, problem.extra)
    batch = PosteriorBatch.condition(problem.gp.batch, data)
    got = batch.squared_correlations([0], problem.X_new, given)[0][0]
    for x, rho2 in zip(problem.X_new, got, strict=True):
        known, all_of_them = (
            batch.squared_correlation_joint(Sites.values(np.array(s), np.tile(x, (len(s), 1))))[0]
            for s in (given, [*given, 0])
        )
        np.testing.assert_allclose(1 - rho2, (1 - all_of_them) / (1 - known), rtol=1e-9)
