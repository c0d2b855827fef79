"""Main effects and leave-one-out predictions, against numerical integration and against leaving each one out."""

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.gp.data import Sites

B = np.array([[1.0, 0.7], [0.7, 1.3]])
MEASURES = {
    "uniform": amsbq.Uniform([0, -1, 2], [1, 1, 5]),
    "product": amsbq.Product([stats.gamma(5, loc=1, scale=0.2), stats.norm(0, 0.5), stats.uniform(2, 3)]),
    "gaussian": amsbq.Gaussian([0.5, 0.0, 3.0], [[0.2, 0.1, 0.0], [0.1, 0.3, -0.1], [0.0, -0.1, 0.5]]),
    "empirical": amsbq.Empirical(np.random.default_rng(5).normal([0.5, 0.0, 3.0], size=(40, 3))),
}


TERMS = [
    amsbq.Term(B, amsbq.RBF([0.4, 0.9, 1.5])),
    amsbq.Term(0.3 * np.eye(2), amsbq.RBF(1.1)),
    amsbq.Term(np.eye(2), amsbq.Constant()),
    amsbq.Term(0.5 * B, amsbq.Linear([0.5, 0.2, 3.0], [1.0, 2.0, 1.5])),
]


def posterior_of(measure):
    gp = amsbq.MultiSourceGP(TERMS, measure, noise=[1e-3, 1e-2], mean=[0.5, -0.5])
    rng = np.random.default_rng(2)
    X = measure.sample(17, rng)
    s = np.arange(17) % 2
    return gp.condition(s, X, np.sin(3 * X).sum(axis=1) + 0.2 * s, noise_var=rng.uniform(0, 1e-3, size=17))


def nodes_of(measure, inputs):
    """A rule for the distribution of some inputs: points (n, 2) and weights."""
    others = measure.over(inputs)
    if isinstance(others, amsbq.Empirical):
        return others.samples, others.weights
    if isinstance(others, amsbq.Gaussian):
        x, w = np.polynomial.hermite_e.hermegauss(60)
        U, W = np.stack(np.meshgrid(x, x, indexing="ij"), -1).reshape(-1, 2), np.outer(w, w).ravel()
        return others.mean + U @ np.linalg.cholesky(others.cov).T, W / W.sum()
    axes = [others] if isinstance(others, amsbq.Uniform) else others.distributions
    columns, weights = [], []
    for i in range(2):
        low, high = others.bounds[i] if isinstance(others, amsbq.Uniform) else (axes[i].ppf(1e-13), axes[i].isf(1e-13))
        x, w = np.polynomial.legendre.leggauss(120)
        x = 0.5 * (low + high) + 0.5 * (high - low) * x
        density = 1.0 if isinstance(others, amsbq.Uniform) else axes[i].pdf(x)
        columns.append(x)
        weights.append(w * density / np.sum(w * density))
    X = np.stack(np.meshgrid(*columns, indexing="ij"), -1).reshape(-1, 2)
    return X, np.outer(*weights).ravel()


@pytest.mark.parametrize("kind", MEASURES)
@pytest.mark.parametrize("input", [0, 2])
def test_main_effects_are_integrals_of_the_posterior(kind, input):
    measure = MEASURES[kind]
    posterior = posterior_of(measure)
    others = [d for d in range(3) if d != input]
    Y, w = nodes_of(measure, others)
    t = measure.sobol(3, 1)[:, input]
    for source in range(2):
        mean, variance = posterior.main_effect(source, input, t)
        for i, ti in enumerate(t):
            X = np.empty((len(Y), 3))
            X[:, others], X[:, input] = Y, ti
            numeric, _ = posterior.predict(source, X)
            np.testing.assert_allclose(mean[i], w @ numeric, rtol=1e-9, atol=1e-10)
            if i == 0 and len(Y) < 4000:  # the whole covariance of the nodes
                gp, nodes, own = posterior.gp, Sites.values(source, X), posterior.batch.data.sites
                noise = gp.noise[posterior.sources] + posterior.batch.data.noise_var
                G = gp.batch.cov(own, own)[0] + np.diag(noise)
                k = w @ gp.batch.cov(nodes, own)[0]
                dense = w @ gp.batch.cov(nodes, nodes)[0] @ w - k @ np.linalg.solve(G, k)
                np.testing.assert_allclose(variance[i], dense, rtol=1e-7)


@pytest.mark.parametrize("kind", MEASURES)
def test_effects_of_two_inputs_are_integrals_over_the_third(kind):
    measure = MEASURES[kind]
    batch = posterior_of(measure).batch
    every, given = measure.sobol(4, 2), measure.sobol(2, 1)[:, [0, 2]]
    mean, _ = batch.main_effect(1, [0, 2], given)
    for got, at in zip(mean.T, given, strict=True):
        points = np.insert(np.tile(at, (4096, 1)), 1, measure.over([1]).sobol(4096, 0)[:, 0], axis=1)
        numeric = batch.predict(1, points)[0].mean(axis=1)
        np.testing.assert_allclose(got, numeric, rtol=2e-3, atol=1e-3)
    for got, wanted in zip(batch.main_effect(1, [0, 1, 2], every), batch.predict(1, every), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)


def test_the_main_effect_of_the_only_input_is_the_source():
    measure = amsbq.Product([stats.expon()])
    gp = amsbq.MultiSourceGP([amsbq.Term(B, amsbq.Matern(2.5, 0.7))], measure, noise=1e-4)
    posterior = gp.condition([0, 1, 1], [0.2, 0.7, 1.5], [1.0, 2.0, 0.0])
    t = np.linspace(0, 3, 7)
    for got, wanted in zip(posterior.main_effect(1, 0, t), posterior.predict(1, t), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_average_main_effects_are_the_integral():
    posterior = posterior_of(MEASURES["uniform"])
    x, w = np.polynomial.legendre.leggauss(40)
    for input in range(3):
        low, high = MEASURES["uniform"].bounds[input]
        mean, _ = posterior.main_effect(0, input, 0.5 * (low + high) + 0.5 * (high - low) * x)
        np.testing.assert_allclose(0.5 * w @ mean, posterior.integral()[0], rtol=1e-12)


@pytest.mark.parametrize("kind", MEASURES)
def test_leaving_one_out(kind):
    posterior = posterior_of(MEASURES[kind])
    means, variances = posterior.leave_one_out()
    data = posterior.batch.data
    for i in range(0, 17, 4):
        rest = np.arange(17) != i
        without = posterior.gp.condition(data.s[rest], data.X[rest], data.y[rest], noise_var=data.noise_var[rest])
        mean, variance = without.predict(int(data.s[i]), data.X[i : i + 1])
        np.testing.assert_allclose(means[i], mean[0], rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(
            variances[i], variance[0] + posterior.gp.noise[data.s[i]] + data.noise_var[i], rtol=1e-8
        )


def test_bad_inputs():
    posterior = posterior_of(MEASURES["uniform"])
    with pytest.raises(ValueError, match="there is no input 3: there are 3, numbered 0 to 2"):
        posterior.main_effect(0, 3, [0.5])
    with pytest.raises(ValueError, match="outside the support"):
        posterior.main_effect(0, 0, [1.5])
