"""Multifidelity Monte Carlo and MLBLUE: allocations, variances and estimates against independent calculations."""

from itertools import combinations

import numpy as np
import pytest
from scipy import optimize, stats

import amsbq
from amsbq import baselines
from amsbq.baselines.best_linear import (
    all_groups,
    best_allocation,
    least_squares_estimate,
    precisions,
    relaxed_allocation,
    variance_of,
)
from amsbq.baselines.multifidelity import best_order, nested_counts, nested_estimate, nested_variance
from tests.baselines.problems import ISHIGAMI_COSTS, ISHIGAMI_INPUTS, as_sources, ishigami, ishigami_covariance

COVARIANCE = ishigami_covariance()
SOURCES = as_sources(ishigami, range(3), ISHIGAMI_COSTS)


def random_problem(seed, L):
    rng = np.random.default_rng(seed)
    factors = rng.normal((3.0, 0.0, 0.0), size=(L, 3))
    return factors @ factors.T + 0.05 * np.eye(L), np.sort(10 ** rng.uniform(-3, 0, L))[::-1]


def published(C, costs, order):
    """Numbers of evaluations for a budget of one, and the variance, as in Theorem 3.4 of Peherstorfer et al. (2016)."""
    rho2 = np.append([C[0, i] ** 2 / C[0, 0] / C[i, i] for i in order], 0.0)
    w = costs[list(order)]
    r = [np.sqrt(w[0] * (rho2[i] - rho2[i + 1]) / (w[i] * (1 - rho2[1]))) for i in range(len(order))]
    m = 1 / (w @ r)
    return m * np.array(r), C[0, 0] * (1 - rho2[1]) / (m**2 * w[0])


def least_published(C, costs):
    """The least variance for a budget of one over all sets of sources that fulfil the condition on costs."""
    found = []
    for size in range(1, len(C) + 1):
        for some in combinations(range(1, len(C)), size - 1):
            order = (0, *sorted(some, key=lambda i: -(C[0, i] ** 2) / C[i, i]))
            rho2 = np.append([C[0, i] ** 2 / C[0, 0] / C[i, i] for i in order], 0.0)
            steps, w = -np.diff(rho2), costs[list(order)]
            if all(w[i - 1] / w[i] > steps[i - 1] / steps[i] for i in range(1, size)):
                found.append((published(C, costs, order)[1], order))
    return min(found)


def telescoping_variance(C, costs):
    """The variance of multilevel Monte Carlo for a budget of one, with the sources as they are numbered."""
    L = len(C)
    V = [C[i, i] + C[i + 1, i + 1] - 2 * C[i, i + 1] for i in range(L - 1)] + [C[-1, -1]]
    per_draw = [costs[i] + costs[i + 1] for i in range(L - 1)] + [costs[-1]]
    return float(np.sqrt(np.array(V) * per_draw).sum() ** 2)


def ishigami_values(X):
    return np.stack([ishigami(X, source) for source in range(3)], axis=1)


