"""Kernels over the inputs, of unit variance: the scale of a source lives in the coregionalisation matrix B.

Notation: D dimensions, X (n, D) and Y (m, D) points, ℓ_d lengthscales, u_d = (x_d - y_d) / ℓ_d,

    κ(x, y) = Π_d φ(u_d),        ∂κ/∂x_d = κ ψ(u_d) / ℓ_d,        ∂κ/∂log ℓ_d = -κ u_d ψ(u_d),

with the profile φ and its logarithmic slope ψ = φ'/φ, which is finite wherever φ underflows, as are χ = φ''/φ and
ω = φ‴/φ. Covariances of derivatives of a draw are κ times a factor F made of these, as `Derivatives` says.

Kernels are evaluated for K sets of lengthscales (K, D) at once, from "features" of the differences x - y that do not
depend on the lengthscales; one kernel matrix is the case K = 1. Gradients are contracted with a coefficient for each
entry of the kernel matrix, so that no array is larger than the matrix itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from math import sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ..common.validation import Array, IntArray, numbers, points, positive


class Kernel(ABC):
    """A covariance function over the inputs with κ(x, x) = 1."""

    @abstractmethod
    def __call__(self, X: ArrayLike, Y: ArrayLike) -> Array:
        """Return κ(X_i, Y_j), shape (n, m)."""

    @abstractmethod
    def check_dim(self, dim: int) -> None:
        """Raise ValueError unless the kernel can be used in ``dim`` dimensions."""


class ProductKernel(Kernel):
    """A product over the dimensions of one stationary profile φ(u), each dimension with its lengthscale.

    Parameters
    ----------
    lengthscales : float or sequence of D floats
        One number is a lengthscale shared by all dimensions; a sequence is one lengthscale for each dimension.
    """

    reach: float  #: φ(u) is negligible, below 1e-18, for |u| beyond it
    stretch: float  #: the |u| over which φ varies by about a factor of e
    kink = True  #: whether φ is not smooth at u = 0
    differentiable = True  #: whether draws of a process with this kernel have derivatives

    def __init__(self, lengthscales: ArrayLike) -> None:
        self.lengthscales = positive(numbers(lengthscales, "lengthscales"), "lengthscales")
        if self.lengthscales.ndim > 1 or self.lengthscales.size == 0:
            raise ValueError(
                f"lengthscales must be one number or one per dimension, got shape {self.lengthscales.shape}"
            )

    def __call__(self, X: ArrayLike, Y: ArrayLike) -> Array:
        """Return κ(X_i, Y_j), shape (n, m)."""
        X, Y = self._points(X, Y)
        values = self.values_batch(self.features(differences(X, Y)), self.lengthscales_in(X.shape[1])[None])
        return values.reshape(len(X), len(Y))

    def grad_x(self, X: ArrayLike, Y: ArrayLike) -> Array:
        """Return ∂κ(X_i, Y_j)/∂X_i, shape (n, m, D)."""
        X, Y = self._points(X, Y)
        scales = self.lengthscales_in(X.shape[1])
        u = (X[:, None, :] - Y[None, :, :]) / scales
        return self(X, Y)[:, :, None] * self.log_slope(u) / scales

    @property
    def kind(self) -> tuple[Any, ...]:
        """The parameters, other than lengthscales, that distinguish kernels."""
        return (type(self),)

    @abstractmethod
    def profile(self, u: Array) -> Array:
        """Return φ(u)."""

    @abstractmethod
    def log_slope(self, u: Array) -> Array:
        """Return ψ(u) = φ'(u) / φ(u)."""

    @abstractmethod
    def log_curvature(self, u: Array) -> Array:
        """Return χ(u) = φ''(u) / φ(u)."""

    @abstractmethod
    def log_third(self, u: Array) -> Array:
        """Return ω(u) = φ‴(u) / φ(u)."""

    def log_slope_grad(self, u: Array) -> Array:
        """Return ψ'(u) = χ(u) - ψ(u)²."""
        return self.log_curvature(u) - self.log_slope(u) ** 2

    def slope(self, u: Array) -> Array:
        """Return φ'(u)."""
        return self.profile(u) * self.log_slope(u)

    def with_lengthscales(self, lengthscales: Array) -> Self:
        """Return a kernel of the same kind with other lengthscales."""
        other = copy(self)
        other.lengthscales = lengthscales
        return other

    def over(self, inputs: Sequence[int]) -> Self:
        """Return the factor of the product that depends on the given dimensions."""
        return self.with_lengthscales(self.lengthscales[list(inputs)] if self.lengthscales.ndim else self.lengthscales)

    def lengthscales_in(self, dim: int) -> Array:
        """Return one lengthscale for each of ``dim`` dimensions, shape (D,)."""
        self.check_dim(dim)
        return np.broadcast_to(self.lengthscales, (dim,))

    def check_dim(self, dim: int) -> None:
        """Raise ValueError unless there is one shared lengthscale or one for each of ``dim`` dimensions."""
        if self.lengthscales.shape not in ((), (dim,)):
            raise ValueError(
                f"the kernel has {self.lengthscales.size} lengthscales but the points have {dim} dimensions: "
                f"give {dim}, or a single number to share one"
            )

    def features(self, steps: Array) -> Array:
        """Return what the batched methods need to know about M differences x - y (D, M), for any lengthscales."""
        return steps

    def values_batch(self, features: Array, scales: Array) -> Array:
        """Return κ at M differences for K sets of lengthscales (K, D), shape (K, M)."""
        out = np.ones((len(scales), features.shape[1]))
        for step, scale in zip(features, scales.T, strict=True):
            out *= self.profile(step / scale[:, None])
        return out

    def contract_log_scales_batch(self, features: Array, scales: Array, A: Array) -> Array:
        """Return Σ_m A_km ∂log κ_km/∂log ℓ_kd for coefficients A (K, M), shape (K, D)."""
        columns = []
        for step, scale in zip(features, scales.T, strict=True):
            u = step / scale[:, None]
            columns.append(-np.einsum("km,km,km->k", A, u, self.log_slope(u)))
        return np.stack(columns, axis=1)

    def contract_grad_x_batch(self, X: Array, Y: Array, scales: Array, A: Array) -> Array:
        """Return Σ_j A_kji ∂log κ_k(X_i, Y_j)/∂X_i for coefficients A (K, m, n), shape (K, n, D)."""
        columns = []
        for step, scale in zip(X.T[:, None, :] - Y.T[:, :, None], scales.T, strict=True):
            slopes = self.log_slope(step / scale[:, None, None])
            columns.append(np.einsum("kji,kji->ki", A, slopes) / scale[:, None])
        return np.stack(columns, axis=-1)

    def _points(self, X: ArrayLike, Y: ArrayLike) -> tuple[Array, Array]:
        X = points(X, self.lengthscales.size if self.lengthscales.ndim else None)
        return X, points(Y, X.shape[1], "Y")


