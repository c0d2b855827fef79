"""Conversions to measures: of anything that users pass, `as_measure`, and of dictionaries, `measure_from_dict`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import scipy
from numpy.typing import NDArray

from ..common.messages import suggestion
from ..common.validation import brief
from .base import Measure, is_list
from .composed import Mixture, Transformed
from .distributions import Distribution, RandomVariable, checked_distribution, is_distribution
from .empirical import Empirical
from .gaussian import Gaussian, GaussianCopula
from .product import Independent, Product
from .uniform import Uniform


class MultivariateNormal(Protocol):
    """A frozen ``scipy.stats.multivariate_normal``."""

    mean: Any
    cov: Any


#: The distribution of one input: a scipy.stats distribution, a (low, high) pair for a uniform one, or probabilities.
InputLike: TypeAlias = Distribution | RandomVariable | Sequence[float] | Mapping[Any, float] | Measure

#: Maximum number of rows of an array that are taken for intervals of inputs: more rows are probably samples.
MOST_INTERVALS = 20

#: Everything that is accepted in place of a measure.
MeasureLike: TypeAlias = Measure | MultivariateNormal | InputLike | Sequence[InputLike] | NDArray[Any]

#: Everything that `as_measure` accepts: `MeasureLike`, or a dictionary of the distribution of each input by name.
NamedMeasureLike: TypeAlias = MeasureLike | Mapping[str, InputLike]

CLASSES: dict[str, type[Measure]] = {
    kind.__name__: kind
    for kind in (Uniform, Gaussian, GaussianCopula, Product, Empirical, Transformed, Mixture, Independent)
}


def as_measure(obj: NamedMeasureLike) -> Measure:
    """Return a measure for any usual way to write one.

    Parameters
    ----------
    obj : Measure, scipy.stats distribution, (low, high) pair, {value: probability}, or list of the last three
        A measure is returned as it is. A list has one entry per input. A (D, 2) array holds a (low, high) pair in each
        row. A dictionary holds the probabilities of discrete values, or of categories if the keys are text. A frozen
        ``scipy.stats.multivariate_normal`` becomes a `Gaussian`. A measure in a list stands for several inputs, which
        are independent of the others. A dictionary may also have an entry for each input, by its name.

    Examples
    --------
    >>> from scipy import stats
    >>> as_measure([stats.norm(0, 2), (0, 1)])
    Product([norm(loc=0, scale=2), uniform(loc=0, scale=1)])
    >>> as_measure([(0, 1), (-1, 1)])
    Uniform([0.0, -1.0], [1.0, 1.0])
    """
    given: Any = obj
    if isinstance(given, Measure):
        return given
    if isinstance(given, Mapping) and _has_names(given):
        for name, part in given.items():
            if _is_pair(part):
                _check_interval(part, name)
            elif not isinstance(part, Measure):
                checked_distribution(part, f"the distribution of {name}")
        given = list(given.values())
    if isinstance(given, type(scipy.stats.multivariate_normal())):
        return Gaussian(given.mean, given.cov)
    if is_distribution(given):
        return Product([given])
    if isinstance(given, np.ndarray) and given.shape[1:] in ((), (2,)):
        if len(given) > MOST_INTERVALS:
            raise TypeError(
                f"inputs is an array of shape {given.shape}: if its rows are samples, give Empirical(array); if they "
                "are intervals, one for each input, give a list of (low, high)"
            )
        given = given.tolist()
    if is_list(given) and given:
        if _is_pair(given):
            given = [given]
        for d, entry in enumerate(given):
            if _is_pair(entry):
                _check_interval(entry, "the input" if len(given) == 1 else f"input {d}")
        if all(_is_pair(entry) for entry in given):
            return Uniform(*zip(*given, strict=True))
        if any(isinstance(entry, Measure) for entry in given):
            return Independent([as_measure([entry] if _is_pair(entry) else entry) for entry in given])
        return Product([_uniform(entry) if _is_pair(entry) else entry for entry in given])
    raise TypeError(
        f"cannot make a measure of {brief(obj)}; give a measure (Uniform, Gaussian, Product, Empirical, "
        "GaussianCopula, Transformed, Mixture), a frozen scipy.stats distribution, or a list with a distribution, "
        "a (low, high) pair or {value: probability} for each input; "
        "samples go into Empirical(samples)"
    )


def measure_from_dict(content: Mapping[str, Any]) -> Measure:
    """Rebuild a measure from the output of `Measure.to_dict`.

    Draws and kernel means of the rebuilt measure equal those of the original to the last digit.

    Raises
    ------
    ValueError
        If the measure cannot be rebuilt: only a digest of it is stored, or ``content`` is not of that form.

    Examples
    --------
    >>> measure_from_dict({"class": "Uniform", "lower": [0.0], "upper": [2.0]})
    Uniform([0.0], [2.0])
    """
    try:
        return CLASSES[content["class"]].from_dict({key: _with_measures(part) for key, part in content.items()})
    except (KeyError, TypeError) as error:
        raise ValueError(f"{brief(content)} does not describe a measure: {error!r}") from error


def _with_measures(part: Any) -> Any:
    """Rebuild the measures inside the parts of a measure's dictionary."""
    if isinstance(part, Mapping) and "class" in part:
        return measure_from_dict(part)
    return (
        [_with_measures(entry) for entry in part] if part and is_list(part) and isinstance(part[0], Mapping) else part
    )