def test_numbers_of_evaluations_are_those_published():
    order = best_order(COVARIANCE, ISHIGAMI_COSTS)
    ideal, variance = published(COVARIANCE, ISHIGAMI_COSTS, order)
    assert np.sqrt(variance) == pytest.approx(0.411, abs=5e-4)
    counts = nested_counts(COVARIANCE, ISHIGAMI_COSTS, order, 1000.0, 1)
    np.testing.assert_allclose(counts, 1000 * ideal, rtol=5e-3, atol=1)
    assert np.dot(counts, ISHIGAMI_COSTS) <= 1000
    assert nested_variance(COVARIANCE, np.array(counts)) == pytest.approx(variance / 1000, rel=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_the_best_sources_are_selected(seed):
    C, costs = random_problem(seed, 5)
    variance, order = least_published(C, costs)
    assert best_order(C, costs) == order
    n = np.array(nested_counts(C, costs, order, 5000.0, 1))
    assert nested_variance(C[np.ix_(order, order)], n) == pytest.approx(variance / 5000, rel=0.02)


def test_a_known_covariance_gives_the_error_that_the_formula_says():
    order = best_order(COVARIANCE, ISHIGAMI_COSTS)
    n = nested_counts(COVARIANCE, ISHIGAMI_COSTS, order, 10.0, 1)
    rng, found = np.random.default_rng(0), []
    for _ in range(800):
        Y = ishigami_values(ISHIGAMI_INPUTS.sample(n[2], rng))
        samples = {(0, 1, 2): Y[: n[0]], (1, 2): Y[n[0] : n[1], 1:], (2,): Y[n[1] :, 2:]}
        found.append(nested_estimate(samples, order, COVARIANCE))
    rmse = np.sqrt(np.mean([(e.mean - 2.5) ** 2 for e in found]))
    assert rmse == pytest.approx(0.130, rel=3 / np.sqrt(2 * 800))
    assert found[0].std == pytest.approx(0.130, abs=1e-3)


def test_the_estimate_is_the_published_one():
    rng = np.random.default_rng(1)
    Y, n, order = ishigami_values(ISHIGAMI_INPUTS.sample(60, rng)), (9, 20, 60), (0, 1, 2)
    samples = {order: Y[:9], (1, 2): Y[9:20, 1:], (2,): Y[20:, 2:]}
    C = np.cov(Y[:9].T)
    mean = Y[:9, 0].mean()
    for i in (1, 2):
        alpha = C[0, i] / C[i, i]
        mean += alpha * (Y[: n[i], i].mean() - Y[: n[i - 1], i].mean())
    assert nested_estimate(samples, order).mean == pytest.approx(mean, rel=1e-12)
    known = nested_estimate(samples, order, COVARIANCE)
    assert known.std == pytest.approx(np.sqrt(nested_variance(COVARIANCE, np.array(n))), rel=1e-12)


def test_least_squares_is_that_of_a_dense_regression():
    rng, groups, numbers = np.random.default_rng(2), [(0, 1, 2), (1, 2), (0, 2), (2,)], [5, 7, 3, 11]
    C, _ = random_problem(0, 3)
    samples = {g: rng.normal(size=(n, len(g))) for g, n in zip(groups, numbers, strict=True)}
    design = np.concatenate([np.eye(3)[list(g)] for g, n in zip(groups, numbers, strict=True) for _ in range(n)])
    y = np.concatenate([values.ravel() for values in samples.values()])
    noise = np.zeros((len(y), len(y)))
    at = 0
    for group, n in zip(groups, numbers, strict=True):
        for _ in range(n):
            noise[at : at + len(group), at : at + len(group)] = C[np.ix_(group, group)]
            at += len(group)
    normal = design.T @ np.linalg.solve(noise, design)
    expected = np.linalg.solve(normal, design.T @ np.linalg.solve(noise, y))[0]
    found = least_squares_estimate(samples, C)
    assert found.mean == pytest.approx(expected, rel=1e-7)
    assert found.std == pytest.approx(np.sqrt(np.linalg.inv(normal)[0, 0]), rel=1e-7)


@pytest.mark.parametrize(("seed", "L"), [(0, 2), (1, 3), (2, 3), (3, 4), (4, 5)])
def test_no_allocation_is_better_than_that_of_mlblue(seed, L):
    C, costs = random_problem(seed, L)
    groups = all_groups(L)
    prices, P = np.array([costs[list(g)].sum() for g in groups]), precisions(C, groups)
    variance = variance_of(np.tensordot(relaxed_allocation(P, prices, 1.0, np.zeros((L, L))), P, 1))
    assert variance <= 1.001 * least_published(C, costs)[0]
    assert variance <= 1.001 * telescoping_variance(C, costs)


def test_the_allocation_of_mlblue_is_that_of_another_method():
    """Its dual form: unbiased weights, for which the best numbers of draws are known, by a general-purpose solver."""
    C, costs = random_problem(1, 3)
    groups = all_groups(3)
    prices, P = np.array([costs[list(g)].sum() for g in groups]), precisions(C, groups)

    def root_of_variance(beta):
        parts = np.split(beta, np.cumsum([len(g) for g in groups])[:-1])
        return sum(
            np.sqrt(c * (b @ C[np.ix_(g, g)] @ b) + 1e-16) for b, g, c in zip(parts, groups, prices, strict=True)
        )

    picks = np.concatenate([np.eye(3)[list(g)] for g in groups])
    unbiased = {"type": "eq", "fun": lambda beta: picks.T @ beta - np.eye(3)[0], "jac": lambda beta: picks.T}
    start = picks @ np.linalg.solve(picks.T @ picks, np.eye(3)[0])
    other = optimize.minimize(root_of_variance, start, constraints=[unbiased], method="SLSQP", options={"maxiter": 300})
    found = variance_of(np.tensordot(relaxed_allocation(P, prices, 1.0, np.zeros((3, 3))), P, 1))
    assert found == pytest.approx(other.fun**2, rel=0.01)


@pytest.mark.parametrize("budget", [3.0, 10.0])
@pytest.mark.parametrize("pilot", [0, 6])
def test_integers_are_nearly_the_best_ones_within_the_budget(pilot, budget):
    groups = all_groups(3)
    prices, P = np.array([ISHIGAMI_COSTS[list(g)].sum() for g in groups]), precisions(COVARIANCE, groups)
    n = np.array(best_allocation(COVARIANCE, groups, prices, budget, {groups[-1]: pilot} if pilot else {}))
    assert n @ prices <= budget * (1 + 1e-12)
    nested = [
        pilot * P[6] + a * P[6] + b * P[5] + int((budget - a * prices[6] - b * prices[5]) / prices[2]) * P[2]
        for a in range(0 if pilot else 1, int(budget / prices[6]) + 1)
        for b in range(int((budget - a * prices[6]) / prices[5]) + 1)
    ]  # all numbers of the groups (0, 1, 2) and (1, 2), and the rest of the budget for (2,)
    assert variance_of(pilot * P[6] + np.tensordot(n, P, 1)) <= 1.002 * min(map(variance_of, nested))


@pytest.mark.parametrize("method", [baselines.multifidelity_monte_carlo, baselines.mlblue])
def test_runs_with_and_without_a_known_covariance(method):
    known = method(SOURCES, ISHIGAMI_INPUTS, budget=4, covariance=COVARIANCE, seed=2)
    assert known.estimate.dof == np.inf
    assert known.std == pytest.approx(0.41 / 2, rel=0.1)
    assert 3.9 < known.spent <= 4
    piloted = method(SOURCES, ISHIGAMI_INPUTS, budget=8, pilot=5, seed=2)
    assert [e.source for e in piloted.evaluations[:15]] == [0, 1, 2] * 5
    assert abs(piloted.mean - 2.5) < 4 * piloted.std < 4
    assert 7.9 < piloted.spent <= 8
    last = piloted.evaluations[-1]
    assert (last.mean, last.std) == (piloted.mean, piloted.std)


@pytest.mark.parametrize("method", [baselines.multifidelity_monte_carlo, baselines.mlblue])
def test_useless_constant_and_perfect_sources(method):
    normal = stats.norm()
    useless = [lambda x: float(x[0]), amsbq.Source(lambda x: float(np.sin(1e4 * x[0])), cost=0.3)]
    constant = [lambda x: float(x[0]), amsbq.Source(lambda x: 0.1, cost=0.01)]
    for sources in (useless, constant):
        result = method(sources, normal, budget=40, seed=1)
        y = np.array([e.value for e in result.evaluations if e.source == 0])
        assert len(y) > 22
        assert abs(result.mean - y.mean()) < 0.1
        assert result.std == pytest.approx(1 / np.sqrt(len(y)), rel=0.5)
    perfect = method([lambda x: 3 + 2 * float(x[0]), amsbq.Source(lambda x: float(x[0]), cost=0.01)], normal, budget=10)
    cheap = np.array([e.value for e in perfect.evaluations if e.source == 1])
    assert len(cheap) > 300
    assert perfect.mean == pytest.approx(3 + 2 * cheap.mean(), abs=1e-4)
    flat = method([lambda x: 7.0, amsbq.Source(lambda x: float(x[0]), cost=0.1)], normal, budget=10)
    assert (flat.mean, flat.std) == (7.0, 0.0)


@pytest.mark.parametrize("method", [baselines.multifidelity_monte_carlo, baselines.mlblue])
def test_what_cannot_work_is_refused(method):
    def refused(text, sources=SOURCES, budget=20, **options):
        with pytest.raises(ValueError, match=text):
            method(sources, ISHIGAMI_INPUTS, budget=budget, **options)

    refused("needs a secondary source", SOURCES[:1])
    refused(
        r"a pilot of 6 costs 6\.306, but the budget is 4: give a larger budget, or a smaller pilot \(5 at", budget=4
    )
    refused("pilot must be at least 5", pilot=4)
    refused("not both", pilot=8, covariance=COVARIANCE)
    refused(r"shape \(3, 3\)", covariance=np.eye(2))
    refused("positive variances", covariance=np.zeros((3, 3)))
    refused("symmetric", covariance=COVARIANCE + np.triu(np.ones((3, 3)), 1))
    refused("semi-definite", covariance=np.eye(3) + 2 * np.eye(3)[[1, 0, 2]])
    refused(
        "one evaluation of each source costs .* in total, more than the budget of 1", covariance=COVARIANCE, budget=1
    )
    measured = [amsbq.Source(lambda x: 1.0, cost="measured"), *SOURCES[1:]]
    refused("not known before a pilot", measured, covariance=COVARIANCE)


def test_mlblue_refuses_too_many_groups():
    with pytest.raises(ValueError, match="too many groups of 11 sources"):
        baselines.mlblue([SOURCES[0]] * 11, ISHIGAMI_INPUTS, budget=1000)
