"""`Problem`: a primary source with a known integral, secondary ones, and the costs of their evaluations.

Every source is a function of points (n, D) that returns values (n,). All costs are in units of the primary one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy import stats

import amsbq
from benchmarks.arena.arrays import Array

Function: TypeAlias = Callable[[Array], Array]


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation of an output of the primary source, with the error of the mean."""

    mean: float
    std: float
    error: float = 0.0  # error of the mean, in standard deviations: difference between two rules; 0 for closed forms


Draw: TypeAlias = Callable[[np.random.Generator, float], float]
Design: TypeAlias = Callable[[np.random.Generator], "tuple[Array, ...]"]


@dataclass(frozen=True)
class Noise:
    """Independent noise on the values of a source; it has mean zero, and is Gaussian unless drawn otherwise."""

    std: float  # in units of the source; on average, if it depends on the value
    known: bool = True  # whether each observation comes with its variance
    draw: Draw | None = None  # returns a noisy value, for a generator and the exact value

    def add(self, value: float, rng: np.random.Generator) -> float:
        """Return a noisy value."""
        return value + self.std * rng.normal() if self.draw is None else self.draw(rng, value)


@dataclass(frozen=True)
class Problem:
    """A primary source with a known integral, and secondary ones; all are functions of points (n, D).

    Attributes
    ----------
    title : str
        A short description.
    marginals : sequence of frozen scipy.stats distributions, or a measure
        The distribution of the inputs.
    functions : tuple of functions
        The primary source, then the secondary ones; from the finest to the coarsest if they are ordered. With several
        outputs they return values (n, M).
    costs : tuple of float or function
        Cost of an evaluation: a number, or a function of points (n, D). A source of cost 0 is called with many points.
    moments : function without arguments
        Returns `Moments` of the primary source by a method that shares no code with the library; with several outputs
        a list of them.
    noise : tuple of Noise or None
        Noise of each source; empty if there is none.
    ordered : bool
        Whether the sources are levels of one discretisation.
    knobs : tuple of dictionaries
        The fidelity of each source, for methods to which it is declared: numbers that tend to zero with the error.
    seen : bool
        Whether constants of the library were chosen on this problem or a similar one.
    added : bool
        Whether it was added to its family for validation, after 0.2.0.
    outputs : tuple of str
        Names of several outputs.
    log : bool
        Whether sources return logarithms: the truth is the logarithm of the integral, and the unit of errors is 1.
    design : function, optional
        Returns the locations (n, D) of each source, for a generator: the data are given, and nothing is chosen.
    family, index
        Its place in the arena, set by `benchmarks.arena.families`.
    """

    title: str
    marginals: Any
    functions: tuple[Function, ...]
    costs: tuple[float | Function, ...]
    moments: Callable[[], Moments]
    noise: tuple[Noise | None, ...] = ()
    ordered: bool = False
    knobs: tuple[Mapping[str, float], ...] = ()
    seen: bool = False
    added: bool = False
    outputs: tuple[str, ...] = ()
    log: bool = False
    design: Design | None = None
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

    @property
    def plain(self) -> bool:
        """Whether evaluations may be chosen, and the question is the mean of one output."""
        return not (self.outputs or self.log or self.design)

    def alone(self, output: int) -> Problem:
        """Return the problem of one of several outputs."""
        functions = tuple(_Column(function, output) for function in self.functions)
        return replace(self, functions=functions, outputs=())

    def exponential(self, log_unit: float) -> Problem:
        """Return the problem of the function itself, divided by exp(log_unit), if sources return logarithms."""
        functions = tuple(_Exponential(function, log_unit) for function in self.functions)
        return replace(self, functions=functions, log=False)

    def costing_at_least(self, cost: float) -> Problem:
        """Return the problem in which no source costs less."""
        return replace(self, costs=tuple(each if callable(each) else max(each, cost) for each in self.costs))

    def cost_of(self, source: int, X: Array) -> Array:
        """Return the cost (n,) of evaluating a source at each X_i."""
        cost = self.costs[source]
        return cost(X) if callable(cost) else np.full(len(X), cost)

    def sources(self, seed: int, declared: bool = False) -> list[amsbq.Source]:
        """Return the sources for the library, with their knobs declared or not; the noise is drawn by the seed."""
        noise = self.noise or (None,) * len(self.functions)
        knobs = self.knobs if declared else (None,) * len(self.functions)
        return [
            amsbq.Source(
                function if cost == 0 else _AtOnePoint(getattr(function, "outer", function), level, seed, number),
                cost=_ScalarCost(cost) if callable(cost) else cost,
                noise="learn" if level is not None and not level.known else 0.0,
                name=f"source {number}",
                vectorized=cost == 0,
                **({} if fidelity is None else {"fidelity": fidelity}),  # older releases lack this argument
            )
            for number, (function, cost, level, fidelity) in enumerate(
                zip(self.functions, self.costs, noise, knobs, strict=True)
            )
        ]

    def observe(self, source: int, X: Array, seed: int) -> list[amsbq.Observation]:
        """Return observations of a source at locations (n, D) of the measure; the noise is drawn by the seed."""
        noise = self.noise[source] if self.noise else None
        at = _AtOnePoint(self.functions[source], noise, seed, source)
        values = [at(x) for x in X]
        return [value if isinstance(value, amsbq.Observation) else amsbq.Observation(value) for value in values]

    def fingerprint(self, truths: Sequence[Moments]) -> str:
        """Return a short hash of the values, costs and noise of all sources at a few points, and of the truths.

        Results are kept as long as it does not change. It depends on values only, so that code may be rearranged.
        """
        X, rng = self.measure.sample(4, np.random.default_rng(7)), np.random.default_rng(8)
        numbers = [f(X) for f in self.functions] + [self.cost_of(source, X) for source in range(len(self.costs))]
        numbers += list(self.design(rng)) if self.design else []
        noise = [None if level is None else (level.std, level.known, level.add(1.0, rng)) for level in self.noise]
        numbers += [[truth.mean, truth.std] for truth in truths]
        text = json.dumps([[f"{v:.8e}" for array in numbers for v in np.ravel(array)], noise, self.log])
        return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class After:
    """A function applied to the output of another one, like sources under a `Transformed` measure."""

    outer: Function  # what the library calls, with what the measure has transformed
    inner: Function

    def __call__(self, X: Array) -> Array:
        return self.outer(self.inner(X))


@dataclass(frozen=True)
class _Column:
    """One of several outputs of a function."""

    function: Function
    output: int

    def __call__(self, X: Array) -> Array:
        return self.function(X)[:, self.output]


@dataclass(frozen=True)
class _Exponential:
    """The exponential of a function, in a unit."""

    function: Function
    log_unit: float

    def __call__(self, X: Array) -> Array:
        return np.exp(self.function(X) - self.log_unit)


class _AtOnePoint:
    """A function of one location x (D,), with the noise of its source."""

    def __init__(self, function: Function, noise: Noise | None, seed: int, number: int) -> None:
        self.function, self.noise = function, noise
        self.rng = np.random.default_rng([seed, number, 15])

    def __call__(self, x: Array) -> float | Array | amsbq.Observation:
        found = self.function(x[None])[0]
        if self.noise is None:
            return found if np.ndim(found) else float(found)
        value = self.noise.add(float(found), self.rng)
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


def added(*members: Problem) -> list[Problem]:
    """Mark members that were added to a family later, for validation."""
    return [replace(member, added=True) for member in members]


def numbered(family: str, members: Sequence[Problem]) -> list[Problem]:
    """Set the family name and number of each member of a family."""
    return [replace(member, family=family, index=index) for index, member in enumerate(members)]
