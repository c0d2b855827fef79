"""Posteriors on values and gradients, against the dense joint Gaussian and central differences."""

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.gp.data import Data, Sites
from tests.gradients.problems import PROBLEMS
from tests.reference import central_difference

EACH = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
#: without the kernel whose second derivative has a kink, for which a stencil is not precise enough
SMOOTH = pytest.mark.parametrize("problem", [PROBLEMS[n] for n in PROBLEMS if n != "matern-3/2"])
#: stencils of Matérn kernels err where these have no more derivatives; scores of a copula are in doubles
TOLERANCE = {"matern-3/2": 3e-3, "copula": 1e-7}


def tolerance(problem):
    return next((TOLERANCE[name] for name in TOLERANCE if PROBLEMS[name] is problem), 1e-8)


@EACH
def test_covariances_of_values_and_derivatives(problem):
    data = problem.data()
    expected = problem.cov(problem.at(data.sites), problem.at(data.sites))
    sizes = np.sqrt(np.outer(np.diagonal(expected), np.diagonal(expected)))
    got = problem.gp.batch.cov(data.sites, data.sites)[0]
    np.testing.assert_allclose(got / sizes, expected / sizes, atol=tolerance(problem))
    np.testing.assert_allclose(problem.gp.batch.variances(data.sites)[0], np.diagonal(got), rtol=1e-12)
    np.testing.assert_allclose(got, got.T, atol=1e-12 * sizes.max())


