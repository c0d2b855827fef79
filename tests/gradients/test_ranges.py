"""Gradients of values whose range is known, or that are skewed: those of the transformed process."""

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.design.evaluations import Option
from amsbq.gp.data import Data
from amsbq.inference.structures import as_model
from amsbq.posterior.channel import ChannelFitter
from amsbq.posterior.transforms import OutputRange, Shape, Transform, checked_range

RANGES = [OutputRange(0.0, np.inf), OutputRange(-np.inf, 3.0), OutputRange(-1.0, 2.0), checked_range(None, log=True)]
CASES = [(known, shape) for known in RANGES for shape in known.shapes]
Y = np.array([0.01, 0.5, 1.2, 1.9])
PLANE = amsbq.Gaussian(np.zeros(2), 1.0)
RATES = np.array([1.0, -0.6])
TRUTH = np.exp(RATES @ RATES / 2)  # of the mean of exp(RATES · x)


def f(x):
    return float(np.exp(RATES @ x))


def slope(x):
    return f(x) * RATES


@pytest.mark.parametrize(("known", "shape"), CASES)
def test_slopes_of_transforms(known, shape):
    transform, h = Transform.of(shape, known, Y), 1e-6
    expected = (transform.to(Y[:3] + h) - transform.to(Y[:3] - h)) / (2 * h)
    np.testing.assert_allclose(transform.slopes_at(Y[:3]), expected, rtol=1e-7)


@pytest.mark.parametrize(("known", "shape"), CASES[:-4])
def test_no_derivatives_at_a_bound(known, shape):
    """A value at its bound varies no further, and g cannot tell."""
    ends = [end for end in (known.low, known.high) if np.isfinite(end)]
    y = np.append(Y, ends)
    data = Data.checked(PLANE, 1, 0, PLANE.sobol(len(y), 0), y, gradients=np.zeros((len(y), 2)))
    found = Transform.of(shape, known, y).transformed(data, [0.0], PLANE)
    assert np.isfinite(found.gradients()[:4]).all()
    assert np.isnan(found.gradients()[4:]).all()
    assert np.isfinite(found.y).all()


def test_small_logarithms_have_derivatives():
    """Those of values whose exponential is zero in doubles."""
    logs = np.array([-1e4, -300.0, -2.0, 0.0])
    transform = Transform.of(Shape("log", 3.0), checked_range(None, log=True), logs)
    np.testing.assert_allclose(transform.slopes_at(logs), 1 / (1 - logs / 3), rtol=1e-12)


@pytest.mark.parametrize("noise", [0.0, 1e-4])
def test_the_posterior_of_a_root_against_a_dense_one(noise):
    """F = g²/2 has the derivative g g'; so that of g is f' / g. Derivatives are sums over a stencil."""
    box, h = amsbq.Uniform([0, 0], [1, 2]), 1e-4
    gp = amsbq.MultiSourceGP([amsbq.Term(1.3, amsbq.RBF([0.6, 1.1]))], box, noise=1e-6)
    X = box.sobol(4, 3)
    y, gradients = 0.5 + X[:, 0] * X[:, 1] ** 2, np.column_stack([X[:, 1] ** 2, 2 * X[:, 0] * X[:, 1]])
    data = Data.checked(box, 1, 0, X, y, np.full(4, noise), gradients)
    (only,) = ChannelFitter(as_model(gp), box, [0.0], known=OutputRange(0.0, np.inf)).learned(data).alternatives
    wanted = box.sobol(3, 5)

    steps = [h * e for e in np.eye(2)]
    nodes = np.concatenate([X, *(X + step for step in steps), *(X - step for step in steps), wanted])
    D = np.eye(4 + 3, len(nodes))  # values, and what is wanted, from the nodes
    D[4:] = 0
    D[4:, 20:] = np.eye(3)
    by = np.zeros((8, len(nodes)))
    for d in range(2):
        rows = np.arange(4)
        by[4 * d + rows, 4 * (1 + d) + rows], by[4 * d + rows, 4 * (3 + d) + rows] = 1 / (2 * h), -1 / (2 * h)
    A = np.concatenate([D[:4], by, D[4:]])
    K = A @ (1.3 * amsbq.RBF([0.6, 1.1])(nodes, nodes)) @ A.T
    g = np.sqrt(2 * y)
    ends = [np.sqrt(2 * (y + step)) for step in (-np.sqrt(noise), np.sqrt(noise))]
    variances = 1e-6 + ((ends[1] - ends[0]) / 2) ** 2
    # derivatives per width are as noisy as values
    noise_of_all = np.concatenate([variances, variances / box.width[0] ** 2, variances / box.width[1] ** 2])
    observed = np.concatenate([g, gradients[:, 0] / g, gradients[:, 1] / g])
    G, k = K[:12, :12] + np.diag(noise_of_all), K[:12, 12:]
    mean, variance = (moment[0] for moment in only.process.posteriors.predict(0, wanted))
    np.testing.assert_allclose(mean, k.T @ np.linalg.solve(G, observed), rtol=1e-5)
    expected = np.diagonal(K[12:, 12:] - k.T @ np.linalg.solve(G, k))
    np.testing.assert_allclose(variance, expected, rtol=1e-3, atol=1e-8)


