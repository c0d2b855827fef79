"""Certificates in journals: they are kept apart from the run, go on where they were interrupted, and may be told."""

import json
import math
import re

import numpy as np
import pytest

import amsbq
from amsbq.cli.main import main
from amsbq.execution.journal import read_journal
from amsbq.execution.state import read_state

TRUTH = (math.exp(2) - 1) / 2

SIMULATOR = """
import math, pathlib
def fine(x):
    with (pathlib.Path(__file__).parent / "calls.txt").open("a") as file:
        file.write(f"{x[0]!r}\\n")
    return math.exp(2 * x[0])
"""

PROBLEM = """
budget = 4
[inputs]
t = { low = 0.0, high = 1.0 }
[[sources]]
name = "fine"
"""


def fine(x):
    return math.exp(2 * x[0])


@pytest.fixture
def run(tmp_path):
    journal = tmp_path / "run.jsonl"
    return amsbq.integrate(fine, amsbq.Uniform(0, 1), budget=4, model="icm", journal=journal), journal


@pytest.fixture
def of_file(tmp_path, capsys):
    """The journal of a run that is made from a problem file, and what counts the calls of its simulator."""
    (tmp_path / "simulator.py").write_text(SIMULATOR)
    (tmp_path / "problem.toml").write_text(PROBLEM + 'python = "simulator:fine"\n')
    assert main(["run", str(tmp_path / "problem.toml")]) == 0
    capsys.readouterr()
    return tmp_path / "problem.jsonl", lambda: len((tmp_path / "calls.txt").read_text().splitlines())


def test_journals_keep_certificates_apart(run):
    result, journal = run
    before = read_state(journal)
    made = amsbq.certify(result, 5, journal=journal)
    after, read = read_state(journal), amsbq.read_result(journal)
    assert (len(after.evaluations), after.stopped, after.budget) == (len(before.evaluations), "budget", before.budget)
    assert (read.mean, read.std, read.spent) == (result.mean, result.std, result.spent)
    assert (read.certificate.mean, read.certificate.interval()) == (made.mean, made.interval())
    assert str(read.certificate) == str(made)
    assert f"certificate: {made.summary()}" in str(read)
    about = {finding.about: finding for finding in read.diagnose()}
    assert about["certificate"].text == made.comparison().text
    later = amsbq.integrate(fine, amsbq.Uniform(0, 1), budget=5, model="icm", journal=journal)
    assert later.spent == 5


def test_the_same_call_goes_on(run):
    """A certificate is interrupted after each number of evaluations, and ends as if it had not been."""
    result, journal = run
    whole = amsbq.certify(result, 4)
    calls = 0

    def stubborn(x):
        nonlocal calls
        calls += 1
        if calls in (2, 4):
            raise KeyboardInterrupt
        return fine(x)

    it = result.integrator
    it.sources[0].function = stubborn
    for expected in (1, 2):
        with pytest.raises(KeyboardInterrupt, match="the same call with the same journal continues it"):
            amsbq.certify(result, 4, journal=journal)
        assert len(read_state(journal).certificates[0].evaluations) == expected
    found = amsbq.certify(result, 4, journal=journal)
    assert (found.mean, found.std, found.interval()) == (whole.mean, whole.std, whole.interval())
    assert calls == 6
    assert amsbq.certify(result, 4, journal=journal).mean == whole.mean
    assert calls == 6
    amsbq.certify(result, 4, 1, journal=journal)
    assert calls == 10
    assert len(read_state(journal).certificates) == 2


def test_evaluations_may_be_told_later(run):
    _, journal = run
    read = amsbq.read_result(journal)  # without functions
    waiting = amsbq.certify(read, 3, journal=journal)
    waiting.tell(query := waiting.ask(), fine(query.x))
    again = amsbq.certify(amsbq.read_result(journal), 3, journal=journal)
    assert [e.x[0] for e in again.evaluations] == [query.x[0]]
    while (query := again.ask()) is not None:
        again.tell(query, fine(query.x))
    found = amsbq.read_result(journal).certificate
    assert found.mean == again.mean
    with pytest.raises(ValueError, match="read from a journal"):
        found.tell(query, 1.0)


