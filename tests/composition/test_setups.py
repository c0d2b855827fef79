"""The setups themselves: derivatives, truths, and the array that covers all pairs."""

from itertools import combinations

import numpy as np
import pytest
from scipy.integrate import dblquad

from .setups import LEVELS, Setup, Simulator, covering, pairs, setup_of, slopes, surface, triples


def test_slopes_are_those_of_the_surface():
    z, step = np.array([[0.3, 0.7]]), 1e-6
    for d, unit in enumerate(np.eye(2)):
        difference = (surface(z + step * unit, 3) - surface(z - step * unit, 3)) / (2 * step)
        np.testing.assert_allclose(slopes(z, 3)[..., d], difference, rtol=1e-8)


def test_truths_are_those_of_another_rule():
    exact, _ = dblquad(lambda b, a: surface(np.array([[a, b]]), 1)[0, 0], 0, 1, 0, 1)
    assert Setup().truths[0] == pytest.approx(exact, abs=1e-5)
    square, _ = dblquad(lambda b, a: surface(np.array([[a, b]]), 1)[0, 0] ** 2, 0, 1, 0, 1)
    assert setup_of(("target", "variance")).truths[0] == pytest.approx(square - exact**2, abs=1e-4)


def test_noise_is_a_function_of_the_location():
    noisy, x = Simulator(setup_of(("noise", "learned")), 0), np.array([0.2, 0.4])
    assert noisy(x) == noisy(x) != noisy(x + 1e-9)
    draws = [noisy(x + 1e-9 * k) for k in range(400)]
    assert np.std(draws) == pytest.approx(0.05, rel=0.15)


def test_the_array_covers_all_pairs_but_those_that_are_refused():
    refused = [
        frozenset([("values", "log"), ("free", "free")]),
        frozenset([("cost", "measured"), ("stop", "tolerance")]),
    ]
    found = [{(factor, getattr(setup, factor)) for factor in LEVELS} for setup in covering(refused)]
    have = {frozenset(pair) for levels in found for pair in combinations(levels, 2)}
    all_levels = [(factor, level) for factor, levels in LEVELS.items() for level in levels]
    wanted = {frozenset(pair) for pair in combinations(all_levels, 2) if pair[0][0] != pair[1][0]}
    assert have == wanted - set(refused)
    assert len(found) < 45


def test_pairs_and_triples_are_of_different_factors():
    assert len(pairs()) == 278
    assert all(len(dict(features)) == len(features) for features in (*pairs(), *triples(20)))
