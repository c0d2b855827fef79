"""Title, units and labels are shown wherever people look, change no number, and may change without a new journal."""

import json
import re

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq import plots
from amsbq.cli.main import main
from amsbq.design.labels import Labels
from amsbq.problems.errors import ProblemError
from amsbq.problems.problem_file import load_problem
from amsbq.visualization.report import report

WORDS = {
    "title": "A ball",
    "units": {"speed": "m/s", "output": "m", "cost": "core hours"},
    "labels": {"speed": "launch speed", "output": "range"},
}
INPUTS = {"speed": stats.norm(40, 3), "angle": (0.5, 1.0)}


def far(speed, angle):
    return speed**2 * np.sin(2 * angle) / 9.81


def thrown(journal=None, **more):
    return amsbq.integrate(far, INPUTS, budget=4, journal=journal, **more)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    journal = tmp_path_factory.mktemp("labels") / "run.jsonl"
    return thrown(journal, **WORDS), journal


def test_the_answer_says_what_it_is_in_which_unit(run):
    result, _ = run
    title, answer, spent, *table = str(result).splitlines()
    mean, _, rest = answer.removeprefix("expected range: ").partition(" ± ")
    assert title == "A ball"
    assert float(mean) == pytest.approx(result.mean, rel=1e-2)
    assert rest.split()[1] == "m"
    assert float(rest.split()[0]) == pytest.approx(result.std, rel=0.1)
    assert spent.endswith("spent 4 of 4 core hours")
    assert table[1].endswith("cost (core hours)")
    assert "A ball<br><strong>expected range: " in result._repr_html_()


def test_no_number_depends_on_them(run):
    result, _ = run
    plain = thrown()
    assert (plain.mean, plain.std) == (result.mean, result.std)
    assert str(plain).startswith("integral: ")
    assert " m " not in str(plain)


def test_findings_give_inputs_values_and_costs_in_their_units(run):
    result, _ = run
    found = str(result.diagnose())
    assert "core hours" in found
    assert " m " in found.replace("m/s", "")
    limit = thrown(target=amsbq.Exceedance(1e4), **WORDS)
    assert "the limit of the target, 1e+04 m, is far" in str(limit.diagnose())
    assert str(limit).splitlines()[1].startswith("P(range > 10000 m): ")


def test_journals_keep_them(run):
    result, journal = run
    for model in (True, False):
        assert str(amsbq.read_result(journal, model=model)) == str(result)
    assert json.loads(journal.read_text().splitlines()[0])["labels"] == WORDS


def test_a_run_may_be_resumed_with_others(tmp_path):
    """They are no change of the problem, the run goes on, and those given last are shown."""
    thrown(tmp_path / "run.jsonl", **WORDS)
    lines = (tmp_path / "run.jsonl").read_text()
    thrown(tmp_path / "run.jsonl", **WORDS)
    assert (tmp_path / "run.jsonl").read_text() == lines
    again = thrown(tmp_path / "run.jsonl", units={"output": "metres"})
    read = amsbq.read_result(tmp_path / "run.jsonl")
    assert read.labels == again.labels == Labels(units={"output": "metres"})
    assert read.stopped == "budget"
    assert str(read) == str(again)
    assert "integral: " in str(read)
    assert "metres" in str(read)


def test_status_json_and_tables_have_them(run, capsys):
    _, journal = run
    assert main(["status", str(journal)]) == 0
    title, answer, spent, *_ = capsys.readouterr().out.splitlines()
    assert title == "A ball"
    assert answer.startswith("expected range: ")
    assert answer.endswith(" m (std)")
    assert spent.startswith("spent 4 of 4 core hours;")
    assert main(["status", "--json", str(journal)]) == 0
    now = json.loads(capsys.readouterr().out)
    assert {key: now[key] for key in WORDS} == WORDS
    assert main(["report", "--text", str(journal)]) == 0
    assert "speed (m/s)       angle     value (m)  cost (core hours)  integral ± std (m)" in capsys.readouterr().out
    assert main(["show", str(journal), "0"]) == 0
    said = capsys.readouterr().out
    assert " m/s, angle = " in said
    assert "cost = 1 core hours" in said


def test_figures_and_pages_have_them(run, tmp_path):
    result, _ = run
    ax = plots.convergence(result)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("cost (core hours)", "expected range (m)")
    ax = plots.sources(result, input="speed")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("launch speed (m/s)", "average range (m)")
    assert plots.distribution(result).get_xlabel() == "range (m)"
    page = report(result, tmp_path / "page.html").read_text("utf-8")
    assert "<title>A ball: " in page
    assert "A ball: expected range of <strong>far</strong>" in page
    assert '<span class="unit" id="unit">m</span>' in page
    assert '"launch speed (m/s)"' in page