def test_values_of_certificates_may_begin_another_run(run, tmp_path):
    result, journal = run
    made = amsbq.certify(result, 3, journal=journal)
    from amsbq.execution.revisions import taken_evaluations

    it = amsbq.Integrator(fine, amsbq.Uniform(0, 1))
    taken = taken_evaluations(journal, it, None)
    assert {e.x[0] for e in made.evaluations} < {e.x[0] for e in taken}


def test_malformed_certificates_are_reported(run, tmp_path):
    result, journal = run
    amsbq.certify(result, 2, journal=journal)
    header, events = read_journal(journal)
    from amsbq.execution.journal import Journal, JournalError

    twice = tmp_path / "twice.jsonl"
    with Journal(twice) as copy:
        copy.begin({key: value for key, value in header.items() if key not in ("event", "format")})
        for event in [*events, events[-1]]:
            copy.write(event)
    with pytest.raises(JournalError, match="of a certificate was made twice"):
        read_state(twice)


def test_a_share_of_the_budget_is_kept(tmp_path):
    result = amsbq.integrate(
        fine, amsbq.Uniform(0, 1), budget=8, certify=0.5, model="icm", journal=tmp_path / "run.jsonl"
    )
    assert result.spent <= 4
    assert result.certificate.spent <= 4
    low, high = result.certificate.interval()
    assert low <= TRUTH <= high
    again = amsbq.integrate(
        fine, amsbq.Uniform(0, 1), budget=8, certify=0.5, model="icm", journal=tmp_path / "run.jsonl"
    )
    assert again.certificate.mean == result.certificate.mean


@pytest.mark.parametrize(
    ("about", "text"),
    [
        ({"budget": 5, "certify": 1.0}, "certify must be a share of the budget, such as 0.2, got 1.0"),
        ({"rel_tol": 0.1, "certify": 0.2}, "certify reserves a share of the budget: pass a budget"),
        ({"budget": 5, "certify": 0.2}, "a certificate budget of 1 covers 1 evaluation"),
    ],
)
def test_a_share_that_cannot_be_kept_is_refused_at_once(about, text):
    def never(x):
        raise AssertionError

    with pytest.raises(ValueError, match=text):
        amsbq.integrate(never, amsbq.Uniform(0, 1), **about)