def _is_pair(obj: Any) -> bool:
    return is_list(obj) and len(obj) == 2 and all(isinstance(end, Real) for end in obj)


def _check_interval(pair: Sequence[float], name: str) -> None:
    """Raise ValueError if the first of two numbers is not below the second."""
    low, high = pair
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(
            f"{name} is {brief(pair)}, but the ends of an interval must be finite; give a distribution instead"
        )
    if low >= high:
        normal = f"; with mean {low:g} and standard deviation {high:g} it is stats.norm({low:g}, {high:g})"
        raise ValueError(
            f"{name} is {brief(pair)}, but an interval is (low, high), with low below high{normal * (high > 0)}"
        )


def _uniform(pair: Sequence[float]) -> Distribution:
    """Return the uniform distribution between two numbers, after the checks of `Uniform`."""
    ((low, high),) = Uniform(*pair).bounds
    distribution: Distribution = scipy.stats.uniform(loc=float(low), scale=float(high - low))
    return distribution


def _has_names(measure: Mapping[Any, Any]) -> bool:
    """Return whether the entries of a dictionary are inputs by name, not probabilities of values.

    Raise ValueError if it has both, inputs without names, or nothing.
    """
    if not measure:
        raise ValueError("a dictionary of inputs must have one at least, as in {'speed': (0, 1)}")
    constants = [key for key, part in measure.items() if isinstance(part, Real)]
    if len(constants) == len(measure):
        return False
    if constants:
        raise ValueError(_needs_distribution(constants[0], measure[constants[0]]))
    for key, part in measure.items():
        if not isinstance(key, str):
            raise ValueError(
                f"{key!r} is not the name of an input: name them all, as in {{'speed': {brief(part)}}}, or give a list"
            )
    return True


def _needs_distribution(name: Any, given: Any) -> str:
    """Return the error message for an input with a number in place of a distribution."""
    return (
        f"the input {name!r} is {brief(given)}, and needs a distribution, such as stats.norm(0, 1), or a pair of "
        "limits, (low, high); a constant is not an input: write it into the function"
    )


def in_order_of(names: Sequence[str] | None, X: Any) -> Any:
    """Return the columns of a data frame in the order of the inputs; other locations are returned unchanged.

    Raise ValueError if the names of columns and inputs differ.
    """
    columns = getattr(X, "columns", None)
    if names is None or columns is None or not all(isinstance(column, str) for column in columns):
        return X
    if sorted(columns) != sorted(names):
        raise ValueError(f"X has the columns {', '.join(columns)}, but the inputs are {', '.join(names)}")
    return X[list(names)]


