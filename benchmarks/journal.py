"""Measure the time that the runner and a journal add to each evaluation, and that of resuming a long journal.

python -m benchmarks.journal                # a minute
python -m benchmarks.journal --events 2000  # of the journal that is resumed; 10,000 by default
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import amsbq
from amsbq.design.evaluations import Choice
from amsbq.execution.journal import Journal
from amsbq.execution.resume import begin_or_resume
from amsbq.execution.runner import run


class Random(amsbq.Integrator):
    """An integrator with random locations and no model, so that only the runner and the journal take time."""

    def _next_of_design(self) -> list[Choice]:
        return []

    def _chosen(self, n: int) -> list[Choice]:
        x = self.measure.sample(1, self._rng(self._n_asked))[0]
        choice = Choice(0 if self._n_asked % 10 == 0 else 1, x)
        if self._possible(choice):
            return [choice]
        self._stop("budget")
        return []

    def _integral(self) -> tuple[float, float]:
        return math.nan, math.nan


def fine(x: Any) -> float:
    return float(np.sin(3 * x).sum())


def coarse(x: Any) -> float:
    return float(np.sin(3 * x).sum() + 0.1 * x[0])


def integrator(kind: type[amsbq.Integrator], n: int) -> amsbq.Integrator:
    """Return an integrator with a budget for n evaluations, every tenth of which belongs to the primary source."""
    sources = [amsbq.Source(fine, noise=1e-4), amsbq.Source(coarse, cost=0.1, noise=1e-4)]
    return kind(sources, amsbq.Uniform([0, 0], 1), budget=0.19 * n + 1e-9, initial=[])


def taken(n: int, **options: Any) -> float:
    """Return the milliseconds that each of n evaluations takes."""
    it, elapsed = integrator(Random, n), []
    start = time.perf_counter()

    def stop_rule(it: amsbq.Integrator) -> None:
        elapsed.append(time.perf_counter() - start)

    run(it, [stop_rule], progress=False, **options)
    return 1e3 * elapsed[-1] / len(it.evaluations)


def resumed(path: Path, n: int) -> tuple[amsbq.Integrator, float]:
    """Return the restored integrator, and the seconds until it has its posterior."""
    it = integrator(amsbq.Integrator, n)
    start = time.perf_counter()
    with Journal(path) as journal:
        begin_or_resume(journal, it)
        assert it.learner.posterior is not None
        return it, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        for name, how in {
            "serial, without a journal": {},
            "serial, with a journal": {"journal": path / "1.jsonl"},
            "four workers, with a journal": {"journal": path / "4.jsonl", "workers": 4},
            "a pool of threads, with a journal": {"journal": path / "pool.jsonl", "executor": ThreadPoolExecutor(4)},
        }.items():
            print(f"{name:<36} {taken(1000, **how):.2f} ms for each evaluation")
        n = math.ceil(options.events / 3)
        path = Path(folder) / "long.jsonl"
        taken(n, journal=path)
        it, _ = resumed(path, n)  # learns hyperparameters, which the journal of an ordinary run has
        fitted = it.learner.fitted() or {}
        with Journal(path) as journal:
            for event in [{"event": "known", "id": e.id, "mean": 0.0, "std": 1.0} for e in it.evaluations]:
                journal.write(event, durable=False)
            journal.write({"event": "fitted", **fitted})
            events = len(journal.events) + n + 1
        print(f"{events} events, {n} evaluations: resumed in {resumed(path, n)[1]:.1f} s")


if __name__ == "__main__":
    main()
