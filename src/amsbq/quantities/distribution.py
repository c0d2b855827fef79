"""`OutputDistribution`: the distribution of the output of the primary source, under the distribution of its inputs.

Sample paths are evaluated at one set of n low-discrepancy points. What that set has too much or too little of is
corrected with the posterior means, which take less work and are evaluated at R larger sets as well: a quantity q of
path j of posterior k is

    q_0(f_kj) + q̄(m_k) - q_0(m_k)

by the first set, with the average q̄ over the R larger ones. The spread of q(m_k) between these is in the error bar.
For independent inputs, the variance comes from rules for each input instead (`effects`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from ..inference.belief import Belief
from ..inference.estimate import Estimate
from ..measures.base import Measure
from ..outputs.estimates import Estimates
from ..ranges.belief import AveragedBelief, RangedBelief
from ..validation import Array, number, numbers
from .effects import effects
from .ensemble import ARCSINE, LINEAR, ROOT, Ensemble, Scale, set_average
from .paths import Paths, posterior_means


@dataclass(frozen=True)
class DistributionSettings:
    """Sizes of point sets and grids."""

    points: int = 2048  #: at which paths are evaluated: a second or two, and 10 MB for all paths
    sets: int = 8  #: at which posterior means are evaluated
    most_points: int = 8192  #: of each of these sets, and fewer if that takes more covariances than so many
    most_covariances: int = 30_000_000
    most_bins: int = 2000  #: in which values are counted for densities
    #: probabilities of the tails beyond which quantiles are refused: a set has no points there
    smallest_tail: float = 1e-3


SETTINGS = DistributionSettings()


class OutputDistribution:
    """The distribution of the output of the primary source, without noise, under the distribution of the inputs.

    Every number of it is an `Estimate`, with what is not known of the source in its error bar. Made by
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

    def __init__(self, belief: Belief, measure: Measure) -> None:
        self._ranged = belief if isinstance(belief, RangedBelief) else None
        self._ensemble, self._measure = Ensemble.of(belief if self._ranged is None else self._ranged.latent), measure

    def variance(self) -> Estimate:
        """Return the variance of the output."""
        found = self._ensemble.of_draws(self._unit**2 * self._variances, ROOT)
        return self._average(found, OutputDistribution.variance)

    def std(self) -> Estimate:
        """Return the standard deviation of the output: how much it varies because the inputs do."""
        positive = Scale(LINEAR.to, LINEAR.back, ROOT.ends)
        found = self._ensemble.of_draws(self._unit * np.sqrt(self._variances), positive)
        return self._average(found, OutputDistribution.std)

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
        found = self._estimate(lambda f: np.mean((f > low) & (f < high), axis=-1), ARCSINE)
        return self._average(found, lambda plain: plain.probability(above, below))

    def quantile(self, p: float) -> Estimate:
        """Return the number below which the output is with probability p, from 0.001 to 0.999."""
        tail = SETTINGS.smallest_tail
        if not tail <= (share := number(p, "p")) <= 1 - tail:
            raise ValueError(f"p must be between {tail} and {1 - tail}, got {p!r}")
        ends = LINEAR.ends if self._ranged is None else self._ranged.ends
        found = self._estimate(lambda f: np.quantile(f, share, axis=-1), LINEAR._replace(ends=ends))
        return self._average(found, lambda plain: plain.quantile(p))

    def cdf(self, grid: ArrayLike) -> Estimates:
        """Return the probabilities that the output is at most each number of a grid (m,)."""
        t = np.atleast_1d(numbers(grid, "grid"))
        found = [self._estimate(partial(_share_up_to, end=end), ARCSINE) for end in t]
        return self._averages(found, lambda plain: plain.cdf(t))

    def density(self, grid: ArrayLike) -> Estimates:
        """Return the probability density of the output at each number of a grid (m,), in 1 / (units of the output).

        It is smoothed by a Gaussian kernel, with Silverman's width for the number of points.
        """
        t, width = np.atleast_1d(numbers(grid, "grid")), self._smoothing
        of_sets = [_smoothed_densities(f, t, width) for f in (self._values, self._means_at_paths, self._means)]
        at_each = zip(*(np.moveaxis(densities, -1, 0) for densities in of_sets), strict=True)
        found = [self._ensemble.of_draws(_corrected(*parts), ROOT) for parts in at_each]
        return self._averages(found, lambda plain: plain.density(t))

    def grid(self, n: int = 41) -> Array:
        """Return n equidistant values of the output that cover all but its outermost hundredths."""
        low, high = (np.median(np.quantile(self._means_at_paths, p, axis=-1)) for p in (0.005, 0.995))
        margin = 0.05 * (high - low) or 0.5 * max(abs(low), 1.0)
        return np.linspace(low - margin, high + margin, n)

    def __str__(self) -> str:
        rows = [("std", self.std())] + [(f"{p:.0%} quantile", self.quantile(p)) for p in (0.05, 0.5, 0.95)]
        return "\n".join(f"{name + ':':14} {value.summary()}" for name, value in rows)

    __repr__ = __str__

    @cached_property
    def _paths(self) -> Paths:
        return Paths.draw(self._ensemble, self._measure)

    @cached_property
    def _points(self) -> Array:
        """The points at which paths are evaluated, shape (n, D)."""
        return self._measure.sobol(SETTINGS.points, 1)

    @cached_property
    def _means_at_paths(self) -> Array:
        """The posterior means at the same points in the units of the user, shape (K, n)."""
        return self._in_user_units(posterior_means(self._ensemble).values(self._points)[:, 0])

    @cached_property
    def _means(self) -> Array:
        """The posterior means at R larger sets of points in the units of the user, shape (K, R, n')."""
        of_point = SETTINGS.sets * len(self._ensemble.weights) * len(self._ensemble.data.y)
        allowed = 1 << (SETTINGS.most_covariances // of_point).bit_length() >> 1
        n = min(max(allowed, SETTINGS.points // 2), SETTINGS.most_points)
        sets = [self._measure.sobol(n, seed + 2) for seed in range(SETTINGS.sets)]
        values = posterior_means(self._ensemble).values(np.concatenate(sets))
        return self._in_user_units(values).reshape(len(values), len(sets), -1)

    @cached_property
    def _values(self) -> Array:
        """All paths at the first set in the units of the user, shape (K, J, n)."""
        X = self._points
        values, rest = self._paths.functions.values(X), np.sqrt(self._paths.residual_variances(X))
        values += rest[:, None] * np.random.default_rng(0).normal(size=values.shape)
        return self._in_user_units(values)

    def _in_user_units(self, values: Array) -> Array:
        """Return values of the primary source in the units of the user."""
        return self._ensemble.in_user_units(values) if self._ranged is None else self._ranged.values_of(0, values)

    @property
    def _unit(self) -> float:
        """The unit of `_variances`, of which squares are finite."""
        return self._ensemble.spread if self._ranged is None else self._ranged.transform.unit

    @cached_property
    def _variances(self) -> Array:
        """The variance of each path in that unit, shape (K, J)."""
        if self._measure.marginals is None or self._ranged is not None:
            unit = self._unit
            return np.maximum(self._draws(lambda f: np.var(f / unit, axis=-1)), 0.0)
        return effects(self._paths, self._measure, []).variances

    @cached_property
    def _smoothing(self) -> float:
        """The width of the kernel by which densities are smoothed."""
        f = self._values[:, :: SETTINGS.sets].ravel()
        quartiles = np.quantile(f, [0.25, 0.75])
        spread = min(float(np.std(f)), float(np.diff(quartiles)[0]) / 1.349) or float(np.std(f))
        return 0.9 * spread * SETTINGS.points**-0.2 or np.finfo(float).eps * max(abs(float(f[0])), 1.0)

    def _draws(self, quantity: Callable[[Array], Array]) -> Array:
        """Return a quantity of each path, shape (K, J), with the error of the point sets; it maps (..., n) to (...)."""
        return _corrected(*(quantity(f) for f in (self._values, self._means_at_paths, self._means)))

    def _average(self, found: Estimate, of_plain: Callable[[OutputDistribution], Estimate]) -> Estimate:
        """Return what was found of a quantity; if a range is only assumed, averaged with values as they are."""
        return self._averages([found], lambda plain: [of_plain(plain)])[0]

    def _averages(
        self, found: Sequence[Estimate], of_plain: Callable[[OutputDistribution], Sequence[Estimate]]
    ) -> Estimates:
        if not isinstance(self._ranged, AveragedBelief):
            return Estimates(found)
        return Estimates(list(map(self._ranged.average, found, of_plain(self._plain))))

    @cached_property
    def _plain(self) -> OutputDistribution:
        """The distribution by values as they are, where a range is only assumed."""
        assert isinstance(self._ranged, AveragedBelief)
        return OutputDistribution(self._ranged.plain, self._measure)

    def _estimate(self, quantity: Callable[[Array], Array], scale: Scale) -> Estimate:
        return self._ensemble.of_draws(self._draws(quantity), scale)


def _share_up_to(f: Array, end: float) -> Array:
    """Return the share of values (..., n) that are at most ``end``."""
    return np.asarray(np.mean(f <= end, axis=-1))


def _corrected(draws: Array, of_means: Array, by_set: Array) -> Array:
    """Return a quantity of paths (K, J), corrected by that of the means at the same points (K,) and R sets (K, R)."""
    corrections = np.repeat((by_set - of_means[:, None])[:, None], draws.shape[1], axis=1)
    return draws + set_average(corrections)


def _smoothed_densities(f: Array, t: Array, width: float) -> Array:
    """Return the density of values (..., n) at each t_i by Gaussian kernels of a given width, shape (..., m).

    Values are counted in bins of a quarter of that width first: a kernel for each of them would take minutes.
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
