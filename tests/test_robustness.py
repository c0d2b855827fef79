"""Inputs at the edge: redundant data, singular models, extreme scales, many points, sources and dimensions."""

import mpmath
import numpy as np
import pytest

import amsbq
from tests.problems import random_B
from tests.reference import kernel_matrix

UNIT = amsbq.Uniform(0, 1)


def everything(post, X):
    """Every quantity of a posterior, at points X."""
    n_sources = post.gp.n_sources
    for source in range(n_sources):
        yield from post.predict(source, X)
        yield from post.integral(source)
        yield from post.squared_correlation_and_grad(source, X)
    yield from post.squared_correlation_joint_and_grad(np.arange(len(X)) % n_sources, X)
    yield post.log_evidence()


def assert_finite(post, X):
    assert all(np.isfinite(quantity).all() for quantity in everything(post, X))
    for source in range(post.gp.n_sources):
        assert (post.predict(source, X)[1] >= 0).all()
        rho2 = post.squared_correlation(source, X)
        assert ((rho2 >= 0) & (rho2 <= 1)).all()


GRID = np.linspace(0, 1, 7)[:, None]


def test_duplicates_without_noise():
    gp = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF(0.3))], UNIT)
    once, twice = gp.condition(0, [0.2, 0.5], [1, 2]), gp.condition(0, [0.2, 0.2, 0.5], [1, 1, 2])
    np.testing.assert_allclose(twice.integral(), once.integral(), rtol=1e-9)
    assert once.jitter == 0 < twice.jitter < 1e-12
    assert twice.squared_correlation(0, [[0.2]])[0] == 0
    assert_finite(twice, GRID)
    assert_finite(once.extend(0, [0.2, 0.2], [1, 1]), GRID)


def test_duplicates_that_disagree_count_about_as_their_average():
    gp = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF(0.3))], UNIT)
    mean, var = gp.condition(0, [0.2, 0.2, 0.5], [1, 2, 2]).integral()
    expected_mean, expected_var = gp.condition(0, [0.2, 0.5], [1.5, 2]).integral()
    np.testing.assert_allclose(var, expected_var, rtol=1e-9)
    assert abs(mean - expected_mean) < 0.05 * var**0.5  # a disagreement of 1 over a jitter of 1e-14


def test_perfectly_correlated_sources_are_one_source():
    gp = amsbq.MultiSourceGP([amsbq.Term([[1, 2], [2, 4]], amsbq.RBF(0.3))], UNIT)
    alone = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF(0.3))], UNIT)
    post = gp.condition([0, 1, 1], [0.2, 0.2, 0.6], [1, 2, 1])
    np.testing.assert_allclose(post.integral(), alone.condition(0, [0.2, 0.6], [1, 0.5]).integral(), rtol=1e-9)
    assert 0 < post.jitter < 1e-12
    assert_finite(post, GRID)


def test_one_observation_and_none():
    gp = amsbq.MultiSourceGP(
        [amsbq.Term(random_B(np.random.default_rng(0), 2), amsbq.Matern(1.5, 0.3))], UNIT, mean=[3, 4]
    )
    prior = gp.condition([], [], [])
    variance = gp.terms[0].B[1, 1] * amsbq.kernel_variance(amsbq.Matern(1.5, 0.3), UNIT)
    assert prior.integral(1) == (4, pytest.approx(variance, rel=1e-14))
    assert prior.log_evidence() == 0
    assert len(prior.y) == 0
    assert_finite(prior, GRID)
    assert_finite(prior.extend(0, [0.5], [1.0]), GRID)
    np.testing.assert_allclose(prior.extend(0, [0.5], [1.0]).integral(), gp.condition(0, [0.5], [1.0]).integral())
    assert_finite(prior.extend([], [], []), GRID)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_extreme_outputs(scale):
    X = np.linspace(0, 1, 8)
    posts = [
        amsbq.MultiSourceGP([amsbq.Term(s**2, amsbq.RBF(0.2))], UNIT).condition(0, X, s * np.sin(5 * X))
        for s in (1, scale)
    ]
    np.testing.assert_allclose(posts[1].integral()[0], scale * posts[0].integral()[0], rtol=1e-8)
    np.testing.assert_allclose(posts[1].integral()[1], scale**2 * posts[0].integral()[1], rtol=1e-8)
    assert_finite(posts[1], GRID)


