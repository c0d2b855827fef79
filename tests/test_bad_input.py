"""Wrong arguments raise at once, with a message that says what was given and what is accepted."""

import numpy as np
import pytest
from scipy import stats

import amsbq

UNIT = amsbq.Uniform(0, 1)
RBF = amsbq.RBF(0.3)
GP = amsbq.MultiSourceGP([amsbq.Term(np.eye(2), RBF)], UNIT)


class HalfADistribution:
    def pdf(self, t):
        return t

    def support(self):
        return 0, 1


POST = GP.condition([0, 1], [0.2, 0.4], [1, 2])


CASES = {
    "B not symmetric": (lambda: amsbq.Term([[1, 0.5], [0.2, 1]], RBF), "symmetric.*differ by 3.0e-01"),
    "B indefinite": (lambda: amsbq.Term([[1, 2], [2, 1]], RBF), "positive semi-definite.*eigenvalue -1.*W Wᵀ"),
    "B with a tiny negative variance": (lambda: amsbq.Term([[1e24, 0], [0, -1e-5]], RBF), "negative variances"),
    "B indefinite in small units": (lambda: amsbq.Term([[1e24, 2], [2, 1e-24]], RBF), "positive semi-definite"),
    "B zero variance with covariance": (lambda: amsbq.Term([[0, 1], [1, 1]], RBF), "positive semi-definite"),
    "B not square": (lambda: amsbq.Term([[1, 0]], RBF), r"square.*shape \(1, 2\)"),
    "B with nan": (lambda: amsbq.Term([[np.nan]], RBF), r"finite, got nan at index \(0, 0\)"),
    "B of strings": (lambda: amsbq.Term("eye", RBF), "real numbers"),
    "terms of different sizes": (
        lambda: amsbq.MultiSourceGP([amsbq.Term(np.eye(2), RBF), amsbq.Term(np.eye(3), RBF)], UNIT),
        r"same number of sources.*\[2, 3\]",
    ),
    "no terms": (lambda: amsbq.MultiSourceGP([], UNIT), "non-empty list"),
    "a kernel as term": (lambda: amsbq.MultiSourceGP([RBF], UNIT), "amsbq.Term"),
    "kernel missing": (lambda: amsbq.Term(1.0, "rbf"), "kernel must be RBF"),
    "negative lengthscale": (lambda: amsbq.RBF([0.1, -1]), "positive"),
    "zero lengthscale": (lambda: amsbq.Matern(0.5, 0.0), "positive"),
    "infinite lengthscale": (lambda: amsbq.RBF(np.inf), "finite"),
    "no lengthscale": (lambda: amsbq.RBF([]), "one per dimension"),
    "matrix of lengthscales": (lambda: amsbq.RBF([[1.0]]), "one per dimension"),
    "nu": (lambda: amsbq.Matern(1.0, 0.3), "0.5, 1.5 or 2.5, got 1.0"),
    "lengthscales for another dimension": (
        lambda: amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF([1, 2]))], UNIT),
        "2 lengthscales but the points have 1",
    ),
    "negative noise": (
        lambda: amsbq.MultiSourceGP([amsbq.Term(1.0, RBF)], UNIT, noise=-1),
        "noise must not be negative",
    ),
    "noise for three": (lambda: amsbq.MultiSourceGP([amsbq.Term(1.0, RBF)], UNIT, noise=[1, 2, 3]), "1 of them"),
    "mean nan": (lambda: amsbq.MultiSourceGP([amsbq.Term(1.0, RBF)], UNIT, mean=np.nan), "mean must be finite"),
    "y with nan": (lambda: GP.condition([0, 0], [0.1, 0.2], [1, np.nan]), "y must be finite, got nan at index 1"),
    "X with inf": (lambda: GP.condition([0, 0], [0.1, np.inf], [1, 2]), "X must be finite"),
    "y too short": (lambda: GP.condition([0, 0], [0.1, 0.2], [1]), r"shape \(2,\)"),
    "y a column": (lambda: GP.condition([0, 0], [0.1, 0.2], [[1], [2]]), r"shape \(2,\)"),
    "sources too short": (lambda: GP.condition([0], [0.1, 0.2], [1, 2]), "each of the 2 points"),
    "no such source": (lambda: GP.condition([0, 2], [0.1, 0.2], [1, 2]), "no source 2.*numbered 0 to 1"),
    "negative source": (lambda: GP.condition([0, -1], [0.1, 0.2], [1, 2]), "no source -1"),
    "sources as floats": (lambda: GP.condition([0.0, 1.0], [0.1, 0.2], [1, 2]), "integers from 0 to 1"),
    "sources as bools": (lambda: GP.condition([True, False], [0.1, 0.2], [1, 2]), "integers"),
    "noise_var negative": (lambda: GP.condition([0], [0.1], [1], [-1]), "noise_var must not be negative"),
    "noise_var shape": (lambda: GP.condition([0], [0.1], [1], [1, 2]), "noise_var"),
    "X of two dimensions": (lambda: GP.condition([0], [[0.1, 0.2]], [1]), r"shape \(n, 1\).*got shape \(1, 2\)"),
    "X of three axes": (lambda: GP.condition([0], [[[0.1]]], [1]), r"shape \(n, 1\)"),
    "one point without brackets": (
        lambda: amsbq.kernel_mean(RBF, amsbq.Uniform([0, 0], 1), [0.1, 0.2]),
        r"for one point pass X\[None, :\]",
    ),
    "X outside": (
        lambda: GP.condition([0, 0], [0.5, 1.5], [1, 2]),
        r"X\[1\] is outside.*input 0 is 1.5.*between 0.0 and 1.0",
    ),
    "X outside a half-bounded support": (
        lambda: amsbq.kernel_mean(RBF, stats.gamma(5, loc=1), [0.5]),
        "outside.*between 1.0 and inf",
    ),
    "predict outside": (lambda: POST.predict(0, [2.0]), "outside"),
    "predict of a source that is not there": (lambda: POST.predict(2, [0.5]), "no source 2"),
    "integral of a source that is not there": (lambda: POST.integral(-1), "no source -1"),
    "integral of a fraction": (lambda: POST.integral(0.5), "integers"),
    "predict of several": (lambda: POST.predict([0, 1], [0.5]), "single number"),
    "correlation outside": (lambda: POST.squared_correlation(0, [-1.0]), "outside"),
    "joint correlation shapes": (lambda: POST.squared_correlation_joint([0, 1, 1], [0.1, 0.2]), "each of the 2 points"),
    "correlation with a target that is not there": (
        lambda: POST.squared_correlation(0, [0.5], target=2),
        "no source 2",
    ),
    "extend with nan": (lambda: POST.extend([0], [0.5], [np.nan]), "y must be finite"),
    "uniform upside down": (lambda: amsbq.Uniform([0, 1], [1, 1]), "lower must be below upper"),
    "uniform without end": (lambda: amsbq.Uniform(0, np.inf), "upper must be finite"),
    "uniform of different lengths": (lambda: amsbq.Uniform([0, 1], [1, 2, 3]), "one length"),
    "cov negative": (lambda: amsbq.Gaussian(0, -1), "positive"),
    "cov not symmetric": (lambda: amsbq.Gaussian([0, 0], [[1, 0.5], [0.1, 1]]), "symmetric"),
    "cov singular": (lambda: amsbq.Gaussian([0, 0], [[1, 1], [1, 1]]), "positive definite"),
    "cov and mean": (lambda: amsbq.Gaussian([0, 0], np.eye(3)), "mean must be one number or 3"),
    "discrete, not frozen": (lambda: amsbq.Product([stats.poisson]), r"without its parameters.*stats.poisson\(...\)"),
    "discrete and constant": (lambda: amsbq.as_measure(stats.binom(5, 0)), "single value"),
    "not frozen": (lambda: amsbq.Product([stats.gamma]), r"without its parameters.*stats.gamma\(...\)"),
    "not frozen, as measure": (lambda: amsbq.as_measure(stats.norm), "freeze it"),
    "not a distribution": (lambda: amsbq.Product([3.0]), "frozen continuous"),
    "not in a list": (lambda: amsbq.Product(stats.norm()), r"Product\(\[distribution\]\)"),
    "wrong parameters": (
        lambda: amsbq.Product([stats.gamma(-1)]),
        r"gamma\(-1\), whose parameters scipy does not accept",
    ),
    "array parameters": (lambda: amsbq.Product([stats.norm([0, 1])]), "one distribution per input"),
    "circular": (lambda: amsbq.Product([stats.vonmises(3)]), "integrates to.*vonmises_line"),
    "no distribution, by name": (
        lambda: amsbq.as_measure({"load": (0, 1), "size": "norm"}),
        "the distribution of size",
    ),
    "interval by name": (lambda: amsbq.as_measure({"x": {"low": 0, "high": 1}}), r"interval is \(low, high\)"),
    "normal by name": (lambda: amsbq.as_measure({"x": {"mean": 3, "std": 1}}), r"stats.norm\(mean, std\)"),
    "nothing like a measure": (lambda: amsbq.as_measure("uniform"), "cannot make a measure"),
    "no measure": (lambda: amsbq.as_measure(None), "cannot make a measure"),
    "empty list": (lambda: amsbq.as_measure([]), "cannot make a measure"),
    "pair upside down": (lambda: amsbq.as_measure([(1, 0)]), r"the input is \(1, 0\), .* with low below high$"),
    "mean and deviation as a pair": (
        lambda: amsbq.integrate(abs, {"angle": (0, 1), "speed": (40, 3)}, budget=3),
        r"^speed is \(40, 3\), .* with mean 40 and standard deviation 3 it is stats\.norm\(40, 3\)$",
    ),
    "progress as text": (
        lambda: amsbq.integrate(abs, amsbq.Uniform(0, 1), budget=3, progress="bar"),
        "progress must be True, False, None or a callable that takes the Integrator, got 'bar'",
    ),
    "weights negative": (lambda: amsbq.Empirical([[0], [1]], [1, -1]), "weights must not be negative"),
    "weights zero": (lambda: amsbq.Empirical([[0], [1]], [0, 0]), "not all be zero"),
    "weights too few": (lambda: amsbq.Empirical([[0], [1]], [1]), "one per sample"),
    "no samples": (lambda: amsbq.Empirical(np.zeros((0, 2))), "at least one sample"),
    "samples with nan": (lambda: amsbq.Empirical([[0], [np.nan]]), "samples must be finite"),
    "ragged": (lambda: amsbq.Empirical([[0, 1], [1]]), "regular array"),
    "kernel of nothing": (lambda: amsbq.kernel_mean(None, UNIT, [0.5]), "kernel must be RBF"),
    "kernel as a class": (lambda: amsbq.kernel_variance(amsbq.RBF, UNIT), "kernel must be RBF"),
    "distribution as a class": (lambda: amsbq.Product([stats.rv_histogram]), "is the class rv_histogram"),
    "discrete of too many values": (lambda: amsbq.as_measure(stats.poisson(1e9)), "more than 5000 values"),
    "half a distribution": (lambda: amsbq.Product([HalfADistribution()]), "frozen continuous"),
    "nu in a list": (lambda: amsbq.Matern([1.5], 1), "0.5, 1.5 or 2.5"),
    "nu complex": (lambda: amsbq.Matern(1.5 + 0j, 1), "real numbers"),
    "masked": (lambda: GP.condition([0], [0.5], np.ma.array([1.0], mask=[True])), "y has masked entries"),
    "sample of a shape": (lambda: UNIT.sample((2, 3)), "whole number"),
    "sample of less than none": (lambda: UNIT.sample(-1), "not be negative"),
    "ragged sources": (lambda: GP.condition([0, [1]], [0.1, 0.2], [1, 2]), "rows of different lengths"),
    "points without inputs": (lambda: RBF(np.zeros((2, 0)), np.zeros((3, 0))), r"shape \(n, D\)"),
    "points of different inputs": (lambda: amsbq.Constant()([[1, 2]], [[1]]), r"Y must have shape \(n, 2\)"),
    "scales that overflow": (
        lambda: amsbq.MultiSourceGP([amsbq.Term(1e308, RBF)] * 3, UNIT),
        "variances.*overflow",
    ),
    "bytes as measure": (lambda: amsbq.as_measure(b"ab"), "cannot make a measure"),
    "samples as measure": (lambda: amsbq.as_measure(np.zeros((50, 3))), r"Empirical\(samples\)"),
    "complex": (lambda: GP.condition([0], [0.5], [1j]), "real numbers"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name):
    attempt, message = CASES[name]
    with pytest.raises((ValueError, TypeError), match=message):
        attempt()


