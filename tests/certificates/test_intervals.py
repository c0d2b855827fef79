"""Intervals hold as often as they say: by enumeration where they are exact, by simulation where they are not."""

import itertools

import numpy as np
import pytest
from scipy import optimize, stats

from amsbq.certificates.intervals import (
    MeanOfDraws,
    _hall,
    betting_interval,
    disagreement_interval,
    quantile_interval,
    share_interval,
)

#: distributions of residuals, by their draws (n, R) and their mean
RESIDUALS = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "skewed": (lambda rng, shape: rng.lognormal(0, 1, shape), np.exp(0.5)),
    "very skewed": (lambda rng, shape: rng.lognormal(0, 1.5, shape), np.exp(1.125)),
    "heavy": (lambda rng, shape: rng.standard_t(3, shape), 0.0),
}


def coverage(name, n, runs=800, level=0.95):
    draw, mean = RESIDUALS[name]
    rows = draw(np.random.default_rng(n), (runs, n))
    ends = np.array([MeanOfDraws([row]).interval(level) for row in rows])
    return float(np.mean((ends[:, 0] <= mean) & (mean <= ends[:, 1])))


@pytest.mark.parametrize("n", [6, 10, 20])
@pytest.mark.parametrize("name", ["normal", "heavy"])
def test_symmetric_residuals_are_covered(name, n):
    assert coverage(name, n) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 800)


@pytest.mark.parametrize(("name", "n", "least"), [("skewed", 6, 0.86), ("skewed", 10, 0.88), ("very skewed", 10, 0.83)])
def test_skewed_residuals_are_covered_better_than_by_students_t(name, n, least):
    draw, mean = RESIDUALS[name]
    rows = draw(np.random.default_rng(n), (800, n))
    half = stats.t.ppf(0.975, n - 1) * rows.std(axis=1, ddof=1) / np.sqrt(n)
    plain = np.mean(np.abs(rows.mean(axis=1) - mean) <= half)
    assert coverage(name, n) >= max(least, plain + 0.05)


def test_two_groups_are_those_of_welch_where_there_is_no_skewness():
    a, b = np.array([-3.0, -1.0, 1.0, 3.0]), np.array([10.0, 11.0, 12.0])
    found = MeanOfDraws([a, -b], known=20.0)
    expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.9)
    assert found.skewness == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(found.interval(0.9), np.array(expected) + 20.0, rtol=1e-12)


def test_the_interval_holds_that_of_students_t_and_leans_to_the_longer_tail():
    d = np.array([0.0, 0.1, 0.2, 0.1, 3.0])
    low, high = MeanOfDraws([d]).interval(0.95)
    half = stats.t.ppf(0.975, 4) * stats.sem(d)
    assert low == pytest.approx(d.mean() - half)
    assert high > d.mean() + half + 0.1
    mirrored = MeanOfDraws([-d]).interval(0.95)
    np.testing.assert_allclose(mirrored, (-high, -low), rtol=1e-12)


@pytest.mark.parametrize("n", [4, 10])
def test_the_interval_is_at_most_twice_as_long_as_by_students_t(n):
    d = np.zeros(n)
    d[0] = 1.0
    low, high = MeanOfDraws([d]).interval(0.95)
    half = stats.t.ppf(0.975, n - 1) * stats.sem(d)
    assert (d.mean() - low, high - d.mean()) == pytest.approx((half, 2 * half), rel=1e-12)


@pytest.mark.parametrize("a", [-0.8, -1e-3, 0.3])
@pytest.mark.parametrize("q", [-4.0, 0.5, 3.0])
def test_halls_transformation_is_inverted(a, q):
    root = optimize.brentq(lambda T: T + a * T**2 / 3 + a**2 * T**3 / 27 + a / 6 - q, -1e5, 1e5, xtol=1e-13)
    assert _hall(q, a) == pytest.approx(root, rel=1e-7)


def test_the_known_number_brings_its_error():
    d = np.array([1.0, 2.0, 4.0])
    assert MeanOfDraws([d], 1.0, 0.5).std == pytest.approx(np.hypot(0.5, stats.sem(d)), rel=1e-14)
    assert MeanOfDraws([np.full(3, 2.0)], 1.0, 0.5).interval(0.95) == pytest.approx(
        3 + 0.5 * stats.norm.ppf([0.025, 0.975])
    )
    assert MeanOfDraws([np.full(3, 2.0)]).interval(0.95) == (2.0, 2.0)


