"""Probability measures over the inputs of the sources: π on R^D.

A measure with independent inputs offers its one-dimensional ``marginals``, on which the closed forms and the
numerical rule of the embeddings work; those that are not independent are ``Gaussian`` with a full covariance, and
``Empirical``.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from scipy import stats

from ..validation import brief
from .base import Measure, _is_list
from .distributions import _is_distribution
from .gaussian import Gaussian
from .product import Product
from .uniform import Uniform


def as_measure(obj: Any) -> Measure:
    """Make a measure of what people have at hand.

    Parameters
    ----------
    obj : Measure, scipy.stats distribution, (low, high) pair, or list of distributions and pairs
        A measure is returned as it is. A list has one entry per input.

    >>> from scipy import stats
    >>> as_measure([stats.norm(0, 2), (0, 1)])
    Product([norm(loc=0, scale=2), uniform(loc=0, scale=1)])
    >>> as_measure([(0, 1), (-1, 1)])
    Uniform([0.0, -1.0], [1.0, 1.0])
    """
    if isinstance(obj, Measure):
        return obj
    if isinstance(obj, type(stats.multivariate_normal())):
        return Gaussian(obj.mean, obj.cov)
    if _is_distribution(obj):
        return Product([obj])
    if isinstance(obj, np.ndarray) and obj.shape[1:] in ((), (2,)):
        obj = obj.tolist()
    if _is_list(obj) and obj:
        if _is_pair(obj):
            obj = [obj]
        if all(_is_pair(entry) for entry in obj):
            return Uniform(*zip(*obj, strict=True))
        return Product([_uniform(entry) if _is_pair(entry) else entry for entry in obj])
    raise TypeError(
        f"cannot make a measure of {brief(obj)}; give a measure (Uniform, Gaussian, Product, Empirical), a frozen "
        "scipy.stats distribution, or a list with a distribution or a (low, high) pair for each input; "
        "samples go into Empirical(samples)"
    )


def _is_pair(obj: Any) -> bool:
    return _is_list(obj) and len(obj) == 2 and all(isinstance(end, Real) for end in obj)


def _uniform(pair: Any) -> Any:
    (marginal,) = Uniform(*pair).bounds
    return stats.uniform(loc=float(marginal[0]), scale=float(marginal[1] - marginal[0]))
