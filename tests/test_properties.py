"""What must hold for every model: equivariances, bounds, and that data only ever help."""

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import amsbq
from tests.problems import random_B

KINDS = ["uniform", "normal", "empirical", "product", "discrete", "mixture", "groups"]
PROFILES = ["rbf", "matern-1/2", "matern-3/2", "matern-5/2"]


def kernel_of(profile, scales):
    return amsbq.RBF(scales) if profile == "rbf" else amsbq.Matern({"1": 0.5, "3": 1.5, "5": 2.5}[profile[-3]], scales)


def measure_of(kind, a, b):
    """A measure of x' = a x + b (entry by entry), where x has the measure of that kind with a = 1, b = 0."""
    return _measure_of(kind, tuple(a.tolist()), tuple(b.tolist()))


@lru_cache(maxsize=8)  # most examples have the same one, and densities take long to prepare
def _measure_of(kind, scales, shifts):
    a, b = np.array(scales), np.array(shifts)
    if kind == "uniform":
        ends = np.sort([b - a, b + a], axis=0)
        return amsbq.Uniform(*ends)
    if kind == "normal":
        return amsbq.Gaussian(b, a**2)
    if kind == "empirical":
        return amsbq.Empirical(a * np.random.default_rng(5).normal(size=(40, len(a))) + b)
    if kind == "discrete":  # the same from either end, so that a negative factor is an affine map too
        values, masses = np.arange(-4, 5) / 4, np.array([1, 2, 3, 1, 2, 1, 3, 2, 1]) / 16
        return amsbq.Product(
            [dict(zip((s * values + m).tolist(), masses, strict=True)) for m, s in zip(b, a, strict=True)]
        )
    if kind == "mixture":
        return amsbq.Mixture(
            [_measure_of("uniform", scales, shifts), _measure_of("normal", scales, shifts)], [0.3, 0.7]
        )
    if kind == "groups":
        first, *others = zip(scales, shifts, strict=True)
        parts = [("empirical", [first]), ("normal", others)]
        return amsbq.Independent([_measure_of(kind, *zip(*group, strict=True)) for kind, group in parts])
    # mirror-symmetric marginals, so that a negative factor is an affine map too
    return amsbq.Product([stats.t(3, loc=m, scale=abs(s)) for m, s in zip(b, a, strict=True)])


class Case:
    """A random model with data, which can be made again after an affine change of units."""

    def __init__(self, seed, kind, profile, D=2, L=3, N=9, noise=1e-3):
        self.seed, self.kind, self.profile, self.D, self.L = seed, kind, profile, D, L
        rng = np.random.default_rng(seed)
        self.B = [random_B(rng, L), random_B(rng, L, 0.1)]
        self.scales = rng.uniform(0.5, 2, size=(2, D))
        self.noise = noise * rng.uniform(0.5, 2, size=L)
        self.mean = rng.normal(size=L)
        self.s = np.append(np.arange(L), rng.integers(L, size=N - L))
        self.X = rng.uniform(-1, 1, size=(N, D))
        self.y = rng.normal(size=N)
        self.X_new = rng.uniform(-1, 1, size=(5, D))
        if kind == "discrete":
            self.X, self.X_new = np.round(4 * self.X) / 4, np.round(4 * self.X_new) / 4

    def posterior(self, y_scale=1.0, y_shift=0.0, x_scale=None, x_shift=None, sources=None, order=None):
        a = np.ones(self.D) if x_scale is None else x_scale
        b = np.zeros(self.D) if x_shift is None else x_shift
        rank = np.arange(self.L) if sources is None else np.asarray(sources)  # new number of each source
        order = np.arange(len(self.s)) if order is None else order
        back = np.argsort(rank)
        terms = [
            amsbq.Term(y_scale**2 * B[np.ix_(back, back)], kernel_of(self.profile, np.abs(a) * scales))
            for B, scales in zip(self.B, self.scales, strict=True)
        ]
        gp = amsbq.MultiSourceGP(
            terms,
            measure_of(self.kind, a, b),
            noise=y_scale**2 * self.noise[back],
            mean=y_scale * self.mean[back] + y_shift,
        )
        return gp.condition(rank[self.s][order], (a * self.X + b)[order], (y_scale * self.y + y_shift)[order])


cases = st.builds(Case, st.integers(0, 10_000), st.sampled_from(KINDS), st.sampled_from(PROFILES))
EXAMPLES = settings(max_examples=30, deadline=None)


