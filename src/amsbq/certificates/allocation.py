"""How often a certificate evaluates each source: chosen by the expectations of the model, before anything is drawn.

The expectation of the residual r_0 = f_0 - m_0 is written as a sum of expectations of other combinations of residuals,
each of which is averaged over its own draws:

    E[r_0] = E[r_0 - Σ_c α_c r_c] + Σ_c α_c E[r_c],   and in the same way for each r_c

Such a split is a tree: the sources c that correct a source are its children. For any fixed weights α the sum of the
averages is unbiased; the model only affects the width of the interval. All trees over a few secondary sources are
tried, including the primary source alone, and the one with the narrowest expected interval is used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from ..common.validation import Array
from .control import Residuals


@dataclass(frozen=True)
class AllocationSettings:
    """Which allocations are tried, and the gain that they must have."""

    secondaries: int = 3  #: number of secondary sources to combine, the most informative ones for their cost
    least: int = 2  #: minimum number of draws of each combination: fewer give no interval
    #: minimum number of joint draws with the primary source: intervals from fewer have lower coverage
    least_primary: int = 4
    #: and relative to those that the budget would buy without others: if the model is wrong about the relation of
    #: residuals, the interval is then 1.8 times as wide as it could be, and not three times
    least_share: float = 0.6
    most: int = 512  #: maximum number of draws of a combination, also for sources that cost nothing
    #: width, relative to the primary source alone, below which others are used; between 0.75 and 0.9 they made the
    #: interval wider on a development problem
    gain: float = 0.75
    candidates: int = 48  #: numbers of primary draws that are tried
    ridge: float = 1e-9  #: on covariances, relative to variances


SETTINGS = AllocationSettings()


@dataclass(frozen=True)
class Combination:
    """A combination of residuals that is averaged over n draws.

    Attributes
    ----------
    sources : tuple of int
        The sources that are evaluated at each draw.
    weights : (len(sources), M) array
        Their weights in the combination, for each output.
    n : int
        The number of draws.
    """

    sources: tuple[int, ...]
    weights: Array
    n: int


def primary_alone(budget: float, cost: float, n_outputs: int) -> Combination:
    """Return the term of the primary source alone, with as many draws as the budget covers."""
    n = min(int(budget / cost * (1 + 1e-12)), SETTINGS.most)
    return Combination((0,), np.ones((1, n_outputs)), n)


def allocation(residuals: Sequence[Residuals], costs: Array, budget: float) -> list[Combination]:
    """Return the terms with the narrowest expected interval for a budget.

    Parameters
    ----------
    residuals : list of Residuals
        The residuals of each output predicted by the model.
    costs : (L,) array
        The average cost of an evaluation of each source; infinite for sources that must not be used.
    budget : float
        The total cost, at least that of two primary evaluations.
    """
    alone = primary_alone(budget, float(costs[0]), len(residuals))
    covariances = [_covariance(each) for each in residuals]
    usable = [
        s for s in range(1, len(costs)) if np.isfinite(costs[s]) and all(np.isfinite(C[s, s]) for C in covariances)
    ]
    units = np.array([C[0, 0] for C in covariances])
    if not usable or alone.n < SETTINGS.least_primary or not (units > 0).all():
        return [alone]
    shared = [np.mean([_squared_correlation(C, s) for C in covariances]) for s in usable]
    rates = [r / max(costs[s] / costs[0], 1e-6) for r, s in zip(shared, usable, strict=True)]
    few = [usable[i] for i in np.argsort(-np.array(rates), kind="stable")[: SETTINGS.secondaries]]
    best, terms = SETTINGS.gain * _width(np.array([[1.0]]), np.array([alone.n])), [alone]
    for tree in _trees(few):
        sources, weights, variances = _split(tree, covariances)
        prices = np.array([costs[list(of)].sum() for of in sources])
        for counts in _counts(prices, (variances / units[:, None]).mean(axis=0), budget, float(costs[0])):
            width = _width(variances / units[:, None], counts)
            if width < best:
                best = width
                terms = [Combination(of, w, int(n)) for of, w, n in zip(sources, weights, counts, strict=True)]
    return terms


def expected_errors(terms: Sequence[Combination], residuals: Sequence[Residuals]) -> Array:
    """Return the standard error of the sum of all averages predicted by the model, for each output, shape (M,)."""
    found = np.zeros(len(residuals))
    for m, each in enumerate(residuals):
        C = _covariance(each)
        for term in terms:
            w, of = term.weights[:, m], list(term.sources)
            found[m] += w @ C[np.ix_(of, of)] @ w / term.n
    return np.sqrt(np.maximum(found, 0.0))


def _covariance(residuals: Residuals) -> Array:
    """Return the matrix of E[r_l r_l'], shape (L, L); sources that lack the output are uncorrelated with the others."""
    C = np.asarray((residuals.draws * residuals.weights[:, None]).T @ residuals.draws)
    for source in residuals.lacking:
        C[source], C[:, source], C[source, source] = 0.0, 0.0, C[0, 0]
    return C


def _squared_correlation(C: Array, source: int) -> float:
    """Return the squared correlation of a secondary source with the primary one."""
    return float(C[0, source] ** 2 / max(C[0, 0] * C[source, source], np.finfo(float).tiny))


def _trees(secondaries: Sequence[int]) -> Iterator[Mapping[int, int]]:
    """Yield all trees with the primary source at the root, as the parent of each secondary source in use."""
    for size in range(1, len(secondaries) + 1):
        for used in itertools.combinations(secondaries, size):
            for parents in itertools.product((0, *used), repeat=size):
                tree = dict(zip(used, parents, strict=True))
                if all(_reaches_root(tree, source) for source in used):
                    yield tree


def _reaches_root(tree: Mapping[int, int], source: int) -> bool:
    seen = set()
    while source and source not in seen:
        seen.add(source)
        source = tree[source]
    return source == 0


def _split(tree: Mapping[int, int], covariances: Sequence[Array]) -> tuple[list[tuple[int, ...]], list[Array], Array]:
    """Return the sources of each term, their weights (k, M), and the variances of the terms, shape (M, terms)."""
    order, factor = [0], {0: np.ones(len(covariances))}
    sources, weights, variances = [], [], []
    for parent in order:
        children = sorted(child for child, of in tree.items() if of == parent)
        alphas = np.array([_regression(C, parent, children) for C in covariances]).reshape(
            len(covariances), len(children)
        )
        inside = np.column_stack([np.ones(len(covariances)), -alphas]) * factor[parent][:, None]  # (M, k)
        of = [parent, *children]
        sources.append(tuple(of))
        weights.append(inside.T)
        variances.append([w @ C[np.ix_(of, of)] @ w for w, C in zip(inside, covariances, strict=True)])
        factor |= {child: factor[parent] * alphas[:, i] for i, child in enumerate(children)}
        order += children
    return sources, weights, np.maximum(np.array(variances).T, 0.0)


def _regression(C: Array, parent: int, children: Sequence[int]) -> Array:
    """Return the weights of children that minimise the residual variance of a parent."""
    if not children:
        return np.zeros(0)
    inner, outer = C[np.ix_(children, children)], C[children, parent]
    ridge = SETTINGS.ridge * np.maximum(np.diag(inner), np.finfo(float).tiny)
    return np.asarray(np.linalg.solve(inner + np.diag(ridge), outer))


def _counts(prices: Array, variances: Array, budget: float, alone: float) -> Iterator[Array]:
    """Yield affordable numbers of draws of each term, the first term being the one with the primary source.

    ``alone`` is the cost of an evaluation of the primary source.
    """
    rest = prices[1:]
    affordable = (budget - SETTINGS.least * rest.sum()) / prices[0]
    highest = min(int(affordable * (1 + 1e-12)), SETTINGS.most)
    shares = np.sqrt(variances[1:] / np.maximum(rest, np.finfo(float).tiny))
    least = max(SETTINGS.least_primary, math.ceil(SETTINGS.least_share * int(budget / alone)))
    for n in _between(least, highest):
        left, paid = budget - n * prices[0], float(shares @ rest)
        scale = left / paid if paid > 0 else math.inf
        with np.errstate(over="ignore", invalid="ignore"):
            many = np.nan_to_num(shares * scale, nan=SETTINGS.most, posinf=SETTINGS.most)
        counts = np.clip(many, SETTINGS.least, SETTINGS.most).astype(int)
        while counts @ rest > left * (1 + 1e-12) and (counts > SETTINGS.least).any():
            counts = np.maximum((0.95 * counts).astype(int), SETTINGS.least)
        yield np.array([n, *counts])


def _between(lowest: int, highest: int) -> list[int]:
    """Return candidate numbers from the lowest to the highest, at most `AllocationSettings.candidates`."""
    if highest < lowest:
        return []
    return sorted({int(n) for n in np.linspace(lowest, highest, SETTINGS.candidates)})


def _width(variances: Array, counts: Array) -> float:
    """Return the expected half width of the 95 % interval, for variances (M, terms), averaged over outputs."""
    parts = variances / counts
    total = np.maximum(parts.sum(axis=1), np.finfo(float).tiny)
    dof = total**2 / np.maximum((parts**2 / (counts - 1)).sum(axis=1), np.finfo(float).tiny)
    return float(np.mean(stdtrit(dof, 0.975) * np.sqrt(total)))
