"""The integrals that the benchmarks call exact."""

import numpy as np
import pytest
from scipy.stats import qmc

import amsbq
from benchmarks.problems import problems

PROBLEMS = problems()


def test_there_are_enough_of_them():
    assert len(PROBLEMS) >= 30
    assert len({problem.name for problem in PROBLEMS}) == len(PROBLEMS)
    assert {problem.measure.dim for problem in PROBLEMS} >= {1, 2, 4, 8}
    assert {len(problem.sources) for problem in PROBLEMS} == {2, 3}


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_integral_by_monte_carlo(problem):
    if isinstance(problem.measure, amsbq.Uniform):
        low, high = problem.measure.bounds.T
        X = low + (high - low) * qmc.Sobol(problem.measure.dim, seed=0).random_base2(16)
        tolerance = 3e-3  # of a standard deviation: quasi-Monte Carlo with 65,536 points, some of them discontinuous
    else:
        X, tolerance = problem.measure.sample(400_000, 0), 5 / np.sqrt(400_000)
    values = problem.sources[0](X)
    assert values.shape == (len(X),)
    assert abs(values.mean() - problem.integral) < tolerance * values.std()
    for secondary in problem.sources[1:]:
        assert secondary(X[:5]).shape == (5,)


SMOOTH_ON_A_BOX = [
    problem
    for problem in PROBLEMS
    if problem.measure.dim <= 2
    and isinstance(problem.measure, amsbq.Uniform)
    and problem.family not in ("cusp", "discontinuous")
]


@pytest.mark.parametrize("problem", SMOOTH_ON_A_BOX, ids=lambda p: p.name)
def test_integral_by_gauss_rules(problem):
    t, w = np.polynomial.legendre.leggauss(400)
    t, w = (1 + t) / 2, w / 2
    X = np.stack(np.meshgrid(*[t] * problem.measure.dim, indexing="ij"), axis=-1).reshape(-1, problem.measure.dim)
    weights = w if problem.measure.dim == 1 else np.outer(w, w).ravel()
    rtol = 1e-6 if problem.name == "power" else 1e-10  # x^0.3 is not smooth at 0
    np.testing.assert_allclose(weights @ problem.sources[0](X), problem.integral, rtol=rtol)
