"""Runs: which are wanted, which of them are stored already, and the others in processes of their own."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import TypeAlias

from .families import problem_named, problems
from .methods import METHODS
from .store import FILE, Record, append, digest, load
from .truths import truth_of

Job: TypeAlias = tuple[str, str, int]  # problem, method and seed

#: problems of a quick look: small ones of many kinds
QUICK = ("boundary-value/0", "misleading/1", "smooth/2", "rough/0", "skewed/1", "one-source/1")


def wanted(families: Sequence[str], methods: Sequence[str], seeds: int, quick: bool = False) -> list[Job]:
    """Return (problem, method, seed) of all runs; those of one seed come together, so that the first part is whole."""
    chosen = [p for p in problems() if (not families or p.family in families) and (not quick or p.key in QUICK)]
    return [
        (problem.key, name, seed)
        for seed in range(seeds)
        for problem in chosen
        for name in methods
        if METHODS[name].applies(problem)
    ]


def run(job: Job, code: str) -> Record:
    """Run a method on a problem; an error that it raises becomes part of the record."""
    key, method, seed = job
    problem, started = problem_named(key), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = METHODS[method].run(problem, truth_of(problem), seed)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            return Record(key, method, seed, code, time.process_time() - started, 0, [], message)
    return Record(key, method, seed, code, time.process_time() - started, found.evaluations, found.rows)


def missing(jobs: Sequence[Job], file: Path = FILE) -> dict[Job, str]:
    """Return the jobs that have no stored result by the same code, each with its digest."""
    digests = {(key, method): digest(method, key) for key, method in {(key, method) for key, method, _ in jobs}}
    stored = load(file)
    return {job: digests[job[:2]] for job in jobs if job not in stored or stored[job].digest != digests[job[:2]]}


def run_all(jobs: Sequence[Job], workers: int, file: Path = FILE) -> None:
    """Run all jobs that are missing, and store their results as they come."""
    left = missing(jobs, file)
    started = time.monotonic()
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:  # processes that obey the limit of threads
        futures = [pool.submit(run, job, code) for job, code in left.items()]
        try:
            for done, future in enumerate(as_completed(futures), 1):
                record = future.result()
                append(record, file)
                minutes = (time.monotonic() - started) / 60
                line = f"{done}/{len(left)} runs, {minutes:.1f} min; {record.problem} by {record.method}"
                print(f"\r{line:78.78}", end="", file=sys.stderr, flush=True)
        except BaseException:  # otherwise the pool would go on with all that is left, and nobody would store it
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    print(f"\r{len(left)} runs made, {len(jobs) - len(left)} reused".ljust(79), file=sys.stderr)
