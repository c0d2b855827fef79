"""Figures and pages of runs with several outputs: all of them, and details of one at a time."""

import json
import math
import re

import numpy as np
import pytest

import amsbq
from amsbq.results.result import furthest, primary_values
from amsbq.visualization.live import LEARNING, LiveContent
from amsbq.visualization.report import content, report
from tests.visualization.test_report import browser, browser_needed  # noqa: F401 (a fixture)
from tests.waiting import eventually

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
import matplotlib.pyplot as plt  # noqa: E402

from amsbq import plots  # noqa: E402

NASTY = "<b>time</b>"
HEIGHTS = np.linspace(0.1, 1.0, 12)


def fine(x):
    return {"peak": math.exp(-x[0]), NASTY: 10 + x[0] * x[1], "balance": math.sin(6 * x[0]) - 0.3}


def coarse(x):
    return [math.exp(-x[0]) + 0.1, 10.2 + x[0] * x[1]]


def profile(x):
    return np.exp(-x[0] * HEIGHTS) * (1 + x[1] * HEIGHTS**2)


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    path = tmp_path_factory.mktemp("outputs") / "run.jsonl"
    sources = [fine, amsbq.Source(coarse, cost=0.1, outputs=["peak", NASTY])]
    options = {"outputs": ["peak", NASTY, "balance"], "model": "icm", "progress": False}
    amsbq.integrate(sources, [(0, 1), (0, 1)], budget=5, journal=path, **options)
    return path


@pytest.fixture(scope="module")
def result(journal):
    return amsbq.read_result(journal)


@pytest.fixture(scope="module")
def page_file(journal):
    return report(journal, journal.with_suffix(".html"))


def held(path):
    """What the page holds for its script."""
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL).group(1))


@pytest.fixture(scope="module")
def many():
    return amsbq.integrate(profile, [(0, 2), (0, 1)], budget=6, outputs=len(HEIGHTS), model="icm", progress=False)


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")


def test_a_profile_is_a_curve_with_its_band(many):
    ax = plots.outputs(many, at=HEIGHTS[::-1])
    [line] = [line for line in ax.get_lines() if line.get_label() == "mean"]
    assert np.array_equal(line.get_xdata(), HEIGHTS)
    assert np.array_equal(line.get_ydata(), many.mean[::-1])
    band = ax.collections[0].get_paths()[0].vertices
    low, high = many.interval(0.95)
    assert (band[:, 1].min(), band[:, 1].max()) == (low.min(), high.max())
    numbered = plots.outputs(many).get_lines()[0]
    assert np.array_equal(numbered.get_xdata(), np.arange(12))
    with pytest.raises(ValueError, match="at"):
        plots.outputs(many, at=[1, 2, 3])


def test_named_outputs_are_bars_relative_to_their_means(result):
    _, ax = plt.subplots()
    assert plots.outputs(result, ax) is ax
    low, high = result.interval(0.95)
    spread = np.std([e.value[2] for e in result.evaluations if e.source == 0])
    assert spread > abs(result.mean[2])
    scale = np.array([*np.abs(result.mean[:2]), spread]) / 100
    drawn = np.array([segment[:, 0] for segment in ax.collections[0].get_segments()])
    assert drawn == pytest.approx(np.column_stack([low - result.mean, high - result.mean]) / scale[:, None])
    assert "of balance: of the spread of its values" in ax.get_xlabel()
    assert [label.get_text().split("\n")[0] for label in ax.get_yticklabels()] == ["peak", NASTY, "balance"]
    [one] = plots.outputs(result["peak"]).collections[0].get_segments()
    assert one[:, 0] == pytest.approx(drawn[0])


def test_runs_are_compared_by_output(result):
    figure = plots.compare({"of one": result["balance"], "of all": result})
    drawn = {ax.get_ylabel(): [line.get_label() for line in ax.get_lines()] for ax in figure.axes[::2]}
    assert drawn["integral of balance"] == ["of one", "of all"]
    assert drawn["integral of peak"] == drawn[f"integral of {NASTY}"] == ["of all"]
    assert len({ax.get_lines()[-1].get_color() for ax in figure.axes[::2]}) == 1  # a run has one colour


