"""The pool of processes: calls that crash, hang or cannot be imported, and what becomes of the others."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from pickle import PicklingError

import pytest

import amsbq
from amsbq.processes import pool as pool_module
from amsbq.processes.pool import CrashedCall, ResilientProcessPool

PATIENCE = 60  # seconds for what takes less than one, on a machine that is busy


def eventually(condition, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def is_running(pid):
    """Whether there is a process of that number which has not ended (a zombie has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def note_and_die(path):
    with open(path, "a") as file:
        file.write("tried\n")
    os._exit(3)


def die_the_first_time(path):
    if path.exists():
        return os.getpid()
    path.touch()
    os.kill(os.getpid(), signal.SIGKILL)
    return None


def wait_in(folder):
    """Note the number of the process, and wait for a file."""
    (folder / "pid").write_text(str(os.getpid()))
    while not (folder / "go").exists():
        time.sleep(0.02)
    return os.getpid()


def pid_in(folder):
    assert eventually(lambda: (folder / "pid").exists() and (folder / "pid").read_text())
    return int((folder / "pid").read_text())


def test_a_call_whose_process_dies_is_tried_once_more(tmp_path):
    with ResilientProcessPool(1) as pool:
        before = pool.submit(os.getpid).result(PATIENCE)
        after = pool.submit(die_the_first_time, tmp_path / "tried").result(PATIENCE)
    assert after != before


def test_a_call_whose_process_dies_twice_is_an_error_and_the_others_go_on(tmp_path):
    """Not even the calls that run at the same time are lost, or evaluated a second time."""
    with ResilientProcessPool(2) as pool:
        neighbour = pool.submit(wait_in, tmp_path)
        pid = pid_in(tmp_path)
        crash = pool.submit(note_and_die, tmp_path / "tries")
        with pytest.raises(BrokenProcessPool, match=r"has died 2 times.*EXIT\(3\)"):
            crash.result(PATIENCE)
        assert (tmp_path / "tries").read_text() == "tried\n" * 2
        assert not neighbour.done()
        assert pool.submit(divmod, 17, 5).result(PATIENCE) == (3, 2)
        (tmp_path / "go").touch()
        assert neighbour.result(PATIENCE) == pid


def test_errors_of_a_call_are_its_own():
    with ResilientProcessPool(1) as pool:
        before = pool.submit(os.getpid).result(PATIENCE)
        with pytest.raises(ZeroDivisionError):
            pool.submit(divmod, 1, 0).result(PATIENCE)
        with pytest.raises(PicklingError):
            pool.submit(repr, threading.Lock()).result(PATIENCE)
        assert pool.submit(os.getpid).result(PATIENCE) == before


def test_no_more_calls_at_a_time_than_there_are_processes():
    with ResilientProcessPool(2) as pool:
        pids = {future.result(PATIENCE) for future in [pool.submit(os.getpid) for _ in range(20)]}
        assert len(pids) <= 2
        hanging = [pool.submit(time.sleep, 3600) for _ in range(3)]
        assert eventually(lambda: sum(future.running() for future in hanging) == 2)
        time.sleep(0.2)
        assert [future.running() for future in hanging] == [True, True, False]


def test_functions_that_cannot_be_imported():
    offset = 3
    with ResilientProcessPool(1) as pool:
        assert pool.submit(lambda x: x + offset, 4).result(PATIENCE) == 7


SCRIPT = """
import amsbq
from amsbq import ResilientProcessPool

class Simulator:
    slope = 2
    def __call__(self, x):
        return self.slope * x[0]

def coarse(x):
    return x[0]

with ResilientProcessPool(2) as pool:
    sources = [amsbq.Source(Simulator(), name="fine"), amsbq.Source(coarse, cost=0.1)]
    result = amsbq.integrate(sources, (0, 1), budget=2.5, model="icm", executor=pool, workers=2)
print({e.reason for e in result.evaluations}, all(e.value == (2 - e.source) * e.x[0] for e in result.evaluations))
"""


def test_functions_of_the_main_script(tmp_path):
    """Also without a guard: the processes do not import the script again."""
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, timeout=120)
    assert done.stdout == "{''} True\n", done.stderr


def test_a_call_is_cancelled_while_it_runs(tmp_path):
    with ResilientProcessPool(1) as pool:
        call = pool.submit(wait_in, tmp_path)
        pid = pid_in(tmp_path)
        assert call.cancel()
        with pytest.raises(CancelledError):
            call.result(PATIENCE)
        assert not is_running(pid)
        assert pool.submit(divmod, 17, 5).result(PATIENCE) == (3, 2)
        assert not call.cancel()


def test_shutdown_ends_processes_that_hang(tmp_path):
    with ResilientProcessPool(1) as pool:
        running = pool.submit(wait_in, tmp_path)
        waiting = pool.submit(divmod, 17, 5)
        pid = pid_in(tmp_path)
    assert not is_running(pid)
    assert wait([running, waiting], PATIENCE).not_done == set()
    for future in (running, waiting):
        with pytest.raises(CancelledError):
            future.result()
    with pytest.raises(RuntimeError, match="shut down"):
        pool.submit(divmod, 17, 5)
    pool.shutdown()


