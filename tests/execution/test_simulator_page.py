"""What the page on simulators promises, beyond what the tests of evaluations and of external simulators show."""

import os
import signal
import sys
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import amsbq
from amsbq.execution.evaluate import evaluate
from amsbq.external import Command, UMBridge
from tests.execution.test_executors import eventually, is_running
from tests.execution.test_external import Clock, closed, cut_short, fake  # noqa: F401 (a fixture)

X = np.array([0.25])
UNIT = amsbq.Uniform(0, 1)


@pytest.mark.parametrize("sign", [1, -1])
def test_values_above_2e300_are_failed_evaluations(sign):
    above = np.nextafter(2e300, np.inf)

    def large(x):
        return sign * (above if x[0] > 0.5 else 2e300 if x[0] > 0.3 else 1e300)

    initial = [(0, [0.2]), (0, [0.4]), (0, [0.7])]
    result = amsbq.integrate(large, UNIT, budget=3, model="icm", initial=initial)
    assert [e.status for e in result.evaluations] == ["ok", "ok", "failed"]


def test_fractions_and_decimal_numbers_are_not_taken_for_floats():
    for value in (Fraction(1, 2), Decimal("0.5")):
        assert "must be a number" in evaluate(lambda x, value=value: value, X).reason


def test_a_source_without_noise_that_contradicts_itself(recwarn):
    """A warning is issued, and the error bar has the noise."""
    calls = []

    def noisy(x):
        calls.append(x)
        return float(x[0]) + (0.5 if len(calls) % 2 else -0.5)

    initial = [(0, [x]) for x in (0.2, 0.2, 0.5, 0.5, 0.8, 0.8)]
    result = amsbq.integrate(noisy, UNIT, budget=6, model="icm", initial=initial)
    assert "noise" in str([warning.message for warning in recwarn])
    mean, variance = result.predict(0, [[0.2]])
    assert abs(mean[0] - 0.2) < 0.5
    assert variance[0] > 1e-3


STARTS_TWO = "sleep 3600 & echo $! >> pids; setsid sh -c 'echo $$ >> pids; exec sleep 3600' & sleep 3600"


def test_a_timeout_kills_all_but_other_sessions(tmp_path):
    """A child that leads a session of its own is out of reach, as that of a shell's `setsid` or of a daemon."""
    command = Command(["sh", "-c", STARTS_TWO], ["x"], tmp_path, timeout=1.5)
    with pytest.raises(RuntimeError, match=r"more than 1\.5 s, and was killed"):
        command(X)
    child, apart = sorted(map(int, (tmp_path / "pids").read_text().split()), key=is_session_leader)
    try:
        assert eventually(lambda: not is_running(child))
        assert is_running(apart)
    finally:
        os.kill(apart, signal.SIGKILL)


def is_session_leader(pid):
    """Whether a process leads a session; one that is gone does not."""
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return False


@pytest.mark.parametrize("timeout", [None, 60.0])
@pytest.mark.parametrize("outputs", ["", "> log 2>&1"], ids=["keeps the output open", "has outputs of its own"])
def test_a_program_has_ended_when_it_ends_and_what_it_leaves_in_its_group_ends_too(tmp_path, timeout, outputs):
    in_group = f"sleep 3600 {outputs} & echo $! > child"
    in_session = (
        f"setsid sh -c 'echo $$ > apart; exec sleep 3600' {outputs} & while [ ! -s apart ]; do sleep 0.01; done"
    )
    command = f"{in_group}; {in_session}; echo 1.5"
    began = time.monotonic()
    assert Command(["sh", "-c", command], ["x"], tmp_path, timeout=timeout)(X).value == 1.5
    assert time.monotonic() - began < 30  # it does not wait for an hour, or for the time-out
    child, apart = (int((tmp_path / name).read_text()) for name in ("child", "apart"))
    try:
        assert eventually(lambda: not is_running(child))
        assert is_running(apart)
    finally:
        os.kill(apart, signal.SIGKILL)


def test_nothing_that_a_program_prints_before_it_ends_is_lost(tmp_path):
    """Its last output is in the pipe when it ends, and another process keeps the pipe open."""
    printed = "import subprocess, sys; subprocess.Popen(['sleep', '3600']); print('x' * 60000); print(2.5)"
    assert Command([sys.executable, "-c", printed], ["x"], tmp_path)(X).value == 2.5


def test_a_program_that_closes_its_outputs_is_waited_for(tmp_path):
    with pytest.raises(RuntimeError, match="exit code 3"):
        Command(["sh", "-c", "exec >&- 2>&- <&-; sleep 0.3; exit 3"], ["x"], tmp_path)(X)
    with pytest.raises(RuntimeError, match=r"more than 0\.5 s, and was killed"):
        Command(["sh", "-c", "exec >&- 2>&- <&-; sleep 3600"], ["x"], tmp_path, timeout=0.5)(X)


@pytest.mark.parametrize("broken", [cut_short, closed])
def test_requests_are_repeated_three_times(fake, broken, monkeypatch):  # noqa: F811
    clock, pauses = Clock(), []
    monkeypatch.setattr(clock, "sleep", pauses.append)
    monkeypatch.setattr("amsbq.execution.evaluate.time", clock)
    server = fake(*[broken] * 9)
    assert evaluate(UMBridge(server.url), X).observation is None
    assert [path for _, path, _ in server.asked].count("/Evaluate") == 4
    assert len(pauses) == 3
    assert max(pauses) == 5


def test_existing_values_cost_nothing():
    it = amsbq.Integrator([amsbq.Source(name="fine"), amsbq.Source(name="coarse", cost=0.25)], UNIT, budget=4)
    it.observe(0, 0.5, 1.0)
    it.observe(1, 0.25, 2.0)
    assert (it.spent, it.reserved) == (0.0, 0.0)
    asked = it.ask(4)
    assert 1 <= len(asked) <= 4
    it.fail(asked[0], "no licence")
    assert it.evaluations[-1].reason == "no licence"
    assert it.spent == asked[0].cost


def test_a_program_that_ends_with_an_error_is_quoted(tmp_path):
    """By the last five lines of its standard error, or of its output if it wrote no errors."""
    for output in ("1>&2", ""):
        command = Command(
            ["sh", "-c", f"for i in 1 2 3 4 5 6; do echo line $i {output}; done; exit 7"], ["x"], tmp_path
        )
        reason = evaluate(command, X).reason
        assert "exit code 7; it printed: line 2 | line 3 | line 4 | line 5 | line 6" in reason
