"""Distributions of outputs that are known exactly."""

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.experiments.epidemic_models import INFECTION_RATE, sir

from .known import BOX, four_branches, ishigami, seen

NORMALS = [stats.norm(), stats.norm()]


def holds(estimate, truth, level=0.99):
    low, high = estimate.interval(level)
    return low <= truth <= high


def test_a_linear_function_of_gaussians_is_gaussian():
    output = seen(lambda x: 5 + 2 * x[0] - x[1], NORMALS, 40, 12.0, variance=1e4).distribution()
    truth = stats.norm(5, np.sqrt(5))
    assert output.variance().mean == pytest.approx(5, rel=1e-4)
    assert output.std().mean == pytest.approx(np.sqrt(5), rel=1e-4)
    for p in (0.01, 0.25, 0.5, 0.95):
        assert output.quantile(p).mean == pytest.approx(truth.ppf(p), abs=0.02)
        assert output.probability(below=truth.ppf(p)).mean == pytest.approx(p, abs=1.5e-3)
        assert output.probability(above=truth.ppf(p)).mean == pytest.approx(1 - p, abs=1.5e-3)
    assert output.probability(above=4, below=6).mean == pytest.approx(truth.cdf(6) - truth.cdf(4), abs=1.5e-3)
    grid = output.grid(15)
    np.testing.assert_allclose(output.cdf(grid).mean, truth.cdf(grid), atol=1.5e-3)
    np.testing.assert_allclose(output.density(grid).mean, truth.pdf(grid), atol=6e-3)  # it is smoothed


def test_a_quadratic_function_of_a_gaussian():
    """Half of the square of a standard normal variable has a scaled chi-squared distribution."""
    output = seen(lambda x: 0.5 * x[0] ** 2, [stats.norm()], 24, 4.0, variance=1e4).distribution()
    assert output.variance().mean == pytest.approx(0.5, rel=1e-3)
    assert output.quantile(0.95).mean == pytest.approx(stats.chi2(1).ppf(0.95) / 2, rel=5e-3)
    assert output.probability(above=0.5).mean == pytest.approx(stats.chi2(1).sf(1.0), abs=1e-3)


def test_ishigami():
    variance = seen(ishigami, BOX, 200, [3.0, 1.5, 3.0]).distribution().variance()
    assert variance.mean == pytest.approx(13.845, rel=5e-3)
    assert holds(variance, 7**2 / 8 + 0.1 * np.pi**4 / 5 + 0.1**2 * np.pi**8 / 18 + 0.5)


def test_a_system_of_four_branches():
    def kernel(lengthscale):
        return amsbq.Matern(1.5, lengthscale)

    wide = amsbq.Gaussian([0, 0], 4.0)
    output = seen(four_branches, NORMALS, 150, 4.0, variance=9.0, kernel=kernel, where=wide).distribution()
    failure = output.probability(below=0.0)
    assert holds(failure, 2.22e-3)
    assert failure.mean == pytest.approx(2.22e-3, rel=0.3)


def test_dependent_inputs_and_samples():
    correlated = amsbq.Gaussian([0, 0], [[1, 0.6], [0.6, 1]])
    output = seen(lambda x: x[0] + x[1], correlated, 40, 12.0, variance=1e4).distribution()
    assert output.variance().mean == pytest.approx(3.2, rel=5e-3)
    samples = amsbq.Empirical([[0.0], [1.0], [3.0]], [0.5, 0.25, 0.25])
    output = seen(lambda x: x[0] ** 2, samples, 40, 4.0, variance=1e4).distribution()
    assert output.variance().mean == pytest.approx(0.25 * 1 + 0.25 * 81 - 2.5**2, rel=1e-2)
    assert output.probability(above=0.5).mean == pytest.approx(0.5, abs=2e-3)
    assert output.quantile(0.9).mean == pytest.approx(9.0, rel=1e-2)


def test_an_interval_has_its_ends_in_order():
    result = amsbq.integrate(lambda x: x[0], amsbq.Uniform(0, 1), budget=3)
    with pytest.raises(ValueError, match=r"above must be less than below: .* got 2 and 1"):
        result.distribution().probability(above=2, below=1)


