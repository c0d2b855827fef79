"""Noise and wrong values are found where they are, and not in functions with kinks or steps."""

import numpy as np
import pytest

from amsbq.gp.data import Data
from amsbq.inference.noise import undeclared_noise
from amsbq.measures.gaussian import Gaussian
from amsbq.measures.uniform import Uniform
from benchmarks.findings import case, found_noise, found_outlier

UNIT = Uniform(0, 1)


def noisy(noise=0.1, n=20, seed=0, unit=1.0):
    """Values of a smooth function with noise, in any units."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 1))
    y = unit * (np.sin(5 * x[:, 0]) + noise * rng.normal(size=n)) + 3 * unit
    return Data(np.zeros(n, dtype=np.intp), x, y, np.zeros(n))


@pytest.mark.parametrize("kind", ["smooth", "kinks", "steps"])
def test_neither_noise_nor_wrong_values_are_found_where_there_are_none(kind):
    cases = [case(kind, seed) for seed in range(8)]
    assert sum(found_noise(one) for one in cases) <= 1
    assert sum(found_outlier(one) is not None for one in cases) <= 1


@pytest.mark.slow
def test_visible_noise_is_found():
    cases = [one for seed in range(14) if (one := case("noise", seed, dims=(1,))).visible()]
    assert len(cases) > 5
    assert np.mean([found_noise(one) for one in cases]) >= 0.8


@pytest.mark.slow
def test_wrong_values_are_found():
    cases = [case("wrong value", seed) for seed in range(8)]
    assert sum(found_outlier(one) == one.wrong for one in cases) >= 7


def test_how_much_noise_there_is():
    for seed in range(3):
        [std] = undeclared_noise(UNIT, noisy(0.1, 40, seed), [0.0]).values()
        assert std == pytest.approx(0.1, rel=0.4)


def test_neither_units_nor_the_order_of_values_matter():
    data, huge = noisy(), noisy(unit=1e150)
    [std] = undeclared_noise(UNIT, data, [0.0]).values()
    assert undeclared_noise(UNIT, data.rows(np.arange(20)[::-1]), [0.0]) == {0: std}
    assert undeclared_noise(UNIT, huge, [0.0])[0] == pytest.approx(1e150 * std, rel=1e-3)


@pytest.mark.parametrize(("declared", "found"), [(0.1**2, False), (0.01**2, True), ("learn", False)])
def test_noise_is_undeclared_if_less_was_declared(declared, found):
    assert bool(undeclared_noise(UNIT, noisy(), [declared])) == found


def wave(x):
    return (6 * x - 2) ** 2 * np.sin(12 * x - 4) - (2 - x) ** 2 * np.sin(36 * x)


@pytest.mark.parametrize("n", [12, 14, 16])
def test_a_wave_that_is_evaluated_twice_in_each_period_has_no_noise(n):
    x = np.linspace(0, 1, n)
    data = Data(np.zeros(n, dtype=np.intp), x[:, None], wave(x), np.zeros(n))
    assert undeclared_noise(UNIT, data, [0.0]) == {}


def test_inputs_may_depend_on_each_other():
    measure = Gaussian([0, 0], [[1, 0.8], [0.8, 1]])
    rng = np.random.default_rng(0)
    X = measure.sample(25, rng)
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=25)
    found = undeclared_noise(measure, Data(np.zeros(25, dtype=np.intp), X, y, np.zeros(25)), [0.0])
    assert found[0] == pytest.approx(0.1, rel=0.6)
