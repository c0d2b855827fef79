"""Measures made of others: `Transformed`, a function of one; `Mixture`, one of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..common.validation import Array, brief, non_negative, numbers, read_only
from .base import SETTINGS, Measure, inside_cube, is_list
from .empirical import Empirical

#: Rounding error that the sum of the weights of a mixture may have.
WEIGHT_TOLERANCE = 1e-9
#: Number of points from which the scales and the range of a mixture are computed.
N_CLOUD = 4096


class Transformed(Measure):
    """Inputs that are a function of others: a random field of its coefficients, ratios, rotations.

    Queries, samples, plots and models use the locations x of ``base``. Sources, and functions for their cost, are
    called with ``function(x)``.

    Parameters
    ----------
    base : measure, or anything that `as_measure` accepts
        The distribution of the inputs of the function.
    function : callable
        Called with x of shape (D,); returns the argument of the sources, an array of any shape.

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
    def categories(self) -> dict[int, tuple[str, ...]]:
        """The names of the values of each input of the base that has categories."""
        return self.base.categories

    def nearest(self, X: Array) -> Array:
        """Return the nearest valid locations (n, D)."""
        return self.base.nearest(X)

    @property
    def latent(self) -> Measure:
        """The measure in whose coordinates models live: that of the base."""
        return self.base.latent

    @property
    def resolution(self) -> float:
        """Standard deviation of the error of integrals, relative to the output's standard deviation."""
        return self.base.resolution

    def to_latent(self, X: Array) -> Array:
        """Return the coordinates (n, D) of locations X in the measure `latent`."""
        return self.base.to_latent(X)

    def latent_slopes(self, X: Array) -> Array | None:
        """Return the derivatives (n, D) of `to_latent`, each with respect to its own input; None if all are one."""
        return self.base.latent_slopes(X)

    def for_learning(self) -> Measure:
        """Return the base for learning hyperparameters."""
        return self.base.for_learning()

    def cautions(self, X: Array) -> list[str]:
        """Return a warning for each input of the base that may make the error bar too small."""
        return self.base.cautions(X)

    def check_points(self, X: ArrayLike, name: str = "X", inputs: Sequence[str] | None = None) -> Array:
        """Return X as an (n, D) array; raise ValueError if a row is outside the support of the base."""
        return self.base.check_points(X, name, inputs)

    def over(self, inputs: Sequence[int]) -> Measure:
        """Return the marginal distribution of the given inputs of the base."""
        return self.base.over(inputs)

    def to_dict(self) -> dict[str, Any]:
        """Return the class, the base, and the name of the function."""
        return {"class": "Transformed", "base": self.base.to_dict(), "function": _function_name(self.function)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Transformed:
        """Rebuild the measure from the output of `to_dict`, without the function, which is not stored."""
        return cls(content["base"], _NotStored(content["function"]))


class Mixture(Measure):
    """A mixture: with given probabilities, the inputs have one or another distribution.

    Parameters
    ----------
    components : sequence of measures
        Measures with the same number of inputs: `Uniform`, `Gaussian`, `Product` of continuous inputs, or `Empirical`.
    weights : sequence of float
        The probability of each component; they sum to one.

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
        V = inside_cube(V)
        for i, component in enumerate(self.components):
            X[chosen == i] = component.from_cube(V[chosen == i])
        return X

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """The mean and the standard deviation of each input, shape (D,) each."""
        means, sds = (np.array(each) for each in zip(*(c.moments for c in self.components), strict=True))
        mean = self.weights @ means
        return mean, np.sqrt(self.weights @ (sds**2 + (means - mean) ** 2))

    @property
    def axes(self) -> Array:
        """Scaled Cholesky factor of the covariance of the mixture, shape (D, D): x = median + axes @ u."""
        return self._cloud.axes

    @cached_property
    def reach(self) -> Array:
        """Box around points of the mixture, in whitened coordinates u, shape (D, 2)."""
        u = self.whitened(self._cloud.samples)
        return read_only(np.quantile(u, [SETTINGS.tail_probability, 1 - SETTINGS.tail_probability], axis=0).T)

    def cautions(self, X: Array) -> list[str]:
        """Return a warning for each input that may make the error bar too small, given observations at X (n, D)."""
        return self._cloud.cautions(X)

    def over(self, inputs: Sequence[int]) -> Mixture:
        """Return the mixture of the marginal distributions of the given inputs."""
        return Mixture([c.over(inputs) for c in self.components], self.weights)

    @property
    def whole(self) -> Mixture:
        """The original mixture, with all samples, if `for_learning` made this one; otherwise the mixture itself."""
        return self._whole or self

    def for_learning(self) -> Mixture:
        """Return the mixture of the components for learning hyperparameters."""
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


class _NotStored:
    """The function of a `Transformed` measure that was read from a file."""

    def __init__(self, name: str) -> None:
        self.__qualname__ = name

    def __call__(self, x: Array) -> Any:
        raise ValueError(f"the function {self.__qualname__} of the inputs is not stored: give the measure again")


def _function_name(function: Any) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)
