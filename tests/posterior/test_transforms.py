"""Transforms and their moments, against quadrature and closed forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from amsbq.gp.data import Data
from amsbq.measures.uniform import Uniform
from amsbq.posterior.channel import crps
from amsbq.posterior.moments import Scaled
from amsbq.posterior.schedule import choice_stage
from amsbq.posterior.transforms import OutputRange, Shape, Transform, checked_range

RANGES = [OutputRange(0.0, np.inf), OutputRange(-np.inf, 3.0), OutputRange(-1.0, 2.0)]
CASES = [(known, shape) for known in RANGES for shape in known.shapes]
Y = np.array([0.01, 0.5, 1.2, 1.9])
LINE = Uniform(0, 1)


@pytest.mark.parametrize(("known", "shape"), CASES)
def test_values_come_back(known, shape):
    transform = Transform.of(shape, known, Y)
    assert_allclose(transform.values(transform.back(transform.to(Y))), Y, rtol=1e-12)


@pytest.mark.parametrize(("known", "shape"), CASES)
def test_no_g_leaves_the_range(known, shape):
    transform = Transform.of(shape, known, Y)
    f = transform.values(transform.back(np.linspace(-60, 60, 241)))
    assert (f >= known.low).all()
    assert (f <= known.high).all()


@pytest.mark.parametrize(("known", "shape"), CASES)
def test_values_at_the_bounds_are_finite(known, shape):
    ends = [end for end in (known.low, known.high) if np.isfinite(end)]
    y = np.append(Y, ends)
    g = Transform.of(shape, known, y).to(y)
    assert np.isfinite(g).all()


def test_logarithms_from_minus_ten_thousand_to_zero():
    known, logs = checked_range(None, log=True), np.array([-1e4, -300.0, -2.0, 0.0])
    as_log, as_root = (Transform.of(shape, known, logs) for shape in (Shape("log", 3.0), Shape("root")))
    g = as_log.to(logs)
    assert (np.diff(g) > 0).all()
    assert_allclose(as_log.log_back(g) + as_log.unit, logs, rtol=1e-12)
    assert_allclose(as_root.values(as_root.back(as_root.to(logs[1:]))), logs[1:], rtol=1e-12, atol=1e-12)
    shifted = Transform.of(Shape("log", 3.0), known, logs - 5e4)  # whose exponentials are all zero
    assert_allclose(shifted.to(logs - 5e4), g, rtol=1e-9)


@pytest.mark.parametrize(("known", "shape"), CASES)
def test_variances_are_those_of_small_deviations(known, shape):
    y, std = Y[1:3], 1e-4
    transform = Transform.of(shape, known, Y)
    data = transform.transformed(
        Data(np.zeros(2, int), np.zeros((2, 1)), y, np.full(2, std**2 / 4)), [0.75 * std**2], LINE
    )
    slopes = (transform.to(y + 1e-6) - transform.to(y - 1e-6)) / 2e-6
    assert_allclose(data.noise_var, (slopes * std) ** 2, rtol=1e-5)


@pytest.mark.parametrize(("known", "shape"), [case for case in CASES if case[1].kind != "exp"])
def test_moments_of_a_gaussian(known, shape):
    transform = Transform.of(shape, known, Y)
    mean, std = 0.7, 0.6
    scaled = Scaled(transform, 0.2, 1.5)

    def moment(power, centre=0.0):
        g = stats.norm(mean, std)
        return integrate.quad(
            lambda t: (transform.back(0.2 + 1.5 * np.array(t)) - centre) ** power * g.pdf(t), -5, 6.5, epsabs=1e-12
        )[0]

    found_mean, found_variance = scaled.mean_and_variance(np.array([[mean]]), np.array([[std**2]]))
    kinks = shape.kind == "cut"
    assert_allclose(found_mean[0, 0], moment(1), rtol=0.01 if kinks else 1e-6)
    assert_allclose(found_variance[0, 0], moment(2, moment(1)), rtol=0.05 if kinks else 1e-4)


def test_covariances_of_squares_and_cosines():
    """Σ_p a_p a_p' ρ^p, for the root and the arcsine, whose covariances have closed forms."""
    m, C = np.array([0.4, 1.3]), np.array([[0.3, 0.1], [0.1, 0.5]])
    rho = C[0, 1] / np.sqrt(C[0, 0] * C[1, 1])
    for known, shape, truth in (
        (RANGES[0], Shape("root"), m[0] * m[1] * C[0, 1] + C[0, 1] ** 2 / 2),
        (
            RANGES[2],
            Shape("arcsine"),
            np.exp(-0.5 * (C[0, 0] + C[1, 1]))
            * (
                np.cosh(C[0, 1]) * np.cos(m[0]) * np.cos(m[1])
                + np.sinh(C[0, 1]) * np.sin(m[0]) * np.sin(m[1])
                - np.cos(m[0]) * np.cos(m[1])
            )
            / 4,
        ),
    ):
        a = Scaled(Transform.of(shape, known, Y), 0.0, 1.0).coefficients(m[None], np.diag(C)[None])[1:, 0]
        assert_allclose(sum(row[0] * row[1] * rho ** (p + 1) for p, row in enumerate(a)), truth, rtol=1e-6)


