"""Sobol' indices that are known exactly."""

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.posterior.effects import transformed_effects

from .known import BOX, ishigami, seen


def of_product(parts):
    """Variance and indices of a product of functions of one input each, with means of one and the given variances."""
    variance = np.prod(1 + parts) - 1
    totals = parts * np.array([np.prod(1 + np.delete(parts, d)) for d in range(len(parts))])
    return variance, parts / variance, totals / variance


@pytest.fixture(scope="module")
def of_ishigami():
    return seen(ishigami, BOX, 300, [3.0, 1.5, 3.0], names=["a", "b", "c"])


def test_ishigami(of_ishigami):
    found = of_ishigami.sensitivity()
    np.testing.assert_allclose(found.first.mean, [0.314, 0.442, 0.0], atol=5e-3)
    np.testing.assert_allclose(found.total.mean, [0.558, 0.442, 0.244], atol=1e-2)
    low, high = found.total.interval(0.99)
    assert (low <= [0.558, 0.443, 0.244]).all()
    assert (high >= [0.557, 0.442, 0.243]).all()
    assert found.names == ["a", "b", "c"]


def test_as_html(of_ishigami):
    found = of_ishigami.sensitivity(groups={"<both>": ["a", "c"]})
    html = found._repr_html_()
    assert "<both>" not in html
    assert html.count("<tr>") == 3
    assert f"<td>{found.first[1].mean:.3f} (" in html
    assert "&lt;both&gt; matters most" in html


def test_groups(of_ishigami):
    """The first and the third input interact with each other only: as a group they explain the rest."""
    found = of_ishigami.sensitivity(groups={"both": ["a", "c"]})
    assert found.names == ["both", "b"]
    np.testing.assert_allclose(found.first.mean, [0.558, 0.442], atol=1e-2)
    np.testing.assert_allclose(found.total.mean, [0.558, 0.442], atol=1e-2)


def test_a_product_of_gaussians_and_an_input_without_effect():
    """2 a + b + a b / 2 has the variance 4 + 1 + 1/4."""
    measure = [stats.norm(), stats.norm(), stats.uniform(0, 1)]
    result = seen(lambda x: 2 * x[0] + x[1] + 0.5 * x[0] * x[1], measure, 60, [8.0, 8.0, 8.0], ["a", "b", "c"], 1e4)
    found = result.sensitivity()
    np.testing.assert_allclose(found.first.mean, np.array([4, 1, 0]) / 5.25, atol=1e-3)
    np.testing.assert_allclose(found.total.mean, np.array([4.25, 1.25, 0]) / 5.25, atol=1e-3)
    assert found.sentences() == [
        "a matters most: it explains 81 % of the variance, 76 % by itself.",
        "Leave c at its median: it explains less than 0.1 % of the variance.",
    ]
    total = amsbq.Estimates([amsbq.Estimate([mean], [0.1]) for mean in (0.5, 0.45, 0.05)])
    close = type(found)(found.names, found.first, total)
    assert close.sentences() == ["a explains 50 % of the variance, 76 % by itself; b may matter as much."]
    header, *rows = found.table().splitlines()
    assert header.split() == ["input", "first-order", "total"]
    assert [row.split()[0] for row in rows] == ["a", "b", "c"]
    assert str(found) == "\n".join([found.table(), *found.sentences()])


def test_sobols_g_function():
    """Kinks, and first-order variances 1 / (3 (1 + a)²)."""
    a = np.array([0.0, 1.0, 9.0])

    def g(x):
        return np.prod((np.abs(4 * x - 2) + a) / (1 + a))

    found = seen(g, [(0, 1)] * 3, 250, 1.0, kernel=lambda ell: amsbq.Matern(1.5, ell), variance=1.0).sensitivity()
    _, first, total = of_product(1 / (3 * (1 + a) ** 2))
    np.testing.assert_allclose(found.first.mean, first, atol=0.03)
    np.testing.assert_allclose(found.total.mean, total, atol=0.06)


def test_discrete_inputs():
    """A count and a category explain what their variances say."""
    measure = amsbq.Product([stats.randint(0, 4), {"low": 0.5, "high": 0.5}])
    result = seen(lambda x: x[0] + 2 * x[1], measure, 16, [8.0, 2.0], variance=1e3)
    np.testing.assert_allclose(result.sensitivity().first.mean, np.array([1.25, 1.0]) / 2.25, atol=0.02)


