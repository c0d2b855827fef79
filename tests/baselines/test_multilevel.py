"""Multilevel Monte Carlo and multilevel Bayesian quadrature: allocation, error bars, rates, and given data."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq import baselines
from amsbq.baselines import bayesian
from amsbq.baselines.multilevel import telescoping_sum
from tests.baselines.problems import (
    BOUNDARY_CELLS,
    BOUNDARY_COSTS,
    BOUNDARY_INPUTS,
    BOUNDARY_TRUTH,
    as_sources,
    boundary_value,
)

#: f_l = x + s_l (x² - 1) for a standard normal x: E f_0 = 0, and the differences have the variances 2 (s_l - s_{l+1})²
SLOPES, COSTS = (0.0, 0.1, 0.5), (1.0, 0.1, 0.01)
VARIANCES = np.array([2 * 0.1**2, 2 * 0.4**2, 1 + 2 * 0.5**2])
DRAW_COSTS = np.array([1.1, 0.11, 0.01])
HERMITE = as_sources(lambda X, slope: X[:, 0] + slope * (X[:, 0] ** 2 - 1), SLOPES, COSTS)
BOUNDARY = as_sources(boundary_value, BOUNDARY_CELLS, BOUNDARY_COSTS)


def drawn(result, levels=(0, 1, 2)):
    """Numbers of draws n_l of each term: evaluations of a level are shared with the next finer one."""
    made = [sum(e.source == source for e in result.evaluations) for source in levels]
    return np.array([made[0], made[1] - made[0], made[2] - (made[1] - made[0])])


def errors(method, sources, measure, truth, seeds, **options):
    return np.array([method(sources, measure, seed=seed, **options).mean - truth for seed in seeds])


def test_the_boundary_value_problem_is_solved():
    """Against the differential equation's own solution, by a Gauss rule for its double integral."""
    a, z = 0.7, 1.3
    t, w = np.polynomial.legendre.leggauss(60)
    t, w = (1 + t) / 2, w / 2
    k = 1 + a * t
    c = -(t / k) @ w / ((1 / k) @ w)
    exact = 50 * z**2 * (((t + c) / k) * (1 - t)) @ w  # ∫ u = ∫ u' (1 - t)
    found = [boundary_value(np.array([[a, z]]), cells)[0] for cells in (64, 128)]
    assert (4 * found[1] - found[0]) / 3 == pytest.approx(exact, rel=1e-7)


def test_draws_are_divided_as_the_closed_form_says():
    result = baselines.multilevel_monte_carlo(HERMITE, stats.norm(), budget=60, seed=1)
    n, ideal = drawn(result), np.sqrt(VARIANCES / DRAW_COSTS)
    ideal *= 60 / (ideal @ DRAW_COSTS)
    np.testing.assert_allclose(n, ideal, rtol=0.35)  # of sample variances: the first level has 14 draws
    assert result.spent == pytest.approx(60, abs=0.02)
    assert result.spent <= 60
    assert result.std == pytest.approx(np.sqrt((VARIANCES / n).sum()), rel=0.35)


def test_the_estimate_is_the_sum_of_averages_with_the_degrees_of_freedom_of_welch():
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=7), 3 * rng.normal(size=12)
    found = telescoping_sum([one, -two])
    welch = stats.ttest_ind(one, two, equal_var=False).confidence_interval(0.8)
    assert found.mean == pytest.approx(one.mean() - two.mean(), rel=1e-14)
    assert found.interval(0.8) == pytest.approx((welch.low, welch.high), rel=1e-10)


def test_result_and_evaluations_tell_the_same():
    result = baselines.multilevel_monte_carlo(HERMITE, stats.norm(), budget=12)
    last = result.evaluations[-1]
    assert (last.mean, last.std) == (result.mean, result.std)


