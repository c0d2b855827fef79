"""A kernel profile in one dimension, integrated against one marginal distribution.

Notation: profile φ, lengthscale ℓ, marginal density p on the line; the embedding of (φ, ℓ, p) is

    μ(x) = ∫ φ((x - t) / ℓ) p(t) dt        and        v = ∬ φ((t' - t) / ℓ) p(t) p(t') dt dt',

with dμ/dx. To avoid cancellation for lengthscales much shorter or longer than the width of p (except in dμ/dx), there
are incomplete gamma functions and scaled error functions where textbooks have differences of exponentials.
"""

from __future__ import annotations

from dataclasses import astuple
from math import factorial, gamma, pi, sqrt
from typing import Any

import numpy as np
from scipy.special import erf, erfcx, gammainc, ndtr

from ..common.validation import Array
from ..measures.marginals import (
    CategoricalMarginal,
    DiscreteMarginal,
    Marginal,
    NormalMarginal,
    NumericMarginal,
    TabulatedMarginal,
    UniformMarginal,
    density_of,
)
from .embeddings_numeric import Embedding1D, Scale, _Categorical, _Discrete, _Numeric, _RBFTabulated, _Tabulated
from .kernels import RBF, Matern, ProductKernel

SMALL, LARGE = 1e-8, 1e100  #: ratios of widths below which a series is exact, and above which squares would overflow


class _RBFUniform(Embedding1D):
    """RBF against a uniform marginal, by ∫₀^z e^{-s²} ds = ½√π erf(z) with z = √½ distance/ℓ."""

    def __init__(self, kernel: RBF, scale: Scale, marginal: UniformMarginal) -> None:
        self.low, self.high, self.scale = marginal.low, marginal.high, sqrt(2) * scale
        self.width = marginal.high - marginal.low
        self.z = self.width / self.scale

    def mean(self, x: Array) -> Array:
        return self._value(*self._sides(x))

    def mean_grad_x(self, x: Array) -> Array:
        return self._slope(*self._sides(x))

    def mean_and_grad_x(self, x: Array) -> tuple[Array, Array]:
        left, right = self._sides(x)
        return self._value(left, right), self._slope(left, right)

    def _value(self, left: Array, right: Array) -> Array:
        return np.asarray(gamma(1.5) * (erf(left) + erf(right)) / self.z)

    def _slope(self, left: Array, right: Array) -> Array:
        # e^{-left²} - e^{-right²}, with left² - right² = (left - right) z
        difference = (left - right) * self.z
        larger = np.exp(-np.minimum(left * left, right * right))
        return np.sign(difference) * larger * np.expm1(-np.abs(difference)) / self.width

    def _sides(self, x: Array) -> tuple[Array, Array]:
        return (x - self.low) / self.scale, (self.high - x) / self.scale

    def variance(self) -> Scale:
        z, squared = self.z, np.minimum(self.z, LARGE) ** 2
        return np.where(z > SMALL, (sqrt(pi) * z * erf(z) + np.expm1(-squared)) / z / z, 1 - squared / 6)


class _RBFNormal(Embedding1D):
    """RBF against a normal marginal: the integral of a product of two Gaussians."""

    def __init__(self, kernel: RBF, scale: Scale, marginal: NormalMarginal) -> None:
        self.centre, self.scale, self.sd = marginal.mean, scale, marginal.sd
        self.total = np.hypot(scale, marginal.sd)

    def mean(self, x: Array) -> Array:
        return self.scale / self.total * np.exp(-0.5 * self._away(x) ** 2)

    def mean_grad_x(self, x: Array) -> Array:
        return self.mean_and_grad_x(x)[1]

    def mean_and_grad_x(self, x: Array) -> tuple[Array, Array]:
        mean = self.mean(x)
        return mean, -mean * self._away(x) / self.total

    def variance(self) -> Scale:
        return np.asarray(self.scale / np.hypot(self.scale, sqrt(2) * self.sd))

    def _away(self, x: Array) -> Array:
        return (x - self.centre) / self.total


