"""The command line, as a user types it."""

import io
import json
import logging
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from contextlib import redirect_stdout

import pytest

import amsbq
from amsbq.cli.main import main
from amsbq.cli.parser import PROBLEM_FILE, build_parsers
from amsbq.design.sources import Source
from amsbq.execution.integrator import Integrator
from amsbq.execution.journal import Journal, read_journal
from amsbq.execution.runner import run
from amsbq.problems.problem_file import load_problem
from amsbq.stopping import evaluations
from tests.waiting import eventually, is_running

SIMULATORS = """
import math, os, time
def fine(x):
    time.sleep(float(os.environ.get("SLOW", 0)))
    return math.sin(5 * x[0]) + x[0]
def coarse(x):
    return math.sin(5 * x[0]) + 0.2
def dies(x):
    os.kill(os.getpid(), 9)
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


def write_problem(folder):
    (folder / "my_simulators.py").write_text(SIMULATORS)
    path = folder / "problem.toml"
    path.write_text(PROBLEM)
    return path


@pytest.fixture
def problem(tmp_path):
    return write_problem(tmp_path)


def environment(**more):
    return {**os.environ, "OPENBLAS_NUM_THREADS": "1", **more}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A problem file next to the journal of its run, and the process that ran it."""
    problem = write_problem(tmp_path_factory.mktemp("finished"))
    command = [sys.executable, "-m", "amsbq", "run", str(problem)]
    return problem, subprocess.run(command, capture_output=True, text=True, env=environment())


@pytest.fixture(scope="module")
def answer(finished):
    """The answer of the finished run, which a second `run` prints again without evaluating anything."""
    journal = finished[0].with_suffix(".jsonl")
    before = read_journal(journal)[1]
    with redirect_stdout(io.StringIO()) as printed:
        assert main(["run", str(finished[0]), "--json"]) == 0
    evaluated = [event for event in read_journal(journal)[1][len(before) :] if event["event"] in ("asked", "told")]
    assert evaluated == []
    return json.loads(printed.getvalue())


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of the finished problem and its journal, which a test may change."""
    shutil.copytree(finished[0].parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / "problem.toml"


def test_a_run(finished):
    problem, run = finished
    journal = problem.with_suffix(".jsonl")
    assert run.returncode == 0
    assert run.stdout.strip().startswith("integral: ")
    assert f"look at it with: amsbq report {journal}\ncontinue with: amsbq resume {journal} --budget 6" in run.stdout
    assert "1 fine, 1 coarse" in run.stderr  # plain lines, as there is no terminal
    header, _ = read_journal(journal)
    assert header["file"] == "problem.toml"


def test_the_answer_as_json(answer):
    known = {"mean", "std", "interval", "spent", "stopped", "evaluations", "findings"}
    assert set(answer) == known | {"output", "sensitivity"}
    assert answer["stopped"] == "budget"
    assert answer["spent"] <= 3.0
    assert answer["interval"][0] < answer["mean"] < answer["interval"][1]
    assert set(answer["evaluations"][0]["x"]) == {"load"}
    assert answer["evaluations"][0]["source"] == "fine"


def test_status(finished, answer, typed):
    journal = finished[0].with_suffix(".jsonl")
    status = typed("status", journal).out
    assert status.startswith(f"integral: {amsbq.read_result(journal).estimate.summary().split(' (std)')[0]} (std)")
    assert "the remaining budget does not cover another useful evaluation" in status
    as_json = json.loads(typed("status", journal, "--json").out)
    assert as_json["spent"] == pytest.approx(answer["spent"])
    assert as_json["sources"]["fine"]["told"] == sum(e["source"] == "fine" for e in answer["evaluations"])


def test_report_as_text(finished, answer, typed):
    report = typed("report", finished[0].with_suffix(".jsonl"), "--text").out.splitlines()
    assert "load" in next(line for line in report if "source" in line)
    assert len(report) >= len(answer["evaluations"])


def test_forecast(finished, typed):
    assert "expected std" in typed("forecast", finished[0], "--budget", 6).out


def test_resume_with_a_larger_budget(copied, answer, typed):
    more = typed("resume", copied.with_suffix(".jsonl"), "--budget", 4, "--json", "-v")
    assert json.loads(more.out)["spent"] > answer["spent"]
    assert "fine(" in more.err


def test_a_fresh_run_is_the_same_run(copied, answer, typed):
    fresh = typed("run", copied, "--fresh", "--json")
    assert json.loads(fresh.out)["evaluations"] == answer["evaluations"]
    assert copied.with_name("problem.1.jsonl").exists()


def test_a_journal_of_another_problem(copied, typed):
    copied.write_text(PROBLEM.replace("cost = 0.1", "cost = 0.2"))
    refused = typed("run", copied, code=2)
    assert "source 1's cost was 0.1, and now is 0.2" in refused.err
    assert "Traceback" not in refused.err


TWO_INPUTS = """
budget = 2.5
model = "icm"
[inputs]
rate = { low = 0.0, high = 1.0 }
dose = { low = 0.0, high = 1.0 }
[[sources]]
name = "fine"
command = ["awk", "BEGIN { print {rate} - {dose} }"]
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "dose = { low = 0.0, high = 1.0 }",
            "dose = { low = 0.0, high = 2.0 }",
            "measure was Uniform([0.0, 0.0], [1.0, 1.0]), and now is Uniform([0.0, 0.0], [1.0, 2.0])",
        ),
        ("- {dose}", "+ {dose}", "function command was ['awk', 'BEGIN { print {rate} - {dose} }'], and now is ['awk',"),
    ],
)
def test_a_change_is_refused_until_it_is_accepted(tmp_path, typed, old, new, said):
    problem, journal = tmp_path / "problem.toml", tmp_path / "problem.jsonl"
    problem.write_text(TWO_INPUTS)
    typed("run", problem)
    content = journal.read_bytes()
    problem.write_text(TWO_INPUTS.replace(old, new))
    for command in (("run", problem), ("resume", journal), ("forecast", problem)):
        refused = typed(*command, code=2)
        assert said in refused.err
        assert refused.err.count("\n") == 1
        assert "--accept-changes" in refused.err
        assert "accept_changes=" not in refused.err  # which is for Python
    assert journal.read_bytes() == content
    typed("resume", journal, "--accept-changes")
    assert [e["event"] for e in read_journal(journal)[1]].count("accepted") == 1
    typed("run", problem)
    typed("run", problem, "--fresh")


