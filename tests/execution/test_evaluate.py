"""What counts as a number, and errors of sources that must not end a run."""

import asyncio
import json
import math
import sys
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pytest

import amsbq
from amsbq.execution.evaluate import evaluate
from amsbq.execution.journal import read_journal
from amsbq.execution.revisions import shown_evaluation
from amsbq.simulators.answers import SETTINGS
from amsbq.simulators.commands import Command

X = np.array([0.25])
UNIT = amsbq.Uniform(0, 1)

NO_NUMBERS = {
    "masked": np.ma.masked,
    "a masked array": np.ma.array([1.5], mask=[True]),
    "a masked array without axes": np.ma.array(1.5, mask=True),
    "True": True,
    "NumPy's True": np.True_,
    "digits": "3",
    "an array of digits": np.array("3.5"),
    "bytes": b"3.5",
    "complex": 1 + 0j,
    "nothing": None,
    "a date": datetime.now(UTC),
    "a date of NumPy": np.datetime64("2024-01-01"),
    "a duration of NumPy": np.timedelta64(3, "s"),
    "a decimal number": Decimal("1.5"),
    "two numbers": [1.0, 2.0],
    "not a numbers": [],
    "not a number": math.nan,
    "infinity": np.float32("inf"),
    "400 digits": 10**400,
    "5000 digits": 10**5000,
}

NUMBERS = {
    "an integer": (3, 3.0),
    "30 digits": (10**30, 1e30),
    "NumPy's integer": (np.uint8(3), 3.0),
    "single precision": (np.float32(0.5), 0.5),
    "an array without axes": (np.array(1.5), 1.5),
    "an array of one element": (np.array([[1.5]]), 1.5),
    "an array that could be masked": (np.ma.array([1.5], mask=[False]), 1.5),
}


@pytest.mark.parametrize("name", NO_NUMBERS)
@pytest.mark.parametrize("of", ["value", "variance", "cost"])
def test_what_is_no_number_is_a_failed_evaluation(name, of):
    wrong = NO_NUMBERS[name]
    if of == "cost" and wrong is None:
        pytest.skip("a cost may be None")
    outcome = evaluate(lambda x: amsbq.Observation(**{"value": 1.0, of: wrong}), X)
    assert outcome.observation is None
    assert f"the {of} " in outcome.reason
    assert evaluate(lambda x: wrong, X).observation is None


@pytest.mark.parametrize("name", NO_NUMBERS)
def test_what_is_no_number_cannot_be_told(name):
    it = amsbq.Integrator(lambda x: 0.0, UNIT, budget=3, model="icm")
    query = it.ask()
    with pytest.raises((TypeError, ValueError), match=r"value .*fail\(query, reason\)"):
        it.tell(query, NO_NUMBERS[name])
    assert it.pending == [query]


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_numbers(name):
    given, expected = NUMBERS[name]
    assert evaluate(lambda x: given, X).observation == amsbq.Observation(expected)
    it = amsbq.Integrator(lambda x: 0.0, UNIT, budget=3, model="icm")
    it.tell(it.ask(), given)
    assert it.evaluations[0].value == expected


@pytest.mark.parametrize(
    "line",
    [
        '"3.5"',
        "true",
        "null",
        "NaN",
        '{"value": "3.5"}',
        '{"value": true}',
        '{"value": 1, "variance": "0"}',
        '{"value": 1, "cost": true}',
        '{"value": 1, "cost": 0}',
        '{"value": 1, "variance": -1}',
        "1" * 400,
        "1" * 5000,
        "[" * 100_000,
    ],
)
def test_programs_answer_with_numbers(line, tmp_path):
    (tmp_path / "answer").write_text(line)
    with pytest.raises(RuntimeError, match=r"the last line of its output is (not a number|not finite)"):
        Command(["cat", "answer"], ["a"], tmp_path)(X)


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Unstoppable(BaseException):
    pass


ERRORS = {
    "undecodable bytes": lambda: OSError(b"no \xff".decode(errors="surrogateescape")),
    "an unspeakable error": Unspeakable,
    "an unspeakable connection": type("Gone", (Unspeakable, ConnectionError), {}),
    "GeneratorExit": lambda: GeneratorExit("over"),
    "a cancelled task": asyncio.CancelledError,
    "a class of its own": lambda: Unstoppable("never"),
    "SystemExit": lambda: SystemExit(3),
    "commands to a terminal": lambda: ValueError("\x1b[2J\x1b]0;owned\x07\nall is well\r\u202etxt"),
    "a very long message": lambda: ValueError("a" * 10_000_000 + " the cause"),
    "a very long message that cannot be printed": lambda: ValueError("\udcff" * 10_000_000),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", ERRORS)
def test_no_error_of_a_source_ends_a_run(name, workers, tmp_path, monkeypatch):
    monkeypatch.setattr("amsbq.execution.evaluate.RETRY_PAUSES", (0.01,))

    def sometimes(x):
        if x[0] > 0.5:
            raise ERRORS[name]()
        return float(x[0])

    initial = [(0, [x]) for x in (0.1, 0.2, 0.4, 0.7)]
    options = {"initial": initial, "model": "icm", "workers": workers, "journal": tmp_path / "run"}
    result = amsbq.integrate(sometimes, UNIT, budget=4, **options)
    failed = [e for e in result.evaluations if e.x[0] > 0.5]
    assert failed
    recorded = [event["reason"] for event in read_journal(tmp_path / "run")[1] if event["event"] == "failed"]
    assert [e.reason for e in failed] == recorded
    for reason in recorded:
        assert type(ERRORS[name]()).__name__ in reason
        assert reason.isprintable()
        assert len(reason) <= 2000
    if name == "a very long message":
        assert "a the cause (sometimes, line " in recorded[0]


def test_reasons_that_are_told_are_recorded_without_control_characters():
    it = amsbq.Integrator(lambda x: 0.0, UNIT, budget=3, model="icm")
    it.fail(it.ask(), "no\nlicence\x1b[31m" + 5000 * "!")
    assert it.evaluations[0].reason.startswith(r"no licence\x1b[31m!!!")
    assert len(it.evaluations[0].reason) <= 2000


def fixed_model():
    return amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF(3.0))], UNIT)


