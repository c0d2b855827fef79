"""The basis of outputs: each has its own channel, or many are reduced to a few principal components.

The outputs y(x), shape (M,), are c + B s(x) + e(x), with R components s, uncorrelated and of unit variance in the
values so far, and a residual e. The integral of y is c + B ∫s + ∫e. The integrals of the components are independent;
the residual averages to zero over the evaluations of the primary source, so its integral is zero with a standard error.
The residual is measured at evaluations left out in turn, because by construction, a basis fits the evaluations from
which it is made.

Notation: N evaluations of M outputs Y, NaN where missing; in standard units z = (y - c) / scale, z ≈ V σ s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..common.validation import Array, IntArray
from ..inference.structures import Noise


@dataclass(frozen=True)
class ReductionSettings:
    """When outputs are reduced, and to how many components."""

    outputs: int = 10  #: maximum number of outputs with separate models; more are reduced
    most: int = 12  #: maximum number of components: a step takes about as long as with as many outputs
    residual: float = 1e-6  #: share of the variance of all outputs, in standard units, left to the residual
    #: number of evaluations, or of primary values, until which each new one updates the basis; then, growth of the
    #: number from one update to the next
    every_one_until: int = 6
    growth: float = 1.3
    left_out: int = 8  #: latest evaluations of a source that are left out in turn to measure the residual
    #: minimum number of primary values by which the residual is measured; with fewer, the values of all sources are
    #: used
    enough: int = 3


SETTINGS = ReductionSettings()


def basis_made_at(s: IntArray) -> int:
    """Return the number of evaluations from which the current basis is made, given the sources s (n,) of all in order.

    >>> [basis_made_at(np.array(s)) for s in ([1, 0, 1], [0] * 7, [0] * 8, [1] * 9 + [0, 1])]
    [3, 6, 8, 11]
    """
    primary = np.flatnonzero(s == 0)
    latest = int(primary[_scheduled(len(primary)) - 1]) + 1 if len(primary) else 0
    return max(latest, _scheduled(len(s)))


def _scheduled(n: int) -> int:
    """Return the largest number on the schedule of updates that is at most n."""
    at = SETTINGS.every_one_until
    while (more := int(np.ceil(at * SETTINGS.growth))) <= n:
        at = more
    return min(at, n)


@dataclass(frozen=True)
class Basis:
    """Composition of M outputs: g_m = centre_m + Σ_r loading_mr s_r + e_m, with R channels s.

    Attributes
    ----------
    centre : (M,) array
    loadings : (M, R) array
    rest, error : (M,) array
        The variance of e at a point, and that of its integral.
    """

    centre: Array
    loadings: Array
    rest: Array
    error: Array

    @classmethod
    def separate(cls, n: int) -> Basis:
        """Return the basis of n outputs that each have their own channel."""
        return cls(np.zeros(n), np.eye(n), np.zeros(n), np.zeros(n))

    def of_output(self, output: int) -> Basis:
        """Return the basis of one output."""
        one = [output]
        return Basis(self.centre[one], self.loadings[one], self.rest[one], self.error[one])

    def of_channels(self, output: int) -> list[int]:
        """Return the channels with a loading on an output."""
        return np.flatnonzero(self.loadings[output]).tolist()

    def outputs_of(self, channel: int) -> list[int]:
        """Return the outputs on which a channel has a loading."""
        return np.flatnonzero(self.loadings[:, channel]).tolist()

    def scores(self, Y: Array, variances: Array) -> tuple[Array, Array]:
        """Return the channels' values in N evaluations, NaN where missing, and their noise variances: (N, R) each."""
        return Y, variances

    def slopes(self, gradients: Array) -> Array:
        """Return the gradients of the channels, (N, R, D), from those of the outputs, (N, M, D)."""
        return gradients

    def noise(self, levels: Sequence[Sequence[Noise]]) -> list[list[Noise]]:
        """Return the noise levels by channel and source, given those by output and source."""
        return [list(each) for each in levels]

    def shares(self, stds: Array) -> Array:
        """Return the share (M, R) of each channel in the variance of each output, from standard deviations (R,)."""
        sizes = np.abs(self.loadings * np.nan_to_num(stds))
        parts = (sizes / _positive(sizes.max(axis=1, keepdims=True))) ** 2
        return np.asarray(parts / _positive(parts.sum(axis=1, keepdims=True)))

    def shrinkage(self, stds: Array, ratios: Array) -> Array:
        """Return the factor by which the standard deviation of each integral shrinks, shape (M,), NaN where unknown.

        The channels' standard deviations are ``stds`` (R,), and their variances shrink by ``ratios`` (R,); the residual
        of the outputs stays.
        """
        used = self.loadings != 0
        sizes = np.where(used, np.abs(self.loadings) * np.where(used, stds, 0.0), 0.0)
        sizes = np.column_stack([sizes, np.sqrt(self.error)])
        parts = (sizes / _positive(sizes.max(axis=1, keepdims=True))) ** 2
        left = np.append(np.where(np.isnan(ratios), 0.0, ratios), 1.0)
        return np.asarray(np.sqrt(parts @ left / _positive(parts.sum(axis=1))))