def test_the_page_shows_all_outputs_and_details_of_each(result, page_file):
    text, shown = page_file.read_text("utf-8"), held(page_file)
    assert [row["name"] for row in shown["answers"]] == ["peak", NASTY, "balance"]
    for name, row in zip(result.outputs, shown["answers"], strict=True):
        mean, _, rest = result[name].estimate.summary().partition(" (std)")
        assert row["mean"] == mean
        assert rest.endswith(f"between {row['interval']}")
    assert max(row["share"] for row in shown["answers"]) == 1
    assert list(shown["parts"]) == list(result.outputs)
    assert shown["chosen"] == furthest(result).output
    for name, part in shown["parts"].items():
        assert [finding["text"] for finding in part["findings"]] == [found.text for found in result[name].diagnose()]
        assert {"convergence", "sources", "output"} <= {figure["id"] for figure in part["figures"]}
    assert NASTY not in text.replace('id="library"', "").split('id="data"')[0]
    assert shown["profile"] == []
    alone = content(amsbq.read_result(page_file.with_suffix(".jsonl"), model=False)["peak"])
    assert (alone["answers"], list(alone["parts"])) == ([], ["peak"])


def test_what_a_page_offers_and_its_settings_are_in_the_words_of_the_run(tmp_path):
    def solve(x, cells):
        return [x[0] + 1 / cells, x[0] ** 2]

    sources = amsbq.levels(solve, cells=[40, 20], cost=lambda cells: (cells / 120) / (1 / 3))
    result = amsbq.integrate(
        sources, [(0, 1)], budget=3, outputs=["p", "q"], labels={"q": "time & place"}, progress=False
    )
    text = report(result, tmp_path / "page.html").read_text("utf-8")
    options = re.findall(r'<option value="(\w)"(?: selected)?>(.*?)</option>', text)
    assert options == [("p", "p"), ("q", "time &amp; place")]
    assert "cells=40; cost 1, noise variance 0, fidelity 0.025 of cells (0: the limit)" in text
    assert "cells=20; cost 0.5, noise variance 0, fidelity 0.05 of cells (0: the limit)" in text


def test_of_many_outputs_the_page_has_a_profile_and_details_of_those_that_are_furthest(many):
    shown = content(many)
    [chart] = shown["profile"]
    line = next(trace for trace in chart["panels"][0]["traces"] if trace["name"] == "mean")
    assert line["x"] == list(range(12))
    assert line["y"] == pytest.approx(many.mean, rel=1e-5)
    furthest = sorted(np.argsort(many.std / np.fmax(np.abs(many.mean), np.std(primary_values(many), axis=0)))[-3:])
    assert list(shown["parts"]) == [str(m) for m in furthest]


def test_the_live_page_has_details_of_each_output_as_soon_as_they_are_known(journal):
    with LiveContent(journal) as live:
        first = live.current()
        assert list(first["parts"]) == ["peak", NASTY, "balance"]
        assert [row["name"] for row in first["answers"]] == ["peak", NASTY, "balance"]
        assert all("convergence" in {f["id"] for f in part["figures"]} for part in first["parts"].values())
        assert eventually(lambda: all(part["findings"] != LEARNING for part in live.current()["parts"].values()))
        assert all("rates" in {f["id"] for f in part["figures"]} for part in live.current()["parts"].values())


def test_a_source_that_lacks_an_output_is_not_asked_for_it(result):
    view = result["balance"].integrator
    assert view.preview().source == 0
    assert view.forecast(8)[-1][1] < result.std[2]
    assert 1 not in result.integrator.policy.failures.retired


@browser_needed
@pytest.mark.browser
def test_the_reader_chooses_an_output(result, page_file, tmp_path, browser):  # noqa: F811
    page, complaints = browser.new_page(viewport={"width": 1280, "height": 900}), []
    page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(page_file.as_uri())
    assert [cell.inner_text() for cell in page.query_selector_all("#answers td:first-child")] == list(result.outputs)
    for m, (name, part) in enumerate(held(page_file)["parts"].items()):
        page.select_option("#chosen", name)
        page.locator("#plot-convergence").scroll_into_view_if_needed()
        page.wait_for_selector("#plot-convergence .picture")
        assert result.estimate[m].summary() in page.inner_text("#first figcaption")
        assert part["findings"][0]["text"] in page.inner_text("#findings")
        assert part["output"][0][1] in page.inner_text("#output")
        headings = [th.inner_text() for th in page.query_selector_all("#evaluations th")]
        assert [heading for heading in headings if heading.startswith("value")] == [f"value.{name}"]
    with page.expect_download() as waiting:
        page.click("#csv")
    waiting.value.save_as(tmp_path / "all.csv")
    assert {f"value.{name}" for name in result.outputs} <= set(
        (tmp_path / "all.csv").read_text().split("\r")[0].split(",")
    )
    assert complaints == []
    page.close()