def named_measure(measure: NamedMeasureLike, names: Sequence[str] | None = None) -> tuple[Measure, list[str] | None]:
    """Return the measure of the inputs, and the names of the inputs; None if they have no names.

    Parameters
    ----------
    measure : anything that `as_measure` accepts, or a dictionary of distributions and (low, high) pairs by name
        The distribution of the inputs.
    names : list of str, optional
        Names of the inputs, instead of those of a dictionary.

    >>> named_measure({"load": (0, 1), "size": (2, 3)})
    (Uniform([0.0, 2.0], [1.0, 3.0]), ['load', 'size'])
    """
    if isinstance(measure, Mapping) and _has_names(measure):
        if names is not None:
            raise ValueError("give names either in the dictionary of distributions or as names=, not both")
        return as_measure(measure), list(measure)
    if isinstance(measure, Mapping) and any(isinstance(key, str) for key in measure):
        given: Any = measure
        said = _needs_distribution(*next(iter(given.items())))
        hint = f". Categories with their probabilities are the distribution of one input: {{'mode': {brief(given)}}}"
        raise ValueError(said + hint * math.isclose(math.fsum(given.values()), 1.0, rel_tol=1e-6))
    inputs = as_measure(cast(MeasureLike, measure))
    if names is None:
        return inputs, None
    listed = [names] if isinstance(names, str) else list(names)
    if not all(isinstance(name, str) for name in listed) or len(set(listed)) < len(listed):
        raise ValueError(f"names must be different strings, one per input, got {brief(names)}")
    if len(listed) != inputs.dim:
        raise ValueError(f"there are {inputs.dim} inputs, but names has {len(listed)}: {brief(names)}")
    return inputs, listed


def measure_of_inputs(measure: NamedMeasureLike, names: Sequence[str], present: Measure) -> Measure:
    """Return a new measure for the named inputs; a dictionary may specify only some of them, in any order.

    The other inputs keep their distributions from ``present``, the current measure.

    >>> measure_of_inputs({"size": (2, 3), "load": (0, 1)}, ["load", "size"], Uniform([0, 0], 1))
    Uniform([0.0, 2.0], [1.0, 3.0])
    >>> measure_of_inputs({"size": (2, 3)}, ["load", "size"], Gaussian([0, 0], 1)).marginals
    (NormalMarginal(mean=0.0, sd=1.0), UniformMarginal(low=2.0, high=3.0))
    """
    for name, value in measure.items() if isinstance(measure, Mapping) else ():
        if name in names and isinstance(value, Real | str):
            raise ValueError(
                f"{name} is {value!r}, which is not a distribution; for a value of it, there is "
                f"result.given({name}={value!r})"
            )
        if name in names and isinstance(value, Mapping) and len(value) == 1:
            only = next(iter(value))
            raise ValueError(
                f"{name} is {value}, which has a single value; for that there is result.given({name}={only!r})"
            )
    if not isinstance(measure, Mapping) or not _has_names(measure):
        return as_measure(measure)
    unknown = [name for name in measure if name not in names]
    if unknown:
        raise ValueError(
            f"there is no input {unknown[0]!r}{suggestion(unknown[0], names)}: the inputs are {', '.join(names)}"
        )
    if len(measure) == len(names):
        return as_measure(cast(NamedMeasureLike, {name: measure[name] for name in names}))
    if present.marginals is None:
        raise ValueError(f"the inputs are dependent, so the dictionary must have all of them: {', '.join(names)}")
    given = {name: as_measure(cast(NamedMeasureLike, {name: part})) for name, part in measure.items()}
    return Independent([given.get(name) or present.over([d]) for d, name in enumerate(names)])
