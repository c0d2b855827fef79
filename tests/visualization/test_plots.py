"""Pictures of runs: what they show is what is known, and nothing is cut off, small or large."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq import baselines
from amsbq.visualization import curves

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
import matplotlib.pyplot as plt  # noqa: E402

from amsbq import plots  # noqa: E402

EACH = ("convergence", "sources", "rates", "sequence", "shares", "correlation", "costs", "forecast", "residuals")


def source(level, fails=False):
    def f(x):
        if fails and np.sin(1e6 * x[0]) > 0.8:
            raise RuntimeError("it did not converge")
        return float(np.sin(4 * x.sum() / len(x)) + 0.2 * level * x[0])

    return amsbq.Source(f, cost=10.0**-level, name=f"level {level} of the mesh", noise=1e-4, bulk=False)


def finished(measure, levels, evaluations, fails=False):
    sources = [source(level, fails) for level in range(levels)]
    options = {"budget": 1e6, "max_evaluations": evaluations, "model": "icm", "progress": False}
    return amsbq.integrate(sources, measure, **options)


def without_estimate(it):
    """The result of an integrator of one input, whose integral is not asked for."""
    return amsbq.Result(amsbq.Estimate.unknown(), [], 0.0, "", it.names, inputs=["x0"], integrator=it)


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(0)
    return {
        "one input": finished([stats.gamma(3, scale=0.2)], 2, 20),
        "five evaluations": finished([(0, 1)], 1, 5),
        "failures": finished([(0, 1), stats.norm(0.5, 0.2)], 4, 30, fails=True),
        "six inputs": finished(amsbq.Uniform(np.zeros(6), 1.0), 2, 25),
        "samples": finished(amsbq.Empirical(rng.normal(size=(60, 2))), 2, 15),
    }


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")


def texts_are_inside(figure):
    """All but the labels of ticks, some of which are not drawn."""
    figure.draw_without_rendering()  # which lays it out
    whole, renderer = figure.bbox.padded(2.0), figure.canvas.get_renderer()
    axes = [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
    ticks = {id(label) for axis in axes for label in [*axis.get_ticklabels(which="both"), axis.get_offset_text()]}
    for text in figure.findobj(matplotlib.text.Text):
        if text.get_visible() and text.get_text().strip() and id(text) not in ticks:
            box = text.get_window_extent(renderer)
            inside = whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1
            assert inside, f"{text.get_text()!r} is cut off: {box} is not in {whole}"


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("case", ["one input", "five evaluations", "failures", "six inputs", "samples"])
def test_each_is_drawn_on_the_axes_given(results, case, name):
    figure, ax = plt.subplots(figsize=(3.6, 2.8), layout="constrained")
    assert getattr(plots, name)(results[case], ax) is ax
    assert ax.has_data() or name == "correlation"
    if name not in ("shares", "correlation", "residuals"):
        assert ax.get_xlabel()
    texts_are_inside(figure)
    figure.set_size_inches(10, 6)
    texts_are_inside(figure)


def test_panels_for_every_input(results):
    for draw in (plots.sources, plots.rates, plots.costs):
        axes = draw(results["six inputs"])
        assert [ax.get_xlabel() for ax in axes] == [f"x{d}" for d in range(6)]
        texts_are_inside(axes[0].figure)
    axes = plots.slices(results["six inputs"])
    assert axes.shape == (6, 6)
    texts_are_inside(axes[0, 0].figure)
    assert plots.slices(results["one input"]).shape == (1, 1)
    texts_are_inside(plots.overview(results["failures"]))


def test_inputs_by_name(results):
    assert plots.sources(results["failures"], input="x1").get_xlabel() == "x1"
    with pytest.raises(ValueError, match="there is no input 'x7'; valid names: x0, x1"):
        plots.sources(results["failures"], input="x7")
    with pytest.raises(ValueError, match="there is no input 2"):
        plots.rates(results["failures"], input=2)


def test_what_is_shown_is_what_is_known(results):
    result = results["one input"]
    [line] = [line for line in plots.convergence(result).lines if line.get_label() == "mean"]
    known = [e for e in result.evaluations if np.isfinite(e.mean)]
    np.testing.assert_array_equal(line.get_ydata(), [e.mean for e in known])
    np.testing.assert_allclose(line.get_xdata()[-1], result.spent)
    _, low, high = curves.convergence(result).band()
    np.testing.assert_allclose((low[-1], high[-1]), result.interval(0.95))  # the shade ends as the printed interval

    t = curves.grid(result, 0)
    mean, variance = result.predict(1, t[:, None])
    curve = curves.effects(result, 0, t)[1]
    np.testing.assert_allclose(curve.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(curve.std, np.sqrt(variance), rtol=1e-6, atol=1e-9)

    [seen] = curves.rates_along(result, [0])
    assert seen.next.rate >= 0.999 * seen.rates.max()
    np.testing.assert_allclose(np.diagonal(curves.correlation(result).mean), 1)
    counts, paid = curves.shares(result)
    assert counts.sum() == len(result.evaluations)
    assert paid.sum() == pytest.approx(result.spent)


def test_densities_of_inputs_integrate_to_one(results):
    for case in ("one input", "failures", "samples"):
        for d, _ in enumerate(results[case].inputs):
            t = curves.grid(results[case], d, 2001)
            assert np.trapezoid(curves.density(results[case], d, t), t) == pytest.approx(1, abs=0.1)


def test_main_effects_in_the_units_of_the_user(results):
    """Averaged over its input, each main effect of the primary source is the integral: with one model, the estimate."""
    result = results["six inputs"]
    (component,) = result.integrator.learner.posterior.components
    assert len(component.latent) == 1
    x, w = np.polynomial.legendre.leggauss(30)
    for d in range(6):
        curve = curves.effects(result, d, 0.5 + 0.5 * x)[0]
        np.testing.assert_allclose(0.5 * w @ curve.mean, result.mean, rtol=1e-9)


@pytest.mark.front_door
def test_journals_and_integrators_will_do(tmp_path):
    path = tmp_path / "run.jsonl"
    sources = [source(0), source(1)]
    result = amsbq.integrate(sources, [(0, 1)], budget=4, model="icm", journal=path, progress=False)
    for run in (result, result.integrator, path, str(path)):
        assert plots.convergence(run).get_xlabel() == "cost"
    with pytest.raises(TypeError, match="give a Result, an Integrator, or the path of a journal, got 3"):
        plots.convergence(3)


def test_results_of_other_methods_have_fewer_pictures():
    result = baselines.monte_carlo(source(0), [(0, 1)], budget=5)
    assert plots.convergence(result) is not None
    assert plots.sequence(result) is not None
    with pytest.raises(ValueError, match="this figure needs a model, but there is none"):
        plots.sources(result)


def test_before_anything_is_known():
    result = without_estimate(amsbq.Integrator([source(0)], [(0, 1)]))
    assert plots.convergence(result) is not None
    with pytest.raises(ValueError, match="nothing is known yet"):
        plots.rates(result)


def test_names_are_shown_as_they_are(results):
    result = replace(results["one input"], names=["$a_{b$ <i>", "_coarse"])
    for name in EACH:
        ax = getattr(plots, name)(result)
        texts_are_inside(ax.figure)
    labels = [text.get_text() for text in plots.convergence(result).get_legend().get_texts()]
    assert labels == ["95 % interval", "mean", r"\$a_{b\$ <i>", "\u200b_coarse"]


def test_densities_that_cannot_be_drawn_are_not():
    for measure in ([stats.gamma(0.1)], amsbq.Empirical([[0.1], [1.0], [2.0]], weights=[1, 2, 0])):
        it = amsbq.Integrator(source(0), measure, model="icm")
        for x in (0.1, 0.5, 1.5):
            it.observe(0, [x], np.sin(x))
        result = without_estimate(it)  # which takes seconds for such a gamma distribution
        assert curves.density(result, 0, curves.grid(result, 0)) is None
        assert plots.sources(result).lines


def test_sources_that_are_not_there(results):
    with pytest.raises(ValueError, match="there is no source 9"):
        plots.slices(results["one input"], 9)


def test_a_retired_source_leaves_nothing_to_ask():
    it = amsbq.Integrator([source(0)], [(0, 1)], model="icm")
    it.observe(0, [0.5], 1.0)
    it.observe(0, [0.8], 1.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is retired
        while (query := it.ask()) is not None:
            it.fail(query, "no licence")
    assert it.preview() is None
    assert len(it.forecast(100)) == 1
    assert plots.rates(it) is not None


def test_shades_are_the_intervals_that_are_printed():
    """A heavy-tailed estimate, which is not symmetric: its shade is its own 95 % interval, not a number of stds."""
    result = amsbq.integrate([source(0), source(1)], [(0, 1)], budget=3, progress=False)
    estimate = amsbq.Estimate([0.0, 1.0], [0.1, 0.4], [0.8, 0.2], dof=3)
    last = replace(result.evaluations[-1], mean=estimate.mean, std=estimate.std)
    shown = replace(result, estimate=estimate, evaluations=[*result.evaluations[:-1], last])
    _, low, high = curves.convergence(shown).band()
    np.testing.assert_allclose((low[-1], high[-1]), estimate.interval(0.95))
    ax = plots.convergence(shown)
    [shade] = [c for c in ax.collections if c.get_label() == "95 % interval"]
    ends = shade.get_paths()[0].vertices[:, 1]
    assert {low[-1], high[-1]} <= set(ends.tolist())
    t = curves.grid(result, 0)
    mean, variance = result.predict(0, t[:, None])
    np.testing.assert_allclose(curves.effect(result, 0, 0, t).band()[1], mean + 1.959964 * np.sqrt(variance), rtol=1e-5)


def test_what_is_not_known_is_said_to_be_unknown():
    it = amsbq.Integrator([source(0), source(1)], [(0, 1), (0, 1)], initial=[])
    for s, n in ((0, 2), (1, 3)):
        for x in it.measure.sobol(n, rng=s):
            it.observe(s, x, it.sources[s].function(x))
    texts = [text.get_text() for text in plots.correlation(it).texts]
    assert texts == ["1", "not known\nyet", "not known\nyet", "1"]
    labels = [text.get_text() for text in plots.sources(it, input=1).get_legend().get_texts()]
    assert f"{it.names[0]} (not known yet)" in labels
    assert {"95 % interval", "distribution of the input"} <= set(labels)


def run_with(means, stds):
    """The result of a run that has known these means and standard deviations, one after the other."""
    evaluations = [
        amsbq.Evaluation(i, 0, np.zeros(1), 1.0, 0.0, 1.0, "ok", "", mean, std)
        for i, (mean, std) in enumerate(zip(means, stds, strict=True))
    ]
    estimate = amsbq.Estimate([means[-1]], [stds[-1]])
    return amsbq.Result(estimate, evaluations, len(means), "budget", ["fine"], inputs=["x0"])


@pytest.mark.parametrize(
    "stds", [[100.0, 10.0, 1.0, 0.1, 0.01], [1e6] * 30 + [1e-3], [1.0, 1.0, 1.0], [0.0, 0.0], [1.0]]
)
def test_the_end_of_a_run_can_be_read_from_its_convergence(stds):
    """However it began: the last interval is inside of the picture, and takes a fifth of its height or more."""
    result = run_with([50.0 * std for std in stds], stds)
    bottom, top = plots.convergence(result).get_ylim()
    low, high = result.interval(0.95)
    assert bottom < low <= high < top
    assert high - low >= 0.18 * (top - bottom) or stds[-1] == 0
    plt.close("all")


def test_the_panels_of_an_overview_have_titles_above_their_legends(results):
    figure = plots.overview(results["failures"])
    figure.draw_without_rendering()
    panels = [ax for ax in figure.axes if ax.get_title(loc="left")]
    assert len({ax.get_title(loc="left") for ax in panels}) == 6
    for ax in panels:
        if ax.get_legend() is not None:
            title = next(
                text for text in ax.findobj(matplotlib.text.Text) if text.get_text() == ax.get_title(loc="left")
            )
            assert title.get_window_extent().y0 >= ax.get_legend().get_window_extent().y1
    plt.close("all")
