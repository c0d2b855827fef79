"""Averaging over structures: weights by leave-one-out prediction, draws in proportion to them, and the mixture."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy
from scipy import stats

import amsbq
from amsbq.gp.data import Data, Sites
from amsbq.inference.averaging import SETTINGS, advantage, stacking_weights, weighted
from amsbq.inference.log_posterior import LogPosterior
from amsbq.inference.particles import from_dict, learn, of_primary_alone
from amsbq.inference.sampling import HyperparameterDraws, allotted, draw
from amsbq.inference.structures import as_model, chain, checked_order, common_and_own, star
from amsbq.posterior.component import Component
from amsbq.posterior.latent import Latent, Process, without_far_draws
from amsbq.posterior.transforms import IDENTITY

UNIT = amsbq.Uniform(0, 1)


def levels_of(n, seed=0):
    """Nested observations of three levels, each finer one a tenth of the difference away from the limit."""
    rng = np.random.default_rng(seed)
    X = rng.permutation((np.arange(4 * n) + 0.5) / (4 * n))[:, None]
    s = np.repeat([0, 1, 2], [n, 2 * n, 4 * n])
    x = np.concatenate([X[:n], X[: 2 * n], X])
    y = np.sin(5 * x[:, 0]) + 0.3 * 0.1 ** (2 - s) * np.cos(7 * x[:, 0] + s)
    return Data(s, x, y, np.zeros(len(y)))


def integral(particles, data):
    """The integral of the primary source, by particles that are conditioned on observations."""
    return Component(1.0, IDENTITY, Latent.of(Process.of(particles, data)), UNIT).integral


@pytest.mark.parametrize(("share", "left_out"), [(0.01, True), (0.04, False), (0.5, False)])
def test_single_draws_far_off_are_left_out(share, left_out):
    """They would be most of the standard deviation; what has more than a few percent of the weight is no chance."""
    others = amsbq.Estimate([1.0, 1.2, 0.9], [0.1, 0.2, 0.1], dof=4.0)
    weights = np.append((1 - share) * others.weights, share)
    whole = amsbq.Estimate([*others.centres, 30.0], [*others.scales, 2.0], weights, dof=4.0)
    found = without_far_draws(whole)
    assert (whole.std, whole.interval()[1]) > (10 * others.std, others.interval()[1])
    if left_out:
        np.testing.assert_allclose([found.mean, found.std], [others.mean, others.std], rtol=1e-14)
        assert found.interval()[1] < 2
    else:
        assert found is whole


@pytest.mark.parametrize("n", [1, 4, 30])
def test_weights_maximise_the_density_of_the_mixture(n):
    """Against a general optimiser of the same objective, with equal weights as so many observations of the prior."""
    log_p = np.random.default_rng(n).normal(scale=1.5, size=(n, 3))
    prior = np.array([1.0, 0.5, 0.5])

    def objective(t):
        w = np.exp(t - np.logaddexp.reduce(t))
        return -np.logaddexp.reduce(log_p + np.log(w), axis=1).sum() - prior @ np.log(w)

    best = scipy.optimize.minimize(objective, np.zeros(3), tol=1e-12).x
    np.testing.assert_allclose(stacking_weights(log_p, prior), np.exp(best) / np.exp(best).sum(), atol=5e-3)


def test_densities_are_those_of_observations_that_were_left_out():
    """Each primary observation by posteriors that have not seen it: the weights are those of these densities."""
    data = levels_of(4)
    draws = [
        draw(LogPosterior(prior, UNIT, data, [1e-4] * 3), 4) for prior in (chain([0, 1, 2], 1), star([0, 1, 2], 1))
    ]
    logs = np.empty((4, 2))
    for m, some in enumerate(draws):
        density = some.log_posterior
        standard = density.units.standardise(data)
        for i in range(4):
            rest = density.on(data.rows(np.arange(len(data.y)) != i))
            posteriors = rest.condition(some.Theta, some.relations)
            mean, variance = posteriors.predict(0, data.X[[i]])
            models = posteriors.models
            noise = models.noise[:, 0] + 1e-10 * models.variances(Sites.values(0, data.X[[i]]))[:, 0]
            p = stats.norm(mean[:, 0], np.sqrt(variance[:, 0] + noise)).pdf(standard.y[i])
            unseen = draws[m].weights * np.minimum(1 / p, 2 * (draws[m].weights @ (1 / p)))  # four draws
            logs[i, m] = np.log(unseen @ p / unseen.sum())
    weights = [member.weight for member in weighted(draws)]
    equal = np.full(2, SETTINGS.prior_observations / 2)
    np.testing.assert_allclose(weights, stacking_weights(logs, equal), rtol=1e-4)


@pytest.mark.parametrize("n", [1, 5, 8, 100])
def test_draws_are_allotted_by_weight(n):
    weights = np.array([0.55, 0.1, 0.35])
    counts = allotted(n, weights)
    assert counts.sum() == n
    assert np.abs(counts - n * weights).max() <= 1


def test_the_estimate_is_the_mixture_of_all_structures():
    data = levels_of(3)
    particles = learn(as_model("auto"), UNIT, data, [0.0] * 3)
    assert len(particles.members) == 4
    assert sum(member.weight for member in particles.members) == pytest.approx(1)
    units, standard = particles.units, particles.units.standardise(data.sorted())
    mean = 0.0
    for member in particles.members:
        density = member.draws.log_posterior.on(data.sorted())
        means, _ = density.condition(member.draws.Theta, member.draws.relations).integral()
        mean += member.weight * (units.levels[0] + units.spreads[0] * member.draws.weights @ means)
    assert integral(particles, data).mean == pytest.approx(mean, rel=1e-7)
    assert Process.of(particles, data).posteriors.data.y.tolist() == standard.y.tolist()


def test_a_chain_is_believed_in_the_right_order():
    """In the wrong order, with the coarsest level next to the primary one, other structures get its weight."""
    weights = []
    for order in ([0, 1, 2], [0, 2, 1]):
        found = [learn(as_model("auto"), UNIT, levels_of(5, seed), [0.0] * 3, order=order) for seed in range(3)]
        weights.append(np.mean([particles.members[1].weight for particles in found]))
    assert weights[0] > weights[1]


def test_a_hierarchy_needs_two_fine_evaluations():
    """The fine differences are learned from the coarse ones: the error is a tenth of the spread of the source."""
    truth = (1 - np.cos(5)) / 5 + 0.003 * np.sin(7) / 7
    errors, stds = [], []
    for seed in range(4):
        data = levels_of(2, seed)
        answer = amsbq.estimate(data.s, data.X, data.y, UNIT, seed=seed)
        errors.append(abs(answer.mean - truth))
        stds.append(answer.std)
    assert np.median(errors) < 0.05
    assert (np.array(errors) < 4 * np.array(stds)).all()


@pytest.mark.parametrize("order", [[0, 1], [1, 0, 2], [0, 1, 1], "012", 3, [0.0, 1.0, 2.5]])
def test_orders_that_are_none(order):
    with pytest.raises(ValueError, match=r"order must be the indices of all 3 sources .* such as \[0, 1, 2\]"):
        checked_order(order, 3)


def test_permuted_sources_give_the_same_answer():
    data = levels_of(3)
    other = Data(np.array([0, 2, 1])[data.s], data.X, data.y, data.noise_var)
    answers = [amsbq.estimate(d.s, d.X, d.y, UNIT) for d in (data, other)]
    assert answers[1].mean == pytest.approx(answers[0].mean, abs=0.02 * answers[0].std)
    assert answers[1].std == pytest.approx(answers[0].std, rel=0.02)


def test_one_source_has_two_structures():
    assert len(as_model("auto").structures([0], 2)) == 2
    assert common_and_own([0], 2).terms[0].scale.mode == pytest.approx(0.2 * 2**0.5)


def test_a_source_that_tells_nothing_does_not_rule_the_scales_of_the_primary_one():
    """Not even through the lengthscales: it hardly counts, and where it must, the answer is wide enough."""
    rng = np.random.default_rng(0)
    x = np.concatenate([np.linspace(0.05, 0.95, 8), rng.uniform(size=40)])[:, None]
    s = np.repeat([0, 1], [8, 40])
    y = np.where(s == 0, np.cos(7 * x[:, 0]) + x[:, 0] ** 2, np.sin(83 * x[:, 0] + 1))
    data, model = Data(s, x, y, np.zeros(48)), as_model("auto")
    only = integral(learn(model, UNIT, data.of_source(0), [0.0]), data.of_source(0))
    particles = learn(model, UNIT, data, [0.0, 0.0])
    share, without = of_primary_alone(particles, model, UNIT, data, [0.0, 0.0])
    chosen = integral(without, data)
    assert share > 0.98
    assert (chosen.mean, chosen.std) == (only.mean, only.std)
    found = integral(particles, data)
    assert abs(found.mean - np.sin(7) / 7 - 1 / 3) < 3 * found.std
    assert found.std < 100 * only.std


def scattered(noise, n=10, m=20, seed=0):
    """A smooth pair whose secondary source has noise of that standard deviation."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n + m, 1))
    s = np.repeat([0, 1], [n, m])
    y = np.sin(5 * x[:, 0]) + s * (0.2 * x[:, 0] + noise * rng.normal(size=n + m))
    return Data(s, x, y, np.zeros(n + m))


