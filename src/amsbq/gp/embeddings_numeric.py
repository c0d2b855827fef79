"""Embeddings by numerical integration and by sums, for any continuous marginal, for discrete ones, and for samples.

Notation: profile φ, lengthscale ℓ, marginal density p on the line, atoms t_m with masses w_m;

    μ(x) = ∫ φ((x - t) / ℓ) p(t) dt, or Σ_m w_m φ((x - t_m) / ℓ), and v = ∬ φ((t' - t) / ℓ) p(t) p(t') dt dt'.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.polynomial.chebyshev import chebinterpolate, chebpts1, chebval, chebvander

from ..common.validation import Array, IntArray
from ..measures.marginals import CategoricalMarginal, DiscreteMarginal, NumericMarginal, TabulatedMarginal
from ..measures.piecewise import QUADRATURE, Decay, cell_start, scale_cell
from .kernels import ProductKernel, differences

Scale: TypeAlias = float | Array  # a lengthscale, or an array of them that broadcasts with x

#: entries of the largest kernel matrix that is held at once
BLOCK = 1_000_000
#: entries of kernel matrices that are summed at once: they stay in the cache of a processor
CACHED = 50_000


class Embedding1D(ABC):
    """The embedding of one dimension, or of several, which are then the first axis of all arrays."""

    @abstractmethod
    def mean(self, x: Array) -> Array:
        """Return μ(x), in the shape of x."""

    @abstractmethod
    def mean_grad_x(self, x: Array) -> Array:
        """Return dμ/dx, in the shape of x."""

    def mean_and_grad_x(self, x: Array) -> tuple[Array, Array]:
        """Return μ(x) and dμ/dx, each in the shape of x."""
        return self.mean(x), self.mean_grad_x(x)

    @abstractmethod
    def variance(self) -> Scale:
        """Return v."""


class _Numeric(Embedding1D):
    """Numerical integration against a piecewise polynomial density, for distributions without closed forms."""

    farthest = np.inf  #: intervals beyond this |u| are left out

    scale: Any  # a number, or an array where `_RBFTabulated` takes many

    def __init__(self, kernel: ProductKernel, scale: float, marginal: NumericMarginal) -> None:
        self.kernel, self.scale, self.density = kernel, scale, marginal.density
        self.decay = Decay(kernel.stretch, kernel.reach, kink=kernel.kink)

    def mean(self, x: Array) -> Array:
        return self.density.integrate(self.kernel.profile, x, self.scale, self.decay, self.farthest)

    def mean_grad_x(self, x: Array) -> Array:
        slopes = self.density.integrate(self.kernel.slope, x, self.scale, self.decay, self.farthest)
        return np.asarray(slopes / self.scale)

    def variance(self) -> Scale:
        return self.density.integrate_twice(self.kernel.profile, self.scale, self.decay)


class _Tabulated(_Numeric):
    """The variance v by interpolation in log ℓ, for one lengthscale or many.

    Because v is analytic for |Im log ℓ| < π/4, 24 nodes are accurate to rounding errors. Each unit interval of log ℓ
    has its own Chebyshev polynomial, so that values do not depend on the order of calls.
    """

    NODES = 24

    def __init__(self, kernel: ProductKernel, scale: Scale, marginal: TabulatedMarginal) -> None:
        super().__init__(kernel, scale, marginal)  # type: ignore[arg-type]
        self.tables, self.farthest = marginal.tables, kernel.reach

    def variance(self) -> Scale:
        place = np.log(np.asarray(self.scale))
        out = np.empty_like(place)
        for cell in np.unique(cells := np.floor(place)).astype(int).tolist():
            inside = cells == cell
            out[inside] = chebval(2 * (place[inside] - cell) - 1, self._table(cell))
        return np.asarray(out)

    def _table(self, cell: int) -> Array:
        key = *self.kernel.kind, cell
        if key not in self.tables:
            self.tables[key] = chebinterpolate(np.vectorize(lambda t: self._at(cell + 0.5 + 0.5 * t)), self.NODES - 1)
        return self.tables[key]

    def _at(self, log_scale: float) -> float:
        return self.density.integrate_twice(self.kernel.profile, float(np.exp(log_scale)), self.decay)


class _Sums(Embedding1D):
    """Sums over atoms t with masses w, for one lengthscale or for many in an array: μ(x) = Σ_m w_m φ((x - t_m) / ℓ)."""

    kernel: ProductKernel
    scale: Any

    @abstractmethod
    def _atoms(self, scale: float) -> tuple[Array, Array]:
        """Return atoms and their masses, for all lengthscales in the same cell as this one."""

    def mean(self, x: Array) -> Array:
        return self._sums(x, with_grad=False)[0]

    def mean_grad_x(self, x: Array) -> Array:
        return self._sums(x, with_grad=True)[1]

    def mean_and_grad_x(self, x: Array) -> tuple[Array, Array]:
        return self._sums(x, with_grad=True)

    def _sums(self, x: Array, with_grad: bool) -> tuple[Array, Array]:
        """Return μ(x), and dμ/dx if ``with_grad`` (else zeros), in the shape that scales and x broadcast to."""
        scales, shape = np.ravel(self.scale), np.broadcast_shapes(np.shape(self.scale), np.shape(x))
        means, slopes = self._each(np.ravel(x), scales, with_grad).reshape(2, *shape)
        return means, slopes

    def _each(self, x: Array, scales: Array, with_grad: bool) -> Array:
        """Return μ(x) and dμ/dx for lengthscales (k,) and points (n,), shape (2, k, n)."""
        out = np.zeros((2, len(scales), len(x)))
        cells = scale_cell(scales)
        for cell in np.unique(cells) if len(x) else []:
            rows = np.flatnonzero(cells == cell)
            out[:, rows] = self._in_cell(x, scales[rows], with_grad)
        return out

    def _in_cell(self, x: Array, scales: Array, with_grad: bool) -> Array:
        """Return the result of `_each` for lengthscales in one cell, without atoms that are out of reach of all x."""
        out = np.zeros((2, len(scales), len(x)))
        t, w = self._atoms(float(scales[0]))
        reach = self.kernel.reach * scales.max()
        near = (t > x.min() - reach) & (t < x.max() + reach)
        t, w = t[near], w[near]
        steps = x - t[:, None]
        features = self.kernel.features(steps.reshape(1, -1))
        at_a_time = max(1, CACHED // max(features.size, 1))
        for rows in (slice(i, i + at_a_time) for i in range(0, len(scales), at_a_time)):
            ell = scales[rows, None]
            values = self.kernel.values_batch(features, ell).reshape(len(ell), len(t), len(x))
            out[0, rows] = w @ values
            if with_grad:
                values *= self.kernel.log_slope(steps / ell[:, :, None])
                out[1, rows] = w @ values / ell
        return out


class _RBFTabulated(_Sums, _Tabulated):
    """Sums over atoms that represent the density, interpolated in x and log ℓ where most of the mass is.

    For each cell of lengthscales there are intervals of x, one and a half times the smallest lengthscale wide. On each
    of them, μ is a polynomial in x and log ℓ, up to rounding.
    """

    NODES_X, NODES_SCALE = chebpts1(18), chebpts1(14)
    #: width of an interval of x in lengthscales, the smallest of the cell
    WIDTH = 1.5
    #: probability of each tail, in which nothing is tabulated, and the largest number of intervals
    TAIL, MOST_INTERVALS = 1e-5, 300

    def _atoms(self, scale: float) -> tuple[Array, Array]:
        density = self.density.summarised(scale)
        return density.atoms, density.atom_masses

    def _each(self, x: Array, scales: Array, with_grad: bool) -> Array:
        low, high, first, width, coefficients = self._polynomials
        inside, rows = (x >= low) & (x <= high), first >= 0
        if not (inside.all() and rows.all()):
            out = np.empty((2, len(scales), len(x)))
            out[:, ~rows] = super()._each(x, scales[~rows], with_grad)
            some = np.empty((2, rows.sum(), len(x)))
            some[:, :, ~inside] = super()._each(x[~inside], scales[rows], with_grad)
            some[:, :, inside] = self._interpolated(x[inside], low, first[rows], width[rows], coefficients, with_grad)
            out[:, rows] = some
            return out
        return self._interpolated(x, low, first, width, coefficients, with_grad)

    @staticmethod
    def _interpolated(
        x: Array, low: float, first: IntArray, width: Array, coefficients: Array, with_grad: bool
    ) -> Array:
        """Return μ(x) and dμ/dx by Clenshaw's recurrence; ``first`` is where the intervals of a lengthscale begin."""
        place = (x - low) / width[:, None]
        interval = place.astype(np.intp)
        s = 2 * (place - interval) - 1
        c, twice = coefficients.take(first[:, None] + interval, axis=1), 2 * s
        b, b_after, d, d_after, spare = np.zeros((5, *place.shape))
        for coefficient in c[:0:-1]:
            if with_grad:
                np.multiply(twice, d, out=spare)
                spare -= d_after
                spare += 2 * b
                d, d_after, spare = spare, d, d_after
            np.multiply(twice, b, out=spare)
            spare -= b_after
            spare += coefficient
            b, b_after, spare = spare, b, b_after
        return np.stack([c[0] + s * b - b_after, 2 * (b + s * d - d_after) / width[:, None]])

    @cached_property
    def _polynomials(self) -> tuple[float, float, IntArray, Array, Array]:
        """Range of x, number of the first interval (k,) and width (k,) for each lengthscale, and all coefficients.

        The number is -1 where there is no table.
        """
        scales = np.ravel(self.scale)
        first, width, found, total = np.full(len(scales), -1), np.ones(len(scales)), [], 0
        cells = QUADRATURE.cells_per_octave * np.log2(scales)
        for cell in np.unique(np.floor(cells)):
            table, rows = self._mean_table(int(cell)), np.flatnonzero(np.floor(cells) == cell)
            n = table.shape[1]
            if n:
                place = chebvander(2 * (cells[rows] - cell) - 1, len(self.NODES_SCALE) - 1)
                found.append(np.tensordot(place, table, axes=1).reshape(-1, len(self.NODES_X)))
                first[rows], width[rows] = total + n * np.arange(len(rows)), self.WIDTH * cell_start(cell)
                total += n * len(rows)
        coefficients = np.concatenate(found).T if found else np.zeros((len(self.NODES_X), 0))
        return *self.density.central(self.TAIL), first, width, np.ascontiguousarray(coefficients)

    def _mean_table(self, cell: int) -> Array:
        """Return Chebyshev coefficients of μ for a cell of lengthscales, shape (n_scale, intervals, n_x)."""
        key = *self.kernel.kind, "mean", cell
        if key not in self.tables:
            smallest, (low, high) = cell_start(cell), self.density.central(self.TAIL)
            width = self.WIDTH * smallest
            n = int(min((high - low) / width, self.MOST_INTERVALS + 1)) + 1
            starts = low + width * np.arange(n if n <= self.MOST_INTERVALS else 0)
            scales = smallest * cell_start(0.5 * (1 + self.NODES_SCALE))
            values = np.zeros((len(scales), len(starts), len(self.NODES_X)))
            for i, start in enumerate(starts):  # one at a time: few atoms are within reach
                values[:, i] = super()._each(start + 0.5 * width * (1 + self.NODES_X), scales, with_grad=False)[0]
            to_x, to_scale = (
                np.linalg.inv(chebvander(nodes, len(nodes) - 1)) for nodes in (self.NODES_X, self.NODES_SCALE)
            )
            self.tables[key] = np.tensordot(to_scale, values @ to_x.T, axes=1)
        return self.tables[key]

    def _in_cell(self, x: Array, scales: Array, with_grad: bool) -> Array:
        out = super()._in_cell(x, scales, with_grad)
        rest, reach = self.density.summarised(float(scales[0])).without_atoms, self.kernel.reach * scales.max()
        if ((rest.lower < x.max() + reach) & (rest.upper > x.min() - reach)).any():  # too far out for atoms
            for k, scale in enumerate(scales.tolist()):
                out[0, k] += rest.integrate(self.kernel.profile, x, scale, self.decay, self.farthest)
                if with_grad:
                    out[1, k] += rest.integrate(self.kernel.slope, x, scale, self.decay, self.farthest) / scale
        return out


