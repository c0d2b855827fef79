"""Runs of the arena: every method runs, results are stored and reused, and the report says what they say."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import amsbq
from benchmarks.arena import designs, figures, methods, report, runs, store
from benchmarks.arena.families import problem_named
from benchmarks.arena.members import beside_members, cells, ratio
from benchmarks.arena.methods import METHODS, row
from benchmarks.arena.problem import Moments
from benchmarks.arena.scores import Row
from benchmarks.arena.store import Record, append, compact, from_json, load, meaning, to_json
from benchmarks.arena.tables import Results, contests, error_bars, losses

SMALL = replace(methods.SETTINGS, budget=3.0, max_evaluations=8, baseline_budgets=(2.0, 3.0))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs(name, monkeypatch):
    monkeypatch.setattr(methods, "SETTINGS", SMALL)
    monkeypatch.setattr(designs, "SIZES", ((2, 5),))
    found = runs.run(("boundary-value/0", name, 1), "digest")
    assert not found.failed
    costs = [r.cost for r in found.rows]
    if name in ("multi-fidelity Monte Carlo", "MLBLUE"):  # not even the smallest pilot can be paid
        assert not costs
        return
    assert costs == sorted(costs)
    assert 0 < costs[-1] <= 3.0 + 1e-9
    assert found.evaluations >= 2
    assert all(abs(r.error) < 20 for r in found.rows)


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


def test_nested_designs_are_nested():
    problem = problem_named("boundary-value/1")
    data = designs.observe(problem, (2, 5), seed=3)
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
    data = designs.observe(problem_named("smooth/1"), (2, 5), seed=3)
    first, second = ({tuple(x) for x in data.of(source)[0]} for source in (0, 1))
    assert (len(first), len(second), len(first & second)) == (5, 20, 2)


def record(problem="smooth/1", method="auto", seed=0, error=0.1, half=0.3, digest="d"):
    intervals = tuple((error - k * half, error + k * half) for k in (0.3, 0.6, 1))
    rows = [Row(cost, error * 10 / cost, half, intervals, 0.5, 0.4) for cost in (3.0, 5.0, 10.0)]
    return Record(problem, method, seed, digest, 1.0, 20, rows)


@pytest.mark.parametrize("key", ["smooth/1", "boundary-value/0", "transformed/1", "transformed/2", "discrete/1"])
def test_given_values_are_those_of_the_problem(key):
    """Its functions are of the locations of the measure, also where sources are called with a function of these."""
    problem = problem_named(key)
    data = designs.observe(problem, (2, 5), seed=3)
    for source, function in enumerate(problem.functions):
        X, y = data.of(source)
        np.testing.assert_allclose(y, function(X), rtol=1e-14, atol=1e-14)


def test_records_survive_the_disk(tmp_path):
    file = tmp_path / "results.jsonl"
    bare = Record("smooth/3", "Sobol points", 1, "e", 0.5, 3, [Row(3.0, -0.25, math.nan)], "")
    append(record(), file)
    append(bare, file)
    with file.open("a") as stream:
        stream.write('{"problem": "smooth/5", "meth')  # the process died here
    append(record(seed=2), file)
    found = load(file)
    assert list(found) == [("smooth/1", "auto", 0), ("smooth/3", "Sobol points", 1), ("smooth/1", "auto", 2)]
    assert found["smooth/1", "auto", 0].rows == from_json(to_json(record())).rows
    assert found["smooth/1", "auto", 0].rows[0].error == pytest.approx(record().rows[0].error, rel=1e-3)
    kept = found["smooth/3", "Sobol points", 1].rows[0]
    assert (kept.cost, kept.error, kept.intervals) == (3.0, -0.25, ())
    assert math.isnan(kept.std)
    append(record(digest="new"), file)
    assert load(file)["smooth/1", "auto", 0].digest == "new"
    before = load(file).keys()
    compact(load(file).values(), file)
    assert load(file).keys() == before
    assert len(file.read_text().splitlines()) == 3


def test_the_digest_is_of_what_code_means():
    code = '"""Module."""\ndef f(x):\n    """Return it."""\n    return x + 1\n'
    assert meaning(code) == meaning("def f(x):\n    # a comment\n    return (x + 1)\n")
    assert meaning(code) != meaning("def f(x):\n    return x + 2\n")


def test_the_digest_depends_on_method_problem_and_settings(monkeypatch):
    digests = {store.digest(m, p) for m in ("auto", "icm", "Monte Carlo") for p in ("smooth/1", "smooth/2")}
    assert len(digests) == 6
    before = store.digest("auto", "smooth/1")
    monkeypatch.setattr(store, "SETTINGS", SMALL)
    assert store.digest("auto", "smooth/1") != before


def test_runs_are_made_once(tmp_path, monkeypatch):
    file = tmp_path / "results.jsonl"
    jobs = runs.wanted(["one-source"], ["Monte Carlo", "control variates"], seeds=2)
    assert len(jobs) == 8  # control variates need a secondary source
    assert list(runs.missing(jobs, file)) == jobs
    runs.run_all(jobs[:3], 1, file)
    assert all(r.rows and not r.failed for r in load(file).values())
    assert list(runs.missing(jobs, file)) == jobs[3:]
    monkeypatch.setattr(runs, "digest", lambda method, problem: "of other code")
    assert list(runs.missing(jobs, file)) == jobs


def test_an_error_of_a_method_is_part_of_its_record(monkeypatch):
    def fail(problem, truth, seed):
        raise ValueError("no")

    monkeypatch.setitem(runs.METHODS, "Monte Carlo", replace(METHODS["Monte Carlo"], run=fail))
    assert runs.run(("smooth/1", "Monte Carlo", 0), "d").failed == "ValueError: no"


def test_contests_compare_typical_errors_on_the_same_problems():
    ours = [record(error=0.1), record(problem="smooth/3", error=0.4)]
    peers = [record(method="Monte Carlo", error=0.2), record("smooth/3", "Monte Carlo", error=0.1)]
    peers.append(record("smooth/5", "Monte Carlo", error=1e-6))  # that we did not solve
    partial = [record(method="Sobol points", error=1e-6)]  # did not solve smooth/3
    found = contests(Results.of([*ours, *peers, *partial]))
    assert [(c.family, c.half, c.budget) for c in found] == [("smooth", "validation", b) for b in (3.0, 5.0, 10.0)]
    assert found[-1].errors == {"auto": pytest.approx(0.2), "Monte Carlo": pytest.approx(math.sqrt(0.02))}
    assert found[-1].best_peer == "Monte Carlo"
    assert found[-1].factor == pytest.approx(math.sqrt(2))
    assert "lost: smooth at budget 10 to Monte Carlo, by a factor of 1.4" in losses(found)
    assert "in 0 of 3" in losses(found)


def test_the_default_is_compared_with_its_members_where_both_have_a_cell():
    ours = [record(seed=0, error=0.3), record(seed=1, error=0.1), record("smooth/3", error=0.4)]
    alone = [record(method="vbq", error=0.1), record("smooth/3", "vbq", error=0.2), record("rough/1", "vbq", error=9.0)]
    results = Results.of([*ours, *alone])
    found = cells(results.of_method("auto"))
    assert found["smooth/1", 10.0] == pytest.approx(math.sqrt(0.05))  # over seeds
    assert found["smooth/1", 3.0] == pytest.approx(math.sqrt(0.05) * 10 / 3)
    ratios = [math.sqrt(5), 2.0] * 3  # of two problems at three budgets
    expected = math.exp(np.mean(np.log(ratios)))
    error = expected * np.std(np.log(ratios), ddof=1) / math.sqrt(6)
    np.testing.assert_allclose(ratio(found, cells(results.of_method("vbq"))), (expected, error), rtol=1e-12)
    assert all(map(math.isnan, ratio(found, {})))
    lines = [line.split(" | ") for line in beside_members(results).splitlines()[2:]]
    assert [line[0] for line in lines] == ["| smooth", "| all"]
    assert lines[0][1] == f"**{expected:.2f} ± {error:.2f}**"
    assert lines[0][2] == "–"
    assert not beside_members(Results.of(ours))


def test_error_bars_are_counted():
    table = error_bars(Results.of([record(error=0.1, half=0.3), record(seed=1, error=0.1, half=0.05)]))
    [line] = [line for line in table.splitlines() if "| auto |" in line]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    # 0.1 ± (0.09, 0.18, 0.3) holds zero at 80 and 95 %, 0.1 ± 0.05 never
    assert cells[:3] == ["validation", "auto", "6"]
    assert [cell.split()[0] for cell in cells[3:6]] == ["0", "50", "50"]


def test_the_report_is_written_between_its_marks(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    file = tmp_path / "results.jsonl"
    for seed in range(2):
        append(record(seed=seed), file)
        append(record(method="Monte Carlo", seed=seed, error=0.5), file)
    monkeypatch.setattr(report, "load", lambda: load(file))
    monkeypatch.setattr(report, "compact", lambda records: compact(records, file))
    page = tmp_path / "arena.md"
    (begin, end), (then, last) = map(report.marks, report.PARTS)
    page.write_text(f"# Before\n\n{begin}old\n{end}\n\nbetween\n\n{then}old\n{last}\n\nafter\n")
    report.write(tmp_path)
    text = page.read_text()
    assert text.startswith("# Before\n")
    assert f"{end}\n\nbetween\n\n{then}" in text
    assert text.endswith(f"{last}\n\nafter\n")
    assert "old\n" not in text
    assert "`auto` has the smallest typical error in 3 of 3" in text
    assert "4 of them by older code" in text
    assert (tmp_path / "arena" / "smooth.svg").exists()
    first = (tmp_path / "arena" / "coverage.svg").read_bytes()
    figures.coverage(Results.of(load(file).values()), tmp_path / "arena" / "coverage.svg")
    assert (tmp_path / "arena" / "coverage.svg").read_bytes() == first
