"""One-dimensional scipy.stats distributions: check what users pass, describe it, serialise it.

Three kinds are accepted: frozen distributions (``stats.gamma(5)``), the random variables of scipy 1.15 and later
(``stats.Normal(mu=0.0)``), and histograms (``stats.rv_histogram``). Only public attributes of scipy are read, except
for the bin edges of a histogram, which have no public name.

One of scipy's own distributions is identified by its name and parameters. Others (a user's subclass of
``rv_continuous``, a random variable, a histogram) contain code or data that cannot be serialised: they get a digest of
their quantiles and densities instead, which distinguishes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np
import scipy

from ..common.validation import Array, brief
from .discrete import DiscreteDistribution, from_probabilities, from_scipy, is_discrete


class Distribution(Protocol):
    """A one-dimensional continuous distribution with the methods of a frozen scipy.stats distribution."""

    def pdf(self, x: Any, /) -> Any:
        """Return the density at each x."""

    def cdf(self, x: Any, /) -> Any:
        """Return the probability of values up to each x."""

    def sf(self, x: Any, /) -> Any:
        """Return the probability of values above each x."""

    def ppf(self, q: Any, /) -> Any:
        """Return the quantile of each probability q."""

    def isf(self, q: Any, /) -> Any:
        """Return the value that is exceeded with each probability q."""

    def rvs(self, size: Any = ..., random_state: Any = ...) -> Any:
        """Return independent draws."""

    def support(self) -> Any:
        """Return the smallest and the largest value."""


class RandomVariable(Protocol):
    """A one-dimensional random variable of scipy 1.15 and later."""

    def pdf(self, x: Any, /) -> Any:
        """Return the density at each x."""

    def cdf(self, x: Any, /) -> Any:
        """Return the probability of values up to each x."""

    def ccdf(self, x: Any, /) -> Any:
        """Return the probability of values above each x."""

    def icdf(self, p: Any, /) -> Any:
        """Return the quantile of each probability p."""

    def iccdf(self, p: Any, /) -> Any:
        """Return the value that is exceeded with each probability p."""

    def sample(self, shape: Any = ..., *, rng: Any = ...) -> Any:
        """Return independent draws."""

    def support(self) -> Any:
        """Return the smallest and the largest value."""


@dataclass(frozen=True)
class DigestSettings:
    """Resolution of the digest of a distribution."""

    #: Quantiles come from root finding for a user's own density: few of them, so that a digest takes milliseconds.
    n_quantiles: int = 31
    #: Densities between two neighbouring quantiles: about 4,000 in all, which see the bins of usual histograms.
    n_densities: int = 128
    #: Decimals kept, of quantiles in units of the interquartile range and of densities in units of its inverse. The
    #: last digits depend on the processor and on the version of scipy, and a run may be resumed on another machine.
    quantile_decimals: int = 10
    density_decimals: int = 6


DIGEST = DigestSettings()


class RandomVariableAdapter:
    """A `RandomVariable` as a `Distribution`."""

    def __init__(self, variable: RandomVariable) -> None:
        self.pdf, self.cdf, self.sf = variable.pdf, variable.cdf, variable.ccdf
        self.ppf, self.isf, self.support = variable.icdf, variable.iccdf, variable.support
        self._variable = variable

    def __repr__(self) -> str:
        return str(self._variable)

    def rvs(self, size: int, random_state: np.random.Generator) -> Array:
        """Return ``size`` independent draws."""
        return np.asarray(self._variable.sample(size, rng=random_state))


def is_distribution(obj: Any) -> bool:
    """Return whether an object is a one-dimensional distribution, valid or not."""
    return hasattr(obj, "support") or is_discrete(obj) or isinstance(obj, scipy.stats.rv_continuous)


def checked_distribution(obj: Any, name: str) -> Distribution:
    """Return a frozen distribution; raise an error that begins with ``name`` if the object is not one."""
    if isinstance(obj, type):
        raise TypeError(f"{name} is the class {obj.__name__}: give an object of it, with its parameters")
    if isinstance(obj, tuple | list) and len(obj) == 2 and all(isinstance(end, Real) and end == end for end in obj):
        low, high = map(float, obj)
        if not low < high:
            raise ValueError(f"{name} is {brief(obj)}, but an interval is (low, high), with low below high")
        obj = scipy.stats.uniform(low, high - low)
    if isinstance(obj, scipy.stats.rv_histogram):
        obj = obj()
    if isinstance(obj, DiscreteDistribution):
        return obj
    if isinstance(obj, Mapping):
        return from_probabilities(obj, name)
    if isinstance(obj, scipy.stats.rv_discrete) and hasattr(obj, "xk"):  # made of values, it has no parameters
        obj = obj()
    if isinstance(getattr(obj, "dist", None), scipy.stats.rv_discrete):
        return from_scipy(obj, describe(obj), name)
    if isinstance(obj, scipy.stats.rv_discrete):
        raise TypeError(f"{name} is {obj.name} without its parameters: freeze it, as in stats.{obj.name}(...)")
    if is_discrete(obj):
        raise TypeError(
            f"{name} is {brief(obj)}, which is not supported: give its values with their probabilities, "
            "{value: probability}"
        )
    if isinstance(obj, scipy.stats.rv_continuous):
        raise TypeError(f"{name} is {obj.name} without its parameters: freeze it, as in stats.{obj.name}(...)")
    if hasattr(obj, "icdf") and hasattr(obj, "iccdf"):
        obj = RandomVariableAdapter(obj)
    if not all(hasattr(obj, method) for method in ("pdf", "cdf", "sf", "ppf", "isf", "rvs", "support")):
        raise TypeError(
            f"{name} must be an interval, (low, high), or a frozen continuous scipy.stats distribution, "
            f"got {brief(obj)}"
        )
    with np.errstate(all="ignore"):
        support = np.asarray(obj.support(), dtype=float)
        median = np.asarray(obj.ppf(0.5), dtype=float)
    if support.shape != (2,):
        raise ValueError(f"{name} has array-valued parameters: give one distribution per input instead")
    if np.isnan(support).any() or np.isnan(median):
        raise ValueError(f"{name} is {describe(obj)}, whose parameters scipy does not accept")
    checked: Distribution = obj
    return checked


def describe(distribution: Any) -> str:
    """Return the code that a user would type for a distribution; it depends only on name and parameters.

    Examples
    --------
    >>> describe(scipy.stats.gamma(a=5.0, loc=1))
    'gamma(5, loc=1)'
    """
    if not hasattr(distribution, "dist"):
        return repr(distribution)
    if isinstance(distribution.dist, scipy.stats.rv_histogram):
        return f"rv_histogram(<digest {_digest(distribution)}>)"
    try:
        values = _parameters(distribution)
    except (TypeError, ValueError):  # parameters that are no numbers
        arguments = [repr(a) for a in distribution.args] + [f"{k}={v!r}" for k, v in distribution.kwds.items()]
    else:
        plain = {name: repr(float(value)).removesuffix(".0") for name, value in values.items()}
        loc, scale = f"loc={plain.pop('loc')}", f"scale={plain.pop('scale')}"
        kept = [a for a in (loc, scale) if a not in ("loc=0", "scale=1")] if plain else [loc, scale]
        arguments = [*plain.values(), *kept]
    return f"{distribution.dist.name}({', '.join(arguments)})"


def distribution_to_dict(distribution: Distribution) -> dict[str, Any]:
    """Return the name and the parameters of a distribution, and a digest if these do not define it.

    Examples
    --------
    >>> distribution_to_dict(scipy.stats.gamma(5, scale=4))
    {'name': 'gamma', 'a': 5, 'loc': 0, 'scale': 4}
    """
    if isinstance(distribution, DiscreteDistribution):
        return distribution.to_dict()
    if is_named(distribution):
        return {"name": _family(distribution).name, **_parameters(distribution)}
    described = {"name": _label(distribution), "digest": _digest(distribution)}
    edges = histogram_edges(distribution)
    if edges is not None:  # densities between quantiles do not see very narrow bins
        numbers = [*edges, *_family(distribution)._hpdf]
        described["bins"] = sha256(" ".join(f"{number:.12g}" for number in numbers).encode()).hexdigest()[:16]
    return described


def distribution_from_dict(content: Mapping[str, Any]) -> Distribution:
    """Rebuild a distribution from the output of `distribution_to_dict`; raise ValueError if that is impossible."""
    if "discrete" in content:
        return DiscreteDistribution.from_dict(content)
    name = content["name"]
    if "digest" in content:
        raise ValueError(
            f"the distribution {name} cannot be rebuilt: it is not one of scipy's own by name, and only a digest of "
            "its values is stored"
        )
    family = getattr(scipy.stats, name, None) if isinstance(name, str) else None
    if not isinstance(family, scipy.stats.rv_continuous):
        raise ValueError(f"the distribution {name!r} cannot be rebuilt: scipy.stats has no continuous one of that name")
    return checked_distribution(
        family(**{parameter: value for parameter, value in content.items() if parameter != "name"}), name
    )


def is_named(distribution: Distribution) -> bool:
    """Return whether a distribution is one of scipy's own, defined by its name and parameters."""
    family = _family(distribution)
    own: Any = getattr(scipy.stats, family.name, None) if isinstance(family, scipy.stats.rv_continuous) else None
    if own is None or type(own) is not type(family):
        return False
    try:
        again = own(**_parameters(distribution))
    except (TypeError, ValueError):  # parameters that are no numbers
        return False
    # An object of the same class may have another support or, like levy_stable, another parameterisation.
    quartiles = np.array([0.25, 0.75])
    return again.support() == distribution.support() and np.array_equal(
        again.ppf(quartiles), distribution.ppf(quartiles)
    )