def test_inputs_in_another_order_cannot_be_accepted(tmp_path, typed):
    problem, journal = tmp_path / "problem.toml", tmp_path / "problem.jsonl"
    problem.write_text(TWO_INPUTS)
    typed("run", problem)
    content = journal.read_bytes()
    rate, dose = "rate = { low = 0.0, high = 1.0 }\n", "dose = { low = 0.0, high = 1.0 }\n"
    problem.write_text(TWO_INPUTS.replace(rate + dose, dose + rate))
    assert "inputs was ['rate', 'dose'], and now is ['dose', 'rate']" in typed("resume", journal, code=2).err
    said = typed("resume", journal, "--accept-changes", code=2).err
    assert "the inputs are those of the journal in another order: pass them as ['rate', 'dose']" in said
    assert journal.read_bytes() == content


def test_a_journal_in_use_is_not_set_aside(copied, typed):
    journal = copied.with_suffix(".jsonl")
    content = journal.read_bytes()
    with Journal(journal):
        assert "in use by another run" in typed("run", copied, "--fresh", code=2).err
    assert journal.read_bytes() == content
    assert not copied.with_name("problem.1.jsonl").exists()


@pytest.mark.parametrize("command", ["resume", "status", "report", "watch", "tell", "exclude", "compare"])
def test_a_problem_file_is_no_journal_and_points_to_it(copied, capsys, command):
    more = {"tell": ["0", "1.0"], "exclude": ["0"]}.get(command, [])
    new = copied.with_name("new.toml")
    for path, said in (
        (copied, f"its journal is {copied.with_suffix('.jsonl')}"),
        (new, "start one with amsbq run or amsbq ask"),
    ):
        with pytest.raises(SystemExit) as ended:
            main([command, str(path), *more])
        assert ended.value.code == 2
        assert f"{path} is a problem file, and" in (err := capsys.readouterr().err)
        assert said in err