def test_sources_in_units_that_differ_by_twenty_four_orders():
    D = np.diag([1e12, 1e-12])
    B = D @ [[1, 0.9], [0.9, 1]] @ D
    plain = amsbq.MultiSourceGP([amsbq.Term([[1, 0.9], [0.9, 1]], amsbq.RBF(0.2))], UNIT)
    changed = amsbq.MultiSourceGP([amsbq.Term(B, amsbq.RBF(0.2))], UNIT)
    s, X, y = np.array([0, 0, 1, 1]), np.array([0.2, 0.7, 0.5, 0.5]), np.array([1.0, 2, 3, 3])
    mean, var = plain.condition(s, X, y).integral()
    np.testing.assert_allclose(
        changed.condition(s, X, np.diagonal(D)[s] * y).integral(), (1e12 * mean, 1e24 * var), rtol=1e-8
    )


def test_three_hundred_points_without_noise():
    X = np.linspace(0, 1, 300)
    post = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF(0.3))], UNIT).condition(0, X, np.sin(5 * X))
    assert 0 < post.jitter < 1e-9
    mean, var = post.integral()
    assert abs(mean - (1 - np.cos(5)) / 5) < 1e-6
    assert 0 < var < 1e-12
    assert_finite(post, GRID)
    assert_finite(post.extend(0, [0.123, 0.1231], [0, 0]), GRID)


def test_eight_sources():
    rng = np.random.default_rng(2)
    terms = [amsbq.Term(random_B(rng, 8), amsbq.RBF(0.3)), amsbq.Term(np.eye(8), amsbq.Constant())]
    gp = amsbq.MultiSourceGP(terms, UNIT, noise=1e-4)
    assert_finite(gp.condition(rng.integers(8, size=60), rng.uniform(size=60), rng.normal(size=60)), GRID)


@pytest.mark.parametrize(
    "kernel", [amsbq.RBF(0.5), amsbq.RBF([0.05] * 20), amsbq.Matern(2.5, 1.0), amsbq.Matern(0.5, 5.0)], ids=repr
)
def test_twenty_dimensions(kernel):
    rng = np.random.default_rng(3)
    gp = amsbq.MultiSourceGP([amsbq.Term([[1, 0.9], [0.9, 1]], kernel)], amsbq.Uniform(np.zeros(20), 1))
    X = rng.uniform(size=(40, 20))
    post = gp.condition(rng.integers(2, size=40), X, X.sum(axis=1))
    assert_finite(post, rng.uniform(size=(5, 20)))
    x = np.full((1, 20), 0.3)
    factor = amsbq.kernel_mean(
        type(kernel)(*((kernel.nu,) if hasattr(kernel, "nu") else ()), np.ravel(kernel.lengthscales)[0]), UNIT, [0.3]
    )
    np.testing.assert_allclose(amsbq.kernel_mean(kernel, gp.measure, x), factor**20, rtol=1e-12)


def test_a_source_without_variance():
    gp = amsbq.MultiSourceGP([amsbq.Term([[1, 0], [0, 0]], amsbq.RBF(0.3))], UNIT)
    post = gp.condition([0, 1], [0.2, 0.3], [1, 0])
    np.testing.assert_allclose(post.integral(), gp.condition([0], [0.2], [1]).integral(), rtol=1e-9)
    assert_finite(post, GRID)
    nothing = amsbq.MultiSourceGP([amsbq.Term(0.0, amsbq.RBF(0.3))], UNIT, mean=2.0).condition(0, [0.3], [2.0])
    assert nothing.integral() == (2, 0)
    assert nothing.squared_correlation(0, GRID).tolist() == [0] * 7


def test_a_very_long_and_a_very_short_lengthscale():
    X = np.linspace(0, 1, 20)
    for scale in (1e-60, 1e-9, 1e9):
        for kernel in (amsbq.RBF(scale), amsbq.Matern(0.5, scale), amsbq.Matern(2.5, scale)):
            assert_finite(amsbq.MultiSourceGP([amsbq.Term(1.0, kernel)], UNIT).condition(0, X, X), GRID)


def test_jitter_is_only_used_where_it_is_needed():
    rng = np.random.default_rng(4)
    X = rng.uniform(size=(25, 2))
    gp = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.Matern(0.5, 0.3))], amsbq.Uniform([0, 0], 1))
    post = gp.condition(0, X, X[:, 0])
    assert post.jitter == 0
    mean, _ = post.predict(0, X)
    np.testing.assert_allclose(mean, X[:, 0], rtol=1e-12)
    assert np.linalg.cond(kernel_matrix(amsbq.Matern(0.5, 0.3), X, X)) < 1e6


