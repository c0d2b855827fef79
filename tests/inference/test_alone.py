"""The primary source without the others, as one more model: how much it counts, and that nothing jumps."""

import numpy as np
import pytest
from scipy.special import expit

import amsbq
from amsbq.gp.data import Data
from amsbq.inference.averaging import SETTINGS, advantage
from amsbq.inference.particles import learn, of_primary_alone
from amsbq.inference.structures import as_model

UNIT = amsbq.Uniform([0.0, 0.0], 1.0)


def primary(X):
    return np.sin(4 * X[:, 0] + 1) * np.cos(3 * X[:, 1])


def observed(n, related, seed=0):
    """Values of the primary source, and of another one whose correlation with it is as given."""
    X, Z = UNIT.sobol(n, seed), UNIT.sobol(32, seed + 1)
    unrelated = np.cos(9 * Z[:, 0]) + np.sin(11 * Z[:, 1] + 1)
    y = related * primary(Z) + np.sqrt(1 - related**2) * 0.5 * unrelated
    s = np.repeat([0, 1], [n, 32])
    return Data(s, np.concatenate([X, Z]), np.concatenate([primary(X), y]), np.zeros(n + 32))


def learner(data):
    it = amsbq.Integrator([amsbq.Source(), amsbq.Source(cost=0.1)], UNIT, seed=0)
    for s, x, y in zip(data.s, data.X, data.y, strict=True):
        it.observe(s, x, y)
    return it


def test_it_counts_by_how_well_it_predicts():
    data, model, noise = observed(6, 0.7), as_model("auto"), [0.0, 0.0]
    every = learn(model, UNIT, data, noise)
    share, alone = of_primary_alone(every, model, UNIT, data, noise)
    ahead = advantage(every.members, alone.members)
    assert share == pytest.approx(expit(SETTINGS.least_gain - ahead))
    assert alone.n_sources == 1


def test_the_better_others_are_the_more_they_count():
    counted = [learner(observed(6, related)).learner.posterior.secondary_weight for related in (0.0, 0.9, 0.9999)]
    assert counted[0] < 0.5 < counted[2]
    assert counted[0] <= counted[1] <= counted[2]


def test_the_answer_is_the_mixture_of_both():
    it = learner(observed(6, 0.7))
    posterior = it.learner.posterior
    of_primary, of_all = sorted(posterior.components, key=lambda c: c.latent.n_sources)
    assert (of_primary.latent.n_sources, of_all.latent.n_sources) == (1, 2)
    w, (a, b) = of_all.weight, (of_primary.integral, of_all.integral)
    mean = (1 - w) * a.mean + w * b.mean
    variance = (1 - w) * (a.std**2 + a.mean**2) + w * (b.std**2 + b.mean**2) - mean**2
    assert it.estimate().mean == pytest.approx(mean)
    assert it.estimate().std == pytest.approx(np.sqrt(variance))
    # what is asked of the other source is answered by the model that has it
    assert posterior.whole.components == [posterior.whole.components[0]]
    np.testing.assert_array_equal(
        it.predict(1, [[0.3, 0.4]]), [m**k for k, m in enumerate(of_all.predict(1, np.array([[0.3, 0.4]])), 1)]
    )


def test_decisions_are_made_by_both():
    """The other source is bought as far as the model in which it helps counts."""
    it = learner(observed(6, 0.7))
    parts = it.learner.posterior.deciding(np.ones(1))
    assert sorted(part.component.latent.n_sources for part in parts) == [1, 2]
    assert sum(part.weight for part in parts) == pytest.approx(1.0)  # whatever their transforms
    rates = it.policy.rate(it.learner.posterior)
    x, cheap = np.array([[0.5, 0.5]]), it.policy.options([1])
    with_it = next(k for k, part in enumerate(parts) if part.component.latent.n_sources == 2)
    expected = parts[with_it].weight * rates.parts[with_it].values(cheap, x)
    np.testing.assert_allclose(rates.values(cheap, x), expected)
