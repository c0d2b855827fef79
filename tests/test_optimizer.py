"""Runs from many starts end at maxima, each as if it were alone."""

import numpy as np
from scipy.optimize import minimize, rosen, rosen_der

from amsbq.common.optimizer import maximise_batch

FREE = np.tile([-np.inf, np.inf], (4, 1))


def hill(X, which=None):
    return -np.array([rosen(x) for x in X]), -np.array([rosen_der(x) for x in X])


def test_runs_end_at_local_maxima():
    starts = np.random.default_rng(0).uniform(-2, 2, size=(20, 4))
    found, values, _ = maximise_batch(hill, starts, FREE, 1e-10)
    np.testing.assert_allclose(values, hill(found)[0])
    # The function has two local maxima; scipy's own method, from where a run ended, has nowhere to go.
    again = np.array([minimize(rosen, x, jac=rosen_der, method="BFGS").x for x in found])
    np.testing.assert_allclose(found, again, atol=1e-3)
    np.testing.assert_allclose(values, -np.array([rosen(x) for x in again]), atol=1e-6)
    assert np.abs(hill(found)[1]).max() < 1e-3


def test_company_does_not_matter():
    starts = np.random.default_rng(1).uniform(-2, 2, size=(6, 4))
    together = maximise_batch(hill, starts, FREE, 1e-6)
    for start, x, value in zip(starts, *together[:2], strict=True):
        alone, alone_value, _ = maximise_batch(hill, start[None], FREE, 1e-6)
        np.testing.assert_array_equal(alone[0], x)
        assert alone_value[0] == value


def test_a_quadratic_with_bounds():
    rng = np.random.default_rng(2)
    W = rng.normal(size=(4, 4))
    H, top = W @ W.T + 0.1 * np.eye(4), rng.normal(size=4)

    def bowl(X, which):
        return -0.5 * np.einsum("kp,pq,kq->k", X - top, H, X - top), -(X - top) @ H

    found, _, _ = maximise_batch(bowl, rng.normal(size=(5, 4)), FREE, 1e-14)
    np.testing.assert_allclose(found, np.tile(top, (5, 1)), atol=1e-5)
    box = np.tile([-10.0, 10.0], (4, 1))
    box[0] = [-10, top[0] - 1]
    found, _, _ = maximise_batch(bowl, rng.normal(size=(5, 4)) - 5, box, 1e-14)
    assert (found[:, 0] <= top[0] - 1).all()
    assert (found >= -10).all()


def test_where_there_is_no_value_it_turns_back():
    def cliff(X, which):
        values = np.where(X[:, 0] < 1, -((X[:, 0] - 0.9) ** 2), -np.inf)
        return values, np.where(np.isfinite(values), -2 * (X[:, 0] - 0.9), 0.0)[:, None]

    found, values, _ = maximise_batch(cliff, np.array([[-40.0], [0.5], [3.0]]), FREE[:1], 1e-12)
    np.testing.assert_allclose(found[:2, 0], 0.9, atol=1e-4)
    assert values[2] == -np.inf


def test_hopeless_runs_end_early_and_curvature_helps():
    calls = []

    def counted(X, which):
        calls.append(len(X))
        return hill(X)

    starts = np.array([[0.9, 0.8, 0.7, 0.5], [-1.9, 1.9, -1.9, 1.9]])
    _, values, history = maximise_batch(counted, starts, FREE, 1e-8)
    total = sum(calls)
    calls.clear()
    _, pruned, _ = maximise_batch(counted, starts, FREE, 1e-8, hopeless=1.0)
    assert sum(calls) < total
    assert abs(pruned.max() - values.max()) < 1e-6
    calls.clear()
    maximise_batch(counted, np.full((1, 4), 0.98), FREE, 1e-8)
    without = sum(calls)
    calls.clear()
    maximise_batch(counted, np.full((1, 4), 0.98), FREE, 1e-8, history=history.select([0]))
    assert sum(calls) < without


def test_those_that_are_behind_end_roughly():
    """Two hills: the run on the lower one ends when little is to be gained, that on the higher one at its top."""
    heights, calls = np.array([0.0, -10.0]), []

    def hills(X, which):
        calls.append(len(X))
        return heights[which] - np.sum(np.abs(X) ** 2.5, axis=1), -2.5 * np.sign(X) * np.abs(X) ** 1.5

    starts = np.full((2, 3), 4.0)
    _, values, _ = maximise_batch(hills, starts, FREE[:3], 1e-9)
    np.testing.assert_allclose(values, heights, atol=1e-6)
    total = sum(calls)
    calls.clear()
    _, values, _ = maximise_batch(hills, starts, FREE[:3], 1e-9, behind=(5.0, 0.5))
    assert values[0] > -1e-6
    assert -11 < values[1] < -10 - 1e-4
    assert sum(calls) < total
    _, values, _ = maximise_batch(hills, starts, FREE[:3], np.array([0.5, 1e-9]))
    assert values[0] < -1e-4
    assert values[1] > -10 - 1e-6
