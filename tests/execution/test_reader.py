"""Results from journals are those of the runs."""

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.common.serialisation import from_json
from amsbq.execution import runner
from amsbq.execution.journal import Journal, JournalError, read_journal
from amsbq.execution.reader import read_result


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
    kinds = [from_json(line)["event"] for line in lines]
    known_at = [i + 1 for i, kind in enumerate(kinds) if kind == "known"]
    for end in (1, 2, known_at[0], known_at[len(known_at) // 2], len(lines) - 1):
        (tmp_path / "part.jsonl").write_text("".join(lines[:end]))
        part = read_result(tmp_path / "part.jsonl")
        assert part.stopped == ""
        known = [event for event in map(from_json, lines[:end]) if event["event"] == "known"]
        if known:
            assert part.mean == pytest.approx(known[-1]["mean"], rel=1e-12)
        else:
            assert np.isnan(part.mean)
            assert "nothing is known yet" in str(part)
        assert part.pending == kinds[:end].count("asked") - kinds[:end].count("told")


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
    np.testing.assert_allclose(again.integrator.ledger.costs.costs[1].expected(X), [0.14, 0.26], rtol=0.2)
    assert again.integrator.preview() is not None


def test_a_model_of_ones_own_is_made_again(tmp_path):
    terms = [amsbq.Term([[1.0, 0.9], [0.9, 1.0]], amsbq.RBF(0.3)), amsbq.Term(np.eye(2), amsbq.Matern(1.5, [0.7]))]
    gp = amsbq.MultiSourceGP([*terms, amsbq.Term(np.eye(2), amsbq.Constant())], amsbq.Uniform(0, 1), [1e-3, 0], 0.5)
    result = run(tmp_path / "run.jsonl", measure=amsbq.Uniform(0, 1), model=gp)
    again = read_result(tmp_path / "run.jsonl")
    assert again.integrator.problem.model.name == repr(gp)
    assert again.interval() == result.interval()
    assert again.integrator.preview().x.tolist() == result.integrator.preview().x.tolist()
    X = np.linspace(0, 1, 9)
    np.testing.assert_array_equal(again.predict(1, X), result.predict(1, X))


class Mine(amsbq.RBF):
    pass


@pytest.mark.parametrize("what", ["kernel", "distribution"])
def test_what_cannot_be_rebuilt_is_not(tmp_path, what):
    if what == "kernel":
        measure = amsbq.Empirical(np.linspace(0, 1, 30))
        model = amsbq.MultiSourceGP([amsbq.Term([[1.0, 0.9], [0.9, 1.0]], Mine(0.3))], measure)
    else:
        measure = amsbq.Product([stats.rv_histogram(np.histogram([0.1, 0.4, 0.5, 0.9], bins=3))()])
        model = "icm"
    result = run(tmp_path / "run.jsonl", measure=measure, model=model)
    again = read_result(tmp_path / "run.jsonl")
    assert again.integrator is None
    assert again.interval() == result.interval()
    with pytest.raises(ValueError, match="no model to diagnose"):
        again.diagnose()
    with pytest.raises(ValueError, match="no model to predict with"):
        again.predict(0, [0.5])


def test_what_is_no_journal(tmp_path):
    (tmp_path / "x.jsonl").write_text("hello\n")
    with pytest.raises(JournalError, match="not a journal"):
        read_result(tmp_path / "x.jsonl")


def test_the_end_of_a_run_is_written_with_its_estimate(tmp_path):
    result = run(tmp_path / "run.jsonl", model="icm")
    _, events = read_journal(tmp_path / "run.jsonl")
    assert events[-1]["event"] == "stopped"
    again = amsbq.Estimate.from_dict(events[-1]["estimate"])
    assert again.interval(0.5) == result.interval(0.5)
    with Journal(tmp_path / "run.jsonl") as journal:  # and nothing is locked by looking
        assert repr(journal.events) == repr(events)  # NaN is not equal to itself


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
