"""Asian options of QMCPy 2.4 and fastgps 1.1: paths of 16 steps, of which coarser levels see every second one.

Inputs are the principal components of the Brownian path, as in those packages. X is (n, 16).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import stats
from scipy.special import ndtr

from benchmarks.arena.arrays import Array
from benchmarks.arena.problem import Moments, Problem
from benchmarks.arena.quadrature import by_sobol

STEPS = (16, 8, 4, 2)
TIMES = np.arange(1, 17) / 16
COVARIANCE = np.minimum.outer(TIMES, TIMES)
EIGENVALUES, EIGENVECTORS = np.linalg.eigh(COVARIANCE)
#: turns inputs into the path at the sixteen times; the first input moves it most
COMPONENTS = (EIGENVECTORS * np.sqrt(EIGENVALUES))[:, ::-1]


@dataclass(frozen=True)
class Option:
    """A call on the average price within a year."""

    start: float
    strike: float
    volatility: float
    rate: float

    def logarithms(self, steps: int, X: Array) -> Array:
        """Return the logarithms (n, steps) of the price."""
        every = len(TIMES) // steps
        drift = (self.rate - self.volatility**2 / 2) * TIMES
        paths = drift + self.volatility * X @ COMPONENTS.T
        return np.log(self.start) + paths[:, every - 1 :: every]

    def geometric(self, steps: int, X: Array) -> Array:
        """Return the discounted payoff on the geometric average at the ends of the steps."""
        return self._payoff(np.exp(self.logarithms(steps, X).mean(axis=1)))

    def arithmetic(self, steps: int, X: Array) -> Array:
        """Return the discounted payoff on the arithmetic average by the trapezoidal rule."""
        prices = np.exp(self.logarithms(steps, X))
        return self._payoff((self.start / 2 + prices[:, :-1].sum(axis=1) + prices[:, -1] / 2) / steps)

    def _payoff(self, average: Array) -> Array:
        return np.exp(-self.rate) * np.maximum(average - self.strike, 0.0)

    def geometric_moments(self, steps: int = 16) -> Moments:
        """Return the moments of the payoff on the geometric average, whose logarithm is normal."""
        times = np.arange(1, steps + 1) / steps
        m = np.log(self.start) + (self.rate - self.volatility**2 / 2) * times.mean()
        s = self.volatility * np.sqrt(np.minimum.outer(times, times).mean())
        d = (m - np.log(self.strike)) / s
        first, second = np.exp(m + s**2 / 2), np.exp(2 * m + 2 * s**2)
        mean = first * ndtr(d + s) - self.strike * ndtr(d)
        square = second * ndtr(d + 2 * s) - 2 * self.strike * first * ndtr(d + s) + self.strike**2 * ndtr(d)
        discount = np.exp(-self.rate)
        return Moments(float(discount * mean), float(discount * np.sqrt(square - mean**2)))


GEOMETRIC = Option(39.0, 40.0, 0.5, 0.05)
ARITHMETIC = Option(100.0, 100.0, 0.2, 0.05)


def options() -> list[Problem]:
    """Return two options with four levels."""
    normal, costs = [stats.norm(0, 1)] * 16, tuple(steps / 16 for steps in STEPS)
    return [
        Problem(
            "call on a geometric average, 16 to 2 steps",
            normal,
            tuple(partial(GEOMETRIC.geometric, steps) for steps in STEPS),
            costs,
            GEOMETRIC.geometric_moments,
            ordered=True,
        ),
        Problem(
            "call on an arithmetic average, 16 to 2 steps",
            normal,
            tuple(partial(ARITHMETIC.arithmetic, steps) for steps in STEPS),
            costs,
            by_sobol(normal, partial(ARITHMETIC.arithmetic, 16)),
            ordered=True,
        ),
    ]