def test_a_file_that_is_no_journal_is_left_alone(problem, typed):
    notes = problem.with_name("notes.txt")
    notes.write_text("one line, without an end")
    assert "is not a journal" in typed("run", problem, "--journal", notes, code=2).err
    assert notes.read_text() == "one line, without an end"


def test_a_run_without_a_limit_is_valid_json(tmp_path, typed):
    journal = tmp_path / "run.jsonl"
    source = Source(lambda x: x[0], name="fine", valid=(0, math.inf))
    run(Integrator(source, [(0, 1)], model="icm"), [evaluations(3)], journal=journal, progress=False)
    now = json.loads(typed("status", journal, "--json").out, parse_constant=pytest.fail)
    assert (now["budget"], now["stopped"]) == (None, "evaluations")
    assert "spent 3;" in typed("status", journal).out
    pytest.importorskip("plotly")
    typed("report", journal)
    assert "Spent 3" in journal.with_suffix(".html").read_text()


def test_a_process_that_dies_is_a_failed_evaluation(problem, typed):
    one, _, _ = PROBLEM.replace(":fine", ":dies").replace("budget = 3.0", "budget = 1.0").rpartition("[[sources]]")
    problem.write_text(one)
    assert "the process that evaluated it has died 2 times" in typed("run", problem, code=1).err.splitlines()[-1]


@pytest.mark.filterwarnings("always")
def test_a_run_in_which_nothing_works(problem, typed):
    broken = PROBLEM.replace(":fine", ":broken").replace(":coarse", ":broken")
    problem.write_text(broken.replace("budget = 3.0", "budget = 20.0"))
    last = typed("run", problem, code=1).err.splitlines()[-1]
    assert "no evaluation was successful, and the run has stopped (failures)" in last
    assert "no licence" in last


NOTES_AND_WAITS = """
import os, subprocess, sys
def note(pid):
    with open(os.path.join(os.path.dirname(__file__), "pids"), "a") as file:
        file.write(f"{pid}\\n")
def fine(x):
    note(os.getpid())
    if float(os.environ.get("SLOW", 0)):
        program = subprocess.Popen(["sleep", os.environ["SLOW"]])
        note(program.pid)
        program.wait()
    return x[0]
if __name__ == "__main__":
    print(fine([float(sys.argv[1])]))
"""


@pytest.fixture(params=["python, 1 worker", "command, 1 worker", "command, 2 workers"])
def waiting(request, tmp_path):
    """A problem whose source notes its process and that of a program that it waits for, and the number of workers."""
    kind, workers = request.param.split(", ")
    (tmp_path / "noting.py").write_text(NOTES_AND_WAITS)
    command = json.dumps([sys.executable, "noting.py", "{x}"])
    source = 'python = "noting:fine"' if kind == "python" else f"command = {command}"
    inputs = "[inputs]\nx = { low = 0.0, high = 1.0 }"
    (tmp_path / "problem.toml").write_text(
        f'budget = 3.0\nmodel = "icm"\n{inputs}\n[[sources]]\nname = "fine"\n{source}\n'
    )
    return tmp_path / "problem.toml", workers.split()[0]


