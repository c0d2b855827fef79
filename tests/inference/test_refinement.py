"""Structures of sources with known fidelities: f(x, h) = f(x, 0) + e(x, h)."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.gp.data import Data
from amsbq.gp.kernels import RBF
from amsbq.gp.trends import linear_kernel
from amsbq.inference.log_posterior import LEARNING_JITTER, LogPosterior
from amsbq.inference.preparation import StandardUnits
from amsbq.inference.priors import REFINEMENT, TREND, wide_lengthscale
from amsbq.inference.structures import (
    MODELS,
    Fidelities,
    as_model,
    refined,
    refinements,
)
from amsbq.posterior.learner import Learner

SQUARE = amsbq.Uniform([0, 0], 1)
#: two knobs, and a source that is no refinement
GRID = Fidelities(("h", "k"), ((0.1, 0.1), (0.2, 0.1), (0.1, 0.4), (0.2, 0.4), None))


def observations(n=15, seed=0):
    rng = np.random.default_rng(seed)
    return Data(np.arange(n) % 5, rng.random((n, 2)), rng.normal(size=n), np.zeros(n))


def density(fidelities=GRID, data=None, trend=TREND, noise=(0.0,) * 5):
    data = observations() if data is None else data
    prior = refined(range(5), 2, fidelities, wide_lengthscale, trend)
    prior = replace(prior, alike=fidelities.declared, noise_knobs=fidelities.logarithms(5))
    return LogPosterior(prior, SQUARE, data, noise)


def typical(log_posterior, n=3, seed=0):
    """Draws not far from the centre of the prior."""
    rng, layout = np.random.default_rng(seed), log_posterior.layout
    return layout.centre() + 0.5 * layout.prior_spread * rng.normal(size=(n, layout.size))


def by_hand(theta, data, fidelities=GRID):
    """The covariance of observations in standard units, entry by entry."""
    scales = np.exp(theta[:6].reshape(3, 2))
    others = np.exp(theta[6:8])
    log_a, log_gain, p1, s1, r1, t1, p2, s2, r2, t2, s12, log_rho, s_other = theta[8:]
    line = linear_kernel(SQUARE)
    unit = SQUARE.latent.width

    def kappa(ells, x, z, trend):
        return float(RBF(ells * unit)([x], [z])[0, 0]) + trend * float(line([x], [z])[0, 0])

    def covariance(l, x, m, z):
        rho = np.exp(log_rho * [l, m].count(4))
        total = 100.0 * (l == m or 4 not in (l, m))
        total += (
            np.exp(2 * log_a) * rho * (kappa(scales[0], x, z, 0) + np.exp(log_gain) * kappa(scales[1], x, z, TREND))
        )
        if l == m == 4:
            return total + np.exp(2 * log_a + s_other) * kappa(others, x, z, TREND)
        if 4 in (l, m):
            return total
        (h, k), (g, j) = ((a / 0.2, b / 0.4) for a, b in (fidelities.values[l], fidelities.values[m]))
        error = kappa(scales[2], x, z, TREND) + REFINEMENT.constant
        one = np.exp(s1) * ((h * g) ** p1 + np.exp(r1) * (h * g) ** (p1 + t1) * np.exp(-abs(np.log(h / g))))
        two = np.exp(s2) * ((k * j) ** p2 + np.exp(r2) * (k * j) ** (p2 + t2) * np.exp(-abs(np.log(k / j))))
        both = np.exp(s12) * (h * g) ** p1 * (k * j) ** p2
        return total + np.exp(2 * log_a) * error * (one + two + both)

    rows = list(zip(data.s, data.X, strict=True))
    return np.array([[covariance(*one, *other) for other in rows] for one in rows])


def test_evidence_is_that_of_a_dense_joint_gaussian():
    log_posterior, data = density(), observations()
    Theta = typical(log_posterior)
    values = log_posterior.log_posterior(Theta)
    prior = np.zeros(len(Theta))
    log_posterior.layout.add_log_prior(Theta, prior, np.zeros_like(Theta))
    y = log_posterior.units.standardise(data).y
    for theta, value in zip(Theta, values - prior, strict=True):
        V = by_hand(theta, data)
        V += LEARNING_JITTER * np.diag(np.diag(V))
        assert value == pytest.approx(stats.multivariate_normal(np.zeros(len(y)), V).logpdf(y), abs=1e-6)


def test_posterior_is_that_of_a_dense_joint_gaussian():
    log_posterior, data = density(), observations()
    theta = typical(log_posterior, 1)
    new = Data(np.arange(5), np.random.default_rng(1).random((5, 2)), np.zeros(5), np.zeros(5))
    together = Data(
        *(np.concatenate(pair) for pair in zip(*((d.s, d.X, d.y, d.noise_var) for d in (data, new)), strict=True))
    )
    V, n = by_hand(theta[0], together), len(data.y)
    known = V[:n, :n] + LEARNING_JITTER * np.diag(np.diag(V)[:n])
    weights = np.linalg.solve(known, V[:n, n:])
    mean, variance = weights.T @ log_posterior.units.standardise(data).y, np.diag(V[n:, n:] - weights.T @ V[:n, n:])
    found = log_posterior.condition(theta)
    for i, (source, x) in enumerate(zip(new.s, new.X, strict=True)):
        its_mean, its_variance = found.predict(int(source), x[None])
        assert its_mean[0, 0] == pytest.approx(mean[i], rel=1e-6, abs=1e-7)
        assert its_variance[0, 0] == pytest.approx(variance[i], rel=1e-6, abs=1e-7)


#: of the first four sources it is a power of each knob, except for the one that is known; the last one has its own
NOISE = ["learn", 0.0, "learn", "learn", "learn"]


def test_noise_is_proportional_to_powers_of_knobs():
    log_posterior, data = density(noise=NOISE), observations()
    Theta = typical(log_posterior)
    prior = np.zeros(len(Theta))
    log_posterior.layout.add_log_prior(Theta, prior, np.zeros_like(Theta))
    y = log_posterior.units.standardise(data).y
    for theta, value in zip(Theta, log_posterior.log_posterior(Theta) - prior, strict=True):
        *about, log_own, log_coarsest, q1, q2 = theta
        variances = {4: np.exp(log_own), 1: 0.0}
        for source in (0, 2, 3):
            h, k = GRID.values[source]
            variances[source] = np.exp(log_coarsest) * (h / 0.2) ** q1 * (k / 0.4) ** q2
        V = by_hand(np.array(about), data) + np.diag([variances[source] for source in data.s])
        V += LEARNING_JITTER * np.diag(np.diag(V))
        assert value == pytest.approx(stats.multivariate_normal(np.zeros(len(y)), V).logpdf(y), abs=1e-6)
        noise = log_posterior.models(theta[None]).noise[0]
        np.testing.assert_allclose(noise, [variances[source] for source in range(5)], rtol=1e-12)


@pytest.mark.parametrize("noise", [[0.0] * 5, NOISE], ids=["exact", "noisy"])
def test_gradient(noise):
    log_posterior = density(noise=noise)
    Theta = typical(log_posterior)
    _, gradients = log_posterior.log_posterior_and_grad(Theta)
    for i, direction in enumerate(np.eye(Theta.shape[1])):
        slopes = [
            (log_posterior.log_posterior(Theta + h * direction) - log_posterior.log_posterior(Theta - h * direction))
            / (2 * h)
            for h in (1e-4, 5e-5)
        ]
        extrapolated = (4 * slopes[1] - slopes[0]) / 3
        np.testing.assert_allclose(gradients[:, i], extrapolated, rtol=1e-6, atol=1e-6 * abs(gradients).max())


def test_units_of_knobs_do_not_matter():
    """Widths of cells in any unit, and knobs in any order."""
    data, Theta = observations(), typical(density())
    scaled = Fidelities(("h", "k"), tuple(v and (v[0] * 1000, v[1] / 7) for v in GRID.values))
    np.testing.assert_allclose(density().log_posterior(Theta), density(scaled).log_posterior(Theta), rtol=1e-9)
    swapped = Fidelities(("k", "h"), tuple(v and v[::-1] for v in GRID.values))
    columns = [*range(10), *range(14, 18), *range(10, 14), *range(18, 21)]
    np.testing.assert_allclose(
        density().log_posterior(Theta), density(swapped, data).log_posterior(Theta[:, columns]), rtol=1e-9
    )


def test_a_level_between_others_changes_nothing():
    """The prior of some levels is the same, whatever other levels there are."""
    h = (0.1, 0.13, 0.2)
    three = refined(range(3), 1, Fidelities(("h",), tuple((v,) for v in h)), wide_lengthscale)
    two = refined(range(2), 1, Fidelities(("h",), ((0.1,), (0.2,))), wide_lengthscale)
    line, none = amsbq.Uniform(0, 1), Data.empty(1)
    one, other = (LogPosterior(prior, line, none, [0.0] * L) for prior, L in ((three, 3), (two, 2)))
    theta = typical(one)
    B, fewer = (each.layout.decode(theta, np.ones((1, each.n_sources))).B() for each in (one, other))
    np.testing.assert_allclose(B[:, :, [0, 2]][..., [0, 2]], fewer, rtol=1e-12)


def test_sources_of_one_quantity_have_one_level_and_one_unit():
    s = np.repeat([0, 1, 2], 4)
    y = np.concatenate([[1.0, 2, 3, 4], [110, 120, 130, 140], [1, 2, 3, 5]])
    data = Data(s, np.tile(np.arange(4.0)[:, None], (3, 1)), y, np.zeros(12))
    units = StandardUnits.of(data, 3, True, alike=(0, 1))
    assert units.levels.tolist() == [2.5, 2.5, 2.75]
    assert units.spreads[0] == units.spreads[1]
    assert StandardUnits.of(data, 3, True).spreads[1] > 5 * units.spreads[0] / 5
    without = data.rows(data.s > 0)
    assert StandardUnits.of(without, 3, True, alike=(0, 1)).levels[0] == pytest.approx(
        StandardUnits.of(without, 3, True, alike=(0, 1)).levels[1]
    )


def test_when_the_structures_exist():
    declared = replace(MODELS["auto"], fidelities=GRID)
    assert len(declared.priors(range(5), 2)) == 3
    assert all(prior.alike == (0, 1, 2, 3) for prior in declared.priors(range(5), 2))
    assert len(declared.priors([0], 2)) == len(as_model("auto").structures([0], 2))  # the others were left out
    formula = replace(MODELS["auto"], fidelities=Fidelities(("h",), ((0.1,), None)))
    assert len(formula.priors(range(2), 1)) == len(as_model("auto").structures(range(2), 1))  # nothing to compare
    assert len(replace(MODELS["ar"], fidelities=GRID).priors(range(5), 2)) == 1  # a model of one structure stays it
    many = Fidelities(("h",), tuple((0.1 * (i + 1),) for i in range(10)))
    assert len(refinements(range(10), 2, many)) == 2  # none with hyperparameters for each source


def test_exponent_is_learned():
    """Errors of order two in two inputs: the draws of p are near two."""
    fidelities = Fidelities(("h",), ((1 / 32,), (1 / 16,), (1 / 8,), (1 / 4,)))
    learner = Learner(replace(MODELS["auto"], fidelities=fidelities), SQUARE, [[0.0] * 4], 0)
    for source, (h,) in enumerate(fidelities.values):
        for x in SQUARE.sobol(3 + 2 * source, 1):
            learner.add(source, x, np.sin(3 * x[0]) * x[1] + h**2 * (1 + 2 * np.cos(2 * x[0]) + x[1]), 0.0)
    posterior = learner.learned()
    for member in posterior.channels[0].process.particles.members:
        prior = member.draws.log_posterior.prior
        if prior.one_level:
            at = member.draws.log_posterior.layout._factors[2]
            p = member.draws.weights @ member.draws.Theta[:, at][:, 0]
            assert 1.8 < p < 2.2
            break
    else:
        pytest.fail("there is no structure with an exponent")


def test_reported_noise_of_levels_that_were_not_observed():
    """A power law of two knobs is found, and one level alone says that variances grow like the root of each knob."""
    levels = Fidelities(
        ("h", "paths"), (*((h, p) for h in (0.1, 0.2, 0.4) for p in (1e-4, 1e-3, 1e-2)), None), limit=True
    )
    truth = np.array([3.0 * value[1] if value else 0.0 for value in levels.values])
    known = np.where(np.isin(np.arange(10), [2, 3, 5], invert=True), truth, np.nan)
    found = levels.noise_of_all(np.append(known, np.nan))
    np.testing.assert_allclose(found[:9], truth[:9], rtol=0.3)
    assert found[9:].tolist() == [0, 0]  # no level, and the limit
    np.testing.assert_array_equal(found[[0, 1, 4, 8]], truth[[0, 1, 4, 8]])
    alone = levels.noise_of_all(np.array([np.nan, np.nan, np.nan, np.nan, 0.5, np.nan, np.nan, np.nan, np.nan]))
    ratios = [(h / 0.2 * p / 1e-3) ** 0.5 for h, p in levels.values[:9]]
    np.testing.assert_allclose(alone, 0.5 * np.array(ratios))
    assert levels.noise_of_all(np.array([0.0, np.nan])).tolist() == [0, 0]


def test_noise_is_learned_over_all_levels():
    """Averages over particles: one value of the finest level has the noise that the others tell."""
    counts = [10000, 1000, 100]
    fidelities = Fidelities(("particles",), tuple((1 / n,) for n in counts))
    learner = Learner(replace(MODELS["auto"], fidelities=fidelities), amsbq.Uniform(0, 1), [["learn"] * 3], 0)
    rng = np.random.default_rng(0)
    for source, n in enumerate([3, 10, 40]):
        std = 2.0 / counts[source] ** 0.5
        for x in np.linspace(0, 1, n):
            learner.add(source, np.array([x]), np.sin(3 * x) + std * rng.normal(), 0.0)
    for member in learner.learned().channels[0].process.particles.members:
        density = member.draws.log_posterior
        if member.weight and density.prior.one_level:
            noise = density.models(member.draws.Theta, member.draws.relations).noise * density.units.spreads**2
            stds = np.sqrt(np.exp(member.draws.weights @ np.log(noise)))
            np.testing.assert_allclose(stds[1:], [2 / 1000**0.5, 0.2], rtol=0.5)
            assert 0.3 < stds[0] / 0.02 < 3
            break
    else:
        pytest.fail("no structure of levels counts")