def test_categories_count_with_their_probabilities():
    measure = amsbq.Product([{"idle": 0.3, "full": 0.7}, stats.uniform(0, 1)])
    output = seen(lambda x: 10 * x[0] + x[1], measure, 20, [2.0, 3.0]).distribution()
    assert output.variance().mean == pytest.approx(100 * 0.21 + 1 / 12, rel=1e-2)
    assert output.probability(above=5).mean == pytest.approx(0.7, abs=2e-3)


def test_bounded_quantities_stay_within_their_bounds():
    """From two evaluations next to nothing is known, which makes no probability negative."""
    result = amsbq.integrate(lambda x: x[0], amsbq.Uniform([0, 0], [1, 1]), budget=2)
    output = result.distribution()
    for estimate in (output.probability(above=0.1), output.probability(above=3.0)):
        low, high = estimate.interval(0.999)
        assert 0 <= low <= high <= 1
    assert output.variance().interval(0.999)[0] >= 0
    assert output.std().interval(0.9)[0] ** 2 == pytest.approx(output.variance().interval(0.9)[0], rel=1e-6, abs=1e-10)
    low, high = output.cdf([-1.0, 0.5, 2.0]).interval()
    assert (low >= 0).all()
    assert (high <= 1).all()
    assert (low <= high).all()


def test_units_do_not_matter():
    plain, scaled = (
        amsbq.integrate(lambda x: a * np.sin(4 * x[0]) + b, [(0, 1)], budget=4, model="lmc").distribution()  # noqa: B023
        for a, b in ((1.0, 0.0), (1e-7, 1e3))
    )
    assert scaled.std().mean == pytest.approx(1e-7 * plain.std().mean, rel=1e-3)
    assert scaled.quantile(0.9).mean - 1e3 == pytest.approx(1e-7 * plain.quantile(0.9).mean, rel=1e-2)


def test_steps_under_heavy_tails_have_finite_answers():
    def kernel(lengthscale):
        return amsbq.Matern(0.5, lengthscale)

    output = seen(lambda x: float(x[0] > 0.4), [stats.t(2)], 24, 2.0, variance=1.0, kernel=kernel).distribution()
    for estimate in (output.variance(), output.quantile(0.05), output.probability(above=0.5)):
        assert np.isfinite([estimate.mean, estimate.std, *estimate.interval()]).all()
    assert np.isfinite(output.density(output.grid(3)).mean).all()
    assert holds(output.probability(above=0.5), stats.t(2).sf(0.4))


def test_a_constant_output_may_vary_elsewhere():
    with pytest.warns(UserWarning, match="do not show how much it varies"):
        output = amsbq.integrate(lambda x: 3.0, amsbq.Uniform(0, 1), budget=3).distribution()
    assert holds(output.std(), 0.0)
    assert holds(output.quantile(0.9), 3.0)
    assert np.isfinite(output.density([2.0, 3.0]).mean).all()


def test_what_is_asked_for_wrongly():
    output = seen(lambda x: x[0], [stats.norm()], 6, 4.0).distribution()
    with pytest.raises(ValueError, match="give a limit"):
        output.probability()
    with pytest.raises(ValueError, match=r"p must be between 0.001 and 0.999, got 0.0001"):
        output.quantile(1e-4)
    it = amsbq.Integrator([amsbq.Source(), amsbq.Source(cost=0.1)], amsbq.Uniform(0, 1))
    it.observe(1, 0.5, 1.0)
    with pytest.raises(ValueError, match="nothing is known about source 0 yet"):
        it.result().distribution()
    with pytest.raises(ValueError, match="there is no model to ask for a distribution"):
        amsbq.baselines.monte_carlo(lambda x: x[0], amsbq.Uniform(0, 1), budget=4).distribution()


@pytest.mark.slow
def test_an_epidemic_grows_with_its_infection_rate():
    """Quantiles of an increasing function are its values at the quantiles of the input."""

    def peak(x):
        return sir(x[0])[2][-1]

    output = amsbq.integrate(peak, INFECTION_RATE, budget=8).distribution()
    rates = INFECTION_RATE.ppf((np.arange(1000) + 0.5) / 1000)
    spread = output.std()
    assert abs(spread.mean - np.std([peak([rate]) for rate in rates])) < 3 * spread.std
    for p in (0.05, 0.5, 0.95):
        truth = peak([INFECTION_RATE.ppf(p)])
        assert holds(output.quantile(p), truth)
        assert holds(output.probability(below=truth), p)
        assert output.quantile(p).std < 2.0  # of 100 people
    assert "95 % quantile:" in str(output)
