"""Baselines: each method against its formula, the coverage of its intervals, failures, seeds and refusals."""

import math

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq import baselines

NORMAL = stats.norm(0, 0.5)
SEVERAL = ["control variate", "multilevel Monte Carlo", "multifidelity Monte Carlo", "MLBLUE"]


def fine(x):
    return float(np.exp(x[0]))


def coarse(x):
    return float(1 + x[0] + 0.5 * x[0] ** 2)


TRUTH = float(np.exp(0.125))
SOURCES = [amsbq.Source(fine), amsbq.Source(coarse, cost=0.01)]


def values(result, source=0):
    return np.array([e.value for e in result.evaluations if e.source == source])


@pytest.mark.front_door
def test_monte_carlo_is_an_average_with_students_interval():
    result = baselines.monte_carlo(SOURCES, NORMAL, budget=40, seed=3)
    y = values(result)
    assert len(y) == 40
    assert result.mean == pytest.approx(y.mean(), rel=1e-13)
    expected = stats.t(39, loc=y.mean(), scale=y.std(ddof=1) / np.sqrt(40)).interval(0.95)
    assert result.interval(0.95) == pytest.approx(expected, rel=1e-10)
    at_ten = result.evaluations[9]
    assert at_ten.mean == pytest.approx(y[:10].mean(), rel=1e-13)
    assert at_ten.std == pytest.approx(y[:10].std(ddof=1) / np.sqrt(10) * np.sqrt(9 / 7), rel=1e-12)


def test_large_levels_do_not_cancel():
    result = baselines.monte_carlo(lambda x: 1e9 + x[0], NORMAL, budget=50)
    y = values(result)
    assert result.std == pytest.approx(y.std(ddof=1) / np.sqrt(50) * np.sqrt(49 / 47), rel=1e-6)


def test_quasi_monte_carlo_averages_scrambled_sequences():
    result = baselines.quasi_monte_carlo(SOURCES, NORMAL, budget=128, replicates=4, seed=5)
    measure = amsbq.as_measure(NORMAL)
    averages = [
        np.mean([fine(x) for x in measure.sobol(32, np.random.default_rng([5, replicate]))]) for replicate in range(4)
    ]
    assert result.mean == pytest.approx(np.mean(averages), rel=1e-12)
    expected = stats.t(3, loc=np.mean(averages), scale=np.std(averages, ddof=1) / 2).interval(0.8)
    assert result.interval(0.8) == pytest.approx(expected, rel=1e-9)
    assert math.isnan(result.evaluations[2].std)  # less than one round


def test_quasi_monte_carlo_goes_on_with_the_same_sequence():
    result = baselines.quasi_monte_carlo(SOURCES, NORMAL, budget=2 * 1500, replicates=2, seed=1)
    first = np.array([e.x[0] for e in result.evaluations[::2]])
    expected = amsbq.as_measure(NORMAL).sobol(2048, np.random.default_rng([1, 0]))[:1500, 0]
    np.testing.assert_array_equal(first, expected)


@pytest.mark.parametrize("name", ["Monte Carlo", "quasi Monte Carlo", *SEVERAL])
def test_intervals_cover(name):
    inside, sources = 0, [fine, amsbq.Source(coarse, cost=0.2)]
    for seed in range(80):
        low, high = baselines.BASELINES[name](sources, NORMAL, budget=12, seed=seed).interval(0.9)
        inside += low < TRUTH < high
    assert stats.binom(80, 0.9).ppf(1e-4) <= inside  # skewed functions make it a little less than exact


def test_percentiles_of_a_uniform_measure_are_a_riemann_sum():
    result = baselines.percentile(fine, amsbq.Uniform(0, 2), budget=8.5, nodes="right")
    assert result.mean == pytest.approx(np.mean(np.exp(2 * np.arange(1, 9) / 8)), rel=1e-14)
    assert math.isnan(result.std)
    assert result.interval() == pytest.approx((math.nan, math.nan), nan_ok=True)
    assert str(result).startswith(f"integral: {result.mean:.6g}, without an error bar")


def test_percentiles_of_any_measure():
    gamma = stats.gamma(5, loc=1, scale=4)
    result = baselines.percentile(lambda x: x[0], gamma, budget=10)
    assert result.mean == pytest.approx(gamma.ppf((np.arange(10) + 0.5) / 10).mean(), rel=1e-9)
    with pytest.raises(ValueError, match="no right end"):
        baselines.percentile(lambda x: x[0], gamma, budget=10, nodes="right")
    flat = baselines.percentile(lambda x: x[0] * x[1], [(0, 1), stats.norm()], budget=30)
    assert len(flat.evaluations) == 25  # 5 × 5
    assert flat.mean == pytest.approx(0.0, abs=1e-12)