def test_an_exponential_that_is_linear_around_the_mean():
    """Its slope against differences, and its moments, which are those of a linear function of a Gaussian."""
    transform = Transform.of(Shape("exp", 20.0), checked_range(None, log=True), np.array([-30.0, -3.0, 2.0]))
    g, m, C = np.array([-2.0, 0.1, 0.7]), np.array([0.4, -1.3]), np.array([[0.3, 0.1], [0.1, 5.0]])
    slopes = (transform.back(g + 1e-6) - transform.back(g - 1e-6)) / 2e-6
    assert_allclose(transform.slope(g), slopes, rtol=1e-8)
    scaled = Scaled(transform, 0.2, 1.5)
    mean, variance = scaled.mean_and_variance(m[None], np.diag(C)[None])
    at = 0.2 + 1.5 * m
    assert_allclose(mean[0], transform.back(at), rtol=1e-12)
    assert_allclose(variance[0], (1.5 * transform.slope(at)) ** 2 * np.diag(C), rtol=1e-12)
    a = scaled.coefficients(m[None], np.diag(C)[None])[1:, 0]
    rho = C[0, 1] / np.sqrt(C[0, 0] * C[1, 1])
    truth = 1.5**2 * np.prod(transform.slope(at)) * C[0, 1]
    assert_allclose(sum(row[0] * row[1] * rho ** (p + 1) for p, row in enumerate(a)), truth, rtol=1e-12)


def test_the_score_of_a_prediction():
    r, weights = np.random.default_rng(0).normal(size=(1, 4000)), np.full(4000, 1 / 4000)
    closed = 2 * stats.norm.pdf(0.3) + 0.3 * (2 * stats.norm.cdf(0.3) - 1) - 1 / np.sqrt(np.pi)  # of a Gaussian
    assert_allclose(crps(r, weights, np.array([0.3])), closed, atol=0.01)


def test_choices_are_few_and_depend_on_the_number_alone():
    stages = {choice_stage(n) for n in range(1, 500)}
    assert len(stages) < 30
    assert all(choice_stage(n) <= n < 1.3 * choice_stage(n) + 1 for n in range(1, 500))


def test_what_is_no_range():
    with pytest.raises(ValueError, match="low below high"):
        checked_range((1, 0), log=False)
    with pytest.raises(TypeError, match="pair"):
        checked_range(3.0, log=False)
    with pytest.raises(ValueError, match="no output_range"):
        checked_range((0, 1), log=True)
    assert checked_range((-np.inf, np.inf), log=False) is None
