"""`Product`: independent inputs, each with a scipy.stats distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from ..messages import SILENCE
from ..validation import Array, brief, read_only
from .base import SETTINGS, Measure, Spread, cautions_on, is_list, shortest_length
from .distributions import (
    Distribution,
    RandomVariable,
    checked_distribution,
    describe,
    distribution_from_dict,
    distribution_to_dict,
)
from .marginals import Marginal, NumericMarginal, UniformMarginal, marginal_of


class Product(Measure):
    """Independent inputs, each with a continuous scipy.stats distribution of its own.

    Kernels are integrated in closed form against normal and uniform inputs, and numerically, to near rounding, against
    all others.

    Parameters
    ----------
    distributions : sequence of D distributions
        Frozen scipy.stats distributions, random variables of scipy 1.15 and later, or histograms (``rv_histogram``).

    Examples
    --------
    >>> from scipy import stats
    >>> Product([stats.gamma(5, loc=1, scale=4), stats.uniform(0, 1)]).bounds
    array([[ 1., inf],
           [ 0.,  1.]])
    """

    marginals: tuple[Marginal, ...]

    def __init__(self, distributions: Sequence[Distribution | RandomVariable]) -> None:
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
        pairs = zip(self.distributions, self.marginals, strict=True)
        self._spreads = tuple(_spread(distribution, marginal) for distribution, marginal in pairs)
        self.width = read_only(np.array([spread.width for spread in self._spreads]))

    def __repr__(self) -> str:
        return f"Product([{', '.join(describe(d) for d in self.distributions)}])"

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return np.column_stack([d.rvs(size=n, random_state=rng) for d in self.distributions])

    def from_cube(self, U: Array) -> Array:
        """Map points U (n, D) of the unit cube to quantiles, shape (n, D)."""
        return np.column_stack([d.ppf(u) for d, u in zip(self.distributions, U.T, strict=True)])

    def over(self, inputs: Sequence[int]) -> Product:
        """Return the product of the distributions of some of the inputs."""
        other = object.__new__(Product)  # the constructor would approximate unnamed densities again
        other.distributions = tuple(self.distributions[d] for d in inputs)
        other.marginals = tuple(self.marginals[d] for d in inputs)
        other._spreads = tuple(self._spreads[d] for d in inputs)
        other.dim, other.bounds, other.width = len(inputs), self.bounds[list(inputs)], self.width[list(inputs)]
        return other

    def to_dict(self) -> dict[str, Any]:
        """Return the class and the distributions: name and parameters, or a digest where these do not tell all."""
        return {"class": "Product", "distributions": [distribution_to_dict(d) for d in self.distributions]}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Product:
        """Return the measure that `to_dict` wrote; ValueError if only a digest of a distribution is stored."""
        return cls([distribution_from_dict(d) for d in content["distributions"]])

    def cautions(self, X: Array) -> list[str]:
        """Return a sentence for each input whose error bar may be too small, given observations at X (n, D)."""
        if not len(X):
            return []
        inputs = enumerate(zip(self.distributions, self._spreads, X.T, strict=True))
        with SILENCE, np.errstate(all="ignore"):
            found = [cautions_on(f"input {i}, {describe(d)},", spread, seen, d.cdf) for i, (d, spread, seen) in inputs]
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


def _check_spread(distributions: Sequence[Distribution]) -> None:
    """Raise ValueError if half of a distribution is at a single point."""
    for distribution in distributions:
        if not _range(distribution, 0.25) > 0:
            raise ValueError(
                f"half of {describe(distribution)} is at a single point, to rounding: leave out an input that is "
                "constant, and take the logarithm of one that spreads over so many orders of magnitude"
            )


def _spread(distribution: Distribution, marginal: Marginal) -> Spread:
    """Return ranges of a distribution."""
    tails = (0.25, SETTINGS.tail_probability, SETTINGS.far_tail_probability)
    middle, central, extreme = (_range(distribution, tail) for tail in tails)
    length = central
    if isinstance(marginal, NumericMarginal):
        density = marginal.density
        length = shortest_length(density.upper - density.lower, density.masses, SETTINGS.tail_probability)
    return Spread(middle, central, extreme, length)


def _range(distribution: Distribution, tail: float) -> float:
    """Return the range of a distribution without a tail of that probability on either side."""
    with SILENCE, np.errstate(all="ignore"):
        return float(distribution.ppf(1 - tail) - distribution.ppf(tail))
