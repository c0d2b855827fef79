"""What the page on workers and clusters promises of Dask: real clusters on loopback that lack or lose their workers."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import amsbq
from amsbq.execution.journal import read_journal
from tests.execution.test_executors import eventually

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
UNIT = amsbq.Uniform(0, 1)


def fine(x):
    return float(x[0]) ** 2


def ends_its_worker(x):
    if x[0] > 0.5:
        os._exit(1)
    return float(x[0])


def test_a_cluster_without_workers_is_waited_for():
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        later = threading.Timer(2.5, cluster.scale, [1])
        later.start()
        start = time.monotonic()
        result = amsbq.integrate(amsbq.Source(fine, timeout=1), UNIT, budget=3, model="icm", executor=client, workers=2)
        later.join()
    assert time.monotonic() - start > 2
    assert [e.status for e in result.evaluations] == ["ok"] * 3


def test_an_evaluation_that_ends_several_workers_has_failed():
    """Dask gives it up after a number of workers that can be set; by default four."""
    with (
        distributed.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        source = amsbq.Source(ends_its_worker, name="fine")
        options = {"model": "icm", "executor": client, "initial": [(0, [0.2]), (0, [0.7]), (0, [0.4])]}
        result = amsbq.integrate(source, UNIT, budget=3, **options)
    assert [e.status for e in result.evaluations] == ["ok", "failed", "ok"]
    assert "KilledWorker" in result.evaluations[1].reason
    assert result.spent == 3


SCRIPT = """
import pathlib, sys, time
from distributed import Client
import amsbq
folder = pathlib.Path(sys.argv[2])
def slow(x, folder=folder):
    (folder / "started").touch()
    while not (folder / "go").exists():
        time.sleep(0.02)
    (folder / "ended").touch()
    return x[0]
with Client(sys.argv[1]) as client:
    amsbq.integrate(slow, (0, 1), budget=3, model="icm", executor=client, journal=folder / "run.jsonl")
"""


def test_what_runs_on_a_cluster_stays_with_it(tmp_path):
    """A run that is killed cannot end it; its query is pending."""
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None, protocol="tcp://") as cluster:
        command = [sys.executable, "-c", SCRIPT, cluster.scheduler_address, str(tmp_path)]
        with subprocess.Popen(command) as process:
            assert eventually((tmp_path / "started").exists)
            process.send_signal(signal.SIGKILL)
        assert not (tmp_path / "ended").exists()
        (tmp_path / "go").touch()
        assert eventually((tmp_path / "ended").exists)
    assert [event["event"] for event in read_journal(tmp_path / "run.jsonl")[1]] == ["asked"]
