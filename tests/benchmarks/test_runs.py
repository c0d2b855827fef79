"""Runs of the arena: every method runs, results are stored and reused, and the report says what they say."""

import math
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import amsbq
from benchmarks.arena import designs, figures, methods, report, runs, store
from benchmarks.arena.families import family, problem_named
from benchmarks.arena.methods import METHODS, log_row, row
from benchmarks.arena.problem import Moments
from benchmarks.arena.results import Results, stages_of
from benchmarks.arena.scores import Row
from benchmarks.arena.store import Record, append, compact, freeze, from_json, load, meaning, to_json
from benchmarks.arena.tables import advice, contests, coverage_by_family, error_bars, verdicts

SMALL = replace(methods.SETTINGS, max_evaluations=8)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs(name, monkeypatch):
    monkeypatch.setattr(methods, "SETTINGS", SMALL)
    monkeypatch.setattr(methods, "TRACED", ("3",))
    problem = problem_named("boundary-value/0")
    stage = METHODS[name].stages(problem)[0]
    [found] = runs.run((problem.key, name, stage, 1))
    assert not found.failed
    costs = [r.cost for r in found.rows]
    if name in ("multi-fidelity Monte Carlo", "MLBLUE"):  # not even the smallest pilot can be paid
        assert not costs
        return
    assert costs == sorted(costs)
    assert 0 < costs[-1] <= 3.0 + 1e-9
    assert found.evaluations >= 2
    assert all(abs(r.error) < 20 for r in found.rows)
    assert (found.problem, found.stage, found.output) == ("boundary-value/0", stage, 0)
    assert runs.is_current(found)


@pytest.mark.parametrize("key", ["outputs/2", "evidence/3", "free/0", "odd-noise/6", "poor-designs/0", "transformed/4"])
@pytest.mark.parametrize("name", ["auto", "auto, given data", "vbq", "Monte Carlo", "Sobol points", "control variates"])
def test_methods_run_on_problems_of_every_kind(name, key, monkeypatch):
    monkeypatch.setattr(methods, "SETTINGS", SMALL)
    problem = problem_named(key)
    stages = METHODS[name].stages(problem)
    if not stages:
        assert problem.log or (not METHODS[name].given_data if problem.design else not problem.plain)
        return
    found = runs.run((key, name, stages[0], 0))
    assert [record.output for record in found] == list(range(len(problem.outputs) or 1))
    assert all(not record.failed and len(record.rows) == 1 for record in found)
    assert all(np.isfinite(record.rows[0].error) for record in found)


def test_budgets_are_run_anew_and_only_long_runs_are_traced(monkeypatch):
    monkeypatch.setattr(methods, "SETTINGS", replace(methods.SETTINGS, max_evaluations=30))
    problem = problem_named("one-source/0")
    assert METHODS["vbq"].stages(problem) == ("3", "5", "10", "20")  # it should have converged by then
    assert METHODS["vbq"].stages(problem_named("rough/0")) == ("3", "5", "10")
    at = {stage: runs.run((problem.key, "vbq", stage, 0))[0] for stage in ("3", "5", "10")}
    assert [len(at[stage].rows) for stage in ("3", "5")] == [1, 1]
    assert [at[stage].rows[-1].cost for stage in ("3", "5", "10")] == [3.0, 5.0, 10.0]
    assert len(at["10"].rows) > 5


def test_a_run_that_takes_too_long_is_stopped(monkeypatch):
    monkeypatch.setattr(methods, "SETTINGS", replace(methods.SETTINGS, cpu_limit=0.0))
    [found] = runs.run(("one-source/0", "vbq", "10", 0))
    assert found.stopped == "processor time"
    assert found.rows[-1].cost < 10


def test_a_row_compares_an_estimate_with_the_truth():
    estimate, truth = amsbq.Estimate([3.0], [0.5]), Moments(2.0, 4.0)
    found = row(7.0, estimate, truth)
    assert found.error == 0.25
    assert found.std == 0.125
    np.testing.assert_allclose(found.intervals[-1], 0.25 + 0.125 * 1.959964 * np.array([-1, 1]), rtol=1e-6)
    # in units of 4: a Gaussian with standard deviation 0.125, two of them away from the truth
    assert found.surprise == pytest.approx(2.0 + 0.5 * math.log(2 * math.pi) + math.log(0.125))
    assert found.probability == pytest.approx(0.0227501, rel=1e-5)
    assert math.isnan(row(1.0, amsbq.Estimate([3.0]), truth).std)


