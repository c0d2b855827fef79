"""Sample paths of the primary source: draws from its posteriors, as functions that can be evaluated anywhere.

A path is drawn jointly at r points U that cover the distribution of the inputs. It is then the posterior mean on the
observations and on those values, Σ_i a_i k(x, c_i) with the observations and U as its centres c. What is left of the
variance at x is small, and independent from point to point.

Notation: K posteriors, J paths of each, P = N + r centres (s_i, c_i); a (K, P, J) coefficients; all in standard units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..gp.coregionalisation import ModelBatch
from ..gp.data import Data, Sites
from ..gp.gram import LARGEST_ARRAY
from ..gp.posterior_batch import PosteriorBatch
from ..measures.base import Measure
from ..validation import Array
from .ensemble import Ensemble


@dataclass(frozen=True)
class PathSettings:
    """How many paths there are, and how they are drawn."""

    #: points at which paths are drawn jointly: in up to ten dimensions, more change no error bar by a twentieth
    joint_points: int = 128
    #: of all posteriors together: the ends of a 95 % interval are known to a few percent of its width
    paths: int = 640
    #: directions with less than this share of the largest posterior variance, or with less than this share of the prior
    #: variance, which is rounding, are left to the independent rest
    smallest_share: float = 1e-8
    rounding: float = 1e-13


SETTINGS = PathSettings()


@dataclass(frozen=True)
class Functions:
    """K × J functions of the inputs: f_kj(x) = m_k + Σ_i a_kij cov_k[f_0(x), y_i], with y_i observed at c_i."""

    models: ModelBatch
    centres: Sites  # P of them
    coefficients: Array  # (K, P, J)

    @property
    def offsets(self) -> Array:
        """The prior means m_k of the primary source, shape (K,)."""
        return np.asarray(self.models.mean[:, 0])

    def values(self, X: Array) -> Array:
        """Return f_kj(X_i), shape (K, J, n)."""
        K, P, J = self.coefficients.shape
        out = np.empty((K, J, len(X)))
        terms = max(sum(group.B.shape[1] for group in self.models.groups), 1)
        step = max(LARGEST_ARRAY // (P * terms * K), 1)
        for start in range(0, len(X), step):
            x = X[start : start + step]
            cov = self.models.cov(Sites.values(0, x), self.centres)
            out[:, :, start : start + step] = (cov @ self.coefficients).swapaxes(1, 2)
        out += self.offsets[:, None, None]
        return out


@dataclass(frozen=True)
class Paths:
    """Sample paths, and the posteriors conditioned on the points at which they were drawn."""

    functions: Functions
    conditioned: PosteriorBatch

    @classmethod
    def draw(cls, ensemble: Ensemble, measure: Measure, seed: int = 0) -> Paths:
        """Return paths of the primary source, in pairs of opposite deviations from the mean."""
        posteriors = ensemble.posteriors
        U = np.unique(measure.sobol(SETTINGS.joint_points, seed), axis=0)
        s, rng = np.zeros(len(U), dtype=np.intp), np.random.default_rng(seed)
        means, covariances = posteriors.predict_joint(s, U)
        pairs = max(SETTINGS.paths // (2 * len(posteriors)), 1)
        half = np.einsum(
            "kij,kjp->kip",
            _roots(covariances, posteriors.models.variances(Sites.values(s, U)).max(axis=1)),
            rng.normal(size=(len(posteriors), len(U), pairs)),
        )
        drawn = means[:, :, None] + np.concatenate([half, -half], axis=2)
        new = Data(s, U, means[0], np.zeros(len(U)))  # what the values are is said below
        conditioned = PosteriorBatch.condition(posteriors.models, posteriors.data.followed_by(new), posteriors.jitter)
        observed = np.broadcast_to(posteriors.data.y[:, None], (len(posteriors), len(posteriors.data.y), 2 * pairs))
        coefficients = conditioned.coefficients(np.concatenate([observed, drawn], axis=1))
        return cls(Functions(posteriors.models, conditioned.data.sites, coefficients), conditioned)

    def residual_variances(self, X: Array) -> Array:
        """Return the variance that is left at each X_i once the values at U are known, shape (K, n)."""
        return self.conditioned.predict(0, X)[1]


def posterior_means(ensemble: Ensemble) -> Functions:
    """Return the posterior mean of the primary source by each posterior: J = 1."""
    batch = ensemble.posteriors
    y = batch.data.y
    values = np.broadcast_to(y[:, None], (len(batch), len(y), 1))
    return Functions(batch.models, batch.data.sites, batch.coefficients(values))


def _roots(covariances: Array, prior: Array) -> Array:
    """Return square roots R with R Rᵀ = S of covariances S (K, r, r), without directions that are rounding errors."""
    values, vectors = np.linalg.eigh(covariances)
    least = np.maximum(SETTINGS.smallest_share * values[:, -1:], SETTINGS.rounding * prior[:, None])
    return np.asarray(vectors * np.sqrt(np.where(values > least, values, 0.0))[:, None, :])