def test_no_interval_is_narrower_than_half_of_what_the_model_expects():
    d, half = np.array([1.0, 1.1, 1.2]), 0.5 * stats.norm.ppf(0.975)
    low, high = MeanOfDraws([d], expected=40.0).interval(0.95)
    assert (low, high) == pytest.approx((1.1 - 40 * half, 1.1 + 40 * half))
    assert MeanOfDraws([d], expected=0.1).interval(0.95) == MeanOfDraws([d]).interval(0.95)
    assert MeanOfDraws([np.ones(3)], expected=2.0).interval(0.95) == pytest.approx((1 - 2 * half, 1 + 2 * half))


def test_units_do_not_matter():
    d, e = np.random.default_rng(0).lognormal(size=(2, 5))
    one, other = MeanOfDraws([d, e], 1.0, 0.1), MeanOfDraws([1e-180 * d, 1e-180 * e], 1e-180, 1e-181)
    np.testing.assert_allclose(1e180 * np.array(other.interval(0.9)), one.interval(0.9), rtol=1e-9)


def test_heavy_residuals_are_noticed():
    rng = np.random.default_rng(3)
    assert np.mean([MeanOfDraws([rng.normal(size=10)]).heavy for _ in range(300)]) < 0.12
    assert np.mean([MeanOfDraws([rng.lognormal(0, 1.5, 10)]).heavy for _ in range(300)]) > 0.6


@pytest.mark.parametrize("n", [1, 4, 9])
@pytest.mark.parametrize("p", [0.0, 0.03, 0.4, 0.9, 1.0])
def test_shares_are_exact(n, p):
    """Clopper and Pearson's interval holds at least as often as it says, whatever the share."""
    holds = [share_interval(k, n, 0.9)[0] <= p <= share_interval(k, n, 0.9)[1] for k in range(n + 1)]
    assert stats.binom.pmf(np.arange(n + 1), n, p) @ holds >= 0.9 - 1e-12


@pytest.mark.parametrize("n", [2, 5, 8])
@pytest.mark.parametrize("shares", [(0.3, 0.1, 0.05), (0.02, 0.0, 0.3), (0.5, 0.5, 0.0), (0.99, 0.01, 0.01)])
def test_disagreements_are_exact(n, shares):
    """All outcomes of n draws, each of one of four kinds, are enumerated."""
    predicted, wrong_in, wrong_out = (
        shares  # of the inputs; of those that are, and are not, predicted to be in the class
    )
    kinds = np.array(
        [
            (1, 1, predicted * (1 - wrong_in)),
            (1, 0, predicted * wrong_in),
            (0, 1, (1 - predicted) * wrong_out),
            (0, 0, (1 - predicted) * (1 - wrong_out)),
        ]
    )
    truth, held = kinds[0, 2] + kinds[2, 2], 0.0
    for counts in itertools.product(range(n + 1), repeat=4):
        if sum(counts) != n:
            continue
        rows = np.repeat(kinds[:, :2].astype(bool), counts, axis=0)
        low, high = disagreement_interval(rows[:, 0], rows[:, 1], predicted, 0.0, 0.9)
        held += (low - 1e-12 <= truth <= high + 1e-12) * stats.multinomial.pmf(counts, n, kinds[:, 2])
    assert held >= 0.9 - 1e-9


@pytest.mark.parametrize("n", [1, 5, 40])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.99])
def test_quantiles_are_exact(n, p):
    """The interval holds the quantile if neither too many nor too few of the draws are below it."""
    low, high = quantile_interval(np.arange(1.0, n + 1), p, 0.9)
    below = np.arange(n + 1)  # draws below the quantile: it is between the values k and k + 1
    holds = (low <= below) & (high >= below + 1)
    assert stats.binom.pmf(below, n, p) @ holds >= 0.9 - 1e-12
    if n == 40 and p == 0.5:
        assert np.isfinite([low, high]).all()


def test_betting_holds_at_all_times_at_once():
    rng, misses = np.random.default_rng(5), 0
    for _ in range(60):
        y = 2 * rng.beta(0.3, 1.2, size=120) - 1
        ends = [betting_interval(y[:n], -1.0, 1.0, 0.9) for n in (5, 20, 60, 120)]
        misses += not all(low <= 2 * 0.2 - 1 <= high for low, high in ends)
    assert misses <= 12
    low, high = ends[-1]
    assert high - low < 0.5
    assert np.diff(betting_interval(y[:10], -1.0, 1.0, 0.95)) > 1  # as the documentation says
