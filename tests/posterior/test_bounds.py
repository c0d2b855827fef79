"""Values on a bound of their range: error bars that hold, whatever functions are like next to it."""

import numpy as np
import pytest
from scipy import integrate as scipy_integrate

import amsbq

POSITIVE, SHARE = (0.0, np.inf), (0.0, 1.0)
#: functions of one input, their range, and where they have a kink
FUNCTIONS = {
    "rectified sine": (lambda t: np.maximum(np.sin(3 * t) - 0.5, 0), POSITIVE, [np.arcsin(0.5) / 3]),
    "early ramp": (lambda t: np.maximum(t - 0.3, 0), POSITIVE, [0.3]),
    "late ramp": (lambda t: np.maximum(t - 0.6, 0), POSITIVE, [0.6]),
    "below": (lambda t: -np.maximum(t - 0.4, 0), (-np.inf, 0.0), [0.4]),
    "square": (lambda t: np.maximum(t - 0.5, 0) ** 2, POSITIVE, [0.5]),
    "cube": (lambda t: np.maximum(t - 0.35, 0) ** 3, POSITIVE, [0.35]),
    "root": (lambda t: np.sqrt(np.maximum(t - 0.4, 0)), POSITIVE, [0.4]),
    "growth": (lambda t: np.maximum(np.exp(2 * t) - 3, 0), POSITIVE, [np.log(3) / 2]),
    "decay": (lambda t: np.maximum(np.exp(-3 * t) - 0.2, 0), POSITIVE, [np.log(5) / 3]),
    "bump": (lambda t: np.maximum(1 - 16 * (t - 0.4) ** 2, 0), POSITIVE, [0.15, 0.65]),
    "two humps": (lambda t: np.maximum(np.sin(7 * t), 0), POSITIVE, [np.pi / 7, 2 * np.pi / 7]),
    "distance": (lambda t: np.abs(t - 0.5), POSITIVE, [0.5]),
    "parabola": (lambda t: t * (1 - t), POSITIVE, []),
    "sine": (lambda t: np.sin(np.pi * t), SHARE, []),
    "cosine": (lambda t: np.maximum(np.cos(4 * t), 0), SHARE, [np.pi / 8]),
    "triangle": (lambda t: np.maximum(1 - 3 * np.abs(t - 0.5), 0), SHARE, [1 / 6, 0.5, 5 / 6]),
    "step": (lambda t: 1.0 * (t > 0.45), SHARE, [0.45]),
    "ramp between both": (lambda t: np.clip(2 * t - 0.5, 0, 1), SHARE, [0.25, 0.75]),
    "steep ramp": (lambda t: np.clip(3 * t - 1, 0, 1), SHARE, [1 / 3, 2 / 3]),
    "saturation": (lambda t: np.minimum(3 * t, 1), SHARE, [1 / 3]),
    "late saturation": (lambda t: np.minimum(np.exp(3 * t) / 8, 1), SHARE, [np.log(8) / 3]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_on_a_bound_do_not_make_the_answer_too_sure(name):
    function, known, kinks = FUNCTIONS[name]
    t = np.linspace(0, 1, 7)
    truth = scipy_integrate.quad(function, 0, 1, points=kinks or None, epsabs=1e-12)[0]
    found = amsbq.estimate([0] * 7, t[:, None], function(t), amsbq.Uniform(0, 1), output_range=known, seed=0)
    assert abs(found.mean - truth) <= 4 * found.std
    assert found.std < 0.5 * np.std(function(t))
    low, high = found.interval(0.999)
    assert known[0] <= low < high <= known[1]


def test_transforms_count_by_how_well_they_predict_where_values_are_on_a_bound():
    t = np.linspace(0, 1, 7)
    it = amsbq.Integrator([amsbq.Source()], amsbq.Uniform(0, 1), output_range=SHARE, seed=0)
    for x, y in zip(t, np.minimum(3 * t, 1), strict=True):
        it.observe(0, [x], y)
    components = it.learner.posterior.components
    weights = [component.weight for component in components]
    assert len({component.transform.kind for component in components}) == len(components) > 1
    assert sum(weights) == pytest.approx(1)
    assert weights == sorted(weights, reverse=True)
