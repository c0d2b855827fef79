"""Many observations of cheap sources: few of them are used, the right ones."""

import numpy as np

import amsbq
from amsbq.gp.data import Data
from amsbq.inference import particles

CUBE = amsbq.Uniform([0, 0, 0], 1)
TRUTH = (np.e - 1) * np.sin(1.0) ** 2 + 0.25 + 0.5


def fine(X):
    return np.exp(X[:, 0]) * np.sin(2 * X[:, 1]) + X[:, 0] * X[:, 1] + X[:, 2]


def coarse(X):
    return 0.8 * np.exp(X[:, 0]) * np.sin(2 * X[:, 1]) + 0.1 * X[:, 0] + 0.5 * X[:, 2] ** 2


def table(n):
    """Sources, locations and values: eight of the fine source, and n more than those of the coarse one."""
    X = CUBE.sobol(8, 1)
    many = np.concatenate([X, CUBE.sample(n, 2)])
    return np.repeat([0, 1], [8, len(many)]), np.concatenate([X, many]), np.concatenate([fine(X), coarse(many)])


def test_a_table_of_earlier_runs(monkeypatch):
    """An answer from 20,000 observations, with matrices of few of them only."""
    monkeypatch.setattr(particles, "SETTINGS", particles.LearningSettings(most_conditioned=300))
    found = amsbq.estimate(*table(20_000), CUBE)
    assert abs(found.mean - TRUTH) < 3 * found.std < 0.3


def test_observations_that_are_used():
    s, X, y = table(1000)
    data = Data(s, X, y, np.zeros(len(y)))
    used = data.sorted().without_most_secondary(100)
    assert np.bincount(used.s).tolist() == [8, 92]
    of_primary = {x.tobytes() for x in used.X[used.s == 0]}
    assert of_primary <= {x.tobytes() for x in used.X[used.s == 1]}  # where the two can be compared
    assert data.without_most_secondary(2000) is data
    assert np.bincount(data.thinned(50).s).tolist() == [8, 42]


def test_observing_a_table_and_asking(monkeypatch):
    monkeypatch.setattr(particles, "SETTINGS", particles.LearningSettings(most_conditioned=200))
    it = amsbq.Integrator([amsbq.Source(name="fine"), amsbq.Source(name="coarse", cost=0.1)], CUBE, budget=10)
    for source, x, value in zip(*table(3000), strict=True):
        it.observe(int(source), x, float(value))
    assert it.learner.refitted_at == 0
    assert abs(it.estimate().mean - TRUTH) < 3 * it.estimate().std
    assert it.learner.refitted_at == 3000
    assert it.ask() is not None