def histogram_edges(distribution: Distribution) -> Array | None:
    """Return the edges of the bins of an ``rv_histogram``, shape (n_bins + 1,); None for other distributions."""
    family = _family(distribution)
    if not isinstance(family, scipy.stats.rv_histogram):
        return None
    parameters = _parameters(distribution)
    return np.asarray(parameters["loc"] + parameters["scale"] * family._hbins, dtype=float)


def _family(distribution: Distribution) -> Any:
    """Return the scipy.stats family of a frozen distribution; None for other objects."""
    return getattr(distribution, "dist", None)


def _parameters(distribution: Any) -> dict[str, float]:
    """Return the parameters of a frozen distribution by name: its shapes, then loc and scale.

    Integers stay integers, so that a distribution is rebuilt from exactly the given parameters.
    """
    shapes = distribution.dist.shapes
    names = [*(shapes.split(", ") if shapes else []), "loc", "scale"]
    given = {"loc": 0, "scale": 1} | dict(zip(names, distribution.args, strict=False)) | distribution.kwds
    return {name: int(given[name]) if isinstance(given[name], Integral) else float(given[name]) for name in names}


def _label(distribution: Distribution) -> str:
    """Return a short text for a distribution that has no name, without memory addresses."""
    family = _family(distribution)
    if family is not None and not isinstance(family, scipy.stats.rv_histogram):
        return describe(distribution)
    if isinstance(distribution, RandomVariableAdapter):
        return repr(distribution)
    return type(family or distribution).__name__


