"""What the page on resuming promises, beyond what the tests of journals, locks and changes show."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import amsbq
from amsbq.common.threads import MANY_OBSERVATIONS, threads_for
from amsbq.execution.journal import JournalError, read_journal
from amsbq.execution.runner import run as run_it
from amsbq.external import Command, UMBridge
from tests.execution.test_executors import eventually
from tests.execution.test_journal import SOURCES, UNIT, everything, fine, run


def test_events_are_on_the_disk_before_they_are_used(tmp_path, monkeypatch):
    path, synced, fsync = tmp_path / "run.jsonl", [], os.fsync

    def noted(descriptor):
        fsync(descriptor)
        synced.append(os.fstat(descriptor).st_size)

    monkeypatch.setattr(os, "fsync", noted)

    def last_event():
        assert synced[-1] == path.stat().st_size  # all of it is on the disk
        return read_journal(path)[1][-1]

    def looks(x):
        event = last_event()
        assert (event["event"], event["x"]) == ("asked", x.tolist())
        return fine(x)

    class Watched(amsbq.Integrator):
        def tell(self, query, value, variance=0.0, cost=None, free=None, gradient=None):
            event = last_event()
            assert (event["event"], event["id"], event["value"]) == ("told", query.id, value)
            super().tell(query, value, variance, cost, free, gradient)

    result = run_it(Watched(amsbq.Source(looks, name="fine"), UNIT, budget=4, model="icm"), journal=path)
    assert [e.reason for e in result.evaluations] == [""] * 4


@pytest.mark.parametrize("rule", [{"abs_tol": 1.0}, {"max_evaluations": 4}], ids=["tolerance", "evaluations"])
def test_a_run_goes_on_without_the_rule_that_has_stopped_it(tmp_path, rule):
    [name] = rule
    stopped = run(tmp_path / "run.jsonl", **rule)
    assert stopped.stopped == ("tolerance" if name == "abs_tol" else "evaluations")
    whole = run(tmp_path / "whole.jsonl")
    assert len(stopped.evaluations) < len(whole.evaluations)
    assert everything(run(tmp_path / "run.jsonl")) == everything(whole)


def umbridge(model="forward", output=0):
    return amsbq.Source(UMBridge("http://127.0.0.1:9", model, output=output), name="fine")


CHANGES = {
    "noise": (amsbq.Source(fine, name="fine", noise=0.5), "source 0's noise was 0.0, and now is 0.5"),
    "valid": (amsbq.Source(fine, name="fine", valid=(0, 9)), r"source 0's valid was None, and now is \[0.0, 9.0\]"),
    "model": (umbridge("backward"), "source 0's function model was 'forward', and now is 'backward'"),
    "output": (umbridge(output=1), "source 0's function output was 0, and now is 1"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_what_else_is_compared(tmp_path, kind):
    changed, said = CHANGES[kind]
    before = umbridge() if isinstance(changed.function, UMBridge) else SOURCES[0]
    options = {"budget": 3, "model": "icm", "journal": tmp_path / "run.jsonl", "stop": lambda it: "at once"}
    with pytest.raises(RuntimeError, match="no evaluation was successful"):
        amsbq.integrate(before, UNIT, **options)
    with pytest.raises(JournalError, match=said):
        amsbq.integrate(changed, UNIT, **options)


def test_the_code_of_a_function_is_not_compared_and_arguments_are_recorded(tmp_path):
    def simulators(slope):
        def simulator(x):
            return slope * x[0]

        return amsbq.Source(simulator, name="fine")

    path, options = tmp_path / "run.jsonl", {"model": "icm", "journal": tmp_path / "run.jsonl"}
    first = amsbq.integrate(simulators(1), UNIT, budget=2, **options)
    more = amsbq.integrate(simulators(2), UNIT, budget=3, **options)
    assert [e.value / e.x[0] for e in more.evaluations] == [1.0] * len(first.evaluations) + [2.0]
    command = Command(["sh", "-c", "echo {x}", "--password=secret"], ["x"])
    amsbq.integrate(command, UNIT, budget=2, model="icm", journal=tmp_path / "command.jsonl")
    assert "--password=secret" in (tmp_path / "command.jsonl").read_text()
    assert "slope" not in path.read_text()


def test_what_is_running_when_a_journal_disappears_is_not_recorded(tmp_path):
    """Its query is pending in the journal that was moved, which goes on with it."""
    path, moved, arrivals, over = tmp_path / "run.jsonl", tmp_path / "moved.jsonl", iter("ab"), threading.Event()

    def meddles(x):
        if next(arrivals) == "a":
            over.wait(60)
        else:
            path.rename(moved)
        return fine(x)

    source, options = amsbq.Source(meddles, name="fine"), {"budget": 3, "model": "icm"}
    try:
        with pytest.raises(JournalError, match="deleted, moved or replaced"):
            amsbq.integrate(source, UNIT, workers=2, journal=path, **options)
    finally:
        over.set()
    assert [event["event"] for event in read_journal(moved)[1]] == ["asked", "asked", "told"]
    again = amsbq.Source(lambda x: fine(x), name="fine")
    result = amsbq.integrate(again, UNIT, journal=moved, accept_changes=True, **options)
    assert sorted(e.id for e in result.evaluations) == [0, 1, 2]
    assert result.spent == 3


WITH_A_POOL = """
import os, sys, time
from concurrent.futures import ProcessPoolExecutor
import amsbq
def fine(x):
    with open("pids", "a") as file:
        file.write(f"{os.getpid()}\\n")
    started = time.monotonic()
    while not os.path.exists("interrupted") and time.monotonic() < started + 60:
        time.sleep(0.01)
    return x[0]
if __name__ == "__main__":
    source = amsbq.Source(fine, name="fine")
    with ProcessPoolExecutor(int(sys.argv[1])) as pool:
        pool.submit(abs, 1).result()  # its processes are there before the run
        amsbq.integrate(source, (0, 1), budget=9, model="icm", executor=pool, workers=2, journal="run.jsonl")
"""


@pytest.mark.parametrize("idle", [0, 1])
def test_an_interrupt_on_the_terminal_and_a_process_pool(tmp_path, idle):
    """Processes that have evaluated go on; one that has not may end, and then the queries are pending."""
    (tmp_path / "script.py").write_text(WITH_A_POOL)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([sys.executable, "script.py", str(2 + idle)], cwd=tmp_path, **pipes) as process:
        pids = tmp_path / "pids"
        assert eventually(lambda: pids.exists() and pids.read_text().count("\n") == 2)
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.5)  # the run has been told by then; its simulations go on until they are let go
        (tmp_path / "interrupted").touch()
        _, err = process.communicate(timeout=60)
    kinds = [event["event"] for event in read_journal(tmp_path / "run.jsonl")[1]]
    assert kinds.count("asked") == 2
    assert "failed" not in kinds
    if idle:
        assert kinds == ["asked", "asked"]
        assert "2 of its queries are pending, and not charged" in err.splitlines()[-1]
    else:
        assert kinds.count("told") == 2
        assert "RunInterrupted" in err.splitlines()[-1]


def test_linear_algebra_has_one_thread_up_to_4000_observations():
    def used(n):
        with threads_for(n):
            return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    assert MANY_OBSERVATIONS == 4000
    with threadpool_limits(2, user_api="blas"):
        assert (used(3999), used(4000)) == ({1}, {2})
