"""Runs and estimates with outputs of known range."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

import amsbq
from amsbq.posterior import component
from amsbq.posterior.nodes import Nodes
from amsbq.problems.problem_file import ProblemError, load_problem

SQUARE = amsbq.Uniform([0, 0], [1, 1])


def peak(x):
    return float(np.exp(-0.5 * np.sum((x - 0.4) ** 2) / 0.15**2))


def flat_peak(x):
    return 0.9 * float(np.exp(-0.5 * np.sum((x - 0.43) ** 2) / 0.16**2))


TRUTH = 0.14028180860948  # of peak over the unit square, by the error function


@st.composite
def cases(draw):
    """Draw values that end at a bound, or far from it, in any unit, and a model."""
    n = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    y = 10.0 ** draw(st.integers(-3, 3)) * rng.gamma(draw(st.sampled_from([0.05, 1.0, 30.0])), size=n)
    if draw(st.booleans()):
        y[0] = 0.0
    low, sign = draw(st.sampled_from([0.0, -7.0])), draw(st.sampled_from([1, -1]))
    model = amsbq.MultiSourceGP(
        [amsbq.Term(10.0 ** draw(st.integers(-4, 4)), amsbq.RBF(draw(st.sampled_from([0.05, 0.3, 2.0]))))],
        amsbq.Uniform(0, 1),
        noise=draw(st.sampled_from([0.0, 1e-3])),
    )
    return rng.uniform(size=n), low + sign * y, (low, np.inf) if sign > 0 else (-np.inf, low), model


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(cases())
def test_estimates_never_leave_the_range(case):
    x, y, (low, high), model = case
    found = amsbq.estimate(0, x, y, amsbq.Uniform(0, 1), model=model, output_range=(low, high))
    for number in (found.mean, *found.interval(0.95), *found.interval(0.9999)):
        assert low <= number <= high
    assert found.quantile(0.3) <= found.quantile(0.7)


@pytest.mark.parametrize("output_range", [(0.0, np.inf), (0.0, 1.0)])
def test_learned_models_stay_within_the_range(output_range):
    rng = np.random.default_rng(1)
    for _ in range(4):
        x = rng.uniform(size=(8, 2))
        y = np.array([peak(3 * (row - rng.uniform())) for row in x])
        found = amsbq.estimate(0, x, y, SQUARE, model="icm", output_range=output_range)
        low, high = found.interval(0.99)
        assert output_range[0] <= low <= found.mean <= high <= output_range[1]


@pytest.fixture(scope="module")
def result():
    return amsbq.integrate(
        [peak, amsbq.Source(flat_peak, cost=0.1)], SQUARE, budget=6, output_range=(0, np.inf), model="icm"
    )


def test_a_peak(result):
    assert abs(result.mean / TRUTH - 1) < 0.1
    low, high = result.interval(0.95)
    assert 0 <= low < TRUTH < high


def test_there_is_one_answer(result):
    assert (result.evaluations[-1].mean, result.evaluations[-1].std) == (result.mean, result.std)
    assert result.estimate.within == (0, np.inf)
    again = amsbq.Estimate.from_dict(
        json.loads(json.dumps({**result.estimate.to_dict(), "within": None})) | {"within": result.estimate.within}
    )
    assert again.interval(0.9) == result.estimate.interval(0.9)


def test_what_else_is_asked_stays_within_the_range(result):
    X = SQUARE.sobol(50, 3)
    mean, variance = result.predict(0, X)
    assert (mean >= 0).all()
    np.testing.assert_allclose(mean, [peak(x) for x in X], atol=0.15)
    assert (variance >= 0).all()
    output = result.distribution()
    assert output.quantile(0.01).interval()[0] >= 0
    np.testing.assert_allclose(output.std().mean, 0.23, atol=0.05)  # by 2^16 points
    assert result.under(amsbq.Uniform([0.3, 0.3], [0.5, 0.5])).mean == pytest.approx(0.866, abs=0.1)
    curve = result.given(x0=[0.1, 0.4])
    np.testing.assert_allclose(curve.mean, [0.0507, 0.3745], atol=0.08)
    assert (curve.interval()[0] >= 0).all()
    # both inputs do the same: with a = E h², b = (E h)² of one factor h, S = (a - b) b / (a² - b²) = b / (a + b)
    np.testing.assert_allclose(result.sensitivity().first.mean, 0.345, atol=0.08)
    np.testing.assert_allclose(result.sensitivity().total.mean, 0.655, atol=0.08)


def test_a_journal_resumes_where_it_stopped(tmp_path):
    journal, whole = tmp_path / "run.jsonl", tmp_path / "whole.jsonl"
    arguments = {"output_range": (0, np.inf), "model": "icm", "max_evaluations": 6}
    amsbq.integrate(peak, SQUARE, journal=journal, **{**arguments, "max_evaluations": 4})
    resumed = amsbq.integrate(peak, SQUARE, journal=journal, **arguments)
    straight = amsbq.integrate(peak, SQUARE, journal=whole, **arguments)
    assert [(e.value, e.mean, e.std) for e in resumed.evaluations] == [
        (e.value, e.mean, e.std) for e in straight.evaluations
    ]
    assert amsbq.read_result(journal).interval(0.9) == straight.interval(0.9)
    with pytest.raises(amsbq.JournalError, match="output_range"):
        amsbq.integrate(peak, SQUARE, journal=journal, **{**arguments, "output_range": (-1, np.inf)})


def test_values_outside_of_the_range_are_refused():
    it = amsbq.Integrator([amsbq.Source(valid=(-5, 5))], amsbq.Uniform(0, 1), output_range=(0, np.inf), budget=9)
    query = it.ask()
    it.tell(query, -0.1)
    assert it.evaluations[-1].status == "failed"
    assert "0 to 5" in it.evaluations[-1].reason
    with pytest.raises(ValueError, match="outside"):
        it.observe(0, 0.3, -1.0)
    with pytest.raises(ValueError, match="the value -2 is outside"):
        amsbq.estimate(0, [0.1, 0.2], [1.0, -2.0], amsbq.Uniform(0, 1), output_range=(0, np.inf))
    with pytest.raises(ValueError, match="no acceptable value"):
        amsbq.Integrator([amsbq.Source(valid=(-5, -1))], amsbq.Uniform(0, 1), output_range=(0, np.inf))


def test_problem_files(tmp_path):
    text = (
        "budget = 5\noutput_range = [0, inf]\n[inputs]\na = { low = 0.0, high = 1.0 }\n[[sources]]\ndetached = true\n"
    )
    path = tmp_path / "problem.toml"
    path.write_text(text)
    it = load_problem(path).integrator()
    (known,) = it.problem.ranges
    assert (known.low, known.high, known.log) == (0, np.inf, False)
    path.write_text(text.replace("output_range = [0, inf]", "log = true"))
    assert load_problem(path).integrator().problem.ranges[0].log
    path.write_text(text.replace("[0, inf]", "[2, 1]"))
    with pytest.raises(ProblemError, match="output_range"):
        load_problem(path)


def test_the_logarithm_of_an_integral():
    """A Gaussian log-likelihood of -20,000 at its best: its exponential is zero in floating-point numbers."""
    x = np.linspace(-3, 3, 15)
    logs = -20_000 - 0.5 * ((x - 0.5) / 0.4) ** 2
    truth = -20_000 + np.log(0.4 / np.sqrt(1.16)) - 0.5 * 0.25 / 1.16
    found = amsbq.estimate(0, x, logs, amsbq.Gaussian(0, 1), log=True)
    assert abs(found.mean - truth) < 0.02
    low, high = found.interval(0.95)
    assert low < truth < high < low + 1


def test_the_evidence_of_a_narrow_ridge():
    """A Gaussian likelihood whose ridge is oblique and a tenth as wide as the prior distribution is."""
    precision = np.array([[60.0, -50.0], [-50.0, 60.0]])
    centre = np.array([0.3, 0.5])

    covariance = np.linalg.inv(precision)
    truth = 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    truth += stats.multivariate_normal(np.zeros(2), covariance + np.eye(2)).logpdf(centre)
    X = np.concatenate(
        [
            amsbq.Gaussian([0, 0], 1).sobol(16, 0),  # most of them are far from it, ...
            amsbq.Gaussian(centre, 4 * covariance).sobol(16, 1),  # ... where a run would not stay
        ]
    )
    logs = -0.5 * np.einsum("ni,ij,nj->n", X - centre, precision, X - centre)
    found = amsbq.Integrator(amsbq.Source(), amsbq.Gaussian([0, 0], 1), log=True, initial=[])
    for x, value in zip(X, logs, strict=True):
        found.observe(0, x, value)
    low, high = found.estimate().interval()
    assert abs(found.estimate().mean - truth) < 0.02
    assert low < truth < high < low + 0.5
    assert found.learner.posterior.components[0].transform.linearised


def test_diagnosis_and_plots_of_a_transformed_run(result):
    findings = result.diagnose()
    assert any(finding.about == "transform" for finding in findings)
    ahead = result.integrator.forecast(10.0)
    assert ahead[-1][1] < ahead[0][1] == pytest.approx(result.std)


@pytest.mark.parametrize("slope", [0.5, 1.5, 2.4, 3.0])
@pytest.mark.parametrize("dim", [2, 4])
def test_sums_over_nodes_know_their_errors(slope, dim):
    """The mean of exp(slope z) has its mass in the tail of z."""
    measure = amsbq.Gaussian(np.zeros(dim), 1)
    values = lambda X: np.exp(slope * X[:, 0] - slope**2 / 2) * (1 + 0.3 * X[:, 1:].sum(axis=1)) ** 2  # noqa: E731
    nodes = Nodes.of(measure, values)
    mean, variance = nodes.averages(values(nodes.X)[None])
    assert abs(mean[0] - (1 + 0.09 * (dim - 1))) < 3 * np.sqrt(variance[0]) < 0.15


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_ranges_at_any_scale(scale):
    X = np.linspace(0.05, 0.95, 7)[:, None]
    unit, scaled = (
        amsbq.estimate([0] * 7, X, factor * np.exp(2 * X[:, 0]), [(0, 1)], output_range=(0, np.inf))
        for factor in (1.0, scale)
    )
    assert scaled.mean / scale == pytest.approx(unit.mean, rel=1e-6)
    assert scaled.std / scale == pytest.approx(unit.std, rel=1e-4)
    np.testing.assert_allclose(np.array(scaled.interval()) / scale, unit.interval(), rtol=1e-6)


def test_equal_values_are_not_shown_in_other_units():
    X = np.linspace(0, 1, 7)[:, None]
    with pytest.warns(UserWarning, match="all 7 observations of source 0 are equal"):
        amsbq.estimate([0] * 7, X, np.zeros(7), [(0, 1)], output_range=(0, np.inf))


def test_main_effects_between_knots_are_averages_over_more_nodes_to_a_hundredth(result, monkeypatch):
    """Means, and error bars: at many values of an input they are interpolated, from fewer nodes."""
    posterior, t = result.integrator.learner.posterior, np.linspace(0, 1, 201)[:, None]
    for source in (0, 1):
        mean, std = posterior.main_effect(source, 0, t)
        with monkeypatch.context() as patched:
            patched.setattr(component, "SETTINGS", component.EffectSettings(knots=1000, nodes=512, pairs=192))
            wanted_mean, wanted_std = posterior.main_effect(source, 0, t[3::20])
        np.testing.assert_allclose(mean[3::20], wanted_mean, atol=0.01 * np.ptp(mean))
        np.testing.assert_allclose(std[3::20], wanted_std, rtol=0.1, atol=0.01 * np.ptp(mean))
    low, high = posterior.main_effect(0, 0, t[:41])[0], posterior.main_effect(0, 0, t[[0, 40, 7]])[0]
    assert high[2] == pytest.approx(low[7], abs=1e-9 * abs(low[7]))  # few values are not interpolated
