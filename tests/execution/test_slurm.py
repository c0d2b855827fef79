"""A real SLURM of one node: workers of Dask in its jobs, and jobs that tell their own values."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import amsbq
from amsbq.cli.main import main
from amsbq.execution.reader import read_result
from tests.waiting import eventually

pytestmark = [pytest.mark.slurm, pytest.mark.filterwarnings("ignore::ResourceWarning")]
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={controller}
SlurmdPort={daemon}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=sched_interval=1
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """A SLURM that listens on this machine only; what is in the environment leads all of its commands to it."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"SLURM cannot be started: {'there is no ' + missing[0] if missing else 'that takes root'}")
    folder = Path(tmp_path_factory.mktemp("slurm"))
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)  # munge wants others to reach its socket
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key, settings = folder / "munge.key", folder / "slurm.conf"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(256))
    host, ports = socket.gethostname().split(".")[0], {"controller": free_port(), "daemon": free_port()}
    settings.write_text(CONFIGURATION.format(host=host, folder=folder, **ports))
    files = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
    commands = [
        ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *files],
        ["slurmctld", "-D", "-c"],
        ["slurmd", "-D", "-c"],
    ]
    with pytest.MonkeyPatch.context() as patched, (folder / "log").open("w") as log:
        patched.setenv("SLURM_CONF", str(settings))
        running = []
        for command in commands:
            running.append(subprocess.Popen(command, stdout=log, stderr=log))
            if command[0] == "munged" and not eventually((folder / "munge.socket").exists, 10):
                break
        try:
            if not eventually(lambda: "idle" in said("sinfo", "--noheader", "--format=%T"), 20):
                pytest.skip(f"SLURM does not start here: {(folder / 'log').read_text()[-500:]}")
            yield
            said("scancel", "--user=root")
            eventually(lambda: not said("squeue", "--noheader"), 10)
        finally:
            for process in reversed(running):
                process.kill()
                process.wait()


def said(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout


@pytest.fixture
def jobqueue():
    """The package, whose import replaces the handler of interrupts of the whole process."""
    before = signal.getsignal(signal.SIGINT)
    try:
        return pytest.importorskip("dask_jobqueue")
    finally:
        signal.signal(signal.SIGINT, before)


def fine(x):
    return float(os.environ["SLURM_JOB_ID"] != "") + float(x[0]) ** 2


def test_a_run_on_a_dask_cluster_of_slurm_jobs(slurm, jobqueue, tmp_path):
    distributed = pytest.importorskip("distributed")
    with (
        jobqueue.SLURMCluster(
            cores=1,
            memory="400MB",
            walltime="00:05:00",
            local_directory=str(tmp_path),
            log_directory=str(tmp_path),
            job_script_prologue=[f"export PYTHONPATH={Path.cwd()}", "export OPENBLAS_NUM_THREADS=1"],
            worker_extra_args=["--host", "127.0.0.1", "--no-dashboard"],
            scheduler_options={"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"},
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        cluster.scale(jobs=2)
        result = amsbq.integrate(fine, amsbq.Uniform(0, 1), budget=6, model="icm", executor=client, workers=2)
    assert [e.status for e in result.evaluations] == ["ok"] * 6
    for e in result.evaluations:
        assert e.value == 1 + e.x[0] ** 2  # which only a job knows
    low, high = result.interval()
    assert low < 4 / 3 < high


PROBLEM = """
budget = 3.0
model = "icm"
[inputs]
load = { low = 0.0, high = 1.0 }
[[sources]]
name = "fine"
detached = true
"""

JOB = f"""#!/bin/sh
#SBATCH --job-name=fine-{{id}} --ntasks=1 --time=5 --output=/dev/null
{sys.executable} -m amsbq tell {{journal}} {{id}} $(awk 'BEGIN {{{{ print {{load}} * {{load}} }}}}')
"""


def test_slurm_jobs_tell_their_own_values(slurm, tmp_path, capsys):
    (tmp_path / "problem.toml").write_text(PROBLEM)
    (tmp_path / "job.sh").write_text(JOB)
    assert main(["ask", str(tmp_path / "problem.toml"), "--n", "3", "--template", str(tmp_path / "job.sh")]) == 0
    jobs = capsys.readouterr().out.split()
    for job in jobs:
        assert "Submitted" in said("sbatch", job)
    journal = tmp_path / "problem.jsonl"
    assert eventually(lambda: len(read_result(journal, model=False).evaluations) == 3)
    for e in read_result(journal).evaluations:
        assert e.value == pytest.approx(e.x[0] ** 2, abs=1e-5)
    assert main(["ask", str(tmp_path / "problem.toml")]) == 0
    assert "the remaining budget does not cover another useful evaluation" in capsys.readouterr().err
