"""Measures survive `to_dict`, JSON and `measure_from_dict` to the last bit, or say why they cannot."""

import json
from copy import deepcopy

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.measures.adapters import CLASSES, measure_from_dict
from amsbq.measures.base import MarginalMeasure, Measure
from amsbq.measures.distributions import describe, distribution_to_dict, is_named

rng = np.random.default_rng(0)

MEASURES = [
    amsbq.Uniform([0, -1 / 3], [0.1, 3]),
    amsbq.Gaussian(0.1, 1 / 3),
    amsbq.Gaussian([1, 2 / 3], [0.1, 4]),
    amsbq.Gaussian([1, 2 / 3], [[1.1, 0.7], [0.7, 2 / 3]]),
    amsbq.Product([stats.gamma(5, 1, scale=1 / 3), stats.norm(), stats.uniform(loc=-0.1, scale=0.3)]),
    amsbq.Product([stats.truncnorm(-np.inf, 0.7), stats.beta(b=0.4, a=0.6)]),
    amsbq.Product([stats.lognorm(s=np.float64(0.3), scale=np.int64(2)), stats.triang(0.3, 1)]),
    amsbq.Empirical(rng.normal(size=(40, 2))),
    amsbq.Empirical(rng.normal(size=(37, 2)), rng.gamma(0.3, size=37)),
    amsbq.Empirical([0.1, 0.2, 0.7]),
    amsbq.Product([stats.poisson(1 / 3), {0.1: 0.3, -2: 0.7}, {"on": 1 / 3, "off": 2 / 3}]),
    amsbq.GaussianCopula([stats.gamma(5, 1, scale=1 / 3), stats.uniform(0, 1)], [[1, 0.7], [0.7, 1]]),
    amsbq.GaussianCopula([stats.norm(), stats.norm()], [[1, 1], [1, 1]]),
    amsbq.GaussianCopula.fit(rng.gamma(2, size=(90, 2)) + rng.gamma(1, size=(90, 1))),
    amsbq.Transformed(amsbq.Uniform(0, [1, 2]), np.cumsum),
    amsbq.Independent([amsbq.Gaussian([0, 1], [[1, 0.5], [0.5, 1]]), amsbq.Product([{2: 0.3, 5: 0.7}])], [[2, 0], [1]]),
    amsbq.Mixture([amsbq.Gaussian([0, 1], 1 / 3), amsbq.Empirical(rng.normal(size=(9, 2)))], [0.1, 0.9]),
]


class Bell(stats.rv_continuous):
    """A density of a user: a Student-t with 3 degrees of freedom, rescaled."""

    def _pdf(self, x):
        return 2 / np.pi / (1 + x**2) ** 2


class Ramp(stats.rv_continuous):
    def _pdf(self, x):
        return 2 * x


def through_json(content):
    """Keep infinities as floats, as Python's json does by default."""
    return json.loads(json.dumps(content))


def plain(content):
    if isinstance(content, dict):
        return all(type(key) is str and plain(value) for key, value in content.items())
    return all(map(plain, content)) if type(content) is list else type(content) in (int, float, str)


@pytest.mark.parametrize("measure", MEASURES, ids=repr)
def test_round_trips_are_exact(measure):
    content = measure.to_dict()
    assert plain(content)
    again = measure_from_dict(through_json(content))
    assert type(again) is type(measure)
    assert repr(again) == repr(measure)
    assert again.to_dict() == content
    assert again.same_as(measure)
    for seed in (0, 1):
        np.testing.assert_array_equal(again.sample(50, seed), measure.sample(50, seed))
        np.testing.assert_array_equal(again.sobol(50, seed), measure.sobol(50, seed))
    for name in ("bounds", "width", "median", "axes", "reach"):
        np.testing.assert_array_equal(getattr(again, name), getattr(measure, name))
    X = measure.sample(5, 2)
    correlated = isinstance(measure.latent, amsbq.Gaussian | amsbq.Independent)  # RBF kernels only
    correlated &= measure.latent.marginals is None
    for kernel in (amsbq.RBF(0.3 * measure.width), amsbq.Matern(1.5, 0.2 * measure.width))[: 1 if correlated else 2]:
        np.testing.assert_array_equal(amsbq.kernel_mean(kernel, again, X), amsbq.kernel_mean(kernel, measure, X))
        assert amsbq.kernel_variance(kernel, again) == amsbq.kernel_variance(kernel, measure)