def test_noise_that_nobody_declared_is_learned():
    data = scattered(0.1)
    with pytest.warns(UserWarning, match="the values of coarse scatter more than the declared noise"):
        particles = learn(as_model("auto"), UNIT, data, [0.0, 0.0], names=["fine", "coarse"])
    found = np.sqrt(particles.models.noise) * particles.units.spreads
    assert (found[:, 0] == 0).all()
    assert np.median(found[:, 1]) == pytest.approx(0.1, rel=0.5)
    again = from_dict(as_model("auto"), UNIT, data, [0.0, 0.0], 0, particles.to_dict())
    assert integral(again, data).interval() == integral(particles, data).interval()


def test_functions_without_noise_are_not_taken_for_noisy():
    for wave in (5.0, 12.0):
        rng = np.random.default_rng(0)
        x = rng.uniform(size=(35, 1))
        s = np.repeat([0, 1], [15, 20])
        y = np.abs(np.sin(wave * x[:, 0])) + 0.2 * s * x[:, 0]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            learn(as_model("auto"), UNIT, Data(s, x, y, np.zeros(35)), [0.0, 0.0])


def test_the_advantage_of_other_sources_does_not_depend_on_units():
    """Structures with and without other sources have units of their own, but densities are those of the values."""
    model = as_model("auto")
    for data in (levels_of(4), levels_of(4, 1)):
        found = []
        for factor in (1.0, 1e3):
            scaled = Data(data.s, data.X, factor * data.y, data.noise_var)
            every = learn(replace(model, leaves_out=False), UNIT, scaled, [0.0] * 3)
            found.append(advantage(every.members, learn(model, UNIT, scaled.of_source(0), [0.0]).members))
        assert found[1] == pytest.approx(found[0], abs=1e-3)
    louder = np.where(data.s == 0, 1.0, 100.0) * data.y  # secondary sources in another unit
    every = learn(replace(model, leaves_out=False), UNIT, replace(data, y=louder), [0.0] * 3)
    alone = learn(model, UNIT, data.of_source(0), [0.0])
    assert advantage(every.members, alone.members) == pytest.approx(found[0], abs=1e-2)


