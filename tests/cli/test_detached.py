"""Runs whose evaluations are made elsewhere: queries by ``amsbq ask``, answers by ``amsbq tell``."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest

from amsbq.execution import locks
from amsbq.execution.bulk import beside_here, evaluate_in_bulk, evaluated_here
from amsbq.execution.journal import Journal, read_journal
from amsbq.execution.reader import read_result
from amsbq.problems.problem_file import load_problem
from tests.waiting import eventually

PROBLEM = """
budget = 6.0
model = "icm"
[inputs]
load = { low = 0.0, high = 1.0 }
[[sources]]
name = "fine"
detached = true
[[sources]]
name = "coarse"
detached = true
cost = 0.1
valid = [-10, 10]
"""


def value(source, load, size=0.0):
    kink = abs(size - load * load)  # so that there is always something left to learn
    return math.sin(5 * load) + (load + kink if source == "fine" else 0.2)


@pytest.fixture
def problem(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(PROBLEM)
    return path


def queries(printed):
    return [json.loads(line) for line in printed.out.splitlines()]


def attended(problem, events):
    """An integrator that was asked and told in the order of a journal, without one; it must ask for the same."""
    it, pending = load_problem(problem).integrator(), {}
    list(evaluate_in_bulk(it, partial(evaluated_here, it)))
    for event in events:
        if event["event"] == "asked":
            query = it.ask()
            assert (query.id, query.source, query.x.tolist()) == (event["id"], event["source"], event["x"])
            pending[query.id] = query
        elif event["event"] == "told":
            query = pending.pop(event["id"])
            it.tell(query, event["value"], free=beside_here(it, query.x))
    return it


def test_one_after_the_other_it_is_the_run_of_a_process(problem, typed):
    journal = problem.with_suffix(".jsonl")
    while asked := queries(typed("ask", problem)):
        [query] = asked
        typed("tell", journal, query["id"], value(query["source"], **query["x"]))
    _, events = read_journal(journal)
    it = attended(problem, events)
    assert it.ask() is None
    assert [event["reason"] for event in events if event["event"] == "stopped"] == [it.stopped]
    known = [(event["id"], event["mean"], event["std"]) for event in events if event["event"] == "known"]
    assert known[1:] == [(e.id, e.mean, e.std) for e in it.evaluations][1:]  # of the first the mean is known only
    assert read_result(journal).estimate.interval() == it.estimate().interval()
    assert json.loads(typed("status", journal, "--json").out)["mean"] == it.estimate().mean


SHELL = """
import contextlib, io, json, pathlib, sys
from amsbq.cli.main import main
from tests.cli.test_detached import value
problem, note = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
journal = problem.with_suffix(".jsonl")
def typed(*arguments):
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()):
        assert main([str(argument) for argument in arguments]) == 0
    return [json.loads(line) for line in printed.getvalue().splitlines() if line.startswith("{")]
lost = typed("ask", journal, "--pending") if "--pending" in sys.argv else []
while asked := lost or typed("ask", problem):
    lost = []
    for query in asked:
        typed("tell", journal, query["id"], value(query["source"], **query["x"]))
        with note.open("a") as file:
            file.write("told\\n")
