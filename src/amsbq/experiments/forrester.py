"""The two-source demonstration of Section 4.1: the Forrester function and a cheap relative of it, on [0, 1]."""

from __future__ import annotations

import numpy as np

from ..checks import Array
from ..coregion import Term
from ..kernels import RBF
from ..measures import Uniform
from ..model import MultiSourceGP, Posterior

#: where the paper's demonstration starts: three observations of the primary source, five of the secondary one
SOURCES = np.array([0, 0, 0, 1, 1, 1, 1, 1])
X = np.array([[0.78], [0.55], [0.2], [0.98], [0.62], [0.59], [0.45], [0.35]])


def primary(x: Array) -> Array:
    """f_1, the expensive source."""
    return (6 * x - 2) ** 2 * np.sin(12 * x - 4)


def secondary(x: Array) -> Array:
    """f_2, the cheap one."""
    return 0.5 * primary(x) + 10 * x


def true_integral() -> float:
    """∫₀¹ f_1, with u = 12x - 4: (1/48) ∫ u² sin u du from -4 to 8."""

    def antiderivative(u: float) -> float:
        return float((2 - u * u) * np.cos(u) + 2 * u * np.sin(u))

    return (antiderivative(8.0) - antiderivative(-4.0)) / 48


def starting_posterior(sources: tuple[int, ...] = (0, 1)) -> Posterior:
    """The paper's starting data, under hyperparameters fixed by hand.

    Standard deviations of 6, a correlation of 2/3 between the sources, a lengthscale of 0.15, and the paper's noise
    variance of 1e-2. With ``sources=(0,)`` only the primary source is looked at: vanilla Bayesian quadrature.
    """
    gp = MultiSourceGP([Term([[36.0, 24.0], [24.0, 36.0]], RBF(0.15))], Uniform(0, 1), noise=1e-2)
    chosen = np.isin(SOURCES, sources)
    s, x = SOURCES[chosen], X[chosen]
    return gp.condition(s, x, np.where(s == 0, primary(x[:, 0]), secondary(x[:, 0])))