def test_every_class_of_measures_is_covered():
    assert {type(measure) for measure in MEASURES} == set(CLASSES.values())
    assert {*Measure.__subclasses__(), *MarginalMeasure.__subclasses__()} - {MarginalMeasure} == set(CLASSES.values())


def test_the_weights_of_these_samples_would_change_if_they_were_normalised_again():
    """The round trip above is a check of the weights only if this holds."""
    changed = [
        not np.array_equal(amsbq.Empirical(m.samples, m.weights).weights, m.weights)
        for m in MEASURES
        if isinstance(m, amsbq.Empirical)
    ]
    assert any(changed)


def test_measures_differ_where_one_parameter_does():
    one = [m.to_dict() for m in MEASURES]
    for i, content in enumerate(one):
        for j, other in enumerate(one):
            assert (content == other) == (i == j)
    assert not amsbq.Uniform(0, 1).same_as(amsbq.Uniform(0, 1 + 1e-15))
    assert not amsbq.Uniform(0, 1).same_as(amsbq.Product([stats.uniform(0, 1)]))
    assert amsbq.Product([stats.gamma(5, 0, 2)]).same_as(amsbq.Product([stats.gamma(a=5.0, scale=2)]))


def test_a_distribution_is_written_by_the_names_of_its_parameters():
    content = {"name": "genhyperbolic", "p": 1.5, "a": 2, "b": 0.5, "loc": 0, "scale": 3}
    assert distribution_to_dict(stats.genhyperbolic(1.5, 2, b=0.5, scale=3)) == content
    measure = amsbq.Product([stats.truncnorm(-np.inf, 1)])
    assert measure.to_dict()["distributions"] == [
        {"name": "truncnorm", "a": -np.inf, "b": 1, "loc": 0, "scale": 1},
    ]


@pytest.mark.parametrize(
    ("distribution", "text"),
    [
        (stats.norm(), "norm(loc=0, scale=1)"),
        (stats.norm(0.5, 2), "norm(loc=0.5, scale=2)"),
        (stats.gamma(5), "gamma(5)"),
        (stats.gamma(scale=4, a=5.5, loc=0), "gamma(5.5, scale=4)"),
        (stats.genhyperbolic(1, 2, loc=-1, b=0.5), "genhyperbolic(1, 2, 0.5, loc=-1)"),
        (stats.truncnorm(-np.inf, 1), "truncnorm(-inf, 1)"),
        (stats.randint(0, 4), "randint(0, 4)"),
        (Bell(name="bell")(scale=2), "bell(loc=0, scale=2)"),
    ],
)
def test_descriptions(distribution, text):
    assert describe(distribution) == text


def test_samples_of_many_numbers_are_a_digest():
    samples = np.random.default_rng(0).normal(size=(50_001, 2))
    other = samples.copy()
    other[31_415, 1] += 1e-12
    measure, different = amsbq.Empirical(samples), amsbq.Empirical(other)
    content = measure.to_dict()
    assert len(json.dumps(content)) < 200
    assert measure.same_as(amsbq.Empirical(samples.copy()))
    assert not measure.same_as(different)
    assert not measure.same_as(amsbq.Empirical(samples, np.arange(50_001)))
    with pytest.raises(ValueError, match="50001 samples of 2 inputs cannot be rebuilt: above 100000 numbers"):
        measure_from_dict(content)
    few = amsbq.Empirical(samples[:50_000])
    assert measure_from_dict(few.to_dict()).same_as(few)


def histogram(counts, edges, **freeze):
    return stats.rv_histogram((np.asarray(counts, dtype=float), np.asarray(edges)), density=False)(**freeze)


COUNTS = np.random.default_rng(1).integers(1, 100, size=400)
SWAPPED = COUNTS.copy()
SWAPPED[[200, 201]] = COUNTS[[201, 200]]
assert COUNTS[200] != COUNTS[201]