def test_a_problem_file_keeps_a_share(of_file, capsys):
    """Of 4 a half: two evaluations of the run, two of the certificate; the commands that it prints mean both."""
    folder, calls = of_file[0].parent, of_file[1]
    path, before = folder / "kept.toml", calls()
    path.write_text("certify = 0.5\nseed = 3\n" + (folder / "problem.toml").read_text())
    assert main(["run", str(path)]) == 0
    printed = capsys.readouterr().out
    found = amsbq.read_result(folder / "kept.jsonl")
    assert calls() == before + 4
    assert (found.spent, found.certificate.spent, found.certificate.plan.seed) == (2, 2, 3)
    assert f"certificate: {found.certificate.summary()}" in printed
    assert "--budget 8" in printed
    assert main(["run", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["certificate"]["mean"] == found.certificate.mean
    assert main(["certify", str(folder / "kept.jsonl"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mean"] == found.certificate.mean
    assert calls() == before + 4
    assert main(["resume", str(folder / "kept.jsonl"), "--budget", "8"]) == 0
    assert calls() == before + 4 + 2 + 4
    assert "--budget 16" in capsys.readouterr().out
    assert main(["resume", str(folder / "kept.jsonl"), "--budget", "2"]) == 2
    assert "--budget: a certificate budget of 1 covers 1 evaluation of fine" in capsys.readouterr().err


def test_a_share_of_a_run_that_is_evaluated_elsewhere(tmp_path, capsys):
    path = tmp_path / "elsewhere.toml"
    path.write_text("certify = 0.5\n" + PROBLEM + "detached = true\n")
    journal = tmp_path / "elsewhere.jsonl"
    assert main(["ask", str(path), "--n", "4"]) == 0
    asked = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(asked) == 2
    for line in asked:
        assert main(["tell", str(journal), str(line["id"]), str(fine([line["x"]["t"]]))]) == 0
    capsys.readouterr()
    assert main(["certify", str(journal)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize(
    ("about", "text"),
    [
        ("certify = 1.5\n", "certify: must be a share of the budget, such as 0.2, got 1.5"),
        ("certify = 'half'\n", "certify: must be a share of the budget"),
        (
            "certify = 0.3\n",
            r"a certificate budget of 1\.2 covers 1 evaluation of fine.*with a larger budget or certify = 0\.5$",
        ),
        ("certify = 0.37\ntarget = 'variance'\n", r"an interval needs 3: allow at least 3, .* or certify = 0\.75$"),
        ("certify = 0.5\ntarget = 'variance'\n", "certify: .*an interval needs 3"),
    ],
)
def test_a_share_that_a_problem_file_cannot_keep(of_file, capsys, about, text):
    path = of_file[0].parent / "wrong.toml"
    path.write_text(about + (path.parent / "problem.toml").read_text())
    assert main(["run", str(path)]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert re.search(text, error)
    path.write_text(
        about.replace("1.5", "0.2") + path.read_text().partition("\n")[2].replace("budget = 4", "rel_tol = 0.1")
    )
    if about == "certify = 1.5\n":
        assert main(["run", str(path)]) == 2
        assert "certify: reserves a share of the budget: pass a budget" in capsys.readouterr().err


def test_the_command_line(of_file, capsys):
    journal, calls = of_file
    before = calls()
    assert main(["certify", str(journal), "--budget", "3"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("certificate: ")
    assert calls() == before + 3
    assert main(["certify", str(journal), "--budget", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert calls() == before + 3
    assert found["complete"]
    assert found["mean"] == amsbq.read_result(journal).certificate.mean
    assert f"{found['mean']:.1f}"[:3] in printed
    assert main(["certify", str(journal)]) == 2
    assert "--budget is missing" in capsys.readouterr().err


def test_the_command_line_without_functions(run, capsys):
    _, journal = run
    assert main(["certify", str(journal), "--budget", "2"]) == 0
    asked = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["id"] for line in asked] == [0, 1]
    for line in asked[:1]:
        assert main(["certify", str(journal), "--tell", str(line["id"]), str(fine([line["x"]["x0"]]))]) == 0
    (left,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert left == asked[1]
    assert main(["certify", str(journal), "--tell", "0", "1.0"]) != 0
    assert "is not pending" in capsys.readouterr().err
    assert main(["certify", str(journal)]) == 0  # which goes on with what was begun
    capsys.readouterr()
    assert main(["certify", str(journal), "--tell", "1", "--failed", "no mesh"]) == 0
    assert "1 of 2 fresh evaluations of fine failed" in capsys.readouterr().out


@pytest.mark.parametrize("cost", ["nan", "-1", "0", "inf"])
def test_a_cost_that_cannot_be_is_refused_before_it_is_written(run, capsys, cost):
    _, journal = run
    assert main(["certify", str(journal), "--budget", "2"]) == 0
    content = journal.read_bytes()
    assert main(["certify", str(journal), "--tell", "0", "1.0", f"--cost={cost}"]) == 2
    assert re.search("the cost of query 0 must be positive, got", capsys.readouterr().err)
    assert journal.read_bytes() == content
    waiting = amsbq.certify(amsbq.read_result(journal), 2, journal=journal)
    with pytest.raises(ValueError, match="cost must be"):
        waiting.tell(waiting.ask(), 1.0, cost=float(cost))
    assert journal.read_bytes() == content


def test_the_page_shows_both(run, tmp_path):
    pytest.importorskip("plotly")
    result, journal = run
    made = amsbq.certify(result, 5, journal=journal)
    amsbq.report.report(journal, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "The model, and an estimate that rests on none" in text
    assert made.comparison().text.partition(":")[2] in text
    assert np.isfinite(made.mean)
