"""Secondary sources by rule, for functions that are published without any.

z is the standard normal score of an input, Φ⁻¹(F(x)).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from benchmarks.arena.arrays import Array
from benchmarks.arena.problem import Function

SHIFT = 0.25  #: of all scores
COST = 0.1  #: of every secondary source that is made by rule
STEP = 1e-4  #: of differences, in interquartile ranges


def shifted(f: Function, marginals: Sequence[Any]) -> Function:
    """Return f at inputs whose scores are all too large by a quarter of a standard deviation."""
    return lambda X: f(np.column_stack([_moved(m, x) for m, x in zip(marginals, X.T, strict=True)]))


def _moved(marginal: Any, x: Array) -> Array:
    from scipy.stats import norm

    upper = x > marginal.median()  # of each half the smaller tail, which has all digits
    z = np.where(upper, norm.isf(marginal.sf(x)), norm.ppf(marginal.cdf(x))) + SHIFT
    return np.where(z > 0, marginal.isf(ndtr(-z)), marginal.ppf(ndtr(z)))


def linearised(f: Function, marginals: Sequence[Any]) -> Function:
    """Return the first-order Taylor expansion of f about the medians, by central differences."""
    centre = np.array([marginal.median() for marginal in marginals])
    steps = STEP * np.array([marginal.ppf(0.75) - marginal.ppf(0.25) for marginal in marginals])
    slopes = (f(centre + np.diag(steps)) - f(centre - np.diag(steps))) / (2 * steps)
    value = f(centre[None])[0]
    return lambda X: value + (X - centre) @ slopes
