"""What the page on workers and clusters promises of Dask: real clusters on loopback that lack or lose their workers."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import amsbq
from amsbq.execution.journal import read_journal
from tests.execution.test_executors import eventually

distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
UNIT = amsbq.Uniform(0, 1)
HERE = "127.0.0.1:0"
#: web pages on any free port of this machine; with None, Dask takes one port for all clusters
WEB = {"dashboard_address": HERE, "worker_dashboard_address": HERE}


def fine(x):
    return float(x[0]) ** 2


def ends_its_worker(x):
    if x[0] > 0.5:
        os._exit(1)
    return float(x[0])


def test_a_cluster_without_workers_is_waited_for():
    with (
        distributed.LocalCluster(n_workers=0, processes=False, **WEB) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        later = threading.Timer(2.5, cluster.scale, [1])
        later.start()
        start = time.monotonic()
        result = amsbq.integrate(amsbq.Source(fine, timeout=1), UNIT, budget=3, model="icm", executor=client, workers=2)
        later.join()
    assert time.monotonic() - start > 2
    assert [e.status for e in result.evaluations] == ["ok"] * 3


def test_an_evaluation_that_ends_its_workers_has_failed():
    """Dask gives it up after a number of workers, by default four; here the first is enough."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(n_workers=0, processes=False, protocol="tcp://", **WEB) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address]
        options = ["--no-nanny", "--no-dashboard", "--nthreads", "1", "--host", "127.0.0.1"]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        with subprocess.Popen([*worker, *options], env=environment, stderr=subprocess.DEVNULL) as process:
            source, initial = amsbq.Source(ends_its_worker), [(0, [0.2]), (0, [0.4]), (0, [0.7])]
            result = amsbq.integrate(source, UNIT, budget=3, model="icm", executor=client, initial=initial)
            assert process.wait(60) == 1
    assert [e.status for e in result.evaluations] == ["ok", "ok", "failed"]
    assert "KilledWorker" in result.evaluations[2].reason
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
    with distributed.LocalCluster(n_workers=1, processes=False, protocol="tcp://", **WEB) as cluster:
        command = [sys.executable, "-c", SCRIPT, cluster.scheduler_address, str(tmp_path)]
        with subprocess.Popen(command) as process:
            assert eventually((tmp_path / "started").exists)
            process.send_signal(signal.SIGKILL)
        assert not (tmp_path / "ended").exists()
        (tmp_path / "go").touch()
        assert eventually((tmp_path / "ended").exists)
    assert [event["event"] for event in read_journal(tmp_path / "run.jsonl")[1]] == ["asked"]
