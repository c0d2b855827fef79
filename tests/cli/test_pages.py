"""What the pages on the command line and on problem files promise, beyond what the other tests of this package show."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from amsbq.cli.main import main
from amsbq.execution.journal import read_journal
from amsbq.problems.problem_file import load_problem
from amsbq.simulators.functions import PythonFunction
from amsbq.stopping import tolerance
from tests.design.test_integrator import UNIT, Integrator, fixed, run, sources
from tests.execution.test_executors import eventually, is_running

INPUTS = "[inputs]\nx = { low = 0.0, high = 1.0 }\n"


@pytest.fixture
def write(tmp_path):
    def written(*sources, top="budget = 3.0\nmodel = 'icm'\n"):
        tables = "".join(f"[[sources]]\n{source}\n" for source in sources)
        (tmp_path / "problem.toml").write_text(f"{top}{INPUTS}{tables}")
        return tmp_path / "problem.toml"

    return written


def command(script, **more):
    keys = "".join(f"{key} = {json.dumps(value)}\n" for key, value in more.items())
    return f"command = {json.dumps(['sh', '-c', script])}\n{keys}"


def test_what_is_left_out_has_its_default(write):
    problem = load_problem(write(command("echo {x}"), top="budget = 3.0\n"))
    [source] = problem.sources
    assert (source.cost, source.noise, source.timeout, source.valid) == (1.0, 0.0, None, None)
    it = problem.integrator()
    assert (it.problem.seed, it.problem.model.name, it.problem.acquisition) == (0, "auto", "mi")
    assert (it.problem.goals.relative, it.problem.goals.absolute) == (None, None)


def test_a_tolerance_in_the_file_stops_the_run(write, capsys):
    path = write(command("echo {x}"), top="budget = 50.0\nmodel = 'icm'\nabs_tol = 0.2\nrel_tol = 1e-9\n")
    assert main(["run", str(path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["stopped"] == "tolerance"
    assert answer["interval"][1] - answer["interval"][0] <= 2 * 0.2


def test_of_two_tolerances_the_larger_one_counts():
    it = run(Integrator(sources(), UNIT, budget=100, model=fixed()), most=8)
    low, high = it.estimate().interval(0.95)
    half, mean = (high - low) / 2, abs(it.estimate().mean)
    for relative, absolute, stops in [(1.01, 0.5, True), (0.5, 1.01, True), (0.99, 0.5, False), (0.5, 0.99, False)]:
        assert bool(tolerance(relative * half / mean, absolute * half)(it)) == stops


def test_modules_beside_the_problem_file_come_first_unless_they_are_loaded_already(tmp_path, monkeypatch):
    beside, elsewhere = tmp_path / "beside", tmp_path / "elsewhere"
    for folder in (beside, elsewhere):
        folder.mkdir()
        (folder / "my_module_of_two_folders.py").write_text(f"def where(x):\n    return {folder.name!r}\n")
    (beside / "json.py").write_text("def dumps(x):\n    return 'beside'\n")
    monkeypatch.setattr(sys, "path", [str(elsewhere), *sys.path])
    assert PythonFunction("my_module_of_two_folders:where", beside)(np.zeros(1)) == "beside"
    assert PythonFunction("json:dumps", beside).resolved() is json.dumps
    with pytest.raises(AttributeError, match=r"there is no 'dmups' in json \(did you mean 'dumps'\?\)"):
        PythonFunction("json:dmups", beside).resolved()
    with pytest.raises(AttributeError, match=r"there is no 'rael' in sys \(did you mean 'real'\?\)"):
        PythonFunction("sys:maxsize.rael", beside).resolved()  # of a number, which has no dictionary
    del sys.modules["my_module_of_two_folders"]


HANGS = """
import os, pathlib, subprocess, time
folder = pathlib.Path(__file__).parent
def fine(x):
    return x[0]
def hangs(x):
    program = subprocess.Popen(["sleep", "3600"])
    with (folder / "pids").open("a") as file:
        file.write(f"{os.getpid()} {program.pid}\\n")
    time.sleep(3600)