def test_a_row_of_a_logarithm_compares_a_positive_estimate_with_one():
    found = log_row(3.0, amsbq.Estimate([math.e], [0.5]))
    assert found.error == pytest.approx(1.0)
    low, high = (math.e + sign * 0.5 * 1.959964 for sign in (-1, 1))
    np.testing.assert_allclose(found.intervals[-1], (math.log(low), math.log(high)), rtol=1e-6)
    negative = log_row(3.0, amsbq.Estimate([-0.1], [0.5]))
    assert negative.error == methods.SETTINGS.least_log
    assert negative.intervals[-1][0] == methods.SETTINGS.least_log


def test_logarithms_of_monte_carlo_are_those_of_averages():
    problem = problem_named("evidence/3")
    [found] = runs.run((problem.key, "Monte Carlo", "10", 0))
    X = problem.measure.sample(200_000, np.random.default_rng(0))
    whole = np.log(np.mean(np.exp(problem.functions[0](X))))
    assert whole == pytest.approx(problem.moments().mean, abs=0.02)
    assert abs(found.rows[0].error) < 3  # of ten points: were the truth not subtracted twice, it would be off by 0.9


def test_nested_designs_are_nested():
    problem = problem_named("boundary-value/1")
    data = designs.at_stage(problem, "small data", seed=3)
    sets = [{tuple(x) for x in data.of(source)[0]} for source in range(5)]
    assert [len(points) for points in sets] == [2, 4, 8, 16, 32]
    assert all(finer < coarser for finer, coarser in pairwise(sets))
    assert data.cost == pytest.approx(2 + 4 * 0.5 + 8 * 0.25 + 16 * 0.12 + 32 * 0.06)
    differences = designs.differences(data)
    for level, (X, d) in enumerate(differences[:-1]):
        np.testing.assert_allclose(d, problem.functions[level](X) - problem.functions[level + 1](X), rtol=1e-10)
    # averages of all differences telescope to the primary source's where every level has the same points
    total = designs.averages(problem, data, 0)
    assert total.mean == pytest.approx(sum(d.mean() for _, d in differences))


def test_space_filling_designs_share_half_of_the_primary_points():
    data = designs.at_stage(problem_named("smooth/1"), "small data", seed=3)
    first, second = ({tuple(x) for x in data.of(source)[0]} for source in (0, 1))
    assert (len(first), len(second), len(first & second)) == (5, 20, 2)


