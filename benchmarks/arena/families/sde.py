"""Expected payoffs of stochastic differential equations by Euler's method, with the D normal increments as inputs.

The primary source takes D steps; the secondary ones take fewer, by the sums of the same increments. The truth is the
expectation over the Markov chain, backwards in time: v_k(x) = E v_{k+1}(x + a(x) h + b(x) √h z), with v interpolated
at Chebyshev nodes. This is independent of how sources are evaluated, and unaffected by the number of inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.polynomial import chebyshev
from scipy import stats

from benchmarks.arena.arrays import Array

from ..problem import Function, Moments, Problem, added
from ..quadrature import hermite, legendre, moments_of

N_NODES, N_HERMITE, N_LAST = 400, 80, 120


@dataclass(frozen=True)
class Equation:
    """dX = a(X) dt + b(X) dW from a start to time 1, and a payoff with at most one kink."""

    drift: Function
    diffusion: Function
    start: float
    payoff: Function
    kink: float
    interval: tuple[float, float]  # that contains the path, except with negligible probability

    def simulate(self, steps: int, Z: Array) -> Array:
        """Return the payoff (n,) for standard normal increments Z (n, D), summed to a number of steps."""
        h = 1 / steps
        dW = Z.reshape(len(Z), steps, -1).sum(axis=2) / np.sqrt(Z.shape[1])
        x = np.full(len(Z), self.start)
        for k in range(steps):
            x = x + self.drift(x) * h + self.diffusion(x) * dW[:, k]
        return self.payoff(x)

    def moments(self, steps: int) -> Moments:
        """Return mean and standard deviation of the payoff after that many steps."""
        return moments_of(*(np.array([self._mean(steps, power, n) for power in (1, 2)]) for n in (N_NODES, 300)))

    def _mean(self, steps: int, power: int, n: int) -> float:
        (low, high), h = self.interval, 1 / steps
        middle, half = (low + high) / 2, (high - low) / 2

        def moved(x: Array, z: Array) -> Array:
            return (x + self.drift(x) * h)[:, None] + (self.diffusion(x) * np.sqrt(h))[:, None] * z

        def last(x: Array) -> Array:  # the payoff has a kink: Gauss rules to its left and to its right
            scale = self.diffusion(x) * np.sqrt(h)
            kink = np.clip((self.kink - x - self.drift(x) * h) / scale, -9, 9)
            t, w = legendre(N_LAST)
            total = np.zeros(len(x))
            for a, b in ((np.full_like(kink, -9.0), kink), (kink, np.full_like(kink, 9.0))):
                z = a[:, None] + (b - a)[:, None] * t
                density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
                values = (x + self.drift(x) * h)[:, None] + scale[:, None] * z
                total += (b - a) * ((self.payoff(values) ** power * density) @ w)
            return total

        value: Callable[[Array], Array] = last
        z, w = hermite(N_HERMITE)
        for _ in range(steps - 1):
            coefficients = chebyshev.chebinterpolate(lambda t, v=value: v(middle + half * t), n - 1)
            following = partial(chebyshev.chebval, c=coefficients)

            def value(x: Array, following: Function = following) -> Array:
                inside = np.clip((moved(x, z) - middle) / half, -1, 1)
                return following(inside) @ w

        return float(value(np.array([self.start]))[0])


def call(strike: float) -> Function:
    """Return the payoff (x - strike)₊."""
    return lambda x: np.maximum(x - strike, 0.0)


def member(title: str, equation: Equation, steps: dict[int, float]) -> Problem:
    """Return a problem whose sources take the given numbers of steps, from the most to the fewest, at their costs."""
    finest = max(steps)
    functions = tuple(partial(equation.simulate, n) for n in steps)
    marginals = [stats.norm(0, 1)] * finest
    return Problem(
        f"{title}, {', '.join(map(str, steps))} Euler steps",
        marginals,
        functions,
        tuple(steps.values()),
        partial(equation.moments, finest),
        ordered=True,
        knobs=tuple({"h": 1 / n} for n in steps),
    )


def sde() -> list[Problem]:
    """Return payoffs of stochastic differential equations with 6 to 12 inputs, smooth or with a kink."""
    stock = Equation(lambda x: 0.05 * x, lambda x: 0.3 * x, 1.0, call(1.0), 1.0, (0.02, 12.0))
    reverting = Equation(
        lambda x: 1.5 * (0.5 - x), lambda x: 0.4 * np.sqrt(0.25 + x**2), 1.0, lambda x: np.exp(-x), 0.5, (-5.0, 6.0)
    )
    double_well = Equation(
        lambda x: 2 * np.tanh(2 * x) - x, lambda x: np.full_like(x, 0.6), 0.1, np.tanh, 0.0, (-9.0, 9.0)
    )
    spread = Equation(lambda x: -0.5 * x, lambda x: 0.5 + 0.2 * np.sin(x), 0.2, call(0.3), 0.3, (-7.0, 7.0))
    put = Equation(
        lambda x: 0.3 * (1 - x),
        lambda x: 0.25 * np.sqrt(0.5 + x**2),
        1.0,
        lambda x: np.log1p(np.exp(4 - 4 * x)),
        1.0,
        (-6, 8),
    )
    bounded = Equation(np.sin, lambda x: 0.4 + 0.1 * np.cos(x), 0.5, lambda x: x**2, 0.0, (-7.0, 8.0))
    return [
        member("call on geometric Brownian motion", stock, {8: 1.0, 4: 0.5, 2: 0.2, 1: 0.1}),
        member("discount under mean reversion", reverting, {12: 1.0, 6: 0.3, 3: 0.1}),
        member("double well", double_well, {6: 1.0, 3: 0.2, 2: 0.1}),
        member("call on a spread", spread, {12: 1.0, 4: 0.15, 2: 0.05}),
        *added(
            member("a smoothed put", put, {8: 1.0, 4: 0.4, 2: 0.15}),
            member("square of a bounded drift", bounded, {10: 1.0, 5: 0.3, 2: 0.1, 1: 0.05}),
        ),
    ]
