"""Models with data, each with a quadrature rule for its measure that is made without the library."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

import amsbq
from amsbq.gp.coregionalisation import ModelBatch
from amsbq.gp.trends import Trends
from tests.reference import LINES, Joint


@dataclass(frozen=True)
class Problem:
    gp: Any
    joint: Joint
    s: Any
    X: Any
    y: Any
    extra: Any
    X_new: Any  # points that are not in the data

    def condition(self) -> Any:
        return self.gp.condition(self.s, self.X, self.y, self.extra)


def models_of(gps: Any) -> ModelBatch:
    """One batch of several models, whose terms are of the same kinds."""
    batches = [gp.batch for gp in gps]
    groups = [
        replace(alike[0], B=np.concatenate([g.B for g in alike]), scales=np.concatenate([g.scales for g in alike]))
        for alike in zip(*(batch.groups for batch in batches), strict=True)
    ]
    rest = [np.concatenate([getattr(batch, name) for batch in batches]) for name in ("constant", "noise", "mean")]
    trends = Trends.joined([(batch.trends, len(batch)) for batch in batches], batches[0].n_sources)
    return ModelBatch(batches[0].measure, tuple(groups), *rest, trends)


def random_B(rng: Any, L: int, scale: float = 1.0) -> Any:
    W = rng.normal(size=(L, L))
    return scale * (W @ W.T / L + 0.1 * np.eye(L))


def make(terms: Any, measure: Any, nodes: Any, weights: Any, seed: int, n: int, noise: float) -> Problem:
    rng = np.random.default_rng(seed)
    L = len(terms[0].B)
    mean = rng.normal(size=L)
    variances = noise * np.arange(1, L + 1)
    gp = amsbq.MultiSourceGP(terms, measure, noise=variances, mean=mean)
    s = np.append(np.arange(L), rng.integers(L, size=n - L))
    X = gp.measure.sample(n, rng)
    y, extra = rng.normal(size=n), noise * rng.uniform(size=n)
    joint = Joint(terms, nodes, weights, variances, mean)
    # between two draws: a kernel mean over samples has kinks at the samples
    X_new = 0.6 * gp.measure.sample(6, rng) + 0.4 * gp.measure.sample(6, rng)
    return Problem(gp, joint, s, X, y, extra, X_new)


def problems() -> dict[str, Problem]:
    rng = np.random.default_rng(0)
    t, w = np.polynomial.legendre.leggauss(80)
    unit, unit_w = (1 + t[:, None]) / 2, w / 2
    h, hw = np.polynomial.hermite_e.hermegauss(50)
    cov = np.array([[1.0, 0.5], [0.5, 0.7]])
    plane = np.stack(np.meshgrid(h, h, indexing="ij"), axis=-1).reshape(-1, 2) @ np.linalg.cholesky(cov).T
    plane_w = np.outer(hw, hw).ravel() / hw.sum() ** 2
    samples, sample_w = rng.normal(size=(150, 3)), rng.dirichlet(np.ones(150))
    gamma_t, gamma_w = LINES["gamma(5)"].rule(panels=30)
    Term, RBF, Matern = amsbq.Term, amsbq.RBF, amsbq.Matern
    return {
        "one source": make([Term(2.0, RBF(0.3))], amsbq.Uniform(0, 1), unit, unit_w, 1, 7, 1e-4),
        "icm": make([Term(random_B(rng, 2), RBF(0.2))], amsbq.Uniform(0, 1), unit, unit_w, 2, 9, 1e-3),
        "noise-free": make([Term(random_B(rng, 2), RBF(0.15))], amsbq.Uniform(0, 1), unit, unit_w, 7, 6, 0.0),
        "lmc": make(
            [
                Term(random_B(rng, 3), RBF([0.8, 1.5])),
                Term(random_B(rng, 3, 0.2), RBF(2.5)),
                Term(np.diag([9.0, 4.0, 1.0]), amsbq.Constant()),
            ],
            amsbq.Gaussian([0, 0], cov),
            plane,
            plane_w,
            3,
            14,
            1e-2,
        ),
        "trend": make(
            [Term(random_B(rng, 2), RBF([0.8, 1.5])), Term(random_B(rng, 2), amsbq.Linear([0.3, -0.5], [0.7, 1.2]))],
            amsbq.Gaussian([0, 0], cov),
            plane,
            plane_w,
            8,
            11,
            1e-2,
        ),
        "trend of samples": make(
            [Term(random_B(rng, 2), Matern(2.5, 1.5)), Term(random_B(rng, 2), amsbq.Linear(0.1, 2.0))],
            amsbq.Empirical(samples, sample_w),
            samples,
            sample_w,
            9,
            10,
            1e-2,
        ),
        "empirical": make(
            [Term(random_B(rng, 3), Matern(1.5, [1, 2, 1.5])), Term(random_B(rng, 3), Matern(0.5, 2.0))],
            amsbq.Empirical(samples, sample_w),
            samples,
            sample_w,
            4,
            12,
            1e-2,
        ),
        "gamma": make(
            [Term(random_B(rng, 2), RBF(9.0)), Term(random_B(rng, 2), amsbq.Linear(5.0, 30.0))],
            stats.gamma(5, loc=1, scale=4),
            gamma_t[:, None],
            gamma_w,
            6,
            8,
            1e-3,
        ),
    }


PROBLEMS = problems()
