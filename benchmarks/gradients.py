"""Measure the worth of gradients: runs with and without them, at the same number of solves.

    python -m benchmarks.gradients                              # four hours on two cores
    python -m benchmarks.gradients --only ratio --seeds 1       # a few minutes

A gradient costs as much as a value, as that of an adjoint code does. The problems have 8 and 20 inputs:

- *borehole*: the flow of water through a borehole, 8 inputs.
- *diffusion*: the solution of an elliptic equation at one point, whose log-normal coefficient has 8 or 20 modes, with
  gradients by the adjoint equation.
- *welch*: the function of Welch et al. (1992), with 20 inputs, of which a few matter.
- *exponential*, *cosine*: of a weighted sum of 8 or 20 inputs.
- *ratio*: the inverse of one plus a weighted sum of squares of all inputs.
- *sines*: a sum of sines of all inputs, with decreasing frequencies.
- *network*: four hyperbolic tangents of random weighted sums of all inputs.

Printed are the root mean square error over the seeds and the average reported standard deviation, in standard
deviations of the output, without and with gradients, and in brackets their ratios to those without.
``--first`` compares numbers of first evaluations with gradients.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.linalg import solveh_banded

import amsbq
from amsbq.common.validation import Array
from amsbq.design import initial as initial_design
from amsbq.measures.base import Measure

DEFAULTS = initial_design.SETTINGS
#: number of solves, by number of inputs; a gradient is one solve
BUDGETS = {8: 24.0, 20: 40.0}
#: Sobol points whose average stands for the truth: its error is below 1e-4 standard deviations
REFERENCE = 1 << 15


@dataclass(frozen=True)
class Diffusion:
    """The solution u of -(a u')' = 1 on [0, 1] with u = 0 at both ends, at 0.7, where log a is a sum of cosines."""

    dim: int
    cells: int = 100

    @property
    def modes(self) -> Array:
        """The modes of log a in the cells, shape (D, cells)."""
        k, x = np.arange(1, self.dim + 1), (np.arange(self.cells) + 0.5) / self.cells
        return 0.35 * np.sqrt(2) * np.cos(np.pi * np.outer(k, x)) / k[:, None]

    def __call__(self, z: Array) -> tuple[float, Array]:
        """Return the solution and its gradient: one solve for each."""
        a, n = np.exp(z @ self.modes), self.cells
        resistance = np.concatenate([[0.5 / a[0]], 0.5 * (1 / a[:-1] + 1 / a[1:]), [0.5 / a[-1]]]) / n
        t = 1 / resistance  # conductances between neighbouring cells, and to the ends
        banded = np.zeros((2, n))
        banded[0, 1:], banded[1] = -t[1:-1], t[:-1] + t[1:]
        at = np.eye(n)[int(0.7 * n)]
        u, adjoint = solveh_banded(banded, np.full(n, 1 / n)), solveh_banded(banded, at)
        by_t = -np.diff(u, prepend=0, append=0) * np.diff(adjoint, prepend=0, append=0)
        by_resistance = -by_t * t**2 / n
        by_inverse = 0.5 * (by_resistance[:-1] + by_resistance[1:])  # each cell is part of two resistances
        return float(at @ u), self.modes @ (-by_inverse / a)


def borehole(x: Array) -> tuple[float, Array]:
    """Return the flow of water and its gradient."""
    rw, r, Tu, Hu, Tl, Hl, L, Kw = x
    log = np.log(r / rw)
    above, below = 2 * np.pi * Tu * (Hu - Hl), log + 2 * L * Tu / (rw**2 * Kw) + log * Tu / Tl
    by_above = np.array([0, 0, above / Tu, 2 * np.pi * Tu, 0, -2 * np.pi * Tu, 0, 0])
    by_below = np.array([-1 / rw, 1 / r, 0, 0, 0, 0, 0, 0]) * (1 + Tu / Tl)
    by_below[0] -= 4 * L * Tu / (rw**3 * Kw)
    by_below[2] = 2 * L / (rw**2 * Kw) + log / Tl
    by_below[4] = -log * Tu / Tl**2
    by_below[6:] = 2 * Tu / (rw**2 * Kw), -2 * L * Tu / (rw**2 * Kw**2)
    return above / below, by_above / below - above / below**2 * by_below


#: coefficients of the inputs with linear effects, by number
LINEAR = np.array([0, 5, 8, 0, 100, -3, 3, 0, -9, -1, -7, 0, 0, -4, 6, 0, -1, -3, -500, 0]) / 100


def welch(x: Array) -> tuple[float, Array]:
    """Return the function of Welch et al. (1992) and its gradient."""
    value = LINEAR @ x + 5 * x[11] / (1 + x[0]) + 5 * (x[3] - x[19]) ** 2 + 40 * x[18] ** 3 + 0.25 * x[12] ** 2
    gradient = LINEAR.copy()
    gradient[[0, 11]] = -5 * x[11] / (1 + x[0]) ** 2, 5 / (1 + x[0])
    gradient[[3, 19]] = 10 * (x[3] - x[19]) * np.array([1, -1])
    gradient[18] += 120 * x[18] ** 2
    gradient[12] += 0.5 * x[12]
    return float(value), gradient


_rng = np.random.default_rng(5)
DIRECTION = _rng.normal(size=20)
DIRECTION /= np.linalg.norm(DIRECTION)
FREQUENCIES = _rng.uniform(1, 3, 20) / np.arange(1, 21) ** 0.7
NETWORK = _rng.normal(size=(20, 4)) / np.sqrt(20)


def exponential(x: Array) -> tuple[float, Array]:
    """Return the exponential of a weighted sum, and its gradient."""
    weights = DIRECTION[: len(x)]
    value = np.exp(weights @ x)
    return float(value), value * weights


def cosine(x: Array) -> tuple[float, Array]:
    """Return the cosine of a weighted sum, and its gradient."""
    weights = 0.5 * FREQUENCIES[: len(x)]
    phase = 1 + weights @ x
    return float(np.cos(phase)), -np.sin(phase) * weights


def ratio(x: Array) -> tuple[float, Array]:
    """Return the inverse of one plus a weighted sum of squares, and its gradient."""
    weights = 1 / np.arange(1, 1 + len(x))
    below = 1 + weights @ x**2
    return float(1 / below), -2 * weights * x / below**2


def sines(x: Array) -> tuple[float, Array]:
    """Return a sum of sines of all inputs, and its gradient."""
    frequencies = FREQUENCIES[: len(x)]
    phases = frequencies * x + 0.5 * np.arange(len(x))
    return float(np.sin(phases).sum()), frequencies * np.cos(phases)


def network(x: Array) -> tuple[float, Array]:
    """Return a function of four hyperbolic tangents, and its gradient."""
    weights = NETWORK[: len(x)]
    t = np.tanh(x @ weights)
    return float(np.sum(t + 0.3 * t**2)), weights @ ((1 - t**2) * (1 + 0.6 * t))


PROBLEMS: dict[str, tuple[Measure, Callable[[Array], tuple[float, Array]]]] = {
    "borehole, 8": (
        amsbq.Uniform(
            [0.05, 100, 63070, 990, 63.1, 700, 1120, 9855], [0.15, 50000, 115600, 1110, 116, 820, 1680, 12045]
        ),
        borehole,
    ),
    "diffusion, 8": (amsbq.Gaussian(np.zeros(8), 1.0), Diffusion(8)),
    "diffusion, 20": (amsbq.Gaussian(np.zeros(20), 1.0), Diffusion(20)),
    "welch, 20": (amsbq.Uniform(np.full(20, -0.5), 0.5), welch),
}
for D in BUDGETS:
    PROBLEMS |= {
        f"exponential, {D}": (amsbq.Gaussian(np.zeros(D), 1.0), exponential),
        f"cosine, {D}": (amsbq.Uniform(np.zeros(D), 1.0), cosine),
        f"ratio, {D}": (amsbq.Gaussian(np.zeros(D), 0.5), ratio),
        f"sines, {D}": (amsbq.Uniform(np.full(D, -1.0), 1.0), sines),
        f"network, {D}": (amsbq.Gaussian(np.zeros(D), 1.0), network),
    }


def run(name: str, seed: int, first: int | None) -> tuple[float, float, int]:
    """Return the error of a run, its standard deviation, and the number of gradients that it evaluated.

    If ``first`` is None there are no gradients, else so many of the first evaluations have them; 0 is the default.
    """
    warnings.simplefilter("ignore")
    measure, both = PROBLEMS[name]
    gradient = None if first is None else (lambda x: both(x)[1])
    if first is not None:
        initial_design.SETTINGS = replace(DEFAULTS, gradient_locations=first or DEFAULTS.gradient_locations)
    source = amsbq.Source(lambda x: both(x)[0], gradient=gradient)
    result = amsbq.integrate(source, measure, budget=BUDGETS[measure.dim], seed=seed, progress=False)
    bought = sum(e.gradient is not None for e in result.evaluations)
    return result.mean, result.std, bought


def truth(name: str) -> tuple[float, float]:
    """Return the mean and the standard deviation of the output."""
    measure, both = PROBLEMS[name]
    values = np.array([both(x)[0] for x in measure.sobol(REFERENCE, 77)])
    return float(values.mean()), float(values.std())


def rows(names: Sequence[str], seeds: Sequence[int], firsts: Sequence[int], workers: int) -> Iterator[str]:
    """Yield a line for each problem and number of first evaluations with gradients."""
    with ProcessPoolExecutor(workers) as pool:
        for name in names:
            jobs = [(name, seed, first) for first in (None, *firsts) for seed in seeds]
            answers = np.array(list(pool.map(run, *zip(*jobs, strict=True)))).reshape(1 + len(firsts), len(seeds), 3)
            mean, sd = truth(name)
            errors = np.sqrt(np.mean((answers[:, :, 0] - mean) ** 2, axis=1)) / sd
            stds, bought = answers[:, :, 1].mean(axis=1) / sd, answers[:, :, 2].mean(axis=1)
            for error, std, number in zip(errors, stds, bought, strict=True):
                ratios = f"rms error {error:.1e} ({error / errors[0]:.2f}), std {std:.1e} ({std / stds[0]:.2f})"
                yield f"{name:15} {number:2.0f} gradients: {ratios}"


def main() -> None:
    """Run all problems and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="beginnings of the names of problems")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--first", type=int, nargs="+", default=[0])
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()
    names = [name for name in PROBLEMS if name.startswith(tuple(options.only))]
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for line in rows(names, seeds, options.first, options.workers):
        print(line, flush=True)


if __name__ == "__main__":
    main()
