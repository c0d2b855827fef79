"""The same posterior under other distributions of the inputs, and with an input given."""

import numpy as np
import pytest
from scipy import stats

import amsbq

from .known import seen

NORMALS = [stats.norm(), stats.norm()]


@pytest.fixture(scope="module")
def result():
    return seen(lambda x: 2 * x[0] + x[1] + 0.5 * x[0] * x[1], NORMALS, 60, 8.0, ["a", "b"], 1e4)


@pytest.mark.parametrize(
    ("other", "truth"),
    [
        (amsbq.Gaussian([0.5, 0], [0.25, 1.0]), 1.0),
        (amsbq.Gaussian([0.5, 0], [[1, 0.6], [0.6, 1]]), 1.3),
        (amsbq.GaussianCopula([stats.norm(0.5, 1), stats.norm()], [[1, 0.6], [0.6, 1]]), 1.3),
        ([(0, 1), (-1, 1)], 1.0),
        ([stats.norm(1, 0.1), stats.expon(-1)], 2.0),
        (amsbq.Empirical([[0, 1], [1, 1], [1, -1]], [0.5, 0.25, 0.25]), 0.25 * 6),
        (
            amsbq.Mixture([amsbq.Gaussian([1, 0], 0.1), amsbq.Uniform([0, 0], [1, 1])], [0.5, 0.5]),
            0.5 * 2 + 0.5 * 1.625,
        ),
    ],
    ids=["narrower", "correlated", "copula", "uniform", "other marginals", "samples", "mixture"],
)
def test_another_distribution_of_the_inputs(result, other, truth):
    estimate = result.under(other)
    assert estimate.mean == pytest.approx(truth, abs=2e-3)
    assert estimate.std < 0.01


def test_the_same_distribution_gives_the_same_answer(result):
    same = result.under(NORMALS)
    assert same.mean == pytest.approx(result.mean, abs=1e-6)
    assert same.std == pytest.approx(result.std, rel=0.05)  # rounding: 3e-5, from variances of 1e4
    learned = amsbq.integrate(lambda x: np.sin(3 * x[0]), amsbq.Uniform(0, 1), budget=5)
    same = learned.under(amsbq.Uniform(0, 1))
    assert same.mean == pytest.approx(learned.mean, abs=0.5 * learned.std)
    assert same.std == pytest.approx(learned.std, rel=0.5)  # of fewer hyperparameter draws


def test_bars_grow_where_evaluations_do_not_reach():
    result = amsbq.integrate(lambda x: np.sin(3 * x[0]), amsbq.Uniform(0, 1), budget=6)
    with pytest.warns(UserWarning, match="the evaluations do not reach 100 % of the other distribution"):
        far = result.under(amsbq.Uniform(1.5, 2.5))
    assert far.std > 20 * result.std
    low, high = far.interval(0.99)
    assert low < (np.cos(4.5) - np.cos(7.5)) / 3 < high


def test_models_in_latent_coordinates():
    """A run for dependent inputs answers for independent ones."""
    copula = amsbq.GaussianCopula([stats.norm(), stats.uniform(0, 1)], [[1, 0.6], [0.6, 1]])
    result = seen(lambda x: x[0] * x[1], copula, 80, 4.0, variance=1e2)
    assert result.under([stats.norm(1, 0.5), stats.uniform(0, 1)]).mean == pytest.approx(0.5, abs=0.01)
    with pytest.raises(ValueError, match=r"the other distribution\[.*outside the support"):
        result.under([stats.norm(), stats.uniform(0, 2)])


def test_transformed_inputs_are_locations():
    base = amsbq.Uniform([0, 1], [1, 2])
    ratio = amsbq.Transformed(base, lambda x: x[:1] / x[1])
    result = amsbq.integrate(lambda z: z[0], ratio, budget=8)
    assert result.under(amsbq.Uniform([0, 1], [0.5, 2])).mean == pytest.approx(0.25 * np.log(2), abs=5e-3)
    assert result.under(ratio).mean == pytest.approx(result.mean, abs=2 * result.std)
    with pytest.raises(ValueError, match="has its own function"):
        result.under(amsbq.Transformed(base, lambda x: x))


