"""Runs: which are needed, which are already stored, and execution of the others in separate processes."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Collection, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from .families import problem_named, problems
from .methods import METHODS
from .problem import Problem
from .store import BASELINE, FILE, Job, Record, append, digest, fingerprint, load
from .truths import truths_of


def wanted(chosen: Sequence[Problem], methods: Sequence[str], seeds: Sequence[int]) -> list[Job]:
    """Return all runs, seed by seed, so that an interrupted series has complete seeds."""
    return [
        (problem.key, name, stage, seed)
        for seed in seeds
        for problem in chosen
        for name in methods
        for stage in METHODS[name].stages(problem)
    ]


def chosen(families: Collection[str] = ()) -> list[Problem]:
    """Return the problems of some families, or all."""
    return [problem for problem in problems() if not families or problem.family in families]


def run(job: Job) -> list[Record]:
    """Run a method on a problem; an error that it raises becomes part of the record."""
    key, method, stage, seed = job
    problem, marks = problem_named(key), (fingerprint(key), digest(method))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = METHODS[method].run(problem, truths_of(problem), stage, seed)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            return [Record(*job, 0, *marks, time.process_time() - began, 0, [], failed=message)]
    seconds = (time.process_time() - began) / len(found)
    return [
        Record(*job, output, *marks, seconds, each.evaluations, each.rows, each.stopped)
        for output, each in enumerate(found)
    ]


def is_current(record: Record) -> bool:
    """Return whether a record belongs to the current problem and the current code."""
    return record.fingerprint == fingerprint(record.problem) and record.digest == digest(record.method)


def missing(jobs: Sequence[Job], *files: Path, by_any_code: bool = False) -> list[Job]:
    """Return the jobs that have no stored result of the same problem by the same code, or by any code."""
    same = (lambda record: record.fingerprint == fingerprint(record.problem)) if by_any_code else is_current
    done = {record.job for record in load(*files).values() if same(record)}
    return [job for job in jobs if job not in done]


def run_all(
    jobs: Sequence[Job], workers: int, file: Path = FILE, by_any_code: bool = False, baseline: Path = BASELINE
) -> None:
    """Run all jobs that neither the file nor the baseline has, and store their results as they come."""
    left, began = missing(jobs, baseline, file, by_any_code=by_any_code), time.monotonic()
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:  # spawned processes obey the limit of threads
        futures = [pool.submit(run, job) for job in left]
        try:
            for done, future in enumerate(as_completed(futures), 1):
                records = future.result()
                append(records, file)
                minutes = (time.monotonic() - began) / 60
                line = f"{done}/{len(left)} runs, {minutes:.1f} min; {records[0].problem} by {records[0].method}"
                print(f"\r{line:78.78}", end="", file=sys.stderr, flush=True)
        except BaseException:  # otherwise the pool would finish all remaining jobs without storing them
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    print(f"\r{len(left)} runs made, {len(jobs) - len(left)} reused".ljust(79), file=sys.stderr)
