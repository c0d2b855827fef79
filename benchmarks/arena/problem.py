"""`Problem`: a primary source whose integral is known, secondary ones, and what their evaluations cost.

Every source is a function of points (n, D) that returns values (n,). All costs are in units of the primary one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy import stats

import amsbq
from amsbq.validation import Array

Function: TypeAlias = Callable[[Array], Array]


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation of the primary source under the measure, and how well they are known."""

    mean: float
    std: float
    error: float = 0.0  # of the mean, in standard deviations: the difference between two rules; 0 for closed forms


@dataclass(frozen=True)
class Noise:
    """Independent Gaussian noise on the values of a source."""

    std: float  # in units of the source
    known: bool = True  # whether each observation comes with its variance


@dataclass(frozen=True)
class Problem:
    """A primary source with a known integral, and secondary ones; all are functions of points (n, D).

    Attributes
    ----------
    title : str
        What it is, in a few words.
    marginals : sequence of frozen scipy.stats distributions, or a measure
        The distribution of the inputs.
    functions : tuple of functions
        The primary source, then the secondary ones; from the finest to the coarsest if they are ordered.
    costs : tuple of float or function
        Cost of an evaluation: a number, or a function of points (n, D).
    moments : function without arguments
        Returns `Moments` of the primary source by a method that shares no code with the library.
    noise : tuple of Noise or None
        Noise of each source; empty if there is none.
    ordered : bool
        Whether the sources are levels of one discretisation.
    seen : bool
        Whether constants of the library were once chosen on this problem or one like it.
    family, index
        Where it stands in the arena: set by `benchmarks.arena.families`.
    """

    title: str
    marginals: Any
    functions: tuple[Function, ...]
    costs: tuple[float | Function, ...]
    moments: Callable[[], Moments]
    noise: tuple[Noise | None, ...] = ()
    ordered: bool = False
    seen: bool = False
    family: str = ""
    index: int = 0

    def __post_init__(self) -> None:
        if len(self.functions) != len(self.costs) or len(self.noise) not in (0, len(self.costs)):
            raise ValueError(f"{self.title}: sources, costs and noise differ in number")

    @property
    def key(self) -> str:
        """Its name in files: family and number."""
        return f"{self.family}/{self.index}"

    @property
    def dim(self) -> int:
        """The number of inputs."""
        return self.marginals.dim if isinstance(self.marginals, amsbq.Measure) else len(self.marginals)

    @cached_property
    def measure(self) -> amsbq.Measure:
        """The distribution of the inputs, as a user would write it."""
        if isinstance(self.marginals, amsbq.Measure):
            return self.marginals
        kinds = {marginal.dist.name for marginal in self.marginals}
        if kinds == {"uniform"}:
            return amsbq.Uniform(*np.transpose([marginal.support() for marginal in self.marginals]))
        if kinds == {"norm"}:
            return amsbq.Gaussian(
                [marginal.mean() for marginal in self.marginals], [marginal.var() for marginal in self.marginals]
            )
        return amsbq.Product(list(self.marginals))

    @property
    def varying_costs(self) -> bool:
        """Whether a cost depends on the input."""
        return any(callable(cost) for cost in self.costs)

    def cost_of(self, source: int, X: Array) -> Array:
        """Return the cost (n,) of evaluating a source at each X_i."""
        cost = self.costs[source]
        return cost(X) if callable(cost) else np.full(len(X), cost)

    def sources(self, seed: int) -> list[amsbq.Source]:
        """Return the sources for the library; the noise is drawn by the seed."""
        noise = self.noise or (None,) * len(self.functions)
        return [
            amsbq.Source(
                _Scalar(getattr(function, "outer", function), level, seed, number),
                cost=_ScalarCost(cost) if callable(cost) else cost,
                noise="learn" if level is not None and not level.known else 0.0,
                name=f"source {number}",
            )
            for number, (function, cost, level) in enumerate(zip(self.functions, self.costs, noise, strict=True))
        ]

    def fingerprint(self, truth: Moments) -> str:
        """Return a short hash of the values and costs of all sources at a few points, the truth and the noise.

        Results are kept for as long as it stays the same: by values, so that they outlive a rearrangement of the code.
        """
        X = self.measure.sample(4, np.random.default_rng(7))
        numbers = [f(X) for f in self.functions] + [self.cost_of(source, X) for source in range(len(self.costs))]
        noise = [None if level is None else (level.std, level.known) for level in self.noise]
        text = json.dumps([[f"{v:.8e}" for v in [*np.ravel(numbers), truth.mean, truth.std]], noise])
        return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class After:
    """A function of what another one makes of points (n, D): sources under a `Transformed` measure are such."""

    outer: Function  # what the library calls, with what the measure has transformed
    inner: Function

    def __call__(self, X: Array) -> Array:
        return self.outer(self.inner(X))


class _Scalar:
    """A function of one location x (D,), with the noise of its source."""

    def __init__(self, function: Function, noise: Noise | None, seed: int, number: int) -> None:
        self.function, self.noise = function, noise
        self.rng = np.random.default_rng([seed, number, 15])

    def __call__(self, x: Array) -> float | amsbq.Observation:
        value = float(self.function(x[None])[0])
        if self.noise is None:
            return value
        value += self.noise.std * self.rng.normal()
        return amsbq.Observation(value, self.noise.std**2) if self.noise.known else value


@dataclass(frozen=True)
class _ScalarCost:
    """A cost as a function of one location x (D,)."""

    function: Function

    def __call__(self, x: Array) -> float:
        return float(self.function(x[None])[0])


def unit_cube(D: int) -> list[Any]:
    """Return D uniform marginals on [0, 1]."""
    return [stats.uniform(0, 1)] * D


def numbered(family: str, members: Sequence[Problem]) -> list[Problem]:
    """Return the members of a family with their family's name and their numbers."""
    return [replace(member, family=family, index=index) for index, member in enumerate(members)]
