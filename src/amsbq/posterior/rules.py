"""Rules: nodes and weights for each of several independent inputs; averages over sets of points, with their error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, stdtrit

from ..common.validation import Array
from ..measures.base import Measure
from ..measures.marginals import CategoricalMarginal, DiscreteMarginal, Marginal


@dataclass(frozen=True)
class RuleSettings:
    """Gauss's rule on panels of the probability of a continuous input."""

    #: nodes on each panel; width of the largest panels, which resolve lengthscales of a fiftieth of the input's width,
    #: and of the last ones towards 0 and 1; ratio of neighbours there. Polynomials of a Gaussian or exponential input
    #: are integrated to 1e-6 of their size
    per_panel: int = 7
    largest: float = 1 / 16
    smallest: float = 1e-9
    shrinking: float = 6.0


SETTINGS = RuleSettings()


class Rule(NamedTuple):
    """Nodes of one input, and their probabilities: shape (m,) each."""

    nodes: Array
    weights: Array


def rules_for(measure: Measure, scores: Sequence[float] = ()) -> list[Rule]:
    """Return a rule for each input of a measure with independent inputs.

    Panels also end at the quantiles of the given normal ``scores``.
    """
    assert measure.marginals is not None
    return [_rule(measure.over([d]), marginal, np.array(scores)) for d, marginal in enumerate(measure.marginals)]


def _rule(measure: Measure, marginal: Marginal, scores: Array) -> Rule:
    """Return the rule for a measure of one input with that marginal."""
    if isinstance(marginal, DiscreteMarginal):
        return Rule(marginal.values, marginal.masses)
    if isinstance(marginal, CategoricalMarginal):
        return Rule(np.arange(len(marginal.masses), dtype=float), marginal.masses)
    n = int(np.ceil(np.log(SETTINGS.largest / SETTINGS.smallest) / np.log(SETTINGS.shrinking)))
    towards_zero = SETTINGS.largest * SETTINGS.shrinking ** np.arange(-n, 0.0)
    ends = np.concatenate([[0.0], towards_zero, np.arange(SETTINGS.largest, 0.5 + 1e-9, SETTINGS.largest)])
    t, w = np.polynomial.legendre.leggauss(SETTINGS.per_panel)
    u, weights = [], []
    for side in (1.0, -1.0):  # probabilities from either end: small ones are exact
        between = ndtr(side * scores)
        all_ends = np.unique(np.concatenate([ends, between[between < 0.5]]))
        inner = (all_ends[:-1, None] + np.diff(all_ends)[:, None] * (t + 1) / 2).ravel()
        u.append(inner if side > 0 else 1 - inner)
        weights.append((np.diff(all_ends)[:, None] * w / 2).ravel())
    return Rule(measure.from_cube(np.concatenate(u)[:, None])[:, 0], np.concatenate(weights))


def set_average(by_set: Array) -> Array:
    """Return averages of (..., J, R) over R independent sets of points, with their error: shape (..., J).

    The error of the average is added as a draw for each j, in pairs of opposite sign: the second half of the draws is
    opposite to the first. They are the quantiles of Student's t distribution, as only R sets show the error.
    """
    J, R = by_set.shape[-2:]
    n = (J + 1) // 2
    half = stdtrit(R - 1, (np.random.default_rng(1).permutation(n) + 0.5) / n)
    noise = np.concatenate([half, -half])[:J]
    return np.asarray(by_set.mean(axis=-1) + noise * by_set.std(axis=-1, ddof=1) / np.sqrt(R))
