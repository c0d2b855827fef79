"""The posterior density of hyperparameters: its value, its gradient, its units, and the models that it is of."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.gp.data import Data
from amsbq.gp.posterior_batch import PosteriorBatch
from amsbq.inference.log_posterior import LEARNING_JITTER, LogPosterior
from amsbq.inference.particles import Particles
from amsbq.inference.preparation import StandardUnits
from amsbq.inference.structures import MODELS, chain, common_and_own, icm, lmc, richardson, star
from amsbq.posterior.latent import Latent, Process
from tests.reference import central_difference


def data_of(measure, L, n, seed):
    rng = np.random.default_rng(seed)
    s = np.append(np.arange(L), rng.integers(L, size=n - L))
    X, y, extra = measure.sample(n, rng), rng.normal(size=n), 1e-3 * rng.uniform(size=n)
    return Data(s, X, y, extra)


PRIORS = {
    "auto": common_and_own,
    "icm": icm,
    "lmc": lmc,
    "lmc matern-3/2": partial(lmc, nu=1.5),
    "lmc matern-5/2": partial(lmc, nu=2.5),
    "three terms": partial(lmc, fractions=(0.1, 0.4, 1.0), nu=0.5),
    "chain": chain,
    "star": star,
    "richardson": richardson,
}
MEASURES = {"uniform": amsbq.Uniform([0, -3], [1, 2]), "gamma": amsbq.as_measure([stats.gamma(5), stats.norm(1, 2)])}
NOISE = {"given": [1e-3, 1e-2, 0.02], "learned": ["learn", 1e-2, "learn"]}


def some_theta(density, n=3, seed=1):
    rng = np.random.default_rng(seed)
    return density.layout.centre() + 0.3 * rng.normal(size=(n, density.layout.size))


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("L", [1, 2, 3])
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("model", PRIORS)
def test_gradient_of_the_log_posterior(model, measure, L, noise):
    measure = MEASURES[measure]
    density = LogPosterior(PRIORS[model](range(L), measure.dim), measure, data_of(measure, L, 9, 0), NOISE[noise][:L])
    Theta = some_theta(density)
    values, gradient = density.log_posterior_and_grad(Theta)
    np.testing.assert_array_equal(density.log_posterior(Theta), values)
    for theta, row in zip(Theta, gradient, strict=True):
        numeric = central_difference(lambda t: density.log_posterior(t[None])[0], theta, 1e-3)
        np.testing.assert_allclose(row, numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("relation", [[1, -1, 1], [1, 0, 1], [1, 1, -1]])
def test_gradient_for_other_relations(relation):
    measure = MEASURES["uniform"]
    density = LogPosterior(common_and_own(range(3), measure.dim), measure, data_of(measure, 3, 9, 0), NOISE["learned"])
    relation = np.array(relation)
    theta = some_theta(density)[0]
    _, gradient = density.log_posterior_and_grad(theta[None], relation)
    numeric = central_difference(lambda t: density.log_posterior_and_grad(t[None], relation)[0][0], theta, 1e-3)
    np.testing.assert_allclose(gradient[0], numeric, rtol=1e-6, atol=1e-6)
    B = density.models(theta[None], relation).groups[0].B[0, 0]
    assert np.sign(B[0, 1:]).tolist() == relation[1:].tolist()
    mixed = density.log_posterior_and_grad(np.stack([theta, theta]), np.stack([relation, [1, 1, 1]]))
    alone = [density.log_posterior_and_grad(theta[None], r) for r in (relation, None)]
    np.testing.assert_allclose(mixed[0], np.concatenate([value for value, _ in alone]), rtol=1e-12)
    np.testing.assert_allclose(mixed[1], np.concatenate([gradient for _, gradient in alone]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("model", PRIORS)
def test_value_is_evidence_times_prior(model):
    """Against the exact core in the user's units, and against scipy.stats for the prior of the first structure."""
    measure, L = MEASURES["uniform"], 2
    data = data_of(measure, L, 11, 3)
    density = LogPosterior(PRIORS[model](range(L), measure.dim), measure, data, [1e-3, "learn"])
    Theta, prior = some_theta(density, 2), np.zeros(2)
    density.layout.add_log_prior(Theta, prior, np.zeros_like(Theta))
    for theta, value, of_prior in zip(Theta, density.log_posterior_and_grad(Theta)[0], prior, strict=True):
        gp = in_user_units(density, theta)
        evidence = PosteriorBatch.condition(gp.batch, data, LEARNING_JITTER).log_evidence()[0]
        evidence += np.log(density.units.spreads[data.s]).sum()
        np.testing.assert_allclose(value, evidence + of_prior, rtol=1e-9)
    if model == "auto":
        a, gain, scales, own, slow, noise = parts_of_default(density, Theta[0])
        at = density.layout.decode(Theta[:1], np.ones((1, 2)))
        expected = stats.t(4, scale=0.7).logpdf(a).sum() + stats.norm(-3, 1.5).logpdf(own).sum()
        expected += stats.norm(-3, 1.5).logpdf(np.log(at.own[0, 0] / at.A[0, 0] ** 2)).sum()
        expected += stats.norm(0, 2).logpdf(gain)
        expected += stats.loggamma(3, loc=np.log(0.1 * 2**0.5)).logpdf(scales).sum()
        expected += (
            stats.loggamma(3, loc=np.log(0.35 * 2**0.5)).logpdf(slow).sum()
            + stats.norm(np.log(1e-4), 3).logpdf(noise)[0]
        )
        np.testing.assert_allclose(prior[0], expected, rtol=1e-12)


