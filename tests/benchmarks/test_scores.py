"""The scores of the arena, against values computed by hand."""

import math

import numpy as np
import pytest

from benchmarks.arena.scores import (
    LEAST_ERROR,
    Row,
    at_cost,
    certified_cost,
    cost_of_accuracy,
    false_certificate,
    geometric_mean,
    interval_score,
    ratio_quantiles,
    rmse,
    share,
    typical_error,
)


def row(cost, error, half_width=math.nan):
    if math.isnan(half_width):
        return Row(cost, error, math.nan)
    return Row(
        cost, error, half_width / 2, tuple((error - k * half_width, error + k * half_width) for k in (0.3, 0.6, 1))
    )


PATH = [row(1, 0.5, 0.9), row(2, -0.05, 0.08), row(3, 0.2, 0.3), row(4, 0.009, 0.05), row(5, -0.002, 0.001)]


def test_rows_are_found_by_their_cost():
    assert at_cost(PATH, 0.9) is None
    assert at_cost(PATH, 1) is PATH[0]
    assert at_cost(PATH, 3.9) is PATH[2]
    assert at_cost(PATH, 100) is PATH[-1]


def test_intervals_hold_the_truth_or_not():
    assert PATH[0].holds(0.8)
    assert not PATH[0].holds(0.5)  # 0.5 ± 0.27
    assert PATH[0].half_width == pytest.approx(0.9)
    assert row(1, 0.1).half_width == math.inf


def test_the_cost_of_accuracy_is_that_from_which_on_errors_stay_small():
    assert cost_of_accuracy(PATH, 0.6) == 1
    assert cost_of_accuracy(PATH, 0.1) == 4  # the error was below 0.1 at 2, but not at 3
    assert cost_of_accuracy(PATH, 0.005) == 5
    assert cost_of_accuracy(PATH, 0.001) == math.inf


def test_the_certified_cost_is_that_of_the_first_narrow_interval_if_it_is_right():
    assert certified_cost(PATH, 0.1) == 2
    assert certified_cost(PATH, 0.05) == 4
    assert certified_cost(PATH, 0.01) == math.inf  # -0.002 ± 0.001 misses the truth
    assert false_certificate(PATH, 0.01)
    assert not false_certificate(PATH, 0.05)
    assert not false_certificate(PATH, 1e-4)  # none is that narrow
    assert certified_cost([row(1, 0.0)], 0.1) == math.inf  # no error bar


def test_root_mean_square_and_its_standard_error():
    value, error = rmse(np.array([3.0, -4.0]))
    assert value == pytest.approx(math.sqrt(12.5))
    # squares 9 and 16: standard deviation 7 / √2, of the mean 3.5, divided by 2 √12.5
    assert error == pytest.approx(3.5 / (2 * math.sqrt(12.5)))
    assert math.isnan(rmse(np.array([2.0]))[1])


def test_the_standard_error_of_the_root_mean_square_by_simulation():
    rng = np.random.default_rng(0)
    values = [rmse(rng.normal(size=50)) for _ in range(2000)]
    assert np.std([v for v, _ in values]) == pytest.approx(np.mean([e for _, e in values]), rel=0.1)


def test_geometric_means():
    value, error = geometric_mean(np.array([0.01, -1.0]))
    assert value == pytest.approx(0.1)
    assert error == pytest.approx(math.log(100) / 2)  # logs -4.6 and 0: sd 4.6 / √2, divided by √2
    assert geometric_mean(np.array([0.0]))[0] == pytest.approx(LEAST_ERROR)
    # RMSE 5 / √2 ... of (3, 4) is √12.5, of (1, 1) it is 1
    assert typical_error([np.array([3.0, 4.0]), np.array([1.0, -1.0])]) == pytest.approx(12.5**0.25)


def test_shares_have_standard_errors_that_are_never_zero():
    value, error = share(np.array([True, True, True, False]))
    assert value == 0.75
    assert error == pytest.approx(math.sqrt(4 / 6 * 2 / 6 / 4))
    assert share(np.ones(8))[1] > 0.05


def test_ratios_of_errors_and_standard_deviations():
    errors = np.linspace(-1, 1, 2001)
    np.testing.assert_allclose(ratio_quantiles(errors, np.full(2001, 2.0)), (0.25, 0.4, 0.475), atol=1e-3)


def test_interval_scores():
    assert interval_score(-1.0, 2.0) == 3.0
    assert interval_score(0.5, 2.0) == pytest.approx(1.5 + 40 * 0.5)
    assert interval_score(-3.0, -1.0, level=0.8) == pytest.approx(2 + 10 * 1.0)
