"""Independent calculations that the library is held against: plain formulas, Gauss rules, a dense joint Gaussian."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special, stats

import amsbq

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def profile(kernel: Any, u: Any) -> Any:
    """The one-dimensional profile of a kernel, as in a textbook."""
    r = np.abs(u)
    if isinstance(kernel, amsbq.Constant):
        return np.ones_like(r)
    if isinstance(kernel, amsbq.RBF):
        return np.exp(-(r**2) / 2)
    s = np.sqrt(2 * kernel.nu) * r
    return {0.5: 1, 1.5: 1 + s, 2.5: 1 + s + s**2 / 3}[kernel.nu] * np.exp(-s)


def _per_input(kernel: Any, X: Any) -> Any:
    """The centre and the scale of a linear kernel for each input."""
    return zip(*(np.broadcast_to(value, X.shape[1]) for value in (kernel.centre, kernel.scales)), strict=True)


def kernel_matrix(kernel: Any, X: Any, Y: Any) -> Any:
    X, Y = np.asarray(X, float), np.asarray(Y, float)
    if isinstance(kernel, amsbq.Linear):
        return sum(np.outer(*((Z[:, d] - c) / s for Z in (X, Y))) for d, (c, s) in enumerate(_per_input(kernel, X)))
    scales = getattr(kernel, "lengthscales", 1.0)
    return np.prod(profile(kernel, (X[:, None, :] - Y[None, :, :]) / scales), axis=2)


@dataclass(frozen=True)
class Line:
    """A distribution on the line as t = T(y), with a smooth density w of y on a finite interval.

    The substitution takes away whatever is singular or heavy-tailed about the density of t itself.
    """

    T: Callable[[Any], Any]
    inverse: Callable[[Any], Any]
    w: Callable[[Any], Any]
    low: float
    high: float
    scipy: Any

    def rule(self, cuts: Any = (), panels: int = 400) -> tuple[Any, Any]:
        """Points t and weights of a composite Gauss rule with panel edges at all the cuts."""
        inside = self.inverse(np.asarray(cuts, float))
        inside = inside[(inside > self.low) & (inside < self.high)]
        edges = np.unique(np.concatenate([np.linspace(self.low, self.high, panels + 1), inside]))
        half = np.diff(edges)[:, None] / 2
        y = (edges[:-1, None] + half * (1 + NODES)).ravel()
        return self.T(y), (half * WEIGHTS).ravel() * self.w(y)

    def mean(self, g: Callable[[Any], Any], x: float, scale: float) -> float:
        """∫ g((x - t) / scale) p(t) dt, where g may have a kink at 0."""
        steps = np.concatenate([-np.geomspace(0.1, 60, 30)[::-1], [0], np.geomspace(0.1, 60, 30)])
        with np.errstate(invalid="ignore"):
            t, weights = self.rule(np.append(x + scale * steps, self.scipy.ppf(np.linspace(0.01, 0.99, 20))))
        return float(g((x - t) / scale) @ weights)

    def double(self, g: Callable[[Any], Any], scale: float) -> float:
        """∬ g((t' - t) / scale) p(t) p(t') dt dt' for even g: twice the triangle t < t'."""
        outer, steps, inner = triangle(self)
        blocks = zip(
            np.array_split(steps, 60), np.array_split(inner, 60), strict=True
        )  # each of them fits in the cache
        return float(2 * outer @ np.concatenate([(g(some / scale) * weights).sum(axis=1) for some, weights in blocks]))


@lru_cache(maxsize=1)  # it is large, and the same for all g and scales
def triangle(line: Line) -> tuple[Any, Any, Any]:
    """Weights of t, differences t - t' for t' < t as rows, and weights of t', of a composite Gauss rule."""
    edges = line.low + (line.high - line.low) * (1 - np.cos(np.linspace(0, np.pi, 81))) / 2
    half = np.diff(edges)[:, None] / 2
    y = (edges[:-1, None] + half * (1 + NODES)).ravel()
    # inner panels that shrink towards y, where the kernel is, and towards the other end, where the tail is
    side = np.geomspace(1e-6, 0.5, 24)
    grid = np.concatenate([[0], side, 1 - side[-2::-1], [1]])
    inner = (grid[:-1, None] + np.diff(grid)[:, None] * (1 + NODES) / 2).ravel()
    inner_weights = (np.diff(grid)[:, None] * WEIGHTS / 2).ravel()
    length = y - line.low
    y2 = y[:, None] - length[:, None] * inner
    outer = (half * WEIGHTS).ravel() * line.w(y) * length
    return outer, line.T(y)[:, None] - line.T(y2), line.w(y2) * inner_weights


def _half_normal(y: Any) -> Any:
    return 2 / np.sqrt(np.pi) * np.exp(-(y**2))


LINES = {
    "uniform": Line(lambda y: y, lambda t: t, lambda y: np.full_like(y, 1 / 5), 2, 7, stats.uniform(2, 5)),
    "normal": Line(lambda y: y, lambda t: t, stats.norm(3, 2).pdf, 3 - 26, 3 + 26, stats.norm(3, 2)),
    "gamma(5)": Line(
        lambda y: y,
        lambda t: t,
        lambda y: ((y - 1) / 4) ** 4 * np.exp(-(y - 1) / 4) / (4 * special.gamma(5)),
        1,
        1 + 4 * 60,
        stats.gamma(5, loc=1, scale=4),
    ),
    "beta(2, 3)": Line(lambda y: y, lambda t: t, lambda y: 12 * y * (1 - y) ** 2, 0, 1, stats.beta(2, 3)),
    "exponential": Line(lambda y: y, lambda t: t, lambda y: np.exp(-y), 0, 50, stats.expon()),
    "lognormal": Line(np.exp, np.log, stats.norm(0, 1).pdf, -13, 13, stats.lognorm(1)),
    "Student-t(3)": Line(
        lambda y: np.sqrt(3) * np.tan(y),
        lambda t: np.arctan(t / np.sqrt(3)),
        lambda y: 2 / np.pi * np.cos(y) ** 2,
        -np.pi / 2,
        np.pi / 2,
        stats.t(3),
    ),
    "beta(1/2, 1/2)": Line(
        lambda y: (1 - np.cos(y)) / 2,
        lambda t: np.arccos(np.clip(1 - 2 * t, -1, 1)),
        lambda y: np.full_like(y, 1 / np.pi),
        0,
        np.pi,
        stats.beta(0.5, 0.5),
    ),
    "gamma(1/2)": Line(lambda y: y**2, lambda t: np.sqrt(np.maximum(t, 0)), _half_normal, 0, 7.5, stats.gamma(0.5)),
    "shifted arcsine": Line(
        lambda y: 1000 + (1 - np.cos(y)) / 2,
        lambda t: np.arccos(np.clip(1 - 2 * (t - 1000), -1, 1)),
        lambda y: np.full_like(y, 1 / np.pi),
        0,
        np.pi,
        stats.arcsine(loc=1000),
    ),
}


@dataclass(frozen=True)
class Joint:
    """The joint Gaussian of all Z_l, observations y and new observations, written out densely.

    ``nodes`` and ``weights`` are a quadrature rule for the measure, made without the library.
    """

    terms: Any
    nodes: Any
    weights: Any
    noise: Any
    mean: Any
    doubles: dict[Any, float] = field(default_factory=dict)  # kernel -> ∬ κ dπ dπ, which takes long

    def cov(self, s: Any, X: Any, s2: Any, X2: Any) -> Any:
        return sum(t.B[np.ix_(s, s2)] * kernel_matrix(t.kernel, X, X2) for t in self.terms)

    def integral_cov(self, target: int, s: Any, X: Any) -> Any:
        return sum(t.B[target, s] * (self.weights @ kernel_matrix(t.kernel, self.nodes, X)) for t in self.terms)

    def integral_var(self, target: int) -> float:
        for kernel in (t.kernel for t in self.terms if t.kernel not in self.doubles):
            self.doubles[kernel] = self.weights @ kernel_matrix(kernel, self.nodes, self.nodes) @ self.weights
        return float(sum(t.B[target, target] * self.doubles[t.kernel] for t in self.terms))

    def posterior(self, s: Any, X: Any, y: Any, extra: Any, target: int, s2: Any, X2: Any) -> tuple[Any, Any]:
        """Mean and covariance of (Z_target, f_s2(X2) + noise) given the data."""
        s, s2 = np.asarray(s, int), np.asarray(s2, int)
        noise, mean = np.asarray(self.noise), np.asarray(self.mean)
        G = self.cov(s, X, s, X) + np.diag(noise[s] + extra)
        cross = np.vstack([self.integral_cov(target, s, X)[None, :], self.cov(s2, X2, s, X)])
        prior = np.empty((1 + len(s2), 1 + len(s2)))
        prior[0, 0] = self.integral_var(target)
        prior[0, 1:] = prior[1:, 0] = self.integral_cov(target, s2, X2)
        prior[1:, 1:] = self.cov(s2, X2, s2, X2) + np.diag(noise[s2])
        prior_mean = np.append(mean[target], mean[s2])
        return (
            prior_mean + cross @ np.linalg.solve(G, y - mean[s]),
            prior - cross @ np.linalg.solve(G, cross.T),
        )


def central_difference(f: Callable[[Any], Any], x: Any, step: float) -> Any:
    """Derivative of f in the vector x by central differences of two step sizes, extrapolated; axis 0 runs over x."""
    x = np.asarray(x, float)

    def slopes(h: float) -> Any:
        rows = []
        for i in range(x.size):
            e = np.zeros_like(x)
            e.flat[i] = h
            rows.append((np.asarray(f(x + e)) - np.asarray(f(x - e))) / (2 * h))
        return np.array(rows)

    return (4 * slopes(step / 2) - slopes(step)) / 3
