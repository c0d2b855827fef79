"""Measures made of others: `Transformed`, a function; `Mixture`, one of several; `Independent`, all side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..validation import Array, brief, non_negative, numbers, read_only
from .base import SETTINGS, Measure, is_list
from .empirical import Empirical

#: Rounding error that the sum of the weights of a mixture may have.
WEIGHT_TOLERANCE = 1e-9
#: Points of a mixture that tell its scales and its range.
N_CLOUD = 4096


class Transformed(Measure):
    """Inputs that are a function of others: a random field of its coefficients, ratios, rotations.

    Locations are those of ``base``: what is asked and told, sampled, plotted and modelled. Sources, and functions for
    their cost, are called with ``function(x)``.

    Parameters
    ----------
    base : measure, or anything that `as_measure` takes
        The distribution of the inputs of the function.
    function : callable
        Called with x of shape (D,); what it returns is what sources are called with, an array of any shape.

    Examples
    --------
    >>> import amsbq
    >>> ratio = amsbq.Transformed(amsbq.Uniform([0, 1], [1, 2]), lambda x: np.array([x[0] / x[1]]))
    >>> round(amsbq.integrate(lambda z: z[0], ratio, budget=8).mean, 2)
    0.35
    """

    def __init__(self, base: Measure, function: Callable[[Array], Any]) -> None:
        if not isinstance(base, Measure):
            raise TypeError(f"base must be a measure, got {brief(base)}; amsbq.as_measure makes one of a list")
        if not callable(function):
            raise TypeError(f"function must be callable with x of shape (D,), got {brief(function)}")
        if base.function is not None:
            raise TypeError("base is transformed already: give one function that does both")
        self.base, self.function = base, function
        self.dim, self.bounds, self.width, self.marginals = base.dim, base.bounds, base.width, base.marginals

    def __repr__(self) -> str:
        return f"Transformed({self.base!r}, {_function_name(self.function)})"

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return self.base.sample(n, rng)

    def from_cube(self, U: Array) -> Array:
        """Map points U (n, D) of the unit cube to points of the base, shape (n, D): uniform points become draws."""
        return self.base.from_cube(U)

    @property
    def axes(self) -> Array:
        """Matrix of whitened coordinates u of the base, shape (D, D)."""
        return self.base.axes

    @property
    def reach(self) -> Array:
        """Box in which locations are searched, in whitened coordinates u, shape (D, 2)."""
        return self.base.reach

    @property
    def discrete(self) -> tuple[int, ...]:
        """The inputs of the base that have isolated values."""
        return self.base.discrete

    @property
    def categorical(self) -> tuple[int, ...]:
        """The inputs of the base whose values are categories."""
        return self.base.categorical

    def nearest(self, X: Array) -> Array:
        """Return the nearest locations (n, D) that exist."""
        return self.base.nearest(X)

    @property
    def latent(self) -> Measure:
        """The measure in whose coordinates models live: that of the base."""
        return self.base.latent

    def to_latent(self, X: Array) -> Array:
        """Return the coordinates (n, D) of locations X in the measure `latent`."""
        return self.base.to_latent(X)

    def latent_slopes(self, X: Array) -> Array | None:
        """Return the derivatives (n, D) of `to_latent`, each by its own input; None if they are all one."""
        return self.base.latent_slopes(X)

    def for_learning(self) -> Measure:
        """Return the base for use with many lengthscales."""
        return self.base.for_learning()

    def cautions(self, X: Array) -> list[str]:
        """Return a sentence for each input of the base whose error bar may be too small."""
        return self.base.cautions(X)

    def check_points(self, X: ArrayLike, name: str = "X") -> Array:
        """Return X as an (n, D) array; ValueError if a row is outside the support of the base."""
        return self.base.check_points(X, name)

    def over(self, inputs: Sequence[int]) -> Measure:
        """Return the marginal distribution of some of the inputs of the base."""
        return self.base.over(inputs)

    def to_dict(self) -> dict[str, Any]:
        """Return the class, the base, and the name of the function."""
        return {"class": "Transformed", "base": self.base.to_dict(), "function": _function_name(self.function)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Transformed:
        """Return the measure that `to_dict` wrote, with its base rebuilt: all but the function, which is not stored."""
        return cls(content["base"], _NotStored(content["function"]))


class Mixture(Measure):
    """A mixture: with given probabilities, the inputs have one or another distribution.

    Parameters
    ----------
    components : sequence of measures
        Of the same number of inputs: `Uniform`, `Gaussian`, `Product` of continuous inputs, or `Empirical`.
    weights : sequence of float
        The probability of each; they sum to one.

    Examples
    --------
    >>> import amsbq
    >>> Mixture([amsbq.Gaussian([0, 0], 1.0), amsbq.Uniform([5, 5], 6)], [0.9, 0.1]).bounds
    array([[-inf,  inf],
           [-inf,  inf]])
    """

    marginals = None
    _whole: Mixture | None = None

    def __init__(self, components: Sequence[Measure], weights: ArrayLike) -> None:
        if not is_list(components) or not components or not all(isinstance(c, Measure) for c in components):
            raise TypeError(f"components must be a non-empty list of measures, got {brief(components)}")
        if len(dims := {c.dim for c in components}) > 1:
            raise ValueError(f"components must have the same number of inputs, got {sorted(dims)}")
        for c in components:
            if c.latent is not c or c.discrete or c.function is not None or isinstance(c, Mixture):
                raise TypeError(f"{brief(c)} cannot be part of a mixture: give samples, as in Empirical.sampled(...)")
        masses = non_negative(numbers(weights, "weights"), "weights")
        if masses.shape != (len(components),):
            raise ValueError(f"weights must be {len(components)} numbers, one per component, got shape {masses.shape}")
        if abs(masses.sum() - 1) > WEIGHT_TOLERANCE:
            raise ValueError(f"weights must sum to 1, got {brief(masses)}, which sum to {masses.sum():.9g}")
        self.components, self.weights, self.dim = tuple(components), read_only(masses), components[0].dim
        bounds = np.array([c.bounds for c in components])
        self.bounds = read_only(np.stack([bounds[:, :, 0].min(axis=0), bounds[:, :, 1].max(axis=0)], axis=1))
        self._cloud = Empirical(self.sobol(N_CLOUD, 0))
        self.width = self._cloud.width

    def __repr__(self) -> str:
        return f"Mixture([{', '.join(map(repr, self.components))}], {self.weights.tolist()})"

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return self.from_cube(
            rng.uniform(SETTINGS.smallest_probability, 1 - SETTINGS.smallest_probability, (n, self.dim))
        )

    def from_cube(self, U: Array) -> Array:
        """Map points U (n, D) of the unit cube to points of the mixture; the first coordinate chooses the component."""
        ends = np.cumsum(self.weights)
        chosen = np.minimum(np.searchsorted(ends, U[:, 0]), len(ends) - 1)
        X, V = np.empty_like(U), U.copy()
        V[:, 0] = (U[:, 0] - ends[chosen] + self.weights[chosen]) / self.weights[chosen]
        V = np.clip(V, SETTINGS.smallest_probability, 1 - SETTINGS.smallest_probability)
        for i, component in enumerate(self.components):
            X[chosen == i] = component.from_cube(V[chosen == i])
        return X

    @property
    def axes(self) -> Array:
        """Scaled Cholesky factor of the covariance of the mixture, shape (D, D): x = median + axes @ u."""
        return self._cloud.axes

    @cached_property
    def reach(self) -> Array:
        """Box around points of the mixture, in whitened coordinates u, shape (D, 2)."""
        u = np.linalg.solve(self.axes, (self._cloud.samples - self.median).T)
        return read_only(np.quantile(u, [SETTINGS.tail_probability, 1 - SETTINGS.tail_probability], axis=1).T)

    def cautions(self, X: Array) -> list[str]:
        """Return a sentence for each input whose error bar may be too small, given observations at X (n, D)."""
        return self._cloud.cautions(X)

    def over(self, inputs: Sequence[int]) -> Mixture:
        """Return the mixture of some of the inputs."""
        return Mixture([c.over(inputs) for c in self.components], self.weights)

    @property
    def whole(self) -> Mixture:
        """The mixture with all samples of its components, if this one is made to learn by."""
        return self._whole or self

    def for_learning(self) -> Mixture:
        """Return the mixture of the components for use with many lengthscales."""
        if self._whole is not None:
            return self
        other = copy(self)
        other.components, other._whole = tuple(c.for_learning() for c in self.components), self
        return other

    def to_dict(self) -> dict[str, Any]:
        """Return the class, the components and their weights."""
        components = [c.to_dict() for c in self.whole.components]
        return {"class": "Mixture", "components": components, "weights": self.weights.tolist()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Mixture:
        """Return the mixture that `to_dict` wrote, with its components rebuilt."""
        return cls(content["components"], content["weights"])


class Independent(Measure):
    """Groups of inputs that are independent of each other; within a group they may depend on each other.

    Parameters
    ----------
    measures : sequence of measures
        The joint distribution of each group.
    columns : sequence of sequences of int, optional
        The numbers of the inputs of each group; by default the groups follow each other.

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
        """Return what a method of each group makes of its columns of X (n, D), shape (n, D)."""
        pairs = zip(self.measures, self.columns, strict=True)
        return self._joined([getattr(m, method)(X[:, group]) for m, group in pairs])

    def _inputs(self, name: str) -> tuple[int, ...]:
        """Return the inputs that a property of each group names."""
        pairs = zip(self.measures, self.columns, strict=True)
        return tuple(sorted(group[d] for m, group in pairs for d in getattr(m, name)))

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        return self._joined([m.sample(n, rng) for m in self.measures])

    def from_cube(self, U: Array) -> Array:
        """Map points U (n, D) of the unit cube to points of the measure, shape (n, D): uniform points become draws."""
        return self._map("from_cube", U)

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
    def categorical(self) -> tuple[int, ...]:
        """The inputs whose values are categories."""
        return self._inputs("categorical")

    def nearest(self, X: Array) -> Array:
        """Return the nearest locations (n, D) that exist."""
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
        """Return the derivatives (n, D) of `to_latent`, each by its own input."""
        slopes = [m.latent_slopes(X[:, group]) for m, group in zip(self.measures, self.columns, strict=True)]
        return self._joined([np.ones(1) if slope is None else slope for slope in slopes], len(X))

    @property
    def whole(self) -> Independent:
        """The measure with all samples of its groups, if this one is made to learn by."""
        if all(m.whole is m for m in self.measures):
            return self
        return Independent([m.whole for m in self.measures], self.columns)

    @cached_property
    def _to_learn_by(self) -> Independent:
        other = Independent([m.for_learning() for m in self.measures], self.columns)
        other.__dict__["_to_learn_by"] = other
        return other

    def for_learning(self) -> Independent:
        """Return the measure of the groups for use with many lengthscales."""
        return self._to_learn_by

    def cautions(self, X: Array) -> list[str]:
        """Return a sentence for each input whose error bar may be too small, given observations at X (n, D)."""
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
        """Return the marginal distribution of some of the inputs."""
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
        """Return the measure that `to_dict` wrote, with its groups rebuilt."""
        return cls(content["measures"], content["columns"])


class _NotStored:
    """The function of a `Transformed` measure that was read from a file."""

    def __init__(self, name: str) -> None:
        self.__qualname__ = name

    def __call__(self, x: Array) -> Any:
        raise ValueError(f"the function {self.__qualname__} of the inputs is not stored: give the measure again")


def _function_name(function: Any) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)
