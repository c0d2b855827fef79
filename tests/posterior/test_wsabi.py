"""One source with given hyperparameters: WSABI, against dense formulas and Gauss rules that share no code with it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import amsbq
from amsbq.design.evaluations import Option

SCALE, VARIANCE, MEAN = 0.23, 1.7, 0.8
NODES, WEIGHTS = np.polynomial.legendre.leggauss(120)
T, W = (NODES + 1) / 2, WEIGHTS / 2  # on [0, 1]
X = np.array([0.05, 0.3, 0.42, 0.7, 0.95])
F = 0.2 + np.exp(-0.5 * ((X - 0.4) / 0.15) ** 2)


def kernel(a, b):
    return VARIANCE * np.exp(-0.5 * (a[:, None] - b) ** 2 / SCALE**2)


def dense_posterior(x, f):
    """Return mean (n,) and covariance (n, n) of g = √(2 (f - low)) at the nodes, low = 0.1."""
    gram, cross = kernel(x, x), kernel(T, x)
    mean = MEAN + cross @ np.linalg.solve(gram, np.sqrt(2 * (f - 0.1)) - MEAN)
    return mean, kernel(T, T) - cross @ np.linalg.solve(gram, cross.T)


def model(measure):
    return amsbq.MultiSourceGP([amsbq.Term(VARIANCE, amsbq.RBF(SCALE))], measure, mean=MEAN)


def test_the_moment_matched_integral():
    m, C = dense_posterior(X, F)
    mean = 0.1 + W @ (m**2 + np.diag(C)) / 2
    variance = W @ (np.outer(m, m) * C + C**2 / 2) @ W
    found = amsbq.estimate(0, X, F, amsbq.Uniform(0, 1), model=model(amsbq.Uniform(0, 1)), output_range=(0.1, np.inf))
    assert_allclose([found.mean, found.std], [mean, np.sqrt(variance)], rtol=1e-8)


def test_rates_are_those_of_the_linearised_process():
    """ρ² of ∫ m(x) g(x) dx with an observation of g, m its posterior mean: WSABI-L."""
    measure, new = amsbq.Uniform(0, 1), np.array([0.15, 0.5, 0.8])
    it = amsbq.Integrator(lambda x: 0.0, measure, model=model(measure), output_range=(0.1, np.inf))
    for x, f in zip(X, F, strict=True):
        it.observe(0, x, f)
    m, C = dense_posterior(X, F)
    with_new = kernel(T, new) - kernel(T, X) @ np.linalg.solve(kernel(X, X), kernel(X, new))
    left = VARIANCE - np.sum(kernel(new, X).T * np.linalg.solve(kernel(X, X), kernel(X, new)), axis=0)
    rho2 = ((W * m) @ with_new) ** 2 / left / ((W * m) @ C @ (W * m))
    assert_allclose(it.rates(new[:, None])[0], -np.log1p(-rho2), rtol=1e-7)


def test_gradients_of_rates():
    measure = amsbq.Uniform([0, 0], [1, 1])
    gp = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF(0.4))], measure, mean=1.0)
    it = amsbq.Integrator(lambda x: 0.0, measure, model=gp, output_range=(-np.inf, 2.0))
    for x in measure.sobol(6, 1):
        it.observe(0, x, 2 - np.exp(-4 * np.sum((x - 0.3) ** 2)))
    rate = it.policy.next_rate(it.learner.posterior)
    points, step = measure.sobol(5, 4) * 0.8 + 0.1, 1e-5
    _, gradient = rate.value_and_grad(0, points)
    for d in range(2):
        shift = step * np.eye(2)[d]
        central = (rate.values([Option(0)], points + shift)[0] - rate.values([Option(0)], points - shift)[0]) / (
            2 * step
        )
        assert_allclose(gradient[:, d], central, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("dim", [2, 3])
def test_sums_over_points_agree_with_products_of_rules(dim):
    """The error of the sum over low-discrepancy points is in the bar, and small compared with it."""
    measure = amsbq.Uniform([0] * dim, [1] * dim)
    gp = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF(0.5))], measure, mean=0.5)
    x = measure.sobol(8, 2)
    f = np.exp(-2 * np.sum((x - 0.4) ** 2, axis=1))
    t, w = np.polynomial.legendre.leggauss(14)
    grid = np.stack(np.meshgrid(*[(t + 1) / 2] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    weights = np.prod(np.stack(np.meshgrid(*[w / 2] * dim, indexing="ij"), axis=-1).reshape(-1, dim), axis=1)

    def k(a, b):
        return np.exp(-2 * ((a[:, None] - b) ** 2).sum(axis=2))

    cross, gram = k(grid, x), k(x, x)
    m = 0.5 + cross @ np.linalg.solve(gram, np.sqrt(2 * f) - 0.5)
    C = k(grid, grid) - cross @ np.linalg.solve(gram, cross.T)
    mean = weights @ (m**2 + np.diag(C)) / 2
    std = np.sqrt(weights @ (np.outer(m, m) * C + C**2 / 2) @ weights)
    found = amsbq.estimate(0, x, f, measure, model=gp, output_range=(0, np.inf))
    assert abs(found.mean - mean) < 0.05 * std
    assert_allclose(found.std, std, rtol=0.05)
