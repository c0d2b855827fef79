"""K models conditioned on the same observations: means, variances, predictions; exact, for given hyperparameters.

Notation, the paper's where it has one (equation numbers are the paper's):

    K models, L sources, D inputs, N observations (s_n, x_n, y_n)   s (N,), X (N, D), y (N,); of values, derivatives by
                                                                    an input, and integrals, as `data` has them
    G = K_ss(X, X) + Σ_s = C Cᵀ                                     Gram matrix and its Cholesky factor, (N, N) each
    r = y - m_s, β = C⁻¹ r                                          residuals, and whitened: (K, N)
    z = ⟨k_{1s}(·, X)⟩, w = C⁻¹ z                                   cov[Z, f_s(X)], and whitened: (K, N)
    Z = ∫ f_1 dπ                                                    the integral; "target" picks another source's
    c(x), v(x)                                                      posterior cov[Z, y_l(x)] and var y_l(x)
    var Z = ⟨⟨k_11⟩⟩ - wᵀ w                                         posterior variance of the integral
    ρ² = c² / (v · var Z)                                           squared correlation of Z with a new observation

Everything is an inner product of whitened vectors, which are kept: one more point costs one triangular solve.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..validation import Array, IntArray
from . import linalg
from .coregionalisation import ModelBatch
from .data import Data, Sites
from .gram import LARGEST_ARRAY, batches_of_models, gram_matrices

#: An observation of which no more than this share of its variance is unknown tells of rounding errors, not of Z.
NOTHING_LEFT = 1e-10
#: Observations up to which the factors of several models are inverted: more work once, and less for every look at a
#: few points (measured by benchmarks/overhead.py).
MOST_INVERTED = 400


class Border(NamedTuple):
    """New observations beside the old ones."""

    base: Conditioned  # the posteriors that the rest goes with, with as much jitter as the new observations need
    A: Array  # C⁻¹ cov[y, f(X_new)], (K, N, n)
    factors: list[Array]  # of the posterior covariance of the new observations, (n, n) each
    informative: NDArray[np.bool_]  # (K, n), whether more than rounding is left to learn, after those before it


class Conditioned:
    """K models conditioned on the same observations. Made by `condition` and by `extend`.

    Attributes
    ----------
    models : ModelBatch
    data : Data
        With the known noise variance of each observation, on top of the noise of its source.
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

    def integral(self, target: int = 0) -> tuple[Array, Array]:
        """Return the means and variances of the integral of a source (Eq. 3), shape (K,) each."""
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
        return means, self.models.cov(values, values) - np.einsum("kji,kjl->kil", A, A)

    def coefficients(self, values: Array) -> Array:
        """Return G⁻¹ (values - m_s) for J sets of values of the observations, (K, N, J): the same shape.

        With them, Σ_n k(x, x_n) a_n is the posterior mean without its prior mean, if the observations had those values.
        """
        residuals = values - self.models.prior_mean(self.data.sites)[:, :, None]
        return self._solve(self._solve(residuals), transposed=True)

    def main_effect(self, source: int, input: int, t: Array) -> tuple[Array, Array]:
        """Return the means and variances of ∫ f_source(x) π(dx_others) at values t (m, 1), shape (K, m) each."""
        at = ~self.data.of_integral
        cov = np.empty((len(self), len(t), len(at)))
        cov[:, :, at], prior = self.models.main_effect_cov(source, input, t, self.data.sites.rows(at))
        for j in np.flatnonzero(~at):
            cov[:, :, j] = self.models.main_effect_integral_cov(source, input, t, int(self.data.s[j]))
        return self._moments(source, self._solve(cov.swapaxes(1, 2)), prior)

    def leave_one_out(self) -> tuple[Array, Array]:
        """Return the means and variances of each observation, noise included, given all others: shape (K, N) each.

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
        """Return the posteriors on more observations, in O(N²) for each; these stay as they are."""
        border = self._border(new.sites, new.noise_var)
        base = border.base
        base.whitened_integral(0)  # so that the result does not depend on what was asked of these posteriors before

        def grown(whitened: Array, values: Array) -> Array:
            rows = values - np.einsum("kj,kji->ki", whitened, border.A)
            return np.concatenate([whitened, solve_lower_batch(border.factors, rows)], axis=1)

        factors = [linalg.grow(C, *rest) for C, *rest in zip(base.factors, border.A, border.factors, strict=True)]
        beta = grown(base.beta, new.y - self.models.prior_mean(new.sites))
        out = type(self)(self.models, self.data.followed_by(new), factors, beta, base.jitter)
        for target, w in list(base._whitened.items()):  # another thread may add to it
            out._whitened[target] = grown(w, self.models.integral_cov(target, new.sites))
        return out

    def select(self, models: slice) -> Self:
        """Return the posteriors of some of the models."""
        out = type(self)(
            self.models.select(models), self.data, self.factors[models], self.beta[models], self.jitter[models]
        )
        out._whitened = {target: w[models] for target, w in self._whitened.items()}
        return out

    def whitened_integral(self, target: int) -> Array:
        """Return w = C⁻¹ cov[Z_target, y], shape (K, N)."""
        if target not in self._whitened:
            z = self.models.integral_cov(target, self.data.sites)
            self._whitened[target] = solve_lower_batch(self.factors, z)
        return self._whitened[target]

    def _integral_variance(self, target: int) -> Array:
        """Return var Z as a denominator, shape (K,): not below the rounding of what was taken from its prior."""
        if target not in self._denominators:
            floor = linalg.variance_floor(len(self.data.y)) * self.models.integral_covariance(target, target)
            self._denominators[target] = np.maximum(self.integral(target)[1], floor)
        return self._denominators[target]

    @cached_property
    def _inverses(self) -> Array | None:
        """The inverses of the factors, shape (K, N, N), where that pays."""
        if len(self) == 1 or len(self.data.y) > MOST_INVERTED:
            return None
        return np.array([linalg.inverse_lower(C) for C in self.factors])

    def _solve(self, b: Array, transposed: bool = False) -> Array:
        """Return C⁻¹ b or C⁻ᵀ b of each model for b (K, N, n), shape (K, N, n)."""
        if self._inverses is not None:
            return np.asarray((self._inverses.swapaxes(1, 2) if transposed else self._inverses) @ b)
        return solve_lower_batch(self.factors, b, transposed)

    def _moments(self, source: int, A: Array, prior: Array) -> tuple[Array, Array]:
        """Return means and variances (K, n) of what has prior variances (K, n) and A (K, N, n) = C⁻¹ cov[y, ·]."""
        mean = self.models.mean[:, source, None] + np.einsum("kj,kji->ki", self.beta, A)
        left = prior - np.einsum("kji,kji->ki", A, A)
        return mean, np.maximum(left, linalg.variance_floor(0) * prior)

    @property
    def _smallest_share(self) -> Array:
        """Share of the variance of an observation, shape (K,): if no more is unknown of it, it tells of rounding."""
        return max(linalg.variance_floor(len(self.data.y)), NOTHING_LEFT) + 2 * self.jitter

    def _border(self, sites: Sites, noise_var: Array) -> Border:
        """Return what observations to come, with known noise on top of that of their sources, add to the factors."""
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


def solve_lower_batch(factors: Sequence[Array], b: Array, transposed: bool = False) -> Array:
    """Return C⁻¹ b or C⁻ᵀ b for each of K factors and b (K, n) or (K, n, m), in the shape of b."""
    solve = linalg.solve_lower_transposed if transposed else linalg.solve_lower
    out = np.empty((*b.shape[:1], *b.shape[:0:-1])).swapaxes(1, -1)  # LAPACK's order, which needs no transposed copies
    for C, rows, solved in zip(factors, b, out, strict=True):
        solved[...] = solve(C, rows)
    return out
