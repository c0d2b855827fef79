"""Sample paths of the primary source: draws from its posteriors, as functions that can be evaluated anywhere.

A path is drawn jointly at r points U that cover the distribution of the inputs. It is then the posterior mean given the
observations and these values, Σ_i a_i k(x, c_i) with the observations and U as its centres c. The remaining variance at
x is small, and independent from point to point.

Notation: K posteriors, J paths of each, P = N + r centres (s_i, c_i); a (K, P, J) coefficients; all in standard units.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ..common.validation import Array
from ..gp.coregionalisation import ModelBatch
from ..gp.data import Data, Sites
from ..gp.gram import LARGEST_ARRAY
from ..gp.posterior_batch import PosteriorBatch
from ..measures.base import Measure
from .latent import Latent, Members


@dataclass(frozen=True)
class PathSettings:
    """How many paths there are, and how they are drawn."""

    #: points at which paths are drawn jointly: in up to ten dimensions, more change no error bar by a twentieth
    joint_points: int = 128
    #: paths of all posteriors together: the ends of a 95 % interval are known to a few percent of its width
    paths: int = 640
    #: directions with less than this share of the largest posterior variance, or of the prior variance, where it is
    #: rounding, are left to the independent rest
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
        return np.asarray(self.models.mean[:, self.models.target])

    def values(self, X: Array) -> Array:
        """Return f_kj(X_i), shape (K, J, n)."""
        K, P, J = self.coefficients.shape
        out = np.empty((K, J, len(X)))
        terms = max(sum(group.B.shape[1] for group in self.models.groups), 1)
        step = max(LARGEST_ARRAY // (P * terms * K), 1)
        for start in range(0, len(X), step):
            x = X[start : start + step]
            cov = self.models.cov(Sites.values(self.models.target, x), self.centres)
            out[:, :, start : start + step] = (cov @ self.coefficients).swapaxes(1, 2)
        out += self.offsets[:, None, None]
        return out


@dataclass(frozen=True)
class Paths:
    """Sample paths of the primary source by each member of a latent process, or the posterior means: J functions each.

    Attributes
    ----------
    latent : Latent
        K members.
    functions : tuple of Functions
        The functions of each process.
    conditioned : tuple of PosteriorBatch
        The posteriors of each process, conditioned also on the points at which paths were drawn.
    """

    latent: Latent
    functions: tuple[Functions, ...]
    conditioned: tuple[PosteriorBatch, ...]

    @classmethod
    def draw(cls, latent: Latent, measure: Measure, seed: int = 0) -> Paths:
        """Return paths of the primary source, in pairs of opposite deviations from the mean."""
        functions, conditioned = latent.members.cached("paths", partial(_drawn, latent.members, measure), seed)
        return cls(latent, functions, conditioned)

    @classmethod
    def means(cls, latent: Latent) -> Paths:
        """Return the posterior mean of the primary source by each member: J = 1."""
        return cls(latent, latent.members.cached("means", partial(_means, latent.members)), latent.parts)

    def values(self, X: Array) -> Array:
        """Return all functions at each X_i in standard units, shape (K, J, n)."""
        name = f"values of {self.functions[0].coefficients.shape[2]}"
        values = self.latent.members.cached(name, lambda X: [each.values(X) for each in self.functions], X)
        parts = zip(self.latent.ratios[:, self.latent.target].tolist(), values, self.latent.picks.T, strict=True)
        return np.asarray(sum(a * each[rows] for a, each, rows in parts))

    def residual_variances(self, X: Array) -> Array:
        """Return the variance at each X_i that remains given the values at U, shape (K, n)."""
        members = self.latent.members
        left = members.cached(
            "residuals", lambda X: [each.predict(self.latent.target, X) for each in self.conditioned], X
        )
        return self.latent.summed(left, self.latent.target, self.latent.rest)[1]


def _means(members: Members) -> tuple[Functions, ...]:
    """Return the posterior mean of each process."""
    functions = []
    for part in members.parts:
        values = np.broadcast_to(part.data.y[:, None], (len(part), len(part.data.y), 1))
        functions.append(Functions(part.models, part.data.sites, part.coefficients(values)))
    return tuple(functions)


def _drawn(members: Members, measure: Measure, seed: int) -> tuple[tuple[Functions, ...], tuple[PosteriorBatch, ...]]:
    """Return paths of each process, and its posteriors given the points at which they were drawn."""
    U, rng = np.unique(measure.sobol(SETTINGS.joint_points, seed), axis=0), np.random.default_rng(seed)
    pairs = max(SETTINGS.paths // (2 * len(members.weights)), 1)
    functions, conditioned = zip(*(_paths(part, U, pairs, rng) for part in members.parts), strict=True)
    return functions, conditioned


def _paths(
    posteriors: PosteriorBatch, U: Array, pairs: int, rng: np.random.Generator
) -> tuple[Functions, PosteriorBatch]:
    """Return paths of a process through values drawn at U, and its posteriors given values there."""
    s = np.full(len(U), posteriors.models.target)
    means, covariances = posteriors.predict_joint(s, U)
    half = np.einsum(
        "kij,kjp->kip",
        _roots(covariances, posteriors.models.variances(Sites.values(s, U)).max(axis=1)),
        rng.normal(size=(len(posteriors), len(U), pairs)),
    )
    drawn = means[:, :, None] + np.concatenate([half, -half], axis=2)
    new = Data(s, U, means[0], np.zeros(len(U)))  # the values are set below
    conditioned = PosteriorBatch.condition(posteriors.models, posteriors.data.followed_by(new), posteriors.jitter)
    observed = np.broadcast_to(posteriors.data.y[:, None], (len(posteriors), len(posteriors.data.y), 2 * pairs))
    coefficients = conditioned.coefficients(np.concatenate([observed, drawn], axis=1))
    return Functions(posteriors.models, conditioned.data.sites, coefficients), conditioned


def _roots(covariances: Array, prior: Array) -> Array:
    """Return square roots R with R Rᵀ = S of covariances S (K, r, r), without directions that are rounding errors."""
    values, vectors = np.linalg.eigh(covariances)
    least = np.maximum(SETTINGS.smallest_share * values[:, -1:], SETTINGS.rounding * prior[:, None])
    return np.asarray(vectors * np.sqrt(np.where(values > least, values, 0.0))[:, None, :])
