"""Kill runs repeatedly at random moments, and check that they end as if nothing had happened.

    python -m benchmarks.kill                                  # 30 kills of each kind, more than half an hour
    python -m benchmarks.kill --where cli dask --signals SIGTERM --kills 100

Runs use one thread, threads, processes of the standard library, a Dask cluster, and the command line with its own pool
and with commands. SIGINT goes to the whole process group, as Ctrl-C on a terminal does; SIGTERM and SIGKILL go to the
run alone. Each run is resumed until it completes; then the next one begins with another seed. After every kill:

- no process of the run is left after ten seconds;
- every answer that was in the journal is still there.

At the end of every run, nothing was reported twice, failed, charged twice, or evaluated again without a kill in
between. In one thread, the estimate, the evaluations and the budget equal those of a run that was never killed, to the
last bit.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import amsbq
from amsbq.execution.journal import read_journal

BUDGET = 3.0
WORKERS = {"serial": 1, "threads": 3, "processes": 2, "dask": 2, "cli": 2}
SIGNALS = ("SIGINT", "SIGTERM", "SIGKILL")
MARK = "AMSBQ_KILL"  #: environment variable that all processes of a run have
ORPHANS_END = 10.0  #: seconds after the end of a run by which all processes that it started must have ended

PROBLEM = """
budget = {budget}
seed = {seed}
model = "icm"
[inputs]
x = {{ low = 0.0, high = 1.0 }}
[[sources]]
name = "fine"
python = "benchmarks.kill:fine_of_problem"
[[sources]]
name = "coarse"
command = ["awk", "BEGIN {{ system(\\"sleep 0.02\\"); printf \\"%.17g\\\\n\\", sin(5 * {{x}}) + 0.2 }}"]
cost = 0.1
"""


def fine(calls: Path, x: Any) -> float:
    """Evaluate the primary source: record the call, and take 20 ms in a separate program."""
    with calls.open("a") as file:
        file.write(f"{float(x[0])!r}\n")
    subprocess.run(["sleep", "0.02"], check=True)
    return float(np.sin(5 * x[0]) + x[0])


def fine_of_problem(x: Any) -> float:
    return fine(Path(os.environ["AMSBQ_CALLS"]), x)


def coarse(x: Any) -> float:
    return float(np.sin(5 * x[0]) + 0.2)


def run(path: Path, seed: int, where: str, calls: Path, address: str = "") -> Any:
    """Execute the run that is killed."""
    sources = [
        amsbq.Source(partial(fine, calls), name="fine"),
        amsbq.Source(coarse, cost=0.1, name="coarse"),
    ]
    options: dict[str, Any] = {"budget": BUDGET, "model": "icm", "seed": seed, "journal": path, "progress": False}
    with warnings.catch_warnings(), _executor(where, address) as executor:
        warnings.simplefilter("ignore")
        return amsbq.integrate(
            sources, amsbq.Uniform(0, 1), workers=WORKERS[where], executor=executor, on_interrupt="raise", **options
        )


def _executor(where: str, address: str) -> Any:
    if where == "processes":
        return ProcessPoolExecutor(WORKERS[where])
    if where == "dask" and address:
        from distributed import Client

        return Client(address, set_as_default=False)
    return nullcontext()


def child(journal: str, seed: str, where: str, calls: str, address: str) -> int:
    try:
        run(Path(journal), int(seed), where, Path(calls), address)
    except KeyboardInterrupt:
        return 130
    except RuntimeError as error:  # an executor that the signal has broken
        print(error, file=sys.stderr)
        return 1
    return 0


def start(folder: Path, seed: int, where: str, address: str) -> subprocess.Popen[bytes]:
    journal, calls, name = folder / f"{seed}.jsonl", folder / f"{seed}.calls", f"{seed}"
    if where == "cli":
        problem = folder / f"{seed}.toml"
        problem.write_text(PROBLEM.format(budget=BUDGET, seed=seed))
        command = ["-m", "amsbq", "run", str(problem), "--workers", str(WORKERS[where])]
    else:
        command = ["-m", "benchmarks.kill", "--child", str(journal), name, where, str(calls), address]
    environment = {**os.environ, MARK: str(folder), "AMSBQ_CALLS": str(calls), "PYTHONPATH": _paths()}
    output = (folder / "output").open("wb")
    return subprocess.Popen(
        [sys.executable, *command], env=environment, start_new_session=True, stdout=output, stderr=output
    )


def _paths() -> str:
    return os.pathsep.join([str(Path(__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])])


def answers(journal: Path) -> dict[int, Any]:
    """Return the answers in a journal by query; nothing may have been answered twice, or have failed."""
    if not journal.exists() or b"\n" not in journal.read_bytes():
        return {}
    _, events = read_journal(journal)
    assert not [event for event in events if event["event"] == "failed"], "an evaluation has failed"
    told = [event for event in events if event["event"] == "told"]
    found = {event["id"]: (event["value"], event["variance"], event["cost"]) for event in told}
    assert len(found) == len(told), "something was reported twice"
    return found


def pending(journal: Path) -> list[str]:
    """Return the locations of pending queries of the primary source."""
    if not journal.exists() or b"\n" not in journal.read_bytes():
        return []
    _, events = read_journal(journal)
    told = answers(journal)
    asked = [event for event in events if event["event"] == "asked" and event["id"] not in told]
    return [repr(float(event["x"][0])) for event in asked if event["source"] == 0]


def marked(folder: Path) -> list[str]:
    """Return the command lines of all running processes with the mark of a run."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={folder}\0".encode() in (process / "environ").read_bytes() + b"\0":
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def kill_runs(kills: int, where: str, name: str, address: str) -> tuple[int, int, float]:
    """Kill runs ``kills`` times; return numbers of kills and runs, and the longest time until all processes ended."""
    rng, made, seed, longest = np.random.default_rng(0), 0, 0, 0.0
    number = getattr(signal, name)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        while made < kills:
            journal, again = folder / f"{seed}.jsonl", Counter[str]()
            while True:
                before, lines = answers(journal), _lines(journal)
                process = start(folder, seed, where, address)
                if _wait(process, journal, lines + int(rng.integers(1, 12)), rng.uniform(0, 0.06)):
                    os.killpg(process.pid, number) if name == "SIGINT" else process.send_signal(number)
                    process.wait(60)
                    made += process.returncode != 0
                begun = time.monotonic()
                while left := marked(folder):
                    assert time.monotonic() < begun + ORPHANS_END, f"left behind: {left}"
                    time.sleep(0.02)
                longest = max(longest, time.monotonic() - begun)
                assert before.items() <= answers(journal).items(), "an answer was lost"
                if process.returncode == 0:
                    break
                said = (folder / "output").read_text()
                assert process.returncode in (-number, 128 + number, 1), (process.returncode, said)
                assert process.returncode != 1 or "executor does not work" in said, said
                again.update(pending(journal))
            check(folder, seed, where, again)
            seed += 1
    return made, seed, longest