def in_user_units(density, theta):
    """The model with hyperparameters θ, put together for the user's units."""
    at, units = density.layout.decode(theta[None], np.ones((1, density.n_sources))), density.units
    spreads = np.outer(units.spreads, units.spreads)
    terms = [
        amsbq.Term(B * spreads, density.prior.kernel.with_lengthscales(scales * density.measure.width))
        for B, scales in zip(at.B()[0], at.scales[0], strict=True)
    ]
    sd = density.measure.width / 12**0.5  # of uniform inputs
    linear = amsbq.Linear(density.measure.median, sd * density.measure.dim**0.5)
    for B, prior in zip(at.B()[0], density.prior.terms, strict=True):
        if prior.trend:
            terms.append(amsbq.Term(prior.trend * B * spreads, linear))
    if density.prior.level is not None:
        terms.append(amsbq.Term(density.prior.level**2 * np.diag(units.spreads**2), amsbq.Constant()))
    noise = density.noise.copy()
    noise[density.learned] = at.noise[0] * units.spreads[density.learned] ** 2
    return amsbq.MultiSourceGP(terms, density.measure, noise=noise, mean=units.levels)


def parts_of_default(density, theta):
    """Log amplitudes, gain, log λ of the fast term, log η, log λ of the slow term, log noise: of the default model."""
    at = density.layout.decode(theta[None], np.ones((1, density.n_sources)))
    fast, slow = np.log(at.A[0])
    own = np.log(at.own[0, 1]) - 2 * slow
    return slow, 2 * (fast - slow)[0], np.log(at.scales[0, 0]), own, np.log(at.scales[0, 1]), np.log(at.noise[0])


def test_outside_of_its_box_the_density_is_zero():
    measure = MEASURES["uniform"]
    density = LogPosterior(common_and_own(range(2), measure.dim), measure, data_of(measure, 2, 6, 0), [0.0, 0.0])
    Theta = np.stack([density.layout.centre(), density.layout.centre()])
    Theta[1, 0] = 1e4
    values, gradients = density.log_posterior_and_grad(Theta)
    assert np.isfinite(values[0])
    assert values[1] == -np.inf
    assert not gradients[1].any()
    np.testing.assert_array_equal(density.log_posterior(Theta), values)
    np.testing.assert_array_equal(density.log_posterior(Theta[1:]), [-np.inf])


