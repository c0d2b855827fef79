"""Evidence problems of Variational Bayesian Monte Carlo (Acerbi 2018): lumpy, cigar and Student, in D = 2, 4 and 6.

The constants of `evidence.json` are those of the author's benchmark `infbench`. Priors are normal; sources return the
log likelihood, and there is only one. The truth is in closed form, or by quadrature over each input.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from benchmarks.arena.arrays import Array
from benchmarks.arena.problem import Moments, Problem
from benchmarks.arena.quadrature import panels

CONSTANTS = json.loads(Path(__file__).with_suffix(".json").read_text())
DIMENSIONS = (2, 4, 6)


def lumpy(D: int) -> Problem:
    """Return a mixture of twelve normal densities."""
    weights, means, variances = (np.array(CONSTANTS["lumpy"][str(D)][k]) for k in ("weights", "means", "variances"))

    def log_mixture(X: Array, added: float = 0.0) -> Array:
        total = variances + added
        squares = (X[:, None, :] - means) ** 2 / total + np.log(2 * np.pi * total)
        return logsumexp(np.log(weights) - 0.5 * squares.sum(axis=2), axis=1)

    def moments() -> Moments:  # the mixture at the mean of the prior, with the prior's variance added
        return Moments(float(log_mixture(np.full((1, D), 0.5), 1.5**2)[0]), 1.0)

    return Problem(f"lumpy, D = {D}", [stats.norm(0.5, 1.5)] * D, (log_mixture,), (1.0,), moments, log=True)


def cigar(D: int) -> Problem:
    """Return a normal density that is a hundred times longer along one axis than along the others."""
    axes, mean = np.array(CONSTANTS["cigar"][str(D)]["axes"]), np.linspace(-1, 1, D)
    covariance = axes.T @ np.diag([1.0] * (D - 1) + [100.0**2]) @ axes
    stds = 1 + 2 * np.sqrt(np.diag(covariance))

    def moments() -> Moments:
        joint = stats.multivariate_normal(mean, covariance + np.diag(stds**2))
        return Moments(float(joint.logpdf(np.zeros(D))), 1.0)

    density = stats.multivariate_normal(mean, covariance)
    return Problem(
        f"cigar, D = {D}",
        [stats.norm(0, std) for std in stds],
        (lambda X: np.reshape(density.logpdf(X), len(X)),),
        (1.0,),
        moments,
        log=True,
    )


def student(D: int) -> Problem:
    """Return a product of Student densities with 2.5, 3, ... degrees of freedom."""
    means, scales = (np.array(CONSTANTS["studentt"][str(D)][k]) for k in ("means", "scales"))
    dof = 2 + 0.5 * np.arange(1, D + 1)
    stds = 1 + 2 * np.sqrt(dof / (dof - 2)) * scales

    def log_density(X: Array) -> Array:
        return stats.t.logpdf(X, dof, means, scales).sum(axis=1)

    def log_integral(n: int) -> float:
        total = 0.0
        for d in range(D):
            z, w = panels(np.linspace(-60, 60, 241).tolist(), n)
            x = means[d] + scales[d] * z
            total += np.log(w @ (stats.t.pdf(z, dof[d]) * stats.norm.pdf(x, 0, stds[d])))
        return float(total)

    def moments() -> Moments:
        return Moments(log_integral(20), 1.0, abs(log_integral(20) - log_integral(15)))

    return Problem(f"Student, D = {D}", [stats.norm(0, std) for std in stds], (log_density,), (1.0,), moments, log=True)


def log_evidence() -> list[Problem]:
    """Return nine problems."""
    return [make(D) for make in (lumpy, cigar, student) for D in DIMENSIONS]
