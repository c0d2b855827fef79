"""What observations to come tell of an integral: correlations under K posteriors on the same observations.

Notation as in `conditioning`; c(x) and v(x) are the posterior cov[Z, y_l(x)] and var y_l(x), and ρ² = c² / (v · var Z).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..validation import Array, IntArray
from . import linalg
from .conditioning import NOTHING_LEFT, Border, Conditioned, solve_lower_batch
from .data import Sites
from .gram import LARGEST_ARRAY


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

    def expecting_noise(self) -> Self:
        """Return the same posteriors, by which observations to come are as noisy as those of their source are.

        That is the median of the known variances: it becomes noise of the source, and the rest stays with observations.
        """
        data = self.data
        of_values = np.isfinite(data.noise_var) & ~(data.of_integral | data.sites.differentiated)
        known = [data.noise_var[of_values & (data.s == source)] for source in range(self.models.n_sources)]
        typical = np.array([np.median(variances) if len(variances) else 0.0 for variances in known])
        if not typical.any():
            return self
        of_sources = replace(self.models, noise=np.tile(typical, (len(self), 1)))
        rest = data.noise_var - of_sources.observation_noise(data.sites, np.zeros(len(data.y)))[0]
        models = replace(self.models, noise=self.models.noise + typical)
        out = type(self)(models, replace(data, noise_var=rest), self.factors, self.beta, self.jitter)
        out._whitened = dict(self._whitened)
        return out

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

    def squared_correlation_blocks(self, sources: IntArray, by: IntArray, X: Array) -> Array:
        """Return ρ² of the primary integral with m noisy observations together, at each X_i: shape (K, n).

        They are the values of sources (m,), or their derivatives by an input, as in `Sites`.
        """
        K, n, m, models = len(self), len(X), len(by), self.models
        new, N = Sites.blocks(sources, by, X), len(self.data.y)
        step = max(LARGEST_ARRAY // max(K * m * max(N, m), 1), 1)
        if n > step:
            parts = [self.squared_correlation_blocks(sources, by, X[i : i + step]) for i in range(0, n, step)]
            return np.concatenate(parts, axis=1)
        A = self._solve(models.cov(self.data.sites, new))
        c = models.integral_cov(0, new) - (self.whitened_integral(0)[:, None, :] @ A)[:, 0]
        first, second = (
            Sites.blocks(sources[i], by[i], X) for i in (np.repeat(np.arange(m), m), np.tile(np.arange(m), m))
        )
        A = A.reshape(K, N, n, m)
        V = models.cov_at_same(first, second).reshape(K, n, m, m) - np.einsum("kjia,kjib->kiab", A, A)
        noise = models.observation_noise(new, np.zeros(len(new))).reshape(K, n, m)
        np.einsum("kiaa->kia", V)[...] += noise
        total = (models.variances(new) + noise.reshape(K, -1)).reshape(K, n, m)
        # in units of their prior deviations, with as much noise as rounding is: what is not informative counts nothing
        scales = np.sqrt(np.where(total > 0, total, 1.0))
        V /= scales[:, :, :, None] * scales[:, :, None, :]
        np.einsum("kiaa->kia", V)[...] += self._smallest_share[:, None, None]
        c = c.reshape(K, n, m) / scales
        rho2 = np.einsum("kia,kia->ki", c, np.linalg.solve(V, c[..., None])[..., 0])
        variance = np.repeat(self._integral_variance(0)[:, None], n, axis=1)
        return np.clip(linalg.ratio(rho2, variance, variance > 0), 0.0, 1.0)

    def _cov_at_same(self, X: Array, s: IntArray, row: _Correlation, s2: IntArray, row2: _Correlation) -> Array:
        """Return the posterior covariance of two sources at each X_i, shape (K, n)."""
        prior = self.models.cov_at_same(Sites.values(s, X), Sites.values(s2, X))
        return np.asarray(prior - np.einsum("kji,kji->ki", row.A, row2.A))

    def squared_correlation_and_grad(self, source: int | IntArray, X: Array, target: int = 0) -> tuple[Array, Array]:
        """Return ρ², shape (K, n), and its gradient dρ²_i/dX_i, shape (K, n, D)."""
        points, source = self._points(X, with_grad=True), np.atleast_1d(source)
        at = self._correlation(source, points, target)
        # dρ² = ρ² (2 dc/c - dv/v), with dc and dv through the covariance with the data: one more solve for both
        per_c, per_v = linalg.ratio(2 * at.share, at.v, at.informative), linalg.ratio(at.rho2, at.v, at.informative)
        by_A = (2 * per_v)[:, None, :] * at.A
        by_A -= self.whitened_integral(target)[:, :, None] * per_c[:, None, :]
        by_cov = self._solve(by_A, transposed=True)
        located = ~self.data.of_integral
        sites, by_located = self.data.sites.rows(located), by_cov[:, located]
        gradient = np.zeros((*per_c.shape, X.shape[1])) + self.models.contract_derivatives_grad_x(
            source, X, sites, by_located
        )
        for group, part, mean_grad in zip(self.models.groups, at.parts, points.mean_grads, strict=True):
            by_mean = group.B[:, :, target].take(source, axis=-1) * per_c[:, None]
            for j in self._integral_rows:
                by_mean += group.B[:, :, self.data.s[j]].take(source, axis=-1) * by_cov[:, None, j]
            part *= by_cov[:, None]
            gradient += (by_mean[..., None] * mean_grad).sum(axis=1)
            gradient += self.models.contract_kernels_grad_x(group, part, X, self._located.X)
        trends, measure = self.models.trends, self.models.measure
        gradient += per_c[..., None] * trends.integral_cov_grad_x(measure, target, source, X)
        gradient += trends.contract_grad_x(measure, source, X, sites, by_located)
        for j in self._integral_rows:
            of_trends = trends.integral_cov_grad_x(measure, int(self.data.s[j]), source, X)
            gradient += by_cov[:, j, :, None] * of_trends
        gradient -= per_v[..., None] * trends.variances_grad_x(measure, source, X)
        return at.rho2, gradient

    def squared_correlation_joint(self, sites: Sites, target: int = 0) -> Array:
        """Return ρ² of the target's integral with a whole set of noisy observations (Eq. 6), shape (K,)."""
        return self._joint(sites, target)[0]

    def squared_correlation_joint_and_grad(self, s: IntArray, X: Array, target: int = 0) -> tuple[Array, Array]:
        """Return the joint ρ², shape (K,), and its gradient in all locations, shape (K, n, D)."""
        values = Sites.values(s, X)
        rho2, q, new = self._joint(values, target)
        variance, w = new.base._integral_variance(target), new.base.whitened_integral(target)
        # d(cᵀ V⁻¹ c) = 2 aᵀ dc - aᵀ dV a with a = V⁻¹ c, and dc, dV again through the covariance with the data
        a = solve_lower_batch(new.factors, q, transposed=True)
        differences = np.einsum("kji,ki->kj", new.A, a) - w
        to_data = new.base._solve(differences[:, :, None], transposed=True)
        gradient = self.models.integral_cov_grad_x(target, s, X)
        gradient += self.models.contract_grad_x(s, X, self.data.sites, np.tile(to_data, (1, 1, len(X))))
        gradient -= self.models.contract_grad_x(s, X, values, np.tile(a[:, :, None], (1, 1, len(X))))
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
        kernels = self.models.kernels(self._located, Sites.values(0, X))
        for kernel in kernels:
            kernel[:, :, self._integral_rows] = 0.0
        return _Points(X, kernels, means, mean_grads)

    @cached_property
    def _integral_rows(self) -> IntArray:
        """Numbers of the observations that are those of integrals."""
        return np.flatnonzero(self.data.of_integral)

    @cached_property
    def _located(self) -> Sites:
        """What was observed, with any location for integrals."""
        X = np.where(self.data.of_integral[:, None], self.models.measure.median, self.data.X)
        return replace(self.data.sites, X=X)

    def _correlation(self, source: IntArray, points: _Points, target: int) -> _Correlation:
        """Return what is known of observations of a source (1,), or of one for each point (n,)."""
        models, s, values = self.models, self.data.s, Sites.values(source, points.X)
        parts: list[Array] = []
        covariance = models.constant_cov(self.data.sites, values)
        for kernels in points.kernels:
            part: Array = kernels * self._source_rows[len(parts)].take(source, axis=-1)
            covariance = covariance + part.sum(axis=1)
            parts.append(part)
        covariance = covariance + models.trends.cov(models.measure, self._located, values)
        covariance = np.broadcast_to(covariance, (len(self), len(s), len(points.X)))
        if len(self._integral_rows):
            covariance = covariance.copy()
            for j in self._integral_rows:
                covariance[:, j] = self._integral_cov(int(s[j]), source, points)
        A = self._solve(covariance)
        c = self._integral_cov(target, source, points) - (self.whitened_integral(target)[:, None, :] @ A)[:, 0]
        total = models.variances(values) + models.noise.take(source, axis=-1)
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
        return np.asarray(c + models.trends.integral_cov(models.measure, target, Sites.values(source, points.X)))

    @cached_property
    def _source_rows(self) -> list[Array]:
        """B of the sources of the observations and every source, (K, Q, N, L) for each group of terms."""
        return [group.B[:, :, self.data.s] for group in self.models.groups]

    def _joint(self, sites: Sites, target: int) -> tuple[Array, Array, Border]:
        """Return the joint ρ² (K,), q = C_new⁻¹ c (K, n), and the factors of the posterior covariance of the set."""
        new = self._border(sites, np.zeros(len(sites)))
        w = new.base.whitened_integral(target)
        c = self.models.integral_cov(target, sites) - np.einsum("kj,kji->ki", w, new.A)
        q = np.where(new.informative, solve_lower_batch(new.factors, c), 0.0)
        variance = new.base._integral_variance(target)
        return np.minimum(linalg.ratio(np.einsum("ki,ki->k", q, q), variance, variance > 0), 1.0), q, new