UNNAMED = {
    "histogram": lambda: histogram([1, 3], [0, 1, 2]),
    "histogram with other counts": lambda: histogram([2, 3], [0, 1, 2]),
    "histogram with other edges": lambda: histogram([1, 3], [0, 1, 2.5]),
    "histogram that is shifted": lambda: histogram([1, 3], [0, 1, 2], loc=1e-6),
    "histogram of many bins": lambda: histogram(COUNTS, np.arange(401)),
    "histogram with two bins swapped": lambda: histogram(SWAPPED, np.arange(401)),
    "density of a user": lambda: Bell(name="bell")(),
    "density of a user, scaled": lambda: Bell(name="bell")(scale=1 + 1e-12),
    "other density of that name": lambda: Ramp(a=0, b=1, name="bell")(),
    "density with a name of scipy's": lambda: Ramp(a=0, b=1, name="gamma")(),
    "distribution of scipy's class with another support": lambda: type(stats.uniform)(a=-1, b=1, name="uniform")(),
}
if hasattr(stats, "Mixture"):  # random variables of scipy 1.15 and later
    UNNAMED |= {
        "random variable": lambda: stats.Normal(mu=0.0, sigma=1.0),
        "random variable, scaled": lambda: stats.Normal(mu=0.0, sigma=1 + 1e-12),
        "mixture": lambda: stats.Mixture(
            [stats.Normal(mu=0.0, sigma=1.0), stats.Normal(mu=3.0, sigma=1.0)], weights=[0.3, 0.7]
        ),
        "mixture with weights that print alike": lambda: stats.Mixture(
            [stats.Normal(mu=0.0, sigma=1.0), stats.Normal(mu=3.0, sigma=1.0)], weights=[0.3 + 1e-9, 0.7 - 1e-9]
        ),
    }


@pytest.mark.parametrize("kind", UNNAMED)
def test_distributions_that_are_not_scipys_own_by_name(kind):
    measure = amsbq.Product([UNNAMED[kind](), stats.norm()])
    content = measure.to_dict()
    assert plain(content)
    assert len(json.dumps(content)) < 400
    assert amsbq.Product([UNNAMED[kind](), stats.norm()]).same_as(measure)
    with pytest.raises(ValueError, match=r"cannot be rebuilt: it is not one of scipy's own by name, and only a digest"):
        measure_from_dict(through_json(content))


def test_different_distributions_never_look_alike():
    contents = [json.dumps(distribution_to_dict(amsbq.Product([make()]).distributions[0])) for make in UNNAMED.values()]
    assert len(set(contents)) == len(contents)
    histograms = [describe(make()) for kind, make in UNNAMED.items() if kind.startswith("histogram")]
    assert len(set(histograms)) == len(histograms) == 6


def test_a_digest_ignores_rounding():
    """A run may be resumed with another processor or version of scipy."""

    class Almost(Bell):
        def _pdf(self, x):
            return super()._pdf(x) * (1 + 4e-16 * np.sign(np.sin(1e4 * x)))

    exact, rounded = (kind(name="bell")() for kind in (Bell, Almost))
    assert not np.array_equal(exact.pdf(np.linspace(0, 1)), rounded.pdf(np.linspace(0, 1)))
    assert distribution_to_dict(exact) == distribution_to_dict(rounded)


def test_another_parameterisation_is_seen():
    standard = distribution_to_dict(stats.levy_stable(1.5, 0.5))
    assert standard == {"name": "levy_stable", "alpha": 1.5, "beta": 0.5, "loc": 0, "scale": 1}
    other = stats.levy_stable(1.5, 0.5)
    other.parameterization = "S0"
    assert other.ppf(0.25) != stats.levy_stable(1.5, 0.5).ppf(0.25)
    assert not is_named(other)


GOOD = amsbq.Product([stats.gamma(5)]).to_dict()


def changed(**entries):
    content = deepcopy(GOOD)
    content["distributions"][0] |= entries
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "does not describe a measure: KeyError"),
        ([], "does not describe a measure: TypeError"),
        ({"class": "os"}, "does not describe a measure: KeyError"),
        ({"class": "Uniform", "lower": [0.0]}, "KeyError.*upper"),
        ({"class": "Uniform", "lower": ["a"], "upper": [1.0]}, "lower must be real numbers"),
        ({"class": "Uniform", "lower": [1.0], "upper": [0.0]}, "lower must be below upper"),
        ({"class": "Empirical", "samples": [[0.0], [1.0]], "weights": [0.5, 0.6]}, "weights must sum to one"),
        ({"class": "Empirical", "samples": [[0.0], [1.0]], "weights": [1.0]}, "one per sample"),
        ({"class": "Product", "distributions": []}, "non-empty list"),
        (changed(name="system"), "scipy.stats has no continuous one of that name"),
        (changed(name="poisson"), "scipy.stats has no continuous one of that name"),
        (changed(name=3), "scipy.stats has no continuous one of that name"),
        (changed(a=-1.0), "whose parameters scipy does not accept"),
        (changed(b=1.0), "does not describe a measure"),
    ],
    ids=str,
)
def test_what_is_no_measure_is_a_value_error(content, message):
    with pytest.raises(ValueError, match=message):
        measure_from_dict(content)