@pytest.mark.filterwarnings("ignore:the evaluations do not reach")
def test_estimates_forecasts_and_certificates_are_printed_in_their_units(run):
    result, _ = run
    for known in (result.estimate, result.integrator.estimate(), result.under({"speed": stats.norm(41, 3)})):
        assert " m (std), 95 %" in repr(known)
    assert repr(result.given(speed=40)).count(" m (std)") == 1
    output = result.distribution()
    assert " m (std)" in repr(output.quantile(0.5))
    assert " m² (std)" in repr(output.variance())
    assert " ± " in repr(output.probability(above=160))
    assert " m" not in repr(output.probability(above=160))
    assert str(result.integrator.forecast(6)).startswith("cost (core hours)  expected std (m)\n                4  ")
    certificate = amsbq.certify(result, budget=2)
    text = str(certificate)
    assert re.match(r"certificate: \S+ ± \S+ m \(std\)", text)
    assert re.search(r"± \S+ m agrees with the model's \S+ ± \S+ m:", text)
    assert "spent 2 of 2 core hours" in text
    plain = thrown()
    assert " m " not in f"{plain.estimate} {plain.integrator.forecast(6)} {amsbq.certify(plain, budget=2)}"


def test_forecasts_of_several_outputs_have_the_unit_of_each():
    ahead = amsbq.Forecast(
        [(4.0, np.array([1.0, 2.0])), (5.0, np.array([0.5, 1.0]))],
        True,
        ("peak", "time"),
        labels=Labels(units={"peak": "m", "time": "d", "cost": "h"}, names={"peak": "height", "time": "height"}),
        targets=("variance", amsbq.Exceedance(3.0)),
    )
    head, names, first, _ = str(ahead).splitlines()
    assert head == "  cost (h)  expected std of"
    assert names.split() == ["height", "(m²)", "height"]
    assert first.split() == ["4", "1", "2"]
    assert str(ahead.of_output(0)).splitlines()[0] == "  cost (h)  expected std (m²)"
    assert str(ahead.of_output(1)).splitlines()[0] == "  cost (h)  expected std"


def test_several_outputs_have_their_own():
    result = amsbq.integrate(
        lambda x: [x[0], 2 * x[0]],
        amsbq.Uniform(0, 1),
        budget=4,
        outputs=["peak", "time"],
        target={"peak": "variance"},
        units={"peak": "m/s", "time": "days"},
        labels={"time": "time of the peak"},
    )
    first, *outputs = str(result).splitlines()[:3]
    assert first.startswith("variance of peak: ")
    assert " (m/s)² (std)" in first
    assert outputs[0].startswith("peak: ")
    assert outputs[1].startswith("time of the peak: ")
    assert " m/s (std)" in outputs[0]
    assert " days (std)" in outputs[1]
    assert str(result["time"]).startswith("expected time of the peak: ")
    assert " days (std)" in str(result["time"])
    assert str(result["peak"]).splitlines()[1].startswith("peak: ")
    peak, time = str(result.integrator.estimate()).splitlines()
    assert time.startswith("time of the peak: ")
    assert result.integrator.estimate()[1:].labels == ("time of the peak",)
    assert " m/s (std)" in peak
    assert " days (std)" in time
    assert " (m/s)² (std)" in repr(result.target["peak"])
    assert str(result.target).splitlines()[1].startswith("time of the peak: ")
    assert str(result.under(amsbq.Uniform(0.1, 0.9))).splitlines()[1].startswith("time of the peak: ")
    assert " days (std)" in repr(result["time"].given(x0=0.5))


@pytest.mark.parametrize("what", ["units", "labels"])
def test_names_that_are_not_known_are_refused(what):
    with pytest.raises(ValueError, match=f"{what} contains 'sped', which is not known.*speed"):
        thrown(**{what: {"sped": "m/s"}})
    with pytest.raises(TypeError, match=f"{what} must be a dictionary of strings"):
        thrown(**{what: {"speed": 3}})


def test_problem_files_have_them(tmp_path):
    (tmp_path / "model.py").write_text("def far(speed, angle):\n    return speed**2 * angle\n")
    file = tmp_path / "problem.toml"
    file.write_text(
        """
title = "A ball"
budget = 4
units = { output = "m", cost = "core hours" }
labels = { output = "range" }
[inputs]
speed = { distribution = "norm", loc = 40, scale = 3, unit = "m/s", label = "launch speed" }
angle = { low = 0.5, high = 1.0 }
[[sources]]
python = "model:far"
"""
    )
    made = load_problem(file).described.labels
    assert made.to_dict() == WORDS


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("units = { sped = 'm/s' }", "units: contains 'sped', which is not known (did you mean 'speed'?)"),
        ("units = 3", "units: must be a table of strings"),
        ("title = 3", "title: must be a string"),
        ("[inputs]\nspeed = { low = 0, high = 1, unit = 3 }", "inputs.speed.unit: must be a string"),
    ],
)
def test_mistakes_in_problem_files_are_named(tmp_path, line, said):
    (tmp_path / "mistaken.py").write_text("def far(x):\n    return x[0]\n")
    inputs = "" if "[inputs]" in line else "[inputs]\nspeed = { low = 0, high = 1 }\n"
    source = '\n[[sources]]\npython = "mistaken:far"\n'
    (tmp_path / "problem.toml").write_text(f"budget = 4\n{line}\n{inputs}{source}")
    with pytest.raises(ProblemError, match=re.escape(said)):
        load_problem(tmp_path / "problem.toml")
