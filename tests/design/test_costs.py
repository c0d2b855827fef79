"""Costs: known, given by functions, and learned from what evaluations took."""

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.design.costs import ConstantCost, CostFunction, LearnedCosts, MeasuredCost, SourceCosts
from amsbq.inference.structures import Fidelities
from tests.reference import central_difference

UNIT = amsbq.Uniform(0, 1)
PLANE = amsbq.Product([stats.gamma(5, loc=1, scale=4), stats.norm(0, 2)])


class WithGradient:
    def __call__(self, x):
        return 1 + x[0] ** 2 + np.exp(x[1])

    def gradient(self, x):
        return np.array([2 * x[0], np.exp(x[1])])


def measured(measure, cost, n=12, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = measure.sobol(n, rng)
    costs = np.array([cost(x) for x in X]) * np.exp(noise * rng.normal(size=n))
    return MeasuredCost(measure, LearnedCosts(measure, np.zeros(n, dtype=np.intp), X, costs))


COSTS = {
    "constant": ConstantCost(PLANE, 3.0),
    "function": CostFunction(PLANE, lambda x: 1 + x[0] ** 2 + np.exp(x[1])),
    "function with a gradient": CostFunction(PLANE, WithGradient()),
    "measured": measured(PLANE, WithGradient()),
    "not yet measured": MeasuredCost(PLANE, None, otherwise=2.5),
}


@pytest.mark.parametrize("name", COSTS)
def test_gradients(name):
    cost, X = COSTS[name], PLANE.sobol(5, 1)
    values, gradients = cost.effective_and_grad(X)
    np.testing.assert_allclose(values, cost.effective(X), rtol=1e-12)
    for x, gradient in zip(X, gradients, strict=True):
        numeric = central_difference(lambda z: cost.effective(z[None])[0], x, 1e-3)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-7)


def test_at_the_edge_of_the_support_differences_stay_inside():
    asked = []

    def cost(x):
        asked.append(float(x[0]))
        return 1 + x[0]

    _, gradient = CostFunction(UNIT, cost).effective_and_grad(np.array([[0.0], [1.0]]))
    np.testing.assert_allclose(gradient, [[1.0], [1.0]], rtol=1e-6)
    assert min(asked) >= 0
    assert max(asked) <= 1


def test_expectations_of_a_measured_cost_are_those_of_a_log_normal():
    cost = measured(UNIT, lambda x: 0.1 * np.exp(2 * x[0]), n=4, noise=0.3)
    x = np.array([[0.37]])
    mean, variance = cost.learned.posterior.predict(0, x)  # of the log cost without noise, with zero for its level
    variance = variance + cost.learned.posterior.models.noise[0]
    log_cost = (
        cost.learned.average + mean[0] + np.sqrt(variance[0]) * stats.norm.ppf((np.arange(400_000) + 0.5) / 400_000)
    )
    np.testing.assert_allclose(cost.effective(x)[0], 1 / np.mean(np.exp(-log_cost)), rtol=1e-4)
    np.testing.assert_allclose(cost.expected(x)[0], np.mean(np.exp(log_cost)), rtol=1e-4)


def test_a_cost_that_varies_by_a_hundred_is_learned():
    X = np.linspace(0, 1, 50)[:, None]
    cost = measured(UNIT, lambda x: 10 ** (2 * x[0] - 3), n=10, noise=0.02)
    np.testing.assert_allclose(cost.expected(X), 10 ** (2 * X[:, 0] - 3), rtol=0.15)


@pytest.mark.parametrize("n", [1, 2, 20])
def test_a_constant_cost_is_learned(n):
    cost = measured(UNIT, lambda x: 7e-3, n=n, noise=1e-3)
    X = np.linspace(0, 1, 50)[:, None]
    tolerance = {1: 0.6, 2: 0.3, 20: 0.01}[n]
    np.testing.assert_allclose(cost.effective(X), 7e-3, rtol=tolerance)


def test_units_of_cost_do_not_matter():
    X = np.linspace(0, 1, 20)[:, None]
    seconds, milliseconds = (measured(UNIT, lambda x, u=u: u * np.exp(x[0]), noise=0.1) for u in (1.0, 1e3))
    np.testing.assert_allclose(milliseconds.effective(X), 1e3 * seconds.effective(X), rtol=1e-5)


def test_before_it_is_known_a_cost_is_guessed_and_nothing_set_aside():
    prices = SourceCosts(["measured", "measured", 0.5], ["a", "b", "c"], UNIT, {})
    x = np.array([0.5])
    assert prices.expected(0, x) == 0
    assert prices.costs[0].effective(x[None]) == 1
    prices.paid(1, x, 20.0)
    assert prices.costs[0].effective(x[None]) == pytest.approx(20)  # as expensive as the most expensive that is known
    assert prices.expected(0, x) == pytest.approx(20)
    assert [prices.unknown(source) for source in range(3)] == [True, False, False]
    np.testing.assert_allclose(prices.costs[1].effective(x[None]), 20, rtol=0.05)
    assert prices.expected(2, x) == 0.5
    prices.paid(0, x, 3.0)
    np.testing.assert_allclose(prices.expected(0, x), 3, rtol=0.05)


GRID = Fidelities(("h", "dt"), tuple((h, dt) for h in (1 / 32, 1 / 16, 1 / 8) for dt in (0.1, 0.4)))


def of_level(h, dt, x):
    return 3e-4 * h**-2.0 * dt**-1.0 * np.exp(x[0])