"""


@pytest.mark.filterwarnings("ignore:there are too few observations")
def test_a_timeout_in_the_file_kills_processes_and_programs(write, tmp_path, capsys):
    (tmp_path / "my_hanging.py").write_text(HANGS)
    program = command("echo $$ >> pids; sleep 3600 & echo $! >> pids; wait", timeout=2.0, cost=0.1, name="program")
    path = write(
        "python = 'my_hanging:fine'", "python = 'my_hanging:hangs'\ntimeout = 2.0\ncost = 0.1\nname = 'python'", program
    )
    assert main(["run", str(path), "--json", "--budget", "1.2"]) == 0
    failed = [e for e in json.loads(capsys.readouterr().out)["evaluations"] if e["status"] == "failed"]
    assert {e["source"] for e in failed} == {"python", "program"}
    assert all("it took more than" in e["reason"] for e in failed)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2 * len(failed)
    assert eventually(lambda: not any(is_running(pid) for pid in pids))


def test_a_run_that_is_terminated_prints_what_is_known(write, tmp_path):
    path = write(command("if mkdir first 2> /dev/null; then echo 1; else echo $$ > pid; exec sleep 3600; fi"))
    journal = path.with_suffix(".jsonl")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-m", "amsbq", "run", str(path)], **pipes) as process:
        assert eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert out.strip().startswith("integral: ")
    assert f"amsbq resume {journal}" in out
    assert eventually(lambda: not is_running(int((tmp_path / "pid").read_text())))
    assert [e["event"] for e in read_journal(journal)[1] if e["event"] in ("told", "failed")] == ["told"]


def test_a_program_that_was_just_started_ends_with_a_terminated_run(write, tmp_path):
    """The signal comes in the few milliseconds between the fork and the guardian's knowing of it."""
    for delay in (0.0, 0.002, 0.004):
        path = write(command(f"exec sleep 360{int(1000 * delay)}"))
        journal = path.with_suffix(".jsonl")
        with subprocess.Popen([sys.executable, "-m", "amsbq", "run", str(path)], stderr=subprocess.PIPE) as process:
            assert eventually(lambda journal=journal: journal.exists() and b'"asked"' in journal.read_bytes())
            time.sleep(delay)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
        assert process.returncode == 143
        assert eventually(lambda delay=delay: not _processes(f"sleep 360{int(1000 * delay)}"))
        journal.unlink()


def _processes(command_line):
    """Return the numbers of the processes with a command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            found += [process.name] if " ".join(words).strip() == command_line else []
    return found


def test_a_journal_that_disappears_is_one_line_and_exit_code_2(write, capsys):
    assert main(["run", str(write(command("rm -f problem.jsonl; echo 1")))]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("amsbq: the journal ")
    assert "was deleted, moved or replaced" in last


def test_claims_that_do_not_hold_are_exit_code_1(tmp_path, monkeypatch, capsys):
    from amsbq.experiments import reproduce
    from amsbq.experiments.study import Claim

    found = {"intuition": [Claim("pigs fly", "they do not", holds=False)]}
    monkeypatch.setattr(reproduce, "reproduce", lambda *_: found)
    arguments = ["reproduce", "intuition", "--output", str(tmp_path)]
    assert (main(arguments), main([*arguments, "--quick"])) == (1, 0)
    assert "1 of the claims did not hold" in capsys.readouterr().out


def test_nothing_is_evaluated_if_the_file_is_wrong(write, tmp_path, capsys):
    """Not even the sources that are right."""
    path = write(command("touch evaluated; echo 1"), "command = ['./nowhere']\ncosts = 1", top="budget = -1\n")
    assert main(["run", str(path)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1] for line in said] == ["budget", "sources[1].costs", "sources[1].command"]
    assert not (tmp_path / "evaluated").exists()
    assert os.listdir(tmp_path) == ["problem.toml"]


def test_a_package_that_is_missing_is_exit_code_1(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 1
    assert capsys.readouterr().err == "amsbq: completion needs shtab: pip install 'amsbq[completion]'\n"
