"""What is said of an integral: the distribution itself, its equivariances, its honesty, and bad input."""

import numpy as np
import pytest
from scipy import integrate, stats

import amsbq
from amsbq import Estimate
from amsbq.common.serialisation import from_json, to_json
from amsbq.inference.structures import MODELS

UNIT = amsbq.Uniform(0, 1)


def mixture(dof):
    rng = np.random.default_rng(0)
    m, s, p = rng.normal(size=5), rng.uniform(0.1, 1, size=5), rng.uniform(size=5)
    components = [
        stats.t(dof, loc=a, scale=b) if np.isfinite(dof) else stats.norm(a, b) for a, b in zip(m, s, strict=True)
    ]
    return Estimate(m, s, p, dof), components, p / p.sum()


@pytest.mark.parametrize("estimate", [Estimate.unknown(), Estimate([2.5]), mixture(3.0)[0]], ids=["", "mean", "all"])
def test_estimates_are_stored_as_they_are(estimate):
    again = Estimate.from_dict(from_json(to_json(estimate.to_dict())))
    assert repr(again) == repr(estimate)
    for numbers in ("mean", "std", "centres", "scales", "weights", "dof", "effective_draws"):
        np.testing.assert_array_equal(getattr(again, numbers), getattr(estimate, numbers))


def test_an_estimate_before_any_observation():
    nothing = Estimate.unknown()
    numbers = [nothing.mean, nothing.std, *nothing.interval(), nothing.cdf(0.0), nothing.log_density(0.0)]
    assert np.isnan(numbers).all()


@pytest.mark.parametrize("dof", [3.0, 7.5, np.inf])
def test_mixture_against_scipy(dof):
    estimate, components, weights = mixture(dof)
    mean = weights @ [c.mean() for c in components]
    second = weights @ [c.var() + c.mean() ** 2 for c in components]
    np.testing.assert_allclose([estimate.mean, estimate.std], [mean, np.sqrt(second - mean**2)], rtol=1e-12)
    for z in (-3.0, 0.1, 2.0):
        np.testing.assert_allclose(estimate.cdf(z), weights @ [c.cdf(z) for c in components], rtol=1e-12)
        np.testing.assert_allclose(
            estimate.log_density(z), np.log(weights @ [c.pdf(z) for c in components]), rtol=1e-12
        )
    for p in (1e-6, 0.025, 0.5, 0.8, 0.999):
        np.testing.assert_allclose(estimate.cdf(estimate.quantile(p)), p, rtol=1e-9)
    low, high = estimate.interval(0.8)
    np.testing.assert_allclose(estimate.cdf(high) - estimate.cdf(low), 0.8, rtol=1e-9)
    total = integrate.quad(lambda z: np.exp(estimate.log_density(z)), low, high, epsabs=1e-12)[0]
    np.testing.assert_allclose(total, 0.8, rtol=1e-8)


def test_one_gaussian_is_one():
    estimate = Estimate([2.0], [0.5])
    assert (estimate.mean, estimate.std) == (2.0, 0.5)
    np.testing.assert_allclose(estimate.interval(0.95), stats.norm(2, 0.5).interval(0.95), rtol=1e-12)


def test_a_certain_estimate_has_a_point_for_an_interval():
    estimate = Estimate([2.0, 2.0], [0.0, 0.0])
    assert estimate.interval() == (2.0, 2.0)
    assert "2.0" in repr(estimate)


@pytest.mark.parametrize("bad", [0, 1, -0.1, 1.5, 95])
def test_probabilities_are_between_0_and_1(bad):
    with pytest.raises(ValueError, match="between 0 and 1"):
        Estimate([0.0], [1.0]).interval(bad)
    with pytest.raises(ValueError, match="between 0 and 1"):
        Estimate([0.0], [1.0]).quantile(bad)


