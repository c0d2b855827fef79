"""Observations prepared for learning: in standard units, and regularised if they are degenerate."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from ..common.messages import warn
from ..common.validation import Array
from ..gp.data import VALUE, Data
from ..gp.gram import DIGITS
from ..measures.base import Measure
from .locations import shares_of_spread
from .structures import Noise

#: values that differ by at most this share of their size are equal up to rounding
ROUNDING = 1e-14
#: digits of the keys by which inputs are ordered, so that rounding does not change the order
ORDERED_DIGITS = 9


@dataclass(frozen=True)
class UnitSettings:
    """When a source has another unit than the primary one."""

    #: minimum number of primary values: two may be alike by chance, and three always correlate with others
    fewest: int = 3
    #: log10 of the ratio of spreads above which units are different, with many values; and how much more is required
    #: for two sources that do not correlate, whose spreads may differ by chance: it shrinks as values are added
    different: float = 0.6
    by_chance: float = 1.9


SETTINGS = UnitSettings()


@dataclass(frozen=True)
class StandardUnits:
    """A level and a spread for each source: in standard units its observations have level zero and spread one."""

    levels: Array  # (L,)
    spreads: Array  # (L,)
    digits: int | None = DIGITS  # of standardised observations; None keeps all

    @classmethod
    def of_user(cls, n_sources: int) -> StandardUnits:
        """Return the user's units."""
        return cls(np.zeros(n_sources), np.ones(n_sources), None)

    @classmethod
    def of(
        cls,
        data: Data,
        n_sources: int,
        common: bool,
        alike: Sequence[int] = (),
        measure: Measure | None = None,
        noise: Sequence[float] = (0.0,),
    ) -> StandardUnits:
        """Return, for each source, the average of its observations as its level and their deviation as its spread.

        With a ``measure``, the spread is that over the measure, extrapolated from the locations: values of a cluster
        vary less, except for their ``noise``, a variance for each source.

        Levels and spreads that the observations of a source do not determine are those of the others. With ``common``,
        all sources have one spread, multiplied by a power of ten for sources with values of another order of magnitude,
        as in other units. Sources that are ``alike`` return the same quantity: they have the level and the unit of the
        primary source, or the average level if it has no values.
        """
        data = data.values
        unit = np.abs(data.y).max(initial=0.0) or 1.0  # squares of huge or tiny numbers would not be finite
        scaled = data.y / unit
        groups = [scaled[data.s == source] for source in range(n_sources)]
        overall = scaled.mean() if len(scaled) else 0.0
        levels = np.array([y.mean() if len(y) else overall for y in groups])
        if len(alike):
            levels[list(alike)] = levels[0] if len(groups[0]) else np.mean(levels[list(alike)])
        in_units = replace(data, y=scaled)
        others = set(range(1, n_sources)) - set(alike)
        factors = np.array([_power_of_ten(in_units, k) if common and k in others else 1.0 for k in range(n_sources)])
        counts = np.array([len(y) for y in groups])
        variances = np.array([np.var(y) if len(y) > 1 else 0.0 for y in groups])
        shares = np.ones(n_sources)
        if measure is not None:
            shares = shares_of_spread(data, measure, n_sources)
            with np.errstate(over="ignore"):
                noisy = np.minimum(np.asarray(noise) / unit / unit, variances)
            variances = noisy + (variances - noisy) / shares
        counted = shares * (counts > 1)
        pooled = np.sqrt(counted @ (variances / factors**2) / counted.sum()) if counted.any() else 0.0
        largest = np.abs(scaled / factors[data.s]).max(initial=0.0)
        if pooled <= ROUNDING * largest:  # no spread shows: the more values are equal, the less the others may differ
            pooled = (largest or 1.0) / max(len(groups[0]), 1)
        unbiased = np.sqrt(variances * counts / np.maximum(counts - 1, 1))
        spreads = np.where((counts > 2) & (not common), unbiased, pooled)
        return cls(unit * levels, unit * (factors * np.where(spreads > 1e-12 * pooled, spreads, pooled)))

    def in_user_units(self, source: int, values: Array) -> Array:
        """Return values of a source, any shape, converted from standard units."""
        return np.asarray(self.levels[source] + self.spreads[source] * values)

    def standardise(self, data: Data) -> Data:
        """Return observations in standard units."""
        unit, levels = self.spreads[data.s], np.where(data.sites.differentiated, 0.0, self.levels[data.s])
        y = (data.y - levels) / unit
        y = y if self.digits is None else np.round(y, self.digits)
        with np.errstate(over="ignore"):  # leads to the error "no hyperparameters fit" in `modes`
            return replace(data, y=y, noise_var=data.noise_var / unit / unit)


def _power_of_ten(data: Data, source: int) -> float:
    """Return the unit of a source relative to that of the primary one: 1 if their values have about the same spread.

    Primary values are compared with the nearest values of the other source.
    """
    primary, other = data.of_source(0), data.of_source(source)
    n = len(primary.y)
    if n < SETTINGS.fewest or not len(other.y):
        return 1.0
    widths = np.ptp(data.X, axis=0)
    widths = np.where(widths > 0, widths, 1.0)
    y, z = primary.y, other.y[scipy.spatial.cKDTree(other.X / widths).query(primary.X / widths)[1]]
    if is_constant(y) or is_constant(z):
        return 1.0
    larger = float(np.log10(np.std(z) / np.std(y)))
    r = abs(float(np.corrcoef(y, z)[0, 1])) if n > SETTINGS.fewest else 0.0
    by_chance = SETTINGS.by_chance * math.sqrt(max(1 - r**2, 0.0)) / (n - 1)
    return 1.0 if abs(larger) < SETTINGS.different + by_chance else 10.0 ** round(larger)


