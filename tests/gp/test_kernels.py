import numpy as np
import pytest

import amsbq
from amsbq.gp.kernels import differences
from tests.reference import central_difference, kernel_matrix

SCALES = [0.7, 1.3, 0.4]
KERNELS = [
    amsbq.RBF(SCALES),
    amsbq.RBF(0.8),
    amsbq.Matern(0.5, SCALES),
    amsbq.Matern(1.5, SCALES),
    amsbq.Matern(2.5, SCALES),
    amsbq.Matern(2.5, 0.8),
    amsbq.Constant(),
]
PRODUCTS = KERNELS[:-1]
RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(5, 3)), RNG.normal(size=(4, 3))


def rescaled(kernel, log_factors):
    """The same kernel with its lengthscales multiplied by exp(log_factors)."""
    scales = kernel.lengthscales * np.exp(log_factors if kernel.lengthscales.ndim else log_factors[0])
    return amsbq.RBF(scales) if isinstance(kernel, amsbq.RBF) else amsbq.Matern(kernel.nu, scales)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_values_are_the_textbook_formula(kernel):
    np.testing.assert_allclose(kernel(X, Y), kernel_matrix(kernel, X, Y), rtol=1e-14)
    np.testing.assert_array_equal(np.diagonal(kernel(X, X)), 1)


@pytest.mark.parametrize("kernel", PRODUCTS, ids=repr)
def test_gradient_in_x(kernel):
    for i, x in enumerate(X):
        expected = central_difference(lambda x: kernel(x[None], Y)[0], x, 1e-3)
        np.testing.assert_allclose(kernel.grad_x(X, Y)[i].T, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kernel", PRODUCTS, ids=repr)
def test_far_points_have_no_covariance_and_finite_gradients(kernel):
    near, far = np.zeros((1, 3)), np.full((1, 3), 1e6)
    assert np.isfinite(kernel.grad_x(near, far)).all()
    assert kernel(near, far)[0, 0] == 0
    assert amsbq.Constant()(near, far)[0, 0] == 1


def test_a_shared_lengthscale_is_one_for_each_dimension():
    np.testing.assert_array_equal(amsbq.RBF(0.8)(X, Y), amsbq.RBF([0.8] * 3)(X, Y))


@pytest.mark.parametrize("kernel", PRODUCTS, ids=repr)
def test_many_lengthscales_at_once(kernel):
    """Values and contracted gradients for K sets of lengthscales, against one kernel at a time."""
    scales = np.exp(RNG.normal(size=(3, 3)))
    features = kernel.features(differences(X, Y))
    values = kernel.values_batch(features, scales)
    weights = RNG.normal(size=values.shape)
    in_scales = kernel.contract_log_scales_batch(features, scales, weights * values)
    in_x = kernel.contract_grad_x_batch(X, Y, scales, (weights * values).reshape(3, 5, 4).swapaxes(1, 2))
    for k, scale in enumerate(scales):
        one = kernel.with_lengthscales(scale)
        weight = weights[k].reshape(5, 4)
        np.testing.assert_allclose(values[k].reshape(5, 4), kernel_matrix(one, X, Y), rtol=1e-12)
        expected = central_difference(lambda t: np.sum(weight * rescaled(one, t)(X, Y)), np.zeros(3), 1e-3)  # noqa: B023
        np.testing.assert_allclose(in_scales[k], expected, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(in_x[k], np.einsum("ij,ijd->id", weight, one.grad_x(X, Y)), rtol=1e-11, atol=1e-13)


def test_lengthscales_of_any_size():
    """Extreme ones make points equal or unrelated, and never NaN."""
    for kernel in (amsbq.RBF(1e-170), amsbq.Matern(2.5, 1e-170)):
        np.testing.assert_array_equal(kernel([[0.0], [1.0]], [[0.0], [1.0]]), np.eye(2))
    for kernel in (amsbq.RBF(1e170), amsbq.Matern(2.5, 1e170)):
        np.testing.assert_array_equal(kernel([[0.0], [1.0]], [[0.0], [1.0]]), np.ones((2, 2)))