def test_the_edge_of_the_support_survives_rounding():
    """What rounding, also to single precision, puts just outside counts as on the edge."""
    at, near = (
        GP.condition([0, 0], [0.0, 1.0], [1, 2]),
        GP.condition([0, 0], [0.1 + 0.2 - 0.3 - 1e-17, 1 + 2e-16], [1, 2]),
    )
    np.testing.assert_allclose(near.integral(), at.integral(), rtol=1e-12)
    for measure, edge, outside in (
        (amsbq.Uniform(0, 0.1), 0.1, np.float32(0.1)),
        (stats.gamma(3, loc=1), 1.0, np.nextafter(1, 0)),
    ):
        found, expected = (amsbq.kernel_mean(RBF, measure, [x]) for x in (outside, edge))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(ValueError, match="outside the support"):
        amsbq.kernel_mean(RBF, amsbq.Uniform(0, 0.1), [0.1001])


def test_what_is_no_stop_rule_and_no_level():
    with pytest.raises(TypeError, match="stop must be callables that take the Integrator"):
        amsbq.integrate(lambda x: x[0], (0, 1), budget=3, stop="now")
    estimate = amsbq.Estimate([1.0], [0.1])
    for asked, name in ((estimate.interval, "level"), (estimate.quantile, "p")):
        with pytest.raises(TypeError, match=f"{name} must be"):
            asked("a")