def test_sources_that_predict_the_primary_one_are_kept():
    data = levels_of(4)
    assert learn(as_model("auto"), UNIT, data, [0.0] * 3).n_sources == 3


def test_left_out_values_are_predicted_by_draws_that_have_not_seen_them():
    """Draws are conditioned on all values; the density of one given the others is that of draws without it."""
    X = np.array([0.1, 0.35, 0.6, 0.9, 0.2, 0.7])[:, None]
    s = np.array([0, 0, 0, 0, 1, 1])
    data = Data(s, X, np.cos(2 * X[:, 0]) + 0.1 * s, np.full(6, 0.05))
    density = LogPosterior(chain(range(2), 1), amsbq.Uniform(0, 1), data, [0.0, 0.0])
    theta = density.layout.starts()[:5]
    models, standard = density.models(theta), density.units.standardise(data)
    G = models.cov(standard.sites, standard.sites) + np.diag(standard.noise_var)

    def likelihoods(rows):
        dense = [stats.multivariate_normal(cov=each[np.ix_(rows, rows)]) for each in G]
        return np.array([one.pdf(standard.y[rows]) for one in dense])

    every = np.arange(6)
    weights = likelihoods(every) / likelihoods(every).sum()
    relations, modes = np.ones((5, 2)), np.zeros(5, dtype=int)
    draws = HyperparameterDraws(density, theta, relations, modes, weights, np.zeros(5))
    for n, found in enumerate(draws.primary_log_densities):
        density_of_it = likelihoods(every).sum() / likelihoods(np.delete(every, n)).sum()
        assert found == pytest.approx(np.log(density_of_it), abs=1e-6)
