"""When it is time to learn, and that what is known in between is what was learned, given more observations."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.gp.data import Data
from amsbq.gp.posterior_batch import PosteriorBatch
from amsbq.inference import particles
from amsbq.inference.averaging import SETTINGS as AVERAGING
from amsbq.inference.structures import as_model
from amsbq.posterior.component import Component
from amsbq.posterior.latent import Latent, Process, reweighted, without_far_draws
from amsbq.posterior.learner import Learner
from amsbq.posterior.schedule import SETTINGS, scheduled_refit
from amsbq.posterior.transforms import IDENTITY

UNIT = amsbq.Uniform([0, 0], 1)


def observations(n, seed=0):
    rng = np.random.default_rng(seed)
    X, s = rng.uniform(size=(n, 2)), np.arange(n) % 3
    return Data(s, X, np.sin(4 * X).sum(axis=1) + 0.1 * s + 0.01 * rng.normal(size=n), np.full(n, 1e-4))


def learner_of(data, model="auto"):
    out = Learner(as_model(model), UNIT, [[0.0] * 3], 0)
    for new in data.one_by_one(0):
        out.add(int(new.s[0]), new.X[0], float(new.y[0]), float(new.noise_var[0]))
    return out


def latent_of(learner):
    return learner.posterior.components[0].latent


def integral_of(found, data):
    """The integral of the primary source, by particles that are conditioned on observations."""
    return Component(1.0, IDENTITY, Latent.of(Process.of(found, data)), UNIT).integral


def test_times_to_learn_are_those_of_the_count():
    times = sorted({scheduled_refit(n) for n in range(1, 3000)})
    assert times[: SETTINGS.every_one_until] == list(range(1, SETTINGS.every_one_until + 1))
    for n in range(1, 3000):
        assert scheduled_refit(n) == max(time for time in times if time <= n)
    later = zip(times[SETTINGS.every_one_until :], times[SETTINGS.every_one_until + 1 :], strict=False)
    assert all(1 < b - a <= (SETTINGS.growth - 1) * a + 1 for a, b in later)


def test_new_values_weight_the_particles_of_each_structure_by_how_probable_they_were():
    data, count = observations(30), 27
    assert scheduled_refit(len(data.y)) == len(data.y)
    assert scheduled_refit(count) == count
    particles_of = learner_of(data.first(count))
    assert particles_of.posterior is not None
    before = particles_of._channels[0]._channel.process
    after = before.extend(data)
    logs = np.zeros(len(before.weights))
    for n in range(count, len(data.y)):  # one after the other, each by particles that are conditioned anew
        known, new = before.particles.usable(data.first(n)), data.rows([n])
        units, jitter = before.particles.units, before.posteriors.jitter
        posteriors = PosteriorBatch.condition(before.posteriors.models, units.standardise(known), jitter)
        new = units.standardise(new)
        mean, variance = posteriors.predict(int(new.s[0]), new.X)
        noise = before.posteriors.models.observation_noise(new.sites, new.noise_var)
        logs += stats.norm(mean, np.sqrt(variance + noise)).logpdf(new.y)[:, 0]
    groups = before.particles.structures[before.rows]
    assert len(set(groups)) > 1
    for group in set(groups):
        of = groups == group
        expected = before.weights[of] * np.exp(logs[of] - logs[of].max())
        np.testing.assert_allclose(after.weights[of], before.weights[of].sum() * expected / expected.sum(), rtol=1e-4)
    assert np.abs(after.weights - before.weights).max() > 1e-3


def test_what_is_known_hardly_depends_on_who_looked_before():
    """Draws of hyperparameters are carried along from look to look, or made at once."""
    data = observations(45)
    assert scheduled_refit(45) == 43
    patient, curious = learner_of(data), learner_of(data.first(41))
    assert curious.posterior is not None
    for new in list(data.one_by_one(41)):
        curious.add(int(new.s[0]), new.X[0], float(new.y[0]), float(new.noise_var[0]))
        assert curious.posterior.estimate.std > 0
    one, other = (learner.posterior.estimate for learner in (patient, curious))
    assert abs(one.mean - other.mean) < 0.2 * one.std
    assert one.std == pytest.approx(other.std, rel=0.3)
    assert patient.refitted_at == curious.refitted_at == 43


def test_in_between_observations_are_added_to_what_was_learned():
    data = observations(45)
    learner, learned = learner_of(data), learner_of(data.first(43)).posterior.channels[0].process
    units, weights, before = learned.particles.units, learned.extend(data).weights, learned.posteriors
    exact = np.array(PosteriorBatch.condition(before.models, units.standardise(data), 1e-10).integral())
    np.testing.assert_allclose(latent_of(learner).parts[0].integral(), exact, rtol=1e-7)
    np.testing.assert_allclose(latent_of(learner).weights, weights, rtol=1e-12)
    assert exact[1].mean() < before.integral()[1].mean()
    means, stds = units.in_user_units(0, exact[0]), units.spreads[0] * np.sqrt(exact[1])
    mean, wider = weights @ means, AVERAGING.widened
    mixture = amsbq.Estimate(mean + wider * (means - mean), wider * stds, weights, AVERAGING.tails)
    expected = without_far_draws(mixture)
    np.testing.assert_allclose(learner.posterior.estimate.std, expected.std, rtol=1e-6)
    np.testing.assert_allclose(learner.posterior.estimate.mean, expected.mean, rtol=1e-9)


def test_contradictions_are_learned_from_at_once():
    """Two values at one input, where there should be no noise, show that there is some."""
    data = observations(44)
    data = Data(data.s, data.X, data.y, np.zeros(44))
    other = Data(data.s[-1:], data.X[-1:], data.y[-1:] + 0.5, np.zeros(1))
    learner = learner_of(data)
    assert latent_of(learner).parts[0].models.noise.max() == 0
    learner.add(int(other.s[0]), other.X[0], float(other.y[0]), 0.0)
    assert latent_of(learner).parts[0].models.noise.max(axis=1).min() > 0


@pytest.mark.parametrize("odd", ["contradiction", "constant"])
def test_odd_data_do_not_make_it_depend_on_who_looked(odd):
    data = observations(33)
    y, X = data.y.copy(), data.X.copy()
    if odd == "contradiction":
        X[31], y[31] = X[1], y[1] + 0.3  # both of source 1, learning times are 30 and 32
    else:
        y[data.s == 0] = 0.7
    data = Data(data.s, X, y, np.zeros(33))
    patient, curious = learner_of(data, "icm"), learner_of(data.first(30), "icm")
    for new in list(data.one_by_one(30)):
        assert curious.posterior is not None
        curious.add(int(new.s[0]), new.X[0], float(new.y[0]), float(new.noise_var[0]))
    assert patient.posterior.estimate.interval() == curious.posterior.estimate.interval()


def test_a_model_with_given_hyperparameters_is_extended():
    gp = amsbq.MultiSourceGP([amsbq.Term(0.1 * np.eye(3) + 1, amsbq.RBF(0.4))], UNIT)
    data = observations(60)
    exact = gp.condition(data.s, data.X, data.y, data.noise_var).integral()
    found = latent_of(learner_of(data, gp)).parts[0].integral()
    np.testing.assert_allclose(found, np.array(exact)[:, None], rtol=1e-8)


def test_thinning_keeps_rare_sources_and_the_whole_range():
    data = observations(100).sorted()
    rare = Data(np.append(data.s, 3), np.append(data.X, [[0.5, 0.5]], axis=0), np.append(data.y, 1), np.zeros(101))
    thin = rare.thinned(20)
    counts = np.bincount(thin.s)
    assert counts.sum() <= 20
    assert counts[3] == 1
    assert np.ptp(counts[:3]) <= 1
    assert np.ptp(thin.X[:, 0]) > 0.9 * np.ptp(data.X[:, 0])
    assert rare.thinned(101) is rare


@pytest.mark.parametrize("model", ["auto", "icm"])
def test_many_observations_are_all_used_though_few_are_learned_from(model, monkeypatch):
    monkeypatch.setattr(particles, "SETTINGS", particles.LearningSettings(most_observations=24))
    data = observations(60)
    learned = particles.learn(replace(as_model(model), leaves_out=False), UNIT, data, [0.0] * 3)
    assert len(learned.members[0].draws.log_posterior.data.y) == 24
    assert len(Process.of(learned, data).posteriors.data.y) == 60
    truth, found = 2 * (1 - np.cos(4)) / 4, integral_of(learned, data)
    assert abs(found.mean - truth) < 4 * found.std
    few = particles.learn(as_model(model), UNIT, data.first(24), [0.0] * 3)
    assert found.std < integral_of(few, data.first(24)).std
    again = particles.from_dict(as_model(model), UNIT, data, [0.0] * 3, 0, learned.to_dict())
    assert integral_of(again, data).interval() == found.interval()


def test_a_value_may_be_most_probable_to_a_draw_that_hardly_counts():
    gained, groups = np.array([0.0, -800.0, -2.0]), np.array([0, 0, 1])
    np.testing.assert_array_equal(reweighted(np.array([0.0, 0.5, 0.5]), gained, groups), [0.0, 0.5, 0.5])
    tiny = np.array([1e-300, 0.5, 0.5])  # 1e-300 is e^-690.8, which stands against 0.5 e^-800
    np.testing.assert_allclose(reweighted(tiny, gained, groups), [0.5, 0.0, 0.5], atol=1e-40)
    none = np.array([0.0, 0.0, 1.0])
    np.testing.assert_array_equal(reweighted(none, gained, groups), none)