class _Discrete(_Sums):
    """Exact sums over the values of a discrete distribution."""

    def __init__(self, kernel: ProductKernel, scale: Scale, marginal: DiscreteMarginal) -> None:
        self.kernel, self.scale, self.marginal = kernel, scale, marginal

    def _atoms(self, scale: float) -> tuple[Array, Array]:
        return self.marginal.values, self.marginal.masses

    def variance(self) -> Scale:
        t, w = self.marginal.values, self.marginal.masses
        scales = np.reshape(self.scale, (-1, 1))
        return np.reshape(_Discrete(self.kernel, scales, self.marginal).mean(t) @ w, np.shape(self.scale))


class _Categorical(Embedding1D):
    """Sums over categories, which all have distance one: any two of them have the similarity φ(1/ℓ)."""

    def __init__(self, kernel: ProductKernel, scale: Scale, marginal: CategoricalMarginal) -> None:
        self.similarity, self.masses = kernel.profile(1 / np.asarray(scale)), marginal.masses

    def mean(self, x: Array) -> Array:
        mass = self.masses[np.clip(np.rint(x), 0, len(self.masses) - 1).astype(np.intp)]
        return np.asarray(mass + (1 - mass) * self.similarity)

    def mean_grad_x(self, x: Array) -> Array:
        return np.zeros_like(self.mean(x))

    def variance(self) -> Scale:
        same = float(self.masses @ self.masses)
        return np.asarray(same + (1 - same) * self.similarity)


