"""Problems with known integrals for the baselines, vectorised: values (n,) of a source at locations (n, D)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

import amsbq

#: costs and cells of the levels of the two-point boundary value problem, its inputs, and its integral on 32 cells
BOUNDARY_COSTS, BOUNDARY_CELLS = (1.0, 0.15, 0.05), (32, 4, 2)
BOUNDARY_TRUTH = -3.413622
BOUNDARY_INPUTS = amsbq.as_measure([(0, 1), stats.norm()])


def boundary_value(X: Any, cells: int) -> Any:
    """∫ u over (0, 1) for (k u')' = 50 z², k = 1 + a t, u(0) = u(1) = 0, by linear finite elements; X = (a, z).

    The flux k u' is 50 z² t + c, so that on each cell u grows by (50 z² t + c) h / k at its middle.
    """
    a, z = X.T
    h = 1 / cells
    middles = (np.arange(cells) + 0.5) * h
    k = 1 + np.outer(a, middles)
    c = -(middles / k).sum(axis=1) / (1 / k).sum(axis=1)  # so that u(1) = 0
    u = np.cumsum((middles + c[:, None]) / k, axis=1) * h
    return 50 * z**2 * h * u.sum(axis=1)


def ishigami(X: Any, source: int) -> Any:
    """The three functions of MXMCPy's example; the integral of the first one is 2.5."""
    a, b, c = X.T
    second = (5.0, 4.75, 3.0)[source] * np.sin(b) ** 2
    return np.sin(a) + second + (0.9 * c**2 if source == 2 else 0.1 * c**4) * np.sin(a)


ISHIGAMI_COSTS = np.array([1.0, 0.05, 0.001])
ISHIGAMI_INPUTS = amsbq.Uniform([-np.pi] * 3, [np.pi] * 3)


def ishigami_covariance() -> Any:
    """The covariance matrix of the three functions, by a Gauss rule."""
    t, w = np.polynomial.legendre.leggauss(40)
    X = np.pi * np.stack(np.meshgrid(t, t, t, indexing="ij"), axis=-1).reshape(-1, 3)
    weights = np.einsum("i,j,k->ijk", w, w, w).ravel() / 8
    values = np.stack([ishigami(X, source) for source in range(3)])
    return (values * weights) @ values.T - np.outer(values @ weights, values @ weights)


def as_sources(function: Any, arguments: Any, costs: Any) -> list[amsbq.Source]:
    """One source for each argument of a vectorised function."""
    return [
        amsbq.Source(lambda x, at=argument: float(function(x[None], at)[0]), cost=cost)
        for argument, cost in zip(arguments, costs, strict=True)
    ]
