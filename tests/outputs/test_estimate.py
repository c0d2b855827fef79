"""`estimate` for several outputs: the same numbers as one call for each."""

import numpy as np
import pytest

import amsbq

UNIT = amsbq.Uniform(0, 1)


def observations(rng):
    x, x_cheap = rng.random(5), rng.random(14)
    sources, X = np.repeat([0, 1], [5, 14]), np.append(x, x_cheap)
    wave = np.where(sources == 0, np.sin(5 * X), 0.8 * np.sin(5 * X) + X)
    return sources, X, np.column_stack([wave, 1e12 * np.exp(X), 1e-12 * X**2])


def test_each_output_is_estimated_as_if_it_were_alone():
    sources, X, Y = observations(np.random.default_rng(1))
    Y[3, 0] = Y[7, 1] = np.nan
    both = amsbq.estimate(sources, X, Y, UNIT, outputs=["wave", "huge", "tiny"])
    for m, name in enumerate(["wave", "huge", "tiny"]):
        rows = ~np.isnan(Y[:, m])
        alone = amsbq.estimate(sources[rows], X[rows], Y[rows, m], UNIT)
        assert both[name].mean == alone.mean == both.mean[m]
        assert both[name].std == alone.std == both.std[m]
        assert both[m].interval(0.9) == alone.interval(0.9) == (both.interval(0.9)[0][m], both.interval(0.9)[1][m])
    assert both["huge"].mean == pytest.approx(1e12 * (np.e - 1), rel=0.05)


def test_an_output_without_values_is_unknown():
    sources, X, Y = observations(np.random.default_rng(2))
    Y[:, 1] = np.nan
    both = amsbq.estimate(sources, X, Y[:, :2], UNIT, outputs=2, model="icm")
    assert np.isnan([both.mean[1], both.std[1]]).all()
    assert np.isfinite(both.mean[0])
    assert "nothing is known" in str(both)


def test_variances_are_those_of_each_output_or_of_all():
    sources, X, Y = observations(np.random.default_rng(3))
    variances = np.column_stack([np.full(19, 0.04), np.zeros(19)])
    noisy = amsbq.estimate(sources, X, Y[:, [0, 0]], UNIT, outputs=["a", "b"], noise_var=variances, model="icm")
    assert noisy["a"].mean == amsbq.estimate(sources, X, Y[:, 0], UNIT, noise_var=variances[:, 0], model="icm").mean
    assert noisy["b"].mean == amsbq.estimate(sources, X, Y[:, 0], UNIT, model="icm").mean


@pytest.mark.parametrize(
    ("Y", "outputs", "says"),
    [
        (np.zeros((3, 2)), ["a", "b", "c"], r"shape \(3, 3\)"),
        (np.zeros(3), ["a", "b"], r"shape \(3, 2\)"),
        (np.full((3, 2), np.inf), ["a", "b"], "NaN where an output is missing"),
        (np.zeros((3, 2)), ["a", "a"], "different names"),
        (np.zeros((3, 2)), [], "different names"),
    ],
)
def test_wrong_outputs_are_refused(Y, outputs, says):
    with pytest.raises(ValueError, match=says):
        amsbq.estimate([0, 0, 0], [0.1, 0.5, 0.9], Y, UNIT, outputs=outputs)


def test_estimates_survive_a_file():
    found = amsbq.estimate([0, 0, 0], [0.1, 0.5, 0.9], [[1, 2], [3, np.nan], [2, 5]], UNIT, outputs=["a", "b"])
    again = amsbq.Estimates.from_dict(found.to_dict())
    assert again.names == ("a", "b")
    assert np.array_equal([again.mean, again.std], [found.mean, found.std])
    with pytest.raises(KeyError, match="valid names: a, b"):
        found["c"]
