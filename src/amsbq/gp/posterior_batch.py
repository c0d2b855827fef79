"""What observations to come tell of an integral: correlations under K posteriors on the same observations.

Notation as in `conditioning`; c(x) and v(x) are the posterior cov[Z, y_l(x)] and var y_l(x), and ρ² = c² / (v · var Z).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..validation import Array, IntArray
from . import linalg
from .conditioning import NOTHING_LEFT, Border, Conditioned, solve_lower_batch


class _Points(NamedTuple):
    """What is known of points X (n, D), whatever source is observed there."""

    X: Array
    kernels: list[Array]  # κ of the observations and X for each group of terms, (K, Q, N, n)
    means: list[Array]  # μ for each group, (K, Q, n)
    mean_grads: list[Array]  # dμ/dx for each group, (K, Q, n, D), if they are wanted


class _Correlation(NamedTuple):
    """What ρ² and its gradient share."""

    parts: list[Array]  # B κ for each group of terms, (K, Q, N, n)
    A: Array  # C⁻¹ cov[y, f(X)], (K, N, n)
    share: Array  # c / var Z, (K, n)
    v: Array  # (K, n)
    informative: NDArray[np.bool_]  # (K, n), whether more than rounding is left to learn
    rho2: Array  # (K, n)


class PosteriorBatch(Conditioned):
    """K models conditioned on the same observations, and what observations to come tell of integrals."""

    def squared_correlation(self, source: int | IntArray, X: Array, target: int = 0) -> Array:
        """Return ρ² of the target's integral with a noisy observation of a source, or of one per point, at each X_i.

        The shape is (K, n) (Eq. 7).
        """
        return self._correlation(np.atleast_1d(source), self._points(X), target).rho2

    def squared_correlations(
        self, sources: Sequence[int | IntArray], X: Array, given: Sequence[int] = ()
    ) -> list[Array]:
        """Return ρ² of the primary integral with an observation of each of several sources at each X_i: (K, n) each.

        It is ρ² once the sources ``given`` have been observed at X_i too.
        """
        points = self._points(X)
        if not given:
            return [self._correlation(np.atleast_1d(source), points, 0).rho2 for source in sources]
        known = [self._correlation(np.array([source]), points, 0) for source in given]
        return [self._partial(np.atleast_1d(source), points, known, given) for source in sources]

    def _partial(self, source: IntArray, points: _Points, known: Sequence[_Correlation], given: Sequence[int]) -> Array:
        """Return ρ² of the primary integral with a source at each point, once others are known there: (K, n)."""
        rows, s = [*known, self._correlation(source, points, 0)], [*(np.array([other]) for other in given), source]
        P, variance = len(given), np.repeat(self._integral_variance(0)[:, None], len(points.X), axis=1)
        c = np.array([row.share * variance for row in rows])  # (P + 1, K, n)
        pairs = list(zip(s, rows, strict=True))
        V = np.array([[self._cov_at_same(points.X, *one, *other) for one in pairs] for other in pairs])
        for i, row in enumerate(rows):
            V[i, i] = row.v  # with noise
        for i in range(P):  # one after another is eliminated
            slopes = linalg.ratio(V[i + 1 :, i], V[[i] * (P - i), i], np.array([rows[i].informative] * (P - i)))
            variance -= linalg.ratio(c[i] ** 2, V[i, i], rows[i].informative)
            c[i + 1 :] -= slopes * c[i]
            V[i + 1 :, i + 1 :] -= slopes[:, None] * V[i, None, i + 1 :]
        informative = rows[-1].informative & (V[-1, -1] > NOTHING_LEFT * rows[-1].v)
        share = linalg.ratio(c[-1], variance, (variance > 0) & informative)
        return np.minimum(linalg.ratio(share * c[-1], V[-1, -1], informative), 1)

    def _cov_at_same(self, X: Array, s: IntArray, row: _Correlation, s2: IntArray, row2: _Correlation) -> Array:
        """Return the posterior covariance of two sources at each X_i, shape (K, n)."""
        return np.asarray(self.models.cov_at_same(s, s2, X) - np.einsum("kji,kji->ki", row.A, row2.A))

    def squared_correlation_and_grad(self, source: int | IntArray, X: Array, target: int = 0) -> tuple[Array, Array]:
        """Return ρ², shape (K, n), and its gradient dρ²_i/dX_i, shape (K, n, D)."""
        points, source = self._points(X, with_grad=True), np.atleast_1d(source)
        at = self._correlation(source, points, target)
        # dρ² = ρ² (2 dc/c - dv/v), with dc and dv through the covariance with the data: one more solve for both
        per_c, per_v = linalg.ratio(2 * at.share, at.v, at.informative), linalg.ratio(at.rho2, at.v, at.informative)
        by_A = (2 * per_v)[:, None, :] * at.A
        by_A -= self.whitened_integral(target)[:, :, None] * per_c[:, None, :]
        by_cov = self._solve(by_A, transposed=True)
        gradient = np.zeros((*per_c.shape, X.shape[1]))
        for group, part, mean_grad in zip(self.models.groups, at.parts, points.mean_grads, strict=True):
            by_mean = group.B[:, :, target].take(source, axis=-1) * per_c[:, None]
            for j in self._integral_rows:
                by_mean += group.B[:, :, self.data.s[j]].take(source, axis=-1) * by_cov[:, None, j]
            part *= by_cov[:, None]
            gradient += (by_mean[..., None] * mean_grad).sum(axis=1)
            gradient += self.models.contract_kernels_grad_x(group, part, X, self._locations)
        trends, measure = self.models.trends, self.models.measure
        gradient += per_c[..., None] * trends.integral_cov_grad_x(measure, target, source, X)
        located = ~self.data.of_integral
        gradient += trends.contract_grad_x(
            measure, source, X, self.data.s[located], self.data.X[located], by_cov[:, located]
        )
        for j in self._integral_rows:
            of_trends = trends.integral_cov_grad_x(measure, int(self.data.s[j]), source, X)
            gradient += by_cov[:, j, :, None] * of_trends
        gradient -= per_v[..., None] * trends.variances_grad_x(measure, source, X)
        return at.rho2, gradient

    def squared_correlation_joint(self, s: IntArray, X: Array, target: int = 0) -> Array:
        """Return ρ² of the target's integral with a whole set of noisy observations (Eq. 6), shape (K,)."""
        return self._joint(s, X, target)[0]

    def squared_correlation_joint_and_grad(self, s: IntArray, X: Array, target: int = 0) -> tuple[Array, Array]:
        """Return the joint ρ², shape (K,), and its gradient in all locations, shape (K, n, D)."""
        rho2, q, new = self._joint(s, X, target)
        variance, w = new.base._integral_variance(target), new.base.whitened_integral(target)
        # d(cᵀ V⁻¹ c) = 2 aᵀ dc - aᵀ dV a with a = V⁻¹ c, and dc, dV again through the covariance with the data
        a = solve_lower_batch(new.factors, q, transposed=True)
        differences = np.einsum("kji,ki->kj", new.A, a) - w
        to_data = new.base._solve(differences[:, :, None], transposed=True)
        gradient = self.models.integral_cov_grad_x(target, s, X)
        gradient += self.models.contract_grad_x(s, X, self.data.s, self.data.X, np.tile(to_data, (1, 1, len(X))))
        gradient -= self.models.contract_grad_x(s, X, s, X, np.tile(a[:, :, None], (1, 1, len(X))))
        per_variance = linalg.ratio(np.full_like(variance, 2.0), variance, variance > 0)
        return rho2, per_variance[:, None, None] * a[:, :, None] * gradient

    def _points(self, X: Array, with_grad: bool = False) -> _Points:
        means, mean_grads = [], []
        for group, embedding in zip(self.models.groups, self.models.embeddings, strict=True):
            if with_grad:
                mean, mean_grad = embedding.mean_and_grad_x(X)
                mean_grads.append(group.per_model(mean_grad))
            else:
                mean = embedding.mean(X)
            means.append(group.per_model(mean))
        kernels = self.models.kernels(self._locations, X)
        for kernel in kernels:
            kernel[:, :, self._integral_rows] = 0.0
        return _Points(X, kernels, means, mean_grads)

    @cached_property
    def _integral_rows(self) -> IntArray:
        """Numbers of the observations that are those of integrals."""
        return np.flatnonzero(self.data.of_integral)

    @cached_property
    def _locations(self) -> Array:
        """The locations of observations, shape (N, D), with any for those of integrals."""
        return np.where(self.data.of_integral[:, None], self.models.measure.median, self.data.X)

    def _correlation(self, source: IntArray, points: _Points, target: int) -> _Correlation:
        """Return what is known of observations of a source (1,), or of one for each point (n,)."""
        models, s = self.models, self.data.s
        parts: list[Array] = []
        covariance = models.constant[:, s].take(source, axis=-1)
        for kernels in points.kernels:
            part: Array = kernels * self._source_rows[len(parts)].take(source, axis=-1)
            covariance = covariance + part.sum(axis=1)
            parts.append(part)
        covariance = covariance + models.trends.cov(models.measure, s, self._locations, source, points.X)
        covariance = np.broadcast_to(covariance, (len(self), len(s), len(points.X)))
        if len(self._integral_rows):
            covariance = covariance.copy()
            for j in self._integral_rows:
                covariance[:, j] = self._integral_cov(int(s[j]), source, points)
        A = self._solve(covariance)
        c = self._integral_cov(target, source, points) - (self.whitened_integral(target)[:, None, :] @ A)[:, 0]
        total = models.variances(source, points.X) + models.noise.take(source, axis=-1)
        v = total - np.einsum("kji,kji->ki", A, A)
        informative = v > self._smallest_share[:, None] * total
        variance = self._integral_variance(target)[:, None]
        share = linalg.ratio(c, np.broadcast_to(variance, c.shape), np.broadcast_to(variance > 0, c.shape))
        rho2 = linalg.ratio(share * c, v, informative)
        return _Correlation(parts, A, share, v, informative, np.minimum(rho2, 1))

    def _integral_cov(self, target: int, source: IntArray, points: _Points) -> Array:
        """Return cov[Z_target, f_source(X)] of each model, for a source (1,) or one for each point: shape (K, n)."""
        models = self.models
        c = models.mass * models.constant[:, target].take(source, axis=-1)
        for group, mean in zip(models.groups, points.means, strict=True):
            c = c + (group.B[:, :, target].take(source, axis=-1) * mean).sum(axis=1)
        return np.asarray(c + models.trends.integral_cov(models.measure, target, source, points.X))

    @cached_property
    def _source_rows(self) -> list[Array]:
        """B of the sources of the observations and every source, (K, Q, N, L) for each group of terms."""
        return [group.B[:, :, self.data.s] for group in self.models.groups]

    def _joint(self, s: IntArray, X: Array, target: int) -> tuple[Array, Array, Border]:
        """Return the joint ρ² (K,), q = C_new⁻¹ c (K, n), and the factors of the posterior covariance of the set."""
        new = self._border(s, X, np.zeros(len(X)))
        w = new.base.whitened_integral(target)
        c = self.models.integral_cov(target, s, X) - np.einsum("kj,kji->ki", w, new.A)
        q = np.where(new.informative, solve_lower_batch(new.factors, c), 0.0)
        variance = new.base._integral_variance(target)
        return np.minimum(linalg.ratio(np.einsum("ki,ki->k", q, q), variance, variance > 0), 1.0), q, new
