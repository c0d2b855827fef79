"""Locations: how much of a function's variance its values there can show, and which locations nearly coincide.

Values at neighbouring locations are nearly equal, however much the function varies. Their variance is compared with
that of a process with typical lengthscales at these locations, relative to its variance over all inputs.

Notation: u = x in units of the width of the measure, k(u, u') the typical correlation, an average of two RBF kernels.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy

from ..common.validation import Array, IntArray
from ..gp.data import Data
from ..gp.embeddings import kernel_variance
from ..gp.kernels import RBF, unordered
from ..measures.base import Measure
from ..measures.uniform import Uniform
from .priors import SHARED

#: two locations nearly coincide below this share of the distance between as many evenly spread ones
NEAR = 0.05


def shares_of_spread(data: Data, measure: Measure, n_sources: int) -> Array:
    """Return the share of the variance over the measure that values of each source can show, at most 1: shape (L,).

    It is the average of 1 - k over pairs of locations, divided by its average over a cube as wide as the inputs: 1 if
    locations are spread over that cube, close to zero if they are clustered.
    """
    found, data = np.ones(n_sources), data.values
    for source in range(n_sources):
        if (data.s == source).sum() > 1:
            apart = _lack_of_correlation(_distances(data.X[data.s == source], measure), measure.dim).mean()
            found[source] = np.clip(apart / _expected(measure.dim), np.finfo(float).tiny, 1.0)
    return found


def near_replicates(X: Array, measure: Measure) -> IntArray:
    """Return the group number of each location (n, D), shape (n,): locations that nearly coincide share one."""
    n, dim = X.shape
    apart = np.zeros((n, n), dtype=bool)
    apart[np.triu_indices(n, 1)] = _distances(X, measure) < dim * (NEAR * max(n, 2) ** (-1 / dim)) ** 2
    return np.asarray(scipy.sparse.csgraph.connected_components(apart)[1])


def _distances(X: Array, measure: Measure) -> Array:
    """Return |u - u'|² of all pairs of locations (n, D), shape (n (n - 1) / 2,)."""
    u = measure.to_latent(X) / measure.latent.width
    first, second = np.triu_indices(len(u), 1)
    return np.asarray(np.sum(unordered((u[first] - u[second]).T, measure.categorical) ** 2, axis=0))


def _lack_of_correlation(squared: Array, dim: int) -> Array:
    """Return 1 - k for squared distances."""
    return np.asarray(np.mean([-np.expm1(-0.5 * squared / (fraction**2 * dim)) for fraction in SHARED], axis=0))


@cache
def _expected(dim: int) -> float:
    """Return the average of 1 - k over a cube as wide as the inputs."""
    variances = [kernel_variance(RBF(fraction * dim**0.5), Uniform(0.0, 1.0)) for fraction in SHARED]
    return 1 - float(np.mean(np.power(variances, dim)))
