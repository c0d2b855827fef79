"""The page of a run: its numbers are those of the journal, its text is text, and it works in a real browser."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.execution.journal import Journal
from amsbq.visualization.report import report

NASTY = "<script>alert('x')</script> & \"co\""
CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)


def fine(x):
    if x[0] > 0.95:
        raise RuntimeError("no <b>convergence</b>\nat all")
    return float(np.sin(5 * x[0]) + x[-1])


def coarse(x):
    return float(np.sin(5 * x[0]) + 0.2)


def script_data(path):
    """What the page holds for its script, as text."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)
    return found.group(1)


def content(path):
    found = json.loads(script_data(path))
    return {**found, **found["parts"][found["chosen"]]}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Journals of runs with one, two and six inputs; the second has a name that is no name, and failures."""
    folder = tmp_path_factory.mktemp("runs")
    options = {"model": "icm", "progress": False}
    one = [amsbq.Source(fine, name="alone")]
    amsbq.integrate(one, [stats.norm(0.4, 0.1)], budget=5, journal=folder / "one.jsonl", **options)
    two = [amsbq.Source(fine, name=NASTY), amsbq.Source(coarse, cost=0.1, name="coarse")]
    initial = [(0, [0.2, 0.3]), (0, [0.97, 0.5]), (1, [0.2, 0.3]), (1, [0.9, 0.9])]
    amsbq.integrate(two, [(0, 1), (0, 1)], budget=6, initial=initial, journal=folder / "two.jsonl", **options)
    four = [amsbq.Source(lambda x, l=l: coarse(x) + 0.1 * l, cost=10.0**-l, name=f"level {l}") for l in range(4)]
    six = amsbq.Uniform(np.zeros(6), 0.9)
    amsbq.integrate(four, six, budget=1e6, max_evaluations=24, journal=folder / "six.jsonl", **options)
    return {path.stem: path for path in folder.glob("*.jsonl")}


@pytest.fixture(scope="module")
def results(runs):
    """What the journals tell."""
    return {name: amsbq.read_result(path) for name, path in runs.items()}


@pytest.fixture(scope="module")
def pages(runs):
    """The pages of the journals, next to them."""
    return {name: report(path, path.with_suffix(".html")) for name, path in runs.items()}


@pytest.mark.parametrize("name", ["one", "two", "six"])
def test_the_numbers_are_those_of_the_journal(results, pages, name):
    page, result = pages[name], results[name]
    found = content(page)
    rows = result.rows()
    assert len(found["rows"]) == len(rows)
    for number, (row, known) in enumerate(zip(found["rows"], rows, strict=True), 1):
        got = dict(zip(found["columns"], row, strict=True))
        assert got.pop("evaluation") == number
        assert got == {key: None if value != value else value for key, value in known.items()}
    text = page.read_text("utf-8")
    assert result.estimate.summary().split(" ± ")[0] in re.search(r'id="mean">(.*?)<', text).group(1)
    for finding in result.diagnose():
        assert finding.text in unescape(text)
        assert finding.advice in unescape(text)
    names = [figure["id"] for figure in found["figures"]]
    alone = ["convergence", "sequence", "sources", "rates", "forecast", "residuals", "output"]
    more = {"one": [], "two": ["sensitivity"], "six": ["sensitivity", "correlation"]}[name]
    assert sorted(names) == sorted([*alone, *more])  # costs are constant, and one correlation is a number
    related = [value for key, value in found["output"] if key.startswith("correlation of coarse with ")]
    assert len(related) == (name == "two")
    assert result.distribution().std().summary() in unescape(text)
    assert all(len(figure["panels"]) in (1, len(result.inputs)) for figure in found["figures"])


def test_nothing_is_fetched_and_text_is_text(pages):
    text = pages["two"].read_text("utf-8")
    assert not re.search(r'(src|href|url\()\s*[=(]?\s*["\']?(https?:)?//', text)
    assert "<script>alert" not in text
    assert "<b>convergence</b>" not in text
    assert NASTY in content(pages["two"])["rows"][0]
    assert not set("<>&") & set(script_data(pages["two"]))
    assert max(page.stat().st_size for page in pages.values()) < 4e5


def test_what_is_missing_is_named(results, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    report(results["one"], tmp_path / "page.html")  # which needs it for full pages only
    with pytest.raises(ImportError, match=r"pip install 'amsbq\[report\]'"):
        report(results["one"], tmp_path / "full.html", full=True)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'amsbq\[report\]'"):
        report(results["one"], tmp_path / "another.html")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_costs_that_vary_have_a_figure(tmp_path):
    """By the location, as they were paid, or because they are learned."""

    def paid(x):
        return amsbq.Observation(fine(x), cost=1 + x[0])

    for source in (
        amsbq.Source(fine, cost=lambda x: 1 + x[0]),
        amsbq.Source(paid),
        amsbq.Source(paid, cost="measured"),
    ):
        result = amsbq.integrate(source, (0, 0.9), budget=5, model="icm", progress=False)
        found = content(report(result, tmp_path / "page.html"))
        assert "costs" in [figure["id"] for figure in found["figures"]]


def test_links_are_not_followed(results, tmp_path):
    """Names that could be guessed, and the page itself, are links to a file that must not change."""
    victim, folder = tmp_path / "victim", tmp_path / "shared"
    victim.write_text("precious")
    folder.mkdir()
    for name in ("page.html", ".page.html", f".page.html.{os.getpid()}", "page.html.tmp", "page.tmp"):
        (folder / name).symlink_to(victim)
    page = report(results["one"], folder / "page.html")
    assert victim.read_text() == "precious"
    assert not page.is_symlink()
    assert page.stat().st_mode & 0o777 == 0o666 & ~current_umask()
    assert len(list(folder.iterdir())) == 5


def current_umask():
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def test_an_estimate_without_an_error_bar_is_shown_by_its_mean(tmp_path):
    result = amsbq.baselines.monte_carlo(amsbq.Source(coarse, name="alone"), [(0, 1)], budget=5)
    assert np.isnan(result.evaluations[0].std)
    found = content(report(result, tmp_path / "page.html"))
    [convergence] = [figure for figure in found["figures"] if figure["id"] == "convergence"]
    [markers] = [trace for trace in convergence["panels"][0]["traces"] if trace["name"] == "alone"]
    assert markers["text"][0] == f"{result.evaluations[0].mean:.6g}"
    assert markers["text"][-1].endswith("(std)")


def test_a_page_without_a_model_shows_the_distribution_that_the_journal_holds(tmp_path):
    path = tmp_path / "run.jsonl"
    amsbq.integrate(fine, amsbq.Uniform(0, 2), budget=3, model="icm", journal=path, progress=False)
    result = replace(amsbq.read_result(path), integrator=None)
    assert "Uniform([0.0], [2.0])" in report(result, tmp_path / "page.html").read_text("utf-8")


@pytest.mark.front_door
def test_a_page_of_a_run_without_its_model(tmp_path):
    measure = amsbq.Product([stats.rv_histogram(np.histogram([0.1, 0.4, 0.5, 0.9], bins=3))()])  # cannot be rebuilt
    gp = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF(0.3))], measure)
    path = tmp_path / "run.jsonl"
    result = amsbq.integrate(fine, measure, budget=4, model=gp, journal=path, progress=False)
    page = report(path, tmp_path / "page.html").read_text("utf-8")
    assert "does not hold enough to rebuild it" in page
    assert "Product, which the journal does not hold" in page
    assert [figure["id"] for figure in content(tmp_path / "page.html")["figures"]] == ["convergence", "sequence"]
    report(result, tmp_path / "whole.html")  # the result itself knows
    assert len(content(tmp_path / "whole.html")["figures"]) == 7


def test_a_page_of_a_run_that_has_just_begun(tmp_path):
    it = amsbq.Integrator([fine], [(0, 1)], budget=3)
    from amsbq.execution.resume import begin_or_resume

    with Journal(tmp_path / "run.jsonl") as journal:
        begin_or_resume(journal, it)
    text = report(tmp_path / "run.jsonl", tmp_path / "page.html", refresh=5).read_text("utf-8")
    assert "No answer yet" in text
    assert "fine has no value." in text
    assert content(tmp_path / "page.html")["refresh"] == 5


def test_two_thousand_evaluations_are_no_more_than_a_megabyte_and_a_half(tmp_path):
    it = amsbq.Integrator([amsbq.Source(name="fine", noise=1e-4)], amsbq.Uniform([0, 0], 1), model="vbq", initial=[])
    X = np.random.default_rng(0).uniform(size=(2000, 2))
    for x in X:
        it.observe(0, x, fine(0.9 * x))
    page = report(it, tmp_path / "page.html")
    assert page.stat().st_size < 1.5e6
    assert len(content(page)["rows"]) == 2000


browser_needed = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def tabs(browser):
    """Opens each page once, and collects what the browser complains of, and whatever is fetched."""
    pages, complaints = {}, []

    def open_page(path, **options):
        key = path, *map(str, sorted(options.items()))
        if key not in pages:
            page = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options}).new_page()
            page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("request", lambda sent: complaints.append(sent.url) if sent.url.startswith("http") else None)
            page.goto(path.resolve().as_uri())
            pages[key] = page
        return pages[key]

    yield open_page, complaints
    for page in pages.values():
        page.context.close()


@pytest.fixture
def opened(tabs):
    """Opens pages, and sees to it that there are no complaints."""
    open_page, complaints = tabs
    yield open_page
    assert complaints == []


def drawn_in(page):
    """Scroll to each figure, which is drawn then, and yield it."""
    for plot in page.query_selector_all(".plot"):
        plot.scroll_into_view_if_needed()
        page.wait_for_selector(f"#{plot.get_attribute('id')} :is(.picture, .main-svg)")
        assert plot.get_attribute("aria-label")
        yield plot


@browser_needed
@pytest.mark.browser
@pytest.mark.parametrize("name", ["one", "two", "six"])
def test_it_works_in_a_browser(results, pages, opened, name):
    page, result = opened(pages[name]), results[name]
    assert page.inner_text("#mean") == result.estimate.summary().split(" ± ")[0]
    assert page.inner_text(".kicker strong") == result.names[0]
    for plot in drawn_in(page):
        frame = plot.bounding_box()
        for part in plot.query_selector_all("text, path, line"):  # nothing is wider than its figure
            box = part.bounding_box()
            assert box is None or box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
        assert "NaN" not in plot.inner_html()
    # the latest estimate, in words where the mouse is
    page.locator("#plot-convergence").scroll_into_view_if_needed()
    marker = page.locator("#plot-convergence g > path[transform]:not([fill=none])").last.bounding_box()
    page.mouse.move(marker["x"] + marker["width"] / 2, marker["y"] + marker["height"] / 2)
    tip = page.locator("#plot-convergence .tip")
    tip.wait_for()
    assert re.match(r"[-\d.]+ ± [\d.]+ \(std\) · ", tip.inner_text())
    page.mouse.move(0, 0)
    tip.wait_for(state="hidden")
    # another input
    if len(result.inputs) > 1:
        page.select_option("#input-sources", str(len(result.inputs) - 1))
        page.locator("#plot-sources text.title", has_text=result.inputs[-1]).wait_for()


@browser_needed
@pytest.mark.browser
def test_every_kind_of_figure_is_drawn(tmp_path, opened):
    """Among them those of a certificate, of levels, of costs and of three sources."""

    def solve(x, h):
        return float(np.sin(x[0]) + h)

    sources = amsbq.levels(solve, h=[0.1, 0.2, 0.4], cost=lambda h: 0.1 / h)
    result = amsbq.integrate(sources, [(0, 1), (0, 1)], budget=8, certify=0.4, limit=True, progress=False)
    page = opened(report(result, tmp_path / "page.html"))
    found = [plot.get_attribute("id").removeprefix("plot-") for plot in drawn_in(page)]
    assert {"convergence", "certificate", "refinement", "correlation", "sensitivity", "output"} <= set(found)
    page.hover("#plot-certificate g > path[transform]")
    assert re.match(r"\S+ \(95 %: \S+ to \S+\) · (model|certificate)", page.inner_text("#plot-certificate .tip"))


@browser_needed
@pytest.mark.browser
def test_names_and_numbers_of_many_levels_fit_on_a_telephone(tmp_path, opened):
    def solve(x, cells):
        return float(np.sin(x[0] + 1 / cells) + (50 / cells) ** 2)

    sources = amsbq.levels(
        solve, cells=[400, 200, 100, 50], cost=lambda cells: (cells / 400) ** 2, name="a column of soil"
    )
    result = amsbq.integrate(sources, [(0, 1)], budget=4, progress=False)
    page = opened(report(result, tmp_path / "page.html"), viewport={"width": 390, "height": 844})
    page.locator("#plot-correlation").scroll_into_view_if_needed()
    page.wait_for_selector("#plot-correlation .picture")
    plot = page.locator("#plot-correlation")
    frame = plot.bounding_box()
    texts = [(text.text_content(), text.bounding_box()) for text in plot.locator("svg.picture text").all()]
    names = [text for text, _ in texts if "=" in text]
    assert [name.partition("=")[2] for name in names] == ["400", "200", "100", "50"] * 2  # on either axis
    for i, (text, box) in enumerate(texts):
        assert frame["x"] <= box["x"]
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1, text
        for other, there in texts[:i]:
            aside = box["x"] >= there["x"] + there["width"] or there["x"] >= box["x"] + box["width"]
            assert aside or abs(box["y"] - there["y"]) > 8, (text, other)
        if "=" not in text:
            assert "…" not in text


@browser_needed
@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_answer_and_convergence_are_on_the_first_screen(pages, opened, width):
    page = opened(pages["two"], viewport={"width": width, "height": 844})
    page.wait_for_selector("#plot-convergence .picture")
    page.evaluate("window.scrollTo(0, 0)")
    for part in ("#mean", "#interval", "#spent", "#plot-convergence .picture"):
        box = page.locator(part).bounding_box()
        assert box["y"] + box["height"] <= 844
        assert box["x"] + box["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@browser_needed
@pytest.mark.browser
def test_findings_are_a_line_each_that_opens(results, pages, opened):
    page, found = opened(pages["two"]), results["two"].diagnose()
    lines = page.locator("#findings details")
    assert lines.count() == len(found)
    for i, finding in enumerate(found):
        line = lines.nth(i)
        assert finding.level in line.get_attribute("class")
        assert line.bounding_box()["height"] < 50
    advised = next(i for i, finding in enumerate(found) if finding.advice)
    lines.nth(advised).locator("summary").click()
    assert found[advised].advice in lines.nth(advised).inner_text()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#findings details[open]").count() == len(found)
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("#findings details[open]").count() == 1


#: where on the screen the latest estimate is, as Plotly draws it
LATEST = """() => {
    const plot = document.getElementById("plot-convergence"), { xaxis, yaxis } = plot._fullLayout;
    const line = plot.data.find((trace) => trace.name === "mean"), box = plot.getBoundingClientRect();
    const [x, y] = [line.x.at(-1), line.y.at(-1)];
    return [box.x + xaxis._offset + xaxis.d2p(x), box.y + yaxis._offset + yaxis.d2p(y)];
}"""


@browser_needed
@pytest.mark.browser
def test_figures_of_a_full_page_can_be_zoomed(results, runs, opened, tmp_path):
    result = results["two"]
    page = opened(report(runs["two"], tmp_path / "full.html", full=True))
    page.wait_for_selector("#plot-convergence .main-svg")
    for plot in drawn_in(page):
        # the toolbar, which is there when the mouse is, covers neither legend nor picture, and uploads nothing
        plot.hover()
        toolbar, *others = [
            part.bounding_box()
            for part in map(plot.query_selector, (".modebar-group", ".legend", ".plot"))
            if part is not None
        ]
        for other in others:
            assert toolbar["x"] >= other["x"] + other["width"] or other["x"] >= toolbar["x"] + toolbar["width"]
        said = [button.get_attribute("data-title") for button in plot.query_selector_all(".modebar-btn")]
        assert "Zoom" in said
        assert not any("hare" in text or "loud" in text for text in said)
    page.locator("#plot-convergence").scroll_into_view_if_needed()
    box = page.locator("#plot-convergence .nsewdrag").bounding_box()
    x, y = page.evaluate(LATEST)
    page.mouse.move(x - 30, y)
    page.mouse.move(x, y, steps=5)
    page.wait_for_selector("#plot-convergence .hoverlayer .hovertext")
    before = page.evaluate("document.getElementById('plot-convergence')._fullLayout.xaxis.range.slice()")
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.8 * box["height"], steps=5)
    page.mouse.up()
    page.wait_for_function(
        "r => document.getElementById('plot-convergence')._fullLayout.xaxis.range[0] > r[0]", arg=before
    )
    page.select_option("#input-sources", "1")
    page.wait_for_function(
        "t => document.getElementById('plot-sources')._fullLayout.xaxis.title.text === t", arg=result.inputs[-1]
    )


@browser_needed
@pytest.mark.browser
def test_the_table_is_sorted_and_saved(results, pages, tmp_path, opened):
    page, result = opened(pages["two"]), results["two"]
    values = [e.value for e in result.evaluations if e.status == "ok"]
    heading = page.locator("#evaluations th", has_text="value")
    column = [th.inner_text() for th in page.query_selector_all("#evaluations th")].index("value")

    def brief():
        cells = page.query_selector_all(f"#evaluations tbody td:nth-child({column + 1})")
        return [float(text) for text in (cell.inner_text() for cell in cells) if text]

    heading.locator("button").focus()
    page.keyboard.press("Enter")
    assert brief() == pytest.approx(sorted(values), rel=1e-6)
    assert heading.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Enter")
    assert brief() == pytest.approx(sorted(values, reverse=True), rel=1e-6)

    with page.expect_download() as waiting:
        page.click("#csv")
    waiting.value.save_as(tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(newline="") as file:
        saved = list(csv.DictReader(file))
    assert [row["source"] for row in saved] == [result.names[e.source] for e in result.evaluations]
    assert [float(row["value"]) for row in saved if row["value"]] == values  # to the last digit
    assert [row["reason"] for row in saved if row["reason"]] == [e.reason for e in result.evaluations if e.reason]


@browser_needed
@pytest.mark.browser
def test_text_in_the_saved_table_is_no_formula(tmp_path, opened):
    reasons = ["+cmd|' /C calc'!A0", "-1+1", "=1+1", "@SUM(A1)", "-3.5", 'no, "really"', "a=b", "--"]
    it = amsbq.Integrator([amsbq.Source(name="=HYPERLINK(0)")], amsbq.Uniform(0, 1), budget=100, model="icm")
    it.tell(it.ask(), -0.25)
    for reason in reasons:
        if query := it.ask():
            it.fail(query, reason)
            it.tell(it.ask(), -0.5)
    page = opened(report(it, tmp_path / "page.html"))
    with page.expect_download() as waiting:
        page.click("#csv")
    waiting.value.save_as(tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(newline="") as file:
        saved = list(csv.DictReader(file))
    assert {row["source"] for row in saved} == {"'=HYPERLINK(0)"}
    assert {float(row["value"]) for row in saved if row["value"]} == {-0.25, -0.5}
    found = [row["reason"] for row in saved if row["reason"]]
    assert found == [f"'{r}" if r[0] in "=+-@" and r != "-3.5" else r for r in reasons]


@browser_needed
@pytest.mark.browser
def test_small_dark_and_printed(pages, tmp_path, opened):
    path = pages["six"]
    phone = opened(path, viewport={"width": 360, "height": 700}, color_scheme="dark")
    assert phone.evaluate("document.documentElement.scrollWidth") <= 360
    assert phone.evaluate("document.documentElement.dataset.theme") == "dark"
    for ink, ground in (
        ("--ink", "--ground"),
        ("--soft", "--panel"),
        ("--warning", "--panel"),
        ("--note", "--panel"),
        ("--good", "--panel"),
    ):
        assert contrast(phone, ink, ground) > 4.5
    phone.click("#theme")
    assert phone.evaluate("document.documentElement.dataset.theme") == "light"
    for ink, ground in (("--ink", "--ground"), ("--soft", "--panel"), ("--warning", "--panel"), ("--note", "--panel")):
        assert contrast(phone, ink, ground) > 4.5

    wide = opened(path)
    wide.wait_for_selector(".plot .picture")
    wide.pdf(path=tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").stat().st_size > 20_000


def contrast(page, one, other):
    """As the accessibility guidelines define it."""
    levels = []
    for name in (one, other):
        colour = page.evaluate("n => getComputedStyle(document.documentElement).getPropertyValue(n).trim()", name)
        parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        parts = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        levels.append(float(parts @ [0.2126, 0.7152, 0.0722]))
    return (max(levels) + 0.05) / (min(levels) + 0.05)


SLOW = """
import sys, time, amsbq
def slow(x):
    time.sleep(0.3)
    return float(x[0] ** 2)
amsbq.integrate(slow, [(0, 1)], budget=8, model="icm", journal=sys.argv[1], progress=False)
"""


@browser_needed
@pytest.mark.browser
def test_it_is_written_again_while_the_run_goes_on(tmp_path, opened):
    journal, path = tmp_path / "run.jsonl", tmp_path / "run.html"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.Popen([sys.executable, "-c", SLOW, journal], env=environment)
    command = [sys.executable, "-m", "amsbq", "report", journal, "--watch", "--every", "1"]
    watch = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        page = opened(path)
        assert run.wait(timeout=60) == 0
        page.wait_for_selector(
            "text=the remaining budget does not cover another useful evaluation", timeout=60_000
        )  # it has loaded itself again
        printed, _ = watch.communicate(timeout=60)
        assert watch.returncode == 0
        assert str(path) in printed
    finally:
        for process in (run, watch):
            process.kill()
            process.wait()
    assert page.inner_text("#mean") == amsbq.read_result(journal).estimate.summary().split(" ± ")[0]
    assert content(path)["refresh"] is None
