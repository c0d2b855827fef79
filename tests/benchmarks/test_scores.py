"""The scores of the arena, against values computed by hand."""

import math

import numpy as np
import pytest

from benchmarks.arena.scores import (
    LEAST_ERROR,
    Row,
    certified_cost,
    false_certificate,
    interval_score,
    ratio_quantiles,
    rmse,
    typical_error,
)


def row(cost, error, half_width=math.nan):
    if math.isnan(half_width):
        return Row(cost, error, math.nan)
    return Row(
        cost, error, half_width / 2, tuple((error - k * half_width, error + k * half_width) for k in (0.3, 0.6, 1))
    )


PATH = [row(1, 0.5, 0.9), row(2, -0.05, 0.08), row(3, 0.2, 0.3), row(4, 0.009, 0.05), row(5, -0.002, 0.001)]


def test_intervals_hold_the_truth_or_not():
    assert PATH[0].holds(0.8)
    assert not PATH[0].holds(0.5)  # 0.5 ± 0.27
    assert PATH[0].half_width == pytest.approx(0.9)
    assert row(1, 0.1).half_width == math.inf


def test_the_certified_cost_is_that_of_the_first_narrow_interval_if_it_is_right():
    assert certified_cost(PATH, 0.1) == 2
    assert certified_cost(PATH, 0.05) == 4
    assert certified_cost(PATH, 0.01) == math.inf  # -0.002 ± 0.001 misses the truth
    assert false_certificate(PATH, 0.01)
    assert not false_certificate(PATH, 0.05)
    assert not false_certificate(PATH, 1e-4)  # none is that narrow
    assert certified_cost([row(1, 0.0)], 0.1) == math.inf  # no error bar


def test_typical_errors():
    assert rmse(np.array([3.0, -4.0])) == pytest.approx(math.sqrt(12.5))
    # root mean squares √12.5 and 1
    assert typical_error([np.array([3.0, 4.0]), np.array([1.0, -1.0])]) == pytest.approx(12.5**0.25)
    assert typical_error([np.zeros(2)]) == pytest.approx(LEAST_ERROR)


def test_ratios_of_errors_and_standard_deviations():
    errors = np.linspace(-1, 1, 2001)
    np.testing.assert_allclose(ratio_quantiles(errors, np.full(2001, 2.0)), (0.25, 0.4, 0.475), atol=1e-3)


def test_interval_scores():
    assert interval_score(-1.0, 2.0) == 3.0
    assert interval_score(0.5, 2.0) == pytest.approx(1.5 + 40 * 0.5)
    assert interval_score(-3.0, -1.0, level=0.8) == pytest.approx(2 + 10 * 1.0)
