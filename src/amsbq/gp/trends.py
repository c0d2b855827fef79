"""Trends: parts of a covariance that are linear in known functions of the inputs, k_ll'(x, x') = B[l, l'] h(x)ᵀ h(x').

Their coefficients are integrated out in closed form. Notation as in `coregionalisation`; h(x) (P,) are the functions of
a `Linear` kernel, and h̄ (P,) their integrals against the measure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..measures.base import Measure
from ..validation import Array, IntArray
from .kernels import Linear

#: An input has a trend only if its standard deviation is at most so many widths: that of heavier tails says nothing.
MOST_WIDTHS = 2.0


def linear_kernel(measure: Measure) -> Linear:
    """Return the linear kernel of all inputs alike around the mean of a measure, with a variance of one on average."""
    latent = measure.whole.latent
    mean, sd = latent.moments
    known = np.isfinite(mean) & (sd > 0) & (sd <= MOST_WIDTHS * latent.width)
    scales = np.where(known, sd * np.sqrt(max(int(known.sum()), 1)), np.inf)
    return Linear(np.where(known, mean, 0.0), scales)


def between(B: Array, s: IntArray, s2: IntArray) -> Array:
    """Return B[l, l'] of every two points, for B (..., L, L) and sources s (n,) and s2 (m,): shape (..., n, m)."""
    return B.take(s2, axis=-1).take(s, axis=-2)  # whole rows at a time: faster than an index for each entry


@dataclass(frozen=True)
class Trends:
    """The trends of K models: kernels that they have in common, and B (K, L, L) for each of them.

    All that is returned is zero where there are none.
    """

    kernels: tuple[Linear, ...] = ()
    B: tuple[Array, ...] = ()
    averages: tuple[Array, ...] | None = None  # in place of h̄, where the integral is another functional

    @classmethod
    def joined(cls, parts: Sequence[tuple[Trends, int]], n_sources: int) -> Trends:
        """Return the trends of all models, from those of some and their numbers; B = 0 where a model lacks one."""
        kernels = {kernel.kind: kernel for trends, _ in parts for kernel in trends.kernels}
        B = []
        for kind in kernels:
            found = []
            for trends, n in parts:
                having = (B for kernel, B in zip(trends.kernels, trends.B, strict=True) if kernel.kind == kind)
                found.append(sum(having, start=np.zeros((n, n_sources, n_sources))))
            B.append(np.concatenate(found))
        return cls(tuple(kernels.values()), tuple(B))

    def select(self, models: slice) -> Trends:
        """Return the trends of some of the models."""
        return Trends(self.kernels, tuple(B[models] for B in self.B), self.averages)

    def averaged(self, averages: Sequence[Array]) -> Trends:
        """Return the trends with the averages of h by another functional than the integral over the measure."""
        return Trends(self.kernels, self.B, tuple(averages))

    def cov(self, measure: Measure, s: IntArray, X: Array, s2: IntArray, X2: Array) -> Array | float:
        """Return cov[f_s(X), f_s2(X2)] by trends; sources are one for each point, or one (1,) for all: (K, n, m)."""
        return self._sum(
            lambda kernel, B: between(B, s, s2) * (_values(kernel, measure, X) @ _values(kernel, measure, X2).T)
        )

    def cov_at_same(self, measure: Measure, s: IntArray, s2: IntArray, X: Array) -> Array | float:
        """Return cov[f_s(X_i), f_s2(X_i)] by trends, shape (K, n)."""
        return self._sum(lambda kernel, B: B[:, s, s2] * (_values(kernel, measure, X) ** 2).sum(axis=1))

    def variances_grad_x(self, measure: Measure, s: IntArray, X: Array) -> Array | float:
        """Return ∂ var f_s(X_i)/∂X_i by trends, shape (K, n, D)."""
        return self._sum(
            lambda kernel, B: 2 * B[:, s, s, None] * (_values(kernel, measure, X) * _slopes(kernel, measure, X))
        )

    def contract_grad_x(
        self, measure: Measure, s: IntArray, X: Array, s2: IntArray, X2: Array, c: Array
    ) -> Array | float:
        """Return Σ_j c_ji ∂cov[f_s(X_i), f_s2(X2_j)]/∂X_i by trends for c (K, m, n), shape (K, n, D)."""

        def one(kernel: Linear, B: Array) -> Array:
            sums = (c * between(B, s2, s)).swapaxes(1, 2) @ _values(kernel, measure, X2)
            return np.asarray(sums * _slopes(kernel, measure, X))

        return self._sum(one)

    def integral_cov(self, measure: Measure, target: int, s: IntArray, X: Array) -> Array | float:
        """Return cov[Z_target, f_s(X)] by trends, shape (K, n)."""
        return self._sum(
            lambda kernel, B: B[:, target, s] * (_values(kernel, measure, X) @ self._integrals(kernel, measure))
        )

    def integral_cov_grad_x(self, measure: Measure, target: int, s: IntArray, X: Array) -> Array | float:
        """Return ∂cov[Z_target, f_s(X_i)]/∂X_i by trends, shape (K, n, D)."""
        return self._sum(
            lambda kernel, B: B[:, target, s, None] * (_slopes(kernel, measure, X) * self._integrals(kernel, measure))
        )

    def integral_covariance(self, measure: Measure, target: int, other: int) -> Array | float:
        """Return cov[Z_target, Z_other] by trends, shape (K,)."""
        return self._sum(lambda kernel, B: B[:, target, other] * (self._integrals(kernel, measure) ** 2).sum())

    def main_effect(
        self, measure: Measure, source: int, input: int, t: Array, s: IntArray, X: Array
    ) -> tuple[Array | float, Array | float]:
        """Return what trends add to the covariances of a main effect (K, m, n), and to its variances (K, m)."""

        def cov(kernel: Linear, B: Array) -> Array:
            effects = _main_effects(kernel, measure, input, t)
            return np.asarray(B[:, source, s][:, None] * (effects @ _values(kernel, measure, X).T))

        def variances(kernel: Linear, B: Array) -> Array:
            return np.asarray(B[:, [source], source] * (_main_effects(kernel, measure, input, t) ** 2).sum(axis=1))

        return self._sum(cov), self._sum(variances)

    def main_effect_integral_cov(
        self, measure: Measure, source: int, input: int, t: Array, other: int
    ) -> Array | float:
        """Return the covariances by trends of a main effect with Z_other, shape (K, m)."""

        def one(kernel: Linear, B: Array) -> Array:
            effects = _main_effects(kernel, measure, input, t)
            return np.asarray(B[:, [source], other] * (effects @ self._integrals(kernel, measure)))

        return self._sum(one)

    def _integrals(self, kernel: Linear, measure: Measure) -> Array:
        """Return h̄ of one of the kernels, shape (P,)."""
        return _integrals(kernel, measure) if self.averages is None else self.averages[self.kernels.index(kernel)]

    def _sum(self, of_one: Callable[[Linear, Array], Array]) -> Array | float:
        return sum((of_one(kernel, B) for kernel, B in zip(self.kernels, self.B, strict=True)), start=0.0)


#: of models that have none
NO_TRENDS = Trends()


def _values(kernel: Linear, measure: Measure, X: Array) -> Array:
    """Return h at locations X (n, D), shape (n, P)."""
    return kernel.functions(measure.to_latent(X))


def _main_effects(kernel: Linear, measure: Measure, input: int, t: Array) -> Array:
    """Return ∫ h(x) π(dx_others) at values t (m, 1) of one input, shape (m, P)."""
    h = np.tile(_integrals(kernel, measure), (len(t), 1))
    along = measure.over([input]).to_latent(t)
    h[:, input] = kernel.functions(np.tile(along, (1, measure.dim)))[:, input]
    return h


def _slopes(kernel: Linear, measure: Measure, X: Array) -> Array:
    """Return dh_d/dx_d at locations X, the only derivatives that are not zero: shape (n, D)."""
    slopes = measure.latent_slopes(X)
    return np.asarray((1.0 if slopes is None else slopes) / np.broadcast_to(kernel.scales, X.shape))


def _integrals(kernel: Linear, measure: Measure) -> Array:
    """Return h̄, shape (P,): zero, unless the kernel has another centre than the measure."""
    known = np.isfinite(np.broadcast_to(kernel.scales, measure.dim))
    return kernel.functions(np.where(known, measure.latent.moments[0], 0.0))