@pytest.mark.parametrize("model", ["icm", "auto", "fixed"])
@pytest.mark.parametrize(
    "answer", [amsbq.Observation(1.7e308), amsbq.Observation(-1.7e308), amsbq.Observation(0, 1.7e308)]
)
def test_numbers_that_overflow_in_the_model_are_failed_evaluations(model, answer):
    def sometimes(x):
        return answer if x[0] > 0.5 else amsbq.Observation(x[0])

    initial = [(0, [x]) for x in (0.1, 0.2, 0.4, 0.7)]
    result = amsbq.integrate(
        sometimes, UNIT, budget=5, initial=initial, model=fixed_model() if model == "fixed" else model
    )
    failed = [e for e in result.evaluations if e.x[0] > 0.5]
    assert failed
    assert all(e.status == "failed" and "is too large" in e.reason for e in failed)
    assert math.isfinite(result.mean)
    assert math.isfinite(result.std)


@pytest.mark.parametrize("model", ["icm", "fixed"])
def test_the_largest_numbers_that_are_accepted(model):
    def huge(x):
        return 2e300 if x[0] > 0.5 else -2e300

    result = amsbq.integrate(huge, UNIT, budget=4, model=fixed_model() if model == "fixed" else model)
    assert [e.status for e in result.evaluations] == ["ok"] * 4
    assert math.isfinite(result.mean)


@pytest.mark.parametrize("timeout", [3e6, 1e10, 1e300])
def test_a_timeout_may_be_longer_than_any_life(timeout):
    code = "import sys; print(len(sys.stdin.read()))"
    command = Command([sys.executable, "-c", code], ["a"], timeout=timeout)
    assert command(X).value == len(json.dumps({"a": 0.25}))
    source = amsbq.Source(lambda x: x[0], timeout=timeout)
    for workers in (1, 2):
        result = amsbq.integrate(source, UNIT, budget=2, model="icm", workers=workers)
        assert [e.status for e in result.evaluations] == ["ok"] * 2


def talkative(x):
    """A source that prints to both streams, which are what they are outside of an evaluation."""
    print("meshing", x[0])
    sys.stdout.writelines(["solving", "\n"])
    print("poor mesh" if sys.stderr.encoding.lower() == "utf-8" else "no encoding", file=sys.stderr, flush=True)
    return x[0]


def test_what_a_function_prints_is_kept_and_still_printed(capsys):
    log = evaluate(talkative, X).log
    assert (log.stdout, log.stderr) == ("meshing 0.25\nsolving\n", "poor mesh\n")
    assert capsys.readouterr() == (log.stdout, log.stderr)
    print("afterwards")
    assert "afterwards" not in log.stdout


def test_the_end_of_much_that_is_printed_is_kept():
    log = evaluate(lambda x: [print(f"step {i}") for i in range(2000)] and 1.0, X).log
    assert len(log.stdout) == SETTINGS.logged
    assert log.stdout.endswith("step 1999\n")


def test_evaluations_inside_of_an_evaluation_have_logs_of_their_own():
    inner = []
    outer = evaluate(lambda x: print("outer") or inner.append(evaluate(talkative, x)) or 1.0, X).log
    assert inner[0].log.stdout == "meshing 0.25\nsolving\n"
    assert outer.stdout == f"outer\n{inner[0].log.stdout}"


@pytest.mark.parametrize(
    ("options", "kept"),
    [({}, True), ({"executor": "processes"}, True), ({"workers": 2}, False)],
    ids=["one after the other", "processes", "threads"],
)
def test_a_journal_keeps_what_functions_print_but_not_in_threads(options, kept, tmp_path):
    """Threads print to the same streams, so that nobody knows which of them it was."""
    with amsbq.ResilientProcessPool(1) as pool:
        executor = pool if options.pop("executor", None) else None
        amsbq.integrate(
            talkative, UNIT, budget=2, model="icm", journal=tmp_path / "run.jsonl", executor=executor, **options
        )
    for number in (0, 1):
        _, query, _, log = shown_evaluation(tmp_path / "run.jsonl", number)
        assert log.stdout == (f"meshing {query.x[0]}\nsolving\n" if kept else "")


def test_a_source_of_two_arguments_is_told_how_sources_are_called():
    reason = evaluate(lambda x, y: x + y, np.array([1.0, 2.0])).reason
    assert "missing 1 required positional argument: 'y'; sources are called with one array x" in reason
