"""What the experiments make of tables of runs."""

import numpy as np
import pytest

from amsbq.experiments.study import costs_of_accuracy, errors_at_costs


def test_errors_and_costs_of_runs():
    pandas = pytest.importorskip("pandas")
    runs = pandas.DataFrame(
        [
            {"seed": 0, "spent": 1.0, "mean": np.nan, "truth": 2.0},
            {"seed": 0, "spent": 2.0, "mean": 3.0, "truth": 2.0},
            {"seed": 0, "spent": 3.0, "mean": 2.1, "truth": 2.0},
        ]
    )
    np.testing.assert_allclose(
        errors_at_costs(runs, np.array([0.5, 1.5, 2.0, 2.9, 3.0, 9.0]))[0], [np.nan] * 2 + [0.5, 0.5, 0.05, 0.05]
    )
    assert costs_of_accuracy(runs, 0.1) == [3.0]
    assert costs_of_accuracy(runs, 0.01) == [np.inf]