@EXAMPLES
@given(cases, st.floats(-12, 12), st.booleans(), st.floats(-1e3, 1e3))
def test_units_of_the_output(case, log_scale, flip, shift):
    scale = 10.0**log_scale * (-1 if flip else 1)
    plain, changed = case.posterior(), case.posterior(y_scale=scale, y_shift=scale * shift)
    mean, var = plain.integral()
    np.testing.assert_allclose(changed.integral()[0], scale * (mean + shift), rtol=1e-9, atol=1e-9 * abs(scale))
    np.testing.assert_allclose(changed.integral()[1], scale**2 * var, rtol=1e-9)
    np.testing.assert_allclose(
        changed.squared_correlation(1, case.X_new), plain.squared_correlation(1, case.X_new), rtol=1e-7, atol=1e-12
    )


@EXAMPLES
@given(cases, st.lists(st.floats(-3, 3), min_size=2, max_size=2), st.integers(0, 3))
def test_units_of_the_inputs(case, log_scale, flips):
    a = 10.0 ** np.array(log_scale) * np.where([flips & 1, flips & 2], -1, 1)
    b = np.array([0.3, -2.0]) * np.abs(a)
    plain, changed = case.posterior(), case.posterior(x_scale=a, x_shift=b)
    np.testing.assert_allclose(changed.integral(), plain.integral(), rtol=1e-8, atol=1e-10)
    (rho2, grad), (rho2_there, grad_there) = (
        post.squared_correlation_and_grad(1, X) for post, X in ((plain, case.X_new), (changed, a * case.X_new + b))
    )
    np.testing.assert_allclose(rho2_there, rho2, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(a * grad_there, grad, rtol=1e-5, atol=1e-8)


@EXAMPLES
@given(cases, st.permutations([1, 2]), st.randoms(use_true_random=False))
def test_order_of_sources_and_of_data(case, secondary, random):
    order = list(range(len(case.s)))
    random.shuffle(order)
    plain, changed = case.posterior(), case.posterior(sources=[0, *secondary], order=np.array(order))
    np.testing.assert_allclose(changed.integral(), plain.integral(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(changed.log_evidence(), plain.log_evidence(), rtol=1e-9)
    np.testing.assert_allclose(
        changed.squared_correlation(secondary[0], case.X_new), plain.squared_correlation(1, case.X_new), rtol=1e-7
    )


@EXAMPLES
@given(cases)
def test_correlations_lie_between_zero_and_one_and_sets_inform_more_than_their_parts(case):
    post = case.posterior()
    single = np.array([post.squared_correlation(source, case.X_new) for source in range(case.L)])
    assert ((single >= 0) & (single <= 1)).all()
    for source in range(case.L):
        joint = post.squared_correlation_joint(source, case.X_new)
        assert single[source].max() - 1e-12 <= joint <= 1


@EXAMPLES
@given(cases)
def test_variance_never_grows_with_data(case):
    post = case.posterior()
    previous = post.gp.condition([], [], []).integral()[1]
    for n in range(1, len(case.s) + 1):
        variance = post.gp.condition(case.s[:n], case.X[:n], case.y[:n]).integral()[1]
        assert variance <= previous * (1 + 1e-12)
        previous = variance
    for x in case.X_new:
        post = post.extend(1, x[None], [0.0])
        assert post.integral()[1] <= previous * (1 + 1e-12)
        previous = post.integral()[1]


@EXAMPLES
@given(st.integers(0, 10_000), st.sampled_from(PROFILES), st.sampled_from(KINDS))
def test_means_and_variances_of_kernels_are_those_of_a_covariance(seed, profile, kind):
    rng = np.random.default_rng(seed)
    kernel = kernel_of(profile, 10 ** rng.uniform(-2, 2, size=2))
    measure = measure_of(kind, np.ones(2), np.zeros(2))
    mean, variance = amsbq.kernel_mean(kernel, measure, measure.sample(4, rng)), amsbq.kernel_variance(kernel, measure)
    assert ((mean > 0) & (mean <= 1 + 1e-12)).all()
    assert 0 < variance <= 1 + 1e-12
    assert (mean**2 <= variance * (1 + 1e-9)).all()  # Cauchy-Schwarz for Z and f(x)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_product_of_normals_and_uniforms_is_the_closed_form(profile):
    """The same distribution said in three ways."""
    kernel, X = kernel_of(profile, [0.4, 1.3]), np.random.default_rng(0).normal(size=(5, 2))
    ways = [
        amsbq.Gaussian([0, 1], [1, 4]),
        amsbq.as_measure([stats.norm(0, 1), stats.norm(1, 2)]),
        amsbq.as_measure(stats.multivariate_normal([0, 1], np.diag([1, 4]))),
    ]
    for measure in ways[1:]:
        np.testing.assert_array_equal(amsbq.kernel_mean(kernel, measure, X), amsbq.kernel_mean(kernel, ways[0], X))