class RBF(ProductKernel):
    """The squared-exponential kernel, φ(u) = exp(-u²/2).

    >>> RBF([0.5, 2.0])([[0.0, 0.0]], [[0.5, 0.0], [0.5, 2.0]]).round(4)
    array([[0.6065, 0.3679]])
    """

    reach = 9.5
    stretch = 1.0
    kink = False

    def __repr__(self) -> str:
        return f"RBF({self.lengthscales.tolist()})"

    def profile(self, u: Array) -> Array:
        """Return φ(u) = exp(-u²/2)."""
        return np.exp(-0.5 * u * u)

    def log_slope(self, u: Array) -> Array:
        """Return ψ(u) = -u."""
        return -u

    def log_curvature(self, u: Array) -> Array:
        """Return χ(u) = u² - 1."""
        return u * u - 1

    def log_third(self, u: Array) -> Array:
        """Return ω(u) = 3 u - u³."""
        return u * (3 - u * u)

    def features(self, steps: Array) -> Array:
        """Return the squared differences, shape (D, M)."""
        return steps * steps

    def values_batch(self, features: Array, scales: Array) -> Array:
        """Return κ at M differences for K sets of lengthscales (K, D), shape (K, M)."""
        with np.errstate(over="ignore"):
            precisions = np.minimum(scales**-2.0, 1e300)  # finite, so that it can be multiplied by zero
        precisions *= -0.5
        # BLAS is slow if the inner dimension is one.
        exponents: Array = precisions * features if len(features) == 1 else precisions @ features
        np.exp(exponents, out=exponents)
        return exponents

    def contract_log_scales_batch(self, features: Array, scales: Array, A: Array) -> Array:
        """Return Σ_m A_km ∂log κ_km/∂log ℓ_kd for coefficients A (K, M), shape (K, D)."""
        return np.asarray(A @ features.T / scales**2)

    def contract_grad_x_batch(self, X: Array, Y: Array, scales: Array, A: Array) -> Array:
        """Return Σ_j A_kji ∂log κ_k(X_i, Y_j)/∂X_i for coefficients A (K, m, n), shape (K, n, D)."""
        origin = X[0] if len(X) else 0.0  # subtracted first: far from zero, products would round away differences
        sums = A.swapaxes(1, 2) @ (Y - origin)
        sums -= (X - origin) * A.sum(axis=1)[:, :, None]
        return np.asarray(sums / scales[:, None, :] ** 2)