@SMOOTH
def test_predictions_and_integrals(problem):
    post, X = problem.posterior(), problem.gp.measure.sobol(4, 1)
    for source in range(2):
        mean, cov = problem.dense(problem.at(Sites.values(source, X)) + problem.integral(source))
        for got, expected in zip(post.predict(source, X), (mean, np.diagonal(cov)), strict=True):
            np.testing.assert_allclose(got, expected[:-1], rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(post.integral(source), (mean[-1], cov[-1, -1]), rtol=1e-6)


@SMOOTH
def test_correlations_of_new_observations_with_the_integral(problem):
    """Of values, of values with their gradients at each location, and of all of them together."""
    batch, X, D = problem.posterior().batch, problem.gp.measure.sobol(3, 1), problem.gp.dim
    for source in range(2):
        s, by = np.full(1 + D, source), np.arange(-1, D)
        every = Sites.blocks(s, by, X)
        _, cov = problem.dense(problem.integral(0) + problem.at(every))
        cov[1:, 1:] += np.diag(problem.noise(every))
        rows = 1 + np.arange(len(every)).reshape(len(X), 1 + D)

        def rho2(some):
            return cov[0, some] @ np.linalg.solve(cov[np.ix_(some, some)], cov[some, 0]) / cov[0, 0]  # noqa: B023

        np.testing.assert_allclose(
            batch.squared_correlation(source, X)[0], [rho2(row[:1]) for row in rows], rtol=1e-6, atol=1e-7
        )
        together = [rho2(row) for row in rows]
        np.testing.assert_allclose(batch.squared_correlation_blocks(s, by, X)[0], together, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(batch.squared_correlation_joint(every)[0], rho2(rows.ravel()), rtol=1e-6)


@EACH
def test_gradients_of_correlations(problem):
    batch, X = problem.posterior().batch, problem.gp.measure.sobol(2, 1)
    s = np.array([1, 0])
    _, gradient = batch.squared_correlation_and_grad(s, X)
    _, joint_gradient = batch.squared_correlation_joint_and_grad(s, X)
    numeric = [
        central_difference(lambda x: batch.squared_correlation(source, x[None])[0, 0], x, 1e-3)  # noqa: B023
        for source, x in zip(s, X, strict=True)
    ]
    np.testing.assert_allclose(gradient[0], numeric, rtol=1e-8, atol=1e-8)
    joint = central_difference(
        lambda x: batch.squared_correlation_joint(Sites.values(s, x.reshape(X.shape)))[0], X.ravel(), 1e-3
    )
    np.testing.assert_allclose(joint_gradient[0].ravel(), joint, rtol=1e-8, atol=1e-8)


@EACH
def test_extension_is_conditioning_at_once(problem):
    data, post = problem.data(), problem.posterior()
    first = problem.gp.condition(problem.s[:2], problem.X[:2], problem.y[:2], problem.extra[:2], problem.gradients[:2])
    rest = (problem.s[2:], problem.X[2:], problem.y[2:], problem.extra[2:], problem.gradients[2:])
    extended = first.extend(*rest)
    np.testing.assert_array_equal(extended.y, data.y)
    np.testing.assert_allclose(extended.integral(), post.integral(), rtol=1e-8)
    np.testing.assert_allclose(extended.predict(0, problem.X), post.predict(0, problem.X), rtol=1e-7)
    assert repr(extended) == f"<Posterior on {' + '.join(map(str, np.bincount(problem.s)))} observations of 2 sources>"


@pytest.mark.parametrize("name", ["rbf with trend and levels", "matern-5/2"])
@pytest.mark.parametrize("input", [0, 1])
def test_main_effects(name, input):
    measure = amsbq.Uniform([0, -1], [1, 1])
    gp = amsbq.MultiSourceGP(PROBLEMS[name].gp.terms, measure, noise=1e-3, mean=[0.3, 0.1])
    problem = PROBLEMS[name]
    post = gp.condition(problem.s, measure.sobol(6, 0), problem.y, problem.extra, problem.gradients)
    t, w = np.polynomial.legendre.leggauss(40)
    other = 1 - input
    x = np.tile([[0.3, 0.3]], (40, 1))
    x[:, other] = measure.bounds[other, 0] + measure.width[other] * (1 + t) / 2
    mean, cov = post.batch.predict_joint(np.zeros(40, dtype=int), x)
    got = post.main_effect(0, input, [0.3])
    np.testing.assert_allclose(got[0], w @ mean[0] / 2, rtol=1e-6)
    np.testing.assert_allclose(got[1], w @ cov[0] @ w / 4, rtol=1e-5)


def test_a_gradient_by_the_users_units_is_one_by_any_others():
    """Other units of inputs and output, and an order of their own, change nothing."""
    problem = PROBLEMS["rbf with trend and levels"]
    scale, shift, size = np.array([7.0, 0.1]), np.array([3.0, -8.0]), 250.0
    terms = []
    for term in problem.gp.terms:
        kernel = term.kernel
        if isinstance(kernel, amsbq.RBF):
            kernel = amsbq.RBF(kernel.lengthscales * scale)
        elif isinstance(kernel, amsbq.Linear):
            kernel = amsbq.Linear(kernel.centre * scale + shift, kernel.scales * scale)
        terms.append(amsbq.Term(size**2 * term.B, kernel))
    low, high = problem.gp.measure.bounds.T * scale[:, None].T + shift
    gp = amsbq.MultiSourceGP(terms, amsbq.Uniform(low, high), size**2 * problem.gp.noise, size * problem.gp.mean)
    order = [3, 1, 5, 0, 2, 4]
    columns = (
        problem.s,
        problem.X * scale + shift,
        size * problem.y,
        size**2 * problem.extra,
        size * problem.gradients / scale,
    )
    got = gp.condition(*(column[order] for column in columns)).integral()
    mean, variance = problem.posterior().integral()
    np.testing.assert_allclose(got, (size * mean, size**2 * variance), rtol=1e-9)


def test_data_with_gradients():
    problem = PROBLEMS["rbf"]
    data = problem.data()
    np.testing.assert_array_equal(data.values.y, problem.y)
    np.testing.assert_array_equal(data.gradients(), problem.gradients)
    np.testing.assert_array_equal(data.first(3).values.y, problem.y[:3])
    np.testing.assert_array_equal(data.first(3).gradients(), problem.gradients[:3])
    parts = list(data.one_by_one(4))
    assert [len(part.y) for part in parts] == [3, 3]
    np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), data.y[-6:])
    thinned = data.thinned(8)
    assert len(thinned.values.y) == 4
    assert len(thinned.y) == 8


@pytest.mark.parametrize(
    ("measure", "gradients", "message"),
    [
        (amsbq.Uniform(0, 1), [[1.0, 2.0]], "shape"),
        (amsbq.Uniform(0, 1), [[np.inf]], "NaN where unknown"),
        (amsbq.Uniform(0, 1), [["steep"]], "number"),
    ],
)
def test_wrong_gradients_are_refused(measure, gradients, message):
    with pytest.raises(ValueError, match=message):
        Data.checked(measure, 1, 0, [[1.0]], [1.0], None, gradients)


def test_derivatives_by_inputs_with_isolated_values_are_not_used():
    measure = amsbq.Product([{0: 0.5, 1: 0.5}, stats.uniform(0, 1), stats.randint(0, 4)])
    data = Data.checked(measure, 1, 0, [[1.0, 0.3, 2.0]], [1.0], None, [[1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(data.gradients(), [[np.nan, 2.0, np.nan]])
    assert len(data.y) == 2  # the value, and one derivative


def test_a_kernel_without_derivatives_is_refused():
    gp = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.Matern(0.5, 1.0))], amsbq.Uniform(0, 1))
    with pytest.raises(ValueError, match=r"Matern\(0.5, 1.0\) have no gradients"):
        gp.condition(0, [0.5], [1.0], gradients=[[1.0]])
