"""Figures of the output beyond its mean."""

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.results.analysis import quickly_known
from amsbq.results.summary import as_json
from amsbq.visualization.curves import output_curve
from amsbq.visualization.plotly_figures import output_charts
from amsbq.visualization.report import output_rows
from tests.posterior.known import seen

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
import matplotlib.pyplot as plt  # noqa: E402

from amsbq import plots  # noqa: E402


@pytest.fixture(scope="module")
def result():
    return seen(lambda x: 2 * x[0] + x[1], [stats.norm(), stats.norm()], 40, 12.0, ["a", "b <i>"], 1e4)


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")


def test_the_density_is_drawn_with_its_quantiles(result):
    ax = plots.distribution(result)
    (line,) = (line for line in ax.get_lines() if line.get_label() == "density")
    t, density = line.get_data()
    assert np.trapezoid(density, t) == pytest.approx(1.0, abs=0.02)
    np.testing.assert_allclose(density, stats.norm(0, np.sqrt(5)).pdf(t), atol=6e-3)
    curve = output_curve(result)
    assert (curve.low <= curve.density + 1e-12).all()
    np.testing.assert_allclose(curve.quantiles.mean, stats.norm(0, np.sqrt(5)).ppf([0.05, 0.5, 0.95]), atol=0.02)


def test_bars_are_the_indices(result):
    ax = plots.sensitivity(result)
    widths = [patch.get_width() for patch in ax.patches]
    assert widths == pytest.approx([0.8, 0.2, 0.8, 0.2], abs=1e-3)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b <i>"]
    _, axes = plt.subplots()
    assert plots.sensitivity(result, axes) is axes


def test_the_page_has_them_unless_that_takes_long(result):
    output, sensitivity = output_charts(result)
    assert (output["id"], sensitivity["id"]) == ("output", "sensitivity")
    assert sensitivity["panels"][0]["traces"][0]["y"] == ["a", "b &lt;i&gt;"]
    assert dict(output_rows(result))["inputs"].startswith("a matters most: it explains 80 % of the variance")
    assert not quickly_known(amsbq.baselines.monte_carlo(lambda x: x[0], amsbq.Uniform(0, 1), budget=4).integrator)
    dependent = seen(lambda x: x[0], amsbq.Gaussian([0, 0], [[1, 0.5], [0.5, 1]]), 8, 4.0)
    assert [chart["id"] for chart in output_charts(dependent)] == ["output"]
    assert "inputs" not in dict(output_rows(dependent))


def test_other_programs_get_them(result):
    told = as_json(result)
    assert told["output"]["std"]["mean"] == pytest.approx(np.sqrt(5), rel=1e-4)
    assert told["output"]["quantile 0.95"]["mean"] == pytest.approx(stats.norm(0, np.sqrt(5)).ppf(0.95), abs=0.02)
    assert [row["input"] for row in told["sensitivity"]] == ["a", "b <i>"]
    assert told["sensitivity"][0]["first"]["mean"] == pytest.approx(0.8, abs=1e-3)
