"""Models with observations of values and derivatives, and the dense joint Gaussian that they are held against.

A derivative is a sum of values on a stencil of five points, in long doubles, and an integral is a sum over the nodes of
a Gauss rule: no closed form of the library is used.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

import amsbq
from amsbq.gp.data import Data
from tests.problems import random_B

STEP = 2e-4  # of the stencil, in widths: of fourth order, so that its error is below 1e-10 of a derivative


def profile(kernel: Any, u: Any) -> Any:
    if isinstance(kernel, amsbq.RBF):
        return np.exp(-u * u / 2)
    s = np.sqrt(np.longdouble(2 * kernel.nu)) * np.abs(u)
    return {1.5: 1 + s, 2.5: 1 + s + s**2 / 3}[kernel.nu] * np.exp(-s)


def kernel_matrix(kernel: Any, X: Any, Y: Any) -> Any:
    if isinstance(kernel, amsbq.Constant):
        return np.ones((len(X), len(Y)), dtype=np.longdouble)
    if isinstance(kernel, amsbq.Linear):
        return ((X - kernel.centre) / kernel.scales) @ ((Y - kernel.centre) / kernel.scales).T
    return np.prod(profile(kernel, (X[:, None, :] - Y[None, :, :]) / kernel.lengthscales), axis=2)


@dataclass(frozen=True)
class Problem:
    """A model with observations, and the nodes and weights of a rule for its measure."""

    gp: Any
    nodes: Any
    weights: Any
    s: Any
    X: Any
    y: Any
    gradients: Any
    extra: Any

    def data(self) -> Data:
        return Data.checked(self.gp.measure, self.gp.n_sources, self.s, self.X, self.y, self.extra, self.gradients)

    def posterior(self) -> Any:
        return self.gp.condition(self.s, self.X, self.y, self.extra, self.gradients)

    def functional(self, s: int, x: Any, by: int) -> Any:
        """A value or a derivative as (source, nodes, weights)."""
        if by < 0:
            return s, x[None].astype(np.longdouble), np.ones(1, dtype=np.longdouble)
        h = STEP * self.gp.measure.width[by]
        steps = np.zeros((4, len(x)), dtype=np.longdouble)
        steps[:, by] = np.array([-2, -1, 1, 2]) * h
        return s, x + steps, np.array([1, -8, 8, -1], dtype=np.longdouble) / (12 * h)

    def at(self, sites: Any) -> Any:
        return [
            self.functional(*row) for row in zip(np.broadcast_to(sites.s, len(sites)), sites.X, sites.by, strict=True)
        ]

    def integral(self, source: int) -> Any:
        return [(source, self.nodes, self.weights)]

    def cov(self, rows: Any, columns: Any) -> Any:
        out = np.zeros((len(rows), len(columns)))
        for i, (s, X, w) in enumerate(rows):
            for j, (s2, X2, w2) in enumerate(columns):
                Z, Z2 = self._latent(X), self._latent(X2)
                out[i, j] = sum(t.B[s, s2] * (w @ kernel_matrix(t.kernel, Z, Z2) @ w2) for t in self.gp.terms)
        return out

    def _latent(self, X: Any) -> Any:
        measure = self.gp.measure
        return X if measure.latent is measure else measure.to_latent(X.astype(float))

    def noise(self, sites: Any, known: Any = 0.0) -> Any:
        """Variances of the noise: that on a derivative is the noise on the value per width."""
        units = np.ones(len(sites))
        for i, (x, by) in enumerate(zip(sites.X, sites.by, strict=True)):
            if by >= 0:
                slopes = self.gp.measure.latent_slopes(x[None])
                slope = 1.0 if slopes is None else slopes[0, by]
                units[i] = slope / self.gp.measure.latent.width[by]
        return self.gp.noise[sites.s] * units**2 + known

    def dense(self, wanted: Any) -> Any:
        """Mean and covariance of functionals, given the data."""
        data = self.data()
        observed = self.at(data.sites)
        G = self.cov(observed, observed) + np.diag(self.noise(data.sites, data.noise_var))
        k, r = self.cov(observed, wanted), data.y - np.where(data.by < 0, self.gp.mean[data.s], 0.0)
        mean = np.array([self.gp.mean[s] * np.sum(w) for s, _, w in wanted], dtype=float)
        return mean + k.T @ np.linalg.solve(G, r), self.cov(wanted, wanted) - k.T @ np.linalg.solve(G, k)


def make(terms: Any, measure: Any, nodes: Any, weights: Any, seed: int, n: int = 6, noise: float = 1e-3) -> Problem:
    rng = np.random.default_rng(seed)
    L = len(terms[0].B)
    gp = amsbq.MultiSourceGP(terms, measure, noise=noise * np.arange(1, L + 1), mean=rng.normal(size=L))
    X = measure.sample(n, rng)
    gradients = rng.normal(size=(n, measure.dim)) / measure.width
    gradients[1] = np.nan  # of this one only the value is known
    gradients[2, 0] = np.nan  # and of this one not all of the derivatives
    s = np.append(np.arange(L), rng.integers(L, size=n - L))
    return Problem(gp, nodes, weights, s, X, rng.normal(size=n), gradients, noise * rng.uniform(size=n))


def problems() -> dict[str, Problem]:
    rng = np.random.default_rng(0)
    t, w = np.polynomial.legendre.leggauss(16)
    grid = np.stack(np.meshgrid(t, t, indexing="ij"), axis=-1).reshape(-1, 2)
    box, box_w = [0.5, 1.0] * (1 + grid) + [0.0, -1.0], np.outer(w, w).ravel() / 4
    h, hw = np.polynomial.hermite_e.hermegauss(32)
    plane = np.stack(np.meshgrid(h, h, indexing="ij"), axis=-1).reshape(-1, 2)
    plane_w = np.outer(hw, hw).ravel() / hw.sum() ** 2
    copula = amsbq.GaussianCopula([stats.norm(1, 2), stats.logistic(0, 1)], [[1.0, 0.4], [0.4, 1.0]])
    scores = plane @ np.linalg.cholesky(copula.correlation).T
    dependent = np.column_stack(
        [stats.norm(1, 2).ppf(stats.norm.cdf(scores[:, 0])), stats.logistic().ppf(stats.norm.cdf(scores[:, 1]))]
    )
    samples = rng.normal(size=(40, 2))
    Term, RBF, Matern = amsbq.Term, amsbq.RBF, amsbq.Matern
    uniform = amsbq.Uniform([0, -1], [1, 1])
    return {
        "rbf": make([Term(random_B(rng, 2), RBF([0.4, 0.9]))], uniform, box, box_w, 1),
        "rbf with trend and levels": make(
            [
                Term(random_B(rng, 2), RBF([0.5, 1.0])),
                Term(random_B(rng, 2), RBF([1.3, 0.8])),
                Term(random_B(rng, 2), amsbq.Linear([0.4, 0.2], [0.7, 1.5])),
                Term(np.diag([4.0, 2.0]), amsbq.Constant()),
            ],
            uniform,
            box,
            box_w,
            2,
        ),
        "matern-5/2": make(
            [Term(random_B(rng, 2), Matern(2.5, [0.8, 1.1]))], amsbq.Empirical(samples), samples, np.full(40, 1 / 40), 3
        ),
        "matern-3/2": make(
            [Term(random_B(rng, 2), Matern(1.5, [0.8, 1.1]))], amsbq.Empirical(samples), samples, np.full(40, 1 / 40), 4
        ),
        "copula": make([Term(random_B(rng, 2), RBF([0.9, 1.4]))], copula, dependent, plane_w, 5),
    }


PROBLEMS = problems()
