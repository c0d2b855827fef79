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
