"""Single simulations on the command line: init, check, show, exclude, correct, changed files, and values used again."""

import json
import math
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import amsbq
from amsbq.cli import check
from amsbq.cli.main import main
from amsbq.execution.journal import Journal, read_journal
from amsbq.execution.state import read_state
from amsbq.problems.problem_file import load_problem
from amsbq.results.result import totals
from tests.waiting import eventually

TOP = "budget = 3.0\nmodel = 'icm'\n[inputs]\nx = { low = 0.0, high = 1.0 }\n"
FINE = "[[sources]]\nname = 'fine'\ncommand = ['sh', 'fine.sh', '{x}']\n"
COARSE = "[[sources]]\nname = 'coarse'\ncommand = ['awk', 'BEGIN { print sin(5 * {x}) + 0.2 }']\ncost = 0.2\n"
SCRIPT = 'echo starting $1\nawk "BEGIN { print sin(5 * $1) + $1 }"\n'


@pytest.fixture
def problem(tmp_path):
    (tmp_path / "fine.sh").write_text(SCRIPT)
    (tmp_path / "problem.toml").write_text(TOP + FINE + COARSE)
    return tmp_path / "problem.toml"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The journal of a finished run, next to its problem file."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "fine.sh").write_text(SCRIPT)
    (folder / "problem.toml").write_text(TOP + FINE + COARSE)
    assert main(["run", str(folder / "problem.toml")]) == 0
    return folder / "problem.jsonl"


