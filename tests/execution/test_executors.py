"""Runs by executors of all kinds: those that do not work, time-outs, and workers that crash or hang."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from amsbq import ResilientProcessPool, Source, integrate
from amsbq.execution import executors
from amsbq.execution.state import read_state
from amsbq.external import Command
from tests.design.test_integrator import COARSE, FINE, TRUTH, UNIT, fixed
from tests.execution.test_runner import coarse, fine, pair
from tests.waiting import eventually, is_running


@pytest.mark.front_door
@pytest.mark.parametrize("kind", ["threads", "thread pool", "process pool"])
def test_workers_and_executors(kind):
    if kind == "threads":
        result = integrate(pair(fine, coarse), UNIT, budget=4, model=fixed(), workers=4)
    else:
        pool = {"thread pool": ThreadPoolExecutor, "process pool": ProcessPoolExecutor}[kind]
        with pool(2) as executor:
            result = integrate(pair(fine, coarse), UNIT, budget=4, model=fixed(), executor=executor, workers=2)
    assert result.stopped == "budget"
    assert result.spent <= 4
    assert abs(result.mean - TRUTH) < 4 * result.std
    assert {e.status for e in result.evaluations} == {"ok"}


def crash(x):
    """Crash in a part of the inputs, unless this is the process of the run."""
    if x[0] > 0.6 and multiprocessing.parent_process() is not None:
        os._exit(1)
    return fine(x)


def pending_after_a_broken_executor(executor, path, function=fine, match="the executor does not work", workers=2):
    """The state after a run that its executor has ended: nothing is lost, failed, or charged for what is pending."""
    source = Source(function, name="fine")
    with pytest.raises(RuntimeError, match=match):
        integrate(source, UNIT, budget=20, model=fixed(L=1), executor=executor, workers=workers, seed=3, journal=path)
    state = read_state(path)
    assert state.pending
    assert state.stopped == ""
    assert all(e.status == "ok" and e.cost == 1.0 for e in state.evaluations)
    return state


def test_a_worker_process_that_dies_ends_the_run_and_is_not_charged(tmp_path):
    with ProcessPoolExecutor(1) as executor:
        state = pending_after_a_broken_executor(executor, tmp_path / "run.jsonl", crash, "BrokenProcessPool", 1)
    assert len(state.pending) == 1
    result = integrate(
        Source(crash, name="fine"),
        UNIT,
        budget=20,
        model=fixed(L=1),
        seed=3,
        journal=tmp_path / "run.jsonl",
        max_evaluations=12,
    )
    assert [e.id for e in result.evaluations] == list(range(12))
    assert np.array_equal(result.evaluations[len(state.evaluations)].x, state.pending[0].x)
    assert result.spent == 12


class Unreliable(ThreadPoolExecutor):
    """An executor that after a few calls takes no more, or cancels them."""

    def __init__(self, after, how):
        super().__init__(2)
        self.calls, self.how = [0] * after, how

    def submit(self, fn, /, *args, **kwargs):
        if self.calls:
            self.calls.pop()
            return super().submit(fn, *args, **kwargs)
        if self.how == "cancels":
            future = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future
        raise RuntimeError("cannot schedule new futures after shutdown")


@pytest.mark.parametrize("how", ["raises", "cancels"])
def test_an_executor_that_stops_to_work_ends_the_run(how, tmp_path, capfd):
    """What it still evaluates is kept: it is paid for."""

    def slow(x):
        time.sleep(0.2)
        return FINE(x)

    with Unreliable(5, how) as executor:
        match = "cannot schedule new futures" if how == "raises" else "CancelledError"
        state = pending_after_a_broken_executor(executor, tmp_path / "run.jsonl", slow, match)
    assert len(state.evaluations) == 5
    assert len(state.pending) == 1
    assert "the executor does not work; stopping after running evaluations" in capfd.readouterr().err


def test_functions_that_cannot_be_sent_end_the_run(tmp_path):
    with ProcessPoolExecutor(1) as executor:
        state = pending_after_a_broken_executor(executor, tmp_path / "run.jsonl", lambda x: x[0], "pickle")
    assert state.evaluations == []


class KilledWorker(Exception):
    """As Dask raises it for a call that has ended several of its workers."""


def test_a_call_that_ends_all_workers_of_a_cluster_has_failed():
    class Cluster(ThreadPoolExecutor):
        def submit(self, fn, /, *args, **kwargs):
            future = Future()
            future.set_exception(KilledWorker("4 workers have died"))
            return future

    with Cluster() as executor, pytest.raises(RuntimeError, match="4 workers"):
        integrate(Source(fine), UNIT, budget=20, model=fixed(L=1), executor=executor)


def test_sources_that_take_for_ever():
    """Their threads are left behind; the run, and then the interpreter, go on without them."""
    calls = [0]

    def secondary(x):
        calls[0] += 1
        if calls[0] % 4 == 0:
            time.sleep(3600)
        return COARSE(x)

    start = time.monotonic()
    sources = [Source(FINE), Source(secondary, cost=0.1, timeout=0.2)]
    result = integrate(sources, UNIT, budget=3, model=fixed())
    assert time.monotonic() - start < 60
    failed = [e for e in result.evaluations if e.status == "failed"]
    assert failed
    assert all("timeout of 0.2 s" in e.reason for e in failed)
    assert result.stopped == "budget"


def test_the_interpreter_ends_while_a_source_does_not():
    code = (
        "import time, amsbq\n"
        "slow = amsbq.Source(lambda x: time.sleep(3600), cost=0.1, timeout=0.05)\n"
        "print(amsbq.integrate([lambda x: x[0], slow], (0, 1), budget=3, model='vbq').stopped)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "budget"


def test_the_interpreter_ends_while_a_thread_of_a_pool_hangs():
    code = (
        "import time, amsbq\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "slow = amsbq.Source(lambda x: time.sleep(3600), cost=0.1, timeout=0.2)\n"
        "with ThreadPoolExecutor(1) as pool:\n"
        "    initial = [(1, [0.5]), (0, [0.5]), (0, [0.2])]\n"
        "    fine = lambda x: x[0]\n"
        "    result = amsbq.integrate([fine, slow], (0, 1), budget=2.1, model='icm', executor=pool, initial=initial)\n"
        "print([e.status for e in result.evaluations])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "['failed', 'ok', 'ok']"


def test_waiting_for_a_turn_is_no_timeout():
    def slow(x):
        time.sleep(0.2)
        return FINE(x)

    with ThreadPoolExecutor(1) as executor:
        source = Source(slow, timeout=5.0)
        result = integrate(source, UNIT, budget=6, model=fixed(L=1), executor=executor, workers=6)
    assert {e.status for e in result.evaluations} == {"ok"}


def slow_but_in_time(x):
    time.sleep(0.7)
    return fine(x)


def test_waiting_in_the_queue_of_a_process_pool_is_no_timeout():
    """A pool of one process says of two calls that they are running."""
    with ProcessPoolExecutor(1) as executor:
        source = Source(slow_but_in_time, timeout=1.3)
        result = integrate(source, UNIT, budget=4, model=fixed(L=1), executor=executor, workers=4)
    assert [e.reason for e in result.evaluations] == [""] * 4


def hang_at_first(folder, x):
    """Hang in two calls, in a program and then in Python, and work from then on."""
    calls = len(list(folder.glob("call *")))
    (folder / f"call {calls}").touch()
    if calls == 0:
        program = subprocess.Popen(["sleep", "3600"])
        (folder / "pid").write_text(str(program.pid))
        program.wait()
    if calls == 1:
        time.sleep(3600)
    return fine(x)


@contextmanager
def executor_named(name):
    """An executor with one worker."""
    if name == "dask":
        distributed = pytest.importorskip("distributed")
        options = {"processes": False, "dashboard_address": "127.0.0.1:0"}
        with (
            distributed.LocalCluster(1, threads_per_worker=1, **options) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client
    else:
        with {"thread pool": ThreadPoolExecutor, "process pool": ProcessPoolExecutor}[name](1) as pool:
            yield pool


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("name", ["thread pool", "process pool", "dask"])
def test_time_outs_hold_in_every_executor(name, tmp_path):
    """There is one worker only: all later evaluations need that of those that hung."""
    with executor_named(name) as executor:
        source = Source(partial(hang_at_first, tmp_path), timeout=0.5, cost="measured")
        result = integrate(
            source, UNIT, budget=50, model=fixed(L=1), executor=executor, workers=2, max_evaluations=5, progress=False
        )
        by_id = sorted(result.evaluations, key=lambda e: e.id)
        assert [e.status for e in by_id] == ["failed", "failed", "ok", "ok", "ok"]
        assert all("timeout of 0.5 s" in e.reason and e.cost == 0.5 for e in by_id[:2])
        assert "its thread cannot be ended, and continues" in by_id[1].reason
    program = int((tmp_path / "pid").read_text())
    if name == "process pool":  # of a process with one call at a time it is known what that has started
        assert eventually(lambda: not is_running(program))
    else:
        os.kill(program, signal.SIGKILL)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("pool", [None, ThreadPoolExecutor])
def test_a_timeout_kills_the_program_of_a_command(pool, workers, tmp_path):
    command = Command(["sh", "-c", "echo $$ >> pids; sleep 3600 & echo $! >> pids; wait; echo {x}"], ["x"], tmp_path)
    sources, initial = [FINE, Source(command, timeout=0.5, cost=0.1)], [(1, [0.5]), (0, [0.5])]
    with nullcontext() if pool is None else pool(workers) as executor:
        result = integrate(
            sources, UNIT, budget=5, executor=executor, workers=workers, initial=initial, max_evaluations=2
        )
    failed = [e for e in result.evaluations if e.source == 1]
    assert failed
    assert {e.reason for e in failed} == {"it took more than the timeout of 0.5 s"}
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2 * len(failed)
    assert eventually(lambda: not any(is_running(pid) for pid in pids))


def test_an_executor_whose_threads_all_hang_ends_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(executors, "SETTINGS", replace(executors.SETTINGS, stalled=1.0))
    done = threading.Event()
    with ThreadPoolExecutor(2) as executor:
        for _ in range(2):
            executor.submit(done.wait)
        source = Source(FINE, timeout=0.5)
        with pytest.raises(RuntimeError, match="no evaluation has begun or ended for 2 s, although none may take more"):
            integrate(source, UNIT, budget=5, executor=executor, workers=2, journal=tmp_path / "run.jsonl")
        done.set()
    assert len(read_state(tmp_path / "run.jsonl").pending) == 2
    assert read_state(tmp_path / "run.jsonl").evaluations == []


def crash_above(limit, x):
    if x[0] > limit:
        os._exit(1)
    return float(x[0])


def run_in_a_pool(function, **options):
    """A run of three evaluations in a pool of one process."""
    initial = [(0, [x]) for x in (0.9, 0.2, 0.5)]
    with ResilientProcessPool(1) as pool:
        return integrate(Source(function, **options), UNIT, budget=3, model=fixed(L=1), executor=pool, initial=initial)


def test_a_run_survives_a_source_that_crashes():
    result = run_in_a_pool(partial(crash_above, 0.6))
    assert [e.status for e in result.evaluations] == ["failed", "ok", "ok"]
    assert "has died 2 times" in result.evaluations[0].reason


def test_a_run_has_its_worker_back_after_a_timeout(tmp_path):
    """The pool has one process only: all later evaluations need that of the one that hung, which was killed."""

    def hang_the_first_time(x):  # sent by value: the time to import a module would count as well
        if not (tmp_path / "pid").exists():
            (tmp_path / "pid").write_text(str(os.getpid()))
            time.sleep(3600)
        return float(x[0])

    result = run_in_a_pool(hang_the_first_time, timeout=3.0)
    assert [e.reason for e in result.evaluations] == ["it took more than the timeout of 3 s", "", ""]
    assert not is_running(int((tmp_path / "pid").read_text()))


FORKS = """
import os, sys, time
from concurrent.futures import ProcessPoolExecutor
import amsbq
def fine(x):
    os.write(1, f"{os.getpid()}\\n".encode())
    time.sleep(3600)
if __name__ == "__main__":
    with ProcessPoolExecutor(3) as pool:
        amsbq.integrate(amsbq.Source(fine), (0, 1), budget=5, model="icm", executor=pool, workers=2)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_processes_of_any_pool_end_with_a_run_that_is_killed(tmp_path):
    """Also the one that has had no call."""
    (tmp_path / "script.py").write_text(FORKS)
    with subprocess.Popen([sys.executable, tmp_path / "script.py"], stdout=subprocess.PIPE, text=True) as program:
        try:
            busy = {int(program.stdout.readline()) for _ in range(2)}
            children = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text()
        finally:
            program.kill()
    found = {int(pid) for pid in children.split()}
    assert busy < found
    assert eventually(lambda: not any(is_running(pid) for pid in found), seconds=10)
