"""The multi-source Gaussian process and its posterior: exact, given its hyperparameters.

Notation, the paper's where it has one (the equation numbers are the paper's):

    L sources, D inputs, N observations (s_n, x_n, y_n)         s (N,), X (N, D), y (N,)
    G = K_ss(X, X) + Σ_s = C Cᵀ                                 Gram matrix (N, N) and its Cholesky factor
    r = y - m_s, β = C⁻¹ r                                      residuals, and whitened
    z = ⟨k_{1s}(·, X)⟩, w = C⁻¹ z                               cov[Z, f_s(X)], and whitened
    Z = ∫ f_1 dπ                                                the integral; "target" picks another source's
    c(x), v(x)                                                  posterior cov[Z, y_l(x)] and var y_l(x)
    ρ² = c² / (v · var Z)                                       squared correlation of Z with a new observation

Everything is an inner product of whitened vectors, which are kept: one more point costs one triangular solve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..measures.adapters import as_measure
from ..validation import Array, IntArray, count, non_negative, source_number, source_numbers, vector
from . import linalg
from .coregionalisation import Coregionalisation, Part, Term
from .data import Data


class MultiSourceGP:
    """A prior over L correlated sources and their integrals: cov[f_l(x), f_l'(x')] = Σ_q B_q[l, l'] κ_q(x, x').

    Parameters
    ----------
    terms : list of Term
        One term is the paper's intrinsic coregionalisation model, several are a linear model of coregionalisation.
    measure : measure, or anything that `as_measure` takes
        The distribution of the inputs, against which the sources are integrated.
    noise : float or L floats
        Variance σ_l² of the noise on observations of each source.
    mean : float or L floats
        Constant prior mean of each source.

    Examples
    --------
    An expensive source seen twice, and a cheap one with a correlation of 0.95 to it, seen five times:

    >>> import numpy as np
    >>> from amsbq import RBF, MultiSourceGP, Term, Uniform
    >>> gp = MultiSourceGP([Term([[1, 0.95], [0.95, 1]], RBF(0.3))], Uniform(0, 1))
    >>> X = np.array([0.2, 0.8, 0.0, 0.25, 0.5, 0.75, 1.0])
    >>> sources = [0, 0, 1, 1, 1, 1, 1]
    >>> y = np.where(np.array(sources) == 0, np.sin(3 * X), np.sin(3 * X) + 0.1)
    >>> mean, var = gp.condition(sources, X, y).integral()
    >>> print(f"{mean:.3f} ± {var**0.5:.3f}, and in truth {(1 - np.cos(3)) / 3:.3f}")
    0.664 ± 0.046, and in truth 0.663
    """

    def __init__(self, terms: Sequence[Term], measure: Any, noise: ArrayLike = 0.0, mean: ArrayLike = 0.0) -> None:
        self.measure = as_measure(measure)
        self.prior = Coregionalisation(terms, self.measure)
        self.terms, self.n_sources, self.dim = self.prior.terms, self.prior.n_sources, self.measure.dim
        self.noise = non_negative(vector(noise, "noise", self.n_sources), "noise")
        self.mean = vector(mean, "mean", self.n_sources)

    def __repr__(self) -> str:
        return (
            f"MultiSourceGP({list(self.terms)}, {self.measure!r}, "
            f"noise={self.noise.tolist()}, mean={self.mean.tolist()})"
        )

    def condition(
        self, sources: ArrayLike, X: ArrayLike, y: ArrayLike, noise_var: ArrayLike | None = None
    ) -> Posterior:
        """The posterior given N observations (N = 0 is the prior).

        Parameters
        ----------
        sources : (N,) ints, or one for all
            Which source each observation is of; 0 is the primary one.
        X : (N, D) array
        y : (N,) array
        noise_var : (N,) array, optional
            Known variance of each observation, on top of the noise of its source.
        """
        return self._condition(Data.checked(self.measure, self.noise, sources, X, y, noise_var))

    def _condition(self, data: Data, jitter: float = 0.0) -> Posterior:
        """The posterior, with at least the given jitter."""
        parts = self.prior.parts(data.s, data.X)
        G, scale = self.prior.gram(data.s, data.X, parts), self.prior.variances[data.s] + data.noise_var
        G.ravel(order="K")[:: len(G) + 1] += data.noise_var
        least = (data.noise_var / scale).min() if scale.all() and scale.size else 0.0
        C, jitter = linalg.factorise(G, scale, jitter, float(least))
        return Posterior(self, data, C, linalg.solve_lower(C, data.y - self.mean[data.s]), jitter, parts)


@dataclass(frozen=True)
class EvidenceGradient:
    """The gradient of the log evidence in every hyperparameter.

    ``B[q]`` is symmetric: for a symmetric change dB_q the evidence changes by ``np.sum(B[q] * dB_q)``.
    """

    B: tuple[Array, ...]  # (L, L) for each term
    log_lengthscales: tuple[Array, ...]  # (P_q,) for each term
    noise: Array  # (L,), in σ_l²
    mean: Array  # (L,)


class Posterior:
    """A `MultiSourceGP`, given observations. Made by its ``condition``, and by ``extend``.

    Attributes
    ----------
    sources, X, y : (N,), (N, D) and (N,) arrays
        The observations.
    jitter : float
        The share of their variance that was added to observations to keep the Gram matrix positive definite; zero
        unless the observations are (nearly) redundant, such as duplicates without noise.
    """

    def __init__(
        self, gp: MultiSourceGP, data: Data, C: Array, beta: Array, jitter: float, parts: list[Part] | None = None
    ) -> None:
        self.gp, self.jitter, self._parts = gp, jitter, parts
        self.sources, self.X, self.y = data.s, data.X, data.y
        self._data, self._C, self._beta = data, C, beta
        self._whitened: dict[int, Array] = {}  # target -> w
        self._left: dict[int, float] = {}  # target -> the variance of its integral, as a denominator

    def __repr__(self) -> str:
        counts = np.bincount(self.sources, minlength=self.gp.n_sources)
        return f"<Posterior given {' + '.join(map(str, counts))} observations of {self.gp.n_sources} sources>"

    def predict(self, source: int, X: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance of f_source at each X_i, without the noise of an observation (Eq. 2)."""
        source, X = source_number(source, self.gp.n_sources), self.gp.measure.check_points(X)
        return self._given(source, self._whiten(np.full(len(X), source), X), self.gp.prior.variances[source])

    def integral(self, source: int = 0) -> tuple[float, float]:
        """Mean and variance of the integral of a source (Eq. 3)."""
        source = source_number(source, self.gp.n_sources)
        w = self._w(source)
        prior = self.gp.prior.integral_variance(source)
        variance = max(prior - float(w @ w), linalg.variance_floor(0) * prior)
        return float(self.gp.mean[source] + w @ self._beta), variance

    def main_effect(self, source: int, input: int, t: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance of ∫ f_source(x) π(dx_others), a function of one input, at each of its values t_i.

        The other inputs are integrated out by their own distribution, whatever this one is.
        """
        source, gp = source_number(source, self.gp.n_sources), self.gp
        if not 0 <= (input := count(input, "input")) < gp.dim:
            raise ValueError(f"there is no input {input}: there are {gp.dim}, numbered 0 to {gp.dim - 1}")
        t = gp.measure.over([input]).check_points(t, "t")
        cov, prior = gp.prior.main_effect_cov(source, input, t, self.sources, self.X)
        return self._given(source, linalg.solve_lower(self._C, cov.T), prior)

    def _given(self, source: int, A: Array, prior: float) -> tuple[Array, Array]:
        """Mean and variance of what has that prior variance, and A as its whitened covariance with the observations."""
        mean = self.gp.mean[source] + self._beta @ A
        return mean, np.maximum(prior - np.einsum("ni,ni->i", A, A), linalg.variance_floor(0) * prior)

    def leave_one_out(self) -> tuple[Array, Array]:
        """Mean and variance of each observation, its noise included, given all the others: shape (N,) each.

        With α = G⁻¹ r, what is left of observation i is α_i / G⁻¹_ii, and its variance is 1 / G⁻¹_ii.
        """
        rows = linalg.inverse_lower(self._C)
        variance = 1 / np.einsum("ji,ji->i", rows, rows)
        return self.y - variance * linalg.solve_lower_transposed(self._C, self._beta), variance

    def squared_correlation(self, source: int, X: ArrayLike, target: int = 0) -> Array:
        """ρ² of the target's integral with one new, noisy observation of a source at each X_i (Eq. 7), shape (n,)."""
        return self._correlation(source, X, target).rho2

    def squared_correlation_and_grad(self, source: int, X: ArrayLike, target: int = 0) -> tuple[Array, Array]:
        """ρ², shape (n,), and its gradient dρ²_i/dX_i, shape (n, D)."""
        at = self._correlation(source, X, target, with_grad=True)
        # dρ² = ρ² (2 dc/c - dv/v), with dc and dv through the covariance with the data: one more solve for both
        per_c, per_v = linalg.ratio(2 * at.share, at.v, at.unknown), linalg.ratio(-at.rho2, at.v, at.unknown)
        coefficients = linalg.solve_lower_transposed(self._C, -np.outer(self._w(at.target), per_c) - 2 * per_v * at.A)
        gradient = self.gp.prior.contract_parts_grad_x([part.T for part in at.parts], at.X, self.X, coefficients.T)
        gradient += per_c[:, None] * at.z_grad
        return at.rho2, gradient

    def squared_correlation_joint(self, sources: ArrayLike, X: ArrayLike, target: int = 0) -> float:
        """ρ² of the target's integral with a whole set of new, noisy observations (Eq. 6)."""
        return self._joint_correlation(sources, X, target).rho2

    def squared_correlation_joint_and_grad(
        self, sources: ArrayLike, X: ArrayLike, target: int = 0
    ) -> tuple[float, Array]:
        """The joint ρ², and its gradient in all the locations, shape (n, D)."""
        at = self._joint_correlation(sources, X, target)
        if at.variance == 0:
            return at.rho2, np.zeros_like(at.X)
        prior = self.gp.prior
        # d(cᵀ V⁻¹ c) = 2 aᵀ dc - aᵀ dV a with a = V⁻¹ c, and dc, dV again through the covariance with the data
        a = linalg.solve_lower_transposed(at.C_new, at.q)
        to_data = linalg.solve_lower_transposed(at.base._C, at.A @ a - at.base._w(at.target))
        gradient = prior.integral_cov_grad_x(at.target, at.s, at.X)
        gradient += prior.contract_grad_x(at.s, at.X, self.sources, self.X, np.tile(to_data, (len(a), 1)))
        gradient -= prior.contract_grad_x(at.s, at.X, at.s, at.X, np.tile(a, (len(a), 1)))
        return at.rho2, 2 * a[:, None] * gradient / at.variance

    def log_evidence(self) -> float:
        """The log probability density of the observations."""
        n = len(self.y)
        return float(-0.5 * self._beta @ self._beta - np.log(np.diagonal(self._C)).sum() - 0.5 * n * np.log(2 * np.pi))

    def log_evidence_and_grad(self) -> tuple[float, EvidenceGradient]:
        """The log evidence and its gradient in all hyperparameters.

        With α = G⁻¹ r, it changes by ½ tr((α αᵀ - G⁻¹) dG), plus αᵀ dm for the prior means.
        """
        s = self.sources
        alpha = linalg.solve_lower_transposed(self._C, self._beta)
        inverse = linalg.inverse(self._C)
        by_B, by_scales, by_noise = self.gp.prior.contract_gram(s, self.X, alpha, inverse, self._parts)
        return self.log_evidence(), EvidenceGradient(
            B=tuple(by + np.diag(self.jitter * by_noise) for by in by_B) if self.jitter else tuple(by_B),
            log_lengthscales=tuple(by_scales),
            noise=(1 + self.jitter) * by_noise,
            mean=np.bincount(s, alpha, self.gp.n_sources).astype(float),
        )

    def extend(self, sources: ArrayLike, X: ArrayLike, y: ArrayLike, noise_var: ArrayLike | None = None) -> Posterior:
        """The posterior given more observations, in O(N²) for each; this one stays as it is."""
        new = Data.checked(self.gp.measure, self.gp.noise, sources, X, y, noise_var)
        base, A, C_new = self._bordered(new.s, new.X, new.noise_var)

        def grown(whitened: Array, values: Array) -> Array:
            return np.concatenate([whitened, linalg.solve_lower(C_new, values - whitened @ A)])

        posterior = Posterior(
            self.gp,
            self._data.followed_by(new),
            linalg.grow(base._C, A, C_new),
            grown(base._beta, new.y - self.gp.mean[new.s]),
            base.jitter,
        )
        for target, w in base._whitened.items():
            posterior._whitened[target] = grown(w, self.gp.prior.integral_cov(target, new.s, new.X))
        return posterior

    def _w(self, target: int) -> Array:
        if target not in self._whitened:
            z = self.gp.prior.integral_cov(target, self.sources, self.X)
            self._whitened[target] = linalg.solve_lower(self._C, z)
        return self._whitened[target]

    def _unknown(self, target: int) -> float:
        """The variance of Z, as a denominator: not below the rounding of what was taken from its prior."""
        if target not in self._left:
            floor = linalg.variance_floor(len(self.y)) * self.gp.prior.integral_variance(target)
            self._left[target] = max(self.integral(target)[1], floor)
        return self._left[target]

    def _whiten(self, s: IntArray, X: Array) -> Array:
        """A = C⁻¹ cov[y, f_s(X)], shape (N, n)."""
        return linalg.solve_lower(self._C, self.gp.prior.cov(self.sources, self.X, s, X))

    def _bordered(self, s: IntArray, X: Array, noise_var: Array) -> tuple[Posterior, Array, Array]:
        """A (N, n), and the factor (n, n) of the posterior covariance of new observations.

        They go with the posterior that is returned first: this one, or it with the jitter that the new ones need.
        """
        prior = self.gp.prior
        V = prior.cov(s, X, s, X) + np.diag(noise_var)
        old, new = prior.variances[self.sources] + self._data.noise_var, prior.variances[s] + noise_var
        base = self
        while True:
            A = base._whiten(s, X)
            C_new = linalg.border(base._C, A, V, old, new, base.jitter)
            if C_new is not None:
                return base, A, C_new
            base = self.gp._condition(self._data, linalg.more_jitter(base.jitter, len(self.y) + len(X)))

    def _correlation(self, source: int, X: ArrayLike, target: int, with_grad: bool = False) -> _Correlation:
        gp = self.gp
        source, target = source_number(source, gp.n_sources), source_number(target, gp.n_sources, "target")
        X = gp.measure.check_points(X)
        s = np.full(len(X), source)
        parts = gp.prior.cov_parts(self.sources, self.X, s, X)
        A = linalg.solve_lower(self._C, parts[0] if len(parts) == 1 else np.sum(parts, axis=0))
        z, z_grad = (
            gp.prior.integral_cov_and_grad_x(target, s, X) if with_grad else (gp.prior.integral_cov(target, s, X), X)
        )
        c = z - self._w(target) @ A
        total = gp.prior.variances[source] + gp.noise[source]
        v = total - np.einsum("ni,ni->i", A, A)
        unknown = v > (linalg.variance_floor(len(self.y)) + 2 * self.jitter) * total
        variance = self._unknown(target)
        share = c / variance if variance else np.zeros_like(c)
        rho2 = linalg.ratio(share * c, v, unknown)
        return _Correlation(X, target, parts, z_grad, A, v, share, np.minimum(rho2, 1), unknown)

    def _joint_correlation(self, sources: ArrayLike, X: ArrayLike, target: int) -> _JointCorrelation:
        gp = self.gp
        X = gp.measure.check_points(X)
        s, target = source_numbers(sources, gp.n_sources, len(X)), source_number(target, gp.n_sources, "target")
        base, A, C_new = self._bordered(s, X, gp.noise[s])
        c = gp.prior.integral_cov(target, s, X) - base._w(target) @ A
        return _JointCorrelation(base, s, X, target, A, C_new, linalg.solve_lower(C_new, c), base._unknown(target))


@dataclass(frozen=True)
class _Correlation:
    """What ρ² and its gradient share, at each of the points."""

    X: Array
    target: int
    parts: list[Array]  # cov[y, f(X)] of each term, (N, n)
    z_grad: Array  # ∂cov[Z, f(X_i)]/∂X_i, if it is wanted
    A: Array  # C⁻¹ cov[y, f(X)]
    v: Array
    share: Array  # c / var Z
    rho2: Array
    unknown: NDArray[np.bool_]  # where more than rounding is left to learn of y_l(x)


@dataclass(frozen=True)
class _JointCorrelation:
    """The same for a set: the factor of its posterior covariance V, and q = C_new⁻¹ c."""

    base: Posterior  # whose factor and w these go with
    s: IntArray
    X: Array
    target: int
    A: Array
    C_new: Array
    q: Array
    variance: float

    @property
    def rho2(self) -> float:
        return min(float(self.q @ self.q) / self.variance, 1.0) if self.variance else 0.0
