"""Fixed designs: given observations, and estimates of the integral from them.

Levels of a hierarchy have nested designs: each coarser level has twice as many points, including those of the finer
level. Other secondary sources have space-filling designs with four times as many points as the primary one, half of
whose points they share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

import amsbq
from amsbq import baselines
from amsbq.inference.structures import ModelName
from benchmarks.arena.arrays import Array

from .problem import Problem

#: stage -> evaluations of the primary source, if it is the finest level and if not: as few as can show a difference,
#: and about as many as a budget of 10 pays for
SIZES = {"small data": (2, 5), "large data": (4, 12)}
OWN = ("own data",)  #: the stage of problems with their own design
RATIO = 4  # secondary points per primary one, for sources that are not levels


@dataclass(frozen=True)
class Observations:
    """Observations of all sources of a problem: sources (N,), locations (N, D), values (N,), variances (N,)."""

    sources: Array
    X: Array
    y: Array
    variances: Array
    cost: float

    def of(self, source: int) -> tuple[Array, Array]:
        """Return locations and values of a source."""
        at = self.sources == source
        return self.X[at], self.y[at]


Estimator: TypeAlias = Callable[[Problem, Observations, int], amsbq.Estimate]


def locations(problem: Problem, n: int, seed: int) -> Sequence[Array]:
    """Return the locations (·, D) of each source, n of the primary one, or those of the problem's own design."""
    if problem.design:
        return problem.design(np.random.default_rng(seed))
    L, rng = len(problem.functions), np.random.default_rng([seed, n])
    if problem.ordered:
        shared = problem.measure.sobol(n * 2 ** (L - 1), rng)
        return [shared[: n * 2**level] for level in range(L)]
    own, shared = problem.measure.sobol(n, rng), problem.measure.sobol(RATIO * n, rng)
    return [np.concatenate([shared[: n // 2], own[n // 2 :]]) if L > 1 else own, *[shared] * (L - 1)]


def at_stage(problem: Problem, stage: str, seed: int) -> Observations:
    """Return the observations of all sources at a stage."""
    return observe(problem, 0 if stage in OWN else SIZES[stage][not problem.ordered], seed)


def observe(problem: Problem, n: int, seed: int) -> Observations:
    """Return observations of all sources, n of the primary one."""
    L, designs = len(problem.functions), locations(problem, n, seed)
    found = [problem.observe(source, X, seed) for source, X in enumerate(designs)]
    flat = [observation for of_source in found for observation in of_source]
    cost = sum(float(problem.cost_of(source, X).sum()) for source, X in enumerate(designs))
    return Observations(
        np.repeat(np.arange(L), [len(X) for X in designs]),
        np.concatenate(designs),
        np.array([observation.value for observation in flat]),
        np.array([observation.variance for observation in flat]),
        cost,
    )


def by_model(model: ModelName, declared: bool = False) -> Estimator:
    """Return the estimator `amsbq.estimate` with a model, with the knobs of the sources ``declared`` or not."""

    def estimate(problem: Problem, data: Observations, seed: int) -> amsbq.Estimate:
        noise = [source.noise for source in problem.sources(seed)]
        used = data.sources == 0 if model == "vbq" else data.sources >= 0
        return amsbq.estimate(
            data.sources[used],
            data.X[used],
            data.y[used],
            problem.measure,
            model=model,
            noise=noise[: 1 + int(data.sources[used].max())],
            noise_var=data.variances[used],
            seed=seed,
            **({"fidelity": problem.knobs} if declared else {}),  # older releases lack this argument
        )

    return estimate


def differences(data: Observations) -> list[tuple[Array, Array]]:
    """Return for each level its design points, and its values there minus those of the next coarser level."""
    levels = [data.of(source) for source in range(int(data.sources.max()) + 1)]
    finer = [(X, y - levels[k + 1][1][: len(y)]) for k, (X, y) in enumerate(levels[:-1])]
    return [*finer, levels[-1]]


def multilevel_bq(problem: Problem, data: Observations, seed: int) -> amsbq.Estimate:
    """Return the sum of independent Bayesian quadratures of the differences between levels (Li et al. 2023)."""
    return baselines.multilevel_bq_estimate(data.sources, data.X, data.y, problem.measure, seed=seed)


def averages(problem: Problem, data: Observations, seed: int) -> amsbq.Estimate:
    """Return the sum of averages of the differences between levels, as in multilevel Monte Carlo."""
    found = [y for _, y in differences(data)]
    variance = sum(np.var(y, ddof=1) / len(y) for y in found)
    return amsbq.Estimate([sum(y.mean() for y in found)], [math.sqrt(variance)], dof=min(len(y) for y in found) - 1)