class _MaternUniform(Embedding1D):
    """Matérn against a uniform marginal, by ∫₀^z s^k e^{-s} ds = k! P(k + 1, z).

    The profile is φ = Σ_k a_k s^k e^{-s}, with s in units of ℓ/√(2ν).
    """

    def __init__(self, kernel: Matern, scale: float, marginal: UniformMarginal) -> None:
        self.low, self.high, self.scale = marginal.low, marginal.high, scale / kernel.rate
        self.width = marginal.high - marginal.low
        self.z = self.width / self.scale
        self.value = np.array(kernel.value_coefficients)
        self.kernel, self.ell = kernel, scale

    def mean(self, x: Array) -> Array:
        return self._over(x, self.value)

    def mean_grad_x(self, x: Array) -> Array:
        profile = self.kernel.profile
        return (profile((x - self.low) / self.ell) - profile((x - self.high) / self.ell)) / self.width

    def variance(self) -> float:
        return self._twice(self.value)

    def _over(self, x: Array, coefficients: Array) -> Array:
        left, right = (x - self.low) / self.scale, (self.high - x) / self.scale
        return (_antiderivative(coefficients, left) + _antiderivative(coefficients, right)) / self.z

    def _twice(self, coefficients: Array) -> float:
        z = np.asarray(self.z)
        once = z * _antiderivative(coefficients, z) - _antiderivative(np.append(0.0, coefficients), z)
        return float(2 * once / z / z)


class _MaternNormal(Embedding1D):
    """Matérn against a normal marginal, by half-line moments of a tilted normal.

    With τ = √(2ν) σ/ℓ and ξ = (x - m)/σ, the integral of s^k e^{-s} over t > x (t < x) is

        τ^k k! e^{-ξ²/2} H_k(τ ± ξ) / √(2π),        H_k(z) = ∫₀^∞ u^k/k! e^{-u²/2 - zu} du.
    """

    def __init__(self, kernel: Matern, scale: float, marginal: NormalMarginal) -> None:
        self.centre, self.sd, self.rate = marginal.mean, marginal.sd, kernel.rate / scale
        self.value = np.array(kernel.value_coefficients)
        self.slope = np.array(kernel.slope_coefficients)

    def mean(self, x: Array) -> Array:
        above, below = self._halves(x, self.value)
        return above + below

    def mean_grad_x(self, x: Array) -> Array:
        above, below = self._halves(x, self.slope)
        return self.rate * (above - below)

    def variance(self) -> float:
        return self._twice(self.value)

    def _halves(self, x: Array, coefficients: Array) -> tuple[Array, Array]:
        tau, xi = self.rate * self.sd, (x - self.centre) / self.sd
        return _tilted(coefficients, tau, xi), _tilted(coefficients, tau, -xi)

    def _twice(self, coefficients: Array) -> float:
        # t' - t is normal with twice the variance, and symmetric
        return 2 * float(_tilted(coefficients, self.rate * self.sd * sqrt(2), np.zeros(1))[0])


class _Each(Embedding1D):
    """Embeddings of several dimensions in sequence, with lengthscales of shape (D, 1) or (D, K, 1)."""

    def __init__(self, kernel: ProductKernel, scales: Array, marginals: tuple[Marginal, ...]) -> None:
        self.shape = scales.shape
        each = [scale.item() if scale.size == 1 else scale for scale in scales]
        self.factors = [embed1d(kernel, scale, marginal) for scale, marginal in zip(each, marginals, strict=True)]

    def mean(self, x: Array) -> Array:
        return np.array([factor.mean(row) for factor, row in zip(self.factors, x, strict=True)])

    def mean_grad_x(self, x: Array) -> Array:
        return self.mean_and_grad_x(x)[1]

    def mean_and_grad_x(self, x: Array) -> tuple[Array, Array]:
        both = [factor.mean_and_grad_x(row) for factor, row in zip(self.factors, x, strict=True)]
        means, slopes = (np.array(part) for part in zip(*both, strict=True))
        return means, slopes

    def variance(self) -> Array:
        return np.array([factor.variance() for factor in self.factors]).reshape(self.shape)


#: (kernel, marginal) -> embedding
TABLE: dict[tuple[type[ProductKernel], type[Marginal]], Any] = {
    (RBF, UniformMarginal): _RBFUniform,
    (RBF, NormalMarginal): _RBFNormal,
    (RBF, NumericMarginal): _Numeric,
    (RBF, DiscreteMarginal): _Discrete,
    (RBF, CategoricalMarginal): _Categorical,
    (RBF, TabulatedMarginal): _RBFTabulated,
    (Matern, UniformMarginal): _MaternUniform,
    (Matern, NormalMarginal): _MaternNormal,
    (Matern, NumericMarginal): _Numeric,
    (Matern, DiscreteMarginal): _Discrete,
    (Matern, CategoricalMarginal): _Categorical,
    (Matern, TabulatedMarginal): _Tabulated,
}


#: embeddings whose formulas take arrays of lengthscales and of parameters of the marginals
BROADCAST = (_RBFUniform, _RBFNormal)
#: embeddings that take arrays of lengthscales
ELEMENTWISE = (*BROADCAST, _RBFTabulated, _Discrete, _Categorical)