class Matern(ProductKernel):
    """The product Matérn kernel of smoothness ν = 1/2, 3/2 or 5/2.

    With s = √(2ν) |u| the profile is φ(u) = e^{-s}, (1 + s) e^{-s} or (1 + s + s²/3) e^{-s}. It is a product over
    dimensions, not a function of the Euclidean distance: this is what keeps its integrals against independent inputs
    in closed form.

    >>> Matern(1.5, 1.0)([[0.0]], [[0.0], [1.0]]).round(4)
    array([[1.    , 0.4834]])
    """

    #: ν -> a with φ = Σ_k a_k s^k e^{-s}, and b, c, d of the same form for -dφ/ds, d²φ/ds² and -d³φ/ds³
    _COEFFICIENTS: ClassVar[dict[float, tuple[tuple[float, ...], ...]]] = {
        0.5: ((1.0,), (1.0,), (1.0,), (1.0,)),
        1.5: ((1.0, 1.0), (0.0, 1.0), (-1.0, 1.0), (-2.0, 1.0)),
        2.5: ((1.0, 1.0, 1 / 3), (0.0, 1 / 3, 1 / 3), (-1 / 3, -1 / 3, 1 / 3), (0.0, -1.0, 1 / 3)),
    }

    def __init__(self, nu: float, lengthscales: ArrayLike) -> None:
        super().__init__(lengthscales)
        order = numbers(nu, "nu")
        if order.ndim or float(order) not in self._COEFFICIENTS:
            raise ValueError(f"nu must be 0.5, 1.5 or 2.5, got {nu!r}; use RBF for an infinitely smooth kernel")
        self.nu = float(order)
        self.rate = sqrt(2 * self.nu)  #: s = rate · |u|
        self.value_coefficients, self.slope_coefficients, *self._higher = self._COEFFICIENTS[self.nu]
        self.differentiable = self.nu > 0.5
        self.reach = 48 / self.rate
        self.stretch = 1 / self.rate

    def __repr__(self) -> str:
        return f"Matern({self.nu}, {self.lengthscales.tolist()})"

    @property
    def kind(self) -> tuple[Any, ...]:
        """The parameters, other than lengthscales, that distinguish kernels."""
        return type(self), self.nu

    def profile(self, u: Array) -> Array:
        """Return φ(u)."""
        s = self._s(u)
        return np.exp(-s) * _polynomial(self.value_coefficients, s)

    def log_slope(self, u: Array) -> Array:
        """Return ψ(u) = φ'(u) / φ(u)."""
        return -self.rate * np.sign(u) * self._relative(self.slope_coefficients, u)

    def log_curvature(self, u: Array) -> Array:
        """Return χ(u) = φ''(u) / φ(u)."""
        return self.rate**2 * self._relative(self._higher[0], u)

    def log_third(self, u: Array) -> Array:
        """Return ω(u) = φ‴(u) / φ(u)."""
        return -(self.rate**3) * np.sign(u) * self._relative(self._higher[1], u)

    def _relative(self, coefficients: tuple[float, ...], u: Array) -> Array:
        s = self._s(u)
        return _polynomial(coefficients, s) / _polynomial(self.value_coefficients, s)

    def values_batch(self, features: Array, scales: Array) -> Array:
        """Return κ at M differences for K sets of lengthscales (K, D), shape (K, M): one exponential for all inputs."""
        polynomial, exponent = np.ones((len(scales), features.shape[1])), np.zeros((len(scales), features.shape[1]))
        for step, scale in zip(features, scales.T, strict=True):
            s = self._s(step / scale[:, None])
            exponent -= s
            if self.nu > 0.5:
                polynomial *= _polynomial(self.value_coefficients, s)
        np.exp(exponent, out=exponent)
        polynomial *= exponent
        return polynomial

    def _s(self, u: Array) -> Array:
        return np.minimum(self.rate * np.abs(u), 800)  # where e^{-s} is zero, and a product of many s² still finite


def differences(X: Array, Y: Array, categorical: Sequence[int] = ()) -> Array:
    """Return x_d - y_d, or 1 of two categories, for every input and pair of points X (n, D), Y (m, D): (D, n m)."""
    columns, others = np.ascontiguousarray(X.T), np.ascontiguousarray(Y.T)  # or the reshaping would be a copy
    return unordered((columns[:, :, None] - others[:, None, :]).reshape(X.shape[1], -1), categorical)