@pytest.mark.parametrize("options", [{"output_range": (0, np.inf)}, {"log": True}], ids=["range", "log"])
def test_given_values_with_gradients(options):
    """They tell more than values alone, and a gradient of a logarithm is that of the logarithm."""
    X = PLANE.sobol(7, 4)
    log = "log" in options
    y = [RATES @ x if log else f(x) for x in X]
    gradients = [RATES if log else slope(x) for x in X]
    truth = np.log(TRUTH) if log else TRUTH
    with_them = amsbq.estimate(0, X, y, PLANE, gradients=gradients, **options)
    alone = amsbq.estimate(0, X, y, PLANE, **options)
    # that of a logarithm is linear, which seven values alone show
    assert with_them.std < (1e-3 if log else 0.5 * alone.std)
    assert abs(with_them.mean - truth) < max(3 * with_them.std, 1e-3)


@pytest.mark.parametrize("options", [{"output_range": (0, np.inf)}, {}], ids=["range", "skewed"])
def test_runs_are_resumed_bit_for_bit(tmp_path, options):
    source = amsbq.Source(f, gradient=slope, gradient_cost=0.2)
    whole = amsbq.integrate(source, PLANE, budget=12, seed=1, journal=tmp_path / "whole.jsonl", **options)
    amsbq.integrate(source, PLANE, budget=12, seed=1, max_evaluations=6, journal=tmp_path / "half.jsonl", **options)
    resumed = amsbq.integrate(source, PLANE, budget=12, seed=1, journal=tmp_path / "half.jsonl", **options)
    assert (resumed.mean, resumed.std) == (whole.mean, whole.std)
    assert any(e.gradient is not None for e in whole.evaluations)
    assert '"transform"' in (tmp_path / "whole.jsonl").read_text()
    low, high = whole.interval(0.999)
    assert low < TRUTH < high
    assert str(whole.diagnose())


def test_skewed_values_with_gradients_are_modelled_as_exponentials():
    it = amsbq.Integrator(amsbq.Source(f, gradient=slope), PLANE, initial=[])
    for x in PLANE.sobol(10, 2):
        it.observe(0, x, f(x), gradient=slope(x))
    estimate = it.estimate()
    assert not it.learner.posterior.components[0].transform.affine
    assert abs(estimate.mean - TRUTH) < 0.03 * TRUTH
    choice = it.preview()
    assert choice.source == 0


def test_the_rate_of_a_value_with_its_gradient():
    """With fixed hyperparameters it is the information on the integral to first order, by whatever is told."""
    box = amsbq.Uniform([0, 0], [1, 1])
    gp = amsbq.MultiSourceGP([amsbq.Term(2.0, amsbq.RBF([0.7, 0.9]))], box, noise=1e-6)
    it = amsbq.Integrator(
        amsbq.Source(lambda x: 1 + x[0] * x[1], gradient=lambda x: x[::-1], gradient_cost=0.3),
        box,
        model=gp,
        output_range=(0, np.inf),
        initial=[],
    )
    for x in box.sobol(3, 1):
        it.observe(0, x, 1 + x[0] * x[1], gradient=x[::-1])
    rate, at = it.policy.next_rate(it.learner.posterior), np.array([[0.3, 0.6]])
    with_it, alone = rate.values([Option(0, True), Option(0)], at)[:, 0]
    (posteriors,) = (part.posteriors for part in rate.parts)
    before = posteriors.integral()[1][0]
    for value, gradients, expected in ((alone, None, 1.0), (with_it, [[0.0, 0.0]], 1.3)):
        new = Data.checked(box, 1, 0, at, [0.0], gradients=gradients)
        after = posteriors.extend(new).integral()[1][0]
        np.testing.assert_allclose(value, -np.log(after / before) / expected, rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"output_range": (-20, np.inf)}], ids=["plain", "range"])
def test_gradients_of_several_outputs_are_those_of_each(options):
    X = PLANE.sobol(5, 4)
    Y = np.array([[f(x), x[0] * x[1]] for x in X])
    gradients = np.array([[slope(x), x[::-1]] for x in X])
    both = amsbq.estimate(0, X, Y, PLANE, gradients=gradients, outputs=["a", "b"], **options)
    for m in range(2):
        alone = amsbq.estimate(0, X, Y[:, m], PLANE, gradients=gradients[:, m], **options)
        assert (both[m].mean, both[m].std) == (alone.mean, alone.std)


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"gradients must have shape \(1, 2, 2\), got shape \(1, 2\)"):
        amsbq.estimate(0, [[0.1, 0.2]], [[1.0, 2.0]], PLANE, gradients=[[1.0, 2.0]], outputs=["a", "b"])
    with pytest.raises(ValueError, match="outside output_range"):
        amsbq.estimate(0, [[0.1]], [-1.0], [stats.norm()], gradients=[[1.0]], output_range=(0, np.inf))
