"""Kill runs with SIGKILL at random moments, resume them, and check that the result is that of an undisturbed run.

    python -m benchmarks.kill                 # 200 kills, some minutes
    python -m benchmarks.kill --workers 3     # with workers

A run is resumed until it ends, then the next one begins with another seed. No value may be lost or told twice, and
nothing may be told that was not evaluated. In serial runs the estimate, the evaluations and the cost must also be those
of a run that was never killed, to the last bit.
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
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import amsbq
from amsbq.execution.journal import read_journal

BUDGET = 3.0


def run(path: Path, seed: int, workers: int, calls: Path | None = None) -> Any:
    """Run or resume; each evaluation of the primary source takes 20 ms, and is written to ``calls``."""

    def fine(x: Any) -> float:
        if calls is not None:
            with calls.open("a") as file:
                file.write(f"{float(x[0])!r}\n")
        time.sleep(0.02)
        return float(np.sin(5 * x[0]) + x[0])

    def coarse(x: Any) -> float:
        return float(np.sin(5 * x[0]) + 0.2)

    sources = [amsbq.Source(fine, name="fine"), amsbq.Source(coarse, cost=0.1, name="coarse")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return amsbq.integrate(
            sources,
            amsbq.Uniform(0, 1),
            budget=BUDGET,
            model="icm",
            seed=seed,
            workers=workers,
            journal=path,
            progress=False,
        )


def everything(result: Any) -> Any:
    """Return all numbers of a result, to be compared."""
    rows = [(e.id, e.source, e.x.tolist(), e.value, e.cost, e.mean, e.std) for e in result.evaluations]
    return result.mean, result.std, result.spent, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--child", nargs=3, metavar=("JOURNAL", "SEED", "CALLS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run(Path(options.child[0]), int(options.child[1]), options.workers, Path(options.child[2]))
        return
    rng, kills, seed = np.random.default_rng(0), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        while kills < options.kills:
            journal, calls = Path(folder) / f"{seed}.jsonl", Path(folder) / f"{seed}.calls"
            while True:
                command = [sys.executable, "-m", "benchmarks.kill", "--workers", str(options.workers), "--child"]
                process = subprocess.Popen([*command, str(journal), str(seed), str(calls)])
                try:
                    process.wait(rng.uniform(0.8, 2.5))
                    assert process.returncode == 0
                    break
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    kills += 1
            check(journal, calls, seed, options.workers, Path(folder) / "whole.jsonl")
            seed += 1
            print(f"\r{kills} kills, {seed} runs: all results as without a kill", end="", flush=True)
    print()


def check(journal: Path, calls: Path, seed: int, workers: int, whole: Path) -> None:
    """Raise an error unless a run that was killed has ended as it should; ``whole`` is for one that is not killed."""
    found = run(journal, seed, workers)
    _, events = read_journal(journal)
    told = Counter(event["id"] for event in events if event["event"] == "told")
    assert set(told.values()) == {1}, "something was told twice"
    assert len(told) == len(found.evaluations)
    assert found.spent <= BUDGET * (1 + 1e-12)
    made = Counter(calls.read_text().splitlines())
    primary = [repr(float(e.x[0])) for e in found.evaluations if e.source == 0]
    assert set(primary) <= set(made), "something was told that was never evaluated"
    if workers == 1:
        whole.unlink(missing_ok=True)
        assert everything(found) == everything(run(whole, seed, 1)), (
            "the result differs from that of an undisturbed run"
        )


if __name__ == "__main__":
    main()
