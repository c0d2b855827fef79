"""The gallery: its examples run, their truths are true, and the site shows the results of the code that is there."""

import functools
import runpy
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad, solve_ivp

import amsbq
from docs import gallery

#: the truths that the site shows
TRUTHS = {name: found["answers"][0]["truth"] for name, found in gallery.stored().items()}


@pytest.fixture
def example(monkeypatch):
    """Return what a script of the gallery defines, by the name of its page."""
    pytest.importorskip("matplotlib").use("agg")

    def load(name):
        script = gallery.files(name)[0]
        monkeypatch.syspath_prepend(script.parent)
        return runpy.run_path(str(script))

    yield load
    sys.modules["matplotlib.pyplot"].close("all")


def test_the_results_are_those_of_the_code():
    """After a change of an example: python docs/gallery.py."""
    stored = gallery.stored()
    assert list(stored) == list(gallery.EXAMPLES)
    assert {name: stored[name]["digest"] for name in stored} == {name: gallery.digest(name) for name in stored}
    for name, found in stored.items():
        assert found["seconds"] < 60
        assert (gallery.FOLDER / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_digests_follow_the_code(monkeypatch, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("1")
    monkeypatch.setattr(gallery, "files", lambda name: [script])
    before = gallery.digest("well")
    script.write_text("2")
    assert gallery.digest("well") != before


def test_the_table_says_whether_an_interval_holds_the_truth():
    zeros = {"name": "drop", "mean": 3.9932, "std": 0.02, "interval": [3.96, 4.03], "truth": 3.9916}
    [line] = gallery.table({"well": {"answers": [zeros]}}).splitlines()[2:]
    assert line.endswith("| drop | 3.9916 | 3.993 ± 0.020 | +0.0016 | 3.960 to 4.030 | yes |")
    answer = {"name": "peak", "mean": 70.391, "std": 0.64, "interval": [69.21, 71.39], "truth": 70.4906}
    lines = gallery.table({"epidemic": {"answers": [answer, {**answer, "truth": 72.0}]}}).splitlines()
    assert lines[2].endswith("| peak | 70.491 | 70.39 ± 0.64 | -0.100 | 69.21 to 71.39 | yes |")
    assert lines[3].endswith("| no |")


def test_a_page_has_question_answer_and_code():
    page = gallery.as_markdown("well")
    assert page.startswith("# The drawdown of a well\n\n**How far does a well draw down the groundwater?")
    assert "expected drawdown: " in page
    assert 'title="examples/cluster/well.awk"' in page
    assert "&aquifer" in page


@pytest.mark.filterwarnings("ignore")  # of so few values little is learned
@pytest.mark.parametrize("name", ["reliability", "windfarm", "option", "well"])
def test_it_runs_and_draws(example, monkeypatch, name):
    """With a budget and a model for seconds; those that are in `tests/test_examples.py` run there."""
    pytest.importorskip("distributed")
    module = example(name)
    monkeypatch.setattr(amsbq, "integrate", functools.partial(amsbq.integrate, model="icm"))
    result = module["run"](2.2)
    assert result.spent > 2
    assert len(module["draw"](result).axes) >= 2


def test_a_roof_beam(example):
    """The elements agree with the solution of the differential equation, by a third method."""
    module = example("reliability")
    snow, stiffness, force = 1.6, 2.0, 120.0
    deflection = module["analysis"](snow, stiffness, force)
    assert deflection == pytest.approx(module["exact"](snow, stiffness, force), rel=1e-6)
    # by bending moments: EI w'' = -(M + P w) from one end, with the slope that makes w zero at the other
    bending, q, span = stiffness * 1e3, snow + module["WEIGHT"], module["SPAN"]

    def sag(t, slope):
        def change(x, w):
            return [w[1], -(q * x * (span - x) / 2 + force * w[0]) / bending]

        return solve_ivp(change, (0, t), [0, slope], rtol=1e-10, atol=1e-12).y[0, -1]

    ends = sag(span, 0.0), sag(span, 1.0)
    assert 1e3 * sag(span / 2, -ends[0] / (ends[1] - ends[0])) == pytest.approx(deflection, rel=1e-6)
    assert module["handbook"](snow, stiffness) == pytest.approx(module["exact"](snow, stiffness, 1e-3), rel=1e-4)
    assert module["truth"](400_000) == pytest.approx(TRUTHS["reliability"], rel=0.04)


def test_a_wind_farm(example):
    """In the wind's direction that puts no turbine behind another one, all yield what they would alone."""
    module = example("windfarm")
    alone = 9 * module["GIGAWATT_HOURS"] * module["power"](10.0)
    module["PLACES"][:] = np.column_stack([np.zeros(9), np.arange(9) * 3000.0])  # a row across the wind
    for source, others in (("simulator", (0.1,)), ("sharp", ())):
        assert module[source](10.0, 270.0, *others) == pytest.approx(alone, rel=1e-9)
        assert module[source](10.0, 180.0, *others) < 0.99 * alone


def test_an_option_on_an_option(example):
    """Without interest the tree converges to the price of a European put; the truth is a mean of random values."""
    module = example("option")
    volatility = 0.3
    module["american"].__globals__["RATE"] = 0.0
    d = np.array([volatility / 2, -volatility / 2])
    put = 100 * (stats.norm.cdf(d[0]) - stats.norm.cdf(d[1]))
    assert module["american"](100.0, volatility, 2000) == pytest.approx(put, rel=1e-3)
    module = example("option")  # with interest
    values = [module["coarse"](*x) for x in module["INPUTS"].sample(2000, np.random.default_rng(0))]
    assert abs(np.mean(values) - TRUTHS["option"]) < 4 * np.std(values) / np.sqrt(2000)


def test_an_ignition(example):
    """The solver agrees with the integral over the temperature, and the truth with random inputs."""
    module = example("ignition")
    for x in ((1000.0, 170.0, 5.0), (1190.0, 165.0, 3.0)):
        assert module["simulator"](*x) == pytest.approx(module["exact"](*x)[0], rel=1e-5)
    rng = np.random.default_rng(0)
    values = module["exact"](*(inputs.rvs(20_000, random_state=rng) for inputs in module["INPUTS"].values()))
    assert abs(values.mean() - TRUTHS["ignition"]) < 4 * values.std() / np.sqrt(2e4)
    assert module["truth"](24)[0] == pytest.approx(TRUTHS["ignition"], rel=1e-6)


def test_a_well(example):
    """The program agrees with the formula of Theis, and the truth with random inputs."""
    pytest.importorskip("distributed")
    module = example("well")
    assert module["theis"](300.0, 3e-4, 1500.0) == pytest.approx(
        1500 / (1200 * np.pi) * quad(lambda v: np.exp(-v) / v, 2500 * 3e-4 / 12000, np.inf, limit=200)[0], rel=1e-6
    )
    deck = (module["HERE"] / "well.deck").read_text()
    grid = {"transmissivity": 300.0, "storage": 3e-4, "rate": 1500.0, "cells": 400, "steps": 800}
    for name, value in grid.items():
        deck = deck.replace(f"{{{name}}}", str(value))
    awk = ["awk", "-f", module["HERE"] / "well.awk"]
    report = subprocess.run(awk, input=deck, capture_output=True, text=True, check=True).stdout
    assert float(report.split()[-2]) == pytest.approx(module["theis"](300.0, 3e-4, 1500.0), rel=1e-3)

    rng = np.random.default_rng(0)
    values = module["theis"](*(inputs.rvs(200_000, random_state=rng) for inputs in module["INPUTS"].values()))
    assert abs(values.mean() - module["truth"]()) < 4 * values.std() / np.sqrt(2e5)
