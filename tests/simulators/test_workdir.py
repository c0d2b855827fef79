"""Templates and work directories: what a program finds there, and what is left of it."""

import pickle
import sys

import numpy as np
import pytest

from amsbq.execution.evaluate import evaluate
from amsbq.simulators.commands import Command
from amsbq.simulators.template import filled_template

X = np.array([1.5, 0.25])
NAMES = ["rate", "dose"]
ECHO = [sys.executable, "-c", "import sys; print(open(sys.argv[1]).read().split()[-1])", "deck.in"]


def command(folder, *, deck="rate = {rate:.3e}\n{dose}\n", arguments=ECHO, **options):
    (folder / "deck.in").write_text(deck)
    return Command(arguments, NAMES, folder, **{"template": "deck.in", **options})


def directories(folder):
    return sorted(path.name for path in (folder / "runs").glob("*"))


def test_a_template_is_filled_in_a_directory_of_its_own(tmp_path):
    one = command(tmp_path, keep="all").numbered("my solver", 3)
    assert one(X).value == 0.25
    assert (tmp_path / "runs" / "my_solver-3" / "deck.in").read_text() == "rate = 1.500e+00\n0.25\n"
    assert (tmp_path / "deck.in").read_text() == "rate = {rate:.3e}\n{dose}\n"
    assert (tmp_path / "runs" / "my_solver-3" / "stdout.txt").read_text() == "0.25\n"
    assert one.filled(X)[1] == {"deck.in": "rate = 1.500e+00\n0.25\n"}


def test_braces_are_escaped_by_doubling_and_delimiters_can_be_chosen():
    inputs = {"rate": 1.5}
    assert filled_template("{{a {rate} b}} {{{rate}}}", inputs, "deck") == "{a 1.5 b} {1.5}"
    assert filled_template("{a <<rate:.1f>> } <<<<rate>>>>", inputs, "deck", ("<<", ">>")) == "{a 1.5 } <<rate>>"
    assert filled_template("x = @rate@@ {", inputs, "deck", ("@", "@@")) == "x = 1.5 {"


@pytest.mark.parametrize(
    ("deck", "said"),
    [
        (
            "a\n{rates}",
            r"line 2 of deck.in contains \{rates\}, which is not an input; valid names: \{rate\}, \{dose\}. .*double",
        ),
        ("{rate:.3q}", r"line 1 of deck.in contains \{rate:.3q\}, but '.3q' is not a number format"),
        ("{rate", "an unclosed {"),
        ('{"a": {rate}}', "which is not an input"),
    ],
)
def test_templates_that_are_wrong_are_refused_before_anything_is_run(deck, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        command(tmp_path, deck=deck)


def test_a_folder_as_a_template(tmp_path):
    deck = tmp_path / "deck"
    (deck / "sub").mkdir(parents=True)
    (deck / "sub" / "run.sh").write_text("#!/bin/sh\necho {rate}\n")
    (deck / "sub" / "run.sh").chmod(0o755)
    (deck / "mesh.bin").write_bytes(b"\xff{rate}\x00")
    run = Command(["sh", "-c", "cat mesh.bin > copy; ./sub/run.sh"], NAMES, tmp_path, template="deck", keep="all")
    assert run.numbered("s", 0)(X).value == 1.5
    assert (tmp_path / "runs" / "s-0" / "copy").read_bytes() == b"\xff{rate}\x00"


def test_files_are_linked_or_copied_and_inputs_are_written(tmp_path):
    (tmp_path / "mesh.dat").write_text("7")
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "a").write_text("8")
    code = "import json; x = json.load(open('x.json')); print(x['rate'] + float(open('mesh.dat').read()))"
    (tmp_path / "model.py").write_text(code)
    run = Command(
        [sys.executable, "model.py"],
        NAMES,
        tmp_path,
        files=["mesh.dat"],
        copies=["table"],
        inputs_file="x.json",
        keep="all",
    ).numbered("s", 0)
    assert run(X).value == 8.5
    made = tmp_path / "runs" / "s-0"
    assert [(made / name).is_symlink() for name in ("mesh.dat", "model.py", "table")] == [True, True, False]
    assert (made / "table" / "a").read_text() == "8"


def test_environment_variables(tmp_path):
    run = Command(
        ["sh", "-c", "echo $RATE"], NAMES, tmp_path, environment={"RATE": "{rate:.1f}", "OMP_NUM_THREADS": "1"}
    )
    assert run(X).value == 1.5
    assert not (tmp_path / "runs").exists()
    with pytest.raises(ValueError, match="which is not an input"):
        Command(["run"], NAMES, environment={"A": "{rates}"})


FAILS = ["sh", "-c", "echo no licence >&2; exit 3"]


@pytest.mark.parametrize(("keep", "left"), [("failed", ["s-1"]), ("all", ["s-0", "s-1"]), ("none", [])])
def test_directories_are_kept_by_rule(keep, left, tmp_path):
    command(tmp_path, keep=keep).numbered("s", 0)(X)
    outcome = evaluate(command(tmp_path, arguments=FAILS, keep=keep).numbered("s", 1), X)
    assert outcome.reason == "it ended with exit code 3; it printed: no licence"
    assert directories(tmp_path) == left
    assert outcome.log.stderr == "no licence\n"
    assert outcome.log.folder == (str(tmp_path / "runs" / "s-1") if keep != "none" else "")
    if keep != "none":
        assert (tmp_path / "runs" / "s-1" / "stderr.txt").read_text() == "no licence\n"