def _positive(values: Array) -> Array:
    """Return divisors: tiny numbers instead of zeros."""
    return np.where(values == 0, np.finfo(float).tiny, values)


@dataclass(frozen=True)
class PrincipalBasis(Basis):
    """Principal components of M outputs.

    Attributes
    ----------
    scale : (M,) array
        Standard deviation of each output over all sources; ``centre`` is its mean in the primary source.
    directions : (M, R) array
        The principal directions in standard units, orthonormal.
    sizes : (R,) array
        Standard deviation of the values along each direction.
    residual : (M,) array
        Mean square of each output's residual in standard units.
    """

    scale: Array
    directions: Array
    sizes: Array
    residual: Array

    @classmethod
    def of(cls, s: IntArray, Y: Array) -> PrincipalBasis:
        """Return the components of evaluations Y (N, M) of all outputs, by sources s (N,)."""
        whole = np.array([np.isfinite(y).all() for y in Y])
        use = whole if whole[s == 0].sum() > 1 else np.ones(len(s), dtype=bool)
        centre, scale = _mean(Y[s == 0] if (s == 0).any() else Y), _spread(s, Y)
        directions, sizes = _components(s[use], (Y[use] - centre) / scale)
        n_primary = int(whole[s == 0].sum())
        measured_by = [0] if n_primary >= SETTINGS.enough else np.unique(s[use])
        residual = np.max([_residual(s[use], (Y[use] - centre) / scale, source) for source in measured_by], axis=0)
        loadings, rest = scale[:, None] * directions * sizes, scale**2 * residual
        return cls(centre, loadings, rest, rest / max(n_primary, 1), scale, directions, sizes, residual)

    def scores(self, Y: Array, variances: Array) -> tuple[Array, Array]:
        """Return the components in N evaluations, and the variances of their noise: shape (N, R) each.

        Where outputs are missing, components are inferred from the others; their uncertainty counts as noise.
        """
        Z, noise = (Y - self.centre) / self.scale, variances / self.scale**2
        found, uncertain = np.empty((len(Y), len(self.sizes))), np.empty((len(Y), len(self.sizes)))
        patterns, which = np.unique(np.isfinite(Z), axis=0, return_inverse=True)
        for number, observed in enumerate(patterns):
            rows = np.flatnonzero(which.ravel() == number)
            W = self.directions[observed] * self.sizes
            if observed.all():
                inverse, unknown = self.directions.T / self.sizes[:, None], np.zeros(len(self.sizes))
            else:  # the posterior of standard normal components given the available outputs
                precise = W.T / np.maximum(self.residual[observed], SETTINGS.residual)
                covariance = np.linalg.inv(precise @ W + np.eye(len(self.sizes)))
                inverse, unknown = covariance @ precise, np.diag(covariance)
            found[rows] = Z[np.ix_(rows, observed)] @ inverse.T
            uncertain[rows] = noise[np.ix_(rows, observed)] @ (inverse**2).T + unknown
        return found, uncertain

    def slopes(self, gradients: Array) -> Array:
        """Return the gradients of the components (N, R, D), NaN unless those of all outputs are known."""
        return np.asarray(np.einsum("nmd,mr->nrd", gradients / self.scale[:, None], self.directions / self.sizes))

    def noise(self, levels: Sequence[Sequence[Noise]]) -> list[list[Noise]]:
        """Return the noise levels by component and source: learned for a source if the noise of any output is."""
        by_source: list[list[Noise]] = []
        for of_source in zip(*levels, strict=True):
            known = np.array([level for level in of_source if not isinstance(level, str)])
            if len(known) < len(of_source):
                by_source.append(["learn"] * len(self.sizes))
            else:
                by_source.append(((self.directions.T / self.sizes[:, None]) ** 2 @ (known / self.scale**2)).tolist())
        return [list(of_component) for of_component in zip(*by_source, strict=True)]