def test_costs_of_levels_are_learned_together():
    """Those of levels that were never evaluated, too: a power of each knob."""
    names = [f"source {number}" for number in range(6)]
    together = SourceCosts(["measured"] * 6, names, UNIT, {}, GRID)
    rng = np.random.default_rng(0)
    assert all(together.unknown(source) for source in range(6))
    for source in (0, 3, 4, 5) * 3:
        x = rng.random(1)
        together.paid(source, x, of_level(*GRID.values[source], x) * np.exp(0.02 * rng.normal()))
    assert not any(together.unknown(source) for source in range(6))
    for source, knobs in enumerate(GRID.values):
        x = np.array([0.4])
        assert together.expected(source, x) == pytest.approx(of_level(*knobs, x), rel=0.25)
        assert 1 < together.expected(source, x) / together.costs[source].effective(x[None])[0] < 1.3


@pytest.mark.parametrize("log_knobs", [np.zeros((0, 1)), GRID.logarithms(6)], ids=["one source", "levels"])
def test_learned_costs_are_those_of_a_dense_joint_gaussian(log_knobs):
    rng, L = np.random.default_rng(1), log_knobs.shape[1]
    s, X, y = np.arange(8) % L, rng.random((8, 1)), rng.normal(size=8)
    learned = LearnedCosts(UNIT, s, X, np.exp(y), log_knobs)
    models = learned.posterior.models
    ell, noise = models.groups[0].scales[0, 0, 0], models.noise[0, 0]
    variance = models.groups[0].B[0, 0, 0, 0]
    same = s[:, None] == s
    V = variance * np.exp(-0.5 * ((X - X.T) / ell) ** 2) * np.where(same | (L == 1), 1.0, 0.9)
    V += 100 + (L > 1) * 0.04 * same + 0.7**2 * np.einsum("ki,kj->ij", log_knobs[:, s], log_knobs[:, s])
    V += noise * np.eye(8)
    slopes = -log_knobs.sum(axis=0)
    average = np.mean((y - slopes[s])[s == 0])
    at = np.array([[0.3]])
    for level in {0, L - 1}:
        k = variance * np.exp(-0.5 * ((X[:, 0] - 0.3) / ell) ** 2) * np.where(s == level, 1.0, 0.9)
        k += 100 + (L > 1) * 0.04 * (s == level) + 0.7**2 * log_knobs[:, s].T @ log_knobs[:, level]
        mean, var = learned.log_cost(level, at)
        expected = average + slopes[level] + k @ np.linalg.solve(V, y - slopes[s] - average)
        assert mean[0] == pytest.approx(expected, abs=1e-6)
        prior = variance + 100 + (L > 1) * 0.04 + 0.7**2 * np.sum(log_knobs[:, level] ** 2)
        assert var[0] == pytest.approx(prior + noise - k @ np.linalg.solve(V, k), rel=1e-4)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_costs_that_cannot_be_divided_by(bad):
    with pytest.raises(ValueError, match="cost"):
        amsbq.Integrator(amsbq.Source(cost=bad), UNIT)  # zero is for secondary sources
    with pytest.raises(ValueError, match="cost of f at x = "):
        CostFunction(UNIT, lambda x: bad, "cost of f")


def test_a_source_that_costs_more_than_the_primary_one_is_questioned():
    sources = [amsbq.Source(name="coarse", cost=0.1), amsbq.Source(name="fine")]
    with pytest.warns(UserWarning, match=r"fine costs more than coarse \(1 and 0.1\), whose integral is estimated"):
        amsbq.Integrator(sources, UNIT)
    amsbq.Integrator(sources[::-1], UNIT)
    amsbq.Integrator([sources[0], amsbq.Source(cost=lambda x: 1 + x[0])], UNIT)  # what it costs depends on the input


def test_other_bad_costs():
    with pytest.raises(ValueError, match="'measured', got 'learned'"):
        amsbq.Source(cost="learned")
    with pytest.raises(TypeError, match=r"cost of f at x = .* must be a number, got 'much'"):
        CostFunction(UNIT, lambda x: "much", "cost of f")
    with pytest.raises(ValueError, match="must be one number"):
        CostFunction(UNIT, lambda x: [1.0, 2.0])
    with pytest.raises(ValueError, match=r"cost of f at x = .* raised ZeroDivisionError"):
        CostFunction(UNIT, lambda x: 1 / 0, "cost of f")


@pytest.mark.parametrize(
    ("x", "said"),
    [(0.9995, r"cost of f at x = \[0.9995\] must be positive, got -1.0"), (1.0, "raised ZeroDivisionError")],
)
def test_a_cost_function_that_fails_later_is_an_error_that_names_source_and_location(x, said):
    cost = CostFunction(UNIT, lambda x: 1.0 if x[0] < 0.999 else -1.0 if x[0] < 1 else 1 / 0, "cost of f")
    assert cost.effective(np.array([[0.5]])) == 1
    with pytest.raises(ValueError, match=said):
        cost.effective(np.array([[0.5], [x]]))


def test_a_gradient_that_fails_is_an_error_that_names_source_and_location():
    class Broken(WithGradient):
        def gradient(self, x):
            raise RuntimeError("no slope")

    with pytest.raises(ValueError, match=r"gradient of the cost of f at x = .* raised RuntimeError: no slope"):
        CostFunction(PLANE, Broken(), "cost of f").effective_and_grad(PLANE.sobol(2, 1))
