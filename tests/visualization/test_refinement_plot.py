"""The picture of refinements: the integral of each level against a knob, down to the limit."""

import numpy as np
import pytest

import amsbq
from amsbq.visualization import curves
from amsbq.visualization.plotly_figures import charts

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")

from amsbq import plots  # noqa: E402


def solve(x, h, dt):
    return x[0] + h**2 * (1 + x[0]) + dt


def finished(limit, knobs=None):
    made = amsbq.levels(solve, **(knobs or {"h": [0.1, 0.2, 0.4], "dt": [0.1]}), cost=lambda h, dt: 0.01 / (h * dt))
    if knobs is None:
        for source in made:
            source.fidelity = {"h": source.fidelity["h"]}
    return amsbq.integrate(made, [(0, 1)], budget=4, limit=limit, seed=0)


@pytest.fixture(scope="module")
def result():
    return finished(True)


def test_what_is_shown_is_what_is_known(result):
    (seen,) = curves.refinements(result)
    assert (seen.knob, seen.sizes.tolist()) == ("h", [0.0, 0.1, 0.2, 0.4])
    assert seen.sources.tolist() == [-1, 0, 1, 2]
    assert (seen.mean[0], (seen.low[0], seen.high[0])) == (result.mean, result.interval())
    truth = 0.5 + 0.1 + 1.5 * seen.sizes**2
    assert ((seen.low <= truth) & (truth <= seen.high)).all()
    ax = plots.refinement(result)
    assert ax.get_xlabel() == "fidelity of h"
    assert {"limit", "h=0.1, dt=0.1"} <= set(ax.get_legend_handles_labels()[1])
    assert plots.refinement(result, ax, "h") is ax
    (chart,) = [chart for chart in charts(result) if chart["id"] == "refinement"]
    drawn = [trace["y"][0] for trace in chart["panels"][0]["traces"] if trace["mode"] == "markers"]
    np.testing.assert_allclose(drawn, seen.mean, rtol=1e-3)


def test_without_the_limit_there_is_none():
    (seen,) = curves.refinements(finished(False))
    assert seen.sources.tolist() == [0, 1, 2]


@pytest.fixture(scope="module")
def found():
    return finished(True, {"h": [0.1, 0.4], "dt": [0.1, 0.2]})


def test_a_panel_for_each_knob(found):
    panels = plots.refinement(found)
    assert [panel.get_xlabel() for panel in panels] == ["fidelity of h", "fidelity of dt"]
    of_h, of_dt = curves.refinements(found)
    assert (of_h.sources.tolist(), of_dt.sources.tolist()) == ([-1, 0, 2], [-1, 0, 1])  # others as fine as they can
    assert plots.refinement(found, knob="dt").get_xlabel() == "fidelity of dt"
    with pytest.raises(ValueError, match="knob must be one of h, dt, got 'k'"):
        plots.refinement(found, knob="k")


def test_the_page_tells_how_errors_shrink(found):
    [chart] = [chart for chart in charts(found) if chart["id"] == "refinement"]
    captions = [seen.caption for seen in curves.refinements(found)]
    assert [panel["layout"]["xaxis"]["title"]["text"] for panel in chart["panels"]] == [
        "fidelity of h",
        "fidelity of dt",
    ]
    assert chart["caption"].endswith(f": {'; '.join(captions)}.")
    assert "errors shrink with h: exponent " in chart["caption"]


def test_how_often_each_level_of_two_knobs_was_evaluated(found):
    seen = curves.level_grid(found)
    assert (seen.knobs, seen.ticks) == (("h", "dt"), (["0.1", "0.4"], ["0.1", "0.2"]))
    for column, h in enumerate((0.1, 0.4)):
        for row, dt in enumerate((0.1, 0.2)):
            of = [e for e in found.evaluations if found.names[e.source] == f"h={h}, dt={dt}"]
            assert seen.counts[row, column] == len(of) > 0
            assert seen.cost[row, column] == pytest.approx(sum(e.cost for e in of))
    ax = plots.levels(found)
    texts = {text.get_position(): text.get_text() for text in ax.texts}
    assert texts == {(c, r): f"{seen.counts[r, c]:.0f}" for r in (0, 1) for c in (0, 1)}
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("h", "dt")
    (chart,) = [chart for chart in charts(found) if chart["id"] == "levels"]
    (trace,) = chart["panels"][0]["traces"]
    assert trace["text"] == [[f"{count:.0f}" for count in row] for row in seen.counts]
    np.testing.assert_allclose(trace["z"], np.log1p(seen.counts) / np.log1p(seen.counts).max(), atol=1e-4)


def test_combinations_that_do_not_exist_are_left_out():
    made = amsbq.levels(solve, h=[0.1, 0.4], dt=[0.1, 0.2], cost=lambda h, dt: 0.01 / (h * dt))[:3]
    seen = curves.level_grid(amsbq.integrate(made, [(0, 1)], budget=3, seed=0))
    assert np.isnan(seen.counts).tolist() == [[False, False], [False, True]]


def test_runs_without_fidelities_have_no_such_picture():
    found = amsbq.integrate(lambda x: x[0], [(0, 1)], budget=4)
    assert all(chart["id"] != "refinement" for chart in charts(found))
    with pytest.raises(ValueError, match="there are no sources with a fidelity"):
        plots.refinement(found)


def test_levels_of_one_knob_have_no_grid(result):
    assert all(chart["id"] != "levels" for chart in charts(result))
    with pytest.raises(ValueError, match="the sources are not levels of two knobs"):
        plots.levels(result)