def test_wrong_numbers_of_workers_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        ResilientProcessPool(0)
    with pytest.raises(TypeError, match="whole number"):
        ResilientProcessPool(1.5)


HOLDS_A_POOL = """
import os, pathlib, signal, sys, time
from amsbq import ResilientProcessPool
def wait_for(path):
    print(os.getpid(), flush=True)
    while not path.exists():
        time.sleep(0.02)
    return "done"
signal.signal(signal.SIGINT, lambda *_: None)
with ResilientProcessPool(2) as pool:
    pool.submit(os.getpid).result()  # one that is idle, beside one that is busy
    print(pool.submit(wait_for, pathlib.Path(sys.argv[1])).result(), pool.submit(divmod, 17, 5).result())
"""


def holder_of_a_pool(path):
    """A program of its own with a pool of which one process waits for a file, and the number of that process."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    program = subprocess.Popen([sys.executable, "-c", HOLDS_A_POOL, path], **pipes)
    return program, int(program.stdout.readline())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_processes_end_with_a_program_that_is_killed(tmp_path):
    program, pid = holder_of_a_pool(tmp_path / "go")
    with program:
        assert is_running(pid)
        program.kill()
        assert eventually(lambda: not is_running(pid))


def start_a_program(path):
    """Start a program, note its number, and wait for it, in this process or another."""
    program = subprocess.Popen(["sleep", "3600"])
    path.write_text(str(program.pid))
    program.wait()


def test_a_process_that_dies_takes_its_programs_with_it(tmp_path):
    with ResilientProcessPool(1) as pool:
        process = pool.submit(os.getpid).result(PATIENCE)
        call = pool.submit(start_a_program, tmp_path / "pid")
        program = pid_in(tmp_path)
        os.kill(process, signal.SIGKILL)
        assert eventually(lambda: not is_running(program))
        assert eventually(lambda: (tmp_path / "pid").read_text() not in ("", str(program)))  # of the second try
        call.cancel()
        assert eventually(lambda: not is_running(pid_in(tmp_path)))


def test_processes_that_die_before_any_call_are_the_fault_of_no_call(monkeypatch):
    """The pool is broken, not the call, which is not charged."""
    monkeypatch.setattr(pool_module, "prepare_process", partial(os._exit, 3))
    with ResilientProcessPool(1) as pool:
        with pytest.raises(BrokenProcessPool) as caught:
            pool.submit(divmod, 17, 5).result(PATIENCE)
        assert not isinstance(caught.value, CrashedCall)
        monkeypatch.undo()
        assert pool.submit(divmod, 17, 5).result(PATIENCE) == (3, 2)


FORKS = """
import os, sys, time
from concurrent.futures import ProcessPoolExecutor
import amsbq
def fine(x):
    print(os.getpid(), flush=True)
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
        busy = {int(program.stdout.readline()) for _ in range(2)}
        found = [int(pid) for pid in subprocess.check_output(["pgrep", "-P", str(program.pid)], text=True).split()]
        assert busy < set(found)
        program.kill()
        assert eventually(lambda: not any(is_running(pid) for pid in found), seconds=10)


def test_an_interrupt_on_the_terminal_is_not_for_the_processes(tmp_path):
    """It reaches all of them, as here; what is running goes on, and so does the pool."""
    program, _ = holder_of_a_pool(tmp_path / "go")
    with program:
        os.killpg(program.pid, signal.SIGINT)
        time.sleep(0.5)
        (tmp_path / "go").touch()
        assert program.communicate(timeout=PATIENCE) == ("done (3, 2)\n", "")


def crash_above(limit, x):
    if x[0] > limit:
        os._exit(1)
    return float(x[0])


def hang_the_first_time(path, x):
    if not path.exists():
        path.touch()
        time.sleep(3600)
    return float(x[0])


def run_in_a_pool(function, **options):
    with ResilientProcessPool(1) as pool:
        source = amsbq.Source(function, **options)
        return amsbq.integrate(source, amsbq.Uniform(0, 1), budget=5, model="vbq", executor=pool)


def test_a_run_survives_a_source_that_crashes():
    result = run_in_a_pool(partial(crash_above, 0.6))
    assert {e.status for e in result.evaluations} == {"ok", "failed"}
    for e in result.evaluations:
        assert ("has died 2 times" if e.x[0] > 0.6 else "") in e.reason
        assert (e.status == "failed") == (e.x[0] > 0.6)


def test_a_run_has_its_worker_back_after_a_timeout(tmp_path):
    """The pool has one process only: all later evaluations need that of the one that hung."""
    result = run_in_a_pool(partial(hang_the_first_time, tmp_path / "tried"), timeout=5)
    assert [e.status for e in result.evaluations] == ["failed", "ok", "ok", "ok", "ok"]
    assert "timeout of 5 s" in result.evaluations[0].reason