def elementwise(kernel: ProductKernel, marginals: tuple[Marginal, ...]) -> bool:
    """Return whether the embeddings of these dimensions take many lengthscales at once."""
    return all(TABLE.get((type(kernel), type(marginal))) in ELEMENTWISE for marginal in marginals)


def embed1d(kernel: ProductKernel, scale: Scale, marginal: Marginal) -> Embedding1D:
    """Return the embedding of one dimension of a kernel with lengthscale ``scale``."""
    try:
        made = TABLE[type(kernel), type(marginal)]
    except KeyError:
        raise ValueError(f"{type(kernel).__name__} cannot be integrated against a {type(marginal).__name__}") from None
    embedding: Embedding1D = made(kernel, scale, marginal)
    return embedding


def embed_each(kernel: ProductKernel, scales: Array, marginals: tuple[Marginal, ...]) -> Embedding1D:
    """Return the embeddings of D dimensions, which are the first axis of x and of all results.

    Lengthscales (D, 1) go with x of shape (D, n), and K sets of them, (D, K, 1), with (D, 1, n). Marginals of one kind
    are computed together if the formulas allow it.
    """
    kind = type(marginals[0])
    if TABLE.get((type(kernel), kind)) not in BROADCAST or any(type(marginal) is not kind for marginal in marginals):
        return _Each(kernel, scales, marginals)
    parameters: Any = np.array([astuple(marginal) for marginal in marginals]).T  # type: ignore[arg-type]
    together: Any = kind(*parameters.reshape(len(parameters), len(scales), *[1] * (scales.ndim - 1)))
    return embed1d(kernel, scales, together)


def between(kernel: ProductKernel, scales: Array, one: Marginal, other: Marginal) -> Array:
    """Return ∬ φ((t' - t) / ℓ_k) p(t) q(t') dt dt' of two continuous marginals for lengthscales (K,), shape (K,).

    The kernel mean of one is integrated against the density of the other, by a Gauss rule on pieces that resolve both.
    """
    p, q = density_of(one), density_of(other)
    out = np.empty(len(scales))
    for k, scale in enumerate(scales.tolist()):
        t, w = q.rule_beside(p, scale * kernel.stretch)
        out[k] = w @ embed1d(kernel, scale, one).mean(t)
    return out


def _antiderivative(coefficients: Array, z: Array) -> Array:
    """Return ∫₀^z Σ_k a_k s^k e^{-s} ds, continued to z < 0 as an odd function."""
    terms = [a * factorial(k) * gammainc(k + 1, np.abs(z)) for k, a in enumerate(coefficients) if a]
    return np.asarray(np.sign(z) * np.sum(terms, axis=0))


def _tilted(coefficients: Array, tau: float, xi: Array) -> Array:
    """Return Σ_k a_k τ^k k! e^{-ξ²/2} H_k(τ + ξ) / √(2π)."""
    n, z = len(coefficients), tau + xi
    factors = np.array([a * tau**k * factorial(k) / sqrt(2 * pi) for k, a in enumerate(coefficients)])
    # For z < 0, H_k grows like e^{z²/2}, and e^{-ξ²/2 + z²/2} = e^{τ²/2 + τξ} keeps the product in range.
    low, high = z < 0, z >= 2.5
    H = _by_recurrence(n, z, np.ones_like(z), sqrt(pi / 2) * erfcx(np.maximum(z, 0) / sqrt(2)))
    H[:, low] = _by_recurrence(n, z[low], np.exp(-0.5 * z[low] ** 2), sqrt(2 * pi) * ndtr(-z[low]))
    H[:, high] = H[0, high] * _ratios(n, z[high])
    return (factors @ H) * np.exp(np.where(low, tau * (0.5 * tau + xi), -0.5 * xi * xi))


def _by_recurrence(n: int, z: Array, before: Array, first: Array) -> Array:
    """Return H_0 … H_{n-1} by (k + 1) H_{k+1} = H_{k-1} - z H_k, from H_{-1} and H_0."""
    H = [before, first]
    for k in range(n - 1):
        H.append((H[-2] - z * H[-1]) / (k + 1))
    return np.stack(H[1 : n + 1])


def _ratios(n: int, z: Array) -> Array:
    """Return H_0 … H_{n-1} over H_0 by a continued fraction, for z ≥ 2.5, where the recurrence would lose digits.

    H_k / H_{k-1} = 1 / (z + (k + 1) H_{k+1} / H_k); 70 levels are accurate to rounding errors.
    """
    ratio = np.zeros_like(z)
    ratios = []
    for k in range(70, 0, -1):
        ratio = 1 / (z + (k + 1) * ratio)
        ratios.append(ratio)
    return np.cumprod([np.ones_like(z), *ratios[::-1][: n - 1]], axis=0)
