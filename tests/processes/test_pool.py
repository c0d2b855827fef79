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

from amsbq import ResilientProcessPool
from amsbq.processes import pool as pool_module
from amsbq.processes.pool import CrashedCall
from tests.waiting import PATIENCE, eventually, is_running

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@pytest.fixture(scope="module")
def pool():
    """Two processes, which take a second each to start: tests share them."""
    with ResilientProcessPool(2) as pool:
        yield pool


@pytest.fixture(scope="module")
def single():
    """A pool of one process."""
    with ResilientProcessPool(1) as pool:
        yield pool


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


def test_a_call_whose_process_dies_is_tried_once_more(single, tmp_path):
    before = single.submit(os.getpid).result(PATIENCE)
    assert single.submit(die_the_first_time, tmp_path / "tried").result(PATIENCE) != before


def test_a_call_whose_process_dies_twice_is_an_error_and_the_others_go_on(pool, tmp_path):
    """Not even the calls that run at the same time are lost, or evaluated a second time."""
    neighbour = pool.submit(wait_in, tmp_path)
    pid = pid_in(tmp_path)
    crash = pool.submit(note_and_die, tmp_path / "tries")
    with pytest.raises(CrashedCall, match=r"has died 2 times.*EXIT\(3\)"):
        crash.result(PATIENCE)
    assert (tmp_path / "tries").read_text() == "tried\n" * 2
    assert not neighbour.done()
    assert pool.submit(divmod, 17, 5).result(PATIENCE) == (3, 2)
    (tmp_path / "go").touch()
    assert neighbour.result(PATIENCE) == pid


def test_errors_of_a_call_are_its_own(single):
    before = single.submit(os.getpid).result(PATIENCE)
    with pytest.raises(ZeroDivisionError):
        single.submit(divmod, 1, 0).result(PATIENCE)
    with pytest.raises(PicklingError):
        single.submit(repr, threading.Lock()).result(PATIENCE)
    assert single.submit(os.getpid).result(PATIENCE) == before


def test_no_more_calls_at_a_time_than_there_are_processes(pool, tmp_path):
    pids = {future.result(PATIENCE) for future in [pool.submit(os.getpid) for _ in range(20)]}
    assert len(pids) <= 2
    waiting = [pool.submit(wait_in, tmp_path) for _ in range(3)]
    assert eventually(lambda: sum(future.running() for future in waiting) == 2)
    time.sleep(0.2)
    assert [future.running() for future in waiting] == [True, True, False]
    (tmp_path / "go").touch()
    assert {future.result(PATIENCE) for future in waiting} <= pids


def test_functions_that_cannot_be_imported(single):
    offset = 3
    assert single.submit(lambda x: x + offset, 4).result(PATIENCE) == 7


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


def test_a_call_is_cancelled_while_it_runs(single, tmp_path):
    call = single.submit(wait_in, tmp_path)
    pid = pid_in(tmp_path)
    assert call.cancel()
    with pytest.raises(CancelledError):
        call.result(PATIENCE)
    assert not is_running(pid)
    assert single.submit(divmod, 17, 5).result(PATIENCE) == (3, 2)
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
def wait_for(folder, name):
    os.write(1, f"{os.getpid()}\\n".encode())
    while not pathlib.Path(folder, name).exists():
        time.sleep(0.02)
    return "done"
signal.signal(signal.SIGINT, lambda *_: None)
with ResilientProcessPool(2) as pool:
    pool.submit(os.getpid).result()  # one that is idle, besides one that is busy
    print(pool.submit(wait_for, sys.argv[1], "go").result(), pool.submit(divmod, 17, 5).result(), flush=True)
    pool.submit(wait_for, sys.argv[1], "never").result()
"""


@linux
def test_processes_get_no_interrupt_of_the_terminal_and_end_with_their_program(tmp_path):
    """Ctrl-C reaches all processes, as here; what is running goes on, and so does the pool."""
    pipes = {"stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([sys.executable, "-c", HOLDS_A_POOL, tmp_path], **pipes) as program:
        try:
            first = int(program.stdout.readline())
            os.killpg(program.pid, signal.SIGINT)
            time.sleep(0.3)
            (tmp_path / "go").touch()
            assert program.stdout.readline() == "done (3, 2)\n"
            second = int(program.stdout.readline())
            assert is_running(second)
        finally:
            program.kill()
    assert eventually(lambda: not is_running(first) and not is_running(second), seconds=10)


def start_a_program(path):
    """Start a program, note its number, and wait for it, in this process or another."""
    program = subprocess.Popen(["sleep", "3600"])
    path.write_text(str(program.pid))
    program.wait()


@linux
def test_a_process_that_dies_takes_its_programs_with_it(single, tmp_path):
    process = single.submit(os.getpid).result(PATIENCE)
    call = single.submit(start_a_program, tmp_path / "pid")
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