def test_the_error_falls_like_the_root_of_the_budget_and_the_interval_covers():
    pair = [HERMITE[0], as_sources(lambda X, slope: X[:, 0] + slope * (X[:, 0] ** 2 - 1), [0.5], [0.25])[0]]
    budgets, rmse, inside = np.array([8.0, 24.0, 72.0]), [], 0
    for budget in budgets:
        found = [baselines.multilevel_monte_carlo(pair, stats.norm(), budget=budget, seed=s) for s in range(40)]
        rmse.append(np.sqrt(np.mean([r.mean**2 for r in found])))
        inside += sum(low < 0 < high for low, high in (r.interval(0.9) for r in found))
    slope = np.polyfit(np.log(budgets), np.log(rmse), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.2)  # three times what the 40 errors of each budget leave uncertain
    assert stats.binom(120, 0.9).ppf(1e-4) <= inside


def test_the_order_is_by_cost_unless_it_is_given():
    sources = [HERMITE[0], HERMITE[2], HERMITE[1]]
    by_cost = baselines.multilevel_monte_carlo(sources, stats.norm(), budget=12)
    given = baselines.multilevel_monte_carlo(HERMITE, stats.norm(), budget=12)
    assert by_cost.mean == given.mean
    pair = baselines.multilevel_monte_carlo(HERMITE, stats.norm(), budget=12, order=[0, 2])
    assert {e.source for e in pair.evaluations} == {0, 2}
    for order in ([1, 0], [0, 1, 1], [0]):
        with pytest.raises(ValueError, match=r"order must name|needs a coarser source"):
            baselines.multilevel_monte_carlo(HERMITE, stats.norm(), budget=12, order=order)


def test_repeated_locations_are_different_draws():
    two = amsbq.Empirical([[-1.0], [1.0]])
    result = baselines.multilevel_monte_carlo(HERMITE, two, budget=12)
    y = [e.value for e in result.evaluations if e.source == 2]
    n = drawn(result)
    coarse = np.array(y[-n[2] + 5 :])  # all but the pilot
    assert np.ptp(coarse) == 2
    assert result.estimate.scales[0] == pytest.approx(1 / np.sqrt(n[2]), rel=0.05)  # the differences are constant


@pytest.mark.parametrize("name", ["multilevel Monte Carlo", "multilevel BQ"])
def test_what_cannot_work_is_refused(name):
    method = baselines.BASELINES[name]
    with pytest.raises(ValueError, match="needs a coarser source"):
        method(HERMITE[:1], stats.norm(), budget=12)
    with pytest.raises(ValueError, match=r"a pilot of \d costs .*, but the budget is 2: give a larger budget, or a sm"):
        method(HERMITE, stats.norm(), budget=2)
    with pytest.raises(ValueError, match="pilot must be at least 2"):
        method(HERMITE, stats.norm(), budget=12, pilot=1)
    assert method(HERMITE, stats.norm(), budget=2.5, pilot=2).spent <= 2.5


def test_multilevel_bq_is_far_better_than_multilevel_monte_carlo_on_smooth_problems():
    options = {"measure": BOUNDARY_INPUTS, "truth": BOUNDARY_TRUTH, "budget": 15, "sources": BOUNDARY}
    sampled = errors(baselines.multilevel_monte_carlo, seeds=range(15), **options)
    smooth = errors(baselines.multilevel_bq, seeds=range(4), **options)
    assert np.sqrt(np.mean(smooth**2)) < 0.4 * np.sqrt(np.mean(sampled**2))
    assert np.sqrt(np.mean(sampled**2)) < 1.0  # 0.47 with random nested designs of the same cost


def nested_data(rng, numbers=(3, 15, 40)):
    """Each level at its own locations and at those of the next finer one; and the differences that this tells."""
    X = [BOUNDARY_INPUTS.sample(n, rng) for n in numbers]
    rows = [(l, X[l]) for l in range(3)] + [(l + 1, X[l]) for l in range(2)]
    data = [(np.full(len(x), l), x, boundary_value(x, BOUNDARY_CELLS[l])) for l, x in rows]
    return [np.concatenate(parts) for parts in zip(*data, strict=True)]


