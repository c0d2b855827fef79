"""Secondary sources that say nothing of the primary one: they cost accuracy, but the answer stays right."""

import numpy as np
import pytest

import amsbq

USELESS = {"constant": lambda x: 0.3, "unrelated": lambda x: np.sin(11 * x[0] + 1) + np.cos(7 * x[0])}


def primary(x):
    return float(np.exp(-((3 * (x[0] - 0.4)) ** 2)))


@pytest.mark.parametrize("kind", USELESS)
def test_a_useless_source_does_little_harm_with_one_input(kind):
    values = np.array([primary([x]) for x in (np.arange(10_000) + 0.5) / 10_000])
    sources = [amsbq.Source(primary, name="fine"), amsbq.Source(USELESS[kind], cost=0.05, name="useless")]
    result = amsbq.integrate(sources, amsbq.Uniform(0, 1), budget=8)
    low, high = result.interval(0.99)
    assert abs(result.mean - values.mean()) < 0.01 * values.std()
    assert low < values.mean() < high
    assert sum(e.source == 0 for e in result.evaluations) >= 6  # most of the budget goes to the primary source


def test_a_source_that_tells_nothing_counts_little(tmp_path):
    def fine(x):
        return float(np.sin(4 * x[0] + 1) * np.cos(3 * x[1]))

    def unrelated(x):
        return float(np.cos(9 * x[0]) + np.sin(11 * x[1] + 1))

    sources = [fine, amsbq.Source(unrelated, cost=0.1)]
    journal = tmp_path / "run.jsonl"
    result = amsbq.integrate(sources, [(0, 1)] * 2, budget=9, journal=journal)
    assert result.integrator.learner.posterior.secondary_weight < 0.2
    made = [e for e in result.evaluations if e.source == 0]
    alone = amsbq.estimate([0] * len(made), [e.x for e in made], [e.value for e in made], [(0, 1)] * 2)
    # next to nothing of the other source is left in the answer, and draws were carried along
    assert abs(result.mean - alone.mean) < 0.1 * alone.std
    assert result.std == pytest.approx(alone.std, rel=0.25)
    assert "are no better with unrelated: " in " ".join(str(result.diagnose()).split())  # of little weight, or left out
    again = amsbq.integrate(sources, [(0, 1)] * 2, budget=9, journal=journal)
    assert (again.mean, again.std) == (result.mean, result.std)
    ahead = again.integrator.forecast(12)
    assert sum(choice.source == 0 for choice in ahead.choices) == 3  # as many as the rest of the budget pays for
    assert again.integrator.preview().source == 0
    amsbq.report.report(result, tmp_path / "run.html")


def test_what_tells_nothing_of_one_output_may_tell_of_another():
    inputs = amsbq.Uniform([0, 0], 1)
    it = amsbq.Integrator([amsbq.Source(), amsbq.Source(cost=0.1)], inputs, outputs=["a", "b"], budget=20)
    X = inputs.sobol(24, 0)
    useful, unrelated = np.sin(4 * X[:, 0] + 1) * np.cos(3 * X[:, 1]), np.random.default_rng(3).normal(size=24)
    for k, x in enumerate(X):
        if k < 8:
            it.observe(0, x, [useful[k], useful[k]])
        it.observe(1, x, [1.1 * useful[k] + 0.1 * x[0], unrelated[k]])
    mean, std = it.learner.posterior.predict(1, X[20:])
    of = [it.learner.posterior[m].secondary_weight for m in (0, 1)]
    assert of[0] > 0.99
    assert of[1] < 0.2
    np.testing.assert_allclose(mean[:, 0], 1.1 * useful[20:] + 0.1 * X[20:, 0], atol=1e-4)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()  # by the models that have it


@pytest.mark.parametrize("related", [False, True])
def test_what_counts_depends_on_the_values(related):
    def primary(x):
        return np.sin(4 * x[0] + 1) * np.cos(3 * x[1])

    def secondary(x):
        return 1.1 * primary(x) + 0.1 * x[0] if related else np.cos(9 * x[0]) + np.sin(11 * x[1] + 1)

    it = amsbq.Integrator([amsbq.Source(), amsbq.Source(cost=0.1)], [(0, 1)] * 2)
    X = it.measure.sobol(32, 0)
    for x in X[:8]:
        it.observe(0, x, primary(x))
    for x in X:
        it.observe(1, x, secondary(x))
    assert (it.learner.posterior.secondary_weight > 0.5) is related
