"""The benchmark of limits: its truths."""

import pytest

from benchmarks.limit import KEYS, extrapolated, limit_of


def test_the_limit_of_the_paper_s_problem():
    """By quadrature of the exact solution, as in the example of levels."""
    found = limit_of("boundary-value/0")
    assert found.mean == pytest.approx(-3.417118, abs=2e-5)
    assert found.error < 1e-4
    assert found.bias == pytest.approx(-3.413622 + 3.417118, abs=2e-5)


def test_a_geometric_sequence_is_extrapolated():
    assert extrapolated(*(2 + 0.3 * 0.25**k for k in (1, 2, 3))) == pytest.approx(2.0)
    assert extrapolated(1.0, 1.0, 1.0) == 1.0
    assert len(KEYS) == 13
