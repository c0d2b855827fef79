"""K models conditioned on the same observations: predictions, integrals, and their correlations with new observations.

Notation, the paper's where it has one (equation numbers are the paper's):

    K models, L sources, D inputs, N observations (s_n, x_n, y_n)   s (N,), X (N, D), y (N,); of values, derivatives
                                                                    and integrals, as `data` has them
    G = K_ss(X, X) + Σ_s = C Cᵀ                                     Gram matrix and its Cholesky factor, (N, N) each
    r = y - m_s, β = C⁻¹ r                                          residuals, and whitened: (K, N)
    z = ⟨k_{1s}(·, X)⟩, w = C⁻¹ z                                   cov[Z, f_s(X)], and whitened: (K, N)
    Z = ∫ f_1 dπ                                                    the integral; "target" picks another source's
    c(x), v(x)                                                      posterior cov[Z, y_l(x)] and var y_l(x)
    var Z = ⟨⟨k_11⟩⟩ - wᵀ w                                         posterior variance of the integral
    ρ² = c² / (v · var Z)                                           squared correlation of Z with a new observation

Everything is an inner product of whitened vectors, which are cached: one more point costs one triangular solve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..common.validation import Array, IntArray
from . import linalg
from .coregionalisation import ModelBatch
from .data import Data, Sites
from .gram import LARGEST_ARRAY, batches_of_models, gram_matrices

#: An observation whose posterior variance is no more than this share of its prior variance only reflects rounding.
NOTHING_LEFT = 1e-10
#: Maximum number of observations for which the factors of several models are inverted: more work once, and less for
#: every prediction at a few points (measured by benchmarks/overhead.py).
MOST_INVERTED = 400


class _Points(NamedTuple):
    """Quantities at points X (n, D) that do not depend on the source observed there."""

    X: Array
    kernels: list[Array]  # κ of the observations and X for each group of terms, (K, Q, N, n)
    means: list[Array]  # μ for each group, (K, Q, n)
    mean_grads: list[Array]  # dμ/dx for each group, (K, Q, n, D), or empty if not needed


class _Correlation(NamedTuple):
    """Intermediate results shared by ρ² and its gradient."""

    parts: list[Array]  # B κ for each group of terms, (K, Q, N, n)
    A: Array  # C⁻¹ cov[y, f(X)], (K, N, n)
    share: Array  # c / var Z, (K, n)
    v: Array  # (K, n)
    informative: NDArray[np.bool_]  # (K, n), whether more than rounding is left to learn
    rho2: Array  # (K, n)


class Border(NamedTuple):
    """New observations in addition to the old ones."""

    base: PosteriorBatch  # the posteriors given the old ones, with as much jitter as the new ones need
    A: Array  # C⁻¹ cov[y, f(X_new)], (K, N, n)
    factors: list[Array]  # Cholesky factors of the posterior covariance of the new observations, (n, n) each
    informative: NDArray[np.bool_]  # (K, n), whether more than rounding is left to learn, given those before it


class PosteriorBatch:
    """K models conditioned on the same observations; returned by `condition` and by `extend`.

    Attributes
    ----------
    models : ModelBatch
    data : Data
        The observations, with known noise variances on top of the noise of their sources.
    jitter : (K,) array
        The share of their variance that was added to observations to keep the Gram matrix positive definite.
    """

    def __init__(self, models: ModelBatch, data: Data, factors: Sequence[Array], beta: Array, jitter: Array) -> None:
        self.models, self.data, self.factors, self.beta, self.jitter = models, data, list(factors), beta, jitter
        self._whitened: dict[int, Array] = {}  # target -> w
        self._denominators: dict[int, Array] = {}  # target -> var Z

    def __len__(self) -> int:
        return len(self.models)

    @classmethod
    def condition(cls, models: ModelBatch, data: Data, jitter: Array | float = 0.0) -> Self:
        """Condition models on observations, with at least the given jitter."""
        least = np.broadcast_to(jitter, len(models))
        factors, used = [], np.empty(len(models))
        for part in batches_of_models(len(models), len(data.y)):
            some = models.select(part)
            noise = some.observation_noise(data.sites, data.noise_var)
            G, diagonal = gram_matrices(some, data.sites), some.variances(data.sites) + noise
            np.einsum("kii->ki", G)[...] += noise
            shares = (noise / diagonal).min(axis=1, initial=np.inf) if diagonal.all() else np.zeros(len(some))
            for k, A in enumerate(G, part.start):
                row = k - part.start
                C, used[k] = linalg.factorise(A, diagonal[row], float(least[k]), float(shares[row]))
                factors.append(C)
        return cls(models, data, factors, solve_lower_batch(factors, data.y - models.prior_mean(data.sites)), used)

    def integral(self, target: int | None = None) -> tuple[Array, Array]:
        """Return the means and variances of the integral of a source (Eq. 3), shape (K,) each."""
        target = self._wanted(target)
        w = self.whitened_integral(target)
        prior = self.models.integral_covariance(target, target)
        variance = np.maximum(prior - np.einsum("kn,kn->k", w, w), linalg.variance_floor(0) * prior)
        return self.models.mass * self.models.mean[:, target] + np.einsum("kn,kn->k", w, self.beta), variance

    def predict(self, source: int, X: Array) -> tuple[Array, Array]:
        """Return the means and variances of f_source at X, without noise (Eq. 2), shape (K, n) each."""
        found = []
        step = max(LARGEST_ARRAY // max(len(self.data.y) * self.models.measure.dim, 1), 1)
        for start in range(0, max(len(X), 1), step):
            values = Sites.values(source, X[start : start + step])
            A = self._solve(self.models.cov(self.data.sites, values))
            found.append(self._moments(source, A, self.models.variances(values)))
        means, variances = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
        return means, variances

    def predict_joint(self, s: IntArray, X: Array) -> tuple[Array, Array]:
        """Return the means (K, n) and covariances (K, n, n) of sources s (n,) at X (n, D), without noise."""
        values = Sites.values(s, X)
        A = self._solve(self.models.cov(self.data.sites, values))
        means = self.models.mean[:, s] + np.einsum("kj,kji->ki", self.beta, A)
        return means, self.models.cov(values, values) - A.swapaxes(1, 2) @ A

    def coefficients(self, values: Array) -> Array:
        """Return G⁻¹ (values - m_s) for J sets of values of the observations, (K, N, J): the same shape.

        With these coefficients a, Σ_n k(x, x_n) a_n is the posterior mean minus the prior mean, given those values.
        """
        residuals = values - self.models.prior_mean(self.data.sites)[:, :, None]
        return self._solve(self._solve(residuals), transposed=True)

    def main_effect(self, source: int, inputs: Sequence[int], t: Array) -> tuple[Array, Array]:
        """Return the means and variances of ∫ f_source(x) π(dx_others) at t (m, k) of k inputs, shape (K, m) each."""
        at = ~self.data.of_integral
        cov = np.empty((len(self), len(t), len(at)))
        cov[:, :, at] = self.models.main_effect_cov(source, inputs, t, self.data.sites.rows(at))
        for j in np.flatnonzero(~at):
            cov[:, :, j] = self.models.main_effect_integral_cov(source, inputs, t, int(self.data.s[j]))
        prior = self.models.main_effect_variance(source, inputs, t)
        return self._moments(source, self._solve(cov.swapaxes(1, 2)), prior)

    def leave_one_out(self) -> tuple[Array, Array]:
        """Return the means and variances of each observation, including noise, given all others: shape (K, N) each.

        With α = G⁻¹ r, the residual of observation i is α_i / G⁻¹_ii, and its variance is 1 / G⁻¹_ii.
        """
        means, variances = np.empty_like(self.beta), np.empty_like(self.beta)
        for k, (C, beta) in enumerate(zip(self.factors, self.beta, strict=True)):
            rows = linalg.inverse_lower(C)
            variances[k] = 1 / np.einsum("ji,ji->i", rows, rows)
            means[k] = self.data.y - variances[k] * linalg.solve_lower_transposed(C, beta)
        return means, variances

    def log_evidence(self) -> Array:
        """Return the log probability density of the observations, shape (K,)."""
        diagonals = np.array([np.diagonal(C) for C in self.factors]).reshape(self.beta.shape)
        squares = np.einsum("kn,kn->k", self.beta, self.beta)
        return linalg.log_density(squares, np.log(diagonals).sum(axis=1), len(self.data.y))

    def extend(self, new: Data) -> Self:
        """Return the posteriors given additional observations, in O(N²) for each; these are unchanged."""
        border = self._border(new.sites, new.noise_var)
        base = border.base
        base.whitened_integral(self.models.target)  # so that the result does not depend on earlier calls

        def grown(whitened: Array, values: Array) -> Array:
            rows = values - np.einsum("kj,kji->ki", whitened, border.A)
            return np.concatenate([whitened, solve_lower_batch(border.factors, rows)], axis=1)

        factors = [linalg.grow(C, *rest) for C, *rest in zip(base.factors, border.A, border.factors, strict=True)]
        beta = grown(base.beta, new.y - self.models.prior_mean(new.sites))
        out = type(self)(self.models, self.data.followed_by(new), factors, beta, base.jitter)
        for target, w in list(base._whitened.items()):  # another thread may add to it
            out._whitened[target] = grown(w, self.models.integral_cov(target, new.sites))
        return out

    def select(self, models: slice | IntArray) -> Self:
        """Return the posteriors under the given models."""
        factors = [self.factors[k] for k in np.arange(len(self))[models]]
        out = type(self)(self.models.select(models), self.data, factors, self.beta[models], self.jitter[models])
        out._whitened = {target: w[models] for target, w in self._whitened.items()}
        return out

    def _wanted(self, target: int | None) -> int:
        """Return the source whose integral is the target, by default that of the models."""
        return self.models.target if target is None else target

    def integral_covariance(self, source: int, other: int) -> Array:
        """Return the posterior covariance of the integrals of two sources by each model, shape (K,)."""
        w, w2 = self.whitened_integral(source), self.whitened_integral(other)
        return np.asarray(self.models.integral_covariance(source, other) - np.einsum("kn,kn->k", w, w2))

    def whitened_integral(self, target: int) -> Array:
        """Return w = C⁻¹ cov[Z_target, y], shape (K, N)."""
        if target not in self._whitened:
            z = self.models.integral_cov(target, self.data.sites)
            self._whitened[target] = solve_lower_batch(self.factors, z)
        return self._whitened[target]

    def _integral_variance(self, target: int) -> Array:
        """Return var Z as a denominator, shape (K,), bounded below by the rounding error of its computation."""
        if target not in self._denominators:
            floor = linalg.variance_floor(len(self.data.y)) * self.models.integral_covariance(target, target)
            self._denominators[target] = np.maximum(self.integral(target)[1], floor)
        return self._denominators[target]

    @cached_property
    def _inverses(self) -> Array | None:
        """The inverses of the factors, shape (K, N, N), if computing them saves time; otherwise None."""
        if len(self) == 1 or len(self.data.y) > MOST_INVERTED:
            return None
        return np.array([linalg.inverse_lower(C) for C in self.factors])

    def _solve(self, b: Array, transposed: bool = False) -> Array:
        """Return C⁻¹ b or C⁻ᵀ b of each model for b (K, N, n), shape (K, N, n)."""
        if self._inverses is not None:
            return np.asarray((self._inverses.swapaxes(1, 2) if transposed else self._inverses) @ b)
        return solve_lower_batch(self.factors, b, transposed)

    def _moments(self, source: int, A: Array, prior: Array) -> tuple[Array, Array]:
        """Return posterior means and variances (K, n) from prior variances (K, n) and A (K, N, n) = C⁻¹ cov[y, ·]."""
        mean = self.models.mean[:, source, None] + np.einsum("kj,kji->ki", self.beta, A)
        left = prior - np.einsum("kji,kji->ki", A, A)
        return mean, np.maximum(left, linalg.variance_floor(0) * prior)

    @property
    def _smallest_share(self) -> Array:
        """Smallest posterior share of an observation's variance that is more than rounding, shape (K,)."""
        return max(linalg.variance_floor(len(self.data.y)), NOTHING_LEFT) + 2 * self.jitter

    def _border(self, sites: Sites, noise_var: Array) -> Border:
        """Return the border that new observations add to the factors; ``noise_var`` adds to their sources' noise."""
        models, data = self.models, self.data
        noise = models.observation_noise(sites, noise_var)
        V = models.cov(sites, sites) + noise[:, :, None] * np.eye(len(sites))
        old = models.variances(data.sites) + models.observation_noise(data.sites, data.noise_var)
        new = models.variances(sites) + noise
        cov, base = models.cov(data.sites, sites), self
        while True:
            A = solve_lower_batch(base.factors, cov)
            found = [linalg.border(*rows) for rows in zip(base.factors, A, V, old, new, base.jitter, strict=True)]
            factors = [C for C in found if C is not None]
            if len(factors) == len(found):
                left = np.array([np.diagonal(C) for C in factors]) ** 2 - base.jitter[:, None] * new
                return Border(base, A, factors, left > base._smallest_share[:, None] * new)
            n = len(data.y) + len(sites)
            jitter = [linalg.next_jitter(j, n) if C is None else j for C, j in zip(found, base.jitter, strict=True)]
            base = type(self).condition(models, data, np.array(jitter))

    def expecting_noise(self, guess: Callable[[Array], Array] = np.nan_to_num) -> Self:
        """Return the posteriors with future observations assumed to be as noisy as existing ones of their source.

        The median of the known variances becomes noise of the source, and the rest remains with the observations. For
        sources without observations, the noise comes from ``guess``, a function of the medians (L,) of all sources,
        NaN for these.
        """
        data = self.data
        of_values = np.isfinite(data.noise_var) & ~(data.of_integral | data.sites.differentiated)
        known = [data.noise_var[of_values & (data.s == source)] for source in range(self.models.n_sources)]
        typical = guess(np.array([np.median(variances) if len(variances) else np.nan for variances in known]))
        if not typical.any():
            return self
        of_sources = replace(self.models, noise=np.tile(typical, (len(self), 1)))
        rest = data.noise_var - of_sources.observation_noise(data.sites, np.zeros(len(data.y)))[0]
        models = replace(self.models, noise=self.models.noise + typical)
        out = type(self)(models, replace(data, noise_var=rest), self.factors, self.beta, self.jitter)
        out._whitened = dict(self._whitened)
        return out

    def squared_correlation(self, source: int | IntArray, X: Array, target: int | None = None) -> Array:
        """Return ρ² of the target's integral with a noisy observation at each X_i: shape (K, n) (Eq. 7).

        The observations are of one source, or of one source per point (n,).
        """
        return self._correlation(np.atleast_1d(source), self._points(X), self._wanted(target)).rho2

    def squared_correlations(
        self, sources: Sequence[int | IntArray], X: Array, given: Sequence[int] = ()
    ) -> list[Array]:
        """Return ρ² between the primary integral and an observation of each given source at each X_i: (K, n) each.

        It is conditional on observations of the sources ``given`` at X_i.
        """
        points = self._points(X)
        if not given:
            return [self._correlation(np.atleast_1d(source), points, self.models.target).rho2 for source in sources]
        known = [self._correlation(np.array([source]), points, self.models.target) for source in given]
        return [self._partial(np.atleast_1d(source), points, known, given) for source in sources]

    def _partial(self, source: IntArray, points: _Points, known: Sequence[_Correlation], given: Sequence[int]) -> Array:
        """Return ρ² of the primary integral with a source at each point, conditional on others there: (K, n)."""
        target = self.models.target
        rows, s = [*known, self._correlation(source, points, target)], [*(np.array([other]) for other in given), source]
        P, variance = len(given), np.repeat(self._integral_variance(target)[:, None], len(points.X), axis=1)
        c = np.array([row.share * variance for row in rows])  # (P + 1, K, n)
        pairs = list(zip(s, rows, strict=True))
        V = np.array([[self._cov_at_same(points.X, *one, *other) for one in pairs] for other in pairs])
        for i, row in enumerate(rows):
            V[i, i] = row.v  # with noise
        for i in range(P):  # eliminate one after another
            slopes = linalg.ratio(V[i + 1 :, i], V[[i] * (P - i), i], np.array([rows[i].informative] * (P - i)))
            variance -= linalg.ratio(c[i] ** 2, V[i, i], rows[i].informative)
            c[i + 1 :] -= slopes * c[i]
            V[i + 1 :, i + 1 :] -= slopes[:, None] * V[i, None, i + 1 :]
        informative = rows[-1].informative & (V[-1, -1] > NOTHING_LEFT * rows[-1].v)
        share = linalg.ratio(c[-1], variance, (variance > 0) & informative)
        return np.minimum(linalg.ratio(share * c[-1], V[-1, -1], informative), 1)

    def squared_correlation_blocks(self, sources: IntArray, by: IntArray, X: Array) -> Array:
        """Return the joint ρ² of the primary integral with m noisy observations at each X_i: shape (K, n).

        The observations are values of sources (m,), or their derivatives with respect to an input, as in `Sites`.
        """
        K, n, m, models = len(self), len(X), len(by), self.models
        new, N = Sites.blocks(sources, by, X), len(self.data.y)
        step = max(LARGEST_ARRAY // max(K * m * max(N, m), 1), 1)
        if n > step:
            parts = [self.squared_correlation_blocks(sources, by, X[i : i + step]) for i in range(0, n, step)]
            return np.concatenate(parts, axis=1)
        A = self._solve(models.cov(self.data.sites, new))
        w, target = self.whitened_integral(models.target), models.target
        c = models.integral_cov(target, new) - (w[:, None, :] @ A)[:, 0]
        first, second = (
            Sites.blocks(sources[i], by[i], X) for i in (np.repeat(np.arange(m), m), np.tile(np.arange(m), m))
        )
        A = A.reshape(K, N, n, m)
        V = models.cov_at_same(first, second).reshape(K, n, m, m) - np.einsum("kjia,kjib->kiab", A, A)
        noise = models.observation_noise(new, np.zeros(len(new))).reshape(K, n, m)
        np.einsum("kiaa->kia", V)[...] += noise
        total = (models.variances(new) + noise.reshape(K, -1)).reshape(K, n, m)
        # in units of prior standard deviations, plus noise of the size of rounding: uninformative ones do not count
        scales = np.sqrt(np.where(total > 0, total, 1.0))
        V /= scales[:, :, :, None] * scales[:, :, None, :]
        np.einsum("kiaa->kia", V)[...] += self._smallest_share[:, None, None]
        c = c.reshape(K, n, m) / scales
        rho2 = np.einsum("kia,kia->ki", c, np.linalg.solve(V, c[..., None])[..., 0])
        variance = np.repeat(self._integral_variance(target)[:, None], n, axis=1)
        return np.clip(linalg.ratio(rho2, variance, variance > 0), 0.0, 1.0)

    def _cov_at_same(self, X: Array, s: IntArray, row: _Correlation, s2: IntArray, row2: _Correlation) -> Array:
        """Return the posterior covariance of two sources at each X_i, shape (K, n)."""
        prior = self.models.cov_at_same(Sites.values(s, X), Sites.values(s2, X))
        return np.asarray(prior - np.einsum("kji,kji->ki", row.A, row2.A))

    def squared_correlation_and_grad(
        self, source: int | IntArray, X: Array, target: int | None = None
    ) -> tuple[Array, Array]:
        """Return ρ², shape (K, n), and its gradient dρ²_i/dX_i, shape (K, n, D)."""
        points, source, target = self._points(X, with_grad=True), np.atleast_1d(source), self._wanted(target)
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

    def squared_correlation_joint(self, sites: Sites, target: int | None = None) -> Array:
        """Return the joint ρ² of the target's integral with a set of noisy observations (Eq. 6), shape (K,)."""
        return self._joint(sites, self._wanted(target))[0]

    def squared_correlation_joint_and_grad(
        self, s: IntArray, X: Array, target: int | None = None
    ) -> tuple[Array, Array]:
        """Return the joint ρ², shape (K,), and its gradient in all locations, shape (K, n, D)."""
        values, target = Sites.values(s, X), self._wanted(target)
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
        """Row numbers of the observations of integrals."""
        return np.flatnonzero(self.data.of_integral)

    @cached_property
    def _located(self) -> Sites:
        """The sites of the observations, with an arbitrary location for integrals."""
        X = np.where(self.data.of_integral[:, None], self.models.measure.median, self.data.X)
        return replace(self.data.sites, X=X)

    def _correlation(self, source: IntArray, points: _Points, target: int) -> _Correlation:
        """Return the correlation of Z with an observation at each point, of one source (1,) or one per point (n,)."""
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
        """Return cov[Z_target, f_source(X)] under each model, of one source (1,) or one per point (n,): (K, n)."""
        models = self.models
        c = models.mass * models.constant[:, target].take(source, axis=-1)
        for group, mean in zip(models.groups, points.means, strict=True):
            c = c + (group.B[:, :, target].take(source, axis=-1) * mean).sum(axis=1)
        return np.asarray(c + models.trends.integral_cov(models.measure, target, Sites.values(source, points.X)))

    @cached_property
    def _source_rows(self) -> list[Array]:
        """B between the sources of the observations and all sources, (K, Q, N, L) for each group of terms."""
        return [group.B[:, :, self.data.s] for group in self.models.groups]

    def _joint(self, sites: Sites, target: int) -> tuple[Array, Array, Border]:
        """Return the joint ρ² (K,), q = C_new⁻¹ c (K, n), and the factors of the posterior covariance of the set."""
        new = self._border(sites, np.zeros(len(sites)))
        w = new.base.whitened_integral(target)
        c = self.models.integral_cov(target, sites) - np.einsum("kj,kji->ki", w, new.A)
        q = np.where(new.informative, solve_lower_batch(new.factors, c), 0.0)
        variance = new.base._integral_variance(target)
        return np.minimum(linalg.ratio(np.einsum("ki,ki->k", q, q), variance, variance > 0), 1.0), q, new


def solve_lower_batch(factors: Sequence[Array], b: Array, transposed: bool = False) -> Array:
    """Return C⁻¹ b or C⁻ᵀ b for each of K factors and b (K, n) or (K, n, m), in the shape of b."""
    solve = linalg.solve_lower_transposed if transposed else linalg.solve_lower
    out = np.empty((*b.shape[:1], *b.shape[:0:-1])).swapaxes(1, -1)  # LAPACK's order, which needs no transposed copies
    for C, rows, solved in zip(factors, b, out, strict=True):
        solved[...] = solve(C, rows)
    return out
