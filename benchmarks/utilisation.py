"""Measure the utilisation of workers: evaluations take simulated time, decisions their real CPU time.

    python -m benchmarks.utilisation    # five minutes

Two inputs and two sources, of which the cheap one costs a tenth. The time of an evaluation is random around its cost:
lognormal, with a standard deviation of 30 %. Decisions are made one at a time, by one process, and idle workers
wait for them. Utilisation is the share of time in which workers evaluate, from the start until nothing more is asked.
"""

from __future__ import annotations

import argparse
import heapq
import time

import numpy as np
from scipy import stats

import amsbq

COSTS = (1.0, 0.1)
SPREAD = 0.3  #: standard deviation of the logarithm of an evaluation's time
INPUTS = {"a": stats.uniform(), "b": stats.norm(0, 0.3)}


def value(source: int, x: np.ndarray) -> float:
    """Return the value of a source; the cheap one has an additional trend."""
    return float(np.exp(np.sin(4 * x[0]) + x[1]) + (0.2 * x[0] if source else 0.0))


def run(workers: int, seconds: float, budget: float, seed: int = 0) -> tuple[float, float, int]:
    """Return the share of time in which workers evaluate, the mean seconds of a decision, and their number."""
    it = amsbq.Integrator([amsbq.Source(cost=cost) for cost in COSTS], INPUTS, budget=budget, seed=seed)
    rng = np.random.default_rng(seed)
    now, decided, asked = 0.0, 0.0, 0
    running: list[tuple[float, int, amsbq.Query]] = []
    spans: list[tuple[float, float]] = []

    def timed(call):
        nonlocal now, decided
        start = time.process_time()
        answer = call()
        taken = time.process_time() - start
        now, decided = now + taken, decided + taken
        return answer

    while True:
        while len(running) < workers and (query := timed(it.ask)) is not None:
            asked += 1
            end = now + seconds * query.cost * rng.lognormal(-(SPREAD**2) / 2, SPREAD)
            spans.append((now, end))
            heapq.heappush(running, (end, query.id, query))
        if len(running) < workers:
            break
        end, _, query = heapq.heappop(running)
        now = max(now, end)
        timed(lambda query=query: it.tell(query, value(query.source, query.x)))
    busy = sum(min(end, now) - start for start, end in spans)
    return busy / (workers * now), decided / asked, asked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--seconds", type=float, nargs="+", default=[1.0, 10.0, 100.0, 1000.0])
    options = parser.parse_args()
    print("| workers | evaluations | a decision | " + " | ".join(f"{s:g} s" for s in options.seconds) + " |")
    for workers in options.workers:
        found = [run(workers, seconds, budget=8.0 + 2.0 * workers) for seconds in options.seconds]
        shares = " | ".join(f"{share:.0%}" for share, _, _ in found)
        print(
            f"| {workers} | {found[-1][2]} | {np.mean([each for _, each, _ in found]):.2f} s | {shares} |", flush=True
        )


if __name__ == "__main__":
    main()
