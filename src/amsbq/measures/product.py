"""`Product`: independent inputs, each with its own distribution; `Independent`: independent groups of inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from ..common.messages import SILENCE
from ..common.validation import Array, brief, read_only
from .base import SETTINGS, MarginalMeasure, Measure, Spread, cautions_on, is_list, shortest_length
from .discrete import DiscreteDistribution
from .distributions import (
    Distribution,
    RandomVariable,
    checked_distribution,
    describe,
    distribution_from_dict,
    distribution_to_dict,
)
from .marginals import Marginal, NumericMarginal, UniformMarginal, marginal_of


class Product(MarginalMeasure):
    """Independent inputs, each with its own distribution: continuous numbers, discrete numbers or categories.

    Kernels are integrated in closed form against normal and uniform inputs, by exact sums against discrete ones, and
    numerically, to near rounding, against all others.

    Parameters
    ----------
    distributions : sequence of D distributions
        Frozen scipy.stats distributions, continuous or discrete; random variables of scipy 1.15 and later; histograms
        (``rv_histogram``); or dictionaries ``{value: probability}``. Text values are categories without an order:
        sources get their numbers, from 0 in the order of the dictionary. A discrete distribution with infinitely many
        values loses tails with a probability of 1e-13.

    Examples
    --------
    >>> from scipy import stats
    >>> Product([stats.gamma(5, loc=1, scale=4), stats.uniform(0, 1)]).bounds
    array([[ 1., inf],
           [ 0.,  1.]])
    >>> Product([stats.norm(), {1: 0.9, 4: 0.1}, {"idle": 0.3, "full": 0.7}]).sample(2, 0)[:, 1:]
    array([[1., 1.],
           [1., 1.]])
    """

    marginals: tuple[Marginal, ...]

    def __init__(self, distributions: Sequence[Distribution | RandomVariable | Mapping[Any, float]]) -> None:
        if not is_list(distributions) or not distributions:
            raise TypeError(
                f"Product takes a non-empty list of scipy.stats distributions, got {brief(distributions)}; "
                "for a single one write Product([distribution])"
            )
        self.distributions = tuple(checked_distribution(d, f"distributions[{i}]") for i, d in enumerate(distributions))
        self.dim = len(self.distributions)
        self.bounds = read_only(np.array([d.support() for d in self.distributions], dtype=float))
        _check_spread(self.distributions)
        self.marginals = tuple(marginal_of(d) for d in self.distributions)
        self._spreads = tuple(_spread(*pair) for pair in zip(self.distributions, self.marginals, strict=True))
        self.width = read_only(
            np.array([_width(*pair) for pair in zip(self.distributions, self._spreads, strict=True)])
        )

    def with_categories(self, categories: Mapping[int, tuple[str, ...]]) -> Product:
        """Return the measure with the categories of each input in the order of ``categories``."""
        if categories == self.categories:
            return self
        ordered = {d: self._discrete(d).reordered(labels) for d, labels in categories.items()}
        return Product([ordered.get(d, one) for d, one in enumerate(self.distributions)])

    def __repr__(self) -> str:
        return f"Product([{', '.join(describe(d) for d in self.distributions)}])"

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return np.column_stack([d.rvs(size=n, random_state=rng) for d in self.distributions])

    def from_cube(self, U: Array) -> Array:
        """Map points U (n, D) of the unit cube to quantiles, shape (n, D)."""
        return np.column_stack([d.ppf(u) for d, u in zip(self.distributions, U.T, strict=True)])

    def over(self, inputs: Sequence[int]) -> Product:
        """Return the product of the distributions of the given inputs."""
        other = object.__new__(Product)  # the constructor would approximate unnamed densities again
        other.distributions = tuple(self.distributions[d] for d in inputs)
        other.marginals = tuple(self.marginals[d] for d in inputs)
        other._spreads = tuple(self._spreads[d] for d in inputs)
        other.dim, other.bounds, other.width = len(inputs), self.bounds[list(inputs)], self.width[list(inputs)]
        return other

    def to_dict(self) -> dict[str, Any]:
        """Return the class and the distributions: name and parameters, or a digest if these do not define them."""
        return {"class": "Product", "distributions": [distribution_to_dict(d) for d in self.distributions]}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Product:
        """Rebuild the measure from the output of `to_dict`; raise ValueError if a distribution is only a digest."""
        return cls([distribution_from_dict(d) for d in content["distributions"]])

    def cautions(self, X: Array) -> list[str]:
        """Return a warning for each input that may make the error bar too small, given observations at X (n, D)."""
        if not len(X):
            return []
        inputs = enumerate(zip(self.distributions, self._spreads, X.T, strict=True))
        with SILENCE, np.errstate(all="ignore"):
            found = [
                cautions_on(f"input {i}, {describe(d)},", spread, seen, d.cdf)
                for i, (d, spread, seen) in inputs
                if not isinstance(d, DiscreteDistribution)
            ]
        return list(chain.from_iterable(found))

    @cached_property
    def reach(self) -> Array:
        """Box in which locations are searched, in whitened coordinates u, shape (D, 2): the support without tails."""
        tail = SETTINGS.tail_probability
        ends = np.array([(d.ppf(tail), d.isf(tail)) for d in self.distributions])
        flat = np.array([isinstance(marginal, UniformMarginal) for marginal in self.marginals])
        ends = np.where(flat[:, None], self.bounds, ends)  # a uniform input has no tails
        return read_only((ends - self.median[:, None]) / self.width[:, None])

    def for_learning(self) -> Product:
        """Return an equal measure whose kernel variances are tabulated."""
        return self._tabulated

    @cached_property
    def _tabulated(self) -> Product:
        other = copy(self)
        other.marginals = tuple(m.tabulated if isinstance(m, NumericMarginal) else m for m in self.marginals)
        other.__dict__["_tabulated"] = other
        return other


class Independent(Measure):
    """Independent groups of inputs; the inputs of a group may be dependent.

    Parameters
    ----------
    measures : sequence of measures
        The joint distribution of each group.
    columns : sequence of sequences of int, optional
        The indices of the inputs of each group; by default the groups follow each other.

    Examples
    --------
    >>> import amsbq
    >>> Independent([amsbq.Gaussian([0, 0], [[1, 0.5], [0.5, 1]]), amsbq.Product([{"idle": 0.3, "full": 0.7}])]).dim
    3
    """

    def __init__(self, measures: Sequence[Measure], columns: Sequence[Sequence[int]] | None = None) -> None:
        if not is_list(measures) or not measures or not all(isinstance(m, Measure) for m in measures):
            raise TypeError(f"measures must be a non-empty list of measures, got {brief(measures)}")
        if any(m.function is not None for m in measures):
            raise TypeError("a transformed measure cannot be one of several: transform them together")
        self.measures, self.dim = tuple(measures), sum(m.dim for m in measures)
        ends = np.cumsum([m.dim for m in measures])
        self.columns = columns or [list(range(end - m.dim, end)) for m, end in zip(measures, ends, strict=True)]
        if sorted(d for group in self.columns for d in group) != list(range(self.dim)):
            raise ValueError(f"columns must hold each of {self.dim} inputs once, got {brief(columns)}")
        self.bounds = read_only(self._joined([m.bounds.T for m in measures]).T)
        self.width = read_only(self._joined([m.width for m in measures]))
        known = [m.marginals for m in measures]
        groups = zip(self.columns, known, strict=True)
        pairs = [pair for group, some in groups for pair in zip(group, some or (), strict=False)]
        self.marginals = tuple(m for _, m in sorted(pairs, key=itemgetter(0))) if None not in known else None

    def __repr__(self) -> str:
        return f"Independent([{', '.join(map(repr, self.measures))}], {self.columns})"

    def _joined(self, parts: Sequence[Array], *shape: int) -> Array:
        """Return arrays (..., D_g) of all groups as one array (..., D)."""
        out = np.empty((*(shape or parts[0].shape[:-1]), self.dim))
        for group, part in zip(self.columns, parts, strict=True):
            out[..., group] = part
        return out

    def _map(self, method: str, X: Array) -> Array:
        """Apply a method of each group to its columns of X (n, D); return all results, shape (n, D)."""
        pairs = zip(self.measures, self.columns, strict=True)
        return self._joined([getattr(m, method)(X[:, group]) for m, group in pairs])

    def _inputs(self, name: str) -> tuple[int, ...]:
        """Return the inputs listed by a property of each group, numbered as in the whole."""
        pairs = zip(self.measures, self.columns, strict=True)
        return tuple(sorted(group[d] for m, group in pairs for d in getattr(m, name)))

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return self._joined([m.sample(n, rng) for m in self.measures])

    def from_cube(self, U: Array) -> Array:
        """Map points U (n, D) of the unit cube to points of the measure, shape (n, D): uniform points become draws."""
        return self._map("from_cube", U)

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """The mean and the standard deviation of each input, shape (D,) each."""
        mean, sd = zip(*(m.moments for m in self.measures), strict=True)
        return self._joined(mean), self._joined(sd)

    @cached_property
    def axes(self) -> Array:
        """Matrix of whitened coordinates u, shape (D, D): that of each group, and zeros between them."""
        out = np.zeros((self.dim, self.dim))
        for m, group in zip(self.measures, self.columns, strict=True):
            out[np.ix_(group, group)] = m.axes
        return read_only(out)

    @cached_property
    def reach(self) -> Array:
        """Box in which locations are searched, in whitened coordinates u, shape (D, 2)."""
        return read_only(self._joined([m.reach.T for m in self.measures]).T)

    @property
    def discrete(self) -> tuple[int, ...]:
        """The inputs that have isolated values."""
        return self._inputs("discrete")

    @property
    def categories(self) -> dict[int, tuple[str, ...]]:
        """The names of the values of each input that has categories."""
        pairs = zip(self.measures, self.columns, strict=True)
        return {int(group[d]): labels for m, group in pairs for d, labels in m.categories.items()}

    def with_categories(self, categories: Mapping[int, tuple[str, ...]]) -> Independent:
        """Return the measure with the categories of each input in the order of ``categories``."""
        own = [{k: categories[d] for k, d in enumerate(map(int, group)) if d in categories} for group in self.columns]
        return Independent([m.with_categories(some) for m, some in zip(self.measures, own, strict=True)], self.columns)

    def nearest(self, X: Array) -> Array:
        """Return the nearest valid locations (n, D)."""
        return self._map("nearest", X)

    @cached_property
    def latent(self) -> Measure:
        """The measure in whose coordinates models live."""
        if all(m.latent is m for m in self.measures):
            return self
        return Independent([m.latent for m in self.measures], self.columns)

    def to_latent(self, X: Array) -> Array:
        """Return the coordinates (n, D) of locations X in the measure `latent`."""
        return self._map("to_latent", X)

    def latent_slopes(self, X: Array) -> Array:
        """Return the derivatives (n, D) of `to_latent`, each with respect to its own input."""
        slopes = [m.latent_slopes(X[:, group]) for m, group in zip(self.measures, self.columns, strict=True)]
        return self._joined([np.ones(1) if slope is None else slope for slope in slopes], len(X))

    @property
    def resolution(self) -> float:
        """Standard error of integrals relative to the standard deviation of the output, for the worst group."""
        return max(m.resolution for m in self.measures)

    @property
    def whole(self) -> Independent:
        """The measure with all samples of its groups, if this one is for learning; otherwise the measure itself."""
        if all(m.whole is m for m in self.measures):
            return self
        return Independent([m.whole for m in self.measures], self.columns)

    @cached_property
    def _to_learn_by(self) -> Independent:
        other = Independent([m.for_learning() for m in self.measures], self.columns)
        other.__dict__["_to_learn_by"] = other
        return other

    def for_learning(self) -> Independent:
        """Return the measure of the groups for learning hyperparameters."""
        return self._to_learn_by

    def cautions(self, X: Array) -> list[str]:
        """Return a warning for each input that may make the error bar too small, given observations at X (n, D)."""
        pairs = zip(self.measures, self.columns, strict=True)
        return [sentence for m, group in pairs for sentence in m.cautions(X[:, group])]

    @cached_property
    def _widened_bounds(self) -> tuple[Array, Array]:
        lowest, highest = zip(*(m._widened_bounds for m in self.measures), strict=True)
        return self._joined(lowest), self._joined(highest)

    def accepted(self, d: int) -> str:
        """Return the values of an input in words."""
        group, m = next(pair for pair in zip(self.columns, self.measures, strict=True) if d in pair[0])
        return m.accepted(list(group).index(d))

    def over(self, inputs: Sequence[int]) -> Measure:
        """Return the marginal distribution of the given inputs."""
        chosen = [[d for d in inputs if d in group] for group in self.columns]
        groups = [(m, group, some) for m, group, some in zip(self.measures, self.columns, chosen, strict=True) if some]
        parts = [m.over([list(group).index(d) for d in some]) for m, group, some in groups]
        if len(parts) == 1:
            return parts[0]
        return Independent(parts, [[list(inputs).index(d) for d in some] for _, _, some in groups])

    def to_dict(self) -> dict[str, Any]:
        """Return the class, the groups and their inputs."""
        columns = [list(map(int, group)) for group in self.columns]
        return {"class": "Independent", "measures": [m.to_dict() for m in self.measures], "columns": columns}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Independent:
        """Rebuild the measure and its groups from the output of `to_dict`."""
        return cls(content["measures"], content["columns"])


def _check_spread(distributions: Sequence[Distribution]) -> None:
    """Raise ValueError if half of a distribution is at a single point."""
    for distribution in distributions:
        if not isinstance(distribution, DiscreteDistribution) and not _range(distribution, 0.25) > 0:
            raise ValueError(
                f"half of {describe(distribution)} is at a single point, up to rounding: omit an input that is "
                "constant, and take the logarithm of one that spreads over so many orders of magnitude"
            )


def _spread(distribution: Distribution, marginal: Marginal) -> Spread:
    """Return the ranges of a distribution, from its quantiles."""
    tails = (0.25, SETTINGS.tail_probability, SETTINGS.far_tail_probability)
    middle, central, extreme = (_range(distribution, tail) for tail in tails)
    length = central
    if isinstance(marginal, NumericMarginal):
        density = marginal.density
        length = shortest_length(density.upper - density.lower, density.masses, SETTINGS.tail_probability)
    return Spread(middle, central, extreme, length)


def _width(distribution: Distribution, spread: Spread) -> float:
    """Return the width of an input, even if half of its values are equal, or if they are categories (one apart)."""
    if not isinstance(distribution, DiscreteDistribution):
        return spread.width
    low, high = distribution.support()
    return 1.0 if distribution.labels else 2 * spread.middle or spread.central or high - low


def _range(distribution: Distribution, tail: float) -> float:
    """Return the range of a distribution, omitting a tail of that probability on either side."""
    with SILENCE, np.errstate(all="ignore"):
        return float(distribution.ppf(1 - tail) - distribution.ppf(tail))
