"""Censored values: a value at an end of a process's range means that the process is there or beyond.

The half-lines are approximated by Gaussian sites, by expectation propagation (Minka 2001): each sweep updates the sites
one at a time, so that each gives the process the same moments as its half-line. Sites are averaged over some of the
particles, so that all particles have the same observations.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import log_ndtr

from ..common.validation import Array
from ..gp.data import VALUE
from ..gp.posterior_batch import PosteriorBatch
from ..inference.log_posterior import LEARNING_JITTER
from .latent import SETTINGS as LATENT
from .latent import Latent, Process

SWEEPS = 100  #: at most; sites converge after five to twenty
SETTLED = 1e-8  #: relative change of all sites in a sweep at convergence


def censored(process: Process, ends: tuple[float, float]) -> Process:
    """Return a process whose noise-free values at an end of (low, high) are treated as lying there or beyond."""
    posteriors, units = process.posteriors, process.particles.units
    data = posteriors.data
    exact = (data.by == VALUE) & ~data.of_integral & (data.noise_var == 0)
    below, above = (exact & (units.standardise(replace(data, y=np.full(len(exact), end))).y == data.y) for end in ends)
    on = below | above
    if not on.any() or on.all():
        return process
    few = Latent.of(process).thinned(LATENT.deciding)
    rest = PosteriorBatch.condition(few.parts[0].models, data.rows(~on), LEARNING_JITTER)
    means, covs = rest.predict_joint(data.s[on], data.X[on])
    signs = np.where(above[on], 1.0, -1.0)
    precisions, shifts = half_lines(signs * (means - data.y[on]), covs * np.outer(signs, signs))
    precision = few.weights @ precisions
    y, noise_var = data.y.copy(), data.noise_var.copy()
    y[on] += signs * (few.weights @ shifts) / precision
    noise_var[on] = 1 / precision
    observed = replace(data, y=y, noise_var=noise_var)
    return replace(process, posteriors=PosteriorBatch.condition(posteriors.models, observed, posteriors.jitter))


def half_lines(means: Array, covs: Array) -> tuple[Array, Array]:
    """Return Gaussian sites for the conditions u_i ≥ 0 on K Gaussians with means (K, n) and covariances (K, n, n).

    Each site is given by its precision, and its precision times its mean: shape (K, n) each.
    """
    n = means.shape[1]
    m, S = means.copy(), covs + LEARNING_JITTER * np.eye(n)
    precisions, shifts = np.zeros_like(m), np.zeros_like(m)
    for _ in range(SWEEPS):
        before = precisions.copy()
        for i in range(n):
            variance = S[:, i, i]
            v = 1 / (1 / variance - precisions[:, i])  # without this site
            mu = v * (m[:, i] / variance - shifts[:, i])
            z = mu / np.sqrt(v)
            ratio = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))
            lost = np.clip(ratio * (ratio + z), 1e-12, 1 - 1e-12)  # share of the variance
            precision = lost / (1 - lost) / v
            shift = precision * (mu + np.sqrt(v) * ratio / lost)
            more, row = precision - precisions[:, i], S[:, i].copy()
            gain = row / (1 + more * variance)[:, None]
            m += gain * ((shift - shifts[:, i]) - more * m[:, i])[:, None]
            S -= more[:, None, None] * gain[:, :, None] * row[:, None]
            precisions[:, i], shifts[:, i] = precision, shift
        if np.allclose(precisions, before, rtol=SETTLED, atol=0):
            break
    return precisions, shifts