@pytest.mark.parametrize("problem", family("poor-designs"), ids=lambda p: p.key)
def test_poor_designs_are_their_own_and_differ_with_the_seed(problem):
    assert METHODS["auto, given data"].stages(problem) == ("own data",)
    assert not METHODS["auto"].stages(problem)
    first, again, other = (designs.at_stage(problem, "own data", seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.X, again.X)
    assert not np.allclose(first.X, other.X)
    low, high = problem.measure.bounds.T
    assert ((low <= first.X) & (high >= first.X)).all()


def record(problem="smooth/1", method="auto", seed=0, error=0.1, half=0.3, digest="d", stage="10", cost=10.0):
    intervals = tuple((error - k * half, error + k * half) for k in (0.3, 0.6, 1))
    rows = [Row(cost, error, half, intervals, 0.5, 0.4)]
    return Record(problem, method, stage, seed, 0, "f", digest, 1.0, 20, rows)


@pytest.mark.parametrize(
    "key", ["smooth/1", "boundary-value/0", "transformed/1", "transformed/2", "discrete/1", "free/3"]
)
def test_given_values_are_those_of_the_problem(key):
    """Its functions take the locations of the measure, even if sources are called with a function of these."""
    problem = problem_named(key)
    data = designs.at_stage(problem, "small data", seed=3)
    for source, function in enumerate(problem.functions):
        X, y = data.of(source)
        np.testing.assert_allclose(y, function(X), rtol=1e-12, atol=1e-14)


def test_records_survive_the_disk(tmp_path):
    file = tmp_path / "results.jsonl"
    bare = replace(record("smooth/3", "Sobol points", 1), rows=[Row(3.0, -0.25, math.nan)], stage="3", output=2)
    append([record(), bare], file)
    with file.open("a") as stream:
        stream.write('{"problem": "smooth/5", "meth')  # the process died here
    append([record(seed=2)], file)
    found = load(file)
    key, bare_key = ("smooth/1", "auto", "10", 0, 0), ("smooth/3", "Sobol points", "3", 1, 2)
    assert list(found) == [key, bare_key, ("smooth/1", "auto", "10", 2, 0)]
    assert found[key] == from_json(to_json(record()))
    assert found[key].rows[0].error == pytest.approx(record().rows[0].error, rel=1e-3)
    kept = found[bare_key].rows[0]
    assert (kept.cost, kept.error, kept.intervals) == (3.0, -0.25, ())
    assert math.isnan(kept.std)
    append([record(digest="new")], file)
    assert load(file)[key].digest == "new"
    before = load(file).keys()
    compact(load(file).values(), file)
    assert load(file).keys() == before
    assert len(file.read_text().splitlines()) == 3


def test_results_become_a_part_of_the_baseline(tmp_path):
    file, baseline = tmp_path / "results.jsonl", tmp_path / "baseline.jsonl.xz"
    compact([record(seed=0), record(seed=1)], baseline)
    append([record(seed=1, digest="new"), record(seed=2)], file)
    freeze(file, baseline)
    assert [(r.seed, r.digest) for r in load(baseline).values()] == [(0, "d"), (1, "new"), (2, "d")]
    assert not file.exists()


def test_the_digest_is_of_what_code_means():
    code = '"""Module."""\ndef f(x):\n    """Return it."""\n    return x + 1\n'
    assert meaning(code) == meaning("def f(x):\n    # a comment\n    return (x + 1)\n")
    assert meaning(code) != meaning("def f(x):\n    return x + 2\n")


def test_the_digest_depends_on_the_method_and_its_settings(monkeypatch):
    assert len({store.digest(method) for method in ("auto", "icm", "Monte Carlo")}) == 3
    assert store.fingerprint("smooth/1") != store.fingerprint("smooth/2")
    before = store.digest("auto")
    monkeypatch.setattr(store, "SETTINGS", SMALL)
    assert store.digest.__wrapped__("auto") != before


def test_runs_are_made_once(tmp_path, monkeypatch):
    file = tmp_path / "results.jsonl"
    monkeypatch.setattr(runs, "BASELINE", tmp_path / "none.jsonl")
    problems = family("one-source")
    jobs = runs.wanted(problems, ["Monte Carlo", "control variates"], range(2))
    assert len(jobs) == 2 * 4 * 4  # control variates need a secondary source; seeds, problems, budgets
    assert runs.missing(jobs, file) == jobs
    runs.run_all(jobs[:3], 1, file)
    assert all(r.rows and not r.failed for r in load(file).values())
    assert runs.missing(jobs, file) == jobs[3:]
    monkeypatch.setattr(runs, "digest", lambda method: "of other code")
    assert runs.missing(jobs, file) == jobs
    assert runs.missing(jobs, file, by_any_code=True) == jobs[3:]  # as for the baseline, whose files have moved since


def test_an_error_of_a_method_is_part_of_its_record(monkeypatch):
    def fail(problem, truths, stage, seed):
        raise ValueError("no")

    monkeypatch.setitem(runs.METHODS, "Monte Carlo", replace(METHODS["Monte Carlo"], run=fail))
    assert runs.run(("smooth/1", "Monte Carlo", "3", 0))[0].failed == "ValueError: no"


def several(errors, method="auto", family="smooth", numbers=(1, 3, 4, 6)):
    """Return records of four problems, two of them development, with errors that vary a little with the seed."""
    return [
        record(f"{family}/{number}", method, seed, error * (1 + 0.02 * seed))
        for number, error in zip(numbers, errors, strict=True)
        for seed in range(3)
    ]


def test_the_best_peer_is_chosen_on_development_and_kept_for_validation():
    ours = several([0.1, 0.2, 0.1, 0.2])  # problems 1 and 3 are validation, 4 and 6 development
    monte_carlo = several([0.01, 0.02, 0.5, 0.6], "Monte Carlo")
    sobol = several([0.4, 0.8, 0.2, 0.4], "Sobol points")
    partial = [r for r in several([1e-6] * 4, "MLBLUE") if r.problem != "smooth/3"]  # did not solve all problems
    found = contests(Results.of([*ours, *monte_carlo, *sobol, *partial]))
    assert [(c.family, c.half, c.budget, c.peer) for c in found] == [
        ("smooth", half, "10", "Sobol points") for half in ("development", "validation")
    ]
    assert found[0].ratio.value == pytest.approx(0.5)
    assert found[1].ratio.value == pytest.approx(0.25)  # not against Monte Carlo, which was lucky there
    assert all(c.ratio.verdict == -1 for c in found)
    assert "of 1 contests `auto` wins 1 and loses 0" in verdicts(found)
    lost = contests(Results.of([*several([0.4, 0.8, 0.3, 0.6]), *sobol]))
    assert [c.ratio.verdict for c in lost] == [1, 0]
    assert "lost: smooth at budget 10 to Sobol points, factor 1.50 [1.50, 1.50]" in verdicts(lost)


def test_error_bars_are_counted():
    results = Results.of([record(error=0.1, half=0.3), record(seed=1, error=0.1, half=0.05)])
    [line] = [line for line in error_bars(results).splitlines() if "| auto |" in line]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    # 0.1 ± (0.09, 0.18, 0.3) holds zero at 80 and 95 %, 0.1 ± 0.05 never
    assert cells[:3] == ["validation", "auto", "2"]
    assert [cell.split()[0] for cell in cells[3:6]] == ["0", "50", "50"]
    assert "| [smooth](smooth.md) | 0 [0, 84] | 50 [1, 99] | 50 [1, 99] |" in coverage_by_family(
        results, "validation", ""
    )


def test_trajectories_join_the_budgets_of_methods_that_have_one_estimate_each():
    sampled = [record(method="Monte Carlo", stage=stage, cost=float(stage)) for stage in ("10", "3", "5", "20")]
    active = [record(stage="3", cost=3.0), record(stage="10", cost=9.5)]
    found = Results.of([*sampled, *active]).trajectories()
    assert {r.method: [row.cost for row in r.rows] for r in found} == {"Monte Carlo": [3.0, 5.0, 10.0], "auto": [9.5]}
    assert stages_of(Results.of([*sampled, record(stage="small data")])) == ["3", "5", "10", "20", "small data"]


def test_advice_names_the_families_in_which_the_default_is_better_and_worse():
    # of each family the first two of four problems are validation; of rough, the last one too
    monte_carlo = [r for family in ("smooth", "rough", "skewed") for r in several([0.2] * 4, "Monte Carlo", family)]
    better, worse = several([0.1, 0.11, 0.1, 0.11]), several([0.4, 0.44, 0.4, 0.44], family="rough")
    found = advice(Results.of([*better, *worse, *several([0.1, 0.4, 0.1, 0.4], family="skewed"), *monte_carlo]))
    lines = {line.split("**")[1]: line for line in found.splitlines() if line.startswith("- ")}
    assert "[smooth](arena/smooth.md) ×0.5" in lines["Use it"]
    assert "[rough](arena/rough.md) ×2" in lines["Use the best other method"]
    assert "skewed" in lines["No difference has been shown"]
    assert "On 7 problems that were not used to develop it, in 3 families" in found
    assert advice(Results.of(better)) == "There are no results to compare yet."


def test_the_report_is_written_between_its_marks(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    file = tmp_path / "results.jsonl"
    append(several([0.1, 0.2, 0.1, 0.2]), file)
    append(several([0.5, 0.6, 0.5, 0.6], "Monte Carlo"), file)
    monkeypatch.setattr(report, "FILE", file)
    monkeypatch.setattr(report, "BASELINE", tmp_path / "none.jsonl")
    monkeypatch.setattr(report, "compact", lambda records: compact(records, file))
    page, beside = tmp_path / "arena.md", tmp_path / "arena"
    page.write_text(f"# Before\n\n{report.BEGIN}old\n{report.END}\n\nafter\n")
    beside.mkdir()
    (beside / "gone.md").write_text(f"<!-- {report.MADE} -->\n")
    (beside / "rules.md").write_text("by hand\n")
    report.write(tmp_path)
    text = page.read_text()
    assert text.startswith(f"# Before\n\n{report.BEGIN}\nOn 2 problems")
    assert text.endswith(f"{report.END}\n\nafter\n")
    assert "old\n" not in text
    assert "All results are from release" in text
    assert "validation: of 1 contests `auto` wins 1 and loses 0" in (beside / "contests.md").read_text()
    assert {file.name for file in beside.glob("*.md")} == {
        "rules.md",
        "contests.md",
        "methods.md",
        "families.md",
        "smooth.md",
    }
    targets = {target for file in [page, *beside.glob("*.md")] for target in links(file)}
    assert len(targets) >= 8
    assert [target for target in targets if not target.exists()] == []
    first = (beside / "coverage.svg").read_bytes()
    figures.coverage(Results.of(load(file).values()), beside / "coverage.svg")
    assert (beside / "coverage.svg").read_bytes() == first


def links(file):
    """Return the files that a page links or shows."""
    return [file.parent / target for target in re.findall(r"\]\(([^)]+)\)", file.read_text())]