def _residual(s: IntArray, Z: Array, source: int) -> Array:
    """Return the mean square (M,) of each output's residual for a source, leaving out each evaluation in turn.

    A single evaluation gives one if it is the only one of all sources, else zero.
    """
    own = np.flatnonzero(s == source)
    if len(own) < 2:
        return np.ones(Z.shape[1]) if len(own) == len(s) else np.zeros(Z.shape[1])
    squares = []
    for one in own[-SETTINGS.left_out :]:
        others = np.arange(len(s)) != one
        V, _ = _components(s[others], Z[others])
        z = np.nan_to_num(Z[one] - _mean(Z[others & (s == source)]))
        squares.append((z - V @ (V.T @ z)) ** 2)
    return np.asarray(np.mean(squares, axis=0))


def _mean(Y: Array) -> Array:
    """Return the mean of each output over its known values; zero without any."""
    known = np.isfinite(Y)
    return np.asarray(np.where(known, Y, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1))


def _spread(s: IntArray, Y: Array) -> Array:
    """Return the standard deviation of each output over all sources, around the mean of each source; one if constant.

    Two primary values may happen to be alike in some outputs, which would then count too much.
    """
    means = np.array([_mean(Y[s == source]) for source in range(s.max() + 1)])
    deviations = np.where(np.isfinite(Y), Y - means[s], 0.0)
    largest = np.abs(deviations).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)  # squares of tiny numbers would be zero
    spread = unit * np.sqrt(np.mean((deviations / unit) ** 2, axis=0))
    return np.where(spread > 0, spread, 1.0)


def _components(s: IntArray, Z: Array) -> tuple[Array, Array]:
    """Return the principal directions (M, R) of values in standard units, and the sizes (R,) of values along them.

    The values of each source are centred, and all sources have the same weight, however many values they have.
    """
    rows = []
    for source in np.unique(s):
        own = Z[s == source]
        rows.append(np.where(np.isfinite(own), own - _mean(own), 0.0) / np.sqrt(len(own)))
    _, singular, Vt = np.linalg.svd(np.concatenate(rows), full_matrices=False)
    energy = singular**2
    rest = 1 - np.cumsum(energy) / max(energy.sum(), np.finfo(float).tiny)
    R = min(int(np.argmax(rest <= SETTINGS.residual)) + 1, SETTINGS.most)
    V = Vt[:R].T
    V = V * np.where(V[np.abs(V).argmax(axis=0), np.arange(R)] < 0, -1.0, 1.0)  # LAPACK may return either sign
    return V, np.where(singular[:R] > 0, singular[:R], 1.0)
