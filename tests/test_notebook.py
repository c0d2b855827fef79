"""The notebook of the examples, executed by a real kernel; and what objects look like in notebooks."""

import base64
import html.parser
import io
import json
import math
import re

import numpy as np
import pytest
from scipy import stats

import amsbq
from docs import notebook

MEASURES = [
    amsbq.Uniform([0, 0], [1, 2]),
    amsbq.Gaussian([0, 1], [[1, 0.5], [0.5, 2]]),
    amsbq.Product([stats.gamma(3), stats.randint(0, 4)]),
    amsbq.Empirical(np.random.default_rng(0).normal(size=(50, 2))),
    amsbq.GaussianCopula([stats.gamma(3), stats.norm()], [[1, 0.4], [0.4, 1]]),
    amsbq.Mixture([amsbq.Uniform(0, 1), amsbq.Uniform(3, 4)], [0.5, 0.5]),
    amsbq.Independent([amsbq.Uniform(0, 1), amsbq.Gaussian(0, 1)]),
]


class Reader(html.parser.HTMLParser):
    """Checks that tags are closed in order, and collects the cells of tables and the pictures."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells, self.pictures = [], [], 0
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.pictures += tag == "svg"
        if tag not in ("br", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert not any("nan" in (value or "") or "inf" in (value or "") for _, value in attributes)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells.append(data)


@pytest.fixture(scope="module")
def executed():
    for package in ("nbclient", "nbformat", "ipykernel", "matplotlib", "matplotlib_inline"):
        pytest.importorskip(package)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OPENBLAS_NUM_THREADS", "1")
        return notebook.executed()


def outputs(cells, start):
    """The outputs of the first cell that contains ``text``."""
    return next(cell["outputs"] for cell in cells if start in "".join(cell["source"]) and cell["cell_type"] == "code")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_notebook_runs_with_one_live_figure_and_rich_representations(executed):
    figure, result = outputs(executed.cells, "integrate(")
    picture = base64.b64decode(figure["data"]["image/png"])
    image = pytest.importorskip("matplotlib.image").imread(io.BytesIO(picture))
    assert image.shape[:2] == (374, 990)
    assert image[..., :3].min() < 0.9  # something is drawn
    assert figure["output_type"] == "display_data"  # in one place, however often it was renewed
    found = Reader(result["data"]["text/html"])
    assert found.pictures == 1  # what is spent
    assert {"peak", "time", "source", "made", "failed", "cost"} <= set(found.cells)
    for name, truth in (("peak", 70.49), ("time", 0.8614)):
        ends = re.search(rf"{name}: .* between (\S+) and (\S+)\n", result["data"]["text/plain"]).groups()
        assert float(ends[0]) < truth < float(ends[1])
    for start in ("infection_rate = ", "diagnose()", "forecast("):
        [shown] = outputs(executed.cells, start)
        Reader(shown["data"]["text/html"])
    [shown] = outputs(executed.cells, "plots.sources")
    assert "image/png" in shown["data"]


def test_the_notebook_of_the_site_is_executed():
    cells = [cell for cell in json.loads(notebook.NOTEBOOK.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    page = notebook.as_markdown()
    assert page.count("data:image/png;base64,") == 2
    assert "<td>peak</td><td>70." in page


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: type(measure).__name__)
def test_measures_are_tables_with_a_picture_for_each_input(measure):
    found = Reader(measure._repr_html_())
    assert found.pictures == measure.dim
    assert len(found.cells) == 5 * (1 + measure.dim) - measure.dim - 1  # pictures and the heading above them are empty
    sample = np.random.default_rng(1).permuted(measure.sample(20_000, 1), axis=0)
    for d in range(measure.dim):
        median, (low, high) = found.cells[4 * (d + 1) + 2], found.cells[4 * (d + 1) + 3].split(" to ")
        inside = np.mean((sample[:, d] >= float(low)) & (sample[:, d] <= float(high)))
        assert inside >= 0.93
        assert np.mean(sample[:, d] <= float(median)) >= 0.47


def test_the_live_figure_from_the_first_query_to_nothing_but_failures(monkeypatch):
    pytest.importorskip("IPython")
    from amsbq.visualization.notebook import LiveFigure

    shown = []
    figure = LiveFigure()
    monkeypatch.setattr(figure, "_display", lambda picture, display_id: shown.append(picture))
    it = amsbq.Integrator([amsbq.Source(name="_a$"), amsbq.Source(name="b", cost=0.1)], (0, 1), model="icm")
    figure.draw(it)
    query = it.ask()
    figure.draw(it)
    it.fail(query, "no licence")
    figure.draw(it)
    assert len(shown) == 3
    assert all(picture.data.startswith(b"\x89PNG") for picture in shown)
    monkeypatch.setattr(figure, "_png", lambda it: 1 / 0)
    with pytest.warns(UserWarning, match="cannot be drawn: division by zero"):
        figure.draw(it)
    figure.draw(it)


@pytest.mark.filterwarnings("ignore:there are too few observations")
def test_names_are_text_and_unknown_results_are_shown():
    name = "<svg onload=alert()>"
    it = amsbq.Integrator(amsbq.Source(name=name), (0, 1), budget=5, model="icm")
    it.fail(it.ask(), "no licence")
    it.observe(0, [0.5], 1.0)
    text = it.result()._repr_html_()
    assert name not in text
    assert name in "".join(Reader(text).cells)
    unknown = amsbq.Result(amsbq.Estimate.unknown(), [], 0.0, "", ["fine"])
    assert "nothing is known yet" in unknown._repr_html_()
    Reader(unknown._repr_html_())


def test_a_forecast_is_a_curve_and_a_table():
    ahead = amsbq.Forecast([(float(i), math.exp(-i)) for i in range(40)], exact=False)
    found = Reader(ahead._repr_html_())
    assert found.pictures == 1
    assert found.cells[:4] == ["cost", "expected std", "0", "1"]
    assert found.cells[-2:] == ["39", f"{math.exp(-39):.3g}"]
    assert "are within a factor of two" in ahead._repr_html_()
    Reader(amsbq.Forecast([(1.0, 0.0)], exact=True)._repr_html_())


@pytest.mark.filterwarnings("ignore:there are too few observations")
def test_outside_of_a_notebook_there_is_no_figure(capsys):
    amsbq.integrate(lambda x: float(x[0]), (0, 1), budget=2, model="icm", progress=True)
    assert capsys.readouterr().out == ""
