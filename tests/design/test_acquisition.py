"""Rates: utilities, brute force from the dense joint Gaussian, gradients, and what the paper says of the policies."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import amsbq
from amsbq.design.acquisition import UTILITIES, Rate, utility
from amsbq.design.costs import ConstantCost, CostFunction
from amsbq.design.evaluations import Option
from amsbq.gp.data import Data
from amsbq.gp.posterior_batch import PosteriorBatch
from tests.problems import models_of, problems
from tests.reference import central_difference

PROBLEMS = problems()
SANE = ("mi", "ivr")


class Slanted:
    """A cost that knows its gradient."""

    def __call__(self, x):
        return np.exp(0.3 * x[0]) + 0.1 * np.sum(np.square(x))

    def gradient(self, x):
        return 0.2 * np.asarray(x) + 0.3 * np.exp(0.3 * x[0]) * np.eye(len(x))[0]


def gps_of(problem, n):
    """A few models that differ in their hyperparameters."""
    gp, rng, gps = problem.gp, np.random.default_rng(1), []
    for _ in range(n):
        terms = [amsbq.Term(rng.uniform(0.5, 2) * term.B, term.kernel) for term in gp.terms]
        gps.append(amsbq.MultiSourceGP(terms, gp.measure, gp.noise, gp.mean))
    return gps


def by_option(costs):
    return {Option(source): cost for source, cost in enumerate(costs)}


def options_of(sources):
    return [Option(int(source)) for source in sources]


def rate_of(problem, kind, n=3, costs="slanted"):
    """A rate over a few posteriors that differ in their hyperparameters."""
    gp, data = problem.gp, Data(problem.s, problem.X, problem.y, problem.extra)
    posteriors = PosteriorBatch.condition(models_of(gps_of(problem, n)), data)
    if costs == "slanted":
        functions = [Slanted(), lambda x: 0.3 + 0.1 * np.sin(x[-1])] + [Slanted()] * gp.n_sources
        models = [CostFunction(gp.measure, f) for f in functions[: gp.n_sources]]
    else:
        models = [ConstantCost(gp.measure, 0.5**source) for source in range(gp.n_sources)]
    return Rate(posteriors, by_option(models), kind)


def dense_variances(problem, gp, s_new, X_new):
    """What goes of the variance of the integral, and all of it, from the joint Gaussian with the new observations."""
    joint = replace(problem.joint, terms=gp.terms, noise=gp.noise, mean=gp.mean)
    _, cov = joint.posterior(problem.s, problem.X, problem.y, problem.extra, 0, s_new, X_new)
    return cov[0, 1:] @ np.linalg.solve(cov[1:, 1:], cov[1:, 0]), cov[0, 0]


TEXTBOOK = {"mi": lambda r: -np.log(1 - r), "ivr": lambda r: r, "ip": lambda r: 1 / (1 - r), "nv": lambda r: r - 1}


@pytest.mark.parametrize(("between", "weights"), [(0.0, None), (0.03, None), (0.03, [0.8, 0.2])])
@pytest.mark.parametrize("name", PROBLEMS)
def test_rates_against_the_dense_joint_gaussian(name, between, weights):
    """The variance of the integral: the weighted average of those of two models, and the variance of their means."""
    problem = PROBLEMS[name]
    plain = replace(
        rate_of(problem, "mi", n=2), between=between, weights=None if weights is None else np.array(weights)
    )
    last, X = problem.gp.n_sources - 1, problem.X_new[:4]
    s_new = np.arange(4) % problem.gp.n_sources
    costs = [plain.costs[Option(last)].function(x) for x in X]
    total = sum(plain.costs[Option(int(s))].function(x) for s, x in zip(s_new, X, strict=True))

    def share(s, x):
        """The share of the variance of the integral that is expected to go."""
        gone, variance = np.average([dense_variances(problem, gp, s, x) for gp in gps_of(problem, 2)], 0, weights)
        return gone / (variance + between)

    variance = np.average([dense_variances(problem, gp, s_new, X)[1] for gp in gps_of(problem, 2)], weights=weights)
    assert plain.variance() == pytest.approx(variance, rel=1e-6)
    assert plain.within == pytest.approx(variance / (variance + between), rel=1e-6)
    single, joint = np.array([share([last], x[None]) for x in X]), share(s_new, X)
    for kind, u in TEXTBOOK.items():
        rate = replace(plain, kind=kind)
        np.testing.assert_allclose(rate.values([Option(last)], X)[0], u(single) / costs, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(rate.joint(options_of(s_new), X), u(joint) / total, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", PROBLEMS)
def test_gradients(name):
    problem = PROBLEMS[name]
    plain = rate_of(problem, "mi", n=2)
    last, width = problem.gp.n_sources - 1, problem.gp.measure.width
    s_new, X_new = np.arange(3) % problem.gp.n_sources, problem.X_new[1:4]
    for rate in (*(replace(plain, kind=kind) for kind in UTILITIES), plain.after([Option(0)], problem.X_new[:1])):
        value, gradient = rate.value_and_grad(last, X_new)
        np.testing.assert_allclose(value, rate.values([Option(last)], X_new)[0], rtol=1e-12)
        for x, row in zip(X_new, gradient, strict=True):
            numeric = central_difference(
                lambda u, r=rate: r.values([Option(last)], (u * width)[None])[0][0], x / width, 1e-4
            )
            np.testing.assert_allclose(row * width, numeric, rtol=1e-4, atol=1e-5 * np.abs(value).max())
        value, gradient = rate.joint_and_grad(s_new, X_new)
        np.testing.assert_allclose(value, rate.joint(options_of(s_new), X_new), rtol=1e-10)
        numeric = central_difference(
            lambda u, r=rate: r.joint(options_of(s_new), u.reshape(X_new.shape) * width), (X_new / width).ravel(), 1e-4
        )
        np.testing.assert_allclose((gradient * width).ravel(), numeric, rtol=1e-4, atol=1e-5 * abs(value))


@pytest.mark.parametrize("name", PROBLEMS)
def test_one_after_the_other_is_the_whole_set(name):
    problem = PROBLEMS[name]
    rate = rate_of(problem, "mi")
    s_new, X_new = np.arange(3) % problem.gp.n_sources, problem.X_new[:3]
    so_far = rate
    for s, x in zip(s_new[:2], X_new[:2], strict=True):
        so_far = so_far.after([Option(int(s))], x[None])
    for rest in (so_far, rate.after(options_of(s_new[:2]), X_new[:2])):
        np.testing.assert_allclose(
            rest.values(options_of(s_new[2:]), X_new[2:])[0][0], rate.joint(options_of(s_new), X_new), rtol=1e-8
        )


@pytest.mark.parametrize("uninformative", [frozenset(), frozenset({1}), frozenset({0, 1})])
def test_what_a_set_leaves_beside_a_source_that_is_given_is_a_ratio_of_variances(uninformative):
    problem = next(problem for problem in PROBLEMS.values() if problem.gp.n_sources > 1)
    plain = replace(rate_of(problem, "mi"), uninformative=uninformative)
    options, beside, X = options_of([0, 0]), options_of([1, 1]), problem.X_new[:2]
    variances = [
        plain.having(some, at).posteriors.integral()[1]
        for some, at in (([*options, *beside], np.concatenate([X, X])), (beside, X))
    ]
    after = replace(plain, given=(1,)).after(options, X)
    np.testing.assert_allclose(after.left, variances[0] / variances[1], rtol=1e-6)
    assert after.paid == sum(plain.costs[options[0]].effective(X))


@given(st.floats(0, 1 - 1e-9), st.floats(0, 1 - 1e-9))
def test_utilities_increase(a, b):
    low, high = sorted((a, b))
    for kind in UTILITIES:
        assert utility(low, kind) <= utility(high, kind)


def test_utilities_at_the_ends():
    assert [float(utility(0.0, kind)) for kind in ("mi", "ivr", "ip", "nv")] == [0, 0, 1, -1]
    assert [float(utility(1.0, kind)) for kind in ("mi", "ivr", "ip", "nv")] == [np.inf, 1, np.inf, 0]
    assert utility(1e-20, "mi") == 1e-20
    with pytest.raises(ValueError, match="between 0 and 1"):
        utility(1.1, "mi")
    with pytest.raises(ValueError, match="'mi', 'ivr', 'ip', 'nv', got 'ei'"):
        utility(0.5, "ei")


def test_intuition():
    """The paper's Figure 2: one maximiser without cost, different ones with it, mutual information the boldest."""
    x = np.linspace(0, 0.2, 20001)
    rho2 = 0.95 * np.sin(10 * x) ** 2
    assert {int(utility(rho2, kind).argmax()) for kind in UTILITIES} == {int(rho2.argmax())}
    cost = 0.2 + 0.8 / (1 + np.exp(-60 * (x - 0.12)))
    best = {kind: x[(utility(rho2, kind) / cost).argmax()] for kind in UTILITIES}
    assert best["ivr"] < best["mi"] < best["ip"] < x[rho2.argmax()] < best["nv"]
    cheap = cost - 0.995 * cost.min()
    assert x[(utility(rho2, "ip") / cheap).argmax()] == 0  # the cheapest point, at which nothing can be learned
    assert x[(utility(rho2, "mi") / cheap).argmax()] > 0