"""


@pytest.mark.slow
def test_two_shells_at_once_and_a_kill_equal_an_attended_run(problem, tmp_path):
    inputs = 'size = { low = 0.0, high = 1.0 }\n[[sources]]\nname = "fine"'
    text = PROBLEM.replace('[[sources]]\nname = "fine"', inputs).replace("cost = 0.1", "cost = 0.5")
    problem.write_text(text.replace("budget = 6.0", "budget = 26.0"))
    journal, notes = problem.with_suffix(".jsonl"), [tmp_path / "one", tmp_path / "two"]
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "OPENBLAS_NUM_THREADS": "1"}

    def shell(note, *more):
        command = [sys.executable, "-c", SHELL, str(problem), str(note), *more]
        return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)

    def told():
        return sum(event["event"] == "told" for event in read_journal(journal)[1]) if journal.exists() else 0

    shells = [shell(note) for note in notes]
    try:
        assert eventually(lambda: all(note.exists() and len(note.read_text().split()) > 3 for note in notes))
        shells[0].send_signal(signal.SIGKILL)  # wherever it is
        shells[0].wait()
        assert eventually(lambda: told() >= 16)
        shells[1].send_signal(signal.SIGKILL)
        shells[1].wait()
        with Journal(journal):  # nothing is locked, and nothing is running
            pass
        shells[:] = [shell(notes[0], "--pending")]
        assert shells[0].wait(120) == 0  # until the budget is spent
        assert told() >= 30
    finally:
        for process in shells:
            process.kill()
            process.wait()
    _, events = read_journal(journal)
    it = attended(problem, events)
    known = {event["id"]: (event["mean"], event["std"]) for event in events if event["event"] == "known"}
    assert it.ask() is None
    assert [known[e.id] for e in it.evaluations[1:]] == [(e.mean, e.std) for e in it.evaluations[1:]]
    assert read_result(journal).estimate.interval() == it.estimate().interval()


def test_queries_that_nobody_has_seen_are_asked_for_again(problem, typed):
    journal = problem.with_suffix(".jsonl")
    asked = queries(typed("ask", problem, "--n", 3))
    typed("tell", journal, asked[1]["id"], 0.5)
    assert queries(typed("ask", journal, "--pending")) == [asked[0], asked[2]]


def test_a_table_of_answers_may_grow(problem, tmp_path, typed):
    journal, table = problem.with_suffix(".jsonl"), tmp_path / "results.csv"
    typed("ask", problem, "--n", 4)
    table.write_text("id,value,reason,cost\n0,1.5,,2.25\n1,,no licence,\n")
    assert "0: fine = 1.5" in typed("tell", journal, "--from", table).out
    with table.open("a") as file:
        file.write("2,0.25,,\n3,99.0,,\n")
    printed = typed("tell", journal, "--from", table)
    assert "2 recorded, 2 already known, 0 pending" in printed.err
    result = read_result(journal)
    assert [(e.status, e.cost) for e in result.evaluations] == [
        ("ok", 2.25),
        ("failed", 0.1),
        ("ok", 1),
        ("failed", 0.1),
    ]
    assert result.evaluations[1].reason == "no licence"
    assert "outside the valid range" in result.evaluations[3].reason
    content = journal.read_bytes()
    for rows, said in (
        ("id,value,cost\n0,1.5,2.25\n2,0.3,\n", "another value: value 0.25, variance 0.0, cost 1.0"),
        ("id,value,cost\n0,1.5,2.5\n", "another cost: value 1.5, variance 0.0, cost 2.25"),
        ("id,value,cost,variance\n0,1.5,2.25,0.01\n", "another variance:"),
        ("id,value,cost\n1,0.5,\n", "already has failed: cost 0.1. To replace it"),
        ("id,reason,value\n1,no electricity,\n", "another reason:"),
    ):
        table.write_text(rows)
        assert said in typed("tell", journal, "--from", table, code=2).err
    assert journal.read_bytes() == content


def test_columns_of_answers_have_any_separator(problem, tmp_path, typed):
    journal, table = problem.with_suffix(".jsonl"), tmp_path / "results.csv"
    typed("ask", problem, "--n", 2)
    table.write_text("id;value\n0;1,5\n")
    said = typed("tell", journal, "--from", table, code=2).err
    assert "line 2: '1,5' is not a number; write a decimal point, not a comma" in said
    table.write_text("id;value\nfirst;1.5\n")
    assert (
        "line 2: id must be the number of a query, got 'first'" in typed("tell", journal, "--from", table, code=2).err
    )
    table.write_text("id;value\n0;1.5\n")
    assert "0: fine = 1.5" in typed("tell", journal, "--from", table).out
    table.write_text("id\tvalue\n1\t0.5\n")
    assert "= 0.5" in typed("tell", journal, "--from", table).out


def test_the_same_value_with_another_variance_or_cost_is_another_answer(problem, typed):
    journal = problem.with_suffix(".jsonl")
    typed("ask", problem)
    typed("tell", journal, 0, 0.5, "--variance", 0.04, "--cost", 2)
    assert "0 recorded, 1 already known" in typed("tell", journal, 0, 0.5, "--variance", 0.04, "--cost", 2).err
    assert "another variance:" in typed("tell", journal, 0, 0.5, "--variance", 0.09, "--cost", 2, code=2).err
    assert "another variance and cost:" in typed("tell", journal, 0, 0.5, code=2).err
    [made] = read_result(journal).evaluations
    assert (made.value, made.variance, made.cost) == (0.5, 0.04, 2.0)


def test_derivatives_by_discrete_inputs_are_ignored(problem, typed):
    """They mean nothing: what is told from the shell with them is learned from as if they were not known."""
    steps = PROBLEM.replace("[[sources]]", 'n = { distribution = "randint", low = 0, high = 4 }\n[[sources]]', 1)
    found = []
    for name, by_steps in (("with", "0.7"), ("without", "NaN")):
        other = problem.with_name(f"{name}.toml")
        other.write_text(steps)
        [query] = queries(typed("ask", other))
        load, n = query["x"]["load"], query["x"]["n"]
        slopes = f"[{math.cos(load)!r}, {by_steps}]"
        typed("tell", other.with_suffix(".jsonl"), 0, math.sin(load) + 0.7 * n, "--gradient", slopes)
        found.append(read_result(other.with_suffix(".jsonl")))
    learned, wanted = (each.integrator.learner for each in found)
    assert learned.posterior.channels[0].process.data.gradients().shape == (1, 2)
    np.testing.assert_array_equal(*(each.posterior.channels[0].process.data.y for each in (learned, wanted)))
    assert found[0].std == found[1].std


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["9", "1.0"], "has no query 9: valid numbers are 0 to 1"),
        (["0"], "pass an ID and its value"),
        (["0", "nan"], "value must be finite, got nan; if the evaluation failed, pass the reason: --failed REASON"),
        (["0", "1.0", "--failed", "why"], "pass an ID and its value"),
        (["0", "1.0", "--variance", "-1"], "must not be negative"),
        (["0", "1.0", "--cost", "0"], "must be positive"),
        (["0", "1.0", "--from", "table.csv"], "pass either an ID"),
        (["--from", "nowhere.csv"], "cannot be read"),
        (["0", "1.0", "--gradient", "[1, 2, 3]"], "query 0: gradient must be 1 numbers, NaN if not known"),
    ],
)
def test_what_cannot_be_told(problem, typed, arguments, said):
    typed("ask", problem, "--n", 2)
    before = problem.with_suffix(".jsonl").read_bytes()
    assert said in typed("tell", problem.with_suffix(".jsonl"), *arguments, code=2).err
    assert problem.with_suffix(".jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("table", "said"),
    [("a,b\n1,2\n", "must be id and value"), ("id,value\n0,x\n", "line 2"), ("id,value\n0\n", "is measured")],
)
def test_tables_that_are_wrong(problem, tmp_path, typed, table, said):
    problem.write_text(PROBLEM.replace('name = "fine"', 'name = "fine"\ncost = "measured"'))
    typed("ask", problem, "--n", 2)
    (tmp_path / "table.csv").write_text(table)
    assert said in typed("tell", problem.with_suffix(".jsonl"), "--from", tmp_path / "table.csv", code=2).err


@pytest.mark.parametrize("text", ["-1.5", "-1e-3", "-.5E+2", "2e300"])
def test_numbers_as_simulators_print_them(problem, typed, text):
    typed("ask", problem)
    typed("tell", problem.with_suffix(".jsonl"), 0, text)
    assert read_journal(problem.with_suffix(".jsonl"))[1][-1]["value"] == float(text)
    typed("correct", problem.with_suffix(".jsonl"), 0, text)
    assert read_journal(problem.with_suffix(".jsonl"))[1][-1]["value"] == float(text)


def test_job_files_are_run_by_a_shell(problem, tmp_path, typed):
    """As a batch system would run them: each tells its own value."""
    job = tmp_path / "job.sh"
    job.write_text(
        "#!/bin/sh\n# {{not an input}} {id}\n"
        f"{sys.executable} -m amsbq tell {{journal}} {{id}} $(awk 'BEGIN {{{{ print sin(5 * {{load}}) }}}}')\n"
    )
    job.chmod(0o755)
    jobs = typed("ask", problem, "--n", 2, "--template", job).out.split()
    assert [os.path.relpath(path, tmp_path) for path in jobs] == ["jobs/job-0.sh", "jobs/job-1.sh"]
    running = [subprocess.Popen([path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for path in jobs]
    assert [process.wait(60) for process in running] == [0, 0]
    for e in read_result(problem.with_suffix(".jsonl")).evaluations:
        assert e.value == pytest.approx(math.sin(5 * e.x[0]), abs=1e-5)


def test_a_job_file_that_is_wrong_asks_for_nothing(problem, tmp_path, typed):
    (tmp_path / "job.sh").write_text("solve {lod}\n")
    assert "{lod}, which is not an input" in typed("ask", problem, "--template", tmp_path / "job.sh", code=2).err
    assert not problem.with_suffix(".jsonl").exists()


def test_failures_end_a_run_until_it_is_tried_again(problem, typed):
    journal = problem.with_suffix(".jsonl")
    while asked := queries(typed("ask", problem)):
        typed("tell", journal, asked[0]["id"], *(["--failed", "no licence"] if asked[0]["source"] == "fine" else [1.0]))
    assert sum(e.status == "failed" for e in read_result(journal, model=False).evaluations) == 2
    assert "--retry" in typed("ask", journal).err
    assert len(queries(typed("ask", journal, "--retry"))) == 1


def test_a_detached_source_cannot_be_evaluated_here(problem, typed):
    for command in ("run", "check"):
        assert "fine is detached" in typed(command, problem, code=2).err
    problem.write_text(PROBLEM.replace("detached = true", "detached = 1"))
    assert "sources[0].detached: must be true" in typed("ask", problem, code=2).err


FORMULA = """
budget = 5.5
model = "icm"
[inputs]
load = { low = 0.0, high = 1.0 }
[[sources]]
name = "fine"
detached = true
[[sources]]
name = "formula"
python = "sims:formula"
vectorized = true
cost = 0
"""


@pytest.mark.parametrize("cost", ["0", "0.00001"])
def test_a_formula_beside_a_detached_source_is_evaluated_by_ask(problem, tmp_path, typed, cost):
    problem.write_text(FORMULA.replace("cost = 0", f"cost = {cost}"))
    (tmp_path / "sims.py").write_text("import numpy as np\ndef formula(X): return np.sin(5 * X[:, 0]) + 0.2\n")
    journal = problem.with_suffix(".jsonl")
    while asked := queries(typed("ask", problem)):
        [query] = asked
        assert query["source"] == "fine"
        typed("tell", journal, query["id"], value("fine", query["x"]["load"], size=0.3))
    _, events = read_journal(journal)
    bulk = [event for event in events if event["event"] == "bulk"]
    assert [(made["source"], made["cost"]) for made in bulk] == [(1, pytest.approx(bulk[0]["n"] * float(cost)))]
    it, result = attended(problem, events), read_result(journal)
    assert result.mean == it.estimate().mean
    assert result.spent == it.spent
    assert all(e.free == ((pytest.approx(math.sin(5 * e.x[0]) + 0.2), 0.0),) for e in result.evaluations)


def test_a_formula_is_used_from_when_it_costs_nothing(problem, tmp_path, typed):
    problem.write_text(FORMULA.replace("cost = 0", "cost = 0.5\nbulk = false"))
    (tmp_path / "sims.py").write_text("import numpy as np\ndef formula(X): return np.sin(5 * X[:, 0]) + 0.2\n")
    journal = problem.with_suffix(".jsonl")
    for _ in range(2):
        for query in queries(typed("ask", problem, "--n", 2)):
            typed("tell", journal, query["id"], value(query["source"], query["x"]["load"]))
    problem.write_text(FORMULA)
    [query] = queries(typed("ask", problem, "--accept-changes"))
    typed("tell", journal, query["id"], value("fine", query["x"]["load"]))
    [query] = queries(typed("ask", problem))
    assert query["source"] == "fine"
    assert len(read_result(journal).evaluations) == 5


def test_others_are_waited_for(problem, typed):
    journal = problem.with_suffix(".jsonl")
    typed("ask", problem)
    with Journal(journal):
        start = time.monotonic()
        assert "in use" in typed("tell", journal, 0, 1.0, "--wait", 0.3, code=2).err
        assert time.monotonic() - start >= 0.3


@pytest.mark.parametrize(
    ("kind", "options", "refused"),
    [
        ("ext4", "rw", False),
        ("nfs4", "rw,vers=4.2,local_lock=none", False),
        ("nfs", "rw,vers=3,nolock,local_lock=all", True),
        ("lustre", "rw,localflock", True),
        ("lustre", "rw,flock", False),
        ("fuse.sshfs", "rw", True),
    ],
)
def test_locks_of_one_host_only_are_refused(problem, tmp_path, typed, monkeypatch, kind, options, refused):
    """No network file system is here: Linux is made to say that the folder is on one."""
    device = tmp_path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    number = f"{os.major(device)}:{os.minor(device)}"
    mounts.write_text(
        f"1 0 0:1 / / rw - tmpfs none rw\n2 1 {number} / /there rw,noatime - {kind} server:/there {options}\n"
    )
    monkeypatch.setattr(locks, "MOUNTS", mounts)
    printed = typed("ask", problem, code=2 if refused else 0)
    assert ("locks hold on one host only" in printed.err) is refused
    assert len(queries(printed)) == (not refused)