def started(problem, seconds, workers):
    """A run in a process group of its own, and the processes of its first evaluations."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    command = [sys.executable, "-m", "amsbq", "run", str(problem), "--workers", workers]
    process = subprocess.Popen(command, env=environment(SLOW=seconds), **pipes)
    noted = problem.parent / "pids"
    assert eventually(lambda: noted.exists() and noted.read_text().count("\n") >= 2)
    return process, [int(pid) for pid in noted.read_text().split()]


def test_an_interrupt_on_the_terminal_waits_for_what_is_running(waiting):
    """It reaches the whole process group, also the processes that evaluate."""
    problem, workers = waiting
    process, _ = started(problem, "1", workers)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "stopping after running evaluations" in err
    assert "it was interrupted" in out
    assert "continue with: amsbq resume" in out
    events = [event["event"] for event in read_journal(problem.with_suffix(".jsonl"))[1]]
    assert events.count("told") == events.count("asked") > 0
    assert "failed" not in events
    assert events[-1] == "stopped"


ENDINGS = {"SIGTERM": 143, "SIGKILL": -signal.SIGKILL, "two interrupts": 130}


@pytest.mark.slow
@pytest.mark.parametrize("how", ENDINGS)
def test_nothing_is_left_of_a_run_that_ends_at_once(waiting, how, typed):
    problem, workers = waiting
    process, pids = started(problem, "3600", workers)
    if how == "two interrupts":
        os.killpg(process.pid, signal.SIGINT)
        assert "interrupt again" in next(line for line in process.stderr if "stopping" in line)
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(getattr(signal, how))
    _, err = process.communicate(timeout=120)
    assert process.returncode == ENDINGS[how], err
    assert "Traceback" not in err
    pids += [int(pid) for pid in (problem.parent / "pids").read_text().split()]
    assert eventually(lambda: not any(is_running(pid) for pid in pids), seconds=10)
    events = [event["event"] for event in read_journal(problem.with_suffix(".jsonl"))[1]]
    assert "asked" in events
    assert events.count("told") == events.count("failed") == 0
    resumed = json.loads(typed("resume", problem.with_suffix(".jsonl"), "--json").out)
    assert [e["status"] for e in resumed["evaluations"]] == ["ok"] * 3


@pytest.mark.filterwarnings("always")
def test_a_run_without_a_value_of_the_primary_source_has_failed(problem, typed):
    """Whatever the others have returned; once the cause is mended, the run goes on."""
    problem.write_text(PROBLEM.replace(":fine", ":broken"))
    run = typed("run", problem, "--json", code=1)
    answer = json.loads(run.out)
    assert answer["evaluations"]
    journal = problem.with_suffix(".jsonl")
    last = run.err.splitlines()[-1]
    assert "no evaluation of fine was successful" in last
    assert "no licence" in last
    assert f"there is no answer, with {3 - answer['spent']:.6g} of the budget unspent" in last
    assert last.endswith(f"amsbq resume {journal}")
    (problem.parent / "my_simulators.py").write_text(
        SIMULATORS.replace('raise RuntimeError("no licence")', "return x[0]")
    )
    said = typed("resume", journal, "--budget", 6, code=2).err  # the module has the other function as well
    assert "source 1's function digests my_simulators.py was" in said
    assert "source 0's" not in said
    resumed = json.loads(typed("resume", journal, "--budget", 6, "--json", "--accept-changes").out)
    made = [e for e in resumed["evaluations"] if e["source"] == "fine"]
    assert "ok" in {e["status"] for e in made}


def test_what_cannot_be_asked(problem, typed):
    assert f"amsbq run {problem} --budget 1.5" in typed("forecast", problem, code=2).err
    (notes := problem.with_name("notes.txt")).write_text("no journal")
    assert "is not a journal" in typed("status", notes, code=2).err
    assert "cannot be read: No such file" in typed("resume", problem.with_name("nothing.jsonl"), code=2).err
    for wrong in (["--workers", "0"], ["--budget", "-1"], ["--budget", "many"]):
        with pytest.raises(SystemExit) as stopped:
            main(["run", str(problem), *wrong])
        assert stopped.value.code == 2


def warn_of_acquisition(problem, typed):
    """What is printed on standard error by a command that warns of its acquisition, and then has no journal."""
    problem.write_text(f'acquisition = "ip"\n{PROBLEM}')
    return typed("forecast", problem, code=2).err.splitlines()


@pytest.mark.filterwarnings("always")
def test_warnings_are_one_line_each_and_nothing_is_left_of_them(problem, typed):
    logger = logging.getLogger("py.warnings")
    before = warnings.showwarning, warnings.formatwarning, list(logger.handlers)
    printed = warn_of_acquisition(problem, typed)
    assert len(printed) == 2
    assert printed[0].startswith("amsbq: acquisition 'ip': ")
    assert printed[1].startswith("amsbq: there is no journal")
    assert (warnings.showwarning, warnings.formatwarning, list(logger.handlers)) == before


@pytest.mark.filterwarnings("always")
def test_a_program_that_captures_warnings_goes_on_to_do_so(problem, typed):
    logging.captureWarnings(True)
    try:
        before = warnings.showwarning
        assert warn_of_acquisition(problem, typed)[0].startswith("amsbq: acquisition 'ip': ")
        assert warnings.showwarning is before
    finally:
        logging.captureWarnings(False)


def test_help_teaches(capsys):
    parsers = build_parsers()
    commands = [name.removeprefix("amsbq ") for name in parsers if name != "amsbq"]
    runs = [
        "init",
        "advise",
        "check",
        "run",
        "resume",
        "ask",
        "tell",
        "status",
        "report",
        "watch",
        "compare",
        "forecast",
    ]
    assert commands == [*runs, "certify", "show", "exclude", "correct", "doctor", "demo", "reproduce", "completion"]
    for command in commands:
        with pytest.raises(SystemExit) as stopped:
            main([command, "--help"])
        assert stopped.value.code == 0
        printed = capsys.readouterr().out
        assert len(printed.splitlines()) > 5
        assert "example" in printed
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "amsbq resume problem.jsonl" in capsys.readouterr().out


def test_help_fits_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name, parser in build_parsers().items():
        if name != "amsbq reproduce":  # which has the titles of the experiments
            assert max(map(len, parser.format_help().splitlines())) <= 80, name


def test_the_problem_file_of_the_help_is_right(tmp_path):
    (tmp_path / "problem.toml").write_text(PROBLEM_FILE)
    (tmp_path / "simulators.py").write_text("def fine(x):\n    return 1.0\n")
    (tmp_path / "coarse").write_text("#!/bin/sh\n")
    (tmp_path / "coarse").chmod(0o755)
    problem = load_problem(tmp_path / "problem.toml")
    assert problem.names == ["rate", "dose"]
    assert [source.name for source in problem.sources] == ["fine", "coarse"]


def test_experiments_are_imported_only_when_they_are_needed():
    code = (
        "import contextlib, sys, amsbq.cli\n"
        "with contextlib.suppress(SystemExit):\n    amsbq.cli.main(['--help'])\n"
        "sys.exit('amsbq.experiments' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    assert "reproduce" in shown.stdout
    assert shown.returncode == 0


def test_completion(typed):
    pytest.importorskip("shtab")
    script = typed("completion", "bash").out
    assert "reproduce" in script
    assert "--workers" in script


@pytest.mark.parametrize("address", ["nonsense", "", "foo://127.0.0.1:1", "tcp://127.0.0.1:port"])
def test_an_address_that_is_none_is_one_line(problem, address, typed):
    pytest.importorskip("distributed")
    [line] = typed("run", problem, "--dask", address, code=2).err.splitlines()
    assert line.startswith("amsbq: --dask takes an address such as tcp://127.0.0.1:8786: ")
    assert not problem.with_suffix(".jsonl").exists()


def test_a_terminal_without_unicode(problem, monkeypatch):
    streams = {name: io.TextIOWrapper(io.BytesIO(), encoding="ascii") for name in ("stdout", "stderr")}
    for name, stream in streams.items():
        monkeypatch.setattr(sys, name, stream)

    def printed(*arguments):
        assert main([str(argument) for argument in arguments]) == 0
        for stream in streams.values():
            stream.flush()
        return [stream.buffer.getvalue().decode("ascii") for stream in streams.values()]

    text = PROBLEM.replace('"coarse"', '"gr\u00f6ber"')
    for name in ("fine", "coarse"):  # programs, which start faster than processes for Python functions
        text = text.replace(f'python = "my_simulators:{name}"', "command = ['echo', '{load}']")
    problem.write_text(text, encoding="utf-8")
    out, err = printed("run", problem, "-v")
    assert " +/- " in out
    assert r"1 fine, 1 gr\xf6ber | " in err
    assert " +/- " in printed("status", problem.with_suffix(".jsonl"))[0].removeprefix(out)
    assert r"gr\xf6ber" in printed("report", problem.with_suffix(".jsonl"), "--text")[0].removeprefix(out)


def test_streams_are_left_as_they_were(tmp_path, monkeypatch):
    with (tmp_path / "out").open("w", encoding="ascii", errors="strict") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert main(["demo"]) == 0
        assert out.errors == "strict"
    assert "+/-" in (tmp_path / "out").read_text()


def test_dask_from_the_command_line(problem, typed):
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "protocol": "tcp", "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(1, threads_per_worker=1, **options) as cluster:
        answer = json.loads(typed("run", problem, "--dask", cluster.scheduler_address, "--json").out)
    assert all(e["status"] == "ok" for e in answer["evaluations"])


@pytest.mark.slow
def test_a_lost_scheduler_ends_the_run_and_is_not_charged(problem, typed):
    """With one line, and without waiting; the run that goes on evaluates what was pending."""
    pytest.importorskip("distributed")
    problem.write_text(PROBLEM.replace(":fine", ":waits").replace("budget = 3.0", "budget = 5.0"))
    (problem.parent / "my_simulators.py").write_text(
        f"{SIMULATORS}\ndef waits(x):\n    time.sleep(60 if os.path.exists('wait') else 0)\n    return x[0]\n"
    )
    (problem.parent / "wait").touch()
    file, journal = str(problem.parent / "scheduler.json"), problem.with_suffix(".jsonl")
    options = {"cwd": problem.parent, "env": environment(), "stderr": subprocess.PIPE, "text": True}
    host = ["--scheduler-file", file, "--no-dashboard", "--host", "127.0.0.1"]
    with (
        subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_scheduler", *host, "--port", "0"], **options
        ) as one,
        subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_worker", *host, "--no-nanny"], **options) as two,
    ):
        try:
            assert eventually(lambda: os.path.exists(file))
            address = json.loads((problem.parent / "scheduler.json").read_text())["address"]
            run = [sys.executable, "-m", "amsbq", "run", str(problem), "--dask", address, "--workers", "2"]
            with subprocess.Popen(run, **options) as process:
                assert eventually(lambda: journal.exists() and journal.read_bytes().count(b'"asked"') == 2)
                one.kill()
                start = time.monotonic()
                _, err = process.communicate(timeout=60)
        finally:
            one.kill()
            two.kill()
    assert process.returncode == 1
    assert time.monotonic() - start < 20
    assert err.splitlines()[-1].startswith("amsbq: the executor does not work: ")
    assert "2 of its queries are pending, and not charged" in err.splitlines()[-1]
    events = [event["event"] for event in read_journal(journal)[1]]
    assert events == ["asked", "asked"]
    (problem.parent / "wait").unlink()
    resumed = json.loads(typed("resume", journal, "--json").out)
    assert {e["status"] for e in resumed["evaluations"]} == {"ok"}


def test_a_report_shows_the_mean_under_other_inputs(problem, typed):
    typed("run", problem, "--budget", 4)
    journal, heavier = problem.with_suffix(".jsonl"), problem.with_name("heavier.toml")
    heavier.write_text("[inputs]\nload = { low = 0.5, high = 1.0 }\n")
    said = typed("report", journal, "--text", "--under", heavier).out.splitlines()[-1]
    truth = (0.2 * (math.cos(2.5) - math.cos(5)) + 0.375) / 0.5  # the mean of sin(5 x) + x above a half
    mean, std = (float(number) for number in re.match(r"mean under heavier: (\S+) ± (\S+)", said).groups())
    assert abs(mean - truth) < 4 * std
    assert std < 0.3
    typed("report", journal, "--under", heavier)
    assert "mean under heavier" in journal.with_suffix(".html").read_text()
    heavier.write_text("[inputs]\nwind = { low = 0.5, high = 1.0 }\n")
    assert "its inputs are wind" in typed("report", journal, "--under", heavier, code=2).err
    heavier.write_text("[inputs]\nload = { low = 0.5 }\n")
    assert "inputs.load" in typed("report", journal, "--under", heavier, code=2).err
