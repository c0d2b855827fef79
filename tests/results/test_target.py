"""A run with a target says what it has found about it, first and everywhere."""

import json

import numpy as np
import pytest

import amsbq
from amsbq.cli.main import main
from amsbq.results.result import known_targets

SQUARE = [(0, 1), (0, 1)]
TRUTH = 1 / 3 - 0.2 - (0.2**1.5 / 3 - 0.2**1.5)  # of P(x0² + x1 > 1.2): the integral of x² - 0.2 from √0.2 to 1


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    journal = tmp_path_factory.mktemp("target") / "run.jsonl"
    target = amsbq.Exceedance(1.2)
    return amsbq.integrate(lambda x: x[0] ** 2 + x[1], SQUARE, budget=8, target=target, journal=journal), journal


def test_the_target_is_an_estimate(run):
    result, _ = run
    assert abs(result.target.mean - TRUTH) <= 3 * result.target.std
    assert result.target.mean == result.distribution().probability(above=1.2).mean
    assert str(result).startswith(f"P(output > 1.2): {result.target.summary()}\nintegral: ")
    assert f"<strong>P(output &gt; 1.2): {result.target.summary()}</strong>" in result._repr_html_()


def test_journals_keep_it(run, capsys):
    result, journal = run
    quick = amsbq.read_result(journal, model=False)
    assert quick.integrator is None
    assert (quick.target.mean, quick.target.std) == (result.target.mean, result.target.std)
    assert str(quick) == str(result)
    assert main(["status", str(journal)]) == 0
    assert capsys.readouterr().out.startswith("P(output > 1.2): 0.19")
    assert main(["status", "--json", str(journal)]) == 0
    found = json.loads(capsys.readouterr().out)["target"]["P(output > 1.2)"]
    assert (found["mean"], found["std"]) == (result.target.mean, result.target.std)


def test_the_page_begins_with_it(run):
    from amsbq.visualization.report import details

    result, _ = run
    assert details(result)["output"][0] == ("P(output > 1.2)", result.target.summary())


def test_pictures_of_convergence_tell_it(run):
    from amsbq.visualization.plotly_figures import charts

    result, _ = run
    said = f"P(output > 1.2): {result.target.summary()}"
    assert amsbq.plots.convergence(result).get_xlabel() == f"cost\n{said}"
    assert next(chart for chart in charts(result) if chart["id"] == "convergence")["caption"].startswith(said)


def test_findings_on_the_mean_say_so():
    def fine(x):
        return float(np.sin(5 * x[0]) + x[1])

    sources = [amsbq.Source(fine, cost=1), amsbq.Source(lambda x: fine(x) + 0.1 * x[0], cost=0.1)]
    result = amsbq.integrate(sources, SQUARE, budget=8, target="variance", seed=0, progress=False)
    [worth] = [finding for finding in result.diagnose() if finding.about == "worth"]
    assert "the standard deviation of the mean would be about" in worth.text


def test_the_target_of_a_mean_is_the_integral():
    result = amsbq.integrate(lambda x: x[0], [(0, 1)], budget=3, model="vbq")
    assert result.target is result.estimate
    assert known_targets(result) == []
    assert str(result).startswith("integral: ")


def test_outputs_have_targets_of_their_own():
    result = amsbq.integrate(
        lambda x: [x[0] ** 2 + x[1], x[0]],
        SQUARE,
        budget=5,
        outputs=["a", "b"],
        target={"a": amsbq.Quantile(0.9)},
        model="vbq",
    )
    assert [known.name for known in known_targets(result)] == ["90 % quantile of a"]
    assert result["a"].target.mean == pytest.approx(result.target.mean[0])
    assert result["b"].target.mean == result["b"].mean == result.target.mean[1]
    np.testing.assert_allclose(result.target.mean, [1.39, 0.5], atol=0.2)
    assert str(result).startswith("90 % quantile of a: ")