@pytest.mark.parametrize("cost", [1.0, 7.0])
def test_one_source_of_constant_cost_makes_all_utilities_agree(cost):
    gp = amsbq.MultiSourceGP([amsbq.Term([[2.0]], amsbq.RBF(0.15))], amsbq.Uniform(0, 1))
    posterior = gp.condition(0, [0.2, 0.7], [0.0, 0.0])
    grid = np.linspace(0, 1, 2001)[:, None]
    best = {
        int(
            Rate(posterior.batch, by_option([ConstantCost(gp.measure, cost)]), kind)
            .values([Option(0)], grid)[0]
            .argmax()
        )
        for kind in UTILITIES
    }
    assert len(best) == 1


@pytest.mark.parametrize("kind", SANE)
def test_known_points_have_no_rate(kind):
    gp = amsbq.MultiSourceGP([amsbq.Term([[1, 0.9], [0.9, 1]], amsbq.RBF(0.3))], amsbq.Uniform(0, 1))
    X = np.array([[0.1], [0.5], [0.9], [0.5]])
    posterior = gp.condition([0, 0, 0, 1], X, np.zeros(4))
    rate = Rate(posterior.batch, by_option([ConstantCost(gp.measure, 1.0), ConstantCost(gp.measure, 1e-9)]), kind)
    assert not rate.values([Option(0)], X[:3])[0].any()
    assert not rate.values([Option(1)], X[3:])[0].any()