def test_a_few_at_a_time_give_the_same(monkeypatch):
    measure = MEASURES["uniform"]
    density = LogPosterior(lmc(range(2), measure.dim), measure, data_of(measure, 2, 8, 0), [0.0, 0.0])
    Theta = some_theta(density, 5)
    together = density.log_posterior_and_grad(Theta)
    monkeypatch.setattr("amsbq.gp.gram.LARGEST_ARRAY", 2 * 36)
    for all_at_once, in_parts in zip(together, density.log_posterior_and_grad(Theta), strict=True):
        np.testing.assert_allclose(in_parts, all_at_once, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("model", PRIORS)
def test_units_do_not_matter(model):
    values = []
    for a, b, low, high in ((1, 0, [0, -3], [1, 2]), (-1e6, 3e5, [10, -3e4], [10.5, 2e4])):
        measure = amsbq.Uniform(low, high)
        rng = np.random.default_rng(2)
        s, U = np.append([0, 1], rng.integers(2, size=8)), rng.uniform(size=(10, 2))
        y = a * rng.normal(size=10) + b
        data = Data(s, measure.bounds[:, 0] + U * measure.width, y, np.full(10, 1e-4 * a**2))
        density = LogPosterior(PRIORS[model](range(2), measure.dim), measure, data, ["learn", 1e-4 * a**2])
        values.append(density.log_posterior_and_grad(some_theta(density, 1, 3)))
    np.testing.assert_allclose(values[1][0], values[0][0], rtol=1e-8)
    np.testing.assert_allclose(values[1][1], values[0][1], rtol=1e-6, atol=1e-7)


def units_beside(primary, other, at=None):
    """The unit of the second of two sources, the first of which is observed at the same places, or elsewhere."""
    n, m = len(primary), len(other)
    there = np.linspace(0, 1, m)[:, None]
    X = np.concatenate([there[:n] if at is None else np.array(at)[:, None], there])
    data = Data(np.repeat([0, 1], [n, m]), X, np.concatenate([primary, other]), np.zeros(n + m))
    spreads = StandardUnits.of(data, 2, common=True).spreads
    return spreads[1] / spreads[0]


def test_units_are_told_from_chance():
    y = np.array([0.3, 0.9, 0.1, 0.5, 0.8, 0.2])
    for factor, unit in ((1, 1), (3, 1), (1000, 1000), (-2e-4, 1e-4), (1e100, 1e100)):
        assert units_beside(y[:4], factor * y) == pytest.approx(unit, rel=1e-12)
    for n, factor, unit in ((1, 1e6, 1), (2, 1e6, 1), (3, 10, 1), (3, 100, 100)):  # few may be alike
        assert units_beside(y[:n], factor * y) == pytest.approx(unit, rel=1e-12)
    assert units_beside(np.full(4, 0.3), 1000 * y) == 1
    assert units_beside(y[:4], np.full(6, 1000.0)) == 1
    assert units_beside(30 + y[:4], 1000 * y + 5000) == pytest.approx(1000, rel=1e-12)  # levels do not matter
    unrelated = np.sin(np.arange(12) ** 2)
    for n, factor, unit in ((5, 5, 1), (5, 1000, 1000), (9, 1000, 1000)):
        assert units_beside(np.cos(np.arange(n)) / factor, unrelated) == pytest.approx(unit, rel=1e-12)
    peak = np.exp(-200 * (np.linspace(0, 1, 21) - 0.6) ** 2)
    assert units_beside(peak[[0, 2, 4, 5]], peak, at=[0.0, 0.1, 0.2, 0.25]) == 1  # compared at the same places


@pytest.mark.parametrize("model", ["ar", "star", "common and own"])
@pytest.mark.parametrize("factor", [1e-6, 1e3])
def test_the_unit_of_one_source_does_not_matter(model, factor):
    """Powers of ten are told from values that differ by so much that it is no chance."""
    measure, rng = MEASURES["uniform"], np.random.default_rng(4)
    s, X, y = np.repeat([0, 1], [9, 12]), rng.uniform(size=(21, 2)), rng.normal(size=21)
    prior = {"ar": chain, "star": star, "common and own": common_and_own}[model](range(2), 2)
    found = []
    for unit in (1.0, factor):
        data = Data(s, X, np.where(s == 1, unit * (y + 3.0), y), np.zeros(21))
        density = LogPosterior(prior, measure, data, [0.0, 0.0])
        found.append(density.log_posterior_and_grad(some_theta(density, 1, 3)))
        assert density.units.spreads[1] == pytest.approx(unit * density.units.spreads[0], rel=1e-12)
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-8)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-6, atol=1e-7)


def test_order_of_sources_and_data_does_not_matter():
    """θ is permuted with the sources, and so are the draws of it."""
    measure, order = amsbq.Uniform(0, 1), [0, 2, 1]
    data = data_of(measure, 3, 12, 5)
    shuffled = np.random.default_rng(6).permutation(12)
    permuted = Data(np.argsort(order)[data.s][shuffled], data.X[shuffled], data.y[shuffled], data.noise_var[shuffled])
    plain, changed = (LogPosterior(lmc(range(3), measure.dim), measure, d, [1e-3] * 3) for d in (data, permuted))

    def covariances(density, theta):
        return density.layout.decode(theta[None], np.ones((1, 3))).B()[0]

    for theta, other in zip(plain.prior_draws(8, 0), changed.prior_draws(8, 0), strict=True):
        moved = covariances(plain, theta)[:, order][:, :, order]
        np.testing.assert_allclose(moved, covariances(changed, other), rtol=1e-12)
        np.testing.assert_allclose(
            changed.log_posterior_and_grad(other[None])[0], plain.log_posterior_and_grad(theta[None])[0], rtol=1e-9
        )


