"""Inputs that are not searched, or fail: what they could contribute to the integral."""

import re

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.results.analysis import failing, unsearched


def run(f, inputs, n=12, **options):
    it = amsbq.Integrator([f], inputs, budget=100, model="vbq", **options)
    while len(it.evaluations) < n:
        query = it.ask()
        value = f(query.x)
        if np.isfinite(value):
            it.tell(query, value)
        else:
            it.fail(query, "it diverged")
    return it


def note(it):
    return [finding for finding in it.result().diagnose() if finding.about == "unexplored"]


@pytest.mark.parametrize(
    ("inputs", "share"),
    [
        (stats.norm(3, 2), 2e-3),
        ([stats.norm(), stats.gamma(5)], 1 - 0.998**2),
        ([stats.norm(), (0, 1)], 2e-3),
        ((0, 1), 0.0),
        (amsbq.Gaussian([0, 1], cov=[[2.0, 1.0], [1.0, 3.0]]), 1 - 0.998**2),
    ],
)
def test_tails_that_are_not_searched(inputs, share):
    """Their probability, from the outermost thousandth on each side of the inputs that have no limits."""
    it = amsbq.Integrator([lambda x: x[0]], inputs, budget=100, model="vbq")
    part = unsearched(it)
    assert part.share == pytest.approx(share, rel=0.1)
    if share:
        u = np.linalg.solve(it.measure.axes, part.x - it.measure.median)
        assert ((u < it.measure.reach[:, 0]) | (u > it.measure.reach[:, 1])).any()


def test_it_is_said_where_it_matters():
    """What the tails could change, by the range of the values, compared with the error bar."""
    it = run(lambda x: np.sin(x[0]), stats.norm())
    (found,) = note(it)
    values = [e.value for e in it.evaluations]
    spread, change = np.ptp(values), 2e-3 * np.ptp(values)
    assert "0.2 % of the distribution of the inputs is in tails" in found.text
    assert [float(number) for number in re.findall(r"(?:far,|differs by) (\d+\.\d+)", found.text)] == pytest.approx(
        [spread, change], rel=0.1
    )
    assert change > it.estimate().std
    assert not note(run(lambda x: np.sin(x[0]), stats.norm(), n=3))  # the error bar is larger
    assert not note(run(lambda x: np.sin(x[0]), (-3, 3)))  # there are no tails


def test_a_region_that_fails():
    it = run(lambda x: x[0] ** 2 if x[0] < 0.7 else np.nan, (0, 1))
    last, first = (
        max(e.x[0] for e in it.evaluations if e.status == "ok"),
        min(e.x[0] for e in it.evaluations if e.status == "failed"),
    )
    part = failing(it)
    assert part.share == pytest.approx(1 - (first + last) / 2, abs=2e-3)
    assert part.x[0] > (first + last) / 2
    (found,) = note(it)
    assert "closest to failed evaluations" in found.text
    assert failing(run(np.sum, (0, 1))).share == 0


def test_logarithms_have_no_such_finding():
    """Their values differ by orders of magnitude, of which the integral does not depend."""
    assert not note(run(lambda x: -5 * x[0] ** 2, stats.norm(), n=8, log=True))