def test_an_output_that_is_not_understood_keeps_the_directory(tmp_path):
    run = command(tmp_path, arguments=["echo", "hello"]).numbered("s", 0)
    assert "not a number: hello" in evaluate(run, X).reason
    assert directories(tmp_path) == ["s-0"]


@pytest.mark.parametrize(("valid", "left"), [((0.0, 0.2), ["s-0"]), ((0.0, 0.3), [])])
def test_a_value_that_is_not_valid_keeps_the_directory(valid, left, tmp_path):
    """It is a failed evaluation, although the program has no way to know."""
    outcome = evaluate(command(tmp_path).numbered("s", 0, valid), X)
    assert outcome.observation.value == 0.25
    assert directories(tmp_path) == left
    assert outcome.log.folder == (str(tmp_path / "runs" / "s-0") if left else "")


def test_what_is_there_is_never_touched(tmp_path):
    """An evaluation that is made again, after the run was killed, has another directory; so have calls without id."""
    (tmp_path / "runs" / "s-0").mkdir(parents=True)
    (tmp_path / "runs" / "s-0" / "mine").write_text("keep me")
    for _ in range(2):
        command(tmp_path, keep="all").numbered("s", 0)(X)
    assert directories(tmp_path) == ["s-0", "s-0.1", "s-0.2"]
    assert (tmp_path / "runs" / "s-0" / "mine").read_text() == "keep me"
    command(tmp_path, keep="all")(X)
    command(tmp_path, keep="all")(X)
    assert len(directories(tmp_path)) == 5


def test_a_template_that_is_no_text_in_utf_8_is_refused(tmp_path):
    """It would be copied as it is, with the names of the inputs in it; other files of a folder are no templates."""
    (tmp_path / "latin").mkdir()
    (tmp_path / "latin" / "deck.in").write_bytes("{rate} é\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"template .latin/deck.in. is not UTF-8 text: convert it"):
        command(tmp_path, template="latin/deck.in")
    assert command(tmp_path, template="latin").filled(X)[1] == {}


def test_an_old_result_is_not_taken_for_a_new_one(tmp_path):
    """A file from an earlier evaluation, or of the user, is not in the work directory."""
    (tmp_path / "result.csv").write_text("peak\n1\n")
    run = Command(["true", "result.csv"], NAMES, tmp_path, output={"file": "result.csv", "column": "peak"})
    assert "not found in result.csv" in evaluate(run, X).reason


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"workdir": "runs"}, "workdir must contain {id}"),
        ({"workdir": "runs/{x}-{id}"}, "workdir must contain {id}"),
        ({"keep": "some"}, "keep must be one of failed, all, none"),
        ({"files": ["mesh.dat"]}, "no file or folder 'mesh.dat'"),
        ({"delimiters": ["@", "@"]}, "delimiters must be two different strings"),
        ({"template": "other.in"}, "no file or folder 'other.in'"),
        ({"files": ["deck.in"]}, "two files of the work directory would be named 'deck.in'"),
        ({"template": ["deck.in", "./deck.in"]}, "two files of the work directory would be named 'deck.in'"),
        ({"template": ["deck.in", "folder"], "files": ["links/sub"]}, "would be named 'sub'"),
        ({"template": "."}, "would be inside '.'"),
        ({"copies": ["folder"], "workdir": "folder/{id}"}, "would be inside 'folder'"),
        ({"inputs_file": "a/b"}, "must be a name without a folder"),
        ({"inputs_file": "deck.in"}, "two files of the work directory would be named 'deck.in'"),
        (
            {"files": ["mesh"], "output": {"file": "mesh", "last": True}},
            "cannot be both a linked file",
        ),
    ],
)
def test_directories_that_are_wrong_are_refused(options, said, tmp_path):
    (tmp_path / "mesh").touch()
    for folder in ("folder/sub", "links/sub"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "folder" / "sub" / "a.in").touch()
    with pytest.raises(ValueError, match=said):
        command(tmp_path, **options)


def test_commands_with_directories_can_be_sent_to_other_processes(tmp_path):
    one = pickle.loads(pickle.dumps(command(tmp_path).numbered("s", 0)))
    assert one(X).value == 0.25


def test_a_program_beside_the_problem_is_found_from_the_directory(tmp_path):
    (tmp_path / "solve").write_text("#!/bin/sh\nread value < deck.in\necho $value\n")
    (tmp_path / "solve").chmod(0o755)
    assert command(tmp_path, deck="{dose}\n", arguments=["./solve"])(X).value == 0.25


def test_files_of_the_user_are_not_written_to(tmp_path):
    """A file that an argument names is linked where the program looks for it, unless a template makes it."""
    (tmp_path / "deck").mkdir()
    (tmp_path / "deck" / "run.in").write_text("{rate}\n")
    (tmp_path / "run.in").write_text("mine\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "mesh.dat").write_text("7\n")
    run = Command(["tail", "-qn", "1", "sub/mesh.dat", "./run.in"], NAMES, tmp_path, template="deck")
    assert run(X).value == 1.5
    assert (tmp_path / "run.in").read_text() == "mine\n"


def test_a_timeout_keeps_what_was_printed(tmp_path):
    run = command(tmp_path, arguments=["sh", "-c", "echo half way; sleep 60"], timeout=3.0)
    outcome = evaluate(run.numbered("s", 0), X)
    assert outcome.reason == "it took more than 3 s, and was killed; it printed: half way"
    assert outcome.log.stdout == "half way\n"
