"""`OutputDistribution`: the distribution of the primary source's output, under the distribution of its inputs.

Sample paths are evaluated at one set of n low-discrepancy points. The error of that set is corrected with the posterior
means, which are cheaper and are also evaluated at R larger sets: a quantity q of path j of posterior k is

    q_0(f_kj) + q̄(m_k) - q_0(m_k)

where q_0 is computed from the first set, and q̄ is the average over the R larger sets. The spread of q(m_k) between
these sets is part of the error bar. For independent inputs, the variance comes from rules for each input instead
(`effects`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from ..common.validation import Array, number, numbers
from .component import Component
from .effects import effects
from .estimate import Estimate
from .estimates import Estimates
from .latent import ARCSINE, LINEAR, ROOT, Scale
from .paths import Paths
from .posterior import Posterior, mixed
from .rules import set_average


@dataclass(frozen=True)
class DistributionSettings:
    """Sizes of point sets and grids."""

    points: int = 2048  #: points at which paths are evaluated: a second or two, and 10 MB for all paths
    sets: int = 8  #: larger sets, at which posterior means are evaluated
    most_points: int = 8192  #: maximum number of points of each larger set, and of covariances for all of them
    most_covariances: int = 30_000_000
    most_bins: int = 2000  #: bins in which values are counted for densities
    #: smallest tail probability of a quantile: the point sets do not reach further
    smallest_tail: float = 1e-3


SETTINGS = DistributionSettings()


class OutputDistribution:
    """The distribution of the primary source's output, without noise, under the distribution of the inputs.

    Each of its quantities is an `Estimate`, whose error bar is the uncertainty about the source. It is made by
    `Result.distribution`.

    Examples
    --------
    >>> import amsbq
    >>> from scipy import stats
    >>> result = amsbq.integrate(lambda x: 2 * x[0] + x[1], [stats.norm(), stats.norm()], budget=10)
    >>> output = result.distribution()
    >>> print(f"{output.std().mean:.2f}, {output.probability(above=3.0).mean:.2f}, {output.quantile(0.95).mean:.1f}")
    2.24, 0.09, 3.7
    """

    def __init__(self, posterior: Posterior, unit: str = "", squared: str = "") -> None:
        self.unit, self._squared = unit, squared
        self._components = posterior.components
        self._parts = [_Sampled(component) for component in self._components]

    def variance(self) -> Estimate:
        """Return the variance of the output."""
        return self._mixed([part.of_draws(part.unit**2 * part.variances, ROOT) for part in self._parts]).in_unit(
            self._squared
        )

    def std(self) -> Estimate:
        """Return the standard deviation of the output, due to the variation of the inputs."""
        positive = Scale(LINEAR.to, LINEAR.back, ROOT.ends)
        found = [part.of_draws(part.unit * np.sqrt(part.variances), positive) for part in self._parts]
        return self._mixed(found).in_unit(self.unit)

    def probability(self, above: float | None = None, below: float | None = None) -> Estimate:
        """Return the probability that the output is above a limit, below a limit, or, with both, between them."""
        if above is None and below is None:
            raise ValueError("give a limit: probability(above=...), probability(below=...), or both")
        low = -np.inf if above is None else number(above, "above")
        high = np.inf if below is None else number(below, "below")
        if not low < high:
            raise ValueError(
                f"above must be less than below: they are the ends of an interval; got {above} and {below}"
            )
        return self._estimate(lambda f: np.mean((f > low) & (f < high), axis=-1), ARCSINE)

    def quantile(self, p: float) -> Estimate:
        """Return the number below which the output lies with probability p, from 0.001 to 0.999."""
        tail = SETTINGS.smallest_tail
        if not tail <= (share := number(p, "p")) <= 1 - tail:
            raise ValueError(f"p must be between {tail} and {1 - tail}, got {p!r}")
        ends = (component.transform.ends for component in self._components)
        scales = [LINEAR._replace(ends=each) for each in ends]
        pairs = zip(self._parts, scales, strict=True)
        found = [part.estimate(lambda f: np.quantile(f, share, axis=-1), scale) for part, scale in pairs]
        return self._mixed(found).in_unit(self.unit)

    def cdf(self, grid: ArrayLike) -> Estimates:
        """Return the probabilities that the output is at most each number of a grid (m,)."""
        t = np.atleast_1d(numbers(grid, "grid"))
        return Estimates([self._estimate(partial(_share_up_to, end=end), ARCSINE) for end in t])

    def density(self, grid: ArrayLike) -> Estimates:
        """Return the probability density of the output at each value in a grid (m,), per unit of the output.

        It is smoothed by a Gaussian kernel, with Silverman's width for the number of points.
        """
        t = np.atleast_1d(numbers(grid, "grid"))
        by_part = zip(*(part.densities(t) for part in self._parts), strict=True)
        return Estimates([self._mixed(found) for found in by_part])

    def grid(self, n: int = 41) -> Array:
        """Return n equidistant values of the output that cover its central 99 %, with a margin."""
        low, high = (np.median(np.quantile(self._parts[0].means_at_paths, p, axis=-1)) for p in (0.005, 0.995))
        margin = 0.05 * (high - low) or 0.5 * max(abs(low), 1.0)
        return np.linspace(low - margin, high + margin, n)

    def __str__(self) -> str:
        rows = [("std", self.std())] + [(f"{100 * p:.0f} % quantile", self.quantile(p)) for p in (0.05, 0.5, 0.95)]
        return "\n".join(f"{name + ':':14} {value.summary()}" for name, value in rows)

    __repr__ = __str__

    def _estimate(self, quantity: Callable[[Array], Array], scale: Scale) -> Estimate:
        return self._mixed([part.estimate(quantity, scale) for part in self._parts])

    def _mixed(self, found: Sequence[Estimate]) -> Estimate:
        return mixed(self._components, found)


class _Sampled:
    """Sample paths and posterior means of a component at points of the measure, in the user's units."""

    def __init__(self, component: Component) -> None:
        self._component, self._latent, self._measure = component, component.paths.latent, component.measure
        self.unit, self.of_draws = component.unit, component.few.of_draws

    def estimate(self, quantity: Callable[[Array], Array], scale: Scale) -> Estimate:
        """Return the estimate of a quantity, a function that maps values (..., n) to (...)."""
        return self.of_draws(self._draws(quantity), scale)

    def densities(self, t: Array) -> list[Estimate]:
        """Return the estimates of the density at each t_i."""
        of_sets = [_smoothed_densities(f, t, self._smoothing) for f in (self._values, self.means_at_paths, self._means)]
        at_each = zip(*(np.moveaxis(densities, -1, 0) for densities in of_sets), strict=True)
        return [self.of_draws(_corrected(*parts), ROOT) for parts in at_each]

    @cached_property
    def variances(self) -> Array:
        """The variance of each path in `unit`, shape (K, J)."""
        if self._component.separable:
            return effects(self._component.paths, self._measure, []).variances
        return np.maximum(self._draws(lambda f: np.var(f / self.unit, axis=-1)), 0.0)

    @cached_property
    def _points(self) -> Array:
        """The points at which paths are evaluated, shape (n, D)."""
        return self._measure.sobol(SETTINGS.points, 1)

    @cached_property
    def means_at_paths(self) -> Array:
        """The posterior means at the same points, shape (K, n)."""
        values = Paths.means(self._latent).values(self._points)[:, 0]
        return self._component.values_of(self._latent.target, values, self._points)

    @cached_property
    def _means(self) -> Array:
        """The posterior means at R larger sets of points, shape (K, R, n')."""
        of_point = SETTINGS.sets * sum(len(part) * len(part.data.y) for part in self._latent.parts)
        allowed = 1 << (SETTINGS.most_covariances // of_point).bit_length() >> 1
        n = min(max(allowed, SETTINGS.points // 2), SETTINGS.most_points)
        sets = [self._measure.sobol(n, seed + 2) for seed in range(SETTINGS.sets)]
        X = np.concatenate(sets)
        values = self._component.values_of(self._latent.target, Paths.means(self._latent).values(X), X)
        return values.reshape(len(values), len(sets), -1)

    @cached_property
    def _values(self) -> Array:
        """All paths at the first set, shape (K, J, n)."""
        X, paths = self._points, self._component.paths
        values, rest = paths.values(X), np.sqrt(paths.residual_variances(X))
        values += rest[:, None] * np.random.default_rng(0).normal(size=values.shape)
        return self._component.values_of(self._latent.target, values, X)

    @cached_property
    def _smoothing(self) -> float:
        """The width of the kernel that smooths densities."""
        f = self._values[:, :: SETTINGS.sets].ravel()
        quartiles = np.quantile(f, [0.25, 0.75])
        spread = min(float(np.std(f)), float(np.diff(quartiles)[0]) / 1.349) or float(np.std(f))
        return 0.9 * spread * SETTINGS.points**-0.2 or np.finfo(float).eps * max(abs(float(f[0])), 1.0)

    def _draws(self, quantity: Callable[[Array], Array]) -> Array:
        """Return a quantity, which maps (..., n) to (...), of each path, corrected for the point set: shape (K, J)."""
        return _corrected(*(quantity(f) for f in (self._values, self.means_at_paths, self._means)))


def _share_up_to(f: Array, end: float) -> Array:
    """Return the share of values (..., n) that are at most ``end``."""
    return np.asarray(np.mean(f <= end, axis=-1))


def _corrected(draws: Array, of_means: Array, by_set: Array) -> Array:
    """Return a quantity of paths (K, J), corrected by that of the means at the same points (K,) and R sets (K, R)."""
    corrections = np.repeat((by_set - of_means[:, None])[:, None], draws.shape[1], axis=1)
    return draws + set_average(corrections)


def _smoothed_densities(f: Array, t: Array, width: float) -> Array:
    """Return the density of values (..., n) at each t_i by Gaussian kernels of a given width, shape (..., m).

    Values are first counted in bins of a quarter of that width: a kernel for each value would take minutes.
    """
    low, high = t.min() - 6 * width, t.max() + 6 * width
    bins = min(int(np.ceil((high - low) / (width / 4))), SETTINGS.most_bins)
    rows = f.reshape(-1, f.shape[-1])
    where = np.clip((rows - low) / (high - low) * bins, -1, bins).astype(int) + 1  # the first and the last are outside
    where += (bins + 2) * np.arange(len(rows))[:, None]
    counts = np.bincount(where.ravel(), minlength=len(rows) * (bins + 2)).reshape(len(rows), bins + 2)[:, 1:-1]
    centres = low + (np.arange(bins) + 0.5) * (high - low) / bins
    kernels = np.exp(-0.5 * ((centres[:, None] - t) / width) ** 2) / (width * np.sqrt(2 * np.pi) * f.shape[-1])
    return np.asarray(counts @ kernels).reshape(*f.shape[:-1], len(t))
