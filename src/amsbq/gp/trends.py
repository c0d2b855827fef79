"""Trends: parts of a covariance that are linear in known functions of the inputs, k_ll'(x, x') = B[l, l'] h(x)ᵀ h(x').

Their coefficients are integrated out in closed form. Notation as in `coregionalisation`; h(x) (P,) are the functions of
a `Linear` kernel, or, for observed derivatives, their derivatives with respect to the same input, and h̄ (P,) their
integrals against the measure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..common.validation import Array, IntArray, brief, numbers, points
from ..measures.base import Measure
from .data import Sites
from .kernels import Kernel, ProductKernel


class Constant(Kernel):
    """The kernel κ(x, y) = 1, the covariance of an unknown offset.

    With a diagonal B, a ``Constant`` term gives each source its own offset.

    >>> Constant()([[0.0], [1.0]], [[5.0]])
    array([[1.],
           [1.]])
    """

    def __repr__(self) -> str:
        return "Constant()"

    def __call__(self, X: ArrayLike, Y: ArrayLike) -> Array:
        """Return ones, shape (n, m)."""
        X = points(X, None)
        return np.ones((len(X), len(points(Y, X.shape[1], "Y"))))

    def check_dim(self, dim: int) -> None:
        """Accept any number of dimensions."""


class Linear(Kernel):
    """The kernel κ(x, y) = h(x)ᵀ h(y) with h_d(x) = (x_d - c_d) / s_d, the covariance of a linear trend.

    Its variance is not one, and grows with the distance from the centre c.

    Parameters
    ----------
    centre : float or sequence of D floats
        The point at which the trend is zero.
    scales : float or sequence of D floats
        The slope in dimension d has standard deviation 1 / s_d; there is none where s_d is infinite.

    >>> Linear(0.5, [1.0, 2.0])([[1.5, 0.5], [1.5, 4.5]], [[1.5, 2.5]])
    array([[1.],
           [3.]])
    """

    def __init__(self, centre: ArrayLike, scales: ArrayLike) -> None:
        self.centre, self.scales = numbers(centre, "centre"), np.asarray(scales, dtype=float)
        if max(self.centre.ndim, self.scales.ndim) > 1 or not (self.scales > 0).all():
            raise ValueError("centre and scales must be one number or one per dimension, and scales positive")

    def __repr__(self) -> str:
        return f"Linear({self.centre.tolist()}, {self.scales.tolist()})"

    def __call__(self, X: ArrayLike, Y: ArrayLike) -> Array:
        """Return κ(X_i, Y_j), shape (n, m)."""
        X = points(X, None)
        self.check_dim(X.shape[1])
        return np.asarray(self.functions(X) @ self.functions(points(Y, X.shape[1], "Y")).T)

    def functions(self, X: Array) -> Array:
        """Return h(X_i), shape (n, D)."""
        return np.asarray((X - self.centre) / self.scales)

    def observed(self, measure: Measure, sites: Sites) -> Array:
        """Return h, or its derivative, for observations at locations of a measure: shape (n, D)."""
        h = self.functions(measure.to_latent(sites.X))
        if len(which := np.flatnonzero(sites.differentiated)):
            h[which] = np.eye(h.shape[1])[sites.by[which]] * self.slopes(measure, sites.X[which])
        return h

    def slopes(self, measure: Measure, X: Array) -> Array:
        """Return dh_d/dx_d at locations of a measure, the only derivatives that are not zero: shape (n, D)."""
        slopes = measure.latent_slopes(X)
        return np.asarray((1.0 if slopes is None else slopes) / np.broadcast_to(self.scales, X.shape))

    def check_dim(self, dim: int) -> None:
        """Raise ValueError unless centre and scales are single numbers or have ``dim`` entries, one per dimension."""
        for name in ("centre", "scales"):
            if (shape := getattr(self, name).shape) not in ((), (dim,)):
                raise ValueError(f"the kernel has {shape[0]} {name} but the points have {dim} dimensions")

    @property
    def kind(self) -> tuple[Any, ...]:
        """The parameters that distinguish linear kernels."""
        return type(self), self.centre.tobytes(), self.scales.tobytes()


def check_kernel(kernel: Any) -> Kernel:
    """Return the argument if it is a kernel, else raise TypeError."""
    if not isinstance(kernel, ProductKernel | Linear | Constant):
        raise TypeError(f"kernel must be RBF(...), Matern(...), Linear(...) or Constant(), got {brief(kernel)}")
    return kernel


#: An input has a trend only if its standard deviation is at most this many widths: for heavier tails it is meaningless.
MOST_WIDTHS = 2.0


def linear_kernel(measure: Measure) -> Linear:
    """Return the linear kernel around the mean of a measure, in which all inputs count equally; mean variance one."""
    latent = measure.whole.latent
    mean, sd = latent.moments
    known = np.isfinite(mean) & (sd > 0) & (sd <= MOST_WIDTHS * latent.width)
    scales = np.where(known, sd * np.sqrt(max(int(known.sum()), 1)), np.inf)
    return Linear(np.where(known, mean, 0.0), scales)


def between(B: Array, s: IntArray, s2: IntArray) -> Array:
    """Return B[l, l'] for all pairs of points, with B (..., L, L) and sources s (n,) and s2 (m,): (..., n, m)."""
    return B.take(s2, axis=-1).take(s, axis=-2)  # whole rows at a time: faster than an index for each entry


@dataclass(frozen=True)
class Trends:
    """The trends of K models: kernels that all models share, and B (K, L, L) for each kernel.

    Without trends, all covariances and their gradients are zero.
    """

    kernels: tuple[Linear, ...] = ()
    B: tuple[Array, ...] = ()
    averages: tuple[Array, ...] | None = None  # in place of h̄, where the integral is another functional

    @classmethod
    def joined(cls, parts: Sequence[tuple[Trends, int]], n_sources: int) -> Trends:
        """Join the trends of several groups of models, given with their sizes; B = 0 where a model lacks one."""
        kernels = {kernel.kind: kernel for trends, _ in parts for kernel in trends.kernels}
        B = []
        for kind in kernels:
            found = []
            for trends, n in parts:
                having = (B for kernel, B in zip(trends.kernels, trends.B, strict=True) if kernel.kind == kind)
                found.append(sum(having, start=np.zeros((n, n_sources, n_sources))))
            B.append(np.concatenate(found))
        return cls(tuple(kernels.values()), tuple(B))

    def select(self, models: slice | IntArray) -> Trends:
        """Return the trends of the given models."""
        return Trends(self.kernels, tuple(B[models] for B in self.B), self.averages)

    def averaged(self, averages: Sequence[Array]) -> Trends:
        """Return the trends with h̄ replaced by averages of h under another functional than the integral."""
        return Trends(self.kernels, self.B, tuple(averages))

    def cov(self, measure: Measure, a: Sites, b: Sites) -> Array | float:
        """Return the covariances of n observations with m others by trends, shape (K, n, m)."""
        return self._sum(
            lambda kernel, B: between(B, a.s, b.s) * (kernel.observed(measure, a) @ kernel.observed(measure, b).T)
        )

    def cov_at_same(self, measure: Measure, a: Sites, b: Sites) -> Array | float:
        """Return the covariances by trends of observations a_i and b_i at the same locations: (K, n)."""
        return self._sum(
            lambda kernel, B: B[:, a.s, b.s] * (kernel.observed(measure, a) * kernel.observed(measure, b)).sum(axis=1)
        )

    def variances_grad_x(self, measure: Measure, s: IntArray, X: Array) -> Array | float:
        """Return ∂ var f_s(X_i)/∂X_i by trends, shape (K, n, D)."""
        return self._sum(
            lambda kernel, B: (
                2 * B[:, s, s, None] * (kernel.functions(measure.to_latent(X)) * kernel.slopes(measure, X))
            )
        )

    def contract_grad_x(self, measure: Measure, s: IntArray, X: Array, b: Sites, c: Array) -> Array | float:
        """Return Σ_j c_ji ∂cov[f_s(X_i), y_j]/∂X_i by trends for observations b and c (K, m, n), shape (K, n, D)."""

        def one(kernel: Linear, B: Array) -> Array:
            sums = (c * between(B, b.s, s)).swapaxes(1, 2) @ kernel.observed(measure, b)
            return np.asarray(sums * kernel.slopes(measure, X))

        return self._sum(one)

    def integral_cov(self, measure: Measure, target: int, a: Sites) -> Array | float:
        """Return the covariances of Z_target with observations by trends, shape (K, n)."""
        return self._sum(
            lambda kernel, B: B[:, target, a.s] * (kernel.observed(measure, a) @ self._integrals(kernel, measure))
        )

    def integral_cov_grad_x(self, measure: Measure, target: int, s: IntArray, X: Array) -> Array | float:
        """Return ∂cov[Z_target, f_s(X_i)]/∂X_i by trends, shape (K, n, D)."""
        return self._sum(
            lambda kernel, B: B[:, target, s, None] * (kernel.slopes(measure, X) * self._integrals(kernel, measure))
        )

    def integral_covariance(self, measure: Measure, target: int, other: int) -> Array | float:
        """Return cov[Z_target, Z_other] by trends, shape (K,)."""
        return self._sum(lambda kernel, B: B[:, target, other] * (self._integrals(kernel, measure) ** 2).sum())

    def main_effect_cov(
        self, measure: Measure, source: int, inputs: Sequence[int], t: Array, a: Sites
    ) -> Array | float:
        """Return the part of the covariances of a main effect that is due to trends, (K, m, n)."""

        def one(kernel: Linear, B: Array) -> Array:
            effects = _main_effects(kernel, measure, inputs, t)
            return np.asarray(B[:, source, a.s][:, None] * (effects @ kernel.observed(measure, a).T))

        return self._sum(one)

    def main_effect_variance(self, measure: Measure, source: int, inputs: Sequence[int], t: Array) -> Array | float:
        """Return the part of the variances of a main effect that is due to trends, (K, m)."""

        def one(kernel: Linear, B: Array) -> Array:
            return np.asarray(B[:, [source], source] * (_main_effects(kernel, measure, inputs, t) ** 2).sum(axis=1))

        return self._sum(one)

    def main_effect_integral_cov(
        self, measure: Measure, source: int, inputs: Sequence[int], t: Array, other: int
    ) -> Array | float:
        """Return the covariances by trends of a main effect with Z_other, shape (K, m)."""

        def one(kernel: Linear, B: Array) -> Array:
            effects = _main_effects(kernel, measure, inputs, t)
            return np.asarray(B[:, [source], other] * (effects @ self._integrals(kernel, measure)))

        return self._sum(one)

    def _integrals(self, kernel: Linear, measure: Measure) -> Array:
        """Return h̄ of one of the kernels, shape (P,)."""
        return _integrals(kernel, measure) if self.averages is None else self.averages[self.kernels.index(kernel)]

    def _sum(self, of_one: Callable[[Linear, Array], Array]) -> Array | float:
        return sum((of_one(kernel, B) for kernel, B in zip(self.kernels, self.B, strict=True)), start=0.0)


#: the trends of models without any
NO_TRENDS = Trends()


def _main_effects(kernel: Linear, measure: Measure, inputs: Sequence[int], t: Array) -> Array:
    """Return ∫ h(x) π(dx_others) at values t (m, k) of k inputs, shape (m, P)."""
    h = np.tile(_integrals(kernel, measure), (len(t), 1))
    at = np.zeros((len(t), measure.dim))
    at[:, list(inputs)] = measure.over(inputs).to_latent(t)
    h[:, list(inputs)] = kernel.functions(at)[:, list(inputs)]
    return h


def _integrals(kernel: Linear, measure: Measure) -> Array:
    """Return h̄, shape (P,), which is zero unless the kernel has another centre than the measure."""
    known = np.isfinite(np.broadcast_to(kernel.scales, measure.dim))
    return kernel.functions(np.where(known, measure.latent.moments[0], 0.0))