def test_inputs_are_copied():
    X, y = np.array([[0.2], [0.6]]), np.array([1.0, 2.0])
    B = np.array([[1.0]])
    gp = amsbq.MultiSourceGP([amsbq.Term(B, amsbq.RBF(0.3))], UNIT)
    post = gp.condition(0, X, y)
    before = post.integral()
    X[:], y[:], B[:] = 0.9, 7, 5
    assert gp.condition(0, [[0.2], [0.6]], [1, 2]).integral() == before
    assert post.X.tolist() == [[0.2], [0.6]]
    for array in (post.X, post.y, post.sources, post.extend(0, [0.3], [1.0]).y):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_outputs_whose_squares_underflow():
    X = np.linspace(0, 1, 5)
    plain, tiny = (
        amsbq.MultiSourceGP([amsbq.Term(s**2, amsbq.RBF(0.2))], UNIT).condition(0, X, s * X) for s in (1.0, 2.0**-500)
    )
    for a, b in zip(
        plain.squared_correlation_and_grad(0, GRID), tiny.squared_correlation_and_grad(0, GRID), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_an_integral_that_is_known_has_no_correlation():
    gp = amsbq.MultiSourceGP([amsbq.Term([[0, 0], [0, 1]], amsbq.RBF(0.3))], UNIT, mean=[1.0, 0.0])
    post = gp.condition([1], [0.3], [2.0])
    assert post.integral() == (1, 0)
    for values in (*post.squared_correlation_and_grad(1, GRID), *post.squared_correlation_joint_and_grad(1, GRID)):
        np.testing.assert_array_equal(values, 0)


def exact_integral(x, y, scale):
    """Mean and variance of the integral over [0, 1] of a unit RBF process, noise-free, in 60-digit arithmetic."""
    with mpmath.workdps(60):
        x, ell = [mpmath.mpf(float(t)) for t in x], mpmath.mpf(scale)
        G = mpmath.matrix([[mpmath.exp(-(((s - t) / ell) ** 2) / 2) for t in x] for s in x])
        half = mpmath.sqrt(mpmath.pi / 2) * ell
        z = mpmath.matrix(
            [half * (mpmath.erf((1 - t) / ell / mpmath.sqrt(2)) + mpmath.erf(t / ell / mpmath.sqrt(2))) for t in x]
        )
        w = 1 / ell / mpmath.sqrt(2)
        prior = (mpmath.sqrt(mpmath.pi) * w * mpmath.erf(w) + mpmath.expm1(-(w**2))) / w**2
        solved = mpmath.lu_solve(G, z)
        mean = sum(a * mpmath.mpf(float(b)) for a, b in zip(solved, y, strict=True))
        return float(mean), float(prior - sum(a * b for a, b in zip(solved, z, strict=True)))


@pytest.mark.parametrize("seed", range(12))
def test_clustered_noise_free_data_are_never_overconfident(seed):
    """Pivots of a factor look healthy long after its solves have drowned in rounding."""
    rng = np.random.default_rng(seed)
    scale, n = rng.uniform(0.15, 0.5), int(rng.integers(6, 16))
    x = np.sort(rng.uniform(0, rng.uniform(0.3, 1), size=n))
    y = np.sin(5 * x)
    gp = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF(scale))], UNIT)
    exact_mean, exact_var = exact_integral(x, y, scale)
    step_by_step = gp.condition([], [], [])
    for t in x:
        step_by_step = step_by_step.extend(0, [t], [np.sin(5 * t)])
    for post in (gp.condition(0, x, y), gp.condition(0, x[::-1], y[::-1]), step_by_step):
        mean, var = post.integral()
        assert var > 0.5 * exact_var
        assert abs(mean - exact_mean) < 1.5 * var**0.5 + 1e-6  # jitter may only add what the bar says


def test_extending_for_long_stays_on_course():
    """Sixty redundant points, one by one: the jitter is that of conditioning on all, and so is the answer."""
    gp = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF(0.1))], UNIT)
    x = np.random.default_rng(0).permutation(np.linspace(0, 1, 120))
    post = gp.condition([], [], [])
    for t in x:
        post = post.extend(0, [t], [np.sin(5 * t)])
    assert post.jitter < 1e-11
    assert abs(post.integral()[0] - (1 - np.cos(5)) / 5) < 1e-7
    assert_finite(post, GRID)


def test_far_from_the_origin():
    """Inputs around a million: only their differences matter."""
    X = np.linspace(0, 1, 9)
    for kernel in (amsbq.RBF(0.12), amsbq.Matern(2.5, 0.3)):
        near, far = (
            amsbq.MultiSourceGP([amsbq.Term(1.0, kernel)], amsbq.Uniform(c, c + 1)).condition(0, c + X, np.sin(5 * X))
            for c in (0.0, 2.0**20)
        )
        np.testing.assert_allclose(far.integral(), near.integral(), rtol=1e-8)
