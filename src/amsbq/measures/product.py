"""product."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from ..validation import Array, brief, read_only
from .base import TAIL, Measure, _is_list
from .distributions import _continuous, describe
from .marginals import NumericMarginal, UniformMarginal, _marginal


class Product(Measure):
    """Independent inputs, each with a continuous scipy.stats distribution of its own.

    Normal and uniform marginals are integrated in closed form, all others by a rule that is prepared here, once.

    >>> from scipy import stats
    >>> Product([stats.gamma(5, loc=1, scale=4), stats.uniform(0, 1)]).bounds
    array([[ 1., inf],
           [ 0.,  1.]])
    """

    def __init__(self, distributions: Sequence[Any]) -> None:
        if not _is_list(distributions) or not distributions:
            raise TypeError(
                f"Product takes a non-empty list of scipy.stats distributions, got {brief(distributions)}; "
                "for a single one write Product([distribution])"
            )
        self.distributions = tuple(_continuous(d, f"distributions[{i}]") for i, d in enumerate(distributions))
        self.dim = len(self.distributions)
        self.bounds = read_only(np.array([d.support() for d in self.distributions], dtype=float))
        self.marginals = tuple(_marginal(d) for d in self.distributions)
        self.width = read_only(2 * np.array([float(d.ppf(0.75) - d.ppf(0.25)) for d in self.distributions]))

    def __repr__(self) -> str:
        return f"Product([{', '.join(describe(d) for d in self.distributions)}])"

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return np.column_stack([d.rvs(size=n, random_state=rng) for d in self.distributions])

    @cached_property
    def reach(self) -> Array:
        ends = np.array([(d.ppf(TAIL), d.isf(TAIL)) for d in self.distributions])
        flat = np.array([isinstance(marginal, UniformMarginal) for marginal in self.marginals or ()])
        ends = np.where(flat[:, None], self.bounds, ends)
        return read_only((ends - self.median[:, None]) / self.width[:, None])

    def for_learning(self) -> Measure:
        return self._prepared

    @cached_property
    def _prepared(self) -> Product:
        other = copy(self)
        other.marginals = tuple(m.tabulated if isinstance(m, NumericMarginal) else m for m in self.marginals or ())
        other.__dict__["_prepared"] = other
        return other

    def from_cube(self, U: Array) -> Array:
        return np.column_stack([d.ppf(u) for d, u in zip(self.distributions, U.T, strict=True)])

    def over(self, inputs: Sequence[int]) -> Product:
        other = object.__new__(Product)
        other.distributions = tuple(self.distributions[d] for d in inputs)
        other.marginals = tuple((self.marginals or ())[d] for d in inputs)  # they are much work
        other.dim, other.bounds, other.width = len(inputs), self.bounds[list(inputs)], self.width[list(inputs)]
        return other
