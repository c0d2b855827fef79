"""Learning hyperparameters: the maximum is one, the draws follow the posterior, relations are recognised."""

import numpy as np
import pytest

import amsbq
from amsbq.gp.data import Data
from amsbq.inference.log_posterior import LogPosterior
from amsbq.inference.modes import find_mode, find_modes
from amsbq.inference.sampling import SamplerSettings, draw, most_probable
from amsbq.inference.structures import chain, common_and_own, icm, lmc, richardson, star

UNIT = amsbq.Uniform(0, 1)


def data(s, x, y):
    x = np.asarray(x, float).reshape(len(y), 1)
    return Data(np.asarray(s, np.intp), x, np.asarray(y, float), np.zeros(len(y)))


def related_data(kind, n=4, m=14, seed=0):
    rng = np.random.default_rng(seed)
    x, x2 = rng.uniform(size=n), np.linspace(0, 1, m)
    x2 = np.append(x2, x)
    f = np.sin(7 * x) + x
    g = {"related": 0.8, "opposite": -0.8}[kind] * (np.sin(7 * x2) + x2) + 0.3 * x2
    return data(np.repeat([0, 1], [n, m + n]), np.append(x, x2), np.append(f, g))


@pytest.mark.parametrize("structure", [common_and_own, chain, star, richardson, lmc, icm])
def test_maximum_is_stationary_and_no_worse_than_random_ones(structure):
    rng = np.random.default_rng(0)
    x = rng.uniform(size=14)
    s = np.repeat([0, 1], 7)
    density = LogPosterior(structure(range(2), 1), UNIT, data(s, x, np.sin(9 * x) + s * x), [1e-4, 1e-4])
    theta = most_probable(density).Theta[0]
    (value,), (gradient,) = density.log_posterior_and_grad(theta[None])
    assert np.abs(gradient).max() < 1e-2
    others, _ = density.log_posterior_and_grad(theta + rng.normal(size=(20, len(theta))))
    assert (others < value).all()


def test_it_finds_the_lengthscale_of_a_draw_from_the_prior():
    rng = np.random.default_rng(1)
    x = rng.uniform(size=80)
    for truth in (0.05, 0.2):
        K = amsbq.RBF(truth)(x, x) + 1e-8 * np.eye(80)
        y = np.linalg.cholesky(K) @ rng.normal(size=80)
        density = LogPosterior(icm(range(1), 1), UNIT, data(np.zeros(80), x, y), [1e-8])
        (scales,) = density.models(find_mode(density).theta[None]).groups[0].flat_scales
        np.testing.assert_allclose(scales, truth, rtol=0.15)


def small_density(n):
    """Return the density of few hyperparameters, given the first observations."""
    x = np.random.default_rng(3).uniform(size=12)[:n]
    return LogPosterior(icm(range(1), 1), UNIT, data(np.zeros(n), x, np.sin(4 * x)), [1e-2])


def agrees_with_importance_sampling(fit):
    """Compare draws with the prior, weighted by the likelihood."""
    density = fit.log_posterior
    many = density.prior_draws(2**15, 1)
    log_prior = np.zeros(len(many))
    density.layout.add_log_prior(many, log_prior, np.zeros_like(many))
    log_likelihood = density.log_posterior(many) - log_prior
    weights = np.exp(log_likelihood - log_likelihood.max())
    weights /= weights.sum()
    mean = weights @ many
    std = np.sqrt(weights @ (many - mean) ** 2)
    found = fit.weights @ fit.Theta
    np.testing.assert_allclose((found - mean) / std, 0, atol=0.15)
    np.testing.assert_allclose(np.sqrt(fit.weights @ (fit.Theta - found) ** 2) / std, 1, atol=0.15)
    for column, other in zip(fit.Theta.T, many.T, strict=True):
        cdf = [np.cumsum(some[np.argsort(at)]) for some, at in ((fit.weights, column), (weights, other))]
        apart = cdf[0] - np.interp(np.sort(column), np.sort(other), cdf[1])
        assert np.abs(apart).max() < 0.08


def test_draws_follow_the_posterior():
    fit = draw(small_density(5), 1024)
    assert fit.effective > 900
    agrees_with_importance_sampling(fit)


def test_draws_that_are_carried_along_follow_the_posterior():
    fit = draw(small_density(3), 1024)
    least = len(fit)
    for n in range(4, 13):
        fit = fit.carried(small_density(n), 1024, 0)
        least = min(least, fit.effective)
    assert least < 900  # weights have changed
    agrees_with_importance_sampling(fit)


