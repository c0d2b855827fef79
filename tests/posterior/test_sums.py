"""Sums over points in place of integrals, and sums of processes, against dense Gaussian algebra."""

import numpy as np

import amsbq
from amsbq.gp.data import Data, Sites
from amsbq.gp.posterior_batch import PosteriorBatch
from amsbq.inference.particles import Particles
from amsbq.posterior.latent import Latent, Members, Process
from amsbq.posterior.sums import summed_over

SQUARE = amsbq.Uniform([0, 0], [1, 1])
GP = amsbq.MultiSourceGP(
    [
        amsbq.Term([[1.0, 0.8], [0.8, 1.2]], amsbq.RBF([0.4, 0.7])),
        amsbq.Term([[0.3, 0.1], [0.1, 0.2]], amsbq.Constant()),
    ],
    SQUARE,
    noise=[1e-4, 2e-4],
    mean=[0.3, -0.2],
)
RNG = np.random.default_rng(0)
S, X, Y = RNG.integers(0, 2, 9), RNG.uniform(size=(9, 2)), RNG.normal(size=9)


def covariance(s, x, t, z):
    """Of values, by the definition of the process."""
    return sum(term.B[np.ix_(s, t)] * term.kernel(x, z) for term in GP.terms)


def test_an_observed_sum_is_that_of_a_dense_gaussian():
    points, weights, value, error = RNG.uniform(size=(6, 2)), RNG.normal(size=6), 0.7, 1e-3
    models = summed_over(GP.batch, points, weights, SQUARE)
    known = Data.of_integrals([1], [value], [error], 2)
    found = PosteriorBatch.condition(models, Data(S, X, Y, np.zeros(9)).followed_by(known))
    ones, at = np.ones(6, dtype=int), RNG.uniform(size=(4, 2))
    to_sum = covariance(S, X, ones, points) @ weights
    variance = weights @ covariance(ones, points, ones, points) @ weights + error
    K = np.block([[covariance(S, X, S, X) + np.diag(GP.noise[S]), to_sum[:, None]], [to_sum[None], variance]])
    residual = np.append(Y - GP.mean[S], value - weights.sum() * GP.mean[1])
    for source in (0, 1):
        of = np.full(4, source)
        k = np.vstack([covariance(S, X, of, at), (covariance(of, at, ones, points) @ weights)[None]])
        mean, var = found.predict(source, at)
        np.testing.assert_allclose(mean[0], GP.mean[source] + k.T @ np.linalg.solve(K, residual), rtol=1e-9)
        expected = np.diag(covariance(of, at, of, at)) - np.einsum("ij,ij->j", k, np.linalg.solve(K, k))
        np.testing.assert_allclose(var[0], expected, rtol=1e-8)
    np.testing.assert_allclose(
        models.prior_mean(Sites(np.array([1]), np.full((1, 2), np.nan), np.array([-1]))), [[weights.sum() * -0.2]]
    )


def test_a_sum_of_processes_has_the_sums_of_their_moments():
    data = [Data(S, X, RNG.normal(size=9), np.zeros(9)) for _ in range(2)]
    processes = [Process.of(Particles.given(GP), each) for each in data]
    loadings, centre, rest, error = np.array([2.0, -0.5]), 3.0, 0.04, 0.01
    latent = Latent.sum_of(Members.of(processes), processes, loadings, centre, rest, error)
    at = RNG.uniform(size=(5, 2))
    posteriors = [GP.condition(S, X, each.y) for each in data]
    for source in (0, 1):
        moments = [posterior.predict(source, at) for posterior in posteriors]
        mean, variance = latent.predict(source, at)
        level, spread = latent.levels[source], latent.spreads[source]
        expected = centre + sum(load * m for load, (m, _) in zip(loadings, moments, strict=True))
        np.testing.assert_allclose(level + spread * mean, np.tile(expected, (len(latent), 1)), rtol=1e-12)
        expected = sum(load**2 * v for load, (_, v) in zip(loadings, moments, strict=True))
        left = rest * spread**2 / latent.spreads[0] ** 2  # what is left is in the units of each source
        np.testing.assert_allclose(spread**2 * variance, np.tile(expected + left, (len(latent), 1)), rtol=1e-10)
    means, stds = latent.integral()
    integrals = [posterior.integral() for posterior in posteriors]
    mean = centre + sum(load * m for load, (m, _) in zip(loadings, integrals, strict=True))
    variance = error + sum(load**2 * v for load, (_, v) in zip(loadings, integrals, strict=True))
    np.testing.assert_allclose(latent.levels[0] + latent.spreads[0] * means, mean, rtol=1e-12)
    np.testing.assert_allclose(latent.spreads[0] * stds, np.sqrt(variance), rtol=1e-10)
    joint_mean, joint = latent.predict_joint(np.zeros(5, dtype=int), at)
    np.testing.assert_allclose(np.einsum("kii->ki", joint), latent.predict(0, at)[1], rtol=1e-8)
    np.testing.assert_allclose(joint_mean, latent.predict(0, at)[0], rtol=1e-10)