def test_percentiles_pay_what_each_costs():
    dear = amsbq.Source(fine, cost=lambda x: 0.5 + float(x[0]))
    result = baselines.percentile(dear, amsbq.Uniform(0, 1), budget=10)
    assert len(result.evaluations) == 10
    assert result.spent == pytest.approx(10)
    with pytest.raises(ValueError, match="not measured"):
        baselines.percentile(amsbq.Source(fine, cost="measured"), NORMAL, budget=1)


def test_the_secondary_source_alone_is_biased_and_does_not_say_how_much():
    result = baselines.secondary_only(SOURCES, NORMAL, budget=20)
    assert result.mean == pytest.approx(1.125, abs=3e-3)  # and the truth is 1.1331
    assert math.isnan(result.std)
    assert {e.source for e in result.evaluations} == {1}


def test_a_perfect_control_variate_leaves_only_its_own_error():
    sources = [lambda x: 3 + 2 * coarse(x), amsbq.Source(coarse, cost=0.01)]
    result = baselines.control_variate(sources, NORMAL, budget=20, seed=2)
    cheap = values(result, 1)
    assert len(cheap) > 3 * len(values(result))
    assert result.mean == pytest.approx(3 + 2 * cheap.mean(), rel=1e-12)
    dof = len(values(result)) - 2
    assert result.estimate.scales[0] == pytest.approx(2 * cheap.std(ddof=1) / np.sqrt(len(cheap)), rel=1e-9)
    assert result.estimate.dof == dof


def test_a_useless_control_variate_costs_little():
    sources = [fine, amsbq.Source(lambda x: float(np.sin(1e4 * x[0])), cost=0.01)]
    made = values(baselines.control_variate(sources, NORMAL, budget=50))
    assert len(made) > 40


@pytest.mark.front_door
def test_vanilla_bq_is_the_integral_from_the_primary_source():
    alone = baselines.vanilla_bq(SOURCES, NORMAL, budget=5)
    same = amsbq.integrate(SOURCES, NORMAL, budget=5, model="vbq")
    assert (alone.mean, alone.std) == (same.mean, same.std)


@pytest.mark.parametrize("name", ["Monte Carlo", "quasi Monte Carlo", "percentiles", "multilevel BQ", *SEVERAL])
def test_failures_are_charged_and_left_out(name):
    def fails_above(x):
        if x[0] > 0.6:
            raise RuntimeError("too hot")
        return fine(x)

    result = baselines.BASELINES[name]([amsbq.Source(fails_above), SOURCES[1]], NORMAL, budget=60)
    failed = [e for e in result.evaluations if e.status == "failed"]
    assert failed
    assert "too hot" in failed[0].reason
    assert result.spent <= 60
    assert np.isfinite(result.mean)


@pytest.mark.parametrize("name", ["Monte Carlo", "quasi Monte Carlo", "percentiles", "multilevel BQ", *SEVERAL])
def test_nothing_to_report_is_said(name):
    def broken(x):
        raise RuntimeError("no licence")

    with pytest.raises(RuntimeError, match="no licence"):
        baselines.BASELINES[name]([broken, amsbq.Source(broken, cost=0.1)], NORMAL, budget=12)


@pytest.mark.parametrize("name", ["Monte Carlo", "quasi Monte Carlo", "secondary only", "multilevel BQ", *SEVERAL])
def test_rng_is_a_seed_or_a_generator_that_draws_one(name):
    def locations(**options):
        result = baselines.BASELINES[name](SOURCES, NORMAL, budget=6, **options)
        return [(e.source, *e.x) for e in result.evaluations]

    assert locations() == locations(seed=0)
    assert locations(rng=7) == locations(seed=7) != locations(seed=8)
    drawn = np.random.default_rng(3).integers(2**31, size=2)
    generator = np.random.default_rng(3)
    assert [locations(rng=generator) for _ in drawn] == [locations(seed=seed) for seed in drawn]
    with pytest.raises(ValueError, match="not both"):
        locations(seed=1, rng=1)


def test_workers_find_the_same():
    serial, parallel = (baselines.monte_carlo(SOURCES, NORMAL, budget=30, seed=1, workers=n) for n in (1, 4))
    assert parallel.mean == pytest.approx(serial.mean, rel=1e-13)
    assert parallel.interval() == pytest.approx(serial.interval(), rel=1e-12)


def test_what_cannot_work_is_refused():
    with pytest.raises(ValueError, match="needs a secondary source"):
        baselines.control_variate(fine, NORMAL, budget=4)
    with pytest.raises(ValueError, match="at least 2"):
        baselines.quasi_monte_carlo(fine, NORMAL, budget=4, replicates=1)
    with pytest.raises(ValueError, match="'middle' or 'right'"):
        baselines.percentile(fine, NORMAL, budget=4, nodes="left")
