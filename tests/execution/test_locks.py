"""One run at a time writes to a journal, and no other process keeps it locked."""

import errno
import fcntl
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import amsbq
from amsbq.execution.journal import Journal, JournalError, locked, read_journal

UNIT = amsbq.Uniform(0, 1)


def fine(x):
    return float(np.sin(5 * x[0]) + x[0])


def run(path, function=fine, budget=3.0, **options):
    source = amsbq.Source(function, name="fine")
    return amsbq.integrate(source, UNIT, budget=budget, model="icm", journal=path, progress=False, **options)


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_workers_of_a_pool_do_not_keep_the_journal(tmp_path, method):
    path = tmp_path / "run.jsonl"
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
        run(path, executor=pool)
        assert len(run(path, budget=4.0, executor=pool).evaluations) == 4


KILLED = """
import sys, time, multiprocessing
from concurrent.futures import ProcessPoolExecutor
sys.path.insert(0, {root!r})
from tests.execution.test_locks import *
from amsbq.external import Command
if __name__ == "__main__":
    kind, path, pids = sys.argv[1:]
    if kind == "command":
        run(path, Command(["sh", "-c", f"echo $$ >> {{pids}}; sleep 60"], ["x"]))
    elif kind == "loky":
        from loky import ProcessPoolExecutor
        run(path, slow(pids), executor=ProcessPoolExecutor(1))
    else:
        run(path, slow(pids), executor=ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(kind)))
"""


class slow:
    """A source that notes the process that evaluates it, and takes a minute."""

    def __init__(self, pids):
        self.pids = pids

    def __call__(self, x):
        with open(self.pids, "a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(60)


@pytest.mark.parametrize("kind", ["fork", "forkserver", "loky", "command"])
def test_after_a_kill_the_journal_is_free(tmp_path, kind):
    """Even while the evaluation goes on in a process that was left behind."""
    if kind == "loky":
        pytest.importorskip("loky")
    path, pids, script = tmp_path / "run.jsonl", tmp_path / "pids", tmp_path / "script.py"
    script.write_text(KILLED.format(root=str(Path(__file__).parents[2])))
    process = subprocess.Popen([sys.executable, script, kind, path, pids])
    worker = None
    try:
        for _ in range(300):
            if pids.exists() and pids.read_text().endswith("\n"):
                break
            time.sleep(0.1)
        worker = int(pids.read_text())
        with pytest.raises(JournalError, match="in use by another run"):
            Journal(path)
        process.kill()
        process.wait()
        assert os.getpgid(worker)  # it is there
        with Journal(path) as journal:
            assert [event["event"] for event in journal.events] == ["asked"]
    finally:
        process.kill()
        process.wait()
        if worker is not None:
            os.kill(worker, signal.SIGKILL)


def test_a_process_that_was_forked_cannot_write(tmp_path):
    with Journal(tmp_path / "run.jsonl") as journal:
        journal.begin({})
        if (pid := os.fork()) == 0:
            try:
                journal.write({"event": "told"})
            except ValueError:
                os._exit(3)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
        with pytest.raises(JournalError, match="in use"):  # the lock is still that of the parent
            Journal(tmp_path / "run.jsonl")
        journal.write({"event": "told"})
    assert len(read_journal(tmp_path / "run.jsonl")[1]) == 1


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch, code):
    def refuse(file, operation):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(
        JournalError, match=f"cannot be locked: {os.strerror(code)}. Its file system may not support locks"
    ):
        run(tmp_path / "run.jsonl")


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced"])
def test_a_journal_that_disappears_ends_the_run(tmp_path, how):
    path, calls = tmp_path / "run.jsonl", []

    def meddles(x):
        calls.append(x)
        if len(calls) == 2 and how == "deleted":
            path.unlink()
        elif len(calls) == 2:
            path.rename(tmp_path / "moved.jsonl")
            if how == "replaced":
                path.write_text("something else")
        return 0.123456789 if len(calls) == 2 else fine(x)

    with pytest.raises(JournalError, match=r'deleted, moved or replaced .*"told","id":1,"value":0.123456789'):
        run(path, meddles)
    assert len(calls) == 2
    if how != "deleted":
        assert read_journal(tmp_path / "moved.jsonl")[1][-1]["value"] == 0.123456789
    if how == "replaced":
        assert path.read_text() == "something else"


def test_a_source_may_change_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()

    def wanders(x):
        os.chdir(tmp_path / "elsewhere")
        return fine(x)

    assert run("run.jsonl", wanders).stopped == "budget"


def test_a_journal_in_use_cannot_be_set_aside(tmp_path):
    path = tmp_path / "run.jsonl"
    with Journal(path), pytest.raises(JournalError, match="in use by another run"), locked(path):
        pass
    with locked(path):
        path.rename(tmp_path / "aside.jsonl")
