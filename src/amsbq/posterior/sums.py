"""Models whose integral is a weighted sum over points instead of the integral over the measure.

To first order, a quantity that is not linear in a process is such a sum: the target of decisions, and the known
integral of a function of the process.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..common.validation import Array
from ..gp.coregionalisation import ModelBatch
from ..gp.data import Sites
from ..gp.embeddings_numeric import EmpiricalEmbeddings
from ..measures.base import Measure


def summed_over(models: ModelBatch, X: Array, weights: Array, measure: Measure) -> ModelBatch:
    """Return models whose integral is Σ_i w_i f(X_i), for weights (n,) of any sign."""
    points = _Points(measure.to_latent(X), weights, measure.categorical)
    trends = models.trends
    trends = trends.averaged([weights @ kernel.functions(points.samples) for kernel in trends.kernels])
    constant, noise, mean = models.constant, models.noise, models.mean
    return SummedModels(models.measure, models.groups, constant, noise, mean, trends, models.target, points=points)


@dataclass(frozen=True)
class _Points:
    """Points in latent coordinates with weights of any sign, as `EmpiricalEmbeddings` takes them."""

    samples: Array  # (M, D)
    weights: Array  # (M,)
    categorical: tuple[int, ...]


@dataclass(frozen=True)
class SummedModels(ModelBatch):
    """Models whose integral is a weighted sum over points instead of the integral over the measure."""

    points: _Points = field(kw_only=True)

    @property
    def mass(self) -> float:
        """The sum of the weights."""
        return float(self.points.weights.sum())

    def prior_mean(self, a: Sites) -> Array:
        """Return the prior means of observations, shape (K, n)."""
        return np.where(a.of_integral, self.mass, 1.0) * super().prior_mean(a)

    @cached_property
    def embeddings(self) -> tuple[Any, ...]:
        """The sums of the kernels of each group over the points."""
        return tuple(_SumEmbedding(group.kernel, group.flat_scales, self.points, self.measure) for group in self.groups)


class _SumEmbedding:
    """Kernels with K sets of lengthscales, summed over weighted points: the counterpart of `EmbeddingBatch`."""

    def __init__(self, kernel: Any, scales: Array, points: _Points, measure: Measure) -> None:
        self._sums, self._measure = EmpiricalEmbeddings(kernel, scales, points), measure

    def mean(self, X: Array) -> Array:
        """Return Σ_i w_i κ_k(x_i, X_j), shape (K, n)."""
        return self._sums.mean(self._measure.to_latent(X))

    def mean_and_grad_x(self, X: Array) -> tuple[Array, Array]:
        """Return Σ_i w_i κ_k(x_i, X_j), shape (K, n), and its gradient with respect to X_j, shape (K, n, D)."""
        slopes = self._measure.latent_slopes(X)
        means, gradients = self._sums.mean_and_grad_x(self._measure.to_latent(X))
        return means, gradients if slopes is None else gradients * slopes

    @property
    def variance(self) -> Array:
        """Σ_ij w_i w_j κ_k(x_i, x_j), shape (K,)."""
        return self._sums.variances