def test_a_constant_output_does_not_tell_which_input_matters():
    with pytest.warns(UserWarning, match="do not show how much it varies"):
        found = amsbq.integrate(lambda x: 3.0, amsbq.Uniform([0, 0], [1, 1]), budget=4).sensitivity()
    for indices in (found.first, found.total):
        low, high = indices.interval()
        assert (low >= 0).all()
        assert (high <= 1).all()
        assert np.isfinite(indices.std).all()
    assert found.sentences() == ["The evaluations do not show yet which input matters."]


def test_what_has_no_indices(of_ishigami):
    dependent = seen(lambda x: x[0], amsbq.Gaussian([0, 0], [[1, 0.5], [0.5, 1]]), 8, 4.0)
    with pytest.raises(ValueError, match=r"are dependent: Gaussian.*Instead, result.given\(x0=...\)"):
        dependent.sensitivity()
    with pytest.raises(ValueError, match="groups contains 'd', which is not an input; valid names: a, b, c"):
        of_ishigami.sensitivity(groups={"some": ["a", "d"]})
    for groups in ({"one": ["a"], "two": ["a"]}, {"none": []}):
        with pytest.raises(ValueError, match="at least one input each, and every input at most once"):
            of_ishigami.sensitivity(groups=groups)
    with pytest.raises(ValueError, match="'b' is the name of a group and of an input"):
        of_ishigami.sensitivity(groups={"b": ["a", "c"]})


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"output_range": (0, np.inf)}])
def test_of_outputs_that_are_modelled_as_exponentials(options):
    """The errors of averages over points of the inputs, heavy tails here, are part of the intervals."""
    weights = np.array([1.0, 0.5])
    names = {"a": stats.norm(), "b": stats.norm()}
    result = amsbq.integrate(lambda x: float(np.exp(weights @ x)), names, budget=16, progress=False, **options)
    found, variance = result.sensitivity(), np.exp(weights @ weights) - 1
    first = (np.exp(weights**2) - 1) / variance
    for indices, truth in ((found.first, first), (found.total, 1 - first[::-1])):
        low, high = indices.interval(0.99)
        assert ((low < truth) & (truth < high) & (high - low < 0.25)).all()
    assert (found.first.mean <= found.total.mean).all()
    with pytest.raises(TypeError, match="groups must be a dictionary"):
        result.sensitivity(groups=[["a"]])


def of_known(function, measure):
    """Variance and indices by sums over a function that is known: two paths, as errors are drawn in opposite pairs."""

    class Known:
        def values(self, X):
            return np.tile(function(X), (1, 2, 1))

    found = transformed_effects(Known(), measure, [[d] for d in range(measure.dim)], lambda g, X: g.copy())
    variance = found.variances.mean()
    return variance, found.first.mean(axis=(1, 2)) / variance, found.total.mean(axis=(1, 2)) / variance


@pytest.mark.parametrize(("slopes", "of_first", "of_total"), [([1.2, 0.5, 0.2], 0.01, 0.03), ([0.4] * 12, 0.01, 0.08)])
def test_sums_for_a_heavy_tailed_output(slopes, of_first, of_total):
    """The indices of a log-normal function: most of its variance is in a small part of the inputs."""
    slopes = np.array(slopes)
    found = of_known(lambda X: np.exp(X @ slopes - slopes @ slopes / 2), amsbq.Gaussian(0 * slopes, 1.0))
    variance, first, total = of_product(np.expm1(slopes**2))
    assert found[0] == pytest.approx(variance, rel=0.1)
    np.testing.assert_allclose(found[1], first, atol=of_first)
    np.testing.assert_allclose(found[2], total, atol=of_total)


def test_sums_for_a_function_with_kinks():
    """The indices of Sobol's function of eight inputs."""
    a = np.arange(8) / 2
    found = of_known(lambda X: np.prod((np.abs(4 * X - 2) + a) / (1 + a), axis=1), amsbq.Uniform(np.zeros(8), 1.0))
    _, first, total = of_product(1 / (3 * (1 + a) ** 2))
    np.testing.assert_allclose(found[1], first, atol=0.02)
    np.testing.assert_allclose(found[2], total, atol=0.02)
