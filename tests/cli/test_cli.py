"""The command line, as a user types it."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from amsbq.cli.main import main
from amsbq.execution.journal import read_journal

SIMULATORS = """
import math, os, time
def fine(x):
    time.sleep(float(os.environ.get("SLOW", 0)))
    return math.sin(5 * x[0]) + x[0]
def coarse(x):
    return math.sin(5 * x[0]) + 0.2
def dies(x):
    if x[0] > 0.6:
        os.kill(os.getpid(), 9)
    return math.sin(5 * x[0]) + x[0]
def broken(x):
    raise RuntimeError("no licence")
"""

PROBLEM = """
budget = 3.0
model = "icm"
[inputs]
load = { low = 0.0, high = 1.0 }
[[sources]]
name = "fine"
python = "my_simulators:fine"
[[sources]]
name = "coarse"
python = "my_simulators:coarse"
cost = 0.1
"""


@pytest.fixture
def problem(tmp_path):
    (tmp_path / "my_simulators.py").write_text(SIMULATORS)
    path = tmp_path / "problem.toml"
    path.write_text(PROBLEM)
    yield path
    sys.modules.pop("my_simulators", None)
    sys.path[:] = [entry for entry in sys.path if entry != str(tmp_path)]


def amsbq(*arguments, **options):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **options.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-m", "amsbq", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        **options,
    )


def test_a_run_and_all_that_can_be_asked_of_it(problem):
    journal = problem.with_suffix(".jsonl")
    run = amsbq("run", problem)
    assert run.returncode == 0
    assert run.stdout.strip().startswith("integral: ")
    assert f"look at it with: amsbq report {journal}\ngo on with: amsbq resume {journal} --budget 6" in run.stdout
    assert "1 fine, 1 coarse" in run.stderr  # plain lines, as there is no terminal
    header, _ = read_journal(journal)
    assert header["file"] == "problem.toml"

    again = amsbq("run", problem, "--json")
    assert again.returncode == 0
    found = json.loads(again.stdout)
    assert set(found) == {"mean", "std", "interval", "spent", "stopped", "evaluations", "findings"}
    assert found["stopped"] == "budget"
    assert found["spent"] <= 3.0
    assert found["interval"][0] < found["mean"] < found["interval"][1]
    assert set(found["evaluations"][0]["x"]) == {"load"}
    assert found["evaluations"][0]["source"] == "fine"

    status = amsbq("status", journal)
    assert status.stdout.startswith("integral: ")
    assert "the budget does not pay for more" in status.stdout
    as_json = json.loads(amsbq("status", journal, "--json").stdout)
    assert as_json["spent"] == pytest.approx(found["spent"])
    assert as_json["sources"]["fine"]["told"] == sum(e["source"] == "fine" for e in found["evaluations"])

    report = amsbq("report", journal, "--text").stdout.splitlines()
    assert "load" in next(line for line in report if "source" in line)
    assert len(report) >= len(found["evaluations"])

    forecast = amsbq("forecast", problem, "--budget", 6)
    assert forecast.returncode == 0
    assert "expected std" in forecast.stdout

    more = amsbq("resume", journal, "--budget", 4, "--json", "-v")
    assert json.loads(more.stdout)["spent"] > found["spent"]
    assert "fine(" in more.stderr

    fresh = amsbq("run", problem, "--fresh", "--json")
    assert json.loads(fresh.stdout)["evaluations"] == found["evaluations"]
    assert problem.with_name("problem.1.jsonl").exists()


def test_a_journal_of_another_problem(problem):
    amsbq("run", problem)
    problem.write_text(PROBLEM.replace("cost = 0.1", "cost = 0.2"))
    refused = amsbq("run", problem)
    assert refused.returncode == 2
    assert "source 1's cost was 0.1, and now is 0.2" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_process_that_dies_is_a_failed_evaluation(problem):
    problem.write_text(PROBLEM.replace(":fine", ":dies"))
    run = amsbq("run", problem, "--json", "--workers", 2)
    assert run.returncode == 0, run.stderr
    failed = [e for e in json.loads(run.stdout)["evaluations"] if e["status"] == "failed"]
    assert failed
    assert all(e["x"]["load"] > 0.6 and "has died" in e["reason"] for e in failed)


def test_a_run_in_which_nothing_works(problem):
    problem.write_text(PROBLEM.replace(":fine", ":broken").replace(":coarse", ":broken"))
    run = amsbq("run", problem)
    assert run.returncode == 1
    assert "no evaluation was successful" in run.stderr
    assert "no licence" in run.stderr
    assert "Traceback" not in run.stderr


def test_interrupted_it_says_so_and_goes_on(problem):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "SLOW": "1.0"}
    process = subprocess.Popen(
        [sys.executable, "-m", "amsbq", "run", str(problem)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    journal = problem.with_suffix(".jsonl")
    while not (journal.exists() and b'"asked"' in journal.read_bytes()):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopping after what is running" in err
    assert "it was interrupted" in out
    _, events = read_journal(journal)
    assert [event["event"] for event in events if event["event"] in ("told", "stopped")] == ["told", "stopped"]
    assert amsbq("resume", journal).returncode == 0


def test_what_cannot_be_asked(problem, capsys):
    assert main(["forecast", str(problem)]) == 2
    assert f"amsbq run {problem} --budget 0.75" in capsys.readouterr().err
    assert main(["status", str(problem)]) == 2
    assert "is damaged" in capsys.readouterr().err
    assert main(["resume", str(problem.with_name("nothing.jsonl"))]) == 2
    assert "cannot be read: No such file" in capsys.readouterr().err
    for wrong in (["--workers", "0"], ["--budget", "-1"], ["--budget", "many"]):
        with pytest.raises(SystemExit) as stopped:
            main(["run", str(problem), *wrong])
        assert stopped.value.code == 2


def test_help_teaches(capsys):
    for command in ("run", "resume", "status", "report", "forecast", "reproduce", "demo", "completion"):
        with pytest.raises(SystemExit) as stopped:
            main([command, "--help"])
        assert stopped.value.code == 0
        assert len(capsys.readouterr().out.splitlines()) > 5
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "amsbq resume problem.jsonl" in capsys.readouterr().out


def test_completion(capsys):
    pytest.importorskip("shtab")
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert "reproduce" in script
    assert "--workers" in script


def test_dask_from_the_command_line(problem):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        run = amsbq("run", problem, "--dask", cluster.scheduler_address, "--json")
    assert run.returncode == 0, run.stderr
    assert all(e["status"] == "ok" for e in json.loads(run.stdout)["evaluations"])
