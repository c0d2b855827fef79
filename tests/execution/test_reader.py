"""Results from journals are those of the runs, and findings say what is the matter."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.execution import runner
from amsbq.execution.journal import Journal, JournalError, read_journal
from amsbq.execution.reader import _measure, read_result
from amsbq.results.summary import as_json
from amsbq.visualization import curves


def fine(x):
    return float(np.sin(5 * x[0]) + x[-1])


def coarse(x):
    return float(np.sin(5 * x[0]) + 0.2)


def run(path, measure=((0, 1),), budget=4, second=None, **options):
    measure = list(measure) if isinstance(measure, tuple) else measure
    sources = [fine, second or amsbq.Source(coarse, cost=0.1)]
    return amsbq.integrate(sources, measure, budget=budget, journal=path, progress=False, **options)


@pytest.mark.parametrize("model", ["auto", "icm", "vbq"])
def test_a_journal_tells_the_result(tmp_path, model):
    result = run(tmp_path / "run.jsonl", model=model)
    again = read_result(tmp_path / "run.jsonl")
    assert (again.mean, again.std, again.interval(0.9)) == (result.mean, result.std, result.interval(0.9))
    assert (again.spent, again.budget, again.stopped) == (result.spent, result.budget, result.stopped)
    assert again.rows() == result.rows()
    assert again.integrator.preview().x.tolist() == result.integrator.preview().x.tolist()
    assert [str(finding) for finding in again.diagnose()] == [str(finding) for finding in result.diagnose()]
    quick = read_result(tmp_path / "run.jsonl", model=False)
    assert quick.integrator is None
    assert quick.mean == result.mean


def test_a_run_that_goes_on(tmp_path):
    path = tmp_path / "run.jsonl"
    run(path)
    lines = path.read_text().splitlines(keepends=True)
    kinds = [json.loads(line)["event"] for line in lines]
    known_at = [i + 1 for i, kind in enumerate(kinds) if kind == "known"]
    for end in (1, 2, known_at[0], known_at[len(known_at) // 2], len(lines) - 1):
        (tmp_path / "part.jsonl").write_text("".join(lines[:end]))
        part = read_result(tmp_path / "part.jsonl")
        assert part.stopped == ""
        events = [json.loads(line) for line in lines[:end]]
        known = [event for event in events if event["event"] == "known" and event["std"] is not None]
        assert np.isnan(part.mean) if not known else part.mean == pytest.approx(known[-1]["mean"], rel=1e-12)
        assert part.pending == kinds[:end].count("asked") - kinds[:end].count("told")
    assert "nothing is known yet" in str(read_result(tmp_path / "part.jsonl").estimate.unknown())


MEASURES = [
    amsbq.Uniform([0, -1], [1, 1.5]),
    amsbq.Gaussian([0.1, 0.2], [[1.0, 0.3], [0.3, 2.0]]),
    amsbq.Product([stats.gamma(5, loc=1, scale=4), stats.truncnorm(-1, 2), stats.uniform(0, 1), stats.norm(40, 3)]),
    amsbq.Product([stats.truncnorm(-1, np.inf)]),
]


@pytest.mark.parametrize("measure", MEASURES, ids=repr)
def test_measures_are_made_again_from_their_names(measure):
    again = _measure({"problem": {"measure": repr(measure)}})
    assert repr(again) == repr(measure)
    X = measure.sample(5, 1)
    np.testing.assert_array_equal(again.sample(5, 1), X)


@pytest.mark.parametrize(
    "text",
    ["Product([rv_histogram(<3 bins>)])", "__import__('os').getcwd()", "Product([zipf(2)])", "Uniform(", "open('x')"],
)
def test_names_that_cannot_be_measures(text):
    assert _measure({"problem": {"measure": text}}) is None


def test_samples_are_in_the_journal(tmp_path):
    samples = np.random.default_rng(0).normal(size=(50, 2))
    measure = amsbq.Empirical(samples, weights=np.arange(50) + 1.0)
    result = amsbq.integrate([fine], measure, budget=4, journal=tmp_path / "run.jsonl", progress=False, model="icm")
    again = read_result(tmp_path / "run.jsonl")
    assert again.integrator.measure.same_as(measure)
    assert again.mean == result.mean


def test_costs_that_were_functions_are_learned(tmp_path):
    def cost(x):
        return 0.1 + 0.2 * x[0]

    run(tmp_path / "run.jsonl", second=amsbq.Source(coarse, cost=cost), model="icm")
    again = read_result(tmp_path / "run.jsonl")
    X = np.array([[0.2], [0.8]])
    np.testing.assert_allclose(again.integrator.source_costs.costs[1].expected(X), [0.14, 0.26], rtol=0.2)
    assert again.integrator.preview() is not None


def test_a_model_of_ones_own_is_not_made_again(tmp_path):
    gp = amsbq.MultiSourceGP([amsbq.Term([[1.0, 0.9], [0.9, 1.0]], amsbq.RBF(0.3))], amsbq.Uniform(0, 1))
    result = run(tmp_path / "run.jsonl", measure=amsbq.Uniform(0, 1), model=gp)
    again = read_result(tmp_path / "run.jsonl")
    assert again.integrator is None
    assert again.interval() == result.interval()
    with pytest.raises(ValueError, match="no model to diagnose"):
        again.diagnose()


def test_what_is_no_journal(tmp_path):
    (tmp_path / "x.jsonl").write_text("hello\n")
    with pytest.raises(JournalError, match="damaged"):
        read_result(tmp_path / "x.jsonl")


def test_the_end_of_a_run_is_written_with_its_estimate(tmp_path):
    result = run(tmp_path / "run.jsonl", model="icm")
    _, events = read_journal(tmp_path / "run.jsonl")
    assert events[-1]["event"] == "stopped"
    again = amsbq.Estimate.recalled(events[-1]["estimate"])
    assert again.interval(0.5) == result.interval(0.5)
    with Journal(tmp_path / "run.jsonl") as journal:  # and nothing is locked by looking
        assert journal.events == events


def findings(result):
    return {(finding.level, finding.about) for finding in result.diagnose()}


def test_findings_of_an_honest_run():
    result = amsbq.integrate([fine, amsbq.Source(coarse, cost=0.1)], [(0, 1), (0, 1)], budget=6, progress=False)
    levels = {level for level, _ in findings(result)}
    assert "warning" not in levels
    assert {("good", "hyperparameters"), ("good", "worth"), ("good", "fit")} <= findings(result)
    outlook = next(finding for finding in result.diagnose() if finding.about == "outlook")
    assert "half of it takes" in outlook.text


def test_findings_name_what_is_wrong():
    def fails(x):
        if x[0] > 0.5:
            raise RuntimeError("diverged")
        return coarse(x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the source is retired
        result = amsbq.integrate(
            [fine, amsbq.Source(fails, cost=0.1)], [(0, 1)], budget=3, progress=False, model="icm", max_evaluations=14
        )
    failures = next(finding for finding in result.diagnose() if finding.about == "failures")
    assert failures.level == "warning"
    assert "diverged" in failures.text
    assert ("note", "hyperparameters") in findings(result)  # only the most probable ones


def test_few_evaluations_are_said_to_be_few():
    it = amsbq.Integrator([fine, amsbq.Source(coarse, cost=0.1)], [(0, 1)], model="icm", initial=[])
    for x in np.linspace(0, 1, 12):
        it.observe(1, [x], coarse([x]))
    it.observe(0, [0.3], fine([0.3]))
    few = next(finding for finding in amsbq.Result.of(it, "budget").diagnose() if finding.about == "few evaluations")
    assert few.level == "warning"
    assert "has one evaluation only" in few.text


def test_a_useless_source_did_not_pay():
    initial = [(0, [x]) for x in (0.1, 0.5, 0.9)] + [(1, [x]) for x in (0.1, 0.3, 0.5, 0.7, 0.9)]
    sources = [fine, amsbq.Source(lambda x: float(x[0] < 0.4), cost=0.5)]
    result = amsbq.integrate(sources, [(0, 1)], budget=12, progress=False, initial=initial)
    worth = next(finding for finding in result.diagnose() if finding.about == "worth")
    assert worth.level == "note"
    assert "did not pay" in worth.text


def test_uneven_functions_are_noticed_and_even_ones_are_not():
    def chirp(x):
        return np.sin(30 * x**3) + x

    def even(x):
        return np.sin(12 * x) + x

    found = []
    for f in (chirp, even):
        it = amsbq.Integrator([amsbq.Source(noise=1e-6)], [(0, 1)], model="icm", initial=[])
        for x in np.random.default_rng(3).uniform(size=40):
            it.observe(0, [x], float(f(x)))
        found.append(("warning", "stationarity") in findings(amsbq.Result.of(it, "budget")))
    assert found == [True, False]


def test_what_is_not_valid_has_failed_in_the_journal_too(tmp_path):
    checked = amsbq.Source(fine, valid=(-1, 0.9))
    options = {"model": "icm", "journal": tmp_path / "run.jsonl", "progress": False}
    result = amsbq.integrate(checked, [(0, 1)], budget=5, **options)
    for model in (True, False):
        again = read_result(tmp_path / "run.jsonl", model)
        assert [(e.status, e.reason) for e in again.evaluations] == [(e.status, e.reason) for e in result.evaluations]
    assert any(e.status == "failed" for e in result.evaluations)


def test_data_that_were_given_before_are_not_forgotten_in_silence(tmp_path):
    it = amsbq.Integrator([amsbq.Source(fine)], [(0, 1)], budget=3, model="icm")
    for x in np.linspace(0, 0.6, 8):
        it.observe(0, [x], fine([x]))
    result = runner.run(it, journal=tmp_path / "run.jsonl", progress=False)
    again = read_result(tmp_path / "run.jsonl")
    assert again.integrator is None
    assert again.mean == result.mean


def test_a_larger_budget_is_told_at_once(tmp_path):
    path = tmp_path / "run.jsonl"
    run(path, model="icm", budget=3)
    run(path, model="icm", budget=5, max_evaluations=5)
    kinds = [event["event"] for event in read_journal(path)[1]]
    assert "resumed" in kinds
    lines = path.read_text().splitlines(keepends=True)
    (tmp_path / "part.jsonl").write_text("".join(lines[: 2 + kinds.index("resumed")]))
    assert read_result(tmp_path / "part.jsonl", model=False).budget == 5


def test_a_run_without_a_primary_value_is_warned_of():
    def broken(x):
        raise RuntimeError("no licence")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = amsbq.integrate(
            [amsbq.Source(broken), amsbq.Source(coarse, cost=0.1)], [(0, 1)], budget=3, progress=False, model="icm"
        )
    assert {("warning", "failures"), ("warning", "few evaluations")} <= findings(result)


def test_hyperparameters_of_ones_own_are_called_so():
    gp = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF(0.3))], amsbq.Uniform(0, 1))
    result = amsbq.integrate(fine, amsbq.Uniform(0, 1), budget=4, model=gp, progress=False)
    said = next(finding for finding in result.diagnose() if finding.about == "hyperparameters")
    assert "given, not learned" in said.text


@pytest.mark.parametrize("unit", [1e-200, 1e155])
def test_units_do_not_matter_to_what_is_said_and_shown(unit):
    result = amsbq.integrate(lambda x: unit * fine(x), [(0, 1)], budget=9, model="icm", progress=False)
    plain = amsbq.integrate(fine, [(0, 1)], budget=9, model="icm", progress=False)
    assert {(f.level, f.about) for f in result.diagnose()} == findings(plain)
    t = curves.grid(result, 0)
    np.testing.assert_allclose(
        curves.effects(result, 0, t)[0].std / unit, curves.effects(plain, 0, t)[0].std, rtol=1e-3
    )
    assert len(result.estimate.summary()) < 100


def test_inputs_that_are_called_like_columns():
    result = amsbq.integrate(fine, [(0, 1)], budget=3, model="icm", progress=False)
    named = replace(result, inputs=["value"])
    assert [row["value"] for row in named.rows()] == [e.value for e in result.evaluations]
    assert [row["x.value"] for row in named.rows()] == [e.x[0] for e in result.evaluations]
    told = as_json(named)["evaluations"][0]
    assert told["x"] == {"value": result.evaluations[0].x[0]}
    assert told["value"] == result.evaluations[0].value