def test_multilevel_bq_of_given_data_is_the_sum_of_independent_bq():
    s, X, y = nested_data(np.random.default_rng(3))
    found = baselines.multilevel_bq_estimate(s, X, y, BOUNDARY_INPUTS)
    at = [{tuple(x): value for x, value in zip(X[s == l], y[s == l], strict=True)} for l in range(3)]
    terms = [{x: at[l][x] - at[l + 1][x] for x in at[l] if x in at[l + 1]} for l in range(2)] + [at[2]]
    parts = [amsbq.estimate(0, list(t), list(t.values()), BOUNDARY_INPUTS, model="vbq") for t in terms]
    assert [len(t) for t in terms] == [3, 15, 55]
    assert found.mean == pytest.approx(sum(part.mean for part in parts), rel=1e-9)
    assert found.std == pytest.approx(np.sqrt(sum(part.std**2 for part in parts)), rel=1e-9)
    shuffled = np.random.default_rng(4).permutation(len(y))
    again = baselines.multilevel_bq_estimate(s[shuffled], X[shuffled], y[shuffled], BOUNDARY_INPUTS)
    assert again.mean == pytest.approx(found.mean, rel=1e-9)


def test_multilevel_bq_adds_up_noise_and_averages_repeated_values():
    x = np.linspace(0.05, 0.95, 6)
    fine, coarse = np.sin(3 * x) + x, np.sin(3 * x)
    s, X = np.repeat([0, 1], 6), np.tile(x, 2)[:, None]
    y = np.append(fine, coarse)
    noisy = baselines.multilevel_bq_estimate(s, X, y, amsbq.Uniform(0, 1), noise=[0.01, 0.02], noise_var=0.005)
    parts = [
        amsbq.estimate(0, X[:6], values, amsbq.Uniform(0, 1), model="vbq", noise=noise, noise_var=extra)
        for values, noise, extra in ((fine - coarse, 0.03, 0.01), (coarse, 0.02, 0.005))
    ]
    assert noisy.std == pytest.approx(np.hypot(*(part.std for part in parts)), rel=1e-9)
    twice = baselines.multilevel_bq_estimate(
        np.append(s, [0, 0]),
        np.append(X, X[:1].repeat(2))[:, None],
        np.append(y, y[0] + [-1.0, 1.0]),
        amsbq.Uniform(0, 1),
    )
    once = baselines.multilevel_bq_estimate(s, X, y, amsbq.Uniform(0, 1))
    assert twice.mean == pytest.approx(once.mean, rel=1e-9)


def test_multilevel_bq_needs_shared_locations():
    with pytest.raises(ValueError, match="source 0 minus source 1 is not known at any location"):
        baselines.multilevel_bq_estimate([0, 1], [[0.1], [0.2]], [1.0, 2.0], amsbq.Uniform(0, 1))


def test_multilevel_bq_says_which_level_a_warning_is_of():
    x = np.linspace(0.1, 0.9, 5)
    with pytest.warns(UserWarning, match="source 0 minus source 1, taken as source 0: all 5 observations"):
        baselines.multilevel_bq_estimate(
            [0] * 5 + [1] * 5, np.tile(x, 2)[:, None], np.append(x + 1, x), amsbq.Uniform(0, 1)
        )


def test_multilevel_bq_stops_when_all_levels_are_full(monkeypatch):
    monkeypatch.setattr(bayesian, "SETTINGS", replace(bayesian.SETTINGS, most=8))
    result = baselines.multilevel_bq(HERMITE[:2], stats.norm(), budget=100, pilot=4)
    assert result.stopped == "exhausted"
    assert [sum(e.source == l for e in result.evaluations) for l in (0, 1)] == [8, 16]