def test_a_perfect_step_has_an_infinite_rate():
    gp = amsbq.MultiSourceGP([amsbq.Term([[1, 0.9], [0.9, 1]], amsbq.Constant())], amsbq.Uniform(0, 1))
    rate = Rate(
        gp.condition([], [], []).batch, by_option([ConstantCost(gp.measure, 1e6), ConstantCost(gp.measure, 1e-6)]), "mi"
    )
    assert rate.values([Option(0)], np.array([[0.3]]))[0] == np.inf
    assert np.isfinite(rate.values([Option(1)], np.array([[0.3]]))[0])


@pytest.mark.parametrize(
    "kernels",
    [
        (amsbq.RBF(0.3), amsbq.Matern(2.5, 0.4)),
        (amsbq.Matern(1.5, 0.3), amsbq.RBF(0.5)),
        (amsbq.Matern(1.5, 0.3), amsbq.Matern(2.5, 0.5)),
        (amsbq.RBF(0.3), amsbq.Constant(), amsbq.Matern(2.5, 0.4), amsbq.RBF(0.7), amsbq.Constant()),
        (amsbq.Constant(),),
    ],
)
def test_terms_may_be_of_different_kinds(kernels):
    """Observations of different sources at once, against one at a time."""
    B = np.array([[1.0, 0.8], [0.8, 1.0]])
    gp = amsbq.MultiSourceGP([amsbq.Term(B, kernel) for kernel in kernels], amsbq.Uniform(0, 1), noise=1e-3)
    posterior = gp.condition([0, 1] * 3, np.linspace(0.1, 0.9, 6), np.zeros(6))
    X, sources = np.linspace(0, 1, 7)[:, None], np.arange(7) % 2
    rho2, gradient = posterior.batch.squared_correlation_and_grad(sources, X)
    np.testing.assert_array_equal(posterior.squared_correlation(1, X)[sources == 1], rho2[0, sources == 1])
    for i, (source, x) in enumerate(zip(sources, X, strict=True)):
        value, slope = posterior.squared_correlation_and_grad(int(source), x[None])
        np.testing.assert_allclose(rho2[0, i], value[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(gradient[0, i], slope[0], rtol=1e-7, atol=1e-9)
