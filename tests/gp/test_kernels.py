import numpy as np
import pytest

import amsbq
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
RNG = np.random.default_rng(1)
X, Y, C = RNG.normal(size=(5, 3)), RNG.normal(size=(4, 3)), RNG.normal(size=(5, 4))


def rescaled(kernel, log_factors):
    """The same kernel with its lengthscales multiplied by exp(log_factors)."""
    scales = kernel.lengthscales * np.exp(log_factors if kernel.lengthscales.ndim else log_factors[0])
    return amsbq.RBF(scales) if isinstance(kernel, amsbq.RBF) else amsbq.Matern(kernel.nu, scales)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_values_are_the_textbook_formula(kernel):
    np.testing.assert_allclose(kernel(X, Y), kernel_matrix(kernel, X, Y), rtol=1e-14)
    np.testing.assert_array_equal(np.diagonal(kernel(X, X)), 1)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradient_in_x(kernel):
    for i, x in enumerate(X):
        expected = central_difference(lambda x: kernel(x[None], Y)[0], x, 1e-3)
        np.testing.assert_allclose(kernel.grad_x(X, Y)[i].T, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        kernel.contract_grad_x(X, Y, C), np.einsum("ij,ijd->id", C, kernel.grad_x(X, Y)), rtol=1e-12, atol=1e-15
    )


@pytest.mark.parametrize("kernel", KERNELS[:-1], ids=repr)
def test_gradient_in_the_log_lengthscales(kernel):
    origin = np.zeros(kernel.lengthscales.size)
    expected = central_difference(lambda t: rescaled(kernel, t)(X, Y), origin, 1e-3)
    np.testing.assert_allclose(np.moveaxis(kernel.grad_log_lengthscales(X, Y), 2, 0), expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        kernel.contract_grad_log_lengthscales(X, Y, C),
        np.einsum("ij,ijp->p", C, kernel.grad_log_lengthscales(X, Y)),
        rtol=1e-12,
    )


def test_constant_has_no_lengthscales():
    assert amsbq.Constant().grad_log_lengthscales(X, Y).shape == (5, 4, 0)
    assert amsbq.Constant().contract_grad_log_lengthscales(X, Y, C).shape == (0,)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_far_points_have_no_covariance_and_finite_gradients(kernel):
    near, far = np.zeros((1, 3)), np.full((1, 3), 1e6)
    assert np.isfinite(kernel.grad_x(near, far)).all()
    assert np.isfinite(kernel.grad_log_lengthscales(near, far)).all()
    assert kernel(near, far)[0, 0] == (1 if isinstance(kernel, amsbq.Constant) else 0)


def test_a_shared_lengthscale_is_one_hyperparameter():
    assert amsbq.RBF(0.8).grad_log_lengthscales(X, Y).shape == (5, 4, 1)
    np.testing.assert_array_equal(amsbq.RBF(0.8)(X, Y), amsbq.RBF([0.8] * 3)(X, Y))


@pytest.mark.parametrize("kernel", [k for k in KERNELS if not isinstance(k, amsbq.Constant)], ids=repr)
def test_many_lengthscales_at_once(kernel):
    steps = (X[:, None, :] - Y[None, :, :]).transpose(2, 0, 1)
    scales = np.exp(RNG.normal(size=(3, 3)))
    features = kernel.features(steps.reshape(3, -1))
    values = kernel.over_scales(features, scales)
    weights = RNG.normal(size=values.shape)
    gradients = kernel.contract_over_scales(features, scales, weights * values)
    for scale, value, weight, gradient in zip(scales, values, weights, gradients, strict=True):
        one = amsbq.RBF(scale) if isinstance(kernel, amsbq.RBF) else amsbq.Matern(kernel.nu, scale)
        np.testing.assert_allclose(value.reshape(5, 4), one(X, Y), rtol=1e-12)
        expected = one.contract_grad_log_lengthscales(X, Y, weight.reshape(5, 4))
        np.testing.assert_allclose(gradient, expected, rtol=1e-11, atol=1e-13)
    in_x = kernel.contract_grad_x_over_scales(X, Y, scales, (weights * values).reshape(3, 5, 4).swapaxes(1, 2))
    for scale, weight, gradient in zip(scales, weights, in_x, strict=True):
        expected = kernel.with_lengthscales(scale).contract_grad_x(X, Y, weight.reshape(5, 4))
        np.testing.assert_allclose(gradient, expected, rtol=1e-11, atol=1e-13)
