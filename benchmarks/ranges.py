"""Measure the worth of knowing the range of outputs: errors at equal cost, with and without it, and coverage.

    python -m benchmarks.ranges                     # all problems, three seeds: half an hour
    python -m benchmarks.ranges --only peak plume --seeds 1

The problems are peaks, likelihoods and concentrations: never negative, and almost zero over most of the inputs. The
truth is from 2^20 Sobol points, or from a product of Gauss rules.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats

import amsbq
from amsbq.common.validation import Array

REFERENCE_POINTS = 2**20
NON_NEGATIVE = (0.0, np.inf)


@dataclass(frozen=True)
class Problem:
    """Sources as functions of points (n, D), their costs, and the range of their values."""

    measure: Any
    functions: tuple[Callable[[Array], Array], ...]
    costs: tuple[float, ...] = (1.0, 0.1)
    budget: float = 10.0
    output_range: tuple[float, float] = NON_NEGATIVE

    def truth(self) -> float:
        """Return the integral of the primary source over Sobol points of the measure."""
        return float(self.functions[0](amsbq.as_measure(self.measure).sobol(REFERENCE_POINTS, 5)).mean())


def bump(centre: list[float], width: float, height: float = 1.0) -> Callable[[Array], Array]:
    """Return a Gaussian peak."""
    return lambda X: height * np.exp(-0.5 * (((X - centre) / width) ** 2).sum(axis=1))


def two_peaks(X: Array) -> Array:
    """Return two peaks of different heights."""
    return bump([0.3, 0.3], 0.12)(X) + bump([0.75, 0.65], 0.09, 0.6)(X)


def decay(n: int) -> Callable[[Array], Array]:
    """Return the concentration of the middle of a chain of reactions at time 2, by n steps; exact for n = 0."""

    def concentration(X: Array) -> Array:
        a, b = np.exp(X[:, 0]), np.exp(X[:, 1])
        if n == 0:
            close = np.abs(a - b) < 1e-9
            gap = np.where(close, 1.0, b - a)
            return np.where(close, 2 * a * np.exp(-2 * a), a * (np.exp(-2 * a) - np.exp(-2 * b)) / gap)
        first, middle, h = np.ones(len(X)), np.zeros(len(X)), 2 / n
        for _ in range(n):
            first, middle = first / (1 + h * a), (middle + h * a * first / (1 + h * a)) / (1 + h * b)
        return middle

    return concentration


def plume(X: Array) -> Array:
    """Return the concentration beside the axis of a plume: wind speed, its direction, and mixing."""
    wind, angle, mixing = X.T
    across = 2.0 * np.tan(angle)
    width = mixing * np.sqrt(2.0 / wind)
    return np.exp(-0.5 * (across / width) ** 2) / (wind * width)


def plume_without_wind(X: Array) -> Array:
    """Return the plume for the mean wind, slightly displaced."""
    return plume(np.column_stack([np.full(len(X), 3.0), X[:, 1] + 0.02, X[:, 2]]))


def oscillator_likelihood(shift: float, factor: float) -> Callable[[Array], Array]:
    """Return the likelihood of four noisy amplitudes of a damped oscillation: frequency, damping, amplitude."""
    times = np.array([0.4, 1.1, 1.9, 2.6])

    def response(X: Array) -> Array:
        w, d, a = X[:, :1], X[:, 1:2], X[:, 2:3]
        return a * np.exp(-d * times) * np.cos((w + shift) * times)

    data = np.array([0.03, -0.05, 0.04, 0.02]) + response(np.array([[2.0, 0.4, 1.5]]))
    return lambda X: np.exp(-0.5 * factor * (((response(X) - data) / 0.12) ** 2).sum(axis=1))


def growth(X: Array) -> Array:
    """Return a population after growth at an uncertain rate: over orders of magnitude."""
    return np.exp(2.5 * X[:, 0] + 1.0 * X[:, 1] * X[:, 2]) / (1 + 0.3 * X[:, 2] ** 2)


def infected(n: int) -> Callable[[Array], Array]:
    """Return the share of a population that an epidemic reaches: the final size, by n fixed-point iterations."""

    def share(X: Array) -> Array:
        number, vaccinated = X[:, 0], X[:, 1]
        size = np.full(len(X), 0.9)
        for _ in range(n):
            size = (1 - vaccinated) * (1 - np.exp(-number * size))
        return size

    return share


PROBLEMS = {
    "peak": Problem(amsbq.Uniform([0, 0], [1, 1]), (bump([0.4, 0.4], 0.15), bump([0.43, 0.43], 0.16, 0.9))),
    "two peaks": Problem(amsbq.Uniform([0, 0], [1, 1]), (two_peaks, lambda X: two_peaks(0.97 * X + 0.02) ** 1.1)),
    "one source": Problem(amsbq.Uniform([0, 0], [1, 1]), (two_peaks,), (1.0,), 16.0),
    "narrow": Problem(amsbq.Uniform(0, 1), (bump([0.62], 0.04),), (1.0,), 12.0),
    "corner": Problem(
        amsbq.Uniform([0, 0, 0], [1, 1, 1]),
        (lambda X: 1 / (1 + 25 * (X**2).sum(axis=1)), lambda X: 0.9 / (1 + 30 * ((X - 0.03) ** 2).sum(axis=1))),
    ),
    "likelihood": Problem(
        [stats.norm(2, 0.6), stats.gamma(2, scale=0.25), stats.norm(1.5, 0.4)],
        (oscillator_likelihood(0.0, 1.0), oscillator_likelihood(0.08, 1.0)),
        budget=14.0,
    ),
    "reaction": Problem([stats.norm(0, 1), stats.norm(0.5, 1)], (decay(0), decay(4))),
    "plume": Problem(
        [stats.lognorm(0.3, scale=3), stats.norm(0.1, 0.15), stats.uniform(0.2, 0.4)], (plume, plume_without_wind)
    ),
    "growth": Problem([stats.norm()] * 3, (growth, lambda X: np.exp(2.4 * X[:, 0] + 0.9 * X[:, 1] * X[:, 2]))),
    "epidemic": Problem(
        [stats.gamma(9, scale=0.18), stats.uniform(0, 0.5)], (infected(400), infected(3)), output_range=(0.0, 1.0)
    ),
}


def run(job: tuple[str, int, bool]) -> tuple[str, int, bool, float, float, float, bool, bool, float]:
    """Return the job, relative error, relative standard deviation, whether intervals hold the truth, and seconds."""
    name, seed, known = job
    problem, start = PROBLEMS[name], time.perf_counter()
    sources = [
        amsbq.Source(lambda x, f=f: float(f(x[None])[0]), cost=cost)
        for f, cost in zip(problem.functions, problem.costs, strict=True)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = amsbq.integrate(
            sources,
            problem.measure,
            budget=problem.budget,
            seed=seed,
            progress=False,
            max_evaluations=80,
            output_range=problem.output_range if known else None,
        )
    truth = problem.truth()
    inside = [low <= truth <= high for low, high in (found.interval(0.95), found.interval(0.5))]
    kind = "{} {:g}".format(*found.integrator.learner.posterior.components[0].transform.shape) if known else ""
    seconds = time.perf_counter() - start
    return name, seed, known, abs(found.mean / truth - 1), found.std / truth, *inside, seconds, kind


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="others than those by which a rule was chosen")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--methods", nargs="+", default=["plain", "range"], choices=["plain", "range"])
    given = parser.parse_args()
    jobs = [
        (name, seed, known)
        for name in given.only
        for seed in range(given.first_seed, given.first_seed + given.seeds)
        for known in (method == "range" for method in given.methods)
    ]
    rows = []
    with ProcessPoolExecutor(given.workers) as pool:
        for row in pool.map(run, jobs):
            rows.append(row)
            name, seed, known, error, std, in_95, _, seconds, kind = row
            print(
                f"{name:12} seed {seed} {'range' if known else 'plain':5} error {error:.2e} std {std:.2e} "
                f"{'' if in_95 else 'MISSED'} {seconds:.0f} s {kind}",
                flush=True,
            )
    for known in (False, True):
        of = [row for row in rows if row[2] is known]
        if of:
            errors, shares = np.array([row[3] for row in of]), np.array([row[5:7] for row in of]).mean(axis=0)
            print(
                f"{'range' if known else 'plain'}: geometric mean of errors {np.exp(np.log(errors).mean()):.2e}, "
                f"coverage of 95 % {shares[0]:.0%}, of 50 % {shares[1]:.0%}"
            )
    if len(given.methods) == 2:
        for name in given.only:
            logs = [np.log(row[3] + 1e-12) * (1 if row[2] else -1) for row in rows if row[0] == name]
            print(
                f"{name:12} error with the range, as a share of that without: {np.exp(np.sum(logs) / given.seeds):.2g}"
            )


if __name__ == "__main__":
    main()
