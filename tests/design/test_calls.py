"""How functions of sources are called: with an array, or with inputs by name."""

import pickle

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.design.description import Problem

INPUTS = {"speed": stats.norm(1, 0.1), "angle": (0, 1), "mode": {"low": 0.5, "high": 0.5}}
X = np.array([1.2, 0.3, 1.0])


def by_name(speed, angle, mode):
    return speed * angle + (mode == "high")


def with_default(speed, angle, drag=0.5):
    return speed + angle + drag


def called(source, inputs=INPUTS):
    return Problem.of([source], inputs).sources[0]


def test_functions_of_named_parameters_are_called_by_name():
    assert called(by_name).function(X) == pytest.approx(1.2 * 0.3 + 1)
    assert called(with_default).function(X) == 2.0
    assert called(with_default, {**INPUTS, "drag": (0, 1)}).function(np.append(X, 0.25)) == 1.75
    assert called(lambda **inputs: 10 * inputs["speed"] + len(inputs)).function(X) == 15
    assert called(lambda *, speed: speed, {"speed": (0, 1)}).function(X[:1]) == 1.2
    assert called(lambda x0, x1: x0 - x1, [(0, 1), (0, 1)]).function(X[:2]) == pytest.approx(0.9)


def test_a_function_of_one_parameter_gets_the_array():
    assert called(lambda speed: speed.shape).function(X) == (3,)
    assert called(lambda speed, factor=2: len(speed) * factor).function(X) == 6


def test_parameters_that_are_no_inputs_are_not_filled():
    with pytest.raises(ValueError, match="has the parameter 'wind', which is not an input: the inputs are speed"):
        called(lambda speed, wind: 0.0)


def test_vectorized_functions_get_columns():
    source = called(amsbq.Source(lambda speed, mode, angle: speed * angle + (mode == "high"), vectorized=True))
    np.testing.assert_allclose(source.function.many(np.array([X, [1.0, 0.5, 0.0]])), [1.36, 0.5])


def test_a_source_may_know_fewer_inputs():
    slope = amsbq.Source(
        lambda x: x[1] + 10 * x[0], inputs=["angle", "speed"], gradient=lambda x: [10.0, 1.0], cost=lambda x: 1 + x[0]
    )
    problem = Problem.of([by_name, slope], INPUTS)
    source = problem.sources[1]
    assert source.function(X) == pytest.approx(4.2)
    assert source.gradient(X).tolist() == [1.0, 10.0, 0.0]
    assert source.cost(X) == pytest.approx(1.3)
    assert problem.to_dict()["sources"][1]["inputs"] == ("angle", "speed")
    with_it = called(amsbq.Source(lambda x: amsbq.Observation(x[0], gradient=[1.0]), inputs=["angle"], gradient=True))
    assert with_it.function(X).gradient.tolist() == [0.0, 1.0, 0.0]
    assert source.definition() != called(amsbq.Source(slope.function)).definition()


def test_unknown_inputs_of_a_source_are_an_error():
    with pytest.raises(
        ValueError, match=r"has no input 'sped' \(did you mean 'speed'\?\): the inputs are speed, angle"
    ):
        called(amsbq.Source(lambda x: 0.0, inputs=["sped"]))
    with pytest.raises(ValueError, match="inputs must be different names"):
        amsbq.Source(lambda x: 0.0, inputs=["speed", "speed"])
    with pytest.raises(ValueError, match="sources get what a function returns"):
        called(amsbq.Source(len, inputs=["x0"]), amsbq.Transformed(amsbq.Uniform(0, 1), np.exp))


def test_calls_survive_other_processes():
    source = called(by_name)
    assert pickle.loads(pickle.dumps(source.function))(X) == source.function(X)


def test_a_run_by_name_is_that_by_array():
    inputs = {"speed": (0, 1), "angle": (0, 1)}
    named = amsbq.integrate(lambda speed, angle: speed + angle**2, inputs, budget=4, model="vbq")
    plain = amsbq.integrate(lambda x: x[0] + x[1] ** 2, inputs, budget=4, model="vbq")
    assert (named.mean, named.std) == (plain.mean, plain.std)