def unordered(steps: Array, categorical: Sequence[int]) -> Array:
    """Set differences (D, M) of categorical inputs to one where they are not zero, and return them."""
    for d in categorical:
        steps[d] = steps[d] != 0
    return steps


def _polynomial(coefficients: tuple[float, ...], s: Array) -> Array:
    out = np.full_like(s, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        out *= s
        out += coefficient
    return out


class Derivatives:
    """Factors F of covariances of derivatives with respect to an input of the first point, of the second, or of both.

    Among M covariances, those of derivatives are κ F, where with ψ_d = ψ(u_d), χ_d = χ(u_d):

        one          ∂κ/∂x_a = κ ψ_a / ℓ_a,  ∂κ/∂y_a = -κ ψ_a / ℓ_a
        two          ∂²κ/∂x_a ∂y_b = -κ ψ_a ψ_b / (ℓ_a ℓ_b)
        twice        ∂²κ/∂x_a ∂y_a = -κ χ_a / ℓ_a²

    Parameters
    ----------
    steps : (D, M) array
        Differences x - y.
    by, by2 : (M,) ints
        The inputs of the first and of the second point by which each is a derivative; negative for none.

    Attributes
    ----------
    entries : (E,) ints
        Indices of the derivatives among the M covariances, kind by kind.
    """

    def __init__(self, steps: Array, by: IntArray, by2: IntArray) -> None:
        one, two = np.flatnonzero((by >= 0) != (by2 >= 0)), np.flatnonzero((by >= 0) & (by2 >= 0) & (by != by2))
        twice = np.flatnonzero((by >= 0) & (by == by2))
        self.entries = np.concatenate([one, two, twice])
        n, m = len(one), len(one) + len(two)
        self._once, self._two, self._twice = slice(m), slice(n, m), slice(m, None)
        self._inputs, self._seconds = np.where(by >= 0, by, by2)[self.entries], by2[two]
        self._steps, self._second_steps = steps[self._inputs, self.entries], steps[self._seconds, two]
        self._signs = np.where(by2[self.entries] >= 0, -1.0, 1.0)

    def factors(self, kernel: ProductKernel, scales: Array) -> Array:
        """Return F of each derivative for K sets of lengthscales (K, D), shape (K, E)."""
        if len(self.entries) and not kernel.differentiable:
            raise ValueError(f"draws of {kernel!r} have no gradients: take RBF, or Matern with nu 1.5 or 2.5")
        u, ells = self._scaled(scales)
        F = np.empty_like(u)
        F[:, self._once] = kernel.log_slope(u[:, self._once])
        F[:, self._twice] = kernel.log_curvature(u[:, self._twice]) / ells[:, self._twice]
        F /= ells
        F *= self._signs
        F[:, self._two] *= self._second(kernel, scales)
        return F

    def contract_log_scales(self, kernel: ProductKernel, scales: Array, A: Array) -> Array:
        """Return Σ_e A_ke ∂F_ke/∂log ℓ_kd for coefficients A (K, E), shape (K, D)."""
        u, ells = self._scaled(scales)
        psi, chi = kernel.log_slope(u), kernel.log_curvature(u)
        twice, two = self._twice, self._two
        by_first = psi + u * (chi - psi**2)  # the derivative of -ψ/ℓ, times ℓ
        third = kernel.log_third(u[:, twice]) - chi[:, twice] * psi[:, twice]
        by_first[:, twice] = (2 * chi[:, twice] + u[:, twice] * third) / ells[:, twice]
        by_first *= -self._signs * A / ells
        by_first[:, two] *= self._second(kernel, scales)
        v = self._second_steps / scales[:, self._seconds]
        by_second = kernel.log_slope(v) + v * kernel.log_slope_grad(v)
        by_second *= A[:, two] * psi[:, two] / (ells[:, two] * scales[:, self._seconds])
        inputs = np.eye(scales.shape[1])
        return np.asarray(by_first @ inputs[self._inputs] + by_second @ inputs[self._seconds])

    def _scaled(self, scales: Array) -> tuple[Array, Array]:
        """Return, for the inputs of the derivatives, differences in lengthscales, and lengthscales: (K, E) each."""
        ells = scales[:, self._inputs]
        return self._steps / ells, ells

    def _second(self, kernel: ProductKernel, scales: Array) -> Array:
        """Return ψ_b / ℓ_b of the derivatives with respect to two inputs, shape (K, E_two)."""
        ells = scales[:, self._seconds]
        return np.asarray(kernel.log_slope(self._second_steps / ells) / ells)