@pytest.fixture
def journal(made, tmp_path):
    shutil.copytree(made.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / "problem.jsonl"


# init


@pytest.mark.parametrize("kind", ["python", "command"])
@pytest.mark.parametrize("inputs", ["rate", "rate,dose,t_0"])
def test_what_init_writes_runs_as_it_is(kind, inputs, tmp_path, typed):
    sys.modules.pop("simulators", None)  # that of another problem file
    said = typed("init", f"--{kind}", "--inputs", inputs, tmp_path / "mine").out
    assert f"amsbq check {tmp_path / 'mine' / 'problem.toml'}" in said
    checked = typed("check", tmp_path / "mine" / "problem.toml").out
    assert "all sources answer" in checked
    assert load_problem(tmp_path / "mine" / "problem.toml").names == inputs.split(",")
    assert not (tmp_path / "mine" / "problem.jsonl").exists()


def test_what_init_writes_for_a_server_runs_as_it_is(tmp_path, typed):
    """But for the port, which may be in use."""
    pytest.importorskip("umbridge")
    typed("init", "--umbridge", "--inputs", "rate,dose", tmp_path / "mine.toml")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for name in ("mine.toml", "server.py"):
        text = (tmp_path / name).read_text()
        assert "4242" in text
        (tmp_path / name).write_text(text.replace("4242", str(port)))
    with subprocess.Popen([sys.executable, "server.py"], cwd=tmp_path, stdout=subprocess.DEVNULL) as server:
        try:
            assert eventually(lambda: answers(port), 30)
            assert "all sources answer" in typed("check", tmp_path / "mine.toml").out
            run = json.loads(typed("run", tmp_path / "mine.toml", "--budget", 1.1, "--json").out)
        finally:
            server.kill()
    expected = {"fine": lambda t: math.exp(-t / 2), "coarse": lambda t: 1 - t / 2}
    assert {e["source"] for e in run["evaluations"]} == set(expected)
    for e in run["evaluations"]:
        assert e["value"] == pytest.approx(expected[e["source"]](sum(e["x"].values())), rel=1e-12)


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_init_overwrites_nothing(tmp_path, typed):
    (tmp_path / "simulators.py").write_text("mine")
    assert "already exists" in typed("init", "--python", tmp_path, code=2).err
    assert [path.name for path in tmp_path.iterdir()] == ["simulators.py"]
    assert "names of inputs" in typed("init", "--python", "--inputs", "a b", tmp_path, code=2).err


def test_init_asks_on_a_terminal(tmp_path):
    terminal, other = pty.openpty()
    os.write(terminal, b"command\nload, size\n")
    done = subprocess.run(
        [sys.executable, "-m", "amsbq", "init", str(tmp_path)], stdin=other, capture_output=True, text=True, timeout=60
    )
    os.close(terminal)
    os.close(other)
    assert done.returncode == 0, done.stderr
    assert "What is your simulator?" in done.stdout
    assert load_problem(tmp_path / "problem.toml").names == ["load", "size"]


# check


def test_check_shows_what_a_run_would_do(problem, typed):
    (problem.parent / "deck.in").write_text("&run x = {x:.3e} /\n")
    deck = "template = 'deck.in'\noutput = { regex = 'height = (\\S+ \\S+)' }\n"
    script = "sh', '-c', 'cat deck.in; echo height = 1.5D+00 m"
    problem.write_text(TOP + FINE.replace("sh', 'fine.sh', '{x}", script) + deck + COARSE)
    before = sorted(path.name for path in problem.parent.iterdir())
    said = typed("check", problem, "--at", "x=0.25").out
    for line in (
        "at x = 0.25",
        "fine (primary source, cost 1)",
        "  command: sh -c 'cat deck.in; echo height = 1.5D+00 m'",
        "    | &run x = 2.500e-01 /",
        "  value = 1.5 m",
        "coarse (secondary source, cost 0.2)",
        f"  value = {math.sin(1.25) + 0.2:.6g}",
        "a budget of 3 buys 3 of fine",
        "all sources answer",
    ):
        assert line in said
    assert sorted(path.name for path in problem.parent.iterdir() if path.name != "runs") == before
    text = problem.read_text().replace("cost = 0.2", 'cost = "measured"')
    problem.write_text("certify = 0.25\n" + text.replace("budget = 3", "budget = 8"))
    said = typed("check", problem, "--at", "x=0.25").out
    assert "a budget of 6, besides the 2 reserved for certify, buys 6 of fine" in said
    assert "coarse (secondary source, cost measured: as reported, or else in seconds)" in said
    assert "at x = 0.5" in typed("check", problem).out


@pytest.mark.parametrize(
    ("call", "least", "most"),
    [("sleep 3", 2.0, 3.0), ("until mkdir lock 2> nothing; do sleep 0.05; done && sleep 0.5 && rmdir lock", 0.5, 1.9)],
    ids=["apart", "one licence"],
)
def test_check_tells_how_many_run_at_once(call, least, most, problem, typed):
    """Three that sleep, and three of which only one has a lock at a time."""
    script = f"cd {problem.parent} && {call} && echo 1.5"
    problem.write_text(TOP + FINE.replace("'sh', 'fine.sh', '{x}'", f"'sh', '-c', '{script}'") + COARSE)
    said = typed("check", problem, "--workers", 3).out
    [line] = [line for line in said.splitlines() if line.startswith("3 of fine at once took ")]
    at_once = float(re.search(r": (\S+) run in parallel", line)[1])
    assert least <= at_once <= most
    assert ("They share a resource" in line) == (most < 2)
    assert "at once" not in typed("check", problem).out


def test_check_cannot_tell_of_what_is_too_short(problem, typed, monkeypatch):
    monkeypatch.setattr(check, "SETTINGS", replace(check.SETTINGS, shortest=3600.0))
    problem.write_text(TOP + FINE.replace("'sh', 'fine.sh', '{x}'", "'echo', '1.5'") + COARSE)
    assert "too short to measure how many run at once" in typed("check", problem, "--workers", 2).out


@pytest.mark.parametrize("at", ["y=1", "x", "x=one", "x=7"])
def test_locations_that_are_wrong_are_refused(at, problem, typed):
    assert "--at" in typed("check", problem, "--at", at, code=2).err


#: what is wrong with a command, and what check and run say
FAULTS = {
    "timing": (
        "['sh', '-c', 'echo 1.6; echo done in 0.3 s']",
        "the last line of its output is not a number: done in 0.3 s",
    ),
    "named": (
        "['echo', 'peak = 1.6 m']",
        "the last line of its output is not a number: peak = 1.6 m. Use an output rule",
    ),
    "columns": ("['echo', '1.5 2.5']", "the last line of its output is not a number: 1.5 2.5"),
    "error": ("['sh', '-c', 'echo no licence >&2; exit 3']", "it ended with exit code 3; it printed: no licence"),
    "silent": ("['true']", "it printed nothing"),
    "not found": ("['sh', '-c', './nowhere']", "it ended with exit code 127; it printed: "),
    "NaN": ("['echo', 'nan']", "the last line of its output is not finite: nan"),
    "range": ("['echo', '1000']", "the value 1000 is outside the valid range, 0 to 100"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_said_by_check_and_stops_a_run_at_the_second_failure(fault, problem, typed):
    command, said = FAULTS[fault]
    problem.write_text(
        TOP.replace("3.0", "50.0") + FINE.replace("['sh', 'fine.sh', '{x}']", command) + "valid = [0, 100]\n"
    )
    checked = typed("check", problem, code=1).out
    assert f"WRONG: {said}" in checked
    assert "wrong: fine" in checked
    assert not problem.with_suffix(".jsonl").exists()
    run = typed("run", problem, code=1)
    assert said in run.err.splitlines()[-1]
    assert "±" not in run.out
    events = [event["event"] for event in read_journal(problem.with_suffix(".jsonl"))[1]]
    assert events.count("failed") == 2
    state = read_state(problem.with_suffix(".jsonl"))
    assert (state.stopped, sum(e.cost for e in state.evaluations)) == ("failures", 2.0)


def test_no_answer_is_printed_without_a_value_of_the_primary_source(problem, typed):
    problem.write_text(
        TOP.replace("3.0", "50.0") + FINE.replace("sh', 'fine.sh', '{x}", "echo', 'done in {x} s") + COARSE
    )
    run = typed("run", problem, code=1)
    assert run.out.strip().startswith("integral: unknown, because fine has no value; the last evaluation of it: ")
    assert "±" not in run.out
    last = run.err.splitlines()[-1]
    journal = problem.with_suffix(".jsonl")
    assert "of the budget unspent. Evaluation " in last
    number = last.partition("Evaluation ")[2].split()[0]
    assert f"See its output with: amsbq show {journal} {number}." in last
    assert "  | done in 0." in typed("show", journal, number).out
    answer = json.loads(typed("run", problem, "--json", code=1).out)
    assert (answer["mean"], answer["std"], answer["stopped"]) == (None, None, "failures")
    assert typed("status", journal).out.startswith("fine has no value yet\n")
    assert "±" not in typed("report", journal, "--text").out.replace("integral ± std", "")  # which heads the column


def test_a_simulator_that_is_mended_goes_on_without_more_ado(problem, typed):
    """Its failures are no reason to refuse the new version, as there is no value that it could contradict."""
    (problem.parent / "fine.sh").write_text("exit 1\n")
    typed("run", problem, code=1)
    (problem.parent / "fine.sh").write_text(SCRIPT)
    answer = json.loads(typed("resume", problem.with_suffix(".jsonl"), "--budget", 6, "--json").out)
    assert {e["status"] for e in answer["evaluations"] if e["source"] == "fine"} == {"failed", "ok"}
    assert "accepted" in [event["event"] for event in read_journal(problem.with_suffix(".jsonl"))[1]]


# show, exclude, correct


def test_an_evaluation_is_shown_with_what_it_printed(journal, typed):
    first = read_state(journal).evaluations[0]
    said = typed("show", journal, first.id).out
    assert f"evaluation {first.id} of fine\nat x = {first.x[0]:.10g}\nvalue = {first.value:.10g}\n" in said
    assert f"standard output:\n  | starting {first.x[0]}\n" in said
    assert "standard error: nothing" in said
    assert "has no evaluation 99: valid numbers are 0 to" in typed("show", journal, 99, code=2).err
    assert "cannot be read" in typed("show", journal.with_name("none.jsonl"), 0, code=2).err
    assert not journal.with_name("none.jsonl").exists()


def test_what_a_python_function_prints_is_kept_with_its_traceback(tmp_path, typed):
    (tmp_path / "my_simulators.py").write_text(
        "def f(x):\n    print('meshing', x[0])\n    raise RuntimeError('no mesh')\n"
    )
    (tmp_path / "problem.toml").write_text(TOP + "[[sources]]\npython = 'my_simulators:f'\n")
    typed("run", tmp_path / "problem.toml", code=1)
    said = typed("show", tmp_path / "problem.jsonl", 1).out
    assert "  | meshing 0." in said
    assert "  | Traceback (most recent call last):" in said
    assert "  | RuntimeError: no mesh" in said


def reference(journal, without=(), values=()):
    """The estimate from the values of a journal by other means: a new integrator that is told them."""
    state, header = read_state(journal), read_journal(journal)[0]
    it = load_problem(journal.parent / header["file"]).integrator()
    for e in state.evaluations:
        if e.id not in without:
            it.observe(e.source, e.x, dict(values).get(e.id, e.value))
    return it.estimate()


def test_an_excluded_value_does_not_count(journal, typed):
    expected = reference(journal, without=[1])
    assert (
        "evaluation 1: excluded by the user: diverged; it was"
        in typed("exclude", journal, 1, "--reason", "diverged").out
    )
    for result in (amsbq.read_result(journal), amsbq.read_result(journal, model=False)):
        assert result.mean == pytest.approx(expected.mean, rel=1e-9)
        assert result.std == pytest.approx(expected.std, rel=1e-9)
        assert result.stopped == "budget"
        assert result.spent == pytest.approx(3.0)
    answer = json.loads(typed("resume", journal, "--json").out)
    assert answer["mean"] == pytest.approx(expected.mean, rel=1e-9)
    assert "excluded by the user: diverged" in typed("report", journal, "--text").out
    assert read_state(journal).estimate.mean == pytest.approx(expected.mean, rel=1e-9)
    pytest.importorskip("plotly")
    typed("report", journal)
    assert "excluded by the user: diverged" in journal.with_suffix(".html").read_text()


def test_what_is_excluded_has_not_failed(journal, typed):
    typed("exclude", journal, 1, "--reason", "diverged")
    result = amsbq.read_result(journal)
    source = result.evaluations[1].source
    assert totals(result, source)[:2] == (sum(e.source == source for e in result.evaluations) - 1, 0)
    assert f"{result.names[source]} (1 excluded)" in str(result)
    again = typed("exclude", journal, 1, "--reason", "another", code=2).err
    assert "evaluation 1 is excluded by the user: diverged" in again
    assert f"to include it again, run: amsbq correct {journal} 1 VALUE" in again
    assert "corrected" in typed("correct", journal, 1, 0.5).out


def test_a_correction_far_from_all_other_values_gets_a_remark(journal, typed):
    values = [e.value for e in read_state(journal).evaluations if e.id != 0]
    said = typed("correct", journal, 0, 99999).out
    assert f"note: 99999 is far from all other values, {min(values):g} to {max(values):g}" in said
    assert "note:" not in typed("correct", journal, 0, values[0]).out


def test_a_corrected_value_counts(journal, typed):
    expected = reference(journal, values=[(0, 0.5)])
    typed("correct", journal, 0, 7.0)
    assert "and now is 0.5" in typed("correct", journal, 0, 0.5).out
    assert amsbq.read_result(journal).mean == pytest.approx(expected.mean, rel=1e-9)
    assert "corrected; it was" in typed("report", journal, "--text").out
    assert "corrected; it was" in typed("show", journal, 0).out
    for wrong in ("nan", "inf"):
        typed("correct", journal, 0, wrong, code=2)
    typed("correct", journal, 0, 1.0, "--variance", -1, code=2)


def test_a_revised_run_goes_on_the_same_whether_it_is_killed_or_not(journal, typed):
    """Bit for bit: cut off after each of the evaluations that follow the revision, it ends where the uncut one does."""
    typed("exclude", journal, 2)
    before = len(journal.read_bytes().splitlines())
    once = json.loads(typed("resume", journal, "--budget", 5, "--json").out)
    lines = journal.read_bytes().splitlines(keepends=True)
    cuts = [number for number in range(before + 1, len(lines)) if b'"event":"told"' in lines[number]]
    assert len(cuts) > 1
    for cut in cuts[:2]:
        journal.write_bytes(b"".join(lines[: cut + 1]))
        again = json.loads(typed("resume", journal, "--budget", 5, "--json").out)
        assert [again[key] for key in ("mean", "std", "evaluations")] == [
            once[key] for key in ("mean", "std", "evaluations")
        ]
    assert [e["status"] for e in once["evaluations"] if e["id"] == 2] == ["failed"]


def test_a_failed_evaluation_gets_a_value(problem, typed):
    """For a value that somebody has read in a log by eye."""
    problem.write_text(TOP + FINE.replace("sh', 'fine.sh', '{x}", "echo', 'done in {x} s"))
    typed("run", problem, code=1)
    journal = problem.with_suffix(".jsonl")
    typed("correct", journal, 0, 0.25)
    assert "it had failed: the last line" in typed("show", journal, 0).out
    assert amsbq.read_result(journal).mean == pytest.approx(0.25, abs=0.1)


def test_a_value_outside_of_the_valid_range_is_refused(problem, typed):
    problem.write_text(TOP + FINE + "valid = [-5, 5]\n")
    typed("run", problem)
    assert "outside the valid range" in typed("correct", problem.with_suffix(".jsonl"), 0, 9.0, code=2).err


def test_work_directories_of_values_that_are_not_valid_are_kept(problem, typed):
    (problem.parent / "deck.in").write_text("{x}\n")
    problem.write_text(TOP + FINE + "template = 'deck.in'\nvalid = [5, 6]\n")
    typed("run", problem, code=1)
    folder = problem.parent / "runs" / "fine-1"
    assert float((folder / "deck.in").read_text()) < 1
    assert f"work directory: {folder}\n" in typed("show", problem.with_suffix(".jsonl"), 1).out


@pytest.mark.parametrize(
    "event",
    [
        {"event": "excluded", "id": 99, "reason": ""},
        {"event": "excluded", "id": [1], "reason": ""},
        {"event": "corrected", "id": 0, "value": "large", "variance": 0.0},
        {"event": "corrected", "id": 0, "value": math.nan, "variance": 0.0},
        {"event": "observed", "source": 9, "x": [0.5], "value": 1.0, "variance": 0.0},
        {"event": "asked", "id": 100, "source": [1], "x": [0.5], "cost": 1.0, "rate": 1.0},
        {"event": "failed", "id": {}, "reason": "", "cost": 1.0},
    ],
)
def test_malformed_revisions_are_one_line(event, journal, typed):
    with Journal(journal) as opened:
        opened.write(event)
    for command in ("status", "resume"):
        assert "records something that cannot have happened" in typed(command, journal, code=2).err


# changes


@pytest.mark.parametrize("name", ["fine.sh", "deck.in", "mesh.dat"])
def test_a_changed_file_is_noticed_with_both_versions(name, problem, typed):
    for other in ("deck.in", "mesh.dat"):
        (problem.parent / other).write_text("1\n")
    problem.write_text(TOP + FINE + "template = 'deck.in'\nfiles = ['mesh.dat']\n")
    typed("run", problem)
    file = problem.parent / name
    file.write_text(file.read_text() + "\n")
    journal = problem.with_suffix(".jsonl")
    said = typed("resume", journal, code=2).err
    assert f"source 0's function digests {name} was 'sha256 " in said
    assert ", and now is 'sha256 " in said
    typed("resume", journal, "--accept-changes")
    typed("resume", journal)


def test_a_changed_python_module_is_noticed(tmp_path, typed):
    (tmp_path / "my_simulators.py").write_text("def f(x):\n    return x[0]\n")
    (tmp_path / "problem.toml").write_text(TOP + "[[sources]]\npython = 'my_simulators:f'\n")
    typed("run", tmp_path / "problem.toml")
    (tmp_path / "my_simulators.py").write_text("def f(x):\n    return 2 * x[0]\n")
    assert "digests my_simulators.py was" in typed("resume", tmp_path / "problem.jsonl", code=2).err


# values used again


@pytest.mark.filterwarnings("always")
def test_values_of_a_journal_begin_another_run(journal, typed):
    """With another distribution, budget, model and cost; those where the new distribution is zero are left out."""
    new = journal.with_name("new.toml")
    inputs = TOP.replace("low = 0.0, high = 1.0", "low = 0.2, high = 0.9").replace("budget = 3.0", "budget = 1.0")
    new.write_text(inputs.replace("icm", "auto") + COARSE.replace("0.2\n", "0.3\n") + FINE)
    made = read_state(journal).evaluations
    usable = [e for e in made if 0.2 <= e.x[0] <= 0.9]
    run = typed("run", new, "--from", journal, "--json")
    assert 0 < len(usable) < len(made)
    assert f"{len(made) - len(usable)} of {len(made)} values of {journal} are outside" in run.err
    assert f"{len(usable)} values taken from {journal}" in run.err
    answer = json.loads(run.out)
    taken = [e for e in answer["evaluations"] if e["id"] is None]
    names = ["fine", "coarse"]
    assert [(e["source"], e["x"]["x"], e["value"]) for e in taken] == [
        (names[e.source], e.x[0], e.value) for e in usable
    ]
    assert answer["spent"] <= 1.0
    resumed = json.loads(typed("resume", new.with_suffix(".jsonl"), "--json").out)
    assert (resumed["mean"], resumed["std"]) == (answer["mean"], answer["std"])
    assert amsbq.read_result(new.with_suffix(".jsonl")).integrator is not None
    again = json.loads(typed("run", new, "--from", journal, "--json").out)
    assert again["mean"] == answer["mean"]


def test_values_of_other_inputs_or_sources_are_refused(journal, typed):
    new = journal.with_name("new.toml")
    for text, said in (
        ((TOP + FINE + COARSE).replace("x = {", "y = {").replace("{x}", "{y}"), "the inputs of .* are x, but now"),
        (TOP + FINE, "has values of coarse, but the sources are now fine"),
        ((TOP + FINE + COARSE).replace("0.2 }'", "0.3 }'"), "come from another simulator: coarse command was"),
    ):
        new.write_text(text)
        error = typed("run", new, "--from", journal, code=2).err
        assert re.search(said, error)
        assert not new.with_suffix(".jsonl").exists()
    typed("run", new, "--from", journal, "--accept-changes")
    problem = journal.with_suffix(".toml")
    assert (
        "already exists, but did not begin from"
        in typed("run", problem, "--from", new.with_suffix(".jsonl"), code=2).err
    )
    assert np.isfinite(amsbq.read_result(new.with_suffix(".jsonl")).mean)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("template = 3", "sources[0].template: must be the name of a file, or a list of them, got 3"),
        ("files = [1]", "sources[0].files: must be a list of names of files, such as ['mesh.dat'], got [1]"),
        ("files = 'mesh'", "sources[0].files: must be a list of names of files"),
        (
            "environment = { A = 1 }",
            "sources[0].environment: must be a table of strings, such as { OMP_NUM_THREADS = '1' }, got { A = 1 }",
        ),
        ("template = 'none.in'", "there is no file or folder 'none.in'"),
        ("output = { regex = 'peak' }", "must have one group"),
        (
            "output = { peak = { last = true }, time = { column = 1 } }",
            "sources[0].output: contains peak, time, but a run uses value",
        ),
        ("workdir = 'runs'", "workdir: must contain {id}"),
    ],
)
def test_keys_of_commands_that_are_wrong_are_refused_before_anything_is_run(keys, said, problem, typed):
    problem.write_text(TOP + FINE + keys)
    assert said in typed("run", problem, code=2).err


def test_keys_of_commands_belong_to_commands(problem, typed):
    problem.write_text(TOP + "[[sources]]\npython = 'math:fsum'\ntemplate = 'deck.in'\n")
    assert "sources[0].template: belongs to a command, but this source is python" in typed("check", problem, code=2).err


# texts around runs


def test_suggestions_name_the_right_budget(journal, typed):
    problem = journal.with_suffix(".toml")
    assert f"continue with: amsbq resume {journal} --budget 6\n" in typed("run", problem).out
    assert f"continue with: amsbq resume {journal} --budget 8\n" in typed("resume", journal, "--budget", 4).out
    problem.write_text(problem.read_text().replace("budget = 3.0", "abs_tol = 2.0"))
    assert f"set a smaller tolerance in {problem}" in typed("run", problem, "--fresh").out


def test_an_interrupted_run_goes_on_with_its_own_budget(problem):
    (problem.parent / "fine.sh").write_text(f"touch started\nsleep 1\n{SCRIPT}")
    command = [sys.executable, "-m", "amsbq", "run", str(problem), "--budget", "7"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert eventually(lambda: (problem.parent / "started").exists(), 30)
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate(timeout=30)
    assert run.returncode == 130
    assert f"continue with: amsbq resume {problem.with_suffix('.jsonl')} --budget 7\n" in out


def test_a_forecast_of_a_journal(journal, typed):
    said = typed("forecast", journal).out
    assert said.startswith("      cost  expected std\n         3  ")
    *_, last, estimated, ahead = said.splitlines()
    assert float(last.split()[0]) <= 6.0
    assert estimated.startswith("(an estimate")
    assert re.fullmatch(r"evaluations ahead: \d+ of \w+(, \d+ of \w+)*", ahead)
    assert (
        typed("forecast", journal, "--budget", 4).out
        == typed("forecast", journal.with_suffix(".toml"), "--budget", 4).out
    )


def test_a_reader_that_has_seen_enough_is_no_error(journal):
    shown = f"{sys.executable} -m amsbq report {journal} --text"
    done = subprocess.run(
        ["bash", "-c", f"{shown} | head -n 1; echo ${{PIPESTATUS[0]}}"], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("integral: ")
    assert done.stderr == ""
    read, write = os.pipe()
    os.close(read)
    closed = subprocess.run(shown.split(), stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(write)
    assert (closed.returncode, closed.stderr) == (141, "")


def test_the_page_of_a_failed_run_has_no_answer(problem, typed):
    pytest.importorskip("plotly")
    problem.write_text(TOP + FINE.replace("sh', 'fine.sh', '{x}", "false") + COARSE)
    typed("run", problem, code=1)
    typed("report", problem.with_suffix(".jsonl"))
    page = problem.with_suffix(".html").read_text().partition('<section aria-labelledby="h-pictures">')[0]
    page = page.partition("<body>")[2]
    assert "No answer" in page
    assert re.search(r"fine has no value: evaluation \d+ failed, it ended with exit code 1\.", page)
    for wrong in ("unknown", "±", "continues", "goes on"):
        assert wrong not in page


def test_a_problem_file_with_a_tolerance_needs_no_budget(problem, typed):
    problem.write_text((TOP + FINE + COARSE).replace("budget = 3.0", "abs_tol = 1.0"))
    assert "there is no budget: the run ends when its tolerance is reached" in typed("check", problem).out
    assert json.loads(typed("run", problem, "--json").out)["stopped"] == "tolerance"
    problem.write_text((TOP + FINE).replace("budget = 3.0\n", ""))
    assert (
        "budget: is missing: in units of cost, such as budget = 10.0, or a tolerance"
        in typed("run", problem, code=2).err
    )