def two_sources(n=4, m=16, seed=0, D=1):
    """f_0 = sin(5 Σx) and a stand-in that is off by a factor and a trend; inputs, source numbers, outputs."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, D))
    X2 = np.concatenate([X, rng.uniform(size=(m, D))])
    f = np.sin(5 * X.sum(axis=1))
    g = 0.8 * np.sin(5 * X2.sum(axis=1)) + X2[:, 0] - 0.3
    return np.repeat([0, 1], [n, n + m]), np.concatenate([X, X2]), np.append(f, g)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_by_name(model):
    answer = amsbq.estimate(*two_sources(6, 20), UNIT, model=model)
    low, high = answer.interval(0.999)
    assert low < (1 - np.cos(5)) / 5 < high
    assert answer.std < 0.5
    assert (answer.effective_draws > 10) == MODELS[model].marginalised


def test_default_exploits_a_good_secondary():
    truth, errors = (1 - np.cos(5)) / 5, {"auto": [], "vbq": []}
    for seed in range(5):
        for model, found in errors.items():
            found.append(abs(amsbq.estimate(*two_sources(4, 20, seed), UNIT, model=model).mean - truth))
    assert np.median(errors["auto"]) < 0.02
    assert np.median(errors["auto"]) < 0.2 * np.median(errors["vbq"])


def test_vbq_is_blind_to_secondaries():
    s, X, y = two_sources()
    alone = amsbq.estimate(0, X[s == 0], y[s == 0], UNIT, model="vbq")
    assert amsbq.estimate(s, X, y, UNIT, model="vbq").interval() == alone.interval()


def test_fixed_hyperparameters_are_taken_as_they_are():
    gp = amsbq.MultiSourceGP([amsbq.Term([[1, 0.9], [0.9, 1]], amsbq.RBF(0.3))], UNIT, noise=1e-4)
    s, X, y = two_sources()
    mean, variance = gp.condition(s, X, y).integral()
    answer = amsbq.estimate(s, X, y, UNIT, model=gp)
    np.testing.assert_allclose([answer.mean, answer.std], [mean, np.sqrt(variance)], rtol=1e-10)


def test_data_must_fit_a_model_of_ones_own():
    gp = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF(0.3))], UNIT)
    with pytest.raises(ValueError, match="there is no source 1"):
        amsbq.estimate([0, 1], [0.1, 0.2], [1, 2], UNIT, model=gp)
    for measure, X in ((amsbq.Uniform(0, 2), [0.1, 1.5]), (amsbq.Uniform([0, 0], 1), [[0.1, 0.2], [0.3, 0.4]])):
        with pytest.raises(ValueError, match="the model is for"):
            amsbq.estimate([0, 0], X, [1, 2], measure, model=gp)


@pytest.mark.parametrize("model", ["auto", "icm", "lmc"])
def test_units_do_not_matter(model):
    s, X, y = two_sources()
    plain = amsbq.estimate(s, X, y, UNIT, model=model)
    a, b = -3e4, 7e3
    changed = amsbq.estimate(s, 40 - 5 * X, a * y + b, amsbq.Uniform(35, 40), model=model)
    # noise-free likelihoods amplify rounding: not to the last digit, but to a small part of the error bar
    np.testing.assert_allclose(changed.mean, a * plain.mean + b, rtol=0, atol=0.005 * abs(a) * plain.std)
    np.testing.assert_allclose(changed.std, abs(a) * plain.std, rtol=0.01)


def test_order_of_data_and_of_secondaries_does_not_matter():
    rng = np.random.default_rng(4)
    s, X, y = two_sources(5, 16)
    s[s == 1] = np.where(rng.uniform(size=21) < 0.4, 2, 1)
    plain = amsbq.estimate(s, X, y, UNIT)
    shuffled = rng.permutation(len(s))
    changed = amsbq.estimate(np.array([0, 2, 1])[s][shuffled], X[shuffled], y[shuffled], UNIT)
    np.testing.assert_allclose(changed.mean, plain.mean, rtol=0, atol=0.1 * plain.std)
    np.testing.assert_allclose(changed.std, plain.std, rtol=0.1)


@pytest.mark.parametrize(
    "inputs",
    [
        [(0.0, 1.0)] * 3,
        [stats.norm(), stats.uniform(0, 2), stats.gamma(3.0)],
        amsbq.Gaussian([0.0, 1.0, 2.0], [[1.0, 0.3, 0.1], [0.3, 2.0, 0.0], [0.1, 0.0, 0.5]]),
        [stats.randint(0, 4), (0.0, 1.0), (0.0, 2.0)],
    ],
    ids=["uniform", "independent", "correlated", "discrete"],
)
def test_the_order_of_the_inputs_does_not_matter(inputs):
    """Random numbers go with the inputs, not with their places."""
    measure, order = amsbq.as_measure(inputs), [2, 0, 1]
    other = (
        amsbq.Gaussian(measure.mean[order], measure.cov[np.ix_(order, order)])
        if isinstance(measure, amsbq.Gaussian)
        else [inputs[i] for i in order]
    )
    s, X = np.arange(14) % 2, measure.sample(14, np.random.default_rng(7))
    y = np.sin(X[:, 0] + 0.3 * s) + X[:, 1] * np.cos(X[:, 2]) + 0.1 * s * X[:, 2]
    plain, changed = amsbq.estimate(s, X, y, inputs), amsbq.estimate(s, X[:, order], y, other)
    assert abs(changed.mean - plain.mean) < 1e-3 * plain.std
    assert changed.std == pytest.approx(plain.std, rel=1e-3)


def test_noise_given_and_learned():
    rng = np.random.default_rng(5)
    x = rng.uniform(size=60)
    y = np.sin(5 * x) + 0.1 * rng.normal(size=60)
    for noise, noise_var in ((0.01, None), ("learn", None), (0.0, np.full(60, 0.01))):
        answer = amsbq.estimate(0, x, y, UNIT, noise=noise, noise_var=noise_var)
        low, high = answer.interval(0.99)
        assert low < (1 - np.cos(5)) / 5 < high
        assert 0.005 < answer.std < 0.05


ADVERSARIAL = {
    "constant": ([0, 0, 0, 1, 1, 1], np.linspace(0, 1, 6), np.ones(6)),
    "all zero": ([0, 0, 1], [0.1, 0.5, 0.9], np.zeros(3)),
    "two observations": ([0, 1], [0.3, 0.3], [1.0, 2.0]),
    "one observation": ([1], [0.3], [1.0]),
    "none": ([], [], []),
    "one source only": ([1] * 5, np.linspace(0, 1, 5), [1, 2, 1, 3, 1]),
    "outlier": ([0] * 6, np.linspace(0, 1, 6), [1, 2, 1, 2, 1, 1e6]),
    "outlier of a secondary": ([0] * 3 + [1] * 3, np.tile([0.1, 0.5, 0.9], 2), [1, 2, 1, 1, 2, 1e6]),
    "contradiction": ([0, 0, 0, 1, 1], [0.5, 0.5, 0.2, 0.5, 0.5], [1, 2, 3, 1, 5]),
    "tiny": ([0, 0, 0, 1], [0.1, 0.5, 0.9, 0.2], [1e-200, 2e-200, 1e-200, 0]),
    "huge": ([0, 0, 0, 1], [0.1, 0.5, 0.9, 0.2], [1e150, 2e150, 1e150, 0]),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("noise", [0.0, "learn"])
@pytest.mark.parametrize("name", ADVERSARIAL)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_adversarial_data_have_a_sensible_answer(name, model, noise):
    """A finite mean near the values, and an error bar that is neither nothing nor far wider than they are apart."""
    s, x, y = np.array(ADVERSARIAL[name][0], int), *(np.array(part, float) for part in ADVERSARIAL[name][1:])
    answer = amsbq.estimate(s, x[:, None], y, UNIT, model=model, noise=noise)
    low, high = answer.interval()
    assert np.isfinite([answer.mean, answer.std, low, high]).all()
    assert low < answer.mean < high
    of_all, of_primary = spread(y), spread(y[s == 0]) if (s == 0).any() else spread(y)
    assert abs(answer.mean - (np.median(y) if len(y) else 0.0)) <= of_all
    # The paper's model, with its most probable hyperparameters, is surer of itself than six values justify.
    least = 0.02 if MODELS[model].marginalised else 1e-3
    assert least * min(of_all, of_primary) < answer.std < 25 * of_all


def spread(values):
    """How far apart values are; where they are all one value, its size, and one where that is zero."""
    return np.ptp(values) or np.abs(values).max() or 1.0 if len(values) else 1.0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("constant", "they do not show how much it varies"),
        ("contradiction", "different values at the same input"),
        ("one source only", "no observation of source 0"),
    ],
)
def test_data_that_make_no_sense_get_a_warning(name, message):
    s, x, y = ADVERSARIAL[name]
    with pytest.warns(UserWarning, match=message):
        amsbq.estimate(s, x, y, UNIT)


@pytest.mark.filterwarnings("ignore:all 5 observations")
def test_the_guess_for_equal_values_is_by_the_spread_of_other_sources_or_else_by_their_size():
    x = np.linspace(0, 1, 5)
    alone = [amsbq.estimate([0] * 5, x, np.full(5, value), UNIT).std for value in (3.0, 30.0)]
    assert alone[1] == pytest.approx(10 * alone[0])
    beside = [
        amsbq.estimate([0] * 5 + [1] * 5, [*x, *x], [*np.full(5, value), *(100 + x)], UNIT).std for value in (3.0, 30.0)
    ]
    assert beside[1] == pytest.approx(beside[0], rel=0.01)


def test_repeated_values_are_no_contradiction(recwarn):
    amsbq.estimate([0, 0, 0], [0.5, 0.5, 0.2], [1.0, 1.0, 3.0], UNIT)
    amsbq.estimate([0, 0, 0], [0.5, 0.5, 0.2], [1.0, 2.0, 3.0], UNIT, noise=0.1)
    assert not [w for w in recwarn if "same input" in str(w.message)]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"model": "gp"}, ValueError, "model must be one of 'auto'"),
        ({"noise": "unknown"}, ValueError, "variance or 'learn'"),
        ({"noise": -1.0}, ValueError, "negative"),
        ({"noise": [0.0]}, ValueError, "2 sources"),
        ({"noise_var": [1.0]}, ValueError, "noise_var"),
        ({"seed": -1}, ValueError, "seed"),
        ({"seed": 0.5}, TypeError, "seed"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        amsbq.estimate(*two_sources(), UNIT, **arguments)


@pytest.mark.parametrize("unit", [1e-165, 1e152, 1e160])
@pytest.mark.parametrize("n_secondary", [0, 9])
@pytest.mark.filterwarnings("ignore:all 3 observations")
def test_the_guess_for_a_constant_source_has_the_size_of_the_values(unit, n_secondary):
    x = np.append([0.1, 0.55, 0.9], np.linspace(0, 1, n_secondary))[:, None]
    y = np.append(np.full(3, 1.1), np.sin(5 * x[3:, 0]))
    usual, other = (
        amsbq.estimate([0] * 3 + [1] * n_secondary, x, scale * y, amsbq.Uniform(0, 1)) for scale in (1.0, unit)
    )
    np.testing.assert_allclose([other.mean / unit, other.std / unit], [usual.mean, usual.std], rtol=1e-6)