def _lines(journal: Path) -> int:
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def _wait(process: subprocess.Popen[bytes], journal: Path, lines: int, pause: float) -> bool:
    """Wait until the journal has ``lines`` lines, plus a pause; return whether the process is still running."""
    while process.poll() is None and _lines(journal) < lines:
        time.sleep(0.002)
    time.sleep(pause)
    return process.poll() is None


def check(folder: Path, seed: int, where: str, again: Counter[str]) -> None:
    """Check a completed run; ``again`` counts how often a location was pending when the run was killed."""
    journal = folder / f"{seed}.jsonl"
    found, told = amsbq.read_result(journal, model=False), answers(journal)
    assert sorted(told) == sorted(e.id for e in found.evaluations if e.id is not None)
    assert abs(found.spent - sum(cost for _, _, cost in told.values())) < 1e-12
    assert found.spent <= BUDGET * (1 + 1e-12)
    calls = Counter((folder / f"{seed}.calls").read_text().split())
    primary = {repr(float(e.x[0])) for e in found.evaluations if e.source == 0}
    assert primary <= set(calls), "something was reported that was never evaluated"
    assert all(calls[x] <= 1 + again[x] for x in calls), "something was evaluated again without need"
    if where == "serial":
        whole, calls_of_whole = folder / "whole.jsonl", folder / "whole.calls"
        whole.unlink(missing_ok=True)
        resumed = everything(run(journal, seed, where, folder / f"{seed}.calls"))
        assert resumed == everything(run(whole, seed, where, calls_of_whole)), "it ended differently"


def everything(result: Any) -> Any:
    """Return all numbers of a result, for comparison."""
    rows = [(e.id, e.source, e.x.tolist(), e.value, e.cost, e.mean, e.std) for e in result.evaluations]
    return result.mean, result.std, result.spent, rows


@contextmanager
def cluster(needed: bool) -> Iterator[str]:
    """Yield the address of a Dask scheduler with two workers."""
    if not needed:
        yield ""
        return
    from distributed import LocalCluster

    with LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as one:  # type: ignore[no-untyped-call]
        yield one.scheduler_address


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30, help="of each kind")
    parser.add_argument("--where", nargs="+", choices=WORKERS, default=list(WORKERS))
    parser.add_argument("--signals", nargs="+", choices=SIGNALS, default=list(SIGNALS))
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(*options.child)
    for where in options.where:
        for name in options.signals:
            with cluster(where == "dask") as address:
                kills, runs, longest = kill_runs(options.kills, where, name, address)
            print(f"{where:9} {name:7} {kills:3} kills, {runs:2} runs: nothing lost, told or charged twice; ", end="")
            print(f"everything had ended after {longest:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
