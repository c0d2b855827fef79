"""Kernels over the inputs, of unit variance: the scale of a source lives in the coregionalisation matrix B.

Notation: D dimensions, X (n, D) and Y (m, D) points, ℓ_d lengthscales, u_d = (x_d - y_d) / ℓ_d,

    κ(x, y) = Π_d φ(u_d),        ∂κ/∂x_d = κ ψ(u_d) / ℓ_d,        ∂κ/∂log ℓ_d = -κ u_d ψ(u_d),

with the profile φ and its logarithmic slope ψ = φ'/φ, which is finite wherever φ underflows. Every gradient comes
in two forms: the whole array, and its contraction with a coefficient C (n, m) per entry of the kernel matrix,
which never holds more than an n × m matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from functools import lru_cache
from math import sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from ..validation import Array, IntArray, brief, numbers, points, positive


class Kernel(ABC):
    """A covariance function over the inputs with κ(x, x) = 1."""

    @property
    @abstractmethod
    def n_lengthscales(self) -> int:
        """P, the number of its hyperparameters."""

    @abstractmethod
    def __call__(self, X: ArrayLike, Y: ArrayLike) -> Array:
        """κ(X_i, Y_j), shape (n, m)."""

    @abstractmethod
    def values(self, X: Array, Y: Array) -> Array:
        """The same, of points that are known to be good."""

    def upper(self, X: Array) -> Array:
        """κ(X_i, X_j) for i ≤ j, and zeros below the diagonal: shape (n, n)."""
        return np.triu(self.values(X, X))

    @abstractmethod
    def grad_x(self, X: ArrayLike, Y: ArrayLike) -> Array:
        """∂κ(X_i, Y_j)/∂X_i, shape (n, m, D)."""

    @abstractmethod
    def grad_log_lengthscales(self, X: ArrayLike, Y: ArrayLike) -> Array:
        """∂κ(X_i, Y_j)/∂log ℓ_p, shape (n, m, P)."""

    def contract_grad_x(self, X: Array, Y: Array, C: Array) -> Array:
        """Σ_j C_ij ∂κ(X_i, Y_j)/∂X_i, shape (n, D)."""
        return self.contract_log_grad_x(X, Y, C * self.values(X, Y))

    def contract_grad_log_lengthscales(self, X: Array, Y: Array, C: Array) -> Array:
        """Σ_ij C_ij ∂κ(X_i, Y_j)/∂log ℓ_p, shape (P,)."""
        return self.contract_log_grad_log_lengthscales(X, Y, C * self.values(X, Y))

    @abstractmethod
    def contract_log_grad_x(self, X: Array, Y: Array, A: Array) -> Array:
        """Σ_j A_ij ∂log κ(X_i, Y_j)/∂X_i, shape (n, D)."""

    @abstractmethod
    def contract_log_grad_log_lengthscales(self, X: Array, Y: Array, A: Array) -> Array:
        """Σ_ij A_ij ∂log κ(X_i, Y_j)/∂log ℓ_p, shape (P,)."""

    @abstractmethod
    def check_dim(self, dim: int) -> None:
        """Raise unless the kernel can be used in ``dim`` dimensions."""


def check_kernel(kernel: Any) -> Kernel:
    """The same kernel, if it is one."""
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be RBF(...), Matern(...) or Constant(), got {brief(kernel)}")
    return kernel


class Constant(Kernel):
    """κ(x, y) = 1: the covariance of an unknown offset.

    With a diagonal B, a ``Constant`` term gives every source an offset of its own.

    >>> Constant()([[0.0], [1.0]], [[5.0]])
    array([[1.],
           [1.]])
    """

    n_lengthscales = 0

    def __repr__(self) -> str:
        return "Constant()"

    def __call__(self, X: ArrayLike, Y: ArrayLike) -> Array:
        return self.values(*_same_dim(X, Y))

    def values(self, X: Array, Y: Array) -> Array:
        return np.ones((len(X), len(Y)))

    def grad_x(self, X: ArrayLike, Y: ArrayLike) -> Array:
        X, Y = _same_dim(X, Y)
        return np.zeros((len(X), len(Y), X.shape[1]))

    def grad_log_lengthscales(self, X: ArrayLike, Y: ArrayLike) -> Array:
        X, Y = _same_dim(X, Y)
        return np.zeros((len(X), len(Y), 0))

    def contract_log_grad_x(self, X: Array, Y: Array, A: Array) -> Array:
        return np.zeros_like(X)

    def contract_log_grad_log_lengthscales(self, X: Array, Y: Array, A: Array) -> Array:
        return np.zeros(0)

    def check_dim(self, dim: int) -> None:
        pass


class ProductKernel(Kernel):
    """A product over the dimensions of one stationary profile φ(u), each dimension with its lengthscale.

    Parameters
    ----------
    lengthscales : float or sequence of D floats
        One number is one lengthscale shared by all dimensions, and counts as one hyperparameter (P = 1);
        a sequence is one lengthscale for each dimension (P = D).
    """

    reach: float  #: φ(u) is negligible, below 1e-18, for |u| beyond it
    stretch: float  #: the |u| within which φ varies by about a factor of e

    def __init__(self, lengthscales: ArrayLike) -> None:
        self.lengthscales = positive(numbers(lengthscales, "lengthscales"), "lengthscales")
        if self.lengthscales.ndim > 1 or self.lengthscales.size == 0:
            raise ValueError(
                f"lengthscales must be one number or one per dimension, got shape {self.lengthscales.shape}"
            )

    def __call__(self, X: ArrayLike, Y: ArrayLike) -> Array:
        X, Y, _ = self._points(X, Y)
        return self.values(X, Y)

    @abstractmethod
    def profile(self, u: Array) -> Array:
        """φ(u)."""

    @abstractmethod
    def log_slope(self, u: Array) -> Array:
        """ψ(u) = φ'(u) / φ(u)."""

    def slope(self, u: Array) -> Array:
        """φ'(u)."""
        return self.profile(u) * self.log_slope(u)

    @property
    def n_lengthscales(self) -> int:
        return self.lengthscales.size

    def with_lengthscales(self, lengthscales: Array) -> Self:
        """The same kernel, but with these."""
        other = copy(self)
        other.lengthscales = lengthscales
        return other

    def over(self, inputs: Sequence[int]) -> Self:
        """The factor of the product that depends on some of the dimensions."""
        return self.with_lengthscales(self.lengthscales[list(inputs)] if self.lengthscales.ndim else self.lengthscales)

    def lengthscales_in(self, dim: int) -> Array:
        """One lengthscale for each of ``dim`` dimensions."""
        self.check_dim(dim)
        return np.broadcast_to(self.lengthscales, (dim,))

    def per_parameter(self, per_dimension: Array) -> Array:
        """Derivatives in the D log lengthscales (last axis) as derivatives in the P hyperparameters."""
        return per_dimension if self.lengthscales.ndim else per_dimension.sum(axis=-1, keepdims=True)

    def check_dim(self, dim: int) -> None:
        if self.lengthscales.shape not in ((), (dim,)):
            raise ValueError(
                f"the kernel has {self.lengthscales.size} lengthscales but the points have {dim} dimensions: "
                f"give {dim}, or a single number to share one"
            )

    def grad_x(self, X: ArrayLike, Y: ArrayLike) -> Array:
        X, Y, scales = self._points(X, Y)
        u = (X[:, None, :] - Y[None, :, :]) / scales
        return self(X, Y)[:, :, None] * self.log_slope(u) / scales

    def grad_log_lengthscales(self, X: ArrayLike, Y: ArrayLike) -> Array:
        X, Y, scales = self._points(X, Y)
        u = (X[:, None, :] - Y[None, :, :]) / scales
        return self.per_parameter(-self(X, Y)[:, :, None] * u * self.log_slope(u))

    def contract_log_grad_x(self, X: Array, Y: Array, A: Array) -> Array:
        scales = self.lengthscales_in(X.shape[1])
        columns = [
            np.einsum("ij,ij->i", A, self.log_slope(u)) / scale
            for u, scale in zip(_steps(X, Y, scales), scales, strict=True)
        ]
        return np.stack(columns, axis=1)

    def contract_log_grad_log_lengthscales(self, X: Array, Y: Array, A: Array) -> Array:
        scales = self.lengthscales_in(X.shape[1])
        sums = [-np.einsum("ij,ij,ij->", A, u, self.log_slope(u)) for u in _steps(X, Y, scales)]
        return self.per_parameter(np.array(sums))

    def features(self, steps: Array) -> Array:
        """What the next two need of M differences x_d - y_d (D, M), whatever the lengthscales."""
        return steps

    def over_scales(self, features: Array, scales: Array) -> Array:
        """κ for K sets of lengthscales (K, D) at once, from the features of differences: shape (K, M)."""
        out = np.ones((len(scales), features.shape[1]))
        for step, scale in zip(features, scales.T, strict=True):
            out *= self.profile(step / scale[:, None])
        return out

    def contract_over_scales(self, features: Array, scales: Array, A: Array) -> Array:
        """Σ_m A_m ∂log κ_m/∂log ℓ_d for each of K sets of lengthscales and A (K, M): shape (K, D)."""
        columns = []
        for step, scale in zip(features, scales.T, strict=True):
            u = step / scale[:, None]
            columns.append(-np.einsum("km,km,km->k", A, u, self.log_slope(u)))
        return np.stack(columns, axis=1)

    def contract_grad_x_over_scales(self, X: Array, Y: Array, scales: Array, A: Array) -> Array:
        """Σ_j A_ji ∂log κ(X_i, Y_j)/∂X_i for each of K sets of lengthscales and A (K, m, n): shape (K, n, D)."""
        columns = []
        for step, scale in zip(X.T[:, None, :] - Y.T[:, :, None], scales.T, strict=True):
            slopes = self.log_slope(step / scale[:, None, None])
            columns.append(np.einsum("kji,kji->ki", A, slopes) / scale[:, None])
        return np.stack(columns, axis=-1)

    def _points(self, X: ArrayLike, Y: ArrayLike) -> tuple[Array, Array, Array]:
        X = points(X, self.lengthscales.size if self.lengthscales.ndim else None)
        return X, points(Y, X.shape[1], "Y"), self.lengthscales_in(X.shape[1])


