"""Quadratics that are fitted to logarithms, nodes around their peaks, and evidences that are known in closed form."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import amsbq
from amsbq.gp.data import Data
from amsbq.posterior.nodes import Nodes
from amsbq.posterior.peak import Quadratic
from amsbq.posterior.transforms import PEAK, OutputRange, Transform

BOX = amsbq.as_measure([(0.0, 1.0), (-2.0, 3.0)])
NORMAL = amsbq.as_measure([stats.norm(1.0, 2.0), stats.norm(0.0, 0.5)])
ONE = amsbq.as_measure([(0.0, 1.0)])


def ridge(angle=0.9, widths=(0.003, 0.02), at=(0.35, 0.4)):
    """Return the logarithm of a narrow, tilted Gaussian density, and its precision."""
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    P = turn.T @ np.diag(1 / np.square(widths)) @ turn
    return lambda X: -0.5 * np.einsum("nd,de,ne->n", X - at, P, X - at) - 3.0, P


def data_of(f, measure, n, seed=0, source=0):
    X = measure.sobol(n, seed)
    return Data(np.full(n, source), X, f(X), np.zeros(n))


@pytest.mark.parametrize("measure", [BOX, NORMAL])
def test_a_quadratic_is_found_however_narrow(measure):
    f, P = ridge()
    fit = Quadratic.fitted(measure, data_of(f, measure, 8), 1)
    X = measure.sobol(50, 3)
    s = np.zeros(50, dtype=int)
    assert_allclose(fit.trend.values(measure, s, X) + fit.height, f(X), rtol=1e-9)
    assert_allclose(fit.trend.gradients(measure, s, X), -(X - (0.35, 0.4)) @ P, rtol=1e-6, atol=1e-6 * np.abs(P).max())
    again = Quadratic.from_dict(json.loads(json.dumps(fit.trend.to_dict())))
    assert_allclose(again.values(measure, s, X), fit.trend.values(measure, s, X), rtol=0)


def test_too_few_values_have_fewer_coefficients_and_then_none():
    f, _ = ridge()
    assert Quadratic.fitted(BOX, data_of(f, BOX, 7), 1).trend.curvatures[0, 0, 1] == 0
    assert Quadratic.fitted(BOX, data_of(f, BOX, 5), 1) is None
    assert Quadratic.fitted(BOX, data_of(lambda X: -f(X), BOX, 12), 1) is None  # there is no peak
    assert Quadratic.fitted(BOX, data_of(lambda X: np.zeros(len(X)), BOX, 12), 1) is None


def test_a_source_with_few_values_has_the_curvature_of_another_one():
    (f, _), (g, _) = ridge(), ridge(0.7, (0.004, 0.03), (0.3, 0.5))
    few, many = data_of(f, BOX, 3), data_of(g, BOX, 20, 1, source=1)
    data = Data(*(np.concatenate(both) for both in ((few.s, many.s), (few.X, many.X), (few.y, many.y))), np.zeros(23))
    trend = Quadratic.fitted(BOX, data, 2).trend
    assert_allclose(trend.curvatures[0], trend.curvatures[1])
    assert_allclose(trend.slopes[0], trend.slopes[1])
    assert trend.constants[0] != trend.constants[1]


@pytest.mark.parametrize("measure", [BOX, NORMAL])
def test_nodes_around_a_peak_integrate_it(measure):
    f, P = ridge()
    fit = Quadratic.fitted(measure, data_of(f, measure, 12), 1)
    nodes = Nodes.of(measure, peak=fit.trend.peak(measure, 0))
    values = np.exp(fit.trend.values(measure, np.zeros(len(nodes.X), dtype=int), nodes.X))
    mean, error = nodes.averages(values[None])
    exact = np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(P)[1] - np.log(5.0) - 3.0
    if measure is NORMAL:
        m, S = np.array([1.0, 0.0]), np.diag([4.0, 0.25])
        C = S + np.linalg.inv(P)
        d = m - (0.35, 0.4)
        prior = -0.5 * d @ np.linalg.solve(C, d) - 0.5 * np.linalg.slogdet(C)[1]
        exact = prior - 0.5 * np.linalg.slogdet(P)[1] - 3.0
    assert_allclose(np.log(mean[0]) + fit.height, exact, atol=0.01)
    assert abs(np.log(mean[0]) + fit.height - exact) < 5 * np.sqrt(error[0]) / mean[0]
    assert_allclose(nodes.averages(np.ones((1, len(nodes.X))))[0], 1.0, atol=0.02)  # of the measure, too
    assert_allclose(nodes.averages(nodes.X[None, :, 0])[0], measure.moments[0][0], atol=0.1)


def test_panels_around_a_peak_of_one_input():
    fit = Quadratic.fitted(ONE, data_of(lambda X: -1e8 * (X[:, 0] - 0.4) ** 2, ONE, 6), 1)
    nodes = Nodes.of(ONE, peak=fit.trend.peak(ONE, 0))
    factors = np.exp(fit.trend.values(ONE, np.zeros(len(nodes.X), dtype=int), nodes.X))
    for n, moment in enumerate((1.0, 0.0, 0.5e-8)):
        found, _ = nodes.averages(((nodes.X[:, 0] - 0.4) ** n * factors)[None])
        assert_allclose(found[0], moment * np.sqrt(np.pi * 1e-8), rtol=1e-6, atol=1e-14)


def test_derivatives_follow_the_values():
    known = OutputRange(-np.inf, np.inf, log=True)

    def f(X):
        return ridge()[0](X) + 2 * np.sin(3 * X[:, 0]) * X[:, 1]

    X, h = BOX.sobol(6, 1), 1e-6
    fit = Quadratic.fitted(BOX, data_of(f, BOX, 15), 1)
    transform = Transform(PEAK, known, fit.height, 0.0, fit.trend)

    def g(X):
        return transform.transformed(Data(np.zeros(len(X), int), X, f(X), np.zeros(len(X))), [0.0], BOX).y

    def slope(of, d):
        step = h * np.eye(2)[d]
        return (of(X + step) - of(X - step)) / (2 * h)

    gradients = np.column_stack([slope(f, d) for d in range(2)])
    data = Data(np.zeros(6, int), X, f(X), np.zeros(6)).with_gradients(BOX, gradients)
    found = transform.transformed(data, [0.0], BOX).gradients()
    assert_allclose(found, np.column_stack([slope(g, d) for d in range(2)]), rtol=1e-4, atol=1e-4 * np.abs(found).max())


@pytest.mark.parametrize("curvature", [1e2, 1e6, 1e10])
def test_a_gaussian_likelihood_is_exact_from_a_handful_of_evaluations(curvature):
    result = amsbq.integrate(lambda x: -curvature * (x[0] - 0.4) ** 2, {"x": (0, 1)}, budget=8, log=True)
    assert_allclose(result.mean, 0.5 * np.log(np.pi / curvature), atol=1e-5)
    x = np.array([[0.4], [0.9]])
    assert_allclose(result.predict(0, x)[0], [0.0, -curvature / 4], atol=1e-6 * curvature)


def test_a_correlated_likelihood_with_a_coarse_one():
    exact, P = ridge(0.7, (0.02, 0.2), (0.3, -0.2))
    coarse, _ = ridge(0.75, (0.022, 0.22), (0.31, -0.18))
    sources = [lambda x: exact(x[None])[0], amsbq.Source(lambda x: coarse(x[None])[0], cost=0.05)]
    result = amsbq.integrate(sources, {"a": stats.norm(), "b": stats.norm()}, budget=9, log=True)
    C = np.eye(2) + np.linalg.inv(P)
    m = np.array([0.3, -0.2])
    truth = -0.5 * m @ np.linalg.solve(C, m) - 0.5 * np.linalg.slogdet(C)[1] - 0.5 * np.linalg.slogdet(P)[1] - 3.0
    assert abs(result.mean - truth) < 0.05
    assert abs(result.mean - truth) < 4 * result.std


def test_a_journal_keeps_the_quadratic(tmp_path):
    journal = tmp_path / "run.jsonl"
    result = amsbq.integrate(lambda x: -1e5 * (x[0] - 0.4) ** 2, {"x": (0, 1)}, budget=7, log=True, journal=journal)
    again = amsbq.read_result(journal)
    assert again.mean == result.mean
    assert_allclose(again.predict(0, [[0.7]])[0], result.predict(0, [[0.7]])[0], rtol=1e-9)


def test_logarithms_that_have_no_peak_are_as_before():
    result = amsbq.integrate(lambda x: 3 * np.sin(6 * x[0]) + 4 * x[0] ** 2, {"x": (0, 1)}, budget=9, log=True)
    t = np.linspace(0, 1, 100001)
    truth = np.log(np.mean(np.exp(3 * np.sin(6 * t) + 4 * t**2)))
    assert abs(result.mean - truth) < 4 * max(result.std, 0.01)


def test_inputs_without_an_order_have_no_part_in_the_quadratic():
    measure = amsbq.as_measure({"x": (0.0, 1.0), "which": {"a": 0.5, "b": 0.5}})
    trend, height, _ = Quadratic.fitted(measure, data_of(lambda X: -1e3 * (X[:, 0] - 0.4) ** 2, measure, 8), 1)
    X, s = measure.sobol(20, 1), np.zeros(20, dtype=int)
    assert_allclose(trend.values(measure, s, X) + height, -1e3 * (X[:, 0] - 0.4) ** 2, rtol=1e-9, atol=1e-9)
    assert_allclose(trend.gradients(measure, s, X)[:, 1], 0.0, atol=0)
    again = Quadratic.from_dict(json.loads(json.dumps(trend.to_dict(), allow_nan=False)))
    assert_allclose(again.values(measure, s, X), trend.values(measure, s, X), rtol=0)
    only = amsbq.as_measure({"which": {"a": 0.5, "b": 0.5}})
    assert Quadratic.fitted(only, data_of(lambda X: X[:, 0] - 2.0, only, 8), 1) is None
