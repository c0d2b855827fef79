"""Correlations between sources over the distribution of the inputs, with their uncertainty."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..common.validation import Array
from .latent import SETTINGS as LATENT
from .latent import Latent
from .posterior import Posterior


@dataclass(frozen=True)
class CorrelationSettings:
    """Sizes of samples, and when a correlation is known."""

    points: int = 256  #: points at which sources are compared, for all sources together
    draws: int = 400  #: draws from their posteriors: the ends of an interval are known to within a percent
    #: parameters of a relation between two sources: a factor, an offset, and the size of the difference. With only so
    #: many observations, nothing is known about the relation
    relation: int = 3
    unclear: float = 0.5  #: width of a 95 % interval above which a correlation is not known


SETTINGS = CorrelationSettings()


@dataclass(frozen=True)
class Correlations:
    """Correlations between sources over the distribution of the inputs: mean and 95 % interval, shape (L, L) each."""

    mean: Array
    low: Array
    high: Array
    enough: NDArray[np.bool_]  #: (L, L), whether both have more observations than a relation has parameters

    @property
    def known(self) -> NDArray[np.bool_]:
        """Mask of correlations that rest on data and whose interval is narrow, shape (L, L)."""
        return self.enough & (self.high - self.low <= SETTINGS.unclear)

    def parts(self, i: int, j: int) -> list[str]:
        """Return the correlation of two sources and the ends of its interval as text, or "not known" and "yet"."""
        low, high = self.low[i, j], self.high[i, j]
        if not self.known[i, j]:
            return ["not known", "yet"]
        digits = 2 if high < 0.99 and high - low > 0.01 else 4
        return [f"{self.mean[i, j]:.{digits}f}", f"{low:.{digits}f}", f"to {high:.{digits}f}"]

    def text(self, i: int, j: int) -> str:
        """Return the correlation of two sources with its interval, or "not known yet"."""
        first, *rest = self.parts(i, j)
        return f"{first} (95 %: {' '.join(rest)})" if self.known[i, j] else f"{first} {' '.join(rest)}"


def correlations_of(posterior: Posterior) -> Correlations:
    """Return how the sources correlate over the distribution of the inputs.

    The sources are drawn from their joint posterior by each member that decisions use, and the correlation of each draw
    is computed over the same inputs.
    """
    component = posterior.whole.components[0]
    latent = component.latent.thinned(LATENT.deciding)
    L = latent.n_evaluated
    X = posterior.measure.sobol(max(SETTINGS.points // L, 16), rng=0)
    n, each = len(X), math.ceil(SETTINGS.draws / len(latent))
    means, covariances = latent.predict_joint(np.repeat(np.arange(L), n), np.tile(X, (L, 1)))
    rng, found = np.random.default_rng(0), []
    for mean, covariance in zip(means, covariances, strict=True):
        values, vectors = np.linalg.eigh(covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        drawn = (mean + _heavy_tailed(rng, each, L * n, latent) @ root.T).reshape(each, L, n)
        drawn = np.stack([component.integrand(source, drawn[:, source], X) for source in range(L)], axis=1)
        for f in drawn:
            f = f - f.mean(axis=1, keepdims=True)
            norms = np.sqrt(np.einsum("ln,ln->l", f, f))
            f /= np.where(norms > 0, norms, 1.0)[:, None]
            found.append(f @ f.T)
    low, high = np.quantile(found, [0.025, 0.975], axis=0)
    counts = np.bincount(latent.parts[0].data.values.s, minlength=L)
    enough = (np.minimum.outer(counts, counts) > SETTINGS.relation) | np.eye(L, dtype=bool)
    return Correlations(np.mean(found, axis=0), low, high, enough | np.isinf(latent.tails))


def _heavy_tailed(rng: np.random.Generator, n: int, dim: int, latent: Latent) -> Array:
    """Return n standardised deviations from a posterior, (n, dim), with tails like those of the integral."""
    deviations = rng.normal(size=(n, dim))
    if np.isinf(latent.tails):
        return deviations
    return np.asarray(latent.widened * deviations * np.sqrt(latent.tails / rng.chisquare(latent.tails, size=(n, 1))))