def test_known_integrals_of_given_data():
    """`estimate` with the integral of a source, against the posterior on that observation."""
    found = amsbq.estimate(S, X, Y, SQUARE, model=GP, integrals={1: (0.4, 1e-4)})
    data = Data(S, X, Y, np.zeros(9)).followed_by(Data.of_integrals([1], [0.4], [1e-4], 2))
    mean, variance = PosteriorBatch.condition(GP.batch, data).integral()
    np.testing.assert_allclose([found.mean, found.std], [mean[0], np.sqrt(variance[0])], rtol=1e-8)


def test_the_known_integral_of_a_non_negative_source_counts():
    """With f = g²/2 for a given process g, to first order: against joint draws of g, weighted by the observation."""
    gp = amsbq.MultiSourceGP([amsbq.Term([[1.0, 0.999], [0.999, 1.0]], amsbq.RBF([0.5, 0.5]))], SQUARE, mean=3.0)
    s, x = np.array([0, 0, 1, 1, 0, 1, 1]), SQUARE.sobol(8, 3)[:7]
    g = 3 + np.sin(3 * x[:, 0]) * x[:, 1]
    value, error = 5.2, 0.05
    options = {"model": gp, "output_range": (0, np.inf)}
    without = amsbq.estimate(s, x, g**2 / 2, SQUARE, **options)
    found = amsbq.estimate(s, x, g**2 / 2, SQUARE, integrals={1: (value, error**2)}, **options)
    n = 144
    points = SQUARE.sobol(256, 5)[:n]
    posterior = gp.condition(s, x, g).batch
    means, covariances = posterior.predict_joint(np.repeat([0, 1], n), np.tile(points, (2, 1)))
    values, vectors = np.linalg.eigh(covariances[0])
    root = vectors * np.sqrt(np.maximum(values, 0))
    draws = means[0] + np.random.default_rng(0).normal(size=(20_000, 2 * n)) @ root.T
    first, second = (0.5 * draws[:, part] ** 2 for part in (slice(n), slice(n, None)))
    first, second = first.mean(axis=1), second.mean(axis=1)
    weights = np.exp(-0.5 * ((second - value) / error) ** 2)
    mean = np.average(first, weights=weights)
    std = np.sqrt(np.average((first - mean) ** 2, weights=weights))
    assert found.std < 0.9 * without.std
    assert abs(found.mean - mean) < 0.15 * without.std
    assert abs(np.log(found.std / std)) < 0.2


def test_a_linearised_integral_has_the_mean_of_a_fine_sum():
    """Around the mean of g it is E[∫ g²/2], within the error of the nodes, for an integrand with a narrow peak."""
    cube = amsbq.Uniform([0] * 4, [1] * 4)
    gp = amsbq.MultiSourceGP([amsbq.Term([[100.0, 99.0], [99.0, 100.0]], amsbq.RBF([1.5] * 4))], cube, mean=3.0)
    x = cube.sobol(64, 3)
    s = np.repeat([0, 1], [4, 60])
    values = 50 * np.exp(-3 * x.sum(axis=1))
    it = amsbq.Integrator([amsbq.Source()] * 2, cube, model=gp, output_range=(0, np.inf), initial=[])
    for each in zip(s, x, values, strict=True):
        it.observe(*each)
    component = it.learner.posterior.components[0]
    latent, nodes = component.latent, component.with_factors(component.nodes, 1)
    at, b, constant, left = component.scaled(1).linearised(latent, nodes, 1)
    around = constant + b @ (latent.weights @ latent.predict(1, at)[0])
    g = [latent.levels[1] + latent.spreads[1] * each for each in latent.predict(1, cube.sobol(2**15, 9))]
    fine = np.mean(latent.weights @ (g[0] ** 2 + g[1] * latent.spreads[1])) / 2
    assert abs(around - fine) < 3 * np.sqrt(left)
    assert np.sqrt(left) < 0.05 * fine