def test_prior_draws_follow_the_prior():
    measure = MEASURES["uniform"]
    density = LogPosterior(common_and_own(range(2), measure.dim), measure, data_of(measure, 2, 6, 0), [0.0, "learn"])
    draws = density.prior_draws(1024, 0)
    parts = [parts_of_default(density, theta) for theta in draws]
    amplitudes, gain, _, own, slow, noise = (np.array(part) for part in zip(*parts, strict=True))
    for column, distribution in (
        (amplitudes[:, 1], stats.t(4, scale=0.7)),
        (gain, stats.norm(0, 2)),
        (own[:, 0], stats.norm(-3, 1.5)),
        (np.exp(slow[:, 1]), stats.gamma(3, scale=0.35 * 2**0.5)),
        (noise[:, 0], stats.norm(np.log(1e-4), 3)),
    ):
        assert stats.kstest(column, distribution.cdf).statistic < 0.01


@pytest.mark.parametrize("model", PRIORS)
def test_integrals_are_those_of_the_models_in_user_units(model):
    measure = MEASURES["uniform"]
    data = data_of(measure, 2, 9, 4)
    density = LogPosterior(PRIORS[model](range(2), measure.dim), measure, data, [1e-3, 1e-2])
    Theta = some_theta(density, 2)
    units, models, structures = density.units, density.models(Theta), np.zeros(2, dtype=int)
    particles = Particles(models, np.full(2, 0.5), structures, units, [1e-3, 1e-2], [0, 1])
    posteriors = PosteriorBatch.condition(models, units.standardise(data), LEARNING_JITTER)
    latent = Latent.of(Process(particles, data, np.arange(2), particles.weights, posteriors))
    level, spread = units.levels[0], units.spreads[0]
    for theta, mean, std in zip(Theta, *latent.integral(), strict=True):
        posterior = in_user_units(density, theta).condition(data.s, data.X, data.y, data.noise_var)
        np.testing.assert_allclose(level + spread * mean, posterior.integral()[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(spread * std, posterior.integral()[1] ** 0.5, rtol=1e-5)


def test_posteriors_have_the_jitter_of_learning():
    measure = MEASURES["uniform"]
    density = LogPosterior(common_and_own(range(2), measure.dim), measure, data_of(measure, 2, 9, 4), [0.0, 0.0])
    assert density.condition(density.layout.centre()[None]).jitter == [LEARNING_JITTER]


ORDER = (0, 2, 1)  # of fidelity


def covariances(structure, t=None):
    """B of each term of three sources, for θ at the centre of the prior, or with factors t added to it."""
    measure = MEASURES["uniform"]
    density = LogPosterior(structure(ORDER, 2), measure, data_of(measure, 3, 9, 4), [0.0] * 3)
    theta = density.layout.centre()
    if t is not None:
        theta[-len(t) :] += t
    return density.models(theta[None]).groups[0].B[0]


def test_a_chain_is_a_sequence_of_multiples_and_differences():
    """Built source by source by Kennedy and O'Hagan's recursion, f_l = ρ_l f_(l+1) + δ_l, from the coarsest one."""
    amplitude, gain, *rho, difference, refinement, step = t = np.array([0.2, 0.3, -0.1, 0.4, 0.5, -0.3, 0.2])
    loading = np.zeros((4, 3))  # of each term in each source: two shared processes, and the differences
    fast = np.exp(amplitude)
    coarse = fast**2 * np.exp(-2.0 + difference)  # its variance
    loading[:2, 1] = fast, fast * np.exp(gain / 2)
    loading[:, 2] = np.exp(rho[1]) * loading[:, 1]
    loading[2, 2] = np.sqrt(coarse)
    loading[:, 0] = np.exp(rho[0]) * loading[:, 2]
    loading[3, 0] = np.sqrt(coarse * np.exp(-2.0 + refinement + step))
    expected = np.einsum("ql,qm->qlm", loading, loading)
    np.testing.assert_allclose(covariances(chain, t), expected, rtol=1e-12)


def test_a_star_is_the_primary_source_and_differences():
    B = covariances(star)
    np.testing.assert_allclose(B[:2], np.ones((2, 3, 3)), rtol=1e-12)
    for q, source in ((2, ORDER[1]), (3, ORDER[2])):
        np.testing.assert_allclose(B[q], np.exp(-2.0) * np.diag(np.arange(3) == source), rtol=1e-12)
    amplitude, gain, *others = t = np.array([0.2, 0.3, -0.4, 0.5, 0.7, -0.6])  # others: ρ and the difference of each
    multiples = np.ones(3)
    multiples[list(ORDER[1:])] = np.exp(others[::2])
    expected = np.exp(2 * amplitude) * np.multiply.outer([1, np.exp(gain)], np.outer(multiples, multiples))
    B = covariances(star, t)
    np.testing.assert_allclose(B[:2], expected, rtol=1e-12)
    for q, source, log_variance in zip((2, 3), ORDER[1:], others[1::2], strict=True):
        own = np.exp(2 * amplitude - 2.0 + log_variance)
        np.testing.assert_allclose(B[q], own * np.diag(np.arange(3) == source), rtol=1e-12)


def test_the_error_of_a_discretisation_shrinks_from_level_to_level():
    sizes = np.exp(0.5 * (-2.0 - 2.0 * np.array([2, 0, 1])))  # of sources 0, 1, 2: the middle one is the coarsest
    expected = np.outer(sizes, sizes) + np.exp(-4.0) * np.diag(sizes**2)
    np.testing.assert_allclose(covariances(richardson)[2], expected, rtol=1e-12)


def test_differences_have_one_set_of_lengthscales():
    measure = MEASURES["uniform"]
    for structure in (chain, star):
        density = LogPosterior(structure(range(4), 2), measure, data_of(measure, 4, 9, 4), [0.0] * 4)
        scales = density.models(some_theta(density, 1)).groups[0].scales[0]
        assert (scales[2:] == scales[2]).all()
        assert len(np.unique(scales)) == 3 * measure.dim


def test_every_model_by_name_is_one():
    measure = MEASURES["uniform"]
    for model in MODELS.values():
        for L in (1, 2, 4):
            for structure in model.structures(range(L), measure.dim):
                density = LogPosterior(structure, measure, data_of(measure, L, 9, 4), [0.0] * L)
                assert np.isfinite(density.log_posterior_and_grad(density.layout.centre()[None])[0])


def test_width_is_equivariant_and_that_of_a_box():
    assert amsbq.Uniform([0, 1], [2, 5]).width.tolist() == [2, 4]
    for measure, distribution in (
        (amsbq.Gaussian(1, 4), stats.norm(1, 2)),
        (amsbq.Product([stats.gamma(3)]), stats.gamma(3)),
    ):
        np.testing.assert_allclose(measure.width, 2 * (distribution.ppf(0.75) - distribution.ppf(0.25)))
    samples = np.random.default_rng(0).normal(size=(20_001, 1))
    np.testing.assert_allclose(amsbq.Empirical(samples).width, amsbq.Gaussian(0, 1).width, rtol=0.05)
    weights = np.random.default_rng(1).integers(1, 4, size=50)
    repeated = np.repeat(samples[:50], weights, axis=0)
    np.testing.assert_allclose(amsbq.Empirical(samples[:50], weights).width, amsbq.Empirical(repeated).width, rtol=0.2)
    assert amsbq.Empirical([[1.0], [1.0]]).width.tolist() == [1]


def test_a_swap_lets_the_primary_source_be_the_one_that_differs():
    measure = MEASURES["uniform"]
    density = LogPosterior(common_and_own(range(3), measure.dim), measure, data_of(measure, 3, 12, 0), [0.0] * 3)
    theta = np.linspace(0, 1, density.layout.size)
    for source, other in enumerate(density.layout.swapped_with_primary(theta), 1):
        changed = np.flatnonzero(theta != other)
        assert sorted(theta[changed]) == sorted(other[changed])
        assert len(changed) == 4  # η of two sources in two terms
        own, swapped = (parts_of_default(density, t)[3] for t in (theta, other))
        np.testing.assert_allclose(own[[0, source]], swapped[[source, 0]], rtol=1e-12)
        assert own[0] != own[source]
