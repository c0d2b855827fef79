"""Skewed values, which the default models as exponentials by itself."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad

import amsbq
from amsbq.gp.data import Data
from amsbq.posterior.channel import Channel
from amsbq.posterior.distribution import OutputDistribution
from amsbq.posterior.sensitivity import Sensitivity
from amsbq.posterior.transforms import OutputRange, Shape, Transform

SQUARE = amsbq.Uniform([0, 0], 1)


def skewed(x):
    return float(np.exp(3 * x[0] + 2 * np.sin(2 * x[1])))


def cheap(x):
    return float(1.1 * np.exp(2.8 * x[0] + 2 * np.sin(2 * x[1])) + 0.3)


TRUTH = (np.exp(3) - 1) / 3 * quad(lambda t: np.exp(2 * np.sin(2 * t)), 0, 1)[0]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    journal = tmp_path_factory.mktemp("skewed") / "run.jsonl"
    return amsbq.integrate([skewed, amsbq.Source(cheap, cost=0.1)], SQUARE, budget=8, journal=journal, seed=0), journal


def observations(result):
    evaluations = result.evaluations
    return (
        [e.source for e in evaluations],
        np.array([e.x for e in evaluations]),
        np.array([e.value for e in evaluations]),
    )


@pytest.mark.slow
def test_skewed_values_are_recognised_and_said(run):
    result, _ = run
    most = result.integrator.learner.posterior.components[0]
    assert not most.transform.affine
    assert most.weight > 0.9  # exponentials predict so much better that hardly anything else counts
    assert "is modelled as an exponential: leave-one-out predictions are better" in str(result.diagnose())
    low, high = result.interval(0.95)
    assert low < TRUTH < high
    s, X, y = observations(result)
    plain = amsbq.estimate(s, X, y, SQUARE, model="ar")  # a structure of the default, without exponentials
    assert result.std < 0.5 * plain.std
    assert abs(result.mean - TRUTH) < 0.01 * np.std(y)


@pytest.fixture(scope="module")
def both():
    """A run whose values exponentials predict only somewhat better, and observations of it that have not come yet."""
    X = SQUARE.sobol(28, 1)
    y = np.exp(3 * X[:, 0]) * (1.2 + np.sin(5 * X[:, 1]))
    it = amsbq.Integrator([amsbq.Source()], SQUARE, seed=0)
    for x, value in zip(X[:14], y[:14], strict=True):
        it.observe(0, x, value)
    return it, X[14:], y[14:]


def test_the_answer_is_the_average_of_both_models(both):
    it, _, _ = both
    posterior, result = it.learner.posterior, it.result()
    ranged, plain = posterior.components
    assert (ranged.transform.affine, plain.transform.affine) == (False, True)
    share = ranged.weight
    assert 0.5 < share < 0.98
    assert plain.weight == pytest.approx(1 - share, rel=1e-12)
    assert f"as an exponential, with a weight of {100 * share:.0f} %" in str(result.diagnose())
    parts = ranged.integral, plain.integral
    for z in np.linspace(result.mean - 1, result.mean + 1, 7):
        of_both = share * parts[0].cdf(z) + (1 - share) * parts[1].cdf(z)
        assert result.estimate.cdf(z) == pytest.approx(of_both, abs=1e-12)
    X, t = SQUARE.sobol(5, 7), np.array([0.2, 0.7])
    for of in (lambda b: b.predict(0, X), lambda b: b.main_effect(0, 1, t[:, None])):
        (m, s), (n, r), (mean, std) = (of(b) for b in (ranged, plain, posterior))
        np.testing.assert_allclose(mean, share * m + (1 - share) * n, rtol=1e-12)
        second = share * (s**2 + m**2) + (1 - share) * (r**2 + n**2)
        np.testing.assert_allclose(std**2, second - mean**2, rtol=1e-6)
    other = amsbq.Uniform([0, 0.5], [0.5, 1])
    apart = [component.under(other).mean for component in (ranged, plain)]
    assert result.under(other).mean == pytest.approx(share * apart[0] + (1 - share) * apart[1], rel=1e-12)
    apart = [component.given([1], t[:, None])[0].mean for component in (ranged, plain)]
    assert result.given(x1=0.2).mean == pytest.approx(share * apart[0] + (1 - share) * apart[1], rel=1e-12)


def quantities(posterior, output):
    indices = Sensitivity.of(posterior, {"a": [0], "b": [1]})
    single = [output.variance(), output.std(), output.quantile(0.9), output.probability(above=1.0, below=3.0)]
    return [*single, *output.cdf([1.0, 3.0]), *output.density([1.0, 3.0]), *indices.first, *indices.total]


def alone(posterior, number):
    """What one of the models says, if the other does not count."""
    (channel,) = posterior.channels
    return replace(posterior, channels=(Channel((replace(channel.alternatives[number], weight=1.0),)),))


@pytest.mark.slow
def test_all_quantities_are_averages(both):
    posterior = both[0].learner.posterior
    share, posteriors = posterior.components[0].weight, [posterior, alone(posterior, 0), alone(posterior, 1)]
    outputs = [OutputDistribution(each) for each in posteriors]
    for found, by_range, plain in zip(*map(quantities, posteriors, outputs), strict=True):
        assert found.mean == pytest.approx(share * by_range.mean + (1 - share) * plain.mean, rel=1e-12)
        for z in np.linspace(*found.interval(0.9), 5):
            of_both = share * by_range.cdf(z) + (1 - share) * plain.cdf(z)
            assert found.cdf(z) == pytest.approx(of_both, abs=1e-9)
    end = posterior.components[0].transform.range.low  # which is only assumed, and no certainty
    assert outputs[1].probability(below=end).interval() == (0.0, 0.0)
    assert outputs[0].probability(below=end).mean > 0


def test_more_observations_extend_both_models(both):
    it, X, y = both
    before = it.learner.posterior
    (channel,) = before.channels
    new = Data.checked(SQUARE, 1, [0], X[:1], y[:1], None, None)
    extended = channel.extend(it.learner.data.followed_by(new))
    after = replace(before, channels=(extended,))
    assert len(extended.alternatives) == 2
    for alternative in extended.alternatives:
        assert len(alternative.process.data.y) == len(alternative.process.posteriors.data.y) == 15
    assert after.predict(0, X[:1])[1] < 0.1 * before.predict(0, X[:1])[1]
    assert after.predict(0, X[:1])[0] == pytest.approx(y[0], rel=1e-3)
    kept = [[(each.weight, each.transform) for each in of.alternatives] for of in (extended, channel)]
    assert kept[0] == kept[1]


def test_what_was_learned_is_remembered(both):
    it, _, _ = both
    it.estimate()  # whichever test comes first
    again = amsbq.Integrator([amsbq.Source()], SQUARE, seed=0)
    for e in it.evaluations:
        again.observe(0, e.x, e.value)
    again.learner.restore(json.loads(json.dumps(it.learner.fitted())))
    assert len(again.learner.posterior.components) == 2
    assert (again.estimate().mean, again.estimate().std) == (it.estimate().mean, it.estimate().std)


def test_many_outputs_have_the_error_bars_of_each(both):
    """Principal components, of which these have one, are taken as they are."""
    it, _, _ = both
    names = [f"o{k}" for k in range(20)]
    many = amsbq.Integrator([amsbq.Source()], SQUARE, seed=0, outputs=names)
    for e in it.evaluations:
        many.observe(0, e.x, [(1 + k / 30) * e.value for k in range(20)])
    assert [component.transform.affine for component in many.learner.posterior[0].components] == [True]
    plain = it.learner.posterior.components[1].integral
    assert many.estimate().std[0] == pytest.approx(plain.std, rel=0.1)


def test_a_resumed_run_and_the_same_data_give_the_same_answer(run):
    result, journal = run
    again = amsbq.integrate([skewed, amsbq.Source(cheap, cost=0.1)], SQUARE, budget=8, journal=journal, seed=0)
    assert (again.mean, again.std) == (result.mean, result.std)
    it = amsbq.Integrator([amsbq.Source(), amsbq.Source(cost=0.1)], SQUARE)
    for s, x, y in zip(*observations(result), strict=True):
        it.observe(s, x, y)
    other = it.estimate()  # of draws that are made anew
    assert abs(other.mean - result.mean) < max(other.std, result.std)


@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (-3.0, 100.0), (1.0, -1e4)])
def test_units_do_not_matter(run, scale, shift):
    s, X, y = observations(run[0])
    found, other = (amsbq.estimate(s, X, values, SQUARE) for values in (y, scale * y + shift))
    assert other.mean == pytest.approx(scale * found.mean + shift, abs=1e-5 * abs(scale) * found.std)
    assert other.std == pytest.approx(abs(scale) * found.std, rel=1e-5)


def test_several_outputs_are_recognised_each_for_itself(run):
    s, X, y = observations(run[0])
    smooth = np.sin(X.sum(axis=1))
    both = amsbq.estimate(s, X, np.column_stack([y, smooth]), SQUARE, outputs=["skewed", "smooth"])
    assert both["skewed"].mean == amsbq.estimate(s, X, y, SQUARE).mean
    assert both["smooth"].mean == amsbq.estimate(s, X, smooth, SQUARE).mean
    result = amsbq.integrate(
        lambda x: [skewed(x), np.sin(x.sum())], SQUARE, outputs=["skewed", "smooth"], budget=10, seed=3
    )
    posterior = result.integrator.learner.posterior
    assert not posterior[0].components[0].transform.affine
    assert [component.transform.affine for component in posterior[1].components] == [True]
    assert abs(result["skewed"].mean - TRUTH) < 3 * result["skewed"].std


@pytest.mark.parametrize(
    "values",
    [
        lambda X: np.sin(3 * X[:, 0]) + X[:, 1],
        lambda X: X.sum(axis=1) ** 2,
        lambda X: np.random.default_rng(0).normal(size=len(X)),
        lambda X: np.where(X[:, 0] < 0.5, 0.0, 1.0),
    ],
    ids=["smooth", "quadratic", "noise", "step"],
)
def test_other_values_are_taken_as_they_are(values):
    X = SQUARE.sobol(16, 1)
    it = amsbq.Integrator([amsbq.Source()], SQUARE)
    for x, y in zip(X, values(X), strict=True):
        it.observe(0, x, y)
    it.estimate()
    assert [component.transform.affine for component in it.learner.posterior.components] == [True]


def test_only_the_default_does_so_and_only_without_noise(run):
    s, X, y = observations(run[0])
    for options in ({"model": "ar"}, {"noise": "learn"}, {"noise": 1e-6}):
        it = amsbq.Integrator(
            [amsbq.Source(noise=options.get("noise", 0.0)), amsbq.Source(cost=0.1)],
            SQUARE,
            model=options.get("model", "auto"),
        )
        for source, x, value in zip(s, X, y, strict=True):
            it.observe(source, x, value)
        it.estimate()
        assert [component.transform.affine for component in it.learner.posterior.components] == [True]


@pytest.mark.parametrize("known", [OutputRange(-0.3, np.inf, assumed=True), OutputRange(-np.inf, 9.0, assumed=True)])
def test_the_slope_of_the_transform(known):
    y, h = np.array([0.2, 1.0, 4.0, 7.5]), 1e-6
    transform = Transform.of(Shape("log", 20.0), known, y)
    slopes = np.abs(transform.to(y + h) - transform.to(y - h)) / (2 * h)
    np.testing.assert_allclose(np.log(np.abs(transform.slopes_at(y))), np.log(slopes), atol=1e-8)
    assert Transform.from_dict(None, transform.to_dict()) == transform


def test_a_value_outside_of_the_assumed_range_is_learned_from_at_once():
    X = SQUARE.sobol(28, 3)
    it = amsbq.Integrator([amsbq.Source()], SQUARE, seed=0)
    for x in X[:27]:  # so many that not every value is followed by a refit
        it.observe(0, x, float(np.exp(6 * np.sin(3 * x[0]) * x[1])))
    transform = it.learner.posterior.components[0].transform
    assert not transform.affine
    assert transform.range.assumed
    below = transform.range.low - 40
    it.observe(0, X[27], below)
    y = [e.value for e in it.evaluations]
    again = amsbq.estimate(0, X, y, SQUARE)
    assert (it.estimate().mean, it.estimate().std) == pytest.approx((again.mean, again.std), rel=1e-6)
    assert it.predict(0, X[27:])[0] == pytest.approx([below], abs=0.01 * np.ptp(y))


@pytest.mark.parametrize("constant", [2.0, 0.1])
@pytest.mark.parametrize("unit", [1e-3, 1e6])
def test_a_constant_source_has_no_say_in_it(constant, unit):
    x = np.append(np.linspace(0.07, 0.95, 4), np.linspace(0.03, 0.98, 6))[:, None]
    y = np.append(np.sin(5 * x[:4, 0]), np.full(6, constant))
    answers = [amsbq.estimate([0] * 4 + [1] * 6, x, scale * y, amsbq.Uniform(0, 1)) for scale in (1, unit)]
    np.testing.assert_allclose(answers[1].mean / unit, answers[0].mean, rtol=1e-6)
    np.testing.assert_allclose(answers[1].std / unit, answers[0].std, rtol=1e-6)
