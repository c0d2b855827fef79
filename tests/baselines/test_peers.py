"""The same allocations by other packages, where they are installed: MXMCPy and PyApprox."""

import numpy as np
import pytest

from amsbq.baselines.best_linear import all_groups, precisions, relaxed_allocation, variance_of
from amsbq.baselines.multifidelity import best_order, nested_counts, nested_variance
from tests.baselines.problems import ISHIGAMI_COSTS, ishigami_covariance

COVARIANCE, BUDGET = ishigami_covariance(), 1000.0


def mlblue_variance():
    groups = all_groups(3)
    prices, P = np.array([ISHIGAMI_COSTS[list(g)].sum() for g in groups]), precisions(COVARIANCE, groups)
    return variance_of(np.tensordot(relaxed_allocation(P, prices, BUDGET, np.zeros((3, 3))), P, 1))


def test_multifidelity_monte_carlo_of_mxmcpy():
    mxmc = pytest.importorskip("mxmc")
    theirs = mxmc.Optimizer(ISHIGAMI_COSTS, COVARIANCE).optimize("mfmc", BUDGET)
    order = best_order(COVARIANCE, ISHIGAMI_COSTS)
    ours = nested_counts(COVARIANCE, ISHIGAMI_COSTS, order, BUDGET, 1)
    np.testing.assert_allclose(ours, theirs.allocation.get_number_of_samples_per_model(), rtol=0.01, atol=1)
    assert nested_variance(COVARIANCE, np.array(ours)) == pytest.approx(theirs.variance, rel=0.01)
    assert mlblue_variance() < theirs.variance
    multilevel = mxmc.Optimizer(ISHIGAMI_COSTS, COVARIANCE).optimize("mlmc", BUDGET)
    assert mlblue_variance() < multilevel.variance


def test_mlblue_of_pyapprox():
    statest = pytest.importorskip("pyapprox.statest")
    allocation = pytest.importorskip("pyapprox.statest.groupacv.allocation")
    backend = pytest.importorskip("pyapprox.util.backends.numpy").NumpyBkd()
    mean = statest.MultiOutputMean(1, backend)
    mean.set_pilot_quantities(COVARIANCE)
    estimator = statest.MLBLUEEstimator(mean, ISHIGAMI_COSTS)
    theirs = allocation.GroupACVAllocationOptimizer(estimator).optimize(BUDGET, round_nsamples=False)
    assert mlblue_variance() == pytest.approx(float(np.exp(theirs.objective_value[0])), rel=1e-3)