def test_distributions_of_other_inputs_are_refused(result):
    with pytest.raises(ValueError, match="the other distribution has 1 inputs, but there are 2"):
        result.under(amsbq.Uniform(0, 1))
    measure = amsbq.Product([{"idle": 0.3, "full": 0.7}, stats.uniform(0, 1)])
    categories = seen(lambda x: 10 * x[0] + x[1], measure, 20, [2.0, 3.0])
    swapped = amsbq.Product([{"idle": 0.9, "full": 0.1}, stats.uniform(0, 1)])
    assert categories.under(swapped).mean == pytest.approx(1.5, abs=0.01)
    with pytest.raises(ValueError, match="must have the same categories"):
        categories.under([(0, 1), (0, 1)])


def test_an_input_that_is_given(result):
    curve = result.given(a=[-1.0, 0.0, 2.0])
    np.testing.assert_allclose(curve.mean, [-2, 0, 4], atol=2e-3)
    low, high = curve.interval()
    assert ((low <= curve.mean) & (curve.mean <= high)).all()
    one = result.given(b=1.0)
    assert one.mean == pytest.approx(1.0, abs=2e-3)
    mean, std = result.integrator.learner.posterior.main_effect(0, 0, np.array([[2.0]]))
    assert (curve[2].mean, curve[2].std) == pytest.approx((mean[0], std[0]), rel=0.02)
    assert len(curve[:2]) == 2
    assert curve.quantile(0.5) == pytest.approx(curve.mean)
    with pytest.raises(ValueError, match="there is no input 'c'; valid names: a, b"):
        result.given(c=1.0)
    with pytest.raises(ValueError, match=r"give values of one input or of several, as in given\(a=\[...\]\)"):
        result.given()
    with pytest.raises(ValueError, match="outside the support"):
        seen(lambda x: x[0], [(0, 1)], 4, 1.0).given(x0=2.0)


def test_several_inputs_that_are_given(result):
    mean, variance = result.integrator.predict(0, [[1.0, 2.0]])
    both = result.given(b=2.0, a=1.0)
    assert (both.mean, both.std) == pytest.approx((mean[0], np.sqrt(variance[0])), rel=0.02)
    curve = result.given(a=[1.0, -1.0], b=2.0)
    np.testing.assert_allclose(curve.mean, result.given(a=[1.0, -1.0], b=[2.0, 2.0]).mean)
    assert curve[0].mean == pytest.approx(both.mean, abs=1e-6)
    with pytest.raises(ValueError, match="lists of values of several inputs must have equal lengths"):
        result.given(a=[1.0, 2.0], b=[1.0, 2.0, 3.0])


def test_another_measure_has_the_names_of_the_inputs(result):
    a, b = stats.norm(1, 0.5), stats.norm(-1, 0.5)
    assert result.under({"b": b, "a": a}).mean == result.under([a, b]).mean == pytest.approx(0.5, abs=1e-4)
    with pytest.raises(ValueError, match="there is no input 'c': the inputs are a, b"):
        result.under({"a": a, "c": b})


def test_inputs_that_a_dictionary_leaves_out_stay_as_they_are(result):
    shifted = stats.norm(1, 0.5)
    whole = amsbq.Independent([amsbq.as_measure(shifted), result.integrator.measure.over([1])])
    assert result.under({"a": shifted}).mean == result.under(whole).mean == pytest.approx(2.0, abs=1e-3)


def test_where_inputs_depend_on_each_other_all_are_needed():
    dependent = amsbq.Gaussian([0, 0], [[1, 0.5], [0.5, 1]])
    result = amsbq.integrate(lambda x: x[0] + x[1], dependent, budget=4, names=["a", "b"], model="vbq")
    with pytest.raises(ValueError, match="the inputs are dependent, so the dictionary must have all of them"):
        result.under({"a": stats.norm(1, 1)})


def test_categories_are_given_by_name():
    inputs = {"load": (0, 1), "mode": {"idle": 0.5, "full": 0.5}}
    result = amsbq.integrate(lambda load, mode: load + 2 * (mode == "full"), inputs, budget=8, model="vbq")
    assert result.given(mode="full").mean == result.given(mode=1).mean == pytest.approx(2.5, abs=0.05)
    np.testing.assert_allclose(result.given(mode=["full", "idle"]).mean, [2.5, 0.5], atol=0.05)
    with pytest.raises(ValueError, match=r"mode must be one of idle, full, got 'ful' \(did you mean 'full'\?\)"):
        result.given(mode="ful")
    assert result.given(load=0.25, mode="full").mean == pytest.approx(2.25, abs=0.05)
    with pytest.raises(ValueError, match="load must be numbers, got 'high'"):
        result.given(load="high")