def test_draws_are_not_carried_to_where_hardly_any_of_them_is_probable():
    x = np.linspace(0, 1, 30)
    density = LogPosterior(icm(range(1), 1), UNIT, data(np.zeros(30), x, np.sin(60 * x)), [1e-6])
    assert draw(small_density(5), 64).carried(density, 64, 0) is None


def test_a_mode_that_weighs_little_keeps_draws_as_it_may_turn_out_to_be_right():
    """Two values do not tell whether sources run against each other; more of them do."""
    every = related_data("opposite", 9)

    def density(n):
        rows = np.flatnonzero((every.s == 1) | (np.cumsum(every.s == 0) <= n))
        return LogPosterior(common_and_own(range(2), 1), UNIT, every.rows(rows), [0.0, 0.0])

    fit = draw(density(2), 48)
    assert np.sum(fit.weights[fit.relations[:, 1] == -1]) < 0.5
    for n in range(3, 10):
        fit = fit.carried(density(n), 48, 0) or draw(density(n), 48)
    assert np.sum(fit.weights[fit.relations[:, 1] == -1]) > 0.9


@pytest.mark.parametrize("kind", ["related", "opposite"])
def test_it_recognises_how_sources_are_related(kind):
    fit = draw(LogPosterior(common_and_own(range(2), 1), UNIT, related_data(kind, 7), [0.0, 0.0]), 32)
    of_kind = fit.relations[:, 1] == {"related": 1, "opposite": -1}[kind]
    assert fit.weights.sum() == pytest.approx(1)
    assert fit.weights[of_kind].sum() > 0.9


def test_it_does_not_matter_which_of_two_sources_differs():
    """From differences alone it cannot be told which one it is: both are modes, whichever was found first."""
    data = related_data("related", 7)
    fit = draw(LogPosterior(common_and_own(range(2), 1), UNIT, data, [0.0, 0.0]), 32)
    at = fit.log_posterior.layout.decode(fit.Theta, fit.relations)
    own = at.own[:, 1] / at.A[:, 1] ** 2
    first = fit.weights[own[:, 0] > own[:, 1]].sum()
    assert 0.2 < first < 0.8


def test_most_probable_is_one_draw():
    density = LogPosterior(icm(range(2), 1), UNIT, related_data("related"), [0.0, 0.0])
    fit = most_probable(density)
    assert fit.Theta.shape == (1, density.layout.size)
    assert len(fit.models()) == 1


def test_the_same_seed_gives_the_same_draws():
    density = LogPosterior(common_and_own(range(2), 1), UNIT, related_data("related"), [0.0, 0.0])
    first, again, other = (draw(density, 8, seed).Theta for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_draws_that_do_not_move_fall_back_to_the_most_probable(monkeypatch):
    density = LogPosterior(common_and_own(range(2), 1), UNIT, related_data("related"), [0.0, 0.0])
    monkeypatch.setattr(
        "amsbq.inference.sampling.SETTINGS", SamplerSettings(step=1e6)
    )  # every trajectory leaves the box
    monkeypatch.setattr("amsbq.inference.sampling._few_copies", lambda log_weights: np.zeros(len(log_weights), int))
    fit = draw(density, 16)
    modes = [mode.theta for mode in find_modes(density)]
    assert fit.effective <= len(modes)
    for theta in fit.Theta:
        assert any(np.array_equal(theta, mode) for mode in modes)


def test_a_model_that_the_measure_cannot_have_is_an_error():
    correlated = amsbq.Gaussian([0, 0], [[1, 0.5], [0.5, 1]])
    observations = Data(np.zeros(2, np.intp), np.zeros((2, 2)), np.array([1.0, 2.0]), np.zeros(2))
    with pytest.raises(ValueError, match="does not separate"):
        most_probable(LogPosterior(lmc([0], 2, nu=2.5), correlated, observations, [0.0]))


def test_values_that_no_hyperparameters_fit():
    x = np.linspace(0, 1, 6)
    for prior in (common_and_own(range(2), 1), icm(range(2), 1)):
        density = LogPosterior(prior, UNIT, data([0, 0, 0, 1, 1, 1], x, 1e-10 * np.sin(5 * x)), [1e300, 1e300])
        with pytest.raises(ValueError, match="their values are too extreme"):
            find_mode(density)
