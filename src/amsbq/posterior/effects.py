"""Variances of sample paths and of the effects of inputs on them, for independent inputs.

A path is a sum of products of functions of one input each, because kernels are. Averages over some of the inputs are
therefore sums over the nodes of one rule for each input. Averages of squares remain: those of main effects use the same
rules; those of interactions, which are orthogonal to main effects, use low-discrepancy points.

Notation: f = Σ_p a_p Π_d φ_pd(x_d) for one model, with a (P, J) for J paths; μ_pd = ∫ φ_pd dπ_d; E f its mean;

    f_S = E[f | x_S] - E f          effect of the inputs S, with the interactions between them
    f_d                             main effect of one input: S = {d}
    f - E f - f_{not S}             everything that involves an input in S
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..common.validation import Array
from ..gp.data import VALUE
from ..gp.kernels import Derivatives, differences
from ..measures.base import Measure
from .nodes import edges_for, even_points, stretched
from .paths import Functions, Paths
from .rules import Rule, rules_for, set_average


@dataclass(frozen=True)
class EffectSettings:
    """Point sets."""

    #: sets of low-discrepancy points, and points of each, for interactions and for functions of paths
    sets: int = 4
    points: int = 512
    bins: int = 8  #: bins in which each coordinate of the points for functions of paths is stretched
    noise: float = 0.5  #: largest variance of the logarithms of their weights by chance


SETTINGS = EffectSettings()


class Effects(NamedTuple):
    """Variances of K × J functions, and the part of them that each of G groups of inputs explains."""

    variances: Array  # (K, J)
    first: Array  # by itself: Var f_g, (G, K, J)
    total: Array  # with all interactions: E (f - E f - f_{not g})², (G, K, J)


def effects(paths: Paths, measure: Measure, groups: Sequence[Sequence[int]]) -> Effects:
    """Return the variances of sample paths of a single process, and the parts that groups of inputs explain.

    They are in standard units. The posterior variance that paths do not represent is divided among the groups in
    proportion to the paths' deviations from the mean.
    """
    (functions,), rules = paths.functions, rules_for(measure)
    X = np.concatenate([measure.sobol(SETTINGS.points, seed + 1) for seed in range(SETTINGS.sets)])
    parts = []
    for k in range(len(functions.models)):
        a = functions.coefficients[k]
        half = a.shape[1] // 2
        of = _Products(functions, k, measure, rules, X, np.hstack([a, (a[:, :half] - a[:, half:]) / 2]))
        parts.append([of.variances, *(of.first(group) for group in groups), *(of.total(group) for group in groups)])
    found = np.array(parts).swapaxes(0, 1)  # (1 + 2 G, K, J + J/2)
    J = functions.coefficients.shape[2]
    explained, of_deviations = found[:, :, :J], found[:, :, J:].mean(axis=2)
    shares = of_deviations / np.maximum(of_deviations[0], np.finfo(float).tiny)
    explained = explained + (paths.residual_variances(X[: SETTINGS.points // 2]).mean(axis=1) * shares)[:, :, None]
    return Effects(explained[0], explained[1 : 1 + len(groups)], explained[1 + len(groups) :])


def transformed_effects(
    paths: Paths, measure: Measure, groups: Sequence[Sequence[int]], output: Callable[[Array, Array], Array]
) -> Effects:
    """Return the variances of functions of sample paths and inputs, and the parts that groups of inputs explain.

    They are averages over pairs of low-discrepancy points that share a group or all other inputs (Saltelli, Jansen),
    denser where functions are far from their means, with the error of these averages, but without the posterior
    variance that paths do not represent.
    """

    def variation(X: Array) -> Array:
        f = output(paths.values(X), X)
        return np.asarray(np.mean((f - f.mean(axis=2, keepdims=True)) ** 2, axis=(0, 1)))

    edges = edges_for(measure, variation, SETTINGS.bins, SETTINGS.noise)
    by_set = np.array([_of_pairs(paths, measure, groups, output, edges, seed) for seed in range(SETTINGS.sets)])
    whole, of_large, of_small = np.split(by_set, [1, 1 + 2 * len(groups)], axis=1)
    variances = whole[:, 0].mean(axis=0)
    size = np.clip(of_large.mean(axis=(0, 2, 3)) / max(float(variances.mean()), np.finfo(float).tiny), 0.0, 1.0)
    explained = of_small + size[:, None, None] * (of_large - of_small)
    shares = explained.mean(axis=0) / np.maximum(variances, np.finfo(float).tiny)
    # to first order in the errors of both averages over a set
    errors = explained - shares * whole
    averages = variances * shares + set_average(np.moveaxis(errors, 0, -1))
    first, total = np.split(np.clip(averages, 0.0, variances), 2)
    return Effects(variances, np.minimum(first, total), total)


def _of_pairs(
    paths: Paths,
    measure: Measure,
    groups: Sequence[Sequence[int]],
    output: Callable[[Array, Array], Array],
    edges: Array,
    seed: int,
) -> Array:
    """Return the variances of outputs, and what groups explain alone and with interactions: shape (1 + 4 G, K, J).

    There are two averages of each: one is best if a group explains almost everything, the other if almost nothing.
    """
    D = measure.dim
    U = even_points(2 * D, seed, SETTINGS.points)
    (u, of_A), (v, of_B) = stretched(edges, U[:, :D]), stretched(edges, U[:, D:])
    A, B = measure.from_cube(u), measure.from_cube(v)
    points, weights, pairs = [A, B], [of_A.prod(axis=1), of_B.prod(axis=1)], []
    for group in groups:
        inside = np.isin(np.arange(D), group)
        for (one, of_one), (other, of_other) in (((A, of_A), (B, of_B)), ((B, of_B), (A, of_A))):
            rest_of_one, part_of_other = of_one[:, ~inside].prod(axis=1), of_other[:, inside].prod(axis=1)
            points.append(np.where(inside, other, one))
            weights.append(rest_of_one * part_of_other)
            pairs.append((of_other.prod(axis=1) * rest_of_one, of_one.prod(axis=1) * part_of_other))
    X, w = np.concatenate(points), np.concatenate(weights)
    f = output(paths.values(X), X)
    f -= _average(f, w)[..., None]
    at_A, at_B, *at_mixed = np.split(f, len(points), axis=2)
    common, unrelated = _average(f**2, w), _average(at_A * at_B, weights[0] * weights[1])  # zero but for its error
    first, rest, unequal = [], [], []
    for i in range(0, len(at_mixed), 2):
        with_B, with_A = at_mixed[i : i + 2]
        (first_B, rest_A), (first_A, rest_B) = pairs[i : i + 2]
        first.append((_average(at_B * with_B, first_B) + _average(at_A * with_A, first_A)) / 2)
        rest.append((_average(at_A * with_B, rest_A) + _average(at_B * with_A, rest_B)) / 2)
        unequal.append((_average((at_A - with_B) ** 2, rest_A) + _average((at_B - with_A) ** 2, rest_B)) / 4)
    return np.array(
        [common, *first, *(common - each for each in rest), *(each - unrelated for each in first), *unequal]
    )


def _average(values: Array, weights: Array) -> Array:
    """Return averages of values (..., n) with weights (n,), which need not sum to one."""
    return np.asarray(values @ (weights / weights.sum()))


class _Products:
    """J functions f = Σ_p a_p Π_d φ_pd of one model, at the nodes of rules and at points X (n, D)."""

    def __init__(
        self, functions: Functions, k: int, measure: Measure, rules: Sequence[Rule], X: Array, coefficients: Array
    ) -> None:
        models, centres = functions.models, functions.centres
        s = centres.s
        J, n_paths = coefficients.shape[1], functions.coefficients.shape[2]
        terms = [
            (B, scales, group.kernel)
            for group in models.groups
            for B, scales in zip(group.B[k, :, models.target][:, s], group.scales[k], strict=True)
            if B.any()  # zero for terms of another structure
        ]
        # a trend is a sum over inputs: each summand is a product with ones
        trends = [
            (B[k, models.target, s][:, None] * kernel.observed(measure, centres), kernel)
            for kernel, B in zip(models.trends.kernels, models.trends.B, strict=True)
        ]
        offsets = np.where(np.arange(J) < n_paths, functions.offsets[k], 0.0)  # deviations have none
        self.a = np.concatenate(
            [
                (offsets + np.where(centres.differentiated, 0.0, models.constant[k, models.target, s]) @ coefficients)[
                    None
                ],
                *(B[:, None] * coefficients for B, _, _ in terms),
                *(slopes.T @ coefficients for slopes, _ in trends),
            ]
        )

        def factors(t: Array, d: int) -> Array:
            """Return φ_pd at values t (m,) of input d, shape (m, P)."""
            steps = differences(t[:, None], centres.X[:, [d]], [0] if d in measure.categorical else [])
            along = np.tile(np.where(centres.by == d, 0, VALUE), len(t))
            derivatives = Derivatives(steps, np.full_like(along, VALUE), along)
            columns = [np.ones((len(t), 1))]
            for _, scales, whole in terms:
                kernel = whole.over([d])
                values = kernel.values_batch(kernel.features(steps), scales[None, [d]])
                values[:, derivatives.entries] *= derivatives.factors(kernel, scales[None, [d]])
                columns.append(values.reshape(len(t), len(s)))
            for _, linear in trends:
                trend = np.ones((len(t), X.shape[1]))
                trend[:, d] = linear.functions(np.repeat(t[:, None], X.shape[1], axis=1))[:, d]
                columns.append(trend)
            return np.concatenate(columns, axis=1)

        at_nodes = [factors(rule.nodes, d) for d, rule in enumerate(rules)]
        self.means = np.array([rule.weights @ at for rule, at in zip(rules, at_nodes, strict=True)])  # (D, P)
        self.at_points = [factors(column, d) for d, column in enumerate(X.T)]  # (n, P) each
        self.mean = self.means.prod(axis=0) @ self.a  # (J,)
        weighted = [np.delete(self.means, d, axis=0).prod(axis=0)[:, None] * self.a for d in range(len(rules))]
        along = [at @ w - self.mean for at, w in zip(at_nodes, weighted, strict=True)]
        #: variance of the main effect of each input, (D, J), and that effect at the points, (D, n, J)
        self.main = np.array([rule.weights @ effect**2 for rule, effect in zip(rules, along, strict=True)])
        self.mains = np.array([at @ w - self.mean for at, w in zip(self.at_points, weighted, strict=True)])
        self.values = self._effect(range(len(rules)))

    @property
    def variances(self) -> Array:
        """Var f, shape (J,)."""
        return self._with_interactions(range(len(self.means)), self.values)

    def first(self, group: Sequence[int]) -> Array:
        """Return the variance that a group of inputs explains by itself, shape (J,)."""
        return self.main[group[0]] if len(group) == 1 else self._with_interactions(group, self._effect(group))

    def total(self, group: Sequence[int]) -> Array:
        """Return the variance that a group of inputs explains with all interactions, shape (J,)."""
        others = [d for d in range(len(self.means)) if d not in group]
        return self._with_interactions(group, self.values - self._effect(others))

    def _effect(self, inputs: Sequence[int]) -> Array:
        """Return f_S at the points, shape (n, J)."""
        rest = np.delete(self.means, list(inputs), axis=0).prod(axis=0)
        product = np.ones((len(self.mains[0]), len(rest)))
        for d in inputs:
            product *= self.at_points[d]
        return np.asarray(product @ (rest[:, None] * self.a) - self.mean)

    def _with_interactions(self, inputs: Sequence[int], effect: Array) -> Array:
        """Return E effect² (J,) of an effect (n, J), the sum of main effects of the inputs and interactions."""
        chosen = list(inputs)
        squares = (effect - self.mains[chosen].sum(axis=0)) ** 2
        by_set = squares.T.reshape(len(self.mean), SETTINGS.sets, -1).mean(axis=2)
        return np.asarray(self.main[chosen].sum(axis=0) + set_average(by_set))