class WeightedSamples(Protocol):
    """Samples with weights, which `EmpiricalEmbeddings` sum over: an `Empirical` measure is one."""

    @property
    def samples(self) -> Array:
        """The samples, shape (M, D)."""

    @property
    def weights(self) -> Array:
        """Their weights, shape (M,)."""

    @property
    def categorical(self) -> tuple[int, ...]:
        """The inputs whose values are categories."""


class EmpiricalEmbeddings:
    """Weighted sums over samples, by blocks of the kernel matrices, for K sets of lengthscales (K, D)."""

    def __init__(self, kernel: ProductKernel, scales: Array, measure: WeightedSamples) -> None:
        self.kernel, self.scales, self.samples, self.weights = kernel, scales, measure.samples, measure.weights
        self.categorical = measure.categorical

    def mean(self, X: Array) -> Array:
        """Return μ_k(X_i), shape (K, n)."""
        out = np.zeros((len(self.scales), len(X)))
        for points, block, samples, weights in self._blocks(X):
            kernels = self._kernels(samples, block)
            out[:, points] += np.einsum("kji,j->ki", kernels, weights)
        return out

    def mean_and_grad_x(self, X: Array) -> tuple[Array, Array]:
        """Return μ_k(X_i), shape (K, n), and dμ_k/dx at X_i, shape (K, n, D)."""
        means, gradients = np.zeros((len(self.scales), len(X))), np.zeros((len(self.scales), *X.shape))
        for points, block, samples, weights in self._blocks(X):
            kernels = self._kernels(samples, block)
            means[:, points] += np.einsum("kji,j->ki", kernels, weights)  # identical to `mean` to the last bit
            kernels *= weights[:, None]
            gradients[:, points] += self.kernel.contract_grad_x_batch(block, samples, self.scales, kernels)
        return means, gradients

    @cached_property
    def variances(self) -> Array:
        """The double integrals v_k, shape (K,)."""
        pairs = list(self._half_of_pairs())
        if len(pairs) == 1:
            return self._block_sums(*pairs[0])
        # Blocks are summed in a fixed order, whichever core evaluates them, so that results are reproducible.
        with ThreadPoolExecutor() as pool:
            return np.asarray(sum(pool.map(lambda pair: self._block_sums(*pair), pairs)))

    def _kernels(self, X: Array, Y: Array) -> Array:
        """Return κ_k(X_i, Y_j), shape (K, n, m)."""
        values = self.kernel.values_batch(self.kernel.features(differences(X, Y, self.categorical)), self.scales)
        return values.reshape(len(self.scales), len(X), len(Y))

    def _block_sums(self, X: Array, w: Array, Y: Array, v: Array) -> Array:
        """Return Σ_ij w_i κ_k(X_i, Y_j) v_j, shape (K,)."""
        features = self.kernel.features(differences(X, Y, self.categorical))
        products = np.multiply.outer(w, v).ravel()
        if X is Y:  # each pair counts in its mirror image, and κ is one on the diagonal
            above = np.flatnonzero(np.tri(len(X), k=-1, dtype=bool).T.ravel())
            features, products = features[:, above], 2 * products[above]
        out, step = np.full(len(self.scales), w @ v if X is Y else 0.0), max(1, CACHED // len(self.scales))
        for i in range(0, len(products), step):
            values = self.kernel.values_batch(features[:, i : i + step], self.scales)
            out += np.einsum("ki,i->k", values, products[i : i + step])
        return out

    def _blocks(self, X: Array) -> Iterator[tuple[slice, Array, Array, Array]]:
        """Yield some of the points, as a slice and as an array, with some of the samples and their weights."""
        size = max(1, BLOCK // (len(self.scales) + X.shape[1]))  # entries of a block, per set of lengthscales
        columns = min(len(self.samples), size)
        rows = max(1, size // columns)
        for i in range(0, len(X), rows):
            for j in range(0, len(self.samples), columns):
                points, some = slice(i, i + rows), slice(j, j + columns)
                yield points, X[points], self.samples[some], self.weights[some]

    def _half_of_pairs(self) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Yield blocks (X, w, Y, v) of all pairs of samples; pairs below the diagonal count in their mirror image."""
        size = int(np.sqrt(BLOCK))
        starts = range(0, len(self.samples), size)
        for i in starts:
            for j in starts[i // size :]:
                X, Y = self.samples[i : i + size], self.samples[j : j + size]
                w, v = self.weights[i : i + size], self.weights[j : j + size]
                yield (X, w, X, w) if i == j else (X, w, Y, 2 * v)
