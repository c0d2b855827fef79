"""Symmetric matrices as vectors over pairs of observations, and Cholesky factors, against dense algebra."""

import numpy as np
import pytest
from scipy import stats

from amsbq.gp import linalg
from amsbq.gp.linalg import Pairs

SIZES = [0, 1, 2, 5, 8, 33]


def some(n, L=3, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.integers(L, size=n)
    W = rng.normal(size=(2, n, n + 3))
    return s, W @ W.swapaxes(1, 2), rng


@pytest.mark.parametrize("n", SIZES)
def test_pairs_are_each_once_and_blocks_are_of_two_sources(n):
    s, A, rng = some(n)
    pairs = Pairs(s)
    assert len(pairs.first) == n * (n + 1) // 2
    assert len({frozenset((i, j)) for i, j in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)}) == len(
        pairs.first
    )
    assert (pairs.first[pairs.diagonal] == np.arange(n)).all()
    assert (pairs.second[pairs.diagonal] == np.arange(n)).all()
    X = rng.normal(size=(n, 2))
    np.testing.assert_array_equal(pairs.differences(X), (X[pairs.first] - X[pairs.second]).T)
    a = rng.normal(size=(4, n))
    np.testing.assert_array_equal(pairs.outer(a), a[:, pairs.first] * a[:, pairs.second])

    B = rng.normal(size=(4, 3, 3))
    B += B.swapaxes(1, 2)
    np.testing.assert_array_equal(pairs.of_sources(B), B[:, s[pairs.first], s[pairs.second]])
    values = A[:, pairs.first, pairs.second]
    sums = pairs.sums(values, 3)
    for k in range(2):
        expected = np.zeros((3, 3))
        for i, j, value in zip(pairs.first, pairs.second, values[k], strict=True):
            expected[min(s[i], s[j]), max(s[i], s[j])] += value
        np.testing.assert_allclose(sums[k], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", SIZES)
def test_packed_factors_and_inverses_are_those_of_dense_matrices(n):
    s, A, rng = some(n)
    r, pairs = rng.normal(size=n), Pairs(s)
    F = pairs.packed(A[:, pairs.first, pairs.second])
    factors = [linalg.factorise(rows, np.diagonal(rows)) for rows in A]
    log_densities = linalg.log_densities_packed(F.copy(), r)
    values, alpha = linalg.invert_packed(F, r)
    inverses = pairs.unpacked(F)
    for k in range(2):
        inverse = np.linalg.inv(A[k])
        np.testing.assert_allclose(inverses[k], inverse[pairs.first, pairs.second], rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(alpha[k], inverse @ r, rtol=1e-7, atol=1e-10)
        if n:
            expected = stats.multivariate_normal(np.zeros(n), A[k]).logpdf(r)
            np.testing.assert_allclose(values[k], expected, rtol=1e-10)
            assert log_densities[k] == values[k]
        C, jitter = factors[k]
        assert jitter == 0
        np.testing.assert_allclose(C @ C.T, A[k], rtol=1e-12, atol=1e-12)
        assert not np.triu(C, 1).any()


def test_what_is_not_positive_definite_has_no_density():
    pairs = Pairs(np.zeros(3, dtype=int))
    good, bad, huge = np.eye(3), np.eye(3), np.eye(3)
    bad[0, 1] = bad[1, 0] = 2.0
    huge[2, 2] = np.inf
    F = pairs.packed(np.array([A[pairs.first, pairs.second] for A in (good, bad, huge)]))
    values, alpha = linalg.invert_packed(F, np.ones(3))
    assert np.isfinite(values).tolist() == [True, False, False]
    assert not alpha[1:].any()
    assert not F[1:].any()


def test_jitter_helps_a_matrix_that_has_lost_rank():
    A = np.ones((4, 4))
    C, jitter = linalg.factorise(A, np.ones(4))
    assert 0 < jitter < 1e-10
    np.testing.assert_allclose(C @ C.T, np.ones((4, 4)) + jitter * np.eye(4), rtol=1e-12)
    np.testing.assert_array_equal(A, 1)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_jitter_goes_with_the_variance_of_each_row(n):
    _, (A, _), rng = some(n)
    variances = rng.uniform(1, 100, size=n)
    C, jitter = linalg.factorise(np.tril(A), variances, 1e-3)
    assert jitter == 1e-3
    np.testing.assert_allclose(C @ C.T, A + np.diag(1e-3 * variances), rtol=1e-12, atol=1e-12)