class RBF(ProductKernel):
    """The squared-exponential kernel, φ(u) = exp(-u²/2).

    >>> RBF([0.5, 2.0])([[0.0, 0.0]], [[0.5, 0.0], [0.5, 2.0]]).round(4)
    array([[0.6065, 0.3679]])
    """

    reach = 9.5
    stretch = 1.0

    def __repr__(self) -> str:
        return f"RBF({self.lengthscales.tolist()})"

    def profile(self, u: Array) -> Array:
        return np.exp(-0.5 * u * u)

    def log_slope(self, u: Array) -> Array:
        return -u

    def values(self, X: Array, Y: Array) -> Array:
        origin = X[0] if len(X) else 0.0  # subtracted first: far from zero, dividing would round away differences
        scales = self.lengthscales
        distances: Array = cdist((X - origin) / scales, (Y - origin) / scales, "sqeuclidean")
        distances *= -0.5
        np.exp(distances, out=distances)
        return distances

    def upper(self, X: Array) -> Array:
        x = (X - X[0]) / self.lengthscales if len(X) else X
        distances: Array = cdist(x, x, "sqeuclidean")
        places = _upper_triangle(len(X))
        values = distances.ravel().take(places)
        values *= -0.5
        np.exp(values, out=values)
        distances.fill(0.0)
        distances.ravel()[places] = values
        return distances

    def contract_log_grad_x(self, X: Array, Y: Array, A: Array) -> Array:
        origin = X[0] if len(X) else 0.0
        return np.asarray((A @ (Y - origin) - (X - origin) * A.sum(axis=1, keepdims=True)) / self.lengthscales**2)

    def contract_log_grad_log_lengthscales(self, X: Array, Y: Array, A: Array) -> Array:
        x, y = X.T.copy(), Y.T.copy()
        steps = (x[:, :, None] - y[:, None, :]).reshape(len(x), -1)
        steps *= steps
        # no BLAS where it would take several threads: others may be at work here
        sums = steps @ A.ravel() if A.size < 2**15 else np.array([np.einsum("m,m->", row, A.ravel()) for row in steps])
        return self.per_parameter(sums / self.lengthscales**2)

    def features(self, steps: Array) -> Array:
        return steps * steps

    def over_scales(self, features: Array, scales: Array) -> Array:
        exponents = (-0.5 * scales**-2) @ features
        np.exp(exponents, out=exponents)
        return np.asarray(exponents)

    def contract_over_scales(self, features: Array, scales: Array, A: Array) -> Array:
        return np.asarray(A @ features.T / scales**2)

    def contract_grad_x_over_scales(self, X: Array, Y: Array, scales: Array, A: Array) -> Array:
        origin = X[0] if len(X) else 0.0  # subtracted first, as above
        sums = A.swapaxes(1, 2) @ (Y - origin)
        sums -= (X - origin) * A.sum(axis=1)[:, :, None]
        return np.asarray(sums / scales[:, None, :] ** 2)


