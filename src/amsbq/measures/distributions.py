"""distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from ..validation import Array, brief


def describe(distribution: Any) -> str:
    """What the user would have typed for a frozen scipy.stats distribution: the same for the same parameters."""
    if not hasattr(distribution, "dist"):
        return repr(distribution)
    if hasattr(distribution.dist, "_hbins"):
        return f"rv_histogram(<{len(distribution.dist._hbins) - 1} bins>)"
    try:
        shapes, loc, scale = distribution.dist._parse_args(*distribution.args, **distribution.kwds)
        plain = [repr(float(value)).removesuffix(".0") for value in (*shapes, loc, scale)]
        arguments = [*plain[:-2], f"loc={plain[-2]}", f"scale={plain[-1]}"]
        if shapes:
            arguments = [a for a in arguments if a not in ("loc=0", "scale=1")]
    except (AttributeError, TypeError, ValueError):  # a discrete one, or parameters that are no numbers
        arguments = [repr(a) for a in distribution.args] + [f"{k}={v!r}" for k, v in distribution.kwds.items()]
    return f"{distribution.dist.name}({', '.join(arguments)})"


class _NewStyle:
    """The methods of a frozen distribution, for the random variables of scipy 1.15 and later."""

    def __init__(self, variable: Any) -> None:
        self.pdf, self.cdf, self.sf = variable.pdf, variable.cdf, variable.ccdf
        self.ppf, self.isf, self.support = variable.icdf, variable.iccdf, variable.support
        self._variable = variable

    def __repr__(self) -> str:
        return str(self._variable)

    def rvs(self, size: int, random_state: np.random.Generator) -> Array:
        return np.asarray(self._variable.sample(size, rng=random_state))


def _is_distribution(obj: Any) -> bool:
    return hasattr(obj, "support") or isinstance(obj, (stats.rv_continuous, stats.rv_discrete))


def _continuous(obj: Any, name: str) -> Any:
    """A frozen one-dimensional continuous distribution, or an error that says what it is instead."""
    if isinstance(obj, type):
        raise TypeError(f"{name} is the class {obj.__name__}: give an object of it, with its parameters")
    if isinstance(obj, stats.rv_histogram):
        obj = obj()
    if (
        isinstance(obj, stats.rv_discrete)
        or isinstance(getattr(obj, "dist", None), stats.rv_discrete)
        or any(parent.__name__ == "DiscreteDistribution" for parent in type(obj).__mro__)  # of scipy 1.15 and later
    ):
        raise TypeError(
            f"{name} is the discrete distribution {describe(obj)}: only continuous ones can be integrated here; "
            "for discrete inputs list the values with their probabilities in Empirical(samples, weights)"
        )
    if isinstance(obj, stats.rv_continuous):
        raise TypeError(f"{name} is {obj.name} without its parameters: freeze it, as in stats.{obj.name}(...)")
    if hasattr(obj, "icdf") and hasattr(obj, "iccdf"):
        obj = _NewStyle(obj)
    if not all(hasattr(obj, method) for method in ("pdf", "cdf", "sf", "ppf", "isf", "rvs", "support")):
        raise TypeError(f"{name} must be a frozen continuous scipy.stats distribution, got {brief(obj)}")
    with np.errstate(all="ignore"):
        support = np.asarray(obj.support(), dtype=float)
        median = np.asarray(obj.ppf(0.5), dtype=float)
    if support.shape != (2,):
        raise ValueError(f"{name} has array-valued parameters: give one distribution per input instead")
    if np.isnan(support).any() or np.isnan(median):
        raise ValueError(f"{name} is {describe(obj)}, whose parameters scipy does not accept")
    return obj


def _known_by_name(kind: Any) -> bool:
    """Whether a distribution is one of scipy's own, so that its name and parameters tell all of it."""
    return isinstance(kind, stats.rv_continuous) and type(getattr(stats, kind.name, None)) is type(kind)