def _digest(distribution: Distribution) -> str:
    """Return a digest of a distribution: its quantiles, and its densities between them."""
    low, high = (float(end) for end in distribution.support())
    levels = np.arange(1, DIGEST.n_quantiles + 1) / (DIGEST.n_quantiles + 1)
    with np.errstate(all="ignore"):
        quantiles = np.asarray(distribution.ppf(levels), dtype=float)
        scale = float(np.subtract(*distribution.ppf(np.array([0.75, 0.25]))))
        edges = np.array([low, *quantiles, high])
        edges = np.unique(edges[np.isfinite(edges)])
        between = (np.arange(DIGEST.n_densities) + 0.5) / DIGEST.n_densities
        t = edges[:-1, None] + np.diff(edges)[:, None] * between
        densities = np.asarray(distribution.pdf(t.ravel()), dtype=float)
        rounded = np.concatenate(
            [
                np.round(np.array([low, *quantiles, high]) / scale, DIGEST.quantile_decimals),
                np.round(densities * scale, DIGEST.density_decimals),
            ]
        )
    text = f"{scale:.{DIGEST.quantile_decimals}g} {(rounded + 0.0).tolist()}"  # + 0.0 makes -0.0 and 0.0 the same
    return sha256(text.encode()).hexdigest()[:16]