def fewest_first(data: Data, n_sources: int) -> list[int]:
    """Return all sources, the primary one first, then by their number of observations, the fewest first.

    The order does not depend on how sources are numbered, unless their observations are the same.
    """
    data = data.values
    y = StandardUnits.of(data, n_sources, common=True).standardise(data).y
    groups = [np.abs(y[data.s == source]) for source in range(n_sources)]
    keys = [(len(group), float(group.sum()), float((group**3).sum())) for group in groups]
    return [0, *sorted(range(1, n_sources), key=lambda source: keys[source])]


def inputs_in_order(data: Data, measure: Measure) -> list[int]:
    """Return all inputs in an order that does not depend on their numbers, units or directions.

    They are ordered by sums of products of squared values and squared locations, in standard units; only inputs with
    equal sums keep their order.
    """
    data, latent = data.values, measure.latent
    u = (measure.to_latent(data.X) - latent.median) / latent.width
    y = StandardUnits.of(data, int(data.s.max(initial=0)) + 1, common=False).standardise(data).y
    keys = np.round((1 + y**2) @ u**2, ORDERED_DIGITS)
    return [int(i) for i in np.argsort(keys, kind="stable")]


def noise_of_values(data: Data, noise: Sequence[Noise]) -> list[float]:
    """Return the noise variance of the values of each source; infinite if it is learned, because all may be noise."""
    reported = [data.noise_var[(data.s == source) & (data.by == VALUE)] for source in range(len(noise))]
    return [
        math.inf if level == "learn" else level + float(also.mean() if len(also) else 0.0)
        for level, also in zip(noise, reported, strict=True)
    ]


def learning(noise: Sequence[Noise], sources: Container[int]) -> list[Noise]:
    """Return the noise of each source, with "learn" for the given sources."""
    return ["learn" if source in sources else level for source, level in enumerate(noise)]


def default_names(n_sources: int) -> list[str]:
    """Return default names for unnamed sources: "source 0", "source 1" and so on."""
    return [f"source {source}" for source in range(n_sources)]


def regularised(
    data: Data, noise: Sequence[Noise], secondaries: bool, names: Sequence[str]
) -> tuple[Data, list[Noise]]:
    """Return observations and noise variances that a model can be learned from; warn if they had to be changed.

    Without ``secondaries``, only the observations of the primary source are kept.
    """
    if not secondaries:
        data, noise = data.of_source(0), noise[:1]
    noise = list(noise)
    for source in range(len(noise)):
        if noise[source] == 0.0 and spread_of_repeats(data.of_source(source)) > 0:
            warn(
                f"{names[source]} returned different values at the same input, but was declared without noise: its "
                f"noise is learned; declare noise='learn' or its variance",
            )
            noise[source] = "learn"
    primary = data.of_source(0).values.y
    if len(primary) == 0:
        warn(f"there is no observation of {names[0]}: its expected output is a guess")
    elif primary_is_constant(data):
        warn(
            f"all {len(primary)} observations of {names[0]} are equal: they do not show how much it varies, "
            "and the error bar is a guess, based on the spread of other sources or the size of the values",
        )
        data = data.rows((data.s != 0) | (data.by == VALUE))  # its derivatives are all zero, and redundant
    return data, noise


def is_constant(y: Array) -> bool:
    """Return whether all values are equal up to rounding."""
    return bool(np.ptp(y) <= ROUNDING * np.abs(y).max())


def primary_is_constant(data: Data) -> bool:
    """Return whether there are several primary values, all equal up to rounding, with zero derivatives."""
    of_primary = data.of_source(0)
    primary, slopes = of_primary.values.y, of_primary.y[of_primary.sites.differentiated]
    return len(primary) > 1 and is_constant(primary) and not slopes.any()


def too_few(data: Data) -> bool:
    """Return whether there are too few observations to determine the most probable hyperparameters.

    One primary value, or fewer observations than inputs, are explained exactly by any hyperparameters.
    """
    return int(np.count_nonzero(data.values.s == 0)) < 2 or len(data.y) < data.X.shape[1]


def warn_of_few(data: Data, name: str) -> None:
    """Warn if a model that uses the most probable θ has too few observations of its primary source, called ``name``."""
    s = data.values.s
    n = np.count_nonzero(s == 0)
    if too_few(data) and n:  # without any primary value, `regularised` warns
        warn(
            f"there are too few observations to learn how {name} varies with its inputs ({n} of it, "
            f"{len(s) - n} of others, {data.X.shape[1]} inputs): the error bar is a guess, based on the "
            "spread or the size of the values",
        )


def spread_of_repeats(data: Data) -> float:
    """Return the pooled standard deviation of noise-free values at the same location, or zero if none differ."""
    data = data.values
    exact = data.noise_var == 0
    _, inverse, counts = np.unique(data.X[exact], axis=0, return_inverse=True, return_counts=True)
    if (counts <= 1).all():
        return 0.0
    unit = np.abs(data.y).max() or 1.0  # squares of huge or tiny numbers would not be finite
    same: Array = data.y[exact] / unit
    groups = [same[inverse.ravel() == group] for group in np.flatnonzero(counts > 1)]
    squares = [np.sum((values - values.mean()) ** 2) for values in groups if np.ptp(values) > 0]
    return float(unit * np.sqrt(np.sum(squares) / np.sum(counts - 1)))