class Matern(ProductKernel):
    """The product Matérn kernel of smoothness ν = 1/2, 3/2 or 5/2, with s = √(2ν) |u|:

    φ(u) = e^{-s},  (1 + s) e^{-s},  (1 + s + s²/3) e^{-s}.

    A product over dimensions, not a function of the Euclidean distance: this is what keeps its integrals
    against independent inputs in closed form.

    >>> Matern(1.5, 1.0)([[0.0]], [[0.0], [1.0]]).round(4)
    array([[1.    , 0.4834]])
    """

    #: ν -> a with φ = Σ_k a_k s^k e^{-s}, and b with -dφ/ds = Σ_k b_k s^k e^{-s}
    _COEFFICIENTS: ClassVar[dict[float, tuple[tuple[float, ...], tuple[float, ...]]]] = {
        0.5: ((1.0,), (1.0,)),
        1.5: ((1.0, 1.0), (0.0, 1.0)),
        2.5: ((1.0, 1.0, 1 / 3), (0.0, 1 / 3, 1 / 3)),
    }

    def __init__(self, nu: float, lengthscales: ArrayLike) -> None:
        super().__init__(lengthscales)
        order = numbers(nu, "nu")
        if order.ndim or float(order) not in self._COEFFICIENTS:
            raise ValueError(f"nu must be 0.5, 1.5 or 2.5, got {nu!r}; use RBF for an infinitely smooth kernel")
        self.nu = float(order)
        self.rate = sqrt(2 * self.nu)  #: s = rate · |u|
        self.value_coefficients, self.slope_coefficients = self._COEFFICIENTS[self.nu]
        self.reach = 48 / self.rate
        self.stretch = 1 / self.rate

    def __repr__(self) -> str:
        return f"Matern({self.nu}, {self.lengthscales.tolist()})"

    def values(self, X: Array, Y: Array) -> Array:
        scales = self.lengthscales_in(X.shape[1])
        polynomial, exponent = np.ones((len(X), len(Y))), np.zeros((len(X), len(Y)))
        for u in _steps(X, Y, scales):
            s = self._s(u)
            exponent -= s
            if self.nu > 0.5:
                polynomial *= _polynomial(self.value_coefficients, s)
        np.exp(exponent, out=exponent)
        polynomial *= exponent
        return polynomial

    def profile(self, u: Array) -> Array:
        s = self._s(u)
        return np.exp(-s) * _polynomial(self.value_coefficients, s)

    def log_slope(self, u: Array) -> Array:
        s = self._s(u)
        slope = _polynomial(self.slope_coefficients, s) / _polynomial(self.value_coefficients, s)
        return -self.rate * np.sign(u) * slope

    def _s(self, u: Array) -> Array:
        return np.minimum(self.rate * np.abs(u), 800)  # where e^{-s} is zero, and a product of many s² still finite


@lru_cache(maxsize=64)
def _upper_triangle(n: int) -> IntArray:
    """Where it is in a matrix of n rows, diagonal included, as places in its flat form."""
    return np.flatnonzero(np.tri(n, dtype=bool).T)


def _same_dim(X: ArrayLike, Y: ArrayLike) -> tuple[Array, Array]:
    X = points(X, None)
    return X, points(Y, X.shape[1], "Y")


def _steps(X: Array, Y: Array, scales: Array) -> Iterator[Array]:
    """u_d for one dimension after the other, each (n, m)."""
    for x, y, scale in zip(X.T, Y.T, scales, strict=True):
        yield np.subtract.outer(x, y) / scale


def _polynomial(coefficients: tuple[float, ...], s: Array) -> Array:
    out = np.full_like(s, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        out *= s
        out += coefficient
    return out
